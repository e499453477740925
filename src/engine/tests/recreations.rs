//! Workloads that are deleted to be created again: until they are complete, nothing else begins.

use std::time::Duration;

use serde_json::json;

use super::harness::Harness;
use super::shared_budget::{THEIRS, at_rest, budget, elsewhere, one, theirs};
use super::wakes::lose_answer;
use super::world::{AuditEntry, FIRST, all_ready, desired, reading, workload};
use crate::engine::rollout::progress::ProgressTracking;
use crate::engine::rollout::recreation::RolloutMethod;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;
use crate::object::{GroupKind, ObjectId};

/// Returns the files of two workloads, of which the first one may be deleted and created again.
fn files(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    let mut a = (*desired(&workload("a"), content, "a")).clone();
    a.traits.recreate = RecreatePolicy::Allowed;
    [("a", Some(a.into())), ("b", Some(desired(&workload("b"), content, "b")))]
}

/// Returns both workloads with a newer content where one may restart. The first one is about to be
/// deleted, as the change was refused.
fn refused() -> (Harness, [ObjectId; 2], Action) {
    let [a, b] = ["a", "b"].map(workload);
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    let action = harness.decide(&a).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
    let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
    harness.engine.record_result(&a, &action, ActionResult::Failed(why), harness.now);
    let deletion = harness.decide(&a).action;
    assert!(matches!(deletion, Action::Delete(_, _, DeletionReason::Recreate)), "{deletion:?}");
    harness.world.log.clear();
    (harness, [a, b], deletion)
}

/// Returns the same once the deletion is shown.
fn deleted() -> (Harness, [ObjectId; 2]) {
    let (mut harness, ids, _) = refused();
    harness.step(&ids[0]);
    harness.deliver(usize::MAX);
    assert!(matches!(harness.world.log[..], [AuditEntry::Deleted(..)]), "{:?}", harness.world.log);
    (harness, ids)
}

/// Returns the creation that is decided next.
fn creation(harness: &mut Harness, id: &ObjectId) -> Action {
    // The server is asked first whether it is gone.
    harness.step(id);
    let action = harness.decide(id).action;
    let is_creation = matches!(&action, Action::Apply(apply) if apply.precondition == Precondition::Absent);
    assert!(is_creation, "{action:?}");
    action
}

/// Shows a workload in this phase.
fn show(harness: &mut Harness, id: &ObjectId, phase: WorkloadPhase) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.phase, thing.rv) = (phase, rv);
    harness.world.events.clear();
    harness.world.announce(id);
    harness.deliver(usize::MAX);
}

/// Returns whether another workload waits for the budget.
fn waits(harness: &mut Harness, id: &ObjectId) -> bool {
    matches!(harness.decide(id).reason, Some(Reason::Budget(_)))
}

/// Returns the failures that were reported of a workload.
fn failures(harness: &mut Harness, id: &ObjectId) -> Vec<RolloutFailureCause> {
    let events = harness.engine.take_rollout_events().into_iter().filter(|event| event.id == *id);
    events
        .filter_map(|event| if let RolloutEventKind::Failed(why) = event.kind { Some(why) } else { None })
        .collect()
}

#[test]
fn a_workload_that_is_created_again_holds_its_slot_until_it_is_complete() {
    let (mut harness, [a, b]) = deleted();
    assert!(waits(&mut harness, &b), "it is gone");
    let loads = harness.engine.loads();
    let unavailable: Vec<(&ObjectId, u32)> = loads.iter().map(|load| (&load.id, load.unavailable)).collect();
    assert_eq!(unavailable, [(&a, 3)]);
    let action = creation(&mut harness, &a);
    let result = harness.world.perform(&a, &action);
    harness.handle(Input::Answered { id: a.clone(), action: Box::new(action), result });
    show(&mut harness, &a, WorkloadPhase::FirstStart);
    assert!(waits(&mut harness, &b), "its pods start");
    assert_eq!(harness.engine.workloads_in_flight(), [a.clone()].into());
    show(&mut harness, &a, WorkloadPhase::Settled);
    harness.settle();
    assert_eq!(harness.world.log.last(), Some(&AuditEntry::Changed(b)));
    assert_eq!(failures(&mut harness, &a), []);
    assert!(harness.world.is_free());
}

