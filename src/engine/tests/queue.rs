//! The rollout queue as it is published.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::harness::Harness;
use super::shared_budget::{self, publish_tally, tally};
use super::world::{SET, config, desired, reading, workload};
use crate::engine::*;

fn files(content: u32) -> Vec<(&'static str, Option<SharedDesiredObject>)> {
    let one = |name: &'static str| (name, Some(desired(&workload(name), content, name)));
    let mut late = (*desired(&workload("late"), content, "late")).clone();
    late.wave = 1;
    vec![one("a"), one("b"), one("c"), ("late", Some(Arc::new(late)))]
}

/// Returns a state in which one workload may roll, and a new revision changes four; the last is of
/// a later wave.
fn changed() -> Harness {
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    for name in ["a", "b", "c", "late"] {
        harness.step(&workload(name));
    }
    harness
}

fn words(queue: &[QueuedObject]) -> Vec<String> {
    queue.iter().map(|queued| format!("{} is {queued}", queued.id.name())).collect()
}

const FULL_BUDGET_REASON: &str = "1 of 1 workloads are rolling out: Deployment shop/a";

fn expected() -> Vec<String> {
    vec![
        format!("b is waiting in the rollout queue: 1st of 2, as {FULL_BUDGET_REASON}"),
        format!("c is waiting in the rollout queue: 2nd of 2, as {FULL_BUDGET_REASON}"),
        "late is waiting: wave 0 is not finished: Deployment shop/c".to_owned(),
    ]
}

#[test]
fn each_that_waits_has_its_place_and_its_reason() {
    let mut harness = changed();
    assert_eq!(words(&harness.engine.rollout_queue()), expected());
    // In the words in which the object itself is reported.
    let why = harness.decide(&workload("b")).reason.map(|reason| reason.to_string());
    assert_eq!(why.as_deref(), Some(FULL_BUDGET_REASON));
    harness.finish_rollouts();
    harness.settle();
    assert!(harness.engine.rollout_queue().is_empty(), "{:?}", harness.engine.rollout_queue());
}

// Nobody rolls it out.
#[test]
fn what_a_source_wanted_that_is_gone_does_not_wait() {
    let mut harness = changed();
    let gone = |number: u32| QueuedObject {
        id: workload("gone"),
        inventory_id: "gone-v1".into(),
        position: Some((number, 2)),
        reason: "a daemon says so".into(),
    };
    let foreign = QueuedObject { inventory_id: "other-v1".into(), ..gone(1) };
    let mut ledger = harness.world.ledger.clone();
    ledger.queue = vec![gone(1), foreign.clone(), gone(2)];
    harness.engine.set_ledger(ledger);
    harness.engine.process_changes();
    harness.engine.retire("gone-v1".into());
    let mut publication = QueuePublication::default();
    assert_eq!(publication.next_ledger(&mut harness.engine, harness.now), None);
    let ledger_now = publication
        .next_ledger(&mut harness.engine, harness.now + PUBLICATION_INTERVAL)
        .expect("it is reported");
    assert_eq!(ledger_now.queue[0], foreign);
    assert_eq!(words(&ledger_now.queue[1..]), expected());
}

#[test]
fn what_is_not_there_yet_waits_in_no_queue() {
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    // The server is asked first whether it is there.
    for name in ["late", "late", "a"] {
        harness.step(&workload(name));
    }
    let reason = harness.decide(&workload("late")).reason;
    assert!(matches!(reason, Some(Reason::Wave(..))), "{reason:?}");
    assert!(harness.engine.rollout_queue().is_empty(), "{:?}", harness.engine.rollout_queue());
}

