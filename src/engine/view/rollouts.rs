//! The questions about rollouts, their budget and their ledger.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::View;
use crate::engine::rollout::budget_loads::BudgetUsage;
use crate::engine::{
    Authorship, ClaimHolder, CurrentStep, QueuedObject, Reason, Rejection, RolloutLedger, SourceId,
    SteppedWorkload, WorkloadLoad,
};
use crate::object::{ObjectId, Revision};

impl<'a> View<'a> {
    /// Returns what the rollout ledger should say once this process has ended; none where it says
    /// so.
    pub(crate) fn last_ledger(self) -> Option<RolloutLedger> {
        self.engine.last_ledger()
    }

    /// Returns the use of the whole cluster's rollout budget.
    pub(crate) fn usage(self) -> BudgetUsage {
        self.engine.usage()
    }

    /// Returns the workloads that roll now, and those that others have claimed, each with what it
    /// takes of the budget. A failed one that stays as it is rolls no more.
    pub(crate) fn rolling_workloads(self) -> Vec<WorkloadLoad> {
        self.engine.rolling_workloads()
    }

    /// Returns whether the rollout ledger is to be read again soon, as others may change what a
    /// write waits for.
    pub(crate) fn is_waiting_for_others(self) -> bool {
        self.engine.is_waiting_for_others()
    }

    /// Returns whether other processes keep anything in the rollout ledger.
    pub(crate) fn has_shared_budget(self) -> bool {
        self.engine.has_shared_budget()
    }

    /// Returns who has claimed a workload, where that is another process.
    pub(crate) fn other_holder(self, id: &ObjectId) -> Option<ClaimHolder> {
        self.engine.other_holder(id)
    }

    /// Returns whether a step goes on by itself.
    pub(crate) fn is_stepping(self, id: &ObjectId, now: Instant) -> bool {
        self.engine.is_stepping(id, now)
    }

    /// Returns who made a revision of a source, as far as that is known.
    pub(crate) fn author(self, source: SourceId, revision: &Revision) -> Option<&'a Authorship> {
        self.engine.author(source, revision)
    }

    /// Returns the workloads to look up for other processes' claims: those that a write waits for,
    /// and those whose claim nobody else may take back.
    pub(crate) fn foreign_workloads(self) -> Vec<ObjectId> {
        self.engine.foreign_workloads()
    }

    /// Returns whether anything would be lost with the rollout ledger: it is read again and again
    /// meanwhile.
    pub(crate) fn is_ledger_needed(self) -> bool {
        self.engine.is_ledger_needed()
    }

    /// Returns the queue, each object with its reason as a value. First come the objects that want a
    /// slot, in the order in which they get one. Then those that something else keeps from being
    /// rolled out.
    pub(crate) fn queue_with_reasons(self) -> Vec<(QueuedObject, Reason)> {
        self.engine.queue_with_reasons()
    }

    /// Returns the rollout ledger without the queue of this process; none where it has none of
    /// it already.
    pub(crate) fn unqueued_ledger(self) -> Option<RolloutLedger> {
        self.engine.unqueued_ledger()
    }

    /// Returns our workloads that a step holds, and what each step waits for.
    pub(crate) fn held_steps(self, now: Instant) -> BTreeMap<ObjectId, CurrentStep> {
        self.engine.held_steps(now)
    }

    /// Returns whether a rollout of ours is not over, its soak and its claim included, though all
    /// may be healthy.
    pub(crate) fn is_anything_claimed(self) -> bool {
        self.engine.is_anything_claimed()
    }

    /// Returns the source whose inventory rejects the content that it wants of an object.
    pub(crate) fn rejecting_source(self, id: &ObjectId) -> Option<SourceId> {
        self.engine.rejecting_source(id)
    }

    /// Returns the rejections that a source's inventory should record; none where it records
    /// exactly these.
    pub(crate) fn next_rejections(self, source: SourceId) -> Option<Vec<Rejection>> {
        self.engine.next_rejections(source)
    }

    /// Returns when the queue is to be compared next with what was published.
    pub(crate) fn next_publication(self) -> Option<Instant> {
        self.engine.next_publication()
    }

    /// Returns when the clock alone changes what [`Engine::poll`](crate::engine::Engine::poll) gives.
    pub(crate) fn next_due(self, now: Instant) -> Option<Instant> {
        self.engine.next_due(now)
    }

    /// Returns whether any rollout goes on, and will end by itself.
    pub(crate) fn is_any_in_progress(self) -> bool {
        self.engine.is_any_in_progress()
    }

    /// Returns whether the rollout of a workload goes on, and will end by itself.
    pub(crate) fn is_in_progress(self, id: &ObjectId) -> bool {
        self.engine.is_in_progress(id)
    }

    /// Returns the workloads of all sources that show the overlay of a step, whatever it waits for.
    pub(crate) fn stepped_workloads(self) -> Vec<SteppedWorkload> {
        self.engine.stepped_workloads()
    }

    /// Returns whether the rollout ledger is to be read before a workload is taken over.
    pub(crate) fn is_ledger_read_needed(self) -> bool {
        self.engine.is_ledger_read_needed()
    }

    /// Returns the inventory in which the content was released that an object goes back to, where
    /// that is another source's.
    pub(crate) fn former_inventory_of(self, id: &ObjectId) -> Option<Arc<str>> {
        self.engine.former_inventory_of(id)
    }

    /// Returns the connected parts of these objects, by their references and selectors.
    pub(crate) fn connected_parts(self, objects: &[&ObjectId]) -> Vec<Vec<ObjectId>> {
        self.engine.connected_parts(objects)
    }
}
