//! One cluster with real nodes, and a namespace on it for each test.

use std::io::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

use controlplane::{Cluster, find_real_node_obstacle};
use serde_json::{Value, json};

use crate::second_node;
use crate::support::{Api, Daemon, Repo, TestNamespace, at, eventually};
use crate::workload::Workload;

/// Real pods start and end in seconds, on a busy machine in many.
pub(crate) const SLOW_TIMEOUT: Duration = Duration::from_mins(5);

pub(crate) const BUDGET: &str =
    "budget: {maxWorkloads: 2, maxUnavailable: 2, startsPerMinute: 1000, soak: 0s, deadline: 90s}";

const IMAGE: &str = "/spec/template/spec/containers/0/image";

/// Returns the cluster that the tests share; none where it cannot be, which it says.
pub(crate) fn cluster() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
    let found = CLUSTER.get_or_init(|| {
        if let Some(reason) = find_real_node_obstacle() {
            return Err(reason);
        }
        let cluster = Cluster::builder().nodes(0).real_nodes(2).audit().start().unwrap();
        second_node::reserve(&Api::new(cluster.kubeconfig()));
        Ok(cluster)
    });
    // Past the harness, which would keep it to itself.
    found.as_ref().map_err(|why| writeln!(std::io::stderr(), "SKIPPED: no real node: {why}")).ok()
}

/// A namespace with a repository and a daemon that follows it.
pub(crate) struct RealSite {
    pub(crate) site: TestNamespace<'static>,
    pub(crate) repo: Repo,
    /// None where `kubectl` applies it.
    daemon: Option<Daemon>,
}

impl RealSite {
    /// Makes a site whose repository has these files. None where no real node can be.
    pub(crate) fn new(name: &str, files: &[(String, String)]) -> Option<Self> {
        Self::with_budget(name, BUDGET, files)
    }

    pub(crate) fn with_budget(name: &str, budget: &str, files: &[(String, String)]) -> Option<Self> {
        let site = TestNamespace::on(cluster()?, name);
        let repo = Repo::new(files);
        let daemon = site.configured(&site.configuration(repo.path(), budget));
        Some(Self { site, repo, daemon: Some(daemon) })
    }

    /// Makes a site that only `kubectl apply` changes.
    pub(crate) fn without_rhumb(name: &str, files: &[(String, String)]) -> Option<Self> {
        let place = Self { site: TestNamespace::on(cluster()?, name), repo: Repo::new(files), daemon: None };
        place.kubectl_apply();
        Some(place)
    }

    fn kubectl_apply(&self) {
        self.site.kubectl(&["apply", "-f", self.repo.path().to_str().unwrap()]);
    }

    /// Returns whether rhumb follows its repository.
    pub(crate) fn is_followed(&self) -> bool {
        self.daemon.is_some()
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    /// Commits these files together; without rhumb it applies them.
    pub(crate) fn push(&self, files: &[(String, String)], subject: &str) {
        for (name, text) in files {
            self.repo.write(name, text);
        }
        self.repo.commit(subject);
        if !self.is_followed() {
            self.kubectl_apply();
        }
    }

    /// Does as [`await_rollout`], in the namespace of the test.
    #[track_caller]
    pub(crate) fn await_rollout(&self, workload: &Workload) {
        await_rollout(&self.site.api, &self.site.name, workload);
    }

    /// Waits until so many pods of a workload are Ready with its image, and returns these.
    #[track_caller]
    pub(crate) fn await_ready(&self, workload: &Workload, count: usize) -> Vec<Value> {
        let (name, image) = (workload.name(), workload.image());
        eventually(&format!("{count} pods of {name} run {image}"), SLOW_TIMEOUT, || {
            let pods = self.pods(name);
            let is_new = |pod: &Value| is_ready(pod) && image_of(pod) == image;
            let new: Vec<Value> = pods.iter().filter(|pod| is_new(pod)).cloned().collect();
            if new.len() == count { Ok(new) } else { Err(summary(&pods)) }
        })
    }

    pub(crate) fn pods(&self, name: &str) -> Vec<Value> {
        pods_of(&self.site.api, &self.site.name, name)
    }

    /// Waits until the inventory names something as rejected, and returns the records.
    #[track_caller]
    pub(crate) fn await_rejection(&self, texts: &[&str]) -> String {
        eventually(&format!("it is rejected: {texts:?}"), SLOW_TIMEOUT, || {
            let records = self.site.records();
            if texts.iter().all(|text| records.contains(text)) { Ok(records) } else { Err(records) }
        })
    }

    /// Waits until nothing rolls, and fails where something was rejected.
    #[track_caller]
    pub(crate) fn await_success(&self) {
        self.site.await_free_budget();
        assert!(!self.site.records().contains("\"rejected\""), "{}", self.site.records());
    }

    /// Waits until a command of rhumb prints a text.
    #[track_caller]
    pub(crate) fn await_words(&self, arguments: &[&str], text: &str) {
        eventually(&format!("{arguments:?} prints {text:?}"), SLOW_TIMEOUT, || {
            let all = self.site.rhumb(arguments).all();
            if all.contains(text) { Ok(()) } else { Err(all) }
        });
    }
}

fn pods_of(api: &Api, namespace: &str, name: &str) -> Vec<Value> {
    let all = api.list(&at("Pod", namespace, ""));
    all.into_iter().filter(|pod| pod["metadata"]["labels"]["app"] == name).collect()
}

/// Returns the field in which the controller of a kind reports the available pods.
fn available_field(kind: &str) -> &'static str {
    if kind == "DaemonSet" { "/status/numberAvailable" } else { "/status/availableReplicas" }
}

/// Waits until a workload has its image and all its pods run it and are Ready. No other pod of it
/// may be left, not even one that ends. The controller has to know it too: a workload that is not
/// available by its status has nothing to go back to.
#[track_caller]
pub(crate) fn await_rollout(api: &Api, namespace: &str, workload: &Workload) {
    let (name, image) = (workload.name(), workload.image());
    eventually(&format!("{name} runs {image}"), SLOW_TIMEOUT, || {
        let wanted = api.value(&at(workload.kind(), namespace, name), IMAGE);
        let pods = pods_of(api, namespace, name);
        let available = api.value(&at(workload.kind(), namespace, name), available_field(workload.kind()));
        let is_done = wanted == json!(image)
            && available == json!(workload.pods())
            && pods.len() == workload.pods()
            && pods.iter().all(|pod| is_ready(pod) && image_of(pod) == image);
        if is_done { Ok(()) } else { Err(format!("it wants {wanted}: {}", summary(&pods))) }
    });
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}

pub(crate) fn image_of(pod: &Value) -> &str {
    pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

pub(crate) fn uids(pods: &[Value]) -> std::collections::BTreeSet<String> {
    pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect()
}

fn summary(pods: &[Value]) -> String {
    let each = |pod: &Value| {
        let status = &pod["status"];
        format!("{} {} {}", pod["metadata"]["name"], status["phase"], status["containerStatuses"][0]["state"])
    };
    pods.iter().map(each).collect::<Vec<_>>().join("; ")
}
