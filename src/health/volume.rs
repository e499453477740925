//! `PersistentVolume` and `VolumeAttachment`.

use serde_json::Value;

use super::Health;
use super::view::{HealthView, failed_health, in_progress_health};
use crate::object::text_at;

pub(super) fn of(view: &HealthView<'_>) -> Health {
    match (view.status_text("phase"), view.status_text("message")) {
        ("Failed", "") => failed_health("could not be reclaimed"),
        ("Failed", message) => failed_health(message),
        ("" | "Pending", _) => in_progress_health("Pending: is not available yet"),
        // A Released volume is healthy too: its spec is fulfilled.
        _ => Health::current(),
    }
}

pub(super) fn attachment(view: &HealthView<'_>) -> Health {
    if view.status("attached").and_then(Value::as_bool).unwrap_or_default() {
        return Health::current();
    }
    match view.status("attachError").map(|error| text_at(error, &["message"])) {
        None => in_progress_health("is not attached yet"),
        // The attacher tries again for ever.
        Some(message) => in_progress_health(&format!("could not be attached: {message}")),
    }
}
