//! The cluster's state after each event, and whether it was within a budget.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// One event of a watch: what an object was like from this version on.
#[derive(Clone, Debug)]
pub(crate) struct ObjectEvent {
    pub(crate) version: u64,
    pub(crate) kind: &'static str,
    pub(crate) object: Value,
    pub(crate) gone: bool,
}

/// The bounds of every state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Workloads whose pods are being replaced.
    pub(crate) workloads: usize,
    /// Pods that were available and are not.
    pub(crate) pods: u64,
}

/// The most that was seen at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeakCounts {
    pub(crate) workloads: usize,
    pub(crate) pods: u64,
}

#[derive(Default)]
struct Workload {
    uid: String,
    wanted: u64,
    /// The most pods of those that it wants that were Ready at once.
    had: u64,
    template: String,
    /// The template that its controller has seen.
    observed: String,
}

struct Pod {
    controller: String,
    revision: String,
    ready: bool,
}

/// The state after some events.
#[derive(Default)]
struct State {
    workloads: BTreeMap<String, Workload>,
    /// The owner of each `ReplicaSet`, by uid.
    sets: BTreeMap<String, String>,
    pods: BTreeMap<String, Pod>,
}

fn text(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn number(object: &Value, pointer: &str) -> u64 {
    object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

fn controller(object: &Value) -> String {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner = owners.into_iter().flatten().find(|owner| owner["controller"] == Value::Bool(true));
    owner.map(|owner| text(owner, "/uid")).unwrap_or_default()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    ready.is_some_and(|ready| ready["status"] == "True")
        && text(pod, "/metadata/deletionTimestamp").is_empty()
}

/// The pods of a workload, by its uid.
fn pods_of<'a>(
    pods: &'a BTreeMap<String, Pod>,
    sets: &'a BTreeMap<String, String>,
    uid: &'a str,
) -> impl Iterator<Item = &'a Pod> {
    let owner = |pod: &'a Pod| sets.get(&pod.controller).unwrap_or(&pod.controller);
    pods.values().filter(move |pod| owner(pod) == uid)
}

fn ready(pods: &BTreeMap<String, Pod>, sets: &BTreeMap<String, String>, uid: &str) -> u64 {
    pods_of(pods, sets, uid).filter(|pod| pod.ready).count() as u64
}

impl State {
    fn take(&mut self, moment: &ObjectEvent) {
        let object = &moment.object;
        let (name, uid) = (text(object, "/metadata/name"), text(object, "/metadata/uid"));
        match moment.kind {
            "Pod" if moment.gone => drop(self.pods.remove(&uid)),
            "Pod" => self.pod(uid, object),
            "ReplicaSet" if moment.gone => {}
            "ReplicaSet" => drop(self.sets.insert(uid, controller(object))),
            kind => {
                let key = format!("{kind}/{}/{name}", text(object, "/metadata/namespace"));
                if moment.gone {
                    self.workloads.remove(&key);
                } else {
                    self.workload(key, uid, moment);
                }
            }
        }
        for workload in self.workloads.values_mut() {
            let ready = ready(&self.pods, &self.sets, &workload.uid);
            workload.had = workload.had.max(ready).min(workload.wanted);
        }
    }

    fn pod(&mut self, uid: String, object: &Value) {
        let label = |name: &str| text(object, &format!("/metadata/labels/{name}"));
        let revision = label("pod-template-hash") + &label("controller-revision-hash");
        self.pods.insert(uid, Pod { controller: controller(object), revision, ready: is_ready(object) });
    }

    fn workload(&mut self, key: String, uid: String, moment: &ObjectEvent) {
        let object = &moment.object;
        let workload = self.workloads.entry(key).or_default();
        if workload.uid != uid {
            *workload = Workload { uid, ..Workload::default() };
        }
        workload.wanted = if moment.kind == "DaemonSet" {
            number(object, "/status/desiredNumberScheduled")
        } else {
            number(object, "/spec/replicas")
        };
        workload.template = text(object, "/spec/template");
        let seen = number(object, "/status/observedGeneration") == number(object, "/metadata/generation");
        if seen || workload.observed.is_empty() {
            workload.observed.clone_from(&workload.template);
        }
    }

    /// Pods that were available and are not.
    fn away(&self) -> u64 {
        self.workloads
            .values()
            .map(|workload| workload.had.saturating_sub(ready(&self.pods, &self.sets, &workload.uid)))
            .sum()
    }

    /// Workloads that have pods of two templates, or whose controller has not seen their template
    /// yet. One that never had a Ready pod is only being made.
    fn replacing(&self) -> BTreeSet<&str> {
        let is = |workload: &Workload| {
            let pods = pods_of(&self.pods, &self.sets, &workload.uid);
            let revisions: BTreeSet<&str> = pods.map(|pod| &*pod.revision).collect();
            workload.had > 0 && (revisions.len() > 1 || workload.template != workload.observed)
        };
        self.workloads.iter().filter(|(_, workload)| is(workload)).map(|(key, _)| &**key).collect()
    }

    fn line(&self, moment: &ObjectEvent) -> String {
        let name = text(&moment.object, "/metadata/name");
        let verb = if moment.gone { "gone" } else { "is" };
        let ready = if is_ready(&moment.object) { " Ready" } else { "" };
        format!(
            "{} {} {name} {verb}{ready}: {} pods away, replacing {:?}",
            moment.version,
            moment.kind,
            self.away(),
            self.replacing()
        )
    }
}

/// Replays the events in the order of their versions. The first state comes first.
pub(crate) fn replay(mut moments: Vec<ObjectEvent>, bounds: Bounds) -> Result<PeakCounts, String> {
    moments.sort_by_key(|moment| moment.version);
    let (mut state, mut most, mut lines) = (State::default(), PeakCounts::default(), Vec::new());
    for moment in &moments {
        state.take(moment);
        lines.push(state.line(moment));
        let (pods, workloads) = (state.away(), state.replacing().len());
        most = PeakCounts { workloads: most.workloads.max(workloads), pods: most.pods.max(pods) };
        if pods > bounds.pods || workloads > bounds.workloads {
            return Err(format!("beyond {bounds:?}:\n{}", lines.join("\n")));
        }
    }
    Ok(most)
}
