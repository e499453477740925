//! From the server's JSON text to the few facts of pods, their workload and its revisions.
//!
//! Decoding is total, as in `wire`; what is not looked at, as the environment of a pod, is skipped
//! and never copied. Of a template its hash is kept. Of a container's last words only its exit code
//! and reason are reported: its output may hold anything.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::wire::{DecodedObject, WireDecoder, WireText, lenient, lenient_part};
use crate::engine::{Readiness, ResourceVersion, Uid, grace_period};
use crate::object::{ContentHash, GroupKind, ObjectId};

/// The characters to which messages are cut.
const MAX_POD_MESSAGE_CHARS: usize = 400;

/// The decoder of records of one type.
pub(super) struct RecordDecoder<R> {
    kind: GroupKind,
    record: PhantomData<fn() -> R>,
}

impl<R> RecordDecoder<R> {
    /// Returns a decoder for a kind.
    pub(super) fn new(kind: GroupKind) -> Self {
        Self { kind, record: PhantomData }
    }
}

impl<R> Clone for RecordDecoder<R> {
    fn clone(&self) -> Self {
        Self::new(self.kind.clone())
    }
}

/// A record that is made from an object.
pub(super) trait PodsRecord: Sized + Send + 'static {
    /// Reads the object.
    fn of(parts: &ObjectText<'_>) -> Self;
}

impl<R: PodsRecord> WireDecoder for RecordDecoder<R> {
    type Record = R;

    fn decode(&self, text: &str) -> Option<DecodedObject<R>> {
        let parts: ObjectText<'_> = serde_json::from_str(text).ok()?;
        let head = &parts.metadata;
        let namespace = (!head.namespace.0.is_empty()).then_some(&*head.namespace.0);
        let named = !head.name.0.is_empty();
        let id = named.then(|| ObjectId::new(&self.kind, namespace, &head.name.0))?;
        Some(DecodedObject { id, rv: ResourceVersion::read(&head.resource_version.0), record: R::of(&parts) })
    }
}

/// The parts of an object that are looked at.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ObjectText<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    metadata: PodMetadata<'a>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    /// The revision number of a `ControllerRevision`.
    #[serde(deserialize_with = "lenient")]
    revision: u64,
    /// The patch by which a `ControllerRevision` makes its workload.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodMetadata<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    namespace: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    uid: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    resource_version: WireText<'a>,
    #[serde(deserialize_with = "lenient")]
    generation: i64,
    #[serde(borrow, deserialize_with = "lenient")]
    creation_timestamp: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    deletion_timestamp: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    labels: PodLabels<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    annotations: PodLabels<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    owner_references: Vec<OwnerText<'a>>,
}

/// The labels and annotations that are looked at.
#[derive(Deserialize, Default)]
#[serde(default)]
struct PodLabels<'a> {
    #[serde(borrow, rename = "pod-template-hash", deserialize_with = "lenient")]
    template_hash: WireText<'a>,
    #[serde(borrow, rename = "controller-revision-hash", deserialize_with = "lenient")]
    revision_hash: WireText<'a>,
    #[serde(borrow, rename = "deployment.kubernetes.io/revision", deserialize_with = "lenient")]
    deployment_revision: WireText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OwnerText<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    uid: WireText<'a>,
    #[serde(deserialize_with = "lenient")]
    controller: bool,
}

impl PodMetadata<'_> {
    fn uid(&self) -> Uid {
        Uid((&*self.uid.0).into())
    }

    fn owner(&self) -> Option<Uid> {
        let owner = self.owner_references.iter().find(|owner| owner.controller)?;
        Some(Uid((&*owner.uid.0).into()))
    }
}

/// A condition of a status, of whatever kind.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(in crate::cluster) struct Condition<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "lenient")]
    kind: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    status: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    reason: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    message: WireText<'a>,
    #[serde(borrow, rename = "lastTransitionTime", deserialize_with = "lenient")]
    since: WireText<'a>,
}

/// Returns the condition that has this status.
pub(in crate::cluster) fn find_condition<'a>(
    all: &'a [Condition<'_>],
    kind: &str,
    status: &str,
) -> Option<&'a Condition<'a>> {
    all.iter().find(|one| one.kind.0 == kind && one.status.0 == status)
}

