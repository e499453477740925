//! The reasons for which there is no chart of a server.

use super::reference::{ChartDigest, ChartReference};
use super::store::StoreError;
use super::unpack::UnpackError;
use crate::config::FetchSetting;
use crate::input::sandbox::{ProgramError, SandboxError, SandboxPart};
use crate::object::{DiagnosticCode, ErrorClass};

/// The reason for which a chart was not fetched. Nothing of a credential is in it.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// rhumb's own configuration does not allow the place.
    #[error("the chart {name} {version} may not be fetched from {repository}")]
    NotAllowed {
        /// The repository.
        repository: String,
        /// The name.
        name: String,
        /// The version, or range.
        version: String,
        /// The setting that would allow it.
        setting: FetchSetting,
    },
    /// The chart is named by a digest.
    #[error("{subject} {text:?} has a digest, which names no version of a chart")]
    Digest {
        /// The part that has it.
        subject: &'static str,
        /// Its beginning.
        text: String,
    },
    /// The text names a chart in no way that all programs read alike.
    #[error("{subject} {text:?} is none: {reason}")]
    Malformed {
        /// The part that is wrong.
        subject: &'static str,
        /// Its beginning.
        text: String,
        /// The reason.
        reason: &'static str,
    },
    /// The version is a range.
    #[error("the version {version} of the chart {name} is a range{}", meaning(.means.as_deref()))]
    Range {
        /// The name.
        name: String,
        /// The range.
        version: String,
        /// The version that it means now; none where that is not known.
        means: Option<String>,
    },
    /// A signature is to vouch for the chart, and no lock has its digest.
    #[error(
        "the chart {} {} of {} has no digest in rhumb.lock, and its source follows signed commits alone",
        .0.name, .0.version, .0.repository
    )]
    Unlocked(Box<ChartReference>),
    /// The server gives another archive than before, or than is asked for.
    #[error(
        "the chart {} {} of {} has changed: its digest was {expected}, and now is {found}",
        .reference.name, .reference.version, .reference.repository
    )]
    Changed {
        /// The chart.
        reference: Box<ChartReference>,
        /// The digest that was recorded, or is asked for.
        expected: ChartDigest,
        /// The digest of what the server gives now.
        found: ChartDigest,
    },
    /// The server has no such chart, or no such version.
    #[error("{repository} has no chart {name} {version}: {message}")]
    NotFound {
        /// The repository.
        repository: String,
        /// The name.
        name: String,
        /// The version, or range.
        version: String,
        /// The end of what helm said.
        message: String,
    },
    /// The server asks for other credentials.
    #[error("{repository} does not let rhumb read the chart {name}: {message}")]
    Forbidden {
        /// The repository.
        repository: String,
        /// The name.
        name: String,
        /// The end of what helm said.
        message: String,
    },
    /// The server could not be reached, or broke off.
    #[error("the chart {name} cannot be fetched from {repository}: {message}")]
    Network {
        /// The repository.
        repository: String,
        /// The name.
        name: String,
        /// The end of what helm said.
        message: String,
    },
    /// The archive is refused.
    #[error("the archive of the chart {} {} is refused: {error}", .reference.name, .reference.version)]
    Unpack {
        /// The chart.
        reference: Box<ChartReference>,
        /// The reason.
        error: UnpackError,
    },
    /// The credentials for the host cannot be read.
    #[error("the credentials for {host}: {reason}")]
    Credentials {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The store of charts cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// helm is missing, or cannot be used.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// helm did not run to its own end.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl FetchError {
    /// Returns what kind of error it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotAllowed { .. } | Self::Credentials { .. } => ErrorClass::Config,
            Self::Digest { .. }
            | Self::Malformed { .. }
            | Self::Range { .. }
            | Self::Unlocked(_)
            | Self::Changed { .. }
            | Self::Unpack { .. } => ErrorClass::Invalid,
            Self::NotFound { .. } => ErrorClass::Source,
            Self::Forbidden { .. } => ErrorClass::Forbidden,
            Self::Network { .. } => ErrorClass::Transient,
            Self::Store(error) => error.class(),
            Self::Program(error) => error.class(),
            Self::Sandbox(error) => error.class(),
        }
    }

    /// Returns the code of the finding.
    pub fn code(&self) -> DiagnosticCode {
        match self {
            Self::NotAllowed { .. } => "fetch-not-allowed",
            Self::Digest { .. } | Self::Malformed { .. } => "chart-reference",
            Self::Range { .. } => "unpinned-chart",
            Self::Unlocked(_) => "chart-not-locked",
            Self::Changed { .. } => "chart-changed",
            Self::NotFound { .. } => "chart-not-found",
            Self::Unpack { .. } => "chart-archive",
            Self::Program(_) => "no-program",
            Self::Forbidden { .. }
            | Self::Network { .. }
            | Self::Credentials { .. }
            | Self::Store(_)
            | Self::Sandbox(_) => "fetch-failed",
        }
    }

    /// Returns whether another try of the same may do better, so that the error is not kept.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotAllowed { .. }
            | Self::Digest { .. }
            | Self::Malformed { .. }
            | Self::Range { .. }
            | Self::Unlocked(_)
            | Self::Changed { .. }
            | Self::Unpack { .. } => false,
            // A chart is pushed, a credential renewed, a program installed.
            Self::NotFound { .. }
            | Self::Forbidden { .. }
            | Self::Network { .. }
            | Self::Credentials { .. }
            | Self::Store(_)
            | Self::Program(_)
            | Self::Sandbox(_) => true,
        }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotAllowed { repository, setting, .. } => allowing_line(*setting, repository),
            Self::Digest { .. } => {
                "write the version alone, run `rhumb lock` and commit rhumb.lock: its digest counts then".to_owned()
            }
            Self::Malformed { subject: "the version", .. } => {
                "write one exact version of the chart, as 1.2.3".to_owned()
            }
            Self::Malformed { .. } => {
                "write it as https://HOST/FOLDER or oci://HOST/FOLDER, with the chart's own name".to_owned()
            }
            Self::Range { means: Some(means), .. } => {
                format!("write {means}, or run `rhumb lock` and commit rhumb.lock")
            }
            Self::Range { means: None, .. } => {
                "write one exact version, or run `rhumb lock` and commit rhumb.lock".to_owned()
            }
            Self::Unlocked(_) => "add it with `rhumb lock`, and commit the file".to_owned(),
            Self::Changed { .. } => {
                "find out why it was published anew, and take another version; `rhumb lock --update` takes this one"
                    .to_owned()
            }
            Self::NotFound { .. } => "correct the name or the version, or publish it".to_owned(),
            Self::Forbidden { .. } => {
                "name credentials for this host as `fetch.credentials` of rhumb's own configuration".to_owned()
            }
            Self::Network { .. } => "it is tried again; what was rendered before, if anything was, stays in force".to_owned(),
            Self::Unpack { .. } => "package the chart anew by `helm package`".to_owned(),
            Self::Credentials { .. } => {
                "write `USER:PASSWORD` into the file, in one line, and let rhumb read it".to_owned()
            }
            Self::Store(_) => "remove the file: it is fetched again".to_owned(),
            Self::Sandbox(error) if error.part().is_some_and(SandboxPart::is_limit) => {
                "the server is too slow, or gives more than helm may take; it is tried again".to_owned()
            }
            Self::Program(_) | Self::Sandbox(_) => {
                "`rhumb check` says what is missing on this host".to_owned()
            }
        }
    }
}

