//! The form in which an object is sent: the tree without the fields that only the server writes.

use serde_json::{Map, Value};

use crate::object::SERVER_SET_METADATA;

/// Returns the body that is sent: without `status` and without the metadata that the server sets.
/// Owner references stay: they are a wish.
#[must_use]
pub(crate) fn clean(mut body: Value) -> Value {
    if let Some(object) = body.as_object_mut() {
        object.remove("status");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in SERVER_SET_METADATA {
                metadata.remove(field);
            }
        }
    }
    body
}

/// Returns whether dropping a value loses nothing that anybody wrote: generators leave such fields
/// behind.
pub(super) fn is_empty_field(value: &Value) -> bool {
    value.is_null() || value == "" || value.as_object().is_some_and(Map::is_empty)
}
