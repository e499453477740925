//! The evaluation of one rollout, by what the cluster shows of its workload.

use std::sync::Arc;
use std::time::Duration;

use super::harness::Harness;
use super::pods::{pod, ready, waiting};
use super::shared_budget::{at_rest, budget, one};
use super::world::{FIRST, workload};
use crate::engine::rollout::evaluation::{RolloutEvaluation, RolloutVerdict};
use crate::engine::rollout::lost_writes::LOST_WRITE_TIMEOUT;
use crate::engine::rollout::recreation::RolloutMethod;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;

/// Returns `web`, which no unit is about, as this change shows it.
fn shown(change: impl FnOnce(&mut LiveObject)) -> Harness {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    let mut live = harness.engine.live_object(&workload("web")).unwrap().clone();
    change(&mut live);
    live.rv = ResourceVersion(live.rv.0 + 1);
    harness.engine.observe_object(&workload("web"), live);
    harness
}

/// Returns `web` in this phase.
fn in_phase(phase: WorkloadPhase) -> Harness {
    shown(|live| live.replica_status.as_mut().unwrap().phase = phase)
}

/// Returns a rollout of `web` that was claimed here, and whose write any view shows.
fn claimed(harness: &Harness) -> Rollout {
    let claim = harness.engine.make_claim(FIRST, one("web", 1).hash, 1);
    Rollout::new(BudgetSlot::Taken, 1, Some(claim), Some(ResourceVersion(0)))
}

fn evaluate(harness: &Harness, rollout: &Rollout) -> RolloutEvaluation {
    harness.engine.evaluate_rollout(&workload("web"), rollout, harness.now)
}

#[test]
fn a_rollout_is_done_where_it_is_complete_or_nothing_of_it_has_to_be_waited_for() {
    let check = |phase: WorkloadPhase, change: &dyn Fn(&mut Rollout), expected: bool| {
        let harness = in_phase(phase);
        let mut rollout = claimed(&harness);
        change(&mut rollout);
        let found = evaluate(&harness, &rollout);
        assert_eq!(found.verdict == RolloutVerdict::Done, expected, "{phase:?} {found:?}");
    };
    check(WorkloadPhase::Settled, &|_| {}, true);
    check(WorkloadPhase::Replacing, &|_| {}, false);
    check(WorkloadPhase::Recovering, &|_| {}, false);
    // Nothing of it was ever up, unless it was deleted to be created again.
    check(WorkloadPhase::FirstStart, &|_| {}, true);
    check(WorkloadPhase::FirstStart, &|rollout| rollout.method = RolloutMethod::Recreate, false);
    // The one of somebody else is over with its last new pod.
    check(WorkloadPhase::Replacing, &|rollout| rollout.claim = None, false);
    check(WorkloadPhase::Recovering, &|rollout| rollout.claim = None, true);
}

/// Returns the only pod of a workload, as it was reported at a version.
fn pod_at(rv: ResourceVersion, pod: PodFacts) -> WorkloadPods {
    WorkloadPods {
        rv,
        newest: Some("new".into()),
        current: None,
        pods: [pod].into(),
        sets: Box::default(),
        last_failed: None,
        creation_failure: None,
    }
}

// Somebody may write the status of the workload, and not those of its pods.
#[test]
fn a_rollout_is_not_complete_while_its_own_new_pods_are_seen_to_fail() {
    let harness = in_phase(WorkloadPhase::Settled);
    let version = harness.engine.live_object(&workload("web")).unwrap().rv.0;
    let check = |pod: PodFacts, written: u64, expected: bool| {
        let pods = pod_at(ResourceVersion(version - 1), pod);
        let min_resource_version = Some(ResourceVersion(written));
        let rollout = Rollout { pods: Some(Arc::new(pods)), min_resource_version, ..claimed(&harness) };
        let found = evaluate(&harness, &rollout);
        let is_going_on = matches!(found.verdict, RolloutVerdict::InProgress(Some(_)));
        assert_eq!((found.verdict == RolloutVerdict::Done, is_going_on), (expected, !expected), "{found:?}");
    };
    let failing = |revision: &str| waiting(pod("web-1", revision), "CrashLoopBackOff", harness.now);
    check(ready("web-1", "new", harness.now), version - 1, true);
    check(failing("new"), version - 1, false);
    check(failing("old"), version - 1, true);
    // They were reported before its write.
    check(failing("new"), version, true);
}

