//! One workload, its pods, and what a watch has seen of them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rhumb::testing::cluster::{ApplyForce, Cluster, Connection, KindLookup, ServedKind};
use rhumb::testing::engine::{Precondition, RolloutOverlay, Uid, apply_overlay};
use rhumb::testing::object::{Gvk, ObjectId, text_at, value_at};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) const OLD_IMAGE: &str = "web:1";
pub(crate) const NEW_IMAGE: &str = "web:2";
pub(crate) const BROKEN_IMAGE: &str = "web:broken";

/// The controllers answer within milliseconds; one that has more to do does it in this time.
const QUIET_TIME: Duration = Duration::from_millis(600);
const STATE_TIMEOUT: Duration = Duration::from_secs(40);

pub(crate) fn plane() -> &'static controlplane::Cluster {
    static PLANE: OnceLock<controlplane::Cluster> = OnceLock::new();
    PLANE.get_or_init(|| controlplane::Cluster::builder().nodes(4).start().unwrap())
}

/// A pod as it was last seen.
pub(crate) struct Pod(Value);

impl Pod {
    pub(crate) fn image(&self) -> &str {
        self.0.pointer("/spec/containers/0/image").and_then(Value::as_str).unwrap()
    }

    pub(crate) fn uid(&self) -> &str {
        text_at(&self.0, &["metadata", "uid"])
    }

    pub(crate) fn node(&self) -> &str {
        text_at(&self.0, &["spec", "nodeName"])
    }

    pub(crate) fn revision(&self) -> &str {
        text_at(&self.0, &["metadata", "labels", "controller-revision-hash"])
    }

