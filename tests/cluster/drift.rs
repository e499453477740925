//! Somebody writes in our own name: our entry stays complete, and only the values show it. Or he
//! writes our entry itself, so that no other change of a value shows in it. Somebody who writes in
//! his own name is named.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually, yaml};

const KEY: (&str, &str, &str) = ("Secret", "key", "/data/token");
const ENV: (&str, &str, &str) = ("ConfigMap", "env", "/data/mode");
const WEB: (&str, &str, &str) = ("Deployment", "web", "/spec/template/spec/containers/0/image");

/// The source's values, and somebody else's.
const VALUES: [((&str, &str, &str), &str, &str); 3] = [
    (ENV, "calm", "wild"),
    (KEY, "cmlnaHQ=", "d3Jvbmc="),
    (WEB, "registry.example/web:1", "registry.example/evil:1"),
];

fn repo() -> Repo {
    Repo::new(&[
        ("env.yaml", yaml::config_map("env", "mode", "calm")),
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("web.yaml", yaml::deployment("web", 2, "registry.example/web:1")),
    ])
}

/// Puts another value into an object by a forced server-side apply as `rhumb` that keeps the marks
/// and all else.
#[track_caller]
fn forge(site: &TestNamespace<'_>, (kind, name, pointer): (&str, &str, &str), value: impl Into<Value>) {
    let live = site.get(kind, name).unwrap_or_else(|| panic!("there is no {kind} {name}"));
    let release = &live["metadata"]["annotations"]["rhumb.dev/release"];
    let mut body = json!({
        "apiVersion": live["apiVersion"], "kind": kind,
        "metadata": {
            "name": name, "namespace": live["metadata"]["namespace"], "labels": live["metadata"]["labels"],
            "annotations": {"rhumb.dev/release": release},
        },
    });
    for part in ["automountServiceAccountToken", "data", "spec", "type"] {
        if !live[part].is_null() {
            body[part] = live[part].clone();
        }
    }
    let value = value.into();
    *body.pointer_mut(pointer).unwrap() = value.clone();
    // By the answer, as a daemon may have put it back by the next look.
    let taken = site.api.apply(&site.at(kind, name), "rhumb", &body);
    let taken = taken.pointer(pointer).cloned().unwrap_or(Value::Null);
    assert_eq!(taken, value, "the server did not take the forged write");
}

#[track_caller]
fn await_right_values(site: &TestNamespace<'_>) {
    for ((kind, name, pointer), right, _) in VALUES {
        eventually(&format!("{kind} {name} is put back"), DEFAULT_TIMEOUT, || {
            match site.value(kind, name, pointer) {
                Value::String(shown) if shown == right => Ok(()),
                shown => Err(shown),
            }
        });
    }
}

fn daemon_at_rest(site: &TestNamespace<'_>, repo: &Repo) -> Daemon {
    let daemon = site.daemon(repo.path());
    await_right_values(site);
    site.await_rollout("web");
    site.await_free_budget();
    daemon
}

#[test]
fn values_that_somebody_writes_in_our_name_are_put_back_by_the_watch_at_a_start_and_shown_by_diff() {
    let site = TestNamespace::new("drift-forged");
    let repo = repo();
    let mut daemon = daemon_at_rest(&site, &repo);
    for (place, _, wrong) in VALUES {
        let mark = daemon.mark();
        forge(&site, place, wrong);
        let object = format!("{} drift-forged/{}", place.0, place.1);
        let line = daemon.says_since(mark, &["drift repaired", &object]);
        assert!(line.contains("field manager rhumb"), "nobody is named: {line}");
        assert!(!line.contains(wrong), "a value is shown: {line}");
    }
    await_right_values(&site);
    site.await_rollout("web");
    site.await_free_budget();
    daemon.stop();

    site.diff(repo.path(), &[]).ends(0);
    for (place, _, wrong) in VALUES {
        forge(&site, place, wrong);
    }
    let shown = site.diff(repo.path(), &[]).ends(1);
    for text in [&["ConfigMap", "env"], &["Secret", "key"], &["Deployment", "web"]] {
        shown.says(text);
    }
    let new = site.with_empty_state();
    let daemon = new.daemon(repo.path());
    await_right_values(&site);
    assert!(!daemon.log().contains("d3Jvbmc="), "a Secret's value is shown");
    site.diff(repo.path(), &[]).ends(0);
}

