//! The errors, each with the part, the file or the command that it happened to.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason for a control plane that could not be built, started or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The Go toolchain is missing or too old.
    #[error(
        "Go {needed} or newer is needed to build the test control plane, but {found}: install it, or point \
         RHUMB_CONTROLPLANE_BIN or KUBEBUILDER_ASSETS at a directory that has {programs}"
    )]
    Go {
        /// The oldest release that will do.
        needed: &'static str,
        /// The version found instead.
        found: String,
        /// The programs that the directory must have.
        programs: String,
    },
    /// A directory that a variable names lacks programs.
    #[error("{variable} is {}, which lacks {missing}", dir.display())]
    Missing {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        dir: PathBuf,
        /// The programs that are not there.
        missing: String,
    },
    /// The Go build of a program failed.
    #[error("building {program} failed:\n{output}")]
    Build {
        /// The program.
        program: &'static str,
        /// The end of what the build printed.
        output: String,
    },
    /// The packages of a real node cannot be had.
    #[error("{program} failed for the packages of a real node:\n{output}")]
    Packages {
        /// The program that failed.
        program: String,
        /// Its complaint.
        output: String,
    },
    /// This machine runs no real nodes.
    #[error("no real nodes here: {0}")]
    NoRealNodes(String),
    /// No directory for the cache or the cluster is to be had.
    #[error("no directory for {what}: {why}")]
    NoDirectory {
        /// The purpose of the directory.
        what: &'static str,
        /// The reason for which there is none.
        why: &'static str,
    },
    /// An operation on a file, a socket or a process failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// The action, with the path or program.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot make the certificate of {subject}: {source}")]
    Certificate {
        /// The certificate's subject.
        subject: String,
        /// The cause.
        source: rcgen::Error,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A part ended by itself while it was waited for.
    #[error("{part} ended by itself; the end of its log:\n{log}")]
    Ended {
        /// The program.
        part: &'static str,
        /// The lines of its log that explain it.
        log: String,
    },
    /// A part did not get ready in time.
    #[error("{part}: {what} did not come true within {} s (last seen: {last}); the end of its log:\n{log}", limit.as_secs())]
    NotReady {
        /// The program.
        part: &'static str,
        /// The condition that was waited for.
        what: &'static str,
        /// The time it had.
        limit: Duration,
        /// The last look.
        last: String,
        /// The lines of its log that explain it.
        log: String,
    },
    /// A part is not there: it was never started, or is killed.
    #[error("{part} is not running")]
    NotRunning {
        /// The program.
        part: &'static str,
    },
    /// A part runs already.
    #[error("{part} runs already")]
    Running {
        /// The program.
        part: &'static str,
    },
    /// The cluster was built without what is asked for.
    #[error("this cluster was started without {0}")]
    Absent(&'static str),
    /// The supervisor of the processes is gone or did not answer as it should.
    #[error("the supervisor of the control plane failed: {0}")]
    Supervisor(String),
    /// kubectl failed.
    #[error("kubectl {args} failed ({status}): {stderr}")]
    Kubectl {
        /// Its arguments.
        args: String,
        /// The exit status.
        status: String,
        /// Its standard error.
        stderr: String,
        /// Its standard output.
        stdout: String,
    },
    /// The API server answered with something else than what was expected.
    #[error("{request}: {answer}")]
    Api {
        /// The method and path.
        request: String,
        /// The status and body, or what was wrong with them.
        answer: String,
    },
    /// The audit log holds a line that is no audit event.
    #[error("the audit log has a line that is no event: {source}: {line}")]
    Audit {
        /// The start of the line.
        line: String,
        /// The cause.
        source: serde_json::Error,
    },
}

/// The extension of an I/O error by what was being done.
pub(crate) trait Context<T> {
    /// Names the action that failed: "write /path".
    fn context(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Context<T> for Result<T, io::Error> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io { action: action(), source })
    }
}

impl<T> Context<T> for Result<T, rustix::io::Errno> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io { action: action(), source: source.into() })
    }
}

impl Error {
    /// Returns whether the same may go well in a moment. Somebody else has the part's port, or KWOK
    /// died of itself, as its controllers write one map side by side when they start (0.8.0,
    /// `PatchMetaFromOpenAPI3::specCache`).
    pub(crate) fn is_bad_luck(&self) -> bool {
        match self {
            Self::Ended { log, .. } | Self::NotReady { log, .. } => {
                ["address already in use", "fatal error: concurrent map"]
                    .iter()
                    .any(|text| log.contains(text))
            }
            _ => false,
        }
    }
}
