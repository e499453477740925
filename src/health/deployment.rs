//! The health of a Deployment: the rules of `kubectl rollout status`, in the order of kstatus.

use super::Health;
use super::view::{HealthView, failed_health, in_progress_health, pending_termination_text};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    if let Some(condition) = view.condition("Progressing")
        && condition.reason() == "ProgressDeadlineExceeded"
    {
        let message = condition.message_or("").replacen(
            "ProgressDeadlineExceeded",
            "exceeded its progress deadline",
            1,
        );
        return failed_health(&message);
    }
    let Some(missing) = missing_pods_text(view) else { return Health::current() };
    if view.has_spec_flag("paused") {
        return in_progress_health(&format!("{missing}; its rollout is paused"));
    }
    match view.holds("ReplicaFailure") {
        Some(failure) => {
            in_progress_health(&format!("{missing}; {}", failure.message_or("pods cannot be created")))
        }
        None => in_progress_health(&missing),
    }
}

fn missing_pods_text(view: &HealthView<'_>) -> Option<String> {
    let wanted = view.replicas();
    let (all, updated) = (view.count("replicas"), view.count("updatedReplicas"));
    let (available, ready) = (view.count("availableReplicas"), view.count("readyReplicas"));
    if updated < wanted {
        return Some(format!("{updated} out of {wanted} new replicas have been updated"));
    }
    if all > updated {
        return Some(pending_termination_text(all.saturating_sub(updated), "old replica"));
    }
    if all > wanted {
        return Some(pending_termination_text(all.saturating_sub(wanted), "replica"));
    }
    if available < updated {
        return Some(format!("{available} of {updated} updated replicas are available"));
    }
    if ready < wanted {
        return Some(format!("{ready} of {wanted} replicas are ready"));
    }
    view.holds("Available").is_none().then(|| "minimum availability is not reached".to_owned())
}
