use std::sync::Arc;

use serde_json::{Value, json};

use super::world::config;
use crate::engine::{
    AnnotationEffect, KnownSources, TOOL_WORDS, check_annotations, check_variables, find_absent_dependencies,
    find_dependency_cycles,
};
use crate::object::{Diagnostic, Gvk, ManifestOrigin, Object, ObjectId};

fn object(id: ObjectId, annotations: &Value) -> Object {
    Object {
        id,
        gvk: Gvk::new("", "v1", "ConfigMap"),
        body: Arc::new(json!({"metadata": {"annotations": annotations}})),
        origin: ManifestOrigin::new("a.yaml".into(), 3, 1),
    }
}

fn finding_texts(found: &[Diagnostic]) -> Vec<String> {
    found.iter().map(|found| format!("{}: {}", found.severity, found.message)).collect()
}

#[test]
fn words_that_cannot_be_read_hold_their_object_back() {
    fn check(annotations: Value, expected: &[&str]) {
        assert_eq!(
            finding_texts(&check_annotations(&object(config("a"), &annotations))),
            expected,
            "{annotations}"
        );
    }
    check(json!({"rhumb.dev/wave": "-1", "rhumb.dev/prune": "first", "rhumb.dev/recreate": "true"}), &[]);
    check(
        json!({"rhumb.dev/depends-on": "apps/namespaces/shop/Deployment/web, Job/migrate, /Namespace/shop"}),
        &[],
    );
    check(json!({"rhumb.dev/release": "x@y", "example.com/rhumb.dev": "z"}), &[]);
    check(
        json!({"rhumb.dev/wave": "soon"}),
        &["error: rhumb.dev/wave is \"soon\", which is no whole number"],
    );
    check(json!({"rhumb.dev/prune": "Never"}), &["error: rhumb.dev/prune is \"Never\""]);
    check(
        json!({"rhumb.dev/reconcile": "disabled", "rhumb.dev/restart-on-change": "true"}),
        &["warning: rhumb.dev/restart-on-change has no effect on a ConfigMap"],
    );
    check(json!({"rhumb.dev/reconcile": "off"}), &["error: rhumb.dev/reconcile is \"off\""]);
    check(json!({"rhumb.dev/restart-on-change": "yes"}), &["error: rhumb.dev/restart-on-change is \"yes\""]);
    check(
        json!({"rhumb.dev/ignore-fields": "spec.replicas, kind"}),
        &["error: rhumb.dev/ignore-fields names \"kind\", which tells what the object is"],
    );
    check(json!({"rhumb.dev/recreate": "yes"}), &["error: rhumb.dev/recreate is \"yes\""]);
    check(
        json!({"rhumb.dev/depends-on": "web, apps/Deployment/shop/web, ConfigMap/shop/env"}),
        &[
            "error: rhumb.dev/depends-on names \"web\", which is no object",
            "error: rhumb.dev/depends-on names \"apps/Deployment/shop/web\", which is no object",
            "error: rhumb.dev/depends-on names \"ConfigMap/shop/env\", which is no object",
        ],
    );
    check(json!({"rhumb.dev/depends-on": "ConfigMap/a"}), &["error: ConfigMap shop/a depends on itself"]);
    check(json!({"rhumb.dev/waves": "1"}), &["error: rhumb.dev/waves is no annotation that rhumb knows"]);
    check(
        json!({"rhumb.dev/hold": "1-a until=x"}),
        &["warning: rhumb.dev/hold is written on live objects, and does not belong in a manifest"],
    );
}

const MOMENT: &str =
    "which asks to run it as a hook, and rhumb runs only the hooks of charts that it renders";

