//! Objects of kind `Source`, as whole trees: what they say is the configuration's.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::inventory::MERGE_PATCH;
use super::write::{self, APPLY_PATCH};
use super::{FIELD_MANAGER, path};
use crate::object::{GroupKind, ObjectId};

#[derive(Deserialize)]
struct CustomSourceList {
    items: Vec<Value>,
}

fn kind() -> GroupKind {
    GroupKind::new("rhumb.dev", "Source")
}

/// An object of kind `Source` in the version in which it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CustomSourceVersion<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its incarnation.
    pub uid: &'a str,
    /// Its resource version.
    pub version: &'a str,
}

impl Cluster {
    /// Returns all of them at a path.
    pub(crate) async fn list_custom_sources(&self, path: &str) -> Result<Vec<Value>, ClusterError> {
        let on = CallSubject::Kind(kind());
        let list: CustomSourceList =
            self.call(ApiRequest::read(path.to_owned(), on.clone())).await?.decode(&on)?;
        Ok(list.items)
    }

    /// Gives one these finalizers, in the version that was read.
    ///
    /// Fails with [`ClusterFault::VersionConflict`] where somebody else was faster; that it is gone
    /// is no failure.
    pub(crate) async fn patch_finalizers(
        &self,
        path: &str,
        read: CustomSourceVersion<'_>,
        finalizers: &[String],
    ) -> Result<(), ClusterError> {
        let CustomSourceVersion { name, uid, version } = read;
        let on = CallSubject::Object(ObjectId::new(&kind(), None, name));
        let url = path::with_query(format!("{path}/{name}"), &[("fieldManager", FIELD_MANAGER)]);
        let metadata = json!({ "uid": uid, "resourceVersion": version, "finalizers": finalizers });
        let body = write::json_body(&json!({ "metadata": metadata }), &on)?;
        match self.call(ApiRequest::write(Method::PATCH, url, MERGE_PATCH, body, on)).await {
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Applies the status of one.
    pub(crate) async fn apply_custom_source_status(
        &self,
        path: &str,
        head: Value,
        status: &Value,
    ) -> Result<(), ClusterError> {
        let name = head.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let namespace = head.pointer("/metadata/namespace").and_then(Value::as_str);
        let on = CallSubject::Object(ObjectId::new(&kind(), namespace, name));
        let url = path::with_query(
            format!("{path}/{name}/status"),
            &[("fieldManager", FIELD_MANAGER), ("force", "true")],
        );
        let mut body = head;
        if let Value::Object(body) = &mut body {
            body.insert("status".to_owned(), json!(status));
        }
        let body = write::json_body(&body, &on)?;
        self.call(ApiRequest::write(Method::PATCH, url, APPLY_PATCH, body, on)).await.map(drop)
    }
}
