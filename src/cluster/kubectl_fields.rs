//! Takes over what `kubectl apply` owned, so that a field that leaves the manifest leaves the
//! object.

use http::Method;
use serde_json::{Map, Value, json};

use super::call::{ApiRequest, ApiResponse, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::kinds::ServedKind;
use super::{FIELD_MANAGER, path};
use crate::engine::Uid;
use crate::object::{ObjectId, text_at};

pub(super) const JSON_PATCH: &str = "application/json-patch+json";

/// The managers of client-side apply, whose `Update` entries hold what it had applied.
const CLIENT_SIDE_MANAGERS: [&str; 2] = ["kubectl-client-side-apply", "before-first-apply"];

/// The result of reclaiming the fields of a client-side apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimResult {
    /// There are none.
    Nothing,
    /// They are ours now; no value has changed.
    Taken,
}

impl Cluster {
    /// Gives the fields that client-side `kubectl apply` owns to our own entry. The next apply then
    /// removes those of them that the content does not have.
    ///
    /// Costs a read, and a write where there is something to take.
    ///
    /// # Errors
    ///
    /// Fails with [`ClusterFault::VersionConflict`] when the object is another incarnation or
    /// changes meanwhile. Also fails where the server refuses it, or does not answer.
    pub async fn reclaim(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        uid: &Uid,
    ) -> Result<ReclaimResult, ClusterError> {
        let on = CallSubject::Object(id.clone());
        let Some(object) = self.get(kind, id).await? else {
            return Err(ClusterError::new(on, ClusterFault::NoObject));
        };
        if text_at(&object, &["metadata", "uid"]) != &*uid.0 {
            return Err(ClusterError::new(on, ClusterFault::VersionConflict));
        }
        let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(entries) = migrate_entries(entries) else { return Ok(ReclaimResult::Nothing) };
        self.write_owners(kind, id, &object, &entries).await?;
        Ok(ReclaimResult::Taken)
    }

    /// Writes who owns which fields, into exactly the version that was read. No value changes.
    pub(super) async fn write_owners(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        read: &Value,
        entries: &[Value],
    ) -> Result<ApiResponse, ClusterError> {
        let (version, on) =
            (text_at(read, &["metadata", "resourceVersion"]), CallSubject::Object(id.clone()));
        // It is sent as it was read, so it may be any text. The server takes none for any version.
        if version.is_empty() {
            return Err(ClusterError::new(on, ClusterFault::UnreadableVersion));
        }
        let patch = json!([
            { "op": "replace", "path": "/metadata/managedFields", "value": entries },
            { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
        ]);
        let url = path::with_query(path::object(kind, id), &[("fieldManager", FIELD_MANAGER)]);
        let body = patch.to_string().into_bytes();
        self.call(ApiRequest::write(Method::PATCH, url, JSON_PATCH, body, on)).await
    }
}

/// Returns the entries with those of client-side apply merged into ours; none where there is
/// nothing to merge.
pub(super) fn migrate_entries(entries: &[Value]) -> Option<Vec<Value>> {
    let (theirs, mut kept): (Vec<Value>, Vec<Value>) = entries.iter().cloned().partition(is_client_side);
    let first = theirs.first()?.clone();
    let fields =
        theirs.iter().fold(Value::Object(Map::new()), |sum, entry| union_fields(sum, &entry["fieldsV1"]));
    if let Some(ours) = kept.iter_mut().find(|entry| is_ours(entry)) {
        ours["fieldsV1"] = union_fields(ours["fieldsV1"].take(), &fields);
    } else {
        let mut ours = first;
        ours["manager"] = json!(FIELD_MANAGER);
        ours["operation"] = json!("Apply");
        ours["fieldsV1"] = fields;
        kept.push(ours);
    }
    Some(kept)
}

/// The owners of an object's fields, as FieldsV1 texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldOwners {
    /// Our own `Apply` entry.
    pub ours: Option<String>,
    /// Entries of all other managers, of any subresource.
    pub others: Vec<String>,
}

impl FieldOwners {
    /// Reads them off an object as the server shows it.
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |entry: &Value| entry["fieldsV1"].to_string();
        let (ours, others): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| is_ours(entry));
        Self { ours: ours.first().map(|entry| text(entry)), others: others.into_iter().map(text).collect() }
    }
}

fn is_client_side(entry: &Value) -> bool {
    CLIENT_SIDE_MANAGERS.contains(&text_at(entry, &["manager"]))
        && text_at(entry, &["operation"]) == "Update"
        && text_at(entry, &["subresource"]).is_empty()
}

pub(super) fn is_ours(entry: &Value) -> bool {
    text_at(entry, &["manager"]) == FIELD_MANAGER
        && text_at(entry, &["operation"]) == "Apply"
        && text_at(entry, &["subresource"]).is_empty()
}

/// Returns everything that either set of fields holds. A node that is exactly `{}` holds itself;
/// one with children holds itself only if `.` is among them.
pub(super) fn union_fields(left: Value, right: &Value) -> Value {
    let (mut sum, right) = match (left, right) {
        (Value::Object(left), Value::Object(right)) => (left, right),
        (left, Value::Object(_)) => return left,
        (_, right) => return right.clone(),
    };
    for (key, theirs) in right {
        let merged = match sum.remove(key) {
            None => theirs.clone(),
            Some(ours) => {
                let alone = ours.as_object().is_some_and(Map::is_empty)
                    != theirs.as_object().is_some_and(Map::is_empty);
                let mut node = union_fields(ours, theirs);
                if alone && let Some(node) = node.as_object_mut() {
                    node.insert(".".to_owned(), json!({}));
                }
                node
            }
        };
        sum.insert(key.clone(), merged);
    }
    Value::Object(sum)
}
