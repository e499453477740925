//! Folders that are followed as they are.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::fixture::{folder, marks, paths, put, refused};
use crate::object::Revision;
use crate::source::{ResolvedLocation, Source, SourceError, SourceSettings, read_disk};

/// A folder, a state directory, and a clock that does not advance.
struct DirectoryFixture {
    dir: TempDir,
    state: TempDir,
    now: Arc<Mutex<Instant>>,
}

impl DirectoryFixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        put(&dir.path().join("root"), files);
        Self { dir, state: tempfile::tempdir().unwrap(), now: Arc::new(Mutex::new(Instant::now())) }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn put(&self, files: &[(&str, &str)]) {
        put(&self.root(), files);
    }

    fn wait(&self, seconds: u64) {
        *self.now.lock().unwrap() += Duration::from_secs(seconds);
    }

    fn open(&self) -> Source {
        self.open_with_quota(SourceSettings::default().quota)
    }

    fn open_with_quota(&self, quota: u64) -> Source {
        let now = self.now.clone();
        let settings = SourceSettings {
            quota,
            pause: Duration::from_millis(1),
            clock: Arc::new(move || *now.lock().unwrap()),
            ..SourceSettings::default()
        };
        Source::open_with("test", &ResolvedLocation::Directory(self.root()), self.state.path(), settings)
            .unwrap()
    }
}

async fn seen(source: &mut Source) -> Revision {
    source.observe().await.unwrap().revision
}

fn text(source: &Source, revision: &Revision, path: &str) -> String {
    let snapshot = source.snapshot(revision).unwrap();
    let file = snapshot.files.iter().find(|file| &*file.path == path).unwrap();
    String::from_utf8(source.read(file.blob).unwrap()).unwrap()
}

#[tokio::test]
async fn snapshots_follow_the_files_and_equal_what_one_observation_gives() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "1"), ("b/c.yaml", "2"), ("b/README", "x")]);
    let mut source = fixture.open();
    let first = source.observe().await.unwrap();
    assert!(first.changed && first.waiting.is_empty());
    let first = first.revision;
    assert_eq!(read_disk(&fixture.root()).unwrap().snapshot, source.snapshot(&first).unwrap());
    assert_eq!(text(&source, &first, "b/c.yaml"), "2");
    assert_eq!(source.commit(&first).unwrap(), None);
    assert!(!source.observe().await.unwrap().changed);

    fixture.put(&[("a.yaml", "9"), ("b/d.yaml", "4"), ("b/README", "y")]);
    let second = seen(&mut source).await;
    assert_eq!(marks(&source.changes(&first, &second).unwrap()), ["~a.yaml", "+b/d.yaml"]);
    assert_eq!(text(&source, &second, "a.yaml"), "9");
    fixture.put(&[("a.yaml", "1")]);
    fs::remove_file(fixture.root().join("b/d.yaml")).unwrap();
    fixture.wait(1);
    seen(&mut source).await;
    fixture.wait(60);
    assert_eq!(seen(&mut source).await, first, "equal files, equal revision");
}

// The bytes between two counts are summed up.
#[tokio::test]
async fn small_snapshots_fill_a_store() {
    const QUOTA: u64 = 1_000_000;
    let fixture = DirectoryFixture::new(&[("a.yaml", "0")]);
    let mut source = fixture.open_with_quota(QUOTA);
    let mut written = 0;
    let error = loop {
        match source.observe().await {
            Ok(observed) => assert!(observed.changed),
            Err(error) => break error,
        }
        written += 1;
        assert!(written < QUOTA / 4096, "three objects of a block each, and a reference");
        fixture.put(&[("a.yaml", &written.to_string())]);
        fixture.wait(1);
    };
    assert!(matches!(error, SourceError::Full { .. }), "{error}");
    assert!(written > 20, "{written} snapshots of 20 kB fit");
}

