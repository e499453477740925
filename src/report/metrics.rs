//! Metrics: counters that the loop keeps, and gauges that are read off the status on request.
//!
//! Labels are names of sources, phases, kinds and codes, and never those of objects: their number
//! does not grow with the number of objects. A source's counters begin at 0 as soon as the source
//! is there, and go with it. Otherwise nobody would see their first step: `increase()` of
//! Prometheus knows nothing before a series' first value.

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

use super::{DaemonStatus, EndpointMetrics, PHASES, Phase, ReloadCounts, SILENCE_THRESHOLD, SourceStatus};
use crate::call_metrics::CallMetrics;
use crate::heartbeat::{HeartbeatStatus, WATCH_PREFIX};
use crate::object::ErrorClass;
use crate::queue;

/// The media type of the text (version 1.0 of `OpenMetrics`).
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    action: &'static str,
    class: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RolloutLabels {
    source: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabels {
    part: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    source: String,
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RevisionLabels {
    source: String,
    revision: String,
}

/// The end of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RolloutResult {
    /// All is healthy.
    Succeeded,
    /// It did not come up.
    Failed,
    /// The last good content is back.
    RolledBack,
    /// A newer content took its place before it ended.
    Superseded,
}

impl RolloutResult {
    const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::RolledBack, Self::Superseded];

    const fn label(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::RolledBack => "rolled-back",
            Self::Superseded => "superseded",
        }
    }
}

/// The state of the process beside its loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessFacts<'a> {
    /// The last heartbeats of its parts.
    pub heartbeats: &'a [HeartbeatStatus],
    /// Now.
    pub now: Instant,
    /// The number of configurations taken over, and refused.
    pub reloads: ReloadCounts,
    /// The metrics of the HTTP endpoints.
    pub endpoints: &'a EndpointMetrics,
}

/// A gauge of whole numbers.
type IntegerGauge = Gauge<u64, AtomicU64>;

/// A histogram of durations, in seconds.
type DurationHistogram = Histogram;

/// The buckets for rollouts: from a container that starts at once to one that is given an hour.
const ROLLOUT_BUCKETS_SECONDS: [f64; 10] =
    [5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0];

/// The metrics of the loop, of the calls to the API server and of the workqueue; a clone counts the
/// same.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    writes: Family<WriteLabels, Counter>,
    repaired: Family<SourceLabels, Counter>,
    rollouts: Family<RolloutLabels, Counter>,
    rollout_seconds: Family<RolloutLabels, DurationHistogram, fn() -> DurationHistogram>,
    /// The sources that are counted.
    sources: Arc<Mutex<BTreeSet<String>>>,
    calls: CallMetrics,
    queue: queue::QueueMetrics,
}

/// Metrics without calls.
impl Default for Metrics {
    fn default() -> Self {
        Self::new(CallMetrics::default(), queue::QueueMetrics::default())
    }
}

impl Metrics {
    /// Returns the metrics with these of the calls and of the queues.
    pub(crate) fn new(calls: CallMetrics, queue: queue::QueueMetrics) -> Self {
        Self {
            writes: Family::default(),
            repaired: Family::default(),
            rollouts: Family::default(),
            rollout_seconds: Family::new_with_constructor(|| Histogram::new(ROLLOUT_BUCKETS_SECONDS)),
            sources: Arc::default(),
            calls,
            queue,
        }
    }

    /// Returns the time since which the API server has not answered, where that is long enough to
    /// be reported.
    pub(crate) fn server_silent_since(&self, now: Timestamp) -> Option<Timestamp> {
        let since = *self.calls.unreachable_since().borrow();
        since.filter(|since| now.duration_since(*since).unsigned_abs() >= SILENCE_THRESHOLD)
    }

    /// Returns the metrics of the workqueue, which those of later loops count on with.
    pub(crate) fn queue_metrics(&self) -> &queue::QueueMetrics {
        &self.queue
    }

    /// Counts a rollout of a source that has ended, with its duration; none where an earlier
    /// process began it.
    pub(crate) fn record_rollout(&self, source: &str, ended: RolloutResult, took: Option<Duration>) {
        let labels = RolloutLabels { source: self.add_source(source), outcome: ended.label() };
        self.rollouts.get_or_create(&labels).inc();
        if let Some(took) = took {
            self.rollout_seconds.get_or_create(&labels).observe(took.as_secs_f64());
        }
    }

    /// Counts the answer to a write or dry run: a class of error, or success.
    pub(crate) fn record_write(&self, action: &'static str, class: Option<ErrorClass>) {
        let class = class.map_or_else(|| "none".to_owned(), |class| class.to_string());
        self.writes.get_or_create(&WriteLabels { action, class }).inc();
    }

