//! Sources that are in the cluster, as objects of kind `Source`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, DedicatedCluster, Repo, TestNamespace, at, eventually, source, yaml};

/// Starts an own control plane, as the definition is the whole cluster's.
pub(crate) fn own(cluster: &controlplane::Cluster) -> TestNamespace<'_> {
    let definition =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/in-cluster/crd.yaml"));
    cluster.kubectl_in(&["apply", "--server-side", "-f", "-"], &definition.unwrap()).unwrap();
    let waits = ["wait", "--for=condition=Established", "crd/sources.rhumb.dev", "--timeout=3m"];
    cluster.kubectl(&waits).unwrap();
    let site = TestNamespace::on(cluster, "customs");
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.system()}});
    site.api.create("/api/v1/namespaces", "setup", &system);
    site
}

pub(crate) fn custom(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "rhumb.dev/v1alpha1", "kind": "Source", "metadata": {"name": name}, "spec": spec})
}

fn directory(repo: &Repo, namespace: &str) -> Value {
    json!({"git": {"url": repo.path()}, "namespace": namespace})
}

pub(crate) fn condition(site: &TestNamespace<'_>, name: &str, kind: &str) -> String {
    let status = site.api.value(&at("Source", &site.system(), name), "/status");
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found
        .map(|found| format!("{} {}: {}", found["status"], found["reason"], found["message"]))
        .unwrap_or_default()
}

#[track_caller]
pub(crate) fn await_condition(site: &TestNamespace<'_>, name: &str, kind: &str, texts: &[&str]) {
    eventually(&format!("{name} is {kind}: {texts:?}"), DEFAULT_TIMEOUT, || {
        let found = condition(site, name, kind).replace('"', "");
        if texts.iter().all(|text| found.contains(text)) { Ok(()) } else { Err(found) }
    });
}

pub(crate) const HEAD: &str = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\ncustomSources: any\n";

#[test]
fn sources_come_change_and_go_in_the_cluster() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let (system, one) = (site.system(), Repo::new(&[("a.yaml", yaml::config_map("one", "a", "1"))]));
    let kept = Repo::new(&[("a.yaml", yaml::config_map("kept", "a", "1"))]);
    let text = format!("{HEAD}---\n{}", source("file", &site.name, kept.path(), ""));
    let mut daemon = site.configured(&text);
    site.await_data("kept", "a", "1");
    let path = at("Source", &system, "");
    site.api.create(&path, "people", &custom("one", &directory(&one, &site.name)));
    site.await_data("one", "a", "1");
    let waits = ["-n", &system, "wait", "--for=condition=Ready", "source/one", "--timeout=3m"];
    cluster.kubectl(&waits).unwrap();
    let shown = site.api.get(&at("Source", &system, "one")).unwrap();
    assert_eq!(shown["status"]["revision"], json!(one.head()));
    assert_eq!(shown["status"]["objects"], json!(1));
    assert_eq!(shown["status"]["phases"], json!({"Settled": 1}));
    assert_eq!(shown["status"]["observedGeneration"], shown["metadata"]["generation"]);
    // A name that the file has, and a repository that is not there: neither harms any other.
    site.api.create(&path, "people", &custom("file", &directory(&one, &site.name)));
    site.api.create(&path, "people", &custom("lost", &json!({"git": {"url": "/nowhere/at/all"}})));
    await_condition(&site, "file", "Stalled", &["True NameTaken", "the configuration file"]);
    await_condition(&site, "lost", "Reconciling", &["True"]);
    one.change("a.yaml", &yaml::config_map("one", "a", "2"));
    site.await_data("one", "a", "2");
    eventually("the new revision is reported", DEFAULT_TIMEOUT, || {
        let revision = site.api.value(&at("Source", &system, "one"), "/status/revision");
        if revision == json!(one.head()) { Ok(()) } else { Err(revision.to_string()) }
    });
    // Gone, its objects stay, and nobody defends them.
    let mark = daemon.mark();
    site.api.delete(&at("Source", &system, "one"));
    daemon.says_since(mark, &["2 sources in the cluster"]);
    kept.change("a.yaml", &yaml::config_map("kept", "a", "2"));
    site.await_data("kept", "a", "2");
    assert!(site.has("ConfigMap", "one"));
    assert_eq!(daemon.stop().code(), Some(0));
}

