//! The event loop: receives events, has the engine decide, and carries its decisions out.
//!
//! One key of the queue is reconciled by `process_object`, as by `Reconcile` in
//! controller-runtime. `reconciler/turn_executor.rs` has its write run in a task, and
//! `finish_action` in `reconciler/action_results.rs` finishes the key.

mod action_results;
mod comparisons;
mod conclusion;
mod configs;
mod daemon_sets;
mod deleted_sources;
mod discovery;
mod event_handlers;
mod event_history;
mod folder_searches;
mod inventories;
mod inventory_round_robin;
mod loop_channel;
mod loop_queries;
mod loop_state;
mod object_events;
mod older_contents;
pub(super) mod opt_out_events;
mod orders;
mod orders_objects;
mod other_daemons;
mod peers;
mod pods;
mod rollout_ledger;
mod scale_balance;
mod summary;
mod turn_executor;
mod unused_inventories;
mod write_window;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::discovery::PinState;
use self::event_history::EventHistory;
use self::loop_channel::{CHANNEL_CAPACITY, LoopChannel, Wakeup};
pub(in crate::daemon) use self::loop_queries::LoopQuery;
pub(crate) use self::loop_queries::{FetchResult, LoopQueries};
use self::loop_state::{
    ClusterWatches, LoopTelemetry, LoopTimers, ObjectReports, OwnRecords, SourceTasks, audit_interval,
};
use self::orders_objects::OrderStore;
use self::summary::SummaryPublication;
use self::turn_executor::{LookupBatch, TurnExecutor};
use self::write_window::WriteWindow;
use super::action_executor::ActionExecutor;
use super::contents::ContentStore;
use super::informer_groups::InformerGroups;
use super::inventory::CallState;
use super::loop_event::LoopEvent;
use super::parsed_manifests::ParsedManifests;
use super::pass_result::{PassEnding, PassResult};
use super::setup::Setup;
use super::tasks::FatalError;
use super::trace_writer::TraceState;
use crate::cluster::inventory_id_of;
use crate::engine::{Engine, Input, PeerRules, PruneDecision, SourceId, SourceService, process_object};
use crate::heartbeat::Heartbeat;
use crate::object::{ErrorClass, ObjectId};
use crate::queue::WorkQueue;
use crate::report::{Metrics, ObjectEvent};

/// The time limit of a stop for the answers to writes in flight. A missing answer does no harm: the
/// next start lists everything.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// The further time of a stop for its last records. Together they stay below the 5 s of the
/// documentation, also where nothing is answered.
const STOP_RECORDS_PERIOD: Duration = Duration::from_secs(1);

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

/// The time for which the loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// A daemon: runs until it is stopped.
    Daemon,
    /// Runs until nothing is left that passes by itself, or the time is over.
    UntilSettled(Instant),
    /// As [`RunMode::UntilSettled`], and all that is wanted is healthy.
    UntilHealthy(Instant),
}

impl RunMode {
    /// Returns whether it is that of a daemon.
    pub(crate) fn is_daemon(self) -> bool {
        self == Self::Daemon
    }

    /// Returns the time at which the loop gives up; none for a daemon.
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::Daemon => None,
            Self::UntilSettled(deadline) | Self::UntilHealthy(deadline) => Some(deadline),
        }
    }
}

/// The loop over one cluster.
pub(crate) struct Reconciler {
    pub(super) engine: Engine,
    pub(super) queue: WorkQueue<ObjectId>,
    objects: ObjectReports,
    executor: ActionExecutor,
    watches: ClusterWatches,
    sources: SourceTasks,
    records: OwnRecords,
    writes: WriteWindow,
    timers: LoopTimers,
    run_mode: RunMode,
    telemetry: LoopTelemetry,
    events: LoopChannel,
    fatal: Option<FatalError>,
}

