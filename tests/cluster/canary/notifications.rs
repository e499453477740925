//! A recipient of notifications: an HTTP server on loopback that returns all that it received.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server that takes each request, and refuses it for good.
pub(super) struct NotificationReceiver {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    heard: Mutex<Vec<ReceivedNotification>>,
    over: AtomicBool,
}

/// One request that it received.
#[derive(Clone, Debug)]
pub(super) struct ReceivedNotification {
    pub(super) path: String,
    pub(super) body: String,
}

impl NotificationReceiver {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                let state = Arc::clone(&shared);
                thread::spawn(move || state.answer(stream));
            }
        });
        Self { address, state }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all that it received.
    pub(super) fn heard(&self) -> Vec<ReceivedNotification> {
        self.state.heard.lock().unwrap().clone()
    }
}

impl State {
    fn answer(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).ok().filter(|length| *length > 0)?;
        }
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        let mut body = vec![0; length.trim().parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let path = head.split(' ').nth(1)?.to_owned();
        let words = head.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let answer = format!(
            "HTTP/1.1 400 No: {words}\r\nX-Heard: {words}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{head}",
            head.len()
        );
        let body = String::from_utf8_lossy(&body).into_owned();
        self.heard.lock().unwrap().push(ReceivedNotification { path, body });
        (&stream).write_all(answer.as_bytes()).ok()
    }
}

impl Drop for NotificationReceiver {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}
