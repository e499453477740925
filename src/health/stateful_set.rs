//! StatefulSet: `kubectl rollout status`. Its controller writes no conditions, so it never fails.

use super::Health;
use super::view::{HealthView, in_progress_health, pending_termination_text};
use crate::object::count_text;

pub(super) fn of(view: &HealthView<'_>) -> Health {
    missing_pods_text(view).map_or_else(Health::current, |missing| in_progress_health(&missing))
}

fn missing_pods_text(view: &HealthView<'_>) -> Option<String> {
    let wanted = view.replicas();
    let (all, ready, updated) =
        (view.count("replicas"), view.count("readyReplicas"), view.count("updatedReplicas"));
    if ready < wanted {
        return Some(format!("waiting for {} to be ready", count_text(wanted.saturating_sub(ready), "pod")));
    }
    // Servers before 1.25 do not report it.
    let available = view.status("availableReplicas").map_or(wanted, |_| view.count("availableReplicas"));
    if available < wanted {
        return Some(format!("{available} of {wanted} pods are available"));
    }
    if all > wanted {
        return Some(pending_termination_text(all.saturating_sub(wanted), "pod"));
    }
    // With OnDelete, which pod takes the newest template is a person's business.
    if view.spec_text(&["updateStrategy", "type"]) == "OnDelete" {
        return None;
    }
    let partition = view.spec_number(&["updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0);
    let due = wanted.saturating_sub(partition.max(0));
    let name = if partition > 0 { "partitioned roll out: " } else { "" };
    (updated < due).then(|| format!("{name}{updated} out of {due} new pods have been updated"))
}
