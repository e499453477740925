//! Workloads in flight: the beginning and the end of each rollout.
//!
//! A rollout is this process' tracking of one workload while its pods are being replaced. It begins
//! when the write goes out (`note_dispatch` in `budget_claims.rs`), or when the cluster or the
//! rollout ledger shows it. It ends when the workload has been healthy for the soak time, or when
//! nothing is left to watch. A failed one stays until the next write replaces it, or until it is
//! healthy. It need not be stored: a new process makes it again from what the cluster shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::decide::decision::{ApplyPurpose, ApplyRequest};
use crate::engine::facts::budget::Budget;
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::live_object::live_overlay;
use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::decision_memo::DecisionMemo;
use crate::engine::rollout::evaluation::{RolloutTracking, RolloutVerdict, UnjudgedFailure};
use crate::engine::rollout::events::{RolloutEventKind, UnreportedEvents};
use crate::engine::rollout::failure_cause::RolloutFailureCause;
use crate::engine::rollout::foreign_claims::ForeignClaims;
use crate::engine::rollout::ledger::RolloutClaim;
use crate::engine::rollout::ledger_state::LedgerState;
use crate::engine::rollout::pod_counts::PodCounts;
use crate::engine::rollout::pods::WorkloadPods;
use crate::engine::rollout::progress::{InterruptedRollouts, ProgressTracking};
use crate::engine::rollout::queue::QueueState;
use crate::engine::rollout::recreation::RolloutMethod;
use crate::engine::rollout::rollback::RollbackState;
use crate::engine::rollout::slot_requests::SlotRequests;
use crate::engine::rollout::start_rate::StartHistory;
use crate::engine::rollout::step_overlay::StepState;
use crate::engine::rollout::step_tracking::StepTracking;
use crate::engine::rollout::stuck_stateful_set::DeletedPod;
use crate::engine::rollout::unit_transfer::UnitTransfers;
use crate::engine::rollout::units::UnitIndex;
use crate::engine::rollout::writes_in_flight::WritesInFlight;
use crate::engine::state::Engine;
use crate::engine::{ResourceVersion, Uid, WorkloadPhase};
use crate::object::{ContentHash, ObjectId};

/// The budget, and the workloads that use it; `mod.rs` has a table of their states.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct Rollouts {
    /// The bounds.
    pub(in crate::engine) budget: Budget,
    /// The workloads whose pods are being replaced, failed ones included.
    pub(in crate::engine) in_flight: BTreeMap<ObjectId, Rollout>,
    /// The progress of rollouts whose workload is not seen at present.
    pub(in crate::engine) interrupted: InterruptedRollouts,
    /// The pods that count, and those of them that are unavailable.
    pub(in crate::engine) pod_counts: PodCounts,
    /// The requests to the budget.
    pub(in crate::engine) slot_requests: SlotRequests,
    /// The starts of the last minute.
    pub(in crate::engine) starts: StartHistory,
    /// The rollout ledger, as it was last read or written.
    pub(in crate::engine) ledger: LedgerState,
    /// The workloads of others' claims, as far as they are known.
    pub(in crate::engine) foreign_claims: ForeignClaims,
    /// The takeovers that wait for the ledger.
    pub(in crate::engine) transfers: UnitTransfers,
    /// The writes that are not answered yet.
    pub(in crate::engine) writes_in_flight: WritesInFlight,
    /// The workloads in steps whose pods are taken away here, and the nodes.
    pub(in crate::engine) steps: StepTracking,
    /// The rollout queue beside the requests to the budget.
    pub(in crate::engine) queue: QueueState,
    /// The events of rollouts that were not reported yet.
    pub(in crate::engine) unreported: UnreportedEvents,
    /// The units of each source.
    pub(in crate::engine) units: UnitIndex,
    /// The rollbacks and retries that have not begun.
    pub(in crate::engine) rollbacks: RollbackState,
    /// Answers about workloads that are asked for once for each object of a unit.
    pub(in crate::engine) memo: DecisionMemo,
}

