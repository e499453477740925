//! `PersistentVolumeClaim`.

use super::Health;
use super::view::{HealthView, failed_health, in_progress_health};

/// The message of a claim that nothing works on: no node is chosen and no provisioner is called.
pub(super) const WAITS_FOR_CONSUMER_MESSAGE: &str =
    "Pending: waits for the first pod that uses it, or for a volume that fits";

pub(super) fn of(view: &HealthView<'_>) -> Health {
    match view.status_text("phase") {
        "Bound" => Health::current(),
        "Lost" => failed_health("Lost: the volume that it was bound to is gone"),
        _ => in_progress_health(&pending_reason(view)),
    }
}

/// Returns why a claim is pending. Both annotations are set once a pod that uses the claim is
/// scheduled; with immediate binding the provisioner's name comes alone.
fn pending_reason(view: &HealthView<'_>) -> String {
    let provisioner = view.annotation("volume.kubernetes.io/storage-provisioner");
    if !provisioner.is_empty() {
        return format!("Pending: waits for its volume from {provisioner}");
    }
    match view.annotation("volume.kubernetes.io/selected-node") {
        "" => WAITS_FOR_CONSUMER_MESSAGE.to_owned(),
        node => format!("Pending: waits for its volume on node {node}"),
    }
}
