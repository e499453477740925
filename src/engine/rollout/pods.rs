//! The pods of one workload during its rollout: is one of the new ones failing, and how many are
//! ready?
//!
//! The watch of the pods makes the records. Only pods of the newest revision are ever judged: a
//! rollout is there to replace a failing pod of an older one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::{ResourceVersion, Uid};

/// A pod that no node takes counts as failing after this time.
pub const UNSCHEDULABLE_GRACE: Duration = Duration::from_mins(1);
/// The time after which a container counts as failing whose image cannot be pulled, for another
/// reason than that there is none. The kubelet tries again 10 s after its first failure and 20 s
/// after the second, so a registry has failed three times by then.
pub const IMAGE_PULL_GRACE: Duration = Duration::from_mins(1);
/// The time after which a reason counts as failing that may be gone at the next try of a kubelet or
/// a controller.
pub(crate) const TRANSIENT_REASON_GRACE: Duration = Duration::from_secs(2);
/// A pod whose container has restarted so often counts as failing, also while it runs.
pub(crate) const MAX_CONTAINER_RESTARTS: u32 = 3;

/// Indicates whether a pod is Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Readiness {
    /// Its condition `Ready` does not hold, or it is ending.
    NotReady,
    /// Its condition `Ready` holds.
    Ready,
}

/// A container that waits for something that may never come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerFailure {
    /// The container, which may be an init container.
    pub container: Arc<str>,
    /// The kubelet's word, one of those that [`grace_period`] knows.
    pub reason: Arc<str>,
    /// The kubelet's message.
    pub message: Arc<str>,
    /// The time since which this process has seen it.
    #[serde(with = "crate::object::serial::instant_form")]
    pub since: Instant,
}

/// A pod that ended in failure: evicted, or of phase `Failed` for another reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedPod {
    /// `Evicted`, `OutOfcpu`, `NodeShutdown`, `Failed`, …
    pub reason: Arc<str>,
    /// The reason, in words.
    pub message: Arc<str>,
    /// The time at which this process saw it end; none if it had ended before it was watched, as a
    /// pod of an earlier rollout.
    #[serde(with = "crate::object::serial::optional_instant_form")]
    pub seen: Option<Instant>,
}

/// A pod that no node takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnschedulablePod {
    /// The scheduler's message.
    pub message: Arc<str>,
    /// The time since which this process has seen it.
    #[serde(with = "crate::object::serial::instant_form")]
    pub since: Instant,
}

/// The controller cannot create pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodCreationFailure {
    /// The server's words, as the controller repeats them: a quota, or admission.
    pub message: Arc<str>,
    /// The time since which this process has seen it.
    #[serde(with = "crate::object::serial::instant_form")]
    pub since: Instant,
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFacts {
    /// Name.
    pub name: Arc<str>,
    /// Incarnation.
    pub uid: Uid,
    /// Version of this view.
    pub rv: ResourceVersion,
    /// The revision of its workload that it was made from; comparable with
    /// [`WorkloadPods::newest`].
    pub revision: Option<Arc<str>>,
    /// The node that it was given to.
    pub node: Option<Arc<str>>,
    /// Indicates whether it is Ready.
    pub ready: Readiness,
    /// The time since which this process has seen it Ready without a restart between; none while it
    /// is not Ready.
    #[serde(with = "crate::object::serial::optional_instant_form")]
    pub steady_since: Option<Instant>,
    /// Restarts of its most restarted container, init containers too.
    pub restarts: u32,
    /// The number of restarts that this process has seen. A pod that a rollback keeps may have
    /// restarted long ago.
    pub new_restarts: u32,
    /// The container that restarted most often; none before the first restart.
    pub restarted: Option<Arc<str>>,
    /// A container that waits for something that may never come.
    pub container_failure: Option<ContainerFailure>,
    /// The failure that it ended in.
    pub failure: Option<FailedPod>,
    /// Indicates whether it has ended, well or not: phase `Succeeded` or `Failed`.
    pub has_ended: bool,
    /// Indicates whether it is being deleted.
    pub terminating: bool,
    /// Indicates whether no node takes it.
    pub unschedulable: Option<UnschedulablePod>,
    /// The reason for which it is not Ready, in words; none while it is.
    pub unready: Option<Arc<str>>,
}

impl PodFacts {
    /// Returns whether it counts as a pod that its controller has: it neither ended nor is about
    /// to.
    pub fn is_active(&self) -> bool {
        !self.has_ended && !self.terminating
    }
}

/// One ReplicaSet of a Deployment that asks for pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaSetFacts {
    /// Name.
    pub name: Arc<str>,
    /// Incarnation.
    pub uid: Uid,
    /// Version of this view.
    pub rv: ResourceVersion,
    /// The revision of the workload that it is of; comparable with [`WorkloadPods::newest`].
    pub revision: Option<Arc<str>>,
    /// Pods that it asks for.
    pub wanted: u32,
    /// Wanted pods that are available.
    pub available: u32,
}

