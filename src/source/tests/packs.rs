//! Packs and loose objects of a followed repository that no git wrote.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::Oid;

use super::fixture::TestRepository;
use crate::object::Revision;
use crate::source::{Source, SourceSettings};

/// The type of a delta that names its base.
const REF_DELTA: u8 = 7;
const BLOB: u8 = 3;

/// One entry of a pack: its id, its type, the size in its head, the base, and its content.
struct Entry {
    id: Oid,
    form: u8,
    size: u64,
    base: Option<Oid>,
    packed: Vec<u8>,
}

fn oid(digit: char) -> Oid {
    Oid::from_str(&digit.to_string().repeat(40)).unwrap()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns zeros, written piece by piece.
fn packed_zeros(count: u64) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let piece = vec![0; 1 << 20];
    for _ in 0..count >> 20 {
        encoder.write_all(&piece).unwrap();
    }
    encoder.finish().unwrap()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// Writes a pack with its index, whatever its entries say.
fn forge(repository: &Path, mut entries: Vec<Entry>) {
    entries.sort_by_key(|entry| entry.id);
    let count = u32::try_from(entries.len()).unwrap();
    let mut pack = [&b"PACK"[..], &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    let mut offsets = Vec::new();
    for entry in &entries {
        offsets.push(u32::try_from(pack.len()).unwrap());
        let rest = entry.size >> 4;
        let first = entry.form << 4 | (entry.size & 0xf) as u8;
        if rest == 0 {
            pack.push(first);
        } else {
            pack.push(first | 0x80);
            pack.extend(varint(rest));
        }
        if let Some(base) = entry.base {
            pack.extend_from_slice(base.as_bytes());
        }
        pack.extend_from_slice(&entry.packed);
    }
    pack.extend([7; 20]);
    let mut index = [&b"\xfftOc"[..], &2_u32.to_be_bytes()].concat();
    for first in 0..=255 {
        let until = entries.iter().filter(|entry| entry.id.as_bytes()[0] <= first).count();
        index.extend(u32::try_from(until).unwrap().to_be_bytes());
    }
    entries.iter().for_each(|entry| index.extend_from_slice(entry.id.as_bytes()));
    entries.iter().for_each(|_| index.extend([0; 4]));
    offsets.iter().for_each(|offset| index.extend(offset.to_be_bytes()));
    index.extend([7; 40]);
    let folder = repository.join(".git/objects/pack");
    let name = "1".repeat(40);
    fs::write(folder.join(format!("pack-{name}.pack")), pack).unwrap();
    fs::write(folder.join(format!("pack-{name}.idx")), index).unwrap();
}

/// Commits a tree that names a blob, which may be anything.
fn commit_blob(repo: &TestRepository, blob: Oid) -> Revision {
    let listing = repo.path().join("listing");
    fs::write(&listing, format!("100644 blob {blob}\tbomb.yaml\n")).unwrap();
    let mktree = "alias.lay=!git mktree --missing < listing";
    let tree = repo.git(&["-c", mktree, "lay"]);
    fs::remove_file(listing).unwrap();
    let commit = repo.git(&["commit-tree", "-p", "HEAD", "-m", "a bomb", &tree]);
    repo.git(&["update-ref", "HEAD", &commit]);
    Revision::new(&commit)
}

/// Reads all of the newest revision; none where that takes too long.
fn read_within(repo: &TestRepository, revision: Revision, time: Duration) -> Option<String> {
    let state = tempfile::tempdir().unwrap();
    let source =
        Source::open_with("test", &repo.location(), state.path(), SourceSettings::default()).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let said = match source.snapshot(&revision) {
            Err(error) => error.to_string(),
            Ok(snapshot) => {
                let blob = snapshot.files.first().map(|file| file.blob);
                match blob.map(|blob| source.read(blob)) {
                    Some(Err(error)) => error.to_string(),
                    Some(Ok(bytes)) => format!("{} bytes", bytes.len()),
                    None => "no files".to_owned(),
                }
            }
        };
        let _ = send.send(said);
    });
    receive.recv_timeout(time).ok()
}

fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn a_delta_that_leads_to_itself_is_no_object() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let delta = packed(&[4, 4, 0x90, 4]);
    let entry = |id, base| Entry {
        id: oid(id),
        form: REF_DELTA,
        size: 4,
        base: Some(oid(base)),
        packed: delta.clone(),
    };
    forge(repo.path(), vec![entry('a', 'b'), entry('b', 'a')]);
    let revision = commit_blob(&repo, oid('a'));
    let began = Instant::now();
    let said = read_within(&repo, revision, Duration::from_secs(20));
    eprintln!("{:?} {said:?}", began.elapsed());
    assert!(said.is_some());
}

#[test]
fn a_small_delta_on_a_huge_base_is_not_read() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let huge = 2_u64 << 30;
    let delta = [varint(huge), vec![4, 0x90, 4]].concat();
    let small = Entry {
        id: oid('a'),
        form: REF_DELTA,
        size: delta.len() as u64,
        base: Some(oid('b')),
        packed: packed(&delta),
    };
    let base = Entry { id: oid('b'), form: BLOB, size: huge, base: None, packed: packed_zeros(huge) };
    forge(repo.path(), vec![small, base]);
    let revision = commit_blob(&repo, oid('a'));
    let before = peak();
    let began = Instant::now();
    let said = read_within(&repo, revision, Duration::from_secs(60));
    eprintln!("{:?} {said:?} {} MiB", began.elapsed(), peak() - before);
    assert!(peak() - before < 300);
}

#[test]
fn a_loose_object_that_is_a_huge_file_is_not_read() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let blob = repo.git(&["rev-parse", "HEAD:a.yaml"]);
    let file = repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    fs::write(&file, bytes).unwrap();
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(2 << 30).unwrap();
    let before = peak();
    let began = Instant::now();
    let said = read_within(&repo, repo.head(), Duration::from_secs(60));
    eprintln!("{:?} {said:?} {} MiB", began.elapsed(), peak() - before);
    assert!(peak() - before < 300);
}

/// Returns the number of threads that read followed repositories.
fn readers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "read\n"))
        .count()
}

#[tokio::test]
async fn a_look_that_never_ends_is_given_up_and_none_is_begun_beside_it() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let settings = SourceSettings { fetch: Duration::from_secs(2), ..SourceSettings::default() };
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open_with("test", &repo.location(), state.path(), settings).unwrap();
    assert_eq!(source.observe().await.unwrap().revision, first);
    let delta = packed(&[4, 4, 0x90, 4]);
    let entry = |id, base| Entry {
        id: oid(id),
        form: REF_DELTA,
        size: 4,
        base: Some(oid(base)),
        packed: delta.clone(),
    };
    forge(repo.path(), vec![entry('a', 'b'), entry('b', 'a')]);
    fs::write(repo.path().join(".git/refs/heads/main"), format!("{}\n", oid('a'))).unwrap();
    let before = readers();
    for _ in 0..3 {
        let said = source.observe().await.unwrap_err().to_string();
        assert!(said.contains("2s") || said.contains("answer"), "{said}");
    }
    assert!(readers() <= before + 1, "{} threads read", readers() - before);
    assert_eq!(source.current_revision(), Some(&first));
}
