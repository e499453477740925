//! Informers: one task per kind that lists, watches, and begins again whenever it must.
//!
//! They use the client's bare streams, because kube's own `watcher` falls short in four ways. It
//! starts a watch that is cut at once again without any pause, and sets no deadline for its lists.
//! It hides the bookmarks that show that a watch is alive, and holds a page as text and as bytes.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::backoff::{InformerBackoff, ServerReachability};
use super::call::{Cluster, HEARTBEAT_SLACK};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::event_sink::{EventSink, ReceiverClosed};
use super::kinds::ServedKind;
use super::path::{ListSelector, NamespaceSelector};
use super::read::ListPosition;
use super::watch::{Watch, WatchEvent, WatchStart};
use super::wire::{Autoscaler, AutoscalerDecoder, LiveDecoder, VersionDecoder, WireDecoder, WireForm};
use crate::engine::{InformerGroupId, LiveObject, OWN_INFORMER_GROUP, ResourceVersion, WatchScope};
use crate::heartbeat::{Heartbeat, WATCH_PREFIX};
use crate::object::ObjectId;
use crate::object::annotations;

/// The failed watches in a row after which the kind is listed again, whatever the failures were.
const MAX_FAILED_WATCHES: u32 = 5;
/// The streaming lists without an end after which the kind is read in pages.
const MAX_STREAM_FAULTS: u32 = 2;
/// The lifetime of a watch that was sound, however it ended.
const HEALTHY_WATCH_LIFETIME: Duration = Duration::from_secs(30);
/// One event of an informer.
#[derive(Debug)]
pub struct InformerEvent<R = LiveObject> {
    /// The account, kind and namespace that are listed.
    pub listing: WatchScope,
    /// The change.
    pub change: InformerChange<R>,
}

/// One piece of news about a kind.
#[derive(Debug)]
pub enum InformerChange<R = LiveObject> {
    /// A list begins. The objects known before stay until they are seen or deleted, or the list has
    /// ended.
    Init,
    /// The object is there, in this state.
    Apply(ObjectId, R),
    /// The object is gone, or no longer selected; the version is that of the event.
    Delete(ObjectId, ResourceVersion),
    /// The list has ended: what was not seen since `Init` is gone, or no longer selected.
    InitDone,
    /// Something failed; it goes on by itself after the wait, and reports that. After a failure of
    /// class [`ErrorClass::Internal`](crate::object::ErrorClass::Internal) it does not.
    Failed(ClusterError, Duration),
    /// After a failure the watch goes on, and nothing was missed.
    Resumed,
}

/// A running informer. It stops when this is dropped, or when nobody listens any more.
#[derive(Debug)]
pub struct Informer {
    task: JoinHandle<()>,
    relist: Arc<Notify>,
}

impl Informer {
    /// Lists the kind again, as an audit of what the watch reported.
    pub fn relist(&self) {
        self.relist.notify_one();
    }

    /// Returns whether it has stopped.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Informer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// Reports everything about the selected objects of a kind, in the version given, until it is
    /// dropped. The number of the informer group is handed back with each change.
    ///
    /// Waits while the sink is full. Needs a running tokio runtime.
    pub fn informer(
        &self,
        kind: &Arc<ServedKind>,
        selector: ListSelector,
        informer_group: InformerGroupId,
        sink: impl Into<EventSink<InformerEvent<LiveObject>>>,
    ) -> Informer {
        self.inform_by(
            informer_group,
            kind,
            selector,
            LiveDecoder::new(kind, self.interner(), WireForm::Full),
            sink,
        )
    }

    /// Reports what the autoscalers of the cluster scale; the kind is `HorizontalPodAutoscaler`.
    pub fn autoscaler_informer(
        &self,
        kind: &Arc<ServedKind>,
        sink: impl Into<EventSink<InformerEvent<Autoscaler>>>,
    ) -> Informer {
        self.inform(kind, ListSelector::All, AutoscalerDecoder::new(kind, self.interner()), sink)
    }

    /// Reports in which versions the inventories of these sets are, in one namespace; the kind is
    /// `ConfigMap`.
    pub fn watch_versions(
        &self,
        kind: &Arc<ServedKind>,
        namespace: &str,
        sets: &BTreeSet<Arc<str>>,
        sink: impl Into<EventSink<InformerEvent<ResourceVersion>>>,
    ) -> Informer {
        self.version_informer(kind, namespace, super::inventory::ID_LABEL, sets, sink)
    }

    /// Reports the inventories whose sources ask for an observation, as
    /// [`Cluster::watch_versions`].
    pub fn follow_observation_requests(
        &self,
        kind: &Arc<ServedKind>,
        namespace: &str,
        sink: impl Into<EventSink<InformerEvent<ResourceVersion>>>,
    ) -> Informer {
        self.labelled_versions(kind, namespace, annotations::OBSERVATION_REQUEST.to_owned(), sink)
    }

