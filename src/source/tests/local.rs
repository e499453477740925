//! Repositories on this host.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::compare;
use super::fixture::{TestRepository, git, marks, paths, put, refused, state};
use crate::object::Revision;
use crate::source::tree_builder::{self, NewEntry};
use crate::source::{Ancestry, GitLocation, ResolvedLocation, Source, SourceError, local};

fn open(repo: &TestRepository, location: &ResolvedLocation) -> Source {
    Source::open("test", location, &state(&repo.dir)).unwrap()
}

async fn newest(location: GitLocation) -> Result<Revision, SourceError> {
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &ResolvedLocation::Git(location), state.path())?;
    source.observe().await.map(|observed| observed.revision)
}

#[tokio::test]
async fn lists_reads_and_compares_commits() {
    let (repo, first) =
        TestRepository::with(&[("a.yaml", "a"), ("b/c.json", "{}"), ("b/d.yml", "d"), ("README.md", "x")]);
    let mut source = open(&repo, &repo.location());
    let seen = source.observe().await.unwrap();
    assert_eq!((&seen.revision, seen.changed), (&first, true));
    assert!(!source.observe().await.unwrap().changed);

    let snapshot = source.snapshot(&first).unwrap();
    assert_eq!(paths(&snapshot), ["a.yaml", "b/c.json", "b/d.yml"]);
    assert!(snapshot.is_complete());
    assert_eq!(snapshot.files.iter().map(|file| file.size).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(source.read(snapshot.files[1].blob).unwrap(), b"{}");
    let commit = source.commit(&first).unwrap().unwrap();
    assert_eq!((commit.author.as_str(), commit.subject.as_str()), ("A Person", "a commit"));

    let second = repo.commit(&[("a.yaml", "aa"), ("b/c.json", ""), ("e.yaml", "e"), ("README.md", "y")]);
    let seen = source.observe().await.unwrap();
    assert_eq!((&seen.revision, seen.changed), (&second, true));
    let changed = source.changes(&first, &second).unwrap();
    assert_eq!(marks(&changed), ["~a.yaml", "-b/c.json", "+e.yaml"]);
    assert_eq!(changed[0].new.unwrap().1, 2);
    assert_eq!(source.snapshot(&first).unwrap(), snapshot, "older revisions stay readable");
}

// Each pin is a file to be read, and there may be hundreds.
#[tokio::test]
async fn pins_are_looked_after_where_nothing_is_new_and_in_a_store_that_was_made_anew() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let mut source = open(&repo, &repo.location());
    source.observe().await.unwrap();
    repo.commit(&[("a.yaml", "2")]);
    source.observe().await.unwrap();
    assert_eq!(source.pin(&BTreeSet::from([first.clone()])).await.unwrap(), []);
    let is_pinned = |source: &Source| source.store.pinned_revisions().unwrap().contains(&first);
    assert!(is_pinned(&source));
    // Another process of this state directory pins others.
    let lock = source.store.lock().await.unwrap();
    source.store.unpin(&lock, &first).unwrap();
    drop(lock);
    repo.commit(&[("a.yaml", "3")]);
    assert!(source.observe().await.unwrap().changed);
    assert!(!is_pinned(&source), "the new revision comes first");
    assert!(!source.observe().await.unwrap().changed);
    assert!(is_pinned(&source));
    fs::remove_dir_all(source.store.path()).unwrap();
    repo.commit(&[("a.yaml", "4")]);
    assert!(source.observe().await.unwrap().changed);
    assert!(is_pinned(&source));
}

