//! What is told to the outside.
//!
//! Owns [`Told`], the past tense of every decision; the log lines of that, and of what happens beside it ([`log()`]);
//! [`Notice`], what happened, with the [`Recorder`] from which all take it who are told as it happens; [`Phase`], where
//! an object stands, in one word; [`Status`], where everything stands, and [`Stand`], the same of one source in a few
//! lines; [`Metrics`]; what the service manager is told ([`Service`]), with one line of where everything stands
//! ([`Summary`]); what is counted of those who ask ([`Doors`]); and the [`watchdog()`].
//!
//! **Invariant:** decides nothing.

mod compared;
mod conditions;
mod doors;
mod log;
mod metrics;
mod notice;
mod notify;
mod phase;
mod stand;
mod status;
mod summary;
mod watchdog;

use std::fmt;
use std::sync::Arc;

pub use compared::{Compared, Differing};
pub use conditions::{Left, Standing, deletions_wait, is_ready, source_conditions};
pub use doors::{Doors, Heard, Unanswered};
pub use log::{MACHINE_FIELDS, Tale, brief, has_line, log, log_notice};
pub use metrics::{Ended, MEDIA_TYPE, Metrics, Process};
pub use notice::{Draft, Followed, HAPPENINGS, Happening, Notice, Notices, Recorder, Regarding};
pub use phase::{Obstacle, PHASES, Phase, PhaseFacts, well_words};
pub use stand::{NAMED, RecordedObject, STATUS, Stand};
pub use status::{
    Beside, CommitStatus, Filter, Named, ObjectStatus, ProcessStatus, QueueStatus, RollStatus, RolloutStatus,
    Share, SourceStatus, SourceTimes, Status, VERSION, first_objects, object_of, objects, status,
};

use crate::engine::Reason;

pub use notify::{Notifier, Reload, Reloads, Service, Topic};
pub use summary::{Following, SILENCE, Summary, server_is_silent};
pub use watchdog::{NotWatched, watchdog};

/// What is told of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It was made.
    Created,
    /// It was changed.
    Configured,
    /// What somebody else had changed was put back: who, and what.
    Repaired(Arc<str>),
    /// It is as wanted.
    Unchanged,
    /// It was deleted, as no source wants it.
    Pruned,
    /// It was deleted, to be made again.
    Recreating,
    /// It was made again.
    Recreated,
    /// It is as wanted, and not healthy yet.
    Unhealthy(String),
    /// It waits.
    Waiting(Reason),
    /// It is refused.
    Refused(Reason),
}

impl Told {
    /// Whether it is not as wanted. What is kept though nobody wants it is as it was asked for.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Waiting(reason) => !reason.is_as_asked(),
            Self::Refused(_) => true,
            Self::Created
            | Self::Configured
            | Self::Repaired(_)
            | Self::Unchanged
            | Self::Pruned
            | Self::Recreating
            | Self::Recreated
            | Self::Unhealthy(_) => false,
        }
    }

    /// Whether a guard that only a person can open holds it up.
    pub fn is_guarded(&self) -> bool {
        matches!(self, Self::Waiting(Reason::Confirm(_)))
    }
}

/// `created`, or `waiting: needs ConfigMap shop/env, which is not there yet`.
impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created"),
            Self::Configured => f.write_str("configured"),
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