/// Leaves a ConfigMap alone that is like the example's own configuration.
#[test]
fn a_source_called_like_a_config_map_of_somebody_else_leaves_that_alone() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let inventory = |name: &str| at("ConfigMap", &site.system(), name);
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rhumb-config"}, "data": {"rhumb.yaml": "a"}});
    site.api.create(&inventory(""), "people", &foreign);
    let before = site.api.get(&inventory("rhumb-config")).unwrap();
    let repo = |name: &str| Repo::new(&[("a.yaml", yaml::config_map(name, "a", "1"))]);
    let (barred, other) = (repo("barred"), repo("other"));
    let mut daemon = site.configured(HEAD);
    for (name, repo) in [("rhumb-config", &barred), ("other", &other)] {
        site.api.create(
            &at("Source", &site.system(), ""),
            "people",
            &custom(name, &directory(repo, &site.name)),
        );
    }
    let why = ["True", "no inventory, and left alone: give the source another name"];
    await_condition(&site, "rhumb-config", "Stalled", &why);
    await_condition(&site, "other", "Ready", &["True"]);
    other.change("a.yaml", &yaml::config_map("other", "a", "2"));
    site.await_data("other", "a", "2");
    assert_eq!(daemon.stop().code(), Some(0));
    assert_eq!(site.api.get(&inventory("rhumb-config")).unwrap(), before);
    assert!(!site.has("ConfigMap", "barred"));
}

#[test]
fn what_is_not_allowed_is_said_and_the_server_refuses_what_makes_no_sense() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let (system, path) = (site.system(), at("Source", &site.system(), ""));
    let mut daemon = site.configured(&HEAD.replace("any", "remote"));
    let shown = json!([{"kind": "Secret", "name": "vars", "sensitive": false}]);
    let no_account = "Secret default/vars with `sensitive: false` is not allowed without a service account";
    for (name, spec, why) in [
        ("folder", json!({"directory": "/etc"}), "customSources: any"),
        ("here", json!({"git": {"url": "file:///srv/a"}}), "customSources: any"),
        ("helper", json!({"git": {"url": "ext::sh -c touch% /tmp/x"}}), "its transport is not used"),
        ("plain", json!({"git": {"url": "http://a.example/b"}}), "its transport is not used"),
        ("shows", json!({"git": {"url": "https://a.example/b"}, "substituteFrom": shown}), no_account),
    ] {
        site.api.create(&path, "people", &custom(name, &spec));
        await_condition(&site, name, "Stalled", &["True Invalid", why]);
        await_condition(&site, name, "Ready", &["False"]);
    }
    let apply = |name: &str, spec: &str| {
        let text = format!(
            "{{apiVersion: rhumb.dev/v1alpha1, kind: Source, metadata: {{name: {name}, namespace: {system}}}, spec: {spec}}}"
        );
        cluster.kubectl_in(&["apply", "--server-side", "-f", "-"], &text).map_err(|error| error.to_string())
    };
    let refused = |name: &str, spec: &str, why: &str| {
        let applied = apply(name, spec);
        assert!(applied.as_ref().is_err_and(|applied| applied.contains(why)), "{applied:?}");
    };
    refused("a", "{}", "exactly one of git and directory");
    refused("a", "{directory: /a, git: {url: 'https://a.example/b'}}", "exactly one of git and directory");
    refused("a.b", "{directory: /a}", "a DNS label");
    refused("a", "{directory: /a, adopt: perhaps}", "adopt");
    refused("a", "{directory: /a, colour: red}", "colour");
    for short in ["0s", "1ms", "0.9s"] {
        let spec = format!("{{git: {{url: 'https://a.example/b', interval: {short}}}}}");
        refused("a", &spec, "interval must be at least 1s");
    }
    refused("a", "{git: {url: \"https://a.example/b\\n\"}}", "spec.git.url");
    let good = "{git: {url: 'https://a.example/b'}, blastRadius: {count: 1, percent: 5}, budget: {maxUnavailable: 10%, soak: 0s}}";
    apply("good", good).unwrap();
    apply("often", "{git: {url: 'https://a.example/b', interval: 1s}}").unwrap();
    assert_eq!(daemon.stop().code(), Some(0));
}
