//! Revisions, files and bytes out of the object stores of one source.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use git2::{ErrorCode, Oid};
use jiff::Timestamp;

use crate::object::Revision;
use crate::render::sanitize;

use super::bounded::run_bounded;
use super::changes::{self, RootTreatment};
use super::error::SourceError;
use super::file_names::{self, EntryKind};
use super::object_stores::{HandlePool, ObjectStores, PooledHandle, ReadingHandles, StorePath};
use super::refusal::{RefusalReason, RefusedFile};
use super::rendered_roots::{RememberedRoots, Rendering};
use super::rendered_store::StoredRoots;
use super::rendering::{RenderedSnapshot, SnapshotRenderer};
use super::revision_tree::{RevisionTree, TreeBounds};
use super::snapshot::{BlobId, ChangedFile, CommitInfo, RenderId, Snapshot, SnapshotFile};
use super::tree::{self, TreeWalk, WalkStop};

/// A larger file is refused unread.
pub(crate) const MAX_SOURCE_FILE_BYTES: u64 = 16 << 20;
/// A source with more entries is refused: trees can be nested into bombs of any size.
pub(super) const MAX_FOLDER_ENTRIES: usize = 1_000_000;

/// A read that takes longer waits for a disk that does not answer.
pub(super) const MAX_READ_TIME: Duration = Duration::from_mins(10);

/// The limits of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadLimits {
    /// Bytes of a file.
    pub(super) file: u64,
    /// Files and folders of a revision.
    pub(super) entries: usize,
    /// The time of one read that is waited for.
    pub(super) time: Duration,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { file: MAX_SOURCE_FILE_BYTES, entries: MAX_FOLDER_ENTRIES, time: MAX_READ_TIME }
    }
}

/// Indicates whether revisions are people's commits or our own snapshots of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RevisionForm {
    Commits,
    Snapshots,
}

/// The reader of what a source has seen: cheap to clone, to be used from blocking threads. A handle
/// is used again for a second. A read that fails is tried once more on fresh handles, because packs
/// vanish under maintenance.
#[derive(Clone, Debug)]
pub(crate) struct RevisionReader {
    shared: Arc<ReaderState>,
    /// The handles of one reading; none outside of one.
    reading: Option<Arc<ReadingHandles>>,
}

#[derive(Debug)]
struct ReaderState {
    /// The repositories to ask, in this order.
    stores: Vec<StorePath>,
    form: RevisionForm,
    /// The source's name in errors, without credentials.
    shown_location: String,
    /// The folder of the revisions that is the source's root.
    path: Option<String>,
    rendering: Option<Rendering>,
    limits: ReadLimits,
    /// Set when a store turned out to be damaged.
    is_store_suspect: AtomicBool,
    handles: HandlePool,
    roots: RememberedRoots,
    /// The difference that a render has looked at: whoever reads the revision asks for it next.
    difference: Mutex<Option<PlainDifference>>,
}

/// The files in which two revisions differ that have no roots.
#[derive(Debug)]
struct PlainDifference {
    from: Revision,
    to: Revision,
    changes: Vec<ChangedFile>,
}

impl RevisionReader {
    pub(super) fn new(
        stores: Vec<StorePath>,
        form: RevisionForm,
        shown_location: String,
        path: Option<String>,
        limits: ReadLimits,
    ) -> Self {
        Self::with_state(stores, form, shown_location, path, limits, None)
    }

    /// Returns a reader that gives what was rendered in the place of what is rendered.
    pub(super) fn with_rendering(self, rendering: Option<Rendering>) -> Self {
        let ReaderState { stores, form, shown_location, path, limits, .. } = &*self.shared;
        let (stores, shown_location, path) = (stores.clone(), shown_location.clone(), path.clone());
        Self::with_state(stores, *form, shown_location, path, *limits, rendering)
    }

    /// Returns a reader that has read nothing yet.
    fn with_state(
        stores: Vec<StorePath>,
        form: RevisionForm,
        shown_location: String,
        path: Option<String>,
        limits: ReadLimits,
        rendering: Option<Rendering>,
    ) -> Self {
        let state = ReaderState {
            stores,
            form,
            shown_location,
            path,
            rendering,
            limits,
            is_store_suspect: AtomicBool::new(false),
            handles: HandlePool::default(),
            roots: RememberedRoots::default(),
            difference: Mutex::default(),
        };
        Self { shared: Arc::new(state), reading: None }
    }

