//! Owns the descriptions of everything that is reported: phases, events, conditions and metrics.
//!
//! `docs/reference/` is generated from these tables.
//!
//! **Invariant:** does no I/O, and decides nothing.

use super::{EventReason, Phase};

impl Phase {
    /// Returns the description of the phase, as Markdown in full sentences.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Settled => "The object is applied and healthy.",
            Self::Progressing => "The object is applied, and its controller is still working on it.",
            Self::Failed => "The object is applied, and its controller gave up.",
            Self::RollingOut => "The pods of the workload are being replaced.",
            Self::Waiting => "A change is pending. The reason says what it waits for.",
            Self::Refused => {
                "The object cannot be applied until somebody changes the manifest, the cluster or the configuration."
            }
            Self::RolledBack => "The desired content failed, and the object is back at its last good one.",
            Self::Quarantined => "The desired content failed, and the object stays as it is.",
            Self::Held => "Somebody holds the object with `rhumb hold`. Drift is shown and not repaired.",
            Self::Paused => "Somebody paused the object or its source.",
            Self::PruneWaiting => "No source wants the object any more, and its deletion is pending.",
            Self::LeftAlone => "The manifest asks to leave the object alone.",
            Self::OptedOut => "An annotation on the live object keeps rhumb away from it.",
        }
    }
}

impl EventReason {
    /// Returns the description of the event, as Markdown in full sentences.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::RevisionRead => "Another revision of the source was read.",
            Self::RevisionSettled => "Everything that the revision asks for is applied and healthy.",
            Self::SourceIncomplete => {
                "The newest state of the source could not be read completely. Nothing is pruned until it can."
            }
            Self::RecordUnreadable => {
                "One of rhumb's own records in its namespace cannot be read until somebody repairs it."
            }
            Self::RolloutStarted => "The pods of a workload are being replaced.",
            Self::RolloutSucceeded => "The pods are replaced, and healthy.",
            Self::RolloutFailed => "The new pods do not become healthy.",
            Self::RolledBack => "A failed unit was put back to its last good content.",
            Self::DriftRepaired => {
                "A change by somebody else was undone. The message names the field manager and the fields."
            }
            Self::PruneWaiting => "Deletions wait for a confirmation.",
            Self::Conflict => "Somebody else owns, or changes again and again, what the source wants.",
            Self::OptedOut => "An annotation on the live object keeps rhumb away from it.",
            Self::OptOutEnded => "That annotation is gone.",
            Self::Refused => "A desired object is refused until somebody changes something.",
            Self::Created => "The object was created.",
            Self::Configured => "The object was changed.",
            Self::Adopted => "The object was taken over. The message names the owner before.",
            Self::Pruned => "An object that no source wants any more was deleted.",
            Self::Recreated => "The object was deleted, to be created again.",
            Self::OrderDone => {
                "An order was carried out, or there was nothing to do. The message names who gave it."
            }
            Self::OrderIgnored => "An order is not valid, or is where none is obeyed.",
        }
    }

    /// Returns whether it is about a source as a whole, and never about one object.
    pub(crate) const fn is_about_source(self) -> bool {
        matches!(
            self,
            Self::RevisionRead
                | Self::RevisionSettled
                | Self::SourceIncomplete
                | Self::RecordUnreadable
                | Self::PruneWaiting
        )
    }

    /// Returns whether it is in the log and in `rhumb events` alone, without a Kubernetes Event.
    pub(crate) const fn is_logged_only(self) -> bool {
        matches!(self, Self::Created | Self::Configured | Self::Pruned | Self::Recreated)
    }
}

/// A reason of the condition that is true.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConditionReason {
    /// `Ready`, `Reconciling` or `Stalled`.
    pub condition: &'static str,
    /// The reason word.
    pub reason: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

const fn reason(condition: &'static str, reason: &'static str, meaning: &'static str) -> ConditionReason {
    ConditionReason { condition, reason, meaning }
}

