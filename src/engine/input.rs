//! The input of the engine: each fact that the loop, a plan or a test hands over.
//!
//! [`Engine::handle`] takes a fact, and marks the keys of the objects that it is about. The effects
//! that follow are asked for after each batch: [`Engine::poll`] gives these keys too, and
//! [`Engine::decide`] decides about one of them.
//!
//! **Invariant:** no code outside of `engine` changes a fact in another way. Sources and informer
//! groups alone are declared before: they get their numbers then.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::state::Engine;
use crate::engine::{
    Action, ActionResult, ConfigData, ContentRef, DirectView, EvictionOutcome, HashKey, InformerGroupId,
    Inventory, KindAvailability, KindState, LiveObject, MovedObjects, NodeChange, OlderRevision, Order,
    PeerSource, PodToEvict, ReadState, RepositoryIdentity, RolloutLedger, ScaleRequest, ScaleResult,
    SharedDesiredObject, SourceId, SourceReading, SourceService, SourceStatement, UndoRequest,
    VerifiedOwnership, WatchScope, WorkloadPods,
};
use crate::manifest::KindScopes;
use crate::object::{GroupKind, Gvk, ObjectId};

/// One fact.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Input {
    /// The process that claims, and its clock.
    Process(ProcessIdentity),
    /// The rules by which this process regards the other sources of the cluster.
    PeerRules(PeerRules),
    /// The time of day.
    Clock(Timestamp),
    /// Nobody is to serve the source of this inventory any more.
    Retired(Arc<str>),

    /// A source was read.
    Read { source: SourceId, reading: SourceReading },
    /// A source cannot be read.
    Unreadable { source: SourceId, why: Arc<str> },
    /// A source was checked after the reading with this observation number, and its changes were
    /// read.
    Checked { source: SourceId, reading: u64 },
    /// The repository that a source follows.
    Repository { source: SourceId, repository: RepositoryIdentity },
    /// Other folders were searched for what a source has dropped.
    Searched { source: SourceId, moved: MovedObjects },
    /// The content of an object in an older revision; none where it cannot be had.
    OlderContent { id: ObjectId, release: ContentRef, content: Option<SharedDesiredObject> },
    /// The inventory of a source was read.
    Inventory { source: SourceId, inventory: Inventory },
    /// The inventory of a source cannot be read without a key.
    InventoryLocked { source: SourceId },
    /// The statement of a source from before this process served it.
    Statement { source: SourceId, statement: SourceStatement },
    /// The orders object of a source was read.
    Ordered { source: SourceId, orders: Vec<Order> },
    /// The older revision of an undo was looked up; the reason in words where there is none.
    UndoTarget { undo: Box<UndoRequest>, past: Result<OlderRevision, String> },
    /// The statements of the cluster's sources were read.
    Peers(Vec<PeerSource>),
    /// The statements of the cluster's sources cannot be read, and a plan goes on without.
    PeersUnreadable,
    /// The names of the cluster's sources, by the ids of their inventories.
    SourceNames(BTreeMap<Arc<str>, Arc<str>>),
    /// Another source may ask for an observation.
    ObservationExpected,

    /// Where the objects of each kind live.
    Scopes(KindScopes),
    /// The server was asked whether it has a kind.
    Discovered { gvk: Gvk, availability: KindAvailability },
    /// The server does not have a kind, whoever watches for it.
    KindAbsent(GroupKind),
    /// The state of an informer.
    InformerState { listing: WatchScope, state: KindState },
    /// The objects that autoscalers target.
    Autoscaled(HashSet<ObjectId>),

    /// An informer begins its list.
    ListBegun(WatchScope),
    /// An informer shows an object.
    Seen { informer_group: InformerGroupId, id: ObjectId, live: LiveObject },
    /// An informer no longer shows an object.
    Gone { informer_group: InformerGroupId, id: ObjectId },
    /// An informer has ended its list.
    Listed(WatchScope),
    /// An object was looked up at the API server.
    LookedUp { id: ObjectId, view: DirectView },
    /// A content was compared with the fields that are ours.
    Compared { id: ObjectId, verified: VerifiedOwnership },
    /// An object is to be decided about again.
    Marked(ObjectId),
    /// All objects are to be decided about again.
    Resynced,
    /// Nothing is known of an object any more.
    Forgotten(ObjectId),
    /// A write is on its way.
    Dispatched { id: ObjectId, action: Action },
    /// A write or a dry run was answered.
    Answered { id: ObjectId, action: Box<Action>, result: ActionResult },

    /// The rollout ledger was read or written.
    Ledger(RolloutLedger),
    /// The rollout ledger cannot be read before a person mends it.
    LedgerUnreadable(Arc<str>),
    /// The rollout ledger cannot be read without a key.
    LedgerLocked,
    /// The rollout ledger is being read.
    LedgerRequested,
    /// This rollout ledger is being written.
    LedgerSent(RolloutLedger),
    /// A call about the rollout ledger failed: nobody knows what it says of the queue.
    LedgerFailed,
    /// The reason for unreadable claims, with what mends it; none where all can be read.
    UnreadableClaims(Option<Arc<str>>),
    /// The workload of another daemon's claim was looked up; none where there is none.
    ForeignWorkload { id: ObjectId, live: Option<Box<LiveObject>> },
    /// The workload of another daemon's claim may not be read.
    HiddenWorkload { id: ObjectId, why: Arc<str> },
    /// The pods of a workload were observed.
    Pods { id: ObjectId, pods: WorkloadPods },
    /// The watch of the nodes reports something.
    Nodes(NodeChange),
    /// A pod was evicted for its step, or was not.
    Evicted { pod: PodToEvict, outcome: EvictionOutcome },
    /// A ReplicaSet was scaled, or was not.
    Scaled { request: ScaleRequest, result: ScaleResult },
    /// The Events about a rollout that failed were read.
    FailureEvents { id: ObjectId, events: Vec<String> },

    /// Something has to be sealed or opened by a key.
    SealKeyNeeded,
    /// The key for seals and for hashes of data was read.
    Key(ReadState<HashKey>),
    /// The data of an object that is not from git were read; none where there is no such object.
    ConfigData { id: ObjectId, data: ReadState<Option<ConfigData>> },
    /// The data of an object are not followed any more.
    ConfigUnfollowed(ObjectId),
}

