//! The health of an object: whether it has reached what its spec asks for, in kstatus' words.
//!
//! Owns [`Health`] and [`of`], a pure function of the object's own JSON tree; one file per kind
//! with its own rules. A kind without rules, built-in or custom, is judged by its conditions; one
//! without conditions is current as soon as it exists.
//!
//! Of the spec only [`HEALTH_SPEC_KEYS`] are read, so that an informer need not keep the rest. No
//! shape of a tree makes it fail: the status of a custom kind may be any JSON.
//!
//! **Invariant:** never fetches, never watches and knows no time.

mod crd;
mod daemon_set;
mod deployment;
mod generic;
mod job;
mod persistent_volume_claim;
mod pod;
mod replica_set;
mod signing;
mod small;
mod stateful_set;
mod view;
mod volume;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::view::HealthView;
use crate::object::{GroupKind, Gvk, text_at};

/// kstatus' six statuses (cli-utils `pkg/kstatus`), less `NotFound`, which no object can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthStatus {
    /// The spec is reached.
    Current,
    /// Its controller works on it.
    InProgress,
    /// Its controller gave up, or said that it cannot.
    Failed,
    /// It is being deleted.
    Terminating,
    /// Nothing can be said.
    Unknown,
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
        })
    }
}

/// A status and, unless it is `Current`, why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The status.
    pub status: HealthStatus,
    /// The wait or the failure, in kubectl's words where kubectl has some; empty when current.
    pub message: Arc<str>,
}

impl Health {
    /// Returns the health of an object that has reached its spec.
    pub fn current() -> Self {
        Self::new(HealthStatus::Current, "")
    }

    /// Creates any status with its reason.
    pub fn new(status: HealthStatus, message: &str) -> Self {
        Self { status, message: message.into() }
    }

    /// Returns whether the spec is reached.
    pub fn is_current(&self) -> bool {
        self.status == HealthStatus::Current
    }
}

/// The keys of `spec` that any rule reads; `updateStrategy` with all that is in it, the others are
/// scalars.
pub const HEALTH_SPEC_KEYS: [&str; 8] =
    ["clusterIP", "completions", "parallelism", "paused", "replicas", "suspend", "type", "updateStrategy"];

/// Judges an object that carries `apiVersion` and `kind`; it needs no more of the rest than
/// `metadata`, the [`HEALTH_SPEC_KEYS`] of `spec` and `status`.
pub fn of(object: &Value) -> Health {
    let gvk = Gvk::from_api_version(text_at(object, &["apiVersion"]), text_at(object, &["kind"]));
    of_kind(&gvk.group_kind(), object)
}

/// Judges an object whose kind is known already, as that of a list's items.
pub(crate) fn of_kind(kind: &GroupKind, object: &Value) -> Health {
    let view = HealthView::new(object);
    if let Some(health) = generic::first(kind, &view) {
        return health;
    }
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace") => small::namespace(&view),
        ("", "Node") => small::node(&view),
        ("", "PersistentVolume") => volume::of(&view),
        ("", "PersistentVolumeClaim") => persistent_volume_claim::of(&view),
        ("", "Pod") => pod::of(&view),
        ("" | "apps", "ReplicationController" | "ReplicaSet") => replica_set::of(&view),
        ("", "Service") => small::service(&view),
        ("apps", "DaemonSet") => daemon_set::of(&view),
        ("apps", "Deployment") => deployment::of(&view),
        ("apps", "StatefulSet") => stateful_set::of(&view),
        ("autoscaling", "HorizontalPodAutoscaler") => small::autoscaler(&view),
        ("batch", "CronJob") => Health::current(),
        ("batch", "Job") => job::of(&view),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::of(&view),
        ("apiregistration.k8s.io", "APIService") => small::api_service(&view),
        ("certificates.k8s.io", "CertificateSigningRequest" | "PodCertificateRequest") => signing::of(&view),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => small::flow_schema(&view),
        ("policy", "PodDisruptionBudget") => small::disruption_budget(&view),
        ("storage.k8s.io", "VolumeAttachment") => volume::attachment(&view),
        ("storagemigration.k8s.io", "StorageVersionMigration") => small::migration(&view),
        _ => generic::conditions(&view),
    }
}

/// Returns whether a Job or a Pod has ended, well or not; no other kind ever ends.
pub(crate) fn is_finished(kind: &GroupKind, object: &Value) -> bool {
    let view = HealthView::new(object);
    match (&*kind.group, &*kind.kind) {
        ("batch", "Job") => job::is_finished(&view),
        ("", "Pod") => matches!(view.status_text("phase"), "Succeeded" | "Failed"),
        _ => false,
    }
}

/// Returns whether this is the health of a claim that is bound only when a pod uses it
/// (`WaitForFirstConsumer`). Dependents must not wait for it, because one of them may be that very
/// pod.
pub fn is_waiting_for_consumer(health: &Health) -> bool {
    &*health.message == persistent_volume_claim::WAITS_FOR_CONSUMER_MESSAGE
}

#[cfg(test)]
mod tests;
