//! The numbers of pods that processes publish for each other: by namespace, and with their time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::harness::Harness;
use super::shared_budget::{THEIRS, at_rest, budget, files, publish_tally, tally};
use super::world::{FIRST, all_ready, reading, workload};
use crate::engine::*;
use crate::object::GroupKind;

#[test]
fn pods_are_those_that_are_seen_and_those_that_others_have_published_within_a_day() {
    let hours = |count: u64| Some(Timestamp::UNIX_EPOCH + Duration::from_hours(count));
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.pass_time(Duration::from_hours(47));
    harness.engine.set_clock(harness.now, Timestamp::UNIX_EPOCH + Duration::from_hours(48));
    for (at, expected) in [(None, 100), (hours(25), 100), (hours(24), 3)] {
        let pods_in = [("shop".into(), 97)].into();
        publish_tally(&mut harness, BudgetTally { pods_in, at, ..tally(97, &[], 0) });
        let engine = &harness.engine;
        let found = [engine.pods_of_all(), engine.pods_of_all_in("shop"), engine.pods_of_all_in("other")];
        assert_eq!(found, [expected, expected, 0], "{at:?}");
    }
}

#[test]
fn pods_are_published_by_namespace_where_that_has_bounds_of_its_own() {
    let names = ["shop", "other"].into_iter();
    let namespaces = names.map(|name| (Arc::from(name), BudgetNarrowing::default())).collect();
    let bounded = Budget { namespaces, ..budget("100%", 100) };
    let in_shop: BTreeMap<Arc<str>, u32> = [("shop".into(), 3)].into();
    for (of_all, expected) in [(bounded, in_shop), (budget("100%", 100), BTreeMap::new())] {
        let harness = at_rest(&["web"], &of_all);
        let tallies = harness.engine.tallies(&harness.world.ledger);
        let [own] = &tallies[..] else { panic!("{tallies:?}") };
        assert_eq!((own.pods, &own.pods_in), (3, &expected));
    }
}

// A daemon of an older version writes none.
#[test]
fn numbers_of_others_without_a_time_get_that_of_the_next_write() {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    let wall = Timestamp::UNIX_EPOCH + harness.now.duration_since(harness.epoch);
    let now = Timestamp::from_second(wall.as_second()).ok();
    let before = Some(Timestamp::UNIX_EPOCH + Duration::from_mins(30));
    for (at, expected) in [(None, now), (before, before)] {
        publish_tally(&mut harness, BudgetTally { at, ..tally(3, &[], 0) });
        let next = harness.engine.with_tallies(harness.world.ledger.clone(), Vec::new());
        let theirs = next.tallies.iter().find(|tally| &*tally.inventory_id == THEIRS);
        assert_eq!(theirs.map(|tally| tally.at), Some(expected));
    }
}

#[test]
fn pods_that_a_claim_stands_for_are_published_only_where_more_are_unavailable() {
    let web = workload("web");
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.read(reading("r2", &files(&["web"], 2)));
    while !matches!(harness.step(&web), Some(Action::Apply(_))) {}
    harness.deliver(usize::MAX);
    assert_eq!(harness.world.ledger.claims[&web].reserved, 1);
    for (available, expected) in [(2, None), (1, Some(2)), (0, Some(3))] {
        let rv = harness.world.tick();
        let thing = harness.world.things.get_mut(&web).unwrap();
        thing.numbers = Some(ReplicaStatus { ready: available, available, ..all_ready() });
        (thing.phase, thing.rv) = (WorkloadPhase::Replacing, rv);
        harness.world.announce(&web);
        harness.deliver(usize::MAX);
        let tallies = harness.engine.tallies(&harness.world.ledger);
        let [own] = &tallies[..] else { panic!("{tallies:?}") };
        assert_eq!(own.unavailable.get(&web).copied(), expected, "{available}");
    }
}

// Until then counts what was published before.
#[test]
fn nothing_is_published_anew_before_all_kinds_of_workloads_of_the_inventory_are_listed() {
    let sets = GroupKind::new("apps", "StatefulSet");
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    let known = harness.engine.view().source(FIRST).inventory.clone().unwrap();
    assert!(!known.kinds.contains(&sets));
    let published = |harness: &Harness| harness.engine.tallies(&RolloutLedger::default()).len();
    assert_eq!(published(&harness), 1, "there can be none");
    let kinds = known.kinds.iter().cloned().chain([sets.clone()]).collect();
    let inventory = Inventory { kinds, ..known };
    harness.engine.handle(Input::Inventory { source: FIRST, inventory }, harness.now);
    assert_eq!(published(&harness), 0);
    harness.engine.begin_list(&sets);
    assert_eq!(published(&harness), 0);
    harness.engine.end_list(&sets);
    assert_eq!(published(&harness), 1);
}
