//! The responses of a running daemon on its socket.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Daemon, Repo, Schema, TestNamespace, ask, try_to_ask, until, yaml};

const BUDGET: &str =
    "budget: {maxWorkloads: 1, maxUnavailable: 9, startsPerMinute: 1000, soak: 0s, deadline: 10m}";

/// A daemon with a runtime directory.
struct ServingFixture {
    daemon: Daemon,
    runtime: TempDir,
}

impl ServingFixture {
    fn start(mut command: Command) -> Self {
        let runtime = tempfile::tempdir().unwrap();
        command.env("RUNTIME_DIRECTORY", runtime.path());
        Self { daemon: Daemon::start(command), runtime }
    }

    fn socket(&self) -> PathBuf {
        self.runtime.path().join("rhumb.sock")
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let answer = ask(&self.socket(), "GET", path);
        (answer.code, serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body)))
    }

    fn await_ready(&self) {
        until("it is ready", || self.socket().exists() && self.get("/readyz").0 == 200);
    }
}

fn configured(site: &TestNamespace<'_>, repo: &Repo) -> ServingFixture {
    bounded(site, repo, BUDGET)
}

fn bounded(site: &TestNamespace<'_>, repo: &Repo, budget: &str) -> ServingFixture {
    let file = repo.path().with_extension("rhumb.yaml");
    std::fs::write(&file, site.configuration(repo.path(), budget)).unwrap();
    let mut command = site.bare_command();
    command.arg("run").arg("--config").arg(file);
    ServingFixture::start(command)
}

#[test]
fn the_status_tells_what_runs_and_what_is_not_as_it_should_be() {
    let site = TestNamespace::new("serving");
    let files = |image: &str, never: &str| {
        [
            ("env.yaml", yaml::config_map("env", "a", "one")),
            ("secret.yaml", yaml::secret("token", "password", "Y2FuYXJ5LWluLWEtc2VjcmV0")),
            ("web.yaml", yaml::workload("Deployment", "web", 2, image, never)),
            ("api.yaml", yaml::workload("Deployment", "api", 2, image, never)),
        ]
    };
    let repo = Repo::new(&files("app:1", "{}"));
    let served = configured(&site, &repo);
    served.await_ready();
    until("all is settled", || served.get("/v1/status").1["sources"][0]["objects"] == json!({"Settled": 4}));
    let (code, status) = served.get("/v1/status");
    assert_eq!(
        (code, &status["apiVersion"], &status["kind"]),
        (200, &json!("status.rhumb.dev/v1"), &json!("Status"))
    );
    let source = &status["sources"][0];
    assert_eq!(source["name"], json!(site.name));
    assert_eq!(source["revision"], json!(repo.head()));
    assert_eq!(
        (&source["complete"], &source["healthy"], &source["findings"]),
        (&json!(true), &json!(true), &json!(0))
    );
    assert_eq!(status["rollout"]["workloads"], json!({"used": 0, "of": 1}));
    let change = json!({"data": {"a": "drift"}});
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &change);
    site.await_data("env", "a", "one");
    // A change that cannot be finished, one that waits for it, a file that is none, and one that
    // goes.
    for (name, text) in files("app:2", "{controlplane/never-ready: \"true\"}") {
        repo.write(name, &text);
    }
    repo.write("env.yaml", "kind: ConfigMap\nmetadata: {name: env\n");
    repo.commit("Change all");
    until("one rolls and one waits", || {
        let rollout = &served.get("/v1/status").1["rollout"];
        rollout["rolling"].as_array().map(Vec::len) == Some(1)
            && rollout["queue"].as_array().map(Vec::len) == Some(1)
    });
    tell_of_the_rollout_and_the_source(&served);
    tell_of_objects(&served, &site.name);
    tell_metrics(&served, &site.name, &repo.head());
    tell_no_secrets(&served, &site.name);
    tell_as_described(&served, &site.name);
    tell_what_would_change(&served, &site.name);
    tell_what_happened(&served, &site.name);
    // The writer of a change is known after its repair too.
    let socket = served.socket();
    let why = site.rhumb(&["why", "cm/env", "--socket", socket.to_str().unwrap()]).ends(0);
    why.says(&["  repaired at 20", "Z: somebody changed .data.a at 20"]);
}

