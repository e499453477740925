//! Nothing outlives the owner of a cluster, and failures to start explain themselves.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{DEFAULT_TIMEOUT, apply, config_map, eventually};
use controlplane::{Cluster, Error};
use tempfile::TempDir;

/// A process that owns a cluster; all that comes from it can be known by its environment.
struct Owner {
    child: Child,
    stdin: Option<ChildStdin>,
    mark: TempDir,
}

impl Owner {
    fn start(arguments: &[&str]) -> Self {
        Self::start_keeping(arguments, "0")
    }

    fn start_keeping(arguments: &[&str], keep: &str) -> Self {
        let mark = tempfile::Builder::new().prefix("owner-mark-").tempdir().unwrap();
        let mut path = std::env::var_os("PATH").unwrap();
        path.push(":");
        path.push(mark.path());
        let mut child = Command::new(env!("CARGO_BIN_EXE_controlplane"))
            .args(arguments)
            .env("PATH", path)
            .env("RHUMB_CONTROLPLANE_KEEP", keep)
            .env("RHUMB_CONTROLPLANE_BIN", controlplane::programs().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        Self { child, stdin, mark }
    }

    /// Waits until the cluster is ready, and returns its directory.
    fn ready(&mut self) -> PathBuf {
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Path::new(line.trim()).parent().unwrap().to_owned()
    }

    /// Returns the names of the processes that the owner and its children are.
    fn processes(&self) -> Vec<String> {
        let mark = self.mark.path().to_string_lossy().into_owned();
        let mut names = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            // A thread, or a process that ended just now, has no environment.
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if String::from_utf8_lossy(&environment).contains(&mark) {
                names.push(
                    fs::read_to_string(entry.path().join("comm")).unwrap_or_default().trim().to_owned(),
                );
            }
        }
        names.sort();
        names
    }

    fn nothing_is_left(&self) {
        eventually(DEFAULT_TIMEOUT, Vec::<String>::new(), || self.processes());
    }
}

#[test]
fn a_killed_owner_leaves_nothing() {
    let mut owner = Owner::start(&["up", "--nodes", "1"]);
    let directory = owner.ready();
    let mut expected =
        ["controlplane", "etcd", "kube-apiserver", "kube-controller", "kube-scheduler", "kwok", "sh"];
    expected.sort_unstable();
    assert_eq!(owner.processes(), expected);
    owner.child.kill().unwrap();
    owner.nothing_is_left();
    eventually(DEFAULT_TIMEOUT, false, || directory.exists());
    owner.child.wait().unwrap();
}

/// Returns the control groups of real nodes, by what their names begin with.
fn node_groups() -> Vec<PathBuf> {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let groups = hierarchies.flat_map(|one| fs::read_dir(one.path()).into_iter().flatten().flatten());
    let is_node = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rhumb-node-"))
    };
    groups.map(|group| group.path()).filter(is_node).collect()
}

#[test]
fn a_killed_owner_of_a_real_node_leaves_nothing() {
    if let Some(reason) = controlplane::find_real_node_obstacle() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no real node: {reason}");
        return;
    }
    let (mounts, links) = ("/proc/self/mounts", "/proc/self/net/dev");
    let names = |path: &str| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.split_whitespace().take(2).collect::<String>()).collect()
    };
    let link_names = || -> Vec<String> {
        names(links).into_iter().map(|name| name.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let (mounted, linked) = (names(mounts), link_names());
    let mut owner = Owner::start(&["up", "--real"]);
    let directory = owner.ready();
    // A node is Ready before all that it has runs.
    eventually(DEFAULT_TIMEOUT, Vec::<&str>::new(), || {
        let processes = owner.processes();
        let is_missing = |name: &&str| !processes.iter().any(|process| process == name);
        ["containerd", "kubelet", "kube-proxy", "real-node"].into_iter().filter(is_missing).collect()
    });
    let number = fs::read_to_string(directory.join("run/real-node.pid")).unwrap();
    let own = format!("rhumb-node-{}", number.trim());
    let groups = || node_groups().into_iter().filter(|path| path.ends_with(&own)).count();
    assert!(groups() > 0, "{own}: {:?}", node_groups());
    assert_eq!((names(mounts), link_names()), (mounted, linked));
    owner.child.kill().unwrap();
    owner.nothing_is_left();
    eventually(DEFAULT_TIMEOUT, 0, groups);
    eventually(DEFAULT_TIMEOUT, false, || directory.exists());
    owner.child.wait().unwrap();
}

#[test]
fn an_owner_killed_while_it_starts_leaves_nothing() {
    // Most moments are in the first 100 ms, when the supervisor and etcd are started.
    for milliseconds in (5..100).step_by(4).chain([150, 200, 300, 500, 1_000, 2_000]) {
        let mut owner = Owner::start(&["up", "--bare"]);
        thread::sleep(Duration::from_millis(milliseconds));
        owner.child.kill().unwrap();
        owner.child.wait().unwrap();
        owner.nothing_is_left();
    }
}

#[test]
fn a_closed_input_ends_the_cluster() {
    for keep in ["0", "1"] {
        let mut owner = Owner::start_keeping(&["up", "--bare"], keep);
        let directory = owner.ready();
        drop(owner.stdin.take());
        assert!(owner.child.wait().unwrap().success());
        owner.nothing_is_left();
        assert_eq!(directory.exists(), keep == "1");
        if keep == "1" {
            assert!(directory.join("log/kube-apiserver.log").exists());
            fs::remove_dir_all(directory).unwrap();
        }
    }
}

/// Finds the child of a process that has only one.
fn child_of(parent: u32) -> Option<String> {
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent_of_entry = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        (parent_of_entry == parent.to_string()).then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

#[test]
fn a_killed_supervisor_takes_the_parts_with_it() {
    let can_guard = Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]).status();
    let mut owner = Owner::start(&["up", "--bare"]);
    owner.ready();
    let supervisor = child_of(owner.child.id()).unwrap();
    assert!(Command::new("kill").args(["-KILL", &supervisor]).status().unwrap().success());
    if can_guard.is_ok_and(|status| status.success()) {
        eventually(DEFAULT_TIMEOUT, vec!["controlplane".to_owned()], || owner.processes());
    }
    drop(owner.stdin.take());
    owner.child.wait().unwrap();
}

