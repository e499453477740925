//! The impact of a change on pods is the server's word, not that of two manifests.

use std::time::Duration;

use serde_json::json;

use super::harness::Harness;
use super::world::{AuditEntry, FIRST, config, desired, reading, workload};
use crate::change::{Impact, ImpactKind};
use crate::engine::*;
use crate::object::ObjectId;

fn web(content: u32) -> SharedDesiredObject {
    desired(&workload("web"), content, "web")
}

/// Returns the same template as another content.
fn like(content: SharedDesiredObject, other: &SharedDesiredObject) -> SharedDesiredObject {
    let mut changed = (*content).clone();
    changed.template = other.template;
    changed.into()
}

/// Returns a cluster at rest, in which the only slot is taken by the workload `a`, which never
/// ends.
fn busy() -> Harness {
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &[("a", Some(desired(&workload("a"), 1, "a"))), ("web", Some(web(1)))]));
    harness.settle();
    harness.read(reading("r2", &[("a", Some(desired(&workload("a"), 2, "a")))]));
    assert!(matches!(harness.step(&workload("a")), Some(Action::Apply(_))));
    harness.world.log.clear();
    harness.world.dry_runs = 0;
    harness
}

fn reason(harness: &mut Harness, id: &ObjectId) -> Option<String> {
    harness.decide(id).reason.map(|reason| reason.to_string())
}

#[test]
fn only_what_restarts_pods_by_the_servers_word_takes_a_slot() {
    let check = |candidate: SharedDesiredObject, answer: Option<ImpactKind>, expected: RestartRisk| {
        let mut harness = busy();
        harness.world.impacts.extend(answer.map(|answer| (candidate.hash, answer)));
        harness.read(reading("r3", &[("web", Some(candidate))]));
        let decision = harness.decide(&workload("web"));
        match expected {
            RestartRisk::Absent => {
                let Action::Apply(apply) = decision.action else { panic!("{answer:?}: {decision:?}") };
                assert_eq!(apply.restarts, RestartRisk::Absent, "{answer:?}");
                assert!(
                    matches!(apply.precondition, Precondition::Exact(..)),
                    "{answer:?}: it relies on what was seen"
                );
            }
            RestartRisk::Possible => {
                assert!(matches!(decision.reason, Some(Reason::Budget(_))), "{decision:?}");
            }
        }
        assert_eq!(harness.world.dry_runs, 1);
    };
    let same = like(web(2), &web(1));
    check(web(2), None, RestartRisk::Possible);
    check(web(2), Some(ImpactKind::Restart), RestartRisk::Possible);
    check(web(2), Some(ImpactKind::Recreate), RestartRisk::Possible);
    // A default that is spelled out now.
    check(web(2), Some(ImpactKind::InPlace), RestartRisk::Absent);
    check(web(2), Some(ImpactKind::None), RestartRisk::Absent);
    check(web(2), Some(ImpactKind::Scale), RestartRisk::Absent);
    check(same.clone(), None, RestartRisk::Absent);
    // Somebody else has changed the template meanwhile, and the change takes that back.
    check(same, Some(ImpactKind::Restart), RestartRisk::Possible);
}

// To the server the template is the same. The hold of the other pods would be lifted.
#[test]
fn the_server_is_not_asked_about_a_workload_that_a_step_may_hold() {
    for (shown, expected) in [
        (RolloutOverlayState::Plain, true),
        (RolloutOverlayState::Overlaid(RolloutOverlay::Narrow(1)), true),
        (RolloutOverlayState::Overlaid(RolloutOverlay::Surge { pods: 1, step: 1 }), false),
        (RolloutOverlayState::Unreadable, false),
    ] {
        let mut harness = busy();
        let candidate = like(web(3), &web(1));
        harness.read(reading("r3", &[("web", Some(candidate.clone()))]));
        harness.decide(&workload("web"));
        let live = harness.engine.live_object(&workload("web")).unwrap().clone();
        let live = LiveObject { overlay: shown, ..live };
        let impact = harness.engine.impact(&workload("web"), &candidate, &live);
        assert_eq!(impact.is_some(), expected, "{shown:?}");
    }
}

