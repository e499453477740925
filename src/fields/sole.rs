//! The fields that an object would lose if one of its owners let go.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::children::ChildIndex;
use super::entry::{ChildKey, EntryNode, ManagedEntry, item_keys};
use crate::object::canonical_json;

/// The depth beyond which fields are left out; the API server itself refuses objects nested this
/// deep.
const MAX_FIELD_DEPTH: usize = 500;

/// Returns the part of an object that our FieldsV1 text owns and none of the others does: an apply
/// that leaves it out resets it.
///
/// Items of lists stay at their places: with their keys where something of them is ours alone, else
/// as null. An entry that cannot be read owns nothing.
pub(crate) fn solely_owned_part(object: &Value, ours: &str, others: &[&str]) -> Value {
    let others: Vec<ManagedEntry<'_>> = others.iter().filter_map(|text| ManagedEntry::parse(text)).collect();
    let others: Vec<EntryNode<'_>> = others.iter().map(ManagedEntry::root).collect();
    let own = ManagedEntry::parse(ours);
    own.and_then(|entry| part(object, entry.root(), &others, 0)).unwrap_or_default()
}

fn part(value: &Value, ours: EntryNode<'_>, others: &[EntryNode<'_>], depth: usize) -> Option<Value> {
    if depth > 0 && ours.is_leaf() {
        return others.is_empty().then(|| value.clone());
    }
    if depth >= MAX_FIELD_DEPTH || depth > 0 && others.iter().any(|other| other.is_leaf()) {
        return None;
    }
    match value {
        Value::Object(map) => {
            let (mut kept, others) = (Map::new(), index_children(others));
            for child in ours.children() {
                let ChildKey::Field(name) = child.child() else { continue };
                let theirs: Vec<EntryNode<'_>> =
                    others.iter().filter_map(|other| other.counterpart(child)).collect();
                let inner = map.get(name).and_then(|inner| part(inner, child, &theirs, depth + 1));
                kept.extend(inner.map(|inner| (name.to_owned(), inner)));
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let (mut kept, others) = (vec![Value::Null; items.len()], index_children(others));
            let mut index = ItemIndex::of(items);
            for child in ours.children() {
                let Some(nth) = index.place(child) else { continue };
                let theirs: Vec<EntryNode<'_>> =
                    others.iter().filter_map(|other| other.counterpart(child)).collect();
                kept[nth] = item(&items[nth], child, &theirs, depth + 1).unwrap_or_default();
            }
            kept.iter().any(|item| !item.is_null()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

/// Returns an item of a list, with its keys: they are owned by each owner of anything in it.
fn item(value: &Value, ours: EntryNode<'_>, others: &[EntryNode<'_>], depth: usize) -> Option<Value> {
    let keys = match ours.child() {
        ChildKey::Item(text) => item_keys(text).unwrap_or_default(),
        _ => Map::new(),
    };
    match part(value, ours, others, depth)? {
        Value::Object(mut kept) => {
            kept.extend(keys);
            Some(Value::Object(kept))
        }
        other => Some(other),
    }
}

fn index_children<'e>(nodes: &[EntryNode<'e>]) -> Vec<ChildIndex<'e>> {
    nodes.iter().map(|node| ChildIndex::of(*node)).collect()
}

/// The items of a list that nodes refer to.
struct ItemIndex<'v> {
    items: &'v [Value],
    /// The items by what they have under these keys.
    by_keys: HashMap<Vec<String>, HashMap<String, usize>>,
    by_value: Option<HashMap<String, usize>>,
}

impl<'v> ItemIndex<'v> {
    fn of(items: &'v [Value]) -> Self {
        Self { items, by_keys: HashMap::new(), by_value: None }
    }

    fn place(&mut self, node: EntryNode<'_>) -> Option<usize> {
        let items = self.items;
        match node.child() {
            ChildKey::Item(text) => {
                let keys = item_keys(text)?;
                let names: Vec<String> = keys.keys().cloned().collect();
                let of = |item: &Value| {
                    let own = keys.keys().map(|key| Some((key.clone(), item.get(key)?.clone())));
                    own.collect::<Option<Map<_, _>>>().map(Value::Object)
                };
                let known = self.by_keys.entry(names).or_insert_with(|| positions(items, of));
                known.get(&canonical_json(&Value::Object(keys))).copied()
            }
            ChildKey::Value(text) => {
                let own: Value = serde_json::from_str(text).ok()?;
                let known = self.by_value.get_or_insert_with(|| positions(items, |item| Some(item.clone())));
                known.get(&canonical_json(&own)).copied()
            }
            ChildKey::Index(index) => Some(index).filter(|index| *index < items.len()),
            ChildKey::Field(_) | ChildKey::SelfMarker | ChildKey::Unknown => None,
        }
    }
}

/// Returns the first item of each kind.
fn positions(items: &[Value], of: impl Fn(&Value) -> Option<Value>) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for (nth, item) in items.iter().enumerate() {
        if let Some(own) = of(item) {
            found.entry(canonical_json(&own)).or_insert(nth);
        }
    }
    found
}
