//! Packs of a server, which decides by their bytes what a reader of them does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use git2::Oid;

use super::packs::{SMALL, commit_bomb, delta, stored, take_peak};
use super::remote::RemoteFixture;
use super::server::ServerManner;
use crate::source::SourceError;

/// Set in the process of a test that measures its process: other tests would count there.
const OWN_PROCESS: &str = "RHUMB_TEST_OWN_PROCESS";

#[test]
fn a_bomb_of_a_server_is_followed_in_little_memory() {
    if std::env::var_os(OWN_PROCESS).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.unwrap().block_on(follow_bomb());
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "source::tests::server_packs::a_bomb_of_a_server_is_followed_in_little_memory";
    let output = command.args(["--exact", name]).env(OWN_PROCESS, "1").output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && report.contains("1 passed"), "{report}");
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
    source.store.maintain_now(&lock).await;
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
    fixture.server.set(ServerManner::Packed(file));
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Git { .. }), "{error:?}");
    assert!(error.to_string().contains("unresolved deltas"), "{error}");
    fixture.server.set(ServerManner::git());
    assert_eq!(source.observe().await.unwrap().revision, second);
}
