//! A namespace that is deleted while a workload in it rolls.

use serde_json::json;

use crate::failures::{BUDGET, IMAGE, ONE, await_image, narrow, push};
use crate::manifests::Web;
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, at, eventually, until};

/// The bounds where somebody deletes a namespace, which takes down all pods in it at once.
const GOING: Bounds = Bounds { workloads: 1, pods: 3 };

/// Returns `alpha` in another namespace, which takes its time, and `omega` in the place's own,
/// which comes after it.
fn files(other: &str, image: &str) -> Vec<(String, String)> {
    let (file, text) = Web::new("alpha", image).fault("ready-delay: 5s").file();
    let text = text.replace("  name: alpha\n", &format!("  name: alpha\n  namespace: {other}\n"));
    vec![(file, text), Web::new("omega", image).file()]
}

fn make(site: &TestNamespace<'_>, namespace: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    site.api.create("/api/v1/namespaces", "setup", &object);
}

/// Waits until a Deployment of the other namespace has this image everywhere.
#[track_caller]
fn await_alpha(site: &TestNamespace<'_>, other: &str, image: &str) {
    let path = at("Deployment", other, "alpha");
    eventually(&format!("alpha is rolled out to {image}"), DEFAULT_TIMEOUT, || {
        let shown = site.api.get(&path).unwrap_or_default();
        let done = shown["spec"]["template"]["spec"]["containers"][0]["image"] == json!(image)
            && shown["status"]["observedGeneration"] == shown["metadata"]["generation"]
            && shown["status"]["updatedReplicas"] == json!(3)
            && shown["status"]["availableReplicas"] == json!(3);
        if done { Ok(()) } else { Err(shown["status"].to_string()) }
    });
}

/// Deletes a namespace in which something rolls. There is one slot for all, which must be given
/// back.
fn deleted(name: &str, more: &[(String, String)], after: impl FnOnce(&TestNamespace<'_>, &str)) {
    let site = TestNamespace::new(name);
    // It comes first by its name.
    let other = format!("other-{name}");
    if more.is_empty() {
        make(&site, &other);
    }
    let repo = Repo::new(&[&files(&other, "app:1")[..], more].concat());
    let daemon = site.configured(&site.configuration(repo.path(), &narrow(BUDGET)));
    await_alpha(&site, &other, "app:1");
    await_image(&site, "omega", "app:1");
    site.await_free_budget();
    let (here, there) = (Observer::new(&site), Observer::of(&site, &other));
    push(&repo, &files(&other, "app:2"), "Change both");
    let alpha = at("Deployment", &other, "alpha");
    until("alpha rolls", || site.api.value(&alpha, "/status/updatedReplicas").as_u64() >= Some(1));
    assert_eq!(site.value("Deployment", "omega", IMAGE), json!("app:1"), "it waits for the slot");
    let window = site.window();
    site.api.delete(&at("Namespace", "", &other));
    await_image(&site, "omega", "app:2");
    until("the namespace is gone", || {
        let shown = site.api.get(&at("Namespace", "", &other));
        shown.is_none_or(|shown| shown["metadata"]["deletionTimestamp"].is_null())
    });
    after(&site, &other);
    await_alpha(&site, &other, "app:2");
    site.await_free_budget();
    let tries = window.to("deployments", "alpha").len();
    assert!(tries < 30, "it was tried {tries} times");
    here.judge(ONE);
    there.judge(GOING);
    drop(daemon);
}

#[test]
fn a_namespace_that_the_source_brings_is_made_again_with_all_in_it() {
    let text = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other-zone-wanted\n".to_owned();
    deleted("zone-wanted", &[("namespace.yaml".to_owned(), text)], |_, _| {});
}

// Only whoever made it makes it again; nobody else is held up meanwhile.
#[test]
fn a_namespace_of_somebody_else_is_waited_for() {
    deleted("zone-foreign", &[], |site, other| {
        let budget = at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev");
        until("nobody claims anything", || {
            site.api
                .value(&budget, "/data/claims")
                .as_str()
                .is_some_and(|ledger| ledger.contains("\"claims\":[]"))
        });
        make(site, other);
    });
}
