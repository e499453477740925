//! One configured source: looking at it, pinning, and the revision that is in force.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use git2::Oid;

use crate::config::CredentialUse;
use crate::object::{Class, Revision};

use super::bounded::bounded;
use super::error::Error;
use super::guard::{Anchor, Guard, Question};
use super::hints::{Hints, Watched};
use super::lineage::Between;
use super::local;
use super::location::Location;
use super::lock::Lock;
use super::origin::{Origin, POLL_HOST, Parts};
use super::reader::Reader;
use super::settings::Settings;
use super::snapshot::{Blob, Changed, Commit, Snapshot};
use super::store::Store;

/// How far apart the looks at a failing remote get.
const POLL_FAILING: Duration = Duration::from_mins(5);

/// What a look at a source gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The newest revision.
    pub revision: Revision,
    /// Whether it is another one than the last look of this process gave.
    pub changed: bool,
    /// The files of a folder that are gone, but not long enough to count: the revision still holds them.
    pub waiting: Vec<Arc<str>>,
}

/// One source of desired state. Whatever a look at it meets, the last revision stays readable.
#[derive(Debug)]
pub struct Source {
    name: String,
    place: String,
    location: Location,
    identity: String,
    repository: Option<String>,
    interval: Duration,
    origin: Origin,
    reader: Reader,
    pub(super) store: Store,
    /// What its commits must show before they are followed.
    guard: Option<Guard>,
    current: Option<Revision>,
    /// Whether a look of this process gave [`Source::current`].
    looked: bool,
    pins: BTreeSet<Revision>,
    /// Those of the pins that could not be had.
    lost: BTreeSet<Revision>,
    failures: u32,
    /// Whether what was accepted last was looked for, as the first look found what is refused.
    went_back: bool,
    reached: Option<Instant>,
}

impl Source {
    /// Prepares a source; nothing is looked at yet. `state_dir` is this source's own folder and is made when
    /// something has to be kept there. May block shortly on the disk.
    ///
    /// Fails only for what no waiting mends, as a URL that is none. What is missing, not readable or not
    /// reachable fails the looks, until it does no more.
    pub fn open(name: &str, location: &Location, state_dir: &Path) -> Result<Self, Error> {
        Self::open_with(name, location, state_dir, Settings::of_service(name, &CredentialUse::Own))
    }

    /// As [`Source::open`], with other limits.
    pub fn open_with(
        name: &str,
        location: &Location,
        state_dir: &Path,
        settings: Settings,
    ) -> Result<Self, Error> {
        let place = location.to_string();
        let store = Store::new(state_dir, settings);
        let Parts { location, origin, reader, interval, remembered } = Parts::of(location, &place, &store)?;
        Ok(Self {
            name: name.to_owned(),
            identity: location.identity(),
            repository: location.repository(),
            guard: location.verification().map(|verification| Guard::new(verification, name, &place)),
            location,
            interval,
            origin,
            current: remembered,
            reader,
            store,
            looked: false,
            pins: BTreeSet::new(),
            lost: BTreeSet::new(),
            failures: 0,
            went_back: false,
            reached: None,
            place,
        })
    }

    /// The name of the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, without credentials.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What tells its place from another, as [`Location::identity`] says; it may be another one after a look
    /// that found something.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The repository and reference that it follows, as [`Location::repository`] says.
    pub fn repository(&self) -> Option<&str> {
        self.repository.as_deref()
    }

    /// Whether it waits for something to be at its path, and does not know yet what that is.
    pub fn is_awaited(&self) -> bool {
        matches!(self.location, Location::Awaited(_))
    }

    /// A handle for reading, to be taken to other threads.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// The revision in force: the one that the last look gave that gave any, be it an earlier process's.
    pub fn current(&self) -> Option<&Revision> {
        self.current.as_ref()
    }

    /// When a look of this process last succeeded: how old [`Source::current`] may be.
    pub const fn reached(&self) -> Option<Instant> {
        self.reached
    }

    /// Whether its commits must be signed.
    pub const fn verifies(&self) -> bool {
        self.guard.is_some()
    }

    /// What was accepted last of a source whose commits must be signed.
    pub fn accepted(&self) -> Option<&Revision> {
        self.guard.as_ref().and_then(Guard::accepted)
    }

    /// Whether it is known what a look must go by. A source whose commits must be signed is looked at only then.
    pub fn is_anchored(&self) -> bool {
        self.guard.as_ref().is_none_or(Guard::is_anchored)
    }

