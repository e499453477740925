use std::sync::Arc;

use serde_json::{Value, json};

use super::super::super::wire::WireDecoder as _;
use super::super::decoder::{PodRecord, RecordDecoder, RevisionRecord, WorkloadRecord, bounded_text};
use super::super::pod_selector;
use super::super::warnings::WarningDecoder;
use crate::engine::{Readiness, Uid};
use crate::object::GroupKind;

fn read(pod: &Value) -> PodRecord {
    RecordDecoder::new(GroupKind::new("", "Pod")).decode(&pod.to_string()).unwrap().record
}

fn pod(status: Value) -> Value {
    json!({
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": { "controller-revision-hash": "r1", "app": "web" },
            "ownerReferences": [{ "uid": "other" }, { "uid": "set", "controller": true }],
        },
        "spec": { "nodeName": "node-1", "containers": [{ "env": [{ "name": "A", "value": "hidden" }] }] },
        "status": status,
    })
}

#[test]
fn a_pod_is_read_as_far_as_it_can_be() {
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "t" });
    let pod_facts = read(&pod(json!({ "phase": "Running", "conditions": [ready] })));
    assert_eq!((pod_facts.uid, pod_facts.owner), (Uid("u1".into()), Some(Uid("set".into()))));
    assert_eq!((pod_facts.revision.as_deref(), pod_facts.node.as_deref()), (Some("r1"), Some("node-1")));
    assert_eq!(
        (pod_facts.created, pod_facts.ready, &*pod_facts.ready_at),
        (1_767_323_045, Readiness::Ready, "t")
    );
    for odd in [json!(null), json!(7), json!("x"), json!([1]), json!({ "conditions": 3, "phase": ["x"] })] {
        let mut tree = pod(odd.clone());
        let read_odd = read(&tree);
        assert_eq!(
            (read_odd.ready, read_odd.container_failure, read_odd.has_ended),
            (Readiness::NotReady, None, false),
            "{odd}"
        );
        tree["spec"] = odd.clone();
        tree["metadata"]["labels"] = odd.clone();
        tree["metadata"]["ownerReferences"] = odd;
        assert_eq!(read(&tree).uid, Uid("u1".into()));
    }
    let decoder: RecordDecoder<PodRecord> = RecordDecoder::new(GroupKind::new("", "Pod"));
    assert!(decoder.decode("{}").is_none() && decoder.decode("[").is_none());
}

#[test]
fn a_workload_is_observed_where_its_status_is_of_its_generation() {
    let decoder: RecordDecoder<WorkloadRecord> = RecordDecoder::new(GroupKind::new("apps", "Deployment"));
    for (seen, expected) in [(1, false), (2, true), (3, false)] {
        let web = json!({
            "metadata": { "name": "web", "namespace": "shop", "uid": "u1", "generation": 2 },
            "status": { "observedGeneration": seen },
        });
        assert_eq!(decoder.decode(&web.to_string()).unwrap().record.observed, expected, "{seen}");
    }
}

#[test]
fn a_revision_has_the_template_of_the_workload_that_it_was_made_of() {
    let metadata = json!({ "name": "web", "namespace": "shop", "uid": "u1" });
    let template = |image: &str, created: Value| {
        json!({
            "metadata": { "labels": { "app": "web" }, "creationTimestamp": created },
            "spec": { "containers": [{ "name": "web", "image": image }] },
        })
    };
    let of_workload = |template: Value| {
        let set = json!({ "metadata": metadata, "spec": { "template": template } });
        let decoder: RecordDecoder<WorkloadRecord> = RecordDecoder::new(GroupKind::new("apps", "DaemonSet"));
        decoder.decode(&set.to_string()).unwrap().record.template
    };
    let of_revision = |mut template: Value| {
        template["$patch"] = json!("replace");
        let revision = json!({ "metadata": metadata, "data": { "spec": { "template": template } } });
        let kind = GroupKind::new("apps", "ControllerRevision");
        let decoder: RecordDecoder<RevisionRecord> = RecordDecoder::new(kind);
        decoder.decode(&revision.to_string()).unwrap().record.template
    };
    let live = of_workload(template("web:1", json!(null)));
    assert!(live.is_some());
    let mut undated = template("web:1", json!(null));
    undated["metadata"] = json!({ "labels": { "app": "web" } });
    for (template, expected) in [
        (template("web:1", json!(null)), true),
        // Newer servers leave the time out.
        (undated, true),
        (template("web:2", json!(null)), false),
        (template("web:1", json!("2026-01-02T03:04:05Z")), false),
        (json!({}), false),
    ] {
        assert_eq!(of_revision(template.clone()) == live, expected, "{template}");
    }
    assert_eq!(of_workload(json!("odd")), None);
}

