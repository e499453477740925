//! The packaged unit under a real systemd with a real journal, in namespaces of its own.

use std::fs;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Repo, TestNamespace, until, yaml};

/// The path of systemd on Debian, Fedora and others.
const SYSTEMD: &str = "/lib/systemd/systemd";

/// Units of systemd itself that the packaged one builds on.
const NEEDED: [&str; 15] = [
    "basic.target",
    "network-online.target",
    "network.target",
    "paths.target",
    "shutdown.target",
    "slices.target",
    "sockets.target",
    "sysinit.target",
    "systemd-journald-dev-log.socket",
    "systemd-journald.service",
    "systemd-journald.socket",
    "system.slice",
    "timers.target",
    "umount.target",
    "final.target",
];

/// The view of the first process: nothing that it writes is seen by others. Mounts are shared
/// within, as credentials come by a mount.
const BOOT: &str = r#"
    mount --make-rprivate / && mount --make-rshared / &&
    mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /var/log &&
    mkdir -p /run/lock /run/systemd/system && cp -a "$0" /run/host || exit 77
    export container=test SYSTEMD_UNIT_PATH=/run/host/units
    exec "$1" --system --log-target=null --show-status=no
"#;

/// A host that has booted.
struct Host {
    first: Child,
    _dir: TempDir,
}

impl Host {
    /// None where systemd is not there, or may not run.
    fn boot(prepare: impl FnOnce(&Path)) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let units = dir.path().join("units");
        fs::create_dir(&units).unwrap();
        for unit in NEEDED {
            let _ = fs::copy(format!("/lib/systemd/system/{unit}"), units.join(unit));
        }
        let first = "[Unit]\nRequires=basic.target\nAfter=basic.target systemd-journald.socket\n\
                     Wants=systemd-journald.socket systemd-journald-dev-log.socket\n";
        fs::write(units.join("default.target"), first).unwrap();
        prepare(dir.path());
        let mut command = Command::new("unshare");
        command.args(["--fork", "--kill-child", "--pid", "--mount", "--mount-proc", "--uts", "--ipc"]);
        command.args(["sh", "-c", BOOT]).arg(dir.path()).arg(SYSTEMD);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let first = Path::new(SYSTEMD).exists().then(|| command.spawn().ok()).flatten();
        let mut host = first.map(|first| Self { first, _dir: dir });
        let mut is_up = false;
        if let Some(host) = &mut host {
            until("the host has booted, or cannot", || {
                is_up = host.output(&["systemctl", "is-active", "default.target"]) == "active";
                is_up || host.first.try_wait().unwrap().is_some()
            });
        }
        if !is_up {
            let _ = writeln!(stderr(), "SKIPPED: no namespaces: systemd cannot be run here");
        }
        host.filter(|_| is_up)
    }

    /// The first process, as this host numbers it.
    fn number(&self) -> Option<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.first.id());
        fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// Its files, as this host sees them.
    fn root(&self) -> PathBuf {
        let number = self.number().unwrap();
        [Path::new("/proc"), Path::new(&number.to_string()), Path::new("root")].iter().collect()
    }

    /// Returns the output of a command in it.
    fn output(&self, command: &[&str]) -> String {
        let Some(number) = self.number() else { return String::new() };
        let target = number.to_string();
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &target, "--mount", "--pid"]).args(command).stdin(Stdio::null());
        let output = enter.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    fn shows(&self, property: &str) -> String {
        self.output(&["systemctl", "show", "rhumb", "--value", "--property", property])
    }

    /// The entries of the service in the journal.
    fn journal(&self) -> Vec<Value> {
        let text = self.output(&["journalctl", "--unit", "rhumb", "--output", "json", "--all"]);
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[track_caller]
    fn await_status(&self, words: &[&str]) {
        let mut last = String::new();
        until(&format!("the status has {words:?}"), || {
            last = self.shows("StatusText");
            words.iter().all(|word| last.contains(word))
        });
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(number) = self.number() {
            let _ = Command::new("kill").args(["-9", &number.to_string()]).status();
        }
        let _ = self.first.kill();
        let _ = self.first.wait();
    }
}

