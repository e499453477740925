//! The task that follows the pods of one workload.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::super::backoff::{Backoff, Reach};
use super::super::call::Cluster;
use super::super::error::Error;
use super::super::informer::{Informer, InformerEvent, News};
use super::super::kinds::Kind;
use super::super::path::{Selector, Within};
use super::super::wire::Project;
use super::lens::{Narrow, PodRecord, Record, RevisionRecord, WorkloadRecord};
use super::store::{Controller, Store};
use super::warnings::{self, Warning, WarningLens};
use super::{CONTROLLER_REVISIONS, EVENTS, PODS, PodsEvent, PodsNews, REPLICA_SETS, kind};
use crate::engine::{Uid, WorkloadPods};
use crate::object::ObjectId;

/// Changes that come so close together are told at once.
const TOGETHER: Duration = Duration::from_millis(20);
/// Pods that are missing for so long are worth asking for the controller's words.
const SHORT: Duration = Duration::from_millis(250);
/// News that wait to be taken over.
const BACKLOG: usize = 64;

/// A lookup of the newest revision at a generation.
type Lookup = Pin<Box<dyn Future<Output = (i64, Result<Vec<RevisionRecord>, Error>)> + Send>>;

/// One informer and what it told.
struct Feed<R> {
    _informer: Informer,
    events: mpsc::Receiver<InformerEvent<R>>,
}

impl<R: Send + 'static> Feed<R> {
    fn new<P: Project<Record = R>>(cluster: &Cluster, kind: &Arc<Kind>, selector: Selector, lens: P) -> Self {
        let (sink, events) = mpsc::channel(BACKLOG);
        Self { _informer: cluster.inform(kind, selector, lens, sink), events }
    }
}

/// The next news of a feed; waits for ever where there is none.
async fn next<R>(feed: Option<&mut Feed<R>>) -> News<R> {
    if let Some(feed) = feed
        && let Some(event) = feed.events.recv().await
    {
        return event.news;
    }
    std::future::pending().await
}

/// What the task woke up for.
enum Turn {
    Workload(News<WorkloadRecord>),
    Set(News<RevisionRecord>),
    Pod(News<PodRecord>),
    Warning(News<Warning>),
    Listed(i64, Result<Vec<RevisionRecord>, Error>),
    /// A time has come.
    Time,
    /// There is room to tell something.
    Tell(mpsc::OwnedPermit<PodsEvent>),
    /// Nobody listens any more.
    Closed,
}

/// The task.
pub(super) struct Follow {
    cluster: Cluster,
    id: ObjectId,
    uid: Uid,
    within: Within,
    sink: mpsc::Sender<PodsEvent>,
    store: Store,
    controller: Controller,
    workload: Feed<WorkloadRecord>,
    pods: Feed<PodRecord>,
    sets: Option<Feed<RevisionRecord>>,
    warnings: Option<Feed<Warning>>,
    lookup: Option<(i64, Lookup)>,
    backoff: Backoff,
    /// Since when something has changed that was not told.
    changed: Option<Instant>,
    /// Since when pods have been missing.
    short: Option<Instant>,
    /// A failure that was not told.
    failure: Option<(Error, Duration)>,
    /// What was told last; none after a failure.
    told: Option<WorkloadPods>,
}

impl Follow {
    pub(super) fn new(
        cluster: &Cluster,
        controller: Controller,
        workload: &Arc<Kind>,
        id: &ObjectId,
        (uid, selector): (&Uid, &str),
        sink: mpsc::Sender<PodsEvent>,
    ) -> Option<Self> {
        let within =
            Within { namespace: id.namespace()?.into(), labels: Some(selector.into()), fields: None };
        let selected = || Selector::Within(Arc::new(within.clone()));
        let itself = Within {
            labels: None,
            fields: Some(format!("metadata.name={}", id.name()).into()),
            ..within.clone()
        };
        let (pods, sets) = (kind(&PODS), kind(&REPLICA_SETS));
        let has_sets = controller == Controller::Deployment;
        Some(Self {
            workload: Feed::new(cluster, workload, Selector::Within(Arc::new(itself)), lens(workload)),
            pods: Feed::new(cluster, &pods, selected(), lens(&pods)),
            sets: has_sets.then(|| Feed::new(cluster, &sets, selected(), lens(&sets))),
            warnings: None,
            cluster: cluster.clone(),
            id: id.clone(),
            uid: uid.clone(),
            within,
            sink,
            store: Store::new(controller, uid.clone()),
            controller,
            lookup: None,
            backoff: Backoff::default(),
            changed: None,
            short: None,
            failure: None,
            told: None,
        })
    }

    /// Ends only when nobody listens any more.
    pub(super) async fn run(mut self) {
        loop {
            self.prepare();
            match self.turn().await {
                Turn::Workload(news) => {
                    let news = self.heard(news);
                    self.store.workload(news);
                }
                Turn::Set(news) => {
                    let news = self.heard(news);
                    self.store.set(news);
                }
                Turn::Pod(news) => {
                    let news = self.heard(news);
                    self.store.pod(news, Instant::now());
                }
                Turn::Warning(news) => {
                    let news = self.heard(news);
                    self.store.warning(news, Instant::now());
                }
                Turn::Listed(generation, found) => self.listed(generation, found),
                Turn::Tell(permit) => {
                    if let Some(news) = self.news() {
                        permit.send(PodsEvent { id: self.id.clone(), news });
                    }
                }
                Turn::Time => {}
                Turn::Closed => return,
            }
        }
    }

