//! The state behind the steps of rollouts, beside the workloads. It is kept in memory only.

use std::collections::BTreeMap;

use crate::engine::rollout::daemon_set_steps::DaemonSetRollout;
use crate::engine::rollout::nodes::NodeStore;
use crate::engine::rollout::scale_balance::SurplusCorrection;
use crate::object::ObjectId;

/// The nodes, and the workloads in steps whose pods are taken away here.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct StepTracking {
    /// The nodes of the cluster, for `DaemonSets` whose pods go one after another.
    pub(in crate::engine) nodes: NodeStore,
    /// Each DaemonSet that rolls out in steps.
    pub(in crate::engine) daemon_sets: WorkloadStates<DaemonSetRollout>,
    /// The corrections of surplus pods that scales gave to held templates.
    pub(in crate::engine) surplus_corrections: WorkloadStates<SurplusCorrection>,
}

/// The states of workloads, by workload.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct WorkloadStates<T> {
    by_id: BTreeMap<ObjectId, T>,
}

impl<T: Default> WorkloadStates<T> {
    /// Forgets the workloads that a predicate does not hold for.
    pub(in crate::engine) fn retain(&mut self, is_kept: impl Fn(&ObjectId) -> bool) {
        self.by_id.retain(|id, _| is_kept(id));
    }

    /// Returns the state of a workload, which begins with this call where there is none.
    pub(in crate::engine) fn track(&mut self, id: &ObjectId) -> &mut T {
        self.by_id.entry(id.clone()).or_default()
    }

    /// Returns the state of a workload.
    pub(in crate::engine) fn get(&self, id: &ObjectId) -> Option<&T> {
        self.by_id.get(id)
    }

    /// Returns the state of a workload, to be changed.
    pub(in crate::engine) fn get_mut(&mut self, id: &ObjectId) -> Option<&mut T> {
        self.by_id.get_mut(id)
    }

    /// Returns the states of all workloads.
    pub(in crate::engine) fn all(&self) -> impl Iterator<Item = &T> {
        self.by_id.values()
    }
}
