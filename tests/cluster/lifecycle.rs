//! The start and the end of a daemon, beside a second one.

use std::thread;
use std::time::{Duration, Instant};

use controlplane::{Fault, Requests, ResponseCut, Rule};
use serde_json::json;

use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually, until, yaml};

/// The time limit of an end that has nothing to wait for: a bit less than the 3 s that an answer is
/// waited for.
const PROMPT: Duration = Duration::from_millis(2_900);

/// The same with an answer that does not come, on a busy machine.
const PATIENT: Duration = Duration::from_secs(15);

fn shop() -> Repo {
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  maxReplicas: 9\n  \
                  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n";
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  ttlSecondsAfterFinished: 1\n  template:\n    \
               spec:\n      restartPolicy: Never\n      containers: [{name: main, image: \"app:1\"}]\n";
    let disk = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\nspec:\n  storageClassName: nowhere\n  \
                accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("web.yaml", yaml::documents(&[yaml::deployment("web", 2, "app:1"), yaml::service("web", "web")])),
        ("scaler.yaml", scaler.to_owned()),
        ("agent.yaml", yaml::workload("DaemonSet", "agent", 0, "app:1", "{}")),
        ("db.yaml", yaml::workload("StatefulSet", "db", 2, "app:1", "{}")),
        ("job.yaml", job.to_owned()),
        // A claim that nobody will ever bind: not all is healthy.
        ("disk.yaml", disk.to_owned()),
        ("last.yaml", yaml::config_map("last", "a", "1")),
    ])
}

#[test]
fn a_restart_on_an_unchanged_cluster_sends_nothing() {
    let site = TestNamespace::new("restart");
    let repo = shop();
    let mut daemon = site.daemon(repo.path());
    site.await_rollout("web");
    site.await_object("StatefulSet", "db");
    site.await_object("HorizontalPodAutoscaler", "web");
    site.await_object("ConfigMap", "last");
    // It has gone by itself, which is its end and no drift.
    eventually("the finished Job is noted", DEFAULT_TIMEOUT, || {
        let noted = site.inventory().is_some_and(|inventory| inventory["data"]["finished-jobs"].is_string());
        if noted && !site.has("Job", "once") { Ok(()) } else { Err("it is not") }
    });
    eventually("its status is written", DEFAULT_TIMEOUT, || {
        let inventory = site.inventory().unwrap_or_default();
        let line = inventory["data"]["status"].as_str().unwrap_or_default();
        if line.ends_with(": 10 objects: 9 Settled, 1 Progressing") { Ok(()) } else { Err(line.to_owned()) }
    });
    assert_eq!(daemon.stop().code(), Some(0));
    let bare = site.with_empty_state();
    for (turn, site) in [&site, &bare].into_iter().enumerate() {
        let window = site.window();
        let mut daemon = site.daemon(repo.path());
        // The only write is the one that a commit asks for after all has been looked at.
        daemon.says(&["read", "files=9"]);
        let wanted = format!("{}", turn + 2);
        repo.change("last.yaml", &yaml::config_map("last", "a", &wanted));
        site.await_data("last", "a", &wanted);
        assert_eq!(daemon.stop().code(), Some(0));
        let sent: Vec<_> = window.writes().into_iter().map(|event| event.name).collect();
        // Then its inventory may name the new revision.
        assert_eq!(sent.first().map(String::as_str), Some("last"), "{sent:?}");
        assert!(sent[1..].iter().all(|name| *name == site.name), "{sent:?}");
    }
}

#[test]
fn a_daemon_at_rest_ends_at_once_when_it_is_asked_to() {
    let site = TestNamespace::new("stop-rest");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    for signal in ["TERM", "INT"] {
        let mut daemon = site.daemon(repo.path());
        daemon.says(&["read"]);
        site.await_object("ConfigMap", "env");
        let since = Instant::now();
        daemon.signal(signal);
        assert_eq!(daemon.ended(DEFAULT_TIMEOUT).code(), Some(0));
        assert!(since.elapsed() < PROMPT, "it took {:?}", since.elapsed());
    }
}

#[test]
fn a_daemon_in_the_middle_of_its_work_ends_with_the_writes_that_are_on_their_way() {
    let mut site = TestNamespace::new("stop-work");
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let files: Vec<_> = (0..200)
        .map(|number| (format!("{number}.yaml"), yaml::config_map(&format!("m{number}"), "a", "1")))
        .collect();
    let repo = Repo::new(&files);
    let pause = Duration::from_millis(200);
    proxy.add(Rule::new(Requests::any().method("PATCH"), Fault::Delay(pause, pause)));
    let window = site.window();
    let mut daemon = site.daemon(repo.path());
    daemon.says(&["created"]);
    let since = Instant::now();
    assert_eq!(daemon.stop().code(), Some(0));
    assert!(since.elapsed() < PROMPT, "it took {:?}", since.elapsed());
    let made = site.api.list(&site.at("ConfigMap", "")).len();
    assert!((1..files.len()).contains(&made), "{made} of {} were made", files.len());
    // All that was sent was also waited for.
    let created = daemon.full_log().lines().filter(|line| line.contains("created")).count();
    assert_eq!(window.writes().len(), created);
}

