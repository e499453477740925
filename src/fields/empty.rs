//! Empty lists and maps of a content, which often leave no path in any entry.

use serde_json::Value;

use super::FieldPath;
use super::entry::{EntryNode, ManagedEntry};
use super::normal_form::{ValueSchema, is_left_out_at};
use crate::object::canonical_json;

/// The live value of what is an empty list or map in the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyCounterpart {
    /// It is as empty, or a list or map of which others own single items or keys. Such a one is
    /// merged, so an apply of an empty one takes nothing away.
    Same,
    /// It is absent, and an empty value may mean another thing: `emptyDir: {}` is a volume.
    Absent,
    /// It is something else.
    Other,
}

/// Returns what a live object shows at the path of an empty list or map of the content.
pub(crate) fn find_counterpart(
    content: &Value,
    shown: &Value,
    path: &FieldPath,
    schema: ValueSchema,
) -> EmptyCounterpart {
    let is_same = match path.find(shown) {
        None | Some(Value::Null) => {
            let is_dropped = path.find(content).is_none_or(|empty| is_left_out_at(empty, path, schema));
            return if is_dropped { EmptyCounterpart::Same } else { EmptyCounterpart::Absent };
        }
        Some(Value::Array(list)) => list.is_empty() || is_merged(shown, path),
        Some(Value::Object(map)) => map.is_empty() || is_merged(shown, path),
        Some(_) => false,
    };
    if is_same { EmptyCounterpart::Same } else { EmptyCounterpart::Other }
}

/// Returns whether an entry owns something below a path, not only the path as a whole.
fn is_merged(shown: &Value, path: &FieldPath) -> bool {
    let entries = shown.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(|entry| entry.get("fieldsV1")).any(|fields| {
        let text = canonical_json(fields);
        let Some(tree) = ManagedEntry::parse(&text) else { return false };
        let node = path.elements().iter().try_fold(tree.root(), EntryNode::step);
        node.is_some_and(|node| !node.is_leaf())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn single_keys_of_others_are_no_drift_of_an_empty_map() {
        let check = |spec: Value, fields: Value, expected: bool| {
            let shown = json!({ "spec": spec, "metadata": { "managedFields": [{ "fieldsV1": { "f:spec": fields } }] } });
            let (content, path) = (json!({ "spec": { "a": {} } }), FieldPath::of_keys(&["spec", "a"]));
            let found = find_counterpart(&content, &shown, &path, ValueSchema::BuiltIn);
            let expected = if expected { EmptyCounterpart::Same } else { EmptyCounterpart::Other };
            assert_eq!(found, expected, "{shown}");
        };
        check(json!({ "a": {} }), json!({ "f:a": {} }), true);
        check(json!({ "a": [] }), json!({ "f:a": {} }), true);
        check(json!({ "a": [1] }), json!({ "f:a": {} }), false);
        check(json!({ "a": { "x": "y" } }), json!({ "f:a": { "f:x": {} } }), true);
        check(json!({ "a": { "x": "y" } }), json!({ "f:a": { ".": {}, "f:x": {} } }), true);
        check(json!({ "a": [{ "name": "x" }] }), json!({ "f:a": { "k:{\"name\":\"x\"}": {} } }), true);
        check(json!({ "a": ["x"] }), json!({ "f:a": { "v:\"x\"": {} } }), true);
        // An atomic map, as nodeSelector: somebody put another one in its place.
        check(json!({ "a": { "x": "y" } }), json!({ "f:a": {} }), false);
        check(json!({ "a": { "x": "y" } }), json!({}), false);
        check(json!({ "a": 1 }), json!({ "f:a": {} }), false);
    }

    #[test]
    fn an_empty_value_that_is_absent_is_the_same_only_where_the_server_drops_it() {
        use EmptyCounterpart::{Absent, Same};
        use ValueSchema::{BuiltIn, Custom};

        let check = |path: &[&str], empty: Value, schema: ValueSchema, expected: EmptyCounterpart| {
            let content = path.iter().rev().fold(empty.clone(), |value, key| json!({ *key: value }));
            let found = find_counterpart(&content, &json!({}), &FieldPath::of_keys(path), schema);
            assert_eq!(found, expected, "{path:?} {empty} {schema:?}");
        };
        check(&["metadata", "annotations"], json!({}), BuiltIn, Same);
        check(&["metadata", "annotations"], json!({}), Custom, Same);
        check(&["spec", "template", "spec", "nodeSelector"], json!({}), BuiltIn, Same);
        check(&["spec", "env"], json!([]), BuiltIn, Same);
        check(&["spec", "selector"], json!({}), BuiltIn, Absent);
        check(&["spec", "emptyDir"], json!({}), BuiltIn, Absent);
        check(&["spec", "selfSigned"], json!({}), Custom, Absent);
        check(&["spec", "env"], json!([]), Custom, Absent);
        check(&["spec", "labels"], json!({}), Custom, Absent);
    }
}
