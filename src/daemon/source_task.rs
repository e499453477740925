//! One task per source: observes it, reads what changed, looks up older contents, and sends the
//! results to the loop.
//!
//! `source_task/revision_step.rs` observes the source and reads what changed. Each result is a
//! [`LoopEvent`], which `reconciler/event_handlers.rs` hands to the engine.

mod cluster_fact_reader;
mod deleted_source;
mod last_check;
mod older_revision;
mod once;
mod revision_step;
mod verified_revision;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

pub(super) use self::cluster_fact_reader::ClusterFactReader;
pub(super) use self::last_check::LastCheck;
pub(super) use self::older_revision::WantedContent;
use self::older_revision::{ContentLookup, MissingContents};
pub(super) use self::once::{OlderContents, read_disk, read_newest_once, read_once};
use self::revision_step::ReportedSnapshot;
use self::verified_revision::ConcurrentLookups;
use super::loop_event::LoopEvent;
use super::manifest_facts::ReadSettings;
use super::pins::RevisionPins;
use super::setup::SourceFiles;
use crate::engine::{Authorship, OlderRevision, RepositoryIdentity, UndoRequest};
use crate::heartbeat::Heartbeat;
use crate::manifest::KindScopes;
use crate::object::Revision;
use crate::source::{CommitInfo, RevisionReader, ServedVersions, Snapshot, Source, VerificationRecord};

/// The slack after which a source task that sends no heartbeat counts as dead: its events wait
/// until the loop takes them.
const HEARTBEAT_SLACK: Duration = Duration::from_mins(1);

/// The longest time of one operation. A fetch ends by its own deadline, and one takes two of them
/// at most besides its waits.
const MAX_OPERATION_DURATION: Duration = Duration::from_mins(25);

/// A request of the loop to a source task.
#[derive(Debug)]
pub(super) enum SourceTaskRequest {
    /// Read all again, as the scope of kinds is known now that was not.
    ReadAgain,
    /// Check whether there is anything new, after the reading with this observation number.
    CheckAfter(u64),
    /// The record of the revisions that were accepted and read last.
    VerificationRecord(VerificationRecord),
    /// Somebody outside says that there is something new.
    Hint,
    /// Keep these revisions readable.
    Pin(BTreeSet<Revision>),
    /// Look up where an undo leads to.
    ReadUndoTarget(UndoRequest),
    /// Look up contents of an older revision.
    ReadContents(Revision, Vec<WantedContent>),
}

/// Returns the repository that these files come from.
pub(super) fn repository_of(files: &SourceFiles) -> RepositoryIdentity {
    match files {
        SourceFiles::Source(source) => repository_identity_of(source),
        SourceFiles::Snapshot(_) => RepositoryIdentity::None,
    }
}

fn repository_identity_of(source: &Source) -> RepositoryIdentity {
    match source.repository() {
        Some(repository) => RepositoryIdentity::Repository(repository.into()),
        None if source.is_awaited() => RepositoryIdentity::Unknown,
        None => RepositoryIdentity::None,
    }
}

/// A source, and what was last reported of it.
pub(super) struct SourceTask {
    pub(super) source: Source,
    pub(super) settings: ReadSettings,
    /// The scopes of kinds that the server reports.
    served_scopes: watch::Receiver<KindScopes>,
    /// The scopes of kinds at the last reading, those that the source itself defines among them.
    scopes: KindScopes,
    pub(super) events: mpsc::Sender<LoopEvent>,
    heartbeat: Heartbeat,
    last_check: LastCheck,
    cluster_facts: ClusterFactReader,
    /// The versions of the cluster, which renders may depend on.
    versions: watch::Receiver<Option<Arc<ServedVersions>>>,
    /// Indicates whether it is known that renders depend on them.
    uses_versions: bool,
    reported: Option<ReportedSnapshot>,
    identity: String,
    /// The state that was reported last.
    repository: RepositoryIdentity,
    /// The reason for the last failure; none after a success.
    last_error: Option<Arc<str>>,
    /// The reason for which revisions could not be pinned; none after a success.
    pin_error: Option<String>,
    read_mode: ReadMode,
    /// Indicates whether the last pass over its roots had no time for some of them.
    has_postponed_roots: bool,
    pins: RevisionPins,
    /// The accepted revision, as last reported.
    accepted_revision: Option<Revision>,
    /// The record of the inventory from before this task has read anything; none before it came.
    first_record: Option<VerificationRecord>,
    missing: MissingContents,
    /// The reading after which a check was asked for last, and the one that was answered.
    check_requested: u64,
    check_done: u64,
}

