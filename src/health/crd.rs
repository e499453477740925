//! `CustomResourceDefinition`.

use super::Health;
use super::view::{HealthView, failed, in_progress};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    if let Some(condition) = view.condition("NamesAccepted").filter(|condition| condition.is("False")) {
        return failed(&condition.message_or("its names are not accepted"));
    }
    match view.condition("Established") {
        Some(condition) if condition.is("True") => Health::current(),
        Some(condition) if condition.is("False") && condition.reason() != "Installing" => {
            failed(&condition.message_or("is not established"))
        }
        _ => in_progress("is being installed"),
    }
}
