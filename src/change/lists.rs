//! Which item of one list is which item of another.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::fields::Element;
use crate::object::{at, canonical_json};

/// One of the keys that tell the items of a list apart.
struct Key {
    /// Where it stands in the item.
    path: &'static [&'static str],
    /// What it is taken for where it is left out.
    default: Option<&'static str>,
}

const fn key(path: &'static [&'static str]) -> Key {
    Key { path, default: None }
}

const fn or(path: &'static [&'static str], default: &'static str) -> Key {
    Key { path, default: Some(default) }
}

const NAME: &[Key] = &[key(&["name"])];

/// The keys of the API's lists, by the name of the field that holds the list. More than the API's own merge keys:
/// this is for people, and a list that is atomic to the API still reads better item by item.
const KEYS: &[(&str, &[Key])] = &[
    ("conditions", &[key(&["type"])]),
    ("hostAliases", &[key(&["ip"])]),
    ("items", &[key(&["key"])]),
    ("matchExpressions", &[key(&["key"])]),
    ("ownerReferences", &[key(&["uid"])]),
    ("paths", &[key(&["path"]), or(&["pathType"], "")]),
    ("ports", &[key(&["containerPort"]), or(&["protocol"], "TCP")]),
    ("ports", &[key(&["port"]), or(&["protocol"], "TCP")]),
    ("readinessGates", &[key(&["conditionType"])]),
    ("rules", &[key(&["host"])]),
    ("subjects", &[key(&["kind"]), or(&["namespace"], ""), key(&["name"])]),
    ("taints", &[key(&["key"]), or(&["effect"], "")]),
    ("topologySpreadConstraints", &[key(&["topologyKey"]), key(&["whenUnsatisfiable"])]),
    ("volumeClaimTemplates", &[key(&["metadata", "name"])]),
    ("volumeDevices", &[key(&["devicePath"])]),
    ("volumeMounts", &[key(&["mountPath"])]),
];

/// The items of two lists, paired.
pub(super) struct Pairs<'a> {
    /// Each with what names it: first those of the second list in its order, then what only the first has.
    pub(super) items: Vec<(Element, Option<&'a Value>, Option<&'a Value>)>,
    /// Whether the items that both have stand in the same order.
    pub(super) same_order: bool,
}

/// Pairs two lists by the keys of their items; none when their items cannot be told apart.
pub(super) fn pair<'a>(field: &str, before: &'a [Value], after: &'a [Value]) -> Option<Pairs<'a>> {
    let known = KEYS.iter().filter(|(name, _)| *name == field).map(|(_, keys)| *keys);
    known.chain([NAME]).find_map(|keys| paired(keys, before, after))
}

fn paired<'a>(keys: &[Key], before: &'a [Value], after: &'a [Value]) -> Option<Pairs<'a>> {
    let (old, new) = (named(keys, before)?, named(keys, after)?);
    let places: HashMap<&str, usize> = old.iter().enumerate().map(|(nth, item)| (&*item.text, nth)).collect();
    let kept: Vec<Option<usize>> = new.iter().map(|item| places.get(&*item.text).copied()).collect();
    let common: Vec<usize> = kept.iter().copied().flatten().collect();
    let same_order = common.is_sorted();
    let common: HashSet<usize> = common.into_iter().collect();
    let mut items = Vec::with_capacity(new.len());
    for ((item, place), value) in new.into_iter().zip(kept).zip(after) {
        items.push((item.element, place.and_then(|nth| before.get(nth)), Some(value)));
    }
    for (nth, (item, value)) in old.into_iter().zip(before).enumerate() {
        if !common.contains(&nth) {
            items.push((item.element, Some(value), None));
        }
    }
    Some(Pairs { items, same_order })
}

struct Named {
    text: String,
    element: Element,
}

/// The names of all items; none when one has no name, or two have the same.
fn named(keys: &[Key], items: &[Value]) -> Option<Vec<Named>> {
    let named: Vec<Named> = items.iter().map(|item| name(keys, item)).collect::<Option<_>>()?;
    let different: HashSet<&str> = named.iter().map(|item| &*item.text).collect();
    (different.len() == items.len()).then_some(named)
}

fn name(keys: &[Key], item: &Value) -> Option<Named> {
    item.as_object()?;
    let mut parts = Vec::with_capacity(keys.len());
    for key in keys {
        let value = match at(item, key.path) {
            None | Some(Value::Null) => Value::from(key.default?),
            Some(Value::Object(_) | Value::Array(_)) => return None,
            Some(value) => value.clone(),
        };
        parts.push((key.path.join(".").into(), value));
    }
    let text = parts.iter().map(|(_, value)| canonical_json(value)).collect::<Vec<_>>().join(",");
    Some(Named { text, element: Element::Item(parts) })
}
