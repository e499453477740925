//! Sources that a person has deleted: what is left of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::inventory::{self, Call, Known};
use super::Reconciler;
use crate::engine::{Judgement, Life, Sealing, SourceId};
use crate::object::ObjectId;
use crate::report::Left;

impl Reconciler {
    /// Of each that ends and has been looked at as a whole, or cannot be.
    pub(super) fn endings(&self) -> BTreeMap<Arc<str>, Left> {
        let ends = self.engine.sources().iter().enumerate().filter(|(_, source)| source.life == Life::Ends);
        ends.filter_map(|(number, source)| Some((source.name.clone(), self.left(number)?))).collect()
    }

    /// Why what a source has cannot be known before a person does something.
    pub(super) fn trouble(&self, source: SourceId) -> Option<String> {
        let why = self.ledgers[source].trouble.as_ref()?;
        Some(format!("its ConfigMap cannot be read or written: {why}"))
    }

    /// What is being deleted is left until it is gone, whatever keeps it.
    fn left(&self, source: SourceId) -> Option<Left> {
        let ledger = &self.ledgers[source];
        if let Some(why) = self.trouble(source) {
            return Some(Left::Unread(why));
        }
        if ledger.call == Call::Busy || !self.read.contains(&source) {
            return None;
        }
        if ledger.parent == Known::Absent {
            return Some(Left::Unknown);
        }
        if ledger.sealing == Sealing::Locked {
            let why = "its ConfigMap has hashes of Secrets that cannot be read without their key";
            return Some(Left::Unread(why.to_owned()));
        }
        self.engine.source(source).inventory.as_ref()?;
        if !self.all_synced(source) {
            return self.engine.unlisted(source).map(Left::Unread);
        }
        let judged: BTreeMap<_, _> = self.engine.judgements(source).collect();
        let members = self.engine.all_live().filter(|(_, live)| self.engine.source_of(live) == Some(source));
        let goes = members.map(|(id, _)| id);
        let stays = |id: &ObjectId| matches!(judged.get(id), Some(Judgement::Keep(_) | Judgement::Leave(_)));
        let mut goes = goes.filter(|id| !stays(id)).peekable();
        if goes.peek().is_some() {
            return Some(Left::Objects(self.first_of(goes)));
        }
        // Whoever made it anew did not know which kinds it had named.
        let told = ledger.parent.parent().and_then(inventory::place);
        Some(if told.is_some() { Left::Nothing } else { Left::Unknown })
    }

    /// One of those that are left, with what it waits for: what does not pass by itself comes first.
    fn first_of<'a>(&self, left: impl Iterator<Item = &'a ObjectId>) -> Option<String> {
        let waits = left.filter_map(|id| {
            let wanting = self.engine.entry(id).and_then(|entry| entry.wants.first());
            if let Some((other, _)) = wanting {
                let name = &self.engine.source(*other).name;
                return Some((
                    (false, id),
                    format!("{id}: source {name} wants it, and has not taken it over"),
                ));
            }
            let reason = self.open.get(id)?;
            Some(((!reason.is_refusal(), id), format!("{id}: {reason}")))
        });
        waits.min_by_key(|(order, _)| *order).map(|(_, words)| words)
    }
}
