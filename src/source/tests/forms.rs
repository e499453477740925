//! The forms that a repository on this host can have, and that none of them is ever written to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use super::fixture::{TestRepository, git, git_command, paths};
use crate::object::Revision;
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError};

fn at(path: &Path) -> GitLocation {
    GitLocation::new(path.to_str().unwrap())
}

async fn observe(location: GitLocation) -> Result<Revision, SourceError> {
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &ResolvedLocation::Git(location), state.path())?;
    source.observe().await.map(|observed| observed.revision)
}

async fn refuses(location: GitLocation, expected: &str) {
    let error = observe(location).await.unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

/// Returns whether this user may give files away, which only root may. The rest holds for others
/// too.
fn may_give_away() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        // Past the harness, which would keep it to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED: not root: repositories of other users");
    }
    is_root
}

#[tokio::test]
async fn a_submodule_is_a_repository_of_its_own() {
    let (inner, revision) = TestRepository::with(&[("a.yaml", "1")]);
    let (outer, _) = TestRepository::with(&[("b.yaml", "1")]);
    outer.git(&["submodule", "--quiet", "add", inner.path().to_str().unwrap(), "sub"]);
    outer.commit(&[]);
    assert_eq!(observe(at(&outer.path().join("sub"))).await.unwrap(), revision);
    // Cloned without it, its folder is empty.
    let clone = outer.path().join("clone");
    outer.git(&["clone", "--quiet", ".", clone.to_str().unwrap()]);
    refuses(at(&clone.join("sub")), "no git repository").await;
}

#[tokio::test]
async fn objects_of_another_repository_are_not_read_through_one_that_names_it() {
    let (lender, lent) = TestRepository::with(&[("secret.yaml", "1")]);
    let (borrower, _) = TestRepository::with(&[("a.yaml", "1")]);
    let objects = format!("{}\n", lender.path().join(".git/objects").display());
    let alternates = borrower.path().join(".git/objects/info/alternates");
    fs::write(&alternates, &objects).unwrap();
    borrower.git(&["update-ref", "refs/heads/main", lent.as_str()]);
    refuses(borrower.git_location(), "borrows objects from others").await;
    // Nor are they copied: a revision of it may be asked for by its name.
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &borrower.location(), state.path()).unwrap();
    let error = source.pin(&BTreeSet::from([lent.clone()])).await.unwrap_err();
    assert!(matches!(error, SourceError::Unsupported { .. }), "{error}");
    assert!(source.snapshot(&lent).is_err());
    // Made complete, it is read.
    borrower.git(&["repack", "-a", "-d", "--quiet"]);
    fs::remove_file(&alternates).unwrap();
    assert_eq!(observe(borrower.git_location()).await.unwrap(), lent);
    fs::write(&alternates, "").unwrap();
    assert_eq!(observe(borrower.git_location()).await.unwrap(), lent, "it names none");
}

#[tokio::test]
async fn every_form_of_head_is_followed_or_named() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let second = repo.commit(&[("a.yaml", "2")]);
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(observe(repo.git_location()).await.unwrap(), second, "packed");
    repo.git(&["checkout", "--quiet", "--detach", first.as_str()]);
    assert_eq!(observe(repo.git_location()).await.unwrap(), first, "detached");
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/none"]);
    refuses(repo.git_location(), "no branch, tag or commit none, which HEAD names").await;
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    fs::write(repo.path().join(".git/HEAD"), "nonsense").unwrap();
    assert!(observe(repo.git_location()).await.is_err());
    let unborn = TestRepository::new();
    refuses(unborn.git_location(), "no commit yet").await;
}

