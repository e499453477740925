//! Our own writes and the views around them: an older view decides nothing, and the same write is
//! not sent twice without news.

use std::time::Duration;

use super::harness::Harness;
use super::wakes::{lose_answer, restarting};
use super::world::{AuditEntry, World, WorldObject, config, desired, reading, workload};
use crate::engine::rollout::lost_writes::LOST_WRITE_TIMEOUT;
use crate::engine::rollout::writes_in_flight::WritesInFlight;
use crate::engine::*;
use crate::object::ObjectId;

/// Returns a cluster in which the object has content 1, and content 2 was written and answered. The
/// watch has not shown that yet.
fn written(id: &ObjectId) -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(id, 1, "a")))]));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &[("a", Some(desired(id, 2, "a")))]));
    let written = harness.step(id);
    assert!(matches!(written, Some(Action::Apply(_))), "{written:?}");
    harness
}

/// Returns the view of an object from before our last write, in a newer version than was shown.
fn older_view(harness: &Harness, id: &ObjectId) -> LiveObject {
    let shown = harness.engine.informer_object(id).unwrap();
    let thing = WorldObject { uid: harness.world.things[id].uid, ..older_thing(id, shown.rv.0) };
    World::live(id, &thing)
}

fn older_thing(id: &ObjectId, rv: u64) -> WorldObject {
    WorldObject::settled(desired(id, 1, "a").hash, "r1", rv)
}

fn accepted(harness: &Harness, id: &ObjectId) -> Option<crate::object::ContentHash> {
    harness.engine.entry(id).and_then(|entry| entry.accepted.content()).map(|accepted| accepted.hash)
}

#[test]
fn a_view_from_before_our_own_write_neither_ends_the_wait_for_it_nor_takes_it_back() {
    let a = config("a");
    let mut harness = written(&a);
    let pending = harness.engine.entry(&a).unwrap().min_resource_version.unwrap();
    let view = older_view(&harness, &a);
    assert!(view.rv < pending.0);
    harness.engine.observe_object(&a, view);
    assert_eq!(harness.engine.entry(&a).unwrap().min_resource_version, Some(pending));
    assert_eq!(accepted(&harness, &a), Some(desired(&a, 2, "a").hash));
    // The answer to the write is newer, and decides.
    assert_eq!(harness.decide(&a), Decision::act(Action::Nothing));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a)]);
}

#[test]
fn a_view_from_before_our_own_write_decides_nothing_where_the_answer_is_not_known() {
    let a = config("a");
    let mut harness = written(&a);
    harness.engine.objects.entries.get_mut(&a).unwrap().direct_view = None;
    harness.engine.observe_object(&a, older_view(&harness, &a));
    assert_eq!(harness.decide(&a).reason, Some(Reason::OwnWrite));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a)], "its event comes");
}

#[test]
fn after_a_conflict_nothing_is_decided_before_a_newer_view() {
    let a = config("a");
    let mut harness = written(&a);
    harness.read(reading("r3", &[("a", Some(desired(&a, 3, "a")))]));
    // Somebody else has written since, and the watch lags behind.
    let action = harness.decide(&a).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
    let conflict = ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO));
    harness.engine.record_result(&a, &action, conflict, harness.now);
    assert_eq!(harness.decide(&a).reason, Some(Reason::OwnWrite), "the same would be sent again");
}

#[test]
fn after_a_conflict_a_newer_view_that_came_before_the_answer_decides_at_once() {
    let a = config("a");
    let mut harness = written(&a);
    harness.settle();
    harness.read(reading("r3", &[("a", Some(desired(&a, 3, "a")))]));
    let action = harness.decide(&a).action;
    let mut newer = harness.engine.informer_object(&a).unwrap().clone();
    newer.rv.0 += 1;
    harness.engine.observe_object(&a, newer);
    let conflict = ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO));
    harness.engine.record_result(&a, &action, conflict, harness.now);
    let again = harness.decide(&a).action;
    assert!(matches!(again, Action::Apply(_)), "{again:?}");
}

#[test]
fn that_an_object_is_absent_by_a_lookup_that_lags_behind_the_watch_means_nothing() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    harness.engine.record_lookup(&a, DirectView::Absent);
    assert!(harness.engine.informer_object(&a).is_some());
    assert_eq!(harness.decide(&a), Decision::act(Action::Nothing));
    // It is unwanted, and there: the same answer does not make it forgotten.
    harness.read(reading("r2", &[("a", None)]));
    harness.engine.record_lookup(&a, DirectView::Absent);
    assert!(matches!(harness.decide(&a).action, Action::Delete(..)));
}

