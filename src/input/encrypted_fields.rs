//! Encrypted fields that would be shown: only the values of a Secret are masked wherever an object
//! is shown.
//!
//! **Invariant:** shows paths, never values.

use serde_json::Value;

use crate::manifest::{PlacedValue, TextPlace};

/// Fields that name an object. Nobody can keep them from people who see the cluster, and SOPS
/// encrypts them unless it is told which fields are secret.
const IDENTITY_FIELDS: [&str; 6] =
    ["apiVersion", "kind", "type", "immutable", "metadata.name", "metadata.namespace"];

/// The fields of a Secret whose values are masked.
const MASKED_FIELDS: [&str; 2] = ["data", "stringData"];

/// The key under which SOPS keeps its metadata.
const METADATA: &str = "sops";

/// An encrypted field outside of a Secret's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExposedField {
    /// The path, as `metadata.annotations.token`.
    pub path: String,
    /// The place in the file.
    pub place: TextPlace,
}

/// Returns the first field of a document that opening has changed, and that would be shown.
pub(super) fn find_exposed_field(sealed: &Value, opened: &PlacedValue) -> Option<ExposedField> {
    let items = opened.entries().iter().find(|entry| entry.key == "items");
    if let (Some(items), Some(Value::Array(before))) = (items, sealed.get("items"))
        && text_of(opened, "kind").is_some_and(|kind| kind.ends_with("List"))
        && before.len() == items.value.items().len()
    {
        let mut pairs = before.iter().zip(items.value.items());
        return pairs.find_map(|(before, after)| find_exposed_field(before, after));
    }
    let is_secret = text_of(opened, "kind") == Some("Secret") && text_of(opened, "apiVersion") == Some("v1");
    let fields = opened.entries().iter().filter(|entry| entry.key != METADATA);
    let shown = fields.filter(|entry| !(is_secret && MASKED_FIELDS.contains(&entry.key.as_str())));
    let mut changed = shown.filter_map(|entry| {
        changed_field(sealed.get(&entry.key).unwrap_or(&Value::Null), &entry.value, entry.key.clone())
    });
    changed.next()
}

fn text_of<'v>(object: &'v PlacedValue, key: &str) -> Option<&'v str> {
    object.entries().iter().find(|entry| entry.key == key)?.value.text()
}

fn changed_field(before: &Value, after: &PlacedValue, path: String) -> Option<ExposedField> {
    if IDENTITY_FIELDS.contains(&path.as_str()) {
        return None;
    }
    match before {
        Value::Object(map) if !after.entries().is_empty() => after.entries().iter().find_map(|entry| {
            let before = map.get(&entry.key).unwrap_or(&Value::Null);
            changed_field(before, &entry.value, format!("{path}.{}", entry.key))
        }),
        Value::Array(list) if list.len() == after.items().len() => {
            list.iter().zip(after.items()).zip(0_usize..).find_map(|((before, after), number)| {
                changed_field(before, after, format!("{path}[{number}]"))
            })
        }
        before => (*before != after.to_value()).then_some(ExposedField { path, place: after.place }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::read_documents;

    fn document(text: &str) -> PlacedValue {
        read_documents(&"a.yaml".into(), text.as_bytes()).documents.remove(0)
    }

    #[track_caller]
    fn check(sealed: &str, opened: &str, expected: Option<(&str, u32)>) {
        let found = find_exposed_field(&document(sealed).to_value(), &document(opened));
        let found = found.as_ref().map(|found| (found.path.as_str(), found.place.line));
        assert_eq!(found, expected, "{sealed}\n{opened}");
    }

    #[test]
    fn only_the_values_of_a_secret_and_what_names_it_may_have_been_encrypted() {
        let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n";
        let both = |sealed: &str, opened: &str, expected| {
            check(&format!("{secret}{sealed}"), &format!("{secret}{opened}"), expected);
        };
        both("data: {a: ENC1}\n", "data: {a: Yg==}\n", None);
        both("stringData: {a: {b: ENC1}}\nsops: {mac: ENC2}\n", "stringData: {a: {b: c}}\n", None);
        let annotations = ("metadata.annotations.token", 6);
        both("  annotations:\n    token: ENC1\n", "  annotations:\n    token: x\n", Some(annotations));
        both("  labels: {a: ENC1}\n", "  labels: {a: b}\n", Some(("metadata.labels.a", 5)));
        let finalizers = Some(("metadata.finalizers[1]", 5));
        both("  finalizers: [a, b]\n", "  finalizers: [a, b]\n", None);
        both("  finalizers: [a, 'ENC1']\n", "  finalizers: [a, b]\n", finalizers);
        both("more: 'ENC1'\n", "more: 5\n", Some(("more", 5)));
        let all = "apiVersion: ENC1\nkind: ENC2\ntype: ENC3\nmetadata: {name: ENC4, namespace: ENC5}\n";
        let open = "apiVersion: v1\nkind: Secret\ntype: Opaque\nmetadata: {name: a, namespace: b}\n";
        check(all, open, None);
        // Of another kind nothing is masked.
        let map = |value: &str| format!("apiVersion: v1\nkind: ConfigMap\ndata: {{a: {value}}}\n");
        check(&map("'ENC1'"), &map("b"), Some(("data.a", 3)));
        let other = |value: &str| format!("apiVersion: a.example/v1\nkind: Secret\ndata: {{a: {value}}}\n");
        check(&other("'ENC1'"), &other("b"), Some(("data.a", 3)));
    }

    #[test]
    fn the_items_of_a_list_are_objects() {
        let list = |value: &str, label: &str| {
            format!(
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: a, labels: \
                 {{l: {label}}}}}\n  data: {{a: {value}}}\n"
            )
        };
        check(&list("'ENC1'", "a"), &list("Yg==", "a"), None);
        check(&list("'ENC1'", "'ENC2'"), &list("Yg==", "a"), Some(("metadata.labels.l", 6)));
    }
}
