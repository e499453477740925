//! Objects of kind `Source`, as whole trees: what they say is the configuration's.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Ask, Cluster};
use super::error::{Error, Fault, On};
use super::parent::MERGE_PATCH;
use super::write;
use super::{FIELD_MANAGER, path};
use crate::object::{GroupKind, ObjectId};

const APPLY: &str = "application/apply-patch+yaml";

#[derive(Deserialize)]
struct List {
    items: Vec<Value>,
}

fn kind() -> GroupKind {
    GroupKind::new("rhumb.dev", "Source")
}

impl Cluster {
    /// All of them at a path.
    pub async fn custom_sources(&self, path: &str) -> Result<Vec<Value>, Error> {
        let on = On::Kind(kind());
        let list: List = self.ask(Ask::read(path.to_owned(), on.clone())).await?.decode(&on)?;
        Ok(list.items)
    }

    /// Gives one these finalizers, in the version that was read.
    ///
    /// Fails with [`Fault::Stale`] where somebody else was faster; that it is gone is no failure.
    pub async fn tie_custom_source(
        &self,
        path: &str,
        (name, uid, version): (&str, &str, &str),
        finalizers: &[String],
    ) -> Result<(), Error> {
        let on = On::Object(ObjectId::new(&kind(), None, name));
        let url = path::query(format!("{path}/{name}"), &[("fieldManager", FIELD_MANAGER)]);
        let metadata = json!({ "uid": uid, "resourceVersion": version, "finalizers": finalizers });
        let body = write::json(&json!({ "metadata": metadata }), &on)?;
        match self.ask(Ask::write(Method::PATCH, url, MERGE_PATCH, body, on)).await {
            Err(error) if *error.fault() == Fault::NoObject => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Applies the status of one.
    pub async fn tell_custom_source(&self, path: &str, head: Value, status: &Value) -> Result<(), Error> {
        let name = head.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let namespace = head.pointer("/metadata/namespace").and_then(Value::as_str);
        let on = On::Object(ObjectId::new(&kind(), namespace, name));
        let url = path::query(
            format!("{path}/{name}/status"),
            &[("fieldManager", FIELD_MANAGER), ("force", "true")],
        );
        let mut body = head;
        if let Value::Object(body) = &mut body {
            body.insert("status".to_owned(), json!(status));
        }
        let body = write::json(&body, &on)?;
        self.ask(Ask::write(Method::PATCH, url, APPLY, body, on)).await.map(drop)
    }
}