#[test]
fn what_containers_wait_for_is_read() {
    let check = |containers: Value, expected: Option<[&str; 3]>| {
        let record = read(&pod(json!({ "phase": "Pending", "containerStatuses": containers })));
        assert_eq!(record.container_failure, expected.map(|words| words.map(Arc::from)));
    };
    let waiting = |name: &str, reason: &str| json!({ "name": name, "state": { "waiting": { "reason": reason, "message": "says\nwhy" } } });
    check(json!([]), None);
    check(json!([waiting("a", "ContainerCreating")]), None);
    check(json!([waiting("a", "ErrImagePull")]), Some(["a", "ErrImagePull", "says why"]));
    // The one that cannot pass by itself says more.
    check(
        json!([waiting("a", "RunContainerError"), waiting("b", "InvalidImageName")]),
        Some(["b", "InvalidImageName", "says why"]),
    );
    // The reason of its end is reported, its last output is not.
    let mut crashed = waiting("a", "CrashLoopBackOff");
    crashed["lastState"] =
        json!({ "terminated": { "exitCode": 2, "reason": "Error", "message": "password" } });
    check(json!([crashed]), Some(["a", "CrashLoopBackOff", "says why; it exited with code 2 (Error)"]));
}

#[test]
fn why_a_pod_is_not_ready_is_read() {
    let check = |status: Value, expected: Option<&str>| {
        assert_eq!(read(&pod(status)).unready.as_deref(), expected);
    };
    let is = |what: &str, status: &str, message: &str| json!([{ "type": what, "status": status, "message": message }]);
    let container =
        |name: &str, ready: bool, state: Value| json!({ "name": name, "ready": ready, "state": state });
    let running = json!({ "running": {} });
    check(json!({}), Some("it has not started yet"));
    check(json!({ "conditions": is("Ready", "True", "") }), None);
    let scheduled = is("PodScheduled", "False", "0/2 nodes are available");
    check(json!({ "conditions": scheduled }), Some("it is not scheduled: 0/2 nodes are available"));
    let one = container("a", false, running.clone());
    let (well, waits) =
        (container("w", true, running.clone()), json!({ "waiting": { "reason": "PodInitializing" } }));
    check(
        json!({ "containerStatuses": [well, one], "conditions": is("Ready", "False", "unready status: [a]") }),
        Some("container a is running but not ready"),
    );
    // An init container comes before those that wait for it.
    let init = container("first", false, json!({ "terminated": { "exitCode": 3, "reason": "Error" } }));
    check(
        json!({ "initContainerStatuses": [init], "containerStatuses": [container("a", false, waits.clone())] }),
        Some("container first exited with code 3 (Error)"),
    );
    check(
        json!({ "containerStatuses": [container("a", false, waits)] }),
        Some("container a is in PodInitializing"),
    );
    let slow = json!({ "waiting": { "reason": "ErrImagePull", "message": "says\nwhy" } });
    check(
        json!({ "containerStatuses": [container("a", false, slow)] }),
        Some("container a is in ErrImagePull: says why"),
    );
    let mut killed = container("a", false, running.clone());
    killed["lastState"] =
        json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "message": "password" } });
    check(
        json!({ "containerStatuses": [killed] }),
        Some("container a is running but not ready; before that it exited with code 137 (OOMKilled)"),
    );
    let gate = is("Ready", "False", "the readiness gate \"x\" is not there");
    check(
        json!({ "containerStatuses": [container("a", true, running)], "conditions": gate }),
        Some("it is not ready: the readiness gate \"x\" is not there"),
    );
}

