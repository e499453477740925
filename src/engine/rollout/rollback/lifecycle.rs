//! The beginning and the end of each rollback, and the contents of older revisions that are read
//! for it. After a start, accepted contents are read in the same way.
//!
//! A rollback begins only when all contents that go back together have been read:
//! `src/daemon/source_task/older_revision.rs` reads them. A replacement is `Unread`, then it is
//! read and `AwaitingUnit`, and at last `Read`. Then `Engine::target_of` takes it for the target of
//! its entry, which is decided about, claimed and written as any content.
//!
//! Any of a unit's contents may be at fault, and the last good ones were good together. Where one
//! of them cannot be had any more, or was never known, the others do not go back without it. All
//! stay as they are, until git changes the content or a person retries.
//!
//! A rollback that the API server refuses for good, or again and again, ends in quarantine where
//! the workload is there. Content that was good before may be refused by now: by a quota, by a
//! policy that came later, for a field that never changes. A workload that waited for that to heal
//! would keep its slot from all others.

use std::collections::BTreeMap;

use crate::engine::decide::decision::Decision;
use crate::engine::facts::entry::{ApiRefusal, ObjectEntry, RefusalRule, SourceId};
use crate::engine::facts::records::rejection::{Rejection, RejectionAction, ReplacementContent};
use crate::engine::facts::records::release_unit::{RollbackTarget, UnitMember};
use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::rollback::rejection::bound_cause;
use crate::engine::rollout::rollback::rejection_cause::RollbackObstacle;
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{
    AcceptedContent, ContentRef, KindState, LiveObject, Reason, RefusalCause, SharedDesiredObject,
    is_workload,
};
use crate::object::{ContentHash, ErrorClass, ObjectId, Revision};

/// The readiness of one rollback.
enum RollbackReadiness {
    /// Too little is read to begin.
    Waiting,
    /// All that is needed.
    Ready,
    /// Some content cannot be had.
    Impossible(RollbackObstacle),
}

impl Engine {
    /// Returns the contents of older revisions that decisions need, by revision.
    pub(in crate::engine) fn unread_contents(&self) -> BTreeMap<Revision, Vec<(ObjectId, ContentHash)>> {
        let mut found: BTreeMap<Revision, Vec<(ObjectId, ContentHash)>> = BTreeMap::new();
        for id in self.rollouts.rollbacks.unread_objects() {
            let replacement =
                self.objects.entries.get(id).and_then(|entry| Some(&entry.rejection.as_ref()?.replacement));
            if let Some(ReplacementContent::Unread(ContentRef { hash, revision })) = replacement {
                found.entry(revision.clone()).or_default().push((id.clone(), *hash));
            }
        }
        for id in self.objects.unread_accepted_objects() {
            let accepted = self.objects.entries.get(id).map(|entry| &entry.accepted);
            if let Some(AcceptedContent::Unread(ContentRef { hash, revision })) = accepted {
                found.entry(revision.clone()).or_default().push((id.clone(), *hash));
            }
        }
        found
    }

    /// Takes the content of an object in an older revision; none where it cannot be had.
    pub(in crate::engine) fn record_older_content(
        &mut self,
        id: &ObjectId,
        content_ref: &ContentRef,
        content: Option<SharedDesiredObject>,
    ) {
        self.record_rollback_content(id, content_ref, content.as_ref());
        if let Some(entry) = self.objects.entries.get_mut(id)
            && entry.accepted == AcceptedContent::Unread(content_ref.clone())
        {
            entry.accepted = match content.filter(|desired| desired.has_hash(content_ref.hash)) {
                Some(desired) => AcceptedContent::Known(desired),
                None => AcceptedContent::Unreadable(content_ref.clone()),
            };
            self.objects.track_accepted(id);
            self.track_rollout(id);
            self.objects.wakes.mark(id.clone());
            self.wake_config_consumers(id);
            self.mark_prunes_stale();
        }
    }

