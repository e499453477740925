//! `CustomResourceDefinition`.

use super::Health;
use super::view::{HealthView, failed_health, in_progress_health};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    if let Some(condition) = view.condition("NamesAccepted").filter(|condition| condition.has_status("False"))
    {
        return failed_health(&condition.message_or("its names are not accepted"));
    }
    match view.condition("Established") {
        Some(condition) if condition.has_status("True") => Health::current(),
        Some(condition) if condition.has_status("False") && condition.reason() != "Installing" => {
            failed_health(&condition.message_or("is not established"))
        }
        _ => in_progress_health("is being installed"),
    }
}
