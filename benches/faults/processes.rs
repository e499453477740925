//! Faults of the process: it dies, sleeps, and runs out of memory or files.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use controlplane::{AuditEvent, Fault as ApiFault, Requests, ResponseCut, Rule};
use serde_json::json;

use crate::fault::{Fault, Obstacle};
use crate::stage::{Effect, Shape, Stage, letter, writes};

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    [kills(), sleeps(), limits(), clocks()].into_iter().flatten().collect()
}

fn patches(path: &str) -> Requests {
    writes().path_contains(path)
}

/// Kills the daemon at one of the first requests of a kind; lots decide whether it has the answer.
fn kill_at(stage: &mut Stage, requests: &Requests, among: u64) -> Result<(), Obstacle> {
    let skipped = stage.random.below(among);
    let fault =
        if stage.random.below(2) == 0 { ApiFault::DropAnswer(ResponseCut::Silence) } else { ApiFault::Pass };
    let rule = stage.proxy.add(Rule::new(requests.clone(), fault).skip(skipped).times(1));
    stage.change();
    stage.remove_old();
    stage.await_fired(rule, 1)?;
    stage.pass(0, 20);
    stage.daemon().restart();
    Ok(())
}

fn killed(name: &'static str, place: &'static str, among: u64, requests: Requests) -> Fault {
    Fault::new(name, place, move |stage| kill_at(stage, &requests, among))
}

fn kills() -> Vec<Fault> {
    let post = || Requests::any().method("POST").query_lacks("dryRun");
    vec![
        killed("kill -9 at any write", "one of the first ten writes", 10, writes()),
        killed("kill -9 at a write of the inventory", "the inventory", 2, patches("-rhumb/configmaps/f")),
        killed(
            "kill -9 at a write of the ledger",
            "the rollout ledger",
            4,
            patches("rollout-budget.rhumb.dev"),
        ),
        killed("kill -9 at a creation", "a new ConfigMap", 1, patches("/configmaps/fresh")),
        killed(
            "kill -9 at a changed ConfigMap",
            "ConfigMaps",
            3,
            writes().path_contains("/configmaps/").path_lacks("-rhumb/"),
        ),
        killed("kill -9 at a rollout", "Deployments", 2, patches("/deployments/")),
        killed("kill -9 at a deletion", "the deletion", 1, Requests::any().method("DELETE")),
        killed("kill -9 at a dry run", "dry runs", 2, Requests::any().query_contains("dryRun=All")),
        killed("kill -9 at an Event", "Events", 1, post().path_contains("/events")),
        Fault::new("kill -9 at the first write of a start", "the first write", |stage| {
            stage.daemon().kill();
            stage.change();
            for _ in 0..3 {
                let rule = stage.proxy.add(Rule::new(writes(), ApiFault::Pass).times(1));
                stage.daemon().start();
                stage.await_fired(rule, 1)?;
                stage.pass(0, 10);
                stage.daemon().kill();
                stage.proxy.clear();
            }
            stage.daemon().start();
            Ok(())
        }),
        Fault::new("kill -9 five times", "at random times", |stage| {
            stage.change();
            for _ in 0..5 {
                stage.pass(100, 1200);
                stage.daemon().restart();
            }
            stage.remove_old();
            Ok(())
        }),
        Fault::new("SIGTERM in the middle of a rollout", "the process", |stage| {
            stage.change();
            stage.await_live("a rollout begins", |stage| {
                stage.image("web") == "app:2" || stage.image("api") == "app:2"
            })?;
            stage.daemon().stop();
            stage.remove_old();
            stage.daemon().start();
            Ok(())
        }),
        Fault::new("kill -9, and an empty state directory", "the process and its state", |stage| {
            stage.change();
            stage.pass(100, 1500);
            stage.daemon().kill();
            empty(stage.daemon().site.state.path());
            stage.remove_old();
            stage.daemon().start();
            Ok(())
        }),
    ]
}

/// Removes all that is in a folder.
pub(crate) fn empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        // A live process may write into it meanwhile.
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
}

/// Stops a daemon while something happens.
fn stop_during(stage: &mut Stage, number: usize, work: impl FnOnce(&mut Stage)) {
    stage.replicas[number].signal("STOP");
    work(stage);
    stage.replicas[number].signal("CONT");
}

/// Returns the daemon that has written the Lease of the first source last.
pub(crate) fn holder(stage: &Stage) -> Result<usize, Obstacle> {
    let lease = format!("rhumb-{}", stage.source_name(letter(0)));
    let events = stage.site.cluster.audit().map_err(|error| Obstacle::Unmet(error.to_string()))?;
    let is_of_it = |event: &&AuditEvent| event.name == lease && event.is_write() && event.code < 300;
    let user = events.iter().rev().find(is_of_it).map(|event| event.user.clone());
    let found = stage.replicas.iter().position(|replica| Some(&replica.site.user) == user.as_ref());
    found.ok_or_else(|| Obstacle::Unmet(format!("no daemon holds it: {user:?}")))
}