    /// Records the content of a rollback target, or that it cannot be read.
    pub(in crate::engine) fn record_rollback_content(
        &mut self,
        id: &ObjectId,
        content_ref: &ContentRef,
        content: Option<&SharedDesiredObject>,
    ) {
        let is_back = self
            .live_object(id)
            .and_then(LiveObject::shown_release)
            .is_some_and(|shown| shown.hash == content_ref.hash);
        // The reader has found it by its hash in the former inventory.
        let is_former = self.former_inventory_of(id).is_some();
        let Some(entry) = self.objects.entries.get_mut(id) else { return };
        let Some(rejected) = entry
            .rejection
            .as_mut()
            .filter(|i| i.replacement == ReplacementContent::Unread(content_ref.clone()))
        else {
            return;
        };
        let read = match content.filter(|desired| is_former || desired.has_hash(content_ref.hash)) {
            Some(desired) => ReplacementContent::Read(desired.clone(), content_ref.clone()),
            // A dry run reads the newest revision alone: that it lacks a content does not mean that
            // the content is lost.
            None if self.blockers.mode == DecisionMode::Plan => {
                let revision = content_ref.revision.clone();
                let unread = if is_back {
                    RollbackObstacle::BackAtUnread(revision)
                } else {
                    RollbackObstacle::BoundForUnread(revision)
                };
                rejected.cause = format!("{}; {unread}", rejected.cause).into();
                ReplacementContent::Quarantined
            }
            None => ReplacementContent::Unreadable(content_ref.clone()),
        };
        rejected.replacement = if read == ReplacementContent::Quarantined {
            read
        } else {
            ReplacementContent::AwaitingUnit(Box::new(read))
        };
        if let Some(source) = self.rejecting_source(id) {
            self.note_rejection(source, id);
        }
    }

    /// Returns the source whose inventory rejects the content that it wants of an object.
    pub(in crate::engine) fn rejecting_source(&self, id: &ObjectId) -> Option<SourceId> {
        self.source_ids().find(|source| self.sources[*source].rejected_objects.contains(id))
    }

    /// Begins the rollbacks of which all is known, and gives up those that lack something.
    pub(in crate::engine) fn begin_rollbacks(&mut self) {
        if self.rollouts.rollbacks.awaiting_unit.is_empty() {
            return;
        }
        for source in self.source_ids() {
            let inventory = self.sources[source].inventory.iter();
            let awaiting = &self.rollouts.rollbacks.awaiting_unit;
            let returning = |one: &&Rejection| {
                one.action == RejectionAction::RollBack
                    && one.unit.members.keys().any(|id| awaiting.contains(id))
            };
            let found: Vec<Rejection> =
                inventory.flat_map(|inventory| &inventory.rejections).filter(returning).cloned().collect();
            for rejection in found {
                match self.readiness_of(&rejection) {
                    RollbackReadiness::Waiting => {}
                    RollbackReadiness::Ready => {
                        self.begin_rollback(source, &rejection);
                        self.find_cycles();
                    }
                    RollbackReadiness::Impossible(obstacle) => {
                        self.quarantine_failed_unit(source, rejection, &obstacle);
                    }
                }
            }
        }
    }

    fn readiness_of(&self, rejection: &Rejection) -> RollbackReadiness {
        let replacement_of = |id: &ObjectId| Some(&self.entry(id)?.rejection.as_ref()?.replacement);
        let mut lost = None;
        for (id, member) in &rejection.unit.members {
            let Some(replacement) = replacement_of(id) else { continue };
            match replacement {
                ReplacementContent::Unread(_) => return RollbackReadiness::Waiting,
                ReplacementContent::AwaitingUnit(later) => {
                    if matches!(**later, ReplacementContent::Quarantined | ReplacementContent::Unreadable(_))
                        && (self.is_listing_awaited(id) || self.is_being_written(id))
                    {
                        return RollbackReadiness::Waiting;
                    }
                    lost = lost.or_else(|| self.rollback_blocker(id, member, later));
                }
                _ => {}
            }
        }
        lost.map_or(RollbackReadiness::Ready, RollbackReadiness::Impossible)
    }

    /// Returns whether nobody knows yet what is there of an object, and that will be known by itself.
    /// So it is of a kind that discovery does not name now, as while its server starts again.
    ///
    /// A list that the server denies is none: the workload would keep its slot until a person comes.
    fn is_listing_awaited(&self, id: &ObjectId) -> bool {
        match self.listing_state(id) {
            None | Some(KindState::Syncing) => true,
            Some(KindState::Unobservable(_, class)) => {
                matches!(class, ErrorClass::Source | ErrorClass::Transient)
            }
            Some(KindState::Synced | KindState::Absent) => false,
        }
    }

    fn is_being_written(&self, id: &ObjectId) -> bool {
        self.rollouts.writes_in_flight.contains(id)
    }

