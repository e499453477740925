//! Lists of files that are made of the ones before.

use std::fs;
use std::os::unix::fs::symlink;

use super::fixture::{TestRepository, paths, refused};
use crate::object::Revision;
use crate::source::object_stores::{StorePath, TREE_READS};
use crate::source::reader::{ReadLimits, RevisionForm};
use crate::source::{BlobId, RevisionReader, SourceError};

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 300;

fn reader(repo: &TestRepository, limits: ReadLimits) -> RevisionReader {
    let stores = vec![StorePath::Own(repo.path().join(".git"))];
    RevisionReader::new(stores, RevisionForm::Commits, "repo".to_owned(), None, limits)
}

/// Returns a repository of 20 roots, which each have two files, and of a folder of plain ones.
fn repository() -> (TestRepository, Revision) {
    let mut files = vec![("plain/a.yaml".to_owned(), "1"), ("plain/b.yaml".to_owned(), "2")];
    for number in 0..20 {
        files.push((format!("root-{number:02}/kustomization.yaml"), "resources: [a.yaml]"));
        files.push((format!("root-{number:02}/a.yaml"), "1"));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    TestRepository::with(&files)
}

/// Lists a revision as the next one, and returns how many trees that reads. Fails unless the list
/// is that of a walk over all of them.
fn reads_of_next(reader: &RevisionReader, revision: &Revision) -> usize {
    let before = TREE_READS.get();
    let listing = reader.next_listing(revision).unwrap();
    let reads = TREE_READS.get() - before;
    assert_eq!(reader.snapshot_of(revision, &listing).unwrap(), reader.raw_snapshot(revision).unwrap());
    reader.remembered_roots().set_listing(Some(listing));
    reads
}

#[test]
fn the_next_list_reads_the_trees_that_differ() {
    let (repo, first) = repository();
    let reader = reader(&repo, ReadLimits::default());
    assert_eq!(reads_of_next(&reader, &first), 22, "every folder");
    assert_eq!(reads_of_next(&reader, &first), 0, "the same tree");
    // The trees of both revisions on the way to the file.
    let check = |files: &[(&str, &str)], expected: usize| {
        let revision = repo.commit(files);
        assert_eq!(reads_of_next(&reader, &revision), expected, "{files:?}");
    };
    check(&[("root-03/a.yaml", "2")], 4);
    check(&[("root-03/kustomization.yaml", "namePrefix: a-"), ("root-04/new.yaml", "1")], 6);
    check(&[("plain/a.yaml", "2"), ("plain/c.yaml", "1"), ("plain/b.yaml", "")], 4);
    check(&[("plain/a.yaml", "3"), ("root-05/a.yaml", "2")], 6);
    check(&[], 0);
}

/// Checks each list against a walk, whether the differences show it or not.
#[test]
fn the_next_list_is_that_of_a_walk_whatever_changes() {
    let (repo, first) = repository();
    let reader = reader(&repo, ReadLimits { file: MAX_FILE_BYTES, ..ReadLimits::default() });
    reads_of_next(&reader, &first);
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let revision = repo.commit(files);
        reads_of_next(&reader, &revision);
        let snapshot = reader.raw_snapshot(&revision).unwrap();
        let others =
            refused(&snapshot.refused).into_iter().filter(|found| !found.contains("/kustomization.yaml"));
        assert_eq!(others.collect::<Vec<_>>(), expected, "{files:?}");
    };
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{:064}\nsize 1\n", 0);
    let large = "x".repeat(MAX_FILE_BYTES as usize + 1);
    check(
        &[("root-06/kustomization.yaml", ""), ("root-06/kustomization.yml", "a: b")],
        &["kustomization root-06/kustomization.yml"],
    );
    check(
        &[("root-06/kustomization.yml", ""), ("root-06/Chart.yaml", "name: a")],
        &["helm-chart root-06/Chart.yaml"],
    );
    check(&[("root-06/Chart.yaml", ""), ("root-06/a.yaml", "2")], &[]);
    check(&[("root-06/a.yaml", "3"), ("root-07/kustomization.yaml", ""), ("root-07/a.yaml", "")], &[]);
    check(&[("new/kustomization.yaml", "a: b")], &[]);
    check(&[("plain/a.yaml", &pointer)], &["lfs-pointer plain/a.yaml"]);
    check(&[("plain/b.yaml", &large)], &["lfs-pointer plain/a.yaml", "too-large plain/b.yaml"]);
    check(&[("plain/a.yaml", "4"), ("plain/b.yaml", "3")], &[]);
    check(&[("plain/a.yaml", ""), ("plain/a.yaml/deep.yaml", "1")], &[]);
    check(&[("plain/Chart.yaml", "name: a")], &["helm-chart plain/Chart.yaml"]);
    check(&[("plain/Chart.yaml", ""), ("plain/Chart.yaml/deep.yaml", "1")], &[]);
    check(&[("plain/Chart.yaml/deep.yaml", "2")], &[]);
    check(&[("root-08/.rhumbignore", "kustomization.yaml\n")], &[]);
    check(&[("root-08/a.yaml", "2")], &[]);
    check(&[("root-08/.rhumbignore", "a.yaml\n"), ("root-08/a.yaml", "3")], &[]);
    check(&[(".rhumbignore", "/root-09/kustomization.yaml\nplain/b.yaml\n")], &[]);
    check(&[("root-09/a.yaml", "2"), ("plain/b.yaml", "5")], &[]);
    check(&[(".rhumbignore", ""), ("root-09/a.yaml", "3")], &[]);
    fs::remove_file(repo.path().join("plain/b.yaml")).unwrap();
    symlink("c.yaml", repo.path().join("plain/b.yaml")).unwrap();
    check(&[], &["symlink plain/b.yaml"]);
    check(&[("kustomization.yaml", "a: b")], &["kustomization kustomization.yaml"]);
    check(&[("root-10/a.yaml", "2")], &["kustomization kustomization.yaml"]);
}

