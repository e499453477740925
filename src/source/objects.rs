//! Reading git objects from one repository, or from a user's repository and our copies beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use git2::{Commit, ErrorCode, Odb, Oid, Repository, RepositoryOpenFlags, Tree};

use super::repository_pointers::{self, PointerFault, RepositoryPlaces};
use super::tree_builder;
use crate::secret::{is_there, read_regular};

/// A tree of a million entries with long names.
const MAX_STRUCTURE: usize = 128 << 20;

/// Names the object folders of other repositories, one in a line.
pub(super) const ALTERNATES_FILE: &str = "objects/info/alternates";

/// Names other files to be read as a repository's configuration.
pub(super) const INCLUDE_FILE: &str = "include";

/// A repository's configuration of a thousand branches has 100 KiB.
const MAX_CONFIGURATION: u64 = 1 << 20;

/// Opens exactly this repository, checks its owner, loads its shallow boundaries, writes nothing.
///
/// `open_bare` would do neither of the two checks.
pub(super) fn open(path: &Path) -> Result<Repository, git2::Error> {
    Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, std::iter::empty::<&str>())
}

/// As [`open`], whoever owns the repository.
///
/// The owner is checked where a repository was found by chance and its configuration may run
/// programs. Here a person named the repository, so that its owner decides about the cluster
/// anyway; and nothing that its configuration could name is ever run.
///
/// Refuses a store that leads to others: by a pointer, by a link, or as it borrows objects. Its
/// writers could name a repository that only this user may read.
pub(super) fn open_foreign(path: &Path) -> Result<Repository, git2::Error> {
    let places = repository_pointers::resolve(path).map_err(|fault| pointer_error(&fault))?;
    refuse_includes(&places)?;
    let repository = match open(path) {
        Err(error) if error.code() == ErrorCode::Owner => Repository::open_bare(&places.own),
        opened => opened,
    }?;
    if !has_alternates(&repository) {
        return Ok(repository);
    }
    let text = format!("{ALTERNATES_FILE} names other repositories");
    Err(git2::Error::new(ErrorCode::Invalid, git2::ErrorClass::Repository, text))
}

/// Fails where an object or a pack of a followed repository is a link.
pub(super) fn refuse_linked_objects(repository: &Repository) -> Result<(), git2::Error> {
    repository_pointers::refuse_linked_objects(repository.commondir()).map_err(|fault| pointer_error(&fault))
}

fn pointer_error(fault: &PointerFault) -> git2::Error {
    git2::Error::new(ErrorCode::Invalid, git2::ErrorClass::Repository, fault.to_string())
}

/// Fails where the repository's configuration names other files to be read with it.
///
/// Neither git nor libgit2 can be told to leave them out. A writer of that file could
/// name one that only rhumb may read, even in a repository of this very user. Messages show parts
/// of it. Called before the library looks, which reads those files even to find out whose the
/// repository is.
fn refuse_includes(places: &RepositoryPlaces) -> Result<(), git2::Error> {
    let files = [places.common.join("config"), places.own.join("config.worktree")];
    if files.iter().any(|file| has_include(file)) {
        let text = format!("its configuration has an {INCLUDE_FILE}");
        return Err(git2::Error::new(ErrorCode::Invalid, git2::ErrorClass::Config, text));
    }
    Ok(())
}

/// Returns whether a section names other files. A file that cannot be read, or is larger than any,
/// counts as having one.
fn has_include(file: &Path) -> bool {
    if !is_there(file) {
        return false;
    }
    let Ok(text) = read_regular(file, MAX_CONFIGURATION) else { return true };
    if text.len() as u64 >= MAX_CONFIGURATION {
        return true;
    }
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with(['#', ';']));
    lines.flat_map(|line| line.split('[').skip(1)).any(|name| name.trim_start().starts_with("include"))
}

/// Returns whether there are alternates. A file that cannot be read counts as there.
fn has_alternates(repository: &Repository) -> bool {
    match fs::symlink_metadata(repository.commondir().join(ALTERNATES_FILE)) {
        Ok(metadata) => !metadata.is_file() || metadata.len() > 0,
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// Fresh handles on the repositories that hold a source's revisions, asked in this order.
///
/// Short-lived on purpose: a handle that is kept holds every deleted pack open.
pub(super) struct ObjectStores {
    stores: Vec<(Repository, PathBuf)>,
}

impl ObjectStores {
    /// Opens those of the repositories that can be opened; fails if none can.
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, git2::Error> {
        let mut stores = Vec::new();
        let mut first = None;
        for path in paths {
            match open_foreign(path) {
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
