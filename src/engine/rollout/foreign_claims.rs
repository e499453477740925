//! Claims of other daemons on the budget: they count, unless their workload has long come to rest.
//!
//! A daemon that ends for good takes none of its claims back. Its workload may roll on without it.
//! So only the workload shows that a claim is spent. It has come to rest, or has made no progress
//! for the deadline of a rollout.
//!
//! A workload that is deleted and created again is not at rest while there is none. Its daemon
//! gives up after its deadline, which the claim says, and takes its claim back. A daemon that has
//! not done so soon after that is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::decide::budget_shortage::{BudgetScope, BudgetShortage};
use crate::engine::rollout::counted_pods::{serving_pods, unavailable_pods};
use crate::engine::rollout::ledger::{RolloutClaim, RolloutLedger, UnreadableClaim};
use crate::engine::rollout::start_rate::RolloutStart;
use crate::engine::state::Engine;
use crate::engine::{LiveObject, ReplicaStatus, WorkloadPhase};
use crate::object::ObjectId;

/// The time of rest after which a claim counts as abandoned. A daemon that runs takes its claim
/// back as soon as the workload has been healthy for the soak.
pub(crate) const ABANDONED_CLAIM_AGE: Duration = Duration::from_mins(2);

/// The longest time for which the claim of another daemon may ask to be waited for.
const MAX_STATED_DEADLINE: Duration = Duration::from_hours(2);

/// The workload of another daemon's claim.
#[derive(Clone, Debug, PartialEq)]
struct ForeignWorkload {
    claim: RolloutClaim,
    /// The time since which it has been seen at rest.
    rests: Option<Instant>,
    /// The numbers of its rollout, and the time since which they have not changed.
    still: Option<(Option<ReplicaStatus>, Instant)>,
    /// The time since which it has been seen deleted, where its claim says that it is created again.
    missing: Option<Instant>,
    /// Its pods that are unavailable.
    unavailable: u32,
    /// The reason for which it may not be read.
    hidden_reason: Option<Arc<str>>,
    /// Indicates whether it has rested for so long that the claim does not count any more.
    is_spent: bool,
}

/// The claims of others, by what is known of their workloads here.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct ForeignClaims {
    /// Workloads of other daemons' claims.
    foreign_workloads: BTreeMap<ObjectId, ForeignWorkload>,
    /// The ones among these that may not be read, until that was reported.
    newly_hidden: Vec<ObjectId>,
    /// Pods that were unavailable when a workload of others was last looked up, and when that was.
    foreign_unavailable: BTreeMap<ObjectId, (Instant, u32)>,
    /// The unreadable claims that count, and their remedy, in words.
    unreadable_claims_remedy: Option<Arc<str>>,
    /// Inventories of sources that this process served before, and that nobody is to serve any
    /// more.
    retired_inventories: BTreeSet<Arc<str>>,
}

impl ForeignClaims {
    /// Forgets the views of other daemons' workloads of which the next ledger says something newer.
    ///
    /// A claim may be written anew as it was before: for the next step, or for a repair. Then its
    /// start is all that tells the two apart.
    pub(in crate::engine) fn forget_outdated_views(
        &mut self,
        before: Option<&RolloutLedger>,
        next: &RolloutLedger,
    ) {
        let is_known = |start: &RolloutStart| before.is_some_and(|before| before.starts.contains(start));
        let has_begun = |id: &ObjectId| next.starts.iter().any(|start| start.id == *id && !is_known(start));
        self.foreign_workloads
            .retain(|id, known| next.claims.get(id) == Some(&known.claim) && !has_begun(id));
        let published = |ledger: &RolloutLedger, id: &ObjectId| {
            ledger.tallies.iter().filter_map(|tally| tally.unavailable.get(id).copied()).max()
        };
        let is_valid = |id: &ObjectId| {
            let (now, before) = (published(next, id), before.and_then(|before| published(before, id)));
            now.is_some() && now <= before
        };
        self.foreign_unavailable.retain(|id, _| is_valid(id));
    }

