//! No two things wait for each other, and no failed workload keeps a slot while what is to replace
//! its pods waits.

use std::sync::Arc;

use super::harness::Harness;
use super::restart;
use super::safety;
use super::world::{FIRST, SET, World, WorldObject, config, desired, id, reading, start_time, workload};
use crate::engine::facts::entry::ApiRefusal;
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{ContentHash, ObjectId, Revision};

/// The name of a file, and its object.
type FileContent = (String, Option<SharedDesiredObject>);

/// Returns a content of an object with some of its facts changed, in a file of the same name.
fn with(id: &ObjectId, content: u32, change: impl FnOnce(&mut DesiredObject)) -> FileContent {
    let mut wanted = (*desired(id, content, id.name())).clone();
    change(&mut wanted);
    (id.name().to_owned(), Some(Arc::new(wanted)))
}

fn plain(id: &ObjectId, content: u32) -> FileContent {
    with(id, content, |_| {})
}

fn read(harness: &mut Harness, revision: &str, files: &[FileContent]) {
    let files: Vec<(&str, Option<SharedDesiredObject>)> =
        files.iter().map(|(file, wanted)| (file.as_str(), wanted.clone())).collect();
    harness.read(reading(revision, &files));
}

/// Returns the number of the content that each of these objects shows; 0 where it shows none of
/// them.
fn contents<const N: usize>(harness: &Harness, ids: [&ObjectId; N]) -> [u32; N] {
    let shown = |id: &ObjectId| -> Option<ContentHash> {
        harness.world.things.get(id)?.release.as_ref().map(|release| release.hash)
    };
    ids.map(|id| (1..10).find(|number| shown(id) == Some(desired(id, *number, "").hash)).unwrap_or(0))
}

/// Spoils a content of a workload, and goes on until its rollout has failed.
pub(super) fn fail(harness: &mut Harness, id: &ObjectId) {
    for _ in 0..200 {
        if harness.engine.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.failed.is_some()) {
            return;
        }
        harness.turn();
    }
    panic!("it never fails: {:#?}", harness.world.log);
}

/// Returns a cluster with room for one rollout, in which the second content of `web` has just
/// failed. The others of the first revision are at rest.
fn failed(first: &[FileContent], second: &[FileContent]) -> Harness {
    let mut harness = Harness::new(1);
    read(&mut harness, "r1", first);
    harness.settle();
    harness.world.bad.insert(desired(&workload("web"), 2, "").hash);
    read(&mut harness, "r2", second);
    fail(&mut harness, &workload("web"));
    harness
}

/// Has an object left alone, as somebody else.
fn opt_out(harness: &mut Harness, id: &ObjectId) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.asks, thing.rv) = (ReconcilePolicy::Disabled, rv);
    harness.world.announce(id);
}

#[test]
fn a_failed_workload_leaves_its_slot_to_what_its_newer_content_waits_for() {
    let (api, web) = (workload("api"), workload("web"));
    let later = |content| with(&web, content, |wanted| wanted.wave = 1);
    let mut harness = failed(&[plain(&api, 1), later(1)], &[later(2)]);
    read(&mut harness, "r3", &[plain(&api, 3), later(3)]);
    harness.settle();
    assert_eq!(contents(&harness, [&api, &web]), [3, 3], "{:?}", harness.world.log);
    assert!(harness.world.is_free());
}

