//! A rollout ledger that somebody deletes, empties or fills with what nobody can read.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::harness::Harness;
use super::shared_budget::{
    THEIRS, at_rest, budget, elsewhere, files, one, publish_tally, reason, tally, theirs,
};
use super::world::{config, desired, reading, workload};
use crate::engine::*;

/// Returns `web` at rest, and another process that has claimed something.
fn beside_another() -> Harness {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.world.ledger.claims.insert(elsewhere("api"), theirs(1));
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness
}

/// Writes the ledger, as somebody else.
fn is_now(harness: &mut Harness, ledger: RolloutLedger) {
    harness.world.ledger = ledger.clone();
    harness.engine.set_ledger(ledger);
}

fn changes(harness: &mut Harness) {
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
}

/// Beside the one that another process has claimed.
const BEGINS_SLOWLY: &str = "slow start: at most 1 at a time";

const WAITS: &str = "the rollout ledger was recreated; other daemons have ";

#[test]
fn what_was_claimed_is_written_into_an_object_that_was_made_anew() {
    // The ledger now: missing, or written by another process since.
    let of_another = RolloutLedger {
        claims: [(elsewhere("db"), theirs(2))].into(),
        begun: Some(Timestamp::UNIX_EPOCH),
        ..RolloutLedger::default()
    };
    for now in [RolloutLedger::default(), of_another] {
        let mut harness = beside_another();
        is_now(&mut harness, now.clone());
        let next = harness.engine.next_ledger().expect("it lacks a claim");
        let mut expected = now.claims.clone();
        expected.insert(elsewhere("api"), theirs(1));
        assert_eq!(next.claims, expected);
        assert!(next.begun.is_some_and(|begun| now.begun.is_none_or(|known| known == begun)));
        // Read once more before that is written, it lacks the same.
        is_now(&mut harness, now);
        assert_eq!(harness.engine.next_ledger().map(|next| next.claims), Some(expected));
        harness.keep_ledger();
        assert_eq!(harness.engine.next_ledger(), None);
    }
}

#[test]
fn nothing_begins_until_others_have_had_the_time_to_write_their_claims_again() {
    let mut harness = beside_another();
    is_now(&mut harness, RolloutLedger::default());
    changes(&mut harness);
    assert!(reason(&mut harness, "web").starts_with(WAITS), "{}", reason(&mut harness, "web"));
    harness.pass_time(NEW_LEDGER_DELAY.saturating_sub(Duration::from_millis(1)));
    harness.settle();
    assert_eq!(harness.world.log, []);
    harness.pass_time(Duration::from_millis(1));
    harness.settle();
    assert!(reason(&mut harness, "web").starts_with(BEGINS_SLOWLY), "{}", reason(&mut harness, "web"));
    // The other process has written its claim again, and takes it back.
    let mut ledger = harness.world.ledger.clone();
    assert!(ledger.claims.remove(&elsewhere("api")).is_some());
    is_now(&mut harness, ledger);
    harness.settle();
    assert_ne!(harness.world.log, []);
}

#[test]
fn whoever_starts_relies_only_on_an_object_that_is_old_enough() {
    // When the object was begun, in seconds before the start, and whether a process begins
    // something at once.
    let check = |age: Option<u64>, begins: bool| {
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        let wall = Timestamp::UNIX_EPOCH + harness.now.duration_since(harness.epoch);
        harness.world.ledger = RolloutLedger {
            begun: age.map(|age| wall - Duration::from_secs(age)),
            ..RolloutLedger::default()
        };
        harness.engine = harness.fresh_with(budget("100%", 100));
        changes(&mut harness);
        assert_eq!(!harness.world.log.is_empty(), begins, "{age:?}");
        if !begins {
            assert!(reason(&mut harness, "web").starts_with(WAITS), "{age:?}");
        }
        harness.pass_time(NEW_LEDGER_DELAY);
        harness.settle();
        assert!(!harness.world.log.is_empty(), "{age:?}");
    };
    check(None, false);
    check(Some(0), false);
    check(Some(NEW_LEDGER_DELAY.as_secs() - 1), false);
    check(Some(NEW_LEDGER_DELAY.as_secs()), true);
    check(Some(3600), true);
}

