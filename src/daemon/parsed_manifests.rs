//! Files that a single pass has parsed, for as long as it runs.
//!
//! It needs most of their objects once more, to compare or to write them.
//!
//! **Invariant:** holds no Secret, and no more than the bound. A daemon keeps nothing, as memory
//! that lies between what it keeps would stay its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::parse_ahead::estimate_bytes;
use crate::manifest::ManifestItem;
use crate::source::BlobId;

/// The bytes of the files that are kept. As trees they take some ten times as much.
const MAX_PARSED_BYTES: usize = 2 << 20;

/// The bytes that their trees may take, about. Aliases make megabytes of a small file.
const MAX_PARSED_TREE_BYTES: usize = 32 << 20;

/// The parsed files. Cheap to clone: all clones are the same ones. By default none is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedManifests(Option<Arc<Mutex<KeptFiles>>>);

#[derive(Debug, Default)]
struct KeptFiles {
    files: HashMap<BlobId, Arc<Vec<ManifestItem>>>,
    /// The bytes of these files.
    bytes: usize,
    /// The bytes of their trees, about.
    tree_bytes: usize,
}

impl ParsedManifests {
    /// Returns those of a pass that ends.
    pub(super) fn of_single_pass() -> Self {
        Self(Some(Arc::default()))
    }

    /// Keeps the objects of a file of this size, where there is room.
    pub(super) fn keep(&self, blob: BlobId, size: usize, items: &[ManifestItem]) {
        let Some(mut kept) = self.lock() else { return };
        let is_open = !items.iter().any(|item| item.gvk.group_kind().is("", "Secret"));
        if !is_open || kept.bytes + size > MAX_PARSED_BYTES || kept.files.contains_key(&blob) {
            return;
        }
        let tree_bytes: usize = items.iter().map(|item| estimate_bytes(&item.body)).sum();
        if kept.tree_bytes + tree_bytes <= MAX_PARSED_TREE_BYTES {
            kept.bytes += size;
            kept.tree_bytes += tree_bytes;
            kept.files.insert(blob, Arc::new(items.to_vec()));
        }
    }

    /// Returns the objects of a content, where it is kept.
    pub(super) fn get(&self, blob: BlobId) -> Option<Arc<Vec<ManifestItem>>> {
        self.lock()?.files.get(&blob).cloned()
    }

    fn lock(&self) -> Option<MutexGuard<'_, KeptFiles>> {
        self.0.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::parse_ahead::tests::alias_bomb;
    use crate::manifest;

    #[test]
    fn a_single_pass_keeps_the_files_that_it_has_parsed_within_a_bound_and_no_secret() {
        let check = |parsed: &ParsedManifests, kind: &str, size: usize, expected: bool| {
            let text =
                format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\ndata: {{size: '{size}'}}\n");
            let (blob, items) =
                (BlobId::of(text.as_bytes()), manifest::read(&"a.yaml".into(), text.as_bytes()).items);
            assert_eq!(items.len(), 1);
            parsed.keep(blob, size, &items);
            let known = parsed.get(blob);
            assert_eq!(known.is_some(), expected, "{kind} of {size} bytes");
            assert!(known.is_none_or(|known| *known == items));
        };
        let parsed = ParsedManifests::of_single_pass();
        check(&parsed, "ConfigMap", 100, true);
        check(&parsed, "Secret", 100, false);
        check(&parsed, "ConfigMap", MAX_PARSED_BYTES, false);
        check(&parsed.clone(), "ConfigMap", MAX_PARSED_BYTES - 100, true);
        check(&parsed, "ConfigMap", 1, false);
        check(&ParsedManifests::default(), "ConfigMap", 100, false);
    }

    #[test]
    fn small_files_that_become_large_trees_are_kept_within_a_bound() {
        const FILES: usize = 20;
        let parsed = ParsedManifests::of_single_pass();
        let is_kept = |number: &usize| {
            let bomb = alias_bomb(*number);
            let (blob, items) =
                (BlobId::of(bomb.as_bytes()), manifest::read(&"a.yaml".into(), bomb.as_bytes()).items);
            parsed.keep(blob, bomb.len(), &items);
            parsed.get(blob).is_some()
        };
        let kept = (0..FILES).filter(is_kept).count();
        assert!((1..FILES).contains(&kept), "{kept}");
    }
}