#[test]
fn a_word_of_another_tool_is_carried_over_or_holds_its_object_back() {
    fn check(map: &str, key: &str, value: &str, expected: &[&str]) {
        let mut object = object(config("a"), &json!({}));
        object.body = Arc::new(json!({"metadata": {map: {key: value}}}));
        assert_eq!(finding_texts(&check_annotations(&object)), expected, "{map} {key} {value}");
    }
    let says = |key: &str, value: &str, expected: &[&str]| check("annotations", key, value, expected);
    for hook in ["PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete", "Skip, PreSync"] {
        let part = hook.trim_start_matches("Skip, ");
        let expected = format!("error: argocd.argoproj.io/hook is {part:?}, {MOMENT}");
        says("argocd.argoproj.io/hook", hook, &[&expected]);
    }
    says("argocd.argoproj.io/hook", "Skip", &[]);
    let hook = format!("error: helm.sh/hook is \"pre-install\", {MOMENT}");
    says("helm.sh/hook", "pre-install", &[&hook]);
    says("helm.sh/hook-weight", "5", &[]);
    says("argocd.argoproj.io/sync-wave", "-1", &[]);
    says(
        "argocd.argoproj.io/sync-wave",
        "abc",
        &["error: argocd.argoproj.io/sync-wave is \"abc\", which is no whole number"],
    );
    says("argocd.argoproj.io/sync-options", "CreateNamespace=true, ServerSideApply=true,Prune=false", &[]);
    says(
        "argocd.argoproj.io/sync-options",
        "Prune=false,Prunee=false",
        &["error: argocd.argoproj.io/sync-options is \"Prunee=false\", which is not understood"],
    );
    says("argocd.argoproj.io/new-word", "1", &["error: argocd.argoproj.io/new-word is not understood"]);
    check("labels", "argocd.argoproj.io/new", "1", &["error: argocd.argoproj.io/new is not understood"]);
    for harmless in ["compare-options", "tracking-id", "refresh", "managed-by", "instance"] {
        says(&format!("argocd.argoproj.io/{harmless}"), "x", &[]);
    }
    check("labels", "kustomize.toolkit.fluxcd.io/name", "apps", &[]);
    check("labels", "toolkit.fluxcd.io/role", "automation", &[]);
    says("toolkit.fluxcd.io/roles", "x", &["error: toolkit.fluxcd.io/roles is not understood"]);
    says("event.toolkit.fluxcd.io/change", "7", &[]);
    says(
        "kustomize.toolkit.fluxcd.io/prune",
        "never",
        &["error: kustomize.toolkit.fluxcd.io/prune is \"never\", which is not understood"],
    );
    says("image.toolkit.fluxcd.io/x", "1", &["error: image.toolkit.fluxcd.io/x is not understood"]);
    says(
        "helm.sh/resource-policy",
        "retain",
        &["error: helm.sh/resource-policy is \"retain\", which is not understood"],
    );
    // Words of others that ask for nothing, as far as can be known.
    says("link.argocd.argoproj.io/docs", "https://x", &[]);
    says("reconcile.fluxcd.io/requestedAt", "now", &[]);
    check(
        "labels",
        "rhumb.dev/prune",
        "never",
        &["error: rhumb.dev/prune is a label, and is read from annotations alone"],
    );
}

#[test]
fn a_variable_that_nobody_filled_in_holds_its_object_back_where_the_api_takes_it() {
    #[track_caller]
    fn check(body: Value, expected: &[&str]) {
        let object = Object { body: Arc::new(body), ..object(config("a"), &json!({})) };
        let found: Vec<_> = check_variables(&object).into_iter().collect();
        assert_eq!(finding_texts(&found), expected, "{}", object.body);
    }
    let error = ["error: spec.host contains the variable ${DOMAIN}, which nobody has filled in"];
    check(json!({"spec": {"host": "shop.${DOMAIN}"}}), &error);
    check(json!({"data": {"a": "${A}"}, "spec": {"host": "shop.${DOMAIN}"}}), &error);
    // It may be meant for a shell or a reader: once for each object.
    check(
        json!({"data": {"a.sh": "cd ${HOME}; echo ${A}"}, "spec": {"text": "see ${B} there"}}),
        &["warning: data.a.sh contains ${HOME}, which stays as it is"],
    );
    check(json!({"data": {"a": "$HOME $${A} $(B) ${1} ${a.b}"}}), &[]);
    for key in ["rhumb.dev/substitute", "kustomize.toolkit.fluxcd.io/substitute"] {
        check(json!({"data": {"a": "${A}"}, "metadata": {"annotations": {key: "disabled"}}}), &[]);
    }
}

#[test]
fn the_reference_names_each_word_of_another_tool() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/annotations.md");
    let reference = std::fs::read_to_string(page).unwrap();
    let missing: Vec<&str> =
        TOOL_WORDS.iter().map(|word| word.key).filter(|key| !reference.contains(key)).collect();
    assert_eq!(missing, Vec::<&str>::new());
    for word in TOOL_WORDS {
        let count = TOOL_WORDS.iter().filter(|other| other.key == word.key).count();
        assert_eq!(count, 1, "{} has two rows", word.key);
        for (value, meaning) in word.meanings() {
            let keeps = matches!(
                meaning,
                AnnotationEffect::Keep(_) | AnnotationEffect::Leave(_) | AnnotationEffect::Recreate
            );
            assert!(
                !keeps || value == "*" || value.is_empty() || reference.contains(value),
                "{}: {value}",
                word.key
            );
        }
    }
}

