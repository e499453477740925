//! The scopes of kinds.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::ManifestItem;
use crate::object::{GroupKind, text_at};

/// The scope of a kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KindScope {
    /// In a namespace.
    Namespaced,
    /// In the cluster itself.
    Cluster,
}

/// The scope of every known kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct KindScopes {
    table: HashMap<GroupKind, KindScope>,
}

impl KindScopes {
    /// Returns a table that knows no kind.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the kinds that Kubernetes brings along, for use without a cluster.
    pub(crate) fn builtin() -> Self {
        let mut scopes = Self::new();
        for (scope, groups) in
            [(KindScope::Cluster, CLUSTER_KINDS), (KindScope::Namespaced, NAMESPACED_KINDS)]
        {
            for (group, kinds) in groups {
                for kind in kinds.split(' ') {
                    scopes.insert(GroupKind::new(group, kind), scope);
                }
            }
        }
        scopes
    }

    /// Sets the scope of a kind.
    pub(crate) fn insert(&mut self, kind: GroupKind, scope: KindScope) {
        self.table.insert(kind, scope);
    }

    /// Returns the scope of a kind, if it is known.
    pub(crate) fn get(&self, kind: &GroupKind) -> Option<KindScope> {
        self.table.get(kind).copied()
    }

    /// Returns whether any kind of a group is known.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.table.keys().any(|kind| *kind.group == *group)
    }

    /// Takes over all that another table knows, in the place of what was known.
    pub(crate) fn update(&mut self, newer: &Self) {
        self.table.extend(newer.table.iter().map(|(kind, scope)| (kind.clone(), *scope)));
    }

    /// Takes the scope that a `CustomResourceDefinition` gives its kind; does nothing with other
    /// items. A known scope, as from a cluster, stays.
    pub(crate) fn add_definition(&mut self, item: &ManifestItem) {
        if !item.gvk.group_kind().is("apiextensions.k8s.io", "CustomResourceDefinition") {
            return;
        }
        let scope = match text_at(&item.body, &["spec", "scope"]) {
            "Namespaced" => KindScope::Namespaced,
            "Cluster" => KindScope::Cluster,
            _ => return,
        };
        let group = text_at(&item.body, &["spec", "group"]);
        let kind = text_at(&item.body, &["spec", "names", "kind"]);
        if !group.is_empty() && !kind.is_empty() {
            self.table.entry(GroupKind::new(group, kind)).or_insert(scope);
        }
    }
}

type ScopeTable = &'static [(&'static str, &'static str)];

/// Kinds of the cluster itself, by group (API reference of Kubernetes 1.36).
const CLUSTER_KINDS: ScopeTable = &[
    ("", "ComponentStatus Namespace Node PersistentVolume"),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration \
         ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("authentication.k8s.io", "SelfSubjectReview TokenReview"),
    ("authorization.k8s.io", "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"),
    ("certificates.k8s.io", "CertificateSigningRequest ClusterTrustBundle"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("networking.k8s.io", "IPAddress IngressClass ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io", "ClusterRole ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

/// Kinds that live in namespaces, by group (API reference of Kubernetes 1.36).
const NAMESPACED_KINDS: ScopeTable = &[
    (
        "",
        "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate \
         ReplicationController ResourceQuota Secret Service ServiceAccount",
    ),
    ("apps", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    ("authorization.k8s.io", "LocalSubjectAccessReview"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob Job"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("coordination.k8s.io", "Lease LeaseCandidate"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("extensions", "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet"),
    ("networking.k8s.io", "Ingress NetworkPolicy"),
    ("policy", "Eviction PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "Role RoleBinding"),
    ("resource.k8s.io", "ResourceClaim ResourceClaimTemplate"),
    ("scheduling.k8s.io", "PodGroup Workload"),
    ("storage.k8s.io", "CSIStorageCapacity"),
];
