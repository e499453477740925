//! Pairs the items of two lists.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::fields::PathElement;
use crate::object::{canonical_json, value_at};

/// One of the keys that distinguish the items of a list.
struct MergeKey {
    /// The path of the key within the item.
    path: &'static [&'static str],
    /// The default of the key.
    default: Option<&'static str>,
}

const fn key(path: &'static [&'static str]) -> MergeKey {
    MergeKey { path, default: None }
}

const fn key_or_default(path: &'static [&'static str], default: &'static str) -> MergeKey {
    MergeKey { path, default: Some(default) }
}

const NAME_KEY: &[MergeKey] = &[key(&["name"])];

/// The keys of the API's lists, by the name of the field that holds the list. There are more than
/// the API's own merge keys: atomic lists are compared by item too, as this reads better.
const LIST_KEYS: &[(&str, &[MergeKey])] = &[
    ("conditions", &[key(&["type"])]),
    ("hostAliases", &[key(&["ip"])]),
    ("items", &[key(&["key"])]),
    ("matchExpressions", &[key(&["key"])]),
    ("ownerReferences", &[key(&["uid"])]),
    ("paths", &[key(&["path"]), key_or_default(&["pathType"], "")]),
    ("ports", &[key(&["containerPort"]), key_or_default(&["protocol"], "TCP")]),
    ("ports", &[key(&["port"]), key_or_default(&["protocol"], "TCP")]),
    ("readinessGates", &[key(&["conditionType"])]),
    ("rules", &[key(&["host"])]),
    ("subjects", &[key(&["kind"]), key_or_default(&["namespace"], ""), key(&["name"])]),
    ("taints", &[key(&["key"]), key_or_default(&["effect"], "")]),
    ("topologySpreadConstraints", &[key(&["topologyKey"]), key(&["whenUnsatisfiable"])]),
    ("volumeClaimTemplates", &[key(&["metadata", "name"])]),
    ("volumeDevices", &[key(&["devicePath"])]),
    ("volumeMounts", &[key(&["mountPath"])]),
];

/// The items of two lists, paired.
pub(super) struct ItemPairs<'a> {
    /// Each with what names it: first those of the second list in its order, then what only the
    /// first has.
    pub(super) items: Vec<(PathElement, Option<&'a Value>, Option<&'a Value>)>,
    /// Indicates whether the items that both have are in the same order.
    pub(super) same_order: bool,
}

/// Pairs two lists by the keys of their items; none when their items cannot be distinguished.
pub(super) fn pair_items<'a>(field: &str, before: &'a [Value], after: &'a [Value]) -> Option<ItemPairs<'a>> {
    let known = LIST_KEYS.iter().filter(|(name, _)| *name == field).map(|(_, keys)| *keys);
    known.chain([NAME_KEY]).find_map(|keys| pair_by_keys(keys, before, after))
}

fn pair_by_keys<'a>(keys: &[MergeKey], before: &'a [Value], after: &'a [Value]) -> Option<ItemPairs<'a>> {
    let (old, new) = (named_items(keys, before)?, named_items(keys, after)?);
    let indexes: HashMap<&str, usize> =
        old.iter().enumerate().map(|(nth, item)| (&*item.text, nth)).collect();
    let kept: Vec<Option<usize>> = new.iter().map(|item| indexes.get(&*item.text).copied()).collect();
    let common: Vec<usize> = kept.iter().copied().flatten().collect();
    let same_order = common.is_sorted();
    let common: HashSet<usize> = common.into_iter().collect();
    let mut items = Vec::with_capacity(new.len());
    for ((item, index), value) in new.into_iter().zip(kept).zip(after) {
        items.push((item.element, index.and_then(|nth| before.get(nth)), Some(value)));
    }
    for (nth, (item, value)) in old.into_iter().zip(before).enumerate() {
        if !common.contains(&nth) {
            items.push((item.element, Some(value), None));
        }
    }
    Some(ItemPairs { items, same_order })
}

struct NamedItem {
    text: String,
    element: PathElement,
}

/// Returns the names of all items; none when one has no name, or two have the same.
fn named_items(keys: &[MergeKey], items: &[Value]) -> Option<Vec<NamedItem>> {
    let named: Vec<NamedItem> = items.iter().map(|item| name(keys, item)).collect::<Option<_>>()?;
    let different: HashSet<&str> = named.iter().map(|item| &*item.text).collect();
    (different.len() == items.len()).then_some(named)
}

fn name(keys: &[MergeKey], item: &Value) -> Option<NamedItem> {
    item.as_object()?;
    let mut parts = Vec::with_capacity(keys.len());
    for key in keys {
        let value = match value_at(item, key.path) {
            None | Some(Value::Null) => Value::from(key.default?),
            Some(Value::Object(_) | Value::Array(_)) => return None,
            Some(value) => value.clone(),
        };
        parts.push((key.path.join(".").into(), value));
    }
    let text = parts.iter().map(|(_, value)| canonical_json(value)).collect::<Vec<_>>().join(",");
    Some(NamedItem { text, element: PathElement::Item(parts) })
}
