//! Kinds whose rule is a line or two.

use super::Health;
use super::view::{self, View, failed, in_progress};

/// What a Namespace's controller says while it empties it.
const LEFTOVERS: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
];

/// Terminating as soon as its phase says so, with what keeps it.
pub(super) fn namespace(view: &View<'_>) -> Health {
    if view.status_text("phase") == "Terminating" { terminating(view) } else { Health::current() }
}

/// What can be said of any object that is being deleted.
pub(super) fn terminating(view: &View<'_>) -> Health {
    let leftover = LEFTOVERS.iter().find_map(|kind| view.holds(kind));
    let fallback = "is being deleted";
    view::terminating(&leftover.map_or_else(|| fallback.to_owned(), |condition| condition.words(fallback)))
}

/// Ready, as the node lifecycle controller sees it.
pub(super) fn node(view: &View<'_>) -> Health {
    wants(view, "Ready", "has not reported yet")
}

/// A backend that answers.
pub(super) fn api_service(view: &View<'_>) -> Health {
    wants(view, "Available", "its backend was not looked at yet")
}

/// Whether a load balancer was given an address is no part of it (kstatus): many clusters have none to give.
pub(super) fn service(view: &View<'_>) -> Health {
    let is_waiting = view.spec_text(&["type"]) == "LoadBalancer" && view.spec_text(&["clusterIP"]).is_empty();
    if is_waiting { in_progress("has no cluster address yet") } else { Health::current() }
}

/// A target that it can scale; whether there are metrics to scale by is no part of it.
pub(super) fn autoscaler(view: &View<'_>) -> Health {
    match view.condition("AbleToScale").filter(|condition| condition.is("False")) {
        Some(condition) => in_progress(&condition.words("cannot scale its target")),
        None => Health::current(),
    }
}

/// A budget that could be computed, whether it is met or not.
pub(super) fn disruption_budget(view: &View<'_>) -> Health {
    match view.condition("DisruptionAllowed").filter(|condition| condition.reason() == "SyncFailed") {
        Some(condition) => in_progress(&condition.words("")),
        None => Health::current(),
    }
}

/// A priority level that exists.
pub(super) fn flow_schema(view: &View<'_>) -> Health {
    view.holds("Dangling")
        .map_or_else(Health::current, |condition| in_progress(&condition.words("is dangling")))
}

/// Runs to an end.
pub(super) fn migration(view: &View<'_>) -> Health {
    match (view.holds("Succeeded"), view.holds("Failed")) {
        (Some(_), _) => Health::current(),
        (None, Some(condition)) => failed(&condition.words("has failed")),
        (None, None) => in_progress("is not done yet"),
    }
}

fn wants(view: &View<'_>, condition: &str, missing: &str) -> Health {
    match view.condition(condition) {
        Some(condition) if condition.is("True") => Health::current(),
        Some(condition) => in_progress(&condition.words(missing)),
        None => in_progress(missing),
    }
}