    /// Returns a reader for one reading: all its passes use the handles that the first one opens.
    /// They are closed at its end.
    pub(super) fn with_shared_handles(&self) -> Self {
        Self { shared: self.shared.clone(), reading: Some(Arc::default()) }
    }

    /// Returns the same reader outside of any reading.
    pub(super) fn with_own_handles(&self) -> Self {
        Self { shared: self.shared.clone(), reading: None }
    }

    /// Returns the handles of this reading; none outside of one.
    pub(super) fn reading(&self) -> Option<&ReadingHandles> {
        self.reading.as_deref()
    }

    /// Returns the renderer, where there is one.
    pub(super) fn renderer(&self) -> Option<&Arc<dyn SnapshotRenderer>> {
        self.rendering().map(|rendering| &rendering.renderer)
    }

    /// Returns the renderer with its store, where there is one.
    pub(super) fn rendering(&self) -> Option<&Rendering> {
        self.shared.rendering.as_ref()
    }

    /// Returns the roots that are remembered.
    pub(super) fn remembered_roots(&self) -> &RememberedRoots {
        &self.shared.roots
    }

    /// Returns the source's name in errors, without credentials.
    pub(super) fn shown_location(&self) -> &str {
        &self.shared.shown_location
    }

    /// Requires that the store is checked before it is used again.
    pub(super) fn require_store_check(&self) {
        self.shared.is_store_suspect.store(true, Ordering::Relaxed);
    }

    /// Returns whether damage was met and nobody has looked at it yet.
    pub(super) fn is_store_check_due(&self) -> bool {
        self.shared.is_store_suspect.load(Ordering::Relaxed)
    }

    /// Does the same as [`RevisionReader::is_store_check_due`], and it is looked at now.
    pub(super) fn take_store_check(&self) -> bool {
        self.shared.is_store_suspect.swap(false, Ordering::Relaxed)
    }

    /// Lists the files of a revision, and what was rendered of it in the place of its roots.
    ///
    /// Fails with [`SourceError::Unrendered`] where it has roots that nobody has rendered yet.
    pub(crate) fn snapshot(&self, revision: &Revision) -> Result<Snapshot, SourceError> {
        let listing = self.next_listing(revision)?;
        let raw = self.snapshot_of(revision, &listing)?;
        let Some(renderer) = self.renderer().filter(|renderer| renderer.has_roots(&raw)) else {
            return Ok(raw);
        };
        let Some(StoredRoots { tree, roots }) = self.stored_roots(revision)? else {
            let (shown_location, revision) = (self.shared.shown_location.clone(), revision.clone());
            return Err(SourceError::Unrendered { shown_location, revision });
        };
        let mut plain = renderer.plain_part(raw);
        plain.files.retain(|file| roots.binary_search_by(|root| root.path.cmp(&file.path)).is_err());
        let mut snapshot = RenderedSnapshot::of_known_roots(plain, roots.to_vec()).into_snapshot();
        snapshot.rendered = Some(RenderId(tree));
        if !snapshot.files.is_empty() || !snapshot.is_complete() {
            return Ok(snapshot);
        }
        let (shown_location, within) = (self.shared.shown_location.clone(), self.path_of_revision(revision));
        Err(match &*roots {
            [] => SourceError::OnlyParts { shown_location, within },
            _ => SourceError::NothingRendered { shown_location, within },
        })
    }

    /// Fails with [`SourceError::Empty`] or [`SourceError::NoPath`] where a revision holds nothing,
    /// without listing it.
    pub(super) fn check(&self, revision: &Revision) -> Result<(), SourceError> {
        self.pass(|objects| {
            let (root, refusals) = self.source_root(objects, revision)?;
            let mut empty = refusals.is_empty();
            let walk = TreeWalk::new(objects, self.shared.limits.entries, |_| {
                empty = false;
                ControlFlow::Break(())
            });
            walk.run(root).map_err(|stop| self.stop(stop))?;
            if empty { Err(self.empty_error(revision)) } else { Ok(()) }
        })
    }