#[test]
fn what_was_created_and_is_not_in_a_complete_list_is_looked_up() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    while !matches!(harness.step(&a), Some(Action::Apply(_))) {}
    assert_eq!(harness.world.log, [AuditEntry::Created(a.clone())]);
    // Somebody has deleted it, and no event ever reports that.
    harness.world.things.clear();
    harness.world.events.clear();
    assert_eq!(harness.decide(&a), Decision::act(Action::Nothing), "its own answer shows it");
    harness.engine.list_started(&a.group_kind());
    assert_eq!(harness.decide(&a), Decision::act(Action::Nothing), "the list goes on");
    harness.engine.list_complete(&a.group_kind());
    assert_eq!(harness.decide(&a).action, Action::Lookup);
    harness.settle();
    assert_eq!(harness.world.log.len(), 2, "it is made again: {:?}", harness.world.log);
}

#[test]
fn a_create_whose_answer_was_lost_is_not_sent_again_before_a_lookup() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    let action = loop {
        match harness.decide(&a).action {
            action @ Action::Apply(_) => break action,
            _ => drop(harness.step(&a)),
        }
    };
    harness.engine.note_dispatch(&a, &action);
    harness.world.perform(&a, &action);
    harness.world.events.clear();
    let lost = WriteFailure::Unknown("no answer".into(), Duration::ZERO);
    harness.engine.record_result(&a, &action, ActionResult::Failed(lost), harness.now);
    assert_eq!(harness.decide(&a).action, Action::Lookup);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(a)]);
}

// The claim is not taken out of the ledger either.
#[test]
fn a_rollout_whose_answer_was_lost_keeps_its_place_in_the_budget_and_in_the_ledger() {
    let (mut harness, [a, b], action) = restarting();
    harness.world.perform(&a, &action);
    lose_answer(&mut harness, &a, &action);
    let events = std::mem::take(&mut harness.world.events);
    for _ in 0..3 {
        harness.keep_ledger();
        for id in [&a, &b] {
            harness.step(id);
        }
    }
    assert!(harness.world.ledger.claims.contains_key(&a));
    assert_eq!(harness.world.log, [AuditEntry::Changed(a.clone())], "b must wait: a may be rolling");
    harness.world.events = events;
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a), AuditEntry::Changed(b)]);
}

/// The end of the tries of a write that was lost.
enum LastTry {
    /// Git takes the content back.
    TakenBack,
    /// The API server refuses the content for good.
    Refused,
}

// No version of the object will ever be that of the write.
#[test]
fn a_rollout_that_was_never_carried_out_and_is_not_tried_again_holds_its_slot_for_a_time() {
    for last_try in [LastTry::TakenBack, LastTry::Refused] {
        let (mut harness, [a, b], action) = restarting();
        lose_answer(&mut harness, &a, &action);
        match last_try {
            LastTry::TakenBack => harness.read(reading("r3", &[("a", Some(desired(&a, 1, "a")))])),
            LastTry::Refused => {
                harness.pass_time(Duration::from_secs(1));
                let again = harness.decide(&a).action;
                assert!(matches!(again, Action::Apply(_)), "{again:?}");
                harness.engine.note_dispatch(&a, &again);
                let refused = WriteFailure::Refused("no".into(), RefusalRule::Other, None);
                harness.engine.record_result(&a, &again, ActionResult::Failed(refused), harness.now);
            }
        }
        // Until no start counts any more.
        harness.pass_time(Duration::from_mins(1));
        harness.settle();
        assert_eq!(harness.world.log, [], "b must wait: a may be rolling");
        let due = harness.engine.next_due(harness.now);
        assert!(due.is_some_and(|due| due <= harness.now + LOST_WRITE_TIMEOUT), "nothing wakes it");
        harness.pass_time(LOST_WRITE_TIMEOUT);
        harness.settle();
        assert_eq!(harness.world.log, [AuditEntry::Changed(b)]);
    }
}

// Nothing newer shows it, as its pods take their time.
#[test]
fn a_rollout_that_was_shown_before_its_answer_was_lost_stays_ours_to_its_end() {
    let (mut harness, [a, _], action) = restarting();
    harness.engine.take_rollout_events();
    harness.world.perform(&a, &action);
    harness.deliver(usize::MAX);
    lose_answer(&mut harness, &a, &action);
    harness.pass_time(LOST_WRITE_TIMEOUT);
    harness.engine.advance(harness.now);
    harness.finish_rollouts();
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
    let events = harness.engine.take_rollout_events().into_iter();
    let kinds: Vec<RolloutEventKind> = events.map(|event| event.kind).collect();
    assert_eq!(kinds, [RolloutEventKind::Started, RolloutEventKind::Succeeded]);
}

