//! The load of each source's workloads on the budget beside its claims, published to all who share
//! it.
//!
//! A process sees the pods of its own sources alone. So it writes into the rollout ledger which of
//! them are unavailable, and how many there are. Claims are written by compare-and-swap on these
//! very numbers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::engine::decide::budget_holding::{BudgetHolding, ClaimHolder, HolderProcess};
use crate::engine::decide::budget_shortage::{BudgetScope, BudgetShortage};
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::records::object_word::{object_word, parse_object_word};
use crate::engine::rollout::budget::{BudgetSlot, WorkloadLoad};
use crate::engine::rollout::counted_pods::unavailable_pods;
use crate::engine::rollout::ledger::{RolloutClaim, RolloutLedger};
use crate::engine::rollout::ledger_text::read_name;
use crate::engine::rollout::rollouts::Rollouts;
use crate::engine::state::Engine;
use crate::engine::{KindState, LiveObject, is_workload};
use crate::object::ObjectId;

/// The number of a source's workloads that are named, the largest numbers first: some 2 KB.
const MAX_NAMED_WORKLOADS: usize = 20;

/// The number of parts of the budget that others hold, of which a shortage tells.
const MAX_NAMED_HOLDINGS: usize = 3;

/// The time for which the view of another process' workload counts.
const FOREIGN_VIEW_VALIDITY: Duration = Duration::from_secs(10);

/// The time for which a lookup that shows no unavailable pod proves that the publisher has ended.
const READY_VIEW_VALIDITY: Duration = Duration::from_mins(1);

/// The number of others' workloads that are looked up in one go.
const MAX_FOREIGN_LOOKUPS: usize = 16;

/// The time after which a process publishes its load again, though nothing has changed.
const TALLY_RENEWAL_INTERVAL: SignedDuration = SignedDuration::from_hours(6);

/// The time without a word after which a process serves its source no more: its pods leave the
/// total of which percentages are.
const TALLY_EXPIRY: SignedDuration = SignedDuration::from_hours(24);

/// A count of all pods that differs by less than such a part is not worth a write of its own.
const MIN_COUNT_CHANGE_FRACTION: u32 = 20;

/// The load of one source on the budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BudgetTally {
    /// The inventory.
    pub inventory_id: Arc<str>,
    /// The name of the source.
    pub name: Arc<str>,
    /// The number of pods of its workloads that count.
    pub pods: u32,
    /// The same in namespaces that have bounds of their own.
    pub pods_in: BTreeMap<Arc<str>, u32>,
    /// The unavailable pods, by workload. Pods behind a claim are not counted again.
    pub unavailable: BTreeMap<ObjectId, u32>,
    /// Pods that are unavailable of workloads that are not named.
    pub rest: u32,
    /// The time of publication, by the publisher's clock; none where an older version has published
    /// it.
    pub at: Option<Timestamp>,
}

/// The form of a [`BudgetTally`] in JSON.
#[derive(Serialize, Deserialize)]
pub(in crate::engine) struct BudgetTallyText {
    source: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pods: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    namespaces: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unavailable: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    rest: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl BudgetTallyText {
    /// Returns the text of one.
    pub(in crate::engine) fn of(tally: &BudgetTally) -> Self {
        let word = |(id, pods): (&ObjectId, &u32)| (object_word(id), *pods);
        Self {
            source: tally.inventory_id.to_string(),
            name: tally.name.to_string(),
            pods: tally.pods,
            namespaces: tally.pods_in.iter().map(|(name, pods)| (name.to_string(), *pods)).collect(),
            unavailable: tally.unavailable.iter().map(word).collect(),
            rest: tally.rest,
            at: tally.at,
        }
    }

    /// Reads it. Pods of what cannot be read count as those of workloads that are not named.
    pub(in crate::engine) fn read(self) -> BudgetTally {
        let mut tally = BudgetTally {
            inventory_id: read_name(&self.source),
            name: read_name(&self.name),
            pods: self.pods,
            pods_in: self.namespaces.iter().map(|(name, pods)| (read_name(name), *pods)).collect(),
            unavailable: BTreeMap::new(),
            rest: self.rest,
            at: self.at,
        };
        for (word, pods) in self.unavailable {
            match parse_object_word(&word) {
                Some(id) => drop(tally.unavailable.insert(id, pods)),
                None => tally.rest = tally.rest.saturating_add(pods),
            }
        }
        tally
    }
}

impl BudgetTally {
    /// Returns whether any pod of it is unavailable.
    pub(in crate::engine) fn has_unavailable_pods(&self) -> bool {
        !self.unavailable.is_empty() || self.rest > 0
    }

