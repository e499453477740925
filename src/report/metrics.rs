//! Metrics: counters that the loop keeps, and gauges that are read off the status when somebody asks.
//!
//! Labels are names of sources, phases, kinds and codes, and never those of objects: their number does not grow with
//! what is managed. What is counted of a source is counted from 0 as soon as the source is there, or nobody would see the
//! first step of it (`increase()` of Prometheus knows nothing before a series' first value), and goes with the source.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::{Doors, PHASES, Phase, Reloads, SILENCE, SourceStatus, Status};
use crate::cluster;
use crate::object::Class;
use crate::pulse::Sign;
use crate::queue;

/// The media type of the text (version 1.0 of `OpenMetrics`).
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    action: &'static str,
    class: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSource {
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rolled {
    source: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPart {
    part: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InPhase {
    source: String,
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AtRevision {
    source: String,
    revision: String,
}

/// How a rollout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All is healthy.
    Succeeded,
    /// It did not come up.
    Failed,
    /// What was good before is back.
    RolledBack,
    /// A newer content took its place before it ended.
    Superseded,
}

impl Ended {
    const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::RolledBack, Self::Superseded];

    const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::RolledBack => "rolled-back",
            Self::Superseded => "superseded",
        }
    }
}

/// What is known of the process beside its loop.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// The last signs of life of its parts.
    pub signs: &'a [Sign],
    /// Now.
    pub now: Instant,
    /// How often a new configuration was taken over, and refused.
    pub reloads: Reloads,
    /// Those who ask over HTTP.
    pub doors: &'a Doors,
}

/// A gauge of whole numbers.
type Count = Gauge<u64, AtomicU64>;

/// How long rollouts take, in seconds: from a container that starts at once to one that is given an hour.
type Lengths = Histogram;

const LENGTHS: [f64; 10] = [5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0];

/// What is counted by the loop, by the calls to the API server and by the workqueue; a clone counts the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    writes: Family<Written, Counter>,
    repaired: Family<OfSource, Counter>,
    rollouts: Family<Rolled, Counter>,
    rollout_seconds: Family<Rolled, Lengths, fn() -> Lengths>,
    /// Of which sources something is counted.
    sources: Arc<Mutex<BTreeSet<String>>>,
    calls: cluster::Measures,
    queue: queue::Measures,
}

/// Of no calls yet.
impl Default for Metrics {
    fn default() -> Self {
        Self::new(cluster::Measures::default(), queue::Measures::default())
    }
}

impl Metrics {
    /// Of these calls and these queues.
    pub fn new(calls: cluster::Measures, queue: queue::Measures) -> Self {
        Self {
            writes: Family::default(),
            repaired: Family::default(),
            rollouts: Family::default(),
            rollout_seconds: Family::new_with_constructor(|| Histogram::new(LENGTHS)),
            sources: Arc::default(),
            calls,
            queue,
        }
    }

    /// Since when the API server has answered nothing, where that is long enough to be told.
    pub fn server_silent_since(&self, now: Timestamp) -> Option<Timestamp> {
        let since = *self.calls.silence().borrow();
        since.filter(|since| now.duration_since(*since).unsigned_abs() >= SILENCE)
    }

    /// What is counted of the workqueues, one after the other.
    pub fn queue(&self) -> &queue::Measures {
        &self.queue
    }

    /// A rollout of a source has ended, so long after its beginning; none where an earlier process began it.
    pub fn rolled(&self, source: &str, ended: Ended, took: Option<Duration>) {
        let labels = Rolled { source: self.counted(source), outcome: ended.word() };
        self.rollouts.get_or_create(&labels).inc();
        if let Some(took) = took {
            self.rollout_seconds.get_or_create(&labels).observe(took.as_secs_f64());
        }
    }

    /// A write was answered: with this class of error, or well.
    pub fn wrote(&self, action: &'static str, class: Option<Class>) {
        let class = class.map_or_else(|| "none".to_owned(), |class| class.to_string());
        self.writes.get_or_create(&Written { action, class }).inc();
    }

    /// An object of a source had been changed by somebody else, and is as wanted again.
    pub fn repaired(&self, source: &str) {
        self.repaired.get_or_create(&OfSource { source: self.counted(source) }).inc();
    }

