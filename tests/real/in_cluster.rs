//! `examples/in-cluster/` as it stands: two replicas as pods, which read from a git server.
//!
//! The network of the nodes enforces no `NetworkPolicy`. The git server is the test itself, at an
//! address that pods reach.

use std::path::Path;

use controlplane::Cluster;
use serde_json::Value;

use crate::image;
use crate::site::{SLOW_TIMEOUT, await_rollout, cluster, is_ready};
use crate::support::{Api, Remote, Repo, at, eventually, yaml};
use crate::workload::Workload;

const SYSTEM: &str = "rhumb-system";
const SELECTOR: &str = "app.kubernetes.io/name";

/// Does what the documentation says, with a source of its own.
fn install(cluster: &Cluster, url: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/in-cluster");
    let namespace = folder.join("namespace.yaml");
    let kubectl = |arguments: &[&str]| cluster.kubectl(arguments).unwrap();
    kubectl(&["apply", "-f", namespace.to_str().unwrap(), "-f", folder.to_str().unwrap()]);
    kubectl(&["wait", "--for=condition=Established", "crd/sources.rhumb.dev", "--timeout=300s"]);
    kubectl(&["create", "namespace", "shop"]);
    let bind = ["create", "rolebinding", "rhumb-managed", "--clusterrole", "rhumb-managed"];
    let whom = ["--serviceaccount", "rhumb-system:rhumb"];
    kubectl(&[&["--namespace", "shop"], &bind[..], &whom[..]].concat());
    let source = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: shop}}\nspec:\n  namespace: shop\n  \
         git: {{url: '{url}', ref: main, interval: 2s}}\n"
    );
    cluster.kubectl_in(&["-n", SYSTEM, "apply", "-f", "-"], &source).unwrap();
}

/// Waits until two replicas are Ready, and returns their names.
#[track_caller]
fn await_replicas(api: &Api) -> Vec<String> {
    eventually("two replicas are Ready", SLOW_TIMEOUT, || {
        let pods = api.list(&at("Pod", SYSTEM, ""));
        let is_replica = |pod: &&Value| pod["metadata"]["labels"][SELECTOR] == "rhumb" && is_ready(pod);
        let ready: Vec<&Value> = pods.iter().filter(is_replica).collect();
        let states = || pods.iter().map(|pod| pod["status"]["containerStatuses"].to_string());
        if ready.len() != 2 {
            return Err(states().collect::<Vec<_>>().join("; "));
        }
        Ok(ready.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect())
    })
}

/// Waits until one of these pods serves the source, and returns it.
#[track_caller]
fn await_holder(api: &Api, pods: &[String]) -> String {
    eventually(&format!("one of {pods:?} serves the source"), SLOW_TIMEOUT, || {
        let holder = api.value(&at("Lease", SYSTEM, "rhumb-shop"), "/spec/holderIdentity");
        let holder = holder.as_str().unwrap_or_default().to_owned();
        pods.iter().find(|pod| holder.contains(pod.as_str())).cloned().ok_or(holder)
    })
}

#[track_caller]
fn await_value(api: &Api, name: &str, expected: &str) {
    eventually(&format!("the ConfigMap {name} has {expected}"), SLOW_TIMEOUT, || {
        let shown = api.value(&at("ConfigMap", "shop", name), "/data/key");
        if shown == expected { Ok(()) } else { Err(shown) }
    });
}

#[test]
fn a_replica_renders_an_overlay_and_takes_over_from_one_that_is_deleted() {
    let Some(cluster) = cluster() else { return };
    let web = Workload::new("web", "app:1");
    let file = |path: &str, text: String| (path.to_owned(), text);
    let repo = Repo::new(&[
        web.file(),
        file("env.yaml", yaml::config_map("env", "key", "one")),
        file("app/kustomization.yaml", "namePrefix: rendered-\nresources: [map.yaml]\n".to_owned()),
        file("app/map.yaml", yaml::config_map("map", "key", "one")),
    ]);
    let remote = Remote::of(&repo);
    image::add(cluster, &remote.authority());
    let server = cluster.expose_to_pods(remote.port()).unwrap();
    install(cluster, &format!("https://{server}/repo.git"));
    let api = Api::new(cluster.kubeconfig());
    let replicas = await_replicas(&api);
    let wait = ["wait", "--for=condition=Ready", "source/shop", "--timeout=300s"];
    cluster.kubectl(&[&["-n", SYSTEM], &wait[..]].concat()).unwrap();
    await_value(&api, "env", "one");
    // Its sandbox works within the pod's own restrictions.
    await_value(&api, "rendered-map", "one");
    let first = await_holder(&api, &replicas);
    await_rollout(&api, "shop", &web);
    let head = repo.head();
    eventually("the status in the pod is of the source at its revision", SLOW_TIMEOUT, || {
        let status = cluster.kubectl(&["-n", SYSTEM, "exec", &first, "--", "rhumb", "status"]);
        let status = status.map_err(|error| error.to_string())?;
        let is_whole =
            |line: &str| ["shop", &head[..12], "3", "healthy"].iter().all(|text| line.contains(text));
        if status.lines().any(is_whole) { Ok(()) } else { Err(status) }
    });
    let events = cluster.kubectl(&["-n", SYSTEM, "exec", &first, "--", "rhumb", "events"]).unwrap();
    let is_told = |line: &str| line.contains("Created") && line.contains("ConfigMap shop/env");
    assert!(events.lines().any(is_told), "{events}");
    cluster.kubectl(&["-n", SYSTEM, "delete", "pod", &first, "--wait=false"]).unwrap();
    let others: Vec<String> = replicas.iter().filter(|name| **name != first).cloned().collect();
    await_holder(&api, &others);
    repo.write("app/map.yaml", &yaml::config_map("map", "key", "two"));
    repo.change("env.yaml", &yaml::config_map("env", "key", "two"));
    repo.git(&["push", "--quiet", "origin", "main"]);
    await_value(&api, "env", "two");
    await_value(&api, "rendered-map", "two");
    await_replicas(&api);
    let events = cluster.audit().unwrap();
    let own = || events.iter().filter(|event| event.user == "system:serviceaccount:rhumb-system:rhumb");
    let denied: Vec<_> = own().filter(|event| event.code == 403).collect();
    assert!(own().any(|event| event.resource == "configmaps" && event.is_write()), "its account is used");
    assert!(denied.is_empty(), "{denied:#?}");
}
