//! Whether an object has reached what its spec asks for, in kstatus' words.
//!
//! Owns [`Health`] and [`of`], a pure function of the object's own JSON tree; one file per kind.
//!
//! **Invariant:** never fetches, never watches and knows no time.

use std::fmt;
use std::sync::Arc;

/// kstatus' six statuses (cli-utils `pkg/kstatus`), less `NotFound`, which no object can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The spec is reached.
    Current,
    /// Its controller works on it.
    InProgress,
    /// Its controller gave up, or said that it cannot.
    Failed,
    /// It is being deleted.
    Terminating,
    /// Nothing can be said.
    Unknown,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
        })
    }
}

/// A status and, unless it is `Current`, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The status.
    pub status: Status,
    /// What it waits for or why it failed, in kubectl's words where kubectl has some; empty when current.
    pub message: Arc<str>,
}

impl Health {
    /// Reached.
    pub fn current() -> Self {
        Self::new(Status::Current, "")
    }

    /// Any status with its reason.
    pub fn new(status: Status, message: &str) -> Self {
        Self { status, message: message.into() }
    }

    /// Whether the spec is reached.
    pub fn is_current(&self) -> bool {
        self.status == Status::Current
    }
}
