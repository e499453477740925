//! A host that systemd has booted, in namespaces of its own, for the packaged unit.

use std::fs;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::wait::until;

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
pub(crate) struct Host {
    first: Child,
    _dir: TempDir,
}

impl Host {
    /// Boots systemd; none where it is not there, or may not run.
    pub(crate) fn boot(prepare: impl FnOnce(&Path)) -> Option<Self> {
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

    /// Returns the id of the first process on this host.
    fn number(&self) -> Option<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.first.id());
        fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// Returns its root folder, as this host sees it.
    pub(crate) fn root(&self) -> PathBuf {
        let number = self.number().unwrap();
        [Path::new("/proc"), Path::new(&number.to_string()), Path::new("root")].iter().collect()
    }

    /// Returns the output of a command in it.
    pub(crate) fn output(&self, command: &[&str]) -> String {
        let Some(number) = self.number() else { return String::new() };
        let target = number.to_string();
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &target, "--mount", "--pid"]).args(command).stdin(Stdio::null());
        let output = enter.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    pub(crate) fn shows(&self, property: &str) -> String {
        self.output(&["systemctl", "show", "rhumb", "--value", "--property", property])
    }

    /// Returns the entries of the service in the journal.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = self.output(&["journalctl", "--unit", "rhumb", "--output", "json", "--all"]);
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[track_caller]
    pub(crate) fn await_status(&self, words: &[&str]) {
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
