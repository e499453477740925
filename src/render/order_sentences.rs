//! The sentences of what came of orders, pauses and holds. The inventory records them.

use std::fmt;

use crate::engine::{
    AnsweredOrder, IntentOutcome, OrderObstacle, OrderOutcome, RejectedUnit, UndoTarget, UndoneUnit,
};
use crate::object::count_text;

impl fmt::Display for AnsweredOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.outcome)?;
        if self.by.is_empty() { Ok(()) } else { write!(f, " (ordered by {})", self.by) }
    }
}

impl fmt::Display for OrderOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Promoted(id, step) => write!(f, "promoted: {id} goes on from step {step}"),
            Self::Aborted(unit) => write!(f, "aborted: {unit} goes back"),
            Self::Undone(undone) => write!(f, "undone: {undone}"),
            Self::Retried { objects, cause } => {
                write!(f, "retried: {}, rejected before: {cause}", count_text(*objects, "object"))
            }
            Self::Confirmed { first, others, not_pending } => {
                match others {
                    0 => write!(f, "confirmed: the deletion of {first}")?,
                    others => {
                        write!(
                            f,
                            "confirmed: the deletions of {first} and {}",
                            count_text(*others, "other")
                        )?;
                    }
                }
                match not_pending {
                    0 => Ok(()),
                    left => write!(f, "; {left} of the given ones are not pending"),
                }
            }
            Self::NothingDone(obstacle) => write!(f, "{obstacle}"),
        }
    }
}

impl fmt::Display for IntentOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused(id) => write!(f, "paused: {id}"),
            Self::SourcePaused(name) => write!(f, "paused: source {name}"),
            Self::Held(id, until) => write!(f, "held: {id} until {until}"),
            Self::EndUnreadable(id) => write!(f, "not held: {id}: until when cannot be read"),
            Self::Denied(id) => write!(f, "not in effect: {id}: optOut of its source is denied"),
            Self::Resumed(subject) => write!(f, "resumed: {subject}"),
            Self::Released(subject) => write!(f, "released: {subject}"),
        }
    }
}

/// As a subject: "revision 1a2b of Deployment shop/web (2 objects)".
impl fmt::Display for RejectedUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (revision, objects) = (self.revision.short_name(), count_text(self.objects, "object"));
        write!(f, "revision {revision} of {} ({objects})", self.object)
    }
}

impl fmt::Display for UndoneUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, target, kept } = self;
        write!(f, "{unit} goes back to {target}")?;
        if kept.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = kept.iter().map(ToString::to_string).collect();
        write!(f, "; {target} has no {}, which stays", names.join(", "))
    }
}

impl fmt::Display for UndoTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(revision) => f.write_str(revision.short_name()),
            Self::Before(revision) => write!(f, "what was before {}", revision.short_name()),
        }
    }
}

impl fmt::Display for OrderObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignObject(id, source) => {
                write!(f, "nothing was done: {id} is no object of source {source}")
            }
            Self::UnknownOrder(word) => write!(f, "nothing was done: no order is called {word:?}"),
            Self::NoStep(id) => write!(f, "nothing to promote: {id} has no step in progress"),
            Self::NoRollout(id) => write!(f, "nothing to abort: no rollout of {id} is under way"),
            Self::NoRevision(id) => write!(f, "nothing to undo: {id} shows no content of a revision"),
            Self::UnknownContent(id) => write!(
                f,
                "nothing to undo: the earlier content of {id} is not known; name a revision with `--to-revision`"
            ),
            Self::UnavailableRevision(why) => write!(f, "nothing to undo: {why}"),
            Self::Lacking(id, revision) => write!(
                f,
                "nothing to undo: revision {} has no {id}; a commit removes it",
                revision.short_name()
            ),
            Self::Unchanged(id, revision) => {
                write!(f, "nothing to undo: {id} is in revision {} as it is now", revision.short_name())
            }
            Self::Desired(id, revision) => write!(
                f,
                "nothing to undo: the newest revision asks for {id} as it is in revision {}",
                revision.short_name()
            ),
            Self::DesiredBefore(id, target) => {
                write!(f, "nothing to undo: the newest revision asks for {id} as it was in {target}")
            }
            Self::NothingRejected(id) => write!(f, "nothing to retry: nothing of {id} was rejected"),
            Self::NothingPending(source) => write!(
                f,
                "nothing was confirmed: of what is named, nothing waits for its deletion in {source}"
            ),
            Self::TooManyConfirmations(source, most) => write!(
                f,
                "nothing was confirmed: more than {most} deletions of {source} would be under way at a time"
            ),
        }
    }
}