#[tokio::test]
async fn an_absence_counts_when_it_lasts() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "1"), ("b.yaml", "2"), ("c.yaml", "3")]);
    let mut source = fixture.open();
    let first = seen(&mut source).await;
    fixture.put(&[("b.yaml", "")]);
    let observed = source.observe().await.unwrap();
    assert_eq!((observed.revision, observed.changed), (first.clone(), false));
    assert_eq!(observed.waiting, ["b.yaml".into()]);
    assert!(source.next_poll(0.5) <= Duration::from_secs(10));

    fixture.put(&[("a.yaml", "11")]);
    fixture.wait(59);
    let second = seen(&mut source).await;
    assert_eq!(marks(&source.changes(&first, &second).unwrap()), ["~a.yaml"]);
    assert_eq!(text(&source, &second, "b.yaml"), "2");
    assert!(source.next_poll(0.5) <= Duration::from_secs(1));

    // A new process waits anew, for it does not know since when.
    let mut source = fixture.open();
    fixture.wait(10);
    assert_eq!(seen(&mut source).await, second);
    fixture.wait(60);
    let third = source.observe().await.unwrap();
    assert_eq!(marks(&source.changes(&second, &third.revision).unwrap()), ["-b.yaml"]);
    assert!(third.waiting.is_empty());
    fixture.put(&[("c.yaml", ""), ("d.yaml", "3")]);
    let moved = seen(&mut source).await;
    assert_eq!(marks(&source.changes(&third.revision, &moved).unwrap()), ["-c.yaml", "+d.yaml"]);
}

#[tokio::test]
async fn a_root_that_is_gone_or_empty_leaves_the_last_revision_in_force() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open();
    let first = seen(&mut source).await;
    let refuses = async |source: &mut Source, expected: &str| {
        fixture.wait(3600);
        let error = source.observe().await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(source.current_revision(), Some(&first));
        assert_eq!(text(source, &first, "a.yaml"), "1");
    };
    fixture.put(&[("a.yaml", "")]);
    refuses(&mut source, "no *.yaml, *.yml or *.json file in the folder").await;
    fs::remove_dir(fixture.root()).unwrap();
    refuses(&mut source, "no such file or folder").await;
    let mut restarted = fixture.open();
    assert_eq!(restarted.current_revision(), Some(&first));
    refuses(&mut restarted, "no such file or folder").await;
    fs::write(fixture.root(), "a file").unwrap();
    refuses(&mut source, "cannot be read").await;
    fs::remove_file(fixture.root()).unwrap();
    symlink("root", fixture.root()).unwrap();
    refuses(&mut source, "cannot be read").await;
    fs::remove_file(fixture.root()).unwrap();
    fs::create_dir(fixture.root()).unwrap();
    fixture.put(&[("a.yaml", "1")]);
    assert!(!source.observe().await.unwrap().changed);
}

#[tokio::test]
async fn a_swapped_link_counts_at_once() {
    let fixture = DirectoryFixture::new(&[]);
    let versions =
        folder(&[("one/a.yaml", "1"), ("one/b.yaml", "2"), ("two/a.yaml", "3"), ("three/README", "x")]);
    let swap = |name: &str| {
        let young = fixture.dir.path().join("young");
        symlink(versions.path().join(name), &young).unwrap();
        fs::rename(young, fixture.root()).unwrap();
    };
    fs::remove_dir(fixture.root()).unwrap();
    swap("one");
    let mut source = fixture.open();
    let first = seen(&mut source).await;
    swap("two");
    let second = seen(&mut source).await;
    assert_eq!(marks(&source.changes(&first, &second).unwrap()), ["~a.yaml", "-b.yaml"]);
    swap("three");
    assert!(
        matches!(source.observe().await, Err(SourceError::Empty { .. })),
        "but nothing at all still is an error"
    );
    fs::remove_file(versions.path().join("one/b.yaml")).unwrap();
    put(versions.path(), &[("one/c.yaml", "4")]);
    swap("one");
    let third = seen(&mut source).await;
    assert_eq!(paths(&source.snapshot(&third).unwrap()), ["a.yaml", "c.yaml"]);
    put(versions.path(), &[("one/c.yaml", "")]);
    assert_eq!(seen(&mut source).await, third, "without a swap it settles first");
}

