//! The objects of a source, listed without rights over the whole cluster.

use std::sync::Arc;

use crate::cluster::{Cluster, ClusterError, InventoryObject, ListSelector, ServedKind, ServedScope};
use crate::engine::LiveObject;
use crate::object::{ErrorClass, ObjectId};

/// Returns whether a list of the whole cluster was refused that may be granted for some namespaces.
pub(super) fn is_too_wide(error: &ClusterError, kind: &ServedKind) -> bool {
    error.class() == ErrorClass::Forbidden && kind.scope == ServedScope::Namespaced
}

/// The objects of one source and one kind.
pub(super) struct ListedMembers {
    pub(super) objects: Vec<(ObjectId, LiveObject)>,
    /// Indicates whether only the namespaces of the inventory were listed.
    pub(super) is_by_namespace: bool,
}

/// Lists the objects of a kind that a source has: of the whole cluster, or of the namespaces in its
/// inventory where that is refused.
pub(super) async fn list_members(
    cluster: &Cluster,
    kind: &Arc<ServedKind>,
    inventory_id: &Arc<str>,
    inventory: &InventoryObject,
) -> Result<ListedMembers, ClusterError> {
    match cluster.list(kind, &ListSelector::ApplySets([inventory_id.clone()].into())).await {
        Ok(objects) => Ok(ListedMembers { objects, is_by_namespace: false }),
        Err(refused) if is_too_wide(&refused, kind) => {
            let objects = by_namespace(cluster, kind, inventory_id, inventory, refused).await?;
            Ok(ListedMembers { objects, is_by_namespace: true })
        }
        Err(error) => Err(error),
    }
}

/// Lists the objects of a kind that an inventory has, in the namespaces that it names. A namespace
/// is recorded before the first object in it is written. An inventory without namespaces may have
/// lost them, so the error of the cluster-wide list is returned.
pub(super) async fn by_namespace(
    cluster: &Cluster,
    kind: &Arc<ServedKind>,
    inventory_id: &Arc<str>,
    inventory: &InventoryObject,
    refused: ClusterError,
) -> Result<Vec<(ObjectId, LiveObject)>, ClusterError> {
    if inventory.namespaces.is_empty() {
        return Err(refused);
    }
    let mut members = Vec::new();
    for namespace in &inventory.namespaces {
        let selector =
            ListSelector::members_of(&[inventory_id.clone()].into(), Some(&namespace.as_str().into()));
        members.extend(cluster.list(kind, &selector).await?);
    }
    Ok(members)
}
