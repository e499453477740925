//! The newest view of an object, by its informer, by the answer to our own write or by a lookup.

use crate::engine::decide::input::ReplicaOwner;
use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::state::Engine;
use crate::engine::{LiveObject, ObjectLifetime, ObjectOwner};
use crate::object::{ContentHash, ObjectId};

impl Engine {
    /// Returns the newest view of an object: by its informer, or by our own write or a lookup that
    /// the informer has not shown yet.
    pub(crate) fn live_object(&self, id: &ObjectId) -> Option<&LiveObject> {
        let direct = match self.entries.get(id).and_then(|entry| entry.direct_view.as_ref()) {
            Some(crate::engine::DirectView::Found(live)) => Some(&**live),
            Some(crate::engine::DirectView::Absent) | None => None,
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
        let autoscaled = match &self.autoscaled {
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
    pub(crate) fn has_ended(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        let wanted = entry.target_content().map(|(_, desired)| desired);
        wanted.is_some_and(|desired| {
            self.finished_job_content(id, entry).is_some_and(|hash| desired.has_hash(hash))
        })
    }

    /// Returns the content with which a Job ended that goes away by itself, as the inventory or a
    /// view reported it.
    pub(in crate::engine) fn finished_job_content(
        &self,
        id: &ObjectId,
        entry: &ObjectEntry,
    ) -> Option<ContentHash> {
        let (source, desired) = entry.target_content()?;
        let recorded =
            self.sources[source].inventory.as_ref().and_then(|recorded| recorded.finished.get(id).copied());
        let seen = entry.ended.as_deref().filter(|_| desired.traits.lifetime == ObjectLifetime::AfterFinish);
        seen.filter(|hash| desired.has_hash(**hash)).copied().or(recorded)
    }

    /// Records the end of a Job that deletes itself: that it is gone afterwards is not drift.
    pub(in crate::engine) fn track_end(&mut self, id: &ObjectId, live: &LiveObject) {
        let Some(release) =
            live.shown_release().filter(|release| live.finished && self.is_target_hash(id, release.hash))
        else {
            return;
        };
        let Some((source, desired)) = self.entry(id).and_then(ObjectEntry::target_content) else { return };
        if desired.traits.lifetime == ObjectLifetime::AfterFinish
            && let Some(inventory) = &mut self.sources[source].inventory
        {
            inventory.finished.insert(id.clone(), release.hash);
        }
    }

    /// Returns whether this is the content that is wanted of an object.
    pub(crate) fn is_target_hash(&self, id: &ObjectId, hash: ContentHash) -> bool {
        self.entry(id)
            .and_then(ObjectEntry::target_content)
            .is_some_and(|(_, desired)| desired.has_hash(hash))
    }

    /// Returns the source in whose inventory an object is.
    pub(crate) fn source_of(&self, live: &LiveObject) -> Option<SourceId> {
        match &live.owner {
            ObjectOwner::Ours(set) => self.source_of_inventory_id(set),
            _ => None,
        }
    }
}
