//! Judges failed content that is still there once more: by a person's order, and when a newer
//! revision leaves it unchanged.
//!
//! Where the rejected content is still there, its rejection alone knows the last good one. So its
//! unit is recorded in the rollout ledger first, and only then the inventory forgets the rejection.
//! One of the two has it, whichever process dies. From then on the rollout is judged anew, and a
//! second failure is one as any other. Content that a newer revision leaves unchanged belongs to
//! that revision, too.

use std::collections::BTreeSet;

use crate::engine::facts::entry::SourceId;
use crate::engine::facts::records::rejection::Rejection;
use crate::engine::facts::records::release_unit::{ReleaseUnit, RollbackTarget};
use crate::engine::rollout::failure_cause::RolloutFailureCause;
use crate::engine::rollout::ledger::RolloutLedger;
use crate::engine::rollout::rollouts::{Rollout, RolloutStartState};
use crate::engine::state::Engine;
use crate::engine::{BudgetSlot, DesiredState, LiveObject, WorkloadPhase};
use crate::health::HealthStatus;
use crate::object::ObjectId;

/// The rejections that are to be taken out of the inventories of their sources.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct RejectionRetries {
    /// The ones whose units are to be recorded again before.
    to_record: Vec<(SourceId, Rejection)>,
    /// The ones that may go now.
    to_drop: Vec<(SourceId, Rejection)>,
}

#[cfg(test)]
impl crate::engine::rollout::rollback::RollbackState {
    /// Has these rejections taken out of the inventories of their sources, and no others.
    pub(in crate::engine) fn set_retried(&mut self, rejections: Vec<(SourceId, Rejection)>) {
        self.retries.to_drop = rejections;
    }
}

impl Engine {
    /// Returns whether the unit of a rejection has to be recorded again before the inventory forgets
    /// that, as failed content of it is still there.
    pub(in crate::engine) fn is_recorded_before_retry(
        &self,
        source: SourceId,
        rejection: &Rejection,
    ) -> bool {
        // The write in flight may take the record away.
        let ledger = self.rollouts.ledger.latest().filter(|_| !self.rollouts.ledger.is_saving());
        let recorded = ledger.is_some_and(|ledger| has_record(ledger, &rejection.unit));
        !recorded && self.is_showing_failed_content(source, rejection)
    }

    /// Lets the contents of a rejection that the inventory records be tried again.
    pub(in crate::engine) fn begin_retry(&mut self, source: SourceId, rejection: Rejection) {
        let keeps = self.is_recorded_before_retry(source, &rejection);
        let retries = &mut self.rollouts.rollbacks.retries;
        let retrying = if keeps { &mut retries.to_record } else { &mut retries.to_drop };
        if !retrying.contains(&(source, rejection.clone())) {
            retrying.push((source, rejection));
        }
    }

    /// Returns whether any member does not show its last good content.
    pub(in crate::engine) fn is_showing_failed_content(
        &self,
        source: SourceId,
        rejection: &Rejection,
    ) -> bool {
        let was_good = |id: &ObjectId, good: &RollbackTarget, live: &LiveObject| {
            good.content_ref().is_some_and(|good| live.deleting || self.is_showing(id, good.hash))
        };
        rejection.unit.members.iter().any(|(id, member)| {
            let wanted =
                matches!(self.sources[source].manifests.desired_state(id), Some(DesiredState::Object(_)));
            wanted && self.live_object(id).is_some_and(|live| !was_good(id, &member.rollback_target, live))
        })
    }

    /// Returns whether a rejection of the inventory is to be taken out of it.
    pub(in crate::engine) fn is_retried(&self, source: SourceId, rejection: &Rejection) -> bool {
        let retries = &self.rollouts.rollbacks.retries;
        retries.to_drop.iter().any(|(of, dropped)| *of == source && dropped == rejection)
    }

    /// Returns whether a unit is kept until the inventory has forgotten its rejection.
    pub(in crate::engine) fn is_kept_for_retry(&self, unit: &ReleaseUnit) -> bool {
        let RejectionRetries { to_record, to_drop } = &self.rollouts.rollbacks.retries;
        to_record.iter().chain(to_drop).any(|(_, rejection)| is_overlapping(unit, &rejection.unit))
    }

