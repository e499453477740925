//! The fields that differ.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{FieldChange, lists, present};
use crate::fields::{FieldPath, PathElement, mask_pair};
use crate::object::ObjectId;

/// Lists the fields in which two trees of an object differ, masked for Secrets, without what only
/// the server sets.
///
/// List items are matched by their merge keys, so that a path reads
/// `.containers[name="web"].image`. A list of scalars, or of items without names, is shown
/// completely. A list that is only reordered is shown as the list of its names. A null is taken as
/// absent. For an object that comes or goes, the fields are those of its top level.
pub fn diff_fields(id: &ObjectId, before: Option<&Value>, after: Option<&Value>) -> Vec<FieldChange> {
    let empty = Value::Object(Map::new());
    let (old, new) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
    let (mut old, mut new) = mask_pair(&id.group_kind(), old, new);
    present::drop_noise(&mut old);
    present::drop_noise(&mut new);
    let mut walk = DiffWalk { path: FieldPath::default(), found: Vec::new() };
    walk.object(&old, &new);
    walk.found
}

struct DiffWalk {
    path: FieldPath,
    found: Vec<FieldChange>,
}

impl DiffWalk {
    /// Compares two whole objects. `apiVersion` and `kind` count only where both objects exist.
    /// Metadata is always compared field by field.
    fn object(&mut self, old: &Value, new: &Value) {
        let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
            return self.diff_values("", Some(old), Some(new));
        };
        let is_change = !old.is_empty() && !new.is_empty();
        for key in keys(old, new) {
            match key {
                "apiVersion" | "kind" if !is_change => {}
                "metadata" => self.diff_metadata(old.get(key), new.get(key)),
                _ => self.diff_child(key, old.get(key), new.get(key)),
            }
        }
    }

    fn diff_metadata(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let empty = Map::new();
        let old = old.and_then(Value::as_object).unwrap_or(&empty);
        let new = new.and_then(Value::as_object).unwrap_or(&empty);
        self.path.push(PathElement::key("metadata"));
        for key in keys(old, new).into_iter().filter(|key| !matches!(*key, "name" | "namespace")) {
            self.diff_child(key, old.get(key), new.get(key));
        }
        self.path.pop();
    }

    fn diff_child(&mut self, key: &str, old: Option<&Value>, new: Option<&Value>) {
        self.path.push(PathElement::key(key));
        self.diff_values(key, old, new);
        self.path.pop();
    }

    /// Compares two values of one field. The name of the field decides how a list is keyed.
    fn diff_values(&mut self, field: &str, old: Option<&Value>, new: Option<&Value>) {
        let old = old.filter(|value| !value.is_null());
        let new = new.filter(|value| !value.is_null());
        match (old, new) {
            (old, new) if old == new => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                for key in keys(old, new) {
                    self.diff_child(key, old.get(key), new.get(key));
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.diff_lists(field, old, new),
            (old, new) => self.record(old.cloned(), new.cloned()),
        }
    }

    fn diff_lists(&mut self, field: &str, old: &[Value], new: &[Value]) {
        if let Some(pairs) = lists::pair_items(field, old, new) {
            if !pairs.same_order {
                self.record(Some(names(field, old, new)), Some(names(field, new, old)));
            }
            for (element, old, new) in pairs.items {
                self.path.push(element);
                self.diff_values("", old, new);
                self.path.pop();
            }
        } else if old.len() == new.len() && old.iter().chain(new).all(Value::is_object) {
            for (nth, (old, new)) in old.iter().zip(new).enumerate() {
                self.path.push(PathElement::Index(nth));
                self.diff_values("", Some(old), Some(new));
                self.path.pop();
            }
        } else {
            self.record(Some(old.into()), Some(new.into()));
        }
    }

    fn record(&mut self, before: Option<Value>, after: Option<Value>) {
        self.found.push(FieldChange { path: self.path.to_string(), before, after });
    }
}

/// Returns the names of a list's items, in its order.
fn names(field: &str, list: &[Value], other: &[Value]) -> Value {
    let pairs = lists::pair_items(field, other, list).map(|pairs| pairs.items).unwrap_or_default();
    let names = pairs.iter().filter(|(.., own)| own.is_some()).map(|(element, ..)| match element {
        PathElement::Item(keys) => {
            let parts: Vec<String> = keys.iter().map(|(_, value)| plain_text(value)).collect();
            Value::from(parts.join(" "))
        }
        other => Value::from(other.to_string()),
    });
    names.collect()
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    old.keys().chain(new.keys()).map(String::as_str).collect()
}