/// One workload in flight.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Rollout {
    /// The lowest version whose view counts: of our write, or of the view that showed the rollout.
    /// None while our write is not answered.
    pub(in crate::engine) min_resource_version: Option<ResourceVersion>,
    /// The time since which nobody knows whether its write was carried out; none where that is known.
    pub(in crate::engine) unanswered_since: Option<Instant>,
    /// Indicates whether it takes a place of the budget now.
    pub(in crate::engine) slot: BudgetSlot,
    /// Pods that it may have unavailable at a time.
    pub(in crate::engine) reserved: u32,
    /// Its claim; none for a rollout that somebody else began.
    pub(in crate::engine) claim: Option<RolloutClaim>,
    /// The way in which its pods are replaced.
    pub(in crate::engine) method: RolloutMethod,
    /// Words of a failure that it had before our write: not a failure of what we wrote.
    pub(in crate::engine) earlier_failure: Option<Arc<str>>,
    /// Its progress so far.
    pub(in crate::engine) progress: ProgressTracking,
    /// The time since which it is healthy.
    pub(in crate::engine) healthy_since: Option<Instant>,
    /// Indicates whether a Service is switched to it now that it is complete: it is watched until
    /// that has been soaked too.
    pub(in crate::engine) switch: ServiceSwitch,
    /// The time since which its step is held and healthy.
    pub(in crate::engine) step_held_since: Option<Instant>,
    /// Its pods, as last reported.
    pub(in crate::engine) pods: Option<Arc<WorkloadPods>>,
    /// The pod that was to be deleted last to free it.
    pub(in crate::engine) last_deleted_pod: Option<DeletedPod>,
    /// The cause of its failure.
    pub(in crate::engine) failed: Option<RolloutFailureCause>,
    /// A failure that nobody can judge yet.
    pub(in crate::engine) unjudged: UnjudgedFailure,
    /// The state that it started from: after a failed rollout, the pods of that one that are not
    /// Ready are not waited for.
    pub(in crate::engine) started_from: RolloutStartState,
    /// The rollout under way when the write went out: it goes on where the write changes nothing,
    /// or was never carried out.
    pub(in crate::engine) replaced: Option<Box<Rollout>>,
}

impl Rollout {
    /// Returns whether a view of this version is no older than the write of the rollout.
    pub(in crate::engine) fn is_shown_at(&self, version: ResourceVersion) -> bool {
        self.min_resource_version.is_some_and(|written| version >= written)
    }

    /// Returns whether it failed, and keeps its place of the budget.
    pub(in crate::engine) fn has_failed_in_slot(&self) -> bool {
        self.failed.is_some() && self.slot == BudgetSlot::Taken
    }

    /// Returns whether it has a claim, and takes a place of the budget.
    pub(in crate::engine) fn has_claimed_slot(&self) -> bool {
        self.claim.is_some() && self.slot == BudgetSlot::Taken
    }

    /// Returns whether a Service waits to be switched to the workload, which is healthy.
    pub(in crate::engine) fn is_awaiting_switch(&self) -> bool {
        self.switch == ServiceSwitch::Waiting
    }

    /// Returns its pods, unless they were reported before its write.
    pub(in crate::engine) fn own_pods(&self) -> Option<&WorkloadPods> {
        self.pods.as_deref().filter(|pods| self.is_shown_at(pods.rv))
    }

    /// Returns whether pods of the newest revision are seen that are not Ready and show why.
    pub(in crate::engine) fn has_failing_pods(&self) -> bool {
        self.own_pods().is_some_and(|pods| pods.count_failing_newest() > 0)
    }

    pub(in crate::engine) fn new(
        slot: BudgetSlot,
        reserved: u32,
        claim: Option<RolloutClaim>,
        min_resource_version: Option<ResourceVersion>,
    ) -> Self {
        Self {
            min_resource_version,
            unanswered_since: None,
            slot,
            reserved,
            claim,
            method: RolloutMethod::Update,
            earlier_failure: None,
            progress: ProgressTracking::default(),
            healthy_since: None,
            switch: ServiceSwitch::NotWaiting,
            step_held_since: None,
            pods: None,
            last_deleted_pod: None,
            failed: None,
            unjudged: UnjudgedFailure::None,
            started_from: RolloutStartState::Healthy,
            replaced: None,
        }
    }

    /// Returns the rollout key of its claim; none for a rollout that somebody else began.
    pub(in crate::engine) fn content(&self) -> Option<ContentHash> {
        self.claim.as_ref().map(|claim| claim.rollout_key)
    }

