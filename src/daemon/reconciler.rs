//! The event loop: receives events, has the engine decide, and carries its decisions out.
//!
//! One key of the queue is reconciled by `process_key`, as by `Reconcile` in controller-runtime.
//! Its write runs in a task, and `finish_action` finishes the key. Both are in
//! `reconciler/dispatch.rs`.

mod answers;
mod channels;
mod claims;
mod comparisons;
mod conclusion;
mod configs;
mod daemon_sets;
mod deleted_sources;
mod dispatch;
mod event_handlers;
mod folder_searches;
mod inventories;
mod inventory_rotation;
mod object_events;
pub(super) mod opt_out_events;
mod orders;
mod orders_objects;
mod other_daemons;
mod peers;
mod pods;
mod scale_balance;
mod source_readings;
mod summary;
mod unused_inventories;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::answers::Inquiry;
pub(crate) use self::answers::{FetchResult, Inquiries};
use self::channels::LoopChannels;
use self::claims::RolloutLedgerStore;
use self::configs::ConfigFollowers;
use self::daemon_sets::NodeWatch;
use self::dispatch::LookupBatch;
use self::folder_searches::FolderSearches;
use self::inventory_rotation::InventoryRotation;
use self::object_events::EventHistory;
use self::orders_objects::OrderStore;
use self::pods::PodFollowers;
use self::source_readings::PinState;
use self::summary::SummaryPublication;
use super::contents::{ContentOrigin, ContentStore, SourceBytes};
use super::executor::Executor;
use super::inventory::{CallState, InventoryStore};
use super::kinds::KindWatches;
use super::loop_event::LoopEvent;
use super::manifest_facts::ReadSettings;
use super::pass_result::{PassEnding, PassResult};
use super::setup::{Setup, SourceFiles, SourceSetup};
use super::source_task::SourceTaskRequest;
use super::tasks::{FatalError, TaskSet};
use super::watchers::AccountWatchers;
use crate::cluster::inventory_id_of;
use crate::engine::{Engine, PruneDecision, Reason, SourceId};
use crate::heartbeat::Heartbeat;
use crate::object::{ContentHash, ErrorClass, GroupKind, ObjectId};
use crate::queue::WorkQueue;
use crate::report::{Metrics, ObjectEvent, Outcome};

/// Events wait here while the loop is busy; a full channel slows the informers down, nothing is
/// lost.
const CHANNEL_CAPACITY: usize = 1024;

/// The interval at which a fresh list of every kind audits the watches, or every second resync
/// where that is sooner. A lost event is found within it.
const AUDIT_INTERVAL: Duration = Duration::from_mins(10);

/// The time limit of a stop for the answers to writes in flight. A missing answer does no harm: the
/// next start lists everything.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// While a prune waits for a person, the inventory is read again at this interval.
const CONFIRMATION_INTERVAL: Duration = Duration::from_secs(2);

/// The longest time that one turn of the loop may take, or a wait last longer than it should.
const MAX_TURN_DURATION: Duration = Duration::from_mins(1);

/// The maximum number of decisions in one turn: some tenths of a second, after which a stop, an
/// answer or a question has its turn. Fewer would cost one more list of each namespace that is
/// listed in two turns.
const MAX_DECISIONS_PER_TURN: usize = 10_000;

/// The interval at which the driving thread shows that nothing blocks it.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// The condition that ends the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCondition {
    /// Runs until it is stopped.
    Shutdown,
    /// Runs until nothing is left that passes by itself, or the time is over.
    Settled(Instant),
    /// As [`StopCondition::Settled`], and all that is wanted is healthy.
    Healthy(Instant),
}