#[test]
fn the_queue_is_reported_when_it_changes_and_not_too_often() {
    let mut harness = changed();
    let foreign = QueuedObject {
        id: config("other"),
        inventory_id: "other-v1".into(),
        position: Some((1, 1)),
        reason: "another daemon says so".into(),
    };
    let mut ledger = harness.world.ledger.clone();
    ledger.queue = vec![foreign.clone()];
    harness.engine.set_ledger(ledger);
    harness.engine.process_changes();
    let (mut publication, begun) = (QueuePublication::default(), harness.now);
    assert_eq!(publication.next_ledger(&mut harness.engine, begun), None);
    assert_eq!(publication.due, Some(begun + PUBLICATION_INTERVAL));
    let later = begun + PUBLICATION_INTERVAL;
    let ledger_now = publication.next_ledger(&mut harness.engine, later).expect("it is reported");
    assert_eq!(ledger_now.queue[0], foreign);
    assert_eq!(words(&ledger_now.queue[1..]), expected());
    // A queue that comes back from the ledger is not published again.
    harness.engine.set_ledger(ledger_now.clone());
    harness.engine.process_changes();
    assert_eq!(publication.next_ledger(&mut harness.engine, later), None);
    assert_eq!(publication.next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL), None);
    assert_eq!(publication.next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL * 9), None);
    assert_eq!(publication.due, None);
    // The process died in the middle of the write, or it went wrong: it is published again.
    publication.note_failure(&mut harness.engine);
    harness.engine.set_ledger(RolloutLedger { queue: vec![foreign.clone()], ..ledger_now });
    let again = publication
        .next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL * 11)
        .expect("it is reported again");
    assert_eq!(again.queue.len(), 4);
    // A process that ends takes its own part out, and nothing else.
    harness.engine.set_ledger(again.clone());
    let left = RolloutLedger { queue: vec![foreign.clone()], ..again.clone() };
    assert_eq!(harness.engine.unqueued_ledger(), Some(left.clone()));
    harness.engine.set_ledger(left);
    assert_eq!(harness.engine.unqueued_ledger(), None);
    // Another process of the same source says otherwise: that alone is no reason to write.
    harness.engine.set_ledger(RolloutLedger { queue: vec![foreign.clone()], ..again });
    harness.engine.process_changes();
    assert_eq!(publication.next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL * 20), None);
    harness.finish_rollouts();
    harness.settle();
    let empty = publication
        .next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL * 30)
        .expect("that it is empty is reported");
    assert_eq!(empty.queue, [foreign]);
    harness.engine.set_ledger(empty);
    harness.engine.process_changes();
    assert_eq!(publication.next_ledger(&mut harness.engine, later + Duration::from_hours(1)), None);
}

#[test]
fn the_queue_goes_out_beside_the_claims() {
    let mut harness = changed();
    let (mut publication, now) = (QueuePublication::default(), harness.now);
    let ledger = harness.world.ledger.clone();
    let ledger_now = publication.add_to(&mut harness.engine, ledger, now);
    assert_eq!(words(&ledger_now.queue), expected());
    let seals = HashCiphers::default();
    assert_eq!(RolloutLedger::parse(&ledger_now.text(&seals).unwrap(), &seals).unwrap(), ledger_now);
    assert_eq!(publication.next_ledger(&mut harness.engine, now + PUBLICATION_INTERVAL), None);
    assert_eq!(harness.engine.without_queue(ledger_now.clone()).queue, []);
    // A moment later what is claimed goes out, and the rest stays as it was published until the
    // queue is published again.
    let (publication, later) = (&mut QueuePublication::default(), now + PUBLICATION_INTERVAL * 2);
    publication.add_to(&mut harness.engine, ledger_now.clone(), later);
    let mut next = ledger_now.clone();
    let claimed = ledger_now.queue[0].id.clone();
    let claim = next.claims.values().next().unwrap().clone();
    next.claims.insert(claimed.clone(), claim);
    let next = publication.add_to(&mut harness.engine, next, later + PUBLICATION_INTERVAL / 2);
    assert_eq!(next.queue, ledger_now.queue[1..]);
    harness.engine.set_ledger(next);
    assert_eq!(publication.next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL / 2), None);
    assert_eq!(publication.due, Some(later + PUBLICATION_INTERVAL));
    let again = publication
        .next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL)
        .expect("it is reported again");
    assert_ne!(again.queue, ledger_now.queue[1..]);
}

#[test]
fn a_queue_that_goes_out_beside_claims_is_a_new_one_once_its_time_is_over() {
    let check = |passed: Duration, expected: &[String]| {
        let mut harness = changed();
        let (mut publication, now) = (QueuePublication::default(), harness.now);
        let ledger = harness.world.ledger.clone();
        publication.add_to(&mut harness.engine, ledger.clone(), now);
        let next = RolloutLedger { queue: Vec::new(), ..ledger };
        let next = publication.add_to(&mut harness.engine, next, now + passed);
        assert_eq!(words(&next.queue), expected, "{passed:?}");
    };
    check(PUBLICATION_INTERVAL.saturating_sub(Duration::from_nanos(1)), &[]);
    check(PUBLICATION_INTERVAL, &expected());
}

// Nobody knows then whether it was written, and the ledger says so.
#[test]
fn after_a_failure_a_queue_that_the_ledger_has_is_not_published_again() {
    let mut harness = changed();
    let (mut publication, begun) = (QueuePublication::default(), harness.now);
    assert_eq!(publication.next_ledger(&mut harness.engine, begun), None);
    let later = begun + PUBLICATION_INTERVAL;
    let published = publication.next_ledger(&mut harness.engine, later).expect("it is reported");
    harness.engine.set_ledger(published);
    harness.engine.process_changes();
    publication.note_failure(&mut harness.engine);
    assert_eq!(publication.next_ledger(&mut harness.engine, later + PUBLICATION_INTERVAL), None);
}

