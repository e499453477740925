//! Events of the loop: results of tasks, changes that informers report, and queries.
//!
//! `reconciler/event_handlers.rs` handles each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::reconciler::LoopQuery;
use crate::cluster::{
    Autoscaler, ConfigKey, DataEvent, InformerEvent, InventoryObject, KindTable, LedgerObject, OrdersObject,
    PodsEvent,
};
use crate::engine::{
    Action, ActionResult, ContentRef, DirectView, EvictionOutcome, LiveObject, MovedObjects, NodeFacts,
    OlderRevision, PeerSource, PodToEvict, RepositoryIdentity, ResourceVersion, ScaleRequest, ScaleResult,
    SharedDesiredObject, SourceId, SourceReading, VerifiedOwnership,
};
use crate::object::{GroupKind, ObjectId, Revision};
use crate::report::Outcome;

/// An event that wakes the loop. All come by one channel, in the order in which they were sent.
/// `reconciler/loop_channel.rs` says what else wakes the loop, and in which order.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few are alive at once, and the large one is the frequent one")]
pub(super) enum LoopEvent {
    /// An informer reports a change of a live object.
    Informer(InformerEvent<LiveObject>),
    /// The informer of autoscalers reports a change.
    Autoscaler(InformerEvent<Autoscaler>),
    /// The version of an inventory has changed.
    InventoryVersion(InformerEvent<ResourceVersion>),
    /// The version of an orders object has changed.
    OrdersVersion(InformerEvent<ResourceVersion>),
    /// The pods of a workload have changed.
    Pods(PodsEvent),
    /// The watch of this number reports a change of a node.
    Node(u64, InformerEvent<NodeFacts>),
    /// Data that pods use have changed.
    Data(DataEvent),
    /// Somebody asks for the status.
    LoopQuery(LoopQuery),
    /// A source was read.
    SourceRead(SourceId, SourceReading, BTreeSet<GroupKind>),
    /// A source could not be read.
    Unreadable(SourceId, Arc<str>),
    /// A revision of a source whose commits must be signed was accepted.
    RevisionAccepted(SourceId, Revision),
    /// A source turned out to be at another location than was known.
    Location(SourceId, String),
    /// The repository that a source follows.
    Repository(SourceId, RepositoryIdentity),
    /// The renders of a source depend on the versions that the cluster serves.
    VersionsUsed,
    /// A source was checked after the reading with this observation number, and its changes were
    /// reported.
    SourceChecked(SourceId, u64),
    /// Older contents were looked up.
    ContentsRead(Vec<(ObjectId, ContentRef, Option<SharedDesiredObject>)>),
    /// The older revision of an undo was looked up.
    UndoTargetRead(SourceId, Arc<str>, Result<OlderRevision, String>),
    /// Other folders were searched for what a source has dropped.
    FoldersSearched(SourceId, MovedObjects),
    /// Discovery answered.
    Kinds(Result<KindTable, crate::cluster::ClusterError>),
    /// The kinds that the server certainly does not have.
    KindsAbsent(Result<BTreeSet<GroupKind>, crate::cluster::ClusterError>),
    /// The statements of the cluster's other sources were read.
    Peers(Result<Vec<PeerSource>, crate::cluster::ClusterError>),
    /// The inventory of a source was read or written.
    Inventory(SourceId, Result<Option<InventoryObject>, crate::cluster::ClusterError>),
    /// The orders object of a source was read or written.
    Orders(SourceId, Result<Option<OrdersObject>, crate::cluster::ClusterError>),
    /// The rollout ledger was read or written.
    Ledger(Result<Option<LedgerObject>, crate::cluster::ClusterError>),
    /// The key for hashes of data was read or made.
    ConfigKey(Result<Option<ConfigKey>, crate::cluster::ClusterError>),
    /// The workload of another daemon's claim, as it is now.
    ForeignWorkload(ObjectId, Result<Option<Box<LiveObject>>, crate::cluster::ClusterError>),
    /// The label selector of a workload's pods; none where it cannot be known.
    Selector(ObjectId, Option<String>),
    /// The cluster's warnings about a rollout that failed.
    FailureEvents(ObjectId, Vec<String>),
    /// A stuck pod that blocked a StatefulSet was deleted, or was not.
    StuckPodDeleted(ObjectId),
    /// A pod that was to go for its step was evicted, or was not.
    Evicted(PodToEvict, EvictionOutcome),
    /// A ReplicaSet was scaled as a step asks, or was not.
    Rescaled(ScaleRequest, ScaleResult),
    /// Objects were looked up at the API server.
    LiveObjectsRead(BTreeMap<ObjectId, Result<DirectView, LookupFailure>>),
    /// Contents were compared.
    Compared(Vec<(ObjectId, Result<VerifiedOwnership, LookupFailure>)>),
    /// An action was carried out, or not.
    ActionDone(ObjectId, Action, ActionResult, Option<Outcome>),
}

/// The reason for a question without an answer.
#[derive(Clone, Debug)]
pub(super) struct LookupFailure(pub Arc<str>);
