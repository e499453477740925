//! The causes of the prune guard's decisions, with the values that each is about. `render` has the
//! sentence of each.

use std::sync::Arc;

use crate::engine::facts::causes::reason_code::CauseCode;
use crate::engine::{AllowViolation, IncompleteCause, LossyKind};
use crate::health::Health;
use crate::object::{GroupKind, ObjectId};

/// The cause for which an object that no source wants is not deleted, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PruneCause {
    /// This object is kept, and uses it.
    UsedByKept(ObjectId),
    /// Its source may not have it.
    NotAllowed(DisallowedObject),
    /// An annotation asks to keep it.
    Annotated,
    /// No seal proves that we made it.
    Unproven,
    /// A root that does not render may want it.
    Unrendered(BlockingRoot),
    /// Another source wants it, or may. That may pass by itself.
    WithheldForNow(WithheldCause),
    /// Another source wants it, or may, and has for long.
    Withheld(WithheldCause),
    /// The inventory was made from this other location.
    OtherLocation(Arc<str>),
    /// The deletion of an object of this kind loses data, or takes others along.
    DataLoss(LossyKind),
    /// An annotation asks for a confirmation.
    ConfirmationRequested,
    /// Not all that is to be kept is known.
    UnknownKept,
    /// Too many objects would go at once.
    BlastRadius {
        /// The number of objects that would go, also of those that only their own annotations keep.
        count: u32,
        /// The number of all objects.
        total: u32,
    },
    /// All objects of a kind would go, so many.
    AllOfKind(GroupKind, u32),
    /// A change of the same unit is not finished.
    Unfinished(ObjectId, ChangeMilestone),
    /// This object goes first, as it uses it.
    UsedBy(ObjectId),
    /// Nothing is pruned by the policy.
    PolicyOff,
    /// Single files were given.
    NotInFiles,
    /// Seals cannot be checked, for this reason.
    UncheckedSeals(Arc<str>),
    /// The key of the seals is being read.
    UnreadKey,
    /// The source of this name may want it, and is looked at again.
    UnobservedSource(Arc<str>),
    /// It is not known of this file whether this kind is namespaced.
    UnscopedFile(Arc<str>, GroupKind),
    /// The source was not read completely, for this cause.
    Incomplete(IncompleteCause),
    /// The inventory is being read.
    UnreadInventory,
    /// The other folders of the repository are searched for what left this one.
    UnsearchedFolders,
    /// The inventory does not record this revision yet.
    UnrecordedRevision(Arc<str>),
    /// The kind cannot be listed.
    UnlistedKind(GroupKind),
    /// The server did not list the kind when charts were rendered.
    UnrenderedKind(GroupKind),
    /// The content of this object is being read.
    UnreadContent(ObjectId),
    /// Other sources have so many seconds to take it over.
    TakeoverPeriod(u64),
    /// The guard has not decided yet.
    Undecided,
}

impl PruneCause {
    /// Returns its code.
    pub(crate) const fn code(&self) -> CauseCode {
        match self {
            Self::UsedByKept(_) => CauseCode::UsedByKept,
            Self::NotAllowed(_) => CauseCode::NotAllowed,
            Self::Annotated => CauseCode::KeptByAnnotation,
            Self::Unproven => CauseCode::Unproven,
            Self::Unrendered(_) => CauseCode::RootNotRendered,
            Self::WithheldForNow(cause) | Self::Withheld(cause) => match cause {
                WithheldCause::Peer(..) => CauseCode::WantedByOther,
                WithheldCause::Moved(_) => CauseCode::MovedInRepository,
            },
            Self::OtherLocation(_) => CauseCode::OtherLocation,
            Self::DataLoss(_) => CauseCode::LosesData,
            Self::ConfirmationRequested => CauseCode::ConfirmationRequested,
            Self::UnknownKept => CauseCode::KeptListIncomplete,
            Self::BlastRadius { .. } => CauseCode::BlastRadius,
            Self::AllOfKind(..) => CauseCode::AllOfKind,
            Self::Unfinished(..) => CauseCode::UnitUnfinished,
            Self::UsedBy(_) => CauseCode::UsedByPruned,
            Self::PolicyOff => CauseCode::PruneOff,
            Self::NotInFiles => CauseCode::NotInFiles,
            Self::UncheckedSeals(_) => CauseCode::SealsUnchecked,
            Self::UnreadKey => CauseCode::SealKeyUnread,
            Self::UnobservedSource(_) => CauseCode::SourceNotObserved,
            Self::UnscopedFile(..) => CauseCode::ScopeUnknown,
            Self::Incomplete(_) => CauseCode::SourceNotRead,
            Self::UnreadInventory => CauseCode::InventoryUnread,
            Self::UnsearchedFolders => CauseCode::FoldersUnsearched,
            Self::UnrecordedRevision(_) => CauseCode::RevisionUnrecorded,
            Self::UnlistedKind(_) | Self::UnrenderedKind(_) => CauseCode::KindNotListed,
            Self::UnreadContent(_) => CauseCode::ContentUnread,
            Self::TakeoverPeriod(_) => CauseCode::TakeoverPeriod,
            Self::Undecided => CauseCode::NotDecided,
        }
    }
}

/// The milestone that a change of the same unit has not reached, as a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeMilestone {
    /// Its content is written.
    Changed,
    /// Its pods are restarted.
    Restarted,
    /// Its pods are replaced.
    RolledOut,
    /// It is healthy. Holds its health, which is another.
    Healthy(Health),
}

/// The cause for which a deletion is withheld for the sake of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WithheldCause {
    /// The source of this name wants it, or may.
    Peer(Arc<str>, PeerInterest),
    /// Another folder of the repository has it, or may.
    Moved(PossibleMove),
}

impl WithheldCause {
    /// Returns the source that wants it, or may.
    pub(crate) fn source(&self) -> Option<&str> {
        match self {
            Self::Peer(name, _) => Some(name),
            Self::Moved(_) => None,
        }
    }
}

/// The way in which another folder of the repository may have an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PossibleMove {
    /// This file of it names the object now.
    Named(Arc<str>),
    /// Its files cannot be read, for this reason.
    Unreadable(Arc<str>),
}

/// An object that its source may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DisallowedObject {
    /// The rule that it breaks.
    pub violation: AllowViolation,
    /// The step of its rollout that it stays in.
    pub step: Option<u32>,
}

/// A root that does not render, and its relation to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockingRoot {
    /// Its folder.
    pub folder: Arc<str>,
    /// The relation.
    pub relation: RootRelation,
}

/// The relation of a root that does not render to an object that it may want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootRelation {
    /// Nobody knows where the object came from.
    UnknownOrigin,
    /// The object came from it.
    Origin,
    /// Its text does not rule the name of the object out.
    PossibleName,
}

/// The interest that another source has in an object, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerInterest {
    /// It requests the object by name.
    Requested,
    /// It requests more objects than it names.
    Unlisted,
    /// Its statement cannot be read, for this reason.
    Unreadable(Arc<str>),
    /// It was not read completely.
    Incomplete,
    /// It is of the same repository, and was not read completely.
    IncompleteOfSame,
    /// It is of the same repository, and has read this other revision.
    Elsewhere(Arc<str>),
    /// It was not observed since the object was given up.
    Unobserved,
    /// It was asked to observe, and has not answered.
    Unanswered,
}
