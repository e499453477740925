//! Faults by people and by other tools, in the cluster itself.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fault::{Fault, Obstacle};
use crate::stage::{Effect, SETTINGS, Stage};
use crate::support::at;

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    [edits(), deletions(), records(), tools()].into_iter().flatten().collect()
}

fn edit(name: &'static str, work: impl Fn(&mut Stage) + Send + Sync + 'static) -> Fault {
    Fault::new(name, "the cluster", move |stage| {
        stage.change();
        stage.pass(0, 2000);
        work(stage);
        stage.remove_old();
        stage.pass(0, 1000);
        work(stage);
        Ok(())
    })
}

fn edits() -> Vec<Fault> {
    vec![
        edit("a person edits a ConfigMap", |stage| {
            stage.edit("ConfigMap", "env", &json!({"data": {"key": "theirs"}}));
        }),
        edit("a person edits an image in a rollout", |stage| {
            // Pods of a template that the person chose may go as the person's do.
            stage.allowance.pods = 1;
            stage.allowance.workloads = 1;
            let container = json!([{"name": "main", "image": "app:theirs"}]);
            let patch = json!({"spec": {"template": {"spec": {"containers": container}}}});
            stage.edit("Deployment", "api", &patch);
        }),
        edit("a person scales a Deployment", |stage| {
            stage.allowance.pods = 4;
            let replicas = 1 + stage.random.below(5);
            stage.edit("Deployment", "web", &json!({"spec": {"replicas": replicas}}));
        }),
        edit("a person restarts a Deployment", |stage| {
            stage.allowance.pods = 1;
            stage.allowance.workloads = 1;
            let now = jiff::Timestamp::now().to_string();
            let note = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": now}}});
            stage.edit("Deployment", "web", &json!({"spec": {"template": note}}));
        }),
        edit("a person removes the labels of the source", |stage| {
            let label = "applyset.kubernetes.io/part-of";
            stage.edit("ConfigMap", "env", &json!({"metadata": {"labels": {label: null}}}));
        }),
        edit("a person spoils the seal of an object", |stage| {
            let seal = json!({"metadata": {"annotations": {"rhumb.dev/release": "forged"}}});
            stage.edit("ConfigMap", "env", &seal);
        }),
        edit("a person removes all managed fields", |stage| {
            stage.edit("ConfigMap", "env", &json!({"metadata": {"managedFields": [{}]}}));
        }),
        edit("a person edits the Secret", |stage| {
            stage.edit("Secret", "key", &json!({"stringData": {"token": "theirs"}}));
        }),
    ]
}

/// Returns a ConfigMap that belongs to a release of Helm.
fn of_helm(name: &str) -> serde_json::Value {
    let labels = json!({"app.kubernetes.io/managed-by": "Helm"});
    let release = json!({"meta.helm.sh/release-name": "theirs", "meta.helm.sh/release-namespace": "x"});
    let metadata = json!({"name": name, "labels": labels, "annotations": release});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "theirs"}})
}

fn deletions() -> Vec<Fault> {
    vec![
        edit("a person deletes a ConfigMap", |stage| stage.delete("ConfigMap", "env")),
        edit("a person deletes the Secret", |stage| stage.delete("Secret", "key")),
        edit("a person deletes the Service", |stage| {
            stage.allow(Effect::RemovesForeignFields);
            stage.delete("Service", "front");
        }),
        edit("a person deletes a Deployment", |stage| {
            stage.allowance.pods = 2;
            stage.allowance.workloads = 1;
            stage.delete("Deployment", "api");
        }),
        edit("a person deletes the pods of a Deployment", |stage| {
            stage.allowance.pods = 2;
            let pods = stage.site.api.list(&stage.site.at("Pod", ""));
            let of_web = pods.iter().filter(|pod| pod["metadata"]["labels"]["app"] == "web");
            for name in of_web.filter_map(|pod| pod["metadata"]["name"].as_str()) {
                stage.site.api.delete(&stage.site.at("Pod", name));
            }
        }),
        Fault::new("a person deletes and creates the object that goes", "the cluster", |stage| {
            stage.change();
            stage.daemon().signal("STOP");
            stage.remove_old();
            stage.pass(0, 1000);
            stage.delete("ConfigMap", "old");
            stage.site.api.create(&stage.site.at("ConfigMap", ""), "people", &of_helm("old"));
            // It belongs to somebody now, and stays.
            stage.desired.keep("old");
            stage.daemon().signal("CONT");
            let uid = stage.site.value("ConfigMap", "old", "/metadata/uid");
            stage.pass(4000, 6000);
            if stage.site.value("ConfigMap", "old", "/metadata/uid") != uid {
                let what = "an object was deleted that a person had made anew";
                crate::judge::note(stage, crate::invariant::Invariant::I2, what);
            }
            Ok(())
        }),
        Fault::new("a finalizer on the object that goes", "the cluster", |stage| {
            stage.edit("ConfigMap", "old", &json!({"metadata": {"finalizers": ["example.org/wait"]}}));
            stage.change();
            stage.remove_old();
            stage.pass(3000, 5000);
            stage.edit("ConfigMap", "old", &json!({"metadata": {"finalizers": null}}));
            Ok(())
        }),
    ]
}

fn delete_record(stage: &mut Stage, kind: &str, name: &str) {
    stage.allow(Effect::DeletesRecords);
    stage.site.api.delete(&stage.record(kind, name));
}

