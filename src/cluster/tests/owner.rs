use serde_json::{Value, json};

use super::wire::live_of;
use crate::engine::{Keep, Owner, Reconcile};

const SET: &str = "applyset-x-v1";

fn fields(manager: &str, operation: &str, owns_label: bool) -> Value {
    let labels =
        if owns_label { json!({ "f:applyset.kubernetes.io/part-of": {} }) } else { json!({ "f:app": {} }) };
    json!({ "manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": { "f:labels": labels } } })
}

fn check(labels: Value, annotations: Value, references: Value, entries: &[Value], expected: &Owner) {
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
    let owner = |entries: &[Value], expected: Owner| check(label(), json!({}), json!([]), entries, &expected);
    owner(&[fields("rhumb", "Apply", true)], Owner::Ours(SET.into()));
    owner(&[fields("kubectl", "Apply", true), fields("rhumb", "Apply", true)], Owner::Ours(SET.into()));
    owner(&[fields("rhumb", "Apply", false)], Owner::Labelled(SET.into()));
    owner(&[fields("rhumb", "Update", true)], Owner::Labelled(SET.into()));
    owner(&[fields("kubectl", "Apply", true)], Owner::Labelled(SET.into()));
    owner(&[], Owner::Labelled(SET.into()));
    // The entry without the label: somebody took it off.
    check(json!({}), json!({}), json!([]), &[fields("rhumb", "Apply", false)], &Owner::Nobody);
}

#[test]
fn marks_of_others_are_named() {
    let foreign = |labels: Value, annotations: Value, words: &str| {
        check(labels.clone(), annotations.clone(), json!([]), &[], &Owner::Foreign(words.into()));
        // They count for more than a label that may be a copy.
        let mut with_label = labels.clone();
        with_label["applyset.kubernetes.io/part-of"] = json!(SET);
        check(with_label.clone(), annotations.clone(), json!([]), &[], &Owner::Foreign(words.into()));
        // They count for less than a label that we own: somebody stuck them on later.
        check(
            with_label,
            annotations,
            json!([]),
            &[fields("rhumb", "Apply", true)],
            &Owner::Ours(SET.into()),
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

#[test]
fn words_that_only_resemble_a_mark_are_none() {
    let nobody =
        |labels: Value, annotations: Value| check(labels, annotations, json!([]), &[], &Owner::Nobody);
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
    let controlled = Owner::Controlled("ReplicaSet shop/web-123".into());
    check(label(), json!({}), by(true), &[], &controlled);
    check(label(), json!({}), by(true), &[fields("rhumb", "Apply", false)], &controlled);
    check(json!({}), json!({}), by(true), &ours, &controlled);
    check(label(), json!({}), by(false), &ours, &Owner::Ours(SET.into()));
    // Whoever may write an object may name a controller on it: what our entry owns stays ours.
    check(label(), json!({}), by(true), &ours, &Owner::Ours(SET.into()));
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
    let check = |owned: &[(&str, &str)], metadata: Value, owner: &Owner, opt_out, keep| {
        let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        for (key, value) in [("name", "a"), ("namespace", "shop"), ("uid", "u"), ("resourceVersion", "7")] {
            object["metadata"][key] = json!(value);
        }
        object["metadata"]["managedFields"] = json!([entry(owned)]);
        let live = live_of(&object.to_string()).unwrap().1;
        assert_eq!((&live.owner, live.opt_out, live.keep), (owner, opt_out, keep), "{object}");
    };
    let controlled = |labels: Value| {
        let reference =
            json!({ "apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": true });
        json!({ "labels": labels, "ownerReferences": [reference] })
    };
    let labelled = json!({ "applyset.kubernetes.io/part-of": SET });
    let references = Some("metadata.ownerReferences");
    let pod = Owner::Controlled("Pod shop/x".into());
    check(&[label, release], controlled(labelled.clone()), &Owner::Ours(SET.into()), references, Keep::Asked);
    check(&[release], controlled(json!({})), &pod, references, Keep::Asked);
    check(&[("labels", "app")], controlled(json!({})), &pod, None, Keep::Asked);
    // Another tool's mark counts once our label is off.
    let shop = Owner::Foreign("Argo CD Application shop".into());
    let marked = |labels: Value| json!({ "labels": labels });
    check(&[release], marked(json!({ argo: "shop" })), &shop, Some(argo), Keep::No);
    check(&[("labels", "app")], marked(json!({ argo: "shop" })), &shop, None, Keep::No);
    let both = json!({ argo: "shop", "applyset.kubernetes.io/part-of": SET });
    check(&[label, release], marked(both), &Owner::Ours(SET.into()), None, Keep::No);
    // What our own manifest brought is nobody else's mark.
    check(&[release, ("labels", argo)], marked(json!({ argo: "shop" })), &Owner::Nobody, None, Keep::No);
}

#[test]
fn who_asks_to_be_kept_is_kept() {
    let check = |labels: Value, annotations: Value, expected: Keep| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7",
                          "labels": labels, "annotations": annotations },
        });
        assert_eq!(live_of(&object.to_string()).unwrap().1.keep, expected, "{object}");
    };
    let says = |key: &str, word: &str, expected| check(json!({}), json!({ key: word }), expected);
    says("rhumb.dev/prune", "never", Keep::Asked);
    says("rhumb.dev/prune", "Never", Keep::Confirm);
    // Somebody else's word only ever keeps it.
    says("rhumb.dev/prune", "first", Keep::No);
    says("rhumb.dev/reconcile", "disabled", Keep::Asked);
    says("kustomize.toolkit.fluxcd.io/prune", "Disabled", Keep::Asked);
    says("kustomize.toolkit.fluxcd.io/prune", "enabled", Keep::No);
    says("kustomize.toolkit.fluxcd.io/reconcile", "disabled", Keep::Asked);
    says("argocd.argoproj.io/sync-options", "ServerSideApply=true, Prune=false", Keep::Asked);
    says("argocd.argoproj.io/sync-options", "Prune=confirm", Keep::Confirm);
    says("argocd.argoproj.io/sync-options", "Prune=true,Delete=false", Keep::Asked);
    says("argocd.argoproj.io/sync-options", "Delete=confirm", Keep::Confirm);
    says("argocd.argoproj.io/sync-options", "Prune=true", Keep::No);
    says("argocd.argoproj.io/sync-options", "prune=false", Keep::Confirm);
    says("helm.sh/resource-policy", "keep", Keep::Asked);
    says("helm.sh/resource-policy", "retain", Keep::Confirm);
    says("client.lifecycle.config.k8s.io/deletion", "detach", Keep::Asked);
    says("cli-utils.sigs.k8s.io/on-remove", "keep", Keep::Asked);
    says("kapp.k14s.io/delete-strategy", "orphan", Keep::Asked);
    says("kapp.k14s.io/delete-strategy", "", Keep::No);
    says("kapp.k14s.io/noop", "", Keep::Asked);
    says("fluxcd.controlplane.io/prune", "disabled", Keep::Asked);
    says("argocd.argoproj.io/hook", "Skip", Keep::Asked);
    says("argocd.argoproj.io/hook", "PreSync", Keep::No);
    // Flux reads its own words from labels too, the others do not.
    check(json!({ "kustomize.toolkit.fluxcd.io/prune": "disabled" }), json!({}), Keep::Asked);
    check(json!({ "kustomize.toolkit.fluxcd.io/reconcile": "disabled" }), json!({}), Keep::Asked);
    check(json!({ "rhumb.dev/prune": "never" }), json!({}), Keep::No);
}

