//! From a write that would restart pods to the claim under which they are restarted.
//!
//! The workload *requests* a slot. The budget *grants* it ([`grant_slots`]). A *claim* is written
//! into the rollout ledger by compare-and-swap, with a *start* where the workload held no slot.
//! Only when that has come back the write goes out, and the rollout begins. Its end takes the claim
//! back. One that fails and goes back keeps its slot: the claim of the rollback takes the place of
//! its claim, without a new start.
//!
//! `Engine::decide` calls `claim_budget`. `src/daemon/reconciler/rollout_ledger.rs` writes what
//! `next_ledger` returns by `Engine::poll_ledger`, and hands the answer to `set_ledger`. The table
//! in `mod.rs` has the states of a workload, each with what becomes of its claim.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::decide::budget_shortage::{BudgetScope, BudgetShortage};
use crate::engine::decide::decision::{
    Action, ApplyPurpose, ApplyRequest, Decision, DeletionReason, RestartRisk,
};
use crate::engine::decide::repair::FIGHT_WINDOW;
use crate::engine::facts::budget::BudgetNarrowing;
use crate::engine::facts::records::release_unit::{ReleaseUnit, RollbackTarget};
use crate::engine::rollout::budget::{BudgetBound, BudgetSlot, SlotPriority, SlotRequest, grant_slots};
use crate::engine::rollout::ledger::{RolloutClaim, RolloutLedger};
use crate::engine::rollout::recreation::RolloutMethod;
use crate::engine::rollout::rollouts::{Rollout, RolloutStartState};
use crate::engine::rollout::start_rate::RolloutStart;
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{LiveObject, Reason, WorkloadPhase, is_workload};
use crate::health::HealthStatus;
use crate::object::{ContentHash, ObjectId};

