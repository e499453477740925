//! The order to try rejected content again.
//!
//! `src/engine/rollout/rollback/retry.rs` has what follows for a rejection that the inventory
//! records.

use crate::engine::facts::entry::SourceId;
use crate::engine::facts::records::rejection::Rejection;
use crate::engine::orders::carry_out::OrderAnswer;
use crate::engine::orders::order_outcome::{OrderObstacle, OrderOutcome};
use crate::engine::state::Engine;
use crate::object::ObjectId;

impl Engine {
    /// Lets what was rejected be tried again.
    pub(in crate::engine) fn retry(&mut self, source: SourceId, id: &ObjectId) -> OrderAnswer {
        let names = |rejection: &Rejection| rejection.unit.members.contains_key(id);
        let inventory = self.sources[source].inventory.iter();
        let known = inventory.flat_map(|inventory| &inventory.rejections).find(|one| names(one)).cloned();
        let rejecting = &mut self.sources[source].pending_rejections;
        let unrecorded: Vec<Rejection> = rejecting.extract_if(.., |one| names(one)).collect();
        let Some(known) = known else {
            return OrderAnswer::Done(self.retry_unrecorded(source, id, &unrecorded));
        };
        let outcome = retry_outcome(&known);
        let is_recorded_first = self.is_recorded_before_retry(source, &known);
        self.begin_retry(source, known);
        if is_recorded_first { OrderAnswer::Deferred } else { OrderAnswer::Done(outcome) }
    }

    /// Judges rollouts anew whose rejections no inventory has recorded. Returns the outcome of the
    /// order.
    fn retry_unrecorded(
        &mut self,
        source: SourceId,
        id: &ObjectId,
        unrecorded: &[Rejection],
    ) -> OrderOutcome {
        let Some(first) = unrecorded.first() else {
            return OrderOutcome::NothingDone(OrderObstacle::NothingRejected(id.clone()));
        };
        for member in unrecorded.iter().flat_map(|rejection| rejection.unit.members.keys()) {
            self.restart_evaluation(source, member);
        }
        retry_outcome(first)
    }
}

/// Returns the outcome of an order to try a unit again.
fn retry_outcome(rejection: &Rejection) -> OrderOutcome {
    let objects = rejection.unit.members.len() as u32;
    OrderOutcome::Retried { objects, cause: rejection.cause.clone() }
}