/// The files that a read covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadMode {
    /// The files that changed.
    Changes,
    /// Every file, as other scopes make other objects of it.
    Everything,
}

impl SourceTask {
    /// Returns a source task that has reported nothing yet.
    pub(super) fn new(
        source: Source,
        settings: ReadSettings,
        served_scopes: watch::Receiver<KindScopes>,
        events: mpsc::Sender<LoopEvent>,
        heartbeat: Heartbeat,
    ) -> Self {
        let identity = source.identity().to_owned();
        Self {
            source,
            settings,
            served_scopes,
            scopes: KindScopes::new(),
            events,
            heartbeat,
            last_check: LastCheck::default(),
            cluster_facts: ClusterFactReader::default(),
            versions: watch::channel(None).1,
            uses_versions: false,
            reported: None,
            identity,
            repository: RepositoryIdentity::Unknown,
            last_error: None,
            pin_error: None,
            read_mode: ReadMode::Changes,
            has_postponed_roots: false,
            pins: RevisionPins::default(),
            accepted_revision: None,
            first_record: None,
            missing: MissingContents::default(),
            check_requested: 0,
            check_done: 0,
        }
    }

    /// Sets where the task records the time of its last check.
    pub(super) fn with_last_check(self, last_check: LastCheck) -> Self {
        Self { last_check, ..self }
    }

    /// Asks by this reader for what renders depend on.
    pub(super) fn with_cluster_facts(self, cluster_facts: ClusterFactReader) -> Self {
        Self { cluster_facts, ..self }
    }

    /// Renders by these versions of the cluster, and anew where they change.
    pub(super) fn with_versions(self, versions: watch::Receiver<Option<Arc<ServedVersions>>>) -> Self {
        Self { versions, ..self }
    }

