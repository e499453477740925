//! Compares a manifest's value with the cluster's, which also has defaults and additions by
//! admission.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::lists;
use crate::fields::{self, FieldPath, PathElement};

/// Maps without defaults, to which nobody else adds: a key that only the cluster has was taken
/// away.
const UNDEFAULTED_MAPS: [&str; 6] =
    ["binaryData", "data", "matchLabels", "nodeSelector", "parameters", "roleRef"];

/// Maps whose values are quantities.
const QUANTITY_MAPS: [&str; 4] = ["capacity", "hard", "limits", "requests"];

/// Indicates whether the cluster may show more items in a list than the manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListComparison {
    /// No: a list is as long as the manifest makes it.
    Exact,
    /// Yes: admission adds volumes, mounts and tolerations to a Pod.
    MayGrow,
}

/// Returns whether a manifest's value of this field differs from the cluster's where the manifest
/// says something.
pub(super) fn is_different(field: &str, live: Option<&Value>, wanted: &Value, lists: ListComparison) -> bool {
    match (live, wanted) {
        (_, Value::Null) => false,
        // The server leaves zero values out.
        (None | Some(Value::Null), wanted) => !is_zero(wanted),
        (Some(Value::Object(live)), Value::Object(wanted)) => are_maps_different(field, live, wanted, lists),
        (Some(Value::Array(live)), Value::Array(wanted)) => are_lists_different(field, live, wanted, lists),
        (Some(live), wanted) => live != wanted && !(is_zero(live) && is_zero(wanted)),
    }
}

/// Returns whether an object in the cluster has another value at a path than the content asks for.
/// Values are compared as far as their normal forms are known here.
pub(crate) fn is_other_at(path: &FieldPath, live: &Value, content: &Value) -> bool {
    let field = path.elements().iter().rev().find_map(|element| match element {
        PathElement::Key(key) => Some(&**key),
        _ => None,
    });
    match (path.find(live), path.find(content)) {
        (None, None) => false,
        (Some(_), None) => true,
        (live, Some(wanted)) => is_different(field.unwrap_or_default(), live, wanted, ListComparison::Exact),
    }
}

fn are_maps_different(
    field: &str,
    live: &Map<String, Value>,
    wanted: &Map<String, Value>,
    lists: ListComparison,
) -> bool {
    let is_wanted_different = wanted.iter().any(|(key, value)| {
        let own = live.get(key);
        let is_same = QUANTITY_MAPS.contains(&field)
            && own.is_some_and(|own| compare_quantities(own, value) == Some(Ordering::Equal));
        !is_same && is_different(key, own, value, lists)
    });
    is_wanted_different
        || UNDEFAULTED_MAPS.contains(&field)
            && live.keys().any(|key| wanted.get(key).is_none_or(Value::is_null))
}

fn are_lists_different(field: &str, live: &[Value], wanted: &[Value], lists: ListComparison) -> bool {
    if lists == ListComparison::Exact && live.len() != wanted.len() {
        return true;
    }
    match lists::pair_items(field, live, wanted) {
        Some(pairs) => {
            pairs.items.iter().any(|(_, live, wanted)| {
                wanted.is_some_and(|wanted| live.is_none() || is_different("", *live, wanted, lists))
            }) || lists == ListComparison::Exact && !pairs.same_order
        }
        None if lists == ListComparison::MayGrow => {
            wanted.iter().any(|item| !live.iter().any(|own| !is_different("", Some(own), item, lists)))
        }
        None => live.iter().zip(wanted).any(|(own, item)| is_different("", Some(own), item, lists)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
    }
}

/// Compares two quantities (`1000m` and `1`, `1Gi` and `1073741824`); none when one is no quantity.
pub(super) fn compare_quantities(a: &Value, b: &Value) -> Option<Ordering> {
    let (a, b) = (quantity(a)?, quantity(b)?);
    // 300 × 1e-3 and 0.3 are different floats.
    if (a - b).abs() <= a.abs().max(b.abs()) * 1e-12 { Some(Ordering::Equal) } else { a.partial_cmp(&b) }
}

fn quantity(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => fields::parse_quantity(text),
        _ => None,
    }
}