#[test]
fn a_failed_workload_that_a_person_keeps_as_it_is_holds_no_slot() {
    type ObjectChange = fn(&mut Harness, &ObjectId);

    let (api, web) = (workload("api"), workload("web"));
    let check = |change: ObjectChange, is_replaced: bool| {
        let mut harness = failed(&[plain(&api, 1), plain(&web, 1)], &[plain(&web, 2)]);
        change(&mut harness, &web);
        let mut newer = vec![plain(&api, 3)];
        newer.extend(is_replaced.then(|| plain(&web, 3)));
        read(&mut harness, "r3", &newer);
        harness.settle();
        assert_eq!(contents(&harness, [&api, &web]), [3, 2], "{is_replaced} {:?}", harness.world.log);
        assert!(harness.engine.workloads_in_flight().is_empty(), "{is_replaced}");
    };
    let hold: ObjectChange = |harness, id| {
        let until = "t until=2999-01-01T00:00:00Z busy";
        super::orders::asks(harness, id, None, Some(until));
    };
    let pause: ObjectChange = |harness, id| super::orders::asks(harness, id, Some("1-a"), None);
    // Somebody deletes it, and it has a finalizer.
    let delete: ObjectChange = |harness, id| {
        let live = World::live(id, &harness.world.things[id]);
        let rv = ResourceVersion(harness.world.tick());
        harness.engine.observe_object(id, LiveObject { rv, deleting: true, ..live });
    };
    // A pause lets a rollback go on.
    check(pause, true);
    for is_replaced in [false, true] {
        check(hold, is_replaced);
        check(opt_out, is_replaced);
        check(delete, is_replaced);
    }
}

/// Goes on while a content is refused for good, until failed content has been judged anew.
fn settle_refusing(harness: &mut Harness, id: &ObjectId, content: ContentHash) {
    for turn in 0..400 {
        harness.now += super::world::budget(1).deadline * u32::from(turn == 200);
        for marked in harness.next_marked() {
            let decision = harness.decide(&marked);
            let is_refused =
                matches!(&decision.action, Action::Apply(apply) if apply.desired.hash == content);
            if is_refused && marked == *id {
                let why = WriteFailure::Refused("no".into(), RefusalRule::Other, None);
                let result = ActionResult::Failed(why);
                harness.engine.note_dispatch(id, &decision.action);
                harness.engine.record_result(id, &decision.action, result, harness.now);
            } else {
                drop(harness.act(&marked, decision));
            }
        }
    }
}

// The holder of the slot would wait for an object that waits for a slot.
#[test]
fn a_rollback_waits_for_no_newer_change_of_an_earlier_wave() {
    let (api, web) = (workload("api"), workload("web"));
    let later = |content| with(&web, content, |wanted| wanted.wave = 1);
    let mut harness = failed(&[plain(&api, 1), later(1)], &[later(2)]);
    read(&mut harness, "r3", &[plain(&api, 3)]);
    harness.settle();
    assert_eq!(contents(&harness, [&api, &web]), [3, 1], "{:?}", harness.world.log);
    assert!(harness.world.is_free());
}

#[test]
fn a_failed_workload_goes_back_before_those_of_earlier_waves_that_go_back_with_it() {
    let (env, canary, web) = (config("env"), workload("canary"), workload("web"));
    let using = |id: &ObjectId, content: u32, wave: i32| {
        with(id, content, |wanted| (wanted.needs, wanted.wave) = ([config("env")].into(), wave))
    };
    let files = |content| [plain(&env, content), using(&canary, content, 0), using(&web, content, 1)];
    let mut harness = failed(&files(1), &files(2));
    assert_eq!(contents(&harness, [&env, &canary, &web]), [2, 2, 2]);
    harness.settle();
    assert_eq!(contents(&harness, [&env, &canary, &web]), [1, 1, 1], "{:?}", harness.world.log);
    assert!(harness.world.is_free());
}

#[test]
fn a_rollback_does_not_wait_for_the_health_of_what_it_depends_on() {
    let (api, pre, web) = (workload("api"), config("pre"), workload("web"));
    for before in [&api, &pre] {
        let after = |content| with(&web, content, |wanted| wanted.depends_on = [before.clone()].into());
        let mut harness = failed(&[plain(before, 1), after(1)], &[after(2)]);
        let live = World::live(before, &harness.world.things[before]);
        let (rv, health) =
            (ResourceVersion(harness.world.tick()), Health::new(HealthStatus::InProgress, "it starts"));
        harness.engine.observe_object(before, LiveObject { rv, health, ..live });
        harness.settle();
        assert_eq!(contents(&harness, [&web]), [1], "{before} {:?}", harness.world.log);
    }
}

