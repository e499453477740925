//! Hints: each change wakes, reading does not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use super::fixture::{TestRepository, folder, put};
use crate::source::{ChangeHints, GitLocation, ResolvedLocation, Source, SourceSettings};

const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

/// The time in which the echoes of a change that was seen follow it.
const ECHO_TIME: Duration = Duration::from_millis(250);

/// Starts watching, and takes the hint that comes when the watch is set.
async fn watch(location: ResolvedLocation) -> ChangeHints {
    let state = tempfile::tempdir().unwrap();
    let settings = SourceSettings {
        quiet: Duration::from_millis(20),
        max_quiet: Duration::from_millis(200),
        ..SourceSettings::default()
    };
    let hints = Source::open_with("test", &location, state.path(), settings).unwrap().change_hints();
    tokio::time::timeout(EVENT_TIMEOUT, hints.next_hint()).await.expect("a first hint");
    hints
}

async fn wakes(hints: &ChangeHints, what: &str) {
    tokio::time::timeout(EVENT_TIMEOUT, hints.next_hint())
        .await
        .unwrap_or_else(|_| panic!("no hint: {what}"));
    quiet(hints).await;
}

/// Checks that a change wakes nobody, once a later one in another folder has woken.
async fn wakes_nobody(hints: &ChangeHints, what: &str) {
    await_later_change().await;
    let hint = tokio::time::timeout(ECHO_TIME, hints.next_hint()).await;
    assert!(hint.is_err(), "a hint for {what}");
}

/// Changes another folder, and waits until that has woken. By then each change before it has, too.
async fn await_later_change() {
    let other = tempfile::tempdir().unwrap();
    let beside = watch(ResolvedLocation::Directory(other.path().to_owned())).await;
    put(other.path(), &[("a.yaml", "1")]);
    tokio::time::timeout(EVENT_TIMEOUT, beside.next_hint()).await.expect("the change after it wakes");
}

/// Takes the echoes of a change.
async fn quiet(hints: &ChangeHints) {
    await_later_change().await;
    while tokio::time::timeout(ECHO_TIME, hints.next_hint()).await.is_ok() {}
}

fn at(path: &Path) -> ResolvedLocation {
    ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap()))
}

#[tokio::test]
async fn every_way_to_move_a_reference_wakes() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let hints = watch(repo.location()).await;
    repo.commit(&[("a.yaml", "2")]);
    wakes(&hints, "commit").await;
    repo.git(&["pack-refs", "--all"]);
    wakes(&hints, "packed references").await;
    repo.git(&["branch", "deep/in/folders/branch"]);
    wakes(&hints, "branch in new folders").await;
    repo.git(&["checkout", "--quiet", "deep/in/folders/branch"]);
    wakes(&hints, "checkout").await;
    repo.git(&["update-ref", "refs/heads/main", first.as_str()]);
    wakes(&hints, "update-ref").await;
    repo.git(&["pack-refs", "--all"]);
    wakes(&hints, "packed references").await;
    repo.git(&["branch", "--delete", "main"]);
    wakes(&hints, "deleted from the packed references").await;
    // Changes that move no reference.
    put(repo.path(), &[("a.yaml", "not committed")]);
    repo.git(&["add", "--all"]);
    wakes_nobody(&hints, "what moves no reference").await;
}

#[tokio::test]
async fn worktrees_bare_repositories_and_pushes_wake() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let beside = tempfile::tempdir().unwrap();
    let (tree, bare) = (beside.path().join("tree"), beside.path().join("bare.git"));
    repo.git(&["worktree", "add", "--quiet", "-b", "other", tree.to_str().unwrap()]);
    repo.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let (in_tree, in_bare) = (watch(at(&tree)).await, watch(at(&bare)).await);
    super::fixture::git(&tree, &["commit", "--quiet", "--allow-empty", "--message=x"]);
    wakes(&in_tree, "commit in a worktree").await;
    super::fixture::git(&tree, &["checkout", "--quiet", "--detach"]);
    wakes(&in_tree, "the worktree's own HEAD").await;
    repo.commit(&[("a.yaml", "2")]);
    repo.git(&["push", "--quiet", bare.to_str().unwrap(), "main"]);
    wakes(&in_bare, "push").await;
    // Replaced by another one at the same place.
    fs::remove_dir_all(&bare).unwrap();
    repo.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    wakes(&in_bare, "replaced").await;
    wait_for_watch(&in_bare, || {
        repo.commit(&[("a.yaml", "x")]);
        repo.git(&["push", "--quiet", "--force", bare.to_str().unwrap(), "main"]);
    })
    .await;
}

