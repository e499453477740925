//! Files and links that lead from a repository of this host to others.
//!
//! A writer of a followed repository could name one that only rhumb may read. So the store that is
//! read is the one that a person named. A pointer counts only where its target names the repository
//! back, as git's own work trees do.
//!
//! A writer who puts a link there between this check and the read of an object is not found: the
//! library that reads takes no open files.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::secret::{is_there, read_regular};

/// The longest path that the system takes.
const MAX_PATH: u64 = 4096;

/// A repository's configuration of a thousand branches has 100 KiB.
const MAX_CONFIGURATION: u64 = 1 << 20;

/// Files and folders of a repository that are no links in any that git has made.
const OWN_ENTRIES: [&str; 12] = [
    "HEAD",
    "config",
    "config.worktree",
    "packed-refs",
    "shallow",
    "info",
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/tags",
];

/// A pointer out of a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PointerFault {
    /// A file names a folder that does not name it back.
    #[error("{file} {LEADS_ELSEWHERE}, {target}, which does not name it back")]
    Unanswered {
        /// The file, seen from the repository.
        file: &'static str,
        /// The folder.
        target: String,
    },
    /// A link stands in the place of a file or folder of its own.
    #[error("{0} is a link, which {LEADS_ELSEWHERE}")]
    Link(String),
    /// It cannot be told.
    #[error("{file} {LEADS_ELSEWHERE}, or cannot be read: {detail}")]
    Unreadable {
        /// The file or folder.
        file: String,
        /// The system's words.
        detail: String,
    },
}

/// The words by which an error of this kind is known.
pub(super) const LEADS_ELSEWHERE: &str = "leads to another place";

/// The folders of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryPlaces {
    /// The folder with HEAD: the path itself, `.git` in it, or the one that a `.git` file names.
    pub own: PathBuf,
    /// The folder with objects and configuration, which work trees share.
    pub common: PathBuf,
}

/// Finds the folders of the repository at a path.
///
/// # Errors
/// Fails where a pointer or a link leads out of it.
pub(super) fn resolve(path: &Path) -> Result<RepositoryPlaces, PointerFault> {
    let own = own_folder(path)?;
    let common = common_folder(&own)?;
    for folder in [&own, &common] {
        for name in OWN_ENTRIES {
            if is_link(&folder.join(name)) {
                return Err(PointerFault::Link(name.to_owned()));
            }
        }
    }
    Ok(RepositoryPlaces { own, common })
}

/// Fails where an object or a pack of a repository is a link: at most one folder in 258 is listed,
/// and no file is looked at.
///
/// # Errors
/// Fails with the first link, and where a folder cannot be listed.
pub(super) fn refuse_linked_objects(common: &Path) -> Result<(), PointerFault> {
    let objects = common.join("objects");
    for folder in list(&objects)? {
        if folder.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&folder.path())?;
        }
    }
    Ok(())
}

/// Lists a folder in which nothing may be a link.
fn list(folder: &Path) -> Result<Vec<fs::DirEntry>, PointerFault> {
    let unreadable = |error: io::Error| PointerFault::Unreadable {
        file: folder.display().to_string(),
        detail: error.to_string(),
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_type().map_err(unreadable)?.is_symlink() {
            return Err(PointerFault::Link(entry.path().display().to_string()));
        }
        found.push(entry);
    }
    Ok(found)
}

fn own_folder(path: &Path) -> Result<PathBuf, PointerFault> {
    let inner = path.join(".git");
    let Ok(metadata) = fs::symlink_metadata(&inner) else { return Ok(path.to_owned()) };
    if metadata.is_symlink() {
        return Err(PointerFault::Link(".git".to_owned()));
    }
    if metadata.is_dir() {
        return Ok(inner);
    }
    let text = read(&inner, ".git")?;
    let target = text.strip_prefix(b"gitdir: ").unwrap_or_default();
    let target = path.join(OsStr::from_bytes(target.trim_ascii_end()));
    let is_answered = names_back(&target, "gitdir", &inner) || is_work_tree_of(path, &target);
    if is_answered { Ok(target) } else { Err(unanswered(".git", &target)) }
}

fn common_folder(own: &Path) -> Result<PathBuf, PointerFault> {
    let file = own.join("commondir");
    if !is_there(&file) {
        return Ok(own.to_owned());
    }
    let text = read(&file, "commondir")?;
    let common = own.join(OsStr::from_bytes(text.trim_ascii_end()));
    // Only who may write in the shared repository can have made this folder there.
    let is_inside = real(own).is_some_and(|own| {
        let trees = own.parent();
        trees.is_some_and(|trees| trees.ends_with("worktrees"))
            && trees.and_then(Path::parent) == real(&common).as_deref()
    });
    if is_inside { Ok(common) } else { Err(unanswered("commondir", &common)) }
}

/// Returns whether a file in a folder names a path.
fn names_back(folder: &Path, file: &str, path: &Path) -> bool {
    let Ok(text) = read_regular(&folder.join(file), MAX_PATH) else { return false };
    let named = folder.join(OsStr::from_bytes(text.trim_ascii_end()));
    let (named, path) = (real(&named), real(path));
    named.is_some() && named == path
}

/// Returns whether the configuration of a repository names this work tree, as that of a submodule
/// does.
fn is_work_tree_of(path: &Path, repository: &Path) -> bool {
    let Ok(text) = read_regular(&repository.join("config"), MAX_CONFIGURATION) else { return false };
    let text = String::from_utf8_lossy(&text);
    let mut is_core = false;
    let mut named = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_core = line.eq_ignore_ascii_case("[core]");
        } else if let Some((key, value)) = line.split_once('=')
            && is_core
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            named = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    let named = named.and_then(|named| real(&repository.join(named)));
    named.is_some() && named == real(path)
}

fn read(file: &Path, name: &'static str) -> Result<Vec<u8>, PointerFault> {
    read_regular(file, MAX_PATH)
        .map_err(|error| PointerFault::Unreadable { file: name.to_owned(), detail: error.to_string() })
}

fn unanswered(file: &'static str, target: &Path) -> PointerFault {
    PointerFault::Unanswered { file, target: target.display().to_string() }
}

fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}