#[test]
fn a_rollback_goes_without_what_it_depends_on_where_that_is_refused() {
    let (pre, web) = (config("pre"), workload("web"));
    let after = |content| with(&web, content, |wanted| wanted.depends_on = [config("pre")].into());
    let later = |content| with(&web, content, |wanted| wanted.wave = 1);
    // Nothing but the third object connects the two of different waves.
    let link = |content| with(&config("link"), content, |wanted| wanted.needs = [config("pre")].into());
    let linked = |content| {
        let (file, wanted) = later(content);
        let mut wanted = (*wanted.unwrap()).clone();
        wanted.needs = [config("link")].into();
        (file, Some(Arc::new(wanted)))
    };
    let cases = [
        [1, 2].map(|content| vec![plain(&pre, content), after(content)]),
        [1, 2].map(|content| vec![plain(&pre, content), link(content), linked(content)]),
    ];
    for [first, second] in cases {
        let mut harness = failed(&first, &second);
        settle_refusing(&mut harness, &pre, desired(&pre, 1, "").hash);
        assert_eq!(contents(&harness, [&pre, &web]), [2, 1], "{:?}", harness.world.log);
        assert!(harness.engine.workloads_in_flight().is_empty());
    }
}

// The refused commit was taken back, and the refusal says nothing of the content before.
#[test]
fn a_rollback_waits_for_data_of_which_the_server_has_refused_another_content() {
    let (env, web) = (config("env"), workload("web"));
    let using = |content| with(&web, content, |wanted| wanted.needs = [config("env")].into());
    let mut harness = failed(&[plain(&env, 1), using(1)], &[plain(&env, 2), using(2)]);
    let refusal = ApiRefusal {
        source: FIRST,
        content: desired(&env, 3, "").hash,
        cause: RefusalCause::Message("no".into()),
        retry: None,
        rule: RefusalRule::Other,
        times: 1,
    };
    harness.engine.objects.entries.get_mut(&env).unwrap().api_refusal = Some(Box::new(refusal));
    for _ in 0..5 {
        harness.keep_ledger();
        harness.engine.process_changes();
    }
    assert_eq!(contents(&harness, [&env, &web]), [2, 2], "{:?}", harness.world.log);
    assert!(harness.engine.has_rollback_target(&web));
    let waits = harness.decide(&web).reason;
    assert_eq!(waits, Some(Reason::Needs(env.clone(), DependencyState::Unchanged)));
    harness.settle();
    assert_eq!(contents(&harness, [&env, &web]), [1, 1], "{:?}", harness.world.log);
}

#[test]
fn a_rollback_waits_for_no_newer_content_of_what_it_needs() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let using = |content| with(&web, content, |wanted| wanted.needs = [config("env")].into());
    let first = [plain(&api, 1), plain(&env, 1), using(1)];
    // It waits for a workload that waits for the slot, or for a person.
    let mut harness = failed(&first, &[using(2)]);
    let after = with(&env, 3, |wanted| wanted.depends_on = [workload("api")].into());
    read(&mut harness, "r3", &[plain(&api, 3), after]);
    harness.settle();
    assert_eq!(contents(&harness, [&api, &env, &web]), [3, 3, 1], "{:?}", harness.world.log);
    assert!(harness.world.is_free());
    let mut harness = failed(&first, &[using(2)]);
    super::orders::asks(&mut harness, &env, Some("1-a"), None);
    read(&mut harness, "r3", &[plain(&env, 3)]);
    harness.settle();
    assert_eq!(contents(&harness, [&env, &web]), [1, 1], "{:?}", harness.world.log);
}

