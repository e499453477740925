//! The errors of calls to the API server, and their consequences.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::object::{ErrorClass, GroupKind, ObjectId};

/// The subject of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallSubject {
    /// One object.
    Object(ObjectId),
    /// The objects of a kind.
    Kind(GroupKind),
    /// The server as a whole, in one or two words.
    Server(&'static str),
}

impl CallSubject {
    /// Returns whether the server's words may hold values that nobody may see. Every kind called
    /// Secret counts, as for [`crate::fields::mask_value`].
    pub(super) fn is_secret(&self) -> bool {
        match self {
            Self::Object(id) => &*id.group_kind().kind == "Secret",
            Self::Kind(kind) => &*kind.kind == "Secret",
            Self::Server(_) => false,
        }
    }
}

impl fmt::Display for CallSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(id) => write!(f, "{id}"),
            Self::Kind(kind) => write!(f, "{kind}"),
            Self::Server(subject) => f.write_str(subject),
        }
    }
}

/// A call that failed, and why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{subject}: {fault}")]
pub struct ClusterError {
    subject: Box<CallSubject>,
    #[source]
    fault: Box<ClusterFault>,
}

/// One field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// Its manager.
    pub manager: String,
    /// The field, for example `.spec.replicas`.
    pub field: String,
}

/// One field that the server refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The field, for example `spec.replicas`; empty where the server names none.
    pub field: String,
    /// The server's words; empty for Secrets.
    pub message: String,
}

/// The part of the API server that denied a request: its authorizer, or admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDenial {
    /// The user may not do this.
    Rbac,
    /// The user may not act as the account as which this was asked.
    Impersonation,
    /// A quota is used up.
    Quota,
    /// The namespace is being deleted.
    Terminating,
    /// An admission plugin, policy or webhook said no.
    Admission,
}

/// The reason for a failed call. Texts are for people: the server's own words where it has some,
/// never a value of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterFault {
    /// The connection cannot be made from what is configured.
    #[error("{reason}")]
    Config {
        /// The fault and its place.
        reason: String,
    },
    /// The credential plugin of the kubeconfig does not give what it should. It may later.
    #[error("{reason}")]
    Plugin {
        /// The plugin's behaviour.
        reason: String,
    },
    /// The inventory of a source belongs to another tool's ApplySet.
    #[error("it is the inventory of {tool} by its annotation applyset.kubernetes.io/tooling, and left alone")]
    OtherTool {
        /// Its tool and version.
        tool: String,
    },
    /// A ConfigMap of somebody else is where the inventory of a source would be.
    #[error(
        "it is a ConfigMap with data of its own and no inventory, and left alone: give the source another name"
    )]
    NoInventory,
    /// The object is no longer the one, or no longer in the version, that the write was decided on.
    #[error("it has changed meanwhile")]
    VersionConflict,
    /// The version that the write was decided on cannot be named, so no precondition can hold the
    /// write to it: nothing was sent.
    #[error(
        "its resourceVersion is no decimal number, so that no write can name its version: nothing is written"
    )]
    UnreadableVersion,
    /// An unforced apply meets fields that others own with other values.
    #[error("{}", conflicts_text(.conflicts))]
    FieldConflicts {
        /// The fields and their managers.
        conflicts: Vec<FieldConflict>,
    },
    /// The namespace does not exist.
    #[error("namespace {namespace} does not exist")]
    NoNamespace {
        /// Its name.
        namespace: String,
    },
    /// The kind is not served.
    #[error("the server does not serve this kind")]
    NoKind,
    /// The object does not exist.
    #[error("it does not exist")]
    NoObject,
    /// The content breaks the API's rules.
    #[error("{}", invalid_text(.message, .fields))]
    Invalid {
        /// The fields at fault; empty where the server names none.
        fields: Vec<InvalidField>,
        /// The server's words; empty for Secrets.
        message: String,
    },
    /// The content changes a field that can be set only at creation.
    #[error("{}", invalid_text(.message, .fields))]
    Immutable {
        /// The fields at fault; empty where the server names none.
        fields: Vec<InvalidField>,
        /// The server's words; empty for Secrets.
        message: String,
    },
    /// The server denies the request.
    #[error("{message}")]
    Denied {
        /// The part of the server that denied it.
        by: AccessDenial,
        /// The server's words, or for Secrets our own.
        message: String,
    },
    /// A webhook that the server must ask does not answer.
    #[error("{message}")]
    Webhook {
        /// The server's words, or for Secrets our own.
        message: String,
    },
    /// The credentials are not accepted.
    #[error("the server does not accept the credentials (401)")]
    Unauthorized,
    /// A `PodDisruptionBudget` keeps a pod from being evicted now.
    #[error("{message}")]
    Disruption {
        /// The server's words, which name the budget.
        message: String,
    },
    /// The server is asked too much.
    #[error("the server asks to slow down (429)")]
    TooMany {
        /// The pause that the server asks for.
        after: Option<Duration>,
    },
    /// The version that a list or a watch should go on from is too old, or not reached yet.
    #[error("the server cannot go on from this version: the list starts again")]
    Expired,
    /// The server failed.
    #[error("{message} (status {code})")]
    Server {
        /// HTTP status.
        code: u16,
        /// The server's words, or for Secrets our own.
        message: String,
    },
    /// No answer in time. The write may have been done.
    #[error("no answer from the API server at {server} within {}", seconds(.after))]
    Timeout {
        /// Host and port.
        server: Arc<str>,
        /// The deadline that passed.
        after: Duration,
    },
    /// The server cannot be reached, or the connection broke. The write may have been done.
    #[error("the API server at {server} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        server: Arc<str>,
        /// The chain of causes.
        reason: String,
    },
    /// The answer cannot be read.
    #[error("{reason}")]
    Garbled {
        /// The fault.
        reason: String,
    },
    /// The answer is longer than what is read of one. A write may have been done.
    #[error("the answer is longer than {mebibytes} MiB, and was not read to its end")]
    TooLong {
        /// The bound.
        mebibytes: usize,
    },
    /// Another replica may hold the source's Lease by now: nothing was sent.
    #[error("this replica no longer holds the Lease of the source: nothing is written")]
    NotHeld,
    /// A part of this module ended in a panic.
    #[error("its informer ended, which is a bug in rhumb; a restart loses nothing")]
    Bug,
}

