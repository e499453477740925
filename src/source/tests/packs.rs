//! The objects that are copied out of a repository on this host, and packs that no git wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use git2::Oid;

use super::fixture::{TestRepository, git, state};
use super::loose::put_pipe;
use crate::object::Revision;
use crate::source::host_objects::HostObjects;
use crate::source::local::repository_folders;
use crate::source::store::RevisionStore;
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError, SourceSettings};

/// The content of a file that a delta makes.
pub(super) const SMALL: &[u8] = &[0; 4];

/// Returns bytes as a stream of zlib (RFC 1950) that packs nothing.
pub(super) fn stored(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65521;
        high = (high + low) % 65521;
    }
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(bytes);
    stream.extend((high << 16 | low).to_be_bytes());
    stream
}

/// Returns a number in groups of seven bits, the lowest first.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Returns an entry of a pack: a delta that takes the first bytes of another object.
pub(super) fn delta(base: Oid, base_size: u64, taken: u8) -> Vec<u8> {
    let mut delta = [varint(base_size), varint(u64::from(taken))].concat();
    delta.extend([0x90, taken]);
    assert!(delta.len() < 16);
    let mut entry = vec![0x70 | delta.len() as u8];
    entry.extend(base.as_bytes());
    entry.extend(stored(&delta));
    entry
}

/// Writes a pack with its index. Nobody who reads one computes its sums.
pub(super) fn write_pack(repo: &TestRepository, entries: &[(Oid, Vec<u8>)]) {
    let count = u32::try_from(entries.len()).unwrap();
    let mut pack = [b"PACK".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    let mut offsets = Vec::new();
    for (id, entry) in entries {
        offsets.push((*id, u32::try_from(pack.len()).unwrap()));
        pack.extend(entry);
    }
    pack.extend([0; 20]);
    offsets.sort();
    let mut index = vec![0xff, b't', b'O', b'c', 0, 0, 0, 2];
    for first in 0..=u8::MAX {
        let below = offsets.iter().filter(|(id, _)| id.as_bytes()[0] <= first).count();
        index.extend(u32::try_from(below).unwrap().to_be_bytes());
    }
    index.extend(offsets.iter().flat_map(|(id, _)| id.as_bytes()));
    index.extend(offsets.iter().flat_map(|_| [0; 4]));
    index.extend(offsets.iter().flat_map(|(_, offset)| offset.to_be_bytes()));
    index.extend([0; 40]);
    let name = repo.path().join(".git/objects/pack").join(format!("pack-{}", "0".repeat(40)));
    fs::write(name.with_extension("pack"), pack).unwrap();
    fs::write(name.with_extension("idx"), index).unwrap();
}

/// Returns where a repository keeps an object that is in no pack.
fn loose(repo: &TestRepository, id: &str) -> PathBuf {
    repo.path().join(".git/objects").join(&id[..2]).join(&id[2..])
}

fn open(repo: &TestRepository, settings: SourceSettings) -> Source {
    Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap()
}

#[tokio::test]
async fn deltas_without_an_end_are_reported_and_the_repaired_repository_is_followed() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "1")]);
    let blob = repo.git(&["rev-parse", "HEAD:a.yaml"]);
    let kept = fs::read(loose(&repo, &blob)).unwrap();
    fs::remove_file(loose(&repo, &blob)).unwrap();
    let ids = [Oid::from_str(&blob).unwrap(), Oid::from_str(&"1".repeat(40)).unwrap()];
    write_pack(&repo, &[(ids[0], delta(ids[1], 9, 9)), (ids[1], delta(ids[0], 9, 9))]);
    let mut source = open(&repo, SourceSettings { fetch: Duration::from_mins(1), ..Default::default() });
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Memory { .. } | SourceError::Silent { .. }), "{error}");
    // The child that read it is gone: nothing holds up the next look.
    for ending in ["pack", "idx"] {
        let name = format!(".git/objects/pack/pack-{}.{ending}", "0".repeat(40));
        fs::remove_file(repo.path().join(name)).unwrap();
    }
    fs::write(loose(&repo, &blob), kept).unwrap();
    assert_eq!(source.observe().await.unwrap().revision, revision);
}

/// Puts a file that is the begin of zeros into the newest commit.
pub(super) fn commit_bomb(repo: &TestRepository, zeros: u64) -> Revision {
    let file = repo.path().join("zeros");
    fs::File::create(&file).unwrap().set_len(zeros).unwrap();
    let settings = ["-c", "core.bigFileThreshold=1m", "-c", "core.compression=1"];
    let base = repo.git(&[&settings[..], &["hash-object", "-w", "zeros"]].concat());
    fs::remove_file(&file).unwrap();
    let folder = repo.path().join(".git/objects/pack");
    let mut content = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "pack") {
            let pack = fs::read(&path).unwrap();
            content = pack[12..pack.len() - 20].to_vec();
        }
        fs::remove_file(path).unwrap();
    }
    assert!(!content.is_empty() && content.len() < 8 << 20, "{} bytes", content.len());
    let base = Oid::from_str(&base).unwrap();
    let small = Oid::hash_object(git2::ObjectType::Blob, SMALL).unwrap();
    let taken = u8::try_from(SMALL.len()).unwrap();
    write_pack(repo, &[(base, content), (small, delta(base, zeros, taken))]);
    // With its base beside it, so that the delta could be copied as it is.
    for (id, file) in [(small, "bomb.yaml"), (base, "zeros.bin")] {
        repo.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{id},{file}")]);
    }
    let tree = repo.git(&["write-tree"]);
    let commit = repo.git(&["commit-tree", "-p", "HEAD", "-m", "a bomb", &tree]);
    repo.git(&["update-ref", "HEAD", &commit]);
    Revision::new(&commit)
}

