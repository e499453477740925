//! Each fact that keeps an object back, alone: a reference, an unfinished change, a rejection of
//! an earlier wave; and which fact wakes whoever waits.

use std::sync::Arc;

use super::harness::Harness;
use super::safety;
use super::world::{
    FIRST, SECOND, SET, World, WorldObject, config, desired, following, id, reading, start_time, workload,
};
use crate::engine::facts::config_hash::key_id;
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId, Revision};

fn file(id: &ObjectId, content: u32) -> [(&'static str, Option<SharedDesiredObject>); 1] {
    [("a", Some(desired(id, content, "a")))]
}

fn at_rest(id: &ObjectId) -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &file(id, 1)));
    harness.settle();
    harness
}

/// Returns a cluster in which an object shows its first content, and the second one is wanted.
fn changed(id: &ObjectId) -> Harness {
    let mut harness = at_rest(id);
    harness.read(reading("r2", &file(id, 2)));
    harness
}

/// Refuses the decided content.
fn refuse(harness: &mut Harness, id: &ObjectId) {
    let action = harness.decide(id).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
    let why = WriteFailure::Refused("no room".into(), RefusalRule::Other, None);
    harness.engine.record_result(id, &action, ActionResult::Failed(why), harness.now);
}

/// Returns the record that these objects go back from their second content to the first one.
fn rejected(ids: &[&ObjectId]) -> Rejection {
    let member = |id: &&ObjectId| {
        let good = ContentRef { hash: desired(id, 1, "a").hash, revision: Revision::new("r1") };
        let (content, rollback_target) = (Some(desired(id, 2, "a").hash), RollbackTarget::Content(good));
        ((*id).clone(), UnitMember { content, rollback_target, restarted: None })
    };
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r2"),
        members: ids.iter().map(member).collect(),
    };
    Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() }
}

fn reject(harness: &mut Harness, ids: &[&ObjectId]) {
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_inventory(FIRST, Inventory { rejections: vec![rejected(ids)], ..known });
}

/// Checks why others wait for an object that they refer to.
#[track_caller]
fn check_reference(engine: &Engine, id: &ObjectId, expected: Option<&str>) {
    let found = engine.missing_reference(FIRST, id).map(|reason| reason.to_string());
    assert_eq!(found, expected.map(|words| format!("needs {id}, which {words}")));
}

#[test]
fn a_reference_is_missing_until_it_is_there_with_its_newest_content() {
    let (a, web) = (config("a"), workload("web"));
    check_reference(&Harness::new(3).engine, &a, None);
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &file(&a, 1)));
    check_reference(&harness.engine, &a, Some("is not there yet"));
    harness.settle();
    check_reference(&harness.engine, &a, None);
    check_reference(&changed(&a).engine, &a, Some("is not changed yet"));
    // A workload may wait for the budget for long.
    check_reference(&changed(&web).engine, &web, None);
    harness.read(reading("r2", &[("a", None)]));
    check_reference(&harness.engine, &a, None);
}

#[test]
fn a_reference_whose_newest_content_is_refused_is_missing_until_another_one_is_wanted() {
    for (id, newer) in [(config("a"), Some("is not changed yet")), (workload("web"), None)] {
        let mut harness = changed(&id);
        refuse(&mut harness, &id);
        check_reference(&harness.engine, &id, Some("is refused: no room"));
        harness.read(reading("r3", &file(&id, 3)));
        check_reference(&harness.engine, &id, newer);
    }
}

#[test]
fn a_reference_that_cannot_be_used_is_missing() {
    let a = config("a");
    let mut harness = at_rest(&a);
    let wanted = desired(&a, 2, "a");
    let (gvk, origin) = (wanted.gvk.clone(), wanted.origin.clone());
    let unusable = UnusableObject { id: a.clone(), gvk, origin, reason: "it has no name".into() };
    let facts = FileFacts { unusable: vec![Arc::new(unusable)], ..FileFacts::default() };
    let files = vec![("a".into(), Some(facts))];
    harness.engine.handle(
        Input::Read { source: FIRST, reading: SourceReading { files, ..reading("r2", &[]) } },
        harness.now,
    );
    check_reference(&harness.engine, &a, Some("cannot be used: it has no name"));
}

