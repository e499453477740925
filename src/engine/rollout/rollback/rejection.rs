//! Contents that failed here, and their replacements, until the content changes.
//!
//! A rejection names the contents of a whole unit. It is in force only once the source's inventory
//! records it. It lasts as long as the newest revision asks for exactly these contents, or until a
//! retry: any of them may be at fault. One in quarantine also ends with a change of the data that
//! its pods are started with, where these are not from git.
//!
//! `Engine::propose_rejection` makes one of a failed rollout, once the Events about it are read.
//! `src/daemon/inventory.rs` asks for `next_rejections`, and `src/daemon/reconciler/inventories.rs`
//! writes them. The answer calls `Engine::apply_rejections`, and `lifecycle.rs` goes on.
//!
//! The last good content before failed contents stays known until something newer has succeeded.
//! A newer revision ends a rejection, and failed contents may still be there then. The rollback of
//! that revision leads to the content before them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::facts::budget::OnFailure;
use crate::engine::facts::entry::{SourceId, WaitTopic};
use crate::engine::facts::records::rejection::{
    ObjectRejection, Rejection, RejectionAction, ReplacementContent,
};
use crate::engine::facts::records::release_unit::{ReleaseUnit, UnitMember};
use crate::engine::rollout::rollback::rejection_cause::{RejectionCause, RollbackObstacle};
use crate::engine::state::Engine;
use crate::engine::{
    DesiredState, LiveObject, PrunePolicy, PruneTiming, Reason, RejectedContent, RejectionOutcome,
    SourceLifecycle,
};
use crate::object::ObjectId;

/// The number of bytes kept of a cause: pods, webhooks and the API server write it, and it is in a
/// ConfigMap.
const MAX_CAUSE_BYTES: usize = 2000;

/// Returns as much of a cause as is kept.
pub(in crate::engine) fn bound_cause(mut cause: String) -> Arc<str> {
    if cause.len() > MAX_CAUSE_BYTES {
        cause.truncate(cause.floor_char_boundary(MAX_CAUSE_BYTES));
        cause.push('…');
    }
    cause.into()
}

impl Rejection {
    /// Quarantines a rejection that cannot be read completely: good contents are good together
    /// only.
    #[must_use]
    pub(crate) fn quarantine_if_unreadable(mut self) -> Self {
        let unreadable = self.unit.members.iter().find(|(_, member)| member.is_unreadable());
        if let (RejectionAction::RollBack, Some((id, _))) = (self.action, unreadable) {
            let unknown_key = RollbackObstacle::UnknownKey(id.clone());
            self.cause = format!("{}; {unknown_key}", self.cause).into();
            self.action = RejectionAction::Quarantine;
        }
        self
    }
}

impl ObjectRejection {
    /// Returns the reason that keeps the newest content from being released. The live object decides
    /// whether it is back at a content that cannot be read any more.
    pub(in crate::engine) fn release_blocker(&self, live: Option<&LiveObject>) -> Option<Reason> {
        match &self.replacement {
            ReplacementContent::Quarantined => Some(self.rejected(RejectionOutcome::Quarantined)),
            ReplacementContent::Unread(_) | ReplacementContent::AwaitingUnit(_) => {
                let revision =
                    self.replacement.content_ref().map(|content_ref| content_ref.revision.short_name());
                Some(Reason::ReadingRevision(revision.unwrap_or_default().into()))
            }
            ReplacementContent::Unreadable(content_ref) => {
                let shown = live.and_then(LiveObject::shown_release);
                let is_back = shown.is_some_and(|shown| shown.hash == content_ref.hash);
                Some(self.rejected(if is_back {
                    RejectionOutcome::Unreadable(content_ref.revision.short_name().into())
                } else {
                    RejectionOutcome::Quarantined
                }))
            }
            ReplacementContent::Delete | ReplacementContent::Read(..) => None,
        }
    }

    /// Returns the reason to show for an object with which nothing else is to be done.
    pub(in crate::engine) fn reason(&self, live: Option<&LiveObject>) -> Option<Reason> {
        match &self.replacement {
            ReplacementContent::Read(_, content_ref) => {
                let revision = content_ref.revision.short_name().into();
                Some(self.rejected(if self.is_newest_content {
                    RejectionOutcome::Unaffected(revision)
                } else {
                    RejectionOutcome::RolledBack(revision)
                }))
            }
            _ => self.release_blocker(live),
        }
    }

    fn rejected(&self, outcome: RejectionOutcome) -> Reason {
        Reason::Rejected(RejectedContent { cause: self.cause.clone(), outcome })
    }
}

