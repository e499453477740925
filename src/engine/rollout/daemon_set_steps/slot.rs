//! The slot of the rollout budget that a DaemonSet takes for pods that are to go, though nothing is
//! to be written.

use super::{MissingBudget, is_daemon_set};
use crate::engine::Reason;
use crate::engine::decide::decision::{Action, Decision};
use crate::engine::rollout::budget::{BudgetSlot, SlotPriority, SlotRequest};
use crate::engine::rollout::ledger::RolloutClaim;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::state::Engine;
use crate::object::ObjectId;

impl Engine {
    /// Returns the request for budget of pods that are to go though nothing is to be written.
    pub(in crate::engine) fn node_slot_request(&self, id: &ObjectId) -> Option<(SlotRequest, RolloutClaim)> {
        let wants = self.is_slot_missing(id);
        let (source, desired) = self.entry(id).filter(|_| wants)?.target_content()?;
        let reserved =
            self.possible_loss(id, |nodes| self.max_concurrent_evictions(id, desired.strategy, nodes));
        let request = SlotRequest {
            priority: SlotPriority::NewContent,
            wave: desired.wave,
            id: id.clone(),
            source,
            additional_unavailable: self.additional_unavailable(id, reserved),
            reserved,
        };
        Some((request, self.make_claim(source, desired.hash, reserved)))
    }

    /// Takes the slot that was asked for without a write, and returns the state of the step.
    pub(in crate::engine) fn advance_daemon_set(&mut self, id: &ObjectId, decision: Decision) -> Decision {
        if !is_daemon_set(id) || decision.action != Action::Nothing || decision.reason.is_some() {
            return decision;
        }
        if self.is_slot_missing(id) && self.is_claimed(id) {
            self.take_slot(id);
        }
        match self.rollouts.steps.daemon_sets.get(id).and_then(|rollout| rollout.held_step.clone()) {
            Some(step) => decision.with_reason(Reason::Step(step)),
            None => decision,
        }
    }

    fn is_slot_missing(&self, id: &ObjectId) -> bool {
        self.rollouts.steps.daemon_sets.get(id).is_some_and(|rollout| rollout.lacks == MissingBudget::Slot)
    }

    fn take_slot(&mut self, id: &ObjectId) {
        let Some(claim) = self.rollouts.slot_requests.claim_of(id).cloned() else { return };
        self.withdraw(id);
        let Some(before) = self.rollouts.in_flight.remove(id) else { return };
        let (reserved, written) = (claim.reserved, before.min_resource_version);
        let mut rollout = Rollout::new(BudgetSlot::Taken, reserved, Some(claim), written);
        rollout.started_from = before.started_from;
        rollout.pods = before.pods;
        if let Some(rollout) = self.rollouts.steps.daemon_sets.get_mut(id) {
            rollout.lacks = MissingBudget::Nothing;
        }
        self.rollouts.in_flight.insert(id.clone(), rollout);
        self.rollouts.slot_requests.mark_stale();
    }
}