#[test]
fn an_object_that_an_older_version_has_written_is_relied_on() {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.world.ledger = RolloutLedger {
        claims: [(elsewhere("api"), theirs(1))].into(),
        begun: None,
        ..RolloutLedger::default()
    };
    harness.engine = harness.fresh_with(budget("100%", 100));
    changes(&mut harness);
    assert!(reason(&mut harness, "web").starts_with(BEGINS_SLOWLY), "{}", reason(&mut harness, "web"));
}

#[test]
fn whoever_writes_the_first_workload_makes_the_object() {
    let mut harness = Harness::new(3);
    harness.world.ledger = RolloutLedger::default();
    harness.engine = harness.fresh(3);
    assert_eq!(harness.engine.initial_ledger(), None, "nothing was written yet");
    harness.read(reading("r0", &[("env", Some(desired(&config("env"), 1, "env")))]));
    harness.settle();
    assert!(harness.world.things.contains_key(&config("env")));
    assert_eq!(harness.engine.initial_ledger(), None, "no workload was written yet");
    harness.read(reading("r1", &files(&["web"], 1)));
    harness.settle();
    let first = harness.engine.initial_ledger().expect("a workload is there");
    harness.engine.note_ledger_write(&first);
    harness.engine.set_ledger(first);
    assert_eq!((harness.engine.initial_ledger(), harness.engine.next_ledger()), (None, None));
}

#[test]
fn a_claim_of_mine_that_somebody_takes_out_is_written_again_before_its_write_goes_out() {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.engine.advance(harness.now);
    harness.engine.process_changes();
    loop {
        let decision = harness.engine.decide(&workload("web"), harness.now);
        if decision.reason == Some(Reason::Claiming) {
            break;
        }
        assert!(!matches!(decision.action, Action::Nothing), "{decision:?}");
        harness.act(&workload("web"), decision);
    }
    harness.keep_ledger();
    assert!(harness.world.ledger.claims.contains_key(&workload("web")));
    assert_eq!(harness.world.log, [], "it is claimed and was not written yet");
    is_now(&mut harness, RolloutLedger::default());
    let decision = harness.engine.decide(&workload("web"), harness.now);
    assert_eq!(decision.action, Action::Nothing, "{decision:?}");
    harness.keep_ledger();
    assert!(harness.world.ledger.claims.contains_key(&workload("web")));
    harness.settle();
    assert_ne!(harness.world.log, []);
}

#[test]
fn a_claim_that_cannot_be_read_counts_and_stays() {
    // The claim as it is there, the pods that it counts for, and whether they are too many.
    let check = |claim: serde_json::Value, pods: u32, begins: bool| {
        let text = json!({"claims": [claim], "begun": "1969-01-01T00:00:00Z"}).to_string();
        let ledger = RolloutLedger::parse(&text, &HashCiphers::default()).unwrap();
        assert_eq!((ledger.claims.len(), ledger.total_unavailable_pods()), (0, pods), "{text}");
        let again: serde_json::Value =
            serde_json::from_str(&ledger.text(&HashCiphers::default()).unwrap()).unwrap();
        assert_eq!(again["claims"], json!([claim]));
        let mut harness = at_rest(&["web"], &budget("2", 100));
        harness.engine.explain_unread(Some("1 claim cannot be read".into()));
        let ledger = RolloutLedger { begun: harness.world.ledger.begun, ..ledger };
        is_now(&mut harness, ledger);
        assert_eq!(harness.engine.usage().workloads.0, 1);
        changes(&mut harness);
        assert_eq!(!harness.world.log.is_empty(), begins, "{text}");
        if !begins {
            let why = reason(&mut harness, "web");
            assert!(why.ends_with("; 1 claim cannot be read"), "{why}");
        }
        assert_eq!(harness.world.ledger.unreadable_claims.len(), 1);
    };
    let hash = one("api", 1).hash.to_string();
    let claim = |object: &str, content: &str, pods: serde_json::Value| json!({"object": object, "source": THEIRS, "holder": "", "content": content, "pods": pods});
    check(json!("garbage"), 1, true);
    check(json!({"workload": "web", "pods": 2}), 2, false);
    check(claim("Deployment.apps", &hash, json!(1)), 1, true);
    check(claim("Deployment.apps/shop/api", "sha-of-tomorrow", json!(2)), 2, false);
    check(claim("Deployment.apps/shop/api", &hash, json!("all")), 1, true);
    check(claim("Deployment.apps/shop/api", &hash, json!(5_000_000_000_u64)), u32::MAX, false);
}

