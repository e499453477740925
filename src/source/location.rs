//! Locations of desired state: texts that people write, taken apart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::commit_verifier::SignatureVerification;
use super::error::SourceError;
use crate::fields::mask_likely_secrets;

/// The location of desired state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedLocation {
    /// The commits of a git repository.
    Git(GitLocation),
    /// The files of a folder as they are.
    Directory(PathBuf),
    /// A path where nothing is yet: later a repository, or else a folder with the `path` inside it.
    Awaited(GitLocation),
}

/// A git repository, and what in it is desired. Its `Debug` form leaves credentials out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GitLocation {
    /// A URL (`https://`, `ssh://`, `git@host:path`, `file://`) or the path of a repository on this
    /// host.
    pub url: String,
    /// Branch, tag or commit; none for what HEAD names.
    pub reference: Option<String>,
    /// Folder inside the repository; none for its root.
    pub path: Option<String>,
    /// The polling interval of a remote.
    pub interval: Duration,
    /// The signatures that its commits must carry; none for any commit.
    pub verify: Option<SignatureVerification>,
}

impl fmt::Debug for GitLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitLocation")
            .field("url", &redact(&self.url))
            .field("reference", &self.reference)
            .field("path", &self.path)
            .field("interval", &self.interval)
            .field("verify", &self.verify)
            .finish()
    }
}

/// The kind of location that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LocationKind {
    /// A repository behind a URL or `host:path`.
    Remote,
    /// A repository on this host: a work tree with `.git` in it, or a bare one.
    Repository(PathBuf),
    /// Any other folder.
    Directory(PathBuf),
    /// A single file.
    File(PathBuf),
}

impl ResolvedLocation {
    /// Returns the location as awaited. A repository on this host is awaited while nothing is
    /// there. It may then turn out to be a plain folder, unless a reference is named. Other
    /// locations stay.
    #[must_use]
    pub(crate) fn into_awaited(self) -> Self {
        match self {
            Self::Git(git) if git.reference.is_none() && local_path(&git.url).is_some() => Self::Awaited(git),
            other => other,
        }
    }

    /// Returns the signatures that its commits must carry; none for any commit.
    pub(super) fn verification(&self) -> Option<&SignatureVerification> {
        match self {
            Self::Git(git) | Self::Awaited(git) => git.verify.as_ref(),
            Self::Directory(_) => None,
        }
    }

    /// Returns the resolved form of an awaited location; an error while nothing is there.
    pub(super) fn resolve(&self) -> Result<Self, SourceError> {
        let Self::Awaited(git) = self else { return Ok(self.clone()) };
        let path = local_path(&git.url).unwrap_or_else(|| PathBuf::from(&git.url));
        match local_location(&git.url, path)? {
            LocationKind::Directory(_) if git.verify.is_some() => Err(refused_error(
                &git.url,
                "it is a folder, whose files carry no signatures that `verify` could ask for",
            )),
            LocationKind::Directory(path) if is_missing_or_empty(&path) => {
                Err(SourceError::Empty { shown_location: git.url.clone(), within: "the folder".to_owned() })
            }
            LocationKind::Directory(path) => {
                let inside = inner_path(git.path.as_deref())?;
                Ok(Self::Directory(inside.map_or(path.clone(), |inside| path.join(inside))))
            }
            LocationKind::Repository(_) | LocationKind::Remote => Ok(Self::Git(git.clone())),
            LocationKind::File(_) => Err(not_a_folder_error(&git.url)),
        }
    }
}

fn not_a_folder_error(text: &str) -> SourceError {
    refused_error(text, "it is a file, and a source is a folder or a repository")
}

/// Returns whether nothing is at a path: it is missing, or an empty folder, on which something may
/// be mounted later.
pub(crate) fn is_missing_or_empty(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Returns the path that a text means, if it means one: also one where nothing is.
pub(super) fn local_path(text: &str) -> Option<PathBuf> {
    match file_url(text) {
        Ok(Some(path)) => return Some(path),
        Ok(None) => {}
        Err(_) => return None,
    }
    let remote = is_url(text) || is_scp_like(text);
    (!remote).then(|| PathBuf::from(text))
}

/// Without credentials, as it may be shown.
impl fmt::Display for ResolvedLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git(git) | Self::Awaited(git) => f.write_str(&redact(&git.url)),
            Self::Directory(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Returns whether a text is a URL, also one of a path on this host.
pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// Classifies the location that a command line names. A path that exists wins over `host:path`.
pub(crate) fn classify(text: &str) -> Result<LocationKind, SourceError> {
    if is_scp_like(text) && !is_url(text) && !text.starts_with('-') && Path::new(text).exists() {
        return local_location(text, PathBuf::from(text));
    }
    classify_written(text)
}

/// Classifies the location that a configuration names. `host:path` is a host, as for git, whatever
/// is on this one: who may write it may not know what does.
pub(super) fn classify_written(text: &str) -> Result<LocationKind, SourceError> {
    if text.is_empty() || text.starts_with('-') {
        return Err(refused_error(text, "a URL or a path is expected"));
    }
    if let Some((_, why)) = misplaced_login(text) {
        return Err(refused_error(text, why));
    }
    if let Some(path) = file_url(text)? {
        return local_location(text, path);
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        return remote_url(text, scheme, rest);
    }
    if !is_scp_like(text) {
        return local_location(text, PathBuf::from(text));
    }
    if text.contains("::") {
        return Err(refused_error(text, "remote helpers are not run: use https://, ssh:// or a path"));
    }
    let host = text.split(':').next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with('-') {
        return Err(refused_error(text, "it names no host"));
    }
    Ok(LocationKind::Remote)
}

fn remote_url(text: &str, scheme: &str, rest: &str) -> Result<LocationKind, SourceError> {
    if !matches!(scheme, "https" | "ssh" | "http" | "git") {
        return Err(refused_error(
            text,
            "its scheme is not known: use https://, ssh://, git@host:path or a path",
        ));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with('-') {
        return Err(refused_error(text, "it names no host"));
    }
    // git puts it into the command lines of its helpers, and its own part of the path behind it.
    if url(text).is_some_and(|url| !url.query.is_empty()) {
        return Err(refused_error(
            text,
            "a repository's address has no `?` and no `#`; a token goes before the host: https://TOKEN@…",
        ));
    }
    Ok(LocationKind::Remote)
}

/// Returns whether a text is `host:path` or `user@host:path`: a colon before any slash, as git has
/// it.
pub(super) fn is_scp_like(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(host, path)| !host.contains('/') && !host.is_empty() && !path.is_empty())
}

pub(super) fn local_location(text: &str, path: PathBuf) -> Result<LocationKind, SourceError> {
    let metadata = std::fs::metadata(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            SourceError::Missing { shown_location: text.to_owned() }
        }
        _ => SourceError::Unreadable { shown_location: text.to_owned(), error },
    })?;
    Ok(if !metadata.is_dir() {
        LocationKind::File(path)
    } else if path.join(".git").exists() || is_bare(&path) {
        LocationKind::Repository(path)
    } else {
        LocationKind::Directory(path)
    })
}