    /// Reports in which versions the orders objects of these sets are, as
    /// [`Cluster::watch_versions`].
    pub fn order_versions(
        &self,
        kind: &Arc<ServedKind>,
        namespace: &str,
        sets: &BTreeSet<Arc<str>>,
        sink: impl Into<EventSink<InformerEvent<ResourceVersion>>>,
    ) -> Informer {
        self.version_informer(kind, namespace, annotations::ORDERS_OF, sets, sink)
    }

    fn version_informer(
        &self,
        kind: &Arc<ServedKind>,
        namespace: &str,
        label: &str,
        sets: &BTreeSet<Arc<str>>,
        sink: impl Into<EventSink<InformerEvent<ResourceVersion>>>,
    ) -> Informer {
        let sets: Vec<&str> = sets.iter().map(|set| &**set).collect();
        self.labelled_versions(kind, namespace, format!("{label} in ({})", sets.join(",")), sink)
    }

    fn labelled_versions(
        &self,
        kind: &Arc<ServedKind>,
        namespace: &str,
        labels: String,
        sink: impl Into<EventSink<InformerEvent<ResourceVersion>>>,
    ) -> Informer {
        let within =
            NamespaceSelector { namespace: namespace.into(), labels: Some(labels.into()), fields: None };
        let selector = ListSelector::Namespace(Arc::new(within));
        self.inform(kind, selector, VersionDecoder::new(kind, self.interner()), sink)
    }

    pub(super) fn inform<P: WireDecoder>(
        &self,
        kind: &Arc<ServedKind>,
        selector: ListSelector,
        decoder: P,
        sink: impl Into<EventSink<InformerEvent<P::Record>>>,
    ) -> Informer {
        self.inform_by(OWN_INFORMER_GROUP, kind, selector, decoder, sink)
    }

    fn inform_by<P: WireDecoder>(
        &self,
        informer_group: InformerGroupId,
        kind: &Arc<ServedKind>,
        selector: ListSelector,
        decoder: P,
        sink: impl Into<EventSink<InformerEvent<P::Record>>>,
    ) -> Informer {
        let namespace = selector.namespace().map(Arc::from);
        let listing = WatchScope { informer_group, kind: kind.gvk.group_kind(), namespace };
        let relist = Arc::new(Notify::new());
        let follower = InformerTask {
            cluster: self.clone(),
            kind: kind.clone(),
            listing,
            selector,
            decoder,
            sink: sink.into(),
            relist: relist.clone(),
            backoff: InformerBackoff::default(),
            stream_faults: 0,
            broken: 0,
            failing: false,
            heartbeat: self
                .heartbeats()
                .expect_part(&format!("{WATCH_PREFIX}{}", kind.gvk.group_kind()), HEARTBEAT_SLACK),
        };
        let (bug, sink) = (
            ClusterError::new(CallSubject::Kind(follower.listing.kind.clone()), ClusterFault::Bug),
            follower.sink.clone(),
        );
        let listing = follower.listing.clone();
        let task = async move {
            if AssertUnwindSafe(follower.run()).catch_unwind().await.is_err() {
                let _ = sink
                    .send(InformerEvent { listing, change: InformerChange::Failed(bug, Duration::ZERO) })
                    .await;
            }
        };
        Informer { task: tokio::spawn(task), relist }
    }
}

/// The reason for which a watch ended.
enum WatchEnd {
    /// It is watched again, from the last version.
    Resume,
    /// It is listed again.
    Relist,
}

/// The watch that follows a complete list.
struct ListResult {
    /// The version to watch from.
    version: String,
    /// The watch that brought the list, and goes on with what follows.
    watch: Option<Watch>,
}

struct InformerTask<P: WireDecoder> {
    cluster: Cluster,
    kind: Arc<ServedKind>,
    listing: WatchScope,
    selector: ListSelector,
    decoder: P,
    sink: EventSink<InformerEvent<P::Record>>,
    relist: Arc<Notify>,
    backoff: InformerBackoff,
    /// The number of times that a streaming list has failed as such.
    stream_faults: u32,
    /// Watches in a row that the server broke.
    broken: u32,
    /// Indicates whether the last news was a failure.
    failing: bool,
    heartbeat: Heartbeat,
}

impl<P: WireDecoder> InformerTask<P> {
    /// Ends only when nobody listens any more.
    async fn run(mut self) {
        while let Ok(()) = self.run_cycle().await {}
    }

