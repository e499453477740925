//! Objects that are there already and nobody's: taken over by policy, and reported.

use std::thread;
use std::time::Duration;

use controlplane::{Fault, Requests, Rule};
use serde_json::{Value, json};

use crate::support::{Folder, Repo, TestNamespace, run, until, yaml};

/// Makes an object as somebody does by hand, with a key that the manifest does not have.
fn by_hand(site: &TestNamespace<'_>, name: &str, metadata: &Value) {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
        "data": {"key": "theirs", "extra": "theirs"}});
    object["metadata"]["name"] = name.into();
    site.api.create(&site.at("ConfigMap", ""), "kubectl-create", &object);
}

#[test]
fn an_object_of_nobody_is_taken_over_by_default_and_the_diff_says_so() {
    let site = TestNamespace::new("adopt-default");
    by_hand(&site, "env", &json!({}));
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "key", "ours"))]);
    site.diff(folder.path(), &[]).ends(1).says(&["it exists and is adopted"]);
    site.apply(folder.path(), &[]).ends(0).says(&["configmap/env", "configured"]);
    assert_eq!(site.data("env", "key"), "ours");
    // A field that it does not name is not its business.
    assert_eq!(site.data("env", "extra"), "theirs");
    let window = site.window();
    site.apply(folder.path(), &[]).ends(0);
    window.assert_silent();
}

#[test]
fn the_policy_never_takes_nothing_over() {
    let site = TestNamespace::new("adopt-never");
    by_hand(&site, "env", &json!({}));
    let folder = Folder::new(&[
        ("env.yaml", yaml::config_map("env", "key", "ours")),
        ("new.yaml", yaml::config_map("new", "key", "ours")),
    ]);
    let window = site.window();
    site.diff(folder.path(), &["--adopt", "never"]).ends(1).says(&["adopt is `never`"]);
    let apply = site.apply(folder.path(), &["--adopt", "never"]).ends(1);
    apply.says(&["configmap/env", "refused", "adopt is `never`"]);
    assert_eq!((site.data("env", "key"), site.data("new", "key")), ("theirs".to_owned(), "ours".to_owned()));
    assert_eq!(window.to("configmaps", "env").len(), 0);
    // Its own objects are not taken over but its own.
    site.apply(folder.path(), &["--adopt", "never"]).ends(1);
    folder.write("new.yaml", &yaml::config_map("new", "key", "newer"));
    site.apply(folder.path(), &["--adopt", "never"]).ends(1);
    assert_eq!(site.data("new", "key"), "newer");
}

#[test]
fn the_policy_always_takes_over_what_carries_another_owners_mark() {
    let site = TestNamespace::new("adopt-always");
    by_hand(&site, "env", &json!({"labels": {"argocd.argoproj.io/instance": "shop"}}));
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "key", "ours"))]);
    site.apply(folder.path(), &[]).ends(1).says(&["Argo CD Application shop"]);
    let from = "adopted from Argo CD Application shop";
    site.diff(folder.path(), &["--adopt", "always"]).ends(1).says(&["it exists and is ", from]);
    let run = site.apply(folder.path(), &["--adopt", "always"]).ends(0);
    run.says(&[&format!("configmap/env configured (adopt-always): {from}")]);
    assert_eq!(site.data("env", "key"), "ours");
    let window = site.window();
    site.apply(folder.path(), &["--adopt", "always"]).ends(0);
    window.assert_silent();
}

#[test]
fn whom_a_daemon_takes_an_object_from_is_reported() {
    let site = TestNamespace::new("adopt-told");
    by_hand(&site, "env", &json!({"labels": {"argocd.argoproj.io/instance": "shop"}}));
    let theirs = Folder::new(&[("own.yaml", yaml::config_map("own", "key", "theirs"))]);
    let mut before = site.bare_command();
    before.args(["apply", theirs.path().to_str().unwrap(), "--source", "adopt-before", "-n", &site.name]);
    run(before).ends(0);
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "key", "ours")),
        ("own.yaml", yaml::config_map("own", "key", "ours")),
    ]);
    let daemon = site.daemon_with(repo.path(), &["--adopt", "always"]);
    for (name, owner) in [("env", "Argo CD Application shop"), ("own", "source adopt-before")] {
        site.await_data(name, "key", "ours");
        let words = format!("adopted from {owner}");
        daemon.says(&[&format!("configured: {words}")]);
        until("an Event names the owner before", || {
            let events = site.api.list(&format!("/api/v1/namespaces/{}/events", site.name));
            let is_adoption = |event: &Value| {
                event["involvedObject"]["name"] == name
                    && event["message"].as_str().is_some_and(|message| message.contains(&words))
            };
            events.iter().any(is_adoption)
        });
    }
}

