//! `rhumb status`: asked of the daemon, and read from the cluster alone.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    DEFAULT_TIMEOUT, Daemon, Folder, ProgramOutput, Repo, TestNamespace, eventually, run, until, yaml,
};

const BUDGET: &str =
    "budget: {maxWorkloads: 1, maxUnavailable: 9, startsPerMinute: 1000, soak: 0s, deadline: 10m}";

/// A daemon, and commands that ask it or the cluster.
struct StatusFixture<'a> {
    site: &'a TestNamespace<'a>,
    process: Daemon,
    runtime: TempDir,
}

impl<'a> StatusFixture<'a> {
    fn start(site: &'a TestNamespace<'a>, repo: &Repo) -> Self {
        let runtime = tempfile::tempdir().unwrap();
        let file = runtime.path().join("rhumb.yaml");
        std::fs::write(&file, site.configuration(repo.path(), BUDGET)).unwrap();
        let mut command = site.bare_command();
        command.arg("run").arg("--config").arg(file).env("RUNTIME_DIRECTORY", runtime.path());
        Self { site, process: Daemon::start(command), runtime }
    }

    fn socket(&self) -> PathBuf {
        self.runtime.path().join("rhumb.sock")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.site.bare_command();
        command.arg("status").args(arguments);
        command
    }

    /// Returns the daemon's answer.
    fn daemon(&self, arguments: &[&str]) -> ProgramOutput {
        let mut command = self.command(arguments);
        command.arg("--socket").arg(self.socket());
        run(command)
    }

    /// Returns the cluster's answer.
    fn cluster(&self, arguments: &[&str]) -> ProgramOutput {
        run(self.command(arguments))
    }

    /// Returns the objects of the source by phase, as the daemon and the cluster give them.
    fn phases(&self) -> [Value; 2] {
        let phases = |status: ProgramOutput| {
            if status.code == 0 { status.json()["sources"][0]["objects"].clone() } else { Value::Null }
        };
        [phases(self.daemon(&["-o", "json"])), phases(self.cluster(&["-o", "json"]))]
    }

    #[track_caller]
    fn await_phases(&self, expected: &Value) {
        until(&format!("both tell {expected}"), || self.phases().iter().all(|phases| phases == expected));
    }
}

#[test]
fn the_daemon_and_the_cluster_alone_tell_the_same() {
    let site = TestNamespace::new("told-status");
    let name = &site.name;
    let never = "{controlplane/never-ready: \"true\"}";
    let files = |image: &str, annotations: &str| {
        [
            ("env.yaml", yaml::config_map("env", "a", "one")),
            ("web.yaml", yaml::workload("Deployment", "web", 2, image, annotations)),
            ("api.yaml", yaml::workload("Deployment", "api", 2, image, annotations)),
        ]
    };
    let repo = Repo::new(&files("app:1", "{}"));
    let fixture = StatusFixture::start(&site, &repo);
    fixture.await_phases(&json!({"Settled": 3}));
    for shown in [fixture.daemon(&["--exit-code"]).ends(0), fixture.cluster(&["--exit-code"]).ends(0)] {
        shown.says(&[name, &repo.head()[..12], "3", "healthy"]);
        assert!(!shown.stdout.contains("PHASE"), "{shown:#?}");
    }
    for (file, text) in files("app:2", never) {
        repo.write(file, &text);
    }
    repo.commit("Change all");
    fixture.await_phases(&json!({"Settled": 1, "RollingOut": 1, "Waiting": 1}));
    // The queue of a budget object that is new is reported anew once that has settled.
    eventually("the cluster tells why it waits", DEFAULT_TIMEOUT, || {
        let shown = fixture.cluster(&[]).all();
        if shown.contains("1 of 1 workloads are rolling out") { Ok(()) } else { Err(shown) }
    });
    for shown in [fixture.daemon(&["--exit-code"]).ends(1), fixture.cluster(&["--exit-code"]).ends(1)] {
        shown.says(&[name, "1 rolling, 1 waiting"]);
        shown.says(&["/deployment.apps/", "RollingOut", "of 2 pods are new"]);
        shown.says(&[
            "/deployment.apps/",
            "Waiting",
            "number 1 in the rollout queue: 1 of 1 workloads are rolling out",
        ]);
        assert!(!shown.stdout.contains("configmap/env"), "{shown:#?}");
    }
    fixture.daemon(&[]).ends(0).says(&["rollout budget: 1 of 1 workloads"]);
    fixture.cluster(&[]).ends(0).says(&["rollout budget: 1 workload rolling out, which may take down"]);
    // The command for rollouts agrees, and all name who holds the budget.
    let holder = format!("source {name}, process {} on ", fixture.process.pid());
    let claimed = format!("claimed by {holder}");
    until("the cluster names the holder", || fixture.cluster(&[]).all().contains(&claimed));
    site.rhumb(&["rollout", "status"]).ends(1).says(&["rollout budget: 1 workload rolling out", &holder]);
    one_source_or_object(&fixture);
    what_happened(&fixture);
}

