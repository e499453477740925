//! The facts that a decision about one object depends on.

use std::sync::Arc;

use crate::engine::deletion::prune_guard::PruneDecision;
use crate::engine::facts::entry::ObjectEntry;
use crate::engine::{
    AdoptPolicy, ConfigStamp, GeneratedMark, InventoryHolder, LiveObject, OptOutPolicy, Reason,
    RolloutOverlay,
};
use crate::object::{ContentHash, ObjectId, Revision};

/// The observation of an object.
#[derive(Clone, Debug)]
pub(crate) enum Observation<'a> {
    /// Nothing can be said now: the kind cannot be observed, or our own write has not come back.
    Unobservable(Reason),
    /// The informer does not show it, and it was not looked up.
    NotSeen,
    /// It does not exist.
    Absent,
    /// This.
    Seen(&'a LiveObject),
}

/// Indicates whether an autoscaler targets the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaOwner {
    /// The manifest sets the count.
    Manifest,
    /// A `HorizontalPodAutoscaler` sets the count.
    Autoscaler,
}

/// Indicates whether the sources that want one object act as one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompetingAccounts {
    /// They do, or there is only one.
    Same,
    /// One of them may lack rights that another one has.
    Different,
}

/// All that a decision depends on.
#[derive(Clone, Debug)]
pub(crate) struct DecisionInput<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// The facts.
    pub entry: &'a ObjectEntry,
    /// The observation in the cluster.
    pub observation: Observation<'a>,
    /// Inventory ids of all sources, by number.
    pub inventories: &'a [Arc<str>],
    /// The revision that brings the target content.
    pub target_revision: Revision,
    /// The reason to show for an object that matches its rollback target.
    pub rejection_reason: Option<Reason>,
    /// Indicates whether the wanting source may take objects over.
    pub adopt: AdoptPolicy,
    /// Indicates whether the wanting source heeds what others put on its live objects.
    pub opt_out: OptOutPolicy,
    /// The holder of an object in an inventory that this process does not keep.
    pub holder: InventoryHolder,
    /// Indicates whether an autoscaler targets it.
    pub scaling: ReplicaOwner,
    /// The blocker of any write: its kind, its namespace, the inventory.
    pub write_blocker: Option<Reason>,
    /// The blocker of new content: its references, its wave.
    pub release_blocker: Option<Reason>,
    /// The decision of the prune guard, for an object that no source wants.
    pub prune_decision: Option<PruneDecision>,
    /// The reason for which it cannot be known whether the source that brought it still wants
    /// it.
    pub incompleteness: Option<Arc<str>>,
    /// The overlay for the desired content now.
    pub overlay: Option<RolloutOverlay>,
    /// The data that the pods of the desired content are to be started with.
    pub config_stamp: Option<ConfigStamp>,
    /// The content with which it ended, for a Job that is gone by itself.
    pub finished: Option<ContentHash>,
    /// Objects that are there, of the Helm release whose made-up values it has, each with its render.
    pub generated_beside: Vec<(&'a ObjectId, Option<&'a GeneratedMark>)>,
    /// Indicates whether all sources that want it act as one account.
    pub accounts: CompetingAccounts,
}
