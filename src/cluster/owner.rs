//! Whose object it is, by the marks that it carries.

use super::interner::Interner;
use super::wire::{Entry, Meta};
use crate::engine::{Keep, Owner, RECONCILE, Reconcile};
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
const KEEP: &str = "rhumb.dev/prune";
const FLUX_KEEP: &str = "kustomize.toolkit.fluxcd.io/prune";
const FLUX_RECONCILE: &str = "kustomize.toolkit.fluxcd.io/reconcile";
const FLUX_SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";
const ARGO_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const ARGO_HOOK: &str = "argocd.argoproj.io/hook";

/// Every label and annotation that marks an owner, or asks to be kept.
pub(super) const MARKS: [&str; 20] = [
    KEEP,
    RECONCILE,
    FLUX_KEEP,
    FLUX_RECONCILE,
    FLUX_SSA,
    ARGO_OPTIONS,
    ARGO_HOOK,
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

/// What the object asks for when nobody wants it any more, in our words, Flux's or Argo CD's.
///
/// Flux reads its words from labels too, in any case. What is not to be reconciled is not pruned either.
pub(super) fn keep(meta: &Meta<'_>) -> Keep {
    let says =
        |key: &str, word: &str| meta.annotations.get(key).is_some_and(|t| t.eq_ignore_ascii_case(word));
    let flux = |key: &str| {
        let marks = [meta.labels.get(key), meta.annotations.get(key)];
        let asks = if key == FLUX_SSA { "Ignore" } else { "disabled" };
        marks.into_iter().flatten().any(|text| text.eq_ignore_ascii_case(asks))
    };
    let argo = |key: &str, word: &str| {
        let options = meta.annotations.get(key).unwrap_or_default();
        options.split(',').any(|option| option.trim().eq_ignore_ascii_case(word))
    };
    let ours = says(KEEP, "never") || says(RECONCILE, "disabled");
    let flux = flux(FLUX_KEEP) || flux(FLUX_RECONCILE) || flux(FLUX_SSA);
    if ours || flux || argo(ARGO_OPTIONS, "Prune=false") || argo(ARGO_HOOK, "Skip") {
        Keep::Asked
    } else if argo(ARGO_OPTIONS, "Prune=confirm") {
        Keep::Confirm
    } else if says(KEEP, "first") {
        Keep::First
    } else {
        Keep::No
    }
}

/// What the object asks for by marks that somebody else put there. What we put there ourselves is the word of a
/// manifest, and a newer one counts for more.
///
/// Only `disabled` counts: whether an object is only to be created is for its manifest to say, as Flux has it.
pub(super) fn reconcile(meta: &Meta<'_>, ours: Option<&Entry<'_>>) -> Reconcile {
    let says = |map: &str, key: &str, asks: fn(&str) -> bool| {
        let marks = if map == "labels" { &meta.labels } else { &meta.annotations };
        marks.get(key).is_some_and(asks) && !ours.is_some_and(|entry| entry.owns(&["metadata", map, key]))
    };
    let flux = |map: &str| {
        says(map, FLUX_RECONCILE, |text| text.eq_ignore_ascii_case("disabled"))
            || says(map, FLUX_SSA, |text| text.eq_ignore_ascii_case("Ignore"))
    };
    let skips = |text: &str| text.split(',').any(|hook| hook.trim() == "Skip");
    let annotation = |key, asks| says("annotations", key, asks);
    if annotation(RECONCILE, |text| text == "disabled")
        || annotation(ARGO_HOOK, skips)
        || flux("labels")
        || flux("annotations")
    {
        Reconcile::Disabled
    } else {
        Reconcile::Enabled
    }
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
