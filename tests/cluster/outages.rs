//! The API server itself goes away and comes back. Each test has a control plane of its own.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use controlplane::{Fault, Part, Requests, ResponseCut, Rule};
use serde_json::json;

use crate::support::{DedicatedCluster, Repo, TestNamespace, eventually, yaml};

/// The time after the server's return by which everything must be settled, on a busy machine.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(45);

/// The time limit of an end on a busy machine. The server is away for longer.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// A long outage: all backoffs have grown.
const LONG_OUTAGE: Duration = Duration::from_mins(1);

fn repo() -> Repo {
    Repo::new(&[
        ("follows.yaml", yaml::config_map("follows", "a", "1")),
        ("defended.yaml", yaml::config_map("defended", "a", "1")),
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("web.yaml", yaml::service("web", "web")),
    ])
}

fn await_all(site: &TestNamespace<'_>) {
    site.await_data("follows", "a", "1");
    site.await_data("defended", "a", "1");
    site.await_object("Secret", "key");
    site.await_object("Service", "web");
}

#[track_caller]
fn await_secret(site: &TestNamespace<'_>, left: Duration) {
    eventually("the Secret is there", left, || site.get("Secret", "key").ok_or("it is not"));
}

#[test]
fn an_api_server_that_is_killed_and_restarted_at_once() {
    let own = DedicatedCluster::bare();
    let site = TestNamespace::on(&own, "outage-short");
    let repo = repo();
    let mut daemon = site.daemon(repo.path());
    await_all(&site);
    let window = site.window();
    for turn in 2..4_u32 {
        own.kill_apiserver().unwrap();
        let wanted = turn.to_string();
        repo.change("follows.yaml", &yaml::config_map("follows", "a", &wanted));
        own.start_apiserver().unwrap();
        let back = Instant::now();
        site.api.merge(&site.at("ConfigMap", "defended"), "them", &json!({"data": {"a": "theirs"}}));
        site.api.delete(&site.at("Secret", "key"));
        let left = || RECOVERY_TIMEOUT.saturating_sub(back.elapsed());
        site.await_data_within(left(), "follows", "a", &wanted);
        site.await_data_within(left(), "defended", "a", "1");
        await_secret(&site, left());
        assert!(daemon.is_running());
    }
    window.assert_no_deletes();
    for (resource, name) in [("configmaps", "follows"), ("configmaps", "defended"), ("secrets", "key")] {
        let sent = window.to(resource, name).into_iter().filter(|event| event.code < 300).count();
        assert_eq!(sent, 2, "{name}: once for each time");
    }
}

#[test]
fn an_api_server_that_is_away_for_a_minute() {
    let own = DedicatedCluster::bare();
    let mut site = TestNamespace::on(&own, "outage-long");
    let proxy = own.fault_proxy(3).unwrap();
    site.through(&proxy);
    let repo = repo();
    let mut daemon = site.daemon(repo.path());
    await_all(&site);
    let other = TestNamespace::on(&own, "outage-stop");
    let mut stopped = other.daemon(repo.path());
    await_all(&other);
    let late = TestNamespace::on(&own, "outage-late");
    let window = site.window();

    own.kill_apiserver().unwrap();
    let gone = Instant::now();
    let calls = proxy.add(Rule::new(Requests::any(), Fault::Refuse(ResponseCut::Close)));
    let before = daemon.processor_time();
    repo.change("follows.yaml", &yaml::config_map("follows", "a", "2"));
    // One that is asked to end meanwhile does, and one that is started meanwhile waits.
    let since = Instant::now();
    assert_eq!(stopped.stop().code(), Some(0));
    assert!(since.elapsed() < END_TIMEOUT, "it took {:?}", since.elapsed());
    let mut early = late.daemon(repo.path());
    early.says(&["cannot be reached", "retry in"]);
    thread::sleep((LONG_OUTAGE / 2).saturating_sub(gone.elapsed()));
    let early_calls = proxy.hits(calls).fired;
    thread::sleep(LONG_OUTAGE.saturating_sub(gone.elapsed()));
    assert!(daemon.is_running() && early.is_running());
    let used = daemon.processor_time().saturating_sub(before);
    assert!(used < Duration::from_secs(3), "{used:?} of processor time while nothing could be done");
    // It asks less often, and goes on asking.
    let late_calls = proxy.remove(calls).fired - early_calls;
    let counts = format!("{early_calls} and {late_calls} calls in the halves of {LONG_OUTAGE:?}");
    assert!(late_calls > 0 && late_calls <= early_calls && early_calls < 100, "{counts}");

    own.start_apiserver().unwrap();
    let back = Instant::now();
    site.api.merge(&site.at("ConfigMap", "defended"), "them", &json!({"data": {"a": "theirs"}}));
    site.api.delete(&site.at("Secret", "key"));
    let left = || RECOVERY_TIMEOUT.saturating_sub(back.elapsed());
    site.await_data_within(left(), "follows", "a", "2");
    site.await_data_within(left(), "defended", "a", "1");
    await_secret(&site, left());
    late.await_data_within(left(), "follows", "a", "2");
    await_secret(&late, left());
    window.assert_no_deletes();
    assert_eq!(window.writes().iter().filter(|event| event.code < 300).count(), 3, "{:#?}", window.writes());
}

/// Stops etcd and the API server, does something, and starts them again.
fn meanwhile(own: &DedicatedCluster, deed: impl FnOnce(&Path)) {
    own.kill_apiserver().unwrap();
    own.kill(Part::Etcd).unwrap();
    deed(&own.dir().join("etcd"));
    own.start_part(Part::Etcd).unwrap();
    own.start_apiserver().unwrap();
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[test]
fn an_api_server_whose_data_is_restored_from_an_older_backup() {
    let own = DedicatedCluster::bare();
    let site = TestNamespace::on(&own, "outage-restored");
    let names = ["a", "b", "c", "d", "e"];
    let repo = Repo::new(&names.map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "1"))));
    let mut daemon = site.daemon(repo.path());
    for name in names {
        site.await_data(name, "a", "1");
    }
    let backups = tempfile::TempDir::new().unwrap();
    let backup = backups.path().join("etcd");
    meanwhile(&own, |data| copy(data, &backup));
    // Changes from now on are forgotten later: contents, a deletion, a new object.
    for value in ["2", "3"] {
        repo.change("b.yaml", &yaml::config_map("b", "a", value));
        site.await_data("b", "a", value);
    }
    repo.write("f.yaml", &yaml::config_map("f", "a", "1"));
    repo.remove("a.yaml");
    repo.commit("Another for one");
    site.await_absence("ConfigMap", "a");
    let window = site.window();
    meanwhile(&own, |data| {
        std::fs::remove_dir_all(data).unwrap();
        copy(&backup, data);
    });
    let back = Instant::now();
    let left = || RECOVERY_TIMEOUT.saturating_sub(back.elapsed());
    site.await_data_within(left(), "b", "a", "3");
    site.await_data_within(left(), "f", "a", "1");
    assert!(!window.to("configmaps", "b").is_empty(), "it was not restored");
    // It came back without being wanted, and goes again; nothing else does.
    eventually("it is pruned again", RECOVERY_TIMEOUT, || {
        if site.has("ConfigMap", "a") { Err("it is there") } else { Ok(()) }
    });
    assert!(names[1..].iter().all(|name| site.has("ConfigMap", name)));
    let deleted: Vec<_> =
        window.deletes().into_iter().filter(|event| event.code == 200).map(|e| e.name).collect();
    assert_eq!(deleted, ["a"]);
    assert!(daemon.is_running());
}
