//! Repositories behind a network, and what a bad network or server does to them.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::fixture::{TestRepository, git, marks, noise, paths};
use super::server::{ScriptedGitServer, ServerBehaviour};
use crate::object::{ErrorClass, Revision};
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError, SourceSettings, TransportPolicy};

/// A repository, the server that serves it, and a state directory.
pub(super) struct RemoteFixture {
    pub(super) repo: TestRepository,
    pub(super) server: ScriptedGitServer,
    pub(super) state: TempDir,
    _folder: TempDir,
}

impl RemoteFixture {
    /// Serves a repository with these files.
    pub(super) fn new(files: &[(&str, &str)]) -> (Self, Revision) {
        let (repo, revision) = TestRepository::with(files);
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(repo.path(), folder.path().join("repo")).unwrap();
        let server = ScriptedGitServer::start(folder.path(), ServerBehaviour::git());
        let state = tempfile::tempdir().unwrap();
        (Self { repo, server, state, _folder: folder }, revision)
    }

    pub(super) fn open(&self) -> Source {
        self.open_with(|_, _| {})
    }

    pub(super) fn open_with(&self, change: impl Fn(&mut GitLocation, &mut SourceSettings)) -> Source {
        let mut location = GitLocation::new(self.server.url("git"));
        let mut settings = SourceSettings { transports: TransportPolicy::Any, ..SourceSettings::default() };
        change(&mut location, &mut settings);
        Source::open_with("test", &ResolvedLocation::Git(location), self.state.path(), settings).unwrap()
    }
}

fn set(revisions: &[&Revision]) -> BTreeSet<Revision> {
    revisions.iter().map(|revision| (*revision).clone()).collect()
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn follows_commits_and_force_pushes() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1"), ("b/c.yaml", "2")]);
    let mut source = fixture.open();
    let seen = assert_send(source.observe()).await.unwrap();
    assert_eq!((&seen.revision, seen.changed), (&first, true));
    assert_eq!(paths(&source.snapshot(&first).unwrap()), ["a.yaml", "b/c.yaml"]);
    assert_eq!(source.commit(&first).unwrap().unwrap().author, "A Person");
    assert!(!source.observe().await.unwrap().changed);

    let second = fixture.repo.commit(&[("a.yaml", "11")]);
    assert_eq!(source.observe().await.unwrap().revision, second);
    assert_eq!(marks(&source.changes(&first, &second).unwrap()), ["~a.yaml"]);

    fixture.repo.git(&["reset", "--quiet", "--hard", first.as_str()]);
    let third = fixture.repo.commit(&[("d.yaml", "4")]);
    let seen = source.observe().await.unwrap();
    assert_eq!((&seen.revision, seen.changed), (&third, true));
    assert_eq!(marks(&source.changes(&second, &third).unwrap()), ["~a.yaml", "+d.yaml"]);

    fixture.repo.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    fixture.repo.git(&["commit", "--quiet", "--message=unrelated history"]);
    fixture.repo.git(&["branch", "--force", "main", "fresh"]);
    fixture.repo.git(&["checkout", "--quiet", "main"]);
    assert_eq!(source.observe().await.unwrap().revision, fixture.repo.head());
}

#[tokio::test]
async fn a_second_process_goes_on_where_the_first_ended() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.open().observe().await.unwrap();
    fixture.server.ended();
    fixture.server.set(ServerBehaviour::Silent);
    let mut source = fixture.open_with(|_, settings| settings.answer = Duration::from_millis(100));
    assert_eq!(source.current_revision(), Some(&first));
    assert_eq!(source.snapshot(&first).unwrap().files.len(), 1);
    assert!(source.observe().await.is_err());
    fixture.server.set(ServerBehaviour::git());
    let mut source = fixture.open();
    assert!(source.observe().await.unwrap().changed, "the first look of a process is always news");
    let other = fixture.open_with(|location, _| location.reference = Some("other".to_owned()));
    assert_eq!(other.current_revision(), None, "not mistaken for another branch's");
}

