//! Somebody who watches the pods and the workloads of a namespace, and never asks rhumb.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::replay::{Bounds, HistoryGap, ObjectEvent, PeakCounts, replay};
use crate::support::{Api, TestNamespace, at, until};

const KINDS: [&str; 5] = ["ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Pod"];

/// Time between two tries while the server is away.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// All that the watches have shown, in the order in which it came, and what they have missed.
#[derive(Clone, Default)]
struct ObservedHistory {
    events: Vec<ObjectEvent>,
    gaps: Vec<HistoryGap>,
}

impl ObservedHistory {
    fn push(&mut self, kind: &'static str, object: Value, gone: bool) {
        self.events.push(ObjectEvent { version: version(&object), kind, object, gone });
    }

    /// Returns the newest event of each object of a kind, by uid.
    fn newest(&self, kind: &str) -> BTreeMap<String, ObjectEvent> {
        let of_kind = self.events.iter().filter(|event| event.kind == kind);
        of_kind.map(|event| (uid(&event.object), event.clone())).collect()
    }

    /// Lets a list of a kind stand for what its watch has lost since a version.
    fn push_list(&mut self, kind: &'static str, after: u64, until: u64, listed: &[Value]) {
        let newest = self.newest(kind);
        let there: BTreeSet<String> = listed.iter().map(uid).collect();
        let lost = newest.iter().filter(|(uid, event)| !event.gone && !there.contains(*uid));
        let lost = lost.map(|(_, event)| ObjectEvent { version: until, gone: true, ..event.clone() });
        let is_changed = |object: &&Value| {
            newest.get(&uid(object)).is_none_or(|event| event.gone || event.version < version(object))
        };
        let changed = listed.iter().filter(is_changed).cloned();
        let changed = changed.map(|object| ObjectEvent { version: until, kind, object, gone: false });
        let missed: Vec<ObjectEvent> = lost.chain(changed).collect();
        if !missed.is_empty() {
            self.gaps.push(HistoryGap { after, until });
            self.events.extend(missed);
        }
    }
}

type SharedHistory = Arc<Mutex<ObservedHistory>>;

fn locked(history: &SharedHistory) -> MutexGuard<'_, ObservedHistory> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The observer of a namespace, until it is asked for its judgement.
pub(crate) struct Observer {
    api: Api,
    namespace: String,
    history: SharedHistory,
    watches: Vec<JoinHandle<()>>,
}

fn version(object: &Value) -> u64 {
    object.pointer("/metadata/resourceVersion").and_then(|text| text.as_str()?.parse().ok()).unwrap()
}

fn uid(object: &Value) -> String {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap().to_owned()
}

/// Follows one kind from a version on. A watch that breaks goes on where it was: the server keeps
/// the events.
async fn follow(
    client: kube::Client,
    path: String,
    kind: &'static str,
    mut from: u64,
    history: SharedHistory,
) {
    loop {
        let uri = format!("{path}?watch=1&resourceVersion={from}");
        let request = http::Request::get(uri).body(Vec::new()).unwrap();
        let Ok(events) = client.request_events::<Value>(request).await else {
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        };
        let mut events = pin!(events);
        while let Ok(Some(event)) = events.try_next().await {
            let (object, gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
                // A server that has just started knows no history: what is there now stands for it.
                WatchEvent::Error(_) => {
                    from = relist(&client, &path, kind, from, &history).await.unwrap_or(from);
                    break;
                }
            };
            from = version(&object);
            locked(&history).push(kind, object, gone);
        }
    }
}

/// Lists what is there, as of one version, which it returns.
async fn relist(
    client: &kube::Client,
    path: &str,
    kind: &'static str,
    from: u64,
    history: &SharedHistory,
) -> Option<u64> {
    let list: Value = client.request(http::Request::get(path).body(Vec::new()).ok()?).await.ok()?;
    locked(history).push_list(kind, from, version(&list), list["items"].as_array()?);
    Some(version(&list))
}

impl Observer {
    /// Begins to watch a site's namespace.
    pub(crate) fn new(site: &TestNamespace<'_>) -> Self {
        Self::of(site, &site.name)
    }

    /// Begins to watch another namespace.
    pub(crate) fn of(site: &TestNamespace<'_>, namespace: &str) -> Self {
        Self::following(site, namespace, &["ConfigMap"])
    }

    /// Begins to watch a namespace, and further kinds in it that no budget is about.
    pub(crate) fn following(
        site: &TestNamespace<'_>,
        namespace: &str,
        further_kinds: &[&'static str],
    ) -> Self {
        let (api, history) = (site.api.clone(), SharedHistory::default());
        let watch = |kind: &'static str| {
            let path = at(kind, namespace, "");
            let list = api.get(&path).unwrap();
            for object in list["items"].as_array().unwrap() {
                locked(&history).push(kind, object.clone(), false);
            }
            let from = version(&list);
            api.spawn(|client| follow(client, path, kind, from, Arc::clone(&history)))
        };
        let watches = KINDS.iter().chain(further_kinds).copied().map(watch).collect();
        Self { api, namespace: namespace.to_owned(), history, watches }
    }

    /// Returns whether the watches have shown everything that is there now.
    fn is_abreast(&self) -> bool {
        let history = locked(&self.history).clone();
        KINDS.into_iter().all(|kind| {
            let newest = history.newest(kind);
            let there = self.api.list(&at(kind, &self.namespace, ""));
            let shown = newest.values().filter(|event| !event.gone).count();
            let known = |object: &Value| {
                newest.get(&uid(object)).is_some_and(|event| event.version >= version(object))
            };
            shown == there.len() && there.iter().all(known)
        })
    }

    /// Holds every state since the beginning against a budget; returns the most that there was.
    #[track_caller]
    pub(crate) fn judge(&self, bounds: Bounds) -> PeakCounts {
        self.compare(bounds).unwrap_or_else(|timeline| panic!("{timeline}"))
    }

    /// Does the same as [`Observer::judge`], and returns the states up to the first one beyond the
    /// budget.
    pub(crate) fn compare(&self, bounds: Bounds) -> Result<PeakCounts, String> {
        until("the observer has seen all", || self.is_abreast());
        let mut history = locked(&self.history).clone();
        history.events.retain(|event| KINDS.contains(&event.kind));
        replay(history.events, &history.gaps, bounds)
    }

    /// Waits until the watches have shown a state of an object of a kind. It may be over by now:
    /// whoever looks at the object itself may come too late.
    #[track_caller]
    pub(crate) fn await_state(&self, what: &str, kind: &str, is_so: impl Fn(&Value) -> bool) {
        until(what, || {
            let history = locked(&self.history);
            history.events.iter().any(|event| event.kind == kind && !event.gone && is_so(&event.object))
        });
    }

    /// Returns all events of a kind, in the order in which they came.
    #[allow(dead_code, reason = "only the bench of faults looks at other kinds")]
    pub(crate) fn events(&self, kind: &str) -> Vec<ObjectEvent> {
        locked(&self.history).events.iter().filter(|event| event.kind == kind).cloned().collect()
    }

    /// Returns the live object of a kind and name, as the watches have shown it last.
    #[allow(dead_code, reason = "only the bench of faults asks for single objects")]
    pub(crate) fn live(&self, kind: &str, name: &str) -> Option<Value> {
        let history = locked(&self.history);
        let mut newest = history.events.iter().rev();
        let newest = newest.find(|event| event.kind == kind && event.object["metadata"]["name"] == name);
        newest.filter(|event| !event.gone).map(|event| event.object.clone())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}
