//! A source that worked, and then its remote does every kind of wrong.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::fixture::{noise, paths};
use super::remote::RemoteFixture;
use super::server::{ScriptedGitServer, ServerBehaviour};
use crate::object::Revision;
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError, SourceSettings, TransportPolicy};

const OUTAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the command lines of the processes that name one of these texts in theirs or in their
/// environment.
fn processes(marks: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let number = entry.file_name().to_string_lossy().parse::<u32>();
        if number.is_err() || number == Ok(std::process::id()) {
            continue;
        }
        let text = |name: &str| {
            let bytes = fs::read(entry.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let line = text("cmdline");
        let environment = text("environ");
        if marks.iter().any(|mark| line.contains(mark) || environment.contains(mark)) {
            found.push(line);
        }
    }
    found
}

/// A record of the processes that name one of these texts, until it is dropped.
pub(super) struct ProcessWitness {
    marks: Vec<String>,
    stop: Arc<AtomicBool>,
    seen: std::thread::JoinHandle<BTreeSet<String>>,
}

impl ProcessWitness {
    pub(super) fn new(marks: Vec<String>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, text) = (stop.clone(), marks.clone());
        let seen = std::thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !ended.load(Ordering::SeqCst) {
                seen.extend(processes(&text));
            }
            seen
        });
        Self { marks, stop, seen }
    }

    /// Waits until all are gone; gives those that there were.
    pub(super) fn all_gone(self) -> BTreeSet<String> {
        let start = Instant::now();
        loop {
            let left = processes(&self.marks);
            if left.is_empty() {
                break;
            }
            assert!(start.elapsed() < OUTAGE_TIMEOUT, "left behind: {left:?}");
            std::thread::yield_now();
        }
        self.stop.store(true, Ordering::SeqCst);
        self.seen.join().unwrap()
    }
}

#[tokio::test]
async fn no_process_outlives_the_deadline() {
    let check = async |scheme: &str, expected: &[&str]| {
        let state = tempfile::tempdir().unwrap();
        let server = ScriptedGitServer::start(state.path(), ServerBehaviour::Silent);
        let location = ResolvedLocation::Git(GitLocation::new(server.url(scheme)));
        // Long enough for the witness to see what runs, also on a busy machine.
        let answer = Duration::from_secs(3);
        let settings =
            SourceSettings { transports: TransportPolicy::Any, answer, ..SourceSettings::default() };
        let mut source = Source::open_with("test", &location, state.path(), settings).unwrap();
        let folder = state.path().to_str().unwrap().to_owned();
        let (url, option) = (format!(":{}/", server.mark()), format!(" -p {} ", server.mark()));
        let (witness, start) = (ProcessWitness::new(vec![folder, url, option]), Instant::now());
        let error = source.observe().await.unwrap_err();
        assert!(matches!(error, SourceError::Silent { .. }), "{scheme}: {error}");
        assert!(start.elapsed() < OUTAGE_TIMEOUT, "{scheme}");
        server.wait_idle();
        let seen = witness.all_gone();
        for name in expected {
            assert!(seen.iter().any(|line| line.contains(name)), "{scheme}: no {name} in {seen:?}");
        }
    };
    check("git", &["git --git-dir="]).await;
    check("http", &["git --git-dir=", "git-remote-http "]).await;
    // The client waits for the server's part of the TLS handshake.
    check("https", &["git --git-dir=", "git-remote-https "]).await;
    match std::process::Command::new("ssh").arg("-V").output() {
        Ok(_) => check("ssh", &["git --git-dir=", "ssh -F /dev/null"]).await,
        // Past the harness, which shows nothing of a test that passes.
        Err(error) => drop(writeln!(std::io::stderr(), "SKIPPED: there is no ssh: {error}")),
    }
}

#[tokio::test]
async fn no_process_outlives_a_fetch_that_stalls() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.open().observe().await.unwrap();
    let mut source = fixture.open_with(|_, settings| settings.fetch = Duration::from_secs(15));
    let second = fixture.repo.commit(&[("noise.txt", &noise()), ("a.yaml", "2")]);
    fixture.server.set(ServerBehaviour::Git { most: 300_000 });
    let witness = ProcessWitness::new(vec![fixture.state.path().to_str().unwrap().to_owned()]);
    let error = source.observe().await.unwrap_err();
    assert!(matches!(error, SourceError::Silent { .. }), "{error}");
    assert_eq!(source.current_revision(), Some(&first));
    let seen = witness.all_gone();
    assert!(seen.iter().any(|line| line.contains("index-pack")), "{seen:?}");
    fixture.server.set(ServerBehaviour::git());
    assert_eq!(source.observe().await.unwrap().revision, second, "recovers by itself");
}

