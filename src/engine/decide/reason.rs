//! The reason for each case in which nothing is done.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::decide::reason_payload::{
    ActiveHold, CurrentOwner, DependencyState, IncompleteSource, OversizedUnit, PauseSubject, RejectedContent,
};
use crate::engine::facts::causes::reason_code::{CauseCode, ReasonCode};
use crate::engine::facts::causes::refusal_cause::RefusalCause;
use crate::engine::facts::causes::retry_cause::RetryCause;
use crate::engine::{
    BudgetShortage, ManifestFault, PruneCause, ReconcilePolicy, StepWait, SurplusOutcome, WatchFault,
};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};

/// The reason for which an object is not changed now. `render` has the sentence of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The informer of a kind has not listed all yet, so absence means nothing.
    Syncing(GroupKind),
    /// The informer of a kind does not get through.
    Unobservable(GroupKind, WatchFault, ErrorClass),
    /// The inventory does not name the kind yet.
    Inventory(Arc<str>),
    /// The server has no such kind.
    Unserved(Gvk, Arc<[String]>),
    /// The server could not say whether it has the kind.
    UnknownKind(Gvk),
    /// It needs another object of the desired state that is not there yet.
    Needs(ObjectId, DependencyState),
    /// Objects of an earlier wave are not finished.
    Wave(i32, ObjectId),
    /// The rollout budget does not allow it now.
    Budget(BudgetShortage),
    /// Its claim on the rollout budget, or the record of its unit, is being written.
    Claiming,
    /// Its claim cannot be written before a person mends the rollout ledger.
    RecordUnreadable(Arc<str>),
    /// It is released together with a workload that has not begun to roll.
    UnitWorkload(ObjectId),
    /// Its rollout goes in steps; this is their state.
    Step(HeldStep),
    /// The content failed here, or a person undid or aborted it. It is not tried again before it
    /// changes.
    Rejected(RejectedContent),
    /// A person has paused it or its source, for the reason that is behind; empty where none was
    /// given.
    Paused(PauseSubject, Arc<str>),
    /// A person keeps it as it is for a time.
    OnHold(ActiveHold),
    /// The server refused it, or a webhook strips our label or annotation. The time until the next
    /// try; none if only other content can help.
    Refused(RefusalCause, Option<Duration>),
    /// Somebody else's object.
    Owned(CurrentOwner),
    /// It exists, and the policy is not to take over.
    NotAdopted,
    /// The manifest is not usable.
    Unusable(ManifestFault),
    /// The record of what is released together is larger than one may be. All that are released
    /// with it are refused for the same reason.
    Oversized(OversizedUnit),
    /// A chart made up its values, and this object of the Helm release has those of another render.
    Generated(ObjectId),
    /// It is being deleted.
    Terminating,
    /// The view is older than our own last write.
    OwnWrite,
    /// Its last try or lookup failed, or its record has no room yet.
    Retrying(RetryCause, Duration),
    /// Somebody undoes each repair, as this says.
    Fight(FightCause, Duration),
    /// Its content is in a revision that is being read.
    ReadingRevision(Arc<str>),
    /// The hash of a Secret has to be sealed in a record, or opened, and the key for that cannot be
    /// had.
    KeyUnavailable(Arc<str>),
    /// The data of an object are being read, as pods may have to be restarted for them.
    Reading(ObjectId),
    /// The source was not read completely, so it cannot be known whether the object is still
    /// wanted.
    Incomplete(IncompleteSource),
    /// It is no longer wanted, but is not deleted yet.
    Prune(PruneCause),
    /// It is no longer wanted, and is deleted only when a person confirms.
    Confirm(PruneCause),
    /// It is no longer wanted, and stays.
    Kept(PruneCause),
    /// Its annotation asks to leave it alone: always, or once it is there.
    LeftAlone(ReconcilePolicy),
    /// Somebody else's annotation on the live object asks to leave it alone.
    OptedOut(&'static str),
    /// The statements of the cluster's other sources are being read.
    ReadingPeers,
    /// The source is only observed.
    Observed,
}

impl Reason {
    /// Returns whether it remains until a person changes something: shown as refused, not as
    /// waiting.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused(..)
                | Self::Owned(_)
                | Self::NotAdopted
                | Self::Unusable(_)
                | Self::Oversized(_)
                | Self::Rejected(_)
                | Self::Generated(_)
        )
    }
}

impl Reason {
    /// Returns whether the object is as somebody asked for all the same: shown as at rest, not as
    /// waiting.
    pub(crate) fn is_requested(&self) -> bool {
        matches!(self, Self::Kept(_) | Self::LeftAlone(_) | Self::OptedOut(_))
    }
}

impl Reason {
    /// Returns the object that is reported, where it is one reason for many.
    pub(crate) fn representative(&self) -> Option<&ObjectId> {
        match self {
            Self::Oversized(unit) => Some(&unit.workload),
            _ => None,
        }
    }
}

