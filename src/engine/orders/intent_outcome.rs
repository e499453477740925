//! The outcomes of pauses and holds, with the values that each is about. `render` has the sentence
//! of each, and that sentence is what the inventory records.

use std::sync::Arc;

use jiff::Timestamp;

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
