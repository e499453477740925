//! Packs of a server, which decides by their bytes what a reader of them does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use git2::Oid;

use super::packs::{SMALL, commit_bomb, delta, run_alone, stored, take_peak};
use super::remote::RemoteFixture;
use super::server::ServerBehaviour;
use crate::source::SourceError;

#[test]
fn a_bomb_of_a_server_is_followed_in_little_memory() {
    run_alone("server_packs::a_bomb_of_a_server_is_followed_in_little_memory", follow_bomb());
}

#[test]
fn a_bomb_in_the_store_of_an_older_version_is_read_in_little_memory() {
    run_alone(
        "server_packs::a_bomb_in_the_store_of_an_older_version_is_read_in_little_memory",
        take_over_bomb(),
    );
}

/// Gives the store the name that it had in an older version.
fn age(state: &Path) {
    fs::rename(state.join("revisions.git"), state.join("store.git")).unwrap();
}

/// Puts the packs of a server in place of their copies, as an older version kept them.
fn keep_sent_packs(store: &Path) {
    let sent = store.join("incoming.git/objects/pack");
    let kept = store.join("objects/pack");
    fs::remove_dir_all(&kept).unwrap();
    fs::rename(sent, kept).unwrap();
    fs::remove_dir_all(store.join("incoming.git")).unwrap();
}

async fn take_over_bomb() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    let bomb = commit_bomb(&fixture.repo, 400 << 20);
    fixture.open().observe().await.unwrap();
    keep_sent_packs(&fixture.state.path().join("revisions.git"));
    age(fixture.state.path());
    fixture.server.ended();
    fixture.server.set(ServerBehaviour::Silent);
    take_peak();
    // The deltas are in the way of nobody, and what was in force stays so without the remote.
    let mut source = fixture.open_with(|_, settings| settings.answer = Duration::from_millis(100));
    assert_eq!(source.current_revision(), None);
    assert!(source.observe().await.is_err());
    assert_eq!(source.current_revision(), Some(&bomb));
    let snapshot = source.snapshot(&bomb).unwrap();
    let file = snapshot.files.iter().find(|file| &*file.path == "bomb.yaml").unwrap();
    assert_eq!(source.read(file.blob).unwrap(), SMALL);
    let peak = take_peak();
    assert!(peak < 300, "{peak} MiB");
    assert!(!fixture.state.path().join("store.git").exists());
}

#[tokio::test]
async fn the_store_of_an_older_version_is_taken_over_or_made_anew() {
    let aged = |fixture: &RemoteFixture, damage: &dyn Fn(&Path)| {
        age(fixture.state.path());
        damage(&fixture.state.path().join("store.git"));
    };
    let check = async |damage: &dyn Fn(&Path), is_kept: bool| {
        let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
        let mut source = fixture.open();
        source.observe().await.unwrap();
        source.pin(&[first.clone()].into()).await.unwrap();
        // The pinned commit cannot be had again.
        fixture.repo.git(&["commit", "--quiet", "--amend", "--message=another"]);
        let second = fixture.repo.commit(&[("a.yaml", "2")]);
        source.observe().await.unwrap();
        aged(&fixture, damage);
        let third = fixture.repo.commit(&[("a.yaml", "3")]);
        let mut source = fixture.open();
        assert_eq!(source.observe().await.unwrap().revision, third);
        let lost = source.pin(&[first.clone(), second].into()).await.unwrap();
        assert_eq!(lost.contains(&first), !is_kept, "{lost:?}");
        assert_eq!(source.snapshot(&first).is_ok(), is_kept);
        assert!(!fixture.state.path().join("store.git").exists());
        assert_eq!(fixture.state.path().join("revisions.git.broken").exists(), !is_kept);
    };
    check(&|_| {}, true).await;
    check(&|store| fs::write(store.join("objects/pack/pack-1.keep"), "").unwrap(), true).await;
    check(&|store| fs::remove_dir_all(store.join("objects/pack")).unwrap(), false).await;
    check(&|store| fs::write(store.join("HEAD"), "nonsense").unwrap(), false).await;
    let replace_by_file = |store: &Path| {
        fs::remove_dir_all(store).unwrap();
        fs::write(store, "a file").unwrap();
    };
    check(&replace_by_file, false).await;
}

#[tokio::test]
async fn what_an_older_version_leaves_beside_a_store_of_this_one_is_removed() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.open().observe().await.unwrap();
    let older = fixture.state.path().join("store.git");
    fs::create_dir(&older).unwrap();
    fs::write(older.join("HEAD"), "ref: refs/heads/main").unwrap();
    let mut source = fixture.open();
    assert_eq!(source.current_revision(), Some(&first));
    source.observe().await.unwrap();
    assert!(!older.exists());
}

async fn follow_bomb() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let bomb = commit_bomb(&fixture.repo, 400 << 20);
    take_peak();
    let mut source = fixture.open();
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

/// Writes a pack of these entries with its sum.
fn write_sent_pack(file: &Path, entries: &[Vec<u8>]) {
    let count = u32::try_from(entries.len()).unwrap();
    let mut pack = [b"PACK".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    pack.extend(entries.concat());
    fs::write(file, &pack).unwrap();
    let sum = Command::new("sha1sum").arg(file).output().unwrap().stdout;
    let sum = std::str::from_utf8(&sum[..40]).unwrap();
    pack.extend(Oid::from_str(sum).unwrap().as_bytes());
    fs::write(file, pack).unwrap();
}

#[tokio::test]
async fn deltas_of_a_server_without_an_end_are_refused_by_the_child() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open_with(|_, settings| settings.fetch = Duration::from_mins(1));
    assert_eq!(source.observe().await.unwrap().revision, first);
    let second = fixture.repo.commit(&[("a.yaml", "2")]);
    let blob = Oid::from_str(&fixture.repo.git(&["rev-parse", "HEAD:a.yaml"])).unwrap();
    let other = Oid::from_str(&"1".repeat(40)).unwrap();
    let object = |kind: &str, number: u8, name: &str| {
        let output =
            Command::new("git").current_dir(fixture.repo.path()).args(["cat-file", kind, name]).output();
        let content = output.unwrap().stdout;
        let length = u8::try_from(content.len() >> 4).unwrap();
        assert!(length < 0x80);
        [vec![0x80 | number << 4 | content.len() as u8 & 0xf, length], stored(&content)].concat()
    };
    let entries = [
        object("commit", 1, "HEAD"),
        object("tree", 2, "HEAD^{tree}"),
        delta(other, 9, 9),
        delta(blob, 9, 9),
    ];
    let file = fixture.repo.path().join(".git/sent");
    write_sent_pack(&file, &entries);
    fixture.server.set(ServerBehaviour::Packed(file));
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Git { .. }), "{error:?}");
    assert!(error.to_string().contains("unresolved deltas"), "{error}");
    fixture.server.set(ServerBehaviour::git());
    assert_eq!(source.observe().await.unwrap().revision, second);
}
