//! The load on the rollout budget now: workloads in flight, and unavailable pods, wherever they
//! are.

use std::collections::BTreeSet;

use crate::engine::facts::entry::SourceId;
use crate::engine::rollout::budget::{BudgetShortage, TokenState, WorkloadLoad};
use crate::engine::rollout::rollouts::Rollouts;
use crate::engine::state::Engine;
use crate::engine::{
    BudgetNarrowing, LiveObject, Overlay, OverlayState, RolloutNumbers, RolloutPhase, is_workload,
};
use crate::object::ObjectId;

impl Rollouts {
    /// Pods of a workload that are unavailable. Those that never were available do not count; pods
    /// that a step holds never count as available, so those that are Ready are taken.
    pub(in crate::engine) fn unavailable_pods(rolling: RolloutNumbers, shown: OverlayState) -> u32 {
        match rolling.phase {
            RolloutPhase::FirstStart => 0,
            _ => rolling.replicas.saturating_sub(serving_pods(rolling, shown)),
        }
    }
}

/// The counted load of a workload, as it is taken out of the count again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct CountedLoad {
    source: SourceId,
    rolling: RolloutNumbers,
    shown: OverlayState,
}

/// Pods that serve. Those that a step holds never count as available.
fn serving_pods(rolling: RolloutNumbers, shown: OverlayState) -> u32 {
    match shown {
        OverlayState::Under(Overlay::Surge { .. } | Overlay::InPlace { .. }) => rolling.ready,
        _ => rolling.available,
    }
}

/// The numbers by which pods on their way are counted.
#[derive(Clone, Copy)]
struct ServingPods {
    /// Pods that there are to be.
    replicas: u32,
    /// Pods that serve.
    serving: u32,
}

impl ServingPods {
    fn of(counted: CountedLoad) -> Self {
        let serving = serving_pods(counted.rolling, counted.shown);
        Self { replicas: counted.rolling.replicas, serving }
    }
}

/// Returns how many of the pods on their way still are, as far as the numbers tell. A pod that
/// comes back cannot be told from a new one, so the result is rather too small than too large.
fn pods_still_coming(coming: u32, was: ServingPods, is: ServingPods) -> u32 {
    let more = coming.saturating_add(is.replicas.saturating_sub(was.replicas));
    // A scale down removes the unavailable pods first.
    let fewer = more.saturating_sub(was.replicas.saturating_sub(is.replicas));
    let came = fewer.saturating_sub(is.serving.saturating_sub(was.serving));
    came.min(is.replicas.saturating_sub(is.serving))
}

impl Engine {
    /// Workloads that hold a token: those that roll or were told to, and those that another daemon
    /// has claimed.
    pub(crate) fn workloads_in_flight(&self) -> BTreeSet<ObjectId> {
        self.loads().into_iter().filter(|load| load.token == TokenState::Held).map(|load| load.id).collect()
    }

    /// Returns the load on the budget now, whoever serves it.
    pub(in crate::engine) fn loads(&self) -> Vec<WorkloadLoad> {
        self.with_foreign_loads(self.observed_loads())
    }

    /// Returns the load that this process sees, with the claims.
    pub(in crate::engine) fn observed_loads(&self) -> Vec<WorkloadLoad> {
        let rollouts = &self.rollouts;
        let away = |id: &ObjectId| rollouts.unavailable.get(id).map_or(0, |(_, away)| *away);
        let claimed = |id: &ObjectId| {
            let claims = rollouts.ledger.as_ref().filter(|_| rollouts.granted.contains(id))?;
            claims.claims.get(id).map(|claim| claim.pods)
        };
        let rolls = rollouts.in_flight.iter().map(|(id, rollout)| WorkloadLoad {
            id: id.clone(),
            source: self
                .informer_object(id)
                .and_then(|live| self.source_of(live))
                .or_else(|| self.wanting_source(id)),
            token: if rollouts.granted.contains(id) { TokenState::Held } else { rollout.token },
            unavailable: away(id).max(rollout.reserved).max(claimed(id).unwrap_or(0)),
        });
        // A claim counts from the moment that it is written until it is taken back: only another
        // process may know whether anything came of it.
        let claims: Vec<WorkloadLoad> = rollouts
            .ledger
            .iter()
            .flat_map(|ledger| &ledger.claims)
            .filter(|(id, _)| !rollouts.in_flight.contains_key(*id))
            .filter(|(id, _)| !rollouts.ended_claims.contains(*id) || rollouts.granted.contains(*id))
            .filter_map(|(id, claim)| {
                let counts = self.is_counted(id, claim);
                let token = if counts { TokenState::Held } else { TokenState::None };
                let pods = if counts { claim.pods } else { self.abandoned_unavailable(id, claim) };
                let source = self.source_of_applyset(&claim.applyset);
                let load = WorkloadLoad { id: id.clone(), source, token, unavailable: away(id).max(pods) };
                (counts || pods > 0).then_some(load)
            })
            .collect();
        let others = rollouts.unavailable.iter().filter(|(id, _)| !rollouts.in_flight.contains_key(*id));
        let others = others.filter(|(id, _)| claims.iter().all(|claim| claim.id != **id));
        let others = others.map(|(id, (source, away))| WorkloadLoad {
            id: id.clone(),
            source: Some(*source),
            token: TokenState::None,
            unavailable: *away,
        });
        rolls.chain(others).chain(claims.iter().cloned()).collect()
    }

