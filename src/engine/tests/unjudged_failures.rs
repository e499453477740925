//! Failed rollouts of a source that a new process cannot read.

use std::time::Duration;

use super::harness::Harness;
use super::last_good::{failing, files, hash};
use super::world::{FIRST, reading, workload};
use crate::engine::rollout::evaluation::RolloutVerdict;
use crate::engine::rollout::foreign_claims::ABANDONED_CLAIM_AGE;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;

/// Returns a new process whose source has not been read, some time after it has seen the failure of
/// `web`. Two pods of that may be unavailable.
fn unread_for(time: Duration) -> Harness {
    let mut harness = failing();
    harness.engine = harness.fresh(3);
    harness.engine.advance(harness.now);
    harness.engine.rollouts.in_flight.get_mut(&workload("web")).unwrap().reserved = 2;
    let verdict = harness.engine.evaluate_rollout(&workload("web"), in_flight(&harness), harness.now).verdict;
    assert_eq!(verdict, RolloutVerdict::InProgress(Some(harness.now + ABANDONED_CLAIM_AGE)));
    harness.now += time;
    harness.engine.advance(harness.now);
    harness
}

fn in_flight(harness: &Harness) -> &Rollout {
    &harness.engine.rollouts.in_flight[&workload("web")]
}

/// Returns the slots that are taken, and the pods that count as unavailable.
fn usage(harness: &Harness) -> (u32, u32) {
    let usage = harness.engine.usage();
    (usage.workloads.0, usage.unavailable.0)
}

#[test]
fn a_failure_that_nobody_can_judge_gives_its_slot_back_in_time_and_its_pods_still_count() {
    let second = Duration::from_secs(1);
    assert_eq!(usage(&unread_for(Duration::ZERO)), (1, 2));
    assert_eq!(usage(&unread_for(ABANDONED_CLAIM_AGE.saturating_sub(second))), (1, 2));
    assert_eq!(usage(&unread_for(ABANDONED_CLAIM_AGE)), (0, 2));
}

#[test]
fn it_is_judged_once_the_source_is_read_and_goes_back() {
    let mut harness = unread_for(ABANDONED_CLAIM_AGE);
    assert_eq!(harness.world.rejections, []);
    harness.read(reading("r2", &files(2, 2)));
    harness.engine.advance(harness.now);
    // Others may have its slot: it asks for another one.
    assert_eq!(in_flight(&harness).slot, BudgetSlot::None);
    assert!(in_flight(&harness).failed.is_some());
    harness.settle();
    let shown = harness.world.things[&workload("web")].release.as_ref().map(|release| release.hash);
    assert_eq!(shown, Some(hash(&workload("web"), 1)), "{:#?}", harness.world.log);
    assert_eq!(harness.world.rejections.len(), 1);
}

#[test]
fn it_takes_its_slot_again_where_its_controller_goes_on() {
    let mut harness = unread_for(ABANDONED_CLAIM_AGE);
    assert_eq!(usage(&harness).0, 0);
    let (web, rv) = (workload("web"), harness.world.tick());
    let thing = harness.world.things.get_mut(&web).unwrap();
    (thing.failed, thing.rv) = (None, rv);
    harness.world.announce(&web);
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
    assert_eq!(usage(&harness).0, 1);
}

// While the ledger cannot be read, it holds no failure up: nothing says where to go back to.
#[test]
fn a_failure_can_be_judged_once_its_source_the_inventory_and_the_ledger_were_read() {
    let web = workload("web");
    let check = |lose: &dyn Fn(&mut Engine), expected: bool| {
        let mut harness = failing();
        lose(&mut harness.engine);
        let live = harness.engine.live_object(&web).cloned().unwrap();
        assert_eq!(harness.engine.is_rollback_known(&web, &live), expected);
    };
    check(&|_| (), true);
    check(&|engine| engine.sources[FIRST].head = None, false);
    check(&|engine| engine.sources[FIRST].inventory = None, false);
    check(&|engine| engine.rollouts.ledger.forget(), false);
    let unreadable = |engine: &mut Engine| {
        engine.rollouts.ledger.forget();
        engine.rollouts.ledger.set_unreadable_reason(Some("it is garbled".into()));
    };
    check(&unreadable, true);
}
