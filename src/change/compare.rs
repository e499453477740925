//! Whether a manifest asks for another value than the cluster shows, though the cluster shows more: defaults,
//! and what admission adds.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::lists;

/// Maps without defaults, to which nobody else adds: a key that only the cluster has was taken away.
const CLOSED: [&str; 6] = ["binaryData", "data", "matchLabels", "nodeSelector", "parameters", "roleRef"];

/// Maps whose values are quantities.
const QUANTITIES: [&str; 4] = ["capacity", "hard", "limits", "requests"];

/// Whether the cluster may show more items in a list than the manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    /// No: a list is as long as the manifest makes it.
    Exact,
    /// Yes: admission adds volumes, mounts and tolerations to a Pod.
    MayGrow,
}

/// Whether a manifest's value of this field differs from the cluster's where the manifest says something.
pub(super) fn asks_other(field: &str, live: Option<&Value>, wanted: &Value, lists: Lists) -> bool {
    match (live, wanted) {
        (_, Value::Null) => false,
        // The server leaves zero values out.
        (None | Some(Value::Null), wanted) => !is_zero(wanted),
        (Some(Value::Object(live)), Value::Object(wanted)) => maps_differ(field, live, wanted, lists),
        (Some(Value::Array(live)), Value::Array(wanted)) => lists_differ(field, live, wanted, lists),
        (Some(live), wanted) => live != wanted && !(is_zero(live) && is_zero(wanted)),
    }
}

fn maps_differ(field: &str, live: &Map<String, Value>, wanted: &Map<String, Value>, lists: Lists) -> bool {
    let said = wanted.iter().any(|(key, value)| {
        let own = live.get(key);
        let is_same = QUANTITIES.contains(&field)
            && own.is_some_and(|own| compare_quantities(own, value) == Some(Ordering::Equal));
        !is_same && asks_other(key, own, value, lists)
    });
    said || CLOSED.contains(&field) && live.keys().any(|key| wanted.get(key).is_none_or(Value::is_null))
}

fn lists_differ(field: &str, live: &[Value], wanted: &[Value], lists: Lists) -> bool {
    if lists == Lists::Exact && live.len() != wanted.len() {
        return true;
    }
    match lists::pair(field, live, wanted) {
        Some(pairs) => {
            pairs.items.iter().any(|(_, live, wanted)| {
                wanted.is_some_and(|wanted| live.is_none() || asks_other("", *live, wanted, lists))
            }) || lists == Lists::Exact && !pairs.same_order
        }
        None if lists == Lists::MayGrow => {
            wanted.iter().any(|item| !live.iter().any(|own| !asks_other("", Some(own), item, lists)))
        }
        None => live.iter().zip(wanted).any(|(own, item)| asks_other("", Some(own), item, lists)),
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
    let text = match value {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text.trim(),
        _ => return None,
    };
    let (digits, factor) = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)))
        .unwrap_or((text, 1.0));
    digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * factor)
}

/// The suffixes of `resource.Quantity`; an exponent is left to the parser of numbers.
const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];
