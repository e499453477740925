//! rhumb's own records in its namespace, with foreign writes.

use serde_json::json;

use crate::serving::ask;
use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, yaml};

#[test]
fn a_rollout_ledger_that_cannot_be_read_is_reported_everywhere_with_the_command_that_mends_it() {
    let site = TestNamespace::new("unread-budget");
    let repo = Repo::new(&[("web.yaml", yaml::deployment("web", 1, "example.org/web:1"))]);
    let runtime = tempfile::tempdir().unwrap();
    let source = repo.path().to_str().unwrap();
    let mut command = site.command(&["run", source]);
    command.env("RUNTIME_DIRECTORY", runtime.path());
    let daemon = Daemon::start(command);
    site.await_rollout("web");
    let name = "rollout-budget.rhumb.dev";
    let budget = at("ConfigMap", &site.system(), name);
    let garbage =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"claims": "{"}});
    site.api.apply(&budget, "somebody", &garbage);
    repo.change("web.yaml", &yaml::deployment("web", 1, "example.org/web:2"));
    let mends = format!("`kubectl -n {} delete configmap {name}`", site.system());
    let expected = [name, "it cannot be read", "no rollout begins", &mends];
    daemon.says(&expected);
    for command in [&["status"][..], &["rollout", "status"], &["why", "deploy/web"]] {
        site.rhumb(command).says(&expected);
    }
    site.rhumb(&["check", source]).ends(1).says(&[&["missing"], &expected[..]].concat());
    // No restart would mend it, so it counts as ready.
    let ready = ask(&runtime.path().join("rhumb.sock"), "GET", "/readyz");
    assert_eq!(ready.code, 200, "{}", ready.body);
    assert!(ready.body.starts_with("ready, but "), "{}", ready.body);
    assert!(expected.iter().all(|text| ready.body.contains(text)), "{}", ready.body);
    eventually("`why` tells that it waits, as the daemon told it last", DEFAULT_TIMEOUT, || {
        let explained = site.rhumb(&["why", "deploy/web"]).all();
        if explained.contains("phase    Waiting") { Ok(()) } else { Err(explained) }
    });
    site.api.delete(&budget);
    eventually("the newer image runs", DEFAULT_TIMEOUT, || {
        let image = site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
        if image == json!("example.org/web:2") { Ok(()) } else { Err(image) }
    });
}

#[test]
fn lines_of_what_failed_that_cannot_be_read_are_reported() {
    let site = TestNamespace::new("unread-rejected");
    let repo = Repo::new(&[("map.yaml", yaml::config_map("map", "a", "1"))]);
    let mut daemon = site.daemon(repo.path());
    site.await_data("map", "a", "1");
    assert!(daemon.stop().success());
    let inventory = at("ConfigMap", &site.system(), &site.name);
    site.api.merge(&inventory, "somebody", &json!({"data": {"rejected": "garbage\n{}\n"}}));
    let daemon = site.daemon(repo.path());
    daemon.says(&["WARN", "unread-rejected: 2 lines of `rejected` cannot be read", "is tried again"]);
    eventually("an Event tells it", DEFAULT_TIMEOUT, || {
        let events = site.api.list(&format!("/api/v1/namespaces/{}/events", site.system()));
        let is_reported = events.iter().any(|event| event["reason"] == "RecordUnreadable");
        if is_reported { Ok(()) } else { Err(format!("{events:?}")) }
    });
}