/// Shows another version of an object, as somebody else has changed it.
fn show_changed(harness: &mut Harness, id: &ObjectId, change: impl FnOnce(&mut WorldObject)) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    thing.rv = rv;
    change(thing);
    harness.world.announce(id);
    harness.deliver(usize::MAX);
}

// It may be carried out yet, and its slot would be another one's.
#[test]
fn a_newer_view_of_the_older_content_does_not_end_a_rollout_whose_answer_was_lost() {
    let (mut harness, [a, _], action) = restarting();
    harness.engine.take_rollout_events();
    lose_answer(&mut harness, &a, &action);
    show_changed(&mut harness, &a, |_| {});
    for (passed, expected) in [(Duration::ZERO, vec![a.clone()]), (LOST_WRITE_TIMEOUT, Vec::new())] {
        harness.pass_time(passed);
        harness.engine.advance(harness.now);
        let in_flight: Vec<ObjectId> = harness.engine.workloads_in_flight().into_iter().collect();
        assert_eq!(in_flight, expected, "{passed:?}");
    }
    let events = harness.engine.take_rollout_events().into_iter();
    let kinds: Vec<RolloutEventKind> = events.map(|event| event.kind).collect();
    assert_eq!(kinds, [RolloutEventKind::Started]);
}

#[test]
fn a_rollout_whose_answer_was_lost_stays_ours_once_it_was_shown_whatever_comes_later() {
    let (mut harness, [a, _], action) = restarting();
    harness.world.perform(&a, &action);
    lose_answer(&mut harness, &a, &action);
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
    // Somebody takes the annotation away that names its content.
    show_changed(&mut harness, &a, |thing| thing.release = None);
    harness.pass_time(LOST_WRITE_TIMEOUT);
    harness.engine.advance(harness.now);
    assert!(harness.engine.rollouts.in_flight[&a].claim.is_some());
}

// All its pods are of the new template, as those of somebody else's rollout would be that is over.
#[test]
fn a_rollout_that_a_lost_write_was_to_replace_fails_and_goes_back_as_before() {
    let web = workload("web");
    let wanted =
        |revision: &str, content: u32| reading(revision, &[("web", Some(desired(&web, content, "web")))]);
    let mut harness = Harness::new(1);
    harness.read(wanted("r1", 1));
    harness.settle();
    harness.read(wanted("r2", 2));
    assert!(matches!(harness.step(&web), Some(Action::Apply(_))));
    harness.deliver(usize::MAX);
    harness.read(wanted("r3", 3));
    // The first try is lost, and so is the second.
    for _ in 0..2 {
        let action = harness.decide(&web).action;
        assert!(matches!(action, Action::Apply(_)), "{action:?}");
        harness.engine.note_dispatch(&web, &action);
        lose_answer(&mut harness, &web, &action);
        harness.pass_time(Duration::from_secs(1));
    }
    harness.read(wanted("r4", 2));
    harness.pass_time(LOST_WRITE_TIMEOUT);
    harness.engine.advance(harness.now);
    let rv = harness.world.tick();
    let rolling = harness.world.things.get_mut(&web).unwrap();
    (rolling.rv, rolling.phase, rolling.failed) = (rv, WorkloadPhase::Recovering, rolling.runs());
    harness.world.announce(&web);
    harness.settle();
    let shown = harness.world.things[&web].release.as_ref().map(|release| release.hash);
    assert_eq!(shown, Some(desired(&web, 1, "web").hash), "{:?}", harness.world.log);
}

#[test]
fn a_deletion_that_failed_is_tried_again_after_its_rest_and_one_under_way_is_not_repeated() {
    let a = config("a");
    let mut harness = Harness::new(3);
    let files = ["a", "b"].map(|name| (name, Some(desired(&config(name), 1, name))));
    harness.read(reading("r1", &files));
    harness.settle();
    harness.read(reading("r2", &[("a", None)]));
    let action = harness.decide(&a).action;
    assert!(matches!(action, Action::Delete(..)), "{action:?}");
    let lost = WriteFailure::Unknown("no answer".into(), Duration::from_secs(5));
    harness.engine.record_result(&a, &action, ActionResult::Failed(lost), harness.now);
    assert!(matches!(harness.decide(&a).reason, Some(Reason::Retrying(..))));
    harness.pass_time(Duration::from_secs(5));
    assert!(matches!(harness.decide(&a).action, Action::Delete(..)));
    // Its finalizers keep it.
    let mut live = harness.engine.informer_object(&a).unwrap().clone();
    (live.deleting, live.rv) = (true, ResourceVersion(live.rv.0 + 1));
    harness.engine.observe_object(&a, live);
    assert_eq!(harness.decide(&a), Decision::wait(Reason::Terminating));
}

