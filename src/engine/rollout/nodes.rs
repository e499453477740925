//! The nodes of the cluster. They are watched only while a DaemonSet goes in steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::rollout::pod_eviction::NodeState;
use crate::engine::{LabelSelector, Readiness, StepObstacle};

/// The facts of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Indicates whether its condition `Ready` holds.
    pub ready: Readiness,
    /// Indicates whether it is closed to new pods (`kubectl cordon`).
    pub cordoned: bool,
    /// Its labels.
    pub labels: Box<[(Arc<str>, Arc<str>)]>,
}

/// One piece of news about the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NodeChange {
    /// A list begins. The nodes known before stay until the list has ended.
    Init,
    /// A node is there, in this state.
    Apply(Arc<str>, NodeFacts),
    /// A node is gone.
    Delete(Arc<str>),
    /// The list has ended: what was not seen since it began is gone.
    InitDone,
    /// They cannot be read, and why.
    Failed(Arc<str>),
    /// After a failure the watch goes on, and nothing was missed.
    Resumed,
    /// They are not watched any more.
    Closed,
}

/// The node store: all nodes that the informer shows.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct NodeStore {
    known: BTreeMap<Arc<str>, NodeFacts>,
    /// During a list: what it has not shown yet.
    unseen: Option<BTreeSet<Arc<str>>>,
    synced: bool,
    /// The reason for which they cannot be read now.
    failure: Option<Arc<str>>,
}

impl NodeStore {
    pub(in crate::engine) fn take(&mut self, change: NodeChange) {
        match change {
            NodeChange::Init => self.unseen = Some(self.known.keys().cloned().collect()),
            NodeChange::Apply(name, facts) => {
                if let Some(unseen) = &mut self.unseen {
                    unseen.remove(&name);
                }
                self.known.insert(name, facts);
            }
            NodeChange::Delete(name) => drop(self.known.remove(&name)),
            NodeChange::InitDone => {
                for name in self.unseen.take().unwrap_or_default() {
                    self.known.remove(&name);
                }
                (self.synced, self.failure) = (true, None);
            }
            NodeChange::Failed(why) => self.failure = Some(why),
            NodeChange::Resumed => self.failure = None,
            NodeChange::Closed => *self = Self::default(),
        }
    }

    /// Returns why nothing can be said about any node now. Facts from before a failure may have
    /// changed meanwhile.
    pub(in crate::engine) fn unknown_reason(&self) -> Option<StepObstacle> {
        match &self.failure {
            Some(why) => Some(StepObstacle::UnreadableNodes(why.clone())),
            None if !self.synced => Some(StepObstacle::UnlistedNodes),
            None => None,
        }
    }

    /// Returns the state of a node for the pods of a DaemonSet whose canary nodes have these
    /// labels. A cordoned node is no canary: somebody is about to drain it.
    pub(in crate::engine) fn host(&self, name: &str, canaries: Option<&LabelSelector>) -> NodeState {
        let Some(node) = self.known.get(name).filter(|node| node.ready == Readiness::Ready) else {
            return NodeState::Lost;
        };
        if node.cordoned {
            return NodeState::Cordoned;
        }
        let label =
            |key: &str| node.labels.iter().find(|(known, _)| **known == *key).map(|(_, value)| &**value);
        match canaries {
            Some(canaries) if canaries.matches(label) => NodeState::Canary,
            _ => NodeState::Ready,
        }
    }
}
