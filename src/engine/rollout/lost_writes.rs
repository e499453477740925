//! Writes that may restart pods and that got no answer: the end of the rollouts that they never
//! began.
//!
//! Such a write holds its slot, as it may have been carried out. The cluster shows that, or another
//! try does. But it may not be tried again: git takes the content back, a person holds the object,
//! or the API server refuses it by then. Nothing would ever show a write that was lost.

use std::time::{Duration, Instant};

use crate::engine::ResourceVersion;
use crate::engine::rollout::evaluation::RolloutVerdict;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::state::Engine;
use crate::object::ObjectId;

/// The time after which a write without an answer that is not shown counts as never carried out. No
/// API server works on a request for nearly as long.
pub(in crate::engine) const LOST_WRITE_TIMEOUT: Duration = Duration::from_mins(2);

impl Engine {
    /// Notes a write that may restart pods and failed, or whose fate is unknown: then this version
    /// would show it.
    pub(in crate::engine) fn record_lost_rollout_write(
        &mut self,
        id: &ObjectId,
        written: Option<ResourceVersion>,
        now: Instant,
    ) {
        if self.rollouts.in_flight.get(id).is_none_or(|rollout| rollout.min_resource_version.is_some()) {
            return;
        }
        self.record_rollout_write(id, written);
        if let Some(rollout) = self.rollouts.in_flight.get_mut(id).filter(|_| written.is_some()) {
            rollout.unanswered_since = Some(now);
        }
    }

    /// Evaluates a rollout whose write the cluster does not show.
    pub(in crate::engine) fn evaluate_unshown(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        now: Instant,
    ) -> RolloutVerdict {
        let Some(since) = rollout.unanswered_since else { return RolloutVerdict::InProgress(None) };
        let until = since + LOST_WRITE_TIMEOUT;
        if now < until {
            return RolloutVerdict::InProgress(Some(until));
        }
        let is_shown = self.informer_object(id).is_some() && self.is_observable(id);
        if is_shown && !self.rollouts.writes_in_flight.contains(id) {
            RolloutVerdict::Unwritten
        } else {
            RolloutVerdict::InProgress(None)
        }
    }

    /// Takes back the slot of a rollout whose write was never carried out. A rollout that goes on
    /// there is not affected.
    pub(in crate::engine) fn drop_unwritten_rollout(&mut self, id: &ObjectId) {
        self.rollouts.in_flight.remove(id);
        self.end_claim(id);
        self.rollouts.slot_requests.mark_stale();
        self.register_live_rollout(id);
        self.note_object_change(id);
    }
}
