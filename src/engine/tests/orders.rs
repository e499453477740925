//! The orders and intents of people: undo, retry, abort, pause, hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::harness::Harness;
use super::world::{FIRST, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

/// Returns `web`, which uses the `ConfigMap` env.
pub(super) fn web(content: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    Arc::new(web)
}

pub(super) fn env(content: u32) -> SharedDesiredObject {
    desired(&config("env"), content, "env")
}

pub(super) fn both(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    [("env", Some(env(content))), ("web", Some(web(content)))]
}

/// Returns a cluster in which r1 and r2 were released.
pub(super) fn second() -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &both(1)));
    harness.settle();
    harness.read(reading("r2", &both(2)));
    harness.settle();
    harness.world.log.clear();
    harness
}

pub(super) fn asks(harness: &mut Harness, id: &ObjectId, paused: Option<&str>, hold: Option<&str>) {
    annotate(harness, id, None, paused, hold);
}

pub(super) fn annotate(
    harness: &mut Harness,
    id: &ObjectId,
    order: Option<&str>,
    paused: Option<&str>,
    hold: Option<&str>,
) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.rv, thing.objects_with_intents) = (rv, ObjectIntents::parse(order, paused, hold));
    harness.world.announce(id);
}

pub(super) fn order(harness: &mut Harness, id: &ObjectId, order: &str) {
    harness.give(id, order);
    harness.settle();
}

#[track_caller]
pub(super) fn shows(harness: &Harness, content: u32, revision: &str) {
    for (id, hash) in [(workload("web"), web(content).hash), (config("env"), env(content).hash)] {
        let expected = ContentRef { hash, revision: Revision::new(revision) };
        assert_eq!(
            harness.world.things[&id].release.as_ref(),
            Some(&expected),
            "{id} {:?}",
            harness.world.log
        );
    }
}

/// Returns the outcome of the last order.
pub(super) fn last_outcome(harness: &Harness) -> &str {
    harness.world.acknowledged.last().map_or("", |last| &last.outcome)
}

pub(super) fn reason(harness: &mut Harness, id: &ObjectId) -> String {
    harness.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

#[test]
fn an_undo_takes_back_all_that_the_revision_brought_together() {
    let mut harness = second();
    order(&mut harness, &workload("web"), "1-a undo");
    shows(&harness, 1, "r1");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r2 of Deployment shop/web (2 objects) goes back to r1"
    );
    let why = "revision r2 undone by hand; it is back at revision r1";
    assert_eq!(reason(&mut harness, &workload("web")), why);
    assert_eq!(reason(&mut harness, &config("env")), why);
}

#[test]
fn an_undo_stays_until_the_content_changes() {
    let mut harness = second();
    order(&mut harness, &workload("web"), "1-a undo");
    let count = harness.world.log.len();
    let other = desired(&config("other"), 1, "other");
    harness.read(reading("r3", &[("other", Some(other.clone()))]));
    harness.settle();
    shows(&harness, 1, "r1");
    // Also for a process that starts now, to which the order is shown again.
    harness.engine = harness.fresh(3);
    harness.read(reading("r3", &[both(2).to_vec(), vec![("other", Some(other))]].concat()));
    harness.engine.mark_all();
    harness.settle();
    shows(&harness, 1, "r1");
    assert_eq!(harness.world.log.len(), count + 1, "{:?}", harness.world.log);
    assert_eq!(harness.world.acknowledged.len(), 1);
    harness.read(reading("r4", &both(4)));
    harness.settle();
    shows(&harness, 4, "r4");
    assert!(harness.world.rejections.is_empty());
}

#[test]
fn an_undo_goes_to_the_revision_that_it_names() {
    let mut harness = second();
    harness.read(reading("r3", &both(3)));
    harness.settle();
    order(&mut harness, &workload("web"), "1-a undo r1");
    shows(&harness, 1, "r1");
    // From there on, forwards again.
    order(&mut harness, &workload("web"), "2-b undo r2");
    shows(&harness, 2, "r2");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r1 of Deployment shop/web (2 objects) goes back to r2"
    );
}

