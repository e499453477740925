//! Pods that block a StatefulSet for ever.

use std::time::{Duration, Instant};

use super::harness::Harness;
use super::pods::pod;
use super::world::{FIRST, desired, gvk, id, reading};
use crate::engine::rollout::stuck_stateful_set::{DELETION_RETRY_DELAY, state};
use crate::engine::*;
use crate::object::ObjectId;

fn db() -> ObjectId {
    id("apps", "StatefulSet", "shop", "db")
}

/// Returns a set at its first content, which is held where a rollout fails.
fn at_rest() -> Harness {
    let mut harness = Harness::new(1);
    let budget = Budget {
        deadline: Duration::from_secs(10),
        on_failure: OnFailure::Quarantine,
        ..super::world::budget(1)
    };
    harness.engine = harness.fresh_with(budget);
    let kind = db().group_kind();
    let mut inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    inventory.kinds.insert(kind.clone());
    harness.engine.set_inventory(FIRST, inventory);
    harness.engine.set_kind_availability(gvk(&db()), KindAvailability::Served);
    harness.engine.list_started(&kind);
    harness.engine.list_complete(&kind);
    commit(&mut harness, 1);
    harness.settle();
    harness
}

fn commit(harness: &mut Harness, content: u32) {
    harness.read(reading(&format!("r{content}"), &[("db", Some(desired(&db(), content, "db")))]));
}

/// Lets the newest content be written; the rollout that it begins does not end.
fn begin(harness: &mut Harness, content: u32) {
    commit(harness, content);
    let wanted = desired(&db(), content, "db").hash;
    let shows = |harness: &Harness| harness.world.things[&db()].release.as_ref().map(|release| release.hash);
    for _ in 0..20 {
        if shows(harness) == Some(wanted) {
            break;
        }
        harness.engine.process_changes();
        harness.step(&db());
        harness.keep_ledger();
    }
    assert_eq!(shows(harness), Some(wanted));
    harness.deliver(usize::MAX);
}

/// Shows the last pod of this revision, not Ready; the newest revision is another.
fn observe_revisions(harness: &mut Harness, revision: &str, newest: &str) {
    let pod = |ordinal: u32| PodFacts {
        uid: Uid(format!("{ordinal}").into()),
        ready: if ordinal == 2 { Readiness::NotReady } else { Readiness::Ready },
        ..pod(&format!("db-{ordinal}"), if ordinal == 2 { revision } else { "r1" })
    };
    let rv = harness.engine.informer_object(&db()).unwrap().rv;
    let pods = WorkloadPods {
        rv,
        current: None,
        newest: Some(newest.into()),
        pods: (0..3).map(pod).collect(),
        sets: Box::default(),
        last_failed: None,
        creation_failure: None,
    };
    harness.engine.record_pods(&db(), pods);
    harness.engine.advance(harness.now);
}

fn freed(harness: &mut Harness) -> Vec<String> {
    harness.engine.stuck_pods(harness.now).iter().map(|pod| pod.name.to_string()).collect()
}

/// Returns a set whose second content has failed.
fn failed() -> Harness {
    let mut harness = at_rest();
    begin(&mut harness, 2);
    observe_revisions(&mut harness, "r2", "r2");
    harness.pass_time(Duration::from_secs(11));
    harness.engine.advance(harness.now);
    harness.keep_ledger();
    harness
}

#[test]
fn a_pod_of_a_rollout_that_failed_is_not_waited_for_by_the_next_content() {
    let mut harness = failed();
    assert_eq!(harness.world.rejections[0].action, RejectionAction::Quarantine);
    assert!(freed(&mut harness).is_empty(), "nobody has decided yet");
    begin(&mut harness, 3);
    observe_revisions(&mut harness, "r2", "r3");
    assert_eq!(freed(&mut harness), ["db-2"]);
    // One more content in the middle of that changes nothing about it.
    begin(&mut harness, 4);
    observe_revisions(&mut harness, "r2", "r4");
    assert_eq!(freed(&mut harness), ["db-2"]);
}

#[test]
fn a_pod_of_a_rollout_that_goes_on_may_just_be_slow() {
    let mut harness = at_rest();
    begin(&mut harness, 2);
    observe_revisions(&mut harness, "r2", "r2");
    begin(&mut harness, 3);
    observe_revisions(&mut harness, "r2", "r3");
    assert!(freed(&mut harness).is_empty());
}