/// The conditions of an object of kind `Source`, with their reasons.
pub(crate) const CONDITION_REASONS: [ConditionReason; 17] = [
    reason("Ready", "Settled", "Everything is applied and healthy."),
    reason(
        "Ready",
        "PruneWaiting",
        "Everything wanted is healthy. Deletions wait for a confirmation, and the message has its command; or a kind cannot be listed.",
    ),
    reason("Reconciling", "Starting", "The source has not been read yet."),
    reason("Reconciling", "Progressing", "Changes are under way."),
    reason("Reconciling", "SourceIncomplete", "The newest state could not be read completely."),
    reason(
        "Reconciling",
        "Deleting",
        "The Source was deleted, and its objects are being deleted. The message names one that is left.",
    ),
    reason("Stalled", "ObjectsFailed", "Objects are `Failed`, `Refused`, `RolledBack` or `Quarantined`."),
    reason(
        "Stalled",
        "InventoryUnread",
        "The ConfigMap of the source cannot be read or written until somebody repairs it.",
    ),
    reason(
        "Stalled",
        "InventoryLost",
        "The Source was deleted, and the inventory that named its objects is gone.",
    ),
    reason("Stalled", "PruneWaiting", "The Source was deleted, and deletions wait for a confirmation."),
    reason("Stalled", "Held", "Objects are on hold, and nothing else is in progress."),
    reason("Stalled", "Paused", "Objects or the source are paused, and nothing else is in progress."),
    reason(
        "Stalled",
        "OptedOut",
        "Annotations on live objects keep rhumb away, and nothing else is in progress.",
    ),
    reason("Stalled", "Invalid", "The spec is not valid; the message says why."),
    reason("Stalled", "NameTaken", "A source of the configuration file has that name."),
    reason("Stalled", "Failed", "The source cannot be followed; the message says why."),
    reason(
        "Stalled",
        "FinalizerRefused",
        "The finalizer cannot be set, which takes the right to patch `sources`.",
    ),
];

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricType {
    /// It only rises.
    Counter,
    /// It rises and falls.
    Gauge,
    /// It counts observations in buckets.
    Histogram,
    /// It is always 1, and its labels have the information.
    Info,
}

/// The description of a metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricDescriptor {
    /// The name as Prometheus shows it; of a histogram without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricType,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// The measured quantity.
    pub help: &'static str,
}

