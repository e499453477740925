//! The state of the loop besides the engine and the queue, by what it is about.
//!
//! **Invariant:** holds what the loop must remember to carry decisions out and to report them. No
//! decision about an object follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::super::contents::{ContentOrigin, SourceBytes};
use super::super::informer_groups::InformerGroups;
use super::super::inventory::{CallState, InventoryStore};
use super::super::kinds::KindWatches;
use super::super::loop_event::LoopEvent;
use super::super::manifest_facts::ReadSettings;
use super::super::parse_ahead::EarlyParse;
use super::super::parsed_manifests::ParsedManifests;
use super::super::setup::{SourceFiles, SourceSetup};
use super::super::source_task::SourceTaskRequest;
use super::super::trace_writer::TraceWriter;
use super::configs::ConfigDataWatches;
use super::daemon_sets::NodeWatch;
use super::discovery::PinState;
use super::event_history::EventHistory;
use super::folder_searches::FolderSearches;
use super::inventory_round_robin::InventoryRoundRobin;
use super::loop_queries::LoopQuery;
use super::orders_objects::OrderStore;
use super::pods::PodWatches;
use super::rollout_ledger::RolloutLedgerStore;
use super::summary::SummaryPublication;
use crate::cluster::inventory_id_of;
use crate::engine::{Engine, Reason, SourceId};
use crate::object::{ContentHash, GroupKind, ObjectId};
use crate::report::{Metrics, ObjectEvent, Outcome};

/// The interval at which a fresh list of every kind audits the watches, or every second resync
/// where that is sooner. A lost event is found within it.
const RELIST_INTERVAL: Duration = Duration::from_mins(10);
/// The shortest wait before a call about a record of rhumb is tried again.
pub(super) const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The same where a person has to change something first.
pub(super) const PERSON_RETRY_DELAY: Duration = Duration::from_secs(15);

/// The last report about each object.
#[derive(Default)]
pub(super) struct ObjectReports {
    /// The reason for each object that is not, or not yet, in its desired state.
    pub(super) reasons: BTreeMap<ObjectId, Reason>,
    /// The last outcome of each object.
    pub(super) outcomes: BTreeMap<ObjectId, Outcome>,
    /// The health of each unhealthy object, as last logged.
    pub(super) unhealthy: BTreeMap<ObjectId, String>,
    /// The reason for each refused object as last logged, with the content: each try would log it
    /// anew.
    pub(super) logged_refusals: BTreeMap<ObjectId, (Option<ContentHash>, String)>,
}

/// The watches over the cluster.
pub(super) struct ClusterWatches {
    pub(super) kinds: KindWatches,
    pub(super) pods: PodWatches,
    pub(super) nodes: NodeWatch,
    pub(super) data: ConfigDataWatches,
}

impl ClusterWatches {
    /// Creates the watches, of nothing yet. All report to the loop.
    pub(super) fn new(informer_groups: InformerGroups, events: &mpsc::Sender<LoopEvent>) -> Self {
        Self {
            kinds: KindWatches::new(informer_groups, events.clone()),
            pods: PodWatches::new(events.clone()),
            nodes: NodeWatch::default(),
            data: ConfigDataWatches::new(events.clone()),
        }
    }
}

/// A source whose task begins once discovery has answered.
pub(super) struct PendingSource {
    pub(super) number: SourceId,
    pub(super) files: SourceFiles,
    pub(super) read_settings: ReadSettings,
    /// The files that are parsed meanwhile, where they were read from a folder.
    pub(super) early_parse: Option<EarlyParse>,
}

/// The tasks that read sources, and what they were asked for.
#[derive(Default)]
pub(super) struct SourceTasks {
    pub(super) locations: Vec<String>,
    /// The requests to the task of each source; none where it has not begun, or reads only once.
    pub(super) requests: Vec<Option<mpsc::Sender<SourceTaskRequest>>>,
    /// Sources whose task begins once discovery has answered.
    pub(super) pending: Vec<PendingSource>,
    /// Kinds of which sources have objects that were read without a known scope.
    pub(super) unscoped: BTreeSet<(SourceId, GroupKind)>,
    /// Sources that were read, or could not be, at least once.
    pub(super) attempted: BTreeSet<SourceId>,
    /// The sources that are to be observed, each after a number.
    pub(super) due_observations: BTreeMap<SourceId, u64>,
    /// Sources that this process has served, and that nobody is to serve any more.
    pub(super) retired: BTreeSet<Arc<str>>,
    /// Objects whose older content is being read.
    pub(super) reading_contents: BTreeSet<ObjectId>,
    /// Orders whose rollback is being looked up.
    pub(super) undoing: BTreeSet<(SourceId, Arc<str>)>,
    pub(super) folder_searches: FolderSearches,
    pub(super) pins: PinState,
}