#[test]
fn an_undo_goes_to_what_was_in_force_and_not_to_what_failed_meanwhile() {
    let mut harness = second();
    harness.world.bad.insert(web(3).hash);
    for content in [3, 4] {
        harness.read(reading(&format!("r{content}"), &both(content)));
        harness.settle();
    }
    shows(&harness, 4, "r4");
    // A process that starts now knows it too.
    harness.engine = harness.fresh(3);
    harness.read(reading("r4", &both(4)));
    harness.settle();
    order(&mut harness, &workload("web"), "1-a undo");
    shows(&harness, 2, "r2");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r4 of Deployment shop/web (2 objects) goes back to r2"
    );
    // And on from there.
    order(&mut harness, &workload("web"), "2-b undo");
    shows(&harness, 1, "r1");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r2 of Deployment shop/web (2 objects) goes back to r1"
    );
}

/// Goes on by single turns until a workload runs a revision whose unit is still in the ledger.
fn turn_until_released(harness: &mut Harness, revision: &str) {
    for _ in 0..400 {
        let web = &harness.world.things[&workload("web")];
        let shows = web.release.as_ref().is_some_and(|release| release.revision == Revision::new(revision));
        if shows && web.phase == WorkloadPhase::Settled && !harness.world.ledger.units.is_empty() {
            return;
        }
        harness.turn();
    }
    panic!("{revision} was never released: {:#?}", harness.world.log);
}

#[test]
fn an_undo_right_after_a_rollout_goes_to_what_was_in_force() {
    let mut harness = second();
    harness.world.bad.insert(web(3).hash);
    harness.read(reading("r3", &both(3)));
    harness.settle();
    shows(&harness, 2, "r2");
    harness.read(reading("r4", &both(4)));
    turn_until_released(&mut harness, "r4");
    order(&mut harness, &workload("web"), "1-a undo");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r4 of Deployment shop/web (2 objects) goes back to r2"
    );
    shows(&harness, 2, "r2");
}

#[test]
fn what_failed_or_was_only_read_was_never_in_force() {
    let mut harness = second();
    harness.world.bad.insert(web(3).hash);
    harness.read(reading("r3", &both(3)));
    harness.settle();
    let authored = Authorship::of("somebody", "a commit");
    harness.engine.sources[FIRST].authors.push((Revision::new("r4"), authored));
    harness.read(reading("r5", &both(2)));
    harness.settle();
    let expected: BTreeSet<Revision> = ["r1", "r2", "r5"].map(Revision::new).into();
    assert_eq!(harness.engine.revisions_in_force(FIRST), expected);
}

#[test]
fn what_the_undone_revision_added_goes_away() {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(desired(&workload("web"), 1, "web")))]));
    harness.settle();
    harness.read(reading("r2", &both(2)));
    harness.settle();
    order(&mut harness, &workload("web"), "1-a undo");
    assert!(!harness.world.things.contains_key(&config("env")), "{:?}", harness.world.log);
    let release = harness.world.things[&workload("web")].release.clone().unwrap();
    assert_eq!(release.revision, Revision::new("r1"));
}

// The revision is older than its manifest in this source, and not than the object.
#[test]
fn what_a_named_revision_does_not_have_stays() {
    let mut harness = Harness::new(3);
    harness.read(reading("r0", &[("other", Some(desired(&config("other"), 1, "other")))]));
    harness.read(reading("r1", &[("web", Some(desired(&workload("web"), 1, "web")))]));
    harness.settle();
    harness.read(reading("r2", &both(2)));
    harness.settle();
    order(&mut harness, &workload("web"), "1-a undo r0");
    assert_eq!(
        last_outcome(&harness),
        "nothing to undo: revision r0 has no Deployment shop/web; a commit removes it"
    );
    order(&mut harness, &workload("web"), "2-b undo r1");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r2 of Deployment shop/web (1 object) goes back to r1; r1 has no ConfigMap shop/env, which stays"
    );
    assert!(harness.world.things.contains_key(&config("env")), "{:?}", harness.world.log);
    let release = harness.world.things[&workload("web")].release.clone().unwrap();
    assert_eq!(release.revision, Revision::new("r1"));
}

#[test]
fn an_order_with_nothing_to_do_says_so() {
    fn check(words: &str, expected: &str) {
        let mut harness = second();
        order(&mut harness, &workload("web"), words);
        assert_eq!(last_outcome(&harness), expected, "{words}");
        assert_eq!(harness.world.log, [], "{words}");
        assert!(harness.world.rejections.is_empty(), "{words}");
    }
    check("1-a undo r9", "nothing to undo: there is no such revision");
    check("1-a undo r2", "nothing to undo: Deployment shop/web is in revision r2 as it is now");
    check("1-a retry", "nothing to retry: nothing of Deployment shop/web was rejected");
    check("1-a abort", "nothing to abort: no rollout of Deployment shop/web is under way");
    let content = web(2).hash;
    check(
        &format!("1-a promote {content} 1"),
        "nothing to promote: Deployment shop/web has no step in progress",
    );
    check(
        &format!("1-a promote-full {content}"),
        "nothing to promote: Deployment shop/web has no step in progress",
    );
    check("1-a promote", "nothing was done: no order is called \"promote\"");
    check("1-a destroy", "nothing was done: no order is called \"destroy\"");
}