// A source that was not read completely enforces what it brought, and not what it has let go.
#[test]
fn what_was_deleted_is_not_made_again_where_its_source_becomes_incomplete() {
    let a = config("a");
    let mut harness = Harness::new(3);
    let files = ["a", "b"].map(|name| (name, Some(desired(&config(name), 1, name))));
    harness.read(reading("r1", &files));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &[("a", None)]));
    assert!(matches!(harness.step(&a), Some(Action::Delete(..))));
    harness.read(SourceReading { incomplete_reason: Some("x".into()), ..reading("r3", &[]) });
    // The watch never reports it.
    harness.world.events.clear();
    harness.pass_time(WRITE_ECHO_TIMEOUT);
    harness.engine.mark_dirty(&a);
    harness.settle();
    assert!(matches!(&harness.world.log[..], [AuditEntry::Deleted(..)]), "{:?}", harness.world.log);
    assert!(!harness.world.things.contains_key(&a));
}

#[test]
fn of_two_views_of_an_object_the_newer_one_counts() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    let shown = harness.engine.live_object(&a).cloned().unwrap();
    for (rv, expected) in [(shown.rv.0 + 1, Some(Reason::Terminating)), (shown.rv.0 - 1, None)] {
        let mut harness = harness.clone();
        harness.engine.mark_all();
        let looked_up = LiveObject { deleting: true, rv: ResourceVersion(rv), ..shown.clone() };
        harness.engine.record_lookup(&a, DirectView::Found(Box::new(looked_up)));
        assert_eq!(harness.engine.decide(&a, harness.now).reason, expected, "{rv}");
    }
}

// The server does not enforce that it is absent, and somebody may have made it while it waited.
#[test]
fn an_object_that_was_absent_long_ago_is_looked_up_again_before_it_is_created() {
    let a = config("a");
    let check = |seconds: u64, is_looked_up: bool| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
        assert_eq!(harness.decide(&a).action, Action::Lookup);
        harness.step(&a);
        harness.pass_time(Duration::from_secs(seconds));
        let action = harness.decide(&a).action;
        assert_eq!(action == Action::Lookup, is_looked_up, "{seconds} s: {action:?}");
        harness
    };
    check(59, false);
    let mut harness = check(60, true);
    let foreign = WorldObject { foreign: true, labelled: false, release: None, ..older_thing(&a, 9) };
    harness.world.things.insert(a.clone(), foreign);
    harness.step(&a);
    assert_eq!(
        harness.decide(&a).reason,
        Some(Reason::Owned(CurrentOwner::Tool("Flux Kustomization a/b".into())))
    );
}

// The answer of a write may come after the events about all that came later. No event would end the
// view that it shows.
#[test]
fn an_object_that_goes_before_the_answer_to_its_write_comes_is_looked_up() {
    let a = config("a");
    let check = |shown_first: bool, goes: bool, expected: &Action| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
        harness.settle();
        harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a")))]));
        let action = harness.decide(&a).action;
        assert!(matches!(action, Action::Apply(_)), "{action:?}");
        harness.handle(Input::Dispatched { id: a.clone(), action: action.clone() });
        let result = harness.world.perform(&a, &action);
        if shown_first {
            harness.deliver(usize::MAX);
        }
        if goes {
            harness.engine.observe_absence(&a);
        }
        harness.handle(Input::Answered { id: a.clone(), action: Box::new(action), result });
        assert_eq!(harness.decide(&a).action, *expected, "{shown_first} {goes}");
        if goes {
            harness.handle(Input::LookedUp { id: a.clone(), view: DirectView::Absent });
            let again = harness.decide(&a).action;
            assert!(matches!(again, Action::Apply(_)), "{again:?}");
        }
    };
    check(true, true, &Action::Lookup);
    check(false, true, &Action::Lookup);
    check(true, false, &Action::Nothing);
    check(false, false, &Action::Nothing);
}

#[test]
fn the_answer_to_a_write_is_overtaken_where_its_object_goes_while_it_is_written() {
    let a = config("a");
    let mut writes = WritesInFlight::default();
    writes.note_unshown(&a);
    assert!(!writes.contains(&a) && !writes.end(&a), "nobody writes it");
    writes.begin(&a);
    writes.note_unshown(&a);
    assert!(writes.contains(&a) && writes.end(&a) && !writes.contains(&a));
    writes.begin(&a);
    assert!(!writes.end(&a), "it went during the write before");
}
