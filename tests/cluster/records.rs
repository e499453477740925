//! rhumb's own records in its namespace, with foreign writes.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Daemon, Folder, Repo, TestNamespace, ask, at, eventually, run, yaml};

#[test]
fn a_rollout_ledger_that_cannot_be_read_is_reported_everywhere_with_the_command_that_mends_it() {
    is_reported_until_it_is_deleted("unread-budget", &json!({"data": {"claims": "{"}}), "it cannot be read");
}

#[test]
fn a_rollout_ledger_that_nobody_can_write_is_reported_everywhere_with_the_command_that_mends_it() {
    let why = "it cannot be written: `immutable` is set";
    is_reported_until_it_is_deleted("fixed-budget", &json!({"immutable": true}), why);
    let binary = json!({"data": null, "binaryData": {"claims": "e30="}});
    let why = "it cannot be written: `claims` is in its `binaryData`";
    is_reported_until_it_is_deleted("binary-budget", &binary, why);
}

/// Changes the rollout ledger so that no rollout begins any more.
fn is_reported_until_it_is_deleted(name: &str, change: &Value, why: &str) {
    let site = TestNamespace::new(name);
    let repo = Repo::new(&[("web.yaml", yaml::deployment("web", 1, "example.org/web:1"))]);
    let runtime = tempfile::tempdir().unwrap();
    let source = repo.path().to_str().unwrap();
    let mut command = site.command(&["run", source]);
    command.env("RUNTIME_DIRECTORY", runtime.path());
    let daemon = Daemon::start(command);
    site.await_rollout("web");
    let name = "rollout-budget.rhumb.dev";
    let budget = at("ConfigMap", &site.system(), name);
    site.api.merge(&budget, "somebody", change);
    repo.change("web.yaml", &yaml::deployment("web", 1, "example.org/web:2"));
    let mends = format!("`kubectl -n {} delete configmap {name}`", site.system());
    let expected = [name, why, "no rollout begins", &mends];
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
    eventually("`why` tells that it waits, as the daemon reported it last", DEFAULT_TIMEOUT, || {
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
fn an_inventory_that_nobody_can_write_is_reported_with_the_command_and_no_order_counts_as_done_before() {
    let site = TestNamespace::new("fixed-inventory");
    let repo = Repo::new(&[("map.yaml", yaml::config_map("map", "a", "1"))]);
    let runtime = tempfile::tempdir().unwrap();
    let daemon = listening(&site, &repo, &runtime);
    site.await_data("map", "a", "1");
    repo.change("map.yaml", &yaml::config_map("map", "a", "2"));
    site.await_data("map", "a", "2");
    let inventory = at("ConfigMap", &site.system(), &site.name);
    site.api.merge(&inventory, "somebody", &json!({"immutable": true}));
    let fixed =
        "fixed-inventory: it cannot be written: `immutable` is set: no order to source fixed-inventory";
    let reported = [fixed, "get configmap fixed-inventory -o yaml", "kubectl replace --force -f -`"];
    daemon.says(&[&["WARN"], &reported[..]].concat());
    await_reported(&site, &[&["status"], &["check", repo.path().to_str().unwrap()]], &reported);
    site.rhumb(&["rollout", "undo", "configmap/map"]).ends(5).says(&reported);
    assert!(!daemon.log().contains("undone: "), "{}", daemon.log());
    // As the command does it.
    let mut object = site.api.get(&inventory).unwrap();
    for key in ["uid", "resourceVersion", "managedFields", "creationTimestamp"] {
        object["metadata"].as_object_mut().unwrap().remove(key);
    }
    object.as_object_mut().unwrap().remove("immutable");
    site.api.delete(&inventory);
    site.api.create(&at("ConfigMap", &site.system(), ""), "somebody", &object);
    daemon.says(&["undone: ", "ConfigMap fixed-inventory/map"]);
    site.await_data("map", "a", "1");
}

/// Starts a daemon with a socket.
fn listening(site: &TestNamespace<'_>, repo: &Repo, runtime: &tempfile::TempDir) -> Daemon {
    let mut command = site.command(&["run", repo.path().to_str().unwrap()]);
    command.env("RUNTIME_DIRECTORY", runtime.path());
    Daemon::start(command)
}

/// Waits until these texts are in the output of each of these commands, whatever it ends with.
fn await_reported(site: &TestNamespace<'_>, commands: &[&[&str]], texts: &[&str]) {
    for command in commands {
        eventually(&format!("{command:?} tells"), DEFAULT_TIMEOUT, || {
            let reported = site.rhumb(command).all();
            if texts.iter().all(|text| reported.contains(text)) { Ok(()) } else { Err(reported) }
        });
    }
}

#[test]
fn lines_of_what_failed_that_cannot_be_read_are_reported_everywhere_and_hold_back_what_is_new() {
    let site = TestNamespace::new("unread-rejected");
    let repo = Repo::new(&[("map.yaml", yaml::config_map("map", "a", "1"))]);
    let runtime = tempfile::tempdir().unwrap();
    let daemon = listening(&site, &repo, &runtime);
    site.await_data("map", "a", "1");
    let inventory = at("ConfigMap", &site.system(), &site.name);
    let garbage = "garbage\n{}\n";
    site.api.merge(&inventory, "somebody", &json!({"data": {"rejected": garbage}}));
    let system = site.system();
    let mends = format!(
        "`kubectl -n {system} patch configmap unread-rejected -p '{{\"data\":{{\"rejected\":null}}}}'`"
    );
    let reported = ["unread-rejected: 2 lines of `rejected` cannot be read", "nothing new", &mends];
    daemon.says(&[&["WARN"], &reported[..]].concat());
    repo.change("map.yaml", &yaml::config_map("map", "a", "2"));
    let source = repo.path().to_str().unwrap();
    let socket = runtime.path().join("rhumb.sock");
    let of_daemon = ["status", "--socket", socket.to_str().unwrap()];
    await_reported(&site, &[&["status"], &of_daemon, &["why", "cm/map"], &["check", source]], &reported);
    site.rhumb(&["check", source]).ends(1);
    let ready = ask(&socket, "GET", "/readyz");
    assert_eq!(ready.code, 200, "{}", ready.body);
    assert!(reported.iter().all(|text| ready.body.contains(text)), "{}", ready.body);
    eventually("an Event tells it", DEFAULT_TIMEOUT, || {
        let events = site.api.list(&format!("/api/v1/namespaces/{}/events", site.system()));
        let is_reported = events.iter().any(|event| event["reason"] == "RecordUnreadable");
        if is_reported { Ok(()) } else { Err(format!("{events:?}")) }
    });
    // The content in force stays defended, and the lines are kept.
    site.api.merge(&site.at("ConfigMap", "map"), "somebody", &json!({"data": {"a": "foreign"}}));
    site.await_data("map", "a", "1");
    assert_eq!(site.api.value(&inventory, "/data/rejected"), json!(garbage));
    site.api.merge(&inventory, "somebody", &json!({"data": {"rejected": null}}));
    site.await_data("map", "a", "2");
    eventually("nothing is reported any more", DEFAULT_TIMEOUT, || {
        let reported = site.rhumb(&of_daemon).all() + &site.rhumb(&["status"]).all();
        if reported.contains("cannot be read") { Err(reported) } else { Ok(()) }
    });
}

#[test]
fn lines_of_ended_jobs_that_cannot_be_read_keep_new_ones_from_running() {
    let site = TestNamespace::new("unread-finished");
    let repo = Repo::new(&[("map.yaml", yaml::config_map("map", "a", "1"))]);
    let daemon = site.daemon(repo.path());
    site.await_data("map", "a", "1");
    let inventory = at("ConfigMap", &site.system(), &site.name);
    site.api.merge(&inventory, "somebody", &json!({"data": {"finished-jobs": "Job.batch once\n"}}));
    let reported =
        ["unread-finished: 1 line of `finished-jobs` cannot be read", "{\"data\":{\"finished-jobs\":null}}"];
    daemon.says(&[&["WARN"], &reported[..]].concat());
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  ttlSecondsAfterFinished: 100\n  \
               template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: main, image: once}]\n";
    repo.write("job.yaml", job);
    repo.change("map.yaml", &yaml::config_map("map", "a", "2"));
    site.await_data("map", "a", "2");
    await_reported(&site, &[&["status"], &["why", "job/once"]], &reported);
    assert!(!site.has("Job", "once"));
    site.api.merge(&inventory, "somebody", &json!({"data": {"finished-jobs": null}}));
    site.await_object("Job", "once");
}

#[test]
fn what_another_source_says_and_cannot_be_read_is_reported_with_the_command_that_ends_it() {
    let site = TestNamespace::new("unread-peer");
    let other = Folder::new(&[("other.yaml", yaml::config_map("other", "a", "1"))]);
    let folder = other.path().to_str().unwrap();
    let mut command = site.bare_command();
    command.args(["apply", folder, "-n", &site.name, "--source", "unread-peer-other"]);
    run(command).ends(0);
    let peer = at("ConfigMap", &site.system(), "unread-peer-other");
    site.api.merge(&peer, "somebody", &json!({"data": {"handover": "read"}}));
    let repo = Repo::new(&[
        ("map.yaml", yaml::config_map("map", "a", "1")),
        ("old.yaml", yaml::config_map("old", "a", "1")),
    ]);
    let runtime = tempfile::tempdir().unwrap();
    let daemon = listening(&site, &repo, &runtime);
    site.await_data("old", "a", "1");
    let window = site.window();
    repo.remove("old.yaml");
    repo.commit("Drop it");
    let reported = [
        "unread-peer-other: `handover` cannot be read: it is garbled",
        "`rhumb uninstall unread-peer-other`",
    ];
    daemon.says(&[&["WARN"], &reported[..]].concat());
    let socket = runtime.path().join("rhumb.sock");
    let of_daemon = ["status", "--socket", socket.to_str().unwrap()];
    let source = repo.path().to_str().unwrap();
    await_reported(&site, &[&["status"], &of_daemon, &["check", source]], &reported);
    let ready = ask(&socket, "GET", "/readyz");
    assert!(ready.code == 200 && reported.iter().all(|text| ready.body.contains(text)), "{}", ready.body);
    window.assert_no_deletes();
    let mut command = site.bare_command();
    command.args(["apply", folder, "-n", &site.name, "--source", "unread-peer-other"]);
    run(command).ends(0);
    eventually("it is pruned", DEFAULT_TIMEOUT, || {
        if site.has("ConfigMap", "old") { Err("it is there") } else { Ok(()) }
    });
}

#[test]
fn an_inventory_that_somebody_deletes_is_written_anew_and_so_is_what_goes_with_it() {
    let site = TestNamespace::new("lost-inventory");
    let repo = Repo::new(&[("map.yaml", yaml::config_map("map", "a", "1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_data("map", "a", "1");
    let inventory = at("ConfigMap", &site.system(), &site.name);
    let orders = at("ConfigMap", &site.system(), &format!("orders.{}.rhumb.dev", site.name));
    let owner = || site.api.value(&orders, "/metadata/ownerReferences/0/uid");
    let uid = || site.api.value(&inventory, "/metadata/uid");
    let await_both = |gone: &serde_json::Value| {
        eventually("both are there", DEFAULT_TIMEOUT, || {
            let (uid, owner) = (uid(), owner());
            if uid.is_string() && uid != *gone && uid == owner {
                Ok(())
            } else {
                Err(format!("{uid}, {owner}"))
            }
        });
    };
    await_both(&json!(null));
    let window = site.window();
    let before = uid();
    site.api.delete(&inventory);
    await_both(&before);
    // The garbage collector deletes what belongs to the one that is gone, some time later.
    site.api.delete(&orders);
    await_both(&before);
    let orders_name = format!("orders.{}.rhumb.dev", site.name);
    for name in [&site.name, &orders_name] {
        let mut all = window.all_writes();
        all.retain(|event| event.name == *name && event.verb == "create" && event.code == 201);
        // The garbage collector may delete the second one by itself, before we do.
        let most = if *name == orders_name { 2 } else { 1 };
        assert!((1..=most).contains(&all.len()), "{name} was made {} times", all.len());
    }
}
