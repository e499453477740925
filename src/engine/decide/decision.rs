//! The terms of a decision about one object: the facts that it depends on, and what may come of it.
//!
//! `Engine::decide` fills a [`DecisionInput`] in, and the pure `decide_from_facts` makes a
//! [`Decision`] of it. Its [`Action`] is carried out by `src/daemon/action_executor.rs`.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::facts::effective_content::ReplicaOwner;
use crate::engine::facts::entry::ObjectEntry;
use crate::engine::facts::prune_decisions::PruneDecision;
use crate::engine::{
    AdoptPolicy, ApplyVariant, ConfigStamp, DesiredObject, IncompleteSource, LiveObject, ObjectOwner,
    OptOutPolicy, Reason, RecreationBlocker, ReleaseSeal, ResourceVersion, RolloutOverlay,
    SharedDesiredObject, SourceId, Uid,
};
use crate::object::{ContentHash, ObjectId, Revision};

/// The precondition of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precondition {
    /// No such object: the server refuses the write where one is there. It is unforced as well, for
    /// servers of other kinds that do not look at it.
    Absent,
    /// This incarnation; without it the API server would create a new one.
    Uid(Uid),
    /// This incarnation in this version: for writes that depend on what was seen.
    Exact(Uid, ResourceVersion),
}

/// The purpose of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ApplyPurpose {
    /// It is not there.
    Create,
    /// Another content, which a rollback makes an older one.
    Change,
    /// Somebody changed it.
    Repair,
    /// It carried no owner's mark, or, with `adopt: always`, another owner's.
    Adopt,
    /// Another source had it, and gives it up.
    Transfer,
    /// Its rollout goes on to the next step, or its overlay is taken off.
    Step,
    /// The data that its pods use have changed.
    Restart,
}

/// Indicates whether a write may restart pods that are available now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RestartRisk {
    /// No pod restarts.
    Absent,
    /// Pods may restart, as far as can be known without asking the server.
    Possible,
}

/// One server-side apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ApplyRequest {
    /// The content.
    pub desired: SharedDesiredObject,
    /// The source that it is written for.
    pub source: SourceId,
    /// The revision that its annotation names.
    pub revision: Revision,
    /// The seal of its annotation; none where there is no key.
    pub seal: Option<ReleaseSeal>,
    /// The precondition.
    pub precondition: Precondition,
    /// The version of the view that it was decided on; none for an object that is not there.
    pub decided_on: Option<ResourceVersion>,
    /// The variant that is sent.
    pub variant: ApplyVariant,
    /// The purpose.
    pub purpose: ApplyPurpose,
    /// Indicates whether the rollout budget is asked.
    pub restarts: RestartRisk,
}

/// An action on one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Action {
    /// Nothing; with a reason when it is not in its desired state.
    Nothing,
    /// Nothing is known of it any more.
    Forget,
    /// Ask the API server whether it exists.
    Lookup,
    /// Compare the content with what the informer showed last, without a call: our entry in
    /// `managedFields`, and the digest of the values behind it.
    CompareCached(SharedDesiredObject, ApplyVariant),
    /// Compare the content with a live read of the object. A dry run helps where the server may
    /// only spell a value otherwise.
    CompareLive(SharedDesiredObject, ApplyVariant),
    /// Read what was accepted before from its revision.
    AwaitContent,
    /// Ask the API server what a write would do to pods.
    DryRun(ApplyRequest),
    /// Write.
    Apply(ApplyRequest),
    /// Delete this incarnation in this version.
    Delete(Uid, ResourceVersion, DeletionReason),
}

impl Action {
    /// Returns the version of the object that a write was decided on; none for a creation, and for
    /// what writes nothing.
    pub(in crate::engine) fn decided_on(&self) -> Option<ResourceVersion> {
        match self {
            Self::Apply(apply) => apply.decided_on,
            Self::Delete(_, version, _) => Some(*version),
            _ => None,
        }
    }
}

