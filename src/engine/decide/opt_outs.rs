//! Opt-outs: annotations by others on live objects that take them out of rhumb's hands.
//!
//! **Invariant:** an opt-out only reduces what is done to the very object that carries it.

use crate::object::annotations;
use std::collections::BTreeMap;
use std::time::Instant;

use crate::engine::state::Engine;
use crate::engine::{ObjectEntry, OptOutPolicy, SourceId};
use crate::object::ObjectId;

impl Engine {
    /// Says whether a source heeds what others put on its live objects.
    #[cfg(test)]
    pub(in crate::engine) fn set_opt_out(&mut self, source: SourceId, opt_out: OptOutPolicy) {
        self.sources[source].opt_out = opt_out;
    }

    /// Says whether a source takes objects over.
    #[cfg(test)]
    pub(in crate::engine) fn set_adopt(&mut self, source: SourceId, adopt: crate::engine::AdoptPolicy) {
        self.sources[source].adopt = adopt;
    }

    /// Returns the source that wants an object, or that provably has it in its inventory: its
    /// orders and its opt-out policy count.
    pub(in crate::engine) fn source_for(&self, id: &ObjectId) -> Option<SourceId> {
        let wanting = self.entry(id).and_then(|entry: &ObjectEntry| entry.targets.first());
        wanting.map(|(source, _)| *source).or_else(|| self.inventory_source(self.informer_object(id)?))
    }

    /// Returns whether what others put on an object has an effect.
    pub(in crate::engine) fn opt_out_of(&self, id: &ObjectId) -> OptOutPolicy {
        self.source_for(id).map_or(OptOutPolicy::default(), |source| self.sources[source].opt_out)
    }

    /// Returns the objects of a source that somebody asks to leave alone, each with the word that
    /// asks.
    pub(crate) fn opt_outs(&self, source: SourceId, now: Instant) -> BTreeMap<ObjectId, &'static str> {
        let by_word = self.orders.opted_out.iter().map(|(id, word)| (id, *word));
        let by_person = self.orders.asked.iter().filter_map(|id| {
            let asked = self.intents(id)?;
            let is_denied = self.opt_out_of(id) == OptOutPolicy::Denied;
            if asked.hold.is_some() && (is_denied || self.active_hold(id, now).is_some()) {
                return Some((id, annotations::HOLD));
            }
            asked.paused.is_some().then_some((id, annotations::PAUSED))
        });
        let all = by_person.chain(by_word);
        let own = all.filter(|(id, _)| self.source_for(id) == Some(source));
        own.map(|(id, word)| (id.clone(), word)).collect()
    }
}