#[test]
fn a_failed_workload_that_nobody_wants_any_more_and_that_stays_holds_no_slot() {
    let (api, web) = (workload("api"), workload("web"));
    let mut harness = failed(&[plain(&api, 1), plain(&web, 1)], &[plain(&web, 2)]);
    harness.engine.sources[FIRST].declared.prune = PrunePolicy::Off;
    read(&mut harness, "r3", &[plain(&api, 3), (web.name().to_owned(), None)]);
    harness.settle();
    assert_eq!(contents(&harness, [&api, &web]), [3, 2], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    assert!(harness.world.ledger.claims.is_empty());
}

#[test]
fn a_workload_whose_bad_data_cannot_be_taken_back_holds_no_slot() {
    let mut harness = restart::at_rest(1);
    let bad = restart::foreseen(&harness, &[("env", Some(restart::env(2)))], 1);
    restart::spoil(&mut harness, &restart::web(1, &["tls"]), bad);
    harness.read(reading("r2", &[("env", Some(restart::env(2)))]));
    settle_refusing(&mut harness, &config("env"), restart::env(1).hash);
    assert_eq!(contents(&harness, [&config("env")]), [2], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    assert!(harness.world.ledger.claims.is_empty());
}

// The event that it is gone came before the answer to its write.
#[test]
fn a_workload_that_is_deleted_while_it_is_written_and_is_wanted_no_more_holds_no_slot() {
    let (mut harness, [a, b], action) = super::wakes::restarting();
    let answer = harness.world.perform(&a, &action);
    harness.deliver(usize::MAX);
    harness.world.tick();
    harness.world.things.remove(&a);
    harness.world.announce(&a);
    harness.deliver(usize::MAX);
    read(&mut harness, "r3", &[(a.name().to_owned(), None)]);
    harness.engine.record_result(&a, &action, answer, harness.now);
    harness.settle();
    assert_eq!(contents(&harness, [&a, &b]), [0, 2], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    assert!(harness.world.is_free());
}

#[test]
fn a_claimed_workload_whose_configuration_waits_for_what_is_refused_holds_no_slot() {
    let (api, env, mid, web) = (workload("api"), config("env"), config("mid"), workload("web"));
    let needing = |id: &ObjectId, content: u32, need: &ObjectId| {
        with(id, content, |wanted| wanted.needs = [need.clone()].into())
    };
    let files = |content| [plain(&env, content), needing(&mid, content, &env), needing(&web, content, &mid)];
    let mut harness = Harness::new(1);
    read(&mut harness, "r1", &[&files(1)[..], &[plain(&api, 1)]].concat());
    harness.settle();
    read(&mut harness, "r2", &files(2));
    settle_refusing(&mut harness, &env, desired(&env, 2, "").hash);
    assert_eq!(contents(&harness, [&env, &mid, &web]), [1, 1, 1], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    read(&mut harness, "r3", &[plain(&api, 3)]);
    harness.settle();
    assert_eq!(contents(&harness, [&api]), [3], "{:?}", harness.world.log);
}

#[test]
fn data_of_which_an_older_content_was_refused_wait_for_the_slot_of_their_workload() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let using = |content| with(&web, content, |wanted| wanted.needs = [config("env")].into());
    let mut harness = Harness::new(1);
    read(&mut harness, "r1", &[plain(&api, 1), plain(&env, 1), using(1)]);
    harness.settle();
    read(&mut harness, "r2", &[plain(&env, 2), using(2)]);
    settle_refusing(&mut harness, &env, desired(&env, 2, "").hash);
    assert_eq!(contents(&harness, [&env, &web]), [1, 1], "{:?}", harness.world.log);
    read(&mut harness, "r3", &[plain(&api, 3), plain(&env, 3), using(3)]);
    for id in [&api, &env, &web, &env] {
        harness.step(id);
    }
    assert_eq!(contents(&harness, [&api, &env, &web]), [3, 1, 1], "{:?}", harness.world.log);
    let waits = harness.decide(&env).reason;
    assert_eq!(waits, Some(Reason::UnitWorkload(web.clone())));
    harness.settle();
    assert_eq!(contents(&harness, [&api, &env, &web]), [3, 3, 3], "{:?}", harness.world.log);
}

// The reference is an optional one, so nothing but the restart waits for it.
#[test]
fn data_of_a_later_wave_come_in_the_wave_of_the_workload_that_is_restarted_for_them() {
    let env = |content| {
        let mut env = (*restart::env(content)).clone();
        env.wave = 1;
        SharedDesiredObject::from(env)
    };
    let mut web = (*restart::web(1, &["tls"])).clone();
    web.needs = Box::default();
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &restart::both(env(1), web.into())));
    restart::show_data(&mut harness, 1);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    harness.settle();
    assert_eq!(contents(&harness, [&config("env"), &workload("web")]), [1, 1]);
    harness.world.log.clear();
    harness.read(reading("r2", &[("env", Some(env(2)))]));
    harness.settle();
    assert_eq!(harness.world.log, restart::wrote(&[config("env"), workload("web")]));
    assert!(harness.world.is_free());
}

#[test]
fn a_definition_of_a_later_wave_comes_in_the_wave_of_the_objects_of_its_kind() {
    let crd = id("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com");
    let widget = id("example.com", "Widget", "shop", "w");
    let revision = |name: &str, content: u32| {
        let mut defining = (*desired(&crd, content, "crd")).clone();
        (defining.defines, defining.wave) = (Some(Box::new(widget.group_kind())), 1);
        let wanted = desired(&widget, content, "w");
        reading(name, &[("crd", Some(defining.into())), ("w", Some(wanted))])
    };
    let now = start_time();
    let check = |engine: &mut Engine, why: &str| {
        let waits = engine.decide(&widget, now);
        assert!(waits.reason.is_some(), "{why}: {waits:?}");
        let decision = engine.decide(&crd, now);
        assert!(matches!(decision.action, Action::Apply(_)), "{why}: {decision:?}");
    };
    // The server does not have the kind yet.
    let mut engine = safety::engine(&[SET], &[crd.group_kind()]);
    engine.read(FIRST, revision("r1", 1));
    engine.record_lookup(&crd, DirectView::Absent);
    check(&mut engine, "new");
    let mut engine = safety::engine(&[SET], &[crd.group_kind(), widget.group_kind()]);
    engine.read(FIRST, revision("r1", 1));
    for (rv, shown) in [(1, &crd), (2, &widget)] {
        let thing = WorldObject::settled(desired(shown, 1, "").hash, "r1", rv);
        engine.observe_object(shown, World::live(shown, &thing));
    }
    engine.read(FIRST, revision("r2", 2));
    check(&mut engine, "changed");
}

// Its content cannot be read any more, and is there: nothing is written that others would see.
#[test]
fn whoever_waits_for_a_rollback_is_asked_again_where_nothing_is_to_be_written_for_it() {
    let (a, b) = (config("a"), config("b"));
    let needing = |content| with(&b, content, |wanted| wanted.needs = [config("a")].into());
    let mut harness = Harness::new(1);
    read(&mut harness, "r1", &[plain(&a, 1), needing(1)]);
    harness.settle();
    read(&mut harness, "r2", &[plain(&a, 2), needing(2)]);
    let good = ContentRef { hash: desired(&a, 1, "").hash, revision: Revision::new("r1") };
    let (content, rollback_target) = (Some(desired(&a, 2, "").hash), RollbackTarget::Content(good));
    let member = UnitMember { content, rollback_target, restarted: None };
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r2"),
        members: [(a.clone(), member)].into(),
    };
    let rejections = vec![Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() }];
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_inventory(FIRST, Inventory { rejections, ..known });
    let waits = harness.decide(&b);
    assert_eq!(waits.reason, Some(Reason::Needs(a.clone(), DependencyState::RollingBack)), "{waits:?}");
    harness.engine.take_dirty();
    harness.history.clear();
    harness.settle();
    assert_eq!(contents(&harness, [&a, &b]), [1, 2], "{:?}", harness.world.log);
}

