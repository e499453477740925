use std::sync::Arc;

use serde_json::{Value, json};

use super::world::config;
use crate::engine::{misused, waiting_for_themselves};
use crate::object::{Diagnostic, Gvk, Object, ObjectId, Origin};

fn object(id: ObjectId, annotations: &Value) -> Object {
    Object {
        id,
        gvk: Gvk::new("", "v1", "ConfigMap"),
        body: Arc::new(json!({"metadata": {"annotations": annotations}})),
        origin: Origin { file: "a.yaml".into(), line: 3, column: 1 },
    }
}

fn told(found: &[Diagnostic]) -> Vec<String> {
    found.iter().map(|found| format!("{}: {}", found.severity, found.message)).collect()
}

#[test]
fn words_that_cannot_be_read_hold_their_object_back() {
    fn check(annotations: Value, expected: &[&str]) {
        assert_eq!(told(&misused(&object(config("a"), &annotations))), expected, "{annotations}");
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
    check(json!({"rhumb.dev/waves": "1"}), &["warning: rhumb.dev/waves is no annotation that rhumb knows"]);
    check(
        json!({"argocd.argoproj.io/sync-wave": "one"}),
        &["warning: argocd.argoproj.io/sync-wave is \"one\", which is no whole number; it counts as 0"],
    );
}

#[test]
fn objects_that_wait_for_each_other_are_told_before_anything_is_applied() {
    let on = |what: &str| json!({"rhumb.dev/depends-on": what});
    let circle = [object(config("a"), &on("ConfigMap/b")), object(config("b"), &on("ConfigMap/a"))];
    let cycle = "it waits for itself: ConfigMap shop/a → ConfigMap shop/b → ConfigMap shop/a";
    let expected = [format!("error: ConfigMap shop/a: {cycle}"), format!("error: ConfigMap shop/b: {cycle}")];
    assert_eq!(told(&waiting_for_themselves(&circle)), expected);
    let late =
        [object(config("a"), &on("ConfigMap/b")), object(config("b"), &json!({"rhumb.dev/wave": "2"}))];
    let expected = "error: ConfigMap shop/a: it depends on ConfigMap shop/b, which is in the later wave 2 (its own is 0)";
    assert_eq!(told(&waiting_for_themselves(&late)), [expected]);
    assert_eq!(told(&waiting_for_themselves(&late[1..])), Vec::<String>::new());
}