#[test]
fn what_the_newest_revision_asks_for_is_not_gone_back_to() {
    let mut harness = second();
    order(&mut harness, &workload("web"), "1-a undo");
    order(&mut harness, &workload("web"), "2-b undo r2");
    assert_eq!(
        last_outcome(&harness),
        "nothing to undo: the newest revision asks for Deployment shop/web as it is in revision r2"
    );
    shows(&harness, 1, "r1");
}

#[test]
fn a_retry_ends_an_undo() {
    let mut harness = second();
    order(&mut harness, &workload("web"), "1-a undo");
    order(&mut harness, &workload("web"), "2-b retry");
    shows(&harness, 2, "r2");
    assert_eq!(last_outcome(&harness), "retried: 2 objects, rejected before: revision r2 undone by hand");
    assert!(harness.world.rejections.is_empty());
    assert_eq!(reason(&mut harness, &workload("web")), "");
}

#[test]
fn a_retry_tries_again_what_failed() {
    let mut harness = second();
    harness.world.bad.insert(web(3).hash);
    harness.read(reading("r3", &both(3)));
    harness.settle();
    shows(&harness, 2, "r2");
    harness.world.bad.clear();
    order(&mut harness, &config("env"), "1-a retry");
    shows(&harness, 3, "r3");
}

#[test]
fn an_abort_takes_a_rollout_back() {
    let mut harness = second();
    harness.read(reading("r3", &both(3)));
    for id in [workload("web"), config("env"), workload("web")] {
        harness.deliver(usize::MAX);
        harness.step(&id);
    }
    assert_eq!(harness.world.things[&workload("web")].release.as_ref().unwrap().hash, web(3).hash);
    order(&mut harness, &workload("web"), "1-a abort");
    shows(&harness, 2, "r2");
    assert_eq!(last_outcome(&harness), "aborted: revision r3 of Deployment shop/web (2 objects) goes back");
    assert_eq!(
        reason(&mut harness, &workload("web")),
        "revision r3 aborted by hand; it is back at revision r2"
    );
    // A second one finds nothing.
    order(&mut harness, &workload("web"), "2-b abort");
    assert_eq!(last_outcome(&harness), "nothing to abort: no rollout of Deployment shop/web is under way");
}

#[test]
fn an_abort_of_what_only_waits_lets_nothing_begin() {
    let mut harness = second();
    harness.read(reading("r3", &both(3)));
    harness.give(&workload("web"), "1-a abort");
    harness.deliver(usize::MAX);
    harness.carry_out();
    harness.settle();
    shows(&harness, 2, "r2");
    assert_eq!(harness.world.log, []);
    assert!(harness.engine.workloads_in_flight().is_empty());
}

/// Ends the process after anything that an order leads to, and checks what comes after it.
#[test]
fn an_order_is_carried_out_once_wherever_the_process_ends() {
    for point in 0..30 {
        let mut harness = second();
        harness.give(&workload("web"), "1-a undo");
        for _ in 0..point {
            harness.turn();
        }
        harness.engine = harness.fresh(3);
        harness.read(reading("r2", &both(2)));
        harness.engine.mark_all();
        harness.settle();
        shows(&harness, 1, "r1");
        assert_eq!(harness.world.log.len(), 2, "{point} {:?}", harness.world.log);
        assert_eq!(harness.world.acknowledged.len(), 1, "{point}");
    }
}

#[test]
fn an_order_that_is_still_there_is_never_forgotten() {
    let mut harness = second();
    harness.give(&workload("web"), "1-a undo");
    harness.engine.carry_out_orders();
    harness.settle();
    // Somebody writes it again, and again, while others are carried out.
    for number in 0..60 {
        harness.give(&workload("web"), "1-a undo");
        harness.give(&config("env"), &format!("2-{number:02} abort"));
        harness.carry_out();
        harness.sync_inventories();
    }
    assert_eq!(harness.world.acknowledged.len(), 61);
    harness.settle();
    order(&mut harness, &config("env"), "3-c abort");
    assert_eq!(harness.world.orders, []);
    assert_eq!(harness.world.acknowledged.len(), 50);
    assert_eq!(harness.world.log.len(), 2, "{:?}", harness.world.log);
}

