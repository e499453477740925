//! A read-only view of the engine: all that the status, `why`, the page, the records and whoever
//! carries decisions out may ask.
//!
//! **Invariant:** nothing here changes a fact, and nothing is decided here.

mod deletion;
mod orders;
mod rollouts;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::engine::state::Engine;
use crate::engine::{
    Authorship, HashCiphers, LiveObject, ObjectEntry, PriorSource, Reason, RefusedManifest, SourceId,
    SourceState, WatchScope,
};
use crate::object::{ContentHash, GroupKind, ObjectId, Revision};

/// A read-only view of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    engine: &'a Engine,
}

impl Engine {
    /// Returns what may be asked of it.
    pub(crate) fn view(&self) -> View<'_> {
        View { engine: self }
    }
}

/// Sources, objects and kinds.
impl<'a> View<'a> {
    /// Returns the manifests of a source whose objects another account has, each with its object.
    pub(crate) fn contested_manifests(
        self,
        source: SourceId,
    ) -> impl Iterator<Item = (&'a ObjectId, RefusedManifest)> {
        self.engine.contested_manifests(source)
    }

    /// Returns how many objects may not be written.
    pub(crate) fn count_denied(self) -> usize {
        self.engine.count_denied()
    }

    /// Returns the other source of this process that an object is decided on for, as seen from one
    /// that wants or has it. None where it is decided on for that one.
    pub(crate) fn prior_source(self, source: SourceId, id: &ObjectId) -> Option<PriorSource> {
        self.engine.prior_source(source, id)
    }

    /// Returns the objects of a source that somebody asks to leave alone, each with the word that
    /// asks.
    pub(crate) fn opt_outs(self, source: SourceId, now: Instant) -> BTreeMap<ObjectId, &'static str> {
        self.engine.opt_outs(source, now)
    }

    /// Returns whether a source may have an object.
    pub(crate) fn is_allowed(self, source: SourceId, id: &ObjectId) -> bool {
        self.engine.is_allowed(source, id)
    }

    /// Returns whether a source may have any object of a kind. Others are not listed for it, and
    /// keep it from nothing.
    pub(crate) fn is_kind_allowed(self, source: SourceId, kind: &GroupKind) -> bool {
        self.engine.is_kind_allowed(source, kind)
    }

    /// Returns the kinds of a source's inventory that are listed for it.
    pub(crate) fn listed_kinds(self, source: SourceId) -> impl Iterator<Item = &'a GroupKind> {
        self.engine.listed_kinds(source)
    }

    /// Returns the revisions of a source of which is remembered who made them, the newest first.
    pub(crate) fn commits_of(self, number: SourceId) -> Vec<(Revision, Authorship)> {
        self.engine.commits_of(number)
    }

    /// Returns the keys that the texts of records are written and read with.
    pub(crate) fn seals(self) -> &'a HashCiphers {
        self.engine.seals()
    }

    /// Returns the blocker of sealing and opening; none where both can be done.
    pub(crate) fn key_blocker(self) -> Option<Reason> {
        self.engine.key_blocker()
    }

    /// Returns whether the informers of a source watch a namespace.
    pub(crate) fn is_watching(self, source: SourceId, namespace: &str) -> bool {
        self.engine.is_watching(source, namespace)
    }

    /// Returns the source with whose rights an object is read and written. That is the one that
    /// wants it, else the one that has it, else the one that brought its content.
    pub(crate) fn acting_source(self, id: &ObjectId) -> Option<SourceId> {
        self.engine.acting_source(id)
    }

    /// Returns whether an informer has listed everything.
    pub(crate) fn is_listed(self, listing: &WatchScope) -> bool {
        self.engine.is_listed(listing)
    }

    /// Returns whether the informers of a source have not listed all of a kind yet, and nothing is
    /// known to be in their way.
    pub(crate) fn is_syncing(self, source: SourceId, kind: &GroupKind) -> bool {
        self.engine.is_syncing(source, kind)
    }

    /// Returns whether the informers of a source show all that there is of a kind.
    pub(crate) fn is_synced(self, source: SourceId, kind: &GroupKind) -> bool {
        self.engine.is_synced(source, kind)
    }

    /// Returns the contents of older revisions that decisions need, by revision.
    pub(crate) fn unread_contents(self) -> BTreeMap<Revision, Vec<(ObjectId, ContentHash)>> {
        self.engine.unread_contents()
    }

    /// Returns the revisions that must stay readable: the newest, and those of contents in force and
    /// of rollback targets.
    pub(crate) fn revisions(self) -> BTreeSet<Revision> {
        self.engine.revisions()
    }

    /// Returns the newest view of an object: by its informer, or by our own write or a lookup that
    /// the informer has not shown yet.
    pub(crate) fn live_object(self, id: &ObjectId) -> Option<&'a LiveObject> {
        self.engine.live_object(id)
    }

    /// Returns whether it is a Job that has ended with the desired content, and need not be there
    /// any more.
    pub(crate) fn has_ended(self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        self.engine.has_ended(id, entry)
    }

    /// Returns whether this is the content that is wanted of an object.
    pub(crate) fn is_target_hash(self, id: &ObjectId, hash: ContentHash) -> bool {
        self.engine.is_target_hash(id, hash)
    }

    /// Returns the source in whose inventory an object is.
    pub(crate) fn source_of(self, live: &LiveObject) -> Option<SourceId> {
        self.engine.source_of(live)
    }

    /// Returns the objects that a source names and does not get: its allow-list leaves them out, or
    /// another account has them.
    pub(crate) fn refused_manifests(self, source: SourceId) -> BTreeMap<&'a ObjectId, RefusedManifest> {
        self.engine.refused_manifests(source)
    }

    /// Returns whether it is not known yet if there is a key.
    pub(crate) fn is_reading_release_key(self) -> bool {
        self.engine.is_reading_release_key()
    }

    /// Returns a source by its number.
    pub(crate) fn source(self, id: SourceId) -> &'a SourceState {
        self.engine.source(id)
    }

    /// Returns the ids of all sources, in the order of [`sources`](Self::sources).
    pub(crate) fn source_ids(
        self,
    ) -> impl DoubleEndedIterator<Item = SourceId> + ExactSizeIterator + Clone + use<> {
        self.engine.source_ids()
    }

    /// Returns all sources, by number.
    pub(crate) fn sources(self) -> &'a [SourceState] {
        self.engine.sources()
    }

    /// Returns the facts about one object.
    pub(crate) fn entry(self, id: &ObjectId) -> Option<&'a ObjectEntry> {
        self.engine.entry(id)
    }

    /// Returns all entries, in no particular order.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'a ObjectId, &'a ObjectEntry)> {
        self.engine.entries()
    }

    /// Returns the informers' view of one object.
    pub(crate) fn informer_object(self, id: &ObjectId) -> Option<&'a LiveObject> {
        self.engine.informer_object(id)
    }

    /// Returns all that the informers show, in no particular order.
    pub(crate) fn informer_objects(self) -> impl Iterator<Item = (&'a ObjectId, &'a LiveObject)> {
        self.engine.informer_objects()
    }

    /// Returns the last number that a reading or an observation got. A reading gets one where it
    /// removes an object from the desired state of its source, or is the first of its source.
    /// Another source may have the object in a revision that has not been read yet.
    pub(crate) fn last_observation_number(self) -> u64 {
        self.engine.last_observation_number()
    }
}
