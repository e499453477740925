//! The files of a revision, before anything of it is rendered.
//!
//! A source with roots needs them with each commit. So its list is made of the one before, at the
//! cost of what differs.
//!
//! **Invariant:** the list is that of a walk over the whole revision, and a revision with too many
//! entries has none. Where the differences do not show it, or cannot be read, the whole revision is
//! walked.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use git2::Oid;

use super::changes::{self, RootTreatment};
use super::error::SourceError;
use super::object_stores::ObjectStores;
use super::reader::{RevisionForm, RevisionReader};
use super::refusal::{RefusalReason, RefusedFile};
use super::snapshot::{BlobId, ChangedFile, Snapshot, SnapshotFile};
use super::tree::{self, TreeWalk, WalkSink};
use crate::object::{Diagnostic, Revision};

/// The files and the refusals of one tree.
#[derive(Clone, Debug)]
pub(super) struct RawListing {
    /// The tree. With what is recorded, the list depends on nothing else.
    root: Oid,
    /// The refusals that the snapshot of a folder records.
    recorded: Vec<RefusedFile>,
    /// The entries that a walk counts: other files and folders too.
    entries: usize,
    /// The files, ordered by path.
    files: Arc<[SnapshotFile]>,
    /// The refusals, with those that are recorded.
    refusals: Arc<KeptRefusals>,
}

/// Refusals as they are kept between two revisions, ordered by path. Each root is one, so that
/// little is kept of each.
#[derive(Debug)]
struct KeptRefusals {
    /// The paths, of which what is made of the refusals shares the texts.
    paths: Box<[Arc<str>]>,
    /// The reason of each.
    reasons: Box<[RefusalReason]>,
    /// The system's messages, by the numbers of the refusals whose reason does not say all.
    details: BTreeMap<usize, Box<str>>,
}

impl FromIterator<RefusedFile> for KeptRefusals {
    fn from_iter<I: IntoIterator<Item = RefusedFile>>(refused: I) -> Self {
        let (mut paths, mut reasons) = (Vec::<Arc<str>>::new(), Vec::new());
        let mut details = BTreeMap::new();
        for RefusedFile { path, reason, detail } in refused {
            if !detail.is_empty() {
                details.insert(paths.len(), detail.into_boxed_str());
            }
            paths.push(path.into());
            reasons.push(reason);
        }
        Self { paths: paths.into(), reasons: reasons.into(), details }
    }
}

impl KeptRefusals {
    fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    fn diagnostics(&self) -> impl Iterator<Item = Diagnostic> {
        self.paths.iter().zip(self.reasons.iter()).enumerate().map(move |(number, (path, reason))| {
            reason.diagnostic(path.clone(), self.details.get(&number).map_or("", |detail| &**detail))
        })
    }
}

impl RawListing {
    /// Returns the list of another tree with so many entries, in which these files differ.
    fn with_changes(&self, root: Oid, entries: usize, changed: &[ChangedFile]) -> Self {
        if changed.is_empty() {
            return Self { root, entries, ..self.clone() };
        }
        let mut files = self.files.to_vec();
        ChangedFile::apply_all(changed, &mut files);
        Self { root, entries, files: files.into(), ..self.clone() }
    }
}

impl RevisionReader {
    /// Lists the files of a revision as they are. Reads all of its trees.
    pub(super) fn raw_snapshot(&self, revision: &Revision) -> Result<Snapshot, SourceError> {
        let listing = self.pass(|objects| {
            let (root, recorded) = self.source_root(objects, revision)?;
            self.list_tree(objects, root, recorded)
        })?;
        self.snapshot_of(revision, &listing)
    }

    /// Lists the files of a whole revision as they are, where the source's root is a folder of it.
    /// Its objects may have been elsewhere then. None where its root is the revision's own.
    pub(crate) fn whole_snapshot(&self, revision: &Revision) -> Result<Option<Snapshot>, SourceError> {
        if self.start().is_empty() || self.form() == RevisionForm::Snapshots {
            return Ok(None);
        }
        let listing = self.pass(|objects| {
            let root = self.find_whole(objects, revision)?.tree_id();
            self.list_tree(objects, root, Vec::new())
        })?;
        self.snapshot_of(revision, &listing).map(Some)
    }

    /// Lists the files of a revision as they are, by what differs from the list that is remembered.
    pub(super) fn next_listing(&self, revision: &Revision) -> Result<Arc<RawListing>, SourceError> {
        let known = self.remembered_roots().listing();
        self.pass(|objects| {
            let (root, recorded) = self.source_root(objects, revision)?;
            let next = known.as_ref().and_then(|known| self.listing_after(objects, known, root, &recorded));
            match next {
                Some(next) => Ok(next),
                None => self.list_tree(objects, root, recorded).map(Arc::new),
            }
        })
    }

