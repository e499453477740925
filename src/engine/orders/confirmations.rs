//! Confirmed deletions: how a confirmation is taken, and how it ends.
//!
//! A confirmation is for one deletion of one incarnation. It comes by an order, is recorded in the
//! inventory together with what came of that order, and counts from then on. It ends when any
//! source wants the object again: what goes after that needs a new one.

use std::collections::BTreeSet;

use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::orders::order_outcome::{OrderObstacle, OrderOutcome};
use crate::engine::state::Engine;
use crate::engine::{SourceState, Uid};
use crate::object::ObjectId;

/// The maximum number of confirmed deletions in an inventory: 150 kB of it.
const MAX_RECORDED_CONFIRMATIONS: usize = 4000;

impl Engine {
    /// Confirms the deletion of those incarnations that the source has and wants no more, and
    /// returns the outcome. A kept one is not confirmed: it would be deleted without a question once
    /// the word that keeps it is gone.
    pub(in crate::engine) fn confirm(
        &mut self,
        source: SourceId,
        first: &ObjectId,
        uids: &BTreeSet<Uid>,
    ) -> OrderOutcome {
        let is_named = |id: &&ObjectId| self.informer_object(id).is_some_and(|live| uids.contains(&live.uid));
        let named = self.unwanted_of(source).filter(is_named);
        let found: Vec<ObjectId> = named.filter(|id| !self.is_kept(source, id)).cloned().collect();
        let name = self.sources[source].declared.name.clone();
        if found.is_empty() {
            return OrderOutcome::NothingDone(OrderObstacle::NothingPending(name));
        }
        let new: BTreeSet<Uid> =
            found.iter().filter_map(|id| self.informer_object(id)).map(|live| live.uid.clone()).collect();
        let all = self.recorded_confirmations(source).union(&new).count();
        if all > MAX_RECORDED_CONFIRMATIONS {
            let most = MAX_RECORDED_CONFIRMATIONS as u32;
            return OrderOutcome::NothingDone(OrderObstacle::TooManyConfirmations(name, most));
        }
        let first = found.iter().find(|id| *id == first).unwrap_or(&found[0]).clone();
        let state = &mut self.sources[source];
        state.withdrawn_confirmations.retain(|uid| !new.contains(uid));
        state.pending_confirmations.extend(new);
        let not_pending = (uids.len() - found.len()) as u32;
        OrderOutcome::Confirmed { first, others: (found.len() - 1) as u32, not_pending }
    }

    /// Returns the incarnations whose deletion counts as confirmed.
    pub(in crate::engine) fn confirmations(&self, source: SourceId) -> BTreeSet<Uid> {
        let state = &self.sources[source];
        let recorded = state.inventory.iter().flat_map(|inventory| &inventory.confirmed);
        let recorded = recorded.filter(|uid| !state.withdrawn_confirmations.contains(*uid));
        recorded.chain(&state.declared.confirmed).cloned().collect()
    }

    /// Returns the confirmed deletions that a source's inventory should say.
    fn recorded_confirmations(&self, source: SourceId) -> BTreeSet<Uid> {
        let state = &self.sources[source];
        let recorded = state.inventory.iter().flat_map(|inventory| &inventory.confirmed);
        let recorded = recorded.filter(|uid| !state.withdrawn_confirmations.contains(*uid));
        recorded.chain(&state.pending_confirmations).cloned().collect()
    }

    /// Returns the confirmed deletions that a source's inventory should say, where those are not the
    /// ones that it says.
    pub(in crate::engine) fn next_confirmed(&self, source: SourceId) -> Option<BTreeSet<Uid>> {
        let state = &self.sources[source];
        let known = &state.inventory.as_ref()?.confirmed;
        if state.withdrawn_confirmations.is_empty() && state.pending_confirmations.is_empty() {
            return None;
        }
        Some(self.recorded_confirmations(source)).filter(|next| next != known)
    }

    /// Returns the confirmed deletions that are still to come, once everything is known to be seen.
    pub(in crate::engine) fn open_confirmations(&self, source: SourceId) -> BTreeSet<Uid> {
        let mut all = self.recorded_confirmations(source);
        if !all.is_empty() {
            let unwanted = self.unwanted_of(source).filter_map(|id| self.informer_object(id));
            let unwanted: BTreeSet<&Uid> = unwanted.map(|live| &live.uid).collect();
            all.retain(|uid| unwanted.contains(uid));
        }
        all
    }

    /// Lets go of the confirmation that an object is to be deleted, as a source wants it.
    pub(in crate::engine) fn withdraw_confirmation(&mut self, id: &ObjectId) {
        let may_be = |state: &SourceState| {
            let recorded = state.inventory.as_ref().is_some_and(|inventory| !inventory.confirmed.is_empty());
            recorded || !state.pending_confirmations.is_empty()
        };
        // Nearly always nothing is confirmed, and this is asked with each change.
        if !self.sources.states().iter().any(may_be) {
            return;
        }
        let Some(uid) = self.informer_object(id).map(|live| live.uid.clone()) else { return };
        for state in self.sources.states_mut() {
            let recorded =
                state.inventory.as_ref().is_some_and(|inventory| inventory.confirmed.contains(&uid));
            if state.pending_confirmations.remove(&uid) || recorded {
                // A write that says it may be on its way.
                state.withdrawn_confirmations.insert(uid.clone());
                state.prunes.mark_stale();
            }
        }
    }

    /// Drops the recorded confirmations of a new inventory. They are not written down again, and
    /// those for a desired object do not count.
    pub(in crate::engine) fn drop_recorded_confirmations(&mut self, source: SourceId) {
        let state = &mut self.sources[source];
        let Some(inventory) = &state.inventory else { return };
        state.pending_confirmations.retain(|uid| !inventory.confirmed.contains(uid));
        state.withdrawn_confirmations.retain(|uid| inventory.confirmed.contains(uid));
        if inventory.confirmed.is_empty() {
            return;
        }
        let recorded = inventory.confirmed.clone();
        let is_wanted =
            |id: &ObjectId| self.entry(id).is_some_and(|entry: &ObjectEntry| !entry.targets.is_empty());
        let came_back =
            self.informer_objects().filter(|(id, live)| recorded.contains(&live.uid) && is_wanted(id));
        let came_back: Vec<Uid> = came_back.map(|(_, live)| live.uid.clone()).collect();
        self.sources[source].withdrawn_confirmations.extend(came_back);
    }

    /// Returns whether all that a source has was listed, so that it is known what waits for its
    /// deletion.
    pub(in crate::engine) fn can_see_pending(&self, source: SourceId) -> bool {
        let state = &self.sources[source];
        state.is_complete()
            && state.head.is_some()
            && state.inventory.is_some()
            && self.listed_kinds(source).all(|kind| self.is_synced(source, kind))
    }
}
