//! The record of a rollout that another source takes over together with its workload.
//!
//! A commit may move a workload to another source in the middle of its rollout. The new source goes
//! on judging that rollout. For this it needs the record of the unit, which says where a rollback
//! leads to. The former source ends that record once the workload is no longer its own. So the
//! record is written for the new source first, by compare-and-swap. Then the workload is taken
//! over. A claim goes with it.
//!
//! Another process may have recorded the unit since the ledger was read last. So the ledger is read
//! again before a workload of another process is taken over. So are the inventories of the others:
//! a rejected content is no good one, and its unit says where that rollback leads to.
//!
//! `Engine::decide` calls `require_unit_transfer`. `next_ledger` writes what that asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::decide::decision::{Action, ApplyPurpose, ApplyRequest, Decision};
use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::facts::records::release_unit::{ReleaseUnit, RollbackTarget, UnitMember};
use crate::engine::rollout::ledger::{RolloutClaim, RolloutLedger};
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::rollout::step_overlay::is_at_step;
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{LiveObject, ObjectOwner, Reason, WorkloadPhase, is_workload};
use crate::object::{ContentHash, ObjectId, Revision};

/// The takeovers that wait for the rollout ledger.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct UnitTransfers {
    /// The number of calls sent that read or wrote the ledger.
    sent: u64,
    /// The last of them that was answered.
    answered: u64,
    /// Workloads of other processes that are to be taken over, each with the calls sent by then.
    requested_reads: BTreeMap<ObjectId, u64>,
    /// Workloads for which the inventories of the other processes were read since.
    informed: BTreeSet<ObjectId>,
    /// Objects whose record is to be written for the source that takes them over.
    to_record: BTreeSet<(SourceId, ObjectId)>,
}

impl UnitTransfers {
    /// Returns whether the ledger was read, or written, after this workload was asked about first.
    fn is_current(&mut self, id: &ObjectId) -> bool {
        let request = *self.requested_reads.entry(id.clone()).or_insert(self.sent);
        self.answered > request
    }

    /// Notes an answer to the last call. Returns the objects to decide on again: those that are
    /// still known.
    pub(in crate::engine) fn note_answer(&mut self, is_known: impl Fn(&ObjectId) -> bool) -> Vec<ObjectId> {
        self.answered = self.sent;
        self.requested_reads.retain(|id, _| is_known(id));
        self.informed.retain(|id| is_known(id));
        let recorded = std::mem::take(&mut self.to_record).into_iter().map(|(_, id)| id);
        recorded.chain(self.requested_reads.keys().cloned()).collect()
    }

    /// Notes that the inventories of the other processes were read for these objects.
    pub(in crate::engine) fn note_peers<'a>(&mut self, ids: impl Iterator<Item = &'a ObjectId>) {
        self.informed.extend(ids.filter(|id| self.requested_reads.contains_key(id)).cloned());
    }

    fn drop_transfer(&mut self, id: &ObjectId) {
        self.requested_reads.remove(id);
        self.informed.remove(id);
    }
}

impl Engine {
    /// Notes that the rollout ledger is being read, or written.
    pub(in crate::engine) fn note_ledger_call(&mut self) {
        self.rollouts.transfers.sent += 1;
    }

    /// Returns whether the rollout ledger is to be read before a workload is taken over.
    pub(in crate::engine) fn is_ledger_read_needed(&self) -> bool {
        let transfers = &self.rollouts.transfers;
        transfers.requested_reads.values().any(|request| transfers.answered <= *request)
    }

    /// Holds a takeover back until the record of the rollout under way is written for the source
    /// that takes over.
    pub(in crate::engine) fn require_unit_transfer(&mut self, id: &ObjectId, decision: Decision) -> Decision {
        let taken_over = match &decision.action {
            Action::Apply(apply) if self.blockers.mode == DecisionMode::Live => {
                self.former_inventory(id, apply)
            }
            _ => None,
        };
        let Some((source, former)) = taken_over else {
            self.rollouts.transfers.drop_transfer(id);
            return decision;
        };
        if is_workload(id) && !self.sources.inventory_ids().contains(&former) {
            if !self.rollouts.transfers.is_current(id) {
                return self.wait_for_ledger();
            }
            // The content that it has may have failed there.
            if !self.rollouts.transfers.informed.contains(id) && self.try_request_peers(id) {
                return Decision::wait(Reason::ReadingPeers);
            }
        }
        let ledger = self.rollouts.ledger.latest();
        let unit = ledger.and_then(|ledger| self.transferred_unit(ledger, source, id));
        // A full ledger keeps nobody from the takeover: then its rollout is not judged.
        if !unit.is_some_and(|unit| ledger.is_some_and(|ledger| ledger.has_room_for(&unit))) {
            return decision;
        }
        self.rollouts.transfers.to_record.insert((source, id.clone()));
        self.wait_for_ledger()
    }

