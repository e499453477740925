//! An API server and the few calls that these tests make of it.

use std::collections::HashMap;

use controlplane::Cluster;
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde_json::{Value, json};

/// The field manager under which the tests apply as rhumb does.
pub(crate) const OURS: &str = "rhumb";

pub(crate) struct Server {
    client: Client,
    /// The plural and the scope, by apiVersion and kind.
    resources: HashMap<(String, String), (String, bool)>,
    /// Kept for its end.
    pub(crate) cluster: Cluster,
}

/// The API server's refusal.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) message: String,
}

impl Server {
    /// Starts an API server and nothing else.
    pub(crate) async fn start() -> Self {
        Self::of(Cluster::builder().bare().start().unwrap()).await
    }

    pub(crate) async fn of(cluster: Cluster) -> Self {
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let server = Self { client: Client::try_from(config).unwrap(), resources: HashMap::new(), cluster };
        server.prepared().await
    }

    /// Adds a namespace, its default service account (there are no controllers) and the kinds.
    async fn prepared(mut self) -> Self {
        self.discover().await;
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
            .await
            .unwrap();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "shop"}});
        self.apply(&account).await.unwrap();
        self
    }

    pub(crate) async fn discover(&mut self) {
        let mut versions = vec!["v1".to_owned()];
        for group in self.client.list_api_groups().await.unwrap().groups {
            versions.extend(group.versions.into_iter().map(|version| version.group_version));
        }
        for version in versions {
            let list = if version == "v1" {
                self.client.list_core_api_resources("v1").await
            } else {
                self.client.list_api_group_resources(&version).await
            };
            // A group whose backend is missing answers nothing.
            for resource in list.map(|list| list.resources).unwrap_or_default() {
                if !resource.name.contains('/') {
                    let place = (resource.name, resource.namespaced);
                    self.resources.insert((version.clone(), resource.kind), place);
                }
            }
        }
    }

    fn path(&self, object: &Value) -> String {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (plural, namespaced) = self
            .resources
            .get(&(version.clone(), kind.clone()))
            .unwrap_or_else(|| panic!("no {version} {kind}"));
        let root = if version.contains('/') { "apis" } else { "api" };
        let namespace = match object["metadata"]["namespace"].as_str() {
            Some(namespace) if *namespaced => format!("namespaces/{namespace}/"),
            _ => String::new(),
        };
        format!("/{root}/{version}/{namespace}{plural}/{}", text(&object["metadata"]["name"]))
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refusal> {
        let body = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        match self.client.request::<Value>(request.body(body).unwrap()).await {
            Ok(value) => Ok(value),
            Err(Error::Api(status)) => Err(Refusal { code: status.code, message: status.message }),
            Err(other) => panic!("{method} {path}: {other}"),
        }
    }

    async fn send(&self, object: &Value, query: &str) -> Result<Value, Refusal> {
        let path = format!("{}?{query}&fieldValidation=Strict", self.path(object));
        self.call("PATCH", &path, "application/apply-patch+yaml", Some(object)).await
    }

    /// Applies as rhumb does.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Value, Refusal> {
        self.send(object, &format!("fieldManager={OURS}&force=true")).await
    }

    /// Asks what an apply would make of it.
    pub(crate) async fn dry_run(&self, object: &Value) -> Result<Value, Refusal> {
        self.send(object, &format!("fieldManager={OURS}&force=true&dryRun=All")).await
    }

    /// Applies as somebody else who takes what he wants.
    pub(crate) async fn apply_as(&self, manager: &str, object: &Value) -> Result<Value, Refusal> {
        self.send(object, &format!("fieldManager={manager}&force=true")).await
    }

    /// Patches as somebody else.
    pub(crate) async fn patch(&self, object: &Value, patch: &Value) -> Result<Value, Refusal> {
        let place = format!("{}?fieldManager=somebody", self.path(object));
        self.call("PATCH", &place, "application/merge-patch+json", Some(patch)).await
    }

    /// Patches the status, as a controller does.
    pub(crate) async fn patch_status(&self, object: &Value, status: &Value) {
        let place = format!("{}/status?fieldManager=controller", self.path(object));
        let body = json!({ "status": status });
        self.call("PATCH", &place, "application/merge-patch+json", Some(&body)).await.unwrap();
    }

    pub(crate) async fn get(&self, object: &Value) -> Value {
        self.call("GET", &self.path(object), "application/json", None).await.unwrap()
    }

    /// Returns the pods with these labels.
    pub(crate) async fn pods(&self, namespace: &str, labels: &str) -> Vec<Value> {
        let labels = labels.replace('=', "%3D");
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={labels}");
        let list = self.call("GET", &path, "application/json", None).await.unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub(crate) async fn replace(&self, object: &Value) -> Value {
        let path = format!("{}?fieldManager=somebody", self.path(object));
        self.call("PUT", &path, "application/json", Some(object)).await.unwrap()
    }
}

/// Returns the FieldsV1 text of our apply.
pub(crate) fn our_entry(live: &Value) -> Option<String> {
    let entries = live["metadata"]["managedFields"].as_array()?;
    let ours = entries.iter().find(|entry| entry["manager"] == OURS && entry["operation"] == "Apply")?;
    Some(ours["fieldsV1"].to_string())
}

/// Returns the documents of a YAML text.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    use serde::Deserialize as _;
    serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap()).collect()
}

/// Returns an object after a merge patch (RFC 7396).
pub(crate) fn merged(object: &Value, change: &Value) -> Value {
    let Value::Object(change) = change else { return change.clone() };
    let mut object = object.as_object().cloned().unwrap_or_default();
    for (key, value) in change {
        if value.is_null() {
            object.remove(key);
        } else {
            let old = object.get(key).cloned().unwrap_or_default();
            object.insert(key.clone(), merged(&old, value));
        }
    }
    Value::Object(object)
}
