//! Dependencies by annotation, as those of a chart's post-upgrade hooks: the older content of a
//! workload does not count.

use std::time::Duration;

use super::harness::Harness;
use super::restart;
use super::world::{AuditEntry, FIRST, budget, config, desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

/// Returns the manifests of a revision, each with a name, a content and what it depends on.
fn files<'a>(
    content: u32,
    of: &[(&'a str, &ObjectId, &[ObjectId])],
) -> Vec<(&'a str, Option<SharedDesiredObject>)> {
    let file = |(name, id, before): &(&'a str, &ObjectId, &[ObjectId])| {
        let mut object = (*desired(id, content, name)).clone();
        object.depends_on = before.to_vec().into();
        (*name, Some(object.into()))
    };
    of.iter().map(file).collect()
}

fn pause(harness: &mut Harness, id: &ObjectId, paused: Option<&str>) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.rv, thing.objects_with_intents) = (rv, ObjectIntents::parse(None, paused, None));
    harness.world.announce(id);
    harness.settle();
}

fn why(harness: &mut Harness, id: &ObjectId) -> String {
    harness.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

fn changed(id: &ObjectId) -> AuditEntry {
    AuditEntry::Changed(id.clone())
}

#[test]
fn what_depends_on_a_workload_waits_for_its_new_content_and_its_rollout() {
    let (web, post) = (workload("web"), config("post"));
    let of = [("web", &web, &[][..]), ("post", &post, std::slice::from_ref(&web))];
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(1, &of)));
    harness.settle();
    pause(&mut harness, &web, Some("1-a not now"));
    harness.world.log.clear();
    harness.read(reading("r2", &files(2, &of)));
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert_eq!(why(&mut harness, &post), "needs Deployment shop/web, which is not changed yet");
    pause(&mut harness, &web, None);
    assert_eq!(harness.world.log, [changed(&web), changed(&post)]);
    assert!(harness.world.is_free());
}

#[test]
fn what_depends_on_a_workload_that_fails_is_not_changed_and_goes_with_the_next_content() {
    let (web, post) = (workload("web"), config("post"));
    let of = [("web", &web, &[][..]), ("post", &post, std::slice::from_ref(&web))];
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(1, &of)));
    harness.settle();
    harness.world.bad.insert(desired(&web, 2, "web").hash);
    harness.world.log.clear();
    harness.read(reading("r2", &files(2, &of)));
    harness.settle();
    assert_eq!(harness.world.log, [changed(&web), changed(&web)], "there and back");
    let reason = why(&mut harness, &post);
    assert!(reason.starts_with("revision r2 failed: Deployment shop/web"), "{reason}");
    harness.read(reading("r3", &files(3, &of)));
    harness.settle();
    assert_eq!(harness.world.log[2..], [changed(&web), changed(&post)]);
}

#[test]
fn what_comes_before_and_after_a_workload_goes_in_this_order() {
    let (pre, web, post) = (config("pre"), workload("web"), config("post"));
    let of = [
        ("pre", &pre, &[][..]),
        ("web", &web, std::slice::from_ref(&pre)),
        ("post", &post, std::slice::from_ref(&web)),
    ];
    for count in [2, 3] {
        let mut harness = Harness::new(1);
        harness.read(reading("r1", &files(1, &of[..count])));
        harness.settle();
        harness.world.log.clear();
        harness.read(reading("r2", &files(2, &of[..count])));
        harness.settle();
        assert_eq!(harness.world.log, [changed(&pre), changed(&web), changed(&post)][..count]);
    }
}

/// Has one slot of the budget for two workloads, one of which uses what waits for the other.
#[test]
fn a_slot_is_not_held_for_a_dependency_that_waits_for_it() {
    let (first, second, env) = (workload("a"), workload("b"), config("env"));
    for [user, other] in [[&first, &second], [&second, &first]] {
        let revision = |content| {
            let of = [("env", &env, std::slice::from_ref(other)), ("other", other, &[])];
            let mut all = files(content, &of);
            let mut uses = (*desired(user, content, "user")).clone();
            uses.needs = [env.clone()].into();
            all.push(("user", Some(uses.into())));
            all
        };
        let mut harness = Harness::new(1);
        harness.read(reading("r1", &revision(1)));
        harness.settle();
        harness.world.log.clear();
        harness.read(reading("r2", &revision(2)));
        harness.settle();
        let log = &harness.world.log;
        let position = |id: &ObjectId| log.iter().position(|entry| *entry == changed(id));
        assert!(log.len() == 3 && position(&env) < position(user), "{user} {log:?}");
        assert!(position(&env).is_some() && position(other).is_some(), "{user} {log:?}");
        assert!(harness.world.is_free());
    }
}

