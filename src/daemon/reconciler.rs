//! The loop.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::act::{Hands, Question};
use super::contents::{Bytes, Contents};
use super::event::Event;
use super::feed::{Feed, Order};
use super::inventory::{self, Call, Ledger, Need, Tidy};
use super::kinds::Watched;
use super::pass::{Ending, Pass};
use super::reading::Dialect;
use super::setup::{Files, Setup};
use crate::cluster::{InformerEvent, News, Scaler, applyset_id};
use crate::engine::{
    Action, Engine, Failure, Inventory, Judgement, Live, Outcome, Reading, Reason, Source, SourceId, Writes,
};
use crate::object::{GroupKind, ObjectId};
use crate::queue::Queue;
use crate::report::Told;

/// Events wait here while the loop is busy; a full channel slows the informers down, nothing is lost.
const BACKLOG: usize = 1024;

/// The watches are audited by a fresh list of every kind at this interval, or at every second resync where
/// that is sooner: an event that was lost in silence is found within it.
const AUDIT: Duration = Duration::from_mins(10);

/// How long a stop waits for the answers to writes that are on their way. Not to know them does no harm: the
/// next start looks.
const GRACE: Duration = Duration::from_secs(3);

/// While a prune waits for a person, the parent object is read again at this interval.
const CONFIRMATION: Duration = Duration::from_secs(2);

/// The longest rest after somebody else wrote first: the next view is on its way.
const CONFLICT: Duration = Duration::from_secs(1);

/// So many conflicts in a row are decided again as soon as the newer view is here: while a workload rolls,
/// its status alone makes every view old within moments.
const SWIFT: u32 = 3;

/// How long the loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until it is stopped.
    Stopped,
    /// Until nothing is left that passes by itself, or the time is over.
    Settled(Instant),
    /// As [`Until::Settled`], and all that is wanted is healthy.
    Healthy(Instant),
}

/// The loop over one cluster.
pub struct Reconciler {
    pub(super) engine: Engine,
    pub(super) queue: Queue<ObjectId>,
    pub(super) open: BTreeMap<ObjectId, Reason>,
    pub(super) told: BTreeMap<ObjectId, Told>,
    hands: Hands,
    watched: Watched,
    namespace: String,
    places: Vec<String>,
    ledgers: Vec<Ledger>,
    feeds: Vec<Option<mpsc::Sender<Order>>>,
    pending_feeds: Vec<(SourceId, Files, Dialect)>,
    unknown: BTreeSet<GroupKind>,
    read: BTreeSet<SourceId>,
    resolving: BTreeSet<ObjectId>,
    writes: usize,
    window: usize,
    concurrency: usize,
    resync: Duration,
    timers: Timers,
    pins: Pins,
    listener: mpsc::UnboundedSender<(ObjectId, Told)>,
    until: Until,
    channels: Channels,
}

struct Timers {
    resync: Instant,
    audit: Instant,
    confirmation: Option<Instant>,
    /// When a stop ends the loop, whatever is on its way.
    stop: Option<Instant>,
}

struct Channels {
    events: mpsc::Sender<Event>,
    from_tasks: mpsc::Receiver<Event>,
    from_informers: mpsc::Receiver<InformerEvent<Live>>,
    from_scalers: mpsc::Receiver<InformerEvent<Scaler>>,
}

