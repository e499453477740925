//! Objects whose annotations ask to leave them alone.

use crate::object::annotations;
use std::sync::Arc;

use super::harness::Harness;
use super::world::{AuditEntry, FIRST, config, desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

/// Returns a desired object that asks for a treatment.
fn asking(
    id: &ObjectId,
    content: u32,
    reconcile: ReconcilePolicy,
    change: impl FnOnce(&mut DesiredObject),
) -> SharedDesiredObject {
    let mut wanted = (*desired(id, content, id.name())).clone();
    wanted.traits.reconcile = reconcile;
    change(&mut wanted);
    Arc::new(wanted)
}

fn plain(id: &ObjectId, content: u32, reconcile: ReconcilePolicy) -> SharedDesiredObject {
    asking(id, content, reconcile, |_| {})
}

/// Puts an annotation on an object, as somebody else.
fn object_hash(harness: &mut Harness, id: &ObjectId, asks: ReconcilePolicy) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.asks, thing.rv) = (asks, rv);
    harness.world.announce(id);
}

fn reason_of(harness: &mut Harness, id: &ObjectId) -> Option<Reason> {
    harness.decide(id).reason
}

#[test]
fn what_is_disabled_is_neither_made_nor_changed_nor_repaired() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(plain(&a, 1, ReconcilePolicy::Disabled)))]));
    harness.settle();
    assert_eq!(harness.world.log, [], "it is not made");
    assert_eq!(reason_of(&mut harness, &a), Some(Reason::LeftAlone(ReconcilePolicy::Disabled)));
    harness.read(reading("r2", &[("a", Some(plain(&a, 2, ReconcilePolicy::Enabled)))]));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(a.clone())]);
    harness.world.log.clear();
    harness.read(reading("r3", &[("a", Some(plain(&a, 3, ReconcilePolicy::Disabled)))]));
    harness.settle();
    harness.world.drift(&a);
    harness.settle();
    assert_eq!(harness.world.log, [], "it is neither changed nor repaired");
    harness.read(reading("r4", &[("a", Some(plain(&a, 2, ReconcilePolicy::Enabled)))]));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a)], "what drifted meanwhile is repaired");
}

#[test]
fn a_mark_on_the_object_counts_as_long_as_it_is_there() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    harness.world.log.clear();
    object_hash(&mut harness, &a, ReconcilePolicy::Disabled);
    harness.world.drift(&a);
    harness.settle();
    harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a")))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    // A new process reads it off the object.
    harness.engine = harness.fresh(3);
    harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a")))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    object_hash(&mut harness, &a, ReconcilePolicy::Enabled);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a)]);
}

#[test]
fn what_cannot_be_used_any_more_is_not_defended_either() {
    let unusable = |a: &ObjectId| SourceReading {
        revision: Some(crate::object::Revision::new("r2")),
        files: vec![("a".into(), Some(unusable(a)))],
        ..SourceReading::default()
    };
    let check = |asks: ReconcilePolicy, on_it: ReconcilePolicy, expected: &[AuditEntry]| {
        let a = config("a");
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(plain(&a, 1, asks)))]));
        harness.settle();
        harness.world.log.clear();
        harness.engine.set_reading(FIRST, unusable(&a));
        object_hash(&mut harness, &a, on_it);
        harness.world.drift(&a);
        harness.settle();
        assert_eq!(harness.world.log, expected, "{asks:?} {on_it:?}");
    };
    check(ReconcilePolicy::Enabled, ReconcilePolicy::Enabled, &[AuditEntry::Changed(config("a"))]);
    check(ReconcilePolicy::Enabled, ReconcilePolicy::Disabled, &[]);
    check(ReconcilePolicy::OnlyCreate, ReconcilePolicy::Enabled, &[]);
}

