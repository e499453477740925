//! Members of a union, and items of a list, that others set in the place of ours, over objects
//! where the server refuses both together. A volume has one source, a port a name of its own.
//!
//! An apply takes away only what is ours alone. So the other one is made ours first, without any
//! change of a value, and goes with the next apply. Dry runs prove before that it alone is in the
//! way.

use http::Method;
use serde_json::{Value, json};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::kinds::ServedKind;
use super::kubectl_fields::{FieldOwners, JSON_PATCH, is_ours};
use super::omitted_strategy::{resource_version_of, with_fields_taken};
use super::{FIELD_MANAGER, path};
use crate::engine::{DesiredObject, Precondition};
use crate::fields::{self, FieldPath, PathElement, ReplacedMember};
use crate::object::{ObjectId, text_at};

/// The members that are in the way of a content, as dry runs have shown.
struct BlockingMembers(Vec<ReplacedMember>);

impl BlockingMembers {
    /// Returns our own ones, which are missing.
    fn missing_members(&self) -> impl Iterator<Item = &FieldPath> {
        self.0.iter().map(|one| &one.missing)
    }

    /// Returns the ones of others.
    fn foreign_members(&self) -> Vec<&FieldPath> {
        distinct_others(&self.0)
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
    pub(crate) async fn take_replacing_members_ownership(
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
        for path in blocking.foreign_members() {
            let shape = path.find(&live).map_or_else(|| json!({}), shape_of);
            object["metadata"]["managedFields"] =
                Value::Array(with_fields_taken(&object, &path.field_keys(), shape));
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
        for path in blocking.missing_members() {
            remove_at(&mut without, path);
        }
        let mut after = self.dry_run(kind, id, &without, Some(live), precondition).await?;
        for path in blocking.foreign_members() {
            remove_at(&mut after, path);
        }
        for path in blocking.missing_members() {
            insert_at(&mut after, path, body);
        }
        Ok(DryRunAnswer { after, replaced: blocking.0 })
    }

    /// Returns the members without which the server would take ours; none where they are not what
    /// it refuses. Costs about two dry runs for each suspect at most.
    async fn find_blocking_members(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        body: &Value,
        live: &Value,
    ) -> Result<Option<BlockingMembers>, ClusterError> {
        let owned = FieldOwners::of(live);
        let unnamed = unnamed_owners(live);
        let owners =
            fields::FieldsV1Texts { ours: owned.ours.as_deref(), others: &owned.others, unnamed: &unnamed };
        let mut replaced = fields::replaced_members(body, live, owners);
        let mut others = distinct_others(&replaced);
        if others.is_empty() {
            return Ok(None);
        }
        let trial = MemberTrial { kind, id, live, additions: additions(&replaced, body, live) };
        if self.is_accepted_without(&trial, &[]).await? || !self.is_accepted_without(&trial, &others).await? {
            return Ok(None);
        }
        // Each that need not go stays. Most need not where there are many, so halves are tried first.
        let mut size = others.len() / 2;
        while size > 0 {
            let mut nth = 0;
            while nth < others.len() && others.len() > size {
                let end = others.len().min(nth + size);
                let fewer = [&others[..nth], &others[end..]].concat();
                if self.is_accepted_without(&trial, &fewer).await? {
                    others = fewer;
                } else {
                    nth = end;
                }
            }
            size /= 2;
        }
        let others: Vec<FieldPath> = others.into_iter().cloned().collect();
        for one in &mut replaced {
            one.others.retain(|path| others.contains(path));
        }
        Ok(Some(BlockingMembers(replaced)))
    }

    /// Returns whether the server would take our members once others are gone, as a JSON patch (RFC
    /// 6902) of exactly this version.
    async fn is_accepted_without(
        &self,
        trial: &MemberTrial<'_>,
        removed: &[&FieldPath],
    ) -> Result<bool, ClusterError> {
        let MemberTrial { kind, id, live, additions } = trial;
        let on = CallSubject::Object((*id).clone());
        let version = text_at(live, &["metadata", "resourceVersion"]);
        let removals = removals(removed, live);
        let bound = json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version });
        // All places are those of the version: additions move none, as items come last.
        let patch: Vec<Value> = additions.iter().cloned().chain(removals).chain([bound]).collect();
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

/// Returns the entries whose items stay where they are, as FieldsV1 texts.
fn unnamed_owners(live: &Value) -> Vec<String> {
    let entries = live["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let unnamed = entries.iter().filter(|entry| !is_ours(entry) && !fields::has_known_writer(entry));
    unnamed.map(|entry| entry["fieldsV1"].to_string()).collect()
}

/// Returns what others set in the place of ours, each once.
fn distinct_others(replaced: &[ReplacedMember]) -> Vec<&FieldPath> {
    let mut others: Vec<&FieldPath> = Vec::new();
    for path in replaced.iter().flat_map(|one| &one.others) {
        if !others.contains(&path) {
            others.push(path);
        }
    }
    others
}

/// Returns the operations that bring our members and items back. Items come last in their list.
fn additions(replaced: &[ReplacedMember], body: &Value, live: &Value) -> Vec<Value> {
    let addition = |one: &ReplacedMember| {
        let value = one.missing.find(body)?;
        let (parent, last) = split(&one.missing)?;
        let pointer = match last {
            PathElement::Key(_) => one.missing.pointer(live)?,
            _ => format!("{}/-", parent.pointer(live)?),
        };
        Some(json!({ "op": "add", "path": pointer, "value": value }))
    };
    replaced.iter().filter_map(addition).collect()
}

/// Returns the operations that take fields and items away. The last items go first, as each moves
/// those behind it.
fn removals(removed: &[&FieldPath], live: &Value) -> Vec<Value> {
    let mut pointers: Vec<String> = removed.iter().filter_map(|path| path.pointer(live)).collect();
    let steps = |pointer: &String| -> Vec<(Option<usize>, String)> {
        pointer.split('/').map(|step| (step.parse().ok(), step.to_owned())).collect()
    };
    pointers.sort_by_key(|pointer| std::cmp::Reverse(steps(pointer)));
    pointers.into_iter().map(|pointer| json!({ "op": "remove", "path": pointer })).collect()
}

/// Returns the FieldsV1 tree of a value, whose lists are owned as one.
fn shape_of(value: &Value) -> Value {
    let Some(map) = value.as_object().filter(|map| !map.is_empty()) else { return json!({}) };
    let fields = map.iter().map(|(key, value)| (format!("f:{key}"), shape_of(value)));
    Value::Object(fields.chain([(".".to_owned(), json!({}))]).collect())
}

/// Returns the path above a path's last step, and that step.
fn split(path: &FieldPath) -> Option<(FieldPath, &PathElement)> {
    let (last, above) = path.elements().split_last()?;
    Some((FieldPath::from(above.to_vec()), last))
}

/// Returns the value above a path's last step.
fn parent_of<'a>(object: &'a mut Value, parent: &FieldPath) -> Option<&'a mut Value> {
    let pointer = parent.pointer(object)?;
    object.pointer_mut(&pointer)
}

fn remove_at(object: &mut Value, path: &FieldPath) {
    let Some((parent, last)) = split(path) else { return };
    let nth = position(object, path);
    match (parent_of(object, &parent), last, nth) {
        (Some(Value::Object(map)), PathElement::Key(key), _) => drop(map.remove(&**key)),
        (Some(Value::Array(items)), _, Some(nth)) => drop(items.remove(nth)),
        _ => {}
    }
}

/// Puts a value in where a path ends. An item comes to the place that it has in its content.
fn insert_at(object: &mut Value, path: &FieldPath, content: &Value) {
    let (Some((parent, last)), Some(value)) = (split(path), path.find(content)) else { return };
    match (parent_of(object, &parent), last) {
        (Some(Value::Object(map)), PathElement::Key(key)) => {
            map.insert(key.to_string(), value.clone());
        }
        (Some(Value::Array(items)), _) => {
            let nth = position(content, path).map_or(items.len(), |nth| nth.min(items.len()));
            items.insert(nth, value.clone());
        }
        _ => {}
    }
}

/// Returns the position of the item at which a path ends.
fn position(object: &Value, path: &FieldPath) -> Option<usize> {
    path.pointer(object)?.rsplit_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the path of a port.
    fn port(number: u16) -> FieldPath {
        let mut path = FieldPath::of_keys(&["spec", "ports"]);
        path.push(PathElement::Item(vec![("port".into(), json!(number))]));
        path
    }

    #[test]
    fn places_of_a_version_hold_while_items_come_and_go() {
        let ports = |numbers: &[u16]| -> Value {
            let ports = numbers.iter().map(|number| json!({ "port": number }));
            json!({ "spec": { "ports": ports.collect::<Vec<_>>() } })
        };
        let live = ports(&(0..12).collect::<Vec<u16>>());
        let gone = [&port(2), &port(10), &port(9)];
        let paths: Vec<Value> = removals(&gone, &live).iter().map(|one| one["path"].clone()).collect();
        assert_eq!(paths, ["/spec/ports/10", "/spec/ports/9", "/spec/ports/2"]);
        let replaced = [ReplacedMember { missing: port(80), others: vec![port(2)] }];
        let added = additions(&replaced, &ports(&[1, 80]), &live);
        assert_eq!(added, [json!({ "op": "add", "path": "/spec/ports/-", "value": { "port": 80 } })]);
        let mut shown = ports(&[1, 2, 3]);
        remove_at(&mut shown, &port(2));
        insert_at(&mut shown, &port(80), &ports(&[1, 80]));
        assert_eq!(shown, ports(&[1, 80, 3]));
    }
}
