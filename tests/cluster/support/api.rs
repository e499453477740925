//! The API server, asked directly: fast enough to be asked again and again.

use std::error::Error;
use std::iter::successors;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// The time after which a server counts as silent: as long as it works on a request itself.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
}

/// A user of the API server.
#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
}

/// The reason of a failed call: the server's code, 0 where there was no answer, and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.message)
    }
}

/// Returns the words of an error with those of all its causes: the outermost are mostly about the
/// client alone.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let words = successors(Some(error), |error| (*error).source()).map(ToString::to_string);
    words.collect::<Vec<_>>().join(": ")
}

impl Api {
    /// Reads the user of a kubeconfig.
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        let client = runtime().block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
            let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .unwrap();
            config.read_timeout = Some(READ_TIMEOUT);
            // Else it counts from when a connection of the pool began to be idle. A request on one
            // that was idle for nearly as long would fail at once.
            config.reset_reader_on_write = true;
            Client::try_from(config).unwrap()
        });
        Self { client }
    }

    /// Runs something that asks the server beside the test.
    #[allow(dead_code, reason = "only the tests of rollouts watch")]
    pub(crate) fn spawn<F>(&self, work: impl FnOnce(Client) -> F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        runtime().spawn(work(self.client.clone()))
    }

    /// Sends one request.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<Value, Refusal> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content)
            .header("Accept", "application/json")
            .body(body)
            .unwrap();
        runtime().block_on(self.client.request(request)).map_err(|error| match error {
            kube::Error::Api(status) => Refusal { code: status.code, message: status.message },
            other => Refusal { code: 0, message: with_causes(&other) },
        })
    }

    /// Reads an object, if it is there.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        match self.call("GET", path, "application/json", &Value::Null) {
            Ok(object) => Some(object),
            Err(refusal) if refusal.code == 404 => None,
            Err(refusal) => panic!("GET {path}: {refusal}"),
        }
    }

    /// Reads the objects of a collection.
    #[track_caller]
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).unwrap_or_else(|| panic!("GET {path}: 404"));
        list["items"].as_array().unwrap().clone()
    }

    /// Reads one value of an object by a JSON pointer; null where the object or the value is not
    /// there.
    #[track_caller]
    pub(crate) fn value(&self, path: &str, pointer: &str) -> Value {
        self.get(path).and_then(|object| object.pointer(pointer).cloned()).unwrap_or(Value::Null)
    }

    /// Makes an object in a collection, as a field manager.
    #[track_caller]
    pub(crate) fn create(&self, collection: &str, manager: &str, object: &Value) -> Value {
        let path = format!("{collection}?fieldManager={manager}");
        self.call("POST", &path, "application/json", object)
            .unwrap_or_else(|why| panic!("POST {path}: {why}"))
    }

    /// Changes an object by a JSON merge patch, as a field manager.
    #[track_caller]
    pub(crate) fn merge(&self, path: &str, manager: &str, change: &Value) -> Value {
        let path = format!("{path}?fieldManager={manager}");
        let done = self.call("PATCH", &path, "application/merge-patch+json", change);
        done.unwrap_or_else(|why| panic!("PATCH {path}: {why}"))
    }

    /// Changes an object by a forced server-side apply, as a field manager.
    #[track_caller]
    pub(crate) fn apply(&self, path: &str, manager: &str, object: &Value) -> Value {
        let path = format!("{path}?force=true&fieldManager={manager}");
        let done = self.call("PATCH", &path, "application/apply-patch+yaml", object);
        done.unwrap_or_else(|why| panic!("PATCH {path}: {why}"))
    }

    /// Deletes an object; one that is gone already is fine.
    #[track_caller]
    pub(crate) fn delete(&self, path: &str) {
        match self.call("DELETE", path, "application/json", &Value::Null) {
            Ok(_) => {}
            Err(refusal) if refusal.code == 404 => {}
            Err(refusal) => panic!("DELETE {path}: {refusal}"),
        }
    }
}

/// Returns the path of an object; without a name, of the collection. The namespace is empty for
/// what has none.
pub(crate) fn at(kind: &str, namespace: &str, name: &str) -> String {
    let (root, plural) = match kind {
        "Namespace" => ("/api/v1", "namespaces"),
        "Node" => ("/api/v1", "nodes"),
        "ConfigMap" => ("/api/v1", "configmaps"),
        "Secret" => ("/api/v1", "secrets"),
        "Service" => ("/api/v1", "services"),
        "ServiceAccount" => ("/api/v1", "serviceaccounts"),
        "Pod" => ("/api/v1", "pods"),
        "PersistentVolume" => ("/api/v1", "persistentvolumes"),
        "PersistentVolumeClaim" => ("/api/v1", "persistentvolumeclaims"),
        "ResourceQuota" => ("/api/v1", "resourcequotas"),
        "Event" => ("/api/v1", "events"),
        "Deployment" => ("/apis/apps/v1", "deployments"),
        "StatefulSet" => ("/apis/apps/v1", "statefulsets"),
        "DaemonSet" => ("/apis/apps/v1", "daemonsets"),
        "ReplicaSet" => ("/apis/apps/v1", "replicasets"),
        "Job" => ("/apis/batch/v1", "jobs"),
        "Lease" => ("/apis/coordination.k8s.io/v1", "leases"),
        "Source" => ("/apis/rhumb.dev/v1alpha1", "sources"),
        "Ingress" => ("/apis/networking.k8s.io/v1", "ingresses"),
        "NetworkPolicy" => ("/apis/networking.k8s.io/v1", "networkpolicies"),
        "PodDisruptionBudget" => ("/apis/policy/v1", "poddisruptionbudgets"),
        "HorizontalPodAutoscaler" => ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
        "CustomResourceDefinition" => ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
        "ValidatingAdmissionPolicy" => {
            ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies")
        }
        "ValidatingAdmissionPolicyBinding" => {
            ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings")
        }
        "Role" => ("/apis/rbac.authorization.k8s.io/v1", "roles"),
        "RoleBinding" => ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
        "ClusterRole" => ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
        "ClusterRoleBinding" => ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
        other => panic!("no path is known for the kind {other}"),
    };
    let namespaces = if namespace.is_empty() { "" } else { "namespaces" };
    let parts = [root, namespaces, namespace, plural, name];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}
