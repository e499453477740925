//! Sources that hold nothing, or are gone: nothing is pruned, and the accepted state stays
//! defended.

use serde_json::json;

use crate::support::{DEFAULT_TIMEOUT, Daemon, Folder, Repo, TestNamespace, eventually, yaml};

fn three() -> [(&'static str, String); 3] {
    [
        ("a.yaml", yaml::config_map("a", "key", "one")),
        ("b.yaml", yaml::config_map("b", "key", "one")),
        ("sub/c.yaml", yaml::config_map("c", "key", "one")),
    ]
}

/// Waits until all are there: they are written side by side, in no order.
fn await_three(site: &TestNamespace<'_>) {
    for name in ["a", "b", "c"] {
        site.await_data(name, "key", "one");
    }
}

/// Checks that accepted content is still repaired and created again, and nothing was deleted since
/// the window began.
fn is_defended(site: &TestNamespace<'_>, daemon: &mut Daemon) {
    let window = site.window();
    site.api.merge(&site.at("ConfigMap", "a"), "somebody", &json!({"data": {"key": "foreign"}}));
    site.await_data("a", "key", "one");
    site.api.delete(&site.at("ConfigMap", "b"));
    site.await_data("b", "key", "one");
    assert!(site.has("ConfigMap", "c"));
    window.assert_no_deletes();
    assert!(daemon.is_running());
}

#[test]
fn a_directory_that_is_emptied_prunes_nothing_and_is_still_defended() {
    let site = TestNamespace::new("empty-directory");
    let folder = Folder::new(&three());
    let mut daemon = site.daemon(folder.path());
    await_three(&site);
    let window = site.window();
    for (name, _) in three() {
        folder.remove(name);
    }
    daemon.says(&["WARN", "no *.yaml"]);
    is_defended(&site, &mut daemon);
    window.assert_no_deletes();
}

#[test]
fn a_directory_that_is_gone_prunes_nothing_and_is_still_defended() {
    let site = TestNamespace::new("missing-directory");
    let folder = Folder::new(&three());
    let mut daemon = site.daemon(folder.path());
    await_three(&site);
    std::fs::rename(folder.path(), folder.path().with_extension("away")).unwrap();
    daemon.says(&["WARN", "no such file or folder"]);
    is_defended(&site, &mut daemon);
    std::fs::rename(folder.path().with_extension("away"), folder.path()).unwrap();
    folder.write("a.yaml", &yaml::config_map("a", "key", "two"));
    site.await_data("a", "key", "two");
}

#[test]
fn a_commit_without_any_file_prunes_nothing_and_is_still_defended() {
    let site = TestNamespace::new("empty-tree");
    let repo = Repo::new(&three());
    let mut daemon = site.daemon(repo.path());
    await_three(&site);
    repo.git(&["rm", "--quiet", "-r", "."]);
    repo.commit("Remove all");
    daemon.says(&["WARN", "no *.yaml"]);
    is_defended(&site, &mut daemon);
    repo.change("a.yaml", &yaml::config_map("a", "key", "two"));
    site.await_data("a", "key", "two");
}

#[test]
fn a_branch_that_is_deleted_prunes_nothing_and_is_still_defended() {
    let site = TestNamespace::new("deleted-branch");
    let repo = Repo::new(&three());
    repo.git(&["branch", "live"]);
    let mut daemon = site.daemon_with(repo.path(), &["--ref", "live"]);
    await_three(&site);
    repo.git(&["branch", "--quiet", "-D", "live"]);
    daemon.says(&["WARN", "live is gone"]);
    is_defended(&site, &mut daemon);
    repo.change("a.yaml", &yaml::config_map("a", "key", "two"));
    repo.git(&["branch", "live"]);
    site.await_data("a", "key", "two");
}

#[test]
fn a_path_that_a_commit_removes_prunes_nothing_and_is_still_defended() {
    let site = TestNamespace::new("missing-path");
    let repo = Repo::new(&three().map(|(name, text)| (format!("deploy/{name}"), text)));
    repo.change("README", "Not a manifest.\n");
    let mut daemon = site.daemon_with(repo.path(), &["--path", "deploy"]);
    await_three(&site);
    repo.git(&["mv", "deploy", "elsewhere"]);
    repo.commit("Move");
    daemon.says(&["WARN", "no folder deploy"]);
    is_defended(&site, &mut daemon);
}

#[test]
fn a_new_process_prunes_nothing_for_a_source_that_is_empty() {
    let site = TestNamespace::new("empty-cold");
    let repo = Repo::new(&three());
    site.apply(repo.path(), &["--ref", "HEAD"]).ends(0);
    repo.git(&["rm", "--quiet", "-r", "."]);
    repo.commit("Remove all");
    let window = site.window();
    let mut daemon = site.with_empty_state().daemon(repo.path());
    daemon.says(&["WARN", "no *.yaml"]);
    // Nothing says what was accepted before but the revision on the objects themselves.
    is_defended(&site, &mut daemon);
    window.assert_no_deletes();
}

#[test]
fn a_repository_that_is_not_there_at_the_start_is_waited_for_and_the_cluster_defended() {
    let site = TestNamespace::new("missing-at-start");
    let repo = Repo::new(&three());
    let mut daemon = site.daemon(repo.path());
    await_three(&site);
    // The accepted revision is copied when nothing else is left to do.
    eventually("the revision is kept", DEFAULT_TIMEOUT, || {
        let kept = walkdir::WalkDir::new(site.state.path()).into_iter().flatten();
        let mut names = kept.map(|entry| entry.file_name().to_string_lossy().into_owned());
        if names.any(|name| name == repo.head()) { Ok(()) } else { Err("it is not") }
    });
    daemon.stop();
    let away = repo.path().with_extension("away");
    std::fs::rename(repo.path(), &away).unwrap();
    let mut daemon = site.daemon(repo.path());
    daemon.says(&["WARN", "no such file or"]);
    is_defended(&site, &mut daemon);
    // A place to mount something on is no source either.
    std::fs::create_dir(repo.path()).unwrap();
    daemon.says(&["WARN", "no *.yaml"]);
    std::fs::remove_dir(repo.path()).unwrap();
    std::fs::rename(&away, repo.path()).unwrap();
    repo.change("a.yaml", &yaml::config_map("a", "key", "two"));
    site.await_data("a", "key", "two");
    // It is complete again: what a commit removes is pruned.
    repo.remove("sub/c.yaml");
    repo.commit("Remove one");
    site.await_absence("ConfigMap", "c");
}

#[test]
fn sources_of_a_file_that_cannot_be_read_do_not_hold_up_the_others() {
    let site = TestNamespace::new("one-of-two");
    let (repo, later) = (Repo::new(&three()), Repo::new(&[("d.yaml", yaml::config_map("d", "key", "one"))]));
    let away = later.path().with_extension("away");
    std::fs::rename(later.path(), &away).unwrap();
    let second = crate::support::source("one-of-two-later", &site.name, later.path(), "");
    let mut daemon = site.configured(&format!("{}\n---\n{second}", site.configuration(repo.path(), "")));
    daemon.says(&["WARN", "no such file or folder"]);
    await_three(&site);
    assert!(daemon.is_running());
    std::fs::rename(&away, later.path()).unwrap();
    site.await_data("d", "key", "one");
}

#[test]
fn one_shot_commands_refuse_a_source_that_holds_nothing() {
    let site = TestNamespace::new("empty-one-shot");
    let folder = Folder::new(&three());
    site.apply(folder.path(), &[]).ends(0);
    let window = site.window();
    for (name, _) in three() {
        folder.remove(name);
    }
    let missing = folder.path().join("nowhere");
    for flags in [&["--prune"][..], &["--prune", "--yes"]] {
        site.apply(folder.path(), flags).ends(2).says(&["error", "no *.yaml"]);
        site.apply(&missing, flags).ends(2).says(&["error", "no such file or directory"]);
    }
    site.diff(folder.path(), &[]).ends(2).says(&["error", "no *.yaml"]);
    site.diff(&missing, &[]).ends(2).says(&["error", "no such file or directory"]);
    let repo = Repo::new(&three());
    site.apply(repo.path(), &["--ref", "nowhere", "--prune"]).ends(2).says(&["error", "nowhere"]);
    site.apply(repo.path(), &["--ref", "main", "--path", "nowhere", "--prune"])
        .ends(2)
        .says(&["error", "nowhere"]);
    window.assert_silent();
}
