//! The outcomes of pauses and holds, with the values that each is about. `render` has the sentence
//! of each, and that sentence is what the inventory records.

use std::sync::Arc;

use jiff::Timestamp;

use crate::engine::facts::records::intents::Acknowledgement;
use crate::object::ObjectId;

/// The outcome of a pause or a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IntentOutcome {
    /// No new content of this object is released.
    Paused(ObjectId),
    /// No new content of the source of this name is released.
    SourcePaused(Arc<str>),
    /// Nothing is written to this object until then.
    Held(ObjectId, Timestamp),
    /// The end of the hold of this object cannot be read, so it does not count.
    EndUnreadable(ObjectId),
    /// The source of this object lets nobody pause or hold it.
    Denied(ObjectId),
    /// The pause of this is over, as the record names it.
    Resumed(Arc<str>),
    /// The hold of this is over, as the record names it.
    Released(Arc<str>),
}

impl IntentOutcome {
    /// Returns the outcome of a hold of an object. It has no end where that cannot be read.
    pub(in crate::engine) fn of_hold(id: &ObjectId, until: Option<Timestamp>) -> Self {
        match until {
            Some(until) => Self::Held(id.clone(), until),
            None => Self::EndUnreadable(id.clone()),
        }
    }
}

impl Acknowledgement {
    /// Returns the outcome that follows once the pause or the hold is gone. None where that is
    /// recorded already, or it had no effect.
    pub(in crate::engine) fn end_outcome(&self) -> Option<IntentOutcome> {
        // Until when it would have been held says nothing any more.
        let subject = |rest: &str| rest.split_once(" until ").map_or(rest, |(subject, _)| subject).into();
        if let Some(rest) = self.outcome.strip_prefix("paused: ") {
            return Some(IntentOutcome::Resumed(subject(rest)));
        }
        self.outcome.strip_prefix("held: ").map(|rest| IntentOutcome::Released(subject(rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_pause_or_hold_that_counted_says_what_follows_once_it_is_gone() {
        let check = |outcome: &str, expected: Option<IntentOutcome>| {
            assert_eq!(Acknowledgement::new(&"1-a".into(), outcome).end_outcome(), expected, "{outcome}");
        };
        let env = || "ConfigMap shop/env".into();
        check("paused: ConfigMap shop/env", Some(IntentOutcome::Resumed(env())));
        check("held: ConfigMap shop/env until tomorrow", Some(IntentOutcome::Released(env())));
        check("not held: ConfigMap shop/env: until when cannot be read", None);
        check("not in effect: ConfigMap shop/env", None);
        check("resumed: ConfigMap shop/env", None);
        check("undone: revision r2", None);
    }
}
