//! A budget object that somebody deletes, empties or fills with what nobody can read.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::rig::Harness;
use super::shared_budget::{THEIRS, at_rest, budget, elsewhere, files, one, reason, tally, tell, theirs};
use super::world::{reading, workload};
use crate::engine::*;

/// `web` at rest, and another process that has claimed something.
fn beside_another() -> Harness {
    let mut rig = at_rest(&["web"], &budget("100%", 100));
    rig.world.book.claims.insert(elsewhere("api"), theirs(1));
    rig.engine.book(rig.world.book.clone());
    rig
}

/// Somebody has written the object.
fn is_now(rig: &mut Harness, book: RolloutLedger) {
    rig.world.book = book.clone();
    rig.engine.book(book);
}

fn changes(rig: &mut Harness) {
    rig.read(reading("r2", &files(&["web"], 2)));
    rig.settle();
}

/// Beside the one that another process has claimed.
const BEGINS_SLOWLY: &str = "a rollout begins slowly, with 1 at a time";

const WAITS: &str = "the budget object was made anew, and whoever holds anything of it has ";

#[test]
fn what_was_claimed_is_written_into_an_object_that_was_made_anew() {
    // The ledger now: missing, or written by another process since.
    let of_another = RolloutLedger {
        claims: [(elsewhere("db"), theirs(2))].into(),
        begun: Some(Timestamp::UNIX_EPOCH),
        ..RolloutLedger::default()
    };
    for now in [RolloutLedger::default(), of_another] {
        let mut rig = beside_another();
        is_now(&mut rig, now.clone());
        let next = rig.engine.next_book().expect("it lacks a claim");
        let mut expected = now.claims.clone();
        expected.insert(elsewhere("api"), theirs(1));
        assert_eq!(next.claims, expected);
        assert!(next.begun.is_some_and(|begun| now.begun.is_none_or(|known| known == begun)));
        // Read once more before that is written, it lacks the same.
        is_now(&mut rig, now);
        assert_eq!(rig.engine.next_book().map(|next| next.claims), Some(expected));
        rig.keep_book();
        assert_eq!(rig.engine.next_book(), None);
    }
}

#[test]
fn nothing_begins_until_others_have_had_the_time_to_write_their_claims_again() {
    let mut rig = beside_another();
    is_now(&mut rig, RolloutLedger::default());
    changes(&mut rig);
    assert!(reason(&mut rig, "web").starts_with(WAITS), "{}", reason(&mut rig, "web"));
    rig.pass_time(SETTLES.saturating_sub(Duration::from_millis(1)));
    rig.settle();
    assert_eq!(rig.world.log, []);
    rig.pass_time(Duration::from_millis(1));
    rig.settle();
    assert!(reason(&mut rig, "web").starts_with(BEGINS_SLOWLY), "{}", reason(&mut rig, "web"));
    // The other process has written its claim again, and takes it back.
    let mut book = rig.world.book.clone();
    assert!(book.claims.remove(&elsewhere("api")).is_some());
    is_now(&mut rig, book);
    rig.settle();
    assert_ne!(rig.world.log, []);
}

#[test]
fn whoever_starts_relies_only_on_an_object_that_is_old_enough() {
    // When the object was begun, in seconds before the start, and whether a process begins something at once.
    let check = |age: Option<u64>, begins: bool| {
        let mut rig = at_rest(&["web"], &budget("100%", 100));
        let wall = Timestamp::UNIX_EPOCH + rig.now.duration_since(rig.epoch);
        rig.world.book = RolloutLedger {
            begun: age.map(|age| wall - Duration::from_secs(age)),
            ..RolloutLedger::default()
        };
        rig.engine = rig.fresh_with(budget("100%", 100));
        changes(&mut rig);
        assert_eq!(!rig.world.log.is_empty(), begins, "{age:?}");
        if !begins {
            assert!(reason(&mut rig, "web").starts_with(WAITS), "{age:?}");
        }
        rig.pass_time(SETTLES);
        rig.settle();
        assert!(!rig.world.log.is_empty(), "{age:?}");
    };
    check(None, false);
    check(Some(0), false);
    check(Some(SETTLES.as_secs() - 1), false);
    check(Some(SETTLES.as_secs()), true);
    check(Some(3600), true);
}

#[test]
fn an_object_that_an_older_version_has_written_is_relied_on() {
    let mut rig = at_rest(&["web"], &budget("100%", 100));
    rig.world.book = RolloutLedger {
        claims: [(elsewhere("api"), theirs(1))].into(),
        begun: None,
        ..RolloutLedger::default()
    };
    rig.engine = rig.fresh_with(budget("100%", 100));
    changes(&mut rig);
    assert!(reason(&mut rig, "web").starts_with(BEGINS_SLOWLY), "{}", reason(&mut rig, "web"));
}

