//! A commit that fails in one workload: its unit goes back, other units go on, and nothing is tried
//! again.

use serde_json::json;

use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::replay::{Bounds, PeakCounts};
use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually, until, yaml};

pub(crate) const BUDGET: &str =
    "budget: {maxWorkloads: 2, maxUnavailable: 2, startsPerMinute: 1000, soak: 0s, deadline: 60s}";
/// With a deadline that passes while a test waits for it. A rollback and the others, whose pods get
/// Ready at once, have no longer either: on a busy machine they take seconds.
pub(crate) const HASTY: &str =
    "budget: {maxWorkloads: 2, maxUnavailable: 2, startsPerMinute: 1000, soak: 0s, deadline: 15s}";
/// One at a time: with it even two workloads can be too many.
pub(crate) const ONE: Bounds = Bounds { workloads: 1, pods: 1 };
pub(crate) const BOUNDS: Bounds = Bounds { workloads: 2, pods: 2 };

/// Returns a budget that allows no more than [`ONE`].
pub(crate) fn narrow(budget: &str) -> String {
    budget.replace("maxWorkloads: 2, maxUnavailable: 2", "maxWorkloads: 1, maxUnavailable: 1")
}

pub(crate) const IMAGE: &str = "/spec/template/spec/containers/0/image";

/// Writes files and commits them together.
pub(crate) fn push(repo: &Repo, files: &[(String, String)], subject: &str) {
    for (name, text) in files {
        repo.write(name, text);
    }
    repo.commit(subject);
}

/// Waits until a Deployment wants an image, and all its pods have it and are available.
#[track_caller]
pub(crate) fn await_image(site: &TestNamespace<'_>, name: &str, image: &str) {
    until(&format!("{name} wants {image}"), || site.value("Deployment", name, IMAGE) == json!(image));
    site.await_rollout(name);
    assert_eq!(site.value("Deployment", name, IMAGE), json!(image));
}

/// Waits until a workload has wanted an image. It may want another one by now.
#[track_caller]
pub(crate) fn await_begin(observer: &Observer, kind: &str, name: &str, image: &str) {
    observer.await_state(&format!("{name} has wanted {image}"), kind, |object| {
        object["metadata"]["name"] == name && object.pointer(IMAGE) == Some(&json!(image))
    });
}

/// Waits until the inventory names something as rejected, and returns what.
#[track_caller]
pub(crate) fn await_rejection(site: &TestNamespace<'_>, texts: &[&str]) -> String {
    eventually(&format!("it is rejected: {texts:?}"), DEFAULT_TIMEOUT, || {
        let inventory = site.records();
        if texts.iter().all(|text| inventory.contains(text)) { Ok(inventory) } else { Err(inventory) }
    })
}

/// Returns three workloads: `web` in a unit with its configuration, and two others.
fn files(web: &Web, content: &str, image: &str) -> Vec<(String, String)> {
    vec![web.file(), config("env", content), Web::new("api", image).file(), Web::new("batch", image).file()]
}

/// Brings all to rest, and watches it from here on.
pub(crate) fn at_rest(site: &TestNamespace<'_>, repo: &Repo, names: &[&str]) -> (Daemon, Observer) {
    at_rest_within(site, repo, BUDGET, names)
}

/// Does the same as [`at_rest`], with a budget of its own.
pub(crate) fn at_rest_within(
    site: &TestNamespace<'_>,
    repo: &Repo,
    budget: &str,
    names: &[&str],
) -> (Daemon, Observer) {
    let daemon = site.configured(&site.configuration(repo.path(), budget));
    for name in names {
        site.await_rollout(name);
    }
    site.await_free_budget();
    (daemon, Observer::new(site))
}

/// Checks a commit in which only `web` is bad: it goes back with its configuration, the others go
/// on.
fn goes_back(name: &str, bad: Web) {
    goes_back_within(name, BUDGET, bad);
}

