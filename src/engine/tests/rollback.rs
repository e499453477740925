//! Former states that come back: rights, an older state of the cluster, a version that is overtaken
//! again and again.

use std::time::Duration;

use super::harness::Harness;
use super::world::{FIRST, World, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{GroupKind, ObjectId};

fn maps() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

/// Returns the decision now, after all questions are answered.
fn apply(harness: &mut Harness, id: &ObjectId) -> (Action, ApplyRequest) {
    loop {
        match harness.decide(id).action {
            Action::Apply(apply) => return (Action::Apply(apply.clone()), apply),
            Action::Nothing => panic!("nothing is to be done: {:?}", harness.decide(id)),
            _ => drop(harness.step(id)),
        }
    }
}

#[test]
fn a_cluster_that_went_back_to_an_older_state_is_seen_as_it_is() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    let old = harness.world.things[&a].clone();
    for content in 2..5 {
        harness.read(reading(&format!("r{content}"), &[("a", Some(desired(&a, content, "a")))]));
        harness.settle();
    }
    // A restore of etcd: the same incarnation in an older version.
    harness.world.things.insert(a.clone(), old.clone());
    harness.world.log.clear();
    // Outside of a list such a view is only late.
    harness.engine.observe_object(&a, World::live(&a, &old));
    harness.settle();
    assert!(harness.world.log.is_empty(), "{:?}", harness.world.log);
    harness.engine.list_started(&maps());
    harness.engine.observe_object(&a, World::live(&a, &old));
    harness.engine.list_complete(&maps());
    harness.settle();
    assert_eq!(harness.world.log.len(), 1, "{:?}", harness.world.log);
    let newest = desired(&a, 4, "a");
    assert_eq!(harness.world.things[&a].release.as_ref().map(|release| release.hash), Some(newest.hash));
}

#[test]
fn a_repair_of_a_pod_template_is_not_bound_to_a_version_that_others_overtake() {
    let web = workload("web");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
    harness.settle();
    harness.world.drift(&web);
    harness.deliver(usize::MAX);
    let (_, repair) = apply(&mut harness, &web);
    assert_eq!((repair.purpose, repair.restarts), (ApplyPurpose::Repair, RestartRisk::Possible));
    assert!(matches!(repair.precondition, Precondition::Uid(_)), "{:?}", repair.precondition);
    // A new content is: whether it may go now was decided on what was seen.
    harness.read(reading("r2", &[("web", Some(desired(&web, 2, "web")))]));
    let (_, change) = apply(&mut harness, &web);
    assert!(matches!(change.precondition, Precondition::Exact(..)), "{:?}", change.precondition);
}

#[test]
fn what_the_user_may_not_write_is_tried_again_as_soon_as_he_may_write_its_like() {
    let (a, b, web) = (config("a"), config("b"), workload("web"));
    let mut harness = Harness::new(3);
    let files = [&a, &b, &web].map(|id| (id.name().to_owned(), desired(id, 1, id.name())));
    let files: Vec<_> = files.iter().map(|(name, object)| (name.as_str(), Some(object.clone()))).collect();
    harness.read(reading("r1", &files));
    for id in [&a, &b, &web] {
        let (action, _) = apply(&mut harness, id);
        let why = WriteFailure::Refused("no".into(), RefusalRule::Rights, Some(Duration::from_mins(5)));
        harness.engine.record_result(id, &action, ActionResult::Failed(why), harness.now);
    }
    harness.settle();
    assert_eq!((harness.world.log.len(), harness.engine.count_denied()), (0, 3));
    // The role was granted, and the first of them is tried again.
    harness.pass_time(Duration::from_mins(4));
    let why = WriteFailure::Refused("no".into(), RefusalRule::Rights, Some(Duration::ZERO));
    let desired = desired(&a, 1, "a");
    let action = Action::Apply(ApplyRequest {
        desired,
        source: FIRST,
        revision: crate::object::Revision::new("r1"),
        seal: None,
        precondition: Precondition::Absent,
        decided_on: None,
        variant: ApplyVariant::PLAIN,
        purpose: ApplyPurpose::Create,
        restarts: RestartRisk::Absent,
    });
    harness.engine.record_result(&a, &action, ActionResult::Failed(why), harness.now);
    harness.engine.mark_dirty(&a);
    harness.settle();
    assert!(harness.world.things.contains_key(&a) && harness.world.things.contains_key(&b));
    assert!(!harness.world.things.contains_key(&web), "another kind is another right");
    assert_eq!(harness.engine.count_denied(), 1);
}

#[test]
fn what_was_pruned_and_is_there_again_in_an_older_version_is_pruned_again() {
    let (a, b) = (config("a"), config("b"));
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a"))), ("b", Some(desired(&b, 1, "b")))]));
    harness.settle();
    let old = harness.world.things[&a].clone();
    harness.read(reading("r2", &[("a", None)]));
    // The watch reports the deletion before its answer does.
    let action = loop {
        harness.engine.process_changes();
        match harness.decide(&a).action {
            action @ Action::Delete(..) => break action,
            _ => drop(harness.step(&a)),
        }
    };
    harness.world.things.remove(&a);
    harness.engine.observe_absence(&a);
    harness.engine.record_result(&a, &action, ActionResult::Deleted, harness.now);
    harness.world.things.insert(a.clone(), old.clone());
    harness.engine.list_started(&maps());
    for (id, thing) in harness.world.things.clone() {
        harness.engine.observe_object(&id, World::live(&id, &thing));
    }
    harness.engine.list_complete(&maps());
    harness.settle();
    harness.pass_time(WRITE_ECHO_TIMEOUT);
    harness.engine.mark_all();
    harness.settle();
    assert!(!harness.world.things.contains_key(&a), "{:?}", harness.world.log);
    assert!(harness.world.things.contains_key(&b));
}
