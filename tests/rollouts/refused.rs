//! New pods that the API server refuses: the reason is reported in the server's words, and the unit
//! goes back.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::failures::{
    BOUNDS, BUDGET, IMAGE, ONE, at_rest_within, await_begin, await_image, await_rejection, narrow, push,
};
use crate::manifests::{Web, config};
use crate::support::{Repo, TestNamespace, at, until};

/// The time in which a rollback begins by the refusal itself: the deadlines of the budget and of
/// the controller are longer.
const BACK: Duration = Duration::from_secs(45);

/// Checks a change whose new pods of `web` are refused. It goes back with its configuration, and
/// the workload that waits for its slot goes on after that.
fn goes_back(site: &TestNamespace<'_>, bad: &Web, expected: &[&str]) {
    let web = Web::new("web", "app:1").uses("env");
    let repo = Repo::new(&[web.file(), config("env", "one"), Web::new("zone", "app:1").file()]);
    let (daemon, observer) = at_rest_within(site, &repo, &narrow(BUDGET), &["web", "zone"]);
    push(&repo, &[bad.file(), config("env", "two"), Web::new("zone", "app:2").file()], "Change all");
    await_begin(&observer, "Deployment", "web", "app:2");
    let begun = Instant::now();
    until("it goes back", || site.value("Deployment", "web", IMAGE) == json!("app:1"));
    assert!(begun.elapsed() < BACK, "it took {:?}", begun.elapsed());
    let expected = [&["/web: no new pod can be created: FailedCreate"], expected].concat();
    await_rejection(site, &expected);
    // The log is brief: what the server said in full is in the rejection.
    daemon.says(&["rollout failed: ", ": no new pod can be created: FailedCreate"]);
    await_image(site, "web", "app:1");
    site.await_data("env", "key", "one");
    await_image(site, "zone", "app:2");
    site.await_free_budget();
    assert_eq!(observer.judge(ONE).pods, 1);
}

#[test]
fn a_quota_that_is_exhausted() {
    let site = TestNamespace::new("quota");
    let hard = json!({"requests.example.com/gpu": "0"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-gpu"}, "spec": {"hard": hard}});
    site.api.create(&site.at("ResourceQuota", ""), "setup", &quota);
    let bad = Web::new("web", "app:2").uses("env").container("resources: {limits: {example.com/gpu: 1}}");
    goes_back(&site, &bad, &["exceeded quota: no-gpu"]);
}

#[test]
fn pods_that_admission_refuses() {
    let site = TestNamespace::new("admission");
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    site.api.merge(&at("Namespace", "", &site.name), "setup", &labels);
    let bad = Web::new("web", "app:2").uses("env").container("securityContext: {privileged: true}");
    goes_back(&site, &bad, &["violates PodSecurity"]);
}

/// Adds a policy after the good content: the rollback ends where it is, and its slot goes to
/// others.
#[test]
fn a_rollback_that_admission_refuses() {
    let site = TestNamespace::new("no-return");
    let web = |image: &str| Web::new("web", image).uses("env");
    let repo = Repo::new(&[web("app:1").file(), config("env", "one"), Web::new("zone", "app:1").file()]);
    // A held workload has a pod unavailable, which counts.
    let budget = BUDGET.replace("maxWorkloads: 2", "maxWorkloads: 1");
    let (daemon, observer) = at_rest_within(&site, &repo, &budget, &["web", "zone"]);
    forbid(&site, "app:1");
    let files = [web("app:broken").file(), config("env", "two"), Web::new("zone", "app:2").file()];
    push(&repo, &files, "Break it, and change another");
    let expected = ["going back failed too: Deployment no-return/web: refused: ", "app:1 is too old"];
    await_rejection(&site, &[&["held"][..], &expected].concat());
    daemon.says(&[" failed: revision ", "app:1 is too old"]);
    site.rhumb(&["why", "deploy/web"]).ends(0).says(&expected);
    await_image(&site, "zone", "app:2");
    site.await_free_budget();
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:broken"));
    let window = site.window();
    push(&repo, &[config("other", "one")], "Add something else");
    site.await_data("other", "key", "one");
    let tried = window.to("deployments", "web");
    assert!(tried.is_empty(), "{tried:#?}");
    push(&repo, &[web("app:3").file()], "Mend it");
    await_image(&site, "web", "app:3");
    site.await_free_budget();
    observer.judge(BOUNDS);
}

/// Forbids an image to all Deployments of a site from now on.
fn forbid(site: &TestNamespace<'_>, image: &str) {
    let api = "admissionregistration.k8s.io/v1";
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}]);
    let rule = format!("object.spec.template.spec.containers.all(one, one.image != '{image}')");
    let policy = json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": site.name}, "spec": {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": rule, "message": format!("{image} is too old")}],
    }});
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": site.name}});
    let binding = json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": site.name}, "spec": {
        "policyName": site.name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here},
    }});
    for (plural, object) in
        [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)]
    {
        site.api.create(&format!("/apis/{api}/{plural}"), "setup", &object);
    }
    // A policy comes into force some time after it is there: it is tried until it refuses.
    let probe = site.at("Deployment", "web");
    until("the policy is in force", || {
        // In its newest version, as a conflict would come before the policy.
        let live = site.api.get(&probe).unwrap();
        let tried = site.api.call("PUT", &format!("{probe}?dryRun=All"), "application/json", &live);
        tried.is_err_and(|refusal| refusal.to_string().contains("too old"))
    });
}
