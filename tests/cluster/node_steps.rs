//! The steps of a DaemonSet: node by node, by evictions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Daemon, Nodes, Repo, TestNamespace, at, eventually, until};

const BUDGET: &str = "budget: {soak: 0s, maxUnavailable: 1}";

/// Returns a DaemonSet on the nodes of this test, with annotations of its own.
fn agent(site: &TestNamespace<'_>, image: &str, words: &str) -> String {
    Nodes::daemon_set(site, "agent", image, words, "{}")
}

fn overlay(site: &TestNamespace<'_>) -> Value {
    site.value("DaemonSet", "agent", "/metadata/annotations/rhumb.dev~1overlay")
}

/// Returns the image of each node's pod.
fn images(site: &TestNamespace<'_>) -> BTreeMap<String, String> {
    let pods = site.api.list(&site.at("Pod", ""));
    let alive = pods.iter().filter(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    alive.map(|pod| (text(&pod["spec"]["nodeName"]), text(&pod["spec"]["containers"][0]["image"]))).collect()
}

/// Returns the nodes, by their numbers, whose pods have an image.
fn with(site: &TestNamespace<'_>, image: &str) -> BTreeSet<usize> {
    // A pod that no node has yet has no number.
    let found = images(site).into_iter().filter(|(node, found)| found == image && !node.is_empty());
    found.map(|(node, _)| node.rsplit('-').next().unwrap().parse().unwrap()).collect()
}

#[track_caller]
fn await_nodes(site: &TestNamespace<'_>, image: &str, expected: &[usize]) {
    let expected: BTreeSet<usize> = expected.iter().copied().collect();
    eventually(&format!("{image} runs where it should"), DEFAULT_TIMEOUT, || match with(site, image) {
        found if found == expected => Ok(()),
        _ => Err(format!("{:?}, not {expected:?}", images(site))),
    });
}

/// Waits until all pods of the newest template are Ready.
#[track_caller]
fn await_ready(site: &TestNamespace<'_>, count: usize) {
    until("its pods are ready", || site.value("DaemonSet", "agent", "/status/numberReady") == json!(count));
}

fn begun(site: &TestNamespace<'_>, repo: &Repo, nodes: &Nodes, settings: &str) -> Daemon {
    let daemon = site.configured(&site.configuration(repo.path(), settings));
    await_nodes(site, "agent:1", &(1..=nodes.names.len()).collect::<Vec<_>>());
    await_ready(site, nodes.names.len());
    daemon
}

#[test]
fn a_daemon_set_goes_from_one_node_to_half_of_them_to_all() {
    let site = TestNamespace::new("node-steps-auto");
    let nodes = Nodes::new(&site, 4);
    let words = "rhumb.dev/steps: \"1, 50%\", rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let daemon = begun(&site, &repo, &nodes, BUDGET);
    assert_eq!(overlay(&site), Value::Null, "a creation has no steps");
    assert_eq!(site.value("DaemonSet", "agent", "/spec/updateStrategy/type"), json!("RollingUpdate"));
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    await_nodes(&site, "agent:2", &[1]);
    await_nodes(&site, "agent:1", &[2, 3, 4]);
    assert_eq!(overlay(&site), json!("on-delete step=1"));
    until("its slot is given back", || {
        let all = site.rhumb(&["rollout", "status", "ds/agent"]).all();
        all.contains("0 workloads") && all.contains("1 out of 4 new pods have been updated")
    });
    site.rhumb(&["rollout", "promote", "ds/agent"]).ends(0).says(&["promoted", "goes on from step 1"]);
    await_nodes(&site, "agent:2", &[1, 2]);
    await_nodes(&site, "agent:1", &[3, 4]);
    assert_eq!(overlay(&site), json!("on-delete step=2"));
    let pods = || -> BTreeSet<String> {
        let pods = site.api.list(&site.at("Pod", ""));
        pods.iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
    };
    until("it is promoted", || {
        let all = site.rhumb(&["rollout", "promote", "ds/agent"]).all();
        all.contains("promoted") || overlay(&site) != json!("on-delete step=2")
    });
    until("it goes on", || overlay(&site) != json!("on-delete step=2"));
    await_nodes(&site, "agent:2", &[1, 2, 3, 4]);
    let before = pods();
    until("it is let go", || overlay(&site) == Value::Null);
    assert_eq!(site.value("DaemonSet", "agent", "/spec/updateStrategy/type"), json!("RollingUpdate"));
    await_ready(&site, 4);
    site.await_free_budget();
    assert_eq!(pods(), before, "to let it go restarts nothing");
    drop(daemon);
}

#[test]
fn the_nodes_with_the_labels_asked_for_go_first() {
    let site = TestNamespace::new("node-steps-labels");
    let nodes = Nodes::new(&site, 4);
    nodes.label(2, "canary", "yes");
    nodes.label(4, "canary", "yes");
    let words = "rhumb.dev/steps: \"2\", rhumb.dev/step-nodes: canary=yes, rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let _daemon = begun(&site, &repo, &nodes, BUDGET);
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    await_nodes(&site, "agent:2", &[2, 4]);
    await_nodes(&site, "agent:1", &[1, 3]);
    site.rhumb(&["rollout", "promote", "ds/agent", "--full"]).ends(0).says(&["promoted"]);
    await_nodes(&site, "agent:2", &[1, 2, 3, 4]);
    assert_eq!(overlay(&site), Value::Null);
    site.await_free_budget();
}

#[test]
fn a_disruption_budget_holds_a_step_until_it_allows_it() {
    let site = TestNamespace::new("node-steps-pdb");
    let nodes = Nodes::new(&site, 3);
    let words = "rhumb.dev/steps: \"1\"";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let daemon = begun(&site, &repo, &nodes, BUDGET);
    let limit = |available| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "agent"},
            "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": "agent"}}},
        })
    };
    site.api.create(&site.at("PodDisruptionBudget", ""), "setup", &limit(3));
    until("it is counted", || {
        site.value("PodDisruptionBudget", "agent", "/status/currentHealthy") == json!(3)
    });
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    daemon.says(&["step 1 of 1", "cannot be evicted", "The disruption budget agent needs 3 healthy pods"]);
    assert_eq!(overlay(&site), json!("on-delete step=1"));
    await_nodes(&site, "agent:1", &[1, 2, 3]);
    for command in [&["rollout", "status", "ds/agent"][..], &["why", "ds/agent"]] {
        let run = site.rhumb(command);
        run.says(&["held at step 1 of 1 (1)"]);
        run.says(&["PodDisruptionBudget agent allows none of its pods to be evicted now"]);
    }
    site.api.merge(&site.at("PodDisruptionBudget", "agent"), "setup", &limit(2));
    await_nodes(&site, "agent:2", &[1, 2, 3]);
    until("it is let go", || overlay(&site) == Value::Null);
    site.await_free_budget();
}

