//! The location of the desired state: a repository or a directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::{Environment, PositiveDuration, VerifySpec};
use crate::engine::RepositoryExtent;
use crate::fields::strip_credentials;

/// The location of a source's manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceLocation {
    /// A git repository, whose commits are followed.
    Git {
        /// The address of the repository.
        url: GitUrl,
        /// Branch, tag or commit; none for the repository's own HEAD.
        reference: Option<String>,
        /// The folder inside it.
        path: TreePath,
        /// The polling interval of a remote repository.
        interval: PositiveDuration,
        /// The required signatures; none for any commit.
        verify: Option<VerifySpec>,
    },
    /// A directory, read as it is on disk.
    Directory(PathBuf),
}

impl SourceLocation {
    /// Returns a location where nothing is.
    pub fn unset() -> Self {
        Self::Directory("/nonexistent".into())
    }

    /// Returns the location of a whole repository, at its own HEAD.
    #[cfg(test)]
    pub(crate) fn of_repository(url: &str) -> Self {
        let (path, interval) = (TreePath::default(), PositiveDuration::from_seconds(60));
        Self::Git { url: GitUrl::new(url), reference: None, path, interval, verify: None }
    }

    /// Returns how much of the repository it is.
    pub fn extent(&self) -> RepositoryExtent {
        match self {
            Self::Git { path, .. } if !path.is_root() => RepositoryExtent::Folder,
            Self::Git { .. } | Self::Directory(_) => RepositoryExtent::Whole,
        }
    }
}

/// The place alone, without credentials: `https://host/shop.git` or `/srv/shop`.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git { url, .. } => url.fmt(f),
            Self::Directory(path) => path.display().fmt(f),
        }
    }
}

/// The schemes of the URLs for which git is run, or a repository on this host is read.
const TRANSPORT_SCHEMES: [&str; 3] = ["https", "ssh", "file"];

/// The URL or path of a git repository. Neither `Debug` nor `Display` shows a password in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GitUrl(String);

impl GitUrl {
    /// Takes a text as it is.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the whole text, with its credentials: for git alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether a network or the `file:` scheme is before the repository; else it is a
    /// path.
    pub fn is_url(&self) -> bool {
        is_url(&self.0)
    }

    /// Returns whether git has a transport for it that is used. A remote helper, as in
    /// `ext::COMMAND`, is a program. Of `http://` and `git://` nobody knows who answers.
    pub(super) fn has_used_transport(&self) -> bool {
        match self.0.split_once("://") {
            Some((scheme, _)) => TRANSPORT_SCHEMES.contains(&scheme),
            None => !(self.0.starts_with('-') || self.is_url() && self.0.contains("::")),
        }
    }

    /// Returns a path made independent of the working directory; a URL stays as it is.
    pub(super) fn resolve(&self, environment: &Environment) -> Self {
        if self.is_url() {
            return self.clone();
        }
        Self(environment.resolve(Path::new(&self.0)).to_string_lossy().into_owned())
    }
}

/// Returns whether a SOURCE is a URL (`scheme://…`, or `user@host:path` as ssh writes it) and no
/// path.
pub(crate) fn is_url(text: &str) -> bool {
    let scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    match (text.split_once("://"), text.split_once(':')) {
        (Some((before, _)), _) => scheme(before),
        // As git does: a colon before the first slash makes a host.
        (None, Some((host, _))) => !host.is_empty() && !host.contains('/'),
        (None, None) => false,
    }
}

impl fmt::Display for GitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&strip_credentials(&self.0))
    }
}

impl fmt::Debug for GitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GitUrl({self})")
    }
}

impl<'de> Deserialize<'de> for GitUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Err(de::Error::custom("the repository's URL or path is empty"));
        }
        // As a `|` before the text leaves one at its end. Git says nothing of use about it.
        if text.chars().any(char::is_control) {
            let why = "the repository's URL or path has a line break or another control character in it: write it in \
                       one line, without `|` or `>` before it";
            return Err(de::Error::custom(why));
        }
        Ok(Self(text))
    }
}

/// A folder inside a repository: parts joined by `/`, empty for the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TreePath(String);

impl TreePath {
    /// Returns the text, without a slash at either end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

/// A path that leads out of its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a relative path that stays inside the repository")]
pub struct TreePathError;

impl FromStr for TreePath {
    type Err = TreePathError;

    fn from_str(text: &str) -> Result<Self, TreePathError> {
        if text.starts_with('/') {
            return Err(TreePathError);
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.contains(&"..") { Err(TreePathError) } else { Ok(Self(parts.join("/"))) }
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| de::Error::custom(format_args!("`{text}` is {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinguished_from_paths_as_git_does() {
        for url in ["https://host/a", "file:///srv/a", "ssh://git@host/a", "git@host:a/b.git", "host:a"] {
            assert!(is_url(url), "{url}");
        }
        for path in ["shop", "./shop", "/srv/shop", "../a:b", "a/b:c", "", "./://"] {
            assert!(!is_url(path), "{path}");
        }
    }

    #[test]
    fn no_remote_helper_is_a_transport() {
        for used in ["https://host/a", "ssh://git@host/a", "git@host:a", "file:///srv/a", "/srv/a::b"] {
            assert!(GitUrl::new(used).has_used_transport(), "{used}");
        }
        for refused in ["ext::sh -c x", "ext::sh -c x://y", "fd::3", "http://host/a", "git://host/a", "-a:b"]
        {
            assert!(!GitUrl::new(refused).has_used_transport(), "{refused}");
        }
    }

    #[test]
    fn credentials_are_never_shown() {
        assert_eq!(format!("{:?}", GitUrl::new("ssh://a:b@c/d")), "GitUrl(ssh://***@c/d)");
    }

    #[test]
    fn a_folder_stays_inside() {
        fn check(text: &str, expected: Option<&str>) {
            assert_eq!(text.parse::<TreePath>().ok().as_ref().map(TreePath::as_str), expected, "{text}");
        }
        check("deploy/prod", Some("deploy/prod"));
        check("./deploy//prod/", Some("deploy/prod"));
        check(".", Some(""));
        check("..a/b", Some("..a/b"));
        check("/deploy", None);
        check("deploy/../..", None);
    }
}
