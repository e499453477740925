//! Passes over objects that other sources of the cluster want.

use controlplane::{Answer, Fault, Requests, Rule};

use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, eventually, yaml};

/// Waits until a source requests exactly so many objects that it wants and does not have.
#[track_caller]
pub(crate) fn await_requests(site: &TestNamespace<'_>, source: &str, expected: usize) {
    eventually(&format!("{source} requests {expected} objects"), DEFAULT_TIMEOUT, || {
        let statement = site.inventory_of(source).unwrap_or_default()["data"]["handover"].clone();
        let text = statement.as_str().unwrap_or_default();
        let said: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let requests = said["requests"].as_array();
        if requests.is_some_and(|all| all.len() == expected) { Ok(()) } else { Err(text.to_owned()) }
    });
}

/// Serves by another process a source that waits for an object of this one.
#[test]
fn a_diff_deletes_nothing_that_another_source_waits_for_and_says_who_may_come_to_want_it() {
    let mut site = TestNamespace::new("others-diff");
    let map = |name: &str| (format!("{name}.yaml"), yaml::config_map(name, "a", "one"));
    let folder = Folder::new(&["env", "old", "kept", "more"].map(map));
    site.apply(folder.path(), &[]).ends(0);
    let repo = Repo::new(&["env", "theirs"].map(map));
    let other = crate::support::source("others-theirs", "others-diff", repo.path(), "");
    let head = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n";
    let _daemon = site.configured(&format!("{head}---\n{other}"));
    site.await_object("ConfigMap", "theirs");
    await_requests(&site, "others-theirs", 1);
    folder.remove("env.yaml");
    folder.remove("old.yaml");
    let flags = ["--blast-radius", "100"];
    let planned = site.diff(folder.path(), &flags).ends(1);
    planned.says(&["ConfigMap others-diff/env"]);
    planned.says(&["waits: not pruned now: source others-theirs wants it"]);
    planned.says(&["- ConfigMap others-diff/old"]);
    planned.says(&["no longer wanted; source others-theirs may still come to want it"]);
    assert!(!planned.stdout.contains("- ConfigMap others-diff/env"), "{planned:#?}");
    // A user who may not read the claims of the others gets a message.
    let proxy = site.cluster.fault_proxy(0).unwrap();
    site.through(&proxy);
    let lists =
        Requests::any().path_contains("/namespaces/others-diff-rhumb/configmaps").path_lacks("configmaps/");
    proxy.add(Rule::new(lists, Fault::Replace(Answer::error(403, "Forbidden"))));
    let planned = site.diff(folder.path(), &flags).ends(1);
    planned.says(&["- ConfigMap others-diff/env"]);
    planned.says(&["it is not known what other sources of the cluster want"]);
}

#[test]
fn an_apply_prunes_nothing_that_a_source_of_another_repository_requests_or_has() {
    let site = TestNamespace::new("others-prune");
    let map = |name: &str, value: &str| (format!("{name}.yaml"), yaml::config_map(name, "a", value));
    let folder = Folder::new(&["env", "old", "kept", "more"].map(|name| map(name, "one")));
    site.apply(folder.path(), &[]).ends(0);
    let repo = Repo::new(&["env", "theirs"].map(|name| map(name, "two")));
    let serve_theirs = |spec: &str| {
        site.configured(&crate::support::source("others-prune-theirs", &site.name, repo.path(), spec))
    };
    let mut first = serve_theirs("  adopt: never");
    site.await_object("ConfigMap", "theirs");
    await_requests(&site, "others-prune-theirs", 1);
    folder.remove("env.yaml");
    folder.remove("old.yaml");
    let uid = site.value("ConfigMap", "env", "/metadata/uid");
    let window = site.window();
    let prune = || site.apply(folder.path(), &["--prune", "--yes"]);
    let pass = prune().ends(1);
    pass.says(&["configmap/env", "not pruned now: source others-prune-theirs wants it"]);
    pass.says(&["configmap/old", "pruned"]);
    assert_eq!(site.data("env", "a"), "one");
    // The other source takes it over: no pass knows anything of it any more.
    assert_eq!(first.stop().code(), Some(0));
    let _second = serve_theirs("");
    site.await_data("env", "a", "two");
    let pass = prune().ends(0);
    pass.says(&["0 pruned, 2 unchanged"]);
    assert!(!pass.all().contains("configmap/env"), "{pass:#?}");
    assert_eq!(site.value("ConfigMap", "env", "/metadata/uid"), uid);
    let deleted: Vec<String> = window.deletes().into_iter().map(|event| event.name).collect();
    assert_eq!(deleted, ["old"]);
}

// An inventory without objects would hold up the deletions of all others.
#[test]
fn an_apply_that_writes_nothing_leaves_no_inventory() {
    let site = TestNamespace::new("others-nothing");
    let flux = "metadata:\n  labels: {kustomize.toolkit.fluxcd.io/name: apps, \
                kustomize.toolkit.fluxcd.io/namespace: flux}\n";
    let theirs = yaml::config_map("theirs", "a", "1").replace("metadata:\n", flux);
    site.cluster.kubectl_in(&["apply", "-n", &site.name, "-f", "-"], &theirs).unwrap();
    let check = |text: &str, refusal: &str| {
        let folder = Folder::new(&[("one.yaml", text.to_owned())]);
        let ended = site.apply(folder.path(), &[]).ends(1);
        ended.says(&[refusal]);
        assert!(site.inventory().is_none(), "{ended:#?}");
    };
    check(&yaml::config_map("theirs", "a", "2"), "Flux Kustomization flux/apps");
    check(&yaml::service("web", "web").replace("port: 80", "port: 700000"), "Service");
    check("kind: [", "one.yaml");
    // An object that was written is looked for again.
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    site.apply(folder.path(), &[]).ends(0);
    assert!(site.inventory().is_some());
}
