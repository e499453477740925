//! The views of live objects: takes over what informers, lookups and our own writes show, and
//! returns the newest.
//!
//! The loop calls it with each event of an informer. Each change marks the object, so that it is
//! decided about again.

use std::collections::HashSet;
use std::time::Instant;

use crate::engine::facts::effective_content::ReplicaOwner;
use crate::engine::facts::entry::{
    DirectView, ObjectEntry, RefusalRule, SourceId, VerifiedOwnership, WaitTopic,
};
use crate::engine::facts::informer_groups::{
    InformerGroupId, InformerGroupSet, OWN_INFORMER_GROUP, WatchScope,
};
use crate::engine::facts::kinds::KindState;
use crate::engine::state::Engine;
use crate::engine::{FinishedJob, LiveObject, ObjectLifetime, ObjectOwner, is_workload};
use crate::object::{ContentHash, ObjectId, Revision};

impl Engine {
    /// Begins the list of an informer: objects that it does not show until its end are gone.
    pub(in crate::engine) fn list_started(&mut self, listing: impl Into<WatchScope>) {
        let listing = listing.into();
        let mut known: HashSet<ObjectId> = self
            .objects
            .informer_objects
            .keys()
            .filter(|id| InformerGroupSet::is_in(&listing, id))
            .cloned()
            .collect();
        known.retain(|id| self.kinds.informer_groups.observer_of(id) == listing.informer_group);
        self.kinds.informer_groups.begin(&listing, known);
        self.begin_listing(&listing);
    }

    /// Ends the list of an informer.
    pub(in crate::engine) fn list_complete(&mut self, listing: impl Into<WatchScope>) {
        let listing = listing.into();
        for id in self.kinds.informer_groups.end(&listing) {
            self.observe_absence_by(listing.informer_group, &id);
        }
        // The list is newer than any write of ours, and than any lookup, that it does not show.
        let refuted =
            self.objects.entries.iter().filter(|(id, entry)| self.is_gone_by_list(&listing, id, entry));
        let refuted: Vec<ObjectId> = refuted.map(|(id, _)| id.clone()).collect();
        for id in refuted {
            if let Some(entry) = self.objects.entries.get_mut(&id) {
                (entry.min_resource_version, entry.direct_view) = (None, None);
                self.objects.wakes.mark(id);
            }
        }
        self.set_informer_state(&listing, KindState::Synced);
    }

    /// Marks all objects whose kinds have changed their state.
    pub(in crate::engine) fn mark_changed_kinds(&mut self) {
        // Reports of workloads by others count as long as they are not shown.
        self.rollouts.slot_requests.mark_stale();
        self.rollouts.units.forget_all();
        self.wake_topic(&WaitTopic::Kinds);
        self.mark_prunes_stale();
    }

    /// Takes an object that an informer shows.
    pub(in crate::engine) fn observe_object_by(
        &mut self,
        informer_group: InformerGroupId,
        id: &ObjectId,
        mut live: LiveObject,
    ) {
        let id = &self.objects.shared_id(id);
        self.prove(id, &mut live);
        let listed = self.remove_expected(informer_group, id);
        let known = self.objects.informer_objects.get(id);
        if self.is_shown_by_another(informer_group, id) {
            // Its label has changed, and this informer group has not seen that yet.
            if known.is_some_and(|known| known.rv >= live.rv) {
                return;
            }
        } else if known.is_some_and(|known| known.rv > live.rv && known.uid == live.uid) {
            if !listed {
                return;
            }
            // A list is older than the events before it only where the cluster itself went back, as
            // by a restore of etcd. Facts about later versions are then void.
            if let Some(entry) = self.objects.entries.get_mut(id) {
                (entry.direct_view, entry.min_resource_version, entry.newest_release) = (None, None, None);
            }
            self.prove(id, &mut live);
        }
        self.kinds.informer_groups.set_observer(informer_group, id);
        self.store_live_object(id, live);
    }

