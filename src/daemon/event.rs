//! Everything that can happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::{BudgetObject, ConfigKey, Kinds, OrdersObject, Parent};
use crate::engine::{
    Action, DuePod, DueScale, Eviction, Live, Looked, Outcome, Past, Peer, Reading, Release, Repository,
    Rescaled, Shared, SourceId, Verified,
};
use crate::object::{GroupKind, ObjectId, Revision};
use crate::report::Told;

/// One thing that happened. The set is closed: what wakes the loop stands here and nowhere else.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few are alive at once, and the large one is the frequent one")]
pub(super) enum Event {
    /// A source was read.
    Read(SourceId, Reading, BTreeSet<GroupKind>),
    /// A source could not be read.
    Unreadable(SourceId, Arc<str>),
    /// A revision of a source whose commits must be signed was accepted.
    Accepted(SourceId, Revision),
    /// A source turned out to be at another place than was known.
    Place(SourceId, String),
    /// Which repository a source follows.
    Repository(SourceId, Repository),
    /// A source was looked at after the reading of this number, and all that is new was told.
    Checked(SourceId, u64),
    /// Older contents were looked up.
    Resolved(Vec<(ObjectId, Release, Option<Shared>)>),
    /// What the way back of an order leads to was looked up.
    LookedBack(Arc<str>, Result<Past, String>),
    /// Discovery answered.
    Kinds(Result<Kinds, crate::cluster::Error>),
    /// Whether the server certainly does not have kinds that discovery does not list.
    Absent(Result<BTreeSet<GroupKind>, crate::cluster::Error>),
    /// What the other sources of the cluster say was read.
    Peers(Result<Vec<Peer>, crate::cluster::Error>),
    /// A parent object was read or written.
    Parent(SourceId, Result<Option<Parent>, crate::cluster::Error>),
    /// The orders object of a source was read or written.
    Orders(SourceId, Result<Option<OrdersObject>, crate::cluster::Error>),
    /// The budget object was read or written.
    Budget(Result<Option<BudgetObject>, crate::cluster::Error>),
    /// The key for hashes of data was read or made.
    ConfigKey(Result<Option<ConfigKey>, crate::cluster::Error>),
    /// The workload of another daemon's claim, as it is now.
    Other(ObjectId, Result<Option<Box<Live>>, crate::cluster::Error>),
    /// By which labels the pods of a workload are found; none where that cannot be told.
    Selector(ObjectId, Option<String>),
    /// What the cluster says about a rollout that failed.
    Warned(ObjectId, Vec<String>),
    /// A pod that held up a StatefulSet was deleted, or was not.
    Freed(ObjectId),
    /// A pod that was to go for its step was evicted, or was not.
    Evicted(DuePod, Eviction),
    /// A ReplicaSet was scaled as a step asks, or was not.
    Rescaled(DueScale, Rescaled),
    /// A look answered.
    Looked(BTreeMap<ObjectId, Result<Looked, Trouble>>),
    /// Contents were compared.
    Compared(Vec<(ObjectId, Result<Verified, Trouble>)>),
    /// An action was carried out, or not.
    Done(ObjectId, Action, Outcome, Option<Told>),
}

/// Why a question about an object has no answer.
#[derive(Clone, Debug)]
pub(super) struct Trouble(pub Arc<str>);