fn records() -> Vec<Fault> {
    let inventory = |stage: &Stage| stage.source_name("a");
    vec![
        edit("a person deletes the inventory", move |stage| {
            let name = inventory(stage);
            delete_record(stage, "ConfigMap", &name);
        }),
        Fault::new("a person spoils the inventory, and mends it as told", "the cluster", move |stage| {
            stage.change();
            stage.pass(0, 2000);
            let path = stage.record("ConfigMap", &inventory(stage));
            let kinds = "applyset.kubernetes.io/contains-group-kinds";
            let text = json!({"data": {"status": "x", "rejected": "x"}});
            stage.site.api.merge(&path, "people", &text);
            stage.site.api.merge(&path, "people", &json!({"metadata": {"annotations": {kinds: "x"}}}));
            stage.while_unknown(|stage| {
                stage.remove_old();
                stage.pass(2000, 4000);
            });
            stage.site.api.merge(&path, "people", &json!({"data": {"rejected": null}}));
            stage.site.api.merge(&path, "people", &json!({"metadata": {"annotations": {kinds: ""}}}));
            Ok(())
        }),
        edit("a person deletes the rollout ledger", |stage| {
            // Nobody knows of the claims any more: what rolls is counted by the cluster alone.
            stage.allowance.workloads = 1;
            stage.allowance.pods = 1;
            delete_record(stage, "ConfigMap", "rollout-budget.rhumb.dev");
        }),
        Fault::new("a person spoils the rollout ledger, and deletes it as told", "the cluster", |stage| {
            stage.change();
            stage.await_live("a rollout begins", |stage| stage.image("web") != stage.image("api"))?;
            let ledger = "rollout-budget.rhumb.dev";
            let path = stage.record("ConfigMap", ledger);
            stage.site.api.merge(&path, "people", &json!({"data": {"claims": "spoiled"}}));
            stage.pass(2000, 4000);
            stage.allowance.workloads = 1;
            stage.allowance.pods = 1;
            delete_record(stage, "ConfigMap", ledger);
            Ok(())
        }),
        edit("a person deletes the key of the seals", |stage| {
            delete_record(stage, "Secret", "config-key.rhumb.dev");
        }),
        Fault::new("a person deletes rhumb's namespace", "the cluster", |stage| {
            stage.allow(Effect::DeletesRecords);
            stage.change();
            stage.pass(0, 1000);
            let namespace = at("Namespace", "", &stage.site.system());
            stage.site.api.delete(&namespace);
            stage.remove_old();
            stage.pass(6000, 9000);
            Ok(())
        }),
    ]
}

/// Writes an object again and again, as a tool with another opinion does.
fn fight(stage: &mut Stage, pause: u64, change: &serde_json::Value) -> usize {
    let end = Instant::now() + Duration::from_secs(6);
    let mut count = 0;
    while Instant::now() < end {
        stage.site.api.merge(&stage.site.at("ConfigMap", "env"), "tool", change);
        count += 1;
        stage.pass(pause, pause);
    }
    count
}

fn tools() -> Vec<Fault> {
    vec![
        Fault::new("another tool undoes each repair, ten times a second", "the cluster", |stage| {
            stage.change();
            let count = fight(stage, 100, &json!({"data": {"key": "tool"}}));
            // Twenty repairs at most are asked for: then it is a fight.
            stage.allowance.edits += count.min(20);
            stage.remove_old();
            Ok(())
        }),
        Fault::new("another tool undoes each repair, once a second", "the cluster", |stage| {
            stage.change();
            let count = fight(stage, 1000, &json!({"data": {"key": "tool"}}));
            stage.allowance.edits += count;
            Ok(())
        }),
        Fault::new("another tool writes its own fields, ten times a second", "the cluster", |stage| {
            stage.change();
            let mut number = 0;
            let end = Instant::now() + Duration::from_secs(4);
            while Instant::now() < end {
                number += 1;
                let data = json!({"data": {"theirs": number.to_string()}});
                stage.site.api.merge(&stage.site.at("ConfigMap", "shared"), "tool", &data);
                stage.pass(100, 100);
            }
            stage.remove_old();
            Ok(())
        }),
        Fault::new("an autoscaler owns the replicas", "the cluster", |stage| {
            let web = stage.desired.text("a/web.yaml").replace("  replicas: 2\n", "");
            stage.write("a/web.yaml", &web);
            stage.commit("Leave the replicas to somebody else");
            stage.await_convergence(Duration::from_secs(30)).map_err(Obstacle::Unmet)?;
            let scale = json!({"spec": {"replicas": 3}});
            stage.site.api.merge(&stage.site.at("Deployment", "web"), "autoscaler", &scale);
            stage.allowance.pods = 1;
            stage.change();
            stage.write("a/web.yaml", &stage.desired.text("a/web.yaml").replace("  replicas: 2\n", ""));
            stage.commit("Leave the replicas to somebody else");
            stage.pass(2000, 4000);
            Ok(())
        }),
        Fault::new("a foreign object has the name of a new one", "the cluster", |stage| {
            // An object that is somebody else's is looked up again by the resync alone.
            let text = stage.configuration(0, &format!("{SETTINGS}\nresync: 10s"), "");
            stage.daemon().reload(&text);
            stage.site.api.create(&stage.site.at("ConfigMap", ""), "people", &of_helm("fresh"));
            stage.pass(1000, 1500);
            let before = stage.site.value("ConfigMap", "fresh", "/metadata/resourceVersion");
            stage.change();
            stage.remove_old();
            stage.pass(3000, 5000);
            if stage.site.value("ConfigMap", "fresh", "/metadata/resourceVersion") != before {
                crate::judge::note(
                    stage,
                    crate::invariant::Invariant::I2,
                    "the object of another owner was written",
                );
            }
            // Deletions wait for it. A person decides.
            stage.site.api.delete(&stage.site.at("ConfigMap", "fresh"));
            Ok(())
        }),
    ]
}
