//! Filters of a decided write: the allow-list of its source, and the age of an absence.

use std::time::{Duration, Instant};

use crate::engine::decide::decision::{Action, Decision, Precondition};
use crate::engine::decide::reason::Reason;
use crate::engine::facts::causes::prune_cause::PruneCause;
use crate::engine::state::Engine;
use crate::object::ObjectId;

/// The age at which the lookup of an object that was not there is repeated before it is created.
/// Its content may have waited for hours, and one GET is cheap beside a write.
const ABSENCE_LIFETIME: Duration = Duration::from_mins(1);

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

    /// Has an object looked up again before it is created, where its absence was seen long ago.
    ///
    /// The server refuses a creation where an object is there. A server of another kind may not look
    /// at that, and would take an object over that somebody made meanwhile, whoever owns it.
    pub(in crate::engine) fn require_recent_absence(
        &mut self,
        id: &ObjectId,
        decision: Decision,
        now: Instant,
    ) -> Decision {
        let creates =
            matches!(&decision.action, Action::Apply(apply) if apply.precondition == Precondition::Absent);
        if !creates {
            return decision;
        }
        let is_old = |since: Instant| now.saturating_duration_since(since) >= ABSENCE_LIFETIME;
        match self.objects.entries.get_mut(id) {
            Some(entry) if entry.absent_since.is_some_and(is_old) => {
                (entry.direct_view, entry.absent_since) = (None, None);
                Decision { action: Action::Lookup, ..decision }
            }
            _ => decision,
        }
    }
}
