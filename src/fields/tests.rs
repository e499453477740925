use serde_json::{Value, json};

use super::large_tests::timely;
use super::*;
use crate::object::GroupKind;

/// The entry that the API server writes for [`web`].
const WEB: &str = r#"{
  "f:metadata": {"f:annotations": {"f:rhumb.dev/release": {}}, "f:labels": {"f:app.kubernetes.io/name": {}}},
  "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {
    "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:args": {}, "f:env": {
        "k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}},
        "k:{\"name\":\"B\"}": {".": {}, "f:name": {}, "f:value": {}}},
      "f:image": {}, "f:name": {}, "f:ports": {
        "k:{\"containerPort\":53,\"protocol\":\"SCTP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
        "k:{\"containerPort\":53,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}}}}},
    "f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}, "f:emptyDir": {}, "f:name": {}}}}}}}"#;

fn web() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1", "labels": {"app.kubernetes.io/name": "web"},
            "annotations": {"rhumb.dev/release": "x"}},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {
            "containers": [{"name": "web", "image": "web:1", "args": ["a", "b"], "command": null,
                "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
                "ports": [{"containerPort": 53, "name": "dns"}, {"containerPort": 53, "protocol": "SCTP"}]}],
            "volumes": [{"name": "tmp", "emptyDir": {}}]}}}
    })
}

