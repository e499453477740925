//! The files of `examples/in-cluster/`: a real API server takes them, pods of the restricted kind
//! come up, and the rights are enough for the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Api, DEFAULT_TIMEOUT, Daemon, DedicatedCluster, Repo, at, eventually, run, yaml};

const SYSTEM: &str = "rhumb-system";
const ACCOUNT: &str = "system:serviceaccount:rhumb-system:rhumb";

fn example(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/in-cluster").join(name)).unwrap()
}

/// Applies the namespace first, then all, as the page on installation says.
fn apply_examples(cluster: &DedicatedCluster) {
    for name in ["namespace.yaml", "crd.yaml", "deployment.yaml", "network.yaml", "rbac.yaml"] {
        let arguments = ["apply", "--server-side", "--validate=strict", "-f", "-"];
        cluster.kubectl_in(&arguments, &example(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    cluster
        .kubectl(&["wait", "--for=condition=Established", "crd/sources.rhumb.dev", "--timeout=3m"])
        .unwrap();
}

/// Grants what the example leaves out, for it amounts to more, and lets the account write in a
/// namespace: as its comments say.
fn grant_the_rest(cluster: &DedicatedCluster, namespace: &str) {
    let given = example("rbac.yaml").replace("  # - apiGroups", "  - apiGroups");
    let given = given.replace("  #   resources", "    resources").replace("  #   verbs", "    verbs");
    cluster.kubectl_in(&["apply", "--server-side", "--validate=strict", "-f", "-"], &given).unwrap();
    let bind = ["create", "rolebinding", "rhumb-managed", "--clusterrole", "rhumb-managed"];
    let whom = ["--serviceaccount", "rhumb-system:rhumb"];
    cluster.kubectl(&[&["--namespace", namespace], &bind[..], &whom[..]].concat()).unwrap();
}

/// Writes a kubeconfig with the account's token.
fn kubeconfig(cluster: &DedicatedCluster, dir: &TempDir) -> PathBuf {
    let token = cluster.kubectl(&["-n", SYSTEM, "create", "token", "rhumb"]).unwrap();
    let text = fs::read_to_string(cluster.kubeconfig()).unwrap();
    let mut config: Value = serde_yaml::from_str(&text).unwrap();
    for user in config["users"].as_array_mut().unwrap() {
        user["user"] = json!({ "token": token.trim() });
    }
    let file = dir.path().join("kubeconfig");
    fs::write(&file, config.to_string()).unwrap();
    file
}

/// Returns the configuration of the example, as far as it can be used outside of a pod.
fn configuration(api: &Api) -> String {
    let text = api.value(&at("ConfigMap", SYSTEM, "rhumb-config"), "/data/rhumb.yaml");
    let text = text.as_str().unwrap();
    let (settings, _served) = text.split_once("serve:").unwrap();
    let settings = settings.lines().filter(|line| !line.starts_with("stateDirectory"));
    let settings = settings.collect::<Vec<_>>().join("\n") + "\n";
    assert!(settings.contains("customSources: remote") && settings.contains("leases: auto"), "{settings}");
    let settings = settings.replace("customSources: remote", "customSources: any");
    settings.replace("leases: auto", "leases: always") + "budget: {soak: 0s}\n"
}

/// Returns the path of the socket in the pod. It is in a folder that the program may write.
fn socket_path(api: &Api) -> PathBuf {
    let pod = api.value(&at("Deployment", SYSTEM, "rhumb"), "/spec/template/spec");
    let named = |list: &Value, key: &str, value: &Value| {
        let found = list.as_array().unwrap().iter().find(|entry| entry[key] == *value).cloned();
        found.unwrap_or_else(|| panic!("no {key} {value} in {list}"))
    };
    let container = &pod["containers"][0];
    let socket = named(&container["env"], "name", &json!("RHUMB_SOCKET"))["value"].clone();
    let socket = PathBuf::from(socket.as_str().unwrap());
    let mount = named(&container["volumeMounts"], "mountPath", &json!(socket.parent().unwrap()));
    assert_ne!(mount["readOnly"], json!(true));
    assert!(named(&pod["volumes"], "name", &mount["name"])["emptyDir"].is_object(), "{pod}");
    socket
}

fn annotated(text: &str, annotation: &str) -> String {
    text.replacen("metadata:\n", &format!("metadata:\n  annotations: {{{annotation}}}\n"), 1)
}

/// Returns an object of each kind that the rights name.
fn files(image: &str, content: &str) -> Vec<(String, String)> {
    let object = |api: &str, kind: &str, rest: &str| {
        format!("apiVersion: {api}\nkind: {kind}\nmetadata:\n  name: all\n{rest}\n")
    };
    let web = yaml::deployment("web", 2, image)
        .replace("        image:", "        envFrom:\n        - configMapRef: {name: env}\n        - secretRef: {name: key}\n        image:");
    let job = "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}";
    let cron = "spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}";
    let scaler =
        "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}";
    let all = [
        annotated(&web, "rhumb.dev/restart-on-change: \"true\", rhumb.dev/steps: \"1\""),
        yaml::config_map("env", "a", content),
        yaml::secret("key", "a", content),
        yaml::deployment("scaled", 1, image),
        yaml::workload("StatefulSet", "db", 2, image, "{}"),
        annotated(&yaml::workload("DaemonSet", "agent", 1, image, "{}"), "rhumb.dev/steps: \"1\""),
        yaml::service("db", "db"),
        object("v1", "Namespace", ""),
        object("v1", "ServiceAccount", ""),
        object(
            "v1",
            "PersistentVolumeClaim",
            "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
        ),
        object("batch/v1", "Job", job),
        object("batch/v1", "CronJob", cron),
        object("autoscaling/v2", "HorizontalPodAutoscaler", scaler),
        object(
            "policy/v1",
            "PodDisruptionBudget",
            "spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}",
        ),
        object(
            "networking.k8s.io/v1",
            "Ingress",
            "spec: {defaultBackend: {service: {name: db, port: {number: 80}}}}",
        ),
        object("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {}}"),
    ];
    all.into_iter().enumerate().map(|(number, text)| (format!("{number}.yaml"), text)).collect()
}

#[track_caller]
fn await_ready(api: &Api, revision: &str) {
    eventually(&format!("the source is ready at {revision}"), DEFAULT_TIMEOUT * 2, || {
        let status = api.value(&at("Source", SYSTEM, "all"), "/status");
        let ready = status["conditions"].as_array().into_iter().flatten();
        let ready =
            ready.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        if ready && status["revision"] == json!(revision) { Ok(()) } else { Err(status.to_string()) }
    });
}

/// Grants rights and asks. By default it writes nothing, and its rights amount to no more than a
/// look. The rest is granted here.
fn grant_and_ask(cluster: &DedicatedCluster) {
    let may = |right: &str| {
        let asked: Vec<&str> =
            ["auth", "can-i", "--as", ACCOUNT].into_iter().chain(right.split(' ')).collect();
        cluster.kubectl(&asked).is_ok()
    };
    let wide = ["create configmaps -n shop", "list secrets -A", "patch namespaces -A"];
    assert_eq!(wide.map(may), [false; 3]);
    grant_the_rest(cluster, "shop");
    eventually("what was granted counts", DEFAULT_TIMEOUT, || match wide.map(may) {
        [true, true, true] => Ok(()),
        granted => Err(format!("{granted:?}")),
    });
    assert!(!may("create configmaps -n kube-system") && !may("get secrets -n kube-system"));
}

/// Fails where a right was never used, or something was refused.
fn assert_rights_are_used_and_enough(cluster: &DedicatedCluster) {
    let events = cluster.audit().unwrap();
    let own: Vec<_> = events.iter().filter(|event| event.user == ACCOUNT).collect();
    let did =
        |resource: &str, verb: &str| own.iter().any(|event| event.resource == resource && event.verb == verb);
    for (resource, verb) in [
        ("leases", "patch"),
        ("sources", "list"),
        ("sources", "patch"),
        ("networkpolicies", "delete"),
        ("pods", "watch"),
        ("nodes", "watch"),
        ("secrets", "create"),
        ("events", "create"),
    ] {
        assert!(did(resource, verb), "{verb} {resource} was never tried");
    }
    let denied: Vec<String> = own
        .iter()
        .filter(|event| event.code == 403)
        .map(|event| {
            format!("{} {} {}/{}: {}", event.verb, event.resource, event.namespace, event.name, event.message)
        })
        .collect();
    assert_eq!(denied, [""; 0]);
}

#[test]
fn the_examples_come_up_and_their_rights_are_enough() {
    let cluster = DedicatedCluster::complete();
    apply_examples(&cluster);
    let (api, dir) = (Api::new(cluster.kubeconfig()), TempDir::new().unwrap());
    // The namespace lets in no pod that is not restricted; both replicas pass.
    cluster.kubectl(&["-n", SYSTEM, "rollout", "status", "deployment/rhumb", "--timeout=3m"]).unwrap();
    let greedy =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: greedy}\nspec: {containers: [{name: a, image: a}]}\n";
    let refused = cluster.kubectl_in(&["-n", SYSTEM, "create", "-f", "-"], greedy).unwrap_err().to_string();
    assert!(refused.contains("restricted"), "{refused}");

    let repo = Repo::new(&files("app:1", "one"));
    let file = dir.path().join("rhumb.yaml");
    fs::write(&file, configuration(&api)).unwrap();
    let account = kubeconfig(&cluster, &dir);
    let socket = dir.path().join(socket_path(&api).file_name().unwrap());
    let bare = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.env("KUBECONFIG", &account).env("STATE_DIRECTORY", dir.path().join("state"));
        command.env("RHUMB_SOCKET", &socket).env_remove("RUST_LOG").env("NO_COLOR", "1").arg(name);
        command
    };
    let command = |name: &str| {
        let mut command = bare(name);
        command.arg("--config").arg(&file);
        command
    };
    let checked = run(command("check")).ends(0);
    checked.says(&["all", "rights that these sources need are granted"]);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    api.create("/api/v1/namespaces", "setup", &namespace);
    grant_and_ask(&cluster);
    let mut daemon = Daemon::start(command("run"));
    let spec = json!({
        "git": {"url": repo.path()}, "namespace": "shop", "blastRadius": "100%", "deletionPolicy": "Delete",
    });
    let source = json!({"apiVersion": "rhumb.dev/v1alpha1", "kind": "Source", "metadata": {"name": "all"}, "spec": spec});
    api.create(&at("Source", SYSTEM, ""), "people", &source);
    await_ready(&api, &repo.head());
    // As by `kubectl exec` in the pod.
    let events = run(bare("events")).ends(0);
    events.says(&["RevisionRead", "was read"]);
    events.says(&["Created", "ConfigMap shop/env"]);
    // Sources in the cluster are checked too.
    let wrong = json!({"apiVersion": "rhumb.dev/v1alpha1", "kind": "Source", "metadata": {"name": "wrong"},
        "spec": {"git": {"url": "https://git.example.org/a.git"}, "blastRadius": "lots"}});
    let checked = run(command("check")).ends(0);
    checked.says(&["source all is defined in the cluster"]);
    checked.says(&["source all: ", " objects of "]);
    api.create(&at("Source", SYSTEM, ""), "people", &wrong);
    run(command("check")).ends(1).says(&["missing", "source wrong", "cannot be followed: "]);
    api.delete(&at("Source", SYSTEM, "wrong"));
    // Everything changes that can, and something goes.
    let changed = files("app:2", "two");
    for (name, text) in &changed {
        repo.write(name, text);
    }
    repo.remove("15.yaml");
    repo.commit("Change all");
    await_ready(&api, &repo.head());
    assert_eq!(daemon.stop().code(), Some(0));

    assert_rights_are_used_and_enough(&cluster);
}
