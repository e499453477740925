//! The real reports of the workload controllers, read as phases of a rolling update.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rhumb::testing::cluster::{
    ApplyForce, Cluster, Connection, Informer, InformerChange, InformerEvent, KindLookup, ListSelector,
};
use rhumb::testing::engine::WorkloadPhase::{self, FirstStart, Recovering, Replacing, Settled};
use rhumb::testing::engine::{Precondition, ResourceVersion, Uid};
use rhumb::testing::object::{Gvk, ObjectId};
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn plane() -> &'static controlplane::Cluster {
    static PLANE: OnceLock<controlplane::Cluster> = OnceLock::new();
    PLANE.get_or_init(|| controlplane::Cluster::builder().nodes(2).start().unwrap())
}

/// One workload and the phases that its informer reports.
struct Workload {
    cluster: Cluster,
    kind: Arc<rhumb::testing::cluster::ServedKind>,
    id: ObjectId,
    body: Value,
    events: mpsc::Receiver<InformerEvent>,
    _informer: Informer,
    phases: Vec<WorkloadPhase>,
    /// The first version whose phase counts: reports of what was before may come late.
    first: ResourceVersion,
}

impl Workload {
    async fn new(kind: &str, name: &str, spec: Value) -> Self {
        let kubeconfig = plane().kubeconfig_for("rhumb").unwrap();
        let connection = Connection { kubeconfig: Some(kubeconfig), ..Connection::default() };
        let cluster = Cluster::connect(&connection).await.unwrap();
        let kinds = cluster.discover().await.unwrap();
        let KindLookup::Served(kind) = kinds.get(&Gvk::new("apps", "v1", kind)) else { panic!() };
        let label = format!("{}-{name}", kind.plural);
        let set = format!("applyset-{label}-v1");
        let (sink, events) = mpsc::channel(256);
        let informer = cluster.informer(
            &kind,
            ListSelector::ApplySets([Arc::<str>::from(set.as_str())].into()),
            0,
            sink,
        );
        let id = ObjectId::new(&kind.gvk.group_kind(), Some("default"), name);
        let mut body = json!({
            "apiVersion": "apps/v1", "kind": kind.gvk.kind,
            "metadata": { "name": name, "namespace": "default", "labels": { "applyset.kubernetes.io/part-of": set } },
            "spec": {
                "selector": { "matchLabels": { "app": label } },
                "template": {
                    // Long enough that the phases before it are seen.
                    "metadata": { "labels": { "app": label }, "annotations": { "controlplane/ready-delay": "300ms" } },
                    "spec": { "containers": [{ "name": "c" }] },
                },
            },
        });
        body["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        Self {
            cluster,
            kind,
            id,
            body,
            events,
            _informer: informer,
            phases: Vec::new(),
            first: ResourceVersion(0),
        }
    }

    async fn get(&self) -> Value {
        self.cluster.get(&self.kind, &self.id).await.unwrap().unwrap()
    }

    async fn apply(&mut self) {
        let there =
            self.cluster.get(&self.kind, &self.id).await.unwrap().map_or(Precondition::Absent, |live| {
                Precondition::Uid(Uid(live["metadata"]["uid"].as_str().unwrap().into()))
            });
        let applied = self.cluster.apply(&self.kind, &self.id, &self.body, &there, ApplyForce::Forced).await;
        self.first = applied.unwrap().live.rv;
    }

