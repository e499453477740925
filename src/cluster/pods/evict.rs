//! Evicts one pod.

use std::sync::Arc;

use http::Method;
use serde_json::json;

use super::super::call::{ApiRequest, Cluster};
use super::super::error::{CallSubject, ClusterError, ClusterFault};
use super::super::path;
use super::super::write::{self, DeleteResult, JSON_TYPE};
use super::{POD_KIND, kind};
use crate::engine::{ResourceVersion, Uid};
use crate::object::{ObjectId, text_at};

/// The beginning of the server's message where it cannot choose between budgets.
const MULTIPLE_BUDGETS_TEXT: &str = "This pod has more than one PodDisruptionBudget";

/// The result of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictionResponse {
    /// The pod is being deleted.
    Accepted,
    /// A `PodDisruptionBudget` does not allow it now; in the server's words, which name the budget.
    Blocked(Arc<str>),
    /// The pod is gone already, or another incarnation has its name.
    Gone,
}

impl Cluster {
    /// Evicts exactly this incarnation of a pod, if its disruption budgets allow it.
    ///
    /// # Errors
    ///
    /// Fails where the server refuses it, or does not answer. A budget that forbids it is a result.
    pub async fn evict(
        &self,
        namespace: &str,
        name: &str,
        uid: &Uid,
    ) -> Result<EvictionResponse, ClusterError> {
        let pods = kind(&POD_KIND);
        let id = ObjectId::new(&pods.gvk.group_kind(), Some(namespace), name);
        let on = CallSubject::Object(id.clone());
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": name, "namespace": namespace },
            "deleteOptions": { "preconditions": { "uid": uid.0 } },
        });
        let url = format!("{}/eviction", path::object(&pods, &id));
        let request = ApiRequest::write(Method::POST, url, JSON_TYPE, write::json_body(&body, &on)?, on);
        let Err(error) = self.call(request).await else { return Ok(EvictionResponse::Accepted) };
        match error.fault() {
            ClusterFault::NoObject => Ok(EvictionResponse::Gone),
            ClusterFault::Disruption { message } => Ok(EvictionResponse::Blocked(message.as_str().into())),
            ClusterFault::Server { message, .. } if message.starts_with(MULTIPLE_BUDGETS_TEXT) => {
                Ok(EvictionResponse::Blocked(message.as_str().into()))
            }
            // The 409 does not say whether another incarnation is the reason.
            ClusterFault::VersionConflict => match self.get(&pods, &id).await? {
                Some(now) if text_at(&now, &["metadata", "uid"]) == &*uid.0 => Err(error),
                _ => Ok(EvictionResponse::Gone),
            },
            _ => Err(error),
        }
    }

    /// Deletes exactly this incarnation of a pod in exactly this version, whatever its budgets say.
    ///
    /// # Errors
    ///
    /// Fails as [`Cluster::delete`].
    pub async fn delete_pod(
        &self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        rv: ResourceVersion,
    ) -> Result<DeleteResult, ClusterError> {
        let pods = kind(&POD_KIND);
        let id = ObjectId::new(&pods.gvk.group_kind(), Some(namespace), name);
        self.delete(&pods, &id, uid, rv).await
    }
}
