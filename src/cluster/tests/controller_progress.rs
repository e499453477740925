use serde_json::{Value, json};

use crate::cluster::controller_progress;
use crate::cluster::controller_progress::is_failed_before;
use crate::engine::WorkloadPhase::{self, FirstStart, Recovering, Replacing, Settled};
use crate::object::GroupKind;

fn phase(kind: &str, object: &Value) -> WorkloadPhase {
    controller_progress::of(&GroupKind::new("apps", kind), object).unwrap().phase
}

/// Returns a Deployment of three pods: generation seen, pods in all, of the newest template,
/// available.
fn deployment(seen: u64, all: u32, updated: u32, available: u32, more: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "generation": 2, "creationTimestamp": "2026-01-01T10:00:00Z",
            "annotations": { "deployment.kubernetes.io/revision": "2" },
        },
        "spec": { "replicas": 3 },
        "status": {
            "observedGeneration": seen, "replicas": all, "updatedReplicas": updated,
            "readyReplicas": available, "availableReplicas": available,
        },
    });
    merge(&mut object, more);
    object
}

fn merge(object: &mut Value, more: &Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (key, value) in more {
                merge(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more.clone(),
    }
}

fn conditions(available: (&str, &str), progressing: &str) -> Value {
    json!({ "status": { "conditions": [
        { "type": "Available", "status": available.0, "lastTransitionTime": available.1 },
        { "type": "Progressing", "status": "True", "reason": progressing },
    ] } })
}

#[test]
fn a_deployment_by_its_numbers_and_conditions() {
    let up = ("True", "2026-01-01T10:00:04Z");
    let never = ("False", "2026-01-01T10:00:01Z");
    let lost = ("False", "2026-01-01T11:00:00Z");
    let first = json!({ "metadata": { "annotations": { "deployment.kubernetes.io/revision": "1" } } });
    let check = |seen, numbers: [u32; 3], more: Value, expected: WorkloadPhase| {
        let object = deployment(seen, numbers[0], numbers[1], numbers[2], &more);
        assert_eq!(phase("Deployment", &object), expected, "{seen} {numbers:?} {more}");
    };
    let both = |mut one: Value, other: &Value| {
        merge(&mut one, other);
        one
    };
    // All there.
    check(2, [3, 3, 3], conditions(up, "NewReplicaSetAvailable"), Settled);
    // The newest spec is not seen yet.
    check(1, [3, 3, 3], conditions(up, "NewReplicaSetAvailable"), Replacing);
    // A generation that is still to come was not seen either.
    check(3, [3, 3, 3], conditions(up, "NewReplicaSetAvailable"), Replacing);
    // Old pods are left.
    check(2, [4, 1, 3], conditions(up, "ReplicaSetUpdated"), Replacing);
    check(2, [4, 4, 3], conditions(up, "ReplicaSetUpdated"), Settled);
    check(2, [3, 3, 2], conditions(up, "ReplicaSetUpdated"), Recovering);
    // Recreate, between old and new.
    check(2, [0, 0, 0], conditions(lost, "NewReplicaSetCreated"), Replacing);
    // Scaled up, or pods lost, with one template.
    check(2, [2, 2, 2], conditions(up, "NewReplicaSetAvailable"), Recovering);
    check(2, [3, 3, 1], conditions(lost, "NewReplicaSetAvailable"), Recovering);
    // Nothing was ever up: no status at all, the first rollout, or a second try of it.
    check(0, [0, 0, 0], json!({}), FirstStart);
    check(2, [3, 3, 0], conditions(never, "ReplicaSetUpdated"), FirstStart);
    check(2, [3, 3, 1], both(conditions(never, "ReplicaSetUpdated"), &first), FirstStart);
    check(2, [3, 3, 0], both(conditions(lost, "ProgressDeadlineExceeded"), &first), FirstStart);
    check(2, [3, 3, 0], both(conditions(lost, "NewReplicaSetAvailable"), &first), Recovering);
    check(2, [4, 2, 0], conditions(never, "ReplicaSetUpdated"), FirstStart);
    check(1, [3, 3, 0], conditions(never, "ReplicaSetUpdated"), FirstStart);
    // A broken new template beside a good old one is no first start.
    check(2, [4, 1, 3], both(conditions(up, "ReplicaSetUpdated"), &first), Replacing);
    // Without any condition (no deadline): by what is available.
    check(2, [3, 3, 0], json!({}), FirstStart);
    check(2, [3, 3, 1], json!({}), Recovering);
    // Scaled to nothing.
    check(
        2,
        [0, 0, 0],
        both(conditions(up, "NewReplicaSetAvailable"), &json!({ "spec": { "replicas": 0 } })),
        Settled,
    );
}

#[test]
fn a_stateful_set_by_its_revisions() {
    let check =
        |generation: u64, seen: u64, revisions: [&str; 2], numbers: [u32; 2], strategy: Value, expected| {
            let object = json!({
                "metadata": { "generation": generation },
                "spec": { "replicas": 3, "updateStrategy": strategy },
                "status": {
                    "observedGeneration": seen, "replicas": 3, "currentRevision": revisions[0],
                    "updateRevision": revisions[1], "updatedReplicas": numbers[0],
                    "readyReplicas": numbers[1], "availableReplicas": numbers[1],
                },
            });
            assert_eq!(phase("StatefulSet", &object), expected, "{object}");
        };
    let rolling = || json!({ "type": "RollingUpdate" });
    let partition =
        |number: u32| json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": number } });
    check(2, 2, ["a", "a"], [3, 3], rolling(), Settled);
    check(3, 2, ["a", "a"], [3, 3], rolling(), Replacing);
    check(3, 4, ["a", "a"], [3, 3], rolling(), Replacing);
    check(3, 3, ["a", "b"], [1, 3], rolling(), Replacing);
    check(3, 3, ["a", "b"], [3, 2], rolling(), Recovering);
    check(3, 3, ["a", "b"], [1, 3], partition(2), Settled);
    check(3, 3, ["a", "b"], [0, 3], partition(2), Replacing);
    check(3, 3, ["a", "b"], [0, 3], partition(9), Settled);
    check(3, 3, ["a", "b"], [0, 3], json!({ "type": "OnDelete" }), Settled);
    check(2, 2, ["a", "a"], [3, 1], rolling(), Recovering);
    check(1, 1, ["a", "a"], [1, 0], rolling(), FirstStart);
    check(1, 1, ["a", "a"], [2, 1], rolling(), Recovering);
    assert_eq!(phase("StatefulSet", &json!({ "metadata": { "generation": 1 }, "spec": {} })), FirstStart);
}

#[test]
fn a_daemon_set_by_its_nodes() {
    let check = |generation: u64, numbers: [u32; 4], strategy: &str, expected| {
        let object = json!({
            "metadata": { "generation": generation },
            "spec": { "updateStrategy": { "type": strategy } },
            "status": {
                "observedGeneration": 2.min(generation), "desiredNumberScheduled": numbers[0],
                "currentNumberScheduled": numbers[1], "updatedNumberScheduled": numbers[2],
                "numberReady": numbers[3], "numberAvailable": numbers[3],
            },
        });
        assert_eq!(phase("DaemonSet", &object), expected, "{object}");
    };
    check(2, [3, 3, 3, 3], "RollingUpdate", Settled);
    check(3, [3, 3, 3, 3], "RollingUpdate", Replacing);
    check(2, [3, 3, 1, 2], "RollingUpdate", Replacing);
    check(2, [3, 3, 1, 3], "OnDelete", Settled);
    check(2, [3, 2, 2, 2], "RollingUpdate", Recovering);
    check(1, [3, 3, 3, 0], "RollingUpdate", FirstStart);
    check(2, [0, 0, 0, 0], "RollingUpdate", Settled);
}

#[test]
fn other_kinds_and_hostile_shapes() {
    for kind in [
        GroupKind::new("", "Pod"),
        GroupKind::new("apps", "ReplicaSet"),
        GroupKind::new("x.io", "Deployment"),
    ] {
        assert_eq!(controller_progress::of(&kind, &json!({})), None);
    }
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        for hostile in [
            json!(null),
            json!([]),
            json!({ "status": "s", "spec": [1] }),
            json!({ "status": { "conditions": {}, "replicas": -1 } }),
        ] {
            assert_eq!(phase(kind, &hostile), FirstStart, "{kind} {hostile}");
        }
    }
    let huge = json!({ "spec": { "replicas": u64::MAX }, "status": { "observedGeneration": 1 } });
    assert_eq!(
        controller_progress::of(&GroupKind::new("apps", "Deployment"), &huge).unwrap().replicas,
        u32::MAX
    );
}

