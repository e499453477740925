//! `CustomResourceDefinition`.

use super::Health;
use super::view::{HealthView, failed, in_progress};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    if let Some(condition) = view.condition("NamesAccepted").filter(|condition| condition.has_status("False"))
    {
        return failed(&condition.message_or("its names are not accepted"));
    }
    match view.condition("Established") {
        Some(condition) if condition.has_status("True") => Health::current(),
        Some(condition) if condition.has_status("False") && condition.reason() != "Installing" => {
            failed(&condition.message_or("is not established"))
        }
        _ => in_progress("is being installed"),
    }
}
