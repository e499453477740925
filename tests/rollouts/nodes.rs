//! `DaemonSet`s: a node that goes away in the middle of a roll, and pods that fail.

use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, HASTY, IMAGE, await_rejection, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually, until};

fn agent(image: &str) -> Web {
    Web::of("DaemonSet", "agent", image)
}

/// Succeeds if a DaemonSet wants an image, and all its pods have it and are available.
fn is_rolled_out(site: &TestNamespace<'_>, image: &str) -> Result<(), String> {
    let shown = site.get("DaemonSet", "agent").ok_or_else(|| "it is not there".to_owned())?;
    let at = |pointer: &str| shown.pointer(pointer).cloned().unwrap_or_default();
    let wanted = at("/status/desiredNumberScheduled");
    let done = at(IMAGE) == json!(image)
        && wanted.as_u64() > Some(0)
        && at("/status/observedGeneration") == at("/metadata/generation")
        && at("/status/updatedNumberScheduled") == wanted
        && at("/status/numberAvailable") == wanted;
    if done { Ok(()) } else { Err(shown["status"].to_string()) }
}

#[track_caller]
fn await_agent(site: &TestNamespace<'_>, image: &str) {
    eventually(&format!("agent is rolled out to {image}"), DEFAULT_TIMEOUT, || is_rolled_out(site, image));
}

fn files(agent: Web, content: &str) -> Vec<(String, String)> {
    vec![agent.uses("env").file(), config("env", content)]
}

fn at_rest(site: &TestNamespace<'_>, repo: &Repo, budget: &str) -> (Daemon, Observer) {
    let daemon = site.configured(&site.configuration(repo.path(), budget));
    await_agent(site, "app:1");
    site.await_free_budget();
    (daemon, Observer::new(site))
}

/// Waits until the first new pod is there.
fn await_new(site: &TestNamespace<'_>, image: &str) {
    let new = |pod: &Value| pod["spec"]["containers"][0]["image"] == json!(image);
    until("a new pod is there", || site.api.list(&site.at("Pod", "")).iter().any(new));
}

/// Returns pods of a new image, of which no node makes a Ready one before [`are_back`].
fn on_lost_nodes(image: &str) -> Web {
    agent(image).fault("never-ready: \"true\"")
}

/// Lets the nodes get the pods Ready that they have been given.
fn are_back(site: &TestNamespace<'_>) {
    let forget = json!({"metadata": {"annotations": {"controlplane/never-ready": null}}});
    for pod in site.api.list(&site.at("Pod", "")) {
        let held = pod.pointer("/metadata/annotations/controlplane~1never-ready").is_some();
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if held && pod["metadata"]["deletionTimestamp"].is_null() {
            // It may be gone by now.
            let content = "application/merge-patch+json";
            let _ = site.api.call("PATCH", &site.at("Pod", name), content, &forget);
        }
    }
}

/// Checks that the controller takes no other node's pod down meanwhile, and that it is no failure
/// of the new pods.
#[test]
fn a_node_that_is_away_is_waited_for() {
    let site = TestNamespace::new("node-away");
    let repo = Repo::new(&files(agent("app:1"), "one"));
    let (_daemon, observer) = at_rest(&site, &repo, BUDGET);
    push(&repo, &files(on_lost_nodes("app:2"), "two"), "Change it");
    await_new(&site, "app:2");
    let updated = || site.value("DaemonSet", "agent", "/status/updatedNumberScheduled");
    until("the new pod is counted", || updated() == json!(1));
    // An unrelated object goes on.
    push(&repo, &[Web::new("other", "app:1").fault("ready-delay: 2s").file()], "Add something else");
    site.await_rollout("other");
    assert_eq!(updated(), json!(1));
    assert!(site.inventory().unwrap()["data"]["rejected"].is_null());
    eventually("the roll ends when they are back", DEFAULT_TIMEOUT, || {
        are_back(&site);
        is_rolled_out(&site, "app:2")
    });
    site.await_free_budget();
    assert_eq!(site.data("env", "key"), "two");
    assert_eq!(observer.judge(BOUNDS).pods, 1);
}

#[test]
fn a_node_that_stays_away_beyond_the_deadline_is_a_failure() {
    let site = TestNamespace::new("node-lost");
    let repo = Repo::new(&files(agent("app:1"), "one"));
    let (_daemon, observer) = at_rest(&site, &repo, HASTY);
    push(&repo, &files(on_lost_nodes("app:2"), "two"), "Change it");
    await_rejection(&site, &["back", "failed: DaemonSet", "no progress for 15s"]);
    await_agent(&site, "app:1");
    site.await_data("env", "key", "one");
    site.await_free_budget();
    assert_eq!(observer.judge(BOUNDS).pods, 1);
}

#[test]
fn a_daemon_set_whose_image_cannot_be_pulled_goes_back() {
    let site = TestNamespace::new("node-image");
    let repo = Repo::new(&files(agent("app:1"), "one"));
    let (_daemon, observer) = at_rest(&site, &repo, BUDGET);
    push(&repo, &files(agent("app:broken"), "two"), "Break it");
    await_rejection(&site, &["back", "failed: DaemonSet", "ImagePullBackOff"]);
    await_agent(&site, "app:1");
    site.await_data("env", "key", "one");
    site.await_free_budget();
    assert_eq!(observer.judge(BOUNDS).pods, 1);
}

#[test]
fn a_daemon_set_that_is_deleted_in_the_middle_is_made_again_with_the_new_content() {
    let site = TestNamespace::new("node-deleted");
    let repo = Repo::new(&files(agent("app:1"), "one"));
    let (_daemon, observer) = at_rest(&site, &repo, BUDGET);
    push(&repo, &files(agent("app:2").fault("ready-delay: 500ms"), "two"), "Change it");
    await_new(&site, "app:2");
    site.api.delete(&site.at("DaemonSet", "agent"));
    await_agent(&site, "app:2");
    site.await_free_budget();
    observer.judge(BOUNDS);
}