#[test]
fn one_pass_takes_all_steps() {
    let site = TestNamespace::new("node-steps-apply");
    let nodes = Nodes::new(&site, 3);
    let words = "rhumb.dev/steps: \"1, 50%\"";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    site.apply(repo.path(), &["--wait=3m"]).ends(0);
    await_nodes(&site, "agent:1", &[1, 2, 3]);
    await_ready(&site, 3);
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    site.apply(repo.path(), &["--wait=3m"]).ends(0);
    assert_eq!(with(&site, "agent:2"), BTreeSet::from([1, 2, 3]));
    assert_eq!(overlay(&site), Value::Null);
    drop(nodes);
}

#[test]
fn a_restart_by_hand_in_a_step_replaces_what_the_step_had_replaced() {
    let site = TestNamespace::new("node-steps-restart");
    let nodes = Nodes::new(&site, 3);
    let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let _daemon = begun(&site, &repo, &nodes, BUDGET);
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    await_nodes(&site, "agent:2", &[1]);
    await_ready(&site, 3);
    until("its slot is given back", || {
        site.rhumb(&["rollout", "status", "ds/agent"]).all().contains("0 workloads")
    });
    let restarted = || {
        let pods = site.api.list(&site.at("Pod", ""));
        let stamped = pods
            .iter()
            .filter(|pod| pod.pointer("/metadata/annotations/kubectl.kubernetes.io~1restartedAt").is_some());
        stamped.map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    site.kubectl(&["rollout", "restart", "ds/agent"]);
    until("one node has it", || restarted() == [nodes.names[0].clone()]);
    await_ready(&site, 3);
    until("its slot is given back again", || {
        site.rhumb(&["rollout", "status", "ds/agent"]).all().contains("0 workloads")
    });
    assert_eq!(restarted(), [nodes.names[0].clone()]);
    assert_eq!(overlay(&site), json!("on-delete step=1"));
    site.rhumb(&["rollout", "promote", "ds/agent"]).ends(0).says(&["goes on from step 1"]);
    until("all have it", || restarted().len() == 3);
    until("it is let go", || overlay(&site) == Value::Null);
    site.await_free_budget();
}

/// Grants the rights that the documentation names, and no others; one of these comes late.
fn comes_late(name: &str, late: &str, expected: &[&str]) {
    let mut site = TestNamespace::new(name);
    let nodes = Nodes::new(&site, 2);
    let words = "rhumb.dev/steps: \"1\"";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    site.limited();
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    let watch = ["list", "watch"];
    let rules = [
        json!({"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": all}),
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": all}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create"]}),
        json!({"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": watch}),
        json!({"apiGroups": [""], "resources": ["pods", "events"], "verbs": watch}),
        json!({"apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": watch}),
        json!({"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}),
        json!({"apiGroups": [""], "resources": ["nodes"], "verbs": watch}),
    ];
    let (later, now): (Vec<Value>, Vec<Value>) =
        rules.into_iter().partition(|rule| rule["resources"][0] == late);
    grant(&site, "work", &json!(now));
    let daemon = begun(&site, &repo, &nodes, BUDGET);
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    daemon.says(expected);
    let waits = || site.rhumb(&["rollout", "status", "ds/agent"]).all();
    until("the status tells it", || expected.iter().all(|expected| waits().contains(expected)));
    assert_eq!(overlay(&site), json!("on-delete step=1"));
    assert_eq!(with(&site, "agent:1"), BTreeSet::from([1, 2]));
    grant(&site, "late", &json!(later));
    await_nodes(&site, "agent:2", &[1, 2]);
    until("it is let go", || overlay(&site) == Value::Null);
    site.await_free_budget();
}

