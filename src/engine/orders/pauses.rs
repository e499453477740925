//! The states that people want to last: pauses and holds, which are annotations of objects and of a
//! source's inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::engine::decide::decision::{Action, ApplyPurpose, Decision};
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::records::intents::{Acknowledgement, HoldIntent, ObjectIntents, PauseIntent};
use crate::engine::orders::carry_out::DoneOrder;
use crate::engine::orders::intent_outcome::IntentOutcome;
use crate::engine::orders::order::Order;
use crate::engine::orders::undo::UndoRequest;
use crate::engine::state::Engine;
use crate::engine::{ActiveHold, OptOutPolicy, PauseSubject, Reason, WithheldWrite};
use crate::object::ObjectId;

/// The maximum number of pauses and holds of a source's objects that are acknowledged. All count,
/// but their tokens must not fill the inventory.
pub(crate) const MAX_STATES: usize = 100;

/// The age at which the lookup of an object that a person keeps as it is, and that no informer
/// shows, is repeated. It is soon enough for a person who takes the annotation off, and costs one
/// GET each.
const INTENT_VIEW_LIFETIME: Duration = Duration::from_secs(15);

/// The intents and orders of people.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct OrderState {
    /// Objects of which people ask something.
    pub(in crate::engine) objects_with_intents: BTreeSet<ObjectId>,
    /// The objects of `asked` that only a lookup shows, each with the first decision after it.
    looked_up: BTreeMap<ObjectId, Instant>,
    /// The orders that are there, of each source whose orders object was read.
    pub(super) pending: BTreeMap<SourceId, Vec<Order>>,
    /// Orders that were carried out since they were last reported.
    pub(super) done: Vec<DoneOrder>,
    /// Objects of which it was reported that the order on them is not obeyed, with its beginning.
    pub(super) misplaced: BTreeMap<ObjectId, Arc<str>>,
    /// Indicates whether one of them was seen since orders on them were reported.
    pub(super) intents_changed: bool,
    /// Objects that somebody takes out of our hands, each with the word that asks, as they were
    /// seen last.
    pub(in crate::engine) opted_out: BTreeMap<ObjectId, &'static str>,
    /// Wall-clock time at a moment.
    clock: Option<(Instant, Timestamp)>,
    /// The time of the last check for expired holds.
    last_hold_check: Option<Instant>,
    /// The objects that were held then.
    held_objects: BTreeSet<ObjectId>,
    /// Rollbacks that are being looked up, by source and token.
    pub(super) undos: BTreeMap<(SourceId, Arc<str>), UndoRequest>,
    /// The acknowledgements to record, until the inventory has them.
    pub(in crate::engine) answers: Vec<(SourceId, Acknowledgement)>,
    /// Indicates whether there may be something to do.
    pub(super) stale: bool,
}

impl OrderState {
    /// Has the orders looked at again, as what they wait for may be there.
    pub(in crate::engine) fn mark_stale(&mut self) {
        self.stale = true;
    }
}

/// The intents of people for objects.
impl Engine {
    /// Sets the time of day, for holds that end by themselves.
    pub(in crate::engine) fn set_clock(&mut self, now: Instant, wall: Timestamp) {
        self.clear_memo();
        self.orders.clock = Some((now, wall));
        self.rollouts.starts.set_clock(now, wall);
    }

    /// Returns the time of day, where it is known.
    pub(in crate::engine) fn wall_clock(&self) -> Option<Timestamp> {
        self.orders.clock.map(|(_, wall)| wall)
    }

    pub(in crate::engine) fn track_intents(&mut self, id: &ObjectId) {
        // Only a lookup shows an object that has lost our label.
        let before = match self.live_object(id).and_then(|live| live.opt_out) {
            Some(word) => self.orders.opted_out.insert(id.clone(), word),
            None => self.orders.opted_out.remove(id),
        };
        if before != self.orders.opted_out.get(id).copied() {
            // The rest of its unit does not wait for it any more.
            self.rollouts.units.forget_all();
        }
        let is_asked = self.intents(id).is_some();
        if is_asked {
            self.orders.objects_with_intents.insert(id.clone());
        }
        if is_asked || self.orders.objects_with_intents.remove(id) {
            (self.orders.stale, self.orders.intents_changed) = (true, true);
            self.wake_unused_claims();
        }
    }