/// Returns a file whose object cannot be used.
fn unusable(id: &ObjectId) -> FileFacts {
    let wanted = desired(id, 2, "a");
    let (gvk, origin) = (wanted.gvk.clone(), wanted.origin.clone());
    let unusable = UnusableObject { id: id.clone(), gvk, origin, reason: "it is not usable".into() };
    FileFacts { unusable: vec![Arc::new(unusable)], ..FileFacts::default() }
}

#[test]
fn what_is_only_created_is_made_again_and_never_changed() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(plain(&a, 1, ReconcilePolicy::OnlyCreate)))]));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(a.clone())]);
    harness.world.log.clear();
    harness.world.drift(&a);
    harness.settle();
    harness.read(reading("r2", &[("a", Some(plain(&a, 2, ReconcilePolicy::OnlyCreate)))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert_eq!(reason_of(&mut harness, &a), Some(Reason::LeftAlone(ReconcilePolicy::OnlyCreate)));
    harness.world.things.remove(&a);
    harness.world.announce(&a);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(a)]);
}

#[test]
fn what_is_left_alone_holds_nobody_up_where_it_is_there() {
    let (a, b) = (config("a"), workload("b"));
    let second = |needs: &[ObjectId]| {
        let needs = needs.into();
        asking(&b, 1, ReconcilePolicy::Enabled, |wanted| (wanted.needs, wanted.wave) = (needs, 1))
    };
    // Its wave is over without it.
    let mut harness = Harness::new(3);
    harness.read(reading(
        "r1",
        &[("a", Some(plain(&a, 1, ReconcilePolicy::Disabled))), ("b", Some(second(&[])))],
    ));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(b.clone())]);
    // An object that needs it waits until somebody creates it.
    let mut harness = Harness::new(3);
    let needs = second(std::slice::from_ref(&a));
    harness.read(reading(
        "r1",
        &[("a", Some(plain(&a, 1, ReconcilePolicy::Disabled))), ("b", Some(needs.clone()))],
    ));
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert_eq!(reason_of(&mut harness, &b), Some(Reason::Needs(a.clone(), DependencyState::Missing)));
    // And where it is there, its own change is not waited for.
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(plain(&a, 1, ReconcilePolicy::Enabled)))]));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &[("a", Some(plain(&a, 2, ReconcilePolicy::Disabled))), ("b", Some(needs))]));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(b)]);
}

#[test]
fn a_workload_that_is_left_alone_holds_its_unit_up_for_nothing() {
    let (a, b) = (config("a"), workload("b"));
    let both = |content, reconcile| {
        let web = asking(&b, content, reconcile, |wanted| wanted.needs = [a.clone()].into());
        [("a", Some(desired(&a, content, "a"))), ("b", Some(web))]
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &both(1, ReconcilePolicy::Enabled)));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &both(2, ReconcilePolicy::Disabled)));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a.clone())]);
}

#[test]
fn it_is_no_refusal_and_is_at_rest() {
    for asks in [ReconcilePolicy::Disabled, ReconcilePolicy::OnlyCreate] {
        let reason = Reason::LeftAlone(asks);
        assert!(reason.is_requested() && !reason.is_refusal(), "{reason}");
    }
    let words = Reason::LeftAlone(ReconcilePolicy::Disabled).to_string();
    assert_eq!(words, "its annotation asks not to reconcile it");
}

#[test]
fn what_others_put_on_an_object_is_reported_and_has_no_effect_where_that_is_denied() {
    for opt_out in [OptOutPolicy::Allowed, OptOutPolicy::Denied] {
        let a = config("a");
        let mut harness = Harness::new(3);
        harness.engine.set_opt_out(FIRST, opt_out);
        harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
        harness.settle();
        harness.world.log.clear();
        assert!(harness.engine.opt_outs(FIRST, harness.now).is_empty());
        object_hash(&mut harness, &a, ReconcilePolicy::Disabled);
        harness.world.drift(&a);
        harness.settle();
        let opt_outs: Vec<_> = harness.engine.opt_outs(FIRST, harness.now).into_iter().collect();
        assert_eq!(opt_outs, [(a.clone(), annotations::RECONCILE)], "{opt_out:?}");
        let expected = match opt_out {
            OptOutPolicy::Allowed => vec![],
            OptOutPolicy::Denied => vec![AuditEntry::Changed(a.clone())],
        };
        assert_eq!(harness.world.log, expected, "{opt_out:?}");
        object_hash(&mut harness, &a, ReconcilePolicy::Enabled);
        harness.settle();
        assert!(harness.engine.opt_outs(FIRST, harness.now).is_empty(), "{opt_out:?}");
    }
}

