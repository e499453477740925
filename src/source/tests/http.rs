//! Git over HTTP: `git http-backend` behind one connection.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Stdio;

use super::fixture::git_command;

/// Answers one request, if its head has this text in it, and gives the head.
pub(super) fn speak(folder: &Path, stream: &mut TcpStream, needed: &str) -> String {
    let Some((head, mut body)) = head(stream) else { return String::new() };
    if !head.contains(needed) {
        let refusal = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(refusal);
        let _ = stream.shutdown(Shutdown::Write);
        return head;
    }
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.clone().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let length: usize = field("Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut rest = vec![0; length.saturating_sub(body.len())];
    if stream.read_exact(&mut rest).is_err() {
        return head;
    }
    body.extend(rest);
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = git_command(folder)
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_LENGTH", length.to_string())
        .env("CONTENT_TYPE", field("Content-Type").unwrap_or_default())
        .env("HTTP_CONTENT_ENCODING", field("Content-Encoding").unwrap_or_default())
        .env("HTTP_GIT_PROTOCOL", field("Git-Protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Small enough for the pipe to hold it.
    let _ = child.stdin.take().unwrap().write_all(&body);
    let output = child.wait_with_output().unwrap().stdout;
    let status = output
        .strip_prefix(b"Status: ")
        .map_or(&b"200 OK"[..], |rest| rest.split(|byte| *byte == b'\r').next().unwrap_or_default());
    let _ = stream.write_all(&[b"HTTP/1.1 ", status, b"\r\nConnection: close\r\n", &output].concat());
    let _ = stream.shutdown(Shutdown::Write);
    head
}

/// Returns the head of a request, and what came of its body with it.
fn head(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut asked, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = asked.windows(4).position(|end| end == b"\r\n\r\n") {
            let body = asked.split_off(end + 4);
            return Some((String::from_utf8_lossy(&asked).into_owned(), body));
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => asked.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}
