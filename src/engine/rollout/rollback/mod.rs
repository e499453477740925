//! Rollback: contents that failed, the last good ones, and the return to them.

pub(in crate::engine) mod lifecycle;
pub(in crate::engine) mod pending_rollbacks;
pub(in crate::engine) mod rejection;
pub(in crate::engine) mod rejection_text;
pub(in crate::engine) mod retry;

use std::collections::BTreeSet;

use crate::engine::rollout::rollback::pending_rollbacks::PendingRollbacks;
use crate::engine::rollout::rollback::retry::RejectionRetries;
use crate::object::ObjectId;

/// The rollbacks and retries that have not begun.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct RollbackState {
    /// The rollbacks that have not begun.
    pending: PendingRollbacks,
    /// The rejections whose contents are tried again.
    retries: RejectionRetries,
}

impl RollbackState {
    /// Returns the objects that go back to a content that has not been read.
    pub(in crate::engine) fn unread(&self) -> &BTreeSet<ObjectId> {
        self.pending.unread()
    }
}
