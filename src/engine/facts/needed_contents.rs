//! The revisions that must stay readable, and the contents that a prune waits for.
//!
//! `src/engine/rollout/rollback/lifecycle.rs` names the contents of older revisions that are read.

use std::collections::BTreeSet;

use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{PruneCause, PruneDecision, SourceId};
use crate::object::{ObjectId, Revision};

impl Engine {
    /// Has the contents of objects read again that a source no longer wants. The order of their
    /// deletions follows from them, and which of them are kept.
    pub(in crate::engine) fn reread_last_contents(&self, source: SourceId) -> Option<PruneDecision> {
        let of_source = |id: &&ObjectId| {
            self.informer_object(id).is_some_and(|live| self.source_of(live) == Some(source))
                && self.entry(id).is_some_and(|entry| entry.targets.is_empty())
        };
        // A plan takes what comes first for done.
        let waits = self.blockers.mode == DecisionMode::Live;
        let named = self.objects.unread_accepted_objects().iter().filter(|_| waits).find(of_source)?;
        Some(PruneDecision::Defer(PruneCause::UnreadContent(named.clone())))
    }

    /// Returns the revisions that must stay readable: the newest, and those of contents in force and
    /// of rollback targets.
    pub(in crate::engine) fn revisions(&self) -> BTreeSet<Revision> {
        let heads = self.sources.states().iter().filter_map(|source| source.head.clone());
        let rejected = self.sources.states().iter().filter_map(|source| source.inventory.as_ref());
        let rejected = rejected.flat_map(|inventory| &inventory.rejections).map(|rejection| &rejection.unit);
        let released = self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.units);
        let members = rejected.chain(released).flat_map(|unit| unit.members.values());
        let good = members.filter_map(|member| Some(member.rollback_target.content_ref()?.revision.clone()));
        let proven =
            self.objects.proven_objects_by_revision.revisions().cloned().chain(self.unproven_revisions());
        proven.chain(heads).chain(good).collect()
    }
}
