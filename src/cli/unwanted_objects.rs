//! Objects of sources in the cluster that their manifests no longer hold, for commands that derive
//! rights from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rights::{Rights, SourceAccess, WatchedNamespaces};
use super::session::{acting_cluster, retry_when_throttled};
use crate::cluster::{
    Cluster, ClusterError, InventoryObject, KindLookup, KindTable, ListSelector, ServedKind, ServedScope,
    inventory_id_of,
};
use crate::config::SourceConfig;
use crate::engine::{ObjectOwner, WatchFault};
use crate::object::{ErrorClass, GroupKind, Object, ObjectId};

/// Adds what a source needs for objects that its inventory names, or that carry its label, and that
/// it does not hold. Returns what of the inventory cannot be seen now, in words.
pub(super) async fn add(
    cluster: &Cluster,
    kinds: &KindTable,
    system: &str,
    source: &SourceConfig,
    wanted_objects: &[Object],
    rights: &mut Rights,
) -> Result<Vec<String>, ClusterError> {
    let inventory = match retry_when_throttled(|| cluster.read_inventory(system, &source.name)).await {
        // The right to get it is asked about, and reported, with all others.
        Err(error) if error.class() == ErrorClass::Forbidden => None,
        read => read?,
    };
    let Some(inventory) = inventory else { return Ok(Vec::new()) };
    let inventory_id: Arc<str> = inventory_id_of(system, &source.name).into();
    let acting = acting_cluster(cluster, system, source);
    let search = RemainingObjectSearch {
        cluster: &acting,
        kinds,
        source,
        wanted_objects,
        inventory: &inventory,
        inventory_id,
    };
    let mut unseen = Vec::new();
    for kind in &inventory.kinds {
        let scope = kinds.scopes().find(|(known, _)| *known == kind).map(|(_, scope)| scope.into());
        // A kind that the source may not have is neither watched nor deleted.
        if !source.allow.can_allow_kind(kind, scope) {
            continue;
        }
        unseen.extend(search.search_namespace(kind, rights).await?);
    }
    Ok(unseen)
}

struct RemainingObjectSearch<'a> {
    /// As the source sees it.
    cluster: &'a Cluster,
    kinds: &'a KindTable,
    source: &'a SourceConfig,
    wanted_objects: &'a [Object],
    inventory: &'a InventoryObject,
    inventory_id: Arc<str>,
}

impl RemainingObjectSearch<'_> {
    async fn search_namespace(
        &self,
        kind: &GroupKind,
        rights: &mut Rights,
    ) -> Result<Option<String>, ClusterError> {
        let is_declared = self.wanted_objects.iter().any(|object| object.id.group_kind() == *kind);
        let served = match self.kinds.preferred_kind(kind) {
            KindLookup::Served(served) => served,
            KindLookup::Unserved { .. } => {
                rights.add_proof_of(kind);
                return Ok(None);
            }
            KindLookup::Unknown => {
                let name = &self.source.name;
                let why = WatchFault::GroupUnavailable;
                return Ok(Some(format!(
                    "source {name}: nothing is pruned while {kind} cannot be listed: {why}"
                )));
            }
        };
        let watched = WatchedNamespaces::of(self.source);
        let scope = served.scope.into();
        if !is_declared {
            rights.add_remaining_kind(&watched, scope, kind, &served.plural);
        }
        for namespace in watched.list_namespaces(scope) {
            self.list(&served, namespace.as_ref(), is_declared, rights).await?;
        }
        Ok(None)
    }

    /// Reads one list of a kind.
    async fn list(
        &self,
        served: &Arc<ServedKind>,
        namespace: Option<&Arc<str>>,
        is_declared: bool,
        rights: &mut Rights,
    ) -> Result<(), ClusterError> {
        let kind = &served.gvk.group_kind();
        let wanted: BTreeSet<&ObjectId> = self.wanted_objects.iter().map(|object| &object.id).collect();
        let selector = ListSelector::members_of(&[self.inventory_id.clone()].into(), namespace);
        let access = SourceAccess::of(self.source);
        match retry_when_throttled(|| self.cluster.list(served, &selector)).await {
            Ok(members) => {
                for (id, live) in &members {
                    if live.owner == ObjectOwner::Ours(self.inventory_id.clone()) && !wanted.contains(id) {
                        rights.add_remaining(access, kind, &served.plural, id.namespace());
                    }
                }
            }
            // Where they are is not known, so it is wherever the source has anything.
            Err(error) if error.class() == ErrorClass::Forbidden && !is_declared => match served.scope {
                ServedScope::Cluster => rights.add_remaining(access, kind, &served.plural, None),
                ServedScope::Namespaced => {
                    let is_there = |name: &&String| namespace.is_none_or(|one| **one == **name);
                    for name in self.inventory.namespaces.iter().filter(is_there) {
                        rights.add_remaining(access, kind, &served.plural, Some(name));
                    }
                }
            },
            Err(error) if error.class() == ErrorClass::Forbidden => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
