//! Informers: one task per kind that lists, watches, and begins again whenever it must.
//!
//! Written on the client's bare streams, because kube's own `watcher` starts a watch that is cut at once
//! again without any pause, sets no deadline for its lists, hides the bookmarks that show that a watch is
//! alive, and holds a page as text and as bytes.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::backoff::{Backoff, Reach};
use super::call::{Cluster, SLACK};
use super::error::{Error, Fault, On};
use super::kinds::Kind;
use super::path::{Selector, Within};
use super::watch::{Event, Start, Watch};
use super::wire::{Form, Lens, Project, Scaler, ScalerLens, VersionLens};
use crate::engine::{Listing, Live, OWN, Rv, WatcherId};
use crate::object::ObjectId;
use crate::pulse::Pulse;

/// What the sign of life of a watch begins with; its kind follows.
pub const WATCH_OVER: &str = "the watch over ";

/// After so many failed watches in a row the kind is listed again, whatever the failures were.
const PATIENCE: u32 = 5;
/// After so many streaming lists that never ended the kind is read in pages.
const STREAM_FAULTS: u32 = 2;
/// A watch that lived so long was sound, however it ended.
const STEADY: Duration = Duration::from_secs(30);
/// What an informer tells about its kind.
#[derive(Debug)]
pub struct InformerEvent<R = Live> {
    /// What is listed: by whom, the kind, and where.
    pub listing: Listing,
    /// What happened.
    pub news: News<R>,
}

/// One piece of news about a kind.
#[derive(Debug)]
pub enum News<R = Live> {
    /// A list begins. What was known before stays true until it is seen, gone or the list has ended.
    Started,
    /// The object is there, in this state.
    Seen(ObjectId, R),
    /// The object is gone, or no longer selected; the version is that of the event.
    Gone(ObjectId, Rv),
    /// The list has ended: what was not seen since `Started` is gone, or no longer selected.
    Synced,
    /// Something failed; it goes on by itself after the wait, and tells so. After a failure of class
    /// [`Class::Internal`](crate::object::Class::Internal) it does not.
    Failed(Error, Duration),
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
    /// Lists the kind again, as an audit of what the watch told.
    pub fn relist(&self) {
        self.relist.notify_one();
    }

    /// Whether it has stopped.
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
    /// Tells everything about the selected objects of a kind, in the version given, until it is dropped. The number of
    /// who watches is handed back with each piece of news.
    ///
    /// Waits while the sink is full. Needs a running tokio runtime.
    pub fn informer(
        &self,
        kind: &Arc<Kind>,
        selector: Selector,
        watcher: WatcherId,
        sink: mpsc::Sender<InformerEvent<Live>>,
    ) -> Informer {
        self.inform_by(watcher, kind, selector, Lens::new(kind, self.interner(), Form::Whole), sink)
    }

    /// Tells what the autoscalers of the cluster scale; the kind is `HorizontalPodAutoscaler`.
    pub fn scalers(&self, kind: &Arc<Kind>, sink: mpsc::Sender<InformerEvent<Scaler>>) -> Informer {
        self.inform(kind, Selector::All, ScalerLens::new(kind, self.interner()), sink)
    }

    /// Tells in which versions the parents of these sets are, in one namespace; the kind is `ConfigMap`.
    pub fn parent_versions(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        sets: &BTreeSet<Arc<str>>,
        sink: mpsc::Sender<InformerEvent<Rv>>,
    ) -> Informer {
        self.versions(kind, namespace, super::parent::ID_LABEL, sets, sink)
    }

    /// Tells in which versions the orders objects of these sets are, as [`Cluster::parent_versions`].
    pub fn order_versions(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        sets: &BTreeSet<Arc<str>>,
        sink: mpsc::Sender<InformerEvent<Rv>>,
    ) -> Informer {
        self.versions(kind, namespace, super::orders::LABEL, sets, sink)
    }

    fn versions(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        label: &str,
        sets: &BTreeSet<Arc<str>>,
        sink: mpsc::Sender<InformerEvent<Rv>>,
    ) -> Informer {
        let sets: Vec<&str> = sets.iter().map(|set| &**set).collect();
        let labels = format!("{label} in ({})", sets.join(","));
        let within = Within { namespace: namespace.into(), labels: Some(labels.into()), fields: None };
        let selector = Selector::Within(Arc::new(within));
        self.inform(kind, selector, VersionLens::new(kind, self.interner()), sink)
    }

