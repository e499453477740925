//! The rollout queue in words: what waits to be rolled out, in which order, and why.
//!
//! A command that asks the cluster for the status of a workload cannot ask the process that decides
//! about it. So that process writes its queue beside its claims. Nothing is ever decided by what is
//! written there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::decide::decision::Decision;
use crate::engine::facts::live_object::live_overlay;
use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::budget_tally::{BudgetTally, is_worth_writing};
use crate::engine::rollout::ledger_text::read_name;
use crate::engine::rollout::steps::{CurrentStep, StepDecision, next};
use crate::engine::state::Engine;
use crate::engine::{Reason, RolloutLedger, SourceId, object_word, parse_object_word};
use crate::object::ObjectId;

/// The number of objects of one process that are published: some 20 KB, in an object that is
/// written twice for each rollout.
pub(crate) const MAX_PUBLISHED_OBJECTS: usize = 100;

/// The number of bytes of a reason that are published: a server's message may be of any length.
const MAX_PUBLISHED_REASON_BYTES: usize = 300;

/// A queue that changes while no claim does is published no more often.
pub(crate) const PUBLICATION_INTERVAL: Duration = Duration::from_secs(2);

/// One object that waits to be rolled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueuedObject {
    /// The object.
    pub id: ObjectId,
    /// The inventory that it is in.
    pub inventory_id: Arc<str>,
    /// Its position among so many that wait for the budget, from 1; none for one that waits for
    /// something else.
    pub position: Option<(u32, u32)>,
    /// The reason for its wait.
    pub reason: Arc<str>,
}

/// The form of a [`QueuedObject`] in JSON.
#[derive(Serialize, Deserialize)]
pub(in crate::engine) struct QueuedObjectText {
    object: String,
    source: String,
    // Daemons of other versions read this key.
    #[serde(rename = "place", default, skip_serializing_if = "Option::is_none")]
    position: Option<(u32, u32)>,
    reason: String,
}

impl QueuedObjectText {
    /// Returns the text of one.
    pub(in crate::engine) fn of(queued: &QueuedObject) -> Self {
        Self {
            object: object_word(&queued.id),
            source: queued.inventory_id.to_string(),
            position: queued.position,
            reason: queued.reason.to_string(),
        }
    }

    /// Returns the queued object.
    pub(in crate::engine) fn read(self) -> Option<QueuedObject> {
        let id = parse_object_word(&self.object)?;
        // Others write it, too.
        let reason = shorten(&self.reason);
        Some(QueuedObject { id, inventory_id: read_name(&self.source), position: self.position, reason })
    }
}

/// The part of its queue that this process has published, and the time.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct QueuePublication {
    /// None where nobody knows what the rollout ledger says of it.
    published: Option<(Vec<QueuedObject>, Vec<BudgetTally>)>,
    /// The time of the last check of the queue.
    last_check: Option<Instant>,
    /// The time of the next check.
    pub(in crate::engine) due: Option<Instant>,
}

/// The rollout queue beside the requests to the budget, and its publication.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct QueueState {
    /// The blockers of a rollout beside the budget.
    blockers: BTreeMap<ObjectId, Reason>,
    /// Indicates whether the queue may differ from what was published.
    dirty: bool,
    /// The published part of the queue.
    publication: QueuePublication,
}

impl QueueState {
    /// Notes that the queue may differ from what was published.
    pub(in crate::engine) fn mark_dirty(&mut self) {
        self.dirty = true;
    }

    /// Takes the published part of the queue out, for a call that needs the whole engine. It is to
    /// be put back.
    pub(in crate::engine) fn take_publication(&mut self) -> QueuePublication {
        std::mem::take(&mut self.publication)
    }

    /// Puts the published part of the queue back.
    pub(in crate::engine) fn put_back(&mut self, publication: QueuePublication) {
        self.publication = publication;
    }
}

