//! The repository in which the packs of a remote arrive.
//!
//! **Invariant:** no object of it is read in this process.
//!
//! A server decides by the bytes of its packs what a reader of their deltas does. git's own
//! program computes each object once as it receives one: what has no end is refused there. A delta
//! that needs much memory for a moment may pass, and would need it in each later reader. So all
//! that is followed is copied out of here by [`HostObjects`](super::host_objects::HostObjects).
//!
//! It stays, so that a fetch brings what is new alone. It is a cache: whenever it is in doubt, it
//! is removed, and the next fetch makes it anew.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use git2::Oid;

use super::error::SourceError;
use super::followed_repository::RepositoryFolders;
use super::state_lock::StateLock;
use super::store::{RevisionStore, remove_folder};

/// The arrived objects of one source, and the references that led to them.
#[derive(Debug)]
pub(super) struct IncomingRepository(RevisionStore);

impl IncomingRepository {
    /// Returns the one beside the objects of a store. It need not be there.
    pub(super) fn of(store: &RevisionStore) -> Self {
        Self(store.incoming_store())
    }

    /// Returns the folder of the repository.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes it where it is missing, and sweeps what killed processes left.
    pub(super) fn prepare(&self, lock: &StateLock) -> Result<(), SourceError> {
        if self.0.prepare_as_it_is(lock).is_ok() {
            return Ok(());
        }
        self.discard(lock)?;
        self.0.prepare_as_it_is(lock)
    }

    /// Removes it.
    pub(super) fn discard(&self, _: &StateLock) -> Result<(), SourceError> {
        let removed = match remove_folder(self.path()) {
            Err(error) if error.kind() == ErrorKind::NotADirectory => fs::remove_file(self.path()),
            removed => removed,
        };
        let failed =
            |error| SourceError::State { path: self.path().to_owned(), doing: "cannot remove", error };
        removed.map_err(failed)
    }

    /// Returns the id of what a fetch brought last: a commit, or a tag of one. None where nothing
    /// was fetched.
    pub(super) fn target(&self, reference: &str) -> Option<Oid> {
        self.0.repository().ok()?.find_reference(reference).ok()?.target()
    }

    /// Returns whether nothing of the fetched history is cut off.
    pub(super) fn has_complete_history(&self) -> bool {
        self.0.repository().is_ok_and(|repository| !repository.is_shallow())
    }

    /// Returns where its objects are.
    pub(super) fn folders(&self) -> Result<RepositoryFolders, SourceError> {
        let found = RepositoryFolders::find(self.path());
        found.map_err(|error| error.into_source_error(&self.path().display().to_string()))
    }

    /// Packs what was fetched last, if enough has gathered. Where that fails, the next fetch makes it
    /// anew.
    pub(super) async fn maintain(&self, lock: &StateLock) {
        if self.0.is_maintenance_due()
            && !self.0.try_maintain_now(lock).await
            && let Err(error) = self.discard(lock)
        {
            tracing::warn!(store = %self.path().display(), "the repository of fetched packs cannot be removed: {error}");
        }
    }
}