/// Has slots for all, so nothing but the order keeps a workload back that needs what comes last.
#[test]
fn what_a_workload_needs_waits_for_another_workload_though_the_budget_is_free() {
    let (web, post) = (workload("web"), config("post"));
    // One comes before `web` in the order of ids, and one after it.
    for user in [workload("a"), workload("z")] {
        for chained in [false, true] {
            let link = config("link");
            let revision = |content| {
                let of = [("post", &post, std::slice::from_ref(&web)), ("web", &web, &[])];
                let mut all = files(content, &of);
                let mut uses = (*desired(&user, content, "user")).clone();
                uses.needs = [if chained { link.clone() } else { post.clone() }].into();
                all.push(("user", Some(uses.into())));
                let mut between = (*desired(&link, content, "link")).clone();
                between.needs = [post.clone()].into();
                all.push(("link", Some(between.into())));
                all
            };
            let mut harness = Harness::new(3);
            harness.read(reading("r1", &revision(1)));
            harness.settle();
            pause(&mut harness, &web, Some("1-a not now"));
            harness.world.log.clear();
            harness.read(reading("r2", &revision(2)));
            harness.settle();
            assert_eq!(harness.world.log, [], "{user}");
            assert_eq!(why(&mut harness, &user), "needs Deployment shop/web, which is not changed yet");
            pause(&mut harness, &web, None);
            let log = &harness.world.log;
            let position = |id: &ObjectId| log.iter().position(|entry| *entry == changed(id));
            assert!(position(&web) < position(&post) && position(&post) < position(&user), "{log:?}");
            assert!(position(&web).is_some() && harness.world.is_free());
        }
    }
}

// The reference is an optional one, so nothing but the restart waits for it.
#[test]
fn a_workload_asks_for_no_slot_while_the_data_that_restart_it_wait_for_another_workload() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let revision = |content: u32| {
        let mut data = (*restart::env(content)).clone();
        data.depends_on = [api.clone()].into();
        let mut user = (*restart::web(1, &["tls"])).clone();
        user.needs = Box::default();
        let mut all = restart::both(data.into(), user.into()).to_vec();
        all.push(("api", Some(desired(&api, content, "api"))));
        all
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &revision(1)));
    restart::show_data(&mut harness, 1);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &revision(2)));
    harness.engine.find_units(FIRST);
    let (_, wanted) = harness.engine.entry(&web).unwrap().target_content().unwrap();
    let waits = harness.engine.needed_dependency_wait(FIRST, wanted);
    assert_eq!(waits, Some(Reason::Needs(api.clone(), DependencyState::Unchanged)));
    harness.settle();
    assert_eq!(harness.world.log, [changed(&api), changed(&env), changed(&web)]);
}

// It may go away by itself before anything is decided about it.
#[test]
fn a_claimed_workload_whose_configuration_waits_for_what_has_failed_and_is_gone_holds_no_slot() {
    let (api, env, pre, web) = (workload("api"), config("env"), config("pre"), workload("web"));
    let revision = |content: u32| {
        let mut user = (*desired(&web, content, "web")).clone();
        user.needs = [env.clone()].into();
        let mut all = files(content, &[("env", &env, std::slice::from_ref(&pre))]);
        all.push(("web", Some(user.into())));
        all
    };
    let mut harness = Harness::new(1);
    let others = files(1, &[("api", &api, &[][..]), ("pre", &pre, &[][..])]);
    harness.read(reading("r1", &[others, revision(1)].concat()));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &revision(2)));
    let content = desired(&pre, 1, "pre").hash;
    let ended = FinishedJob { content, has_failed: true, revision: None };
    harness.engine.sources[FIRST].inventory.as_mut().unwrap().finished.insert(pre.clone(), ended);
    harness.world.tick();
    harness.world.things.remove(&pre);
    harness.world.announce(&pre);
    harness.settle();
    assert_eq!(harness.decide(&env).reason, Some(Reason::Needs(pre, DependencyState::Missing)));
    assert!(harness.engine.workloads_in_flight().is_empty());
    harness.read(reading("r3", &files(3, &[("api", &api, &[][..])])));
    harness.settle();
    assert_eq!(harness.world.log, [changed(&api)]);
}

