//! Trying again what was rejected: what was good before it stays known.
//!
//! Where the rejected content is still there, its rejection alone knows what was good. So its unit is recorded in the
//! budget object first, and only then the parent forgets the rejection: whatever dies when, one of the two says it. From
//! then on the rollout is judged anew, and a second failure is one as any other.

use super::book::{Book, Good, Unit};
use super::entry::SourceId;
use super::orders::{Answer, objects};
use super::rejection::Rejection;
use super::state::Engine;
use super::{Live, Want};
use crate::object::ObjectId;

impl Engine {
    /// Lets what was rejected be tried again.
    pub(super) fn retry(&mut self, source: SourceId, id: &ObjectId) -> Answer {
        let names = |rejection: &Rejection| rejection.unit.members.contains_key(id);
        let inventory = self.sources[source].inventory.iter();
        let known = inventory.flat_map(|inventory| &inventory.rejections).find(|one| names(one)).cloned();
        self.sources[source].rejecting.retain(|rejecting| !names(rejecting));
        let Some(known) = known else {
            return Answer::Now(format!("nothing to retry: nothing of {id} was rejected"));
        };
        let recorded = self.rollouts.book.as_ref().is_some_and(|book| records(book, &known.unit));
        let words = format!("retried: {}, of which was said: {}", objects(&known.unit), known.cause);
        let keeps = !recorded && self.has_not_left(source, &known);
        let retrying = if keeps { &mut self.orders.restored } else { &mut self.orders.dropped };
        if !retrying.contains(&(source, known.clone())) {
            retrying.push((source, known));
        }
        if keeps { Answer::Later } else { Answer::Now(words) }
    }

    /// Whether something of a unit is not as it was good.
    pub(super) fn has_not_left(&self, source: SourceId, rejection: &Rejection) -> bool {
        let was_good = |id: &ObjectId, good: &Good, live: &Live| match good {
            Good::Release(release) => live.deleting || self.shows(id, release.hash),
            Good::Absent | Good::Unknown => false,
        };
        rejection.unit.members.iter().any(|(id, member)| {
            let wanted = matches!(self.sources[source].catalog.want(id), Some(Want::Object(_)));
            wanted && self.shown(id).is_some_and(|live| !was_good(id, &member.good, live))
        })
    }

    /// Whether a rejection of the parent is to be taken out of it.
    pub(super) fn is_retried(&self, source: SourceId, rejection: &Rejection) -> bool {
        self.orders.dropped.iter().any(|(of, dropped)| *of == source && dropped == rejection)
    }

    /// Whether a unit is kept until the parent has forgotten its rejection.
    pub(super) fn is_kept_for_retry(&self, unit: &Unit) -> bool {
        let retried = self.orders.restored.iter().chain(&self.orders.dropped);
        retried.into_iter().any(|(_, rejection)| shares(unit, &rejection.unit))
    }

    /// Records the units that are to be tried again.
    pub(super) fn restore(&self, book: &mut Book) {
        for (_, rejection) in &self.orders.restored {
            if !book.units.iter().any(|unit| shares(unit, &rejection.unit)) {
                book.units.push(rejection.unit.clone());
            }
        }
    }

    /// The parent has been read: what it has forgotten is tried again from here on.
    pub(super) fn forgotten_by_parent(&mut self, source: SourceId) {
        let Some(inventory) = &self.sources[source].inventory else { return };
        let known = &inventory.rejections;
        let gone = |(of, rejection): &mut (SourceId, Rejection)| *of == source && !known.contains(rejection);
        self.orders.restored.retain_mut(|one| !gone(one));
        let begun: Vec<(SourceId, Rejection)> = self.orders.dropped.extract_if(.., gone).collect();
        for id in begun.iter().flat_map(|(_, rejection)| rejection.unit.members.keys()) {
            self.judge_anew(source, id);
        }
    }

    /// What failed and is still there is under way again. What its controller says of the old failure is not held
    /// against it: the time that it has begins now.
    fn judge_anew(&mut self, source: SourceId, id: &ObjectId) {
        if self.rollouts.rolls.get(id).is_none_or(|roll| roll.failed.is_none()) {
            return;
        }
        self.rollouts.rolls.remove(id);
        self.show_roll(id);
        let told = self.shown(id).map(|live| live.health.message.clone());
        let wanted = self.sources[source].catalog.want(id);
        let Some(Want::Object(wanted)) = wanted else { return };
        let pods = self.rollouts.rolls.get(id).map_or(0, |roll| roll.reserved);
        let claim = self.claim(source, wanted.hash, pods);
        if let Some(roll) = self.rollouts.rolls.get_mut(id) {
            roll.claim.get_or_insert(claim);
            roll.blamed = told;
        }
        self.rollouts.stale = true;
        self.changed(id);
    }
}

/// Whether the budget object has the record of a unit, or of a newer one that has taken over from it.
fn records(book: &Book, unit: &Unit) -> bool {
    book.units.iter().any(|known| shares(known, unit))
}

fn shares(one: &Unit, other: &Unit) -> bool {
    one.applyset == other.applyset && one.members.keys().any(|id| other.members.contains_key(id))
}
