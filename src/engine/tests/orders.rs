//! The orders and intents of people: undo, retry, abort, pause, hold.

use std::sync::Arc;
use std::time::Duration;

use super::rig::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

/// `web`, which uses the `ConfigMap` env.
fn web(content: u32) -> SharedDesired {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    Arc::new(web)
}

fn env(content: u32) -> SharedDesired {
    desired(&config("env"), content, "env")
}

fn both(content: u32) -> [(&'static str, Option<SharedDesired>); 2] {
    [("env", Some(env(content))), ("web", Some(web(content)))]
}

/// Returns a cluster in which r1 and r2 were released.
fn second() -> Harness {
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &both(1)));
    rig.settle();
    rig.read(reading("r2", &both(2)));
    rig.settle();
    rig.world.log.clear();
    rig
}

fn asks(rig: &mut Harness, id: &ObjectId, paused: Option<&str>, hold: Option<&str>) {
    annotate(rig, id, None, paused, hold);
}

fn annotate(rig: &mut Harness, id: &ObjectId, order: Option<&str>, paused: Option<&str>, hold: Option<&str>) {
    let rv = rig.world.tick();
    let thing = rig.world.things.get_mut(id).unwrap();
    (thing.rv, thing.asked) = (rv, ObjectIntents::parse(order, paused, hold));
    rig.world.announce(id);
}

fn order(rig: &mut Harness, id: &ObjectId, order: &str) {
    rig.give(id, order);
    rig.settle();
}

#[track_caller]
fn shows(rig: &Harness, content: u32, revision: &str) {
    for (id, hash) in [(workload("web"), web(content).hash), (config("env"), env(content).hash)] {
        let expected = Release { hash, revision: Revision::new(revision) };
        assert_eq!(rig.world.things[&id].release.as_ref(), Some(&expected), "{id} {:?}", rig.world.log);
    }
}

/// Returns the outcome of the last order.
fn told(rig: &Harness) -> &str {
    rig.world.acknowledged.last().map_or("", |last| &last.outcome)
}

fn reason(rig: &mut Harness, id: &ObjectId) -> String {
    rig.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

#[test]
fn an_undo_takes_back_all_that_the_revision_brought_together() {
    let mut rig = second();
    order(&mut rig, &workload("web"), "1-a undo");
    shows(&rig, 1, "r1");
    assert_eq!(told(&rig), "undone: revision r2 of Deployment shop/web (2 objects) goes back to r1");
    let why = "revision r2 undone by hand; it is back at revision r1";
    assert_eq!(reason(&mut rig, &workload("web")), why);
    assert_eq!(reason(&mut rig, &config("env")), why);
}

#[test]
fn an_undo_stays_until_the_content_changes() {
    let mut rig = second();
    order(&mut rig, &workload("web"), "1-a undo");
    let count = rig.world.log.len();
    let other = desired(&config("other"), 1, "other");
    rig.read(reading("r3", &[("other", Some(other.clone()))]));
    rig.settle();
    shows(&rig, 1, "r1");
    // Also for a process that starts now, to which the order is shown again.
    rig.engine = rig.fresh(3);
    rig.read(reading("r3", &[both(2).to_vec(), vec![("other", Some(other))]].concat()));
    rig.engine.mark_all();
    rig.settle();
    shows(&rig, 1, "r1");
    assert_eq!(rig.world.log.len(), count + 1, "{:?}", rig.world.log);
    assert_eq!(rig.world.acknowledged.len(), 1);
    rig.read(reading("r4", &both(4)));
    rig.settle();
    shows(&rig, 4, "r4");
    assert!(rig.world.rejections.is_empty());
}

#[test]
fn an_undo_goes_to_the_revision_that_it_names() {
    let mut rig = second();
    rig.read(reading("r3", &both(3)));
    rig.settle();
    order(&mut rig, &workload("web"), "1-a undo r1");
    shows(&rig, 1, "r1");
    // From there on, forwards again.
    order(&mut rig, &workload("web"), "2-b undo r2");
    shows(&rig, 2, "r2");
    assert_eq!(told(&rig), "undone: revision r1 of Deployment shop/web (2 objects) goes back to r2");
}

#[test]
fn an_undo_goes_to_what_was_in_force_and_not_to_what_failed_meanwhile() {
    let mut rig = second();
    rig.world.bad.insert(web(3).hash);
    for content in [3, 4] {
        rig.read(reading(&format!("r{content}"), &both(content)));
        rig.settle();
    }
    shows(&rig, 4, "r4");
    // A process that starts now knows it too.
    rig.engine = rig.fresh(3);
    rig.read(reading("r4", &both(4)));
    rig.settle();
    order(&mut rig, &workload("web"), "1-a undo");
    shows(&rig, 2, "r2");
    assert_eq!(told(&rig), "undone: revision r4 of Deployment shop/web (2 objects) goes back to r2");
    // And on from there.
    order(&mut rig, &workload("web"), "2-b undo");
    shows(&rig, 1, "r1");
    assert_eq!(told(&rig), "undone: revision r2 of Deployment shop/web (2 objects) goes back to r1");
}

#[test]
fn what_the_undone_revision_added_goes_away() {
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &[("web", Some(desired(&workload("web"), 1, "web")))]));
    rig.settle();
    rig.read(reading("r2", &both(2)));
    rig.settle();
    order(&mut rig, &workload("web"), "1-a undo");
    assert!(!rig.world.things.contains_key(&config("env")), "{:?}", rig.world.log);
    let release = rig.world.things[&workload("web")].release.clone().unwrap();
    assert_eq!(release.revision, Revision::new("r1"));
}

