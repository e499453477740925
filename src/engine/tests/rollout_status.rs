//! The rollouts as the status shows them: steps and what holds them, the queue in the ledger, and
//! claims of others. Beside it, what is watched and released together.

use std::sync::Arc;

use serde_json::json;

use super::daemon_set_steps::{DaemonSetWorld, DisruptionBudgets, agent, content};
use super::harness::Harness;
use super::shared_budget::{at_rest, budget, elsewhere, files, theirs};
use super::world::{config, desired, id, reading, workload};
use crate::engine::*;
use crate::graph::{LabelSelection, SelectableLabels};
use crate::object::ObjectId;

#[test]
fn a_step_goes_on_until_its_pods_are_ready_and_is_held_from_then_on() {
    let words = json!({"steps": "1", "step-promote": "manual"});
    let (tight, new) =
        (Budget { max_unavailable: PodAmount::Pods(1), ..super::world::budget(3) }, content(2, &words));
    let mut fleet = DaemonSetWorld::new(3, tight, &content(1, &words));
    let check = |fleet: &DaemonSetWorld, rolls: bool, is_stepping: bool, expected: &[&str]| {
        let (view, now) = (fleet.harness.engine.view(), fleet.harness.now);
        let held = view.held_steps(now);
        assert_eq!(held.values().map(ToString::to_string).collect::<Vec<_>>(), expected);
        assert!(held.keys().all(|id| *id == agent()), "{held:?}");
        assert_eq!((view.is_in_progress(&agent()), view.is_stepping(&agent(), now)), (rolls, is_stepping));
    };
    check(&fleet, false, false, &[]);
    fleet.mute = Some(new.hash);
    fleet.commit("r2", &new);
    fleet.settle();
    check(&fleet, true, true, &["step 1 of 1: 0 of 1 new pods are ready"]);
    fleet.mute = None;
    fleet.settle();
    check(&fleet, true, false, &["step 1 of 1: waits for `rhumb rollout promote`"]);
    fleet.give(&format!("a promote {} 1", new.hash));
    check(&fleet, true, false, &["its next step waits for the rollout budget"]);
    fleet.settle();
    check(&fleet, false, false, &[]);
}

/// Returns a process in which one workload rolls and another one waits for its place.
fn waiting() -> Harness {
    let mut harness = at_rest(&["a", "b"], &Budget { max_workloads: 1, ..budget("100%", 100) });
    harness.read(reading("r2", &files(&["a", "b"], 2)));
    for name in ["a", "a", "b"] {
        harness.step(&workload(name));
    }
    harness.deliver(usize::MAX);
    harness.keep_ledger();
    harness.engine.process_changes();
    harness
}

/// Takes the ledger that is to be written, and reads it as written; returns its queue.
fn published(harness: &mut Harness) -> Option<Vec<ObjectId>> {
    let (mode, sealing) = (QueueMode::Published, HashCipherStatus::Valid);
    let ledger = harness.engine.poll_ledger(mode, sealing, harness.now)?;
    let queue = ledger.queue.iter().map(|queued| queued.id.clone()).collect();
    harness.engine.handle(Input::Ledger(ledger), harness.now);
    harness.engine.process_changes();
    Some(queue)
}

#[test]
fn a_queue_that_has_changed_is_published_when_its_time_has_come() {
    let mut harness = waiting();
    assert_eq!(harness.engine.view().next_publication(), None, "nobody has asked yet");
    assert_eq!(published(&mut harness), None);
    let due = harness.now + PUBLICATION_INTERVAL;
    assert_eq!(harness.engine.view().next_publication(), Some(due));
    harness.now = due;
    assert_eq!(published(&mut harness), Some(vec![workload("b")]));
    assert_eq!(harness.engine.view().next_publication(), None);
}

// Nobody knows what the ledger says of it then.
#[test]
fn a_queue_is_published_again_where_a_call_about_the_ledger_failed() {
    let mut harness = waiting();
    for expected in [None, Some(vec![workload("b")]), None] {
        assert_eq!(published(&mut harness), expected);
        harness.pass_time(PUBLICATION_INTERVAL);
    }
    harness.engine.handle(Input::LedgerFailed, harness.now);
    let ledger = harness.world.ledger.clone();
    assert!(ledger.queue.is_empty(), "it was lost");
    harness.engine.handle(Input::Ledger(ledger), harness.now);
    harness.engine.process_changes();
    assert_eq!(published(&mut harness), Some(vec![workload("b")]));
}

