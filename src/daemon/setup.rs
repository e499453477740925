//! The parts of a reconciler.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::manifest_facts::{NameInterner, ReadSettings};
use super::moved_objects::MovedObjectSearch;
use super::parsed_manifests::ParsedManifests;
use super::trace_writer::TraceWriter;
use crate::cluster::{Cluster, ServiceAccount};
use crate::engine::{
    self, AcceptanceRecord, AdoptPolicy, AllowList, BlastRadius, Budget, BudgetNarrowing, MovedObjects,
    OptOutPolicy, PrunePolicy, RepositoryExtent, RepositoryIdentity, SourceDeclaration, SourceLifecycle,
    SourceWrites, Uid,
};
use crate::input::{Decrypter, VariableMode};
use crate::source::{DiskSnapshot, Source};

/// The place that a source's files are read from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each source")]
pub(crate) enum SourceFiles {
    /// From a repository or directory that is followed.
    Source(Source),
    /// As they were on disk, once.
    Snapshot(Arc<DiskSnapshot>),
}

/// One source.
#[derive(Debug)]
pub(crate) struct SourceSetup {
    /// Its name.
    pub name: String,
    /// The location without credentials: another location under the same name prunes nothing
    /// unasked.
    pub location: String,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// The allow-list.
    pub allow: Arc<AllowList>,
    /// The service account, in the namespace of the inventories, as which its objects are read and
    /// written; none for rhumb's own.
    pub account: Option<Arc<str>>,
    /// Indicates whether `${NAME}` in its files is a variable.
    pub variables: VariableMode,
    /// The identities that open what it has encrypted.
    pub decrypter: Arc<Decrypter>,
    /// The namespaces in which it may have objects; none for all.
    pub namespaces: Option<BTreeSet<Arc<str>>>,
    /// Indicates whether it takes objects over.
    pub adopt: AdoptPolicy,
    /// Indicates whether it heeds what others put on its live objects.
    pub opt_out: OptOutPolicy,
    /// Indicates whether it deletes.
    pub prune: PrunePolicy,
    /// The number of objects that it deletes unasked.
    pub radius: BlastRadius,
    /// The time for which other sources may request a dropped object before it is deleted.
    pub prune_delay: Duration,
    /// The part of its repository that it follows.
    pub extent: RepositoryExtent,
    /// Indicates whether it writes.
    pub writes: SourceWrites,
    /// Indicates whether it goes on. Of one that ends, the files only show what its objects were
    /// made from.
    pub life: SourceLifecycle,
    /// Incarnations whose deletion whoever runs this has confirmed for this run.
    pub confirmed: BTreeSet<Uid>,
    /// The search for what another folder of its repository has come to name, for a pass over one
    /// folder.
    pub folder_search: Option<MovedObjectSearch>,
    /// Bounds on its rollouts beside those of the whole cluster.
    pub budget: BudgetNarrowing,
    /// Its files.
    pub files: SourceFiles,
}

impl SourceSetup {
    /// Returns the account that its objects are read and written as, where the inventories are in
    /// this namespace.
    pub(super) fn service_account(&self, system: &str) -> Option<ServiceAccount> {
        self.account.as_ref().map(|name| ServiceAccount::new(system, name))
    }

    /// Returns the account that its sources are distinguished by; none for rhumb's own.
    pub(super) fn account_name(&self) -> Option<Arc<str>> {
        self.account.as_ref().map(|name| name.to_string().into())
    }

    /// Returns the settings for reading its files.
    pub(super) fn read_settings(
        &self,
        source: engine::SourceId,
        inventory_id: &Arc<str>,
        system: &str,
    ) -> ReadSettings {
        ReadSettings {
            source,
            inventory_id: inventory_id.clone(),
            namespace: self.namespace.as_str().into(),
            allow: self.allow_list(system),
            decrypter: self.decrypter.clone(),
            variables: self.variables,
            names: NameInterner::default(),
            parsed: ParsedManifests::default(),
        }
    }

    /// Returns what it may have, where the inventories are in this namespace.
    pub(super) fn allow_list(&self, system: &str) -> Arc<AllowList> {
        (*self.allow).clone().without_records_in(system).into()
    }

    /// Returns what is known of objects that went to another folder before anything is read.
    pub(super) fn moved_objects(&self) -> MovedObjects {
        self.folder_search.as_ref().map_or_else(MovedObjects::default, |_| MovedObjects::Unsearched)
    }

    /// Returns its declaration: what the engine knows of it before anything of it is read.
    pub(super) fn declaration(&self, inventory_id: &str, system: &str) -> SourceDeclaration {
        let mut source =
            SourceDeclaration::new(&self.name, inventory_id, self.adopt, self.prune, self.radius);
        source.writes = self.writes;
        source.account = self.account_name();
        source.allow = self.allow_list(system);
        source.opt_out = self.opt_out;
        source.budget = self.budget.clone();
        source.lifecycle = self.life;
        source.prune_delay = self.prune_delay;
        source.extent = self.extent;
        source.moved = self.moved_objects();
        source.confirmed.clone_from(&self.confirmed);
        match &self.files {
            SourceFiles::Snapshot(_) => source.repository = RepositoryIdentity::None,
            SourceFiles::Source(followed) if followed.is_range_verified() => {
                source.acceptance = AcceptanceRecord::Required;
            }
            SourceFiles::Source(_) => {}
        }
        source
    }
}

/// A reconciler's parts.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The cluster.
    pub cluster: Cluster,
    /// Namespace of the inventories.
    pub namespace: String,
    /// The interval of resyncs.
    pub resync: Duration,
    /// The rollout budget.
    pub budget: Budget,
    /// Writes in flight at once.
    pub concurrency: usize,
    /// The sources.
    pub sources: Vec<SourceSetup>,
    /// The trace of the engine, where one is written.
    pub trace: Option<TraceWriter>,
}

#[cfg(test)]
impl Setup {
    /// Returns one with the usual settings.
    pub(super) fn in_test(cluster: Cluster, sources: Vec<SourceSetup>) -> Self {
        Self {
            cluster,
            namespace: "rhumb-system".to_owned(),
            resync: Duration::from_mins(5),
            budget: Budget::default(),
            concurrency: 8,
            sources,
            trace: None,
        }
    }
}
