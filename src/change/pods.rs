//! The impact of a change on running pods.

use serde_json::Value;

use super::immutable::immutable_fields;
use super::{Impact, ImpactKind, diff};
use crate::fields::FieldPath;
use crate::object::{GroupKind, ObjectId, text_at, value_at};

/// The way in which the controller of a kind rolls out a changed pod template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateRollout {
    Deployment,
    StatefulSet,
    DaemonSet,
    /// A custom kind with a pod template, taken to roll like a Deployment without a pause.
    Custom,
    /// Uses its template for later pods only, or has none.
    Never,
}

impl TemplateRollout {
    fn of(kind: &GroupKind) -> Self {
        match (&*kind.group, &*kind.kind) {
            ("apps", "Deployment") => Self::Deployment,
            ("apps", "StatefulSet") => Self::StatefulSet,
            ("apps", "DaemonSet") => Self::DaemonSet,
            (group, _) if is_built_in(group) => Self::Never,
            _ => Self::Custom,
        }
    }
}

/// Returns whether a group is Kubernetes' own.
fn is_built_in(group: &str) -> bool {
    let own = ["", "apps", "autoscaling", "batch", "extensions", "policy"];
    own.contains(&group) || group.ends_with(".k8s.io") && !group.starts_with("x-")
}

/// Returns the impact of a change on pods. `before` is the live object, `after` the dry run's
/// answer or, less exactly, the desired content.
///
/// - A template that differs: `Restart` of all pods, of a `StatefulSet` only those beyond its
///   partition. It is `InPlace` when none would move (`OnDelete`, a paused Deployment, no pods).
///   Resuming, leaving `OnDelete` and lowering the partition are a `Restart` too. Pods that run an
///   older template than the last one are counted, though the new one may be just theirs.
/// - Other replicas: `Scale` by the difference. Together with another template it is a `Restart`,
///   but from or to no pods at all, where none is replaced.
/// - Other ordinals of a `StatefulSet`: `Restart` of those that get another number, whatever its
///   strategy.
/// - Another choice of nodes for a `DaemonSet` that is held by `OnDelete`: `Scale` by at most all
///   its pods. Its controller takes them from nodes that do not fit any more.
/// - An immutable field that differs: `Recreate`, with all pods; nothing else could bring it about.
/// - An object that comes: `InPlace`, with the pods that it starts. One that goes: `Scale`, with
///   its pods.
pub fn change_impact(kind: &GroupKind, before: Option<&Value>, after: Option<&Value>) -> Impact {
    let (before, after) = match (before, after) {
        (None, None) => return Impact { kind: ImpactKind::None, pods: 0 },
        (None, Some(after)) => return Impact { kind: ImpactKind::InPlace, pods: pods(kind, after) },
        (Some(before), None) => return deletion_impact(kind, before),
        (Some(before), Some(after)) => (before, after),
    };
    if diff::diff_fields(&ObjectId::new(kind, None, ""), Some(before), Some(after)).is_empty() {
        return Impact { kind: ImpactKind::None, pods: 0 };
    }
    if !immutable_fields(kind, before, after).is_empty() {
        return Impact { kind: ImpactKind::Recreate, pods: pods(kind, before) };
    }
    let moved = replica_change(kind, before, after);
    let replaced = restarted_pods(kind, before, after).min(moved.kept);
    match (moved.removed + replaced, moved.added + replaced) {
        (0, 0) if is_leaving_nodes(kind, before, after) => {
            Impact { kind: ImpactKind::Scale, pods: pods(kind, before) }
        }
        (0, 0) => Impact { kind: ImpactKind::InPlace, pods: 0 },
        (0, pods) | (pods, 0) => Impact { kind: ImpactKind::Scale, pods },
        (removed, added) => Impact { kind: ImpactKind::Restart, pods: removed.max(added) },
    }
}

/// The pods that a change of the replicas or ordinals keeps, removes and adds, whatever the
/// template.
struct ReplicaChange {
    kept: u32,
    removed: u32,
    added: u32,
}

