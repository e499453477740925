//! The causes of the prune guard's decisions, with the values that each is about.

use std::fmt;
use std::sync::Arc;

use crate::engine::decide::reason_code::CauseCode;
use crate::engine::facts::release_seal::UNPROVEN_REASON;
use crate::engine::restart::config_restart::CONFIG_KEY_SECRET_NAME;
use crate::object::{GroupKind, ObjectId};

/// The cause for which an object that no source wants is not deleted, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PruneCause {
    /// This object is kept, and uses it.
    UsedByKept(ObjectId),
    /// Its source may not have it, as these words say.
    NotAllowed(Arc<str>),
    /// An annotation asks to keep it.
    Annotated,
    /// No seal proves that we made it.
    Unproven,
    /// A root that does not render may want it, as these words say.
    Unrendered(Arc<str>),
    /// Another source wants it, or may. That may pass by itself.
    WithheldForNow(WithheldCause),
    /// Another source wants it, or may, and has for long.
    Withheld(WithheldCause),
    /// The inventory was made from this other location.
    OtherLocation(Arc<str>),
    /// The deletion of such an object loses data.
    DataLoss(&'static str),
    /// An annotation asks for a confirmation.
    ConfirmationRequested,
    /// Not all that is to be kept is known.
    UnknownKept,
    /// Too many objects would go at once.
    BlastRadius {
        /// The number of objects that would go.
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
    /// The source was not read completely, for this reason.
    Incomplete(Arc<str>),
    /// The inventory is being read.
    UnreadInventory,
    /// The other folders of the repository are searched for what left this one.
    UnsearchedFolders,
    /// The inventory does not record this revision yet.
    UnrecordedRevision(Arc<str>),
    /// The kind cannot be listed.
    UnlistedKind(GroupKind),
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
            Self::UnlistedKind(_) => CauseCode::KindNotListed,
            Self::UnreadContent(_) => CauseCode::ContentUnread,
            Self::TakeoverPeriod(_) => CauseCode::TakeoverPeriod,
            Self::Undecided => CauseCode::NotDecided,
        }
    }
}

impl fmt::Display for PruneCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UsedByKept(user) => write!(f, "{user}, which is kept, uses it"),
            Self::NotAllowed(why) | Self::Unrendered(why) => f.write_str(why),
            Self::Annotated => f.write_str("no longer wanted, and kept, as an annotation of it asks"),
            Self::Unproven => f.write_str(UNPROVEN_REASON),
            Self::WithheldForNow(cause) => write!(f, "not pruned now: {cause}"),
            Self::Withheld(cause) => write!(f, "{cause}"),
            Self::OtherLocation(location) => write!(
                f,
                "this inventory was made from {location}; nothing of it is pruned until it is confirmed"
            ),
            Self::DataLoss(kind) => write!(f, "{kind} is deleted only after a confirmation"),
            Self::ConfirmationRequested => f.write_str("its annotation asks for a confirmation"),
            Self::UnknownKept => f.write_str(
                "not all objects that are to be kept are known: `kept` in the ConfigMap of the source has no \
                 room for more, or lines that cannot be read",
            ),
            Self::BlastRadius { count, total } => {
                write!(f, "{count} of {total} objects would be pruned at once, beyond the blast radius")
            }
            Self::AllOfKind(kind, all) => write!(f, "all {all} objects of kind {kind} would be pruned"),
            Self::Unfinished(id, milestone) => write!(f, "pruned when {id} {milestone}"),
            Self::UsedBy(user) => write!(f, "pruned after {user}, which uses it"),
            Self::PolicyOff => f.write_str("no longer wanted; `prune` is off"),
            Self::NotInFiles => f.write_str("not in the given files"),
            Self::UncheckedSeals(why) => write!(
                f,
                "nothing is pruned, as seals cannot be checked without the Secret {CONFIG_KEY_SECRET_NAME} in \
                 rhumb's namespace: {why}"
            ),
            Self::UnreadKey => f.write_str("nothing is pruned until the key of the seals is read"),
            Self::UnobservedSource(name) => {
                write!(f, "pruned when source {name}, which may want it, was looked at again")
            }
            Self::UnscopedFile(file, kind) => write!(
                f,
                "nothing is pruned until {file} is readable: it is not known whether {kind} is namespaced"
            ),
            Self::Incomplete(why) => {
                write!(f, "nothing is pruned, as the source was not read completely: {why}")
            }
            Self::UnreadInventory => f.write_str("nothing is pruned until the inventory is read"),
            Self::UnsearchedFolders => {
                f.write_str("nothing is pruned until the other folders of the repository are read")
            }
            Self::UnrecordedRevision(revision) => {
                write!(f, "nothing is pruned until the inventory records revision {revision} as accepted")
            }
            Self::UnlistedKind(kind) => write!(f, "nothing is pruned while {kind} cannot be listed"),
            Self::UnreadContent(id) => write!(f, "pruned when the content of {id} was read again"),
            Self::TakeoverPeriod(seconds) => {
                write!(f, "pruned when other sources have had {seconds} s to take it over")
            }
            Self::Undecided => f.write_str("whether it may be pruned is not decided yet"),
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
    /// It is healthy. These words say what it is instead.
    Healthy(Arc<str>),
}

impl fmt::Display for ChangeMilestone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("is changed"),
            Self::Restarted => f.write_str("is restarted"),
            Self::RolledOut => f.write_str("is rolled out"),
            Self::Healthy(health) => write!(f, "is healthy ({health})"),
        }
    }
}

/// The cause for which a deletion is withheld for the sake of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WithheldCause {
    /// The source of this name wants it, or may.
    Peer(Arc<str>, PeerInterest),
    /// Another folder of the repository has it, or may, as these words say.
    Moved(Arc<str>),
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

impl fmt::Display for WithheldCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, interest) = match self {
            Self::Peer(name, interest) => (name, interest),
            Self::Moved(why) => return f.write_str(why),
        };
        match interest {
            PeerInterest::Requested => write!(f, "source {name} wants it"),
            PeerInterest::Unlisted => write!(f, "source {name} may want it, as it brings many objects"),
            PeerInterest::Unreadable(why) => {
                write!(f, "source {name} may want it: what its ConfigMap tells cannot be read: {why}")
            }
            PeerInterest::Incomplete => {
                write!(f, "source {name} may want it: it has not been read completely")
            }
            PeerInterest::IncompleteOfSame => {
                write!(f, "source {name} of the same repository may want it: it has not been read completely")
            }
            PeerInterest::Elsewhere(revision) => {
                write!(f, "source {name} of the same repository may want it: it has read revision {revision}")
            }
            PeerInterest::Unobserved => {
                write!(f, "source {name} may want it: it was not looked at since")
            }
            PeerInterest::Unanswered => {
                write!(f, "source {name} may want it: it was asked for a look, and has not answered")
            }
        }
    }
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