/// Returns the line that would allow a place, and its own place.
fn allowing_line(setting: FetchSetting, repository: &str) -> String {
    let line = |key: &str| format!("`{key}: [\"{repository}\"]`");
    let own = "allow it in rhumb's own configuration";
    match setting {
        FetchSetting::Source => format!("{own}: {}", line("spec.fetch.allow")),
        FetchSetting::CustomSources => format!("{own}: {}", line("customSources.fetch.allow")),
        FetchSetting::Unconfigured => format!(
            "without `--config` nothing is fetched: give `rhumb validate`, `diff`, `apply` or `lock` a \
             configuration with {}",
            line("spec.fetch.allow")
        ),
    }
}

fn meaning(version: Option<&str>) -> String {
    version.map(|version| format!(", which means {version} now")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_limit_that_ends_helm_is_no_fault_of_this_host() {
        #[track_caller]
        fn check(error: SandboxError, expected: &str) {
            let hint = FetchError::Sandbox(error).hint();
            assert!(hint.contains(expected), "{hint}");
        }
        let program = || "helm".to_owned();
        let stopped = |part| SandboxError::Stopped { program: program(), part, stderr: String::new() };
        check(stopped(SandboxPart::Memory), "the server ");
        check(stopped(SandboxPart::SystemCalls), "`rhumb check`");
        check(SandboxError::Deadline { program: program(), deadline: Duration::from_mins(2) }, "the server ");
        let error = io::ErrorKind::NotFound.into();
        check(SandboxError::NotStarted { program: program(), error }, "`rhumb check`");
    }
}
