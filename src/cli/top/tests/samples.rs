//! Clusters to look at.

use serde_json::{Value, json};

use super::super::status_poller::Refresh;
use crate::cli::status_view::StatusView;
use crate::report::{EventRecord, ObjectStatus, Phase, RolloutStatus, SourceStatus};

pub(super) const NOW: &str = "2030-01-02T03:04:05Z";

fn source(name: &str, since: &str, objects: Value) -> SourceStatus {
    let status = json!({
        "name": name, "location": format!("https://git.example.org/{name}.git"),
        "revision": "0123456789abcdef0123456789abcdef01234567", "author": "Ada", "subject": "Two of each",
        "since": since, "looked": NOW, "complete": true, "observed": false, "healthy": false,
        "changes": [
            {"revision": "0123456789abcdef0123456789abcdef01234567", "author": "Ada", "subject": "Two of each"},
            {"revision": "89abcdef0123456789abcdef0123456789abcdef", "author": "Grace", "subject": "Begin"},
        ],
        "objects": objects, "findings": 0, "pruneWaiting": 0,
    });
    let status: SourceStatus = serde_json::from_value(status).unwrap();
    SourceStatus { healthy: status.objects.keys().all(|phase| phase.is_well()), ..status }
}

fn rollout(workloads: u32, unavailable: u32, rolling: Value, queue: Value) -> RolloutStatus {
    serde_json::from_value(json!({
        "known": true, "workloads": {"used": workloads, "of": 3}, "unavailable": {"used": unavailable, "of": 10},
        "starts": {"used": workloads, "of": 30}, "window": 2, "onFailure": "rollback",
        "rolling": rolling, "queue": queue,
    }))
    .unwrap()
}

