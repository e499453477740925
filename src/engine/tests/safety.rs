//! The objects that must never be deleted, whoever errs: each case is one that looked like "not
//! wanted any more".

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::harness::Harness;
use super::world::{
    AuditEntry, FIRST, SECOND, SET, World, WorldObject, config, desired, gvk, id, naming, reading, workload,
};
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{ContentHash, GroupKind, ObjectId, Revision};

const OTHER: &str = "applyset-other-v1";

fn with(id: &ObjectId, content: u32, change: impl FnOnce(&mut DesiredObject)) -> SharedDesiredObject {
    let mut wanted = (*desired(id, content, id.name())).clone();
    change(&mut wanted);
    Arc::new(wanted)
}

/// Returns an engine that watches these kinds and shows nothing yet.
pub(super) fn engine(sets: &[&str], kinds: &[GroupKind]) -> Engine {
    let mut engine = Engine::new(super::world::budget(3));
    engine.set_release_key(ReadState::Value(super::harness::release_key()));
    for set in sets {
        let radius = BlastRadius { count: 100, percent: 100 };
        let number = engine.add_source(SourceDeclaration::new(
            set,
            set,
            AdoptPolicy::IfUnowned,
            PrunePolicy::On,
            radius,
        ));
        engine.set_inventory(number, naming(kinds.iter().cloned()));
    }
    for kind in kinds {
        engine.set_kind_availability(
            crate::object::Gvk::new(&kind.group, "v1", &kind.kind),
            KindAvailability::Served,
        );
        engine.list_complete(kind);
    }
    engine
}

/// Answers that no older revision has any content to give.
fn lose_history(engine: &mut Engine) {
    for (revision, wanted) in engine.unread_contents() {
        for (id, hash) in wanted {
            engine.record_older_content(&id, &ContentRef { hash, revision: revision.clone() }, None);
        }
    }
}

pub(super) fn judged(engine: &mut Engine, source: SourceId, id: &ObjectId) -> String {
    engine.process_changes();
    let found =
        engine.prune_decisions(source).find(|(other, _)| *other == id).map(|(_, judged)| judged.clone());
    match found {
        None => "wanted".to_owned(),
        Some(PruneDecision::Delete) => "delete".to_owned(),
        Some(
            PruneDecision::Defer(why)
            | PruneDecision::Confirm(why)
            | PruneDecision::Keep(why)
            | PruneDecision::Ignore(why),
        ) => why.to_string(),
    }
}

