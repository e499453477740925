//! Writes: server-side apply and deletes, both under preconditions.

use std::sync::Arc;

use http::{Method, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Preconditions};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value};

use super::call::{ApiRequest, ApiResponse, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::kinds::ServedKind;
use super::omitted_strategy::OmittedStrategy;
use super::wire::{LiveDecoder, WireDecoder as _, WireForm};
use super::{FIELD_MANAGER, path};
use crate::engine::{LiveObject, Precondition, ResourceVersion, Uid};
use crate::object::ObjectId;

pub(super) const APPLY_PATCH: &str = "application/apply-patch+yaml";
pub(super) const JSON_TYPE: &str = "application/json";

/// A version that no object has, as the first write to an empty store gets a higher one. An apply
/// that names it creates what is missing, and is refused where an object is there.
const ABSENT_VERSION: &str = "1";

/// Indicates whether fields that other managers own with other values are taken from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyForce {
    /// The write is refused.
    Unforced,
    /// They are taken.
    Forced,
}

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyResult {
    /// The object as the server answered it. Never to be written into the store: a watch may be
    /// ahead.
    pub live: LiveObject,
    /// Indicates whether the object did not exist before.
    pub created: bool,
    /// The server's warnings, as of an API version that goes away; none for Secrets.
    pub warnings: Vec<String>,
}

/// The result of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteResult {
    /// It is gone, or was already.
    Gone,
    /// It is being deleted: finalizers, pods that end, or owned objects first.
    Accepted,
}

/// Indicates whether a write is only tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatchMode {
    Real,
    Dry,
}

impl Cluster {
    /// Applies a content by server-side apply, under a precondition, with strict field validation.
    ///
    /// An apply that changes nothing leaves the resourceVersion as it is.
    ///
    /// # Errors
    ///
    /// Fails where the server refuses the content or does not answer in time, and with
    /// [`ClusterFault::VersionConflict`] where the precondition does not hold. Without an answer
    /// the write may have been done.
    pub async fn apply(
        &self,
        kind: &Arc<ServedKind>,
        id: &ObjectId,
        body: &Value,
        precondition: &Precondition,
        force: ApplyForce,
    ) -> Result<ApplyResult, ClusterError> {
        let on = CallSubject::Object(id.clone());
        let content = ConditionalBody {
            body,
            precondition: PreconditionFields::new(precondition, PatchMode::Real, &on)?,
        };
        let answer = match self.send_patch(kind, id, &content, force, PatchMode::Real).await {
            Err(refusal) if *precondition == Precondition::Absent && is_version_refused(&refusal) => {
                // Fields of others with other values are a conflict still.
                let content = ConditionalBody { body, precondition: PreconditionFields::default() };
                self.send_patch(kind, id, &content, ApplyForce::Unforced, PatchMode::Real).await?
            }
            answer => answer?,
        };
        let seen = LiveDecoder::new(kind, self.interner(), WireForm::Full).decode(answer.text(&on)?);
        let Some(seen) = seen else {
            return Err(ClusterError::new(
                on,
                ClusterFault::Garbled { reason: "the answer is no object".to_owned() },
            ));
        };
        let warnings = if on.is_secret() { Vec::new() } else { warning_texts(&answer) };
        Ok(ApplyResult { live: seen.record, created: answer.status == StatusCode::CREATED, warnings })
    }

    /// Returns the whole object as it would be after an apply. Nothing is written. The live object
    /// shows which fields the apply would have to make ours first, see
    /// [`Cluster::take_rolling_update_ownership`].
    ///
    /// # Errors
    ///
    /// Fails where the server refuses the content or the precondition does not hold, and where it
    /// does not answer.
    pub async fn dry_run(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        body: &Value,
        live: Option<&Value>,
        precondition: &Precondition,
    ) -> Result<Value, ClusterError> {
        let on = CallSubject::Object(id.clone());
        let force =
            if *precondition == Precondition::Absent { ApplyForce::Unforced } else { ApplyForce::Forced };
        let left_out = OmittedStrategy::of(&id.group_kind(), body, live);
        let body = left_out.as_ref().map_or(body, |left_out| &left_out.body);
        let content = ConditionalBody {
            body,
            precondition: PreconditionFields::new(precondition, PatchMode::Dry, &on)?,
        };
        let answer = self.send_patch(kind, id, &content, force, PatchMode::Dry).await?.decode(&on)?;
        Ok(match left_out {
            Some(left_out) => left_out.put_back(answer),
            None => answer,
        })
    }

    async fn send_patch(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        content: &ConditionalBody<'_>,
        force: ApplyForce,
        mode: PatchMode,
    ) -> Result<ApiResponse, ClusterError> {
        let on = CallSubject::Object(id.clone());
        let mut parameters = vec![("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")];
        if force == ApplyForce::Forced {
            parameters.push(("force", "true"));
        }
        if mode == PatchMode::Dry {
            parameters.push(("dryRun", "All"));
        }
        let url = path::with_query(path::object(kind, id), &parameters);
        let text = serde_json::to_vec(content).map_err(|error| {
            ClusterError::new(on.clone(), ClusterFault::Garbled { reason: format!("no JSON: {error}") })
        })?;
        self.call(ApiRequest::write(Method::PATCH, url, APPLY_PATCH, text, on)).await
    }

