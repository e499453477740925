//! The questions of the loop about rollouts: whether any goes on, and what others share.

use std::time::Duration;

use super::harness::Harness;
use super::shared_budget::{THEIRS, at_rest, budget, elsewhere, files, publish_tally, tally, theirs};
use super::world::{FIRST, SET, reading, workload};
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;
use crate::object::GroupKind;

const SOAK: Duration = Duration::from_mins(1);

/// Goes on with a workload until it is written.
fn write(harness: &mut Harness, name: &str) {
    while !matches!(harness.step(&workload(name)), Some(Action::Apply(_))) {
        harness.deliver(usize::MAX);
    }
    harness.deliver(usize::MAX);
}

#[test]
fn a_rollout_goes_on_and_is_claimed_until_it_has_soaked() {
    let mut harness = at_rest(&["web"], &Budget { soak: SOAK, ..budget("100%", 100) });
    let answers = |harness: &Harness| {
        let rolling = harness.engine.rolling_workloads().into_iter().map(|load| load.id);
        let engine = &harness.engine;
        (engine.is_anything_claimed(), engine.is_any_in_progress(), rolling.collect::<Vec<_>>())
    };
    assert_eq!(answers(&harness), (false, false, vec![]));
    harness.read(reading("r2", &files(&["web"], 2)));
    write(&mut harness, "web");
    assert_eq!(answers(&harness), (true, true, vec![workload("web")]));
    harness.settle();
    assert_eq!(answers(&harness), (true, true, vec![workload("web")]), "it soaks");
    assert_eq!(harness.engine.next_due(harness.now), Some(harness.now + SOAK));
    harness.pass_time(SOAK);
    harness.engine.advance(harness.now);
    assert!(harness.engine.is_anything_claimed(), "its claim is still on record");
    harness.settle();
    assert_eq!(answers(&harness), (false, false, vec![]));
}

#[test]
fn nothing_is_claimed_by_a_rollout_that_takes_no_slot_or_is_of_somebody_else() {
    let check = |change: &dyn Fn(&mut Rollout), expected: bool| {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        let claim = harness.engine.make_claim(FIRST, super::shared_budget::one("web", 1).hash, 1);
        let mut rollout = Rollout::new(BudgetSlot::Taken, 1, Some(claim), None);
        change(&mut rollout);
        harness.engine.rollouts.in_flight.insert(workload("web"), rollout.clone());
        assert_eq!(harness.engine.is_anything_claimed(), expected, "{rollout:?}");
    };
    check(&|_| {}, true);
    check(&|rollout| rollout.slot = BudgetSlot::None, false);
    check(&|rollout| rollout.claim = None, false);
}

#[test]
fn a_rollout_that_has_failed_does_not_go_on() {
    let held = Budget { on_failure: OnFailure::Quarantine, ..budget("100%", 100) };
    let mut harness = at_rest(&["web"], &held);
    harness.world.bad.insert(super::shared_budget::one("web", 2).hash);
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    assert!(harness.engine.rollouts.in_flight.contains_key(&workload("web")));
    assert!(!harness.engine.is_any_in_progress());
    assert_eq!(harness.engine.rolling_workloads(), []);
}

#[test]
fn the_budget_is_shared_where_others_keep_a_claim_or_a_number_in_the_ledger() {
    let shared = |harness: &Harness| harness.engine.has_shared_budget();
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    assert!(!shared(&harness));
    publish_tally(&mut harness, tally(3, &[], 0));
    assert!(shared(&harness), "a number");
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.world.ledger.claims.insert(elsewhere("api"), theirs(1));
    harness.engine.set_ledger(harness.world.ledger.clone());
    assert!(shared(&harness), "a claim");
    assert_eq!(
        harness.engine.other_holder(&elsewhere("api")).map(|holder| holder.to_string()).as_deref(),
        Some("another source, process 12 on host")
    );
    assert_eq!(harness.engine.other_holder(&elsewhere("db")), None);
}

