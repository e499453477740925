//! The one way into a repository of this host that others may write into.
//!
//! **Invariant:** what is read is the very repository that a person named. A file or a link in it
//! may lead elsewhere: to a repository that only rhumb's user may read. Such a pointer is followed
//! only where its target names the place back, as those of work trees and of submodules do.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Config, ErrorClass, ErrorCode, Oid, Repository};
use rustix::fs::{MemfdFlags, memfd_create};

use super::error::SourceError;
use super::file_names;
use super::folder::{FileReadResult, OpenFolder};
use super::object_stores;
use crate::secret::is_there;

#[cfg(test)]
thread_local! {
    /// The followed repositories that this thread has looked at.
    pub(super) static FOLLOWED_OPENINGS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The longest path that the system takes, and the words before it.
const MAX_POINTER_BYTES: u64 = 4096 + 64;

/// A repository's configuration of a thousand branches has 100 KiB.
const MAX_CONFIGURATION_BYTES: u64 = 1 << 20;

/// The list of a million references has 64 MiB.
pub(super) const MAX_OWN_FILE_BYTES: u64 = 64 << 20;

/// The characters of a path that is shown: its writer may have chosen any.
const MAX_SHOWN_TARGET_BYTES: usize = 200;

/// The number of tries to read a file that changes meanwhile.
const READ_ATTEMPTS: usize = 3;

/// The extensions of a repository that change nothing in how its references and objects are read.
const KNOWN_EXTENSIONS: [&[u8]; 4] = [
    b"extensions.noop",
    b"extensions.preciousobjects",
    b"extensions.relativeworktrees",
    b"extensions.worktreeconfig",
];

/// A repository's own files that are read. Git makes no link in their place.
const OWN_FILES: [&str; 11] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "info",
    "info/grafts",
    "objects",
    "packed-refs",
    "refs",
    "shallow",
];

/// The folders in which every entry is looked at. The folders of loose objects are left out. They
/// hold thousands of files, whose contents must match their names. A link in them shows nothing to
/// somebody who does not know the id of each object on the way.
const OBJECT_FOLDERS: [&str; 4] = ["objects", "objects/info", "objects/info/commit-graphs", "objects/pack"];

/// The file that names the object folders of other repositories, one in a line.
const ALTERNATES_FILE: &str = "objects/info/alternates";

/// The reason for which a repository is not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum FollowedRepositoryError {
    /// It leads to another one.
    #[error("{} {} {target}", file.display(), form.words())]
    ForeignPointer {
        /// The pointer.
        file: PathBuf,
        /// Its form.
        form: PointerForm,
        /// The place that it names, as it may be shown.
        target: String,
    },
    /// It borrows objects from others.
    #[error("{ALTERNATES_FILE} names other repositories")]
    Alternates,
    /// Neither git nor libgit2 has an option to leave those files out.
    #[error("its configuration includes other files")]
    Includes,
    /// A file of its own cannot be read.
    #[error("{}: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's message.
        error: io::Error,
    },
    /// It became another one while it was opened.
    #[error("it changes while it is opened")]
    Moving,
    /// It has a form that is not read.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// Its own word, or libgit2's.
    #[error(transparent)]
    Git(#[from] git2::Error),
}

/// The form of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointerForm {
    /// A symbolic link.
    Link,
    /// A path in a file.
    Text,
    /// A symbolic reference.
    Reference,
}

impl PointerForm {
    const fn words(self) -> &'static str {
        match self {
            Self::Link => "is a link to",
            Self::Text | Self::Reference => "leads to",
        }
    }

    const fn fault(self) -> &'static str {
        match self {
            Self::Link => "where git makes no link",
            Self::Text => "which does not name it back",
            Self::Reference => "which is no name of a reference",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Link => "put what it leads to in its place, or follow that repository itself",
            Self::Text => {
                "follow that repository itself, or have it name the place: by `git worktree repair` there for a work \
                 tree, else by `git config core.worktree` with the place's path"
            }
            Self::Reference => "set it anew by `git symbolic-ref`",
        }
    }
}

