//! The values inside reasons: ids, numbers and states. `render` has the words of each.

use std::sync::Arc;

use jiff::Timestamp;

use crate::engine::facts::causes::reason_code::CauseCode;
use crate::engine::facts::causes::refusal_cause::RefusalCause;
use crate::engine::{BlockingRoot, IncompleteCause, ManifestFault};
use crate::health::Health;
use crate::object::ObjectId;

/// The state in which a needed object is, as a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DependencyState {
    /// It does not exist.
    Missing,
    /// It does not exist, and no source names it.
    Unnamed,
    /// It is being deleted.
    Deleting,
    /// It is there, and not healthy.
    Unhealthy(Health),
    /// It does not show its newest content.
    Unchanged,
    /// Its pods are being replaced.
    RollingOut,
    /// Its pods are replaced, and are watched for a while.
    Soaking,
    /// It is to be rolled back before.
    RollingBack,
    /// The server refuses it, for this cause.
    Refused(RefusalCause),
    /// Its manifest cannot be used, for this reason.
    Unusable(ManifestFault),
    /// Several manifests want it.
    Contested,
    /// A person has paused it.
    Paused,
}

impl DependencyState {
    /// Returns its code.
    pub(crate) const fn code(&self) -> CauseCode {
        match self {
            Self::Missing => CauseCode::NotFound,
            Self::Unnamed => CauseCode::NotNamed,
            Self::Deleting => CauseCode::BeingDeleted,
            Self::Unhealthy(_) => CauseCode::Unhealthy,
            Self::Unchanged => CauseCode::NotChanged,
            Self::RollingOut => CauseCode::RollingOut,
            Self::Soaking => CauseCode::Soaking,
            Self::RollingBack => CauseCode::RollingBack,
            Self::Refused(_) => CauseCode::DependencyRefused,
            Self::Unusable(_) => CauseCode::DependencyUnusable,
            Self::Contested => CauseCode::DependencyContested,
            Self::Paused => CauseCode::DependencyPaused,
        }
    }
}

/// The cause for which a source may still want an object that it brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IncompleteSource {
    /// The source was not read completely, for this cause.
    Incomplete(IncompleteCause),
    /// A root of it does not render, and may want the object.
    Unrendered(BlockingRoot),
}

/// A unit whose record would be larger than one may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OversizedUnit {
    /// The workload of it that asks first.
    pub workload: ObjectId,
    /// The number of its objects.
    pub objects: u32,
    /// The kilobytes of its record.
    pub used: u32,
    /// The kilobytes that there may be.
    pub limit: u32,
}

/// The owner of an object that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CurrentOwner {
    /// The source of this name.
    Source(Arc<str>),
    /// The source of this name, which no longer wants it.
    FormerSource(Arc<str>),
    /// The `ApplySet` of this id.
    ApplySet(Arc<str>),
    /// A controller or another tool, in words that name it.
    Tool(Arc<str>),
}

impl CurrentOwner {
    /// Returns its code.
    pub(crate) const fn code(&self) -> CauseCode {
        match self {
            Self::Source(_) => CauseCode::OwnedBySource,
            Self::FormerSource(_) => CauseCode::OwnedByFormerSource,
            Self::ApplySet(_) => CauseCode::OwnedByApplySet,
            Self::Tool(_) => CauseCode::OwnedByTool,
        }
    }

    /// Returns its name alone.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Source(name) | Self::FormerSource(name) | Self::ApplySet(name) | Self::Tool(name) => name,
        }
    }
}

/// The subject of a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PauseSubject {
    /// The object itself.
    Object,
    /// The source of this name.
    Source(Arc<str>),
}

/// The write that a hold keeps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithheldWrite {
    /// There is nothing to write.
    Nothing,
    /// A repair.
    Repair,
    /// A newer content.
    Content,
    /// A deletion.
    Deletion,
}

impl WithheldWrite {
    /// Returns its code; none where nothing is kept back.
    pub(crate) const fn code(self) -> Option<CauseCode> {
        match self {
            Self::Nothing => None,
            Self::Repair => Some(CauseCode::RepairWithheld),
            Self::Content => Some(CauseCode::ContentWithheld),
            Self::Deletion => Some(CauseCode::DeletionWithheld),
        }
    }
}

/// A hold that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActiveHold {
    /// Its end.
    pub until: Option<Timestamp>,
    /// The reason that the person gave.
    pub reason: Arc<str>,
    /// The write that it keeps back.
    pub withheld: WithheldWrite,
}

/// The content that an object with a rejection has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RejectionOutcome {
    /// It stays as it is.
    Quarantined,
    /// Its content stays that of this revision.
    Unaffected(Arc<str>),
    /// It is back at this revision.
    RolledBack(Arc<str>),
    /// It is back at this revision, which cannot be read any more.
    Unreadable(Arc<str>),
}

/// A content that failed, or that a person undid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RejectedContent {
    /// The cause, as the record of the source has it.
    pub cause: Arc<str>,
    /// The content in its place.
    pub outcome: RejectionOutcome,
}

impl RejectedContent {
    /// Returns its code.
    pub(crate) const fn code(&self) -> CauseCode {
        match self.outcome {
            RejectionOutcome::Quarantined => CauseCode::ContentQuarantined,
            RejectionOutcome::Unaffected(_) => CauseCode::ContentUnaffected,
            RejectionOutcome::RolledBack(_) => CauseCode::ContentRolledBack,
            RejectionOutcome::Unreadable(_) => CauseCode::RollbackUnreadable,
        }
    }

    /// Returns the revision of the content in its place.
    pub(crate) fn revision(&self) -> Option<&str> {
        match &self.outcome {
            RejectionOutcome::Quarantined => None,
            RejectionOutcome::Unaffected(revision)
            | RejectionOutcome::RolledBack(revision)
            | RejectionOutcome::Unreadable(revision) => Some(revision),
        }
    }
}
