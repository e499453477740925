//! Hooks as objects among others.

use std::sync::Arc;

use serde_json::json;

use super::hook_events::HOOK;
use super::hooks::{LEFT_ALONE, WEIGHT, annotate, listed_objects, tests_in, translate};
use super::options::UnnamedNamespace;
use super::output::ChartObject;
use crate::input::origin::ObjectOrigin;
use crate::object::annotations::{DEPENDS_ON, HOOK_RELEASE, RECREATE};
use crate::object::{annotation_text, text_at};

fn object(kind: &str, name: &str, hook: &str, weight: &str) -> ChartObject {
    let version = match kind {
        "Job" => "batch/v1",
        "Deployment" => "apps/v1",
        "RoleBinding" => "rbac.authorization.k8s.io/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "Order" => "example.com/v1",
        _ => "v1",
    };
    let mut body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    for (key, text) in [(HOOK, hook), (WEIGHT, weight)] {
        if !text.is_empty() {
            annotate(&mut body, key, text);
        }
    }
    if kind == "Job" {
        body["spec"] = json!({"ttlSecondsAfterFinished": 5, "template": {"spec": {"containers": []}}});
    }
    let origin = ObjectOrigin { root: "web".into(), renderer: "helm".into(), places: Vec::new() };
    ChartObject { body, origin, generated: Vec::new() }
}

/// Returns each object by its name, with the names of those that it waits for.
fn order(objects: Vec<ChartObject>) -> Vec<String> {
    let (objects, _) = translate(objects, "prod", UnnamedNamespace::Release);
    let waits = |object: &ChartObject| {
        let names = annotation_text(&object.body, DEPENDS_ON);
        let names = names.split(", ").map(|name| name.rsplit('/').next().unwrap());
        format!("{}: {}", text_at(&object.body, &["metadata", "name"]), names.collect::<Vec<_>>().join(" "))
    };
    objects.iter().map(waits).collect()
}

#[test]
fn hooks_run_in_the_steps_of_helm() {
    let (pre, post) = ("pre-install,pre-upgrade", "post-install,post-upgrade");
    assert_eq!(
        order(vec![
            object("CustomResourceDefinition", "crd", "", ""),
            object("ConfigMap", "config", "", ""),
            object("Deployment", "web", "", ""),
            object("ServiceAccount", "account", pre, "-5"),
            object("ConfigMap", "script", pre, "-5"),
            object("Job", "second", pre, "5"),
            object("Job", "first", pre, ""),
            object("Job", "first-too", pre, "0"),
            object("Job", "after", post, "x"),
            object("ConfigMap", "last", post, "1"),
        ]),
        [
            "account: ",
            "script: ",
            "first: account script",
            "first-too: account script first",
            "second: account script first first-too",
            "crd: ",
            "config: account script first first-too second",
            "web: account script first first-too second",
            "after: crd config web",
            "last: crd config web after",
        ]
    );
}

#[test]
fn what_a_hook_needs_does_not_wait_for_it() {
    let mut job = object("Job", "migrate", "pre-upgrade", "");
    job.body["spec"]["template"]["spec"] = json!({"serviceAccountName": "web",
        "containers": [{"envFrom": [{"secretRef": {"name": "login"}}]}]});
    let mut binding = object("RoleBinding", "rights", "", "");
    binding.body["subjects"] = json!([{"kind": "ServiceAccount", "name": "web", "namespace": "prod"}]);
    binding.body["roleRef"] = json!({"kind": "Role", "name": "elsewhere"});
    assert_eq!(
        order(vec![
            object("ServiceAccount", "web", "", ""),
            object("Secret", "login", "", ""),
            object("Secret", "other", "", ""),
            binding,
            job,
        ]),
        ["migrate: ", "web: ", "login: ", "other: migrate", "rights: "]
    );
}

