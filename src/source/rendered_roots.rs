//! The roots of rendered revisions: out of memory, else out of the source's own store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use git2::{Oid, Repository};

use crate::object::{Diagnostic, Revision};

use super::changes::RootTreatment;
use super::error::SourceError;
use super::object_stores::{self, HandlePool, StorePath};
use super::raw_listing::RawListing;
use super::reader::RevisionReader;
use super::rendered_store::{self, StoredRoots};
use super::rendering::{RenderedRoot, RootOutcome, SnapshotRenderer};
use super::snapshot::{ChangedFile, RenderId, SnapshotFile};

/// Rendered revisions whose roots are remembered: the one in force and the next one.
const MAX_KEPT_REVISIONS: usize = 2;

/// The renderer of a source, and the store in which its results are.
#[derive(Clone, Debug)]
pub(super) struct Rendering {
    /// The source's own store.
    pub(super) store: PathBuf,
    /// The renderer.
    pub(super) renderer: Arc<dyn SnapshotRenderer>,
}

/// The roots of the revisions that were rendered or asked for last, the newest last.
#[derive(Debug, Default)]
pub(super) struct RememberedRoots {
    roots: Mutex<Vec<StoredRoots>>,
    /// The files of the revision that was rendered last, as they are.
    listing: Mutex<Option<Arc<RawListing>>>,
}

impl RememberedRoots {
    fn get(&self, tree: Oid) -> Option<StoredRoots> {
        let known = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|known| known.tree == tree).cloned()
    }

    /// Remembers the files of a revision with roots; none where it has no roots.
    pub(super) fn set_listing(&self, listing: Option<Arc<RawListing>>) {
        *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = listing;
    }

    /// Returns the files that are remembered.
    pub(super) fn listing(&self) -> Option<Arc<RawListing>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, stored: StoredRoots) {
        let mut known = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.tree != stored.tree);
        known.push(stored);
        let surplus = known.len().saturating_sub(MAX_KEPT_REVISIONS);
        known.drain(..surplus);
    }
}

/// The files in which two revisions with the same roots may differ.
#[derive(Debug)]
pub(crate) struct RenderedChanges {
    /// The files of the older one, in no order.
    pub before: Vec<SnapshotFile>,
    /// The files of the newer one.
    pub after: Vec<SnapshotFile>,
    /// The id of what was rendered of the newer one.
    pub rendered: RenderId,
    /// The warnings about all that was rendered of it.
    pub warnings: Vec<Diagnostic>,
}

impl RenderedChanges {
    /// Returns the objects of the roots that differ. None where a root is new or gone, or does not
    /// render in one of both revisions.
    fn of_roots(older: &StoredRoots, newer: &StoredRoots) -> Option<Self> {
        if older.roots.len() != newer.roots.len() {
            return None;
        }
        let (before, after, warnings) = (Vec::new(), Vec::new(), Vec::new());
        let mut changes = Self { before, after, rendered: RenderId(newer.tree), warnings };
        for (old, new) in older.roots.iter().zip(newer.roots.iter()) {
            let (RootOutcome::Rendered(before), RootOutcome::Rendered(after)) = (&old.outcome, &new.outcome)
            else {
                return None;
            };
            if old.path != new.path {
                return None;
            }
            if old.stored.is_none() || old.stored != new.stored {
                changes.before.extend(before.iter().cloned());
                changes.after.extend(after.iter().cloned());
            }
            changes.warnings.extend(new.warnings.iter().cloned());
        }
        Some(changes)
    }

    fn add_plain(&mut self, file: &ChangedFile) {
        self.before.extend(file.file_before());
        self.after.extend(file.after());
    }
}

impl RevisionReader {
    /// Compares two revisions with roots at the cost of what differs. Of the older one this was
    /// rendered when it was read.
    ///
    /// None where only whole snapshots can be compared: other roots, one that does not render, or
    /// more than contents of other files differ. Otherwise the refused files are the same in both.
    pub(crate) fn rendered_changes(
        &self,
        from: &Revision,
        rendered: RenderId,
        to: &Revision,
    ) -> Result<Option<RenderedChanges>, SourceError> {
        let Some(older) = self.remembered_roots().get(rendered.0) else { return Ok(None) };
        let Some(newer) = self.stored_roots(to)? else { return Ok(None) };
        let Some(mut changes) = RenderedChanges::of_roots(&older, &newer) else { return Ok(None) };
        let Some(files) = self.file_changes(from, to, RootTreatment::Refused)? else { return Ok(None) };
        for file in &files {
            // The objects of a file that is a root itself are compared above.
            if newer.roots.binary_search_by(|root| root.path.cmp(&file.path)).is_err() {
                changes.add_plain(file);
            }
        }
        Ok(Some(changes))
    }

