//! Sources that a person has deleted: what is left of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::inventory::{Call, Known};
use super::Reconciler;
use crate::engine::{Judgement, Life, SourceId};
use crate::report::Left;

impl Reconciler {
    /// Of each that ends and has been looked at as a whole.
    pub(super) fn endings(&self) -> BTreeMap<Arc<str>, Left> {
        let ends = self.engine.sources().iter().enumerate().filter(|(_, source)| source.life == Life::Ends);
        ends.filter_map(|(number, source)| Some((source.name.clone(), self.left(number)?))).collect()
    }

    /// What is being deleted is left until it is gone, whatever keeps it.
    fn left(&self, source: SourceId) -> Option<Left> {
        let ledger = &self.ledgers[source];
        if ledger.call == Call::Busy || !self.read.contains(&source) {
            return None;
        }
        if ledger.parent == Known::Absent {
            return Some(Left::Unknown);
        }
        self.engine.source(source).inventory.as_ref()?;
        if !self.all_synced(source) {
            return None;
        }
        let judged: BTreeMap<_, _> = self.engine.judgements(source).collect();
        let mut members =
            self.engine.all_live().filter(|(_, live)| self.engine.source_of(live) == Some(source));
        let goes = members.any(|(id, _)| !matches!(judged.get(id), Some(Judgement::Keep(_))));
        Some(if goes { Left::Objects } else { Left::Nothing })
    }
}