/// Puts another value into an object by an update under the name of `kubectl edit`, whatever the
/// server's controllers write beside it. Returns the time that the server has recorded.
#[track_caller]
fn edit(site: &TestNamespace<'_>, (kind, name, pointer): (&str, &str, &str), value: &str) -> String {
    let path = format!("{}?fieldManager=kubectl-edit", site.at(kind, name));
    let after = eventually("it is updated", DEFAULT_TIMEOUT, || {
        let mut object = site.get(kind, name).unwrap_or_else(|| panic!("there is no {kind} {name}"));
        *object.pointer_mut(pointer).unwrap() = json!(value);
        site.api.call("PUT", &path, "application/json", &object)
    });
    assert_eq!(after.pointer(pointer), Some(&json!(value)));
    let entries = after["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["manager"] == "kubectl-edit").unwrap();
    assert_eq!(entry["operation"], "Update", "{entry}");
    entry["time"].as_str().unwrap().to_owned()
}

#[test]
fn a_value_that_somebody_edits_is_put_back_and_the_log_and_an_event_say_who_when_and_which() {
    let site = TestNamespace::new("drift-edited");
    let repo = repo();
    let daemon = daemon_at_rest(&site, &repo);
    let image = ".spec.template.spec.containers[name=\"main\"].image";
    for ((place, _, wrong), path) in VALUES.into_iter().zip([".data.mode", ".data.token", image]) {
        let mark = daemon.mark();
        let time = edit(&site, place, wrong);
        let (kind, name, _) = place;
        let words = format!("kubectl-edit changed {path} at {time}; put back");
        let line = daemon
            .says_since(mark, &["INFO drift repaired: ", &words, &format!("{kind} drift-edited/{name}")]);
        assert!(!line.contains(wrong), "a value is shown: {line}");
        eventually("an Event says the same", DEFAULT_TIMEOUT, || {
            let events = site.api.list(&site.at("Event", ""));
            let is_told = |event: &Value| {
                event["reason"] == "DriftRepaired"
                    && event["involvedObject"]["kind"] == kind
                    && event["involvedObject"]["name"] == name
                    && event["message"] == words.as_str()
            };
            if events.iter().any(is_told) { Ok(()) } else { Err(format!("{events:#?}")) }
        });
    }
    await_right_values(&site);
}

/// A place, the value of the source, and one of somebody else that looks much alike.
type Disguise = ((&'static str, &'static str, &'static str), Value, Value);

fn disguises() -> Vec<Disguise> {
    let pod = "/spec/template/spec";
    let at = |pointer: &str| -> &'static str { format!("{pod}{pointer}").leak() };
    vec![
        (("NetworkPolicy", "db", "/spec/podSelector/matchLabels"), json!({"db": ""}), json!({"nothing": ""})),
        (("Service", "db", "/spec/selector"), json!({"db": ""}), json!({"evil": ""})),
        (("ConfigMap", "sizes", "/data/storage"), json!("1000m"), json!("1")),
        (("ServiceAccount", "db", "/automountServiceAccountToken"), json!(false), Value::Null),
        (("Deployment", "db", at("/nodeSelector")), json!({"worker": ""}), json!({"control-plane": ""})),
        (("Deployment", "db", at("/automountServiceAccountToken")), json!(false), Value::Null),
        (
            ("Deployment", "db", at("/containers/0/securityContext/allowPrivilegeEscalation")),
            json!(false),
            Value::Null,
        ),
    ]
}

const DISGUISED: &str = "
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db}
spec: {podSelector: {matchLabels: {db: \"\"}}}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {db: \"\"}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: sizes}
data: {storage: 1000m}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: db}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  replicas: 0
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      automountServiceAccountToken: false
      nodeSelector: {worker: \"\"}
      containers:
      - {name: main, image: \"db:1\", securityContext: {allowPrivilegeEscalation: false}}
";

#[track_caller]
fn await_value(site: &TestNamespace<'_>, (kind, name, pointer): (&str, &str, &str), right: &Value) {
    eventually(&format!("{kind} {name} {pointer} is put back"), DEFAULT_TIMEOUT, || {
        let shown = site.value(kind, name, pointer);
        if shown == *right { Ok(()) } else { Err(shown) }
    });
}

#[test]
fn a_value_that_looks_like_a_zero_value_or_a_default_is_put_back_too() {
    let site = TestNamespace::new("drift-disguised");
    let repo = Repo::new(&[("all.yaml", DISGUISED)]);
    let daemon = site.daemon(repo.path());
    for (place, right, _) in disguises() {
        await_value(&site, place, &right);
    }
    for (place, right, wrong) in disguises() {
        let mark = daemon.mark();
        forge(&site, place, wrong);
        daemon.says_since(mark, &["drift repaired", &format!("{} drift-disguised/{}", place.0, place.1)]);
        await_value(&site, place, &right);
    }
    drop(daemon);
    site.diff(repo.path(), &[]).ends(0);
    for (place, _, wrong) in disguises() {
        forge(&site, place, wrong);
    }
    site.diff(repo.path(), &[]).ends(1);
    let new = site.with_empty_state();
    let _daemon = new.daemon(repo.path());
    for (place, right, _) in disguises() {
        await_value(&site, place, &right);
    }
}

/// Writes into our own entry that it owns something below a scalar, and no longer the scalar.
#[track_caller]
fn rewrite_entry(site: &TestNamespace<'_>, kind: &str, name: &str, pointer: &str) {
    let change = |own: &mut Value| *own.pointer_mut(pointer).unwrap() = json!({"f:sub": {}});
    change_entry(site, kind, name, change);
}

/// Changes our own entry on an object, at whatever version the server's controllers have brought it
/// to.
#[track_caller]
fn change_entry(site: &TestNamespace<'_>, kind: &str, name: &str, change: impl Fn(&mut Value)) {
    let path = format!("{}?fieldManager=other", site.at(kind, name));
    eventually("our entry is rewritten", DEFAULT_TIMEOUT, || {
        let live = site.get(kind, name).unwrap();
        let mut entries = live["metadata"]["managedFields"].clone();
        let all = entries.as_array_mut().unwrap();
        let own = all.iter_mut().find(|entry| entry["manager"] == "rhumb").unwrap();
        change(&mut own["fieldsV1"]);
        let forged = own["fieldsV1"].clone();
        let version = &live["metadata"]["resourceVersion"];
        let body = json!({"metadata": {"managedFields": entries, "resourceVersion": version}});
        let answer = site.api.call("PATCH", &path, "application/merge-patch+json", &body);
        answer.map(|after| {
            let kept = after["metadata"]["managedFields"].as_array().unwrap();
            assert!(kept.iter().any(|entry| entry["fieldsV1"] == forged), "the server did not keep it");
        })
    });
}

#[test]
fn an_entry_of_ours_that_somebody_rewrites_hides_no_value() {
    let site = TestNamespace::new("drift-entry");
    let repo = repo();
    let mut daemon = daemon_at_rest(&site, &repo);
    let rewrite_all = || {
        rewrite_entry(&site, "ConfigMap", "env", "/f:data/f:mode");
        let containers = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"main\"}/f:image";
        rewrite_entry(&site, "Deployment", "web", containers);
    };
    let change_all = || {
        site.api.merge(&site.at("ConfigMap", "env"), "other", &json!({"data": {"mode": "wild"}}));
        site.kubectl(&["set", "image", "deployment/web", "main=registry.example/evil:1"]);
    };
    rewrite_all();
    change_all();
    await_right_values(&site);
    site.await_rollout("web");
    site.await_free_budget();
    daemon.stop();

    site.diff(repo.path(), &[]).ends(0);
    rewrite_all();
    change_all();
    site.diff(repo.path(), &[]).ends(1).says(&["ConfigMap", "env"]);
    let new = site.with_empty_state();
    let _daemon = new.daemon(repo.path());
    await_right_values(&site);
    site.diff(repo.path(), &[]).ends(0);
}

const KEYED: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: keyed}
spec:
  replicas: 0
  selector: {matchLabels: {app: keyed}}
  template:
    metadata: {labels: {app: keyed}}
    spec:
      initContainers:
      - {name: first, image: \"first:1\"}
      - {name: second, image: \"second:1\"}
      containers:
      - {name: main, image: \"web:1\", env: [{name: MODE, value: calm}]}
";

#[test]
fn a_second_item_of_a_key_and_another_order_are_put_back() {
    let site = TestNamespace::new("drift-keyed");
    let repo = Repo::new(&[("all.yaml", KEYED)]);
    let daemon = site.daemon(repo.path());
    let pod = "/spec/template/spec";
    let (env, first) = (format!("{pod}/containers/0/env"), format!("{pod}/initContainers/0/name"));
    let await_right = || {
        await_value(&site, ("Deployment", "keyed", &env), &json!([{"name": "MODE", "value": "calm"}]));
        await_value(&site, ("Deployment", "keyed", &first), &json!("first"));
    };
    let patch = |change: Value| {
        site.kubectl(&["patch", "deployment", "keyed", "--type", "json", "-p", &change.to_string()]);
    };
    // Nobody takes a field from us by a new order.
    let turn = || {
        let place = |nth: u32| format!("{pod}/initContainers/{nth}");
        patch(json!([{"op": "move", "from": place(1), "path": place(0)}]));
    };
    // The item is no longer ours by its key, and a second one of its name follows it.
    let add = || {
        change_entry(&site, "Deployment", "keyed", |own| {
            let containers = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"main\"}/f:env";
            let env = own.pointer_mut(containers).unwrap().as_object_mut().unwrap();
            let mut item = env.remove("k:{\"name\":\"MODE\"}").unwrap();
            item.as_object_mut().unwrap().remove(".");
            env.insert("k:{\"zzz\":1}".to_owned(), item);
        });
        patch(json!([{"op": "add", "path": format!("{env}/-"), "value": {"name": "MODE", "value": "wild"}}]));
    };
    await_right();
    let mark = daemon.mark();
    turn();
    daemon.says_since(mark, &["drift repaired", "drift-keyed/keyed"]);
    await_right();
    add();
    await_right();
    site.diff(repo.path(), &[]).ends(0);
    drop(daemon);
    turn();
    site.diff(repo.path(), &[]).ends(1);
    let new = site.with_empty_state();
    let _daemon = new.daemon(repo.path());
    await_right();
}

/// Each empty value means something, but for the list, to which others may add.
const EMPTY: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 0\n  \
     selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
     initContainers: []\n      volumes: [{name: tmp, emptyDir: {}}]\n      containers:\n      \
     - {name: main, image: 'registry.example/web:1', env: []}\n---\n\
     apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: all}\nspec:\n  minAvailable: 1\n  \
     selector: {}\n";

#[test]
fn an_empty_value_that_somebody_takes_away_is_put_back_and_no_item_of_another_is_said_to_be() {
    let site = TestNamespace::new("drift-empty");
    let repo = Repo::new(&[("all.yaml", EMPTY)]);
    let mut daemon = site.daemon(repo.path());
    site.await_object("Deployment", "web");
    site.await_object("PodDisruptionBudget", "all");
    let take = |site: &TestNamespace<'_>| {
        let none = json!({"spec": {"selector": null}});
        site.api.merge(&site.at("PodDisruptionBudget", "all"), "other", &none);
    };
    let selector = ("PodDisruptionBudget", "all", "/spec/selector");
    await_value(&site, selector, &json!({}));
    take(&site);
    await_value(&site, selector, &json!({}));
    daemon.says(&["drift repaired", "PodDisruptionBudget drift-empty/all"]);

    // Others own items of their own in a list with keys: an apply of none takes none of them away.
    let mark = daemon.mark();
    let added = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "env": [{"name": "ADDED", "value": "1"}]}
    ]}}}});
    let merge = |change: &Value| {
        let path = format!("{}?fieldManager=other", site.at("Deployment", "web"));
        site.api.call("PATCH", &path, "application/strategic-merge-patch+json", change).unwrap();
    };
    merge(&added);
    eventually("it is there", DEFAULT_TIMEOUT, || {
        let shown = site.value("Deployment", "web", "/spec/template/spec/containers/0/env/0/name");
        if shown == "ADDED" { Ok(()) } else { Err(shown) }
    });
    take(&site);
    daemon.says_since(mark, &["drift repaired", "PodDisruptionBudget drift-empty/all"]);
    let said: Vec<String> = daemon.log().lines().skip(mark).map(str::to_owned).collect();
    assert!(!said.iter().any(|line| line.contains("Deployment drift-empty/web")), "{said:#?}");
    daemon.stop();
    take(&site);
    site.diff(repo.path(), &[]).says(&["~ PodDisruptionBudget drift-empty/all"]);
    let new = site.with_empty_state();
    let _daemon = new.daemon(repo.path());
    await_value(&site, selector, &json!({}));
}
