//! The owner of an object, derived from labels and annotations.

use super::interner::Interner;
use super::wire::{ManagedFieldsText, ObjectMetadata, OwnerReference};
use crate::engine::{MetadataMap, ObjectOwner, PruneTiming, ReconcilePolicy, ToolRequests};
use crate::object::annotations;
use crate::object::{PART_OF, truncate};

const FLUX_KUSTOMIZATION_LABELS: [&str; 2] =
    ["kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"];
const FLUX_HELM_RELEASE_LABELS: [&str; 2] =
    ["helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace"];
const ARGO_TRACKING_ANNOTATION: &str = "argocd.argoproj.io/tracking-id";
const ARGO_INSTANCE_LABEL: &str = "argocd.argoproj.io/instance";
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
const HELM_ANNOTATIONS: [&str; 2] = ["meta.helm.sh/release-name", "meta.helm.sh/release-namespace"];
const CONFIG_SYNC_MANAGED_ANNOTATION: &str = "configmanagement.gke.io/managed";
const CONFIG_SYNC_ID_ANNOTATION: &str = "configsync.gke.io/resource-id";
const KAPP_LABEL: &str = "kapp.k14s.io/app";

/// The longest words for an owner, in bytes: a kind, a namespace and a name have at most 400.
const MAX_OWNER_BYTES: usize = 512;

/// The field by which an object names its controller.
const CONTROLLER_FIELD: &str = "metadata.ownerReferences";

/// Every label and annotation that marks an owner. Words that ask for something are in the
/// engine's vocabulary.
pub(super) const OWNER_MARKS: [&str; 13] = [
    PART_OF,
    FLUX_KUSTOMIZATION_LABELS[0],
    FLUX_KUSTOMIZATION_LABELS[1],
    FLUX_HELM_RELEASE_LABELS[0],
    FLUX_HELM_RELEASE_LABELS[1],
    ARGO_TRACKING_ANNOTATION,
    ARGO_INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    HELM_ANNOTATIONS[0],
    HELM_ANNOTATIONS[1],
    CONFIG_SYNC_MANAGED_ANNOTATION,
    CONFIG_SYNC_ID_ANNOTATION,
    KAPP_LABEL,
];

/// Judges by metadata; `ours` is our own Apply entry.
///
/// An object is ours as long as our entry owns the label. Another tool's mark or a controller added
/// later changes nothing, as anybody who may write the object can add either. Without our entry a
/// controller's object is never ours, as the controller writes it anew. Another owner's mark then
/// counts for more than a label, which may be copied.
pub(super) fn of(
    meta: &ObjectMetadata<'_>,
    ours: Option<&ManagedFieldsText<'_>>,
    interner: &Interner,
) -> ObjectOwner {
    let member_of = meta.labels.get(PART_OF).map(|set| interner.text(set));
    let words = |words: &str| interner.text(truncate(words, MAX_OWNER_BYTES));
    match (member_of, controller_reference(meta), foreign_mark(meta, ours)) {
        (Some(set), ..) if is_label_owner(ours) => ObjectOwner::Ours(set),
        (_, Some(controller), _) => {
            let (kind, name) = (&controller.kind.0, &controller.name.0);
            let namespace_name = Some(&meta.namespace.0).filter(|namespace| !namespace.is_empty());
            let namespace_name = namespace_name.map_or_else(String::new, |namespace| format!("{namespace}/"));
            ObjectOwner::Controlled(words(&format!("{kind} {namespace_name}{name}")))
        }
        (_, None, Some((_, mark))) => ObjectOwner::Foreign(words(&mark)),
        (Some(set), None, None) => ObjectOwner::Labelled(set),
        (None, None, None) => ObjectOwner::Nobody,
    }
}

fn controller_reference<'a, 'b>(meta: &'a ObjectMetadata<'b>) -> Option<&'a OwnerReference<'b>> {
    meta.owner_references.iter().find(|reference| reference.controller)
}

fn is_label_owner(ours: Option<&ManagedFieldsText<'_>>) -> bool {
    ours.is_some_and(|entry| entry.is_owner_of(&["metadata", "labels", PART_OF]))
}

/// Returns what the object asks for when nobody wants it any more, in our words or those of other
/// tools.
///
/// The word can only keep the object, whoever put it there. A word that it goes first counts where
/// we wrote it ourselves. So does a controller that it is said to belong to.
pub(super) fn keep(meta: &ObjectMetadata<'_>, ours: Option<&ManagedFieldsText<'_>>) -> PruneTiming {
    match ToolRequests::of(meta.marks()).prune_timing {
        _ if controller_reference(meta).is_some() => PruneTiming::Never,
        PruneTiming::BeforeUnit
            if !ours
                .is_some_and(|entry| entry.is_owner_of(&["metadata", "annotations", annotations::PRUNE])) =>
        {
            PruneTiming::AfterUnit
        }
        keep => keep,
    }
}

