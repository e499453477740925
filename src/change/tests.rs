//! Differences and their printable forms.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fields::{CHANGED_MASK, LAST_APPLIED, MASK};
use crate::object::annotations::RELEASE;
use crate::object::{GroupKind, ObjectId};

fn id(group: &str, kind: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new(group, kind), Some("shop"), "web")
}

/// Returns each change as one line: path, before, after.
fn lines(changes: &[FieldChange]) -> Vec<String> {
    let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "-".to_owned(), Value::to_string);
    changes
        .iter()
        .map(|change| format!("{} {} {}", change.path, shown(&change.before), shown(&change.after)))
        .collect()
}

fn check(before: Value, after: Value, expected: &[&str]) {
    assert_eq!(lines(&diff_fields(&id("apps", "Deployment"), Some(&before), Some(&after))), expected);
}

#[test]
fn a_content_is_laid_over_what_is_live() {
    fn check(live: Value, content: Value, expected: Value) {
        assert_eq!(merge_content(&live, &content), expected, "{content} over {live}");
    }
    check(json!({"a": 1, "b": 2}), json!({"b": 3, "c": 4}), json!({"a": 1, "b": 3, "c": 4}));
    check(
        containers(json!([{"name": "a", "image": "a:1", "resources": {}}, {"name": "b"}])),
        containers(json!([{"name": "a", "image": "a:2"}, {"name": "c"}])),
        containers(json!([{"name": "a", "image": "a:2", "resources": {}}, {"name": "c"}])),
    );
    check(json!({"args": ["a", "b"]}), json!({"args": ["c"]}), json!({"args": ["c"]}));
    check(json!({"a": [1]}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}}));
}

fn containers(list: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": list}}}})
}

#[test]
fn items_of_lists_are_matched_by_what_names_them() {
    let web = r#".spec.template.spec.containers[name="web"]"#;
    check(
        containers(json!([{"name": "proxy", "image": "p:1"}, {"name": "web", "image": "web:1"}])),
        containers(json!([{"name": "proxy", "image": "p:1"}, {"name": "web", "image": "web:2"}])),
        &[&format!(r#"{web}.image "web:1" "web:2""#)],
    );
    check(
        containers(
            json!([{"name": "web", "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]}]),
        ),
        containers(json!([{"name": "web", "ports": [{"containerPort": 53, "protocol": "UDP", "name": "dns"},
            {"containerPort": 53, "name": "tcp"}]}])),
        &[
            &format!(r#"{web}.ports ["53 TCP","53 UDP"] ["53 UDP","53 TCP"]"#),
            &format!(r#"{web}.ports[containerPort=53,protocol="UDP"].name - "dns""#),
            &format!(r#"{web}.ports[containerPort=53,protocol="TCP"].name - "tcp""#),
        ],
    );
    check(
        containers(json!([{"name": "web", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}])),
        containers(json!([{"name": "web", "env": [{"name": "B", "value": "3"}],
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": true}]}])),
        &[
            &format!(r#"{web}.env[name="B"].value "2" "3""#),
            &format!(r#"{web}.env[name="A"] {{"name":"A","value":"1"}} -"#),
            &format!(r#"{web}.volumeMounts[mountPath="/tmp"].readOnly - true"#),
        ],
    );
    check(
        json!({"spec": {"ports": [{"port": 80, "targetPort": 1}, {"port": 443, "targetPort": 1}]}}),
        json!({"spec": {"ports": [{"port": 80, "targetPort": 2}, {"port": 443, "targetPort": 1}]}}),
        &[r#".spec.ports[port=80,protocol="TCP"].targetPort 1 2"#],
    );
    check(
        json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"a": 1}}]}}),
        json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"a": 2}}]}}),
        &[r#".spec.volumeClaimTemplates[metadata.name="data"].spec.a 1 2"#],
    );
}

#[test]
fn other_lists_are_shown_by_position_or_completely() {
    check(json!({"args": ["a", "b"]}), json!({"args": ["a", "c"]}), &[r#".args ["a","b"] ["a","c"]"#]);
    check(
        json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]}),
        json!({"rules": [{"verbs": ["get"]}, {"verbs": ["watch"]}]}),
        &[r#".rules[1].verbs ["list"] ["watch"]"#],
    );
    check(
        json!({"rules": [{"a": 1}]}),
        json!({"rules": [{"a": 1}, {"a": 2}]}),
        &[r#".rules [{"a":1}] [{"a":1},{"a":2}]"#],
    );
    // Two of one name cannot be distinguished.
    check(
        json!({"l": [{"name": "a", "v": 1}, {"name": "a", "v": 2}]}),
        json!({"l": [{"name": "a", "v": 1}, {"name": "a", "v": 3}]}),
        &[".l[1].v 2 3"],
    );
    check(json!({"l": []}), json!({"l": [{"name": "a"}]}), &[r#".l[name="a"] - {"name":"a"}"#]);
}

#[test]
fn another_order_alone_is_a_change_too() {
    check(
        containers(json!([{"name": "a", "x": 1}, {"name": "b"}, {"name": "gone"}])),
        containers(json!([{"name": "b"}, {"name": "new"}, {"name": "a", "x": 1}])),
        &[
            r#".spec.template.spec.containers ["a","b","gone"] ["b","new","a"]"#,
            r#".spec.template.spec.containers[name="new"] - {"name":"new"}"#,
            r#".spec.template.spec.containers[name="gone"] {"name":"gone"} -"#,
        ],
    );
}

#[test]
fn what_only_the_server_sets_is_no_difference() {
    check(
        json!({"metadata": {"resourceVersion": "1", "generation": 1, "uid": "a", "managedFields": [],
            "creationTimestamp": "x", "annotations": {RELEASE: "1@a"}}, "status": {"a": 1}, "a": null}),
        json!({"metadata": {"resourceVersion": "2", "generation": 2, "uid": "b",
            "annotations": {RELEASE: "2@b"}}, "status": {"a": 2}}),
        &[],
    );
    check(
        json!({"metadata": {"annotations": {LAST_APPLIED: "{}", "a": "1"}}}),
        json!({"metadata": {"annotations": {"a": "2"}, "labels": {"app.kubernetes.io/name": "web"}}}),
        &[r#".metadata.annotations.a "1" "2""#, r#".metadata.labels - {"app.kubernetes.io/name":"web"}"#],
    );
}

#[test]
fn an_object_that_comes_or_goes_is_reported_by_its_top_level() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}}});
    let id = id("", "ConfigMap");
    let expected = [r#".data - {"a":"b"}"#, r#".metadata.labels - {"a":"b"}"#];
    assert_eq!(lines(&diff_fields(&id, None, Some(&object))), expected);
    let expected = [r#".data {"a":"b"} -"#, r#".metadata.labels {"a":"b"} -"#];
    assert_eq!(lines(&diff_fields(&id, Some(&object), None)), expected);
    assert!(diff_fields(&id, None, None).is_empty());
}

#[test]
fn secrets_are_masked_in_every_form() {
    let id = id("", "Secret");
    let before = json!({"data": {"a": "c2VjcmV0", "b": "c2VjcmV0"}});
    let after = json!({"data": {"a": "c2VjcmV0Mg==", "b": "c2VjcmV0", "c": "c2VjcmV0"}});
    let changes = diff_fields(&id, Some(&before), Some(&after));
    assert_eq!(
        lines(&changes),
        [format!(".data.a {MASK:?} {CHANGED_MASK:?}"), format!(".data.c - {MASK:?}"),]
    );
    for created in [diff_fields(&id, None, Some(&after)), diff_fields(&id, Some(&after), None)] {
        assert!(!format!("{created:?}").contains("c2Vj"));
    }
    assert!(!present(&id, &after).to_string().contains("c2Vj"));
}

#[test]
fn an_object_is_shown_without_what_only_the_server_sets() {
    let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "uid": "1",
        "annotations": {RELEASE: "x"}}, "data": {"a": "b"}, "status": {}});
    let expected =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "b"}});
    assert_eq!(present(&id("", "ConfigMap"), &live), expected);
    assert_eq!(present(&id("", "ConfigMap"), &json!([1])), json!([1]));
}

