//! Contents of older revisions: which are needed, and what came of reading them.
//!
//! `src/daemon/source_task/older_revision.rs` reads them.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{
    AcceptedContent, ContentRef, PruneCause, PruneDecision, ReplacementContent, SharedDesiredObject, SourceId,
};
use crate::object::{ContentHash, ObjectId, Revision};

impl Engine {
    /// Returns the contents of older revisions that decisions need, by revision.
    pub(in crate::engine) fn unread_contents(&self) -> BTreeMap<Revision, Vec<(ObjectId, ContentHash)>> {
        let mut found: BTreeMap<Revision, Vec<(ObjectId, ContentHash)>> = BTreeMap::new();
        for id in self.rollouts.rollbacks.unread() {
            let replacement =
                self.objects.entries.get(id).and_then(|entry| Some(&entry.rejection.as_ref()?.replacement));
            if let Some(ReplacementContent::Unread(ContentRef { hash, revision })) = replacement {
                found.entry(revision.clone()).or_default().push((id.clone(), *hash));
            }
        }
        for id in self.objects.unread_accepted() {
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
        release: &ContentRef,
        content: Option<SharedDesiredObject>,
    ) {
        self.record_rollback_content(id, release, content.as_ref());
        if let Some(entry) = self.objects.entries.get_mut(id)
            && entry.accepted == AcceptedContent::Unread(release.clone())
        {
            entry.accepted = match content.filter(|desired| desired.has_hash(release.hash)) {
                Some(desired) => AcceptedContent::Known(desired),
                None => AcceptedContent::Unreadable(release.clone()),
            };
            self.objects.track_accepted(id);
            self.track_rollout(id);
            self.objects.wakes.mark(id.clone());
            self.wake_config_consumers(id);
            self.mark_prunes_stale();
        }
    }

    /// Has the contents of objects read again that a source no longer wants. The order of their
    /// deletions follows from them, and which of them are kept.
    pub(in crate::engine) fn reread_last_contents(&self, source: SourceId) -> Option<PruneDecision> {
        let of_source = |id: &&ObjectId| {
            self.informer_object(id).is_some_and(|live| self.source_of(live) == Some(source))
                && self.entry(id).is_some_and(|entry| entry.targets.is_empty())
        };
        // A plan takes what comes first for done.
        let waits = self.blockers.mode == DecisionMode::Live;
        let named = self.objects.unread_accepted().iter().filter(|_| waits).find(of_source)?;
        Some(PruneDecision::Defer(PruneCause::UnreadContent(named.clone())))
    }

    /// Returns the revisions that must stay readable: the newest, and those of contents in force and
    /// of rollback targets.
    pub(in crate::engine) fn revisions(&self) -> BTreeSet<Revision> {
        let heads = self.sources.states().iter().filter_map(|source| source.head.clone());
        let rejected = self.sources.states().iter().filter_map(|source| source.inventory.as_ref());
        let rejected = rejected.flat_map(|inventory| &inventory.rejections).map(|rejection| &rejection.unit);
        let released = self.rollouts.ledger.iter().flat_map(|ledger| &ledger.units);
        let members = rejected.chain(released).flat_map(|unit| unit.members.values());
        let good = members.filter_map(|member| Some(member.rollback_target.content_ref()?.revision.clone()));
        let proven =
            self.objects.proven_objects_by_revision.revisions().cloned().chain(self.unproven_revisions());
        proven.chain(heads).chain(good).collect()
    }
}
