//! Kubernetes Events of our own: what happened to an object, beside the object.
//!
//! They have `core/v1`'s form, which every `kubectl` shows, with the count of one that is repeated,
//! as client-go's recorder writes them.

use std::collections::BTreeMap;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::json;

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError};
use super::inventory::MERGE_PATCH;
use super::write::{JSON_TYPE, json_body};
use super::{FIELD_MANAGER, path};
use crate::engine::Uid;
use crate::object::{GroupKind, Gvk, ObjectId};

/// The longest message that the API server takes, in bytes.
pub(crate) const MAX_EVENT_MESSAGE_BYTES: usize = 1024;

/// Events about what has no namespace are in this one, as client-go has it.
pub(crate) const CLUSTER_EVENTS_NAMESPACE: &str = "default";

/// Indicates whether it needs a person's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    /// Nothing has to be done.
    Normal,
    /// A person should look at it.
    Warning,
}

/// An Event, as it is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KubernetesEvent {
    /// The object that it is about.
    pub id: ObjectId,
    /// The version of its kind.
    pub gvk: Gvk,
    /// The incarnation, where one is known.
    pub uid: Option<Uid>,
    /// A word for programs, for example `RolloutFailed`.
    pub reason: String,
    /// The message for people; at most [`MAX_EVENT_MESSAGE_BYTES`] bytes.
    pub message: String,
    /// Indicates whether it needs a person's attention.
    pub severity: EventType,
    /// The number of occurrences.
    pub count: u32,
    /// The time of the first occurrence.
    pub first: Timestamp,
    /// The time of the last occurrence.
    pub last: Timestamp,
    /// Annotations of the Event itself.
    pub annotations: BTreeMap<String, String>,
}

impl KubernetesEvent {
    fn namespace(&self) -> &str {
        self.id.namespace().unwrap_or(CLUSTER_EVENTS_NAMESPACE)
    }

    fn event_subject(&self, name: &str) -> CallSubject {
        CallSubject::Object(ObjectId::new(&GroupKind::new("", "Event"), Some(self.namespace()), name))
    }

    fn event_body(&self, name: &str) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace().to_owned()),
                annotations: Some(self.annotations.clone()).filter(|annotations| !annotations.is_empty()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(self.gvk.api_version()),
                kind: Some(self.gvk.kind.to_string()),
                namespace: self.id.namespace().map(str::to_owned),
                name: Some(self.id.name().to_owned()),
                uid: self.uid.as_ref().map(ToString::to_string),
                ..ObjectReference::default()
            },
            reason: Some(self.reason.clone()),
            message: Some(self.message.clone()),
            type_: Some(if self.severity == EventType::Warning { "Warning" } else { "Normal" }.to_owned()),
            count: i32::try_from(self.count).ok(),
            first_timestamp: Some(Time(self.first)),
            last_timestamp: Some(Time(self.last)),
            source: Some(EventSource { component: Some(FIELD_MANAGER.to_owned()), host: None }),
            reporting_component: Some(FIELD_MANAGER.to_owned()),
            reporting_instance: Some(FIELD_MANAGER.to_owned()),
            ..Event::default()
        }
    }
}

impl Cluster {
    /// Makes an Event under a name that nobody else has.
    pub(crate) async fn make_event(
        &self,
        occurrence: &KubernetesEvent,
        name: &str,
    ) -> Result<(), ClusterError> {
        let on = occurrence.event_subject(name);
        let body = json_body(&occurrence.event_body(name), &on)?;
        let collection = format!("/api/v1/namespaces/{}/events", occurrence.namespace());
        let url = path::with_query(collection, &[("fieldManager", FIELD_MANAGER)]);
        self.call(ApiRequest::write(Method::POST, url, JSON_TYPE, body, on)).await.map(drop)
    }

    /// Says of an Event that was made that it happened again; fails with
    /// [`ClusterFault::NoObject`](super::ClusterFault::NoObject) where it has expired.
    pub(crate) async fn repeat_event(
        &self,
        occurrence: &KubernetesEvent,
        name: &str,
    ) -> Result<(), ClusterError> {
        let on = occurrence.event_subject(name);
        let patch = json!({
            "count": occurrence.count,
            "lastTimestamp": occurrence.last,
            "message": occurrence.message,
        });
        let event = format!("/api/v1/namespaces/{}/events/{name}", occurrence.namespace());
        let url = path::with_query(event, &[("fieldManager", FIELD_MANAGER)]);
        self.call(ApiRequest::write(Method::PATCH, url, MERGE_PATCH, json_body(&patch, &on)?, on))
            .await
            .map(drop)
    }
}