#[tokio::test]
async fn an_ancestor_is_distinguished_from_any_other_commit() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "a")]);
    repo.git(&["checkout", "--quiet", "-b", "merged"]);
    let merged = repo.commit(&[("b.yaml", "b")]);
    repo.git(&["checkout", "--quiet", "-b", "unmerged"]);
    let unmerged = repo.commit(&[("c.yaml", "c")]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit(&[("d.yaml", "d")]);
    repo.git(&["merge", "--quiet", "--no-ff", "--message=merge", "merged"]);
    let head = repo.head();
    let mut source = open(&repo, &repo.location());
    source.observe().await.unwrap();
    source.fetch_history().await.unwrap();
    let reader = source.reader();
    let check = |older: &Revision, newer: &Revision, expected: Ancestry| {
        assert_eq!(reader.ancestry(older, newer).unwrap(), expected, "{older} {newer}");
    };
    check(&head, &head, Ancestry::Descends);
    check(&first, &head, Ancestry::Descends);
    check(&merged, &head, Ancestry::Descends);
    check(&unmerged, &head, Ancestry::Diverged);
    assert_eq!(reader.find_by_prefix(&unmerged.as_str()[..12]).unwrap(), None, "it was never followed");
    check(&head, &first, Ancestry::Diverged);
    // A repository that says that its history ends here, or begins elsewhere, decides nothing.
    let graft = format!("{head} {unmerged}\n");
    fs::write(repo.path().join(".git/info/grafts"), graft).unwrap();
    check(&unmerged, &head, Ancestry::Diverged);
    fs::write(repo.path().join(".git/shallow"), format!("{head}\n")).unwrap();
    check(&first, &head, Ancestry::Descends);
    let nobody = Revision::new("0123456789012345678901234567890123456789");
    check(&nobody, &head, Ancestry::Diverged);
    assert!(matches!(reader.ancestry(&head, &nobody), Err(SourceError::Unknown { .. })));
}

#[tokio::test]
async fn a_revision_is_found_by_the_beginning_of_its_id() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "a")]);
    let second = repo.commit(&[("a.yaml", "b")]);
    let mut source = open(&repo, &repo.location());
    source.observe().await.unwrap();
    source.fetch_history().await.unwrap();
    let reader = source.reader();
    let check = |prefix: &str, expected: Option<&Revision>| {
        assert_eq!(reader.find_by_prefix(prefix).unwrap().as_ref(), expected, "{prefix:?}");
    };
    for revision in [&first, &second] {
        check(revision.as_str(), Some(revision));
        check(&revision.as_str()[..12], Some(revision));
        check(&revision.as_str()[..3], None);
        check(&format!("{}x", &revision.as_str()[..12]), None);
        check(&format!("{revision}0"), None);
    }
    // A whole id of something that is not here stands for itself, and a part of it for nothing.
    let nobody = Revision::new("0123456789012345678901234567890123456789");
    check(nobody.as_str(), Some(&nobody));
    check(&nobody.as_str()[..12], None);
    check(&repo.git(&["rev-parse", "HEAD^{tree}"]), None);
    assert_eq!((reader.parent(&second).unwrap(), reader.parent(&first).unwrap()), (Some(first), None));
}

#[tokio::test]
async fn a_folder_called_like_the_file_of_a_root_is_read_as_any_other() {
    let (repo, revision) = TestRepository::with(&[
        ("a/Chart.yaml/x.yaml", "a: 1"),
        ("a/Kustomization/x.yaml", "a: 1"),
        ("a/kustomization.yaml/x.yaml", "a: 1"),
        ("a/kustomization.yml/x.yaml", "a: 1"),
    ]);
    let mut source = open(&repo, &repo.location());
    source.observe().await.unwrap();
    let (snapshot, disk) = (source.snapshot(&revision).unwrap(), crate::source::read_disk(repo.path()));
    for snapshot in [snapshot, disk.unwrap().snapshot] {
        let expected = ["Chart.yaml", "Kustomization", "kustomization.yaml", "kustomization.yml"]
            .map(|name| format!("a/{name}/x.yaml"));
        assert_eq!(paths(&snapshot), expected);
        assert_eq!(refused(&snapshot.refused), Vec::<String>::new());
    }
}

