//! The bytes that a store takes on disk.
//!
//! Counting takes a call to the system for each file, and most writes are small. So between two
//! counts the bytes are summed up of what is written.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use git2::{ObjectType, Odb, OdbLookupFlags, Oid};
use walkdir::WalkDir;

use super::tree_builder::ObjectSink;

/// The bytes that may be written before the files are counted again: others may write too.
const MAX_UNCOUNTED_BYTES: u64 = 16 << 20;

/// The bytes that the smallest file takes.
const BLOCK_BYTES: u64 = 4 << 10;

/// The bytes that the files of a store take, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct StoreUsage(Mutex<Option<Estimate>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    /// The bytes at the last count.
    counted: u64,
    /// The bytes that were written since.
    written: u64,
}

impl StoreUsage {
    /// Returns the bytes that they take at most; none where they are to be counted.
    pub(super) fn estimated_bytes(&self) -> Option<u64> {
        let estimate = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        (estimate.written < MAX_UNCOUNTED_BYTES).then(|| estimate.counted.saturating_add(estimate.written))
    }

    /// Notes the bytes that all files take now.
    pub(super) fn set_counted(&self, bytes: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Estimate { counted: bytes, written: 0 });
    }

    /// Notes bytes that were written since: of one object, or of several files.
    pub(super) fn note_written(&self, bytes: u64) {
        if let Some(estimate) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let blocks = bytes.div_ceil(BLOCK_BYTES).max(1);
            estimate.written = estimate.written.saturating_add(blocks.saturating_mul(BLOCK_BYTES));
        }
    }

    /// Forgets the count: files have gone, or were packed anew.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A writer of objects that notes what they take.
pub(super) struct ObjectWriter<'a> {
    odb: Odb<'a>,
    usage: Arc<StoreUsage>,
}

impl<'a> ObjectWriter<'a> {
    pub(super) const fn new(odb: Odb<'a>, usage: Arc<StoreUsage>) -> Self {
        Self { odb, usage }
    }

    /// Returns whether an object is here.
    pub(super) fn exists(&self, id: Oid) -> bool {
        self.odb.exists(id)
    }

    /// Returns whether an object is here, unless it came in a pack since the store was opened. Does
    /// not look for new packs, as [`ObjectWriter::exists`] does for each object that is not here.
    pub(super) fn is_known(&self, id: Oid) -> bool {
        self.odb.exists_ext(id, OdbLookupFlags::NO_REFRESH)
    }
}

impl ObjectSink for ObjectWriter<'_> {
    fn put(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, git2::Error> {
        self.usage.note_written(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.odb.write(kind, bytes)
    }
}

/// Returns the bytes that the files below a folder take on disk.
pub(super) fn folder_bytes(folder: &Path) -> u64 {
    let entries = WalkDir::new(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

/// Returns the bytes that the packs of a repository take on disk. They are few.
pub(super) fn pack_bytes(repository: &Path) -> u64 {
    folder_bytes(&repository.join("objects/pack"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_knows_what_it_has_written() {
        let dir = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(dir.path()).unwrap();
        let mut writer = ObjectWriter::new(repository.odb().unwrap(), Arc::default());
        let id = Oid::hash_object(ObjectType::Blob, b"x").unwrap();
        assert!(!writer.is_known(id));
        assert_eq!(writer.put(ObjectType::Blob, b"x").unwrap(), id);
        assert!(writer.is_known(id));
    }

    #[test]
    fn what_is_written_is_summed_up_until_it_is_much() {
        let usage = StoreUsage::default();
        usage.note_written(1);
        assert_eq!(usage.estimated_bytes(), None, "never counted");
        usage.set_counted(1_000_000);
        usage.note_written(1);
        usage.note_written(BLOCK_BYTES + 1);
        assert_eq!(usage.estimated_bytes(), Some(1_000_000 + 3 * BLOCK_BYTES));
        usage.note_written(MAX_UNCOUNTED_BYTES);
        assert_eq!(usage.estimated_bytes(), None, "to be counted again");
        usage.set_counted(5);
        assert_eq!(usage.estimated_bytes(), Some(5));
        usage.forget();
        assert_eq!(usage.estimated_bytes(), None, "forgotten");
    }
}
