//! The informer groups of sources: those with the same account and the same namespaces share their
//! informers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::setup::SourceSetup;
use crate::cluster::{Cluster, Informer, ListSelector, ServedKind, ServedScope};
use crate::engine::{Engine, InformerGroupId, WatchScope};
use crate::object::GroupKind;

/// The informers of a kind, by namespace; that of the whole cluster under none.
type InformersByNamespace = BTreeMap<Option<Arc<str>>, Informer>;

/// The informers of one account and its namespaces.
pub(super) struct InformerGroup {
    pub(super) cluster: Cluster,
    /// The namespaces that it watches; none for all.
    namespaces: Option<BTreeSet<Arc<str>>>,
    /// The inventories whose objects it watches.
    inventory_ids: BTreeSet<Arc<str>>,
    /// Kinds of manifests.
    pub(super) wanted: BTreeSet<GroupKind>,
    /// Kinds of inventories.
    pub(super) recorded: BTreeSet<GroupKind>,
    informers: HashMap<GroupKind, (Arc<ServedKind>, InformersByNamespace)>,
}

impl InformerGroup {
    fn new(cluster: Cluster, namespaces: Option<BTreeSet<Arc<str>>>) -> Self {
        Self {
            cluster,
            namespaces,
            inventory_ids: BTreeSet::new(),
            wanted: BTreeSet::new(),
            recorded: BTreeSet::new(),
            informers: HashMap::new(),
        }
    }

    /// Returns the kinds that matter to its sources.
    pub(super) fn kinds(&self) -> BTreeSet<GroupKind> {
        self.recorded.union(&self.wanted).cloned().collect()
    }

    /// Returns whether it has informers of a kind.
    pub(super) fn is_listing(&self, kind: &GroupKind) -> bool {
        self.informers.contains_key(kind)
    }

    /// Returns whether it has informers of a kind in exactly this version.
    pub(super) fn is_listing_version(&self, kind: &Arc<ServedKind>) -> bool {
        self.informers.get(&kind.gvk.group_kind()).is_some_and(|(known, _)| known == kind)
    }

    /// Returns its lists of a kind, each with its selector.
    pub(super) fn list_scopes(
        &self,
        number: InformerGroupId,
        kind: &ServedKind,
    ) -> Vec<(WatchScope, ListSelector)> {
        let parts = match (&self.namespaces, kind.scope) {
            (Some(namespaces), ServedScope::Namespaced) => namespaces.iter().cloned().map(Some).collect(),
            _ => vec![None],
        };
        let list = |namespace: Option<Arc<str>>| {
            let selector = ListSelector::members_of(&self.inventory_ids, namespace.as_ref());
            (WatchScope { informer_group: number, kind: kind.gvk.group_kind(), namespace }, selector)
        };
        parts.into_iter().map(list).collect()
    }

    /// Keeps the informers of a kind, in place of those that it had.
    pub(super) fn keep(&mut self, kind: Arc<ServedKind>, informers: InformersByNamespace) {
        self.informers.insert(kind.gvk.group_kind(), (kind, informers));
    }

    /// Returns the informer of a list.
    pub(super) fn informer(&self, listing: &WatchScope) -> Option<&Informer> {
        self.informers.get(&listing.kind)?.1.get(&listing.namespace)
    }

    /// Returns all informers.
    pub(super) fn informers(&self) -> impl Iterator<Item = &Informer> {
        self.informers.values().flat_map(|(_, informers)| informers.values())
    }
}

/// All of them, by number.
pub(super) struct InformerGroups {
    /// The cluster as rhumb itself sees it.
    pub(super) own: Cluster,
    pub(super) all: Vec<InformerGroup>,
}

impl InformerGroups {
    /// Returns the one that there always is.
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self { own: cluster.clone(), all: vec![InformerGroup::new(cluster.clone(), None)] }
    }

    /// Returns the one that watches for a source, which is made where no other source has such a
    /// one.
    pub(super) fn watch_for(
        &mut self,
        source: &SourceSetup,
        system: &str,
        inventory_id: &Arc<str>,
        engine: &mut Engine,
    ) -> InformerGroupId {
        let account = source.service_account(system);
        let is_alike = |informer_group: &InformerGroup| {
            informer_group.cluster.account() == account.as_ref()
                && informer_group.namespaces == source.namespaces
        };
        let number = self.all.iter().position(is_alike).unwrap_or_else(|| {
            self.all
                .push(InformerGroup::new(self.own.with_account(account.clone()), source.namespaces.clone()));
            engine.add_informer_group(source.namespaces.clone())
        });
        if let Some(informer_group) = self.all.get_mut(number) {
            informer_group.inventory_ids.insert(inventory_id.clone());
        }
        number
    }

    /// Returns the inventories of all sources.
    pub(super) fn inventory_ids(&self) -> BTreeSet<Arc<str>> {
        self.all.iter().flat_map(|informer_group| &informer_group.inventory_ids).cloned().collect()
    }

    /// Returns the cluster as an informer group sees it.
    pub(super) fn cluster(&self, number: InformerGroupId) -> Option<&Cluster> {
        self.all.get(number).map(|informer_group| &informer_group.cluster)
    }
}
