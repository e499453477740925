//! The identity of a source's location, however its name is spelt.
//!
//! A repository is known by where it came from. An automation that checks it out into a new folder
//! each time still deploys the same repository.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::followed_repository;
use super::location::{self, GitLocation, ResolvedLocation};

/// The ports that need not be named.
const DEFAULT_GIT_PORTS: [(&str, &str); 4] =
    [("https", "443"), ("http", "80"), ("ssh", "22"), ("git", "9418")];

impl ResolvedLocation {
    /// Returns the identity of the location, without credentials. Two spellings of one place are
    /// equal, and so are a repository and a work tree of it. Looks at the disk where it is a path.
    /// Never fails: a path that cannot be read stands for itself.
    ///
    /// `host/path//folder` where the repository has a URL, else an absolute path.
    pub(crate) fn location_id(&self) -> String {
        match self {
            Self::Directory(path) => path_identity(path),
            Self::Git(git) | Self::Awaited(git) => git_identity(git),
        }
    }
}

impl ResolvedLocation {
    /// Returns the identity of the repository and the followed reference, whatever folder of it is
    /// wanted. None for a location that is no repository, or not known to be one yet.
    pub(crate) fn repository(&self) -> Option<String> {
        let Self::Git(git) = self else { return None };
        let repository = GitLocation { path: None, ..git.clone() };
        Some(with_reference(&git_identity(&repository), git))
    }

    /// Returns both [`ResolvedLocation::location_id`] and [`ResolvedLocation::repository`]. Where the
    /// location is the repository itself, the disk is looked at once.
    pub(super) fn identities(&self) -> (String, Option<String>) {
        let location_id = self.location_id();
        let repository = match self {
            Self::Git(git) if git.path.is_none() => Some(with_reference(&location_id, git)),
            _ => self.repository(),
        };
        (location_id, repository)
    }
}

/// Returns the identity of a repository with the followed reference.
fn with_reference(repository: &str, git: &GitLocation) -> String {
    format!("{repository} {}", git.reference.as_deref().unwrap_or("HEAD"))
}

/// The name of a place for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceTitle {
    /// The repository's own name, or the folder's that is in none; empty for the root of a file
    /// system.
    pub repository: String,
    /// The folder inside the repository; empty for its root.
    pub inside: String,
}

impl ResolvedLocation {
    /// Returns the name of this place for people, as far as the disk shows it. It says less than
    /// [`ResolvedLocation::location_id`].
    pub(crate) fn title(&self) -> SourceTitle {
        match self {
            Self::Directory(path) => title_of_path(path),
            Self::Git(git) | Self::Awaited(git) => {
                let inside = location::inner_path(git.path.as_deref()).ok().flatten().unwrap_or_default();
                match location::local_path(&git.url) {
                    Some(path) if inside.is_empty() => title_of_path(&path),
                    Some(path) => SourceTitle { inside, ..title_of_path(&path) },
                    None => SourceTitle { repository: last_part(&url_identity(&git.url)), inside },
                }
            }
        }
    }
}

fn title_of_path(path: &Path) -> SourceTitle {
    let typed = PathBuf::from(normalize(path));
    let real = real_path(&typed);
    // As it was typed, as long as that is a name: where a link leads may be swapped.
    let climbs = typed.components().any(|part| part == Component::ParentDir);
    let named = if climbs { work_tree_of(&real) } else { &typed };
    let is_top = |folder: &&Path| folder.join(".git").exists();
    let top_of = |found: &Path| {
        let top = if location::is_bare(found) { None } else { found.ancestors().find(is_top) };
        top.map(|top| (top.to_owned(), found.strip_prefix(top).unwrap_or(Path::new("")).to_owned()))
    };
    let Some((top, inside)) = top_of(named).or_else(|| top_of(work_tree_of(&real))) else {
        return SourceTitle { repository: last_part(&named.to_string_lossy()), inside: String::new() };
    };
    let repository = origin(&top).unwrap_or_else(|| top.to_string_lossy().into_owned());
    SourceTitle { repository: last_part(&repository), inside: inside.to_string_lossy().into_owned() }
}

