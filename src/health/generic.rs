//! The rules that hold for every kind, and those for kinds without rules of their own.

use super::Health;
use super::small;
use super::view::{HealthView, StatusCondition, failed_health, in_progress_health};
use crate::object::GroupKind;

/// Kinds whose controllers always write `observedGeneration`: without one, they have not seen the
/// object yet.
const ALWAYS_OBSERVED: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

/// The conditions that sum a custom kind up, in the order of their weight; the first that it has
/// decides.
const SUMMARY_CONDITIONS: [&str; 6] =
    ["Ready", "Available", "Healthy", "Programmed", "Succeeded", "Accepted"];

/// Returns the health that precedes a kind's own rules. A status of a generation that the object
/// has not reached is of no generation: somebody may write it in advance, for a later spec.
pub(super) fn first(kind: &GroupKind, view: &HealthView<'_>) -> Option<Health> {
    if view.is_deleting() {
        return Some(small::terminating_health(view));
    }
    let observed = view
        .observed_generation()
        .or_else(|| (&*kind.group == "apps" && ALWAYS_OBSERVED.contains(&&*kind.kind)).then_some(0));
    if let (Some(generation), Some(observed)) = (view.generation(), observed)
        && observed != generation
    {
        let message = format!(
            "waiting for spec update to be observed: generation is {generation}, observed {observed}"
        );
        return Some(in_progress_health(&message));
    }
    if let Some(condition) = view.holds("Stalled") {
        return Some(failed_health(&condition.message_or("stalled")));
    }
    view.holds("Reconciling").map(|condition| in_progress_health(&condition.message_or("reconciling")))
}

/// Returns the health by the conditions of a kind without own rules; without one of them it is
/// current.
pub(super) fn conditions(view: &HealthView<'_>) -> Health {
    let Some((kind, condition)) =
        SUMMARY_CONDITIONS.iter().find_map(|kind| view.condition(kind).map(|condition| (*kind, condition)))
    else {
        return Health::current();
    };
    if let (None, Some(generation), Some(of)) =
        (view.observed_generation(), view.generation(), condition.generation())
        && of != generation
    {
        return in_progress_health(&format!(
            "waiting for spec update to be observed: generation is {generation}, {kind} tells of {of}"
        ));
    }
    summary(kind, condition)
}

fn summary(kind: &str, condition: StatusCondition<'_>) -> Health {
    match kind {
        _ if condition.has_status("True") => Health::current(),
        // Kinds that run to an end use this one, and do not try again.
        "Succeeded" if condition.has_status("False") => {
            failed_health(&condition.message_or("did not succeed"))
        }
        _ => in_progress_health(&condition.message_or(&format!("is not {kind} yet"))),
    }
}