#[test]
fn a_daemon_whose_writes_are_never_answered_ends_all_the_same() {
    let mut site = TestNamespace::new("stop-silent");
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let rule = proxy.add(Rule::new(Requests::any().method("PATCH"), Fault::Refuse(ResponseCut::Silence)));
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let mut daemon = site.daemon(repo.path());
    eventually("a write is on its way", DEFAULT_TIMEOUT, || {
        if proxy.hits(rule).fired > 0 { Ok(()) } else { Err("none is") }
    });
    let since = Instant::now();
    assert_eq!(daemon.stop().code(), Some(0));
    assert!(since.elapsed() < PATIENT, "it took {:?}", since.elapsed());
}

#[test]
fn two_daemons_of_the_same_source_do_not_fight() {
    let site = TestNamespace::new("two-daemons");
    let names: Vec<String> = (0..12).map(|number| format!("m{number}")).collect();
    let file = |name: &String| format!("{name}.yaml");
    let files: Vec<_> = names.iter().map(|name| (file(name), yaml::config_map(name, "a", "1"))).collect();
    let repo = Repo::new(&files);
    let window = site.window();
    let twin = site.with_empty_state();
    let mut daemons: Vec<Daemon> = vec![site.daemon(repo.path()), twin.daemon(repo.path())];
    for name in &names {
        site.await_data(name, "a", "1");
    }
    for daemon in &daemons {
        daemon.says(&["read"]);
    }
    for turn in 2..5 {
        let wanted = turn.to_string();
        for name in &names {
            repo.write(&file(name), &yaml::config_map(name, "a", &wanted));
        }
        repo.commit("Change all");
        for name in &names {
            site.await_data(name, "a", &wanted);
        }
        site.api.merge(&site.at("ConfigMap", "m1"), "them", &json!({"data": {"a": "theirs"}}));
        site.await_data("m1", "a", &wanted);
        site.api.delete(&site.at("ConfigMap", "m2"));
        site.await_data("m2", "a", &wanted);
    }
    window.assert_no_deletes();
    repo.remove(&file(&names[11]));
    repo.commit("Remove one");
    for daemon in &daemons {
        daemon.says(&["read", &repo.head()]);
    }
    site.await_absence("ConfigMap", "m11");
    // Each of them sends each change once: 4 contents, and 3 repairs of two of the objects. Where
    // one has read a commit and the other has not yet, that one may put the content before it back,
    // once.
    for name in &names {
        let repaired = ["m1", "m2"].contains(&name.as_str());
        let most = 3 * if repaired { 7 } else { 4 };
        let sent = window.to("configmaps", name);
        let sent: Vec<_> = sent.iter().filter(|event| event.verb != "delete").collect();
        assert!(sent.len() <= most, "{} writes to {name}: {sent:#?}", sent.len());
        let made = sent.iter().filter(|event| event.code == 201).count();
        let deleted =
            window.deletes().into_iter().filter(|event| event.code < 300 && event.name == *name).count();
        match name.as_str() {
            "m2" => assert_eq!((made, deleted), (4, 0), "{name}"),
            "m11" => assert!(deleted == made && made <= 2, "{name}: {made}, {deleted}"),
            _ => assert_eq!((made, deleted), (1, 0), "{name}"),
        }
    }
    // And then both are at rest, once each has reported the status of the source.
    eventually("both are at rest", DEFAULT_TIMEOUT, || {
        let rest = site.window();
        thread::sleep(Duration::from_secs(3));
        rest.is_calm()
    });
    assert!(daemons.iter_mut().all(Daemon::is_running));
}

#[test]
fn a_change_that_the_watch_never_reported_is_found_by_the_audit() {
    let mut site = TestNamespace::new("audit");
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("gone.yaml", yaml::config_map("gone", "a", "1")),
    ]);
    let _daemon = site.configured(&site.configuration(repo.path(), "resync: 3s"));
    site.await_data("env", "a", "1");
    site.await_object("ConfigMap", "gone");
    let window = site.window();
    let watches = Requests::any().watches().path_prefix("/api/v1/configmaps");
    // Objects may be there before what was listed is watched.
    until("it is watched", || proxy.open(&watches) == 1);
    assert_eq!(proxy.end_open(&watches, ResponseCut::Silence), 1);
    site.api.merge(&site.at("ConfigMap", "env"), "them", &json!({"data": {"a": "theirs"}}));
    site.api.delete(&site.at("ConfigMap", "gone"));
    site.await_data_within(Duration::from_secs(15), "env", "a", "1");
    site.await_object("ConfigMap", "gone");
    assert_eq!(window.writes().len(), 2);
}
