//! The inventory of a source: one ConfigMap (KEP-3659) with the kinds and namespaces of its
//! members, and the facts that must outlive a lost disk.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::obstacles::WriteObstacles;
use super::write::{JSON_TYPE, exact_version, json_body};
use super::{FIELD_MANAGER, path};
use crate::engine::{ResourceVersion, Uid};
use crate::object::annotations::OBSERVATION_REQUEST;
use crate::object::{GroupKind, ObjectId};

pub(super) const ID_LABEL: &str = "applyset.kubernetes.io/id";
const TOOLING_ANNOTATION: &str = "applyset.kubernetes.io/tooling";
const KINDS_ANNOTATION: &str = "applyset.kubernetes.io/contains-group-kinds";
const NAMESPACES_ANNOTATION: &str = "applyset.kubernetes.io/additional-namespaces";
const OUR_TOOLING: &str = "rhumb/v1";
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The inventory ConfigMap of a source. The meaning of its annotations and data is the engine's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryObject {
    /// Incarnation and version as read; none for one that is to be made.
    pub known: Option<(Uid, ResourceVersion)>,
    /// The tool that keeps it, for example `rhumb/v1`; empty where nobody says so.
    pub tooling: String,
    /// The kinds of its members.
    pub kinds: BTreeSet<GroupKind>,
    /// The namespaces of its members, besides its own.
    pub namespaces: BTreeSet<String>,
    /// The annotations under `rhumb.dev/`.
    pub annotations: BTreeMap<String, String>,
    /// Indicates whether its source asks the daemons of the others for an observation, by a label
    /// that they watch.
    pub requests_observation: bool,
    /// Data.
    pub data: BTreeMap<String, String>,
    /// The obstacles to writing it.
    pub obstacles: WriteObstacles,
}

/// Returns the ApplySet id of the ConfigMap with this name: KEP-3659's
/// `applyset-<base64url(sha256(name.namespace.kind.group))>-v1`.
pub fn inventory_id_of(namespace: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{name}.{namespace}.ConfigMap."));
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(digest))
}

impl InventoryObject {
    /// Returns the version as read; none for one that is to be made.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.known.as_ref().map(|(_, version)| *version)
    }

    /// Returns the other tool that keeps it, where one does (KEP-3659: it is then left
    /// alone).
    fn other_tool(&self) -> Option<&str> {
        let ours = self.tooling.split('/').next() == OUR_TOOLING.split('/').next();
        Some(&*self.tooling).filter(|tooling| !tooling.is_empty() && !ours)
    }

    pub(super) fn read(object: ConfigMap) -> Self {
        let obstacles = WriteObstacles::of(&object);
        let mut annotations = object.metadata.annotations.unwrap_or_default();
        let list = |text: Option<String>| -> Vec<String> {
            let text = text.unwrap_or_default();
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let version = object.metadata.resource_version.unwrap_or_default();
        let requests_observation =
            object.metadata.labels.is_some_and(|labels| labels.contains_key(OBSERVATION_REQUEST));
        Self {
            requests_observation,
            known: object.metadata.uid.map(|uid| (Uid(uid.into()), ResourceVersion::read(&version))),
            tooling: annotations.remove(TOOLING_ANNOTATION).unwrap_or_default(),
            kinds: list(annotations.remove(KINDS_ANNOTATION))
                .iter()
                .map(|text| GroupKind::parse(text))
                .collect(),
            namespaces: list(annotations.remove(NAMESPACES_ANNOTATION)).into_iter().collect(),
            annotations: annotations.into_iter().filter(|(key, _)| key.starts_with("rhumb.dev/")).collect(),
            data: object.data.unwrap_or_default(),
            obstacles,
        }
    }

    /// Returns the labels that come and go: each but the one with the id.
    fn request_labels(&self) -> BTreeMap<String, String> {
        self.requests_observation
            .then(|| (OBSERVATION_REQUEST.to_owned(), "true".to_owned()))
            .into_iter()
            .collect()
    }

    /// Returns all labels that we keep on it.
    fn labels(&self, namespace: &str, name: &str) -> BTreeMap<String, String> {
        let mut all = self.request_labels();
        all.insert(ID_LABEL.to_owned(), inventory_id_of(namespace, name));
        all
    }

    /// Returns all annotations that we keep on it.
    fn all_annotations(&self) -> BTreeMap<String, String> {
        let mut all = self.annotations.clone();
        let mut kinds: Vec<String> = self.kinds.iter().map(GroupKind::to_string).collect();
        kinds.sort_unstable();
        let namespaces: Vec<&str> = self.namespaces.iter().map(String::as_str).collect();
        all.insert(TOOLING_ANNOTATION.to_owned(), OUR_TOOLING.to_owned());
        all.insert(KINDS_ANNOTATION.to_owned(), kinds.join(","));
        all.insert(NAMESPACES_ANNOTATION.to_owned(), namespaces.join(","));
        all
    }
}