#[test]
fn without_the_right_to_read_nodes_a_step_waits_and_says_so() {
    comes_late("node-steps-nodes", "nodes", &["the nodes cannot be read", "nodes", "is forbidden"]);
}

#[test]
fn without_the_right_to_evict_a_step_waits_and_says_so() {
    comes_late(
        "node-steps-evict",
        "pods/eviction",
        &["no pod of it can be evicted", "may not create pods/eviction"],
    );
}

/// Lets the user of the place do something everywhere.
fn grant(site: &TestNamespace<'_>, what: &str, rules: &Value) {
    let (name, group) = (format!("{}-{what}", site.user), "rbac.authorization.k8s.io");
    let version = format!("{group}/v1");
    let role =
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    site.api.create(&at("ClusterRole", "", ""), "setup", &role);
    let binding = json!({
        "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": site.user}],
    });
    site.api.create(&at("ClusterRoleBinding", "", ""), "setup", &binding);
}

#[test]
fn a_newer_commit_in_the_middle_of_a_step_begins_anew() {
    let site = TestNamespace::new("node-steps-newer");
    let nodes = Nodes::new(&site, 4);
    let words = "rhumb.dev/steps: \"1, 50%\", rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let _daemon = begun(&site, &repo, &nodes, BUDGET);
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    await_nodes(&site, "agent:2", &[1]);
    until("it is ready", || site.value("DaemonSet", "agent", "/status/numberAvailable") == json!(4));
    site.rhumb(&["rollout", "promote", "ds/agent"]).ends(0).says(&["goes on from step 1"]);
    await_nodes(&site, "agent:2", &[1, 2]);
    repo.change("agent.yaml", &agent(&site, "agent:3", words));
    await_nodes(&site, "agent:3", &[1]);
    await_nodes(&site, "agent:2", &[2]);
    await_nodes(&site, "agent:1", &[3, 4]);
    assert_eq!(overlay(&site), json!("on-delete step=1"));
    // The old content ends it.
    repo.change("agent.yaml", &agent(&site, "agent:1", words));
    await_nodes(&site, "agent:1", &[1, 2, 3, 4]);
    until("it is let go", || overlay(&site) == Value::Null);
    site.await_free_budget();
}

