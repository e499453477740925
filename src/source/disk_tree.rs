//! Every file below a folder on disk, judged one by one: for the commands that run once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::SourceError;
use super::file_names;
use super::folder::{self, FileReadResult, OpenFolder};
use super::reader::MAX_SOURCE_FILE_BYTES;
use super::refusal::RefusalReason;
use super::revision_tree::{
    FileDefect, MAX_LINK_TARGET_BYTES, RevisionTree, TreeBounds, TreeEntry, TreeFile, TreeLink,
};
use super::snapshot::BlobId;

/// The number of tries to read a file that changes meanwhile.
const READ_ATTEMPTS: usize = 5;

/// Every file below a folder on disk. A file that was read once stays as it was then, so that it is
/// the same wherever it is needed. Its `Debug` form leaves the files out.
pub struct DiskTree {
    root: OpenFolder,
    shown_location: String,
    bounds: TreeBounds,
    seen: Mutex<SeenFiles>,
}

#[derive(Default)]
struct SeenFiles {
    entries: HashMap<String, Option<TreeEntry>>,
    bytes: HashMap<BlobId, Arc<[u8]>>,
}

impl std::fmt::Debug for DiskTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskTree").field("shown_location", &self.shown_location).finish_non_exhaustive()
    }
}

impl DiskTree {
    /// Opens the folder of a work tree. Nothing above it is ever read.
    ///
    /// # Errors
    /// Fails where no folder is there, or where it cannot be read.
    pub fn open(root: &Path) -> Result<Self, SourceError> {
        let shown_location = root.display().to_string();
        let (bounds, seen) = (TreeBounds::Repository, Mutex::default());
        Ok(Self { root: OpenFolder::open(&folder::resolve(root)?)?, shown_location, bounds, seen })
    }

    /// Does the same as [`DiskTree::open`], for a folder that is in no work tree.
    ///
    /// # Errors
    /// As [`DiskTree::open`].
    pub fn open_alone(root: &Path) -> Result<Self, SourceError> {
        Ok(Self { bounds: TreeBounds::LoneFolder, ..Self::open(root)? })
    }

    /// Returns its limits.
    pub const fn bounds(&self) -> TreeBounds {
        self.bounds
    }

    /// Does the same as [`super::RevisionTree::entry`]. A repository's own files are not there.
    ///
    /// # Errors
    /// Fails where the folder cannot be read.
    pub fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        // The look at each folder on the way is recursive.
        if path.matches('/').count() > file_names::MAX_FOLDER_DEPTH {
            return Ok(None);
        }
        if let Some(known) = self.lock_seen_files().entries.get(path) {
            return Ok(known.clone());
        }
        let entry = self.read_entry(path)?;
        self.lock_seen_files().entries.insert(path.to_owned(), entry.clone());
        Ok(entry)
    }

    /// Returns whether everything that was looked at is the same in a revision.
    pub(super) fn is_as_in(&self, revision: &RevisionTree) -> bool {
        let looked_at = self.lock_seen_files().entries.clone();
        looked_at.iter().all(|(path, entry)| revision.entry(path).is_ok_and(|there| there == *entry))
    }

    /// Does the same as [`super::RevisionTree::names`].
    ///
    /// # Errors
    /// Fails where the folder cannot be read.
    pub fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError> {
        if self.entry(folder)? != Some(TreeEntry::Folder) {
            return Ok(None);
        }
        let names = self.root.names(folder).map_err(|error| self.read_error(folder, error))?;
        Ok(Some(names.into_iter().filter(|name| !is_hidden(name)).collect()))
    }

    /// Returns the bytes of a file that was looked at.
    ///
    /// # Errors
    /// Fails where the folder cannot be read.
    pub fn read(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError> {
        let lost = || self.read_error(&blob.to_string(), io::ErrorKind::NotFound.into());
        self.lock_seen_files().bytes.get(&blob).cloned().ok_or_else(lost)
    }

    /// Reads every folder on the way first, so that no link and no nested repository is on it.
    fn read_entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        if path.is_empty() {
            return Ok(Some(TreeEntry::Folder));
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if is_hidden(name) || self.entry(parent)? != Some(TreeEntry::Folder) {
            return Ok(None);
        }
        let Some(metadata) = self.root.metadata(path).map_err(|error| self.read_error(path, error))? else {
            return Ok(None);
        };
        if metadata.is_dir() {
            let nested = self.root.metadata(&format!("{path}/.git")).is_ok_and(|found| found.is_some());
            let entry = if nested { TreeEntry::Defect(FileDefect::Submodule) } else { TreeEntry::Folder };
            return Ok(Some(entry));
        }
        if metadata.is_symlink() {
            return self.link(path);
        }
        self.file(path, &metadata)
    }

    fn link(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        let target = self.root.read_link(path).map_err(|error| self.read_error(path, error))?;
        let text = target.to_str().filter(|text| text.len() as u64 <= MAX_LINK_TARGET_BYTES);
        Ok(Some(text.map_or(TreeEntry::Defect(FileDefect::BadLink), |text| {
            TreeEntry::Link(TreeLink { blob: BlobId::of(text.as_bytes()), target: text.to_owned() })
        })))
    }

    fn file(&self, path: &str, metadata: &fs::Metadata) -> Result<Option<TreeEntry>, SourceError> {
        for _ in 0..READ_ATTEMPTS {
            return Ok(match self.root.read(path, MAX_SOURCE_FILE_BYTES) {
                Ok(FileReadResult::Moving) => continue,
                Ok(FileReadResult::Gone) => None,
                Ok(FileReadResult::Refused(reason)) => Some(TreeEntry::Defect(reason.into())),
                Ok(FileReadResult::Whole(_, bytes)) => Some(match file_names::refused_content(&bytes) {
                    Some(reason) => TreeEntry::Defect(reason.into()),
                    None => self.keep(bytes, metadata.permissions().mode() & 0o111 != 0),
                }),
                Err(_) => Some(TreeEntry::Defect(RefusalReason::Unreadable.into())),
            });
        }
        Err(SourceError::Moving { shown_location: self.shown_location.clone() })
    }

    fn keep(&self, bytes: Vec<u8>, is_executable: bool) -> TreeEntry {
        let (blob, size) = (BlobId::of(&bytes), bytes.len() as u64);
        self.lock_seen_files().bytes.insert(blob, bytes.into());
        TreeEntry::File(TreeFile { blob, size, is_executable })
    }

    fn read_error(&self, path: &str, error: io::Error) -> SourceError {
        SourceError::Unreadable { shown_location: format!("{}: {path}", self.shown_location), error }
    }

    fn lock_seen_files(&self) -> std::sync::MutexGuard<'_, SeenFiles> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a name leads to no file of the tree. It may lead to another folder than it says,
/// or to a repository's own files, which hold its credentials.
fn is_hidden(name: &str) -> bool {
    matches!(name, "" | "." | "..") || name.eq_ignore_ascii_case(".git")
}
