//! Reading and writing the inventories.

use std::time::Duration;

use super::super::event::Event;
use super::super::inventory::{self, Call, Known, Need, Tidy};
use super::Reconciler;
use crate::cluster::{self, Parent};
use crate::engine::{Inventory, SourceId, Writes};
use crate::object::ObjectId;

impl Reconciler {
    pub(super) fn reread_parents(&mut self) {
        for source in 0..self.ledgers.len() {
            if self.ledgers[source].parent != Known::Unread {
                self.read_parent(source);
            }
        }
    }

    pub(super) fn read_parent(&mut self, source: SourceId) {
        if std::mem::replace(&mut self.ledgers[source].call, Call::Busy) == Call::Busy {
            return;
        }
        let (cluster, events) = (self.hands.cluster.clone(), self.channels.events.clone());
        let (namespace, name) = (self.namespace.clone(), self.engine.source(source).name.clone());
        tokio::spawn(async move {
            let parent = cluster.parent(&namespace, &name).await;
            let _ = events.send(Event::Parent(source, parent)).await;
        });
    }

    pub(super) fn parent_answered(
        &mut self,
        source: SourceId,
        parent: Result<Option<Parent>, cluster::Error>,
    ) {
        let ledger = &mut self.ledgers[source];
        ledger.call = Call::None;
        match parent {
            Ok(parent) => {
                let inventory = inventory::read(parent.as_ref(), &self.places[source]);
                ledger.parent = parent.map_or(Known::Absent, Known::Says);
                // It may have been deleted or edited, or a write may have failed that named a new kind.
                let declared = self.engine.source(source).catalog.ids().map(ObjectId::group_kind);
                if declared.into_iter().any(|kind| !inventory.kinds.contains(&kind)) {
                    ledger.need = Need::Growth;
                }
                self.watched.hold(inventory.kinds.iter().cloned(), &mut self.engine);
                self.engine.inventory(source, self.visible(source, inventory));
            }
            Err(error) => {
                tracing::warn!(source = %self.engine.source(source).name, "the inventory: {error}");
                ledger.call = Call::Busy;
                let (events, cluster) = (self.channels.events.clone(), self.hands.cluster.clone());
                let (namespace, name) = (self.namespace.clone(), self.engine.source(source).name.clone());
                let wait = Duration::from_millis(500).mul_f64(1.0 + super::super::random());
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    let parent = cluster.parent(&namespace, &name).await;
                    let _ = events.send(Event::Parent(source, parent)).await;
                });
            }
        }
    }

    /// What the inventory says is judged from where the source really is.
    pub(super) fn is_at(&mut self, source: SourceId, place: String) {
        if let Known::Says(parent) = &self.ledgers[source].parent {
            let inventory = inventory::read(Some(parent), &place);
            self.engine.inventory(source, self.visible(source, inventory));
        }
        self.places[source] = place;
    }

    /// A source that is only observed writes no inventory; its decisions are shown as if it had.
    fn visible(&self, source: SourceId, mut inventory: Inventory) -> Inventory {
        if self.engine.source(source).writes == Writes::Observed {
            inventory.kinds.extend(self.engine.source(source).catalog.ids().map(ObjectId::group_kind));
        }
        inventory
    }

    /// Writes the parents that do not say what they should.
    pub(super) fn keep_inventories(&mut self) {
        for source in 0..self.ledgers.len() {
            let state = self.engine.source(source);
            if self.ledgers[source].call == Call::Busy
                || self.ledgers[source].parent == Known::Unread
                || state.head.is_none()
                || state.writes == Writes::Observed
            {
                continue;
            }
            let tidy = match self.ledgers[source].need {
                Need::Growth => Tidy::Grow,
                Need::Tidying if self.is_idle() && self.all_synced(source) => Tidy::Exact,
                Need::Nothing | Need::Tidying
                    if self.read.contains(&source)
                        && !inventory::tells_all(
                            &self.engine,
                            source,
                            self.ledgers[source].parent.parent(),
                        ) =>
                {
                    Tidy::Grow
                }
                Need::Nothing | Need::Tidying => continue,
            };
            self.ledgers[source].need = if tidy == Tidy::Grow { Need::Tidying } else { Need::Nothing };
            let known = self.ledgers[source].parent.parent().cloned();
            let wanted = inventory::wanted(&self.engine, source, &self.places[source], known.as_ref(), tidy);
            let nothing_to_say = known.is_none() && wanted.kinds.is_empty();
            if known.as_ref() == Some(&wanted) || nothing_to_say {
                continue;
            }
            self.ledgers[source].call = Call::Busy;
            let (cluster, events) = (self.hands.cluster.clone(), self.channels.events.clone());
            let (namespace, name) = (self.namespace.clone(), state.name.clone());
            tokio::spawn(async move {
                let saved = cluster.save_parent(&namespace, &name, known.as_ref(), &wanted).await;
                let _ = events.send(Event::Parent(source, saved.map(Some))).await;
            });
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        let depth = self.queue.depth();
        depth.ready == 0 && depth.processing == 0 && self.writes == 0 && !self.is_moving()
    }

    /// Something about inventories may have changed that can wait until nothing else is left to do.
    pub(super) fn tidy_later(&mut self) {
        for ledger in self.ledgers.iter_mut().filter(|ledger| ledger.need == Need::Nothing) {
            ledger.need = Need::Tidying;
        }
    }

    fn all_synced(&self, source: SourceId) -> bool {
        let state = self.engine.source(source);
        let held = state.inventory.iter().flat_map(|inventory| inventory.kinds.iter().cloned());
        state.incomplete.is_none()
            && held
                .chain(state.catalog.ids().map(ObjectId::group_kind))
                .all(|kind| self.engine.is_synced(&kind))
    }
}