#[test]
fn an_object_is_named_as_the_annotation_wants_it() {
    let mut elsewhere = object("ConfigMap", "b", "pre-install", "");
    elsewhere.body["metadata"]["namespace"] = "elsewhere".into();
    let mut definition = object("CustomResourceDefinition", "orders", "", "");
    definition.body["spec"] =
        json!({"group": "example.com", "scope": "Namespaced", "names": {"kind": "Order"}});
    let mut web = object("Deployment", "web", "", "");
    annotate(&mut web.body, DEPENDS_ON, "Secret/own");
    let hooks = vec![
        object("Job", "a", "pre-install", ""),
        object("Namespace", "d", "pre-install", ""),
        object("Order", "c", "pre-install", ""),
        object("Unknown", "u", "pre-install", ""),
        elsewhere,
        definition,
        web,
    ];
    let (objects, _) = translate(hooks, "prod", UnnamedNamespace::Release);
    assert_eq!(
        annotation_text(&objects[6].body, DEPENDS_ON),
        "Secret/own, batch/namespaces/prod/Job/a, /Namespace/d, example.com/namespaces/prod/Order/c, \
         /namespaces/elsewhere/ConfigMap/b"
    );
}

#[test]
fn a_job_runs_again_when_its_release_changes() {
    let run = |image: &str, password: &str| {
        let mut web = object("Deployment", "web", "", "");
        web.body["spec"] = json!({"image": image});
        let mut secret = object("Secret", "login", "", "");
        secret.body["data"] = json!({"password": password});
        let mut config = object("ConfigMap", "made-up", "", "");
        config.body["data"] = json!({"token": password});
        config.generated = vec!["/data/token".to_owned()];
        let job = object("Job", "migrate", "pre-install,pre-upgrade", "");
        let (objects, notices) = translate(vec![web, secret, config, job], "prod", UnnamedNamespace::Release);
        assert_eq!(notices, []);
        objects[0].body.clone()
    };
    let job = run("a", "x");
    assert_eq!(annotation_text(&job, RECREATE), "true");
    assert_eq!(job["metadata"]["annotations"].as_object().unwrap().len(), 1);
    assert_eq!(job["spec"].as_object().unwrap().len(), 1);
    assert_eq!(annotation_text(&job["spec"]["template"], HOOK_RELEASE).len(), 32);
    assert_ne!(job, run("b", "x"));
    // The hash depends on nothing of a Secret, and on nothing that is another one each time.
    assert_eq!(job, run("a", "y"));
}

#[test]
fn what_only_an_installation_runs_is_left_alone_afterwards() {
    let (objects, notices) =
        translate(vec![object("Job", "a", "pre-install", "")], "prod", UnnamedNamespace::Release);
    assert_eq!(notices, []);
    assert_eq!(
        objects[0].body,
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "a", "annotations": {LEFT_ALONE.0: LEFT_ALONE.1}},
            "spec": {"template": {"spec": {"containers": []}}}})
    );
}

