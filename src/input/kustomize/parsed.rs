//! The kustomizations and plugin configurations that were read, kept for the next revision.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::source::BlobId;

use super::file::Kustomization;
use super::plugin::PluginConfig;

/// The bytes of all texts that are kept. A kustomization in memory takes up to some twenty
/// times as much. Real kustomizations have some 500 bytes, so thousands fit.
const MAX_KEPT_BYTES: usize = 8 << 20;

/// The parsed files, by content: each is read once, however many files and roots share it.
///
/// It has contents of the newest revision alone, as far as [`ParsedFiles::forget_changes`] is
/// told what a next one changes. Beyond the bound it keeps nothing more: then a content is read
/// once more.
#[derive(Debug, Default)]
pub struct ParsedFiles {
    kustomizations: HashMap<BlobId, ParsedFile<Kustomization>>,
    plugins: HashMap<BlobId, ParsedFile<PluginConfig>>,
    /// The bytes of the texts of all.
    bytes: usize,
}

/// One parsed file.
#[derive(Debug)]
struct ParsedFile<T> {
    value: Arc<T>,
    /// The file that was read.
    path: Arc<str>,
    /// The bytes of its text.
    bytes: usize,
}

impl ParsedFiles {
    /// Returns the kustomization of a content that was read before.
    pub fn kustomization(&self, blob: BlobId) -> Option<Arc<Kustomization>> {
        self.kustomizations.get(&blob).map(|read| read.value.clone())
    }

    /// Reads the kustomization in a file and keeps it.
    pub fn add_kustomization(&mut self, path: &str, blob: BlobId, bytes: &[u8]) -> Arc<Kustomization> {
        let value = Arc::new(Kustomization::read(bytes));
        keep(&mut self.kustomizations, &mut self.bytes, blob, ParsedFile::of(&value, path, bytes));
        value
    }

    pub(super) fn plugin(&self, blob: BlobId) -> Option<Arc<PluginConfig>> {
        self.plugins.get(&blob).map(|read| read.value.clone())
    }

    pub(super) fn add_plugin(&mut self, path: &str, blob: BlobId, bytes: &[u8]) -> Arc<PluginConfig> {
        let value = Arc::new(PluginConfig::read(bytes));
        keep(&mut self.plugins, &mut self.bytes, blob, ParsedFile::of(&value, path, bytes));
        value
    }

    /// Forgets what was read of files that have changed since, or are gone.
    fn drop_files<'p>(&mut self, changed: impl IntoIterator<Item = &'p str>) {
        let changed: BTreeSet<&str> = changed.into_iter().collect();
        self.kustomizations.retain(|_, read| !changed.contains(&*read.path));
        self.plugins.retain(|_, read| !changed.contains(&*read.path));
        let kustomizations = self.kustomizations.values().map(|read| read.bytes);
        self.bytes = kustomizations.chain(self.plugins.values().map(|read| read.bytes)).sum();
    }

    /// Forgets what the next revision may not have: all of it where the changes are not known.
    pub fn forget_changes(&mut self, changed: Option<&[String]>) {
        match changed {
            Some(changed) => self.drop_files(changed.iter().map(String::as_str)),
            None => *self = Self::default(),
        }
    }

    /// Returns how many contents are kept.
    pub fn len(&self) -> usize {
        self.kustomizations.len() + self.plugins.len()
    }

    /// Returns whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> ParsedFile<T> {
    fn of(value: &Arc<T>, path: &str, bytes: &[u8]) -> Self {
        Self { value: value.clone(), path: path.into(), bytes: bytes.len() }
    }
}

/// Keeps what was read, where it fits.
fn keep<T>(all: &mut HashMap<BlobId, ParsedFile<T>>, kept: &mut usize, blob: BlobId, read: ParsedFile<T>) {
    if *kept + read.bytes <= MAX_KEPT_BYTES {
        *kept += read.bytes;
        all.insert(blob, read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(parsed: &mut ParsedFiles, path: &str, text: &str) {
        let blob = BlobId::of(text.as_bytes());
        assert!(parsed.kustomization(blob).is_none(), "{path}");
        parsed.add_kustomization(path, blob, text.as_bytes());
    }

    #[test]
    fn the_contents_of_files_that_changed_are_forgotten() {
        let mut parsed = ParsedFiles::default();
        add(&mut parsed, "a/kustomization.yaml", "namePrefix: a-\n");
        add(&mut parsed, "b/kustomization.yaml", "namePrefix: b-\n");
        parsed.add_plugin("b/plugin.yaml", BlobId::of(b"c"), b"c");
        parsed.drop_files(["a/kustomization.yaml", "b/plugin.yaml", "c"]);
        assert_eq!((parsed.len(), parsed.bytes), (1, 15));
        assert!(parsed.kustomization(BlobId::of(b"namePrefix: b-\n")).is_some());
        for commit in 0..1_000 {
            parsed.drop_files(["a/kustomization.yaml"]);
            add(&mut parsed, "a/kustomization.yaml", &format!("images: [{{name: a, newTag: {commit}}}]\n"));
        }
        assert_eq!(parsed.len(), 2);
    }

    #[test]
    fn no_more_is_kept_than_the_bound() {
        let mut parsed = ParsedFiles::default();
        let text = |number: u32| format!("# {number} {}\nnamePrefix: a-\n", "x".repeat(MAX_KEPT_BYTES / 4));
        (0..10).for_each(|number| add(&mut parsed, &number.to_string(), &text(number)));
        assert_eq!(parsed.len(), 3);
        assert!(parsed.bytes <= MAX_KEPT_BYTES);
    }
}
