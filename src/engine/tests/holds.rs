//! Pauses and holds: what people keep as it is for a time.

use std::time::Duration;

use super::harness::Harness;
use super::orders::*;
use super::world::{AuditEntry, FIRST, WorldObject, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{Revision, annotations};

#[test]
fn what_is_paused_is_repaired_and_not_changed() {
    let mut harness = second();
    asks(&mut harness, &workload("web"), Some("1-a looking at it"), None);
    harness.settle();
    assert_eq!(last_outcome(&harness), "paused: Deployment shop/web");
    harness.read(reading("r3", &both(3)));
    harness.settle();
    shows(&harness, 2, "r2");
    assert_eq!(reason(&mut harness, &workload("web")), "it is paused: looking at it");
    harness.world.drift(&workload("web"));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(workload("web"))]);
    asks(&mut harness, &workload("web"), None, None);
    harness.settle();
    shows(&harness, 3, "r3");
    assert_eq!(last_outcome(&harness), "resumed: Deployment shop/web");
}

#[test]
fn a_paused_part_of_a_unit_keeps_no_slot() {
    let mut harness = second();
    asks(&mut harness, &config("env"), Some("1-a"), None);
    harness.settle();
    harness.read(reading("r3", &both(3)));
    harness.settle();
    shows(&harness, 2, "r2");
    assert!(harness.engine.workloads_in_flight().is_empty());
    assert!(harness.world.is_free());
    asks(&mut harness, &config("env"), None, None);
    harness.settle();
    shows(&harness, 3, "r3");
}

#[test]
fn a_paused_source_releases_nothing_and_goes_back_all_the_same() {
    let mut harness = second();
    harness.world.bad.insert(web(3).hash);
    harness.read(reading("r3", &both(3)));
    for id in [workload("web"), config("env"), workload("web")] {
        harness.deliver(usize::MAX);
        harness.step(&id);
    }
    pause(&mut harness, PauseIntent::parse("1-a"));
    harness.settle();
    assert_eq!(last_outcome(&harness), "paused: source test");
    shows(&harness, 2, "r2");
    harness.read(reading("r4", &both(4)));
    harness.settle();
    shows(&harness, 2, "r2");
    harness.read(reading("r5", &[("env", None), ("web", None)]));
    harness.settle();
    shows(&harness, 2, "r2");
    assert_eq!(reason(&mut harness, &workload("web")), "source test is paused");
    pause(&mut harness, None);
    harness.settle();
    assert_eq!(last_outcome(&harness), "resumed: source test");
    assert!(harness.world.things.is_empty());
}

fn pause(harness: &mut Harness, paused: Option<PauseIntent>) {
    harness.world.paused.clone_from(&paused);
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_inventory(FIRST, Inventory { paused, ..inventory });
}

#[test]
fn whoever_holds_or_pauses_an_object_of_which_that_is_denied_is_informed() {
    let until = "1-a until=1970-01-01T00:01:00Z heap dump";
    for (paused, hold) in [(Some("1-a"), None), (None, Some(until))] {
        let mut harness = second();
        harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH);
        harness.engine.set_opt_out(FIRST, OptOutPolicy::Denied);
        asks(&mut harness, &workload("web"), paused, hold);
        harness.settle();
        let expected = "not in effect: Deployment shop/web: optOut of its source is denied";
        assert_eq!(last_outcome(&harness), expected);
        assert!(harness.engine.active_hold(&workload("web"), harness.now).is_none());
    }
}

/// Asks for a hold and for a pause where they have an effect, and where that is denied. Each is
/// counted among what takes objects out of our hands, as its Event says.
#[test]
fn a_hold_and_a_pause_are_opt_outs_as_long_as_they_last() {
    let until = "1-a until=1970-01-01T00:01:00Z heap dump";
    let of = |harness: &Harness| harness.engine.opt_outs(FIRST, harness.now).into_iter().collect::<Vec<_>>();
    for opt_out in [OptOutPolicy::Allowed, OptOutPolicy::Denied] {
        let mut harness = second();
        harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH);
        harness.engine.set_opt_out(FIRST, opt_out);
        assert_eq!(of(&harness), []);
        asks(&mut harness, &workload("web"), None, Some(until));
        asks(&mut harness, &config("env"), Some("1-b looking at it"), None);
        harness.settle();
        let both = [(config("env"), annotations::PAUSED), (workload("web"), annotations::HOLD)];
        assert_eq!(of(&harness), both, "{opt_out:?}");
        asks(&mut harness, &config("env"), None, None);
        harness.settle();
        assert_eq!(of(&harness), both[1..], "{opt_out:?}");
        if opt_out == OptOutPolicy::Allowed {
            harness.pass_time(Duration::from_mins(1));
            harness.settle();
            assert_eq!(of(&harness), [], "it is over");
        }
    }
}

