//! The declarations of an engine, and of its sources, that come before all facts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::{
    AcceptanceRecord, AdoptPolicy, AllowList, BlastRadius, Budget, BudgetNarrowing, InformerGroupId,
    MovedObjects, OptOutPolicy, PrunePolicy, RepositoryExtent, RepositoryIdentity, SourceLifecycle,
    SourceState, SourceWrites, Uid,
};

/// The number of the form of traces. Another version may read another form only.
pub(super) const TRACE_FORM: u32 = 1;

/// An engine as it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EngineDeclaration {
    /// The form of the lines.
    pub form: u32,
    /// The version of rhumb.
    pub version: Cow<'static, str>,
    /// The budget.
    pub budget: Budget,
}

impl EngineDeclaration {
    /// Declares an engine of this version.
    pub(super) fn of(budget: &Budget) -> Self {
        Self { form: TRACE_FORM, version: env!("CARGO_PKG_VERSION").into(), budget: budget.clone() }
    }
}

/// A source as it is declared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::engine) struct SourceDeclaration {
    name: Arc<str>,
    inventory_id: Arc<str>,
    adopt: AdoptPolicy,
    prune: PrunePolicy,
    account: Option<Arc<str>>,
    allow: Arc<AllowList>,
    opt_out: OptOutPolicy,
    radius: BlastRadius,
    acceptance: AcceptanceRecord,
    writes: SourceWrites,
    lifecycle: SourceLifecycle,
    repository: RepositoryIdentity,
    prune_delay: Duration,
    extent: RepositoryExtent,
    moved: MovedObjects,
    budget: BudgetNarrowing,
    informer_group: InformerGroupId,
    confirmed: BTreeSet<Uid>,
}

impl From<&SourceState> for SourceDeclaration {
    fn from(source: &SourceState) -> Self {
        Self {
            name: source.name.clone(),
            inventory_id: source.inventory_id.clone(),
            adopt: source.adopt,
            prune: source.prune,
            account: source.account.clone(),
            allow: source.allow.clone(),
            opt_out: source.opt_out,
            radius: source.radius,
            acceptance: source.acceptance,
            writes: source.writes,
            lifecycle: source.lifecycle,
            repository: source.repository.clone(),
            prune_delay: source.prune_delay,
            extent: source.extent,
            moved: source.moved.clone(),
            budget: source.budget.clone(),
            informer_group: source.informer_group,
            confirmed: source.confirmed.clone(),
        }
    }
}

impl From<SourceDeclaration> for SourceState {
    fn from(declared: SourceDeclaration) -> Self {
        let SourceDeclaration { name, inventory_id, adopt, prune, radius, .. } = &declared;
        let mut source = Self::new(name, inventory_id, *adopt, *prune, *radius);
        source.account = declared.account;
        source.allow = declared.allow;
        source.opt_out = declared.opt_out;
        source.acceptance = declared.acceptance;
        source.writes = declared.writes;
        source.lifecycle = declared.lifecycle;
        source.repository = declared.repository;
        source.prune_delay = declared.prune_delay;
        source.extent = declared.extent;
        source.moved = declared.moved;
        source.budget = declared.budget;
        source.informer_group = declared.informer_group;
        source.confirmed = declared.confirmed;
        source
    }
}
