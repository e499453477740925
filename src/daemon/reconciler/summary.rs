//! The status, kept current for its readers: one line, and the record in each source's ConfigMap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::super::pass_result::PassEnding;
use super::Reconciler;
use crate::cluster::InventoryObject;
use crate::engine::{PrunePolicy, SourceId, SourceLifecycle, SourceWrites};
use crate::report::{
    self, DaemonStatus, DaemonSummary, MAX_NAMED_OBJECTS, ObjectStatus, Phase, SourceStatus, StatusSummary,
};

/// It is made anew at most this often.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(1);

/// The longest delay of a summary for objects that are being worked on: a summary of everything
/// takes longer than a write does.
const BUSY_DELAY: Duration = Duration::from_secs(1);

/// The shortest time between two writes of a source's ConfigMap: each change is a write.
const STATUS_WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// The maximum number of concurrent writes of ConfigMaps as the process ends.
const CONCURRENT_FINAL_WRITES: usize = 8;

/// The time for which a new process leaves the record of a source that it has not read yet. A
/// record of half a reading would be written twice.
const RECORD_GRACE_PERIOD: Duration = Duration::from_secs(10);

/// The readers of the status, and the time of the next update.
#[derive(Debug, Default)]
pub(super) struct SummaryPublication {
    to: Option<watch::Sender<DaemonSummary>>,
    /// The time before which it is not published again.
    rest: Option<Instant>,
    /// The time until which it gives way to the objects that are being worked on.
    gives_way: Option<Instant>,
    /// The time of an update that came too soon after the last.
    pub(super) due: Option<Instant>,
    /// The time at which the records of the sources were last computed, and the records.
    written: Option<Instant>,
    per_source: Vec<Option<StatusSummary>>,
    /// The time of this process' first update.
    begun: Option<Instant>,
}

impl Reconciler {
    /// Keeps a summary current, from the first turn of the loop on.
    #[must_use]
    pub(crate) fn with_summary(mut self, to: watch::Sender<DaemonSummary>) -> Self {
        self.telemetry.summary.to = Some(to);
        self
    }

    /// Returns whether a single pass ends that knows the status of its source.
    pub(super) fn is_ending_with_record(&self, ending: PassEnding) -> bool {
        let has_ended = matches!(ending, PassEnding::Settled | PassEnding::TimedOut);
        !self.run_mode.is_daemon() && has_ended
    }

    /// Publishes the status after a turn.
    pub(super) fn publish_summary(&mut self, now: Instant) {
        if !self.run_mode.is_daemon() {
            return;
        }
        if let Some(rest) = self.telemetry.summary.rest.filter(|rest| *rest > now) {
            self.telemetry.summary.due = Some(rest);
            return;
        }
        self.telemetry.summary.begun.get_or_insert(now);
        let yield_until = *self.telemetry.summary.gives_way.get_or_insert(now + BUSY_DELAY);
        if self.is_working() && now < yield_until {
            self.telemetry.summary.due = Some(yield_until);
            return;
        }
        self.telemetry.summary.gives_way = None;
        (self.telemetry.summary.rest, self.telemetry.summary.due) = (Some(now + SUMMARY_INTERVAL), None);
        let status = self.with_context(now, report::status);
        if let Some(to) = &self.telemetry.summary.to {
            let summary = DaemonSummary::of(&status);
            to.send_if_modified(|known| {
                let changed = *known != summary;
                *known = summary;
                changed
            });
        }
        self.record_source_events(&status);
        if !self.is_settling()
            && self.telemetry.summary.written.is_some_and(|written| now < written + STATUS_WRITE_INTERVAL)
        {
            self.telemetry.summary.due =
                self.telemetry.summary.written.map(|written| written + STATUS_WRITE_INTERVAL);
            return;
        }
        self.telemetry.summary.written = Some(now);
        let summaries = self.status_summaries(&status, now);
        if summaries.iter().any(Option::is_none) {
            (self.telemetry.summary.written, self.telemetry.summary.due) =
                (None, Some(now + SUMMARY_INTERVAL));
        }
        if self.telemetry.summary.per_source != summaries {
            self.telemetry.summary.per_source = summaries;
            self.records.round_robin.note_late_change();
        }
    }

