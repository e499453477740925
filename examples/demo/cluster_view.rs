//! The real state of the cluster: every claim of the demo is looked up here, by its own user.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;

use crate::stage::{ErrorContext as _, Failure, Outcome};

/// The namespace of the shop.
pub(crate) const SHOP: &str = "shop";

/// The label that every object of one source carries.
const OURS: &str = "applyset.kubernetes.io/part-of";

/// A view of the cluster.
#[derive(Clone)]
pub(crate) struct ClusterView {
    /// The client.
    pub(crate) client: Client,
}

/// A kind of the shop that can be read as a type.
pub(crate) trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static> Kind for K {}

impl ClusterView {
    /// Opens the eyes of a user.
    pub(crate) async fn open(kubeconfig: &Path) -> Outcome<Self> {
        let what = "to reach the control plane";
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expected(what)?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expected(what)?;
        Ok(Self { client: Client::try_from(config).expected(what)? })
    }

    /// Returns the server's version.
    pub(crate) async fn version(&self) -> Outcome<String> {
        let info = self.client.apiserver_version().await.expected("the server's version")?;
        Ok(info.git_version)
    }

    /// Returns objects of one kind in the shop.
    pub(crate) fn shop<K: Kind + Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), SHOP)
    }

    /// Returns the objects that belong to the source, each with its uid.
    pub(crate) async fn owned(&self) -> Outcome<BTreeMap<String, String>> {
        let kinds = [
            ApiResource::erase::<Namespace>(&()),
            ApiResource::erase::<ConfigMap>(&()),
            ApiResource::erase::<Secret>(&()),
            ApiResource::erase::<Service>(&()),
            ApiResource::erase::<Deployment>(&()),
            ApiResource::erase::<StatefulSet>(&()),
            ApiResource::erase::<DaemonSet>(&()),
            ApiResource::erase::<CronJob>(&()),
        ];
        let mut found = BTreeMap::new();
        for kind in kinds {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
            let list = api.list(&ListParams::default().labels(OURS)).await;
            for object in list.expected(format!("to list objects of kind {}", kind.kind))? {
                let name = format!("{} {}", kind.kind, object.metadata.name.unwrap_or_default());
                found.insert(name, object.metadata.uid.unwrap_or_default());
            }
        }
        Ok(found)
    }

    /// Returns how many pods there are that are ready and run an image.
    pub(crate) async fn ready_pods(&self, app: &str, image: &str) -> Outcome<(usize, usize)> {
        let selector = ListParams::default().labels(&format!("app.kubernetes.io/name={app}"));
        let pods = self.shop::<Pod>().list(&selector).await.expected("to list pods")?;
        let fit = |pod: &&Pod| is_ready(pod) && runs(pod, image);
        Ok((pods.items.iter().filter(fit).count(), pods.items.len()))
    }

    /// Watches one object from now on.
    pub(crate) async fn watch<K: Kind>(&self, api: Api<K>, name: &str) -> Outcome<Watch<K>> {
        let what = format!("to watch {} {name}", K::kind(&()));
        let only = format!("metadata.name={name}");
        let now = api.list(&ListParams::default().fields(&only)).await.expected(&what)?;
        let version = now.metadata.resource_version.unwrap_or_default();
        let parameters = WatchParams::default().fields(&only).timeout(290);
        let stream = api.watch(&parameters, &version).await.expected(&what)?;
        Ok(Watch { stream: stream.boxed(), what })
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn runs(pod: &Pod, image: &str) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .into_iter()
        .any(|container| container.image.as_deref().is_some_and(|name| name.ends_with(image)))
}

/// The changes of one object, as they arrive.
pub(crate) struct Watch<K> {
    stream: BoxStream<'static, kube::Result<WatchEvent<K>>>,
    what: String,
}

impl<K: Kind> Watch<K> {
    /// Waits for a state; `None` is the state of an object that is deleted. Returns when the state
    /// was seen.
    pub(crate) async fn until(
        &mut self,
        expected: &str,
        limit: Duration,
        mut is_it: impl FnMut(Option<&K>) -> bool,
    ) -> Outcome<Instant> {
        let mut last = "no change at all".to_owned();
        let probe = async {
            while let Some(event) = self.stream.try_next().await.expected(&self.what)? {
                let state = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
                    WatchEvent::Deleted(_) => None,
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(status) => return Err(Failure::new(expected, status)),
                };
                let seen = Instant::now();
                if is_it(state.as_ref()) {
                    return Ok(seen);
                }
                last = state_text(state.as_ref());
            }
            Err(Failure::new(expected, "the watch ended"))
        };
        match tokio::time::timeout(limit, probe).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::new(format!("{expected}, within {} s", limit.as_secs()), last)),
        }
    }
}

fn state_text<K: Debug>(state: Option<&K>) -> String {
    state.map_or_else(
        || "it is deleted".to_owned(),
        |object| format!("{object:?}").chars().take(600).collect(),
    )
}

/// Looks again and again until something is there.
pub(crate) async fn until<T>(
    expected: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Outcome<Result<T, String>>,
) -> Outcome<T> {
    let deadline = Instant::now() + limit;
    loop {
        match probe().await? {
            Ok(found) => return Ok(found),
            Err(seen) if Instant::now() > deadline => {
                return Err(Failure::new(format!("{expected}, within {} s", limit.as_secs()), seen));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
