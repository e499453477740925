//! The socket: what is replaced, and what is not. Where one request ends and the next begins.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use axum::Router;
use axum::routing::any;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::connections::{OpenListener, serve};
use super::{ServeError, bind};
use crate::report::EndpointMetrics;

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

/// Sends bytes to a server that answers each request with its path. Returns all that is said until
/// the connection is closed.
async fn said_to(bytes: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SOCKET);
    let listener = OpenListener::Unix(bind(&path).await.unwrap());
    let paths = any(async |request: axum::extract::Request| {
        let path = request.uri().path().to_owned();
        let body = axum::body::to_bytes(request.into_body(), 1 << 10).await;
        format!("answer to {path}, {:?}", body.map(|body| body.len()).ok())
    });
    let router = Router::new().fallback(paths);
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    tokio::spawn(serve(listener, router, EndpointMetrics::default(), stop));
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut said = String::new();
    let end = stream.read_to_string(&mut said);
    tokio::time::timeout(std::time::Duration::from_mins(1), end).await.expect(&said).unwrap();
    said
}

/// Sends a request whose end a proxy in front may see elsewhere than we do: what is behind it is
/// never taken for another request.
#[tokio::test]
async fn a_request_with_two_lengths_hides_no_other_one() {
    let hidden = "GET /hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let chunked = format!("0\r\n\r\n{hidden}");
    let length = format!("Content-Length: {}\r\n", chunked.len());
    let head = |fields: &str| format!("POST /hook/shop HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let te = "Transfer-Encoding: chunked\r\n";
    for fields in [
        format!("{length}{te}"),
        format!("{te}{length}"),
        format!("Content-Length: 3\r\n{te}"),
        format!("{te}Content-Length: 3\r\n"),
        format!("Content-Length: 5\r\n{length}"),
        "Content-Length: 5, 6\r\n".to_owned(),
        "Content-Length: +5\r\n".to_owned(),
        "Content-Length: 5\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
        format!("{length}Transfer-Encoding: xchunked\r\n"),
        format!("{length}Transfer-Encoding : chunked\r\n"),
    ] {
        let said = said_to(&format!("{}{chunked}", head(&fields))).await;
        assert!(!said.contains("answer to /hidden"), "{fields}{said}");
        assert!(said.matches("HTTP/1.1 ").count() <= 1, "{fields}{said}");
    }
    // A request with one length is followed by the next one.
    let said = said_to(&format!("{}12345{hidden}", head("Content-Length: 5\r\n"))).await;
    assert!(said.contains("answer to /hook/shop, Some(5)") && said.contains("answer to /hidden"), "{said}");
}
