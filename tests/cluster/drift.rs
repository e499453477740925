//! Somebody writes in our own name: our entry stays complete, and only the values show it.

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
fn forge(site: &TestNamespace<'_>, (kind, name, pointer): (&str, &str, &str), value: &str) {
    let live = site.get(kind, name).unwrap_or_else(|| panic!("there is no {kind} {name}"));
    let release = &live["metadata"]["annotations"]["rhumb.dev/release"];
    let mut body = json!({
        "apiVersion": live["apiVersion"], "kind": kind,
        "metadata": {
            "name": name, "namespace": live["metadata"]["namespace"], "labels": live["metadata"]["labels"],
            "annotations": {"rhumb.dev/release": release},
        },
    });
    for part in ["data", "spec", "type"] {
        if !live[part].is_null() {
            body[part] = live[part].clone();
        }
    }
    *body.pointer_mut(pointer).unwrap() = value.into();
    site.api.apply(&site.at(kind, name), "rhumb", &body);
    assert_eq!(site.value(kind, name, pointer), value, "the server did not take the forged write");
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