#[test]
fn pods_of_a_source_that_nobody_serves_any_more_are_no_part_of_all() {
    let wall = |harness: &Harness| {
        let seconds = harness.now.duration_since(harness.epoch).as_secs();
        Timestamp::UNIX_EPOCH + Duration::from_secs(seconds)
    };
    // A tenth of a hundred pods, three of them here.
    let mut harness = at_rest(&["web"], &budget("10%", 100));
    harness.engine.advance(harness.now);
    let foreign_tally = BudgetTally { at: Some(wall(&harness)), ..tally(97, &[], 0) };
    publish_tally(&mut harness, foreign_tally.clone());
    assert_eq!(harness.engine.usage().unavailable.1, 10);
    harness.pass_time(Duration::from_hours(24));
    harness.engine.advance(harness.now);
    assert_eq!(harness.engine.usage().unavailable.1, 1);
    changes(&mut harness);
    assert!(harness.world.ledger.tallies.iter().all(|tally| &*tally.inventory_id != THEIRS));
    // One who serves it reports it again in time, and whoever writes beside it leaves it.
    let foreign_tally = BudgetTally { at: Some(wall(&harness)), ..foreign_tally };
    publish_tally(&mut harness, foreign_tally);
    assert_eq!(harness.engine.usage().unavailable.1, 10);
    let mut publication = QueuePublication::default();
    let written = harness.world.ledger.clone();
    assert!(written.tallies.iter().any(|tally| tally.at == Some(wall(&harness))));
    harness.pass_time(Duration::from_hours(6));
    harness.engine.advance(harness.now);
    assert_eq!(publication.next_ledger(&mut harness.engine, harness.now), None, "it waits for its turn");
    let renewed = publication
        .next_ledger(&mut harness.engine, harness.now + PUBLICATION_INTERVAL)
        .expect("its own are reported again");
    let own = renewed.tallies.iter().find(|tally| &*tally.inventory_id == super::world::SET);
    assert_eq!(own.and_then(|tally| tally.at), Some(wall(&harness)));
}

#[test]
fn units_and_starts_of_a_lost_ledger_are_written_again_too() {
    let mut harness = at_rest(&["web", "api"], &budget("100%", 1));
    harness.read(reading("r2", &files(&["web", "api"], 2)));
    for _ in 0..4 {
        harness.deliver(usize::MAX);
        harness.step(&workload("web"));
    }
    harness.keep_ledger();
    let before = harness.world.ledger.clone();
    assert!(!before.units.is_empty() && before.starts.len() == 1, "{before:?}");
    is_now(&mut harness, RolloutLedger::default());
    let next = harness.engine.next_ledger().unwrap();
    assert_eq!((&next.units, &next.starts), (&before.units, &before.starts));
    // No unit is written twice.
    let begun = Some(Timestamp::UNIX_EPOCH);
    let (units, starts) = (before.units.clone(), before.starts.clone());
    is_now(&mut harness, RolloutLedger { units, starts, begun, ..RolloutLedger::default() });
    let next = harness.engine.next_ledger().unwrap();
    assert_eq!((&next.units, &next.starts), (&before.units, &before.starts));
}
