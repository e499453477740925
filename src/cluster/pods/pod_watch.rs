//! The task that follows the pods of one workload.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::super::backoff::{InformerBackoff, ServerReachability};
use super::super::call::Cluster;
use super::super::error::ClusterError;
use super::super::event_sink::{EventPermit, EventSink};
use super::super::informer::{Informer, InformerChange, InformerEvent};
use super::super::kinds::ServedKind;
use super::super::path::{ListSelector, NamespaceSelector};
use super::super::read::ListPosition;
use super::super::wire::WireDecoder;
use super::decoder::{PodRecord, PodsRecord, RecordDecoder, RevisionRecord, WorkloadRecord};
use super::store::{PodController, WorkloadStore};
use super::warnings::{self, WarningDecoder, WarningEvent};
use super::{CONTROLLER_REVISIONS, EVENT_KIND, POD_KIND, PodsChange, PodsEvent, REPLICA_SETS, kind};
use crate::engine::{Uid, WorkloadPods};
use crate::object::ObjectId;

/// The time within which changes are reported together.
const COALESCE_WINDOW: Duration = Duration::from_millis(20);
/// The time for which pods are missing before the Events of their controller are read.
const MISSING_PODS_DELAY: Duration = Duration::from_millis(250);
/// The changes that may wait to be taken over.
const CHANNEL_CAPACITY: usize = 64;

/// A lookup of the newest revision at a generation.
type RevisionLookup = Pin<Box<dyn Future<Output = (i64, Result<Vec<RevisionRecord>, ClusterError>)> + Send>>;

/// One informer and what it reported.
struct PodInformer<R> {
    _informer: Informer,
    events: mpsc::Receiver<InformerEvent<R>>,
}

impl<R: Send + 'static> PodInformer<R> {
    fn new<P: WireDecoder<Record = R>>(
        cluster: &Cluster,
        kind: &Arc<ServedKind>,
        selector: ListSelector,
        decoder: P,
    ) -> Self {
        let (sink, events) = mpsc::channel(CHANNEL_CAPACITY);
        Self { _informer: cluster.inform(kind, selector, decoder, sink), events }
    }
}

/// Returns the next news of an informer; waits for ever where there is none.
async fn next<R>(informer: Option<&mut PodInformer<R>>) -> InformerChange<R> {
    if let Some(informer) = informer
        && let Some(event) = informer.events.recv().await
    {
        return event.change;
    }
    std::future::pending().await
}

/// The event that woke the task.
enum PodInformerInput {
    Workload(InformerChange<WorkloadRecord>),
    Set(InformerChange<RevisionRecord>),
    Pod(InformerChange<PodRecord>),
    Warning(InformerChange<WarningEvent>),
    Listed(i64, Result<Vec<RevisionRecord>, ClusterError>),
    /// A time has come.
    Time,
    /// There is room to send an event.
    Tell(EventPermit<PodsEvent>),
    /// Nobody listens any more.
    Closed,
}

/// The task.
pub(super) struct PodWatchTask {
    cluster: Cluster,
    id: ObjectId,
    uid: Uid,
    selector: NamespaceSelector,
    sink: EventSink<PodsEvent>,
    store: WorkloadStore,
    controller: PodController,
    workload: PodInformer<WorkloadRecord>,
    pods: PodInformer<PodRecord>,
    sets: Option<PodInformer<RevisionRecord>>,
    warnings: Option<PodInformer<WarningEvent>>,
    lookup: Option<(i64, RevisionLookup)>,
    backoff: InformerBackoff,
    /// The time of the first change that was not reported.
    changed: Option<Instant>,
    /// The time since which pods have been missing.
    missing_since: Option<Instant>,
    /// A failure that was not reported.
    failure: Option<(ClusterError, Duration)>,
    /// The last report; none after a failure.
    sent: Option<WorkloadPods>,
}

/// The workload whose pods are followed.
#[derive(Clone, Copy)]
pub(super) struct WatchedWorkload<'a> {
    pub(super) controller: PodController,
    pub(super) kind: &'a Arc<ServedKind>,
    pub(super) id: &'a ObjectId,
    pub(super) uid: &'a Uid,
    /// The selector of its pods.
    pub(super) selector: &'a str,
}

