//! A source as it is declared, before anything of it is read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::facts::informer_groups::{InformerGroupId, OWN_INFORMER_GROUP};
use crate::engine::{
    AdoptPolicy, AllowList, BlastRadius, BudgetNarrowing, MovedObjects, OptOutPolicy, PrunePolicy,
    RepositoryExtent, SourceLifecycle, Uid,
};

/// The default time for which others may come to want a dropped object.
pub(crate) const PRUNE_DELAY: Duration = Duration::from_secs(30);

/// The repository that a source follows, as others may follow it too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RepositoryIdentity {
    /// It was not observed yet.
    #[default]
    Unknown,
    /// It follows none: its revisions are its own.
    None,
    /// Its place without credentials, and the reference in it.
    Repository(Arc<str>),
}

/// Indicates whether a source writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SourceWrites {
    /// It writes.
    Allowed,
    /// It is only observed: everything is decided, nothing is written.
    Observed,
}

/// Indicates whether a revision has to be recorded as accepted before anything of it is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AcceptanceRecord {
    /// No record is needed: the next revision is not judged by it.
    #[default]
    Optional,
    /// The record comes first: else an older revision could be accepted after it.
    Required,
}

/// The declaration of a source: what it may do, and what is known of it before it is read. A trace
/// has it as it is here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SourceDeclaration {
    /// Its name.
    pub name: Arc<str>,
    /// The id of its inventory.
    pub inventory_id: Arc<str>,
    /// Indicates whether it takes objects over.
    pub adopt: AdoptPolicy,
    /// Indicates whether it deletes what it no longer names.
    pub prune: PrunePolicy,
    /// The service account that it acts as; none for rhumb's own.
    pub account: Option<Arc<str>>,
    /// The allow-list.
    pub allow: Arc<AllowList>,
    /// Indicates whether it heeds the opt-outs that others put on its live objects.
    pub opt_out: OptOutPolicy,
    /// The number of objects that it deletes without a confirmation.
    pub radius: BlastRadius,
    /// Indicates whether its inventory has to record a revision before that is released.
    pub acceptance: AcceptanceRecord,
    /// Indicates whether it writes at all.
    pub writes: SourceWrites,
    /// Indicates whether it goes on.
    pub lifecycle: SourceLifecycle,
    /// The repository that it follows, as it was told last.
    pub repository: RepositoryIdentity,
    /// The time for which other sources may request a dropped object before it is deleted.
    pub prune_delay: Duration,
    /// The part of its repository that it follows.
    pub extent: RepositoryExtent,
    /// Objects that another folder of its repository has come to name, as it was searched last.
    pub moved: MovedObjects,
    /// Bounds on its rollouts beside those of the whole cluster.
    pub budget: BudgetNarrowing,
    /// The informer group whose informers show its objects.
    pub informer_group: InformerGroupId,
    /// Incarnations whose deletion whoever began this process has confirmed for as long as it runs.
    pub confirmed: BTreeSet<Uid>,
}

impl SourceDeclaration {
    /// Declares a source that writes, and whose other permissions are the narrowest.
    pub(crate) fn new(
        name: &str,
        inventory_id: &str,
        adopt: AdoptPolicy,
        prune: PrunePolicy,
        radius: BlastRadius,
    ) -> Self {
        Self {
            name: name.into(),
            inventory_id: inventory_id.into(),
            adopt,
            prune,
            account: None,
            allow: Arc::default(),
            opt_out: OptOutPolicy::default(),
            radius,
            acceptance: AcceptanceRecord::Optional,
            writes: SourceWrites::Allowed,
            lifecycle: SourceLifecycle::Active,
            repository: RepositoryIdentity::Unknown,
            prune_delay: PRUNE_DELAY,
            extent: RepositoryExtent::Whole,
            moved: MovedObjects::default(),
            budget: BudgetNarrowing::default(),
            informer_group: OWN_INFORMER_GROUP,
            confirmed: BTreeSet::new(),
        }
    }
}