impl FollowedRepositoryError {
    /// Returns whether nothing there is a repository.
    pub(super) fn is_no_repository(&self) -> bool {
        matches!(self, Self::Git(error) if error.code() == ErrorCode::NotFound)
    }

    /// Returns the error of a source.
    pub(super) fn into_source_error(self, shown_location: &str) -> SourceError {
        let shown_location = shown_location.to_owned();
        match self {
            Self::ForeignPointer { file, form, target } => {
                let file = file_names::sanitize_text(file.as_os_str().as_bytes());
                let pointer = format!("{file} {} {target}", form.words());
                SourceError::ForeignPointer {
                    shown_location,
                    pointer,
                    fault: form.fault(),
                    instead: form.hint(),
                }
            }
            Self::Alternates => SourceError::Unsupported {
                shown_location,
                feature: format!("a repository that borrows objects from others ({ALTERNATES_FILE})"),
                instead: "make it complete with `git repack -a -d` and remove that file",
            },
            Self::Includes => SourceError::Unsupported {
                shown_location,
                feature: "a repository whose configuration includes other files".to_owned(),
                instead: "take `include` and `includeIf` out of its configuration",
            },
            Self::Unsupported(feature) => SourceError::Unsupported {
                shown_location,
                feature: feature.to_owned(),
                instead: "use a plain clone of it: git clone --no-local with SHA-1 ids, files as references, no \
                          filter",
            },
            Self::Unreadable { file, error } => SourceError::Unreadable {
                shown_location: format!("{shown_location}: {}", file.display()),
                error,
            },
            Self::Moving => SourceError::Moving { shown_location },
            Self::Git(error) => SourceError::Damaged { shown_location, detail: error.message().to_owned() },
        }
    }
}

/// The folders of one repository, after every pointer on the way to them was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryFolders {
    /// The folder that was named, without `.git`.
    named: PathBuf,
    /// Holds HEAD: `.git`, or `.git/worktrees/NAME` of the main one.
    pub(super) own: PathBuf,
    /// Holds refs and objects.
    pub(super) common: PathBuf,
}

/// A repository that a person named.
pub(super) struct FollowedRepository {
    pub(super) folders: RepositoryFolders,
    /// Its own configuration and no other.
    pub(super) configuration: RepositoryConfiguration,
}

/// Opens a repository that a person named, whoever owns it.
///
/// Its owner decides about the cluster anyway, and nothing that its configuration could name is
/// ever run. Refused is what leads to another repository: pointers, links, borrowed objects and
/// included configuration.
///
/// A link may come after this look. So objects are read by a child in a sandbox alone.
pub(super) fn open(path: &Path) -> Result<FollowedRepository, FollowedRepositoryError> {
    #[cfg(test)]
    FOLLOWED_OPENINGS.set(FOLLOWED_OPENINGS.get() + 1);
    let folders = RepositoryFolders::find(path)?;
    let configuration = read_configuration(&folders.own, &folders.common)?;
    if has_alternates(&folders.common) {
        return Err(FollowedRepositoryError::Alternates);
    }
    if let Some(form) = configuration.unsupported_form() {
        return Err(FollowedRepositoryError::Unsupported(form));
    }
    let is_repository = is_there(&folders.own.join("HEAD"))
        && ["objects", "refs"].iter().all(|name| folders.common.join(name).is_dir());
    if is_repository { Ok(FollowedRepository { folders, configuration }) } else { Err(no_repository()) }
}