#[test]
fn what_is_not_run_as_by_helm_is_reported() {
    let check = |hook: &str, order: &[&str], notices: &[&str]| {
        let (objects, findings) = translate(
            vec![object("Secret", "web", "", ""), object("ConfigMap", "a", hook, "")],
            "prod",
            UnnamedNamespace::Release,
        );
        let names: Vec<_> =
            objects.iter().map(|object| text_at(&object.body, &["metadata", "name"])).collect();
        assert_eq!(names, order, "{hook}");
        let findings: Vec<_> =
            findings.iter().map(|found| format!("{} {}", found.code, found.message)).collect();
        assert_eq!(findings, notices, "{hook}");
    };
    check("pre-install, Pre-Upgrade,pre-delete", &["a", "web"], &[]);
    check("post-install,post-upgrade", &["web", "a"], &[]);
    check(
        "post-install,pre-upgrade",
        &["web", "a"],
        &[
            "hook-order ConfigMap a: it asks to run before an upgrade, and runs after the rest, as at an installation",
        ],
    );
    check(
        "pre-install,post-upgrade",
        &["a", "web"],
        &[
            "hook-order ConfigMap a: it asks to run after an upgrade, and runs before the rest, as at an installation",
        ],
    );
    check(
        "pre-install,post-install",
        &["a", "web"],
        &["hook-order ConfigMap a: it asks to run before and after the rest, and runs once, before"],
    );
    check(
        "pre-upgrade",
        &["a", "web"],
        &["hook-order ConfigMap a: it asks to run at upgrades alone, and runs when the release is new too"],
    );
    check(
        "post-upgrade",
        &["web", "a"],
        &["hook-order ConfigMap a: it asks to run at upgrades alone, and runs when the release is new too"],
    );
    for hook in ["pre-delete", "post-delete,post-rollback", "crd-install"] {
        check(
            hook,
            &["web"],
            &["hook-not-run ConfigMap a: it is a hook for deletion or rollback, which is not run"],
        );
    }
    check("test", &["web"], &["hook-not-run ConfigMap a: it is a test, which is not run"]);
}

#[test]
fn a_template_of_a_test_is_named() {
    let check = |text: &str, expected: Option<u32>| {
        let found = tests_in(&Arc::from("a.yaml"), text);
        assert_eq!(found.map(|found| found.origin.line), expected, "{text}");
    };
    check("a: b\n    \"helm.sh/hook\": test-success\n", Some(2));
    check("'helm.sh/hook': 'pre-install, test'", Some(1));
    check("helm.sh/hook: test", Some(1));
    check("helm.sh/hook: pre-install\nhelm.sh/hook-weight: \"1\" # test", None);
    check("test: helm.sh/hook", None);
}

#[test]
fn a_release_without_hooks_stays_as_it_is() {
    let mut kept = object("Secret", "kept", "", "");
    annotate(&mut kept.body, "helm.sh/resource-policy", "keep");
    let objects = vec![object("Deployment", "web", "", ""), kept];
    assert_eq!(translate(objects.clone(), "prod", UnnamedNamespace::Release), (objects, Vec::new()));
}

#[test]
fn a_name_leaves_the_namespace_open_where_the_source_gives_it() {
    let check = |unnamed, namespace: &str, expected: &str| {
        let mut first = object("Job", "a", "pre-install", "");
        if !namespace.is_empty() {
            first.body["metadata"]["namespace"] = namespace.into();
        }
        let (objects, _) = translate(vec![object("ConfigMap", "b", "", ""), first], "prod", unnamed);
        assert_eq!(annotation_text(&objects[1].body, DEPENDS_ON), expected, "{unnamed:?} {namespace}");
    };
    check(UnnamedNamespace::Source, "", "batch/namespaces//Job/a");
    check(UnnamedNamespace::Source, "other", "batch/namespaces/other/Job/a");
    check(UnnamedNamespace::Release, "", "batch/namespaces/prod/Job/a");
    check(UnnamedNamespace::Release, "other", "batch/namespaces/other/Job/a");
}

#[test]
fn items_of_a_list_are_hooks_as_other_objects_are() {
    let listed = |items: Vec<ChartObject>, hook: &str| {
        let mut list = object("List", "", hook, "");
        list.body["items"] = items.into_iter().map(|item| item.body).collect();
        listed_objects(list).collect::<Vec<_>>()
    };
    let mut objects =
        listed(vec![object("ConfigMap", "web", "", ""), object("Job", "a", "pre-install", "")], "");
    assert_eq!(order(objects.clone()), ["a: ", "web: a"]);
    // A list that is a hook makes hooks of its items, but of those that are others.
    objects =
        listed(vec![object("ConfigMap", "b", "", ""), object("Job", "c", "post-install", "")], "pre-install");
    objects.push(object("Secret", "web", "", ""));
    assert_eq!(order(objects), ["b: ", "web: b", "c: web"]);
}