    /// Records the units that are to be tried again.
    pub(in crate::engine) fn record_retried_units(&self, ledger: &mut RolloutLedger) {
        for (_, rejection) in &self.rollouts.rollbacks.retries.to_record {
            if !ledger.units.iter().any(|unit| is_overlapping(unit, &rejection.unit)) {
                ledger.units.push(rejection.unit.clone());
            }
        }
    }

    /// Records failed content that is still there and part of a newer revision that writes nothing
    /// of it, as one that brings only a configuration. Nothing else would ask for its record, and
    /// nobody would judge it.
    pub(in crate::engine) fn record_inherited_failures(&self, ledger: &mut RolloutLedger) {
        for unit in &mut ledger.units {
            let source = self.source_of_inventory_id(&unit.inventory_id);
            let Some(source) = source.filter(|_| self.has_failed_workload(unit)) else { continue };
            let rejecting =
                self.sources[source].pending_rejections.iter().any(|one| is_overlapping(&one.unit, unit));
            // It may say of failed content what was to follow that, and was never written.
            let is_failure = |renewed: &ReleaseUnit| self.has_failed(unit) || self.has_failed(renewed);
            let renewed = self.unit_at_head(source, unit).filter(is_failure);
            if let Some(renewed) = renewed.filter(|_| !rejecting) {
                *unit = renewed;
            }
        }
        let failed = |(id, rollout): (&ObjectId, &Rollout)| {
            rollout.failed.is_some().then_some(self.wanting_source(id)?)
        };
        let sources: BTreeSet<SourceId> = self.rollouts.in_flight.iter().filter_map(failed).collect();
        for source in sources {
            let inventory = self.sources[source].inventory.iter();
            for rejection in inventory.flat_map(|inventory| &inventory.rejections) {
                if !self.is_superseded(source, rejection)
                    || !self.is_only_record_of_targets(source, rejection)
                {
                    continue;
                }
                let Some(unit) = self.unit_at_head(source, &rejection.unit) else { continue };
                if self.has_failed(&unit) && !ledger.units.iter().any(|known| is_overlapping(known, &unit)) {
                    ledger.units.push(unit);
                }
            }
        }
    }

    /// Returns whether the rollout of a workload of a unit has failed, with whatever content.
    fn has_failed_workload(&self, unit: &ReleaseUnit) -> bool {
        let mut failed = self.rollouts.in_flight.iter().filter(|(_, rollout)| rollout.failed.is_some());
        failed.any(|(id, _)| unit.members.contains_key(id))
    }

