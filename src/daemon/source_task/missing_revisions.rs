//! Older revisions that are not in the store: fetched from the source, once that can be read.
//!
//! A revision that cannot be read now is not lost. A new state directory holds only the newest
//! revision of a remote, and a repository may be away for a time. Only a revision that the source
//! itself no longer has is reported as gone.

use super::super::loop_event::LoopEvent;
use super::fact_reader::RevisionAccess;
use super::{ContentReader, SourceTask, older_revision};
use crate::engine::{ContentRef, UndoRequest};
use crate::object::{ContentHash, ErrorClass, ObjectId, Revision};
use crate::source::{RevisionReader, SourceError};

/// Contents of one revision.
#[derive(Debug)]
pub(super) struct WantedContents {
    pub(super) revision: Revision,
    pub(super) contents: Vec<(ObjectId, ContentHash)>,
}

/// The past contents of revisions that are not here.
pub(super) type MissingContents = Vec<WantedContents>;

/// The result of a lookup.
pub(super) enum ContentLookup {
    /// An answer.
    Done(Box<LoopEvent>),
    /// The revision cannot be read here and now.
    Missing(WantedContents),
    /// The revision of an undo is not here yet.
    Unfound(Box<UndoRequest>),
}

impl ContentReader {
    pub(super) async fn read_contents(
        self,
        revision: Revision,
        contents: Vec<(ObjectId, ContentHash)>,
    ) -> ContentLookup {
        let wanted = WantedContents { revision, contents };
        let (wanted, found) = self.look_up(wanted).await;
        found.map_or(ContentLookup::Missing(wanted), |found| {
            ContentLookup::Done(Box::new(LoopEvent::ContentsRead(found)))
        })
    }

    pub(super) async fn look_up(
        self,
        wanted: WantedContents,
    ) -> (WantedContents, Result<older_revision::FoundContents, SourceError>) {
        let Self { reader, settings, scopes, .. } = self;
        let (revision, contents) = (wanted.revision.clone(), wanted.contents.clone());
        let read = move |reader: &RevisionReader| {
            older_revision::read_contents(reader, &settings, scopes, &revision, &contents)
        };
        let found = reader.read_bounded(read).await;
        (wanted, found)
    }
}

impl SourceTask {
    /// Looks up again what was missing, with whatever has to be fetched for that. Nothing is fetched
    /// while a remote cannot be read. A repository on this host may hold what is in force beside a
    /// newest commit that cannot be read.
    pub(super) async fn fetch_missing(&mut self) -> Vec<LoopEvent> {
        let is_read = self.reported.is_some() && self.last_error.is_none();
        if !is_read && !self.source.is_on_host() {
            return Vec::new();
        }
        let mut events = Vec::new();
        for wanted in std::mem::take(&mut self.missing) {
            self.heartbeat.record(super::MAX_OPERATION_DURATION);
            if let Err(error) =
                self.facts.prepare_revision(&mut self.source, &wanted.revision, RevisionAccess::Fetched).await
                && (!is_read || error.class() == ErrorClass::Transient)
            {
                tracing::debug!(source = self.source.name(), %error, "an older revision cannot be had now");
                self.missing.push(wanted);
                continue;
            }
            let (wanted, found) = self.content_reader().look_up(wanted).await;
            if found.as_ref().is_err_and(|error| !is_read || matches!(error, SourceError::Silent { .. })) {
                self.missing.push(wanted);
                continue;
            }
            let revision = wanted.revision;
            events.push(LoopEvent::ContentsRead(found.unwrap_or_else(|error| {
                tracing::warn!(%revision, "an older revision cannot be read: {error}");
                let none = |(id, hash)| (id, ContentRef { hash, revision: revision.clone() }, None);
                wanted.contents.into_iter().map(none).collect()
            })));
        }
        events
    }
}