#[test]
fn a_failure_from_before_our_last_write_is_no_news() {
    let check = |kind: &str, reason: &str, updated: &str, written: &str, expected: bool| {
        let condition = json!({ "type": "Progressing", "reason": reason, "lastUpdateTime": updated });
        let object = json!({ "status": { "conditions": [condition] } });
        let found = is_failed_before(&GroupKind::new("apps", kind), &object, written);
        assert_eq!(found, expected, "{kind} {reason} {updated} {written}");
    };
    let (early, late) = ("2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z");
    let exceeded = "ProgressDeadlineExceeded";
    check("Deployment", exceeded, early, late, true);
    check("Deployment", exceeded, early, early, true);
    check("Deployment", exceeded, late, early, false);
    check("Deployment", "ReplicaSetUpdated", early, late, false);
    check("StatefulSet", exceeded, early, late, false);
    // A value that cannot be read says nothing.
    check("Deployment", exceeded, "soon", late, false);
    check("Deployment", exceeded, early, "", false);
}

// The controller cannot have waited for as long as its deadline since the write.
#[test]
fn a_failure_sooner_than_the_deadline_is_of_an_earlier_rollout() {
    let check = |deadline: u64, updated: &str, expected: bool| {
        let condition = json!({
            "type": "Progressing", "reason": "ProgressDeadlineExceeded",
            "lastUpdateTime": format!("2026-01-01T10:{updated}Z"),
        });
        let object = json!({
            "spec": { "progressDeadlineSeconds": deadline },
            "status": { "conditions": [condition] },
        });
        let kind = GroupKind::new("apps", "Deployment");
        let found = is_failed_before(&kind, &object, "2026-01-01T10:00:00Z");
        assert_eq!(found, expected, "{deadline} {updated}");
    };
    check(3, "00:01", true);
    check(3, "00:02", true);
    // It may have come 2.1 s after the write: both times are cut to whole seconds.
    check(3, "00:03", true);
    check(3, "00:04", false);
    check(600, "09:50", true);
    // Clocks differ.
    check(600, "09:51", false);
    check(600, "10:01", false);
    // Without an end, as a number.
    check(i32::MAX as u64, "10:01", true);
}