    fn wait_for_ledger(&self) -> Decision {
        let why = self.rollouts.ledger.unreadable_reason().cloned();
        Decision::wait(why.map_or(Reason::Claiming, Reason::RecordUnreadable))
    }

    /// Returns the source that takes an object over, and the inventory that has it.
    fn former_inventory(&self, id: &ObjectId, apply: &ApplyRequest) -> Option<(SourceId, Arc<str>)> {
        let takes_over = matches!(apply.purpose, ApplyPurpose::Transfer | ApplyPurpose::Adopt);
        let former = inventory_of(self.live_object(id).filter(|_| takes_over)?)?;
        (former != self.sources.inventory_ids()[apply.source]).then_some((apply.source, former))
    }

    /// Returns the record of the rollout under way for the source that takes an object over, where
    /// the ledger has none for it.
    ///
    /// All that goes over with the object is in it. Where anything else that changed stays behind,
    /// nothing of it goes back: the last good contents were good together.
    fn transferred_unit(
        &self,
        ledger: &RolloutLedger,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<ReleaseUnit> {
        let former = inventory_of(self.live_object(id)?)?;
        let older = self.former_unit(ledger, &former, id)?;
        let own = &self.sources.inventory_ids()[source];
        let is_known = |unit: &ReleaseUnit| self.wanted_hash(source, id) == unit.members[id].content;
        let member = &older.members[id];
        // A revision of the former source that removes it may be recorded already.
        let is_under_way = member.content.is_none() || self.is_member_shown(id, member);
        if !is_under_way || ledger.unit_of(own, id).is_some_and(is_known) {
            return None;
        }
        let is_torn = self.is_torn(source, older);
        let transfer = |(id, member): (&ObjectId, &UnitMember)| {
            let content = self.wanted_hash(source, id)?;
            let rollback_target = if is_torn {
                RollbackTarget::Unknown
            } else {
                former_content(member.rollback_target.clone(), &former)
            };
            Some((id.clone(), UnitMember { content: Some(content), rollback_target, ..member.clone() }))
        };
        Some(ReleaseUnit {
            inventory_id: own.clone(),
            revision: self.sources[source].head.clone().unwrap_or_else(|| Revision::new("")),
            members: older.members.iter().filter_map(transfer).collect(),
        })
    }

    /// Returns the record of what another inventory has released of an object, and not finished.
    /// That is the unit that is being released, or one that failed and was left as it is.
    fn former_unit<'a>(
        &'a self,
        ledger: &'a RolloutLedger,
        former: &Arc<str>,
        id: &ObjectId,
    ) -> Option<&'a ReleaseUnit> {
        ledger.unit_of(former, id).or_else(|| {
            let source = self.source_of_inventory_id(former).map(|source| &self.sources[source]);
            let pending = source.into_iter().flat_map(|source| &source.pending_rejections);
            let recorded = source.and_then(|source| source.inventory.as_ref());
            let recorded = recorded.into_iter().flat_map(|inventory| &inventory.rejections);
            let peers = self.peers().filter(|peer| peer.inventory_id == *former);
            let known = pending.chain(recorded).chain(peers.flat_map(|peer| &peer.rejections));
            let shows = |unit: &&ReleaseUnit| {
                unit.members.get(id).is_some_and(|member| self.is_member_shown(id, member))
            };
            known.map(|rejection| &rejection.unit).find(shows)
        })
    }

    /// Returns whether something of a unit that was changed does not go over to a source.
    fn is_torn(&self, source: SourceId, unit: &ReleaseUnit) -> bool {
        let mut members = unit.members.iter();
        members.any(|(id, member)| self.wanted_hash(source, id).is_none() && !member.has_unchanged_content())
    }

    /// Returns where a rollback of another source's object leads to, as the unit says in which it
    /// is being released. Content of unknown origin cannot be put back. Neither can one whose
    /// rollout nobody has seen end, or whose companions stay behind.
    pub(in crate::engine) fn former_rollback_target(
        &self,
        source: SourceId,
        id: &ObjectId,
        live: &LiveObject,
    ) -> RollbackTarget {
        let Some(former) = inventory_of(live) else { return RollbackTarget::Unknown };
        let unit = self.rollouts.ledger.latest().and_then(|ledger| self.former_unit(ledger, &former, id));
        let target = match unit {
            Some(unit) if self.is_torn(source, unit) => RollbackTarget::Unknown,
            Some(unit) => unit.members[id].rollback_target.clone(),
            None => {
                let release = live.release.clone().filter(|_| has_finished_rollout(live));
                release.map_or(RollbackTarget::Unknown, RollbackTarget::Content)
            }
        };
        former_content(target, &former)
    }

    /// Returns the inventory in which the content was released that an object goes back to, where
    /// that is another source's.
    pub(in crate::engine) fn former_inventory_of(&self, id: &ObjectId) -> Option<Arc<str>> {
        let inventory = self.sources[self.rejecting_source(id)?].inventory.as_ref()?;
        let member = inventory.rejections.iter().find_map(|rejection| rejection.unit.members.get(id))?;
        match &member.rollback_target {
            RollbackTarget::FormerContent { inventory_id, .. } => Some(inventory_id.clone()),
            _ => None,
        }
    }

    /// Returns the inventory of the source that wants an object.
    fn wanting_inventory(&self, id: &ObjectId) -> Option<&Arc<str>> {
        self.wanting_source(id).map(|source| &self.sources.inventory_ids()[source])
    }

    fn wanted_hash(&self, source: SourceId, id: &ObjectId) -> Option<ContentHash> {
        let (wanting, desired) = self.entry(id).and_then(ObjectEntry::target_content)?;
        (wanting == source).then_some(desired.hash)
    }

    /// Returns the records to be written for the sources that take objects over.
    pub(in crate::engine) fn transferred_units(&self, ledger: &RolloutLedger) -> Vec<ReleaseUnit> {
        let requests = self.rollouts.transfers.to_record.iter();
        requests
            .filter_map(|(source, id)| self.transferred_unit(ledger, *source, id))
            .filter(|unit| ledger.has_room_for(unit))
            .collect()
    }

    /// Takes over the claims of what a transferred unit rolls out.
    pub(in crate::engine) fn transfer_claims(&self, unit: &ReleaseUnit, next: &mut RolloutLedger) {
        for (id, member) in &unit.members {
            let former = self.live_object(id).and_then(inventory_of);
            if let Some(claim) = next.claims.get_mut(id)
                && former.as_ref() == Some(&claim.inventory_id)
                && self.is_showing(id, claim.rollout_key)
            {
                claim.inventory_id = unit.inventory_id.clone();
                claim.holder = self.rollouts.ledger.holder().clone();
                claim.rollout_key = member.content.unwrap_or(claim.rollout_key);
            }
        }
    }

    /// Returns whether an object is still to be taken over from another source by the one that
    /// wants it.
    pub(in crate::engine) fn is_takeover_pending(&self, id: &ObjectId, inventory_id: &Arc<str>) -> bool {
        let is_wanted = self.wanting_inventory(id) == Some(inventory_id);
        let former = self.live_object(id).and_then(inventory_of);
        is_wanted && former.is_some_and(|former| former != *inventory_id)
    }

    /// Returns whether the claim of a rollout went over to another source than the one that began
    /// it.
    pub(in crate::engine) fn is_claim_transferred(&self, id: &ObjectId, rollout: &Rollout) -> bool {
        let recorded = self.rollouts.ledger.latest().and_then(|ledger| ledger.claims.get(id));
        let Some((claim, recorded)) = rollout.claim.as_ref().zip(recorded) else { return false };
        recorded.inventory_id != claim.inventory_id && self.wanting_inventory(id) != Some(&claim.inventory_id)
    }

    /// Takes a claim of the ledger for that of a rollout which has gone over to another source.
    pub(in crate::engine) fn adopt_transferred_claim(&mut self, id: &ObjectId, claim: &RolloutClaim) {
        let is_wanted = self.wanting_inventory(id) == Some(&claim.inventory_id);
        if let Some(own) = self.rollouts.in_flight.get_mut(id).and_then(|rollout| rollout.claim.as_mut())
            && own.inventory_id != claim.inventory_id
            && is_wanted
        {
            own.clone_from(claim);
        }
    }
}