pub(super) fn is_bare(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// Returns the path of a `file://` URL; none for any other text.
pub(super) fn file_url(text: &str) -> Result<Option<PathBuf>, SourceError> {
    let Some(rest) = text.strip_prefix("file://") else { return Ok(None) };
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(refused_error(
            text,
            "a file:// URL needs an absolute path, for example file:///srv/repo.git",
        ));
    }
    let bytes =
        percent_decoded(path.as_bytes()).ok_or_else(|| refused_error(text, "a `%` needs two hex digits"))?;
    let path = String::from_utf8(bytes).map_err(|_| refused_error(text, "it is not UTF-8"))?;
    Ok(Some(path.into()))
}

pub(super) fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            out.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = rest.get(2..)?;
    }
    Some(out)
}

/// Returns a path inside a repository in its plain form: no slash at either end, none for the root.
pub(super) fn inner_path(path: Option<&str>) -> Result<Option<String>, SourceError> {
    let Some(text) = path else { return Ok(None) };
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(refused_error(text, "`path` may not lead out of the repository"));
    }
    Ok((!parts.is_empty()).then(|| parts.join("/")))
}

/// A URL taken apart.
pub(super) struct UrlParts<'a> {
    pub(super) scheme: &'a str,
    /// The part before `@`, as it is written.
    pub(super) user: Option<&'a str>,
    /// Host, port and path.
    pub(super) plain: &'a str,
    /// The query and what follows it, with its mark.
    pub(super) query: &'a str,
}

/// Takes a URL apart; none for `host:path` and for paths.
pub(super) fn url(text: &str) -> Option<UrlParts<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    // A password may hold anything but a slash.
    let end = rest.find('/').unwrap_or(rest.len());
    let at = rest.get(..end).unwrap_or_default().rfind('@');
    let user = at.and_then(|at| rest.get(..at));
    let rest = at.and_then(|at| rest.get(at + 1..)).unwrap_or(rest);
    let (plain, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    Some(UrlParts { scheme, user, plain, query })
}

impl<'a> UrlParts<'a> {
    /// Returns the name by which ssh logs in, which is no secret; elsewhere it may be a token.
    pub(super) fn login(&self) -> Option<&'a str> {
        self.user.filter(|_| self.scheme == "ssh").and_then(|user| user.split(':').next())
    }
}

/// Returns the parts that must not appear in any text: the part before `@` of a URL, the password
/// in it, and the query.
pub(super) fn secret_parts(text: &str) -> Vec<String> {
    let Some(url) = url(text) else { return Vec::new() };
    let password = url.user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    let user = url.user.filter(|_| password.is_some() || url.scheme != "ssh");
    let query = Some(url.query).filter(|query| query.len() > 1);
    [user, password, query].into_iter().flatten().map(str::to_owned).collect()
}

/// Returns the part of a text before a misplaced login, and what to write instead. A login is
/// misplaced where an `@` follows what would be the host.
fn misplaced_login(text: &str) -> Option<(&str, &'static str)> {
    let Some((scheme, rest)) = text.split_once("://") else {
        let (user, path) = text.split_once(':').filter(|(user, _)| !user.contains(['/', '@']))?;
        let is_login = path.split('/').next().unwrap_or_default().contains('@');
        return is_login.then_some((user, "a token needs a scheme before it: https://USER:TOKEN@HOST/PATH"));
    };
    let (authority, path) = rest.split_once('/')?;
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let has_password = authority.rsplit_once(':').is_some_and(|(_, port)| !is_port(port));
    let is_login = has_password && !authority.contains('@') && path.contains('@');
    is_login.then_some((scheme, "a `/` in a password is written as %2F"))
}

/// Returns the URL without credentials and without a query, which may hold some.
pub(super) fn redact(text: &str) -> String {
    if let Some((before, _)) = misplaced_login(text) {
        return format!("{before}:***");
    }
    let Some(url) = url(text) else { return text.to_owned() };
    match url.user {
        Some(user) if url.login() == Some(user) => format!("{}://{user}@{}", url.scheme, url.plain),
        _ => format!("{}://{}", url.scheme, url.plain),
    }
}

fn refused_error(text: &str, why: &str) -> SourceError {
    // A text that is no source may be anything.
    SourceError::Location { text: mask_likely_secrets(&redact(text)), why: why.to_owned() }
}
