//! DaemonSets: a node that goes away in the middle of a roll, and pods that fail.

use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, HASTY, IMAGE, await_rejection, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::support::{Daemon, Repo, SOON, Site, eventually};

fn agent(image: &str) -> Web {
    Web::of("DaemonSet", "agent", image)
}

/// Waits until a DaemonSet wants an image, and all its pods have it and are available.
#[track_caller]
fn await_agent(site: &Site<'_>, image: &str) {
    eventually(&format!("agent is rolled out to {image}"), SOON, || {
        let shown = site.get("DaemonSet", "agent").ok_or_else(|| "it is not there".to_owned())?;
        let at = |pointer: &str| shown.pointer(pointer).cloned().unwrap_or_default();
        let wanted = at("/status/desiredNumberScheduled");
        let done = at(IMAGE) == json!(image)
            && wanted.as_u64() > Some(0)
            && at("/status/observedGeneration") == at("/metadata/generation")
            && at("/status/updatedNumberScheduled") == wanted
            && at("/status/numberAvailable") == wanted;
        if done { Ok(()) } else { Err(shown["status"].to_string()) }
    });
}

fn files(agent: Web, content: &str) -> Vec<(String, String)> {
    vec![agent.uses("env").file(), config("env", content)]
}

fn at_rest(site: &Site<'_>, repo: &Repo, budget: &str) -> (Daemon, Observer) {
    let daemon = site.configured(&site.configuration(repo.path(), budget));
    await_agent(site, "app:1");
    site.await_free_budget();
    (daemon, Observer::new(site))
}

/// The first new pod, while its node is still starting it.
fn first_new(site: &Site<'_>, image: &str) -> String {
    eventually("a new pod is being started", SOON, || {
        let pods = site.api.list(&site.at("Pod", ""));
        let new = pods.iter().find(|pod| pod["spec"]["containers"][0]["image"] == json!(image));
        let name = new.and_then(|pod| pod["metadata"]["name"].as_str());
        name.map(str::to_owned).ok_or("there is none")
    })
}

/// Its node does nothing more for a pod, or comes back.
fn node_is(site: &Site<'_>, pod: &str, away: &Value) {
    let change = json!({"metadata": {"annotations": {"controlplane/never-ready": away}}});
    site.api.merge(&site.at("Pod", pod), "node", &change);
}

/// A new image, whose pods take their time.
fn slow(image: &str) -> Web {
    agent(image).fault("ready-delay: 2s")
}

/// Its controller takes no other node's pod down meanwhile, and it is no failure of the new pods.
#[test]
fn a_node_that_is_away_is_waited_for() {
    let site = Site::new("node-away");
    let repo = Repo::new(&files(agent("app:1"), "one"));
    let (_daemon, observer) = at_rest(&site, &repo, BUDGET);
    push(&repo, &files(slow("app:2"), "two"), "Change it");
    let pod = first_new(&site, "app:2");
    node_is(&site, &pod, &json!("true"));
    // What has nothing to do with it goes on, and takes longer than the pod would have.
    push(&repo, &[Web::new("other", "app:1").fault("ready-delay: 3s").file()], "Add something else");
    site.await_rollout("other");
    assert_eq!(site.value("DaemonSet", "agent", "/status/updatedNumberScheduled"), json!(1));
    assert!(site.parent().unwrap()["data"]["rejected"].is_null());
    node_is(&site, &pod, &Value::Null);
    await_agent(&site, "app:2");
    site.await_free_budget();
    assert_eq!(site.data("env", "key"), "two");
    assert_eq!(observer.judge(BOUNDS).pods, 1);
}

#[test]
fn a_node_that_stays_away_beyond_the_deadline_is_a_failure() {
    let site = Site::new("node-lost");
    let repo = Repo::new(&files(agent("app:1"), "one"));
    let (_daemon, observer) = at_rest(&site, &repo, HASTY);
    push(&repo, &files(slow("app:2"), "two"), "Change it");
    node_is(&site, &first_new(&site, "app:2"), &json!("true"));
    await_rejection(&site, &["back", "failed: DaemonSet", "no progress for 8s"]);
    await_agent(&site, "app:1");
    site.await_data("env", "key", "one");
    site.await_free_budget();
    assert_eq!(observer.judge(BOUNDS).pods, 1);
}

#[test]
fn a_daemon_set_whose_image_cannot_be_pulled_goes_back() {
    let site = Site::new("node-image");
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
    let site = Site::new("node-deleted");
    let repo = Repo::new(&files(agent("app:1"), "one"));
    let (_daemon, observer) = at_rest(&site, &repo, BUDGET);
    push(&repo, &files(slow("app:2"), "two"), "Change it");
    first_new(&site, "app:2");
    site.api.delete(&site.at("DaemonSet", "agent"));
    await_agent(&site, "app:2");
    site.await_free_budget();
    observer.judge(BOUNDS);
}
