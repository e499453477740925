//! One control plane, workloads on it, and a witness of what its API shows.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rhumb::testing::cluster::{
    ApplyForce, Cluster, Connection, KindLookup, KindTable, PodWatchHandle, PodsChange, PodsEvent,
    ServedKind, pod_selector,
};
use rhumb::testing::engine::{
    Precondition, ResourceVersion, RolloutFailure, Uid, WorkloadPods, find_failure, next_failure_check,
};
use rhumb::testing::object::{Gvk, ObjectId};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Long enough for two slow cores.
pub(crate) const SLOW_TIMEOUT: Duration = Duration::from_mins(3);

pub(crate) const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

pub(crate) fn plane() -> &'static controlplane::Cluster {
    static PLANE: OnceLock<controlplane::Cluster> = OnceLock::new();
    PLANE.get_or_init(|| controlplane::Cluster::builder().nodes(2).start().unwrap())
}

/// The API's view of pods by kubectl, in words, with the time of each first appearance.
pub(crate) struct KubectlView {
    kubectl: Mutex<Child>,
    seen: Arc<watch::Sender<BTreeMap<String, Instant>>>,
}

impl KubectlView {
    /// Watches a resource; the words are made of each object as soon as it is shown.
    pub(crate) fn of(resource: &str, words: fn(&Value) -> Vec<String>) -> Arc<Self> {
        let mut command = plane().kubectl_command();
        command.args(["get", resource, "-A", "--watch", "-o", "json"]).stdout(Stdio::piped());
        let mut kubectl = command.spawn().unwrap();
        let stdout = kubectl.stdout.take().unwrap();
        let seen: Arc<watch::Sender<BTreeMap<String, Instant>>> = Arc::default();
        let log = seen.clone();
        thread::spawn(move || {
            let objects = serde_json::Deserializer::from_reader(BufReader::new(stdout)).into_iter::<Value>();
            for object in objects.map_while(Result::ok) {
                let now = Instant::now();
                log.send_modify(|seen| {
                    for words in words(&object) {
                        seen.entry(words).or_insert(now);
                    }
                });
            }
        });
        Arc::new(Self { kubectl: Mutex::new(kubectl), seen })
    }

    /// Returns when something was shown first, which the witness may be slower to see than others.
    pub(crate) async fn first(&self, words: &str) -> Instant {
        let mut seen = self.seen.subscribe();
        match tokio::time::timeout(SLOW_TIMEOUT, seen.wait_for(|seen| seen.contains_key(words))).await {
            Ok(Ok(seen)) => seen[words],
            _ => panic!("nobody saw {words:?}"),
        }
    }
}

/// Runs all of these at once, each as a task of its own.
pub(crate) async fn all_at_once<F: Future<Output = ()> + Send + 'static>(
    checks: impl IntoIterator<Item = F>,
) {
    let mut tasks: JoinSet<()> = checks.into_iter().collect();
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

impl Drop for KubectlView {
    fn drop(&mut self) {
        let kubectl = self.kubectl.get_mut().unwrap();
        let _ = kubectl.kill();
        let _ = kubectl.wait();
    }
}

/// The cluster as the program sees it.
#[derive(Clone)]
pub(crate) struct Harness {
    pub(crate) cluster: Cluster,
    kinds: Arc<KindTable>,
}

impl Harness {
    pub(crate) async fn new() -> Self {
        let kubeconfig = plane().kubeconfig_for("rhumb").unwrap();
        let connection = Connection { kubeconfig: Some(kubeconfig), ..Connection::default() };
        let cluster = Cluster::connect(&connection).await.unwrap();
        let kinds = Arc::new(cluster.discover().await.unwrap());
        Self { cluster, kinds }
    }

    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Arc<ServedKind> {
        match self.kinds.get(&Gvk::from_api_version(api_version, kind)) {
            KindLookup::Served(kind) => kind,
            other => panic!("{kind}: {other:?}"),
        }
    }

    /// Describes a workload of two pods; its labels name it.
    pub(crate) fn workload(&self, kind: &str, namespace: &str, name: &str) -> Workload {
        let label = format!("{}-{name}", kind.to_lowercase());
        let mut spec = json!({
            "selector": { "matchLabels": { "app": label } },
            "template": {
                "metadata": { "labels": { "app": label }, "annotations": {} },
                "spec": { "containers": [{ "name": "c", "image": "web:1" }] },
            },
        });
        match kind {
            "Deployment" => spec["replicas"] = json!(2),
            "StatefulSet" => {
                spec["replicas"] = json!(2);
                spec["serviceName"] = json!("web");
            }
            _ => {}
        }
        let body = json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": { "name": name, "namespace": namespace }, "spec": spec,
        });
        let kind = self.kind("apps/v1", kind);
        let id = ObjectId::new(&kind.gvk.group_kind(), Some(namespace), name);
        Workload { harness: self.clone(), kind, id, body }
    }
}