fn goes_back_within(name: &str, budget: &str, bad: Web) {
    let site = TestNamespace::new(name);
    let good = Web::new("web", "app:1").uses("env");
    let repo = Repo::new(&files(&good, "one", "app:1"));
    let (daemon, observer) = at_rest_within(&site, &repo, budget, &["web", "api", "batch"]);
    let is_back = |revision: &str| format!("it is back at revision {}", &revision[..12]);
    let first = repo.head();
    push(&repo, &files(&bad.clone().uses("env"), "two", "app:2"), "Change all");
    let failed = repo.head();
    observer.await_state("env has been changed", "ConfigMap", |object| {
        object["metadata"]["name"] == "env" && object["data"]["key"] == "two"
    });
    let rejection = await_rejection(&site, &["web"]);
    assert!(rejection.contains("env"), "{rejection}");
    await_image(&site, "web", "app:1");
    site.await_data("env", "key", "one");
    await_image(&site, "api", "app:2");
    await_image(&site, "batch", "app:2");
    site.await_free_budget();
    // The same contents in another commit are as bad.
    let window = site.window();
    push(&repo, &[config("other", "one")], "Add something else");
    site.await_data("other", "key", "one");
    let tried = window.to("deployments", "web");
    assert!(tried.is_empty(), "{tried:#?}");
    // Better ones are tried.
    push(&repo, &files(&Web::new("web", "app:3").uses("env"), "three", "app:2"), "Mend it");
    await_image(&site, "web", "app:3");
    site.await_data("env", "key", "three");
    site.await_free_budget();
    let most = observer.judge(BOUNDS);
    assert!(most.workloads > 0 && most.pods > 0, "{most:?} was seen");
    daemon.says(&[&is_back(&first), "/web"]);
    assert!(!daemon.log().contains(&is_back(&failed)), "{}", daemon.log());
}

#[test]
fn pods_that_never_get_ready() {
    goes_back("never-ready", Web::new("web", "app:2").fault("never-ready: \"true\"").impatient());
}

#[test]
fn pods_that_crash_again_and_again() {
    goes_back("crash-loop", Web::new("web", "app:2").fault("crash: \"true\""));
}

#[test]
fn an_image_that_cannot_be_pulled() {
    goes_back("broken-image", Web::new("web", "app:broken"));
}

/// A longer time than any machine needs for what a pod does after some hundred milliseconds.
const LONG_READY: &str = "minReadySeconds: 30";

#[test]
fn a_crash_before_the_pods_have_been_ready_for_long_enough() {
    let bad = Web::new("web", "app:2").fault("crash-after: 300ms").spec(LONG_READY);
    goes_back("min-ready", bad);
}

// Each time a pod gets Ready its controller takes that for progress; the deadline of the budget
// does not.
#[test]
fn pods_that_are_ready_and_unready_in_turns() {
    let bad = Web::new("web", "app:2").fault("flap: 300ms").spec(LONG_READY);
    goes_back_within("flapping", HASTY, bad);
}

/// Checks that no rollout goes on from a step whose pods are never ready for long enough: it fails.
#[test]
fn pods_of_a_step_that_are_ready_and_unready_in_turns() {
    let site = TestNamespace::new("flapping-step");
    let web = |image: &str| {
        let web = Web::new("web", image).strategy(1, 0);
        web.word("rhumb.dev/steps: \"1\"").word("rhumb.dev/step-soak: 10s")
    };
    let repo = Repo::new(&[web("app:1").file()]);
    let (_daemon, observer) = at_rest_within(&site, &repo, HASTY, &["web"]);
    push(&repo, &[web("app:2").fault("flap: 300ms").file()], "Break it");
    await_rejection(&site, &["web", "no progress"]);
    await_image(&site, "web", "app:1");
    site.await_free_budget();
    assert_eq!(observer.judge(BOUNDS).pods, 0, "the step comes beside the old pods");
}

// The rollout that is gone back from has its old pods and its new ones in equal numbers. So the
// controller says for a moment that the rollback has made no progress either.
#[test]
fn the_failure_of_the_rollout_is_not_taken_for_one_of_the_rollback() {
    let site = TestNamespace::new("stale-failure");
    // The rollback has this time as well, on a machine that does more than this.
    let web = |image: &str| Web::new("web", image).strategy(1, 1).deadline(8);
    let repo = Repo::new(&[web("app:1").file()]);
    let (_daemon, observer) = at_rest(&site, &repo, &["web"]);
    for round in 0..3 {
        let broken = format!("app{round}:broken");
        push(&repo, &[web(&broken).file()], "Break it");
        await_begin(&observer, "Deployment", "web", &broken);
        await_image(&site, "web", "app:1");
        site.await_free_budget();
        let records = site.records();
        assert!(!records.contains("going back failed too"), "{records}");
    }
    observer.judge(BOUNDS);
}

