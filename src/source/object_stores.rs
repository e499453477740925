//! Reads git objects from our own stores, or from this user's repository around files on disk.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use git2::{
    Commit, ErrorCode, Odb, OdbLookupFlags, OdbObject, Oid, Reference, Repository, RepositoryOpenFlags, Tree,
};

use super::followed_repository::{self, FollowedRepositoryError, RepositoryFolders};
use super::loose_objects::{self, LooseBlob};
use super::read_sandbox;
use super::tree_builder;

/// A tree of a million entries with long names.
const MAX_STRUCTURE_BYTES: usize = 128 << 20;

/// Opens exactly this repository, checks its owner, loads its shallow boundaries, writes nothing.
///
/// `open_bare` would do neither of the two checks.
pub(super) fn open(path: &Path) -> Result<Repository, git2::Error> {
    #[cfg(test)]
    OPENED_REPOSITORIES.set(OPENED_REPOSITORIES.get() + 1);
    Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, std::iter::empty::<&str>())
}

#[cfg(test)]
thread_local! {
    /// The repositories that this thread has opened.
    pub(super) static OPENED_REPOSITORIES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    /// The trees that this thread has read for lists of files.
    pub(super) static TREE_READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The path of a repository that holds revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StorePath {
    /// One of ours.
    Own(PathBuf),
    /// The one around files on disk, which is this user's or configured as safe.
    Trusted(PathBuf),
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
        let (mut stores, mut is_trusted) = (Vec::new(), false);
        let mut first = None;
        for path in paths {
            let opened = match path {
                StorePath::Own(path) => open(path).map_err(FollowedRepositoryError::from),
                StorePath::Trusted(path) => {
                    is_trusted = true;
                    RepositoryFolders::find(path).and_then(|folders| folders.open_trusted())
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
                let sandbox = is_trusted.then(|| stores.iter().flat_map(folders).collect());
                Ok(Self { stores, sandbox })
            }
        }
    }

    /// Reads them, where one is not ours by a thread that can open nothing else.
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
            followed_repository::read_error(folders.first().copied().unwrap_or(Path::new("")), error)
        })
    }

    fn read_from_any<'a, T>(
        &'a self,
        find: impl Fn(&'a Repository) -> Result<T, git2::Error>,
    ) -> Result<T, git2::Error> {
        let mut failure = git2::Error::new(ErrorCode::NotFound, git2::ErrorClass::Odb, "no repository");
        for repository in &self.stores {
            match find(repository) {
                Ok(found) => return Ok(found),
                // An object that one of them cannot read is not absent, though the others lack it.
                Err(error) if failure.code() == ErrorCode::NotFound => failure = error,
                Err(_) => {}
            }
        }
        Err(failure)
    }

    pub(super) fn commit(&self, id: Oid) -> Result<Commit<'_>, git2::Error> {
        self.read_from_any(|repository| ObjectDatabase::of(repository)?.find_commit(id))
    }

    /// Returns the commit whose id begins so, where it is the only object that does.
    pub(super) fn commit_by_prefix(&self, prefix: &str) -> Result<Oid, git2::Error> {
        self.read_from_any(|repository| {
            let id = repository.odb()?.exists_prefix(Oid::from_str(prefix)?, prefix.len())?;
            let commit = ObjectDatabase::of(repository)?.find_commit(id)?;
            if tree_builder::is_rendered_commit(&commit) {
                let message = "a rendered revision is no revision itself";
                return Err(git2::Error::new(ErrorCode::NotFound, git2::ErrorClass::Odb, message));
            }
            Ok(commit.id())
        })
    }

    pub(super) fn tree(&self, id: Oid) -> Result<Tree<'_>, git2::Error> {
        self.sized_tree(id).map(|(tree, _)| tree)
    }

    /// Returns a tree with its size in bytes.
    pub(super) fn sized_tree(&self, id: Oid) -> Result<(Tree<'_>, usize), git2::Error> {
        #[cfg(test)]
        TREE_READS.set(TREE_READS.get() + 1);
        self.read_from_any(|repository| ObjectDatabase::of(repository)?.find_sized_tree(id))
    }

    /// Returns whether an object is here.
    pub(super) fn exists(&self, id: Oid) -> bool {
        self.read_from_any(|repository| ObjectDatabase::of(repository)?.size(id)).is_ok()
    }

    /// Returns the size of a blob in bytes, without reading it.
    pub(super) fn size(&self, id: Oid) -> Result<u64, git2::Error> {
        self.read_from_any(|repository| ObjectDatabase::of(repository)?.size(id))
    }

    /// Returns the content of a blob whose size has been looked at.
    pub(super) fn read(&self, id: Oid) -> Result<Vec<u8>, git2::Error> {
        self.read_from_any(|repository| ObjectDatabase::of(repository)?.read(id))
    }

    /// Returns the first of the repositories.
    pub(super) fn first_repository(&self) -> Option<&Repository> {
        self.stores.first()
    }

    /// Returns the object databases, for many reads in a row.
    pub(super) fn object_databases(&self) -> Result<Vec<ObjectDatabase<'_>>, git2::Error> {
        self.stores.iter().map(ObjectDatabase::of).collect()
    }
}

/// An object database of ours, or of this user. The size of an object is looked at before it is
/// read.
pub(super) struct ObjectDatabase<'a> {
    repository: &'a Repository,
    odb: Odb<'a>,
    /// The folder of the objects.
    folder: PathBuf,
}

impl<'a> ObjectDatabase<'a> {
    pub(super) fn of(repository: &'a Repository) -> Result<Self, git2::Error> {
        Ok(Self { repository, odb: repository.odb()?, folder: repository.commondir().join("objects") })
    }

