//! Every entry of a folder as it is on disk, whatever its name: for what is rendered of it.
//!
//! **Invariant:** what is there and cannot be read is an entry of its own. A render would take a
//! file that is left out for one that nobody wants any more.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::error::SourceError;
use super::file_names;
use super::folder::{self, FileStat, OpenFolder};
use super::reader::MAX_FOLDER_ENTRIES;
use super::refusal::RefusalReason;
use super::tree::EntryBudget;

/// The bytes of a followed folder that are frozen for its renders.
const MAX_FROZEN_BYTES: u64 = 512 << 20;

/// The entry at a path of a folder; a folder that is entered is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedEntry {
    pub(super) path: String,
    pub(super) form: EntryForm,
}

/// The form of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryForm {
    /// A regular file, which was not read yet.
    File(FileStat),
    /// A link, by its text.
    Link(Vec<u8>),
    /// Something that is not read. Nothing below it is listed.
    Defect(RefusalReason),
}

impl OpenFolder {
    /// Lists all entries, ordered by path, but for what belongs to a repository itself. A name that
    /// is no UTF-8 is a defect: no path leads to it.
    pub(super) fn list_everything(&self) -> Result<Vec<ListedEntry>, SourceError> {
        let mut walk = EntryWalk {
            root: self,
            budget: EntryBudget::new(MAX_FOLDER_ENTRIES),
            bytes: 0,
            folders: Vec::new(),
            unlisted: Vec::new(),
            forms: BTreeMap::new(),
        };
        walk.run()?;
        let EntryWalk { mut forms, unlisted, .. } = walk;
        for folder in unlisted {
            refuse_folder(&mut forms, folder);
        }
        Ok(forms.into_iter().map(|(path, form)| ListedEntry { path, form }).collect())
    }
}

struct EntryWalk<'a> {
    root: &'a OpenFolder,
    budget: EntryBudget,
    bytes: u64,
    /// The folders on the way to the present entry, the outermost first.
    folders: Vec<PathBuf>,
    /// The folders that could not be listed to their end.
    unlisted: Vec<String>,
    forms: BTreeMap<String, EntryForm>,
}

impl EntryWalk<'_> {
    fn run(&mut self) -> Result<(), SourceError> {
        let mut entries = WalkDir::new(self.root.path()).min_depth(1).into_iter();
        while let Some(entry) = entries.next() {
            let path = entry.as_ref().map(DirEntry::path);
            self.root.count(&mut self.budget, path.unwrap_or(self.root.path()))?;
            match entry {
                Err(error) => self.fail(error)?,
                Ok(entry) if entry.file_type().is_dir() => {
                    if !self.enter(&entry) {
                        entries.skip_current_dir();
                    }
                }
                Ok(entry) => self.take(&entry)?,
            }
        }
        Ok(())
    }

    /// Returns the path from the root, with signs in place of bytes that are no UTF-8.
    fn relative_path(&self, path: &Path) -> String {
        path.strip_prefix(self.root.path()).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Notes what cannot be listed; that the root itself cannot is an error. The next pass sees what
    /// is gone meanwhile as it is then.
    fn fail(&mut self, error: walkdir::Error) -> Result<(), SourceError> {
        // An error amidst the names of a folder names nothing. The folder is one level above them.
        let folder = error.depth().checked_sub(2).and_then(|level| self.folders.get(level));
        let path = error.path().or(folder.map(PathBuf::as_path)).unwrap_or(self.root.path()).to_owned();
        let error = error.into_io_error().unwrap_or_else(|| io::Error::other("a loop of folders"));
        if path == self.root.path() {
            return Err(folder::folder_error(&path, error));
        }
        if error.kind() != io::ErrorKind::NotFound {
            self.unlisted.push(self.relative_path(&path));
        }
        Ok(())
    }

    /// Returns whether a folder is to be entered.
    fn enter(&mut self, entry: &DirEntry) -> bool {
        if is_own(entry) {
            return false;
        }
        let path = self.relative_path(entry.path());
        self.folders.truncate(entry.depth().saturating_sub(1));
        self.folders.push(entry.path().to_owned());
        let reason = if entry.file_name().to_str().is_none() {
            RefusalReason::Unreadable
        } else if entry.depth() > file_names::MAX_FOLDER_DEPTH {
            RefusalReason::TooDeep
        } else if fs::symlink_metadata(entry.path().join(".git")).is_ok() {
            RefusalReason::Submodule
        } else {
            return true;
        };
        self.forms.insert(path, EntryForm::Defect(reason));
        false
    }

    fn take(&mut self, entry: &DirEntry) -> Result<(), SourceError> {
        if is_own(entry) {
            return Ok(());
        }
        let (path, kind) = (self.relative_path(entry.path()), entry.file_type());
        let form = if entry.file_name().to_str().is_none() {
            Ok(EntryForm::Defect(RefusalReason::Unreadable))
        } else if kind.is_symlink() {
            fs::read_link(entry.path()).map(|target| EntryForm::Link(target.into_os_string().into_vec()))
        } else if kind.is_file() {
            let metadata = entry.metadata().map_err(io::Error::from);
            metadata.map(|metadata| EntryForm::File(FileStat::of(&metadata)))
        } else {
            Ok(EntryForm::Defect(RefusalReason::NotAFile))
        };
        let form = match form {
            Ok(form) => form,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => EntryForm::Defect(RefusalReason::Unreadable),
        };
        if let EntryForm::File(stat) = &form {
            self.add_bytes(stat.size)?;
        }
        self.forms.insert(path, form);
        Ok(())
    }

    fn add_bytes(&mut self, size: u64) -> Result<(), SourceError> {
        self.bytes += size;
        if self.bytes > MAX_FROZEN_BYTES {
            let shown_location = self.root.path().display().to_string();
            return Err(SourceError::TooLarge { shown_location, size: self.bytes, limit: MAX_FROZEN_BYTES });
        }
        Ok(())
    }
}

/// Returns whether an entry belongs to a repository itself.
fn is_own(entry: &DirEntry) -> bool {
    entry.file_name().eq_ignore_ascii_case(".git")
}

/// Puts a defect in the place of a folder and of all that was listed below it.
fn refuse_folder(forms: &mut BTreeMap<String, EntryForm>, folder: String) {
    let below = format!("{folder}/");
    forms.retain(|path, _| !path.starts_with(&below));
    forms.insert(folder, EntryForm::Defect(RefusalReason::Unreadable));
}

#[cfg(test)]
mod tests {
    use super::*;

    // A disk may fail in the middle of a list.
    #[test]
    fn of_a_folder_that_was_listed_in_part_nothing_is_left() {
        let check = |listed: &[&str], folder: &str, expected: &[&str]| {
            let link = |path: &&str| ((*path).to_owned(), EntryForm::Link(Vec::new()));
            let mut forms: BTreeMap<String, EntryForm> = listed.iter().map(link).collect();
            refuse_folder(&mut forms, folder.to_owned());
            assert_eq!(forms.remove(folder), Some(EntryForm::Defect(RefusalReason::Unreadable)));
            assert_eq!(forms.into_keys().collect::<Vec<_>>(), expected);
        };
        check(&["a/b/c", "a/b/d/e", "a/b.yaml", "a/bc"], "a/b", &["a/b.yaml", "a/bc"]);
        check(&["a", "b/c"], "d", &["a", "b/c"]);
    }
}