    /// Returns the workload of a claim, as it was last seen under it.
    fn workload_of(&self, id: &ObjectId, claim: &RolloutClaim) -> Option<&ForeignWorkload> {
        self.foreign_workloads.get(id).filter(|known| known.claim == *claim)
    }

    /// Takes the workloads that may not be read, as far as that was not reported.
    pub(in crate::engine) fn take_newly_hidden(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.newly_hidden)
    }

    /// Records how many pods of a workload a lookup has shown as unavailable.
    pub(in crate::engine) fn set_unavailable(&mut self, id: &ObjectId, pods: u32, now: Instant) {
        self.foreign_unavailable.insert(id.clone(), (now, pods));
    }

    /// Returns when a workload was last looked up, and how many pods were unavailable then.
    pub(in crate::engine) fn unavailable_of(&self, id: &ObjectId) -> Option<(Instant, u32)> {
        self.foreign_unavailable.get(id).copied()
    }

    /// Returns the unreadable claims that count, and their remedy, in words.
    pub(in crate::engine) fn unreadable_claims_remedy(&self) -> Option<&Arc<str>> {
        self.unreadable_claims_remedy.as_ref()
    }

    /// Returns whether nobody is to serve the source of an inventory any more.
    pub(in crate::engine) fn is_retired(&self, inventory_id: &Arc<str>) -> bool {
        self.retired_inventories.contains(inventory_id)
    }
}

impl Engine {
    /// Retires the source of an inventory that this process has served, and that nobody is to serve
    /// any more. Nothing of it waits, and its claims are taken back once their workloads have
    /// rested.
    pub(in crate::engine) fn retire(&mut self, inventory_id: Arc<str>) {
        self.rollouts.foreign_claims.retired_inventories.insert(inventory_id);
        self.rollouts.queue.mark_dirty();
    }

    /// Returns whether what the rollout ledger says of this inventory is this process's to keep.
    pub(in crate::engine) fn is_responsible_for(&self, inventory_id: &Arc<str>) -> bool {
        self.sources.inventory_ids().contains(inventory_id)
            || self.rollouts.foreign_claims.is_retired(inventory_id)
    }

    /// Returns the workloads to look up for other processes' claims: those that a write waits for,
    /// and those whose claim nobody else may take back.
    pub(in crate::engine) fn foreign_workloads(&self) -> Vec<ObjectId> {
        let matters = |claim: &RolloutClaim| {
            !self.rollouts.slot_requests.is_empty() || self.is_responsible_for(&claim.inventory_id)
        };
        let open = self.foreign_claims().filter(|(id, claim)| {
            matters(claim) && !self.rollouts.in_flight.contains_key(*id) && !self.rollouts.ledger.is_ended(id)
        });
        let mut ids: Vec<ObjectId> = open.map(|(id, _)| id.clone()).collect();
        if !self.rollouts.slot_requests.is_empty() {
            let away = self.foreign_unavailable().filter(|id| !ids.contains(id)).cloned();
            ids.extend(away.collect::<Vec<_>>());
        }
        ids
    }

