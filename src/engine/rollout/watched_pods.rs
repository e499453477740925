//! The workloads whose pods are watched.

use crate::engine::rollout::rollouts::Rollout;
use crate::engine::state::Engine;
use crate::engine::{Uid, WorkloadPhase};
use crate::object::ObjectId;

/// The most workloads whose pods are watched at once; each takes two or three watches.
const MAX_WATCHED_WORKLOADS: usize = 64;

impl Engine {
    /// Returns the workloads whose pods are to be watched, and in which incarnation. They are those
    /// that roll, the ones of ours first, and failed ones that seem healthy while their pods do not.
    ///
    /// Of each kind those come first that are watched already. Nobody renews the pods of the others,
    /// and old ones that fail would keep a rollout from its end.
    pub(in crate::engine) fn workloads_to_watch(&self) -> Vec<(ObjectId, Uid)> {
        let all = self.rollouts.in_flight.iter();
        let (failed, running): (Vec<_>, Vec<_>) = all.partition(|(_, rollout)| rollout.failed.is_some());
        let (mut ours, mut others): (Vec<_>, Vec<_>) =
            running.into_iter().partition(|(_, rollout)| rollout.claim.is_some());
        for each in [&mut ours, &mut others] {
            each.sort_by_key(|(_, rollout)| rollout.pods.is_none());
        }
        let doubtful = failed.into_iter().filter(|(id, rollout)| self.is_recovery_doubtful(id, rollout));
        let all = ours.into_iter().chain(others).chain(doubtful).map(|(id, _)| id);
        all.filter_map(|id| Some((id.clone(), self.live_object(id)?.uid.clone())))
            .take(MAX_WATCHED_WORKLOADS)
            .collect()
    }

    /// Returns whether a workload is complete by its status, and not by its pods as last reported.
    fn is_recovery_doubtful(&self, id: &ObjectId, rollout: &Rollout) -> bool {
        let replica_status = self.live_object(id).and_then(|live| live.replica_status);
        replica_status.is_some_and(|status| status.phase == WorkloadPhase::Settled)
            && rollout.has_failing_pods()
    }
}