/// Checks all that an observation may not change.
fn in_force(source: &Source, revision: &Revision) {
    assert_eq!(source.current_revision(), Some(revision));
    let snapshot = source.snapshot(revision).unwrap();
    assert_eq!(paths(&snapshot), ["a.yaml"]);
    assert_eq!(source.read(snapshot.files[0].blob).unwrap(), b"1");
}

#[tokio::test]
async fn over_http_the_last_revision_stays_in_force_with_its_age_and_recovers() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.server.set(ServerBehaviour::Http);
    let mut source = fixture.open_with(|location, settings| {
        location.url = fixture.server.url("http").replace("://", "://user:hunter2@");
        settings.answer = Duration::from_secs(4);
    });
    assert_eq!(source.observe().await.unwrap().revision, first);
    let html = "<!DOCTYPE html>\n<html>\n<body>Please log in</body>\n</html>\n";
    let http = |status: &str, body: &str| ServerBehaviour::http(status, "text/html", body);
    let advertised = "001e# service=git-upload-pack\n0000";
    let smart =
        |body: &str| ServerBehaviour::http("200 OK", "application/x-git-upload-pack-advertisement", body);
    let drip = "HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(99);
    for manner in [
        ServerBehaviour::Silent,
        ServerBehaviour::Drip { text: drip.clone(), fast: 1 },
        ServerBehaviour::Drip { text: drip, fast: 19 },
        http("200 OK", ""),
        http("200 OK", html),
        http("200 OK", "<html>"),
        http("302 Found\r\nLocation: /login", html),
        http("401 Unauthorized", ""),
        http("404 Not Found", html),
        http("500 Internal Server Error", ""),
        smart(""),
        smart(advertised),
        smart(&format!("{advertised}0000")),
        smart("001e# service=git-upload-pack\n00"),
        smart("zzzz"),
        ServerBehaviour::Say(String::new()),
        ServerBehaviour::Say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n00".to_owned()),
    ] {
        let before = source.last_success();
        fixture.server.set(manner.clone());
        let error = source.observe().await.expect_err(&format!("{manner:?}"));
        assert!(
            !matches!(error, SourceError::Gone { .. } | SourceError::Empty { .. }),
            "{manner:?}: {error}"
        );
        let text = format!("{error} {error:?} {source:?}");
        assert!(!text.contains("hunter2") && !text.contains("dXNlcjpodW50ZXIy"), "{text}");
        in_force(&source, &first);
        assert!(before.is_some() && source.last_success() == before, "its age is known");
        fixture.server.set(ServerBehaviour::Http);
        assert!(!source.observe().await.unwrap().changed, "{manner:?}: recovers by itself");
        assert!(source.last_success() > before);
    }
    let second = fixture.repo.commit(&[("a.yaml", "2")]);
    assert_eq!(source.observe().await.unwrap().revision, second);
}

#[test]
fn a_query_of_an_address_is_refused_as_everybody_on_the_host_could_read_it() {
    for url in ["https://git.example.org/a?private_token=hunter2", "https://git.example.org/a#hunter2"] {
        let error = crate::source::classify(url).unwrap_err();
        assert_eq!(error.class(), crate::object::ErrorClass::Config);
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2") && text.contains("no `?` and no `#`"), "{text}");
    }
}

#[tokio::test]
async fn pins_do_not_wait_for_a_silent_remote_one_after_the_other() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let second = fixture.repo.commit(&[("a.yaml", "2")]);
    let mut source = fixture.open_with(|_, settings| settings.fetch = Duration::from_secs(6));
    source.observe().await.unwrap();
    fixture.server.wait_idle();
    fixture.server.set(ServerBehaviour::Silent);
    let strangers = (0..9).map(|n| Revision::new(&n.to_string().repeat(40)));
    let pins: BTreeSet<_> = strangers.chain([first.clone(), second.clone()]).collect();
    fixture.server.ended();
    assert!(matches!(source.pin(&pins).await, Err(SourceError::Silent { .. })));
    fixture.server.wait_idle();
    assert_eq!(fixture.server.ended().len(), 1, "asked once");
    assert!(source.observe().await.is_err());
    // When it answers again, a look brings what could not be had.
    fixture.server.set(ServerBehaviour::git());
    source.observe().await.unwrap();
    assert_eq!(source.snapshot(&first).unwrap().files.len(), 1);
}
