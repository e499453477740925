//! Taking the pods of a `DaemonSet` away in its steps, and looking at the nodes while that goes on.

use std::collections::BTreeSet;
use std::time::Instant;

use tokio::sync::mpsc;

use super::super::event::Event;
use super::{BACKLOG, Reconciler};
use crate::cluster::{Denial, Error, Evicted, Fault, Informer, InformerEvent, News};
use crate::engine::{DuePod, Eviction, NodeFacts, NodeNews};
use crate::object::{Class, ObjectId};

/// The watch of the nodes.
pub(super) struct NodeWatch {
    open: Option<Informer>,
    /// What it tells. Each watch has one of its own, so that nothing is heard of one that was closed.
    pub(super) told: mpsc::Receiver<InformerEvent<NodeFacts>>,
    /// Workloads of which it was told that the user may not evict their pods.
    denied: BTreeSet<ObjectId>,
}

pub(super) fn lacks_rights(error: &Error) -> bool {
    matches!(error.fault(), Fault::Denied { by: Denial::Rbac | Denial::Impersonation, .. })
}

impl NodeWatch {
    /// It is not open.
    pub(super) fn closed() -> Self {
        Self { open: None, told: mpsc::channel(1).1, denied: BTreeSet::new() }
    }
}

impl Reconciler {
    /// Evicts the pods that go next.
    pub(super) fn evict_due(&mut self, now: Instant) {
        for pod in self.engine.to_evict(now) {
            let cluster = self.cluster_for(&pod.of).clone();
            self.spawn_write(async move {
                let namespace = pod.of.namespace().unwrap_or_default().to_owned();
                let answer = match cluster.evict(&namespace, &pod.name, &pod.uid).await {
                    Ok(Evicted::Accepted | Evicted::Gone) => Eviction::Going,
                    Ok(Evicted::Blocked(why)) => Eviction::Refused(why),
                    Err(error) if lacks_rights(&error) => Eviction::Denied(
                        format!("the user may not create pods/eviction in namespace {namespace}").into(),
                    ),
                    // It may be gone all the same: its next view tells.
                    Err(error) => Eviction::Refused(error.reason().into()),
                };
                Event::Evicted(pod, answer)
            });
        }
    }

    pub(super) fn was_evicted(&mut self, pod: &DuePod, answer: &Eviction) {
        match answer {
            Eviction::Going => {
                self.nodes.denied.remove(&pod.of);
                tracing::info!(object = %pod.of, pod = %pod.name, node = %pod.node, "evicted, as its step asks");
            }
            // It is tried again and again, and told once.
            Eviction::Denied(lacks) if self.nodes.denied.insert(pod.of.clone()) => {
                tracing::warn!(object = %pod.of, "no pod of it can be evicted, and its step waits: {lacks}");
            }
            Eviction::Denied(_) | Eviction::Refused(_) => {}
        }
        self.engine.evicted(pod, answer, Instant::now());
    }

    /// Looks at the nodes as long as that is needed.
    pub(super) fn follow_nodes(&mut self) {
        match (self.engine.needs_nodes(), &self.nodes.open) {
            (true, None) => {
                let (sink, told) = mpsc::channel(BACKLOG);
                let open = Some(self.hands.cluster.follow_nodes(sink));
                self.nodes = NodeWatch { open, told, ..NodeWatch::closed() };
            }
            (false, Some(_)) => {
                self.nodes = NodeWatch::closed();
                self.engine.nodes(NodeNews::Closed);
            }
            _ => {}
        }
    }

    pub(super) fn node_told(&mut self, event: InformerEvent<NodeFacts>) {
        let news = match event.news {
            News::Started => NodeNews::Started,
            News::Seen(id, facts) => NodeNews::Seen(id.name().into(), facts),
            News::Gone(id, _) => NodeNews::Gone(id.name().into()),
            News::Synced => NodeNews::Synced,
            News::Failed(error, _) if error.class() == Class::Internal => {
                self.fatal = Some(error.into());
                return;
            }
            News::Failed(error, _) => NodeNews::Failed(error.reason().into()),
            News::Resumed => NodeNews::Resumed,
        };
        self.engine.nodes(news);
    }
}
