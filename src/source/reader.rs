//! Revisions, files and bytes out of the object stores of one source.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use git2::{ErrorCode, Oid};
use jiff::Timestamp;

use crate::object::Revision;
use crate::render::sanitize;

use super::bounded::run_bounded;
use super::changes;
use super::error::SourceError;
use super::file_names::{self, EntryKind};
use super::object_stores::{HandlePool, ObjectStores, PooledHandle, StorePath};
use super::refusal::{RefusalReason, RefusedFile};
use super::rendered_roots::{RememberedRoots, Rendering};
use super::rendering::{RenderedSnapshot, SnapshotRenderer};
use super::revision_tree::{RevisionTree, TreeBounds};
use super::settling::FolderEntry;
use super::snapshot::{BlobId, ChangedFile, CommitInfo, Snapshot, SnapshotFile};
use super::tree::{self, TreeWalk, WalkSink, WalkStop};

/// A larger file is refused unread.
pub(crate) const MAX_FILE: u64 = 16 << 20;
/// A source with more entries is refused: trees can be nested into bombs of any size.
pub(super) const MAX_ENTRIES: usize = 1_000_000;

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
        Self { file: MAX_FILE, entries: MAX_ENTRIES, time: MAX_READ_TIME }
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
}

#[derive(Debug)]
struct ReaderState {
    /// The repositories to ask, in this order.
    stores: Vec<StorePath>,
    form: RevisionForm,
    /// The source's name in errors, without credentials.
    place: String,
    /// The folder of the revisions that is the source's root.
    path: Option<String>,
    rendering: Option<Rendering>,
    limits: ReadLimits,
    /// Set when a store turned out to be damaged.
    suspect: AtomicBool,
    handles: HandlePool,
    roots: RememberedRoots,
}

impl RevisionReader {
    pub(super) fn new(
        stores: Vec<StorePath>,
        form: RevisionForm,
        place: String,
        path: Option<String>,
        limits: ReadLimits,
    ) -> Self {
        let suspect = AtomicBool::new(false);
        let handles = HandlePool::default();
        let rendering = None;
        let roots = RememberedRoots::default();
        let state = ReaderState { stores, form, place, path, rendering, limits, suspect, handles, roots };
        Self { shared: Arc::new(state) }
    }