impl RepositoryFolders {
    /// Finds the folders of the repository at a path: in `.git` below it, or the path itself.
    ///
    /// Links to the path are followed, as they are part of what a person named.
    pub(super) fn find(path: &Path) -> Result<Self, FollowedRepositoryError> {
        let absolute = std::path::absolute(path).map_err(|error| read_error(path, error))?;
        // `.git` may be a pointer, also where it is named itself.
        let named =
            if absolute.ends_with(".git") { absolute.parent().unwrap_or(&absolute) } else { &absolute };
        let named = fs::canonicalize(named).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_repository(),
            _ => read_error(named, error),
        })?;
        let own = own_folder(&named)?;
        judge_own_files(&own, &OWN_FILES)?;
        let common = common_folder(&own)?;
        if common != own {
            judge_own_files(&common, &OWN_FILES)?;
        }
        for folder in OBJECT_FOLDERS {
            refuse_linked_entries(&common.join(folder))?;
        }
        Ok(Self { named, own, common })
    }

    /// Opens it by the library where it is this user's, or configured as safe: it was found by
    /// chance.
    ///
    /// Its configuration may include files of this user, and no value of it may be shown.
    pub(super) fn open_trusted(&self) -> Result<Repository, FollowedRepositoryError> {
        let repository = object_stores::open(&self.named)?;
        let is_judged = repository.path() == self.own && repository.commondir() == self.common;
        if is_judged { Ok(repository) } else { Err(FollowedRepositoryError::Moving) }
    }

    /// Fails where a loose object is no regular file, or has more bytes than may be read.
    ///
    /// A look at file names alone: it finds what a child would not end on.
    pub(super) fn judge_loose_objects(&self, most: u64) -> Result<(), FollowedRepositoryError> {
        let objects = self.common.join("objects");
        for number in 0..=u8::MAX {
            let name = format!("{number:02x}");
            let Ok(entries) = fs::read_dir(objects.join(&name)) else { continue };
            for entry in entries.flatten() {
                let Ok(found) = entry.metadata() else { continue };
                let (file, size) = (entry.file_name(), found.len());
                let file = file_names::sanitize_text(file.as_bytes());
                if !found.is_file() {
                    return Err(unreadable_object(&format!("objects/{name}/{file} is no regular file")));
                }
                if size > most {
                    let text = format!("objects/{name}/{file} has {size} bytes, and {most} may be read");
                    return Err(unreadable_object(&text));
                }
            }
        }
        Ok(())
    }

    /// Returns the commits at which its history is cut off.
    pub(super) fn shallow_commits(&self) -> Result<Vec<Oid>, FollowedRepositoryError> {
        let text = read_file(&self.common, "shallow", MAX_CONFIGURATION_BYTES)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().map(Oid::from_str).collect::<Result<_, _>>()?)
    }
}

fn unreadable_object(text: &str) -> FollowedRepositoryError {
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Odb, text).into()
}

fn no_repository() -> FollowedRepositoryError {
    git2::Error::new(ErrorCode::NotFound, ErrorClass::Repository, "could not find repository").into()
}

pub(super) fn read_error(file: &Path, error: io::Error) -> FollowedRepositoryError {
    FollowedRepositoryError::Unreadable { file: file.to_owned(), error }
}

pub(super) fn printable_target(target: &[u8]) -> String {
    file_names::sanitize_text(target).chars().take(MAX_SHOWN_TARGET_BYTES).collect()
}

/// Returns the folder that holds HEAD.
fn own_folder(named: &Path) -> Result<PathBuf, FollowedRepositoryError> {
    let inner = named.join(".git");
    let found = match fs::symlink_metadata(&inner) {
        Ok(found) => found,
        Err(error) if is_absence(&error) => return Ok(named.to_owned()),
        Err(error) => return Err(read_error(&inner, error)),
    };
    if found.is_symlink() {
        return Err(link_error(&inner));
    }
    if found.is_dir() {
        // As git has it: a folder of that name alone makes no repository.
        return Ok(if is_there(&inner.join("HEAD")) { inner } else { named.to_owned() });
    }
    let text = read_file(named, ".git", MAX_POINTER_BYTES)?.unwrap_or_default();
    let Some(target) = text.strip_prefix(b"gitdir:").map(<[u8]>::trim_ascii) else {
        return Err(no_repository());
    };
    // An answer that distinguishes what is not there from what is refused would give away other
    // folders.
    match follow(named, target) {
        Some(own) if is_pointing_back(&own, &inner) => Ok(own),
        _ => Err(FollowedRepositoryError::ForeignPointer {
            file: inner,
            form: PointerForm::Text,
            target: printable_target(target),
        }),
    }
}