impl Reconciler {
    /// Puts the parts together. What becomes of objects is told to the listener as it happens.
    pub fn new(setup: Setup, until: Until, listener: mpsc::UnboundedSender<(ObjectId, Told)>) -> Self {
        let (events, from_tasks) = mpsc::channel(BACKLOG);
        let (to_informers, from_informers) = mpsc::channel(BACKLOG);
        let (to_scalers, from_scalers) = mpsc::channel(BACKLOG);
        let mut engine = Engine::new(setup.max_workloads);
        let mut pending_feeds = Vec::new();
        let mut shelves = Vec::new();
        let mut places = Vec::new();
        let mut applysets = BTreeSet::new();
        for source in setup.sources {
            let applyset: Arc<str> = applyset_id(&setup.namespace, &source.name).into();
            let mut state = Source::new(&source.name, &applyset, source.adopt, source.prune, source.radius);
            state.writes = source.writes;
            let number = engine.add_source(state);
            let bytes = match &source.files {
                Files::Followed(source) => Bytes::Store(source.reader()),
                Files::Once(disk) => Bytes::Disk(disk.clone()),
            };
            let dialect =
                Dialect { source: number, applyset: applyset.clone(), namespace: source.namespace.into() };
            shelves.push((applyset.clone(), bytes));
            places.push(source.place);
            applysets.insert(applyset);
            pending_feeds.push((number, source.files, dialect));
        }
        let watched = Watched::new(setup.cluster.clone(), applysets, to_informers, to_scalers);
        let now = Instant::now();
        Self {
            ledgers: places.iter().map(|_| Ledger::default()).collect(),
            feeds: places.iter().map(|_| None).collect(),
            hands: Hands { cluster: setup.cluster, contents: Contents::new(shelves) },
            engine,
            queue: Queue::default(),
            open: BTreeMap::new(),
            told: BTreeMap::new(),
            watched,
            namespace: setup.namespace,
            places,
            pending_feeds,
            unknown: BTreeSet::new(),
            read: BTreeSet::new(),
            resolving: BTreeSet::new(),
            writes: 0,
            window: 1,
            concurrency: setup.concurrency,
            resync: setup.resync,
            timers: Timers {
                resync: now + setup.resync,
                audit: now + AUDIT.min(setup.resync * 2),
                confirmation: None,
                stop: None,
            },
            pins: Pins::New,
            listener,
            until,
            channels: Channels { events, from_tasks, from_informers, from_scalers },
        }
    }

    /// Runs the loop. A stop ends it when the writes that are on their way have been answered, or soon after.
    pub async fn run(mut self, stop: CancellationToken) -> Pass {
        loop {
            if stop.is_cancelled() {
                self.timers.stop.get_or_insert_with(|| Instant::now() + GRACE);
            } else {
                self.turn();
            }
            if let Some(ending) = self.ending(&stop) {
                return self.sum_up(ending);
            }
            let wake = self.wake();
            let stopped = stop.is_cancelled();
            tokio::select! {
                biased;
                Some(event) = self.channels.from_tasks.recv() => self.happened(event),
                Some(event) = self.channels.from_informers.recv() => self.informed(event),
                Some(event) = self.channels.from_scalers.recv() => self.watched.scaled(event, &mut self.engine),
                () = stop.cancelled(), if !stopped => {}
                () = tokio::time::sleep_until(wake.into()) => {}
            }
            self.absorb();
        }
    }

    /// Takes what else has happened, so that a burst is decided on once.
    fn absorb(&mut self) {
        for _ in 0..BACKLOG {
            if let Ok(event) = self.channels.from_tasks.try_recv() {
                self.happened(event);
            } else if let Ok(event) = self.channels.from_informers.try_recv() {
                self.informed(event);
            } else if let Ok(event) = self.channels.from_scalers.try_recv() {
                self.watched.scaled(event, &mut self.engine);
            } else {
                return;
            }
        }
    }

    fn ending(&self, stop: &CancellationToken) -> Option<Ending> {
        if stop.is_cancelled() {
            let over = self.timers.stop.is_some_and(|stop| stop <= Instant::now());
            return (self.writes == 0 || over).then_some(Ending::Stopped);
        }
        let (Until::Settled(deadline) | Until::Healthy(deadline)) = self.until else { return None };
        if Instant::now() >= deadline {
            return Some(Ending::TimedOut);
        }
        let depth = self.queue.depth();
        let started = self.read.len() == self.places.len() && self.watched.is_known();
        let quiet = depth.ready == 0
            && depth.processing == 0
            && self.ledgers.iter().all(|ledger| ledger.call == Call::None);
        let healthy = !matches!(self.until, Until::Healthy(_)) || self.unhealthy().is_empty();
        (started && quiet && healthy && !self.is_moving()).then_some(Ending::Settled)
    }

