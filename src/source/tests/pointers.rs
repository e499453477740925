//! A followed repository that leads to one that only this user may read.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use super::fixture::{TestRepository, git, paths, put};
use crate::object::Revision;
use crate::source::followed_repository;
use crate::source::host_objects::HostObjects;
use crate::source::local::repository_folders;
use crate::source::store::RevisionStore;
use crate::source::{
    GitLocation, ResolvedLocation, Source, SourceError, SourceSettings, read_disk, tree_around,
};

fn location(path: &Path) -> ResolvedLocation {
    ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap()))
}

/// Lets everybody write here, as whoever delivers into a followed repository may.
fn open_to_all(folder: &Path) {
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        if !entry.path_is_symlink() {
            let mode = if entry.file_type().is_dir() { 0o777 } else { 0o666 };
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

/// A repository that only rhumb may read, and one beside it that an attacker may write.
struct NeighbouringRepositories {
    secret: TestRepository,
    hidden: Revision,
    followed: TestRepository,
}

impl NeighbouringRepositories {
    fn new() -> Self {
        let (secret, hidden) = TestRepository::with(&[("secret.yaml", "hunter2")]);
        secret.git(&["remote", "add", "origin", "https://example.com/secret/origin"]);
        let (followed, _) = TestRepository::with(&[("a.yaml", "1")]);
        Self { secret, hidden, followed }
    }

    fn store(&self) -> PathBuf {
        self.followed.path().join(".git")
    }

    fn target(&self) -> PathBuf {
        self.secret.path().join(".git")
    }

    /// Puts a link in the place of what the followed repository has there.
    fn link(&self, name: &str) {
        self.link_to(name, &self.target().join(name));
    }

    fn link_to(&self, name: &str, target: &Path) {
        let place = self.store().join(name);
        if place.is_dir() {
            fs::remove_dir_all(&place).unwrap();
        } else if place.exists() {
            fs::remove_file(&place).unwrap();
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(target, place).unwrap();
    }

    /// Makes the branch name what the other repository holds, as an attacker does who has seen its
    /// name.
    fn name_hidden(&self) {
        fs::write(self.store().join("refs/heads/main"), format!("{}\n", self.hidden)).unwrap();
    }

    fn pack_secret(&self) {
        self.secret.git(&["gc", "--quiet"]);
    }
}

/// Looks at the followed repository, and makes sure that nothing of the other one comes out.
async fn refuses(neighbours: &NeighbouringRepositories, way: &str, expected: &[&str]) {
    let path = neighbours.followed.path();
    open_to_all(path);
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &location(path), state.path()).unwrap();
    let error = source.observe().await.expect_err(way);
    let said = error.to_string();
    for expected in expected {
        assert!(said.contains(expected), "{way}: {said} lacks {expected}");
    }
    assert!(matches!(error, SourceError::ForeignPointer { .. }), "{way}: {said}");
    let hidden = BTreeSet::from([neighbours.hidden.clone()]);
    let pinned = source.pin(&hidden).await;
    assert!(!matches!(pinned, Ok(lost) if lost.is_empty()), "{way}: it was copied");
    assert!(source.snapshot(&neighbours.hidden).is_err(), "{way}: it is listed");
    assert!(source.commit(&neighbours.hidden).is_err(), "{way}: it is reported");
    assert!(!location(path).location_id().contains("secret/origin"), "{way}: its origin is reported");
    let disk = read_disk(path).unwrap();
    assert_ne!(disk.snapshot.revision, neighbours.hidden, "{way}");
    assert!(disk.commit.is_none(), "{way}");
}

#[tokio::test]
async fn no_pointer_leads_to_another_repository() {
    let by_file = |neighbours: &NeighbouringRepositories, target: &Path| {
        fs::remove_dir_all(neighbours.store()).unwrap();
        fs::write(neighbours.store(), format!("gitdir: {}\n", target.display())).unwrap();
    };

    let pair = NeighbouringRepositories::new();
    by_file(&pair, &pair.target());
    refuses(&pair, "a file", &[".git leads to", pair.target().to_str().unwrap(), "does not name"]).await;

    let pair = NeighbouringRepositories::new();
    let tree = tempfile::tempdir().unwrap();
    let other = tree.path().join("tree");
    pair.secret.git(&["worktree", "add", "--quiet", "--detach", other.to_str().unwrap()]);
    by_file(&pair, &pair.target().join("worktrees/tree"));
    refuses(&pair, "the folder of a work tree", &[".git leads to"]).await;

    let pair = NeighbouringRepositories::new();
    fs::remove_dir_all(pair.store()).unwrap();
    symlink(pair.target(), pair.store()).unwrap();
    refuses(&pair, "a link", &[".git is a link to", pair.target().to_str().unwrap()]).await;

    let pair = NeighbouringRepositories::new();
    fs::write(pair.store().join("commondir"), format!("{}\n", pair.target().display())).unwrap();
    refuses(&pair, "commondir", &[".git/commondir leads to", pair.target().to_str().unwrap()]).await;

    // A folder of the attacker's own names the followed one back, and leads on.
    let pair = NeighbouringRepositories::new();
    let own = tempfile::tempdir().unwrap();
    let admin = own.path().join("worktrees/x");
    put(&admin, &[("HEAD", "ref: refs/heads/main\n"), ("gitdir", pair.store().to_str().unwrap())]);
    fs::write(admin.join("commondir"), pair.target().to_str().unwrap()).unwrap();
    open_to_all(own.path());
    by_file(&pair, &admin);
    refuses(&pair, "through a folder of its own", &["worktrees/x/commondir leads to"]).await;

    let pair = NeighbouringRepositories::new();
    fs::write(pair.store().join("HEAD"), format!("ref: ../..{}/refs/heads/main\n", pair.target().display()))
        .unwrap();
    refuses(&pair, "a reference", &[".git/HEAD leads to"]).await;
}

#[tokio::test]
async fn no_link_in_a_repository_leads_to_another_one() {
    for name in ["objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/heads/main"] {
        let pair = NeighbouringRepositories::new();
        pair.pack_secret();
        fs::write(pair.target().join("refs/heads/main"), format!("{}\n", pair.hidden)).unwrap();
        pair.link(name);
        if name.starts_with("objects") {
            pair.name_hidden();
        }
        refuses(&pair, name, &[&format!(".git/{name} is a link to"), pair.target().to_str().unwrap()]).await;
    }
    for name in ["HEAD", "config", "packed-refs", "shallow", "info"] {
        let pair = NeighbouringRepositories::new();
        pair.pack_secret();
        fs::write(pair.target().join("shallow"), "").unwrap();
        pair.link(name);
        refuses(&pair, name, &[&format!(".git/{name} is a link to"), pair.target().to_str().unwrap()]).await;
    }

    let pair = NeighbouringRepositories::new();
    let fanout = &pair.hidden.as_str()[..2];
    pair.link(&format!("objects/{fanout}"));
    pair.name_hidden();
    refuses(&pair, "loose objects", &[&format!(".git/objects/{fanout} is a link to")]).await;

    let pair = NeighbouringRepositories::new();
    pair.pack_secret();
    for entry in fs::read_dir(pair.target().join("objects/pack")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        pair.link(&format!("objects/pack/{name}"));
    }
    pair.name_hidden();
    refuses(&pair, "packs", &[".git/objects/pack/pack-", "is a link to"]).await;

    // The branch that HEAD names names another one.
    let pair = NeighbouringRepositories::new();
    pair.link_to("refs/heads/side", &pair.target().join("refs/heads/main"));
    fs::write(pair.store().join("refs/heads/main"), "ref: refs/heads/side\n").unwrap();
    refuses(&pair, "a chain", &[".git/refs/heads/side is a link to"]).await;
}

#[tokio::test]
async fn no_pipe_in_the_place_of_a_file_is_waited_for() {
    for name in ["HEAD", "packed-refs", "refs/heads/main", "objects/pack/pack-1.idx"] {
        let pair = NeighbouringRepositories::new();
        let place = pair.store().join(name);
        let _ = fs::remove_file(&place);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &location(pair.followed.path()), state.path()).unwrap();
        let said = source.observe().await.expect_err(name).to_string();
        assert!(said.contains(name) && said.contains("neither a file nor a folder"), "{name}: {said}");
    }
}

/// Swaps something in a followed repository after the look at it, and makes sure that no object of
/// the other one comes out.
async fn shows_nothing(way: &str, swap: impl Fn(&NeighbouringRepositories)) {
    let pair = NeighbouringRepositories::new();
    let state = tempfile::tempdir().unwrap();
    let store = RevisionStore::new(state.path(), SourceSettings::default());
    let lock = store.lock().await.unwrap();
    store.prepare(&lock).unwrap();
    let folders = repository_folders(pair.followed.path()).unwrap();
    let objects = HostObjects::new(&store, &lock, &folders, way);
    objects.check_files().await.unwrap();
    swap(&pair);
    let found = Repository::open(pair.store()).unwrap();
    let hidden = Oid::from_str(pair.hidden.as_str()).unwrap();
    assert_eq!(found.find_commit(hidden).unwrap().id(), hidden, "{way}: the link leads there");
    let resolved = objects.resolve(&format!("{hidden}^{{commit}}")).await;
    assert!(!matches!(resolved, Ok(Ok(_))), "{way}: {resolved:?}");
    assert!(objects.copy_commit(&pair.hidden, None).await.is_err(), "{way}");
    assert!(!store.has_revision(&pair.hidden), "{way}");
}

#[tokio::test]
async fn a_link_that_comes_after_the_check_shows_nothing() {
    shows_nothing("objects", |pair| pair.link("objects")).await;
    shows_nothing("packs", |pair| {
        pair.pack_secret();
        pair.link("objects/pack");
    })
    .await;
    shows_nothing("loose objects", |pair| pair.link(&format!("objects/{}", &pair.hidden.as_str()[..2])))
        .await;
    shows_nothing("a loose object", |pair| {
        let (folder, file) = pair.hidden.as_str().split_at(2);
        pair.link(&format!("objects/{folder}/{file}"));
    })
    .await;
    shows_nothing("the repository", |pair| {
        fs::remove_dir_all(pair.store()).unwrap();
        symlink(pair.target(), pair.store()).unwrap();
    })
    .await;
    shows_nothing("alternates", |pair| {
        let text = format!("{}\n", pair.target().join("objects").display());
        fs::write(pair.store().join("objects/info/alternates"), text).unwrap();
    })
    .await;

    let pair = NeighbouringRepositories::new();
    let read = || followed_repository::read_file(&pair.store(), "refs/heads/main", 100);
    assert!(read().unwrap().is_some());
    pair.link("refs/heads/main");
    assert!(read().is_err());
    pair.link("refs");
    assert!(read().is_err());
}

#[tokio::test]
async fn a_revision_is_copied_only_with_all_its_files() {
    let pair = NeighbouringRepositories::new();
    let blob = pair.secret.git(&["rev-parse", "HEAD:secret.yaml"]);
    let listing = pair.followed.path().join("listing");
    fs::write(&listing, format!("100644 blob {blob}\tsecret.yaml\n")).unwrap();
    let mktree = "git mktree --missing < listing";
    let tree = pair.followed.git(&["-c", &format!("alias.lay=!{mktree}"), "lay"]);
    let commit = Revision::new(&pair.followed.git(&["commit-tree", "-m", "it names what it lacks", &tree]));
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &pair.followed.location(), state.path()).unwrap();
    source.observe().await.unwrap();
    pair.followed.git(&["update-ref", "refs/heads/main", commit.as_str()]);
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Damaged { .. }) && error.to_string().contains(&blob), "{error}");
    // The same object, made here, is this repository's own.
    put(pair.followed.path(), &[("secret.yaml", "hunter2")]);
    pair.followed.git(&["hash-object", "-w", "secret.yaml"]);
    assert_eq!(source.observe().await.unwrap().revision, commit);
}