    /// Returns what it remembers of what the cluster has shown.
    pub(in crate::engine) fn tracking(&self) -> RolloutTracking {
        let Self { slot, reserved, progress, healthy_since, switch, step_held_since, unjudged, .. } = *self;
        RolloutTracking { slot, reserved, progress, healthy_since, switch, step_held_since, unjudged }
    }

    /// Takes over the facts that an evaluation has to remember.
    fn set_tracking(&mut self, tracking: RolloutTracking) {
        let RolloutTracking { slot, reserved, progress, healthy_since, switch, step_held_since, unjudged } =
            tracking;
        (self.slot, self.reserved, self.progress, self.unjudged) = (slot, reserved, progress, unjudged);
        (self.healthy_since, self.switch, self.step_held_since) = (healthy_since, switch, step_held_since);
    }
}

/// The state that a rollout started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum RolloutStartState {
    /// Healthy pods, or a rollout that had not failed.
    Healthy,
    /// A failed rollout.
    Failure,
}

/// Indicates whether a Service waits to be switched to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum ServiceSwitch {
    /// No Service waits.
    NotWaiting,
    /// A Service waits, and the workload is healthy.
    Waiting,
}

impl Rollouts {
    pub(in crate::engine) fn new(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }
}

impl Engine {
    /// Names this process in its claims. Without a name, all processes are one.
    pub(in crate::engine) fn set_holder(&mut self, holder: &str) {
        self.rollouts.ledger.set_holder(holder);
    }

    /// Takes over the mark of this host's clock: those of other hosts may be wrong by minutes.
    pub(in crate::engine) fn set_clock_mark(&mut self, mark: &str) {
        self.rollouts.starts.set_clock_mark(mark);
    }

    /// Records the answer to a write that may restart pods: its version, or that it changed
    /// nothing.
    pub(in crate::engine) fn record_rollout_write(
        &mut self,
        id: &ObjectId,
        written: Option<ResourceVersion>,
    ) {
        match (self.rollouts.in_flight.get_mut(id), written) {
            (Some(rollout), Some(rv)) => {
                let (first, before) =
                    (rollout.min_resource_version.replace(rv).is_none(), rollout.replaced.take());
                // A step of the same rollout, or another try, begins nothing.
                let running = before.filter(|before| before.failed.is_none());
                let same = running.is_some_and(|before| before.content() == rollout.content());
                if first && !same {
                    let rollout = rollout.clone();
                    self.note_rollout_event(id, &rollout, RolloutEventKind::Started);
                }
            }
            (Some(rollout), None) => match rollout.replaced.take() {
                Some(before) => *rollout = *before,
                None => drop(self.rollouts.in_flight.remove(id)),
            },
            (None, _) => {}
        }
        self.rollouts.slot_requests.mark_stale();
    }

    /// Ends the claim of a workload, whoever made it.
    pub(in crate::engine) fn end_claim(&mut self, id: &ObjectId) {
        if self.own_claim(id).is_some() {
            self.rollouts.ledger.end_claim(id);
        }
    }

    /// Records the release of a workload's content.
    pub(in crate::engine) fn record_release(&mut self, id: &ObjectId, apply: &ApplyRequest) {
        if apply.purpose != ApplyPurpose::Create {
            self.rollouts.units.forget(apply.source);
        } else if self.is_in_unit(id) && !self.rollouts.in_flight.contains_key(id) {
            // Its success decides about its unit.
            let claim = self.make_claim(apply.source, apply.desired.hash, 0);
            let mut rollout = Rollout::new(BudgetSlot::None, 0, Some(claim), Some(ResourceVersion(0)));
            self.resume_rollout(id, &mut rollout);
            self.note_rollout_event(id, &rollout, RolloutEventKind::Started);
            self.rollouts.in_flight.insert(id.clone(), rollout);
        }
    }

    pub(in crate::engine) fn wanting_source(&self, id: &ObjectId) -> Option<SourceId> {
        self.entry(id)?.targets.first().map(|(source, _)| *source)
    }