/// The loop over one cluster.
pub(crate) struct Reconciler {
    pub(super) engine: Engine,
    pub(super) queue: WorkQueue<ObjectId>,
    /// The reason for each object that is not, or not yet, in its desired state.
    pub(super) reasons: BTreeMap<ObjectId, Reason>,
    /// The last outcome of each object.
    pub(super) outcomes: BTreeMap<ObjectId, Outcome>,
    /// The health of each unhealthy object, as last logged.
    unhealthy: BTreeMap<ObjectId, String>,
    /// The reason for each refused object as last logged, with the content: each try would log it
    /// anew.
    refused: BTreeMap<ObjectId, (Option<ContentHash>, String)>,
    executor: Executor,
    watched: KindWatches,
    namespace: String,
    locations: Vec<String>,
    inventories: Vec<InventoryStore>,
    inventory_rotation: InventoryRotation,
    orders: Vec<OrderStore>,
    /// Indicates whether what the other sources say is being read.
    peers: CallState,
    /// The statements of other sources that cannot be read, as last logged.
    unreadable_peers: Vec<String>,
    /// Sources that this process has served, and that nobody is to serve any more.
    retired_sources: BTreeSet<Arc<str>>,
    folder_searches: FolderSearches,
    /// The sources that are to be observed, each after a number.
    due_observations: BTreeMap<SourceId, u64>,
    ledger_store: RolloutLedgerStore,
    followers: PodFollowers,
    nodes: NodeWatch,
    configs: ConfigFollowers,
    /// The requests to the task of each source; none where it has not begun, or reads only once.
    source_tasks: Vec<Option<mpsc::Sender<SourceTaskRequest>>>,
    /// Sources whose task begins once discovery has answered.
    pending_source_tasks: Vec<(SourceId, SourceFiles, ReadSettings)>,
    /// Kinds of which sources have objects that were read without a known scope.
    unscoped: BTreeSet<(SourceId, GroupKind)>,
    /// Sources that were read, or could not be, at least once.
    attempted_sources: BTreeSet<SourceId>,
    /// Objects whose older content is being read.
    reading_contents: BTreeSet<ObjectId>,
    /// Orders whose rollback is being looked up.
    undoing: BTreeSet<Arc<str>>,
    /// The number of writes and dry runs in flight.
    writes: usize,
    /// One reference for each write in flight that `writes` does not count.
    in_flight: Arc<()>,
    /// Writes in flight that failed before, and objects whose turn comes when one of them is
    /// answered.
    retries: BTreeSet<ObjectId>,
    waiting_retries: BTreeSet<ObjectId>,
    /// The number of writes that may be in flight now: answers double it, outages halve it.
    write_window: usize,
    /// The maximum of the write window.
    concurrency: usize,
    resync: Duration,
    timers: LoopTimers,
    pins: PinState,
    listener: mpsc::UnboundedSender<ObjectEvent>,
    stop_condition: StopCondition,
    started_at: jiff::Timestamp,
    metrics: Metrics,
    history: EventHistory,
    summary: SummaryPublication,
    /// Questions that are answered after the turn: what came with them is decided on first.
    open_inquiries: Vec<Inquiry>,
    channels: LoopChannels,
    tasks: TaskSet,
    fatal: Option<FatalError>,
}

/// The parts that the loop has of each source.
#[derive(Default)]
struct SourceParts {
    pending_source_tasks: Vec<(SourceId, SourceFiles, ReadSettings)>,
    content_origins: Vec<ContentOrigin>,
    locations: Vec<String>,
    folder_searches: FolderSearches,
}

impl SourceParts {
    /// Adds all sources to the engine, and takes them apart.
    fn add_all(
        sources: Vec<SourceSetup>,
        namespace: &str,
        engine: &mut Engine,
        watchers: &mut AccountWatchers,
    ) -> Self {
        let mut parts = Self::default();
        for mut source in sources {
            let inventory_id: Arc<str> = inventory_id_of(namespace, &source.name).into();
            let mut facts = source.initial_state(&inventory_id, namespace);
            facts.watcher = watchers.watch_for(&source, namespace, &inventory_id, engine);
            let number = engine.add_source(facts);
            parts.folder_searches.add(number, source.folder_search.take());
            parts.content_origins.push(ContentOrigin {
                inventory_id: inventory_id.clone(),
                namespace: source.namespace.as_str().into(),
                bytes: SourceBytes::of(&source.files),
                decrypter: source.decrypter.clone(),
            });
            let read_settings = source.read_settings(number, &inventory_id, namespace);
            parts.locations.push(source.location);
            parts.pending_source_tasks.push((number, source.files, read_settings));
        }
        parts
    }
}