/// Set in the process of a test that measures its process: other tests would count there.
const OWN_PROCESS: &str = "RHUMB_TEST_OWN_PROCESS";

/// Runs work in a process of its own, in which no other test takes memory.
pub(super) fn run_alone(name: &str, work: impl Future<Output = ()>) {
    if std::env::var_os(OWN_PROCESS).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.unwrap().block_on(work);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("source::tests::{name}");
    let output = command.args(["--exact", &name]).env(OWN_PROCESS, "1").output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && report.contains("1 passed"), "{report}");
}

/// Returns the most memory of this process since the last call, in MiB.
pub(super) fn take_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    // Forgets it (proc_pid_clear_refs(5)).
    fs::write("/proc/self/clear_refs", "5").unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn the_memory_that_deltas_take_is_none_of_this_process() {
    run_alone("packs::the_memory_that_deltas_take_is_none_of_this_process", observe_bomb());
}

async fn observe_bomb() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let bomb = commit_bomb(&repo, 400 << 20);
    let mut source = open(&repo, SourceSettings { memory: 64 << 20, ..Default::default() });
    take_peak();
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Memory { .. }), "{error}");
    let mut source = open(&repo, SourceSettings::default());
    assert_eq!(source.observe().await.unwrap().revision, bomb);
    let snapshot = source.snapshot(&bomb).unwrap();
    let file = snapshot.files.iter().find(|file| &*file.path == "bomb.yaml").unwrap();
    assert_eq!(source.read(file.blob).unwrap(), SMALL);
    source.fetch_revision(&first).await.unwrap();
    let lock = source.store.lock().await.unwrap();
    source.store.try_maintain_now(&lock).await;
    assert_eq!(source.read(file.blob).unwrap(), SMALL);
    let peak = take_peak();
    assert!(peak < 300, "{peak} MiB");
}

#[tokio::test]
async fn a_pipe_that_comes_after_the_check_is_reported_by_the_deadline() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "1")]);
    let settings = SourceSettings { fetch: Duration::from_secs(2), ..SourceSettings::default() };
    let store = RevisionStore::new(&state(&repo.dir), settings);
    let lock = store.lock().await.unwrap();
    store.prepare(&lock).unwrap();
    let folders = repository_folders(repo.path()).unwrap();
    let objects = HostObjects::new(&store, &lock, &folders, "shop");
    objects.check_files().await.unwrap();
    let pipe = loose(&repo, &repo.git(&["rev-parse", "HEAD:a.yaml"]));
    put_pipe(&pipe);
    let error = objects.copy_commit(&revision, None).await.unwrap_err();
    assert!(matches!(error, SourceError::Silent { .. }), "{error}");
    assert!(error.to_string().contains("shop: no answer within 2 s"), "{error}");
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    // The child that waits at its end was killed, and is gone a moment later.
    let error = loop {
        match rustix::fs::open(&pipe, flags, rustix::fs::Mode::empty()) {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error, rustix::io::Errno::NXIO);
}

