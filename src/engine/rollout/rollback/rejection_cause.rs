//! The causes of rejections, with the values that each is about. `render` has the sentence of each,
//! and that sentence is what the inventory records.

use std::sync::Arc;

use crate::engine::RefusalCause;
use crate::engine::facts::changed_data::ChangedData;
use crate::object::{ObjectId, Revision};

/// The cause for which a unit is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RejectionCause {
    /// A person aborted the rollout of this revision. The giver of the order is behind; empty where
    /// that is not said.
    Aborted(Revision, Arc<str>),
    /// A person undid this revision. The giver of the order is behind.
    Undone(Revision, Arc<str>),
    /// The rollout of a workload failed.
    RolloutFailed(FailedRelease),
    /// The rollout of a workload failed. The server refuses this object, for which the newer content
    /// of the workload waits or which is the workload itself, for this cause.
    NewerRefused(FailedRelease, ObjectId, RefusalCause),
}

/// A release whose rollout failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedRelease {
    /// The change that it brought.
    pub change: FailedChange,
    /// The workload.
    pub workload: ObjectId,
    /// The data for which its pods were restarted; none where they were not.
    pub restarted_for: Option<ChangedData>,
    /// The reason, as it was reported, with what Events say.
    pub why: Arc<str>,
}

/// The change that a failed release brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailedChange {
    /// This revision.
    Revision(Revision),
    /// This revision, and the data that failed are not in git.
    RevisionWithForeignData(Revision),
    /// Data that are not in git, and no revision.
    ForeignData,
}

/// The cause for which a unit does not go back, or not farther.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RollbackObstacle {
    /// The older content of this workload fails too, for this reason.
    Failed(ObjectId, Arc<str>),
    /// The server refuses the older content of this workload, for this cause.
    Refused(ObjectId, RefusalCause),
    /// This object in this revision cannot be read any more.
    Unreadable(ObjectId, Revision),
    /// This object in this revision is of another source, and not in the repository of this one.
    UnreadableHere(ObjectId, Revision),
    /// The earlier content of this object is not known.
    UnknownContent(ObjectId),
    /// The record of this object is sealed by a key that is not known.
    UnknownKey(ObjectId),
    /// The object is back at this revision, which a dry run does not read.
    BackAtUnread(Revision),
    /// The object goes back to this revision, which a dry run does not read.
    BoundForUnread(Revision),
}
