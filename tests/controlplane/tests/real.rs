//! A real node runs real pods, and what it pulls and serves is real.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use std::io::{Read as _, Write as _};

use common::{DEFAULT_TIMEOUT, apply, eventually, field};
use controlplane::Cluster;

fn pod(name: &str, image: &str, arguments: &str) -> String {
    placed_pod(name, "controlplane/node: real", image, arguments)
}

/// Returns a pod for the nodes that have a label.
fn placed_pod(name: &str, label: &str, image: &str, arguments: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{terminationGracePeriodSeconds: 1, \
         nodeSelector: {{{label}}}, containers: [{{name: main, image: 'test.local/{image}', args: [{arguments}]}}]}}}}"
    )
}

/// Returns the reason for which a container waits or has ended.
fn reason(cluster: &Cluster, name: &str) -> String {
    let state = |state: &str| format!("{{.status.containerStatuses[0].{state}.reason}}");
    field(cluster, &format!("pod/{name}"), &(state("state.waiting") + &state("lastState.terminated")))
}

#[test]
fn real_pods_run_beside_played_ones() {
    if let Some(reason) = controlplane::find_real_node_obstacle() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no real node: {reason}");
        return;
    }
    let cluster = Cluster::builder().nodes(1).real_nodes(1).start().unwrap();
    apply(&cluster, &placed_pod("played", "kubernetes.io/hostname: node-1", "app:1", "serve"));
    for (name, image, arguments) in [
        ("serving", "app:7", "serve"),
        ("missing", "missing:1", "serve"),
        ("denied", "denied:1", "serve"),
        ("failing", "failing:1", "serve"),
        ("ending", "app:1", "exit, '3'"),
    ] {
        apply(&cluster, &pod(name, image, arguments));
    }
    eventually(DEFAULT_TIMEOUT, "Running".to_owned(), || field(&cluster, "pod/serving", "{.status.phase}"));
    eventually(DEFAULT_TIMEOUT, "Running".to_owned(), || field(&cluster, "pod/played", "{.status.phase}"));
    let node = |name: &str| field(&cluster, &format!("pod/{name}"), "{.spec.nodeName}");
    assert_eq!((node("serving"), node("played")), ("real-1".to_owned(), "node-1".to_owned()));
    let ip = field(&cluster, "pod/serving", "{.status.podIP}");
    eventually(DEFAULT_TIMEOUT, true, || cluster.connect_inside(&format!("{ip}:8080")).is_ok());
    let mut stream = cluster.connect_inside(&format!("{ip}:8080")).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("version=7 config= pod=serving"), "{answer}");
    let inside =
        cluster.kubectl(&["exec", "serving", "--", "/app", "get", "http://127.0.0.1:8080/"]).unwrap();
    assert!(inside.contains("version=7"), "{inside}");
    for name in ["missing", "denied", "failing"] {
        // The kubelet says the failure and the wait for the next try by turns.
        eventually(DEFAULT_TIMEOUT, true, || {
            ["ErrImagePull", "ImagePullBackOff"].contains(&reason(&cluster, name).as_str())
        });
    }
    eventually(DEFAULT_TIMEOUT, "CrashLoopBackOffError".to_owned(), || reason(&cluster, "ending"));
}
