//! Why nothing is served.

use std::io;
use std::path::PathBuf;

use crate::object::Class;

/// Why a socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process answers on it.
    #[error("{0}: another process answers on this socket")]
    Taken(PathBuf),
    /// There is something that is no socket.
    #[error("{0}: there is a file that is no socket; it is left as it is")]
    NoSocket(PathBuf),
    /// The certificate or its key cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The system refuses it.
    #[error("{place}: the socket cannot be opened: {error}")]
    Io {
        /// Where.
        place: String,
        /// What the system says.
        error: io::Error,
    },
}

impl Error {
    /// What kind of trouble it is.
    pub fn class(&self) -> Class {
        Class::Config
    }
}
