//! The sources that a replica holds: who takes, keeps and lets go of which Lease.
//!
//! Each replica decides by itself from a list of all Leases. Each Lease is written by
//! compare-and-swap, so no two replicas ever agree wrongly. Clocks are never compared. A replica
//! that waits for a Lease to run out counts from when it saw the last change itself. The holder
//! counts from before it asked for the renewal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time without a renewal after which a Lease is free.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(10);

/// The interval at which a held Lease is renewed.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);

/// The time after the last renewal was sent within which writes for a source are sent. The rest of
/// the Lease's duration is for writes that the server still has in its hands.
pub(crate) const WRITE_TERM: Duration = Duration::from_secs(6);

/// The interval at which the Leases are listed.
pub(crate) const LEASE_LIST_INTERVAL: Duration = Duration::from_secs(1);

/// A replica that has been there for less is given nothing by the others yet: it may be one that
/// ends again at once.
const NEWCOMER_DELAY: Duration = Duration::from_secs(10);

/// The silence of a replica after which its Lease is removed.
const STALE_LEASE_AGE: Duration = Duration::from_mins(2);

/// The state of a Lease. Any change of it is a sign of life of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseSnapshot {
    /// The holder; none where it was released.
    pub holder: Option<Arc<str>>,
    /// The time of the last renewal by the holder's clock: opaque, only compared for equality.
    pub renewed: Arc<str>,
    /// Its duration without another renewal.
    pub duration: Duration,
}

/// A Lease as this replica has seen it.
#[derive(Clone, Debug)]
struct ObservedLease {
    snapshot: LeaseSnapshot,
    /// The time at which it was first seen alive.
    first_seen: Instant,
    /// The time at which its last change was seen.
    last_change: Instant,
}

impl ObservedLease {
    fn expires_at(&self) -> Instant {
        self.last_change + self.snapshot.duration
    }

    fn is_alive(&self, now: Instant) -> bool {
        self.snapshot.holder.is_some() && now < self.expires_at()
    }
}

/// The view that one replica has of all Leases.
#[derive(Clone, Debug)]
pub(crate) struct LeaseShares {
    own: Arc<str>,
    /// The Leases of sources.
    sources: BTreeMap<Arc<str>, ObservedLease>,
    /// The Leases of replicas, by the name of each.
    replicas: BTreeMap<Arc<str>, ObservedLease>,
    /// The sources that this replica holds, with the time at which the last renewal was sent.
    held: BTreeMap<Arc<str>, Instant>,
    /// The time since which a source has been seen to be nobody's.
    free: BTreeMap<Arc<str>, Instant>,
    /// Sources that were let go and that nobody took, as long as the replicas stay the same.
    unwanted: BTreeSet<Arc<str>>,
    /// The sources that were let go and not seen in other hands yet.
    offered: BTreeSet<Arc<str>>,
    /// The held sources whose Lease was seen not to be this replica's: somebody else may have had
    /// it meanwhile.
    broken: BTreeSet<Arc<str>>,
}

/// The next moves of one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseMoves {
    /// Sources that another replica holds now, or may have held since this one wrote for them last.
    pub lost: Vec<Arc<str>>,
    /// Sources whose term has ended without a renewal: nothing may be written for them, and nobody
    /// is known to have taken them.
    pub lapsed: Vec<Arc<str>>,
    /// Sources that it holds and should no longer have at all.
    pub leave: Vec<Arc<str>>,
    /// Leases that are to be taken.
    pub take: Vec<Arc<str>>,
    /// The number of sources above its share for which others have room.
    pub surplus: usize,
    /// Replicas that are long gone, and whose Leases can be removed.
    pub stale_replicas: Vec<Arc<str>>,
}

impl LeaseShares {
    /// Returns the first view of a replica of this name.
    pub(crate) fn new(own: &str) -> Self {
        Self {
            own: own.into(),
            sources: BTreeMap::new(),
            replicas: BTreeMap::new(),
            held: BTreeMap::new(),
            free: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            offered: BTreeSet::new(),
            broken: BTreeSet::new(),
        }
    }

    /// Returns the sources that it holds.
    pub(crate) fn held_sources(&self) -> impl Iterator<Item = &Arc<str>> {
        self.held.keys()
    }

    /// Returns whether it holds a source.
    pub(crate) fn has_lease(&self, source: &str) -> bool {
        self.held.contains_key(source)
    }

