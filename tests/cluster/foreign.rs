//! Foreign changes of our objects are undone at once; objects of others are left alone.

use controlplane::AuditEvent;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually, until, yaml};

/// Without any look that the time alone begins: only the news of a change can lead to its repair.
const NO_RESYNC: &str = "resync: 24h";

/// Does something to an object, waits until rhumb has written to the object after it, by the audit
/// log, and prints how long that took. `cargo bench` holds that time to its promise.
#[track_caller]
fn assert_repaired_after(site: &TestNamespace<'_>, resource: &str, name: &str, deed: impl FnOnce()) {
    let from = site.cluster.audit().unwrap().len();
    deed();
    let of_object = |event: &AuditEvent| {
        event.is_write() && event.code < 300 && event.resource == resource && event.name == name
    };
    let took = eventually(&format!("{resource} {name} is repaired"), DEFAULT_TIMEOUT, || {
        let events: Vec<_> = site.cluster.audit().unwrap().into_iter().skip(from).filter(of_object).collect();
        let ours = events.iter().find(|event| event.user == site.user).ok_or("rhumb wrote nothing")?;
        let theirs = events.iter().find(|event| event.user == "admin").ok_or("nobody wrote")?;
        Ok::<_, &str>(ours.reached.duration_since(theirs.reached))
    });
    eprintln!("{resource} {name} was repaired after {took:#}");
}

const LABELLED: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\n  labels: {team: blue}\n  annotations: {note: \
                        keep}\ndata: {a: \"1\"}\n";

fn started(site: &TestNamespace<'_>, repo: &Repo, settings: &str, last: (&str, &str)) -> Daemon {
    let daemon = site.configured(&site.configuration(repo.path(), settings));
    site.await_object(last.0, last.1);
    daemon
}

#[test]
fn foreign_writes_to_what_is_ours_are_repaired_at_once_by_one_write_each() {
    let site = TestNamespace::new("foreign-repair");
    let names = ["field", "key", "part-of", "label", "gone", "note", "release", "all", "taken"];
    let mut files: Vec<(String, String)> =
        names.iter().map(|name| (format!("{name}.yaml"), LABELLED.replace("NAME", name))).collect();
    files.push(("secret.yaml".into(), yaml::secret("key", "token", "right")));
    files.push(("web.yaml".into(), yaml::service("web", "web")));
    let repo = Repo::new(&files);
    let _daemon = started(&site, &repo, NO_RESYNC, ("Service", "web"));
    for name in names {
        site.await_object("ConfigMap", name);
    }
    site.await_object("Secret", "key");
    let window = site.window();

    let map = |name: &str, patch: Value| {
        let path = site.at("ConfigMap", name);
        assert_repaired_after(&site, "configmaps", name, || {
            site.api.merge(&path, "kubectl-edit", &patch);
        });
    };
    let strip = |what: &str, key: &str| json!({"metadata": {what: {key: null}}});
    map("field", json!({"data": {"a": "2"}}));
    map("key", json!({"data": {"a": null}}));
    map("part-of", strip("labels", "applyset.kubernetes.io/part-of"));
    map("label", strip("labels", "team"));
    map("note", strip("annotations", "note"));
    map("release", strip("annotations", "rhumb.dev/release"));
    map("all", json!({"metadata": {"labels": null, "annotations": null}}));
    assert_repaired_after(&site, "configmaps", "gone", || site.api.delete(&site.at("ConfigMap", "gone")));
    assert_repaired_after(&site, "configmaps", "taken", || {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "2"}});
        site.api.apply(&site.at("ConfigMap", "taken"), "them", &object);
    });
    assert_repaired_after(&site, "secrets", "key", || {
        site.api.merge(&site.at("Secret", "key"), "them", &json!({"data": {"token": "eA=="}}));
    });
    assert_repaired_after(&site, "services", "web", || {
        site.api.merge(&site.at("Service", "web"), "them", &json!({"spec": {"selector": {"app": "x"}}}));
    });

    for name in names {
        let shown = site.get("ConfigMap", name).unwrap();
        assert_eq!(shown["data"], json!({"a": "1"}), "{name}");
        let text = |pointer: &str| shown.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        assert_eq!(text("/metadata/labels/team").as_deref(), Some("blue"), "{name}");
        assert_eq!(text("/metadata/annotations/note").as_deref(), Some("keep"), "{name}");
        assert!(text("/metadata/labels/applyset.kubernetes.io~1part-of").is_some(), "{name}");
        assert!(text("/metadata/annotations/rhumb.dev~1release").is_some(), "{name}");
    }
    assert_eq!(site.value("Secret", "key", "/data/token"), "cmlnaHQ=");
    assert_eq!(site.value("Service", "web", "/spec/selector/app"), "web");
    window.assert_no_deletes();
    for name in names {
        assert_eq!(window.to("configmaps", name).len(), 1, "one write is enough for {name}");
    }
}