    pub(super) fn inform<P: Project>(
        &self,
        kind: &Arc<Kind>,
        selector: Selector,
        lens: P,
        sink: mpsc::Sender<InformerEvent<P::Record>>,
    ) -> Informer {
        self.inform_by(OWN, kind, selector, lens, sink)
    }

    fn inform_by<P: Project>(
        &self,
        watcher: WatcherId,
        kind: &Arc<Kind>,
        selector: Selector,
        lens: P,
        sink: mpsc::Sender<InformerEvent<P::Record>>,
    ) -> Informer {
        let namespace = selector.namespace().map(Arc::from);
        let listing = Listing { watcher, kind: kind.gvk.group_kind(), namespace };
        let relist = Arc::new(Notify::new());
        let follower = Follower {
            cluster: self.clone(),
            kind: kind.clone(),
            listing,
            selector,
            lens,
            sink,
            relist: relist.clone(),
            backoff: Backoff::default(),
            stream_faults: 0,
            broken: 0,
            failing: false,
            pulse: self.pulses().expect(&format!("{WATCH_OVER}{}", kind.gvk.group_kind()), SLACK),
        };
        let (bug, sink) =
            (Error::new(On::Kind(follower.listing.kind.clone()), Fault::Bug), follower.sink.clone());
        let listing = follower.listing.clone();
        let task = async move {
            if AssertUnwindSafe(follower.run()).catch_unwind().await.is_err() {
                let _ = sink.send(InformerEvent { listing, news: News::Failed(bug, Duration::ZERO) }).await;
            }
        };
        Informer { task: tokio::spawn(task), relist }
    }
}

/// Nobody listens any more.
struct Closed;

/// Why following a watch ended.
enum End {
    /// It is watched again, from the last version.
    Resume,
    /// It is listed again.
    Relist,
}

/// Where a complete list leads.
struct Listed {
    /// The version to watch from.
    version: String,
    /// The watch that brought the list, and goes on with what follows.
    watch: Option<Watch>,
}

struct Follower<P: Project> {
    cluster: Cluster,
    kind: Arc<Kind>,
    listing: Listing,
    selector: Selector,
    lens: P,
    sink: mpsc::Sender<InformerEvent<P::Record>>,
    relist: Arc<Notify>,
    backoff: Backoff,
    /// How often a streaming list has failed as such.
    stream_faults: u32,
    /// Watches in a row that the server broke.
    broken: u32,
    /// Whether the last news was a failure.
    failing: bool,
    pulse: Pulse,
}

impl<P: Project> Follower<P> {
    /// Ends only when nobody listens any more.
    async fn run(mut self) {
        while let Ok(()) = self.cycle().await {}
    }

    /// One list and the watches that follow it, up to the next list.
    async fn cycle(&mut self) -> Result<(), Closed> {
        self.tell(News::Started).await?;
        let Listed { mut version, mut watch } = match self.list().await? {
            Ok(listed) => listed,
            Err(error) => return self.failed(error).await,
        };
        self.broken = 0;
        self.failing = false;
        self.tell(News::Synced).await?;
        self.lens.sweep();
        loop {
            let ended = self.follow(&mut version, watch.take()).await?;
            self.cluster.measures().watch_restarted(&self.listing.kind.to_string());
            match ended {
                End::Resume => {}
                End::Relist => return Ok(()),
            }
        }
    }

    /// Tells every object that there is.
    async fn list(&mut self) -> Result<Result<Listed, Error>, Closed> {
        if self.stream_faults < STREAM_FAULTS {
            match self.list_by_stream().await? {
                Err(error) if matches!(error.fault(), Fault::Invalid { .. }) => {
                    self.stream_faults = STREAM_FAULTS;
                }
                // Some servers ignore the parameter, and then never send the end.
                Err(error) if matches!(error.fault(), Fault::Timeout { .. }) => {
                    self.stream_faults += 1;
                    return Ok(Err(error));
                }
                other => return Ok(other),
            }
            tracing::debug!(kind = %self.listing.kind, "the server has no streaming lists: reading pages");
        }
        self.list_by_pages().await
    }

