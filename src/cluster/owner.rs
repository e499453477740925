//! Whose object it is, by the marks that it carries.

use super::interner::Interner;
use super::wire::{Entry, Meta};
use crate::engine::{Asks, Carrier, Keep, Owner, PRUNE, Reconcile};
use crate::object::PART_OF;

const KUSTOMIZATION: [&str; 2] =
    ["kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"];
const HELM_RELEASE: [&str; 2] = ["helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace"];
const ARGO_TRACKING: &str = "argocd.argoproj.io/tracking-id";
const ARGO_INSTANCE: &str = "argocd.argoproj.io/instance";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const HELM: [&str; 2] = ["meta.helm.sh/release-name", "meta.helm.sh/release-namespace"];
const CONFIG_SYNC_MANAGED: &str = "configmanagement.gke.io/managed";
const CONFIG_SYNC_ID: &str = "configsync.gke.io/resource-id";
const KAPP: &str = "kapp.k14s.io/app";

/// Every label and annotation that marks an owner. What asks for something stands in the engine's vocabulary.
pub(super) const MARKS: [&str; 13] = [
    PART_OF,
    KUSTOMIZATION[0],
    KUSTOMIZATION[1],
    HELM_RELEASE[0],
    HELM_RELEASE[1],
    ARGO_TRACKING,
    ARGO_INSTANCE,
    MANAGED_BY,
    HELM[0],
    HELM[1],
    CONFIG_SYNC_MANAGED,
    CONFIG_SYNC_ID,
    KAPP,
];

/// Judges by metadata; `ours` is our own Apply entry.
///
/// A controller's object is never ours: the controller writes it anew. Otherwise an object is ours as long
/// as our entry owns the label, also when somebody else's mark was added later; and without that another
/// owner's mark counts for more than a label that may be copied.
pub(super) fn of(meta: &Meta<'_>, ours: Option<&Entry<'_>>, interner: &Interner) -> Owner {
    if let Some(controller) = meta.owner_references.iter().find(|reference| reference.controller) {
        let place =
            if meta.namespace.0.is_empty() { String::new() } else { format!("{}/", meta.namespace.0) };
        return Owner::Controlled(
            interner.text(&format!("{} {place}{}", controller.kind.0, controller.name.0)),
        );
    }
    let member_of = meta.labels.get(PART_OF).map(|set| interner.text(set));
    let path = ["metadata", "labels", PART_OF];
    match (member_of, foreign(meta)) {
        (Some(set), _) if ours.is_some_and(|entry| entry.owns(&path)) => Owner::Ours(set),
        (_, Some(mark)) => Owner::Foreign(interner.text(&mark)),
        (Some(set), None) => Owner::Labelled(set),
        (None, None) => Owner::Nobody,
    }
}

/// Returns what the object asks for when nobody wants it any more, in our words or those of other tools.
///
/// Whoever put the word there, it can only keep the object: that it goes first counts where we wrote it ourselves.
pub(super) fn keep(meta: &Meta<'_>, ours: Option<&Entry<'_>>) -> Keep {
    match Asks::of(meta.marks()).keep {
        Keep::First if !ours.is_some_and(|entry| entry.owns(&["metadata", "annotations", PRUNE])) => Keep::No,
        keep => keep,
    }
}

/// The word by which somebody else asks for the object to be left alone. What we put there ourselves is the word of a
/// manifest, and a newer one counts for more.
///
/// Whether an object is only to be created is for its manifest to say, as Flux has it.
pub(super) fn opt_out(meta: &Meta<'_>, ours: Option<&Entry<'_>>) -> Option<&'static str> {
    let is_disabled = |asks: Asks| asks.reconcile == Reconcile::Disabled;
    if !is_disabled(Asks::of(meta.marks())) {
        return None;
    }
    let is_foreign = |(carrier, key, _): &(Carrier, &str, &str)| {
        let map = if *carrier == Carrier::Label { "labels" } else { "annotations" };
        !ours.is_some_and(|entry| entry.owns(&["metadata", map, key]))
    };
    let asks = Asks::of(meta.marks().filter(is_foreign));
    asks.left_by.filter(|_| is_disabled(asks))
}

/// The first mark of another tool, in words.
fn foreign(meta: &Meta<'_>) -> Option<String> {
    let label = |key: &str| meta.labels.get(key);
    let annotation = |key: &str| meta.annotations.get(key);
    let placed = |namespace: Option<&str>, name: &str| match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    if let Some(name) = label(KUSTOMIZATION[0]) {
        return Some(format!("Flux Kustomization {}", placed(label(KUSTOMIZATION[1]), name)));
    }
    if let Some(name) = label(HELM_RELEASE[0]) {
        return Some(format!("Flux HelmRelease {}", placed(label(HELM_RELEASE[1]), name)));
    }
    if let Some(tracking) = annotation(ARGO_TRACKING) {
        // `<application>:<group>/<kind>:<namespace>/<name>`
        return Some(format!("Argo CD Application {}", tracking.split(':').next().unwrap_or(tracking)));
    }
    if let Some(name) = label(ARGO_INSTANCE) {
        return Some(format!("Argo CD Application {name}"));
    }
    if let (Some("Helm"), Some(name)) = (label(MANAGED_BY), annotation(HELM[0])) {
        return Some(format!("Helm release {}", placed(annotation(HELM[1]), name)));
    }
    if annotation(CONFIG_SYNC_MANAGED) == Some("enabled") || annotation(CONFIG_SYNC_ID).is_some() {
        return Some("Config Sync".to_owned());
    }
    label(KAPP).map(|app| format!("kapp app {app}"))
}
