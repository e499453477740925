//! Carries out orders, and acknowledges them.
//!
//! An order is a key of its source's orders object, its acknowledgement a line of the source's
//! inventory. Both are states. An order is carried out until its token is acknowledged, and never
//! again after that, whoever dies when. Its effects are written together with its acknowledgement,
//! and only after that its key may go.

use std::sync::Arc;

use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::facts::live_object::live_overlay;
use crate::engine::facts::records::intents::Acknowledgement;
use crate::engine::facts::records::rejection::{Rejection, RejectionAction};
use crate::engine::facts::records::release_unit::ReleaseUnit;
use crate::engine::orders::order::{Order, OrderVerb};
use crate::engine::orders::order_outcome::{AnsweredOrder, OrderObstacle, OrderOutcome, RejectedUnit};
use crate::engine::orders::undo::UndoRequest;
use crate::engine::rollout::rollback::rejection_cause::RejectionCause;
use crate::engine::rollout::steps::PromotionRequest;
use crate::engine::state::Engine;
use crate::engine::{DesiredObject, LiveObject, RolloutOverlay};
use crate::object::{ContentHash, ObjectId};

/// The number of acknowledgements kept, besides those of orders and intents that are still there.
const MAX_ACKNOWLEDGEMENTS: usize = 50;

/// An order that was carried out, and is to be reported.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct DoneOrder {
    /// The source that it was given to.
    source: SourceId,
    /// The identity of the order.
    token: Arc<str>,
    object: ObjectId,
    answer: AnsweredOrder,
}

/// The answer to an order.
pub(in crate::engine) enum OrderAnswer {
    /// It is done, or there was nothing to do.
    Done(OrderOutcome),
    /// It is answered once more is known.
    Deferred,
}

impl OrderAnswer {
    /// Returns the answer to an order that has no effect.
    pub(in crate::engine) fn nothing_done(obstacle: OrderObstacle) -> Self {
        Self::Done(OrderOutcome::NothingDone(obstacle))
    }
}

/// Reading orders, and what becomes of them.
impl Engine {
    /// Takes over the orders that are in the orders object of a source.
    pub(in crate::engine) fn take_orders(&mut self, source: SourceId, orders: Vec<Order>) {
        for id in orders.iter().map(|order| &order.object) {
            if self.informer_object(id).is_some() {
                self.note_object_change(id);
            }
        }
        // An undo that is no longer ordered is not carried out once its target is known.
        let is_ordered = |undo: &UndoRequest| {
            let verb = OrderVerb::Undo(undo.to.clone());
            let is_same = |order: &Order| order.object == undo.id && order.verb == verb;
            orders.iter().any(|order| order.token == undo.token && is_same(order))
        };
        self.orders.undos.retain(|(of, _), undo| *of != source || is_ordered(undo));
        self.orders.pending.insert(source, orders);
        self.orders.stale = true;
    }

    /// Returns the tokens of orders that are needed no longer: the inventory says what came of
    /// them, and it has come.
    pub(in crate::engine) fn finished_orders(&self, source: SourceId) -> Vec<Arc<str>> {
        let Some(orders) = self.orders.pending.get(&source) else { return Vec::new() };
        let finished =
            |order: &&Order| self.is_acknowledged(source, &order.token) && !self.is_in_effect(source, order);
        orders.iter().filter(finished).map(|order| order.token.clone()).collect()
    }

    /// Does the same as [`Engine::take_done_orders`], as a part of that call.
    pub(in crate::engine) fn drain_done_orders(&mut self) -> Vec<(SourceId, ObjectId, AnsweredOrder)> {
        let all = std::mem::take(&mut self.orders.done);
        let (written, open): (Vec<DoneOrder>, Vec<DoneOrder>) =
            all.into_iter().partition(|done| self.is_acknowledged(done.source, &done.token));
        self.orders.done = open;
        written.into_iter().map(|done| (done.source, done.object, done.answer)).collect()
    }

