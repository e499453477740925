//! Reads the statements of the other sources.

use std::time::{Duration, Instant};

use super::super::handover;
use super::super::handover::read_peers;
use super::super::inventory::CallState;
use super::super::loop_event::LoopEvent;
use super::super::source_task::SourceTaskRequest;
use super::Reconciler;
use crate::cluster::{Cluster, ClusterError};
use crate::engine::{Input, PeerSource};
use crate::report::EventReason;

/// The wait before they are asked again after a failure.
const PEERS_RETRY_DELAY: Duration = Duration::from_secs(5);

impl Reconciler {
    /// Reads what the others say, where a decision waits for that.
    pub(super) fn read_peers(&mut self) {
        if self.records.peers == CallState::Busy || !self.engine.view().is_peer_read_needed() {
            return;
        }
        self.records.peers = CallState::Busy;
        let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
        self.spawn(async move { LoopEvent::Peers(read_peers(&cluster, &namespace).await) });
    }

    /// Says once of each other source whose statement cannot be read that this is so.
    fn log_unreadable_peers(&mut self, peers: &[PeerSource]) {
        let own = |peer: &&PeerSource| {
            self.engine.view().sources().iter().all(|one| one.declared.name != peer.name)
        };
        let others: Vec<PeerSource> = peers.iter().filter(own).cloned().collect();
        let reported = handover::explain_unreadable(&self.records.namespace, &others);
        for why in reported.iter().filter(|why| !self.records.unreadable_peers.contains(why)) {
            tracing::warn!(message_id = EventReason::RecordUnreadable.message_id(), "{why}");
            for source in self.engine.view().source_ids() {
                self.record_unreadable_event(source, why.clone());
            }
        }
        self.records.unreadable_peers = reported;
    }

    pub(super) fn record_peers(&mut self, answer: Result<Vec<PeerSource>, ClusterError>) {
        match answer {
            Ok(peers) => {
                self.records.peers = CallState::None;
                self.log_unreadable_peers(&peers);
                self.engine.handle(Input::Peers(peers), Instant::now());
                for source in self.engine.take_sources_behind() {
                    if let Some(source_task) = &self.sources.requests[source] {
                        let _ = source_task.try_send(SourceTaskRequest::Hint);
                    }
                }
            }
            // Objects that wait for it go on waiting, as nothing is deleted on doubt.
            Err(error) => {
                tracing::warn!(
                    "the takeover requests of other sources of the cluster cannot be read: {error}"
                );
                let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
                self.spawn(async move {
                    tokio::time::sleep(PEERS_RETRY_DELAY.mul_f64(1.0 + super::super::random_fraction()))
                        .await;
                    LoopEvent::Peers(read_peers(&cluster, &namespace).await)
                });
            }
        }
    }

    /// Forwards the observations that the engine asks for: after an object was dropped, or when
    /// another source of the cluster asks.
    pub(super) fn request_observations(&mut self) {
        self.sources.due_observations.extend(self.engine.take_due_observations());
        let source_tasks = &self.sources.requests;
        // A source task without room is asked in the next turn.
        self.sources.due_observations.retain(|source, number| {
            source_tasks[*source].as_ref().is_none_or(|source_task| {
                source_task.try_send(SourceTaskRequest::CheckAfter(*number)).is_err()
            })
        });
    }

    /// Says of sources that nobody serves any more that they want nothing: nobody has to wait for
    /// them.
    pub(super) fn clear_retired(&mut self) {
        for source in std::mem::take(&mut self.sources.retired) {
            let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
            self.events.tasks.spawn(async move {
                while let Err(error) = retire_source(&cluster, &namespace, &source).await {
                    tracing::debug!(%source, "it cannot be found out whether a daemon serves it: {error}");
                    tokio::time::sleep(PEERS_RETRY_DELAY.mul_f64(1.0 + super::super::random_fraction()))
                        .await;
                }
            });
        }
    }
}

async fn retire_source(cluster: &Cluster, namespace: &str, source: &str) -> Result<(), ClusterError> {
    let Some(inventory) = cluster.read_inventory(namespace, source).await? else { return Ok(()) };
    cluster
        .save_inventory(namespace, source, Some(&inventory), &handover::retire_inventory(&inventory))
        .await
        .map(drop)
}
