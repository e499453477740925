//! Servers on loopback, honest and hostile, that change their manners between two connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::fixture::git_command;

/// The way in which a server treats a connection.
#[derive(Clone, Debug)]
pub(super) enum ServerBehaviour {
    /// Speaks git, and says no more after so many bytes of an answer.
    Git { most: usize },
    /// As that, with the bytes of this file for a pack.
    Packed(PathBuf),
    /// As that, a while after it was asked.
    Late(Duration),
    /// Speaks git over HTTP.
    Http,
    /// As that, for whoever sends this line.
    Locked(String),
    /// Accepts and says nothing.
    Silent,
    /// Sends this, a byte a second, after the first `fast` bytes.
    Drip { text: String, fast: usize },
    /// Sends this and closes.
    Say(String),
    /// Names references without an end, as git's own protocol has them.
    Endless,
}

impl ServerBehaviour {
    pub(super) fn git() -> Self {
        Self::Git { most: usize::MAX }
    }

    /// Returns an HTTP answer.
    pub(super) fn http(status: &str, kind: &str, body: &str) -> Self {
        let length = body.len();
        Self::Say(format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }
}

/// A server whose threads end with the connections.
pub(super) struct ScriptedGitServer {
    port: u16,
    manner: Arc<Mutex<ServerBehaviour>>,
    /// The request of each connection that has ended.
    requests: Receiver<String>,
    /// The number of connections now.
    open: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

impl ScriptedGitServer {
    /// Serves the repositories below a folder.
    pub(super) fn start(folder: &Path, manner: ServerBehaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let manner = Arc::new(Mutex::new(manner));
        let ended = Arc::new(AtomicBool::new(false));
        let (sender, requests) = channel();
        let open = Arc::new(AtomicUsize::new(0));
        let (shared, folder, end, count) = (manner.clone(), folder.to_owned(), ended.clone(), open.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let (manner, folder, sender) =
                    (shared.lock().unwrap().clone(), folder.clone(), sender.clone());
                let (stream, count) = (stream.unwrap(), count.clone());
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    serve(&manner, &folder, stream, &sender);
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, manner, requests, open, ended }
    }

    pub(super) fn set(&self, manner: ServerBehaviour) {
        *self.manner.lock().unwrap() = manner;
    }

    pub(super) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/repo", self.port)
    }

    /// Returns the mark of processes that talk to this server.
    pub(super) fn mark(&self) -> String {
        self.port.to_string()
    }

    /// Returns the requests of the connections that have ended, one text each.
    pub(super) fn ended(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }

