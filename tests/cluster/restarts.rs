//! Restarts for configuration that changed.

use std::thread;

use serde_json::{Value, json};

use crate::budget::most_rolling;
use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, until, yaml,
};

const SETTINGS: &str = "budget: {soak: 0s, deadline: 15s, maxUnavailable: 100%}";
const HASH: &str = "/spec/template/metadata/annotations/rhumb.dev~1config-hash";
const WORD: &str = "rhumb.dev/restart-on-change: \"true\"";

/// A value that nobody is to see, and how it looks in `data`.
const CANARY: &str = "kanarienvogel-1357";
const ENCODED: &str = "a2FuYXJpZW52b2dlbC0xMzU3";

/// Returns a Deployment that uses the `ConfigMap` env and the Secret tls, which may be missing.
fn web(name: &str, image: &str, words: &str, pods: &str) -> String {
    let text = yaml::workload("Deployment", name, 2, image, pods);
    let text = text.replace(
        &format!("  name: {name}\nspec"),
        &format!("  name: {name}\n  annotations: {{{words}}}\nspec"),
    );
    format!(
        "{text}        envFrom: [{{configMapRef: {{name: env}}}}, {{secretRef: {{name: tls, optional: true}}}}]\n"
    )
}

fn env(value: &str) -> String {
    yaml::config_map("env", "a", value)
}

fn repo(image: &str, words: &str) -> Repo {
    Repo::new(&[("web.yaml", web("web", image, words, "{}")), ("env.yaml", env("one"))])
}

/// Starts a daemon, and waits until it is at rest.
fn daemon(site: &TestNamespace<'_>, repo: &Repo) -> Daemon {
    let daemon = site.configured(&site.configuration(repo.path(), SETTINGS));
    at_rest(site);
    daemon
}

#[track_caller]
fn at_rest(site: &TestNamespace<'_>) {
    site.await_rollout("web");
    site.await_free_budget();
}

/// Returns the number of templates that the Deployment has had: each restart counts, also one back
/// to an older template.
fn revision(site: &TestNamespace<'_>) -> Value {
    site.value("Deployment", "web", "/metadata/annotations/deployment.kubernetes.io~1revision")
}

#[track_caller]
fn await_revision(site: &TestNamespace<'_>, number: &str) {
    eventually(&format!("web is at revision {number}"), DEFAULT_TIMEOUT, || match revision(site) {
        shown if shown == json!(number) => Ok(()),
        shown => Err(shown),
    });
    at_rest(site);
    assert_eq!(revision(site), json!(number));
}

/// Waits until the workload records which data its pods have.
#[track_caller]
fn await_word(site: &TestNamespace<'_>) {
    await_word_of(site, "web");
}

fn await_word_of(site: &TestNamespace<'_>, name: &str) {
    let stamp = "/metadata/annotations/rhumb.dev~1config";
    until(&format!("{name} tells its data"), || site.value("Deployment", name, stamp).is_string());
}

fn secret(site: &TestNamespace<'_>, value: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "stringData": {"a": value}});
    if site.has("Secret", "tls") {
        site.api.merge(&site.at("Secret", "tls"), "somebody", &json!({"stringData": {"a": value}}));
    } else {
        site.api.create(&site.at("Secret", ""), "somebody", &object);
    }
}

/// Returns our writes, in order.
fn written(window: &AuditWindow<'_>) -> Vec<String> {
    let named = window.writes().into_iter().filter(|event| event.code < 300).map(|event| event.name);
    named.filter(|name| name == "env" || name == "web").collect()
}

/// Lets no pod be added any more, by a quota.
fn forbid_pods(site: &TestNamespace<'_>) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": {"pods": "2"}}});
    site.api.create(&site.at("ResourceQuota", ""), "setup", &quota);
    until("the quota counts", || site.value("ResourceQuota", "full", "/status/used/pods") == json!("2"));
}

#[test]
fn a_change_of_a_config_map_from_git_restarts_once_and_in_order() {
    let site = TestNamespace::new("restart-git");
    let repo = repo("nginx:1", WORD);
    let mut first = daemon(&site, &repo);
    await_word(&site);
    assert_eq!((revision(&site), site.value("Deployment", "web", HASH)), (json!("1"), Value::Null));
    let window = site.window();
    repo.change("env.yaml", &env("two"));
    await_revision(&site, "2");
    assert_eq!(written(&window), ["env", "web"]);
    let hash = site.value("Deployment", "web", HASH);
    assert!(hash.is_string());
    // A foreign value there is repaired.
    let other = json!({"spec": {"template": {"metadata": {"annotations": {"rhumb.dev/config-hash": "x"}}}}});
    site.api.merge(&site.at("Deployment", "web"), "somebody", &other);
    until("it is repaired", || site.value("Deployment", "web", HASH) == hash);
    at_rest(&site);
    let revision = revision(&site);
    // A process that begins anew finds nothing to do.
    first.kill();
    let window = site.window();
    let _second = daemon(&site, &repo);
    repo.change("other.yaml", &yaml::config_map("other", "a", "one"));
    site.await_data("other", "a", "one");
    assert_eq!((written(&window).len(), site.value("Deployment", "web", HASH)), (0, hash));
    assert_eq!(self::revision(&site), revision);
    // Back to the template that was there.
    repo.change("env.yaml", &env("one"));
    until("the template is as it was", || site.value("Deployment", "web", HASH) == Value::Null);
    at_rest(&site);
    assert_eq!(written(&window), ["env", "web"]);
    let sets = site.api.list(&site.at("ReplicaSet", ""));
    assert_eq!(sets.len(), 3, "the first one is taken again, besides one of somebody else");
}

