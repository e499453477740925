//! Scales one ReplicaSet of a Deployment.

use http::Method;
use serde_json::json;

use super::super::FIELD_MANAGER;
use super::super::call::{ApiRequest, Cluster};
use super::super::error::{CallSubject, ClusterError};
use super::super::inventory::MERGE_PATCH;
use super::super::{path, write};
use super::{REPLICA_SETS, kind};
use crate::engine::{ResourceVersion, Uid};
use crate::object::ObjectId;

impl Cluster {
    /// Sets the replicas of exactly this incarnation of a ReplicaSet, in exactly this version.
    ///
    /// Fails with a conflict where it is another one by now.
    pub(crate) async fn scale_replica_set(
        &self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        rv: ResourceVersion,
        replicas: u32,
    ) -> Result<(), ClusterError> {
        let sets = kind(&REPLICA_SETS);
        let id = ObjectId::new(&sets.gvk.group_kind(), Some(namespace), name);
        let on = CallSubject::Object(id.clone());
        // The server compares both with those of the ReplicaSet itself, and tries nothing anew.
        let patch = json!({
            "metadata": { "uid": uid.0, "resourceVersion": write::exact_version(rv, &on)? },
            "spec": { "replicas": replicas },
        });
        let url = format!("{}/scale", path::object(&sets, &id));
        let url = path::with_query(url, &[("fieldManager", FIELD_MANAGER)]);
        let body = write::json_body(&patch, &on)?;
        self.call(ApiRequest::write(Method::PATCH, url, MERGE_PATCH, body, on)).await.map(drop)
    }
}