fn last_part(text: &str) -> String {
    let last = text.rsplit('/').next().unwrap_or_default();
    last.strip_suffix(".git").unwrap_or(last).to_owned()
}

fn git_identity(git: &GitLocation) -> String {
    let inside = location::inner_path(git.path.as_deref()).ok().flatten().unwrap_or_default();
    match location::local_path(&git.url) {
        Some(path) if inside.is_empty() => path_identity(&path),
        Some(path) if path.join(&inside).exists() => path_identity(&path.join(&inside)),
        // A bare repository, or a folder that is in another revision only.
        Some(path) => origin(&real_path(&path))
            .map_or_else(|| normalize(&path.join(&inside)), |origin| append_path(origin, &inside)),
        None => append_path(url_identity(&git.url), &inside),
    }
}

fn path_identity(path: &Path) -> String {
    let found = real_path(path);
    let found = work_tree_of(&found);
    let is_top = |folder: &&Path| folder.join(".git").exists();
    let around = if location::is_bare(found) { None } else { found.ancestors().find(is_top) };
    let top = around.unwrap_or(found);
    let inside = found.strip_prefix(top).unwrap_or(Path::new("")).to_string_lossy();
    origin(top).map_or_else(|| normalize(path), |origin| append_path(origin, &inside))
}

/// Returns where a work tree on this host came from. A bare repository is a place of its own:
/// others come from it.
fn origin(top: &Path) -> Option<String> {
    if location::is_bare(top) {
        return None;
    }
    let opened = followed_repository::open(top).ok()?;
    let url = opened.configuration.get("remote.origin.url")?;
    match location::local_path(&url) {
        Some(path) => Some(normalize(&real_path(&top.join(path)))),
        None => Some(url_identity(&url)),
    }
}

fn append_path(repository: String, inside: &str) -> String {
    match inside {
        "" => repository,
        inside if repository.starts_with('/') => format!("{repository}/{inside}"),
        inside => format!("{repository}//{inside}"),
    }
}

/// Returns a path with all links resolved, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns an absolute path without what changes nothing. Links stay: where they lead may be
/// swapped.
fn normalize(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path: PathBuf = path.components().collect();
    work_tree_of(&path).to_string_lossy().into_owned()
}

/// Returns the work tree of a `.git` folder; any other path as it is.
fn work_tree_of(path: &Path) -> &Path {
    if path.ends_with(".git") { path.parent().unwrap_or(path) } else { path }
}

/// Returns the host and the path: by which protocol it is reached, and as whom, makes no other
/// repository.
fn url_identity(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return scp_identity(url) };
    let scheme = scheme.to_ascii_lowercase();
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let host = host.to_ascii_lowercase();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.is_empty() || DEFAULT_GIT_PORTS.contains(&(scheme.as_str(), port)) => name,
        _ => &host,
    };
    let user = if scheme == "ssh" { user.split(':').next().unwrap_or_default() } else { "" };
    join_identity(user, host, path)
}

/// Returns the identity of `user@host:path`.
fn scp_identity(text: &str) -> String {
    let (authority, path) = text.split_once(':').unwrap_or((text, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let home = if path.starts_with(['/', '~']) { "" } else { "~/" };
    join_identity(user, &host.to_ascii_lowercase(), &format!("{home}{path}"))
}

/// Joins the parts of an identity. A path below a user's home is another one for another user.
/// Hosting services know one user, `git`, to whom a path from the root and one from home are the
/// same.
fn join_identity(user: &str, host: &str, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let (home, parts) = match parts.as_slice() {
        ["~", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let path = parts.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path).trim_end_matches('/');
    let host = host.trim_end_matches('.');
    if home && !matches!(user, "" | "git") {
        format!("{user}@{host}/{path}")
    } else {
        format!("{host}/{path}")
    }
}
