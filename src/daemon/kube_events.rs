//! Kubernetes Events: on the object, and on the inventory `ConfigMap` of its source.
//!
//! Events are for people. A failure to write one stops nothing else. An Event of a source that has
//! moved to another replica is dropped: that replica reports from then on.

mod correlate;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use self::correlate::{EventCorrelator, EventWrite, EventWriteVerb};
use crate::cluster::{AccessDenial, Cluster, ClusterError, ClusterFault, LeaseTerms, RetryAdvice};
use crate::report::{EventRecorder, LosslessSubscription};

/// The pause before a namespace in which the user may make no Events is tried again.
const DENIED_RETRY_DELAY: Duration = Duration::from_mins(10);

/// The pause before a server in trouble is tried again.
const OUTAGE_RETRY_DELAY: Duration = Duration::from_secs(10);

/// Writes the events that a recorder keeps and receives, as long as it is polled. It begins as soon
/// as there are terms, and writes for each source only within its own. The inventory `ConfigMap`s
/// are in this namespace.
pub(crate) async fn write_events(
    cluster: Cluster,
    terms: watch::Receiver<Option<LeaseTerms>>,
    namespace: String,
    recorder: EventRecorder,
) {
    let LosslessSubscription { backlog: past, live: mut coming } = recorder.follow(|_| true);
    let correlator = EventCorrelator::new(&namespace);
    let mut writer = EventWriter { cluster, terms, correlator, denied: HashMap::new(), rest: None };
    for event in past {
        writer.correlator.offer(&event, Instant::now());
    }
    loop {
        while let Some(write) = writer.next(Instant::now()) {
            writer.carry_out(write).await;
            // The correlator bounds the waiting Events, and counts the rest as lost.
            while let Ok(event) = coming.try_recv() {
                writer.correlator.offer(&event, Instant::now());
            }
        }
        let lost = writer.correlator.take_unreported_count();
        if lost > 0 {
            tracing::info!(lost, "some Events were not written: too many at once, no answer, or a refusal");
        }
        let due = writer.correlator.next_due().max(writer.rest);
        let wake = due.unwrap_or_else(Instant::now);
        tokio::select! {
            event = coming.recv() => match event {
                Some(event) => writer.correlator.offer(&event, Instant::now()),
                None => return,
            },
            () = tokio::time::sleep_until(wake.into()), if due.is_some() => {}
        }
    }
}

struct EventWriter {
    cluster: Cluster,
    terms: watch::Receiver<Option<LeaseTerms>>,
    correlator: EventCorrelator,
    /// The namespaces where the user may create no Events, and the time until which that is
    /// believed.
    denied: HashMap<Option<String>, Instant>,
    /// The time until which the server is left alone.
    rest: Option<Instant>,
}

/// Nobody waits for Events at the end.
impl Drop for EventWriter {
    fn drop(&mut self) {
        let left = self.correlator.unwritten_count();
        if left > 0 {
            tracing::info!(left, "some Events were not written before rhumb ended");
        }
    }
}

impl EventWriter {
    /// Returns the Event to write now.
    fn next(&mut self, now: Instant) -> Option<EventWrite> {
        self.rest = self.rest.filter(|rest| *rest > now);
        if self.rest.is_some() { None } else { self.correlator.next(now) }
    }

    async fn carry_out(&mut self, write: EventWrite) {
        let namespace = write.occurrence.id.namespace().map(str::to_owned);
        let now = Instant::now();
        if self.denied.get(&namespace).is_some_and(|until| now < *until) {
            return self.correlator.note_skipped(&write);
        }
        let terms = self.terms.borrow().clone();
        let cluster = match terms {
            Some(terms) => self.cluster.with_fence(terms.new_fence([write.source.as_str().into()])),
            None => self.cluster.clone(),
        };
        let written = match write.verb {
            EventWriteVerb::Create => cluster.make_event(&write.occurrence, &write.name).await,
            EventWriteVerb::Patch => cluster.repeat_event(&write.occurrence, &write.name).await,
        };
        match written {
            Ok(()) => drop(self.denied.remove(&namespace)),
            // They live for an hour.
            Err(error) if write.verb == EventWriteVerb::Patch && *error.fault() == ClusterFault::NoObject => {
                self.correlator.forget_event(write);
            }
            // It was made, and only the answer did not come.
            Err(error) if write.is_retry() && *error.fault() == ClusterFault::VersionConflict => {}
            Err(error) => self.note_failure(write, namespace, &error, now),
        }
    }

    fn note_failure(
        &mut self,
        write: EventWrite,
        namespace: Option<String>,
        error: &ClusterError,
        now: Instant,
    ) {
        match error.fault() {
            // The Events of the namespace go with it; another one may have its name soon.
            ClusterFault::Denied { by: AccessDenial::Terminating, .. }
            | ClusterFault::NoNamespace { .. }
            | ClusterFault::NotHeld => {
                self.correlator.note_skipped(&write);
            }
            // The denial is logged here, and not with each of them.
            ClusterFault::Denied { .. } => {
                self.correlator.note_skipped(&write);
                if self.denied.insert(namespace, now + DENIED_RETRY_DELAY).is_none() {
                    tracing::warn!("no Events are written there: {error}");
                }
                return;
            }
            _ if error.retry() != RetryAdvice::ShortBackoff => self.correlator.note_lost(&write),
            _ if self.correlator.try_requeue(write) => self.rest = Some(Instant::now() + OUTAGE_RETRY_DELAY),
            _ => {}
        }
        tracing::debug!("an Event could not be written: {error}");
    }
}

#[cfg(test)]
mod tests;