    /// Applies an image, and returns the phases up to the last one, each once in a row.
    async fn roll(&mut self, image: &str, last: WorkloadPhase) -> Vec<WorkloadPhase> {
        self.body["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        self.apply().await;
        self.until(last).await
    }

    /// Returns the phases until one has held for a second.
    async fn until(&mut self, last: WorkloadPhase) -> Vec<WorkloadPhase> {
        let deadline = Instant::now() + Duration::from_mins(3);
        loop {
            match tokio::time::timeout(Duration::from_secs(1), self.events.recv()).await {
                Ok(Some(InformerEvent { change: InformerChange::Apply(_, live), .. }))
                    if live.rv >= self.first =>
                {
                    let phase = live.replica_status.unwrap().phase;
                    if self.phases.last() != Some(&phase) {
                        self.phases.push(phase);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => panic!("{:?}", self.phases),
                Err(_) if self.phases.last() == Some(&last) => return std::mem::take(&mut self.phases),
                Err(_) => assert!(Instant::now() < deadline, "no {last:?} after {:?}", self.phases),
            }
        }
    }
}

/// Checks that a rollout begins and ends as expected. In between, a controller with an old view may
/// go back and forth.
fn check(phases: &[WorkloadPhase], expected: [WorkloadPhase; 2], between: &[WorkloadPhase]) {
    assert_eq!([phases.first(), phases.last()], [Some(&expected[0]), Some(&expected[1])], "{phases:?}");
    assert!(phases.iter().all(|phase| expected.contains(phase) || between.contains(phase)), "{phases:?}");
}

#[tokio::test]
async fn a_deployment_as_its_controller_reports_it() {
    let mut web = Workload::new("Deployment", "web", json!({ "replicas": 3 })).await;
    check(&web.roll("web:1", Settled).await, [FirstStart, Settled], &[]);
    check(&web.roll("web:2", Settled).await, [Replacing, Settled], &[Recovering]);
    check(&web.roll("web:broken", Replacing).await, [Replacing, Replacing], &[]);
    check(&web.roll("web:2", Settled).await, [Replacing, Settled], &[Recovering]);
    web.body["spec"]["replicas"] = json!(5);
    web.apply().await;
    check(&web.until(Settled).await, [Replacing, Settled], &[Recovering]);
    let version = web.get().await["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    web.first = ResourceVersion(version + 1);
    plane().kubectl(&["delete", "pod", "-l", "app=deployments-web", "--wait=false"]).unwrap();
    check(&web.until(Settled).await, [Recovering, Settled], &[]);
}

#[tokio::test]
async fn a_deployment_that_was_never_up_stays_on_its_first_start() {
    let spec = json!({ "replicas": 2, "progressDeadlineSeconds": 1 });
    let mut web = Workload::new("Deployment", "never", spec).await;
    check(&web.roll("web:broken", FirstStart).await, [FirstStart, FirstStart], &[]);
    let deadline = Instant::now() + Duration::from_mins(3);
    while !web.get().await.to_string().contains("ProgressDeadlineExceeded") {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Nor does a second try that is broken as well count as more.
    let phases = web.roll("again:broken", FirstStart).await;
    assert!(!phases.contains(&Settled) && !phases.contains(&Recovering), "{phases:?}");
}

#[tokio::test]
async fn a_stateful_set_as_its_controller_reports_it() {
    let mut web = Workload::new("StatefulSet", "web", json!({ "replicas": 2, "serviceName": "web" })).await;
    check(&web.roll("web:1", Settled).await, [FirstStart, Settled], &[Recovering]);
    check(&web.roll("web:2", Settled).await, [Replacing, Settled], &[Recovering]);
    web.body["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 1 } });
    // Ordinal 0 keeps its template on purpose.
    check(&web.roll("web:3", Settled).await, [Replacing, Settled], &[Recovering]);
    web.body["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 0 } });
    check(&web.roll("web:broken", Replacing).await, [Replacing, Replacing], &[Recovering]);
}

#[tokio::test]
async fn a_daemon_set_as_its_controller_reports_it() {
    let mut web = Workload::new("DaemonSet", "web", json!({})).await;
    check(&web.roll("web:1", Settled).await, [FirstStart, Settled], &[Recovering]);
    check(&web.roll("web:2", Settled).await, [Replacing, Settled], &[Recovering]);
    web.body["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    check(&web.roll("web:3", Settled).await, [Replacing, Settled], &[]);
}