fn sleeps() -> Vec<Fault> {
    vec![
        Fault::new("SIGSTOP while a person edits", "the process", |stage| {
            stop_during(stage, 0, |stage| {
                stage.edit("ConfigMap", "env", &json!({"data": {"key": "theirs"}}));
                stage.change();
                stage.remove_old();
                stage.pass(1000, 4000);
            });
            Ok(())
        }),
        Fault::new("SIGSTOP in the middle of a rollout", "the process", |stage| {
            stage.change();
            stage.await_live("a rollout begins", |stage| {
                stage.image("web") == "app:2" || stage.image("api") == "app:2"
            })?;
            stop_during(stage, 0, |stage| stage.pass(2000, 6000));
            Ok(())
        }),
        Fault::new("SIGSTOP beyond its timeouts", "the process", |stage| {
            stage.change();
            stage.pass(0, 500);
            stop_during(stage, 0, |stage| stage.pass(9000, 12_000));
            Ok(())
        }),
        Fault::new("SIGSTOP beyond a Lease", "the holder of a Lease", |stage| {
            let number = holder(stage)?;
            stage.change();
            stage.pass(0, 300);
            let mut next = Ok(number);
            stop_during(stage, number, |stage| {
                stage.pass(17_000, 20_000);
                next = holder(stage);
                stage.remove_old();
            });
            if next? == number {
                return Err(Obstacle::Unmet("nobody takes the Lease over".to_owned()));
            }
            Ok(())
        })
        .of(Shape::Leases(2)),
        Fault::new("SIGSTOP and SIGCONT ten times", "the process", |stage| {
            stage.change();
            for _ in 0..10 {
                stop_during(stage, 0, |stage| stage.pass(20, 400));
                stage.pass(20, 400);
            }
            Ok(())
        }),
    ]
}

/// Sets a limit of the running process, by `prlimit`.
fn limit(stage: &mut Stage, number: usize, limit: &str) -> Result<(), Obstacle> {
    let pid = stage.replicas[number].pid().to_string();
    let done = Command::new("prlimit").args(["--pid", &pid, limit]).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        other => Err(Obstacle::Unsupported(format!("prlimit {limit}: {other:?}"))),
    }
}

fn limits() -> Vec<Fault> {
    vec![
        Fault::new("no more files", "RLIMIT_NOFILE of 8", |stage| {
            limit(stage, 0, "--nofile=8:")?;
            stage.change();
            stage.remove_old();
            stage.spoil(Rule::new(Requests::any(), ApiFault::Pass));
            stage.while_unknown(|stage| stage.pass(3000, 6000));
            limit(stage, 0, "--nofile=1024:")
        }),
        Fault::new("no more memory", "RLIMIT_AS as large as the process is", |stage| {
            stage.allow(Effect::EndsProcesses);
            stage.allow(Effect::TakesResources);
            let statm = std::fs::read_to_string(format!("/proc/{}/statm", stage.daemon().pid())).unwrap();
            let pages: u64 = statm.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
            limit(stage, 0, &format!("--as={}:", pages * 4096 + 200_000))?;
            stage.change();
            stage.remove_old();
            stage.pass(2000, 5000);
            stage.daemon().revive();
            limit(stage, 0, "--as=unlimited:")
        }),
        Fault::new("files cannot grow", "RLIMIT_FSIZE of 0", |stage| {
            stage.allow(Effect::EndsProcesses);
            limit(stage, 0, "--fsize=0:")?;
            stage.change();
            stage.remove_old();
            stage.pass(2000, 5000);
            stage.daemon().revive();
            limit(stage, 0, "--fsize=unlimited:")
        }),
        Fault::new("a processor's hundredth", "SIGSTOP for 99 of 100 ms", |stage| {
            stage.change();
            stage.remove_old();
            for _ in 0..60 {
                stop_during(stage, 0, |_| std::thread::sleep(Duration::from_millis(99)));
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }),
    ]
}

/// The library of Debian's package libfaketime.
const CLOCK: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// Lets the wall clock of the daemon show another time, and another one later.
fn clock(name: &'static str, first: &'static str, then: &'static str) -> Fault {
    Fault::new(name, "the wall clock of the process", move |stage| {
        if !Path::new(CLOCK).exists() {
            return Err(Obstacle::Unsupported(
                "there is no libfaketime: apt-get install libfaketime".to_owned(),
            ));
        }
        let daemon = stage.daemon();
        let file = daemon.folder().join("time");
        std::fs::write(&file, first).unwrap();
        for (name, value) in [
            ("LD_PRELOAD", CLOCK),
            ("FAKETIME_TIMESTAMP_FILE", &file.to_string_lossy()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ] {
            daemon.set(name, value);
        }
        daemon.restart();
        stage.change();
        stage.pass(500, 2000);
        std::fs::write(&file, then).unwrap();
        stage.remove_old();
        stage.pass(2000, 4000);
        Ok(())
    })
}

fn clocks() -> Vec<Fault> {
    vec![
        clock("the clock jumps an hour ahead", "+0", "+1h"),
        clock("the clock jumps an hour back", "+0", "-1h"),
        clock("the clock jumps ten years ahead", "+0", "+10y"),
        clock("the clock is ten years behind", "-10y", "+0"),
    ]
}
