//! One reading of a path's files as they are on disk, for the commands that run once.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::Oid;

use crate::object::{GroupKind, Revision};

use super::disk_tree::DiskTree;
use super::error::SourceError;
use super::file_names;
use super::folder::{self, FileReadResult, OpenFolder};
use super::followed_repository::{FollowedRepositoryError, RepositoryFolders};
use super::location::{self, LocationKind};
use super::object_stores::StorePath;
use super::reader::{MAX_SOURCE_FILE_BYTES, ReadLimits, RevisionForm, RevisionReader};
use super::refusal::{RefusalReason, RefusedFile};
use super::rendering::RenderedSnapshot;
use super::repository_references::NamedTarget;
use super::revision_tree::RevisionTree;
use super::snapshot::{BlobId, CommitInfo, Snapshot, SnapshotFile};
use super::tree_builder::{self, NewEntry, ObjectHasher};

/// The number of passes over a folder that changes while it is read.
const MAX_SNAPSHOT_PASSES: usize = 5;

/// A path's files as they were on disk at one moment, with their bytes. Its `Debug` form leaves
/// them out.
#[derive(Clone)]
pub(crate) struct DiskSnapshot {
    /// The files. The revision is HEAD's commit where the path is in a git work tree and shows
    /// HEAD's files. Otherwise it is the id of a snapshot, which depends on the files alone.
    pub snapshot: Snapshot,
    /// The revision's author, where it is a commit.
    pub commit: Option<CommitInfo>,
    /// The kinds that the server listed for its renders; none where they depend on no list.
    pub rendered_kinds: Option<Arc<BTreeSet<GroupKind>>>,
    /// Every file of that commit, where the revision is one.
    head: Option<Arc<RevisionTree>>,
    bytes: HashMap<BlobId, Vec<u8>>,
}

impl DiskSnapshot {
    /// Returns a file's bytes.
    pub(crate) fn read(&self, blob: BlobId) -> Option<&[u8]> {
        self.bytes.get(&blob).map(Vec::as_slice)
    }

    /// Returns the same with its roots rendered from these files.
    ///
    /// The revision is HEAD's commit no more where any of the files is another one there.
    pub(crate) fn with_rendered(mut self, rendered: RenderedSnapshot, trees: &[DiskTree]) -> Self {
        for content in &rendered.contents {
            self.bytes.insert(content.blob, content.bytes.to_vec());
        }
        let is_at_head = self.head.as_ref().is_some_and(|head| trees.iter().all(|tree| tree.is_as_in(head)));
        let revision = if is_at_head {
            self.snapshot.revision.clone()
        } else {
            let mut named = self.snapshot.revision.to_string();
            for root in &rendered.roots {
                let _ = write!(named, "\n{} {:?}", root.path, root.key);
            }
            (self.head, self.commit) = (None, None);
            Revision::new(&BlobId::of(named.as_bytes()).to_string())
        };
        self.snapshot = Snapshot { revision, ..rendered.into_snapshot() };
        self
    }
}

impl std::fmt::Debug for DiskSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

/// Reads a folder, a git work tree with what is not committed, or a single file. Blocks; needs no
/// state.
///
/// Fails where nothing is there, nothing can be read, or not one manifest is found.
pub(crate) fn read_disk(path: &Path) -> Result<DiskSnapshot, SourceError> {
    let text = path.display().to_string();
    let read = match location::local_location(&text, path.to_owned())? {
        LocationKind::File(file) => file_pass(&file)?,
        LocationKind::Repository(folder) if !folder.join(".git").exists() => {
            return Err(SourceError::Unsupported {
                shown_location: text,
                feature: "a bare repository without a revision".to_owned(),
                instead: "it has no files on disk: name a revision with --ref",
            });
        }
        _ => folder_pass(path)?,
    };
    let mut disk = freeze(read, &text)?;
    if let Some((revision, commit, head)) = committed_revision(path, &disk.snapshot) {
        disk.snapshot.revision = revision;
        disk.commit = commit;
        disk.head = head.map(Arc::new);
    }
    Ok(disk)
}

/// One of several things that a person has named to be read together.
pub(crate) enum InputArgument {
    /// A file, or a folder with all that is in it.
    Path(PathBuf),
    /// The text of a pipe, under its name in findings.
    Text(String, Vec<u8>),
}