/// Returns the folder that holds refs and objects.
fn common_folder(own: &Path) -> Result<PathBuf, FollowedRepositoryError> {
    let Some(text) = read_file(own, "commondir", MAX_POINTER_BYTES)? else { return Ok(own.to_owned()) };
    let (file, target) = (own.join("commondir"), text.trim_ascii_end());
    match follow(own, target) {
        // A folder there was made by somebody who may write in that repository.
        Some(common) if own.parent() == Some(&common.join("worktrees")) => Ok(common),
        _ => Err(FollowedRepositoryError::ForeignPointer {
            file,
            form: PointerForm::Text,
            target: printable_target(target),
        }),
    }
}

fn follow(from: &Path, target: &[u8]) -> Option<PathBuf> {
    fs::canonicalize(from.join(OsStr::from_bytes(target))).ok()
}

/// Returns whether a repository says of itself that a `.git` file leads to it. The folder of a work
/// tree says so by `gitdir`, any other by `core.worktree`.
fn is_pointing_back(own: &Path, file: &Path) -> bool {
    if is_there(&own.join("commondir")) {
        let Ok(Some(text)) = read_file(own, "gitdir", MAX_POINTER_BYTES) else { return false };
        let back = own.join(OsStr::from_bytes(text.trim_ascii_end()));
        let folder = back.parent().and_then(|folder| fs::canonicalize(folder).ok());
        return back.ends_with(".git") && folder.as_deref() == file.parent();
    }
    let Ok(configuration) = read_configuration(own, own) else { return false };
    let Some(work_tree) = configuration.get("core.worktree") else { return false };
    follow(own, work_tree.as_bytes()).as_deref() == file.parent()
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn link_error(link: &Path) -> FollowedRepositoryError {
    let target = fs::read_link(link).map(|target| printable_target(target.as_os_str().as_bytes()));
    FollowedRepositoryError::ForeignPointer {
        file: link.to_owned(),
        form: PointerForm::Link,
        target: target.unwrap_or_else(|_| "another place".to_owned()),
    }
}

pub(super) fn judge_own_files(folder: &Path, names: &[&str]) -> Result<(), FollowedRepositoryError> {
    for name in names {
        let path = folder.join(name);
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        judge_kind(&path, found.file_type())?;
        if found.is_file() && found.len() > MAX_OWN_FILE_BYTES {
            let why = format!("it has {} bytes, which no honest one has", found.len());
            return Err(read_error(&path, io::Error::other(why)));
        }
    }
    Ok(())
}

/// Fails for a link, and for a pipe or a device, the read of which may never end.
fn judge_kind(path: &Path, kind: fs::FileType) -> Result<(), FollowedRepositoryError> {
    if kind.is_symlink() {
        return Err(link_error(path));
    }
    if kind.is_file() || kind.is_dir() {
        return Ok(());
    }
    Err(read_error(path, io::Error::other("it is neither a file nor a folder")))
}

fn refuse_linked_entries(folder: &Path) -> Result<(), FollowedRepositoryError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(()),
        Err(error) => return Err(read_error(folder, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| read_error(folder, error))?;
        // One that is gone by now leads nowhere.
        if let Ok(kind) = entry.file_type() {
            judge_kind(&entry.path(), kind)?;
        }
    }
    Ok(())
}

/// Returns whether there are alternates. A file that cannot be read counts as there.
fn has_alternates(common: &Path) -> bool {
    match fs::symlink_metadata(common.join(ALTERNATES_FILE)) {
        Ok(metadata) => !metadata.is_file() || metadata.len() > 0,
        Err(error) => !is_absence(&error),
    }
}

