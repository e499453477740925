//! Workloads that are deleted to be created again: until they are complete, nothing else begins.

use std::time::Duration;

use super::harness::Harness;
use super::shared_budget::{at_rest, budget, one};
use super::wakes::lose_answer;
use super::world::{AuditEntry, desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

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
fn failures(harness: &mut Harness, id: &ObjectId) -> Vec<String> {
    let events = harness.engine.take_rollout_events().into_iter().filter(|event| event.id == *id);
    events
        .filter_map(
            |event| if let RolloutEventKind::Failed(why) = event.kind { Some(why.to_string()) } else { None },
        )
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
    assert_eq!(failures(&mut harness, &a), [""; 0]);
    assert!(harness.world.is_free());
}

#[test]
fn a_workload_that_is_not_created_again_gives_its_slot_to_others_and_is_reported() {
    let check = |retry: Option<Duration>, passes_deadline: bool, expected: Option<&str>| {
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
        let said = failures(&mut harness, &a);
        let is_said = |words: &str| said.len() == 1 && said[0].starts_with(words);
        assert!(expected.map_or(said.is_empty(), is_said), "{said:?}");
    };
    check(None, false, Some("the quota is used up"));
    check(Some(Duration::from_secs(10)), false, None);
    check(
        Some(Duration::from_secs(10)),
        true,
        Some("it was deleted to be created again, and has been missing for "),
    );
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
        let claimed = harness.world.ledger.claims.get(&a).map(|claim| claim.reserved);
        assert_eq!(claimed, Some(if is_deleted { 3 } else { 1 }), "{unavailable}");
    }
}