#[test]
fn a_job_that_has_succeeded_and_is_gone_holds_up_nobody() {
    let (job, post) = (id("batch", "Job", "shop", "migrate"), config("post"));
    let waiting = |order: &str, content: u32| {
        let mut later = (*desired(&post, content, "post")).clone();
        match order {
            "wave" => later.wave = 1,
            _ => later.depends_on = [job.clone()].into(),
        }
        let mut wanted = (*desired(&job, 1, "migrate")).clone();
        wanted.traits.lifetime = ObjectLifetime::AfterFinish;
        [("migrate", wanted), ("post", later)].map(|(file, one)| (file, Some(SharedDesiredObject::from(one))))
    };
    let now = start_time();
    let check = |status: HealthStatus, is_restarted: bool, order: &str, expected: bool| {
        let start = || safety::engine(&[SET], &[job.group_kind(), post.group_kind()]);
        let shown =
            |id: &ObjectId, rv| World::live(id, &WorldObject::settled(desired(id, 1, "").hash, "r1", rv));
        let mut engine = start();
        engine.read(FIRST, reading("r1", &waiting(order, 1)));
        engine.observe_object(&post, shown(&post, 1));
        let health = Health::new(status, "");
        engine.observe_object(&job, LiveObject { finished: true, health, ..shown(&job, 2) });
        engine.observe_absence(&job);
        if is_restarted {
            let inventory = engine.source(FIRST).inventory.clone().unwrap();
            engine = start();
            engine.set_inventory(FIRST, inventory);
            engine.observe_object(&post, shown(&post, 1));
        }
        engine.read(FIRST, reading("r2", &waiting(order, 2)));
        engine.record_lookup(&job, DirectView::Absent);
        engine.decide(&job, now);
        let decision = engine.decide(&post, now);
        let is_written = matches!(decision.action, Action::Apply(_));
        assert_eq!(is_written, expected, "{status:?} {is_restarted} {order}: {decision:?}");
    };
    for is_restarted in [false, true] {
        check(HealthStatus::Current, is_restarted, "annotation", true);
        check(HealthStatus::Current, is_restarted, "wave", true);
        check(HealthStatus::Failed, is_restarted, "annotation", false);
    }
}