#[test]
fn who_takes_the_word_to_keep_off_an_object_does_not_get_it_deleted() {
    let a = config("a");
    let kept =
        asking(&a, 1, ReconcilePolicy::Enabled, |wanted| wanted.traits.prune_timing = PruneTiming::Never);
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(kept)), ("b", Some(desired(&config("b"), 1, "b")))]));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &[("a", None)]));
    harness.settle();
    assert_eq!(harness.world.log, [], "its manifest said so, and nothing on the object does");
    assert!(matches!(reason_of(&mut harness, &a), Some(Reason::Kept(_))));
}

#[test]
fn a_word_to_keep_that_only_a_newer_view_than_the_informers_shows_counts() {
    let a = config("a");
    let [first, second] = ["a", "b"].map(|name| (name, Some(desired(&config(name), 1, name))));
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[first, second]));
    harness.settle();
    let mut newer = harness.engine.live_object(&a).unwrap().clone();
    newer.rv.0 += 1;
    newer.prune_timing = PruneTiming::Never;
    harness.engine.objects.entries.get_mut(&a).unwrap().direct_view =
        Some(DirectView::Found(Box::new(newer)));
    harness.read(reading("r2", &[("a", None)]));
    let decision = harness.decide(&a);
    assert!(matches!(decision.reason, Some(Reason::Kept(_))), "{decision:?}");
}

/// Takes the opt-out off while no process runs.
#[test]
fn after_a_restart_nothing_is_deleted_before_its_last_manifest_was_read_again() {
    let (a, b) = (config("a"), desired(&config("b"), 1, "b"));
    for (timing, expected) in [(PruneTiming::Never, 0), (PruneTiming::AfterUnit, 1)] {
        let brought = asking(&a, 1, ReconcilePolicy::Enabled, |wanted| wanted.traits.prune_timing = timing);
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(brought)), ("b", Some(b.clone()))]));
        harness.settle();
        harness.world.log.clear();
        harness.engine = harness.fresh(3);
        harness.read(reading("r2", &[("b", Some(b.clone()))]));
        harness.deliver(usize::MAX);
        harness.engine.process_changes();
        let judged: Vec<_> = harness.engine.prune_decisions(FIRST).collect();
        let waits = PruneDecision::Defer(PruneCause::UnreadContent(a.clone()));
        assert_eq!(judged, [(&a, &waits)], "{timing:?}");
        harness.settle();
        let deleted = |entry: &&AuditEntry| matches!(entry, AuditEntry::Deleted(id, _) if *id == a);
        assert_eq!(harness.world.log.iter().filter(deleted).count(), expected, "{timing:?}");
    }
}

#[test]
fn what_cannot_be_used_and_is_being_deleted_is_not_repaired() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    let broken = SourceReading { files: vec![("a".into(), Some(unusable(&a)))], ..reading("r2", &[]) };
    harness.engine.set_reading(FIRST, broken);
    let shown = harness.engine.live_object(&a).cloned().unwrap();
    let rv = ResourceVersion(shown.rv.0 + 1);
    harness.engine.observe_object(&a, LiveObject { deleting: true, our_fields: None, rv, ..shown });
    assert_eq!(harness.decide(&a), Decision::wait(Reason::Terminating));
}