#[test]
fn a_mark_by_somebody_else_says_whether_to_reconcile() {
    let check = |map: &str, key: &'static str, word: &str, manager: &str, expected: Reconcile| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7", map: { key: word },
                "managedFields": [{ "manager": manager, "operation": "Apply", "fieldsType": "FieldsV1",
                    "fieldsV1": { "f:metadata": { format!("f:{map}"): { format!("f:{key}"): {} } } } }] },
        });
        let expected = (expected == Reconcile::Disabled).then_some(key);
        assert_eq!(live_of(&object.to_string()).unwrap().1.opt_out, expected, "{object}");
    };
    let says = |key, word, expected| check("annotations", key, word, "somebody", expected);
    says("rhumb.dev/reconcile", "disabled", Reconcile::Disabled);
    says("rhumb.dev/reconcile", "enabled", Reconcile::Enabled);
    says("kustomize.toolkit.fluxcd.io/reconcile", "Disabled", Reconcile::Disabled);
    says("kustomize.toolkit.fluxcd.io/ssa", "Ignore", Reconcile::Disabled);
    says("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", Reconcile::Enabled);
    says("argocd.argoproj.io/hook", "PreSync,Skip", Reconcile::Disabled);
    check("labels", "kustomize.toolkit.fluxcd.io/reconcile", "disabled", "somebody", Reconcile::Disabled);
    check("labels", "rhumb.dev/reconcile", "disabled", "somebody", Reconcile::Enabled);
    // What we wrote ourselves is what a manifest said then.
    check("annotations", "rhumb.dev/reconcile", "disabled", "rhumb", Reconcile::Enabled);
    check("labels", "kustomize.toolkit.fluxcd.io/ssa", "Ignore", "rhumb", Reconcile::Enabled);
}