    /// Makes a rollout of what the cluster shows to be one, and of what was claimed before this
    /// process began.
    pub(in crate::engine) fn register_live_rollout(&mut self, id: &ObjectId) {
        let Some(live) = self.informer_object(id) else {
            // A deleted workload has no pods to replace. One that we have deleted to make it again
            // comes back.
            let is_written =
                self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.min_resource_version.is_some());
            if is_written && !self.is_being_recreated(id) {
                self.interrupt_rollout(id);
            }
            return;
        };
        let takes = self.is_budgeted(id, live);
        if let Some(rollout) = self.rollouts.in_flight.get(id) {
            // A rollout that nobody has claimed counts only as long as it takes budget.
            if !takes && rollout.claim.is_none() {
                self.rollouts.in_flight.remove(id);
                self.rollouts.slot_requests.mark_stale();
            }
            self.note_shown_write(id);
            return;
        }
        let Some(replica_status) = live.replica_status else { return };
        let loss = self.credible_loss(id, replica_status, replica_status.max_unavailable);
        let (written, replacing) = (Some(live.rv), replica_status.phase == WorkloadPhase::Replacing);
        let is_at_step = live_overlay(live).is_some_and(|overlay| overlay.step().is_some());
        // The claim for a write to come says nothing of what the cluster shows.
        let over = self.rollouts.ledger.is_ended(id) || self.rollouts.ledger.is_unused(id);
        let claim =
            self.own_claim(id).filter(|claim| !over && self.is_showing(id, claim.rollout_key)).cloned();
        let mut rollout = match claim {
            Some(claim) => Rollout::new(BudgetSlot::Taken, loss.max(claim.reserved), Some(claim), written),
            None if !takes => return,
            None if is_at_step => self.slotless_rollout(id, written),
            None if replacing => Rollout::new(BudgetSlot::Taken, loss, None, written),
            None if replica_status.phase == WorkloadPhase::FirstStart && self.is_in_unit(id) => {
                self.slotless_rollout(id, written)
            }
            None => return,
        };
        if rollout.claim.as_ref().is_some_and(|claim| claim.recreates) {
            rollout.method = RolloutMethod::Recreate;
        }
        self.resume_rollout(id, &mut rollout);
        self.rollouts.in_flight.insert(id.clone(), rollout);
        self.rollouts.slot_requests.mark_stale();
    }

    /// Returns a rollout that takes no slot: of a held step, or of a new workload whose success
    /// decides about its unit.
    fn slotless_rollout(&self, id: &ObjectId, written: Option<ResourceVersion>) -> Rollout {
        let wanted = self.entry(id).and_then(|entry| entry.target_content());
        let claim = wanted.map(|(source, desired)| self.make_claim(source, desired.hash, 0));
        Rollout::new(BudgetSlot::None, 0, claim, written)
    }

    /// Returns a claim of this process.
    pub(in crate::engine) fn make_claim(
        &self,
        source: SourceId,
        content: ContentHash,
        reserved: u32,
    ) -> RolloutClaim {
        RolloutClaim {
            inventory_id: self.sources.inventory_ids()[source].clone(),
            holder: self.rollouts.ledger.holder().clone(),
            rollout_key: content,
            reserved,
            holder_exited: false,
            recreates: false,
            recreation_deadline: None,
        }
    }

    /// Returns the ledger's claim for one workload of ours.
    pub(in crate::engine) fn own_claim(&self, id: &ObjectId) -> Option<&RolloutClaim> {
        let claim = self.rollouts.ledger.latest()?.claims.get(id)?;
        self.sources.inventory_ids().contains(&claim.inventory_id).then_some(claim)
    }

    /// Lets time pass: rollouts succeed and fail by it. To be called at the beginning of each turn.
    pub(in crate::engine) fn advance(&mut self, now: Instant) {
        self.clear_memo();
        self.end_holds(now);
        self.requeue_config_consumers();
        let ids: Vec<ObjectId> = self.rollouts.in_flight.keys().cloned().collect();
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        let (mut unanswered, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            let Some(rollout) = self.rollouts.in_flight.get(&id) else { continue };
            let (before, evaluation) = (rollout.tracking(), self.evaluate_rollout(&id, rollout, now));
            let tracking = evaluation.tracking;
            if tracking.slot != before.slot {
                self.rollouts.slot_requests.mark_stale();
            }
            if let Some(rollout) = self.rollouts.in_flight.get_mut(&id) {
                rollout.set_tracking(tracking);
            }
            match evaluation.verdict {
                // The Service waits for this.
                RolloutVerdict::InProgress(_) if tracking.switch != before.switch => {
                    self.note_object_change(&id);
                }
                RolloutVerdict::InProgress(_) => {}
                RolloutVerdict::Done => done.extend(self.rollouts.in_flight.remove_entry(&id)),
                RolloutVerdict::Failed(why, event_subjects) => failed.push((id, why, event_subjects)),
                RolloutVerdict::Unanswered => unanswered.push(id),
                RolloutVerdict::NotRecreated(why) => missing.push((id, why)),
            }
        }
        self.advance_steps(now);
        for (id, rollout) in done {
            self.record_rollout_success(&id, &rollout);
        }
        for (id, why, event_subjects) in failed {
            self.record_rollout_failure(&id, why, event_subjects);
        }
        for id in unanswered {
            self.end_unanswered_write(&id);
        }
        for (id, why) in missing {
            self.end_recreation(&id, why);
        }
        let has_older_starts = self.rollouts.starts.advance(now);
        if self.rollouts.ledger.try_end_recovery(now) || has_older_starts {
            self.rollouts.slot_requests.mark_stale();
        }
    }

    /// Advances the steps. One that is held and healthy counts as a success and gives its slot
    /// back; one that is over goes on.
    fn advance_steps(&mut self, now: Instant) {
        let held = self.rollouts.in_flight.iter().filter(|(_, rollout)| rollout.step_held_since.is_some());
        for id in held.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            let (over, rests) = (self.step_of(&id, now) == Some(StepState::Done), self.is_resting(&id, now));
            let Some(rollout) = self.rollouts.in_flight.get_mut(&id) else { continue };
            if rollout.slot == BudgetSlot::Taken && !self.rollouts.slot_requests.contains(&id) {
                rollout.slot = BudgetSlot::None;
                if !rests {
                    self.rollouts.slot_requests.widen_slow_start();
                }
                self.rollouts.slot_requests.mark_stale();
            }
            if over && !self.rollouts.slot_requests.contains(&id) {
                self.objects.wakes.mark(id);
            }
        }
    }

    /// Begins the slow start of the whole cluster anew, for a new revision of any source. A rollout
    /// in flight, a held step or a quarantined workload prevents it.
    pub(in crate::engine) fn begin_slowly(&mut self) {
        if self.rollouts.in_flight.is_empty() {
            self.rollouts.slot_requests.begin_slow_start();
        }
    }

    /// Returns when the clock alone changes what [`Engine::advance`] finds.
    pub(in crate::engine) fn next_due(&self, now: Instant) -> Option<Instant> {
        let ends = self.rollouts.in_flight.iter().filter_map(|(id, rollout)| {
            match self.evaluate_rollout(id, rollout, now).verdict {
                RolloutVerdict::InProgress(due) => due,
                RolloutVerdict::Done
                | RolloutVerdict::Failed(..)
                | RolloutVerdict::Unanswered
                | RolloutVerdict::NotRecreated(_) => Some(now),
            }
        });
        let recovery_end = self.rollouts.ledger.recovery().end(now);
        let starts = [self.rollouts.starts.next_expiry(), recovery_end].into_iter().flatten().min();
        ends.chain(starts.filter(|_| !self.rollouts.slot_requests.is_empty()))
            .chain(self.next_eviction_due())
            .chain(self.next_scale_due())
            .chain(self.next_deletion_due(now))
            .min()
    }

    fn record_rollout_success(&mut self, id: &ObjectId, rollout: &Rollout) {
        // A first rollout that failed ends here too, once its unit is rejected.
        let status = self.live_object(id).and_then(|live| live.replica_status);
        let is_up = status.is_none_or(|status| status.phase != WorkloadPhase::FirstStart);
        if is_up || rollout.failed.is_none() {
            if rollout.claim.is_some() && rollout.slot == BudgetSlot::Taken {
                self.rollouts.slot_requests.widen_slow_start();
            }
            self.note_rollout_event(id, rollout, RolloutEventKind::Succeeded);
        }
        self.end_claim(id);
        self.rollouts.slot_requests.mark_stale();
        self.track_wave(id);
        self.note_object_change(id);
    }

    fn record_rollout_failure(&mut self, id: &ObjectId, why: RolloutFailureCause, event_subjects: Vec<Uid>) {
        self.rollouts.slot_requests.begin_slow_start();
        self.rollouts.unreported.add_failed(id, event_subjects);
        let returns = self.is_rollback_due(id);
        if let Some(rollout) = self.rollouts.in_flight.get_mut(id) {
            rollout.failed = Some(why.clone());
            if !returns {
                // Other units go on; the pods that it has unavailable count all the same.
                (rollout.slot, rollout.reserved) = (BudgetSlot::None, 0);
            }
            let rollout = rollout.clone();
            self.note_rollout_event(id, &rollout, RolloutEventKind::Failed(why));
        }
        self.note_object_change(id);
    }

    /// Returns the workloads whose rollout has just failed, each with the objects whose Events say
    /// more. The words of these Events are to be handed to [`Engine::propose_rollout_rejection`].
    pub(in crate::engine) fn take_failed(&mut self) -> BTreeMap<ObjectId, Vec<Uid>> {
        self.rollouts.unreported.take_failed()
    }

    /// Proposes to reject the unit of a failed rollout, with what Events say about it.
    pub(in crate::engine) fn propose_rollout_rejection(&mut self, id: &ObjectId, events: &[String]) {
        let failed = self.rollouts.in_flight.get(id).and_then(|rollout| rollout.failed.as_ref());
        let Some(why) = failed.map(ToString::to_string) else { return };
        let all = [&[why][..], events].concat();
        self.propose_rejection(id, &all.join("; ").into());
        self.note_object_change(id);
    }

    /// Records the pods of a workload, as they are now.
    pub(in crate::engine) fn record_pods(&mut self, id: &ObjectId, pods: WorkloadPods) {
        let rollout = self.rollouts.in_flight.get(id);
        let is_changed = rollout
            .zip(self.live_object(id))
            .is_some_and(|(rollout, live)| self.is_changed_by_others(id, rollout, live));
        if let Some(rollout) = self.rollouts.in_flight.get_mut(id) {
            if rollout.pods.is_none() {
                rollout.progress.postpone();
            }
            if !is_changed {
                rollout.progress.note_pods(pods.count_updated());
            }
            rollout.pods = Some(Arc::new(pods));
        }
    }

    /// Returns whether a workload has a claimed rollout, failed ones included.
    pub(in crate::engine) fn has_claimed_rollout(&self, id: &ObjectId) -> bool {
        self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.claim.is_some())
    }

    /// Returns whether any rollout goes on, and will end by itself.
    pub(in crate::engine) fn is_any_in_progress(&self) -> bool {
        self.rollouts.in_flight.values().any(|rollout| rollout.failed.is_none())
    }

    /// Returns whether the rollout of a workload goes on, and will end by itself.
    pub(in crate::engine) fn is_in_progress(&self, id: &ObjectId) -> bool {
        self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.failed.is_none())
    }
}

#[cfg(test)]
impl Engine {
    /// Returns the text about one workload's rollout, without versions.
    pub(in crate::engine) fn rollout_words(&self, id: &ObjectId) -> String {
        let rollouts = &self.rollouts;
        let rollout = rollouts.in_flight.get(id).map(|rollout| {
            let shown = self
                .informer_object(id)
                .map(|live| rollout.min_resource_version.map(|written| live.rv >= written));
            (
                shown,
                rollout.slot,
                rollout.reserved,
                &rollout.claim,
                &rollout.earlier_failure,
                rollout.progress.best_numbers,
                &rollout.failed,
            )
        });
        let (request, over) = (rollouts.slot_requests.get(id), rollouts.ledger.is_ended(id));
        let claiming = rollouts.slot_requests.claims_to_write().contains(id);
        let window = rollouts.slot_requests.slow_start_limit().min(4);
        let (has_unused_claim, failed_now) =
            (rollouts.ledger.is_unused(id), rollouts.unreported.newly_failed().contains_key(id));
        format!("{rollout:?} {request:?} {over} {claiming} {has_unused_claim} {window} {failed_now}")
    }
}
