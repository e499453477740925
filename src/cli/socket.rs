//! Questions to a running daemon, over its socket.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;

use super::exit::os_message;

/// An answer takes no longer; the daemon itself gives up before.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// An answer is never larger, in bytes: some 300 000 objects.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// The socket of a daemon.
#[derive(Clone, Debug)]
pub(super) struct DaemonSocket {
    path: PathBuf,
}

/// The reason for a missing answer.
#[derive(Debug)]
pub(super) enum SocketError {
    /// Nobody listens there, nobody may ask, or the answer is broken.
    Unreachable {
        /// The path of the socket.
        path: PathBuf,
        /// The system's message.
        why: String,
    },
    /// It answers, and not what was asked.
    Refused(
        /// The daemon's message.
        String,
    ),
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { path, why } => write!(f, "no daemon answers on {}: {why}", path.display()),
            Self::Refused(why) => write!(f, "the daemon says: {why}"),
        }
    }
}

impl DaemonSocket {
    /// Returns the socket at a path.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Returns where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Asks for a path, and reads the answer.
    pub(super) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, SocketError> {
        let text = self.get(path).await?;
        serde_json::from_str(&text).map_err(|error| {
            self.unreachable_error(&format!("{path} is in no form that this version of rhumb knows: {error}"))
        })
    }

    /// Asks for a path, and returns the answer as it is.
    pub(super) async fn get(&self, path: &str) -> Result<String, SocketError> {
        let answer = async { text(self.open(path).await?).await.map_err(|why| self.unreachable_error(&why)) };
        tokio::time::timeout(ANSWER_TIMEOUT, answer).await.unwrap_or_else(|_| Err(self.no_answer_error()))
    }

    /// Asks for a path whose answer may go on for ever.
    pub(super) async fn open(&self, path: &str) -> Result<Body, SocketError> {
        let answer = async {
            let (code, body) = self.request(path).await?;
            if code == 200 {
                return Ok(body);
            }
            let text = text(body).await.map_err(|why| self.unreachable_error(&why))?;
            Err(SocketError::Refused(message(&text)))
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answer).await.unwrap_or_else(|_| Err(self.no_answer_error()))
    }

    async fn request(&self, path: &str) -> Result<(u16, Body), SocketError> {
        let not_connected = |error: io::Error| self.unreachable_error(&os_message(&error));
        let stream = UnixStream::connect(&self.path).await.map_err(not_connected)?;
        let broken = |error: hyper::Error| self.unreachable_error(&error.to_string());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let request = Request::get(path).header(header::HOST, "rhumb").body(Body::empty());
        let request = request.map_err(|error| self.unreachable_error(&error.to_string()))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        Ok((response.status().as_u16(), Body::new(response.into_body())))
    }

    fn no_answer_error(&self) -> SocketError {
        self.unreachable_error(&format!(
            "it accepts connections, but does not answer within {} s",
            ANSWER_TIMEOUT.as_secs()
        ))
    }

    fn unreachable_error(&self, why: &str) -> SocketError {
        SocketError::Unreachable { path: self.path.clone(), why: why.to_owned() }
    }
}

async fn text(body: Body) -> Result<String, String> {
    let bytes = to_bytes(body, MAX_ANSWER_BYTES).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the message of an error response.
fn message(text: &str) -> String {
    let body = serde_json::from_str::<Value>(text).ok();
    let message = body.as_ref().and_then(|body| body.get("message")?.as_str());
    message.unwrap_or(text).trim().to_owned()
}