impl Engine {
    /// Requests a claim for a write that may restart pods, and lets it pass only once that is
    /// recorded.
    pub(in crate::engine) fn claim_budget(&mut self, id: &ObjectId, decision: Decision) -> Decision {
        if self.blockers.mode == DecisionMode::Plan {
            return decision;
        }
        if let Action::DryRun(apply) = &decision.action {
            // Until the answer is here it keeps its place in the queue.
            let apply = ApplyRequest { restarts: RestartRisk::Possible, ..apply.clone() };
            if let Some((request, claim)) = self.slot_request(id, &Action::Apply(apply)) {
                self.rollouts.slot_requests.insert(request, claim);
            }
            return decision;
        }
        let Some((request, claim)) = self.slot_request(id, &decision.action) else {
            if !self.is_waiting_for_unit(id, &decision) {
                self.withdraw(id);
                self.give_back_failed_slot(id, &decision);
            }
            return decision;
        };
        let is_recorded = self.own_claim(id).is_some_and(|recorded| is_sufficient(recorded, &claim));
        // A step that is held has given its slot back, and asks for the next one anew.
        let gave_back =
            self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.slot == BudgetSlot::None);
        let stands_for_rollout = self.is_claim_of_live_rollout(id, &claim);
        // It asks before new contents again once its last repair is a minute ago.
        let asks_again = (request.priority == SlotPriority::RepeatedRepair).then_some(FIGHT_WINDOW);
        self.rollouts.slot_requests.insert(request, claim);
        // A claim that an ended rollout left counts as taken back: a new claim and start are needed.
        let has_unused_claim = self.rollouts.ledger.is_unused(id);
        if is_recorded && has_unused_claim {
            self.rollouts.ledger.reopen_claim(id);
        }
        let holds = is_recorded && (has_unused_claim || (!gave_back && !self.rollouts.ledger.is_ended(id)));
        let is_to_be_written = self.rollouts.slot_requests.claims_to_write().contains(id);
        if holds && !is_to_be_written && self.rollouts.ledger.recovery().is_complete() {
            return decision;
        }
        if let Some(why) = self.rollouts.ledger.unreadable_reason().cloned() {
            self.rollouts.slot_requests.drop_claim_to_write(id);
            return Decision::wait(Reason::RecordUnreadable(why));
        }
        if let Some(shortage) = self.slot_shortage(id) {
            self.rollouts.slot_requests.drop_claim_to_write(id);
            return Decision { requeue_after: asks_again, ..Decision::wait(Reason::Budget(shortage)) };
        }
        if holds || stands_for_rollout {
            self.rollouts.slot_requests.drop_claim_to_write(id);
            return decision;
        }
        self.rollouts.slot_requests.add_claim_to_write(id);
        Decision::wait(Reason::Claiming)
    }

    /// Returns whether a workload has its claim, and only what is released together with it has not
    /// been written yet.
    fn is_waiting_for_unit(&self, id: &ObjectId, decision: &Decision) -> bool {
        let Some(Reason::Needs(need, _)) = &decision.reason else { return false };
        let refused = self.is_withheld(need);
        let candidate =
            self.entry(id).and_then(|entry| entry.unreleased_content()).map(|desired| desired.hash);
        let restarted = || {
            let (_, desired) = self.entry(id)?.target_content()?;
            Some(Self::restart_key(desired.hash, self.restart_stamp(id)?.data))
        };
        let requested = candidate.or_else(restarted);
        let recorded = self.own_claim(id).map(|claim| claim.rollout_key);
        !refused && self.is_in_unit(need) && requested.is_some() && requested == recorded
    }

    fn slot_request(&self, id: &ObjectId, action: &Action) -> Option<(SlotRequest, RolloutClaim)> {
        let (source, priority, wave, content, reserved) = match action {
            Action::Apply(apply) if apply.restarts == RestartRisk::Possible => {
                let priority = match apply.purpose {
                    ApplyPurpose::Repair if self.has_recent_repair(id) => SlotPriority::RepeatedRepair,
                    ApplyPurpose::Repair => SlotPriority::Repair,
                    _ if self.has_rollback_target(id) => SlotPriority::Rollback,
                    ApplyPurpose::Restart if !self.has_pending_data(id) => SlotPriority::Restart,
                    _ => SlotPriority::NewContent,
                };
                let lost = |replicas| self.loss_of_write(id, apply, replicas);
                let content = match (apply.purpose, apply.variant.config_stamp) {
                    (ApplyPurpose::Restart, Some(next)) => Self::restart_key(apply.desired.hash, next.data),
                    _ => apply.desired.hash,
                };
                (apply.source, priority, apply.desired.wave, content, self.possible_loss(id, lost))
            }
            Action::Delete(_, _, DeletionReason::Recreate) if is_workload(id) => {
                let (source, desired) = self.entry(id)?.target_content()?;
                (
                    source,
                    SlotPriority::NewContent,
                    desired.wave,
                    desired.hash,
                    self.possible_loss(id, |replicas| replicas),
                )
            }
            Action::Nothing => return self.node_slot_request(id),
            _ => return None,
        };
        let additional_unavailable = self.additional_unavailable(id, reserved);
        let request =
            SlotRequest { priority, wave, id: id.clone(), source, additional_unavailable, reserved };
        let claim = self.make_claim(source, content, reserved);
        let recreates = matches!(action, Action::Delete(..));
        Some((request, if recreates { self.recreating_claim(id, claim) } else { claim }))
    }

    /// Returns the number of pods that a write may have unavailable at a time. All of them are reserved
    /// as long as it rolls out. Some may be unavailable already, and get well before it takes
    /// down the next ones.
    pub(in crate::engine) fn possible_loss(&self, id: &ObjectId, may_lose: impl Fn(u32) -> u32) -> u32 {
        let replica_status = self.live_object(id).and_then(|live| live.replica_status);
        // Only metadata was read of an object that is not ours yet.
        match replica_status {
            Some(replica_status) => self.credible_loss(id, replica_status, may_lose(replica_status.replicas)),
            None => may_lose(self.dry_run_restarts(id)),
        }
    }

    /// Returns how many of these pods are not unavailable already. The pods that its own rollout has
    /// taken down count where more are to go: no broken workload is mended then.
    pub(in crate::engine) fn additional_unavailable(&self, id: &ObjectId, lost: u32) -> u32 {
        let away = self.rollouts.pod_counts.unavailable_of(id);
        let own = self.rollouts.in_flight.get(id).filter(|rollout| {
            rollout.claim.is_some() && rollout.failed.is_none() && rollout.slot == BudgetSlot::Taken
        });
        match own {
            Some(rollout) if lost > rollout.reserved.max(away) => lost,
            _ => lost.saturating_sub(away),
        }
    }

    /// Returns whether a workload that asks has its claim, and has not been written yet.
    pub(in crate::engine) fn is_claimed(&self, id: &ObjectId) -> bool {
        let requested_key = self.rollouts.slot_requests.claim_of(id).map(|claim| claim.rollout_key);
        let recorded = self.own_claim(id).map(|claim| claim.rollout_key);
        let counts = !self.rollouts.ledger.is_ended(id) || self.rollouts.ledger.is_unused(id);
        requested_key.is_some() && requested_key == recorded && counts
    }

    /// Returns the shortage of the budget for a request.
    fn slot_shortage(&mut self, id: &ObjectId) -> Option<BudgetShortage> {
        self.divide_budget();
        self.rollouts.slot_requests.verdicts().get(id).cloned().flatten()
    }

    pub(in crate::engine) fn withdraw(&mut self, id: &ObjectId) {
        if self.rollouts.slot_requests.remove(id) {
            self.rollouts.ledger.drop_unused_claim(id);
        }
    }

    /// Returns the budget's answer to each request.
    pub(in crate::engine) fn slot_verdicts(&self) -> BTreeMap<ObjectId, Option<BudgetShortage>> {
        if self.rollouts.slot_requests.is_empty() {
            return BTreeMap::new();
        }
        let recovery = self.rollouts.ledger.recovery();
        if let Some(short) = self.rollouts.starts.current_time().and_then(|now| recovery.shortage(now)) {
            let requests = self.rollouts.slot_requests.requests().iter();
            return requests.map(|request| (request.id.clone(), Some(short.clone()))).collect();
        }
        let mut slot_verdicts = grant_slots(
            self.rollouts.slot_requests.requests(),
            &self.loads(),
            &self.budget_bounds(),
            self.rollouts.slot_requests.slow_start_limit(),
        );
        self.add_hidden_reasons(&mut slot_verdicts);
        self.add_holders(&mut slot_verdicts);
        slot_verdicts
    }

    /// Returns the bounds in numbers of now.
    pub(in crate::engine) fn budget_bounds(&self) -> Vec<BudgetBound> {
        let (rollouts, budget) = (&self.rollouts, &self.rollouts.budget);
        let starts = |most: u32, counts: &dyn Fn(&RolloutStart) -> bool| {
            (most.saturating_sub(rollouts.starts.count(counts)), most)
        };
        let mut bounds = vec![BudgetBound {
            scope: BudgetScope::Cluster,
            workloads: budget.max_workloads,
            unavailable: budget.max_unavailable.of(self.pods_of_all()),
            unnamed: self.unnamed_unavailable(&BudgetScope::Cluster),
            unreadable_claims: self.count_unreadable_claims(&BudgetScope::Cluster),
            starts: starts(budget.starts_per_minute, &|_| true),
        }];
        let narrowed = |scope: BudgetScope,
                        narrowing: &BudgetNarrowing,
                        pods,
                        counts: &dyn Fn(&RolloutStart) -> bool| {
            BudgetBound {
                unnamed: self.unnamed_unavailable(&scope),
                unreadable_claims: self.count_unreadable_claims(&scope),
                scope,
                workloads: narrowing.max_workloads.unwrap_or(u32::MAX),
                unavailable: narrowing.max_unavailable.map_or(u32::MAX, |amount| amount.of(pods)),
                starts: starts(narrowing.starts_per_minute.unwrap_or(u32::MAX), counts),
            }
        };
        for (number, source) in self.source_ids().zip(self.sources.states()) {
            let pods = rollouts.pod_counts.pods_of(number);
            let scope = BudgetScope::Source(number, source.declared.name.clone());
            let of_it = |start: &RolloutStart| start.inventory_id == source.declared.inventory_id;
            bounds.push(narrowed(scope, &source.declared.budget, pods, &of_it));
        }
        for (name, narrowing) in &budget.namespaces {
            let scope = BudgetScope::Namespace(name.clone());
            let in_it = |start: &RolloutStart| start.id.namespace() == Some(name);
            bounds.push(narrowed(scope, narrowing, self.pods_of_all_in(name), &in_it));
        }
        bounds
    }

    /// Records that a write is on its way: it holds its slot from now on.
    pub(in crate::engine) fn note_dispatch(&mut self, id: &ObjectId, action: &Action) {
        self.clear_memo();
        self.rollouts.writes_in_flight.begin(id);
        if is_workload(id) && matches!(action, Action::Apply(_)) {
            self.rollouts.ledger.remember_workload();
        }
        let takes = match action {
            Action::Apply(apply) => apply.restarts == RestartRisk::Possible,
            Action::Delete(_, _, DeletionReason::Recreate) => is_workload(id),
            _ => false,
        };
        if !takes {
            if let Action::Apply(apply) = action {
                self.resume_recreation(id, apply);
            }
            return;
        }
        let claim = self.rollouts.slot_requests.claim_of(id).cloned();
        self.withdraw(id);
        self.rollouts.ledger.reopen_claim(id);
        let claim = claim.or_else(|| self.own_claim(id).cloned());
        let reserved = claim.as_ref().map_or(0, |claim| claim.reserved);
        let health = self.live_object(id).map(|live| &live.health);
        let earlier_failure = health
            .filter(|health| health.status == HealthStatus::Failed)
            .map(|health| health.message.clone());
        let mut rollout = Rollout::new(BudgetSlot::Taken, reserved, claim, None);
        if matches!(action, Action::Delete(..)) {
            rollout.method = RolloutMethod::Recreate;
        } else {
            rollout.earlier_failure = earlier_failure;
        }
        let before = self.rollouts.in_flight.remove(id);
        rollout.pods = before.as_ref().and_then(|before| before.pods.clone());
        if before.as_ref().is_some_and(|before| {
            before.failed.is_some() || before.started_from == RolloutStartState::Failure
        }) {
            rollout.started_from = RolloutStartState::Failure;
        }
        rollout.replaced = before.map(Box::new);
        self.continue_rollout(id, action, &mut rollout);
        self.rollouts.in_flight.insert(id.clone(), rollout);
        self.rollouts.slot_requests.mark_stale();
    }

    /// Takes over what the rollout ledger says; `RolloutLedger::default()` where there is none.
    pub(in crate::engine) fn set_ledger(&mut self, ledger: RolloutLedger) {
        self.clear_memo();
        let ledger = self.rollouts.ledger.restore_lost(ledger, &self.rollouts.starts);
        let ours = |inventory_id: &Arc<str>| self.sources.inventory_ids().contains(inventory_id);
        self.rollouts.ledger.retain_claims_of(&ledger);
        let known = self.rollouts.ledger.latest().map(|known| &known.units[..]).unwrap_or_default();
        let opened = ledger.units.iter().filter(|unit| ours(&unit.inventory_id) && !known.contains(unit));
        let opened: Vec<ObjectId> = opened.flat_map(|unit| unit.members.keys().cloned()).collect();
        let claims = ledger.claims.iter().filter(|(_, claim)| ours(&claim.inventory_id));
        let claims: Vec<(ObjectId, RolloutClaim)> =
            claims.map(|(id, claim)| (id.clone(), claim.clone())).collect();
        // This may be the answer to a call from before their requests, so they ask again.
        self.objects.wakes.mark_each(self.rollouts.units.take_waiting());
        let transferring = self.rollouts.transfers.note_answer(|id| self.objects.entries.contains_key(id));
        self.objects.wakes.mark_each(transferring);
        self.rollouts.starts.record_ledger(&ledger);
        self.rollouts.foreign_claims.forget_outdated_views(self.rollouts.ledger.latest(), &ledger);
        self.rollouts.ledger.set(ledger);
        self.set_ledger_fault(None);
        self.unlock_ledger();
        self.orders.mark_stale();
        self.forget_authors();
        self.rollouts.slot_requests.mark_stale();
        for (id, claim) in &claims {
            self.adopt_transferred_claim(id, claim);
            if let Some(rollout) =
                self.rollouts.in_flight.get_mut(id).filter(|rollout| rollout.claim.is_none())
            {
                rollout.claim = Some(claim.clone());
            }
            let requested = self.rollouts.slot_requests.claim_of(id);
            if requested.is_some_and(|requested| requested.rollout_key == claim.rollout_key) {
                self.rollouts.slot_requests.drop_claim_to_write(id);
                self.note_unused_claim(id);
                self.mark_dirty(id);
            }
        }
        for id in claims.iter().map(|(id, _)| id).chain(&opened) {
            self.register_live_rollout(id);
        }
        self.evaluate_recorded(&opened);
        self.objects.wakes.mark_each(opened);
    }

    /// Records why the rollout ledger cannot be read: nothing new is claimed before a person mends
    /// it.
    pub(in crate::engine) fn set_ledger_unreadable(&mut self, why: &str) {
        self.set_ledger_fault(Some(why.into()));
    }

    /// Asks all again that wait for the budget, where it can or cannot be read any more.
    fn set_ledger_fault(&mut self, unreadable: Option<Arc<str>>) {
        if self.rollouts.ledger.unreadable_reason() != unreadable.as_ref() {
            self.rollouts.ledger.set_unreadable_reason(unreadable);
            self.objects.wakes.mark_each(self.rollouts.slot_requests.ids().cloned());
        }
    }

    /// Gives a workload its slot, where its claim was written together with a start. That may be
    /// the second start of one rollout.
    fn note_unused_claim(&mut self, id: &ObjectId) {
        let Some(ledger) = self.rollouts.ledger.latest() else { return };
        if self.rollouts.starts.try_take_newest(ledger, id) {
            self.rollouts.ledger.add_unused_claim(id);
            self.rollouts.slot_requests.mark_stale();
        }
    }

    /// Records that the ledger of [`Engine::next_ledger`] is in flight. Until
    /// [`Engine::set_ledger`] is called again nobody knows its content.
    pub(in crate::engine) fn note_ledger_write(&mut self, next: &RolloutLedger) {
        self.rollouts.ledger.begin_write(next);
        self.note_ledger_call();
    }

    /// Returns whether the cluster shows this content.
    pub(in crate::engine) fn is_showing(&self, id: &ObjectId, content: ContentHash) -> bool {
        let release = self.live_object(id).and_then(LiveObject::shown_release);
        let Some(release) = release else { return false };
        let entry = self.entry(id);
        let data = self.live_object(id).and_then(LiveObject::shown_config_stamp).map(|started| started.data);
        let same = |desired: &crate::engine::SharedDesiredObject| {
            let restarted = data.map(|data| Self::restart_key(desired.hash, data));
            (desired.hash == content || restarted == Some(content)) && desired.has_hash(release.hash)
        };
        release.hash == content
            || entry.is_some_and(|entry| {
                entry.accepted.content().is_some_and(same)
                    || entry.target_content().is_some_and(|(_, desired)| same(desired))
            })
    }

    /// Returns the ledger as it should be, where it is not so; `mod.rs` has the states of claims.
    pub(in crate::engine) fn next_ledger(&self) -> Option<RolloutLedger> {
        let ledger = self.rollouts.ledger.latest()?;
        let mut next = ledger.clone();
        let ours = |inventory_id: &Arc<str>| self.sources.inventory_ids().contains(inventory_id);
        next.claims.retain(|id, claim| {
            if self.rollouts.foreign_claims.is_retired(&claim.inventory_id) {
                return self.is_counted(id, claim);
            }
            !ours(&claim.inventory_id)
                || self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.slot == BudgetSlot::Taken)
                || self.is_claimed(id)
                || (!self.rollouts.ledger.is_ended(id) && self.is_takeover_pending(id, &claim.inventory_id))
                || self.is_of_another(id, claim)
                || self.entry(id).is_some_and(|entry| entry.min_resource_version.is_some())
                || (!self.is_observable(id) && self.is_counted(id, claim))
        });
        let is_over = |unit: &mut ReleaseUnit| ours(&unit.inventory_id) && self.is_concluded(unit);
        let over: Vec<ReleaseUnit> = next.units.extract_if(.., is_over).collect();
        over.into_iter().filter(|unit| self.can_be_undone(unit)).for_each(|unit| next.push_history(unit));
        self.record_retried_units(&mut next);
        self.record_inherited_failures(&mut next);
        for (id, rollout) in &self.rollouts.in_flight {
            let requested_key = self.rollouts.slot_requests.claim_of(id).map(|claim| claim.rollout_key);
            let newer = requested_key.is_some()
                && ledger.claims.get(id).map(|claim| claim.rollout_key) == requested_key;
            let is_kept =
                rollout.slot == BudgetSlot::Taken && !newer && !self.is_claim_transferred(id, rollout);
            if let Some(claim) = rollout.claim.as_ref().filter(|_| is_kept) {
                next.claims.insert(id.clone(), claim.clone());
            }
        }
        self.record_requested_units(&mut next);
        let claims_to_write = self.rollouts.slot_requests.claims_to_write();
        let slot_verdicts = if claims_to_write.is_empty() { BTreeMap::new() } else { self.slot_verdicts() };
        let allowed = |id: &&ObjectId| matches!(slot_verdicts.get(*id), Some(None));
        let held = if claims_to_write.is_empty() { BTreeSet::new() } else { self.workloads_in_flight() };
        let mut begun = Vec::new();
        for id in claims_to_write.iter().filter(allowed) {
            let Some((request, claim)) = self.rollouts.slot_requests.get(id) else { continue };
            if matches!(request.priority, SlotPriority::NewContent | SlotPriority::Restart) {
                let unit = self.build_unit(request.source, id);
                if !self.are_members_known(&unit) || !next.has_room_for(&unit) {
                    continue;
                }
                record(&mut next.units, unit);
            }
            next.claims.insert(id.clone(), claim.clone());
            if !held.contains(id) {
                begun.push((id.clone(), claim.inventory_id.clone()));
            }
        }
        if next == *ledger && begun.is_empty() && self.rollouts.ledger.recovery().is_complete() {
            return None;
        }
        self.rollouts.ledger.recovery().begin(&mut next, &self.rollouts.starts);
        self.rollouts.starts.write(&mut next, begun);
        self.record_authors(&mut next);
        let tallies = self.tallies(&next);
        Some(self.with_tallies(next, tallies))
    }
}

