//! Every file of one revision, judged one by one: for what is rendered from files of any name.
//!
//! A [`super::Snapshot`] lists what could be a manifest; this lists nothing in advance and leaves
//! nothing out. It reads only the folders that lead to what is asked for.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use git2::{Oid, Tree};

use super::changes;
use super::error::SourceError;
use super::file_names::{self, EntryKind};
use super::object_stores::ObjectStores;
use super::reader::{RevisionForm, RevisionReader};
use super::refusal::RefusalReason;
use super::snapshot::BlobId;
use super::tree::{self, EntryBudget, WalkStop};
use super::tree_listing::{ModeAndObject, TreeListing};

/// The longest path that the system takes: a longer target of a link leads nowhere.
pub(super) const MAX_LINK_TARGET_BYTES: u64 = 4096;

/// Entries of a folder that are judged by one look. Each costs some microseconds, and a look of its
/// own about a hundred.
const MAX_READ_AHEAD_FILES: usize = 100;

/// The kind of entry at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEntry {
    /// A folder.
    Folder,
    /// A regular file.
    File(TreeFile),
    /// A symbolic link.
    Link(TreeLink),
    /// Something that is not read.
    Defect(FileDefect),
}

/// The limits of a tree of files: a path that leads out of them leads to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeBounds {
    /// A repository or its work tree.
    #[default]
    Repository,
    /// The folder of a source that follows no repository.
    Directory,
    /// A folder that is in no work tree.
    LoneFolder,
}

/// A regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Its content's id.
    pub blob: BlobId,
    /// Its content's size in bytes.
    pub size: u64,
    /// Indicates whether it may be executed.
    pub is_executable: bool,
}

/// A symbolic link, not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeLink {
    /// The id of its text.
    pub blob: BlobId,
    /// Its text.
    pub target: String,
}

/// The reason for which a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileDefect {
    /// Larger than [`super::MAX_SOURCE_FILE_BYTES`].
    TooLarge,
    /// A pointer of Git LFS in place of the content.
    LfsPointer,
    /// A submodule or a nested repository.
    Submodule,
    /// A pipe, a device or the like.
    NotAFile,
    /// A link whose text is no path.
    BadLink,
    /// The system does not let it be read.
    Unreadable,
    /// A folder below too many others.
    TooDeep,
}

impl From<RefusalReason> for FileDefect {
    fn from(reason: RefusalReason) -> Self {
        match reason {
            RefusalReason::TooLarge => Self::TooLarge,
            RefusalReason::Lfs => Self::LfsPointer,
            RefusalReason::Submodule => Self::Submodule,
            RefusalReason::Unreadable => Self::Unreadable,
            RefusalReason::TooDeep => Self::TooDeep,
            RefusalReason::Kustomization
            | RefusalReason::Chart
            | RefusalReason::Symlink
            | RefusalReason::Name
            | RefusalReason::NotAFile
            | RefusalReason::BadIgnore => Self::NotAFile,
        }
    }
}

/// Every file of one revision. Folders are remembered once they were read.
#[derive(Debug)]
pub(crate) struct RevisionTree {
    reader: RevisionReader,
    root: Oid,
    folders: Mutex<FolderMemory>,
}

#[derive(Debug, Default)]
struct FolderMemory {
    /// None where no folder is at the path.
    listings: HashMap<String, Option<Arc<TreeListing>>>,
    /// The judged entries of listings, by mode and object.
    classified: HashMap<ModeAndObject, TreeEntry>,
    /// The entries that may still be in all of them; none before the first one.
    budget: Option<EntryBudget>,
}

/// The memory of the entry at a path.
#[derive(Debug)]
enum EntryMemory {
    /// The entry, or that none is there.
    Known(Option<TreeEntry>),
    /// Nothing: it has to be looked up.
    Unread,
}

impl RevisionTree {
    pub(super) fn new(reader: RevisionReader, root: Oid) -> Self {
        Self { reader, root, folders: Mutex::default() }
    }

    /// Returns its limits.
    pub(crate) fn bounds(&self) -> TreeBounds {
        self.reader.bounds()
    }

    /// Returns the same revision with nothing remembered of it, and no handle left open.
    pub(crate) fn fresh_copy(&self) -> Self {
        Self::new(self.reader.with_own_handles(), self.root)
    }