/// Returns how many objects each pack of a store has, in no order.
pub(super) fn packed(store: &Path) -> Vec<u32> {
    let files = fs::read_dir(store.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let packs = files.filter(|path| path.extension().is_some_and(|ending| ending == "pack"));
    packs.map(|path| u32::from_be_bytes(fs::read(path).unwrap()[8..12].try_into().unwrap())).collect()
}

/// Returns the number of objects in files of their own.
fn unpacked(store: &Path) -> usize {
    let is_object = |path: &Path| path.file_name().is_some_and(|name| name.len() == 38);
    let files = walkdir::WalkDir::new(store.join("objects")).into_iter().map(Result::unwrap);
    files.filter(|entry| entry.file_type().is_file() && is_object(entry.path())).count()
}

// A child copies packed objects. Small files of their own need none.
#[tokio::test]
async fn only_what_is_new_is_copied_and_nothing_where_nothing_is() {
    let files: Vec<(String, String)> = (0..50).map(|n| (format!("f{n}/a.yaml"), n.to_string())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    for is_packed in [true, false] {
        let (repo, first) = TestRepository::with(&files);
        let pack = || is_packed.then(|| repo.git(&["repack", "-adq"]));
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
        let check_copied = |source: &Source, packs: &[u32], files: usize| {
            let mut found = packed(source.store.path());
            found.sort_unstable();
            let expected = if is_packed { (packs.to_vec(), 0) } else { (Vec::new(), files) };
            assert_eq!((found, unpacked(source.store.path())), expected);
        };
        pack();
        source.observe().await.unwrap();
        // The commit, its tree, and a folder with a file for each.
        check_copied(&source, &[102], 102);
        let second = repo.commit(&[("f7/a.yaml", "new")]);
        pack();
        source.observe().await.unwrap();
        check_copied(&source, &[4, 102], 106);
        // The history has the commits alone.
        source.fetch_history().await.unwrap();
        assert_eq!(packed(&source.store.history_path()), [2]);
        let third = repo.commit(&[("f7/a.yaml", "newer")]);
        source.observe().await.unwrap();
        source.fetch_history().await.unwrap();
        let mut history = packed(&source.store.history_path());
        history.sort_unstable();
        assert_eq!(history, [1, 2]);
        source.fetch_revision(&first).await.unwrap();
        let lock = source.store.lock().await.unwrap();
        source.store.try_maintain_now(&lock).await;
        drop(lock);
        assert_eq!(packed(source.store.path()), [102 + 4 + 4], "git counts the cut history as complete");
        for revision in [&first, &second, &third] {
            assert_eq!(source.snapshot(revision).unwrap().files.len(), 50);
        }
        // No object is looked at for a reference that is as it was.
        let main = loose(&repo, third.as_str());
        put_pipe(&main);
        assert!(!source.observe().await.unwrap().changed);
        let mut again = Source::open("test", &repo.location(), state.path()).unwrap();
        assert_eq!(again.observe().await.unwrap().revision, third, "nor by the next process");
    }
}

#[tokio::test]
async fn a_damaged_folder_of_our_own_store_that_a_commit_moves_heals() {
    let (repo, _) = TestRepository::with(&[("old/a.yaml", "a"), ("b.yaml", "b")]);
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
    source.observe().await.unwrap();
    let tree = repo.git(&["rev-parse", "HEAD:old"]);
    let (folder, file) = tree.split_at(2);
    let file = source.store.path().join("objects").join(folder).join(file);
    // The content of another object, so that its file can be read.
    let commit = repo.git(&["rev-parse", "HEAD"]);
    let (folder, other) = commit.split_at(2);
    let other = fs::read(source.store.path().join("objects").join(folder).join(other)).unwrap();
    fs::remove_file(&file).unwrap();
    fs::write(&file, other).unwrap();
    repo.git(&["mv", "old", "new"]);
    repo.git(&["commit", "--quiet", "--message=move"]);
    let moved = repo.head();
    let mut tries = 0;
    while source.observe().await.map(|seen| seen.revision).ok().as_ref() != Some(&moved) {
        tries += 1;
        assert!(tries < 3, "it does not heal");
    }
    let files = source.snapshot(&moved).unwrap().files;
    assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["b.yaml", "new/a.yaml"]);
}

// The object is missing from our own store, though a revision that is known to be complete had it.
#[tokio::test]
async fn a_file_that_no_known_revision_has_in_its_place_is_looked_for() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "a"), ("b.yaml", "b")]);
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
    source.observe().await.unwrap();
    let blob = repo.git(&["rev-parse", "HEAD:a.yaml"]);
    let (folder, file) = blob.split_at(2);
    fs::remove_file(source.store.path().join("objects").join(folder).join(file)).unwrap();
    fs::remove_file(repo.path().join(".git/objects").join(folder).join(file)).unwrap();
    repo.git(&["rm", "--quiet", "--cached", "a.yaml"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},moved.yaml")]);
    let tree = repo.git(&["write-tree", "--missing-ok"]);
    let commit = repo.git(&["commit-tree", "-m", "moved", &tree]);
    repo.git(&["update-ref", "refs/heads/main", &commit]);
    let error = source.observe().await.unwrap_err().to_string();
    assert!(error.contains("damaged repository: "), "{error}");
}

#[tokio::test]
async fn a_shallow_repository_that_becomes_complete_shows_its_older_commits() {
    let (origin, first) = TestRepository::with(&[("a.yaml", "1")]);
    origin.commit(&[("a.yaml", "2")]);
    let third = origin.commit(&[("a.yaml", "3")]);
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = format!("file://{}", origin.path().display());
    git(folder.path(), &["clone", "--quiet", "--depth=1", &url, "."]);
    let location = ResolvedLocation::Git(GitLocation::new(folder.path().to_str().unwrap()));
    let mut source = Source::open("test", &location, state.path()).unwrap();
    assert_eq!(source.observe().await.unwrap().revision, third);
    source.fetch_history().await.unwrap();
    source.fetch_revision(&first).await.unwrap();
    assert!(source.snapshot(&first).is_err());
    git(folder.path(), &["fetch", "--quiet", "--unshallow"]);
    source.fetch_revision(&first).await.unwrap();
    assert_eq!(source.snapshot(&first).unwrap().files.len(), 1);
}
