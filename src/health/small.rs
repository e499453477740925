//! Kinds whose rule is a line or two.

use super::Health;
use super::view::{self, HealthView, failed_health, in_progress_health};

/// The conditions of a Namespace's controller while it empties the namespace.
const NAMESPACE_CONDITIONS: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
];

/// Returns Terminating as soon as the phase says so, with what keeps the namespace.
pub(super) fn namespace(view: &HealthView<'_>) -> Health {
    if view.status_text("phase") == "Terminating" { terminating_health(view) } else { Health::current() }
}

/// Returns the health of any object that is being deleted.
pub(super) fn terminating_health(view: &HealthView<'_>) -> Health {
    let leftover = NAMESPACE_CONDITIONS.iter().find_map(|kind| view.holds(kind));
    let fallback = "is being deleted";
    view::terminating_health(
        &leftover.map_or_else(|| fallback.to_owned(), |condition| condition.message_or(fallback)),
    )
}

/// Returns the health of a node by its condition Ready, as the node lifecycle controller sees it.
pub(super) fn node(view: &HealthView<'_>) -> Health {
    health_by_condition(view, "Ready", "has not reported yet")
}

/// Returns the health of an `APIService`: current once its backend answers.
pub(super) fn api_service(view: &HealthView<'_>) -> Health {
    health_by_condition(view, "Available", "its backend was not looked at yet")
}

/// Judges a Service. The address of a load balancer is no part of it (kstatus): many clusters have
/// none to give.
pub(super) fn service(view: &HealthView<'_>) -> Health {
    let is_waiting = view.spec_text(&["type"]) == "LoadBalancer" && view.spec_text(&["clusterIP"]).is_empty();
    if is_waiting { in_progress_health("has no cluster address yet") } else { Health::current() }
}

/// Returns the health of an autoscaler: current while it can scale its target, with metrics or not.
pub(super) fn autoscaler(view: &HealthView<'_>) -> Health {
    match view.condition("AbleToScale").filter(|condition| condition.has_status("False")) {
        Some(condition) => in_progress_health(&condition.message_or("cannot scale its target")),
        None => Health::current(),
    }
}

/// Returns the health of a disruption budget: current once it is computed, met or not.
pub(super) fn disruption_budget(view: &HealthView<'_>) -> Health {
    match view.condition("DisruptionAllowed").filter(|condition| condition.reason() == "SyncFailed") {
        Some(condition) => in_progress_health(&condition.message_or("")),
        None => Health::current(),
    }
}

/// Returns the health of a flow schema: current while its priority level exists.
pub(super) fn flow_schema(view: &HealthView<'_>) -> Health {
    view.holds("Dangling")
        .map_or_else(Health::current, |condition| in_progress_health(&condition.message_or("is dangling")))
}

/// Runs to an end.
pub(super) fn migration(view: &HealthView<'_>) -> Health {
    match (view.holds("Succeeded"), view.holds("Failed")) {
        (Some(_), _) => Health::current(),
        (None, Some(condition)) => failed_health(&condition.message_or("has failed")),
        (None, None) => in_progress_health("is not done yet"),
    }
}

fn health_by_condition(view: &HealthView<'_>, condition: &str, missing: &str) -> Health {
    match view.condition(condition) {
        Some(condition) if condition.has_status("True") => Health::current(),
        Some(condition) => in_progress_health(&condition.message_or(missing)),
        None => in_progress_health(missing),
    }
}
