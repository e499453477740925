//! The steps of a DaemonSet beside other rollouts, held against the budget.

use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, await_image, push};
use crate::manifests::Web;
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{Nodes, Repo, Site, until};

/// Killed after each node, and beside rollouts of others, it takes down no more than the budget allows, and no node
/// twice.
#[test]
fn the_budget_holds_over_evictions_and_whatever_dies_between_them() {
    let site = Site::new("rollouts-nodes");
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
    let overlay = || site.value("DaemonSet", "agent", "/metadata/annotations/rhumb.dev~1overlay");
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