#[test]
fn a_queue_that_has_not_changed_is_compared_again_where_the_numbers_beside_it_are_old() {
    let check = |hours: i64, expected: bool| {
        let mut harness = shared_budget::at_rest(&["web"], &shared_budget::budget("100%", 100));
        let wall = jiff::Timestamp::UNIX_EPOCH + harness.now.duration_since(harness.epoch);
        let at = jiff::Timestamp::from_second(wall.as_second() - hours * 3600).ok();
        publish_tally(&mut harness, BudgetTally { inventory_id: SET.into(), at, ..tally(3, &[], 0) });
        let (mut publication, now) = (QueuePublication::default(), harness.now);
        for passed in [Duration::ZERO, PUBLICATION_INTERVAL] {
            publication.next_ledger(&mut harness.engine, now + passed);
        }
        publication.next_ledger(&mut harness.engine, now + PUBLICATION_INTERVAL * 3 / 2);
        let due = expected.then_some(now + PUBLICATION_INTERVAL * 2);
        assert_eq!(publication.due, due, "{hours}");
    };
    check(5, false);
    check(6, true);
}

#[test]
fn time_alone_has_no_queue_compared() {
    let mut harness = shared_budget::at_rest(&["web"], &shared_budget::budget("100%", 100));
    let (mut publication, now) = (QueuePublication::default(), harness.now);
    for passed in [Duration::ZERO, PUBLICATION_INTERVAL] {
        harness.engine.advance(now + passed);
        harness.engine.process_changes();
        publication.next_ledger(&mut harness.engine, now + passed);
    }
    let later = now + PUBLICATION_INTERVAL * 3 / 2;
    harness.engine.advance(later);
    harness.engine.process_changes();
    publication.next_ledger(&mut harness.engine, later);
    assert_eq!(publication.due, None);
}

#[test]
fn an_object_that_is_forgotten_waits_no_more() {
    let mut harness = changed();
    harness.engine.forget_blocker(&workload("late"));
    assert_eq!(words(&harness.engine.rollout_queue()), expected()[..2]);
}

#[test]
fn of_a_long_queue_the_first_are_reported_and_how_many_there_are() {
    let names: Vec<Arc<str>> = (0..150).map(|number| format!("w{number:03}").into()).collect();
    let files = |content| -> BTreeMap<Arc<str>, Option<SharedDesiredObject>> {
        let one = |name: &Arc<str>| (name.clone(), Some(desired(&workload(name), content, name)));
        names.iter().map(one).collect()
    };
    let mut harness = Harness::new(1);
    let read = |harness: &mut Harness, revision: &str, content| {
        let files = files(content);
        let files: Vec<(&str, Option<SharedDesiredObject>)> =
            files.iter().map(|(name, file)| (&**name, file.clone())).collect();
        harness.read(reading(revision, &files));
    };
    read(&mut harness, "r1", 1);
    harness.settle();
    read(&mut harness, "r2", 2);
    for name in &names {
        harness.step(&workload(name));
    }
    let queue = harness.engine.rollout_queue();
    assert_eq!(queue.len(), MAX_PUBLISHED_OBJECTS);
    assert_eq!(queue[MAX_PUBLISHED_OBJECTS - 1].position, Some((100, 149)));
    assert!(queue.iter().all(|queued| &*queued.inventory_id == SET));
}

#[test]
fn places_are_counted_as_people_do() {
    let check = |position: u32, expected: &str| {
        let queued = QueuedObject {
            id: workload("web"),
            inventory_id: SET.into(),
            position: Some((position, 200)),
            reason: "it is so".into(),
        };
        let words = format!("waiting in the rollout queue: {expected} of 200, as it is so");
        assert_eq!(queued.to_string(), words);
    };
    for (position, words) in
        [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th")]
    {
        check(position, words);
    }
    for (position, words) in [(21, "21st"), (102, "102nd"), (111, "111th"), (123, "123rd")] {
        check(position, words);
    }
}

/// Returns the queue of a rollout ledger as somebody has written it.
fn queue_of(text: &Value) -> Vec<QueuedObject> {
    let text = json!({ "queue": [text] }).to_string();
    RolloutLedger::parse(&text, &HashCiphers::default()).unwrap().queue
}

// A message of a server may be of any length.
#[test]
fn of_a_long_reason_the_beginning_is_shown() {
    let check = |reason: &str, expected: &str| {
        let text = json!({"object": "Deployment.apps/shop/web", "source": SET, "reason": reason});
        let expected = QueuedObject {
            id: workload("web"),
            inventory_id: SET.into(),
            position: None,
            reason: expected.into(),
        };
        assert_eq!(queue_of(&text), [expected]);
    };
    let x = |count: usize| "x".repeat(count);
    check("", "");
    check(&x(300), &x(300));
    check(&x(301), &format!("{}…", x(300)));
    // Never a part of a character.
    check(&format!("{}\u{e9}", x(299)), &format!("{}…", x(299)));
}

#[test]
fn what_names_no_object_is_in_no_queue() {
    assert_eq!(queue_of(&json!({"object": "web", "source": SET, "reason": "it is so"})), []);
}