    fn is_empty(&self) -> bool {
        self.pods == 0 && self.unavailable.is_empty() && self.rest == 0
    }

    /// Returns whether its numbers differ enough from the published ones to be worth a write.
    fn is_news_after(&self, published: &Self) -> bool {
        let far = |one: u32, other: u32| one.abs_diff(other) > other / MIN_COUNT_CHANGE_FRACTION;
        let spaces = self.pods_in.len() != published.pods_in.len()
            || self
                .pods_in
                .iter()
                .any(|(name, pods)| published.pods_in.get(name).is_none_or(|other| far(*pods, *other)));
        let is_old = self
            .at
            .zip(published.at)
            .is_some_and(|(at, published)| published.duration_until(at) >= TALLY_RENEWAL_INTERVAL);
        spaces
            || is_old
            || far(self.pods, published.pods)
            || (&self.inventory_id, &self.name, &self.unavailable, self.rest)
                != (&published.inventory_id, &published.name, &published.unavailable, published.rest)
    }
}

/// Returns whether the first tallies are worth a write where the others were published.
pub(in crate::engine) fn is_worth_writing(now: &[BudgetTally], published: &[BudgetTally]) -> bool {
    now.len() != published.len()
        || now.iter().zip(published).any(|(now, published)| now.is_news_after(published))
}

impl RolloutLedger {
    /// Returns the pods that are unavailable, or may become so by what is claimed, as all processes
    /// have published.
    pub(crate) fn total_unavailable_pods(&self) -> u32 {
        let mut away: BTreeMap<&ObjectId, u32> =
            self.claims.iter().map(|(id, claim)| (id, claim.reserved)).collect();
        for (id, pods) in self.tallies.iter().flat_map(|tally| &tally.unavailable) {
            let known = away.entry(id).or_default();
            *known = (*known).max(*pods);
        }
        let rest = self.tallies.iter().map(|tally| tally.rest);
        let rest = rest.chain(self.unreadable_claims.iter().map(|claim| claim.pods));
        away.into_values().chain(rest).fold(0, u32::saturating_add)
    }

    /// Returns the holder of a claim.
    pub(crate) fn holder_of(&self, claim: &RolloutClaim) -> ClaimHolder {
        let process = claim.holder.split_once('@').and_then(|(process, host)| {
            let number = process.split('-').next()?.into();
            Some(HolderProcess { number, host: host.into() })
        });
        ClaimHolder { source: self.source_name(&claim.inventory_id), process, has_ended: claim.holder_exited }
    }

    /// Returns the number of the process that has a claim, and the mark of where that number means
    /// it; none where it has none.
    pub(crate) fn holder_process(claim: &RolloutClaim) -> Option<(u32, &str)> {
        let (process, _) = claim.holder.split_once('@')?;
        let mut words = process.split('-');
        Some((words.next()?.parse().ok()?, words.nth(2)?))
    }

    /// Returns the name of the source of an inventory, where it is published.
    fn source_name(&self, inventory_id: &str) -> Option<Arc<str>> {
        let tallies = self.tallies.iter().filter(|tally| *tally.inventory_id == *inventory_id);
        tallies.map(|tally| &tally.name).find(|name| !name.is_empty()).cloned()
    }
}

impl Engine {
    /// Returns the load of each of this process' sources. The part that it does not see yet stays
    /// as published.
    pub(in crate::engine) fn tallies(&self, ledger: &RolloutLedger) -> Vec<BudgetTally> {
        let tally_of =
            |inventory_id: &Arc<str>| ledger.tallies.iter().find(|tally| tally.inventory_id == *inventory_id);
        let mut taken: HashMap<SourceId, Vec<(ObjectId, u32)>> = HashMap::new();
        for load in self.observed_loads() {
            let claimed = ledger.claims.get(&load.id).map_or(0, |claim| claim.reserved);
            if let Some(source) = load.source.filter(|_| load.unavailable > claimed) {
                taken.entry(source).or_default().push((load.id, load.unavailable));
            }
        }
        let of = |(source, inventory_id): (SourceId, &Arc<str>)| {
            if self.can_see_workloads_of(source) {
                Some(self.tally(source, taken.remove(&source).unwrap_or_default()))
            } else {
                tally_of(inventory_id).cloned()
            }
        };
        self.source_ids()
            .zip(self.sources.inventory_ids())
            .filter_map(of)
            .filter(|tally| !tally.is_empty())
            .collect()
    }

