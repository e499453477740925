//! The claims on the rollout budget: what asks for one, which one counts, and what the ledger keeps
//! of them and of the units.

use std::time::{Duration, Instant};

use super::budget_inputs::{after_a_failure, begin, claimed, show, waiting};
use super::budget_loads::counted;
use super::harness::Harness;
use super::restart;
use super::shared_budget::{THEIRS, at_rest, budget, files, one, theirs};
use super::world::{AuditEntry, FIRST, SECOND, SET, World, WorldObject, config, desired, reading, workload};
use crate::engine::rollout::ledger_state::LedgerState;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{ObjectId, Revision};

const OTHER: &str = "applyset-other-v1";

/// Returns three workloads, whose newer content has a budget for all of them.
fn changed() -> Harness {
    waiting(budget("100%", 100), BudgetNarrowing::default())
}

/// Goes on with one workload until it is written.
fn write(harness: &mut Harness, id: &ObjectId) {
    while !matches!(harness.step(id), Some(Action::Apply(_))) {
        harness.deliver(usize::MAX);
    }
}

/// Decides about an object until it is to be written.
fn write_action(harness: &mut Harness, id: &ObjectId) -> Action {
    for _ in 0..10 {
        let decision = harness.decide(id);
        if let Action::Apply(_) = decision.action {
            return decision.action;
        }
        harness.act(id, decision);
    }
    panic!("nothing is to be done about {id}");
}

#[test]
fn a_request_says_whether_it_is_for_a_rollback_a_repair_or_new_content() {
    let id = workload("a");
    let check = |mut harness: Harness, expected: SlotPriority| {
        assert!(claimed(&mut harness, &id).is_some(), "{expected:?}");
        let (request, _) = harness.engine.rollouts.slot_requests.get(&id).unwrap();
        assert_eq!(request.priority, expected);
    };
    check(changed(), SlotPriority::NewContent);
    let mut drifted = at_rest(&["a"], &budget("100%", 100));
    drifted.world.drift(&id);
    drifted.deliver(usize::MAX);
    check(drifted, SlotPriority::Repair);
    for (seconds, expected) in [(1, SlotPriority::RepeatedRepair), (61, SlotPriority::Repair)] {
        let mut again = at_rest(&["a"], &budget("100%", 100));
        again.world.drift(&id);
        again.settle();
        again.pass_time(Duration::from_secs(seconds));
        again.engine.advance(again.now);
        again.world.drift(&id);
        again.deliver(usize::MAX);
        check(again, expected);
    }
    let mut failed = after_a_failure(budget("100%", 100));
    // Its rejection is recorded, and then the content from before is read.
    for _ in 0..2 {
        failed.keep_ledger();
        failed.engine.process_changes();
    }
    check(failed, SlotPriority::Rollback);
}

// By then it is no repeated one any more, and goes before new contents.
#[test]
fn a_repeated_repair_without_a_slot_is_decided_again_a_minute_later() {
    let id = workload("a");
    let mut harness = at_rest(&["a"], &budget("100%", 1));
    harness.world.drift(&id);
    harness.settle();
    harness.finish_rollouts();
    harness.settle();
    harness.pass_time(Duration::from_secs(1));
    harness.world.drift(&id);
    harness.deliver(usize::MAX);
    // The first step compares the contents.
    harness.step(&id);
    let decided = harness.decide(&id);
    assert!(matches!(decided.reason, Some(Reason::Budget(BudgetShortage::Starts(..)))), "{decided:?}");
    assert_eq!(decided.requeue_after, Some(Duration::from_mins(1)));
}

// Others may change their data again and again, and would hold up all else.
#[test]
fn a_restart_for_data_asks_after_new_contents_unless_data_are_to_be_written_for_it() {
    let id = workload("web");
    let check = |files: &[(&str, Option<SharedDesiredObject>)], expected: SlotPriority| {
        let mut harness = restart::at_rest(3);
        harness.read(reading("r2", files));
        restart::show_data(&mut harness, 2);
        assert!(claimed(&mut harness, &id).is_some(), "{expected:?}");
        let (request, _) = harness.engine.rollouts.slot_requests.get(&id).unwrap();
        assert_eq!(request.priority, expected);
    };
    check(&[], SlotPriority::Restart);
    check(&[("env", Some(restart::env(2)))], SlotPriority::NewContent);
    check(&[("web", Some(restart::web(2, &["tls"])))], SlotPriority::NewContent);
}