#[tokio::test]
async fn a_kubernetes_volume_is_swapped_as_a_whole() {
    let fixture =
        DirectoryFixture::new(&[("..one/a.yaml", "1"), ("..one/b.yaml", "2"), ("..two/a.yaml", "3")]);
    let swap = |name: &str| {
        symlink(name, fixture.root().join("..young")).unwrap();
        fs::rename(fixture.root().join("..young"), fixture.root().join("..data")).unwrap();
    };
    symlink("..data/a.yaml", fixture.root().join("a.yaml")).unwrap();
    swap("..one");
    let mut source = fixture.open();
    let first = seen(&mut source).await;
    assert!(source.snapshot(&first).unwrap().is_complete());
    swap("..two");
    let second = seen(&mut source).await;
    assert_eq!(marks(&source.changes(&first, &second).unwrap()), ["~a.yaml", "-b.yaml"]);
}

#[tokio::test]
async fn what_is_refused_makes_the_revision_incomplete() {
    let fixture = DirectoryFixture::new(&[
        ("a.yaml", "1"),
        ("overlay/kustomization.yaml", "x"),
        ("overlay/b.yaml", "2"),
    ]);
    symlink("a.yaml", fixture.root().join("link.yaml")).unwrap();
    fs::File::create(fixture.root().join("big.yaml")).unwrap().set_len(1 << 30).unwrap();
    let mut source = fixture.open();
    let first = seen(&mut source).await;
    let snapshot = source.snapshot(&first).unwrap();
    assert_eq!(paths(&snapshot), ["a.yaml"]);
    let expected = ["too-large big.yaml", "symlink link.yaml", "kustomization overlay/kustomization.yaml"];
    assert_eq!(refused(&snapshot.refused), expected);
    assert_eq!(read_disk(&fixture.root()).unwrap().snapshot, snapshot);
    // Another process reads the same out of the store.
    let mut again = fixture.open();
    assert_eq!(again.snapshot(&first).unwrap(), snapshot);
    assert_eq!(seen(&mut again).await, first);

    fixture.put(&[(".rhumbignore", "/overlay\n*.json\n/link.yaml\n/big.yaml\n")]);
    let second = seen(&mut source).await;
    assert!(source.snapshot(&second).unwrap().is_complete());
    assert_ne!(first, second, "complete is another revision than incomplete, though the files are the same");
    assert_eq!(source.changes(&first, &second).unwrap(), []);
}

// The trees are the same, as the file's last content stays for a while.
#[tokio::test]
async fn a_file_that_is_refused_from_now_on_is_no_plain_change() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "1"), ("b.yaml", "2")]);
    let mut source = fixture.open();
    let first = seen(&mut source).await;
    fs::File::create(fixture.root().join("b.yaml")).unwrap().set_len(1 << 30).unwrap();
    let second = seen(&mut source).await;
    assert_eq!(refused(&source.snapshot(&second).unwrap().refused), ["too-large b.yaml"]);
    let plain_changes =
        |from: &Revision, to: &Revision| source.reader().plain_changes(from, None, to).unwrap();
    assert_eq!(plain_changes(&first, &second), None);
    assert_eq!(plain_changes(&second, &first), None);
}

#[tokio::test]
async fn a_folder_whose_ignore_file_says_nothing_clear_is_not_read_and_makes_it_incomplete() {
    let check = async |make: &dyn Fn(&Path)| {
        let fixture = DirectoryFixture::new(&[("a.yaml", "1"), ("b/c.yaml", "2")]);
        make(&fixture.root().join("b/.rhumbignore"));
        let mut source = fixture.open();
        let revision = seen(&mut source).await;
        let snapshot = source.snapshot(&revision).unwrap();
        assert_eq!(paths(&snapshot), ["a.yaml"]);
        assert_eq!(refused(&snapshot.refused), ["ignore-file b/.rhumbignore"]);
        assert_eq!(read_disk(&fixture.root()).unwrap().snapshot, snapshot);
    };
    check(&|path| fs::write(path, b"a\xff\n").unwrap()).await;
    check(&|path| fs::write(path, "{a\n").unwrap()).await;
    check(&|path| fs::create_dir(path).unwrap()).await;
    check(&|path| symlink("../a.yaml", path).unwrap()).await;
    check(&|path| fs::File::create(path).unwrap().set_len(2 << 20).unwrap()).await;
}

