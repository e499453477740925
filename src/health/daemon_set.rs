//! DaemonSet: `kubectl rollout status`.

use super::Health;
use super::view::{HealthView, in_progress_health};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    missing_pods_text(view).map_or_else(Health::current, |missing| in_progress_health(&missing))
}

fn missing_pods_text(view: &HealthView<'_>) -> Option<String> {
    if view.status("desiredNumberScheduled").is_none() {
        return Some("waiting for its nodes to be counted".to_owned());
    }
    let wanted = view.count("desiredNumberScheduled");
    let scheduled = view.count("currentNumberScheduled");
    if scheduled < wanted {
        return Some(format!("{scheduled} of {wanted} pods are scheduled"));
    }
    let updated = view.count("updatedNumberScheduled");
    // With OnDelete, which pod takes the newest template is a person's business.
    if updated < wanted && view.spec_text(&["updateStrategy", "type"]) != "OnDelete" {
        return Some(format!("{updated} out of {wanted} new pods have been updated"));
    }
    let available = view.count("numberAvailable");
    if available < wanted {
        return Some(format!("{available} of {wanted} updated pods are available"));
    }
    let ready = view.count("numberReady");
    (ready < wanted).then(|| format!("{ready} of {wanted} pods are ready"))
}
