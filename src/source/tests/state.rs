//! A state directory that is lost, broken, full or not writable.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::fixture::{TestRepository, folder, git, noise, paths, put};
use super::remote::RemoteFixture;
use super::server::ServerBehaviour;
use crate::object::{ErrorClass, Revision};
use crate::source::{ResolvedLocation, Source, SourceError, SourceSettings};

/// Truncates or overwrites every file that ends so below a folder; they are read-only for people
/// only.
fn spoil(folder: &Path, ending: &str) {
    let mut found = 0;
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() && entry.path().to_string_lossy().ends_with(ending) {
            let size = entry.metadata().unwrap().len() as usize;
            fs::remove_file(entry.path()).unwrap();
            fs::write(entry.path(), vec![b'?'; size / 2]).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "nothing ends in {ending}");
}

/// Takes the second half of every file below a folder away.
fn cut_in_half(folder: &Path) {
    let mut found = 0;
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            fs::remove_file(entry.path()).unwrap();
            fs::write(entry.path(), &bytes[..bytes.len() / 2]).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "nothing is in {}", folder.display());
}

/// Overwrites every file that ends so with bytes that mean nothing.
fn scramble(folder: &Path, ending: &str) {
    let mut found = 0;
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() && entry.path().to_string_lossy().ends_with(ending) {
            let size = entry.metadata().unwrap().len() as u32;
            let bytes: Vec<u8> = (1..=size).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            fs::remove_file(entry.path()).unwrap();
            fs::write(entry.path(), bytes).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "nothing ends in {ending}");
}

/// Breaks the store of a source that was in use, and wants everything back, the pins too.
async fn heals(damage: impl Fn(&Path)) {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1"), ("b.yaml", "2")]);
    let mut source = fixture.open();
    source.observe().await.unwrap();
    let second = fixture.repo.commit(&[("a.yaml", "11")]);
    source.observe().await.unwrap();
    let pins = BTreeSet::from([first.clone()]);
    source.pin(&pins).await.unwrap();
    damage(fixture.state.path());
    // The running process, by whatever comes first: a read that fails, or the next look.
    let _ = source
        .snapshot(&second)
        .map(|found| found.files.iter().map(|file| source.read(file.blob)).all(|r| r.is_ok()));
    assert_eq!(source.observe().await.unwrap().revision, second);
    read_all(&source, &second);
    read_all(&source, &first);
    // A process that starts then.
    damage(fixture.state.path());
    let mut source = fixture.open();
    let third = fixture.repo.commit(&[("a.yaml", "111")]);
    assert_eq!(source.observe().await.unwrap().revision, third);
    read_all(&source, &third);
    assert_eq!(source.pin(&pins).await.unwrap(), []);
    read_all(&source, &first);
}

fn read_all(source: &Source, revision: &Revision) {
    let snapshot = source.snapshot(revision).unwrap();
    assert_eq!(snapshot.files.len(), 2);
    for file in snapshot.files {
        source.read(file.blob).unwrap();
    }
}

#[tokio::test]
async fn a_deleted_state_directory_is_made_anew() {
    heals(|state| fs::remove_dir_all(state.join("revisions.git")).unwrap()).await;
    heals(|state| fs::remove_dir_all(state).unwrap()).await;
}

#[tokio::test]
async fn a_damaged_store_is_fetched_again() {
    let store = |state: &Path, inside: &str| state.join("revisions.git").join(inside);
    heals(|state| spoil(&store(state, "objects"), ".pack")).await;
    heals(|state| spoil(&store(state, "objects"), ".idx")).await;
    heals(|state| spoil(&store(state, ""), "HEAD")).await;
    heals(|state| spoil(&store(state, ""), "config")).await;
    heals(|state| fs::remove_dir_all(store(state, "objects")).unwrap()).await;
    heals(|state| fs::remove_dir_all(store(state, "objects/pack")).unwrap()).await;
    heals(|state| fs::remove_dir_all(store(state, "refs")).unwrap()).await;
    heals(|state| {
        fs::remove_dir_all(store(state, "")).unwrap();
        fs::write(state.join("revisions.git"), "a file").unwrap();
    })
    .await;
    heals(|state| {
        let store = state.join("revisions.git");
        // Once an older revision was brought, all of this short history is there.
        if store.join("shallow").exists() {
            scramble(&store, "/shallow");
        }
    })
    .await;
    heals(|state| {
        for entry in walkdir::WalkDir::new(store(state, "refs/rhumb")).into_iter().flatten() {
            if entry.file_type().is_file() {
                fs::write(entry.path(), "nonsense").unwrap();
            }
        }
    })
    .await;
}

