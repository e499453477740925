//! The pure decision about a workload whose pods were started with other data, or under another
//! overlay.

use std::sync::Arc;

use serde_json::json;

use super::decision_inputs::{Scene, content, paused, same_template, scene};
use super::world::workload;
use crate::engine::decide::decision::DecisionInput;
use crate::engine::facts::config_stamp::PinnedConfig;
use crate::engine::*;
use crate::object::{ContentHash, annotations};

/// Returns a stamp of data whose hash the pod template carries.
fn stamp(data: &str) -> ConfigStamp {
    ConfigStamp { key: 1, data: ContentHash::hash_bytes(data.as_bytes()), pinned: None, changed: 0 }
}

/// Returns a stamp of data that the pod template says nothing of.
fn pinned(data: &str) -> ConfigStamp {
    let stamp = stamp(data);
    ConfigStamp { pinned: Some(PinnedConfig { data: stamp.data, template: None }), ..stamp }
}

/// Returns a workload that is wanted as it is, with the data that its pods were started with.
fn started(config_stamp: Option<ConfigStamp>) -> Scene {
    scene(&content(&workload("web"), 1)).with_live(|live| live.config_stamp = config_stamp.map(Box::new))
}

fn starting(scene: Scene) -> Scene {
    scene.with_live(|live| live.replica_status.as_mut().unwrap().phase = WorkloadPhase::FirstStart)
}

fn at(next: Option<ConfigStamp>) -> impl Fn(&mut DecisionInput<'_>) {
    move |input| input.config_stamp = next
}

#[test]
fn pods_are_restarted_for_data_that_their_template_names() {
    let check = |before: Option<ConfigStamp>, next: Option<ConfigStamp>, expected: &str| {
        started(before).check_with(at(next), expected);
    };
    check(Some(stamp("1")), Some(stamp("1")), "Compare");
    check(Some(stamp("1")), Some(stamp("2")), "Restart 1 of r1, exact, restarts");
    check(Some(stamp("1")), None, "Restart 1 of r1, exact, restarts");
    check(Some(pinned("1")), Some(stamp("2")), "Restart 1 of r1, exact, restarts");
    // The template stays as it is: only the annotation of the workload changes.
    check(Some(stamp("1")), Some(ConfigStamp { key: 2, ..stamp("1") }), "Repair 1 of r1, exact");
    check(None, Some(pinned("1")), "Repair 1 of r1, exact");
    // A stamp that somebody took away is put back, with the hash in the template.
    check(None, Some(stamp("1")), "Repair 1 of r1, exact, restarts");
    starting(started(Some(stamp("1")))).check_with(at(Some(stamp("2"))), "Restart 1 of r1, exact");
}

#[test]
fn a_restart_waits_for_what_keeps_a_content_back_and_is_no_fight() {
    let restarted = |input: &mut DecisionInput<'_>| input.config_stamp = Some(stamp("2"));
    let held = |input: &mut DecisionInput<'_>| {
        restarted(input);
        input.release_blocker = Some(paused());
    };
    started(Some(stamp("1"))).check_with(held, "Compare: it is paused");
    let blocked = |input: &mut DecisionInput<'_>| {
        restarted(input);
        input.write_blocker = Some(paused());
    };
    started(Some(stamp("1"))).check_with(blocked, "Nothing: it is paused");
    let repaired = || started(Some(stamp("1"))).repaired(&[50, 40, 30, 20, 10]);
    repaired().check_with(restarted, "Restart 1 of r1, exact, restarts");
    let other_key = at(Some(ConfigStamp { key: 2, ..stamp("1") }));
    let cause = "somebody keeps changing the same fields: stop it, or leave these fields to it";
    repaired().check_with(other_key, &format!("Nothing: {cause}; next repair in 10 s"));
}

#[test]
fn a_newer_content_restarts_pods_where_the_data_in_their_template_change_with_it() {
    let check = |before: Option<ConfigStamp>, next: Option<ConfigStamp>, expected: &str| {
        let changed = same_template().with_live(|live| live.config_stamp = before.map(Box::new));
        changed.check_with(at(next), expected);
    };
    check(Some(stamp("1")), Some(stamp("2")), "Change 2 of r2, exact, restarts");
    check(Some(stamp("1")), Some(stamp("1")), "Change 2 of r2, uid");
    check(None, Some(pinned("1")), "Change 2 of r2, uid");
    check(None, Some(stamp("1")), "Change 2 of r2, exact, restarts");
}