#[test]
fn a_workload_that_is_not_created_again_gives_its_slot_to_others_and_is_reported() {
    let check = |retry: Option<Duration>, passes_deadline: bool, expected: Option<RolloutFailureCause>| {
        let (mut harness, [a, b]) = deleted();
        let action = creation(&mut harness, &a);
        harness.engine.note_dispatch(&a, &action);
        let why = WriteFailure::Refused("the quota is used up".into(), RefusalRule::Other, retry);
        harness.engine.record_result(&a, &action, ActionResult::Failed(why), harness.now);
        assert_eq!(waits(&mut harness, &b), retry.is_some(), "{retry:?}");
        if passes_deadline {
            let deadline = harness.engine.rollouts.budget.deadline;
            harness.pass_time(deadline);
        }
        assert_eq!(waits(&mut harness, &b), expected.is_none(), "{retry:?} {passes_deadline}");
        assert_eq!(failures(&mut harness, &a), Vec::from_iter(expected));
    };
    let deadline = deleted().0.engine.rollouts.budget.deadline;
    let refused = RefusalCause::Message("the quota is used up".into());
    check(None, false, Some(RolloutFailureCause::RecreationRefused(refused)));
    check(Some(Duration::from_secs(10)), false, None);
    check(Some(Duration::from_secs(10)), true, Some(RolloutFailureCause::WorkloadMissing(deadline)));
}

#[test]
fn a_deleted_workload_that_is_no_longer_wanted_gives_its_slot_to_others() {
    let (mut harness, [_, b]) = deleted();
    assert!(waits(&mut harness, &b));
    harness.read(reading("r3", &[("a", None)]));
    harness.settle();
    assert_eq!(harness.world.log[1..], [AuditEntry::Changed(b)]);
    assert_eq!(harness.engine.workloads_in_flight(), [].into());
}

#[test]
fn a_workload_whose_deletion_got_no_answer_is_created_again() {
    let (mut harness, [a, b], deletion) = refused();
    harness.engine.note_dispatch(&a, &deletion);
    harness.world.perform(&a, &deletion);
    lose_answer(&mut harness, &a, &deletion);
    harness.deliver(usize::MAX);
    assert!(waits(&mut harness, &b));
    harness.pass_time(Duration::from_secs(1));
    harness.engine.mark_all();
    harness.settle();
    let log = [AuditEntry::Created(a), AuditEntry::Changed(b)];
    assert_eq!(harness.world.log[1..], log);
    assert!(harness.world.is_free());
}

// The older content takes down one pod at a time, and so does the newer one as an update.
#[test]
fn a_deletion_waits_for_the_budget_of_all_its_pods_also_while_an_older_content_rolls_out() {
    let a = workload("a");
    let files = |content: u32| {
        let mut one = (*one("a", content)).clone();
        one.traits.recreate = RecreatePolicy::Allowed;
        [("a", Some(SharedDesiredObject::from(one)))]
    };
    for (unavailable, is_deleted) in [("1", false), ("3", true)] {
        let mut harness = at_rest(&["a"], &budget(unavailable, 100));
        harness.read(reading("r2", &files(2)));
        while !matches!(harness.step(&a), Some(Action::Apply(_))) {}
        harness.deliver(usize::MAX);
        harness.read(reading("r3", &files(3)));
        let action = harness.decide(&a).action;
        assert!(matches!(action, Action::Apply(_)), "{action:?}");
        harness.engine.note_dispatch(&a, &action);
        let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
        harness.engine.record_result(&a, &action, ActionResult::Failed(why), harness.now);
        let decision = harness.decide(&a);
        let deletes = matches!(decision.action, Action::Delete(_, _, DeletionReason::Recreate));
        let waits = matches!(decision.reason, Some(Reason::Budget(_)));
        assert_eq!((deletes, waits), (is_deleted, !is_deleted), "{unavailable}: {decision:?}");
        let claimed = harness.world.ledger.claims.get(&a).map(|claim| (claim.reserved, claim.recreates));
        assert_eq!(claimed, Some(if is_deleted { (3, true) } else { (1, false) }), "{unavailable}");
    }
}

// The claim for an update to the same content takes down all pods too.
#[test]
fn a_deletion_waits_until_its_claim_says_that_the_workload_is_created_again() {
    let a = workload("a");
    let strategy = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let files = |content: u32| {
        let mut one = (*desired(&a, content, "a")).clone();
        one.traits.recreate = RecreatePolicy::Allowed;
        one.strategy = UpdateStrategy::of(&GroupKind::new("apps", "Deployment"), &strategy);
        [("a", Some(SharedDesiredObject::from(one)))]
    };
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    let claimed = |harness: &Harness| {
        let claim = &harness.world.ledger.claims[&a];
        (claim.reserved, claim.recreates)
    };
    let action = harness.decide(&a).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
    assert_eq!(claimed(&harness), (3, false));
    let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
    harness.engine.record_result(&a, &action, ActionResult::Failed(why), harness.now);
    assert_eq!(harness.engine.decide(&a, harness.now).reason, Some(Reason::Claiming));
    let deletion = harness.decide(&a).action;
    assert!(matches!(deletion, Action::Delete(_, _, DeletionReason::Recreate)), "{deletion:?}");
    assert_eq!(claimed(&harness), (3, true));
}

