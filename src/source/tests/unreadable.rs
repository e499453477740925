//! A file that cannot be read makes its source incomplete: it may hold what is wanted.
//!
//! Tests may run as the superuser, who may read everything. Here that right is dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::fixture::{TestRepository, folder, paths, put, refused};
use crate::source::{ResolvedLocation, Snapshot, Source, SourceSettings, read_disk};

/// Runs in a thread that may read what permissions allow, and no more. So may those it starts.
pub(super) fn without_rights<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets).unwrap();
            run()
        });
        thread.join().unwrap()
    })
}

/// Returns what a followed folder shows; a single reading of it shows the same.
fn seen(root: &Path) -> Snapshot {
    let state = tempfile::tempdir().unwrap();
    without_rights(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let settings = SourceSettings { pause: Duration::from_millis(1), ..SourceSettings::default() };
        let location = ResolvedLocation::Directory(root.to_owned());
        let mut source = Source::open_with("test", &location, state.path(), settings).unwrap();
        let revision = runtime.block_on(source.observe()).unwrap().revision;
        let snapshot = source.snapshot(&revision).unwrap();
        assert_eq!(read_disk(root).unwrap().snapshot, snapshot);
        snapshot
    })
}

#[test]
fn what_may_not_be_read_makes_a_folder_incomplete() {
    let check = |closed: &str, mode: u32, expected: &[&str], left: &[&str]| {
        let root = folder(&[("a.yaml", "1"), ("b/c.yaml", "2"), ("b/.rhumbignore", "x\n")]);
        let path = root.path().join(closed);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let snapshot = seen(root.path());
        assert_eq!(refused(&snapshot.refused), expected, "{closed}");
        assert_eq!(paths(&snapshot), left, "{closed}");
        assert_eq!(snapshot.is_complete(), expected.is_empty());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    check("a.yaml", 0o400, &[], &["a.yaml", "b/c.yaml"]);
    check("a.yaml", 0, &["unreadable a.yaml"], &["b/c.yaml"]);
    check("b/c.yaml", 0, &["unreadable b/c.yaml"], &["a.yaml"]);
    check("b/.rhumbignore", 0, &["ignore-file b/.rhumbignore"], &["a.yaml"]);
    // Its names cannot be listed, or nothing in it can be looked at, or both.
    check("b", 0o311, &["unreadable b"], &["a.yaml"]);
    check("b", 0o444, &["unreadable b"], &["a.yaml"]);
    check("b", 0, &["unreadable b"], &["a.yaml"]);
}

#[tokio::test]
async fn an_ignore_file_of_a_commit_that_is_no_text_makes_the_revision_incomplete() {
    let check = async |make: &dyn Fn(&Path)| {
        let repo = TestRepository::new();
        put(repo.path(), &[("a.yaml", "1"), ("b/c.yaml", "2")]);
        make(&repo.path().join("b/.rhumbignore"));
        let revision = repo.commit(&[]);
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
        source.observe().await.unwrap();
        let snapshot = source.snapshot(&revision).unwrap();
        assert_eq!(paths(&snapshot), ["a.yaml"]);
        assert_eq!(refused(&snapshot.refused), ["ignore-file b/.rhumbignore"]);
    };
    check(&|path| fs::write(path, b"a\xff\n").unwrap()).await;
    check(&|path| std::os::unix::fs::symlink("../a.yaml", path).unwrap()).await;
    check(&|path| fs::write(path, "a\n".repeat(1 << 20)).unwrap()).await;
}

// The superuser may read all, but no path that is too long.
#[test]
fn what_no_path_leads_to_makes_a_folder_incomplete() {
    let check = |levels: usize, file: &str, code: &str| {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("r".repeat(200));
        let mut deep = root.clone();
        for _ in 0..levels {
            deep.push("d".repeat(200));
        }
        fs::create_dir_all(&deep).unwrap();
        put(&root, &[("a.yaml", "1")]);
        let folder = rustix::fs::open(&deep, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        if let Some(name) = file.strip_suffix('/') {
            rustix::fs::mkdirat(&folder, name, Mode::RWXU).unwrap();
        } else {
            let flags = OFlags::CREATE | OFlags::WRONLY;
            drop(rustix::fs::openat(&folder, file, flags, Mode::RUSR | Mode::WUSR).unwrap());
        }
        let snapshot = seen(&root);
        let codes: Vec<String> =
            refused(&snapshot.refused).iter().map(|found| found.split(' ').next().unwrap().into()).collect();
        assert_eq!((codes, paths(&snapshot)), (vec![code.to_owned()], vec!["a.yaml"]));
    };
    // Of a file nothing can be known, and a folder cannot be listed.
    check(19, &format!("{}.yaml", "f".repeat(100)), "unreadable");
    check(19, &format!("{}/", "d".repeat(200)), "unreadable");
}