    /// Returns a reader that gives what was rendered in the place of what is rendered.
    pub(super) fn with_rendering(self, rendering: Option<Rendering>) -> Self {
        let ReaderState { stores, form, place, path, limits, .. } = &*self.shared;
        let (stores, place, path) = (stores.clone(), place.clone(), path.clone());
        let (suspect, handles) = (AtomicBool::new(false), HandlePool::default());
        let (form, limits) = (*form, *limits);
        let roots = RememberedRoots::default();
        let state = ReaderState { stores, form, place, path, rendering, limits, suspect, handles, roots };
        Self { shared: Arc::new(state) }
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
    pub(super) fn remembered(&self) -> &RememberedRoots {
        &self.shared.roots
    }

    /// Returns the source's name in errors, without credentials.
    pub(super) fn place(&self) -> &str {
        &self.shared.place
    }

    /// Requires that the store is checked before it is used again.
    pub(super) fn require_store_check(&self) {
        self.shared.suspect.store(true, Ordering::Relaxed);
    }

    /// Returns whether damage was met and nobody has looked at it yet.
    pub(super) fn needs_store_check(&self) -> bool {
        self.shared.suspect.load(Ordering::Relaxed)
    }

    /// Does the same as [`RevisionReader::needs_store_check`], and it is looked at now.
    pub(super) fn take_store_check(&self) -> bool {
        self.shared.suspect.swap(false, Ordering::Relaxed)
    }

    /// Lists the files of a revision, and what was rendered of it in the place of its roots.
    ///
    /// Fails with [`SourceError::Unrendered`] where it has roots that nobody has rendered yet.
    pub(crate) fn snapshot(&self, revision: &Revision) -> Result<Snapshot, SourceError> {
        let raw = match self.remembered().take_raw(revision) {
            Some(raw) => raw,
            None => self.raw_snapshot(revision)?,
        };
        let Some(renderer) = self.renderer().filter(|renderer| renderer.has_roots(&raw)) else {
            return Ok(raw);
        };
        let Some(roots) = self.rendered_roots(revision)? else {
            let (place, revision) = (self.shared.place.clone(), revision.clone());
            return Err(SourceError::Unrendered { place, revision });
        };
        let mut plain = renderer.plain_part(raw);
        plain.files.retain(|file| roots.binary_search_by(|root| root.path.cmp(&file.path)).is_err());
        let snapshot = RenderedSnapshot::of_known_roots(plain, roots.to_vec()).into_snapshot();
        if !snapshot.files.is_empty() || !snapshot.is_complete() {
            return Ok(snapshot);
        }
        let (place, within) = (self.shared.place.clone(), self.within(revision));
        Err(match &*roots {
            [] => SourceError::OnlyParts { place, within },
            _ => SourceError::NothingRendered { place, within },
        })
    }

    /// Lists the files of a revision as they are.
    pub(super) fn raw_snapshot(&self, revision: &Revision) -> Result<Snapshot, SourceError> {
        self.pass(|objects| self.list(objects, revision))
    }

    /// Lists the files of a whole revision as they are, where the source's root is a folder of it.
    /// Its objects may have been elsewhere then. None where its root is the revision's own.
    pub(crate) fn whole_snapshot(&self, revision: &Revision) -> Result<Option<Snapshot>, SourceError> {
        if self.shared.path.is_none() || self.shared.form == RevisionForm::Snapshots {
            return Ok(None);
        }
        self.pass(|objects| {
            let root = self.find_whole(objects, revision)?.tree_id();
            self.list_tree(objects, revision, root, Vec::new()).map(Some)
        })
    }

    /// Returns every file of the snapshot of a folder, ordered by path, and what it had refused.
    pub(super) fn frozen_files(
        &self,
        revision: &Revision,
    ) -> Result<(Vec<FolderEntry>, Vec<RefusedFile>), SourceError> {
        self.pass(|objects| {
            let commit = self.find_whole(objects, revision)?;
            let (_, mut refusals) = self.source_root(objects, revision)?;
            refusals.sort_unstable();
            let mut files = Vec::new();
            self.add_frozen(objects, commit.tree_id(), "", &mut files)?;
            files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            Ok((files, refusals))
        })
    }

    fn add_frozen(
        &self,
        objects: &ObjectStores,
        folder: Oid,
        path: &str,
        files: &mut Vec<FolderEntry>,
    ) -> Result<(), SourceError> {
        let damaged = |error: git2::Error| self.damaged_error(&error);
        for entry in &objects.tree(folder).map_err(damaged)? {
            let Ok(name) = std::str::from_utf8(entry.name_bytes()) else { continue };
            let path = tree::join(path, name);
            match tree::kind(entry.filemode_raw()) {
                EntryKind::Folder => self.add_frozen(objects, entry.id(), &path, files)?,
                _ => files.push((path, entry.id(), objects.size(entry.id()).map_err(damaged)?)),
            }
        }
        Ok(())
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

    /// Compares two revisions at the cost of their difference. None where more than contents of
    /// files differ (an ignore file, a refused file), so that only whole snapshots can be compared.
    /// Otherwise the refused files are the same in both.
    pub(crate) fn plain_changes(
        &self,
        from: &Revision,
        to: &Revision,
    ) -> Result<Option<Vec<ChangedFile>>, SourceError> {
        if self.rendered_tree(from)? != self.rendered_tree(to)? {
            return Ok(None);
        }
        if from == to {
            // It may have been rendered again since.
            return Ok(self.renderer().is_none().then(Vec::new));
        }
        self.pass(|objects| {
            let (old, _) = self.source_root(objects, from)?;
            let (new, _) = self.source_root(objects, to)?;
            let pairs = changes::compare(objects, old, new, self.shared.limits.entries)
                .map_err(|stop| self.stop(stop))?;
            Ok(pairs.map(|pairs| self.with_sizes(objects, pairs)).transpose()?.flatten())
        })
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
        let reader = self.clone();
        run_bounded(&self.shared.place, self.shared.limits.time, move || read(&reader)).await?
    }

    /// Runs a short look. Unlike a pass, it uses handles again that were opened less than a second
    /// ago. Their answers are right, as the id stands for the content, and a missing object is
    /// looked for with fresh ones.
    pub(super) fn read_objects<T: Send>(
        &self,
        mut run: impl FnMut(&ObjectStores) -> Result<T, SourceError> + Send,
    ) -> Result<T, SourceError> {
        let handles = &self.shared.handles;
        let handle =
            handles.take().or_else(|| ObjectStores::open(&self.shared.stores).map(PooledHandle::new).ok());
        if let Some(PooledHandle { opened, objects }) = handle
            && let Ok((objects, Ok(done))) = objects.read_in_sandbox(&mut run)
        {
            handles.put_back(PooledHandle { opened, objects });
            return Ok(done);
        }
        self.pass(run)
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
    pub(super) fn most_entries(&self) -> usize {
        self.shared.limits.entries
    }

    /// Returns the most bytes of a file that is read.
    pub(super) fn most_bytes(&self) -> u64 {
        self.shared.limits.file
    }

    /// Closes what reads may have left open for the next ones.
    pub(crate) fn close(&self) {
        self.shared.handles.clear();
    }

    /// Runs a pass over fresh handles, and once more if the stores disappoint.
    pub(super) fn pass<T: Send>(
        &self,
        mut run: impl FnMut(&ObjectStores) -> Result<T, SourceError> + Send,
    ) -> Result<T, SourceError> {
        let mut attempt = || {
            let opened = ObjectStores::open(&self.shared.stores);
            let read = opened.and_then(|objects| objects.read_in_sandbox(&mut run));
            read.map_err(|error| error.into_source_error(&self.shared.place))?.1
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
        let unknown =
            || SourceError::Unknown { place: self.shared.place.clone(), revision: revision.clone() };
        let id = Oid::from_str(revision.as_str()).map_err(|_| unknown())?;
        objects.commit(id).map_err(|error| match error.code() {
            ErrorCode::NotFound => unknown(),
            _ => self.damaged_error(&error),
        })
    }

    /// Returns a commit whose files are here too, and not it alone as a part of the history.
    fn find_whole<'a>(
        &self,
        objects: &'a ObjectStores,
        revision: &Revision,
    ) -> Result<git2::Commit<'a>, SourceError> {
        let commit = self.find(objects, revision)?;
        if objects.exists(commit.tree_id()) {
            return Ok(commit);
        }
        Err(SourceError::Unknown { place: self.shared.place.clone(), revision: revision.clone() })
    }

    /// Returns the tree that is the source's root, and what the snapshot of a folder had refused.
    fn source_root(
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
            let what = match entry.as_ref().map(|entry| tree::kind(entry.filemode_raw())) {
                Some(EntryKind::Folder) => None,
                None => Some("no folder"),
                Some(EntryKind::File | EntryKind::Other) => Some("a file, not a folder, is at"),
                Some(EntryKind::Symlink) => Some("a symbolic link, which is not followed, is at"),
                Some(EntryKind::Submodule) => Some("a submodule, which is not read, is at"),
            };
            if let Some(what) = what {
                let (place, revision) = (self.shared.place.clone(), revision.clone());
                return Err(SourceError::NoPath { place, path: walked, what, revision });
            }
            id = entry.map_or(id, |entry| entry.id());
        }
        Ok((id, refusals))
    }

    fn list(&self, objects: &ObjectStores, revision: &Revision) -> Result<Snapshot, SourceError> {
        let (root, refusals) = self.source_root(objects, revision)?;
        self.list_tree(objects, revision, root, refusals)
    }

    fn list_tree(
        &self,
        objects: &ObjectStores,
        revision: &Revision,
        root: Oid,
        mut refusals: Vec<RefusedFile>,
    ) -> Result<Snapshot, SourceError> {
        let mut found = Vec::new();
        let walk = TreeWalk::new(objects, self.shared.limits.entries, |entry| {
            match entry {
                WalkSink::File(path, id) => found.push((path, id)),
                WalkSink::Refused(refusal) => refusals.push(refusal),
            }
            ControlFlow::Continue(())
        });
        walk.run(root).map_err(|stop| self.stop(stop))?;
        let in_order = |pair: &[(String, Oid)]| matches!(pair, [a, b] if a.0 < b.0);
        if !found.windows(2).all(in_order) {
            refusals.extend(tree::put_in_order(&mut found));
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
        if files.is_empty() && refusals.is_empty() {
            return Err(self.empty_error(revision));
        }
        refusals.sort();
        let refused = refusals.iter().map(RefusedFile::diagnostic).collect();
        Ok(Snapshot::of_files(revision.clone(), files, refused))
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
    fn with_sizes(
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

    fn empty_error(&self, revision: &Revision) -> SourceError {
        SourceError::Empty { place: self.shared.place.clone(), within: self.within(revision) }
    }

    fn within(&self, revision: &Revision) -> String {
        let folder = self.shared.path.as_ref().map(|path| format!("folder {path} of ")).unwrap_or_default();
        format!("{folder}revision {}", revision.short_name())
    }

    pub(super) fn stop(&self, stop: WalkStop) -> SourceError {
        match stop {
            WalkStop::Git(error) => self.damaged_error(&error),
            WalkStop::TooMany => {
                SourceError::TooMany { place: self.shared.place.clone(), limit: self.shared.limits.entries }
            }
        }
    }

    pub(super) fn damaged_error(&self, error: &git2::Error) -> SourceError {
        SourceError::Damaged { place: self.shared.place.clone(), detail: error.message().to_owned() }
    }
}

/// Returns who made a commit, or what for, as it may be shown anywhere.
fn printable_text(text: &[u8]) -> String {
    sanitize(&String::from_utf8_lossy(text)).into_owned()
}