#[test]
fn a_reference_that_two_sources_want_is_not_used_until_one_of_them_owns_it() {
    let a = config("a");
    let nowhere = || RepositoryIdentity::None;
    let both = [("one", SET, nowhere()), ("two", "applyset-other-v1", nowhere())];
    let mut engine = following(&both, AdoptPolicy::IfUnowned);
    for source in [FIRST, SECOND] {
        engine.read(source, reading("c1", &file(&a, 1)));
    }
    check_reference(&engine, &a, Some("is wanted by several sources"));
    engine.observe_object(&a, World::live(&a, &WorldObject::settled(desired(&a, 1, "a").hash, "c1", 1)));
    check_reference(&engine, &a, Some("is not changed yet"));
}

#[test]
fn a_reference_that_goes_back_is_missing_until_its_earlier_content_was_read() {
    let a = config("a");
    let mut harness = changed(&a);
    reject(&mut harness, &[&a]);
    check_reference(&harness.engine, &a, Some("is rolled back first"));
    harness.read_contents();
    harness.engine.process_changes();
    check_reference(&harness.engine, &a, None);
}

#[test]
fn a_rejected_object_holds_up_later_waves_and_the_earliest_is_named() {
    let [a, b] = ["a", "b"].map(config);
    let mut harness = Harness::new(3);
    let files = |content: u32| {
        let mut early = (*desired(&b, content, "b")).clone();
        early.wave = -1;
        [("a", Some(desired(&a, content, "a"))), ("b", Some(Arc::new(early)))]
    };
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    let check = |harness: &Harness, expected: [Option<(i32, ObjectId)>; 3]| {
        assert_eq!([-1, 0, 1].map(|wave| harness.engine.earlier_rejection(FIRST, wave)), expected);
    };
    check(&harness, [None, None, None]);
    reject(&mut harness, &[&a]);
    check(&harness, [None, None, Some((0, a.clone()))]);
    reject(&mut harness, &[&a, &b]);
    check(&harness, [None, Some((-1, b.clone())), Some((-1, b.clone()))]);
}

// There all that comes first counts as done.
#[test]
fn a_plan_awaits_a_dependency_only_where_nothing_brings_it_and_nobody_has_it() {
    let (a, b) = (config("a"), config("b"));
    let check = |is_wanted: bool, is_there: bool, expected: Option<&str>| {
        let mut engine = Harness::new(3).engine.assume_prerequisites();
        let mut after = (*desired(&a, 1, "a")).clone();
        after.depends_on = [b.clone()].into();
        engine.read(FIRST, reading("r1", &[("a", Some(Arc::new(after.clone())))]));
        if is_wanted {
            engine.read(FIRST, reading("r2", &[("b", Some(desired(&b, 2, "b")))]));
        }
        if is_there {
            let live = World::live(&b, &WorldObject::settled(desired(&b, 1, "b").hash, "r0", 1));
            let health = Health::new(HealthStatus::InProgress, "it starts");
            engine.observe_object(&b, LiveObject { health, ..live });
        }
        let found = engine.dependency_blocker(FIRST, &after).map(|reason| reason.to_string());
        assert_eq!(found.as_deref(), expected, "{is_wanted} {is_there}");
    };
    check(false, false, Some("needs ConfigMap shop/b, which no source names"));
    check(true, false, None);
    check(false, true, None);
    check(true, true, None);
}

#[track_caller]
fn check_unfinished(harness: &Harness, id: &ObjectId, expected: Option<&str>) {
    let found = harness.engine.unfinished_change(FIRST, id);
    assert!(
        match (&found, expected) {
            (Some(found), Some(expected)) => found.to_string().starts_with(expected),
            (None, None) => true,
            _ => false,
        },
        "{found:?} {expected:?}"
    );
}

