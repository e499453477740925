//! The blockers of all that waits for the key of hash seals.

use std::sync::Arc;

use crate::engine::decide::reason::Reason;
use crate::engine::facts::config_hash::key_id;
use crate::engine::facts::read_state::ReadState;
use crate::engine::state::Engine;

impl Engine {
    /// Returns the blocker of sealing and opening; none where both can be done.
    pub(in crate::engine) fn key_blocker(&self) -> Option<Reason> {
        match &self.configs.key {
            _ if self.seals().number().is_some() => None,
            ReadState::Unreadable(why) => Some(Reason::KeyUnavailable(why.clone())),
            ReadState::Reading | ReadState::Value(_) => Some(Reason::Reading(key_id())),
        }
    }

    /// Returns why an inventory that cannot be opened has not been read.
    pub(in crate::engine) fn locked_inventory_reason(&self) -> Option<Arc<str>> {
        match self.key_blocker()? {
            Reason::KeyUnavailable(why) if self.configs.sealed.wanted => Some(why),
            _ => None,
        }
    }
}