    /// Takes a list of all Leases over, which began after all writes of this replica were answered.
    ///
    /// A Lease that is gone without having been released counts until it would have expired.
    /// Somebody may have deleted it by hand while its holder is alive.
    pub(crate) fn update(
        &mut self,
        sources: BTreeMap<Arc<str>, LeaseSnapshot>,
        replicas: BTreeMap<Arc<str>, LeaseSnapshot>,
        now: Instant,
    ) {
        let before: BTreeSet<Arc<str>> = self.live_replicas(now).into_iter().cloned().collect();
        let is_own = |source: &Arc<str>| {
            sources.get(source).is_some_and(|snapshot| snapshot.holder.as_ref() == Some(&self.own))
        };
        self.broken = self.held.keys().filter(|source| !is_own(source)).cloned().collect();
        let vanished: BTreeMap<_, _> = self
            .sources
            .iter()
            .filter(|(source, _)| !sources.contains_key(*source) && self.is_of_another(source, now))
            .map(|(source, seen)| (source.clone(), seen.clone()))
            .collect();
        merge_leases(&mut self.sources, sources, now);
        self.sources.extend(vanished);
        merge_leases(&mut self.replicas, replicas, now);
        let after: BTreeSet<Arc<str>> = self.live_replicas(now).into_iter().cloned().collect();
        if before != after {
            self.unwanted.clear();
        }
        let mut offered = std::mem::take(&mut self.offered);
        offered.retain(|source| !self.is_of_another(source, now));
        self.offered = offered;
    }

    /// Records that a Lease was taken or renewed, by a request that was sent at this moment.
    pub(crate) fn note_renewal(&mut self, source: &Arc<str>, sent: Instant) {
        self.free.remove(source);
        if let Some(known) = self.held.get_mut(source) {
            *known = sent.max(*known);
            return;
        }
        self.held.insert(source.clone(), sent);
        // Let go for others, and back again: nobody else serves it.
        if self.offered.remove(source) {
            self.unwanted.insert(source.clone());
        }
    }

    /// Records that a Lease is no longer held, or that its end was asked for.
    pub(crate) fn note_loss(&mut self, source: &str) {
        self.held.remove(source);
    }

    /// Lets a Lease go for others to take. It stays held until nothing is written for it any more.
    pub(crate) fn offer_lease(&mut self, source: &Arc<str>) {
        self.offered.insert(source.clone());
    }

    /// Returns the Leases that are due for renewal.
    pub(crate) fn due_renewals(&self, now: Instant) -> Vec<Arc<str>> {
        let due = self.held.iter().filter(|(_, sent)| now.duration_since(**sent) >= RENEWAL_INTERVAL);
        due.map(|(source, _)| source.clone()).collect()
    }

    /// Returns the time until which nothing can change but by the writes of others.
    pub(crate) fn next_wake(&self, now: Instant) -> Instant {
        let ends = self.sources.values().chain(self.replicas.values()).map(ObservedLease::expires_at);
        let terms = self.held.values().map(|sent| *sent + WRITE_TERM);
        ends.chain(terms).filter(|end| *end > now).fold(now + LEASE_LIST_INTERVAL, Instant::min)
    }

    /// Returns the moves of a replica that is to serve these sources. Notes the sources that are
    /// nobody's.
    pub(crate) fn next_moves(&mut self, wanted: &BTreeSet<Arc<str>>, now: Instant) -> LeaseMoves {
        let broken = std::mem::take(&mut self.broken);
        let gone = |source: &Arc<str>| broken.contains(source) || self.is_of_another(source, now);
        let lost: Vec<Arc<str>> = self.held.keys().filter(|source| gone(source)).cloned().collect();
        let ended = self.held.iter().filter(|(_, sent)| now.duration_since(**sent) >= WRITE_TERM);
        let lapsed = ended.map(|(source, _)| source).filter(|source| !gone(source));
        let lapsed: Vec<Arc<str>> = lapsed.cloned().collect();
        for source in lost.iter().chain(&lapsed) {
            self.note_loss(source);
        }
        let leave: Vec<_> = self.held.keys().filter(|source| !wanted.contains(*source)).cloned().collect();
        self.note_free(wanted, now);
        let replicas = self.live_replicas(now);
        let cap = self.share(wanted, replicas.len(), now);
        let stays = |source: &&Arc<str>| wanted.contains(*source) && !self.offered.contains(*source);
        let kept = self.held.keys().filter(stays).count();
        // Replicas that begin at the same time begin at different places.
        let rank = replicas.iter().position(|id| **id == self.own).unwrap_or(0);
        let mut open: Vec<&Arc<str>> =
            self.free.keys().filter(|source| !self.held.contains_key(*source)).collect();
        let turn = if open.is_empty() { 0 } else { rank * cap % open.len() };
        open.rotate_left(turn);
        let capacity = cap.saturating_sub(kept);
        let stranded = |source: &Arc<str>| {
            self.free.get(source).is_some_and(|since| now.duration_since(*since) >= LEASE_DURATION)
        };
        let take = open.iter().enumerate().filter(|(index, source)| *index < capacity || stranded(source));
        let take = take.map(|(_, source)| (*source).clone()).collect();
        let surplus = kept.saturating_sub(cap).min(self.spare_room_of_others(cap, now));
        let dead = self
            .replicas
            .iter()
            .filter(|(id, seen)| **id != self.own && now >= seen.last_change + STALE_LEASE_AGE);
        let stale_replicas = dead.map(|(id, _)| id.clone()).collect();
        LeaseMoves { lost, lapsed, leave, take, surplus, stale_replicas }
    }