#[test]
fn fields_that_kubectl_apply_owned_leave_with_the_manifest() {
    let site = TestNamespace::new("adopt-kubectl");
    let old = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {key: theirs, extra: theirs}\n";
    let file = site.state.path().join("old.yaml");
    std::fs::write(&file, old).unwrap();
    site.kubectl(&["apply", "-f", file.to_str().unwrap()]);
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "key", "ours"))]);
    site.apply(folder.path(), &[]).ends(0);
    assert_eq!(site.data("env", "key"), "ours");
    assert_eq!(site.data("env", "extra"), "");
    let window = site.window();
    site.apply(folder.path(), &[]).ends(0);
    window.assert_silent();
}

#[test]
fn an_object_that_comes_between_a_lookup_and_a_creation_is_never_overwritten() {
    let mut site = TestNamespace::new("adopt-race");
    let proxy = site.cluster.fault_proxy(11).unwrap();
    site.through(&proxy);
    // The creation waits while somebody else makes the object.
    let creations = Requests::any().method("PATCH").path_suffix("/configmaps/env").query_lacks("dryRun");
    let pause = Duration::from_secs(5);
    let held = proxy.add(Rule::new(creations, Fault::Delay(pause, pause)).times(1));
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "key", "ours"))]);
    let apply = thread::scope(|scope| {
        let applying = scope.spawn(|| site.apply(folder.path(), &["--adopt", "never"]));
        until("the creation is on its way", || proxy.hits(held).fired == 1);
        by_hand(&site, "env", &json!({}));
        applying.join().unwrap()
    });
    apply.ends(1).says(&["configmap/env", "refused", "adopt is `never`"]);
    assert_eq!(site.data("env", "key"), "theirs");
    let managers = site.value("ConfigMap", "env", "/metadata/managedFields").to_string();
    assert!(!managers.contains("rhumb"), "{managers}");
}

#[test]
fn an_object_without_conflicting_fields_that_comes_before_a_creation_is_not_written_over() {
    let mut site = TestNamespace::new("adopt-merge");
    let proxy = site.cluster.fault_proxy(12).unwrap();
    site.through(&proxy);
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "key", "ours"))]);
    let policies: [(&[&str], i32, &str); 2] = [(&["--adopt", "never"], 1, ""), (&[], 0, "ours")];
    for (flags, code, expected) in policies {
        let creations = Requests::any().method("PATCH").path_suffix("/configmaps/env").query_lacks("dryRun");
        let pause = Duration::from_secs(5);
        let held = proxy.add(Rule::new(creations, Fault::Delay(pause, pause)).times(1));
        let apply = thread::scope(|scope| {
            let applying = scope.spawn(|| site.apply(folder.path(), flags));
            until("the creation is on its way", || proxy.hits(held).fired == 1);
            // It has no field that the manifest has with another value.
            let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "env"},
                "data": {"extra": "theirs"}});
            site.api.create(&site.at("ConfigMap", ""), "kubectl-create", &theirs);
            applying.join().unwrap()
        });
        apply.ends(code);
        assert_eq!(
            (site.data("env", "key"), site.data("env", "extra")),
            (expected.to_owned(), "theirs".to_owned())
        );
        let managers = site.value("ConfigMap", "env", "/metadata/managedFields").to_string();
        assert_eq!(managers.contains("rhumb"), !expected.is_empty(), "{managers}");
        site.kubectl(&["delete", "configmap", "env"]);
    }
}
