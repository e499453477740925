//! Takes back the pods that a scale gave to a template which a step holds.

use std::time::Instant;

use super::super::loop_event::LoopEvent;
use super::Reconciler;
use super::daemon_sets::is_denied;
use crate::engine::{ActingEffect, Input, ScalePurpose, ScaleRequest, ScaleResult};
use crate::object::{ErrorClass, count_text};

impl Reconciler {
    /// Scales the `ReplicaSets` that have other counts than a step asks for.
    pub(super) fn rescale_due(&mut self, scales: Vec<ActingEffect<ScaleRequest>>) {
        for ActingEffect { source, effect: due } in scales {
            let cluster = self.cluster_for_source(source).clone();
            self.spawn_write(async move {
                let namespace = due.of.namespace().unwrap_or_default();
                let result = cluster.scale_replica_set(namespace, &due.name, &due.uid, due.rv, due.to).await;
                let answer = match result {
                    Ok(()) => ScaleResult::Done,
                    Err(error) if error.class() == ErrorClass::Conflict => ScaleResult::Conflict,
                    Err(error) if is_denied(&error) => {
                        let reason =
                            format!("the user may not patch replicasets/scale in namespace {namespace}");
                        ScaleResult::Refused(reason.into())
                    }
                    Err(error) => ScaleResult::Refused(error.reason().into()),
                };
                LoopEvent::Rescaled(due, answer)
            });
        }
    }

    pub(super) fn record_scale(&mut self, request: ScaleRequest, result: ScaleResult) {
        if result == ScaleResult::Done {
            let count = request.from.abs_diff(request.to);
            match request.purpose {
                ScalePurpose::Restore => tracing::info!(
                    object = %request.of, set = %request.name,
                    "gave the old template {}: a scale had given that to the one that a step holds", count_text(count, "pod")
                ),
                ScalePurpose::RemoveSurplus => tracing::info!(
                    object = %request.of, set = %request.name,
                    "took back {count} of {} new pods: the step is {}", request.from, request.step
                ),
            }
        }
        self.engine.handle(Input::Scaled { request, result }, Instant::now());
    }
}