    /// Compares two revisions at the cost of their difference. Of the first one this was rendered
    /// when it was read: by now it may have been rendered again.
    ///
    /// None where only whole snapshots can be compared: an ignore file differs, a refused file, or
    /// what was rendered. Otherwise the refused files are the same in both.
    pub(crate) fn plain_changes(
        &self,
        from: &Revision,
        rendered: Option<RenderId>,
        to: &Revision,
    ) -> Result<Option<Vec<ChangedFile>>, SourceError> {
        if self.render_id(to)? != rendered {
            return Ok(None);
        }
        if from == to {
            // It may have been rendered again since.
            return Ok(self.renderer().is_none().then(Vec::new));
        }
        match self.take_difference(from, to) {
            Some(changes) => Ok(Some(changes)),
            None => self.file_changes(from, to, RootTreatment::Structural),
        }
    }

    /// Returns whether two revisions without roots differ in contents of files alone. Keeps the
    /// difference for the next [`RevisionReader::plain_changes`].
    pub(super) fn is_plain_step(&self, from: &Revision, to: &Revision) -> bool {
        let Ok(Some(changes)) = self.plain_changes(from, None, to) else { return false };
        *self.difference() = Some(PlainDifference { from: from.clone(), to: to.clone(), changes });
        true
    }

    fn take_difference(&self, from: &Revision, to: &Revision) -> Option<Vec<ChangedFile>> {
        let known = self.difference().take_if(|known| known.from == *from && known.to == *to);
        known.map(|known| known.changes)
    }

    fn difference(&self) -> MutexGuard<'_, Option<PlainDifference>> {
        self.shared.difference.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the files of two revisions that are taken as they are. None where more than their
    /// contents differ.
    pub(super) fn file_changes(
        &self,
        from: &Revision,
        to: &Revision,
        roots: RootTreatment,
    ) -> Result<Option<Vec<ChangedFile>>, SourceError> {
        let changes = self.pass(|objects| {
            let (old, refused_before) = self.source_root(objects, from)?;
            let (new, refused) = self.source_root(objects, to)?;
            if refused_before != refused {
                return Ok(None);
            }
            let most = self.shared.limits.entries;
            let difference =
                changes::compare(objects, old, new, most, roots).map_err(|stop| self.stop(stop))?;
            let pairs = difference.map(|difference| difference.pairs);
            Ok(pairs.map(|pairs| self.with_sizes(objects, pairs)).transpose()?.flatten())
        })?;
        Ok(changes.filter(|changes| self.are_plain(to, changes)))
    }

    /// Returns whether these files are taken as they are. Where a folder is rendered whole, none is,
    /// also while nothing in it says that it is rendered.
    fn are_plain(&self, revision: &Revision, changes: &[ChangedFile]) -> bool {
        let Some(renderer) = self.renderer() else { return true };
        let files: Vec<SnapshotFile> = changes.iter().filter_map(ChangedFile::latest).collect();
        let count = files.len();
        let left = renderer.plain_part(Snapshot::of_files(revision.clone(), files, Vec::new()));
        left.files.len() == count
    }

    /// Returns whether its revisions are people's commits, or snapshots.
    pub(super) fn form(&self) -> RevisionForm {
        self.shared.form
    }

    /// Returns the limits of its trees.
    pub(super) fn bounds(&self) -> TreeBounds {
        match self.shared.form {
            RevisionForm::Commits => TreeBounds::Repository,
            RevisionForm::Snapshots => TreeBounds::Directory,
        }
    }

    /// Returns who made a revision; none for the snapshot of a folder.
    pub(crate) fn commit(&self, revision: &Revision) -> Result<Option<CommitInfo>, SourceError> {
        if self.shared.form == RevisionForm::Snapshots {
            return Ok(None);
        }
        self.pass(|objects| {
            let commit = self.find(objects, revision)?;
            let time = Timestamp::from_second(commit.time().seconds()).unwrap_or(Timestamp::UNIX_EPOCH);
            Ok(Some(CommitInfo {
                author: printable_text(commit.author().name_bytes()),
                subject: printable_text(commit.summary_bytes().unwrap_or_default()),
                time,
            }))
        })
    }

