//! Workloads that are scaled while a step holds them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::failures::{BUDGET, await_image, push as push_all};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::sets::await_set;
use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, until};

const STEP: &str = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
/// A held workload counts as one whose pods are replaced; no pod that was Ready is missed.
const WHOLE: Bounds = Bounds { workloads: 1, pods: 0 };

/// Returns a workload with a surge of its own: without one its controller gives the old template
/// all that is added.
fn web(image: &str, words: &str) -> Web {
    Web::new("web", image).word(words).fault("ready-delay: 200ms").strategy(1, 0)
}

/// Returns the number of Ready pods of each image; none while others are there.
fn pods(site: &TestNamespace<'_>) -> Option<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for pod in site.api.list(&site.at("Pod", "")) {
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).cloned();
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        let ready = conditions.unwrap_or_default().iter().any(is_ready);
        if !ready || pod.pointer("/metadata/deletionTimestamp").is_some() {
            return None;
        }
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        *counts.entry(image.to_owned()).or_insert(0) += 1;
    }
    Some(counts)
}

#[track_caller]
pub(crate) fn await_pods(site: &TestNamespace<'_>, expected: &[(&str, usize)]) {
    let expected = expected.iter().map(|(image, count)| ((*image).to_owned(), *count)).collect();
    eventually("the pods have their images", DEFAULT_TIMEOUT, || match pods(site) {
        Some(found) if found == expected => Ok(()),
        found => Err(format!("{found:?}, not {expected:?}")),
    });
}

/// Waits until the counts of a Deployment's `ReplicaSets` are as they were, though rhumb and the
/// controller have looked at all of it again.
#[track_caller]
fn stays(site: &TestNamespace<'_>, repo: &Repo, expected: &[(&str, usize)]) {
    await_pods(site, expected);
    let sets = || {
        let mut sets: Vec<(Value, Value)> = Vec::new();
        for set in site.api.list(&site.at("ReplicaSet", "")) {
            sets.push((set["metadata"]["name"].clone(), set["spec"]["replicas"].clone()));
        }
        sets
    };
    let before = sets();
    let mark = repo.head();
    let (file, text) = config("looked", &mark);
    repo.write(&file, &text);
    repo.commit("Add something else");
    let label = json!({"metadata": {"labels": {"looked": mark}}});
    site.api.merge(&site.at("Deployment", "web"), "somebody", &label);
    site.await_data("looked", "key", &mark);
    await_pods(site, expected);
    assert_eq!(sets(), before);
}

fn push(repo: &Repo, web: &Web) {
    let (file, text) = web.file();
    repo.write(&file, &text);
    repo.commit("Change it");
}

#[track_caller]
pub(crate) fn await_scaled(site: &TestNamespace<'_>, count: u64) {
    until("all are there", || {
        let status = |key: &str| site.value("Deployment", "web", &format!("/status/{key}"));
        status("availableReplicas") == json!(count) && status("replicas") == json!(count)
    });
    site.await_free_budget();
}

fn scale(site: &TestNamespace<'_>, count: u32) {
    site.kubectl(&["scale", "deployment/web", &format!("--replicas={count}")]);
}

/// The field manager under which autoscalers set counts.
const AUTOSCALER: &str = "kube-controller-manager";