// It goes away in time, and whoever waits for it would take it for one that has succeeded.
#[test]
fn a_job_that_had_failed_before_its_source_or_inventory_was_read_is_known_to_have_failed() {
    let job = id("batch", "Job", "shop", "migrate");
    let mut wanted = (*desired(&job, 1, "migrate")).clone();
    wanted.traits.lifetime = ObjectLifetime::AfterFinish;
    for is_inventory_last in [false, true] {
        let mut engine = safety::engine(&[SET], &[job.group_kind()]);
        let known = engine.source(FIRST).inventory.clone().unwrap();
        if is_inventory_last {
            engine.sources[FIRST].inventory = None;
        }
        let shown = World::live(&job, &WorldObject::settled(wanted.hash, "r1", 2));
        let health = Health::new(HealthStatus::Failed, "");
        engine.observe_object(&job, LiveObject { finished: true, health, ..shown });
        engine.read(FIRST, reading("r1", &[("migrate", Some(wanted.clone().into()))]));
        if is_inventory_last {
            // The record of an older version does not say how it has ended.
            let ended = FinishedJob { content: wanted.hash, has_failed: false, revision: None };
            let finished = [(job.clone(), ended)].into();
            engine.set_inventory(FIRST, Inventory { finished, ..known });
        }
        let inventory = engine.source(FIRST).inventory.clone().unwrap();
        assert!(inventory.finished[&job].has_failed, "{is_inventory_last}");
    }
}

