//! The origin of a source's revisions: a repository on this host, a remote, or a folder.

use std::path::PathBuf;
use std::time::Duration;

use crate::object::Revision;

use super::directory::DirectorySource;
use super::error::SourceError;
use super::local::LocalReference;
use super::location::{self, GitLocation, LocationKind, ResolvedLocation};
use super::object_stores::StorePath;
use super::reader::{RevisionForm, RevisionReader};
use super::remote::RemoteReference;
use super::store::RevisionStore;

/// The polling interval of a place on this host, should a hint have been missed.
pub(super) const HOST_POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The origin of a source's revisions.
#[derive(Debug)]
pub(super) enum RevisionOrigin {
    Local(LocalReference),
    Remote(RemoteReference),
    Directory(DirectorySource),
    /// Nothing is there yet.
    Awaited(PathBuf),
}

/// The parts of a location.
#[derive(Debug)]
pub(super) struct OriginParts {
    /// The location, as far as it is known now what is there.
    pub(super) location: ResolvedLocation,
    pub(super) origin: RevisionOrigin,
    pub(super) reader: RevisionReader,
    pub(super) interval: Duration,
    /// The revision that an earlier process left in force.
    pub(super) remembered: Option<Revision>,
}

impl OriginParts {
    /// Fails only where no observation could ever succeed: what is missing or cannot be read now is
    /// reported by the observations.
    pub(super) fn of(
        location: &ResolvedLocation,
        shown_location: &str,
        store: &RevisionStore,
    ) -> Result<Self, SourceError> {
        match location {
            ResolvedLocation::Git(git) => git_parts(git, shown_location, store),
            ResolvedLocation::Directory(path) => directory_parts(path, shown_location, store),
            ResolvedLocation::Awaited(git) => match location.resolve() {
                Ok(settled) => Self::of(&settled, shown_location, store),
                Err(error @ SourceError::Location { .. }) => Err(error),
                Err(_) => awaited_parts(git, shown_location, store),
            },
        }
    }

    fn new(
        location: ResolvedLocation,
        origin: RevisionOrigin,
        reader: RevisionReader,
        interval: Duration,
    ) -> Self {
        let remembered = match &origin {
            RevisionOrigin::Awaited(_) => None,
            RevisionOrigin::Local(local) => local.remembered_revision(),
            RevisionOrigin::Remote(remote) => remote.remembered_revision(),
            RevisionOrigin::Directory(directory) => directory.recorded_revision(),
        };
        let remembered = remembered.filter(|revision| reader.check(revision).is_ok());
        Self { location, origin, reader, interval, remembered }
    }
}

fn git_parts(
    git: &GitLocation,
    shown_location: &str,
    store: &RevisionStore,
) -> Result<OriginParts, SourceError> {
    let inner = location::inner_path(git.path.as_deref())?;
    let stores = [store.path().to_owned(), store.history_path()].map(StorePath::Own).to_vec();
    let origin = git_origin(git, shown_location, store)?;
    let reader = RevisionReader::new(
        stores,
        RevisionForm::Commits,
        shown_location.to_owned(),
        inner,
        store.settings().read_limits(),
    )
    .with_rendering(store.rendering());
    Ok(OriginParts::new(ResolvedLocation::Git(git.clone()), origin, reader, git.interval))
}

fn directory_parts(
    path: &std::path::Path,
    shown_location: &str,
    store: &RevisionStore,
) -> Result<OriginParts, SourceError> {
    let stores = vec![StorePath::Own(store.path().to_owned())];
    let reader = RevisionReader::new(
        stores,
        RevisionForm::Snapshots,
        shown_location.to_owned(),
        None,
        store.settings().read_limits(),
    )
    .with_rendering(store.rendering());
    let origin = RevisionOrigin::Directory(DirectorySource::new(path, shown_location, store.clone())?);
    Ok(OriginParts::new(ResolvedLocation::Directory(path.to_owned()), origin, reader, HOST_POLL_INTERVAL))
}

/// Returns the parts of an awaited location. Until its kind is known, the snapshots or commits of
/// an earlier process must be readable. A folder leaves a snapshot in force behind, a repository
/// only copies of its commits.
fn awaited_parts(
    git: &GitLocation,
    shown_location: &str,
    store: &RevisionStore,
) -> Result<OriginParts, SourceError> {
    let path = location::local_path(&git.url).unwrap_or_else(|| PathBuf::from(&git.url));
    let folder = location::inner_path(git.path.as_deref())?.map_or(path.clone(), |inner| path.join(inner));
    let was_folder = directory_parts(&folder, shown_location, store)?;
    let parts = match was_folder.remembered {
        Some(_) => was_folder,
        None => git_parts(git, shown_location, store)?,
    };
    let (location, origin) = (
        ResolvedLocation::Awaited(git.clone()),
        RevisionOrigin::Awaited(absolute_path(path, shown_location)?),
    );
    Ok(OriginParts { location, origin, ..parts })
}

/// Returns the origin. A path that is no repository yet, or is not mounted yet, may become one.
fn git_origin(
    git: &GitLocation,
    shown_location: &str,
    store: &RevisionStore,
) -> Result<RevisionOrigin, SourceError> {
    let path = match location::classify_written(&git.url) {
        Ok(LocationKind::Remote) => {
            let remote =
                RemoteReference::new(&git.url, git.reference.as_deref(), shown_location, store.clone())?;
            return Ok(RevisionOrigin::Remote(remote));
        }
        Ok(LocationKind::Repository(path) | LocationKind::Directory(path) | LocationKind::File(path)) => path,
        Err(SourceError::Missing { .. } | SourceError::Unreadable { .. }) => {
            location::local_path(&git.url).unwrap_or_else(|| PathBuf::from(&git.url))
        }
        Err(error) => return Err(error),
    };
    let path = absolute_path(path, shown_location)?;
    LocalReference::new(path, git.reference.as_deref(), shown_location, store.clone())
        .map(RevisionOrigin::Local)
}

/// Makes a path absolute. Relative paths are taken from where rhumb was started, whatever happens
/// later.
fn absolute_path(path: PathBuf, shown_location: &str) -> Result<PathBuf, SourceError> {
    std::path::absolute(path)
        .map_err(|error| SourceError::Unreadable { shown_location: shown_location.to_owned(), error })
}