// Nobody waits for a slot of one that has none.
#[test]
fn only_a_workload_that_holds_a_slot_lets_its_data_go_before_what_they_depend_on() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let after = |content: u32| {
        let mut data = (*desired(&env, content, "env")).clone();
        data.depends_on = [api.clone()].into();
        SharedDesiredObject::from(data)
    };
    let using = |content: u32| {
        let mut user = (*desired(&web, content, "web")).clone();
        user.needs = [env.clone()].into();
        Some(SharedDesiredObject::from(user))
    };
    let mut harness = Harness::new(3);
    harness.engine = harness.fresh_with(Budget { on_failure: OnFailure::Quarantine, ..budget(3) });
    let first = [("api", Some(desired(&api, 1, "api"))), ("env", Some(after(1))), ("web", using(1))];
    harness.read(reading("r1", &first));
    harness.settle();
    harness.world.bad.insert(desired(&web, 2, "web").hash);
    harness.read(reading("r2", &[("web", using(2))]));
    harness.settle();
    assert_eq!(harness.engine.rollouts.in_flight[&web].slot, BudgetSlot::None);
    let third = [("api", Some(desired(&api, 3, "api"))), ("env", Some(after(3))), ("web", using(3))];
    harness.read(reading("r3", &third));
    harness.engine.find_units(FIRST);
    let unchanged = Reason::Needs(api.clone(), DependencyState::Unchanged);
    for (slot, expected) in [(BudgetSlot::None, Some(unchanged)), (BudgetSlot::Taken, None)] {
        harness.engine.rollouts.in_flight.get_mut(&web).unwrap().slot = slot;
        assert_eq!(harness.engine.dependency_wait(FIRST, &after(3), &api), expected, "{slot:?}");
    }
}

#[test]
fn what_depends_on_a_workload_goes_on_when_its_rollout_has_rested() {
    let (web, post) = (workload("web"), config("post"));
    let of = [("web", &web, &[][..]), ("post", &post, std::slice::from_ref(&web))];
    let mut harness = Harness::new(3);
    harness.engine = harness.fresh_with(Budget { soak: Duration::from_secs(10), ..budget(3) });
    harness.read(reading("r1", &files(1, &of)));
    harness.settle();
    harness.pass_time(Duration::from_secs(11));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &files(2, &of)));
    harness.settle();
    assert_eq!(harness.world.log, [changed(&web)]);
    assert_eq!(why(&mut harness, &post), "needs Deployment shop/web, which is rolling out");
    // Nothing else happens than that time passes.
    harness.pass_time(Duration::from_secs(11));
    harness.settle();
    assert_eq!(harness.world.log, [changed(&web), changed(&post)]);
}

#[test]
fn what_depends_on_a_workload_waits_for_its_restart() {
    let (web, post) = (workload("web"), config("post"));
    let revision = |content: u32| {
        let mut all = restart::both(restart::env(1), restart::web(1, &["tls"])).to_vec();
        all.extend(files(content, &[("post", &post, std::slice::from_ref(&web))]));
        all
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &revision(1)));
    restart::show_data(&mut harness, 1);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    harness.settle();
    pause(&mut harness, &web, Some("1-a not now"));
    harness.world.log.clear();
    restart::show_data(&mut harness, 2);
    harness.read(reading("r2", &revision(2)));
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert_eq!(why(&mut harness, &post), "needs Deployment shop/web, which is not changed yet");
}