#[test]
fn an_order_with_nothing_to_do_says_so() {
    fn check(words: &str, expected: &str) {
        let mut rig = second();
        order(&mut rig, &workload("web"), words);
        assert_eq!(told(&rig), expected, "{words}");
        assert_eq!(rig.world.log, [], "{words}");
        assert!(rig.world.rejections.is_empty(), "{words}");
    }
    check("1-a undo r9", "nothing to undo: there is no such revision");
    check("1-a undo r2", "nothing to undo: Deployment shop/web is in revision r2 as it is now");
    check("1-a retry", "nothing to retry: nothing of Deployment shop/web was rejected");
    check("1-a abort", "nothing to abort: no rollout of Deployment shop/web is under way");
    let content = web(2).hash;
    check(&format!("1-a promote {content} 1"), "nothing to promote: Deployment shop/web is not stepping");
    check(&format!("1-a promote-full {content}"), "nothing to promote: Deployment shop/web is not stepping");
    check("1-a promote", "nothing was done: no order is called \"promote\"");
    check("1-a destroy", "nothing was done: no order is called \"destroy\"");
}

#[test]
fn what_the_newest_revision_asks_for_is_not_gone_back_to() {
    let mut rig = second();
    order(&mut rig, &workload("web"), "1-a undo");
    order(&mut rig, &workload("web"), "2-b undo r2");
    assert_eq!(
        told(&rig),
        "nothing to undo: the newest revision asks for Deployment shop/web as it is in revision r2"
    );
    shows(&rig, 1, "r1");
}

#[test]
fn a_retry_ends_an_undo() {
    let mut rig = second();
    order(&mut rig, &workload("web"), "1-a undo");
    order(&mut rig, &workload("web"), "2-b retry");
    shows(&rig, 2, "r2");
    assert_eq!(told(&rig), "retried: 2 objects, of which was said: revision r2 undone by hand");
    assert!(rig.world.rejections.is_empty());
    assert_eq!(reason(&mut rig, &workload("web")), "");
}

#[test]
fn a_retry_tries_again_what_failed() {
    let mut rig = second();
    rig.world.bad.insert(web(3).hash);
    rig.read(reading("r3", &both(3)));
    rig.settle();
    shows(&rig, 2, "r2");
    rig.world.bad.clear();
    order(&mut rig, &config("env"), "1-a retry");
    shows(&rig, 3, "r3");
}