#[tokio::test]
async fn refuses_by_name_and_says_what() {
    let repo = TestRepository::new();
    put(
        repo.path(),
        &[
            ("ok.yaml", "a: 1"),
            ("overlay/kustomization.yaml", "resources: []"),
            ("overlay/deployment.yaml", "a: 1"),
            ("overlay/deeper/more.yaml", "a: 1"),
            ("chart/Chart.yaml", "name: x"),
            ("chart/templates/a.yaml", "{{ }}"),
            ("base/Kustomization", "x"),
            (
                "lfs.yaml",
                &format!(
                    "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n",
                    "0".repeat(64)
                ),
            ),
            ("back\\slash.yaml", "a: 1"),
            ("back\\slash.txt", "not a manifest"),
            ("line\nfeed/x.yaml", "a: 1"),
            (".github/workflow.yaml", "dot"),
        ],
    );
    symlink("ok.yaml", repo.path().join("link.yaml")).unwrap();
    symlink("overlay", repo.path().join("folder")).unwrap();
    symlink("ok.yaml", repo.path().join(".hidden.yaml")).unwrap();
    let (other, _) = TestRepository::with(&[("x.yaml", "x")]);
    repo.git(&["submodule", "--quiet", "add", other.path().to_str().unwrap(), "sub"]);
    let revision = repo.commit(&[]);
    let mut source = open(&repo, &repo.location());
    assert_eq!(source.observe().await.unwrap().revision, revision);
    let snapshot = source.snapshot(&revision).unwrap();
    assert_eq!(paths(&snapshot), ["ok.yaml"]);
    assert!(!snapshot.is_complete());
    let expected = [
        "file-name back\\slash.yaml",
        "kustomization base/Kustomization",
        "helm-chart chart/Chart.yaml",
        "symlink folder",
        "lfs-pointer lfs.yaml",
        "file-name line\u{fffd}feed",
        "symlink link.yaml",
        "kustomization overlay/kustomization.yaml",
        "submodule sub",
    ];
    assert_eq!(refused(&snapshot.refused), expected);
    assert!(snapshot.refused.iter().all(|found| found.is_error() && found.hint.is_some()));

    // The same on disk, and the same verdict there: all of it is committed.
    let disk = crate::source::read_disk(repo.path()).unwrap();
    assert_eq!(refused(&disk.snapshot.refused), expected);
    assert_eq!(disk.snapshot.revision, revision);

    // Listed in the ignore file nothing of it counts, and the folder beside a marker is read.
    let ignore = "back*\nbase/Kustomization\nchart/\nfolder\nlfs.yaml\nline*\nlink.yaml\n/overlay/kustomization.yaml\nsub\n";
    let revision = repo.commit(&[(".rhumbignore", ignore)]);
    source.observe().await.unwrap();
    let snapshot = source.snapshot(&revision).unwrap();
    assert_eq!(refused(&snapshot.refused), Vec::<String>::new());
    assert_eq!(paths(&snapshot), ["ok.yaml", "overlay/deeper/more.yaml", "overlay/deployment.yaml"]);
}

#[tokio::test]
async fn ignore_files_read_as_gitignore() {
    let (repo, revision) = TestRepository::with(&[
        (".rhumbignore", "# comment\n*.json\n/top.yaml\nskip/\n**/deep/x.yaml\n"),
        ("a.json", "1"),
        ("top.yaml", "1"),
        ("sub/top.yaml", "1"),
        ("sub/.rhumbignore", "!keep.json\nown.yaml\n"),
        ("sub/keep.json", "1"),
        ("sub/drop.json", "1"),
        ("sub/own.yaml", "1"),
        ("own.yaml", "1"),
        ("skip/a.yaml", "1"),
        ("p/q/deep/x.yaml", "1"),
        ("p/q/deep/y.yaml", "1"),
    ]);
    let mut source = open(&repo, &repo.location());
    source.observe().await.unwrap();
    let snapshot = source.snapshot(&revision).unwrap();
    assert_eq!(paths(&snapshot), ["own.yaml", "p/q/deep/y.yaml", "sub/keep.json", "sub/top.yaml"]);
    assert_eq!(crate::source::read_disk(repo.path()).unwrap().snapshot, snapshot);

    let broken = repo.commit(&[("p/.rhumbignore", "ok\nbad{glob\n")]);
    source.observe().await.unwrap();
    let snapshot = source.snapshot(&broken).unwrap();
    assert_eq!(refused(&snapshot.refused), ["ignore-file p/.rhumbignore"]);
    assert!(snapshot.refused[0].message.contains("line 2"), "{}", snapshot.refused[0].message);
    assert_eq!(paths(&snapshot), ["own.yaml", "sub/keep.json", "sub/top.yaml"]);
}