#[test]
fn objects_that_wait_for_each_other_are_reported_before_anything_is_applied() {
    let on = |what: &str| json!({"rhumb.dev/depends-on": what});
    let circle = [object(config("a"), &on("ConfigMap/b")), object(config("b"), &on("ConfigMap/a"))];
    let cycle = "dependency cycle: ConfigMap shop/a → ConfigMap shop/b → ConfigMap shop/a";
    let expected = [format!("error: ConfigMap shop/a: {cycle}"), format!("error: ConfigMap shop/b: {cycle}")];
    assert_eq!(finding_texts(&find_dependency_cycles(&circle)), expected);
    let long: Vec<Object> = (10..60)
        .map(|n| object(config(&format!("c{n}")), &on(&format!("ConfigMap/c{}", 10 + (n - 9) % 50))))
        .collect();
    let texts_of_long = finding_texts(&find_dependency_cycles(&long));
    assert_eq!(texts_of_long.len(), 50);
    for one in texts_of_long {
        // In full each would be as long as the cycle, and all of them as its square.
        assert!(one.ends_with("ConfigMap shop/c17 → 42 more → ConfigMap shop/c10"), "{one}");
    }
    let late =
        [object(config("a"), &on("ConfigMap/b")), object(config("b"), &json!({"rhumb.dev/wave": "2"}))];
    let expected = "error: ConfigMap shop/a: it depends on ConfigMap shop/b, which is in the later wave 2 (its own is 0)";
    assert_eq!(finding_texts(&find_dependency_cycles(&late)), [expected]);
    assert_eq!(finding_texts(&find_dependency_cycles(&late[1..])), Vec::<String>::new());
}

#[test]
fn a_dependency_that_nobody_brings_is_reported_before_anything_is_applied() {
    let on = |what: &str| json!({"rhumb.dev/depends-on": what});
    let check = |what: &str, sources: KnownSources, expected: &[&str]| {
        let objects = [object(config("a"), &on(what))];
        let named = [config("a"), config("b")].into();
        assert_eq!(finding_texts(&find_absent_dependencies(&objects, &named, sources)), expected, "{what}");
    };
    let waits = "error: ConfigMap shop/a: it depends on ConfigMap shop/c, which no source names: it would wait for ever";
    check("ConfigMap/b, ConfigMap/c", KnownSources::All, &[waits]);
    let may_wait =
        "warning: ConfigMap shop/a: it depends on ConfigMap other/b, which is not among the objects here";
    check("/namespaces/other/ConfigMap/b", KnownSources::Some, &[may_wait]);
    check("ConfigMap/b, /namespaces/shop/ConfigMap/b", KnownSources::All, &[]);
}

#[test]
fn a_cycle_of_eight_is_named_in_full_and_a_longer_one_in_part() {
    let check = |count: usize, expected: &str| {
        let next = |number: usize| format!("ConfigMap/c{}", (number + 1) % count);
        let all: Vec<Object> = (0..count)
            .map(|number| {
                let after = json!({ "rhumb.dev/depends-on": next(number) });
                object(config(&format!("c{number}")), &after)
            })
            .collect();
        let texts = finding_texts(&find_dependency_cycles(&all));
        assert_eq!(texts.len(), count);
        assert!(texts.iter().all(|text| text.ends_with(expected)), "{texts:?}");
    };
    check(8, "ConfigMap shop/c6 → ConfigMap shop/c7 → ConfigMap shop/c0");
    check(9, "ConfigMap shop/c6 → ConfigMap shop/c7 → 1 more → ConfigMap shop/c0");
}

#[test]
fn of_several_later_waves_the_earliest_is_named() {
    let of_wave = |name: &str, wave: &str| object(config(name), &json!({ "rhumb.dev/wave": wave }));
    let after =
        json!({"rhumb.dev/wave": "1", "rhumb.dev/depends-on": "ConfigMap/b, ConfigMap/c, ConfigMap/d"});
    let all = [object(config("a"), &after), of_wave("b", "3"), of_wave("c", "2"), of_wave("d", "1")];
    let expected = "error: ConfigMap shop/a: it depends on ConfigMap shop/c, which is in the later wave 2 (its own is 1)";
    assert_eq!(finding_texts(&find_dependency_cycles(&all)), [expected]);
}