    /// Takes over the newest view of an object.
    pub(in crate::engine) fn store_live_object(&mut self, id: &ObjectId, live: LiveObject) {
        let newest = self.newest_revision_of(id);
        let entry = self.objects.entries.entry(id.clone()).or_default();
        let is_newer = |view: &DirectView| matches!(view, DirectView::Found(found) if found.rv > live.rv);
        entry.direct_view = entry.direct_view.take().filter(is_newer);
        entry.min_resource_version = entry.min_resource_version.filter(|(written, _)| *written > live.rv);
        // A view older than our own write shows nothing about the accepted content.
        let accepted = entry.accepted.content().map(|accepted| accepted.hash);
        if entry.min_resource_version.is_none() {
            entry.restore_accepted(&live, newest.as_ref());
        }
        let changed = accepted != entry.accepted.content().map(|accepted| accepted.hash);
        let written = self.rollouts.writes_in_flight.contains(id) && entry.unreleased_content().is_none();
        // The event may come before the answer to our own write, and means nothing else.
        let own = written && (accepted.is_none() || !is_workload(id));
        self.track_end(id, &live);
        let shared = self.objects.shared_id(id);
        self.note_release(id, &live);
        let before = self.objects.informer_objects.insert(shared, Box::new(live));
        self.count_live(id, before.as_deref());
        self.track_rollout(id);
        self.track_intents(id);
        let was_ours = before.is_some_and(|before| self.source_of(&before).is_some());
        if changed && !own {
            self.rollouts.units.forget_all();
        }
        self.track(id);
        if !was_ours {
            self.track_arrival(id);
        }
        self.note_object_change(id);
    }

    /// Keeps which objects have come with the label of a source that had been read, and that does
    /// not want them.
    fn track_arrival(&mut self, id: &ObjectId) {
        let Some(live) =
            self.objects.informer_objects.get(id).filter(|_| self.objects.unwanted_objects().contains(id))
        else {
            return;
        };
        let is_read = self.source_of(live).is_some_and(|source| self.sources[source].head.is_some());
        if let (true, Some(now)) = (is_read, self.rollouts.starts.current_time()) {
            self.handover.note_arrival(live.uid.clone(), now);
        }
    }

    /// Records that an informer no longer shows an object: it is gone, or lost our label. An object
    /// that another one shows is there.
    pub(in crate::engine) fn observe_absence_by(&mut self, informer_group: InformerGroupId, id: &ObjectId) {
        self.remove_expected(informer_group, id);
        if self.is_shown_by_another(informer_group, id) {
            return;
        }
        self.kinds.informer_groups.set_observer(OWN_INFORMER_GROUP, id);
        let before = self.objects.informer_objects.remove(id);
        self.count_live(id, before.as_deref());
        if let Some(before) = &before {
            self.handover.forget_wait(&before.uid);
        }
        // Our own write may have moved it to another informer group, which is about to show it.
        let moves = self.watcher_of(id) != Some(informer_group);
        if let Some(entry) =
            self.objects.entries.get_mut(id).filter(|entry| !(moves && entry.min_resource_version.is_some()))
        {
            entry.direct_view = None;
            entry.min_resource_version = None;
            entry.verified = None;
            // A creation changes no field. The answer to our own deletion may be lost.
            entry.forget_refusals(RefusalRule::Immutable);
        }
        self.rollouts.writes_in_flight.note_unshown(id);
        self.objects.forget_unwanted(id);
        self.track_handover(id);
        self.track_intents(id);
        self.track_rollout(id);
        self.note_object_change(id);
    }

    /// Takes the answer of a lookup at the API server, which came at this time.
    pub(in crate::engine) fn record_lookup_at(&mut self, id: &ObjectId, view: DirectView, now: Instant) {
        self.record_lookup(id, view);
        if let Some(entry) = self.objects.entries.get_mut(id) {
            entry.absent_since = matches!(entry.direct_view, Some(DirectView::Absent)).then_some(now);
        }
    }