#[tokio::test]
async fn references_are_branches_tags_and_commits() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    repo.git(&["tag", "--annotate", "--message=one", "v1"]);
    repo.git(&["branch", "old"]);
    repo.git(&["tag", "light"]);
    let second = repo.commit(&[("a.yaml", "2")]);
    let check = async |reference: Option<&str>, expected: Option<&Revision>| {
        let location = GitLocation { reference: reference.map(str::to_owned), ..repo.git_location() };
        assert_eq!(newest(location).await.ok().as_ref(), expected, "{reference:?}");
    };
    check(None, Some(&second)).await;
    check(Some("HEAD"), Some(&second)).await;
    check(Some("main"), Some(&second)).await;
    check(Some("refs/heads/main"), Some(&second)).await;
    check(Some("old"), Some(&first)).await;
    check(Some("v1"), Some(&first)).await;
    check(Some("light"), Some(&first)).await;
    check(Some(first.as_str()), Some(&first)).await;
    check(Some(&first.as_str()[..8]), Some(&first)).await;
    check(Some("nothing"), None).await;
    check(Some("ffffffff"), None).await;
    check(Some("v1^{/x}"), None).await;
    check(Some("main~1"), None).await;
    check(Some("../../HEAD"), None).await;
}

#[tokio::test]
async fn a_person_names_ancestors_too() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    repo.git(&["tag", "--annotate", "--message=one", "v1"]);
    repo.git(&["checkout", "--quiet", "-b", "side"]);
    let side = repo.commit(&[("b.yaml", "1")]);
    repo.git(&["checkout", "--quiet", "main"]);
    let second = repo.commit(&[("a.yaml", "2")]);
    repo.git(&["merge", "--quiet", "--no-edit", "side"]);
    let check = async |name: &str, expected: Option<&Revision>| {
        let found = local::find_revision(repo.path(), name, &state(&repo.dir)).await;
        assert_eq!(found.as_ref().ok(), expected, "{name}: {found:?}");
        let is_missing = |error: &SourceError| matches!(error, SourceError::NoReference { .. });
        assert!(found.as_ref().err().is_none_or(is_missing), "{name}: {found:?}");
    };
    check("HEAD~1", Some(&second)).await;
    check("main^", Some(&second)).await;
    check("HEAD^2", Some(&side)).await;
    check("HEAD^2~", Some(&first)).await;
    check("HEAD~2", Some(&first)).await;
    check("v1^0", Some(&first)).await;
    check("side", Some(&side)).await;
    check("HEAD~3", None).await;
    check("HEAD^3", None).await;
    check("nothing~1", None).await;
    check("main^{tree}", None).await;
}

#[tokio::test]
async fn every_form_of_repository_is_opened_in_place() {
    let (repo, revision) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    let beside = tempfile::tempdir().unwrap();
    let at = |name: &str| beside.path().join(name).to_str().unwrap().to_owned();
    let from = repo.path().to_str().unwrap();
    repo.git(&["clone", "--quiet", "--bare", from, &at("bare.git")]);
    repo.git(&["worktree", "add", "--quiet", "--detach", &at("tree")]);
    repo.git(&["clone", "--quiet", "--depth=1", &format!("file://{from}"), &at("shallow")]);
    repo.git(&["clone", "--quiet", "--separate-git-dir", &at("apart.git"), from, &at("apart")]);
    git(std::path::Path::new(&at("apart")), &["config", "core.worktree", &at("apart")]);
    for name in ["bare.git", "tree", "shallow", "apart"] {
        assert_eq!(newest(GitLocation::new(at(name))).await.unwrap(), revision, "{name}");
        let url = format!("file://{}", at(name));
        assert_eq!(newest(GitLocation::new(url)).await.unwrap(), revision, "{name}");
    }
}

