//! A single object is not written because of its inventory, its namespace, or its owner.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::harness::Harness;
use super::safety::engine;
use super::world::{AuditEntry, FIRST, SET, World, WorldObject, config, desired, id, reading, workload};
use crate::engine::*;
use crate::object::{GroupKind, ObjectId, Revision};

// Nobody would ever look for an object of a kind, or in a namespace, that no inventory names.
#[test]
fn nothing_is_written_before_the_inventory_names_its_kind_its_namespace_and_its_location() {
    let a = config("a");
    let check = |change: &dyn Fn(&mut Inventory)| {
        let mut harness = Harness::new(3);
        let known = harness.engine.source(FIRST).inventory.clone().unwrap();
        let mut lacking = known.clone();
        change(&mut lacking);
        harness.engine.set_inventory(FIRST, lacking);
        harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
        harness.settle();
        assert_eq!(harness.world.log, []);
        assert_eq!(harness.decide(&a).reason, Some(Reason::Inventory("test".into())));
        harness.engine.set_inventory(FIRST, known);
        harness.settle();
        assert_eq!(harness.world.log, [AuditEntry::Created(a.clone())]);
    };
    check(&|inventory| inventory.kinds.clear());
    check(&|inventory| inventory.namespaces.clear());
    check(&|inventory| inventory.lacks_location = true);
}

// The server of the commits could go back to one that is older than what was applied.
#[test]
fn a_revision_that_is_to_be_recorded_as_accepted_changes_nothing_before_it_is() {
    let (a, b) = (config("a"), config("b"));
    let check = |acceptance: AcceptanceRecord, recorded: Option<&str>, is_done: bool| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a"))), ("b", Some(desired(&b, 1, "b")))]));
        harness.settle();
        harness.world.log.clear();
        harness.engine.sources[FIRST].declared.acceptance = acceptance;
        let known = harness.engine.source(FIRST).inventory.clone().unwrap();
        let accepted = recorded.map(Revision::new);
        harness.engine.set_inventory(FIRST, Inventory { accepted, ..known.clone() });
        harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a"))), ("b", None)]));
        harness.settle();
        let changed = AuditEntry::Changed(a.clone());
        assert_eq!(harness.world.log.first() == Some(&changed), is_done, "{recorded:?}");
        assert_eq!(harness.world.log.is_empty(), !is_done, "{recorded:?} {:?}", harness.world.log);
        let expected = (!is_done).then(|| Reason::Inventory("test".into()));
        assert_eq!(harness.decide(&a).reason, expected, "{acceptance:?} {recorded:?}");
        let waits = PruneDecision::Defer(PruneCause::UnrecordedRevision("r2".into()));
        assert_eq!(harness.engine.unready_blocker(FIRST) == Some(waits), !is_done, "{recorded:?}");
        // Accepted content is defended meanwhile.
        harness.world.log.clear();
        harness.world.drift(&a);
        harness.settle();
        assert_eq!(harness.world.log, [changed], "{acceptance:?} {recorded:?}");
        let accepted = Some(Revision::new("r2"));
        harness.engine.set_inventory(FIRST, Inventory { accepted, ..known });
        harness.settle();
        let release = harness.world.things[&a].release.clone();
        let newest = ContentRef { hash: desired(&a, 2, "a").hash, revision: Revision::new("r2") };
        assert_eq!(release, Some(newest), "{acceptance:?} {recorded:?}");
    };
    check(AcceptanceRecord::Required, None, false);
    check(AcceptanceRecord::Required, Some("r1"), false);
    check(AcceptanceRecord::Required, Some("r2"), true);
    check(AcceptanceRecord::Optional, None, true);
}

#[test]
fn nothing_is_written_into_a_namespace_that_is_being_deleted() {
    let (namespace, a) = (id("", "Namespace", "", "shop"), config("a"));
    let mut engine = engine(&[SET], &[namespace.group_kind(), a.group_kind()]);
    let files = [("ns", Some(desired(&namespace, 1, "ns"))), ("a", Some(desired(&a, 1, "a")))];
    engine.set_reading(FIRST, reading("r1", &files));
    let thing = WorldObject::settled(desired(&namespace, 1, "ns").hash, "r1", 1);
    let live = World::live(&namespace, &thing);
    engine.observe_object(&namespace, LiveObject { deleting: true, ..live.clone() });
    engine.record_lookup(&a, DirectView::Absent);
    let expected = Reason::Needs(namespace.clone(), DependencyState::Deleting);
    assert_eq!(engine.decide(&a, Instant::now()).reason, Some(expected));
    engine.observe_object(&namespace, LiveObject { rv: ResourceVersion(2), ..live });
    let action = engine.decide(&a, Instant::now()).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
}