/// The names of a process in its claims. Without a holder, all processes are one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    /// The name that no other process has.
    pub holder: Arc<str>,
    /// The mark of this host's clock.
    pub clock_mark: Arc<str>,
}

/// The regard of a process for the other sources of the cluster: nothing is deleted or taken over
/// before they have answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerRules {
    /// The namespace of the inventories, for commands that people type.
    pub inventory_namespace: Arc<str>,
    /// Indicates whether it answers the observation requests of others.
    pub service: SourceService,
}

impl Engine {
    /// Does the same as [`Engine::handle`], as a part of that call.
    pub(super) fn take_fact(&mut self, input: Input, now: Instant) {
        match input {
            Input::Process(identity) => self.set_identity(&identity),
            Input::PeerRules(rules) => self.set_peer_rules(&rules),
            Input::Clock(wall) => self.set_clock(now, wall),
            Input::Retired(inventory_id) => self.retire(inventory_id),
            Input::Read { source, reading } => self.set_reading(source, reading),
            Input::Unreadable { source, why } => self.set_unreadable(source, why),
            Input::Checked { source, reading } => self.record_check(source, reading),
            Input::Repository { source, repository } => self.set_repository(source, repository),
            Input::Searched { source, moved } => self.set_moved_objects(source, moved),
            Input::OlderContent { id, release, content } => self.record_older_content(&id, &release, content),
            Input::Inventory { source, inventory } => self.set_inventory(source, inventory),
            Input::InventoryLocked { source } => self.lock_inventory(source),
            Input::Statement { source, statement } => self.restore_statement(source, &statement),
            Input::Ordered { source, orders } => self.take_orders(source, orders),
            Input::UndoTarget { undo, past } => self.undo_target_read(&undo, past),
            Input::Peers(peers) => self.handover.sources_behind = self.set_peers(peers, now),
            Input::PeersUnreadable => self.ignore_peers(),
            Input::SourceNames(names) => self.set_source_names(names),
            Input::ObservationExpected => self.expect_observation_request(),
            Input::Scopes(scopes) => self.set_scopes(scopes),
            Input::Discovered { gvk, availability } => self.set_kind_availability(gvk, availability),
            Input::KindAbsent(kind) => self.set_kind_absent(&kind),
            Input::InformerState { listing, state } => self.set_informer_state(listing, state),
            Input::Autoscaled(targets) => self.set_autoscaled(targets),
            Input::ListBegun(listing) => self.list_started(listing),
            Input::Seen { informer_group, id, live } => self.observe_object_by(informer_group, &id, live),
            Input::Gone { informer_group, id } => self.observe_absence_by(informer_group, &id),
            Input::Listed(listing) => self.list_complete(listing),
            Input::LookedUp { id, view } => self.record_lookup_at(&id, view, now),
            Input::Compared { id, verified } => self.record_coverage(&id, verified),
            Input::Marked(id) => self.mark_dirty(&id),
            Input::Resynced => self.mark_all(),
            Input::Forgotten(id) => self.drop_entry(&id),
            Input::Dispatched { id, action } => self.note_dispatch(&id, &action),
            Input::Answered { id, action, result } => self.record_result(&id, &action, result, now),
            Input::Ledger(ledger) => self.set_ledger(ledger),
            Input::LedgerUnreadable(why) => self.set_ledger_unreadable(&why),
            Input::LedgerLocked => self.lock_ledger(),
            Input::LedgerRequested => self.note_ledger_call(),
            Input::LedgerSent(next) => self.note_ledger_write(&next),
            Input::LedgerFailed => self.note_publication_failure(),
            Input::UnreadableClaims(why) => self.explain_unread(why),
            Input::ForeignWorkload { id, live } => self.observe_foreign_workload(&id, live.as_deref(), now),
            Input::HiddenWorkload { id, why } => self.record_hidden_workload(id, why),
            Input::Pods { id, pods } => self.record_pods(&id, pods),
            Input::Nodes(change) => self.nodes(change),
            Input::Evicted { pod, outcome } => self.record_eviction(&pod, &outcome, now),
            Input::Scaled { request, result } => self.record_scale(&request, &result, now),
            Input::FailureEvents { id, events } => self.propose_rollout_rejection(&id, &events),
            Input::SealKeyNeeded => self.request_seal_key(),
            Input::Key(key) => self.set_key(key),
            Input::ConfigData { id, data } => self.set_config_data(&id, data),
            Input::ConfigUnfollowed(id) => self.forget_config(&id),
        }
    }

    fn set_identity(&mut self, identity: &ProcessIdentity) {
        self.set_holder(&identity.holder);
        self.set_clock_mark(&identity.clock_mark);
    }

    fn set_peer_rules(&mut self, rules: &PeerRules) {
        self.require_peer_consent();
        self.set_inventory_namespace(&rules.inventory_namespace);
        if rules.service == SourceService::Daemon {
            self.answer_observation_requests();
        }
    }

    /// Takes the one key over for both of its purposes.
    fn set_key(&mut self, key: ReadState<HashKey>) {
        let key = self.attach_key(key);
        self.set_release_key(key.clone());
        self.set_config_key(key);
    }
}