#[test]
fn whoever_writes_the_first_workload_makes_the_object() {
    let mut rig = Harness::new(3);
    rig.world.book = RolloutLedger::default();
    rig.engine = rig.fresh(3);
    assert_eq!(rig.engine.first_book(), None, "nothing was written yet");
    rig.read(reading("r1", &files(&["web"], 1)));
    rig.settle();
    let first = rig.engine.first_book().expect("a workload is there");
    rig.engine.saving_book(&first);
    rig.engine.book(first);
    assert_eq!((rig.engine.first_book(), rig.engine.next_book()), (None, None));
}

#[test]
fn a_claim_of_mine_that_somebody_takes_out_is_written_again_before_its_write_goes_out() {
    let mut rig = at_rest(&["web"], &budget("100%", 100));
    rig.read(reading("r2", &files(&["web"], 2)));
    rig.engine.advance(rig.now);
    rig.engine.settle();
    loop {
        let decision = rig.engine.decide(&workload("web"), rig.now);
        if decision.reason == Some(Reason::Claiming) {
            break;
        }
        assert!(!matches!(decision.action, Action::Nothing), "{decision:?}");
        rig.act(&workload("web"), decision);
    }
    rig.keep_book();
    assert!(rig.world.book.claims.contains_key(&workload("web")));
    assert_eq!(rig.world.log, [], "it is claimed and was not written yet");
    is_now(&mut rig, RolloutLedger::default());
    let decision = rig.engine.decide(&workload("web"), rig.now);
    assert_eq!(decision.action, Action::Nothing, "{decision:?}");
    rig.keep_book();
    assert!(rig.world.book.claims.contains_key(&workload("web")));
    rig.settle();
    assert_ne!(rig.world.log, []);
}

#[test]
fn a_claim_that_cannot_be_read_counts_and_stays() {
    // The claim as it stands there, the pods that it counts for, and whether they are too many.
    let check = |told: serde_json::Value, pods: u32, begins: bool| {
        let text = json!({"claims": [told], "begun": "1969-01-01T00:00:00Z"}).to_string();
        let book = RolloutLedger::parse(&text, &HashSeals::default()).unwrap();
        assert_eq!((book.claims.len(), book.pods_away()), (0, pods), "{text}");
        let again: serde_json::Value =
            serde_json::from_str(&book.text(&HashSeals::default()).unwrap()).unwrap();
        assert_eq!(again["claims"], json!([told]));
        let mut rig = at_rest(&["web"], &budget("2", 100));
        rig.engine.explain_unread(Some("1 claim cannot be read".into()));
        let book = RolloutLedger { begun: rig.world.book.begun, ..book };
        is_now(&mut rig, book);
        assert_eq!(rig.engine.usage().workloads.0, 1);
        changes(&mut rig);
        assert_eq!(!rig.world.log.is_empty(), begins, "{text}");
        if !begins {
            let why = reason(&mut rig, "web");
            assert!(why.ends_with("; 1 claim cannot be read"), "{why}");
        }
        assert_eq!(rig.world.book.unread.len(), 1);
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
    let wall = |rig: &Harness| {
        let seconds = rig.now.duration_since(rig.epoch).as_secs();
        Timestamp::UNIX_EPOCH + Duration::from_secs(seconds)
    };
    // A tenth of a hundred pods, three of them here.
    let mut rig = at_rest(&["web"], &budget("10%", 100));
    rig.engine.advance(rig.now);
    let told = BudgetTally { at: Some(wall(&rig)), ..tally(97, &[], 0) };
    tell(&mut rig, told.clone());
    assert_eq!(rig.engine.usage().unavailable.1, 10);
    rig.pass_time(Duration::from_hours(24));
    rig.engine.advance(rig.now);
    assert_eq!(rig.engine.usage().unavailable.1, 1);
    changes(&mut rig);
    assert!(rig.world.book.tallies.iter().all(|tally| &*tally.applyset != THEIRS));
    // One who serves it tells it again in time, and whoever writes beside it lets it stand.
    let told = BudgetTally { at: Some(wall(&rig)), ..told };
    tell(&mut rig, told);
    assert_eq!(rig.engine.usage().unavailable.1, 10);
    let mut telling = QueuePublication::default();
    let written = rig.world.book.clone();
    assert!(written.tallies.iter().any(|tally| tally.at == Some(wall(&rig))));
    rig.pass_time(Duration::from_hours(6));
    rig.engine.advance(rig.now);
    assert_eq!(telling.book(&mut rig.engine, rig.now), None, "it waits for its turn");
    let renewed = telling.book(&mut rig.engine, rig.now + EVERY).expect("its own are told again");
    let own = renewed.tallies.iter().find(|tally| &*tally.applyset == super::world::SET);
    assert_eq!(own.and_then(|tally| tally.at), Some(wall(&rig)));
}