/// Starts another process of the same source in the place of the one before.
fn restart(harness: &mut Harness) {
    harness.engine = harness.fresh(1);
    harness.engine.set_holder("two");
    harness.read(reading("r2", &files(2)));
    harness.keep_ledger();
}

#[test]
fn the_next_process_keeps_the_place_of_a_workload_that_it_creates_again() {
    let (mut harness, [a, b]) = deleted();
    restart(&mut harness);
    for passed in [Duration::ZERO, ABANDONED_CLAIM_AGE] {
        harness.engine.observe_foreign_workload(&a, None, harness.now + passed);
    }
    assert!(waits(&mut harness, &b), "it is gone");
    creation(&mut harness, &a);
    harness.step(&a);
    show(&mut harness, &a, WorkloadPhase::FirstStart);
    assert!(waits(&mut harness, &b), "its pods start");
    assert_eq!(harness.engine.workloads_in_flight(), [a.clone()].into());
    harness.keep_ledger();
    let claim = &harness.world.ledger.claims[&a];
    assert_eq!((&*claim.holder, claim.reserved, claim.recreates), ("two", 3, true));
    show(&mut harness, &a, WorkloadPhase::Settled);
    harness.settle();
    assert_eq!(harness.world.log[1..], [AuditEntry::Created(a), AuditEntry::Changed(b)]);
    assert!(harness.world.is_free());
}

#[test]
fn a_process_that_begins_while_a_recreated_workload_starts_keeps_its_place() {
    let (mut harness, [a, b]) = deleted();
    creation(&mut harness, &a);
    harness.step(&a);
    show(&mut harness, &a, WorkloadPhase::FirstStart);
    restart(&mut harness);
    assert!(waits(&mut harness, &b), "its pods start");
    show(&mut harness, &a, WorkloadPhase::Settled);
    harness.settle();
    assert_eq!(harness.world.log[1..], [AuditEntry::Created(a), AuditEntry::Changed(b)]);
    assert!(harness.world.is_free());
}

#[test]
fn the_next_process_gives_the_place_to_others_after_the_deadline() {
    let (mut harness, [a, b]) = deleted();
    restart(&mut harness);
    let action = creation(&mut harness, &a);
    harness.engine.note_dispatch(&a, &action);
    let retry = Some(Duration::from_secs(10));
    let why = WriteFailure::Refused("the webhook is down".into(), RefusalRule::Webhook, retry);
    harness.engine.record_result(&a, &action, ActionResult::Failed(why), harness.now);
    assert!(waits(&mut harness, &b), "it is tried again");
    let deadline = harness.engine.rollouts.budget.deadline;
    harness.pass_time(deadline.saturating_sub(Duration::from_secs(1)));
    assert!(waits(&mut harness, &b), "it may be created yet");
    harness.pass_time(Duration::from_secs(1));
    assert!(!waits(&mut harness, &b), "it has failed");
    assert_eq!(failures(&mut harness, &a), [RolloutFailureCause::WorkloadMissing(deadline)]);
}

/// Returns another process' claim for a workload that it deletes and creates again.
fn recreating() -> RolloutClaim {
    RolloutClaim { recreates: true, ..theirs(1) }
}

/// Returns the same of a process that waits for so long until the workload is there again.
fn recreating_within(seconds: u32) -> RolloutClaim {
    RolloutClaim { recreation_deadline: Some(seconds), ..recreating() }
}

