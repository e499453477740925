//! The inventories of single passes that write nothing: none is made before a write needs it, and
//! one whose writes were all refused goes again.
//!
//! Other sources go by each inventory that there is. One of a source that never was would hold up
//! their deletions.

use super::super::handover;
use super::super::inventory::InventoryState;
use super::Reconciler;
use crate::cluster::InventoryObject;
use crate::engine::{Reason, SourceId};
use crate::object::{GroupKind, ObjectId};
use crate::report::Outcome;

impl Reconciler {
    /// Returns whether nothing needs the inventory of a single pass, which does not exist: its
    /// source has nothing, and no write waits for it.
    pub(super) fn is_inventory_unneeded(&self, source: SourceId) -> bool {
        let state = self.engine.view().source(source);
        let waits =
            |reason: &Reason| matches!(reason, Reason::Inventory(name) if *name == state.declared.name);
        !self.run_mode.is_daemon()
            && self.records.inventories[source].inventory == InventoryState::Absent
            && state.live_counts().kinds().next().is_none()
            && !self.objects.reasons.values().any(waits)
    }

    /// Deletes the inventories that this single pass has made, and of which it wrote nothing. One
    /// that may not be deleted is emptied.
    pub(super) async fn remove_unused_inventories(&mut self) {
        if self.run_mode.is_daemon() {
            return;
        }
        for source in self.engine.view().source_ids() {
            let Some(inventory) = self.unused_inventory(source).cloned() else { continue };
            self.remove_inventory(source, &inventory).await;
            // Nothing more is written to it.
            self.records.inventories[source].inventory = InventoryState::Absent;
        }
    }

    fn unused_inventory(&self, source: SourceId) -> Option<&InventoryObject> {
        let store = &self.records.inventories[source];
        let has_nothing = self.engine.view().source(source).live_counts().kinds().next().is_none();
        let is_unused =
            store.was_absent && has_nothing && self.writes.is_empty() && self.has_written_nothing();
        store.inventory.inventory().filter(|_| is_unused)
    }

    /// Returns whether every write of this pass was refused. One that failed otherwise may have
    /// been carried out.
    fn has_written_nothing(&self) -> bool {
        let is_open = |outcome: &Outcome| matches!(outcome, Outcome::Waiting(_) | Outcome::Refused(_));
        let is_unknown = |reason: &Reason| matches!(reason, Reason::Retrying(..) | Reason::OwnWrite);
        self.objects.outcomes.values().all(is_open) && !self.objects.reasons.values().any(is_unknown)
    }

    async fn remove_inventory(&self, source: SourceId, inventory: &InventoryObject) {
        let (cluster, name) = (&self.executor.cluster, &self.engine.view().source(source).declared.name);
        let group_kind = GroupKind::new("", "ConfigMap");
        if let (Some(kind), Some((uid, version))) =
            (self.watches.kinds.served_kind(&group_kind), &inventory.known)
        {
            let id = ObjectId::new(&group_kind, Some(&self.records.namespace), name);
            match cluster.delete(&kind, &id, uid, *version).await {
                Ok(_) => return,
                Err(error) => tracing::debug!(source = %name, "its unused inventory is not deleted: {error}"),
            }
        }
        let empty = InventoryObject { known: inventory.known.clone(), ..InventoryObject::default() };
        let retired = handover::retire_inventory(&empty);
        if let Err(error) =
            cluster.save_inventory(&self.records.namespace, name, Some(inventory), &retired).await
        {
            tracing::warn!(
                source = %name,
                "nothing was written, and its inventory is left, which may hold up deletions of other \
                 sources: {error}; `rhumb uninstall {name}` removes it"
            );
        }
    }
}