    /// Counts the repair of an object that somebody else had changed.
    pub(crate) fn record_repair(&self, source: &str) {
        self.repaired.get_or_create(&SourceLabels { source: self.add_source(source) }).inc();
    }

    /// Returns how many objects of a source were repaired.
    pub(crate) fn repairs_of(&self, source: &str) -> u64 {
        self.repaired.get_or_create(&SourceLabels { source: self.add_source(source) }).get()
    }

    fn add_source(&self, source: &str) -> String {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(source.to_owned());
        source.to_owned()
    }

    /// Counts these sources, from 0, and drops those that are gone. Sources come and go, as one for
    /// each branch does, and their series would grow without end.
    fn keep(&self, now: BTreeSet<String>) {
        let mut known = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for source in &now {
            drop(self.repaired.get_or_create(&SourceLabels { source: source.clone() }));
            for ended in RolloutResult::ALL {
                let labels = RolloutLabels { source: source.clone(), outcome: ended.label() };
                drop(self.rollouts.get_or_create(&labels));
            }
        }
        for source in known.difference(&now) {
            self.repaired.remove(&SourceLabels { source: source.clone() });
            for ended in RolloutResult::ALL {
                let labels = RolloutLabels { source: source.clone(), outcome: ended.label() };
                self.rollouts.remove(&labels);
                self.rollout_seconds.remove(&labels);
            }
        }
        *known = now;
    }

