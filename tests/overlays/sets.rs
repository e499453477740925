//! A StatefulSet by its partition, a DaemonSet by eviction.

use std::time::Duration;

use rhumb::testing::engine::{
    NodePod, NodeState, NodeStep, OrdinalPod, PodAvailability, PromotionRequest, RolloutOverlay,
    RolloutOverlayState, StatefulSetState, StepDecision, StepProgress, Steps, TemplateVersion, count_nodes,
    find_stuck_pod, next, select_evictions,
};
use rhumb::testing::object::text_at;
use serde_json::json;

use crate::harness::{BROKEN_IMAGE, Harness, NEW_IMAGE, OLD_IMAGE, Pod, plane};

fn partition(from: u32) -> RolloutOverlay {
    RolloutOverlay::Partition { from, step: 1 }
}

fn on_delete() -> RolloutOverlay {
    RolloutOverlay::OnDelete { step: 1 }
}

/// Returns the names of the pods of the new image.
fn new_pods(harness: &Harness) -> Vec<&str> {
    harness.pods.iter().filter(|(_, pod)| pod.image() == NEW_IMAGE).map(|(name, _)| &**name).collect()
}

#[tokio::test]
async fn a_partition_replaces_the_last_pods_and_no_other() {
    let mut db = Harness::new("StatefulSet", "db", json!({ "replicas": 4, "serviceName": "db" })).await;
    let before = db.uids();
    db.apply(NEW_IMAGE, partition(3)).await;
    db.until("one new pod", |db| db.is_held(3, 1)).await;
    assert_eq!((new_pods(&db), db.worst.old), (vec!["db-3"], 3));
    db.apply(NEW_IMAGE, partition(2)).await;
    db.until("two new pods", |db| db.is_held(2, 2)).await;
    assert_eq!((new_pods(&db), db.worst.old), (vec!["db-2", "db-3"], 2));
    assert_eq!(db.worst.gone(OLD_IMAGE), ["db-2", "db-3"]);
    // The rollback.
    db.plain(OLD_IMAGE).await;
    db.until("back", |db| db.is_all(OLD_IMAGE)).await;
    assert_eq!((db.worst.gone(NEW_IMAGE), db.worst.old), (vec!["db-2", "db-3"], 2));
    let after = db.uids();
    assert!(["db-0", "db-1"].iter().all(|name| before[*name] == after[*name]));
    // To the end.
    db.apply(NEW_IMAGE, partition(3)).await;
    db.until("one new pod", |db| db.is_held(3, 1)).await;
    let held = db.uids();
    db.plain(NEW_IMAGE).await;
    db.until("all pods are new", |db| db.is_all(NEW_IMAGE)).await;
    assert_eq!(held["db-3"], db.uids()["db-3"]);
    assert_eq!(db.annotation(), "");
}

#[tokio::test]
async fn more_replicas_under_a_partition_leave_the_pods_below_it() {
    let mut db = Harness::new("StatefulSet", "grown", json!({ "replicas": 4, "serviceName": "grown" })).await;
    let before = db.uids();
    db.apply(NEW_IMAGE, partition(3)).await;
    db.until("one new pod", |db| db.is_held(3, 1)).await;
    db.body["spec"]["replicas"] = json!(6);
    db.apply(NEW_IMAGE, partition(5)).await;
    db.until("six pods", |db| db.ready("") == 6).await;
    // The one that is new already stays so, although it is below the partition now.
    assert_eq!(new_pods(&db), ["grown-3", "grown-5"]);
    let after = db.uids();
    assert!(["grown-0", "grown-1", "grown-2"].iter().all(|name| before[*name] == after[*name]));
    db.plain(NEW_IMAGE).await;
    db.until("all pods are new", |db| db.is_all(NEW_IMAGE)).await;
}