/// Sets the count as an autoscaler does, by a PUT of the scale that it has read.
#[track_caller]
fn autoscale(site: &TestNamespace<'_>, count: u32) {
    let path = format!("{}/scale", site.at("Deployment", "web"));
    let mut scale = site.api.get(&path).unwrap();
    scale["spec"]["replicas"] = json!(count);
    // The controllers write the status meanwhile.
    scale["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let path = format!("{path}?fieldManager={AUTOSCALER}");
    let answer = site.api.call("PUT", &path, "application/json", &scale).unwrap();
    assert_eq!(answer["spec"]["replicas"], json!(count));
}

/// Returns a Deployment whose manifest sets no count, scaled by a person to so many pods, and held
/// with a new image.
fn held_by_nobody<'a>(name: &str, words: &str, count: u32) -> (TestNamespace<'a>, Repo, Daemon, Observer)
where
    'static: 'a,
{
    let site = TestNamespace::new(name);
    let repo = Repo::new(&[web("app:1", words).uncounted().file()]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    await_scaled(&site, 1);
    scale(&site, count);
    await_scaled(&site, count.into());
    let observer = Observer::new(&site);
    push(&repo, &web("app:2", words).uncounted());
    (site, repo, daemon, observer)
}

/// Promotes the held step of ten pods, and waits for the end of the rollout.
fn promote(site: &TestNamespace<'_>) {
    site.order(&["rollout", "promote", "deploy/web"], &["promoted"]);
    await_image(site, "web", "app:2");
    await_pods(site, &[("app:2", 10)]);
    site.await_free_budget();
}

#[test]
fn a_commit_that_scales_leaves_a_held_step_at_its_count() {
    let site = TestNamespace::new("scales-commit");
    let repo = Repo::new(&[web("app:1", STEP).replicas(10).file()]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    await_scaled(&site, 10);
    let observer = Observer::new(&site);
    push(&repo, &web("app:2", STEP).replicas(10));
    await_pods(&site, &[("app:1", 10), ("app:2", 1)]);
    push(&repo, &web("app:2", STEP).replicas(100));
    stays(&site, &repo, &[("app:1", 100), ("app:2", 1)]);
    daemon.says(&["took back", "new pods: the step is 1"]);
    push(&repo, &web("app:2", STEP).replicas(10));
    stays(&site, &repo, &[("app:1", 10), ("app:2", 1)]);
    observer.judge(WHOLE);
    promote(&site);
    observer.judge(Bounds { workloads: 1, pods: 1 });
}

#[test]
fn whoever_scales_leaves_a_held_step_at_its_part_of_all_pods() {
    let words = "rhumb.dev/steps: \"20%\", rhumb.dev/step-promote: manual";
    let (site, repo, daemon, observer) = held_by_nobody("scales-person", words, 10);
    await_pods(&site, &[("app:1", 10), ("app:2", 2)]);
    scale(&site, 40);
    stays(&site, &repo, &[("app:1", 40), ("app:2", 8)]);
    daemon.says(&["gave the old template", "pods"]);
    scale(&site, 15);
    stays(&site, &repo, &[("app:1", 15), ("app:2", 3)]);
    observer.judge(WHOLE);
    site.order(&["rollout", "abort", "deploy/web"], &["goes back"]);
    await_pods(&site, &[("app:1", 15)]);
    site.await_free_budget();
    observer.judge(WHOLE);
}

#[test]
fn an_autoscaler_leaves_a_held_step_at_its_count() {
    let (site, repo, daemon, observer) = held_by_nobody("scales-autoscaler", STEP, 10);
    await_pods(&site, &[("app:1", 10), ("app:2", 1)]);
    autoscale(&site, 100);
    stays(&site, &repo, &[("app:1", 100), ("app:2", 1)]);
    daemon.says(&["took back", "new pods: the step is 1"]);
    autoscale(&site, 10);
    stays(&site, &repo, &[("app:1", 10), ("app:2", 1)]);
    observer.judge(WHOLE);
    // The count stays the autoscaler's.
    promote(&site);
    observer.judge(WHOLE);
}

#[test]
fn a_step_in_place_of_old_pods_stays_at_its_count_as_well() {
    let words = &format!("{STEP}, rhumb.dev/step-mode: in-place");
    let (site, repo, daemon, observer) = held_by_nobody("scales-in-place", words, 6);
    await_pods(&site, &[("app:1", 5), ("app:2", 1)]);
    let one = observer.judge(Bounds { workloads: 1, pods: 1 });
    assert_eq!(one.pods, 1, "its pod was replaced");
    let observer = Observer::new(&site);
    scale(&site, 36);
    stays(&site, &repo, &[("app:1", 35), ("app:2", 1)]);
    daemon.says(&["took back", "new pods: the step is 1"]);
    observer.judge(WHOLE);
    site.order(&["rollout", "promote", "deploy/web"], &["promoted"]);
    await_image(&site, "web", "app:2");
    site.await_free_budget();
    observer.judge(Bounds { workloads: 1, pods: 1 });
}

#[test]
fn a_set_that_a_commit_scales_makes_its_new_pods_of_the_old_template() {
    let site = TestNamespace::new("scales-set");
    let db = |image: &str, count| Web::of("StatefulSet", "db", image).word(STEP).replicas(count);
    let repo = Repo::new(&[db("app:1", 3).file()]);
    let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    await_set(&site, "db", "app:1");
    site.await_free_budget();
    push(&repo, &db("app:2", 3));
    await_pods(&site, &[("app:1", 2), ("app:2", 1)]);
    push(&repo, &db("app:2", 7));
    // The one that is new already stays so, although it is below the partition now.
    await_pods(&site, &[("app:1", 5), ("app:2", 2)]);
    let image = |ordinal: u32| site.value("Pod", &format!("db-{ordinal}"), "/spec/containers/0/image");
    let new: Vec<u32> = (0..7).filter(|ordinal| image(*ordinal) == json!("app:2")).collect();
    assert_eq!(new, [2, 6]);
    site.order(&["rollout", "promote", "sts/db"], &["promoted"]);
    await_set(&site, "db", "app:2");
}

const UNSCALED: [&str; 4] = ["a", "b", "c", "d"];

// Somebody may scale two workloads of a namespace, and nothing else. A quota lets no pod come.
// So others may lose as many pods as before, also by a new process.
#[test]
fn a_scale_under_a_quota_neither_widens_the_budget_of_others_nor_uses_it() {
    let site = TestNamespace::new("scales-claims");
    let other = "scales-claims-other";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}});
    site.api.create("/api/v1/namespaces", "setup", &namespace);
    let elsewhere = |web: Web| {
        let (file, text) = web.file();
        let name = file.trim_end_matches(".yaml");
        let place = format!("  name: {name}\n  namespace: {other}\n");
        (file.clone(), text.replacen(&format!("  name: {name}\n"), &place, 1))
    };
    let others = |image: &str| UNSCALED.map(|name| Web::new(name, image).fault("ready-delay: 400ms").file());
    let scaled = [elsewhere(Web::new("counted", "app:1")), elsewhere(Web::new("free", "app:1").uncounted())];
    let repo = Repo::new(&[&others("app:1")[..], &scaled].concat());
    let budget = "budget: {maxWorkloads: 9, maxUnavailable: 10%, startsPerMinute: 1000, soak: 0s}";
    let configuration = site.configuration(repo.path(), budget);
    let mut daemon = site.configured(&configuration);
    let available = |name: &str| site.api.value(&at("Deployment", other, name), "/status/availableReplicas");
    until("all are there", || available("counted") == json!(3) && available("free") == json!(1));
    for name in UNSCALED {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": {"pods": "4"}}});
    site.api.create(&at("ResourceQuota", other, ""), "setup", &quota);
    let used = || site.api.value(&at("ResourceQuota", other, "full"), "/status/used/pods");
    until("the quota counts", || used() == json!("4"));
    // The process reports the hold, which comes with the scale of the one, and after that of the
    // other.
    let mut claim = json!({"spec": {"replicas": 4000}});
    site.api.merge(&at("Deployment", other, "free"), "somebody", &claim);
    claim["metadata"] = json!({"annotations": {"rhumb.dev/hold": "1-a until=2999-01-01T00:00:00Z mine"}});
    site.api.merge(&at("Deployment", other, "counted"), "somebody", &claim);
    let inventory = at("ConfigMap", &site.system(), &site.name);
    eventually("it has seen the scales", DEFAULT_TIMEOUT, || {
        let recorded = site.api.value(&inventory, "/data/not-as-wanted");
        let recorded = recorded.as_str().unwrap_or_default().to_owned();
        if recorded.contains("counted") && recorded.contains("on hold until") {
            Ok(())
        } else {
            Err(recorded)
        }
    });
    let rolls = |image: &str| {
        let observer = Observer::new(&site);
        push_all(&repo, &others(image), "Change the others");
        for name in UNSCALED {
            await_image(&site, name, image);
        }
        site.await_free_budget();
        assert_eq!(observer.judge(Bounds { workloads: UNSCALED.len(), pods: 1 }).pods, 1);
        assert_eq!((available("counted"), available("free")), (json!(3), json!(1)));
    };
    rolls("app:2");
    daemon.kill();
    let _next = site.configured(&configuration);
    rolls("app:3");
}
