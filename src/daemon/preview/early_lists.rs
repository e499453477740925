//! The reads of a preview that are made while the files of its source are read. They are the
//! inventory, and the members of the kinds that it names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures::{StreamExt as _, stream};

use super::lists::{CONCURRENT_LISTS, listed_namespaces};
use crate::cluster::{Cluster, ClusterError, InventoryObject, KindLookup, KindTable, ListSelector};
use crate::engine::{AllowList, LiveObject};
use crate::manifest::KindScopes;
use crate::object::{Gvk, ObjectId};

/// The inventory as it was read; none where it does not exist.
pub(super) struct EarlyInventory(pub(super) Option<InventoryObject>);

/// The members of a kind in a namespace, or in all.
type MemberList = Vec<(ObjectId, LiveObject)>;

/// The results of the early reads.
#[derive(Default)]
pub(super) struct EarlyLists {
    /// None where it was not read.
    pub(super) inventory: Option<EarlyInventory>,
    /// The complete lists, by kind and namespace.
    members: HashMap<(Gvk, Option<Arc<str>>), MemberList>,
}

impl EarlyLists {
    /// Takes out a complete list of a kind; none where it was not made.
    pub(super) fn take_members(&mut self, gvk: &Gvk, namespace: Option<&Arc<str>>) -> Option<MemberList> {
        self.members.remove(&(gvk.clone(), namespace.cloned()))
    }
}

/// The early reads of one source.
pub(super) struct EarlyListing {
    pub(super) cluster: Cluster,
    /// The cluster as whom the source acts.
    pub(super) acting: Cluster,
    /// The namespace of the inventories.
    pub(super) namespace: String,
    /// The source.
    pub(super) name: String,
    pub(super) inventory_id: Arc<str>,
    pub(super) allow: Arc<AllowList>,
    /// The namespaces that the source may use; none for all.
    pub(super) namespaces: Option<BTreeSet<Arc<str>>>,
}

impl EarlyListing {
    /// Reads the inventory, and lists the members of its kinds. A read that fails is left out: it is
    /// made once more later, which says why.
    ///
    /// # Errors
    /// Fails where the server cannot be reached.
    pub(super) async fn read(
        self,
        kinds: &KindTable,
        scopes: &KindScopes,
    ) -> Result<EarlyLists, ClusterError> {
        let inventory = match self.cluster.read_inventory(&self.namespace, &self.name).await {
            Ok(inventory) => inventory,
            Err(error) if error.is_unreachable() => return Err(error),
            Err(_) => return Ok(EarlyLists::default()),
        };
        let sets: BTreeSet<Arc<str>> = [self.inventory_id.clone()].into();
        let mut lists = Vec::new();
        for group_kind in inventory.iter().flat_map(|inventory| &inventory.kinds) {
            let KindLookup::Served(kind) = kinds.preferred_kind(group_kind) else { continue };
            if !self.allow.can_allow_kind(group_kind, scopes.get(group_kind)) {
                continue;
            }
            for namespace in listed_namespaces(self.namespaces.as_ref(), &kind) {
                let selector = ListSelector::members_of(&sets, namespace);
                let (acting, kind) = (self.acting.clone(), kind.clone());
                let key = (kind.gvk.clone(), namespace.cloned());
                lists.push(async move { (key, acting.list(&kind, &selector).await) });
            }
        }
        let mut members = HashMap::new();
        let mut lists = stream::iter(lists).buffer_unordered(CONCURRENT_LISTS);
        while let Some((key, listed)) = lists.next().await {
            match listed {
                Ok(all) => drop(members.insert(key, all)),
                Err(error) if error.is_unreachable() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(EarlyLists { inventory: Some(EarlyInventory(inventory)), members })
    }
}
