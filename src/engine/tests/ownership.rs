//! Foreign marks on our object: its owner then, and the source whose orders count.

use crate::object::annotations::RELEASE;
use std::sync::Arc;

use super::harness::{Harness, release_key, source};
use super::world::{FIRST, SECOND, SET, World, config, desired, id, naming, reading};
use crate::engine::facts::release_annotation::SealedFacts;
use crate::engine::*;
use crate::object::{GroupKind, Gvk, ObjectId};

const OTHER: &str = "applyset-other-v1";
const UNKNOWN: &str = "applyset-unknown-v1";

/// Returns a harness in which one object is applied.
fn settled(a: &ObjectId) -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(a, 1, "a")))]));
    harness.settle();
    harness
}

/// Returns the view of an object that somebody has marked as another owner's, and has changed.
fn theirs(harness: &Harness, id: &ObjectId, owner: ObjectOwner) -> LiveObject {
    let live = World::live(id, &harness.world.things[id]);
    LiveObject {
        rv: ResourceVersion(live.rv.0 + 100),
        owner,
        our_fields: Some(format!("theirs {RELEASE}").into()),
        ..live
    }
}

/// Returns the object as a lookup reads it: unproven.
fn read_as(live: LiveObject, sealed_for: Option<&str>, id: &ObjectId) -> LiveObject {
    let release = live.release.clone().unwrap();
    let seal = sealed_for.map(|set| {
        ReleaseKey::of(&release_key()).seal(set, id, &release, SealedFacts::of(PruneTiming::AfterUnit, 0))
    });
    LiveObject {
        release: None,
        unproven_release: Some(Box::new(ReleaseAnnotation { release, seal })),
        ..live
    }
}

/// Returns the decision once a watch by label no longer shows the object, and a lookup has found
/// this view. Fields that our entry lacks are found on the way.
fn decided(harness: &mut Harness, id: &ObjectId, live: LiveObject) -> Decision {
    harness.engine.observe_absence(id);
    assert_eq!(harness.engine.decide(id, harness.now).action, Action::Lookup);
    harness.engine.record_lookup(id, DirectView::Found(Box::new(live)));
    let decision = harness.engine.decide(id, harness.now);
    let Action::CompareCached(desired, variant) = &decision.action else { return decision };
    let shown = harness.engine.live_object(id).unwrap();
    let (content, managed_fields, value_digest) =
        (variant.hash(desired), shown.our_fields.clone(), shown.value_digest);
    let cover = FieldOwnership::Lost(RepairImpact::InPlace);
    harness.engine.record_coverage(
        id,
        VerifiedOwnership { content, overlay: None, config_stamp: None, managed_fields, value_digest, cover },
    );
    harness.engine.decide(id, harness.now)
}

fn is_repair(decision: &Decision) -> bool {
    matches!(&decision.action, Action::Apply(apply) if apply.purpose == ApplyPurpose::Repair)
}

#[test]
fn another_owners_mark_on_our_object_keeps_it_from_being_repaired_only_where_that_is_allowed() {
    let controlled = ObjectOwner::Controlled("Pod shop/x".into());
    let foreign = ObjectOwner::Foreign("Argo CD Application shop".into());
    for (owner, word) in [(controlled, "metadata.ownerReferences"), (foreign, "argocd.argoproj.io/instance")]
    {
        for opt_out in [OptOutPolicy::Allowed, OptOutPolicy::Denied] {
            let a = config("a");
            let mut harness = settled(&a);
            harness.engine.set_opt_out(FIRST, opt_out);
            let live = LiveObject { opt_out: Some(word), ..theirs(&harness, &a, owner.clone()) };
            let decision = decided(&mut harness, &a, live);
            match opt_out {
                OptOutPolicy::Allowed => {
                    assert_eq!(decision, Decision::wait(Reason::OptedOut(word)), "{owner:?}");
                }
                OptOutPolicy::Denied => assert!(is_repair(&decision), "{owner:?}: {decision:?}"),
            }
            let opt_outs: Vec<_> = harness.engine.opt_outs(FIRST, harness.now).into_iter().collect();
            assert_eq!(opt_outs, [(a.clone(), word)], "it is reported and counted, {opt_out:?}");
        }
    }
}

#[test]
fn an_object_that_rhumb_never_owned_stays_with_its_owner_whatever_the_policy() {
    for owner in
        [ObjectOwner::Controlled("ReplicaSet shop/web".into()), ObjectOwner::Foreign("kapp app x".into())]
    {
        for opt_out in [OptOutPolicy::Allowed, OptOutPolicy::Denied] {
            let a = config("a");
            let mut harness = settled(&a);
            harness.engine.set_opt_out(FIRST, opt_out);
            let live = theirs(&harness, &a, owner.clone());
            // Made anew by somebody else, under the same name.
            let live = LiveObject { uid: Uid("new".into()), release: None, our_fields: None, ..live };
            let decision = decided(&mut harness, &a, live);
            assert!(matches!(decision.reason, Some(Reason::Owned(_))), "{owner:?}: {decision:?}");
        }
    }
}