#[test]
fn pods_that_take_their_time_are_waited_for() {
    let site = TestNamespace::new("ready-delay");
    let all = |image: &str| -> Vec<(String, String)> {
        let one = |name: &str| Web::new(name, image).fault("ready-delay: 400ms").file();
        ["a", "b", "c", "d"].map(one).to_vec()
    };
    let repo = Repo::new(&all("app:1"));
    let (_daemon, observer) = at_rest(&site, &repo, &["a", "b", "c", "d"]);
    push(&repo, &all("app:2"), "Change all");
    for name in ["a", "b", "c", "d"] {
        await_image(&site, name, "app:2");
    }
    site.await_free_budget();
    assert_eq!(observer.judge(BOUNDS), PeakCounts { workloads: 2, pods: 2 });
}

/// Checks that objects that the bad commit added go, and those that it would have removed stay.
#[test]
fn what_a_bad_commit_added_goes_and_what_it_removed_stays() {
    let site = TestNamespace::new("added-removed");
    let repo = Repo::new(&[Web::new("web", "app:1").uses("old").file(), config("old", "one")]);
    let (_daemon, observer) = at_rest(&site, &repo, &["web"]);
    repo.remove("old.yaml");
    push(&repo, &[Web::new("web", "app:broken").uses("new").file(), config("new", "two")], "Break it");
    await_rejection(&site, &["web"]);
    await_image(&site, "web", "app:1");
    site.await_absence("ConfigMap", "new");
    assert_eq!(site.data("old", "key"), "one");
    site.await_free_budget();
    assert_eq!(site.data("old", "key"), "one");
    observer.judge(BOUNDS);
}

#[test]
fn a_later_wave_does_not_begin_after_a_failure() {
    let site = TestNamespace::new("waves");
    let files = |canary: &str, rest: &str| {
        vec![Web::new("canary", canary).file(), Web::new("rest", rest).wave(1).file()]
    };
    let repo = Repo::new(&files("app:1", "app:1"));
    let (_daemon, observer) = at_rest(&site, &repo, &["canary", "rest"]);
    let window = site.window();
    push(&repo, &files("app:broken", "app:2"), "Break it");
    await_rejection(&site, &["canary"]);
    await_image(&site, "canary", "app:1");
    site.await_free_budget();
    let tried = window.to("deployments", "rest");
    assert!(tried.is_empty(), "{tried:#?}");
    push(&repo, &files("app:3", "app:2"), "Mend it");
    await_image(&site, "rest", "app:2");
    assert_eq!(site.value("Deployment", "canary", IMAGE), json!("app:3"));
    observer.judge(BOUNDS);
}