#[tokio::test]
async fn references_are_branches_tags_and_whole_commits() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.repo.git(&["tag", "--annotate", "--message=one", "v1"]);
    fixture.repo.git(&["branch", "evil/refs/heads/old"]);
    let second = fixture.repo.commit(&[("a.yaml", "2")]);
    fixture.repo.git(&["branch", "old"]);
    let check = async |reference: Option<&str>, expected: Result<&Revision, &str>| {
        let mut source = fixture.open_with(|location, _| location.reference = reference.map(str::to_owned));
        match (source.observe().await, expected) {
            (Ok(seen), Ok(expected)) => assert_eq!(seen.revision, *expected, "{reference:?}"),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (got, expected) => panic!("{reference:?}: {got:?}, not {expected:?}"),
        }
    };
    check(None, Ok(&second)).await;
    check(Some("HEAD"), Ok(&second)).await;
    check(Some("main"), Ok(&second)).await;
    check(Some("refs/heads/main"), Ok(&second)).await;
    check(Some("v1"), Ok(&first)).await;
    check(Some("old"), Ok(&second)).await;
    check(Some(first.as_str()), Ok(&first)).await;
    check(Some("nothing"), Err("no branch, tag or commit nothing")).await;
    check(Some(&first.as_str()[..10]), Err("no branch, tag or commit")).await;
    check(Some(&"f".repeat(40)), Err("no branch, tag or commit")).await;
    let location =
        GitLocation { reference: Some("a..b".to_owned()), ..GitLocation::new("https://example.com/x") };
    let error = Source::open("test", &ResolvedLocation::Git(location), fixture.state.path()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Config);
}

#[tokio::test]
async fn a_short_name_keeps_the_meaning_by_which_it_was_followed() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let named =
        |name: &'static str| fixture.open_with(move |location, _| location.reference = Some(name.to_owned()));
    fixture.repo.git(&["tag", "v1"]);
    fixture.repo.git(&["branch", "stable"]);
    for name in ["v1", "stable"] {
        assert_eq!(named(name).observe().await.unwrap().revision, first, "{name}");
    }
    let second = fixture.repo.commit(&[("a.yaml", "2")]);
    fixture.repo.git(&["branch", "v1", second.as_str()]);
    assert_eq!(named("v1").observe().await.unwrap().revision, first);
    fixture.repo.git(&["tag", "stable", second.as_str()]);
    fixture.repo.git(&["branch", "--delete", "--force", "stable"]);
    let mut stable = named("stable");
    let error = stable.observe().await.unwrap_err();
    assert!(error.to_string().contains("stable is gone"), "{error}");
    assert_eq!(stable.current_revision(), Some(&first));
}