    /// Runs until nobody listens any more.
    pub(super) async fn run(mut self, requests: mpsc::Receiver<SourceTaskRequest>) {
        let hints = self.source.change_hints();
        let mut next = Instant::now();
        let concurrent = if self.source.is_verified() || self.source.can_render() {
            ConcurrentLookups::UnsignedOnly
        } else {
            ConcurrentLookups::All
        };
        let mut queue =
            OperationQueue { requests, later: VecDeque::new(), lookups: FuturesUnordered::new(), concurrent };
        loop {
            let pins_due = self.pins.next_due();
            let operation = if let Some(operation) = queue.later.pop_front() {
                operation
            } else {
                self.heartbeat.record(next.saturating_duration_since(Instant::now()) + HEARTBEAT_SLACK);
                tokio::select! {
                    biased;
                    request = queue.requests.recv() => {
                        let Some(request) = request else { return };
                        queue.take(request, self.content_reader(), self.head_revision());
                        continue;
                    },
                    Some(found) = queue.lookups.next(), if !queue.lookups.is_empty() => {
                        let event = queue.finish_lookup(found);
                        if let Some(event) = event && self.events.send(event).await.is_err() {
                            return;
                        }
                        continue;
                    },
                    () = hints.next_hint() => SourceOperation::Check,
                    Ok(()) = self.versions.changed(), if self.uses_versions => SourceOperation::Check,
                    () = sleep_until(next) => SourceOperation::Poll,
                    () = sleep_until(pins_due.unwrap_or(next)), if pins_due.is_some() => SourceOperation::SavePins,
                }
            };
            let polled = matches!(operation, SourceOperation::Poll);
            let Some(events) = self.run_operation(operation, &mut queue).await else { return };
            if std::mem::take(&mut self.has_postponed_roots) {
                next = Instant::now();
            } else if polled {
                next = Instant::now() + self.source.next_poll(super::random_fraction());
            }
            for event in events {
                self.heartbeat.record(HEARTBEAT_SLACK);
                if self.events.send(event).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Does one thing. A fetch may hang for a minute: meanwhile older contents are looked up beside
    /// it, as what is in force must be defended. Returns none when nobody listens any more.
    async fn run_operation(
        &mut self,
        operation: SourceOperation,
        queue: &mut OperationQueue,
    ) -> Option<Vec<LoopEvent>> {
        let (lookups, head) = (self.content_reader(), self.head_revision());
        let events = self.events.clone();
        let mut work = std::pin::pin!(self.carry_out(operation));
        loop {
            tokio::select! {
                biased;
                events = &mut work => return Some(events),
                Some(found) = queue.lookups.next(), if !queue.lookups.is_empty() => {
                    if let Some(event) = queue.finish_lookup(found) {
                        events.send(event).await.ok()?;
                    }
                }
                request = queue.requests.recv() => queue.take(request?, lookups.clone(), head.clone()),
            }
        }
    }

    async fn carry_out(&mut self, operation: SourceOperation) -> Vec<LoopEvent> {
        self.heartbeat.record(MAX_OPERATION_DURATION);
        match operation {
            SourceOperation::Check | SourceOperation::Poll => {
                let mut events = self.check_source().await;
                events.extend(self.fetch_missing().await);
                events
            }
            SourceOperation::Fetch(wanted) => {
                self.missing.push(wanted);
                // The task may not have noticed yet that the source cannot be read.
                let mut events = self.check_source().await;
                events.extend(self.fetch_missing().await);
                events
            }
            SourceOperation::VerificationRecord(verification_record) => {
                self.record_verification(verification_record).await
            }
            SourceOperation::ReadUndoTarget(undo) => vec![self.read_undo_target(undo).await],
            SourceOperation::SavePins => {
                self.pin().await;
                Vec::new()
            }
            SourceOperation::ReadAgain => {
                self.read_mode = ReadMode::Everything;
                self.check_source().await
            }
            SourceOperation::CheckAfter(reading) => {
                self.check_requested = self.check_requested.max(reading);
                let mut events = self.check_source().await;
                events.extend(self.fetch_missing().await);
                events
            }
            SourceOperation::Pin(revisions) => {
                self.pins.set_wanted(revisions);
                Vec::new()
            }
        }
    }

    /// Returns the revision that was last reported.
    fn head_revision(&self) -> Option<Revision> {
        let reported = self.reported.as_ref().map(|reported| &reported.snapshot.revision);
        reported.or_else(|| self.source.current_revision()).cloned()
    }

    /// Returns the reader of older contents.
    fn content_reader(&self) -> ContentReader {
        ContentReader {
            reader: self.source.reader(),
            is_on_host: self.source.is_on_host(),
            settings: self.settings.clone(),
            scopes: self.known_scopes(),
        }
    }

    /// Returns the scopes of all kinds that the server or the source itself has shown by now.
    fn known_scopes(&self) -> KindScopes {
        let mut scopes = self.scopes.clone();
        scopes.update(&self.served_scopes.borrow());
        scopes
    }

    fn repository_identity(&self) -> RepositoryIdentity {
        repository_identity_of(&self.source)
    }

    async fn pin(&mut self) {
        let wanted = self.pins.next();
        match self.source.pin(&wanted).await {
            Ok(lost) => {
                for revision in lost {
                    tracing::debug!(source = self.source.name(), %revision, "a revision is gone");
                }
                self.pin_error = None;
                self.pins.mark_kept(wanted);
            }
            Err(error) => {
                let why = error.to_string();
                // A source that cannot be read has been reported.
                let is_read = self.reported.is_some();
                if is_read && self.pin_error.as_ref() != Some(&why) {
                    tracing::warn!(source = self.source.name(), "older revisions cannot be kept: {why}");
                }
                self.pin_error = is_read.then_some(why);
                self.pins.note_failure();
            }
        }
    }
}

/// The operations that wait for a source task.
struct OperationQueue {
    requests: mpsc::Receiver<SourceTaskRequest>,
    /// The tasks not yet begun.
    later: VecDeque<SourceOperation>,
    lookups: FuturesUnordered<BoxFuture<'static, ContentLookup>>,
    concurrent: ConcurrentLookups,
}

impl OperationQueue {
    /// Accepts a request. A lookup begins at once, beside the current operation; all others wait
    /// for their turn.
    fn take(&mut self, request: SourceTaskRequest, lookups: ContentReader, head: Option<Revision>) {
        let operation = match request {
            SourceTaskRequest::ReadContents(revision, wanted) => {
                return self.lookups.push(lookups.read_contents(revision, wanted).boxed());
            }
            SourceTaskRequest::VerificationRecord(verification_record) => {
                SourceOperation::VerificationRecord(verification_record)
            }
            SourceTaskRequest::ReadUndoTarget(undo) if self.is_waiting_for_signatures() => {
                SourceOperation::ReadUndoTarget(undo)
            }
            SourceTaskRequest::ReadUndoTarget(undo) => {
                return self.lookups.push(lookups.read_undo_target(undo, head).boxed());
            }
            SourceTaskRequest::ReadAgain => SourceOperation::ReadAgain,
            SourceTaskRequest::CheckAfter(reading) => SourceOperation::CheckAfter(reading),
            // A check that has not begun sees all that this one would.
            SourceTaskRequest::Hint
                if self.later.iter().any(|operation| matches!(operation, SourceOperation::Check)) =>
            {
                return;
            }
            SourceTaskRequest::Hint => SourceOperation::Check,
            SourceTaskRequest::Pin(revisions) => SourceOperation::Pin(revisions),
        };
        self.later.push_back(operation);
    }

    /// Returns the event of a finished lookup, unless something has to be fetched for it.
    fn finish_lookup(&mut self, found: ContentLookup) -> Option<LoopEvent> {
        match found {
            ContentLookup::Done(event) => Some(*event),
            ContentLookup::NeedsFetch(wanted) => {
                self.later.push_back(SourceOperation::Fetch(wanted));
                None
            }
            ContentLookup::UndoNeedsFetch(undo) => {
                self.later.push_back(SourceOperation::ReadUndoTarget(*undo));
                None
            }
        }
    }
}

/// An operation of a source task.
enum SourceOperation {
    /// There may be something new: a hint came, or other versions are served.
    Check,
    /// It is time to check.
    Poll,
    /// The record of the accepted revision has arrived.
    VerificationRecord(VerificationRecord),
    /// An undo is looked up, and its signature verified.
    ReadUndoTarget(UndoRequest),
    /// The wanted revisions are pinned.
    SavePins,
    /// Everything is read again.
    ReadAgain,
    /// A check is asked for, after the reading with this observation number.
    CheckAfter(u64),
    /// These revisions are to be kept readable.
    Pin(BTreeSet<Revision>),
    /// A revision of which contents are wanted is not here.
    Fetch(older_revision::WantedContents),
}

/// The reader of older contents, independent of its other operations.
#[derive(Clone)]
pub(super) struct ContentReader {
    reader: RevisionReader,
    /// Indicates whether more can be had of a repository on this host.
    is_on_host: bool,
    settings: ReadSettings,
    scopes: KindScopes,
}

impl ContentReader {
    async fn read_undo_target(self, undo: UndoRequest, head: Option<Revision>) -> ContentLookup {
        let is_on_host = self.is_on_host;
        match self.past_revision(undo.clone(), head).await {
            Err(_) if is_on_host => ContentLookup::UndoNeedsFetch(Box::new(undo)),
            past => ContentLookup::Done(Box::new(LoopEvent::UndoTargetRead(Box::new(undo), past))),
        }
    }

    /// Returns where an undo leads to, as far as that is here.
    async fn past_revision(self, undo: UndoRequest, head: Option<Revision>) -> Result<OlderRevision, String> {
        let Self { reader, settings, scopes, .. } = self;
        let read = move |reader: &RevisionReader| {
            Ok(older_revision::read_undo_target(reader, &settings, scopes, &undo, head.as_ref()))
        };
        reader.read_bounded(read).await.map_err(|error| error.to_string())?
    }
}

fn authorship(commit: &CommitInfo) -> Authorship {
    Authorship::of(&commit.author, &commit.subject)
}

fn refusal_text(snapshot: &Snapshot) -> Option<Arc<str>> {
    let refused = snapshot.refused.first()?;
    Some(format!("{}: {}", refused.origin.file, refused.message).into())
}

#[cfg(test)]
mod tests;