#[test]
fn what_went_back_is_shown_beside_what_git_asks_for() {
    let site = TestNamespace::new("serving-back");
    let web = |image: &str, never: &str| yaml::workload("Deployment", "web", 2, image, never);
    let repo = Repo::new(&[("web.yaml", web("app:1", "{}"))]);
    let served = bounded(&site, &repo, &BUDGET.replace("deadline: 10m", "deadline: 3s"));
    served.await_ready();
    until("all is settled", || served.get("/v1/status").1["sources"][0]["objects"] == json!({"Settled": 1}));
    repo.change("web.yaml", &web("app:2", "{controlplane/never-ready: \"true\"}"));
    let back = json!({"RolledBack": 1});
    until("it is back", || served.get("/v1/status").1["sources"][0]["objects"] == back);
    let (_, shown) = served.get(&format!("/v1/objects/Deployment.apps/{}/web?view=yaml", site.name));
    let difference = shown["difference"].as_str().unwrap();
    let has = |sign: char, image: &str| {
        difference.lines().any(|line| line.starts_with(sign) && line.contains(image))
    };
    assert!(has('-', "app:1") && has('+', "app:2"), "{shown}");
}

/// Checks that each answer has the form that the document says.
#[track_caller]
fn tell_as_described(served: &ServingFixture, name: &str) {
    let schema = Schema::of(served.get("/openapi.json").1);
    let object = "/v1/objects/{kind}/{namespace}/{name}";
    for (route, target) in [
        ("/v1/status", "/v1/status".to_owned()),
        ("/v1/objects", "/v1/objects".to_owned()),
        ("/v1/objects", "/v1/objects?phase=Nowhere".to_owned()),
        ("/v1/diff", format!("/v1/diff?source={name}")),
        ("/v1/diff", "/v1/diff?source=nowhere".to_owned()),
        (object, format!("/v1/objects/Deployment.apps/{name}/web")),
        (object, format!("/v1/objects/Deployment.apps/{name}/web?view=yaml")),
        (object, format!("/v1/objects/ConfigMap/{name}/env?view=yaml")),
        (object, format!("/v1/objects/ConfigMap/{name}/none")),
        (object, format!("/v1/objects/ConfigMap/{name}/none?view=text")),
    ] {
        let (code, answer) = served.get(&target);
        schema.holds("get", route, code, &answer);
    }
    for line in ask(&served.socket(), "GET", "/v1/events?follow=no").body.lines() {
        if let Some(data) = line.strip_prefix("data: ") {
            schema.has_form("Event", &serde_json::from_str(data).unwrap());
        }
    }
}

/// Checks the live object and the wanted one in a response.
#[track_caller]
fn tell_what_would_change(served: &ServingFixture, name: &str) {
    let (_, rollout) = served.get("/v1/status");
    let waiting = rollout["rollout"]["queue"][0]["name"].as_str().unwrap().to_owned();
    let (_, shown) = served.get(&format!("/v1/objects/Deployment.apps/{name}/{waiting}?view=yaml"));
    let text = |key: &str| shown[key].as_str().unwrap_or_default().to_owned();
    assert!(text("live").contains("image: app:1") && text("desired").contains("image: app:2"), "{shown:#}");
    let lines = text("difference");
    for (sign, image) in [('-', "image: app:1"), ('+', "image: app:2")] {
        assert!(lines.lines().any(|line| line.starts_with(sign) && line.contains(image)), "{lines}");
    }
    assert!(!text("live").contains("managedFields"), "{shown:#}");
    let (_, secret) = served.get(&format!("/v1/objects/Secret/{name}/token?view=yaml"));
    assert_eq!(secret["difference"], json!(""), "{secret:#}");
    assert!(secret["live"].as_str().unwrap().contains("password: '<masked>'"), "{secret:#}");
    assert_eq!(secret["live"], secret["desired"]);
    let (_, diff) = served.get(&format!("/v1/diff?source={name}"));
    let names: Vec<&str> =
        diff["items"].as_array().unwrap().iter().filter_map(|item| item["name"].as_str()).collect();
    assert!(names.contains(&&*waiting) && names.contains(&"env") && !names.contains(&"token"), "{diff:#}");
    assert_eq!(diff["more"], json!(0));
    let (_, status) = served.get("/v1/status");
    let source = &status["sources"][0];
    assert_eq!(source["changes"][0]["subject"], json!("Change all"), "{source:#}");
    assert_eq!(
        (&source["changes"][0]["revision"], &source["driftRepaired"]),
        (&source["revision"], &json!(1))
    );
}

/// Checks that later listeners get the kept events, and present ones all.
#[track_caller]
fn tell_what_happened(served: &ServingFixture, name: &str) {
    let answer = ask(&served.socket(), "GET", &format!("/v1/events?follow=no&source={name}"));
    assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
    for happening in ["RevisionRead", "DriftRepaired", "RolloutStarted"] {
        assert!(answer.body.contains(&format!("\"reason\":\"{happening}\"")), "{happening}: {}", answer.body);
    }
}

