//! The steps of a DaemonSet beside other rollouts, held against the budget.

use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, await_image, push};
use crate::manifests::Web;
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{Nodes, Repo, TestNamespace, until};

const OVERLAY: &str = "/metadata/annotations/rhumb.dev~1overlay";

/// Kills the daemon after each node, beside rollouts of others. It takes down no more than the
/// budget allows, and no node twice.
#[test]
fn the_budget_holds_over_evictions_and_whatever_dies_between_them() {
    let site = TestNamespace::new("rollouts-nodes");
    let nodes = Nodes::new(&site, 4);
    let words = "rhumb.dev/steps: \"1, 50%\"";
    let agent = |image: &str| {
        let text = Nodes::daemon_set(&site, "agent", image, words, "{controlplane/ready-delay: 300ms}");
        let wide = "  updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}\n  selector:";
        ("agent.yaml".to_owned(), text.replace("  selector:", wide))
    };
    let files =
        |image: &str| vec![agent(image), Web::new("api", image).file(), Web::new("batch", image).file()];
    let status = |key: &str| site.value("DaemonSet", "agent", &format!("/status/{key}"));
    let repo = Repo::new(&files("app:1"));
    let configuration = site.configuration(repo.path(), BUDGET);
    let mut daemon = site.configured(&configuration);
    until("all are there", || status("numberAvailable") == json!(4));
    await_image(&site, "api", "app:1");
    await_image(&site, "batch", "app:1");
    site.await_free_budget();
    let (observer, window) = (Observer::new(&site), site.window());
    push(&repo, &files("app:2"), "Change all");
    for count in 1..=4_u64 {
        until("one more is new", || status("updatedNumberScheduled").as_u64() >= Some(count));
        daemon.kill();
        daemon = site.configured(&configuration);
    }
    let overlay = || site.value("DaemonSet", "agent", OVERLAY);
    until("it is let go", || status("numberAvailable") == json!(4) && overlay() == Value::Null);
    await_image(&site, "api", "app:2");
    await_image(&site, "batch", "app:2");
    site.await_free_budget();
    let most = observer.judge(Bounds { workloads: 3, ..BOUNDS });
    assert!(most.pods > 0, "{most:?}");
    let evicted =
        window.writes().into_iter().filter(|event| event.resource.starts_with("pods") && event.code == 201);
    assert_eq!(evicted.count(), nodes.names.len());
}

/// Runs the same daemon twice, as by mistake or while one replaces the other: both step one
/// DaemonSet.
#[test]
fn two_daemons_step_one_daemon_set_within_the_budgets() {
    let site = TestNamespace::new("rollouts-nodes-two");
    let _nodes = Nodes::new(&site, 4);
    let words = "rhumb.dev/steps: \"1, 50%\"";
    let agent = |image: &str| {
        let text = Nodes::daemon_set(&site, "agent", image, words, "{controlplane/ready-delay: 300ms}");
        let wide = "  updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}\n  selector:";
        vec![("agent.yaml".to_owned(), text.replace("  selector:", wide))]
    };
    let status = |key: &str| site.value("DaemonSet", "agent", &format!("/status/{key}"));
    let limit = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "agent"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "agent"}}},
    });
    let repo = Repo::new(&agent("app:1"));
    let (configuration, other) = (site.configuration(repo.path(), BUDGET), site.with_empty_state());
    let _both = (site.configured(&configuration), other.configured(&configuration));
    until("all are there", || status("numberAvailable") == json!(4));
    site.api.create(&site.at("PodDisruptionBudget", ""), "setup", &limit);
    let allowed = || site.value("PodDisruptionBudget", "agent", "/status/disruptionsAllowed") == json!(1);
    until("the disruption budget counts", allowed);
    site.await_free_budget();
    let (observer, window) = (Observer::new(&site), site.window());
    push(&repo, &agent("app:2"), "Change it");
    let overlay = || site.value("DaemonSet", "agent", OVERLAY);
    observer.await_state("it has been under way", "DaemonSet", |object| {
        object.pointer(OVERLAY).is_some_and(Value::is_string)
    });
    until("it is let go", || {
        status("updatedNumberScheduled") == json!(4)
            && status("numberAvailable") == json!(4)
            && overlay() == Value::Null
    });
    site.await_free_budget();
    // The budget alone would allow two at a time.
    assert_eq!(observer.judge(Bounds { workloads: 1, pods: 1 }).pods, 1);
    let evicted =
        window.writes().into_iter().filter(|event| event.resource.starts_with("pods") && event.code == 201);
    assert!(evicted.count() >= 4, "each pod is evicted");
}