fn workload(name: &str, more: Value) -> Value {
    let mut object = json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": name});
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

pub(super) fn object(kind: &str, name: &str, phase: Phase, reason: &str) -> ObjectStatus {
    let group = if kind == "Deployment" { "apps" } else { "" };
    serde_json::from_value(json!({
        "group": group, "kind": kind, "namespace": "shop", "name": name, "source": "shop", "phase": phase,
        "reason": reason, "revision": "0123456789abcdef0123456789abcdef01234567",
        "origin": format!("deploy/{name}.yaml:3"),
    }))
    .unwrap()
}

pub(super) fn event(number: u64, at: &str, reason: &str, object: Option<&str>, message: &str) -> EventRecord {
    let mut event =
        json!({"number": number, "at": at, "reason": reason, "source": "shop", "message": message});
    if let Some(name) = object {
        event["object"] = workload(name, json!({}));
        event["revision"] = "0123456789abcdef".into();
        event["author"] = "Ada".into();
    }
    serde_json::from_value(event).unwrap()
}

fn refresh(sources: Vec<SourceStatus>, rollout: RolloutStatus, objects: Vec<ObjectStatus>) -> Refresh {
    let process = json!({
        "version": "9.9.9", "since": "2030-01-02T01:00:00Z", "nextResync": "2030-01-02T04:04:05Z", "queue": 0,
        "unfinishedSeconds": 0.0, "longestSeconds": 0.0,
    });
    let view = StatusView {
        at: NOW.parse().unwrap(),
        process: Some(serde_json::from_value(process).unwrap()),
        sources,
        rollout,
        objects,
        notes: Vec::new(),
    };
    Refresh { view, events: Vec::new(), object: None }
}

/// Returns a cluster in which all is healthy.
pub(super) fn healthy() -> Refresh {
    let shop = source("shop", "2030-01-02T03:00:00Z", json!({"Settled": 21}));
    let ops = source("ops", "2029-12-30T03:00:00Z", json!({"Settled": 3, "LeftAlone": 1}));
    let read =
        event(1, "2030-01-02T03:00:00Z", "RevisionRead", None, "revision 0123456789ab (Ada: Two of each)");
    let settled =
        event(2, "2030-01-02T03:01:10Z", "RevisionSettled", None, "all 21 objects are applied and healthy");
    Refresh {
        events: vec![read, settled],
        ..refresh(vec![shop, ops], rollout(0, 0, json!([]), json!([])), Vec::new())
    }
}

/// Returns a cluster in which two workloads roll, and three wait.
pub(super) fn rolling() -> Refresh {
    let shop = source("shop", "2030-01-02T03:03:05Z", json!({"Settled": 16, "RollingOut": 2, "Waiting": 3}));
    let ops = source("ops", "2029-12-30T03:00:00Z", json!({"Settled": 3, "LeftAlone": 1}));
    let rolls = json!([
        workload(
            "web",
            json!({
                "source": "shop", "replicas": 12, "updated": 5, "available": 11, "unavailable": 1,
                "step": "step 1 of 2: 3 of 12 pods, until it is promoted",
            })
        ),
        workload(
            "search-with-a-long-name",
            json!({"replicas": 3, "updated": 0, "available": 3, "unavailable": 2})
        ),
    ]);
    let because =
        "2 of 2 workloads are rolling out: Deployment shop/web, Deployment shop/search-with-a-long-name";
    let queue = json!([
        workload("api", json!({"position": 1, "reason": because})),
        workload("\u{65e5}\u{672c}\u{8a9e}", json!({"position": 2, "reason": because})),
        workload("late", json!({"reason": "of a later wave: Deployment shop/web is not healthy yet"})),
    ]);
    let objects = ["web", "api", "late"].map(|name| object("Deployment", name, Phase::Waiting, "it waits"));
    let started = event(3, "2030-01-02T03:03:10Z", "RolloutStarted", Some("web"), "revision 0123456789ab");
    let mut events = healthy().events;
    events.push(started);
    Refresh { events, ..refresh(vec![shop, ops], rollout(2, 3, rolls, queue), objects.to_vec()) }
}

/// Returns a cluster in which much is wrong. Its reasons are long, and some of them would steer the
/// terminal.
pub(super) fn failed() -> Refresh {
    let mut shop = source(
        "shop",
        "2030-01-02T03:03:05Z",
        json!({"Settled": 14, "Progressing": 1, "Refused": 1, "RolledBack": 1, "Quarantined": 1, "PruneWaiting": 3}),
    );
    shop.prune_waiting = 3;
    shop.findings = 1;
    let mut ops = source("ops", "2029-12-30T03:00:00Z", json!({"Settled": 4}));
    ops.incomplete = Some(
        "the git server does not answer: ssh: connect to host git.example.org port 22: timed out".to_owned(),
    );
    ops.healthy = false;
    let pod = "its pod web-7d4b9c-x2x4z, container app: Back-off pulling image \"app:\u{65b0}\u{3057}\u{3044}\": \
               not\nfound \u{1b}[2J\u{202e}; revision 0123456789ab is put back, until the content changes in git";
    let objects = vec![
        object("ConfigMap", "slow", Phase::Progressing, ""),
        object("Deployment", "web", Phase::RolledBack, pod),
        object("Deployment", "held", Phase::Quarantined, "it does not come up, and nothing good is known"),
        object("ConfigMap", "env", Phase::Refused, "admission webhook \"policy.example.org\" denied it: no"),
        object("PersistentVolumeClaim", "data", Phase::PruneWaiting, "deleting it deletes data"),
    ];
    let mut events = rolling().events;
    events.push(event(4, "2030-01-02T03:03:40Z", "RolloutFailed", Some("web"), pod));
    events.push(event(5, "2030-01-02T03:03:41Z", "RolledBack", Some("web"), "to revision 89abcdef0123"));
    Refresh { events, ..refresh(vec![shop, ops], rollout(0, 0, json!([]), json!([])), objects) }
}

/// Returns a refresh as read from the cluster alone.
pub(super) fn cluster() -> Refresh {
    let Refresh { mut view, .. } = rolling();
    view.process = None;
    for source in &mut view.sources {
        source.since = None;
        source.complete = false;
    }
    let zero = crate::report::BoundUsage { used: 0, of: 0 };
    view.rollout.workloads.of = 0;
    view.rollout.unavailable.of = 0;
    view.rollout.starts = zero;
    Refresh { view, events: Vec::new(), object: None }
}

/// Returns a daemon that has not read anything yet.
pub(super) fn empty() -> Refresh {
    let mut refresh = refresh(Vec::new(), rollout(0, 0, json!([]), json!([])), Vec::new());
    refresh.view.rollout.known = false;
    refresh
}
