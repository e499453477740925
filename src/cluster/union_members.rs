//! Members of a union that others set in the place of ours, over objects where the server refuses
//! both together. A volume has one source, a probe one handler.
//!
//! An apply takes away only what is ours alone. So the other member is made ours first, without any
//! change of a value, and goes with the next apply. Dry runs prove before that it alone is in the
//! way.

use http::Method;
use serde_json::{Map, Value, json};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::kinds::ServedKind;
use super::kubectl_fields::{FieldOwners, JSON_PATCH};
use super::omitted_strategy::{own_fields, resource_version_of};
use super::{FIELD_MANAGER, path};
use crate::engine::{DesiredObject, Precondition};
use crate::fields::{self, FieldPath, PathElement, ReplacedMember};
use crate::object::{ObjectId, text_at};

/// The members that are in the way of a content, as dry runs have shown.
struct BlockingMembers(Vec<ReplacedMember>);

impl BlockingMembers {
    /// Returns our own ones, which are missing.
    fn missing(&self) -> impl Iterator<Item = &FieldPath> {
        self.0.iter().map(|one| &one.missing)
    }

    /// Returns the ones of others.
    fn others(&self) -> impl Iterator<Item = &FieldPath> {
        self.0.iter().flat_map(|one| &one.others)
    }
}

/// The members of others that are ours now, for an apply that takes them away.
pub(crate) struct OwnedMembers {
    /// The precondition of that apply.
    pub precondition: Precondition,
    /// Ours that were missing, with the ones in their place.
    pub replaced: Vec<ReplacedMember>,
}

/// The answer of a dry run.
pub(crate) struct DryRunAnswer {
    /// The object as it would be.
    pub after: Value,
    /// Members of ours that others had replaced, and that come back.
    pub replaced: Vec<ReplacedMember>,
}

/// A dry run that brings our members back into a version of an object.
struct MemberTrial<'a> {
    kind: &'a ServedKind,
    id: &'a ObjectId,
    live: &'a Value,
    /// The operations of a JSON patch that add them.
    additions: Vec<Value>,
}

impl Cluster {
    /// Makes the members of others ours that are in the way of a content that the server has just
    /// refused; no value changes. Returns none where nothing of the kind is in the way.
    ///
    /// # Errors
    ///
    /// Fails with [`ClusterFault::VersionConflict`] when the object is not the one of the
    /// precondition or changes meanwhile, and where the server does not answer.
    pub(crate) async fn own_replacing_members(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        body: &Value,
        precondition: &Precondition,
    ) -> Result<Option<OwnedMembers>, ClusterError> {
        let Some((uid, live)) = self.read_bound(kind, id, precondition).await? else { return Ok(None) };
        let on = CallSubject::Object(id.clone());
        let Some(blocking) = self.find_blocking_members(kind, id, body, &live).await? else {
            return Ok(None);
        };
        let mut object = live.clone();
        for path in blocking.others() {
            let shape = path.find(&live).map_or_else(|| json!({}), shape_of);
            object["metadata"]["managedFields"] =
                Value::Array(own_fields(&object, &path.field_keys(), shape));
        }
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let now: Value = self.write_owners(kind, id, &live, &entries).await?.decode(&on)?;
        let precondition = Precondition::Exact(uid, resource_version_of(&now));
        Ok(Some(OwnedMembers { precondition, replaced: blocking.0 }))
    }

    /// Returns the object as it would be after an apply of a desired content. Members of others
    /// that are in its way go only where the apply takes them away, see [`is_replaceable`].
    ///
    /// # Errors
    ///
    /// Fails as [`Cluster::dry_run`] does.
    pub(crate) async fn dry_run_replacing(
        &self,
        kind: &ServedKind,
        desired: &DesiredObject,
        body: &Value,
        live: Option<&Value>,
        precondition: &Precondition,
    ) -> Result<DryRunAnswer, ClusterError> {
        let id = &desired.id;
        let refusal = match self.dry_run(kind, id, body, live, precondition).await {
            Err(refusal) if is_replaceable(desired, &refusal) => refusal,
            answer => return answer.map(|after| DryRunAnswer { after, replaced: Vec::new() }),
        };
        let Some(live) = live else { return Err(refusal) };
        let Some(blocking) = self.find_blocking_members(kind, id, body, live).await? else {
            return Err(refusal);
        };
        let mut without = body.clone();
        for path in blocking.missing() {
            remove_at(&mut without, path);
        }
        let mut after = self.dry_run(kind, id, &without, Some(live), precondition).await?;
        for path in blocking.others() {
            remove_at(&mut after, path);
        }
        for path in blocking.missing() {
            insert_at(&mut after, path, path.find(body).cloned().unwrap_or_default());
        }
        Ok(DryRunAnswer { after, replaced: blocking.0 })
    }

