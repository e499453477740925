//! The files of a repository outside one folder of its work tree, now and at earlier revisions.

use std::path::{Path, PathBuf};

use super::disk_snapshot::repository_around;
use super::error::SourceError;
use super::folder::{FileReadResult, OpenFolder};
use super::location;
use super::object_stores::StorePath;
use super::reader::{MAX_SOURCE_FILE_BYTES, ReadLimits, RevisionForm, RevisionReader};
use super::snapshot::BlobId;
use crate::object::Revision;

/// The files outside a folder.
pub(crate) struct OutsideFiles {
    top: PathBuf,
    /// The path to the folder, with a slash behind it.
    folder: String,
    reader: RevisionReader,
}

/// One of these files as it is now.
pub(crate) struct OutsideFile {
    /// The path in the repository.
    pub path: String,
    /// The id of its content.
    pub blob: BlobId,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl OutsideFiles {
    /// Finds the work tree around a folder. None where no work tree holds it, or where the folder
    /// is all of one.
    ///
    /// # Errors
    /// Fails where the folder is not there, or where its `.git` leads elsewhere.
    pub(crate) fn of_folder(folder: &Path) -> Result<Option<Self>, SourceError> {
        let Some((top, inside)) = repository_around(folder)? else { return Ok(None) };
        if inside.is_empty() || location::is_bare(&top) {
            return Ok(None);
        }
        let (stores, shown_location) = (vec![StorePath::Trusted(top.clone())], top.display().to_string());
        let reader =
            RevisionReader::new(stores, RevisionForm::Commits, shown_location, None, ReadLimits::default());
        Ok(Some(Self { top, folder: format!("{inside}/"), reader }))
    }

    /// Calls `visit` with each file that could hold manifests. A file that is not read names
    /// nothing.
    ///
    /// # Errors
    /// Fails where the work tree cannot be listed.
    pub(crate) fn visit(&self, mut visit: impl FnMut(OutsideFile)) -> Result<(), SourceError> {
        let top = OpenFolder::open(&self.top)?;
        for (path, _) in top.list()?.files {
            if self.is_inside(&path) {
                continue;
            }
            if let Ok(FileReadResult::Whole(_, bytes)) = top.read(&path, MAX_SOURCE_FILE_BYTES) {
                visit(OutsideFile { path, blob: BlobId::of(&bytes), bytes });
            }
        }
        Ok(())
    }

    /// Lists the files that could hold manifests, as they were at a revision; none where that is no
    /// commit of the repository.
    ///
    /// # Errors
    /// Fails where the repository cannot be read.
    pub(crate) fn list_at(&self, revision: &Revision) -> Result<Option<Vec<(String, BlobId)>>, SourceError> {
        let Some(commit) = self.reader.find_by_prefix(&revision.to_string())? else { return Ok(None) };
        let files = match self.reader.snapshot(&commit) {
            // The id of files that were never committed is that of no commit.
            Err(SourceError::Unknown { .. }) => return Ok(None),
            snapshot => snapshot?.files.into_iter(),
        };
        let outside = files.filter(|file| !self.is_inside(&file.path));
        Ok(Some(outside.map(|file| (file.path.to_string(), file.blob)).collect()))
    }

    /// Reads a content of an earlier revision.
    ///
    /// # Errors
    /// Fails where the repository does not have it.
    pub(crate) fn read(&self, blob: BlobId) -> Result<Vec<u8>, SourceError> {
        self.reader.read(blob)
    }

    fn is_inside(&self, path: &str) -> bool {
        path.starts_with(&self.folder)
    }
}