// The claim that brought the content says nothing of pods that start anew with other data.
#[test]
fn a_restart_for_other_data_is_claimed_apart_from_the_content() {
    let (mut harness, id) = (restart::at_rest(3), workload("web"));
    harness.read(reading("r2", &[("env", Some(restart::env(2)))]));
    for _ in 0..100 {
        if harness.world.log.contains(&AuditEntry::Changed(id.clone())) {
            break;
        }
        harness.turn();
    }
    let data = harness.world.things[&id].config_stamp.unwrap().data;
    let content = restart::web(1, &["tls"]).hash;
    assert_eq!(harness.world.ledger.claims[&id].rollout_key, Engine::restart_key(content, data));
}

#[test]
fn what_has_no_pods_is_deleted_to_be_created_again_without_a_claim() {
    let id = config("env");
    let mut harness = at_rest(&["a"], &budget("100%", 100));
    harness.read(reading("r2", &[("env", Some(desired(&id, 1, "env")))]));
    harness.settle();
    let mut wanted = (*desired(&id, 2, "env")).clone();
    wanted.traits.recreate = RecreatePolicy::Allowed;
    harness.read(reading("r3", &[("env", Some(wanted.into()))]));
    let action = write_action(&mut harness, &id);
    let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
    harness.engine.record_result(&id, &action, ActionResult::Failed(why), harness.now);
    assert_eq!(claimed(&mut harness, &id), None);
    let action = harness.engine.decide(&id, harness.now).action;
    assert!(matches!(action, Action::Delete(_, _, DeletionReason::Recreate)), "{action:?}");
}

#[test]
fn pods_that_its_own_rollout_has_taken_down_count_again_only_where_more_are_to_go() {
    let id = workload("a");
    let check = |change: &dyn Fn(&mut Rollout), lost: u32, expected: u32| {
        let mut harness = at_rest(&["a"], &budget("100%", 100));
        show(&mut harness, "a", 2);
        let claim = harness.engine.make_claim(FIRST, one("a", 1).hash, 1);
        let mut rollout = Rollout::new(BudgetSlot::Taken, 1, Some(claim), None);
        change(&mut rollout);
        harness.engine.rollouts.in_flight.insert(id.clone(), rollout.clone());
        assert_eq!(harness.engine.additional_unavailable(&id, lost), expected, "{lost} {rollout:?}");
    };
    let crashed = || RolloutFailureCause::Status("it crashes".into());
    check(&|_| {}, 3, 3);
    check(&|_| {}, 1, 0);
    check(&|rollout| rollout.reserved = 2, 3, 3);
    check(&|rollout| rollout.reserved = 3, 3, 2);
    // A broken one is mended, whoever has broken it.
    check(&|rollout| rollout.claim = None, 3, 2);
    check(&|rollout| rollout.failed = Some(crashed()), 3, 2);
    check(&|rollout| rollout.slot = BudgetSlot::None, 3, 2);
}

#[test]
fn a_recorded_claim_is_for_a_request_until_its_rollout_has_ended_or_where_it_was_written_since() {
    let id = workload("a");
    let mut harness = changed();
    assert!(!harness.engine.is_claimed(&id), "nobody asks, and nothing is recorded");
    assert!(claimed(&mut harness, &id).is_some());
    assert!(!harness.engine.is_claimed(&id), "it is not recorded");
    harness.keep_ledger();
    for (has_ended, is_unused, expected) in
        [(false, false, true), (false, true, true), (true, false, false), (true, true, true)]
    {
        let mut engine = harness.engine.clone();
        let ledger = &mut engine.rollouts.ledger;
        if has_ended {
            ledger.end_claim(&id);
        } else {
            ledger.reopen_claim(&id);
        }
        if is_unused {
            ledger.add_unused_claim(&id);
        } else {
            ledger.drop_unused_claim(&id);
        }
        assert_eq!(engine.is_claimed(&id), expected, "{has_ended} {is_unused}");
    }
}

#[test]
fn the_end_and_the_start_of_a_claim_are_forgotten_with_the_claim() {
    let (kept, lost) = (workload("a"), workload("b"));
    let mut state = LedgerState::default();
    for id in [&kept, &lost] {
        state.end_claim(id);
        state.add_unused_claim(id);
    }
    let claims = [(kept.clone(), theirs(1))].into();
    state.retain_claims_of(&RolloutLedger { claims, ..RolloutLedger::default() });
    let remembered = |id: &ObjectId| (state.is_ended(id), state.is_unused(id));
    assert_eq!(remembered(&kept), (true, true));
    assert_eq!(remembered(&lost), (false, false));
}

