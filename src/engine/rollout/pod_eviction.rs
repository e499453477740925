//! The next pod to go, where the controller does not choose by itself. These are a DaemonSet's pods
//! in steps, and the pod on which a StatefulSet is stuck.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Indicates whether a pod can be counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodAvailability {
    /// It is Ready.
    Ready,
    /// It has not been Ready for this long.
    Unready(Duration),
    /// It cannot get Ready as it is: it crashes again and again, or its image cannot be pulled.
    InTrouble,
    /// It is being deleted.
    Terminating,
}

/// The template version of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateVersion {
    /// The newest.
    Newest,
    /// An older one.
    Older,
}

/// The state of a pod's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeState {
    /// Ready, and one of the nodes that go first.
    Canary,
    /// Ready.
    Ready,
    /// Ready, and closed to new pods of others: it is about to be emptied, so its pods go last.
    Cordoned,
    /// Not Ready, or gone: the state of its pods proves nothing.
    Lost,
}

/// A pod of a DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePod {
    /// Its name.
    pub name: Arc<str>,
    /// Its node's name.
    pub node: Arc<str>,
    /// Its node's state.
    pub host: NodeState,
    /// Its template.
    pub template: TemplateVersion,
    /// Its own state.
    pub state: PodAvailability,
}

/// The target of a DaemonSet's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStep {
    /// Nodes that are to have the newest template.
    pub target: u32,
    /// Nodes that may be without a Ready pod at once.
    pub away: u32,
    /// Nodes that should have a pod (`status.desiredNumberScheduled`), or have one all the same
    /// (`status.numberMisscheduled`).
    pub nodes: u32,
}

/// The counts by which a DaemonSet's step is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NodeCounts {
    /// Nodes that can be counted on: those of [`NodeStep::nodes`], without the lost ones.
    pub nodes: u32,
    /// The nodes among them with a Ready pod of the newest template.
    pub ready: u32,
}

/// One node's share: what its pods come to.
struct NodeShare<'a> {
    host: NodeState,
    /// Indicates whether a pod of it is Ready.
    serves: bool,
    /// Indicates whether a Ready pod of it has the newest template.
    done: bool,
    /// The pod of an older template that is not being deleted.
    older: Option<&'a NodePod>,
}

fn group_by_node(pods: &[NodePod]) -> BTreeMap<&str, NodeShare<'_>> {
    let mut nodes: BTreeMap<&str, NodeShare<'_>> = BTreeMap::new();
    for pod in pods {
        let new = NodeShare { host: pod.host, serves: false, done: false, older: None };
        let node = nodes.entry(&pod.node).or_insert(new);
        let is_ready = pod.state == PodAvailability::Ready;
        node.serves |= is_ready;
        node.done |= is_ready && pod.template == TemplateVersion::Newest;
        if pod.template == TemplateVersion::Older && pod.state != PodAvailability::Terminating {
            node.older = Some(pod);
        }
    }
    nodes
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Counts the nodes of a DaemonSet, of so many as [`NodeStep::nodes`] has.
pub fn count_nodes(pods: &[NodePod], nodes: u32) -> NodeCounts {
    let known = group_by_node(pods);
    let lost = known.values().filter(|node| node.host == NodeState::Lost).count();
    let ready = known.values().filter(|node| node.host != NodeState::Lost && node.done).count();
    NodeCounts { nodes: nodes.saturating_sub(count(lost)), ready: count(ready) }
}

/// Returns the pods of a DaemonSet to be evicted now: those of canary nodes first and those of
/// cordoned nodes last. Among these, pods that serve nobody come first, then the order is by node
/// name.
///
/// A node without a pod gets one of the newest template by itself, so it counts as taken, and as
/// away. Pods on lost nodes neither count nor are chosen.
pub fn select_evictions(pods: &[NodePod], step: NodeStep) -> Vec<&NodePod> {
    let known = group_by_node(pods);
    let sound: Vec<&NodeShare<'_>> = known.values().filter(|node| node.host != NodeState::Lost).collect();
    let bare = step.nodes.saturating_sub(count(known.len()));
    let taken = count(sound.iter().filter(|node| node.older.is_none()).count()).saturating_add(bare);
    let away = count(sound.iter().filter(|node| !node.serves).count()).saturating_add(bare);
    let mut left = step.target.saturating_sub(taken);
    let mut free = step.away.saturating_sub(away);
    let mut candidates: Vec<(&NodeShare<'_>, &NodePod)> =
        sound.iter().filter_map(|node| Some((*node, node.older?))).collect();
    candidates.sort_by_key(|(node, pod)| (node.host, node.serves, pod.node.clone()));
    let mut chosen = Vec::new();
    for (node, pod) in candidates {
        if left == 0 {
            break;
        }
        // A node that is away already is not taken away once more.
        if node.serves {
            if free == 0 {
                continue;
            }
            free -= 1;
        }
        left -= 1;
        chosen.push(pod);
    }
    chosen
}

/// A pod of a StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrdinalPod {
    /// Its name.
    pub name: Arc<str>,
    /// The number at the end of its name.
    pub ordinal: u32,
    /// Its revision (label `controller-revision-hash`).
    pub revision: Arc<str>,
    /// Its own state.
    pub state: PodAvailability,
}

/// The state of a StatefulSet, as its controller has seen its newest spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatefulSetState {
    /// The first ordinal (`spec.ordinals.start`).
    pub start: u32,
    /// Its partition.
    pub partition: u32,
    /// The revision of the template that is wanted (`status.updateRevision`).
    pub wanted: Arc<str>,
    /// The revision of the pods below the partition (`status.currentRevision`).
    pub current: Arc<str>,
}

/// Returns the pod of a StatefulSet that has to be deleted. Its controller waits for it to get
/// Ready although its template is no longer wanted.
///
/// The controller goes by ordinals and waits for the first pod that is not Ready: that one is
/// judged, and no other. A pod that is merely not Ready must have been so for `grace_period`; one
/// in trouble is reported at once. None while any pod is being deleted or created.
pub fn find_stuck_pod<'a>(
    set: &StatefulSetState,
    pods: &'a [OrdinalPod],
    grace_period: Duration,
) -> Option<&'a OrdinalPod> {
    let mut sorted: Vec<&OrdinalPod> = pods.iter().collect();
    sorted.sort_by_key(|pod| pod.ordinal);
    if sorted.iter().any(|pod| pod.state == PodAvailability::Terminating) {
        return None;
    }
    let (expected, first) = (set.start..).zip(sorted).find(|(_, pod)| pod.state != PodAvailability::Ready)?;
    // One before it is missing, which the controller makes first.
    if first.ordinal != expected {
        return None;
    }
    let is_below = first.ordinal.saturating_sub(set.start) < set.partition;
    if first.revision == set.wanted || (is_below && first.revision == set.current) {
        return None;
    }
    let is_given_up = match first.state {
        PodAvailability::InTrouble => true,
        PodAvailability::Unready(time) => time >= grace_period,
        PodAvailability::Ready | PodAvailability::Terminating => false,
    };
    is_given_up.then_some(first)
}
