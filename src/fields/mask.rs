//! Values that must never be shown.

use serde_json::{Map, Value};

use crate::object::GroupKind;

/// Stands for a value that is not shown.
pub(crate) const MASK: &str = "<masked>";
/// Stands for a value that is not shown and differs from the one before.
pub(crate) const CHANGED_MASK: &str = "<masked: changed>";
/// The annotation in which `kubectl apply` keeps a whole copy of the manifest, Secrets included.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The beginnings of annotation values in which tools keep a whole manifest. It is JSON (kapp), or
/// base64 of gzip (Rancher), ZIP (Banzai Cloud's object matcher) or Zstandard.
const MANIFEST_COPY_PREFIXES: [&str; 5] = ["{", "[", "H4sI", "UEsD", "KLUv"];

/// The beginnings of lines of such a value as YAML.
const COPIED_LINES: [&str; 3] = ["apiVersion:", "data:", "stringData:"];

/// Returns a copy that may be shown: the values of a Secret are `<masked>`, its key names stay.
/// kubectl's copy of the manifest is left out, and another tool's copy of a Secret in an annotation
/// is `<masked>` too.
///
/// Every kind called Secret counts, of whatever group: one mask too many harms nobody.
pub(crate) fn mask_value(kind: &GroupKind, value: &Value) -> Value {
    let mut shown = strip_last_applied(value);
    if is_secret(kind) {
        for (key, values) in shown.as_object_mut().into_iter().flatten() {
            if !is_shown(key, values) {
                mask(values);
            }
        }
        let annotations = shown.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        for value in annotations.into_iter().flat_map(Map::values_mut).filter(|value| is_copy(value)) {
            *value = MASK.into();
        }
    }
    shown
}

fn is_copy(annotation: &Value) -> bool {
    let begins = |text: &str, with: &[&str]| with.iter().any(|begin| text.trim_start().starts_with(begin));
    annotation.as_str().is_some_and(|text| {
        begins(text, &MANIFEST_COPY_PREFIXES) || text.lines().any(|line| begins(line, &COPIED_LINES))
    })
}

/// Returns copies of both sides of a difference that may be shown. They are as [`mask_value`], but
/// each value of the second that differs from the first's is `<masked: changed>`.
pub(crate) fn mask_pair(kind: &GroupKind, before: &Value, after: &Value) -> (Value, Value) {
    let mut shown = mask_value(kind, after);
    let fields = shown.as_object_mut().filter(|_| is_secret(kind));
    for (key, shown) in fields.into_iter().flatten() {
        let (Some(old), Some(new)) = (before.get(key), after.get(key)) else { continue };
        match (old, new, shown) {
            _ if is_shown(key, new) => {}
            (Value::Object(old), Value::Object(new), Value::Object(shown)) => mark_changes(old, new, shown),
            (old, new, shown) if old != new && !shown.is_object() => *shown = CHANGED_MASK.into(),
            _ => {}
        }
    }
    (mask_value(kind, before), shown)
}

fn is_secret(kind: &GroupKind) -> bool {
    &*kind.kind == "Secret"
}

/// Returns whether a field of a Secret may be shown as it is. Such a field is known to hold no
/// value, and has the form that it should have. `stringDate` is a value too.
fn is_shown(key: &str, value: &Value) -> bool {
    match key {
        "apiVersion" | "kind" | "type" => value.is_string(),
        "immutable" => value.is_boolean(),
        "metadata" => value.is_object(),
        _ => false,
    }
}

fn mask(values: &mut Value) {
    match values {
        Value::Null => {}
        Value::Object(values) => values.values_mut().for_each(|value| *value = MASK.into()),
        other => *other = MASK.into(),
    }
}

fn mark_changes(old: &Map<String, Value>, new: &Map<String, Value>, shown: &mut Map<String, Value>) {
    for (key, value) in shown {
        if old.get(key).is_some_and(|old| new.get(key) != Some(old)) {
            *value = CHANGED_MASK.into();
        }
    }
}

fn strip_last_applied(value: &Value) -> Value {
    let mut shown = value.clone();
    let annotations = shown.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations
        && annotations.remove(LAST_APPLIED).is_some()
        && annotations.is_empty()
        && let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("annotations");
    }
    shown
}
