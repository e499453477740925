use serde_json::{Value, json};

use super::wire::live_of;
use crate::engine::{ObjectOwner, PruneTiming, ReconcilePolicy};
use crate::object::truncate;

const SET: &str = "applyset-x-v1";

fn fields(manager: &str, operation: &str, owns_label: bool) -> Value {
    let labels =
        if owns_label { json!({ "f:applyset.kubernetes.io/part-of": {} }) } else { json!({ "f:app": {} }) };
    json!({ "manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": { "f:labels": labels } } })
}

fn check(labels: Value, annotations: Value, references: Value, entries: &[Value], expected: &ObjectOwner) {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": labels,
            "annotations": annotations, "ownerReferences": references, "managedFields": entries,
        },
    });
    assert_eq!(live_of(&object.to_string()).unwrap().1.owner, *expected, "{object}");
}

#[test]
fn a_label_is_ours_only_where_our_entry_owns_it() {
    let label = || json!({ "applyset.kubernetes.io/part-of": SET });
    let owner =
        |entries: &[Value], expected: ObjectOwner| check(label(), json!({}), json!([]), entries, &expected);
    owner(&[fields("rhumb", "Apply", true)], ObjectOwner::Ours(SET.into()));
    owner(&[fields("kubectl", "Apply", true), fields("rhumb", "Apply", true)], ObjectOwner::Ours(SET.into()));
    owner(&[fields("rhumb", "Apply", false)], ObjectOwner::Labelled(SET.into()));
    owner(&[fields("rhumb", "Update", true)], ObjectOwner::Labelled(SET.into()));
    owner(&[fields("kubectl", "Apply", true)], ObjectOwner::Labelled(SET.into()));
    owner(&[], ObjectOwner::Labelled(SET.into()));
    // The entry without the label: somebody took it off.
    check(json!({}), json!({}), json!([]), &[fields("rhumb", "Apply", false)], &ObjectOwner::Nobody);
}

#[test]
fn marks_of_others_are_named() {
    let foreign = |labels: Value, annotations: Value, words: &str| {
        check(labels.clone(), annotations.clone(), json!([]), &[], &ObjectOwner::Foreign(words.into()));
        // They count for more than a label that may be a copy.
        let mut with_label = labels.clone();
        with_label["applyset.kubernetes.io/part-of"] = json!(SET);
        check(with_label.clone(), annotations.clone(), json!([]), &[], &ObjectOwner::Foreign(words.into()));
        // They count for less than a label that we own: somebody stuck them on later.
        check(
            with_label,
            annotations,
            json!([]),
            &[fields("rhumb", "Apply", true)],
            &ObjectOwner::Ours(SET.into()),
        );
    };
    foreign(
        json!({ "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system" }),
        json!({}),
        "Flux Kustomization flux-system/apps",
    );
    foreign(
        json!({ "helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": "shop" }),
        json!({}),
        "Flux HelmRelease shop/db",
    );
    foreign(
        json!({}),
        json!({ "argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web" }),
        "Argo CD Application shop",
    );
    foreign(json!({ "argocd.argoproj.io/instance": "shop" }), json!({}), "Argo CD Application shop");
    foreign(
        json!({ "app.kubernetes.io/managed-by": "Helm" }),
        json!({ "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop" }),
        "Helm release shop/web",
    );
    foreign(json!({}), json!({ "configmanagement.gke.io/managed": "enabled" }), "Config Sync");
    foreign(json!({}), json!({ "configsync.gke.io/resource-id": "_configmap_shop_a" }), "Config Sync");
    foreign(json!({ "kapp.k14s.io/app": "1700000000" }), json!({}), "kapp app 1700000000");
}

// Anybody who may write the object writes them, and they are in reasons, the log and the status.
#[test]
fn the_words_for_an_owner_are_bounded() {
    let long = "x".repeat(200_000);
    let bound = |text: String| truncate(&text, 512).into();
    let foreign = ObjectOwner::Foreign(bound(format!("Argo CD Application {long}")));
    check(json!({}), json!({ "argocd.argoproj.io/tracking-id": long }), json!([]), &[], &foreign);
    let controlled = ObjectOwner::Controlled(bound(format!("Thing shop/{long}")));
    let references = json!([{ "kind": "Thing", "name": long, "controller": true }]);
    check(json!({}), json!({}), references, &[], &controlled);
}