impl Engine {
    /// Returns the rejections that a source's inventory should record; none where it records
    /// exactly these.
    pub(in crate::engine) fn next_rejections(&self, source: SourceId) -> Option<Vec<Rejection>> {
        let state = &self.sources[source];
        let known = &state.inventory.as_ref()?.rejections;
        let mut next: Vec<Rejection> = known
            .iter()
            .filter(|known| {
                !self.is_superseded(source, known) || self.is_only_record_of_targets(source, known)
            })
            .filter(|known| !self.is_retried(source, known))
            .cloned()
            .collect();
        for rejecting in &state.pending_rejections {
            next.retain(|known| known.unit.members.keys().all(|id| !rejecting.unit.members.contains_key(id)));
            next.push(rejecting.clone());
        }
        (next != *known).then_some(next)
    }

    /// Returns whether a rejection no longer applies. The newest revision asks for another content,
    /// the source is being deleted, or data that are not from git changed.
    pub(in crate::engine) fn is_superseded(&self, source: SourceId, rejection: &Rejection) -> bool {
        let state = &self.sources[source];
        if state.head.is_none() {
            return false;
        }
        // The source is being deleted, and all of it goes.
        if state.declared.lifecycle == SourceLifecycle::Deleting {
            return true;
        }
        let foreign = |(id, member): (&ObjectId, &UnitMember)| {
            let (Some(DesiredState::Object(newest)), Some(restarted)) =
                (state.manifests.desired_state(id), member.restarted)
            else {
                return false;
            };
            self.foreign_config(&newest).is_some_and(|(key, now)| restarted.is_foreign_changed(key, now))
        };
        // Changed outside data end a quarantine, and never a rollback: its contents are in git.
        if rejection.action == RejectionAction::Quarantine && rejection.unit.members.iter().any(foreign) {
            return true;
        }
        rejection.unit.members.iter().any(|(id, member)| {
            match (state.manifests.desired_state(id), member.content) {
                // Where nobody can read what was rejected, it is taken to be what is asked for:
                // nothing is tried again.
                (Some(DesiredState::Object(desired)), Some(content)) => {
                    !member.is_unreadable() && !desired.has_hash(content)
                }
                (Some(DesiredState::Object(_)), None) => true,
                (Some(DesiredState::Unusable(_)), _) | (None, None) => false,
                // As long as its earlier content runs, that of the others belongs to it. Another
                // source that takes it over reads here what was rejected.
                (None, Some(_)) => state.is_complete() && !self.is_to_be_pruned(source, id),
            }
        })
    }

    /// Returns whether the newest revision, read completely, does not name an object. It goes back
    /// to nothing then: it goes, once the prune guard allows that.
    fn is_dropped_by_head(&self, source: SourceId, id: &ObjectId) -> bool {
        let state = &self.sources[source];
        state.is_complete() && state.manifests.desired_state(id).is_none()
    }

    /// Returns whether an unwanted object is there, goes as soon as it may, and no other source has
    /// taken it over.
    fn is_to_be_pruned(&self, source: SourceId, id: &ObjectId) -> bool {
        let is_pruned = |live: &LiveObject| {
            self.source_of(live) == Some(source) && live.prune_timing != PruneTiming::Never
        };
        self.sources[source].declared.prune == PrunePolicy::On && self.live_object(id).is_some_and(is_pruned)
    }

    /// Applies the rejections that are in force, and no others.
    pub(in crate::engine) fn apply_rejections(&mut self, source: SourceId) {
        let inventory = self.sources[source].inventory.as_ref();
        let known: Vec<Rejection> =
            inventory.map(|inventory| inventory.rejections.clone()).unwrap_or_default();
        let mut rejections = BTreeMap::new();
        for rejection in known.iter().filter(|rejection| !self.is_superseded(source, rejection)) {
            // A rejected removal is of an object that the newest revision does not name.
            let applies = |id: &ObjectId, member: &UnitMember| {
                member.content.is_none() || !self.is_dropped_by_head(source, id)
            };
            for (id, member) in rejection.unit.members.iter().filter(|(id, member)| applies(id, member)) {
                rejections.insert(id.clone(), ObjectRejection::of(rejection, member));
            }
        }
        let before = self.sources[source].rejected_objects.iter();
        let ids: BTreeSet<ObjectId> = before.chain(rejections.keys()).cloned().collect();
        self.sources[source].rejected_objects = rejections.keys().cloned().collect();
        self.sources[source].pending_rejections.retain(|rejecting| !known.contains(rejecting));
        for id in ids {
            let now = rejections.remove(&id);
            let entry = self.objects.entries.entry(id.clone()).or_default();
            let same = match (&entry.rejection, &now) {
                (Some(before), Some(now)) => before.is_equivalent(now),
                (None, None) => true,
                _ => false,
            };
            if !same {
                entry.rejection = now.map(Box::new);
                self.note_rejection(source, &id);
            }
        }
        self.wake_waves(source);
    }