impl Cluster {
    /// Reads all inventories of a namespace that our tool keeps, each with the name of its source.
    ///
    /// By no label: one that has lost its own is an inventory all the same.
    pub(crate) async fn read_inventories(
        &self,
        namespace: &str,
    ) -> Result<Vec<(String, InventoryObject)>, ClusterError> {
        let on = CallSubject::Kind(GroupKind::new("", "ConfigMap"));
        let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
        let answer = match self.call(ApiRequest::read(collection, on.clone())).await {
            Ok(answer) => answer,
            Err(error) if matches!(error.fault(), ClusterFault::NoNamespace { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let list: k8s_openapi::List<ConfigMap> = answer.decode(&on)?;
        let named = |object: ConfigMap| {
            let labelled =
                object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(ID_LABEL));
            let name = object.metadata.name.clone().filter(|name| is_inventory_name(name))?;
            let inventory = InventoryObject::read(object);
            let ours = inventory.other_tool().is_none() && (labelled || !inventory.tooling.is_empty());
            ours.then_some((name, inventory))
        };
        Ok(list.items.into_iter().filter_map(named).collect())
    }

    /// Reads a source's inventory; none where there is none.
    ///
    /// # Errors
    ///
    /// Fails with [`ClusterFault::OtherTool`] where another tool keeps an ApplySet of this name,
    /// and with [`ClusterFault::NoInventory`] where somebody keeps data of his own there. Also
    /// fails where the server refuses it, or does not answer.
    pub async fn read_inventory(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<InventoryObject>, ClusterError> {
        let on = inventory_subject(namespace, name);
        match self.call(ApiRequest::read(url(namespace, name), on.clone())).await {
            Ok(answer) => {
                let object: ConfigMap = answer.decode(&on)?;
                if is_anothers(&object) {
                    return Err(ClusterError::new(on, ClusterFault::NoInventory));
                }
                let inventory = InventoryObject::read(object);
                match inventory.other_tool() {
                    Some(tool) => {
                        Err(ClusterError::new(on, ClusterFault::OtherTool { tool: tool.to_owned() }))
                    }
                    None => Ok(Some(inventory)),
                }
            }
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes what differs between an inventory as it was read and as it should be; makes it, and its
    /// namespace, where there was none. No call where nothing differs.
    ///
    /// Annotations outside `rhumb.dev/`, labels and finalizers that others put there stay.
    ///
    /// # Errors
    ///
    /// Fails with [`ClusterFault::VersionConflict`] when somebody else wrote since it was read.
    /// Also fails where the server refuses it, or does not answer.
    pub async fn save_inventory(
        &self,
        namespace: &str,
        name: &str,
        before: Option<&InventoryObject>,
        after: &InventoryObject,
    ) -> Result<InventoryObject, ClusterError> {
        match before.and_then(|before| Some((before, before.known.as_ref()?))) {
            None => self.create_inventory(namespace, name, after).await,
            Some((before, _)) if is_same(before, after) => Ok(before.clone()),
            Some((before, (uid, rv))) => {
                let on = inventory_subject(namespace, name);
                // A merge patch with the version in it is a compare-and-swap that leaves alone what
                // it does not name.
                let patch = serde_json::json!({
                    "metadata": {
                        "uid": uid.0,
                        "resourceVersion": exact_version(*rv, &on)?,
                        "labels": merge_patch(&before.request_labels(), &after.labels(namespace, name)),
                        "annotations": merge_patch(&before.written_annotations(), &after.all_annotations()),
                    },
                    "data": merge_patch(&before.data, &after.data),
                });
                let body = json_body(&patch, &on)?;
                let url = path::with_query(url(namespace, name), &[("fieldManager", FIELD_MANAGER)]);
                let ask = ApiRequest::write(Method::PATCH, url, MERGE_PATCH, body, on.clone());
                match self.call(ask).await {
                    Ok(answer) => Ok(InventoryObject::read(answer.decode(&on)?)),
                    Err(error) if *error.fault() == ClusterFault::NoObject => {
                        Err(ClusterError::new(on, ClusterFault::VersionConflict))
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    async fn create_inventory(
        &self,
        namespace: &str,
        name: &str,
        inventory: &InventoryObject,
    ) -> Result<InventoryObject, ClusterError> {
        let on = inventory_subject(namespace, name);
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                labels: Some(inventory.labels(namespace, name)),
                annotations: Some(inventory.all_annotations()),
                ..ObjectMeta::default()
            },
            data: Some(inventory.data.clone()),
            ..ConfigMap::default()
        };
        let body = json_body(&object, &on)?;
        Ok(InventoryObject::read(self.make_config_map(namespace, &on, body).await?))
    }

    /// Makes a ConfigMap of ours, and its namespace where that is missing.
    pub(super) async fn make_config_map(
        &self,
        namespace: &str,
        on: &CallSubject,
        body: Vec<u8>,
    ) -> Result<ConfigMap, ClusterError> {
        let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
        let url = path::with_query(collection, &[("fieldManager", FIELD_MANAGER)]);
        let make =
            || self.call(ApiRequest::write(Method::POST, url.clone(), JSON_TYPE, body.clone(), on.clone()));
        let answer = match make().await {
            Err(error) if matches!(error.fault(), ClusterFault::NoNamespace { .. }) => {
                self.make_namespace(namespace).await?;
                make().await?
            }
            other => other?,
        };
        answer.decode(on)
    }

    pub(super) async fn make_namespace(&self, name: &str) -> Result<(), ClusterError> {
        let on = CallSubject::Object(ObjectId::new(&GroupKind::new("", "Namespace"), None, name));
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let body = json_body(&Namespace { metadata, ..Namespace::default() }, &on)?;
        let url = path::with_query("/api/v1/namespaces".to_owned(), &[("fieldManager", FIELD_MANAGER)]);
        match self.call(ApiRequest::write(Method::POST, url, JSON_TYPE, body, on)).await {
            // Somebody else was faster.
            Err(error) if *error.fault() == ClusterFault::VersionConflict => Ok(()),
            other => other.map(drop),
        }
    }
}

impl InventoryObject {
    /// Returns the annotations that an earlier write of ours left on the server.
    fn written_annotations(&self) -> BTreeMap<String, String> {
        let mut all = self.all_annotations();
        if self.tooling != OUR_TOOLING {
            all.remove(TOOLING_ANNOTATION);
        }
        all
    }
}

/// Returns whether nothing on a ConfigMap says that it was ever an inventory, and it has data that
/// somebody needs. An empty one is harmless, and one that lost only its label or only its
/// annotations is still ours.
fn is_anothers(object: &ConfigMap) -> bool {
    let metadata = &object.metadata;
    let labelled = metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(ID_LABEL));
    let annotations = || metadata.annotations.iter().flat_map(BTreeMap::keys);
    let ours = labelled
        || annotations()
            .any(|key| key == TOOLING_ANNOTATION || key == KINDS_ANNOTATION || key.starts_with("rhumb.dev/"));
    let is_empty = object.data.as_ref().is_none_or(BTreeMap::is_empty)
        && object.binary_data.as_ref().is_none_or(BTreeMap::is_empty);
    !ours && !is_empty
}

/// Returns whether a ConfigMap of this name can be an inventory: it has the name of its source, a
/// DNS label. An orders object can be made to look like one by a user of one source alone.
pub(crate) fn is_inventory_name(name: &str) -> bool {
    !name.contains('.')
}

fn is_same(before: &InventoryObject, after: &InventoryObject) -> bool {
    before.tooling == OUR_TOOLING
        && before.all_annotations() == after.all_annotations()
        && before.data == after.data
        && before.requests_observation == after.requests_observation
}

/// Returns a merge patch: null takes a key away.
fn merge_patch(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Map<String, Value> {
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let new = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
    gone.chain(new.map(|(key, value)| (key.clone(), Value::from(value.as_str())))).collect()
}

fn inventory_subject(namespace: &str, name: &str) -> CallSubject {
    CallSubject::Object(ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(namespace), name))
}

fn url(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
}
