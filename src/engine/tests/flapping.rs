//! Pods of a step that are Ready and unready in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::pods::{self, pod};
use super::rig::Harness;
use super::world::{desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

const SECOND: Duration = Duration::from_secs(1);

fn web(content: u32, annotations: &serde_json::Value) -> SharedDesired {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": annotations}, "spec": {"replicas": 3}});
    web.steps = Steps::of(&deployment).map(Box::new);
    assert!(web.steps.is_some());
    Arc::new(web)
}

/// Returns a workload in its first step, with one new pod.
fn in_a_step(annotations: &serde_json::Value) -> Harness {
    let mut rig = Harness::new(1);
    rig.engine = rig.fresh_with(Budget { deadline: 10 * SECOND, ..super::world::budget(1) });
    let id = workload("web");
    rig.read(reading("r1", &[("web", Some(web(1, annotations)))]));
    rig.settle();
    rig.read(reading("r2", &[("web", Some(web(2, annotations)))]));
    for _ in 0..20 {
        rig.engine.settle();
        rig.step(&id);
        rig.keep_book();
        if rig.world.things[&id]
            .release
            .as_ref()
            .is_some_and(|release| release.hash == web(2, annotations).hash)
        {
            break;
        }
    }
    assert!(matches!(rig.world.things[&id].shown, OverlayState::Under(Overlay::Surge { pods: 1, step: 1 })));
    rig.deliver(usize::MAX);
    rig
}

fn told(rig: &mut Harness, id: &ObjectId, ready: Option<Instant>) {
    let pod = ready.map_or_else(|| pod("web-1", "new"), |since| pods::ready("web-1", "new", since));
    let rv = rig.engine.live(id).unwrap().rv;
    let pods = WorkloadPods {
        rv,
        newest: Some("new".into()),
        current: None,
        pods: [pod].into(),
        sets: Box::default(),
        lost: None,
        refused: None,
    };
    rig.engine.pods(id, pods);
    rig.engine.advance(rig.now);
}

/// After how many seconds it fails, when its pod is Ready in every other second from the beginning to this one.
fn fails_after(rig: &mut Harness, flaps: u64) -> Option<u64> {
    let (id, mut steady) = (workload("web"), None);
    for second in 0..60 {
        if second == flaps {
            steady = Some(rig.now);
        }
        let ready = (second % 2 == 1).then_some(rig.now);
        told(rig, &id, steady.or(ready));
        if !rig.engine.take_failed().is_empty() {
            return Some(second);
        }
        rig.pass_time(SECOND);
        rig.engine.advance(rig.now);
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
fn a_person_may_take_his_time() {
    let manual = json!({"rhumb.dev/steps": "1", "rhumb.dev/step-promote": "manual"});
    assert_eq!(fails_after(&mut in_a_step(&manual), 1), None);
}