#[test]
fn the_work_tree_around_a_folder_is_the_folder_that_holds_the_repository() {
    let pair = NeighbouringRepositories::new();
    put(pair.followed.path(), &[("deploy/a.yaml", "1")]);
    let deploy = pair.followed.path().join("deploy");
    pair.followed.git(&["config", "core.worktree", "/"]);
    let (tree, start) = tree_around(&deploy).unwrap();
    assert_eq!(start, "deploy");
    let outside = pair.secret.path().join("secret.yaml");
    let outside = outside.to_str().unwrap().trim_start_matches('/');
    assert_eq!(tree.entry(outside).unwrap(), None);
    assert!(tree.entry("a.yaml").unwrap().is_some());
    // Of one's own repository that is so whatever its configuration includes.
    pair.followed.git(&["config", "include.path", "/nonexistent"]);
    assert_eq!(tree_around(&deploy).unwrap().1, "deploy");

    // Led away, the folder stands for itself.
    fs::remove_dir_all(pair.store()).unwrap();
    fs::write(pair.store(), format!("gitdir: {}\n", pair.target().display())).unwrap();
    open_to_all(pair.followed.path());
    let (tree, start) = tree_around(&deploy).unwrap();
    assert_eq!(start, "");
    assert!(tree.entry("a.yaml").unwrap().is_some());
    assert_eq!(tree.entry("deploy").unwrap(), None);
    assert_eq!(read_disk(&deploy).unwrap().commit, None);
}

