//! Makes the store of a source fit for use.

use super::error::SourceError;
use super::open_store::OpenStore;
use super::origin::RevisionOrigin;
use super::reader::RevisionReader;
use super::source::Source;
use super::state_lock::StateLock;
use super::store::RevisionStore;
use crate::object::Revision;

impl Source {
    /// Takes the store's lock and makes the store fit for use. At the first observation of a
    /// process, and when something could not be read, the whole store is checked.
    pub(super) async fn prepare_store(&self) -> Result<StateLock, SourceError> {
        self.open_store().await.map(|(lock, _)| lock)
    }

    /// Does the same as [`Source::prepare_store`], and returns the opened store too.
    pub(super) async fn open_store(&self) -> Result<(StateLock, OpenStore), SourceError> {
        let lock = self.store.lock().await?;
        Box::pin(self.store.migrate_legacy_store(&lock)).await?;
        let (store, reader, current) = (self.store.clone(), self.reader.clone(), self.current.clone());
        let awaited = matches!(self.origin, RevisionOrigin::Awaited(_));
        let (first, suspicion) = (!self.observed_once && !awaited, reader.take_store_check());
        let prepare = move || {
            let mut opened = store.prepare(&lock)?;
            let is_complete = |revision: &Revision| awaited || reader.is_complete(revision);
            let sound = (!first && !suspicion) || store.is_sound();
            let readable = || {
                current.as_ref().is_none_or(is_complete) && (awaited || has_readable_pins(&store, &reader))
            };
            if !sound || (suspicion && !readable()) {
                store.replace(&lock, "objects are missing or cannot be read")?;
                reader.take_store_check();
                opened = store.open()?;
            }
            if suspicion {
                store.discard_caches(&lock)?;
            }
            Ok((lock, opened))
        };
        let (lock, mut opened) = self.run_blocking(prepare).await?;
        // A pack that this process has open may be another one on the disk by now.
        if suspicion && Box::pin(self.store.is_damaged_for_git(&lock)).await {
            self.store.replace(&lock, "git cannot read it")?;
            opened = self.store.open()?;
        }
        Ok((lock, opened))
    }
}

/// Returns whether no pinned revision has anything missing or damaged. One may hold nothing that is
/// of use here.
fn has_readable_pins(store: &RevisionStore, reader: &RevisionReader) -> bool {
    let is_damaged = |revision: &Revision| {
        matches!(
            reader.read_through(revision),
            Err(SourceError::Damaged { .. } | SourceError::Unknown { .. })
        )
    };
    store.pinned_revisions().is_ok_and(|pinned| !pinned.iter().any(is_damaged))
}
