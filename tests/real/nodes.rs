//! A canary on a node that is stopped, and on one whose kubelet starts anew.

use serde_json::json;

use crate::second_node::SecondNode;
use crate::site::{BUDGET, RealSite, SLOW_TIMEOUT, image_of, uids};
use crate::support::{eventually, until, yaml};
use crate::workload::{CANARY, Workload};

const HELD: &str = "held at step 1 of 1";

fn web(image: &str) -> Workload {
    Workload::new("web", image).annotation(CANARY).on_second_node()
}

/// Has the canary go on from its step, to the end of the rollout.
fn promote(place: &RealSite, after: &Workload) {
    place.site.order(&["rollout", "promote", "deploy/web"], &["promoted"]);
    place.await_rollout(after);
    place.await_success();
}

#[test]
fn a_step_waits_for_a_node_that_is_stopped_and_goes_on() {
    let (before, after) = (web("app:1"), web("app:2").variable("READY_AFTER", "5s"));
    let Some(node) = SecondNode::take() else { return };
    // The cluster takes most of a minute until it misses a node.
    let budget = BUDGET.replace("deadline: 90s", "deadline: 5m");
    let Some(place) = RealSite::with_budget("node-stopped", &budget, &[before.file()]) else { return };
    place.await_rollout(&before);
    place.site.await_free_budget();
    let old = uids(&place.pods("web"));
    place.push(&[after.file()], "Change the image");
    until("the node has the new pod", || {
        place
            .pods("web")
            .iter()
            .any(|pod| image_of(pod) == after.image() && pod["status"]["phase"] == "Running")
    });
    node.signal("STOP");
    until("the node is missed", || !node.is_ready());
    until("its pods are", || {
        place.site.value("Deployment", "web", "/status/unavailableReplicas") == json!(4)
    });
    // The controller has counted without them, and rhumb goes on with what it hears of meanwhile.
    place.push(&[("late.yaml".to_owned(), yaml::config_map("late", "key", "one"))], "Add another object");
    place.site.await_data("late", "key", "one");
    let overlay = place.site.value("Deployment", "web", "/metadata/annotations/rhumb.dev~1overlay");
    assert_eq!(overlay, json!("surge=1 step=1"));
    let meanwhile = uids(&place.pods("web"));
    assert!(old.is_subset(&meanwhile) && meanwhile.len() == 4, "{old:?} {meanwhile:?}");
    node.signal("CONT");
    place.await_ready(&before, 3);
    place.await_ready(&after, 1);
    place.await_words(&["rollout", "status", "deploy/web"], HELD);
    assert_eq!(uids(&place.pods("web")), meanwhile, "no pod was replaced for it");
    promote(&place, &after);
}

#[test]
fn a_canary_is_held_through_a_new_start_of_its_kubelet() {
    let (before, after) = (web("app:1"), web("app:2"));
    let Some(node) = SecondNode::take() else { return };
    let Some(place) = RealSite::new("node-restarted", &[before.file()]) else { return };
    place.await_rollout(&before);
    place.site.await_free_budget();
    place.push(&[after.file()], "Change the image");
    place.await_words(&["rollout", "status", "deploy/web"], HELD);
    place.await_ready(&after, 1);
    let held = uids(&place.pods("web"));
    node.signal("KILL");
    let last = node.heartbeat();
    eventually("the new kubelet is there", SLOW_TIMEOUT, || {
        let now = node.heartbeat();
        if now == last { Err(now) } else { Ok(()) }
    });
    place.await_ready(&before, 3);
    place.await_ready(&after, 1);
    place.await_words(&["rollout", "status", "deploy/web"], HELD);
    assert_eq!(uids(&place.pods("web")), held);
    promote(&place, &after);
}