    /// Does the same as [`Engine::take_misplaced_orders`], as a part of that call.
    pub(in crate::engine) fn drain_misplaced_orders(&mut self) -> Vec<(SourceId, ObjectId)> {
        if !std::mem::take(&mut self.orders.intents_changed) {
            return Vec::new();
        }
        let objects = self.orders.objects_with_intents.iter();
        let found = objects.filter_map(|id| Some((id, self.intents(id)?.misplaced.clone()?)));
        let found: Vec<(ObjectId, Arc<str>)> = found.map(|(id, text)| (id.clone(), text)).collect();
        let is_there =
            |id: &ObjectId, _: &mut Arc<str>| found.binary_search_by(|(one, _)| one.cmp(id)).is_ok();
        self.orders.misplaced.retain(is_there);
        let mut new = Vec::new();
        for (id, text) in found {
            let Some(source) = self.informer_object(&id).and_then(|live| self.source_of(live)) else {
                continue;
            };
            if self.orders.misplaced.get(&id) != Some(&text) {
                self.orders.misplaced.insert(id.clone(), text);
                new.push((source, id));
            }
        }
        new
    }

    /// Returns the order about the rollout of this content.
    pub(in crate::engine) fn promotion_request(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        live: &LiveObject,
    ) -> PromotionRequest {
        // The object's own annotations are anybody's who may write it.
        let Some((source, _)) = self.entry(id).and_then(ObjectEntry::target_content) else {
            return PromotionRequest::None;
        };
        let orders = self.orders.pending.get(&source).into_iter().flatten();
        let step = live_overlay(live).and_then(RolloutOverlay::step);
        let mut found = PromotionRequest::None;
        for order in orders.filter(|order| order.object == *id) {
            match order.verb {
                OrderVerb::PromoteFull(content) if desired.has_hash(content) => {
                    return PromotionRequest::Full;
                }
                OrderVerb::Promote(content, from)
                    if desired.has_hash(content)
                        && (found == PromotionRequest::None || Some(from) == step) =>
                {
                    found = PromotionRequest::OneStep { from };
                }
                _ => {}
            }
        }
        found
    }

    /// Returns whether an order works as long as it is there, or may: a promotion, until the rollout
    /// has come past its step.
    fn is_in_effect(&self, source: SourceId, order: &Order) -> bool {
        let (content, last) = match order.verb {
            OrderVerb::Promote(content, from) => (content, from),
            OrderVerb::PromoteFull(content) => (content, u32::MAX),
            _ => return false,
        };
        // A process that has just begun knows neither what is wanted nor what is there.
        if !self.can_carry_out(source) || self.release_key_blocker().is_some() {
            return true;
        }
        let id = &order.object;
        let wanted = self.entry(id).and_then(ObjectEntry::target_content);
        wanted.is_some_and(|(of, desired)| of == source && desired.has_hash(content))
            && self.is_showing(id, content)
            && self
                .live_object(id)
                .and_then(live_overlay)
                .and_then(RolloutOverlay::step)
                .is_some_and(|step| step <= last)
    }
}

/// Carrying out.
impl Engine {
    /// Does what people have ordered, where that can be done now. To be called at the beginning of
    /// each turn.
    pub(in crate::engine) fn carry_out_orders(&mut self) {
        if self.try_carry_out_orders() {
            self.acknowledge_states();
        }
    }

    /// Does what the pending orders ask for, and no more: a single pass is given confirmations
    /// alone. Returns whether there may have been something to do.
    pub(in crate::engine) fn try_carry_out_orders(&mut self) -> bool {
        if !std::mem::take(&mut self.orders.stale) {
            return false;
        }
        for (source, orders) in self.orders.pending.clone() {
            for order in orders {
                let token = &order.token;
                let waits = self.orders.undos.contains_key(&(source, token.clone()));
                if waits || self.is_carried_out(source, token) {
                    continue;
                }
                let knows_enough = match order.verb {
                    OrderVerb::Confirm(_) => self.can_see_pending(source),
                    _ => self.can_carry_out(source),
                };
                if !knows_enough {
                    self.orders.stale = true;
                    continue;
                }
                if let OrderAnswer::Done(outcome) = self.carry_out(source, &order) {
                    let answer = AnsweredOrder { outcome, by: order.by.clone() };
                    self.record_order_answer(source, token, &order.object, answer);
                }
            }
        }
        true
    }

