//! Rolling updates of each kind, with readiness probes and hooks before the end.

use std::time::{Duration, Instant};

use crate::site::{BUDGET, RealSite, uids};
use crate::workload::Workload;

/// Checks that each pod is replaced by one that was probed, and that none ever restarts.
fn rolls(kind: &'static str, name: &str) {
    let before = Workload::of(kind, "app", "app:1").variable("READY_AFTER", "300ms");
    let Some(place) = RealSite::new(name, &[before.file()]) else { return };
    place.await_rollout(&before);
    let old = uids(&place.pods("app"));
    let after = Workload::of(kind, "app", "app:2").variable("READY_AFTER", "300ms");
    place.push(&[after.file()], "Change the image");
    place.await_rollout(&after);
    assert!(old.is_disjoint(&uids(&place.pods("app"))), "{old:?}");
    let restarts = |pod: &serde_json::Value| pod["status"]["containerStatuses"][0]["restartCount"].clone();
    assert!(place.pods("app").iter().all(|pod| restarts(pod) == 0), "{:#?}", place.pods("app"));
    place.await_success();
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

// Each pod is waited for until it is killed. All together take longer than the deadline, and no
// single one does.
#[test]
fn pods_that_ignore_sigterm_are_waited_for() {
    const GRACE: u32 = 16;
    let app =
        |image: &str| Workload::of("StatefulSet", "app", image).variable("IGNORE_TERM", "1").grace(GRACE);
    let budget = BUDGET.replace("deadline: 90s", "deadline: 45s");
    let Some(place) = RealSite::with_budget("rolls-stubborn", &budget, &[app("app:1").file()]) else {
        return;
    };
    place.await_rollout(&app("app:1"));
    place.site.await_free_budget();
    let begun = Instant::now();
    place.push(&[app("app:2").file()], "Change the image");
    place.await_rollout(&app("app:2"));
    let least = Duration::from_secs(u64::from(GRACE) * 3);
    assert!(begun.elapsed() >= least, "{:?}: no pod was given its time", begun.elapsed());
    place.await_success();
}