    async fn list_by_stream(&mut self) -> Result<Result<Listed, Error>, Closed> {
        self.pulse.beat(self.cluster.longest_call());
        let mut watch = match self.cluster.watch(&self.kind, &self.selector, &Start::All).await {
            Ok(watch) => watch,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            self.pulse.beat(watch.limit() + SLACK);
            match watch.next(|text| self.lens.project(text)).await {
                Ok(Some(Event::Bookmark { version, ends_list: true })) => {
                    return Ok(Ok(Listed { version, watch: Some(watch) }));
                }
                Ok(Some(Event::Bookmark { .. })) => {}
                Ok(Some(Event::Seen(seen))) => self.tell(News::Seen(seen.id, seen.record)).await?,
                Ok(Some(Event::Gone(gone))) => self.tell(News::Gone(gone.id, gone.rv)).await?,
                Ok(None) => {
                    return Ok(Err(watch.cut("the list was cut before its end".to_owned())));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    async fn list_by_pages(&mut self) -> Result<Result<Listed, Error>, Closed> {
        let mut next: Option<String> = None;
        loop {
            self.pulse.beat(self.cluster.longest_call());
            let page = self.cluster.page(&self.kind, &self.selector, next.as_deref(), &self.lens).await;
            let (items, meta) = match page {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            for seen in items {
                self.tell(News::Seen(seen.id, seen.record)).await?;
            }
            match meta.next() {
                Some(token) => next = Some(token.to_owned()),
                // Without a version the watch begins at the newest state, as the best that can be done.
                None => {
                    return Ok(Ok(Listed {
                        version: meta.resource_version.unwrap_or_default(),
                        watch: None,
                    }));
                }
            }
        }
    }

    /// Follows one watch to its end.
    async fn follow(&mut self, version: &mut String, running: Option<Watch>) -> Result<End, Closed> {
        let mut watch = if let Some(watch) = running {
            watch
        } else {
            self.pulse.beat(self.cluster.longest_call());
            match self.cluster.watch(&self.kind, &self.selector, &Start::After(version.clone())).await {
                Ok(watch) => watch,
                Err(error) => return self.lost(error).await,
            }
        };
        if self.failing {
            self.failing = false;
            self.tell(News::Resumed).await?;
        }
        let since = Instant::now();
        let relist = self.relist.clone();
        loop {
            self.pulse.beat(watch.limit() + SLACK);
            let event = tokio::select! {
                biased;
                () = relist.notified() => return Ok(End::Relist),
                event = watch.next(|text| self.lens.project(text)) => event,
            };
            if let Ok(Some(_)) = event {
                self.cluster.measures().heard();
            }
            match event {
                Ok(Some(Event::Seen(seen))) => {
                    advance(version, seen.rv);
                    self.tell(News::Seen(seen.id, seen.record)).await?;
                }
                Ok(Some(Event::Gone(gone))) => {
                    advance(version, gone.rv);
                    self.tell(News::Gone(gone.id, gone.rv)).await?;
                }
                Ok(Some(Event::Bookmark { version: newer, .. })) => *version = newer,
                Ok(None) => {
                    self.broken = 0;
                    let wait = self.backoff.ended(since.elapsed());
                    self.pulse.beat(wait + SLACK);
                    tokio::time::sleep(wait).await;
                    return Ok(End::Resume);
                }
                Err(error) => {
                    if since.elapsed() >= STEADY {
                        self.broken = 0;
                        self.backoff = Backoff::default();
                    }
                    return self.lost(error).await;
                }
            }
        }
    }

    /// What follows from a watch that could not be started, or broke.
    async fn lost(&mut self, error: Error) -> Result<End, Closed> {
        let expired = *error.fault() == Fault::Expired;
        if !error.is_unreachable() {
            self.broken += 1;
        }
        self.failed(error).await?;
        Ok(if expired || self.broken >= PATIENCE { End::Relist } else { End::Resume })
    }

    /// Tells a failure and waits.
    async fn failed(&mut self, error: Error) -> Result<(), Closed> {
        let reach = if error.is_unreachable() { Reach::Down } else { Reach::Answered };
        if reach == Reach::Down {
            self.cluster.measures().missed();
        }
        let wait = self.backoff.failed(reach).max(error.retry_after().unwrap_or_default());
        self.failing = true;
        self.tell(News::Failed(error, wait)).await?;
        self.pulse.beat(wait + SLACK);
        tokio::time::sleep(wait).await;
        Ok(())
    }

    async fn tell(&self, news: News<P::Record>) -> Result<(), Closed> {
        self.pulse.beat(SLACK);
        let event = InformerEvent { listing: self.listing.clone(), news };
        self.sink.send(event).await.map_err(|_| Closed)
    }
}

/// Moves on to the version of an event; one that is no number cannot be resumed from.
fn advance(version: &mut String, newer: Rv) {
    if newer.0 != 0 {
        *version = newer.to_string();
    }
}
