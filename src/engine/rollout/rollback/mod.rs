//! Rollback: contents that failed, the last good ones, and the return to them.

pub(in crate::engine) mod failed_data;
pub(in crate::engine) mod lifecycle;
pub(in crate::engine) mod refused_release;
pub(in crate::engine) mod rejection;
pub(in crate::engine) mod rejection_cause;
pub(in crate::engine) mod rejection_text;
pub(in crate::engine) mod retry;

use std::collections::BTreeSet;

use crate::engine::ReplacementContent;
use crate::engine::rollout::rollback::retry::RejectionRetries;
use crate::object::ObjectId;

/// The rollbacks and retries that have not begun.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct RollbackState {
    /// Objects that go back to a content that has not been read.
    unread: BTreeSet<ObjectId>,
    /// Objects that go back once all that goes back together with them has been read.
    awaiting_unit: BTreeSet<ObjectId>,
    /// The rejections whose contents are tried again.
    retries: RejectionRetries,
}

impl RollbackState {
    /// Takes over what replaces the rejected content of an object; none where none is rejected.
    fn track(&mut self, id: &ObjectId, replacement: Option<&ReplacementContent>) {
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
    pub(in crate::engine) fn unread_objects(&self) -> &BTreeSet<ObjectId> {
        &self.unread
    }
}
