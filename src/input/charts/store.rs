//! The archives of charts by their digests, and the first digest of each name.

use std::io;
use std::path::PathBuf;

use crate::object::ErrorClass;

/// The reason for which the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// A file cannot be read or written.
    #[error("the store of charts: {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        error: io::Error,
    },
    /// A record is none.
    #[error("the store of charts: {} is no record of this chart", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
    },
}

impl StoreError {
    /// Returns what kind of error it is.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Io { .. } => ErrorClass::Transient,
            Self::Record { .. } => ErrorClass::Config,
        }
    }
}
