//! The state behind the steps of rollouts, beside the workloads. Nothing of it has to survive.

use std::collections::BTreeMap;

use crate::engine::facts::nodes::{NodeChange, NodeStore};
use crate::engine::rollout::daemon_set_steps::DaemonSetRollout;
use crate::engine::rollout::scale_balance::SurplusCorrection;
use crate::object::ObjectId;

/// The nodes, and the workloads in steps whose pods are taken away here.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct StepTracking {
    /// The nodes of the cluster, for `DaemonSets` whose pods go one after another.
    nodes: NodeStore,
    /// Each DaemonSet that rolls out in steps.
    daemon_sets: BTreeMap<ObjectId, DaemonSetRollout>,
    /// The corrections of surplus pods that scales gave to held templates.
    surplus_corrections: BTreeMap<ObjectId, SurplusCorrection>,
}

impl StepTracking {
    /// Takes over what is reported about the nodes.
    pub(in crate::engine) fn change_nodes(&mut self, change: NodeChange) {
        self.nodes.take(change);
    }

    /// Returns the nodes of the cluster.
    pub(in crate::engine) fn nodes(&self) -> &NodeStore {
        &self.nodes
    }

    /// Forgets the `DaemonSets` in steps that a predicate does not hold for.
    pub(in crate::engine) fn retain_daemon_sets(&mut self, is_kept: impl Fn(&ObjectId) -> bool) {
        self.daemon_sets.retain(|id, _| is_kept(id));
    }

    /// Returns the state of a DaemonSet in steps, which begins with this call where there is none.
    pub(in crate::engine) fn track_daemon_set(&mut self, id: &ObjectId) -> &mut DaemonSetRollout {
        self.daemon_sets.entry(id.clone()).or_default()
    }

    /// Returns the state of a DaemonSet in steps.
    pub(in crate::engine) fn daemon_set(&self, id: &ObjectId) -> Option<&DaemonSetRollout> {
        self.daemon_sets.get(id)
    }

    /// Returns the state of a DaemonSet in steps, to be changed.
    pub(in crate::engine) fn daemon_set_mut(&mut self, id: &ObjectId) -> Option<&mut DaemonSetRollout> {
        self.daemon_sets.get_mut(id)
    }

    /// Returns the states of all `DaemonSets` in steps.
    pub(in crate::engine) fn daemon_sets(&self) -> impl Iterator<Item = &DaemonSetRollout> {
        self.daemon_sets.values()
    }

    /// Forgets the corrections of Deployments that a predicate does not hold for.
    pub(in crate::engine) fn retain_corrections(&mut self, is_kept: impl Fn(&ObjectId) -> bool) {
        self.surplus_corrections.retain(|id, _| is_kept(id));
    }

    /// Returns the correction of a Deployment, which begins with this call where there is none.
    pub(in crate::engine) fn track_correction(&mut self, id: &ObjectId) -> &mut SurplusCorrection {
        self.surplus_corrections.entry(id.clone()).or_default()
    }

    /// Returns the correction of a Deployment.
    pub(in crate::engine) fn correction(&self, id: &ObjectId) -> Option<&SurplusCorrection> {
        self.surplus_corrections.get(id)
    }

    /// Returns the correction of a Deployment, to be changed.
    pub(in crate::engine) fn correction_mut(&mut self, id: &ObjectId) -> Option<&mut SurplusCorrection> {
        self.surplus_corrections.get_mut(id)
    }

    /// Returns all corrections.
    pub(in crate::engine) fn corrections(&self) -> impl Iterator<Item = &SurplusCorrection> {
        self.surplus_corrections.values()
    }
}
