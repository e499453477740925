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

/// The versions between a kind's last event and the list that stands for what a watch has lost.
/// The kind's states within are not known, and none is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryGap {
    /// The last version that the watch has shown.
    pub(crate) after: u64,
    /// The version of the list.
    pub(crate) until: u64,
}

impl HistoryGap {
    /// Returns whether a state of this version lacks what a later moment will show. The list's own
    /// version is whole once its last object was taken.
    fn covers(self, version: u64, next: Option<u64>) -> bool {
        self.after < version && (version < self.until || next == Some(version))
    }
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

/// Returns the pods of a workload, by its uid.
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

    /// Returns pods that were available and are not.
    fn away(&self) -> u64 {
        self.workloads
            .values()
            .map(|workload| workload.had.saturating_sub(ready(&self.pods, &self.sets, &workload.uid)))
            .sum()
    }

    /// Returns the workloads that have pods of two templates, or whose controller has not seen
    /// their template yet. One that never had a Ready pod is only being made.
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
pub(crate) fn replay(
    mut moments: Vec<ObjectEvent>,
    gaps: &[HistoryGap],
    bounds: Bounds,
) -> Result<PeakCounts, String> {
    moments.sort_by_key(|moment| moment.version);
    let (mut state, mut most, mut lines) = (State::default(), PeakCounts::default(), Vec::new());
    for (index, moment) in moments.iter().enumerate() {
        state.take(moment);
        lines.push(state.line(moment));
        let next = moments.get(index + 1).map(|moment| moment.version);
        if gaps.iter().any(|gap| gap.covers(moment.version, next)) {
            continue;
        }
        let (pods, workloads) = (state.away(), state.replacing().len());
        most = PeakCounts { workloads: most.workloads.max(workloads), pods: most.pods.max(pods) };
        if pods > bounds.pods || workloads > bounds.workloads {
            return Err(format!("beyond {bounds:?}:\n{}", lines.join("\n")));
        }
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Bounds, HistoryGap, ObjectEvent, replay};

    fn event(version: u64, kind: &'static str, object: Value) -> ObjectEvent {
        ObjectEvent { version, kind, object, gone: false }
    }

    fn gone(event: ObjectEvent, version: u64) -> ObjectEvent {
        ObjectEvent { version, gone: true, ..event }
    }

    /// Returns a workload of one pod. Its uid is its name.
    fn workload(version: u64, name: &str, template: &str, observed: u64) -> ObjectEvent {
        let metadata = json!({"name": name, "uid": name, "generation": 2});
        let spec = json!({"replicas": 1, "template": template});
        let status = json!({"observedGeneration": observed});
        event(version, "StatefulSet", json!({"metadata": metadata, "spec": spec, "status": status}))
    }

    fn pod(version: u64, owner: &str, revision: &str, ready: &str) -> ObjectEvent {
        let metadata = json!({
            "name": format!("{owner}-{revision}"),
            "uid": format!("{owner}-{revision}"),
            "labels": {"controller-revision-hash": revision},
            "ownerReferences": [{"controller": true, "uid": owner}],
        });
        let conditions = json!([{"type": "Ready", "status": ready}]);
        event(version, "Pod", json!({"metadata": metadata, "status": {"conditions": conditions}}))
    }

    /// Returns two workloads with one Ready pod each, of which the first begins to replace its pod.
    fn beginning() -> Vec<ObjectEvent> {
        let two = ["a", "b"].into_iter();
        let mut events: Vec<ObjectEvent> =
            two.flat_map(|name| [workload(1, name, "old", 2), pod(2, name, "old", "True")]).collect();
        events.push(workload(10, "a", "new", 1));
        events
    }

    #[track_caller]
    fn check(events: Vec<ObjectEvent>, gaps: &[HistoryGap], expected: Result<(), u64>) {
        let outcome = replay(events, gaps, Bounds { workloads: 1, pods: 1 });
        let last = |timeline: String| {
            timeline.lines().next_back().and_then(|line| line.split(' ').next()?.parse().ok()).unwrap()
        };
        assert_eq!(outcome.map(drop).map_err(last), expected);
    }

    #[test]
    fn two_workloads_at_once_are_beyond_one() {
        check(beginning(), &[], Ok(()));
        check([beginning(), vec![workload(11, "b", "new", 1)]].concat(), &[], Err(11));
    }

    #[test]
    fn what_a_lost_watch_did_not_show_is_judged_where_a_list_stands_for_it() {
        let gap = [HistoryGap { after: 10, until: 20 }];
        // The watch of pods was lost at 10. The first workload was done at 15, the second began at 16.
        let old = pod(2, "a", "old", "True");
        let lost = || {
            let seen =
                [workload(12, "a", "new", 2), pod(10, "a", "new", "False"), workload(16, "b", "new", 1)];
            let listed = [gone(old.clone(), 20), pod(20, "a", "new", "True"), pod(20, "b", "old", "True")];
            [beginning(), seen.to_vec(), listed.to_vec()].concat()
        };
        check(lost(), &[], Err(16));
        check(lost(), &gap, Ok(()));
        // The state of the list counts, and so does each one after it.
        check([lost(), vec![pod(20, "a", "newer", "False")]].concat(), &gap, Err(20));
        check([lost(), vec![workload(21, "a", "newer", 1)]].concat(), &gap, Err(21));
    }
}
