//! Files and links that lead from a followed repository to another one, which only rhumb may read.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::fixture::{TestRepository, git, put};
use crate::object::Revision;
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError, tree_around};

async fn look(path: &Path) -> Result<Revision, SourceError> {
    let location = ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap()));
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &location, state.path())?;
    source.observe().await.map(|seen| seen.revision)
}

async fn refuses(path: &Path, words: &[&str]) {
    let error = look(path).await.expect_err("it is read");
    let told = error.to_string();
    assert!(matches!(error, SourceError::Unsupported { .. }), "{told}");
    for word in words.iter().chain(&["leads to another place"]) {
        assert!(told.contains(word), "{word} is not in {told}");
    }
}

/// A repository that others may not read.
fn secret() -> (TestRepository, Revision) {
    TestRepository::with(&[("secret.yaml", "1")])
}

/// Moves what stands at a path away, and puts a link there.
fn link(to: &Path, at: &Path) {
    if at.is_dir() {
        fs::remove_dir_all(at).unwrap();
    } else if at.exists() {
        fs::remove_file(at).unwrap();
    }
    symlink(to, at).unwrap();
}

#[tokio::test]
async fn what_stands_in_the_place_of_the_repository_leads_nowhere_else() {
    let (other, _) = secret();
    let other = other.path().join(".git");
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let inner = repo.path().join(".git");
    fs::remove_dir_all(&inner).unwrap();
    fs::write(&inner, format!("gitdir: {}\n", other.display())).unwrap();
    refuses(repo.path(), &[".git", &other.display().to_string(), "does not name it back"]).await;
    link(&other, &inner);
    refuses(repo.path(), &[".git is a link"]).await;
    // A repository of its own beside, of which the shared part is another one's.
    fs::remove_file(&inner).unwrap();
    repo.git(&["init", "--quiet", "."]);
    fs::write(inner.join("commondir"), format!("{}\n", other.display())).unwrap();
    refuses(repo.path(), &["commondir", "does not name it back"]).await;
}

#[tokio::test]
async fn a_work_tree_of_another_repository_is_none_of_the_one_that_is_followed() {
    let (other, _) = secret();
    let trees = tempfile::tempdir().unwrap();
    let tree = trees.path().join("tree");
    other.git(&["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    fs::remove_dir_all(repo.path().join(".git")).unwrap();
    let pointer = fs::read_to_string(tree.join(".git")).unwrap();
    fs::write(repo.path().join(".git"), pointer).unwrap();
    refuses(repo.path(), &[".git", "does not name it back"]).await;
}

#[tokio::test]
async fn no_part_of_a_repository_is_a_link() {
    let (other, _) = secret();
    let other = other.path().join(".git");
    for part in ["objects", "objects/pack", "objects/info", "refs", "refs/heads", "HEAD", "config"] {
        let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
        link(&other.join(part), &repo.path().join(".git").join(part));
        refuses(repo.path(), &[part, "is a link"]).await;
    }
}

/// Returns the path of a loose object inside a repository.
fn loose(id: &str) -> PathBuf {
    Path::new("objects").join(&id[..2]).join(&id[2..])
}

#[tokio::test]
async fn no_object_and_no_pack_is_a_link_and_none_is_copied() {
    let (other, lent) = secret();
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let (theirs, ours) = (other.path().join(".git"), repo.path().join(".git"));
    let object = loose(lent.as_str());
    fs::create_dir_all(ours.join(&object).parent().unwrap()).unwrap();
    link(&theirs.join(&object), &ours.join(&object));
    refuses(repo.path(), &[&lent.as_str()[2..], "is a link"]).await;
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
    let error = source.pin(&BTreeSet::from([first.clone()])).await.unwrap_err();
    assert!(matches!(error, SourceError::Unsupported { .. }), "{error}");
    fs::remove_file(ours.join(&object)).unwrap();

    other.git(&["repack", "-a", "-d", "--quiet"]);
    for pack in fs::read_dir(theirs.join("objects/pack")).unwrap() {
        let pack = pack.unwrap();
        symlink(pack.path(), ours.join("objects/pack").join(pack.file_name())).unwrap();
    }
    refuses(repo.path(), &["objects/pack/pack-", "is a link"]).await;
}

#[tokio::test]
async fn what_git_itself_makes_is_read() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let places = tempfile::tempdir().unwrap();
    let tree = places.path().join("tree");
    repo.git(&["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    assert_eq!(look(&tree).await.unwrap(), first, "a work tree");
    let bare = places.path().join("bare.git");
    repo.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    assert_eq!(look(&bare).await.unwrap(), first, "a bare repository");
    let (clone, apart) = (places.path().join("clone"), places.path().join("apart.git"));
    let separate = format!("--separate-git-dir={}", apart.display());
    repo.git(&["clone", "--quiet", &separate, ".", clone.to_str().unwrap()]);
    refuses(&clone, &["does not name it back"]).await;
    git(&clone, &["config", "core.worktree", clone.to_str().unwrap()]);
    assert_eq!(look(&clone).await.unwrap(), first, "a separate directory that names it back");
    // A person may name a path through a link.
    let named = places.path().join("named");
    symlink(repo.path(), &named).unwrap();
    assert_eq!(look(&named).await.unwrap(), first, "a link that a person named");
}

#[test]
fn the_files_around_a_folder_are_those_of_its_own_work_tree() {
    let (repo, _) =
        TestRepository::with(&[("app/kustomization.yaml", "resources: []"), ("base/a.yaml", "a")]);
    let folder = repo.path().join("app");
    assert_eq!(tree_around(&folder).unwrap().1, "app");
    // Its configuration names a folder of which nobody asked for the files.
    let elsewhere = tempfile::tempdir().unwrap();
    put(elsewhere.path(), &[("secret.yaml", "1")]);
    let parent = repo.path().parent().unwrap();
    for work in [elsewhere.path(), parent, Path::new("/")] {
        repo.git(&["config", "core.worktree", work.to_str().unwrap()]);
        assert_eq!(tree_around(&folder).unwrap().1, "", "{}", work.display());
    }
}
