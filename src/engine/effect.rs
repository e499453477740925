//! The effects of a turn of the loop, beside the decisions about single objects.
//!
//! A turn begins with [`Engine::poll_orders`] and [`Engine::poll`], and ends with
//! [`Engine::poll_watches`]. Each gives its effects in the order in which they are to be carried
//! out. The answers come back by [`Engine::handle`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::engine::state::Engine;
use crate::engine::trace::{EffectsForm, TraceCall};
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

/// The fate of the queue of a process in the rollout ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum QueueMode {
    /// It is published: the process stays.
    Published,
    /// It is left out, as in a single pass.
    Omitted,
}

/// The effects of one turn, in their order.
#[derive(Debug)]
pub(crate) struct Effects {
    /// Report the beginnings and ends of rollouts.
    pub rollout_events: Vec<RolloutReport>,
    /// Read the Events about rollouts that failed.
    pub failures: Vec<ActingEffect<FailedRollout>>,
    /// Delete the pods for which a StatefulSet's controller would wait for ever.
    pub stuck_pods: Vec<ActingEffect<StuckPod>>,
    /// Evict the pods that go next in a step of a DaemonSet.
    pub evictions: Vec<ActingEffect<PodToEvict>>,
    /// Scale the `ReplicaSet`s that have other counts than a step asks for.
    pub scales: Vec<ActingEffect<ScaleRequest>>,
    /// Decide about the objects of which a fact has changed.
    pub keys: Vec<ObjectId>,
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
    /// Carries out what people have ordered, where that can be done now. Returns the undos whose
    /// target is to be looked up. To be called at the beginning of each turn.
    pub(crate) fn poll_orders(&mut self, reach: OrderReach) -> Vec<UndoRequest> {
        let call = self.begin_call(TraceCall::PollOrders, None, &reach);
        let requests: Vec<UndoRequest> = match reach {
            OrderReach::All => {
                self.carry_out_orders();
                self.undo_requests().cloned().collect()
            }
            OrderReach::Confirmations => {
                self.try_carry_out_orders();
                Vec::new()
            }
        };
        self.end_call(call, || requests.clone());
        requests
    }

    /// Lets time pass, and returns what follows. To be called once in each turn, after
    /// [`Engine::poll_orders`].
    pub(crate) fn poll(&mut self, now: Instant) -> Effects {
        let call = self.begin_call(TraceCall::Poll, Some(now), &());
        let effects = self.effects(now);
        self.end_call(call, || EffectsForm::from(&effects));
        effects
    }

    fn effects(&mut self, now: Instant) -> Effects {
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

    /// Returns the rollout ledger that is to be written: with the claims as they should be, or else
    /// with the queue as it is. `sealing` is the state of the seals in the one that was read.
    pub(crate) fn poll_ledger(
        &mut self,
        mode: QueueMode,
        sealing: HashCipherStatus,
        now: Instant,
    ) -> Option<RolloutLedger> {
        let call = self.begin_call(TraceCall::PollLedger, Some(now), &(mode, sealing));
        let ledger = self.ledger_to_write(mode, sealing, now);
        self.end_call(call, || ledger.clone());
        ledger
    }

    fn ledger_to_write(
        &mut self,
        mode: QueueMode,
        sealing: HashCipherStatus,
        now: Instant,
    ) -> Option<RolloutLedger> {
        // A process that only observes writes nothing at all, not even its queue.
        if self.sources.states().iter().all(|source| source.declared.writes == SourceWrites::Observed) {
            return None;
        }
        let mut publication = std::mem::take(&mut self.rollouts.publication);
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
        self.rollouts.publication = publication;
        next
    }

    /// Returns the watches that are to be open. To be called at the end of each turn.
    pub(crate) fn poll_watches(&mut self) -> WantedWatches {
        let call = self.begin_call(TraceCall::PollWatches, None, &());
        let workloads = self.workloads_to_watch().into_iter().collect();
        let nodes = if self.is_node_watch_needed() { WatchState::Open } else { WatchState::Closed };
        let watches = WantedWatches { workloads, nodes, data: self.take_data_to_watch() };
        self.end_call(call, || watches.clone());
        watches
    }

    /// Takes the sources that may be behind another one, as the statements of others show that were
    /// read last. They are to look for a newer revision.
    pub(crate) fn take_sources_behind(&mut self) -> Vec<SourceId> {
        let call = self.begin_call(TraceCall::TakeSourcesBehind, None, &());
        let sources = std::mem::take(&mut self.handover.sources_behind);
        self.end_call(call, || sources.clone());
        sources
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