#[tokio::test]
async fn every_way_that_a_host_treats_repositories_wakes() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let beside = tempfile::tempdir().unwrap();
    let bare = beside.path().join("shop.git");
    super::fixture::git(beside.path(), &["init", "--quiet", "--bare", "--initial-branch=main", "shop.git"]);
    let in_bare = |args: &[&str]| drop(super::fixture::git(&bare, args));
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &at(&bare), state.path()).unwrap();
    let hints = source.change_hints();
    tokio::time::timeout(EVENT_TIMEOUT, hints.next_hint()).await.expect("a first hint");
    assert!(source.observe().await.is_err());
    // Waits for the hint after which the revision is there.
    let arrives = async |source: &mut Source, revision: &crate::object::Revision, what: &str| {
        let arrived = tokio::time::timeout(EVENT_TIMEOUT, async {
            while !source.observe().await.is_ok_and(|seen| seen.revision == *revision) {
                hints.next_hint().await;
            }
        });
        arrived.await.unwrap_or_else(|_| panic!("no hint: {what}"));
    };
    let push = |branch: &str| drop(repo.git(&["push", "--quiet", "--force", bare.to_str().unwrap(), branch]));
    push("main");
    arrives(&mut source, &first, "the first push").await;
    in_bare(&["gc", "--quiet"]);
    let second = repo.commit(&[("a.yaml", "2")]);
    push("main");
    arrives(&mut source, &second, "a push after gc").await;
    in_bare(&["pack-refs", "--all", "--prune"]);
    repo.git(&["checkout", "--quiet", "-b", "deep/in/folders"]);
    let third = repo.commit(&[("a.yaml", "3")]);
    push("deep/in/folders");
    in_bare(&["symbolic-ref", "HEAD", "refs/heads/deep/in/folders"]);
    arrives(&mut source, &third, "another branch").await;
    let fourth = repo.commit(&[("a.yaml", "4")]);
    push("deep/in/folders");
    arrives(&mut source, &fourth, "a push to it").await;
    // Replaced by another one, by two renames.
    repo.git(&["checkout", "--quiet", "main"]);
    let fifth = repo.commit(&[("a.yaml", "5")]);
    repo.git(&["clone", "--quiet", "--bare", ".", beside.path().join("young.git").to_str().unwrap()]);
    fs::rename(&bare, beside.path().join("old.git")).unwrap();
    fs::rename(beside.path().join("young.git"), &bare).unwrap();
    arrives(&mut source, &fifth, "another repository at its place").await;
    let sixth = repo.commit(&[("a.yaml", "6")]);
    push("main");
    arrives(&mut source, &sixth, "a push to that one").await;
}

/// Makes changes until one wakes: the watch on what was replaced is set within two seconds.
async fn wait_for_watch(hints: &ChangeHints, change: impl Fn()) {
    quiet(hints).await;
    for _ in 0..20 {
        change();
        if tokio::time::timeout(Duration::from_millis(500), hints.next_hint()).await.is_ok() {
            return;
        }
    }
    panic!("the watch was not set again");
}

#[tokio::test]
async fn files_wake_when_they_are_quiet_and_reading_does_not() {
    let dir = folder(&[("root/a.yaml", "1"), ("root/b/c.yaml", "1")]);
    let root = dir.path().join("root");
    let hints = watch(ResolvedLocation::Directory(root.clone())).await;
    quiet(&hints).await;
    crate::source::read_disk(&root).unwrap();
    put(&root, &[(".a.yaml.swp", "an editor's"), (".git/index", "x")]);
    wakes_nobody(&hints, "reading, and for hidden files").await;
    put(&root, &[("a.yaml", "2")]);
    wakes(&hints, "written").await;
    fs::rename(root.join("a.yaml"), root.join("b/d.yaml")).unwrap();
    wakes(&hints, "moved").await;
    put(&root, &[("x/y/z/new.yaml", "1")]);
    wakes(&hints, "in new folders").await;
    put(&root, &[("x/y/z/new.yaml", "2")]);
    wakes(&hints, "in folders that were new").await;
    put(&root, &[(".rhumbignore", "x")]);
    wakes(&hints, "ignore file").await;
    put(&root, &[("b/d.yaml", "")]);
    wakes(&hints, "removed").await;
    fs::remove_dir_all(&root).unwrap();
    wakes(&hints, "root removed").await;
    put(&root, &[("a.yaml", "1")]);
    wakes(&hints, "root made again").await;
    wait_for_watch(&hints, || put(&root, &[("a.yaml", "2")])).await;
}

#[tokio::test]
async fn swapped_links_wake() {
    let dir = folder(&[
        ("one/a.yaml", "1"),
        ("two/a.yaml", "2"),
        ("vol/..one/a.yaml", "1"),
        ("vol/..two/a.yaml", "1"),
    ]);
    let swap = |folder: &Path, name: &str, target: &str| {
        symlink(target, folder.join("young")).unwrap();
        fs::rename(folder.join("young"), folder.join(name)).unwrap();
    };
    swap(dir.path(), "root", "one");
    let hints = watch(ResolvedLocation::Directory(dir.path().join("root"))).await;
    quiet(&hints).await;
    swap(dir.path(), "root", "two");
    wakes(&hints, "root swapped").await;
    wait_for_watch(&hints, || put(dir.path(), &[("two/a.yaml", "3")])).await;

    let volume = dir.path().join("vol");
    swap(&volume, "..data", "..one");
    let hints = watch(ResolvedLocation::Directory(volume.clone())).await;
    quiet(&hints).await;
    swap(&volume, "..data", "..two");
    wakes(&hints, "volume swapped").await;
}

#[tokio::test]
async fn no_link_is_watched_through() {
    let outside = tempfile::tempdir().unwrap();
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    symlink(outside.path(), repo.path().join(".git/refs/heads/far")).unwrap();
    let dir = folder(&[("a.yaml", "1")]);
    symlink(outside.path(), dir.path().join("far")).unwrap();
    for location in [repo.location(), ResolvedLocation::Directory(dir.path().to_owned())] {
        let hints = watch(location).await;
        quiet(&hints).await;
        put(outside.path(), &[("b.yaml", "1")]);
        wakes_nobody(&hints, "what lies elsewhere").await;
    }
}

#[tokio::test]
async fn what_appears_later_is_watched_then() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    let hints = watch(ResolvedLocation::Directory(root.clone())).await;
    quiet(&hints).await;
    put(&root, &[("a.yaml", "1")]);
    wakes(&hints, "made").await;
}
