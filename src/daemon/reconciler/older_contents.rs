//! Contents of older revisions: the requests for those that decisions need, and their answers.
//!
//! A turn has them requested by `request_contents`. The task of a source looks them up
//! (`src/daemon/source_task/older_revision.rs`), and answers by `LoopEvent::ContentsRead`.

use std::collections::BTreeMap;
use std::time::Instant;

use super::super::source_task::{SourceTaskRequest, WantedContent};
use super::Reconciler;
use crate::engine::{ContentRef, Input, ObjectOwner, SharedDesiredObject, SourceId};
use crate::object::ObjectId;

impl Reconciler {
    /// Asks the tasks of sources for older contents that decisions need.
    pub(super) fn request_contents(&mut self) {
        if self.sources.attempted.is_empty() {
            return;
        }
        for (revision, wanted) in self.engine.view().unread_contents() {
            // Each answer takes a reading of the whole revision: what comes up meanwhile is asked
            // together.
            if wanted.iter().any(|(id, _)| self.sources.reading_contents.contains(id)) {
                continue;
            }
            // Several sources may follow the same repository.
            let mut by_source: BTreeMap<Option<SourceId>, Vec<WantedContent>> = BTreeMap::new();
            for (id, hash) in wanted {
                let source = self.accepted_from(&id);
                let former_inventory = self.engine.view().former_inventory_of(&id);
                by_source.entry(source).or_default().push(WantedContent { id, hash, former_inventory });
            }
            // Most contents turn out to be those that the newest revision wants, once that is read.
            let is_read = |source: &Option<SourceId>| {
                source.is_none_or(|source| self.sources.attempted.contains(&source))
            };
            by_source.retain(|source, _| is_read(source));
            for (source, wanted) in by_source {
                match source.and_then(|source| self.sources.requests[source].as_ref()) {
                    Some(source_task) => {
                        if source_task
                            .try_send(SourceTaskRequest::ReadContents(revision.clone(), wanted.clone()))
                            .is_ok()
                        {
                            self.sources.reading_contents.extend(wanted.into_iter().map(|wanted| wanted.id));
                        }
                    }
                    // A single reading has no history: what was accepted before is not known.
                    None => {
                        for WantedContent { id, hash, .. } in wanted {
                            let release = ContentRef { hash, revision: revision.clone() };
                            let content = Input::OlderContent { id, release, content: None };
                            self.engine.handle(content, Instant::now());
                        }
                    }
                }
            }
        }
    }

    /// Returns the source that brought the accepted content of an object. It is the one whose
    /// inventory rejects its content, else the one that owns the object, else the one that wants it.
    /// None for an object of another process' source: its revisions are of another repository.
    fn accepted_from(&self, id: &ObjectId) -> Option<SourceId> {
        // Known from the inventory, before anything is listed or read.
        if let Some(source) = self.engine.view().rejecting_source(id) {
            return Some(source);
        }
        let wanting = || self.engine.view().entry(id)?.targets.first().map(|(source, _)| *source);
        match self.engine.view().live_object(id) {
            Some(live) if matches!(live.owner, ObjectOwner::Ours(_)) => self.engine.view().source_of(live),
            _ => wanting(),
        }
    }

    /// Hands older contents to the engine, or that they cannot be had.
    pub(super) fn record_contents(
        &mut self,
        contents: Vec<(ObjectId, ContentRef, Option<SharedDesiredObject>)>,
    ) {
        for (id, release, content) in contents {
            self.sources.reading_contents.remove(&id);
            self.engine.handle(Input::OlderContent { id, release, content }, Instant::now());
        }
    }
}