fn web(content: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.traits.recreate = RecreatePolicy::Allowed;
    web.into()
}

/// Refuses the decided content as one that changes a field which never changes.
fn refuse(harness: &mut Harness, id: &ObjectId) {
    let action = harness.decide(id).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
    let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
    harness.engine.record_result(id, &action, ActionResult::Failed(why), harness.now);
}

/// Returns a cluster in which the second content of `web` was refused.
fn refused_change() -> (Harness, ObjectId) {
    let (mut harness, id) = (Harness::new(3), workload("web"));
    harness.read(reading("r1", &[("web", Some(web(1)))]));
    harness.settle();
    harness.read(reading("r2", &[("web", Some(web(2)))]));
    refuse(&mut harness, &id);
    (harness, id)
}

#[test]
fn only_what_is_provably_ours_is_deleted_to_be_created_again() {
    let (mut harness, id) = refused_change();
    let proven = harness.clone().decide(&id).action;
    assert!(matches!(proven, Action::Delete(_, _, DeletionReason::Recreate)), "{proven:?}");
    let mut live = World::live(&id, &harness.world.things[&id]);
    let release = live.release.take().unwrap();
    live.unproven_release = Some(Box::new(ReleaseAnnotation { release, seal: None }));
    live.rv = ResourceVersion(live.rv.0 + 1);
    harness.engine.observe_object(&id, live);
    assert!(harness.engine.live_object(&id).unwrap().is_unproven());
    let decision = harness.decide(&id);
    assert!(!matches!(decision.action, Action::Delete(..)), "{decision:?}");
    let why = decision.reason.map(|reason| reason.to_string()).unwrap_or_default();
    assert!(why.contains("has no valid seal"), "{why}");
}

#[test]
fn what_is_kept_or_holds_data_is_not_deleted_to_be_created_again() {
    use PruneTiming::{AfterUnit, BeforeUnit, Never, OnConfirmation};

    let check = |id: &ObjectId, [manifest, live]: [PruneTiming; 2], expected: Option<&str>| {
        let wanted = |content| {
            let mut object = (*desired(id, content, "a")).clone();
            (object.traits.recreate, object.traits.prune_timing) = (RecreatePolicy::Allowed, manifest);
            object.into()
        };
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(wanted(1)))]));
        harness.settle();
        let shown = World::live(id, &harness.world.things[id]);
        let rv = ResourceVersion(shown.rv.0 + 1);
        harness.engine.observe_object(id, LiveObject { prune_timing: live, rv, ..shown });
        harness.read(reading("r2", &[("a", Some(wanted(2)))]));
        refuse(&mut harness, id);
        let decision = harness.decide(id);
        let recreates = matches!(decision.action, Action::Delete(_, _, DeletionReason::Recreate));
        let why = decision.reason.map(|reason| reason.to_string()).unwrap_or_default();
        assert_eq!(recreates, expected.is_none(), "{id} {manifest:?} {live:?} {why}");
        assert!(
            expected.is_none_or(|text| why.contains(&format!(", as {text}: delete it by kubectl"))),
            "{why}"
        );
    };
    let kept = "an annotation keeps it from being deleted";
    let confirmed = "an annotation asks for a confirmation of its deletion";
    let a = config("a");
    check(&a, [AfterUnit, AfterUnit], None);
    check(&a, [BeforeUnit, AfterUnit], None);
    check(&a, [Never, AfterUnit], Some(kept));
    check(&a, [AfterUnit, Never], Some(kept));
    check(&a, [OnConfirmation, AfterUnit], Some(confirmed));
    check(&a, [AfterUnit, OnConfirmation], Some(confirmed));
    let of = |group, kind, namespace| ObjectId::new(&GroupKind::new(group, kind), namespace, "a");
    let blocker = |id: &ObjectId| {
        let (mut engine, object) = (Engine::new(Budget::default()), desired(id, 1, "a"));
        engine.observe_object(id, World::live(id, &WorldObject::settled(object.hash, "r1", 1)));
        engine.recreation_blocker(id, &object).map(|blocker| blocker.to_string())
    };
    let shop = Some("shop");
    let lost = |kind: &str| Some(format!("data are lost with a {kind}"));
    let message: Arc<str> = "no".into();
    for (group, kind, namespace) in [
        ("", "PersistentVolumeClaim", shop),
        ("", "PersistentVolume", None),
        ("", "Namespace", None),
        ("apiextensions.k8s.io", "CustomResourceDefinition", None),
    ] {
        let id = of(group, kind, namespace);
        let cause = immutability_cause(&id, message.clone());
        assert_eq!((blocker(&id), cause), (lost(kind), RefusalCause::Message(message.clone())));
    }
    assert_eq!(blocker(&of("apps", "StatefulSet", shop)), None);
    let claims = RecreationBlocker::ClaimsDeleted;
    let set = of("apps", "StatefulSet", shop);
    for (live, manifest, expected) in [
        (VolumeClaimRetention::Retain, VolumeClaimRetention::Retain, None),
        (VolumeClaimRetention::Delete, VolumeClaimRetention::Retain, Some(claims)),
        (VolumeClaimRetention::Retain, VolumeClaimRetention::Delete, Some(claims)),
    ] {
        let (mut engine, mut object) = (Engine::new(Budget::default()), (*desired(&set, 1, "a")).clone());
        let shown = World::live(&set, &WorldObject::settled(object.hash, "r1", 1));
        engine.observe_object(&set, LiveObject { volume_claim_retention: live, ..shown });
        object.traits.volume_claim_retention = manifest;
        assert_eq!(engine.recreation_blocker(&set, &object), expected, "{live:?} {manifest:?}");
    }
    let job = of("batch", "Job", Some("kube-system"));
    assert_eq!(blocker(&job), None);
    assert_eq!(immutability_cause(&job, message.clone()), RefusalCause::Recreatable(message));
}

