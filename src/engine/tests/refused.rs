//! Ways back that the API server refuses.

use std::sync::Arc;
use std::time::Duration;

use super::rig::Harness;
use super::world::{config, desired, reading, workload};
use crate::engine::*;
use crate::object::ContentHash;

fn files(content: u32) -> Vec<(&'static str, Option<SharedDesired>)> {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    let env = desired(&config("env"), content, "env");
    vec![("env", Some(env)), ("web", Some(Arc::new(web)))]
}

fn hash(content: u32) -> ContentHash {
    desired(&workload("web"), content, "web").hash
}

/// All but web's way back is done, and its write is on its way.
fn going_back() -> (Harness, Action) {
    let web = workload("web");
    let mut rig = Harness::new(1);
    rig.read(reading("r1", &files(1)));
    rig.settle();
    rig.world.bad.insert(hash(2));
    rig.read(reading("r2", &files(2)));
    for _ in 0..200 {
        rig.deliver(usize::MAX);
        rig.finish_rollouts();
        rig.deliver(usize::MAX);
        rig.engine.advance(rig.now);
        rig.keep_book();
        rig.engine.settle();
        for id in rig.engine.take_dirty() {
            let decision = rig.decide(&id);
            match &decision.action {
                Action::Apply(apply) if id == web && !rig.world.rejections.is_empty() => {
                    assert_eq!(apply.want.hash, hash(1));
                    return (rig, decision.action);
                }
                _ => drop(rig.act(&id, decision)),
            }
        }
    }
    panic!("it never goes back: {:#?}", rig.world.log);
}

/// Sends the way back again as often as rhumb wants, refused each time, and says how often.
fn refuse(rig: &mut Harness, mut action: Action, refusal: &WriteFailure) -> u32 {
    let web = workload("web");
    for count in 1..20 {
        rig.engine.dispatched(&web, &action);
        rig.engine.outcome(&web, &action, ActionResult::Failed(refusal.clone()), rig.now);
        rig.keep_book();
        rig.pass_time(Duration::from_secs(2));
        rig.engine.advance(rig.now);
        match rig.decide(&web).action {
            next @ Action::Apply(_) => action = next,
            _ => return count,
        }
    }
    20
}

#[test]
fn a_way_back_that_is_refused_for_good_ends_in_a_hold() {
    let soon = Some(Duration::from_secs(1));
    for (rule, after, times) in [
        (RefusalRule::Immutable, None, 1),
        (RefusalRule::Other, None, 1),
        (RefusalRule::Other, soon, 5),
        (RefusalRule::Rights, soon, 5),
    ] {
        let (mut rig, action) = going_back();
        let count = refuse(&mut rig, action, &WriteFailure::Refused("no".into(), rule, after));
        assert_eq!(count, times, "{rule:?}, {after:?}");
        let rejection = &rig.world.rejections[0];
        assert_eq!(rejection.way, RejectionAction::Hold);
        assert!(rejection.cause.contains("; going back failed too: Deployment shop/web: refused: no"));
        rig.settle();
        assert!(rig.engine.in_flight().is_empty(), "it keeps its token");
        assert!(rig.world.is_free());
        // Others go on.
        let other = desired(&workload("other"), 1, "other");
        rig.read(reading("r3", &[("other", Some(other))]));
        rig.settle();
        rig.read(reading("r4", &[("other", Some(desired(&workload("other"), 2, "other")))]));
        rig.settle();
        let shown = rig.world.things[&workload("other")].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(desired(&workload("other"), 2, "other").hash));
    }
}

#[test]
fn a_way_back_that_fails_for_now_is_tried_again() {
    let soon = Duration::from_secs(1);
    for failure in [
        WriteFailure::Refused("no answer".into(), RefusalRule::Webhook, Some(soon)),
        WriteFailure::Unknown("no answer".into(), soon),
    ] {
        let (mut rig, action) = going_back();
        assert_eq!(refuse(&mut rig, action, &failure), 20, "{failure}");
        assert_eq!(rig.world.rejections[0].way, RejectionAction::RollBack);
        rig.engine.mark_all();
        rig.settle();
        let shown = rig.world.things[&workload("web")].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(hash(1)), "{failure}");
        assert!(rig.world.is_free());
    }
}