#[test]
fn a_failure_that_a_workload_had_before_its_write_is_remembered() {
    let id = workload("a");
    let check = |status: HealthStatus, expected: Option<&str>| {
        let mut harness = changed();
        let action = write_action(&mut harness, &id);
        let mut live = harness.engine.informer_object(&id).unwrap().clone();
        live.health = Health::new(status, "it made no progress");
        live.rv = ResourceVersion(harness.world.tick());
        harness.engine.observe_object(&id, live);
        harness.engine.note_dispatch(&id, &action);
        let rollout = &harness.engine.rollouts.in_flight[&id];
        assert_eq!(rollout.earlier_failure.as_deref(), expected, "{status}");
    };
    check(HealthStatus::Failed, Some("it made no progress"));
    check(HealthStatus::InProgress, None);
    check(HealthStatus::Current, None);
}

#[test]
fn a_new_unit_of_a_source_of_this_process_wakes_its_objects() {
    let mut harness = at_rest(&["a"], &budget("100%", 100));
    let mut wakes = |inventory_id: &str| {
        let member = UnitMember { content: None, rollback_target: RollbackTarget::Unknown, restarted: None };
        let unit = ReleaseUnit {
            inventory_id: inventory_id.into(),
            revision: Revision::new("r1"),
            members: [(workload("a"), member)].into(),
        };
        harness.world.ledger.units = vec![unit];
        harness.engine.take_dirty();
        harness.engine.set_ledger(harness.world.ledger.clone());
        harness.engine.take_dirty().contains(&workload("a"))
    };
    assert!(!wakes(THEIRS));
    assert!(wakes(SET));
    assert!(!wakes(SET), "it is known");
}

#[test]
fn a_workload_shows_the_accepted_and_the_wanted_content_that_differ_in_their_count_of_pods_alone() {
    let id = workload("a");
    let (plain, three, four) = (one("a", 1), counted("a", 1, Some(3)), counted("a", 1, Some(4)));
    let other = one("a", 2);
    let mut harness = at_rest(&["a"], &budget("100%", 100));
    let shown = |harness: &Harness| {
        [&plain, &three, &four, &other].map(|content| harness.engine.is_showing(&id, content.hash))
    };
    assert_eq!(shown(&harness), [true, false, false, false]);
    harness.read(reading("r2", &[("a", Some(three.clone()))]));
    assert_eq!(shown(&harness), [true, true, false, false]);
    harness.engine.objects.entries.get_mut(&id).unwrap().accepted = AcceptedContent::Known(four.clone());
    assert_eq!(shown(&harness), [true, true, true, false]);
}

#[test]
fn the_claim_of_a_rollout_that_the_ledger_lacks_is_written_again() {
    let (mut harness, id) = (changed(), workload("a"));
    write(&mut harness, &id);
    harness.deliver(usize::MAX);
    harness.keep_ledger();
    let claim = harness.world.ledger.claims[&id].clone();
    harness.world.ledger.claims.clear();
    harness.engine.set_ledger(harness.world.ledger.clone());
    let next = harness.engine.next_ledger().unwrap();
    assert_eq!(next.claims, [(id, claim)].into());
}

#[test]
fn the_claim_for_a_newer_content_stays_while_the_rollout_before_it_goes_on() {
    let (mut harness, id) = (changed(), workload("a"));
    assert_eq!(begin(&mut harness, &["a"]), ["a"]);
    show(&mut harness, "a", 2);
    harness.read(reading("r3", &files(&["a"], 3)));
    assert!(claimed(&mut harness, &id).is_some());
    harness.keep_ledger();
    assert_eq!(harness.world.ledger.claims[&id].rollout_key, one("a", 3).hash);
    let next = harness.engine.next_ledger().unwrap_or_else(|| harness.world.ledger.clone());
    assert_eq!(next.claims[&id].rollout_key, one("a", 3).hash);
}

#[test]
fn the_claim_of_a_workload_that_is_still_to_be_taken_over_is_kept_until_it_has_ended() {
    let web = workload("web");
    let mut engine = super::safety::engine(&[SET, OTHER], &[web.group_kind()]);
    engine.set_clock(Instant::now(), jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(1));
    engine.set_reading(FIRST, reading("r1", &[("web", Some(one("web", 2)))]));
    engine.set_reading(SECOND, reading("r1", &[]));
    let live = World::live(&web, &WorldObject::settled(one("web", 1).hash, "r1", 7));
    engine.observe_object(&web, LiveObject { owner: ObjectOwner::Ours(OTHER.into()), ..live });
    let claim = engine.make_claim(FIRST, one("web", 2).hash, 1);
    engine.set_ledger(RolloutLedger {
        claims: [(web.clone(), claim)].into(),
        begun: Some(jiff::Timestamp::UNIX_EPOCH),
        ..RolloutLedger::default()
    });
    let is_kept = |engine: &Engine| engine.next_ledger().is_none_or(|next| next.claims.contains_key(&web));
    assert!(is_kept(&engine));
    engine.rollouts.ledger.end_claim(&web);
    assert!(!is_kept(&engine));
}

