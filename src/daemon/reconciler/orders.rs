//! The orders and intents of people: how they are noticed, and how the target of an undo is looked
//! up.

use std::time::Instant;

use super::super::inventory::InventoryState;
use super::super::source_task::SourceTaskRequest;
use super::{PinState, Reconciler};
use crate::cluster::{InformerChange, InformerEvent, is_inventory_name};
use crate::engine::{Input, OlderRevision, OrderReach, ResourceVersion, SourceId, UndoRequest};
use crate::object::{ErrorClass, ObjectId};

impl Reconciler {
    /// Carries out orders. They are for whoever stays: a single pass keeps to what is paused or
    /// held, and carries out nothing but confirmations of deletions.
    pub(super) fn carry_out_orders(&mut self) {
        let reach = if self.run_mode.is_daemon() { OrderReach::All } else { OrderReach::Confirmations };
        let mut undos = self.engine.poll_orders(reach);
        undos.retain(|undo| !self.sources.undoing.contains(&(undo.source, undo.token.clone())));
        let mut impossible = Vec::new();
        for undo in undos {
            match &self.sources.requests[undo.source] {
                Some(source_task) => {
                    let key = (undo.source, undo.token.clone());
                    if source_task.try_send(SourceTaskRequest::ReadUndoTarget(undo)).is_ok() {
                        self.sources.undoing.insert(key);
                    }
                }
                None => impossible.push(undo),
            }
        }
        for undo in impossible {
            let past = Err("the source has no older revisions".to_owned());
            self.engine.handle(Input::UndoTarget { undo: Box::new(undo), past }, Instant::now());
        }
    }

    pub(super) fn undo_target_read(&mut self, undo: Box<UndoRequest>, past: Result<OlderRevision, String>) {
        self.sources.undoing.remove(&(undo.source, undo.token.clone()));
        self.engine.handle(Input::UndoTarget { undo, past }, Instant::now());
        // The revision of the rollback must stay readable.
        self.sources.pins = PinState::Stale;
    }

    /// Takes the inventory of a source that was written. The writer is this process, a person with
    /// an order, or a process that asks for an observation.
    pub(super) fn handle_inventory_event(&mut self, event: InformerEvent<ResourceVersion>) {
        let Some((id, rv)) = self.own_object_event(event, "the inventories") else { return };
        match (self.source_by_name(id.name()), rv) {
            (Some(source), Some(rv)) => {
                self.records.inventories[source].seen = rv;
                self.follow_inventory(source);
            }
            // It was deleted, or lost its label: no version of it is known to be there.
            (Some(source), None) => {
                self.records.inventories[source].seen = ResourceVersion(u64::MAX);
                self.follow_inventory(source);
            }
            (None, Some(_)) if is_inventory_name(id.name()) => {
                self.engine.handle(Input::ObservationExpected, Instant::now());
            }
            (None, _) => {}
        }
    }

    /// Returns a watch's news of an object in rhumb's namespace: its version, or none where it is
    /// gone.
    pub(super) fn own_object_event(
        &mut self,
        event: InformerEvent<ResourceVersion>,
        watched: &str,
    ) -> Option<(ObjectId, Option<ResourceVersion>)> {
        let object_change = match event.change {
            InformerChange::Apply(id, rv) => (id, Some(rv)),
            InformerChange::Delete(id, _) => (id, None),
            InformerChange::Failed(error, _) if error.class() == ErrorClass::Internal => {
                self.fatal = Some(error.into());
                return None;
            }
            InformerChange::Failed(error, wait) => {
                tracing::warn!(?wait, "{watched} cannot be watched: {error}");
                return None;
            }
            InformerChange::Init | InformerChange::InitDone | InformerChange::Resumed => return None,
        };
        Some(object_change).filter(|(id, _)| id.namespace() == Some(&*self.records.namespace))
    }

    pub(super) fn source_by_name(&self, name: &str) -> Option<SourceId> {
        self.engine
            .view()
            .source_ids()
            .find(|source| *self.engine.view().source(*source).declared.name == *name)
    }

    /// Reads an inventory that its watch shows in a newer version. While a call about it is on its
    /// way, its answer shows whether that is needed.
    pub(super) fn follow_inventory(&mut self, source: SourceId) {
        let store = &self.records.inventories[source];
        let known = store.inventory.inventory().and_then(|inventory| inventory.known.as_ref());
        let older = match &store.inventory {
            InventoryState::Unread => false,
            InventoryState::Absent => true,
            InventoryState::Present(_) => known.is_none_or(|(_, known)| *known < store.seen),
        };
        if older {
            self.read_inventory(source);
        }
    }
}
