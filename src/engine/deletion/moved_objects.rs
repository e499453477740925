//! Objects that another folder of a source's repository has come to name.
//!
//! Nobody serves the source of a folder that is only applied by hand, so that it cannot say what it
//! wants. A pass over another folder reads its files instead: once, and only where the pass would
//! delete something.

use crate::engine::facts::causes::prune_cause::PruneCause;
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::moved_objects::MovedObjects;
use crate::engine::facts::prune_decisions::PruneDecision;
use crate::engine::state::Engine;
use crate::object::{ObjectId, Revision};

/// An object that a source has dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DroppedObject {
    /// Its identity.
    pub id: ObjectId,
    /// The revision that its content was released from, where it says so.
    pub released: Option<Revision>,
}

impl Engine {
    /// Returns the objects that are to be searched for in other folders before a source deletes them.
    /// None where nothing is to be searched for, or not all is known yet.
    pub(in crate::engine) fn objects_to_search(&self, source: SourceId) -> Option<Vec<DroppedObject>> {
        let is_due = self.sources[source].declared.moved == MovedObjects::Unsearched;
        if !is_due || self.unready_blocker(source).is_some() {
            return None;
        }
        let dropped = self.unwanted_of(source).filter_map(|id| {
            let release = self.informer_object(id)?.shown_release();
            Some(DroppedObject { id: id.clone(), released: release.map(|release| release.revision.clone()) })
        });
        let dropped: Vec<DroppedObject> = dropped.collect();
        (!dropped.is_empty()).then_some(dropped)
    }

    /// Takes over what a search has found.
    pub(in crate::engine) fn set_moved_objects(&mut self, source: SourceId, moved: MovedObjects) {
        self.sources[source].declared.moved = moved;
        self.sources[source].prunes.mark_stale();
    }

    /// Returns why a source deletes nothing before other folders were searched.
    pub(in crate::engine) fn search_blocker(&self, source: SourceId) -> Option<PruneDecision> {
        let is_due = self.sources[source].declared.moved == MovedObjects::Unsearched;
        is_due.then_some(PruneDecision::Defer(PruneCause::UnsearchedFolders))
    }
}
