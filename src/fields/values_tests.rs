use serde_json::{Map, Value, json};

use super::*;
use crate::object::GroupKind;

/// Returns an entry that owns each scalar and each list of a tree.
fn entry_of(tree: &Value) -> Value {
    let fields = |map: &Map<String, Value>| {
        map.iter().map(|(key, value)| (format!("f:{key}"), entry_of(value))).collect::<Map<_, _>>()
    };
    Value::Object(tree.as_object().map(fields).unwrap_or_default())
}

/// Returns the paths at which two objects of a kind differ, by the entry that a content leaves.
fn differing(kind: &str, content: &Value, live: &Value) -> Vec<String> {
    let entry = entry_of(content).to_string();
    let schema = ValueSchema::of(&GroupKind::parse(kind));
    let paths = differing_values(content, live, &entry, schema);
    let is_equal = value_digest(content, &entry, schema) == value_digest(live, &entry, schema);
    assert_eq!(is_equal, paths.is_empty(), "the digest and the paths of {live} disagree");
    let read = value_digest_of_text(&live.to_string(), &entry, schema);
    assert_eq!(read, Some(value_digest(live, &entry, schema)), "the text of {live} is read otherwise");
    paths.iter().map(ToString::to_string).collect()
}

#[test]
fn what_the_server_spells_otherwise_is_no_other_value() {
    #[track_caller]
    fn check(kind: &str, content: Value, live: Value) {
        assert_eq!(differing(kind, &json!({ "spec": content }), &json!({ "spec": live })), [""; 0]);
    }
    let pod = "Pod";
    check(pod, json!({"limits": {"cpu": "1000m"}}), json!({"limits": {"cpu": "1"}}));
    check(pod, json!({"limits": {"cpu": 0.3}}), json!({"limits": {"cpu": "300m"}}));
    check(pod, json!({"requests": {"memory": "1024Mi"}}), json!({"requests": {"memory": "1Gi"}}));
    check(pod, json!({"emptyDir": {"sizeLimit": "1Gi"}}), json!({"emptyDir": {"sizeLimit": 1_073_741_824}}));
    check(
        pod,
        json!({"overhead": {"podFixed": {"cpu": "0.25"}}}),
        json!({"overhead": {"podFixed": {"cpu": "250m"}}}),
    );
    check(
        pod,
        json!({"hostNetwork": false, "value": "", "hostPort": 0, "args": [], "none": null, "labels": {}}),
        json!({}),
    );
    check(pod, json!({"list": [{"a": null, "b": 1.0}]}), json!({"list": [{"b": 1}]}));
    check(pod, json!({"env": [{"name": "A", "value": ""}]}), json!({"env": [{"name": "A"}]}));
    check(
        "NetworkPolicy.networking.k8s.io",
        json!({"ingress": [{"ports": [{"port": 80}]}]}),
        json!({"ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}),
    );
    check(
        "StatefulSet.apps",
        json!({"volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {"storage": "1024Mi"}}]}),
        json!({"volumeClaimTemplates": [{
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "a", "creationTimestamp": null},
            "spec": {"storage": "1Gi", "volumeMode": "Filesystem"}, "status": {"phase": "Pending"},
        }]}),
    );
    // The fields of others, and defaults of fields that nobody names.
    check(pod, json!({"a": 1}), json!({"a": 1, "dnsPolicy": "ClusterFirst", "replicas": 3}));
    check("Thing.example.org", json!({"a": [{"b": 1.0}]}), json!({"a": [{"b": 1}]}));
}

#[test]
fn another_value_is_found_at_its_path() {
    #[track_caller]
    fn check(kind: &str, content: Value, live: Value) {
        assert_eq!(
            differing(kind, &json!({ "spec": { "x": content } }), &json!({ "spec": { "x": live } })),
            [".spec.x"]
        );
    }
    let policy = "NetworkPolicy.networking.k8s.io";
    for kind in ["Pod", policy, "Thing.example.org", "Secret"] {
        check(kind, json!("a"), json!("b"));
        check(kind, json!("1"), json!("1000m"));
        check(kind, json!("1"), json!(1));
        check(kind, json!(["a", "b"]), json!(["ab"]));
        check(kind, json!(["a", "b"]), json!(["b", "a"]));
        check(kind, json!([]), json!([{}]));
        check(kind, json!(false), json!(true));
        check(kind, json!("a"), Value::Null);
        // All pods of this namespace, and all pods of all namespaces.
        check(kind, json!([{"podSelector": {}}]), json!([{"namespaceSelector": {}}]));
        check(kind, json!([{"port": 80}]), json!([{"port": 80, "protocol": "UDP"}]));
    }
    // Of a kind that is not known nobody knows the zero values and defaults either.
    check("Thing.example.org", json!(false), Value::Null);
    check("Thing.example.org", json!([{"b": 1, "c": null}]), json!([{"b": 1}]));
    check("Thing.example.org", json!([{"port": 80}]), json!([{"port": 80, "protocol": "TCP"}]));
}

#[test]
fn a_zero_value_is_another_one_than_none_where_the_server_may_tell_them_apart() {
    #[track_caller]
    fn check(kind: &str, field: &str, content: Value, live: Value) {
        let object = |value| json!({"spec": {"x": [{ field: value }]}});
        assert_eq!(differing(kind, &object(content.clone()), &object(live.clone())), [".spec.x"], "{field}");
        let object = |value| json!({"spec": { field: value }});
        let path = format!(".spec.{field}");
        assert_eq!(
            differing(kind, &object(content.clone()), &object(live)),
            std::slice::from_ref(&path),
            "{field}"
        );
        assert_eq!(differing(kind, &object(content), &object(Value::Null)), [path], "{field}");
    }
    // Each is true, or something else, where nobody says anything.
    for field in
        ["automountServiceAccountToken", "hostUsers", "allowPrivilegeEscalation", "enableServiceLinks"]
    {
        check("Pod", field, json!(false), json!(true));
    }
    check("Deployment.apps", "replicas", json!(0), json!(1));
    check("Pod", "runAsUser", json!(0), json!(1));
    check("PersistentVolumeClaim", "storageClassName", json!(""), json!("fast"));
    // No pods, all pods, and the pods of all namespaces.
    check("PodDisruptionBudget.policy", "selector", json!({}), json!({"matchLabels": {"app": "web"}}));
    check(
        "NetworkPolicy.networking.k8s.io",
        "namespaceSelector",
        json!({}),
        json!({"matchLabels": {"a": ""}}),
    );
}

#[test]
fn names_and_texts_of_a_user_are_compared_to_the_letter() {
    #[track_caller]
    fn check(map: &str, content: Value, live: Value) {
        let inside = |value: Value| json!({"spec": {"list": [{ map: value }]}});
        let one = differing("Deployment.apps", &inside(content.clone()), &inside(live.clone()));
        assert_eq!(one, [".spec.list"], "{map} {content} {live}");
        // Owned as a whole, as an atomic map is.
        let schema = ValueSchema::BuiltIn;
        let entry = json!({"f:spec": { format!("f:{map}"): {} }}).to_string();
        let (content, live) = (json!({"spec": { map: content }}), json!({"spec": { map: live }}));
        assert_eq!(differing_values(&content, &live, &entry, schema).len(), 1, "{map} {content} {live}");
        assert_ne!(value_digest(&content, &entry, schema), value_digest(&live, &entry, schema));
    }
    for map in ["matchLabels", "nodeSelector", "selector", "labels", "annotations", "parameters"] {
        check(map, json!({"worker": ""}), json!({"control-plane": ""}));
        for name in ["value", "namespace", "key", "host"] {
            check(map, json!({ name: "" }), json!({}));
        }
        for (name, text, other) in
            [("storage", "1000m", "1"), ("divisor", "1Ki", "1024"), ("sizeLimit", "1", "1.0")]
        {
            check(map, json!({ name: text }), json!({ name: other }));
        }
        for (name, default) in [("protocol", "TCP"), ("kind", "PersistentVolumeClaim"), ("scope", "*")] {
            check(map, json!({ name: default }), json!({}));
        }
    }
    // JSON of a user within a definition of a kind.
    let schema =
        |default: Value| json!({"openAPIV3Schema": {"properties": {"paused": {"default": default}}}});
    check("versions", json!([{"schema": schema(json!(false))}]), json!([{"schema": schema(Value::Null)}]));
    check("versions", json!([{"schema": schema(json!([]))}]), json!([{"schema": schema(Value::Null)}]));
}

#[test]
fn a_value_that_our_entry_is_made_to_look_past_is_found() {
    #[track_caller]
    fn check(kind: &str, entry: Value, content: Value, live: Value, expected: &[&str]) {
        let schema = ValueSchema::of(&GroupKind::parse(kind));
        let entry = json!({ "f:spec": entry }).to_string();
        let (content, live) = (json!({ "spec": content }), json!({ "spec": live }));
        let paths = differing_values(&content, &live, &entry, schema);
        assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{entry}");
        let digest = value_digest(&live, &entry, schema);
        assert_eq!(digest == value_digest(&content, &entry, schema), expected.is_empty(), "{entry}");
        assert_eq!(value_digest_of_text(&live.to_string(), &entry, schema), Some(digest), "{entry}");
    }
    let below = json!({"f:a": {"f:sub": {}}});
    check("Pod", below.clone(), json!({"a": "1"}), json!({"a": "2"}), &[".spec.a"]);
    check("Pod", below.clone(), json!({"a": false}), json!({"a": true}), &[".spec.a"]);
    check("Pod", below.clone(), json!({"a": {}}), json!({"a": []}), &[".spec.a"]);
    check("Pod", below.clone(), json!({"a": {}}), json!({}), &[".spec.a"]);
    check("Pod", below.clone(), json!({"a": []}), json!({"a": ["x"]}), &[".spec.a"]);
    check("Pod", below, json!({"a": "1"}), json!({"a": "1"}), &[]);
    // Items of an associative list may be others'. Without a schema nobody knows that it is one.
    let set = json!({"f:a": {"v:\"x\"": {}}});
    let (content, live) = (json!({"a": ["x"]}), json!({"a": ["x", "y"]}));
    check("Pod", set.clone(), content.clone(), live.clone(), &[]);
    check("Thing.example.org", set, content, live, &[".spec.a"]);
    let both = json!({"f:a": {"v:\"x\"": {}, "v:\"y\"": {}}});
    check("Thing.example.org", both, json!({"a": ["x", "y"]}), json!({"a": ["y", "x"]}), &[".spec.a"]);
    let item = json!({"f:a": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}});
    let (content, live) = (json!({"a": [{"name": "x"}]}), json!({"a": [{"name": "x", "privileged": true}]}));
    check("Pod", item.clone(), content.clone(), live.clone(), &[]);
    check("Thing.example.org", item, content, live, &[".spec.a"]);
}

#[test]
fn data_are_compared_to_the_letter_but_for_the_line_breaks_in_base64() {
    #[track_caller]
    fn check(kind: &str, content: &str, live: &str, expected: &[&str]) {
        assert_eq!(
            differing(kind, &json!({"data": {"a": content}}), &json!({"data": {"a": live}})),
            expected
        );
    }
    check("Secret", "cmln\naHQ=\n", "cmlnaHQ=", &[]);
    check("Secret", "cmlnaHQ=", "d3Jvbmc=", &[".data.a"]);
    check("ConfigMap", "a\n", "a", &[".data.a"]);
    check("ConfigMap", "1000m", "1", &[".data.a"]);
    check("ConfigMap", "1.0", "1", &[".data.a"]);
    let storage = |text: &str| json!({"data": {"storage": text}});
    assert_eq!(differing("ConfigMap", &storage("1000m"), &storage("1")), [".data.storage"]);
    let limits = |text: &str| json!({"data": {"limits": text}});
    assert_eq!(differing("ConfigMap", &limits(""), &json!({"data": {}})), [".data.limits"]);
}

#[test]
fn items_of_lists_are_distinguished_by_their_keys() {
    let entry = json!({"f:spec": {
        "f:containers": {
            "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}},
            "k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}, "f:image": {}}},
        "f:finalizers": {"v:\"a/b\"": {}}}})
    .to_string();
    let web = json!({"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]});
    let sidecar = json!({"name": "sidecar", "image": "sidecar:1"});
    let object = |containers: Value, finalizers: Value| json!({"spec": {"containers": containers, "finalizers": finalizers}});
    let content = object(json!([web, sidecar]), json!(["a/b"]));
    let check = |live: Value, expected: &[&str]| {
        let paths = differing_values(&content, &live, &entry, ValueSchema::BuiltIn);
        assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{live}");
        let digest = |object: &Value| value_digest(object, &entry, ValueSchema::BuiltIn);
        assert_eq!(digest(&content) == digest(&live), expected.is_empty(), "{live}");
    };
    let injected = json!({"name": "injected", "image": "proxy:1"});
    let defaulted = json!({"name": "web", "image": "web:1", "imagePullPolicy": "Always",
        "ports": [{"containerPort": 80, "protocol": "TCP"}]});
    check(object(json!([injected, defaulted, injected, sidecar]), json!(["c/d", "a/b"])), &[]);
    // Their order has a meaning, as that of init containers has.
    check(object(json!([sidecar, web]), json!(["a/b"])), &[".spec.containers"]);
    let second = json!({"name": "web", "image": "evil:1", "ports": [{"containerPort": 80}]});
    check(object(json!([web, second, sidecar]), json!(["a/b"])), &[r#".spec.containers[name="web"].image"#]);
    let evil = json!({"name": "web", "image": "evil:1", "ports": [{"containerPort": 80}]});
    check(object(json!([evil, sidecar]), json!(["a/b"])), &[r#".spec.containers[name="web"].image"#]);
    let gone = [r#".spec.containers[name="sidecar"].image"#, r#".spec.containers[name="sidecar"].name"#];
    check(object(json!([web]), json!(["a/b"])), &gone);
    check(object(json!([web, sidecar]), json!([])), &[r#".spec.finalizers[="a/b"]"#]);
}

#[test]
fn what_our_entry_owns_beyond_the_content_is_another_value() {
    let (content, live) = (json!({"data": {"a": "1"}}), json!({"data": {"a": "1", "b": "2"}}));
    let entry = entry_of(&live).to_string();
    let paths = differing_values(&content, &live, &entry, ValueSchema::BuiltIn);
    assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), [".data.b"]);
    assert_ne!(
        value_digest(&content, &entry, ValueSchema::BuiltIn),
        value_digest(&live, &entry, ValueSchema::BuiltIn)
    );
}

#[test]
fn the_release_annotation_alone_is_no_value() {
    let object = |release: &str, note: &str| json!({"metadata": {"annotations": {"rhumb.dev/release": release, "note": note}}});
    let paths = differing("ConfigMap", &object("a@1", "x"), &object("a@2", "y"));
    assert_eq!(paths, [".metadata.annotations.note"]);
    assert_eq!(differing("ConfigMap", &object("a@1", "x"), &object("a@2", "x")), [""; 0]);
    // Only there.
    let data = |release: &str| json!({"data": {"annotations": {"rhumb.dev/release": release}}});
    assert_eq!(differing("Thing.example.org", &data("a"), &data("b")).len(), 1);
}

#[test]
fn texts_that_are_no_objects_have_no_digest_and_harm_nobody() {
    let entry = r#"{"f:data":{"f:a":{}}}"#;
    for text in ["", "7", "[]", "\"a\"", "{\"data\":", "{\"data\":[1,2]}", "{\"data\":{\"a\":1e400}}"] {
        let read = value_digest_of_text(text, entry, ValueSchema::BuiltIn);
        let parsed = serde_json::from_str::<Value>(text).ok();
        let expected = parsed.map(|parsed| value_digest(&parsed, entry, ValueSchema::BuiltIn));
        assert_eq!(read, expected, "{text}");
    }
    assert_eq!(value_digest_of_text("{}", "no entry", ValueSchema::BuiltIn), None);
    assert!(
        differing_values(&json!({"a": 1}), &json!({"a": 2}), "no entry", ValueSchema::BuiltIn).is_empty()
    );
    let digest = value_digest(&json!({"data": {"a": "secret"}}), entry, ValueSchema::Secret);
    assert_eq!(format!("{digest:?}"), "ValueDigest(..)");
}