#[test]
fn unified_diffs_show_three_lines_around_a_change() {
    let data = |n: u32, text: &str| {
        json!({"data": (0..12).map(|i| (format!("k{i:02}"), json!(i))).chain([(format!("k{n:02}"), json!(text))])
            .collect::<serde_json::Map<_, _>>()})
    };
    let expected = "@@ -3,7 +3,7 @@
   k01: 1
   k02: 2
   k03: 3
-  k04: old
+  k04: new
   k05: 5
   k06: 6
   k07: 7
";
    assert_eq!(unified_diff(&data(4, "old"), &data(4, "new")), expected);
    assert_eq!(unified_diff(&json!({"a": 1}), &json!({"a": 1})), "");
    assert_eq!(unified_diff(&Value::Null, &json!({"a": 1})), "@@ -0,0 +1 @@\n+a: 1\n");
    assert_eq!(unified_diff(&json!({"a": 1}), &Value::Null), "@@ -1 +0,0 @@\n-a: 1\n");
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<u8>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((0..4_u8, inner.clone()), 0..4).prop_map(|items| {
                items.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
            }),
            prop::collection::btree_map("[a-c.\"]{1,2}|ports|name|metadata|status", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn equal_trees_have_no_fields(tree in tree()) {
        prop_assert!(diff_fields(&id("", "X"), Some(&tree), Some(&tree)).is_empty());
        prop_assert_eq!(unified_diff(&tree, &tree), "");
    }

    #[test]
    fn each_path_is_reported_once_and_differs(before in tree(), after in tree()) {
        let changes = diff_fields(&id("", "X"), Some(&before), Some(&after));
        let mut paths: Vec<_> = changes.iter().map(|change| &change.path).collect();
        paths.sort();
        paths.dedup();
        prop_assert_eq!(paths.len(), changes.len());
        for change in &changes {
            prop_assert!(change.before != change.after);
            prop_assert!(change.before != Some(Value::Null) && change.after != Some(Value::Null));
        }
        let back = diff_fields(&id("", "X"), Some(&after), Some(&before));
        prop_assert_eq!(back.len(), changes.len());
    }

    #[test]
    fn whatever_differs_below_the_top_is_reported(before in tree(), after in tree()) {
        let (before, after) = (json!({"spec": before}), json!({"spec": after}));
        let changes = diff_fields(&id("", "X"), Some(&before), Some(&after));
        let differs = without_nulls(&before) != without_nulls(&after);
        prop_assert_eq!(differs, !changes.is_empty());
    }
}

/// Removes nulls from maps, where they mean nothing; in lists they are items.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