/// All pods of one workload, as they were seen at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadPods {
    /// The version of the workload that this is about. Later writes to the workload are not in it.
    pub rv: ResourceVersion,
    /// The revision that the workload's controller rolls to. None while it is not known: the
    /// controller has not seen the newest spec yet, or the workload is paused or gone.
    pub newest: Option<Arc<str>>,
    /// The revision from which a StatefulSet's controller creates pods below the partition. None
    /// while it is not known.
    pub current: Option<Arc<str>>,
    /// Its pods, oldest first.
    pub pods: Box<[PodFacts]>,
    /// The `ReplicaSets` of a Deployment that ask for pods, by name.
    pub sets: Box<[ReplicaSetFacts]>,
    /// The last pod of the newest revision that ended in failure and is gone: some controllers
    /// delete such a pod within milliseconds.
    pub last_failed: Option<Box<PodFacts>>,
    /// The reason for which pods of the newest revision cannot be created.
    pub creation_failure: Option<PodCreationFailure>,
}

impl WorkloadPods {
    /// Returns the pods of the newest revision; none where that is not known.
    pub fn newest_pods(&self) -> impl Iterator<Item = &PodFacts> {
        let newest = self.newest.as_ref();
        self.pods.iter().filter(move |pod| newest.is_some() && pod.revision.as_ref() == newest)
    }

    fn ready_pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.newest_pods().filter(|pod| pod.is_active() && pod.ready == Readiness::Ready)
    }

    /// Counts the pods of the newest revision that its controller has.
    pub fn count_updated(&self) -> u32 {
        self.newest_pods().filter(|pod| pod.is_active()).count() as u32
    }

    /// Counts the Ready pods of the newest revision. Unlike availability, this counts pods that a
    /// rollout holds.
    pub fn count_ready_newest(&self) -> u32 {
        self.ready_pods().count() as u32
    }

    /// Returns the number of pods of the newest revision that are not Ready and show why. A
    /// container waits for something that may never come, or no node takes them.
    pub fn count_failing_newest(&self) -> u32 {
        let is_troubled = |pod: &&PodFacts| {
            pod.is_active()
                && pod.ready == Readiness::NotReady
                && (pod.container_failure.is_some() || pod.unschedulable.is_some())
        };
        self.newest_pods().filter(is_troubled).count() as u32
    }

    /// Returns the oldest pod of the newest revision that is not Ready, though its controller has it.
    pub fn oldest_unready_newest(&self) -> Option<&PodFacts> {
        self.newest_pods().find(|pod| pod.is_active() && pod.ready == Readiness::NotReady)
    }

    /// Returns the time since which all Ready pods of the newest revision have been Ready without a
    /// restart; none without such a pod.
    pub fn steady_time(&self) -> Option<Instant> {
        self.ready_pods().map(|pod| pod.steady_since).max().flatten()
    }
}

/// Returns how long a container may wait for this reason before its pod counts as failing. None for
/// a reason that is no failure, for example `ContainerCreating`.
///
/// Zero means that it counts at once: a further try seldom helps before somebody changes something.
/// The others also come from a busy runtime or a registry that is away, and pass. The kubelet's
/// message distinguishes an image that is missing from a registry that is away.
pub(crate) fn grace_period(reason: &str, message: &str) -> Option<Duration> {
    match reason {
        _ if is_pull_failure(reason) => {
            Some(if is_missing_image(message) { Duration::ZERO } else { IMAGE_PULL_GRACE })
        }
        "CrashLoopBackOff"
        | "CreateContainerConfigError"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "InvalidImageName"
        | "SignatureValidationFailed" => Some(Duration::ZERO),
        "CreateContainerError"
        | "PostStartHookError"
        | "PreCreateHookError"
        | "PreStartHookError"
        | "RunContainerError" => Some(TRANSIENT_REASON_GRACE),
        _ => None,
    }
}

/// Returns whether a container waits with this reason for an image that could not be pulled. The
/// kubelet reports the failure and the wait for the next try by turns.
pub(crate) fn is_pull_failure(reason: &str) -> bool {
    matches!(reason, "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable")
}

/// Returns whether the registry has answered that it has no such image. The words are those of
/// containerd's gRPC status and of the registry API; the kubelet repeats them while it backs off.
fn is_missing_image(message: &str) -> bool {
    ["code = NotFound", "manifest unknown"].iter().any(|words| message.contains(words))
}

/// The reason for which a rollout cannot succeed as it is. `render` has its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutFailure {
    /// The pod; none where none can be created.
    pub pod: Option<Arc<str>>,
    /// The container, where it is one container's fault.
    pub container: Option<Arc<str>>,
    /// One word, for example `CrashLoopBackOff`, `ImagePullBackOff`, `FailedCreate`,
    /// `Unschedulable` or `Evicted`.
    pub reason: Arc<str>,
    /// The cluster's message about it; may be empty.
    pub message: Arc<str>,
    /// The number of restarts, where they are the fault.
    pub restarts: Option<u32>,
}

