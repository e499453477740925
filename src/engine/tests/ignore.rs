use std::sync::Arc;

use serde_json::{Value, json};

use super::world::config;
use crate::engine::{
    IgnoredFields, ReconcilePolicy, VersionBinding, check_annotations, effective_content, remove_ignored,
    resolve_ignores, tool_requests,
};
use crate::object::{GroupKind, Gvk, ManifestOrigin, Object, ObjectId};

/// Returns a Deployment that ignores these fields.
fn web(ignored: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web", "example.com/team": "a"},
                     "annotations": {"rhumb.dev/ignore-fields": ignored, "note": "b"}},
        "spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": 1}}, "template": {"spec": {
            "nodeSelector": {}, "containers": [
                {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]},
                {"name": "side,car", "image": "side:1", "args": ["-a", "-b"]}]}}}
    })
}

/// Checks the ignored fields, as JSON pointers.
fn check(ignored: &str, expected: &[&str]) {
    let before = web(ignored);
    let after = remove_ignored(before.clone());
    let mut gone = Vec::new();
    missing(&before, &after, "", &mut gone);
    assert_eq!(gone, expected, "{ignored}");
    assert_eq!(check_annotations(&object(before)), [], "{ignored}");
}

fn missing(before: &Value, after: &Value, path: &str, gone: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let path = format!("{path}/{key}");
                match new.get(key) {
                    Some(kept) => missing(value, kept, &path, gone),
                    None => gone.push(path),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (nth, (old, new)) in old.iter().zip(new).enumerate() {
                missing(old, new, &format!("{path}/{nth}"), gone);
            }
        }
        (old, new) if old != new => gone.push(format!("{path} is {new}")),
        _ => {}
    }
}

fn object(body: Value) -> Object {
    Object {
        id: config("a"),
        gvk: Gvk::new("apps", "v1", "Deployment"),
        body: Arc::new(body),
        origin: ManifestOrigin::new("a.yaml".into(), 3, 1),
    }
}

