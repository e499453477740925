//! The guards of the evictions of a DaemonSet in steps: what lets no pod go, or no further one.

use std::time::Duration;

use serde_json::json;

use super::daemon_set_steps::{DaemonSetWorld, DisruptionBudgets, agent, content, spread};
use super::evictions::{log, manual, steps};
use super::world::{FIRST, budget, workload};
use crate::engine::rollout::daemon_set_steps::SLOT_RETURN_DELAY;
use crate::engine::rollout::step_overlay::StepState;
use crate::engine::*;
use crate::object::ObjectId;

fn limit(pods: u32) -> Budget {
    Budget { max_unavailable: PodAmount::Pods(pods), ..budget(3) }
}

/// Returns the nodes whose pods go after this time, as the engine knows the cluster now.
fn evicted_nodes(fleet: &mut DaemonSetWorld, after: Duration) -> Vec<String> {
    let evicted = fleet.harness.engine.pods_to_evict(fleet.harness.now + after);
    evicted.iter().map(|pod| pod.node.to_string()).collect()
}

/// Goes on until the first pod was evicted.
fn evict_first(fleet: &mut DaemonSetWorld) {
    while fleet.log.is_empty() {
        assert!(fleet.tick(), "it comes to rest before anything was evicted");
    }
}

/// Returns a DaemonSet whose disruption budget refuses the first eviction just now.
fn refused() -> DaemonSetWorld {
    let words = steps("1");
    let mut fleet = DaemonSetWorld::new(3, limit(1), &content(1, &words));
    fleet.disruption = DisruptionBudgets::Forbidden;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    fleet
}

// Between the failure of its first new pod and the rollback, the pods of other nodes are due.
#[test]
fn a_rollout_that_has_failed_evicts_no_further_pod_and_needs_no_node() {
    let (words, two) = (steps("100%"), json!({"rollingUpdate": {"maxUnavailable": 2}}));
    let mut fleet = DaemonSetWorld::new(4, limit(2), &spread(1, &words, &two));
    fleet.harness.world.bad.insert(spread(2, &words, &two).hash);
    fleet.disruption = DisruptionBudgets::Once;
    fleet.commit("r2", &spread(2, &words, &two));
    evict_first(&mut fleet);
    assert_eq!(log(&fleet), ["node-1"]);
    fleet.harness.pass_time(Duration::from_secs(1));
    assert!(fleet.harness.engine.is_node_watch_needed());
    assert_eq!(evicted_nodes(&mut fleet.clone(), Duration::ZERO), ["node-2"]);
    fleet.deliver_pods();
    fleet.harness.engine.advance(fleet.harness.now);
    assert!(!fleet.harness.engine.is_in_progress(&agent()));
    assert!(evicted_nodes(&mut fleet, Duration::ZERO).is_empty());
    assert!(!fleet.harness.engine.is_node_watch_needed());
}