impl Reconciler {
    /// Builds the loop from its parts. The listener gets each object's events as they happen.
    pub(crate) fn new(setup: Setup, run_mode: RunMode, listener: mpsc::UnboundedSender<ObjectEvent>) -> Self {
        let events = LoopChannel::new(setup.cluster.clone());
        let mut engine = rollout_ledger::create_engine(setup.budget, setup.trace.as_ref());
        set_peer_rules(&mut engine, &setup.namespace, run_mode);
        let mut informer_groups = InformerGroups::new(&setup.cluster);
        let parsed =
            if run_mode.is_daemon() { ParsedManifests::default() } else { ParsedManifests::of_single_pass() };
        let (sources, content_origins) = SourceTasks::of_sources(
            setup.sources,
            &setup.namespace,
            &parsed,
            &mut engine,
            &mut informer_groups,
        );
        let contents = ContentStore::new(content_origins).with_parsed(parsed);
        let queue = WorkQueue::default();
        let telemetry = LoopTelemetry {
            listener,
            metrics: Metrics::new(setup.cluster.call_metrics().clone(), queue.metrics().clone()),
            history: EventHistory::of(sources.locations.len()),
            summary: SummaryPublication::default(),
            started_at: jiff::Timestamp::now(),
            open_queries: Vec::new(),
            trace: setup.trace,
        };
        Self {
            engine,
            queue,
            objects: ObjectReports::default(),
            executor: ActionExecutor { cluster: setup.cluster, contents },
            watches: ClusterWatches::new(informer_groups, &events.sender),
            records: OwnRecords::new(setup.namespace, sources.locations.len()),
            sources,
            writes: WriteWindow::new(setup.concurrency),
            timers: LoopTimers::new(Instant::now(), setup.resync),
            run_mode,
            telemetry,
            events,
            fatal: None,
        }
    }

    /// Takes care of what is left of sources that this process has served, and that nobody is to
    /// serve any more.
    #[must_use]
    pub(crate) fn with_retired_sources(mut self, sources: &BTreeSet<Arc<str>>) -> Self {
        for source in sources {
            let inventory_id = inventory_id_of(&self.records.namespace, source).into();
            self.engine.handle(Input::Retired(inventory_id), Instant::now());
        }
        self.sources.retired.clone_from(sources);
        self
    }

