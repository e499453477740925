//! Pods that hold up a StatefulSet for ever.

use std::time::Duration;

use super::pods::pod;
use super::rig::Rig;
use super::world::{desired, gvk, id, reading};
use crate::engine::*;
use crate::object::ObjectId;

fn db() -> ObjectId {
    id("apps", "StatefulSet", "shop", "db")
}

/// A set at its first content, which is held where a rollout fails.
fn at_rest() -> Rig {
    let mut rig = Rig::new(1);
    let budget =
        Budget { deadline: Duration::from_secs(10), on_failure: OnFailure::Hold, ..super::world::budget(1) };
    rig.engine = rig.fresh_with(budget);
    let kind = db().group_kind();
    let mut inventory = rig.engine.source(0).inventory.clone().unwrap();
    inventory.kinds.insert(kind.clone());
    rig.engine.inventory(0, inventory);
    rig.engine.served(gvk(&db()), Served::Yes);
    rig.engine.list_started(&kind);
    rig.engine.list_complete(&kind);
    commit(&mut rig, 1);
    rig.settle();
    rig
}

fn commit(rig: &mut Rig, content: u32) {
    rig.read(reading(&format!("r{content}"), &[("db", Some(desired(&db(), content, "db")))]));
}

/// Lets the newest content be written; the rollout that it begins does not end.
fn begin(rig: &mut Rig, content: u32) {
    commit(rig, content);
    let wanted = desired(&db(), content, "db").hash;
    let shows = |rig: &Rig| rig.world.things[&db()].release.as_ref().map(|release| release.hash);
    for _ in 0..20 {
        if shows(rig) == Some(wanted) {
            break;
        }
        rig.engine.settle();
        rig.step(&db());
        rig.keep_book();
    }
    assert_eq!(shows(rig), Some(wanted));
    rig.deliver(usize::MAX);
}

/// The last pod is of this revision, and not Ready; the newest revision is another.
fn told(rig: &mut Rig, revision: &str, newest: &str) {
    let pod = |ordinal: u32| PodFacts {
        uid: Uid(format!("{ordinal}").into()),
        ready: if ordinal == 2 { Readiness::NotReady } else { Readiness::Ready },
        ..pod(&format!("db-{ordinal}"), if ordinal == 2 { revision } else { "r1" })
    };
    let rv = rig.engine.live(&db()).unwrap().rv;
    let pods = WorkloadPods {
        rv,
        newest: Some(newest.into()),
        pods: (0..3).map(pod).collect(),
        lost: None,
        refused: None,
    };
    rig.engine.pods(&db(), pods);
    rig.engine.advance(rig.now);
}

fn freed(rig: &mut Rig) -> Vec<String> {
    rig.engine.to_free(rig.now).iter().map(|pod| pod.name.to_string()).collect()
}

#[test]
fn a_pod_of_a_rollout_that_failed_is_not_waited_for_by_the_next_content() {
    let mut rig = at_rest();
    begin(&mut rig, 2);
    told(&mut rig, "r2", "r2");
    rig.pass_time(Duration::from_secs(11));
    rig.engine.advance(rig.now);
    rig.keep_book();
    assert_eq!(rig.world.rejections[0].way, Way::Held);
    assert!(freed(&mut rig).is_empty(), "nobody has decided yet");
    begin(&mut rig, 3);
    told(&mut rig, "r2", "r3");
    assert_eq!(freed(&mut rig), ["db-2"]);
    // One more content in the middle of that changes nothing about it.
    begin(&mut rig, 4);
    told(&mut rig, "r2", "r4");
    assert_eq!(freed(&mut rig), ["db-2"]);
}

#[test]
fn a_pod_of_a_rollout_that_goes_on_may_just_be_slow() {
    let mut rig = at_rest();
    begin(&mut rig, 2);
    told(&mut rig, "r2", "r2");
    begin(&mut rig, 3);
    told(&mut rig, "r2", "r3");
    assert!(freed(&mut rig).is_empty());
}
