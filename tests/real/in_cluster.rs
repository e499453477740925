//! `examples/in-cluster/` as it stands: two replicas as pods, which read from a git server.
//!
//! The network of the nodes enforces no `NetworkPolicy`. The git server is the test itself, at an
//! address that pods reach. Some files are encrypted, and the pods have the identity.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controlplane::Cluster;
use serde_json::Value;

use crate::image;
use crate::site::{SLOW_TIMEOUT, await_rollout, cluster, is_ready};
use crate::support::{AgeIdentity, Api, Remote, Repo, at, eventually, yaml};
use crate::workload::Workload;

const SYSTEM: &str = "rhumb-system";
const SELECTOR: &str = "app.kubernetes.io/name";
/// The value of the encrypted files.
const CANARY: &str = "canary-52c8d1";

/// Does what the documentation says, with a source of its own.
fn install(cluster: &Cluster, url: &str, identity: &AgeIdentity) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/in-cluster");
    let namespace = folder.join("namespace.yaml");
    let kubectl = |arguments: &[&str]| cluster.kubectl(arguments).unwrap();
    kubectl(&["apply", "-f", namespace.to_str().unwrap()]);
    // The key is named as the file: `sops-age`.
    let key = format!("--from-file={}", identity.file().display());
    kubectl(&["-n", SYSTEM, "create", "secret", "generic", "rhumb-git", &key]);
    // The example lists it among the rights that are left out.
    let watched = "rhumb-watched-secrets";
    kubectl(&["create", "clusterrole", watched, "--verb=list,watch", "--resource=secrets"]);
    let whom = "--serviceaccount=rhumb-system:rhumb";
    kubectl(&["create", "clusterrolebinding", watched, "--clusterrole", watched, whom]);
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

/// Waits until a Secret has the value of the encrypted files in the clear.
#[track_caller]
fn await_opened(api: &Api, name: &str) {
    eventually(&format!("the Secret {name} is opened"), SLOW_TIMEOUT, || {
        let shown = api.value(&at("Secret", "shop", name), "/data/password");
        if shown == STANDARD.encode(CANARY) { Ok(()) } else { Err(shown) }
    });
}

/// Fails where the log of a pod has the value of the encrypted files. Each of the Secrets that are
/// made of them must be named in one.
#[track_caller]
fn assert_logs_hide_the_canary(cluster: &Cluster, pods: &[String]) {
    let logs = |pod: &String| cluster.kubectl(&["-n", SYSTEM, "logs", pod]).unwrap();
    let all: String = pods.iter().map(logs).collect();
    for name in ["login", "rendered-db"] {
        assert!(all.contains(&format!("shop/{name}")), "{name}: {all}");
    }
    for canary in [CANARY.to_owned(), STANDARD.encode(CANARY)] {
        assert!(!all.contains(&canary), "{all}");
    }
}

#[test]
fn replicas_render_and_open_encrypted_files_and_one_takes_over_from_another() {
    let Some(cluster) = cluster() else { return };
    let web = Workload::new("web", "app:1");
    let identity = AgeIdentity::new();
    let file = |path: &str, text: String| (path.to_owned(), text);
    let kustomization = "namePrefix: rendered-\nresources: [map.yaml]\n\
                         secretGenerator: [{name: db, envs: [db.env], options: {disableNameSuffixHash: true}}]\n";
    let repo = Repo::new(&[
        web.file(),
        file("env.yaml", yaml::config_map("env", "key", "one")),
        file("login.yaml", identity.encrypt(&yaml::secret("login", "password", CANARY))),
        file("app/kustomization.yaml", kustomization.to_owned()),
        file("app/map.yaml", yaml::config_map("map", "key", "one")),
        file("app/db.env", identity.encrypt_file("db.env", &format!("password={CANARY}\n"), &[])),
    ]);
    let remote = Remote::of(&repo);
    image::add(cluster, &remote.authority());
    let server = cluster.expose_to_pods(remote.port()).unwrap();
    install(cluster, &format!("https://{server}/repo.git"), &identity);
    let api = Api::new(cluster.kubeconfig());
    let replicas = await_replicas(&api);
    let wait = ["wait", "--for=condition=Ready", "source/shop", "--timeout=300s"];
    cluster.kubectl(&[&["-n", SYSTEM], &wait[..]].concat()).unwrap();
    await_value(&api, "env", "one");
    // Its sandbox works within the pod's own restrictions.
    await_value(&api, "rendered-map", "one");
    // The identity is a file of a mounted Secret, and the generator reads its file out of memory.
    await_opened(&api, "login");
    await_opened(&api, "rendered-db");
    let first = await_holder(&api, &replicas);
    await_rollout(&api, "shop", &web);
    let head = repo.head();
    eventually("the status in the pod is of the source at its revision", SLOW_TIMEOUT, || {
        let status = cluster.kubectl(&["-n", SYSTEM, "exec", &first, "--", "rhumb", "status"]);
        let status = status.map_err(|error| error.to_string())?;
        let is_whole =
            |line: &str| ["shop", &head[..12], "5", "healthy"].iter().all(|text| line.contains(text));
        if status.lines().any(is_whole) { Ok(()) } else { Err(status) }
    });
    let events = cluster.kubectl(&["-n", SYSTEM, "exec", &first, "--", "rhumb", "events"]).unwrap();
    let is_told = |line: &str| line.contains("Created") && line.contains("ConfigMap shop/env");
    assert!(events.lines().any(is_told) && !events.contains(CANARY), "{events}");
    assert_logs_hide_the_canary(cluster, &replicas);
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