#[test]
fn what_is_to_be_adopted_is_not_deleted_to_be_created_again() {
    let id = workload("web");
    let mut harness = Harness::new(3);
    let by_hand = WorldObject { labelled: false, release: None, ..WorldObject::settled(web(9).hash, "", 1) };
    harness.world.things.insert(id.clone(), by_hand);
    harness.read(reading("r1", &[("web", Some(web(1)))]));
    harness.step(&id);
    refuse(&mut harness, &id);
    let decision = harness.decide(&id);
    assert_eq!(decision.action, Action::Nothing);
    assert!(matches!(decision.reason, Some(Reason::Refused(..))), "{:?}", decision.reason);
}

// Its owner may have changed or replaced it since it was seen.
#[test]
fn what_is_adopted_is_written_in_the_version_that_was_judged_and_under_the_budget() {
    let adopted = |id: &ObjectId, is_rolling: bool| {
        let mut harness = Harness::new(1);
        let other = workload("other");
        harness.read(reading("r1", &[("other", Some(desired(&other, 1, "other")))]));
        harness.settle();
        let by_hand = WorldObject {
            labelled: false,
            release: None,
            ..WorldObject::settled(desired(id, 9, "a").hash, "", 50)
        };
        harness.world.clock = 50;
        harness.world.things.insert(id.clone(), by_hand);
        if is_rolling {
            harness.read(reading("r2", &[("other", Some(desired(&other, 2, "other")))]));
            while !matches!(harness.step(&other), Some(Action::Apply(_))) {}
            harness.deliver(usize::MAX);
        }
        harness.read(reading("r3", &[("a", Some(desired(id, 1, "a")))]));
        harness.step(id);
        harness.decide(id)
    };
    let expected = Precondition::Exact(Uid("50".into()), ResourceVersion(50));
    for id in [config("a"), workload("a")] {
        let Action::Apply(apply) = adopted(&id, false).action else { panic!("{id} is not adopted") };
        assert_eq!((apply.purpose, apply.precondition), (ApplyPurpose::Adopt, expected.clone()), "{id}");
    }
    // Its pods are replaced as those of any rollout.
    let waits = adopted(&workload("a"), true);
    assert!(matches!(waits.reason, Some(Reason::Budget(_))), "{waits:?}");
    let Action::Apply(_) = adopted(&config("a"), true).action else { panic!("a map restarts nothing") };
}

/// Returns the outcome for an object that is there and was never ours, in a few words.
fn outcome(owner: ObjectOwner, adopt: AdoptPolicy) -> &'static str {
    let a = config("a");
    let mut engine = engine(&[SET], &[a.group_kind()]);
    engine.set_adopt(FIRST, adopt);
    engine.set_reading(FIRST, reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    let live = World::live(&a, &WorldObject::settled(desired(&a, 9, "a").hash, "r1", 1));
    let live = LiveObject { owner, release: None, our_fields: None, ..live };
    engine.record_lookup(&a, DirectView::Found(Box::new(live)));
    let decision = engine.decide(&a, Instant::now());
    match (&decision.action, &decision.reason) {
        (Action::Apply(apply), None) if apply.purpose == ApplyPurpose::Adopt => "adopted",
        (Action::Nothing, Some(Reason::Owned(_))) => "owned",
        (Action::Nothing, Some(Reason::NotAdopted)) => "not adopted",
        _ => panic!("{decision:?}"),
    }
}

