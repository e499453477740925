//! Searches for what a source has dropped and another folder of its repository names.

use std::collections::BTreeMap;
use std::time::Instant;

use super::super::loop_event::LoopEvent;
use super::super::moved_objects::MovedObjectSearch;
use super::Reconciler;
use crate::engine::{Input, MovedObjects, SourceId};

/// The searches of sources that have one.
#[derive(Debug, Default)]
pub(super) struct FolderSearches {
    /// The searches that nothing has asked for yet.
    pending: BTreeMap<SourceId, MovedObjectSearch>,
    /// The number of searches that run.
    running: usize,
}

impl FolderSearches {
    /// Adds the search of a source, where it has one.
    pub(super) fn add(&mut self, source: SourceId, search: Option<MovedObjectSearch>) {
        self.pending.extend(search.map(|search| (source, search)));
    }

    /// Returns whether no search runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.running == 0
    }
}

impl Reconciler {
    /// Searches other folders for what would be deleted otherwise.
    pub(super) fn search_folders(&mut self) {
        let sources: Vec<SourceId> = self.sources.folder_searches.pending.keys().copied().collect();
        for source in sources {
            let Some(dropped) = self.engine.view().objects_to_search(source) else { continue };
            let Some(search) = self.sources.folder_searches.pending.remove(&source) else { continue };
            self.sources.folder_searches.running += 1;
            self.spawn(async move { LoopEvent::FoldersSearched(source, search.find(dropped).await) });
        }
    }

    pub(super) fn record_search(&mut self, source: SourceId, moved: MovedObjects) {
        self.sources.folder_searches.running -= 1;
        self.engine.handle(Input::Searched { source, moved }, Instant::now());
    }
}