#[tokio::test]
async fn names_that_could_mean_something_else() {
    let (repo, first) = TestRepository::with(&[("main.yaml", "1"), ("v1", "a file")]);
    repo.git(&["tag", "--annotate", "--message=one", "v1"]);
    repo.git(&["tag", "--annotate", "--message=a tag of a tag", "v2", "v1"]);
    let blob = repo.git(&["rev-parse", "HEAD:v1"]);
    repo.git(&["tag", "a-blob", &blob]);
    let second = repo.commit(&[("main.yaml", "2")]);
    // A branch that looks like a commit, and one that is called like a file.
    repo.git(&["branch", "deadbeef"]);
    repo.git(&["branch", "main.yaml", first.as_str()]);
    repo.git(&["branch", "v1", second.as_str()]);
    // One that is called like a whole commit id, as no porcelain would make it.
    repo.git(&["update-ref", &format!("refs/heads/{first}"), second.as_str()]);
    let check = async |name: &str, expected: &Revision| {
        let location = GitLocation { reference: Some(name.to_owned()), ..repo.git_location() };
        assert_eq!(observe(location).await.unwrap(), *expected, "{name}");
    };
    check("deadbeef", &second).await;
    check("main.yaml", &first).await;
    check("v1", &second).await;
    check("refs/tags/v1", &first).await;
    check("v2", &first).await;
    check(first.as_str(), &first).await;
    check(&first.as_str()[..7], &first).await;
    check(&first.as_str().to_uppercase(), &first).await;
    let named = |name: &str| GitLocation { reference: Some(name.to_owned()), ..repo.git_location() };
    refuses(named("a-blob"), "a-blob (it leads to no commit)").await;
    refuses(named(&blob), "(it leads to no commit)").await;
    refuses(named("deadbee"), "no branch, tag or commit deadbee").await;
}

// Somebody who may push a branch of any name may not move the tag.
#[tokio::test]
async fn a_short_name_keeps_the_meaning_by_which_it_was_followed() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    repo.git(&["tag", "v1"]);
    let state = tempfile::tempdir().unwrap();
    let location = GitLocation { reference: Some("v1".to_owned()), ..repo.git_location() };
    let location = ResolvedLocation::Git(location);
    let open = || Source::open("test", &location, state.path()).unwrap();
    let mut source = open();
    assert_eq!(source.observe().await.unwrap().revision, first);
    let second = repo.commit(&[("a.yaml", "2")]);
    repo.git(&["branch", "v1", second.as_str()]);
    assert_eq!(source.observe().await.unwrap().revision, first);
    drop(source);
    let mut restarted = open();
    assert_eq!(restarted.observe().await.unwrap().revision, first, "the next process knows it too");
    repo.git(&["tag", "--delete", "v1"]);
    let error = restarted.observe().await.unwrap_err();
    assert!(error.to_string().contains("refs/tags/v1 is gone"), "{error}");
    assert_eq!(restarted.current_revision(), Some(&first));
}

// Older versions, and processes that end too early, leave a revision in force without its record.
#[tokio::test]
async fn the_meaning_of_a_short_name_is_recorded_where_its_revision_is_in_force_already() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    repo.git(&["tag", "v1"]);
    let state = tempfile::tempdir().unwrap();
    let location = GitLocation { reference: Some("v1".to_owned()), ..repo.git_location() };
    let location = ResolvedLocation::Git(location);
    let open = || Source::open("test", &location, state.path()).unwrap();
    assert_eq!(open().observe().await.unwrap().revision, first);
    let files = walkdir::WalkDir::new(state.path()).into_iter().map(Result::unwrap);
    let records: Vec<_> = files.filter(|found| found.file_name() == "followed-tags").collect();
    assert_eq!(records.len(), 1, "{records:?}");
    fs::remove_dir_all(records[0].path()).unwrap();
    assert_eq!(open().observe().await.unwrap().revision, first);
    let second = repo.commit(&[("a.yaml", "2")]);
    repo.git(&["branch", "v1", second.as_str()]);
    assert_eq!(open().observe().await.unwrap().revision, first);
}

