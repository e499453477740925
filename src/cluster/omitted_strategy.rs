//! Update strategies that know no `rollingUpdate`, over objects where the API server has filled one
//! in.
//!
//! Nobody owns the fields that the server fills in, so no apply takes them away. The server then
//! refuses the new strategy together with them. So it is made ours first, without any change of a
//! value, and goes with the next apply. A dry run cannot write anything first: it leaves the
//! strategy out, which moves no pod, and puts it into the answer.

use serde_json::{Map, Value, json};

use super::FIELD_MANAGER;
use super::call::Cluster;
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::kinds::ServedKind;
use super::kubectl_fields::{is_ours, union_fields};
use crate::engine::{Precondition, ResourceVersion, Uid};
use crate::object::{GroupKind, ObjectId, text_at, value_at};

/// The field that goes with one strategy only.
const ROLLING_UPDATE_FIELD: &str = "rollingUpdate";

/// Returns the field of `spec` with a strategy that the API server refuses beside a `rollingUpdate`
/// (`ValidateDeploymentStrategy`, `ValidateStatefulSetSpec`). None where the content has no such
/// strategy.
fn strategy_field(kind: &GroupKind, content: &Value) -> Option<&'static str> {
    let (field, other) = match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment") => ("strategy", "Recreate"),
        ("apps", "StatefulSet") => ("updateStrategy", "OnDelete"),
        _ => return None,
    };
    let strategy = value_at(content, &["spec", field])?;
    (text_at(strategy, &["type"]) == other
        && value_at(strategy, &[ROLLING_UPDATE_FIELD]).is_none_or(Value::is_null))
    .then_some(field)
}

fn rolling_update_of<'a>(live: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    value_at(live, &["spec", field, ROLLING_UPDATE_FIELD])?.as_object()
}

/// The content that a dry run sends, and the field to put into its answer.
#[derive(Debug, PartialEq)]
pub(super) struct OmittedStrategy {
    pub(super) body: Value,
    field: &'static str,
    strategy: Value,
}

impl OmittedStrategy {
    /// Returns the filled strategy of a content; none where the content can be sent as it is.
    pub(super) fn of(kind: &GroupKind, body: &Value, live: Option<&Value>) -> Option<Self> {
        let field = strategy_field(kind, body)?;
        rolling_update_of(live?, field)?;
        let mut body = body.clone();
        let strategy = body.get_mut("spec")?.as_object_mut()?.remove(field)?;
        Some(Self { body, field, strategy })
    }

    /// Returns the answer as it would be with the strategy.
    pub(super) fn put_back(mut self, mut answer: Value) -> Value {
        if let Some(strategy) = self.strategy.as_object_mut() {
            strategy.retain(|_, value| !value.is_null());
        }
        if let Some(spec) = answer.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert(self.field.to_owned(), self.strategy);
        }
        answer
    }
}

impl Cluster {
    /// Takes ownership of a live `rollingUpdate` that the manifest omits, so that the next apply
    /// removes it; no value changes. Returns what that apply must find.
    ///
    /// Costs nothing for most contents, and a read for those that ask for such a strategy. Fails
    /// with [`ClusterFault::VersionConflict`] when the object is not the one of the precondition,
    /// or changes meanwhile.
    pub(crate) async fn take_rolling_update_ownership(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        body: &Value,
        precondition: Precondition,
    ) -> Result<Precondition, ClusterError> {
        let Some(field) = strategy_field(&id.group_kind(), body) else { return Ok(precondition) };
        let Some((uid, live)) = self.read_bound(kind, id, &precondition).await? else {
            return Ok(precondition);
        };
        let on = CallSubject::Object(id.clone());
        let Some(entries) = with_filled_entries_taken(&live, field) else { return Ok(precondition) };
        let now: Value = self.write_owners(kind, id, &live, &entries).await?.decode(&on)?;
        Ok(Precondition::Exact(uid, resource_version_of(&now)))
    }

    /// Reads the object that a precondition names; none for one that must not be there.
    ///
    /// Fails with [`ClusterFault::VersionConflict`] when it is another incarnation, or in another
    /// version.
    pub(super) async fn read_bound(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        precondition: &Precondition,
    ) -> Result<Option<(Uid, Value)>, ClusterError> {
        let (uid, seen) = match precondition {
            Precondition::Absent => return Ok(None),
            Precondition::Uid(uid) => (uid, None),
            Precondition::Exact(uid, version) => (uid, Some(*version)),
        };
        let on = CallSubject::Object(id.clone());
        let Some(live) = self.get(kind, id).await? else {
            return Err(ClusterError::new(on, ClusterFault::NoObject));
        };
        let is_other = seen.is_some_and(|seen| seen != resource_version_of(&live));
        if text_at(&live, &["metadata", "uid"]) != &*uid.0 || is_other {
            return Err(ClusterError::new(on, ClusterFault::VersionConflict));
        }
        Ok(Some((uid.clone(), live)))
    }
}

pub(super) fn resource_version_of(object: &Value) -> ResourceVersion {
    ResourceVersion::read(text_at(object, &["metadata", "resourceVersion"]))
}

/// Returns the entries with all of a `rollingUpdate` in ours and in nobody else's; none where there
/// is none.
pub(super) fn with_filled_entries_taken(live: &Value, field: &str) -> Option<Vec<Value>> {
    let mut shape: Map<String, Value> =
        rolling_update_of(live, field)?.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
    shape.insert(".".to_owned(), json!({}));
    let names = ["f:spec".to_owned(), format!("f:{field}"), format!("f:{ROLLING_UPDATE_FIELD}")];
    Some(with_fields_taken(live, &names, Value::Object(shape)))
}

/// Returns the entries of an object with a field in ours and in nobody else's. `names` are the keys
/// of the tree that lead to it, `shape` the tree below it.
pub(super) fn with_fields_taken(live: &Value, names: &[String], shape: Value) -> Vec<Value> {
    let shape = names.iter().rev().fold(shape, |inner, name| json!({ name.as_str(): inner }));
    let mut entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in entries.iter_mut().filter(|entry| !is_ours(entry)) {
        take_out(&mut entry["fieldsV1"], names);
    }
    entries.retain(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()));
    if let Some(ours) = entries.iter_mut().find(|entry| is_ours(entry)) {
        ours["fieldsV1"] = union_fields(ours["fieldsV1"].take(), &shape);
    } else {
        entries.push(json!({
            "manager": FIELD_MANAGER,
            "operation": "Apply",
            "apiVersion": live["apiVersion"],
            "fieldsType": "FieldsV1",
            "fieldsV1": shape,
        }));
    }
    entries
}

/// Takes a node out of a set of fields, and nodes above it that held nothing else: an empty node
/// would hold itself.
fn take_out(fields: &mut Value, names: &[String]) {
    let (Some(map), [name, below @ ..]) = (fields.as_object_mut(), names) else { return };
    let Some(inner) = map.get_mut(name) else { return };
    if !below.is_empty() {
        let was_filled = inner.as_object().is_some_and(|inner| !inner.is_empty());
        take_out(inner, below);
        if !was_filled || inner.as_object().is_some_and(|inner| !inner.is_empty()) {
            return;
        }
    }
    map.remove(name);
}