#[test]
fn a_process_that_ends_takes_the_claim_back_of_what_it_sees_at_rest_in_the_very_version_that_it_wrote() {
    let (mut harness, id) = (changed(), workload("a"));
    write(&mut harness, &id);
    harness.world.things.get_mut(&id).unwrap().phase = WorkloadPhase::Settled;
    harness.world.events.clear();
    harness.world.announce(&id);
    harness.deliver(usize::MAX);
    assert!(harness.engine.last_ledger().unwrap().claims.is_empty());
    // Nobody knows what comes of another write, or what is there now.
    let leaves = |lose: &dyn Fn(&mut Engine)| {
        let mut engine = harness.engine.clone();
        lose(&mut engine);
        engine.last_ledger().unwrap().claims.get(&id).is_some_and(|claim| claim.holder_exited)
    };
    assert!(leaves(&|engine| engine.rollouts.writes_in_flight.begin(&id)));
    assert!(leaves(&|engine| engine.set_informer_state(&id.group_kind(), KindState::Syncing)));
}

#[test]
fn a_claim_goes_over_with_its_unit_where_the_former_source_has_made_it_for_what_is_shown() {
    let web = workload("web");
    let mut engine = super::safety::engine(&[SET, OTHER], &[web.group_kind()]);
    let thing = WorldObject::settled(one("web", 1).hash, "r1", 7);
    engine.observe_object(&web, World::live(&web, &thing));
    let content = Some(one("web", 2).hash);
    let member = UnitMember { content, rollback_target: RollbackTarget::Unknown, restarted: None };
    let unit = ReleaseUnit {
        inventory_id: OTHER.into(),
        revision: Revision::new("r2"),
        members: [(web.clone(), member)].into(),
    };
    let check = |inventory_id: &str, content: u32, expected: bool| {
        let claim = engine.make_claim(FIRST, one("web", content).hash, 1);
        let claim = RolloutClaim { inventory_id: inventory_id.into(), ..claim };
        let claims = [(web.clone(), claim.clone())].into();
        let mut next = RolloutLedger { claims, ..RolloutLedger::default() };
        engine.transfer_claims(&unit, &mut next);
        let (inventory_id, rollout_key) = (OTHER.into(), one("web", 2).hash);
        let transferred = RolloutClaim { inventory_id, rollout_key, ..claim.clone() };
        assert_eq!(next.claims[&web], if expected { transferred } else { claim }, "{content}");
    };
    check(SET, 1, true);
    check(SET, 2, false);
    check(THEIRS, 1, false);
}

#[test]
fn a_unit_that_something_waits_for_is_recorded_once_and_when_its_objects_are_known() {
    let (a, new) = (workload("a"), workload("new"));
    let mut harness = at_rest(&["a", "b"], &budget("100%", 100));
    harness.read(reading("r2", &[("a", Some(one("a", 2))), ("new", Some(one("new", 1)))]));
    let check = |harness: &Harness, id: &ObjectId, expected: Option<&str>| {
        let mut engine = harness.engine.clone();
        engine.rollouts.units.request_record(FIRST, id.clone(), id.clone());
        let next = engine.next_ledger().unwrap_or_else(|| harness.world.ledger.clone());
        let units = next.units.into_iter();
        let recorded: Vec<(Revision, Vec<ObjectId>)> =
            units.map(|unit| (unit.revision, unit.members.into_keys().collect())).collect();
        let expected: Vec<(Revision, Vec<ObjectId>)> =
            expected.into_iter().map(|revision| (Revision::new(revision), vec![id.clone()])).collect();
        assert_eq!(recorded, expected, "{id}");
    };
    check(&harness, &workload("b"), None);
    check(&harness, &a, Some("r2"));
    // It may be there without a label.
    check(&harness, &new, None);
    harness.engine.record_lookup(&new, DirectView::Absent);
    check(&harness, &new, Some("r2"));
    // A record that says the same stays as it is.
    let known = ReleaseUnit { revision: Revision::new("r0"), ..harness.engine.build_unit(FIRST, &a) };
    harness.world.ledger.units = vec![known];
    harness.engine.set_ledger(harness.world.ledger.clone());
    check(&harness, &a, Some("r0"));
}