struct LoopTimers {
    resync: Instant,
    audit: Instant,
    confirmation: Option<Instant>,
    /// The time at which a stop ends the loop, whatever is in flight.
    stop: Option<Instant>,
    /// Indicates whether the last turn ended before all was decided and compared.
    at_once: bool,
}

impl LoopTimers {
    fn new(now: Instant, resync: Duration) -> Self {
        Self {
            resync: now + resync,
            audit: now + AUDIT_INTERVAL.min(resync * 2),
            confirmation: None,
            stop: None,
            at_once: false,
        }
    }
}

impl Reconciler {
    /// Builds the loop from its parts. The listener gets each object's events as they happen.
    pub(crate) fn new(
        setup: Setup,
        stop_condition: StopCondition,
        listener: mpsc::UnboundedSender<ObjectEvent>,
    ) -> Self {
        let (sinks, channels) = LoopChannels::open();
        let mut engine = claims::engine(setup.budget);
        set_peer_rules(&mut engine, &setup.namespace, stop_condition);
        let mut watchers = AccountWatchers::new(&setup.cluster);
        let SourceParts { pending_source_tasks, content_origins, locations, folder_searches } =
            SourceParts::add_all(setup.sources, &setup.namespace, &mut engine, &mut watchers);
        let watched = KindWatches::new(watchers, sinks.informers, sinks.scalers, sinks.inventories);
        let queue = WorkQueue::default();
        let metrics = Metrics::new(setup.cluster.call_metrics().clone(), queue.metrics().clone());
        Self {
            history: EventHistory::of(locations.len()),
            inventories: locations.iter().map(|_| InventoryStore::default()).collect(),
            inventory_rotation: InventoryRotation::of(locations.len()),
            orders: locations.iter().map(|_| OrderStore::default()).collect(),
            source_tasks: locations.iter().map(|_| None).collect(),
            peers: CallState::None,
            unreadable_peers: Vec::new(),
            retired_sources: BTreeSet::new(),
            folder_searches,
            due_observations: BTreeMap::new(),
            ledger_store: RolloutLedgerStore::default(),
            followers: PodFollowers::new(sinks.pods),
            nodes: NodeWatch::closed(),
            configs: ConfigFollowers::new(sinks.data),
            executor: Executor { cluster: setup.cluster, contents: ContentStore::new(content_origins) },
            engine,
            queue,
            reasons: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            unhealthy: BTreeMap::new(),
            refused: BTreeMap::new(),
            watched,
            namespace: setup.namespace,
            locations,
            pending_source_tasks,
            unscoped: BTreeSet::new(),
            attempted_sources: BTreeSet::new(),
            reading_contents: BTreeSet::new(),
            undoing: BTreeSet::new(),
            writes: 0,
            in_flight: Arc::default(),
            retries: BTreeSet::new(),
            waiting_retries: BTreeSet::new(),
            write_window: 1,
            concurrency: setup.concurrency,
            resync: setup.resync,
            timers: LoopTimers::new(Instant::now(), setup.resync),
            pins: PinState::Current,
            listener,
            stop_condition,
            started_at: jiff::Timestamp::now(),
            metrics,
            summary: SummaryPublication::default(),
            open_inquiries: Vec::new(),
            channels,
            tasks: TaskSet::default(),
            fatal: None,
        }
    }