#[tokio::test]
async fn random_bytes_in_any_file_of_the_store_heal() {
    for ending in [".pack", ".idx", "/HEAD", "/config"] {
        heals(|state| scramble(&state.join("revisions.git"), ending)).await;
    }
    heals(|state| {
        for entry in walkdir::WalkDir::new(state.join("revisions.git/refs")).into_iter().flatten() {
            if entry.file_type().is_file() {
                scramble(entry.path(), "");
            }
        }
    })
    .await;
    heals(|state| {
        let store = state.join("revisions.git");
        git(&store, &["pack-refs", "--all", "--prune"]);
        scramble(&store, "/packed-refs");
    })
    .await;
    heals(|state| scramble(state, "")).await;
}

#[tokio::test]
async fn a_broken_store_whose_remote_is_gone_is_an_error_and_never_empty() {
    let breaks: [&dyn Fn(&Path); 3] = [
        &|state| fs::remove_dir_all(state).unwrap(),
        &|state| scramble(&state.join("revisions.git"), ".pack"),
        &|state| scramble(state, ""),
    ];
    for damage in breaks {
        let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1"), ("b.yaml", "2")]);
        let open = || fixture.open_with(|_, settings| settings.answer = Duration::from_secs(3));
        let mut source = open();
        source.observe().await.unwrap();
        damage(fixture.state.path());
        fixture.server.set(ServerBehaviour::Silent);
        for mut source in [source, open()] {
            assert!(source.observe().await.is_err());
            assert!(source.snapshot(&first).is_err(), "an error, not an empty list");
            assert!(matches!(source.changes(&first, &first), Ok(changed) if changed.is_empty()));
        }
        fixture.server.set(ServerBehaviour::git());
        let mut source = open();
        assert_eq!(source.observe().await.unwrap().revision, first, "recovers by itself");
        read_all(&source, &first);
    }
}

#[test]
fn what_the_disk_says_is_distinguished_from_damage() {
    let store = crate::source::store::RevisionStore::new(Path::new("/state"), SourceSettings::default());
    let check = |text: &str, class: ErrorClass, expected: &str| {
        let error = git2::Error::new(git2::ErrorCode::GenericError, git2::ErrorClass::Os, text);
        let error = store.classify_error(&error);
        assert_eq!(error.class(), class, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check("failed to write data: No space left on device", ErrorClass::Transient, "free space there");
    check("failed to write chunk: Disk quota exceeded", ErrorClass::Transient, "free space there");
    check("could not create: Permission denied", ErrorClass::Config, "--state-directory");
    check("could not create: Read-only file system", ErrorClass::Config, "--state-directory");
    check("object not found", ErrorClass::Source, "damaged repository");
}

#[tokio::test]
async fn a_store_of_another_user_is_a_clear_error() {
    // Only root may give files away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open();
    source.observe().await.unwrap();
    let give = |user: u32| {
        let user = rustix::fs::Uid::from_raw(user);
        rustix::fs::chown(fixture.state.path().join("revisions.git"), Some(user), None).unwrap();
    };
    give(12345);
    let error = source.observe().await.unwrap_err();
    assert!(error.to_string().contains("not owned by current user"), "{error}");
    assert!(error.to_string().contains("--state-directory"), "{error}");
    give(0);
    source.observe().await.unwrap();
}

#[tokio::test]
async fn a_child_that_outlives_its_process_keeps_the_store_to_itself() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open_with(|_, settings| settings.lock = Duration::from_millis(50));
    let lock = source.store.lock().await.unwrap();
    let mut child =
        std::process::Command::new("sleep").arg("600").stdin(lock.share().unwrap()).spawn().unwrap();
    drop(lock);
    let error = source.observe().await.unwrap_err();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(error, SourceError::Busy { .. }), "{error}");
    assert!(error.to_string().contains("another rhumb holds"), "{error}");
    // A child of another test may hold a copy of the lock until it has become its program. So only
    // a source with patience takes the next turn for certain.
    fixture.open().observe().await.unwrap();
}

#[tokio::test]
async fn a_folders_snapshots_are_made_anew() {
    let dir = folder(&[("a.yaml", "1"), ("b.yaml", "2")]);
    let check = async |damage: &dyn Fn(&Path)| {
        let state = tempfile::tempdir().unwrap();
        let settings = SourceSettings { pause: Duration::from_millis(1), ..SourceSettings::default() };
        let location = ResolvedLocation::Directory(dir.path().to_owned());
        let mut source = Source::open_with("test", &location, state.path(), settings).unwrap();
        let first = source.observe().await.unwrap().revision;
        damage(state.path());
        let _ = source
            .snapshot(&first)
            .map(|found| found.files.iter().all(|file| source.read(file.blob).is_ok()));
        assert_eq!(source.observe().await.unwrap().revision, first);
        read_all(&source, &first);
    };
    check(&|state| fs::remove_dir_all(state).unwrap()).await;
    check(&|state| spoil(&state.join("revisions.git"), "HEAD")).await;
    check(&|state| {
        fs::remove_dir_all(state.join("revisions.git/objects")).unwrap();
        fs::create_dir(state.join("revisions.git/objects")).unwrap();
    })
    .await;
    check(&|state| {
        for digit in walkdir::WalkDir::new(state.join("revisions.git/objects")).min_depth(2) {
            let digit = digit.unwrap();
            if digit.file_type().is_file() {
                fs::remove_file(digit.path()).unwrap();
                fs::write(digit.path(), "nonsense").unwrap();
            }
        }
    })
    .await;
}