    /// Returns the snapshot of a revision that has this list.
    ///
    /// Fails with [`SourceError::Empty`] where nothing is in it.
    pub(super) fn snapshot_of(
        &self,
        revision: &Revision,
        listing: &RawListing,
    ) -> Result<Snapshot, SourceError> {
        if listing.files.is_empty() && listing.refusals.is_empty() {
            return Err(self.empty_error(revision));
        }
        let refused = listing.refusals.diagnostics().collect();
        Ok(Snapshot::of_files(revision.clone(), listing.files.to_vec(), refused))
    }

    /// Returns the list of a tree by what differs from a known one. None where that does not show
    /// it, or cannot be read: an older tree may be gone.
    fn listing_after(
        &self,
        objects: &ObjectStores,
        known: &Arc<RawListing>,
        root: Oid,
        recorded: &[RefusedFile],
    ) -> Option<Arc<RawListing>> {
        if *known.recorded != *recorded {
            return None;
        }
        if known.root == root {
            return Some(known.clone());
        }
        let (most, roots) = (self.max_entries(), RootTreatment::Refused);
        let difference = changes::compare(objects, known.root, root, most, roots).ok()??;
        let entries = (known.entries + difference.new_entries).checked_sub(difference.old_entries)?;
        if entries > most {
            return None;
        }
        let changed = self.with_sizes(objects, difference.pairs).ok()??;
        Some(known.with_changes(root, entries, &changed).into())
    }

    /// Lists the files of a tree by a walk over all of it.
    fn list_tree(
        &self,
        objects: &ObjectStores,
        root: Oid,
        recorded: Vec<RefusedFile>,
    ) -> Result<RawListing, SourceError> {
        let (mut found, mut refusals) = (Vec::new(), recorded.clone());
        // The snapshot of a folder knows better why it has refused what is no file in its tree.
        let known: HashSet<String> = recorded.iter().map(|refusal| refusal.path.clone()).collect();
        let walk = TreeWalk::new(objects, self.max_entries(), |entry| {
            match entry {
                WalkSink::File(path, id) => found.push((path, id)),
                WalkSink::Refused(refusal) if known.contains(&refusal.path) => {}
                WalkSink::Refused(refusal) => refusals.push(refusal),
            }
            ControlFlow::Continue(())
        });
        let entries = walk.run(root).map_err(|stop| self.stop(stop))?;
        let in_order = |pair: &[(String, Oid)]| matches!(pair, [a, b] if a.0 < b.0);
        if !found.windows(2).all(in_order) {
            refusals.extend(tree::sort_entries(&mut found));
        }
        let mut files = Vec::with_capacity(found.len());
        for (path, id) in found {
            match self.check_size(objects, id)? {
                Ok(size) => files.push(SnapshotFile {
                    path: path.into(),
                    blob: BlobId::from_oid(id),
                    size,
                    origin: None,
                }),
                Err(reason) => refusals.push(RefusedFile::new(path, reason)),
            }
        }
        refusals.sort();
        let refusals: KeptRefusals = refusals.into_iter().collect();
        Ok(RawListing { root, recorded, entries, files: files.into(), refusals: refusals.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_that_are_kept_say_the_same_and_share_their_paths() {
        let refused = [
            RefusedFile::new("a.yaml", RefusalReason::Symlink),
            RefusedFile::new("b.yaml", RefusalReason::Unreadable).with_detail("permission denied"),
            RefusedFile::new("c/kustomization.yaml", RefusalReason::Kustomization),
            RefusedFile::new("d.yaml", RefusalReason::Unreadable).with_detail("input/output error"),
        ];
        let kept: KeptRefusals = refused.iter().cloned().collect();
        let found: Vec<Diagnostic> = kept.diagnostics().collect();
        assert_eq!(found, refused.iter().map(RefusedFile::diagnostic).collect::<Vec<_>>());
        assert!(
            found.iter().zip(kept.paths.iter()).all(|(found, path)| Arc::ptr_eq(&found.origin.file, path))
        );
    }

    #[test]
    fn a_root_takes_a_path_and_a_byte_among_refusals() {
        let roots = ["a", "b", "c"].map(|path| RefusedFile::new(path, RefusalReason::Kustomization));
        let kept: KeptRefusals = roots.into_iter().collect();
        let sizes = [size_of_val(&*kept.paths), size_of_val(&*kept.reasons), kept.details.len()];
        assert_eq!(sizes, [3 * size_of::<Arc<str>>(), 3, 0]);
    }
}
