//! Rollbacks to revisions that were not read completely, or that are none: nothing is undone, and
//! nothing is deleted. Rollbacks of what was rendered, to the revision of git.

use std::path::{Path, PathBuf};
use std::process::Command;

use controlplane::Renderers;

use crate::sops::start;
use crate::support::{AgeIdentity, Repo, TestNamespace, until, yaml};

/// Fails unless an undo of an object, to the commit before, says that this place of it may have
/// the object; the object stays.
#[track_caller]
fn leads_nowhere(site: &TestNamespace<'_>, kind: &str, name: &str, commit: &str, place: &str) {
    let window = site.window();
    let expected = format!(
        "nothing to undo: revision {} was not read completely, and may have {kind} {}/{name}: {place}",
        &commit[..12],
        site.name
    );
    let object = format!("{}/{name}", kind.to_lowercase());
    site.rhumb(&["rollout", "undo", &object]).ends(1).says(&[&expected]);
    window.assert_no_deletes();
    assert!(site.has(kind, name));
}

#[test]
fn an_undo_to_a_revision_with_a_broken_file_deletes_nothing() {
    let site = TestNamespace::new("undo-broken");
    let kept = ("kept.yaml", yaml::config_map("kept", "a", "one"));
    let repo = Repo::new(&[kept, ("broken.yaml", "kind: [".to_owned())]);
    let before = repo.head();
    let _daemon = site.configured(&site.configuration(repo.path(), ""));
    site.await_data("kept", "a", "one");
    repo.remove("broken.yaml");
    repo.change("env.yaml", &yaml::config_map("env", "a", "one"));
    site.await_data("env", "a", "one");
    leads_nowhere(&site, "ConfigMap", "env", &before, "broken.yaml");
}

fn programs() -> String {
    format!("programs: {{kustomize: {}}}", Renderers::find().unwrap().kustomize.display())
}

#[test]
fn an_undo_to_a_revision_with_a_root_that_is_not_rendered_deletes_nothing() {
    let site = TestNamespace::new("undo-unrendered");
    let kept = ("kept.yaml", yaml::config_map("kept", "a", "one"));
    let repo = Repo::new(&[kept, ("app/kustomization.yaml", "resources: [env.yaml]\n".to_owned())]);
    let before = repo.head();
    let _daemon = site.configured(&site.configuration(repo.path(), &programs()));
    site.await_data("kept", "a", "one");
    repo.change("app/env.yaml", &yaml::config_map("env", "a", "one"));
    site.await_data("env", "a", "one");
    leads_nowhere(&site, "ConfigMap", "env", &before, "app/kustomization.yaml");
}

#[test]
fn an_undo_to_a_revision_with_a_secret_that_nobody_can_open_deletes_nothing() {
    let site = TestNamespace::new("undo-sealed");
    let (ours, another) = (AgeIdentity::new(), AgeIdentity::new());
    let secret = |identity: &AgeIdentity| identity.encrypt(&yaml::secret("key", "password", "right"));
    let kept = ("kept.yaml", yaml::config_map("kept", "a", "one"));
    let repo = Repo::new(&[kept, ("secret.yaml", secret(&another))]);
    let before = repo.head();
    let _daemon = start(&site, &repo, &ours);
    site.await_data("kept", "a", "one");
    assert!(!site.has("Secret", "key"));
    repo.change("secret.yaml", &secret(&ours));
    until("it is there", || site.has("Secret", "key"));
    leads_nowhere(&site, "Secret", "key", &before, "secret.yaml");
}

/// Returns the bare repositories below a folder.
fn stores(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        if folder.join("objects").is_dir() && folder.join("HEAD").is_file() {
            found.push(folder);
            continue;
        }
        let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        open.extend(entries.filter(|path| path.is_dir()));
    }
    found
}

/// Returns the ids of all commits in a repository.
fn commits(store: &Path) -> Vec<String> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(store)
        .args(["cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = String::from_utf8(output.stdout).unwrap();
    listed.lines().filter_map(|line| line.strip_prefix("commit ")).map(str::to_owned).collect()
}

// It is a commit in the store of the source, and nobody ever wrote it into the history.
#[test]
fn the_commit_of_what_was_rendered_is_no_revision_to_go_back_to() {
    let site = TestNamespace::new("undo-rendered");
    let repo = Repo::new(&[
        ("app/kustomization.yaml", "resources: [env.yaml]\n".to_owned()),
        ("app/env.yaml", yaml::config_map("env", "a", "one")),
    ]);
    let first = repo.head();
    let _daemon = site.configured(&site.configuration(repo.path(), &programs()));
    site.await_data("env", "a", "one");
    let second = repo.change("app/env.yaml", &yaml::config_map("env", "a", "two"));
    site.await_data("env", "a", "two");
    let all = stores(site.state.path()).iter().flat_map(|store| commits(store)).collect::<Vec<_>>();
    let rendered: Vec<&String> = all.iter().filter(|id| **id != first && **id != second).collect();
    assert!(rendered.len() >= 2, "{all:?}");
    for id in rendered {
        let expected = format!("nothing to undo: no revision is called {id}");
        site.rhumb(&["rollout", "undo", "cm/env", "--to-revision", id]).ends(1).says(&[&expected]);
    }
    assert_eq!(site.data("env", "a"), "two");
}

#[test]
fn what_was_rendered_goes_back_to_the_revision_of_git_before() {
    let site = TestNamespace::new("undo-overlay");
    let repo = Repo::new(&[
        ("app/kustomization.yaml", "namePrefix: prod-\nresources: [env.yaml]\n".to_owned()),
        ("app/env.yaml", yaml::config_map("env", "a", "one")),
    ]);
    let first = repo.head();
    let _daemon = site.configured(&site.configuration(repo.path(), &programs()));
    let release = || {
        let text = site.value("ConfigMap", "prod-env", "/metadata/annotations/rhumb.dev~1release");
        text.as_str().unwrap_or_default().to_owned()
    };
    site.await_data("prod-env", "a", "one");
    assert!(release().contains(&first), "{} is not {first}", release());
    let second = repo.change("app/env.yaml", &yaml::config_map("env", "a", "two"));
    site.await_data("prod-env", "a", "two");
    assert!(release().contains(&second), "{} is not {second}", release());
    site.rhumb(&["rollout", "undo", "cm/prod-env"]).ends(0).says(&["goes back to", &first[..12]]);
    site.await_data("prod-env", "a", "one");
    site.rhumb(&["why", "cm/prod-env"]).ends(0).says(&["brought by revision", &first]);
}
