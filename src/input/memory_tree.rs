//! A revision in memory, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::paths;
use super::tree::FileTree;
use crate::source::{BlobId, FileDefect, SourceError, TreeEntry, TreeFile, TreeLink};

/// A revision in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryTree {
    entries: BTreeMap<String, TreeEntry>,
    bytes: BTreeMap<BlobId, Arc<[u8]>>,
    reads: Arc<AtomicUsize>,
}

impl MemoryTree {
    /// Returns a revision without files.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    #[must_use]
    pub(crate) fn file(mut self, path: &str, text: impl AsRef<[u8]>) -> Self {
        let bytes = text.as_ref();
        let (blob, size) = (BlobId::of(bytes), bytes.len() as u64);
        self.bytes.insert(blob, bytes.into());
        self.put(path, TreeEntry::File(TreeFile { blob, size, is_executable: false }))
    }

    /// Adds a symbolic link.
    #[must_use]
    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        let blob = BlobId::of(target.as_bytes());
        self.put(path, TreeEntry::Link(TreeLink { blob, target: target.to_owned() }))
    }

    /// Adds something that is not read.
    #[must_use]
    pub(crate) fn defect(self, path: &str, defect: FileDefect) -> Self {
        self.put(path, TreeEntry::Defect(defect))
    }

    /// Takes away what is at a path.
    #[must_use]
    pub(crate) fn without(mut self, path: &str) -> Self {
        self.entries.remove(path);
        self
    }

    /// Returns how often files were read: many at once count as one.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    fn bytes(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError> {
        let lost = || SourceError::Missing { shown_location: blob.to_string() };
        self.bytes.get(&blob).cloned().ok_or_else(lost)
    }

    fn put(mut self, path: &str, entry: TreeEntry) -> Self {
        self.entries.insert(path.to_owned(), entry);
        self
    }
}

impl FileTree for MemoryTree {
    fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        if path.is_empty() {
            return Ok(Some(TreeEntry::Folder));
        }
        let below = format!("{path}/");
        let mut after = self.entries.range(below.clone()..).map(|(path, _)| path);
        let is_folder = after.next().is_some_and(|first| first.starts_with(&below));
        let entry = self.entries.get(path).cloned();
        Ok(entry.or(is_folder.then_some(TreeEntry::Folder)))
    }

    fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError> {
        if self.entry(folder)? != Some(TreeEntry::Folder) {
            return Ok(None);
        }
        let below = paths::append(folder, "");
        let inside = self.entries.keys().filter_map(|path| path.strip_prefix(&below));
        let names: BTreeSet<&str> = inside.filter_map(|rest| rest.split('/').next()).collect();
        Ok(Some(names.into_iter().map(str::to_owned).collect()))
    }

    fn read(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes(blob)
    }

    fn read_all(&self, blobs: &[BlobId]) -> Result<Vec<Arc<[u8]>>, SourceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        blobs.iter().map(|blob| self.bytes(*blob)).collect()
    }
}