#[tokio::test]
async fn what_the_path_inside_may_be() {
    let (repo, _) = TestRepository::with(&[("deploy/a.yaml", "1"), ("file", "1")]);
    symlink("deploy", repo.path().join("link")).unwrap();
    let (other, _) = TestRepository::with(&[("x.yaml", "x")]);
    repo.git(&["submodule", "--quiet", "add", other.path().to_str().unwrap(), "sub"]);
    repo.commit(&[]);
    let inside = |path: &str| GitLocation { path: Some(path.to_owned()), ..repo.git_location() };
    assert!(observe(inside("deploy/")).await.is_ok());
    refuses(inside("none"), "no folder none in revision").await;
    refuses(inside("deploy/none/deeper"), "no folder deploy/none in revision").await;
    refuses(inside("file"), "a file, not a folder, is at file in revision").await;
    refuses(inside("deploy/a.yaml"), "a file, not a folder, is at deploy/a.yaml").await;
    refuses(inside("link"), "a symbolic link, which is not followed, is at link").await;
    refuses(inside("link/x"), "a symbolic link, which is not followed, is at link").await;
    refuses(inside("sub"), "a submodule, which is not read, is at sub").await;
    refuses(inside("../x"), "may not lead out of the repository").await;
    refuses(inside("deploy/../../x"), "may not lead out of the repository").await;
}

#[tokio::test]
async fn long_names_are_read_and_shown() {
    let name = format!("{}/{}.yaml", "d".repeat(250), "f".repeat(250));
    let deep = format!("{}x.yaml", "deeper/".repeat(90));
    let (repo, revision) = TestRepository::with(&[(&name, "1"), (&deep, "2")]);
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
    source.observe().await.unwrap();
    assert_eq!(paths(&source.snapshot(&revision).unwrap()), [name.as_str(), deep.as_str()]);
    let disk = crate::source::read_disk(repo.path()).unwrap();
    assert_eq!(paths(&disk.snapshot), [name.as_str(), deep.as_str()]);
}

/// Returns everything that is to be known of a folder's entries but when they were read.
fn print_of(folder: &Path) -> BTreeMap<String, String> {
    let entry = |entry: walkdir::DirEntry| {
        let metadata = entry.metadata().unwrap();
        let content = if metadata.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
        let facts = format!(
            "{:o} {}:{} {} {}.{} {}.{} {}",
            metadata.mode(),
            metadata.uid(),
            metadata.ino(),
            metadata.size(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
            crate::source::BlobId::of(&content),
        );
        (entry.path().display().to_string(), facts)
    };
    walkdir::WalkDir::new(folder).into_iter().map(|found| entry(found.unwrap())).collect()
}

#[tokio::test]
async fn a_repository_is_never_written_to() {
    let (repo, first) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    repo.git(&["gc", "--quiet"]);
    let second = repo.commit(&[("deploy/a.yaml", "2")]);
    let beside = tempfile::tempdir().unwrap();
    let path = |name: &str| beside.path().join(name).to_str().unwrap().to_owned();
    repo.git(&["clone", "--quiet", "--bare", ".", &path("bare.git")]);
    repo.git(&["worktree", "add", "--quiet", "--detach", &path("tree")]);
    // A rest that a person left in the middle of their work.
    fs::write(repo.path().join(".git/index.lock"), "").unwrap();
    fs::write(repo.path().join(".git/shallow.lock"), "").unwrap();
    fs::write(repo.path().join("deploy/b.yaml"), "not committed").unwrap();
    let print = || (print_of(repo.path()), print_of(beside.path()));
    let before = print();
    let bare = beside.path().join("bare.git");
    for path in [repo.path(), &bare, &beside.path().join("tree")] {
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &ResolvedLocation::Git(at(path)), state.path()).unwrap();
        let hints = source.change_hints();
        hints.next_hint().await;
        assert_eq!(source.observe().await.unwrap().revision, second);
        source.fetch_revision(&first).await.unwrap();
        assert_eq!(source.changes(&first, &second).unwrap().len(), 1);
        source.commit(&second).unwrap();
        let snapshot = source.snapshot(&second).unwrap();
        source.read(snapshot.files[0].blob).unwrap();
        assert_eq!(source.pin(&BTreeSet::from([first.clone(), second.clone()])).await.unwrap(), []);
        source.observe().await.unwrap();
        crate::source::read_disk(path).map_or_else(|_| assert_eq!(path, bare), drop);
        ResolvedLocation::Git(at(path)).location_id();
    }
    assert_eq!(print(), before);
}

