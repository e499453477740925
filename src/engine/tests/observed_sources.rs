//! A source with `observe: true` writes nothing, whatever is decided about its objects. Nor is a
//! pod evicted for an object that is left alone.

use std::time::Duration;

use serde_json::json;

use super::daemon_set_steps::{DaemonSetWorld, DisruptionBudgets, agent, content};
use super::harness::Harness;
use super::world::{AuditEntry, FIRST, budget, config, desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

/// Returns `web`, which may be deleted and created again.
fn web(content: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.traits.recreate = RecreatePolicy::Allowed;
    web.into()
}

/// Returns a cluster in which all of r1 was released.
fn at_rest() -> Harness {
    let mut harness = Harness::new(3);
    let maps = ["a", "b"].map(|name| (name, Some(desired(&config(name), 1, name))));
    harness.read(reading("r1", &[maps.to_vec(), vec![("web", Some(web(1)))]].concat()));
    harness.settle();
    harness.world.log.clear();
    harness
}

/// Returns the writes, in words.
fn writes(harness: &Harness) -> Vec<String> {
    let words = |entry: &AuditEntry| match entry {
        AuditEntry::Created(id) => format!("created {id}"),
        AuditEntry::Changed(id) => format!("changed {id}"),
        AuditEntry::Deleted(id, _) => format!("deleted {id}"),
        AuditEntry::Nothing(id) => format!("nothing {id}"),
    };
    harness.world.log.iter().map(words).collect()
}

/// Checks that a source writes this for what happens, and does not where it is observed.
fn check(happens: impl Fn(&mut Harness), id: &ObjectId, expected: &[&str]) {
    for allowed in [SourceWrites::Allowed, SourceWrites::Observed] {
        let mut harness = at_rest();
        happens(&mut harness);
        harness.engine.sources[FIRST].declared.writes = allowed;
        harness.settle();
        if allowed == SourceWrites::Allowed {
            assert_eq!(writes(&harness), expected);
        } else {
            assert_eq!(writes(&harness), [""; 0], "not {expected:?}");
            assert_eq!(harness.decide(id).reason, Some(Reason::Observed), "not {expected:?}");
            assert!(harness.engine.workloads_in_flight().is_empty(), "not claimed: {expected:?}");
        }
    }
}

#[test]
fn what_is_only_observed_is_neither_made_nor_changed_nor_repaired_nor_deleted() {
    let (a, c) = (config("a"), config("c"));
    check(
        |harness| harness.read(reading("r2", &[("c", Some(desired(&config("c"), 1, "c")))])),
        &c,
        &["created ConfigMap shop/c"],
    );
    check(
        |harness| harness.read(reading("r2", &[("a", Some(desired(&config("a"), 2, "a")))])),
        &a,
        &["changed ConfigMap shop/a"],
    );
    check(
        |harness| harness.read(reading("r2", &[("web", Some(web(2)))])),
        &workload("web"),
        &["changed Deployment shop/web"],
    );
    check(|harness| harness.world.drift(&config("a")), &a, &["changed ConfigMap shop/a"]);
    check(|harness| harness.read(reading("r2", &[("a", None)])), &a, &["deleted ConfigMap shop/a"]);
    // It may be wanted still, and is gone.
    check(
        |harness| {
            let incomplete_reason = Some("a.yaml: broken".into());
            harness.read(SourceReading { incomplete_reason, ..reading("r2", &[("a", None)]) });
            harness.world.things.remove(&config("a"));
            harness.world.announce(&config("a"));
        },
        &a,
        &["created ConfigMap shop/a"],
    );
}

#[test]
fn what_is_only_observed_is_not_deleted_to_be_created_again() {
    let web_id = workload("web");
    check(
        |harness| {
            harness.read(reading("r2", &[("web", Some(web(2)))]));
            let action = harness.decide(&workload("web")).action;
            let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
            harness.engine.record_result(&workload("web"), &action, ActionResult::Failed(why), harness.now);
            harness.engine.withdraw(&workload("web"));
            harness.keep_ledger();
        },
        &web_id,
        &["deleted Deployment shop/web", "created Deployment shop/web"],
    );
}

/// Returns a content of the DaemonSet, whose first step is of two nodes.
fn stepping(number: u32) -> SharedDesiredObject {
    content(number, &json!({"steps": "2", "step-promote": "manual"}))
}

/// Returns a DaemonSet of four nodes in the first step of its newer content.
fn in_a_step(disruption: DisruptionBudgets) -> DaemonSetWorld {
    let tight = Budget { max_unavailable: PodAmount::Pods(1), ..budget(3) };
    let mut fleet = DaemonSetWorld::new(4, tight, &stepping(1));
    fleet.disruption = disruption;
    fleet.commit("r2", &stepping(2));
    fleet.settle();
    fleet
}

#[test]
fn no_pod_is_evicted_for_what_is_only_observed() {
    let mut fleet = in_a_step(DisruptionBudgets::Forbidden);
    assert_eq!(fleet.shown(), "on-delete step=1");
    fleet.harness.engine.sources[FIRST].declared.writes = SourceWrites::Observed;
    fleet.disruption = DisruptionBudgets::Allowed;
    fleet.pass(Duration::from_hours(1));
    assert!(fleet.log.is_empty(), "{:?}", fleet.log);
    assert!(fleet.harness.world.rejections.is_empty(), "nobody tried");
    fleet.harness.engine.sources[FIRST].declared.writes = SourceWrites::Allowed;
    fleet.settle();
    assert_eq!(fleet.log, ["node-1".into(), "node-2".into()]);
}

/// Has an annotation leave the DaemonSet alone.
fn leave_alone(fleet: &mut DaemonSetWorld) {
    let rv = fleet.harness.world.tick();
    let thing = fleet.harness.world.things.get_mut(&agent()).unwrap();
    (thing.asks, thing.rv) = (ReconcilePolicy::Disabled, rv);
    fleet.harness.world.announce(&agent());
}

/// Takes the DaemonSet's kind out of what its source is allowed to write.
fn allow_other_kinds(fleet: &mut DaemonSetWorld) {
    let kinds = Some(["ConfigMap".parse().unwrap()].into());
    fleet.harness.engine.sources[FIRST].declared.allow = AllowList { kinds, ..AllowList::default() }.into();
}

#[test]
fn a_step_that_nobody_may_go_on_with_does_not_fail() {
    let check = |happens: &dyn Fn(&mut DaemonSetWorld)| {
        let mut fleet = in_a_step(DisruptionBudgets::Once);
        assert_eq!(fleet.done(&stepping(2)), ["node-1"]);
        happens(&mut fleet);
        fleet.disruption = DisruptionBudgets::Allowed;
        for _ in 0..60 {
            fleet.pass(Duration::from_mins(1));
        }
        assert_eq!(fleet.log, ["node-1".into()]);
        assert!(fleet.harness.world.rejections.is_empty(), "nobody tried");
    };
    check(&|fleet| fleet.harness.engine.sources[FIRST].declared.writes = SourceWrites::Observed);
    check(&leave_alone);
    check(&allow_other_kinds);
}

#[test]
fn no_pod_is_evicted_for_what_is_left_alone_or_no_longer_allowed() {
    let check = |happens: &dyn Fn(&mut DaemonSetWorld)| {
        let mut fleet = in_a_step(DisruptionBudgets::Forbidden);
        happens(&mut fleet);
        fleet.disruption = DisruptionBudgets::Allowed;
        fleet.pass(Duration::from_hours(1));
        assert!(fleet.harness.world.rejections.is_empty(), "nobody tried");
        fleet.log
    };
    assert_eq!(check(&|_| {}), ["node-1".into(), "node-2".into()]);
    let none: [std::sync::Arc<str>; 0] = [];
    assert_eq!(check(&leave_alone), none);
    assert_eq!(check(&allow_other_kinds), none);
}
