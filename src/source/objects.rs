//! Reading git objects from one repository, or from a user's repository and our copies beside it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use git2::{Commit, ErrorCode, Odb, Oid, Repository, RepositoryOpenFlags, Tree};

use super::file_names::EntryKind;
use super::foreign::{self, ForeignError};
use super::reader::ReadLimits;
use super::{tree, tree_builder};

/// A tree of a million entries with long names.
const MAX_STRUCTURE: usize = 128 << 20;

/// Opens exactly this repository, checks its owner, loads its shallow boundaries, writes nothing.
///
/// `open_bare` would do neither of the two checks.
pub(super) fn open(path: &Path) -> Result<Repository, git2::Error> {
    Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, std::iter::empty::<&str>())
}

/// Fresh handles on the repositories that hold a source's revisions, asked in this order.
///
/// Short-lived on purpose: a handle that is kept holds every deleted pack open.
pub(super) struct ObjectStores {
    stores: Vec<(Repository, PathBuf)>,
}

impl ObjectStores {
    /// Opens those of the repositories that can be opened; fails if none can.
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, ForeignError> {
        let mut stores = Vec::new();
        let mut first = None;
        for path in paths {
            match foreign::open(path) {
                Ok(repository) => stores.push((repository, path.clone())),
                Err(error) => first = first.or(Some(error)),
            }
        }
        match first {
            Some(error) if stores.is_empty() => Err(error),
            _ => Ok(Self { stores }),
        }
    }

    fn read_from_any<'a, T>(
        &'a self,
        find: impl Fn(&'a Repository) -> Result<T, git2::Error>,
    ) -> Result<T, git2::Error> {
        let mut last = git2::Error::new(ErrorCode::NotFound, git2::ErrorClass::Odb, "no repository");
        for (repository, _) in &self.stores {
            match find(repository) {
                Ok(found) => return Ok(found),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) fn commit(&self, id: Oid) -> Result<Commit<'_>, git2::Error> {
        self.read_from_any(|repository| {
            check_size(&repository.odb()?, id).and_then(|()| repository.find_commit(id))
        })
    }

    /// Returns the commit whose id begins so, where it is the only object that does.
    pub(super) fn commit_by_prefix(&self, prefix: &str) -> Result<Oid, git2::Error> {
        self.read_from_any(|repository| {
            let commit = repository.find_commit_by_prefix(prefix)?;
            if tree_builder::is_rendered_commit(&commit) {
                let what = "a rendered revision is no revision itself";
                return Err(git2::Error::new(ErrorCode::NotFound, git2::ErrorClass::Odb, what));
            }
            Ok(commit.id())
        })
    }

    pub(super) fn tree(&self, id: Oid) -> Result<Tree<'_>, git2::Error> {
        self.read_from_any(|repository| {
            check_size(&repository.odb()?, id).and_then(|()| repository.find_tree(id))
        })
    }

    /// Returns the size of a blob in bytes, without reading it.
    pub(super) fn size(&self, id: Oid) -> Result<u64, git2::Error> {
        self.read_from_any(|repository| repository.odb()?.read_header(id)).map(|(size, _)| size as u64)
    }

    /// Returns the content of a blob whose size has been looked at.
    pub(super) fn read(&self, id: Oid) -> Result<Vec<u8>, git2::Error> {
        self.read_from_any(|repository| repository.find_blob(id).map(|blob| blob.content().to_vec()))
    }

    /// Returns whether every object of a commit's files is here, or known elsewhere together with
    /// all that it names. Files that are too large to be read are passed over.
    pub(super) fn holds_all(
        &self,
        commit: Oid,
        is_known: impl Fn(Oid) -> bool,
        limits: ReadLimits,
    ) -> Result<bool, ForeignError> {
        let mut seen = HashSet::new();
        let mut look = || -> Result<bool, git2::Error> {
            let mut trees = vec![self.commit(commit)?.tree_id()];
            while let Some(id) = trees.pop() {
                for entry in &self.tree(id)? {
                    let id = entry.id();
                    let kind = tree::kind(entry.filemode_raw());
                    if kind == EntryKind::Submodule || !seen.insert(id) || is_known(id) {
                        continue;
                    }
                    match kind {
                        EntryKind::Folder => trees.push(id),
                        _ if self.size(id)? > limits.file => {}
                        _ => drop(self.read(id)?),
                    }
                }
                if seen.len() > limits.entries {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match look() {
            Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
            looked => Ok(looked?),
        }
    }

    /// Returns the object databases, for many reads in a row.
    pub(super) fn object_databases(&self) -> Result<Vec<Odb<'_>>, git2::Error> {
        self.stores.iter().map(|(repository, _)| repository.odb()).collect()
    }
}

/// Fails for a tree or commit that is larger than any honest one, before it is in memory.
pub(super) fn check_size(odb: &Odb<'_>, id: Oid) -> Result<(), git2::Error> {
    let (size, _) = odb.read_header(id)?;
    if size <= MAX_STRUCTURE {
        return Ok(());
    }
    let text = format!("object {id} has {size} bytes, which no honest tree or commit has");
    Err(git2::Error::new(ErrorCode::GenericError, git2::ErrorClass::Odb, text))
}
