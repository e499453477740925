//! Credentials for git servers come from files, are read anew for each look, and are seen nowhere.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fixture::TestRepository;
use super::outage::ProcessWitness;
use super::server::{ScriptedGitServer, ServerBehaviour};
use crate::source::{
    Credentials, GitLocation, ResolvedLocation, Source, SourceError, SourceSettings, TransportPolicy,
};

/// Returns a token, and what the server calls it.
fn locked(token: &str) -> ServerBehaviour {
    ServerBehaviour::Locked(format!("Authorization: Basic {}", STANDARD.encode(format!("me:{token}"))))
}

fn write(folder: &Path, name: &str, server: &ScriptedGitServer, token: &str) {
    let address = server.url("http").replace("http://", &format!("http://me:{token}@"));
    fs::write(folder.join(name), format!("{}\n", address.trim_end_matches("/repo"))).unwrap();
}

#[tokio::test]
async fn tokens_are_read_anew_for_each_observation_and_are_seen_nowhere() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let parent = repo.path().parent().unwrap();
    let name = repo.path().file_name().unwrap().to_str().unwrap();
    let server = ScriptedGitServer::start(parent, locked("hunter2"));
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let location = ResolvedLocation::Git(GitLocation::new(server.url("http").replace("repo", name)));
    let credentials = Credentials::of_folder(folder.path(), "shop");
    let settings =
        SourceSettings { transports: TransportPolicy::Any, credentials, ..SourceSettings::default() };
    let mut source = Source::open_with("shop", &location, state.path(), settings).unwrap();
    let witness = ProcessWitness::new(vec!["hunter2".to_owned(), "correct-horse".to_owned()]);
    let denied = source.observe().await.unwrap_err();
    assert!(matches!(denied, SourceError::Denied { .. }), "{denied}");
    write(folder.path(), "git-credentials", &server, "hunter2");
    assert_eq!(source.observe().await.unwrap().revision, first);
    // Another token is asked for, which is not there yet.
    server.set(locked("correct-horse"));
    let denied = source.observe().await.unwrap_err();
    assert!(!format!("{denied} {denied:?} {source:?}").contains("hunter2"), "{denied:?}");
    // A refused token stays in the file: the server may be wrong.
    let kept = fs::read_to_string(folder.path().join("git-credentials")).unwrap();
    assert!(kept.contains("hunter2"), "{kept}");
    // The source's own file takes precedence over that of all.
    write(folder.path(), "git-credentials.shop", &server, "correct-horse");
    let second = repo.commit(&[("a.yaml", "2")]);
    assert_eq!(source.observe().await.unwrap().revision, second);
    let seen = witness.all_gone();
    assert!(seen.is_empty(), "{seen:?}");
}

/// Returns the result for a source that may use the credentials of `team` below `/team`.
async fn bound(server: &ScriptedGitServer, folder: &Path, url: &str) -> Result<(), SourceError> {
    let prefix = server.url("http").replace("/repo", "/team").parse().unwrap();
    let credentials = Credentials::bound(folder, "team", prefix);
    let settings =
        SourceSettings { transports: TransportPolicy::Any, credentials, ..SourceSettings::default() };
    let state = tempfile::tempdir().unwrap();
    let location = ResolvedLocation::Git(GitLocation::new(url));
    let mut source = Source::open_with("shop", &location, state.path(), settings)?;
    source.observe().await.map(drop)
}

/// Returns how often somebody has shown something to a server.
fn shown(server: &ScriptedGitServer) -> usize {
    server.wait_idle();
    server.ended().iter().filter(|head| head.to_ascii_lowercase().contains("authorization")).count()
}

#[tokio::test]
async fn what_is_bound_to_an_address_is_shown_there_and_below_it_alone() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for team in ["team", "Team", "team-b", "other"] {
        fs::create_dir(root.path().join(team)).unwrap();
        std::os::unix::fs::symlink(repo.path(), root.path().join(team).join("repo")).unwrap();
    }
    let server = ScriptedGitServer::start(root.path(), locked("hunter2"));
    // The credentials of the source and those of all sources are not for it, and one line would do
    // for the whole server.
    for name in ["git-credentials.team", "git-credentials.shop", "git-credentials"] {
        write(folder.path(), name, &server, "hunter2");
    }
    let address = server.url("http");
    let at = |path: &str| address.replace("repo", path);
    bound(&server, folder.path(), &at("team/repo")).await.unwrap();
    assert!(shown(&server) > 0);
    for path in [
        "other/repo",
        "team-b/repo",
        "Team/repo",
        "team/../other/repo",
        "team/%2e%2e/other/repo",
        "team/..%2fother/repo",
        "./team/repo",
        "/team/repo",
    ] {
        assert!(bound(&server, folder.path(), &at(path)).await.is_err(), "{path}");
        assert_eq!(shown(&server), 0, "{path}");
    }
    // The same server by another name, and with somebody else's login.
    for url in
        [at("team/repo").replace("127.0.0.1", "localhost"), at("team/repo").replace("//", "//me:wrong@")]
    {
        assert!(bound(&server, folder.path(), &url).await.is_err(), "{url}");
        assert!(!server.ended().concat().contains(&STANDARD.encode("me:hunter2")), "{url}");
    }
    // A client that is redirected takes it nowhere.
    let other = ScriptedGitServer::start(root.path(), locked("hunter2"));
    let target = other.url("http").replace("repo", "team/repo/info/refs?service=git-upload-pack");
    server.set(ServerBehaviour::Say(format!(
        "HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
    )));
    assert!(matches!(bound(&server, folder.path(), &at("team/repo")).await, Err(SourceError::Moved { .. })));
    assert_eq!((other.is_busy(), other.ended()), (false, Vec::new()));
}
