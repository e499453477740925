//! The power of a server over the `git` program: it can answer, within limits, and no more.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fixture::TestRepository;
use super::outage::ProcessWitness;
use super::remote::RemoteFixture;
use super::server::{ScriptedGitServer, ServerBehaviour};
use crate::object::ErrorClass;
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError, SourceSettings, TransportPolicy};

const MIB: u64 = 1 << 20;

fn open(url: String, state: &std::path::Path) -> Source {
    let settings = SourceSettings { transports: TransportPolicy::Any, ..SourceSettings::default() };
    Source::open_with("test", &ResolvedLocation::Git(GitLocation::new(url)), state, settings).unwrap()
}

/// Sends whoever asks to the same path of another server.
fn redirect(status: &str, other: &ScriptedGitServer) -> ServerBehaviour {
    let target = format!("{}/info/refs?service=git-upload-pack", other.url("http"));
    ServerBehaviour::Say(format!(
        "HTTP/1.1 {status}\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ))
}

#[tokio::test]
async fn a_redirect_is_reported_and_never_followed() {
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
        let other =
            ScriptedGitServer::start(folder.path(), ServerBehaviour::http("404 Not Found", "text/plain", ""));
        let server = ScriptedGitServer::start(folder.path(), redirect(status, &other));
        let url = server.url("http").replace("http://", "http://me:hunter2@");
        let error = open(url, state.path()).observe().await.unwrap_err();
        assert!(matches!(error, SourceError::Moved { .. }), "{status}: {error}");
        assert_eq!(error.class(), ErrorClass::Config);
        let text = error.to_string();
        assert!(text.contains(&other.url("http")) && !text.contains("hunter2"), "{text}");
        server.wait_idle();
        assert_eq!((other.is_busy(), other.ended()), (false, Vec::new()), "{status}: nobody asked the other");
        let asked = server.ended().concat();
        assert!(!asked.to_ascii_lowercase().contains("authorization"), "nor was it asked for: {asked}");
    }
}

#[tokio::test]
async fn the_login_of_a_url_is_in_no_argument_and_no_environment() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let name = repo.path().file_name().unwrap().to_str().unwrap();
    let encoded = STANDARD.encode("me:pass word$@");
    let line = format!("Authorization: Basic {encoded}");
    let server = ScriptedGitServer::start(repo.path().parent().unwrap(), ServerBehaviour::Locked(line));
    let state = tempfile::tempdir().unwrap();
    let url = server.url("http").replace("http://", "http://me:pass%20word$%40@").replace("repo", name);
    let mut source = open(url, state.path());
    let witness = ProcessWitness::new(["pass%20word", "pass word", &encoded].map(str::to_owned).to_vec());
    assert_eq!(source.observe().await.unwrap().revision, first);
    let seen = witness.all_gone();
    assert!(seen.is_empty(), "{seen:?}");
    for entry in walkdir::WalkDir::new(state.path()) {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let found = ["pass%20word", &encoded]
            .iter()
            .any(|text| bytes.windows(text.len()).any(|part| part == text.as_bytes()));
        assert!(!found, "{}", entry.path().display());
    }
}

#[tokio::test]
async fn a_login_goes_to_its_own_server_alone() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let locked = ServerBehaviour::Locked(format!("Authorization: Basic {}", STANDARD.encode("me:hunter2")));
    let own = ScriptedGitServer::start(repo.path().parent().unwrap(), locked.clone());
    let other = ScriptedGitServer::start(repo.path().parent().unwrap(), locked);
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let line = own.url("http").replace("http://", "http://me:hunter2@").replace("/repo", "\n");
    std::fs::write(folder.path().join("git-credentials"), line).unwrap();
    let credentials = crate::source::Credentials::of_folder(folder.path(), "test");
    let settings =
        SourceSettings { transports: TransportPolicy::Any, credentials, ..SourceSettings::default() };
    let location = ResolvedLocation::Git(GitLocation::new(other.url("http")));
    let mut source = Source::open_with("test", &location, state.path(), settings).unwrap();
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Denied { .. }), "{error}");
    other.wait_idle();
    let asked = other.ended();
    assert!(!asked.is_empty() && !asked.concat().contains("Authorization"), "{asked:?}");
}

#[tokio::test]
async fn references_without_an_end_are_not_gathered_for_ever() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.server.set(ServerBehaviour::Endless);
    let mut source = fixture.open_with(|_, settings| settings.memory = 64 * MIB);
    let start = Instant::now();
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Memory { .. }), "{error}");
    assert!(start.elapsed() < SourceSettings::default().answer, "it met the limit, not the deadline");
    fixture.server.set(ServerBehaviour::git());
    source.observe().await.unwrap();
}

#[tokio::test]
async fn large_files_that_are_alike_are_not_put_together_beyond_the_limit() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open_with(|_, settings| settings.memory = 48 * MIB);
    assert_eq!(source.observe().await.unwrap().revision, first);
    let lines: Vec<String> = (0..2 * MIB).map(|number| format!("{number:019}\n")).collect();
    let lines = lines.concat();
    fixture.repo.commit(&[("one.bin", &lines), ("two.bin", &format!("{lines}and one more\n"))]);
    fixture.repo.git(&["-c", "core.compression=1", "repack", "-adfq", "--window=2", "--depth=1"]);
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Memory { .. }), "{error}");
    assert_eq!(source.current_revision(), Some(&first), "what was in force still is");
}