    /// Returns the members without which the server would take ours; none where they are not what
    /// it refuses. Costs at most ten dry runs.
    async fn find_blocking_members(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        body: &Value,
        live: &Value,
    ) -> Result<Option<BlockingMembers>, ClusterError> {
        let owners = FieldOwners::of(live);
        let mut replaced = fields::replaced_members(body, live, owners.ours.as_deref(), &owners.others);
        let mut others: Vec<&FieldPath> = replaced.iter().flat_map(|one| &one.others).collect();
        if others.is_empty() {
            return Ok(None);
        }
        let trial = MemberTrial { kind, id, live, additions: additions(&replaced, body, live) };
        if self.takes_without(&trial, &[]).await? || !self.takes_without(&trial, &others).await? {
            return Ok(None);
        }
        // Each that need not go stays.
        let mut nth = 0;
        while nth < others.len() && others.len() > 1 {
            let mut fewer = others.clone();
            fewer.remove(nth);
            if self.takes_without(&trial, &fewer).await? {
                others = fewer;
            } else {
                nth += 1;
            }
        }
        let others: Vec<FieldPath> = others.into_iter().cloned().collect();
        for one in &mut replaced {
            one.others.retain(|path| others.contains(path));
        }
        Ok(Some(BlockingMembers(replaced)))
    }

    /// Returns whether the server would take our members once others are gone, as a JSON patch (RFC
    /// 6902) of exactly this version.
    async fn takes_without(
        &self,
        trial: &MemberTrial<'_>,
        removed: &[&FieldPath],
    ) -> Result<bool, ClusterError> {
        let MemberTrial { kind, id, live, additions } = trial;
        let on = CallSubject::Object((*id).clone());
        let version = text_at(live, &["metadata", "resourceVersion"]);
        let removals = removed.iter().filter_map(|path| path.pointer(live));
        let removals = removals.map(|pointer| json!({ "op": "remove", "path": pointer }));
        let bound = json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version });
        let patch: Vec<Value> = removals.chain(additions.iter().cloned()).chain([bound]).collect();
        let parameters = [("fieldManager", FIELD_MANAGER), ("dryRun", "All")];
        let url = path::with_query(path::object(kind, id), &parameters);
        let body = super::write::json_body(&patch, &on)?;
        match self.call(ApiRequest::write(Method::PATCH, url, JSON_PATCH, body, on)).await {
            Ok(_) => Ok(true),
            Err(error) if is_of_content(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether members of others may be what a desired content was refused for, and may go. A
/// content that leaves fields to others takes none away: they may be the ones that it leaves.
pub(crate) fn is_replaceable(desired: &DesiredObject, error: &ClusterError) -> bool {
    desired.ignores.is_none() && is_of_content(error)
}

/// Returns whether an error is the server's refusal of the content itself.
fn is_of_content(error: &ClusterError) -> bool {
    matches!(error.fault(), ClusterFault::Invalid { .. })
}

/// Returns the operations that bring our members back.
fn additions(replaced: &[ReplacedMember], body: &Value, live: &Value) -> Vec<Value> {
    let addition = |one: &ReplacedMember| {
        let (pointer, value) = (one.missing.pointer(live)?, one.missing.find(body)?);
        Some(json!({ "op": "add", "path": pointer, "value": value }))
    };
    replaced.iter().filter_map(addition).collect()
}

/// Returns the FieldsV1 tree of a value, whose lists are owned as one.
fn shape_of(value: &Value) -> Value {
    let Some(map) = value.as_object().filter(|map| !map.is_empty()) else { return json!({}) };
    let fields = map.iter().map(|(key, value)| (format!("f:{key}"), shape_of(value)));
    Value::Object(fields.chain([(".".to_owned(), json!({}))]).collect())
}

/// Returns the map that a path's last step leads out of, and that step.
fn parent_of<'a>(
    object: &'a mut Value,
    path: &'a FieldPath,
) -> Option<(&'a mut Map<String, Value>, &'a str)> {
    let Some(PathElement::Key(key)) = path.elements().last() else { return None };
    let pointer = path.pointer(object)?;
    let (parent, _) = pointer.rsplit_once('/')?;
    Some((object.pointer_mut(parent)?.as_object_mut()?, &**key))
}

fn remove_at(object: &mut Value, path: &FieldPath) {
    if let Some((parent, key)) = parent_of(object, path) {
        parent.remove(key);
    }
}

fn insert_at(object: &mut Value, path: &FieldPath, value: Value) {
    if let Some((parent, key)) = parent_of(object, path) {
        parent.insert(key.to_owned(), value);
    }
}