/// The time at which the same call may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// At once, after a fresh read and a fresh decision.
    AfterDecision,
    /// With a backoff of seconds.
    ShortBackoff,
    /// With a backoff of minutes: what refuses it now may heal.
    LongBackoff,
    /// Not until the content changes.
    Never,
}

impl ClusterError {
    /// Returns an error about something.
    pub(super) fn new(on: CallSubject, fault: ClusterFault) -> Self {
        Self { subject: Box::new(on), fault: Box::new(fault) }
    }

    /// Returns the subject of the call.
    pub fn subject(&self) -> &CallSubject {
        &self.subject
    }

    /// Returns why it failed.
    pub fn fault(&self) -> &ClusterFault {
        &self.fault
    }

    /// Returns why it failed, in words, without the object's name.
    pub fn reason(&self) -> String {
        self.fault.to_string()
    }

    /// Returns the class under which requeue, exit code and metrics treat it.
    pub fn class(&self) -> ErrorClass {
        self.fault.class()
    }

    /// Returns when it may be tried again.
    pub fn retry(&self) -> RetryAdvice {
        self.fault.retry()
    }

    /// Returns how long the server asks to wait, at most a minute.
    pub fn retry_after(&self) -> Option<Duration> {
        match &*self.fault {
            ClusterFault::TooMany { after } => *after,
            _ => None,
        }
    }

    /// Returns whether the server did not answer at all.
    pub fn is_unreachable(&self) -> bool {
        matches!(*self.fault, ClusterFault::Unreachable { .. } | ClusterFault::Timeout { .. })
    }
}

impl ClusterFault {
    /// Returns the class under which requeue, exit code and metrics treat it.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Config { .. } | Self::OtherTool { .. } | Self::NoInventory => ErrorClass::Config,
            Self::VersionConflict | Self::FieldConflicts { .. } | Self::NoObject => ErrorClass::Conflict,
            Self::NoNamespace { .. }
            | Self::NoKind
            | Self::Invalid { .. }
            | Self::Immutable { .. }
            | Self::UnreadableVersion
            | Self::Webhook { .. } => ErrorClass::Invalid,
            Self::Denied { .. } | Self::Unauthorized => ErrorClass::Forbidden,
            Self::Plugin { .. }
            | Self::Disruption { .. }
            | Self::TooMany { .. }
            | Self::Expired
            | Self::Server { .. }
            | Self::Timeout { .. }
            | Self::Unreachable { .. }
            | Self::Garbled { .. }
            | Self::TooLong { .. }
            | Self::NotHeld => ErrorClass::Transient,
            Self::Bug => ErrorClass::Internal,
        }
    }

    /// Returns when the same call may be tried again.
    pub fn retry(&self) -> RetryAdvice {
        match self {
            Self::Config { .. }
            | Self::OtherTool { .. }
            | Self::NoInventory
            | Self::Immutable { .. }
            | Self::Bug => RetryAdvice::Never,
            Self::VersionConflict | Self::NoObject => RetryAdvice::AfterDecision,
            Self::FieldConflicts { .. }
            | Self::NoNamespace { .. }
            | Self::NoKind
            | Self::Invalid { .. }
            | Self::UnreadableVersion
            | Self::Webhook { .. }
            | Self::Denied {
                by:
                    AccessDenial::Rbac
                    | AccessDenial::Impersonation
                    | AccessDenial::Quota
                    | AccessDenial::Admission,
                ..
            } => RetryAdvice::LongBackoff,
            Self::Denied { by: AccessDenial::Terminating, .. }
            | Self::Unauthorized
            | Self::Plugin { .. }
            | Self::Disruption { .. }
            | Self::TooMany { .. }
            | Self::Expired
            | Self::Server { .. }
            | Self::Timeout { .. }
            | Self::Unreachable { .. }
            | Self::Garbled { .. }
            | Self::TooLong { .. }
            | Self::NotHeld => RetryAdvice::ShortBackoff,
        }
    }
}

fn conflicts_text(conflicts: &[FieldConflict]) -> String {
    let mut managers: Vec<&str> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let owned: Vec<String> = managers
        .into_iter()
        .map(|manager| {
            let of_this = conflicts.iter().filter(|conflict| conflict.manager == manager);
            let fields: Vec<&str> = of_this.map(|conflict| conflict.field.as_str()).collect();
            format!("{} owned by {manager:?}", fields.join(", "))
        })
        .collect();
    format!("it exists already, with other values in {}", owned.join("; "))
}

fn invalid_text(message: &str, fields: &[InvalidField]) -> String {
    if !message.is_empty() {
        return message.to_owned();
    }
    let named: Vec<&str> =
        fields.iter().map(|wrong| wrong.field.as_str()).filter(|f| !f.is_empty()).collect();
    if named.is_empty() {
        "the server refuses the content (its words are not shown, they may hold the Secret's values)"
            .to_owned()
    } else {
        format!(
            "the server refuses {} (its words are not shown, they may hold the Secret's values)",
            named.join(", ")
        )
    }
}

fn seconds(duration: &Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{:.1} s", duration.as_secs_f32())
    }
}
