//! The progress of a workload's controller with its newest template.

use serde_json::Value;

use crate::engine::{
    HELD_MIN_READY_SECONDS, ReplicaStatus, RolloutOverlayState, UpdateStrategy, WorkloadPhase,
};
use crate::object::{GroupKind, text_at};

/// The annotation in which the Deployment controller counts its templates.
pub(super) const REVISION_ANNOTATION: &str = "deployment.kubernetes.io/revision";
/// The time after its creation, in seconds, within which a Deployment gets its first status.
const FIRST_STATUS_SECONDS: i64 = 5;
/// The part of its deadline by which the controller's clock may be behind that of the API server.
/// It is ten seconds of the ten minutes that are the default.
const CLOCK_TOLERANCE_SECONDS: i64 = 60;

/// The fields of a spec that are read, here and for the claims of a StatefulSet.
pub(super) const SPEC_KEYS: [&str; 8] = [
    "minReadySeconds",
    "ordinals",
    "paused",
    "persistentVolumeClaimRetentionPolicy",
    "progressDeadlineSeconds",
    "replicas",
    "strategy",
    "updateStrategy",
];

/// Reads the rolling update of a Deployment, StatefulSet or DaemonSet; none for any other kind.
///
/// Reads only `metadata`, a few keys of `spec`, and `status`.
pub(crate) fn of(kind: &GroupKind, object: &Value) -> Option<ReplicaStatus> {
    if &*kind.group != "apps" {
        return None;
    }
    let replica_status = match &*kind.kind {
        "Deployment" => deployment(object),
        "StatefulSet" => stateful_set(object),
        "DaemonSet" => daemon_set(object),
        _ => return None,
    };
    let max_unavailable = UpdateStrategy::of(kind, object).max_loss(replica_status.replicas);
    Some(ReplicaStatus { max_unavailable, is_outdated: is_unobserved(object), ..replica_status })
}

/// Returns whether the controller gave up another rollout than the one that was written at this
/// time, RFC 3339. It leaves that condition of a Deployment until the next template has made
/// progress.
///
/// Its deadline begins with the last progress of any template. Where a rollback finds as many pods
/// as its rollout had, the controller sees no progress in its write, and may give up at once. So a
/// report within the deadline of the write is none of this rollout. One that does so by clocks that
/// differ is found by the deadline of the budget.
pub(super) fn is_failed_before(kind: &GroupKind, object: &Value, time: &str) -> bool {
    let progressing = find_condition(object, "Progressing").filter(|_| kind.is("apps", "Deployment"));
    let reported = progressing
        .filter(|progressing| text_at(progressing, &["reason"]) == "ProgressDeadlineExceeded")
        .and_then(|progressing| unix_seconds(text_at(progressing, &["lastUpdateTime"])));
    let deadline = count(object, &["spec", "progressDeadlineSeconds"]).map_or(0, i64::from);
    let least = deadline - deadline / CLOCK_TOLERANCE_SECONDS;
    // Both times are cut to whole seconds, so a difference of N may be hardly more than N - 1.
    reported
        .zip(unix_seconds(time))
        .is_some_and(|(reported, written)| reported <= written.saturating_add(least))
}

/// Returns the overlay on a workload's content. A held rollout without an annotation was held by
/// us, and somebody took our annotation away. It must not pass for one that is let go.
pub(super) fn overlay_state(
    kind: &GroupKind,
    object: &Value,
    annotation: Option<&str>,
) -> RolloutOverlayState {
    let is_at_step = kind.is("apps", "Deployment")
        && count(object, &["spec", "minReadySeconds"]) == Some(HELD_MIN_READY_SECONDS);
    match RolloutOverlayState::read(annotation) {
        RolloutOverlayState::Plain if is_at_step => RolloutOverlayState::Unreadable,
        shown => shown,
    }
}

fn deployment(object: &Value) -> ReplicaStatus {
    let replicas = count(object, &["spec", "replicas"]).unwrap_or(1);
    let all = status(object, "replicas");
    let numbers = ReplicaStatus {
        replicas,
        pods: all,
        updated: status(object, "updatedReplicas"),
        ready: status(object, "readyReplicas"),
        available: status(object, "availableReplicas"),
        ..ReplicaStatus::default()
    };
    let phase = if is_never_observed(object) || is_first_start(object, numbers, all) {
        WorkloadPhase::FirstStart
    } else if is_unobserved(object) || all > numbers.updated {
        WorkloadPhase::Replacing
    } else if numbers.updated < replicas && is_progressing(object) {
        // Strategy Recreate, between the end of the old pods and the first of the new ones.
        WorkloadPhase::Replacing
    } else if numbers.updated < replicas || numbers.available < replicas {
        WorkloadPhase::Recovering
    } else {
        WorkloadPhase::Settled
    };
    ReplicaStatus { phase, ..numbers }
}