    fn carry_out(&mut self, source: SourceId, order: &Order) -> OrderAnswer {
        let (id, by) = (&order.object, &order.by);
        match &order.verb {
            OrderVerb::Confirm(uids) => OrderAnswer::Done(self.confirm(source, id, uids)),
            // Nothing proves before what is there. Of a step only a seal does.
            OrderVerb::Promote(..) | OrderVerb::PromoteFull(_) if self.release_key_blocker().is_some() => {
                OrderAnswer::Deferred
            }
            _ if self.is_reading_release_key() => OrderAnswer::Deferred,
            // The rights over one source's orders must not reach another's.
            _ if self.live_object(id).is_none() || self.source_for(id) != Some(source) => {
                let name = self.sources[source].declared.name.clone();
                OrderAnswer::nothing_done(OrderObstacle::ForeignObject(id.clone(), name))
            }
            OrderVerb::Undo(to) => self.undo(source, order, to.clone()),
            OrderVerb::Retry => self.retry(source, id),
            OrderVerb::Abort => OrderAnswer::Done(self.abort(source, id, by)),
            OrderVerb::Promote(content, _) | OrderVerb::PromoteFull(content) => {
                OrderAnswer::Done(self.promote(id, *content))
            }
            OrderVerb::Unknown(word) => OrderAnswer::nothing_done(OrderObstacle::UnknownOrder(word.clone())),
        }
    }

    /// Records the answer to an order.
    pub(in crate::engine) fn record_order_answer(
        &mut self,
        source: SourceId,
        token: &Arc<str>,
        id: &ObjectId,
        answer: AnsweredOrder,
    ) {
        self.acknowledge(source, token, &answer.to_string());
        let done = DoneOrder { source, token: token.clone(), object: id.clone(), answer };
        self.orders.done.push(done);
    }

    /// Returns the outcome of a promotion. The order itself lets the steps go on, and remains until
    /// they have.
    fn promote(&self, id: &ObjectId, content: ContentHash) -> OrderOutcome {
        let step = self.live_object(id).and_then(live_overlay).and_then(RolloutOverlay::step);
        match step.filter(|_| self.is_showing(id, content)) {
            Some(step) => OrderOutcome::Promoted(id.clone(), step),
            None => OrderOutcome::NothingDone(OrderObstacle::NoStep(id.clone())),
        }
    }

    fn abort(&mut self, source: SourceId, id: &ObjectId, by: &Arc<str>) -> OrderOutcome {
        let entry = self.entry(id);
        let rejected = self.has_rejection(id);
        let waits = entry.and_then(ObjectEntry::unreleased_content).is_some();
        let ledger = self.rollouts.ledger.latest();
        let recorded =
            ledger.and_then(|ledger| ledger.unit_of(&self.sources.inventory_ids()[source], id)).cloned();
        let waiting = waits.then(|| self.build_unit(source, id));
        let unit = match (waiting, recorded) {
            (Some(mut newer), Some(older)) => {
                newer.merge_older(&older);
                Some(newer)
            }
            (newer, older) => newer.or(older),
        };
        let Some(unit) = unit.filter(|_| !rejected).map(|unit| self.with_desired_contents(source, unit))
        else {
            return OrderOutcome::NothingDone(OrderObstacle::NoRollout(id.clone()));
        };
        let rejected = RejectedUnit::of(&unit, id);
        let cause = RejectionCause::Aborted(unit.revision.clone(), by.clone()).to_string().into();
        self.reject_by_hand(source, Rejection { unit, action: RejectionAction::RollBack, cause });
        OrderOutcome::Aborted(rejected)
    }