#[test]
fn an_abort_takes_a_rollout_back() {
    let mut rig = second();
    rig.read(reading("r3", &both(3)));
    for id in [workload("web"), config("env"), workload("web")] {
        rig.deliver(usize::MAX);
        rig.step(&id);
    }
    assert_eq!(rig.world.things[&workload("web")].release.as_ref().unwrap().hash, web(3).hash);
    order(&mut rig, &workload("web"), "1-a abort");
    shows(&rig, 2, "r2");
    assert_eq!(told(&rig), "aborted: revision r3 of Deployment shop/web (2 objects) goes back");
    assert_eq!(reason(&mut rig, &workload("web")), "revision r3 aborted by hand; it is back at revision r2");
    // A second one finds nothing.
    order(&mut rig, &workload("web"), "2-b abort");
    assert_eq!(told(&rig), "nothing to abort: no rollout of Deployment shop/web is under way");
}

#[test]
fn an_abort_of_what_only_waits_lets_nothing_begin() {
    let mut rig = second();
    rig.read(reading("r3", &both(3)));
    rig.give(&workload("web"), "1-a abort");
    rig.deliver(usize::MAX);
    rig.carry_out();
    rig.settle();
    shows(&rig, 2, "r2");
    assert_eq!(rig.world.log, []);
    assert!(rig.engine.in_flight().is_empty());
}

#[test]
fn what_is_paused_is_repaired_and_not_changed() {
    let mut rig = second();
    asks(&mut rig, &workload("web"), Some("1-a looking at it"), None);
    rig.settle();
    assert_eq!(told(&rig), "paused: Deployment shop/web");
    rig.read(reading("r3", &both(3)));
    rig.settle();
    shows(&rig, 2, "r2");
    assert_eq!(reason(&mut rig, &workload("web")), "it is paused: looking at it");
    let rv = rig.world.tick();
    let thing = rig.world.things.get_mut(&workload("web")).unwrap();
    (thing.drifted, thing.rv, thing.shape) = (true, rv, rv);
    rig.world.announce(&workload("web"));
    rig.settle();
    assert_eq!(rig.world.log, [AuditEntry::Changed(workload("web"))]);
    asks(&mut rig, &workload("web"), None, None);
    rig.settle();
    shows(&rig, 3, "r3");
    assert_eq!(told(&rig), "resumed: Deployment shop/web");
}

#[test]
fn a_paused_part_of_a_unit_keeps_no_token() {
    let mut rig = second();
    asks(&mut rig, &config("env"), Some("1-a"), None);
    rig.settle();
    rig.read(reading("r3", &both(3)));
    rig.settle();
    shows(&rig, 2, "r2");
    assert!(rig.engine.in_flight().is_empty());
    assert!(rig.world.is_free());
    asks(&mut rig, &config("env"), None, None);
    rig.settle();
    shows(&rig, 3, "r3");
}

#[test]
fn a_paused_source_releases_nothing_and_goes_back_all_the_same() {
    let mut rig = second();
    rig.world.bad.insert(web(3).hash);
    rig.read(reading("r3", &both(3)));
    for id in [workload("web"), config("env"), workload("web")] {
        rig.deliver(usize::MAX);
        rig.step(&id);
    }
    pause(&mut rig, PauseIntent::parse("1-a"));
    rig.settle();
    assert_eq!(told(&rig), "paused: source test");
    shows(&rig, 2, "r2");
    rig.read(reading("r4", &both(4)));
    rig.settle();
    shows(&rig, 2, "r2");
    rig.read(reading("r5", &[("env", None), ("web", None)]));
    rig.settle();
    shows(&rig, 2, "r2");
    assert_eq!(reason(&mut rig, &workload("web")), "source test is paused");
    pause(&mut rig, None);
    rig.settle();
    assert_eq!(told(&rig), "resumed: source test");
    assert!(rig.world.things.is_empty());
}

fn pause(rig: &mut Harness, paused: Option<PauseIntent>) {
    rig.world.paused.clone_from(&paused);
    let inventory = rig.engine.source(0).inventory.clone().unwrap();
    rig.engine.inventory(0, Inventory { paused, ..inventory });
}