#[tokio::test]
async fn what_is_missing_is_an_error_and_the_last_revision_stays() {
    let (repo, first) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    repo.git(&["branch", "feature"]);
    let location = GitLocation {
        reference: Some("feature".to_owned()),
        path: Some("./deploy/".to_owned()),
        ..repo.git_location()
    };
    let mut source = open(&repo, &ResolvedLocation::Git(location));
    source.observe().await.unwrap();
    let refuses = async |source: &mut Source, expected: &str| {
        let error = source.observe().await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(source.current_revision(), Some(&first));
        assert_eq!(paths(&source.snapshot(&first).unwrap()), ["a.yaml"]);
    };
    repo.git(&["branch", "--delete", "--force", "feature"]);
    refuses(&mut source, "feature is gone").await;
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    assert!(!source.observe().await.unwrap().changed);

    repo.git(&["mv", "deploy", "moved"]);
    repo.commit(&[]);
    refuses(&mut source, "no folder deploy in revision").await;
    repo.commit(&[("moved/a.yaml", ""), ("deploy/README", "no manifest")]);
    refuses(&mut source, "no *.yaml, *.yml or *.json file in folder deploy of revision").await;
    repo.commit(&[("deploy/README", "")]);
    repo.git(&[
        "update-ref",
        "refs/heads/feature",
        &git(repo.path(), &["commit-tree", "-m", "x", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"]),
    ]);
    refuses(&mut source, "no folder deploy").await;
    repo.git(&["update-ref", "refs/heads/feature", first.as_str()]);
    assert!(!source.observe().await.unwrap().changed, "recovers by itself");

    let unborn = TestRepository::new();
    assert!(newest(unborn.git_location()).await.unwrap_err().to_string().contains("no commit yet"));
}

#[tokio::test]
async fn unsupported_forms_are_named() {
    let check = async |configure: &dyn Fn(&TestRepository), expected: &str| {
        let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
        configure(&repo);
        let error = newest(repo.git_location()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    let format = |repo: &TestRepository| drop(repo.git(&["config", "core.repositoryformatversion", "1"]));
    check(
        &|repo| {
            format(repo);
            repo.git(&["config", "extensions.refstorage", "reftable"]);
        },
        "a repository with reftable references is not supported",
    )
    .await;
    check(
        &|repo| {
            format(repo);
            repo.git(&["config", "extensions.partialclone", "origin"]);
        },
        "a partial clone is not supported",
    )
    .await;
    check(
        &|repo| drop(repo.git(&["config", "remote.origin.promisor", "true"])),
        "a partial clone is not supported",
    )
    .await;
    let sha256 = tempfile::tempdir().unwrap();
    git(sha256.path(), &["init", "--quiet", "--object-format=sha256", "."]);
    let error = newest(GitLocation::new(sha256.path().to_str().unwrap())).await.unwrap_err();
    assert!(error.to_string().contains("a repository with SHA-256 ids is not supported"), "{error}");
}

/// Generates some files, some of them with names that change how others are read.
fn some_tree() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop::sample::select(vec![
        "a.yaml",
        "b.yaml",
        "x/a.yaml",
        "x/b.json",
        "x/y/c.yml",
        "x/y/d.yaml",
        "x.yaml/e.yaml",
        "x-y.yaml",
        "z/a.txt",
        "z/a.yaml",
        ".rhumbignore",
        "x/.rhumbignore",
        "x/kustomization.yaml",
        "z/Chart.yaml",
        ".dot/a.yaml",
        "w\\.yaml",
    ]);
    let text = prop::sample::select(vec!["1", "22", "y/", "*.json", "!b.json"]);
    prop::collection::vec((name, text), 1..8).prop_map(|files| {
        let mut unique = std::collections::BTreeMap::new();
        for (name, text) in files {
            unique.insert(name.to_owned(), text.to_owned());
        }
        unique.insert("always.yaml".to_owned(), "1".to_owned());
        unique.into_iter().collect()
    })
}

/// Writes a tree without a work tree, so that hundreds of cases take no time.
fn plant(repository: &git2::Repository, files: &[(String, String)]) -> Revision {
    let odb = repository.odb().unwrap();
    let ids: Vec<(String, git2::Oid)> = files
        .iter()
        .map(|(path, text)| (path.clone(), odb.write(git2::ObjectType::Blob, text.as_bytes()).unwrap()))
        .collect();
    let plain: Vec<NewEntry<'_>> = ids.iter().map(|(path, id)| NewEntry::file(path, *id)).collect();
    let mut odb = odb;
    Revision::new(&tree_builder::write_commit(&mut odb, &plain, &[]).unwrap().to_string())
}

#[test]
fn changes_are_what_two_snapshots_differ_in() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let source = open(&repo, &repo.location());
    let repository = source.own_store();
    proptest!(ProptestConfig::with_cases(300), |(old in some_tree(), new in some_tree())| {
        let (old, new) = (plant(&repository, &old), plant(&repository, &new));
        let expected = compare(&source.snapshot(&old).unwrap().files, &source.snapshot(&new).unwrap().files);
        prop_assert_eq!(source.changes(&old, &new).unwrap(), expected);
    });
}