    /// Deletes exactly this incarnation in exactly this version. The garbage collector deletes what
    /// it owns, afterwards.
    ///
    /// Another incarnation under the same name means that this one is gone; it is not touched.
    ///
    /// # Errors
    ///
    /// Fails with [`ClusterFault::VersionConflict`] where the incarnation is there in another
    /// version, and where the server refuses it or does not answer in time.
    pub async fn delete(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        uid: &Uid,
        rv: ResourceVersion,
    ) -> Result<DeleteResult, ClusterError> {
        let on = CallSubject::Object(id.clone());
        let options = DeleteOptions {
            propagation_policy: Some("Background".to_owned()),
            preconditions: Some(Preconditions {
                uid: Some(uid.0.to_string()),
                resource_version: Some(exact_version(rv, &on)?),
            }),
            ..DeleteOptions::default()
        };
        let ask = ApiRequest::write(
            Method::DELETE,
            path::object(kind, id),
            JSON_TYPE,
            json_body(&options, &on)?,
            on,
        );
        match self.call(ask).await {
            Ok(answer) => Ok(delete_result(&answer)),
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(DeleteResult::Gone),
            // The 409 does not say which precondition failed.
            Err(error) if *error.fault() == ClusterFault::VersionConflict => {
                match self.get(kind, id).await? {
                    Some(now) if crate::object::text_at(&now, &["metadata", "uid"]) == &*uid.0 => Err(error),
                    _ => Ok(DeleteResult::Gone),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns whether a creation is refused for the version that it names. The storage of an
/// aggregated API server may take none for a new object.
fn is_version_refused(refusal: &ClusterError) -> bool {
    let is_named = |text: &str| text.to_ascii_lowercase().contains("resourceversion");
    match refusal.fault() {
        ClusterFault::Server { message, .. } => is_named(message),
        ClusterFault::Invalid { message, fields } => {
            is_named(message) || fields.iter().any(|invalid| is_named(&invalid.field))
        }
        _ => false,
    }
}

/// Reads the answer to a delete. Only an object that waits for something has a deletionTimestamp:
/// one that is gone comes back as it was last, or as a `Status`.
fn delete_result(answer: &ApiResponse) -> DeleteResult {
    let body: Map<String, Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
    let waits = body.get("metadata").is_some_and(|metadata| metadata.get("deletionTimestamp").is_some());
    if waits { DeleteResult::Accepted } else { DeleteResult::Gone }
}

/// Returns the texts of `Warning: 299 - "..."`.
fn warning_texts(answer: &ApiResponse) -> Vec<String> {
    let headers = answer.headers.get_all(http::header::WARNING).into_iter();
    headers
        .filter_map(|value| value.to_str().ok())
        .filter_map(|value| value.split_once('"')?.1.strip_suffix('"'))
        .map(|text| text.replace("\\\"", "\""))
        .collect()
}

/// Returns a request's body.
pub(super) fn json_body(content: &impl Serialize, on: &CallSubject) -> Result<Vec<u8>, ClusterError> {
    serde_json::to_vec(content).map_err(|error| {
        ClusterError::new(on.clone(), ClusterFault::Garbled { reason: format!("no JSON: {error}") })
    })
}

/// Returns a version as a precondition names it. A write that must meet a version is never sent
/// without it, as the server then takes any.
pub(super) fn exact_version(rv: ResourceVersion, on: &CallSubject) -> Result<String, ClusterError> {
    rv.precondition_text().ok_or_else(|| ClusterError::new(on.clone(), ClusterFault::UnreadableVersion))
}

/// A precondition in the fields that carry it.
#[derive(Default)]
struct PreconditionFields<'a> {
    uid: Option<&'a Uid>,
    version: Option<String>,
}

impl<'a> PreconditionFields<'a> {
    /// Reads a precondition. A dry run names no absence: it writes nothing, and its answer would show
    /// the version.
    fn new(precondition: &'a Precondition, mode: PatchMode, on: &CallSubject) -> Result<Self, ClusterError> {
        let (uid, version) = match (precondition, mode) {
            (Precondition::Absent, PatchMode::Real) => (None, Some(ABSENT_VERSION.to_owned())),
            (Precondition::Absent, PatchMode::Dry) => (None, None),
            (Precondition::Uid(uid), _) => (Some(uid), None),
            (Precondition::Exact(uid, rv), _) => (Some(uid), Some(exact_version(*rv, on)?)),
        };
        Ok(Self { uid, version })
    }
}

/// A body with its precondition in `metadata`, written without a copy of the body.
struct ConditionalBody<'a> {
    body: &'a Value,
    precondition: PreconditionFields<'a>,
}

impl Serialize for ConditionalBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(fields) = self.body.as_object() else { return self.body.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (key, value) in fields {
            match value.as_object() {
                Some(metadata) if key == "metadata" => {
                    map.serialize_entry(
                        key,
                        &ConditionalMetadata { metadata, precondition: &self.precondition },
                    )?;
                }
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

struct ConditionalMetadata<'a> {
    metadata: &'a Map<String, Value>,
    precondition: &'a PreconditionFields<'a>,
}

impl Serialize for ConditionalMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.metadata {
            // The precondition decides about the incarnation. The server refuses an apply that
            // brings managedFields.
            if !matches!(key.as_str(), "uid" | "resourceVersion" | "managedFields") {
                map.serialize_entry(key, value)?;
            }
        }
        if let Some(uid) = self.precondition.uid {
            map.serialize_entry("uid", &uid.0)?;
        }
        if let Some(version) = &self.precondition.version {
            map.serialize_entry("resourceVersion", version)?;
        }
        map.end()
    }
}