    /// Returns all metrics as a text of [`MEDIA_TYPE`].
    ///
    /// Without a status there is no loop yet, and none of its metrics.
    pub(crate) fn text(&self, status: Option<&DaemonStatus>, process: &ProcessFacts<'_>) -> String {
        if let Some(status) = status {
            self.keep(status.sources.iter().map(|source| source.name.clone()).collect());
            process.endpoints.forget_all_but(&status.sources);
        }
        let mut registry = Registry::default();
        let version = vec![("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        registry.register("rhumb_build", "The program", Info::new(version));
        registry.register("rhumb_apply", "Writes and dry runs by action and outcome", self.writes.clone());
        let repaired = "Objects that somebody else had changed, and that were repaired";
        registry.register("rhumb_drift_repaired", repaired, self.repaired.clone());
        let rollouts = "Rollouts that ended, by outcome";
        registry.register("rhumb_rollouts", rollouts, self.rollouts.clone());
        let lengths = "Seconds from the first write of a rollout to its end";
        registry.register("rhumb_rollout_seconds", lengths, self.rollout_seconds.clone());
        self.calls.register(&mut registry);
        self.queue.register(workqueue_registry(&mut registry));
        register_heartbeats(&mut registry, process.heartbeats, process.now);
        let reloads = Family::<OutcomeLabels, Counter>::default();
        for (outcome, count) in [("taken", process.reloads.taken), ("refused", process.reloads.refused)] {
            reloads.get_or_create(&OutcomeLabels { outcome }).inc_by(count);
        }
        process.endpoints.register(&mut registry);
        registry.register("rhumb_config_reloads", "New configurations by outcome", reloads);
        if let Some(status) = status {
            register_gauges(&mut registry, status);
            register_ages(&mut registry, status);
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

/// Returns the registry for metrics of the workqueue, which carry its name as those of client-go
/// do.
fn workqueue_registry(registry: &mut Registry) -> &mut Registry {
    registry.sub_registry_with_label(("name".into(), "objects".into()))
}

/// Adds the age of each part's last heartbeat.
fn register_heartbeats(registry: &mut Registry, heartbeats: &[HeartbeatStatus], now: Instant) {
    let parts = Family::<PartLabels, Gauge<f64, AtomicU64>>::default();
    let late = Family::<PartLabels, IntegerGauge>::default();
    for heartbeat in heartbeats {
        let part = PartLabels { part: heartbeat.name.to_string() };
        parts.get_or_create(&part).set(now.saturating_duration_since(heartbeat.last).as_secs_f64());
        late.get_or_create(&part).set(heartbeat.is_late(now).into());
    }
    register_watches(registry, heartbeats, now);
    let since = "Seconds since the last heartbeat of each part";
    registry.register("rhumb_last_progress_seconds", since, parts);
    registry.register("rhumb_progress_late", "1 if the next heartbeat of the part is overdue", late);
}

/// Adds the age of each watch's last word from its server; of several over one kind, as of pods,
/// the oldest.
fn register_watches(registry: &mut Registry, heartbeats: &[HeartbeatStatus], now: Instant) {
    let watches = Family::<KindLabels, Gauge<f64, AtomicU64>>::default();
    for heartbeat in heartbeats {
        let Some(kind) = heartbeat.name.strip_prefix(WATCH_PREFIX) else { continue };
        let gauge = watches.get_or_create(&KindLabels { kind: kind.to_owned() });
        gauge.set(gauge.get().max(now.saturating_duration_since(heartbeat.last).as_secs_f64()));
    }
    registry.register(
        "rhumb_watch_age_seconds",
        "Seconds since each watch last heard of its server",
        watches,
    );
}

fn register_gauges(registry: &mut Registry, status: &DaemonStatus) {
    let mut gauge = |name: &str, help: &str, value: u64| {
        let gauge = IntegerGauge::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let (rollout, process) = (&status.rollout, &status.process);
    gauge(
        "rhumb_rollout_in_flight",
        "Slots of the budget that are taken, and one for each claim that cannot be read",
        rollout.workloads.used.into(),
    );
    gauge("rhumb_rollout_queue", "Workloads that wait to be rolled out", rollout.queue.len() as u64);
    gauge("rhumb_budget_workloads", "Workloads that may roll at a time", rollout.workloads.of.into());
    gauge(
        "rhumb_budget_window",
        "Workloads that may roll out at a time now: it grows with each success",
        rollout.window.into(),
    );
    let unavailable = "Pods that are unavailable, or may become so by running rollouts";
    gauge("rhumb_budget_pods_unavailable", unavailable, rollout.unavailable.used.into());
    let may = "Pods that may be unavailable at a time";
    gauge("rhumb_budget_pods_unavailable_max", may, rollout.unavailable.of.into());
    gauge("rhumb_budget_starts", "Rollouts that began in the last minute", rollout.starts.used.into());
    gauge("rhumb_budget_starts_max", "Rollouts that may begin in a minute", rollout.starts.of.into());
    let queue = workqueue_registry(registry);
    let depth = IntegerGauge::default();
    depth.set(process.queue as u64);
    queue.register("workqueue_depth", "Keys that wait to be taken, or are being processed", depth);
    let mut seconds = |name: &str, help: &str, value: f64| {
        let gauge: Gauge<f64, AtomicU64> = Gauge::default();
        gauge.set(value);
        queue.register(name, help, gauge);
    };
    let unfinished = "Seconds of all work in progress, in sum";
    seconds("workqueue_unfinished_work_seconds", unfinished, process.unfinished_seconds);
    let longest = "Seconds of the longest work in progress";
    seconds("workqueue_longest_running_processor_seconds", longest, process.longest_seconds);
    sources(registry, &status.sources);
}

/// Adds the age of each source's last successful check.
fn register_ages(registry: &mut Registry, status: &DaemonStatus) {
    let ages = Family::<SourceLabels, Gauge<f64, AtomicU64>>::default();
    for source in &status.sources {
        if let Some(at) = source.looked {
            let age = status.at.duration_since(at).as_secs_f64().max(0.0);
            ages.get_or_create(&SourceLabels { source: source.name.clone() }).set(age);
        }
    }
    let since = "Seconds since the newest state of each source was last observed successfully";
    registry.register("rhumb_source_age_seconds", since, ages);
}

fn sources(registry: &mut Registry, sources: &[SourceStatus]) {
    let objects = Family::<PhaseLabels, IntegerGauge>::default();
    let revisions = Family::<RevisionLabels, IntegerGauge>::default();
    let of = |value: &dyn Fn(&SourceStatus) -> u64| {
        let family = Family::<SourceLabels, IntegerGauge>::default();
        for source in sources {
            family.get_or_create(&SourceLabels { source: source.name.clone() }).set(value(source));
        }
        family
    };
    for source in sources {
        let count = |phase: Phase| source.objects.get(&phase).copied().unwrap_or(0) as u64;
        for phase in PHASES {
            let labels = PhaseLabels { source: source.name.clone(), phase: phase.to_string() };
            objects.get_or_create(&labels).set(count(phase));
        }
        if let Some(revision) = &source.revision {
            let labels = RevisionLabels { source: source.name.clone(), revision: revision.clone() };
            revisions.get_or_create(&labels).set(1);
        }
    }
    registry.register("rhumb_objects", "Objects of each source by phase", objects);
    registry.register("rhumb_source_revision_info", "The newest revision that was read; always 1", revisions);
    let complete = of(&|source| source.complete.into());
    registry.register("rhumb_source_complete", "1 if the newest state was read completely", complete);
    let findings = of(&|source| source.findings as u64);
    registry.register("rhumb_source_findings", "Findings in the files of each source", findings);
    let pending = of(&|source| source.prune_waiting as u64);
    registry.register("rhumb_prune_pending", "Pending deletions", pending);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use http::Method;
    use serde_json::json;

    use super::*;
    use crate::report::status_fixture::{daemon_status, source_status};
    use crate::report::{METRICS, MetricType, RequestRejection, WebhookOutcome};

    fn text(metrics: &Metrics) -> String {
        let (reloads, endpoints) = (ReloadCounts::default(), EndpointMetrics::default());
        metrics.text(
            None,
            &ProcessFacts { heartbeats: &[], now: Instant::now(), reloads, endpoints: &endpoints },
        )
    }

    #[test]
    fn that_the_program_runs_is_reported_before_its_loop_does() {
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
        metrics.record_rollout("shop", RolloutResult::Failed, Some(Duration::from_secs(9)));
        metrics.record_repair("shop");
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

    fn status(sources: &[&str]) -> DaemonStatus {
        let sources: Vec<_> = sources.iter().map(|name| source_status(name, &json!({}))).collect();
        daemon_status(&sources, &[])
    }

    #[test]
    fn sources_that_come_and_go_leave_no_series() {
        let (metrics, endpoints) = (Metrics::default(), EndpointMetrics::default());
        let text = |sources: Option<&[&str]>| {
            let process = ProcessFacts {
                heartbeats: &[],
                now: Instant::now(),
                reloads: ReloadCounts::default(),
                endpoints: &endpoints,
            };
            metrics.text(sources.map(status).as_ref(), &process)
        };
        let of = |name: &str, text: &str| text.lines().filter(|line| line.contains(name)).count();
        for source in ["shop", "branch-1"] {
            metrics.record_repair(source);
            metrics.record_rollout(source, RolloutResult::Failed, Some(Duration::from_secs(7)));
            endpoints.count_webhook(Some(source), WebhookOutcome::Taken);
        }
        endpoints.count_webhook(None, WebhookOutcome::Refused);
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
    /// Returns the names that a text of metrics shows, each with its type and help.
    fn described_metrics(text: &str) -> BTreeSet<(String, String, String)> {
        let of = |word: &str| -> Vec<(String, String)> {
            let rest = text.lines().filter_map(|line| line.strip_prefix(word)?.split_once(' '));
            rest.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect()
        };
        let types: BTreeMap<String, String> = of("# TYPE ").into_iter().collect();
        let helps = of("# HELP ").into_iter();
        helps
            .map(|(name, help)| (types[&name].clone(), name, help.trim_end_matches('.').to_owned()))
            .collect()
    }

    #[test]
    fn each_metric_is_described_as_it_is_shown() {
        let calls = CallMetrics::default();
        calls.record_call(&Method::GET, None, Duration::from_secs(1));
        calls.record_watch_restart("Pod");
        let metrics = Metrics::new(calls, queue::QueueMetrics::default());
        let endpoints = EndpointMetrics::default();
        endpoints.count_webhook(None, WebhookOutcome::Refused);
        endpoints.count_rejection(RequestRejection::Name);
        metrics.record_write("create", None);
        metrics.record_rollout("shop", RolloutResult::Failed, Some(Duration::from_secs(7)));
        let now = Instant::now();
        let name = format!("{WATCH_PREFIX}Pod").into();
        let watch = HeartbeatStatus { name, last: now, due: now };
        let process = ProcessFacts {
            heartbeats: &[watch],
            now,
            reloads: ReloadCounts::default(),
            endpoints: &endpoints,
        };
        let mut status = status(&["shop"]);
        status.sources[0].revision = Some("1a2b".to_owned());
        status.sources[0].looked = Some(status.at);
        let text = metrics.text(Some(&status), &process);
        let described: BTreeSet<(String, String, String)> = METRICS
            .iter()
            .map(|metric| {
                let (kind, end) = match metric.kind {
                    MetricType::Counter => ("counter", "_total"),
                    MetricType::Gauge => ("gauge", ""),
                    MetricType::Histogram => ("histogram", ""),
                    MetricType::Info => ("info", "_info"),
                };
                let name = metric.name.strip_suffix(end).unwrap();
                (kind.to_owned(), name.to_owned(), metric.help.to_owned())
            })
            .collect();
        assert_eq!(described_metrics(&text), described, "{text}");
        for metric in METRICS {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let mut lines = lines.filter(|line| line.starts_with(metric.name));
            let line =
                lines.find(|line| !line[metric.name.len()..].starts_with('_') || line.contains("_count"));
            let line = line.unwrap_or_else(|| panic!("{} has no sample in\n{text}", metric.name));
            for label in metric.labels {
                assert!(line.contains(&format!("{label}=\"")), "{line}: {label}");
            }
            assert_eq!(line.matches("=\"").count(), metric.labels.len(), "{line}");
        }
    }
}