#[test]
fn a_hold_keeps_everything_as_it_is_until_its_end() {
    let mut rig = second();
    rig.engine.clock(rig.now, jiff::Timestamp::UNIX_EPOCH);
    asks(&mut rig, &workload("web"), None, Some("1-a until=1970-01-01T00:01:00Z heap dump"));
    rig.settle();
    assert_eq!(told(&rig), "held: Deployment shop/web until 1970-01-01T00:01:00Z");
    let rv = rig.world.tick();
    let thing = rig.world.things.get_mut(&workload("web")).unwrap();
    (thing.drifted, thing.rv, thing.shape) = (true, rv, rv);
    rig.world.announce(&workload("web"));
    rig.settle();
    assert_eq!(rig.world.log, []);
    let decision = rig.decide(&workload("web"));
    assert_eq!(decision.again, Some(Duration::from_mins(1)));
    assert_eq!(
        decision.reason.unwrap().to_string(),
        "on hold until 1970-01-01T00:01:00Z: heap dump; it was changed, and is not repaired"
    );
    rig.pass_time(Duration::from_mins(1));
    rig.engine.mark(&workload("web"));
    rig.settle();
    assert_eq!(rig.world.log, [AuditEntry::Changed(workload("web"))]);
}

#[test]
fn a_hold_whose_end_cannot_be_read_is_none() {
    let mut rig = second();
    asks(&mut rig, &workload("web"), None, Some("1-a until=tomorrow"));
    rig.settle();
    assert_eq!(told(&rig), "not held: Deployment shop/web: until when cannot be read");
    rig.read(reading("r3", &both(3)));
    rig.settle();
    shows(&rig, 3, "r3");
}

/// A process that dies after anything that an order leads to, and what comes after it.
#[test]
fn an_order_is_carried_out_once_wherever_the_process_ends() {
    for point in 0..30 {
        let mut rig = second();
        rig.give(&workload("web"), "1-a undo");
        for _ in 0..point {
            rig.turn();
        }
        rig.engine = rig.fresh(3);
        rig.read(reading("r2", &both(2)));
        rig.engine.mark_all();
        rig.settle();
        shows(&rig, 1, "r1");
        assert_eq!(rig.world.log.len(), 2, "{point} {:?}", rig.world.log);
        assert_eq!(rig.world.acknowledged.len(), 1, "{point}");
    }
}

#[test]
fn an_order_that_still_stands_is_never_forgotten() {
    let mut rig = second();
    rig.give(&workload("web"), "1-a undo");
    rig.engine.carry_out_orders();
    rig.settle();
    // Somebody writes it again, and again, while others are carried out.
    for number in 0..60 {
        rig.give(&workload("web"), "1-a undo");
        rig.give(&config("env"), &format!("2-{number:02} abort"));
        rig.carry_out();
        rig.keep_parents();
    }
    assert_eq!(rig.world.acknowledged.len(), 61);
    rig.settle();
    order(&mut rig, &config("env"), "3-c abort");
    assert_eq!(rig.world.orders, []);
    assert_eq!(rig.world.acknowledged.len(), 50);
    assert_eq!(rig.world.log.len(), 2, "{:?}", rig.world.log);
}

#[test]
fn whoever_gave_an_order_is_told() {
    let mut rig = second();
    rig.give(&workload("web"), "1-a undo");
    rig.world.orders[0].by = "ann".into();
    rig.engine.take_orders(0, rig.world.orders.clone());
    rig.settle();
    let words = "undone: revision r2 of Deployment shop/web (2 objects) goes back to r1 (ordered by ann)";
    assert_eq!(told(&rig), words);
    assert_eq!(rig.engine.take_done_orders(), [(0, workload("web"), words.to_owned())]);
    assert_eq!(rig.engine.take_done_orders(), []);
    let why = "revision r2 undone by ann; it is back at revision r1";
    assert_eq!(reason(&mut rig, &workload("web")), why);
}

