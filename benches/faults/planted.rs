//! Violations that the bench commits itself, in the name of the daemon: each must be seen.
//!
//! A bench that cannot see them proves nothing by what it does not see.

use controlplane::{Requests, ResponseCut};
use serde_json::json;

use crate::desired::CANARY;
use crate::fault::Fault;
use crate::invariant::Invariant;
use crate::network::bystander;
use crate::stage::{SETTINGS, Stage};
use crate::support::Api;

/// Returns the API server as the daemon's user.
fn api(stage: &Stage) -> Api {
    Api::new(stage.replicas[0].site.kubeconfig())
}

fn planted(
    name: &'static str,
    expected: Invariant,
    work: impl Fn(&mut Stage) + Send + Sync + 'static,
) -> Fault {
    let place = "the bench itself, as the daemon's user";
    Fault::new(name, place, move |stage| {
        work(stage);
        Ok(())
    })
    .must_break(expected)
}

fn image(name: &str) -> serde_json::Value {
    let container = json!([{"name": "main", "image": format!("app:{name}")}]);
    json!({"spec": {"template": {"spec": {"containers": container}}}})
}

fn merge(stage: &Stage, kind: &str, name: &str, change: &serde_json::Value) {
    api(stage).merge(&stage.site.at(kind, name), "rhumb", change);
}

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    vec![
        planted("planted: a daemon that is gone", Invariant::I1, |stage| stage.daemon().kill()),
        planted("planted: a write to a foreign object", Invariant::I2, |stage| {
            merge(stage, "ConfigMap", "foreign", &json!({"data": {"key": "ours"}}));
        }),
        planted("planted: a deletion of a wanted object", Invariant::I3, |stage| {
            api(stage).delete(&stage.site.at("ConfigMap", "env"));
        }),
        planted("planted: two rollouts at once", Invariant::I4, |stage| {
            stage.daemon().signal("STOP");
            merge(stage, "Deployment", "web", &image("planted"));
            merge(stage, "Deployment", "api", &image("planted"));
            stage.pass(3000, 3000);
            stage.daemon().signal("CONT");
        }),
        planted("planted: a storm of writes", Invariant::I5, |stage| {
            for number in 0..40 {
                merge(stage, "ConfigMap", "env", &json!({"data": {"more": number.to_string()}}));
            }
        }),
        planted("planted: a lost field of people", Invariant::I6, |stage| {
            merge(stage, "ConfigMap", "shared", &json!({"data": {"theirs": null}}));
        }),
        planted("planted: an object that is created twice", Invariant::I7, |stage| {
            stage.daemon().signal("STOP");
            api(stage).delete(&stage.site.at("ConfigMap", "env"));
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "env"}});
            api(stage).create(&stage.site.at("ConfigMap", ""), "rhumb", &object);
            stage.daemon().signal("CONT");
        }),
        planted("planted: an older revision after a newer one", Invariant::I8, |stage| {
            merge(stage, "ConfigMap", "counter", &json!({"data": {"key": "0"}}));
        }),
        planted("planted: a failing image that is tried twice", Invariant::I9, |stage| {
            stage.daemon().signal("STOP");
            for name in ["broken", "1", "broken", "1"] {
                merge(stage, "Deployment", "web", &image(name));
            }
            stage.daemon().signal("CONT");
        }),
        planted("planted: a failing kind that holds up the others", Invariant::I10, |stage| {
            stage.daemon().signal("STOP");
            stage.change();
            bystander(stage);
            stage.daemon().signal("CONT");
        }),
        planted("planted: a status that is not true", Invariant::I11, |stage| {
            // The daemon cannot know of the edit, and the observer has watches of its own.
            stage.proxy.end_open(&Requests::any().watches(), ResponseCut::Silence);
            stage.edit("ConfigMap", "env", &json!({"data": {"key": "theirs"}}));
            stage.pass(1000, 1000);
            stage.check_status();
            stage.proxy.end_open(&Requests::any().watches(), ResponseCut::Reset);
            stage.daemon().restart();
        }),
        planted("planted: the Secret in a record", Invariant::I12, |stage| {
            let path = stage.record("ConfigMap", &stage.source_name("a"));
            api(stage).merge(&path, "rhumb", &json!({"data": {"planted": CANARY}}));
        }),
        planted("planted: a state directory that is full", Invariant::I13, |stage| {
            let file = std::fs::File::create(stage.daemon().site.state.path().join("planted")).unwrap();
            file.set_len(1 << 30).unwrap();
        }),
        planted("planted: a process that ends", Invariant::I14, |stage| {
            stage.daemon().signal("KILL");
            stage.pass(500, 500);
            stage.daemon().revive();
            let text = stage.configuration(0, SETTINGS, "");
            stage.daemon().reload(&text);
        }),
    ]
}
