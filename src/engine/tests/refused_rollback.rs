//! Rollbacks that the API server refuses.

use std::sync::Arc;
use std::time::Duration;

use super::harness::Harness;
use super::world::{config, desired, reading, workload};
use crate::engine::*;
use crate::object::ContentHash;

fn files(content: u32) -> Vec<(&'static str, Option<SharedDesiredObject>)> {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    let env = desired(&config("env"), content, "env");
    vec![("env", Some(env)), ("web", Some(Arc::new(web)))]
}

fn hash(content: u32) -> ContentHash {
    desired(&workload("web"), content, "web").hash
}

/// Returns a state in which all but web's rollback is done, and its write is on its way.
fn going_back() -> (Harness, Action) {
    let web = workload("web");
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.bad.insert(hash(2));
    harness.read(reading("r2", &files(2)));
    for _ in 0..200 {
        harness.deliver(usize::MAX);
        harness.finish_rollouts();
        harness.deliver(usize::MAX);
        harness.engine.advance(harness.now);
        harness.keep_ledger();
        harness.engine.process_changes();
        for id in harness.engine.take_dirty() {
            let decision = harness.decide(&id);
            match &decision.action {
                Action::Apply(apply) if id == web && !harness.world.rejections.is_empty() => {
                    assert_eq!(apply.desired.hash, hash(1));
                    return (harness, decision.action);
                }
                _ => drop(harness.act(&id, decision)),
            }
        }
    }
    panic!("it never goes back: {:#?}", harness.world.log);
}

/// Sends the rollback again as often as rhumb wants, refused each time, and says how often.
fn refuse(harness: &mut Harness, mut action: Action, refusal: &WriteFailure) -> u32 {
    let web = workload("web");
    for count in 1..20 {
        harness.engine.note_dispatch(&web, &action);
        harness.engine.record_result(&web, &action, ActionResult::Failed(refusal.clone()), harness.now);
        harness.keep_ledger();
        harness.pass_time(Duration::from_secs(2));
        harness.engine.advance(harness.now);
        match harness.decide(&web).action {
            next @ Action::Apply(_) => action = next,
            _ => return count,
        }
    }
    20
}

#[test]
fn a_rollback_that_is_refused_for_good_ends_in_a_hold() {
    let soon = Some(Duration::from_secs(1));
    for (rule, after, times) in [
        (RefusalRule::Immutable, None, 1),
        (RefusalRule::Other, None, 1),
        (RefusalRule::Other, soon, 5),
        (RefusalRule::Rights, soon, 5),
    ] {
        let (mut harness, action) = going_back();
        let count = refuse(&mut harness, action, &WriteFailure::Refused("no".into(), rule, after));
        assert_eq!(count, times, "{rule:?}, {after:?}");
        let rejection = &harness.world.rejections[0];
        assert_eq!(rejection.action, RejectionAction::Quarantine);
        assert!(rejection.cause.contains("; going back failed too: Deployment shop/web: refused: no"));
        harness.settle();
        assert!(harness.engine.workloads_in_flight().is_empty(), "it keeps its slot");
        assert!(harness.world.is_free());
        // Others go on.
        let other = desired(&workload("other"), 1, "other");
        harness.read(reading("r3", &[("other", Some(other))]));
        harness.settle();
        harness.read(reading("r4", &[("other", Some(desired(&workload("other"), 2, "other")))]));
        harness.settle();
        let shown = harness.world.things[&workload("other")].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(desired(&workload("other"), 2, "other").hash));
    }
}

#[test]
fn a_rollback_that_fails_for_now_is_tried_again() {
    let soon = Duration::from_secs(1);
    for failure in [
        WriteFailure::Refused("no answer".into(), RefusalRule::Webhook, Some(soon)),
        WriteFailure::Unknown("no answer".into(), soon),
    ] {
        let (mut harness, action) = going_back();
        assert_eq!(refuse(&mut harness, action, &failure), 20, "{failure}");
        assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
        harness.engine.mark_all();
        harness.settle();
        let shown = harness.world.things[&workload("web")].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(hash(1)), "{failure}");
        assert!(harness.world.is_free());
    }
}
