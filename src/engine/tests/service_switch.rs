//! A Service that a revision switches to a workload: when it is switched, and for how long the
//! workload is watched after that.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::harness::Harness;
use super::liveness::fail;
use super::shared_budget::one;
use super::world::{FIRST, World, budget, desired, gvk, id, reading, workload};
use crate::engine::rollout::evaluation::RolloutVerdict;
use crate::engine::rollout::rollouts::ServiceSwitch;
use crate::engine::*;
use crate::graph::{LabelSelection, SelectableLabels};
use crate::health::{Health, HealthStatus};
use crate::object::ObjectId;

const SOAK: Duration = Duration::from_secs(10);

fn service() -> ObjectId {
    id("", "Service", "shop", "shop")
}

/// Returns a revision: the Service, and the workload that it selects from the second one on.
fn files(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    let selected = if content == 1 { "blue" } else { "green" };
    let mut switch = (*desired(&service(), content, "shop")).clone();
    switch.selects = LabelSelection::of(&service(), &json!({"spec": {"selector": {"color": selected}}}));
    let mut green = (*one("green", content)).clone();
    let pods = json!({"metadata": {"labels": {"color": "green"}}, "spec": {"containers": []}});
    green.labels = SelectableLabels::of(&green.id, &json!({"spec": {"template": pods}}));
    [("shop", Some(Arc::new(switch))), ("green", Some(Arc::new(green)))]
}

/// Returns a process that watches Services too.
fn watching_services() -> Harness {
    let mut harness = Harness::new(3);
    harness.engine = harness.fresh_with(Budget { soak: SOAK, ..budget(3) });
    let mut inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    inventory.kinds.insert(service().group_kind());
    harness.engine.set_inventory(FIRST, inventory);
    harness.engine.set_kind_availability(gvk(&service()), KindAvailability::Served);
    harness.engine.list_started(&service().group_kind());
    harness.engine.list_complete(&service().group_kind());
    harness
}

/// Returns the second revision of a Service and a workload: all pods of the newer content are
/// available.
fn rolled_out() -> Harness {
    let mut harness = watching_services();
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    harness.settle();
    harness
}

/// Returns whether the Service is switched, and whether the workload is watched still.
fn state(harness: &Harness) -> (bool, bool) {
    let shown = harness.world.things[&service()].release.as_ref().map(|release| release.hash);
    (shown == Some(desired(&service(), 2, "").hash), harness.engine.is_in_progress(&workload("green")))
}

#[test]
fn a_service_is_switched_once_its_workload_has_soaked_which_is_watched_for_another_soak() {
    let mut harness = rolled_out();
    for (passes, expected) in
        [(0, (false, true)), (9, (false, true)), (1, (true, true)), (9, (true, true)), (1, (true, false))]
    {
        harness.pass_time(Duration::from_secs(passes));
        harness.settle();
        assert_eq!(state(&harness), expected, "after {passes} s more");
    }
}

#[test]
fn a_workload_whose_service_was_just_switched_is_judged_again_after_its_second_soak() {
    let mut harness = rolled_out();
    harness.pass_time(SOAK);
    harness.settle();
    assert_eq!(state(&harness), (true, true));
    let mut rollout = harness.engine.rollouts.in_flight[&workload("green")].clone();
    (rollout.switch, rollout.healthy_since) = (ServiceSwitch::Waiting, harness.now.checked_sub(SOAK));
    let found = harness.engine.evaluate_rollout(&workload("green"), &rollout, harness.now);
    assert_eq!(found.verdict, RolloutVerdict::InProgress(Some(harness.now + SOAK)));
    assert_eq!(found.tracking.healthy_since, Some(harness.now));
}