#[tokio::test]
async fn a_stateful_set_that_waits_for_a_bad_pod_is_freed_by_its_deletion() {
    let mut db = Harness::new("StatefulSet", "stuck", json!({ "replicas": 3, "serviceName": "stuck" })).await;
    db.plain(BROKEN_IMAGE).await;
    db.until("one broken pod", |db| db.count(BROKEN_IMAGE) == 1 && db.ready(OLD_IMAGE) == 2).await;
    let before = db.uids();
    db.plain(OLD_IMAGE).await;
    db.until("it waits", |db| db.count(BROKEN_IMAGE) == 1).await;
    assert_eq!(db.uids(), before, "the controller frees itself");
    let revision = |key: &str| text_at(&db.live, &["status", key]).into();
    let set = StatefulSetState {
        start: 0,
        partition: 0,
        wanted: revision("updateRevision"),
        current: revision("currentRevision"),
    };
    let pods: Vec<OrdinalPod> = db.pods.iter().map(|(name, pod)| ordinal(name, pod)).collect();
    let bad = find_stuck_pod(&set, &pods, Duration::from_mins(1)).unwrap();
    assert_eq!(&*bad.name, "stuck-2");
    plane().kubectl(&["delete", "pod", &bad.name, "--wait=false"]).unwrap();
    db.until("back", |db| db.is_all(OLD_IMAGE)).await;
    assert_eq!(db.worst.ready, 2);
    let pods: Vec<OrdinalPod> = db.pods.iter().map(|(name, pod)| ordinal(name, pod)).collect();
    assert_eq!(find_stuck_pod(&set, &pods, Duration::ZERO), None);
}

fn ordinal(name: &str, pod: &Pod) -> OrdinalPod {
    OrdinalPod {
        name: name.into(),
        ordinal: name.rsplit('-').next().unwrap().parse().unwrap(),
        revision: pod.revision().into(),
        state: state(pod),
    }
}

fn state(pod: &Pod) -> PodAvailability {
    match pod.waiting() {
        _ if pod.is_terminating() => PodAvailability::Terminating,
        _ if pod.is_ready() => PodAvailability::Ready,
        "ImagePullBackOff" => PodAvailability::InTrouble,
        _ => PodAvailability::Unready(Duration::ZERO),
    }
}

fn on_nodes(agent: &Harness) -> Vec<NodePod> {
    // A pod without a node is on its way to one.
    let placed = agent.pods.iter().filter(|(_, pod)| !pod.node().is_empty());
    let read = |(name, pod): (&String, &Pod)| NodePod {
        name: name.as_str().into(),
        node: pod.node().into(),
        host: if pod.node() == canary() { NodeState::Canary } else { NodeState::Ready },
        template: if pod.image() == NEW_IMAGE { TemplateVersion::Newest } else { TemplateVersion::Older },
        state: state(pod),
    };
    placed.map(read).collect()
}

/// Returns the last node by name, so that no order by names finds it by chance.
fn canary() -> &'static str {
    static NODE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NODE.get_or_init(|| {
        let nodes = plane().kubectl(&["get", "nodes", "-o", "name"]).unwrap();
        nodes.lines().filter_map(|line| line.strip_prefix("node/")).max().unwrap().to_owned()
    })
}

