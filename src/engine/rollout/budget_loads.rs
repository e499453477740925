//! The load on the rollout budget now: workloads in flight, and unavailable pods, wherever they
//! are; and the same in numbers for people.

use std::collections::BTreeSet;

use crate::engine::decide::budget_shortage::{BudgetScope, BudgetShortage};
use crate::engine::facts::effective_content::ReplicaOwner;
use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::counted_pods::{CountOrigin, CountedLoad};
use crate::engine::state::Engine;
use crate::engine::{
    BudgetNarrowing, LiveObject, OnFailure, ReplicaStatus, RolloutClaim, WorkloadLoad, is_workload,
};
use crate::object::ObjectId;

impl Engine {
    /// Returns the workloads that hold a slot: those that roll or were released to, and those that
    /// another daemon has claimed.
    pub(in crate::engine) fn workloads_in_flight(&self) -> BTreeSet<ObjectId> {
        self.loads().into_iter().filter(|load| load.slot == BudgetSlot::Taken).map(|load| load.id).collect()
    }

    /// Returns whether the ledger has this very claim, and the workload holds a slot. The claim may be
    /// from a rollout that has ended, where somebody else has begun another one since. It would be
    /// written just so, without a start, so no write is needed.
    pub(in crate::engine) fn is_claim_of_live_rollout(&self, id: &ObjectId, claim: &RolloutClaim) -> bool {
        let rollout = self.rollouts.in_flight.get(id);
        let has_slot = rollout.is_some_and(|rollout| rollout.slot == BudgetSlot::Taken);
        // A write in flight may take the claim back.
        has_slot && !self.rollouts.ledger.is_saving() && self.own_claim(id) == Some(claim)
    }

    /// Returns the load on the budget now, whoever serves it.
    pub(in crate::engine) fn loads(&self) -> Vec<WorkloadLoad> {
        self.with_foreign_loads(self.observed_loads())
    }

    /// Returns the load that this process sees, with the claims.
    pub(in crate::engine) fn observed_loads(&self) -> Vec<WorkloadLoad> {
        let rollouts = &self.rollouts;
        let away = |id: &ObjectId| rollouts.pod_counts.unavailable_of(id);
        let claimed = |id: &ObjectId| {
            let claims = rollouts.ledger.latest().filter(|_| rollouts.ledger.is_unused(id))?;
            claims.claims.get(id).map(|claim| claim.reserved)
        };
        let rolls = rollouts.in_flight.iter().map(|(id, rollout)| WorkloadLoad {
            id: id.clone(),
            source: self
                .informer_object(id)
                .and_then(|live| self.source_of(live))
                .or_else(|| self.wanting_source(id)),
            slot: if rollouts.ledger.is_unused(id) { BudgetSlot::Taken } else { rollout.slot },
            unavailable: away(id).max(rollout.reserved).max(claimed(id).unwrap_or(0)),
        });
        // A claim counts from the moment that it is written until it is taken back: only another
        // process may know whether anything came of it.
        let claims: Vec<WorkloadLoad> = rollouts
            .ledger
            .latest()
            .into_iter()
            .flat_map(|ledger| &ledger.claims)
            .filter(|(id, _)| !rollouts.in_flight.contains_key(*id))
            .filter(|(id, _)| !rollouts.ledger.is_ended(id) || rollouts.ledger.is_unused(id))
            .filter_map(|(id, claim)| {
                let counts = self.is_counted(id, claim);
                let slot = if counts { BudgetSlot::Taken } else { BudgetSlot::None };
                let pods = if counts { claim.reserved } else { self.abandoned_unavailable(id, claim) };
                let source = self.source_of_inventory_id(&claim.inventory_id);
                let load = WorkloadLoad { id: id.clone(), source, slot, unavailable: away(id).max(pods) };
                (counts || pods > 0).then_some(load)
            })
            .collect();
        let others = rollouts.pod_counts.unavailable_workloads().iter();
        let others = others.filter(|(id, _)| !rollouts.in_flight.contains_key(*id));
        let others = others.filter(|(id, _)| claims.iter().all(|claim| claim.id != **id));
        let others = others.map(|(id, (source, away))| WorkloadLoad {
            id: id.clone(),
            source: Some(*source),
            slot: BudgetSlot::None,
            unavailable: *away,
        });
        rolls.chain(others).chain(claims.iter().cloned()).collect()
    }

    /// Takes over what a workload takes of the budget now: it is shown otherwise, is wanted, or is
    /// no longer.
    pub(in crate::engine) fn track_rollout(&mut self, id: &ObjectId) {
        if !is_workload(id) {
            return;
        }
        let (was, is) = (self.rollouts.pod_counts.load_of(id), self.current_count(id));
        if was == is && was.is_some() {
            // Its load is the same; its progress may not be.
            self.register_live_rollout(id);
            return;
        }
        self.rollouts.pod_counts.set_load(id, is);
        self.rollouts.slot_requests.mark_stale();
        self.register_live_rollout(id);
    }

    fn current_count(&self, id: &ObjectId) -> Option<CountedLoad> {
        let live = self.informer_object(id)?;
        let source = self.source_of(live).filter(|_| self.is_budgeted(id, live))?;
        let before = self.rollouts.pod_counts.load_of(id);
        Some(CountedLoad::new(source, live.replica_status?, live.overlay, self.count_origin(id), before))
    }