/// One pod, without the facts that only time shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PodRecord {
    pub(super) uid: Uid,
    pub(super) rv: ResourceVersion,
    pub(super) owner: Option<Uid>,
    /// The revision of a pod that a StatefulSet or a DaemonSet owns.
    pub(super) revision: Option<Arc<str>>,
    /// Seconds since 1970, by the server's clock.
    pub(super) created: i64,
    pub(super) node: Option<Arc<str>>,
    pub(super) ready: Readiness,
    /// The time since which it is Ready, in the kubelet's words; empty while it is not.
    pub(super) ready_at: Arc<str>,
    pub(super) restarts: u32,
    pub(super) restarted: Option<Arc<str>>,
    /// Container, reason, message.
    pub(super) container_failure: Option<[Arc<str>; 3]>,
    /// Reason and message.
    pub(super) failed: Option<[Arc<str>; 2]>,
    pub(super) has_ended: bool,
    pub(super) terminating: bool,
    /// The scheduler's message.
    pub(super) unschedulable: Option<Arc<str>>,
    /// The reason for which it is not Ready, in words.
    pub(super) unready: Option<Arc<str>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    node_name: WireText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    phase: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    reason: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    message: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    conditions: Vec<Condition<'a>>,
    #[serde(borrow, deserialize_with = "lenient")]
    init_container_statuses: Vec<ContainerText<'a>>,
    #[serde(borrow, deserialize_with = "lenient")]
    container_statuses: Vec<ContainerText<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ContainerText<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
    #[serde(deserialize_with = "lenient")]
    ready: bool,
    #[serde(deserialize_with = "lenient")]
    restart_count: u32,
    #[serde(borrow, deserialize_with = "lenient")]
    state: ContainerState<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    last_state: ContainerState<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ContainerState<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    waiting: ContainerStateWaiting<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    terminated: Option<ContainerStateTerminated<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ContainerStateWaiting<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    reason: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    message: WireText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStateTerminated<'a> {
    #[serde(deserialize_with = "lenient")]
    exit_code: i64,
    #[serde(borrow, deserialize_with = "lenient")]
    reason: WireText<'a>,
}

impl ContainerStateTerminated<'_> {
    fn message(&self) -> String {
        let reason = if self.reason.0.is_empty() { String::new() } else { format!(" ({})", self.reason.0) };
        format!("exited with code {}{reason}", self.exit_code)
    }
}

impl ContainerText<'_> {
    /// Returns what it does instead of being ready.
    fn unready_text(&self) -> String {
        let waiting = &self.state.waiting;
        let now = match &self.state.terminated {
            Some(end) => end.message(),
            None if waiting.reason.0.is_empty() => "is running but not ready".to_owned(),
            None if waiting.message.0.is_empty() => format!("is in {}", waiting.reason.0),
            None => format!("is in {}: {}", waiting.reason.0, waiting.message.0),
        };
        let before = self.last_state.terminated.as_ref();
        let before = before.map(|end| format!("; before that it {}", end.message())).unwrap_or_default();
        format!("container {} {now}{before}", self.name.0)
    }
}

impl PodStatus<'_> {
    fn containers(&self) -> impl Iterator<Item = &ContainerText<'_>> {
        self.init_container_statuses.iter().chain(&self.container_statuses)
    }

    /// Returns the container that is worst off.
    fn worst_container(&self) -> Option<[Arc<str>; 3]> {
        let troubled = self.containers().filter_map(|container| {
            let waiting = &container.state.waiting;
            Some((grace_period(&waiting.reason.0, &waiting.message.0)?, container))
        });
        let (_, container) = troubled.min_by_key(|(grace, _): &(Duration, _)| *grace)?;
        let waiting = &container.state.waiting;
        let last = container.last_state.terminated.as_ref().map(|last| format!("it {}", last.message()));
        let waiting_message = (!waiting.message.0.is_empty()).then(|| waiting.message.0.to_string());
        let message: Vec<String> = waiting_message.into_iter().chain(last).collect();
        Some([&*container.name.0, &*waiting.reason.0, &*message.join("; ")].map(bounded_text))
    }

    /// Returns why the pod is not Ready.
    fn unready_text(&self) -> Arc<str> {
        let condition = |kind| find_condition(&self.conditions, kind, "False").map(|one| &*one.message.0);
        let waits = |message: &str| if message.is_empty() { String::new() } else { format!(": {message}") };
        let unready = self.containers().find(|container| !container.ready);
        let text = match (condition("PodScheduled"), unready, condition("Ready")) {
            (Some(message), ..) => format!("it is not scheduled{}", waits(message)),
            (None, Some(container), _) => container.unready_text(),
            // Its readiness gates are others' to open.
            (None, None, Some(message)) => format!("it is not ready{}", waits(message)),
            (None, None, None) => "it has not started yet".to_owned(),
        };
        bounded_text(&text)
    }

    fn failure(&self) -> Option<[Arc<str>; 2]> {
        if self.phase.0 != "Failed" {
            return None;
        }
        let reason = if self.reason.0.is_empty() { "Failed" } else { &*self.reason.0 };
        let mut ended = self.containers().filter_map(|one| Some((one, one.state.terminated.as_ref()?)));
        let message = match ended.find(|(_, end)| end.exit_code != 0) {
            Some((container, end)) if self.message.0.is_empty() => {
                bounded_text(&format!("container {} {}", container.name.0, end.message()))
            }
            _ => bounded_text(&self.message.0),
        };
        Some([bounded_text(reason), message])
    }
}

