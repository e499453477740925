//! Sets that are restarted for configuration that changed, held against the budget.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::failures::{BUDGET, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{DEFAULT_TIMEOUT, Nodes, Repo, TestNamespace, eventually, until};

const WORD: &str = "rhumb.dev/restart-on-change: \"true\"";
const HASH: &str = "/metadata/annotations/rhumb.dev~1config-hash";

/// Returns the uids of the pods of `app`, where there are so many, all are Ready, and all were
/// started with these data.
fn started(site: &TestNamespace<'_>, count: usize, hash: &Value) -> Result<BTreeSet<String>, Value> {
    let pods = site.api.list(&site.at("Pod", ""));
    let is_ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        conditions.is_some_and(|all| all.iter().any(ready)) && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let has = |pod: &Value| pod.pointer(HASH).unwrap_or(&Value::Null) == hash;
    if pods.len() == count && pods.iter().all(|pod| is_ready(pod) && has(pod)) {
        return Ok(pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect());
    }
    Err(json!(pods.iter().map(|pod| &pod["status"]["conditions"]).collect::<Vec<_>>()))
}

/// Checks that each pod is replaced, once, and within the budget.
fn is_restarted(
    site: &TestNamespace<'_>,
    kind: &str,
    count: usize,
    files: &dyn Fn(&str) -> Vec<(String, String)>,
) {
    let repo = Repo::new(&files("one"));
    let budget = BUDGET.replace("maxUnavailable: 2", "maxUnavailable: 1");
    let _daemon = site.configured(&site.configuration(repo.path(), &budget));
    let wait = |hash: &Value| {
        eventually("all pods are there", DEFAULT_TIMEOUT, || started(site, count, hash));
        site.await_free_budget();
        // The consequences of the controller's last status are over too.
        started(site, count, hash).unwrap()
    };
    let before = wait(&Value::Null);
    until("it tells its data", || {
        site.value(kind, "app", "/metadata/annotations/rhumb.dev~1config").is_string()
    });
    let (observer, window) = (Observer::new(site), site.window());
    let template = || site.value(kind, "app", &format!("/spec/template{HASH}"));
    push(&repo, &files("two"), "Change the configuration");
    until("its template tells the data", || template().is_string());
    let hash = template();
    let after = wait(&hash);
    assert!(before.is_disjoint(&after), "{before:?} {after:?}");
    assert_eq!(template(), hash);
    let restarts = window.writes().into_iter().filter(|event| event.code < 300 && event.name == "app");
    assert_eq!(restarts.count(), 1);
    assert_eq!(observer.judge(Bounds { workloads: 1, pods: 1 }).pods, 1);
}

#[test]
fn a_stateful_set_is_restarted_by_its_configuration() {
    let site = TestNamespace::new("restart-set");
    let set = Web::of("StatefulSet", "app", "app:1").uses("env").word(WORD).fault("ready-delay: 300ms");
    is_restarted(&site, "StatefulSet", 3, &|value| vec![set.file(), config("env", value)]);
}

#[test]
fn a_daemon_set_is_restarted_by_its_configuration() {
    let site = TestNamespace::new("restart-nodes");
    let _nodes = Nodes::new(&site, 3);
    let text = Nodes::daemon_set(&site, "app", "app:1", WORD, "{controlplane/ready-delay: 300ms}");
    let text = format!("{text}        envFrom: [{{configMapRef: {{name: env}}}}]\n");
    is_restarted(&site, "DaemonSet", 3, &|value| {
        vec![("app.yaml".to_owned(), text.clone()), config("env", value)]
    });
}