/// The packaged unit, with the folders of the package below `/run/host`.
fn install(to: &Path, site: &TestNamespace<'_>, repo: &Repo) {
    let unit = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/rhumb.service")).unwrap();
    let unit = unit.replace("/usr/bin/", "/run/host/bin/").replace("/etc/rhumb/", "/run/host/etc/");
    fs::write(to.join("units/rhumb.service"), unit).unwrap();
    for folder in ["bin", "etc"] {
        fs::create_dir(to.join(folder)).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_rhumb"), to.join("bin/rhumb")).unwrap();
    fs::copy(site.kubeconfig(), to.join("etc/kubeconfig")).unwrap();
    let copied = Command::new("cp").arg("-a").arg(repo.path()).arg(to.join("shop")).status().unwrap();
    assert!(copied.success());
    let settings = format!("namespace: {}\nresync: 1h", site.system());
    let text = site.configuration(Path::new("/run/host/shop"), &settings);
    fs::write(to.join("etc/rhumb.yaml"), text).unwrap();
}

#[test]
fn the_packaged_unit_runs_under_systemd() {
    let site = TestNamespace::new("systemd");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let Some(host) = Host::boot(|to| install(to, &site, &repo)) else { return };
    let started = host.output(&["systemctl", "start", "rhumb"]);
    assert_eq!((&*started, &*host.shows("ActiveState")), ("", "active"), "{}", host.output(&["journalctl"]));
    let head = repo.head();
    host.await_status(&[&site.name, &head[..12], ": 1 objects; next resync "]);
    site.await_data("env", "a", "1");

    // Nobody in particular, and the group that may read the journal.
    let socket = host.output(&["stat", "--format", "%U %G %a", "/run/rhumb/rhumb.sock"]);
    assert_eq!(socket, "rhumb adm 660");
    let status = host.output(&["/run/host/bin/rhumb", "status", "--socket", "/run/rhumb/rhumb.sock"]);
    assert!(status.contains(&head[..12]), "{status}");

    // Nobody reads its memory: what belongs to a process that may be dumped belongs to its user.
    let memory = format!("/proc/{}/mem", host.shows("MainPID"));
    assert_eq!(host.output(&["stat", "--format", "%U", &memory]), "root");

    // The journal has a line to read, and fields to ask by.
    let journal = host.journal();
    let created = journal.iter().find(|entry| entry["ACTION"] == "create");
    let created = created.unwrap_or_else(|| panic!("nothing was created: {journal:#?}"));
    assert_eq!((&created["OBJECT_KIND"], &created["REVISION"]), (&"ConfigMap".into(), &head.into()));
    assert!(created["MESSAGE"].as_str().is_some_and(|line| line.contains("/env source=")), "{created}");
    assert!(journal.iter().all(|entry| entry["_TRANSPORT"] != "stdout"), "lines beside: {journal:#?}");

    // A file that is not usable changes nothing.
    let config = host.root().join("run/host/etc/rhumb.yaml");
    let good = fs::read_to_string(&config).unwrap();
    fs::write(&config, good.replace("git:", "gti:")).unwrap();
    host.output(&["systemctl", "reload", "rhumb"]);
    host.await_status(&["new configuration refused: "]);
    assert_eq!(host.shows("ActiveState"), "active");
    fs::write(&config, good.replace("resync: 1h", "resync: 2h")).unwrap();
    host.output(&["systemctl", "reload", "rhumb"]);
    until("the new one is in force", || {
        let status = host.shows("StatusText");
        status.contains(": 1 objects; next resync ") && !status.contains("refused")
    });

    // It ends by itself, in time, and a wrong configuration is not tried again.
    host.output(&["systemctl", "stop", "rhumb"]);
    assert_eq!((&*host.shows("ActiveState"), &*host.shows("Result")), ("inactive", "success"));
    fs::write(&config, "kind: Nonsense\n").unwrap();
    host.output(&["systemctl", "start", "rhumb"]);
    assert_eq!((&*host.shows("ActiveState"), &*host.shows("ExecMainStatus")), ("failed", "78"));
    assert_eq!(host.shows("NRestarts"), "0");
}
