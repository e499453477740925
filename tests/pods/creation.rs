//! Pods that cannot be created: a quota, admission.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rhumb::testing::engine::find_failure;
use serde_json::{Value, json};

use crate::SIGNAL_TIMEOUT;
use crate::harness::{Harness, KINDS, KubectlView, SLOW_TIMEOUT, all_at_once, plane};

fn apply(objects: &Value) {
    plane().kubectl_in(&["apply", "-f", "-"], &objects.to_string()).unwrap();
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn quota(namespace: &str, pods: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "few", "namespace": namespace },
        "spec": { "hard": { "pods": pods } },
    })
}

/// Refuses pods with this label, in every namespace.
fn policy() -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": "no-bad-pods" },
            "spec": {
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                }] },
                "validations": [{
                    "expression": "!has(object.metadata.labels) || !('bad' in object.metadata.labels)",
                    "message": "bad pods are not welcome",
                }],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": { "name": "no-bad-pods" },
            "spec": { "policyName": "no-bad-pods", "validationActions": ["Deny"] },
        },
    ] })
}

/// Waits until the policy works, which takes the server a moment.
async fn policy_works() {
    let deadline = Instant::now() + SLOW_TIMEOUT;
    let bad = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "probe", "namespace": "default", "labels": { "bad": "true" } },
        "spec": { "containers": [{ "name": "c", "image": "web:1" }] },
    });
    while plane().kubectl_in(&["create", "--dry-run=server", "-f", "-"], &bad.to_string()).is_ok() {
        assert!(Instant::now() < deadline, "the policy never works");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns an event as the API shows it: its object, its owner, and its reason. A Deployment's
/// events come from the ReplicaSet.
fn events(event: &Value) -> Vec<String> {
    let of = |place: &str| event.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = match (of("/involvedObject/kind"), of("/involvedObject/name")) {
        ("ReplicaSet", name) => ("Deployment", name.rsplit_once('-').map_or(name, |(name, _)| name)),
        other => other,
    };
    vec![format!("{} {kind} {name} {}", of("/metadata/namespace"), of("/reason"))]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_that_is_used_up_is_reported_and_forgotten_when_it_is_raised() {
    async fn check(harness: Harness, witness: Arc<KubectlView>, kind: &str) {
        let place = format!("quota-{}", kind.to_lowercase());
        apply(&namespace(&place));
        let mut web = harness.workload(kind, &place, "web").start().await;
        web.settles().await;
        // No room for the second pod once the first has gone, and none for a surge.
        apply(&quota(&place, "1"));
        web.workload.image("web:2");
        web.roll().await;
        let (failing_now, at) = web.fails().await;
        let since = witness.first(&format!("{place} {kind} web FailedCreate")).await;
        assert!(at < since + SIGNAL_TIMEOUT, "{kind}: {:?} late", at - since);
        assert_eq!((&*failing_now.reason, &failing_now.pod), ("FailedCreate", &None));
        assert!(failing_now.message.contains("exceeded quota: few"), "{failing_now}");
        apply(&quota(&place, "10"));
        // The controllers wait ever longer between two tries; a change of the workload wakes them.
        web.workload.body["metadata"]["labels"] = json!({ "woken": "true" });
        web.roll().await;
        web.until(|pods| pods.creation_failure.is_none() && pods.count_ready_newest() == 2).await;
        assert_eq!(find_failure(web.pods.as_ref().unwrap(), Instant::now()), None);
    }
    let harness = Harness::new().await;
    let witness = KubectlView::of("events", events);
    all_at_once(KINDS.map(|kind| check(harness.clone(), witness.clone(), kind))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_admission_says_of_the_new_pods_is_reported() {
    async fn check(harness: Harness, witness: Arc<KubectlView>, kind: &str) {
        let mut web = harness.workload(kind, "default", "admission").start().await;
        web.settles().await;
        web.workload.template()["metadata"]["labels"]["bad"] = json!("true");
        web.roll().await;
        let (failing, at) = web.fails().await;
        let since = witness.first(&format!("default {kind} admission FailedCreate")).await;
        assert!(at < since + SIGNAL_TIMEOUT, "{kind}: {:?} late", at - since);
        assert_eq!((&*failing.reason, &failing.pod), ("FailedCreate", &None));
        let text = failing.to_string();
        assert!(text.starts_with("no new pod can be created: FailedCreate: "), "{text}");
        assert!(text.contains("'no-bad-pods'") && text.contains("bad pods are not welcome"), "{text}");
        // A refusal of one revision is not held against the next.
        web.workload.template()["metadata"]["labels"].as_object_mut().unwrap().remove("bad");
        web.roll().await;
        web.settles().await;
    }
    let harness = Harness::new().await;
    let witness = KubectlView::of("events", events);
    apply(&policy());
    policy_works().await;
    all_at_once(KINDS.map(|kind| check(harness.clone(), witness.clone(), kind))).await;
}