    /// Returns why an object cannot go back, where it would have to.
    fn rollback_blocker(
        &self,
        id: &ObjectId,
        member: &UnitMember,
        to: &ReplacementContent,
    ) -> Option<RollbackObstacle> {
        match to {
            ReplacementContent::Unreadable(content_ref) => {
                let shown = self.live_object(id).and_then(LiveObject::shown_release);
                // An object that never left its good content, or is back already, need not be read.
                let is_there = shown.is_some_and(|shown| shown.hash == content_ref.hash);
                let (id, revision) = (id.clone(), content_ref.revision.clone());
                (!is_there).then_some(match member.rollback_target {
                    // Only the repository of the source that has it now is read.
                    RollbackTarget::FormerContent { .. } => RollbackObstacle::UnreadableHere(id, revision),
                    _ => RollbackObstacle::Unreadable(id, revision),
                })
            }
            ReplacementContent::Quarantined
                if !self.is_observable(id) || self.can_show_unit_content(id, member) =>
            {
                Some(RollbackObstacle::UnknownContent(id.clone()))
            }
            _ => None,
        }
    }

    /// Returns whether the object shows the unit's content, or may. An object that was never
    /// written stays as it is, and nothing is torn by that.
    pub(in crate::engine) fn can_show_unit_content(&self, id: &ObjectId, member: &UnitMember) -> bool {
        let Some(live) = self.live_object(id) else { return member.content.is_none() };
        let Some(content) = member.content else { return false };
        let accepted = self.entry(id).and_then(|entry| entry.accepted.content());
        let ours = self.source_of(live).is_some();
        // Once somebody has taken the annotation away, only this process may know what it has put
        // there.
        let anything = ours && live.shown_release().is_none() && accepted.is_none();
        anything
            || member.is_unreadable()
            || self.is_showing(id, content)
            || accepted.is_some_and(|accepted| accepted.hash == content)
    }

    /// Returns whether the object shows its rollback target. That has one hash in the record, and may
    /// have another one in the manifest that was read for it.
    pub(in crate::engine) fn is_showing_rollback_target(&self, id: &ObjectId, member: &UnitMember) -> bool {
        let recorded = member.rollback_target.content_ref().map(|good| good.hash);
        let rejection = self.entry(id).and_then(|entry| entry.rejection.as_deref());
        let read = rejection.and_then(|rejection| match &rejection.replacement {
            ReplacementContent::Read(target, _) => Some(target.hash),
            _ => None,
        });
        recorded.into_iter().chain(read).any(|hash| self.is_showing(id, hash))
    }

    fn begin_rollback(&mut self, source: SourceId, rejection: &Rejection) {
        for id in rejection.unit.members.keys() {
            let Some(rejected) = self.objects.entries.get_mut(id).and_then(|entry| entry.rejection.as_mut())
            else {
                continue;
            };
            if let ReplacementContent::AwaitingUnit(later) = &rejected.replacement {
                rejected.replacement = (**later).clone();
                self.note_rejection(source, id);
            }
        }
    }

    /// Ends a rollback where it is, or has none begin. The slots of failed members are free at once.
    /// All of the unit is quarantined once the inventory records it.
    pub(in crate::engine) fn quarantine_failed_unit(
        &mut self,
        source: SourceId,
        rejection: Rejection,
        obstacle: &RollbackObstacle,
    ) {
        let cause = bound_cause(format!("{}; {obstacle}", rejection.cause));
        let quarantined = Rejection { action: RejectionAction::Quarantine, cause, ..rejection };
        for id in quarantined.unit.members.keys() {
            self.free_failed_slot(id);
        }
        let rejecting = &mut self.sources[source].pending_rejections;
        if rejecting.contains(&quarantined) {
            return;
        }
        rejecting
            .retain(|other| other.unit.members.keys().all(|id| !quarantined.unit.members.contains_key(id)));
        rejecting.push(quarantined);
    }
}