#[test]
fn the_label_of_another_inventory_is_drift_where_the_seal_or_this_process_knows_better() {
    let check =
        |seal: Option<&str>, has_release_annotation: bool, restarts: bool, is_new: bool, expected: bool| {
            let a = config("a");
            let mut harness = settled(&a);
            let live = read_as(theirs(&harness, &a, ObjectOwner::Ours(UNKNOWN.into())), seal, &a);
            let live = if has_release_annotation {
                live
            } else {
                LiveObject { unproven_release: None, our_fields: Some("theirs".into()), ..live }
            };
            let live = if is_new { LiveObject { uid: Uid("new".into()), ..live } } else { live };
            if restarts {
                harness.engine = Harness { world: World::default(), ..harness.clone() }.fresh(3);
                harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
            }
            let decision = decided(&mut harness, &a, live);
            let context = format!("{seal:?} {has_release_annotation} {restarts} {is_new}: {decision:?}");
            assert_eq!(is_repair(&decision), expected, "{context}");
            assert_eq!(matches!(decision.reason, Some(Reason::Owned(_))), !expected, "{context}");
        };
    // The seal proves it, whatever this process remembers.
    check(Some(SET), true, false, false, true);
    check(Some(SET), true, true, false, true);
    // Without it this process knows the very object that it has put there.
    check(None, true, false, false, true);
    check(None, false, false, false, true);
    check(None, false, false, true, false);
    // It names the content that this source asks for under its own label, so no other inventory has
    // put it there.
    check(None, true, true, false, true);
    // And what nobody knows is another owner's, which is reported.
    check(None, false, true, false, false);
    // A rightful writer has sealed it.
    check(Some(UNKNOWN), true, false, false, false);
}

#[test]
fn an_object_whose_seal_and_label_name_different_inventories_is_pruned_by_none() {
    let a = config("a");
    let mut harness = with_other(&a);
    let live = read_as(theirs(&harness, &a, ObjectOwner::Ours(OTHER.into())), Some(SET), &a);
    harness.engine.observe_object(&a, live);
    harness.read(reading("r2", &[("a", None)]));
    harness.engine.process_changes();
    let action = harness.engine.decide(&a, harness.now).action;
    assert!(!matches!(action, Action::Delete(..)), "{action:?}");
}

#[test]
fn an_object_without_our_entry_in_managed_fields_is_repaired() {
    for (adopt, owner) in [
        (AdoptPolicy::Never, ObjectOwner::Nobody),
        (AdoptPolicy::IfUnowned, ObjectOwner::Labelled(UNKNOWN.into())),
    ] {
        for has_release_annotation in [true, false] {
            let a = config("a");
            let mut harness = settled(&a);
            harness.engine.set_adopt(FIRST, adopt);
            let live = LiveObject { our_fields: None, ..theirs(&harness, &a, owner.clone()) };
            let live = if has_release_annotation { live } else { LiveObject { release: None, ..live } };
            let decision = decided(&mut harness, &a, live);
            assert!(is_repair(&decision), "{owner:?} {has_release_annotation}: {decision:?}");
        }
    }
}

// As from a backup: under a new uid, with the fields that rhumb has written.
#[test]
fn an_object_that_was_made_anew_is_repaired_only_with_our_entry_in_managed_fields() {
    let check = |managed_fields: Option<&str>, expected: bool| {
        let a = config("a");
        let mut harness = settled(&a);
        harness.engine.set_adopt(FIRST, AdoptPolicy::Never);
        let live = theirs(&harness, &a, ObjectOwner::Nobody);
        let our_fields = managed_fields.map(Into::into);
        let live = LiveObject { uid: Uid("new".into()), release: None, our_fields, ..live };
        let decision = decided(&mut harness, &a, live);
        assert_eq!(is_repair(&decision), expected, "{managed_fields:?}: {decision:?}");
        assert_eq!(
            decision.reason == Some(Reason::NotAdopted),
            !expected,
            "{managed_fields:?}: {decision:?}"
        );
    };
    check(Some("theirs"), true);
    check(None, false);
}

/// Does the same as [`settled`], with another source that wants nothing yet.
fn with_other(a: &ObjectId) -> Harness {
    let mut harness = settled(a);
    harness.engine.add_source(source("other", OTHER));
    let kinds = ["ConfigMap", "DaemonSet.apps", "Deployment.apps", "Secret"].map(GroupKind::parse);
    harness.engine.set_inventory(SECOND, naming(kinds));
    harness.engine.set_reading(SECOND, reading("o1", &[]));
    harness
}