    pub(in crate::engine) fn note_rejection(&mut self, source: SourceId, id: &ObjectId) {
        let rejection = self.objects.entries.get(id).and_then(|entry| entry.rejection.as_ref());
        self.rollouts.rollbacks.track(id, rejection.map(|rejection| &rejection.replacement));
        self.rollouts.units.forget(source);
        self.watch_again();
        self.recompute_target(source, id);
        self.blockers.forget_refusal(id);
        self.objects.wakes.mark(id.clone());
        // Others wait until it goes back, also where its target stays the same.
        self.wake_topic(&WaitTopic::Object(id.clone()));
        // Objects that the unit added are pruned, and only this has them judged.
        self.mark_prunes_stale();
    }

    /// Returns whether a rejection of an object is in force.
    pub(in crate::engine) fn has_rejection(&self, id: &ObjectId) -> bool {
        self.entry(id).is_some_and(|entry| entry.rejection.is_some())
    }

    /// Returns whether the target of an object is a rollback's content, written or not.
    pub(in crate::engine) fn has_rollback_target(&self, id: &ObjectId) -> bool {
        let rejection = self.entry(id).and_then(|entry| entry.rejection.as_ref());
        rejection.is_some_and(|rejection| matches!(rejection.replacement, ReplacementContent::Read(..)))
    }

    /// Proposes the rejection of the unit of a failed rollout, which is rolled back or quarantined.
    /// It is in force once the inventory records it. The unit is that of the rejection that a failed
    /// rollback belongs to, of a refused release, or of the ledger. Without any of these nothing is
    /// proposed.
    pub(in crate::engine) fn propose_rejection(&mut self, id: &ObjectId, why: &Arc<str>) {
        let Some((source, _)) = self.entry(id).and_then(|entry| entry.targets.first()) else { return };
        let source = *source;
        let failed_again = self.sources[source].inventory.as_ref().and_then(|inventory| {
            let named =
                |one: &&Rejection| one.unit.members.contains_key(id) && !self.is_superseded(source, one);
            inventory.rejections.iter().find(named).cloned()
        });
        let rejection = if let Some(rejection) = failed_again {
            let member = rejection.unit.members.get(id);
            // Where the rollback target is not there yet, it cannot have failed.
            let is_back = member.is_some_and(|member| {
                self.is_showing_rollback_target(id, member) && !self.is_member_shown(id, member)
            });
            if rejection.action == RejectionAction::Quarantine || !is_back {
                return;
            }
            self.failed_data_rejection(source, id, why).unwrap_or_else(|| {
                let failed = RollbackObstacle::Failed(id.clone(), why.clone());
                let cause = bound_cause(format!("{}; {failed}", rejection.cause));
                Rejection { action: RejectionAction::Quarantine, cause, ..rejection }
            })
        } else if let Some(rejection) = self.refused_release_rejection(source, id, why) {
            rejection
        } else {
            let ledger = self.rollouts.ledger.latest();
            let Some(unit) =
                ledger.and_then(|ledger| ledger.unit_of(&self.sources.inventory_ids()[source], id))
            else {
                return;
            };
            // A newer revision may have changed only what needed no rollout. It may also have taken
            // back what was claimed in place of the failed content.
            let unit = self.unit_at_head(source, unit).unwrap_or_else(|| unit.clone());
            let member = unit.members.get(id).filter(|member| member.content.is_some());
            if member.is_some_and(|member| !self.is_member_shown(id, member)) {
                // Something newer replaces the failed content, and is claimed already.
                return;
            }
            let failed = RejectionCause::RolloutFailed(self.failed_release(id, &unit, why));
            let cause = bound_cause(failed.to_string());
            Rejection { action: self.action_for_unit(&unit, id), cause, unit }
        };
        self.add_pending_rejection(source, rejection);
    }

    /// Has the inventory of a source record a rejection, in place of others that overlap with it.
    pub(in crate::engine) fn add_pending_rejection(&mut self, source: SourceId, rejection: Rejection) {
        let rejecting = &mut self.sources[source].pending_rejections;
        rejecting
            .retain(|other| other.unit.members.keys().all(|id| !rejection.unit.members.contains_key(id)));
        rejecting.push(rejection);
    }