    /// Returns which of its sources a replica lets go of; never one that is in the middle of a
    /// rollout.
    pub(crate) fn surplus_leases(&self, surplus: usize, busy: &BTreeSet<Arc<str>>) -> Vec<Arc<str>> {
        let settled = |source: &Arc<str>| !self.unwanted.contains(source) && !self.offered.contains(source);
        let idle = |source: &&Arc<str>| !busy.contains(*source) && settled(source);
        self.held.keys().rev().filter(idle).take(surplus).cloned().collect()
    }

    /// Returns the replicas that live, this one among them.
    fn live_replicas(&self, now: Instant) -> BTreeSet<&Arc<str>> {
        let others = self.replicas.iter().filter(|(_, seen)| seen.is_alive(now)).map(|(id, _)| id);
        others.chain([&self.own]).collect()
    }

    /// Returns whether another replica holds a source.
    pub(crate) fn is_of_another(&self, source: &str, now: Instant) -> bool {
        let seen = self.sources.get(source).filter(|seen| seen.is_alive(now));
        seen.is_some_and(|seen| seen.snapshot.holder.as_ref() != Some(&self.own))
    }

    fn note_free(&mut self, wanted: &BTreeSet<Arc<str>>, now: Instant) {
        let free: BTreeMap<_, _> = wanted
            .iter()
            .filter(|source| !self.held.contains_key(*source) && !self.is_of_another(source, now))
            .map(|source| (source.clone(), self.free.get(source).copied().unwrap_or(now)))
            .collect();
        self.free = free;
    }

    /// Returns the most sources that one of so many replicas holds.
    fn share(&self, wanted: &BTreeSet<Arc<str>>, replicas: usize, now: Instant) -> usize {
        let others = self.sources.keys().filter(|source| self.is_of_another(source, now));
        let all: BTreeSet<&Arc<str>> = wanted.iter().chain(others).collect();
        all.len().div_ceil(replicas.max(1))
    }

    /// Returns how many sources those replicas can still take that have come to stay.
    fn spare_room_of_others(&self, cap: usize, now: Instant) -> usize {
        let settled = self.replicas.iter().filter(|(id, seen)| {
            **id != self.own && seen.is_alive(now) && now.duration_since(seen.first_seen) >= NEWCOMER_DELAY
        });
        let holds = |id: &Arc<str>| {
            let of = |seen: &&ObservedLease| seen.is_alive(now) && seen.snapshot.holder.as_ref() == Some(id);
            self.sources.values().filter(of).count()
        };
        settled.map(|(id, _)| cap.saturating_sub(holds(id))).sum()
    }
}

fn merge_leases(
    known: &mut BTreeMap<Arc<str>, ObservedLease>,
    shown: BTreeMap<Arc<str>, LeaseSnapshot>,
    now: Instant,
) {
    let before = std::mem::take(known);
    *known = shown
        .into_iter()
        .map(|(name, snapshot)| {
            let known = before.get(&name);
            // A holder that comes back from the dead is new.
            let first_seen = known.filter(|seen| seen.snapshot == snapshot || now < seen.expires_at());
            let first_seen = first_seen.map_or(now, |seen| seen.first_seen);
            let last_change =
                known.filter(|seen| seen.snapshot == snapshot).map_or(now, |seen| seen.last_change);
            (name, ObservedLease { snapshot, first_seen, last_change })
        })
        .collect();
}
