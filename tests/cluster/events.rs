//! The daemon's reports in the cluster: Events on objects and on the inventory, and the status of
//! each source.

use serde_json::{Value, json};

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, WritesByHolder, eventually, until, yaml,
};

const BUDGET: &str =
    "budget: {maxWorkloads: 3, maxUnavailable: 9, startsPerMinute: 1000, soak: 0s, deadline: 15s}";

/// Returns the Events about one object: `<type> <reason> <count>: <message>`.
fn events(site: &TestNamespace<'_>, namespace: &str, name: &str) -> Vec<String> {
    let all = site.api.list(&format!("/api/v1/namespaces/{namespace}/events"));
    let of = |event: &&Value| {
        event["involvedObject"]["name"] == json!(name) && event["source"]["component"] == json!("rhumb")
    };
    let words = |event: &Value| {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}: {}", text("type"), text("reason"), event["count"], text("message"))
    };
    all.iter().filter(of).map(words).collect()
}

#[track_caller]
fn await_event(site: &TestNamespace<'_>, (namespace, name): (&str, &str), parts: &[&str]) {
    until(&format!("{name} has an Event with {parts:?}"), || {
        events(site, namespace, name).iter().any(|event| parts.iter().all(|part| event.contains(part)))
    });
}

#[test]
fn rollouts_and_repairs_are_reported_on_the_object_and_on_the_inventory() {
    let site = TestNamespace::new("told-events");
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "one")),
        ("web.yaml", yaml::deployment("web", 2, "app:1")),
    ]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    site.await_rollout("web");
    let revision = repo.change("web.yaml", &yaml::deployment("web", 2, "app:2"));
    let short = &revision[..12];
    let (web, env) = ((site.name.as_str(), "web"), (site.name.as_str(), "env"));
    let system = site.system();
    let inventory = (system.as_str(), site.name.as_str());
    let author = repo.git(&["log", "-1", "--format=%an: %s"]);
    await_event(&site, web, &["Normal RolloutStarted 1: revision ", short, &author]);
    await_event(&site, web, &["Normal RolloutSucceeded 1: revision ", short, "is rolled out", &author]);
    await_event(&site, inventory, &["RolloutSucceeded 1: Deployment ", "/web: revision ", short]);
    await_event(&site, inventory, &["Normal RevisionRead 1: revision ", short, "was read, after "]);
    await_event(&site, inventory, &["Normal RevisionSettled 1: revision ", short, "all 2 objects"]);
    site.api.merge(&site.at("ConfigMap", "env"), "them", &json!({"data": {"a": "theirs"}}));
    let expected = ["Normal DriftRepaired 1: them changed .data.a at ", "Z; put back"];
    await_event(&site, env, &expected);
    let all = events(&site, &site.name, "env");
    let credited: Vec<_> =
        all.iter().filter(|event| event.contains("Drift") && event.contains(&author)).collect();
    assert!(credited.is_empty(), "who made the commit did not make the drift: {credited:#?}");
    site.api.delete(&site.at("ConfigMap", "env"));
    await_event(&site, env, &["Normal DriftRepaired 1: it had been deleted"]);
    // kubectl shows them beside the object.
    let shown = site.kubectl(&["describe", "deployment", "web"]);
    assert!(shown.contains("RolloutSucceeded") && shown.contains("rhumb"), "{shown}");
    // A rollout that fails goes back.
    let never = yaml::workload("Deployment", "web", 2, "app:3", "{controlplane/never-ready: \"true\"}");
    let mark = daemon.mark();
    let failed = repo.change("web.yaml", &never);
    await_event(&site, web, &["Warning RolloutFailed 1: revision ", &failed[..12], "no progress for 15s"]);
    await_event(&site, web, &["Warning RolledBack 1: ", "it is back at revision ", short]);
    daemon.says_since(mark, &["rolled back"]);
    // Each event has one short line, and the first says what it is.
    let log = daemon.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("no progress for 15s")).collect();
    let words = ["rollout failed: ", "rolled back: "];
    assert_eq!(lines.len(), words.len(), "{lines:#?}");
    let is_as_expected = |(line, word): (&&str, &&str)| line.contains(*word) && line.len() < 400;
    assert!(lines.iter().zip(&words).all(is_as_expected), "{lines:#?}");
    let all = events(&site, &site.name, "web");
    assert!(!all.iter().any(|event| event.contains("Created")), "{all:#?}");
    site.rhumb(&["rollout", "retry", "deploy/web"]).ends(0).says(&["retried"]);
    await_event(&site, web, &["Normal OrderDone 1: "]);
    let author = repo.git(&["log", "-1", "--format=%an: %s"]);
    let all = events(&site, &site.name, "web");
    let credited = |event: &&String| event.contains("OrderDone") && event.contains(&author);
    assert_eq!(all.iter().find(credited), None, "who made the commit gave no order");
}

