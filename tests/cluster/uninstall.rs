//! Leaving the cluster: what goes, what stays, and who keeps it from going.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::customs::{custom, own};
use crate::support::{
    DEFAULT_TIMEOUT, Daemon, DedicatedCluster, Folder, ProgramOutput, Repo, TestNamespace, at, eventually,
    run, source, until, yaml,
};

fn uninstall(site: &TestNamespace<'_>, words: &[&str]) -> ProgramOutput {
    let mut command = site.bare_command();
    command.arg("uninstall").args(words);
    run(command)
}

fn files() -> [(&'static str, String); 4] {
    let kept = yaml::config_map("kept", "a", "1");
    let kept = kept.replace("metadata:\n", "metadata:\n  annotations: {rhumb.dev/prune: never}\n");
    [
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("kept.yaml", kept),
        ("db.yaml", yaml::workload("StatefulSet", "db", 1, "app:1", "{}")),
        ("key.yaml", yaml::secret("key", "a", "1")),
    ]
}

#[test]
fn objects_go_with_their_source_only_when_they_were_counted_and_nobody_serves_it() {
    let site = TestNamespace::new("uninstall");
    let folder = Folder::new(&files());
    let mut daemon = site.daemon(folder.path());
    for (kind, name) in
        [("ConfigMap", "env"), ("ConfigMap", "kept"), ("StatefulSet", "db"), ("Secret", "key")]
    {
        site.await_object(kind, name);
    }
    // A copy by somebody who may write a ConfigMap, with all marks of the one that it is made of.
    let mut copy = site.api.get(&site.at("ConfigMap", "env")).unwrap();
    for of_the_server in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        copy["metadata"].as_object_mut().unwrap().remove(of_the_server);
    }
    copy["metadata"]["name"] = json!("copy");
    let apply = ["apply", "--server-side", "--field-manager=rhumb", "-f", "-"];
    site.cluster.kubectl_in(&apply, &copy.to_string()).unwrap();
    let window = site.window();
    let listed = uninstall(&site, &["uninstall", "--delete-objects", "--dry-run"]).ends(0);
    listed.says(&["uninstall/configmap/copy", "stays, as nothing proves that rhumb made it"]);
    for object in ["uninstall/configmap/env", "uninstall/statefulset.apps/db", "uninstall/secret/key"] {
        listed.says(&[object]);
    }
    listed.says(&["uninstall/configmap/kept", "stays"]);
    uninstall(&site, &["uninstall", "--delete-objects"]).ends(4).says(&["--count 3"]);
    uninstall(&site, &["uninstall", "--delete-objects", "--count", "2"])
        .ends(2)
        .says(&[", not 2: none is deleted"]);
    uninstall(&site, &["nobody"]).ends(2).says(&["there is no source nobody"]);
    let served = uninstall(&site, &["uninstall", "--delete-objects", "--count", "3"]).ends(4);
    served.says(&["a daemon serves source uninstall"]);
    // The question leaves no trace.
    let orders = at("ConfigMap", &site.system(), "orders.uninstall.rhumb.dev");
    assert_eq!(site.api.value(&orders, "/data"), Value::Null);
    assert_eq!(daemon.stop().code(), Some(0));
    assert!(!daemon.full_log().contains("no order"), "{}", daemon.full_log());
    window.assert_no_deletes();

    uninstall(&site, &["uninstall", "--delete-objects", "--count", "3"]).ends(0);
    for (kind, name) in [("ConfigMap", "env"), ("StatefulSet", "db"), ("Secret", "key")] {
        site.await_absence(kind, name);
    }
    assert!(site.has("ConfigMap", "kept") && site.has("ConfigMap", "copy") && site.inventory().is_none());
    let last = window.deletes().last().map(|delete| delete.name.clone());
    assert_eq!(last.as_deref(), Some("uninstall"), "the inventory goes last");
}