#[track_caller]
fn what_happened(fixture: &StatusFixture<'_>) {
    let events = |arguments: &[&str]| {
        let mut command = fixture.site.bare_command();
        command.arg("events").args(arguments).arg("--socket").arg(fixture.socket());
        run(command)
    };
    let text = events(&[]).ends(0);
    text.says(&["RevisionRead", &fixture.site.name]);
    text.says(&["RolloutStarted", "Deployment"]);
    let json = events(&[&fixture.site.name, "-o", "json"]).ends(0);
    let first: Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["source"], json!(fixture.site.name), "{first}");
    assert_eq!(events(&["another"]).ends(0).stdout, "");
}

#[track_caller]
fn one_source_or_object(fixture: &StatusFixture<'_>) {
    let name = &fixture.site.name;
    for ask in [StatusFixture::daemon, StatusFixture::cluster] {
        ask(fixture, &[name]).ends(0).says(&[name, "1 rolling, 1 waiting"]);
        ask(fixture, &["another"]).ends(2).says(&["there is no source another"]);
        let env = ask(fixture, &["cm/env", "-n", name, "--exit-code"]).ends(0);
        env.says(&["phase", "Settled"]);
        env.says(&["source", name]);
        let by_group = format!("{name}/deployment.apps/web");
        ask(fixture, &[&by_group, "--exit-code"]).ends(1).says(&["phase"]);
        ask(fixture, &["cm/none"]).ends(2).says(&["no source has configmap/none"]);
        let json = ask(fixture, &["cm/env", "-n", name, "-o", "json"]).ends(0).json();
        assert_eq!((&json["kind"], &json["phase"]), (&json!("ConfigMap"), &json!("Settled")), "{json}");
        assert_eq!(json["apiVersion"], json!("status.rhumb.dev/v1"));
    }
    let json = fixture.daemon(&["-o", "json"]).ends(0).json();
    assert_eq!(json["process"]["version"], json!(env!("CARGO_PKG_VERSION")));
    assert_eq!(json["sources"][0]["complete"], json!(true));
    let json = fixture.cluster(&["-o", "json"]).ends(0).json();
    assert_eq!((&json["process"], &json["sources"][0]["complete"]), (&Value::Null, &json!(false)));
}

// The ConfigMap of the source names the first of them alone.
#[test]
fn of_many_that_are_refused_none_counts_as_healthy() {
    let site = TestNamespace::new("many-refused");
    let file = |number: usize| {
        let name = format!("c{number:02}");
        (format!("{name}.yaml"), yaml::config_map(&name, "a", "one"))
    };
    let files: Vec<(String, String)> = (0..25).map(file).collect();
    let repo = Repo::new(&files);
    let fixture = StatusFixture::start(&site, &repo);
    fixture.await_phases(&json!({"Settled": 25}));
    for (file, text) in &files {
        repo.write(file, &text.replace("metadata:\n", "metadata:\n  labels: {a: \"not valid\"}\n"));
    }
    repo.commit("Break all");
    fixture.await_phases(&json!({"Refused": 25}));
    for shown in [fixture.daemon(&["--exit-code"]).ends(1), fixture.cluster(&["--exit-code"]).ends(1)] {
        shown.says(&["25 refused"]);
    }
    let named = site.rhumb(&["why", "cm/c00"]).ends(0);
    named.says(&["phase    Refused"]);
    named.says(&["reason   last reported by rhumb: its manifest has an error"]);
    let unnamed = site.rhumb(&["why", "cm/c24"]).ends(0);
    unnamed.says(&["phase    Unknown"]);
    unnamed.says(&["reason   it may be one of 5 that are not settled"]);
}

// No list by label shows it, so only its seal shows whose it is.
#[test]
fn an_object_whose_label_is_gone_is_found_without_a_daemon() {
    let site = TestNamespace::new("unlabelled");
    let maps = ["env", "other"].map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "one")));
    let repo = Repo::new(&maps);
    site.apply(repo.path(), &[]).ends(0);
    let bare = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &bare);
    // A claim of anybody's is none: its seal is of another object.
    let release = site.value("ConfigMap", "env", "/metadata/annotations/rhumb.dev~1release");
    let copy = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "copy", "annotations": {"rhumb.dev/release": release}}});
    site.api.create(&site.at("ConfigMap", ""), "somebody", &copy);
    let shown = site.rhumb(&["status", "--exit-code"]).ends(1);
    shown.says(&["unlabelled", "2", "1 waiting"]);
    shown.says(&["configmap/env", "Waiting", "somebody took its label applyset.kubernetes.io/part-of off"]);
    assert!(!shown.stdout.contains("configmap/copy"), "{shown:#?}");
    let shown = site.rhumb(&["why", "cm/env"]).ends(0);
    for line in ["source   unlabelled", "phase    Waiting", "reason   somebody took its label"] {
        shown.says(&[line]);
    }
    site.rhumb(&["why", "cm/copy"]).ends(2).says(&["is in no source"]);
}