fn replica_change(kind: &GroupKind, before: &Value, after: &Value) -> ReplicaChange {
    let both = (count(before, "replicas"), count(after, "replicas"));
    let (old, new) = match both {
        (Some(old), Some(new)) => (old, new),
        // A count that is not said is taken for the other one.
        (Some(count), None) | (None, Some(count)) => (count, count),
        (None, None) if kind.is("batch", "Job") => (pods(kind, before), pods(kind, after)),
        (None, None) => {
            let all = pods(kind, before).max(pods(kind, after));
            (all, all)
        }
    };
    let (from, to) = (first_ordinal(kind, before), first_ordinal(kind, after));
    let kept = old.saturating_add(from).min(new.saturating_add(to)).saturating_sub(from.max(to));
    ReplicaChange { kept, removed: old - kept, added: new - kept }
}

/// Returns the number of a `StatefulSet`'s first pod.
fn first_ordinal(kind: &GroupKind, object: &Value) -> u32 {
    let start = kind.is("apps", "StatefulSet").then(|| value_at(object, &["spec", "ordinals", "start"]));
    start.and_then(number).unwrap_or(0)
}

/// Returns whether a held `DaemonSet` asks for other nodes.
fn is_leaving_nodes(kind: &GroupKind, before: &Value, after: &Value) -> bool {
    let field_of = |object, field| value_at(object, &["spec", "template", "spec", field]);
    kind.is("apps", "DaemonSet")
        && is_on_delete(after)
        && ["affinity", "nodeName", "nodeSelector", "tolerations"]
            .iter()
            .any(|field| !is_same(field_of(before, field), field_of(after, field)))
}

fn deletion_impact(kind: &GroupKind, before: &Value) -> Impact {
    match pods(kind, before) {
        0 => Impact { kind: ImpactKind::InPlace, pods: 0 },
        pods => Impact { kind: ImpactKind::Scale, pods },
    }
}

/// Returns whether repairing these lost paths may restart pods; paths of the object's own content.
pub(crate) fn can_touch_template(kind: &GroupKind, uncovered: &[FieldPath]) -> bool {
    let template_path: &[&str] = match TemplateRollout::of(kind) {
        TemplateRollout::Never if kind.is("", "Pod") => &["spec"],
        TemplateRollout::Never => return false,
        _ => &["spec", "template"],
    };
    let ordinals =
        |path: &FieldPath| kind.is("apps", "StatefulSet") && path.is_prefix_related(&["spec", "ordinals"]);
    uncovered.iter().any(|path| path.is_prefix_related(template_path) || ordinals(path))
}

/// Returns whether setting lost paths may free pods that keep an older template. A workload is
/// paused, or holds its pods by a partition or by `OnDelete`, by taking such paths away.
pub(crate) fn can_release_pods(kind: &GroupKind, uncovered: &[FieldPath]) -> bool {
    let template_path: &[&str] = match TemplateRollout::of(kind) {
        TemplateRollout::Never => return false,
        _ if kind.is("apps", "Deployment") => &["spec", "paused"],
        _ => &["spec", "updateStrategy"],
    };
    uncovered.iter().any(|path| path.is_prefix_related(template_path))
}

/// Returns the number of pods that a change between two live trees restarts.
fn restarted_pods(kind: &GroupKind, before: &Value, after: &Value) -> u32 {
    if kind.is("", "Pod") {
        // A change in place restarts a container only where its image changes.
        return u32::from(images(before) != images(after));
    }
    let roll = TemplateRollout::of(kind);
    if !is_replacing_pods(roll, after) || is_holding_all(roll, after) {
        return 0;
    }
    if is_template_changed(before, after) {
        let all = pods(kind, before).max(pods(kind, after));
        return all.saturating_sub(partition(roll, after));
    }
    if !can_free_pods(roll, before, after) {
        return 0;
    }
    // The pods that were held back: those that are not of the newest template yet.
    match roll {
        TemplateRollout::DaemonSet => {
            status(before, "desiredNumberScheduled").saturating_sub(status(before, "updatedNumberScheduled"))
        }
        TemplateRollout::StatefulSet
            if text_at(before, &["status", "currentRevision"])
                == text_at(before, &["status", "updateRevision"]) =>
        {
            0
        }
        _ => pods(kind, before).saturating_sub(status(before, "updatedReplicas").max(partition(roll, after))),
    }
}

