//! The kinds of objects with whose deletion data are lost, or others go along.

use crate::object::ObjectId;

/// The kind that `rhumb.dev/recreate` may delete though its pruning needs a confirmation. Its
/// claims stay then: where its `persistentVolumeClaimRetentionPolicy` deletes them, it may not.
const RECREATED_KIND: &str = "StatefulSet";

/// A kind of objects whose deletion loses data, or takes others along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossyKind {
    /// Anything in `kube-system`.
    SystemObject,
    /// A `Namespace`.
    Namespace,
    /// A `CustomResourceDefinition`.
    Definition,
    /// A `PersistentVolumeClaim`.
    VolumeClaim,
    /// A `PersistentVolume`.
    Volume,
    /// A `StatefulSet`.
    StatefulSet,
}

/// Returns the kind of an object whose deletion loses data or takes others along; none for others.
pub(crate) fn lossy_kind(id: &ObjectId) -> Option<LossyKind> {
    if id.namespace() == Some("kube-system") {
        return Some(LossyKind::SystemObject);
    }
    match (id.group(), id.kind()) {
        ("", "Namespace") => Some(LossyKind::Namespace),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(LossyKind::Definition),
        ("", "PersistentVolumeClaim") => Some(LossyKind::VolumeClaim),
        ("", "PersistentVolume") => Some(LossyKind::Volume),
        ("apps", "StatefulSet") => Some(LossyKind::StatefulSet),
        _ => None,
    }
}

/// Returns the kind of an object with which data are lost. None where it may be recreated; its
/// namespace does not count.
pub(crate) fn recreation_loss(id: &ObjectId) -> Option<LossyKind> {
    let kind = ObjectId::new(&id.group_kind(), None, id.name());
    lossy_kind(&kind).filter(|_| id.kind() != RECREATED_KIND)
}