#[test]
fn the_inventory_has_the_status_of_its_source() {
    let site = TestNamespace::new("told-stand");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    let record_text = |key: &str| {
        let data = site.inventory().map(|inventory| inventory["data"][key].clone());
        data.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let head = repo.head();
    until("all is well", || record_text("status").contains(": 1 object, applied and healthy"));
    assert!(record_text("status").starts_with(&head[..12]), "{}", record_text("status"));
    assert_eq!(record_text("not-as-wanted"), "");
    repo.write("bad.yaml", &yaml::config_map("bad_name", "a", "b"));
    repo.write(
        "web.yaml",
        &yaml::workload("Deployment", "web", 1, "app:1", "{controlplane/never-ready: \"true\"}"),
    );
    repo.commit("Add what is not healthy");
    // Before it is there, it waits.
    let counts = "3 objects: 1 Settled, 1 Progressing, 1 Refused";
    until("what is not healthy is counted", || record_text("status").contains(counts));
    let open = record_text("not-as-wanted");
    assert!(open.contains("Refused ConfigMap ") && open.contains("/bad_name: its manifest"), "{open}");
    assert!(open.contains("Progressing Deployment.apps ") && open.contains("/web: "), "{open}");
    let line = site.kubectl(&[
        "get",
        "cm",
        "--namespace",
        &site.system(),
        "--selector=applyset.kubernetes.io/id",
        "--output=custom-columns=SOURCE:.metadata.name,STATUS:.data.status",
    ]);
    assert!(line.contains(&site.name) && line.contains(counts), "{line}");
}

/// Returns the number of Events that a user has written of late.
fn written(window: &AuditWindow<'_>) -> usize {
    window.calls().iter().filter(|call| call.resource == "events" && call.is_write()).count()
}

#[test]
fn what_waits_to_be_reported_is_not_reported_by_a_replica_that_lost_the_source() {
    let mut one = TestNamespace::new("events-fenced");
    let mut other = one.with_empty_state();
    one.known_as("one");
    other.known_as("other");
    // Each is refused, and said to be so, on itself and on the inventory: more than a burst.
    let refused =
        |number| format!("apiVersion: v1\nkind: Service\nmetadata: {{name: s{number}}}\nspec: {{}}\n");
    let files: Vec<(String, String)> =
        (0..40).map(|number| (format!("{number}.yaml"), refused(number))).collect();
    let repo = Repo::new(&files);
    let text = one.configuration(repo.path(), "leases: always");
    let (of_one, of_other) = (one.window(), other.window());
    let first = one.configured(&text);
    let many = |window: &AuditWindow<'_>, least: usize| {
        eventually(&format!("{least} Events"), DEFAULT_TIMEOUT, || match written(window) {
            count if count >= least => Ok(()),
            count => Err(count.to_string()),
        });
    };
    many(&of_one, 27);
    first.signal("STOP");
    let _second = other.configured(&text);
    many(&of_other, 1);
    let mark = first.mark();
    first.signal("CONT");
    first.says_since(mark, &["lost the Lease of the source"]);
    // One each second is due meanwhile.
    many(&of_other, written(&of_other).max(25) + 3);
    let counts = WritesByHolder::by(one.cluster, [&one.user, &other.user])
        .judge(|event| ["events", "services"].contains(&&*event.resource).then(|| one.name.clone()));
    assert!(counts["events"] >= 50, "{counts:?}");
}

#[test]
fn the_events_of_another_daemon_are_in_the_cluster_alone_and_that_is_reported() {
    let (one, other) = (TestNamespace::new("events-one"), TestNamespace::new("events-other"));
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let sockets = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let daemons = [(&one, &sockets[0]), (&other, &sockets[1])].map(|(site, runtime)| {
        let mut command = site.command_with_config(&["run"], &site.configuration(repo.path(), ""));
        command.env("RUNTIME_DIRECTORY", runtime.path());
        Daemon::start(command)
    });
    one.await_data("env", "a", "1");
    other.await_data("env", "a", "1");
    let events = |socket: &tempfile::TempDir, source: &str| {
        let socket = socket.path().join("rhumb.sock");
        one.rhumb(&["events", source, "--socket", socket.to_str().unwrap()]).ends(0)
    };
    let read = |socket: &tempfile::TempDir, source: &str| {
        eventually("what was read is an event", DEFAULT_TIMEOUT, || {
            let shown = events(socket, source);
            if shown.stdout.contains("RevisionRead") { Ok(shown) } else { Err(shown.all()) }
        })
    };
    assert_eq!(read(&sockets[0], &one.name).stderr, "");
    assert_eq!(read(&sockets[1], &other.name).stderr, "");
    let shown = events(&sockets[0], &other.name);
    assert_eq!(shown.stdout, "");
    shown.says(&[&format!("has no source {} now", other.name), "kubectl get events -A"]);
    drop(daemons);
}
