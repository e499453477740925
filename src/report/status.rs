//! The status: the revision of each source, its objects by phase, and the reasons of those that are
//! not settled.
//!
//! The socket, the terminal and the page use the same schema. Its fields are camel-cased and
//! versioned by [`STATUS_VERSION`]. Within a version fields may be added. None is removed or
//! changes its meaning.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::object_statuses::RefusedObjects;
use super::{Metrics, ObjectRef, Phase};
use crate::engine::{
    Authorship, OnFailure, OptOutPolicy, PruneDecision, Reason, SourceId, SourceWrites, View,
};
use crate::object::{Diagnostic, ObjectId, Revision};
use crate::render::{CodedReason, describe_contest};

/// The version of the schema.
pub(crate) const STATUS_VERSION: &str = "status.rhumb.dev/v1";

/// The maximum number of commits shown of a source.
const MAX_SHOWN_COMMITS: usize = 10;

/// The maximum number of findings of each source, and of bytes of each: a broken file may have
/// thousands.
const MAX_SHOWN_FINDINGS: usize = 5;
const MAX_FINDING_BYTES: usize = 300;

/// The status of a running reconciler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DaemonStatus {
    /// [`STATUS_VERSION`].
    pub api_version: String,
    /// `DaemonStatus`.
    pub kind: String,
    /// The time of the status.
    pub at: Timestamp,
    /// The process.
    pub process: ProcessStatus,
    /// Its sources, in the order of the configuration.
    pub sources: Vec<SourceStatus>,
    /// The rollout budget of the cluster.
    pub rollout: RolloutStatus,
    /// The records of sources that cannot be read, each with the command that mends it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// The process that answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProcessStatus {
    /// The program's version.
    pub version: String,
    /// The time since which its loop runs.
    pub since: Timestamp,
    /// The time of the next resync, at the latest.
    pub next_resync: Timestamp,
    /// The number of objects that are ready in the workqueue.
    pub queue: usize,
    /// The sum of the processing times of all keys in process, in seconds.
    pub unfinished_seconds: f64,
    /// The longest of these processing times, in seconds.
    pub longest_seconds: f64,
    /// The time since which the API server has not answered; none while it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_silent_since: Option<Timestamp>,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceStatus {
    /// Its name.
    pub name: String,
    /// The location without credentials.
    pub location: String,
    /// The newest revision that was read; none before the first read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The revision's author, where it is a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The first line of the revision's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The time at which this process first read the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The time of the last successful check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked: Option<Timestamp>,
    /// The newest commits that changed its manifests, the newest first.
    #[serde(default)]
    pub changes: Vec<CommitStatus>,
    /// Objects that somebody else changed and that were repaired, since the process began.
    #[serde(default)]
    pub drift_repaired: u64,
    /// Indicates whether its newest state was read completely: nothing is pruned otherwise.
    pub complete: bool,
    /// The reason where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// The reason for which its inventory cannot be read or written before a person does something.
    #[serde(skip)]
    pub barred: Option<String>,
    /// Indicates whether it is only observed, and never written.
    pub observed: bool,
    /// Indicates whether what others put on its live objects has an effect.
    #[serde(skip)]
    pub opt_out: OptOutPolicy,
    /// Indicates whether all of it is applied and healthy.
    pub healthy: bool,
    /// The reason of a pause by a person; empty where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// The number of objects in each phase; phases without any are left out.
    pub objects: BTreeMap<Phase, usize>,
    /// Findings in its files.
    pub findings: usize,
    /// The first of them, each as `file:line: message`: errors before warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_findings: Vec<String>,
    /// Pending deletions.
    pub prune_waiting: usize,
    /// The reason for which nothing at all is pruned, where a person has to do something about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<String>,
    /// The kinds and namespaces of its inventory that nobody lists any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwatched: Option<String>,
}

/// The author of a commit, and its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommitStatus {
    /// The commit.
    pub revision: String,
    /// The name of its author.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
}

/// The rollout budget, and the workloads that roll out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RolloutStatus {
    /// Indicates whether the rollout ledger has been read: none before.
    pub known: bool,
    /// The command that repairs the rollout ledger. No rollout begins before a person has run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Workloads in flight.
    pub workloads: BoundUsage,
    /// Pods that are unavailable, or may become so by running rollouts.
    pub unavailable: BoundUsage,
    /// Rollouts that began in the last minute.
    pub starts: BoundUsage,
    /// The number of workloads that may roll out at a time now: it grows by each success.
    pub window: u32,
    /// The action after a failure: `rollback` or `quarantine`.
    pub on_failure: String,
    /// The rollouts.
    pub rolling: Vec<WorkloadRolloutStatus>,
    /// The rollout queue, in its order: objects that wait for the budget, or for something else
    /// before.
    pub queue: Vec<QueuedWorkloadStatus>,
}

