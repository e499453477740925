//! What stands behind a source: a repository on this host, a remote, or a folder.

use std::path::PathBuf;
use std::time::Duration;

use crate::object::Revision;

use super::directory::Directory;
use super::error::Error;
use super::location::{self, GitLocation, Location, Place};
use super::reader::{Form, Reader};
use super::remote::Remote;
use super::store::Store;

/// How often what is on this host is looked at, should a hint have been missed.
pub(super) const POLL_HOST: Duration = Duration::from_secs(10);

/// Where looks go.
#[derive(Debug)]
pub(super) enum Origin {
    Local {
        path: PathBuf,
        reference: Option<String>,
    },
    Remote(Remote),
    Directory(Directory),
    /// Nothing is there yet.
    Awaited(PathBuf),
}

/// What a location is made into.
#[derive(Debug)]
pub(super) struct Parts {
    /// The location, as far as it is known now what is there.
    pub(super) location: Location,
    pub(super) origin: Origin,
    pub(super) reader: Reader,
    pub(super) interval: Duration,
    /// The revision that an earlier process left in force.
    pub(super) remembered: Option<Revision>,
}

impl Parts {
    /// Fails only where no look could ever succeed: what is missing or cannot be read now is for the looks
    /// to tell.
    pub(super) fn of(location: &Location, place: &str, store: &Store) -> Result<Self, Error> {
        match location {
            Location::Git(git) => git_parts(git, place, store),
            Location::Directory(path) => directory_parts(path, place, store),
            Location::Awaited(git) => match location.settled() {
                Ok(settled) => Self::of(&settled, place, store),
                Err(error @ Error::Location { .. }) => Err(error),
                Err(_) => awaited_parts(git, place, store),
            },
        }
    }

    fn new(location: Location, origin: Origin, reader: Reader, interval: Duration) -> Self {
        let remembered = match &origin {
            Origin::Local { .. } | Origin::Awaited(_) => None,
            Origin::Remote(remote) => remote.remembered(),
            Origin::Directory(directory) => directory.remembered(),
        };
        let remembered = remembered.filter(|revision| reader.check(revision).is_ok());
        Self { location, origin, reader, interval, remembered }
    }
}

fn git_parts(git: &GitLocation, place: &str, store: &Store) -> Result<Parts, Error> {
    let inner = location::inner_path(git.path.as_deref())?;
    let mut stores = vec![store.path().to_owned()];
    let origin = git_origin(git, place, store)?;
    if let Origin::Local { path, .. } = &origin {
        stores.insert(0, path.clone());
    }
    let reader = Reader::new(stores, Form::Commits, place.to_owned(), inner, store.settings().limits());
    Ok(Parts::new(Location::Git(git.clone()), origin, reader, git.interval))
}

fn directory_parts(path: &std::path::Path, place: &str, store: &Store) -> Result<Parts, Error> {
    let stores = vec![store.path().to_owned()];
    let reader = Reader::new(stores, Form::Snapshots, place.to_owned(), None, store.settings().limits());
    let origin = Origin::Directory(Directory::new(path, place, store.clone())?);
    Ok(Parts::new(Location::Directory(path.to_owned()), origin, reader, POLL_HOST))
}

/// Until it is known what it is, what an earlier process kept of it must be readable. A folder leaves a
/// snapshot in force behind, a repository only copies of its commits.
fn awaited_parts(git: &GitLocation, place: &str, store: &Store) -> Result<Parts, Error> {
    let path = location::local_path(&git.url).unwrap_or_else(|| PathBuf::from(&git.url));
    let folder = location::inner_path(git.path.as_deref())?.map_or(path.clone(), |inner| path.join(inner));
    let was_folder = directory_parts(&folder, place, store)?;
    let parts = match was_folder.remembered {
        Some(_) => was_folder,
        None => git_parts(git, place, store)?,
    };
    let (location, origin) = (Location::Awaited(git.clone()), Origin::Awaited(absolute(path, place)?));
    Ok(Parts { location, origin, ..parts })
}

/// A path that is no repository yet, or not mounted yet, may become one: looking at it tells.
fn git_origin(git: &GitLocation, place: &str, store: &Store) -> Result<Origin, Error> {
    let path = match location::classify_written(&git.url) {
        Ok(Place::Remote) => {
            let remote = Remote::new(&git.url, git.reference.as_deref(), place, store.clone())?;
            return Ok(Origin::Remote(remote));
        }
        Ok(Place::Repository(path) | Place::Directory(path) | Place::File(path)) => path,
        Err(Error::Missing { .. } | Error::Unreadable { .. }) => {
            location::local_path(&git.url).unwrap_or_else(|| PathBuf::from(&git.url))
        }
        Err(error) => return Err(error),
    };
    Ok(Origin::Local { path: absolute(path, place)?, reference: git.reference.clone() })
}

/// Relative paths are taken from where rhumb was started, whatever happens later.
fn absolute(path: PathBuf, place: &str) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| Error::Unreadable { place: place.to_owned(), error })
}