impl PodWatchTask {
    pub(super) fn new(
        cluster: &Cluster,
        followed: WatchedWorkload<'_>,
        sink: EventSink<PodsEvent>,
    ) -> Option<Self> {
        let WatchedWorkload { controller, kind: workload, id, uid, selector } = followed;
        let within = NamespaceSelector {
            namespace: id.namespace()?.into(),
            labels: Some(selector.into()),
            fields: None,
        };
        let selected = || ListSelector::Namespace(Arc::new(within.clone()));
        let itself = NamespaceSelector {
            labels: None,
            fields: Some(format!("metadata.name={}", id.name()).into()),
            ..within.clone()
        };
        let (pods, sets) = (kind(&POD_KIND), kind(&REPLICA_SETS));
        let has_sets = controller == PodController::Deployment;
        Some(Self {
            workload: PodInformer::new(
                cluster,
                workload,
                ListSelector::Namespace(Arc::new(itself)),
                record_decoder(workload),
            ),
            pods: PodInformer::new(cluster, &pods, selected(), record_decoder(&pods)),
            sets: has_sets.then(|| PodInformer::new(cluster, &sets, selected(), record_decoder(&sets))),
            warnings: None,
            cluster: cluster.clone(),
            id: id.clone(),
            uid: uid.clone(),
            selector: within,
            sink,
            store: WorkloadStore::new(controller, uid.clone()),
            controller,
            lookup: None,
            backoff: InformerBackoff::default(),
            changed: None,
            missing_since: None,
            failure: None,
            sent: None,
        })
    }

    /// Ends only when nobody listens any more.
    pub(super) async fn run(mut self) {
        loop {
            self.prepare();
            match self.next_event().await {
                PodInformerInput::Workload(change) => {
                    let change = self.note_change(change);
                    self.store.apply_workload(change);
                }
                PodInformerInput::Set(change) => {
                    let change = self.note_change(change);
                    self.store.apply_replica_set(change);
                }
                PodInformerInput::Pod(change) => {
                    let change = self.note_change(change);
                    self.store.apply_pod(change, Instant::now());
                }
                PodInformerInput::Warning(change) => {
                    let change = self.note_change(change);
                    let wall = jiff::Timestamp::now().as_second();
                    self.store.apply_warning(change, Instant::now(), wall);
                }
                PodInformerInput::Listed(generation, found) => self.record_revisions(generation, found),
                PodInformerInput::Tell(permit) => {
                    if let Some(change) = self.next_change() {
                        permit.send(PodsEvent { id: self.id.clone(), change });
                    }
                }
                PodInformerInput::Time => {}
                PodInformerInput::Closed => return,
            }
        }
    }

    /// Starts what is needed now.
    fn prepare(&mut self) {
        if let Some(generation) = self.store.wanted_lookup() {
            if self.lookup.as_ref().is_none_or(|(at, _)| *at != generation) {
                self.look_up(generation, Duration::ZERO);
            }
        } else {
            self.lookup = None;
        }
        let is_short = self.controller != PodController::Deployment && self.store.is_short();
        self.missing_since = is_short.then(|| self.missing_since.unwrap_or_else(Instant::now));
        if self.warnings.is_none()
            && self.missing_since.is_some_and(|since| since.elapsed() >= MISSING_PODS_DELAY)
        {
            // From here on to the end: one list and one watch, whatever happens.
            let selector =
                warnings::warning_selector(&self.selector.namespace, &self.uid, Some("FailedCreate"));
            self.warnings =
                Some(PodInformer::new(&self.cluster, &kind(&EVENT_KIND), selector, WarningDecoder));
        }
    }

