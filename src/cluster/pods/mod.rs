//! The pods of one workload during its rollout: watching, warnings, eviction.
//!
//! A pod watch watches the workload itself, its pods by its selector, and the `ReplicaSets` of a
//! Deployment. A pod belongs to the workload by its owner's uid, never by its labels alone. The
//! newest revision is known only while the controller has seen the newest spec, and is never taken
//! from an older view.
//!
//! A ReplicaSet has a condition for pods that cannot be created. The other controllers only say so
//! in Events, which are read while pods are missing. Events are the weaker witness: the client of a
//! controller that said much about an object drops further ones for minutes. A rollout's deadline
//! covers that.
//!
//! **Invariant:** reads what the server says and judges no pod: that is the engine's.

mod decoder;
mod evict;
mod pod_watch;
mod rescale;
mod store;
mod warnings;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::Value;
use tokio::task::JoinHandle;

pub(super) use decoder::{Condition, find_condition};
pub use evict::EvictionResponse;

use self::pod_watch::{PodWatchTask, WatchedWorkload};
use self::store::PodController;
use super::call::Cluster;
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::event_sink::EventSink;
use super::kinds::{ServedKind, ServedScope};
use crate::engine::{Uid, WorkloadPods};
use crate::object::{Gvk, ObjectId, text_at, value_at};

/// Group, version, kind and plural of what every cluster serves.
type BuiltinKind = [&'static str; 4];
const POD_KIND: BuiltinKind = ["", "v1", "Pod", "pods"];
const EVENT_KIND: BuiltinKind = ["", "v1", "Event", "events"];
const REPLICA_SETS: BuiltinKind = ["apps", "v1", "ReplicaSet", "replicasets"];
const CONTROLLER_REVISIONS: BuiltinKind = ["apps", "v1", "ControllerRevision", "controllerrevisions"];

fn kind([group, version, kind, plural]: &BuiltinKind) -> Arc<ServedKind> {
    Arc::new(ServedKind {
        gvk: Gvk::new(group, version, kind),
        plural: (*plural).into(),
        scope: ServedScope::Namespaced,
        verbs: BTreeSet::new(),
    })
}

/// One event of a pod watch.
#[derive(Debug)]
pub struct PodsEvent {
    /// The workload.
    pub id: ObjectId,
    /// The change.
    pub change: PodsChange,
}

/// One piece of news about the pods of a workload.
#[derive(Debug)]
pub enum PodsChange {
    /// All of them, as they are now; replaces what was reported before.
    Observed(WorkloadPods),
    /// Something failed; it goes on by itself after the wait, and then reports all of them again.
    Failed(ClusterError, Duration),
}

/// A running watch of pods. It stops when this is dropped, or when nobody listens any more.
#[derive(Debug)]
pub struct PodWatchHandle {
    task: JoinHandle<()>,
}

impl Drop for PodWatchHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// Returns the selector of a workload's pods, as the cluster has it, for [`Cluster::watch_pods`].
    /// None for another incarnation, and where it has no usable selector.
    pub(crate) async fn read_pod_selector(
        &self,
        workload: &ServedKind,
        id: &ObjectId,
        uid: &Uid,
    ) -> Result<Option<String>, ClusterError> {
        let live = self.get(workload, id).await?;
        let live = live.filter(|live| text_at(live, &["metadata", "uid"]) == &*uid.0);
        Ok(live.as_ref().and_then(pod_selector))
    }

    /// Reports all pods of one Deployment, StatefulSet or DaemonSet each time that something
    /// changes, until it is dropped; none for any other kind. The selector is that of
    /// [`pod_selector`].
    ///
    /// Reports nothing while the workload is not there. A sink that is full makes it skip what is
    /// overtaken, never the newest. Needs a running tokio runtime.
    pub fn watch_pods(
        &self,
        workload: &Arc<ServedKind>,
        id: &ObjectId,
        uid: &Uid,
        selector: &str,
        sink: impl Into<EventSink<PodsEvent>>,
    ) -> Option<PodWatchHandle> {
        let (controller, sink) = (pod_controller(id)?, sink.into());
        let followed = WatchedWorkload { controller, kind: workload, id, uid, selector };
        let pod_watch = PodWatchTask::new(self, followed, sink.clone())?;
        let id = id.clone();
        let task = async move {
            if AssertUnwindSafe(pod_watch.run()).catch_unwind().await.is_err() {
                let bug = ClusterError::new(CallSubject::Object(id.clone()), ClusterFault::Bug);
                let _ = sink.send(PodsEvent { id, change: PodsChange::Failed(bug, Duration::ZERO) }).await;
            }
        };
        Some(PodWatchHandle { task: tokio::spawn(task) })
    }
}

fn pod_controller(id: &ObjectId) -> Option<PodController> {
    [
        ("Deployment", PodController::Deployment),
        ("StatefulSet", PodController::StatefulSet),
        ("DaemonSet", PodController::DaemonSet),
    ]
    .into_iter()
    .find_map(|(kind, controller)| id.is("apps", kind).then_some(controller))
}

/// Returns the `spec.selector` of a workload as the label selector of a URL. None where it has
/// none, or one that cannot be read: such a selector would select too much.
pub fn pod_selector(workload: &Value) -> Option<String> {
    let selector = value_at(workload, &["spec", "selector"])?.as_object()?;
    let mut terms = Vec::new();
    if let Some(labels) = selector.get("matchLabels") {
        for (key, value) in labels.as_object()? {
            terms.push(format!("{key}={}", value.as_str()?));
        }
    }
    if let Some(expressions) = selector.get("matchExpressions") {
        for expression in expressions.as_array()? {
            terms.push(term(expression)?);
        }
    }
    (!terms.is_empty()).then(|| terms.join(","))
}

fn term(expression: &Value) -> Option<String> {
    let key = Some(text_at(expression, &["key"])).filter(|key| !key.is_empty())?;
    let values = || {
        let values: Option<Vec<&str>> =
            expression.get("values")?.as_array()?.iter().map(Value::as_str).collect();
        values.filter(|values| !values.is_empty()).map(|values| values.join(","))
    };
    match text_at(expression, &["operator"]) {
        "In" => Some(format!("{key} in ({})", values()?)),
        "NotIn" => Some(format!("{key} notin ({})", values()?)),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
