//! The exit status of a command.

use std::io;
use std::process::ExitCode;

use crate::object::ErrorClass;
use crate::source;

/// The meaning of the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done, or no difference.
    Done = 0,
    /// Something differs, waits, is missing, was refused or did not parse; or there was nothing to do.
    Differs = 1,
    /// Wrong usage, or nothing could be read.
    Unreadable = 2,
    /// The API server or the git server is not reachable, or refuses the request.
    Unreachable = 3,
    /// A guard says no.
    Guarded = 4,
    /// Not all is healthy in time, or an order is not acknowledged in time.
    TimedOut = 5,
    /// The configuration is wrong; systemd must not start it again (sysexits' `EX_CONFIG`).
    BadConfiguration = 78,
    /// A second signal ended `rhumb run` at once, whatever was on its way. A shell gives this code for
    /// Ctrl-C too, which ends any other command.
    Aborted = 130,
}

impl ExitStatus {
    /// All codes, in their order.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Differs,
        Self::Unreadable,
        Self::Unreachable,
        Self::Guarded,
        Self::TimedOut,
        Self::BadConfiguration,
        Self::Aborted,
    ];

    /// Returns the meaning of the code, as a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "Done, or no difference.",
            Self::Differs => {
                "Something differs, waits, is missing, was refused or did not parse, or there was nothing to do."
            }
            Self::Unreadable => "Wrong usage, as by a name that is not there, or nothing could be read.",
            Self::Unreachable => "The API server or the git server is not reachable, or refuses the request.",
            Self::Guarded => "A guard stopped it: the message says what to confirm or to change.",
            Self::TimedOut => "Timed out: not everything is healthy, or an order is not acknowledged yet.",
            Self::BadConfiguration => {
                "The configuration is wrong, or names another cluster than before. systemd does not start the service again."
            }
            Self::Aborted => {
                "A second signal stopped `rhumb run` at once, whatever was in progress, or Ctrl-C ended another command."
            }
        }
    }

    /// Returns the one of two ends that says more of what went wrong.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        if other as u8 > self as u8 { other } else { self }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        Self::from(exit as u8)
    }
}

impl From<ErrorClass> for ExitStatus {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Config | ErrorClass::Source | ErrorClass::Internal => Self::Unreadable,
            ErrorClass::Invalid | ErrorClass::Conflict => Self::Differs,
            ErrorClass::Forbidden | ErrorClass::Transient => Self::Unreachable,
        }
    }
}

/// The error of a command: printed as `error: …`, then a line `hint: …` for each hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    /// The class of the error.
    pub class: ErrorClass,
    /// The failure, its subject and its reason; empty when nobody reads it.
    pub message: String,
    /// The remedies.
    pub hints: Vec<String>,
    /// The exit code.
    pub exit: ExitStatus,
}

impl CommandError {
    /// Returns an error whose class decides the exit code.
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), hints: Vec::new(), exit: class.into() }
    }

    /// Returns an error of the command line itself.
    pub(crate) fn usage_error(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Config, message)
    }

    /// Returns the end of a command whose output nobody reads any more, which is no failure.
    pub(crate) fn closed_output() -> Self {
        Self::new(ErrorClass::Internal, "").with_exit(ExitStatus::Done)
    }

    /// Names the source of several that it is about.
    #[must_use]
    pub(crate) fn of_source(self, name: &str) -> Self {
        Self { message: format!("source {name}: {self}"), ..self }
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Ends with another exit code than that of its class.
    #[must_use]
    pub(crate) fn with_exit(mut self, exit: ExitStatus) -> Self {
        self.exit = exit;
        self
    }
}

impl From<source::SourceError> for CommandError {
    fn from(error: source::SourceError) -> Self {
        match &error {
            // Its own text is for those who follow it: here there is no last revision.
            source::SourceError::Missing { shown_location } => {
                let missing =
                    Self::new(error.class(), format!("{shown_location}: no such file or directory"));
                if shown_location.contains('/') {
                    return missing;
                }
                missing.hint("a path or a git URL is wanted here, not the name of a source")
            }
            source::SourceError::Unreachable { shown_location, .. }
            | source::SourceError::NotARepository { shown_location, .. } => {
                Self::new(error.class(), error.to_string())
                    .hint(format!("check with `git ls-remote {shown_location}` that it answers"))
            }
            source::SourceError::NoReference { shown_location, .. } => {
                Self::new(error.class(), error.to_string())
                    .hint(format!("`git ls-remote {shown_location}` lists them"))
            }
            other => Self::new(other.class(), other.to_string()),
        }
    }
}

/// Standard output is gone: a closed pipe (`| head`) is no error, anything else is.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::closed_output();
        }
        Self::new(ErrorClass::Internal, format!("cannot write to standard output: {}", os_message(&error)))
    }
}

/// Returns the system's message without its error number.
pub(super) fn os_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
