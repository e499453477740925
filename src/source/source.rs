//! One configured source: looking at it, and the revision that is in force.

use std::path::{Path, PathBuf};

use crate::object::Revision;

use super::error::Error;
use super::local;
use super::location::{self, GitLocation, Location, Place};
use super::reader::{Form, Reader};
use super::settings::Settings;
use super::snapshot::{Blob, Changed, Commit, Snapshot};

/// What a look at a source gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The newest revision.
    pub revision: Revision,
    /// Whether it is another one than the last look gave.
    pub changed: bool,
}

/// One source of desired state. Whatever a look at it meets, the last revision stays readable.
#[derive(Debug)]
pub struct Source {
    name: String,
    place: String,
    settings: Settings,
    origin: Origin,
    reader: Reader,
    current: Option<Revision>,
}

#[derive(Debug)]
enum Origin {
    Local { path: PathBuf, reference: Option<String> },
}

impl Source {
    /// Prepares a source; nothing is looked at yet. `state_dir` is this source's own folder and is made when
    /// something has to be kept there.
    pub fn open(name: &str, location: &Location, state_dir: &Path) -> Result<Self, Error> {
        Self::open_with(name, location, state_dir, Settings::default())
    }

    /// As [`Source::open`], with other limits.
    pub fn open_with(
        name: &str,
        location: &Location,
        state_dir: &Path,
        settings: Settings,
    ) -> Result<Self, Error> {
        let place = location.to_string();
        match location {
            Location::Git(git) => Self::open_git(name, git, place, state_dir, settings),
            Location::Directory(_) => {
                Err(Error::Unsupported { place, what: "a directory".to_owned(), instead: "not yet" })
            }
        }
    }

    fn open_git(
        name: &str,
        git: &GitLocation,
        place: String,
        state_dir: &Path,
        settings: Settings,
    ) -> Result<Self, Error> {
        let inner = location::inner_path(git.path.as_deref())?;
        match location::classify(&git.url)? {
            Place::Repository(path) => {
                let stores = vec![path.clone(), state_dir.join("store.git")];
                let reader = Reader::new(stores, Form::Commits, place.clone(), inner, settings.max_file);
                let origin = Origin::Local { path, reference: git.reference.clone() };
                Ok(Self { name: name.to_owned(), place, settings, origin, reader, current: None })
            }
            Place::Directory(_) | Place::File(_) => {
                Err(Error::NotARepository { place, detail: "the path is no git repository".to_owned() })
            }
            Place::Remote => {
                Err(Error::Unsupported { place, what: "a remote".to_owned(), instead: "not yet" })
            }
        }
    }

    /// The name of the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, without credentials.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// A handle for reading, to be taken to other threads.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// The revision in force: the last one that a look gave.
    pub fn current(&self) -> Option<&Revision> {
        self.current.as_ref()
    }

    /// Looks for the newest revision. An error leaves the last one in force.
    pub async fn observe(&mut self) -> Result<Observed, Error> {
        let revision = match &self.origin {
            Origin::Local { path, reference } => {
                let (path, reference, reader) = (path.clone(), reference.clone(), self.reader.clone());
                let known = self.current.clone();
                self.blocking(move || {
                    let revision = local::newest(&path, reference.as_deref())?;
                    if known.as_ref() != Some(&revision) {
                        reader.check(&revision)?;
                    }
                    Ok(revision)
                })
                .await
                .map_err(|error| self.gone(error))?
            }
        };
        let changed = self.current.as_ref() != Some(&revision);
        self.current = Some(revision.clone());
        Ok(Observed { revision, changed })
    }

    /// A reference that was there at the last look and is not found now.
    fn gone(&self, error: Error) -> Error {
        match error {
            Error::NoReference { place, reference } if self.current.is_some() => {
                Error::Gone { place, reference }
            }
            other => other,
        }
    }

    /// Lists the files of a revision. Blocks.
    pub fn snapshot(&self, revision: &Revision) -> Result<Snapshot, Error> {
        self.reader.snapshot(revision)
    }

    /// Compares two revisions. Blocks.
    pub fn changes(&self, from: &Revision, to: &Revision) -> Result<Vec<Changed>, Error> {
        self.reader.changes(from, to)
    }

    /// Who made a revision; none for the snapshot of a folder. Blocks.
    pub fn commit(&self, revision: &Revision) -> Result<Option<Commit>, Error> {
        self.reader.commit(revision)
    }

    /// Reads one file's bytes. Blocks.
    pub fn read(&self, blob: Blob) -> Result<Vec<u8>, Error> {
        self.reader.read(blob)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => Err(Error::Worker { place: self.place.clone(), detail: error.to_string() }),
        }
    }
}
