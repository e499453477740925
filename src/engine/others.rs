//! Claims of other daemons on the budget: they count, unless their workload has long come to rest.
//!
//! A daemon that ends for good takes none of its claims back. What it claimed may roll on without it, so only the
//! workload itself tells that a claim is spent: it has come to rest, or has come no farther for the deadline of a rollout.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::book::{Claim, UnreadClaim};
use super::budget::{Scope, Shortage};
use super::rolls::Rollouts;
use super::state::Engine;
use super::{Live, RollPhase, Rolling};
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
    /// How it rolls, and since when it has come no farther.
    still: Option<(Option<Rolling>, Instant)>,
    /// Its pods that are unavailable.
    away: u32,
    /// Why it may not be looked at.
    hidden: Option<Arc<str>>,
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
        let mut ids: Vec<ObjectId> = open.map(|(id, _)| id.clone()).collect();
        if !self.rollouts.asks.is_empty() {
            let away = self.told_away().filter(|id| !ids.contains(id)).cloned();
            ids.extend(away.collect::<Vec<_>>());
        }
        ids
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
        self.glimpse(id, live, now);
        let Some(claim) =
            self.foreign_claims().find(|(other, _)| *other == id).map(|(_, claim)| claim.clone())
        else {
            return;
        };
        let rolling = live.and_then(|live| live.rolling);
        let at_rest = matches!(rolling.map(|rolling| rolling.phase), None | Some(RollPhase::Settled));
        let known = self.rollouts.others.remove(id).filter(|known| known.claim == claim);
        let rests = known.as_ref().and_then(|known| known.rests).or(Some(now)).filter(|_| at_rest);
        let same = known.and_then(|known| known.still).filter(|(before, _)| *before == rolling);
        let still = same.map_or(now, |(_, since)| since);
        // As for our own: what comes no farther has failed, and takes nothing of the budget but its pods.
        let failed = now.duration_since(still) >= self.rollouts.budget.deadline.max(SPENT);
        // Nobody of a process that has ended in good order watches what it left: its soak is all that is waited for.
        let rest = if claim.left { self.rollouts.budget.soak.min(SPENT) } else { SPENT };
        let is_spent = failed || rests.is_some_and(|since| now.duration_since(since) >= rest);
        let still = Some((rolling, still));
        let away = live.and_then(|live| Some(Rollouts::unavailable(live.rolling?, live.shown))).unwrap_or(0);
        self.rollouts.others.insert(id.clone(), Other { claim, rests, still, away, hidden: None, is_spent });
        self.rollouts.stale = true;
    }

    /// The workload of another daemon's claim may not be looked at: the claim counts, which is told as soon as it is in
    /// the way. Says whether that is new.
    pub fn other_hidden(&mut self, id: &ObjectId, why: Arc<str>) -> bool {
        let Some(claim) =
            self.foreign_claims().find(|(other, _)| *other == id).map(|(_, claim)| claim.clone())
        else {
            return false;
        };
        let known = self.rollouts.others.get(id).filter(|known| known.claim == claim);
        if known.is_some_and(|known| known.is_spent || known.hidden.as_ref() == Some(&why)) {
            return false;
        }
        self.rollouts.others.insert(
            id.clone(),
            Other { claim, rests: None, still: None, away: 0, hidden: Some(why), is_spent: false },
        );
        self.rollouts.stale = true;
        true
    }

    /// What is short because of claims, told with why nobody here can see whether they are spent.
    pub(super) fn told_hidden(&self, permits: &mut BTreeMap<ObjectId, Option<Shortage>>) {
        let hidden = |(id, claim): (&ObjectId, &Claim)| {
            let known = self.rollouts.others.get(id).filter(|known| known.claim == *claim)?;
            Some((id.clone(), known.hidden.clone()?))
        };
        let Some((id, why)) = self.foreign_claims().find_map(hidden) else { return };
        for shortage in permits.values_mut().flatten().filter(|shortage| shortage.is_of_claims()) {
            *shortage = Shortage::Hidden(Box::new(shortage.clone()), id.clone(), why.clone());
        }
    }

    /// Returns how many pods are unavailable of the workload of a claim that counts no more: nobody ends what it began.
    pub(super) fn left_away(&self, id: &ObjectId, claim: &Claim) -> u32 {
        let known = self.rollouts.others.get(id).filter(|known| known.claim == *claim && known.is_spent);
        known.map_or(0, |known| known.away)
    }

    /// Returns the claims that nobody here can read and that count in a scope. Of which source they are is not known.
    pub(super) fn unread_claims(&self, scope: &Scope) -> impl Iterator<Item = &UnreadClaim> {
        let counts = !matches!(scope, Scope::Source(..));
        let claims = self.rollouts.book.iter().flat_map(|book| &book.unread);
        claims.filter(move |_| counts)
    }

    /// As [`Engine::unread_claims`], in a number.
    pub(super) fn unread(&self, scope: &Scope) -> u32 {
        u32::try_from(self.unread_claims(scope).count()).unwrap_or(u32::MAX)
    }

    /// Takes over what is told of claims that nobody can read, and how to mend that; none where all can be read.
    pub fn explain_unread(&mut self, why: Option<Arc<str>>) {
        self.rollouts.stale |= self.rollouts.unread != why;
        self.rollouts.unread = why;
    }

    /// Whether another daemon's claim counts.
    pub(super) fn counts(&self, id: &ObjectId, claim: &Claim) -> bool {
        let known = self.rollouts.others.get(id).filter(|known| known.claim == *claim);
        known.is_none_or(|known| !known.is_spent)
    }
}