#[test]
fn an_answer_holds_for_one_content_and_one_generation() {
    let mut harness = busy();
    harness.read(reading("r3", &[("web", Some(web(2)))]));
    let asked = |harness: &mut Harness, expected: usize, why: &str| {
        harness.decide(&workload("web"));
        assert_eq!(harness.world.dry_runs, expected, "{why}");
    };
    asked(&mut harness, 1, "a new content");
    asked(&mut harness, 1, "nothing has changed");
    harness.world.things.get_mut(&workload("web")).unwrap().rv = 100;
    harness.world.announce(&workload("web"));
    harness.deliver(usize::MAX);
    asked(&mut harness, 1, "only the status has changed");
    let thing = harness.world.things.get_mut(&workload("web")).unwrap();
    (thing.rv, thing.shape) = (101, 101);
    harness.world.announce(&workload("web"));
    harness.deliver(usize::MAX);
    asked(&mut harness, 2, "the spec has changed");
    harness.read(reading("r4", &[("web", Some(web(3)))]));
    asked(&mut harness, 3, "another content");
}

#[test]
fn what_the_server_refuses_asks_for_no_slot() {
    let mut harness = busy();
    harness.read(reading("r3", &[("web", Some(web(2)))]));
    let decision = harness.engine.decide(&workload("web"), harness.now);
    assert!(matches!(decision.action, Action::DryRun(_)), "{decision:?}");
    let refused =
        WriteFailure::Refused("spec.selector: field is immutable".into(), RefusalRule::Immutable, None);
    harness.engine.record_result(
        &workload("web"),
        &decision.action,
        ActionResult::Failed(refused),
        harness.now,
    );
    let why = reason(&mut harness, &workload("web")).unwrap();
    assert!(why.starts_with("spec.selector: field is immutable; with the annotation"), "{why}");
    assert!(!harness.engine.rollouts.slot_requests.contains(&workload("web")));
}

#[test]
fn a_question_without_an_answer_is_asked_again_later() {
    let mut harness = busy();
    harness.read(reading("r3", &[("web", Some(web(2)))]));
    let action = harness.engine.decide(&workload("web"), harness.now).action;
    let lost = WriteFailure::Unknown("the API server does not answer".into(), Duration::from_secs(3));
    harness.engine.record_result(&workload("web"), &action, ActionResult::Failed(lost), harness.now);
    assert!(reason(&mut harness, &workload("web")).unwrap().contains("the API server does not answer"));
    harness.pass_time(Duration::from_secs(3));
    assert!(matches!(harness.engine.decide(&workload("web"), harness.now).action, Action::DryRun(_)));
}

#[test]
fn a_configuration_does_not_wait_for_a_workload_that_restarts_nothing() {
    let mut harness = busy();
    let with_env = |content| {
        let mut web = (*web(content)).clone();
        web.needs = [config("env")].into();
        SharedDesiredObject::from(web)
    };
    let env = |content| Some(desired(&config("env"), content, "env"));
    harness.world.impacts.insert(with_env(2).hash, ImpactKind::InPlace);
    harness.world.impacts.insert(with_env(3).hash, ImpactKind::InPlace);
    harness.read(reading("r3", &[("web", Some(with_env(2))), ("env", env(1))]));
    for id in [config("env"), workload("web"), config("env"), workload("web")] {
        harness.deliver(usize::MAX);
        harness.step(&id);
    }
    harness.world.log.clear();
    harness.read(reading("r4", &[("web", Some(with_env(3))), ("env", env(2))]));
    assert!(reason(&mut harness, &config("env")).is_some(), "the server has not been asked");
    for id in [workload("web"), config("env"), workload("web")] {
        harness.deliver(usize::MAX);
        harness.step(&id);
    }
    let changed = [AuditEntry::Changed(config("env")), AuditEntry::Changed(workload("web"))];
    assert_eq!(harness.world.log, changed);
}

#[test]
fn what_is_taken_over_as_it_is_takes_no_slot() {
    let mut harness = busy();
    let thing = harness.world.things.get_mut(&workload("web")).unwrap();
    // Made by hand, with just this content.
    (thing.release, thing.labelled, thing.rv) = (None, false, 200);
    harness.world.announce(&workload("web"));
    harness.deliver(usize::MAX);
    harness.engine.drop_entry(&workload("web"));
    harness.world.impacts.insert(web(1).hash, ImpactKind::InPlace);
    let mut engine = harness.fresh(1);
    std::mem::swap(&mut harness.engine, &mut engine);
    harness.read(reading("r2", &[("web", Some(web(1))), ("a", Some(desired(&workload("a"), 2, "a")))]));
    let mut applied = None;
    for _ in 0..3 {
        applied = applied.or_else(|| harness.step(&workload("web")));
    }
    let Some(Action::Apply(apply)) = applied else { panic!("{:?}", harness.decide(&workload("web"))) };
    assert_eq!((apply.purpose, apply.restarts), (ApplyPurpose::Adopt, RestartRisk::Absent));
}