    /// Returns whether an object is here.
    pub(super) fn exists(&self, id: Oid) -> bool {
        self.odb.exists(id)
    }

    /// Returns whether an object is here, unless it came in a pack since the repository was opened.
    /// Does not look for new packs, as [`ObjectDatabase::exists`] does for each missing object.
    pub(super) fn is_known(&self, id: Oid) -> bool {
        self.odb.exists_ext(id, OdbLookupFlags::NO_REFRESH)
    }

    /// Returns the size of an object in bytes, without reading it.
    pub(super) fn size(&self, id: Oid) -> Result<u64, git2::Error> {
        self.odb.read_header(id).map(|(size, _)| size as u64)
    }

    /// Returns the content of a blob whose size has been looked at.
    pub(super) fn read(&self, id: Oid) -> Result<Vec<u8>, git2::Error> {
        match LooseBlob::read(&self.folder, id) {
            LooseBlob::Sound(content) => return Ok(content),
            LooseBlob::Unproven => self.require_end(id)?,
            LooseBlob::Absent => {}
        }
        self.odb.read(id).map(|object| object.data().to_vec())
    }

    pub(super) fn find_commit(&self, id: Oid) -> Result<Commit<'a>, git2::Error> {
        self.judge_structure(id)?;
        self.repository.find_commit(id)
    }

    pub(super) fn find_tree(&self, id: Oid) -> Result<Tree<'a>, git2::Error> {
        self.find_sized_tree(id).map(|(tree, _)| tree)
    }

    /// Returns a tree with its size in bytes.
    fn find_sized_tree(&self, id: Oid) -> Result<(Tree<'a>, usize), git2::Error> {
        let size = self.judge_structure(id)?;
        Ok((self.repository.find_tree(id)?, size))
    }

    /// Returns a tree, commit or tag.
    pub(super) fn read_structure(&self, id: Oid) -> Result<OdbObject<'_>, git2::Error> {
        self.judge_structure(id)?;
        self.odb.read(id)
    }

    /// Returns the size of a tree, commit or tag in bytes. Fails where it is larger than any honest
    /// one, before it is in memory, and where its file is cut.
    pub(super) fn judge_structure(&self, id: Oid) -> Result<usize, git2::Error> {
        let (size, _) = self.odb.read_header(id)?;
        if size <= MAX_STRUCTURE_BYTES {
            self.require_end(id)?;
            return Ok(size);
        }
        let text = format!("object {id} has {size} bytes, which no honest tree or commit has");
        Err(git2::Error::new(ErrorCode::GenericError, git2::ErrorClass::Odb, text))
    }

    /// Fails where the file of a loose object ends too early: libgit2 would read it for ever.
    fn require_end(&self, id: Oid) -> Result<(), git2::Error> {
        if loose_objects::is_cut(&self.folder, id) {
            let text = format!("the file of object {id} ends too early");
            return Err(git2::Error::new(ErrorCode::GenericError, git2::ErrorClass::Zlib, text));
        }
        Ok(())
    }
}

/// Returns the commit that a reference of ours leads to.
pub(super) fn referenced_commit<'a>(
    repository: &Repository,
    reference: &Reference<'a>,
) -> Result<Commit<'a>, git2::Error> {
    if let Some(id) = reference.target() {
        ObjectDatabase::of(repository)?.judge_structure(id)?;
    }
    reference.peel_to_commit()
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

/// The handles of one reading.
#[derive(Debug, Default)]
pub(super) struct ReadingHandles {
    /// The handles on all repositories of the source.
    pub(super) objects: HandlePool,
    /// The handles on the store of what was rendered.
    pub(super) rendered: HandlePool,
}

/// Handles that were opened a moment ago: to open them costs more than to read a file.
#[derive(Default)]
pub(super) struct HandlePool(Mutex<Vec<PooledHandle>>);

impl HandlePool {
    /// Takes one that is young enough, or opens one; none where that fails. All handles of a pool
    /// are on the same repositories.
    pub(super) fn take_or_open(&self, stores: &[StorePath]) -> Option<PooledHandle> {
        let young = self.handles().pop().filter(|handle| handle.opened.elapsed() < HANDLE_LIFETIME);
        young.or_else(|| ObjectStores::open(stores).map(PooledHandle::new).ok())
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

#[cfg(test)]
mod tests {
    use std::fs;

    use git2::ObjectType;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_one_store_cannot_read_is_not_absent_though_the_others_lack_it() {
        let id = Oid::hash_object(ObjectType::Blob, b"x").unwrap();
        let name = id.to_string();
        let place = |store: &Path| store.join("objects").join(&name[..2]).join(&name[2..]);
        let check = |damaged: &[usize], has_it: &[usize], expected: Result<u64, bool>| {
            let stores = [TempDir::new().unwrap(), TempDir::new().unwrap()];
            for (number, store) in stores.iter().enumerate() {
                let repository = Repository::init_bare(store.path()).unwrap();
                if has_it.contains(&number) {
                    repository.blob(b"x").unwrap();
                }
                if damaged.contains(&number) {
                    fs::create_dir(place(store.path()).parent().unwrap()).unwrap();
                    fs::write(place(store.path()), "no object").unwrap();
                }
            }
            let paths = stores.each_ref().map(|store| StorePath::Own(store.path().to_owned()));
            let found = ObjectStores::open(&paths).unwrap().size(id);
            assert_eq!(found.map_err(|error| error.code() == ErrorCode::NotFound), expected, "{damaged:?}");
        };
        check(&[], &[], Err(true));
        check(&[], &[1], Ok(1));
        check(&[0], &[1], Ok(1));
        check(&[0], &[], Err(false));
        check(&[1], &[], Err(false));
    }
}