    /// Returns what is at a path, which is `/` between names that are neither empty nor dots.
    /// Follows no link; the empty path is the root.
    pub(crate) fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        if path.is_empty() {
            return Ok(Some(TreeEntry::Folder));
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let EntryMemory::Known(known) = self.entry_memory(folder, name) {
            return Ok(known);
        }
        self.reader.read_objects(|objects| {
            let listing = self.listing(objects, folder)?;
            let found = listing.as_ref().and_then(|listing| Some((listing, listing.get(name)?)));
            let Some((listing, (mode, id))) = found else { return Ok(None) };
            let entry = self.classify_entry(objects, mode, id)?;
            if entry != TreeEntry::Folder {
                self.memory().classified.insert((mode, id), entry.clone());
                self.classify_ahead(objects, listing, name);
            }
            Ok(Some(entry))
        })
    }

    /// Returns what is known of a path without a look, which takes a thread in a followed
    /// repository.
    fn entry_memory(&self, folder: &str, name: &str) -> EntryMemory {
        let memory = self.memory();
        let Some(listing) = memory.listings.get(folder) else { return EntryMemory::Unread };
        match listing.as_ref().and_then(|listing| listing.get(name)) {
            None => EntryMemory::Known(None),
            Some((mode, _)) if tree::kind(mode) == EntryKind::Folder => {
                EntryMemory::Known(Some(TreeEntry::Folder))
            }
            Some(found) => match memory.classified.get(&found) {
                Some(entry) => EntryMemory::Known(Some(entry.clone())),
                None => EntryMemory::Unread,
            },
        }
    }

    /// Remembers what is at the names after this one: whoever asks for one file of a folder asks
    /// for its neighbours too.
    fn classify_ahead(&self, objects: &ObjectStores, listing: &TreeListing, name: &str) {
        for found in listing.after(name).take(MAX_READ_AHEAD_FILES - 1) {
            if self.memory().classified.contains_key(&found) {
                continue;
            }
            // An entry that cannot be read fails where it is asked for itself.
            if let Ok(entry) = self.classify_entry(objects, found.0, found.1) {
                self.memory().classified.insert(found, entry);
            }
        }
    }

    /// Returns the names in a folder; none where no folder is at the path. A name that is no UTF-8
    /// has signs in place of its odd bytes. No path leads to it, so that nothing is found there.
    pub(crate) fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError> {
        let listing = self.reader.read_objects(|objects| self.listing(objects, folder))?;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        Ok(listing.map(|listing| listing.names().map(text).collect()))
    }

    /// Reads a file's bytes.
    pub(crate) fn read(&self, blob: BlobId) -> Result<Vec<u8>, SourceError> {
        self.reader.read(blob)
    }

    /// Reads the bytes of many files in this order: all are in memory at once.
    pub(crate) fn read_all(&self, blobs: &[BlobId]) -> Result<Vec<Arc<[u8]>>, SourceError> {
        self.reader.read_all(blobs.iter().copied(), |_, bytes| Ok(bytes.into()))
    }

    /// Returns the paths of all files that differ between this revision and another, in order, at
    /// the cost of their difference. Of a file in whose place a folder came, both are named.
    pub(crate) fn changed_paths(&self, newer: &Self) -> Result<Vec<String>, SourceError> {
        self.reader.read_objects(|objects| {
            let budget = EntryBudget::new(self.reader.max_entries());
            let mut diff = TreeDiff { objects, budget, paths: Vec::new() };
            let done = diff.folders(Some(self.root), Some(newer.root), String::new(), 0);
            done.map_err(|stop| self.reader.stop(stop))?;
            // Nearly always they are in order already.
            diff.paths.sort_unstable();
            Ok(diff.paths)
        })
    }

    /// Returns the entries of a folder, each level from memory or read once.
    fn listing(&self, objects: &ObjectStores, folder: &str) -> Result<Option<Arc<TreeListing>>, SourceError> {
        if let Some(known) = self.memory().listings.get(folder) {
            return Ok(known.clone());
        }
        if folder.matches('/').count() >= file_names::MAX_FOLDER_DEPTH {
            return Ok(None);
        }
        let id = match folder.rsplit_once('/').unwrap_or(("", folder)) {
            (_, "") if folder.is_empty() => Some(self.root),
            (parent, name) => self
                .listing(objects, parent)?
                .and_then(|listing| listing.get(name))
                .filter(|(mode, _)| tree::kind(*mode) == EntryKind::Folder)
                .map(|(_, id)| id),
        };
        let listing = id.map(|id| self.load(objects, id)).transpose()?;
        self.memory().listings.insert(folder.to_owned(), listing.clone());
        Ok(listing)
    }

