//! Parts are killed, paused and started again; the audit log keeps its promises meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use common::{DEFAULT_TIMEOUT, apply, config_map, eventually, field};
use controlplane::{Cluster, Error, Part, Stage};

/// Makes a pod and waits until it runs: for that, every part has to do its work.
fn a_pod_runs(cluster: &Cluster, name: &str) {
    let pod = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: a, image: 'a:1'}}]}}}}"
    );
    apply(cluster, &pod);
    let took = eventually(DEFAULT_TIMEOUT, "Running".to_owned(), || {
        field(cluster, &format!("pod/{name}"), "{.status.phase}")
    });
    // A part that backs off comes back up to a minute later.
    assert!(took < Duration::from_secs(40), "{name}: {took:?}");
}

#[test]
fn parts_come_back() {
    let cluster = Cluster::builder().nodes(2).audit().start().unwrap();
    apply(&cluster, &config_map("kept"));

    cluster.kill_apiserver().unwrap();
    assert!(!cluster.is_running(Part::Apiserver));
    assert!(cluster.kubectl(&["get", "configmaps", "--request-timeout=2s"]).is_err());
    assert!(cluster.audit().unwrap().iter().any(|event| event.name == "kept" && event.code == 201));
    assert!(matches!(cluster.pause(Part::Apiserver), Err(Error::NotRunning { .. })));
    cluster.start_apiserver().unwrap();
    assert!(matches!(cluster.start_apiserver(), Err(Error::Running { .. })));
    assert_eq!(field(&cluster, "configmap/kept", "{.data.a}"), "b");
    assert_eq!(cluster.audit().unwrap().iter().filter(|event| event.name == "kept").count(), 2);

    a_pod_runs(&cluster, "after-the-apiserver");

    // Nothing answers while it is paused, and the same request goes through after it.
    cluster.pause(Part::Apiserver).unwrap();
    let mut waiting = cluster.kubectl_command();
    let mut waiting =
        waiting.args(["get", "configmap", "kept", "-o", "name"]).stdout(Stdio::piped()).spawn().unwrap();
    // The outage lasts for so long.
    thread::sleep(Duration::from_millis(300));
    assert!(waiting.try_wait().unwrap().is_none(), "it was answered");
    cluster.resume(Part::Apiserver).unwrap();
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "configmap/kept\n");

    // A new KWOK takes over the nodes at once.
    for part in [Part::Kwok, Part::ControllerManager, Part::Scheduler] {
        cluster.kill(part).unwrap();
        cluster.start_part(part).unwrap();
    }
    let pod =
        "{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {containers: [{name: a, image: 'a:1'}]}}";
    apply(&cluster, pod);
    let took =
        eventually(DEFAULT_TIMEOUT, "Running".to_owned(), || field(&cluster, "pod/late", "{.status.phase}"));
    // The Leases of the one before run out after 40 s.
    assert!(took < Duration::from_secs(30), "{took:?}");

    // etcd's data is kept, too.
    cluster.kill(Part::Etcd).unwrap();
    cluster.start_part(Part::Etcd).unwrap();
    assert_eq!(field(&cluster, "configmap/kept", "{.data.a}"), "b");
    a_pod_runs(&cluster, "after-etcd");
}

#[test]
fn the_audit_log_tells_everything() {
    let cluster = Cluster::builder().bare().audit_bodies().start().unwrap();
    let observer = cluster.kubeconfig_for("observer").unwrap();
    let limited = cluster.kubeconfig_limited("nobody").unwrap();
    let run = |kubeconfig: &std::path::Path, arguments: &[&str]| {
        cluster.kubectl_command().arg("--kubeconfig").arg(kubeconfig).args(arguments).output().unwrap()
    };
    run(&observer, &["create", "configmap", "mine"]);
    run(&observer, &["create", "configmap", "tried", "--dry-run=server"]);
    let refused = run(&limited, &["get", "secrets"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Forbidden"));

    let events = cluster.audit().unwrap();
    let created: Vec<_> = events
        .iter()
        .filter(|event| event.user == "observer" && event.verb == "create")
        .map(|event| (event.name.as_str(), event.resource.as_str(), event.code, event.is_write()))
        .collect();
    assert_eq!(created, [("mine", "configmaps", 201, true), ("tried", "configmaps", 201, false)]);
    let body = events.iter().find(|event| event.name == "mine").and_then(|event| event.body.clone()).unwrap();
    assert_eq!(body["metadata"]["name"], "mine");
    let refused = events.iter().find(|event| event.user == "nobody" && event.resource == "secrets").unwrap();
    assert_eq!((refused.code, refused.stage, refused.namespace.as_str()), (403, Stage::Complete, "default"));
    assert!(refused.message.contains("secrets is forbidden"), "{}", refused.message);

    // Each request is there as soon as it is answered, however many there are.
    for round in 0..5 {
        let before = cluster.audit().unwrap().len();
        thread::scope(|scope| {
            for number in 0..4 {
                let name = format!("round-{round}-{number}");
                let cluster = &cluster;
                scope.spawn(move || apply(cluster, &config_map(&name)));
            }
        });
        let after = cluster.audit().unwrap();
        let applied =
            after[before..].iter().filter(|event| event.verb == "patch" && event.code == 201).count();
        assert_eq!(applied, 4, "round {round}");
    }
}
