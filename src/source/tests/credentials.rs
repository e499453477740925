//! What git servers ask for comes from files, is read anew for each look, and is seen nowhere.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bed::Repo;
use super::outage::Witness;
use super::server::{Manner, Server};
use crate::source::{Credentials, Error, GitLocation, Location, Settings, Source, Transports};

/// A token, and what the server calls it.
fn locked(token: &str) -> Manner {
    Manner::Locked(format!("Authorization: Basic {}", STANDARD.encode(format!("me:{token}"))))
}

fn write(folder: &Path, name: &str, server: &Server, token: &str) {
    let address = server.url("http").replace("http://", &format!("http://me:{token}@"));
    fs::write(folder.join(name), format!("{}\n", address.trim_end_matches("/repo"))).unwrap();
}

#[tokio::test]
async fn tokens_are_read_anew_for_each_look_and_are_seen_nowhere() {
    let (repo, first) = Repo::with(&[("a.yaml", "1")]);
    let parent = repo.path().parent().unwrap();
    let name = repo.path().file_name().unwrap().to_str().unwrap();
    let server = Server::start(parent, locked("hunter2"));
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let location = Location::Git(GitLocation::new(server.url("http").replace("repo", name)));
    let credentials = Credentials::within(folder.path(), "shop");
    let settings = Settings { transports: Transports::Any, credentials, ..Settings::default() };
    let mut source = Source::open_with("shop", &location, state.path(), settings).unwrap();
    let witness = Witness::new(vec!["hunter2".to_owned(), "correct-horse".to_owned()]);
    let denied = source.observe().await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied}");
    write(folder.path(), "git-credentials", &server, "hunter2");
    assert_eq!(source.observe().await.unwrap().revision, first);
    // Another token is asked for, which is not there yet.
    server.set(locked("correct-horse"));
    let denied = source.observe().await.unwrap_err();
    assert!(!format!("{denied} {denied:?} {source:?}").contains("hunter2"), "{denied:?}");
    // What was refused stays in the file: it may be the server that is wrong.
    let kept = fs::read_to_string(folder.path().join("git-credentials")).unwrap();
    assert!(kept.contains("hunter2"), "{kept}");
    // The source's own file stands before that of all.
    write(folder.path(), "git-credentials.shop", &server, "correct-horse");
    let second = repo.commit(&[("a.yaml", "2")]);
    assert_eq!(source.observe().await.unwrap().revision, second);
    let seen = witness.all_gone();
    assert!(seen.is_empty(), "{seen:?}");
}
