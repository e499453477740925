//! The socket: what is replaced, and what is not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{ServeError, bind};

const SOCKET: &str = "rhumb.sock";

#[tokio::test]
async fn a_socket_that_nobody_answers_on_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SOCKET);
    drop(bind(&path).await.unwrap());
    assert!(path.exists(), "what a killed process leaves");
    // Killed between the two steps.
    drop(std::os::unix::net::UnixListener::bind(dir.path().join("rhumb.sock.new")).unwrap());
    let listener = bind(&path).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let connected = tokio::net::UnixStream::connect(&path).await;
    assert!(connected.is_ok() && listener.accept().await.is_ok());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn nothing_else_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SOCKET);
    let _listener = bind(&path).await.unwrap();
    assert!(matches!(bind(&path).await, Err(ServeError::SocketInUse(_))));
    let file = dir.path().join("file");
    fs::write(&file, "kept").unwrap();
    assert!(matches!(bind(&file).await, Err(ServeError::NoSocket(_))));
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    let beside = dir.path().join("other.sock");
    let young = dir.path().join("other.sock.new");
    fs::write(&young, "kept").unwrap();
    assert!(matches!(bind(&beside).await, Err(ServeError::NoSocket(place)) if place == young));
    assert_eq!(fs::read_to_string(&young).unwrap(), "kept");
    assert!(matches!(bind(&dir.path().join("none/deeper/socket")).await, Err(ServeError::Io { .. })));
    let _own = bind(&dir.path().join("own/socket")).await.unwrap();
    let mode = fs::metadata(dir.path().join("own")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "a folder that is made is for its owner alone");
    let long = dir.path().join("a".repeat(200));
    assert!(matches!(bind(&long).await, Err(ServeError::Io { .. })));
}

#[tokio::test]
async fn whatever_path_a_socket_can_have_it_gets() {
    let dir = tempfile::Builder::new().prefix("s").rand_bytes(6).tempdir_in("/tmp").unwrap();
    let room = |length: usize| length - dir.path().as_os_str().len() - 1;
    for length in 102..=107 {
        for last in ["a", "~", "\u{e9}"] {
            let name = format!("{}{last}", "a".repeat(room(length) - last.len()));
            let path = dir.path().join(name);
            assert_eq!(path.as_os_str().len(), length);
            let listener = bind(&path).await.unwrap();
            let connected = tokio::net::UnixStream::connect(&path).await;
            assert!(connected.is_ok() && listener.accept().await.is_ok(), "{length} {last}");
            fs::remove_file(&path).unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{length} {last}");
        }
    }
    let path = dir.path().join("a".repeat(room(108)));
    assert!(matches!(bind(&path).await, Err(ServeError::Io { .. })));
}