    fn load(&self, objects: &ObjectStores, id: Oid) -> Result<Arc<TreeListing>, SourceError> {
        let (tree, bytes) = objects.sized_tree(id).map_err(|error| self.reader.damaged_error(&error))?;
        let most = self.reader.max_entries();
        let mut memory = self.memory();
        let budget = memory.budget.get_or_insert_with(|| EntryBudget::new(most));
        budget.take_tree(&tree, bytes).map_err(|stop| self.reader.stop(stop))?;
        Ok(Arc::new(TreeListing::of(&tree)))
    }

    fn classify_entry(&self, objects: &ObjectStores, mode: i32, id: Oid) -> Result<TreeEntry, SourceError> {
        let blob = BlobId::from_oid(id);
        let damaged = |error: git2::Error| self.reader.damaged_error(&error);
        Ok(match tree::kind(mode) {
            EntryKind::Folder => TreeEntry::Folder,
            EntryKind::Submodule => TreeEntry::Defect(FileDefect::Submodule),
            EntryKind::Other => TreeEntry::Defect(self.recorded_defect(id)),
            EntryKind::Symlink => {
                let is_path = objects.size(id).map_err(damaged)? <= MAX_LINK_TARGET_BYTES;
                let text = is_path.then(|| objects.read(id).map_err(damaged)).transpose()?;
                let target = text.and_then(|text| String::from_utf8(text).ok());
                target.map_or(TreeEntry::Defect(FileDefect::BadLink), |target| {
                    TreeEntry::Link(TreeLink { blob, target })
                })
            }
            EntryKind::File => match self.reader.check_size(objects, id)? {
                Ok(size) => TreeEntry::File(TreeFile { blob, size, is_executable: mode & 0o111 != 0 }),
                Err(reason) => TreeEntry::Defect(reason.into()),
            },
        })
    }

    /// Returns the reason for which an entry of a folder was not frozen. Only our own snapshots say
    /// one: whoever may write to a repository could put any into it.
    fn recorded_defect(&self, id: Oid) -> FileDefect {
        match self.reader.form() {
            RevisionForm::Snapshots => {
                RefusalReason::of_id(id).map_or(FileDefect::NotAFile, FileDefect::from)
            }
            RevisionForm::Commits => FileDefect::NotAFile,
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, FolderMemory> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The comparison of two trees by all their names, without a look at their equal parts.
struct TreeDiff<'a> {
    objects: &'a ObjectStores,
    budget: EntryBudget,
    paths: Vec<String>,
}

impl TreeDiff<'_> {
    fn folders(
        &mut self,
        old: Option<Oid>,
        new: Option<Oid>,
        path: String,
        depth: usize,
    ) -> Result<(), WalkStop> {
        if depth > file_names::MAX_FOLDER_DEPTH {
            self.budget.take_path(&path)?;
            self.paths.push(path);
            return Ok(());
        }
        let [old, new] = self.budget.load(self.objects, [old, new])?;
        let mut olds = old.iter().flat_map(Tree::iter).peekable();
        let mut new_entries = new.iter().flat_map(Tree::iter).peekable();
        loop {
            let side = match (olds.peek(), new_entries.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => changes::compare_names(a, b),
            };
            let before = if side.is_le() { olds.next() } else { None };
            let after = if side.is_ge() { new_entries.next() } else { None };
            let part = |entry: &git2::TreeEntry<'_>| (entry.filemode_raw(), entry.id());
            let (old, new) = (before.as_ref().map(part), after.as_ref().map(part));
            let Some(name) = after.as_ref().or(before.as_ref()).map(git2::TreeEntry::name_bytes) else {
                continue;
            };
            if old != new {
                self.entry(old, new, tree::join(&path, &file_names::sanitize_text(name)), depth)?;
            }
        }
    }

    fn entry(
        &mut self,
        old: Option<(i32, Oid)>,
        new: Option<(i32, Oid)>,
        path: String,
        depth: usize,
    ) -> Result<(), WalkStop> {
        let folder = |side: Option<(i32, Oid)>| side.filter(|side| tree::kind(side.0) == EntryKind::Folder);
        let (folders, files) = ((folder(old), folder(new)), (old, new));
        if folders != files {
            self.budget.take_path(&path)?;
            self.paths.push(path.clone());
        }
        if folders == (None, None) {
            return Ok(());
        }
        self.folders(folders.0.map(|(_, id)| id), folders.1.map(|(_, id)| id), path, depth + 1)
    }
}