#[test]
fn a_change_is_finished_once_it_is_written_rolled_out_and_healthy() {
    let (a, web) = (config("a"), workload("web"));
    let mut harness = at_rest(&a);
    check_unfinished(&harness, &a, None);
    check_unfinished(&changed(&a), &a, Some("is changed"));
    let mut rolling = changed(&web);
    check_unfinished(&rolling, &web, Some("is changed"));
    while !matches!(rolling.step(&web), Some(Action::Apply(_))) {}
    rolling.deliver(usize::MAX);
    check_unfinished(&rolling, &web, Some("is rolled out"));
    rolling.settle();
    check_unfinished(&rolling, &web, None);
    let mut live = harness.engine.live_object(&a).cloned().unwrap();
    live.health = Health::new(HealthStatus::InProgress, "it starts");
    live.rv = ResourceVersion(live.rv.0 + 1);
    harness.engine.observe_object(&a, live);
    check_unfinished(&harness, &a, Some("is healthy ("));
    // A newer revision that leaves it as it is does not wait for it.
    harness.read(reading("r2", &[("b", Some(desired(&config("b"), 1, "b")))]));
    check_unfinished(&harness, &a, None);
}

// It goes away by itself, and later waves would follow what has failed.
#[test]
fn a_job_that_has_failed_and_is_gone_holds_up_later_waves_of_its_revision() {
    let (job, post) = (id("batch", "Job", "shop", "migrate"), config("post"));
    let check = |status: HealthStatus, revision: &str, expected: Option<Reason>| {
        let mut migrate = (*desired(&job, 1, "migrate")).clone();
        migrate.traits.lifetime = ObjectLifetime::AfterFinish;
        let mut later = (*desired(&post, 1, "post")).clone();
        later.wave = 1;
        let files = [("migrate", migrate), ("post", later)];
        let files = files.map(|(file, one)| (file, Some(SharedDesiredObject::from(one))));
        let mut engine = safety::engine(&[SET], &[job.group_kind(), post.group_kind()]);
        engine.read(FIRST, reading("r1", &files));
        let shown = World::live(&job, &WorldObject::settled(desired(&job, 1, "").hash, "r1", 1));
        let health = Health::new(status, "");
        engine.observe_object(&job, LiveObject { finished: true, health, ..shown });
        engine.observe_absence(&job);
        engine.read(FIRST, reading(revision, &[]));
        for id in [&job, &post] {
            engine.record_lookup(id, DirectView::Absent);
        }
        let now = start_time();
        assert_eq!(engine.decide(&job, now).action, Action::Nothing, "{status:?} {revision}");
        assert_eq!(engine.decide(&post, now).reason, expected, "{status:?} {revision}");
    };
    check(HealthStatus::Failed, "r1", Some(Reason::Wave(0, job.clone())));
    check(HealthStatus::Current, "r1", None);
    // A newer revision that leaves it as it is does not wait for it.
    check(HealthStatus::Failed, "r2", None);
}

#[test]
fn the_next_process_knows_with_which_revision_a_job_has_failed_that_is_gone() {
    let (job, post) = (id("batch", "Job", "shop", "migrate"), config("post"));
    let check = |brought: Option<&str>, revision: &str, expected: Option<Reason>| {
        let mut migrate = (*desired(&job, 1, "migrate")).clone();
        migrate.traits.lifetime = ObjectLifetime::AfterFinish;
        let content = migrate.hash;
        let mut later = (*desired(&post, 1, "post")).clone();
        later.wave = 1;
        let files = [("migrate", migrate), ("post", later)];
        let files = files.map(|(file, one)| (file, Some(SharedDesiredObject::from(one))));
        let mut engine = safety::engine(&[SET], &[job.group_kind(), post.group_kind()]);
        let ended = FinishedJob { content, has_failed: true, revision: brought.map(Revision::new) };
        let inventory = engine.source(FIRST).inventory.clone().unwrap();
        engine.set_inventory(FIRST, Inventory { finished: [(job.clone(), ended)].into(), ..inventory });
        engine.read(FIRST, reading(revision, &files));
        for id in [&job, &post] {
            engine.record_lookup(id, DirectView::Absent);
        }
        let now = start_time();
        assert_eq!(engine.decide(&job, now).action, Action::Nothing, "{brought:?} {revision}");
        assert_eq!(engine.decide(&post, now).reason, expected, "{brought:?} {revision}");
    };
    let waits = || Some(Reason::Wave(0, job.clone()));
    check(Some("r1"), "r1", waits());
    check(Some("r1"), "r2", None);
    // A record of an older version does not say it.
    check(None, "r2", waits());
}

