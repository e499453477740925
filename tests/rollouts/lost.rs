//! A rollback whose target git no longer has: all that is released together stays as it is, and
//! says so.

use std::fs;
use std::path::{Path, PathBuf};

use controlplane::{Fault, Requests, ResponseCut, Rule};
use serde_json::json;

use crate::failures::{BOUNDS, BUDGET, IMAGE, at_rest, await_image, await_rejection, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::support::{Daemon, Repo, TestNamespace, until};

/// Returns `web` and `api`, which belong together by their configuration.
fn unit(web: &str, api: &str, content: &str) -> Vec<(String, String)> {
    vec![
        Web::new("web", web).uses("env").file(),
        Web::new("api", api).uses("env").file(),
        config("env", content),
    ]
}

/// Returns a unit at rest, whose process is gone with its state directory.
fn left(name: &str) -> (TestNamespace<'static>, Repo, Observer) {
    let site = TestNamespace::new(name);
    let repo = Repo::new(&unit("app:1", "app:1", "one"));
    let (mut daemon, observer) = at_rest(&site, &repo, &["web", "api"]);
    daemon.kill();
    (site.with_empty_state(), repo, observer)
}

/// Checks that nothing can go back: all has the bad commit's content for good, others go on, and a
/// better commit ends it.
fn stays(site: &TestNamespace<'_>, repo: &Repo, daemon: &Daemon, observer: &Observer, expected: &[&str]) {
    await_rejection(site, &[&["held", "revision", "failed: Deployment"], expected].concat());
    daemon.says(&[&["failed: revision"], expected].concat());
    let why = site.rhumb(&["why", "deploy/web"]).ends(0);
    why.says(&["phase", "Quarantined"]);
    why.says(expected);
    await_image(site, "api", "app:2");
    site.await_free_budget();
    let window = site.window();
    push(repo, &[Web::new("other", "app:1").file()], "Add something else");
    site.await_rollout("other");
    for (resource, name) in [("deployments", "web"), ("deployments", "api"), ("configmaps", "env")] {
        let wrote = window.to(resource, name);
        assert!(wrote.is_empty(), "{wrote:#?}");
    }
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:broken"));
    assert_eq!(site.data("env", "key"), "two");
    push(repo, &unit("app:3", "app:3", "three"), "Mend it");
    for name in ["web", "api"] {
        await_image(site, name, "app:3");
    }
    site.await_data("env", "key", "three");
    site.await_free_budget();
    observer.judge(BOUNDS);
}

#[test]
fn a_history_that_was_rewritten() {
    let (site, repo, observer) = left("lost-history");
    let old = repo.head();
    repo.git(&["checkout", "--quiet", "--orphan", "other"]);
    push(&repo, &unit("app:broken", "app:2", "two"), "Begin anew, and break it");
    repo.git(&["branch", "--delete", "--force", "main"]);
    repo.git(&["branch", "--move", "main"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "--quiet", "--prune=now"]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    let expected = ["it cannot go back, as revision", &old[..12], "cannot be read any more"];
    stays(&site, &repo, &daemon, &observer, &expected);
}

/// Returns the file of an object of a repository.
fn loose(repo: &Path, id: &str) -> PathBuf {
    repo.join(".git/objects").join(&id[..2]).join(&id[2..])
}

// The others could go back, and do not without it.
#[test]
fn one_content_of_a_unit_that_is_lost() {
    let (site, repo, observer) = left("lost-one");
    let blob = repo.git(&["rev-parse", "HEAD:env.yaml"]);
    push(&repo, &unit("app:broken", "app:2", "two"), "Break it");
    fs::remove_file(loose(repo.path(), &blob)).unwrap();
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    let expected = ["it cannot go back, as revision", "of ConfigMap lost-one/env cannot be read any more"];
    stays(&site, &repo, &daemon, &observer, &expected);
}

// Not to be able to read it now is not to have lost it.
#[test]
fn a_repository_that_is_away_in_the_middle_of_a_rollback() {
    let mut site = TestNamespace::new("lost-for-now");
    let repo = Repo::new(&unit("app:1", "app:1", "one"));
    let text = site.configuration(repo.path(), BUDGET);
    let (mut first, observer) = at_rest(&site, &repo, &["web", "api"]);
    first.kill();
    let direct = site.with_empty_state();
    // The bad configuration is put there, and the good one never comes back.
    let proxy = site.cluster.fault_proxy(7).unwrap();
    let env = || Requests::any().method("PATCH").path_suffix("/configmaps/env").query_lacks("dryRun");
    proxy.add(Rule::new(env(), Fault::Pass).times(1));
    let blocked = proxy.add(Rule::new(env(), Fault::Refuse(ResponseCut::Silence)));
    site.through(&proxy);
    push(&repo, &unit("app:broken", "app:2", "two"), "Break it");
    let mut second = site.configured(&text);
    await_rejection(&site, &["back", "web"]);
    until("it tries to go back", || proxy.hits(blocked).fired > 0);
    second.kill();
    let aside = repo.path().with_extension("aside");
    fs::rename(repo.path(), &aside).unwrap();
    let third = direct.configured(&text);
    third.says(&["no such file or folder"]);
    assert_eq!(direct.data("env", "key"), "two");
    fs::rename(&aside, repo.path()).unwrap();
    for name in ["web", "api"] {
        await_image(&direct, name, "app:1");
    }
    direct.await_data("env", "key", "one");
    direct.await_free_budget();
    assert!(!direct.records().contains("cannot go back"));
    observer.judge(BOUNDS);
    drop(third);
}