#[tokio::test]
async fn nothing_but_a_proof_is_called_a_deletion() {
    let (fixture, _) = RemoteFixture::new(&[("deploy/a.yaml", "1")]);
    fixture.repo.git(&["branch", "feature"]);
    let mut source = fixture.open_with(|location, _| {
        location.reference = Some("feature".to_owned());
        location.path = Some("deploy".to_owned());
    });
    let first = source.observe().await.unwrap().revision;
    let refuses = async |source: &mut Source, expected: &str| {
        let error = source.observe().await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(source.current_revision(), Some(&first));
        assert_eq!(paths(&source.snapshot(&first).unwrap()), ["a.yaml"]);
    };
    fixture.repo.git(&["branch", "--delete", "feature"]);
    refuses(&mut source, "feature is gone").await;
    // HEAD leads nowhere, as after a first push of another branch than it names.
    fixture.repo.git(&["branch", "--move", "main", "trunk"]);
    fixture.repo.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    let mut head = fixture.open_with(|_, _| {});
    let error = head.observe().await.unwrap_err().to_string();
    assert!(error.contains("names a branch that is not there (it has trunk: name one by"), "{error}");
    fixture.repo.git(&["branch", "--move", "trunk", "main"]);
    // No HEAD either: an empty repository, or a server that lost its mind.
    fixture.repo.git(&["update-ref", "-d", "refs/heads/main"]);
    refuses(&mut source, "names no branch at all").await;
    fixture.repo.git(&["update-ref", "refs/heads/main", first.as_str()]);
    fixture.repo.git(&["branch", "feature", first.as_str()]);
    assert!(!source.observe().await.unwrap().changed);

    let empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    git(fixture.repo.path(), &["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let empty = fixture.repo.git(&["commit-tree", "-m", "empty", empty]);
    fixture.repo.git(&["update-ref", "refs/heads/feature", &empty]);
    refuses(&mut source, "no folder deploy in revision").await;
    assert_eq!(
        fixture
            .open_with(|location, _| {
                location.reference = Some("feature".to_owned());
                location.path = Some("deploy".to_owned());
            })
            .current_revision(),
        Some(&first),
        "a restart does not make it the revision in force"
    );
    fixture.repo.git(&["update-ref", "refs/heads/feature", first.as_str()]);
    assert!(!source.observe().await.unwrap().changed);
}

/// Returns a source that works, until its server changes its manners; then the error, and how long
/// it took.
async fn after(manner: ServerBehaviour, answer: Duration) -> (SourceError, Duration, RemoteFixture) {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open_with(|_, settings| settings.answer = Duration::from_secs(20));
    source.observe().await.unwrap();
    let mut source = fixture.open_with(|_, settings| settings.answer = answer);
    fixture.server.ended();
    fixture.server.set(manner);
    let start = Instant::now();
    let error = source.observe().await.unwrap_err();
    let took = start.elapsed();
    assert_eq!(source.current_revision(), Some(&first));
    assert_eq!(paths(&source.snapshot(&first).unwrap()), ["a.yaml"]);
    assert_eq!(source.last_success(), None);
    (error, took, fixture)
}

#[tokio::test]
async fn a_silent_or_slow_server_meets_a_deadline_and_all_processes_end() {
    let answer = Duration::from_millis(700);
    let drip = ServerBehaviour::Drip { text: "0".repeat(100), fast: 1 };
    for manner in [ServerBehaviour::Silent, drip, ServerBehaviour::Git { most: 20 }] {
        let (error, took, fixture) = after(manner, answer).await;
        assert!(matches!(error, SourceError::Silent { .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::Transient);
        assert!((answer..answer + Duration::from_secs(15)).contains(&took), "{took:?}");
        fixture.server.wait_idle();
        fixture.server.set(ServerBehaviour::git());
        assert!(fixture.open().observe().await.is_ok(), "recovers by itself");
    }
}

/// Looks at a hostile server for the first time.
async fn stranger(scheme: &str, manner: ServerBehaviour, answer: Duration) -> SourceError {
    let state = tempfile::tempdir().unwrap();
    let server = ScriptedGitServer::start(state.path(), manner);
    let location = ResolvedLocation::Git(GitLocation::new(server.url(scheme)));
    let settings = SourceSettings { transports: TransportPolicy::Any, answer, ..SourceSettings::default() };
    let mut source = Source::open_with("test", &location, state.path(), settings).unwrap();
    let error = source.observe().await.unwrap_err();
    if matches!(error, SourceError::Silent { .. }) {
        server.wait_idle();
    }
    error
}

#[tokio::test]
async fn every_kind_of_bad_answer_has_its_name() {
    let long = Duration::from_secs(20);
    let short = Duration::from_millis(700);
    let html = "<html><body>Please log in</body></html>";
    let check =
        async |scheme: &str, manner: ServerBehaviour, answer: Duration, expected: &str, class: ErrorClass| {
            let error = stranger(scheme, manner.clone(), answer).await;
            assert!(error.to_string().contains(expected), "{scheme} {manner:?}: {error}");
            assert_eq!(error.class(), class, "{error}");
        };
    // In the TLS handshake git's own limits on slow transfers do not fire.
    check("https", ServerBehaviour::Silent, short, "no answer within 0.7 s", ErrorClass::Transient).await;
    check("http", ServerBehaviour::Silent, short, "no answer within 0.7 s", ErrorClass::Transient).await;
    let drip =
        ServerBehaviour::Drip { text: "HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(99), fast: 19 };
    check("http", drip, short, "no answer within 0.7 s", ErrorClass::Transient).await;
    check("https", ServerBehaviour::Say("not TLS".to_owned()), long, "not reachable", ErrorClass::Transient)
        .await;
    let ok = |body: &str| ServerBehaviour::http("200 OK", "text/html", body);
    check("http", ok(""), long, "names no branch at all", ErrorClass::Transient).await;
    check("http", ok(html), long, "names no branch at all", ErrorClass::Transient).await;
    check(
        "http",
        ok(&format!("<!DOCTYPE html>\n{html}\n")),
        long,
        "no git repository answers",
        ErrorClass::Source,
    )
    .await;
    check(
        "http",
        ServerBehaviour::http("404 Not Found", "text/html", html),
        long,
        "no git repository",
        ErrorClass::Source,
    )
    .await;
    check(
        "http",
        ServerBehaviour::http("403 Forbidden", "text/html", html),
        long,
        "access denied",
        ErrorClass::Forbidden,
    )
    .await;
    let denied = "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"";
    check(
        "http",
        ServerBehaviour::http(denied, "text/html", html),
        long,
        "access denied",
        ErrorClass::Forbidden,
    )
    .await;
    let busy = ServerBehaviour::http("429 Too Many Requests", "text/html", html);
    check("http", busy, long, "not reachable", ErrorClass::Transient).await;
    let broken = ServerBehaviour::http("503 Service Unavailable", "text/html", html);
    check("http", broken, long, "not reachable", ErrorClass::Transient).await;
    check("git", ServerBehaviour::Say(String::new()), long, "not reachable", ErrorClass::Transient).await;
    check("git", ServerBehaviour::Say("garbage".to_owned()), long, "not reachable", ErrorClass::Transient)
        .await;
    check("git", ServerBehaviour::git(), long, "no git repository answers", ErrorClass::Source).await;
}

#[tokio::test]
async fn a_remote_with_other_ids_is_named() {
    let state = tempfile::tempdir().unwrap();
    git(state.path(), &["init", "--quiet", "--object-format=sha256", "repo"]);
    let repo = state.path().join("repo");
    git(&repo, &["commit", "--quiet", "--allow-empty", "--message=x"]);
    let server = ScriptedGitServer::start(state.path(), ServerBehaviour::git());
    let location = ResolvedLocation::Git(GitLocation::new(server.url("git")));
    let settings = SourceSettings { transports: TransportPolicy::Any, ..SourceSettings::default() };
    let mut source = Source::open_with("test", &location, &state.path().join("state"), settings).unwrap();
    let error = source.observe().await.unwrap_err();
    assert!(error.to_string().contains("a repository with SHA-256 ids is not supported"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_down_is_unreachable() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open();
    source.observe().await.unwrap();
    let RemoteFixture { server, state, repo: _repo, _folder } = fixture;
    drop(server);
    // The port is closed when the listening thread has ended.
    let start = Instant::now();
    let error = loop {
        match source.observe().await {
            Err(error @ SourceError::Unreachable { .. }) => break error,
            other => assert!(start.elapsed() < Duration::from_mins(1), "{other:?}"),
        }
    };
    assert!(error.to_string().contains("not reachable"), "{error}");
    assert_eq!(source.current_revision(), Some(&first));
    let wait = |source: &Source| source.next_poll(0.5);
    let (first_wait, before) = (Duration::from_mins(1), wait(&source));
    assert!(before >= first_wait, "{before:?}");
    for _ in 0..5 {
        let _ = source.observe().await;
    }
    assert_eq!(wait(&source), Duration::from_mins(5), "looked at less and less often");
    drop(state);
}

#[tokio::test]
async fn credentials_appear_nowhere() {
    // Nobody knows this line, so that each request is asked for a login.
    let locked = ServerBehaviour::Locked("not to be had".to_owned());
    let server = ScriptedGitServer::start(std::path::Path::new("/nonexistent"), locked);
    let url = server.url("http").replace("://", "://user:hunter2@");
    let location = ResolvedLocation::Git(GitLocation::new(url));
    let state = tempfile::tempdir().unwrap();
    let settings = SourceSettings { transports: TransportPolicy::Any, ..SourceSettings::default() };
    let mut source = Source::open_with("test", &location, state.path(), settings).unwrap();
    let error = source.observe().await.unwrap_err();
    assert!(!server.wait_end().contains("Authorization"), "it has not asked yet");
    assert!(server.wait_end().contains("Authorization: Basic dXNlcjpodW50ZXIy"), "the server gets them");
    for text in [
        error.to_string(),
        format!("{error:?}"),
        format!("{source:?}"),
        format!("{location:?}"),
        location.to_string(),
    ] {
        assert!(!text.contains("hunter2") && !text.contains("dXNlcjpodW50ZXIy"), "{text}");
    }
}

#[tokio::test]
async fn transports_that_trust_anybody_are_refused() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    for scheme in ["git", "http"] {
        let location = ResolvedLocation::Git(GitLocation::new(fixture.server.url(scheme)));
        let error = Source::open("test", &location, fixture.state.path()).unwrap_err();
        assert!(error.to_string().contains("use https:// or ssh://"), "{error}");
    }
}

#[tokio::test]
async fn what_a_killed_fetch_leaves_does_not_block_the_next() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.open().observe().await.unwrap();
    let mut source = fixture.open();
    let second = fixture.repo.commit(&[("noise.txt", &noise()), ("a.yaml", "2")]);
    // Enough for the references and for half of the pack.
    fixture.server.set(ServerBehaviour::Git { most: 300_000 });
    let store = fixture.state.path().join("revisions.git");
    let incoming = store.join("incoming.git");
    let litter = |folder: &str| -> Vec<String> {
        let names = fs::read_dir(incoming.join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| ["tmp_", ".lock", ".keep"].iter().any(|sign| name.contains(sign))).collect()
    };
    let half = async {
        let start = Instant::now();
        while litter("objects/pack").is_empty() {
            assert!(start.elapsed() < Duration::from_mins(1), "no pack arrives");
            tokio::task::yield_now().await;
        }
    };
    // Nobody waits for it any more, and it is killed.
    tokio::select! {
        seen = source.observe() => panic!("{seen:?}"),
        () = half => {}
    }
    fixture.server.wait_idle();
    assert!(!litter("objects/pack").is_empty(), "half a pack is left");
    // Rests of other moments.
    let rests = ["shallow.lock", "packed-refs.lock", "refs/rhumb/x.lock", "objects/pack/pack-1234.keep"];
    for (repository, rest) in [&store, &incoming].into_iter().flat_map(|one| rests.map(|rest| (one, rest))) {
        fs::write(repository.join(rest), "").unwrap();
    }
    fixture.server.set(ServerBehaviour::git());
    let mut source = fixture.open();
    assert_eq!(source.observe().await.unwrap().revision, second);
    assert_eq!(litter("objects/pack"), Vec::<String>::new());
    assert_eq!(litter(""), Vec::<String>::new());
    assert_eq!(litter("refs/rhumb"), Vec::<String>::new());
    assert!(rests.iter().all(|rest| !store.join(rest).exists()));
}

#[tokio::test]
async fn a_fetch_that_nobody_waits_for_is_killed() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    fixture.server.set(ServerBehaviour::Silent);
    let mut source = fixture.open();
    let busy = async {
        while !fixture.server.is_busy() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        seen = source.observe() => panic!("{seen:?}"),
        () = busy => {}
    }
    fixture.server.wait_idle();
}

#[tokio::test]
async fn pins_outlast_what_the_remote_forgets() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    let mut source = fixture.open();
    source.observe().await.unwrap();
    assert_eq!(source.pin(&set(&[&first])).await.unwrap(), []);
    fixture.repo.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    let second = fixture.repo.commit(&[("a.yaml", "2")]);
    fixture.repo.git(&["branch", "--force", "main", "fresh"]);
    fixture.repo.git(&["checkout", "--quiet", "main"]);
    fixture.repo.git(&["branch", "--delete", "fresh"]);
    assert_eq!(source.observe().await.unwrap().revision, second);
    let third = fixture.repo.commit(&[("a.yaml", "3")]);
    assert_eq!(source.observe().await.unwrap().revision, third);
    assert_eq!(source.pin(&set(&[&first, &second])).await.unwrap(), []);
    assert_eq!(source.pin(&set(&[&first])).await.unwrap(), []);
    let lock = source.store.lock().await.unwrap();
    source.store.try_maintain_now(&lock).await;
    drop(lock);
    assert_eq!(source.snapshot(&first).unwrap().files.len(), 1);
    assert_eq!(source.snapshot(&third).unwrap().files.len(), 1, "the newest needs no pin");
    assert!(matches!(source.snapshot(&second), Err(SourceError::Unknown { .. })));
    // The remote still has it, so it can be had again; one that nobody has is lost.
    let nobody = Revision::new(&"f".repeat(40));
    assert_eq!(source.pin(&set(&[&second, &nobody])).await.unwrap(), [nobody]);
    assert_eq!(source.snapshot(&second).unwrap().files.len(), 1);
}

#[tokio::test]
async fn an_older_revision_is_taken_from_the_history_of_what_is_followed_and_from_nowhere_else() {
    let (fixture, first) = RemoteFixture::new(&[("a.yaml", "1")]);
    // The server gives every commit by its id, those of forks too.
    fixture.repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    fixture.repo.git(&["checkout", "--quiet", "-b", "fork"]);
    let stranger = fixture.repo.commit(&[("a.yaml", "evil")]);
    fixture.repo.git(&["update-ref", "refs/pull/1/head", stranger.as_str()]);
    fixture.repo.git(&["checkout", "--quiet", "main"]);
    fixture.repo.git(&["branch", "-D", "fork"]);
    let mut newest = first.clone();
    for n in 2..=70 {
        newest = fixture.repo.commit(&[("a.yaml", &n.to_string())]);
    }
    let mut source = fixture.open();
    assert_eq!(source.observe().await.unwrap().revision, newest);
    assert!(matches!(source.snapshot(&first), Err(SourceError::Unknown { .. })), "only the newest is here");
    source.fetch_revision(&first).await.unwrap();
    assert_eq!(source.snapshot(&first).unwrap().files.len(), 1);
    source.fetch_revision(&stranger).await.unwrap();
    assert!(matches!(source.snapshot(&stranger), Err(SourceError::Unknown { .. })));
    assert_eq!(source.pin(&set(&[&first, &stranger])).await.unwrap(), [stranger]);
    // The followed reference goes on.
    let next = fixture.repo.commit(&[("a.yaml", "71")]);
    assert_eq!(source.observe().await.unwrap().revision, next);
}

#[tokio::test]
async fn all_fetches_for_an_older_revision_together_have_one_deadline() {
    let (fixture, _) = RemoteFixture::new(&[("a.yaml", "1")]);
    let nobody = Revision::new(&"f".repeat(40));
    let mut source = fixture.open_with(|_, settings| settings.fetch = Duration::from_secs(6));
    source.observe().await.unwrap();
    // The end of the server's own history is the end of nothing: it is asked for more, and for all.
    fixture.repo.commit(&[("a.yaml", "2")]);
    fs::write(fixture.repo.path().join(".git/shallow"), format!("{}\n", fixture.repo.head())).unwrap();
    source.observe().await.unwrap();
    fixture.server.set(ServerBehaviour::Late(Duration::from_millis(1_800)));
    let start = Instant::now();
    let given_up = source.fetch_revision(&nobody).await;
    assert!(matches!(given_up, Err(SourceError::Silent { .. })), "{given_up:?} after {:?}", start.elapsed());
}