#[test]
fn a_hold_keeps_everything_as_it_is_until_its_end() {
    let mut harness = second();
    harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH);
    asks(&mut harness, &workload("web"), None, Some("1-a until=1970-01-01T00:01:00Z heap dump"));
    harness.settle();
    assert_eq!(last_outcome(&harness), "held: Deployment shop/web until 1970-01-01T00:01:00Z");
    harness.world.drift(&workload("web"));
    harness.settle();
    assert_eq!(harness.world.log, []);
    let decision = harness.decide(&workload("web"));
    assert_eq!(decision.requeue_after, Some(Duration::from_mins(1)));
    assert_eq!(
        decision.reason.unwrap().to_string(),
        "on hold until 1970-01-01T00:01:00Z: heap dump; it was changed, and is not repaired"
    );
    harness.pass_time(Duration::from_mins(1));
    harness.engine.mark_dirty(&workload("web"));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(workload("web"))]);
}

#[test]
fn a_hold_whose_end_cannot_be_read_is_none() {
    let mut harness = second();
    asks(&mut harness, &workload("web"), None, Some("1-a until=tomorrow"));
    harness.settle();
    assert_eq!(last_outcome(&harness), "not held: Deployment shop/web: until when cannot be read");
    harness.read(reading("r3", &both(3)));
    harness.settle();
    shows(&harness, 3, "r3");
}

// Anybody who may annotate an object may write any token there.
#[test]
fn a_pause_with_the_token_of_an_order_keeps_it_from_nothing() {
    for first in ["the pause", "the order"] {
        let mut harness = second();
        if first == "the pause" {
            asks(&mut harness, &config("env"), Some("1-a"), None);
            harness.settle();
        }
        harness.give(&workload("web"), "1-a undo r1");
        harness.carry_out();
        harness.sync_inventories();
        asks(&mut harness, &config("env"), Some("1-a"), None);
        harness.settle();
        asks(&mut harness, &config("env"), None, None);
        harness.settle();
        shows(&harness, 1, "r1");
        let undone = harness.world.acknowledged.iter().filter(|one| one.outcome.starts_with("undone: "));
        assert_eq!(undone.count(), 1, "{first}");
        assert_eq!(harness.world.orders, [], "{first}");
    }
}

#[test]
fn so_many_pauses_are_acknowledged_and_all_count() {
    let mut harness = Harness::new(3);
    let name = |number: u32| format!("env-{number:03}");
    let files = |content: u32| -> Vec<(String, SharedDesiredObject)> {
        (0..130).map(|n| (name(n), desired(&config(&name(n)), content, &name(n)))).collect()
    };
    let read = |harness: &mut Harness, revision: &str, content: u32| {
        let files = files(content);
        let files: Vec<_> = files.iter().map(|(name, desired)| (&**name, Some(desired.clone()))).collect();
        harness.read(reading(revision, &files));
        harness.settle();
    };
    read(&mut harness, "r1", 1);
    for number in 0..130 {
        asks(&mut harness, &config(&name(number)), Some(&format!("{number}-{}", "t".repeat(5000))), None);
    }
    harness.settle();
    assert_eq!(harness.world.acknowledged.len(), 100);
    assert!(Acknowledgement::text(&harness.world.acknowledged).len() < 20_000);
    harness.world.log.clear();
    read(&mut harness, "r2", 2);
    assert_eq!(harness.world.log, []);
}