const fn metric_descriptor(
    name: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricDescriptor {
    MetricDescriptor { name, kind, labels, help }
}

/// All metrics, in the order in which the reference lists them.
pub(crate) const METRICS: [MetricDescriptor; 35] = [
    metric_descriptor("rhumb_build_info", MetricType::Info, &["version"], "The program"),
    metric_descriptor(
        "rhumb_apply_total",
        MetricType::Counter,
        &["action", "class"],
        "Writes and dry runs by action and outcome",
    ),
    metric_descriptor(
        "rhumb_drift_repaired_total",
        MetricType::Counter,
        &["source"],
        "Objects that somebody else had changed, and that were repaired",
    ),
    metric_descriptor(
        "rhumb_rollouts_total",
        MetricType::Counter,
        &["source", "outcome"],
        "Rollouts that ended, by outcome",
    ),
    metric_descriptor(
        "rhumb_rollout_seconds",
        MetricType::Histogram,
        &["source", "outcome"],
        "Seconds from the first write of a rollout to its end",
    ),
    metric_descriptor(
        "rhumb_rollout_in_flight",
        MetricType::Gauge,
        &[],
        "Slots of the budget that are taken, and one for each claim that cannot be read",
    ),
    metric_descriptor("rhumb_rollout_queue", MetricType::Gauge, &[], "Workloads that wait to be rolled out"),
    metric_descriptor("rhumb_budget_workloads", MetricType::Gauge, &[], "Workloads that may roll at a time"),
    metric_descriptor(
        "rhumb_budget_window",
        MetricType::Gauge,
        &[],
        "Workloads that may roll out at a time now: it grows with each success",
    ),
    metric_descriptor(
        "rhumb_budget_pods_unavailable",
        MetricType::Gauge,
        &[],
        "Pods that are unavailable, or may become so by running rollouts",
    ),
    metric_descriptor(
        "rhumb_budget_pods_unavailable_max",
        MetricType::Gauge,
        &[],
        "Pods that may be unavailable at a time",
    ),
    metric_descriptor(
        "rhumb_budget_starts",
        MetricType::Gauge,
        &[],
        "Rollouts that began in the last minute",
    ),
    metric_descriptor(
        "rhumb_budget_starts_max",
        MetricType::Gauge,
        &[],
        "Rollouts that may begin in a minute",
    ),
    metric_descriptor(
        "rhumb_objects",
        MetricType::Gauge,
        &["source", "phase"],
        "Objects of each source by phase",
    ),
    metric_descriptor(
        "rhumb_source_revision_info",
        MetricType::Gauge,
        &["source", "revision"],
        "The newest revision that was read; always 1",
    ),
    metric_descriptor(
        "rhumb_source_complete",
        MetricType::Gauge,
        &["source"],
        "1 if the newest state was read completely",
    ),
    metric_descriptor(
        "rhumb_source_findings",
        MetricType::Gauge,
        &["source"],
        "Findings in the files of each source",
    ),
    metric_descriptor(
        "rhumb_source_age_seconds",
        MetricType::Gauge,
        &["source"],
        "Seconds since the newest state of each source was last observed successfully",
    ),
    metric_descriptor("rhumb_prune_pending", MetricType::Gauge, &["source"], "Pending deletions"),
    metric_descriptor(
        "rhumb_api_requests_total",
        MetricType::Counter,
        &["verb", "code"],
        "Calls to the API server by HTTP method and status code",
    ),
    metric_descriptor(
        "rhumb_api_request_seconds",
        MetricType::Histogram,
        &["verb"],
        "Seconds until the whole answer of a call was there",
    ),
    metric_descriptor(
        "rhumb_watch_restarts_total",
        MetricType::Counter,
        &["kind"],
        "Watches that ended and were begun again",
    ),
    metric_descriptor(
        "rhumb_watch_age_seconds",
        MetricType::Gauge,
        &["kind"],
        "Seconds since each watch last heard of its server",
    ),
    metric_descriptor(
        "rhumb_last_progress_seconds",
        MetricType::Gauge,
        &["part"],
        "Seconds since the last heartbeat of each part",
    ),
    metric_descriptor(
        "rhumb_progress_late",
        MetricType::Gauge,
        &["part"],
        "1 if the next heartbeat of the part is overdue",
    ),
    metric_descriptor(
        "rhumb_config_reloads_total",
        MetricType::Counter,
        &["outcome"],
        "New configurations by outcome",
    ),
    metric_descriptor(
        "rhumb_http_refused_total",
        MetricType::Counter,
        &["why"],
        "Requests and connections over HTTP that were not answered",
    ),
    metric_descriptor(
        "rhumb_webhooks_total",
        MetricType::Counter,
        &["source", "outcome"],
        "Webhooks by outcome",
    ),
    metric_descriptor(
        "workqueue_depth",
        MetricType::Gauge,
        &["name"],
        "Keys that wait to be taken, or are being processed",
    ),
    metric_descriptor("workqueue_adds_total", MetricType::Counter, &["name"], "Keys that were added"),
    metric_descriptor(
        "workqueue_retries_total",
        MetricType::Counter,
        &["name"],
        "Keys that came back after a failure",
    ),
    metric_descriptor(
        "workqueue_queue_duration_seconds",
        MetricType::Histogram,
        &["name"],
        "Seconds that a key waited until it was taken",
    ),
    metric_descriptor(
        "workqueue_work_duration_seconds",
        MetricType::Histogram,
        &["name"],
        "Seconds that the processing of a key took",
    ),
    metric_descriptor(
        "workqueue_unfinished_work_seconds",
        MetricType::Gauge,
        &["name"],
        "Seconds of all work in progress, in sum",
    ),
    metric_descriptor(
        "workqueue_longest_running_processor_seconds",
        MetricType::Gauge,
        &["name"],
        "Seconds of the longest work in progress",
    ),
];
