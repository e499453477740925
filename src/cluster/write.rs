//! Writes: server-side apply under a guard, and deletes under preconditions.

use std::sync::Arc;

use http::{Method, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Preconditions};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value};

use super::call::{Answer, Ask, Cluster};
use super::error::{Error, Fault, On};
use super::kinds::Kind;
use super::strategy::LeftOut;
use super::wire::{Form, Lens, Project as _};
use super::{FIELD_MANAGER, path};
use crate::engine::{Guard, Live, Rv, Uid};
use crate::object::ObjectId;

const APPLY: &str = "application/apply-patch+yaml";
pub(super) const JSON: &str = "application/json";

/// Whether fields that other managers own with other values are taken from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// The write is refused.
    No,
    /// They are taken.
    Yes,
}

/// Who deletes the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector, afterwards.
    Background,
    /// The garbage collector, before.
    Foreground,
    /// Nobody: they stay.
    Orphan,
}

/// What an apply did.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object as the server answered it. Never to be written into the store: a watch may be ahead.
    pub live: Live,
    /// Whether the object did not exist before.
    pub created: bool,
    /// The server's warnings, as of an API version that goes away; none for Secrets.
    pub warnings: Vec<String>,
}

/// What a delete did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone, or was already.
    Gone,
    /// It is being deleted: finalizers, pods that end, or owned objects first.
    Accepted,
}

/// Whether a write is only tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Real,
    Dry,
}

impl Cluster {
    /// Applies a content by server-side apply, under a guard, with strict field validation.
    ///
    /// An apply that changes nothing leaves the resourceVersion as it is.
    pub async fn apply(
        &self,
        kind: &Arc<Kind>,
        id: &ObjectId,
        body: &Value,
        guard: &Guard,
        force: Force,
    ) -> Result<Applied, Error> {
        let on = On::Object(id.clone());
        let answer = self.patch(kind, id, &Guarded { body, guard }, force, Mode::Real).await?;
        let seen = Lens::new(kind, self.interner(), Form::Whole).project(answer.text(&on)?);
        let Some(seen) = seen else {
            return Err(Error::new(on, Fault::Garbled { reason: "the answer is no object".to_owned() }));
        };
        let warnings = if on.is_secret() { Vec::new() } else { warnings(&answer) };
        Ok(Applied { live: seen.record, created: answer.status == StatusCode::CREATED, warnings })
    }

    /// Asks what an apply would make of the object: the whole object after it. Nothing is written. What is there now
    /// tells what the apply would have to make ours first, see [`Cluster::own_strategy`].
    pub async fn dry_run(
        &self,
        kind: &Kind,
        id: &ObjectId,
        body: &Value,
        live: Option<&Value>,
        guard: &Guard,
    ) -> Result<Value, Error> {
        let force = if *guard == Guard::Absent { Force::No } else { Force::Yes };
        let left_out = LeftOut::of(&id.group_kind(), body, live);
        let body = left_out.as_ref().map_or(body, |left_out| &left_out.body);
        let answer = self.patch(kind, id, &Guarded { body, guard }, force, Mode::Dry).await?;
        let answer = answer.decode(&On::Object(id.clone()))?;
        Ok(match left_out {
            Some(left_out) => left_out.put_back(answer),
            None => answer,
        })
    }

    async fn patch(
        &self,
        kind: &Kind,
        id: &ObjectId,
        content: &Guarded<'_>,
        force: Force,
        mode: Mode,
    ) -> Result<Answer, Error> {
        let on = On::Object(id.clone());
        let mut parameters = vec![("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")];
        if force == Force::Yes {
            parameters.push(("force", "true"));
        }
        if mode == Mode::Dry {
            parameters.push(("dryRun", "All"));
        }
        let url = path::query(path::object(kind, id), &parameters);
        let text = serde_json::to_vec(content).map_err(|error| {
            Error::new(on.clone(), Fault::Garbled { reason: format!("no JSON: {error}") })
        })?;
        self.ask(Ask::write(Method::PATCH, url, APPLY, text, on)).await
    }