    fn tally(&self, source: SourceId, mut away: Vec<(ObjectId, u32)>) -> BudgetTally {
        away.sort_by(|(id, pods), (other, others)| others.cmp(pods).then_with(|| id.cmp(other)));
        let rest = away.iter().skip(MAX_NAMED_WORKLOADS).map(|(_, pods)| *pods).fold(0, u32::saturating_add);
        away.truncate(MAX_NAMED_WORKLOADS);
        let narrowed = self.rollouts.budget.namespaces.keys();
        let pods_in = narrowed.filter_map(|name| {
            let pods = self.rollouts.pod_counts.pods_of_in(source, name);
            (pods > 0).then(|| (name.clone(), pods))
        });
        BudgetTally {
            inventory_id: self.sources.inventory_ids()[source].clone(),
            name: self.sources[source].declared.name.clone(),
            pods: self.rollouts.pod_counts.pods_of(source),
            pods_in: pods_in.collect(),
            unavailable: away.into_iter().collect(),
            rest,
            at: self.now_in_seconds(),
        }
    }

    /// Returns whether the informers show all workloads of a source, and it is known which of them
    /// are its own.
    fn can_see_workloads_of(&self, source: SourceId) -> bool {
        let Some(inventory) = &self.sources[source].inventory else { return false };
        if self.sources[source].head.is_none() || self.is_reading_release_key() {
            return false;
        }
        let kinds = ["DaemonSet", "Deployment", "StatefulSet"];
        let mut kinds = kinds.map(|kind| crate::object::GroupKind::new("apps", kind)).into_iter();
        kinds.all(|kind| match self.kind_state(source, &kind) {
            Some(KindState::Synced | KindState::Absent) => true,
            Some(KindState::Syncing | KindState::Unobservable(..)) => false,
            None => !inventory.kinds.contains(&kind),
        })
    }

    /// Returns this moment by the clock of the host, in whole seconds.
    fn now_in_seconds(&self) -> Option<Timestamp> {
        let (_, wall) = self.rollouts.starts.clock()?;
        Timestamp::from_second(wall.as_second()).ok()
    }

    /// Returns whether nobody has served a source for so long that its published load counts no
    /// more. Its unavailable pods count until a lookup shows fewer.
    fn is_expired(&self, tally: &BudgetTally) -> bool {
        let age = tally.at.zip(self.now_in_seconds()).map(|(at, now)| at.duration_until(now));
        age.is_some_and(|age| age >= TALLY_EXPIRY)
    }

    /// Returns whether what this process has published is to be published again.
    pub(in crate::engine) fn is_to_renew(&self) -> bool {
        let Some((ledger, now)) = self.rollouts.ledger.latest().zip(self.now_in_seconds()) else {
            return false;
        };
        let is_old =
            |tally: &BudgetTally| tally.at.is_some_and(|at| at.duration_until(now) >= TALLY_RENEWAL_INTERVAL);
        ledger
            .tallies
            .iter()
            .any(|tally| self.sources.inventory_ids().contains(&tally.inventory_id) && is_old(tally))
    }

    /// Writes into a ledger what the sources of this process take.
    pub(in crate::engine) fn with_tallies(
        &self,
        mut ledger: RolloutLedger,
        own: Vec<BudgetTally>,
    ) -> RolloutLedger {
        ledger.tallies.retain(|tally| !self.is_responsible_for(&tally.inventory_id));
        ledger.tallies.retain(|tally| tally.has_unavailable_pods() || !self.is_expired(tally));
        for tally in ledger.tallies.iter_mut().filter(|tally| tally.at.is_none()) {
            tally.at = self.now_in_seconds();
        }
        ledger.tallies.extend(own);
        ledger
    }