#[test]
fn a_workload_whose_template_names_data_that_are_not_known_waits_for_them() {
    let named = started(None).with_live(|live| {
        live.our_fields = Some(format!("{} {}", annotations::RELEASE, annotations::CONFIG_HASH).into());
    });
    named.check("Nothing: reading Deployment shop/web, whose data its pods use");
    started(None).check("Compare");
}

#[test]
fn a_verdict_is_about_the_data_that_pods_were_started_with() {
    let complete = || started(Some(stamp("1"))).verified(FieldOwnership::Complete);
    complete().check_with(at(Some(stamp("1"))), "Compare");
    let same = complete().with(|scene| {
        scene.entry.verified.as_mut().unwrap().config_stamp = Some(Box::new(stamp("1")));
    });
    same.check_with(at(Some(stamp("1"))), "Nothing");
}

// Written as it is, the content would let all of its pods go.
#[test]
fn an_accepted_content_with_steps_is_not_repaired_under_an_overlay_that_is_not_understood() {
    let body = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"annotations": {"rhumb.dev/steps": "1"}},
    });
    let accepted = |steps: Option<Steps>| {
        let known = (*content(&workload("web"), 1)).clone();
        let known = DesiredObject { steps: steps.map(Box::new), ..known };
        let changed =
            same_template().with(|scene| scene.entry.accepted = AcceptedContent::Known(Arc::new(known)));
        changed.with_live(|live| live.overlay = RolloutOverlayState::Unreadable)
    };
    let held = |input: &mut DecisionInput<'_>| input.release_blocker = Some(paused());
    let steps = Steps::of(&body);
    assert!(steps.is_some());
    accepted(steps).check_with(held, "Nothing: it is paused");
    accepted(None).check_with(held, "Compare: it is paused");
}

#[test]
fn a_content_that_leaves_a_step_restarts_the_pods_that_were_held_back() {
    let surge = |pods: u32| Some(RolloutOverlay::Surge { pods, step: 1 });
    let check = |shown: Option<RolloutOverlay>, next: Option<RolloutOverlay>, expected: &str| {
        let held = same_template().with_live(|live| live.overlay = shown.into());
        held.check_with(|input| input.overlay = next, expected);
    };
    check(surge(2), None, "Change 2 of r2, exact, restarts");
    check(surge(2), surge(3), "Change 2 of r2, exact, restarts");
    check(surge(2), surge(2), "Change 2 of r2, uid");
    check(surge(2), surge(1), "Change 2 of r2, uid");
    check(Some(RolloutOverlay::Narrow(1)), None, "Change 2 of r2, uid");
    check(None, surge(1), "Change 2 of r2, uid");
}

#[test]
fn the_next_step_restarts_pods_and_a_narrower_overlay_does_not() {
    use RolloutOverlayState::{Overlaid, Plain, Unreadable};

    let surge = |pods: u32, step: u32| RolloutOverlay::Surge { pods, step };
    let held = |shown: RolloutOverlayState| {
        scene(&content(&workload("web"), 1)).with_live(|live| live.overlay = shown)
    };
    let check = |shown: RolloutOverlayState, next: Option<RolloutOverlay>, expected: &str| {
        held(shown).check_with(|input| input.overlay = next, expected);
    };
    check(Plain, Some(surge(1, 1)), "Step 1 of r1, exact, restarts");
    check(Overlaid(surge(1, 1)), Some(surge(2, 2)), "Step 1 of r1, exact, restarts");
    check(Overlaid(surge(1, 1)), None, "Step 1 of r1, exact, restarts");
    check(Overlaid(surge(2, 1)), Some(surge(1, 1)), "Step 1 of r1, exact");
    check(Overlaid(RolloutOverlay::Narrow(1)), None, "Step 1 of r1, exact");
    check(Unreadable, None, "Step 1 of r1, exact");
    check(Overlaid(surge(1, 1)), Some(surge(1, 1)), "Compare");
    check(Plain, None, "Compare");
    // The content is there already, so that only a blocker of all writes keeps its step back.
    let next = |input: &mut DecisionInput<'_>| input.overlay = Some(RolloutOverlay::Narrow(1));
    let released = |input: &mut DecisionInput<'_>| {
        next(input);
        input.release_blocker = Some(paused());
    };
    held(Plain).check_with(released, "Step 1 of r1, exact, restarts");
    let blocked = |input: &mut DecisionInput<'_>| {
        next(input);
        input.write_blocker = Some(paused());
    };
    held(Plain).check_with(blocked, "Nothing: it is paused");
    let starting = held(Plain).with_live(|live| {
        live.replica_status.as_mut().unwrap().phase = WorkloadPhase::FirstStart;
    });
    starting.check_with(next, "Step 1 of r1, exact");
}