    /// Runs one list and the watches that follow it, up to the next list.
    async fn run_cycle(&mut self) -> Result<(), ReceiverClosed> {
        self.send(InformerChange::Init).await?;
        let ListResult { mut version, mut watch } = match self.list().await? {
            Ok(listed) => listed,
            Err(error) => return self.report_failure(error).await,
        };
        self.broken = 0;
        self.failing = false;
        self.send(InformerChange::InitDone).await?;
        self.decoder.sweep();
        loop {
            let ended = self.follow(&mut version, watch.take()).await?;
            self.cluster.call_metrics().record_watch_restart(&self.listing.kind.to_string());
            match ended {
                WatchEnd::Resume => {}
                WatchEnd::Relist => return Ok(()),
            }
        }
    }

    /// Lists the kind, and sends every object that there is.
    async fn list(&mut self) -> Result<Result<ListResult, ClusterError>, ReceiverClosed> {
        if self.stream_faults < MAX_STREAM_FAULTS {
            match self.list_by_stream().await? {
                Err(error) if matches!(error.fault(), ClusterFault::Invalid { .. }) => {
                    self.stream_faults = MAX_STREAM_FAULTS;
                }
                // Some servers ignore the parameter, and then never send the end.
                Err(error) if matches!(error.fault(), ClusterFault::Timeout { .. }) => {
                    self.stream_faults += 1;
                    return Ok(Err(error));
                }
                other => return Ok(other),
            }
            tracing::debug!(kind = %self.listing.kind, "the server has no streaming lists: reading pages");
        }
        self.list_by_pages().await
    }