// The inventory may have been read before the end was written to it.
#[test]
fn the_end_of_a_job_replaces_that_of_its_former_content_in_an_inventory_that_is_read_later() {
    let job = id("batch", "Job", "shop", "migrate");
    let end = |content: u32, has_failed: bool| {
        let revision = has_failed.then(|| Revision::new("r2"));
        FinishedJob { content: desired(&job, content, "migrate").hash, has_failed, revision }
    };
    let mut engine = safety::engine(&[SET], &[job.group_kind()]);
    engine.read(FIRST, reading("r2", &[("migrate", Some(desired(&job, 2, "migrate")))]));
    let inventory = engine.source(FIRST).inventory.clone().unwrap();
    for known in [end(2, true), end(1, false)] {
        let finished = [(job.clone(), known)].into();
        engine.set_inventory(FIRST, Inventory { finished, ..inventory.clone() });
    }
    let recorded = engine.source(FIRST).inventory.as_ref().unwrap();
    assert_eq!(recorded.finished[&job], end(2, true));
}

#[test]
fn no_change_is_awaited_of_what_is_left_alone_or_of_another_source() {
    let a = config("a");
    let mut harness = changed(&a);
    let mut alone = (*desired(&a, 3, "a")).clone();
    alone.traits.reconcile = ReconcilePolicy::Disabled;
    harness.read(reading("r3", &[("a", Some(Arc::new(alone)))]));
    check_unfinished(&harness, &a, None);
    let nowhere = || RepositoryIdentity::None;
    let both = [("one", SET, nowhere()), ("two", "applyset-other-v1", nowhere())];
    let mut engine = following(&both, AdoptPolicy::IfUnowned);
    engine.read(FIRST, reading("c1", &file(&a, 1)));
    engine.read(SECOND, reading("c1", &[]));
    let found = [FIRST, SECOND].map(|source| engine.unfinished_change(source, &a));
    assert_eq!(found, [Some(ChangeMilestone::Changed), None]);
}

#[test]
fn whoever_waits_is_woken_by_what_the_reason_is_about() {
    let (a, b) = (config("a"), config("b"));
    let harness = at_rest(&a);
    let check = |reason: Reason, expected: Option<WaitTopic>| {
        assert_eq!(harness.engine.wait_topic(&a, &reason), expected, "{reason:?}");
    };
    let (kind, gvk) = (GroupKind::new("apps", "Deployment"), Gvk::new("apps", "v1", "Deployment"));
    let kinds = || Some(WaitTopic::Kinds);
    check(Reason::Syncing(kind.clone()), kinds());
    check(Reason::Unobservable(kind, "denied".into(), ErrorClass::Forbidden), kinds());
    check(Reason::Unserved(gvk.clone(), [].into()), kinds());
    check(Reason::UnknownKind(gvk), kinds());
    let inventory = || Some(WaitTopic::Inventory(FIRST));
    check(Reason::Inventory("test".into()), inventory());
    check(Reason::RecordUnreadable("it cannot be read".into()), inventory());
    let object = || Some(WaitTopic::Object(b.clone()));
    check(Reason::Needs(b.clone(), DependencyState::Missing), object());
    check(Reason::UnitWorkload(b.clone()), object());
    check(Reason::Reading(b.clone()), object());
    check(Reason::Generated(b.clone()), object());
    check(Reason::KeyUnavailable("denied".into()), Some(WaitTopic::Object(key_id())));
    check(Reason::Wave(0, b.clone()), Some(WaitTopic::Waves(FIRST)));
    check(Reason::Claiming, None);
    check(Reason::OwnWrite, None);
    // Nobody wants it, so no source is waited for.
    let unwanted = [Reason::Inventory("test".into()), Reason::Wave(0, a.clone())];
    assert_eq!(unwanted.map(|reason| harness.engine.wait_topic(&b, &reason)), [None, None]);
}