/// Returns whether an object's controller replaces pods when its template changes.
fn is_replacing_pods(roll: TemplateRollout, object: &Value) -> bool {
    match roll {
        TemplateRollout::Never => false,
        TemplateRollout::Custom => {
            value_at(object, &["spec", "template", "spec", "containers"]).is_some_and(Value::is_array)
        }
        _ => true,
    }
}

/// Returns whether an object's own settings keep every pod where it is.
fn is_holding_all(roll: TemplateRollout, object: &Value) -> bool {
    match roll {
        TemplateRollout::Deployment => is_paused(object),
        TemplateRollout::StatefulSet | TemplateRollout::DaemonSet => is_on_delete(object),
        TemplateRollout::Custom | TemplateRollout::Never => false,
    }
}

/// Returns whether a change lets a rollout go on that was held.
fn can_free_pods(roll: TemplateRollout, before: &Value, after: &Value) -> bool {
    is_holding_all(roll, before) && !is_holding_all(roll, after)
        || partition(roll, after) < partition(roll, before)
}

fn is_template_changed(before: &Value, after: &Value) -> bool {
    !is_same(value_at(before, &["spec", "template"]), value_at(after, &["spec", "template"]))
}

/// Returns whether two values are equal, where null counts as absent.
fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.filter(|value| !value.is_null()), b.filter(|value| !value.is_null())) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| is_same(Some(value), b.get(key)))
                && b.iter().all(|(key, value)| value.is_null() || a.contains_key(key))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(Some(a), Some(b)))
        }
        (a, b) => a == b,
    }
}

fn is_paused(object: &Value) -> bool {
    value_at(object, &["spec", "paused"]).and_then(Value::as_bool).unwrap_or_default()
}

fn is_on_delete(object: &Value) -> bool {
    text_at(object, &["spec", "updateStrategy", "type"]) == "OnDelete"
}

fn partition(roll: TemplateRollout, object: &Value) -> u32 {
    if roll != TemplateRollout::StatefulSet {
        return 0;
    }
    number(value_at(object, &["spec", "updateStrategy", "rollingUpdate", "partition"])).unwrap_or(0)
}

fn images(pod: &Value) -> Vec<&Value> {
    ["initContainers", "containers"]
        .iter()
        .filter_map(|list| value_at(pod, &["spec", list])?.as_array())
        .flatten()
        .filter_map(|container| container.get("image"))
        .collect()
}

/// Returns the number of pods that an object of this kind asks for or has.
fn pods(kind: &GroupKind, object: &Value) -> u32 {
    match (&*kind.group, &*kind.kind) {
        ("", "Pod") => 1,
        ("apps", "DaemonSet") => status(object, "desiredNumberScheduled"),
        ("batch", "Job") if value_at(object, &["spec", "suspend"]) == Some(&Value::Bool(true)) => 0,
        ("batch", "Job") => count(object, "parallelism").unwrap_or(1),
        ("apps", _) | ("", "ReplicationController") if value_at(object, &["spec", "template"]).is_some() => {
            count(object, "replicas").unwrap_or(1)
        }
        _ => count(object, "replicas").unwrap_or(0),
    }
}

fn count(object: &Value, key: &str) -> Option<u32> {
    number(value_at(object, &["spec", key]))
}

fn status(object: &Value, key: &str) -> u32 {
    number(value_at(object, &["status", key])).unwrap_or(0)
}

fn number(value: Option<&Value>) -> Option<u32> {
    let number = value?.as_i64()?;
    Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}
