//! ReplicaSet and `ReplicationController`: they count pods and never replace them.

use super::Health;
use super::view::{HealthView, in_progress_health, pending_termination_text};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    if let Some(failure) = view.holds("ReplicaFailure") {
        return in_progress_health(&failure.message_or("pods cannot be created"));
    }
    let wanted = view.replicas();
    let (all, available) = (view.count("replicas"), view.count("availableReplicas"));
    let missing = if available < wanted {
        format!("{available} of {wanted} replicas are available")
    } else if all > wanted {
        pending_termination_text(all.saturating_sub(wanted), "replica")
    } else {
        return Health::current();
    };
    in_progress_health(&missing)
}