// By the label alone nobody knows which of the two it is.
#[test]
fn an_object_with_the_label_of_another_source_of_this_process_is_not_repaired_as_our_own() {
    let a = config("a");
    let mut harness = with_other(&a);
    let live = read_as(theirs(&harness, &a, ObjectOwner::Ours(OTHER.into())), None, &a);
    let decision = decided(&mut harness, &a, live);
    assert!(!is_repair(&decision), "{decision:?}");
}

fn web() -> ObjectId {
    id("apps", "Deployment", "shop", "web")
}

/// Returns an object of the first source, of which a new content waits, under the label of the
/// other one.
fn relabelled(seal: Option<&str>) -> Harness {
    let a = web();
    let mut harness = with_other(&a);
    harness.engine.set_kind_availability(Gvk::new("apps", "v1", "Deployment"), KindAvailability::Served);
    harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a")))]));
    let live = theirs(&harness, &a, ObjectOwner::Ours(OTHER.into()));
    harness.engine.observe_object(&a, read_as(live, seal, &a));
    harness
}

fn given(verb: OrderVerb) -> Order {
    Order { token: "1-a".into(), verb, object: web(), by: "somebody".into() }
}

#[test]
fn an_order_to_one_source_does_not_reach_what_another_one_brings_under_a_label_that_somebody_changed() {
    for seal in [None, Some(SET)] {
        for verb in [
            OrderVerb::Abort,
            OrderVerb::Retry,
            OrderVerb::Undo(None),
            OrderVerb::PromoteFull(desired(&web(), 2, "a").hash),
        ] {
            let mut harness = relabelled(seal);
            harness.engine.take_orders(SECOND, vec![given(verb.clone())]);
            harness.engine.carry_out_orders();
            let answers = harness.engine.next_acknowledged(SECOND).unwrap_or_default();
            let outcomes: Vec<&str> = answers.iter().map(|answer| &*answer.outcome).collect();
            let none =
                "nothing was done: Deployment shop/web is no object of source other (ordered by somebody)";
            assert_eq!(outcomes, [none], "{seal:?} {verb:?}");
        }
    }
}

#[test]
fn a_promotion_is_that_of_the_source_that_brings_the_content() {
    let promoted = |of: SourceId| {
        let mut harness = relabelled(None);
        let content = desired(&web(), 2, "a");
        harness.engine.take_orders(of, vec![given(OrderVerb::PromoteFull(content.hash))]);
        let live = harness.engine.informer_object(&web()).unwrap().clone();
        harness.engine.promotion_request(&web(), &content, &live)
    };
    assert_eq!(promoted(SECOND), PromotionRequest::None);
    assert_eq!(promoted(FIRST), PromotionRequest::Full);
}

/// Puts a pause on an object that looks like one of the first source, as somebody else.
fn paused(harness: &mut Harness, id: &ObjectId, number: usize) {
    let token: Arc<str> = format!("{number}-t").into();
    let thing = harness.world.things.values().next().unwrap();
    let live = World::live(id, thing);
    let asked =
        ObjectIntents { paused: Some(PauseIntent { token, reason: "".into() }), ..ObjectIntents::default() };
    let live = LiveObject { uid: Uid(format!("u{number}").into()), intents: Some(Box::new(asked)), ..live };
    harness.engine.observe_object(id, live);
}

#[test]
fn copies_neither_crowd_out_what_is_reported_of_pauses_nor_count_as_left_alone() {
    let a = config("z");
    let mut harness = settled(&a);
    for number in 0..150 {
        let copy = id("", "ConfigMap", "elsewhere", &format!("copy-{number:03}"));
        paused(&mut harness, &copy, number);
        let live = read_as(harness.engine.informer_object(&copy).unwrap().clone(), None, &copy);
        harness.engine.observe_object(&copy, live);
    }
    paused(&mut harness, &a, 999);
    harness.engine.carry_out_orders();
    let acknowledged = harness.engine.next_acknowledged(FIRST).unwrap();
    let acknowledged: Vec<&str> = acknowledged.iter().map(|one| &*one.token).collect();
    assert_eq!(acknowledged, ["999-t"]);
    assert_eq!(harness.engine.opt_outs(FIRST, harness.now).into_keys().collect::<Vec<_>>(), [a]);
    assert_eq!(harness.engine.unacknowledged_states(FIRST), 0);
}

#[test]
fn the_number_of_pauses_that_are_not_reported_is_known() {
    let a = config("a");
    let mut harness = settled(&a);
    let names: Vec<String> = (0..130).map(|number| format!("more-{number:03}")).collect();
    let files: Vec<_> = names.iter().map(|name| (&**name, Some(desired(&config(name), 1, name)))).collect();
    harness.read(reading("r2", &files));
    harness.settle();
    for (number, name) in names.iter().enumerate() {
        paused(&mut harness, &config(name), number);
    }
    harness.engine.carry_out_orders();
    assert_eq!(harness.engine.next_acknowledged(FIRST).unwrap().len(), 100);
    assert_eq!(harness.engine.unacknowledged_states(FIRST), 30);
}
