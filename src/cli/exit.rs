//! How a command ends.

use std::io;
use std::process::ExitCode;

use crate::object::Class;
use crate::source;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, or no difference.
    Done = 0,
    /// Something differs, waits, was refused or did not parse.
    Differs = 1,
    /// Wrong usage, or nothing could be read.
    Unreadable = 2,
    /// The API server or the git server is not reachable.
    Unreachable = 3,
    /// A guard says no.
    Guarded = 4,
    /// Not all is healthy in time.
    TimedOut = 5,
    /// The configuration is wrong; systemd is told not to start again (sysexits' `EX_CONFIG`).
    BadConfiguration = 78,
    /// A second signal ended it at once, whatever was on its way (as a shell tells of Ctrl-C).
    Aborted = 130,
}

impl Exit {
    /// The one of two ends that says more of what went wrong.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other as u8 > self as u8 { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<Class> for Exit {
    fn from(class: Class) -> Self {
        match class {
            Class::Config | Class::Source | Class::Internal => Self::Unreadable,
            Class::Invalid | Class::Conflict => Self::Differs,
            Class::Forbidden | Class::Transient => Self::Unreachable,
        }
    }
}

/// Why a command could not do its work: printed as `error: …`, then a line `hint: …` for each hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// What kind of trouble it is.
    pub class: Class,
    /// What failed, on what, and why; empty when there is nobody to tell.
    pub message: String,
    /// What to do.
    pub hints: Vec<String>,
    /// The exit code.
    pub exit: Exit,
}

impl CommandError {
    /// An error whose class decides the exit code.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), hints: Vec::new(), exit: class.into() }
    }

    /// An error of the command line itself.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Class::Config, message)
    }

    /// Nobody reads what is printed any more: no error, but the end.
    pub fn unread() -> Self {
        Self::new(Class::Internal, "").exit(Exit::Done)
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Ends with another exit code than that of its class.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

impl From<source::Error> for CommandError {
    fn from(error: source::Error) -> Self {
        match &error {
            // Its own text is for those who follow it: here there is no last revision.
            source::Error::Missing { place } => {
                let missing = Self::new(error.class(), format!("{place}: no such file or directory"));
                if place.contains('/') {
                    return missing;
                }
                missing.hint("a path or a git URL is wanted here, not the name of a source")
            }
            source::Error::Unreachable { place, .. } | source::Error::NotARepository { place, .. } => {
                Self::new(error.class(), error.to_string())
                    .hint(format!("check with `git ls-remote {place}` that it answers"))
            }
            source::Error::NoReference { place, .. } => Self::new(error.class(), error.to_string())
                .hint(format!("`git ls-remote {place}` lists them")),
            other => Self::new(other.class(), other.to_string()),
        }
    }
}

/// Standard output is gone: a closed pipe (`| head`) is no error, anything else is.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::unread();
        }
        Self::new(Class::Internal, format!("cannot write to standard output: {}", plain(&error)))
    }
}

/// What the system says, without its number.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