    /// Runs reads that are waited for, under a deadline.
    ///
    /// Fails as they do. Where the disk does not answer in time, they go on by themselves.
    pub(crate) async fn read_bounded<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let reader = self.with_shared_handles();
        run_bounded(&self.shared.shown_location, self.shared.limits.time, move || read(&reader)).await?
    }

    /// Runs a short look. Unlike a pass, it uses handles again that were opened less than a second
    /// ago. Their answers are right, as the id stands for the content, and a missing object is
    /// looked for with fresh ones.
    pub(super) fn read_objects<T: Send>(
        &self,
        mut run: impl FnMut(&ObjectStores) -> Result<T, SourceError> + Send,
    ) -> Result<T, SourceError> {
        let handles = self.reading().map_or(&self.shared.handles, |reading| &reading.objects);
        match self.read_pooled(handles, &mut run) {
            Some(done) => done,
            None => self.fresh_pass(run),
        }
    }

    /// Reads by handles of a pool, or by new ones that it takes. Returns none where the stores
    /// disappoint.
    fn read_pooled<T: Send>(
        &self,
        handles: &HandlePool,
        run: &mut (impl FnMut(&ObjectStores) -> Result<T, SourceError> + Send),
    ) -> Option<Result<T, SourceError>> {
        let PooledHandle { opened, objects } = handles.take_or_open(&self.shared.stores)?;
        let (objects, done) = objects.read_in_sandbox(run).ok()?;
        if matches!(done, Err(SourceError::Damaged { .. } | SourceError::Unknown { .. })) {
            return None;
        }
        handles.put_back(PooledHandle { opened, objects });
        Some(done)
    }

    /// Returns every file of a revision, whatever its name, to be looked at one by one. Files
    /// outside the folder that is the source's root are among them.
    pub(crate) fn tree(&self, revision: &Revision) -> Result<RevisionTree, SourceError> {
        let root = self.pass(|objects| Ok(self.find_whole(objects, revision)?.tree_id()))?;
        Ok(RevisionTree::new(self.clone(), root))
    }

    /// Returns the folder of the revisions that is the source's root; empty for the revision's own.
    pub(crate) fn start(&self) -> &str {
        self.shared.path.as_deref().unwrap_or_default()
    }

    /// Returns the most entries of a revision that are looked at.
    pub(super) fn max_entries(&self) -> usize {
        self.shared.limits.entries
    }

    /// Returns the most bytes of a file that is read.
    pub(super) fn max_file_bytes(&self) -> u64 {
        self.shared.limits.file
    }

    /// Closes what reads may have left open for the next ones.
    pub(crate) fn close(&self) {
        self.shared.handles.clear();
    }

    /// Runs a pass over the handles of the reading. Outside of one, and if the stores disappoint, it
    /// runs over fresh handles.
    pub(super) fn pass<T: Send>(
        &self,
        mut run: impl FnMut(&ObjectStores) -> Result<T, SourceError> + Send,
    ) -> Result<T, SourceError> {
        let read = self.reading().and_then(|reading| self.read_pooled(&reading.objects, &mut run));
        match read {
            Some(done) => done,
            None => self.fresh_pass(run),
        }
    }

    /// Runs a pass over fresh handles, and once more if the stores disappoint.
    fn fresh_pass<T: Send>(
        &self,
        mut run: impl FnMut(&ObjectStores) -> Result<T, SourceError> + Send,
    ) -> Result<T, SourceError> {
        let mut attempt = || {
            let opened = ObjectStores::open(&self.shared.stores);
            let read = opened.and_then(|objects| objects.read_in_sandbox(&mut run));
            read.map_err(|error| error.into_source_error(&self.shared.shown_location))?.1
        };
        match attempt() {
            Err(SourceError::Damaged { .. } | SourceError::Unknown { .. }) => {
                let again = attempt();
                if matches!(again, Err(SourceError::Damaged { .. } | SourceError::Unknown { .. })) {
                    self.require_store_check();
                }
                again
            }
            done => done,
        }
    }

    pub(super) fn find<'a>(
        &self,
        objects: &'a ObjectStores,
        revision: &Revision,
    ) -> Result<git2::Commit<'a>, SourceError> {
        let unknown = || SourceError::Unknown {
            shown_location: self.shared.shown_location.clone(),
            revision: revision.clone(),
        };
        let id = Oid::from_str(revision.as_str()).map_err(|_| unknown())?;
        objects.commit(id).map_err(|error| match error.code() {
            ErrorCode::NotFound => unknown(),
            _ => self.damaged_error(&error),
        })
    }

    /// Returns a commit whose files are here too, and not it alone as a part of the history.
    pub(super) fn find_whole<'a>(
        &self,
        objects: &'a ObjectStores,
        revision: &Revision,
    ) -> Result<git2::Commit<'a>, SourceError> {
        let commit = self.find(objects, revision)?;
        if objects.exists(commit.tree_id()) {
            return Ok(commit);
        }
        Err(SourceError::Unknown {
            shown_location: self.shared.shown_location.clone(),
            revision: revision.clone(),
        })
    }

    /// Returns the tree that is the source's root, and what the snapshot of a folder had refused.
    pub(super) fn source_root(
        &self,
        objects: &ObjectStores,
        revision: &Revision,
    ) -> Result<(Oid, Vec<RefusedFile>), SourceError> {
        let commit = self.find_whole(objects, revision)?;
        let refusals = match self.shared.form {
            RevisionForm::Commits => Vec::new(),
            RevisionForm::Snapshots => {
                commit.message_raw().unwrap_or_default().lines().filter_map(RefusedFile::parse).collect()
            }
        };
        let Some(path) = &self.shared.path else { return Ok((commit.tree_id(), refusals)) };
        let mut id = commit.tree_id();
        let mut walked = String::new();
        for part in path.split('/') {
            let tree = objects.tree(id).map_err(|error| self.damaged_error(&error))?;
            let entry = tree.get_name_bytes(part.as_bytes());
            walked = tree::join(&walked, part);
            let feature = match entry.as_ref().map(|entry| tree::kind(entry.filemode_raw())) {
                Some(EntryKind::Folder) => None,
                None => Some("no folder"),
                Some(EntryKind::File | EntryKind::Other) => Some("a file, not a folder, is at"),
                Some(EntryKind::Symlink) => Some("a symbolic link, which is not followed, is at"),
                Some(EntryKind::Submodule) => Some("a submodule, which is not read, is at"),
            };
            if let Some(feature) = feature {
                let (shown_location, revision) = (self.shared.shown_location.clone(), revision.clone());
                return Err(SourceError::NoPath { shown_location, path: walked, feature, revision });
            }
            id = entry.map_or(id, |entry| entry.id());
        }
        Ok((id, refusals))
    }

    /// Returns a file's size, or the reason for which its content is refused.
    pub(super) fn check_size(
        &self,
        objects: &ObjectStores,
        id: Oid,
    ) -> Result<Result<u64, RefusalReason>, SourceError> {
        let size = objects.size(id).map_err(|error| self.damaged_error(&error))?;
        if size > self.shared.limits.file {
            return Ok(Err(RefusalReason::TooLarge));
        }
        if file_names::LFS_SIZES.contains(&size) {
            let bytes = objects.read(id).map_err(|error| self.damaged_error(&error))?;
            if let Some(reason) = file_names::refused_content(&bytes) {
                return Ok(Err(reason));
            }
        }
        Ok(Ok(size))
    }

    /// Adds the sizes; none where a content is refused.
    pub(super) fn with_sizes(
        &self,
        objects: &ObjectStores,
        pairs: Vec<changes::ChangedPath>,
    ) -> Result<Option<Vec<ChangedFile>>, SourceError> {
        let check_size = |id: Option<Oid>| match id {
            None => Ok(Ok(None)),
            Some(id) => Ok(self.check_size(objects, id)?.map(|size| Some((BlobId::from_oid(id), size)))),
        };
        let mut changed = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let (Ok(old), Ok(new)) = (check_size(pair.old)?, check_size(pair.new)?) else { return Ok(None) };
            changed.push(ChangedFile { path: pair.path.into(), old, new });
        }
        Ok(Some(changed))
    }

    pub(super) fn empty_error(&self, revision: &Revision) -> SourceError {
        SourceError::Empty {
            shown_location: self.shared.shown_location.clone(),
            within: self.path_of_revision(revision),
        }
    }

    fn path_of_revision(&self, revision: &Revision) -> String {
        let folder = self.shared.path.as_ref().map(|path| format!("folder {path} of ")).unwrap_or_default();
        format!("{folder}revision {}", revision.short_name())
    }

    pub(super) fn stop(&self, stop: WalkStop) -> SourceError {
        match stop {
            WalkStop::Git(error) => self.damaged_error(&error),
            WalkStop::TooMany => SourceError::TooMany {
                shown_location: self.shared.shown_location.clone(),
                limit: self.shared.limits.entries,
            },
        }
    }

    pub(super) fn damaged_error(&self, error: &git2::Error) -> SourceError {
        SourceError::Damaged {
            shown_location: self.shared.shown_location.clone(),
            detail: error.message().to_owned(),
        }
    }
}

/// Returns who made a commit, or what for, as it may be shown anywhere.
fn printable_text(text: &[u8]) -> String {
    sanitize(&String::from_utf8_lossy(text)).into_owned()
}
