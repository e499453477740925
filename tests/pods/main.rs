//! The signals of a workload's pods during its rollout, against real controllers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

mod creation;
mod eviction;
mod harness;
mod revisions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rhumb::testing::engine::{IMAGE_PULL_GRACE, UNSCHEDULABLE_GRACE, find_failure};
use serde_json::{Value, json};

use harness::{Harness, KINDS, KubectlView, WatchedWorkload, all_at_once};

/// The time within which a signal is to be noticed.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(15);

/// One fault: its name, what the template asks for, the container and reason that are reported.
type Fault = (&'static str, fn(&mut Value), Option<&'static str>, &'static str);

const FAULTS: [Fault; 6] = [
    (
        "pull",
        |template| template["spec"]["containers"][0]["image"] = json!("web:broken"),
        Some("c"),
        "ImagePullBackOff",
    ),
    ("name", |template| waits(template, "InvalidImageName"), Some("c"), "InvalidImageName"),
    (
        "config",
        |template| waits(template, "CreateContainerConfigError"),
        Some("c"),
        "CreateContainerConfigError",
    ),
    ("run", |template| waits(template, "RunContainerError"), Some("c"), "RunContainerError"),
    (
        "crash",
        |template| template["metadata"]["annotations"] = json!({ "controlplane/crash": "true" }),
        Some("c"),
        "CrashLoopBackOff",
    ),
    (
        "evicted",
        |template| template["metadata"]["annotations"] = json!({ "controlplane/evict-after": "300ms" }),
        None,
        "Evicted",
    ),
];

fn waits(template: &mut Value, reason: &str) {
    template["metadata"]["annotations"] = json!({ "controlplane/waiting": reason });
}

/// Returns the troubles of a pod as the API shows them, with the workload that its label names.
fn troubles(pod: &Value) -> Vec<String> {
    let app = pod["metadata"]["labels"]["app"].as_str().unwrap_or_default();
    let places =
        ["/status/containerStatuses/0/state/waiting/reason", "/status/reason", "/status/conditions/0/reason"];
    let reasons = places.iter().filter_map(|place| pod.pointer(place)?.as_str());
    reasons.map(|reason| format!("{app} {reason}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_signal_of_each_kind_is_noticed_at_once() {
    async fn check(harness: Harness, witness: Arc<KubectlView>, kind: &str, fault: Fault) {
        let (name, fault, container, reason) = fault;
        let mut web = harness.workload(kind, "default", &format!("signal-{name}")).start().await;
        web.settles().await;
        fault(web.workload.template());
        web.roll().await;
        let (failing, at) = web.fails().await;
        let app = format!("{}-signal-{name}", kind.to_lowercase());
        let since = witness.first(&format!("{app} {reason}")).await;
        assert!(at < since + SIGNAL_TIMEOUT, "{app}: {:?} late", at - since);
        assert_eq!((&*failing.reason, failing.container.as_deref()), (reason, container), "{app}");
        let text = failing.to_string();
        let pod = failing.pod.unwrap();
        assert!(text.starts_with(&format!("pod {pod}")) && !failing.message.is_empty(), "{text}");
        let of_newest: Vec<&str> = of_newest(&web);
        assert!(of_newest.contains(&&*pod), "{app}: {text}, but the newest are {of_newest:?}");
    }
    let harness = Harness::new().await;
    let witness = KubectlView::of("pods", troubles);
    let all = KINDS.iter().flat_map(|kind| FAULTS.map(|fault| (kind, fault)));
    // KWOK deletes by name. When it is slow it also takes the pod that a StatefulSet has made anew,
    // again and again. Passing signals need one pod that lasts.
    let all = all.filter(|(kind, (name, ..))| (**kind, *name) != ("StatefulSet", "run"));
    all_at_once(all.map(|(kind, fault)| check(harness.clone(), witness.clone(), kind, fault))).await;
}

fn of_newest(web: &WatchedWorkload) -> Vec<&str> {
    let pods = web.pods.as_ref().unwrap();
    pods.newest_pods().chain(pods.last_failed.as_deref()).map(|pod| &*pod.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_that_does_not_succeed_fails_after_a_minute() {
    async fn check(harness: Harness, kind: &str) {
        let mut web = harness.workload(kind, "default", "pull").start().await;
        web.settles().await;
        waits(web.workload.template(), "ErrImagePull");
        web.roll().await;
        let pods = web.until(|pods| pods.newest_pods().any(|pod| pod.container_failure.is_some())).await;
        let since =
            pods.newest_pods().filter_map(|pod| Some(pod.container_failure.as_ref()?.since)).min().unwrap();
        let just_before = since + IMAGE_PULL_GRACE.checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(find_failure(&pods, just_before), None);
        let failing = find_failure(&pods, since + IMAGE_PULL_GRACE).unwrap();
        assert_eq!((&*failing.reason, failing.container.as_deref()), ("ErrImagePull", Some("c")));
    }
    let harness = Harness::new().await;
    all_at_once(KINDS.map(|kind| check(harness.clone(), kind))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_no_node_takes_fails_after_a_minute() {
    async fn check(harness: Harness, witness: Arc<KubectlView>, kind: &str) {
        let mut web = harness.workload(kind, "default", "unschedulable").start().await;
        web.settles().await;
        let resources = json!({ "requests": { "cpu": "5000" } });
        web.workload.template()["spec"]["containers"][0]["resources"] = resources;
        web.roll().await;
        let is_stuck = |pod: &rhumb::testing::engine::PodFacts| pod.unschedulable.is_some();
        let pods = web.until(|pods| pods.newest_pods().any(is_stuck)).await;
        let pod = pods.newest_pods().find(|pod| is_stuck(pod)).unwrap();
        let since = pod.unschedulable.as_ref().unwrap().since;
        let app = format!("{}-unschedulable", kind.to_lowercase());
        assert!(since < witness.first(&format!("{app} Unschedulable")).await + SIGNAL_TIMEOUT);
        assert_eq!(
            find_failure(&pods, since + UNSCHEDULABLE_GRACE.checked_sub(Duration::from_secs(1)).unwrap()),
            None
        );
        let failing = find_failure(&pods, since + UNSCHEDULABLE_GRACE).unwrap();
        assert_eq!(&*failing.reason, "Unschedulable");
        assert!(failing.message.contains("Insufficient cpu"), "{failing}");
        let warnings =
            harness.cluster.read_warnings("default", &[web.uid.clone(), pod.uid.clone()]).await.unwrap();
        let texts = warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(texts.iter().any(|text| text.contains("FailedScheduling: 0/2 nodes")), "{texts:?}");
    }
    let harness = Harness::new().await;
    let witness = KubectlView::of("pods", troubles);
    all_at_once(KINDS.map(|kind| check(harness.clone(), witness.clone(), kind))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_ends_what_was_steady_and_three_are_too_many() {
    let harness = Harness::new().await;
    let mut web = harness.workload("Deployment", "default", "restarts");
    web.body["spec"]["replicas"] = json!(1);
    web.annotate(json!({ "controlplane/crash-after": "1s" }));
    let mut web = web.start().await;
    let first = web.until(|pods| pods.count_ready_newest() == 1).await;
    let since = first.steady_time().unwrap();
    web.until(|pods| pods.count_ready_newest() == 0 && pods.steady_time().is_none()).await;
    let second = web.until(|pods| pods.count_ready_newest() == 1).await;
    assert!(second.steady_time().unwrap() > since);
    assert_eq!((second.pods[0].restarts, second.pods[0].new_restarts), (1, 1));
    assert_eq!(second.pods[0].uid, first.pods[0].uid);
    assert_eq!(find_failure(&second, Instant::now()), None);
    let third = web.until(|pods| pods.count_ready_newest() == 1 && pods.pods[0].restarts >= 3).await;
    let failing = find_failure(&third, Instant::now()).unwrap();
    assert_eq!((&*failing.reason, failing.container.as_deref()), ("Restarting", Some("c")));
    // A later watcher does not know when that was.
    let late = web.workload.harness.workload("Deployment", "default", "restarts");
    let mut late = harness::Workload { body: web.workload.body.clone(), ..late }.start().await;
    let seen = late.until(|pods| pods.count_updated() == 1).await;
    assert_eq!((seen.pods[0].restarts >= 3, seen.pods[0].new_restarts), (true, 0));
    let pod = third.pods[0].uid.clone();
    let warnings = harness.cluster.read_warnings("default", &[web.uid.clone(), pod]).await.unwrap();
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        texts.iter().any(|text| text.contains("BackOff: Back-off restarting failed container")),
        "{texts:?}"
    );
}
