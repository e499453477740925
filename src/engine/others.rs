//! Claims of other daemons on the budget: they count, unless their workload has long come to rest.
//!
//! A daemon that ends for good takes none of its claims back. What it claimed may roll on without it, so only the
//! workload itself tells that a claim is spent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::book::Claim;
use super::state::Engine;
use super::{Live, RollPhase};
use crate::object::ObjectId;

/// A daemon that lives takes a claim back as soon as its workload has been whole for the soak. After this time of
/// rest nobody does.
pub const SPENT: Duration = Duration::from_mins(2);

/// What is known of the workload of another daemon's claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Other {
    claim: Claim,
    /// Since when it has been seen at rest.
    rests: Option<Instant>,
    /// Whether it has rested for so long that the claim does not count any more.
    pub(super) is_spent: bool,
}

impl Engine {
    /// This process has served the source of this inventory, and nobody is to serve it any more: nothing of it waits, and
    /// what was claimed for it is taken back once its workload has rested.
    pub fn retire(&mut self, applyset: Arc<str>) {
        self.rollouts.retired.insert(applyset);
        self.rollouts.untold = true;
    }

    /// Whether what the budget object says of this inventory is this process's to keep.
    pub(super) fn looks_after(&self, applyset: &Arc<str>) -> bool {
        self.applysets.contains(applyset) || self.rollouts.retired.contains(applyset)
    }

    /// The workloads of other processes' claims, where a write waits for the budget, or where the claim may be one that
    /// nobody else takes back: these should be looked at.
    pub fn others(&self) -> Vec<ObjectId> {
        let matters = |claim: &Claim| !self.rollouts.asks.is_empty() || self.looks_after(&claim.applyset);
        let open = self.foreign_claims().filter(|(id, claim)| {
            matters(claim) && !self.rollouts.rolls.contains_key(*id) && !self.rollouts.over.contains(*id)
        });
        open.map(|(id, _)| id.clone()).collect()
    }

    /// The claims of other processes: of those that serve other sources, and of those that serve the same ones, or
    /// did so before this one.
    pub(super) fn foreign_claims(&self) -> impl Iterator<Item = (&ObjectId, &Claim)> {
        let claims = self.rollouts.book.iter().flat_map(|book| &book.claims);
        claims.filter(|(_, claim)| {
            !self.applysets.contains(&claim.applyset) || claim.holder != self.rollouts.holder
        })
    }

    /// Whether a claim may be that of a process that serves the same source and lives: it is not taken back for it.
    /// Once its workload has come to rest under our eyes, or has long rested, it is.
    pub(super) fn is_of_another(&self, id: &ObjectId, claim: &Claim) -> bool {
        claim.holder != self.rollouts.holder && !self.rollouts.over.contains(id) && self.counts(id, claim)
    }

    /// The workload of another daemon's claim, as a look shows it; none where there is no such object.
    pub fn other_seen(&mut self, id: &ObjectId, live: Option<&Live>, now: Instant) {
        let Some(claim) =
            self.foreign_claims().find(|(other, _)| *other == id).map(|(_, claim)| claim.clone())
        else {
            return;
        };
        let phase = live.and_then(|live| live.rolling).map(|rolling| rolling.phase);
        let at_rest = matches!(phase, None | Some(RollPhase::Settled));
        let known = self.rollouts.others.remove(id).filter(|known| known.claim == claim && at_rest);
        let rests = known.and_then(|known| known.rests).or_else(|| at_rest.then_some(now));
        let is_spent = rests.is_some_and(|since| now.duration_since(since) >= SPENT);
        self.rollouts.others.insert(id.clone(), Other { claim, rests, is_spent });
        self.rollouts.stale = true;
    }

    /// Whether another daemon's claim counts.
    pub(super) fn counts(&self, id: &ObjectId, claim: &Claim) -> bool {
        let known = self.rollouts.others.get(id).filter(|known| known.claim == *claim);
        known.is_none_or(|known| !known.is_spent)
    }
}
