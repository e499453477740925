//! One configured source: its observations, its pins, and the revision that is in force.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use git2::Oid;

use crate::object::{ErrorClass, Revision};

use super::bounded::{WorkSlot, await_bounded};
use super::change_hints::{ChangeHints, HintTarget};
use super::cluster_facts::ClusterFacts;
use super::commit_verifier::{CommitVerifier, VerificationRecord};
use super::error::SourceError;
use super::location::ResolvedLocation;
use super::origin::{HOST_POLL_INTERVAL, OriginParts, RevisionOrigin};
use super::reader::RevisionReader;
use super::rendered_revision::RenderStep;
use super::rendering::LastRender;
use super::settings::SourceSettings;
use super::state_lock::StateLock;
use super::store::RevisionStore;

/// The longest interval of observations of a failing remote.
const MAX_FAILING_POLL_INTERVAL: Duration = Duration::from_mins(5);

/// The result of an observation of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceObservation {
    /// The newest revision.
    pub revision: Revision,
    /// Indicates whether it is another one than the last observation of this process gave.
    pub changed: bool,
    /// Indicates whether it was rendered just now.
    pub rendered: RenderStep,
    /// The files of a folder that are gone, but not long enough to count: the revision still holds
    /// them.
    pub waiting: Vec<Arc<str>>,
}

/// One source of desired state. The last revision stays readable whatever an observation meets.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    shown_location: String,
    /// The slot of all work that waits for the disk.
    work: WorkSlot,
    location: ResolvedLocation,
    identity: String,
    repository: Option<String>,
    interval: Duration,
    origin: RevisionOrigin,
    pub(super) reader: RevisionReader,
    pub(super) store: RevisionStore,
    /// The verification of its commits.
    verifier: Option<CommitVerifier>,
    pub(super) current: Option<Revision>,
    /// Indicates whether an observation of this process gave [`Source::current_revision`].
    observed_once: bool,
    pins: BTreeSet<Revision>,
    /// Pins that could not be had.
    unavailable_pins: BTreeSet<Revision>,
    /// The number of the store in which the pins were looked after last; none before.
    pins_kept_in: Option<usize>,
    failures: u32,
    /// Indicates whether the last accepted revision was looked up, as the first observation found
    /// what is refused.
    fell_back: bool,
    last_success: Option<Instant>,
    /// The revision that was rendered last.
    pub(super) rendered: Option<LastRender>,
    /// The facts of the cluster that renders may use.
    pub(super) facts: ClusterFacts,
}

impl Source {
    /// Prepares a source without an observation of it. `state_dir` is this source's own folder and
    /// is made when something has to be kept there. May block shortly on the disk.
    ///
    /// Fails only for faults that no waiting mends, as an invalid URL. A place that is missing,
    /// unreadable or unreachable fails the observations, until it is no more.
    pub(crate) fn open_with(
        name: &str,
        location: &ResolvedLocation,
        state_dir: &Path,
        settings: SourceSettings,
    ) -> Result<Self, SourceError> {
        let shown_location = location.to_string();
        let store = RevisionStore::new(state_dir, settings);
        let OriginParts { location, origin, reader, interval, remembered } =
            OriginParts::of(location, &shown_location, &store)?;
        let (identity, repository) = location.identities();
        Ok(Self {
            name: name.to_owned(),
            identity,
            repository,
            verifier: location
                .verification()
                .map(|verification| CommitVerifier::new(verification, name, &shown_location)),
            work: WorkSlot::default(),
            location,
            interval,
            origin,
            current: remembered,
            reader,
            store,
            observed_once: false,
            pins: BTreeSet::new(),
            unavailable_pins: BTreeSet::new(),
            pins_kept_in: None,
            failures: 0,
            fell_back: false,
            last_success: None,
            rendered: None,
            facts: ClusterFacts::default(),
            shown_location,
        })
    }

    /// Returns the name of the source.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the identity of its location, as [`ResolvedLocation::location_id`] has it. It may
    /// change after an observation that found something.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the repository and reference that it follows, as [`ResolvedLocation::repository`]
    /// says.
    pub(crate) fn repository(&self) -> Option<&str> {
        self.repository.as_deref()
    }