impl QueuePublication {
    /// Returns the rollout ledger with the queue in it, where that has changed and nothing else is
    /// to be written. To be called in each turn: it compares at most every
    /// [`PUBLICATION_INTERVAL`], and never while nothing has changed.
    pub(in crate::engine) fn next_ledger(
        &mut self,
        engine: &mut Engine,
        now: Instant,
    ) -> Option<RolloutLedger> {
        if !engine.rollouts.queue.dirty && !engine.is_to_renew() {
            self.due = None;
            return None;
        }
        let due = *self.last_check.get_or_insert(now) + PUBLICATION_INTERVAL;
        if now < due {
            self.due = Some(due);
            return None;
        }
        self.due = None;
        let ledger = engine.rollouts.ledger.latest()?.clone();
        let (queue, tallies) = (engine.rollout_queue(), engine.tallies(&ledger));
        (self.last_check, engine.rollouts.queue.dirty) = (Some(now), false);
        let published = self
            .published
            .clone()
            .unwrap_or_else(|| (engine.own_queue(&ledger), engine.own_tallies(&ledger)));
        // The count of pods is no reason to create the ledger: without it shares are of fewer pods.
        let is_made = ledger != (RolloutLedger { begun: ledger.begun, ..RolloutLedger::default() })
            || tallies.iter().any(BudgetTally::has_unavailable_pods);
        let is_changed = queue != published.0 || (is_made && is_worth_writing(&tallies, &published.1));
        is_changed.then(|| self.write_queue(engine, engine.with_tallies(ledger, tallies), queue))
    }

    /// Puts the queue into what is about to be written. Where it was published a moment ago only
    /// what is claimed goes out of it: a rollout waits for this write.
    pub(in crate::engine) fn add_to(
        &mut self,
        engine: &mut Engine,
        mut ledger: RolloutLedger,
        now: Instant,
    ) -> RolloutLedger {
        if self.last_check.is_some_and(|last_check| now < last_check + PUBLICATION_INTERVAL) {
            let before = engine.rollouts.ledger.latest();
            let known = |id: &ObjectId| before.is_some_and(|before| before.claims.contains_key(id));
            ledger.queue.retain(|queued| !ledger.claims.contains_key(&queued.id) || known(&queued.id));
            self.published = Some((engine.own_queue(&ledger), engine.own_tallies(&ledger)));
            engine.rollouts.queue.dirty = true;
            return ledger;
        }
        (self.last_check, self.due, engine.rollouts.queue.dirty) = (Some(now), None, false);
        let queue = engine.rollout_queue();
        self.write_queue(engine, ledger, queue)
    }

    /// Records that a publication may have failed.
    pub(in crate::engine) fn note_failure(&mut self, engine: &mut Engine) {
        (self.published, engine.rollouts.queue.dirty) = (None, true);
    }

    fn write_queue(
        &mut self,
        engine: &Engine,
        ledger: RolloutLedger,
        queue: Vec<QueuedObject>,
    ) -> RolloutLedger {
        let ledger = engine.with_queue(ledger, &queue);
        self.published = Some((queue, engine.own_tallies(&ledger)));
        ledger
    }
}

impl Engine {
    /// Returns the queue: first the objects that want a slot, in the order in which they get one.
    /// Then those that something else keeps from being rolled out.
    pub(in crate::engine) fn rollout_queue(&self) -> Vec<QueuedObject> {
        self.queue_with_reasons().into_iter().map(|(queued, _)| queued).collect()
    }

    /// Returns the queue, each object with its reason as a value.
    pub(in crate::engine) fn queue_with_reasons(&self) -> Vec<(QueuedObject, Reason)> {
        let queued = |id: &ObjectId, source: SourceId, position, reason: Reason| {
            let inventory_id = self.sources.inventory_ids()[source].clone();
            // The ledger has the sentence: others read it, of other versions too.
            let text = shorten(&reason.to_string());
            (QueuedObject { id: id.clone(), inventory_id, position, reason: text }, reason)
        };
        let mut slot_verdicts = self.slot_verdicts();
        let requests = self.rollouts.slot_requests.requests().iter();
        let short: Vec<_> =
            requests.filter_map(|request| Some((request, slot_verdicts.remove(&request.id)??))).collect();
        let of = u32::try_from(short.len()).unwrap_or(u32::MAX);
        let numbered = (1..).zip(short).map(|(position, (request, shortage))| {
            queued(&request.id, request.source, Some((position, of)), Reason::Budget(shortage))
        });
        let others = self
            .rollouts
            .queue
            .blockers
            .iter()
            .filter_map(|(id, reason)| Some(queued(id, self.wanting_source(id)?, None, reason.clone())));
        numbered.chain(others).take(MAX_PUBLISHED_OBJECTS).collect()
    }

    /// Records that the last publication may have failed.
    pub(in crate::engine) fn note_publication_failure(&mut self) {
        let mut publication = self.rollouts.queue.take_publication();
        publication.note_failure(self);
        self.rollouts.queue.put_back(publication);
    }