#[test]
fn without_a_daemon_it_says_so_and_reads_the_cluster() {
    let site = TestNamespace::new("untold-status");
    // No flag names the cluster, so the daemon is asked first.
    let bare = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.arg("status").args(arguments).env("KUBECONFIG", site.kubeconfig());
        command.env("RUNTIME_DIRECTORY", site.state.path()).env("NO_COLOR", "1");
        command
    };
    let socket = site.state.path().join("rhumb.sock");
    let none = format!("no daemon answers on {}: no such file or directory", socket.display());
    let shown = run(bare(&[])).ends(0);
    assert_eq!(shown.stderr, format!("{none}; read from the cluster\n"));
    run(bare(&["--socket", socket.to_str().unwrap()])).ends(3).says(&["error", &none]);
    // A killed daemon's socket, and a path that is no socket at all.
    drop(UnixListener::bind(&socket).unwrap());
    run(bare(&[])).ends(0).says(&["connection refused; read from the cluster"]);
    // A wrong namespace does not look like rest.
    let wrong = run(bare(&["--system-namespace", "nowhere"])).ends(0);
    wrong.says(&["nothing is recorded in namespace nowhere"]);
}

// Nobody else says later what a single pass was refused.
#[test]
fn a_single_pass_leaves_the_status_of_each_object() {
    let site = TestNamespace::new("pass-status");
    let broken =
        yaml::config_map("bad", "a", "one").replace("metadata:\n", "metadata:\n  labels: {a: \"-\"}\n");
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "a", "one")), ("bad.yaml", broken)]);
    site.apply(folder.path(), &[]).ends(1).says(&["configmap/bad", "refused"]);
    let status = |code: i32| {
        run({
            let mut command = site.bare_command();
            command.args(["status", "--exit-code"]);
            command
        })
        .ends(code)
    };
    let shown = status(1);
    shown.says(&["pass-status", "1 refused"]);
    shown.says(&[
        "pass-status/configmap/bad",
        "Refused",
        "last reported by rhumb: its manifest has an error",
    ]);
    assert!(!shown.stdout.contains("healthy"), "{shown:#?}");
    // A part of a source says nothing of the source.
    let record = || site.inventory().unwrap()["data"].clone();
    let before = record();
    let part = folder.path().join("env.yaml");
    site.rhumb(&["apply", "-f", part.to_str().unwrap()]).ends(0);
    assert_eq!(record(), before);
    folder.write("bad.yaml", &yaml::config_map("bad", "a", "one"));
    site.apply(folder.path(), &[]).ends(0);
    status(0).says(&["pass-status", "2", "healthy"]);
    // A record that still holds is not written again.
    let window = site.window();
    site.apply(folder.path(), &[]).ends(0);
    window.assert_silent();
}

/// Gives the last word to the daemon, which goes on.
#[test]
fn what_a_single_pass_leaves_gives_way_to_what_a_daemon_says() {
    let site = TestNamespace::new("pass-beside");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let daemon = site.configured(&site.configuration(repo.path(), ""));
    let its_own = format!("{} (Ann: Begin): 1 object, applied and healthy", &repo.head()[..12]);
    let record = || site.inventory().unwrap_or_default()["data"]["status"].clone();
    let await_record = || {
        eventually("the daemon reports its status", DEFAULT_TIMEOUT, || match record() {
            message if message == its_own.as_str() => Ok(()),
            message => Err(message.to_string()),
        });
    };
    await_record();
    daemon.signal("STOP");
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "a", "two"))]);
    site.apply(folder.path(), &[]).ends(0);
    let left = record().as_str().unwrap_or_default().to_owned();
    assert!(left.ends_with(": 1 object, applied and healthy") && left != its_own, "{left}");
    daemon.signal("CONT");
    site.await_data("env", "a", "one");
    await_record();
}

