//! What an object would lose if one of its owners let go.

use serde_json::{Map, Value};

use super::entry::{Entry, Kid, Node, item_keys};

/// What lies deeper is left out; the API server itself refuses objects nested this deep.
const MAX_DEPTH: usize = 500;

/// Returns the part of an object that our FieldsV1 text owns and none of the others does: an apply that leaves it
/// out resets it.
///
/// Items of lists stay at their places: with their keys where something of them is ours alone, else as null. An entry
/// that cannot be read owns nothing.
pub fn owned_alone(object: &Value, ours: &str, others: &[&str]) -> Value {
    let others: Vec<Entry<'_>> = others.iter().filter_map(|text| Entry::parse(text)).collect();
    let others: Vec<Node<'_>> = others.iter().map(Entry::root).collect();
    let own = Entry::parse(ours);
    own.and_then(|entry| part(object, entry.root(), &others, 0)).unwrap_or_default()
}

fn part(value: &Value, ours: Node<'_>, others: &[Node<'_>], depth: usize) -> Option<Value> {
    if depth > 0 && ours.is_leaf() {
        return others.is_empty().then(|| value.clone());
    }
    if depth >= MAX_DEPTH || depth > 0 && others.iter().any(|other| other.is_leaf()) {
        return None;
    }
    match value {
        Value::Object(map) => {
            let mut kept = Map::new();
            for kid in ours.kids() {
                let Kid::Field(name) = kid.kid() else { continue };
                let theirs: Vec<Node<'_>> = others.iter().filter_map(|other| twin(*other, kid)).collect();
                let inner = map.get(name).and_then(|inner| part(inner, kid, &theirs, depth + 1));
                kept.extend(inner.map(|inner| (name.to_owned(), inner)));
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let mut kept = vec![Value::Null; items.len()];
            for kid in ours.kids() {
                let Some(nth) = place(items, kid) else { continue };
                let theirs: Vec<Node<'_>> = others.iter().filter_map(|other| twin(*other, kid)).collect();
                kept[nth] = item(&items[nth], kid, &theirs, depth + 1).unwrap_or_default();
            }
            kept.iter().any(|item| !item.is_null()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

/// An item of a list, with its keys: they are owned by each owner of anything in it.
fn item(value: &Value, ours: Node<'_>, others: &[Node<'_>], depth: usize) -> Option<Value> {
    let keys = match ours.kid() {
        Kid::Item(text) => item_keys(text).unwrap_or_default(),
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

/// Which item of a list a node speaks of.
fn place(items: &[Value], node: Node<'_>) -> Option<usize> {
    match node.kid() {
        Kid::Item(text) => {
            let keys = item_keys(text)?;
            items.iter().position(|item| keys.iter().all(|(key, value)| item.get(key) == Some(value)))
        }
        Kid::Value(text) => {
            let own: Value = serde_json::from_str(text).ok()?;
            items.iter().position(|item| *item == own)
        }
        Kid::Index(index) => Some(index).filter(|index| *index < items.len()),
        Kid::Field(_) | Kid::Itself | Kid::Foreign => None,
    }
}

/// The child of another entry's node that speaks of the same.
fn twin<'e>(other: Node<'e>, kid: Node<'_>) -> Option<Node<'e>> {
    let same = |one: Kid<'_>| match (one, kid.kid()) {
        (Kid::Item(theirs), Kid::Item(ours)) => theirs == ours || item_keys(theirs) == item_keys(ours),
        (one, own) => one == own,
    };
    other.kids().find(|one| same(one.kid()))
}
