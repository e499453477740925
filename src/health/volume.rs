//! `PersistentVolume` and `VolumeAttachment`.

use serde_json::Value;

use super::Health;
use super::view::{HealthView, failed, in_progress};
use crate::object::text_at;

pub(super) fn of(view: &HealthView<'_>) -> Health {
    match (view.status_text("phase"), view.status_text("message")) {
        ("Failed", "") => failed("could not be reclaimed"),
        ("Failed", message) => failed(message),
        ("" | "Pending", _) => in_progress("Pending: is not available yet"),
        // A Released volume is healthy too: its spec is fulfilled.
        _ => Health::current(),
    }
}

pub(super) fn attachment(view: &HealthView<'_>) -> Health {
    if view.status("attached").and_then(Value::as_bool).unwrap_or_default() {
        return Health::current();
    }
    match view.status("attachError").map(|error| text_at(error, &["message"])) {
        None => in_progress("is not attached yet"),
        // The attacher tries again for ever.
        Some(message) => in_progress(&format!("could not be attached: {message}")),
    }
}