/// The use of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoundUsage {
    /// The number in use.
    pub used: u32,
    /// The bound.
    pub of: u32,
}

/// One workload that rolls out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadRolloutStatus {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Its source; none where another daemon has claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The process that has claimed it, where that is another: `source shop, process 12 on host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Pods that it asks for.
    pub replicas: u32,
    /// Pods of the newest template.
    pub updated: u32,
    /// Pods that are available.
    pub available: u32,
    /// Its pods that count against the budget.
    pub unavailable: u32,
    /// The requirement of its step, where it is held at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

impl WorkloadRolloutStatus {
    /// Returns whether its pods are known. Nobody here looks at a workload of another process.
    pub(crate) fn has_numbers(&self) -> bool {
        self.holder.is_none() || self.replicas + self.updated + self.available > 0
    }
}

/// One workload that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuedWorkloadStatus {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Its position among those that wait for the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The reason for its wait.
    pub reason: String,
    /// The same for machines.
    #[serde(flatten)]
    pub coded: CodedReason,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectStatus {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// The source that wants it, or that has it in its inventory.
    pub source: String,
    /// Its phase.
    pub phase: Phase,
    /// The reason for which it is not settled: of an applied object the message of its controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for machines; empty where the reason is the message of its controller.
    #[serde(flatten)]
    pub coded: CodedReason,
    /// The revision that brought what it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The place of its manifest, for example `deploy/web.yaml:3`; none where no source wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Its wave.
    #[serde(default)]
    pub wave: i32,
}

/// The times of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceTimes {
    /// The time at which this process first read its revision.
    pub since: Option<Timestamp>,
    /// The time of the last successful check.
    pub checked: Option<Timestamp>,
}

/// The facts of the loop that the engine does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusContext<'a> {
    /// The reasons of objects that are not applied.
    pub open: &'a BTreeMap<ObjectId, Reason>,
    /// The locations of the sources.
    pub locations: &'a [String],
    /// The reasons for which inventories cannot be known before a person does something.
    pub troubles: &'a [Option<String>],
    /// The remedy for a rollout ledger that cannot be read.
    pub budget: Option<&'a str>,
    /// The records of sources that cannot be read, each with its remedy.
    pub unreadable: &'a [String],
    /// The times of the sources.
    pub times: &'a [SourceTimes],
    /// The metrics.
    pub metrics: &'a Metrics,
    /// The time since which the loop runs.
    pub since: Timestamp,
    /// The time of the next resync.
    pub next_resync: Timestamp,
    /// Objects in the workqueue.
    pub queue: usize,
    /// The processing times of the objects in process: their sum, and the longest.
    pub unfinished: (Duration, Duration),
    /// Now.
    pub now: (std::time::Instant, Timestamp),
}

/// Returns the status of the daemon.
pub(crate) fn status(engine: View<'_>, context: &StatusContext<'_>) -> DaemonStatus {
    let mut counts: Vec<BTreeMap<Phase, usize>> = vec![BTreeMap::new(); engine.sources().len()];
    let refused = RefusedObjects::of(engine);
    for object in refused.reported_objects(engine, context) {
        *counts[object.source].entry(object.phase).or_default() += 1;
    }
    let sources = engine.source_ids().zip(counts);
    DaemonStatus {
        api_version: STATUS_VERSION.to_owned(),
        kind: "Status".to_owned(),
        at: context.now.1,
        process: ProcessStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since: context.since,
            next_resync: context.next_resync,
            queue: context.queue,
            unfinished_seconds: context.unfinished.0.as_secs_f64(),
            longest_seconds: context.unfinished.1.as_secs_f64(),
            server_silent_since: context.metrics.server_silent_since(context.now.1),
        },
        sources: sources.map(|(number, counts)| source(engine, context, number, counts)).collect(),
        rollout: rollout_status(engine, context),
        unreadable: context.unreadable.to_vec(),
    }
}

