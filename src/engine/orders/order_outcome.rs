//! The outcomes of orders, with the values that each is about. `render` has the sentence of each,
//! and that sentence is what the inventory records.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::engine::facts::causes::reason_code::CauseCode;
use crate::engine::facts::records::release_unit::ReleaseUnit;
use crate::object::{ObjectId, Revision};

/// The outcome of an order, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnsweredOrder {
    /// The outcome.
    pub outcome: OrderOutcome,
    /// The giver of the order; empty where that is not said.
    pub by: Arc<str>,
}

/// In a trace it is its sentence.
impl Serialize for AnsweredOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrderOutcome {
    /// The rollout of this object goes on from this step.
    Promoted(ObjectId, u32),
    /// A unit under way goes back.
    Aborted(RejectedUnit),
    /// A unit goes back to an older content.
    Undone(UndoneUnit),
    /// Rejected content is tried again.
    Retried {
        /// The number of objects of its unit.
        objects: u32,
        /// The cause of the rejection, as the record has it.
        cause: Arc<str>,
    },
    /// Deletions are confirmed.
    Confirmed {
        /// The first of the objects.
        first: ObjectId,
        /// The number of the others.
        others: u32,
        /// The number of the named ones that are not pending.
        not_pending: u32,
    },
    /// Nothing was done.
    NothingDone(OrderObstacle),
}

impl OrderOutcome {
    /// Returns its code.
    pub(crate) const fn code(&self) -> CauseCode {
        match self {
            Self::Promoted(..) => CauseCode::StepPromoted,
            Self::Aborted(_) => CauseCode::RolloutAborted,
            Self::Undone(_) => CauseCode::RevisionUndone,
            Self::Retried { .. } => CauseCode::RejectionRetried,
            Self::Confirmed { .. } => CauseCode::DeletionsConfirmed,
            Self::NothingDone(_) => CauseCode::NothingDone,
        }
    }
}

/// A unit that a person rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RejectedUnit {
    /// The object that the order names.
    pub object: ObjectId,
    /// The revision of the unit.
    pub revision: Revision,
    /// The number of its objects.
    pub objects: u32,
}

impl RejectedUnit {
    /// Returns a unit by the object that an order names.
    pub(in crate::engine) fn of(unit: &ReleaseUnit, object: &ObjectId) -> Self {
        let objects = unit.members.len() as u32;
        Self { object: object.clone(), revision: unit.revision.clone(), objects }
    }
}

/// A unit that goes back to an older content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndoneUnit {
    /// The unit.
    pub unit: RejectedUnit,
    /// The content that it goes back to.
    pub target: UndoTarget,
    /// The objects that stay, as the older revision does not have them.
    pub kept: Vec<ObjectId>,
}

/// The content that an undo goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UndoTarget {
    /// The content of this revision.
    Of(Revision),
    /// The state before this revision.
    Before(Revision),
}

/// The cause for which an order had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrderObstacle {
    /// The object is none of the source of this name.
    ForeignObject(ObjectId, Arc<str>),
    /// No order has this name.
    UnknownOrder(Arc<str>),
    /// The object has no step to be promoted.
    NoStep(ObjectId),
    /// No rollout of the object is under way.
    NoRollout(ObjectId),
    /// The object shows no content of a revision.
    NoRevision(ObjectId),
    /// The earlier content of the object is not known.
    UnknownContent(ObjectId),
    /// The older revision cannot be had, for this reason.
    UnavailableRevision(Arc<str>),
    /// The older revision does not have the object.
    Lacking(ObjectId, Revision),
    /// The older revision has the object as it is now.
    Unchanged(ObjectId, Revision),
    /// The newest revision asks for the object as it is in the older revision.
    Desired(ObjectId, Revision),
    /// The newest revision asks for the object as it was before.
    DesiredBefore(ObjectId, UndoTarget),
    /// Nothing of the object was rejected.
    NothingRejected(ObjectId),
    /// Nothing that is named waits for its deletion in the source of this name.
    NothingPending(Arc<str>),
    /// More deletions of the source of this name would be under way than there may be.
    TooManyConfirmations(Arc<str>, u32),
}
