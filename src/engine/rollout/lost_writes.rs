//! Writes that may restart pods and that got no answer: the end of the rollouts that they never
//! began.
//!
//! Such a write holds its slot, as it may have been carried out. The cluster shows that, or another
//! try does. But it may not be tried again: git takes the content back, a person holds the object,
//! or the API server refuses it by then. Nothing would ever show a write that was lost. Nor would
//! anything newer show one that was carried out, and that the watch had shown before it failed.
//! Until the cluster shows its content, what else it shows says nothing of it.

use std::time::{Duration, Instant};

use crate::engine::ResourceVersion;
use crate::engine::rollout::evaluation::RolloutVerdict;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::state::Engine;
use crate::object::ObjectId;

/// The time for which a write without an answer may still be carried out. No API server works on a
/// request for nearly as long.
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
        let rollout = self.rollouts.in_flight.get(id);
        let Some(rollout) = rollout.filter(|rollout| rollout.min_resource_version.is_none()) else { return };
        let shown = self.shown_rollout_before(id, rollout);
        self.record_rollout_write(id, written);
        if let Some(rollout) = self.rollouts.in_flight.get_mut(id).filter(|_| written.is_some()) {
            (rollout.unanswered_since, rollout.replaced) = (Some(now), shown);
        }
    }

    /// Returns the rollout before a write, or before the tries of it, whose content the cluster
    /// shows.
    fn shown_rollout_before(&self, id: &ObjectId, rollout: &Rollout) -> Option<Box<Rollout>> {
        let mut replaced =
            std::iter::successors(rollout.replaced.as_deref(), |before| before.replaced.as_deref());
        let shown =
            replaced.find(|before| before.content().is_some_and(|content| self.is_showing(id, content)))?;
        Some(Box::new(Rollout { replaced: None, ..shown.clone() }))
    }

    /// Returns whether nobody knows yet if the write of a rollout was carried out. It got no answer,
    /// and another content is shown.
    pub(in crate::engine) fn is_write_undecided(&self, id: &ObjectId, rollout: &Rollout) -> bool {
        rollout.unanswered_since.is_some()
            && rollout.content().is_some_and(|content| !self.is_showing(id, content))
    }

    /// Notes that a write without an answer was carried out, where the cluster shows its content.
    /// From then on other contents are somebody else's.
    pub(in crate::engine) fn note_shown_write(&mut self, id: &ObjectId) {
        let Some(rollout) = self.rollouts.in_flight.get(id) else { return };
        let is_shown = rollout.unanswered_since.is_some()
            && self.live_object(id).is_some_and(|live| rollout.is_shown_at(live.rv))
            && !self.is_write_undecided(id, rollout);
        if let Some(rollout) = self.rollouts.in_flight.get_mut(id).filter(|_| is_shown) {
            (rollout.unanswered_since, rollout.replaced) = (None, None);
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
            RolloutVerdict::Unanswered
        } else {
            RolloutVerdict::InProgress(None)
        }
    }

    /// Ends the wait for a write that got no answer. A rollout whose content is there goes on from
    /// what is shown: the watch was faster, or only a repair or a step was lost.
    ///
    /// Any other write was never carried out. The rollout before it goes on, as it was never
    /// replaced, and its claim takes the place of the other one. Without one the slot is taken
    /// back.
    pub(in crate::engine) fn end_unanswered_write(&mut self, id: &ObjectId) {
        let content = self.rollouts.in_flight.get(id).and_then(Rollout::content);
        let is_there = content.is_some_and(|content| self.is_showing(id, content));
        let shown = self.live_object(id).map(|live| live.rv).filter(|_| is_there);
        if let (Some(rv), Some(rollout)) = (shown, self.rollouts.in_flight.get_mut(id)) {
            (rollout.min_resource_version, rollout.unanswered_since) = (Some(rv), None);
            rollout.replaced = None;
            return;
        }
        let lost = self.rollouts.in_flight.remove(id);
        self.rollouts.slot_requests.mark_stale();
        if let Some(before) = lost.and_then(Rollout::into_replaced) {
            self.rollouts.in_flight.insert(id.clone(), before);
        } else {
            self.end_claim(id);
            self.register_live_rollout(id);
        }
        self.note_object_change(id);
    }
}

impl Rollout {
    /// Returns the rollout before it, with the pods as they were reported since.
    fn into_replaced(self) -> Option<Self> {
        let before = *self.replaced?;
        Some(Self { pods: self.pods, ..before })
    }
}
