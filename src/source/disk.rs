//! One look at a path's files as they are on disk, for the commands that run once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository, RepositoryOpenFlags};

use crate::object::Revision;

use super::error::Error;
use super::folder::{self, Read, Root};
use super::forest::{self, Hasher};
use super::location::{self, Place};
use super::names;
use super::reader::{Form, Limits, MAX_FILE, Reader};
use super::refusal::{Reason, Refusal};
use super::snapshot::{Blob, Commit, File, Snapshot};

/// How often a folder that changes while it is read is read again.
const ATTEMPTS: usize = 5;

/// A path's files as they were on disk at one moment, with their bytes. Its `Debug` form leaves them out.
pub struct Disk {
    /// The files. The revision is HEAD's commit where the path is in a git work tree and shows HEAD's files,
    /// otherwise the id of a snapshot, which depends on the files alone.
    pub snapshot: Snapshot,
    /// Who made the revision, where it is a commit.
    pub commit: Option<Commit>,
    bytes: HashMap<Blob, Vec<u8>>,
}

impl Disk {
    /// A file's bytes.
    pub fn read(&self, blob: Blob) -> Option<&[u8]> {
        self.bytes.get(&blob).map(Vec::as_slice)
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

/// Reads a folder, a git work tree with what is not committed, or a single file. Blocks; needs no state.
///
/// Fails where nothing is there, nothing can be read, or not one manifest is found.
pub fn read_disk(path: &Path) -> Result<Disk, Error> {
    let text = path.display().to_string();
    let read = match location::on_this_host(&text, path.to_owned())? {
        Place::File(file) => single(&file)?,
        Place::Repository(folder) if !folder.join(".git").exists() => {
            return Err(Error::Unsupported {
                place: text,
                what: "a bare repository without a revision".to_owned(),
                instead: "it has no files on disk: name a revision with --ref",
            });
        }
        _ => whole(path)?,
    };
    let mut disk = frozen(read, &text)?;
    if let Some((revision, commit)) = committed(path, &disk.snapshot) {
        disk.snapshot.revision = revision;
        disk.commit = commit;
    }
    Ok(disk)
}

/// One of several things that a person has named to be read together.
pub enum Named {
    /// A file, or a folder with all that is in it.
    Path(PathBuf),
    /// What came through a pipe, under the name by which findings tell of it.
    Text(String, Vec<u8>),
}

/// Reads what was named piece by piece as one snapshot. Each file stands in it by the path that was named. Blocks.
///
/// Fails where something of it is not there, cannot be read, or is a folder without a manifest.
pub fn read_named(named: Vec<Named>) -> Result<Disk, Error> {
    let (mut all, mut places) = (Pass::default(), Vec::new());
    for one in named {
        let pass = match one {
            Named::Text(name, bytes) => {
                places.push(name.clone());
                let mut pass = Pass::default();
                match names::refused_content(&bytes) {
                    Some(reason) => pass.refusals.push(Refusal::new(name, reason)),
                    None => pass.take(name, bytes),
                }
                pass
            }
            Named::Path(path) => {
                let text = path.display().to_string();
                let is_folder = !matches!(location::on_this_host(&text, path.clone())?, Place::File(_));
                let read = if is_folder { whole(&path)? } else { single(&path)? };
                let folder = if is_folder { Some(path.as_path()) } else { path.parent() };
                places.push(text);
                read.below(folder.unwrap_or(Path::new("")))
            }
        };
        all.files.extend(pass.files);
        all.refusals.extend(pass.refusals);
        all.bytes.extend(pass.bytes);
    }
    // Whatever is named twice is read once.
    all.files.sort();
    all.files.dedup();
    all.refusals.sort_unstable();
    all.refusals.dedup();
    frozen(all, &places.join(", "))
}

/// The files and refusals of one pass, and the bytes.
#[derive(Default)]
struct Pass {
    files: Vec<(String, Oid, u64)>,
    refusals: Vec<Refusal>,
    bytes: HashMap<Blob, Vec<u8>>,
}

impl Pass {
    fn take(&mut self, path: String, bytes: Vec<u8>) {
        let blob = Blob::of(&bytes);
        self.files.push((path, blob.oid(), bytes.len() as u64));
        self.bytes.insert(blob, bytes);
    }

    /// The same with its files as they are reached from here.
    fn below(mut self, folder: &Path) -> Self {
        let shown = |file: &str| folder.join(file).components().collect::<PathBuf>();
        let shown = |file: &str| shown(file).to_string_lossy().into_owned();
        self.files.iter_mut().for_each(|(file, ..)| *file = shown(file));
        self.refusals.iter_mut().for_each(|refusal| refusal.path = shown(&refusal.path));
        self
    }
}

fn whole(path: &Path) -> Result<Pass, Error> {
    for _ in 0..ATTEMPTS {
        if let ControlFlow::Break(pass) = attempt(path)? {
            return Ok(pass);
        }
    }
    Err(Error::Moving { place: path.display().to_string() })
}

/// One pass; none if something changed meanwhile.
fn attempt(path: &Path) -> Result<ControlFlow<Pass>, Error> {
    let root = Root::open(&folder::resolve(path)?)?;
    let listing = root.list()?;
    let mut pass = Pass { refusals: listing.refusals, ..Pass::default() };
    for (file, _) in listing.files {
        match root.read(&file, MAX_FILE) {
            Ok(Read::Whole(_, bytes)) => match names::refused_content(&bytes) {
                Some(reason) => pass.refusals.push(Refusal::new(file, reason)),
                None => pass.take(file, bytes),
            },
            Ok(Read::Refused(reason)) => pass.refusals.push(Refusal::new(file, reason)),
            Ok(Read::Moving | Read::Gone) => return Ok(ControlFlow::Continue(())),
            Err(error) => {
                pass.refusals.push(Refusal::new(file, Reason::Unreadable).detail(error.to_string()));
            }
        }
    }
    pass.refusals.sort_unstable();
    Ok(ControlFlow::Break(pass))
}

/// A single file, whatever its name: it was named on purpose.
fn single(path: &Path) -> Result<Pass, Error> {
    let trouble = |error| Error::Unreadable { place: path.display().to_string(), error };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut pass = Pass::default();
    if let Some(reason) = names::marker(name.as_bytes()) {
        pass.refusals.push(Refusal::new(name, reason));
        return Ok(pass);
    }
    let metadata = fs::metadata(path).map_err(trouble)?;
    if !metadata.is_file() {
        return Err(trouble(io::Error::other("not a regular file")));
    }
    if metadata.len() > MAX_FILE {
        pass.refusals.push(Refusal::new(name, Reason::TooLarge));
        return Ok(pass);
    }
    let bytes = fs::read(path).map_err(trouble)?;
    match names::refused_content(&bytes) {
        Some(reason) => pass.refusals.push(Refusal::new(name, reason)),
        None => pass.take(name, bytes),
    }
    Ok(pass)
}

fn frozen(pass: Pass, place: &str) -> Result<Disk, Error> {
    if pass.files.is_empty() && pass.refusals.is_empty() {
        return Err(Error::Empty { place: place.to_owned(), within: "the folder".to_owned() });
    }
    let plain: Vec<(&str, Oid)> = pass.files.iter().map(|(path, id, _)| (path.as_str(), *id)).collect();
    let id = forest::snapshot(&mut Hasher, &plain, &pass.refusals)
        .map_err(|error| Error::Worker { place: place.to_owned(), detail: error.message().to_owned() })?;
    let files = pass
        .files
        .into_iter()
        .map(|(path, id, size)| File { path: path.into(), blob: Blob::from_oid(id), size })
        .collect();
    let refused = pass.refusals.iter().map(Refusal::diagnostic).collect();
    let snapshot = Snapshot { revision: Revision::new(&id.to_string()), files, refused };
    Ok(Disk { snapshot, commit: None, bytes: pass.bytes })
}

/// HEAD, if the path is in a git work tree and HEAD holds the same files there. Trouble with git is no
/// trouble here: the files have been read.
fn committed(path: &Path, seen: &Snapshot) -> Option<(Revision, Option<Commit>)> {
    let path = folder::resolve(path).ok()?;
    if !path.is_dir() {
        return None;
    }
    let (repository, inside) = work_tree(&path)?;
    let head = repository.head().ok()?.peel_to_commit().ok()?.id();
    let revision = Revision::new(&head.to_string());
    let stores = vec![repository.path().to_owned()];
    let place = path.display().to_string();
    let reader = Reader::new(stores, Form::Commits, place, inside, Limits::default());
    let there = reader.snapshot(&revision).ok()?;
    let names = |snapshot: &Snapshot| -> Vec<_> {
        snapshot.refused.iter().map(|found| (found.origin.file.clone(), found.code)).collect()
    };
    if there.files != seen.files || names(&there) != names(seen) {
        return None;
    }
    let commit = reader.commit(&revision).ok()?;
    Some((revision, commit))
}

/// The repository of a work tree that holds a folder, and the folder's path inside it.
fn work_tree(path: &Path) -> Option<(Repository, Option<String>)> {
    let none = std::iter::empty::<&str>();
    let repository = Repository::open_ext(path, RepositoryOpenFlags::empty(), none).ok()?;
    let work: PathBuf = fs::canonicalize(repository.workdir()?).ok()?;
    let inside = path.strip_prefix(&work).ok()?.to_str()?;
    let inside = location::inner_path(Some(inside)).ok()?;
    Some((repository, inside))
}
