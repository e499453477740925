//! Somebody else wants the same objects otherwise, again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use controlplane::{AuditEvent, Fault, Requests, Rule};
use serde_json::{Value, json};

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, at, eventually, in_time, until, yaml,
};

/// Ten writes a second.
const FIGHT_INTERVAL: Duration = Duration::from_millis(100);

/// The number of repairs of an object at once. Each further one has a pause before it.
const PROMPT_REPAIRS: usize = 5;

/// The pause before a repair that restarts no pods, in a fight.
const PAUSE: Duration = Duration::from_secs(10);

/// The time over which repairs are counted, and so the pause of one that restarts pods.
const WINDOW: Duration = Duration::from_mins(1);

/// The most writes of us in a row that meet a newer view of another writer and are refused, at
/// once. Each further one has a pause of a second before it.
const PROMPT_CONFLICTS: usize = 3;

/// The writes of a source's record in a row that each replace one of another writer, at once. Each
/// further one has a pause before it.
const PROMPT_RECORDS: usize = 3;

/// That pause.
const RECORD_PAUSE: Duration = Duration::from_secs(5);

/// Does something ten times a second, as long as there is somebody who waits for the outcome.
fn beat(until: &AtomicBool, mut deed: impl FnMut(usize)) {
    let mut next = Instant::now();
    for turn in 0.. {
        if until.load(Ordering::SeqCst) {
            return;
        }
        deed(turn);
        next += FIGHT_INTERVAL;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// The guard that ends the fights, also when the test fails.
struct FightGuard<'a>(&'a AtomicBool);

impl Drop for FightGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits until an object was repaired once more than is done at once. Checks by the audit log that
/// this time lies between that repair and the last one, or the first one.
#[track_caller]
fn await_calm_repair(window: &AuditWindow<'_>, resource: &str, name: &str, pause: Duration) {
    let (taken, refused) = in_time(&format!("{name} is repaired after a pause"), DEFAULT_TIMEOUT, || {
        let all = window.to(resource, name);
        let (taken, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(|event| event.code < 300);
        if taken.len() > PROMPT_REPAIRS { Ok((taken, refused)) } else { Err(format!("{taken:#?}")) }
    });
    let next = taken[PROMPT_REPAIRS].timestamp;
    // The pause begins with an answer, and so after its request. The log notes an answer some
    // moments after it was sent.
    let since = |event: &AuditEvent| next.duration_since(event.timestamp).unsigned_abs();
    let has_passed = |event: &AuditEvent, time: Duration| since(event) >= time;
    let is_calm = has_passed(&taken[PROMPT_REPAIRS - 1], pause) || has_passed(&taken[0], WINDOW);
    assert!(is_calm, "{name}: {taken:#?}");
    let lasted = taken[taken.len() - 1].timestamp.duration_since(taken[0].timestamp).unsigned_abs();
    let most = PROMPT_CONFLICTS * taken.len() + usize::try_from(lasted.as_secs()).unwrap();
    assert!(refused.len() <= most, "{name}: more than {most}: {refused:#?}");
}

#[test]
fn another_writer_at_ten_writes_a_second_is_answered_every_ten_seconds_and_named() {
    let site = TestNamespace::new("fight");
    let names = ["field", "label", "part-of", "release", "bare", "gone", "free"];
    let files: Vec<_> =
        names.iter().map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "1"))).collect();
    let repo = Repo::new(&files);
    let daemon = site.daemon(repo.path());
    for name in names {
        site.await_object("ConfigMap", name);
    }
    let window = site.window();
    let over = AtomicBool::new(false);
    let patch = |name: &'static str, patch: fn(usize) -> Value| {
        let (site, over) = (&site, &over);
        move || {
            beat(over, |turn| {
                // It may be gone, or have changed under the patch: then there is the next one.
                let path = format!("{}?fieldManager=rival-{name}", site.at("ConfigMap", name));
                let _ = site.api.call("PATCH", &path, "application/merge-patch+json", &patch(turn));
            });
        }
    };
    let part_of = |_| json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": "mine"}}});
    let release = |_| json!({"metadata": {"annotations": {"rhumb.dev/release": null}}});
    let bare = |_| json!({"metadata": {"annotations": null, "labels": null}});
    thread::scope(|scope| {
        let _over = FightGuard(&over);
        scope.spawn(patch("field", |turn| json!({"data": {"a": turn.to_string()}})));
        scope.spawn(patch(
            "label",
            |turn| json!({"metadata": {"labels": null}, "data": {"b": turn.to_string()}}),
        ));
        scope.spawn(patch("part-of", part_of));
        scope.spawn(patch("release", release));
        scope.spawn(patch("bare", bare));
        scope.spawn(|| beat(&over, |_| site.api.delete(&site.at("ConfigMap", "gone"))));
        daemon.says(&["ConfigMap fight/field", "rival-field", "keeps changing the same fields"]);
        for name in &names[..6] {
            await_calm_repair(&window, "configmaps", name, PAUSE);
        }
    });
    let is_report =
        |line: &&str| line.contains("fight/field") && line.contains("keeps changing the same fields");
    let count = daemon.log().lines().filter(is_report).count();
    assert!(count <= 5, "the log repeats it {count} times");
    // A fight holds up nobody else.
    repo.change("free.yaml", &yaml::config_map("free", "a", "2"));
    site.await_data("free", "a", "2");
    // A newer commit is no repair: it is sent at once.
    repo.change("field.yaml", &yaml::config_map("field", "a", "3"));
    site.await_data("field", "a", "3");
}

