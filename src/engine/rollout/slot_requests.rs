//! The requests to the rollout budget, its answers to them, and the claims that follow.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::engine::decide::budget_shortage::BudgetShortage;
use crate::engine::rollout::budget::SlotRequest;
use crate::engine::rollout::ledger::RolloutClaim;
use crate::object::ObjectId;

/// The requests to the budget, each with its answer.
///
/// **Invariant:** each answer and each claim to be written is of a request.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct SlotRequests {
    /// The requests to the budget, in the order in which they are answered.
    requests: BTreeSet<SlotRequest>,
    /// The same requests by workload, each with the claim that it is for.
    requests_by_id: HashMap<ObjectId, (SlotRequest, RolloutClaim)>,
    /// The budget's answer to each request; void when it is stale.
    slot_verdicts: BTreeMap<ObjectId, Option<BudgetShortage>>,
    /// Indicates whether the load on the budget may have changed since it was divided.
    stale: bool,
    /// Workloads whose claim is to be written.
    claims_to_write: BTreeSet<ObjectId>,
    /// Workloads at a time while a rollout begins: it grows by each success, so that it doubles
    /// with each round.
    slow_start_limit: u32,
}

impl Default for SlotRequests {
    fn default() -> Self {
        Self {
            requests: BTreeSet::new(),
            requests_by_id: HashMap::new(),
            slot_verdicts: BTreeMap::new(),
            stale: true,
            claims_to_write: BTreeSet::new(),
            slow_start_limit: 1,
        }
    }
}

impl SlotRequests {
    /// Takes over the request of a workload, and the claim that it is for.
    pub(in crate::engine) fn insert(&mut self, request: SlotRequest, claim: RolloutClaim) {
        let id = request.id.clone();
        let new = self.requests_by_id.insert(id.clone(), (request.clone(), claim.clone()));
        if let Some((old, _)) = &new
            && *old != request
        {
            self.requests.remove(old);
        }
        if new.is_none_or(|(old, wanted)| old != request || wanted != claim) {
            self.requests.insert(request);
            self.claims_to_write.remove(&id);
            self.stale = true;
        }
    }

    /// Forgets the request of a workload. Returns whether it had one.
    pub(in crate::engine) fn remove(&mut self, id: &ObjectId) -> bool {
        let Some((request, _)) = self.requests_by_id.remove(id) else { return false };
        self.requests.remove(&request);
        self.claims_to_write.remove(id);
        self.slot_verdicts.remove(id);
        self.stale = true;
        true
    }

    /// Returns whether nobody asks.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns whether a workload asks.
    pub(in crate::engine) fn contains(&self, id: &ObjectId) -> bool {
        self.requests_by_id.contains_key(id)
    }

    /// Returns the request of a workload, and the claim that it is for.
    pub(in crate::engine) fn get(&self, id: &ObjectId) -> Option<&(SlotRequest, RolloutClaim)> {
        self.requests_by_id.get(id)
    }

    /// Returns the claim that a workload asks for.
    pub(in crate::engine) fn claim_of(&self, id: &ObjectId) -> Option<&RolloutClaim> {
        self.get(id).map(|(_, claim)| claim)
    }

    /// Returns the workloads that ask, in no order.
    pub(in crate::engine) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.requests_by_id.keys()
    }

    /// Returns the requests, in the order in which they are answered.
    pub(in crate::engine) fn requests(&self) -> &BTreeSet<SlotRequest> {
        &self.requests
    }

    /// Has the budget divided again, as the load on it may have changed.
    pub(in crate::engine) fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// Takes the mark that the budget is to be divided again. Returns whether there was one.
    pub(in crate::engine) fn take_stale_mark(&mut self) -> bool {
        std::mem::take(&mut self.stale)
    }

    /// Takes over the budget's answer to each request. Returns the ones before.
    pub(in crate::engine) fn replace_verdicts(
        &mut self,
        slot_verdicts: BTreeMap<ObjectId, Option<BudgetShortage>>,
    ) -> BTreeMap<ObjectId, Option<BudgetShortage>> {
        std::mem::replace(&mut self.slot_verdicts, slot_verdicts)
    }

    /// Returns the budget's answer to each request, as it was last divided.
    pub(in crate::engine) fn verdicts(&self) -> &BTreeMap<ObjectId, Option<BudgetShortage>> {
        &self.slot_verdicts
    }

    /// Has the claim of a workload written into the rollout ledger.
    pub(in crate::engine) fn add_claim_to_write(&mut self, id: &ObjectId) {
        self.claims_to_write.insert(id.clone());
    }

    /// Keeps the claim of a workload from being written.
    pub(in crate::engine) fn drop_claim_to_write(&mut self, id: &ObjectId) {
        self.claims_to_write.remove(id);
    }

    /// Returns the workloads whose claim is to be written.
    pub(in crate::engine) fn claims_to_write(&self) -> &BTreeSet<ObjectId> {
        &self.claims_to_write
    }

    /// Lets one workload begin at a time, until more of them succeed.
    pub(in crate::engine) fn begin_slow_start(&mut self) {
        self.slow_start_limit = 1;
        self.stale = true;
    }

    /// Lets one more workload begin at a time, for one that has succeeded.
    pub(in crate::engine) fn widen_slow_start(&mut self) {
        self.slow_start_limit = self.slow_start_limit.saturating_add(1);
    }

    /// Returns how many workloads may begin at a time.
    pub(in crate::engine) fn slow_start_limit(&self) -> u32 {
        self.slow_start_limit
    }
}

#[cfg(test)]
impl SlotRequests {
    /// Lets so many workloads begin at a time.
    pub(in crate::engine) fn set_slow_start_limit(&mut self, limit: u32) {
        self.slow_start_limit = limit;
    }
}
