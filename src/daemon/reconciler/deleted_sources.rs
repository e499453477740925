//! Sources that a person has deleted: what is left of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::inventory::{CallState, InventoryState};
use super::Reconciler;
use crate::cluster::InventoryObject;
use crate::engine::{HashCipherStatus, PruneDecision, SourceId, SourceLifecycle};
use crate::object::ObjectId;
use crate::report::RemainingObjects;

impl Reconciler {
    /// Returns the remaining objects of each deleted source that has been seen completely, or
    /// cannot be.
    pub(super) fn remaining_by_source(&self) -> BTreeMap<Arc<str>, RemainingObjects> {
        let sources = self.engine.view().source_ids().zip(self.engine.view().sources());
        let ends = sources.filter(|(_, source)| source.declared.lifecycle == SourceLifecycle::Deleting);
        ends.filter_map(|(id, source)| Some((source.declared.name.clone(), self.remaining_objects(id)?)))
            .collect()
    }

    /// Returns why what a source has cannot be known before a person does something.
    pub(super) fn blocking_reason(&self, source: SourceId) -> Option<String> {
        let why = self.records.inventories[source].last_error.as_ref()?;
        Some(format!("its ConfigMap cannot be read or written: {why}"))
    }

    /// Returns the remaining objects of a source. An object that is being deleted remains until it
    /// is gone, whatever keeps it.
    fn remaining_objects(&self, source: SourceId) -> Option<RemainingObjects> {
        let store = &self.records.inventories[source];
        if let Some(why) = self.blocking_reason(source) {
            let is_foreign = store.is_foreign;
            return Some(if is_foreign {
                RemainingObjects::NoInventory(why)
            } else {
                RemainingObjects::Unread(why)
            });
        }
        if store.call == CallState::Busy || !self.sources.attempted.contains(&source) {
            return None;
        }
        if store.inventory == InventoryState::Absent {
            return Some(RemainingObjects::Unknown);
        }
        if store.sealing == HashCipherStatus::Locked {
            let why = "its ConfigMap has hashes of Secrets that cannot be read without their key";
            return Some(RemainingObjects::Unread(why.to_owned()));
        }
        self.engine.view().source(source).inventory.as_ref()?;
        if !self.is_synced(source) {
            let why = self.engine.view().unlisted_reason(source);
            return why.map(|why| RemainingObjects::Unread(why.to_string()));
        }
        let decisions: BTreeMap<_, _> = self.engine.view().prune_decisions(source).collect();
        let members = self
            .engine
            .view()
            .informer_objects()
            .filter(|(_, live)| self.engine.view().source_of(live) == Some(source));
        let goes = members.map(|(id, _)| id);
        let stays = |id: &ObjectId| {
            matches!(decisions.get(id), Some(PruneDecision::Keep(_) | PruneDecision::Ignore(_)))
        };
        let mut goes = goes.filter(|id| !stays(id)).peekable();
        if goes.peek().is_some() {
            return Some(RemainingObjects::Objects(self.describe_first(goes)));
        }
        // An inventory that was made anew does not name its former kinds.
        let location = store.inventory.inventory().and_then(InventoryObject::location);
        Some(if location.is_some() { RemainingObjects::Nothing } else { RemainingObjects::Unknown })
    }

    /// Describes one of the objects that are left, with its reason. Reasons that do not pass by
    /// themselves come first.
    fn describe_first<'a>(&self, left: impl Iterator<Item = &'a ObjectId>) -> Option<String> {
        let waits = left.filter_map(|id| {
            let wanting = self.engine.view().entry(id).and_then(|entry| entry.targets.first());
            if let Some((other, _)) = wanting {
                let name = &self.engine.view().source(*other).declared.name;
                return Some((
                    (false, id),
                    format!("{id}: source {name} wants it, and has not adopted it yet"),
                ));
            }
            let reason = self.objects.reasons.get(id)?;
            Some(((!reason.is_refusal(), id), format!("{id}: {reason}")))
        });
        waits.min_by_key(|(order, _)| *order).map(|(_, words)| words)
    }
}
