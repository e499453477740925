//! The classes of error, which alone decide requeue, exit code and metric label.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ErrorClass {
    /// The configuration or the command line is wrong: a person must change it.
    Config,
    /// The source could not be read: the last revision, if there is one, stays in force.
    Source,
    /// The API server refuses this content: final until the content changes, or retried slowly.
    Invalid,
    /// Somebody else wrote first: read again and decide again.
    Conflict,
    /// Credentials or RBAC do not allow it: retried slowly.
    Forbidden,
    /// Network, overload, restart: retried with backoff.
    Transient,
    /// A bug of ours.
    Internal,
}

impl ErrorClass {
    /// Returns the label under which metrics and logs count it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Source => "source",
            Self::Invalid => "invalid",
            Self::Conflict => "conflict",
            Self::Forbidden => "forbidden",
            Self::Transient => "transient",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