#[test]
fn whoever_gave_an_order_is_informed() {
    let mut harness = second();
    harness.give(&workload("web"), "1-a undo");
    harness.world.orders[0].by = "ann".into();
    harness.engine.take_orders(FIRST, harness.world.orders.clone());
    harness.settle();
    let words = "undone: revision r2 of Deployment shop/web (2 objects) goes back to r1 (ordered by ann)";
    assert_eq!(last_outcome(&harness), words);
    let unit = RejectedUnit { object: workload("web"), revision: Revision::new("r2"), objects: 2 };
    let target = UndoTarget::Of(Revision::new("r1"));
    let outcome = OrderOutcome::Undone(UndoneUnit { unit, target, kept: Vec::new() });
    let answer = AnsweredOrder { outcome, by: "ann".into() };
    assert_eq!(harness.engine.take_done_orders(), [(FIRST, workload("web"), answer)]);
    assert_eq!(harness.engine.take_done_orders(), []);
    let why = "revision r2 undone by ann; it is back at revision r1";
    assert_eq!(reason(&mut harness, &workload("web")), why);
}

#[test]
fn an_order_on_an_object_is_not_obeyed_and_reported_once() {
    let mut harness = second();
    annotate(&mut harness, &workload("web"), Some("1-a undo r1"), None, None);
    harness.settle();
    shows(&harness, 2, "r2");
    assert_eq!((&harness.world.log, &harness.world.acknowledged), (&Vec::new(), &Vec::new()));
    assert_eq!(harness.engine.take_misplaced_orders(), [(FIRST, workload("web"))]);
    let rv = harness.world.tick();
    harness.world.things.get_mut(&workload("web")).unwrap().rv = rv;
    harness.world.announce(&workload("web"));
    harness.settle();
    assert_eq!(harness.engine.take_misplaced_orders(), []);
    annotate(&mut harness, &workload("web"), Some("2-b retry"), None, None);
    harness.settle();
    assert_eq!(harness.engine.take_misplaced_orders(), [(FIRST, workload("web"))]);
}

#[test]
fn an_order_on_an_object_of_another_source_is_refused() {
    let mut harness = second();
    order(&mut harness, &workload("other"), "1-a undo r1");
    assert_eq!(last_outcome(&harness), "nothing was done: Deployment shop/other is no object of source test");
    let thing = harness.world.things.get_mut(&workload("web")).unwrap();
    (thing.foreign, thing.rv) = (true, thing.rv + 100);
    harness.world.clock += 200;
    harness.world.announce(&workload("web"));
    harness.deliver(usize::MAX);
    harness.give(&workload("web"), "2-b undo r1");
    harness.carry_out();
    harness.sync_inventories();
    assert_eq!(last_outcome(&harness), "nothing was done: Deployment shop/web is no object of source test");
}

/// Returns a cluster in which revision r3 is being released: its contents are there, and its unit
/// is still in the ledger.
fn releasing_third() -> Harness {
    let mut harness = second();
    harness.read(reading("r3", &both(3)));
    for id in [workload("web"), config("env"), workload("web")] {
        harness.deliver(usize::MAX);
        harness.step(&id);
    }
    assert_eq!(harness.world.ledger.units.len(), 1);
    harness
}

#[test]
fn an_abort_is_of_the_revision_that_brought_the_contents_and_not_of_a_later_one_that_left_them() {
    let mut harness = releasing_third();
    harness.read(reading("r4", &[("other", Some(desired(&config("other"), 1, "other")))]));
    order(&mut harness, &workload("web"), "1-a abort");
    shows(&harness, 2, "r2");
    assert_eq!(last_outcome(&harness), "aborted: revision r3 of Deployment shop/web (2 objects) goes back");
}

// A content that needs no rollout may have changed since it was recorded.
#[test]
fn an_abort_is_of_the_contents_that_the_newest_revision_asks_for() {
    let mut harness = releasing_third();
    let mut ledger = harness.world.ledger.clone();
    ledger.units[0].members.get_mut(&config("env")).unwrap().content = Some(env(7).hash);
    harness.world.ledger = ledger.clone();
    harness.engine.set_ledger(ledger);
    order(&mut harness, &workload("web"), "1-a abort");
    shows(&harness, 2, "r2");
    let rejected = &harness.world.rejections[0].unit.members;
    assert_eq!(rejected[&config("env")].content, Some(env(3).hash));
}