#[test]
fn both_in_one_commit_are_one_rollout() {
    let site = TestNamespace::new("restart-both");
    let repo = repo("nginx:1", WORD);
    let _daemon = daemon(&site, &repo);
    await_word(&site);
    let window = site.window();
    repo.write("env.yaml", &env("two"));
    repo.change("web.yaml", &web("web", "nginx:2", WORD, "{}"));
    await_revision(&site, "2");
    assert_eq!(written(&window), ["env", "web"]);
    assert_eq!(site.value("Deployment", "web", "/spec/template/spec/containers/0/image"), json!("nginx:2"));
}

#[test]
fn a_secret_of_somebody_else_restarts_within_the_budget_and_is_shown_nowhere() {
    let site = TestNamespace::new("restart-secret");
    let slow = "{controlplane/ready-delay: 500ms}";
    let repo = Repo::new(&[("env.yaml", env("one"))]);
    let names = ["a", "b", "web"];
    for name in names {
        repo.write(&format!("{name}.yaml"), &web(name, "nginx:1", "", slow));
    }
    repo.commit("Add workloads");
    let daemon = site.configured(&site.configuration(repo.path(), "budget: {soak: 0s, maxWorkloads: 1}"));
    for name in names {
        site.await_rollout(name);
    }
    assert_eq!(site.get("Secret", "config-key.rhumb.dev"), None);
    secret(&site, "first");
    // Asking for restarts restarts nothing.
    for name in names {
        repo.write(&format!("{name}.yaml"), &web(name, "nginx:1", WORD, slow));
    }
    repo.commit("Ask for restarts");
    // A new annotation is a new generation, which the observer would take for a rollout.
    for name in names {
        await_word_of(&site, name);
        site.await_rollout(name);
    }
    at_rest(&site);
    assert_eq!(revision(&site), json!("1"));
    let (most, ()) = most_rolling(&site, || {
        secret(&site, CANARY);
        for name in names {
            until(&format!("{name} is restarted"), || site.value("Deployment", name, HASH).is_string());
            site.await_rollout(name);
        }
    });
    assert_eq!(most, 1);
    daemon.says(&["restarted, as the data of Secret tls changed"]);
    let explained = site.rhumb(&["why", "deploy/web"]).ends(0).all();
    assert!(explained.contains("Secret tls"), "{explained}");
    for text in [daemon.log(), explained] {
        assert!(!text.contains(CANARY) && !text.contains(ENCODED), "{text}");
    }
    let key = site.api.get(&at("Secret", &site.system(), "config-key.rhumb.dev")).unwrap();
    assert_eq!(key["immutable"], json!(true));
}

#[test]
fn a_diff_says_what_would_restart_and_why() {
    let site = TestNamespace::new("restart-diff");
    let repo = repo("nginx:1", WORD);
    secret(&site, "first");
    let mut daemon = daemon(&site, &repo);
    await_word(&site);
    daemon.kill();
    site.diff(repo.path(), &[]).ends(0);
    repo.change("env.yaml", &env("two"));
    let planned = site.diff(repo.path(), &[]).ends(1);
    planned.says(&["its pods are restarted, as the data of ConfigMap env"]);
    planned.says(&["Deployment restart-diff/web", "restarts 2 pods"]);
    repo.change("env.yaml", &env("one"));
    secret(&site, CANARY);
    let planned = site.diff(repo.path(), &[]).ends(1);
    planned.says(&["its pods are restarted, as the data of", "Secret tls change"]);
    assert!(!planned.all().contains(CANARY) && !planned.all().contains(ENCODED), "{}", planned.all());
    // One pass restarts them as well.
    site.apply(repo.path(), &["--wait"]).ends(0);
    site.await_rollout("web");
    assert_eq!(revision(&site), json!("2"));
    site.diff(repo.path(), &[]).ends(0);
}

