//! Daemons and people under exactly the printed roles. They roll back, roll out in steps, adopt,
//! and run as replicas. A source only observes beside one that writes, and sources are in the
//! cluster.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::customs::{HEAD, await_condition, custom, own};
use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, DedicatedCluster, Repo, TestNamespace, at, eventually, run, source,
    until, yaml,
};

/// Returns a command with a configuration.
fn with_config(site: &TestNamespace<'_>, arguments: &[&str]) -> Command {
    let mut command = site.bare_command();
    command.args(arguments).arg("--config").arg(site.state.path().join("rhumb.yaml"));
    command
}

/// Grants exactly what is printed for a configuration.
fn grant(site: &TestNamespace<'_>, text: &str) {
    fs::write(site.state.path().join("rhumb.yaml"), text).unwrap();
    let printed = run(with_config(site, &["rbac", "--user", &site.user])).ends(0).stdout;
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
    eventually("all is granted", DEFAULT_TIMEOUT, || {
        let checked = run(with_config(site, &["check"]));
        if checked.stdout.contains("missing the right to") { Err(checked.all()) } else { Ok(()) }
    });
}

fn assert_nothing_forbidden(window: &AuditWindow<'_>) {
    let forbidden: Vec<_> = window.calls().into_iter().filter(|call| call.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

/// Returns a workload of two steps that a person promotes.
fn stepped(image: &str) -> String {
    let steps = "metadata:\n  annotations: {rhumb.dev/steps: '1', rhumb.dev/step-promote: manual}\n";
    yaml::deployment("web", 3, image).replacen("metadata:\n", steps, 1)
}

#[test]
fn rollouts_go_on_and_back_and_two_replicas_share_what_is_observed_and_what_is_not() {
    let mut site = TestNamespace::new("rights-deeds");
    let there = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "env"}, "data": {"b": "theirs"}});
    site.api.create(&site.at("ConfigMap", ""), "kubectl-create", &there);
    let set = |tag: &str| yaml::workload("StatefulSet", "db", 2, &format!("pg:{tag}"), "{}");
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("web.yaml", stepped("app:1")),
        ("db.yaml", set("1")),
    ]);
    let looked = Repo::new(&[("other.yaml", yaml::deployment("other", 1, "app:1"))]);
    site.limited();
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nleases: always\nbudget: {{soak: 0s, maxUnavailable: \
         100%}}\n---\n{}---\n{}",
        source(&site.name, &site.name, repo.path(), ""),
        source("rights-deeds-looked", &site.name, looked.path(), "  observe: true")
    );
    grant(&site, &text);
    let window = site.window();
    let other = site.with_empty_state();
    fs::write(other.state.path().join("rhumb.yaml"), &text).unwrap();
    let mut replicas = [&site, &other].map(|site| Daemon::start(with_config(site, &["run", "-v"])));
    site.await_data("env", "a", "1");
    site.await_rollout("web");
    let ready = || site.value("StatefulSet", "db", "/status/readyReplicas") == json!(2);
    until("the set is ready", ready);
    let image = |kind: &str, name: &str| site.value(kind, name, "/spec/template/spec/containers/0/image");
    // Back by itself, once it had its new image; the pod that holds it up is deleted.
    repo.change("db.yaml", &set("broken"));
    until("it went back", || replicas.iter().any(|replica| replica.log().contains("rolled back: revision")));
    until("it is complete", || image("StatefulSet", "db") == json!("pg:1") && ready());
    // A step that is let go, and one that is taken back.
    let order = |what: &str| {
        eventually(&format!("{what} is done"), DEFAULT_TIMEOUT, || {
            let mut command = site.bare_command();
            command.args(["rollout", what, "deploy/web", "--source", &site.name, "-n", &site.name]);
            let output = run(command);
            if output.code == 0 { Ok(()) } else { Err(output.all()) }
        });
    };
    let updated = || site.value("Deployment", "web", "/status/updatedReplicas");
    let held = || site.value("Deployment", "web", "/metadata/annotations/rhumb.dev~1overlay");
    for (what, image_then) in [("promote", "app:2"), ("abort", "app:2")] {
        let newer = if what == "promote" { "app:2" } else { "app:3" };
        repo.change("web.yaml", &stepped(newer));
        until("a step is held", || {
            image("Deployment", "web") == json!(newer) && !held().is_null() && updated() == json!(1)
        });
        order(what);
        until("it is over", || image("Deployment", "web") == json!(image_then) && held().is_null());
        site.await_rollout("web");
    }
    // The other replica takes over.
    assert_eq!(replicas[0].stop().code(), Some(0));
    repo.change("env.yaml", &yaml::config_map("env", "a", "2"));
    site.await_data("env", "a", "2");
    drop(replicas);
    assert!(!site.has("Deployment", "other"));
    assert_nothing_forbidden(&window);
}

#[test]
fn a_source_in_the_cluster_comes_and_is_taken_away_with_its_objects() {
    let cluster = DedicatedCluster::bare();
    let mut site = own(&cluster);
    site.limited();
    let repo =
        Repo::new(&[("a.yaml", yaml::config_map("one", "a", "1")), ("b.yaml", yaml::service("web", "web"))]);
    // For what it holds, roles are printed of the same files.
    let path = repo.path();
    grant(&site, &format!("{HEAD}---\n{}", source("customs-all", &site.name, path, "")));
    fs::write(site.state.path().join("rhumb.yaml"), HEAD).unwrap();
    let window = site.window();
    let _daemon = Daemon::start(with_config(&site, &["run", "-v"]));
    let spec = json!({"git": {"url": path}, "namespace": site.name, "deletionPolicy": "Delete", "blastRadius": "100%"});
    site.api.create(&at("Source", &site.system(), ""), "people", &custom("all", &spec));
    await_condition(&site, "all", "Ready", &["True"]);
    repo.change("a.yaml", &yaml::config_map("one", "a", "2"));
    site.await_data("one", "a", "2");
    site.api.delete(&at("Source", &site.system(), "all"));
    eventually("it is gone", DEFAULT_TIMEOUT * 2, || {
        match site.api.get(&at("Source", &site.system(), "all")) {
            None => Ok(()),
            Some(source) => Err(source.to_string()),
        }
    });
    assert!(!site.has("ConfigMap", "one") && !site.has("Service", "web"));
    assert_nothing_forbidden(&window);
}