#[test]
fn a_broken_image_meets_one_node_and_goes_back() {
    let site = TestNamespace::new("node-steps-broken");
    let nodes = Nodes::new(&site, 3);
    let words = "rhumb.dev/steps: \"1, 50%\"";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let daemon = begun(&site, &repo, &nodes, BUDGET);
    let window = site.window();
    repo.change("agent.yaml", &agent(&site, "agent:broken", words));
    daemon.says(&["ImagePullBackOff", "it is back at revision"]);
    await_nodes(&site, "agent:1", &[1, 2, 3]);
    await_ready(&site, 3);
    assert_eq!(overlay(&site), Value::Null);
    site.await_free_budget();
    let evictions = window.writes().into_iter().filter(|event| event.resource.starts_with("pods"));
    assert_eq!(evictions.count(), 1, "{:#?}", window.writes());
}

#[test]
fn a_step_survives_the_end_of_rhumb_and_an_abort_brings_the_old_pods_back() {
    let site = TestNamespace::new("node-steps-kill");
    let nodes = Nodes::new(&site, 4);
    let words = "rhumb.dev/steps: \"1, 50%\", rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let mut daemon = begun(&site, &repo, &nodes, BUDGET);
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    await_nodes(&site, "agent:2", &[1]);
    daemon.kill();
    // A foreign change is repaired meanwhile, and the step stays.
    let change = json!({"metadata": {"annotations": {"rhumb.dev/step-promote": "auto"}}});
    site.api.merge(&site.at("DaemonSet", "agent"), "somebody", &change);
    let window = site.window();
    let mut daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    until("it is repaired", || !window.to("daemonsets", "agent").is_empty());
    assert_eq!(overlay(&site), json!("on-delete step=1"));
    site.rhumb(&["rollout", "promote", "ds/agent"]).ends(0).says(&["goes on from step 1"]);
    until("the second is on its way", || overlay(&site) == json!("on-delete step=2"));
    daemon.kill();
    let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    await_nodes(&site, "agent:2", &[1, 2]);
    await_nodes(&site, "agent:1", &[3, 4]);
    site.rhumb(&["rollout", "abort", "ds/agent"]).ends(0).says(&["aborted: revision"]);
    await_nodes(&site, "agent:1", &[1, 2, 3, 4]);
    until("it is let go", || overlay(&site) == Value::Null);
    await_ready(&site, 4);
    site.await_free_budget();
    site.rhumb(&["why", "ds/agent"]).ends(0).says(&["aborted by"]);
}

#[test]
fn a_node_that_is_not_ready_is_passed_over_until_it_is() {
    let site = TestNamespace::new("node-steps-lost");
    let nodes = Nodes::new(&site, 3);
    let words = "rhumb.dev/steps: \"1\"";
    let repo = Repo::new(&[("agent.yaml", agent(&site, "agent:1", words))]);
    let daemon = begun(&site, &repo, &nodes, "budget: {soak: 0s, maxUnavailable: 2}");
    nodes.fail(1);
    repo.change("agent.yaml", &agent(&site, "agent:2", words));
    let expected = format!("all nodes that are Ready have the new pod; node {} is not Ready", nodes.names[0]);
    daemon.says(&[&expected]);
    await_nodes(&site, "agent:2", &[2, 3]);
    await_nodes(&site, "agent:1", &[1]);
    site.rhumb(&["why", "ds/agent"]).ends(0).says(&["is not Ready, and is passed over"]);
    nodes.heal(1);
    await_nodes(&site, "agent:2", &[1, 2, 3]);
    until("it is let go", || overlay(&site) == Value::Null);
    site.await_free_budget();
}
