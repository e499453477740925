//! Results of spawned tasks, as the loop receives them.
//!
//! `reconciler/event_handlers.rs` handles each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::{ConfigKey, InventoryObject, KindTable, LedgerObject, OrdersObject};
use crate::engine::{
    Action, ActionResult, ContentRef, DirectView, EvictionOutcome, LiveObject, MovedObjects, OlderRevision,
    PeerSource, PodToEvict, RepositoryIdentity, ScaleRequest, ScaleResult, SharedDesiredObject, SourceId,
    SourceReading, VerifiedCoverage,
};
use crate::object::{GroupKind, ObjectId, Revision};
use crate::report::Outcome;

/// The result of a task. Informers, pods, nodes, data, orders, inquiries and timers wake the loop
/// by channels of their own.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few are alive at once, and the large one is the frequent one")]
pub(super) enum LoopEvent {
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
    /// A source was checked after the reading of this number, and all that is new was reported.
    SourceChecked(SourceId, u64),
    /// Older contents were looked up.
    ContentsRead(Vec<(ObjectId, ContentRef, Option<SharedDesiredObject>)>),
    /// The older revision of an undo was looked up.
    UndoTargetRead(Arc<str>, Result<OlderRevision, String>),
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
    Compared(Vec<(ObjectId, Result<VerifiedCoverage, LookupFailure>)>),
    /// An action was carried out, or not.
    ActionDone(ObjectId, Action, ActionResult, Option<Outcome>),
}

/// The reason for a question without an answer.
#[derive(Clone, Debug)]
pub(super) struct LookupFailure(pub Arc<str>);
