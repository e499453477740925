//! Objects that SOPS encrypted for an operator, which opens them in the cluster.

use serde_json::Value;

use crate::object::{text_at, value_at};

/// The kinds of such objects. Operators of several groups have them.
const KINDS: [&str; 2] = ["SopsSecret", "GlobalSopsSecret"];

/// Returns whether an object is encrypted for an operator: it is applied as it is, and nothing of
/// it is opened.
pub(crate) fn is_for_operator(body: &Value) -> bool {
    KINDS.contains(&text_at(body, &["kind"]))
        && text_at(body, &["apiVersion"]).contains('/')
        && value_at(body, &["sops"]).is_some_and(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_encrypted_object_of_such_a_kind_is_for_an_operator() {
        #[track_caller]
        fn check(api_version: &str, kind: &str, sops: Value, expected: bool) {
            let body = json!({ "apiVersion": api_version, "kind": kind, "sops": sops });
            assert_eq!(is_for_operator(&body), expected, "{body}");
        }
        check("isindir.github.com/v1alpha3", "SopsSecret", json!({}), true);
        check("addons.projectcapsule.dev/v1alpha1", "GlobalSopsSecret", json!({}), true);
        check("v1", "SopsSecret", json!({}), false);
        check("v1", "Secret", json!({}), false);
        check("isindir.github.com/v1alpha3", "SopsSecret", json!("text"), false);
        check("isindir.github.com/v1alpha3", "SopsSecret", Value::Null, false);
    }
}