    /// How many objects of a source were repaired.
    pub fn repaired_of(&self, source: &str) -> u64 {
        self.repaired.get_or_create(&OfSource { source: self.counted(source) }).get()
    }

    fn counted(&self, source: &str) -> String {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(source.to_owned());
        source.to_owned()
    }

    /// Counts of these sources, from 0, and no longer of those that are gone: where they come and go, as one for each
    /// branch does, their series would be more and more.
    fn keep(&self, now: BTreeSet<String>) {
        let mut known = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for source in &now {
            drop(self.repaired.get_or_create(&OfSource { source: source.clone() }));
            for ended in Ended::ALL {
                let labels = Rolled { source: source.clone(), outcome: ended.word() };
                drop(self.rollouts.get_or_create(&labels));
            }
        }
        for source in known.difference(&now) {
            self.repaired.remove(&OfSource { source: source.clone() });
            for ended in Ended::ALL {
                let labels = Rolled { source: source.clone(), outcome: ended.word() };
                self.rollouts.remove(&labels);
                self.rollout_seconds.remove(&labels);
            }
        }
        *known = now;
    }

    /// All metrics as a text of [`MEDIA_TYPE`].
    ///
    /// Without a status there is no loop yet, and nothing of what it would tell.
    pub fn text(&self, status: Option<&Status>, process: &Process<'_>) -> String {
        if let Some(status) = status {
            self.keep(status.sources.iter().map(|source| source.name.clone()).collect());
            process.doors.forget_all_but(&status.sources);
        }
        let mut registry = Registry::default();
        let version = vec![("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        registry.register("rhumb_build", "The program", Info::new(version));
        registry.register("rhumb_apply", "Writes by what came of them", self.writes.clone());
        let repaired = "Objects that somebody else had changed, and that were repaired";
        registry.register("rhumb_drift_repaired", repaired, self.repaired.clone());
        let rollouts = "Rollouts that ended, by how";
        registry.register("rhumb_rollouts", rollouts, self.rollouts.clone());
        let lengths = "Seconds from the first write of a rollout to its end";
        registry.register("rhumb_rollout_seconds", lengths, self.rollout_seconds.clone());
        self.calls.register(&mut registry);
        self.queue.register(of_the_workqueue(&mut registry));
        progress(&mut registry, process.signs, process.now);
        let reloads = Family::<Outcome, Counter>::default();
        for (outcome, count) in [("taken", process.reloads.taken), ("refused", process.reloads.refused)] {
            reloads.get_or_create(&Outcome { outcome }).inc_by(count);
        }
        process.doors.register(&mut registry);
        registry.register("rhumb_config_reloads", "New configurations by what became of them", reloads);
        if let Some(status) = status {
            gauges(&mut registry, status);
            ages(&mut registry, status);
        }
        let mut text = String::new();
        if text::encode(&mut text, &registry).is_err() {
            // Writing into a text cannot fail.
            text.clear();
            let _ = writeln!(text, "# EOF");
        }
        text
    }
}

/// What is said of the workqueue carries its name, as every queue of client-go does.
fn of_the_workqueue(registry: &mut Registry) -> &mut Registry {
    registry.sub_registry_with_label(("name".into(), "objects".into()))
}

/// How long ago each part gave its last sign of life.
fn progress(registry: &mut Registry, signs: &[Sign], now: Instant) {
    let parts = Family::<OfPart, Gauge<f64, AtomicU64>>::default();
    let late = Family::<OfPart, Count>::default();
    for sign in signs {
        let part = OfPart { part: sign.name.to_string() };
        parts.get_or_create(&part).set(now.saturating_duration_since(sign.last).as_secs_f64());
        late.get_or_create(&part).set(sign.is_late(now).into());
    }
    watches(registry, signs, now);
    let since = "Seconds since each part that must make progress gave its last sign of life";
    registry.register("rhumb_last_progress_seconds", since, parts);
    registry.register("rhumb_progress_late", "Whether its next sign of life is overdue", late);
}

/// How long ago each watch last heard of its server; of several over one kind, as of pods, that with the oldest news.
fn watches(registry: &mut Registry, signs: &[Sign], now: Instant) {
    let watches = Family::<OfKind, Gauge<f64, AtomicU64>>::default();
    for sign in signs {
        let Some(kind) = sign.name.strip_prefix(cluster::WATCH_OVER) else { continue };
        let gauge = watches.get_or_create(&OfKind { kind: kind.to_owned() });
        gauge.set(gauge.get().max(now.saturating_duration_since(sign.last).as_secs_f64()));
    }
    registry.register(
        "rhumb_watch_age_seconds",
        "Seconds since each watch last heard of its server",
        watches,
    );
}

fn gauges(registry: &mut Registry, status: &Status) {
    let mut gauge = |name: &str, help: &str, value: u64| {
        let gauge = Count::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let (rollout, process) = (&status.rollout, &status.process);
    gauge(
        "rhumb_rollout_in_flight",
        "Workloads whose pods are being replaced",
        rollout.workloads.used.into(),
    );
    gauge("rhumb_rollout_queue", "Workloads that wait to be rolled out", rollout.queue.len() as u64);
    gauge("rhumb_budget_workloads", "Workloads that may roll at a time", rollout.workloads.of.into());
    gauge("rhumb_budget_window", "Workloads that may roll at a time just now", rollout.window.into());
    let unavailable = "Pods that are unavailable, or may become so by what was begun";
    gauge("rhumb_budget_pods_unavailable", unavailable, rollout.unavailable.used.into());
    let may = "Pods that may be unavailable at a time";
    gauge("rhumb_budget_pods_unavailable_max", may, rollout.unavailable.of.into());
    gauge("rhumb_budget_starts", "Rollouts that began in the last minute", rollout.starts.used.into());
    gauge("rhumb_budget_starts_max", "Rollouts that may begin in a minute", rollout.starts.of.into());
    let queue = of_the_workqueue(registry);
    let depth = Count::default();
    depth.set(process.queue as u64);
    queue.register("workqueue_depth", "Keys that wait to be taken, or are being processed", depth);
    let mut seconds = |name: &str, help: &str, value: f64| {
        let gauge: Gauge<f64, AtomicU64> = Gauge::default();
        gauge.set(value);
        queue.register(name, help, gauge);
    };
    let unfinished = "Seconds that what is being processed has been, in sum";
    seconds("workqueue_unfinished_work_seconds", unfinished, process.unfinished_seconds);
    let longest = "Seconds that the longest of what is being processed has been";
    seconds("workqueue_longest_running_processor_seconds", longest, process.longest_seconds);
    sources(registry, &status.sources);
}

/// How long ago each source was last looked at, and each watch last heard of its server.
fn ages(registry: &mut Registry, status: &Status) {
    let looked = Family::<OfSource, Gauge<f64, AtomicU64>>::default();
    for source in &status.sources {
        if let Some(at) = source.looked {
            let age = status.at.duration_since(at).as_secs_f64().max(0.0);
            looked.get_or_create(&OfSource { source: source.name.clone() }).set(age);
        }
    }
    let since = "Seconds since the newest state of each source was last looked at, with success";
    registry.register("rhumb_source_age_seconds", since, looked);
}

fn sources(registry: &mut Registry, sources: &[SourceStatus]) {
    let objects = Family::<InPhase, Count>::default();
    let revisions = Family::<AtRevision, Count>::default();
    let of = |value: &dyn Fn(&SourceStatus) -> u64| {
        let family = Family::<OfSource, Count>::default();
        for source in sources {
            family.get_or_create(&OfSource { source: source.name.clone() }).set(value(source));
        }
        family
    };
    for source in sources {
        let count = |phase: Phase| source.objects.get(&phase).copied().unwrap_or(0) as u64;
        for phase in PHASES {
            let labels = InPhase { source: source.name.clone(), phase: phase.to_string() };
            objects.get_or_create(&labels).set(count(phase));
        }
        if let Some(revision) = &source.revision {
            let labels = AtRevision { source: source.name.clone(), revision: revision.clone() };
            revisions.get_or_create(&labels).set(1);
        }
    }
    registry.register("rhumb_objects", "Objects of each source by phase", objects);
    registry.register("rhumb_source_revision_info", "The revision in force; always 1", revisions);
    let complete = of(&|source| source.complete.into());
    registry.register("rhumb_source_complete", "Whether the newest state was read whole", complete);
    let findings = of(&|source| source.findings as u64);
    registry.register("rhumb_source_findings", "Findings in the files of each source", findings);
    let pending = of(&|source| source.prune_waiting as u64);
    registry.register("rhumb_prune_pending", "Deletions that wait for a person", pending);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::Heard;

    fn text(metrics: &Metrics) -> String {
        let (reloads, doors) = (Reloads::default(), Doors::default());
        metrics.text(None, &Process { signs: &[], now: Instant::now(), reloads, doors: &doors })
    }

    #[test]
    fn that_the_program_runs_is_told_before_its_loop_does() {
        assert!(text(&Metrics::default()).contains("\nrhumb_build_info{version="));
    }

    #[test]
    fn a_source_is_counted_from_nothing_and_as_long_as_it_is_there() {
        let metrics = Metrics::default();
        metrics.keep(["shop".to_owned(), "ops".to_owned()].into());
        for outcome in ["succeeded", "failed", "rolled-back", "superseded"] {
            let line = format!("rhumb_rollouts_total{{source=\"shop\",outcome=\"{outcome}\"}} 0\n");
            assert!(text(&metrics).contains(&line), "{}", text(&metrics));
        }
        metrics.rolled("shop", Ended::Failed, Some(Duration::from_secs(9)));
        metrics.repaired("shop");
        metrics.keep(["shop".to_owned()].into());
        let kept = text(&metrics);
        assert!(kept.contains("rhumb_rollouts_total{source=\"shop\",outcome=\"failed\"} 1\n"), "{kept}");
        assert!(kept.contains("rhumb_drift_repaired_total{source=\"shop\"} 1\n"), "{kept}");
        assert!(
            kept.contains("rhumb_rollout_seconds_count{source=\"shop\",outcome=\"failed\"} 1\n"),
            "{kept}"
        );
        assert!(!kept.contains("ops"), "{kept}");
        metrics.keep(BTreeSet::new());
        assert!(!text(&metrics).contains("shop"), "{}", text(&metrics));
    }

    fn status(sources: &[&str]) -> Status {
        let source = |name: &&str| {
            json!({
                "name": name, "place": "", "complete": true, "observed": false, "healthy": true, "objects": {},
                "findings": 0, "pruneWaiting": 0,
            })
        };
        let share = json!({"used": 0, "of": 0});
        serde_json::from_value(json!({
            "apiVersion": "", "kind": "Status", "at": "2030-01-02T03:04:05Z",
            "process": {
                "version": "", "since": "2030-01-02T03:04:05Z", "nextResync": "2030-01-02T03:04:05Z", "queue": 0,
                "unfinishedSeconds": 0, "longestSeconds": 0,
            },
            "sources": sources.iter().map(source).collect::<Vec<_>>(),
            "rollout": {
                "known": true, "workloads": share, "unavailable": share, "starts": share, "window": 0,
                "onFailure": "", "rolling": [], "queue": [],
            },
        }))
        .unwrap()
    }

    #[test]
    fn sources_that_come_and_go_leave_no_series() {
        let (metrics, doors) = (Metrics::default(), Doors::default());
        let text = |sources: Option<&[&str]>| {
            let process =
                Process { signs: &[], now: Instant::now(), reloads: Reloads::default(), doors: &doors };
            metrics.text(sources.map(status).as_ref(), &process)
        };
        let of = |name: &str, text: &str| text.lines().filter(|line| line.contains(name)).count();
        for source in ["shop", "branch-1"] {
            metrics.repaired(source);
            metrics.rolled(source, Ended::Failed, Some(Duration::from_secs(7)));
            doors.hook(Some(source), Heard::Taken);
        }
        doors.hook(None, Heard::Refused);
        // While no loop runs nobody knows which sources there are.
        let before = text(None);
        let counted = of("source=\"shop\"", &before);
        assert!(counted > 3 && counted == of("source=\"branch-1\"", &before), "{before}");
        let after = text(Some(&["shop"]));
        assert_eq!(of("branch-1", &after), 0, "{after}");
        for line in
            before.lines().filter(|line| line.contains("source=\"shop\"") || line.contains("\"other\""))
        {
            assert!(after.lines().any(|found| found == line), "{line} is not in\n{after}");
        }
    }
}