    /// Returns the claims of other processes: of other sources, and of processes that serve the
    /// same sources or did before.
    pub(in crate::engine) fn foreign_claims(&self) -> impl Iterator<Item = (&ObjectId, &RolloutClaim)> {
        let claims = self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.claims);
        claims.filter(|(_, claim)| {
            !self.sources.inventory_ids().contains(&claim.inventory_id)
                || claim.holder != *self.rollouts.ledger.holder()
        })
    }

    /// Returns whether a claim may be that of a process that serves the same source and lives: it
    /// is not taken back for it. Once its workload has come to rest under our eyes, or has long
    /// rested, it is.
    pub(in crate::engine) fn is_of_another(&self, id: &ObjectId, claim: &RolloutClaim) -> bool {
        claim.holder != *self.rollouts.ledger.holder()
            && !self.rollouts.ledger.is_ended(id)
            && self.is_counted(id, claim)
    }

    /// Records the workload of another daemon's claim, as a lookup shows it; none where there is no
    /// such object.
    pub(in crate::engine) fn observe_foreign_workload(
        &mut self,
        id: &ObjectId,
        live: Option<&LiveObject>,
        now: Instant,
    ) {
        self.observe_foreign_load(id, live, now);
        let Some(claim) =
            self.foreign_claims().find(|(other, _)| *other == id).map(|(_, claim)| claim.clone())
        else {
            return;
        };
        let replica_status = live.and_then(|live| live.replica_status);
        let is_missing = self.is_recreation(&claim) && live.is_none_or(|live| live.deleting);
        let at_rest = !is_missing
            && matches!(
                replica_status.map(|replica_status| replica_status.phase),
                None | Some(WorkloadPhase::Settled)
            );
        let workloads = &mut self.rollouts.foreign_claims.foreign_workloads;
        let known = workloads.remove(id).filter(|known| known.claim == claim);
        let rests = known.as_ref().and_then(|known| known.rests).or(Some(now)).filter(|_| at_rest);
        let missing = known.as_ref().and_then(|known| known.missing).or(Some(now)).filter(|_| is_missing);
        let same = known.and_then(|known| known.still).filter(|(before, _)| *before == replica_status);
        let still = same.map_or(now, |(_, since)| since);
        // As for our own claims: without progress it has failed. It then counts by its
        // unavailable pods only.
        let deadline = self.rollouts.budget.deadline.max(ABANDONED_CLAIM_AGE);
        // Nobody of a process that has ended in good order watches what it left: its soak is all
        // that is waited for.
        let rest = if claim.holder_exited {
            self.rollouts.budget.soak.min(ABANDONED_CLAIM_AGE)
        } else {
            ABANDONED_CLAIM_AGE
        };
        let is_spent = match missing {
            Some(since) => {
                now.duration_since(since) >= deadline.max(stated_deadline(&claim)) + ABANDONED_CLAIM_AGE
            }
            None => {
                now.duration_since(still) >= deadline
                    || rests.is_some_and(|since| now.duration_since(since) >= rest)
            }
        };
        let still = Some((replica_status, still));
        let unavailable = live.map_or(0, |live| abandoned_pods(live, &claim));
        self.rollouts.foreign_claims.foreign_workloads.insert(
            id.clone(),
            ForeignWorkload { claim, rests, still, missing, unavailable, hidden_reason: None, is_spent },
        );
        self.rollouts.slot_requests.mark_stale();
    }

    /// Returns whether somebody who has not ended deletes the workload of a claim and creates it
    /// again.
    fn is_recreation(&self, claim: &RolloutClaim) -> bool {
        claim.recreates
            && !claim.holder_exited
            && !self.rollouts.foreign_claims.is_retired(&claim.inventory_id)
    }

    /// Records that the workload of another daemon's claim may not be read. The claim counts, which
    /// is shown as soon as it is in the way. Returns whether that is new.
    pub(in crate::engine) fn insert_hidden_workload(&mut self, id: &ObjectId, why: Arc<str>) -> bool {
        let Some(claim) =
            self.foreign_claims().find(|(other, _)| *other == id).map(|(_, claim)| claim.clone())
        else {
            return false;
        };
        let known = self.rollouts.foreign_claims.workload_of(id, &claim);
        if known.is_some_and(|known| known.is_spent || known.hidden_reason.as_ref() == Some(&why)) {
            return false;
        }
        self.rollouts.foreign_claims.foreign_workloads.insert(
            id.clone(),
            ForeignWorkload {
                claim,
                rests: None,
                still: None,
                missing: None,
                unavailable: 0,
                hidden_reason: Some(why),
                is_spent: false,
            },
        );
        self.rollouts.slot_requests.mark_stale();
        true
    }

    /// Does the same as [`Engine::insert_hidden_workload`], and keeps what is new of it.
    pub(in crate::engine) fn record_hidden_workload(&mut self, id: ObjectId, why: Arc<str>) {
        if self.insert_hidden_workload(&id, why) {
            self.rollouts.foreign_claims.newly_hidden.push(id);
        }
    }

    /// Adds to a shortage the reason for which nobody here can see whether the claims behind it are
    /// spent.
    pub(in crate::engine) fn add_hidden_reasons(
        &self,
        slot_verdicts: &mut BTreeMap<ObjectId, Option<BudgetShortage>>,
    ) {
        let hidden = |(id, claim): (&ObjectId, &RolloutClaim)| {
            let known = self.rollouts.foreign_claims.workload_of(id, claim)?;
            Some((id.clone(), known.hidden_reason.clone()?))
        };
        let Some((id, why)) = self.foreign_claims().find_map(hidden) else { return };
        for shortage in slot_verdicts.values_mut().flatten().filter(|shortage| shortage.is_of_claims()) {
            *shortage = BudgetShortage::Hidden(Box::new(shortage.clone()), id.clone(), why.clone());
        }
    }

    /// Returns how many pods are unavailable of the workload of a claim that counts no more: nobody
    /// ends what it began.
    pub(in crate::engine) fn abandoned_unavailable(&self, id: &ObjectId, claim: &RolloutClaim) -> u32 {
        let known = self.rollouts.foreign_claims.workload_of(id, claim).filter(|known| known.is_spent);
        known.map_or(0, |known| known.unavailable)
    }

    /// Returns the claims that nobody here can read and that count in a scope. Of which source they
    /// are is not known.
    pub(in crate::engine) fn unreadable_claims(
        &self,
        scope: &BudgetScope,
    ) -> impl Iterator<Item = &UnreadableClaim> {
        let counts = !matches!(scope, BudgetScope::Source(..));
        let claims = self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.unreadable_claims);
        claims.filter(move |_| counts)
    }

    /// Does the same as [`Engine::unreadable_claims`], in a number.
    pub(in crate::engine) fn count_unreadable_claims(&self, scope: &BudgetScope) -> u32 {
        u32::try_from(self.unreadable_claims(scope).count()).unwrap_or(u32::MAX)
    }

    /// Takes over the reason for unreadable claims, and how to mend that; none where
    /// all can be read.
    pub(in crate::engine) fn explain_unread(&mut self, why: Option<Arc<str>>) {
        let remedy = &mut self.rollouts.foreign_claims.unreadable_claims_remedy;
        if *remedy != why {
            *remedy = why;
            self.rollouts.slot_requests.mark_stale();
        }
    }

    /// Returns whether another daemon's claim counts.
    pub(in crate::engine) fn is_counted(&self, id: &ObjectId, claim: &RolloutClaim) -> bool {
        let known = self.rollouts.foreign_claims.workload_of(id, claim);
        known.is_none_or(|known| !known.is_spent)
    }
}

/// Returns the time for which the daemon of a claim waits for its workload to be created again, as
/// far as it says that. Its configuration may ask for longer than the one of this process.
fn stated_deadline(claim: &RolloutClaim) -> Duration {
    let stated = Duration::from_secs(claim.recreation_deadline.map_or(0, u64::from));
    stated.min(MAX_STATED_DEADLINE)
}

/// Returns how many pods of the workload of a claim are unavailable. The count of its manifest is
/// not known here, and its spec is unproven. So no more are lost than are there, or than the
/// rollout may have taken down.
fn abandoned_pods(live: &LiveObject, claim: &RolloutClaim) -> u32 {
    let Some(replica_status) = live.replica_status else { return 0 };
    let there = replica_status.pods.saturating_sub(serving_pods(replica_status, live.overlay));
    unavailable_pods(replica_status, live.overlay).min(there.max(claim.reserved))
}