#[tokio::test]
async fn a_file_that_only_points_to_its_content_makes_a_folder_incomplete() {
    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n", "0".repeat(64));
    let fixture = DirectoryFixture::new(&[("a.yaml", "1"), ("big.yaml", &pointer), ("big.txt", &pointer)]);
    let mut source = fixture.open();
    let revision = seen(&mut source).await;
    let snapshot = source.snapshot(&revision).unwrap();
    assert_eq!(
        (paths(&snapshot), refused(&snapshot.refused)),
        (vec!["a.yaml"], vec!["lfs-pointer big.yaml".into()])
    );
    assert_eq!(read_disk(&fixture.root()).unwrap().snapshot, snapshot);
}

#[tokio::test]
async fn a_folder_that_never_rests_is_not_taken() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "1")]);
    let (root, busy) = (fixture.root(), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let (writes, start) = (busy.clone(), Instant::now());
    let settings = SourceSettings {
        pause: Duration::from_millis(1),
        // Each pass asks for the time once: somebody writes then.
        clock: Arc::new(move || {
            use std::sync::atomic::Ordering::SeqCst;
            if writes.load(SeqCst) > 0 {
                fs::write(root.join("a.yaml"), writes.fetch_add(1, SeqCst).to_string()).unwrap();
            }
            start
        }),
        ..SourceSettings::default()
    };
    let location = ResolvedLocation::Directory(fixture.root());
    let mut source = Source::open_with("test", &location, fixture.state.path(), settings).unwrap();
    let first = seen(&mut source).await;
    busy.store(10, std::sync::atomic::Ordering::SeqCst);
    fixture.put(&[("a.yaml", "2")]);
    match source.observe().await {
        Err(SourceError::Moving { .. }) => assert_eq!(source.current_revision(), Some(&first)),
        other => panic!("two passes were equal: {other:?}"),
    }
    busy.store(0, std::sync::atomic::Ordering::SeqCst);
    assert!(source.observe().await.unwrap().changed, "taken when it rests");
}

#[tokio::test]
async fn a_rewrite_of_equal_size_right_after_an_observation_is_seen() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "0")]);
    let mut source = fixture.open();
    for n in 1..30 {
        let digit = (n % 10).to_string();
        fixture.put(&[("a.yaml", &digit)]);
        let revision = seen(&mut source).await;
        assert_eq!(text(&source, &revision, "a.yaml"), digit);
    }
    assert!(source.next_poll(0.5) <= Duration::from_secs(2), "young files are looked at again soon");
}

#[tokio::test]
async fn pins_keep_old_snapshots_and_only_those() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open();
    let first = seen(&mut source).await;
    fixture.put(&[("a.yaml", "2")]);
    let second = seen(&mut source).await;
    fixture.put(&[("a.yaml", "3")]);
    let third = seen(&mut source).await;
    // Among them is the word of another source, which wants nothing any more.
    let wanted = BTreeSet::from([first.clone(), Revision::new("deleted"), Revision::new("")]);
    assert_eq!(source.pin(&wanted).await.unwrap(), []);
    let lock = source.store.lock().await.unwrap();
    source.store.try_maintain_now(&lock).await;
    drop(lock);
    assert_eq!(text(&source, &first, "a.yaml"), "1");
    assert_eq!(text(&source, &third, "a.yaml"), "3");
    assert!(matches!(source.snapshot(&second), Err(SourceError::Unknown { .. })));
    assert_eq!(source.pin(&BTreeSet::from([second.clone()])).await.unwrap(), [second]);
}

#[tokio::test]
async fn another_folder_under_the_same_name_starts_anew() {
    let fixture = DirectoryFixture::new(&[("a.yaml", "1"), ("b.yaml", "2")]);
    seen(&mut fixture.open()).await;
    let other = folder(&[("a.yaml", "1")]);
    let open = |path: &Path| {
        Source::open("test", &ResolvedLocation::Directory(path.to_owned()), fixture.state.path()).unwrap()
    };
    let mut source = open(other.path());
    assert_eq!(source.current_revision(), None);
    let revision = seen(&mut source).await;
    assert_eq!(paths(&source.snapshot(&revision).unwrap()), ["a.yaml"], "nothing lingers of the first one's");
}