#[test]
fn an_object_that_moves_to_another_source_in_one_commit_is_not_pruned_before_that_one_was_looked_at() {
    let a = config("a");
    let mut engine = engine(&[SET, OTHER], &[a.group_kind()]);
    engine.set_reading(FIRST, reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    engine.set_reading(SECOND, reading("r1", &[("b", Some(desired(&config("b"), 1, "b")))]));
    engine.record_check(SECOND, engine.last_observation_number());
    engine.observe_object(&a, World::live(&a, &WorldObject::settled(desired(&a, 1, "a").hash, "r1", 1)));
    assert_eq!(judged(&mut engine, FIRST, &a), "wanted");
    engine.set_reading(FIRST, reading("r2", &[("a", None)]));
    let why = format!("pruned when source {OTHER}, which may want it, was observed again");
    assert_eq!(judged(&mut engine, FIRST, &a), why);
    // The other one has a lookup that began before: it says nothing.
    engine.set_reading(SECOND, reading("r1b", &[]));
    assert_eq!(judged(&mut engine, FIRST, &a), why);
    let last = engine.last_observation_number();
    let mut takes_over =
        reading("r2", &[("moved", Some(with(&a, 1, |wanted| wanted.hash = ContentHash::hash_bytes(b"o"))))]);
    for (_, facts) in &mut takes_over.files {
        let facts = facts.as_mut().unwrap();
        let mut wanted = (*facts.objects[0]).clone();
        wanted.origin.file = "moved".into();
        facts.objects = vec![wanted.into()];
    }
    engine.set_reading(SECOND, takes_over);
    engine.record_check(SECOND, last);
    assert_eq!(judged(&mut engine, FIRST, &a), "wanted");
    let action = engine.decide(&a, Instant::now()).action;
    assert!(
        matches!(action, Action::Apply(ApplyRequest { purpose: ApplyPurpose::Transfer, source: SECOND, .. })),
        "{action:?}"
    );
}

#[test]
fn an_object_that_no_source_takes_goes_once_all_were_looked_at() {
    let a = config("a");
    let mut engine = engine(&[SET, OTHER], &[a.group_kind()]);
    engine.set_reading(FIRST, reading("r1", &[("b", Some(desired(&config("b"), 1, "b")))]));
    engine.observe_object(&a, World::live(&a, &WorldObject::settled(desired(&a, 1, "a").hash, "r1", 1)));
    lose_history(&mut engine);
    assert!(judged(&mut engine, FIRST, &a).contains("observed again"), "the other one was never read");
    engine.record_check(SECOND, engine.last_observation_number());
    assert_eq!(judged(&mut engine, FIRST, &a), "delete");
}

#[test]
fn nothing_goes_while_it_is_not_known_who_is_meant() {
    let widget = |namespace| id("example.com", "Widget", namespace, "w");
    let kind = widget("").group_kind();
    let mut engine = engine(&[SET], std::slice::from_ref(&kind));
    let mut before = reading("r1", &[("w", Some(desired(&widget(""), 1, "w")))]);
    before.files[0].1.as_mut().unwrap().unscoped = BTreeSet::from([kind]);
    engine.set_reading(FIRST, before);
    engine.observe_object(
        &widget("shop"),
        World::live(&widget("shop"), &WorldObject::settled(desired(&widget("shop"), 1, "w").hash, "r1", 1)),
    );
    let why =
        "nothing is pruned until w is readable: it is not known whether Widget.example.com is namespaced";
    assert_eq!(judged(&mut engine, FIRST, &widget("shop")), why);
    engine.set_reading(FIRST, reading("r1", &[("w", Some(desired(&widget("shop"), 1, "w")))]));
    assert_eq!(judged(&mut engine, FIRST, &widget("shop")), "wanted");
}

#[test]
fn what_holds_others_goes_after_them_confirmed_or_not() {
    let namespace = id("", "Namespace", "", "shop");
    let crd = id("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com");
    let widget = id("example.com", "Widget", "shop", "w");
    let kinds = [namespace.group_kind(), crd.group_kind(), widget.group_kind()];
    for kept in [&namespace, &crd] {
        let mut engine = engine(&[SET], &kinds);
        let uids = [Uid("1".into()), Uid("2".into()), Uid("3".into())];
        engine.set_inventory(FIRST, Inventory { confirmed: uids.into(), ..naming(kinds.clone()) });
        for (n, id) in (1..).zip([&namespace, &crd, &widget]) {
            engine.observe_object(
                id,
                World::live(id, &WorldObject::settled(desired(id, 1, id.name()).hash, "r1", n)),
            );
        }
        engine.set_reading(FIRST, reading("r1", &[("w", Some(desired(&widget, 1, "w")))]));
        lose_history(&mut engine);
        let why = "pruned after Widget shop/w, which uses it";
        assert_eq!(judged(&mut engine, FIRST, kept), why, "a desired object would go along");
        engine.set_reading(FIRST, reading("r2", &[("w", None)]));
        assert_eq!(judged(&mut engine, FIRST, kept), why, "first the one, then the other");
        engine.observe_absence(&widget);
        assert_eq!(judged(&mut engine, FIRST, kept), "delete");
    }
}

/// Returns `web`, which used the old settings. The commit that takes these away gives it new ones.
fn replaced(restarted: bool) -> (Harness, ObjectId) {
    let (old, new, web) = (config("old"), config("new"), workload("web"));
    let needing =
        |need: &ObjectId, content| with(&web, content, |wanted| wanted.needs = [need.clone()].into());
    let mut harness = Harness::new(3);
    let other = |name| (name, Some(desired(&config(name), 1, name)));
    harness.read(reading("r1", &[other("old"), other("x"), ("web", Some(needing(&old, 1)))]));
    harness.settle();
    harness.world.log.clear();
    if restarted {
        harness.engine = harness.fresh(3);
        harness.read(reading("r2", &[other("new"), other("x"), ("web", Some(needing(&new, 2)))]));
    } else {
        harness.read(reading("r2", &[("old", None), other("new"), ("web", Some(needing(&new, 2)))]));
    }
    (harness, old)
}

#[test]
fn what_a_workload_used_goes_only_when_its_new_pods_are_healthy() {
    for restarted in [false, true] {
        let (mut harness, old) = replaced(restarted);
        let web = workload("web");
        for _ in 0..10 {
            for id in harness.engine.take_dirty() {
                harness.step(&id);
            }
            // The rollout goes on.
            for (id, thing) in harness.world.events.drain(..).collect::<Vec<_>>() {
                let Some(thing) = thing else { continue };
                let health = Health::new(HealthStatus::InProgress, "rolls");
                let live = World::live(&id, &thing);
                harness
                    .engine
                    .observe_object(&id, if id == web { LiveObject { health, ..live } } else { live });
            }
        }
        let expected = [AuditEntry::Created(config("new")), AuditEntry::Changed(web.clone())];
        assert_eq!(harness.world.log, expected, "restarted: {restarted}");
        harness.settle();
        assert!(
            matches!(&harness.world.log[2..], [AuditEntry::Deleted(id, _)] if *id == old),
            "{:?}",
            harness.world.log
        );
    }
}

#[test]
fn a_job_that_has_ended_is_not_run_again_whatever_becomes_of_the_inventory() {
    let job = id("batch", "Job", "shop", "migrate");
    let wanted = with(&job, 1, |wanted| wanted.traits.lifetime = ObjectLifetime::AfterFinish);
    let mut engine = engine(&[SET], &[job.group_kind()]);
    engine.set_reading(FIRST, reading("r1", &[("migrate", Some(wanted.clone()))]));
    engine.observe_object(
        &job,
        LiveObject { finished: true, ..World::live(&job, &WorldObject::settled(wanted.hash, "r1", 1)) },
    );
    // Its time is over before anybody wrote down that it has ended.
    engine.observe_absence(&job);
    engine.record_lookup(&job, DirectView::Absent);
    let now = Instant::now();
    assert_eq!(engine.decide(&job, now).action, Action::Nothing);
    engine.set_inventory(FIRST, naming([job.group_kind()]));
    assert_eq!(engine.decide(&job, now).action, Action::Nothing, "an older inventory does not count");
    let other = with(&job, 2, |wanted| wanted.traits.lifetime = ObjectLifetime::AfterFinish);
    engine.set_reading(FIRST, reading("r2", &[("migrate", Some(other))]));
    assert!(matches!(engine.decide(&job, now).action, Action::Apply(_)), "another content runs");
    assert_eq!(gvk(&job).api_version(), "batch/v1");
}

#[test]
fn a_job_that_has_ended_is_not_run_again_while_its_newer_content_waits() {
    let job = id("batch", "Job", "shop", "migrate");
    let wanted = |content, before: &[ObjectId]| {
        with(&job, content, |wanted| {
            (wanted.traits.lifetime, wanted.depends_on) = (ObjectLifetime::AfterFinish, before.into());
        })
    };
    let mut engine = engine(&[SET], &[job.group_kind()]);
    engine.set_reading(FIRST, reading("r1", &[("migrate", Some(wanted(1, &[])))]));
    let thing = WorldObject::settled(desired(&job, 1, "migrate").hash, "r1", 1);
    engine.observe_object(&job, LiveObject { finished: true, ..World::live(&job, &thing) });
    engine.observe_absence(&job);
    engine.set_reading(FIRST, reading("r2", &[("migrate", Some(wanted(2, &[config("pre")])))]));
    engine.record_lookup(&job, DirectView::Absent);
    let decision = engine.decide(&job, Instant::now());
    let expected = Reason::Needs(config("pre"), DependencyState::Unnamed);
    assert_eq!((decision.action, decision.reason), (Action::Nothing, Some(expected)));
}

// Somebody who may create Jobs could keep the wanted one from ever running.
#[test]
fn a_job_has_ended_only_where_its_seal_proves_the_release_or_this_process_has_created_it() {
    let job = id("batch", "Job", "shop", "migrate");
    let wanted = with(&job, 1, |wanted| wanted.traits.lifetime = ObjectLifetime::AfterFinish);
    let now = Instant::now();
    let check = |is_sealed: bool, written: Option<u64>, has_ended: bool| {
        let mut engine = engine(&[SET], &[job.group_kind()]);
        engine.set_reading(FIRST, reading("r1", &[("migrate", Some(wanted.clone()))]));
        if let Some(uid) = written {
            engine.record_lookup(&job, DirectView::Absent);
            let action = engine.decide(&job, now).action;
            assert!(matches!(action, Action::Apply(_)), "{action:?}");
            let live = World::live(&job, &WorldObject::settled(wanted.hash, "r1", uid));
            let result = ActionResult::Applied(WriteResult { live });
            engine.record_result(&job, &action, result, now);
        }
        let mut live = World::live(&job, &WorldObject::settled(wanted.hash, "r1", 5));
        live.finished = true;
        if !is_sealed {
            let release = live.release.take().unwrap();
            live.unproven_release = Some(Box::new(ReleaseAnnotation { release, seal: None }));
        }
        for version in [10, 11] {
            live.rv = ResourceVersion(version);
            engine.observe_object(&job, live.clone());
        }
        let recorded = engine.source(FIRST).inventory.as_ref().unwrap().finished.contains_key(&job);
        engine.observe_absence(&job);
        engine.record_lookup(&job, DirectView::Absent);
        let is_left = engine.decide(&job, now).action == Action::Nothing;
        assert_eq!((recorded, is_left), (has_ended, has_ended), "{is_sealed} {written:?}");
    };
    check(true, None, true);
    check(false, None, false);
    check(false, Some(5), true);
    // Another one has its name by now.
    check(false, Some(4), false);
}

// Fields that the manifest does not have may let a Job end without a pod. So a write of rhumb to it
// later proves nothing of its end.
#[test]
fn a_job_that_somebody_else_created_has_not_ended_whatever_rhumb_has_written_to_it() {
    let job = id("batch", "Job", "shop", "migrate");
    let wanted = with(&job, 1, |wanted| wanted.traits.lifetime = ObjectLifetime::AfterFinish);
    let now = Instant::now();
    let following = || {
        let mut engine = engine(&[SET], &[job.group_kind()]);
        engine.set_reading(FIRST, reading("r1", &[("migrate", Some(wanted.clone()))]));
        engine
    };
    let theirs = || World::live(&job, &WorldObject::settled(wanted.hash, "r1", 5));
    let check = |is_there: bool, has_ended: bool| {
        let mut engine = following();
        if is_there {
            let owner = ObjectOwner::Nobody;
            engine.observe_object(&job, LiveObject { owner, release: None, our_fields: None, ..theirs() });
        } else {
            engine.record_lookup(&job, DirectView::Absent);
        }
        let action = engine.decide(&job, now).action;
        let Action::Apply(apply) = &action else { panic!("{action:?}") };
        let is_creation = apply.precondition == Precondition::Absent;
        assert_eq!((is_creation, apply.seal.is_some()), (!is_there, true));
        let annotation = Some(Box::new(apply.release_annotation()));
        let written = LiveObject {
            release: None,
            unproven_release: annotation,
            rv: ResourceVersion(20),
            finished: true,
            ..theirs()
        };
        engine.record_result(
            &job,
            &action,
            ActionResult::Applied(WriteResult { live: written.clone() }),
            now,
        );
        // The same process, and one that has just started.
        for mut engine in [engine, following()] {
            engine.observe_object(&job, written.clone());
            let is_proven = engine.informer_object(&job).is_some_and(|live| !live.is_unproven());
            assert!(is_proven, "it can be pruned, for one");
            engine.observe_object(&job, LiveObject { rv: ResourceVersion(21), ..written.clone() });
            engine.observe_absence(&job);
            engine.record_lookup(&job, DirectView::Absent);
            let is_left = engine.decide(&job, now).action == Action::Nothing;
            assert_eq!(is_left, has_ended, "{is_there}");
            let recorded = engine.source(FIRST).inventory.as_ref().unwrap().finished.contains_key(&job);
            assert_eq!(recorded, has_ended, "{is_there}");
        }
    };
    check(false, true);
    check(true, false);
}

// The seal does not cover the uid, so whoever deletes a Job can create another one with its marks.
#[test]
fn a_job_with_the_marks_of_an_earlier_incarnation_has_not_ended() {
    let job = id("batch", "Job", "shop", "migrate");
    let wanted = with(&job, 1, |wanted| wanted.traits.lifetime = ObjectLifetime::AfterFinish);
    let now = Instant::now();
    // The incarnations that are seen in turn; the last one has finished.
    let check = |incarnations: &[u64], serial: u64, has_ended: bool| {
        let mut engine = engine(&[SET], &[job.group_kind()]);
        engine.set_reading(FIRST, reading("r1", &[("migrate", Some(wanted.clone()))]));
        for (place, uid) in incarnations.iter().enumerate() {
            let live = World::live(&job, &WorldObject::settled(wanted.hash, "r1", *uid));
            let rv = ResourceVersion(place as u64 + 10);
            let finished = place + 1 == incarnations.len();
            engine.observe_object(&job, LiveObject { release_serial: serial, rv, finished, ..live });
        }
        let recorded = engine.source(FIRST).inventory.as_ref().unwrap().finished.contains_key(&job);
        engine.observe_absence(&job);
        engine.record_lookup(&job, DirectView::Absent);
        let next = match engine.decide(&job, now).action {
            Action::Apply(apply) => apply.seal.map(|seal| seal.serial),
            _ => None,
        };
        assert_eq!(recorded, has_ended, "{incarnations:?} {serial}");
        // The Job that is created then is no copy.
        assert_eq!(next, (!has_ended).then_some(serial + 1), "{incarnations:?} {serial}");
    };
    check(&[5], 7, true);
    check(&[5, 5], 7, true);
    check(&[5, 6], 7, false);
    check(&[5, 6, 6], 7, false);
    // An older version has given no number.
    check(&[5, 6], 0, true);
}

#[test]
fn what_somebody_else_created_first_is_looked_up_and_taken_over_only_as_the_policy_says() {
    let a = config("a");
    let check = |adopt: AdoptPolicy, expected: Option<ApplyPurpose>| {
        let (mut engine, now) = (engine(&[SET], &[a.group_kind()]), Instant::now());
        engine.set_adopt(FIRST, adopt);
        engine.set_reading(FIRST, reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
        engine.record_lookup(&a, DirectView::Absent);
        let action = engine.decide(&a, now).action;
        let Action::Apply(apply) = &action else { panic!("{action:?}") };
        assert_eq!(apply.precondition, Precondition::Absent);
        let conflict = ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO));
        engine.record_result(&a, &action, conflict, now);
        assert_eq!(engine.decide(&a, now).action, Action::Lookup);
        let theirs = World::live(&a, &WorldObject::settled(desired(&a, 2, "a").hash, "r0", 5));
        let theirs = LiveObject { owner: ObjectOwner::Nobody, release: None, our_fields: None, ..theirs };
        engine.record_lookup(&a, DirectView::Found(Box::new(theirs)));
        let purpose = match engine.decide(&a, now).action {
            Action::Apply(apply) => Some(apply.purpose),
            _ => None,
        };
        assert_eq!(purpose, expected, "{adopt:?}");
    };
    check(AdoptPolicy::Never, None);
    check(AdoptPolicy::IfUnowned, Some(ApplyPurpose::Adopt));
}