impl PodsRecord for PodRecord {
    fn of(parts: &ObjectText<'_>) -> Self {
        let head = &parts.metadata;
        let spec: PodSpec<'_> = lenient_part(parts.spec);
        let status: PodStatus<'_> = lenient_part(parts.status);
        let terminating = !head.deletion_timestamp.0.is_empty();
        let has_ended = matches!(&*status.phase.0, "Succeeded" | "Failed");
        let ready =
            find_condition(&status.conditions, "Ready", "True").filter(|_| !terminating && !has_ended);
        let worst = status.containers().max_by_key(|container| container.restart_count);
        let worst = worst.filter(|container| container.restart_count > 0);
        let unschedulable = find_condition(&status.conditions, "PodScheduled", "False");
        Self {
            uid: head.uid(),
            rv: ResourceVersion::read(&head.resource_version.0),
            owner: head.owner(),
            revision: non_empty(&head.labels.revision_hash),
            created: unix_seconds(&head.creation_timestamp.0),
            node: non_empty(&spec.node_name),
            ready: if ready.is_some() { Readiness::Ready } else { Readiness::NotReady },
            ready_at: ready.map_or_else(|| "".into(), |ready| (&*ready.since.0).into()),
            restarts: worst.map_or(0, |container| container.restart_count),
            restarted: worst.map(|container| bounded_text(&container.name.0)),
            container_failure: status.worst_container(),
            // A kubelet also calls a pod Failed that it ends because somebody deleted it.
            failed: status.failure().filter(|_| !terminating),
            has_ended,
            terminating,
            // A pod that is gated on purpose has another reason.
            unschedulable: unschedulable
                .filter(|condition| condition.reason.0 == "Unschedulable")
                .map(|condition| bounded_text(&condition.message.0)),
            unready: ready.is_none().then(|| status.unready_text()),
        }
    }
}

/// The workload itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WorkloadRecord {
    pub(super) uid: Uid,
    pub(super) rv: ResourceVersion,
    pub(super) generation: i64,
    /// Indicates whether the controller has seen this generation and acts on it.
    pub(super) observed: bool,
    /// Pods that it wants.
    pub(super) desired: u32,
    /// Deployment: pods of its newest ReplicaSet, as its controller counts them.
    pub(super) updated: u32,
    /// StatefulSet: pods that are available.
    pub(super) available: u32,
    /// The hash of its pod template.
    pub(super) template: Option<ContentHash>,
    /// StatefulSet: the revision that it rolls to.
    pub(super) update_revision: Option<Arc<str>>,
    /// StatefulSet: the revision of its pods below the partition.
    pub(super) current_revision: Option<Arc<str>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WorkloadSpec {
    #[serde(deserialize_with = "lenient")]
    replicas: Option<u32>,
    #[serde(deserialize_with = "lenient")]
    paused: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WorkloadStatus<'a> {
    #[serde(deserialize_with = "lenient")]
    observed_generation: i64,
    #[serde(deserialize_with = "lenient")]
    desired_number_scheduled: Option<u32>,
    #[serde(deserialize_with = "lenient")]
    updated_replicas: u32,
    #[serde(deserialize_with = "lenient")]
    available_replicas: u32,
    #[serde(borrow, deserialize_with = "lenient")]
    update_revision: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    current_revision: WireText<'a>,
}

