//! Watches the pods of workloads while these roll, or while only their status is healthy after a
//! failure. Reads the Events about those that failed.
//!
//! A failure goes on with `LoopEvent::FailureEvents`. The engine takes them as
//! `Input::FailureEvents`, and proposes to reject the unit.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::super::loop_event::LoopEvent;
use super::Reconciler;
use crate::cluster::{EventSink, PodWatchHandle, PodsChange, PodsEvent};
use crate::engine::{ActingEffect, FailedRollout, Input, StuckPod, Uid};
use crate::object::{ErrorClass, ObjectId};

/// The time after which a workload that could not be read, and with it the selector of its pods, is
/// read again.
const SELECTOR_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The watches of pods that are open.
pub(super) struct PodWatches {
    open: BTreeMap<ObjectId, (Uid, Option<PodWatchHandle>)>,
    sink: EventSink<PodsEvent>,
}

impl PodWatches {
    /// Returns watches of nothing.
    pub(super) fn new(events: mpsc::Sender<LoopEvent>) -> Self {
        let sink = EventSink::new(events, LoopEvent::Pods);
        Self { open: BTreeMap::new(), sink }
    }
}

impl Reconciler {
    /// Opens the watches of what has begun to roll, and closes those of what no longer does.
    pub(super) fn watch_pods(&mut self, wanted: BTreeMap<ObjectId, Uid>) {
        self.watches.pods.open.retain(|id, (uid, _)| wanted.get(id) == Some(uid));
        for (id, uid) in wanted {
            if self.watches.pods.open.contains_key(&id) {
                continue;
            }
            // A loop that has just begun may learn of what rolls before discovery has answered.
            let Some(kind) = self.watches.kinds.kind(&id.group_kind()) else { continue };
            self.watches.pods.open.insert(id.clone(), (uid.clone(), None));
            let cluster = self.cluster_for(&id).clone();
            self.spawn(async move {
                // No manifest shows it: a content with another selector is refused, or waits for
                // the workload to be replaced.
                let selector = cluster.read_pod_selector(&kind, &id, &uid).await;
                if let Err(error) = &selector {
                    tracing::debug!(object = %id, "the selector of its pods cannot be read: {error}");
                }
                let selector = selector.ok().flatten();
                if selector.is_none() {
                    tokio::time::sleep(SELECTOR_RETRY_DELAY).await;
                }
                LoopEvent::Selector(id, selector)
            });
        }
    }

    pub(super) fn record_selector(&mut self, id: &ObjectId, selector: Option<&str>) {
        let kind = self.watches.kinds.kind(&id.group_kind());
        let cluster = self.cluster_for(id).clone();
        let sink = self.watches.pods.sink.clone();
        if let (Some((uid, watch)), Some(selector), Some(kind)) =
            (self.watches.pods.open.get_mut(id), selector, kind)
        {
            *watch = cluster.watch_pods(&kind, id, uid, selector, sink);
        } else {
            // Without its pods a rollout would stay in its step for ever.
            self.watches.pods.open.remove(id);
        }
    }

    pub(super) fn handle_pods_event(&mut self, event: PodsEvent) {
        match event.change {
            PodsChange::Observed(pods) => {
                self.engine.handle(Input::Pods { id: event.id, pods }, Instant::now());
            }
            PodsChange::Failed(error, _) if error.class() == ErrorClass::Internal => {
                self.fatal = Some(error.into());
            }
            PodsChange::Failed(error, wait) => {
                tracing::debug!(object = %event.id, ?wait, "its pods cannot be watched: {error}");
            }
        }
    }

    /// Deletes the pods for which a StatefulSet's controller would wait for ever.
    pub(super) fn delete_stuck_pods(&mut self, stuck_pods: Vec<ActingEffect<StuckPod>>) {
        for ActingEffect { source, effect: pod } in stuck_pods {
            tracing::info!(object = %pod.of, pod = %pod.name, "deleted, as the rollout would wait for it forever");
            let cluster = self.cluster_for_source(source).clone();
            self.spawn_write(async move {
                let namespace = pod.of.namespace().unwrap_or_default().to_owned();
                if let Err(error) = cluster.delete_pod(&namespace, &pod.name, &pod.uid, pod.rv).await {
                    tracing::warn!(object = %pod.of, "the pod that holds its rollout up cannot be deleted: {error}");
                }
                LoopEvent::StuckPodDeleted(pod.of)
            });
        }
    }

    /// Asks what the Events say about rollouts that have just failed.
    pub(super) fn ask_about_failures(&mut self, failures: Vec<ActingEffect<FailedRollout>>) {
        for ActingEffect { source, effect: FailedRollout { id, event_subjects } } in failures {
            let cluster = self.cluster_for_source(source).clone();
            self.spawn(async move {
                let namespace = id.namespace().unwrap_or_default().to_owned();
                // Without an answer the failure counts all the same.
                let warned = cluster.read_warnings(&namespace, &event_subjects).await.unwrap_or_default();
                LoopEvent::FailureEvents(id, warned.iter().map(ToString::to_string).collect())
            });
        }
    }
}
