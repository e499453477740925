//! The traces of an answer: when a write is tried again, and which records of kept objects it ends.
//! Another one is to the question for an older content.

use std::time::{Duration, Instant};

use super::harness::Harness;
use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, following, reading, start_time};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Returns a cluster in which `b` is wanted, and this is the newest content of `a`.
fn wanting(content: Option<u32>) -> (Harness, ObjectId) {
    let (a, b) = (config("a"), config("b"));
    let mut harness = Harness::new(3);
    let files = [("a", Some(desired(&a, 1, "a"))), ("b", Some(desired(&b, 1, "b")))];
    harness.read(reading("r1", &files));
    harness.settle();
    harness.read(reading("r2", &[("a", content.map(|content| desired(&a, content, "a")))]));
    (harness, a)
}

/// Answers the decided write.
fn fail(harness: &mut Harness, id: &ObjectId, failure: WriteFailure) {
    let action = harness.decide(id).action;
    assert!(matches!(action, Action::Apply(_) | Action::Delete(..)), "{action:?}");
    harness.engine.record_result(id, &action, ActionResult::Failed(failure), harness.now);
}

#[test]
fn after_a_conflict_with_a_rest_a_newer_view_is_decided_on_once_that_is_over() {
    let (mut harness, a) = wanting(Some(2));
    fail(&mut harness, &a, WriteFailure::Conflict(RETRY_DELAY));
    let mut newer = harness.engine.informer_object(&a).cloned().unwrap();
    newer.rv = newer.rv.next();
    harness.engine.observe_object(&a, newer);
    let waits = Reason::Retrying(RetryCause::Conflict, RETRY_DELAY);
    assert_eq!(harness.decide(&a).reason, Some(waits));
    harness.pass_time(RETRY_DELAY);
    let action = harness.decide(&a).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
}

#[test]
fn a_deletion_that_the_server_refuses_is_tried_again_after_its_rest() {
    let (mut harness, a) = wanting(None);
    let why = WriteFailure::Refused("a webhook says no".into(), RefusalRule::Webhook, Some(RETRY_DELAY));
    fail(&mut harness, &a, why);
    let reason = harness.decide(&a).reason;
    let said = RetryCause::Message("a webhook says no".into());
    assert_eq!(reason, Some(Reason::Retrying(said, RETRY_DELAY)));
    harness.pass_time(RETRY_DELAY);
    let action = harness.decide(&a).action;
    assert!(matches!(action, Action::Delete(..)), "{action:?}");
}

/// Returns two sources of one process whose inventories record an object as kept. The first wants
/// it.
fn kept() -> (Engine, ObjectId, Instant) {
    let (id, now) = (config("a"), start_time());
    let nowhere = || RepositoryIdentity::None;
    let both = [("one", SET, nowhere()), ("two", "applyset-other-v1", nowhere())];
    let mut engine = following(&both, AdoptPolicy::IfUnowned);
    let timings = [(id.clone(), KeptTiming { timing: PruneTiming::Never, serial: 0 })].into();
    let kept = KeptObjects { timings, is_truncated: false };
    for source in [FIRST, SECOND] {
        let known = engine.view().source(source).inventory.clone().unwrap();
        let inventory = Inventory { kept: kept.clone(), ..known };
        engine.handle(Input::Inventory { source, inventory }, now);
    }
    engine.read(FIRST, reading("c1", &[("a", Some(desired(&id, 1, "a")))]));
    engine.read(SECOND, reading("c1", &[]));
    engine.handle(Input::LookedUp { id: id.clone(), view: DirectView::Absent }, now);
    (engine, id, now)
}

/// Returns whether the inventory of each source records an object as kept.
fn recorded(engine: &Engine, id: &ObjectId) -> [bool; 2] {
    [FIRST, SECOND].map(|source| {
        let inventory = engine.view().source(source).inventory.as_ref();
        inventory.is_some_and(|inventory| inventory.kept.timings.contains_key(id))
    })
}

#[test]
fn what_a_source_writes_is_recorded_as_kept_by_no_other_one() {
    let (mut engine, id, now) = kept();
    let action = Box::new(engine.decide(&id, now).action);
    assert!(matches!(*action, Action::Apply(_)), "{action:?}");
    assert_eq!(recorded(&engine, &id), [true, true]);
    let live = World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1));
    let result = ActionResult::Applied(WriteResult { live });
    engine.handle(Input::Answered { id: id.clone(), action: action.clone(), result: result.clone() }, now);
    assert_eq!(recorded(&engine, &id), [true, false]);
    // A write for a source that does not want it any more ends no record.
    let (mut engine, ..) = kept();
    engine.read(FIRST, reading("c2", &[("a", None)]));
    engine.read(SECOND, reading("c2", &[("a", Some(desired(&id, 1, "a")))]));
    engine.handle(Input::Answered { id: id.clone(), action, result }, now);
    assert_eq!(recorded(&engine, &id), [true, true]);
}

#[test]
fn what_was_deleted_is_recorded_as_kept_by_nobody() {
    let (mut engine, id, now) = kept();
    let action = Box::new(Action::Delete(Uid("1".into()), ResourceVersion(1), DeletionReason::Prune));
    engine.handle(Input::Answered { id: id.clone(), action, result: ActionResult::Deleted }, now);
    assert_eq!(recorded(&engine, &id), [false, false]);
}

#[test]
fn the_content_in_force_is_the_one_that_its_revision_has_under_its_hash() {
    let (a, b) = (config("a"), config("b"));
    let release = |content: u32, revision: &str| ContentRef {
        hash: desired(&a, content, "a").hash,
        revision: Revision::new(revision),
    };
    let check = |of: ContentRef, content: Option<u32>, expected: AcceptedContent| {
        let mut harness = Harness::new(3);
        let files = [("a", Some(desired(&a, 1, "a"))), ("b", Some(desired(&b, 1, "b")))];
        harness.read(reading("r1", &files));
        harness.settle();
        // A new process does not know what it no longer wants.
        harness.engine = harness.fresh(3);
        harness.read(reading("r2", &files[1..]));
        let unread = harness.engine.view().unread_contents();
        assert_eq!(unread, [(Revision::new("r1"), vec![(a.clone(), release(1, "r1").hash)])].into());
        let content = content.map(|content| desired(&a, content, "a"));
        let input = Input::OlderContent { id: a.clone(), release: of, content };
        harness.engine.handle(input, harness.now);
        assert_eq!(harness.engine.view().entry(&a).unwrap().accepted, expected);
    };
    check(release(1, "r1"), Some(1), AcceptedContent::Known(desired(&a, 1, "a")));
    check(release(1, "r1"), Some(2), AcceptedContent::Unreadable(release(1, "r1")));
    check(release(1, "r1"), None, AcceptedContent::Unreadable(release(1, "r1")));
    // That was asked for before.
    check(release(2, "r0"), Some(2), AcceptedContent::Unread(release(1, "r1")));
}
