//! Steps inside one workload.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, eventually, until, yaml};

const BUDGET: &str = "budget: {soak: 0s, maxUnavailable: 100%}";

/// Returns a workload of so many replicas, with annotations of its own.
fn stepped(kind: &str, image: &str, words: &str) -> String {
    yaml::workload(kind, "web", 6, image, "{}")
        .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{words}}}\nspec"))
}

fn overlay(site: &TestNamespace<'_>, kind: &str) -> Value {
    site.value(kind, "web", "/metadata/annotations/rhumb.dev~1overlay")
}

/// Returns the images of the pods, and how many have each.
fn pods(site: &TestNamespace<'_>) -> Vec<(String, usize)> {
    let pods = site.api.list(&site.at("Pod", ""));
    let alive = pods.iter().filter(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
    let images: Vec<String> = alive
        .map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned())
        .collect();
    let kinds: BTreeSet<&String> = images.iter().collect();
    kinds.iter().map(|kind| ((*kind).clone(), images.iter().filter(|image| image == kind).count())).collect()
}

#[track_caller]
fn await_pods(site: &TestNamespace<'_>, expected: &[(&str, usize)]) {
    let expected: Vec<(String, usize)> =
        expected.iter().map(|(image, n)| ((*image).to_owned(), *n)).collect();
    eventually("the pods have their images", DEFAULT_TIMEOUT, || match pods(site) {
        found if found == expected => Ok(()),
        found => Err(format!("{found:?}, not {expected:?}")),
    });
}