    /// Returns the intents on the live object. An object that is to be taken over has them too, and
    /// only a lookup shows it.
    pub(in crate::engine) fn intents(&self, id: &ObjectId) -> Option<&ObjectIntents> {
        self.live_object(id)?.intents.as_deref()
    }

    /// Drops the view by a lookup of an object that a person keeps as it is, once it is old. No
    /// informer would show that the annotation is gone.
    pub(in crate::engine) fn expire_intent_view(&mut self, id: &ObjectId, now: Instant) {
        let is_by_lookup =
            self.orders.objects_with_intents.contains(id) && !self.objects.informer_objects.contains_key(id);
        if !is_by_lookup {
            self.orders.looked_up.remove(id);
            return;
        }
        let since = *self.orders.looked_up.entry(id.clone()).or_insert(now);
        if now.duration_since(since) >= INTENT_VIEW_LIFETIME
            && let Some(entry) = self.objects.entries.get_mut(id)
        {
            entry.direct_view = None;
            self.orders.looked_up.remove(id);
        }
    }

    /// Returns when a decision that a person's annotation delays is made again.
    fn requeue_asked(&self, id: &ObjectId, decision: Decision) -> Decision {
        if !self.orders.looked_up.contains_key(id) || matches!(decision.action, Action::Lookup) {
            return decision;
        }
        let again = decision.requeue_after.map_or(INTENT_VIEW_LIFETIME, |at| at.min(INTENT_VIEW_LIFETIME));
        Decision { requeue_after: Some(again), ..decision }
    }

    /// Returns why no new content of an object is released. A rollback goes on, and so does a unit
    /// that is partly released.
    pub(in crate::engine) fn release_pause(&self, id: &ObjectId) -> Option<Reason> {
        let own = self.own_pause(id);
        match self.recorded_unit(id) {
            Some(unit) if !self.can_be_paused(unit) => own,
            // An object that shows its content already is kept from going on with it, step by step.
            Some(unit) if self.is_partly_written(unit) => own.filter(|_| {
                let desired = self.entry(id).and_then(|entry| entry.target_content());
                desired.is_some_and(|(_, desired)| self.is_showing(id, desired.hash))
            }),
            Some(unit) => own.or_else(|| self.pause_within(unit)),
            None => own,
        }
    }

    pub(in crate::engine) fn own_pause(&self, id: &ObjectId) -> Option<Reason> {
        if self.has_rejection(id) {
            return None;
        }
        if let Some(paused) = self.annotated_pause(id) {
            return Some(Reason::Paused(PauseSubject::Object, paused.reason.clone()));
        }
        let wanting = self.entry(id).and_then(|entry| entry.targets.first()).map(|(source, _)| *source);
        let source = wanting.or_else(|| self.source_of(self.informer_object(id)?))?;
        let paused = self.source_pause(source)?;
        let subject = PauseSubject::Source(self.sources[source].declared.name.clone());
        Some(Reason::Paused(subject, paused.reason.clone()))
    }

    /// Returns the pause of a whole source.
    pub(in crate::engine) fn source_pause(&self, source: SourceId) -> Option<&PauseIntent> {
        self.sources[source].inventory.as_ref()?.paused.as_ref()
    }

    /// Returns the pause on the live object itself, where its source heeds it.
    pub(in crate::engine) fn annotated_pause(&self, id: &ObjectId) -> Option<&PauseIntent> {
        let intents = self.orders.objects_with_intents.contains(id).then(|| self.intents(id)).flatten()?;
        intents.paused.as_ref().filter(|_| self.opt_out_of(id) == OptOutPolicy::Allowed)
    }