#[test]
fn a_config_map_that_breaks_pods_goes_back_with_them() {
    let site = TestNamespace::new("restart-bad");
    let repo = repo("nginx:1", WORD);
    let first = daemon(&site, &repo);
    await_word(&site);
    forbid_pods(&site);
    repo.change("env.yaml", &env("two"));
    first.says(&["restarted, as the data of ConfigMap env changed"]);
    first.says(&["restarted as the data of ConfigMap env changed: ", "it is back at revision"]);
    site.await_data("env", "a", "one");
    at_rest(&site);
    let explained = site.rhumb(&["why", "deploy/web"]).ends(0);
    explained.says(&["phase", "RolledBack"]);
    explained.says(&["reason", "restarted as the data of ConfigMap env changed"]);
    assert_eq!(site.value("Deployment", "web", HASH), Value::Null);
    drop(first);
    site.api.delete(&site.at("ResourceQuota", "full"));
    let window = site.window();
    let _second = daemon(&site, &repo);
    repo.change("other.yaml", &yaml::config_map("other", "a", "one"));
    site.await_data("other", "a", "one");
    assert_eq!(written(&window), [""; 0], "what failed is not tried again");
    repo.change("env.yaml", &env("three"));
    site.await_data("env", "a", "three");
    until("it is restarted", || site.value("Deployment", "web", HASH).is_string());
    at_rest(&site);
}

#[test]
fn a_secret_of_somebody_else_that_breaks_pods_is_reported_and_left() {
    let site = TestNamespace::new("restart-held");
    let repo = repo("nginx:1", WORD);
    secret(&site, "first");
    let daemon = daemon(&site, &repo);
    await_word(&site);
    forbid_pods(&site);
    let window = site.window();
    secret(&site, CANARY);
    daemon.says(&["restarted as the data of Secret tls changed, failed: "]);
    until("nothing more is claimed", || {
        let records = site.records();
        records.contains("restarted as the data of Secret tls changed") && !records.contains(CANARY)
    });
    assert_eq!(written(&window), ["web"]);
    site.api.delete(&site.at("ResourceQuota", "full"));
    // Another change of it is tried.
    secret(&site, "third");
    until("it is restarted again", || written(&window) == ["web", "web"]);
    at_rest(&site);
    until("nothing is rejected", || !site.records().contains("Secret tls"));
}

#[test]
fn what_changed_while_rhumb_was_down_restarts_once() {
    let site = TestNamespace::new("restart-down");
    let repo = repo("nginx:1", WORD);
    secret(&site, "first");
    let mut first = daemon(&site, &repo);
    await_word(&site);
    first.kill();
    secret(&site, "second");
    repo.change("env.yaml", &env("two"));
    let window = site.window();
    let mut second = site.configured(&site.configuration(repo.path(), SETTINGS));
    until("the configuration is written", || written(&window).contains(&"env".to_owned()));
    second.kill();
    let _third = daemon(&site, &repo);
    await_revision(&site, "2");
    assert_eq!(site.data("env", "a"), "two");
    assert_eq!(written(&window).iter().filter(|name| *name == "env").count(), 1);
}

#[test]
fn a_pause_keeps_pods_as_they_are() {
    let site = TestNamespace::new("restart-pause");
    let repo = repo("nginx:1", WORD);
    repo.change("near.yaml", &web("near", "nginx:1", WORD, "{}"));
    secret(&site, "first");
    let _daemon = daemon(&site, &repo);
    await_word(&site);
    await_word_of(&site, "near");
    site.rhumb(&["rollout", "pause", "deploy/web", "--reason", "a fair"]).ends(0);
    let window = site.window();
    secret(&site, "second");
    // Once its neighbour has restarted, the daemon has seen the change.
    let revision_word = "/metadata/annotations/deployment.kubernetes.io~1revision";
    until("its neighbour restarts", || site.value("Deployment", "near", revision_word) == json!("2"));
    site.await_rollout("near");
    site.await_free_budget();
    assert_eq!(written(&window), [""; 0]);
    site.rhumb(&["rollout", "resume", "deploy/web"]).ends(0);
    await_revision(&site, "2");
}

#[test]
fn what_may_not_be_read_restarts_nothing_and_holds_up_nothing() {
    let mut site = TestNamespace::new("restart-rights");
    let rules = json!([
        {"apiGroups": ["*"], "resources": ["configmaps", "deployments", "namespaces", "pods", "replicasets"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]}
    ]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "restart-rights"}, "rules": rules});
    site.limited();
    site.api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", "setup", &role);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "restart-rights"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "restart-rights"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": site.user}],
    });
    site.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "setup", &binding);
    let repo = repo("nginx:1", WORD);
    let daemon = daemon(&site, &repo);
    daemon.says(&["no workload is restarted for data that change"]);
    repo.change("env.yaml", &env("two"));
    site.await_data("env", "a", "two");
    repo.change("web.yaml", &web("web", "nginx:2", WORD, "{}"));
    await_revision(&site, "2");
    assert_eq!(site.value("Deployment", "web", HASH), Value::Null);
}

#[test]
fn two_daemons_end_with_one_key() {
    let site = TestNamespace::new("restart-two");
    let repo = repo("nginx:1", WORD);
    let other = site.with_empty_state();
    let configuration = site.configuration(repo.path(), SETTINGS);
    let daemons = thread::scope(|scope| {
        let second = scope.spawn(|| other.configured(&configuration));
        [site.configured(&configuration), second.join().unwrap()]
    });
    await_word(&site);
    at_rest(&site);
    repo.change("env.yaml", &env("two"));
    await_revision(&site, "2");
    repo.change("env.yaml", &env("three"));
    await_revision(&site, "3");
    drop(daemons);
}