    /// Starts what is needed now.
    fn prepare(&mut self) {
        if let Some(generation) = self.store.wanted() {
            if self.lookup.as_ref().is_none_or(|(at, _)| *at != generation) {
                self.look_up(generation, Duration::ZERO);
            }
        } else {
            self.lookup = None;
        }
        let is_short = self.controller != Controller::Deployment && self.store.is_short();
        self.short = is_short.then(|| self.short.unwrap_or_else(Instant::now));
        if self.warnings.is_none() && self.short.is_some_and(|since| since.elapsed() >= SHORT) {
            // From here on to the end: one list and one watch, whatever happens.
            let selector = warnings::about(&self.within.namespace, &self.uid, Some("FailedCreate"));
            self.warnings = Some(Feed::new(&self.cluster, &kind(&EVENTS), selector, WarningLens));
        }
    }

    /// Lists the revisions after a wait. Asked for after the generation was observed, so it shows what the
    /// controller wrote before that.
    fn look_up(&mut self, generation: i64, wait: Duration) {
        let builtin =
            if self.controller == Controller::Deployment { REPLICA_SETS } else { CONTROLLER_REVISIONS };
        let (cluster, kind) = (self.cluster.clone(), kind(&builtin));
        let selector = Selector::Within(Arc::new(self.within.clone()));
        let lookup = async move {
            tokio::time::sleep(wait).await;
            (generation, list(&cluster, &kind, &selector).await)
        };
        self.lookup = Some((generation, Box::pin(lookup)));
    }

    fn listed(&mut self, generation: i64, found: Result<Vec<RevisionRecord>, Error>) {
        match found {
            Ok(revisions) => {
                self.lookup = None;
                self.backoff = Backoff::default();
                self.store.listed(generation, revisions);
                self.changed.get_or_insert_with(Instant::now);
            }
            Err(error) => {
                let reach = if error.is_unreachable() { Reach::Down } else { Reach::Answered };
                let wait = self.backoff.failed(reach).max(error.retry_after().unwrap_or_default());
                self.look_up(generation, wait);
                self.failed(error, wait);
            }
        }
    }

    /// Notes that something has changed, or failed.
    fn heard<R>(&mut self, news: News<R>) -> News<R> {
        match news {
            News::Failed(error, wait) => {
                self.failed(error, wait);
                // What is known stays so; the list that follows tells the rest.
                News::Resumed
            }
            news => {
                self.changed.get_or_insert_with(Instant::now);
                news
            }
        }
    }

    fn failed(&mut self, error: Error, wait: Duration) {
        self.failure = Some((error, wait));
        self.told = None;
    }

    /// What is to be told now.
    fn news(&mut self) -> Option<PodsNews> {
        if let Some((error, wait)) = self.failure.take() {
            return Some(PodsNews::Failed(error, wait));
        }
        self.changed = None;
        let seen = self.store.view(Instant::now()).filter(|seen| self.told.as_ref() != Some(seen))?;
        self.told = Some(seen.clone());
        Some(PodsNews::Seen(seen))
    }

    /// Waits for the next turn.
    async fn turn(&mut self) -> Turn {
        let now = Instant::now();
        let tell_at = self.changed.map(|since| since + TOGETHER);
        let ask_at = self.short.filter(|_| self.warnings.is_none()).map(|since| since + SHORT);
        let wake = [tell_at, ask_at].into_iter().flatten().filter(|at| *at > now).min();
        let due = self.failure.is_some() || tell_at.is_some_and(|at| at <= now);
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
            () = self.sink.closed() => Turn::Closed,
            permit = self.sink.clone().reserve_owned(), if due => permit.map_or(Turn::Closed, Turn::Tell),
            news = next(Some(&mut self.workload)) => Turn::Workload(news),
            news = next(self.sets.as_mut()) => Turn::Set(news),
            news = next(Some(&mut self.pods)) => Turn::Pod(news),
            news = next(self.warnings.as_mut()) => Turn::Warning(news),
            (generation, found) = lookup => Turn::Listed(generation, found),
            () = sleep => Turn::Time,
        }
    }
}

fn lens<R: Record>(kind: &Kind) -> Narrow<R> {
    Narrow::new(kind.gvk.group_kind())
}

/// Lists all revisions with these labels.
async fn list(cluster: &Cluster, kind: &Kind, selector: &Selector) -> Result<Vec<RevisionRecord>, Error> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let (page, meta) = cluster.page(kind, selector, next.as_deref(), &lens(kind)).await?;
        all.extend(page.into_iter().map(|seen| seen.record));
        next = meta.next().map(str::to_owned);
        if next.is_none() {
            return Ok(all);
        }
    }
}
