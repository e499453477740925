//! What is known of the cluster's nodes. They are looked at only while a DaemonSet goes in steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::node_steps::Host;
use super::{LabelSelector, Readiness};

/// What is known of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Whether its condition `Ready` holds.
    pub ready: Readiness,
    /// Whether it is closed to new pods (`kubectl cordon`).
    pub cordoned: bool,
    /// Its labels.
    pub labels: Box<[(Arc<str>, Arc<str>)]>,
}

/// One piece of news about the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeNews {
    /// A list begins. What was known before stays true until the list has ended.
    Started,
    /// A node is there, in this state.
    Seen(Arc<str>, NodeFacts),
    /// A node is gone.
    Gone(Arc<str>),
    /// The list has ended: what was not seen since it began is gone.
    Synced,
    /// They cannot be read, and why.
    Failed(Arc<str>),
    /// After a failure the watch goes on, and nothing was missed.
    Resumed,
    /// Nobody looks any more.
    Closed,
}

/// All nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    known: BTreeMap<Arc<str>, NodeFacts>,
    /// During a list: what it has not shown yet.
    unseen: Option<BTreeSet<Arc<str>>>,
    synced: bool,
    /// Why they cannot be read now.
    failure: Option<Arc<str>>,
}

impl Nodes {
    pub(super) fn hear(&mut self, news: NodeNews) {
        match news {
            NodeNews::Started => self.unseen = Some(self.known.keys().cloned().collect()),
            NodeNews::Seen(name, facts) => {
                if let Some(unseen) = &mut self.unseen {
                    unseen.remove(&name);
                }
                self.known.insert(name, facts);
            }
            NodeNews::Gone(name) => drop(self.known.remove(&name)),
            NodeNews::Synced => {
                for name in self.unseen.take().unwrap_or_default() {
                    self.known.remove(&name);
                }
                (self.synced, self.failure) = (true, None);
            }
            NodeNews::Failed(why) => self.failure = Some(why),
            NodeNews::Resumed => self.failure = None,
            NodeNews::Closed => *self = Self::default(),
        }
    }

    /// Why nothing can be said about any node now. What was known before a failure may have changed meanwhile.
    pub(super) fn unknown(&self) -> Option<Arc<str>> {
        match &self.failure {
            Some(why) => Some(format!("the nodes cannot be read: {why}").into()),
            None if !self.synced => Some("the nodes are being listed".into()),
            None => None,
        }
    }

    /// What a node is for the pods of a DaemonSet whose canary nodes have these labels. A node that is closed is no
    /// canary: somebody is about to empty it.
    pub(super) fn host(&self, name: &str, canaries: Option<&LabelSelector>) -> Host {
        let Some(node) = self.known.get(name).filter(|node| node.ready == Readiness::Ready) else {
            return Host::Lost;
        };
        if node.cordoned {
            return Host::Cordoned;
        }
        let label =
            |key: &str| node.labels.iter().find(|(known, _)| **known == *key).map(|(_, value)| &**value);
        match canaries {
            Some(canaries) if canaries.matches(label) => Host::Canary,
            _ => Host::Ready,
        }
    }
}