    /// Returns when the queue is to be compared next with what was published.
    pub(in crate::engine) fn next_publication(&self) -> Option<Instant> {
        self.rollouts.queue.publication.due
    }

    /// Returns the ledger without the queue of this process' sources.
    pub(in crate::engine) fn without_queue(&self, ledger: RolloutLedger) -> RolloutLedger {
        self.with_queue(ledger, &[])
    }

    /// Returns the rollout ledger without the queue of this process; none where it has none of
    /// it already.
    pub(in crate::engine) fn unqueued_ledger(&self) -> Option<RolloutLedger> {
        let ledger = self.rollouts.ledger.latest()?;
        let next = self.without_queue(ledger.clone());
        (next != *ledger).then_some(next)
    }

    fn with_queue(&self, mut ledger: RolloutLedger, queue: &[QueuedObject]) -> RolloutLedger {
        ledger.queue.retain(|queued| !self.is_responsible_for(&queued.inventory_id));
        ledger.queue.extend_from_slice(queue);
        ledger
    }

    fn own_queue(&self, ledger: &RolloutLedger) -> Vec<QueuedObject> {
        ledger.queue.iter().filter(|queued| self.is_responsible_for(&queued.inventory_id)).cloned().collect()
    }

    /// Remembers what keeps an object from being rolled out that is there.
    pub(in crate::engine) fn note_blocker(&mut self, id: &ObjectId, decision: &Decision) {
        let blocker = decision.reason.as_ref().filter(|reason| self.is_blocker(id, reason));
        let queue = &mut self.rollouts.queue;
        if blocker == queue.blockers.get(id) {
            return;
        }
        queue.dirty = true;
        match blocker {
            Some(reason) => drop(queue.blockers.insert(id.clone(), reason.clone())),
            None => drop(queue.blockers.remove(id)),
        }
    }

    /// Returns whether a reason is published with the queue. A pause, a rejection or a hold is
    /// written elsewhere, and a wait of moments is not worth a write.
    fn is_blocker(&self, id: &ObjectId, reason: &Reason) -> bool {
        let changes = || {
            self.entry(id).is_some_and(|entry| entry.unreleased_content().is_some())
                || self.restart_stamp(id).is_some()
        };
        match reason {
            Reason::Step(_) => true,
            Reason::Needs(..)
            | Reason::Wave(..)
            | Reason::UnitWorkload(_)
            | Reason::KeyUnavailable(_)
            | Reason::RecordUnreadable(_) => self.live_object(id).is_some() && changes(),
            _ => false,
        }
    }

    /// Returns our workloads that a step holds, and what each step waits for.
    pub(in crate::engine) fn held_steps(&self, now: Instant) -> BTreeMap<ObjectId, CurrentStep> {
        let stepping = self.rollouts.in_flight.keys().filter_map(|id| {
            let live = self.live_object(id)?;
            live_overlay(live).filter(|overlay| overlay.step().is_some())?;
            let (_, desired) = self.entry(id)?.target_content()?;
            let step = match next(self.steps_of(id, desired)?, &self.step_progress(id, desired, live, now)) {
                StepDecision::Stay(wait) => CurrentStep::Stays(wait, self.surplus_fate(id)),
                StepDecision::Enter(_) | StepDecision::Finish => CurrentStep::AwaitsBudget,
            };
            Some((id.clone(), step))
        });
        stepping.collect()
    }

    /// Returns whether a rollout of ours is not over, its soak and its claim included, though all
    /// may be healthy.
    pub(in crate::engine) fn is_anything_claimed(&self) -> bool {
        let mut rolls = self.rollouts.in_flight.values();
        rolls.any(|rollout| {
            rollout.claim.is_some() && rollout.slot == BudgetSlot::Taken && rollout.failed.is_none()
        }) || self.next_ledger().is_some()
    }

    /// Forgets what an object waits for.
    pub(in crate::engine) fn forget_blocker(&mut self, id: &ObjectId) {
        let queue = &mut self.rollouts.queue;
        queue.dirty |= queue.blockers.remove(id).is_some();
    }
}

fn shorten(reason: &str) -> Arc<str> {
    match reason.len() {
        0..=MAX_PUBLISHED_REASON_BYTES => reason.into(),
        _ => format!("{}…", &reason[..reason.floor_char_boundary(MAX_PUBLISHED_REASON_BYTES)]).into(),
    }
}