#[test]
fn a_claimed_workload_that_may_not_be_read_is_reported_once_for_each_reason() {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    harness.world.ledger.claims.insert(elsewhere("api"), theirs(1));
    harness.engine.set_ledger(harness.world.ledger.clone());
    let hide = |harness: &mut Harness, name: &str, why: &str| {
        let hidden = Input::HiddenWorkload { id: elsewhere(name), why: why.into() };
        harness.engine.handle(hidden, harness.now);
        harness.engine.take_newly_hidden()
    };
    assert_eq!(hide(&mut harness, "api", "denied"), [elsewhere("api")]);
    assert_eq!(hide(&mut harness, "api", "denied"), []);
    assert_eq!(hide(&mut harness, "api", "no such namespace"), [elsewhere("api")]);
    assert_eq!(hide(&mut harness, "db", "denied"), [], "nobody has claimed it");
    // It was seen at rest for so long that its claim counts no more.
    for _ in 0..2 {
        harness.engine.observe_foreign_workload(&elsewhere("api"), None, harness.now);
        harness.pass_time(ABANDONED_CLAIM_AGE);
    }
    assert_eq!(hide(&mut harness, "api", "denied"), []);
}

#[test]
fn objects_are_connected_by_each_name_of_one_in_the_other_and_by_a_selector_of_some() {
    let (web, all) = (workload("web"), id("networking.k8s.io", "NetworkPolicy", "shop", "all"));
    let check = |change: &dyn Fn(&mut DesiredObject), expected: bool| {
        let (mut policy, mut selected) =
            ((*desired(&all, 1, "all")).clone(), (*desired(&web, 1, "web")).clone());
        change(&mut policy);
        let template = json!({"metadata": {"labels": {"color": "green"}}, "spec": {"containers": []}});
        selected.labels = SelectableLabels::of(&web, &json!({"spec": {"template": template}}));
        let mut harness = Harness::new(3);
        let both = [("all", Some(Arc::new(policy))), ("web", Some(Arc::new(selected)))];
        harness.read(reading("r1", &both));
        let mut parts = harness.engine.view().connected_parts(&[&all, &web, &config("other")]);
        parts.sort_by_key(Vec::len);
        let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
        assert_eq!(lengths, if expected { vec![1, 2] } else { vec![1, 1, 1] }, "{parts:?}");
    };
    let selecting =
        |labels: serde_json::Value| LabelSelection::of(&all, &json!({"spec": {"podSelector": labels}}));
    check(&|_| (), false);
    check(&|policy| policy.needs = [web.clone()].into(), true);
    check(&|policy| policy.depends_on = [web.clone()].into(), true);
    check(&|policy| policy.config = Some(Box::new(ConfigRole::Uses([web.clone()].into()))), true);
    check(&|policy| policy.selects = selecting(json!({"matchLabels": {"color": "green"}})), true);
    check(&|policy| policy.selects = selecting(json!({"matchLabels": {"color": "blue"}})), false);
    // That says nothing about a connection.
    check(&|policy| policy.selects = selecting(json!({})), false);
}

#[test]
fn of_more_rollouts_than_are_watched_those_of_this_process_come_first() {
    let names: Vec<String> = (0..70).map(|number| format!("a{number:02}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).chain(["web"]).collect();
    let mut harness = at_rest(&all, &Budget { max_workloads: 100, ..budget("100%", 100) });
    harness.read(reading("r2", &files(&["web"], 2)));
    while !matches!(harness.step(&workload("web")), Some(Action::Apply(_))) {}
    harness.deliver(usize::MAX);
    // Somebody else restarts all others.
    for name in &names {
        let rv = harness.world.tick();
        let thing = harness.world.things.get_mut(&workload(name)).unwrap();
        (thing.phase, thing.rv) = (WorkloadPhase::Replacing, rv);
        harness.world.announce(&workload(name));
    }
    harness.deliver(usize::MAX);
    let watched = harness.engine.poll_watches().workloads;
    assert_eq!((watched.len(), watched.contains_key(&workload("web"))), (64, true));
}

#[test]
fn the_usage_says_what_follows_a_failure_and_whether_the_ledger_is_known() {
    for on_failure in [OnFailure::Rollback, OnFailure::Quarantine] {
        let mut engine = Engine::new(Budget { on_failure, ..super::world::budget(3) });
        let usage = engine.view().usage();
        assert_eq!((usage.on_failure, usage.known), (on_failure, false));
        engine.handle_now(Input::Ledger(RolloutLedger::default()));
        assert!(engine.view().usage().known, "{on_failure:?}");
    }
}

#[test]
fn an_eviction_that_is_refused_is_tried_again_after_twice_the_time_up_to_a_bound() {
    let words = json!({"steps": "1"});
    let tight = Budget { max_unavailable: PodAmount::Pods(1), ..super::world::budget(3) };
    let mut fleet = DaemonSetWorld::new(3, tight, &content(1, &words));
    fleet.disruption = DisruptionBudgets::Forbidden;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    for expected in [500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
        let due = fleet.harness.engine.view().next_due(fleet.harness.now).unwrap();
        assert_eq!(due.duration_since(fleet.harness.now).as_millis(), expected);
        fleet.harness.now = due;
        fleet.settle();
    }
}