/// One signal.
struct FailureSignal {
    /// From when on it counts; none for at once.
    from: Option<Instant>,
    /// The rank: the signal that explains most comes first.
    rank: u8,
    failing: RolloutFailure,
}

/// Returns why the newest revision fails, if it does: the signal that explains most, of the oldest
/// pod that shows it.
pub fn find_failure(pods: &WorkloadPods, now: Instant) -> Option<RolloutFailure> {
    let counts = failure_signals(pods).filter(|signal| signal.from.is_none_or(|from| from <= now));
    counts.min_by_key(|signal| signal.rank).map(|signal| signal.failing)
}

/// Returns when [`find_failure`] may answer otherwise although nothing is seen to change; none if
/// never.
pub fn next_failure_check(pods: &WorkloadPods, now: Instant) -> Option<Instant> {
    failure_signals(pods).filter_map(|signal| signal.from).filter(|from| *from > now).min()
}

fn failure_signals(pods: &WorkloadPods) -> impl Iterator<Item = FailureSignal> {
    let living = pods.newest_pods().filter(|pod| !pod.terminating);
    let of_pods = living.flat_map(|pod| {
        [container_failure_signal(pod), restart_signal(pod), ended_signal(pod), unschedulable_signal(pod)]
    });
    let lost = pods.last_failed.iter().filter(|pod| pods.newest.is_some() && pod.revision == pods.newest);
    let lost = lost.map(|pod| ended_signal(pod));
    of_pods.chain(lost).chain([refusal_signal(pods)]).flatten()
}

fn container_failure_signal(pod: &PodFacts) -> Option<FailureSignal> {
    // An ended pod is judged by `ended_signal`.
    let container_failure = pod.container_failure.as_ref().filter(|_| !pod.has_ended)?;
    let grace = grace_period(&container_failure.reason, &container_failure.message)?;
    Some(FailureSignal {
        from: (!grace.is_zero()).then(|| container_failure.since + grace),
        rank: u8::from(!grace.is_zero()),
        failing: RolloutFailure {
            container: Some(container_failure.container.clone()),
            ..pod_failure(pod, &container_failure.reason, container_failure.message.clone())
        },
    })
}

fn restart_signal(pod: &PodFacts) -> Option<FailureSignal> {
    (pod.new_restarts >= MAX_CONTAINER_RESTARTS && !pod.has_ended).then(|| FailureSignal {
        from: None,
        rank: 2,
        failing: RolloutFailure {
            container: pod.restarted.clone(),
            restarts: Some(pod.restarts),
            ..pod_failure(pod, "Restarting", Arc::default())
        },
    })
}

fn ended_signal(pod: &PodFacts) -> Option<FailureSignal> {
    let ended = pod.failure.as_ref().filter(|ended| ended.seen.is_some())?;
    Some(FailureSignal {
        from: None,
        rank: 3,
        failing: pod_failure(pod, &ended.reason, ended.message.clone()),
    })
}

fn unschedulable_signal(pod: &PodFacts) -> Option<FailureSignal> {
    let unschedulable = pod.unschedulable.as_ref().filter(|_| !pod.has_ended)?;
    Some(FailureSignal {
        from: Some(unschedulable.since + UNSCHEDULABLE_GRACE),
        rank: 5,
        failing: pod_failure(pod, "Unschedulable", unschedulable.message.clone()),
    })
}

fn refusal_signal(pods: &WorkloadPods) -> Option<FailureSignal> {
    let refused = pods.creation_failure.as_ref().filter(|_| pods.newest.is_some())?;
    if !is_refusal(&refused.message) {
        return None;
    }
    let (reason, message) = ("FailedCreate".into(), refused.message.clone());
    let failing = RolloutFailure { pod: None, container: None, reason, message, restarts: None };
    Some(FailureSignal { from: Some(refused.since + TRANSIENT_REASON_GRACE), rank: 4, failing })
}

/// Returns whether the API server refuses a pod as it is, by a quota, admission or validation.
///
/// A server that cannot be reached, that has just started or whose webhook does not answer says
/// nothing about the pod. Its controller tries again, and the deadline counts. The words are those
/// of apimachinery's `NewForbidden` and `NewInvalid` and of a webhook's answer.
fn is_refusal(message: &str) -> bool {
    const POD_REFUSAL_TEXTS: [&str; 3] = [" is forbidden: ", " is invalid: ", " denied the request"];
    // Admission whose informers have not synced, and roles that have not been read, say so right
    // after a start.
    const WEBHOOK_STARTING_TEXTS: [&str; 2] = ["not yet ready to handle request", " cannot create resource "];
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    says(&POD_REFUSAL_TEXTS) && !says(&WEBHOOK_STARTING_TEXTS)
}

fn pod_failure(pod: &PodFacts, reason: &str, message: Arc<str>) -> RolloutFailure {
    let (pod, reason) = (Some(pod.name.clone()), reason.into());
    RolloutFailure { pod, container: None, reason, message, restarts: None }
}