    /// Takes over what a workload takes of the budget now: it is shown otherwise, is wanted, or is
    /// no longer.
    pub(in crate::engine) fn track_rollout(&mut self, id: &ObjectId) {
        if !is_workload(id) {
            return;
        }
        let (was, is) = (self.rollouts.counted.get(id).copied(), self.current_count(id));
        if was == is && was.is_some() {
            // Its load is the same; its progress may not be.
            self.show_rollout(id);
            return;
        }
        match is {
            Some(counted) => drop(self.rollouts.counted.insert(id.clone(), counted)),
            None => drop(self.rollouts.counted.remove(id)),
        }
        if let Some(CountedLoad { source, rolling, .. }) = was {
            self.count_pods(id, source, rolling.replicas, 0);
        }
        if let Some(CountedLoad { source, rolling, .. }) = is {
            self.count_pods(id, source, 0, rolling.replicas);
        }
        self.track_coming(id, was.map(ServingPods::of), is.map(ServingPods::of));
        let coming = self.rollouts.scaling_up.get(id).copied().unwrap_or(0);
        let away = |counted: CountedLoad| {
            // A pod that a larger count asks for was never there to be lost, also while others are
            // replaced.
            Rollouts::unavailable_pods(counted.rolling, counted.shown).saturating_sub(coming)
        };
        match is.map(|counted| (counted.source, away(counted))) {
            Some((source, away)) if away > 0 => {
                self.rollouts.unavailable.insert(id.clone(), (source, away));
            }
            _ => {
                self.rollouts.unavailable.remove(id);
            }
        }
        self.rollouts.budget_stale = true;
        self.show_rollout(id);
    }

    fn current_count(&self, id: &ObjectId) -> Option<CountedLoad> {
        let live = self.informer_object(id)?;
        let source = self.source_of(live).filter(|_| self.is_budgeted(id, live))?;
        Some(CountedLoad { source, rolling: live.rolling?, shown: live.overlay })
    }

    /// Returns whether a workload counts for the budget: a source wants it, or it is provably ours.
    /// A copy with the label would otherwise hold up all rollouts.
    pub(in crate::engine) fn is_budgeted(&self, id: &ObjectId, live: &LiveObject) -> bool {
        self.wanting_source(id).is_some() || self.inventory_source(live).is_some()
    }

    /// A workload that was shown with these numbers is shown with those.
    fn track_coming(&mut self, id: &ObjectId, was: Option<ServingPods>, is: Option<ServingPods>) {
        let coming = self.rollouts.scaling_up.get(id).copied().unwrap_or(0);
        let coming = was.zip(is).map_or(0, |(was, is)| pods_still_coming(coming, was, is));
        if coming > 0 {
            self.rollouts.scaling_up.insert(id.clone(), coming);
        } else {
            self.rollouts.scaling_up.remove(id);
        }
    }

    fn count_pods(&mut self, id: &ObjectId, source: SourceId, before: u32, now: u32) {
        let recount = |count: &mut u32| *count = count.saturating_sub(before).saturating_add(now);
        recount(self.rollouts.pods.entry(source).or_default());
        if let Some(namespace) = id.namespace() {
            let spaces = self.rollouts.pods_in.entry(source).or_default();
            match spaces.get_mut(namespace) {
                Some(count) => recount(count),
                None => drop(spaces.insert(namespace.into(), now)),
            }
        }
    }

    pub(in crate::engine) fn budget_overrides(
        &self,
        id: &ObjectId,
    ) -> impl Iterator<Item = &BudgetNarrowing> {
        let source = self.wanting_source(id).map(|source| &self.sources[source].budget);
        let namespace = id.namespace().and_then(|name| self.rollouts.budget.namespaces.get(name));
        source.into_iter().chain(namespace)
    }

    /// Wakes those whom the budget allows to start, or tells something new.
    pub(in crate::engine) fn settle_budget(&mut self) {
        if !std::mem::take(&mut self.rollouts.budget_stale) {
            return;
        }
        self.rollouts.queue_dirty = true;
        let permits = self.token_answers();
        let before = std::mem::replace(&mut self.rollouts.answers, permits);
        let kind = |shortage: &Option<BudgetShortage>| shortage.as_ref().map(BudgetShortage::kinds);
        let changed =
            |(id, now): &(&ObjectId, &Option<BudgetShortage>)| before.get(*id).map(kind) != Some(kind(now));
        self.dirty.extend(self.rollouts.answers.iter().filter(changed).map(|(id, _)| id.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_a_larger_count_asks_for_are_on_their_way_until_they_are_available() {
        let check = |states: &[(u32, u32)], expected: &[u32]| {
            let numbers = |(replicas, serving)| ServingPods { replicas, serving };
            let mut coming = 0;
            let found = states.windows(2).map(|pair| {
                coming = pods_still_coming(coming, numbers(pair[0]), numbers(pair[1]));
                coming
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "{states:?}");
        };
        check(&[(3, 3), (10, 3), (10, 6), (10, 10)], &[7, 4, 0]);
        // A pod that fails meanwhile is away; one that comes back is taken for one that comes.
        check(&[(3, 3), (10, 3), (10, 2), (10, 3), (10, 10)], &[7, 7, 6, 0]);
        check(&[(3, 3), (10, 3), (5, 3), (3, 3)], &[7, 2, 0]);
        check(&[(3, 2), (3, 1), (3, 3)], &[0, 0]);
        check(&[(3, 2), (4, 2), (4, 3), (4, 4)], &[1, 0, 0]);
        check(&[(0, 0), (3, 0), (3, 3)], &[3, 0]);
    }
}