#[test]
fn a_deployment_is_held_at_its_step_and_goes_on_by_itself() {
    let site = TestNamespace::new("steps-auto");
    let words = "rhumb.dev/steps: \"1, 50%\", rhumb.dev/step-soak: 3s";
    let repo = Repo::new(&[("web.yaml", stepped("Deployment", "nginx:1", words))]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    site.await_rollout("web");
    assert_eq!(overlay(&site, "Deployment"), Value::Null, "a creation has no steps");
    let window = site.window();
    repo.change("web.yaml", &stepped("Deployment", "nginx:2", words));
    for step in ["surge=1 step=1", "surge=3 step=2"] {
        until(step, || overlay(&site, "Deployment") == json!(step));
    }
    until("it is let go", || overlay(&site, "Deployment") == Value::Null);
    site.await_rollout("web");
    await_pods(&site, &[("nginx:2", 6)]);
    site.await_free_budget();
    // One that meets a newer status is refused, and sent again.
    let mut written = window.to("deployments", "web");
    written.retain(|event| event.code < 300);
    assert_eq!(written.len(), 3, "{written:#?}");
    drop(daemon);
}

#[test]
fn a_step_that_waits_for_a_person_survives_the_end_of_rhumb_and_repairs_keep_it() {
    let site = TestNamespace::new("steps-manual");
    let words = "rhumb.dev/steps: \"2\", rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("web.yaml", stepped("Deployment", "nginx:1", words))]);
    let configuration = site.configuration(repo.path(), BUDGET);
    let mut daemon = site.configured(&configuration);
    site.await_rollout("web");
    repo.change("web.yaml", &stepped("Deployment", "nginx:2", words));
    await_pods(&site, &[("nginx:1", 6), ("nginx:2", 2)]);
    daemon.kill();
    let window = site.window();
    let _daemon = site.configured(&configuration);
    // A foreign change is repaired, and the hold stays.
    let labels =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:3"}]}}}});
    site.api.merge(&site.at("Deployment", "web"), "somebody", &labels);
    until("it is repaired", || {
        site.value("Deployment", "web", "/spec/template/spec/containers/0/image") == json!("nginx:2")
            && !window.to("deployments", "web").is_empty()
    });
    await_pods(&site, &[("nginx:1", 6), ("nginx:2", 2)]);
    assert_eq!(overlay(&site, "Deployment"), json!("surge=2 step=1"));
    until("the status counts the new pods", || {
        let status = site.rhumb(&["rollout", "status", "deploy/web"]).ends(1);
        status.all().contains("2 out of 6 new replicas have been updated")
    });
    // The old content ends it without an overlay.
    repo.change("web.yaml", &stepped("Deployment", "nginx:1", words));
    await_pods(&site, &[("nginx:1", 6)]);
    assert_eq!(overlay(&site, "Deployment"), Value::Null);
}

/// Replaces the content in the middle of a step by a newer commit, which begins with the first step
/// anew. The old content, put back, ends it.
#[track_caller]
fn is_replaced_in_the_middle(name: &str, kind: &str, overlays: [&str; 2], at: [&[(&str, usize)]; 2]) {
    let site = TestNamespace::new(name);
    let words = "rhumb.dev/steps: \"1, 50%\", rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("web.yaml", stepped(kind, "app:1", words))]);
    let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    until("all are ready", || site.value(kind, "web", "/status/readyReplicas") == json!(6));
    let promote = |step: &str| {
        let object = format!("{}/web", kind.to_lowercase());
        site.rhumb(&["rollout", "promote", &object]).ends(0).says(&[&format!("goes on from step {step}")]);
    };
    repo.change("web.yaml", &stepped(kind, "app:2", words));
    until("it is held at the first", || overlay(&site, kind) == json!(overlays[0]));
    await_pods(&site, at[0]);
    promote("1");
    until("it is held at the second", || overlay(&site, kind) == json!(overlays[1]));
    let count = if kind == "StatefulSet" { 3 } else { 6 };
    await_pods(&site, &[("app:1", count), ("app:2", 3)]);
    repo.change("web.yaml", &stepped(kind, "app:3", words));
    until("it is held at the first again", || overlay(&site, kind) == json!(overlays[0]));
    await_pods(&site, at[1]);
    repo.change("web.yaml", &stepped(kind, "app:1", words));
    await_pods(&site, &[("app:1", 6)]);
    until("it is let go", || overlay(&site, kind) == Value::Null);
    site.await_free_budget();
}

#[test]
fn a_newer_commit_in_the_middle_of_the_steps_of_a_deployment() {
    let at: [&[(&str, usize)]; 2] = [&[("app:1", 6), ("app:2", 1)], &[("app:1", 6), ("app:3", 1)]];
    is_replaced_in_the_middle("steps-newer", "Deployment", ["surge=1 step=1", "surge=3 step=2"], at);
}

#[test]
fn a_newer_commit_in_the_middle_of_the_steps_of_a_stateful_set() {
    // Below the partition its controller leaves alone what is Ready.
    let third: &[(&str, usize)] = &[("app:1", 3), ("app:2", 2), ("app:3", 1)];
    let at: [&[(&str, usize)]; 2] = [&[("app:1", 5), ("app:2", 1)], third];
    let overlays = ["partition=5 step=1", "partition=3 step=2"];
    is_replaced_in_the_middle("steps-newer-set", "StatefulSet", overlays, at);
}

#[test]
fn a_step_that_fails_goes_back_and_the_old_pods_were_there_all_the_time() {
    let site = TestNamespace::new("steps-fail");
    let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-soak: 1m";
    let repo = Repo::new(&[("web.yaml", stepped("Deployment", "nginx:1", words))]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    site.await_rollout("web");
    repo.change("web.yaml", &stepped("Deployment", "nginx:broken", words));
    daemon.says(&["ImagePullBackOff", "it is back at revision"]);
    assert_eq!(site.value("Deployment", "web", "/status/availableReplicas"), json!(6));
    await_pods(&site, &[("nginx:1", 6)]);
    assert_eq!(overlay(&site, "Deployment"), Value::Null);
}

#[test]
fn a_stateful_set_is_rolled_out_by_its_partition() {
    let site = TestNamespace::new("steps-set");
    let words = "rhumb.dev/steps: \"1, 50%\", rhumb.dev/step-soak: 3s";
    let repo = Repo::new(&[("web.yaml", stepped("StatefulSet", "pg:1", words))]);
    let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    until("all are ready", || site.value("StatefulSet", "web", "/status/readyReplicas") == json!(6));
    repo.change("web.yaml", &stepped("StatefulSet", "pg:2", words));
    for step in ["partition=5 step=1", "partition=3 step=2"] {
        until(step, || overlay(&site, "StatefulSet") == json!(step));
    }
    until("it is let go", || overlay(&site, "StatefulSet") == Value::Null);
    await_pods(&site, &[("pg:2", 6)]);
    site.await_free_budget();
}

#[test]
fn a_person_lets_a_rollout_go_one_step_on_or_past_all() {
    let site = TestNamespace::new("steps-promote");
    let words = "rhumb.dev/steps: \"1, 3\", rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[("web.yaml", stepped("Deployment", "nginx:1", words))]);
    let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    site.await_rollout("web");
    site.rhumb(&["rollout", "promote", "deploy/web"])
        .ends(1)
        .says(&["nothing to promote", "has no step in progress"]);
    repo.change("web.yaml", &stepped("Deployment", "nginx:2", words));
    await_pods(&site, &[("nginx:1", 6), ("nginx:2", 1)]);
    site.rhumb(&["rollout", "promote", "deploy/web"]).ends(0).says(&["promoted", "goes on from step 1"]);
    await_pods(&site, &[("nginx:1", 6), ("nginx:2", 3)]);
    assert_eq!(overlay(&site, "Deployment"), json!("surge=3 step=2"));
    // Another content is another rollout: what was ordered of the one before does not count for it.
    repo.change("web.yaml", &stepped("Deployment", "nginx:3", words));
    await_pods(&site, &[("nginx:1", 6), ("nginx:3", 1)]);
    site.rhumb(&["rollout", "promote", "deploy/web", "--full"]).ends(0).says(&["promoted"]);
    await_pods(&site, &[("nginx:3", 6)]);
    assert_eq!(overlay(&site, "Deployment"), Value::Null);
}
