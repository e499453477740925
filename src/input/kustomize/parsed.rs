//! The kustomizations and plugin configurations that were read, kept for the next revision.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::source::BlobId;

use super::file::Kustomization;
use super::plugin::PluginConfig;

/// The bytes of memory that parsed files take while a revision is read. A real kustomization takes
/// some 2,000, so thousands fit.
const MAX_READ_BYTES: usize = 16 << 20;
/// The bytes of memory that they take between two revisions.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// The parsed files, by content: each is read once, however many files and roots share it.
///
/// It has contents of the newest revision alone, as far as [`ParsedFiles::forget_changes`] is
/// told what a next one changes. Beyond the bound it keeps nothing more: then a content is read
/// once more. Between two revisions it keeps little, and most likely what many roots share: a
/// commit that touches one root has few files to read.
#[derive(Debug, Default)]
pub struct ParsedFiles {
    kustomizations: HashMap<BlobId, ParsedFile<Kustomization>>,
    plugins: HashMap<BlobId, ParsedFile<PluginConfig>>,
    /// The bytes of memory that all take.
    bytes: usize,
}

/// One parsed file.
#[derive(Debug)]
struct ParsedFile<T> {
    value: Arc<T>,
    /// The file that was read.
    path: Arc<str>,
    /// The bytes of memory that it takes.
    bytes: usize,
    /// The number of times that it was asked for.
    uses: u32,
}

impl ParsedFiles {
    /// Returns the kustomization of a content that was read before.
    pub fn kustomization(&mut self, blob: BlobId) -> Option<Arc<Kustomization>> {
        self.kustomizations.get_mut(&blob).map(ParsedFile::used_value)
    }

    /// Reads the kustomization in a file and keeps it.
    pub fn add_kustomization(&mut self, path: &str, blob: BlobId, bytes: &[u8]) -> Arc<Kustomization> {
        let value = Arc::new(Kustomization::read(bytes));
        let read = ParsedFile::of(&value, path, value.memory_size(bytes.len()));
        keep(&mut self.kustomizations, &mut self.bytes, blob, read);
        value
    }

    pub(super) fn plugin(&mut self, blob: BlobId) -> Option<Arc<PluginConfig>> {
        self.plugins.get_mut(&blob).map(ParsedFile::used_value)
    }

    pub(super) fn add_plugin(&mut self, path: &str, blob: BlobId, bytes: &[u8]) -> Arc<PluginConfig> {
        let value = Arc::new(PluginConfig::read(bytes));
        let read = ParsedFile::of(&value, path, value.memory_size(bytes.len()));
        keep(&mut self.plugins, &mut self.bytes, blob, read);
        value
    }

    /// Forgets what was read of files that have changed since, or are gone.
    fn drop_files<'p>(&mut self, changed: impl IntoIterator<Item = &'p str>) {
        let changed: BTreeSet<&str> = changed.into_iter().collect();
        self.kustomizations.retain(|_, read| !changed.contains(&*read.path));
        self.plugins.retain(|_, read| !changed.contains(&*read.path));
        self.bytes = self.measures().map(|(_, bytes)| bytes).sum();
    }

    /// Returns how often each was asked for, and the memory that it takes.
    fn measures(&self) -> impl Iterator<Item = (u32, usize)> {
        let kustomizations = self.kustomizations.values().map(|read| (read.uses, read.bytes));
        kustomizations.chain(self.plugins.values().map(|read| (read.uses, read.bytes)))
    }

    /// Forgets what is more than a next revision needs at hand: what was asked for least.
    pub fn shrink(&mut self) {
        if self.bytes <= MAX_KEPT_BYTES {
            return;
        }
        let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
        for (uses, bytes) in self.measures() {
            *groups.entry(uses).or_default() += bytes;
        }
        let mut kept = 0;
        let fits = |(_, bytes): &(&u32, &usize)| {
            kept += **bytes;
            kept <= MAX_KEPT_BYTES
        };
        let least = groups.iter().rev().take_while(fits).map(|(uses, _)| *uses).last();
        let is_kept = |uses: u32| least.is_some_and(|least| uses >= least);
        self.kustomizations.retain(|_, read| is_kept(read.uses));
        self.plugins.retain(|_, read| is_kept(read.uses));
        self.kustomizations.shrink_to_fit();
        self.plugins.shrink_to_fit();
        self.bytes = self.measures().map(|(_, bytes)| bytes).sum();
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
    fn of(value: &Arc<T>, path: &str, bytes: usize) -> Self {
        // The key, and what the two counted pointers take.
        let bytes = bytes + path.len() + size_of::<(BlobId, Self)>() + 4 * size_of::<usize>();
        Self { value: value.clone(), path: path.into(), bytes, uses: 1 }
    }

    fn used_value(&mut self) -> Arc<T> {
        self.uses = self.uses.saturating_add(1);
        self.value.clone()
    }
}

/// Keeps what was read, where it fits.
fn keep<T>(all: &mut HashMap<BlobId, ParsedFile<T>>, kept: &mut usize, blob: BlobId, read: ParsedFile<T>) {
    if *kept + read.bytes <= MAX_READ_BYTES {
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
        let mut other = ParsedFiles::default();
        add(&mut other, "b/kustomization.yaml", "namePrefix: b-\n");
        assert_eq!((parsed.len(), parsed.bytes), (1, other.bytes));
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
        let text = |number: u32| format!("# {number} {}\nnamePrefix: a-\n", "x".repeat(MAX_READ_BYTES / 8));
        (0..10).for_each(|number| add(&mut parsed, &number.to_string(), &text(number)));
        assert_eq!(parsed.len(), 3);
        assert!(parsed.bytes <= MAX_READ_BYTES);
    }

    #[test]
    fn between_two_revisions_little_is_kept_and_what_most_roots_share() {
        let mut parsed = ParsedFiles::default();
        let base = "namePrefix: base-\nresources: [a.yaml]\n";
        let base_id = BlobId::of(base.as_bytes());
        add(&mut parsed, "base/kustomization.yaml", base);
        for number in 0..4_000 {
            let names: Vec<String> = (0..10).map(|file| format!("web-{number}-{file}.yaml")).collect();
            let text = format!("resources: [../../base, {}]\n", names.join(", "));
            add(&mut parsed, &format!("roots/{number}/kustomization.yaml"), &text);
            assert!(parsed.kustomization(base_id).is_some());
        }
        // Each takes more than its text does.
        assert!(parsed.bytes > 4_000 * 500 && parsed.len() == 4_001, "{}", parsed.bytes);
        parsed.shrink();
        assert!(parsed.bytes <= MAX_KEPT_BYTES && parsed.kustomization(base_id).is_some());
        let kept = parsed.bytes;
        parsed.shrink();
        assert_eq!(parsed.bytes, kept);
        // Each that fits is kept, however rarely it was read.
        add(&mut parsed, "a/kustomization.yaml", "namePrefix: a-\n");
        parsed.shrink();
        assert_eq!(parsed.len(), 2);
    }
}