    /// Returns who gives the count of a workload's pods.
    fn count_origin(&self, id: &ObjectId) -> CountOrigin {
        if id.kind() == "DaemonSet" {
            return CountOrigin::Nodes;
        }
        let entry = self.entry(id);
        if entry.is_some_and(|entry| self.replica_owner(id, entry) == ReplicaOwner::Autoscaler) {
            let is_known = self.objects.autoscaled_objects().is_some();
            return if is_known { CountOrigin::Scale } else { CountOrigin::Unknown };
        }
        let target = entry.and_then(|entry| entry.target_content()).map(|(_, desired)| desired);
        match entry.and_then(|entry| entry.accepted.content()).or(target) {
            // A newer content goes beyond it as soon as it is released.
            Some(content) => content.replicas.map_or(CountOrigin::Scale, |count| {
                CountOrigin::Manifest(count.max(target.and_then(|target| target.replicas).unwrap_or(0)))
            }),
            None if self.is_source_read(id) => CountOrigin::Scale,
            None => CountOrigin::Unknown,
        }
    }

    fn is_source_read(&self, id: &ObjectId) -> bool {
        let source = self.informer_object(id).and_then(|live| self.source_of(live));
        source.is_some_and(|source| self.sources[source].head.is_some())
    }

    /// Returns how many of the pods that may be lost a workload has: its strategy is of the count in
    /// its spec.
    pub(in crate::engine) fn credible_loss(
        &self,
        id: &ObjectId,
        replica_status: ReplicaStatus,
        loss: u32,
    ) -> u32 {
        loss.min(self.count_origin(id).credible_pods(replica_status))
    }

    /// Returns whether a workload counts for the budget: a source wants it, or it is provably ours.
    /// A copy with the label would otherwise delay all rollouts.
    pub(in crate::engine) fn is_budgeted(&self, id: &ObjectId, live: &LiveObject) -> bool {
        self.wanting_source(id).is_some() || self.inventory_source(live).is_some()
    }

    pub(in crate::engine) fn budget_overrides(
        &self,
        id: &ObjectId,
    ) -> impl Iterator<Item = &BudgetNarrowing> {
        let source = self.wanting_source(id).map(|source| &self.sources[source].declared.budget);
        let namespace = id.namespace().and_then(|name| self.rollouts.budget.namespaces.get(name));
        source.into_iter().chain(namespace)
    }

    /// Wakes the workloads that the budget allows to start, or whose reason to wait is another one
    /// now.
    pub(in crate::engine) fn divide_budget(&mut self) {
        if !self.rollouts.slot_requests.take_stale_mark() {
            return;
        }
        self.rollouts.queue.mark_dirty();
        let slot_verdicts = self.slot_verdicts();
        let before = self.rollouts.slot_requests.replace_verdicts(slot_verdicts);
        let kind = |shortage: &Option<BudgetShortage>| shortage.as_ref().map(BudgetShortage::kinds);
        let changed =
            |(id, now): &(&ObjectId, &Option<BudgetShortage>)| before.get(*id).map(kind) != Some(kind(now));
        let changed = self.rollouts.slot_requests.verdicts().iter().filter(changed);
        self.objects.wakes.mark_each(changed.map(|(id, _)| id.clone()));
    }
}

/// The use of the cluster's rollout budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetUsage {
    /// Slots that are taken, and one for each claim that cannot be read; and how many there are.
    pub workloads: (u32, u32),
    /// The number of rollouts that may begin at a time now: it grows by each success.
    pub window: u32,
    /// Pods that are unavailable or may become so by what was begun, and how many may be.
    pub unavailable: (u32, u32),
    /// Rollouts that began in the last minute, and how many may.
    pub starts: (u32, u32),
    /// The action after a failure, where nothing narrower says otherwise.
    pub on_failure: OnFailure,
    /// Indicates whether the rollout ledger has been read: none before.
    pub known: bool,
}

impl Engine {
    /// Returns the use of the whole cluster's rollout budget.
    pub(in crate::engine) fn usage(&self) -> BudgetUsage {
        let (loads, rollouts) = (self.loads(), &self.rollouts);
        let in_flight = loads.iter().filter(|load| load.slot == BudgetSlot::Taken).count();
        let cluster_bound =
            self.budget_bounds().into_iter().find(|bound| bound.scope == BudgetScope::Cluster);
        let (workloads, away, starts) =
            cluster_bound.map_or((0, 0, (0, 0)), |b| (b.workloads, b.unavailable, b.starts));
        BudgetUsage {
            workloads: (
                (in_flight as u32).saturating_add(self.count_unreadable_claims(&BudgetScope::Cluster)),
                workloads,
            ),
            window: rollouts.slot_requests.slow_start_limit(),
            unavailable: (
                loads
                    .iter()
                    .map(|load| load.unavailable)
                    .fold(self.unnamed_unavailable(&BudgetScope::Cluster), u32::saturating_add),
                away,
            ),
            starts: (starts.1.saturating_sub(starts.0), starts.1),
            on_failure: rollouts.budget.on_failure,
            known: rollouts.ledger.latest().is_some(),
        }
    }

    /// Returns the workloads that roll now, and those that others have claimed, each with what it
    /// takes of the budget. A failed one that stays as it is rolls no more.
    pub(in crate::engine) fn rolling_workloads(&self) -> Vec<WorkloadLoad> {
        let taking = |load: &WorkloadLoad| load.slot == BudgetSlot::Taken || self.is_in_progress(&load.id);
        let mut loads: Vec<WorkloadLoad> = self.loads().into_iter().filter(taking).collect();
        loads.sort_by(|one, other| one.id.cmp(&other.id));
        loads
    }
}
