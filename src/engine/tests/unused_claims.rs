//! Claims that lie between two writes: one that no write has used yet, and one whose rollout is
//! over.

use std::time::Duration;

use super::harness::Harness;
use super::shared_budget::{THEIRS, at_rest, budget, files, one};
use super::world::{SET, config, desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

const NAMES: [&str; 2] = ["a", "b"];

/// Goes on with one workload until it is written.
fn write(harness: &mut Harness, name: &str) {
    while !matches!(harness.step(&workload(name)), Some(Action::Apply(_))) {
        harness.deliver(usize::MAX);
    }
}

/// The end of a rollout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RolloutEnd {
    Success,
    Failure,
}

/// Returns two workloads, where a rollout of the second one has ended; one that fails stays as it
/// is. Its claim has not been taken back yet.
fn ended(end: RolloutEnd, of_all: Budget) -> Harness {
    let mut harness = at_rest(&NAMES, &Budget { on_failure: OnFailure::Quarantine, ..of_all });
    harness.world.bad.extend((end == RolloutEnd::Failure).then(|| one("b", 2).hash));
    harness.read(reading("r2", &files(&["b"], 2)));
    write(&mut harness, "b");
    harness.finish_rollouts();
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
    harness
}

// Its failed rollout takes nothing any more, and the other workload is the first in the queue.
#[test]
fn a_claim_that_no_write_has_used_yet_takes_its_place_and_its_pods_from_others() {
    let wide = || budget("100%", 100);
    for (of_all, expected) in [
        (Budget { max_workloads: 2, ..wide() }, true),
        (Budget { max_workloads: 1, ..wide() }, false),
        (budget("1", 100), false),
    ] {
        let mut harness = ended(RolloutEnd::Failure, of_all.clone());
        harness.keep_ledger();
        harness.engine.rollouts.slot_requests.set_slow_start_limit(9);
        let mut may_be_repaired = |name: &str| {
            harness.world.drift(&workload(name));
            harness.deliver(usize::MAX);
            harness.step(&workload(name));
            matches!(harness.decide(&workload(name)).action, Action::Apply(_))
        };
        assert_eq!((may_be_repaired("b"), may_be_repaired("a")), (true, expected), "{of_all:?}");
    }
}

/// Decides about a repair of the second workload, whose content is that of its last claim.
fn repair_reason(mut harness: Harness) -> Option<Reason> {
    let id = workload("b");
    harness.world.drift(&id);
    harness.deliver(usize::MAX);
    for _ in 0..10 {
        let decision = harness.engine.decide(&id, harness.now);
        if matches!(decision.action, Action::Apply(_)) || decision.reason.is_some() {
            assert!(harness.engine.own_claim(&id).is_some(), "the claim before is still recorded");
            return decision.reason;
        }
        harness.act(&id, decision);
    }
    panic!("nothing is to be done about it");
}

#[test]
fn a_claim_whose_rollout_has_succeeded_lets_no_further_write_of_the_same_content_pass() {
    assert_eq!(repair_reason(ended(RolloutEnd::Success, budget("100%", 100))), Some(Reason::Claiming));
}

#[test]
fn a_claim_whose_rollout_gave_its_place_back_lets_no_further_write_of_the_same_content_pass() {
    assert_eq!(repair_reason(ended(RolloutEnd::Failure, budget("100%", 100))), Some(Reason::Claiming));
}

// The same claim would be written, so nothing would be, and no answer would come.
#[test]
fn a_repair_of_what_somebody_else_rolls_out_waits_for_no_claim_that_is_recorded() {
    let id = workload("b");
    let mut harness = ended(RolloutEnd::Success, budget("100%", 100));
    harness.world.things.get_mut(&id).unwrap().phase = WorkloadPhase::Replacing;
    harness.world.drift(&id);
    harness.deliver(usize::MAX);
    for _ in 0..10 {
        let decision = harness.engine.decide(&id, harness.now);
        if let Action::Apply(apply) = &decision.action {
            assert_eq!(apply.purpose, ApplyPurpose::Repair);
            return;
        }
        harness.act(&id, decision);
        harness.keep_ledger();
    }
    panic!("{:?}", harness.engine.decide(&id, harness.now));
}