    /// Returns the roots of a revision that were rendered; none where nobody has.
    pub(super) fn rendered_roots(
        &self,
        revision: &Revision,
    ) -> Result<Option<Arc<[RenderedRoot]>>, SourceError> {
        Ok(self.stored_roots(revision)?.map(|stored| stored.roots))
    }

    /// Returns the same with the tree that they are in.
    pub(super) fn stored_roots(&self, revision: &Revision) -> Result<Option<StoredRoots>, SourceError> {
        let read = self.rendered(|store| {
            let Some(tree) = rendered_store::rendered_tree(store, revision)? else { return Ok(None) };
            match self.remembered_roots().get(tree) {
                Some(known) => Ok(Some(known)),
                None => rendered_store::read_roots(store, tree).map(Some),
            }
        })?;
        Ok(read.inspect(|stored| self.remember_roots(stored.clone())))
    }

    /// Remembers the roots of a rendered revision: the same tree always has the same ones.
    pub(super) fn remember_roots(&self, stored: StoredRoots) {
        self.remembered_roots().put(stored);
    }

    /// Returns the id of what was rendered of a revision; none where nothing was.
    pub(super) fn render_id(&self, revision: &Revision) -> Result<Option<RenderId>, SourceError> {
        let tree = self.rendered(|store| rendered_store::rendered_tree(store, revision))?;
        Ok(tree.map(RenderId))
    }

    /// Returns the objects that the renders of a revision before the newest one made, the newest of
    /// them first. Their contents may still be in force.
    ///
    /// # Errors
    /// Fails where the store cannot be opened.
    pub(crate) fn earlier_objects(&self, revision: &Revision) -> Result<Vec<SnapshotFile>, SourceError> {
        let read = self.rendered(|store| {
            let trees = rendered_store::earlier_trees(store, revision)?;
            trees
                .into_iter()
                .map(|tree| rendered_store::read_roots(store, tree))
                .collect::<Result<_, _>>()
                .map(Some)
        })?;
        let renders: Vec<StoredRoots> = read.unwrap_or_default();
        let roots = renders.iter().flat_map(|render| render.roots.iter());
        let objects = roots.filter_map(|root| match &root.outcome {
            RootOutcome::Rendered(files) => Some(files.iter().cloned()),
            RootOutcome::Refused(_) | RootOutcome::Interrupted(_) => None,
        });
        Ok(objects.flatten().collect())
    }

    fn rendered<T>(
        &self,
        read: impl Fn(&Repository) -> Result<Option<T>, git2::Error>,
    ) -> Result<Option<T>, SourceError> {
        let Some(rendering) = self.rendering().filter(|rendering| rendering.store.exists()) else {
            return Ok(None);
        };
        if let Some(found) =
            self.reading().and_then(|reading| read_pooled(&reading.rendered, &rendering.store, &read))
        {
            return Ok(found);
        }
        let store = object_stores::open(&rendering.store).map_err(|error| self.damaged_error(&error))?;
        read(&store).or_else(|error| {
            // A revision can be rendered again.
            tracing::warn!(source = %self.shown_location(), "the rendered revision cannot be read: {}", error.message());
            Ok(None)
        })
    }
}

/// Reads by a handle of a reading on the store of what was rendered, or by a new one that it takes.
/// Returns none where that fails.
fn read_pooled<T>(
    handles: &HandlePool,
    store: &Path,
    read: impl Fn(&Repository) -> Result<T, git2::Error>,
) -> Option<T> {
    let handle = handles.take_or_open(&[StorePath::Own(store.to_owned())])?;
    let found = read(handle.objects.first_repository()?).ok()?;
    handles.put_back(handle);
    Some(found)
}
