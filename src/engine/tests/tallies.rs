//! The numbers of pods that processes publish for each other: by namespace, and with their time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::harness::Harness;
use super::shared_budget::{
    THEIRS, at_rest, budget, elsewhere, files, look_up_elsewhere, publish_tally, reason, tally,
};
use super::world::{FIRST, SET, all_ready, reading, workload};
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

// Counted twice, they would let more pods go.
#[test]
fn of_a_source_that_is_not_seen_completely_the_larger_number_of_pods_counts() {
    for (published, expected) in [(2, 3), (3, 3), (9, 9)] {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        harness.engine.set_informer_state(&GroupKind::parse("DaemonSet.apps"), KindState::Syncing);
        publish_tally(&mut harness, BudgetTally { inventory_id: SET.into(), ..tally(published, &[], 0) });
        assert_eq!(harness.engine.pods_of_all(), expected, "{published}");
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

#[test]
fn pods_that_nobody_names_count_everywhere_but_in_other_sources_than_their_own() {
    let check = |inventory_id: &str, expected: [u32; 3]| {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        // Its own published load counts until its workloads are seen.
        for kind in ["DaemonSet.apps", "Deployment.apps"].map(GroupKind::parse) {
            harness.engine.set_informer_state(&kind, KindState::Syncing);
        }
        let published = BudgetTally { inventory_id: inventory_id.into(), ..tally(3, &[], 2) };
        publish_tally(&mut harness, published);
        let scopes = [
            BudgetScope::Cluster,
            BudgetScope::Namespace("shop".into()),
            BudgetScope::Source(FIRST, "test".into()),
        ];
        let found = scopes.map(|scope| harness.engine.unnamed_unavailable(&scope));
        assert_eq!(found, expected, "{inventory_id}");
    };
    check(THEIRS, [2, 2, 0]);
    check(SET, [2, 2, 2]);
}

#[test]
fn pods_that_nobody_names_count_unless_those_that_are_named_were_seen_complete_within_a_minute() {
    // The pods that a lookup shows as unavailable, the seconds since, and the pods that count.
    for (seen, seconds, expected) in [(0, 0, 0), (0, 59, 0), (0, 60, 3), (1, 0, 3), (1, 60, 3)] {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        publish_tally(&mut harness, tally(9, &[("api", 2)], 3));
        assert_eq!(harness.engine.unnamed_unavailable(&BudgetScope::Cluster), 3);
        look_up_elsewhere(&mut harness, seen);
        harness.pass_time(Duration::from_secs(seconds));
        harness.engine.advance(harness.now);
        let found = harness.engine.unnamed_unavailable(&BudgetScope::Cluster);
        assert_eq!(found, expected, "{seen} {seconds}");
    }
}

#[test]
fn whoever_waits_for_pods_of_others_is_told_of_those_that_are_still_unavailable() {
    let mut harness = at_rest(&["web"], &budget("2", 100));
    publish_tally(&mut harness, tally(9, &[("api", 2), ("db", 2)], 0));
    harness.engine.observe_foreign_workload(&elsewhere("api"), None, harness.now);
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    let short = "2 of at most 2 pods are unavailable, and this one takes down 1 more";
    let db = "2 pods of Deployment elsewhere/db of source theirs are unavailable";
    assert_eq!(reason(&mut harness, "web"), format!("{short}; {db}"));
}

// A lookup shows one of the two that others have published, and that one is in the way.
#[test]
fn whoever_waits_is_told_of_as_many_pods_of_others_as_count() {
    let mut harness = at_rest(&["web"], &budget("1", 100));
    publish_tally(&mut harness, tally(9, &[("api", 2)], 0));
    look_up_elsewhere(&mut harness, 1);
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    let why = reason(&mut harness, "web");
    let api = "; 1 pod of Deployment elsewhere/api of source theirs is unavailable";
    assert!(why.ends_with(api), "{why}");
}
