//! One look at files as they are on disk.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use super::fixture::{TestRepository, folder, paths, put, refused};
use crate::source::{SourceError, read_disk};

#[test]
fn equal_folders_are_equal_revisions() {
    let files = [("b/a.yaml", "1"), ("b.yaml", "2"), ("b-c.yaml", "3"), ("b/c/d.json", "4")];
    let (one, two) = (folder(&files), folder(&files));
    let (one, two) = (read_disk(one.path()).unwrap(), read_disk(two.path()).unwrap());
    assert_eq!(one.snapshot, two.snapshot);
    assert_eq!(paths(&one.snapshot), ["b-c.yaml", "b.yaml", "b/a.yaml", "b/c/d.json"]);
    assert_eq!(one.read(one.snapshot.files[1].blob), Some(&b"2"[..]));
    assert_eq!(one.snapshot.revision.as_str(), "3b1f76ab43942e0ea404a83fd754ca689dbcfbf7");
}

#[test]
fn a_clean_work_tree_shows_its_commit_and_a_changed_one_does_not() {
    let (repo, head) =
        TestRepository::with(&[("deploy/a.yaml", "1"), ("deploy/b.yaml", "2"), ("other/c.yaml", "3")]);
    let deploy = repo.path().join("deploy");
    let disk = read_disk(&deploy).unwrap();
    assert_eq!(disk.snapshot.revision, head);
    assert_eq!(disk.commit.unwrap().subject, "a commit");
    assert_eq!(paths(&disk.snapshot), ["a.yaml", "b.yaml"]);

    put(repo.path(), &[("other/c.yaml", "changed elsewhere")]);
    assert_eq!(read_disk(&deploy).unwrap().snapshot.revision, head);
    assert_ne!(read_disk(repo.path()).unwrap().snapshot.revision, head);
    put(repo.path(), &[("deploy/new.yaml", "not committed")]);
    let disk = read_disk(&deploy).unwrap();
    assert_ne!(disk.snapshot.revision, head);
    assert!(disk.commit.is_none());
}

#[test]
fn what_is_not_a_plain_file_is_refused_without_being_opened() {
    let dir = folder(&[("ok.yaml", "1"), ("nested/.git/HEAD", "x"), ("nested/a.yaml", "1")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.path().join("pipe.yaml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    symlink("/etc/passwd", dir.path().join("link.json")).unwrap();
    symlink("missing", dir.path().join("dangling.yaml")).unwrap();
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.yaml")), "1").unwrap();
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt")), "1").unwrap();
    fs::File::create(dir.path().join("huge.yaml")).unwrap().set_len(17 << 20).unwrap();
    let disk = read_disk(dir.path()).unwrap();
    assert_eq!(paths(&disk.snapshot), ["ok.yaml"]);
    let expected = [
        "file-name caf\u{fffd}.yaml",
        "symlink dangling.yaml",
        "too-large huge.yaml",
        "symlink link.json",
        "submodule nested",
        "not-a-file pipe.yaml",
    ];
    assert_eq!(refused(&disk.snapshot.refused), expected);
}

#[test]
fn nothing_there_is_an_error_and_never_an_empty_list() {
    let check = |files: &[(&str, &str)], expected: &str| {
        let dir = folder(files);
        let error = read_disk(&dir.path().join("at")).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&[], "no such file or folder");
    check(&[("at/README", "1")], "no *.yaml, *.yml or *.json file in the folder");
    check(&[("at/.rhumbignore", "*"), ("at/a.yaml", "1")], "no *.yaml");
    check(&[("at/HEAD", "ref: x"), ("at/objects/x", "1"), ("at/refs/x", "1")], "name a revision with --ref");
}

#[test]
fn a_single_file_is_read_whatever_its_name() {
    let dir = folder(&[("a.txt", "1"), ("kustomization.yaml", "1")]);
    let disk = read_disk(&dir.path().join("a.txt")).unwrap();
    assert_eq!(paths(&disk.snapshot), ["a.txt"]);
    let disk = read_disk(&dir.path().join("kustomization.yaml")).unwrap();
    assert_eq!(refused(&disk.snapshot.refused), ["kustomization kustomization.yaml"]);
    assert!(matches!(read_disk(&dir.path().join("b.yaml")), Err(SourceError::Missing { .. })));
}

#[test]
fn a_kubernetes_volume_is_read_through_its_data_link() {
    let dir = folder(&[("..2024_01/a.yaml", "1"), ("..2024_01/b.yaml", "2")]);
    symlink("..2024_01", dir.path().join("..data")).unwrap();
    for name in ["a.yaml", "b.yaml"] {
        symlink(format!("..data/{name}"), dir.path().join(name)).unwrap();
    }
    let disk = read_disk(dir.path()).unwrap();
    assert_eq!(paths(&disk.snapshot), ["a.yaml", "b.yaml"]);
    assert!(disk.snapshot.is_complete());
}