#[test]
fn whoever_is_asked_about_keeps_the_place_in_the_queue() {
    let names = ["a", "web"];
    let files = |content| names.map(|name| (name, Some(desired(&workload(name), content, name))));
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &files(2)));
    let first = harness.engine.decide(&workload("a"), harness.now);
    assert!(matches!(first.action, Action::DryRun(_)), "{first:?}");
    // The later one is answered first.
    let later = harness.decide(&workload("web"));
    assert!(matches!(later.reason, Some(Reason::Budget(_))), "{later:?}");
    harness.settle();
    assert_eq!(harness.world.log, names.map(|name| AuditEntry::Changed(workload(name))));
    // A change that restarts nothing gives its place up.
    harness.world.impacts.insert(desired(&workload("a"), 3, "a").hash, ImpactKind::InPlace);
    harness.read(reading("r3", &files(3)));
    assert!(matches!(harness.engine.decide(&workload("a"), harness.now).action, Action::DryRun(_)));
    assert!(matches!(harness.decide(&workload("web")).reason, Some(Reason::Budget(_))));
    harness.decide(&workload("a"));
    assert!(matches!(harness.decide(&workload("web")).action, Action::Apply(_)));
}

#[test]
fn what_changes_no_pod_by_the_servers_word_goes_in_no_steps() {
    let stepped = || {
        let annotations = json!({"rhumb.dev/steps": "1"});
        let body =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": annotations}});
        let mut stepped = (*web(2)).clone();
        stepped.steps = Steps::of(&body).map(Box::new);
        SharedDesiredObject::from(stepped)
    };
    let surge = RolloutOverlay::Surge { pods: 1, step: 1 };
    for (answer, expected) in [(ImpactKind::Restart, Some(surge)), (ImpactKind::InPlace, None)] {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("web", Some(web(1)))]));
        harness.settle();
        harness.world.impacts.insert(stepped().hash, answer);
        harness.read(reading("r2", &[("web", Some(stepped()))]));
        let decision = harness.decide(&workload("web"));
        let Action::Apply(apply) = decision.action else { panic!("{answer:?}: {decision:?}") };
        assert_eq!(apply.variant.overlay, expected, "{answer:?}");
    }
}

/// Returns an answer of the server about the second content of `web`.
fn answer(harness: &Harness, impact: Impact) -> DryRunImpact {
    let live = harness.engine.live_object(&workload("web")).unwrap();
    DryRunImpact { content: web(2).hash, uid: live.uid.clone(), generation: live.generation, impact }
}

#[test]
fn the_server_tells_the_pods_of_a_workload_of_which_only_metadata_were_read() {
    let mut harness = busy();
    let live = harness.engine.live_object(&workload("web")).unwrap().clone();
    let rv = ResourceVersion(live.rv.0 + 1);
    let live = LiveObject { replica_status: None, rv, ..live };
    harness.engine.observe_object(&workload("web"), live);
    let loss = |harness: &Harness| harness.engine.possible_loss(&workload("web"), |pods| pods);
    assert_eq!(loss(&harness), 0, "it was not asked");
    let known = answer(&harness, Impact { kind: ImpactKind::Restart, pods: 7 });
    harness.engine.record_dry_run(&workload("web"), known);
    assert_eq!(loss(&harness), 7);
}

#[test]
fn units_are_found_anew_where_an_answer_changes_which_workloads_restart() {
    let mut harness = busy();
    harness.read(reading("r3", &[("web", Some(web(2)))]));
    harness.decide(&workload("web"));
    // By the contents alone it restarts.
    for (kind, is_kept) in [
        (ImpactKind::Restart, true),
        (ImpactKind::InPlace, false),
        (ImpactKind::None, true),
        (ImpactKind::Recreate, false),
    ] {
        harness.engine.find_units(FIRST);
        let known = answer(&harness, Impact { kind, pods: 3 });
        harness.engine.record_dry_run(&workload("web"), known);
        assert_eq!(harness.engine.rollouts.units.of(FIRST).is_some(), is_kept, "{kind:?}");
    }
}