    /// Returns the status of each source of which enough is known.
    fn status_summaries(&self, status: &DaemonStatus, now: Instant) -> Vec<Option<StatusSummary>> {
        let first = |is_asked_for: fn(Phase) -> bool| {
            if !status.sources.iter().any(|status| status.objects.keys().any(|phase| is_asked_for(*phase))) {
                return Vec::new();
            }
            self.with_context(now, |engine, context| {
                report::first_objects(engine, context, MAX_NAMED_OBJECTS, is_asked_for)
            })
        };
        let unwell = first(|phase| !phase.is_well());
        let left_alone = first(|phase| phase == Phase::LeftAlone);
        let summaries = self.engine.view().source_ids().zip(&status.sources).map(|(source, status)| {
            let of = |all: &[Vec<ObjectStatus>]| all.get(source.position()).cloned().unwrap_or_default();
            let summarize = || {
                StatusSummary::of(status, &of(&unwell), &of(&left_alone))
                    .with_settled(self.settled_revision(source))
            };
            self.can_record(source, status, now).then(summarize)
        });
        summaries.collect()
    }

    /// Writes into the sources' ConfigMaps the status of each as the process ends: what they say
    /// may be older.
    ///
    /// A conflict is no error: another process wrote the record meanwhile, and keeps it now. A
    /// daemon that runs beside a single pass sees what that leaves, and writes its own again.
    pub(super) async fn write_last_summaries(&mut self) {
        let now = Instant::now();
        let status = self.with_context(now, report::status);
        let changed = self.engine.view().source_ids().zip(self.status_summaries(&status, now)).filter_map(
            |(source, summary)| {
                let known = self.records.inventories.get(source.position())?.inventory.inventory()?;
                if self.is_left_to_others(source, &known.data) {
                    return None;
                }
                let mut wanted = known.clone();
                summary?.write_to(&mut wanted.data);
                if *known != wanted {
                    self.status_author().write_to(&mut wanted.data);
                }
                let source = self.engine.view().source(source);
                (*known != wanted && source.declared.writes != SourceWrites::Observed).then_some((
                    &source.declared.name,
                    known,
                    wanted,
                ))
            },
        );
        let cluster = &self.executor.cluster;
        let write = async |(name, known, wanted): (&Arc<str>, &InventoryObject, InventoryObject)| {
            if let Err(error) =
                cluster.save_inventory(&self.records.namespace, name, Some(known), &wanted).await
            {
                tracing::debug!(source = %name, "its last status is not written: {error}");
            }
        };
        stream::iter(changed).for_each_concurrent(CONCURRENT_FINAL_WRITES, write).await;
    }

    /// Returns whether a single pass has nothing to say about the status of a source: it reads
    /// nothing, or a part, or deletes all.
    ///
    /// A record that another process has written meanwhile is kept by that one.
    fn is_left_to_others(&self, source: SourceId, data: &BTreeMap<String, String>) -> bool {
        let state = self.engine.view().source(source);
        let is_complete = state.head.is_some()
            && state.declared.prune != PrunePolicy::Partial
            && state.declared.lifecycle == SourceLifecycle::Active;
        let before = self.records.inventories[source].first_status.as_ref();
        let is_kept = StatusSummary::from_data(data).as_ref() != before;
        !self.run_mode.is_daemon() && (is_kept || !is_complete)
    }

    /// Returns whether a ConfigMap does not say yet which revision was reported to have settled.
    /// That does not wait: until it is there, whoever comes after this process reports it again.
    fn is_settling(&self) -> bool {
        let summaries = self.engine.view().source_ids().zip(&self.telemetry.summary.per_source);
        let known = summaries.filter_map(|(source, summary)| Some((source, summary.as_ref()?)));
        let mut known = known
            .map(|(source, summary)| (summary, summary.clone().with_settled(self.settled_revision(source))));
        known.any(|(written, now)| *written != now)
    }

    /// Returns whether enough of a source is known to write down its status.
    fn can_record(&self, source: SourceId, status: &SourceStatus, now: Instant) -> bool {
        // A single pass has observed all that it could when it ends.
        let has_observed = || !self.run_mode.is_daemon() || (!self.is_working() && self.is_seen(source));
        self.status_summary(source).is_some()
            || (status.incomplete.is_some() && !self.engine.view().source(source).is_unread())
            || (status.revision.is_some() && has_observed())
            || self.telemetry.summary.begun.is_some_and(|begun| now >= begun + RECORD_GRACE_PERIOD)
    }

