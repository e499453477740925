//! Evicts the pods of a `DaemonSet` in its steps, and watches the nodes while that goes on.

use std::collections::BTreeSet;
use std::time::Instant;

use super::super::loop_event::LoopEvent;
use super::Reconciler;
use crate::cluster::{
    AccessDenial, ClusterError, ClusterFault, EventSink, EvictionResponse, Informer, InformerChange,
    InformerEvent,
};
use crate::engine::{ActingEffect, EvictionOutcome, Input, NodeChange, NodeFacts, PodToEvict, WatchState};
use crate::object::{ErrorClass, ObjectId};

/// The watch of the nodes, which is closed at first.
#[derive(Default)]
pub(super) struct NodeWatch {
    open: Option<Informer>,
    /// The number of the last watch. Each has its own, so that nothing is heard of one that was
    /// closed.
    number: u64,
    /// Workloads of which it was reported that the user may not evict their pods.
    denied: BTreeSet<ObjectId>,
}

pub(super) fn is_denied(error: &ClusterError) -> bool {
    matches!(error.fault(), ClusterFault::Denied { by: AccessDenial::Rbac | AccessDenial::Impersonation, .. })
}

impl NodeWatch {
    /// Forgets all that was reported of a watch that ends.
    fn close(&mut self) {
        (self.open, self.denied) = (None, BTreeSet::new());
        self.number += 1;
    }
}

impl Reconciler {
    /// Evicts the pods that go next.
    pub(super) fn evict_due(&mut self, evictions: Vec<ActingEffect<PodToEvict>>) {
        for ActingEffect { source, effect: pod } in evictions {
            let cluster = self.cluster_for_source(source).clone();
            self.spawn_write(async move {
                let namespace = pod.of.namespace().unwrap_or_default().to_owned();
                let answer = match cluster.evict(&namespace, &pod.name, &pod.uid).await {
                    Ok(EvictionResponse::Accepted | EvictionResponse::Gone) => EvictionOutcome::Evicted,
                    Ok(EvictionResponse::Blocked(why)) => EvictionOutcome::Refused(why),
                    Err(error) if is_denied(&error) => EvictionOutcome::Denied(
                        format!("the user may not create pods/eviction in namespace {namespace}").into(),
                    ),
                    // It may be gone all the same: its next view shows it.
                    Err(error) => EvictionOutcome::Refused(error.reason().into()),
                };
                LoopEvent::Evicted(pod, answer)
            });
        }
    }

    pub(super) fn record_eviction(&mut self, pod: PodToEvict, outcome: EvictionOutcome) {
        match &outcome {
            EvictionOutcome::Evicted => {
                self.watches.nodes.denied.remove(&pod.of);
                tracing::info!(object = %pod.of, pod = %pod.name, node = %pod.node, "evicted, as its step asks");
            }
            // It is tried again and again, and reported once.
            EvictionOutcome::Denied(lacks) if self.watches.nodes.denied.insert(pod.of.clone()) => {
                tracing::warn!(object = %pod.of, "no pod of it can be evicted, and its step waits: {lacks}");
            }
            EvictionOutcome::Denied(_) | EvictionOutcome::Refused(_) => {}
        }
        self.engine.handle(Input::Evicted { pod, outcome }, Instant::now());
    }

    /// Watches the nodes as long as that is needed.
    pub(super) fn watch_nodes(&mut self, wanted: WatchState) {
        match (wanted, &self.watches.nodes.open) {
            (WatchState::Open, None) => {
                self.watches.nodes.close();
                let number = self.watches.nodes.number;
                let wrap = move |event| LoopEvent::Node(number, event);
                let sink = EventSink::new(self.events.sender.clone(), wrap);
                self.watches.nodes.open = Some(self.executor.cluster.watch_nodes(sink));
            }
            (WatchState::Closed, Some(_)) => {
                self.watches.nodes.close();
                self.engine.handle(Input::Nodes(NodeChange::Closed), Instant::now());
            }
            _ => {}
        }
    }

    pub(super) fn handle_node_event(&mut self, number: u64, event: InformerEvent<NodeFacts>) {
        if number != self.watches.nodes.number {
            return;
        }
        let node_change = match event.change {
            InformerChange::Init => NodeChange::Init,
            InformerChange::Apply(id, facts) => NodeChange::Apply(id.name().into(), facts),
            InformerChange::Delete(id, _) => NodeChange::Delete(id.name().into()),
            InformerChange::InitDone => NodeChange::InitDone,
            InformerChange::Failed(error, _) if error.class() == ErrorClass::Internal => {
                self.fatal = Some(error.into());
                return;
            }
            InformerChange::Failed(error, _) => NodeChange::Failed(error.reason().into()),
            InformerChange::Resumed => NodeChange::Resumed,
        };
        self.engine.handle(Input::Nodes(node_change), Instant::now());
    }
}
