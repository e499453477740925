//! Reports to people and machines: status, events, metrics and the service manager.
//!
//! Owns [`Outcome`], the past tense of every decision, and the log lines of outcomes and other
//! events ([`log()`]). [`EventRecord`] is one event, and [`EventRecorder`] hands it to all who
//! listen. [`Phase`] is an object's state in one word, [`DaemonStatus`] that of everything,
//! [`StatusSummary`] that of one source in a few lines. [`Metrics`] and [`EndpointMetrics`] are the
//! counters. [`SystemdService`] talks to the service manager, with one line of status
//! ([`DaemonSummary`]) and the [`start_watchdog()`].
//!
//! **Invariant:** decides nothing.

mod comparison;
mod conditions;
mod descriptions;
mod endpoints;
mod headline;
mod log;
mod metrics;
mod object_events;
mod object_statuses;
mod phase;
mod sd_notify;
mod status;
mod status_author;
#[cfg(test)]
pub(crate) mod status_fixture;
mod status_summary;
mod watchdog;

use std::fmt;
use std::sync::Arc;

pub(crate) use comparison::{DifferingObject, ObjectComparison};
pub(crate) use conditions::{
    RemainingObjects, SourceCondition, is_ready, pending_deletions_text, updated_status,
};
pub(crate) use descriptions::{CONDITION_REASONS, METRICS, MetricType};
pub(crate) use endpoints::{EndpointMetrics, RequestRejection, WebhookOutcome};
pub(crate) use log::{MACHINE_FIELDS, ObjectEvent, has_line, log, log_event, shorten_text};
pub(crate) use metrics::{MEDIA_TYPE, Metrics, ProcessFacts, RolloutResult};
pub(crate) use object_events::{
    EventDraft, EventMessage, EventReason, EventRecord, EventRecorder, LosslessSubscription, RegardingObjects,
};
pub(crate) use object_statuses::{ObjectFilter, first_objects, object_status, objects};
pub(crate) use phase::{Blocker, PHASES, Phase, PhaseFacts, healthy_text};
#[cfg(test)]
pub(crate) use status::CommitStatus;
pub(crate) use status::{
    BoundUsage, DaemonStatus, ObjectStatus, ProcessStatus, QueuedWorkloadStatus, RolloutStatus,
    STATUS_VERSION, SourceStatus, SourceTimes, StatusContext, WorkloadRolloutStatus, status,
};
pub(crate) use status_author::{AUTHOR_KEY, AuthorCommand, StatusAuthor};
pub(crate) use status_summary::{MAX_NAMED_OBJECTS, RecordedObject, STATUS_KEY, STATUS_KEYS, StatusSummary};

pub(crate) use crate::render::ObjectRef;

use crate::engine::Reason;

pub(crate) use headline::{DaemonSummary, SILENCE_THRESHOLD, left_alone_count, silence_text};
pub(crate) use sd_notify::{ReloadCounts, ReloadOutcome, ServiceNotifier, StatusTopic, SystemdService};
pub(crate) use watchdog::{WatchdogGuard, start_watchdog};

/// The outcome of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It was made.
    Created,
    /// It was changed.
    Configured,
    /// It was changed, and taken from this owner.
    Adopted(Arc<str>),
    /// A foreign change was repaired: who made it, and in which fields.
    Repaired(Arc<str>),
    /// It is applied.
    Unchanged,
    /// It was deleted, as no source wants it.
    Pruned,
    /// It was deleted, to be made again.
    Recreating,
    /// It was made again.
    Recreated,
    /// It is applied, and not healthy yet.
    Unhealthy(String),
    /// It waits.
    Waiting(Reason),
    /// It is refused.
    Refused(Reason),
}

impl Outcome {
    /// Returns whether it is not applied. An object that is kept though nobody wants it counts as
    /// applied.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Waiting(reason) => !reason.is_requested(),
            Self::Refused(_) => true,
            Self::Created
            | Self::Configured
            | Self::Adopted(_)
            | Self::Repaired(_)
            | Self::Unchanged
            | Self::Pruned
            | Self::Recreating
            | Self::Recreated
            | Self::Unhealthy(_) => false,
        }
    }

    /// Returns the reason for which nothing is done, or not all; none where all was done.
    pub(crate) fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Waiting(reason) | Self::Refused(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns whether it waits for a guard that only a person can open.
    pub(crate) fn is_guarded(&self) -> bool {
        matches!(self, Self::Waiting(Reason::Confirm(_)))
    }
}

/// `created`, or `waiting: needs ConfigMap shop/env, which is not there yet`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created"),
            Self::Configured => f.write_str("configured"),
            Self::Adopted(owner) => write!(f, "configured: adopted from {owner}"),
            Self::Repaired(who) => write!(f, "configured: {who}; put back"),
            Self::Unchanged => f.write_str("unchanged"),
            Self::Pruned => f.write_str("pruned"),
            Self::Recreating => f.write_str("deleted, to be created again"),
            Self::Recreated => f.write_str("recreated"),
            Self::Unhealthy(health) => write!(f, "not healthy yet: {health}"),
            Self::Waiting(reason @ Reason::Kept(_)) => write!(f, "kept: {reason}"),
            Self::Waiting(reason @ (Reason::LeftAlone(_) | Reason::OptedOut(_))) => {
                write!(f, "left alone: {reason}")
            }
            Self::Waiting(reason @ Reason::Step(_)) => write!(f, "stepping: {reason}"),
            Self::Waiting(reason) => write!(f, "waiting: {reason}"),
            Self::Refused(reason @ Reason::Rejected(_)) => write!(f, "failed: {reason}"),
            Self::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}