    /// Takes what is recorded of what was accepted, and says whether a look may find more by it.
    pub fn anchor(&mut self, anchor: Anchor) -> bool {
        self.guard.as_mut().is_some_and(|guard| guard.anchor(anchor))
    }

    /// Looks for the newest revision and, but for a repository on this host, pins it. An error leaves the
    /// last one in force.
    pub async fn observe(&mut self) -> Result<Observed, Error> {
        if !self.is_anchored() {
            let detail = "nobody has told what was accepted of it before".to_owned();
            return Err(Error::Worker { place: self.place.clone(), detail });
        }
        let mut seen = self.look().await;
        let own_store = !matches!(self.origin, Origin::Local { .. });
        if own_store && matches!(seen, Err(Error::Damaged { .. } | Error::Git { .. })) {
            // What is in no table may be our own store's fault too. Now it is looked through, and made anew
            // if it is.
            self.reader.suspect();
            seen = self.look().await;
        }
        match seen {
            Ok(revision) => {
                self.failures = 0;
                self.reached = Some((self.store.settings().clock)());
                let changed = !self.looked || self.current.as_ref() != Some(&revision);
                if changed {
                    let location = self.location.clone();
                    let told = self.blocking(move || Ok((location.identity(), location.repository())));
                    (self.identity, self.repository) = told.await?;
                }
                self.looked = true;
                self.current = Some(revision.clone());
                if let Some(guard) = &mut self.guard {
                    guard.accept(&revision);
                }
                let waiting = match &self.origin {
                    Origin::Directory(directory) => directory.waiting(),
                    _ => Vec::new(),
                };
                Ok(Observed { revision, changed, waiting })
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                if error.is_of_signatures() {
                    self.go_back().await;
                }
                Err(error)
            }
        }
    }

    /// Where the first look finds what is refused, what was accepted last is in force, whatever an earlier process has
    /// left on this host.
    async fn go_back(&mut self) {
        let Some(accepted) = self.accepted().cloned() else { return };
        if self.looked || self.went_back || self.current.as_ref() == Some(&accepted) {
            return;
        }
        let brought = match &self.origin {
            Origin::Remote(remote) => match self.prepared().await {
                Ok(lock) => {
                    let bringing = Box::pin(remote.go_back(&lock, &accepted));
                    tokio::time::timeout(self.store.settings().fetch / 3, bringing).await.unwrap_or(Ok(false))
                }
                Err(error) => Err(error),
            },
            _ => Ok(true),
        };
        self.went_back = brought.is_ok();
        let (reader, revision) = (self.reader.clone(), accepted.clone());
        let read = async { self.blocking(move || reader.check(&revision)).await };
        match brought {
            Ok(true) if read.await.is_ok() => self.current = Some(accepted),
            Ok(_) => {
                tracing::warn!(source = %self.name, %accepted, "what was accepted last cannot be had any more");
            }
            Err(error) => {
                tracing::warn!(source = %self.name, %accepted, "what was accepted last cannot be had: {error}");
            }
        }
    }

    /// Fails unless a revision that is here was accepted last, or is signed itself; nothing is asked of a source that
    /// asks for no signatures.
    pub async fn vouch(&self, revision: &Revision) -> Result<(), Error> {
        match &self.guard {
            Some(guard) if guard.accepted() != Some(revision) => {
                let id = Oid::from_str(revision.as_str()).map_err(|error| self.store.judged(&error))?;
                self.check(guard, revision, &[id]).await
            }
            _ => Ok(()),
        }
    }

    /// Fails unless each of these commits is signed, which are in the store or in a repository on this host.
    async fn check(&self, guard: &Guard, revision: &Revision, commits: &[Oid]) -> Result<(), Error> {
        let lock = self.prepared().await?;
        let foreign = match &self.origin {
            Origin::Local { path, .. } => {
                let path = path.clone();
                Some(self.blocking(move || Ok(local::folders(&path)?.common.join("objects"))).await?)
            }
            _ => None,
        };
        let deadline = self.store.settings().fetch;
        let check = guard.check((&self.store, &lock), foreign.as_deref(), revision, commits);
        let checked = tokio::time::timeout(deadline, check).await;
        checked.map_err(|_| Error::Silent { place: self.place.clone(), after: deadline })?
    }