/// Returns the word by which somebody else asks for the object to be left alone. A word that we put
/// there came from a manifest, and a newer manifest counts for more.
///
/// The manifest says if an object is only to be created, as Flux has it. Where we have written the
/// object, another owner's mark in the place of our label says the same as such a word. So does a
/// controller's.
pub(super) fn opt_out(
    meta: &ObjectMetadata<'_>,
    ours: Option<&ManagedFieldsText<'_>>,
) -> Option<&'static str> {
    let is_disabled = |requests: ToolRequests| requests.reconcile == ReconcilePolicy::Disabled;
    let all = is_disabled(ToolRequests::of(meta.marks()));
    let requests =
        all.then(|| ToolRequests::of(meta.marks().filter(|(map, key, _)| is_foreign(ours, *map, key))));
    let word = requests.filter(|requests| is_disabled(*requests)).and_then(|requests| requests.left_by);
    // Most objects have no such mark, which is cheaper to see than what our entry owns.
    let controlled = controller_reference(meta).map(|_| CONTROLLER_FIELD);
    let claimed = || controlled.or_else(|| foreign_mark(meta, ours).map(|(key, _)| key));
    let owns_release =
        || ours.is_some_and(|entry| entry.is_owner_of(&["metadata", "annotations", annotations::RELEASE]));
    let counts = |_: &&str| if is_label_owner(ours) { controlled.is_some() } else { owns_release() };
    word.or_else(|| claimed().filter(counts))
}

/// Returns whether somebody else put a mark there.
fn is_foreign(ours: Option<&ManagedFieldsText<'_>>, carrier: MetadataMap, key: &str) -> bool {
    let map = if carrier == MetadataMap::Label { "labels" } else { "annotations" };
    !ours.is_some_and(|entry| entry.is_owner_of(&["metadata", map, key]))
}

/// Returns the first mark of another tool: its key, and the owner in words. A mark from our own
/// manifest does not count.
fn foreign_mark(
    meta: &ObjectMetadata<'_>,
    ours: Option<&ManagedFieldsText<'_>>,
) -> Option<(&'static str, String)> {
    let marks = |of: MetadataMap, key: &str| {
        let found = meta.marks().find(|(carrier, name, _)| *carrier == of && *name == key);
        found.filter(|(map, key, _)| is_foreign(ours, *map, key)).map(|(.., value)| value)
    };
    let label = |key: &str| marks(MetadataMap::Label, key);
    let annotation = |key: &str| marks(MetadataMap::Annotation, key);
    let placed = |namespace: Option<&str>, name: &str| match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    if let Some(name) = label(FLUX_KUSTOMIZATION_LABELS[0]) {
        let namespace_name = placed(label(FLUX_KUSTOMIZATION_LABELS[1]), name);
        return Some((FLUX_KUSTOMIZATION_LABELS[0], format!("Flux Kustomization {namespace_name}")));
    }
    if let Some(name) = label(FLUX_HELM_RELEASE_LABELS[0]) {
        return Some((
            FLUX_HELM_RELEASE_LABELS[0],
            format!("Flux HelmRelease {}", placed(label(FLUX_HELM_RELEASE_LABELS[1]), name)),
        ));
    }
    if let Some(tracking) = annotation(ARGO_TRACKING_ANNOTATION) {
        // `<application>:<group>/<kind>:<namespace>/<name>`
        let name = tracking.split(':').next().unwrap_or(tracking);
        return Some((ARGO_TRACKING_ANNOTATION, format!("Argo CD Application {name}")));
    }
    if let Some(name) = label(ARGO_INSTANCE_LABEL) {
        return Some((ARGO_INSTANCE_LABEL, format!("Argo CD Application {name}")));
    }
    // Its label is in many a manifest, so only the annotation has to be theirs.
    if let (Some("Helm"), Some(name)) = (meta.labels.get(MANAGED_BY_LABEL), annotation(HELM_ANNOTATIONS[0])) {
        return Some((
            HELM_ANNOTATIONS[0],
            format!("Helm release {}", placed(annotation(HELM_ANNOTATIONS[1]), name)),
        ));
    }
    if annotation(CONFIG_SYNC_MANAGED_ANNOTATION) == Some("enabled")
        || annotation(CONFIG_SYNC_ID_ANNOTATION).is_some()
    {
        return Some((CONFIG_SYNC_MANAGED_ANNOTATION, "Config Sync".to_owned()));
    }
    label(KAPP_LABEL).map(|app| (KAPP_LABEL, format!("kapp app {app}")))
}
