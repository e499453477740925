//! Somebody who watches the pods and the workloads of a namespace, and never asks rhumb.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::replay::{Bounds, ObjectEvent, PeakCounts, replay};
use crate::support::{Api, TestNamespace, at, until};

const KINDS: [&str; 5] = ["ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Pod"];

/// Time between two tries while the server is away.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// All that the watches have published, in the order in which it came.
type ObservedEvents = Arc<Mutex<Vec<ObjectEvent>>>;

/// Watches a namespace until it is asked for its judgement.
pub(crate) struct Observer {
    api: Api,
    namespace: String,
    events: ObservedEvents,
    watches: Vec<JoinHandle<()>>,
}

fn version(object: &Value) -> u64 {
    object.pointer("/metadata/resourceVersion").and_then(|text| text.as_str()?.parse().ok()).unwrap()
}

fn uid(object: &Value) -> String {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap().to_owned()
}

fn push_event(events: &ObservedEvents, kind: &'static str, object: Value, gone: bool) {
    let moment = ObjectEvent { version: version(&object), kind, object, gone };
    events.lock().unwrap_or_else(PoisonError::into_inner).push(moment);
}

/// Follows one kind from a version on. A watch that breaks goes on where it was: the server keeps
/// the events.
async fn follow(
    client: kube::Client,
    path: String,
    kind: &'static str,
    mut from: u64,
    events: ObservedEvents,
) {
    loop {
        let uri = format!("{path}?watch=1&resourceVersion={from}");
        let request = http::Request::get(uri).body(Vec::new()).unwrap();
        let Ok(watch) = client.request_events::<Value>(request).await else {
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        };
        let mut watch = pin!(watch);
        while let Ok(Some(event)) = watch.try_next().await {
            let (object, gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
                // A server that has just started knows no history: what is there now stands for it.
                WatchEvent::Error(_) => {
                    from = relist(&client, &path, kind, &events).await.unwrap_or(from);
                    break;
                }
            };
            from = version(&object);
            push_event(&events, kind, object, gone);
        }
    }
}

/// Records the objects of a list, and the deletion of all that it lacks.
async fn relist(
    client: &kube::Client,
    path: &str,
    kind: &'static str,
    events: &ObservedEvents,
) -> Option<u64> {
    let list: Value = client.request(http::Request::get(path).body(Vec::new()).ok()?).await.ok()?;
    let objects = list["items"].as_array()?;
    let there: BTreeSet<String> = objects.iter().map(uid).collect();
    let known = events.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let of_kind = known.into_iter().filter(|moment| moment.kind == kind);
    let newest: BTreeMap<String, ObjectEvent> = of_kind.map(|moment| (uid(&moment.object), moment)).collect();
    for (_, lost) in newest.into_iter().filter(|(uid, moment)| !moment.gone && !there.contains(uid)) {
        let moment = ObjectEvent { version: version(&list), gone: true, ..lost };
        events.lock().unwrap_or_else(PoisonError::into_inner).push(moment);
    }
    for object in objects {
        push_event(events, kind, object.clone(), false);
    }
    Some(version(&list))
}

impl Observer {
    /// Begins to watch a site's namespace.
    pub(crate) fn new(site: &TestNamespace<'_>) -> Self {
        Self::of(site, &site.name)
    }

    /// Begins to watch another namespace.
    pub(crate) fn of(site: &TestNamespace<'_>, namespace: &str) -> Self {
        let (api, events) = (site.api.clone(), ObservedEvents::default());
        let watch = |kind: &'static str| {
            let path = at(kind, namespace, "");
            let list = api.get(&path).unwrap();
            for object in list["items"].as_array().unwrap() {
                push_event(&events, kind, object.clone(), false);
            }
            let from = version(&list);
            api.spawn(|client| follow(client, path, kind, from, Arc::clone(&events)))
        };
        let watches = KINDS.into_iter().map(watch).collect();
        Self { api, namespace: namespace.to_owned(), events, watches }
    }

    fn events(&self) -> Vec<ObjectEvent> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the watches have shown everything that is there now.
    fn is_abreast(&self) -> bool {
        let events = self.events();
        KINDS.into_iter().all(|kind| {
            let newest: BTreeMap<String, &ObjectEvent> = events
                .iter()
                .filter(|moment| moment.kind == kind)
                .map(|moment| (uid(&moment.object), moment))
                .collect();
            let there = self.api.list(&at(kind, &self.namespace, ""));
            let shown = newest.values().filter(|moment| !moment.gone).count();
            let known =
                |object: &Value| newest.get(&uid(object)).is_some_and(|m| m.version >= version(object));
            shown == there.len() && there.iter().all(known)
        })
    }

    /// Holds every state since the beginning against a budget; tells the most that there was.
    #[track_caller]
    pub(crate) fn judge(&self, bounds: Bounds) -> PeakCounts {
        until("the observer has seen all", || self.is_abreast());
        replay(self.events(), bounds).unwrap_or_else(|timeline| panic!("{timeline}"))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}