    /// Returns whether objects are being worked on, or wait for it.
    fn is_working(&self) -> bool {
        let depth = self.queue.depth();
        depth.ready + depth.processing > 0
    }

    /// Returns the status of a source for its ConfigMap; none before that is known.
    pub(super) fn status_summary(&self, source: SourceId) -> Option<&StatusSummary> {
        self.telemetry.summary.per_source.get(source.position())?.as_ref()
    }

    /// Returns the time of the next resync at the latest.
    pub(super) fn next_resync(&self, now: Instant, at: Timestamp) -> Timestamp {
        let wait = self.timers.resync.saturating_duration_since(now);
        at + SignedDuration::try_from(wait).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::super::super::setup::Setup;
    use super::super::{MAX_TURN_DURATION, RunMode};
    use super::*;
    use crate::cluster::{Cluster, Connection};
    use crate::object::{GroupKind, ObjectId};

    /// Returns a cluster that never answers.
    async fn nobody(dir: &std::path::Path) -> Cluster {
        let kubeconfig = dir.join("config");
        let text = "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: \"http://127.0.0.1:9\"}}], \
                    users: [{name: a, user: {}}], contexts: [{name: a, context: {cluster: a, user: a}}]}";
        std::fs::write(&kubeconfig, text).unwrap();
        let connection = Connection { kubeconfig: Some(kubeconfig), ..Connection::default() };
        Cluster::connect(&connection).await.unwrap()
    }

    const RESYNC: Duration = Duration::from_mins(5);

    /// Returns a loop without sources, and the receiver of its summary.
    fn looped(cluster: &Cluster) -> (Reconciler, watch::Receiver<DaemonSummary>) {
        let setup = Setup { resync: RESYNC, ..Setup::in_test(cluster.clone(), Vec::new()) };
        let (to, summaries) = watch::channel(DaemonSummary::default());
        (Reconciler::new(setup, RunMode::Daemon, mpsc::unbounded_channel().0).with_summary(to), summaries)
    }

    #[tokio::test]
    async fn what_is_being_worked_on_goes_first_and_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let (mut reconciler, _summaries) = looped(&nobody(dir.path()).await);
        let next_write = |reconciler: &mut Reconciler, now| {
            reconciler.publish_summary(now);
            (
                reconciler.telemetry.summary.rest == Some(now + SUMMARY_INTERVAL),
                reconciler.telemetry.summary.due,
            )
        };
        let start = Instant::now();
        let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "env");
        reconciler.queue.add(id.clone());
        assert_eq!(next_write(&mut reconciler, start), (false, Some(start + BUSY_DELAY)));
        assert_eq!(reconciler.queue.take(start), Some(id.clone()));
        assert_eq!(next_write(&mut reconciler, start + BUSY_DELAY / 2), (false, Some(start + BUSY_DELAY)));
        assert!(next_write(&mut reconciler, start + BUSY_DELAY).0);
        // After the rest it gives way again, until all is done.
        let again = start + BUSY_DELAY + SUMMARY_INTERVAL;
        assert_eq!(next_write(&mut reconciler, again), (false, Some(again + BUSY_DELAY)));
        reconciler.queue.finish(&id);
        assert!(next_write(&mut reconciler, again).0);
    }

    #[tokio::test]
    async fn the_loop_gives_signs_of_life_and_reports_its_status() {
        let dir = tempfile::tempdir().unwrap();
        let cluster = nobody(dir.path()).await;
        let stop = CancellationToken::new();
        let (reconciler, mut summaries) = looped(&cluster);
        let running = tokio::spawn(reconciler.run(stop.clone()));
        summaries.changed().await.unwrap();
        let words = summaries.borrow_and_update().to_string();
        assert!(words.starts_with("serves no source now: 0 objects; next resync "), "{words}");
        let signs = cluster.heartbeats().statuses();
        let names: Vec<&str> = signs.iter().map(|sign| &*sign.name).collect();
        assert_eq!(names, ["the loop", "the thread of all tasks"]);
        for sign in signs {
            let wait = sign.due - sign.last;
            assert!(wait > Duration::ZERO && wait <= RESYNC + MAX_TURN_DURATION, "{sign:?}");
        }
        stop.cancel();
        running.await.unwrap().unwrap();
        assert_eq!(cluster.heartbeats().statuses(), []);
    }
}
