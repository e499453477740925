//! Steps of a DaemonSet, whose pods are evicted.

use serde_json::json;

use crate::site::{RealSite, uids};
use crate::support::until;
use crate::workload::Workload;

#[test]
fn a_disruption_budget_holds_an_eviction_until_it_allows_it() {
    let agent = |image: &str| Workload::of("DaemonSet", "agent", image).annotation("rhumb.dev/steps: \"1\"");
    let Some(place) = RealSite::new("evictions", &[agent("app:1").file()]) else { return };
    place.await_rollout(&agent("app:1"));
    place.site.await_free_budget();
    let limit = |available| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "agent"},
            "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": "agent"}}},
        })
    };
    place.site.api.create(&place.site.at("PodDisruptionBudget", ""), "setup", &limit(1));
    until("it is counted", || {
        place.site.value("PodDisruptionBudget", "agent", "/status/currentHealthy") == json!(1)
    });
    let before = uids(&place.pods("agent"));
    place.push(&[agent("app:2").file()], "Change the image");
    place.daemon().says(&["cannot be evicted", "The disruption budget agent needs 1 healthy pods"]);
    let allows_none = "PodDisruptionBudget agent allows none of its pods to be evicted now";
    place.await_words(&["why", "ds/agent"], allows_none);
    // It is Ready, and serves as before.
    assert_eq!(uids(&place.await_ready(&agent("app:1"), 1)), before);
    place.site.api.merge(&place.site.at("PodDisruptionBudget", "agent"), "setup", &limit(0));
    place.await_rollout(&agent("app:2"));
    place.await_success();
}