    /// Returns the hold that is on an object now, with the time that it still lasts.
    pub(in crate::engine) fn active_hold(
        &self,
        id: &ObjectId,
        now: Instant,
    ) -> Option<(&HoldIntent, Duration)> {
        let hold = self.intents(id)?.hold.as_ref();
        let hold = hold.filter(|_| self.opt_out_of(id) == OptOutPolicy::Allowed)?;
        let (at, wall) = self.orders.clock?;
        let end = Duration::try_from(hold.until?.duration_since(wall)).ok()?;
        let left = (at + end).checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some((hold, left))
    }

    /// Returns whether a person keeps a new content of an object from being released.
    pub(in crate::engine) fn is_paused_by_person(&self, id: &ObjectId) -> bool {
        let held = || self.active_hold(id, self.orders.last_hold_check?);
        held().is_some() || self.release_pause(id).is_some()
    }

    /// Lets time pass: what waits for an object whose hold is over goes on.
    ///
    /// The holds of the last time are remembered. The time of day may have moved on since, so they
    /// cannot be found again from what is known now.
    pub(in crate::engine) fn end_holds(&mut self, now: Instant) {
        self.orders.last_hold_check = Some(now);
        let held = |id: &&ObjectId| self.active_hold(id, now).is_some();
        let held: BTreeSet<ObjectId> =
            self.orders.objects_with_intents.iter().filter(held).cloned().collect();
        let before = std::mem::replace(&mut self.orders.held_objects, held);
        let ended: Vec<ObjectId> = before.difference(&self.orders.held_objects).cloned().collect();
        for id in ended {
            self.note_object_change(&id);
        }
    }

    /// Takes out of a decision what a person does not want to happen.
    pub(in crate::engine) fn apply_pauses(
        &self,
        id: &ObjectId,
        decision: Decision,
        now: Instant,
    ) -> Decision {
        self.requeue_asked(id, self.apply_hold(id, decision, now))
    }

    fn apply_hold(&self, id: &ObjectId, decision: Decision, now: Instant) -> Decision {
        if let Some((hold, left)) = self.active_hold(id, now) {
            let withheld = match &decision.action {
                Action::Apply(apply) if apply.purpose == ApplyPurpose::Repair => WithheldWrite::Repair,
                Action::Apply(_) => WithheldWrite::Content,
                Action::Delete(..) => WithheldWrite::Deletion,
                Action::Nothing if decision.reason.is_none() => WithheldWrite::Nothing,
                _ => {
                    let again = decision.requeue_after.map_or(left, |again| again.min(left));
                    return Decision { requeue_after: Some(again), ..decision };
                }
            };
            let hold = ActiveHold { until: hold.until, reason: hold.reason.clone(), withheld };
            return Decision { requeue_after: Some(left), ..Decision::wait(Reason::OnHold(hold)) };
        }
        let is_deletion = matches!(decision.action, Action::Delete(..));
        match is_deletion.then(|| self.release_pause(id)).flatten() {
            Some(reason) => Decision::wait(reason),
            None => decision,
        }
    }
}

/// Acknowledging.
impl Engine {
    /// Acknowledges the pauses and holds of objects.
    pub(in crate::engine) fn acknowledge_states(&mut self) {
        let mut capacity: Vec<usize> = self
            .source_ids()
            .map(|source| MAX_STATES.saturating_sub(self.acknowledged_states(source)))
            .collect();
        for id in self.orders.objects_with_intents.clone() {
            // A copy of an object of ours is neither changed nor deleted, so a pause on it means
            // nothing.
            let Some(source) = self.source_for(&id) else { continue };
            if !self.can_carry_out(source) {
                self.orders.stale = true;
                continue;
            }
            let Some(intents) = self.intents(&id).cloned() else { continue };
            let is_denied = self.opt_out_of(&id) == OptOutPolicy::Denied;
            let outcome =
                |outcome: IntentOutcome| if is_denied { IntentOutcome::Denied(id.clone()) } else { outcome };
            let paused =
                intents.paused.map(|paused| (paused.token, outcome(IntentOutcome::Paused(id.clone()))));
            let held =
                intents.hold.map(|hold| (hold.token, outcome(IntentOutcome::of_hold(&id, hold.until))));
            for (token, outcome) in paused.into_iter().chain(held) {
                if capacity[source] > 0 && !self.is_answered(&token) {
                    capacity[source] -= 1;
                    self.acknowledge(source, &token, &outcome.to_string());
                }
            }
        }
        for source in self.source_ids() {
            self.acknowledge_source(source);
        }
    }

