//! What people ask for: noticing it, and looking up where a way back leads to.

use std::sync::Arc;

use super::super::feed::Order;
use super::super::inventory::Known;
use super::{Pins, Reconciler, Until};
use crate::cluster::{InformerEvent, News};
use crate::engine::{Past, Rv, SourceId};
use crate::object::{Class, ObjectId};

impl Reconciler {
    /// Orders are for whoever stays: a single pass keeps to what is paused or held, and carries out nothing.
    pub(super) fn carry_out_orders(&mut self) {
        if self.until != Until::Stopped {
            return;
        }
        self.engine.carry_out_orders();
        let undos: Vec<_> = self.engine.undos().filter(|undo| !self.undoing.contains(&undo.token)).collect();
        let mut impossible = Vec::new();
        for undo in undos {
            match &self.feeds[undo.source] {
                Some(feed) => {
                    if feed.try_send(Order::LookBack(undo.clone())).is_ok() {
                        self.undoing.insert(undo.token.clone());
                    }
                }
                None => impossible.push(undo.token.clone()),
            }
        }
        for token in impossible {
            self.engine.looked_back(&token, Err("the source has no older revisions".to_owned()));
        }
    }

    pub(super) fn looked_back(&mut self, token: &Arc<str>, past: Result<Past, String>) {
        self.undoing.remove(token);
        self.engine.looked_back(token, past);
        // What it goes back to must stay readable.
        self.pins = Pins::Old;
    }

    /// A source's parent was written: by us, or by a person who wants something.
    pub(super) fn parent_changed(&mut self, event: InformerEvent<Rv>) {
        let Some((id, Some(rv))) = self.own_news(event, "the inventories") else { return };
        let Some(source) = self.source_named(id.name()) else { return };
        self.ledgers[source].seen = rv;
        self.follow_parent(source);
    }

    /// What a watch tells of an object in rhumb's namespace: its version, or none where it is gone.
    pub(super) fn own_news(
        &mut self,
        event: InformerEvent<Rv>,
        watched: &str,
    ) -> Option<(ObjectId, Option<Rv>)> {
        let news = match event.news {
            News::Seen(id, rv) => (id, Some(rv)),
            News::Gone(id, _) => (id, None),
            News::Failed(error, _) if error.class() == Class::Internal => {
                self.fatal = Some(error.into());
                return None;
            }
            News::Failed(error, wait) => {
                tracing::warn!(?wait, "{watched} cannot be watched: {error}");
                return None;
            }
            News::Started | News::Synced | News::Resumed => return None,
        };
        Some(news).filter(|(id, _)| id.namespace() == Some(&*self.namespace))
    }

    pub(super) fn source_named(&self, name: &str) -> Option<SourceId> {
        self.engine.sources().iter().position(|source| *source.name == *name)
    }

    /// Reads a parent that its watch shows in a newer version. While a call about it is on its way, its answer tells
    /// whether that is needed.
    pub(super) fn follow_parent(&mut self, source: SourceId) {
        let ledger = &self.ledgers[source];
        let known = ledger.parent.parent().and_then(|parent| parent.known.as_ref());
        let older = match &ledger.parent {
            Known::Unread => false,
            Known::Absent => true,
            Known::Says(_) => known.is_none_or(|(_, known)| *known < ledger.seen),
        };
        if older {
            self.read_parent(source);
        }
    }
}