#[test]
fn each_form_of_a_path_is_read() {
    let image = "/spec/template/spec/containers/0/image";
    let images = [image, "/spec/template/spec/containers/1/image"];
    let list = ".spec.template.spec.containers";
    check("", &[]);
    check("spec.replicas", &["/spec/replicas"]);
    check(".spec.replicas", &["/spec/replicas"]);
    check("/spec/replicas", &["/spec/replicas"]);
    check(" .spec.replicas , /spec/strategy,", &["/spec/replicas", "/spec/strategy"]);
    check(&format!("{list}[name=web].image"), &[image]);
    check(&format!(r#"{list}[name="web"].image"#), &[image]);
    check(&format!("{list}[name='web'].image"), &[image]);
    check(&format!("{list}[0].image"), &[image]);
    check(&format!("{list}[*].image"), &images);
    check("/spec/template/spec/containers/0/image", &[image]);
    check(&format!(r#"{list}[name="side,car"].image,.spec.replicas"#), &["/spec/replicas", images[1]]);
    check(&format!("{list}[name=none].image"), &[]);
    let ports = "/spec/template/spec/containers/0/ports";
    let one = format!(r#"{ports} is [{{"containerPort":80}}]"#);
    check(&format!("{list}[name=web].ports[containerPort=53,protocol=\"UDP\"]"), &[&one]);
    check(&format!("{list}[name=web].ports[1]"), &[&one]);
    check(r#".metadata.labels["example.com/team"]"#, &["/metadata/labels/example.com/team"]);
    check("/metadata/labels/example.com~1team", &["/metadata/labels/example.com/team"]);
    check(".metadata.annotations.note", &["/metadata/annotations/note"]);
    check(".data.nothing", &[]);
}

#[test]
fn a_map_that_becomes_empty_goes_too() {
    check("spec.strategy.rollingUpdate.maxSurge", &["/spec/strategy"]);
    // This one asks for nothing by itself.
    check("spec.template.spec.nodeSelector.x", &[]);
}

#[test]
fn what_may_not_be_ignored_is_reported_and_stays() {
    fn check(ignored: &str, why: &str) {
        let body = web(ignored);
        assert_eq!(remove_ignored(body.clone()), body, "{ignored}");
        let findings: Vec<String> =
            check_annotations(&object(body)).iter().map(|found| found.message.clone()).collect();
        assert_eq!(findings, [format!("rhumb.dev/ignore-fields names {ignored:?}, which {why}")]);
    }
    check("apiVersion", "tells what the object is");
    check("/kind", "tells what the object is");
    check(".metadata.name", "tells which object it is");
    check("metadata", "tells which object it is");
    check(".metadata.namespace", "tells which object it is");
    check(".status.replicas", "is never sent");
    check(".metadata.annotations", "holds what is rhumb's own: name single ones");
    check("/metadata/labels", "holds what is rhumb's own: name single ones");
    check(r#".metadata.annotations["rhumb.dev/wave"]"#, "is rhumb's own");
    check("/metadata/annotations/rhumb.dev~1ignore-fields", "is rhumb's own");
    check("/metadata/labels/applyset.kubernetes.io~1part-of", "tells whose the object is");
    check("[0]", "does not begin at a field of the object");
    for broken in
        [".", "/", ".spec..replicas", "spec.", "spec[", "spec[name=web", "spec[]", "spec[=x]", "spec[name=]"]
    {
        check(broken, "is no path");
    }
    for broken in
        ["spec replicas", "/spec/~2", "/spec//a", "spec[name=\"web]", "spec[name]x", ".spec/replicas"]
    {
        check(broken, "is no path");
    }
}

#[test]
fn what_nobody_else_owns_is_sent_as_it_is_shown() {
    let check = |ignored: &str, live: Value, expected: Value| {
        let content = json!({"metadata": {"annotations": {"rhumb.dev/ignore-fields": ignored}}, "spec": {
            "replicas": 3, "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}});
        let sent = IgnoredFields::of(&content).copy_live_values(content, &json!({ "spec": live }));
        assert_eq!(sent["spec"], expected, "{ignored}");
    };
    let containers = || json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]);
    check(".spec.replicas", json!({"replicas": 7}), json!({"replicas": 7, "containers": containers()}));
    check(".spec.replicas", json!({}), json!({"containers": containers()}));
    let live = || json!({"containers": [{"name": "b", "image": "b:9"}, {"name": "new", "image": "c"}, {"name": "a", "image": "a:9"}]});
    let images = |a: &str, b: &str| json!({"replicas": 3, "containers": [{"name": "a", "image": a}, {"name": "b", "image": b}]});
    check(".spec.containers[name=a].image", live(), images("a:9", "b:1"));
    check(".spec.containers[*].image", live(), images("a:9", "b:9"));
    let live = json!({"containers": [{"name": "b", "image": "b:9"}]});
    let without = json!({"replicas": 3, "containers": [{"name": "a"}, {"name": "b", "image": "b:1"}]});
    check(".spec.containers[name=a].image", live, without);
}

#[test]
fn an_object_may_be_left_alone_in_the_words_of_others() {
    fn check(map: &str, key: &str, word: &str, expected: ReconcilePolicy) {
        assert_eq!(
            tool_requests(&json!({"metadata": {map: {key: word}}})).reconcile,
            expected,
            "{map} {key} {word}"
        );
    }
    let says = |key, word, expected| check("annotations", key, word, expected);
    says("rhumb.dev/reconcile", "disabled", ReconcilePolicy::Disabled);
    says("kustomize.toolkit.fluxcd.io/reconcile", "disabled", ReconcilePolicy::Disabled);
    says("kustomize.toolkit.fluxcd.io/reconcile", "enabled", ReconcilePolicy::Enabled);
    says("kustomize.toolkit.fluxcd.io/ssa", "Ignore", ReconcilePolicy::Disabled);
    says("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", ReconcilePolicy::OnlyCreate);
    says("kustomize.toolkit.fluxcd.io/ssa", "ifnotpresent", ReconcilePolicy::OnlyCreate);
    says("kustomize.toolkit.fluxcd.io/ssa", "Merge", ReconcilePolicy::Enabled);
    says("argocd.argoproj.io/hook", "Skip", ReconcilePolicy::Disabled);
    says("argocd.argoproj.io/hook", "PreSync, Skip", ReconcilePolicy::Disabled);
    says("argocd.argoproj.io/hook", "PreSync", ReconcilePolicy::Enabled);
    says("client.lifecycle.config.k8s.io/mutation", "ignore", ReconcilePolicy::OnlyCreate);
    says("kapp.k14s.io/noop", "", ReconcilePolicy::Disabled);
    says("kapp.k14s.io/exists", "", ReconcilePolicy::Disabled);
    says("kapp.k14s.io/update-strategy", "skip", ReconcilePolicy::OnlyCreate);
    says("argocd.argoproj.io/skip-reconcile", "true", ReconcilePolicy::Enabled);
    says("argocd.argoproj.io/sync-options", "Skip=true", ReconcilePolicy::Enabled);
    check("labels", "kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", ReconcilePolicy::OnlyCreate);
    check("labels", "kustomize.toolkit.fluxcd.io/reconcile", "Disabled", ReconcilePolicy::Disabled);
    check("labels", "rhumb.dev/reconcile", "disabled", ReconcilePolicy::Enabled);
    assert_eq!(tool_requests(&json!({})).reconcile, ReconcilePolicy::Enabled);
}

#[test]
fn only_what_we_own_alone_is_sent_to_an_object_that_is_there() {
    const OURS: &str = r#"{"f:spec": {"f:replicas": {}, "f:paused": {}, "f:containers": {
        "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}}}}}"#;
    let check = |ignored: &str, others: &[&str], spec: Value, binds: VersionBinding| {
        let content = json!({"metadata": {"annotations": {"rhumb.dev/ignore-fields": ignored}}, "spec": {
            "replicas": 3, "selector": "x", "containers": [{"name": "a", "image": "a:1", "tty": true}]}});
        let live = json!({"spec": {"replicas": 7, "paused": false, "selector": "x", "strategy": "default",
            "containers": [{"name": "z"}, {"name": "a", "image": "a:2", "tty": false}]}});
        let settled = resolve_ignores(content, &live, Some(OURS), others);
        assert_eq!((settled.content["spec"].clone(), settled.binds), (spec, binds), "{ignored}");
    };
    let container = |image: &str| json!([{"name": "a", "image": image, "tty": true}]);
    let spec = |replicas: u32, image: &str| json!({"replicas": replicas, "selector": "x", "containers": container(image)});
    check("", &[], spec(3, "a:1"), VersionBinding::AnyVersion);
    check(".spec.replicas", &[], spec(7, "a:1"), VersionBinding::OneVersion);
    let without = json!({"selector": "x", "containers": container("a:1")});
    check(".spec.replicas", &[r#"{"f:spec": {"f:replicas": {}}}"#], without, VersionBinding::AnyVersion);
    check(".spec.containers[name=a].image", &[], spec(3, "a:2"), VersionBinding::OneVersion);
    // Somebody else's item came before it.
    check(".spec.containers[0].image", &[], spec(3, "a:2"), VersionBinding::OneVersion);
    check("/spec/containers/0/image", &[], spec(3, "a:2"), VersionBinding::OneVersion);
    let theirs =
        r#"{"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}}}}}"#;
    let bare = json!({"replicas": 3, "selector": "x", "containers": [{"name": "a", "tty": true}]});
    check(".spec.containers[name=a].image", &[theirs], bare, VersionBinding::AnyVersion);
    // Nobody's: the server's default, which nothing resets.
    let mut without = spec(3, "a:1");
    without["containers"][0].as_object_mut().unwrap().remove("tty");
    check(".spec.containers[name=a].tty", &[], without, VersionBinding::AnyVersion);
    check(".spec.strategy", &[], spec(3, "a:1"), VersionBinding::AnyVersion);
    // Ours from a content before this one, which left it to others and took it out at once.
    let mut kept = spec(3, "a:1");
    kept["paused"] = false.into();
    check(".spec.paused", &[], kept, VersionBinding::OneVersion);
}

#[test]
fn what_is_laid_over_a_rollout_is_not_taken_for_what_others_want() {
    let content = json!({"metadata": {"annotations": {"rhumb.dev/ignore-fields": ".spec.minReadySeconds"}},
        "spec": {"minReadySeconds": 5}});
    let ours = Some(r#"{"f:spec": {"f:minReadySeconds": {}}}"#);
    let live = |annotations: Value| json!({"metadata": {"annotations": annotations}, "spec": {"minReadySeconds": 999}});
    let sent = |annotations| {
        resolve_ignores(content.clone(), &live(annotations), ours, &[]).content["spec"]["minReadySeconds"]
            .clone()
    };
    assert_eq!(sent(json!({})), 999);
    assert_eq!(sent(json!({"rhumb.dev/overlay": "surge=1 step=1"})), 5);
}

#[test]
fn a_field_of_string_data_is_ignored_where_it_goes_in_the_cluster() {
    let body = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "login", "annotations": {"rhumb.dev/ignore-fields": "/stringData/password"}},
        "stringData": {"password": "one", "user": "admin"},
    });
    let secret = Object { id: secret_id("login"), gvk: Gvk::new("", "v1", "Secret"), ..object(body) };
    let content = effective_content(&secret, "set");
    assert_eq!(remove_ignored(content.clone())["data"], json!({"user": "YWRtaW4="}));
    let live = json!({"data": {"password": "dHdv", "user": "YWRtaW4="}});
    assert_eq!(resolve_ignores(content, &live, None, &[]).content["data"], json!({"user": "YWRtaW4="}));
    // Another kind may have a field of that name.
    let other = json!({
        "apiVersion": "example.org/v1", "kind": "Secret",
        "metadata": {"annotations": {"rhumb.dev/ignore-fields": "/stringData/a"}},
        "stringData": {"a": "1", "b": "2"}, "data": {"a": "3"},
    });
    let left = remove_ignored(other);
    assert_eq!((&left["stringData"], &left["data"]), (&json!({"b": "2"}), &json!({"a": "3"})));
}

#[test]
fn the_rules_of_an_aggregated_cluster_role_are_left_to_its_controller() {
    let check = |kind: (&str, &str), aggregation: Value, expected: Value| {
        let (group, name) = kind;
        let id = ObjectId::new(&GroupKind::new(group, name), None, "all");
        let body = json!({"metadata": {"name": "all"}, "aggregationRule": aggregation, "rules": [{"verbs": ["get"]}]});
        let role = Object { id, gvk: Gvk::new(group, "v1", name), ..object(body) };
        assert_eq!(effective_content(&role, "set")["rules"], expected, "{group}/{name}");
    };
    let (cluster_role, other) =
        (("rbac.authorization.k8s.io", "ClusterRole"), ("example.org", "ClusterRole"));
    let (rules, none) = (json!([{"verbs": ["get"]}]), Value::Null);
    let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "all"}}]});
    check(cluster_role, selectors.clone(), none);
    check(cluster_role, json!({"clusterRoleSelectors": []}), rules.clone());
    check(cluster_role, json!({}), rules.clone());
    check(cluster_role, Value::Null, rules.clone());
    check(other, selectors, rules);
}

fn secret_id(name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new("", "Secret"), Some("shop"), name)
}