    /// Takes care of what is left of sources that this process has served, and that nobody is to
    /// serve any more.
    #[must_use]
    pub(crate) fn with_retired_sources(mut self, sources: &BTreeSet<Arc<str>>) -> Self {
        for source in sources {
            self.engine.retire(inventory_id_of(&self.namespace, source).into());
        }
        self.retired_sources.clone_from(sources);
        self
    }

    /// Goes on counting where another loop of this process has stopped.
    #[must_use]
    pub(crate) fn with_metrics(self, metrics: Metrics) -> Self {
        Self { queue: self.queue.with_metrics(metrics.queue_metrics().clone()), metrics, ..self }
    }

    /// Runs the loop. A stop ends it when the writes that are on their way have been answered, or
    /// soon after.
    ///
    /// Fails when the kubeconfig names another cluster than the one it began on, and when a part of
    /// the program ended that must not.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<PassResult, FatalError> {
        let cluster = self.executor.cluster.clone();
        let heartbeat = cluster.heartbeats().expect_part("the loop", MAX_TURN_DURATION);
        self.tasks.keep(
            "the clock",
            tick(cluster.heartbeats().expect_part("the thread of all tasks", MAX_TURN_DURATION)),
        );
        let mut wrong_cluster = std::pin::pin!(cluster.wait_for_other_cluster());
        self.clear_retired();
        loop {
            if stop.is_cancelled() {
                self.timers.stop.get_or_insert_with(|| Instant::now() + STOP_GRACE_PERIOD);
                self.answer_inquiries();
            } else {
                self.turn();
            }
            if let Some(ending) = self.find_pass_ending(&stop) {
                heartbeat.record(STOP_GRACE_PERIOD + MAX_TURN_DURATION);
                // Without an answer claims count until they have long rested.
                let _ = tokio::time::timeout(STOP_GRACE_PERIOD, self.leave_records(ending)).await;
                return Ok(self.pass_result(ending));
            }
            // Once stopped, only the answers of what was begun are waited for.
            let stopped = stop.is_cancelled();
            let wake = self.timers.stop.unwrap_or_else(|| self.wake());
            heartbeat.record(wake.saturating_duration_since(Instant::now()) + MAX_TURN_DURATION);
            let (goes_on, mut is_event) = (self.inventory_rotation.is_pending(), true);
            tokio::select! {
                biased;
                error = &mut wrong_cluster => return Err(FatalError::WrongCluster(error)),
                fatal = self.tasks.first_failure() => return Err(fatal),
                Some(event) = self.channels.from_tasks.recv() => self.handle_event(event),
                Some(event) = self.channels.from_informers.recv() => self.handle_informer_event(event),
                Some(event) = self.channels.from_scalers.recv() => self.handle_scaler_event(event),
                Some(event) = self.channels.from_inventories.recv() => self.handle_inventory_event(event),
                Some(event) = self.channels.from_orders.recv() => self.handle_orders_event(event),
                Some(event) = self.channels.from_pods.recv() => self.handle_pods_event(event),
                Some(event) = self.nodes.events.recv() => self.handle_node_event(event),
                Some(event) = self.channels.from_data.recv() => self.handle_data_event(event),
                Some(question) = self.channels.asked.recv() => self.open_inquiries.push(question),
                () = stop.cancelled(), if !stopped => {}
                () = tokio::time::sleep_until(wake.into()) => is_event = false,
            }
            heartbeat.record(MAX_TURN_DURATION);
            if self.drain_events() > 0 || is_event || !goes_on {
                self.inventory_rotation.note_change();
            }
            if let Some(fatal) = self.fatal.take() {
                return Err(fatal);
            }
        }
    }

    /// Takes what else has happened, so that a burst is decided on once. Returns the number of
    /// events.
    fn drain_events(&mut self) -> usize {
        for number in 0..CHANNEL_CAPACITY {
            if let Ok(event) = self.channels.from_tasks.try_recv() {
                self.handle_event(event);
            } else if let Ok(event) = self.channels.from_informers.try_recv() {
                self.handle_informer_event(event);
            } else if let Ok(event) = self.channels.from_scalers.try_recv() {
                self.handle_scaler_event(event);
            } else if let Ok(event) = self.channels.from_inventories.try_recv() {
                self.handle_inventory_event(event);
            } else if let Ok(event) = self.channels.from_orders.try_recv() {
                self.handle_orders_event(event);
            } else if let Ok(event) = self.channels.from_pods.try_recv() {
                self.handle_pods_event(event);
            } else if let Ok(event) = self.nodes.events.try_recv() {
                self.handle_node_event(event);
            } else if let Ok(event) = self.channels.from_data.try_recv() {
                self.handle_data_event(event);
            } else if let Ok(question) = self.channels.asked.try_recv() {
                self.open_inquiries.push(question);
            } else {
                return number;
            }
        }
        CHANNEL_CAPACITY
    }

    fn find_pass_ending(&mut self, stop: &CancellationToken) -> Option<PassEnding> {
        if stop.is_cancelled() {
            let over = self.timers.stop.is_some_and(|stop| stop <= Instant::now());
            let answered = self.writes == 0 && Arc::strong_count(&self.in_flight) == 1;
            return (answered || over).then_some(PassEnding::Stopped);
        }
        let (StopCondition::Settled(deadline) | StopCondition::Healthy(deadline)) = self.stop_condition
        else {
            return None;
        };
        if Instant::now() >= deadline {
            return Some(PassEnding::TimedOut);
        }
        // Another request would be denied again.
        if self.watched.discovery_error().is_some_and(|error| error.class() == ErrorClass::Forbidden) {
            return Some(PassEnding::DiscoveryFailed);
        }
        let depth = self.queue.depth();
        let started = self.attempted_sources.len() == self.locations.len() && self.watched.is_known();
        let quiet = depth.ready == 0
            && depth.processing == 0
            && self.inventories.iter().all(|store| store.call == CallState::None)
            && !self.inventory_rotation.is_pending()
            && self.orders.iter().all(OrderStore::is_quiet)
            && !self.watched.is_asking()
            && self.ledger_store.is_quiet()
            && self.configs.is_quiet()
            && self.folder_searches.is_quiet()
            && !self.engine.is_reading_data();
        let healthy = !matches!(self.stop_condition, StopCondition::Healthy(_))
            || (self.report_unhealthy() && !self.engine.is_anything_claimed());
        (started && quiet && healthy && !self.is_listing() && !self.has_transient_reasons())
            .then_some(PassEnding::Settled)
    }

    /// Returns whether a kind of an inventory is still being listed: what is no longer wanted is
    /// not known yet.
    fn is_listing(&self) -> bool {
        self.engine
            .source_ids()
            .any(|source| self.engine.listed_kinds(source).any(|kind| self.engine.is_syncing(source, kind)))
    }

    fn wake(&mut self) -> Instant {
        let mut wake = self.timers.resync.min(self.timers.audit);
        if let StopCondition::Settled(deadline) | StopCondition::Healthy(deadline) = self.stop_condition {
            wake = wake.min(deadline);
        }
        if let Some(stop) = self.timers.stop {
            return stop;
        }
        if self.timers.at_once || self.inventory_rotation.is_pending() {
            return Instant::now();
        }
        let rollouts = self.engine.next_due(Instant::now());
        let others = [
            self.queue.next_due(),
            self.watched.next_due(),
            self.timers.confirmation,
            rollouts,
            self.ledger_store.next_wake(),
            self.configs.due,
            self.summary.due,
        ];
        others.into_iter().flatten().fold(wake, Instant::min)
    }

    /// Runs one turn of the loop: timers, inventories, and keys until the window of writes and dry
    /// runs is full.
    fn turn(&mut self) {
        let now = Instant::now();
        let resynced = self.run_due_work(now);
        self.engine.set_clock(now, jiff::Timestamp::now());
        self.carry_out_orders();
        self.engine.advance(now);
        self.record_rollout_events(now);
        self.ask_about_failures();
        self.delete_stuck_pods(now);
        self.evict_due(now);
        self.rescale_due(now);
        self.engine.process_changes();
        self.inventory_rotation.begin_turn();
        // Before the inventories, so that nothing is tidied while there is something to write.
        self.enqueue();
        self.sync_inventories();
        if self.stop_condition == StopCondition::Shutdown {
            self.log_unlisted();
        }
        self.request_contents();
        self.search_folders();
        let mut batch = LookupBatch::default();
        // Failed objects have slots of their own, so that a webhook which never answers delays
        // nobody else.
        self.timers.at_once = false;
        let mut decided = 0;
        while self.writes - self.retries.len() < self.write_window.min(self.concurrency) {
            if decided == MAX_DECISIONS_PER_TURN {
                self.timers.at_once = true;
                break;
            }
            let Some(id) = self.queue.take(now) else { break };
            decided += 1;
            self.process_key(id, now, &mut batch);
            // A decision may be what others wait for, and nothing else may happen for a long time.
            self.enqueue();
        }
        self.send_batch(batch);
        self.read_peers();
        self.request_observations();
        self.publish_summary(now);
        if decided > 0 {
            self.inventory_rotation.note_late_change();
        }
        self.sync_inventories();
        self.sync_orders();
        self.sync_rollout_ledger();
        self.follow_pods();
        self.follow_nodes();
        self.sync_configs();
        self.pin();
        if let Some(objects) = resynced {
            let ms = format_args!("{:.1}", now.elapsed().as_secs_f64() * 1e3);
            tracing::debug!(objects, ms, "looked at everything");
        }
        let confirm = self.engine.source_ids().any(|source| self.is_waiting_for_person(source));
        match (confirm, self.timers.confirmation) {
            (true, None) => self.timers.confirmation = Some(now + CONFIRMATION_INTERVAL),
            (false, _) => self.timers.confirmation = None,
            (true, Some(_)) => {}
        }
        self.answer_inquiries();
    }

    fn enqueue(&mut self) {
        for id in self.engine.take_dirty() {
            self.queue.add(id);
        }
    }

    fn is_waiting_for_person(&self, source: SourceId) -> bool {
        self.stop_condition == StopCondition::Shutdown
            && self.engine.prune_decisions(source).any(|(_, j)| matches!(j, PruneDecision::Confirm(_)))
    }

    /// Does what is due. Returns how many objects a resync marked.
    fn run_due_work(&mut self, now: Instant) -> Option<usize> {
        let mut resynced = None;
        if self.watched.next_due().is_some_and(|due| due <= now) {
            self.watched.note_discovery_start();
            let cluster = self.executor.cluster.clone();
            self.spawn(async move { LoopEvent::Kinds(cluster.discover().await) });
        }
        if self.timers.resync <= now {
            self.timers.resync = now + self.resync.mul_f64(0.9 + 0.2 * super::random_fraction());
            resynced = Some(self.engine.mark_all());
        }
        if self.timers.audit <= now {
            self.timers.audit = now + AUDIT_INTERVAL.min(self.resync * 2);
            self.watched.relist_all();
            self.reread_configs();
            self.reread_inventories();
            self.reread_orders();
        }
        if self.timers.confirmation.is_some_and(|due| due <= now) {
            self.timers.confirmation = None;
            self.reread_inventories();
        }
        resynced
    }
}

/// Shows that tasks get their turn.
async fn tick(heartbeat: Heartbeat) {
    loop {
        heartbeat.record(HEARTBEAT_INTERVAL + MAX_TURN_DURATION);
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}

/// Makes a process regard the other sources of the cluster. A daemon answers their requests too.
fn set_peer_rules(engine: &mut Engine, namespace: &str, stop_condition: StopCondition) {
    engine.require_peer_consent();
    engine.set_inventory_namespace(namespace);
    if stop_condition == StopCondition::Shutdown {
        engine.answer_observation_requests();
    }
}