/// Follows a repository, reads it and copies it.
async fn reads(path: &Path, expected: &Revision) {
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &location(path), state.path()).unwrap();
    let observed = source.observe().await.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(observed.revision, *expected, "{}", path.display());
    assert_eq!(paths(&source.snapshot(expected).unwrap()), ["a.yaml"], "{}", path.display());
    let lost = source.pin(&BTreeSet::from([expected.clone()])).await.unwrap();
    assert_eq!(lost, [], "{}", path.display());
}

#[tokio::test]
async fn a_pointer_to_what_names_the_place_back_is_followed() {
    let beside = tempfile::tempdir().unwrap();
    let place = |name: &str| beside.path().join(name);
    let text = |name: &str| place(name).to_str().unwrap().to_owned();
    let (repo, revision) = TestRepository::with(&[("a.yaml", "1")]);
    let here = repo.path().to_str().unwrap().to_owned();

    repo.git(&["worktree", "add", "--quiet", "--detach", &text("tree")]);
    repo.git(&["clone", "--quiet", "--bare", ".", &text("bare.git")]);
    git(&place("bare.git"), &["worktree", "add", "--quiet", "--detach", &text("tree-of-bare")]);
    let (outer, _) = TestRepository::with(&[("b.yaml", "1")]);
    outer.git(&["submodule", "--quiet", "add", &here, "deep/sub"]);
    let sub = outer.path().join("deep/sub");
    git(&sub, &["worktree", "add", "--quiet", "--detach", &text("tree-of-sub")]);
    repo.git(&["clone", "--quiet", "--separate-git-dir", &text("apart.git"), ".", &text("apart")]);
    git(&place("apart"), &["config", "core.worktree", &text("apart")]);

    let all =
        [place("tree"), place("bare.git"), place("tree-of-bare"), sub, place("tree-of-sub"), place("apart")];
    for path in &all {
        open_to_all(path);
        open_to_all(beside.path());
        reads(path, &revision).await;
        if *path != place("bare.git") {
            let disk = read_disk(path).unwrap();
            assert_eq!(disk.snapshot.revision, revision, "{}", path.display());
            reads(&path.join(".git"), &revision).await;
        }
    }
    // A submodule may keep that setting elsewhere.
    git(&all[3], &["config", "extensions.worktreeConfig", "true"]);
    let module = outer.path().join(".git/modules/deep/sub");
    fs::write(module.join("config.worktree"), "[core]\n\tworktree = ../../../../deep/sub\n").unwrap();
    git(&all[3], &["config", "--file", module.join("config").to_str().unwrap(), "--unset", "core.worktree"]);
    reads(&all[3], &revision).await;
    // Named as it is in the other repository.
    reads(&repo.path().join(".git/worktrees/tree"), &revision).await;
    // Behind a link to the repository.
    symlink(place("tree"), place("current")).unwrap();
    reads(&place("current"), &revision).await;
}
