//! Repositories that were made to hurt: huge files, bombs of trees, names that lead elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid, Repository};

use super::fixture::{TestRepository, git, marks, paths, refused, write_commit, write_tree};
use super::remote::RemoteFixture;
use crate::object::Revision;
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError, SourceSettings};

/// A message that would color a terminal, and turn the rest of its line around.
const MESSAGE: &str = "\u{1b}[31mred\u{202e}";

/// A GiB of zeros, as git names it.
const GIB: &str = "4fce05a4e4ed8cefef2d99f32c519b2fd7841b74";

/// A packer of bits as DEFLATE does (RFC 1951, section 3.1.1).
struct BitPacker {
    bytes: Vec<u8>,
    word: u64,
    count: u32,
}

impl BitPacker {
    fn put(&mut self, bits: u32, count: u32) {
        self.word |= u64::from(bits) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.word as u8);
            self.word >>= 8;
            self.count -= 8;
        }
    }

    /// Writes a Huffman code, from its highest bit on.
    fn code(&mut self, code: u32, count: u32) {
        self.put(code.reverse_bits() >> (32 - count), count);
    }
}

/// Returns a loose object of a GiB of zeros in 7 MB, written without the time that compressing
/// would take.
fn gib_of_zeros() -> Vec<u8> {
    const SIZE: u64 = 1 << 30;
    let header = format!("blob {SIZE}\0");
    let mut bits = BitPacker { bytes: vec![0x78, 0x01], word: 0, count: 0 };
    // One final block with the fixed codes.
    bits.put(0b011, 3);
    for byte in header.bytes().chain([0]) {
        bits.code(0x30 + u32::from(byte), 8);
    }
    // "258 bytes as the one before", and once "3 bytes" for the rest.
    assert_eq!((SIZE - 1) % 258, 3);
    for _ in 0..(SIZE - 1) / 258 {
        bits.code(0b1100_0101, 8);
        bits.code(0, 5);
    }
    bits.code(1, 7);
    bits.code(0, 5);
    bits.code(0, 7);
    bits.put(0, (8 - bits.count) % 8);
    let (mut low, mut high) = (1_u64, 0_u64);
    for byte in header.bytes() {
        low = (low + u64::from(byte)) % 65521;
        high = (high + low) % 65521;
    }
    high = (high + low * SIZE) % 65521;
    bits.bytes.extend(((high << 16 | low) as u32).to_be_bytes());
    bits.bytes
}

/// Adds the GiB to the newest commit, as a manifest.
fn commit_gib(repo: &TestRepository) -> Revision {
    let folder = repo.path().join(".git/objects").join(&GIB[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&GIB[2..]), gib_of_zeros()).unwrap();
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{GIB},huge.yaml")]);
    let tree = repo.git(&["write-tree"]);
    let commit = repo.git(&["commit-tree", "-p", "HEAD", "-m", "a GiB", &tree]);
    repo.git(&["update-ref", "HEAD", &commit]);
    Revision::new(&commit)
}

#[tokio::test]
async fn a_gib_is_fetched_within_bounds_and_refused_unread() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let second = commit_gib(&fixture.repo);
    fixture.repo.git(&["config", "core.compression", "1"]);

    let mut local =
        Source::open("test", &fixture.repo.location(), &fixture.state.path().join("local")).unwrap();
    assert_eq!(local.observe().await.unwrap().revision, second);
    let snapshot = local.snapshot(&second).unwrap();
    assert_eq!(
        (paths(&snapshot), refused(&snapshot.refused)),
        (vec!["a.yaml"], vec!["too-large huge.yaml".to_owned()])
    );
    local.fetch_revision(&first).await.unwrap();
    assert_eq!(local.changes(&first, &second).unwrap(), []);
    let blob = crate::source::BlobId::from_oid(Oid::from_str(GIB).unwrap());
    assert!(matches!(local.read(blob), Err(SourceError::TooLarge { size: 1_073_741_824, .. })));

    let mut remote = fixture.open();
    assert_eq!(remote.observe().await.unwrap().revision, second);
    assert_eq!(remote.snapshot(&second).unwrap(), snapshot);
    let used: u64 = walkdir::WalkDir::new(fixture.state.path())
        .into_iter()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(used < 20 << 20, "{used} bytes on disk");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 700 << 10, "{peak} kB: it was never in memory");
}

