//! Reading git objects from one repository, or from a user's repository and our copies beside it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use git2::{Commit, ErrorCode, ObjectType, Odb, OdbObject, Oid, Repository, RepositoryOpenFlags, Tree};

use super::file_names::EntryKind;
use super::followed_repository::{self, FollowedRepositoryError};
use super::read_sandbox;
use super::reader::{MAX_FILE, ReadLimits};
use super::{tree, tree_builder};

/// A tree of a million entries with long names.
const MAX_STRUCTURE: usize = 128 << 20;

/// The bytes by which a loose object may be larger than its content, which does not compress: its
/// head, and five bytes for each block of 16 KiB.
const LOOSE_OVERHEAD: u64 = 64 << 10;

/// Opens exactly this repository, checks its owner, loads its shallow boundaries, writes nothing.
///
/// `open_bare` would do neither of the two checks.
pub(super) fn open(path: &Path) -> Result<Repository, git2::Error> {
    Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, std::iter::empty::<&str>())
}

/// The path of a repository that holds revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StorePath {
    /// One of ours.
    Own(PathBuf),
    /// One that others may write into.
    Followed(PathBuf),
}

/// Fresh handles on the repositories that hold a source's revisions, asked in this order.
///
/// Short-lived on purpose: a handle that is kept holds every deleted pack open.
pub(super) struct ObjectStores {
    stores: Vec<Repository>,
    /// The folders that may be read; none where all of them are ours.
    sandbox: Option<Vec<PathBuf>>,
}

impl ObjectStores {
    /// Opens those of the repositories that can be opened; fails if none can.
    pub(super) fn open(paths: &[StorePath]) -> Result<Self, FollowedRepositoryError> {
        let (mut stores, mut is_followed) = (Vec::new(), false);
        let mut first = None;
        for path in paths {
            let opened = match path {
                StorePath::Own(path) => open(path).map_err(FollowedRepositoryError::from),
                StorePath::Followed(path) => {
                    is_followed = true;
                    followed_repository::open(path).map(|opened| opened.repository)
                }
            };
            match opened {
                Ok(repository) => stores.push(repository),
                Err(error) => first = first.or(Some(error)),
            }
        }
        match first {
            Some(error) if stores.is_empty() => Err(error),
            _ => {
                let folders = |store: &Repository| [store.path().to_owned(), store.commondir().to_owned()];
                let sandbox = is_followed.then(|| stores.iter().flat_map(folders).collect());
                Ok(Self { stores, sandbox })
            }
        }
    }

    /// Reads them, where one is followed by a thread that can open nothing else.
    pub(super) fn read_in_sandbox<T: Send>(
        self,
        read: impl FnOnce(&Self) -> T + Send,
    ) -> Result<(Self, T), FollowedRepositoryError> {
        let Some(sandbox) = self.sandbox.clone() else {
            let done = read(&self);
            return Ok((self, done));
        };
        let folders: Vec<&Path> = sandbox.iter().map(PathBuf::as_path).collect();
        let done = read_sandbox::run_within(&folders, move || {
            let done = read(&self);
            (self, done)
        });
        done.map_err(|error| {
            followed_repository::unreadable(folders.first().copied().unwrap_or(Path::new("")), error)
        })
    }

    fn read_from_any<'a, T>(
        &'a self,
        find: impl Fn(&'a Repository) -> Result<T, git2::Error>,
    ) -> Result<T, git2::Error> {
        let mut last = git2::Error::new(ErrorCode::NotFound, git2::ErrorClass::Odb, "no repository");
        for repository in &self.stores {
            match find(repository) {
                Ok(found) => return Ok(found),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) fn commit(&self, id: Oid) -> Result<Commit<'_>, git2::Error> {
        self.read_from_any(|repository| {
            ObjectDatabase::of(repository)?.judge_structure(id)?;
            repository.find_commit(id)
        })
    }

    /// Returns the commit whose id begins so, where it is the only object that does.
    pub(super) fn commit_by_prefix(&self, prefix: &str) -> Result<Oid, git2::Error> {
        self.read_from_any(|repository| {
            let id = repository.odb()?.exists_prefix(Oid::from_str(prefix)?, prefix.len())?;
            ObjectDatabase::of(repository)?.judge_structure(id)?;
            let commit = repository.find_commit(id)?;
            if tree_builder::is_rendered_commit(&commit) {
                let what = "a rendered revision is no revision itself";
                return Err(git2::Error::new(ErrorCode::NotFound, git2::ErrorClass::Odb, what));
            }
            Ok(commit.id())
        })
    }

    pub(super) fn tree(&self, id: Oid) -> Result<Tree<'_>, git2::Error> {
        self.sized_tree(id).map(|(tree, _)| tree)
    }

    /// Returns a tree with its size in bytes.
    pub(super) fn sized_tree(&self, id: Oid) -> Result<(Tree<'_>, usize), git2::Error> {
        self.read_from_any(|repository| {
            let (size, _) = ObjectDatabase::of(repository)?.judge_structure(id)?;
            Ok((repository.find_tree(id)?, size))
        })
    }

    /// Returns the size of a blob in bytes, without reading it.
    pub(super) fn size(&self, id: Oid) -> Result<u64, git2::Error> {
        self.read_from_any(|repository| ObjectDatabase::of(repository)?.header(id))
            .map(|(size, _)| size as u64)
    }

    /// Returns the content of a blob whose size has been looked at.
    pub(super) fn read(&self, id: Oid) -> Result<Vec<u8>, git2::Error> {
        self.read_from_any(|repository| {
            ObjectDatabase::of(repository)?.read(id, MAX_FILE).map(|blob| blob.data().to_vec())
        })
    }