/// Reads what was named piece by piece as one snapshot. Each file is in it by the path that was
/// named. Blocks.
///
/// Fails where something of it is not there, cannot be read, or is a folder without a manifest.
pub(crate) fn read_named(named: Vec<InputArgument>) -> Result<DiskSnapshot, SourceError> {
    let (mut all, mut locations) = (DiskPass::default(), Vec::new());
    for one in named {
        let pass = match one {
            InputArgument::Text(name, bytes) => {
                locations.push(name.clone());
                let mut pass = DiskPass::default();
                match file_names::refused_content(&bytes) {
                    Some(reason) => pass.refusals.push(RefusedFile::new(name, reason)),
                    None => pass.take(name, bytes),
                }
                pass
            }
            InputArgument::Path(path) => {
                let text = path.display().to_string();
                let is_folder =
                    !matches!(location::local_location(&text, path.clone())?, LocationKind::File(_));
                let read = if is_folder { folder_pass(&path)? } else { file_pass(&path)? };
                let folder = if is_folder { Some(path.as_path()) } else { path.parent() };
                locations.push(text);
                read.below(folder.unwrap_or(Path::new("")))
            }
        };
        all.files.extend(pass.files);
        all.refusals.extend(pass.refusals);
        all.bytes.extend(pass.bytes);
    }
    // A path that is named twice is read once.
    all.files.sort();
    all.files.dedup();
    all.refusals.sort_unstable();
    all.refusals.dedup();
    freeze(all, &locations.join(", "))
}

/// The files and refusals of one pass, and the bytes.
#[derive(Default)]
struct DiskPass {
    files: Vec<(String, Oid, u64)>,
    refusals: Vec<RefusedFile>,
    bytes: HashMap<BlobId, Vec<u8>>,
}

impl DiskPass {
    fn take(&mut self, path: String, bytes: Vec<u8>) {
        let blob = BlobId::of(&bytes);
        self.files.push((path, blob.oid(), bytes.len() as u64));
        self.bytes.insert(blob, bytes);
    }

    /// Returns the same with its files as they are reached from here.
    fn below(mut self, folder: &Path) -> Self {
        let shown = |file: &str| folder.join(file).components().collect::<PathBuf>();
        let shown = |file: &str| shown(file).to_string_lossy().into_owned();
        self.files.iter_mut().for_each(|(file, ..)| *file = shown(file));
        self.refusals.iter_mut().for_each(|refusal| refusal.path = shown(&refusal.path));
        self
    }
}

fn folder_pass(path: &Path) -> Result<DiskPass, SourceError> {
    for _ in 0..MAX_SNAPSHOT_PASSES {
        if let ControlFlow::Break(pass) = attempt(path)? {
            return Ok(pass);
        }
    }
    Err(SourceError::Moving { shown_location: path.display().to_string() })
}

/// Reads the folder in one pass; none if something changed meanwhile.
fn attempt(path: &Path) -> Result<ControlFlow<DiskPass>, SourceError> {
    let root = OpenFolder::open(&folder::resolve(path)?)?;
    let listing = root.list()?;
    let mut pass = DiskPass { refusals: listing.refusals, ..DiskPass::default() };
    for (file, _) in listing.files {
        match root.read(&file, MAX_SOURCE_FILE_BYTES) {
            Ok(FileReadResult::Whole(_, bytes)) => match file_names::refused_content(&bytes) {
                Some(reason) => pass.refusals.push(RefusedFile::new(file, reason)),
                None => pass.take(file, bytes),
            },
            Ok(FileReadResult::Refused(reason)) => pass.refusals.push(RefusedFile::new(file, reason)),
            Ok(FileReadResult::Moving | FileReadResult::Gone) => return Ok(ControlFlow::Continue(())),
            Err(error) => {
                pass.refusals
                    .push(RefusedFile::new(file, RefusalReason::Unreadable).with_detail(error.to_string()));
            }
        }
    }
    pass.refusals.sort_unstable();
    Ok(ControlFlow::Break(pass))
}

/// Returns a single file, whatever its name: it was named on purpose.
fn file_pass(path: &Path) -> Result<DiskPass, SourceError> {
    let read_error = |error| SourceError::Unreadable { shown_location: path.display().to_string(), error };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut pass = DiskPass::default();
    if let Some(reason) = file_names::marker(name.as_bytes()) {
        pass.refusals.push(RefusedFile::new(name, reason));
        return Ok(pass);
    }
    let metadata = fs::metadata(path).map_err(read_error)?;
    if !metadata.is_file() {
        return Err(read_error(io::Error::other("not a regular file")));
    }
    if metadata.len() > MAX_SOURCE_FILE_BYTES {
        pass.refusals.push(RefusedFile::new(name, RefusalReason::TooLarge));
        return Ok(pass);
    }
    let bytes = fs::read(path).map_err(read_error)?;
    match file_names::refused_content(&bytes) {
        Some(reason) => pass.refusals.push(RefusedFile::new(name, reason)),
        None => pass.take(name, bytes),
    }
    Ok(pass)
}

fn freeze(pass: DiskPass, shown_location: &str) -> Result<DiskSnapshot, SourceError> {
    if pass.files.is_empty() && pass.refusals.is_empty() {
        return Err(SourceError::Empty {
            shown_location: shown_location.to_owned(),
            within: "the folder".to_owned(),
        });
    }
    let plain: Vec<NewEntry<'_>> = pass.files.iter().map(|(path, id, _)| NewEntry::file(path, *id)).collect();
    let id = tree_builder::write_commit(&mut ObjectHasher, &plain, &pass.refusals).map_err(|error| {
        SourceError::Worker { shown_location: shown_location.to_owned(), detail: error.message().to_owned() }
    })?;
    let files = pass
        .files
        .into_iter()
        .map(|(path, id, size)| SnapshotFile {
            path: path.into(),
            blob: BlobId::from_oid(id),
            size,
            origin: None,
        })
        .collect();
    let refused = pass.refusals.iter().map(RefusedFile::diagnostic).collect();
    let snapshot = Snapshot::of_files(Revision::new(&id.to_string()), files, refused);
    Ok(DiskSnapshot { snapshot, commit: None, rendered_kinds: None, head: None, bytes: pass.bytes })
}

