//! Opened values in what a renderer made: they may be in the data of Secrets alone.
//!
//! Masks follow the kind of an object, so an opened value elsewhere would be shown by every
//! difference. This finds accidents. A person who may write to the repository can give any Secret
//! to a pod.

use serde_json::Value;

use super::plaintext_index::PlaintextIndex;
use super::render_cipher::{SEALED_FIELDS, is_secret};
use super::sops::text_excerpt;
use crate::fields::{FieldPath, PathElement};
use crate::object::{Diagnostic, ManifestOrigin, text_at};

/// The code of a root that would show an opened value.
const EXPOSED_VALUE: &str = "exposed-value";

/// Returns the refusal of a root one of whose objects has an opened value beside a Secret's data.
pub(super) fn find_exposed(
    object: &Value,
    index: &PlaintextIndex,
    at: &ManifestOrigin,
) -> Option<Diagnostic> {
    let mut review = ExposureSearch { index, is_secret: is_secret(object), path: FieldPath::default() };
    let file = review.value(object)?;
    let (name, path) = (shown_name(object, index), review.path.to_string());
    let path = text_excerpt(path.trim_start_matches('.'));
    let message = format!("{name} would show a value that is encrypted in {file}, at {path}");
    let hint = "only data and stringData of Secrets are never shown: take the value from a Secret, or leave it \
                unencrypted where it is no secret";
    Some(Diagnostic::error(at.clone(), EXPOSED_VALUE, message).hint(hint))
}

/// Returns the kind and name of an object, as far as they show nothing.
fn shown_name(object: &Value, index: &PlaintextIndex) -> String {
    let part = |path: &[&str]| {
        let text = text_at(object, path);
        if index.can_contain(text.as_bytes()) { "…".to_owned() } else { text_excerpt(text) }
    };
    let (kind, name) = (part(&["kind"]), part(&["metadata", "name"]));
    match part(&["metadata", "namespace"]) {
        namespace if namespace.is_empty() => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

struct ExposureSearch<'i> {
    index: &'i PlaintextIndex,
    is_secret: bool,
    /// The path to what is looked at; to what was found, once it was.
    path: FieldPath,
}

impl ExposureSearch<'_> {
    /// Returns the file of an opened value in a tree. The reader of the output bounds its depth.
    fn value(&mut self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => self.text(text),
            Value::Number(number) => self.text(&number.to_string()),
            Value::Null | Value::Bool(_) => None,
            Value::Array(items) => items.iter().enumerate().find_map(|(number, item)| {
                self.path.push(PathElement::Index(number));
                let found = self.value(item);
                self.leave(found)
            }),
            Value::Object(members) => members.iter().find_map(|(key, member)| {
                // A key that has one is not shown either: the path ends before it.
                if let Some(found) = self.text(key) {
                    return Some(found);
                }
                let masked = self.is_masked(key, member);
                self.path.push(PathElement::key(key));
                let found = match member {
                    Value::Object(data) if masked => data.keys().find_map(|key| self.text(key)),
                    _ => self.value(member),
                };
                self.leave(found)
            }),
        }
    }

    fn is_masked(&self, key: &str, member: &Value) -> bool {
        let is_top = self.path.elements().is_empty();
        self.is_secret && is_top && SEALED_FIELDS.contains(&key) && member.is_object()
    }

    fn text(&self, text: &str) -> Option<String> {
        self.index.find(text.as_bytes()).map(|file| text_excerpt(file))
    }

    fn leave(&mut self, found: Option<String>) -> Option<String> {
        if found.is_none() {
            self.path.pop();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use zeroize::Zeroizing;

    use super::*;

    #[test]
    fn an_opened_value_may_be_in_the_data_of_a_secret_alone() {
        let values = [(Arc::from("db.env"), Zeroizing::new(b"canary-5d20".to_vec()))];
        let index = PlaintextIndex::new(&values).unwrap();
        let at = ManifestOrigin::of_file(Arc::from("kustomization.yaml"));
        let object = |kind: &str, rest: Value| {
            let mut object =
                json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "db", "namespace": "shop"}});
            object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            object
        };
        let check = |object: &Value, expected: Option<&str>| {
            let found = find_exposed(object, &index, &at).map(|found| found.message);
            let expected = expected.map(|expected| {
                let (name, path) = expected.split_once(" at ").unwrap();
                format!("{name} would show a value that is encrypted in db.env, at {path}")
            });
            assert_eq!(found, expected, "{object}");
        };
        let secret = "canary-5d20";
        check(
            &object("Secret", json!({"data": {"a": "Y2FuYXJ5LTVkMjA="}, "stringData": {"b": secret}})),
            None,
        );
        check(&object("Secret", json!({"type": secret})), Some("Secret shop/db at type"));
        check(&object("Secret", json!({"data": {secret: ""}})), Some("Secret shop/db at data"));
        check(&object("Secret", json!({"data": secret})), Some("Secret shop/db at data"));
        check(
            &object("Secret", json!({"spec": {"data": {"a": secret}}})),
            Some("Secret shop/db at spec.data.a"),
        );
        check(&object("ConfigMap", json!({"data": {"a": "b"}})), None);
        check(
            &object("ConfigMap", json!({"data": {"url": "x:canary-5d20@y"}})),
            Some("ConfigMap shop/db at data.url"),
        );
        check(
            &object("ConfigMap", json!({"data": {"auth": "Y2FuYXJ5LTVkMjA="}})),
            Some("ConfigMap shop/db at data.auth"),
        );
        check(
            &object("ConfigMap", json!({"metadata": {"name": "x-canary-5d20"}})),
            Some("ConfigMap … at metadata.name"),
        );
        check(
            &object("Deployment", json!({"spec": {"args": ["a", secret]}})),
            Some("Deployment shop/db at spec.args[1]"),
        );
    }
}
