//! What the command line writes in the name of its user: annotations, and nothing else.

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::{Ask, Cluster};
use super::error::{Error, On};
use super::kinds::Kind;
use super::parent::{ID_LABEL, MERGE_PATCH, Parent};
use super::path;
use super::write::json;
use crate::object::{GroupKind, ObjectId};

/// The field manager of what people ask for. Never the one of what a source says: the entry of that one tells drift.
pub(super) const PERSON: &str = "rhumb-cli";

/// Whose annotations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The object's own.
    Object,
    /// Those of a workload's pod template: its pods are replaced.
    Template,
}

/// A list of whole objects.
#[derive(Deserialize)]
struct Objects {
    #[serde(default)]
    items: Vec<Value>,
}

/// A list of parents.
#[derive(Deserialize)]
struct Parents {
    #[serde(default)]
    items: Vec<ConfigMap>,
}

impl Cluster {
    /// Sets an annotation of an object, or takes it away, as its user.
    pub async fn annotate(
        &self,
        kind: &Kind,
        id: &ObjectId,
        spot: Spot,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), Error> {
        let url = path::query(path::object(kind, id), &[("fieldManager", PERSON)]);
        self.merge(url, spot, (key, value), On::Object(id.clone())).await
    }

    /// As [`Cluster::annotate`], on the parent of a source.
    pub async fn annotate_parent(
        &self,
        namespace: &str,
        name: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), Error> {
        let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(namespace), name);
        let url = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let url = path::query(url, &[("fieldManager", PERSON)]);
        self.merge(url, Spot::Object, (key, value), On::Object(id)).await
    }

    async fn merge(
        &self,
        url: String,
        spot: Spot,
        (key, value): (&str, Option<&str>),
        on: On,
    ) -> Result<(), Error> {
        let annotations = Map::from_iter([(key.to_owned(), value.map_or(Value::Null, Value::from))]);
        let metadata = json!({"metadata": {"annotations": annotations}});
        let patch = match spot {
            Spot::Object => metadata,
            Spot::Template => json!({"spec": {"template": metadata}}),
        };
        let body = json(&patch, &on)?;
        self.ask(Ask::write(Method::PATCH, url, MERGE_PATCH, body, on)).await.map(drop)
    }

    /// The parents of all sources, by name.
    pub async fn parents(&self, namespace: &str) -> Result<Vec<(String, Parent)>, Error> {
        let on = On::Kind(GroupKind::new("", "ConfigMap"));
        let url = format!("/api/v1/namespaces/{namespace}/configmaps");
        let url = path::query(url, &[("labelSelector", ID_LABEL)]);
        let list: Parents = self.ask(Ask::read(url, on.clone())).await?.decode(&on)?;
        // Who may write a source's orders object may label it as a parent, which that is not.
        let named = |object: ConfigMap| {
            let name = object.metadata.name.clone().filter(|name| !name.contains('.'))?;
            Some((name, Parent::read(object)))
        };
        Ok(list.items.into_iter().filter_map(named).collect())
    }

    /// The objects of a kind in one namespace, or in all, whole, that a label selector selects.
    pub async fn objects(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, Error> {
        let on = On::Kind(kind.gvk.group_kind());
        let url = path::query(path::collection(kind, namespace), &[("labelSelector", selector)]);
        let list: Objects = self.ask(Ask::read(url, on.clone())).await?.decode(&on)?;
        Ok(list.items)
    }
}
