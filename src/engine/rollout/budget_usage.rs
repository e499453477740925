//! The use of the rollout budget now, in numbers for people. Nothing is decided by them.

use crate::engine::rollout::budget::{BudgetScope, BudgetSlot};
use crate::engine::state::Engine;
use crate::engine::{OnFailure, WorkloadLoad};

/// The use of the cluster's rollout budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetUsage {
    /// Workloads in flight, and how many may be.
    pub workloads: (u32, u32),
    /// The number of rollouts that may begin at a time now: it grows by each success.
    pub window: u32,
    /// Pods that are unavailable or may become so by what was begun, and how many may be.
    pub unavailable: (u32, u32),
    /// Rollouts that began in the last minute, and how many may.
    pub starts: (u32, u32),
    /// The action after a failure, where nothing narrower says otherwise.
    pub on_failure: OnFailure,
    /// Indicates whether the rollout ledger has been read: none before.
    pub known: bool,
}

impl Engine {
    /// Returns the use of the whole cluster's rollout budget.
    pub(crate) fn usage(&self) -> BudgetUsage {
        let (loads, rollouts) = (self.loads(), &self.rollouts);
        let in_flight = loads.iter().filter(|load| load.slot == BudgetSlot::Held).count();
        let cluster_bound =
            self.budget_bounds().into_iter().find(|bound| bound.scope == BudgetScope::Cluster);
        let (workloads, away, starts) =
            cluster_bound.map_or((0, 0, (0, 0)), |b| (b.workloads, b.unavailable, b.starts));
        BudgetUsage {
            workloads: (
                (in_flight as u32).saturating_add(self.count_unreadable_claims(&BudgetScope::Cluster)),
                workloads,
            ),
            window: rollouts.slow_start_limit,
            unavailable: (
                loads
                    .iter()
                    .map(|load| load.unavailable)
                    .fold(self.unnamed_unavailable(&BudgetScope::Cluster), u32::saturating_add),
                away,
            ),
            starts: (starts.1.saturating_sub(starts.0), starts.1),
            on_failure: rollouts.budget.on_failure,
            known: rollouts.ledger.is_some(),
        }
    }

    /// Returns the workloads that roll now, and those that others have claimed, each with what it
    /// takes of the budget.
    pub(crate) fn rolling_workloads(&self) -> Vec<WorkloadLoad> {
        let taking = |load: &WorkloadLoad| {
            load.slot == BudgetSlot::Held || self.rollouts.in_flight.contains_key(&load.id)
        };
        let mut loads: Vec<WorkloadLoad> = self.loads().into_iter().filter(taking).collect();
        loads.sort_by(|one, other| one.id.cmp(&other.id));
        loads
    }
}