    /// Returns what a ledger records of the sources of this process.
    pub(in crate::engine) fn own_tallies(&self, ledger: &RolloutLedger) -> Vec<BudgetTally> {
        ledger.tallies.iter().filter(|tally| self.is_responsible_for(&tally.inventory_id)).cloned().collect()
    }

    /// Returns what counts because others have published it: this process does not see those
    /// workloads.
    pub(in crate::engine) fn foreign_tallies(
        &self,
    ) -> impl Iterator<Item = (Option<SourceId>, &BudgetTally)> {
        let tallies = self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.tallies);
        tallies.filter_map(|tally| {
            let source = self.source_of_inventory_id(&tally.inventory_id);
            let hidden = source.is_none_or(|source| !self.can_see_workloads_of(source));
            (hidden && !self.rollouts.foreign_claims.is_retired(&tally.inventory_id))
                .then_some((source, tally))
        })
    }

    /// Adds to what this process sees what others have published.
    pub(in crate::engine) fn with_foreign_loads(&self, mut loads: Vec<WorkloadLoad>) -> Vec<WorkloadLoad> {
        if self.foreign_tallies().next().is_none() {
            return loads;
        }
        let mut indexes: HashMap<ObjectId, usize> =
            loads.iter().enumerate().map(|(index, load)| (load.id.clone(), index)).collect();
        for (source, tally) in self.foreign_tallies() {
            for (id, published) in &tally.unavailable {
                let unavailable = self.rollouts.bound_foreign_unavailable(id, *published);
                if let Some(load) = indexes.get(id).and_then(|index| loads.get_mut(*index)) {
                    load.unavailable = load.unavailable.max(unavailable);
                } else if unavailable > 0 {
                    indexes.insert(id.clone(), loads.len());
                    loads.push(WorkloadLoad { id: id.clone(), source, slot: BudgetSlot::None, unavailable });
                }
            }
        }
        loads
    }

    /// Returns pods that are unavailable of workloads that nobody names. They count in each
    /// namespace.
    pub(in crate::engine) fn unnamed_unavailable(&self, scope: &BudgetScope) -> u32 {
        let counts = |source: Option<SourceId>| match scope {
            BudgetScope::Cluster | BudgetScope::Namespace(_) => true,
            BudgetScope::Source(number, _) => source == Some(*number),
        };
        let tallies = self.foreign_tallies().filter(|(source, _)| counts(*source));
        let tallies = tallies.filter(|(_, tally)| !self.is_disproven_by_lookups(tally));
        let unread = self.unreadable_claims(scope).map(|claim| claim.pods);
        tallies.map(|(_, tally)| tally.rest).chain(unread).fold(0, u32::saturating_add)
    }

    /// Returns whether lookups have shown as healthy all workloads that a tally names, which are
    /// those that had lost the most pods. Its publisher would have named others instead, and has
    /// ended.
    fn is_disproven_by_lookups(&self, tally: &BudgetTally) -> bool {
        let Some(now) = self.rollouts.starts.current_time() else { return false };
        let is_healthy = |id: &ObjectId| {
            let observation = self.rollouts.foreign_claims.unavailable_of(id);
            observation.is_some_and(|(at, seen)| {
                seen == 0 && now.saturating_duration_since(at) < READY_VIEW_VALIDITY
            })
        };
        !tally.unavailable.is_empty() && tally.unavailable.keys().all(is_healthy)
    }

    /// Returns how many pods of the workloads of all sources of the cluster count.
    pub(in crate::engine) fn pods_of_all(&self) -> u32 {
        let seen = |source: SourceId| self.rollouts.pod_counts.pods_of(source);
        let own = self.source_ids().map(seen).fold(0, u32::saturating_add);
        // Of a source that is not seen completely yet the larger number counts.
        let tallies = self.foreign_tallies().filter(|(_, tally)| !self.is_expired(tally));
        let tallies = tallies.map(|(source, tally)| tally.pods.saturating_sub(source.map_or(0, seen)));
        tallies.fold(own, u32::saturating_add)
    }

    /// Does the same as [`Engine::pods_of_all`], of one namespace.
    pub(in crate::engine) fn pods_of_all_in(&self, name: &str) -> u32 {
        let tallies = self.foreign_tallies().filter(|(_, tally)| !self.is_expired(tally));
        let tallies = tallies.filter_map(|(_, tally)| tally.pods_in.get(name));
        tallies.copied().fold(self.rollouts.pod_counts.pods_in(name), u32::saturating_add)
    }

