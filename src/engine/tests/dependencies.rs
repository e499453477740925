//! Dependencies by annotation, as those of a chart's post-upgrade hooks: the older content of a
//! workload does not count.

use super::harness::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
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
    (thing.rv, thing.asked) = (rv, ObjectIntents::parse(None, paused, None));
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
