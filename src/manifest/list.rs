//! Lists of objects as single values, for those who have no text to name places in.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::decode::{implied_kind, is_list, text_of};

/// Returns the objects of a document in the order of kubectl: a list stands for its items. One that
/// cannot be read as a list stays as it is, and is refused by the reader of its text.
pub(crate) fn listed_objects(document: Value) -> Vec<Value> {
    let mut queue = VecDeque::from([document]);
    let mut objects = Vec::new();
    while let Some(value) = queue.pop_front() {
        match take_items(value) {
            Ok(items) => queue.extend(items),
            Err(object) => objects.push(object),
        }
    }
    objects
}

/// Returns the items of a list, each with its kind, and anything else as it is. Nothing is copied:
/// lists may be in lists.
fn take_items(mut value: Value) -> Result<Vec<Value>, Value> {
    let Some(list) = value.as_object_mut().filter(|list| is_readable_list(list)) else {
        return Err(value);
    };
    let (kind, version) = (text_of(list, "kind"), text_of(list, "apiVersion"));
    let mut items = match list.remove("items") {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(kind) = implied_kind(&kind, item) {
            item.insert("kind".to_owned(), kind.into());
            item.insert("apiVersion".to_owned(), version.as_str().into());
        }
    }
    Ok(items)
}

fn is_readable_list(list: &Map<String, Value>) -> bool {
    let items_fit = match list.get("items") {
        Some(Value::Array(items)) => items.iter().all(Value::is_object),
        items => items.is_some_and(Value::is_null),
    };
    is_list(list) && items_fit
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_stands_for_its_items() {
        let check = |document: Value, expected: &[Value]| {
            assert_eq!(listed_objects(document.clone()), expected, "{document}");
        };
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        check(map("a"), &[map("a")]);
        let inner = json!({"apiVersion": "v1", "kind": "List", "items": [map("c")]});
        check(
            json!({"apiVersion": "v1", "kind": "List", "items": [map("a"), inner, map("b")]}),
            &[map("a"), map("b"), map("c")],
        );
        check(
            json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}]}),
            &[map("a")],
        );
        // A kind may itself end so.
        check(
            json!({"apiVersion": "v1", "kind": "BlockListList", "items": [{"metadata": {"name": "a"}}]}),
            &[json!({"apiVersion": "v1", "kind": "BlockList", "metadata": {"name": "a"}})],
        );
        check(json!({"apiVersion": "v1", "kind": "List", "items": null}), &[]);
        for odd in [
            json!({"kind": "List", "items": {}}),
            json!({"kind": "List", "items": [map("a"), 1]}),
            json!({"kind": "List"}),
            json!({"kind": "Menu", "items": [map("a")]}),
            json!(1),
        ] {
            check(odd.clone(), &[odd]);
        }
    }
}