fn local() -> (TestRepository, Repository, Source) {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let source = Source::open("test", &repo.location(), repo.path()).unwrap();
    (repo, source.own_store(), source)
}

#[test]
fn names_that_lead_elsewhere_are_refused_by_the_walk_itself() {
    let (_repo, repository, source) = local();
    let blob = repository.odb().unwrap().write(ObjectType::Blob, b"a: 1").unwrap();
    let inner = write_tree(&repository, &[("100644", b"config.yaml", blob)]);
    let root = write_tree(
        &repository,
        &[
            ("40000", b".", inner),
            ("40000", b"..", inner),
            ("40000", b".GIT", inner),
            ("100644", b"..\\..\\x.yaml", blob),
            ("100644", b"../up.yaml", blob),
            ("100644", b"a\x1b[31m.yaml", blob),
            ("100600", b"odd-mode.yaml", blob),
            ("100644", b"ok.yaml", blob),
            ("100644", b"ok.yaml", blob),
            ("100644", b"sub/inner.yaml", blob),
            ("100644", b"\xff.yaml", blob),
            ("60000", b"zz-device.yaml", blob),
        ],
    );
    let revision = write_commit(&repository, root, MESSAGE);
    let snapshot = source.snapshot(&revision).unwrap();
    assert!(!snapshot.is_complete());
    assert_eq!(paths(&snapshot), ["odd-mode.yaml"]);
    let codes: Vec<_> = snapshot.refused.iter().map(|found| found.code).collect();
    assert_eq!(
        codes.iter().filter(|code| **code == "file-name").count(),
        7,
        "{:?}",
        refused(&snapshot.refused)
    );
    assert!(codes.contains(&"not-a-file"));
    let plain = write_commit(&repository, write_tree(&repository, &[("100644", b"ok.yaml", blob)]), MESSAGE);
    assert_eq!(marks(&source.changes(&plain, &revision).unwrap()), ["+odd-mode.yaml", "-ok.yaml"]);
    let subject = source.commit(&revision).unwrap().unwrap().subject;
    assert_eq!(subject, "\u{fffd}[31mred\u{fffd}");
}

#[test]
fn bombs_of_trees_end_early() {
    let (repo, repository, _) = local();
    let settings = SourceSettings { max_entries: 50_000, ..SourceSettings::default() };
    let source = Source::open_with("test", &repo.location(), repo.path(), settings).unwrap();
    let blob = repository.odb().unwrap().write(ObjectType::Blob, b"a: 1").unwrap();
    let (mut wide, mut deep) = (
        write_tree(&repository, &[("100644", b"a.yaml", blob)]),
        write_tree(&repository, &[("100644", b"a.yaml", blob)]),
    );
    for _ in 0..12 {
        let names: Vec<[u8; 1]> = (b'a'..=b'j').map(|name| [name]).collect();
        let entries: Vec<(&str, &[u8], Oid)> = names.iter().map(|name| ("40000", &name[..], wide)).collect();
        wide = write_tree(&repository, &entries);
    }
    for _ in 0..5000 {
        deep = write_tree(&repository, &[("40000", b"d", deep)]);
    }
    let (wide, deep) = (write_commit(&repository, wide, MESSAGE), write_commit(&repository, deep, MESSAGE));
    assert!(matches!(source.snapshot(&wide), Err(SourceError::TooMany { .. })));
    let snapshot = source.snapshot(&deep).unwrap();
    assert_eq!(refused(&snapshot.refused), [format!("too-deep d{}", "/d".repeat(100))]);
    let plain = write_commit(&repository, write_tree(&repository, &[("100644", b"a.yaml", blob)]), MESSAGE);
    assert!(matches!(source.changes(&plain, &wide), Err(SourceError::TooMany { .. })));
    assert_eq!(source.changes(&plain, &deep).unwrap().len(), 1);
}