fn source(
    engine: View<'_>,
    context: &StatusContext<'_>,
    number: SourceId,
    objects: BTreeMap<Phase, usize>,
) -> SourceStatus {
    let source = engine.source(number);
    let source_error = context.troubles.get(number.position()).cloned().flatten();
    let incomplete =
        source_error.clone().or_else(|| source.incomplete_reason.as_ref().map(ToString::to_string));
    let waiting =
        engine.prune_decisions(number).filter(|(_, decision)| matches!(decision, PruneDecision::Confirm(_)));
    let times = context.times.get(number.position()).copied().unwrap_or_default();
    let authored = source.head.as_ref().and_then(|head| engine.author(number, head));
    let paused = source.inventory.as_ref().and_then(|inventory| inventory.paused.as_ref());
    let mut findings = source.diagnostics();
    findings.extend(engine.contested_manifests(number).map(|(_, manifest)| describe_contest(&manifest)));
    let is_well = incomplete.is_none() && !findings.iter().any(Diagnostic::is_error);
    SourceStatus {
        name: source.declared.name.to_string(),
        location: context.locations.get(number.position()).cloned().unwrap_or_default(),
        revision: source.head.as_ref().map(ToString::to_string),
        author: authored.map(|authored| authored.author.clone()),
        subject: authored.map(|authored| authored.subject.clone()),
        since: times.since,
        looked: times.checked,
        changes: engine
            .commits_of(number)
            .into_iter()
            .take(MAX_SHOWN_COMMITS)
            .map(|(revision, authored)| commit_status(&revision, authored))
            .collect(),
        drift_repaired: context.metrics.repairs_of(&source.declared.name),
        complete: incomplete.is_none(),
        observed: source.declared.writes == SourceWrites::Observed,
        opt_out: source.declared.opt_out,
        healthy: is_well && objects.keys().all(|phase| phase.is_well()),
        incomplete,
        barred: source_error,
        paused: paused.map(|paused| paused.reason.to_string()),
        objects,
        findings: findings.len(),
        first_findings: first_findings(&findings),
        prune_waiting: waiting.count(),
        unlisted: engine.unlisted_reason(number).map(|why| why.to_string()),
        unwatched: engine.unwatched_namespaces(number).map(|namespaces| namespaces.to_string()),
    }
}

/// Returns the first findings, errors before warnings, so that the status alone explains them.
fn first_findings(findings: &[Diagnostic]) -> Vec<String> {
    let mut order: Vec<&Diagnostic> = findings.iter().collect();
    order.sort_by_key(|finding| !finding.is_error());
    let words = |finding: &&Diagnostic| {
        let Diagnostic { origin, severity, message, .. } = finding;
        let text = format!("{origin}: {severity}: {message}");
        text.get(..text.floor_char_boundary(MAX_FINDING_BYTES)).unwrap_or_default().to_owned()
    };
    order.iter().take(MAX_SHOWN_FINDINGS).map(words).collect()
}

fn commit_status(revision: &Revision, authored: Authorship) -> CommitStatus {
    CommitStatus { revision: revision.to_string(), author: authored.author, subject: authored.subject }
}

fn rollout_status(engine: View<'_>, context: &StatusContext<'_>) -> RolloutStatus {
    let usage = engine.usage();
    let steps = engine.held_steps(context.now.0);
    let share = |(used, of)| BoundUsage { used, of };
    let rolling = engine.rolling_workloads().into_iter().map(|load| {
        let numbers =
            engine.informer_object(&load.id).and_then(|live| live.replica_status).unwrap_or_default();
        WorkloadRolloutStatus {
            object: ObjectRef::of(&load.id),
            source: load.source.map(|source| engine.source(source).declared.name.to_string()),
            holder: engine.other_holder(&load.id).map(|holder| holder.to_string()),
            replicas: numbers.replicas,
            // Right after it was scaled down, more than are asked for have the newest template.
            updated: numbers.updated.min(numbers.replicas),
            available: numbers.available,
            unavailable: load.unavailable,
            step: steps.get(&load.id).map(ToString::to_string),
        }
    });
    let queue = engine.queue_with_reasons().into_iter().map(|(queued, reason)| QueuedWorkloadStatus {
        object: ObjectRef::of(&queued.id),
        position: queued.position.map(|(position, _)| position),
        reason: queued.reason.to_string(),
        coded: CodedReason::of(&reason),
    });
    RolloutStatus {
        known: usage.known,
        unreadable: context.budget.map(str::to_owned),
        workloads: share(usage.workloads),
        unavailable: share(usage.unavailable),
        starts: share(usage.starts),
        window: usage.window,
        on_failure: if usage.on_failure == OnFailure::Quarantine { "quarantine" } else { "rollback" }
            .to_owned(),
        rolling: rolling.collect(),
        queue: queue.collect(),
    }
}
