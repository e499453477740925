//! Members of a union that somebody set in the place of ours. Of several fields the API takes one,
//! as of the sources of a volume (KEP-1027).
//!
//! An apply that brings our member back leaves the other one, as its owner is another. The server
//! refuses both together. No schema is read here, so what is found is a suspicion.

use serde_json::Value;

use super::cover::{holds, uncovered_paths};
use super::entry::ManagedEntry;
use super::{FieldPath, PathElement};

/// The maximum number of fields that are suspected. More are no union, and each is tried.
const MAX_SUSPECTS: usize = 8;

/// A member of ours that is missing, and the fields beside it that others own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplacedMember {
    /// The path of ours: its parent is there, and it is not.
    pub missing: FieldPath,
    /// The fields beside it that the content does not have.
    pub others: Vec<FieldPath>,
}

/// Returns the fields of a content that are missing in a live object and no longer ours, each with
/// what others set beside it.
///
/// `ours` and `others` are FieldsV1 texts of the object itself, not of a subresource. Metadata has
/// no unions, so nothing of it is returned.
pub(crate) fn replaced_members(
    content: &Value,
    live: &Value,
    ours: Option<&str>,
    others: &[String],
) -> Vec<ReplacedMember> {
    let own = ours.and_then(ManagedEntry::parse);
    let others: Vec<ManagedEntry<'_>> = others.iter().filter_map(|text| ManagedEntry::parse(text)).collect();
    let mut found: Vec<ReplacedMember> = Vec::new();
    for lost in uncovered_paths(content, ours) {
        let Some((parent, missing)) = first_absent(&lost, live) else { continue };
        let (Some(Value::Object(there)), Some(wanted)) = (parent.find(live), parent.find(content)) else {
            continue;
        };
        let beside = there.keys().filter(|key| wanted.get(key.as_str()).is_none());
        let suspects = beside.map(|key| extend_path(&parent, PathElement::key(key))).filter(|path| {
            let is_ours = own.as_ref().is_some_and(|entry| holds(entry.root(), path.elements()));
            !is_ours && others.iter().any(|entry| holds(entry.root(), path.elements()))
        });
        let suspects: Vec<FieldPath> = suspects.collect();
        if !suspects.is_empty() && found.iter().all(|one| one.missing != missing) {
            found.push(ReplacedMember { missing, others: suspects });
        }
    }
    let count = found.iter().map(|one| one.others.len()).sum::<usize>();
    if count > MAX_SUSPECTS { Vec::new() } else { found }
}

/// Returns the path at which a live object ends on the way to one, and the step after it: a key of
/// a map. None where all is there.
fn first_absent(path: &FieldPath, live: &Value) -> Option<(FieldPath, FieldPath)> {
    if path.is_prefix_related(&["metadata"]) {
        return None;
    }
    let mut parent = FieldPath::default();
    for element in path.elements() {
        let next = extend_path(&parent, element.clone());
        if next.find(live).is_none_or(Value::is_null) {
            return matches!(element, PathElement::Key(_)).then_some((parent, next));
        }
        parent = next;
    }
    None
}

fn extend_path(parent: &FieldPath, element: PathElement) -> FieldPath {
    let mut path = parent.clone();
    path.push(element);
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_set_beside_a_missing_field_of_ours_is_suspected() {
        let check = |content: Value,
                     live: Value,
                     ours: Value,
                     others: Value,
                     expected: &[(&str, &[&str])]| {
            let [ours, others] = [ours, others].map(|fields| json!({ "f:spec": fields }).to_string());
            let [content, live] = [content, live].map(|spec| json!({ "kind": "Deployment", "spec": spec }));
            let found = replaced_members(&content, &live, Some(&ours), &[others]);
            let found: Vec<(String, Vec<String>)> = found
                .into_iter()
                .map(|one| (one.missing.to_string(), one.others.iter().map(FieldPath::to_string).collect()))
                .collect();
            let expected: Vec<(String, Vec<String>)> = expected
                .iter()
                .map(|(missing, others)| {
                    ((*missing).to_owned(), others.iter().map(|path| (*path).to_owned()).collect())
                })
                .collect();
            assert_eq!(found, expected, "{content} {live}");
        };
        let volume = |source: Value| json!({ "volumes": [source] });
        let item = |fields: Value| json!({ "f:volumes": { "k:{\"name\":\"tmp\"}": fields } });
        let source = r#".spec.volumes[name="tmp"]"#;
        check(
            volume(json!({ "name": "tmp", "emptyDir": {} })),
            volume(json!({ "name": "tmp", "hostPath": { "path": "/", "type": "" } })),
            item(json!({ ".": {}, "f:name": {} })),
            item(json!({ "f:hostPath": { ".": {}, "f:path": {}, "f:type": {} } })),
            &[(&format!("{source}.emptyDir"), &[&format!("{source}.hostPath")])],
        );
        // The loss of a deep field is that of its topmost parent that is gone.
        check(
            json!({ "probe": { "exec": { "command": ["x"] }, "periodSeconds": 1 } }),
            json!({ "probe": { "grpc": { "port": 1 }, "periodSeconds": 1, "failureThreshold": 3 } }),
            json!({ "f:probe": { "f:periodSeconds": {} } }),
            json!({ "f:probe": { "f:grpc": { "f:port": {} } } }),
            &[(".spec.probe.exec", &[".spec.probe.grpc"])],
        );
        // Changed values, fields that nobody owns or that are ours too, and more than a union has.
        check(json!({ "a": 1 }), json!({ "a": 2, "b": 1 }), json!({}), json!({ "f:b": {} }), &[]);
        check(json!({ "a": 1 }), json!({ "b": 1 }), json!({}), json!({ "f:c": {} }), &[]);
        check(json!({ "a": 1 }), json!({ "b": 1 }), json!({ "f:b": {} }), json!({ "f:b": {} }), &[]);
        check(json!({ "a": 1, "b": 2 }), json!({ "b": 1 }), json!({}), json!({ "f:b": {} }), &[]);
        let many: serde_json::Map<String, Value> = (0..9).map(|n| (format!("b{n}"), json!(n))).collect();
        let theirs = many.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        check(json!({ "a": 1 }), Value::Object(many), json!({}), Value::Object(theirs), &[]);
    }
}