#[test]
fn how_a_pod_ended_is_read() {
    let check = |status: Value, expected: Option<[&str; 2]>| {
        assert_eq!(read(&pod(status)).failed, expected.map(|words| words.map(Arc::from)));
    };
    let ended = |code: i64| json!([{ "name": "c", "state": { "terminated": { "exitCode": code } } }]);
    check(json!({ "phase": "Succeeded", "reason": "Evicted" }), None);
    check(
        json!({ "phase": "Failed", "reason": "Evicted", "message": "no room", "containerStatuses": ended(137) }),
        Some(["Evicted", "no room"]),
    );
    check(
        json!({ "phase": "Failed", "containerStatuses": ended(3) }),
        Some(["Failed", "container c exited with code 3"]),
    );
    check(json!({ "phase": "Failed" }), Some(["Failed", ""]));
    // It was deleted, and its kubelet says how its container ended.
    let mut deleted = pod(json!({ "phase": "Failed", "containerStatuses": ended(143) }));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
    assert_eq!((read(&deleted).failed, read(&deleted).has_ended), (None, true));
}

#[test]
fn words_of_the_cluster_are_one_short_line() {
    let check = |text: &str, expected: &str| assert_eq!(&*bounded_text(text), expected);
    check("", "");
    check(" a \t\n b ", "a b");
    check("red \u{1b}[31m, \u{202e}back", "red [31m, back");
    check(&"x".repeat(400), &"x".repeat(400));
    check(&"é".repeat(400), &format!("{}…", "é".repeat(200)));
    assert!(bounded_text(&"word ".repeat(1000)).len() < 410);
}

#[test]
fn a_selector_is_written_as_text_or_not_at_all() {
    let check = |selector: Value, expected: Option<&str>| {
        let workload = json!({ "spec": { "selector": selector } });
        assert_eq!(pod_selector(&workload).as_deref(), expected, "{selector}");
    };
    check(json!({ "matchLabels": { "app": "web", "b": "" } }), Some("app=web,b="));
    check(
        json!({ "matchLabels": { "app": "web" }, "matchExpressions": [
            { "key": "tier", "operator": "In", "values": ["a", "b"] },
            { "key": "zone", "operator": "NotIn", "values": ["c"] },
            { "key": "x/y", "operator": "Exists" },
            { "key": "z", "operator": "DoesNotExist" },
        ] }),
        Some("app=web,tier in (a,b),zone notin (c),x/y,!z"),
    );
    // Each of these would select more than was meant.
    check(json!({}), None);
    check(json!({ "matchLabels": {} }), None);
    check(json!({ "matchLabels": { "app": 1 } }), None);
    check(
        json!({ "matchLabels": { "app": "web" }, "matchExpressions": [{ "key": "a", "operator": "Gt" }] }),
        None,
    );
    check(json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": [] }] }), None);
    check(json!({ "matchExpressions": [{ "operator": "Exists" }] }), None);
    assert_eq!(pod_selector(&json!({ "spec": {} })), None);
}

#[test]
fn our_own_events_are_distinguished_from_those_of_others() {
    fn check(component: &Value, own: bool) {
        let event = json!({
            "metadata": { "name": "web.1", "namespace": "shop", "uid": "e", "resourceVersion": "7" },
            "involvedObject": { "kind": "Deployment", "name": "web", "uid": "u" },
            "reason": "RolloutFailed", "message": "no progress", "type": "Warning",
            "reportingComponent": component,
        });
        let warning = WarningDecoder.decode(&event.to_string()).unwrap().record;
        assert_eq!((warning.own, &*warning.message), (own, "no progress"), "{component}");
    }
    check(&json!("rhumb"), true);
    check(&json!("kubelet"), false);
    check(&json!(""), false);
    check(&Value::Null, false);
}