#[test]
fn the_ledger_is_relied_on_where_it_holds_anything_of_this_process() {
    let relies = |change: &dyn Fn(&mut RolloutLedger)| {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        change(&mut harness.world.ledger);
        harness.engine.set_ledger(harness.world.ledger.clone());
        harness.engine.is_ledger_needed()
    };
    let own_tally = |pods: u32, rest: u32| BudgetTally { inventory_id: SET.into(), ..tally(pods, &[], rest) };
    assert!(!relies(&|ledger| ledger.tallies.clear()));
    assert!(!relies(&|ledger| drop(ledger.claims.insert(elsewhere("api"), theirs(1)))));
    let ours = RolloutClaim { inventory_id: SET.into(), ..theirs(1) };
    assert!(relies(&|ledger| drop(ledger.claims.insert(workload("web"), ours.clone()))));
    assert!(!relies(&|ledger| ledger.tallies = vec![own_tally(3, 0)]));
    assert!(relies(&|ledger| ledger.tallies = vec![own_tally(3, 1)]));
    assert!(!relies(&|ledger| ledger.tallies = vec![tally(3, &[], 1)]));
    let mut waiting = at_rest(&["web"], &budget("100%", 0));
    waiting.read(reading("r2", &files(&["web"], 2)));
    waiting.settle();
    assert!(waiting.engine.is_ledger_needed(), "a workload asks for its slot");
}

#[test]
fn whoever_waits_for_a_new_ledger_is_asked_again_when_it_can_be_relied_on() {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.world.ledger = RolloutLedger::default();
    harness.engine.set_ledger(RolloutLedger::default());
    assert_eq!(harness.engine.next_due(harness.now), None, "nobody waits");
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    assert_eq!(harness.engine.next_due(harness.now), Some(harness.now + NEW_LEDGER_DELAY));
}

#[test]
fn a_shortage_passes_by_itself_but_where_a_workload_takes_more_than_the_whole_budget() {
    let too_many = || BudgetShortage::TooMany(BudgetScope::Cluster, 3, 2);
    let starts = || BudgetShortage::Starts(BudgetScope::Cluster, 2);
    let shared = |short| BudgetShortage::Shared(Box::new(short), [].into());
    let hidden = |short| BudgetShortage::Hidden(Box::new(short), elsewhere("api"), "denied".into());
    let check = |short: BudgetShortage, expected: bool| {
        assert_eq!(short.is_temporary(), expected, "{short:?}");
        assert_eq!(hidden(shared(short.clone())).is_temporary(), expected, "{short:?}");
    };
    check(too_many(), false);
    check(starts(), true);
}

#[test]
fn a_statement_is_made_once_all_is_known_that_it_depends_on() {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(&["web"], 1)));
    assert!(!harness.engine.can_state(FIRST), "nobody asks");
    harness.engine.require_peer_consent();
    assert!(harness.engine.can_state(FIRST));
    let deployments = GroupKind::new("apps", "Deployment");
    harness.engine.set_informer_state(&deployments, KindState::Syncing);
    assert!(!harness.engine.can_state(FIRST), "a kind is being listed");
    let none = KindAvailability::Unserved([].into());
    harness.engine.set_kind_availability(crate::object::Gvk::new("apps", "v1", "Deployment"), none);
    assert!(harness.engine.can_state(FIRST), "the server has no such kind");
}

#[test]
fn numbers_of_this_process_are_published_again_when_they_are_old() {
    let check = |inventory_id: &str, hours: i64, expected: bool| {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        let wall = jiff::Timestamp::UNIX_EPOCH + harness.now.duration_since(harness.epoch);
        let at = jiff::Timestamp::from_second(wall.as_second() - hours * 3600).ok();
        publish_tally(
            &mut harness,
            BudgetTally { inventory_id: inventory_id.into(), at, ..tally(3, &[], 0) },
        );
        assert_eq!(harness.engine.is_to_renew(), expected, "{inventory_id} {hours}");
    };
    check(SET, 5, false);
    check(SET, 6, true);
    check(THEIRS, 6, false);
}

#[test]
fn the_ledger_is_read_again_soon_where_a_workload_waits_and_others_share_it() {
    for (waits, shares) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut harness = at_rest(&["web"], &budget("100%", 0));
        if shares {
            publish_tally(&mut harness, tally(3, &[], 0));
        }
        if waits {
            harness.read(reading("r2", &files(&["web"], 2)));
            harness.settle();
        }
        assert_eq!(harness.engine.is_waiting_for_others(), waits && shares, "{waits} {shares}");
    }
}