/// The reason for a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeletionReason {
    /// No source wants it.
    Prune,
    /// It comes back with a content that the API does not accept in place.
    Recreate,
}

/// An action, the reason for not more, and the time of the next decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// The action.
    pub action: Action,
    /// The reason for which the object is not, or not yet, as the newest revision asks.
    pub reason: Option<Reason>,
    /// The time after which it is requeued, as the clock alone changes the decision.
    pub requeue_after: Option<Duration>,
}

impl Decision {
    pub(in crate::engine) fn act(action: Action) -> Self {
        Self { action, reason: None, requeue_after: None }
    }

    pub(in crate::engine) fn wait(reason: Reason) -> Self {
        let requeue_after = match &reason {
            Reason::Refused(_, after) => *after,
            Reason::Retrying(_, after) | Reason::Fight(_, after) => Some(*after),
            Reason::OwnWrite => Some(crate::engine::WRITE_ECHO_TIMEOUT),
            _ => None,
        };
        Self { action: Action::Nothing, reason: Some(reason), requeue_after }
    }

    pub(in crate::engine) fn with_reason(mut self, reason: Reason) -> Self {
        let waits = Self::wait(reason);
        self.requeue_after = [self.requeue_after, waits.requeue_after].into_iter().flatten().min();
        self.reason = waits.reason;
        self
    }
}

/// The observation of an object.
#[derive(Clone, Debug)]
pub(crate) enum Observation<'a> {
    /// Nothing can be said now: the kind cannot be observed, or our own write has not come back.
    Pending(Reason),
    /// The informer does not show it, and it was not looked up: it may exist.
    NotSeen,
    /// It does not exist: the informer does not show it, and a lookup confirmed that.
    Absent,
    /// This.
    Seen(&'a LiveObject),
}

/// Returns the inventory whose label an object carries, as far as it can be seen.
pub(in crate::engine) fn labelled_inventory_id(observation: &Observation<'_>) -> Option<Arc<str>> {
    match observation {
        Observation::Seen(live) => match &live.owner {
            ObjectOwner::Ours(set) => Some(set.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The holder of an object that carries the label of an inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum InventoryHolder {
    /// No source of this cluster's rhumb, as far as anybody knows.
    #[default]
    Nobody,
    /// The others have not been read.
    Unread,
    /// This source has it, and does not say that it no longer wants it.
    Keeps(Arc<str>),
    /// This source has it, and no longer wants it.
    GivesUp(Arc<str>),
}

/// Indicates whether the sources that want one object act as one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompetingAccounts {
    /// All act as one account, or there is only one source.
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
    /// The cause for which the source that brought it may still want it.
    pub incomplete_source: Option<IncompleteSource>,
    /// The reason for which it is not deleted and created again for an immutable field.
    pub recreation_blocker: Option<RecreationBlocker>,
    /// The overlay for the desired content now.
    pub overlay: Option<RolloutOverlay>,
    /// The data that the pods of the desired content are to be started with.
    pub config_stamp: Option<ConfigStamp>,
    /// The content with which it ended, for a Job that is gone by itself.
    pub finished: Option<ContentHash>,
    /// Objects that are there, of the Helm release whose made-up values it has, each with the hash of
    /// its render, as its seal proves it.
    pub generated_siblings: Vec<(&'a ObjectId, ContentHash)>,
    /// Indicates whether all sources that want it act as one account.
    pub accounts: CompetingAccounts,
}

impl DecisionInput<'_> {
    /// Returns why an object of this content could not be created: other objects of its release have
    /// generated values of another render.
    pub(in crate::engine) fn render_mismatch(&self, desired: &DesiredObject) -> Option<Reason> {
        let mark = desired.generated.as_deref()?;
        let other = self.generated_siblings.iter().find(|(_, render)| *render != mark.render_hash());
        other.map(|(other, _)| Reason::Generated((*other).clone()))
    }
}