    /// Returns whether it waits for something to be at its path, and does not know yet what that
    /// is.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self.location, ResolvedLocation::Awaited(_))
    }

    /// Returns a handle for reading, to be taken to other threads.
    pub(crate) fn reader(&self) -> RevisionReader {
        self.reader.clone()
    }

    /// Returns the revision in force: of the last successful observation, also of an earlier
    /// process.
    pub(crate) fn current_revision(&self) -> Option<&Revision> {
        self.current.as_ref()
    }

    /// Returns when an observation of this process last succeeded: how old
    /// [`Source::current_revision`] may be.
    pub(crate) const fn last_success(&self) -> Option<Instant> {
        self.last_success
    }

    /// Returns whether its commits must be signed.
    pub(crate) const fn is_verified(&self) -> bool {
        self.verifier.is_some()
    }

    /// Returns whether each of its commits must be signed since the one that was accepted last.
    pub(crate) fn is_range_verified(&self) -> bool {
        self.verifier.as_ref().is_some_and(CommitVerifier::is_of_range)
    }

    /// Returns the last accepted revision of a source whose commits must be signed.
    pub(crate) fn accepted_revision(&self) -> Option<&Revision> {
        self.verifier.as_ref().and_then(CommitVerifier::accepted_revision)
    }

    /// Returns whether it is known what an observation must go by. A source whose commits must be
    /// signed is observed only then.
    pub(crate) fn has_verification_record(&self) -> bool {
        self.verifier.as_ref().is_none_or(CommitVerifier::has_verification_record)
    }

    /// Takes what is recorded of what was accepted, and returns whether an observation may find
    /// more by it.
    pub(crate) fn record_verification(&mut self, verification_record: VerificationRecord) -> bool {
        self.verifier.as_mut().is_some_and(|verifier| verifier.record_verification(verification_record))
    }

    /// Looks for the newest revision and pins it. An error leaves the last one in force.
    pub(crate) async fn observe(&mut self) -> Result<SourceObservation, SourceError> {
        if !self.has_verification_record() {
            let detail = "it is not known which revision of it was accepted before".to_owned();
            return Err(SourceError::Worker { shown_location: self.shown_location.clone(), detail });
        }
        let mut seen = self.observe_newest().await;
        // Damage of a repository on this host is copied by nobody. That of our own store names it.
        let is_of_store = matches!(&seen, Err(SourceError::Damaged { shown_location, .. }) if *shown_location == self.store.shown_location());
        let own_store = !matches!(self.origin, RevisionOrigin::Local(_))
            || self.reader.is_store_check_due()
            || is_of_store;
        if own_store && matches!(seen, Err(SourceError::Damaged { .. } | SourceError::Git { .. })) {
            // An error in no table may be our own store's fault too. It is checked, and made anew
            // if it is.
            self.reader.require_store_check();
            seen = self.observe_newest().await;
        }
        match seen {
            Ok(revision) => {
                let rendered = match self.render_revision(&revision).await {
                    Ok(rendered) => rendered,
                    // The caller asks for them, and observes again.
                    Err(error @ SourceError::FactsWanted(_)) => return Err(error),
                    Err(error) => {
                        self.failures = self.failures.saturating_add(1);
                        return Err(error);
                    }
                };
                self.failures = 0;
                self.last_success = Some((self.store.settings().clock)());
                let changed = !self.observed_once || self.current.as_ref() != Some(&revision);
                if changed {
                    let location = self.location.clone();
                    let identities = self.run_blocking(move || Ok(location.identities()));
                    (self.identity, self.repository) = identities.await?;
                }
                self.observed_once = true;
                self.current = Some(revision.clone());
                if let Some(verifier) = &mut self.verifier {
                    verifier.accept(&revision);
                }
                let waiting = match &self.origin {
                    RevisionOrigin::Directory(directory) => directory.absent_files(),
                    _ => Vec::new(),
                };
                Ok(SourceObservation { revision, changed, rendered, waiting })
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                if error.is_of_signatures() {
                    self.fall_back_to_accepted().await;
                }
                Err(error)
            }
        }
    }

    /// Goes back to the last accepted revision where the first observation finds a refused one,
    /// whatever an earlier process has left on this host.
    async fn fall_back_to_accepted(&mut self) {
        let Some(accepted) = self.accepted_revision().cloned() else { return };
        if self.observed_once || self.fell_back || self.current.as_ref() == Some(&accepted) {
            return;
        }
        let brought = match &self.origin {
            RevisionOrigin::Remote(remote) => match self.prepare_store().await {
                Ok(lock) => {
                    let bringing = Box::pin(remote.fall_back_to_accepted(&lock, &accepted));
                    tokio::time::timeout(self.store.settings().fetch / 3, bringing).await.unwrap_or(Ok(false))
                }
                Err(error) => Err(error),
            },
            RevisionOrigin::Local(local) => match self.prepare_store().await {
                Ok(lock) => Box::pin(local.fall_back_to_accepted(&lock, &accepted)).await,
                Err(error) => Err(error),
            },
            _ => Ok(true),
        };
        self.fell_back = brought.is_ok();
        let (reader, revision) = (self.reader.clone(), accepted.clone());
        let read = async { self.run_blocking(move || reader.check(&revision)).await };
        match brought {
            Ok(true) if read.await.is_ok() => self.current = Some(accepted),
            Ok(_) => {
                tracing::warn!(source = %self.name, %accepted, "the accepted revision is no longer there");
            }
            Err(error) => {
                tracing::warn!(source = %self.name, %accepted, "the accepted revision cannot be fetched: {error}");
            }
        }
    }

    /// Fails unless a revision that is here was accepted last, or is signed itself; nothing is
    /// asked of a source that asks for no signatures.
    pub(crate) async fn verify_signature(&self, revision: &Revision) -> Result<(), SourceError> {
        match &self.verifier {
            Some(verifier) if verifier.accepted_revision() != Some(revision) => {
                let id =
                    Oid::from_str(revision.as_str()).map_err(|error| self.store.classify_error(&error))?;
                self.check(verifier, revision, &[id]).await
            }
            _ => Ok(()),
        }
    }

    /// Fails unless each of these commits is signed, which are in the store.
    async fn check(
        &self,
        verifier: &CommitVerifier,
        revision: &Revision,
        commits: &[Oid],
    ) -> Result<(), SourceError> {
        let lock = self.prepare_store().await?;
        let deadline = self.store.settings().fetch;
        await_bounded(&self.shown_location, deadline, verifier.check(&self.store, &lock, revision, commits))
            .await
    }

    /// Resolves an awaited location: it may be there now.
    async fn resolve_location(&mut self) -> Result<(), SourceError> {
        self.find_origin(ResolvedLocation::resolve).await
    }

    /// Takes over the store of an older version, with the revision that was in force.
    async fn take_over_older_store(&mut self) -> Result<(), SourceError> {
        drop(self.prepare_store().await?);
        self.find_origin(|location| Ok(location.clone())).await
    }

    /// Finds where revisions come from, at a location that is derived from the present one.
    async fn find_origin(
        &mut self,
        derive: fn(&ResolvedLocation) -> Result<ResolvedLocation, SourceError>,
    ) -> Result<(), SourceError> {
        let (location, shown_location, store) =
            (self.location.clone(), self.shown_location.clone(), self.store.clone());
        let parts =
            self.run_blocking(move || OriginParts::of(&derive(&location)?, &shown_location, &store)).await?;
        self.location = parts.location;
        self.origin = parts.origin;
        self.reader = parts.reader;
        self.interval = parts.interval;
        self.current = self.current.take().or(parts.remembered);
        Ok(())
    }

    async fn observe_newest(&mut self) -> Result<Revision, SourceError> {
        if self.store.has_legacy_store() {
            self.take_over_older_store().await?;
        }
        if matches!(self.origin, RevisionOrigin::Awaited(_)) {
            self.resolve_location().await?;
        }
        if self.failures > 0 {
            // Revisions that could not be had then may be there now.
            self.unavailable_pins.clear();
        }
        let known = self.current.as_ref();
        let (lock, revision) = match &self.origin {
            RevisionOrigin::Local(local) => {
                let lock = self.prepare_store().await?;
                let revision =
                    Box::pin(local.newest_revision(&lock, known, &self.reader, self.verifier.as_ref()))
                        .await?;
                (lock, revision)
            }
            RevisionOrigin::Remote(remote) => {
                let lock = self.prepare_store().await?;
                let revision =
                    Box::pin(remote.newest_revision(&lock, known, &self.reader, self.verifier.as_ref()))
                        .await?;
                (lock, revision)
            }
            RevisionOrigin::Directory(directory) => {
                let lock = self.prepare_store().await?;
                directory.newest(lock, &self.reader).await?
            }
            RevisionOrigin::Awaited(path) => {
                return Err(SourceError::Missing { shown_location: path.display().to_string() });
            }
        };
        let idle = known == Some(&revision);
        // A new revision is read first. Nothing is dropped before the next look, which finds nothing
        // new and keeps the pins.
        let is_same_store = self.pins_kept_in == Some(self.store.creation_count());
        if (idle || !is_same_store)
            && let Err(error) = self.keep_all(&lock).await
        {
            tracing::warn!(source = %self.name, %error, "a pinned revision could not be fetched again");
        }
        if idle {
            // Only when there is nothing better to do.
            Box::pin(self.store.maintain(&lock)).await;
        }
        Ok(revision)
    }

    /// Takes the store's lock and makes the store fit for use. At the first observation of a
    /// process, and when something could not be read, the whole store is checked.
    pub(super) async fn prepare_store(&self) -> Result<StateLock, SourceError> {
        let lock = self.store.lock().await?;
        Box::pin(self.store.migrate_legacy_store(&lock)).await?;
        let (store, reader, current) = (self.store.clone(), self.reader.clone(), self.current.clone());
        let awaited = matches!(self.origin, RevisionOrigin::Awaited(_));
        let (first, suspicion) = (!self.observed_once && !awaited, reader.take_store_check());
        let prepare = move || {
            store.prepare(&lock)?;
            let is_complete = |revision: &Revision| awaited || reader.is_complete(revision);
            let sound = (!first && !suspicion) || store.is_sound();
            let readable = || {
                current.as_ref().is_none_or(is_complete) && (awaited || has_readable_pins(&store, &reader))
            };
            if !sound || (suspicion && !readable()) {
                store.replace(&lock, "objects are missing or cannot be read")?;
                reader.take_store_check();
            }
            if suspicion {
                store.discard_caches(&lock)?;
            }
            Ok(lock)
        };
        let lock = self.run_blocking(prepare).await?;
        // A pack that this process has open may be another one on the disk by now.
        if suspicion && Box::pin(self.store.is_damaged_for_git(&lock)).await {
            self.store.replace(&lock, "git cannot read it")?;
        }
        Ok(lock)
    }

    /// Keeps these revisions, and the one in force, readable whatever happens to the source;
    /// forgets all others. Gives those that cannot be had any more.
    pub(crate) async fn pin(&mut self, revisions: &BTreeSet<Revision>) -> Result<Vec<Revision>, SourceError> {
        self.pins.clone_from(revisions);
        self.unavailable_pins.clear();
        let awaited = matches!(self.origin, RevisionOrigin::Awaited(_));
        if awaited && revisions.is_empty() && !self.store.exists() {
            return Ok(Vec::new());
        }
        let lock = self.prepare_store().await?;
        self.keep_all(&lock).await?;
        let current = self.current.as_ref();
        for revision in self.store.pinned_revisions()? {
            if !self.pins.contains(&revision) && current != Some(&revision) {
                self.store.unpin(&lock, &revision)?;
            }
        }
        let (pins, current) = (&self.pins, self.current.as_ref());
        self.store.forget_rendered(&lock, |revision| pins.contains(revision) || current == Some(revision))?;
        Box::pin(self.store.maintain(&lock)).await;
        Ok(self.unavailable_pins.iter().cloned().collect())
    }

    /// Fetches an older revision, where it is not here and the history of what is followed holds
    /// it.
    pub(crate) async fn fetch_revision(&mut self, revision: &Revision) -> Result<(), SourceError> {
        if matches!(self.origin, RevisionOrigin::Remote(_) | RevisionOrigin::Local(_)) {
            let lock = self.prepare_store().await?;
            self.pins.insert(revision.clone());
            self.keep(&lock, revision).await?;
        }
        self.render_older_revision(revision).await
    }

    /// Pins missing revisions, be it that the store had to be made anew. A failure is not tried
    /// again before the next [`Source::pin`], so that it does not delay every observation.
    async fn keep_all(&mut self, lock: &StateLock) -> Result<(), SourceError> {
        let pinned = self.store.pinned_revisions()?;
        let missing: Vec<Revision> = self
            .pins
            .iter()
            .filter(|pin| pin.is_id() && !pinned.contains(pin) && !self.unavailable_pins.contains(pin))
            .cloned()
            .collect();
        self.pins_kept_in = Some(self.store.creation_count());
        let mut failed = Ok(());
        let mut hopeless = false;
        for revision in missing {
            if hopeless {
                self.unavailable_pins.insert(revision);
                continue;
            }
            match self.keep(lock, &revision).await {
                Ok(true) => {}
                Ok(false) => drop(self.unavailable_pins.insert(revision)),
                Err(error) => {
                    // Where one is not answered, the next would wait as long for nothing.
                    hopeless |= error.class() == ErrorClass::Transient;
                    self.unavailable_pins.insert(revision);
                    failed = failed.and(Err(error));
                }
            }
        }
        failed
    }

    /// Makes the history of a repository on this host readable: each commit that led to what is
    /// followed. Does nothing for others.
    pub(crate) async fn fetch_history(&mut self) -> Result<(), SourceError> {
        if let RevisionOrigin::Local(local) = &self.origin {
            let lock = self.prepare_store().await?;
            Box::pin(local.copy_history(&lock)).await?;
        }
        Ok(())
    }

    /// Returns whether it follows a repository on this host, whose history costs no network.
    pub(crate) const fn is_on_host(&self) -> bool {
        matches!(self.origin, RevisionOrigin::Local(_))
    }

    /// Pins one revision, from wherever it can be had.
    async fn keep(&self, lock: &StateLock, revision: &Revision) -> Result<bool, SourceError> {
        if self.store.has_revision(revision) {
            self.store.pin(lock, revision)?;
            return Ok(true);
        }
        match &self.origin {
            RevisionOrigin::Local(local) => Box::pin(local.fetch_older(lock, revision)).await,
            RevisionOrigin::Remote(remote) => Box::pin(remote.fetch_older(lock, revision)).await,
            RevisionOrigin::Directory(_) | RevisionOrigin::Awaited(_) => Ok(false),
        }
    }

    /// Wakes when a folder or a repository on this host may have changed; never for a remote.
    pub(crate) fn change_hints(&self) -> ChangeHints {
        let watched = match &self.origin {
            RevisionOrigin::Local(local) => HintTarget::Repository(local.path.clone()),
            RevisionOrigin::Directory(directory) => HintTarget::Folder(directory.path.clone()),
            RevisionOrigin::Awaited(path) => HintTarget::Awaited(path.clone()),
            RevisionOrigin::Remote(_) => return ChangeHints::disabled(),
        };
        ChangeHints::start(&self.name, watched, self.store.settings())
    }

    /// Returns how long to wait for the next observation when no hint comes. `random` is between 0
    /// and 1 and spreads the observations of many sources; a failing remote is observed less and
    /// less often.
    pub(crate) fn next_poll(&self, random: f64) -> Duration {
        let base = match &self.origin {
            RevisionOrigin::Remote(_) => {
                let doubled = self.interval.saturating_mul(1 << self.failures.saturating_sub(1).min(10));
                doubled.min(MAX_FAILING_POLL_INTERVAL.max(self.interval))
            }
            RevisionOrigin::Local(_) | RevisionOrigin::Directory(_) | RevisionOrigin::Awaited(_) => {
                self.interval.min(HOST_POLL_INTERVAL)
            }
        };
        let spread = base.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0));
        let due = match &self.origin {
            RevisionOrigin::Directory(directory) => directory.next_check(),
            _ => None,
        };
        due.map_or(spread, |due| spread.min(due))
    }

    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        self.work.run_bounded(&self.shown_location, self.store.settings().fetch, work).await?
    }

    /// Reads what the source has seen, under a deadline and beside no other read of its own.
    ///
    /// Fails as the read does. Where the disk does not answer in time, the read goes on by itself,
    /// and each later one fails until it ends.
    pub(crate) async fn read_bounded<T: Send + 'static>(
        &self,
        read: impl FnOnce(&RevisionReader) -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let reader = self.reader.with_shared_handles();
        self.run_blocking(move || read(&reader)).await
    }
}

/// Returns whether no pinned revision has anything missing or damaged. One may hold nothing that is
/// of use here.
fn has_readable_pins(store: &RevisionStore, reader: &RevisionReader) -> bool {
    let is_damaged = |revision: &Revision| {
        matches!(
            reader.read_through(revision),
            Err(SourceError::Damaged { .. } | SourceError::Unknown { .. })
        )
    };
    store.pinned_revisions().is_ok_and(|pinned| !pinned.iter().any(is_damaged))
}
