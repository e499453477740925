//! The cost of reading the largest objects that a server accepts: about as much for each field as
//! of small ones.

use std::fs;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::*;

/// The number of fields that fit in an object of 1.5 MB, with two entries that own them.
const MANY: usize = 16_000;

/// The number of items that fit.
const ITEMS: usize = 6_000;

/// Tests run on busy machines without optimisation; what grows with the square of the fields takes
/// minutes there.
const ENOUGH: Duration = Duration::from_secs(4);

/// Returns the time that this thread has had from the processors.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Does something, and fails where that takes too much processor time.
#[track_caller]
pub(super) fn timely<T>(what: &str, done: impl FnOnce() -> T) -> T {
    let begun = processor_time();
    let result = done();
    let taken = processor_time().saturating_sub(begun);
    assert!(taken < ENOUGH, "{what} takes {taken:?}");
    result
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("n{n:05}"))
}

/// Returns an entry that owns all fields of a map.
fn of_map() -> Value {
    let fields: Map<_, _> = names(MANY).map(|name| (format!("f:{name}"), json!({}))).collect();
    json!({ "f:data": fields })
}

fn ports() -> Vec<Value> {
    (0..ITEMS).map(|n| json!({"port": n, "protocol": "TCP", "name": format!("n{n}")})).collect()
}

/// Returns an entry that owns all items of a list, in an order that is not theirs.
fn of_list() -> Value {
    let item = |port: &Value| {
        let keys = json!({"port": port["port"], "protocol": "TCP"});
        (format!("k:{keys}"), json!({".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}))
    };
    let items: Map<_, _> = ports().iter().rev().map(item).collect();
    json!({"f:spec": {"f:ports": items}})
}

fn drifted(taken: &[FieldPath]) -> DriftedPaths<'_> {
    DriftedPaths { taken, ..DriftedPaths::default() }
}

#[test]
fn who_took_all_fields_of_a_large_object_is_soon_reported() {
    let taken = |entry: Value| {
        json!([
            {"manager": "rhumb", "operation": "Apply", "fieldsV1": {"f:metadata": {}}},
            {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-03T00:00:00Z", "fieldsV1": entry},
        ])
    };
    let fields: Vec<_> = names(MANY).map(|name| FieldPath::of_keys(&["data", &name])).collect();
    let words = timely("a map", || drift_words(&taken(of_map()), drifted(&fields), "rhumb")).unwrap();
    let begin = "kubectl-edit changed .data.n00000, .data.n00001, .data.n00002 and 15997 more at";
    assert!(words.starts_with(begin), "{words}");
    let item = |keys: &[(&str, Value)]| {
        let keys = keys.iter().map(|(key, value)| ((*key).into(), value.clone())).collect();
        FieldPath::from(vec![
            PathElement::key("spec"),
            PathElement::key("ports"),
            PathElement::Item(keys),
            PathElement::key("name"),
        ])
    };
    for (what, items) in [
        ("items", (0..ITEMS).map(|n| item(&[("port", n.into()), ("protocol", "TCP".into())])).collect()),
        ("items that leave a key out", (0..ITEMS).map(|n| item(&[("port", n.into())])).collect::<Vec<_>>()),
    ] {
        let words = timely(what, || drift_words(&taken(of_list()), drifted(&items), "rhumb")).unwrap();
        assert!(
            words.starts_with("kubectl-edit changed .spec.ports[port=0") && words.contains("5997 more"),
            "{words}"
        );
    }
}

#[test]
fn what_a_large_object_would_lose_is_soon_known() {
    let live = json!({"data": names(MANY).map(|name| (name, "x".into())).collect::<Map<_, _>>(), "spec": {"ports": ports()}});
    let (map, list) = (of_map().to_string(), of_list().to_string());
    for (what, entry, expected) in
        [("a map", &map, json!({"data": live["data"]})), ("a list", &list, json!({"spec": live["spec"]}))]
    {
        assert_eq!(timely(what, || solely_owned_part(&live, entry, &[entry])), Value::Null, "{what}");
        assert!(timely(what, || solely_owned_part(&live, entry, &[])) == expected, "{what}");
    }
}

#[test]
fn whether_a_large_object_is_covered_is_soon_known() {
    let mut bare = ports();
    for port in &mut bare {
        port.as_object_mut().unwrap().remove("protocol");
    }
    let content = json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": bare}});
    let entry = of_list().to_string();
    assert_eq!(timely("coverage", || check_ownership(&content, Some(&entry))), OwnershipCheck::Complete);
    let other = json!({"spec": {"ports": ports()}});
    let differing = timely("values", || differing_values(&content, &other, &entry, ValueSchema::BuiltIn));
    assert_eq!(differing.len(), ITEMS);
}
