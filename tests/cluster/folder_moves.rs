//! Manifests that move between two folders of a repository that are only applied by hand.

use controlplane::AuditEvent;
use serde_json::Value;

use crate::support::{ProgramOutput, Repo, TestNamespace, run, yaml};

/// Returns a repository with two folders, of which the first one has the workload and its Service.
fn two_folders() -> Repo {
    let file =
        |name: &str| (format!("{name}/own.yaml"), yaml::config_map(&format!("own-{name}"), "key", "one"));
    let web = yaml::documents(&[yaml::deployment("web", 1, "nginx:1"), yaml::service("web", "web")]);
    Repo::new(&[file("a"), file("b"), ("a/web.yaml".to_owned(), web)])
}

/// Runs a command for the source of a folder.
fn on_folder(site: &TestNamespace<'_>, repo: &Repo, words: &[&str], folder: &str) -> ProgramOutput {
    let mut command = site.bare_command();
    let name = format!("{}-{folder}", site.name);
    command.args(words).arg(repo.path().join(folder)).args(["-n", &site.name, "--source", &name]);
    run(command)
}

fn uids(site: &TestNamespace<'_>) -> [Value; 3] {
    let value = |kind: &str, pointer: &str| site.value(kind, "web", pointer);
    [
        value("Deployment", "/metadata/uid"),
        value("Service", "/metadata/uid"),
        value("Service", "/spec/clusterIP"),
    ]
}

fn move_web(repo: &Repo, from: &str, to: &str) {
    repo.git(&["mv", &format!("{from}/web.yaml"), &format!("{to}/web.yaml")]);
}

#[test]
fn what_moves_to_a_folder_that_was_never_applied_is_not_deleted() {
    let (site, repo) = (TestNamespace::new("moved-new"), two_folders());
    let apply = |folder: &str| on_folder(&site, &repo, &["apply", "--prune", "--yes"], folder);
    apply("a").ends(0);
    let (before, window) = (uids(&site), site.window());
    move_web(&repo, "a", "b");
    repo.commit("Move it");
    let why = "b/web.yaml of the same repository has it now: apply that first, and it moves";
    let diff = on_folder(&site, &repo, &["diff"], "a").ends(1);
    diff.says(&["? Deployment moved-new/web"]);
    diff.says(&["? all 2 wait:", why]);
    // A pass that does not prune reads the newer revision too.
    on_folder(&site, &repo, &["apply"], "a").ends(0);
    for _ in 0..2 {
        let pass = apply("a").ends(4);
        pass.says(&["deployment.apps/web", why]);
        pass.says(&["service/web", why]);
        assert_eq!(uids(&site), before);
    }
    apply("b").ends(0);
    apply("a").ends(0).says(&["1 unchanged"]);
    assert_eq!(uids(&site), before);
    window.assert_no_deletes();
}

#[test]
fn what_moves_to_and_fro_between_two_folders_stays_committed_or_not() {
    let (site, repo) = (TestNamespace::new("moved-twice"), two_folders());
    let apply = |folder: &str| on_folder(&site, &repo, &["apply", "--prune", "--yes"], folder);
    for folder in ["a", "b"] {
        apply(folder).ends(0);
    }
    let (before, window) = (uids(&site), site.window());
    move_web(&repo, "a", "b");
    apply("a").ends(4);
    apply("b").ends(0);
    repo.commit("Move it");
    move_web(&repo, "b", "a");
    repo.commit("Move it back");
    apply("b").ends(4);
    apply("a").ends(0);
    apply("b").ends(0);
    assert_eq!(uids(&site), before);
    window.assert_no_deletes();
}

#[test]
fn what_another_folder_always_named_too_is_that_of_another_cluster() {
    let (site, repo) = (TestNamespace::new("moved-twin"), two_folders());
    repo.change("b/env.yaml", &yaml::config_map("env", "key", "b"));
    repo.change("a/env.yaml", &yaml::config_map("env", "key", "a"));
    let apply = || on_folder(&site, &repo, &["apply", "--prune", "--yes"], "a");
    apply().ends(0);
    repo.remove("a/env.yaml");
    repo.commit("Drop it here");
    apply().ends(0).says(&["configmap/env", "pruned"]);
    assert!(!site.has("ConfigMap", "env"));
}

// Beside another folder of its repository too: that is searched for what the pass has listed.
#[test]
fn a_pass_that_prunes_discovers_and_lists_once() {
    let (site, repo) = (TestNamespace::new("moved-once"), two_folders());
    let apply = || on_folder(&site, &repo, &["apply", "--prune", "--yes"], "a");
    apply().ends(0);
    repo.git(&["rm", "--quiet", "a/own.yaml"]);
    repo.commit("Drop it");
    // One that deletes, and one that has nothing to delete.
    for says in ["pruned", "2 unchanged"] {
        let window = site.window();
        apply().ends(0).says(&[says]);
        let calls = window.calls();
        let count = |is_it: &dyn Fn(&AuditEvent) -> bool| calls.iter().filter(|call| is_it(call)).count();
        let path = |call: &AuditEvent| call.uri.split('?').next().unwrap_or_default().to_owned();
        assert_eq!(count(&|call| path(call) == "/apis"), 1, "{says}: {calls:#?}");
        for resource in ["deployments", "services"] {
            // A watch lists them, too, where the server can.
            let lists = |call: &AuditEvent| {
                ["list", "watch"].contains(&call.verb.as_str()) && call.resource == resource
            };
            assert_eq!(count(&lists), 1, "{says}: {resource}: {calls:#?}");
        }
    }
}
