//! The store of a source, opened once for the looks and the writes of one observation.
//!
//! To open it costs more than each of them: its configuration, its owner, its packs and the ends of
//! its history are looked at.

use std::path::Path;

use git2::{ErrorCode, ObjectType, Oid, Repository};

use super::complete_revisions;
use super::error::SourceError;
use super::loose_objects::LooseObjects;
use super::object_stores::{self, ObjectDatabase};
use super::state_lock::StateLock;
use super::store::RevisionStore;
use crate::object::Revision;

/// A store that is open. Short-lived on purpose: a handle that is kept holds every deleted pack
/// open.
pub(super) struct OpenStore {
    store: RevisionStore,
    repository: Repository,
}

impl RevisionStore {
    /// Opens it for several looks and writes.
    pub(super) fn open(&self) -> Result<OpenStore, SourceError> {
        Ok(OpenStore::new(self.clone(), self.repository()?))
    }

    /// Returns the commit that a reference leads to; none where it is missing or leads to no
    /// commit.
    pub(super) fn reference_target(&self, name: &str) -> Result<Option<Revision>, SourceError> {
        self.open()?.reference_target(name)
    }

    /// Points a reference at a commit.
    pub(super) fn set_reference(
        &self,
        lock: &StateLock,
        name: &str,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        self.open()?.set_reference(lock, name, revision)
    }

    /// Pins a revision that is here.
    pub(super) fn pin(&self, lock: &StateLock, revision: &Revision) -> Result<(), SourceError> {
        self.open()?.pin(lock, revision)
    }

    /// Does the same as [`OpenStore::has_revision`]; false where the store cannot be opened.
    pub(super) fn has_revision(&self, revision: &Revision) -> bool {
        self.open().is_ok_and(|opened| opened.has_revision(revision))
    }
}

impl OpenStore {
    /// Returns a store with the repository in it, which was opened now.
    pub(super) const fn new(store: RevisionStore, repository: Repository) -> Self {
        Self { store, repository }
    }

    /// Returns the commit that a reference leads to; none where it is missing or leads to no
    /// commit.
    pub(super) fn reference_target(&self, name: &str) -> Result<Option<Revision>, SourceError> {
        match self.repository.find_reference(name) {
            Ok(reference) => {
                let commit = object_stores::referenced_commit(&self.repository, &reference).ok();
                Ok(commit.map(|commit| Revision::new(&commit.id().to_string())))
            }
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(self.store.classify_error(&error)),
        }
    }

    /// Returns whether a revision is pinned, and its commit is here.
    pub(super) fn is_pinned(&self, revision: &Revision) -> Result<bool, SourceError> {
        Ok(self.reference_target(&RevisionStore::pin_name(revision))?.is_some())
    }

    /// Points a reference at a commit.
    pub(super) fn set_reference(
        &self,
        _: &StateLock,
        name: &str,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        let done = Oid::from_str(revision.as_str())
            .and_then(|id| self.repository.reference(name, id, true, "").map(drop));
        done.map_err(|error| self.store.classify_error(&error))
    }

    /// Pins a revision that is here.
    pub(super) fn pin(&self, lock: &StateLock, revision: &Revision) -> Result<(), SourceError> {
        self.set_reference(lock, &RevisionStore::pin_name(revision), revision)
    }

    /// Pins a revision of which every object is here, but nothing of its history. A process that is
    /// killed before the pin leaves objects that nothing names.
    pub(super) fn pin_without_history(
        &self,
        lock: &StateLock,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        self.store.cut_history(lock, revision)?;
        self.pin(lock, revision)
    }

    /// Returns whether every object of a revision is here; contents are not read. One that was
    /// found complete counts as such as long as its commit is here. A pack that came since the
    /// store was opened may not be seen.
    pub(super) fn has_revision(&self, revision: &Revision) -> bool {
        self.try_complete(revision, &mut |_, _| false)
    }

    /// Copies the missing objects of a revision that lie in files of their own in a folder. Returns
    /// whether every object of it is here then.
    pub(super) fn try_complete_from_files(&self, revision: &Revision, objects: &Path) -> bool {
        let Some(mut loose) = LooseObjects::open(objects) else { return false };
        if self.store.remaining_quota().is_err() {
            return false;
        }
        let Ok(mut writer) = self.store.writer(&self.repository) else { return false };
        self.try_complete(revision, &mut |id, kind| loose.try_copy(id, kind, &mut writer))
    }

    fn try_complete(&self, revision: &Revision, supply: &mut dyn FnMut(Oid, ObjectType) -> bool) -> bool {
        let Ok(commit) = Oid::from_str(revision.as_str()) else { return false };
        let Ok(odb) = ObjectDatabase::of(&self.repository) else { return false };
        let complete = self.store.complete_revisions();
        if complete.contains(commit) && odb.exists(commit) {
            return true;
        }
        let base = complete.last(&odb);
        let is_complete = complete_revisions::is_complete(&self.repository, commit, base, supply);
        if is_complete {
            complete.add(commit);
        }
        is_complete
    }
}