// Each would wait for the other, for ever.
#[test]
fn a_service_is_switched_at_once_to_a_workload_that_comes_after_it() {
    let check = |change: &dyn Fn(&mut DesiredObject, &mut DesiredObject), expected: Option<Reason>| {
        let mut harness = watching_services();
        harness.read(reading("r1", &files(1)[..1]));
        harness.settle();
        let [(_, switch), (_, green)] = files(2);
        let [mut switch, mut green] = [switch, green].map(|found| (*found.unwrap()).clone());
        change(&mut switch, &mut green);
        let switch: SharedDesiredObject = switch.into();
        let files = [("shop", Some(switch.clone())), ("green", Some(green.into()))];
        harness.read(reading("r2", &files));
        assert_eq!(harness.engine.switch_blocker(FIRST, &switch), expected, "{switch:?}");
    };
    let waits = Some(Reason::Needs(workload("green"), DependencyState::Missing));
    check(&|_, _| (), waits.clone());
    check(&|_, green| green.needs = [service()].into(), None);
    check(&|_, green| green.depends_on = [service()].into(), None);
    check(&|_, green| green.wave = 1, None);
    check(&|switch, green| (switch.wave, green.wave) = (1, 1), waits.clone());
    check(&|switch, _| switch.wave = 1, waits);
    // Another one stands between them.
    let between = |harness: &mut Harness| {
        let mut blue = (*desired(&workload("blue"), 2, "blue")).clone();
        blue.needs = [service()].into();
        let [(_, switch), (_, green)] = files(2);
        let mut green = (*green.unwrap()).clone();
        green.depends_on = [workload("blue")].into();
        let files = [("shop", switch.clone()), ("green", Some(green.into())), ("blue", Some(blue.into()))];
        harness.read(reading("r2", &files));
        harness.engine.switch_blocker(FIRST, &switch.unwrap())
    };
    let mut harness = watching_services();
    harness.read(reading("r1", &files(1)[..1]));
    harness.settle();
    assert_eq!(between(&mut harness), None);
}

// It waits for the end of the rollout, which would wait for the switch.
#[test]
fn a_service_that_comes_after_its_workload_is_switched_when_the_rollout_has_ended() {
    let changes: [&dyn Fn(&mut DesiredObject); 2] =
        [&|switch| switch.wave = 1, &|switch| switch.depends_on = [workload("green")].into()];
    for change in changes {
        let mut harness = watching_services();
        harness.read(reading("r1", &files(1)));
        harness.settle();
        let [(file, switch), green] = files(2);
        let mut switch = (*switch.unwrap()).clone();
        change(&mut switch);
        let words = format!("{switch:?}");
        harness.read(reading("r2", &[(file, Some(switch.into())), green]));
        harness.settle();
        assert_eq!(state(&harness), (false, true), "{words}");
        harness.pass_time(SOAK);
        harness.settle();
        assert_eq!(state(&harness), (true, false), "{words}");
    }
}

// It would hold the slot that the workload waits for which the Service is switched to.
#[test]
fn a_workload_that_needs_a_service_asks_for_no_slot_before_that_can_be_switched() {
    let app = workload("app");
    let revision = |content: u32| {
        let mut user = (*one("app", content)).clone();
        user.needs = [service()].into();
        let mut all = files(content).to_vec();
        all.push(("app", Some(user.into())));
        all
    };
    let shown = |harness: &Harness| harness.world.things[&app].release.as_ref().map(|release| release.hash);
    let mut harness = watching_services();
    harness.read(reading("r1", &revision(1)));
    harness.settle();
    harness.read(reading("r2", &revision(2)));
    harness.settle();
    assert_eq!(state(&harness), (false, true));
    assert_eq!(shown(&harness), Some(one("app", 1).hash));
    harness.pass_time(SOAK);
    harness.settle();
    assert_eq!(state(&harness), (true, true));
    assert_eq!(shown(&harness), Some(one("app", 2).hash), "{:#?}", harness.world.log);
}

