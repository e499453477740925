//! The nodes of the cluster: whether they are Ready, closed, and how they are labelled.
//!
//! **Invariant:** judges nothing. The engine decides whether a node can be counted on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;

use super::call::Cluster;
use super::event_sink::EventSink;
use super::informer::{Informer, InformerEvent};
use super::kinds::{ServedKind, ServedScope};
use super::path::ListSelector;
use super::pods::{Condition, find_condition};
use super::wire::{DecodedObject, WireDecoder, WireText, lenient};
use crate::engine::{NodeFacts, Readiness, ResourceVersion};
use crate::object::{GroupKind, Gvk, ObjectId};

impl Cluster {
    /// Reports the facts of all nodes, until it is dropped. Needs the right to list and watch
    /// `nodes`.
    pub fn watch_nodes(&self, sink: impl Into<EventSink<InformerEvent<NodeFacts>>>) -> Informer {
        let kind = Arc::new(ServedKind {
            gvk: Gvk::new("", "v1", "Node"),
            plural: "nodes".into(),
            scope: ServedScope::Cluster,
            verbs: BTreeSet::new(),
        });
        self.inform(&kind, ListSelector::All, NodeDecoder, sink)
    }
}

/// The decoder of nodes. Other fields, such as images, are skipped and never copied.
#[derive(Clone)]
pub(super) struct NodeDecoder;

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeText<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    metadata: NodeMetadata<'a>,
    #[serde(deserialize_with = "lenient")]
    spec: NodeSpec,
    #[serde(borrow, deserialize_with = "lenient")]
    status: NodeStatus<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NodeMetadata<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    resource_version: WireText<'a>,
    #[serde(deserialize_with = "lenient")]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeSpec {
    #[serde(deserialize_with = "lenient")]
    unschedulable: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeStatus<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    conditions: Vec<Condition<'a>>,
}

impl WireDecoder for NodeDecoder {
    type Record = NodeFacts;

    fn decode(&self, text: &str) -> Option<DecodedObject<NodeFacts>> {
        let node: NodeText<'_> = serde_json::from_str(text).ok()?;
        let name = Some(&*node.metadata.name.0).filter(|name| !name.is_empty())?;
        let is_ready = find_condition(&node.status.conditions, "Ready", "True").is_some();
        let labels =
            node.metadata.labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        let record = NodeFacts {
            ready: if is_ready { Readiness::Ready } else { Readiness::NotReady },
            cordoned: node.spec.unschedulable,
            labels: labels.collect(),
        };
        let id = ObjectId::new(&GroupKind::new("", "Node"), None, name);
        Some(DecodedObject { id, rv: ResourceVersion::read(&node.metadata.resource_version.0), record })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_node_is_read_whatever_else_it_tells() {
        type NodeReading<'a> = (Readiness, bool, &'a [(&'a str, &'a str)]);
        fn check(node: &Value, expected: Option<NodeReading<'_>>) {
            let read = NodeDecoder.decode(&node.to_string());
            let expected = expected.map(|(ready, cordoned, labels)| {
                let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into()));
                NodeFacts { ready, cordoned, labels: labels.collect() }
            });
            assert_eq!(read.map(|read| read.record), expected, "{node}");
        }
        let named = json!({"name": "n", "labels": {"zone": "a", "canary": ""}, "resourceVersion": "7"});
        let labels: &[(&str, &str)] = &[("canary", ""), ("zone", "a")];
        let ready = |status: &str| json!([{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status}]);
        for (status, expected) in
            [("True", Readiness::Ready), ("False", Readiness::NotReady), ("Unknown", Readiness::NotReady)]
        {
            let status = json!({"conditions": ready(status), "images": [{"names": ["x"]}]});
            check(&json!({"metadata": named, "status": status}), Some((expected, false, labels)));
        }
        let closed =
            json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}, "status": {"conditions": 3}});
        check(&closed, Some((Readiness::NotReady, true, &[])));
        check(&json!({"metadata": {}}), None);
    }
}
