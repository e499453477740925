//! Folders in memory, for files that must never be on a disk.
//!
//! A folder is gone with its [`MemoryFolder`]. A process that is killed leaves one behind: the next
//! start removes those that no process holds.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statfs};
use rustix::io::Errno;
use tempfile::TempDir;

/// The beginning of the names of such folders.
const FOLDER_PREFIX: &str = "rhumb-open-";
/// The file systems that are in memory, by the numbers of `statfs(2)`: tmpfs and ramfs.
const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// The place in memory that every Linux has.
const SHARED_MEMORY_FOLDER: &str = "/dev/shm";
/// The attempts to make a folder: a process that starts may take a new one for a leftover.
const CREATION_ATTEMPTS: usize = 3;

/// A folder in memory that is this process's own.
pub(super) struct MemoryFolder {
    // Removed first, then unlocked.
    folder: TempDir,
    _lock: File,
}

impl MemoryFolder {
    /// Makes a folder below the first of these that is in memory and can be written; none where
    /// none is.
    pub(super) fn create(folders: &[PathBuf]) -> io::Result<Option<Self>> {
        let mut failure = None;
        for folder in folders.iter().filter(|folder| is_in_memory(folder)) {
            for _ in 0..CREATION_ATTEMPTS {
                match Self::create_in(folder) {
                    Ok(Some(memory_folder)) => return Ok(Some(memory_folder)),
                    Ok(None) => {}
                    Err(error) => {
                        failure.get_or_insert(error);
                        break;
                    }
                }
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Returns why no folder can be made there; none where one can.
    pub(super) fn obstacle(folders: &[PathBuf]) -> Option<String> {
        let shown = || {
            let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            names.join(" and ")
        };
        match Self::create(folders) {
            Ok(Some(_)) => None,
            Ok(None) => Some(format!("neither of {} is on tmpfs or ramfs", shown())),
            Err(error) => Some(format!("no folder can be made in {}: {error}", shown())),
        }
    }

    fn create_in(folder: &Path) -> io::Result<Option<Self>> {
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(folder)?;
        let lock = match File::open(folder.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            lock => lock?,
        };
        let is_held = try_lock(&lock)? && is_still(&lock, folder.path());
        Ok(is_held.then_some(Self { folder, _lock: lock }))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Returns the places for such folders: this one where it is in memory, else the host's.
pub(super) fn candidates(own: &Path) -> Vec<PathBuf> {
    vec![own.to_owned(), PathBuf::from(SHARED_MEMORY_FOLDER)]
}

/// Removes the folders that processes of this user left behind when they were killed.
pub(super) fn remove_leftovers(folders: &[PathBuf]) {
    for folder in folders.iter().filter(|folder| is_in_memory(folder)) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX));
        for entry in named {
            if let Err(error) = remove_leftover(&entry.path()) {
                tracing::warn!(folder = %entry.path().display(), "the folder of a process that ended cannot be removed: {error}");
            }
        }
    }
}

fn remove_leftover(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let lock = File::open(path)?;
    if try_lock(&lock)? && is_still(&lock, path) { fs::remove_dir_all(path) } else { Ok(()) }
}

fn try_lock(folder: &File) -> io::Result<bool> {
    match flock(folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether an open folder still has its name.
fn is_still(folder: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let named = fs::symlink_metadata(path).map(identity).ok();
    named.is_some() && named == folder.metadata().map(identity).ok()
}

fn is_in_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|found| {
        MEMORY_FILE_SYSTEMS.iter().any(|kind| i128::from(found.f_type) == i128::from(*kind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> TempDir {
        tempfile::tempdir_in(SHARED_MEMORY_FOLDER).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_in_memory_or_there_is_none() {
        let shared = shared();
        let folders = [PathBuf::from("/proc"), PathBuf::from("/nowhere"), shared.path().to_owned()];
        let memory_folder = MemoryFolder::create(&folders).unwrap().unwrap();
        assert_eq!(memory_folder.path().parent(), Some(shared.path()));
        fs::write(memory_folder.path().join("a"), "a").unwrap();
        drop(memory_folder);
        assert_eq!(names(shared.path()), [""; 0]);
        assert!(MemoryFolder::create(&folders[..2]).unwrap().is_none());
        assert_eq!(MemoryFolder::obstacle(&folders), None);
        let obstacle = MemoryFolder::obstacle(&folders[..2]);
        assert_eq!(obstacle.as_deref(), Some("neither of /proc and /nowhere is on tmpfs or ramfs"));
    }

    #[test]
    fn a_start_removes_what_nobody_holds() {
        let shared = shared();
        let folders = [shared.path().to_owned()];
        let memory_folder = MemoryFolder::create(&folders).unwrap().unwrap();
        let left = shared.path().join("rhumb-open-left");
        fs::create_dir_all(left.join("tree")).unwrap();
        fs::write(left.join("tree/a"), "a").unwrap();
        fs::create_dir(shared.path().join("other")).unwrap();
        fs::write(shared.path().join("rhumb-open-file"), "").unwrap();
        remove_leftovers(&folders);
        let held = memory_folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected = vec!["other".to_owned(), held, "rhumb-open-file".to_owned()];
        expected.sort();
        assert_eq!(names(shared.path()), expected);
    }
}