#[test]
fn a_failed_workload_whose_newer_content_is_refused_for_good_goes_back() {
    let (api, web) = (workload("api"), workload("web"));
    let mut harness = failed(&[plain(&api, 1), plain(&web, 1)], &[plain(&web, 2)]);
    read(&mut harness, "r3", &[plain(&api, 3), plain(&web, 3)]);
    settle_refusing(&mut harness, &web, desired(&web, 3, "").hash);
    assert_eq!(contents(&harness, [&api, &web]), [3, 1], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    let cause = &harness.world.rejections[0].cause;
    assert!(cause.starts_with("revision r2 failed") && cause.ends_with("is refused: no"), "{cause}");
    read(&mut harness, "r4", &[plain(&web, 4)]);
    harness.settle();
    assert_eq!(contents(&harness, [&api, &web]), [3, 4], "{:?}", harness.world.log);
}

#[test]
fn a_failed_workload_whose_newer_content_needs_what_is_refused_goes_back_with_its_data() {
    let (env, web) = (config("env"), workload("web"));
    let using = |content| with(&web, content, |wanted| wanted.needs = [config("env")].into());
    let files = |content| [plain(&env, content), using(content)];
    let mut harness = failed(&files(1), &files(2));
    read(&mut harness, "r3", &files(3));
    settle_refusing(&mut harness, &env, desired(&env, 3, "").hash);
    assert_eq!(contents(&harness, [&env, &web]), [1, 1], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
}

// Neither of the contents that they go back to depends on the other.
#[test]
fn objects_that_wait_for_each_other_go_back_when_a_person_aborts_them() {
    let (pre, web) = (config("pre"), workload("web"));
    let mut harness = failed(&[plain(&pre, 1), plain(&web, 1)], &[plain(&web, 2)]);
    let after =
        |id: &ObjectId, before: &ObjectId| with(id, 3, |one| one.depends_on = [before.clone()].into());
    read(&mut harness, "r3", &[after(&pre, &web), after(&web, &pre)]);
    harness.settle();
    assert_eq!(contents(&harness, [&pre, &web]), [1, 2], "{:?}", harness.world.log);
    super::orders::order(&mut harness, &web, "1-a abort");
    assert_eq!(contents(&harness, [&pre, &web]), [1, 1], "{:?}", harness.world.log);
    // They are asked for as before once a person retries.
    super::orders::order(&mut harness, &web, "2-b retry");
    let reason = harness.decide(&web).reason.map(|reason| reason.to_string()).unwrap_or_default();
    assert!(reason.contains("dependency cycle"), "{reason}");
}

#[test]
fn a_claimed_workload_that_needs_an_object_of_somebody_else_holds_no_slot() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let mut harness = Harness::new(1);
    read(&mut harness, "r1", &[plain(&api, 1), plain(&web, 1)]);
    harness.settle();
    let rv = harness.world.tick();
    let theirs = WorldObject::settled(desired(&env, 1, "").hash, "r1", rv);
    let theirs = WorldObject { foreign: true, labelled: false, release: None, ..theirs };
    harness.world.things.insert(env.clone(), theirs);
    let using = with(&web, 2, |wanted| wanted.needs = [config("env")].into());
    read(&mut harness, "r2", &[plain(&env, 2), using]);
    harness.settle();
    assert_eq!(contents(&harness, [&env, &web]), [0, 1], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    assert!(harness.world.ledger.claims.is_empty());
    read(&mut harness, "r3", &[plain(&api, 3)]);
    harness.settle();
    assert_eq!(contents(&harness, [&api]), [3], "{:?}", harness.world.log);
}

#[test]
fn what_waits_for_a_workload_to_begin_goes_on_where_that_is_to_be_left_alone() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let using = |content| with(&web, content, |wanted| wanted.needs = [config("env")].into());
    let files = |content| [plain(&api, content), plain(&env, content), using(content)];
    let mut harness = Harness::new(1);
    read(&mut harness, "r1", &files(1));
    harness.settle();
    read(&mut harness, "r2", &files(2));
    for id in [&api, &env, &web, &env] {
        harness.step(id);
    }
    assert_eq!(contents(&harness, [&api, &env, &web]), [2, 1, 1], "{:?}", harness.world.log);
    let waits = harness.decide(&env).reason;
    assert_eq!(waits, Some(Reason::UnitWorkload(web.clone())));
    opt_out(&mut harness, &web);
    harness.settle();
    assert_eq!(contents(&harness, [&api, &env, &web]), [2, 2, 1], "{:?}", harness.world.log);
    assert!(harness.world.is_free());
}

#[test]
fn a_claimed_workload_whose_configuration_waits_for_what_has_failed_holds_no_slot() {
    let (api, env, pre, web) = (workload("api"), config("env"), config("pre"), workload("web"));
    let after = |content| with(&env, content, |wanted| wanted.depends_on = [config("pre")].into());
    let using = |content| with(&web, content, |wanted| wanted.needs = [config("env")].into());
    let mut harness = Harness::new(1);
    read(&mut harness, "r1", &[plain(&api, 1), plain(&pre, 1), after(1), using(1)]);
    harness.settle();
    read(&mut harness, "r2", &[after(2), using(2)]);
    let live = World::live(&pre, &harness.world.things[&pre]);
    let (rv, health) =
        (ResourceVersion(harness.world.tick()), Health::new(HealthStatus::Failed, "it failed"));
    harness.engine.observe_object(&pre, LiveObject { rv, health, ..live });
    harness.settle();
    assert_eq!(contents(&harness, [&env, &web]), [1, 1], "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    read(&mut harness, "r3", &[plain(&api, 3)]);
    harness.settle();
    assert_eq!(contents(&harness, [&api]), [3], "{:?}", harness.world.log);
}