    /// Returns workloads of others with pods that are unavailable: whoever has reported that may
    /// have ended since. Of many, those that were looked up the longest time ago.
    pub(in crate::engine) fn foreign_unavailable(&self) -> impl Iterator<Item = &ObjectId> {
        let mut workloads: Vec<&ObjectId> =
            self.foreign_tallies().flat_map(|(_, tally)| tally.unavailable.keys()).collect();
        workloads.sort_by_key(|id| self.rollouts.foreign_claims.unavailable_of(id).map(|(at, _)| at));
        workloads.into_iter().take(MAX_FOREIGN_LOOKUPS)
    }

    /// Returns whether the rollout ledger is to be read again soon, as others may change what a
    /// write waits for.
    pub(in crate::engine) fn is_waiting_for_others(&self) -> bool {
        let others = || self.foreign_tallies().next().is_some() || self.foreign_claims().next().is_some();
        !self.rollouts.slot_requests.is_empty() && others()
    }

    /// Returns whether other processes keep anything in the rollout ledger.
    pub(in crate::engine) fn has_shared_budget(&self) -> bool {
        self.foreign_tallies().any(|(source, _)| source.is_none()) || self.foreign_claims().next().is_some()
    }

    /// Takes over a lookup of a workload of others. It can only lower what they have published.
    pub(in crate::engine) fn observe_foreign_load(
        &mut self,
        id: &ObjectId,
        live: Option<&LiveObject>,
        now: Instant,
    ) {
        let published = self.foreign_tallies().find_map(|(_, tally)| tally.unavailable.get(id)).copied();
        if let Some(published) = published {
            let seen =
                live.and_then(|live| Some(unavailable_pods(live.replica_status?, live.overlay))).unwrap_or(0);
            self.rollouts.foreign_claims.set_unavailable(id, published.min(seen), now);
            self.rollouts.slot_requests.mark_stale();
        }
    }

    /// Says of each shortage because of others who they are.
    pub(in crate::engine) fn add_holders(
        &self,
        slot_verdicts: &mut BTreeMap<ObjectId, Option<BudgetShortage>>,
    ) {
        let holdings = self.holdings_of_others();
        if holdings.is_empty() {
            return;
        }
        for shortage in slot_verdicts.values_mut().flatten().filter(|shortage| shortage.is_of_claims()) {
            *shortage = BudgetShortage::Shared(Box::new(shortage.clone()), holdings.clone());
        }
    }

    /// Returns who has claimed a workload, where that is another process.
    pub(in crate::engine) fn other_holder(&self, id: &ObjectId) -> Option<ClaimHolder> {
        let ledger = self.rollouts.ledger.latest()?;
        let (_, claim) = self.foreign_claims().find(|(claimed, _)| *claimed == id)?;
        Some(ledger.holder_of(claim))
    }

    /// Returns the first parts of the budget that others hold.
    fn holdings_of_others(&self) -> Arc<[BudgetHolding]> {
        let Some(ledger) = self.rollouts.ledger.latest() else { return [].into() };
        let claims = self.foreign_claims().filter(|(id, claim)| self.is_counted(id, claim));
        let claims = claims.map(|(id, claim)| BudgetHolding::Claim(id.clone(), ledger.holder_of(claim)));
        let sick = self.foreign_tallies().flat_map(|(_, tally)| {
            let source = ledger.source_name(&tally.inventory_id);
            let away = tally.unavailable.iter().filter_map(|(id, published)| {
                let pods = self.rollouts.bound_foreign_unavailable(id, *published);
                (pods > 0 && !ledger.claims.contains_key(id)).then_some((id, pods))
            });
            away.map(move |(id, pods)| BudgetHolding::UnavailablePods {
                workload: id.clone(),
                pods,
                source: source.clone(),
            })
        });
        let remedy = self.rollouts.foreign_claims.unreadable_claims_remedy();
        let unread = remedy.into_iter().cloned().map(BudgetHolding::UnreadableClaims);
        unread.chain(claims).chain(sick).take(MAX_NAMED_HOLDINGS).collect()
    }
}

