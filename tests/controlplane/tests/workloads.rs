//! Workloads get Ready, claims bind, pods fail where their annotations ask for it.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use std::sync::{Arc, LazyLock, Mutex, Weak};

use common::{DEFAULT_TIMEOUT, apply, eventually, field};
use controlplane::Cluster;

/// Returns one cluster for the tests of this file that run at the same time.
fn cluster() -> Arc<Cluster> {
    static SHARED: LazyLock<Mutex<Weak<Cluster>>> = LazyLock::new(Mutex::default);
    let mut shared = SHARED.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let cluster = Arc::new(Cluster::start().unwrap());
        *shared = Arc::downgrade(&cluster);
        cluster
    })
}

fn workload(kind: &str, name: &str, spec: &str, annotations: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  {spec}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {{{annotations}}}}}
    spec: {{containers: [{{name: main, image: '{image}'}}]}}
"
    )
}

#[test]
fn workloads_get_ready() {
    let cluster = cluster();
    let claim = "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], \
                 resources: {requests: {storage: 1Gi}}}}]";
    apply(&cluster, &workload("Deployment", "web", "replicas: 4", "", "web:1"));
    apply(&cluster, &workload("StatefulSet", "db", &format!("replicas: 2\n  {claim}"), "", "db:1"));
    apply(&cluster, &workload("DaemonSet", "agent", "", "", "agent:1"));
    apply(
        &cluster,
        "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{port: 80}]}}",
    );
    eventually(DEFAULT_TIMEOUT, "4".to_owned(), || {
        field(&cluster, "deployment/web", "{.status.availableReplicas}")
    });
    eventually(DEFAULT_TIMEOUT, "2".to_owned(), || {
        field(&cluster, "statefulset/db", "{.status.readyReplicas}")
    });
    eventually(DEFAULT_TIMEOUT, "3".to_owned(), || {
        field(&cluster, "daemonset/agent", "{.status.numberReady}")
    });
    eventually(DEFAULT_TIMEOUT, true, || {
        field(&cluster, "service/web", "{.status.loadBalancer.ingress[0].ip}").starts_with("10.97.")
    });
    assert_eq!(field(&cluster, "pvc/data-db-1", "{.status.phase} {.status.capacity.storage}"), "Bound 1Gi");

    // A claim grows, and its volume goes with it.
    let larger = r#"{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}"#;
    cluster.kubectl(&["patch", "pvc", "data-db-1", "-p", larger]).unwrap();
    eventually(DEFAULT_TIMEOUT, "2Gi".to_owned(), || {
        field(&cluster, "pvc/data-db-1", "{.status.capacity.storage}")
    });
    cluster.kubectl(&["delete", "statefulset", "db", "--cascade=foreground"]).unwrap();
    let volume = field(&cluster, "pvc/data-db-1", "{.spec.volumeName}");
    cluster.kubectl(&["delete", "pvc", "data-db-1"]).unwrap();
    eventually(DEFAULT_TIMEOUT, true, || {
        field(&cluster, &format!("pv/{volume}"), "{.metadata.name}").contains("NotFound")
    });

    // A new image rolls out.
    apply(&cluster, &workload("Deployment", "web", "replicas: 4", "", "web:2"));
    eventually(DEFAULT_TIMEOUT, "4 4".to_owned(), || {
        field(&cluster, "deployment/web", "{.status.updatedReplicas} {.status.availableReplicas}")
    });
}

#[test]
fn jobs_end() {
    let cluster = cluster();
    for (name, annotations, expected) in [
        ("done", "", "Complete"),
        ("slow", "controlplane/run-for: 500ms", "Complete"),
        ("failed", "controlplane/fail: 'true'", "Failed"),
    ] {
        apply(
            &cluster,
            &format!(
                "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  backoffLimit: 0
  template:
    metadata: {{annotations: {{{annotations}}}}}
    spec: {{restartPolicy: Never, containers: [{{name: main, image: 'job:1'}}]}}
"
            ),
        );
        eventually(DEFAULT_TIMEOUT, true, || {
            field(&cluster, &format!("job/{name}"), "{.status.conditions[*].type}")
                .split(' ')
                .any(|it| it == expected)
        });
    }
}

#[test]
fn pods_fail_as_they_are_asked_to() {
    let cluster = cluster();
    for (name, annotations, image, expected) in [
        ("never", "controlplane/never-ready: 'true'", "a:1", "Running False"),
        ("delayed", "controlplane/ready-delay: 1s", "a:1", "Running True"),
        ("crashing", "controlplane/crash: 'true'", "a:1", "Running False CrashLoopBackOff"),
        ("later", "controlplane/crash-after: 300ms", "a:1", "Running False CrashLoopBackOff"),
        ("broken", "", "a:broken", "Pending False ImagePullBackOff"),
    ] {
        apply(&cluster, &workload("Deployment", name, "replicas: 1", annotations, image));
        eventually(DEFAULT_TIMEOUT, expected.to_owned(), || {
            let path = "{.items[0].status.phase} {.items[0].status.conditions[?(@.type==\"Ready\")].status} \
                        {.items[0].status.containerStatuses[0].state.waiting.reason}";
            let arguments = ["get", "pods", "-l", &format!("app={name}"), "-o", &format!("jsonpath={path}")];
            cluster.kubectl(&arguments).unwrap().trim().to_owned()
        });
    }
    eventually(DEFAULT_TIMEOUT, true, || {
        let path = "jsonpath={.items[0].status.containerStatuses[0].restartCount}";
        let count = cluster.kubectl(&["get", "pods", "-l", "app=crashing", "-o", path]).unwrap();
        count.parse::<u32>().unwrap() >= 2
    });
}

// KWOK's nodes act by name, on views that are seconds old on a busy machine.
#[test]
fn nodes_do_nothing_to_a_pod_that_was_made_since() {
    let cluster = cluster();
    let pod = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: main, image: a}}]}}}}"
        )
    };
    apply(&cluster, &pod("since"));
    eventually(DEFAULT_TIMEOUT, "Running".to_owned(), || field(&cluster, "pod/since", "{.status.phase}"));
    let node = cluster.dir().join("run/kwok.kubeconfig");
    // The server's refusal; empty where it obeys.
    let refused = |arguments: &[&str]| {
        let user = format!("--kubeconfig={}", node.display());
        cluster
            .kubectl(&[arguments, &[&user]].concat())
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let delete =
        ["delete", "pod", "since", "--force", "--grace-period=0", "--wait=false", "--dry-run=server"];
    let why = "this pod is not the one that was deleted";
    // The server takes a moment until it knows the policy.
    eventually(DEFAULT_TIMEOUT, true, || refused(&delete).contains(why));
    let found = refused(&delete[..6]);
    assert!(found.contains(why), "{found}");
    let other = r#"{"metadata": {"uid": "another"}, "status": {"phase": "Failed"}}"#;
    let found = refused(&["patch", "pod", "since", "--subresource=status", "-p", other]);
    assert!(found.contains("metadata.uid"), "{found}");
    assert_eq!(field(&cluster, "pod/since", "{.status.phase}"), "Running");
    // A pod that somebody deletes goes, also where others have its name after it.
    for _ in 0..3 {
        cluster.kubectl(&["delete", "pod", "since"]).unwrap();
        apply(&cluster, &pod("since"));
    }
}