/// Reads a file through no link; none where none is.
pub(super) fn read_file(
    folder: &Path,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, FollowedRepositoryError> {
    let failed = |error: io::Error| read_error(&folder.join(name), error);
    let opened = OpenFolder::open(folder).map_err(|error| failed(io::Error::other(error.to_string())))?;
    for _ in 0..READ_ATTEMPTS {
        match opened.read(name, most).map_err(failed)? {
            FileReadResult::Whole(_, bytes) => return Ok(Some(bytes)),
            FileReadResult::Gone => return Ok(None),
            FileReadResult::Refused(_) => {
                return Err(failed(io::Error::other("it is no regular file, or too large")));
            }
            // Git puts another file in its place.
            FileReadResult::Moving => {}
        }
    }
    Err(FollowedRepositoryError::Moving)
}

/// A repository's own configuration.
pub(super) struct RepositoryConfiguration(Config);

impl RepositoryConfiguration {
    /// Returns a value.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.0.get_string(name).ok()
    }

    /// Returns the form of the repository, where it is one that is not read.
    fn unsupported_form(&self) -> Option<&'static str> {
        if self.has_promisor() {
            return Some("a partial clone");
        }
        match self.0.get_i64("core.repositoryformatversion").unwrap_or_default() {
            0 => return None,
            1 => {}
            _ => return Some("a repository of a later format"),
        }
        let Ok(mut entries) = self.0.entries(Some(r"^extensions\.")) else { return None };
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else { continue };
            let value = if entry.has_value() { entry.value_bytes() } else { b"true" };
            match (entry.name_bytes(), value) {
                (b"extensions.objectformat", b"sha1") | (b"extensions.refstorage", b"files") => {}
                (b"extensions.objectformat", _) => return Some("a repository with SHA-256 ids"),
                (b"extensions.refstorage", _) => return Some("a repository with reftable references"),
                (b"extensions.partialclone", _) => return Some("a partial clone"),
                (name, _) if KNOWN_EXTENSIONS.contains(&name) => {}
                _ => return Some("a repository with an extension that rhumb does not know"),
            }
        }
        None
    }

    fn has_promisor(&self) -> bool {
        let Ok(mut entries) = self.0.entries(Some(r"^remote\..*\.promisor$")) else { return false };
        while let Some(entry) = entries.next() {
            if entry.is_ok_and(|entry| !entry.has_value() || entry.value_bytes() != b"false") {
                return true;
            }
        }
        false
    }
}

/// Reads its own configuration and no other.
///
/// Fails where it includes files: whoever may write it could name one that only rhumb may read, and
/// messages show parts of it.
fn read_configuration(own: &Path, common: &Path) -> Result<RepositoryConfiguration, FollowedRepositoryError> {
    let mut text = read_file(common, "config", MAX_CONFIGURATION_BYTES)?.unwrap_or_default();
    text.push(b'\n');
    text.extend(read_file(own, "config.worktree", MAX_CONFIGURATION_BYTES)?.unwrap_or_default());
    if has_include(&text) {
        return Err(FollowedRepositoryError::Includes);
    }
    // The library takes no text, only files.
    let file = memfd_create(c"rhumb-config", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let mut file = file.map(fs::File::from).map_err(|error| read_error(common, error))?;
    file.write_all(&text).map_err(|error| read_error(common, error))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let parsed = Config::open(Path::new(&path)).and_then(|mut parsed| parsed.snapshot());
    parsed.map(RepositoryConfiguration).map_err(|error| {
        let why = error.message().replace(&path, "it");
        read_error(&common.join("config"), io::Error::other(why))
    })
}

/// Returns whether a section names other files.
fn has_include(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with(['#', ';']));
    lines.flat_map(|line| line.split('[').skip(1)).any(|name| name.trim_start().starts_with("include"))
}