// A repair writes the same content again, and its pods still use the former one.
#[test]
fn what_the_former_content_uses_stays_until_the_rollout_ends_though_it_is_repaired_meanwhile() {
    let (web, old, new) = (workload("web"), config("old"), config("new"));
    let using = |content: u32, need: &ObjectId| {
        let mut object = (*desired(&web, content, "web")).clone();
        object.needs = [need.clone()].into();
        Some(SharedDesiredObject::from(object))
    };
    let mut harness = Harness::new(3);
    let first = [("old", Some(desired(&old, 1, "old"))), ("web", using(1, &old))];
    harness.read(reading("r1", &first));
    harness.settle();
    harness.world.log.clear();
    let second = [("old", None), ("new", Some(desired(&new, 1, "new"))), ("web", using(2, &new))];
    harness.read(reading("r2", &second));
    let go_on = |harness: &mut Harness| {
        for _ in 0..10 {
            harness.deliver(usize::MAX);
            harness.engine.advance(harness.now);
            harness.keep_ledger();
            harness.engine.process_changes();
            for id in harness.engine.take_dirty() {
                harness.step(&id);
            }
        }
    };
    go_on(&mut harness);
    harness.world.drift(&web);
    go_on(&mut harness);
    let created = AuditEntry::Created(new);
    assert_eq!(harness.world.log, [created, changed(&web), changed(&web)]);
    harness.settle();
    assert!(!harness.world.things.contains_key(&old), "{:?}", harness.world.log);
}

#[test]
fn an_object_needs_what_it_names_and_the_namespace_that_it_is_in() {
    let namespace = |name| super::world::id("", "Namespace", "", name);
    let mut web = (*desired(&workload("web"), 1, "web")).clone();
    web.needs = [config("env")].into();
    assert!(web.has_need(&config("env")));
    assert!(web.has_need(&namespace("shop")));
    assert!(!web.has_need(&namespace("depot")));
    assert!(!web.has_need(&config("shop")));
}

// It waits for an earlier wave, and comes in the one of whoever needs it.
#[test]
fn what_waits_for_its_wave_is_due_with_what_needs_it_in_an_earlier_one() {
    let (env, web) = (config("env"), workload("web"));
    let check = |wave: i32, needs: &[ObjectId], topic: Option<WaitTopic>, expected: bool| {
        let mut wanted = [desired(&env, 1, "env"), desired(&web, 1, "web")].map(|one| (*one).clone());
        (wanted[0].wave, wanted[1].needs) = (wave, needs.into());
        let [first, second] = wanted.map(SharedDesiredObject::from);
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("env", Some(first)), ("web", Some(second))]));
        if let Some(topic) = topic.clone() {
            harness.engine.objects.wakes.begin_wait(&env, topic);
        }
        assert_eq!(harness.engine.is_due_with(&web, &env), expected, "{wave} {needs:?} {topic:?}");
    };
    let waves = || Some(WaitTopic::Waves(super::world::FIRST));
    let needs = [env.clone()];
    check(1, &needs, waves(), true);
    check(0, &needs, waves(), false);
    check(-1, &needs, waves(), false);
    check(1, &[], waves(), false);
    check(1, &needs, None, false);
    check(1, &needs, Some(WaitTopic::Waves(super::world::SECOND)), false);
}

// Else the two would wait for each other for ever.
#[test]
fn an_object_comes_in_the_wave_of_whoever_waits_for_it() {
    let (first, env, web) = (config("first"), config("env"), workload("web"));
    let check = |wave: i32, needs: &[ObjectId], expected: Option<Reason>| {
        let of_wave = |id: &ObjectId, wave: i32| {
            let mut one = (*desired(id, 1, id.name())).clone();
            one.wave = wave;
            one
        };
        let mut waiter = of_wave(&web, wave);
        waiter.needs = needs.into();
        let wanted = [of_wave(&first, 1), of_wave(&env, 2), waiter].map(SharedDesiredObject::from);
        let files = wanted.each_ref().map(|one| (one.id.name(), Some(one.clone())));
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &files));
        harness.engine.objects.wakes.begin_wait(&web, WaitTopic::Object(env.clone()));
        let found = harness.engine.dependency_blocker(super::world::FIRST, &wanted[1]);
        assert_eq!(found, expected, "{wave} {needs:?}");
    };
    let needs = [env.clone()];
    check(0, &needs, None);
    check(1, &needs, None);
    check(2, &needs, Some(Reason::Wave(1, first.clone())));
    check(3, &needs, Some(Reason::Wave(1, first.clone())));
    // It waits for another reason.
    check(0, &[], Some(Reason::Wave(0, web.clone())));
}