impl Reason {
    /// Returns its code, for machines.
    pub(crate) const fn code(&self) -> ReasonCode {
        match self {
            Self::Syncing(_) => ReasonCode::WaitingForFirstList,
            Self::Unobservable(..) => ReasonCode::WatchFailed,
            Self::Inventory(_) => ReasonCode::WaitingForInventory,
            Self::Unserved(..) => ReasonCode::KindNotServed,
            Self::UnknownKind(_) => ReasonCode::KindUnknown,
            Self::Needs(..) => ReasonCode::WaitingForDependency,
            Self::Wave(..) => ReasonCode::WaitingForWave,
            Self::Budget(_) => ReasonCode::WaitingForBudget,
            Self::Claiming => ReasonCode::WritingClaim,
            Self::RecordUnreadable(_) => ReasonCode::RecordUnreadable,
            Self::UnitWorkload(_) => ReasonCode::WaitingForUnit,
            Self::Step(_) => ReasonCode::StepInProgress,
            Self::Rejected(_) => ReasonCode::ContentRejected,
            Self::Paused(..) => ReasonCode::Paused,
            Self::OnHold(_) => ReasonCode::OnHold,
            Self::Refused(..) => ReasonCode::RefusedByServer,
            Self::Owned(_) => ReasonCode::OwnedByOther,
            Self::NotAdopted => ReasonCode::NotAdopted,
            Self::Unusable(_) => ReasonCode::ManifestUnusable,
            Self::Oversized(_) => ReasonCode::UnitTooLarge,
            Self::Generated(_) => ReasonCode::GeneratedValuesMismatch,
            Self::Terminating => ReasonCode::Terminating,
            Self::OwnWrite => ReasonCode::WaitingForWatch,
            Self::Retrying(..) => ReasonCode::Retrying,
            Self::Fight(..) => ReasonCode::CompetingWriter,
            Self::ReadingRevision(_) => ReasonCode::ReadingRevision,
            Self::KeyUnavailable(_) => ReasonCode::KeyUnavailable,
            Self::Reading(_) => ReasonCode::ReadingObject,
            Self::Incomplete(_) => ReasonCode::SourceIncomplete,
            Self::Prune(_) => ReasonCode::PruneDeferred,
            Self::Confirm(_) => ReasonCode::PruneNeedsConfirmation,
            Self::Kept(_) => ReasonCode::Kept,
            Self::LeftAlone(_) => ReasonCode::LeftAlone,
            Self::OptedOut(_) => ReasonCode::OptedOut,
            Self::ReadingPeers => ReasonCode::ReadingOtherSources,
            Self::Observed => ReasonCode::SourceObserved,
        }
    }

    /// Returns the code of the cause that is inside; none where the reason says all.
    pub(crate) fn cause_code(&self) -> Option<CauseCode> {
        match self {
            Self::Needs(_, state) => Some(state.code()),
            Self::Budget(shortage) => Some(shortage.code()),
            Self::Step(step) => Some(step.code()),
            Self::Rejected(rejected) => Some(rejected.code()),
            Self::OnHold(hold) => hold.withheld.code(),
            Self::Unobservable(_, fault, _) => fault.code(),
            Self::Unusable(fault) => fault.code(),
            Self::Refused(cause, _) => cause.code(),
            Self::Retrying(cause, _) => cause.code(),
            Self::Incomplete(IncompleteSource::Incomplete(cause)) => cause.code(),
            Self::Incomplete(IncompleteSource::Unrendered(_)) => Some(CauseCode::RootNotRendered),
            Self::Owned(owner) => Some(owner.code()),
            Self::Fight(FightCause::Changes(_), _) => Some(CauseCode::FieldsChanged),
            Self::Fight(FightCause::Deletions, _) => Some(CauseCode::ObjectDeleted),
            Self::Prune(cause) | Self::Confirm(cause) | Self::Kept(cause) => Some(cause.code()),
            Self::LeftAlone(ReconcilePolicy::OnlyCreate) => Some(CauseCode::OnlyCreated),
            Self::LeftAlone(_) => Some(CauseCode::ReconcileDisabled),
            _ => None,
        }
    }
}

/// The way in which somebody undoes each repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FightCause {
    /// These field managers change the same fields; none where they are not known.
    Changes(Arc<[Arc<str>]>),
    /// Somebody deletes the object each time it is made.
    Deletions,
}

/// A step that holds a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeldStep {
    /// Its pods are not all ready, and this may be why no more are replaced.
    Pods(StepWait, Option<StepObstacle>),
    /// All nodes that are Ready have the new pod, and this one is not Ready.
    LostNode(Arc<str>),
    /// A scale gave the new template more pods than the step allows.
    Surplus(SurplusOutcome),
}

impl HeldStep {
    /// Returns its code.
    pub(crate) const fn code(&self) -> CauseCode {
        match self {
            Self::Pods(..) => CauseCode::StepPodsPending,
            Self::LostNode(_) => CauseCode::NodeNotReady,
            Self::Surplus(_) => CauseCode::SurplusPods,
        }
    }
}

/// The reason for which no more pods of a step are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepObstacle {
    /// The budget is short, or a person has paused it.
    Reason(Box<Reason>),
    /// The eviction of a pod was refused.
    EvictionRefused {
        /// The pod.
        pod: Arc<str>,
        /// Its node.
        node: Arc<str>,
        /// The words of the API server.
        message: Arc<str>,
    },
    /// No pod may be evicted, and which right is missing.
    EvictionDenied(Arc<str>),
    /// The nodes cannot be read, for this reason.
    UnreadableNodes(Arc<str>),
    /// The nodes are being listed.
    UnlistedNodes,
}