#[test]
fn a_rollout_that_a_person_has_let_out_of_its_steps_needs_no_node() {
    let words = manual("1, 2");
    let mut fleet = DaemonSetWorld::new(5, limit(1), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert!(fleet.harness.engine.is_node_watch_needed());
    fleet.give(&format!("a promote-full {}", content(2, &words).hash));
    while !fleet.shown().is_empty() {
        assert!(fleet.tick(), "it stays at its step");
    }
    fleet.tick();
    assert!(fleet.harness.engine.is_in_progress(&agent()));
    assert!(!fleet.harness.engine.is_node_watch_needed());
}

#[test]
fn a_lost_node_that_has_the_newest_pod_does_not_hold_the_end() {
    let words = steps("1");
    let mut fleet = DaemonSetWorld::new(3, limit(1), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    while fleet.done(&content(2, &words)).is_empty() {
        assert!(fleet.tick(), "it comes to rest before any node is done");
    }
    fleet.node("node-1").ready = Readiness::NotReady;
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2", "node-3"]);
    assert_eq!(fleet.shown(), "");
}

#[test]
fn a_person_who_lets_it_go_on_has_no_lost_node_waited_for() {
    let words = steps("1, 50%");
    let mut fleet = DaemonSetWorld::new(3, limit(2), &content(1, &words));
    fleet.node("node-2").ready = Readiness::NotReady;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    let held = fleet.harness.engine.held_daemon_set_step(&agent());
    assert_eq!(held, Some(&HeldStep::LostNode("node-2".into())));
    fleet.give(&format!("a promote {} 3", content(2, &words).hash));
    fleet.harness.carry_out();
    fleet.harness.engine.advance(fleet.harness.now);
    assert!(evicted_nodes(&mut fleet, Duration::ZERO).is_empty());
    assert_eq!(fleet.harness.engine.held_daemon_set_step(&agent()), None);
}

#[test]
fn a_step_that_waits_for_a_person_lacks_no_pods() {
    let words = manual("1");
    let mut fleet = DaemonSetWorld::new(3, limit(1), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    evict_first(&mut fleet);
    let held = fleet.harness.engine.held_daemon_set_step(&agent());
    let lacks = StepRequirement::Pods { ready: 0, target: 1 };
    assert!(matches!(held, Some(HeldStep::Pods(wait, _)) if wait.lacks == lacks), "{held:?}");
    fleet.settle();
    assert_eq!((fleet.shown(), log(&fleet)), ("on-delete step=1".to_owned(), vec!["node-1"]));
    assert_eq!(fleet.harness.engine.held_daemon_set_step(&agent()), None);
}

// Only the pods on nodes that are Ready prove anything.
#[test]
fn a_new_pod_on_a_lost_node_keeps_no_slot_while_the_other_evictions_are_refused() {
    let words = steps("100%");
    let mut fleet = DaemonSetWorld::new(3, limit(2), &content(1, &words));
    fleet.disruption = DisruptionBudgets::Once;
    fleet.commit("r2", &content(2, &words));
    evict_first(&mut fleet);
    fleet.node("node-1").ready = Readiness::NotReady;
    fleet.settle();
    assert_eq!(fleet.harness.engine.workloads_in_flight().len(), 1);
    for millis in [500, 1000, 2000, 4000, 8000] {
        fleet.pass(Duration::from_millis(millis));
    }
    assert_eq!(log(&fleet), ["node-1"]);
    assert!(fleet.harness.engine.workloads_in_flight().is_empty(), "others may roll meanwhile");
    fleet.pass(Duration::from_hours(1));
    assert!(fleet.harness.world.rejections.is_empty(), "that is no fault of the content");
}

#[test]
fn a_refused_daemon_set_rests_from_its_delay_on() {
    let mut fleet = refused();
    let begin = fleet.harness.now;
    for millis in [500, 1000, 2000, 4000] {
        fleet.pass(Duration::from_millis(millis));
    }
    let next = begin + Duration::from_millis(15_500);
    let just_before = SLOT_RETURN_DELAY.saturating_sub(Duration::from_millis(1));
    for (passed, expected) in [(just_before, None), (SLOT_RETURN_DELAY, Some(StepState::Held(Some(next))))] {
        let found = fleet.harness.engine.resting_step(&agent(), begin + passed);
        assert_eq!(found, expected, "after {passed:?}");
    }
}

// The controller of any other workload goes on by itself, so its deadline counts.
#[test]
fn only_a_daemon_set_rests_where_nobody_may_evict_its_pods() {
    let mut fleet = refused();
    let now = fleet.harness.now;
    assert_eq!(fleet.harness.engine.resting_step(&agent(), now), None);
    fleet.harness.engine.sources[FIRST].declared.writes = SourceWrites::Observed;
    for (id, expected) in [(agent(), Some(StepState::Held(None))), (workload("web"), None)] {
        assert_eq!(fleet.harness.engine.resting_step(&id, now), expected, "{id}");
    }
}

/// The pod of the first node, as it is shown after its eviction was accepted.
#[derive(Clone, Copy, Debug)]
enum EvictedPod {
    Unchanged,
    Terminating,
    Gone,
}

#[test]
fn an_accepted_eviction_counts_until_its_pod_is_shown_to_end_and_for_ten_seconds_at_most() {
    let check = |shown: EvictedPod, millis: u64, expected: &[&str], until: Option<u64>| {
        let words = steps("100%");
        let mut fleet = DaemonSetWorld::new(3, limit(1), &content(1, &words));
        fleet.commit("r2", &content(2, &words));
        evict_first(&mut fleet);
        let known = fleet.harness.engine.rollouts.in_flight[&agent()].pods.clone().unwrap();
        let mut pods = (*known).clone();
        assert_eq!(pods.pods[0].node.as_deref(), Some("node-1"));
        match shown {
            EvictedPod::Unchanged => {}
            EvictedPod::Terminating => pods.pods[0].terminating = true,
            EvictedPod::Gone => pods.pods = known.pods.iter().skip(1).cloned().collect(),
        }
        fleet.harness.engine.record_pods(&agent(), pods);
        let evicted = evicted_nodes(&mut fleet, Duration::from_millis(millis));
        assert_eq!(evicted, expected, "{shown:?} after {millis} ms");
        let until = until.map(|millis| fleet.harness.now + Duration::from_millis(millis));
        assert_eq!(fleet.harness.engine.next_eviction_due(), until, "{shown:?} after {millis} ms");
    };
    check(EvictedPod::Unchanged, 0, &[], Some(10_000));
    check(EvictedPod::Unchanged, 9_999, &[], Some(10_000));
    // It is judged anew, and goes first again.
    check(EvictedPod::Unchanged, 10_000, &["node-1"], None);
    check(EvictedPod::Terminating, 1, &[], None);
    check(EvictedPod::Gone, 1, &[], None);
}

// The claim of a step that has rested is of no pods.
#[test]
fn a_claim_bounds_the_pods_that_go_at_a_time_unless_it_is_of_none() {
    let (words, three) = (steps("100%"), json!({"rollingUpdate": {"maxUnavailable": 3}}));
    let mut fleet = DaemonSetWorld::new(6, limit(4), &spread(1, &words, &three));
    fleet.disruption = DisruptionBudgets::Forbidden;
    fleet.commit("r2", &spread(2, &words, &three));
    fleet.settle();
    for (reserved, expected) in [(3, 3), (2, 2), (0, 3)] {
        let mut fleet = fleet.clone();
        let rollout = fleet.harness.engine.rollouts.in_flight.get_mut(&agent()).unwrap();
        assert_eq!(rollout.slot, BudgetSlot::Taken);
        rollout.reserved = reserved;
        let evicted = evicted_nodes(&mut fleet, Duration::from_secs(5));
        assert_eq!(evicted.len(), expected, "{reserved} reserved");
    }
}

#[test]
fn the_state_of_a_step_is_the_reason_of_a_decision_that_does_nothing_for_no_other_reason() {
    let mut fleet = refused();
    let mut check = |id: &ObjectId, decision: Decision, is_explained: bool| {
        let found = fleet.harness.engine.advance_daemon_set(id, decision.clone());
        let has_step = matches!(found.reason, Some(Reason::Step(HeldStep::Pods(..))));
        assert_eq!((has_step, found == decision), (is_explained, !is_explained), "{id} {decision:?}");
    };
    check(&agent(), Decision::act(Action::Nothing), true);
    check(&agent(), Decision::act(Action::Lookup), false);
    check(&agent(), Decision::wait(Reason::Claiming), false);
    check(&workload("web"), Decision::act(Action::Nothing), false);
}
