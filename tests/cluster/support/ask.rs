//! Questions to a running daemon on its socket.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// An answer of the daemon.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Asks a daemon that answers.
#[track_caller]
pub(crate) fn ask(socket: &Path, method: &str, path: &str) -> Answer {
    try_to_ask(socket, method, path).unwrap()
}

/// Asks a daemon.
///
/// # Errors
/// Fails where nobody listens, or where the connection ends.
pub(crate) fn try_to_ask(socket: &Path, method: &str, path: &str) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    let request = format!("{method} {path} HTTP/1.1\r\nHost: rhumb\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok(Answer { code, head: head.to_ascii_lowercase(), body: body.to_owned() })
}