/// Returns whether nothing of this Deployment was ever up: its first rollout never ended, or its
/// condition `Available` has been false since its creation.
fn is_first_start(object: &Value, numbers: ReplicaStatus, all: u32) -> bool {
    // The controller sets this reason at the end of a rollout, and gives up its deadline with it.
    let in_rollout =
        ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ProgressDeadlineExceeded"];
    let reason =
        find_condition(object, "Progressing").map_or("", |progressing| text_at(progressing, &["reason"]));
    let revision = text_at(object, &["metadata", "annotations", REVISION_ANNOTATION]);
    let is_one_template = all == numbers.updated;
    if revision == "1" && is_one_template && in_rollout.contains(&reason) {
        return true;
    }
    let Some(available) = find_condition(object, "Available") else {
        return is_one_template && numbers.available == 0;
    };
    if numbers.available > 0 || text_at(available, &["status"]) == "True" {
        return false;
    }
    let since = unix_seconds(text_at(available, &["lastTransitionTime"]));
    let created = unix_seconds(text_at(object, &["metadata", "creationTimestamp"]));
    since
        .zip(created)
        .is_some_and(|(since, created)| since.saturating_sub(created).abs() <= FIRST_STATUS_SECONDS)
}

/// Returns whether the controller has a newer template in its hands; it drops the condition where
/// the deadline for progress is infinite.
fn is_progressing(object: &Value) -> bool {
    find_condition(object, "Progressing")
        .is_some_and(|progressing| text_at(progressing, &["reason"]) != "NewReplicaSetAvailable")
}

fn stateful_set(object: &Value) -> ReplicaStatus {
    let replicas = count(object, &["spec", "replicas"]).unwrap_or(1);
    let numbers = ReplicaStatus {
        replicas,
        pods: status(object, "replicas"),
        updated: status(object, "updatedReplicas"),
        ready: status(object, "readyReplicas"),
        available: status(object, "availableReplicas"),
        ..ReplicaStatus::default()
    };
    let revision = |key: &str| text_at(object, &["status", key]);
    let moving = revision("currentRevision") != revision("updateRevision");
    let partition = count(object, &["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0);
    let numbers = ReplicaStatus {
        partition,
        ordinal_start: count(object, &["spec", "ordinals", "start"]).unwrap_or(0),
        ..numbers
    };
    // Pods below the partition keep the older template on purpose, and OnDelete moves none by
    // itself.
    let target = if is_on_delete(object) { 0 } else { replicas.saturating_sub(partition) };
    let phase = if is_never_observed(object) {
        WorkloadPhase::FirstStart
    } else if is_unobserved(object) || (moving && numbers.updated < target) {
        WorkloadPhase::Replacing
    } else {
        settled_or_missing(object, numbers, !moving)
    };
    ReplicaStatus { phase, ..numbers }
}

fn daemon_set(object: &Value) -> ReplicaStatus {
    let numbers = ReplicaStatus {
        replicas: status(object, "desiredNumberScheduled"),
        pods: status(object, "currentNumberScheduled"),
        updated: status(object, "updatedNumberScheduled"),
        ready: status(object, "numberReady"),
        available: status(object, "numberAvailable"),
        misscheduled: status(object, "numberMisscheduled"),
        ..ReplicaStatus::default()
    };
    // Pods of an older template; a node without any pod is missing one, not replacing it.
    let older = status(object, "currentNumberScheduled").saturating_sub(numbers.updated);
    let phase = if is_never_observed(object) {
        WorkloadPhase::FirstStart
    } else if is_unobserved(object) || (older > 0 && !is_on_delete(object)) {
        WorkloadPhase::Replacing
    } else {
        settled_or_missing(object, numbers, older == 0)
    };
    ReplicaStatus { phase, ..numbers }
}

/// Returns the phase of the two kinds whose status has no history. A spec that was never changed
/// and has no available pod is on its first start.
fn settled_or_missing(object: &Value, numbers: ReplicaStatus, is_one_template: bool) -> WorkloadPhase {
    if numbers.available >= numbers.replicas {
        WorkloadPhase::Settled
    } else if is_one_template
        && numbers.available == 0
        && count(object, &["metadata", "generation"]) == Some(1)
    {
        WorkloadPhase::FirstStart
    } else {
        WorkloadPhase::Recovering
    }
}

fn is_on_delete(object: &Value) -> bool {
    text_at(object, &["spec", "updateStrategy", "type"]) == "OnDelete"
}

/// Returns whether the controller has not observed the object at all.
fn is_never_observed(object: &Value) -> bool {
    count(object, &["status", "observedGeneration"]).unwrap_or(0) == 0 && status(object, "replicas") == 0
}

/// Returns whether the controller has not seen the newest spec yet. A generation that the object
/// has not reached was not seen either: somebody may write it in advance, for a later spec.
fn is_unobserved(object: &Value) -> bool {
    let generation = count(object, &["metadata", "generation"]);
    generation.is_some() && count(object, &["status", "observedGeneration"]) != generation
}

fn find_condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| text_at(condition, &["type"]) == name)
}

fn status(object: &Value, key: &str) -> u32 {
    count(object, &["status", key]).unwrap_or(0)
}

fn count(object: &Value, path: &[&str]) -> Option<u32> {
    crate::object::value_at(object, path)?.as_u64().map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn unix_seconds(timestamp: &str) -> Option<i64> {
    timestamp.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}
