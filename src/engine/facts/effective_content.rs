//! The effective content: what is sent, hashed, compared and defended is never the manifest as it
//! is.

use crate::object::annotations;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::{
    ConfigStamp, DesiredObject, ReleaseAnnotation, RolloutOverlay, apply_overlay, with_config_hash,
};
use crate::object::{ContentHash, Object, PART_OF, value_at};

/// Indicates whether an autoscaler targets the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaOwner {
    /// The manifest sets the count.
    Manifest,
    /// A `HorizontalPodAutoscaler` sets the count.
    Autoscaler,
}

/// The treatment of `spec.replicas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReplicaMode {
    /// Sent as the manifest has it.
    FromManifest,
    /// Left out: an autoscaler's entry owns it already.
    Omitted,
    /// The value that the cluster shows is sent: an autoscaler is to own it but does not yet. A
    /// sole owner that drops the field would reset it to 1.
    FromLive(u32),
}

/// The variant of a content that is sent: its count of replicas, and what is laid over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApplyVariant {
    /// The treatment of `spec.replicas`.
    pub replicas: ReplicaMode,
    /// The overlay that holds or narrows its rollout.
    pub overlay: Option<RolloutOverlay>,
    /// The data that its pods are started with.
    pub config_stamp: Option<ConfigStamp>,
}

impl ApplyVariant {
    /// As the manifest has it.
    pub(crate) const PLAIN: Self =
        Self { replicas: ReplicaMode::FromManifest, overlay: None, config_stamp: None };

    /// Returns the hash that the release annotation names: that of the content, whatever is laid
    /// over it.
    pub(crate) fn hash(self, desired: &DesiredObject) -> ContentHash {
        match self.replicas {
            ReplicaMode::FromManifest => desired.hash,
            ReplicaMode::Omitted | ReplicaMode::FromLive(_) => {
                desired.hash_without_replicas.unwrap_or(desired.hash)
            }
        }
    }
}

/// Returns the content that an object has in the cluster when it is applied, without the release
/// annotation. It has our inventory label, and no nulls: the API server tracks them and then loses
/// them. A Secret's `stringData` becomes `data`. If it were sent as it is, nobody would own `data`,
/// and its drift would not be seen. The rules of an aggregated `ClusterRole` are its controller's.
pub(crate) fn effective_content(object: &Object, inventory_id: &str) -> Value {
    let mut body = remove_nulls(&object.body);
    if object.id.is("", "Secret") {
        merge_string_data(&mut body);
    }
    if object.id.is("rbac.authorization.k8s.io", "ClusterRole")
        && is_aggregated(&body)
        && let Some(fields) = body.as_object_mut()
    {
        fields.remove("rules");
    }
    set_metadata(&mut body, "labels", PART_OF, inventory_id);
    body
}

/// Returns whether a controller fills in the rules of a `ClusterRole` from those of others. It
/// writes over whatever is sent, so that a repair would not end (`AggregationRule` of the API).
fn is_aggregated(body: &Value) -> bool {
    let selectors = value_at(body, &["aggregationRule", "clusterRoleSelectors"]).and_then(Value::as_array);
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

/// Adds the release annotation to an effective content, settles `spec.replicas` and lays the
/// overlay over it.
pub(crate) fn stamp_release(mut body: Value, annotation: &ReleaseAnnotation, variant: ApplyVariant) -> Value {
    set_metadata(&mut body, "annotations", annotations::RELEASE, &annotation.to_string());
    let spec = body.get_mut("spec").and_then(Value::as_object_mut);
    match (variant.replicas, spec) {
        (ReplicaMode::Omitted, Some(spec)) => {
            spec.remove("replicas");
        }
        (ReplicaMode::FromLive(count), Some(spec)) => {
            spec.insert("replicas".to_owned(), count.into());
        }
        _ => {}
    }
    stamp_config(apply_overlay(body, variant.overlay), variant.config_stamp)
}

/// Writes into a content which data its pods are started with. The template gets their hash where
/// it has to.
fn stamp_config(mut body: Value, config_stamp: Option<ConfigStamp>) -> Value {
    for path in ["/metadata/annotations", "/spec/template/metadata/annotations"] {
        if let Some(annotations) = body.pointer_mut(path).and_then(Value::as_object_mut) {
            annotations.remove(annotations::CONFIG);
            annotations.remove(annotations::CONFIG_HASH);
        }
    }
    let Some(started) = config_stamp else { return body };
    set_metadata(&mut body, "annotations", annotations::CONFIG, &started.to_string());
    match started.template_hash() {
        Some(hash) => with_config_hash(body, &hash),
        None => body,
    }
}

fn remove_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, v)| !v.is_null());
            Value::Object(kept.map(|(k, v)| (k.clone(), remove_nulls(v))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(remove_nulls).collect()),
        other => other.clone(),
    }
}

/// Moves `stringData` into `data`, as the API server does: it wins over `data`, and is not kept.
fn merge_string_data(body: &mut Value) {
    let Some(body) = body.as_object_mut() else { return };
    let Some(Value::Object(plain)) = body.remove("stringData") else { return };
    let data = body.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let Some(data) = data.as_object_mut() {
        for (key, value) in plain {
            let encoded = value.as_str().map(|text| STANDARD.encode(text));
            data.insert(key, encoded.map_or(value, Value::String));
        }
    }
}

pub(in crate::engine) fn set_metadata(body: &mut Value, map: &str, key: &str, value: &str) {
    let metadata = body.as_object_mut().map(|body| body.entry("metadata"));
    let metadata = metadata.map(|entry| entry.or_insert_with(|| Value::Object(Map::new())));
    let metadata = metadata.and_then(Value::as_object_mut);
    let entries = metadata.map(|metadata| metadata.entry(map));
    let entries = entries.map(|entry| entry.or_insert_with(|| Value::Object(Map::new())));
    if let Some(entries) = entries.and_then(Value::as_object_mut) {
        entries.insert(key.to_owned(), Value::String(value.to_owned()));
    }
}