#[tokio::test]
async fn the_configuration_of_a_repository_names_no_other_files() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "[remote \"origin\"]\n\turl = https://hunter2\n").unwrap();
    for section in ["[include]", "[ INCLUDE ]", "[core] [include]", "[includeIf \"gitdir:/\"]"] {
        let (repo, revision) = TestRepository::with(&[("a.yaml", "1")]);
        assert_eq!(observe(repo.git_location()).await.unwrap(), revision);
        let file = repo.path().join(".git/config");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}{section}\n\tpath = {}\n", secret.display())).unwrap();
        refuses(repo.git_location(), "whose configuration includes other files").await;
        let may = may_give_away();
        for entry in [repo.path(), &repo.path().join(".git"), &file].into_iter().filter(|_| may) {
            std::os::unix::fs::chown(entry, Some(12345), Some(12345)).unwrap();
        }
        refuses(repo.git_location(), "whose configuration includes other files").await;
        assert!(!repo.location().location_id().contains("hunter2"));
        // A comment names nothing.
        fs::write(&file, format!("{text}# {section}\n")).unwrap();
        assert_eq!(observe(repo.git_location()).await.unwrap(), revision, "{section}");
    }
}

#[tokio::test]
async fn a_repository_of_another_user_is_read_and_copied() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "1")]);
    let beside = tempfile::tempdir().unwrap();
    let path = |name: &str| beside.path().join(name).to_str().unwrap().to_owned();
    repo.git(&["clone", "--quiet", "--bare", ".", &path("bare.git")]);
    repo.git(&["worktree", "add", "--quiet", "--detach", &path("tree")]);
    repo.git(&["clone", "--quiet", "--separate-git-dir", &path("apart.git"), ".", &path("apart")]);
    git(Path::new(&path("apart")), &["config", "core.worktree", &path("apart")]);
    if may_give_away() {
        let (user, group) = (rustix::fs::Uid::from_raw(12345), rustix::fs::Gid::from_raw(12345));
        for folder in [repo.path(), beside.path()] {
            for entry in walkdir::WalkDir::new(folder) {
                rustix::fs::chown(entry.unwrap().path(), Some(user), Some(group)).unwrap();
            }
        }
        let status = git_command(repo.path()).args(["status"]).output().unwrap();
        assert!(!status.status.success(), "git itself asks for safe.directory");
    }
    for path in [repo.path().to_str().unwrap().to_owned(), path("bare.git"), path("tree"), path("apart")] {
        let state = tempfile::tempdir().unwrap();
        let location = ResolvedLocation::Git(GitLocation::new(path.as_str()));
        let mut source = Source::open("test", &location, state.path()).unwrap();
        assert_eq!(source.observe().await.unwrap().revision, revision, "{path}");
        assert_eq!(paths(&source.snapshot(&revision).unwrap()), ["a.yaml"], "{path}");
        assert_eq!(source.pin(&BTreeSet::from([revision.clone()])).await.unwrap(), [], "{path}");
        let hints = source.change_hints();
        hints.next_hint().await;
    }
    // An unsupported form is named all the same.
    let sha256 = tempfile::tempdir().unwrap();
    git(sha256.path(), &["init", "--quiet", "--object-format=sha256", "."]);
    if may_give_away() {
        for entry in walkdir::WalkDir::new(sha256.path()) {
            let user = rustix::fs::Uid::from_raw(12345);
            rustix::fs::chown(entry.unwrap().path(), Some(user), None).unwrap();
        }
    }
    refuses(at(sha256.path()), "a repository with SHA-256 ids is not supported").await;
}
