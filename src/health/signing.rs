//! `CertificateSigningRequest` and `PodCertificateRequest`.

use super::Health;
use super::view::{HealthView, failed_health, in_progress_health};

pub(super) fn of(view: &HealthView<'_>) -> Health {
    if let Some(condition) = view.holds("Denied").or_else(|| view.holds("Failed")) {
        return failed_health(&condition.message_or("was denied"));
    }
    let issued = ["certificate", "certificateChain"].iter().any(|key| !view.status_text(key).is_empty());
    match view.holds("Approved") {
        _ if issued => Health::current(),
        Some(_) => in_progress_health("is approved; its certificate is not issued yet"),
        None => in_progress_health("waits for approval"),
    }
}
