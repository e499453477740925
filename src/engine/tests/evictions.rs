//! The steps of a DaemonSet, over all that can come between.

use std::time::Duration;

use serde_json::{Value, json};

use super::daemon_set_steps::{DaemonSetWorld, DisruptionBudgets, agent, content, spread};
use super::world::{budget, desired, reading, workload};
use crate::engine::*;

fn tight() -> Budget {
    Budget { max_unavailable: PodAmount::Pods(1), ..budget(3) }
}

pub(super) fn steps(list: &str) -> Value {
    json!({"steps": list})
}

pub(super) fn manual(list: &str) -> Value {
    json!({"steps": list, "step-promote": "manual"})
}

pub(super) fn log(fleet: &DaemonSetWorld) -> Vec<&str> {
    fleet.log.iter().map(|name| &**name).collect()
}

#[test]
fn one_node_goes_first_then_half_then_all() {
    let words = steps("1, 50%");
    let mut fleet = DaemonSetWorld::new(5, tight(), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2", "node-3", "node-4", "node-5"]);
    assert_eq!(fleet.overlays, ["", "on-delete step=1", "on-delete step=2", "on-delete step=3", ""]);
    assert_eq!(fleet.away, 1, "one after another");
    assert_eq!(fleet.done(&content(2, &words)).len(), 5);
    fleet.assert_free();
    assert!(!fleet.harness.engine.is_node_watch_needed(), "nobody looks at the nodes any longer than needed");
}

#[test]
fn nodes_that_are_chosen_by_their_labels_go_first_and_closed_ones_last() {
    let words = json!({"steps": "2", "step-nodes": "canary=yes", "step-promote": "manual"});
    let mut fleet = DaemonSetWorld::new(5, tight(), &content(1, &words));
    for name in ["node-3", "node-5"] {
        fleet.node(name).canary = true;
    }
    fleet.node("node-1").cordoned = true;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-3", "node-5"]);
    assert_eq!(fleet.shown(), "on-delete step=1");
    assert!(
        fleet.harness.engine.workloads_in_flight().is_empty(),
        "a step that is held has given its slot back"
    );
    fleet.give(&format!("a promote {} 1", content(2, &words).hash));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-3", "node-5", "node-2", "node-4", "node-1"]);
    assert_eq!(fleet.shown(), "");
}

#[test]
fn a_person_lets_it_go_to_the_end_at_once() {
    let words = manual("1, 2");
    let mut fleet = DaemonSetWorld::new(5, tight(), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1"]);
    fleet.give(&format!("a promote-full {}", content(2, &words).hash));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1"], "the rest is its own controller's");
    assert_eq!(fleet.done(&content(2, &words)).len(), 5);
    assert_eq!(fleet.shown(), "");
}

#[test]
fn as_many_go_at_a_time_as_its_strategy_and_the_budget_allow() {
    fn check(strategy: &Value, most: u32, expected: usize) {
        let words = steps("100%");
        let limit = Budget { max_unavailable: PodAmount::Pods(most), ..budget(3) };
        let mut fleet = DaemonSetWorld::new(6, limit, &spread(1, &words, strategy));
        fleet.commit("r2", &spread(2, &words, strategy));
        fleet.settle();
        assert_eq!(fleet.away, expected, "{strategy} {most}");
        assert_eq!(fleet.done(&spread(2, &words, strategy)).len(), 6);
        fleet.assert_free();
    }
    let three = json!({"rollingUpdate": {"maxUnavailable": 3}});
    check(&json!({}), 4, 1);
    check(&three, 4, 3);
    check(&three, 2, 2);
    check(&json!({"rollingUpdate": {"maxSurge": 1}}), 4, 1);
}

#[test]
fn a_strategy_that_allows_more_takes_no_more_than_was_claimed() {
    let words = steps("100%");
    let wide = Budget { max_unavailable: PodAmount::Pods(4), ..budget(3) };
    let mut fleet = DaemonSetWorld::new(6, wide, &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    while fleet.log.is_empty() {
        assert!(fleet.tick(), "it comes to rest before anything was evicted");
    }
    fleet.commit("r3", &spread(2, &words, &json!({"rollingUpdate": {"maxUnavailable": 3}})));
    fleet.settle();
    assert_eq!(fleet.away, 1);
    assert_eq!(fleet.done(&content(2, &words)).len(), 6);
    fleet.assert_free();
}

#[test]
fn a_pod_that_is_ready_and_not_available_yet_counts_as_away() {
    let words = steps("1");
    let mut fleet = DaemonSetWorld::new(3, tight(), &content(1, &words));
    fleet.pass(Duration::from_secs(5));
    fleet.young = Duration::from_secs(5);
    fleet.commit("r2", &content(2, &words));
    for expected in [&["node-1"][..], &["node-1", "node-2"], &["node-1", "node-2", "node-3"]] {
        fleet.settle();
        assert_eq!(log(&fleet), expected);
        fleet.pass(Duration::from_secs(4));
        assert_eq!(log(&fleet), expected);
        fleet.harness.pass_time(Duration::from_secs(1));
    }
    fleet.settle();
    assert_eq!(fleet.shown(), "");
    assert_eq!(fleet.away, 1);
}

#[test]
fn a_node_that_comes_has_the_new_template_by_itself() {
    let words = manual("50%");
    let mut fleet = DaemonSetWorld::new(4, tight(), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2"]);
    for name in ["node-5", "node-6"] {
        let new = fleet.node("node-1").clone();
        fleet.nodes.insert(name.into(), new);
    }
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2"]);
    assert_eq!(fleet.shown(), "on-delete step=1");
}

#[test]
fn what_a_disruption_budget_forbids_waits_gives_its_slot_back_and_goes_on() {
    let words = steps("1");
    let mut fleet = DaemonSetWorld::new(3, Budget { max_workloads: 1, ..tight() }, &content(1, &words));
    fleet.disruption = DisruptionBudgets::Forbidden;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    let expected = "step 1 of 1: 0 of 1 new pods are ready; pod agent-node-1-0 on node node-1 cannot be evicted: \
                it would violate the pod's disruption budget";
    assert_eq!(fleet.reason(), expected);
    assert_eq!(fleet.harness.engine.workloads_in_flight().len(), 1);
    // It is tried again and again, by the clock alone.
    for _ in 0..40 {
        let due = fleet.harness.engine.next_due(fleet.harness.now).unwrap();
        assert!(due > fleet.harness.now, "it does not turn in circles");
        fleet.harness.now = due;
        fleet.settle();
    }
    assert_eq!(fleet.reason(), expected);
    assert!(fleet.harness.engine.workloads_in_flight().is_empty(), "others may roll meanwhile");
    assert_eq!(fleet.harness.engine.usage().window, 1, "that is no success");
    // Nobody calls that a failure, however long it lasts.
    fleet.pass(Duration::from_hours(1));
    assert!(fleet.harness.world.rejections.is_empty());
    let other = desired(&workload("web"), 1, "web");
    fleet.harness.read(reading("r3", &[("web", Some(other))]));
    fleet.settle();
    fleet.disruption = DisruptionBudgets::Allowed;
    fleet.pass(Duration::from_secs(15));
    assert_eq!(log(&fleet), ["node-1", "node-2", "node-3"]);
    assert_eq!(fleet.shown(), "");
    fleet.assert_free();
}

#[test]
fn a_bad_content_meets_one_node_and_goes_back() {
    let words = steps("50%");
    let mut fleet = DaemonSetWorld::new(4, tight(), &content(1, &words));
    fleet.harness.world.bad.insert(content(2, &words).hash);
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1"]);
    assert_eq!(fleet.done(&content(1, &words)).len(), 4);
    assert_eq!(fleet.overlays, ["", "on-delete step=1", ""]);
    assert!(fleet.reason().contains("InvalidImageName"), "{}", fleet.reason());
    assert_eq!(fleet.harness.world.rejections.len(), 1);
    // It is not tried again.
    fleet.pass(Duration::from_hours(1));
    assert_eq!(log(&fleet), ["node-1"]);
}

#[test]
fn a_new_pod_that_never_gets_ready_fails_by_the_deadline() {
    let (words, two) = (steps("100%"), json!({"rollingUpdate": {"maxUnavailable": 2}}));
    let wide = Budget { max_unavailable: PodAmount::Pods(2), ..budget(3) };
    let mut fleet = DaemonSetWorld::new(4, wide, &spread(1, &words, &two));
    fleet.mute = Some(spread(2, &words, &two).hash);
    // The pod that is not Ready keeps the next one: that is nothing to wait for.
    fleet.disruption = DisruptionBudgets::Once;
    fleet.commit("r2", &spread(2, &words, &two));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1"]);
    fleet.pass(Duration::from_mins(9));
    assert!(fleet.harness.world.rejections.is_empty());
    fleet.pass(Duration::from_mins(2));
    assert_eq!(fleet.done(&spread(1, &words, &two)).len(), 4);
    for text in [
        "no progress for 10m: step 1 of 1: 0 of 4 new pods are ready",
        "; pod agent-node-1-1: it is not ready",
    ] {
        assert!(fleet.reason().contains(text), "{}", fleet.reason());
    }
}

#[test]
fn a_node_that_is_lost_under_its_new_pod_says_nothing_about_the_content() {
    let words = steps("1, 50%");
    let mut fleet = DaemonSetWorld::new(
        4,
        Budget { max_unavailable: PodAmount::Pods(2), ..tight() },
        &content(1, &words),
    );
    fleet.commit("r2", &content(2, &words));
    while fleet.log.is_empty() {
        assert!(fleet.tick(), "it comes to rest before anything was evicted");
    }
    fleet.node("node-1").ready = Readiness::NotReady;
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2", "node-3", "node-4"]);
    assert!(fleet.harness.world.rejections.is_empty());
}

#[test]
fn pods_that_are_unavailable_elsewhere_make_it_wait() {
    let words = steps("100%");
    let mut fleet = DaemonSetWorld::new(3, tight(), &content(1, &words));
    fleet.harness.read(reading("r2", &[("web", Some(desired(&workload("web"), 1, "web")))]));
    fleet.settle();
    fleet.commit("r3", &content(2, &words));
    while fleet.log.is_empty() {
        assert!(fleet.tick(), "it comes to rest before anything was evicted");
    }
    let missing = |fleet: &mut DaemonSetWorld, available| {
        let rv = fleet.harness.world.tick();
        let thing = fleet.harness.world.things.get_mut(&workload("web")).unwrap();
        let phase = if available < 3 { WorkloadPhase::Recovering } else { WorkloadPhase::Settled };
        thing.numbers = Some(ReplicaStatus {
            replicas: 3,
            pods: 3,
            updated: 3,
            ready: available,
            available,
            ..ReplicaStatus::default()
        });
        (thing.phase, thing.rv) = (phase, rv);
        fleet.harness.world.announce(&workload("web"));
        fleet.harness.deliver(usize::MAX);
    };
    missing(&mut fleet, 2);
    // The one whose pod is on its way gets Ready; no other goes.
    for _ in 0..50 {
        missing(&mut fleet, 2);
        fleet.tick();
    }
    assert_eq!(log(&fleet), ["node-1"]);
    assert_eq!(fleet.done(&content(2, &words)), ["node-1"]);
    let expected = "1 of at most 1 pods are unavailable, and this one takes down 1 more";
    assert!(fleet.reason().ends_with(expected), "{}", fleet.reason());
    for _ in 0..50 {
        missing(&mut fleet, 2);
        fleet.harness.pass_time(Duration::from_mins(5));
        fleet.tick();
    }
    assert!(fleet.harness.world.rejections.is_empty(), "that is no fault of its own");
    missing(&mut fleet, 3);
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2", "node-3"]);
    fleet.assert_free();
}

#[test]
fn a_process_that_ends_at_any_point_leaves_the_hold_and_the_next_goes_on() {
    let words = steps("1, 50%");
    for point in 0..60 {
        let mut fleet = DaemonSetWorld::new(4, tight(), &content(1, &words));
        fleet.commit("r2", &content(2, &words));
        for _ in 0..point {
            fleet.tick();
        }
        fleet.restart(tight(), "r2", &content(2, &words));
        fleet.settle();
        assert_eq!(log(&fleet), ["node-1", "node-2", "node-3", "node-4"], "{point}");
        assert_eq!(fleet.shown(), "", "{point}");
        assert_eq!(fleet.away, 1, "{point}");
        fleet.assert_free();
    }
}

#[test]
fn a_lost_node_is_passed_over_and_holds_the_end() {
    // Its taint may come at once, or not at all where the pods live with any.
    for taints in [false, true] {
        let words = steps("1, 50%");
        let mut fleet = DaemonSetWorld::new(
            4,
            Budget { max_unavailable: PodAmount::Pods(2), ..tight() },
            &content(1, &words),
        );
        fleet.taints = taints;
        fleet.node("node-1").ready = Readiness::NotReady;
        fleet.commit("r2", &content(2, &words));
        fleet.settle();
        assert_eq!(log(&fleet), ["node-2", "node-3", "node-4"]);
        assert_eq!(fleet.shown(), "on-delete step=3");
        assert_eq!(fleet.reason(), "all nodes that are Ready have the new pod; node node-1 is not Ready");
        fleet.pass(Duration::from_hours(1));
        assert!(fleet.harness.world.rejections.is_empty());
        assert!(fleet.harness.engine.workloads_in_flight().is_empty());
        fleet.node("node-1").ready = Readiness::Ready;
        fleet.settle();
        assert_eq!(log(&fleet), ["node-2", "node-3", "node-4", "node-1"]);
        assert_eq!(fleet.shown(), "");
        fleet.assert_free();
        // A person need not wait for it: then it is its own controller's.
        let mut fleet = DaemonSetWorld::new(
            3,
            Budget { max_unavailable: PodAmount::Pods(2), ..tight() },
            &content(1, &words),
        );
        fleet.taints = taints;
        fleet.node("node-2").ready = Readiness::NotReady;
        fleet.commit("r2", &content(2, &words));
        fleet.settle();
        fleet.give(&format!("a promote {} 3", content(2, &words).hash));
        fleet.tick();
        fleet.tick();
        assert_eq!((fleet.shown(), log(&fleet)), (String::new(), vec!["node-1", "node-3"]));
        // One that never comes back leaves with its pod.
        let mut fleet = DaemonSetWorld::new(3, tight(), &content(1, &words));
        fleet.taints = taints;
        fleet.node("node-2").ready = Readiness::NotReady;
        fleet.commit("r2", &content(2, &words));
        fleet.settle();
        assert_eq!(fleet.shown(), "on-delete step=3");
        fleet.nodes.remove("node-2");
        fleet.settle();
        assert_eq!(fleet.shown(), "");
    }
}

#[test]
fn nothing_is_evicted_as_long_as_the_nodes_cannot_be_read() {
    let words = steps("1");
    let mut fleet = DaemonSetWorld::new(3, tight(), &content(1, &words));
    fleet.unreadable = true;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert_eq!(fleet.shown(), "on-delete step=1");
    let expected = "step 1 of 1: 0 of 1 new pods are ready; the nodes cannot be read: nodes is forbidden";
    assert_eq!(fleet.reason(), expected);
    assert!(fleet.log.is_empty());
    fleet.unreadable = false;
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2", "node-3"]);
}

#[test]
fn a_node_that_leaves_takes_its_part_of_the_step_along() {
    let words = manual("2");
    let mut fleet = DaemonSetWorld::new(4, tight(), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2"]);
    assert!(fleet.harness.engine.workloads_in_flight().is_empty());
    // The step is short of one again: that one is not taken without a claim.
    fleet.nodes.remove("node-1");
    for _ in 0..100 {
        let evicted = fleet.log.len();
        fleet.tick();
        if fleet.log.len() > evicted {
            assert!(
                fleet.harness.world.ledger.claims.contains_key(&agent()),
                "{:?}",
                fleet.harness.world.ledger
            );
        }
    }
    assert_eq!(log(&fleet), ["node-1", "node-2", "node-3"]);
    assert_eq!(fleet.shown(), "on-delete step=1");
    assert!(fleet.harness.engine.workloads_in_flight().is_empty());
}

#[test]
fn whoever_may_not_evict_sees_which_right_is_missing_in_the_same_words_each_time() {
    let words = steps("2");
    let mut fleet = DaemonSetWorld::new(3, tight(), &content(1, &words));
    fleet.disruption = DisruptionBudgets::Denied;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    let expected = "step 1 of 1: 0 of 2 new pods are ready; no pod of it can be evicted: the user may not create \
                pods/eviction in namespace shop";
    assert_eq!(fleet.reason(), expected);
    // Also while it is asked for once more.
    fleet.harness.pass_time(Duration::from_secs(1));
    let due = fleet.harness.engine.pods_to_evict(fleet.harness.now);
    assert_eq!(due.len(), 1);
    assert_eq!(fleet.reason(), expected);
    let lacks = "the user may not create pods/eviction in namespace shop".into();
    fleet.harness.engine.record_eviction(&due[0], &EvictionOutcome::Denied(lacks), fleet.harness.now);
    fleet.pass(Duration::from_mins(5));
    assert_eq!(fleet.reason(), expected);
    // A reader of the cluster alone finds it in the rollout ledger.
    let queue = fleet.harness.engine.rollout_queue();
    let words: Vec<String> = queue.iter().map(ToString::to_string).collect();
    assert_eq!(words, [format!("waiting: {expected}")]);
    fleet.disruption = DisruptionBudgets::Allowed;
    fleet.pass(Duration::from_mins(5));
    assert_eq!(fleet.log.len(), 3, "{:?}", fleet.log);
}

#[test]
fn what_is_paused_evicts_nothing() {
    let words = manual("2");
    let mut fleet = DaemonSetWorld::new(4, tight(), &content(1, &words));
    fleet.disruption = DisruptionBudgets::Forbidden;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    let paused = PauseIntent { token: "a".into(), reason: "lunch".into() };
    fleet.ask(ObjectIntents { paused: Some(paused), ..ObjectIntents::default() });
    fleet.disruption = DisruptionBudgets::Allowed;
    fleet.pass(Duration::from_hours(1));
    assert!(fleet.log.is_empty(), "{:?}", fleet.log);
    assert!(fleet.harness.world.rejections.is_empty());
    assert!(fleet.reason().ends_with("it is paused: lunch"), "{}", fleet.reason());
    fleet.ask(ObjectIntents::default());
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-2"]);
}

// The loop has a turn at each resync at least, which may be rarer than a deadline is long.
#[test]
fn what_is_on_hold_evicts_nothing_until_its_end_and_has_its_whole_deadline_then() {
    const HOLD: Duration = Duration::from_hours(1);
    fn check(turn: Duration) {
        let words = manual("2");
        let mut fleet = DaemonSetWorld::new(4, tight(), &content(1, &words));
        fleet.disruption = DisruptionBudgets::Forbidden;
        fleet.commit("r2", &content(2, &words));
        fleet.settle();
        let begin = fleet.harness.now;
        let until = Some(jiff::Timestamp::UNIX_EPOCH + HOLD);
        let hold = HoldIntent { token: "a".into(), until, reason: "heap dump".into() };
        fleet.ask(ObjectIntents { hold: Some(hold), ..ObjectIntents::default() });
        fleet.disruption = DisruptionBudgets::Allowed;
        let mut pass = |time: Duration| {
            fleet.harness.pass_time(time);
            let passed = fleet.harness.now - begin;
            fleet.harness.engine.set_clock(fleet.harness.now, jiff::Timestamp::UNIX_EPOCH + passed);
            fleet.settle();
            (passed, log(&fleet).len(), fleet.reason())
        };
        pass(Duration::ZERO);
        let mut left = HOLD;
        while left > turn {
            left -= turn;
            let (passed, evicted, reason) = pass(turn);
            assert_eq!(evicted, 0, "after {passed:?}");
            assert!(reason.starts_with("on hold until 1970-01-01T01:00:00Z: heap dump"), "{reason}");
        }
        // The turn at its end is a moment late, as every one.
        pass(left + Duration::from_millis(5));
        assert_eq!(log(&fleet), ["node-1", "node-2"], "turns of {turn:?}");
        assert!(fleet.harness.world.rejections.is_empty(), "turns of {turn:?}");
    }
    for minutes in [5, 25, 59] {
        check(Duration::from_mins(minutes));
    }
}

#[test]
fn a_pause_that_is_lifted_after_the_deadline_is_no_failure() {
    let words = manual("2");
    let mut fleet = DaemonSetWorld::new(4, tight(), &content(1, &words));
    fleet.disruption = DisruptionBudgets::Forbidden;
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    let paused = PauseIntent { token: "a".into(), reason: "lunch".into() };
    fleet.ask(ObjectIntents { paused: Some(paused), ..ObjectIntents::default() });
    fleet.disruption = DisruptionBudgets::Allowed;
    fleet.settle();
    fleet.harness.pass_time(Duration::from_hours(2));
    fleet.ask(ObjectIntents::default());
    fleet.settle();
    assert!(fleet.harness.world.rejections.is_empty());
    assert_eq!(log(&fleet), ["node-1", "node-2"]);
}

#[test]
fn a_newer_content_begins_anew_and_the_older_one_ends_it() {
    let words = manual("1");
    let mut fleet = DaemonSetWorld::new(3, tight(), &content(1, &words));
    fleet.commit("r2", &content(2, &words));
    fleet.settle();
    fleet.commit("r3", &content(3, &words));
    fleet.settle();
    assert_eq!(log(&fleet), ["node-1", "node-1"]);
    assert_eq!(fleet.shown(), "on-delete step=1");
    assert_eq!(fleet.done(&content(3, &words)), ["node-1"]);
    fleet.commit("r4", &content(1, &words));
    fleet.settle();
    assert_eq!(fleet.shown(), "");
    assert_eq!(fleet.done(&content(1, &words)).len(), 3);
    assert_eq!(log(&fleet), ["node-1", "node-1"]);
    fleet.assert_free();
}

#[test]
fn what_is_let_out_of_its_steps_takes_down_no_more_than_may_be_unavailable() {
    let (words, wide) = (manual("1"), json!({"rollingUpdate": {"maxUnavailable": "100%"}}));
    let (first, second) = (spread(1, &words, &wide), spread(2, &words, &wide));
    let mut fleet = DaemonSetWorld::new(4, tight(), &first);
    fleet.commit("r2", &second);
    fleet.settle();
    assert_eq!(fleet.shown(), "on-delete step=1");
    fleet.give(&format!("all promote-full {}", second.hash));
    fleet.settle();
    assert_eq!(fleet.overlays, ["", "on-delete step=1", "narrow=1", ""]);
    assert_eq!(fleet.done(&second).len(), 4);
    fleet.assert_free();
}