    /// Returns whether every object of a commit's files is here, or known elsewhere together with
    /// all that it names. Files that are too large to be read are passed over.
    pub(super) fn holds_all(
        &self,
        commit: Oid,
        is_known: impl Fn(Oid) -> bool,
        limits: ReadLimits,
    ) -> Result<bool, FollowedRepositoryError> {
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
    pub(super) fn object_databases(&self) -> Result<Vec<ObjectDatabase<'_>>, git2::Error> {
        self.stores.iter().map(ObjectDatabase::of).collect()
    }
}

/// An object database whose loose objects are looked at before the library opens them.
///
/// The library opens whatever stands in the place of a file, and reads all of it: a pipe never
/// ends, and a file with holes costs nothing on the disk.
pub(super) struct ObjectDatabase<'a> {
    database: Odb<'a>,
    folder: PathBuf,
}

impl<'a> ObjectDatabase<'a> {
    pub(super) fn of(repository: &'a Repository) -> Result<Self, git2::Error> {
        Ok(Self { database: repository.odb()?, folder: repository.commondir().join("objects") })
    }

    /// Returns the size and the kind of an object, without reading it.
    pub(super) fn header(&self, id: Oid) -> Result<(usize, ObjectType), git2::Error> {
        self.judge_loose(id, u64::MAX)?;
        self.database.read_header(id)
    }

    /// Returns an object that has at most so many bytes in any form.
    pub(super) fn read(&self, id: Oid, most: u64) -> Result<OdbObject<'_>, git2::Error> {
        self.judge_loose(id, most + LOOSE_OVERHEAD)?;
        self.database.read(id)
    }

    /// Returns a tree, commit or tag.
    pub(super) fn read_structure(&self, id: Oid) -> Result<OdbObject<'_>, git2::Error> {
        self.judge_structure(id)?;
        self.database.read(id)
    }

    /// Returns the size of a tree, commit or tag in bytes, and its kind. Fails where it is larger than
    /// any honest one, before it is in memory.
    pub(super) fn judge_structure(&self, id: Oid) -> Result<(usize, ObjectType), git2::Error> {
        self.judge_loose(id, MAX_STRUCTURE as u64 + LOOSE_OVERHEAD)?;
        let (size, kind) = self.database.read_header(id)?;
        if size <= MAX_STRUCTURE {
            return Ok((size, kind));
        }
        Err(refusal(&format!("object {id} has {size} bytes, which no honest tree or commit has")))
    }

    /// Fails where a loose object is no regular file, or a larger one than any that is read.
    fn judge_loose(&self, id: Oid, most: u64) -> Result<(), git2::Error> {
        let name = id.to_string();
        let (folder, file) = name.split_at(2);
        // One that is packed, or gone by now, is looked for by the library.
        let Ok(found) = fs::symlink_metadata(self.folder.join(folder).join(file)) else { return Ok(()) };
        if !found.is_file() {
            return Err(refusal(&format!("objects/{folder}/{file} is no regular file")));
        }
        if found.len() > most {
            let size = found.len();
            return Err(refusal(&format!(
                "objects/{folder}/{file} has {size} bytes, and {most} may be read"
            )));
        }
        Ok(())
    }
}

fn refusal(text: &str) -> git2::Error {
    git2::Error::new(ErrorCode::GenericError, git2::ErrorClass::Odb, text)
}

/// The time for which handles are used again; a handle that is kept holds every deleted pack open.
const HANDLE_LIFETIME: Duration = Duration::from_secs(1);

/// The number of handles kept for concurrent reads.
const MAX_IDLE_HANDLES: usize = 8;

/// Handles, and when they were opened.
pub(super) struct PooledHandle {
    pub(super) opened: Instant,
    pub(super) objects: ObjectStores,
}

impl PooledHandle {
    /// Returns handles that were opened now.
    pub(super) fn new(objects: ObjectStores) -> Self {
        Self { opened: Instant::now(), objects }
    }
}

/// Handles that were opened a moment ago: to open them costs more than to read a file.
#[derive(Default)]
pub(super) struct HandlePool(Mutex<Vec<PooledHandle>>);

impl HandlePool {
    /// Takes one that is young enough.
    pub(super) fn take(&self) -> Option<PooledHandle> {
        self.handles().pop().filter(|handle| handle.opened.elapsed() < HANDLE_LIFETIME)
    }

    /// Keeps one for the next read, if there is room.
    pub(super) fn put_back(&self, handle: PooledHandle) {
        let mut handles = self.handles();
        if handles.len() < MAX_IDLE_HANDLES {
            handles.push(handle);
        }
    }

    /// Closes all.
    pub(super) fn clear(&self) {
        self.handles().clear();
    }

    fn handles(&self) -> MutexGuard<'_, Vec<PooledHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for HandlePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handles")
    }
}

/// As many tags that name another one as are followed to a commit.
const MAX_TAG_CHAIN: usize = 10;

/// Returns the commit that an object is or leads to.
///
/// Nothing is read before its size is looked at: a reference may name any object.
pub(super) fn commit_at(repository: &Repository, id: Oid) -> Result<Oid, git2::Error> {
    let database = ObjectDatabase::of(repository)?;
    let mut id = id;
    for _ in 0..MAX_TAG_CHAIN {
        match database.judge_structure(id)?.1 {
            ObjectType::Commit => return Ok(repository.find_commit(id)?.id()),
            ObjectType::Tag => id = repository.find_tag(id)?.target_id(),
            _ => break,
        }
    }
    Err(git2::Error::new(ErrorCode::Peel, git2::ErrorClass::Odb, "it leads to no commit"))
}