/// The hooks that git knows and that could run where something is fetched, sent, checked out or
/// committed.
const HOOKS: [&str; 7] = [
    "reference-transaction",
    "post-checkout",
    "post-merge",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "post-index-change",
    "pre-receive",
];

/// The settings of a repository that name a program.
const PROGRAMS: [&str; 9] = [
    "core.fsmonitor",
    "core.sshCommand",
    "core.alternateRefsCommand",
    "core.askPass",
    "credential.helper",
    "uploadpack.packObjectsHook",
    "filter.ran.smudge",
    "filter.ran.process",
    "gpg.program",
];

/// Names a program wherever a repository can name one.
fn arm(repository: &Path, program: &Path) {
    let folder = PathBuf::from(git(repository, &["rev-parse", "--absolute-git-dir"]));
    fs::create_dir_all(folder.join("hooks")).unwrap();
    for hook in HOOKS {
        let _ = fs::remove_file(folder.join("hooks").join(hook));
        symlink(program, folder.join("hooks").join(hook)).unwrap();
    }
    for setting in PROGRAMS {
        git(repository, &["config", setting, program.to_str().unwrap()]);
    }
    git(repository, &["config", "core.hooksPath", folder.join("hooks").to_str().unwrap()]);
}

#[tokio::test]
async fn no_hook_and_no_program_that_a_repository_names_is_run() {
    let dir = tempfile::tempdir().unwrap();
    let (ran, program) = (dir.path().join("ran"), dir.path().join("program"));
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", ran.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let files = [("a.yaml", "1"), (".gitattributes", "* filter=ran\n")];
    // The repository itself, and our own store of what a server sends.
    for remote in [false, true] {
        let (fixture, first) = RemoteFixture::new(&files);
        let mut source = if remote {
            fixture.open()
        } else {
            Source::open("test", &fixture.repo.location(), fixture.state.path()).unwrap()
        };
        source.observe().await.unwrap();
        source.pin(&BTreeSet::from([first.clone()])).await.unwrap();
        let second = fixture.repo.commit(&[("a.yaml", "2")]);
        let store = fixture.state.path().join("revisions.git");
        arm(if remote { &store } else { fixture.repo.path() }, &program);
        assert_eq!(source.observe().await.unwrap().revision, second);
        assert_eq!(source.pin(&BTreeSet::from([first, second.clone()])).await.unwrap(), []);
        let lock = source.store.lock().await.unwrap();
        source.store.try_maintain_now(&lock).await;
        assert_eq!(source.snapshot(&second).unwrap().files.len(), 1);
        assert!(!ran.exists(), "{:?}", fs::read_to_string(&ran));
    }
    // An unconfined git runs them.
    let (repo, _) = TestRepository::with(&files);
    arm(repo.path(), &program);
    git(repo.path(), &["update-ref", "refs/heads/other", "HEAD"]);
    assert!(ran.exists());
}

#[tokio::test]
async fn a_reference_to_a_huge_object_is_reported_before_it_is_read() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "a")]);
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let who = "A Person <a@example.org> 1700000000 +0000";
    let mut commit = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\n").into_bytes();
    // More than any honest commit has.
    commit.resize(129 << 20, b'x');
    let repository = Repository::open(repo.path()).unwrap();
    let commit = repository.odb().unwrap().write(ObjectType::Commit, &commit).unwrap();
    fs::write(repo.path().join(".git/refs/heads/main"), format!("{commit}\n")).unwrap();
    for reference in [None, Some("main"), Some(&*commit.to_string())] {
        let location = GitLocation { reference: reference.map(str::to_owned), ..repo.git_location() };
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &ResolvedLocation::Git(location), state.path()).unwrap();
        let found = source.observe().await;
        let is_told =
            matches!(&found, Err(SourceError::Damaged { detail, .. }) if detail.contains("no honest tree"));
        assert!(is_told, "{reference:?}: {found:?}");
    }
}
