//! Rolling updates of each kind, with readiness probes and hooks before the end.

use std::collections::BTreeSet;

use crate::site::RealSite;
use crate::workload::Workload;

fn uids(place: &RealSite, name: &str) -> BTreeSet<String> {
    place.pods(name).iter().map(|pod| pod["metadata"]["uid"].to_string()).collect()
}

/// Checks that each pod is replaced by one that was probed, and that none ever restarts.
fn rolls(kind: &'static str, name: &str) {
    let before = Workload::of(kind, "app", "app:1").variable("READY_AFTER", "300ms");
    let Some(place) = RealSite::new(name, &[before.file()]) else { return };
    place.await_image(&before, before.image());
    let old = uids(&place, "app");
    let after = Workload::of(kind, "app", "app:2").variable("READY_AFTER", "300ms");
    place.push(&[after.file()], "Change the image");
    place.await_image(&after, after.image());
    assert!(old.is_disjoint(&uids(&place, "app")), "{old:?}");
    let restarts = |pod: &serde_json::Value| pod["status"]["containerStatuses"][0]["restartCount"].clone();
    assert!(place.pods("app").iter().all(|pod| restarts(pod) == 0), "{:#?}", place.pods("app"));
    place.site.await_free_budget();
    assert!(!place.site.records().contains("\"rejected\""), "{}", place.site.records());
}

#[test]
fn a_deployment_rolls() {
    rolls("Deployment", "rolls-deployment");
}

#[test]
fn a_stateful_set_rolls() {
    rolls("StatefulSet", "rolls-set");
}

#[test]
fn a_daemon_set_rolls() {
    rolls("DaemonSet", "rolls-nodes");
}