fn evict(pod: &str) {
    let body = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": "default" } });
    let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
    // One that is chosen again before the watch shows its end is gone already.
    let done = plane().kubectl_in(&["create", "--raw", &path, "-f", "-"], &body.to_string());
    assert!(
        done.as_ref().is_ok() || done.as_ref().is_err_and(|error| error.to_string().contains("not found")),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_daemon_set_on_delete_moves_one_pod_per_eviction() {
    let rolling =
        json!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 2 } } });
    let mut agent = Harness::new("DaemonSet", "agent", rolling).await;
    let before = agent.uids();
    agent.apply(NEW_IMAGE, on_delete()).await;
    agent.until("it was seen", |agent| agent.status("updatedNumberScheduled") == 0).await;
    assert_eq!((agent.uids(), agent.worst.ready), (before, 4));
    let pods = on_nodes(&agent);
    let chosen = select_evictions(&pods, NodeStep { target: 1, away: 1, nodes: 4 });
    assert_eq!(chosen.iter().map(|pod| &*pod.node).collect::<Vec<_>>(), [canary()]);
    evict(&chosen[0].name);
    agent.until("one new pod", |agent| agent.is_held(3, 1)).await;
    assert_eq!((agent.worst.ready, agent.worst.gone(OLD_IMAGE)), (3, vec![&*chosen[0].name]));
    // Back with the old template: only the pod that moved moves.
    let held = agent.uids();
    agent.plain(OLD_IMAGE).await;
    agent.until("back", |agent| agent.is_all(OLD_IMAGE)).await;
    assert_eq!((agent.worst.ready, agent.worst.gone(NEW_IMAGE).len()), (3, 1));
    assert_eq!(agent.uids().iter().filter(|(name, _)| held.contains_key(*name)).count(), 3);
}

#[tokio::test]
async fn a_daemon_set_goes_through_its_steps_and_ends_without_a_restart() {
    let mut agent = Harness::new("DaemonSet", "stepped", json!({})).await;
    agent.body["metadata"]["annotations"] = json!({ "rhumb.dev/steps": "1, 50%" });
    let steps = Steps::of(&agent.body).unwrap();
    let mut moves = Vec::new();
    loop {
        let image = agent.live.pointer("/spec/template/spec/containers/0/image").unwrap().as_str().unwrap();
        let shown = if image == NEW_IMAGE {
            RolloutOverlayState::of(&agent.live)
        } else {
            RolloutOverlayState::Other
        };
        let pods = on_nodes(&agent);
        let counts = count_nodes(&pods, 4);
        let standing = StepProgress {
            replicas: counts.nodes,
            shown,
            made: agent.count(NEW_IMAGE) as u32,
            ready: counts.ready,
            ready_for: Duration::ZERO,
            promotion: PromotionRequest::None,
        };
        match next(&steps, &standing) {
            StepDecision::Stay(wait) => {
                let target = steps.target(wait.step, counts.nodes);
                for pod in select_evictions(&pods, NodeStep { target, away: 1, nodes: 4 }) {
                    evict(&pod.name);
                }
                agent.event().await;
            }
            StepDecision::Enter(overlay) => {
                moves.push(overlay.to_string());
                agent.apply(NEW_IMAGE, overlay).await;
            }
            StepDecision::Finish => break,
        }
    }
    assert_eq!(moves, ["on-delete step=1", "on-delete step=2", "on-delete step=3"]);
    assert_eq!(agent.worst.ready, 3);
    agent.until("all pods are new", |agent| agent.is_all(NEW_IMAGE)).await;
    let before = agent.uids();
    agent.plain(NEW_IMAGE).await;
    agent.until("the plain strategy", |agent| agent.is_all(NEW_IMAGE)).await;
    assert_eq!((agent.uids(), agent.annotation()), (before, ""));
    assert_eq!(agent.live["spec"]["updateStrategy"]["type"], json!("RollingUpdate"));
}

#[tokio::test]
async fn a_narrowed_daemon_set_takes_no_more_pods_away() {
    let spec = json!({ "updateStrategy": { "rollingUpdate": { "maxUnavailable": "100%" } } });
    let mut agent = Harness::new("DaemonSet", "narrowed", spec).await;
    agent.apply(NEW_IMAGE, RolloutOverlay::Narrow(1)).await;
    agent.until("all pods are new", |agent| agent.is_all(NEW_IMAGE)).await;
    assert_eq!((agent.worst.ready, agent.annotation()), (3, "narrow=1"));
    // One that surges is narrow by itself.
    agent.body["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    agent.forget();
    agent.apply(OLD_IMAGE, RolloutOverlay::Narrow(1)).await;
    agent.until("all pods are old", |agent| agent.is_all(OLD_IMAGE)).await;
    assert_eq!(agent.worst.ready, 4);
}