/// Returns a command that prints into a file.
fn into(file: &Path, command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec \"$@\" >\"$0\""]).arg(file).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// Passes questions on to a daemon; while it is new, it knows no objects yet.
fn relay(listener: UnixListener, daemon: PathBuf, is_new: Arc<AtomicBool>) {
    for mut client in listener.incoming().map_while(Result::ok) {
        let (daemon, is_new) = (daemon.clone(), is_new.clone());
        std::thread::spawn(move || {
            let mut question = [0; 4096];
            let length = client.read(&mut question).unwrap();
            if question.starts_with(b"GET /v1/objects ") && is_new.load(Ordering::SeqCst) {
                let none =
                    b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{\"items\":[]}";
                return client.write_all(none).unwrap();
            }
            let mut daemon = UnixStream::connect(daemon).unwrap();
            daemon.write_all(&question[..length]).unwrap();
            // A client that has its answer goes.
            let _ = std::io::copy(&mut daemon, &mut client);
        });
    }
}

#[test]
fn whoever_watches_an_object_goes_on_when_the_daemon_is_new_and_knows_nothing_yet() {
    let site = TestNamespace::new("watched-status");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let fixture = StatusFixture::start(&site, &repo);
    fixture.await_phases(&json!({"Settled": 1}));
    let (socket, is_new) = (fixture.runtime.path().join("relay.sock"), Arc::new(AtomicBool::new(false)));
    let (listener, daemon, new) = (UnixListener::bind(&socket).unwrap(), fixture.socket(), is_new.clone());
    std::thread::spawn(move || relay(listener, daemon, new));
    let mut command = fixture.command(&["configmap/env", "--watch", "-n", &site.name, "--socket"]);
    command.arg(&socket);
    let shown = fixture.runtime.path().join("shown");
    let mut watcher = Daemon::start(into(&shown, &command));
    until("it shows its status", || std::fs::metadata(&shown).is_ok_and(|file| file.len() > 0));
    is_new.store(true, Ordering::SeqCst);
    watcher.says(&["no source has configmap/env; retrying"]);
    is_new.store(false, Ordering::SeqCst);
    let before = std::fs::read_to_string(&shown).unwrap();
    repo.change("env.yaml", &yaml::config_map("env", "a", "two"));
    until("it shows what has changed", || std::fs::read_to_string(&shown).unwrap() != before);
    assert!(watcher.is_running());
}

#[test]
fn a_daemon_that_is_silent_or_odd_is_distinguished_from_one_that_is_not_there() {
    let site = TestNamespace::new("odd-status");
    let socket = site.state.path().join("odd.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let answers = [
        (
            "503 Service Unavailable",
            "{\"message\": \"the loop has not started yet\"}",
            "the daemon says: the loop has not started yet",
        ),
        ("200 OK", "{\"kind\": \"Another\"}", "is in no form that this version of rhumb knows"),
    ];
    for (code, body, expected) in answers {
        let server = std::thread::spawn({
            let listener = listener.try_clone().unwrap();
            move || {
                // Asked once whether it is there, and once for the view, unless the first answer
                // was enough.
                for _ in 0..if code.starts_with("200") { 2 } else { 1 } {
                    let mut stream = listener.accept().unwrap().0;
                    let _ = stream.read(&mut [0; 4096]).unwrap();
                    let text = format!(
                        "HTTP/1.1 {code}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    stream.write_all(text.as_bytes()).unwrap();
                }
            }
        });
        let mut command = site.bare_command();
        command.args(["status", "--socket"]).arg(&socket);
        run(command).ends(3).says(&[expected]);
        server.join().unwrap();
    }
}

#[test]
fn origins_are_known_without_reading_the_source() {
    let site = TestNamespace::new("origins");
    let web = format!("# a line before\n{}", yaml::config_map("web", "a", "b"));
    let held = yaml::config_map("held", "a", "b");
    let held =
        held.replacen("metadata:", "metadata:\n  annotations: {rhumb.dev/depends-on: ConfigMap/no}", 1);
    let repo = Repo::new(&[("deploy/web.yaml", web), ("deploy/held.yaml", held)]);
    let fixture = StatusFixture::start(&site, &repo);
    site.await_data("web", "a", "b");
    let file = |arguments: &[&str]| {
        let explained = site.rhumb(&[&["why"], arguments].concat());
        let line = explained.stdout.lines().find_map(|line| line.trim().strip_prefix("file "));
        line.map(|line| line.trim().to_owned())
    };
    let socket = fixture.socket();
    let asked = ["cm/web", "--socket", socket.to_str().unwrap()];
    until("the daemon names the file", || file(&asked).as_deref() == Some("deploy/web.yaml:2"));
    let recorded = || file(&["cm/held"]).as_deref() == Some("deploy/held.yaml:1");
    until("the record names the file of what waits", recorded);
    // Of what is settled the cluster has no record.
    let why = site.rhumb(&["why", "cm/web"]).ends(0);
    why.says(&["phase", "Settled"]);
    assert!(!why.all().contains("file"), "{why:#?}");
    site.rhumb(&["why", "cm/web", "--socket", "/nonexistent/socket"]).ends(3).says(&["no daemon answers on"]);
}
