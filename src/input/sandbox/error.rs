//! The errors of sandboxed programs.

use std::io;
use std::time::Duration;

use super::outcome::SandboxPart;
use crate::object::ErrorClass;

/// The reason for which a program did not run to its own end. `program` is its file's name.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A part that the policy asks for cannot be set up on this host.
    #[error(
        "{program} is not run: its sandbox needs {part}, which does not work here: {reason}; on a host that cannot \
         be changed, `sandbox: seccomp` runs it with all files of rhumb in its reach"
    )]
    Unsupported {
        /// The program.
        program: String,
        /// The part, in the kernel's word.
        part: String,
        /// The reason.
        reason: String,
    },
    /// The file is no program that can be sandboxed.
    #[error("{reason}")]
    NoProgram {
        /// The path and the reason.
        reason: String,
    },
    /// The process could not be started, or failed before it became the program.
    #[error("{program} could not be started: {error}")]
    NotStarted {
        /// The program.
        program: String,
        /// The reason.
        error: io::Error,
    },
    /// A part of the sandbox ended the program.
    #[error("{program} was stopped: {part}{}", text_after_colon(.stderr))]
    Stopped {
        /// The program.
        program: String,
        /// The part.
        part: SandboxPart,
        /// The end of what it said on standard error.
        stderr: String,
    },
    /// It ran longer than it may.
    #[error("{program} was killed after {} s, its deadline", .deadline.as_secs())]
    Deadline {
        /// The program.
        program: String,
        /// The deadline.
        deadline: Duration,
    },
    /// A signal ended it that no part of the sandbox sends: the system was short of memory, or the
    /// program has a fault.
    #[error("{program} was ended by signal {signal}{}{}", cause(*signal), text_after_colon(.stderr))]
    Killed {
        /// The program.
        program: String,
        /// The signal's number.
        signal: i32,
        /// The end of what it said on standard error.
        stderr: String,
    },
}

impl SandboxError {
    /// Returns what kind of error it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unsupported { .. } | Self::NoProgram { .. } => ErrorClass::Config,
            // The same input is stopped again.
            Self::Stopped { .. } => ErrorClass::Invalid,
            // A busy machine may be the reason.
            Self::NotStarted { .. } | Self::Deadline { .. } | Self::Killed { .. } => ErrorClass::Transient,
        }
    }

    /// Returns the part of the sandbox that ended the program.
    pub fn part(&self) -> Option<SandboxPart> {
        match self {
            Self::Stopped { part, .. } => Some(*part),
            Self::Deadline { .. } => Some(SandboxPart::Deadline),
            _ => None,
        }
    }

    /// Returns the words of the program; none where it could say nothing.
    pub fn stderr_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Stopped { stderr, .. } | Self::Killed { stderr, .. } => Some(stderr),
            _ => None,
        }
    }

    /// Returns it without the words of the program, which may quote what it has read.
    #[must_use]
    pub fn without_stderr(mut self) -> Self {
        if let Some(stderr) = self.stderr_mut() {
            stderr.clear();
        }
        self
    }
}

fn text_after_colon(stderr: &str) -> String {
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map(|line| format!("; it said: {line}")).unwrap_or_default()
}

fn cause(signal: i32) -> &'static str {
    if signal == rustix::process::Signal::KILL.as_raw() {
        ", as the host is short of memory or by hand"
    } else {
        ""
    }
}