    /// Does the same as [`Engine::record_lookup_at`], at a time that is not known.
    pub(in crate::engine) fn record_lookup(&mut self, id: &ObjectId, mut view: DirectView) {
        if let DirectView::Found(live) = &mut view {
            self.prove(id, live);
            self.note_release(id, live);
        }
        let newest = self.newest_revision_of(id);
        let overdue = self.objects.entries.get(id).is_some_and(|entry| entry.min_resource_version.is_some());
        match (self.objects.informer_objects.contains_key(id), &view) {
            // The watch owes us an event.
            (true, DirectView::Absent) if overdue => {
                self.observe_absence_by(self.kinds.informer_groups.observer_of(id), id);
            }
            // It came while the question was on its way.
            (true, DirectView::Absent) => return,
            _ => {}
        }
        let is_absent = matches!(view, DirectView::Absent);
        if let Some(entry) = self.objects.entries.get_mut(id) {
            // The server's own answer is newer than any write of ours, whatever number it bears.
            entry.min_resource_version = None;
            if let DirectView::Found(live) = &view {
                entry.restore_accepted(live, newest.as_ref());
            }
            entry.direct_view = Some(view);
        }
        if is_absent {
            // The answer to its write may have come after the event that it is gone.
            self.track_rollout(id);
        }
        self.track_intents(id);
        self.track(id);
        self.note_object_change(id);
    }

    pub(in crate::engine) fn note_object_change(&mut self, id: &ObjectId) {
        self.track_move(id);
        self.objects.wakes.mark(id.clone());
        self.wake_topic(&WaitTopic::Object(id.clone()));
        self.wake_config_consumers(id);
        self.note_candidate_change(id);
    }

    /// Takes the verdict of comparing a content with our entry.
    pub(in crate::engine) fn record_coverage(&mut self, id: &ObjectId, verified: VerifiedOwnership) {
        if let Some(entry) = self.objects.entries.get_mut(id) {
            entry.verified = Some(verified);
            self.objects.wakes.mark(id.clone());
        }
    }
}

impl Engine {
    /// Returns the newest view of an object: by its informer, or by our own write or a lookup that
    /// the informer has not shown yet.
    pub(in crate::engine) fn live_object(&self, id: &ObjectId) -> Option<&LiveObject> {
        let entry = self.objects.entries.get(id);
        self.newest_view(id, entry.and_then(|entry| entry.direct_view.as_ref()))
    }