#[test]
fn words_that_only_resemble_a_mark_are_none() {
    let nobody =
        |labels: Value, annotations: Value| check(labels, annotations, json!([]), &[], &ObjectOwner::Nobody);
    nobody(json!({ "app.kubernetes.io/managed-by": "Helm" }), json!({}));
    nobody(json!({ "app.kubernetes.io/managed-by": "us" }), json!({ "meta.helm.sh/release-name": "web" }));
    nobody(json!({}), json!({ "configmanagement.gke.io/managed": "disabled" }));
    nobody(json!(null), json!("text"));
    nobody(json!({ "argocd.argoproj.io/instance": 5 }), json!([]));
}

#[test]
fn what_a_controller_makes_is_never_ours() {
    let by = |controller: bool| json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-123", "uid": "u", "controller": controller }]);
    let label = || json!({ "applyset.kubernetes.io/part-of": SET });
    let ours = [fields("rhumb", "Apply", true)];
    let controlled = ObjectOwner::Controlled("ReplicaSet shop/web-123".into());
    check(label(), json!({}), by(true), &[], &controlled);
    check(label(), json!({}), by(true), &[fields("rhumb", "Apply", false)], &controlled);
    check(json!({}), json!({}), by(true), &ours, &controlled);
    check(label(), json!({}), by(false), &ours, &ObjectOwner::Ours(SET.into()));
    // Anybody who may write an object may name a controller on it; an object that our entry owns
    // stays ours.
    check(label(), json!({}), by(true), &ours, &ObjectOwner::Ours(SET.into()));
}

#[test]
fn another_owners_mark_on_what_we_wrote_asks_to_leave_it_alone_and_to_keep_it() {
    let entry = |owned: &[(&str, &str)]| {
        let mut fields = json!({});
        for (map, key) in owned {
            fields[format!("f:{map}")][format!("f:{key}")] = json!({});
        }
        json!({ "manager": "rhumb", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": fields } })
    };
    let label = ("labels", "applyset.kubernetes.io/part-of");
    let release = ("annotations", "rhumb.dev/release");
    let argo = "argocd.argoproj.io/instance";
    let check = |owned: &[(&str, &str)], metadata: Value, owner: &ObjectOwner, opt_out, keep| {
        let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        for (key, value) in [("name", "a"), ("namespace", "shop"), ("uid", "u"), ("resourceVersion", "7")] {
            object["metadata"][key] = json!(value);
        }
        object["metadata"]["managedFields"] = json!([entry(owned)]);
        let live = live_of(&object.to_string()).unwrap().1;
        assert_eq!((&live.owner, live.opt_out, live.prune_timing), (owner, opt_out, keep), "{object}");
    };
    let controlled = |labels: Value| {
        let reference =
            json!({ "apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": true });
        json!({ "labels": labels, "ownerReferences": [reference] })
    };
    let labelled = json!({ "applyset.kubernetes.io/part-of": SET });
    let references = Some("metadata.ownerReferences");
    let pod = ObjectOwner::Controlled("Pod shop/x".into());
    check(
        &[label, release],
        controlled(labelled.clone()),
        &ObjectOwner::Ours(SET.into()),
        references,
        PruneTiming::Never,
    );
    check(&[release], controlled(json!({})), &pod, references, PruneTiming::Never);
    check(&[("labels", "app")], controlled(json!({})), &pod, None, PruneTiming::Never);
    // Another tool's mark counts once our label is off.
    let shop = ObjectOwner::Foreign("Argo CD Application shop".into());
    let marked = |labels: Value| json!({ "labels": labels });
    check(&[release], marked(json!({ argo: "shop" })), &shop, Some(argo), PruneTiming::AfterUnit);
    check(&[("labels", "app")], marked(json!({ argo: "shop" })), &shop, None, PruneTiming::AfterUnit);
    let both = json!({ argo: "shop", "applyset.kubernetes.io/part-of": SET });
    check(&[label, release], marked(both), &ObjectOwner::Ours(SET.into()), None, PruneTiming::AfterUnit);
    // A mark from our own manifest is nobody else's.
    check(
        &[release, ("labels", argo)],
        marked(json!({ argo: "shop" })),
        &ObjectOwner::Nobody,
        None,
        PruneTiming::AfterUnit,
    );
}

#[test]
fn who_asks_to_be_kept_is_kept() {
    let check = |labels: Value, annotations: Value, expected: PruneTiming| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7",
                          "labels": labels, "annotations": annotations },
        });
        assert_eq!(live_of(&object.to_string()).unwrap().1.prune_timing, expected, "{object}");
    };
    let says = |key: &str, word: &str, expected| check(json!({}), json!({ key: word }), expected);
    says("rhumb.dev/prune", "never", PruneTiming::Never);
    says("rhumb.dev/prune", "Never", PruneTiming::OnConfirmation);
    // Somebody else's word only ever keeps it.
    says("rhumb.dev/prune", "first", PruneTiming::AfterUnit);
    says("rhumb.dev/reconcile", "disabled", PruneTiming::Never);
    says("kustomize.toolkit.fluxcd.io/prune", "Disabled", PruneTiming::Never);
    says("kustomize.toolkit.fluxcd.io/prune", "enabled", PruneTiming::AfterUnit);
    says("kustomize.toolkit.fluxcd.io/reconcile", "disabled", PruneTiming::Never);
    says("argocd.argoproj.io/sync-options", "ServerSideApply=true, Prune=false", PruneTiming::Never);
    says("argocd.argoproj.io/sync-options", "Prune=confirm", PruneTiming::OnConfirmation);
    says("argocd.argoproj.io/sync-options", "Prune=true,Delete=false", PruneTiming::Never);
    says("argocd.argoproj.io/sync-options", "Delete=confirm", PruneTiming::OnConfirmation);
    says("argocd.argoproj.io/sync-options", "Prune=true", PruneTiming::AfterUnit);
    says("argocd.argoproj.io/sync-options", "prune=false", PruneTiming::OnConfirmation);
    says("helm.sh/resource-policy", "keep", PruneTiming::Never);
    says("helm.sh/resource-policy", "retain", PruneTiming::OnConfirmation);
    says("client.lifecycle.config.k8s.io/deletion", "detach", PruneTiming::Never);
    says("cli-utils.sigs.k8s.io/on-remove", "keep", PruneTiming::Never);
    says("kapp.k14s.io/delete-strategy", "orphan", PruneTiming::Never);
    says("kapp.k14s.io/delete-strategy", "", PruneTiming::AfterUnit);
    says("kapp.k14s.io/noop", "", PruneTiming::Never);
    says("fluxcd.controlplane.io/prune", "disabled", PruneTiming::Never);
    says("argocd.argoproj.io/hook", "Skip", PruneTiming::Never);
    says("argocd.argoproj.io/hook", "PreSync", PruneTiming::AfterUnit);
    // Flux reads its own words from labels too, the others do not.
    check(json!({ "kustomize.toolkit.fluxcd.io/prune": "disabled" }), json!({}), PruneTiming::Never);
    check(json!({ "kustomize.toolkit.fluxcd.io/reconcile": "disabled" }), json!({}), PruneTiming::Never);
    check(json!({ "rhumb.dev/prune": "never" }), json!({}), PruneTiming::AfterUnit);
}