/// Deletes an object that somebody else's finalizer keeps, until the first line about that.
#[test]
fn deletions_without_a_terminal_say_what_they_wait_for() {
    let site = TestNamespace::new("leaving-slowly");
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    site.apply(folder.path(), &[]).ends(0);
    let finalizers = |all: Value| {
        site.api.merge(&site.at("ConfigMap", "env"), "somebody", &json!({"metadata": {"finalizers": all}}))
    };
    finalizers(json!(["example.org/slow"]));
    let mut command = site.bare_command();
    command.args(["uninstall", "--delete-objects", "--count", "1"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.next().unwrap_or_default();
    assert!(line.starts_with("progress: 0 objects done; leaving-slowly/configmap/env: "), "{line}");
    finalizers(Value::Null);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{:?}", lines.collect::<Vec<_>>());
    assert!(!site.has("ConfigMap", "env") && site.inventory().is_none());
}

#[test]
fn without_a_word_about_objects_all_of_them_stay() {
    let site = TestNamespace::new("leaving");
    let folder = Folder::new(&files());
    site.apply(folder.path(), &[]).ends(0);
    let before = site.get("ConfigMap", "env").unwrap();
    // The name of another source does not mean all.
    uninstall(&site, &["--source", "other"]).ends(2).says(&["there is no source other"]);
    uninstall(&site, &[]).ends(0).says(&["source leaving is removed", "its 4 objects stay"]);
    assert_eq!(site.get("ConfigMap", "env").unwrap(), before);
    eventually("nothing of rhumb is in its namespace", DEFAULT_TIMEOUT, || {
        let list = |kind| site.api.list(&at(kind, &site.system(), ""));
        let all = [list("ConfigMap"), list("Secret"), list("Lease")].concat();
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let left: Vec<String> = all.iter().map(name).filter(|name| name != "kube-root-ca.crt").collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    // Where there is nothing more there is nothing to do.
    uninstall(&site, &[]).ends(0);
}

// No daemon runs, and the next one would begin the source again.
#[test]
fn what_an_object_of_kind_source_declares_is_not_ended_while_that_exists() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let folder = Folder::new(&files());
    site.apply(folder.path(), &[]).ends(0);
    let path = at("Source", &site.system(), "");
    let declare = |name: &str| {
        let spec = json!({"directory": "/nowhere", "namespace": site.name});
        site.api.create(&path, "people", &custom(name, &spec));
    };
    declare("customs");
    for words in [&["customs"][..], &[]] {
        uninstall(&site, words).ends(4).says(&["kubectl delete sources.rhumb.dev", "customs"]);
    }
    site.api.delete(&at("Source", &site.system(), "customs"));
    declare("other");
    uninstall(&site, &[]).ends(4).says(&["Source customs-rhumb/other would create its source again"]);
    assert!(site.inventory().is_some());
    uninstall(&site, &["customs"]).ends(0);
    assert!(site.inventory().is_none() && site.has("ConfigMap", "env"));
}

#[test]
fn a_daemon_that_only_observes_does_not_hold_it_up_and_makes_nothing_again() {
    let site = TestNamespace::new("leaving-watched");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    site.apply(repo.path(), &[]).ends(0);
    let file = site.state.path().join("rhumb.yaml");
    std::fs::write(&file, source(&site.name, &site.name, repo.path(), "  observe: true")).unwrap();
    let mut command = site.bare_command();
    command.args(["run", "-v", "--config"]).arg(file);
    let daemon = Daemon::start(command);
    daemon.says(&["read", &repo.head()]);
    uninstall(&site, &[&site.name]).ends(0);
    let window = site.window();
    repo.change("web.yaml", &yaml::service("web", "web"));
    daemon.says(&["Service leaving-watched/web", "observe: true"]);
    window.assert_silent();
    assert!(site.inventory().is_none());
}

const STEP: &str = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";

/// Returns a Deployment that waits for a person at its first step.
fn stepped(image: &str) -> String {
    yaml::workload("Deployment", "web", 2, image, "{}")
        .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{STEP}}}\nspec"))
}

#[test]
fn a_workload_at_a_step_is_named_with_the_command_that_lets_it_go() {
    let site = TestNamespace::new("leaving-held");
    let repo = Repo::new(&[("web.yaml", stepped("app:1"))]);
    let mut daemon = site.daemon(repo.path());
    site.await_rollout("web");
    repo.change("web.yaml", &stepped("app:2"));
    let overlay = || site.value("Deployment", "web", "/metadata/annotations/rhumb.dev~1overlay");
    until("it is at its step", || overlay() == json!("surge=1 step=1"));
    // Without a terminal a line tells that it goes on waiting.
    let mut watch = site.bare_command();
    watch.args(["rollout", "status", "deploy/web", "-n", &site.name, "--watch"]);
    watch.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = watch.spawn().unwrap();
    let line = BufReader::new(child.stderr.take().unwrap()).lines().next().map(Result::unwrap);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.as_deref().is_some_and(|line| line.starts_with("progress: Waiting for ")), "{line:?}");
    assert_eq!(daemon.stop().code(), Some(0));
    site.rhumb(&["status"]).says(&["leaving-held/deployment.apps/web is at step 1 of its rollout"]);
    let left = uninstall(&site, &["leaving-held"]).ends(0);
    left.says(&["warning: leaving-held/deployment.apps/web stays at step 1 of its rollout"]);
    let command = left.stdout.lines().find_map(|line| line.split_once(": kubectl ")).unwrap().1;
    let (words, patch) = command.split_once(" -p ").unwrap();
    let words: Vec<&str> = words.split(' ').chain(["-p", patch.trim_matches('\'')]).collect();
    site.cluster.kubectl_in(&words, "").unwrap();
    site.await_rollout("web");
    let spec = site.value("Deployment", "web", "/spec");
    assert_eq!((overlay(), &spec["progressDeadlineSeconds"]), (Value::Null, &json!(600)), "{spec}");
}