#[test]
fn a_fight_over_a_pod_template_is_a_fight_too() {
    let site = TestNamespace::new("fight-pods");
    let repo = Repo::new(&[("web.yaml", yaml::deployment("web", 2, "registry.example/web:1"))]);
    let daemon = site.daemon(repo.path());
    site.await_rollout("web");
    let window = site.window();
    let over = AtomicBool::new(false);
    let path = format!("{}?fieldManager=rival", site.at("Deployment", "web"));
    thread::scope(|scope| {
        let _over = FightGuard(&over);
        scope.spawn(|| {
            beat(&over, |turn| {
                let image = format!("registry.example/theirs:{turn}");
                let theirs = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}});
                let _ = site.api.call("PATCH", &path, "application/strategic-merge-patch+json", &theirs);
            });
        });
        daemon.says(&["Deployment fight-pods/web", "rival", "keeps changing the same fields"]);
    });
    // When the other one is done, it is repaired within the minute.
    eventually("it is repaired", DEFAULT_TIMEOUT + DEFAULT_TIMEOUT, || {
        let image = site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
        if image == "registry.example/web:1" { Ok(()) } else { Err(image.to_string()) }
    });
    await_calm_repair(&window, "deployments", "web", WINDOW);
}

#[test]
fn an_apply_beside_a_daemon_of_its_source_says_so_and_stops() {
    let mut site = TestNamespace::new("beside");
    let files = |value: &str| -> Vec<(String, String)> {
        let name = |number: u32| format!("c{number:02}");
        (0..20).map(|n| (format!("{}.yaml", name(n)), yaml::config_map(&name(n), "a", value))).collect()
    };
    let (repo, folder) = (Repo::new(&files("1")), Folder::new(&files("2")));
    let _daemon = site.daemon(repo.path());
    for number in 0..20 {
        site.await_object("ConfigMap", &format!("c{number:02}"));
    }
    let window = site.window();
    // The daemon puts the first ones back while the others are still on their way.
    let proxy = site.cluster.fault_proxy(9).unwrap();
    site.through(&proxy);
    let writes = Requests::any().method("PATCH").path_contains("/configmaps/c").query_lacks("dryRun");
    let pause = Duration::from_secs(3);
    proxy.add(Rule::new(writes, Fault::Delay(pause, pause)).skip(5));
    let apply = site.apply(folder.path(), &[]).ends(1);
    apply.says(&[
        "error: another rhumb serves source beside",
        "has put ConfigMap beside/c",
        "the pass stops",
    ]);
    apply.says(&["hint:", "rhumb rollout pause"]);
    for number in 0..20 {
        let name = format!("c{number:02}");
        site.await_data(&name, "a", "1");
        // Each of the two writes it once.
        assert!(window.to("configmaps", &name).len() <= 2, "{name}");
    }
}

// Two processes that serve one source without Leases do this to each other, as each makes its
// status at its own times.
#[test]
fn a_record_that_somebody_else_writes_again_and_again_is_written_over_with_pauses() {
    let site = TestNamespace::new("fight-record");
    let repo = Repo::new(&[("a.yaml", yaml::config_map("a", "a", "1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_data("a", "a", "1");
    let record = at("ConfigMap", &site.system(), &site.name);
    let status = || site.api.value(&record, "/data/status");
    until("the status is recorded", || status().as_str().is_some_and(|text| !text.is_empty()));
    let (ours, window) = (status(), site.window());
    let written = || -> Vec<AuditEvent> {
        let all = window.all_writes().into_iter();
        all.filter(|event| event.name == site.name && event.code < 300).collect()
    };
    let over = AtomicBool::new(false);
    let count = PROMPT_RECORDS + 4;
    let writes = thread::scope(|scope| {
        let _over = FightGuard(&over);
        scope.spawn(|| {
            beat(&over, |turn| {
                let theirs = json!({"data": {"status": format!("theirs {turn}")}});
                let _ = site.api.call("PATCH", &record, "application/merge-patch+json", &theirs);
            });
        });
        in_time("it is written several times", DEFAULT_TIMEOUT, || {
            let writes = written();
            if writes.len() >= count { Ok(writes) } else { Err(writes.len()) }
        })
    });
    for some in writes.windows(PROMPT_RECORDS + 2) {
        let (first, last) = (some[0].timestamp, some[PROMPT_RECORDS + 1].timestamp);
        assert!(last.duration_since(first).unsigned_abs() >= RECORD_PAUSE, "{writes:#?}");
    }
    until("our status is there in the end", || status() == ours);
}
