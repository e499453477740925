//! The numbers of pods that processes publish for each other: by namespace, and with their time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::shared_budget::{THEIRS, at_rest, budget, publish_tally, tally};
use crate::engine::*;

#[test]
fn pods_are_those_that_are_seen_and_those_that_others_have_published_within_a_day() {
    let hours = |count: u64| Some(Timestamp::UNIX_EPOCH + Duration::from_hours(count));
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.pass_time(Duration::from_hours(47));
    harness.engine.set_clock(harness.now, Timestamp::UNIX_EPOCH + Duration::from_hours(48));
    for (at, expected) in [(None, 100), (hours(25), 100), (hours(24), 3)] {
        let pods_in = [("shop".into(), 97)].into();
        publish_tally(&mut harness, BudgetTally { at, pods_in, ..tally(97, &[], 0) });
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
