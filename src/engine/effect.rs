//! The effects of a turn of the loop, beside the decisions about single objects.
//!
//! A turn begins with [`Engine::poll_orders`] and [`Engine::poll`], and ends with
//! [`Engine::poll_watches`]. Each gives its effects in the order in which they are to be carried
//! out. The answers come back by [`Engine::handle`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde::{Deserialize, Serialize, Serializer};

use crate::engine::state::Engine;
use crate::engine::{
    HashCipherStatus, PodToEvict, RolloutEvent, RolloutLedger, ScaleRequest, SourceId, SourceWrites,
    StuckPod, Uid, UndoRequest,
};
use crate::object::{ObjectId, Revision};

/// The orders that a process carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OrderReach {
    /// All: it stays.
    All,
    /// Confirmations of deletions alone, as in a single pass.
    Confirmations,
}

/// Indicates whether a process publishes its queue in the rollout ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum QueueMode {
    /// It is published: the process stays.
    Published,
    /// It is left out, as in a single pass.
    Omitted,
}

/// The effects of one turn, in their order.
#[derive(Debug, Serialize)]
pub(crate) struct Effects {
    /// Report the beginnings and ends of rollouts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rollout_events: Vec<RolloutReport>,
    /// Read the Events about rollouts that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ActingEffect<FailedRollout>>,
    /// Delete the pods for which a StatefulSet's controller would wait for ever.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stuck_pods: Vec<ActingEffect<StuckPod>>,
    /// Evict the pods that go next in a step of a DaemonSet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<ActingEffect<PodToEvict>>,
    /// Scale the `ReplicaSet`s that have other counts than a step asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scales: Vec<ActingEffect<ScaleRequest>>,
    /// Decide about the objects of which a fact has changed.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_marks")]
    pub keys: Vec<ObjectId>,
}

/// Writes marked objects in a stable order, each once: marks have none, and the queue takes each
/// once.
pub(super) fn serialize_marks<S: Serializer>(keys: &[ObjectId], serializer: S) -> Result<S::Ok, S::Error> {
    let mut keys: Vec<&ObjectId> = keys.iter().collect();
    keys.sort();
    keys.dedup();
    keys.serialize(serializer)
}

/// The watches that are to be open from now on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WantedWatches {
    /// The workloads whose pods are watched, each in its incarnation.
    pub workloads: BTreeMap<ObjectId, Uid>,
    /// The watch of the nodes.
    pub nodes: WatchState,
    /// The objects whose data are followed; none where these are the same as before.
    pub data: Option<BTreeSet<ObjectId>>,
}

/// Indicates whether a watch is to be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum WatchState {
    /// The watch is to be open.
    Open,
    /// The watch is to be closed.
    Closed,
}

/// An effect, and the source with whose rights it is carried out. None has those of rhumb itself.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ActingEffect<T> {
    /// The source.
    pub source: Option<SourceId>,
    /// The effect.
    pub effect: T,
}

/// An event of a rollout, and the revision that brought the content of its workload.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RolloutReport {
    /// The event.
    pub event: RolloutEvent,
    /// The revision; none where it is not known.
    pub revision: Option<Revision>,
}

/// A rollout that has just failed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FailedRollout {
    /// Its workload.
    pub id: ObjectId,
    /// The objects whose Events say more.
    pub event_subjects: Vec<Uid>,
}

impl Engine {
    /// Does the same as [`Engine::poll_orders`], as a part of that call.
    pub(super) fn due_undo_requests(&mut self, reach: OrderReach) -> Vec<UndoRequest> {
        match reach {
            OrderReach::All => {
                self.carry_out_orders();
                self.undo_requests().cloned().collect()
            }
            OrderReach::Confirmations => {
                self.try_carry_out_orders();
                Vec::new()
            }
        }
    }

    /// Does the same as [`Engine::poll`], as a part of that call.
    pub(super) fn effects(&mut self, now: Instant) -> Effects {
        self.advance(now);
        let rollout_events = self.rollout_reports();
        let failed = self.take_failed().into_iter();
        let failed: Vec<FailedRollout> =
            failed.map(|(id, event_subjects)| FailedRollout { id, event_subjects }).collect();
        let failures = self.with_sources(failed, |failed| &failed.id);
        let stuck_pods = self.stuck_pods(now);
        let stuck_pods = self.with_sources(stuck_pods, |pod| &pod.of);
        let evictions = self.pods_to_evict(now);
        let evictions = self.with_sources(evictions, |pod| &pod.of);
        let scales = self.scale_requests(now);
        let scales = self.with_sources(scales, |request| &request.of);
        self.process_changes();
        let keys = self.take_marked();
        Effects { rollout_events, failures, stuck_pods, evictions, scales, keys }
    }

    /// Does the same as [`Engine::poll_ledger`], as a part of that call.
    pub(super) fn ledger_to_write(
        &mut self,
        mode: QueueMode,
        sealing: HashCipherStatus,
        now: Instant,
    ) -> Option<RolloutLedger> {
        // A process that only observes writes nothing at all, not even its queue.
        if self.sources.states().iter().all(|source| source.declared.writes == SourceWrites::Observed) {
            return None;
        }
        let mut publication = self.rollouts.queue.take_publication();
        let next = match (self.next_ledger(), mode) {
            (Some(next), QueueMode::Published) => Some(publication.add_to(self, next, now)),
            (Some(next), QueueMode::Omitted) => Some(self.without_queue(next)),
            // A ledger of an older version, or sealed by an older key, is sealed anew.
            (None, _) if sealing == HashCipherStatus::Stale && self.seals().number().is_some() => {
                self.known_ledger().cloned()
            }
            (None, QueueMode::Published) => {
                self.initial_ledger().or_else(|| publication.next_ledger(self, now))
            }
            (None, QueueMode::Omitted) => self.initial_ledger(),
        };
        self.rollouts.queue.put_back(publication);
        next
    }

    /// Does the same as [`Engine::poll_watches`], as a part of that call.
    pub(super) fn wanted_watches(&mut self) -> WantedWatches {
        let workloads = self.workloads_to_watch().into_iter().collect();
        let nodes = if self.is_node_watch_needed() { WatchState::Open } else { WatchState::Closed };
        WantedWatches { workloads, nodes, data: self.take_data_to_watch() }
    }

    fn rollout_reports(&mut self) -> Vec<RolloutReport> {
        let events = self.take_rollout_events().into_iter();
        let report = |event: RolloutEvent| {
            let revision = self.entry(&event.id).and_then(|entry| entry.revision.clone());
            RolloutReport { event, revision }
        };
        events.map(report).collect()
    }

    /// Adds to each effect the source with whose rights its object is written.
    fn with_sources<T>(&self, effects: Vec<T>, object_of: fn(&T) -> &ObjectId) -> Vec<ActingEffect<T>> {
        let with_source = |effect: T| ActingEffect { source: self.acting_source(object_of(&effect)), effect };
        effects.into_iter().map(with_source).collect()
    }
}