/// A workload that may be applied.
pub(crate) struct Workload {
    pub(crate) harness: Harness,
    pub(crate) kind: Arc<ServedKind>,
    pub(crate) id: ObjectId,
    pub(crate) body: Value,
}

impl Workload {
    pub(crate) fn template(&mut self) -> &mut Value {
        &mut self.body["spec"]["template"]
    }

    pub(crate) fn image(&mut self, image: &str) {
        self.template()["spec"]["containers"][0]["image"] = json!(image);
    }

    /// Leaves just this one annotation in the template.
    pub(crate) fn annotate(&mut self, annotations: Value) {
        self.template()["metadata"]["annotations"] = annotations;
    }

    /// Applies it, and returns its incarnation and version.
    pub(crate) async fn apply(&self) -> (Uid, ResourceVersion) {
        let Harness { cluster, .. } = &self.harness;
        let there = cluster.get(&self.kind, &self.id).await.unwrap().map_or(Precondition::Absent, |live| {
            Precondition::Uid(Uid(live["metadata"]["uid"].as_str().unwrap().into()))
        });
        let applied = cluster.apply(&self.kind, &self.id, &self.body, &there, ApplyForce::Forced).await;
        let live = applied.unwrap_or_else(|error| panic!("{error}")).live;
        (live.uid, live.rv)
    }

    /// Applies it for the first time and follows its pods.
    pub(crate) async fn start(self) -> WatchedWorkload {
        let (uid, applied) = self.apply().await;
        let (sink, events) = mpsc::channel(1);
        let selector = pod_selector(&self.body).unwrap();
        let Harness { cluster, .. } = &self.harness;
        let follower = cluster.watch_pods(&self.kind, &self.id, &uid, &selector, sink).unwrap();
        WatchedWorkload { workload: self, uid, applied, events, _follower: follower, pods: None }
    }
}

/// A workload whose pods are followed.
pub(crate) struct WatchedWorkload {
    pub(crate) workload: Workload,
    pub(crate) uid: Uid,
    applied: ResourceVersion,
    events: mpsc::Receiver<PodsEvent>,
    _follower: PodWatchHandle,
    /// The last report.
    pub(crate) pods: Option<WorkloadPods>,
}

impl WatchedWorkload {
    pub(crate) fn name(&self) -> String {
        self.workload.id.to_string()
    }

    /// Applies the workload as it is described now.
    pub(crate) async fn roll(&mut self) {
        (_, self.applied) = self.workload.apply().await;
    }

    /// Makes only what is known of another's newest version count from here on.
    pub(crate) fn is_about(&mut self, other: &Self) {
        self.applied = other.applied;
    }

    /// Returns the view of the workload as it was applied last.
    pub(crate) fn current(&self) -> Option<&WorkloadPods> {
        self.pods.as_ref().filter(|pods| pods.rv >= self.applied)
    }

    /// Waits for the next that is reported, or a moment.
    pub(crate) async fn next(&mut self, until: Instant) {
        match tokio::time::timeout_at(until.into(), self.events.recv()).await {
            Ok(Some(PodsEvent { id, change: PodsChange::Observed(pods) })) => {
                assert_eq!(id, self.workload.id);
                self.pods = Some(pods);
            }
            Ok(other) => panic!("{}: {other:?}", self.name()),
            Err(_) => {}
        }
    }

    /// Waits until the pods of what was applied last are as described.
    pub(crate) async fn until(&mut self, is: impl Fn(&WorkloadPods) -> bool) -> WorkloadPods {
        let deadline = Instant::now() + SLOW_TIMEOUT;
        loop {
            if let Some(pods) = self.current().filter(|pods| is(pods)) {
                return pods.clone();
            }
            assert!(Instant::now() < deadline, "{}: {:#?}", self.name(), self.pods);
            self.next(deadline).await;
        }
    }

    /// Waits until two pods of the newest template are Ready and no other pod is left; none may
    /// fail meanwhile.
    pub(crate) async fn settles(&mut self) -> WorkloadPods {
        let name = self.name();
        self.until(|pods| {
            let failing = find_failure(pods, Instant::now());
            assert!(failing.is_none(), "{name}: {failing:?} in {pods:#?}");
            let active = pods.pods.iter().filter(|pod| !pod.terminating && !pod.has_ended).count();
            pods.count_ready_newest() == 2 && pods.count_updated() == 2 && active == 2
        })
        .await
    }

    /// Waits until the newest revision fails, and returns when.
    pub(crate) async fn fails(&mut self) -> (RolloutFailure, Instant) {
        let deadline = Instant::now() + SLOW_TIMEOUT;
        loop {
            let now = Instant::now();
            let mut wake = deadline;
            if let Some(pods) = self.current() {
                if let Some(failing) = find_failure(pods, now) {
                    return (failing, now);
                }
                wake = next_failure_check(pods, now).unwrap_or(deadline).min(deadline);
            }
            assert!(now < deadline, "{}: {:#?}", self.name(), self.pods);
            self.next(wake).await;
        }
    }
}