/// Returns a rollback target of another inventory's record.
fn former_content(target: RollbackTarget, former: &Arc<str>) -> RollbackTarget {
    match target {
        RollbackTarget::Content(content) => {
            RollbackTarget::FormerContent { content, inventory_id: former.clone() }
        }
        target => target,
    }
}

/// Returns whether all pods of a workload are of its content. Without a record nothing else shows
/// that the content is good.
fn has_finished_rollout(live: &LiveObject) -> bool {
    let phase = live.replica_status.map(|replica_status| replica_status.phase);
    !is_at_step(live)
        && phase.is_none_or(|phase| matches!(phase, WorkloadPhase::Settled | WorkloadPhase::Recovering))
}

/// Returns the inventory that has an object, or had it before its label was changed.
pub(in crate::engine) fn inventory_of(live: &LiveObject) -> Option<Arc<str>> {
    match &live.owner {
        ObjectOwner::Ours(set) | ObjectOwner::Labelled(set) => Some(set.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::world::{World, WorldObject, desired, workload};
    use crate::engine::{ContentRef, ReplicaStatus, RolloutOverlay, RolloutOverlayState};

    fn live() -> LiveObject {
        let web = workload("web");
        World::live(&web, &WorldObject::settled(desired(&web, 1, "web").hash, "r1", 1))
    }

    #[test]
    fn a_rollout_is_finished_where_all_pods_are_of_its_content() {
        let check = |phase: Option<WorkloadPhase>, overlay: Option<RolloutOverlay>, expected: bool| {
            let replica_status = phase.map(|phase| ReplicaStatus { phase, ..ReplicaStatus::default() });
            let overlay = RolloutOverlayState::from(overlay);
            let live = LiveObject { replica_status, overlay, ..live() };
            assert_eq!(has_finished_rollout(&live), expected, "{phase:?} {overlay:?}");
        };
        check(Some(WorkloadPhase::Settled), None, true);
        check(Some(WorkloadPhase::Recovering), None, true);
        check(Some(WorkloadPhase::FirstStart), None, false);
        check(Some(WorkloadPhase::Replacing), None, false);
        check(None, None, true);
        check(Some(WorkloadPhase::Settled), Some(RolloutOverlay::Surge { pods: 1, step: 1 }), false);
        check(Some(WorkloadPhase::Settled), Some(RolloutOverlay::Narrow(1)), true);
    }

    #[test]
    fn a_label_names_the_inventory_of_an_object_whoever_owns_it() {
        let check = |owner: ObjectOwner, expected: Option<&str>| {
            let live = LiveObject { owner, ..live() };
            assert_eq!(inventory_of(&live).as_deref(), expected, "{:?}", live.owner);
        };
        check(ObjectOwner::Ours("a-v1".into()), Some("a-v1"));
        check(ObjectOwner::Labelled("a-v1".into()), Some("a-v1"));
        check(ObjectOwner::Nobody, None);
        check(ObjectOwner::Foreign("a-v1".into()), None);
        check(ObjectOwner::Controlled("a-v1".into()), None);
    }

    #[test]
    fn a_target_of_another_inventory_says_of_which() {
        let content = ContentRef { hash: ContentHash::hash_bytes(b"a"), revision: Revision::new("r1") };
        let of = |inventory_id: &str| RollbackTarget::FormerContent {
            content: content.clone(),
            inventory_id: inventory_id.into(),
        };
        for (target, expected) in [
            (RollbackTarget::Content(content.clone()), of("b-v1")),
            (of("c-v1"), of("c-v1")),
            (RollbackTarget::Absent, RollbackTarget::Absent),
            (RollbackTarget::Unknown, RollbackTarget::Unknown),
        ] {
            assert_eq!(former_content(target, &"b-v1".into()), expected);
        }
    }
}