#[test]
fn clusters_do_not_mix() {
    let clusters = thread::scope(|scope| {
        let start = || Cluster::builder().bare().start().unwrap();
        [scope.spawn(start), scope.spawn(start)].map(|thread| thread.join().unwrap())
    });
    for (cluster, name) in clusters.iter().zip(["first", "second"]) {
        apply(cluster, &config_map(name));
    }
    for (cluster, name) in clusters.iter().zip(["first", "second"]) {
        let all = cluster.kubectl(&["get", "configmaps", "-o", "name", "-n", "default"]).unwrap();
        assert!(all.contains(&format!("configmap/{name}\n")) && all.lines().count() == 1, "{all}");
    }
    let directories = clusters.each_ref().map(|cluster| cluster.dir().to_owned());
    let [first, second] = clusters;
    drop(first);
    assert!(!directories[0].exists());
    assert!(second.kubectl(&["get", "nodes"]).is_ok());
    assert!(matches!(second.audit(), Err(Error::Absent(_))));
}

/// Runs `controlplane up` with other programs, and returns how it complains.
fn complaint(set_up: impl FnOnce(&mut Command, &Path)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_controlplane"));
    command.arg("up").env_remove("RHUMB_CONTROLPLANE_BIN").env_remove("KUBEBUILDER_ASSETS");
    command.env("XDG_CACHE_HOME", directory.path());
    set_up(&mut command, directory.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn script(path: PathBuf, text: &str) {
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_missing_program_is_named() {
    let text = complaint(|command, directory| {
        script(directory.join("etcd"), "");
        script(directory.join("kube-apiserver"), "");
        command.env("KUBEBUILDER_ASSETS", directory);
    });
    assert!(text.contains("KUBEBUILDER_ASSETS is "), "{text}");
    assert!(text.contains("lacks kube-controller-manager, kube-scheduler, kwok\n"), "{text}");
}

#[test]
fn a_missing_or_old_go_is_one_error() {
    for (version, expected) in [
        (None, "but there is no `go` in PATH"),
        (Some("go1.25.4"), "but `go` is go1.25.4"),
        (Some("devel"), "but `go` is devel"),
    ] {
        let text = complaint(|command, directory| {
            if let Some(version) = version {
                script(directory.join("go"), &format!("echo {version}"));
            }
            command.env("PATH", directory);
        });
        assert!(text.contains("Go 1.26 or newer is needed") && text.contains(expected), "{text}");
        assert!(text.contains("RHUMB_CONTROLPLANE_BIN or KUBEBUILDER_ASSETS"), "{text}");
    }
}

#[test]
fn a_failed_start_shows_the_log() {
    let real = controlplane::programs().unwrap();
    let text = complaint(|command, directory| {
        for name in ["kube-controller-manager", "kube-scheduler", "kwok"] {
            script(directory.join(name), "");
        }
        std::os::unix::fs::symlink(real.join("etcd"), directory.join("etcd")).unwrap();
        script(
            directory.join("kube-apiserver"),
            "echo I1121 10:00:00 all is well; echo 'E1121 10:00:01 no such flag'; exit 1",
        );
        command.env("RHUMB_CONTROLPLANE_BIN", directory);
    });
    assert!(text.contains("kube-apiserver ended by itself"), "{text}");
    assert!(text.contains("no such flag") && !text.contains("all is well"), "{text}");
}
