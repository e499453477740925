//! The spellings of one place.

use std::path::Path;

use super::fixture::{TestRepository, folder, git};
use crate::source::followed_repository::FOLLOWED_OPENINGS;
use crate::source::{GitLocation, ResolvedLocation};

fn url(text: &str, inside: &str) -> String {
    let path = (!inside.is_empty()).then(|| inside.to_owned());
    ResolvedLocation::Git(GitLocation { path, ..GitLocation::new(text) }).location_id()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn equal_spellings_are_one_place() {
    let check = |text: &str, expected: &str| assert_eq!(url(text, ""), expected, "{text}");
    for same in [
        "https://example.com/org/shop",
        "https://example.com/org/shop/",
        "https://example.com/org/shop.git",
        "https://example.com/org/shop.git/",
        "https://example.com//org/./shop.git",
        "https://EXAMPLE.com/org/shop",
        "https://example.com./org/shop",
        "https://example.com:443/org/shop",
        "https://user:hunter2@example.com/org/shop",
        "https://token@example.com/org/shop.git?private=hunter2#x",
        "http://example.com:80/org/shop",
        "HTTPS://example.com/org/shop",
        "ssh://git@example.com/org/shop.git",
        "ssh://git:hunter2@Example.com:22/org/shop.git",
        "ssh://git@example.com/~/org/shop",
        "git@example.com:org/shop.git",
        "git@example.com:/org/shop",
        "example.com:org/shop/",
        "git://example.com:9418/org/shop",
    ] {
        check(same, "example.com/org/shop");
    }
    check("https://example.com:8443/org/shop", "example.com:8443/org/shop");
    check("ssh://git@example.com:2222/org/shop", "example.com:2222/org/shop");
    check("https://[::1]:443/a", "[::1]/a");
    check("https://[::1]:8443/a", "[::1]:8443/a");
    check("https://example.com/org/Shop", "example.com/org/Shop");
    check("https://example.com/org/shop.github", "example.com/org/shop.github");
    // Below a person's home.
    check("alice@example.com:shop.git", "alice@example.com/shop");
    check("ssh://alice@example.com/~/shop", "alice@example.com/shop");
    check("ssh://alice@example.com/srv/shop", "example.com/srv/shop");
    check("file:///srv/shop%20a.git/", "/srv/shop a.git");
    check("file://localhost/srv/shop", "/srv/shop");
    check("/srv/none/shop/.git", "/srv/none/shop");
    check("/srv/none//shop/./", "/srv/none/shop");
}

#[test]
fn folders_inside_are_places_of_their_own() {
    assert_eq!(url("https://example.com/org/shop", "deploy/prod/"), "example.com/org/shop//deploy/prod");
    assert_eq!(url("git@example.com:org/shop", "./deploy//prod"), "example.com/org/shop//deploy/prod");
    assert_ne!(url("https://example.com/org/shop/deploy", ""), url("https://example.com/org/shop", "deploy"));
    assert_eq!(url("/srv/none", "deploy"), "/srv/none/deploy");
}

#[test]
fn a_repository_without_a_folder_is_looked_at_once_for_both_of_its_identities() {
    let (repo, _) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    let check = |inside: Option<&str>, expected: usize| {
        let path = inside.map(str::to_owned);
        let location = ResolvedLocation::Git(GitLocation { path, ..GitLocation::new(text(repo.path())) });
        let before = FOLLOWED_OPENINGS.get();
        let found = location.identities();
        assert_eq!(FOLLOWED_OPENINGS.get() - before, expected, "{inside:?}");
        assert_eq!(found, (location.location_id(), location.repository()), "{inside:?}");
    };
    check(None, 1);
    check(Some("deploy"), 2);
    let folder = ResolvedLocation::Directory(repo.path().to_owned());
    assert_eq!(folder.identities(), (folder.location_id(), None));
}

#[test]
fn a_work_tree_is_where_it_came_from() {
    let (repo, _) = TestRepository::with(&[("deploy/a.yaml", "1"), ("b.yaml", "1")]);
    let here = text(repo.path());
    let directory = |path: &Path| ResolvedLocation::Directory(path.to_owned()).location_id();
    assert_eq!(directory(&repo.path().join("deploy")), format!("{here}/deploy"), "it came from nowhere");
    assert_eq!(url(&here, "deploy"), format!("{here}/deploy"));

    repo.git(&["remote", "add", "origin", "https://user:hunter2@example.com/org/shop.git"]);
    assert_eq!(directory(repo.path()), "example.com/org/shop");
    assert_eq!(directory(&repo.path().join("deploy")), "example.com/org/shop//deploy");
    assert_eq!(directory(&repo.path().join("deploy/")), "example.com/org/shop//deploy");
    assert_eq!(url(&here, ""), "example.com/org/shop");
    assert_eq!(url(&format!("{here}/.git"), ""), "example.com/org/shop");
    assert_eq!(url(&format!("file://{here}"), "deploy"), "example.com/org/shop//deploy");
    assert_eq!(url(&here, "only/in/another/revision"), "example.com/org/shop//only/in/another/revision");
    assert_eq!(url("git@example.com:org/shop", "deploy"), directory(&repo.path().join("deploy")));

    // Checked out again and again into new folders.
    let builds = tempfile::tempdir().unwrap();
    for build in ["build-1", "build-2"] {
        let path = builds.path().join(build);
        git(repo.path(), &["worktree", "add", "--quiet", "--detach", path.to_str().unwrap()]);
        assert_eq!(directory(&path.join("deploy")), "example.com/org/shop//deploy");
    }
    // Behind a link that is swapped.
    let link = builds.path().join("current");
    std::os::unix::fs::symlink("build-2", &link).unwrap();
    assert_eq!(directory(&link.join("deploy")), "example.com/org/shop//deploy");
}

#[test]
fn a_clone_of_a_repository_on_this_host_is_that_repository() {
    let (repo, _) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    let beside = tempfile::tempdir().unwrap();
    let real = beside.path().canonicalize().unwrap();
    let (bare, clone) = (real.join("bare.git"), real.join("clone"));
    repo.git(&["init", "--quiet", "--bare", &text(&bare)]);
    repo.git(&["push", "--quiet", &text(&bare), "main"]);
    git(&real, &["clone", "--quiet", "--branch=main", &text(&bare), &text(&clone)]);
    assert_eq!(url(&text(&bare), ""), text(&bare));
    git(&bare, &["remote", "add", "origin", "https://example.com/upstream"]);
    assert_eq!(url(&text(&bare), ""), text(&bare), "what is cloned from it is called so");
    assert_eq!(url(&text(&clone), ""), text(&bare));
    assert_eq!(url(&text(&clone), "deploy"), format!("{}/deploy", text(&bare)));
    assert_eq!(url(&text(&bare), "deploy"), format!("{}/deploy", text(&bare)));
    git(&clone, &["remote", "set-url", "origin", "../bare.git"]);
    assert_eq!(url(&text(&clone), ""), text(&bare), "from the clone on");
}

#[test]
fn a_plain_folder_is_its_path() {
    let dir = folder(&[("a/b.yaml", "1")]);
    let path = dir.path().join("a");
    let directory = |path: &Path| ResolvedLocation::Directory(path.to_owned()).location_id();
    assert_eq!(directory(&path), text(&path));
    assert_eq!(directory(&dir.path().join("./a/")), text(&path));
    // The link is what was named; where it leads changes.
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("a", &link).unwrap();
    assert_eq!(directory(&link), text(&link));
}

#[test]
fn a_place_is_called_by_its_repository_and_the_folder_in_it() {
    let check = |location: &ResolvedLocation, repository: &str, inside: &str| {
        let title = location.title();
        assert_eq!((title.repository.as_str(), title.inside.as_str()), (repository, inside), "{location:?}");
    };
    let git_at = |text: &str, path: Option<&str>| {
        ResolvedLocation::Git(GitLocation { path: path.map(str::to_owned), ..GitLocation::new(text) })
    };
    check(&git_at("https://example.com/org/Shop.git", None), "Shop", "");
    check(&git_at("git@example.com:shop.git", Some("./deploy/prod/")), "shop", "deploy/prod");
    check(&git_at("/srv/none/shop.git", Some("deploy")), "shop", "deploy");
    let (repo, _) = TestRepository::with(&[("deploy/prod/a.yaml", "1")]);
    let tree = repo.path();
    let name = tree.file_name().unwrap().to_str().unwrap();
    check(&ResolvedLocation::Directory(tree.to_owned()), name, "");
    check(&ResolvedLocation::Directory(tree.join("deploy/prod")), name, "deploy/prod");
    check(&ResolvedLocation::Directory(tree.join("deploy/prod/..")), name, "deploy");
    check(&git_at(&text(tree), Some("deploy")), name, "deploy");
    // A clone is called as what it is a clone of.
    repo.git(&["remote", "add", "origin", "https://example.com/org/shop.git"]);
    check(&ResolvedLocation::Directory(tree.join("deploy")), "shop", "deploy");
    // Behind a link that is swapped, and in a folder of its own.
    let beside = folder(&[("v2/a.yaml", "1")]);
    std::os::unix::fs::symlink("v2", beside.path().join("current")).unwrap();
    check(&ResolvedLocation::Directory(beside.path().join("current")), "current", "");
    std::os::unix::fs::symlink(tree.join("deploy"), beside.path().join("link")).unwrap();
    check(&ResolvedLocation::Directory(beside.path().join("link")), "shop", "deploy");
}
