//! Frees a StatefulSet whose controller waits for a pod that will never get Ready
//! (kubernetes#67250).

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::engine::rollout::pod_eviction::{OrdinalPod, PodAvailability, StatefulSetState, find_stuck_pod};
use crate::engine::rollout::pods::{MAX_CONTAINER_RESTARTS, PodFacts, Readiness, grace_period};
use crate::engine::rollout::rollouts::RolloutStartState;
use crate::engine::state::Engine;
use crate::engine::{ResourceVersion, Uid};
use crate::object::ObjectId;

/// A pod that is to be deleted, in the incarnation and version that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StuckPod {
    /// Its workload.
    pub of: ObjectId,
    /// Its name.
    pub name: Arc<str>,
    /// Its incarnation.
    pub uid: Uid,
    /// The version of the view that was judged.
    pub rv: ResourceVersion,
}

/// The time after which the deletion of a pod is sent again. The first one may have failed, and a
/// pod that waits for ever need not change.
pub(in crate::engine) const DELETION_RETRY_DELAY: Duration = Duration::from_secs(10);

/// A pod that was to be deleted, in the version that was judged.
#[derive(Clone, Debug)]
pub(in crate::engine) struct DeletedPod {
    uid: Uid,
    rv: ResourceVersion,
    /// The time of its next deletion.
    due: Instant,
}

impl DeletedPod {
    /// Returns whether it is this pod, and its deletion may still be under way.
    fn is_going(&self, pod: &PodFacts, now: Instant) -> bool {
        self.uid == pod.uid && self.rv == pod.rv && now < self.due
    }
}

impl Engine {
    /// Returns the pods that are to be deleted now, as they block a rollout of ours. Each is
    /// reported once in each of its versions, and again after a time.
    pub(in crate::engine) fn stuck_pods(&mut self, now: Instant) -> Vec<StuckPod> {
        let rolling = self.rollouts.in_flight.iter().filter(|(_, rollout)| rollout.claim.is_some());
        let found: Vec<StuckPod> = rolling.filter_map(|(id, _)| self.stuck_pod(id, now)).collect();
        for pod in &found {
            if let Some(rollout) = self.rollouts.in_flight.get_mut(&pod.of) {
                let due = now + DELETION_RETRY_DELAY;
                rollout.last_deleted_pod = Some(DeletedPod { uid: pod.uid.clone(), rv: pod.rv, due });
            }
        }
        found
    }

    fn stuck_pod(&self, id: &ObjectId, now: Instant) -> Option<StuckPod> {
        let rollout = self.rollouts.in_flight.get(id).filter(|_| id.is("apps", "StatefulSet"))?;
        if !self.can_delete_pods(id, now) {
            return None;
        }
        let written = rollout.min_resource_version?;
        let pods = rollout.pods.as_ref().filter(|pods| pods.rv >= written)?;
        let replica_status = self.live_object(id)?.replica_status?;
        // Below its partition the pods keep another template on purpose, and a new one would have
        // the same.
        let current = if replica_status.partition == 0 { "".into() } else { pods.current.clone()? };
        let (start, partition) = (replica_status.ordinal_start, replica_status.partition);
        let set = StatefulSetState { start, partition, wanted: pods.newest.clone()?, current };
        let ordinals: Vec<OrdinalPod> = pods.pods.iter().filter_map(|pod| ordinal_pod(pod, now)).collect();
        // The content before may be known to be bad; otherwise an older pod may just be slow.
        let is_bad = self.has_rollback_target(id) || rollout.started_from == RolloutStartState::Failure;
        let grace_period = if is_bad { Duration::ZERO } else { Duration::MAX };
        let found = find_stuck_pod(&set, &ordinals, grace_period)?;
        let pod = pods.pods.iter().find(|pod| pod.name == found.name)?;
        let is_going = rollout.last_deleted_pod.as_ref().is_some_and(|deleted| deleted.is_going(pod, now));
        (!is_going).then(|| StuckPod {
            of: id.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            rv: pod.rv,
        })
    }

    /// Returns when the clock alone changes what [`Engine::stuck_pods`] finds.
    pub(in crate::engine) fn next_deletion_due(&self, now: Instant) -> Option<Instant> {
        let deleted =
            self.rollouts.in_flight.values().filter_map(|rollout| rollout.last_deleted_pod.as_ref());
        deleted.map(|pod| pod.due).filter(|due| *due > now).min()
    }

    /// Returns whether a source wants a workload and writes, and nobody keeps rhumb away from it. A
    /// claim of an earlier process outlives that.
    fn can_delete_pods(&self, id: &ObjectId, now: Instant) -> bool {
        self.can_write(id) && self.active_hold(id, now).is_none()
    }
}

fn ordinal_pod(pod: &PodFacts, now: Instant) -> Option<OrdinalPod> {
    let ordinal = pod.name.rsplit('-').next()?.parse().ok()?;
    Some(OrdinalPod {
        name: pod.name.clone(),
        ordinal,
        revision: pod.revision.clone()?,
        state: state(pod, now),
    })
}

/// Returns how far a pod can be counted on.
pub(in crate::engine) fn state(pod: &PodFacts, now: Instant) -> PodAvailability {
    let container_failure = pod.container_failure.as_ref();
    let is_given_up = container_failure.is_some_and(|container_failure| {
        grace_period(&container_failure.reason, &container_failure.message)
            .is_some_and(|time| now.duration_since(container_failure.since) >= time)
    });
    if pod.terminating {
        PodAvailability::Terminating
    } else if pod.ready == Readiness::Ready {
        PodAvailability::Ready
    } else if is_given_up || pod.new_restarts >= MAX_CONTAINER_RESTARTS || pod.has_ended {
        PodAvailability::InTrouble
    } else {
        PodAvailability::Unready(Duration::ZERO)
    }
}