fn shown(paths: &[FieldPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

#[test]
fn paths_read_as_people_write_them() {
    fn check(path: Vec<PathElement>, expected: &str) {
        assert_eq!(FieldPath::from(path).to_string(), expected);
    }
    let key = PathElement::key;
    check(vec![], ".");
    check(vec![key("spec"), key("replicas")], ".spec.replicas");
    check(
        vec![key("containers"), PathElement::Item(vec![("name".into(), json!("web"))]), key("image")],
        r#".containers[name="web"].image"#,
    );
    let port = vec![("containerPort".into(), json!(80)), ("protocol".into(), json!("TCP"))];
    check(vec![key("ports"), PathElement::Item(port)], r#".ports[containerPort=80,protocol="TCP"]"#);
    check(vec![key("finalizers"), PathElement::Value(json!("a/b"))], r#".finalizers[="a/b"]"#);
    check(vec![key("labels"), key("app.kubernetes.io/name")], r#".labels["app.kubernetes.io/name"]"#);
    check(vec![key("args"), PathElement::Index(2)], ".args[2]");
    check(vec![key("")], r#"[""]"#);
}

#[test]
fn what_the_server_wrote_for_a_content_covers_it() {
    assert_eq!(shown(&uncovered_paths(&web(), Some(WEB))), [""; 0]);
    assert_eq!(check_ownership(&web(), Some(WEB)), OwnershipCheck::Complete);
}

#[test]
fn each_path_taken_by_somebody_is_found() {
    fn check(cut: &[(&str, &str)], expected: &[&str]) {
        let mut entry = WEB.replace('\n', "");
        for (from, to) in cut {
            assert!(entry.contains(from), "{from} is not there");
            entry = entry.replacen(from, to, 1);
        }
        assert_eq!(shown(&uncovered_paths(&web(), Some(&entry))), expected, "{cut:?}");
    }
    let container = r#".spec.template.spec.containers[name="web"]"#;
    check(&[(r#""f:image": {}, "#, "")], &[&format!("{container}.image")]);
    check(&[(r#""f:replicas": {}, "#, "")], &[".spec.replicas"]);
    check(&[(r#""f:args": {}, "#, "")], &[&format!("{container}.args")]);
    check(&[(r#""f:emptyDir": {}, "#, "")], &[r#".spec.template.spec.volumes[name="tmp"].emptyDir"#]);
    check(
        &[(r#""f:labels": {"f:app.kubernetes.io/name": {}}"#, r#""f:labels": {"f:x": {}}"#)],
        &[r#".metadata.labels["app.kubernetes.io/name"]"#],
    );
    check(
        &[(r#""k:{\"name\":\"B\"}""#, r#""k:{\"name\":\"C\"}""#)],
        &[&format!(r#"{container}.env[name="B"]"#)],
    );
    // The one with the protocol left out is the one that nobody else claims.
    check(
        &[(r#""f:containerPort": {}, "f:name": {}"#, r#""f:containerPort": {}"#)],
        &[&format!("{container}.ports[containerPort=53].name")],
    );
    // A node with only "." owns the item and none of its fields.
    check(
        &[(r#"{".": {}, "f:emptyDir": {}, "f:name": {}}"#, r#"{".": {}}"#)],
        &[
            r#".spec.template.spec.volumes[name="tmp"].emptyDir"#,
            r#".spec.template.spec.volumes[name="tmp"].name"#,
        ],
    );
}

#[test]
fn without_a_readable_entry_everything_is_uncovered() {
    fn check(entry: Option<&str>) {
        let expected = [
            r#".metadata.annotations["rhumb.dev/release"]"#,
            r#".metadata.labels["app.kubernetes.io/name"]"#,
            ".spec",
        ];
        assert_eq!(shown(&uncovered_paths(&web(), entry)), expected, "{entry:?}");
    }
    check(None);
    check(Some("{}}"));
    check(Some(""));
    check(Some("null"));
    check(Some(r#"{"f:spec": 1}"#));
    check(Some(r#"{"f:spec": {}"#));
    check(Some(r#"{"f:spec" {}}"#));
    check(Some(r#"{"f:\ud8": {}}"#));
    check(Some(r#"{"f:spec": {},}"#));
    check(Some("\u{feff}{}"));
}

#[test]
fn sets_and_odd_spellings_match_by_meaning() {
    fn check(content: Value, entry: &str, expected: &[&str]) {
        assert_eq!(shown(&uncovered_paths(&content, Some(entry))), expected, "{content} {entry}");
    }
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let entry = r#"{"f:metadata":{"f:finalizers":{".":{},"v:\"a/b\"":{},"v:\"\\u003c\"":{}}}}"#;
    check(finalizers(json!(["a/b", "<"])), entry, &[]);
    check(finalizers(json!(["a/b", "c"])), entry, &[r#".metadata.finalizers[="c"]"#]);
    check(
        finalizers(json!(["a"])),
        r#"{"f:metadata":{"f:finalizers":{".":{}}}}"#,
        &[".metadata.finalizers[0]"],
    );
    check(json!({"spec": {"a<b": 1}}), r#"{"f:spec":{"f:a\u003cb":{}}}"#, &[]);
    check(json!({"spec": {"l": [1, 2]}}), r#"{"f:spec":{"f:l":{"i:0":{}}}}"#, &[".spec.l[0]", ".spec.l[1]"]);
    // Unsorted names, as no server writes them.
    check(json!({"spec": {"a": 1, "b": 1}}), r#"{"f:spec":{"f:b":{},"f:a":{}}}"#, &[]);
    check(json!("text"), "{}", &[]);
}

#[test]
fn an_entry_shaped_otherwise_than_its_values_covers_none_of_them() {
    fn check(content: Value, entry: Value, expected: &[&str]) {
        let entry = json!({ "f:spec": entry }).to_string();
        assert_eq!(shown(&uncovered_paths(&json!({ "spec": content }), Some(&entry))), expected, "{entry}");
    }
    let image = json!({"image": "web:1"});
    check(image.clone(), json!({"f:image": {"f:sub": {}}}), &[".spec.image"]);
    check(image.clone(), json!({"f:image": {".": {}, "f:sub": {}}}), &[".spec.image"]);
    check(image.clone(), json!({"f:image": {".": {}}}), &[".spec.image"]);
    check(image.clone(), json!({"f:image": {"i:0": {}}}), &[".spec.image"]);
    check(image, json!({"f:image": {"unknown": {}}}), &[".spec.image"]);
    let arguments = json!({"args": ["a", "b"]});
    check(arguments.clone(), json!({"f:args": {"i:0": {}, "i:1": {}}}), &[".spec.args[0]", ".spec.args[1]"]);
    check(arguments, json!({"f:args": {"f:0": {}}}), &[".spec.args[0]", ".spec.args[1]"]);
    check(json!({"map": {"a": 1}}), json!({"f:map": {"k:{\"a\":1}": {}}}), &[".spec.map.a"]);
    let env = json!({"env": [{"name": "A", "value": "1"}]});
    let item = |keys: &str| json!({"f:env": {format!("k:{keys}"): {".": {}, "f:name": {}, "f:value": {}}}});
    check(env.clone(), item(r#"{"zzz":1}"#), &[".spec.env[0]"]);
    check(env.clone(), item(r#"{"name":"A","zzz":1}"#), &[r#".spec.env[name="A"]"#]);
    check(env, item(r#"{"name":"A","protocol":"TCP"}"#), &[]);
    // A null needs no cover, and is none either.
    check(json!({"none": null}), json!({"f:none": {"f:sub": {}}}), &[]);
}

#[test]
fn only_empty_values_ask_for_a_lookup_instead_of_a_write() {
    fn check(content: Value, entry: &str, expected: OwnershipCheck) {
        assert_eq!(check_ownership(&content, Some(entry)), expected, "{content}");
    }
    let path = |keys: &[&str]| vec![FieldPath::of_keys(keys)];
    let entry = r#"{"f:spec":{"f:a":{}}}"#;
    check(json!({"spec": {"a": 1, "env": []}}), entry, OwnershipCheck::OnlyEmpty(path(&["spec", "env"])));
    check(
        json!({"spec": {"a": 1, "x": {"y": []}}}),
        entry,
        OwnershipCheck::OnlyEmpty(path(&["spec", "x", "y"])),
    );
    check(
        json!({"spec": {"a": 1, "x": {"y": [], "z": {}}}}),
        entry,
        OwnershipCheck::OnlyEmpty(path(&["spec", "x"])),
    );
    check(json!({"spec": {"a": 1, "env": [], "b": 2}}), entry, OwnershipCheck::Lost(path(&["spec", "b"])));
    check(json!({"spec": {"a": {"deep": {"env": []}}, "b": null}}), entry, OwnershipCheck::Complete);
}

#[test]
fn owning_a_path_is_owning_it_something_below_or_all_around() {
    fn check(path: &[&str], expected: bool) {
        assert_eq!(owns(WEB, path), expected, "{path:?}");
    }
    check(&["spec", "replicas"], true);
    check(&["metadata", "labels", "app.kubernetes.io/name"], true);
    check(&["metadata", "labels", "app.kubernetes.io/part-of"], false);
    check(&["metadata", "labels"], true);
    check(&["spec", "selector", "matchLabels", "a"], true);
    check(&["spec", "paused"], false);
    check(&["status"], false);
    assert!(!owns("{}", &["spec"]));
    assert!(!owns("not json", &["spec"]));
}

#[test]
fn culprits_are_the_present_owners_last_writer_first() {
    let image =
        |nth: &str| json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {nth: {"f:image": {}}}}}}});
    let managed = json!([
        {"manager": "rhumb", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": image("k:{\"name\":\"web\"}")},
        {"manager": "kubectl-set", "operation": "Update", "time": "2026-01-02T00:00:00Z",
            "fieldsV1": image("k:{\"name\":\"web\"}")},
        {"manager": "kube-controller-manager", "operation": "Update", "subresource": "scale",
            "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "other", "operation": "Update", "fieldsV1": image("k:{\"name\":\"sidecar\"}")},
        {"manager": "broken", "fieldsV1": 3}, 7
    ]);
    let lost = uncovered_paths(
        &web(),
        Some(&WEB.replace(r#""f:image": {}, "#, "").replace(r#""f:replicas": {}, "#, "")),
    );
    let found = lost_field_writers(&managed, &lost, "rhumb");
    let culprits: Vec<_> = found.iter().map(|c| (&*c.manager, &*c.subresource, c.path.to_string())).collect();
    assert_eq!(
        culprits,
        [
            ("kube-controller-manager", "scale", ".spec.replicas".to_owned()),
            ("kubectl-set", "", r#".spec.template.spec.containers[name="web"].image"#.to_owned()),
        ]
    );
    assert!(lost_field_writers(&json!("x"), &lost, "rhumb").is_empty());
}

#[test]
fn values_of_secrets_are_never_shown() {
    fn check(kind: &str, value: Value, expected: Value) {
        assert_eq!(mask_value(&GroupKind::new("", kind), &value), expected);
    }
    let kubectl = json!({"annotations": {LAST_APPLIED: "{\"data\":{\"a\":\"aGk=\"}}"}});
    check(
        "Secret",
        json!({"metadata": kubectl, "data": {"a": "aGk="}}),
        json!({"metadata": {}, "data": {"a": MASK}}),
    );
    let copies = json!({"metadata": {"annotations": {"kapp.k14s.io/original": "{\"data\":{\"a\":\"aGk=\"}}",
        "objectset.rio.cattle.io/applied": "H4sIAAAAAAAA/aGk=", "banzaicloud.com/last-applied": "UEsDBBQACAAIaGk=",
        "of/yaml": "\napiVersion: v1\ndata: {a: aGk=}\n", "rhumb.dev/v": "v1"}}});
    check(
        "Secret",
        copies.clone(),
        json!({"metadata": {"annotations": {"kapp.k14s.io/original": MASK,
            "objectset.rio.cattle.io/applied": MASK, "banzaicloud.com/last-applied": MASK, "of/yaml": MASK,
            "rhumb.dev/v": "v1"}}}),
    );
    check("ConfigMap", copies.clone(), copies);
    check("Secret", json!({"stringData": {"a": {"b": 1}}}), json!({"stringData": {"a": MASK}}));
    check("Secret", json!({"data": "aGk=", "stringData": null}), json!({"data": MASK, "stringData": null}));
    check("Secret", json!({"data": ["aGk="], "type": "Opaque"}), json!({"data": MASK, "type": "Opaque"}));
    check("ConfigMap", json!({"data": {"a": "b"}}), json!({"data": {"a": "b"}}));
    // A value is one under any key, and where something else should be.
    check(
        "Secret",
        json!({"stringDate": {"a": "aGk="}, "x": ["y"]}),
        json!({"stringDate": {"a": MASK}, "x": MASK}),
    );
    check("Secret", json!({"immutable": "aGk=", "type": ["aGk="]}), json!({"immutable": MASK, "type": MASK}));
    check(
        "Secret",
        json!({"metadata": "aGk=", "kind": {"a": "b"}}),
        json!({"metadata": MASK, "kind": {"a": MASK}}),
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "immutable": true, "type": "Opaque",
        "metadata": {"name": "a", "labels": {"b": "c"}}});
    check("Secret", secret.clone(), secret);
    check(
        "ConfigMap",
        json!({"metadata": {"annotations": {LAST_APPLIED: "x", "a": "b"}}}),
        json!({"metadata": {
        "annotations": {"a": "b"}}}),
    );
    check("Secret", json!("hostile"), json!("hostile"));
}

#[test]
fn a_changed_secret_value_is_reported_and_not_shown() {
    fn check(before: Value, after: Value, expected: Value) {
        let (old, new) = mask_pair(&GroupKind::new("", "Secret"), &before, &after);
        assert_eq!(new, expected);
        assert!(!old.to_string().contains("c2Vj") && !new.to_string().contains("c2Vj"));
    }
    check(
        json!({"data": {"same": "c2Vj", "new": "c2VjMQ==", "gone": "c2Vj"}}),
        json!({"data": {"same": "c2Vj", "new": "c2VjMg==", "added": "c2Vj"}}),
        json!({"data": {"same": MASK, "new": CHANGED_MASK, "added": MASK}}),
    );
    check(json!({"data": "c2Vj"}), json!({"data": "c2VjMg=="}), json!({"data": CHANGED_MASK}));
    check(json!({"immutable": false}), json!({"immutable": true}), json!({"immutable": true}));
    check(
        json!({"stringDate": {"a": "c2Vj"}}),
        json!({"stringDate": {"a": "c2Vk"}}),
        json!({"stringDate": {"a": CHANGED_MASK}}),
    );
    check(json!({"immutable": true}), json!({"immutable": "c2Vj"}), json!({"immutable": CHANGED_MASK}));
    check(json!({"data": "c2Vj"}), json!({"data": {"a": "c2Vj"}}), json!({"data": {"a": MASK}}));
    check(json!({}), json!({"data": {"a": "c2Vj"}}), json!({"data": {"a": MASK}}));
}

#[test]
fn what_meets_a_chain_of_keys() {
    fn check(path: &[&str], keys: &[&str], expected: bool) {
        assert_eq!(FieldPath::of_keys(path).is_prefix_related(keys), expected, "{path:?} {keys:?}");
    }
    check(&["spec"], &["spec", "template"], true);
    check(&["spec", "template", "spec", "x"], &["spec", "template"], true);
    check(&["spec", "replicas"], &["spec", "template"], false);
    check(&[], &["spec", "template"], true);
}

#[test]
fn deep_and_large_input_is_read_in_bounded_time() {
    let deep = format!("{}{}", "{\"f:a\":".repeat(100_000), "{}".to_owned() + &"}".repeat(100_000));
    assert_eq!(shown(&uncovered_paths(&json!({"a": {"a": 1}}), Some(&deep))), [".a.a"]);
    let items: Vec<Value> =
        (0..20_000).rev().map(|n| json!({"name": format!("n{n}"), "value": "x"})).collect();
    let children: Vec<String> = (0..20_000)
        .map(|n| format!(r#""k:{{\"name\":\"n{n}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}}"#))
        .collect();
    let entry = format!(r#"{{"f:spec":{{"f:list":{{{}}}}}}}"#, children.join(","));
    let object = json!({"spec": {"list": items}});
    timely("a long list", || assert!(uncovered_paths(&object, Some(&entry)).is_empty()));
}

#[test]
fn what_only_we_own_would_be_lost() {
    let object = json!({"data": {"a": "1", "b": "2"}, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}],
        "set": ["p", "q"], "whole": {"c": {"d": 1}}, "default": 5});
    let ours = r#"{"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:gone": {}, "f:whole": {}, "f:set": {"v:\"q\"": {}},
        "f:list": {"k:{\"name\":\"y\"}": {".": {}, "f:name": {}, "f:v": {}}}}"#;
    let check =
        |others: &[&str], expected: Value| assert_eq!(solely_owned_part(&object, ours, others), expected);
    let all = json!({"data": {"a": "1", "b": "2"}, "list": [null, {"name": "y", "v": 2}],
        "set": [null, "q"], "whole": {"c": {"d": 1}}});
    check(&[], all.clone());
    check(&["no entry"], all);
    let theirs = r#"{"f:data": {"f:a": {}}, "f:whole": {"f:c": {}}, "f:set": {"v:\"q\"": {}},
        "f:list": {"k:{\"name\":\"y\"}": {".": {}, "f:name": {}}}}"#;
    check(&[theirs], json!({"data": {"b": "2"}, "list": [null, {"name": "y", "v": 2}]}));
    check(
        &[theirs, r#"{"f:data": {}, "f:list": {"k:{\"name\":\"y\"}": {"f:name": {}, "f:v": {}}}}"#],
        Value::Null,
    );
    assert_eq!(solely_owned_part(&object, "{}", &[]), Value::Null);
}