    /// Lists the revisions after a wait. Asked for after the generation was observed, so it shows
    /// what the controller wrote before that.
    fn look_up(&mut self, generation: i64, wait: Duration) {
        let builtin =
            if self.controller == PodController::Deployment { REPLICA_SETS } else { CONTROLLER_REVISIONS };
        let (cluster, kind) = (self.cluster.clone(), kind(&builtin));
        let selector = ListSelector::Namespace(Arc::new(self.selector.clone()));
        let lookup = async move {
            tokio::time::sleep(wait).await;
            (generation, list(&cluster, &kind, &selector).await)
        };
        self.lookup = Some((generation, Box::pin(lookup)));
    }

    fn record_revisions(&mut self, generation: i64, found: Result<Vec<RevisionRecord>, ClusterError>) {
        match found {
            Ok(revisions) => {
                self.lookup = None;
                self.backoff = InformerBackoff::default();
                self.store.set_revisions(generation, revisions);
                self.changed.get_or_insert_with(Instant::now);
            }
            Err(error) => {
                let reach = if error.is_unreachable() {
                    ServerReachability::Unreachable
                } else {
                    ServerReachability::Reachable
                };
                let wait = self.backoff.note_failure(reach).max(error.retry_after().unwrap_or_default());
                self.look_up(generation, wait);
                self.report_failure(error, wait);
            }
        }
    }

    /// Notes that something has changed, or failed.
    fn note_change<R>(&mut self, change: InformerChange<R>) -> InformerChange<R> {
        match change {
            InformerChange::Failed(error, wait) => {
                self.report_failure(error, wait);
                // Known objects stay; the list that follows reports the changes.
                InformerChange::Resumed
            }
            change => {
                self.changed.get_or_insert_with(Instant::now);
                change
            }
        }
    }

    fn report_failure(&mut self, error: ClusterError, wait: Duration) {
        self.failure = Some((error, wait));
        self.sent = None;
    }

    /// Returns the change to report now.
    fn next_change(&mut self) -> Option<PodsChange> {
        if let Some((error, wait)) = self.failure.take() {
            return Some(PodsChange::Failed(error, wait));
        }
        self.changed = None;
        let seen = self.store.view(Instant::now()).filter(|seen| self.sent.as_ref() != Some(seen))?;
        self.sent = Some(seen.clone());
        Some(PodsChange::Observed(seen))
    }

    /// Waits for the next turn.
    async fn next_event(&mut self) -> PodInformerInput {
        let now = Instant::now();
        let send_at = self.changed.map(|since| since + COALESCE_WINDOW);
        let ask_at =
            self.missing_since.filter(|_| self.warnings.is_none()).map(|since| since + MISSING_PODS_DELAY);
        let wake = [send_at, ask_at].into_iter().flatten().filter(|at| *at > now).min();
        let due = self.failure.is_some() || send_at.is_some_and(|at| at <= now);
        let sleep = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let lookup = async {
            match &mut self.lookup {
                Some((_, lookup)) => lookup.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.sink.closed() => PodInformerInput::Closed,
            permit = self.sink.reserve(), if due => permit.map_or(PodInformerInput::Closed, PodInformerInput::Tell),
            change = next(Some(&mut self.workload)) => PodInformerInput::Workload(change),
            change = next(self.sets.as_mut()) => PodInformerInput::Set(change),
            change = next(Some(&mut self.pods)) => PodInformerInput::Pod(change),
            change = next(self.warnings.as_mut()) => PodInformerInput::Warning(change),
            (generation, found) = lookup => PodInformerInput::Listed(generation, found),
            () = sleep => PodInformerInput::Time,
        }
    }
}

fn record_decoder<R: PodsRecord>(kind: &ServedKind) -> RecordDecoder<R> {
    RecordDecoder::new(kind.gvk.group_kind())
}

/// Lists all revisions with these labels.
async fn list(
    cluster: &Cluster,
    kind: &ServedKind,
    selector: &ListSelector,
) -> Result<Vec<RevisionRecord>, ClusterError> {
    let (mut all, mut position) = (Vec::new(), ListPosition::default());
    loop {
        let (page, meta) = cluster.read_page(kind, selector, &mut position, &record_decoder(kind)).await?;
        all.extend(page.into_iter().map(|seen| seen.record));
        if !position.advance(&meta) {
            return Ok(all);
        }
    }
}
