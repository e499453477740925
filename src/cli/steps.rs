//! The progress of a workload's steps, as far as the cluster shows it.

use crate::object::annotations;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::target::{ClusterSession, ManagedObject};
use crate::cluster::{KindLookup, pod_selector};
use crate::engine::{LabelSelector, RolloutOverlay};
use crate::object::{GroupKind, text_at, value_at};

/// Returns the step that is shown, and the reason that keeps the pods of a DaemonSet. Facts that
/// the user may not read are left out.
pub(super) async fn lines(session: &ClusterSession, target: &ManagedObject) -> Vec<String> {
    let Some(overlay) = target.annotation_value(annotations::OVERLAY).parse::<RolloutOverlay>().ok() else {
        return Vec::new();
    };
    let Some(step) = overlay.step() else { return Vec::new() };
    let mut lines = vec![step_text(
        step,
        target.annotation_value(annotations::STEPS),
        target.annotation_value(annotations::STEP_PROMOTE),
    )];
    if matches!(overlay, RolloutOverlay::OnDelete { .. }) {
        lines.extend(blocking_budgets(session, target).await);
        lines.extend(nodes_not_ready(session, target).await);
    }
    lines
}

fn step_text(step: u32, steps: &str, promote: &str) -> String {
    let count =
        u32::try_from(steps.split(',').filter(|part| !part.trim().is_empty()).count()).unwrap_or(u32::MAX);
    let who = if promote == "manual" { ", each left by `rhumb rollout promote`" } else { "" };
    match count {
        0 => format!("held at step {step}"),
        count if step > count => format!("after the last of its steps ({steps}{who})"),
        count => format!("held at step {step} of {count} ({steps}{who})"),
    }
}

async fn objects(
    session: &ClusterSession,
    kind: GroupKind,
    namespace: Option<&str>,
    selector: &str,
) -> Vec<Value> {
    let KindLookup::Served(kind) = session.kinds.preferred_kind(&kind) else { return Vec::new() };
    session.cluster.objects(&kind, namespace, selector).await.unwrap_or_default()
}

/// Returns the budgets that allow no pod of it to be evicted now.
async fn blocking_budgets(session: &ClusterSession, target: &ManagedObject) -> Vec<String> {
    let namespace = target.id.namespace();
    let budgets = objects(session, GroupKind::new("policy", "PodDisruptionBudget"), namespace, "").await;
    let labels =
        value_at(&target.object, &["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
    let closed = budgets.iter().filter(|budget| is_blocking(budget, labels));
    let line = |budget: &Value| {
        let name = text_at(budget, &["metadata", "name"]);
        format!("PodDisruptionBudget {name} allows none of its pods to be evicted now")
    };
    closed.map(line).collect()
}

fn is_blocking(budget: &Value, labels: Option<&Map<String, Value>>) -> bool {
    let allowed = value_at(budget, &["status", "disruptionsAllowed"]).and_then(Value::as_i64).unwrap_or(0);
    let label = |key: &str| labels?.get(key)?.as_str();
    let everything =
        value_at(budget, &["spec", "selector"]).and_then(Value::as_object).is_some_and(Map::is_empty);
    let selector = pod_selector(budget).and_then(|text| LabelSelector::parse(&text));
    allowed <= 0 && (everything || selector.is_some_and(|selector| selector.matches(label)))
}

/// Returns the nodes that are not Ready and have pods of a workload.
async fn nodes_not_ready(session: &ClusterSession, target: &ManagedObject) -> Vec<String> {
    let Some(selector) = pod_selector(&target.object) else { return Vec::new() };
    let nodes = objects(session, GroupKind::new("", "Node"), None, "").await;
    let lost: BTreeSet<&str> = nodes
        .iter()
        .filter(|node| !is_ready(node))
        .map(|node| text_at(node, &["metadata", "name"]))
        .collect();
    if lost.is_empty() {
        return Vec::new();
    }
    let pods = objects(session, GroupKind::new("", "Pod"), target.id.namespace(), &selector).await;
    let used: BTreeSet<&str> = pods
        .iter()
        .map(|pod| text_at(pod, &["spec", "nodeName"]))
        .filter(|node| lost.contains(node))
        .collect();
    used.iter().map(|node| format!("node {node} is not Ready, and is passed over")).collect()
}

fn is_ready(node: &Value) -> bool {
    let conditions = value_at(node, &["status", "conditions"]).and_then(Value::as_array);
    let holds = |one: &Value| text_at(one, &["type"]) == "Ready" && text_at(one, &["status"]) == "True";
    conditions.is_some_and(|all| all.iter().any(holds))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_is_reported_with_all_of_them() {
        fn check(step: u32, steps: &str, promote: &str, expected: &str) {
            assert_eq!(step_text(step, steps, promote), expected);
        }
        check(1, "1, 50%", "", "held at step 1 of 2 (1, 50%)");
        check(3, "1, 50%", "auto", "after the last of its steps (1, 50%)");
        let each = "held at step 2 of 2 (1, 50%, each left by `rhumb rollout promote`)";
        check(2, "1, 50%", "manual", each);
        // Somebody took them out of the manifest.
        check(2, "", "", "held at step 2");
    }

    #[test]
    fn a_budget_forbids_what_it_selects() {
        fn check(selector: &Value, allowed: i64, expected: bool) {
            let budget = json!({"spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}});
            let labels = json!({"app": "agent"});
            assert_eq!(is_blocking(&budget, labels.as_object()), expected, "{budget}");
        }
        check(&json!({"matchLabels": {"app": "agent"}}), 0, true);
        check(&json!({"matchLabels": {"app": "agent"}}), 1, false);
        check(&json!({"matchLabels": {"app": "web"}}), 0, false);
        check(&json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), 0, true);
        check(&json!({}), 0, true);
        check(&Value::Null, 0, false);
    }
}