    /// Fails unless the guard lets a revision pass that is in a repository on this host.
    async fn pass_local(&self, path: &Path, revision: &Revision) -> Result<(), Error> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let base = match guard.question(revision) {
            Question::Nothing => return Ok(()),
            Question::Itself => return self.vouch(revision).await,
            Question::Since(base) => base,
        };
        let commits = match guard.between(&self.store, Some(path), (&base, revision)).await? {
            Between::Exactly(commits) | Between::AtMost(commits) => commits,
            Between::Apart => return Err(guard.apart(revision, &base)),
            Between::Unknown => return Err(guard.cut(revision, &base)),
        };
        self.check(guard, revision, &commits).await
    }

    /// What is awaited may be there now.
    async fn settle(&mut self) -> Result<(), Error> {
        let (location, place, store) = (self.location.clone(), self.place.clone(), self.store.clone());
        let found = self.blocking(move || Parts::of(&location.settled()?, &place, &store));
        let parts = found.await?;
        self.location = parts.location;
        self.origin = parts.origin;
        self.reader = parts.reader;
        self.interval = parts.interval;
        self.current = self.current.take().or(parts.remembered);
        Ok(())
    }

    async fn look(&mut self) -> Result<Revision, Error> {
        if matches!(self.origin, Origin::Awaited(_)) {
            self.settle().await?;
        }
        if self.failures > 0 {
            // What could not be had then may be there now.
            self.lost.clear();
        }
        let known = self.current.as_ref();
        let (lock, revision) = match &self.origin {
            Origin::Local { path, reference } => {
                let revision = self.look_local(path.clone(), reference.clone()).await?;
                Box::pin(self.pass_local(path, &revision)).await?;
                self.mend_copies().await?;
                return Ok(revision);
            }
            Origin::Remote(remote) => {
                let lock = self.prepared().await?;
                let revision =
                    Box::pin(remote.newest(&lock, known, (&self.reader, self.guard.as_ref()))).await?;
                (lock, revision)
            }
            Origin::Directory(directory) => {
                let lock = self.prepared().await?;
                directory.newest(lock, &self.reader).await?
            }
            Origin::Awaited(path) => return Err(Error::Missing { place: path.display().to_string() }),
        };
        let idle = known == Some(&revision);
        if let Err(error) = self.keep_all(&lock).await {
            tracing::warn!(source = %self.name, %error, "a pinned revision could not be fetched again");
        }
        if idle {
            // Only when there is nothing better to do.
            self.store.maintain(&lock).await;
        }
        Ok(revision)
    }

    async fn look_local(&self, path: PathBuf, reference: Option<String>) -> Result<Revision, Error> {
        let (known, reader) = (self.current.clone(), self.reader.clone());
        let seen = self
            .blocking(move || {
                let revision = local::newest(&path, reference.as_deref())?;
                if known.as_ref() != Some(&revision) {
                    reader.check(&revision)?;
                }
                Ok(revision)
            })
            .await;
        match seen {
            Err(Error::NoReference { place, reference }) if self.current.is_some() => {
                Err(Error::Gone { place, reference })
            }
            seen => seen,
        }
    }

    /// Takes the store's lock and makes the store fit for use. At the first look of a process, and when
    /// something could not be read, that means to look through it.
    async fn prepared(&self) -> Result<Lock, Error> {
        let lock = self.store.lock().await?;
        let (store, reader, current) = (self.store.clone(), self.reader.clone(), self.current.clone());
        let local = matches!(self.origin, Origin::Local { .. } | Origin::Awaited(_));
        let (first, suspicion) = (!self.looked && !local, reader.take_suspicion());
        self.blocking(move || {
            store.prepare(&lock)?;
            let whole = |revision: &Revision| local || reader.is_whole(revision);
            let sound = (!first && !suspicion) || store.is_sound();
            if !sound || (suspicion && !current.as_ref().is_none_or(whole)) {
                store.replace(&lock, "objects are missing or cannot be read")?;
                reader.take_suspicion();
            }
            Ok(lock)
        })
        .await
    }

    /// Keeps these revisions, and the one in force, readable whatever happens to the source; forgets all
    /// others. Gives those that cannot be had any more.
    ///
    /// For a repository on this host this copies them, which need not be waited for before reading.
    pub async fn pin(&mut self, revisions: &BTreeSet<Revision>) -> Result<Vec<Revision>, Error> {
        self.pins.clone_from(revisions);
        self.lost.clear();
        let local = matches!(self.origin, Origin::Local { .. });
        let in_place = local || matches!(self.origin, Origin::Awaited(_));
        if in_place && revisions.is_empty() && !self.store.exists() {
            return Ok(Vec::new());
        }
        let lock = self.prepared().await?;
        self.keep_all(&lock).await?;
        let current = self.current.as_ref().filter(|_| !local);
        for revision in self.store.pinned()? {
            if !self.pins.contains(&revision) && current != Some(&revision) {
                self.store.unpin(&lock, &revision)?;
            }
        }
        self.store.maintain(&lock).await;
        Ok(self.lost.iter().cloned().collect())
    }

    /// Fetches an older revision, where it is not here and the history of what is followed holds it.
    pub async fn bring(&mut self, revision: &Revision) -> Result<(), Error> {
        if !matches!(self.origin, Origin::Remote(_)) {
            return Ok(());
        }
        let lock = self.prepared().await?;
        self.pins.insert(revision.clone());
        self.keep(&lock, revision).await.map(drop)
    }

    /// Pins what should be pinned and is not, be it that the store had to be made anew. What fails is not
    /// tried again before the next [`Source::pin`], so that it does not hold up every look.
    async fn keep_all(&mut self, lock: &Lock) -> Result<(), Error> {
        let pinned = self.store.pinned()?;
        let missing: Vec<Revision> = self
            .pins
            .iter()
            .filter(|pin| !pinned.contains(pin) && !self.lost.contains(pin))
            .cloned()
            .collect();
        let mut failed = Ok(());
        let mut hopeless = false;
        for revision in missing {
            if hopeless {
                self.lost.insert(revision);
                continue;
            }
            match self.keep(lock, &revision).await {
                Ok(true) => {}
                Ok(false) => drop(self.lost.insert(revision)),
                Err(error) => {
                    // Where one is not answered, the next would wait as long for nothing.
                    hopeless |= error.class() == Class::Transient;
                    self.lost.insert(revision);
                    failed = failed.and(Err(error));
                }
            }
        }
        failed
    }

    /// Copies a local repository's pins again if the copies turned out to be damaged.
    async fn mend_copies(&mut self) -> Result<(), Error> {
        if !self.reader.is_suspect() || !self.store.exists() {
            return Ok(());
        }
        let lock = self.prepared().await?;
        if let Err(error) = self.keep_all(&lock).await {
            tracing::warn!(source = %self.name, %error, "a pinned revision could not be copied again");
        }
        Ok(())
    }

    /// Pins one revision, from wherever it can be had.
    async fn keep(&self, lock: &Lock, revision: &Revision) -> Result<bool, Error> {
        if self.store.holds(revision) {
            self.store.pin(lock, revision)?;
            return Ok(true);
        }
        match &self.origin {
            Origin::Local { path, .. } => local::copy(&self.store, lock, path, revision).await,
            Origin::Remote(remote) => remote.bring(lock, revision).await,
            Origin::Directory(_) | Origin::Awaited(_) => Ok(false),
        }
    }

    /// Wakes when a folder or a repository on this host may have changed; never for a remote.
    pub fn hints(&self) -> Hints {
        let watched = match &self.origin {
            Origin::Local { path, .. } => Watched::Repository(path.clone()),
            Origin::Directory(directory) => Watched::Folder(directory.path.clone()),
            Origin::Awaited(path) => Watched::Awaited(path.clone()),
            Origin::Remote(_) => return Hints::none(),
        };
        Hints::start(&self.name, watched, self.store.settings())
    }

    /// How long to wait for the next look when no hint comes. `random` is between 0 and 1 and spreads the
    /// looks of many sources; a failing remote is looked at less and less often.
    pub fn next_poll(&self, random: f64) -> Duration {
        let base = match &self.origin {
            Origin::Remote(_) => {
                let doubled = self.interval.saturating_mul(1 << self.failures.saturating_sub(1).min(10));
                doubled.min(POLL_FAILING.max(self.interval))
            }
            Origin::Local { .. } | Origin::Directory(_) | Origin::Awaited(_) => self.interval.min(POLL_HOST),
        };
        let spread = base.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0));
        let due = match &self.origin {
            Origin::Directory(directory) => directory.due(),
            _ => None,
        };
        due.map_or(spread, |due| spread.min(due))
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
        bounded(&self.place, self.store.settings().fetch, work).await?
    }
}
