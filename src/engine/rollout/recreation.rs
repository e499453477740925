//! Workloads that are deleted to be created again.
//!
//! Nothing of such a workload serves from its deletion on until it is complete again. So its
//! rollout goes on and keeps its slot, and all of its pods count as unavailable.
//!
//! It ends without the workload where no source wants that any more. It fails where the creation is
//! refused for good, or where the workload is not there within the progress deadline.
//!
//! Its claim says so to others (`foreign_claims.rs`), and to the next process of the source.

use std::time::Instant;

use crate::engine::ResourceVersion;
use crate::engine::decide::decision::{ApplyRequest, Precondition};
use crate::engine::facts::entry::RefusalRule;
use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::evaluation::RolloutVerdict;
use crate::engine::rollout::events::RolloutEventKind;
use crate::engine::rollout::failure_cause::RolloutFailureCause;
use crate::engine::rollout::ledger::RolloutClaim;
use crate::engine::rollout::progress::ProgressTracking;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::state::Engine;
use crate::object::ObjectId;

/// The way in which a rollout replaces the pods of its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum RolloutMethod {
    /// The workload is updated.
    Update,
    /// The workload is deleted, and created again.
    Recreate,
}

impl Engine {
    /// Returns whether a workload is deleted to be created again, and still wanted.
    pub(in crate::engine) fn is_being_recreated(&self, id: &ObjectId) -> bool {
        let rollout = self.rollouts.in_flight.get(id);
        rollout.is_some_and(|rollout| rollout.method == RolloutMethod::Recreate)
            && self.wanting_source(id).is_some()
    }

    /// Returns a claim that says that its workload is deleted and created again, and for how long
    /// that is waited for.
    pub(in crate::engine) fn recreating_claim(&self, id: &ObjectId, claim: RolloutClaim) -> RolloutClaim {
        let deadline = u32::try_from(self.progress_timeout(id).as_secs()).unwrap_or(u32::MAX);
        RolloutClaim { recreates: true, recreation_deadline: Some(deadline), ..claim }
    }

    /// Goes on with a recreation that a former process began: its claim says so, and this write
    /// creates the workload. It keeps its slot without a new start.
    pub(in crate::engine) fn resume_recreation(&mut self, id: &ObjectId, apply: &ApplyRequest) {
        if apply.precondition != Precondition::Absent || self.rollouts.in_flight.contains_key(id) {
            return;
        }
        // Where the claim is spent or has ended, others may have begun.
        let has_slot = |claim: &&RolloutClaim| {
            claim.recreates && !self.rollouts.ledger.is_ended(id) && self.is_counted(id, claim)
        };
        let Some(reserved) = self.own_claim(id).filter(has_slot).map(|claim| claim.reserved) else { return };
        let claim = self.make_claim(apply.source, apply.desired.hash, reserved);
        let claim = Some(self.recreating_claim(id, claim));
        // It is not there, so any view that shows it is a newer one.
        let mut rollout = Rollout::new(BudgetSlot::Taken, reserved, claim, Some(ResourceVersion(0)));
        rollout.method = RolloutMethod::Recreate;
        self.resume_rollout(id, &mut rollout);
        self.rollouts.in_flight.insert(id.clone(), rollout);
        self.rollouts.slot_requests.mark_stale();
    }

    /// Evaluates a rollout whose workload was deleted and is not there again; none for any other.
    pub(in crate::engine) fn evaluate_recreation(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        progress: &mut ProgressTracking,
        now: Instant,
    ) -> Option<RolloutVerdict> {
        let is_deleted = rollout.method == RolloutMethod::Recreate
            && rollout.min_resource_version.is_some()
            && self.informer_object(id).is_none_or(|live| live.deleting);
        if !is_deleted {
            return None;
        }
        let entry = self.entry(id);
        let refusal = entry.and_then(|entry| entry.refusal_of(entry.target_content()?.1));
        // The refusal of a change to an immutable field is why it was deleted.
        let is_final = |rule: RefusalRule| rule != RefusalRule::Immutable;
        if let Some(refusal) = refusal.filter(|refusal| refusal.retry.is_none() && is_final(refusal.rule)) {
            let why = RolloutFailureCause::RecreationRefused(refusal.cause.clone());
            return Some(RolloutVerdict::NotRecreated(why));
        }
        let timeout = self.progress_timeout(id);
        let until = progress.note_missing(now) + timeout;
        Some(if now < until {
            RolloutVerdict::InProgress(Some(until))
        } else {
            RolloutVerdict::NotRecreated(RolloutFailureCause::WorkloadMissing(timeout))
        })
    }

    /// Ends a rollout whose workload was deleted and is not created again. Others go on.
    pub(in crate::engine) fn end_recreation(&mut self, id: &ObjectId, why: RolloutFailureCause) {
        let Some(rollout) = self.rollouts.in_flight.remove(id) else { return };
        self.note_rollout_event(id, &rollout, RolloutEventKind::Failed(why));
        self.end_claim(id);
        self.rollouts.slot_requests.begin_slow_start();
        self.note_object_change(id);
    }
}