#[track_caller]
fn tell_of_the_rollout_and_the_source(served: &ServingFixture) {
    let (_, status) = served.get("/v1/status");
    assert_eq!(status["rollout"]["workloads"], json!({"used": 1, "of": 1}));
    let queued = &status["rollout"]["queue"][0];
    assert_eq!(
        (&queued["kind"], &queued["group"], &queued["position"]),
        (&json!("Deployment"), &json!("apps"), &json!(1))
    );
    assert!(queued["reason"].as_str().unwrap().contains("1 of 1 workloads"), "{queued}");
    let source = &status["sources"][0];
    assert_eq!((&source["complete"], &source["healthy"]), (&json!(false), &json!(false)));
    assert!(source["incomplete"].as_str().unwrap().contains("env.yaml"), "{source}");
    assert!(source["findings"].as_u64().unwrap() > 0, "{source}");
    let first = source["firstFindings"][0].as_str().unwrap();
    assert!(first.contains("env.yaml:") && first.contains(": error: "), "{source}");
}

#[track_caller]
fn tell_of_objects(served: &ServingFixture, name: &str) {
    let names = |query: &str| -> Vec<String> {
        let (code, list) = served.get(&format!("/v1/objects{query}"));
        assert_eq!((code, &list["kind"]), (200, &json!("ObjectList")), "{list}");
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| format!("{} {}", item["phase"].as_str().unwrap(), item["name"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(names("").len(), 4);
    assert_eq!(names("?kind=Secret"), ["Settled token"]);
    assert_eq!(names("?kind=Deployment.apps&phase=RollingOut").len(), 1);
    assert_eq!(names("?kind=deployment"), names("?kind=Deployment.apps"));
    assert_eq!(names("?source=another"), [""; 0]);
    // A kind is named as kubectl shows it, whatever its group.
    let (_, web) = served.get(&format!("/v1/objects/Deployment.apps/{name}/web"));
    assert_eq!(web["group"], json!("apps"));
    for kind in ["Deployment", "deployment", "deployment.apps"] {
        assert_eq!(served.get(&format!("/v1/objects/{kind}/{name}/web")), (200, web.clone()), "{kind}");
        let (code, shown) = served.get(&format!("/v1/objects/{kind}/{name}/web?view=yaml"));
        assert_eq!((code, &shown["group"]), (200, &json!("apps")), "{kind}");
    }
    assert_eq!(served.get(&format!("/v1/objects/Deployment.batch/{name}/web")).0, 404);
    let (code, env) = served.get(&format!("/v1/objects/ConfigMap/{name}/env"));
    assert_eq!((code, &env["kind"], &env["phase"]), (200, &json!("ConfigMap"), &json!("Refused")), "{env}");
    assert!(env["reason"].as_str().unwrap().contains("env.yaml is not understood"), "{env}");
}

#[track_caller]
fn tell_metrics(served: &ServingFixture, name: &str, head: &str) {
    let metrics = ask(&served.socket(), "GET", "/metrics");
    assert!(
        metrics.head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{}",
        metrics.head
    );
    for line in [
        format!("rhumb_objects{{source=\"{name}\",phase=\"Refused\"}} 1"),
        format!("rhumb_source_revision_info{{source=\"{name}\",revision=\"{head}\"}} 1"),
        format!("rhumb_source_complete{{source=\"{name}\"}} 0"),
        "rhumb_apply_total{action=\"create\",class=\"none\"} 4".to_owned(),
        format!("rhumb_drift_repaired_total{{source=\"{name}\"}} 1"),
        // From 0: who looks for an increase would not see the first one otherwise.
        format!("rhumb_rollouts_total{{source=\"{name}\",outcome=\"failed\"}} 0"),
        format!("rhumb_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
        "rhumb_rollout_in_flight 1".to_owned(),
        "rhumb_rollout_queue 1".to_owned(),
    ] {
        assert!(metrics.body.lines().any(|found| *found == line), "{line} is not in\n{}", metrics.body);
    }
    for begin in [
        "rhumb_api_requests_total{verb=\"PATCH\",code=\"201\"} ",
        "workqueue_adds_total{name=\"objects\"} ",
        "workqueue_depth{name=\"objects\"} ",
        "rhumb_last_progress_seconds{part=\"the loop\"} ",
        "rhumb_watch_age_seconds{kind=\"ConfigMap\"} ",
        "rhumb_progress_late{part=\"the loop\"} 0",
        "# EOF",
    ] {
        assert!(
            metrics.body.lines().any(|found| found.starts_with(begin)),
            "{begin} is not in\n{}",
            metrics.body
        );
    }
}

#[track_caller]
fn tell_no_secrets(served: &ServingFixture, name: &str) {
    // Nothing of a Secret's values is in any answer.
    let secret = format!("/v1/objects/Secret/{name}/token");
    let beside = format!("{secret}?view=yaml");
    for path in
        ["/metrics", "/v1/status", "/v1/objects", &secret, &beside, "/v1/diff", "/v1/events?follow=no"]
    {
        let answer = ask(&served.socket(), "GET", path);
        assert_eq!(answer.code, 200);
        for canary in ["canary-in-a-secret", "Y2FuYXJ5"] {
            assert!(!answer.body.contains(canary), "{}", answer.body);
        }
    }
}

#[test]
fn nothing_but_questions_is_answered() {
    let site = TestNamespace::new("serving-questions");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let mut served = configured(&site, &repo);
    served.await_ready();
    let check = |method: &str, path: &str, code: u16| {
        let answer = ask(&served.socket(), method, path);
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.body);
        for header in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "content-security-policy: default-src 'none'",
        ] {
            assert!(answer.head.contains(header), "{}", answer.head);
        }
        answer
    };
    check("GET", "/livez", 200);
    assert_eq!(check("HEAD", "/v1/status", 200).body, "");
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        for path in ["/v1/status", "/nowhere"] {
            assert!(check(method, path, 405).head.contains("allow: get, head"));
        }
    }
    for path in [
        "/nowhere",
        "/v1",
        "/v1/objects/ConfigMap/nowhere/none",
        "/v1/objects/a/b/c/d",
        "//",
        "/../etc/passwd",
    ] {
        check("GET", path, 404);
    }
    for path in ["/v1/objects?phase=Nowhere", "/v1/objects?unknown=1"] {
        check("GET", path, 400);
    }
    let long = format!("/v1/objects?kind={}", "a".repeat(40_000));
    // A request that is too long is not read to its end, and its sender may be cut off before the
    // answer.
    let refused = try_to_ask(&served.socket(), "GET", &long).map_or(true, |answer| answer.code == 431);
    assert!(refused);
    // It goes on answering, and ends with the daemon.
    check("GET", "/livez", 200);
    assert!(served.daemon.stop().success());
    assert!(UnixStream::connect(served.socket()).is_err());
}

#[test]
fn a_new_configuration_is_answered_for_on_the_same_socket() {
    let site = TestNamespace::new("serving-reload");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let served = configured(&site, &repo);
    served.await_ready();
    let counted =
        |line: &str| ask(&served.socket(), "GET", "/metrics").body.lines().any(|found| found == line);
    let repaired = format!("rhumb_drift_repaired_total{{source=\"{}\"}} 1", site.name);
    let change = json!({"data": {"a": "drift"}});
    site.await_data("env", "a", "one");
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &change);
    until("it is repaired", || counted(&repaired));
    let file = repo.path().with_extension("rhumb.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, before.replace("maxWorkloads: 1", "maxWorkloads: 2")).unwrap();
    served.daemon.signal("HUP");
    until("the new budget is in force", || {
        served.get("/v1/status").1["rollout"]["workloads"] == json!({"used": 0, "of": 2})
    });
    served.await_ready();
    assert!(counted(&repaired), "the counters go on");
    assert_eq!(served.get("/v1/status").1["sources"][0]["driftRepaired"], json!(1));
    assert!(counted("rhumb_config_reloads_total{outcome=\"taken\"} 1"));
    std::fs::write(&file, "kind: Nonsense\n").unwrap();
    served.daemon.signal("HUP");
    until("it is refused", || counted("rhumb_config_reloads_total{outcome=\"refused\"} 1"));
    assert_eq!(served.get("/livez").0, 200);
}

#[test]
fn what_keeps_the_socket_from_opening_keeps_nothing_else() {
    let site = TestNamespace::new("serving-taken");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let runtime = tempfile::tempdir().unwrap();
    std::fs::write(runtime.path().join("rhumb.sock"), "a file").unwrap();
    let mut command = site.command(&["run", repo.path().to_str().unwrap()]);
    command.env("RUNTIME_DIRECTORY", runtime.path());
    let daemon = Daemon::start(command);
    daemon.says(&["the HTTP API is not available", "no socket"]);
    site.await_data("env", "a", "one");
}