    fn wake(&mut self) -> Instant {
        let mut wake = self.timers.resync.min(self.timers.audit);
        if let Until::Settled(deadline) | Until::Healthy(deadline) = self.until {
            wake = wake.min(deadline);
        }
        if let Some(stop) = self.timers.stop {
            return stop;
        }
        let others = [self.queue.next_due(), self.watched.due(), self.timers.confirmation];
        others.into_iter().flatten().fold(wake, Instant::min)
    }

    /// One turn: timers, inventories, and as many keys as may be written at once.
    fn turn(&mut self) {
        let now = Instant::now();
        self.on_time(now);
        self.engine.settle();
        self.keep_inventories();
        for id in self.engine.take_dirty() {
            self.queue.add(id);
        }
        self.resolve();
        let mut batch = Batch::default();
        while self.writes < self.window.min(self.concurrency) {
            let Some(id) = self.queue.take(now) else { break };
            self.process(id, now, &mut batch);
        }
        self.ask(batch);
        self.pin();
        let confirm =
            self.engine.sources().iter().enumerate().any(|(source, _)| self.waits_for_person(source));
        match (confirm, self.timers.confirmation) {
            (true, None) => self.timers.confirmation = Some(now + CONFIRMATION),
            (false, _) => self.timers.confirmation = None,
            (true, Some(_)) => {}
        }
    }

    fn waits_for_person(&self, source: SourceId) -> bool {
        self.until == Until::Stopped
            && self.engine.judgements(source).any(|(_, j)| matches!(j, Judgement::Confirm(_)))
    }