    /// Does the same as [`Engine::live_object`], with the object's entry at hand.
    pub(in crate::engine) fn live_object_of<'a>(
        &'a self,
        id: &ObjectId,
        entry: &'a ObjectEntry,
    ) -> Option<&'a LiveObject> {
        self.newest_view(id, entry.direct_view.as_ref())
    }

    fn newest_view<'a>(&'a self, id: &ObjectId, direct: Option<&'a DirectView>) -> Option<&'a LiveObject> {
        let direct = match direct {
            Some(DirectView::Found(live)) => Some(&**live),
            Some(DirectView::Absent) | None => None,
        };
        // The health of an older view is that of an older content.
        match (self.informer_object(id), direct) {
            (Some(live), Some(direct)) if direct.rv > live.rv => Some(direct),
            (live, direct) => live.or(direct),
        }
    }

    /// Returns who sets the count of replicas of an object. As long as the autoscalers are
    /// not known, one whose count is not ours is taken to have one: ours would scale it back.
    pub(in crate::engine) fn replica_owner(&self, id: &ObjectId, entry: &ObjectEntry) -> ReplicaOwner {
        let autoscaled = match self.objects.autoscaled_objects() {
            Some(targets) => targets.contains(id),
            None => self.live_object(id).is_some_and(|live| {
                let ceded = entry.target_content().and_then(|(_, desired)| desired.hash_without_replicas);
                let released = live.shown_release().map(|release| release.hash);
                live.replicas_ceded || (ceded.is_some() && ceded == released)
            }),
        };
        if autoscaled { ReplicaOwner::Autoscaler } else { ReplicaOwner::Manifest }
    }

    /// Returns whether it is a Job that has ended with the desired content, and need not be there
    /// any more.
    pub(in crate::engine) fn has_ended(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        let wanted = entry.target_content().map(|(_, desired)| desired);
        wanted.is_some_and(|desired| {
            self.finished_job_content(id, entry).is_some_and(|hash| desired.has_hash(hash))
        })
    }

    /// Returns whether it is a Job that has succeeded with the desired content, and need not be there
    /// any more.
    pub(in crate::engine) fn has_succeeded(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        self.recorded_end(id, entry).is_some_and(|job| !job.has_failed)
    }

    /// Returns whether it is a Job that has failed with the desired content, and may be gone.
    pub(in crate::engine) fn has_ended_in_failure(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        self.recorded_end(id, entry).is_some_and(|job| job.has_failed)
    }

    /// Returns the revision with which a Job has failed that may be gone. None for any other object,
    /// and for one of which nothing says it.
    pub(in crate::engine) fn failed_revision<'a>(
        &'a self,
        id: &ObjectId,
        entry: &'a ObjectEntry,
    ) -> Option<&'a Revision> {
        let job = self.recorded_end(id, entry).filter(|job| job.has_failed)?;
        job.revision.as_ref().or(entry.revision.as_ref())
    }

    /// Returns the end of a Job with the desired content, as the inventory records it.
    fn recorded_end(&self, id: &ObjectId, entry: &ObjectEntry) -> Option<&FinishedJob> {
        let (source, desired) = entry.target_content()?;
        let job = self.sources[source].inventory.as_ref()?.finished.get(id)?;
        desired.has_hash(job.content).then_some(job)
    }

    /// Returns the content with which a Job ended that goes away by itself, as the inventory or a
    /// view reported it.
    pub(in crate::engine) fn finished_job_content(
        &self,
        id: &ObjectId,
        entry: &ObjectEntry,
    ) -> Option<ContentHash> {
        let (source, desired) = entry.target_content()?;
        let inventory = self.sources[source].inventory.as_ref();
        let recorded = inventory.and_then(|inventory| Some(inventory.finished.get(id)?.content));
        let seen = entry.rare.ended.filter(|_| desired.traits.lifetime == ObjectLifetime::AfterFinish);
        seen.filter(|hash| desired.has_hash(*hash)).or(recorded)
    }

    /// Records the end of a Job that deletes itself: that it is gone afterwards is not drift.
    pub(in crate::engine) fn track_end(&mut self, id: &ObjectId, live: &LiveObject) {
        let is_trusted = || self.entry(id).is_some_and(|entry| entry.is_created_by_rhumb(live));
        let Some(release) = live
            .shown_release()
            .filter(|release| live.finished && is_trusted() && self.is_target_hash(id, release.hash))
        else {
            return;
        };
        let Some((source, desired)) = self.entry(id).and_then(ObjectEntry::target_content) else { return };
        if desired.traits.lifetime == ObjectLifetime::AfterFinish
            && let Some(inventory) = &mut self.sources[source].inventory
        {
            let has_failed = !live.health.is_current();
            let revision = has_failed.then(|| release.revision.clone());
            let job = FinishedJob { content: release.hash, has_failed, revision };
            inventory.finished.insert(id.clone(), job);
        }
    }

    /// Records the end of a Job that was shown before its source or its inventory was read. It goes
    /// away in time, and nothing else says then whether it has failed.
    pub(in crate::engine) fn track_shown_end(&mut self, id: &ObjectId) {
        let ended = self.objects.informer_objects.get(id).filter(|live| live.finished).cloned();
        if let Some(live) = ended {
            self.track_end(id, &live);
        }
    }

    /// Returns whether this is the content that is wanted of an object.
    pub(in crate::engine) fn is_target_hash(&self, id: &ObjectId, hash: ContentHash) -> bool {
        self.entry(id)
            .and_then(ObjectEntry::target_content)
            .is_some_and(|(_, desired)| desired.has_hash(hash))
    }

    /// Returns the source in whose inventory an object is.
    pub(in crate::engine) fn source_of(&self, live: &LiveObject) -> Option<SourceId> {
        match &live.owner {
            ObjectOwner::Ours(set) => self.source_of_inventory_id(set),
            _ => None,
        }
    }
}
