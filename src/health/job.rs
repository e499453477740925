//! Job: current once it is complete. (kstatus calls it current once it has started; but what
//! depends on a Job, a migration say, depends on its end.)

use super::Health;
use super::view::{HealthView, failed_health, in_progress_health};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    if view.holds("Complete").is_some() {
        return Health::current();
    }
    if let Some(condition) = view.holds("Failed") {
        return failed_health(&condition.message_or("has failed"));
    }
    if let Some(condition) = view.holds("FailureTarget") {
        return in_progress_health(&format!(
            "{}; its pods are being stopped",
            condition.message_or("has failed")
        ));
    }
    if view.has_spec_flag("suspend") {
        return in_progress_health("is suspended");
    }
    if view.status_text("startTime").is_empty() {
        return in_progress_health("has not started yet");
    }
    let (succeeded, active, lost) = (view.count("succeeded"), view.count("active"), view.count("failed"));
    // With parallelism and no completions, any one pod that succeeds ends it.
    let done = match (view.spec_number(&["completions"]), view.spec_number(&["parallelism"])) {
        (None, Some(parallel)) if parallel > 1 => format!("{succeeded} succeeded"),
        (completions, _) => format!("{succeeded} of {} completions", completions.unwrap_or(1)),
    };
    in_progress_health(&format!("{done}, {active} active, {lost} failed"))
}

pub(super) fn is_finished(view: &HealthView<'_>) -> bool {
    view.holds("Complete").or_else(|| view.holds("Failed")).is_some()
}