// File systems use a folder's number again, so a store made anew may look like the old one.
#[tokio::test]
async fn a_store_made_anew_in_the_same_folder_is_filled_anew() {
    let dir = folder(&[("a.yaml", "1"), ("b.yaml", "2")]);
    let state = tempfile::tempdir().unwrap();
    let location = ResolvedLocation::Directory(dir.path().to_owned());
    let mut source = Source::open("test", &location, state.path()).unwrap();
    let first = source.observe().await.unwrap().revision;
    for inside in ["objects", "refs"] {
        fs::remove_dir_all(state.path().join("revisions.git").join(inside)).unwrap();
    }
    git(state.path(), &["init", "--quiet", "--bare", "--template=", "revisions.git"]);
    assert_eq!(source.observe().await.unwrap().revision, first);
    read_all(&source, &first);
}

#[tokio::test]
async fn copies_of_a_local_repository_outlast_it_and_are_mended() {
    let (repo, first) = TestRepository::with(&[("deploy/a.yaml", "1"), ("deploy/b.yaml", "2")]);
    let state = tempfile::tempdir().unwrap();
    let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
    source.observe().await.unwrap();
    let pins = BTreeSet::from([first.clone(), Revision::new(&"e".repeat(40))]);
    assert_eq!(source.pin(&pins).await.unwrap(), [Revision::new(&"e".repeat(40))]);
    // The user rewrites history and tidies up.
    put(repo.path(), &[("deploy/a.yaml", "3")]);
    repo.git(&["commit", "--quiet", "--all", "--amend", "--message=other"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["-c", "gc.auto=0", "gc", "--quiet", "--prune=now"]);
    let second = source.observe().await.unwrap().revision;
    let snapshot = source.snapshot(&first).unwrap();
    assert_eq!(paths(&snapshot), ["deploy/a.yaml", "deploy/b.yaml"]);
    assert_eq!(source.read(snapshot.files[0].blob).unwrap(), b"1");
    assert_eq!(source.changes(&first, &second).unwrap().len(), 1);
    assert_eq!(source.pin(&BTreeSet::from([second.clone()])).await.unwrap(), []);
    // Even the whole repository may go.
    fs::remove_dir_all(repo.path()).unwrap();
    assert!(matches!(source.observe().await, Err(SourceError::Missing { .. })));
    assert_eq!(source.snapshot(&second).unwrap().files.len(), 2);
}

// The repository is sound, and only what is ours of it is not.
#[tokio::test]
async fn damaged_references_of_the_store_of_a_local_repository_heal() {
    let damages: [&dyn Fn(&Path); 3] =
        [&|references| spoil(references, ""), &|references| scramble(references, ""), &|references| {
            fs::remove_dir_all(references).unwrap();
        }];
    for damage in damages {
        let (repo, _) = TestRepository::with(&[("a.yaml", "1"), ("b.yaml", "2")]);
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &repo.location(), state.path()).unwrap();
        source.observe().await.unwrap();
        damage(&state.path().join("revisions.git/refs/rhumb"));
        let second = repo.commit(&[("a.yaml", "11")]);
        assert_eq!(source.observe().await.unwrap().revision, second);
        read_all(&source, &second);
    }
}

// libgit2 reads a loose object without its end for ever. So the read has a thread of its own.
#[tokio::test]
async fn objects_of_our_own_store_that_are_cut_are_damage_and_heal() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1"), ("b.yaml", "2")]);
    let dir = folder(&[("a.yaml", "1"), ("b.yaml", "2")]);
    for (location, change) in
        [(repo.location(), "11"), (ResolvedLocation::Directory(dir.path().to_owned()), "111")]
    {
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &location, state.path()).unwrap();
        let first = source.observe().await.unwrap().revision;
        let blob = source.snapshot(&first).unwrap().files[0].blob;
        cut_in_half(&state.path().join("revisions.git/objects"));
        let reader = source.reader();
        reader.close();
        let (sender, read) = mpsc::channel();
        thread::spawn(move || sender.send(reader.read(blob).map(drop)));
        let read = read.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(matches!(read, Err(SourceError::Damaged { .. })), "{location:?}: {read:?}");

        repo.commit(&[("a.yaml", change)]);
        fs::write(dir.path().join("a.yaml"), change).unwrap();
        let second = source.observe().await.unwrap().revision;
        assert_ne!(second, first, "{location:?}");
        read_all(&source, &second);
    }
}