    /// Returns whether all was read that says if a failed rollout of a workload goes back: its
    /// source, the inventory and the rollout ledger. A workload of no source never goes back, so all is
    /// known of it.
    pub(in crate::engine) fn is_rollback_known(&self, id: &ObjectId, live: &LiveObject) -> bool {
        let claimed = || self.source_of_inventory_id(&self.own_claim(id)?.inventory_id);
        let source = self.wanting_source(id).or_else(|| self.source_of(live)).or_else(claimed);
        let is_read = |source: SourceId| {
            let state = &self.sources[source];
            state.head.is_some() && state.inventory.is_some()
        };
        let ledger = &self.rollouts.ledger;
        let is_ledger_read = ledger.latest().is_some() || ledger.unreadable_reason().is_some();
        source.is_none_or(|source| is_read(source) && is_ledger_read)
    }

    /// Returns whether the pods of a failed rollout will still be replaced, by a rollback or by
    /// something newer. Such a workload keeps its slot, as its pods are of two templates.
    pub(in crate::engine) fn is_rollback_due(&self, id: &ObjectId) -> bool {
        let Some((source, _)) = self.entry(id).and_then(|entry| entry.targets.first()) else { return false };
        let inventory = self.sources[*source].inventory.as_ref();
        let known = inventory.into_iter().flat_map(|inventory| &inventory.rejections);
        let known = known.filter(|known| !self.is_superseded(*source, known));
        let rejected = self.sources[*source].pending_rejections.iter().chain(known);
        let rejected = rejected.into_iter().find(|rejection| rejection.unit.members.contains_key(id));
        let (action, member) = if let Some(rejection) = &rejected {
            (rejection.action, &rejection.unit.members[id])
        } else {
            let unit = self
                .rollouts
                .ledger
                .latest()
                .and_then(|ledger| ledger.unit_of(&self.sources.inventory_ids()[*source], id));
            let Some(member) = unit.and_then(|unit| unit.members.get(id)) else { return false };
            (unit.map_or(RejectionAction::Quarantine, |unit| self.action_for_unit(unit, id)), member)
        };
        let is_failed_content_shown = self.is_member_shown(id, member);
        let replaced = !is_failed_content_shown && rejected.is_none();
        replaced
            || (action == RejectionAction::RollBack
                && is_failed_content_shown
                && member.rollback_target.content_ref().is_some())
    }

    pub(in crate::engine) fn action_for_unit(&self, unit: &ReleaseUnit, id: &ObjectId) -> RejectionAction {
        if self.is_only_restarted(unit, id) {
            RejectionAction::Quarantine
        } else {
            self.action_after_failure(id)
        }
    }

    fn action_after_failure(&self, id: &ObjectId) -> RejectionAction {
        let mut actions = self.budget_overrides(id).filter_map(|budget_override| budget_override.on_failure);
        let hold = self.rollouts.budget.on_failure == OnFailure::Quarantine
            || actions.any(|action| action == OnFailure::Quarantine);
        if hold { RejectionAction::Quarantine } else { RejectionAction::RollBack }
    }

    /// Returns the first object of an earlier wave whose content was rejected, with its wave.
    pub(in crate::engine) fn earlier_rejection(
        &self,
        source: SourceId,
        wave: i32,
    ) -> Option<(i32, ObjectId)> {
        let state = &self.sources[source];
        let waves = state.rejected_objects.iter().filter_map(|id| match state.manifests.desired_state(id) {
            Some(DesiredState::Object(desired)) if desired.wave < wave => Some((desired.wave, id.clone())),
            _ => None,
        });
        waves.min()
    }
}

impl Engine {
    /// Returns whether only this rejection still records the last good content.
    pub(in crate::engine) fn is_only_record_of_targets(
        &self,
        source: SourceId,
        rejection: &Rejection,
    ) -> bool {
        let Some(ledger) = self.rollouts.ledger.latest() else { return true };
        let members = &rejection.unit.members;
        let is_recorded =
            members.keys().any(|id| ledger.unit_of(&self.sources.inventory_ids()[source], id).is_some());
        self.is_showing_failed_content(source, rejection)
            && !is_recorded
            && !self.is_concluded(&rejection.unit)
    }

    /// Lets a unit go back to the content before failed contents that are still there. Objects that
    /// failed together with them belong to the unit: they were good together.
    pub(in crate::engine) fn inherit_rollback_targets(&self, source: SourceId, unit: &mut ReleaseUnit) {
        let inventory = self.sources[source].inventory.iter();
        for rejection in inventory.flat_map(|inventory| &inventory.rejections) {
            let shares = rejection.unit.members.keys().any(|id| unit.members.contains_key(id));
            if !shares
                || !self.is_superseded(source, rejection)
                || !self.is_only_record_of_targets(source, rejection)
            {
                continue;
            }
            for id in rejection.unit.members.keys() {
                if !unit.members.contains_key(id) {
                    unit.members.insert(id.clone(), self.member(source, id));
                }
            }
            unit.merge_older(&rejection.unit);
        }
    }
}