/// Returns HEAD, if the path is in a git work tree and HEAD holds the same files there. A failure
/// of git counts as none, as the files have been read.
fn committed_revision(
    path: &Path,
    seen: &Snapshot,
) -> Option<(Revision, Option<CommitInfo>, Option<RevisionTree>)> {
    let path = folder::resolve(path).ok()?;
    if !path.is_dir() {
        return None;
    }
    let found = work_tree(&path).ok()??;
    let NamedTarget::Object(head) = found.folders.find_target(None).ok()?.target else { return None };
    let revision = Revision::new(&head.to_string());
    let (stores, shown_location) = (vec![StorePath::Trusted(found.top)], path.display().to_string());
    let reader = RevisionReader::new(
        stores,
        RevisionForm::Commits,
        shown_location,
        found.inside,
        ReadLimits::default(),
    );
    let there = reader.snapshot(&revision).ok()?;
    let names = |snapshot: &Snapshot| -> Vec<_> {
        snapshot.refused.iter().map(|found| (found.origin.file.clone(), found.code)).collect()
    };
    if there.files != seen.files || names(&there) != names(seen) {
        return None;
    }
    let commit = reader.commit(&revision).ok()?;
    let head = reader.tree(&revision).ok();
    Some((revision, commit, head))
}

/// Returns every file of the work tree around a folder, and the folder's path in it. A folder
/// outside any work tree stands for itself, and so does one where `.git` leads elsewhere.
///
/// # Errors
/// Fails where the folder is not there, or cannot be read.
pub(crate) fn tree_around(folder: &Path) -> Result<(DiskTree, String), SourceError> {
    let resolved = folder::resolve(folder)?;
    let found = work_tree(&resolved).unwrap_or_else(|error| {
        tracing::warn!("{}: {error}; it counts as no work tree", folder.display());
        None
    });
    Ok(match found {
        Some(found) => (DiskTree::open(&found.top)?, found.inside.unwrap_or_default()),
        None => (DiskTree::open_alone(&resolved)?, String::new()),
    })
}

/// Returns the repository on this host that holds a folder, and the folder's path in it; none where
/// no repository does. A bare one holds itself.
///
/// # Errors
/// Fails where the folder is not there, or where its `.git` leads elsewhere.
pub(crate) fn repository_around(folder: &Path) -> Result<Option<(PathBuf, String)>, SourceError> {
    let resolved = folder::resolve(folder)?;
    if location::is_bare(&resolved) && !resolved.join(".git").exists() {
        return Ok(Some((resolved, String::new())));
    }
    let found =
        work_tree(&resolved).map_err(|error| error.into_source_error(&folder.display().to_string()))?;
    Ok(found.map(|found| (found.top, found.inside.unwrap_or_default())))
}

/// A work tree around a folder.
struct WorkTree {
    folders: RepositoryFolders,
    /// The folder that holds `.git`, whatever the repository itself says of its work tree.
    top: PathBuf,
    /// The path to the folder from there; none where they are the same.
    inside: Option<String>,
}

/// Finds the work tree that holds a folder, on the same file system. None where none does, where it
/// cannot be read, or where it is another user's.
///
/// Fails where `.git`, or a file in it, leads elsewhere.
fn work_tree(path: &Path) -> Result<Option<WorkTree>, FollowedRepositoryError> {
    let device = |folder: &Path| fs::metadata(folder).map(|found| found.dev()).ok();
    let own = device(path);
    let mut folders = path.ancestors().take_while(|folder| device(folder) == own);
    let Some(top) = folders.find(|folder| has_repository(folder)) else { return Ok(None) };
    let found = RepositoryFolders::find(top).and_then(|folders| folders.open_trusted().map(|_| folders));
    let folders = match found {
        Ok(folders) => folders,
        Err(error @ FollowedRepositoryError::ForeignPointer { .. }) => return Err(error),
        Err(_) => return Ok(None),
    };
    let inside = path.strip_prefix(top).ok().and_then(Path::to_str);
    let Some(Ok(inside)) = inside.map(|inside| location::inner_path(Some(inside))) else { return Ok(None) };
    Ok(Some(WorkTree { folders, top: top.to_owned(), inside }))
}

/// Returns whether a folder has a repository of its own, or a pointer to one.
fn has_repository(folder: &Path) -> bool {
    let inner = folder.join(".git");
    match fs::symlink_metadata(&inner) {
        Ok(found) if found.is_dir() => location::is_bare(&inner) || inner.join("commondir").exists(),
        Ok(_) => true,
        Err(_) => false,
    }
}