    pub(crate) fn waiting(&self) -> &str {
        let reason = self.0.pointer("/status/containerStatuses/0/state/waiting/reason");
        reason.and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn is_terminating(&self) -> bool {
        value_at(&self.0, &["metadata", "deletionTimestamp"]).is_some()
    }

    pub(crate) fn is_ready(&self) -> bool {
        let conditions = self.0.pointer("/status/conditions").and_then(Value::as_array);
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        !self.is_terminating() && conditions.is_some_and(|all| all.iter().any(is_ready))
    }
}

/// The worst that was seen since the last [`Harness::forget`].
#[derive(Debug, Default)]
pub(crate) struct WorstSeen {
    /// The fewest Ready pods.
    pub(crate) ready: usize,
    /// The fewest Ready pods of the old image.
    pub(crate) old: usize,
    /// The most pods of other images.
    pub(crate) new: usize,
    /// Pods that went away, by image and name. KWOK deletes by name, and may hit the next pod of
    /// that name of a StatefulSet too, which no kubelet does.
    gone: BTreeSet<(String, String)>,
}

impl WorstSeen {
    /// Returns the pods of an image that went away.
    pub(crate) fn gone(&self, image: &str) -> Vec<&str> {
        self.gone.iter().filter(|(of, _)| of == image).map(|(_, name)| &**name).collect()
    }
}

/// One workload.
pub(crate) struct Harness {
    cluster: Cluster,
    kind: Arc<ServedKind>,
    id: ObjectId,
    pub(crate) body: Value,
    events: mpsc::UnboundedReceiver<(bool, Value)>,
    pub(crate) live: Value,
    pub(crate) pods: BTreeMap<String, Pod>,
    pub(crate) worst: WorstSeen,
}

impl Harness {
    /// Makes a workload of the old image, and waits until all its pods are there.
    pub(crate) async fn new(kind: &str, name: &str, spec: Value) -> Self {
        let kubeconfig = plane().kubeconfig_for("rhumb").unwrap();
        let connection = Connection { kubeconfig: Some(kubeconfig.clone()), ..Connection::default() };
        let cluster = Cluster::connect(&connection).await.unwrap();
        let KindLookup::Served(kind) = cluster.discover().await.unwrap().get(&Gvk::new("apps", "v1", kind))
        else {
            panic!("the server has no {kind}")
        };
        let mut body = json!({
            "apiVersion": "apps/v1", "kind": kind.gvk.kind,
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    // Long enough that a pod is seen before it is Ready.
                    "metadata": { "labels": { "app": name }, "annotations": { "controlplane/ready-delay": "100ms" } },
                    "spec": { "containers": [{ "name": "c" }] },
                },
            },
        });
        body["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let (sink, events) = mpsc::unbounded_channel();
        let (group, plural) = (kind.gvk.group.to_string(), kind.plural.to_string());
        let gvk = kube::api::GroupVersionKind::gvk(&group, "v1", &kind.gvk.kind);
        let options = KubeConfigOptions::default();
        let config =
            kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(&kubeconfig).unwrap(), &options);
        let client = kube::Client::try_from(config.await.unwrap()).unwrap();
        let pods = kube::api::GroupVersionKind::gvk("", "v1", "Pod");
        for (resource, params) in [
            (
                ApiResource::from_gvk_with_plural(&pods, "pods"),
                WatchParams::default().labels(&format!("app={name}")),
            ),
            (
                ApiResource::from_gvk_with_plural(&gvk, &plural),
                WatchParams::default().fields(&format!("metadata.name={name}")),
            ),
        ] {
            let api = kube::Api::namespaced_with(client.clone(), "default", &resource);
            tokio::spawn(watch(api, params, sink.clone()));
        }
        let id = ObjectId::new(&kind.gvk.group_kind(), Some("default"), name);
        let (live, pods, worst) = (Value::Null, BTreeMap::new(), WorstSeen::default());
        let mut harness = Self { cluster, kind, id, body, events, live, pods, worst };
        harness.plain(OLD_IMAGE).await;
        harness.until("all pods are there", |harness| harness.is_all(OLD_IMAGE)).await;
        harness.forget();
        harness
    }

    /// Applies an image under an overlay.
    pub(crate) async fn apply(&mut self, image: &str, overlay: RolloutOverlay) {
        self.send(image, Some(overlay)).await;
    }

    /// Applies an image as the manifest has it.
    pub(crate) async fn plain(&mut self, image: &str) {
        self.send(image, None).await;
    }

    async fn send(&mut self, image: &str, overlay: Option<RolloutOverlay>) {
        self.body["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        let body = apply_overlay(self.body.clone(), overlay);
        let there =
            self.cluster.get(&self.kind, &self.id).await.unwrap().map_or(Precondition::Absent, |live| {
                Precondition::Uid(Uid(live["metadata"]["uid"].as_str().unwrap().into()))
            });
        let applied =
            self.cluster.apply(&self.kind, &self.id, &body, &there, ApplyForce::Forced).await.unwrap();
        // Views from now on are of this version or a later one.
        self.live = self.cluster.get(&self.kind, &self.id).await.unwrap().unwrap();
        assert!(applied.warnings.is_empty(), "{:?}", applied.warnings);
    }

    /// Waits until something holds and nothing more happens.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> impl Future<Output = ()> {
        let at = std::panic::Location::caller();
        async move {
            let deadline = Instant::now() + STATE_TIMEOUT;
            loop {
                match tokio::time::timeout(QUIET_TIME, self.events.recv()).await {
                    Ok(Some((gone, object))) => self.see(gone, object),
                    Ok(None) => panic!("{at}: the watches ended"),
                    Err(_) if self.is_observed() && holds(self) => return,
                    Err(_) => {}
                }
                assert!(Instant::now() < deadline, "{at}: {what}: never:\n{}", self.picture());
            }
        }
    }

    /// Waits for the next event.
    pub(crate) async fn event(&mut self) {
        let (gone, object) = tokio::time::timeout(STATE_TIMEOUT, self.events.recv()).await.unwrap().unwrap();
        self.see(gone, object);
    }

    fn see(&mut self, gone: bool, object: Value) {
        if object["kind"] == "Pod" {
            let name = text_at(&object, &["metadata", "name"]).to_owned();
            if gone {
                self.pods.remove(&name);
                let image = Pod(object).image().to_owned();
                self.worst.gone.insert((image, name));
            } else {
                self.pods.insert(name, Pod(object));
            }
        } else if version(&object) >= version(&self.live) {
            self.live = object;
        }
        self.worst.ready = self.worst.ready.min(self.ready(""));
        self.worst.old = self.worst.old.min(self.ready(OLD_IMAGE));
        self.worst.new = self.worst.new.max(self.pods.len() - self.count(OLD_IMAGE));
    }

    fn is_observed(&self) -> bool {
        let generation = value_at(&self.live, &["metadata", "generation"]).and_then(Value::as_u64);
        Some(self.status("observedGeneration")) >= generation
    }

    /// Begins to look for the worst anew.
    pub(crate) fn forget(&mut self) {
        let (ready, old) = (self.ready(""), self.ready(OLD_IMAGE));
        self.worst =
            WorstSeen { ready, old, new: self.pods.len() - self.count(OLD_IMAGE), gone: BTreeSet::new() };
    }

    /// Returns pods of an image; all, of none.
    pub(crate) fn count(&self, image: &str) -> usize {
        self.pods.values().filter(|pod| image.is_empty() || pod.image() == image).count()
    }

    /// Returns the Ready pods of an image; all, of none.
    pub(crate) fn ready(&self, image: &str) -> usize {
        self.pods.values().filter(|pod| (image.is_empty() || pod.image() == image) && pod.is_ready()).count()
    }

    /// Returns a count of the status.
    pub(crate) fn status(&self, key: &str) -> u64 {
        value_at(&self.live, &["status", key]).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Returns whether there are as many pods as there should be, all of one image, and available.
    pub(crate) fn is_all(&self, image: &str) -> bool {
        let wanted = match self.live["kind"].as_str() {
            Some("DaemonSet") => 4,
            _ => value_at(&self.live, &["spec", "replicas"]).and_then(Value::as_u64).unwrap_or(1),
        };
        let available = self.status("availableReplicas") + self.status("numberAvailable");
        self.pods.len() as u64 == wanted && self.ready(image) as u64 == wanted && available == wanted
    }

    /// Returns whether it has so many Ready pods of the old and of the new image, and no other pod.
    pub(crate) fn is_held(&self, old: usize, new: usize) -> bool {
        self.ready(OLD_IMAGE) == old && self.ready(NEW_IMAGE) == new && self.pods.len() == old + new
    }

    /// Returns the uids of its pods, by their names.
    pub(crate) fn uids(&self) -> BTreeMap<String, String> {
        self.pods.iter().map(|(name, pod)| (name.clone(), pod.uid().to_owned())).collect()
    }

    /// Returns its overlay annotation.
    pub(crate) fn annotation(&self) -> &str {
        text_at(&self.live, &["metadata", "annotations", "rhumb.dev/overlay"])
    }

    fn picture(&self) -> String {
        let pods = self.pods.iter().map(|(name, pod)| {
            format!("{name} {} ready: {} ends: {}", pod.image(), pod.is_ready(), pod.is_terminating())
        });
        let pods: Vec<String> = pods.collect();
        format!("{}\n{}\n{:?}", pods.join("\n"), self.live["status"], self.worst)
    }
}

/// Returns a version, which is a number in the order of one kind.
fn version(object: &Value) -> u64 {
    text_at(object, &["metadata", "resourceVersion"]).parse().unwrap_or(0)
}

async fn watch(
    api: kube::Api<DynamicObject>,
    params: WatchParams,
    sink: mpsc::UnboundedSender<(bool, Value)>,
) {
    let mut stream = pin!(api.watch(&params, "0").await.unwrap());
    while let Some(event) = stream.next().await {
        let (gone, object) = match event.unwrap() {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
            WatchEvent::Deleted(object) => (true, object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => panic!("{error:?}"),
        };
        if sink.send((gone, serde_json::to_value(object).unwrap())).is_err() {
            return;
        }
    }
}
