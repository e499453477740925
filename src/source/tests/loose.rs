//! Files of a followed repository that are no objects and no references: pipes, and files with
//! holes.

use std::fs;
use std::path::{Path, PathBuf};

use super::fixture::TestRepository;
use crate::object::Revision;
use crate::source::Source;

/// A file that no memory holds, and that takes no room on the disk.
const HUGE: u64 = 1 << 40;

/// Returns where the repository keeps an object, and its name in errors.
fn loose(repo: &TestRepository, object: &str) -> (PathBuf, String) {
    let id = repo.git(&["rev-parse", object]);
    let (folder, file) = id.split_at(2);
    let name = format!("objects/{folder}/{file}");
    (repo.path().join(".git").join(&name), name)
}

pub(super) fn put_pipe(place: &Path) {
    fs::remove_file(place).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// Makes a file larger than any, behind what it holds.
fn grow(place: &Path) {
    let text = fs::read(place).unwrap_or_default();
    let _ = fs::remove_file(place);
    fs::write(place, text).unwrap();
    fs::OpenOptions::new().write(true).open(place).unwrap().set_len(HUGE).unwrap();
}

/// Looks at the repository and reads all of it; returns what that says.
async fn read_all(repo: &TestRepository, revision: &Revision) -> String {
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
    if let Err(error) = source.observe().await {
        return error.to_string();
    }
    let read = source
        .snapshot(revision)
        .and_then(|snapshot| snapshot.files.iter().try_for_each(|file| source.read(file.blob).map(drop)));
    read.map_or_else(|error| error.to_string(), |()| "all was read".to_owned())
}

#[tokio::test]
async fn an_object_is_read_out_of_a_regular_file_of_its_size_alone() {
    for object in ["HEAD", "HEAD^{tree}", "HEAD:folder", "HEAD:folder/a.yaml"] {
        let (repo, revision) = TestRepository::with(&[("folder/a.yaml", "1")]);
        assert_eq!(read_all(&repo, &revision).await, "all was read");
        let (place, name) = loose(&repo, object);
        put_pipe(&place);
        let said = read_all(&repo, &revision).await;
        assert!(said.contains(&format!("{name} is no regular file")), "{object}: {said}");

        let (repo, revision) = TestRepository::with(&[("folder/a.yaml", "1")]);
        let (place, name) = loose(&repo, object);
        grow(&place);
        let said = read_all(&repo, &revision).await;
        assert!(said.contains(&format!("{name} has {HUGE} bytes")), "{object}: {said}");
    }
}

#[tokio::test]
async fn an_annotated_tag_is_read_out_of_a_regular_file_alone() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "1")]);
    repo.git(&["tag", "--annotate", "--message=one", "v1"]);
    let tag = repo.git(&["rev-parse", "v1"]);
    fs::write(repo.path().join(".git/refs/heads/main"), format!("{tag}\n")).unwrap();
    assert_eq!(read_all(&repo, &revision).await, "all was read");
    let (place, name) = loose(&repo, "v1");
    put_pipe(&place);
    let said = read_all(&repo, &revision).await;
    assert!(said.contains(&format!("{name} is no regular file")), "{said}");
}

#[tokio::test]
async fn a_huge_file_in_the_place_of_references_is_not_read() {
    for name in ["HEAD", "packed-refs", "refs/heads/main", "shallow", "info/grafts"] {
        let (repo, revision) = TestRepository::with(&[("a.yaml", "1")]);
        let place = repo.path().join(".git").join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        grow(&place);
        let said = read_all(&repo, &revision).await;
        assert!(said.contains(name) && said.contains(&format!("it has {HUGE} bytes")), "{name}: {said}");
    }
}
