//! The sentences of what keeps objects that nobody wants from being deleted.

use std::fmt;

use crate::engine::{
    BlockingRoot, CONFIG_KEY_SECRET_NAME, ChangeMilestone, DisallowedObject, LossyKind, PeerInterest,
    PossibleMove, PruneCause, RootRelation, WithheldCause,
};

impl fmt::Display for PruneCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UsedByKept(user) => write!(f, "{user}, which is kept, uses it"),
            Self::NotAllowed(object) => write!(f, "{object}"),
            Self::Unrendered(root) => write!(f, "{root}"),
            Self::Annotated => f.write_str("no longer wanted, and kept, as an annotation of it asks"),
            Self::Unproven => f.write_str(
                "no longer wanted; kept, as its annotation rhumb.dev/release has no valid seal, so rhumb cannot \
                 tell that it made it: delete it by kubectl if nobody needs it",
            ),
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
                write!(f, "pruned when source {name}, which may want it, was observed again")
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
            Self::UnrenderedKind(kind) => write!(
                f,
                "nothing is pruned until charts are rendered with {kind}, which the server did not list"
            ),
            Self::UnreadContent(id) => write!(f, "pruned when the content of {id} was read again"),
            Self::TakeoverPeriod(seconds) => {
                write!(f, "pruned when other sources have had {seconds} s to take it over")
            }
            Self::Undecided => f.write_str("it is not decided yet whether it may be pruned"),
        }
    }
}

/// As a noun: "a Namespace".
impl fmt::Display for LossyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SystemObject => "an object in kube-system",
            Self::Namespace => "a Namespace",
            Self::Definition => "a CustomResourceDefinition",
            Self::VolumeClaim => "a PersistentVolumeClaim",
            Self::Volume => "a PersistentVolume",
            Self::StatefulSet => "a StatefulSet",
        })
    }
}

impl fmt::Display for DisallowedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no longer allowed, so it is neither repaired nor deleted: {}", self.violation)?;
        match self.step {
            Some(step) => write!(f, "; it stays in step {step} of its rollout"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for BlockingRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.relation {
            RootRelation::UnknownOrigin => "where the object came from is not known",
            RootRelation::Origin => "the object came from it",
            RootRelation::PossibleName => "may want the object",
        };
        write!(f, "not pruned: root {} does not render, and {why}", self.folder)
    }
}

impl fmt::Display for PossibleMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(file) => {
                write!(f, "{file} of the same repository has it now: apply that first, and it moves")
            }
            Self::Unreadable(why) => {
                write!(f, "another folder of the same repository may have it: it cannot be read: {why}")
            }
        }
    }
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

impl fmt::Display for WithheldCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, interest) = match self {
            Self::Peer(name, interest) => (name, interest),
            Self::Moved(possible_move) => return write!(f, "{possible_move}"),
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
                write!(f, "source {name} may want it: it was not observed since")
            }
            PeerInterest::Unanswered => {
                write!(f, "source {name} may want it: it was asked for an observation, and has not answered")
            }
        }
    }
}