    async fn list_by_stream(&mut self) -> Result<Result<ListResult, ClusterError>, ReceiverClosed> {
        self.heartbeat.record(self.cluster.longest_call());
        let mut watch = match self.cluster.watch(&self.kind, &self.selector, &WatchStart::All).await {
            Ok(watch) => watch,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            self.heartbeat.record(watch.silence_limit() + HEARTBEAT_SLACK);
            match watch.next(|text| self.decoder.decode(text)).await {
                Ok(Some(WatchEvent::Bookmark { version, ends_list: true })) => {
                    return Ok(Ok(ListResult { version, watch: Some(watch) }));
                }
                Ok(Some(WatchEvent::Bookmark { .. })) => {}
                Ok(Some(WatchEvent::Apply(seen))) => {
                    self.send(InformerChange::Apply(seen.id, seen.record)).await?;
                }
                Ok(Some(WatchEvent::Delete(gone))) => {
                    self.send(InformerChange::Delete(gone.id, gone.rv)).await?;
                }
                Ok(None) => {
                    return Ok(Err(watch.broken_watch_error("the list was cut before its end".to_owned())));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    async fn list_by_pages(&mut self) -> Result<Result<ListResult, ClusterError>, ReceiverClosed> {
        let mut position = ListPosition::default();
        loop {
            self.heartbeat.record(self.cluster.longest_call());
            let page = self.cluster.read_page(&self.kind, &self.selector, &mut position, &self.decoder).await;
            let (items, meta) = match page {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            for seen in items {
                self.send(InformerChange::Apply(seen.id, seen.record)).await?;
            }
            if !position.advance(&meta) {
                // Without a version the watch begins at the newest state, as the best that can be
                // done.
                let version = meta.resource_version.unwrap_or_default();
                return Ok(Ok(ListResult { version, watch: None }));
            }
        }
    }

    /// Follows one watch to its end.
    async fn follow(
        &mut self,
        version: &mut String,
        running: Option<Watch>,
    ) -> Result<WatchEnd, ReceiverClosed> {
        let mut watch = if let Some(watch) = running {
            watch
        } else {
            self.heartbeat.record(self.cluster.longest_call());
            match self
                .cluster
                .watch(&self.kind, &self.selector, &WatchStart::AtVersion(version.clone()))
                .await
            {
                Ok(watch) => watch,
                Err(error) => return self.handle_failure(error).await,
            }
        };
        if self.failing {
            self.failing = false;
            self.send(InformerChange::Resumed).await?;
        }
        let since = Instant::now();
        let relist = self.relist.clone();
        loop {
            self.heartbeat.record(watch.silence_limit() + HEARTBEAT_SLACK);
            let event = tokio::select! {
                biased;
                () = relist.notified() => return Ok(WatchEnd::Relist),
                event = watch.next(|text| self.decoder.decode(text)) => event,
            };
            if let Ok(Some(_)) = event {
                self.cluster.call_metrics().record_answer();
            }
            match event {
                Ok(Some(WatchEvent::Apply(seen))) => {
                    advance_version(version, seen.rv);
                    self.send(InformerChange::Apply(seen.id, seen.record)).await?;
                }
                Ok(Some(WatchEvent::Delete(gone))) => {
                    advance_version(version, gone.rv);
                    self.send(InformerChange::Delete(gone.id, gone.rv)).await?;
                }
                Ok(Some(WatchEvent::Bookmark { version: newer, .. })) => *version = newer,
                Ok(None) => {
                    self.broken = 0;
                    let wait = self.backoff.delay_after_end(since.elapsed());
                    self.heartbeat.record(wait + HEARTBEAT_SLACK);
                    tokio::time::sleep(wait).await;
                    return Ok(WatchEnd::Resume);
                }
                Err(error) => {
                    if since.elapsed() >= HEALTHY_WATCH_LIFETIME {
                        self.broken = 0;
                        self.backoff = InformerBackoff::default();
                    }
                    return self.handle_failure(error).await;
                }
            }
        }
    }

    /// Decides what follows a watch that could not be started, or broke.
    async fn handle_failure(&mut self, error: ClusterError) -> Result<WatchEnd, ReceiverClosed> {
        let expired = *error.fault() == ClusterFault::Expired;
        if !error.is_unreachable() {
            self.broken += 1;
        }
        self.report_failure(error).await?;
        Ok(if expired || self.broken >= MAX_FAILED_WATCHES { WatchEnd::Relist } else { WatchEnd::Resume })
    }

    /// Sends a failure, and waits.
    async fn report_failure(&mut self, error: ClusterError) -> Result<(), ReceiverClosed> {
        let reach = if error.is_unreachable() {
            ServerReachability::Unreachable
        } else {
            ServerReachability::Reachable
        };
        if reach == ServerReachability::Unreachable {
            self.cluster.call_metrics().record_silence();
        }
        let wait = self.backoff.note_failure(reach).max(error.retry_after().unwrap_or_default());
        self.failing = true;
        self.send(InformerChange::Failed(error, wait)).await?;
        self.heartbeat.record(wait + HEARTBEAT_SLACK);
        tokio::time::sleep(wait).await;
        Ok(())
    }

    async fn send(&self, change: InformerChange<P::Record>) -> Result<(), ReceiverClosed> {
        self.heartbeat.record(HEARTBEAT_SLACK);
        let event = InformerEvent { listing: self.listing.clone(), change };
        self.sink.send(event).await
    }
}

/// Moves on to the version of an event; one that is no number cannot be resumed from.
fn advance_version(version: &mut String, newer: ResourceVersion) {
    if newer.0 != 0 {
        *version = newer.to_string();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{self, Receiver};

    use super::*;
    use crate::cluster::tests::fake::{FakeApiServer, ScriptedReply, config_maps};

    /// Returns a task that does not run, and the receiver of its news.
    async fn idle_task() -> (InformerTask<LiveDecoder>, Receiver<InformerEvent>) {
        let cluster = FakeApiServer::start(|_, _| ScriptedReply::Silence).await.cluster;
        let (sink, events) = mpsc::channel(64);
        let (kind, informer_group) = (config_maps(), OWN_INFORMER_GROUP);
        let task = InformerTask {
            listing: WatchScope { informer_group, kind: kind.gvk.group_kind(), namespace: None },
            selector: ListSelector::All,
            decoder: LiveDecoder::new(&kind, cluster.interner(), WireForm::Full),
            sink: sink.into(),
            relist: Arc::default(),
            backoff: InformerBackoff::default(),
            stream_faults: 0,
            broken: 0,
            failing: false,
            heartbeat: cluster.heartbeats().expect_part("a watch", HEARTBEAT_SLACK),
            cluster,
            kind,
        };
        (task, events)
    }

    #[tokio::test]
    async fn a_kind_is_listed_again_once_its_version_is_gone_or_many_watches_in_a_row_were_broken() {
        let check = async |fault: fn() -> ClusterFault, relists: &[bool]| {
            let (mut task, _events) = idle_task().await;
            // From here on it only sleeps.
            tokio::time::pause();
            for (number, expected) in relists.iter().enumerate() {
                let error = ClusterError::new(CallSubject::Kind(task.listing.kind.clone()), fault());
                let end = task.handle_failure(error).await.unwrap();
                assert_eq!(matches!(end, WatchEnd::Relist), *expected, "{:?} {number}", fault());
            }
            tokio::time::resume();
        };
        check(|| ClusterFault::Expired, &[true]).await;
        check(|| ClusterFault::VersionConflict, &[false, false, false, false, true]).await;
        // A server that is away has broken nothing.
        let away = || ClusterFault::Unreachable { server: "server".into(), reason: "it is away".into() };
        check(away, &[false; 8]).await;
    }

    #[test]
    fn only_a_version_that_is_a_number_is_resumed_from() {
        let check = |newer: u64, expected: &str| {
            let mut version = "5".to_owned();
            advance_version(&mut version, ResourceVersion(newer));
            assert_eq!(version, expected);
        };
        check(7, "7");
        check(0, "5");
    }
}
