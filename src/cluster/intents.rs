//! The annotations that the command line writes in its user's name.

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError};
use super::inventory::{ID_LABEL, InventoryObject, MERGE_PATCH, is_inventory_name};
use super::kinds::ServedKind;
use super::write::json_body;
use super::{FIELD_MANAGER, path};
use crate::fields;
use crate::object::{GroupKind, ObjectId};

/// The field manager of the annotations of people. It is never the one of a source: the
/// `managedFields` entry of that one shows drift.
pub(super) const CLI_FIELD_MANAGER: &str = "rhumb-cli";

/// Returns who else has written to an object since rhumb last applied it, and which fields; none
/// where nobody did. The writes of rhumb's own commands do not count.
pub(crate) fn later_writers(object: &Value) -> Option<String> {
    fields::later_writers(object, [FIELD_MANAGER, CLI_FIELD_MANAGER])
}

/// The annotation target: the metadata that an annotation is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnotationTarget {
    /// The annotations of the object.
    Object,
    /// The annotations of a workload's pod template: its pods are replaced.
    Template,
}

/// A list of whole objects.
#[derive(Deserialize)]
struct ObjectList {
    #[serde(default)]
    items: Vec<Value>,
}

/// A list of inventories.
#[derive(Deserialize)]
struct InventoryList {
    #[serde(default)]
    items: Vec<ConfigMap>,
}

impl Cluster {
    /// Sets an annotation of an object, or takes it away, as its user.
    pub(crate) async fn patch_annotation(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        target: AnnotationTarget,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), ClusterError> {
        let url = path::with_query(path::object(kind, id), &[("fieldManager", CLI_FIELD_MANAGER)]);
        self.merge(url, target, key, value, CallSubject::Object(id.clone())).await
    }

    /// Does the same as [`Cluster::patch_annotation`], on the inventory of a source.
    pub(crate) async fn annotate_inventory(
        &self,
        namespace: &str,
        name: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), ClusterError> {
        let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(namespace), name);
        let url = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let url = path::with_query(url, &[("fieldManager", CLI_FIELD_MANAGER)]);
        self.merge(url, AnnotationTarget::Object, key, value, CallSubject::Object(id)).await
    }

    async fn merge(
        &self,
        url: String,
        target: AnnotationTarget,
        key: &str,
        value: Option<&str>,
        on: CallSubject,
    ) -> Result<(), ClusterError> {
        let annotations = Map::from_iter([(key.to_owned(), value.map_or(Value::Null, Value::from))]);
        let metadata = json!({"metadata": {"annotations": annotations}});
        let patch = match target {
            AnnotationTarget::Object => metadata,
            AnnotationTarget::Template => json!({"spec": {"template": metadata}}),
        };
        let body = json_body(&patch, &on)?;
        self.call(ApiRequest::write(Method::PATCH, url, MERGE_PATCH, body, on)).await.map(drop)
    }

    /// Returns the inventories of all sources, by name.
    pub(crate) async fn list_inventories(
        &self,
        namespace: &str,
    ) -> Result<Vec<(String, InventoryObject)>, ClusterError> {
        let on = CallSubject::Kind(GroupKind::new("", "ConfigMap"));
        let url = format!("/api/v1/namespaces/{namespace}/configmaps");
        let url = path::with_query(url, &[("labelSelector", ID_LABEL)]);
        let list: InventoryList = self.call(ApiRequest::read(url, on.clone())).await?.decode(&on)?;
        // Somebody who may write an orders object may label it as an inventory, which it is not.
        let named = |object: ConfigMap| {
            let name = object.metadata.name.clone().filter(|name| is_inventory_name(name))?;
            Some((name, InventoryObject::read(object)))
        };
        Ok(list.items.into_iter().filter_map(named).collect())
    }

    /// Returns the objects of a kind in one namespace, or in all, with all fields, that a label
    /// selector selects.
    pub(crate) async fn objects(
        &self,
        kind: &ServedKind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        let on = CallSubject::Kind(kind.gvk.group_kind());
        let url = path::with_query(path::collection_path(kind, namespace), &[("labelSelector", selector)]);
        let list: ObjectList = self.call(ApiRequest::read(url, on.clone())).await?.decode(&on)?;
        Ok(list.items)
    }
}