#[test]
fn a_file_is_read_up_to_the_limit_and_refused_beyond_it() {
    let most = "x".repeat(MAX_FILE_BYTES as usize);
    let large = format!("{most}x");
    let (repo, revision) = TestRepository::with(&[("most.yaml", &most), ("large.yaml", &large)]);
    let reader = reader(&repo, ReadLimits { file: MAX_FILE_BYTES, ..ReadLimits::default() });
    let snapshot = reader.snapshot(&revision).unwrap();
    assert_eq!(paths(&snapshot), ["most.yaml"]);
    assert_eq!(refused(&snapshot.refused), ["too-large large.yaml"]);
    assert_eq!(reader.read(BlobId::of(most.as_bytes())).unwrap(), most.as_bytes());
    let found = reader.read(BlobId::of(large.as_bytes()));
    assert!(matches!(found, Err(SourceError::TooLarge { size: 301, limit: 300, .. })), "{found:?}");
}

#[test]
fn a_list_is_walked_anew_where_the_known_one_is_of_no_use() {
    let (repo, first) = repository();
    let known = reader(&repo, ReadLimits::default());
    reads_of_next(&known, &first);
    let (other, revision) = TestRepository::with(&[("a/b.yaml", "1"), ("c.yaml", "2")]);
    let elsewhere = reader(&other, ReadLimits::default());
    elsewhere.remembered_roots().set_listing(known.remembered_roots().listing());
    assert_eq!(reads_of_next(&elsewhere, &revision), 3, "the known tree is not there, and both are walked");
}

#[test]
fn a_source_that_grows_beyond_its_limit_is_refused() {
    let names: Vec<String> = (0..60).map(|number| format!("many/{number}.yaml")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    files.push(("few/a.yaml", "1"));
    let (repo, first) = TestRepository::with(&files);
    // The files, and the two folders.
    let reader = reader(&repo, ReadLimits { entries: 63, ..ReadLimits::default() });
    reads_of_next(&reader, &first);
    for file in ["few/b.yaml", "few/README"] {
        let revision = repo.commit(&[(file, "1")]);
        let found = reader.next_listing(&revision);
        assert!(matches!(found, Err(SourceError::TooMany { .. })), "{file}");
        repo.commit(&[(file, "")]);
    }
    let revision = repo.commit(&[("few/a.yaml", ""), ("few/c.yaml", "1")]);
    assert_eq!(reads_of_next(&reader, &revision), 4, "it has as many entries as before");
}

#[test]
fn a_known_list_makes_no_revision_readable_that_is_gone() {
    let (repo, first) = repository();
    let reader = reader(&repo, ReadLimits::default());
    reads_of_next(&reader, &first);
    fs::remove_dir_all(repo.path().join(".git")).unwrap();
    assert!(reader.next_listing(&first).is_err());
}