/// Returns a process whose workload waits, as this claim of another one takes all that may roll.
fn waiting_for(claim: RolloutClaim) -> Harness {
    let soak = Duration::from_secs(10);
    let mut harness = at_rest(&["web"], &Budget { soak, max_workloads: 1, ..budget("100%", 100) });
    harness.world.ledger.claims.insert(elsewhere("api"), claim);
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.read(reading("r2", &[("web", Some(one("web", 2)))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    harness
}

#[test]
fn another_process_keeps_the_place_of_a_workload_until_it_must_have_given_it_up() {
    type ShownForm = fn(LiveObject) -> Option<LiveObject>;

    let missing: ShownForm = |_| None;
    let deleting: ShownForm = |live| Some(LiveObject { deleting: true, ..live });
    let resting: ShownForm = Some;
    // The claim, the view of its workload, and the time for which the claim counts.
    let check = |claim: RolloutClaim, view: ShownForm, expected: Duration| {
        let mut harness = waiting_for(claim.clone());
        let seen = view(harness.engine.informer_object(&workload("web")).unwrap().clone());
        let before = expected.saturating_sub(Duration::from_secs(1));
        for (passed, writes) in [(Duration::ZERO, 0), (before, 0), (expected, 1)] {
            harness.engine.observe_foreign_workload(&elsewhere("api"), seen.as_ref(), harness.now + passed);
            harness.settle();
            assert_eq!(harness.world.log.len(), writes, "{claim:?} {seen:?} after {passed:?}");
        }
    };
    let given_up = Budget::default().deadline + ABANDONED_CLAIM_AGE;
    check(recreating(), missing, given_up);
    check(recreating(), deleting, given_up);
    // Its process may be configured to wait longer, and nobody waits for ever.
    check(recreating_within(1), missing, given_up);
    check(recreating_within(3600), missing, Duration::from_hours(1) + ABANDONED_CLAIM_AGE);
    check(recreating_within(u32::MAX), missing, Duration::from_hours(2) + ABANDONED_CLAIM_AGE);
    check(recreating_within(3600), resting, ABANDONED_CLAIM_AGE);
    check(recreating(), resting, ABANDONED_CLAIM_AGE);
    check(theirs(1), missing, ABANDONED_CLAIM_AGE);
    check(theirs(1), deleting, ABANDONED_CLAIM_AGE);
    // Nobody is there any more to create it.
    check(RolloutClaim { holder_exited: true, ..recreating() }, missing, Duration::from_secs(10));
}

#[test]
fn a_workload_that_was_there_again_meanwhile_is_missing_anew() {
    let mut harness = waiting_for(recreating());
    let live = harness.engine.informer_object(&workload("web")).unwrap().clone();
    let starting = ReplicaStatus { phase: WorkloadPhase::FirstStart, ..all_ready() };
    let there = LiveObject { replica_status: Some(starting), ..live };
    let given_up = Budget::default().deadline + ABANDONED_CLAIM_AGE;
    let before = given_up.saturating_sub(Duration::from_secs(1));
    for (passed, seen, counts) in [
        (Duration::ZERO, None, true),
        (before, Some(&there), true),
        (given_up, None, true),
        (given_up + before, None, true),
        (given_up * 2, None, false),
    ] {
        harness.engine.observe_foreign_workload(&elsewhere("api"), seen, harness.now + passed);
        assert_eq!(harness.engine.is_counted(&elsewhere("api"), &recreating()), counts, "after {passed:?}");
    }
}

#[test]
fn nobody_creates_a_workload_again_whose_source_is_retired() {
    let mut harness = waiting_for(recreating());
    harness.engine.retire(THEIRS.into());
    for (passed, counts) in [(Duration::ZERO, true), (ABANDONED_CLAIM_AGE, false)] {
        harness.engine.observe_foreign_workload(&elsewhere("api"), None, harness.now + passed);
        assert_eq!(harness.engine.is_counted(&elsewhere("api"), &recreating()), counts, "after {passed:?}");
    }
}

#[test]
fn a_recreation_is_awaited_once_the_deletion_was_answered_and_while_its_workload_is_not_there() {
    type HarnessChange = fn(&mut Harness);

    let check = |method: RolloutMethod, written: Option<u64>, change: HarnessChange, expected: bool| {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        change(&mut harness);
        let claim = harness.engine.make_claim(FIRST, one("web", 1).hash, 3);
        let mut rollout = Rollout::new(BudgetSlot::Taken, 3, Some(claim), written.map(ResourceVersion));
        rollout.method = method;
        let (web, mut progress) = (workload("web"), ProgressTracking::default());
        let verdict = harness.engine.evaluate_recreation(&web, &rollout, &mut progress, harness.now);
        assert_eq!(verdict.is_some(), expected, "{method:?} {written:?}: {verdict:?}");
    };
    let gone: HarnessChange = |harness| harness.engine.observe_absence(&workload("web"));
    let deleting: HarnessChange = |harness| {
        let live = harness.engine.informer_object(&workload("web")).unwrap().clone();
        let rv = ResourceVersion(live.rv.0 + 1);
        harness.engine.observe_object(&workload("web"), LiveObject { deleting: true, rv, ..live });
    };
    check(RolloutMethod::Recreate, Some(1), gone, true);
    check(RolloutMethod::Recreate, Some(1), deleting, true);
    check(RolloutMethod::Recreate, Some(1), |_| {}, false);
    check(RolloutMethod::Recreate, None, gone, false);
    check(RolloutMethod::Update, Some(1), gone, false);
    check(RolloutMethod::Update, Some(1), deleting, false);
}