    /// Returns a unit with what the newest revision asks for, which may have changed since it was
    /// recorded by what needs no rollout. Only that can be rejected.
    pub(in crate::engine) fn with_desired_contents(
        &self,
        source: SourceId,
        mut unit: ReleaseUnit,
    ) -> ReleaseUnit {
        let before = unit.clone();
        for (id, member) in unit.members.iter_mut().filter(|(_, member)| !member.is_unreadable()) {
            member.content = self.desired_hash(source, id);
        }
        if let Some(head) = self.sources[source].head.clone().filter(|_| unit != before) {
            unit.revision = head;
        }
        unit
    }

    /// Rejects a unit by hand. Earlier rejections that overlap with it stay.
    pub(in crate::engine) fn reject_by_hand(&mut self, source: SourceId, mut rejection: Rejection) {
        let state = &self.sources[source];
        let known = state.inventory.iter().flat_map(|inventory| &inventory.rejections);
        let known = known.filter(|known| !self.is_superseded(source, known));
        for older in known.chain(&state.pending_rejections) {
            let shares = older.unit.members.keys().any(|id| rejection.unit.members.contains_key(id));
            for (id, member) in older.unit.members.iter().filter(|_| shares) {
                rejection.unit.members.entry(id.clone()).or_insert_with(|| member.clone());
            }
        }
        let members = &rejection.unit.members;
        let state = &mut self.sources[source];
        state
            .pending_rejections
            .retain(|other| other.unit.members.keys().all(|id| !members.contains_key(id)));
        state.pending_rejections.push(rejection);
    }
}

/// The record for the inventory.
impl Engine {
    /// Returns whether the inventory says what came of an order.
    fn is_acknowledged(&self, source: SourceId, token: &str) -> bool {
        let acknowledged =
            self.sources[source].inventory.iter().flat_map(|inventory| &inventory.acknowledged);
        acknowledged.into_iter().any(|one| is_of_order(one, token))
    }

    /// Returns whether the inventory says what came of an order, or is going to.
    fn is_carried_out(&self, source: SourceId, token: &str) -> bool {
        let mut answers = self.orders.answers.iter();
        answers.any(|(of, one)| *of == source && is_of_order(one, token))
            || self.is_acknowledged(source, token)
    }

    /// Returns the acknowledgements that a source's inventory should say, where those are not the ones
    /// that it says.
    pub(in crate::engine) fn next_acknowledged(&self, source: SourceId) -> Option<Vec<Acknowledgement>> {
        let known = &self.sources[source].inventory.as_ref()?.acknowledged;
        let mut answers = self.orders.answers.iter().filter(|(of, _)| *of == source).peekable();
        answers.peek()?;
        let mut next = known.clone();
        for (_, answer) in answers {
            next.retain(|one| one.token != answer.token || one.is_of_state() != answer.is_of_state());
            next.push(answer.clone());
        }
        // An order that is still there would be carried out again if it were forgotten, so the
        // pending orders must be known.
        let orders = self.orders.pending.get(&source).filter(|_| self.can_carry_out(source));
        if let Some(orders) = orders.filter(|_| next.len() > MAX_ACKNOWLEDGEMENTS) {
            let mut there = self.tokens(source);
            there.extend(orders.iter().map(|order| order.token.clone()));
            let mut surplus = next.len() - MAX_ACKNOWLEDGEMENTS;
            next.retain(|one| {
                let goes = surplus > 0 && !there.contains(&one.token);
                surplus -= usize::from(goes);
                !goes
            });
        }
        (next != *known).then_some(next)
    }

    /// Records a new content of the inventory.
    pub(in crate::engine) fn note_inventory_change(&mut self, source: SourceId) {
        self.orders.stale = true;
        let Some(inventory) = &self.sources[source].inventory else { return };
        let is_recorded = |answer: &Acknowledgement| inventory.acknowledged.contains(answer);
        self.orders.answers.retain(|(of, answer)| *of != source || !is_recorded(answer));
    }
}

/// Returns whether it is what came of the order with this token. A pause may have the same one, as
/// anybody may write that.
fn is_of_order(one: &Acknowledgement, token: &str) -> bool {
    *one.token == *token && !one.is_of_state()
}