    /// Returns whether a workload of a unit has failed with its content.
    fn has_failed(&self, unit: &ReleaseUnit) -> bool {
        unit.members.iter().any(|(id, member)| {
            let failed = self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.failed.is_some());
            failed && self.is_member_shown(id, member)
        })
    }

    /// Returns a unit with the contents that the newest revision asks for, unchanged ones included.
    /// None where some of them have not been read yet.
    pub(in crate::engine) fn unit_at_head(
        &self,
        source: SourceId,
        unit: &ReleaseUnit,
    ) -> Option<ReleaseUnit> {
        let comes = |id: &ObjectId| {
            self.entry(id)
                .is_some_and(|entry| entry.unreleased_content().is_some() || entry.rejection.is_some())
                || self.restart_stamp(id).is_some()
        };
        let head = self.sources[source].head.clone().filter(|_| !unit.members.keys().any(comes))?;
        let mut unit = unit.clone();
        let before = unit.clone();
        for (id, member) in &mut unit.members {
            member.content = self.desired_hash(source, id);
        }
        if unit != before {
            unit.revision = head;
        }
        Some(unit)
    }

    /// Judges the units anew that were being retried and that a newly read inventory no longer
    /// rejects.
    pub(in crate::engine) fn retry_forgotten_rejections(&mut self, source: SourceId) {
        let Some(inventory) = &self.sources[source].inventory else { return };
        let known = &inventory.rejections;
        let gone = |(of, rejection): &mut (SourceId, Rejection)| *of == source && !known.contains(rejection);
        let retries = &mut self.rollouts.rollbacks.retries;
        retries.to_record.retain_mut(|one| !gone(one));
        let begun: Vec<(SourceId, Rejection)> = retries.to_drop.extract_if(.., gone).collect();
        for id in begun.iter().flat_map(|(_, rejection)| rejection.unit.members.keys()) {
            self.restart_evaluation(source, id);
        }
    }

    /// Judges units recorded after a failure: failed content that is not rejected is a part of the
    /// newer revision.
    pub(in crate::engine) fn evaluate_recorded(&mut self, ids: &[ObjectId]) {
        for id in ids {
            let Some(source) = self.wanting_source(id) else { continue };
            let mut rejecting = self.sources[source].pending_rejections.iter();
            let rejected = rejecting.any(|one| one.unit.members.contains_key(id)) || self.has_rejection(id);
            if !rejected && self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.failed.is_some()) {
                self.restart_evaluation(source, id);
            }
        }
    }

    /// Puts failed content that is still there under way again, also where this process has never
    /// seen it roll out. Its controller's old failure does not count: its deadline begins now.
    pub(in crate::engine) fn restart_evaluation(&mut self, source: SourceId, id: &ObjectId) {
        let Some(live) = self.live_object(id) else { return };
        let (Some(replica_status), Some(shown)) =
            (live.replica_status, live.shown_release().map(|release| release.hash))
        else {
            return;
        };
        let known = self.rollouts.in_flight.get(id);
        let failed = known.and_then(|rollout| rollout.failed.as_ref());
        // It is judged already, or there is nothing to be judged.
        let is_claimed = known.is_some_and(|rollout| rollout.claim.is_some());
        if failed.is_none() && (is_claimed || replica_status.phase == WorkloadPhase::Settled) {
            return;
        }
        // It may say something else for a moment, and then the same again.
        let says = (live.health.status == HealthStatus::Failed).then(|| live.health.message.clone());
        let status_message = || failed.and_then(RolloutFailureCause::status_message).cloned();
        let (earlier, written) = (says.or_else(status_message), Some(live.rv));
        self.rollouts.in_flight.remove(id);
        self.register_live_rollout(id);
        let loss = self.credible_loss(id, replica_status, replica_status.max_unavailable);
        let pods = self.rollouts.in_flight.get(id).map_or(loss, |rollout| rollout.reserved);
        // A newer content asks for a claim of its own.
        let claim = self.make_claim(source, shown, pods);
        let begun = || Rollout::new(BudgetSlot::Taken, pods, Some(claim.clone()), written);
        let rollout = self.rollouts.in_flight.entry(id.clone()).or_insert_with(begun);
        rollout.claim.get_or_insert(claim.clone());
        (rollout.earlier_failure, rollout.started_from) = (earlier, RolloutStartState::Failure);
        self.rollouts.slot_requests.mark_stale();
        self.note_object_change(id);
    }
}

/// Returns whether the rollout ledger has the record of a unit, or of a newer one that has taken
/// over from it.
fn has_record(ledger: &RolloutLedger, unit: &ReleaseUnit) -> bool {
    ledger.units.iter().any(|known| is_overlapping(known, unit))
}

fn is_overlapping(one: &ReleaseUnit, other: &ReleaseUnit) -> bool {
    one.inventory_id == other.inventory_id && one.members.keys().any(|id| other.members.contains_key(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::UnitMember;
    use crate::engine::tests::world::config;
    use crate::object::Revision;

    #[test]
    fn a_unit_is_recorded_where_a_unit_of_its_inventory_shares_an_object() {
        let unit = |inventory_id: &str, names: &[&str]| {
            let member =
                || UnitMember { content: None, rollback_target: RollbackTarget::Unknown, restarted: None };
            let members = names.iter().map(|name| (config(name), member())).collect();
            ReleaseUnit { inventory_id: inventory_id.into(), revision: Revision::new("r1"), members }
        };
        let check = |units: Vec<ReleaseUnit>, expected: bool| {
            let ledger = RolloutLedger { units, ..RolloutLedger::default() };
            let found = has_record(&ledger, &unit("a-v1", &["a", "b"]));
            assert_eq!(found, expected, "{:?}", ledger.units);
        };
        check(vec![], false);
        check(vec![unit("a-v1", &["a", "b"])], true);
        check(vec![unit("a-v1", &["b", "c"])], true);
        check(vec![unit("a-v1", &["c"])], false);
        check(vec![unit("b-v1", &["a", "b"])], false);
        check(vec![unit("b-v1", &["a"]), unit("a-v1", &["c"]), unit("a-v1", &["a"])], true);
    }
}
