//! What happens as Kubernetes Events: on the object, and on the `ConfigMap` of its source.
//!
//! Events are for people. Whatever keeps them from being written keeps nothing else from being done. One of a source
//! that has moved to another replica meanwhile is dropped: that one tells what goes on.

mod correlate;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use self::correlate::{Correlator, Deed, Write};
use crate::cluster::{Cluster, Denial, Error, Fault, Retry, Terms};
use crate::report::{Followed, Recorder};

/// A namespace in which the user may make no Events is not tried again for so long.
const DENIED: Duration = Duration::from_mins(10);

/// A server in trouble is not tried again for so long.
const TROUBLE: Duration = Duration::from_secs(10);

/// Writes what a recorder tells, and has told, as long as it is polled: as soon as there are terms, of each source only
/// within its own. The sources' `ConfigMap`s are in this namespace.
pub async fn write_events(
    cluster: Cluster,
    terms: watch::Receiver<Option<Terms>>,
    namespace: String,
    recorder: Recorder,
) {
    let Followed { past, mut coming } = recorder.follow(|_| true);
    let correlator = Correlator::new(&namespace);
    let mut writer = Writer { cluster, terms, correlator, denied: HashMap::new(), rest: None };
    for notice in past {
        writer.correlator.offer(&notice, Instant::now());
    }
    loop {
        while let Some(write) = writer.next(Instant::now()) {
            writer.carry_out(write).await;
            // What waits to be written is bounded there, and the rest is counted as lost.
            while let Ok(notice) = coming.try_recv() {
                writer.correlator.offer(&notice, Instant::now());
            }
        }
        let lost = writer.correlator.take_lost();
        if lost > 0 {
            tracing::info!(
                lost,
                "not all that happened is told by Events: too much at once, no answer, or a refusal"
            );
        }
        let due = writer.correlator.due().max(writer.rest);
        let wake = due.unwrap_or_else(Instant::now);
        tokio::select! {
            notice = coming.recv() => match notice {
                Some(notice) => writer.correlator.offer(&notice, Instant::now()),
                None => return,
            },
            () = tokio::time::sleep_until(wake.into()), if due.is_some() => {}
        }
    }
}

struct Writer {
    cluster: Cluster,
    terms: watch::Receiver<Option<Terms>>,
    correlator: Correlator,
    /// Where the user may make none, and until when that is believed.
    denied: HashMap<Option<String>, Instant>,
    /// Until when the server is left alone.
    rest: Option<Instant>,
}

/// Nobody waits for Events at the end.
impl Drop for Writer {
    fn drop(&mut self) {
        let left = self.correlator.left();
        if left > 0 {
            tracing::info!(left, "not all that happened is told by Events: rhumb ended before that");
        }
    }
}

impl Writer {
    /// What is to be written now.
    fn next(&mut self, now: Instant) -> Option<Write> {
        self.rest = self.rest.filter(|rest| *rest > now);
        if self.rest.is_some() { None } else { self.correlator.next(now) }
    }

    async fn carry_out(&mut self, write: Write) {
        let namespace = write.occurrence.id.namespace().map(str::to_owned);
        let now = Instant::now();
        if self.denied.get(&namespace).is_some_and(|until| now < *until) {
            return self.correlator.unwritten(&write);
        }
        let terms = self.terms.borrow().clone();
        let cluster = match terms {
            Some(terms) => self.cluster.fenced(terms.fence([write.source.as_str().into()])),
            None => self.cluster.clone(),
        };
        let written = match write.deed {
            Deed::Make => cluster.make_event(&write.occurrence, &write.name).await,
            Deed::Repeat => cluster.repeat_event(&write.occurrence, &write.name).await,
        };
        match written {
            Ok(()) => drop(self.denied.remove(&namespace)),
            // They live for an hour.
            Err(error) if write.deed == Deed::Repeat && *error.fault() == Fault::NoObject => {
                self.correlator.expired(write);
            }
            // It was made, and only the answer did not come.
            Err(error) if write.tried_before() && *error.fault() == Fault::Stale => {}
            Err(error) => self.failed(write, namespace, &error, now),
        }
    }

    fn failed(&mut self, write: Write, namespace: Option<String>, error: &Error, now: Instant) {
        match error.fault() {
            // What the namespace was told of goes with it; another one may have its name soon.
            Fault::Denied { by: Denial::Terminating, .. } | Fault::NoNamespace { .. } | Fault::NotHeld => {
                self.correlator.unwritten(&write);
            }
            // That is told here, and not with each of them.
            Fault::Denied { .. } => {
                self.correlator.unwritten(&write);
                if self.denied.insert(namespace, now + DENIED).is_none() {
                    tracing::warn!("no Events are written there: {error}");
                }
                return;
            }
            _ if error.retry() != Retry::Soon => self.correlator.given_up(&write),
            _ if self.correlator.failed(write) => self.rest = Some(Instant::now() + TROUBLE),
            _ => {}
        }
        tracing::debug!("an Event could not be written: {error}");
    }
}

#[cfg(test)]
mod tests;
