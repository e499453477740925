//! Another strategy in git: what the old one had set, or the API server had filled in, goes with
//! it, in one write.

use serde_json::{Value, json};

use crate::failures::push;
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
