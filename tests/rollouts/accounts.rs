//! Steps of a source that acts as a service account: pods are evicted, and `ReplicaSets` scaled, as
//! that account.

use controlplane::AuditEvent;
use serde_json::json;

use crate::failures::{BUDGET, push};
use crate::manifests::Web;
use crate::scales::{await_pods, await_scaled};
use crate::support::{Nodes, Repo, TestNamespace, until};

const STEP: &str = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";

/// Returns a workload with a surge, without which no pods of the new template would have to be
/// taken back.
fn web(image: &str, replicas: u32) -> Web {
    Web::new("web", image).word(STEP).strategy(1, 0).replicas(replicas)
}

#[test]
fn what_a_step_does_to_pods_is_done_as_the_account_of_its_source() {
    let site = TestNamespace::new("steps-account");
    let binding = ["create", "clusterrolebinding", "steps-account", "--clusterrole=cluster-admin"];
    let subject = format!("--serviceaccount={}:worker", site.system());
    site.kubectl(&[&binding[..], &[&subject]].concat());
    let nodes = Nodes::new(&site, 2);
    let files = |image: &str, replicas: u32| {
        let agent = Nodes::daemon_set(&site, "agent", image, STEP, "{}");
        vec![("agent.yaml".to_owned(), agent), web(image, replicas).file()]
    };
    let repo = Repo::new(&files("app:1", 10));
    let text = site.configuration(repo.path(), BUDGET);
    let text = text.replacen("spec:\n", "spec:\n  serviceAccountName: worker\n", 1);
    let window = site.window();
    let daemon = site.configured(&text);
    let available = || site.value("DaemonSet", "agent", "/status/numberAvailable");
    until("a pod is on each node", || available() == json!(nodes.names.len()));
    await_scaled(&site, 10);
    push(&repo, &files("app:2", 10), "Change both");
    await_pods(&site, &[("app:1", 11), ("app:2", 2)]);
    push(&repo, &files("app:2", 100), "Scale one");
    daemon.says(&["took back", "new pods: the step is 1"]);
    await_pods(&site, &[("app:1", 101), ("app:2", 2)]);
    let account = format!("system:serviceaccount:{}:worker", site.system());
    let calls = window.calls();
    let here =
        |call: &&AuditEvent| call.is_write() && call.namespace == site.name && call.resource != "events";
    let writes: Vec<&AuditEvent> = calls.iter().filter(here).collect();
    for (resource, subresource) in [("replicasets", "scale"), ("pods", "eviction"), ("deployments", "")] {
        let is_of = |call: &&&AuditEvent| call.resource == resource && call.subresource == subresource;
        assert!(writes.iter().any(|call| is_of(&call) && call.code < 300), "{resource}/{subresource}");
    }
    for call in writes {
        assert_eq!(call.acted_as, account, "{call:#?}");
    }
}
