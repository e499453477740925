//! The reason for each case in which nothing is done.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::{BudgetShortage, ReconcilePolicy};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};

/// The reason for which an object is not changed now. Each reaches the user in these words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The informer of a kind has not listed all yet, so absence means nothing.
    Syncing(GroupKind),
    /// The informer of a kind does not get through.
    Blind(GroupKind, Arc<str>, ErrorClass),
    /// The inventory's parent does not name the kind yet.
    Inventory(Arc<str>),
    /// The server has no such kind.
    Unserved(Gvk, Arc<[String]>),
    /// The server could not say whether it has the kind.
    UnknownKind(Gvk),
    /// It needs another object of the desired state that is not there yet.
    Needs(ObjectId, Arc<str>),
    /// Objects of an earlier wave are not finished.
    Wave(i32, ObjectId),
    /// The rollout budget does not allow it now.
    Budget(BudgetShortage),
    /// Its claim on the rollout budget is being written.
    Claiming,
    /// Its claim cannot be written before a person mends the budget object.
    Unrecorded(Arc<str>),
    /// It is released together with a workload that has not begun to roll.
    Unit(ObjectId),
    /// Its pods are replaced in steps, one after another, and this is how that stands.
    Step(Arc<str>),
    /// The content failed here, and is not tried again before it changes.
    Rejected(Arc<str>),
    /// A person has paused it.
    Paused(Arc<str>),
    /// A person keeps it as it is for a time.
    OnHold(Arc<str>),
    /// The server refused it; the time until the next try, or none if only other content can help.
    Refused(Arc<str>, Option<Duration>),
    /// Somebody else's object.
    Owned(Arc<str>),
    /// It exists, and the policy is not to take over.
    NotAdopted,
    /// The manifest is not usable.
    Held(Arc<str>),
    /// The record of what is released together with this workload is larger than one may be. All
    /// that are released with it are refused for the same reason.
    Oversized(ObjectId, Arc<str>),
    /// It is being deleted.
    Terminating,
    /// The view is older than our own last write.
    OwnWrite,
    /// It is being written, or its last try failed a moment ago.
    Retrying(Arc<str>, Duration),
    /// Another writer changes the same fields again and again.
    Fight(Arc<str>, Duration),
    /// Its content is in a revision that is being read.
    Resolving(Arc<str>),
    /// The hash of a Secret has to be sealed in a record, or opened, and the key for that cannot be
    /// had.
    Sealed(Arc<str>),
    /// The data of an object are being read, as pods may have to be restarted for them.
    Reading(ObjectId),
    /// The source was not read whole, so it cannot be told whether the object is still wanted.
    Incomplete(Arc<str>),
    /// It is not wanted any more, but is not deleted yet.
    Prune(Arc<str>),
    /// It is not wanted any more, and is deleted only when a person confirms.
    Confirm(Arc<str>),
    /// It is not wanted any more, and stays.
    Kept(Arc<str>),
    /// Its annotation asks to leave it alone: always, or once it is there.
    LeftAlone(ReconcilePolicy),
    /// Somebody else's annotation on the live object asks to leave it alone.
    OptedOut(&'static str),
    /// The statements of the cluster's other sources are being read.
    Others,
    /// The source is only observed.
    Observed,
}

impl Reason {
    /// Returns whether it stands until a person changes something: shown as refused, not as
    /// waiting.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused(..)
                | Self::Owned(_)
                | Self::NotAdopted
                | Self::Held(_)
                | Self::Oversized(..)
                | Self::Rejected(_)
        )
    }
}

impl Reason {
    /// Returns whether the object is as somebody asked for all the same: shown as at rest, not as
    /// waiting.
    pub fn is_as_asked(&self) -> bool {
        matches!(self, Self::Kept(_) | Self::LeftAlone(_) | Self::OptedOut(_))
    }
}

impl Reason {
    /// Returns the object of which it is told, where it is one reason for many.
    pub fn representative(&self) -> Option<&ObjectId> {
        match self {
            Self::Oversized(first, _) => Some(first),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syncing(kind) => write!(f, "the first list of {kind} is not complete"),
            Self::Blind(kind, why, _) => write!(f, "{kind} cannot be watched: {why}"),
            Self::Inventory(name) => write!(f, "the inventory ConfigMap {name} is being written"),
            Self::Unserved(gvk, others) => {
                write!(f, "the server has no kind {gvk}")?;
                if others.is_empty() { Ok(()) } else { write!(f, " (it has {})", others.join(", ")) }
            }
            Self::UnknownKind(gvk) => write!(f, "the server cannot tell whether it has {gvk} now"),
            Self::Needs(id, why) => write!(f, "needs {id}, which {why}"),
            Self::Wave(wave, id) => write!(f, "wave {wave} is not finished: {id}"),
            Self::Budget(shortage) => shortage.fmt(f),
            Self::Claiming => f.write_str("its claim on the rollout budget is being written"),
            Self::Unit(id) => write!(f, "it is released together with {id}, which has not begun to roll"),
            Self::Owned(owner) => write!(f, "it belongs to {owner}"),
            Self::NotAdopted => f.write_str("it exists, was not made by this source, and adopt is `never`"),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::OwnWrite => f.write_str("our own last write has not come back yet"),
            Self::Retrying(why, after) => write!(f, "{why}; tried again in {}", seconds(*after)),
            Self::Fight(who, after) => {
                write!(
                    f,
                    "{who} changes the same fields again and again; repaired again in {}",
                    seconds(*after)
                )
            }
            Self::Resolving(revision) => write!(f, "its content in revision {revision} is being read"),
            Self::Sealed(why) => {
                write!(f, "what is recorded of Secrets is sealed, and the key for that cannot be had: {why}")
            }
            Self::Reading(id) => write!(f, "what is in {id} is being read"),
            Self::Incomplete(why) => write!(f, "the source was not read whole: {why}"),
            Self::Refused(why, _)
            | Self::Unrecorded(why)
            | Self::Held(why)
            | Self::Oversized(_, why)
            | Self::Step(why)
            | Self::Rejected(why)
            | Self::Paused(why)
            | Self::OnHold(why)
            | Self::Prune(why)
            | Self::Kept(why) => f.write_str(why),
            Self::LeftAlone(ReconcilePolicy::OnlyCreate) => {
                f.write_str("its annotation asks only to create it, and it is there")
            }
            Self::LeftAlone(_) => f.write_str("its annotation asks not to reconcile it"),
            Self::OptedOut(word) => {
                write!(f, "somebody put {word} on it: it is neither changed nor repaired")
            }
            Self::Confirm(why) => write!(f, "{why}; see `rhumb prune list`"),
            Self::Others => f.write_str("what the other sources of the cluster want is being read"),
            Self::Observed => f.write_str("the source is only observed"),
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