#[test]
fn what_others_own_on_our_objects_is_left_alone() {
    let site = TestNamespace::new("foreign-fields");
    let no_count =
        yaml::workload("Deployment", "free", 1, "app:1", "{ours: too}").replace("  replicas: 1\n", "");
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: scaled}\nspec:\n  minReplicas: 1\n  \
                  maxReplicas: 9\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}\n";
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("free.yaml", no_count),
        ("scaled.yaml", yaml::deployment("scaled", 2, "app:1")),
        ("scaler.yaml", scaler.to_owned()),
    ]);
    let mut daemon = started(&site, &repo, "resync: 1s", ("HorizontalPodAutoscaler", "scaled"));
    site.await_rollout("free");
    site.await_rollout("scaled");
    site.await_object("ConfigMap", "env");
    let window = site.window();

    let theirs = json!({"metadata": {"annotations": {"their/note": "x"}, "labels": {"their": "label"}}});
    site.api.merge(&site.at("ConfigMap", "env"), "them", &theirs);
    site.api.merge(&site.at("ConfigMap", "env"), "them", &json!({"data": {"b": "2"}}));
    for name in ["free", "scaled"] {
        let scale = format!("{}/scale", site.at("Deployment", name));
        site.api.merge(&scale, "autoscaler", &json!({"spec": {"replicas": 5}}));
    }
    let injected = json!({"spec": {"template": {"metadata": {"annotations": {"injected": "yes"}}}}});
    site.api.merge(&site.at("Deployment", "free"), "injector", &injected);
    site.await_rollout("free");
    site.await_rollout("scaled");
    // A further commit sends the objects again, and still takes nothing of it away.
    repo.write("env.yaml", &yaml::config_map("env", "a", "3"));
    repo.write("scaled.yaml", &yaml::deployment("scaled", 2, "app:2"));
    repo.commit("Change");
    site.await_data("env", "a", "3");
    until("the new image is there", || {
        site.value("Deployment", "scaled", "/spec/template/spec/containers/0/image") == "app:2"
    });
    site.await_rollout("scaled");

    assert_eq!(site.data("env", "b"), "2");
    assert_eq!(site.value("ConfigMap", "env", "/metadata/annotations/their~1note"), "x");
    assert_eq!(site.value("ConfigMap", "env", "/metadata/labels/their"), "label");
    assert_eq!(site.value("Deployment", "free", "/spec/replicas"), 5);
    assert_eq!(site.value("Deployment", "scaled", "/spec/replicas"), 5);
    assert_eq!(site.value("Deployment", "free", "/spec/template/metadata/annotations/injected"), "yes");
    assert!(daemon.is_running());
    // One that meets a newer status is refused, and sent again.
    let mut written = window.writes();
    written.retain(|event| event.code != 409);
    assert_eq!(written.len(), 2, "one write for each object that the commit changed: {written:#?}");
}

fn image(site: &TestNamespace<'_>, name: &str) -> Value {
    site.value("Deployment", name, "/spec/template/spec/containers/0/image")
}

fn set_image(site: &TestNamespace<'_>, name: &str, image: &str) {
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}});
    let path = format!("{}?fieldManager=them", site.at("Deployment", name));
    site.api.call("PATCH", &path, "application/strategic-merge-patch+json", &change).unwrap();
}

fn restart(site: &TestNamespace<'_>, name: &str) {
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}});
    site.api.merge(&site.at("Deployment", name), "them", &patch);
}

#[test]
fn a_repair_that_restarts_pods_waits_for_a_slot_when_none_is_free() {
    let site = TestNamespace::new("foreign-slot");
    let slow = yaml::workload("Deployment", "slow", 1, "app:1", "{controlplane/ready-delay: 4s}");
    let repo = Repo::new(&[("slow.yaml", slow), ("web.yaml", yaml::deployment("web", 2, "app:1"))]);
    let settings = "budget: {maxWorkloads: 1}";
    let mut daemon = started(&site, &repo, settings, ("Deployment", "slow"));
    site.await_rollout("slow");
    site.await_rollout("web");
    daemon.kill();
    // While nobody looks: one is changed and has rolled, another one rolls still.
    set_image(&site, "web", "theirs:1");
    site.await_rollout("web");
    restart(&site, "slow");
    let window = site.window();
    let _daemon = site.configured(&site.configuration(repo.path(), settings));
    until("the image is ours again", || image(&site, "web") == "app:1");
    // One that meets a newer status is refused, and sent again.
    let mut repair = window.to("deployments", "web");
    repair.retain(|event| event.code != 409);
    assert_eq!(repair.len(), 1, "{repair:#?}");
    // The rollout of the other one was over: its newest pod had been available before the repair
    // came in.
    let shown = site.get("Deployment", "slow").unwrap();
    let conditions = shown["status"]["conditions"].as_array().unwrap();
    let done = conditions.iter().find(|condition| condition["type"] == "Progressing").unwrap();
    assert_eq!(done["reason"], "NewReplicaSetAvailable");
    let done: Timestamp = done["lastUpdateTime"].as_str().unwrap().parse().unwrap();
    assert!(repair[0].timestamp >= done, "repaired at {}, the slot was free at {done}", repair[0].timestamp);
}

#[test]
fn a_workload_that_rolls_already_is_repaired_without_a_second_slot() {
    let site = TestNamespace::new("foreign-rolling");
    let stuck = |image, annotations| yaml::workload("Deployment", "stuck", 1, image, annotations);
    let web = yaml::workload("Deployment", "web", 2, "app:1", "{controlplane/ready-delay: 3s}");
    let repo = Repo::new(&[("stuck.yaml", stuck("app:1", "{}")), ("web.yaml", web)]);
    let _daemon =
        started(&site, &repo, &format!("{NO_RESYNC}\nbudget: {{maxWorkloads: 1}}"), ("Deployment", "stuck"));
    site.await_rollout("stuck");
    site.await_rollout("web");
    repo.change("stuck.yaml", &stuck("app:2", "{controlplane/never-ready: \"true\"}"));
    until("the only slot is taken", || image(&site, "stuck") == "app:2");
    assert_repaired_after(&site, "deployments", "web", || set_image(&site, "web", "theirs:1"));
    assert_eq!(image(&site, "web"), "app:1");
    assert_eq!(image(&site, "stuck"), "app:2");
}