    /// Returns how many pauses and holds of objects are not acknowledged, as the inventory says
    /// enough of them.
    pub(in crate::engine) fn unacknowledged_states(&self, source: SourceId) -> usize {
        // Nearly always none does, and this is asked again and again.
        if self.orders.objects_with_intents.len() <= MAX_STATES {
            return 0;
        }
        let tokens = self.tokens(source);
        tokens.iter().filter(|token| !self.is_answered(token)).count()
    }

    /// Returns how many pauses and holds that last the inventory says, or is going to say.
    fn acknowledged_states(&self, source: SourceId) -> usize {
        let recorded = self.sources[source].inventory.iter().flat_map(|inventory| &inventory.acknowledged);
        let answers = self.orders.answers.iter().filter(|(of, _)| *of == source).map(|(_, answer)| answer);
        recorded.chain(answers).filter(|one| one.is_of_state() && !one.is_over()).count()
    }

    /// Returns whether enough has been read to carry out an order on an object of this source.
    pub(in crate::engine) fn can_carry_out(&self, source: SourceId) -> bool {
        let state = &self.sources[source];
        state.head.is_some()
            && self.rollouts.ledger.latest().is_some()
            && state.inventory.is_some()
            && self.listed_kinds(source).all(|kind| self.is_synced(source, kind))
    }

    /// Acknowledges the source's own pause, and the end of pauses and holds that are gone.
    fn acknowledge_source(&mut self, source: SourceId) {
        if !self.can_carry_out(source) {
            return;
        }
        let Some(inventory) = &self.sources[source].inventory else { return };
        let paused = inventory.paused.clone().filter(|paused| !self.is_answered(&paused.token));
        let there = self.tokens(source);
        let over = |one: &&Acknowledgement| !there.contains(&one.token);
        let over: Vec<Acknowledgement> = inventory.acknowledged.iter().filter(over).cloned().collect();
        if let Some(paused) = paused {
            let name = self.sources[source].declared.name.clone();
            self.acknowledge(source, &paused.token, &IntentOutcome::SourcePaused(name).to_string());
        }
        for one in over {
            let known = self
                .orders
                .answers
                .iter()
                .any(|(_, answer)| answer.token == one.token && answer.is_of_state());
            if let Some(outcome) = one.end_outcome().filter(|_| !known) {
                self.acknowledge(source, &one.token, &outcome.to_string());
            }
        }
    }

    /// Returns the tokens of all pauses and holds that are on objects of a source, and on its
    /// inventory.
    pub(in crate::engine) fn tokens(&self, source: SourceId) -> BTreeSet<Arc<str>> {
        let of_source = |id: &&ObjectId| self.source_for(id) == Some(source);
        let intents =
            self.orders.objects_with_intents.iter().filter(of_source).filter_map(|id| self.intents(id));
        let tokens = intents.flat_map(|intents| {
            let paused = intents.paused.iter().map(|paused| &paused.token);
            paused.chain(intents.hold.iter().map(|hold| &hold.token)).cloned()
        });
        let paused = self.source_pause(source).map(|paused| paused.token.clone());
        tokens.chain(paused).collect()
    }

    /// Returns whether a pause or hold was acknowledged, by whichever source: an object may have
    /// come from another one, with its pause.
    fn is_answered(&self, token: &str) -> bool {
        let recorded = self.sources.states().iter().filter_map(|source| source.inventory.as_ref());
        let recorded = recorded.flat_map(|inventory| &inventory.acknowledged);
        let answers = self.orders.answers.iter().map(|(_, answer)| answer);
        recorded.chain(answers).any(|one| *one.token == *token && one.is_of_state())
    }

    pub(in crate::engine) fn acknowledge(&mut self, source: SourceId, token: &Arc<str>, outcome: &str) {
        self.orders.answers.push((source, Acknowledgement::new(token, outcome)));
    }
}