    fn on_time(&mut self, now: Instant) {
        if self.watched.due().is_some_and(|due| due <= now) {
            self.watched.asked();
            let (cluster, events) = (self.hands.cluster.clone(), self.channels.events.clone());
            tokio::spawn(async move {
                let _ = events.send(Event::Kinds(cluster.discover().await)).await;
            });
        }
        if self.timers.resync <= now {
            self.timers.resync = now + self.resync.mul_f64(0.9 + 0.2 * super::random());
            self.engine.mark_all();
            self.reread_parents();
        }
        if self.timers.audit <= now {
            self.timers.audit = now + AUDIT.min(self.resync * 2);
            self.watched.audit();
        }
        if self.timers.confirmation.is_some_and(|due| due <= now) {
            self.timers.confirmation = None;
            self.reread_parents();
        }
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Read(source, reading, unknown) => self.was_read(source, reading, unknown),
            Event::Unreadable(source, why) => {
                let name = self.engine.source(source).name.clone();
                tracing::warn!(source = %name, "{why}");
                self.engine.unreadable(source, why);
                self.read.insert(source);
            }
            Event::Resolved(all) => {
                for (id, release, content) in all {
                    self.resolving.remove(&id);
                    self.engine.resolved(&id, &release, content);
                }
            }
            Event::Kinds(Ok(kinds)) => self.discovered(kinds),
            Event::Kinds(Err(error)) => {
                tracing::warn!("discovery failed: {error}");
                self.watched.failed();
            }
            Event::Parent(source, parent) => self.parent_answered(source, parent),
            Event::Looked(all) => {
                for (id, looked) in all {
                    match looked {
                        Ok(looked) => self.engine.looked(&id, looked),
                        Err(trouble) => self.put_off(&id, &trouble.0),
                    }
                    self.queue.done(&id);
                }
            }
            Event::Compared(all) => {
                for (id, verified) in all {
                    match verified {
                        Ok(verified) => self.engine.verified(&id, verified),
                        Err(trouble) => self.put_off(&id, &trouble.0),
                    }
                    self.queue.done(&id);
                }
            }
            Event::Done(id, action, outcome, told) => self.was_done(&id, &action, outcome, told),
        }
    }

    fn informed(&mut self, event: InformerEvent<Live>) {
        if matches!(&event.news, News::Gone(..) | News::Synced)
            || matches!(&event.news, News::Seen(_, live) if live.finished)
        {
            self.tidy_later();
        }
        self.watched.informed(event, &mut self.engine);
    }

    /// A question about an object had no answer: it is asked again later.
    fn put_off(&mut self, id: &ObjectId, why: &Arc<str>) {
        let wait = self.queue.backoff(id, super::random());
        self.open.insert(id.clone(), Reason::Retrying(why.clone(), wait));
        self.queue.add_at(id.clone(), Instant::now() + wait);
    }

    fn was_read(&mut self, source: SourceId, reading: Reading, unknown: BTreeSet<GroupKind>) {
        let facts = || reading.files.iter().filter_map(|(_, facts)| facts.as_ref());
        let gvks: BTreeSet<_> =
            facts().flat_map(|facts| &facts.objects).map(|desired| desired.gvk.clone()).collect();
        let held: BTreeSet<_> =
            facts().flat_map(|facts| &facts.held).map(|held| held.id.group_kind()).collect();
        let scalable = facts().flat_map(|facts| &facts.objects).any(|desired| desired.ceded.is_some());
        let touched: BTreeSet<(GroupKind, Option<String>)> = facts()
            .flat_map(|facts| facts.objects.iter().map(|d| &d.id).chain(facts.held.iter().map(|h| &h.id)))
            .map(|id| (id.group_kind(), id.namespace().map(str::to_owned)))
            .collect();
        if let Some(revision) = &reading.revision {
            tracing::info!(source = %self.engine.source(source).name, %revision, files = reading.files.len(), "read");
        }
        for diagnostic in facts().flat_map(|facts| &facts.diagnostics).filter(|d| d.is_error()) {
            tracing::warn!(code = diagnostic.code, "{}: {}", diagnostic.origin, diagnostic.message);
        }
        self.engine.read(source, reading);
        self.read.insert(source);
        let ledger = &mut self.ledgers[source];
        ledger.need = if ledger.tells(&touched) { Need::Tidying } else { Need::Growth };
        self.unknown.extend(unknown);
        self.watched.want(gvks, &mut self.engine);
        self.watched.hold(held, &mut self.engine);
        if scalable {
            self.watched.watch_scalers();
        }
        self.hands.contents.clear();
        self.pins = Pins::Old;
    }

    /// Revisions that contents in force were brought by stay readable.
    fn pin(&mut self) {
        if self.pins == Pins::New || !self.is_idle() {
            return;
        }
        self.pins = Pins::New;
        let revisions = self.engine.revisions();
        for feed in self.feeds.iter().flatten() {
            let _ = feed.try_send(Order::Pin(revisions.clone()));
        }
    }

    fn discovered(&mut self, kinds: crate::cluster::Kinds) {
        self.watched.discovered(kinds, &mut self.engine);
        let scopes = self.watched.scopes();
        for (source, files, dialect) in std::mem::take(&mut self.pending_feeds) {
            let events = self.channels.events.clone();
            match files {
                Files::Followed(followed) => {
                    let (orders, from_loop) = mpsc::channel(BACKLOG);
                    tokio::spawn(Feed::new(followed, dialect, scopes.clone(), events).run(from_loop));
                    self.feeds[source] = Some(orders);
                }
                Files::Once(disk) => {
                    let scopes = scopes.clone();
                    tokio::spawn(async move {
                        let event = super::feed::once(disk, dialect, scopes).await;
                        let _ = events.send(event).await;
                    });
                }
            }
            self.read_parent(source);
        }
        let known: Vec<GroupKind> =
            self.unknown.iter().filter(|kind| scopes.get(kind).is_some()).cloned().collect();
        if !known.is_empty() {
            self.unknown.retain(|kind| !known.contains(kind));
            for feed in self.feeds.iter().flatten() {
                let _ = feed.try_send(Order::Scopes(Box::new(scopes.clone())));
            }
        }
    }

    fn reread_parents(&mut self) {
        for source in 0..self.ledgers.len() {
            if self.ledgers[source].parent.is_some() {
                self.read_parent(source);
            }
        }
    }

    fn read_parent(&mut self, source: SourceId) {
        if std::mem::replace(&mut self.ledgers[source].call, Call::Busy) == Call::Busy {
            return;
        }
        let (cluster, events) = (self.hands.cluster.clone(), self.channels.events.clone());
        let (namespace, name) = (self.namespace.clone(), self.engine.source(source).name.clone());
        tokio::spawn(async move {
            let parent = cluster.parent(&namespace, &name).await;
            let _ = events.send(Event::Parent(source, parent)).await;
        });
    }

    fn parent_answered(
        &mut self,
        source: SourceId,
        parent: Result<Option<crate::cluster::Parent>, crate::cluster::Error>,
    ) {
        let ledger = &mut self.ledgers[source];
        ledger.call = Call::None;
        match parent {
            Ok(parent) => {
                let inventory = inventory::read(parent.as_ref(), &self.places[source]);
                ledger.parent = Some(parent);
                self.watched.hold(inventory.kinds.iter().cloned(), &mut self.engine);
                self.engine.inventory(source, self.visible(source, inventory));
            }
            Err(error) => {
                tracing::warn!(source = %self.engine.source(source).name, "the inventory: {error}");
                ledger.call = Call::Busy;
                let (events, cluster) = (self.channels.events.clone(), self.hands.cluster.clone());
                let (namespace, name) = (self.namespace.clone(), self.engine.source(source).name.clone());
                let wait = Duration::from_millis(500).mul_f64(1.0 + super::random());
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    let parent = cluster.parent(&namespace, &name).await;
                    let _ = events.send(Event::Parent(source, parent)).await;
                });
            }
        }
    }

    /// A source that is only observed writes no inventory; its decisions are shown as if it had.
    fn visible(&self, source: SourceId, mut inventory: Inventory) -> Inventory {
        if self.engine.source(source).writes == Writes::Observed {
            inventory.kinds.extend(self.engine.source(source).catalog.ids().map(ObjectId::group_kind));
        }
        inventory
    }

    /// Writes the parents that do not say what they should.
    fn keep_inventories(&mut self) {
        for source in 0..self.ledgers.len() {
            let state = self.engine.source(source);
            let Some(known) = self.ledgers[source].parent.clone() else { continue };
            if self.ledgers[source].call == Call::Busy
                || state.head.is_none()
                || state.writes == Writes::Observed
            {
                continue;
            }
            let tidy = match self.ledgers[source].need {
                Need::Growth => Tidy::Grow,
                Need::Tidying if self.is_idle() && self.all_synced(source) => Tidy::Exact,
                Need::Nothing | Need::Tidying
                    if self.read.contains(&source)
                        && !inventory::tells_pending(&self.engine, source, known.as_ref()) =>
                {
                    Tidy::Grow
                }
                Need::Nothing | Need::Tidying => continue,
            };
            self.ledgers[source].need = if tidy == Tidy::Grow { Need::Tidying } else { Need::Nothing };
            let wanted = inventory::wanted(&self.engine, source, &self.places[source], known.as_ref(), tidy);
            let nothing_to_say = known.is_none() && wanted.kinds.is_empty();
            if known.as_ref() == Some(&wanted) || nothing_to_say {
                continue;
            }
            self.ledgers[source].call = Call::Busy;
            let (cluster, events) = (self.hands.cluster.clone(), self.channels.events.clone());
            let (namespace, name) = (self.namespace.clone(), state.name.clone());
            tokio::spawn(async move {
                let saved = cluster.save_parent(&namespace, &name, known.as_ref(), &wanted).await;
                let _ = events.send(Event::Parent(source, saved.map(Some))).await;
            });
        }
    }

    fn is_idle(&self) -> bool {
        let depth = self.queue.depth();
        depth.ready == 0 && depth.processing == 0 && self.writes == 0 && !self.is_moving()
    }

    /// Something about inventories may have changed that can wait until nothing else is left to do.
    fn tidy_later(&mut self) {
        for ledger in self.ledgers.iter_mut().filter(|ledger| ledger.need == Need::Nothing) {
            ledger.need = Need::Tidying;
        }
    }

    fn all_synced(&self, source: SourceId) -> bool {
        let state = self.engine.source(source);
        let held = state.inventory.iter().flat_map(|inventory| inventory.kinds.iter().cloned());
        state.incomplete.is_none()
            && held
                .chain(state.catalog.ids().map(ObjectId::group_kind))
                .all(|kind| self.engine.is_synced(&kind))
    }

    /// Asks the feeds for older contents that decisions need.
    fn resolve(&mut self) {
        for (revision, wanted) in self.engine.unresolved() {
            let wanted: Vec<_> = wanted.into_iter().filter(|(id, _)| !self.resolving.contains(id)).collect();
            if wanted.is_empty() {
                continue;
            }
            let feed = wanted.first().and_then(|(id, _)| self.feed_of(id));
            match feed {
                Some(feed) => {
                    if feed.try_send(Order::Resolve(revision, wanted.clone())).is_ok() {
                        self.resolving.extend(wanted.into_iter().map(|(id, _)| id));
                    }
                }
                // A single reading has no history: what was accepted before is not known.
                None => {
                    for (id, hash) in wanted {
                        self.engine.resolved(
                            &id,
                            &crate::engine::Release { hash, revision: revision.clone() },
                            None,
                        );
                    }
                }
            }
        }
    }

    fn feed_of(&self, id: &ObjectId) -> Option<mpsc::Sender<Order>> {
        let wanting = self.engine.entry(id).and_then(|entry| entry.wants.first()).map(|(source, _)| *source);
        let source = wanting.or_else(|| self.engine.live(id).and_then(|live| self.engine.source_of(live)))?;
        self.feeds[source].clone()
    }

    fn process(&mut self, id: ObjectId, now: Instant, batch: &mut Batch) {
        let decision = self.engine.decide(&id, now);
        if let Some(again) = decision.again {
            self.queue.add_at(id.clone(), now + again);
        }
        self.take_note(&id, decision.reason.clone(), &decision.action);
        let kind = self.kind_of(&id);
        match (decision.action, kind) {
            (Action::Nothing | Action::Resolve, _) => self.queue.done(&id),
            (Action::Forget, _) => {
                self.engine.forget(&id);
                self.queue.done(&id);
            }
            (Action::Look, _) => batch.looks.push(id),
            (Action::Compare(want, replicas), _) => {
                let shape = self.engine.shown(&id).and_then(|live| live.ours.clone());
                batch.compares.push(Question { id, want, replicas, shape });
            }
            (Action::Inspect(want, replicas), Some(kind)) => {
                let shape = self.engine.shown(&id).and_then(|live| live.ours.clone());
                self.spawn(self.hands.clone().inspect(kind, Question { id, want, replicas, shape }));
            }
            (Action::Apply(apply), Some(kind)) => {
                let kind = self.watched.exactly(&apply.want.gvk).unwrap_or(kind);
                self.engine.dispatched(&id, &Action::Apply(apply.clone()));
                self.writes += 1;
                self.spawn(self.hands.clone().apply(kind, id, apply));
            }
            (action @ Action::Delete(..), Some(kind)) => {
                self.engine.dispatched(&id, &action);
                self.writes += 1;
                self.spawn(self.hands.clone().delete(kind, id, action));
            }
            (_, None) => self.queue.done(&id),
        }
    }

    fn kind_of(&self, id: &ObjectId) -> Option<Arc<crate::cluster::Kind>> {
        let wanted =
            self.engine.entry(id).and_then(|entry| entry.want()).map(|(_, desired)| desired.gvk.clone());
        wanted.and_then(|gvk| self.watched.exactly(&gvk)).or_else(|| self.watched.kind(&id.group_kind()))
    }

    /// A kind in the version in which it is watched.
    pub(super) fn version(&self, kind: &GroupKind) -> Option<crate::object::Gvk> {
        self.watched.kind(kind).map(|kind| kind.gvk.clone())
    }

    fn spawn(&self, task: impl Future<Output = Event> + Send + 'static) {
        let events = self.channels.events.clone();
        tokio::spawn(async move {
            let _ = events.send(task.await).await;
        });
    }

    fn ask(&mut self, batch: Batch) {
        if !batch.compares.is_empty() {
            self.spawn(self.hands.clone().compare(batch.compares));
        }
        let mut groups: HashMap<(GroupKind, Option<String>), Vec<ObjectId>> = HashMap::new();
        for id in batch.looks {
            groups.entry((id.group_kind(), id.namespace().map(str::to_owned))).or_default().push(id);
        }
        for ((_, namespace), ids) in groups {
            match ids.first().and_then(|id| self.kind_of(id)) {
                Some(kind) => self.spawn(self.hands.clone().look(kind, namespace, ids)),
                None => ids.iter().for_each(|id| self.queue.done(id)),
            }
        }
    }

    /// Keeps why an object is not as wanted, and tells what is new.
    fn take_note(&mut self, id: &ObjectId, reason: Option<Reason>, action: &Action) {
        let wanted = self.engine.entry(id).is_some_and(|entry| !entry.wants.is_empty());
        if let Some(reason) = reason {
            if self.open.get(id) != Some(&reason) {
                if reason.is_refusal() {
                    self.tell(id, Told::Refused(reason.clone()));
                } else if let Reason::Fight(..) = reason {
                    if !matches!(self.open.get(id), Some(Reason::Fight(..))) {
                        tracing::warn!(object = %id, "{reason}");
                    }
                } else if !matches!(reason, Reason::OwnWrite | Reason::Syncing(_) | Reason::Inventory(_)) {
                    tracing::debug!(object = %id, "waiting: {reason}");
                }
                self.open.insert(id.clone(), reason);
            }
        } else {
            self.open.remove(id);
            if *action == Action::Nothing && wanted {
                self.queue.forget(id);
                if self.until != Until::Stopped && !self.told.contains_key(id) {
                    self.tell(id, Told::Unchanged);
                }
            }
        }
    }

    fn tell(&mut self, id: &ObjectId, told: Told) {
        if self.until != Until::Stopped {
            self.told.insert(id.clone(), told.clone());
        }
        let _ = self.listener.send((id.clone(), told));
    }

    fn was_done(&mut self, id: &ObjectId, action: &Action, outcome: Outcome, told: Option<Told>) {
        self.writes -= 1;
        let now = Instant::now();
        let outcome = match outcome {
            Outcome::Failed(failure) => Outcome::Failed(self.with_backoff(id, failure)),
            carried_out => {
                self.window = (self.window * 2).min(self.concurrency);
                self.queue.forget(id);
                carried_out
            }
        };
        if let Outcome::Failed(failure) = &outcome {
            tracing::debug!(object = %id, "not carried out: {failure:?}");
        }
        let unchanged = match (&outcome, action) {
            (Outcome::Applied(written), Action::Apply(apply)) => apply.seen == Some(written.live.rv),
            _ => false,
        };
        self.engine.outcome(id, action, outcome, now);
        if let Some(told) = told {
            self.tell(id, if unchanged { Told::Unchanged } else { told });
        }
        self.queue.done(id);
    }

    fn with_backoff(&mut self, id: &ObjectId, failure: Failure) -> Failure {
        match failure {
            Failure::Unknown(why, wait) => {
                self.window = (self.window / 2).max(1);
                Failure::Unknown(why, wait.max(self.queue.backoff(id, super::random())))
            }
            Failure::Refused(why, rule, Some(wait)) => {
                Failure::Refused(why, rule, Some(wait.max(self.queue.backoff(id, super::random()))))
            }
            Failure::Conflict(_) => {
                let swift = self.queue.failures(id) < SWIFT;
                let rest = self.queue.backoff(id, super::random()).min(CONFLICT);
                Failure::Conflict(if swift { Duration::ZERO } else { rest })
            }
            other => other,
        }
    }
}

/// Whether the sources keep the revisions readable that the cluster names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pins {
    /// They were told.
    New,
    /// Something was read since.
    Old,
}

/// Questions that are asked together.
#[derive(Default)]
struct Batch {
    looks: Vec<ObjectId>,
    compares: Vec<Question>,
}