    /// Deletes exactly this incarnation in exactly this version.
    ///
    /// Another incarnation under the same name means that this one is gone; it is not touched.
    pub async fn delete(
        &self,
        kind: &Kind,
        id: &ObjectId,
        uid: &Uid,
        rv: Rv,
        propagation: Propagation,
    ) -> Result<Deleted, Error> {
        let on = On::Object(id.clone());
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let options = DeleteOptions {
            propagation_policy: Some(policy.to_owned()),
            preconditions: Some(Preconditions {
                uid: Some(uid.0.to_string()),
                resource_version: sendable(rv),
            }),
            ..DeleteOptions::default()
        };
        let ask = Ask::write(Method::DELETE, path::object(kind, id), JSON, json(&options, &on)?, on);
        match self.ask(ask).await {
            Ok(answer) => Ok(deleted(&answer)),
            Err(error) if *error.fault() == Fault::NoObject => Ok(Deleted::Gone),
            // The 409 does not say which precondition failed.
            Err(error) if *error.fault() == Fault::Stale => match self.get(kind, id).await? {
                Some(now) if crate::object::text_at(&now, &["metadata", "uid"]) == &*uid.0 => Err(error),
                _ => Ok(Deleted::Gone),
            },
            Err(error) => Err(error),
        }
    }
}

/// A `Status` means that it is gone; the object itself comes back while it is still there.
fn deleted(answer: &Answer) -> Deleted {
    let body: Map<String, Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
    let gone = body.get("kind").is_some_and(|kind| kind == "Status") && answer.status == StatusCode::OK;
    // Without a deletionTimestamp the answer is the object as it was last.
    let waits = body.get("metadata").is_some_and(|metadata| metadata.get("deletionTimestamp").is_some());
    if gone || !waits { Deleted::Gone } else { Deleted::Accepted }
}

/// The texts of `Warning: 299 - "..."`.
fn warnings(answer: &Answer) -> Vec<String> {
    let headers = answer.headers.get_all(http::header::WARNING).into_iter();
    headers
        .filter_map(|value| value.to_str().ok())
        .filter_map(|value| value.split_once('"')?.1.strip_suffix('"'))
        .map(|text| text.replace("\\\"", "\""))
        .collect()
}

/// A request's body.
pub(super) fn json(content: &impl Serialize, on: &On) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(content)
        .map_err(|error| Error::new(on.clone(), Fault::Garbled { reason: format!("no JSON: {error}") }))
}

/// A version as the server knows it; zero stands for one that is no number, see `wire::version`.
fn sendable(rv: Rv) -> Option<String> {
    (rv.0 != 0).then(|| rv.to_string())
}

/// A body with its guard in `metadata`, written without a copy of the body.
struct Guarded<'a> {
    body: &'a Value,
    guard: &'a Guard,
}

impl Serialize for Guarded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(fields) = self.body.as_object() else { return self.body.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (key, value) in fields {
            match value.as_object() {
                Some(metadata) if key == "metadata" => {
                    map.serialize_entry(key, &GuardedMetadata { metadata, guard: self.guard })?;
                }
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

struct GuardedMetadata<'a> {
    metadata: &'a Map<String, Value>,
    guard: &'a Guard,
}

impl Serialize for GuardedMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.metadata {
            // Whatever the content says about the incarnation, the guard decides; and the server refuses
            // an apply that brings managedFields.
            if !matches!(key.as_str(), "uid" | "resourceVersion" | "managedFields") {
                map.serialize_entry(key, value)?;
            }
        }
        match self.guard {
            Guard::Absent => {}
            Guard::Uid(uid) => map.serialize_entry("uid", &uid.0)?,
            Guard::Exact(uid, rv) => {
                map.serialize_entry("uid", &uid.0)?;
                if let Some(rv) = sendable(*rv) {
                    map.serialize_entry("resourceVersion", &rv)?;
                }
            }
        }
        map.end()
    }
}
