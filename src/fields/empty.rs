//! Empty lists and maps of a content, which often leave no path in any entry.

use serde_json::Value;

use super::FieldPath;
use super::entry::{EntryNode, ManagedEntry};
use crate::object::canonical_json;

/// Returns whether a live object shows at a path as much as an empty list or map of the content:
/// nothing, or a map of which others own single keys. Such a map is merged key by key, so an apply
/// of `{}` takes nothing away.
pub(crate) fn is_as_empty(shown: &Value, path: &FieldPath) -> bool {
    match path.find(shown) {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty() || is_merged(shown, path),
        Some(_) => false,
    }
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
            assert_eq!(is_as_empty(&shown, &FieldPath::of_keys(&["spec", "a"])), expected, "{shown}");
        };
        check(json!({}), json!({}), true);
        check(json!({ "a": null }), json!({}), true);
        check(json!({ "a": {} }), json!({ "f:a": {} }), true);
        check(json!({ "a": [] }), json!({ "f:a": {} }), true);
        check(json!({ "a": [1] }), json!({ "f:a": {} }), false);
        check(json!({ "a": { "x": "y" } }), json!({ "f:a": { "f:x": {} } }), true);
        check(json!({ "a": { "x": "y" } }), json!({ "f:a": { ".": {}, "f:x": {} } }), true);
        // An atomic map, as nodeSelector: somebody put another one in its place.
        check(json!({ "a": { "x": "y" } }), json!({ "f:a": {} }), false);
        check(json!({ "a": { "x": "y" } }), json!({}), false);
        check(json!({ "a": 1 }), json!({ "f:a": {} }), false);
    }
}