#[test]
fn an_object_of_somebody_else_is_taken_over_only_as_the_policy_says_and_one_of_a_controller_never() {
    let check = |owner: ObjectOwner, expected: [&str; 3]| {
        let outcomes = AdoptPolicy::ALL.map(|adopt| outcome(owner.clone(), adopt));
        assert_eq!(outcomes, expected, "{owner:?}");
    };
    check(ObjectOwner::Nobody, ["not adopted", "adopted", "adopted"]);
    check(ObjectOwner::Foreign("Argo CD Application shop".into()), ["owned", "owned", "adopted"]);
    check(ObjectOwner::Labelled("applyset-x-v1".into()), ["owned", "owned", "adopted"]);
    check(ObjectOwner::Ours("applyset-x-v1".into()), ["owned", "owned", "adopted"]);
    // Its controller would write it anew, again and again.
    check(ObjectOwner::Controlled("ReplicaSet shop/web".into()), ["owned"; 3]);
}

#[test]
fn nothing_is_deleted_to_be_created_again_where_it_could_not_be_created() {
    let (mut harness, id) = refused_change();
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    for (lacks_location, expected) in [(true, false), (false, true)] {
        harness.engine.set_inventory(FIRST, Inventory { lacks_location, ..known.clone() });
        let action = harness.decide(&id).action;
        assert_eq!(matches!(action, Action::Delete(..)), expected, "{lacks_location}: {action:?}");
    }
}

// Others of its unit may have failed while it waited for the budget. It would be missing for good.
#[test]
fn nothing_is_deleted_to_be_created_again_while_its_content_is_rejected() {
    let (mut harness, id) = refused_change();
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    let good = ContentRef { hash: web(1).hash, revision: Revision::new("r1") };
    let rollback_target = RollbackTarget::Content(good);
    let member = UnitMember { content: Some(web(2).hash), rollback_target, restarted: None };
    let members = [(id.clone(), member)].into();
    let unit = ReleaseUnit { inventory_id: SET.into(), revision: Revision::new("r2"), members };
    let rejection = Rejection { unit, action: RejectionAction::Quarantine, cause: "api failed".into() };
    harness.world.log.clear();
    let rejections = vec![rejection];
    harness.engine.set_inventory(FIRST, Inventory { rejections, ..known.clone() });
    harness.settle();
    assert_eq!(harness.world.log, []);
    harness.engine.set_inventory(FIRST, known);
    harness.settle();
    let made = [AuditEntry::Created(id.clone())];
    assert!(harness.world.log.ends_with(&made) && harness.world.log.len() == 2, "{:?}", harness.world.log);
}

#[test]
fn a_deletion_for_an_immutable_field_is_not_repeated_before_its_time() {
    let a = config("a");
    let wanted = |content| {
        let mut object = (*desired(&a, content, "a")).clone();
        object.traits.recreate = RecreatePolicy::Allowed;
        object.into()
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(wanted(1)))]));
    harness.settle();
    harness.read(reading("r2", &[("a", Some(wanted(2)))]));
    refuse(&mut harness, &a);
    let deletion = harness.decide(&a).action;
    assert!(matches!(deletion, Action::Delete(_, _, DeletionReason::Recreate)), "{deletion:?}");
    let pause = Duration::from_secs(2);
    let denied = WriteFailure::Refused("a policy forbids it".into(), RefusalRule::Other, Some(pause));
    harness.engine.record_result(&a, &deletion, ActionResult::Failed(denied), harness.now);
    let decision = harness.decide(&a);
    assert!(!matches!(decision.action, Action::Delete(..)), "{decision:?}");
    let why = decision.reason.map(|reason| reason.to_string());
    assert_eq!(why.as_deref(), Some("a policy forbids it; retry in 2 s"));
    harness.pass_time(pause);
    assert_eq!(harness.decide(&a).action, deletion);
}

// Its claim counts the pods of that version.
#[test]
fn a_write_that_restarts_pods_is_bound_to_the_version_that_it_was_decided_on() {
    let check = |id: &ObjectId, is_exact: bool| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(id, 1, "a")))]));
        harness.settle();
        harness.read(reading("r2", &[("a", Some(desired(id, 2, "a")))]));
        let Action::Apply(apply) = harness.decide(id).action else { panic!("{id} is not changed") };
        let live = harness.engine.live_object(id).unwrap();
        let expected = if is_exact {
            Precondition::Exact(live.uid.clone(), live.rv)
        } else {
            Precondition::Uid(live.uid.clone())
        };
        assert_eq!((apply.precondition.clone(), apply.decided_on), (expected, Some(live.rv)), "{id}");
        let (uid, rv) = (live.uid.clone(), live.rv);
        assert_eq!(Action::Delete(uid, rv, DeletionReason::Prune).decided_on(), Some(rv));
        assert_eq!(Action::Apply(apply).decided_on(), Some(rv));
        assert_eq!(Action::Nothing.decided_on(), None);
    };
    check(&workload("web"), true);
    check(&config("a"), false);
}