    /// Returns whether somebody is connected.
    pub(super) fn is_busy(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    /// Waits until all clients are gone.
    pub(super) fn wait_idle(&self) {
        let start = Instant::now();
        while self.is_busy() {
            assert!(start.elapsed() < Duration::from_secs(20), "a client keeps its connection");
            std::thread::yield_now();
        }
    }

    /// Waits for a connection to be ended by its client.
    pub(super) fn wait_end(&self) -> String {
        self.requests.recv_timeout(Duration::from_secs(20)).expect("the client closes the connection")
    }
}

impl Drop for ScriptedGitServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(manner: &ServerBehaviour, folder: &Path, mut stream: TcpStream, requests: &Sender<String>) {
    let asked = match manner {
        ServerBehaviour::Git { most } => {
            speak_git(folder, &stream, *most, None);
            String::new()
        }
        ServerBehaviour::Packed(pack) => {
            speak_git(folder, &stream, usize::MAX, Some(pack));
            String::new()
        }
        ServerBehaviour::Late(pause) => {
            // A slow link, which nobody hurries.
            std::thread::sleep(*pause);
            speak_git(folder, &stream, usize::MAX, None);
            String::new()
        }
        ServerBehaviour::Http => super::http::speak(folder, &mut stream, ""),
        ServerBehaviour::Locked(line) => super::http::speak(folder, &mut stream, line),
        ServerBehaviour::Silent => read_to_end(&mut stream),
        ServerBehaviour::Endless => {
            name_references(&mut stream);
            String::new()
        }
        ServerBehaviour::Say(text) => {
            let asked = read_request(&mut stream);
            let _ = stream.write_all(text.as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
            asked
        }
        ServerBehaviour::Drip { text, fast } => {
            let asked = read_request(&mut stream);
            let (first, rest) = text.as_bytes().split_at(*fast);
            let _ = stream.write_all(first);
            stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            for byte in rest {
                let start = Instant::now();
                // The pause between two bytes is a wait for the client's end.
                if matches!(stream.read(&mut [0; 1024]), Ok(0)) || stream.write_all(&[*byte]).is_err() {
                    break;
                }
                let left = Duration::from_secs(1).saturating_sub(start.elapsed());
                stream.set_read_timeout(Some(left.max(Duration::from_millis(1)))).unwrap();
            }
            asked
        }
    };
    let _ = requests.send(asked);
}

/// Sends names of a kilobyte each until nobody reads them any more.
fn name_references(stream: &mut TcpStream) {
    let id = "1".repeat(40);
    let packet = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let mut text = packet(&format!("{id} HEAD\0side-band-64k ofs-delta\n"));
    for number in 0_u64.. {
        text.push_str(&packet(&format!("{id} refs/heads/{number:01000}\n")));
        if text.len() > 1 << 16 {
            if stream.write_all(text.as_bytes()).is_err() {
                return;
            }
            text.clear();
        }
    }
}

/// Runs a git daemon for one connection, which may send the bytes of a file in place of its own
/// pack.
fn speak_git(folder: &Path, stream: &TcpStream, most: usize, pack: Option<&PathBuf>) {
    let mut base = std::ffi::OsString::from("--base-path=");
    base.push(folder);
    let mut child = git_command(folder)
        .env("GIT_CONFIG_COUNT", if pack.is_some() { "2" } else { "1" })
        .env("GIT_CONFIG_KEY_0", "uploadpack.allowAnySHA1InWant")
        .env("GIT_CONFIG_VALUE_0", "true")
        .env("GIT_CONFIG_KEY_1", "uploadpack.packObjectsHook")
        .env(
            "GIT_CONFIG_VALUE_1",
            pack.map(|pack| format!("cat >/dev/null; cat {}; :", pack.display())).unwrap_or_default(),
        )
        .args(["daemon", "--inetd", "--export-all", "--informative-errors"])
        .arg(base)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let to_child = child.stdin.take().unwrap();
    let from_child = child.stdout.take().unwrap();
    let client = stream.try_clone().unwrap();
    let asking = std::thread::spawn(move || pump(client, to_child, usize::MAX));
    if pump(from_child, stream, most) > 0 {
        let _ = stream.shutdown(Shutdown::Both);
    }
    // With the limit reached: silent until the client has enough of it.
    let _ = asking.join();
    let _ = child.kill();
    let _ = child.wait();
}

/// Copies piece by piece, and gives how much more it would have copied.
fn pump(mut from: impl Read, mut to: impl Write, most: usize) -> usize {
    let mut left = most;
    let mut buffer = [0; 4096];
    while left > 0 {
        match from.read(&mut buffer[..left.min(4096)]) {
            Ok(count @ 1..) if to.write_all(&buffer[..count]).is_ok() => left -= count,
            _ => break,
        }
    }
    left
}

fn read_to_end(stream: &mut TcpStream) -> String {
    let mut asked = Vec::new();
    let _ = stream.read_to_end(&mut asked);
    String::from_utf8_lossy(&asked).into_owned()
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut asked = Vec::new();
    let mut buffer = [0; 4096];
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => asked.extend_from_slice(&buffer[..count]),
            _ => break,
        }
        // git:// asks in one packet.
        if !asked.starts_with(b"GET") && !asked.starts_with(b"POST") {
            break;
        }
    }
    String::from_utf8_lossy(&asked).into_owned()
}
