//! Properties of coverage over random trees, with an entry written as the API server writes it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::object::canonical_json;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z<\"\\\\é]{0,4}".prop_map(Value::from),
    ]
}

/// Returns a content without nulls and without empty lists, which leave no path or need none.
fn content() -> impl Strategy<Value = Value> {
    let tree = scalar().prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-z./]{1,3}", inner.clone(), 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            prop::collection::btree_map("[a-z]{1,3}", inner, 1..4).prop_map(|map| {
                map.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
            }),
            prop::collection::btree_set("[a-z<]{1,3}", 1..4).prop_map(|set| set.into_iter().collect()),
        ]
    });
    prop::collection::btree_map("[a-z]{1,3}", tree, 1..4)
        .prop_map(|map| json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": map}))
}

/// Returns the ownership tree of a value: maps and lists are granular, sets are sets.
fn tree(value: &Value) -> Value {
    let mut node = Map::new();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                node.insert(format!("f:{key}"), tree(value));
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Some(name) = item.get("name") {
                    let mut child = tree(item);
                    child["."] = json!({});
                    node.insert(format!("k:{}", canonical_json(&json!({"name": name}))), child);
                } else {
                    node.insert(format!("v:{}", canonical_json(item)), json!({}));
                }
            }
        }
        _ => {}
    }
    Value::Object(node)
}

fn entry(content: &Value) -> Value {
    json!({"f:spec": tree(&content["spec"])})
}

/// Returns all ways to cut one node out, with the parents that become empty, as the server does.
fn cuts(node: &Value) -> Vec<Option<Value>> {
    let map = node.as_object().unwrap();
    let mut all = Vec::new();
    for (key, child) in map.iter().filter(|(key, _)| *key != ".") {
        for cut in std::iter::once(None).chain(cuts(child)) {
            let mut rest = map.clone();
            match cut {
                Some(child) => rest.insert(key.clone(), child),
                None => rest.remove(key),
            };
            all.push((!rest.is_empty()).then_some(Value::Object(rest)));
        }
    }
    all
}

/// Returns all objects with one scalar of a value changed into one of these, or one item of a set.
fn changes(value: &Value, others: &[Value]) -> Vec<Value> {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = value.clone();
        change(&mut changed);
        changed
    };
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, inner)| {
                changes(inner, others).into_iter().map(move |inner| with(&|value| value[key] = inner.clone()))
            })
            .collect(),
        Value::Array(items) => {
            let changed = items.iter().enumerate().flat_map(|(nth, item)| {
                changes(item, others).into_iter().map(move |item| with(&|value| value[nth] = item.clone()))
            });
            // Another item of the same name, and the items in another order.
            let second = items.iter().filter(|item| item.is_object()).map(|item| {
                let mut second = item.clone();
                second["value"] = json!("another value");
                with(&|value| value.as_array_mut().unwrap().push(second.clone()))
            });
            let turned = (items.len() > 1 && items[0].is_object())
                .then(|| with(&|value| value.as_array_mut().unwrap().reverse()));
            changed.chain(second).chain(turned).collect()
        }
        _ => others.to_vec(),
    }
}