#[test]
fn of_a_source_that_was_never_read_completely_the_end_is_reported_and_can_be_reached() {
    let site = TestNamespace::new("leaving-unread");
    let folder =
        Folder::new(&[("env.yaml", yaml::config_map("env", "a", "1")), ("bad.yaml", "kind: [".to_owned())]);
    site.apply(folder.path(), &[]).ends(1);
    site.await_object("ConfigMap", "env");
    let ended = uninstall(&site, &["leaving-unread", "--delete-objects", "--count", "1"]).ends(1);
    ended.says(&["error: source leaving-unread may have objects that are not known", "the kinds ConfigMap"]);
    ended.says(&["hint: `rhumb uninstall leaving-unread` then ends the source"]);
    assert!(!site.has("ConfigMap", "env"));
    let location = "/metadata/annotations/rhumb.dev~1source";
    assert_eq!(site.inventory().unwrap().pointer(location), None);
    uninstall(&site, &["leaving-unread"]).ends(0);
    assert!(site.inventory().is_none());
}

#[test]
fn what_another_source_requests_stays_until_that_has_it() {
    let site = TestNamespace::new("leaving-wanted");
    let map = |name: &str| (format!("{name}.yaml"), yaml::config_map(name, "a", "1"));
    let (ours, theirs) = (Folder::new(&["env", "old"].map(map)), Folder::new(&["env", "new"].map(map)));
    site.apply(ours.path(), &[]).ends(0);
    let apply_theirs =
        || site.rhumb(&["apply", theirs.path().to_str().unwrap(), "--source", "leaving-theirs"]);
    apply_theirs().ends(1).says(&["source leaving-wanted"]);
    uninstall(&site, &["leaving-wanted", "--delete-objects", "--dry-run"])
        .ends(0)
        .says(&["leaving-wanted/configmap/env", "stays, as source leaving-theirs wants it"]);
    let left = uninstall(&site, &["leaving-wanted", "--delete-objects", "--count", "1"]).ends(1);
    left.says(&["something of source leaving-wanted is left", "source leaving-theirs wants it"]);
    assert!(site.has("ConfigMap", "env") && !site.has("ConfigMap", "old"));
    // Where it ends is no location that its objects came from.
    let inventory = site.inventory().unwrap();
    let location = &inventory["metadata"]["annotations"]["rhumb.dev/source"];
    assert_eq!(location.as_str(), ours.path().to_str(), "{inventory}");
    apply_theirs().ends(0);
    uninstall(&site, &["leaving-wanted", "--delete-objects"]).ends(0);
    assert!(site.has("ConfigMap", "env") && site.inventory().is_none());
}
