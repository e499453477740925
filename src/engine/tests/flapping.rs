//! Pods of a step that are Ready and unready in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::harness::Harness;
use super::pods::{self, pod};
use super::world::{desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

const SECOND: Duration = Duration::from_secs(1);

fn web(content: u32, annotations: &serde_json::Value) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": annotations}, "spec": {"replicas": 3}});
    web.steps = Steps::of(&deployment).map(Box::new);
    assert!(web.steps.is_some());
    Arc::new(web)
}

/// Returns a workload in its first step, with one new pod.
fn in_a_step(annotations: &serde_json::Value) -> Harness {
    let mut harness = Harness::new(1);
    harness.engine = harness.fresh_with(Budget { deadline: 10 * SECOND, ..super::world::budget(1) });
    let id = workload("web");
    harness.read(reading("r1", &[("web", Some(web(1, annotations)))]));
    harness.settle();
    harness.read(reading("r2", &[("web", Some(web(2, annotations)))]));
    for _ in 0..20 {
        harness.engine.process_changes();
        harness.step(&id);
        harness.keep_ledger();
        if harness.world.things[&id]
            .release
            .as_ref()
            .is_some_and(|release| release.hash == web(2, annotations).hash)
        {
            break;
        }
    }
    assert!(matches!(
        harness.world.things[&id].shown,
        RolloutOverlayState::Overlaid(RolloutOverlay::Surge { pods: 1, step: 1 })
    ));
    harness.deliver(usize::MAX);
    harness
}

fn observe_ready(harness: &mut Harness, id: &ObjectId, ready: Option<Instant>) {
    let pod = ready.map_or_else(|| pod("web-1", "new"), |since| pods::ready("web-1", "new", since));
    observe(harness, id, &[pod]);
}

fn observe(harness: &mut Harness, id: &ObjectId, pods: &[PodFacts]) {
    let rv = harness.engine.informer_object(id).unwrap().rv;
    let pods = WorkloadPods {
        rv,
        newest: Some("new".into()),
        current: None,
        pods: pods.into(),
        sets: Box::default(),
        last_failed: None,
        creation_failure: None,
    };
    harness.engine.record_pods(id, pods);
    harness.engine.advance(harness.now);
}

/// Returns after how many seconds it fails, when its pod is Ready in every other second from the
/// beginning to this one.
fn fails_after(harness: &mut Harness, flaps: u64) -> Option<u64> {
    let (id, mut steady) = (workload("web"), None);
    for second in 0..60 {
        if second == flaps {
            steady = Some(harness.now);
        }
        let ready = (second % 2 == 1).then_some(harness.now);
        observe_ready(harness, &id, steady.or(ready));
        if !harness.engine.take_failed().is_empty() {
            return Some(second);
        }
        harness.pass_time(SECOND);
        harness.engine.advance(harness.now);
    }
    None
}

#[test]
fn a_step_has_the_time_of_its_soak_beside_the_deadline() {
    let soak = |time: &str| json!({"rhumb.dev/steps": "1", "rhumb.dev/step-soak": time});
    assert_eq!(fails_after(&mut in_a_step(&soak("3s")), u64::MAX), Some(13));
    assert_eq!(fails_after(&mut in_a_step(&soak("20s")), u64::MAX), Some(30));
    // Pods that are Ready in time are waited for, however long they are to be so.
    assert_eq!(fails_after(&mut in_a_step(&soak("20s")), 9), None);
    assert_eq!(fails_after(&mut in_a_step(&soak("50s")), 40), None);
}

#[test]
fn a_rollout_without_progress_names_its_oldest_pod_that_is_not_ready() {
    let id = workload("web");
    let mut harness = in_a_step(&json!({"rhumb.dev/steps": "1"}));
    let unready =
        |name: &str, revision: &str, why: &str| PodFacts { unready: Some(why.into()), ..pod(name, revision) };
    let pods = [
        unready("web-0", "old", "it has not started yet"),
        PodFacts { terminating: true, ..unready("web-1", "new", "it has not started yet") },
        unready("web-2", "new", "container c is running but not ready"),
        unready("web-3", "new", "it has not started yet"),
    ];
    observe(&mut harness, &id, &pods);
    harness.pass_time(10 * SECOND);
    harness.engine.advance(harness.now);
    let failed = harness.engine.take_failed();
    // The Events of the pod say more, as those of the workload do.
    let workload = harness.engine.informer_object(&id).unwrap().uid.clone();
    assert_eq!(failed[&id], [Uid("web-2".into()), workload]);
    harness.engine.propose_rollout_rejection(&id, &[]);
    harness.sync_inventories();
    let cause = &harness.world.rejections[0].cause;
    assert!(cause.contains("no progress for 10s: "), "{cause}");
    assert!(cause.ends_with("; pod web-2: container c is running but not ready"), "{cause}");
}

#[test]
fn pods_that_come_and_go_are_no_progress() {
    let id = workload("web");
    let mut harness = in_a_step(&json!({"rhumb.dev/steps": "1"}));
    let fails = (0..60).find(|second| {
        let pods = [pod("web-1", "new")];
        observe(&mut harness, &id, &pods[..1 - second % 2]);
        let failed = !harness.engine.take_failed().is_empty();
        harness.pass_time(SECOND);
        failed
    });
    assert_eq!(fails, Some(10));
}

#[test]
fn a_person_may_take_his_time() {
    let manual = json!({"rhumb.dev/steps": "1", "rhumb.dev/step-promote": "manual"});
    assert_eq!(fails_after(&mut in_a_step(&manual), 1), None);
}