    /// Goes on counting where another loop of this process has stopped.
    #[must_use]
    pub(crate) fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.queue = self.queue.with_metrics(metrics.queue_metrics().clone());
        self.telemetry.metrics = metrics;
        self
    }

    /// Runs the loop. A stop ends it when the writes that are on their way have been answered, or
    /// soon after.
    ///
    /// Fails when the kubeconfig names another cluster than the one it began on, and when a part of
    /// the program ended that must not.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<PassResult, FatalError> {
        let cluster = self.executor.cluster.clone();
        let heartbeat = cluster.heartbeats().expect_part("the loop", MAX_TURN_DURATION);
        self.events.tasks.keep(
            "the clock",
            tick(cluster.heartbeats().expect_part("the thread of all tasks", MAX_TURN_DURATION)),
        );
        self.clear_retired();
        loop {
            if stop.is_cancelled() {
                self.timers.stop.get_or_insert_with(|| Instant::now() + STOP_GRACE_PERIOD);
                self.answer_queries();
            } else {
                self.turn();
            }
            self.write_trace();
            if let Some(ending) = self.find_pass_ending(&stop) {
                heartbeat.record(STOP_GRACE_PERIOD + STOP_RECORDS_PERIOD + MAX_TURN_DURATION);
                let until = match self.timers.stop {
                    Some(stop) => stop + STOP_RECORDS_PERIOD,
                    None => Instant::now() + STOP_GRACE_PERIOD,
                };
                // Without an answer claims count until they have long rested.
                let _ = tokio::time::timeout_at(until.into(), self.leave_records(ending)).await;
                self.write_trace();
                return Ok(self.pass_result(ending));
            }
            self.receive(&stop, &heartbeat).await?;
            self.write_trace();
        }
    }

    /// Hands over what the engine has recorded, where a trace is written.
    fn write_trace(&mut self) {
        if let (Some(chunk), Some(writer)) = (self.engine.take_trace(), &self.telemetry.trace)
            && writer.write(chunk) == TraceState::Ended
        {
            self.engine.end_trace();
            self.telemetry.trace = None;
        }
    }

    /// Waits for what wakes the loop, and takes what else has happened. The loop receives nowhere
    /// else.
    async fn receive(&mut self, stop: &CancellationToken, heartbeat: &Heartbeat) -> Result<(), FatalError> {
        let wake = self.wake();
        heartbeat.record(wake.saturating_duration_since(Instant::now()) + MAX_TURN_DURATION);
        let is_pending = self.records.round_robin.is_pending();
        // Once stopped, only the answers of what was begun are waited for.
        let stop = self.timers.stop.is_none().then_some(stop);
        let wakeup = self.events.next(wake, stop).await?;
        heartbeat.record(MAX_TURN_DURATION);
        let is_due = matches!(wakeup, Wakeup::Deadline);
        if let Wakeup::Event(event) = wakeup {
            self.handle_event(event);
        }
        if self.drain_events() > 0 || !is_due || !is_pending {
            self.records.round_robin.note_change();
        }
        self.fatal.take().map_or(Ok(()), Err)
    }

    /// Takes what else has happened, so that a burst is decided on once. Returns the number of
    /// events.
    fn drain_events(&mut self) -> usize {
        for number in 0..CHANNEL_CAPACITY {
            let Some(event) = self.events.take_ready() else { return number };
            self.handle_event(event);
        }
        CHANNEL_CAPACITY
    }

    fn find_pass_ending(&mut self, stop: &CancellationToken) -> Option<PassEnding> {
        if stop.is_cancelled() {
            let over = self.timers.stop.is_some_and(|stop| stop <= Instant::now());
            return (self.writes.is_answered() || over).then_some(PassEnding::Stopped);
        }
        if Instant::now() >= self.run_mode.deadline()? {
            return Some(PassEnding::TimedOut);
        }
        // Another request would be denied again.
        if self.watches.kinds.discovery_error().is_some_and(|error| error.class() == ErrorClass::Forbidden) {
            return Some(PassEnding::DiscoveryFailed);
        }
        let depth = self.queue.depth();
        let started =
            self.sources.attempted.len() == self.sources.locations.len() && self.watches.kinds.is_known();
        let quiet = depth.ready == 0
            && depth.processing == 0
            && self.records.inventories.iter().all(|store| store.call == CallState::None)
            && !self.records.round_robin.is_pending()
            && self.records.orders.iter().all(OrderStore::is_quiet)
            && !self.watches.kinds.is_asking()
            && self.records.ledger.is_quiet()
            && self.watches.data.is_quiet()
            && self.sources.folder_searches.is_quiet()
            && !self.engine.view().is_reading_data();
        let healthy = !matches!(self.run_mode, RunMode::UntilHealthy(_))
            || (self.log_health_changes() && !self.engine.view().is_anything_claimed());
        (started && quiet && healthy && !self.is_listing() && !self.has_transient_reasons())
            .then_some(PassEnding::Settled)
    }

    /// Returns whether a kind of an inventory is still being listed: what is no longer wanted is
    /// not known yet.
    fn is_listing(&self) -> bool {
        self.engine.view().source_ids().any(|source| {
            self.engine.view().listed_kinds(source).any(|kind| self.engine.view().is_syncing(source, kind))
        })
    }

    fn wake(&mut self) -> Instant {
        let mut wake = self.timers.resync.min(self.timers.audit);
        if let Some(deadline) = self.run_mode.deadline() {
            wake = wake.min(deadline);
        }
        if let Some(stop) = self.timers.stop {
            return stop;
        }
        if self.timers.at_once || self.records.round_robin.is_pending() {
            return Instant::now();
        }
        let now = Instant::now();
        let rollouts = self.engine.view().next_due(now);
        let others = [
            self.queue.next_due(),
            self.watches.kinds.next_due(),
            self.timers.confirmation,
            rollouts,
            self.records.ledger.next_wake(self.engine.view().next_publication()),
            self.watches.data.due,
            self.telemetry.summary.due,
            self.records.inventories.iter().filter_map(|store| store.rest_until(now)).min(),
        ];
        others.into_iter().flatten().fold(wake, Instant::min)
    }

    /// Runs one turn of the loop: timers, inventories, and keys until the window of writes and dry
    /// runs is full.
    fn turn(&mut self) {
        let now = Instant::now();
        let resynced = self.run_due_work(now);
        self.engine.handle(Input::Clock(jiff::Timestamp::now()), now);
        self.carry_out_orders();
        let effects = self.engine.poll(now);
        self.record_rollout_events(effects.rollout_events, now);
        self.ask_about_failures(effects.failures);
        self.delete_stuck_pods(effects.stuck_pods);
        self.evict_due(effects.evictions);
        self.rescale_due(effects.scales);
        self.records.round_robin.begin_turn();
        // Before the inventories, so that nothing is tidied while there is something to write.
        self.enqueue(effects.keys);
        self.sync_inventories();
        if self.run_mode.is_daemon() {
            self.log_unlisted();
        }
        self.request_contents();
        self.search_folders();
        let mut batch = LookupBatch::default();
        self.timers.at_once = false;
        let mut decided = 0;
        while self.writes.has_room() {
            if decided == MAX_DECISIONS_PER_TURN {
                self.timers.at_once = true;
                break;
            }
            let Some(id) = self.queue.take(now) else { break };
            decided += 1;
            process_object(&mut TurnExecutor { reconciler: self, batch: &mut batch }, id, now);
            // A decision may be what others wait for, and nothing else may happen for a long time.
            let keys = self.engine.take_dirty();
            self.enqueue(keys);
        }
        self.send_batch(batch);
        self.read_peers();
        self.request_observations();
        self.publish_summary(now);
        if decided > 0 {
            self.records.round_robin.note_late_change();
        }
        self.sync_inventories();
        self.sync_orders();
        self.sync_rollout_ledger();
        let watches = self.engine.poll_watches();
        self.watch_pods(watches.workloads);
        self.watch_nodes(watches.nodes);
        self.sync_configs(watches.data);
        self.pin();
        if let Some(objects) = resynced {
            let ms = format_args!("{:.1}", now.elapsed().as_secs_f64() * 1e3);
            tracing::debug!(objects, ms, "checked everything");
        }
        let confirm = self.engine.view().source_ids().any(|source| self.is_waiting_for_person(source));
        match (confirm, self.timers.confirmation) {
            (true, None) => self.timers.confirmation = Some(now + CONFIRMATION_INTERVAL),
            (false, _) => self.timers.confirmation = None,
            (true, Some(_)) => {}
        }
        self.answer_queries();
    }

    fn enqueue(&mut self, keys: Vec<ObjectId>) {
        for id in keys {
            self.queue.add(id);
        }
    }

    fn is_waiting_for_person(&self, source: SourceId) -> bool {
        self.run_mode.is_daemon()
            && self.engine.view().prune_decisions(source).any(|(_, j)| matches!(j, PruneDecision::Confirm(_)))
    }

    /// Does what is due. Returns how many objects a resync marked.
    fn run_due_work(&mut self, now: Instant) -> Option<usize> {
        let mut resynced = None;
        if self.watches.kinds.next_due().is_some_and(|due| due <= now) {
            self.watches.kinds.note_discovery_start();
            let cluster = self.executor.cluster.clone();
            let can_be_starting = self.watches.kinds.can_be_starting();
            self.spawn(async move {
                let kinds =
                    if can_be_starting { cluster.discover_first().await } else { cluster.discover().await };
                LoopEvent::Kinds(kinds)
            });
        }
        if self.timers.resync <= now {
            self.timers.resync = now + self.timers.interval.mul_f64(0.9 + 0.2 * super::random_fraction());
            self.engine.handle(Input::Resynced, now);
            resynced = Some(self.engine.view().entries().count());
        }
        if self.timers.audit <= now {
            self.timers.audit = now + audit_interval(self.timers.interval);
            self.watches.kinds.relist_all();
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
fn set_peer_rules(engine: &mut Engine, namespace: &str, run_mode: RunMode) {
    let service = if run_mode.is_daemon() { SourceService::Daemon } else { SourceService::OneShot };
    let rules = PeerRules { inventory_namespace: namespace.into(), service };
    engine.handle(Input::PeerRules(rules), Instant::now());
}