/// The slots of failed workloads that nothing replaces soon.
impl Engine {
    /// Gives the slot of a failed workload to others, where what is to replace its pods waits. That
    /// may be for a person, or for something that waits for this very slot.
    ///
    /// A rollback keeps it, as all that it waits for comes without a slot. But a person may keep the
    /// workload, or what goes back before it, as it is.
    pub(in crate::engine) fn give_back_failed_slot(&mut self, id: &ObjectId, decision: &Decision) {
        let goes_back = self.has_rejection(id);
        let is_waiting = match &decision.reason {
            Some(
                Reason::OnHold(_)
                | Reason::LeftAlone(_)
                | Reason::OptedOut(_)
                | Reason::Observed
                | Reason::Owned(_)
                | Reason::NotAdopted
                | Reason::Terminating,
            ) => true,
            Some(Reason::Needs(need, _) | Reason::Wave(_, need)) if goes_back => {
                self.is_held_back_by_person(need)
            }
            Some(Reason::Needs(..) | Reason::Wave(..) | Reason::UnitWorkload(_) | Reason::Paused(..)) => {
                !goes_back
            }
            Some(reason) => reason.is_refusal() && !goes_back,
            None => false,
        };
        if is_waiting {
            self.free_failed_slot(id);
        }
    }

    /// Gives the slot of a failed workload to others.
    fn free_failed_slot(&mut self, id: &ObjectId) {
        let rollout = self.rollouts.in_flight.get_mut(id);
        let failed = rollout.filter(|one| one.failed.is_some() && one.slot == BudgetSlot::Taken);
        if let Some(rollout) = failed {
            (rollout.slot, rollout.reserved) = (BudgetSlot::None, 0);
            self.rollouts.slot_requests.mark_stale();
            self.clear_memo();
        }
    }
}

/// The number of refusals in a row that end a rollback, where a retry may help. The parts of the
/// API server learn of rights and quotas one after another.
const MAX_ROLLBACK_REFUSALS: u32 = 5;

impl Engine {
    /// Returns whether a rollback goes on without this object, as the server refuses its target for
    /// good or again and again.
    ///
    /// A refusal for now is awaited, and so is an object that is to be created again. The pods would
    /// be started with the data that failed. A workload waits no longer than for these tries, as it
    /// keeps its slot.
    pub(in crate::engine) fn is_return_refused(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        let Some(refusal) = entry.api_refusal.as_deref().filter(|_| entry.is_target_refused()) else {
            return false;
        };
        let is_lasting = refusal.retry.is_none() && !self.is_to_be_recreated(id, entry, refusal);
        is_lasting || refusal.times >= MAX_ROLLBACK_REFUSALS
    }

    /// Returns whether an object whose content is refused for an immutable field is deleted and
    /// created again. That of a chart with made-up values may have to wait for others.
    fn is_to_be_recreated(&self, id: &ObjectId, entry: &ObjectEntry, refusal: &ApiRefusal) -> bool {
        let Some((_, desired)) = entry.target_content() else { return false };
        refusal.can_be_recreated(desired)
            && desired.generated.is_none()
            && self.live_object(id).is_some_and(|live| !live.is_unproven())
            && self.recreation_blocker(id, desired).is_none()
    }

    /// Ends the rollback of a workload that is there and whose good content is refused for good.
    pub(in crate::engine) fn quarantine_refused_rollback(&mut self, id: &ObjectId) {
        let Some(source) = self.rejecting_source(id) else { return };
        // Nothing else that goes back waits for it any more.
        self.wake_waves(source);
        if !is_workload(id) || self.live_object(id).is_none() {
            return;
        }
        let Some(why) = self.rollback_refusal(id) else { return };
        let inventory = self.sources[source].inventory.iter();
        let named = inventory.flat_map(|inventory| &inventory.rejections).find(|rejection| {
            let member = rejection.unit.members.get(id);
            let back =
                rejection.action == RejectionAction::RollBack && !self.is_superseded(source, rejection);
            back && member.is_some_and(|member| member.rollback_target.content_ref().is_some())
        });
        let Some(rejection) = named.cloned() else { return };
        self.quarantine_failed_unit(source, rejection, &RollbackObstacle::Refused(id.clone(), why));
    }

    /// Returns the cause for which the good content of an object is refused for good.
    fn rollback_refusal(&self, id: &ObjectId) -> Option<RefusalCause> {
        let entry = self.entry(id)?;
        let ReplacementContent::Read(good, _) = &entry.rejection.as_ref()?.replacement else {
            return None;
        };
        let refusal = entry.api_refusal.as_ref().filter(|refusal| refusal.is_of(good))?;
        let final_now = match refusal.rule {
            RefusalRule::Webhook => false,
            _ if refusal.can_be_recreated(good) => false,
            _ => refusal.retry.is_none() || refusal.times >= MAX_ROLLBACK_REFUSALS,
        };
        final_now.then(|| refusal.cause.clone())
    }
}