impl PodsRecord for WorkloadRecord {
    fn of(parts: &ObjectText<'_>) -> Self {
        let head = &parts.metadata;
        let spec: WorkloadSpec = lenient_part(parts.spec);
        let status: WorkloadStatus<'_> = lenient_part(parts.status);
        let seen = status.observed_generation == head.generation;
        Self {
            uid: head.uid(),
            rv: ResourceVersion::read(&head.resource_version.0),
            generation: head.generation,
            observed: seen && !spec.paused && head.deletion_timestamp.0.is_empty(),
            desired: status.desired_number_scheduled.or(spec.replicas).unwrap_or(1),
            updated: status.updated_replicas,
            available: status.available_replicas,
            template: template_hash(parts.spec, "/template"),
            update_revision: non_empty(&status.update_revision),
            current_revision: non_empty(&status.current_revision),
        }
    }
}

/// One revision of a workload: a ReplicaSet or a `ControllerRevision`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RevisionRecord {
    pub(super) uid: Uid,
    pub(super) owner: Option<Uid>,
    /// The highest is the newest.
    pub(super) number: u64,
    /// As the pods' label has it.
    pub(super) hash: Option<Arc<str>>,
    pub(super) rv: ResourceVersion,
    /// ReplicaSet: pods that it asks for, that it has, and those of these that are available.
    pub(super) wanted: u32,
    pub(super) replicas: u32,
    pub(super) available: u32,
    /// ReplicaSet: why it cannot create more.
    pub(super) refused: Option<Arc<str>>,
    /// `ControllerRevision`: the hash of its pod template.
    pub(super) template: Option<ContentHash>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ReplicaSetStatus<'a> {
    #[serde(deserialize_with = "lenient")]
    replicas: u32,
    #[serde(deserialize_with = "lenient")]
    available_replicas: u32,
    #[serde(borrow, deserialize_with = "lenient")]
    conditions: Vec<Condition<'a>>,
}

impl PodsRecord for RevisionRecord {
    fn of(parts: &ObjectText<'_>) -> Self {
        let head = &parts.metadata;
        let spec: WorkloadSpec = lenient_part(parts.spec);
        let status: ReplicaSetStatus<'_> = lenient_part(parts.status);
        let refused = find_condition(&status.conditions, "ReplicaFailure", "True");
        let number = revision_number(&head.annotations.deployment_revision.0).unwrap_or(parts.revision);
        Self {
            uid: head.uid(),
            owner: head.owner(),
            number,
            hash: non_empty(&head.labels.template_hash).or_else(|| non_empty(&head.labels.revision_hash)),
            rv: ResourceVersion::read(&head.resource_version.0),
            // The server fills it in where it is not said.
            wanted: spec.replicas.unwrap_or(0),
            replicas: status.replicas,
            available: status.available_replicas,
            refused: refused
                .filter(|condition| condition.reason.0 == "FailedCreate")
                .map(|condition| bounded_text(&condition.message.0)),
            template: template_hash(parts.data, "/spec/template"),
        }
    }
}

/// Returns the hash of the pod template at a place of a JSON text, none where there is none. It is
/// the same in a workload and in the `ControllerRevision` that its controller made of it.
fn template_hash(text: Option<&RawValue>, place: &str) -> Option<ContentHash> {
    let mut object: Value = serde_json::from_str(text?.get()).ok()?;
    let template = object.pointer_mut(place)?.as_object_mut()?;
    // The data of a revision are a patch that replaces the template.
    template.remove("$patch");
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| !value.is_null());
    }
    let text = serde_json::to_string(template).ok()?;
    Some(ContentHash::hash_bytes(text.as_bytes()))
}

/// Returns the number of a ReplicaSet's revision, in the order in which the controller gives them.
///
/// It counts in 64 bits with a sign, from the highest that it can read. A number that it cannot
/// read counts as nothing. After the greatest number comes the least
/// (`pkg/controller/deployment/util/deployment_util.go`, `MaxRevision`).
fn revision_number(text: &str) -> Option<u64> {
    text.parse::<i64>().ok().map(i64::cast_unsigned)
}

fn non_empty(text: &WireText<'_>) -> Option<Arc<str>> {
    (!text.0.is_empty()).then(|| (&*text.0).into())
}

/// Returns the seconds since 1970; 0 for no time.
pub(super) fn unix_seconds(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
}

/// Returns words from the cluster for a terminal: one line, no control characters, not too long.
pub(super) fn bounded_text(text: &str) -> Arc<str> {
    let is_odd = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut line = String::new();
    for word in text.split(|letter: char| letter.is_whitespace() || is_odd(letter)) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_POD_MESSAGE_CHARS {
            line.truncate(line.floor_char_boundary(MAX_POD_MESSAGE_CHARS));
            line.push('…');
            break;
        }
    }
    line.into()
}