#[tokio::test]
async fn paths_of_every_kind_are_copied_from() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["with space", "100%41", "quo\"te\\s", "hash#and?", "änderung", "a:b", "-dash"] {
        let path = dir.path().join(name);
        fs::create_dir(&path).unwrap();
        let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
        repo.git(&["clone", "--quiet", "--bare", ".", path.join("bare.git").to_str().unwrap()]);
        let state = tempfile::tempdir().unwrap();
        let location = crate::source::GitLocation::new(path.join("bare.git").to_str().unwrap());
        let mut source = Source::open("test", &ResolvedLocation::Git(location), state.path()).unwrap();
        source.observe().await.unwrap();
        assert_eq!(source.pin(&BTreeSet::from([first.clone()])).await.unwrap(), [], "{name}");
        assert!(source.store.has_revision(&first), "{name}");
    }
}

#[tokio::test]
async fn a_state_directory_that_cannot_be_written_is_a_clear_error() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let dir = folder(&[("file", "x"), ("source/a.yaml", "1")]);
    let settings =
        SourceSettings { transports: crate::source::TransportPolicy::Any, ..SourceSettings::default() };
    let remote = ResolvedLocation::Git(crate::source::GitLocation::new(fixture.server.url("git")));
    for location in [remote, ResolvedLocation::Directory(dir.path().join("source"))] {
        let state = dir.path().join("file/state");
        let mut source = Source::open_with("test", &location, &state, settings.clone()).unwrap();
        let error = source.observe().await.unwrap_err();
        assert!(error.to_string().starts_with("state directory: cannot create"), "{error}");
        assert_eq!(error.class(), ErrorClass::Config);
    }
    // It becomes unwritable later: root may write anywhere, so a file is where a folder must be
    // made.
    let mut source = fixture.open();
    source.observe().await.unwrap();
    let heads = fixture.state.path().join("revisions.git/refs/rhumb");
    fs::remove_dir_all(&heads).unwrap();
    fs::write(&heads, "").unwrap();
    fixture.repo.commit(&[("a.yaml", "2")]);
    let error = source.observe().await.unwrap_err();
    assert_eq!(source.current_revision(), Some(&first), "{error}");
    assert!(error.to_string().starts_with("state directory"), "{error}");
}

#[tokio::test]
async fn a_full_store_is_a_clear_error_and_what_is_there_stays_readable() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let quota = |quota: u64| fixture.open_with(|_, settings| settings.quota = quota);
    let mut source = quota(600_000);
    source.observe().await.unwrap();
    fixture.repo.commit(&[("noise.txt", &noise())]);
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Full { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Transient);
    assert_eq!(source.current_revision(), Some(&first));
    assert_eq!(source.snapshot(&first).unwrap().files.len(), 1);
    let error = quota(10).observe().await.unwrap_err();
    assert!(error.to_string().contains("bytes are used of a quota of 10"), "{error}");
    assert!(quota(1 << 30).observe().await.is_ok(), "recovers by itself");
}

#[tokio::test]
async fn two_processes_take_turns() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open_with(|_, settings| settings.lock = Duration::from_millis(50));
    let other = fixture.open();
    let lock = other.store.lock().await.unwrap();
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Busy { .. }), "{error}");
    drop(lock);
    // A child of another test may hold a copy of the lock until it has become its program. So only
    // a source with patience takes the next turn for certain.
    let mut other = other;
    other.observe().await.unwrap();
}

#[tokio::test]
async fn a_lock_on_a_folder_that_is_no_more_locks_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let patience = Duration::from_secs(20);
    let take = || crate::source::state_lock::take(&state, patience);
    let old = take().await.unwrap();
    let waiting = take();
    tokio::pin!(waiting);
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    fs::remove_dir_all(&state).unwrap();
    let young = take().await.unwrap();
    drop(old);
    // The one who waited for the old one must wait for the young one now.
    for _ in 0..3 {
        let turn = tokio::time::timeout(Duration::from_millis(50), waiting.as_mut()).await;
        assert!(turn.is_err());
    }
    drop(young);
    waiting.await.unwrap();
}

#[tokio::test]
async fn the_state_directory_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    let state = fixture.state.path().join("deeper/state");
    let location = ResolvedLocation::Git(crate::source::GitLocation::new(fixture.server.url("git")));
    let settings =
        SourceSettings { transports: crate::source::TransportPolicy::Any, ..SourceSettings::default() };
    let mut source = Source::open_with("test", &location, &state, settings).unwrap();
    source.observe().await.unwrap();
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
}