// Nothing says when it is mended.
#[test]
fn a_claimed_workload_that_needs_a_service_whose_next_workload_has_failed_holds_no_slot() {
    let (app, green) = (workload("app"), workload("green"));
    let revision = |content: u32| {
        let mut user = (*one("app", content)).clone();
        user.needs = [service()].into();
        let [switch, _] = files(content);
        vec![switch, ("app", Some(user.into()))]
    };
    let [_, unchanged] = files(1);
    let mut harness = watching_services();
    harness.read(reading("r1", &[revision(1), vec![unchanged]].concat()));
    harness.settle();
    harness.read(reading("r2", &revision(2)));
    assert_eq!(harness.step(&app), None, "the Service goes first");
    assert_eq!(harness.engine.workloads_in_flight(), [app.clone()].into());
    let live = World::live(&green, &harness.world.things[&green]);
    let (rv, health) =
        (ResourceVersion(harness.world.tick()), Health::new(HealthStatus::Failed, "it crashes"));
    harness.engine.observe_object(&green, LiveObject { rv, health, ..live });
    harness.settle();
    assert!(harness.engine.workloads_in_flight().is_empty());
    let shown = harness.world.things[&app].release.as_ref().map(|release| release.hash);
    assert_eq!(shown, Some(one("app", 1).hash), "{:#?}", harness.world.log);
}

// It would keep its slot until somebody mends the workload that the Service selected before.
#[test]
fn a_rollback_does_not_wait_for_a_service_that_cannot_be_switched_back_yet() {
    let (app, blue) = (workload("app"), workload("blue"));
    let revision = |content: u32| {
        let mut user = (*one("app", content)).clone();
        user.needs = [service()].into();
        let [switch, _] = files(content);
        vec![switch, ("app", Some(user.into()))]
    };
    let mut selected = (*one("blue", 1)).clone();
    let pods = json!({"metadata": {"labels": {"color": "blue"}}, "spec": {"containers": []}});
    selected.labels = SelectableLabels::of(&selected.id, &json!({"spec": {"template": pods}}));
    let mut harness = watching_services();
    harness.read(reading("r1", &[revision(1), vec![("blue", Some(selected.into()))]].concat()));
    harness.settle();
    harness.world.bad.insert(one("app", 2).hash);
    harness.read(reading("r2", &revision(2)));
    fail(&mut harness, &app);
    assert!(state(&harness).0, "{:#?}", harness.world.log);
    let live = World::live(&blue, &harness.world.things[&blue]);
    let (rv, health) =
        (ResourceVersion(harness.world.tick()), Health::new(HealthStatus::InProgress, "it starts"));
    harness.engine.observe_object(&blue, LiveObject { rv, health, ..live });
    harness.settle();
    let shown = harness.world.things[&app].release.as_ref().map(|release| release.hash);
    assert_eq!(shown, Some(one("app", 1).hash), "{:#?}", harness.world.log);
    assert!(state(&harness).0, "it would select pods that are not ready");
}

#[test]
fn a_rollout_does_not_wait_for_a_service_that_is_to_be_left_alone() {
    let mut harness = rolled_out();
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&service()).unwrap();
    (thing.asks, thing.rv) = (ReconcilePolicy::Disabled, rv);
    harness.world.announce(&service());
    harness.pass_time(SOAK);
    harness.settle();
    assert_eq!(state(&harness), (false, false));
}

// The daemon had published its queue, or read the ledger for another reason. Nobody asked again,
// and neither the workload was made nor the Service switched.
#[test]
fn who_waits_for_a_record_asks_again_after_another_call_of_the_ledger() {
    let mut harness = rolled_out();
    harness.engine.take_dirty();
    harness.engine.rollouts.units.request_record(FIRST, workload("green"), service());
    harness.engine.set_ledger(harness.engine.known_ledger().unwrap().clone());
    assert!(harness.engine.rollouts.units.units_to_record().is_empty());
    assert!(harness.engine.take_dirty().contains(&service()));
}

#[test]
fn what_fails_in_the_soak_after_the_switch_goes_back_and_with_it_the_service() {
    let mut harness = rolled_out();
    harness.pass_time(SOAK);
    harness.settle();
    assert_eq!(state(&harness), (true, true));
    let rv = harness.world.tick();
    let content = harness.world.things[&workload("green")].runs();
    let green = harness.world.things.get_mut(&workload("green")).unwrap();
    (green.failed, green.phase, green.rv) = (content, WorkloadPhase::Recovering, rv);
    harness.world.bad.extend(content);
    harness.world.announce(&workload("green"));
    harness.settle();
    assert!(!state(&harness).0, "{:#?}", harness.world.log);
}