#[test]
fn by_policy_a_failed_workload_stays_until_its_content_changes() {
    let site = TestNamespace::new("on-failure-hold");
    let repo = Repo::new(&[Web::new("web", "app:1").file(), Web::new("api", "app:1").file()]);
    let budget = BUDGET.replace('}', ", onFailure: quarantine}");
    let daemon = site.configured(&site.configuration(repo.path(), &budget));
    for name in ["web", "api"] {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    push(&repo, &[Web::new("web", "app:broken").file()], "Break it");
    await_rejection(&site, &["web", "held"]);
    daemon.says(&["web", "failed"]);
    // It holds no slot: others go on.
    push(&repo, &[Web::new("api", "app:2").file()], "Change another");
    await_image(&site, "api", "app:2");
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:broken"));
    push(&repo, &[Web::new("web", "app:3").file()], "Mend it");
    await_image(&site, "web", "app:3");
    site.await_free_budget();
    observer.judge(BOUNDS);
}

/// Rolls back to a content that is good no more: it neither loops nor takes anything from others.
#[test]
fn a_rollback_that_fails_too_is_held_and_never_loops() {
    let site = TestNamespace::new("no-way-back");
    let web = |image: &str| Web::new("web", image).uses("env");
    let repo = Repo::new(&[web("app:1").file(), config("env", "one"), Web::new("api", "app:1").file()]);
    let (daemon, observer) = at_rest(&site, &repo, &["web", "api"]);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "20"}}});
    site.api.create(&site.at("ResourceQuota", ""), "setup", &quota);
    let quota = |pointer: &str| site.value("ResourceQuota", "none", pointer);
    until("the quota counts", || quota("/status/used/pods") == json!("6"));
    push(&repo, &[web("app:2").fault("never-ready: \"true\"").file(), config("env", "two")], "Break it");
    let bad = eventually("a new pod is there", DEFAULT_TIMEOUT, || {
        let pods = site.api.list(&site.at("Pod", ""));
        let bad = pods.into_iter().find(|pod| pod["spec"]["containers"][0]["image"] == "app:2");
        bad.ok_or("none is")
    });
    // From now on no pod of `web` can be made. Only then does the new one fail.
    site.api.merge(&site.at("ResourceQuota", "none"), "setup", &json!({"spec": {"hard": {"pods": "1"}}}));
    until("the quota is in force", || quota("/status/hard/pods") == json!("1"));
    let crash = json!({"metadata": {"annotations": {"controlplane/crash": "true"}}});
    site.api.merge(&site.at("Pod", bad["metadata"]["name"].as_str().unwrap()), "setup", &crash);
    await_rejection(&site, &["going back failed too"]);
    daemon.says(&["web", "going back failed too"]);
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:1"));
    let window = site.window();
    push(&repo, &[("other.yaml".to_owned(), yaml::config_map("other", "key", "one"))], "Add something");
    site.await_data("other", "key", "one");
    site.await_free_budget();
    assert!(window.to("deployments", "web").is_empty());
    site.api.delete(&site.at("ResourceQuota", "none"));
    observer.judge(BOUNDS);
}

/// Lets no other workload take the place of a failed one that waits to go back.
#[test]
fn what_failed_counts_until_it_is_back() {
    let site = TestNamespace::new("one-by-one");
    let files = |web: &str, image: &str| -> Vec<(String, String)> {
        let others = ["a", "b", "c", "x", "z"].map(|name| Web::new(name, image).file());
        [others.to_vec(), vec![Web::new("web", web).file()]].concat()
    };
    let repo = Repo::new(&files("app:1", "app:1"));
    let _daemon = site.configured(&site.configuration(repo.path(), &narrow(BUDGET)));
    for name in ["a", "b", "c", "web", "x", "z"] {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    push(&repo, &files("app:broken", "app:2"), "Change all");
    for name in ["a", "b", "c", "x", "z"] {
        await_image(&site, name, "app:2");
    }
    await_image(&site, "web", "app:1");
    site.await_free_budget();
    assert_eq!(observer.judge(ONE), PeakCounts { workloads: 1, pods: 1 });
}

/// Retries a held unit: it is held again when it fails again, and its last good content is still
/// known.
#[test]
fn what_is_held_and_tried_again_still_knows_what_was_good() {
    let site = TestNamespace::new("held-retry");
    let web = |image: &str| Web::new("web", image).uses("env");
    let bad = web("app:2").fault("never-ready: \"true\"").impatient();
    let repo = Repo::new(&files(&web("app:1"), "one", "app:1"));
    let hold = HASTY.replace("soak: 0s", "soak: 0s, onFailure: quarantine");
    let (mut daemon, observer) = at_rest_within(&site, &repo, &hold, &["web", "api", "batch"]);
    push(&repo, &files(&bad, "two", "app:1"), "Change both");
    await_rejection(&site, &["held", "web"]);
    site.await_free_budget();
    let retry = || site.order(&["rollout", "retry", "deploy/web"], &["retried: 2 objects"]);
    retry();
    // Its record is back before it fails again, and it is held again with all that was good.
    let rejection = await_rejection(&site, &["held", "web", "no progress"]);
    assert!(rejection.contains("\\\"good\\\":\\\""), "{rejection}");
    daemon.stop();
    let _next = site.configured(&site.configuration(repo.path(), HASTY));
    retry();
    await_image(&site, "web", "app:1");
    site.await_data("env", "key", "one");
    site.await_free_budget();
    observer.judge(BOUNDS);
}