#[test]
fn letting_a_held_rollout_go_is_a_restart() {
    let object = |spec: serde_json::Value| {
        let body = serde_json::json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
        let id = workload("web");
        let object = crate::object::Object {
            gvk: gvk(&id),
            id,
            body: body.into(),
            origin: crate::object::ManifestOrigin::new("a".into(), 1, 1),
        };
        DesiredObject::of(&object, BodyLocation { source: FIRST, blob: [0; 20], index: 0 }, SET).template
    };
    let template = serde_json::json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let plain = object(serde_json::json!({"template": template, "replicas": 3}));
    assert_eq!(plain, object(serde_json::json!({"template": template, "replicas": 5})));
    for stop in [
        serde_json::json!({"template": template, "paused": true}),
        serde_json::json!({"template": template, "updateStrategy": {"type": "OnDelete"}}),
        serde_json::json!({"template": template, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
        serde_json::json!({"template": template, "ordinals": {"start": 1}}),
    ] {
        assert_ne!(plain, object(stop.clone()), "{stop}");
    }
}

#[test]
fn what_a_source_that_ends_has_goes_in_the_order_of_its_contents_whether_it_is_known_at_first_or_not() {
    let (config_map, user) = (config("used"), id("apps", "Deployment", "shop", "web"));
    let with_need = with(&user, 1, |wanted| wanted.needs = [config_map.clone()].into());
    let mut engine = engine(&[SET], &[config_map.group_kind(), user.group_kind()]);
    engine.sources[FIRST].declared.lifecycle = SourceLifecycle::Deleting;
    engine.set_reading(FIRST, reading("r2", &[]));
    engine.observe_object(
        &config_map,
        World::live(&config_map, &WorldObject::settled(desired(&config_map, 1, "used").hash, "r1", 1)),
    );
    engine.observe_object(&user, World::live(&user, &WorldObject::settled(with_need.hash, "r1", 2)));
    // A new process has only the marks on the objects.
    let unread = "pruned when the content of";
    assert!(judged(&mut engine, FIRST, &user).starts_with(unread), "{}", judged(&mut engine, FIRST, &user));
    let named =
        |wanted: &SharedDesiredObject| ContentRef { hash: wanted.hash, revision: Revision::new("r1") };
    engine.record_older_content(&user, &named(&with_need), Some(with_need.clone()));
    assert!(judged(&mut engine, FIRST, &user).starts_with(unread));
    // Where its content is nowhere to be had, nothing waits for it.
    engine.record_older_content(&config_map, &named(&desired(&config_map, 1, "used")), None);
    assert_eq!(judged(&mut engine, FIRST, &user), "delete");
    assert_eq!(judged(&mut engine, FIRST, &config_map), "pruned after Deployment shop/web, which uses it");
}

#[test]
fn what_a_person_once_brought_back_goes_with_the_source_too() {
    let gone = config("brought-back");
    let good = desired(&gone, 1, "brought-back");
    let release = ContentRef { hash: good.hash, revision: Revision::new("r1") };
    // The newest revision had removed it, and that was undone.
    let member = UnitMember {
        content: None,
        rollback_target: RollbackTarget::Content(release.clone()),
        restarted: None,
    };
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r2"),
        members: [(gone.clone(), member)].into(),
    };
    let rejection = Rejection { unit, action: RejectionAction::RollBack, cause: "undone by hand".into() };
    for life in [SourceLifecycle::Active, SourceLifecycle::Deleting] {
        let mut engine = engine(&[SET], &[gone.group_kind()]);
        engine.sources[FIRST].declared.lifecycle = life;
        let rejections = vec![rejection.clone()];
        engine.set_inventory(FIRST, Inventory { rejections, ..naming([gone.group_kind()]) });
        engine.set_reading(FIRST, reading("r3", &[]));
        engine.observe_object(&gone, World::live(&gone, &WorldObject::settled(good.hash, "r1", 1)));
        engine.record_older_content(&gone, &release, Some(good.clone()));
        let expected = if life == SourceLifecycle::Active { "wanted" } else { "delete" };
        assert_eq!(judged(&mut engine, FIRST, &gone), expected);
    }
}

#[test]
fn what_a_kept_object_uses_stays_whatever_changes_while_the_source_that_goes_cannot_be_read() {
    let (used, keeper) = (config("used"), id("apps", "Deployment", "shop", "web"));
    let kept = with(&keeper, 1, |wanted| {
        wanted.needs = [used.clone()].into();
        wanted.traits.prune_timing = PruneTiming::Never;
    });
    let mut engine = engine(&[SET], &[used.group_kind(), keeper.group_kind()]);
    engine.sources[FIRST].declared.lifecycle = SourceLifecycle::Deleting;
    engine.set_reading(FIRST, reading("r2", &[]));
    for (id, wanted) in [(&used, desired(&used, 1, "used")), (&keeper, kept)] {
        engine.observe_object(id, World::live(id, &WorldObject::settled(wanted.hash, "r1", 1)));
        let release = ContentRef { hash: wanted.hash, revision: Revision::new("r1") };
        engine.record_older_content(id, &release, Some(wanted));
    }
    let expected = "Deployment shop/web, which is kept, uses it";
    assert_eq!(judged(&mut engine, FIRST, &used), expected);
    engine.set_unreadable(FIRST, "it cannot be read".into());
    assert!(engine.prune_blocker(FIRST).is_some());
    assert_eq!(judged(&mut engine, FIRST, &used), expected);
    let mut live = engine.informer_object(&used).unwrap().clone();
    (live.rv, live.prune_timing) = (ResourceVersion(live.rv.0 + 1), PruneTiming::BeforeUnit);
    engine.observe_object(&used, live);
    assert_eq!(judged(&mut engine, FIRST, &used), expected);
}

// Another folder of the repository, whose source nobody serves, may name it.
#[test]
fn nothing_goes_before_the_other_folders_of_its_repository_were_searched() {
    let names = ["a", "b", "c"];
    let file = |name: &'static str| (name, Some(desired(&config(name), 1, name)));
    let left = |moved: MovedObjects| {
        let mut harness = Harness::new(3);
        harness.engine.sources[FIRST].declared.moved = MovedObjects::Unsearched;
        harness.read(reading("r1", &names.map(file)));
        harness.settle();
        assert_eq!(harness.engine.objects_to_search(FIRST), None, "it has dropped nothing");
        harness.read(reading("r2", &[("a", None), ("b", None)]));
        harness.settle();
        assert_eq!(harness.world.things.len(), 3);
        let dropped = |name| DroppedObject { id: config(name), released: Some(Revision::new("r1")) };
        assert_eq!(harness.engine.objects_to_search(FIRST), Some(vec![dropped("a"), dropped("b")]));
        harness.engine.set_moved_objects(FIRST, moved);
        harness.settle();
        assert_eq!(harness.engine.objects_to_search(FIRST), None, "it was searched for");
        harness.world.things.keys().cloned().collect::<Vec<_>>()
    };
    let known = MovedObjects::Known([(config("a"), "folder/a.yaml".into())].into());
    assert_eq!(left(known), [config("a"), config("c")]);
    assert_eq!(left(MovedObjects::default()), [config("c")]);
    assert_eq!(left(MovedObjects::Unreadable("a broken pack".into())), names.map(config));
}