// Taken back and written again, it would count as a second start.
#[test]
fn a_claim_whose_write_met_a_conflict_is_kept_until_a_newer_view_decides() {
    let id = workload("a");
    let mut harness = at_rest(&NAMES, &budget("100%", 100));
    harness.read(reading("r2", &files(&NAMES, 2)));
    let action = loop {
        let decision = harness.decide(&id);
        if matches!(decision.action, Action::Apply(_)) {
            break decision.action;
        }
        harness.act(&id, decision);
    };
    harness.engine.note_dispatch(&id, &action);
    let conflict = ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO));
    harness.engine.record_result(&id, &action, conflict, harness.now);
    harness.keep_ledger();
    assert!(harness.world.ledger.claims.contains_key(&id), "{:?}", harness.world.ledger);
}

/// Returns a workload that has its claim, and waits for the configuration that goes before it.
fn claimed_before_its_configuration() -> Harness {
    let web = |content| {
        let mut web = (*one("web", content)).clone();
        web.needs = [config("env")].into();
        SharedDesiredObject::from(web)
    };
    let files =
        |content| [("env", Some(desired(&config("env"), content, "env"))), ("web", Some(web(content)))];
    let mut harness = Harness::new(9);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    while !harness.world.ledger.claims.contains_key(&workload("web")) {
        harness.turn();
    }
    harness
}

#[test]
fn a_claim_is_kept_while_what_goes_before_its_workload_is_written_and_not_when_that_is_refused() {
    for (is_refused, expected) in [(false, true), (true, false)] {
        let (env, web) = (config("env"), workload("web"));
        let mut harness = claimed_before_its_configuration();
        let action = harness.decide(&env).action;
        assert!(matches!(action, Action::Apply(_)), "{action:?}");
        harness.engine.note_dispatch(&env, &action);
        if is_refused {
            let why = WriteFailure::Refused("no".into(), RefusalRule::Other, None);
            harness.engine.record_result(&env, &action, ActionResult::Failed(why), harness.now);
        }
        let reason = harness.engine.decide(&web, harness.now).reason;
        assert!(matches!(&reason, Some(Reason::Needs(need, _)) if *need == env), "{reason:?}");
        let next = harness.engine.next_ledger().unwrap_or(harness.world.ledger);
        assert_eq!(next.claims.contains_key(&web), expected, "{is_refused}");
    }
}

// Two sources of two processes have an object of the same name in their units.
#[test]
fn a_unit_is_recorded_apart_from_those_that_share_no_object_of_its_source_with_it() {
    let mut harness = at_rest(&NAMES, &Budget { max_workloads: 2, ..budget("100%", 100) });
    let member = UnitMember { content: None, rollback_target: RollbackTarget::Unknown, restarted: None };
    let theirs = ReleaseUnit {
        inventory_id: THEIRS.into(),
        revision: crate::object::Revision::new("t1"),
        members: [(workload("a"), member)].into(),
    };
    harness.world.ledger.units.push(theirs.clone());
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.read(reading("r2", &files(&NAMES, 2)));
    harness.engine.rollouts.slot_requests.set_slow_start_limit(9);
    harness.engine.rollouts.slot_requests.mark_stale();
    write(&mut harness, "a");
    write(&mut harness, "b");
    let units: Vec<(&str, Vec<&str>)> = harness
        .world
        .ledger
        .units
        .iter()
        .map(|unit| (&*unit.inventory_id, unit.members.keys().map(ObjectId::name).collect()))
        .collect();
    assert_eq!(units, [(THEIRS, vec!["a"]), (SET, vec!["a"]), (SET, vec!["b"])]);
    assert_eq!(harness.world.ledger.units[0], theirs);
}