impl Engine {
    /// Records the units that something waits for, though nothing of them asks for a claim.
    fn record_requested_units(&self, next: &mut RolloutLedger) {
        for (source, id) in self.rollouts.units.units_to_record().keys() {
            let unit = self.build_unit(*source, id);
            if !unit.members.is_empty()
                && self.are_members_known(&unit)
                && next.has_room_for(&unit)
                && !next.units.iter().any(|known| has_contents_of(known, &unit))
            {
                record(&mut next.units, unit);
            }
        }
        for unit in self.transferred_units(next) {
            self.transfer_claims(&unit, next);
            record(&mut next.units, unit);
        }
    }
}

/// The end of a process.
impl Engine {
    /// Returns what the rollout ledger should say once this process has ended; none where it says
    /// so.
    pub(in crate::engine) fn last_ledger(&self) -> Option<RolloutLedger> {
        let ledger = self.rollouts.ledger.latest()?;
        let mut next = ledger.clone();
        let holder = self.rollouts.ledger.holder();
        let is_done = |id: &ObjectId| {
            let replica_status = self.informer_object(id).and_then(|live| live.replica_status);
            let awaits = self.rollouts.in_flight.get(id).and_then(|rollout| rollout.min_resource_version);
            let is_seen = awaits.is_none_or(|rv| self.informer_object(id).is_some_and(|live| live.rv >= rv));
            let at_rest =
                replica_status.is_none_or(|replica_status| replica_status.phase == WorkloadPhase::Settled);
            is_seen && at_rest && self.is_observable(id) && !self.rollouts.writes_in_flight.contains(id)
        };
        next.claims.retain(|id, claim| claim.holder != *holder || !is_done(id));
        for claim in next.claims.values_mut().filter(|claim| claim.holder == *holder) {
            claim.holder_exited = true;
        }
        if next == *ledger && self.rollouts.ledger.recovery().is_complete() {
            return None;
        }
        self.rollouts.ledger.recovery().begin(&mut next, &self.rollouts.starts);
        let tallies = self.tallies(&next);
        Some(self.with_tallies(next, tallies))
    }
}