impl Rollouts {
    /// Returns how many pods are unavailable of a workload of others, of as many as they have
    /// reported.
    fn bound_foreign_unavailable(&self, id: &ObjectId, published: u32) -> u32 {
        let Some((at, seen)) = self.foreign_claims.unavailable_of(id) else { return published };
        let fresh = self
            .starts
            .current_time()
            .is_some_and(|now| now.saturating_duration_since(at) < FOREIGN_VIEW_VALIDITY);
        if fresh && is_workload(id) { published.min(seen) } else { published }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::object::GroupKind;

    fn workload(name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), name)
    }

    fn tally() -> BudgetTally {
        BudgetTally {
            inventory_id: "a-v1".into(),
            name: "shop".into(),
            pods: 100,
            pods_in: [(Arc::from("shop"), 100)].into(),
            unavailable: [(workload("api"), 2)].into(),
            rest: 1,
            at: Timestamp::from_second(0).ok(),
        }
    }

    #[test]
    fn a_tally_is_empty_only_without_any_pod() {
        let check = |pods: u32, named: u32, rest: u32, expected: (bool, bool)| {
            let named = Some(named).filter(|count| *count > 0);
            let unavailable = named.map(|count| (workload("api"), count)).into_iter().collect();
            let tally = BudgetTally { pods, unavailable, rest, ..BudgetTally::default() };
            assert_eq!((tally.is_empty(), tally.has_unavailable_pods()), expected, "{tally:?}");
        };
        check(0, 0, 0, (true, false));
        check(1, 0, 0, (false, false));
        check(0, 1, 0, (false, true));
        check(0, 0, 1, (false, true));
    }

    #[test]
    fn a_tally_is_published_again_where_it_says_something_else() {
        let check = |change: &dyn Fn(&mut BudgetTally), expected: bool| {
            let mut now = tally();
            change(&mut now);
            assert_eq!(now.is_news_after(&tally()), expected, "{now:?}");
            let worth = is_worth_writing(&[tally(), now.clone()], &[tally(), tally()]);
            assert_eq!(worth, expected, "{now:?}");
        };
        check(&|_| {}, false);
        // A few pods more or fewer of all are not worth a write.
        for (pods, expected) in [(94, true), (95, false), (105, false), (106, true)] {
            check(&|now| now.pods = pods, expected);
            check(&|now| now.pods_in = [(Arc::from("shop"), pods)].into(), expected);
        }
        check(&|now| now.pods_in = [(Arc::from("other"), 100)].into(), true);
        check(&|now| now.pods_in.clear(), true);
        check(&|now| now.inventory_id = "b-v1".into(), true);
        check(&|now| now.name = "other".into(), true);
        check(&|now| now.unavailable = [(workload("api"), 1)].into(), true);
        check(&|now| now.rest = 0, true);
        let seconds = |count: i64| Timestamp::from_second(count).ok();
        check(&|now| now.at = seconds(6 * 3600), true);
        check(&|now| now.at = seconds(6 * 3600 - 1), false);
        check(&|now| now.at = None, false);
    }

    #[test]
    fn a_source_that_comes_or_goes_is_worth_a_write() {
        assert!(is_worth_writing(&[tally()], &[]));
        assert!(is_worth_writing(&[], &[tally()]));
        assert!(!is_worth_writing(&[], &[]));
    }

    #[test]
    fn what_is_nothing_is_not_written() {
        let empty = BudgetTally {
            pods_in: BTreeMap::new(),
            unavailable: BTreeMap::new(),
            rest: 0,
            at: None,
            ..tally()
        };
        let text = serde_json::to_value(BudgetTallyText::of(&empty)).unwrap();
        assert_eq!(text, json!({"source": "a-v1", "name": "shop", "pods": 100}));
    }

    #[test]
    fn pods_of_what_cannot_be_read_are_those_of_workloads_that_are_not_named() {
        let read = |text: Value| serde_json::from_value::<BudgetTallyText>(text).unwrap().read();
        let away = json!({"Deployment.apps/shop/api": 2, "api": 3, "": 4});
        let tally = read(json!({"source": "a-v1", "unavailable": away, "rest": 1}));
        assert_eq!(tally.unavailable, BTreeMap::from([(workload("api"), 2)]));
        assert_eq!(tally.rest, 8);
    }
}