// Nobody would see otherwise that they are healthy again, and the rollout would never end.
#[test]
fn the_pods_of_a_failed_rollout_are_watched_while_its_status_alone_is_healthy() {
    let check = |phase: WorkloadPhase, pod: PodFacts, expected: bool| {
        let mut harness = in_phase(phase);
        let name = format!("{phase:?} {pod:?}");
        let pods = pod_at(harness.engine.live_object(&workload("web")).unwrap().rv, pod);
        let failed = Some(RolloutFailureCause::Status("it crashes".into()));
        let rollout = Rollout { failed, pods: Some(Arc::new(pods)), ..claimed(&harness) };
        let is_done = evaluate(&harness, &rollout).verdict == RolloutVerdict::Done;
        harness.engine.rollouts.in_flight.insert(workload("web"), rollout);
        let is_watched = !harness.engine.workloads_to_watch().is_empty();
        assert_eq!((is_watched, is_done), (expected, phase == WorkloadPhase::Settled && !expected), "{name}");
    };
    let now = in_phase(WorkloadPhase::Settled).now;
    let failing = || waiting(pod("web-1", "new"), "CrashLoopBackOff", now);
    check(WorkloadPhase::Settled, failing(), true);
    check(WorkloadPhase::Settled, ready("web-1", "new", now), false);
    check(WorkloadPhase::Recovering, failing(), false);
}

// All its pods are available still, until the deletion is through.
#[test]
fn a_workload_that_is_being_deleted_to_be_created_again_is_not_complete() {
    let harness = shown(|live| live.deleting = true);
    for (method, expected) in [(RolloutMethod::Update, true), (RolloutMethod::Recreate, false)] {
        let found = evaluate(&harness, &Rollout { method, ..claimed(&harness) });
        assert_eq!(found.verdict == RolloutVerdict::Done, expected, "{found:?}");
    }
}

#[test]
fn numbers_from_before_the_newest_spec_are_no_progress() {
    for (is_outdated, expected) in [(false, Some((2, 1))), (true, None)] {
        let phase = WorkloadPhase::Replacing;
        let status = ReplicaStatus { replicas: 3, updated: 2, available: 1, phase, ..Default::default() };
        let harness = shown(|live| live.replica_status = Some(ReplicaStatus { is_outdated, ..status }));
        let found = evaluate(&harness, &claimed(&harness));
        assert_eq!(found.tracking.progress.best_numbers, expected, "{is_outdated}");
    }
}

#[test]
fn the_events_about_a_failure_are_those_of_the_failing_pod_and_of_its_workload() {
    let harness = in_phase(WorkloadPhase::Replacing);
    let failing = waiting(pod("web-2", "new"), "InvalidImageName", harness.now);
    let pods = WorkloadPods {
        rv: ResourceVersion(1),
        newest: Some("new".into()),
        current: None,
        pods: [ready("web-1", "new", harness.now), failing].into(),
        sets: Box::default(),
        last_failed: None,
        creation_failure: None,
    };
    let found = evaluate(&harness, &Rollout { pods: Some(Arc::new(pods)), ..claimed(&harness) });
    let RolloutVerdict::Failed(why, event_subjects) = found.verdict else { panic!("{found:?}") };
    let failing = RolloutFailure {
        pod: Some("web-2".into()),
        container: Some("c".into()),
        reason: "InvalidImageName".into(),
        message: "says why".into(),
        restarts: None,
    };
    assert_eq!(why, RolloutFailureCause::Pods(failing));
    let of_workload = harness.engine.live_object(&workload("web")).unwrap().uid.clone();
    assert_eq!(event_subjects, [Uid("web-2".into()), of_workload]);
}

// It may be carried out until then, and its answer or the cluster may show that yet.
#[test]
fn a_write_without_an_answer_is_given_up_after_its_time_where_all_is_seen_and_nothing_is_written() {
    let web = workload("web");
    // The time that has passed, whether the write is given up, and when it is judged again.
    let check = |change: &dyn Fn(&mut Engine), passed: Duration, expected: bool, due: Option<Duration>| {
        let mut harness = in_phase(WorkloadPhase::Settled);
        change(&mut harness.engine);
        let rollout = Rollout { unanswered_since: Some(harness.now), ..claimed(&harness) };
        let verdict = harness.engine.evaluate_unshown(&web, &rollout, harness.now + passed);
        let expected = if expected {
            RolloutVerdict::Unanswered
        } else {
            RolloutVerdict::InProgress(due.map(|due| harness.now + due))
        };
        assert_eq!(verdict, expected, "{passed:?}");
    };
    let early = LOST_WRITE_TIMEOUT.saturating_sub(Duration::from_nanos(1));
    check(&|_| {}, early, false, Some(LOST_WRITE_TIMEOUT));
    check(&|_| {}, LOST_WRITE_TIMEOUT, true, None);
    check(&|engine| engine.observe_absence(&web), LOST_WRITE_TIMEOUT, false, None);
    let syncing = |engine: &mut Engine| engine.set_informer_state(&web.group_kind(), KindState::Syncing);
    check(&syncing, LOST_WRITE_TIMEOUT, false, None);
    check(&|engine| engine.rollouts.writes_in_flight.begin(&web), LOST_WRITE_TIMEOUT, false, None);
}