#[test]
fn an_order_on_an_object_is_not_obeyed_and_told_once() {
    let mut rig = second();
    annotate(&mut rig, &workload("web"), Some("1-a undo r1"), None, None);
    rig.settle();
    shows(&rig, 2, "r2");
    assert_eq!((&rig.world.log, &rig.world.acknowledged), (&Vec::new(), &Vec::new()));
    assert_eq!(rig.engine.take_misplaced_orders(), [(0, workload("web"))]);
    let rv = rig.world.tick();
    rig.world.things.get_mut(&workload("web")).unwrap().rv = rv;
    rig.world.announce(&workload("web"));
    rig.settle();
    assert_eq!(rig.engine.take_misplaced_orders(), []);
    annotate(&mut rig, &workload("web"), Some("2-b retry"), None, None);
    rig.settle();
    assert_eq!(rig.engine.take_misplaced_orders(), [(0, workload("web"))]);
}

#[test]
fn an_order_on_an_object_of_another_source_is_refused() {
    let mut rig = second();
    order(&mut rig, &workload("other"), "1-a undo r1");
    assert_eq!(told(&rig), "nothing was done: Deployment shop/other is no object of source test");
    let thing = rig.world.things.get_mut(&workload("web")).unwrap();
    (thing.foreign, thing.rv) = (true, thing.rv + 100);
    rig.world.clock += 200;
    rig.world.announce(&workload("web"));
    rig.deliver(usize::MAX);
    rig.give(&workload("web"), "2-b undo r1");
    rig.carry_out();
    rig.keep_parents();
    assert_eq!(told(&rig), "nothing was done: Deployment shop/web is no object of source test");
}

/// Anybody who may annotate an object may write any token there.
#[test]
fn a_pause_with_the_token_of_an_order_keeps_it_from_nothing() {
    for first in ["the pause", "the order"] {
        let mut rig = second();
        if first == "the pause" {
            asks(&mut rig, &config("env"), Some("1-a"), None);
            rig.settle();
        }
        rig.give(&workload("web"), "1-a undo r1");
        rig.carry_out();
        rig.keep_parents();
        asks(&mut rig, &config("env"), Some("1-a"), None);
        rig.settle();
        asks(&mut rig, &config("env"), None, None);
        rig.settle();
        shows(&rig, 1, "r1");
        let undone = rig.world.acknowledged.iter().filter(|one| one.outcome.starts_with("undone: "));
        assert_eq!(undone.count(), 1, "{first}");
        assert_eq!(rig.world.orders, [], "{first}");
    }
}

#[test]
fn so_many_pauses_are_acknowledged_and_all_count() {
    let mut rig = Harness::new(3);
    let name = |number: u32| format!("env-{number:03}");
    let files = |content: u32| -> Vec<(String, SharedDesired)> {
        (0..130).map(|n| (name(n), desired(&config(&name(n)), content, &name(n)))).collect()
    };
    let read = |rig: &mut Harness, revision: &str, content: u32| {
        let files = files(content);
        let files: Vec<_> = files.iter().map(|(name, want)| (&**name, Some(want.clone()))).collect();
        rig.read(reading(revision, &files));
        rig.settle();
    };
    read(&mut rig, "r1", 1);
    for number in 0..130 {
        asks(&mut rig, &config(&name(number)), Some(&format!("{number}-{}", "t".repeat(5000))), None);
    }
    rig.settle();
    assert_eq!(rig.world.acknowledged.len(), 100);
    assert!(Acknowledgement::text(&rig.world.acknowledged).len() < 20_000);
    rig.world.log.clear();
    read(&mut rig, "r2", 2);
    assert_eq!(rig.world.log, []);
}

#[test]
fn a_unit_goes_on_when_the_hold_of_a_part_ends() {
    let mut rig = second();
    rig.engine.clock(rig.now, jiff::Timestamp::UNIX_EPOCH);
    asks(&mut rig, &config("env"), None, Some("1-a until=1970-01-01T00:01:00Z x"));
    rig.settle();
    rig.read(reading("r3", &both(3)));
    rig.settle();
    shows(&rig, 2, "r2");
    assert!(rig.engine.in_flight().is_empty());
    assert!(rig.world.is_free());
    rig.pass_time(Duration::from_mins(1));
    rig.engine.advance(rig.now);
    rig.settle();
    shows(&rig, 3, "r3");
}
