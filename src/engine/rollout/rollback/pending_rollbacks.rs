//! Rollbacks that cannot begin yet, as a content of their unit has not been read.

use std::collections::BTreeSet;

use crate::engine::ReplacementContent;
use crate::object::ObjectId;

/// The objects whose rollback has not begun.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct PendingRollbacks {
    /// Objects that go back to a content that has not been read.
    unread: BTreeSet<ObjectId>,
    /// Objects that go back once all that goes back together with them has been read.
    awaiting_unit: BTreeSet<ObjectId>,
}

impl PendingRollbacks {
    /// Takes over what replaces the rejected content of an object; none where none is rejected.
    pub(in crate::engine) fn track(&mut self, id: &ObjectId, replacement: Option<&ReplacementContent>) {
        let is_unread = matches!(replacement, Some(ReplacementContent::Unread(_)));
        let awaits_unit = matches!(replacement, Some(ReplacementContent::AwaitingUnit(_)));
        for (set, is_in) in [(&mut self.unread, is_unread), (&mut self.awaiting_unit, awaits_unit)] {
            if is_in {
                set.insert(id.clone());
            } else {
                set.remove(id);
            }
        }
    }

    /// Returns the objects that go back to a content that has not been read.
    pub(in crate::engine) fn unread(&self) -> &BTreeSet<ObjectId> {
        &self.unread
    }

    /// Returns the objects that go back once all that goes back together with them has been read.
    pub(in crate::engine) fn awaiting_unit(&self) -> &BTreeSet<ObjectId> {
        &self.awaiting_unit
    }
}
