//! Objects as they are shown: masked, without what only the server sets, as text.

use crate::object::annotations;
use serde_json::Value;

use super::{diff_lines, lists, write_yaml};
use crate::fields::{mask_pair, mask_value};
use crate::object::{ObjectId, SERVER_SET_METADATA};

/// Returns an object as it may be shown: masked, without status and without what only the server
/// sets.
pub(crate) fn present(id: &ObjectId, value: &Value) -> Value {
    let mut shown = mask_value(&id.group_kind(), value);
    drop_noise(&mut shown);
    shown
}

/// Does the same as [`present`], of both sides of a difference: each value of a Secret that differs
/// says so.
pub(crate) fn present_pair(
    id: &ObjectId,
    before: Option<&Value>,
    after: Option<&Value>,
) -> (Option<Value>, Option<Value>) {
    let (Some(before), Some(after)) = (before, after) else {
        return (before.map(|value| present(id, value)), after.map(|value| present(id, value)));
    };
    let (mut before, mut after) = mask_pair(&id.group_kind(), before, after);
    drop_noise(&mut before);
    drop_noise(&mut after);
    (Some(before), Some(after))
}

/// Takes out the fields that no difference is to show.
pub(super) fn drop_noise(object: &mut Value) {
    let Some(object) = object.as_object_mut() else { return };
    object.remove("status");
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|key, _| !SERVER_SET_METADATA.contains(&key.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        && annotations.remove(annotations::RELEASE).is_some()
        && annotations.is_empty()
    {
        metadata.remove("annotations");
    }
}

/// Returns the live object as it would be with a content laid over it. Less exact than a dry run:
/// what leaves the content stays, and defaults are those of the live object.
pub(crate) fn merge_content(live: &Value, content: &Value) -> Value {
    merge_onto_live("", live, content)
}

fn merge_onto_live(field: &str, live: &Value, content: &Value) -> Value {
    match (live, content) {
        (Value::Object(below), Value::Object(above)) => {
            let mut present = below.clone();
            for (key, value) in above {
                let laid =
                    below.get(key).map_or_else(|| value.clone(), |old| merge_onto_live(key, old, value));
                present.insert(key.clone(), laid);
            }
            Value::Object(present)
        }
        (Value::Array(below), Value::Array(above)) => match lists::pair_items(field, below, above) {
            Some(pairs) => {
                let laid = |(old, new): (Option<&Value>, Option<&Value>)| {
                    let new = new?;
                    Some(old.map_or_else(|| new.clone(), |old| merge_onto_live("", old, new)))
                };
                pairs.items.into_iter().filter_map(|(_, old, new)| laid((old, new))).collect()
            }
            None => content.clone(),
        },
        _ => content.clone(),
    }
}

/// Writes the difference of two trees as a unified diff of their YAML, without file names; nothing
/// when they are equal. Null stands for what is not there.
pub(crate) fn unified_diff(before: &Value, after: &Value) -> String {
    let (old, new) = (write_yaml(before), write_yaml(after));
    diff_lines(&old, &new).to_unified()
}