/// Returns two workloads that nothing connects.
fn apart(web: u32, api: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    [
        ("web", Some(desired(&workload("web"), web, "web"))),
        ("api", Some(desired(&workload("api"), api, "api"))),
    ]
}

#[track_caller]
fn shows_apart(harness: &Harness, web: u32, api: u32) {
    for (name, content) in [("web", web), ("api", api)] {
        let shown = harness.world.things[&workload(name)].release.as_ref().map(|release| release.hash);
        let expected = desired(&workload(name), content, name).hash;
        assert_eq!(shown, Some(expected), "{name} {:?}", harness.world.log);
    }
}

#[test]
fn an_undo_is_of_the_unit_that_brought_the_content_and_not_of_a_later_one() {
    let mut harness = Harness::new(3);
    for (revision, files) in [("r1", apart(1, 1)), ("r2", apart(2, 1)), ("r3", apart(2, 2))] {
        harness.read(reading(revision, &files));
        harness.settle();
    }
    order(&mut harness, &workload("web"), "1-a undo");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r2 of Deployment shop/web (1 object) goes back to r1"
    );
    shows_apart(&harness, 1, 2);
}

#[test]
fn orders_of_one_turn_take_back_the_unit_of_each() {
    let mut harness = Harness::new(3);
    for (revision, files) in [("r1", apart(1, 1)), ("r2", apart(2, 2))] {
        harness.read(reading(revision, &files));
        harness.settle();
    }
    harness.give(&workload("web"), "1-a undo r1");
    harness.give(&workload("api"), "2-b undo r1");
    harness.settle();
    shows_apart(&harness, 1, 1);
}

#[test]
fn an_undo_to_a_named_revision_is_of_what_its_own_revision_brought_and_no_more() {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &both(1)));
    harness.settle();
    harness.read(reading("r2", &[("web", Some(web(2)))]));
    harness.settle();
    order(&mut harness, &workload("web"), "1-a undo r1");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r2 of Deployment shop/web (1 object) goes back to r1"
    );
    shows(&harness, 1, "r1");
}

#[test]
fn what_an_undo_took_back_stays_so_where_another_one_takes_a_part_of_it_further_back() {
    let mut harness = Harness::new(3);
    let first = desired(&workload("web"), 5, "web");
    harness.read(reading("r0", &[("web", Some(first.clone()))]));
    harness.settle();
    for content in [1, 2] {
        harness.read(reading(&format!("r{content}"), &both(content)));
        harness.settle();
    }
    order(&mut harness, &workload("web"), "1-a undo");
    shows(&harness, 1, "r1");
    order(&mut harness, &workload("web"), "2-b undo r0");
    let shown = |id: &ObjectId| harness.world.things[id].release.as_ref().unwrap().hash;
    assert_eq!((shown(&workload("web")), shown(&config("env"))), (first.hash, env(1).hash));
}

// Part of it may have been replaced since, and nobody here can read which.
#[test]
fn an_undo_does_not_go_by_a_record_that_cannot_be_read_completely() {
    let mut harness = second();
    let mut ledger = harness.world.ledger.clone();
    let brought = ledger.history.last_mut().unwrap();
    brought.members.get_mut(&config("env")).unwrap().content = Some(ContentHash::UNREADABLE);
    harness.world.ledger = ledger.clone();
    harness.engine.set_ledger(ledger);
    order(&mut harness, &workload("web"), "1-a undo");
    assert_eq!(
        last_outcome(&harness),
        "undone: revision r2 of Deployment shop/web (2 objects) goes back to r1"
    );
    shows(&harness, 1, "r1");
}

#[test]
fn an_order_that_was_taken_off_an_object_and_is_there_again_is_reported_again() {
    let mut harness = second();
    for round in 0..2 {
        annotate(&mut harness, &workload("web"), Some("1-a undo r1"), None, None);
        harness.settle();
        assert_eq!(harness.engine.take_misplaced_orders(), [(FIRST, workload("web"))], "{round}");
        annotate(&mut harness, &workload("web"), None, None, None);
        harness.settle();
        assert_eq!(harness.engine.take_misplaced_orders(), [], "{round}");
    }
}
