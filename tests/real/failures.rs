//! Pods that fail as only real ones do: the commit is judged as failed, and goes back by itself.

use crate::site::RealSite;
use crate::workload::Workload;

/// Checks that a change that fails for this reason goes back.
fn goes_back(name: &str, bad: Workload, reasons: &[&str]) {
    let good = Workload::new("web", "app:1");
    let Some(place) = RealSite::new(name, &[good.file()]) else { return };
    place.await_image(&good, good.image());
    place.site.await_free_budget();
    let before = place.pods("web");
    place.push(&[bad.file()], "Change it");
    let records = place.await_rejection(&["rejected", "web"]);
    assert!(reasons.iter().any(|reason| records.contains(reason)), "{reasons:?}: {records}");
    place.await_image(&good, good.image());
    place.site.await_free_budget();
    // No pod that served was touched: the update may not take one down before its successor is ready.
    let uids = |pods: &[serde_json::Value]| {
        pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(uids(&place.pods("web")), uids(&before));
}

#[test]
fn an_image_that_is_missing_goes_back() {
    goes_back("back-missing", Workload::new("web", "missing:1"), &["ErrImagePull", "ImagePullBackOff"]);
}

#[test]
fn an_image_that_is_denied_goes_back() {
    goes_back("back-denied", Workload::new("web", "denied:1"), &["ErrImagePull", "ImagePullBackOff"]);
}

#[test]
fn a_crash_loop_goes_back() {
    let bad = Workload::new("web", "app:2").variable("READY_AFTER", "never").variable("CRASH_AFTER", "200ms");
    goes_back("back-crash", bad, &["CrashLoopBackOff", "restart"]);
}

#[test]
fn an_init_container_that_fails_goes_back() {
    goes_back("back-init", Workload::new("web", "app:2").init_exits(3), &["CrashLoopBackOff", "restart"]);
}

#[test]
fn a_pod_that_never_gets_ready_goes_back() {
    let bad = Workload::new("web", "app:2").variable("READY_AFTER", "never");
    goes_back("back-never", bad, &["no progress for 1m30s"]);
}