/// Holds a partition, below which a pod is in trouble.
#[test]
fn below_a_partition_only_what_was_replaced_is_not_waited_for() {
    let check = |revision: &str, current: Option<&str>, partition: u32, expected: &[&str]| {
        let mut harness = at_rest();
        begin(&mut harness, 2);
        begin(&mut harness, 3);
        let mut live = harness.engine.informer_object(&db()).unwrap().clone();
        live.rv = ResourceVersion(live.rv.0 + 1);
        live.replica_status.as_mut().unwrap().partition = partition;
        let rv = live.rv;
        harness.engine.observe_object(&db(), live);
        let pod = |ordinal: u32| PodFacts {
            uid: Uid(format!("{ordinal}").into()),
            ready: if ordinal == 1 { Readiness::NotReady } else { Readiness::Ready },
            new_restarts: if ordinal == 1 { MAX_CONTAINER_RESTARTS } else { 0 },
            ..pod(&format!("db-{ordinal}"), if ordinal == 1 { revision } else { "r1" })
        };
        let pods = WorkloadPods {
            rv,
            newest: Some("r3".into()),
            current: current.map(Into::into),
            pods: (0..3).map(pod).collect(),
            sets: Box::default(),
            last_failed: None,
            creation_failure: None,
        };
        harness.engine.record_pods(&db(), pods);
        assert_eq!(freed(&mut harness), expected, "{revision} {current:?} {partition}");
    };
    check("r2", Some("r1"), 2, &["db-1"]);
    // It would be made anew as it is.
    check("r1", Some("r1"), 2, &[]);
    check("r2", None, 2, &[]);
    // Beyond the partition whatever is not the newest goes.
    check("r2", Some("r1"), 1, &["db-1"]);
    check("r1", Some("r1"), 1, &["db-1"]);
    check("r2", None, 0, &["db-1"]);
    check("r3", Some("r1"), 1, &[]);
}

/// Returns a set whose controller waits for a pod of a content that failed.
fn stuck() -> Harness {
    let mut harness = failed();
    begin(&mut harness, 3);
    observe_revisions(&mut harness, "r2", "r3");
    harness
}

// The claim of the rollout may be from before.
#[test]
fn no_pod_is_deleted_for_what_is_only_observed_held_or_left_alone() {
    let marked = |change: &dyn Fn(&mut LiveObject)| {
        let mut harness = stuck();
        let mut live = harness.engine.informer_object(&db()).unwrap().clone();
        change(&mut live);
        harness.engine.observe_object(&db(), live);
        observe_revisions(&mut harness, "r2", "r3");
        freed(&mut harness)
    };
    assert_eq!(marked(&|_| {}), ["db-2"]);
    let hold = Some("1-a until=1970-01-02T00:00:00Z heap dump");
    assert_eq!(marked(&|live| live.intents = ObjectIntents::parse(None, None, hold)), [""; 0]);
    assert_eq!(marked(&|live| live.opt_out = Some("rhumb.dev/reconcile")), [""; 0]);
    let mut observed = stuck();
    observed.engine.sources[FIRST].declared.writes = SourceWrites::Observed;
    assert_eq!(freed(&mut observed), [""; 0]);
}

#[test]
fn a_pod_is_counted_on_as_far_as_it_shows() {
    use super::pods::{ready, waiting};

    let begun = Instant::now();
    let now = begun + TRANSIENT_REASON_GRACE;
    let check = |pod: PodFacts, expected: PodAvailability| assert_eq!(state(&pod, now), expected, "{pod:?}");
    let new = || pod("db-0", "r1");
    let slow = PodAvailability::Unready(Duration::ZERO);
    check(new(), slow);
    check(ready("db-0", "r1", begun), PodAvailability::Ready);
    check(PodFacts { terminating: true, ..new() }, PodAvailability::Terminating);
    check(PodFacts { terminating: true, ..ready("db-0", "r1", begun) }, PodAvailability::Terminating);
    check(PodFacts { has_ended: true, ..new() }, PodAvailability::InTrouble);
    check(PodFacts { new_restarts: MAX_CONTAINER_RESTARTS - 1, ..new() }, slow);
    check(PodFacts { new_restarts: MAX_CONTAINER_RESTARTS, ..new() }, PodAvailability::InTrouble);
    check(waiting(new(), "ContainerCreating", begun), slow);
    check(waiting(new(), "CrashLoopBackOff", now), PodAvailability::InTrouble);
    check(waiting(new(), "RunContainerError", now), slow);
    check(waiting(new(), "RunContainerError", begun), PodAvailability::InTrouble);
    check(waiting(ready("db-0", "r1", begun), "CrashLoopBackOff", now), PodAvailability::Ready);
}

#[test]
fn a_pod_of_one_version_is_deleted_once() {
    let mut harness = stuck();
    assert_eq!(freed(&mut harness), ["db-2"]);
    observe_revisions(&mut harness, "r2", "r3");
    assert_eq!(freed(&mut harness), [""; 0]);
}

// Its deletion may have failed, and a pod whose image is never pulled does not change.
#[test]
fn a_pod_that_is_still_there_is_deleted_again_after_a_time() {
    let mut harness = stuck();
    assert_eq!(freed(&mut harness), ["db-2"]);
    let again = harness.now + DELETION_RETRY_DELAY;
    assert_eq!(harness.engine.next_deletion_due(harness.now), Some(again));
    harness.pass_time(DELETION_RETRY_DELAY);
    assert_eq!(freed(&mut harness), ["db-2"]);
    assert_eq!(freed(&mut harness), [""; 0]);
}
