//! The reason for each case in which nothing is done.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::decide::reason_code::{CauseCode, ReasonCode};
use crate::engine::decide::reason_payload::{
    ActiveHold, CurrentOwner, DependencyState, HeldStep, PauseSubject, RejectedContent,
};
use crate::engine::{BudgetShortage, PruneCause, ReconcilePolicy};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};

/// The reason for which an object is not changed now. Each reaches the user in these words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The informer of a kind has not listed all yet, so absence means nothing.
    Syncing(GroupKind),
    /// The informer of a kind does not get through.
    Unobservable(GroupKind, Arc<str>, ErrorClass),
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
    Refused(Arc<str>, Option<Duration>),
    /// Somebody else's object.
    Owned(CurrentOwner),
    /// It exists, and the policy is not to take over.
    NotAdopted,
    /// The manifest is not usable.
    Unusable(Arc<str>),
    /// The record of what is released together with this workload is larger than one may be. All
    /// that are released with it are refused for the same reason.
    Oversized(ObjectId, Arc<str>),
    /// A chart made up its values, and this object of the Helm release has those of another render.
    Generated(ObjectId),
    /// It is being deleted.
    Terminating,
    /// The view is older than our own last write.
    OwnWrite,
    /// Its last try or lookup failed, or its record has no room yet.
    Retrying(Arc<str>, Duration),
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
    Incomplete(Arc<str>),
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
                | Self::Oversized(..)
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
            Self::Oversized(first, _) => Some(first),
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
            Self::Oversized(..) => ReasonCode::UnitTooLarge,
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
    /// These writers change the same fields.
    Changes(Arc<str>),
    /// Somebody deletes the object each time it is made.
    Deletions,
}

impl fmt::Display for FightCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changes(who) => {
                write!(f, "{who} keeps changing the same fields: stop it, or leave these fields to it")
            }
            Self::Deletions => f.write_str(
                "somebody deletes it each time it is made: stop that, or take it out of the source",
            ),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syncing(kind) => write!(f, "waiting for the first list of {kind}"),
            Self::Unobservable(kind, why, _) => write!(f, "{kind} cannot be watched: {why}"),
            Self::Inventory(name) => write!(f, "the inventory ConfigMap {name} is being written"),
            Self::Unserved(gvk, others) => {
                write!(f, "the server has no kind {gvk}")?;
                if others.is_empty() { Ok(()) } else { write!(f, " (it has {})", others.join(", ")) }
            }
            Self::UnknownKind(gvk) => write!(f, "the API server cannot say now whether it serves {gvk}"),
            Self::Needs(id, why) => write!(f, "needs {id}, which {why}"),
            Self::Wave(wave, id) => write!(f, "wave {wave} is not finished: {id}"),
            Self::Budget(shortage) => shortage.fmt(f),
            Self::Claiming => f.write_str("its claim on the rollout budget is being written"),
            Self::UnitWorkload(id) => write!(f, "it is released together with {id}, which has not started to roll out"),
            Self::Owned(owner) => write!(f, "it belongs to {owner}"),
            Self::NotAdopted => f.write_str("it exists already, this source did not create it, and adopt is `never`; `adopt: if-unowned` takes it over"),
            Self::Generated(other) => write!(
                f,
                "its generated values would not fit those of {other}, which another render made: restore it, or delete \
                 all objects of the release with generated values"
            ),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::OwnWrite => f.write_str("waiting for the watch to show rhumb's last write"),
            Self::Retrying(why, after) => write!(f, "{why}; retry in {}", seconds(*after)),
            Self::Fight(cause, after) => write!(f, "{cause}; next repair in {}", seconds(*after)),
            Self::ReadingRevision(revision) => write!(f, "reading its content from revision {revision}"),
            Self::KeyUnavailable(why) => {
                write!(f, "the recorded hashes of Secrets are sealed, and the key is not available: {why}")
            }
            Self::Reading(id) => write!(f, "reading {id}, whose data its pods use"),
            Self::Incomplete(why) => write!(f, "the source was not read completely: {why}"),
            Self::Refused(why, _)
            | Self::RecordUnreadable(why)
            | Self::Unusable(why)
            | Self::Oversized(_, why) => f.write_str(why),
            Self::Step(step) => write!(f, "{step}"),
            Self::Rejected(rejected) => write!(f, "{rejected}"),
            Self::Paused(subject, why) if why.is_empty() => write!(f, "{subject} is paused"),
            Self::Paused(subject, why) => write!(f, "{subject} is paused: {why}"),
            Self::OnHold(hold) => write!(f, "{hold}"),
            Self::Prune(cause) | Self::Kept(cause) => write!(f, "{cause}"),
            Self::LeftAlone(ReconcilePolicy::OnlyCreate) => {
                f.write_str("its annotation asks to create it only if it is missing, and it exists")
            }
            Self::LeftAlone(_) => f.write_str("its annotation asks not to reconcile it"),
            Self::OptedOut(word) => {
                write!(f, "{word} is set on the live object: it is neither changed nor repaired until that is removed")
            }
            Self::Confirm(cause) => write!(f, "{cause}; see `rhumb prune list`"),
            Self::ReadingPeers => f.write_str("reading what other sources of the cluster want"),
            Self::Observed => f.write_str("the source has `observe: true`, so nothing is written"),
        }
    }
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}