#[test]
fn a_mark_by_somebody_else_says_whether_to_reconcile() {
    let check = |map: &str, key: &'static str, word: &str, manager: &str, expected: ReconcilePolicy| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7", map: { key: word },
                "managedFields": [{ "manager": manager, "operation": "Apply", "fieldsType": "FieldsV1",
                    "fieldsV1": { "f:metadata": { format!("f:{map}"): { format!("f:{key}"): {} } } } }] },
        });
        let expected = (expected == ReconcilePolicy::Disabled).then_some(key);
        assert_eq!(live_of(&object.to_string()).unwrap().1.opt_out, expected, "{object}");
    };
    let says = |key, word, expected| check("annotations", key, word, "somebody", expected);
    says("rhumb.dev/reconcile", "disabled", ReconcilePolicy::Disabled);
    says("rhumb.dev/reconcile", "enabled", ReconcilePolicy::Enabled);
    says("kustomize.toolkit.fluxcd.io/reconcile", "Disabled", ReconcilePolicy::Disabled);
    says("kustomize.toolkit.fluxcd.io/ssa", "Ignore", ReconcilePolicy::Disabled);
    says("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", ReconcilePolicy::Enabled);
    says("argocd.argoproj.io/hook", "PreSync,Skip", ReconcilePolicy::Disabled);
    check(
        "labels",
        "kustomize.toolkit.fluxcd.io/reconcile",
        "disabled",
        "somebody",
        ReconcilePolicy::Disabled,
    );
    check("labels", "rhumb.dev/reconcile", "disabled", "somebody", ReconcilePolicy::Enabled);
    // A word that we wrote was once a manifest's.
    check("annotations", "rhumb.dev/reconcile", "disabled", "rhumb", ReconcilePolicy::Enabled);
    check("labels", "kustomize.toolkit.fluxcd.io/ssa", "Ignore", "rhumb", ReconcilePolicy::Enabled);
}
