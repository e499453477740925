//! The customary order of kinds.

use crate::object::GroupKind;

/// Returns the rank of a kind in the order of creation, lower first; deletion runs the other way.
///
/// References decide the waits. The rank only spares refusals by the server where no reference
/// gives an order. A quota comes before the pods that it counts, and a policy before the objects
/// that it guards.
pub(crate) fn rank(kind: &GroupKind) -> u8 {
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace") => 0,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => 1,
        ("scheduling.k8s.io" | "node.k8s.io" | "storage.k8s.io" | "networking.k8s.io", _) => 2,
        ("", "ResourceQuota" | "LimitRange") => 3,
        ("", "ServiceAccount") => 4,
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => 5,
        ("rbac.authorization.k8s.io", _) => 6,
        ("", "ConfigMap" | "Secret") => 7,
        ("", "PersistentVolume") => 8,
        ("", "PersistentVolumeClaim") => 9,
        ("", "Service" | "Endpoints") => 10,
        ("apps", _) | ("", "Pod" | "ReplicationController") => 12,
        ("batch", _) => 13,
        ("policy" | "autoscaling", _) => 14,
        ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => 20,
        _ => 15,
    }
}
