//! The requests to the rollout budget: what their grants are for, and what their bounds count.

use super::budget_inputs::waiting;
use super::harness::Harness;
use super::shared_budget::{THEIRS, at_rest, budget, elsewhere, one, publish_tally, tally, theirs};
use super::world::{FIRST, SET, workload};
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::rollout::slot_requests::SlotRequests;
use crate::engine::*;
use crate::object::ObjectId;

fn request(pods: u32) -> SlotRequest {
    SlotRequest {
        priority: SlotPriority::NewContent,
        wave: 0,
        id: workload("web"),
        source: FIRST,
        additional_unavailable: pods,
        reserved: pods,
    }
}

/// Returns the granted request of a workload that takes down one pod.
fn granted() -> SlotRequests {
    let mut requests = SlotRequests::default();
    requests.insert(request(1), theirs(1));
    requests.replace_verdicts([(workload("web"), None)].into());
    requests.add_claim_to_write(&workload("web"));
    assert!(requests.take_stale_mark());
    requests
}

// Nothing was said about the pods that it asks for now.
#[test]
fn the_grant_of_a_request_is_for_no_other_request_and_no_other_claim() {
    let check = |pods: u32, claimed: u32, expected: bool| {
        let mut requests = granted();
        requests.insert(request(pods), theirs(claimed));
        let is_granted = requests.claims_to_write().contains(&workload("web"));
        assert_eq!((is_granted, requests.take_stale_mark()), (expected, !expected), "{pods} {claimed}");
        assert!(requests.requests().iter().eq([&request(pods)]), "{pods} {claimed}");
        assert_eq!(requests.claim_of(&workload("web")), Some(&theirs(claimed)));
    };
    check(1, 1, true);
    check(2, 1, false);
    check(1, 2, false);
}

#[test]
fn nothing_is_left_of_a_request_that_is_withdrawn() {
    let (mut requests, id) = (granted(), workload("web"));
    assert!(requests.remove(&id));
    assert!(requests.take_stale_mark(), "others may start in its place");
    assert!(requests.is_empty() && !requests.contains(&id));
    assert!(requests.claims_to_write().is_empty() && requests.verdicts().is_empty());
    assert!(!requests.remove(&id));
    assert!(!requests.take_stale_mark(), "it had none");
}

// Of a rollout that somebody else began nothing is learnt, and a held step has counted already.
#[test]
fn only_a_claimed_rollout_that_holds_its_slot_lets_one_more_begin_by_its_success() {
    let check = |change: &dyn Fn(&mut Rollout), expected: u32| {
        let mut harness = at_rest(&["a"], &budget("100%", 100));
        let claim = harness.engine.make_claim(FIRST, one("a", 1).hash, 1);
        let mut rollout = Rollout::new(BudgetSlot::Taken, 1, Some(claim), Some(ResourceVersion(0)));
        change(&mut rollout);
        harness.engine.rollouts.in_flight.insert(workload("a"), rollout);
        harness.engine.advance(harness.now);
        assert!(!harness.engine.rollouts.in_flight.contains_key(&workload("a")));
        assert_eq!(harness.engine.usage().window, expected);
    };
    check(&|_| (), 2);
    check(&|rollout| rollout.claim = None, 1);
    check(&|rollout| rollout.slot = BudgetSlot::None, 1);
}

/// Reports starts of this moment, each of a workload in an inventory.
fn report_starts(harness: &mut Harness, begun: &[(ObjectId, &str)]) {
    let (_, at) = harness.engine.rollouts.starts.clock().unwrap();
    let start = |(id, inventory_id): &(ObjectId, &str)| RolloutStart {
        id: id.clone(),
        inventory_id: (*inventory_id).into(),
        at,
        clock: "".into(),
    };
    harness.world.ledger.starts = begun.iter().map(start).collect();
}

#[test]
fn the_bounds_of_a_source_and_of_a_namespace_count_no_start_and_no_pod_of_others() {
    let starts = || BudgetNarrowing { starts_per_minute: Some(5), ..BudgetNarrowing::default() };
    let of_source = BudgetNarrowing { max_unavailable: Some(PodAmount::Percent(50)), ..starts() };
    let namespaces = ["elsewhere", "other", "shop"].map(|name| (name.into(), starts())).into();
    let mut harness = waiting(Budget { namespaces, ..budget("100%", 100) }, of_source);
    report_starts(&mut harness, &[(workload("a"), SET), (workload("b"), SET), (elsewhere("api"), THEIRS)]);
    publish_tally(&mut harness, tally(91, &[], 0));
    let bounds = harness.engine.budget_bounds().into_iter();
    let found: Vec<(BudgetScope, u32, u32)> =
        bounds.map(|bound| (bound.scope, bound.starts.0, bound.unavailable)).collect();
    let namespace = |name: &str| BudgetScope::Namespace(name.into());
    let expected = [
        (BudgetScope::Cluster, 97, 100),
        // Half of its own nine pods.
        (BudgetScope::Source(FIRST, "test".into()), 3, 4),
        (namespace("elsewhere"), 4, u32::MAX),
        (namespace("other"), 5, u32::MAX),
        (namespace("shop"), 3, u32::MAX),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_workload_may_lose_as_many_pods_as_the_narrowest_bound_of_its_scopes_allows() {
    let pods = |count: u32| BudgetNarrowing {
        max_unavailable: Some(PodAmount::Pods(count)),
        ..BudgetNarrowing::default()
    };
    let check = |of_all: &str, of_source: u32, of_namespace: u32| {
        let namespaces = [("other".into(), pods(1)), ("shop".into(), pods(of_namespace))].into();
        let harness = waiting(Budget { namespaces, ..budget(of_all, 100) }, pods(of_source));
        let found = harness.engine.max_unavailable(&workload("a"));
        assert_eq!(found, 2, "{of_all} {of_source} {of_namespace}");
    };
    check("2", 3, 4);
    check("4", 2, 3);
    check("3", 4, 2);
}
