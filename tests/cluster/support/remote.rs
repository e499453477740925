//! A git server over https on loopback, with a certificate of its own, that changes its manners
//! while it runs.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::Repo;

/// The way in which the server treats the connections that begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerBehavior {
    /// It speaks git.
    Good,
    /// It takes connections and closes them.
    Down,
    /// It says nothing, not even in the handshake.
    Silent,
    /// It takes the request and says nothing.
    SilentAfterHandshake,
    /// It answers with a page for people.
    Page,
    /// It answers 200 with nothing.
    Empty,
    /// It sends a byte a second.
    Slow,
    /// It begins an answer, and never ends it.
    #[allow(dead_code, reason = "only the bench of faults has a server without an end")]
    Endless,
    /// It refuses in git's own words, and repeats all that it knows of who asks.
    Repeating,
    /// It sends whoever asks to an address with these credentials, where nobody is.
    #[allow(dead_code, reason = "only the search for secrets is sent elsewhere")]
    Elsewhere(&'static str),
}

/// The remote of a repository: what is pushed there is what the server serves.
pub(crate) struct Remote {
    port: u16,
    state: Arc<State>,
    /// The bare repository and the certificate.
    dir: TempDir,
}

struct State {
    manners: Mutex<ServerBehavior>,
    requests: AtomicUsize,
    open: AtomicUsize,
    over: AtomicBool,
    root: PathBuf,
    tls: Arc<ServerConfig>,
}

impl Remote {
    /// Serves a bare copy of a repository, and makes it that one's `origin`.
    pub(crate) fn of(repo: &Repo) -> Self {
        let (dir, _) = repo.bare();
        // The last is what pods of real nodes call it.
        let names = ["127.0.0.1", "localhost", "10.245.0.1"].map(str::to_owned).to_vec();
        let own = rcgen::generate_simple_self_signed(names).unwrap();
        std::fs::write(dir.path().join("ca.pem"), own.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            manners: Mutex::new(ServerBehavior::Good),
            requests: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            root: dir.path().to_owned(),
            tls: Arc::new(tls),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                let (state, stream) = (Arc::clone(&shared), stream.unwrap());
                thread::spawn(move || {
                    state.open.fetch_add(1, Ordering::SeqCst);
                    state.serve(stream);
                    state.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, state, dir }
    }

    /// Returns the address of the repository.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/repo.git", self.port)
    }

    /// Returns its port on loopback.
    #[allow(dead_code, reason = "only pods of real nodes reach it by another address")]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the certificate by which it is trusted, PEM.
    #[allow(dead_code, reason = "only the image of real nodes has it inside")]
    pub(crate) fn authority(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("ca.pem")).unwrap()
    }

    /// Returns the bare repository that is served.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("repo.git")
    }

    /// Lets a command trust the server.
    pub(crate) fn trusted(&self, command: &mut Command) {
        command.env("GIT_SSL_CAINFO", self.dir.path().join("ca.pem"));
    }

    /// Treats the connections that begin from now on so.
    pub(crate) fn set(&self, manners: ServerBehavior) {
        *self.state.manners.lock().unwrap() = manners;
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let manners = *self.manners.lock().unwrap();
        match manners {
            ServerBehavior::Down => return drop(stream.shutdown(Shutdown::Both)),
            ServerBehavior::Silent => return drop(stream.read_to_end(&mut Vec::new())),
            _ => {}
        }
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&self.tls)).unwrap(), stream);
        let Some(request) = Request::read(&mut stream) else { return };
        let page =
            |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}").into_bytes();
        let answer = match manners {
            ServerBehavior::SilentAfterHandshake => return drop(stream.read_to_end(&mut Vec::new())),
            ServerBehavior::Page => page("<html><body>Please log in</body></html>"),
            ServerBehavior::Empty => page(""),
            ServerBehavior::Endless => return send_endlessly(&mut stream),
            ServerBehavior::Repeating => request.repeated(),
            ServerBehavior::Elsewhere(user) => {
                let to = format!("https://{user}@127.0.0.1:1{}", request.target);
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nConnection: close\r\n\r\n").into_bytes()
            }
            _ => request.answer(&self.root),
        };
        if manners == ServerBehavior::Slow {
            for byte in answer {
                if stream.write_all(&[byte]).and_then(|()| stream.flush()).is_err() {
                    return;
                }
                thread::sleep(Duration::from_secs(1));
            }
        } else {
            let _ = stream.write_all(&answer);
        }
        stream.conn.send_close_notify();
        let _ = stream.flush();
        let _ = stream.sock.shutdown(Shutdown::Write);
    }
}

/// Sends references until nobody reads any more.
fn send_endlessly(stream: &mut impl Write) {
    let kind = "application/x-git-upload-pack-advertisement";
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let first = line("# service=git-upload-pack\n") + "0000";
    let mut is_read = stream.write_all((head + &first).as_bytes()).is_ok();
    let mut number = 0_u64;
    while is_read {
        let lines =
            (0..100).map(|more| line(&format!("{:040x} refs/heads/b{:x}\n", number + 1, number + more)));
        is_read = stream.write_all(lines.collect::<String>().as_bytes()).is_ok();
        number += 100;
        thread::sleep(Duration::from_millis(2));
    }
}

/// One request of the only kind that git makes.
struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &mut impl Read) -> Option<Self> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).ok()?;
        let mut lines = head.lines();
        let mut first = lines.next()?.split(' ').map(str::to_owned);
        let (method, target) = (first.next()?, first.next()?);
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut request = Self { method, target, headers, body: Vec::new() };
        let length = request.header("content-length").parse().unwrap_or(0);
        request.body = vec![0; length];
        stream.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns the credentials that came along, as they are and encoded.
    fn repeated(&self) -> Vec<u8> {
        let encoded = self.header("authorization").trim_start_matches("Basic ");
        let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
        let said = format!("ERR {} ({encoded}) may not do that", String::from_utf8_lossy(&decoded));
        let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
        let body = line("# service=git-upload-pack\n") + "0000" + &line(&said);
        let kind = "application/x-git-upload-pack-advertisement";
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{body}").into_bytes()
    }

    /// Returns the answer of `git http-backend` (RFC 3875). Below `/private` it asks for a login.
    fn answer(&self, root: &Path) -> Vec<u8> {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let private = path.strip_prefix("/private");
        if private.is_some() && self.header("authorization").is_empty() {
            let who = "WWW-Authenticate: Basic realm=\"private\"";
            return format!("HTTP/1.1 401 Unauthorized\r\n{who}\r\nConnection: close\r\n\r\n").into_bytes();
        }
        let path = private.unwrap_or(path);
        let mut child = Command::new("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", &self.method)
            .env("CONTENT_TYPE", self.header("content-type"))
            .env("CONTENT_LENGTH", self.body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", self.header("content-encoding"))
            .env("GIT_PROTOCOL", self.header("git-protocol"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut to_child = child.stdin.take().unwrap();
        let body = self.body.clone();
        let writer = thread::spawn(move || drop(to_child.write_all(&body)));
        let output = child.wait_with_output().unwrap().stdout;
        let _ = writer.join();
        // Without a length, the end of the connection is the end of the answer.
        let status = output.strip_prefix(b"Status: ").map_or("200 OK", |rest| {
            let end = rest.iter().position(|byte| *byte == b'\r').unwrap_or(0);
            std::str::from_utf8(&rest[..end]).unwrap_or("500 Broken")
        });
        [format!("HTTP/1.1 {status}\r\nConnection: close\r\n").as_bytes(), &output].concat()
    }
}
