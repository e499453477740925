//! The errors of endpoints.

use std::io;
use std::path::PathBuf;

/// The reason for which an endpoint cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// Another process answers on it.
    #[error("{0}: another process answers on this socket")]
    SocketInUse(PathBuf),
    /// There is something that is no socket.
    #[error("{0}: there is a file that is no socket; it is left as it is")]
    NoSocket(PathBuf),
    /// The certificate or its key cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The system refuses it.
    #[error("{endpoint}: the socket cannot be opened: {error}")]
    Io {
        /// The address.
        endpoint: String,
        /// The system's message.
        error: io::Error,
    },
}