/// Returns whether a recorded claim is enough for a write that asks for this one.
///
/// A deletion takes down all pods, and others have to know that the workload comes back. The claim
/// for an update to the same content may have fewer, and does not say so.
fn is_sufficient(recorded: &RolloutClaim, requested: &RolloutClaim) -> bool {
    recorded.rollout_key == requested.rollout_key
        && (!requested.recreates || (recorded.recreates && recorded.reserved >= requested.reserved))
}

/// Returns whether a record says of all members of a unit what they ask for.
fn has_contents_of(known: &ReleaseUnit, unit: &ReleaseUnit) -> bool {
    let is_described = |(id, member): (&ObjectId, &crate::engine::UnitMember)| {
        known.members.get(id).is_some_and(|known| known.content == member.content)
    };
    known.inventory_id == unit.inventory_id && unit.members.iter().all(is_described)
}

/// Records a unit; those that share an object with it are one with it.
///
/// An older record ends where all that it shares comes from another inventory: that one has had
/// the objects since.
fn record(units: &mut Vec<ReleaseUnit>, mut unit: ReleaseUnit) {
    let shares = |other: &ReleaseUnit| {
        other.inventory_id == unit.inventory_id
            && other.members.keys().any(|id| unit.members.contains_key(id))
    };
    let (same, others): (Vec<ReleaseUnit>, Vec<ReleaseUnit>) =
        std::mem::take(units).into_iter().partition(shares);
    for older in &same {
        let is_outdated = older
            .members
            .keys()
            .filter_map(|id| unit.members.get(id))
            .all(|member| matches!(member.rollback_target, RollbackTarget::FormerContent { .. }));
        if !is_outdated {
            unit.merge_older(older);
        }
    }
    *units = others;
    units.push(unit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::world::config;
    use crate::engine::{ContentRef, UnitMember};
    use crate::object::Revision;

    /// Returns a unit of objects, each with its content and the one that it goes back to.
    fn unit(inventory_id: &str, members: &[(&str, &str, &str)]) -> ReleaseUnit {
        let hash = |text: &str| ContentHash::hash_bytes(text.as_bytes());
        let member = |(name, content, good): &(&str, &str, &str)| {
            let release = ContentRef { hash: hash(good), revision: Revision::new(good) };
            let rollback_target = RollbackTarget::Content(release);
            (config(name), UnitMember { content: Some(hash(content)), rollback_target, restarted: None })
        };
        let members = members.iter().map(member).collect();
        ReleaseUnit { inventory_id: inventory_id.into(), revision: Revision::new("r"), members }
    }

    #[test]
    fn a_record_is_of_a_unit_whose_contents_it_names() {
        let (a, b, c) = (("a", "2", "1"), ("b", "2", "1"), ("c", "2", "1"));
        let check = |inventory_id: &str, known: &[(&str, &str, &str)], expected: bool| {
            let known = unit(inventory_id, known);
            assert_eq!(has_contents_of(&known, &unit("a-v1", &[a, b])), expected, "{known:?}");
        };
        check("a-v1", &[a, b], true);
        check("a-v1", &[a, b, c], true);
        check("a-v1", &[a], false);
        check("a-v1", &[a, ("b", "3", "1")], false);
        check("b-v1", &[a, b], false);
    }

    #[test]
    fn units_of_an_inventory_that_share_an_object_are_one() {
        let (beside, other) = (unit("a-v1", &[("x", "2", "1")]), unit("b-v1", &[("a", "2", "1")]));
        let mut units = vec![unit("a-v1", &[("a", "2", "1")]), beside.clone(), other.clone()];
        record(&mut units, unit("a-v1", &[("a", "3", "2"), ("b", "3", "2")]));
        assert_eq!(units, [beside, other, unit("a-v1", &[("a", "3", "1"), ("b", "3", "2")])]);
    }

    #[test]
    fn a_record_ends_where_another_inventory_has_had_all_that_it_shares_since() {
        let mut units = vec![unit("a-v1", &[("a", "2", "1"), ("c", "2", "1")])];
        let mut moved = unit("a-v1", &[("a", "3", "2"), ("b", "3", "2")]);
        let target = &mut moved.members.get_mut(&config("a")).unwrap().rollback_target;
        let content = target.content_ref().unwrap().clone();
        *target = RollbackTarget::FormerContent { content, inventory_id: "b-v1".into() };
        record(&mut units, moved.clone());
        assert_eq!(units, [moved]);
    }
}
