//! Filters of a decided write: the allow-list of its source, and how recently the object was absent.

use crate::engine::decide::decision::{Action, Decision};
use crate::engine::decide::reason::Reason;
use crate::engine::facts::causes::prune_cause::PruneCause;
use crate::engine::state::Engine;
use crate::object::ObjectId;

impl Engine {
    /// Lets no write pass for a source that may not have the object, whatever it was decided from.
    pub(in crate::engine) fn enforce_allow_list(&self, id: &ObjectId, decision: Decision) -> Decision {
        let source = match &decision.action {
            Action::Apply(apply) => Some(apply.source),
            Action::Delete(..) => self.live_object(id).and_then(|live| self.source_of(live)),
            _ => None,
        };
        match source.and_then(|source| self.disallowed_reason(source, id)) {
            Some(why) => Decision::wait(Reason::Kept(PruneCause::NotAllowed(why))),
            None => decision,
        }
    }
}