#[test]
fn a_unit_goes_on_when_the_hold_of_a_part_ends() {
    let mut harness = second();
    harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH);
    asks(&mut harness, &config("env"), None, Some("1-a until=1970-01-01T00:01:00Z x"));
    harness.settle();
    harness.read(reading("r3", &both(3)));
    harness.settle();
    shows(&harness, 2, "r2");
    assert!(harness.engine.workloads_in_flight().is_empty());
    assert!(harness.world.is_free());
    harness.pass_time(Duration::from_mins(1));
    harness.engine.advance(harness.now);
    harness.settle();
    shows(&harness, 3, "r3");
}

// The loop tells the time of day in each turn. The held part is decided on again at the end of its
// hold, as its decision asked.
#[test]
fn a_unit_goes_on_when_the_hold_of_a_part_ends_by_the_time_of_day() {
    let mut harness = second();
    let epoch = jiff::Timestamp::UNIX_EPOCH;
    harness.engine.set_clock(harness.now, epoch);
    asks(&mut harness, &config("env"), None, Some("1-a until=1970-01-01T00:01:00Z x"));
    harness.settle();
    harness.read(reading("r3", &both(3)));
    harness.settle();
    shows(&harness, 2, "r2");
    assert_eq!(harness.decide(&config("env")).requeue_after, Some(Duration::from_mins(1)));
    let end = Duration::from_mins(1) + Duration::from_millis(5);
    harness.pass_time(end);
    harness.engine.set_clock(harness.now, epoch + end);
    harness.engine.mark_dirty(&config("env"));
    harness.settle();
    shows(&harness, 3, "r3");
}

#[test]
fn under_a_hold_it_is_said_what_waits_for_its_end_and_nothing_is_written() {
    let minute = Duration::from_mins(1);
    let mut harness = second();
    harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH);
    asks(&mut harness, &config("env"), None, Some("1-a until=1970-01-01T00:01:00Z x"));
    harness.settle();
    let check = |decision: Decision, expected: Decision| {
        assert_eq!(harness.engine.apply_pauses(&config("env"), decision, harness.now), expected);
    };
    let apply = |purpose: ApplyPurpose| {
        Action::Apply(ApplyRequest {
            desired: env(3),
            source: FIRST,
            revision: Revision::new("r3"),
            seal: None,
            precondition: Precondition::Absent,
            decided_on: None,
            variant: ApplyVariant::PLAIN,
            purpose,
            restarts: RestartRisk::Absent,
        })
    };
    let held = |withheld: WithheldWrite| {
        let until = Some(jiff::Timestamp::from_second(60).unwrap());
        let hold = ActiveHold { until, reason: "x".into(), withheld };
        Decision { requeue_after: Some(minute), ..Decision::wait(Reason::OnHold(hold)) }
    };
    let delete = Action::Delete(Uid("1".into()), ResourceVersion(1), DeletionReason::Prune);
    let repair = apply(ApplyPurpose::Repair);
    check(Decision::act(repair), held(WithheldWrite::Repair));
    check(Decision::act(apply(ApplyPurpose::Change)), held(WithheldWrite::Content));
    check(Decision::act(delete), held(WithheldWrite::Deletion));
    check(Decision::act(Action::Nothing), held(WithheldWrite::Nothing));
    // A decision that writes nothing, or waits for something else, stays, and is made again then.
    for decision in [Decision::wait(Reason::Claiming), Decision::act(Action::Lookup)] {
        check(decision.clone(), Decision { requeue_after: Some(minute), ..decision.clone() });
        let sooner = Decision { requeue_after: Some(minute / 2), ..decision };
        check(sooner.clone(), sooner);
    }
}

// No informer shows it, so none shows that the annotation is gone.
#[test]
fn what_is_held_and_only_a_lookup_shows_is_looked_up_again_and_again() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH);
    let intents = ObjectIntents::parse(None, None, Some("1-a until=1970-01-01T01:00:00Z x"));
    let thing = WorldObject {
        labelled: false,
        release: None,
        objects_with_intents: intents,
        ..WorldObject::settled(desired(&a, 1, "a").hash, "r1", 1)
    };
    harness.world.things.insert(a.clone(), thing);
    harness.world.clock = 10;
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert_eq!(harness.decide(&a).requeue_after, Some(Duration::from_secs(15)));
    harness.pass_time(Duration::from_secs(14));
    assert_ne!(harness.decide(&a).action, Action::Lookup);
    harness.pass_time(Duration::from_secs(1));
    assert_eq!(harness.decide(&a).action, Action::Lookup);
}