impl SourceTasks {
    /// Adds all sources to the engine. Also returns where the contents of each come from.
    pub(super) fn of_sources(
        sources: Vec<SourceSetup>,
        namespace: &str,
        parsed: &ParsedManifests,
        engine: &mut Engine,
        informer_groups: &mut InformerGroups,
    ) -> (Self, Vec<ContentOrigin>) {
        let (mut tasks, mut content_origins) = (Self::default(), Vec::new());
        for mut source in sources {
            let inventory_id: Arc<str> = inventory_id_of(namespace, &source.name).into();
            let mut declared = source.declaration(&inventory_id, namespace);
            declared.informer_group = informer_groups.watch_for(&source, namespace, &inventory_id, engine);
            let number = engine.add_source(declared);
            tasks.folder_searches.add(number, source.folder_search.take());
            content_origins.push(ContentOrigin {
                inventory_id: inventory_id.clone(),
                namespace: source.namespace.as_str().into(),
                bytes: SourceBytes::of(&source.files),
                decrypter: source.decrypter.clone(),
            });
            let read_settings = source.read_settings(number, &inventory_id, namespace);
            let read_settings = ReadSettings { parsed: parsed.clone(), ..read_settings };
            tasks.locations.push(source.location);
            tasks.requests.push(None);
            let early_parse = EarlyParse::start(&source.files, &source.decrypter);
            tasks.pending.push(PendingSource { number, files: source.files, read_settings, early_parse });
        }
        (tasks, content_origins)
    }
}

/// The records of rhumb in its own namespace: inventories, orders, the rollout ledger, and the
/// statements of other sources.
pub(super) struct OwnRecords {
    pub(super) namespace: String,
    pub(super) inventories: Vec<InventoryStore>,
    pub(super) round_robin: InventoryRoundRobin,
    pub(super) orders: Vec<OrderStore>,
    pub(super) ledger: RolloutLedgerStore,
    /// Indicates whether what the other sources say is being read.
    pub(super) peers: CallState,
    /// The statements of other sources that cannot be read, as last logged.
    pub(super) unreadable_peers: Vec<String>,
}

impl OwnRecords {
    /// Returns the records of so many sources, of which none has been read.
    pub(super) fn new(namespace: String, sources: usize) -> Self {
        Self {
            namespace,
            inventories: (0..sources).map(|_| InventoryStore::default()).collect(),
            round_robin: InventoryRoundRobin::of(sources),
            orders: (0..sources).map(|_| OrderStore::default()).collect(),
            ledger: RolloutLedgerStore::default(),
            peers: CallState::None,
            unreadable_peers: Vec::new(),
        }
    }
}

/// The reports about the work of the loop as a whole.
pub(super) struct LoopTelemetry {
    pub(super) listener: mpsc::UnboundedSender<ObjectEvent>,
    pub(super) metrics: Metrics,
    pub(super) history: EventHistory,
    pub(super) summary: SummaryPublication,
    pub(super) started_at: jiff::Timestamp,
    /// Questions that are answered after the turn: what came with them is decided on first.
    pub(super) open_queries: Vec<LoopQuery>,
    /// The trace of the engine, where one is written.
    pub(super) trace: Option<TraceWriter>,
}

/// The times at which the loop acts without an event.
pub(super) struct LoopTimers {
    /// The interval between resyncs, before some chance is added.
    pub(super) interval: Duration,
    pub(super) resync: Instant,
    pub(super) audit: Instant,
    pub(super) confirmation: Option<Instant>,
    /// The time at which a stop ends the loop, whatever is in flight.
    pub(super) stop: Option<Instant>,
    /// Indicates whether the last turn ended before all was decided and compared.
    pub(super) at_once: bool,
}

impl LoopTimers {
    pub(super) fn new(now: Instant, interval: Duration) -> Self {
        Self {
            interval,
            resync: now + interval,
            audit: now + audit_interval(interval),
            confirmation: None,
            stop: None,
            at_once: false,
        }
    }
}

/// Returns the interval between audits where resyncs have this one.
pub(super) fn audit_interval(resync: Duration) -> Duration {
    RELIST_INTERVAL.min(resync * 2)
}
