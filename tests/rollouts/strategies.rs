//! Another strategy in git: what the old one had set, or the API server had filled in, goes with
//! it, in one write. One that takes down more pods than the budget allows is narrowed.

use serde_json::{Value, json};

use crate::failures::{IMAGE, at_rest_within, push};
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{Repo, TestNamespace, until, yaml};

const BUDGET: &str =
    "budget: {maxWorkloads: 2, maxUnavailable: 9, startsPerMinute: 1000, soak: 0s, deadline: 60s}";

/// Changes the strategy of a workload, once from what the manifest says and once from what the API
/// server has filled in.
fn changes(name: &str, kind: &str, field: &str, rolling: &str, other: &str) {
    let site = TestNamespace::new(name);
    let file = |strategy: &str| {
        let text = yaml::workload(kind, "web", 3, "app:1", "{}");
        ("web.yaml".to_owned(), text.replace("\nspec:\n", &format!("\nspec:\n  {field}: {strategy}\n")))
    };
    let strategy = format!("{{type: RollingUpdate, rollingUpdate: {rolling}}}");
    let (plain, named) = (format!("{{type: {other}}}"), format!("{{type: {other}, rollingUpdate: null}}"));
    for (before, after) in [(strategy.as_str(), &plain), ("{}", &plain), ("{}", &named)] {
        let repo = Repo::new(&[file(before)]);
        let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
        let of = |pointer: &str| site.value(kind, "web", &format!("/spec/{field}/{pointer}"));
        until("it is there", || of("type") == json!("RollingUpdate") && of("rollingUpdate") != Value::Null);
        repo.write("web.yaml", &file(after).1);
        let diff = site.diff(repo.path(), &["-o", "unified"]).ends(1);
        diff.says(&["-    rollingUpdate:"]);
        diff.says(&[&format!("+    type: {other}")]);
        push(&repo, &[file(after)], "Change the strategy");
        until("its strategy is the other one", || of("type") == json!(other));
        assert_eq!(of("rollingUpdate"), Value::Null);
    }
}

#[test]
fn a_deployment_that_recreates_its_pods() {
    changes("to-recreate", "Deployment", "strategy", "{maxSurge: 1, maxUnavailable: 0}", "Recreate");
}

#[test]
fn a_stateful_set_whose_pods_wait_to_be_deleted() {
    changes("set-on-delete", "StatefulSet", "updateStrategy", "{partition: 1}", "OnDelete");
}

/// The budget of the tests of a strategy that takes down too many pods.
const TWO: &str = "budget: {soak: 0s, maxUnavailable: 2, startsPerMinute: 1000, deadline: 60s}";

/// Returns six pods of a strategy that takes all of them down at once.
fn wide(image: &str, words: &str) -> (String, String) {
    let strategy = "  strategy: {rollingUpdate: {maxUnavailable: 100%, maxSurge: 0}}\n  selector:";
    let text = yaml::workload("Deployment", "web", 6, image, "{controlplane/ready-delay: 500ms}")
        .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{words}}}\nspec"))
        .replace("  selector:", strategy);
    ("web.yaml".to_owned(), text)
}

const OVERLAY: &str = "/metadata/annotations/rhumb.dev~1overlay";

fn overlay(site: &TestNamespace<'_>) -> Value {
    site.value("Deployment", "web", OVERLAY)
}

/// Waits until a rollout is narrowed and has ended. Each state of its pods counts, not only those
/// that a look at them would meet.
#[track_caller]
fn await_narrow_end(site: &TestNamespace<'_>, observer: &Observer) {
    observer.await_state("it has been narrowed", "Deployment", |object| {
        object.pointer(OVERLAY) == Some(&json!("narrow=2"))
    });
    until("it is let go", || overlay(site) == Value::Null);
    site.await_rollout("web");
    site.await_free_budget();
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:2"));
    assert_eq!(observer.judge(Bounds { workloads: 1, pods: 2 }).pods, 2, "two pods were away at once");
}

#[test]
fn a_strategy_that_takes_down_too_many_is_narrowed_while_it_rolls() {
    let site = TestNamespace::new("narrow");
    let repo = Repo::new(&[wide("app:1", "")]);
    let (_daemon, observer) = at_rest_within(&site, &repo, TWO, &["web"]);
    push(&repo, &[wide("app:2", "")], "Release it");
    await_narrow_end(&site, &observer);
}

#[test]
fn a_strategy_that_takes_down_too_many_is_narrowed_when_its_steps_are_over() {
    let site = TestNamespace::new("narrow-end");
    let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-mode: in-place, rhumb.dev/step-promote: manual";
    let repo = Repo::new(&[wide("app:1", words)]);
    let (_daemon, observer) = at_rest_within(&site, &repo, TWO, &["web"]);
    push(&repo, &[wide("app:2", words)], "Release it");
    until("it is in its step", || overlay(&site).as_str().is_some_and(|overlay| overlay.contains("step=1")));
    until("its pod is ready", || {
        site.value("Deployment", "web", "/status/updatedReplicas") == json!(1)
            && site.value("Deployment", "web", "/status/readyReplicas") == json!(6)
    });
    site.order(&["rollout", "promote", "deploy/web"], &["promoted"]);
    await_narrow_end(&site, &observer);
}