/// Returns a tree with what somebody who may write it could make of each node.
fn forgeries(node: &Value) -> Vec<Value> {
    let mut all = vec![
        json!({}),
        json!({".": {}}),
        json!({"f:sub": {}}),
        json!({"v:\"sub\"": {}}),
        json!({"i:0": {}, "i:1": {}, "i:2": {}}),
        json!({"k:{\"name\":\"sub\"}": {}}),
    ];
    for (key, child) in node.as_object().into_iter().flatten() {
        if key.starts_with("k:") {
            for other in [r#"k:{"zzz":1}"#.to_owned(), key.replace('}', r#","zzz":1}"#)] {
                let mut node = node.as_object().unwrap().clone();
                let child = node.remove(key).unwrap();
                node.insert(other, child);
                all.push(Value::Object(node));
            }
        }
        for forged in forgeries(child) {
            let mut node = node.clone();
            node[key] = forged;
            all.push(node);
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Checks that no entry makes another value pass for that of the content.
    #[test]
    fn no_forged_entry_hides_another_value(content in content(), pick in any::<prop::sample::Index>()) {
        let forgeries = forgeries(&tree(&content["spec"]));
        let forged = json!({"f:spec": forgeries[pick.index(forgeries.len())]}).to_string();
        // A null may be another spelling of a zero value, where the types are known.
        let others = [json!("another value"), json!({"another": "value"}), json!(null)];
        for (schema, others) in [(ValueSchema::BuiltIn, &others[..2]), (ValueSchema::Custom, &others)] {
            for spec in changes(&content["spec"], others) {
                let mut live = content.clone();
                live["spec"] = spec;
                let is_covered = check_ownership(&content, Some(&forged)) == OwnershipCheck::Complete;
                let is_equal = value_digest(&content, &forged, schema) == value_digest(&live, &forged, schema);
                prop_assert!(!(is_covered && is_equal), "{} passes for {} by {}", live, content, forged);
            }
        }
    }

    #[test]
    fn the_entry_of_a_content_covers_it(content in content()) {
        let entry = entry(&content).to_string();
        prop_assert_eq!(uncovered_paths(&content, Some(&entry)), vec![]);
    }

    #[test]
    fn each_cut_is_noticed(content in content()) {
        for cut in cuts(&entry(&content)) {
            let entry = cut.map(|entry| entry.to_string());
            let lost = uncovered_paths(&content, entry.as_deref());
            prop_assert!(!lost.is_empty(), "{:?}", entry);
            prop_assert!(check_ownership(&content, entry.as_deref()) != OwnershipCheck::Complete);
        }
    }

    /// Checks that looking many paths up at once gives the same as looking each of them up.
    #[test]
    fn who_holds_a_path_is_found(content in content(), other in content()) {
        let owned = entry(&other);
        let paths = uncovered_paths(&content, Some("{\"f:spec\":{\".\":{}}}"));
        let mut all: Vec<FieldPath> = paths.clone();
        for path in &paths {
            let within = path.find(&content).and_then(Value::as_object);
            let below = |key: &String| [path.elements(), &[PathElement::key(key)]].concat().into();
            all.extend(within.into_iter().flat_map(Map::keys).map(below));
        }
        let managed = json!([{"manager": "x", "operation": "Update", "fieldsV1": owned}]);
        let found: Vec<FieldPath> =
            lost_field_writers(&managed, &all, "rhumb").into_iter().map(|writer| writer.path).collect();
        let text = owned.to_string();
        let tree = entry::ManagedEntry::parse(&text).unwrap();
        all.retain(|path| cover::holds(tree.root(), path.elements()));
        prop_assert_eq!(found, all);
    }

    // The server writes none of this; what somebody made it say is read all the same.
    #[test]
    fn no_ownership_makes_it_fail(content in content(), keys in prop::collection::vec("([fkvi]:)?.{0,12}", 1..6)) {
        let nested = keys.iter().rev().fold(json!({}), |inner, key| json!({ key: inner }));
        let beside: Map<_, _> = keys.iter().map(|key| (key.clone(), json!({}))).collect();
        for fields in [nested, json!({"f:spec": beside}), content.clone()] {
            let text = fields.to_string();
            let managed = json!([{"manager": "x", "fieldsV1": fields}, {"manager": 7, "fieldsV1": [fields]}]);
            let paths = uncovered_paths(&content, Some(&text));
            let _ = drift_words(&managed, DriftedPaths { taken: &paths, rewritten: &paths, replaced: &[] }, "rhumb");
            let _ = (solely_owned_part(&content, &text, &[&text]), solely_owned_part(&content, &text, &[]));
            let _ = differing_values(&content, &managed, &text, ValueSchema::Secret);
            let _ = value_digest_of_text(&content.to_string(), &text, ValueSchema::Custom);
        }
    }

    #[test]
    fn no_text_makes_it_fail(content in content(), text in ".{0,60}", json in "[\\[\\]{}\":,.fkvi0a\\\\]{0,40}") {
        for entry in [&text, &json] {
            let _ = (uncovered_paths(&content, Some(entry)), owns(entry, &["spec"]));
        }
    }
}
