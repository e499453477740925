//! Former states that come back: rights, an older state of the cluster, a version that is overtaken
//! again and again.

use std::time::Duration;

use super::rig::Harness;
use super::world::{World, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{GroupKind, ObjectId};

fn maps() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

/// Returns the decision now, after all questions are answered.
fn apply(rig: &mut Harness, id: &ObjectId) -> (Action, ApplyRequest) {
    loop {
        match rig.decide(id).action {
            Action::Apply(apply) => return (Action::Apply(apply.clone()), apply),
            Action::Nothing => panic!("nothing is to be done: {:?}", rig.decide(id)),
            _ => drop(rig.step(id)),
        }
    }
}

#[test]
fn a_cluster_that_went_back_to_an_older_state_is_seen_as_it_is() {
    let a = config("a");
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    rig.settle();
    let old = rig.world.things[&a].clone();
    for content in 2..5 {
        rig.read(reading(&format!("r{content}"), &[("a", Some(desired(&a, content, "a")))]));
        rig.settle();
    }
    // A restore of etcd: the same incarnation in an older version.
    rig.world.things.insert(a.clone(), old.clone());
    rig.world.log.clear();
    // Outside of a list such a view is only late.
    rig.engine.seen(&a, World::live(&a, &old));
    rig.settle();
    assert!(rig.world.log.is_empty(), "{:?}", rig.world.log);
    rig.engine.list_started(&maps());
    rig.engine.seen(&a, World::live(&a, &old));
    rig.engine.list_complete(&maps());
    rig.settle();
    assert_eq!(rig.world.log.len(), 1, "{:?}", rig.world.log);
    let newest = desired(&a, 4, "a");
    assert_eq!(rig.world.things[&a].release.as_ref().map(|release| release.hash), Some(newest.hash));
}

#[test]
fn a_repair_of_a_pod_template_is_not_bound_to_a_version_that_others_overtake() {
    let web = workload("web");
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
    rig.settle();
    let rv = rig.world.tick();
    let thing = rig.world.things.get_mut(&web).unwrap();
    (thing.drifted, thing.rv, thing.shape) = (true, rv, rv);
    rig.world.announce(&web);
    rig.deliver(usize::MAX);
    let (_, repair) = apply(&mut rig, &web);
    assert_eq!((repair.purpose, repair.restarts), (ApplyPurpose::Repair, RestartRisk::Maybe));
    assert!(matches!(repair.guard, Precondition::Uid(_)), "{:?}", repair.guard);
    // A new content is: whether it may go now was decided on what was seen.
    rig.read(reading("r2", &[("web", Some(desired(&web, 2, "web")))]));
    let (_, change) = apply(&mut rig, &web);
    assert!(matches!(change.guard, Precondition::Exact(..)), "{:?}", change.guard);
}

#[test]
fn what_the_user_may_not_write_is_tried_again_as_soon_as_he_may_write_its_like() {
    let (a, b, web) = (config("a"), config("b"), workload("web"));
    let mut rig = Harness::new(3);
    let files = [&a, &b, &web].map(|id| (id.name().to_owned(), desired(id, 1, id.name())));
    let files: Vec<_> = files.iter().map(|(name, object)| (name.as_str(), Some(object.clone()))).collect();
    rig.read(reading("r1", &files));
    for id in [&a, &b, &web] {
        let (action, _) = apply(&mut rig, id);
        let why = WriteFailure::Refused("no".into(), RefusalRule::Rights, Some(Duration::from_mins(5)));
        rig.engine.outcome(id, &action, ActionResult::Failed(why), rig.now);
    }
    rig.settle();
    assert_eq!((rig.world.log.len(), rig.engine.denied()), (0, 3));
    // The role was granted, and the first of them is tried again.
    rig.pass_time(Duration::from_mins(4));
    let why = WriteFailure::Refused("no".into(), RefusalRule::Rights, Some(Duration::ZERO));
    let want = desired(&a, 1, "a");
    let action = Action::Apply(ApplyRequest {
        want,
        source: 0,
        revision: crate::object::Revision::new("r1"),
        seal: None,
        guard: Precondition::Absent,
        seen: None,
        form: ApplyVariant::PLAIN,
        purpose: ApplyPurpose::Create,
        restarts: RestartRisk::No,
    });
    rig.engine.outcome(&a, &action, ActionResult::Failed(why), rig.now);
    rig.engine.mark(&a);
    rig.settle();
    assert!(rig.world.things.contains_key(&a) && rig.world.things.contains_key(&b));
    assert!(!rig.world.things.contains_key(&web), "another kind is another right");
    assert_eq!(rig.engine.denied(), 1);
}

#[test]
fn what_was_pruned_and_is_there_again_in_an_older_version_is_pruned_again() {
    let (a, b) = (config("a"), config("b"));
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &[("a", Some(desired(&a, 1, "a"))), ("b", Some(desired(&b, 1, "b")))]));
    rig.settle();
    let old = rig.world.things[&a].clone();
    rig.read(reading("r2", &[("a", None)]));
    // The watch tells of the deletion before its answer does.
    let action = loop {
        rig.engine.settle();
        match rig.decide(&a).action {
            action @ Action::Delete(..) => break action,
            _ => drop(rig.step(&a)),
        }
    };
    rig.world.things.remove(&a);
    rig.engine.gone(&a);
    rig.engine.outcome(&a, &action, ActionResult::Deleted, rig.now);
    rig.world.things.insert(a.clone(), old.clone());
    rig.engine.list_started(&maps());
    for (id, thing) in rig.world.things.clone() {
        rig.engine.seen(&id, World::live(&id, &thing));
    }
    rig.engine.list_complete(&maps());
    rig.settle();
    rig.pass_time(ECHO);
    rig.engine.mark_all();
    rig.settle();
    assert!(!rig.world.things.contains_key(&a), "{:?}", rig.world.log);
    assert!(rig.world.things.contains_key(&b));
}
