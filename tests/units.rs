//! The unit files: what systemd says of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rhumb::testing::config::{self, Environment};
use tempfile::TempDir;

/// Returns the folder with the units.
fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd")
}

/// Returns the output of `systemd-analyze`; none, loudly, where there is no such program.
fn analyzed<S: AsRef<OsStr>>(arguments: &[S]) -> Option<String> {
    let mut command = Command::new("systemd-analyze");
    command.env("LC_ALL", "C").env("SYSTEMD_COLORS", "0").args(arguments);
    let Ok(output) = command.output() else {
        // Not by `eprintln!`, which a test that passes keeps to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no systemd-analyze");
        return None;
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    Some(said)
}

/// Returns the units as they would be installed, with this program and these drop-ins.
fn installed(drop_ins: &[PathBuf]) -> (TempDir, [PathBuf; 2]) {
    let dir = TempDir::new().unwrap();
    let paths =
        [("rhumb.service", "rhumb.service"), ("rhumb@.service", "rhumb@prod.service")].map(|(file, name)| {
            let text = fs::read_to_string(units().join(file)).unwrap();
            let text = text.replace("/usr/bin/rhumb", env!("CARGO_BIN_EXE_rhumb"));
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            let folder = dir.path().join(format!("{name}.d"));
            fs::create_dir(&folder).unwrap();
            for drop_in in drop_ins {
                fs::copy(drop_in, folder.join(drop_in.file_name().unwrap())).unwrap();
            }
            path
        });
    (dir, paths)
}

fn drop_ins() -> Vec<PathBuf> {
    let entries = fs::read_dir(units().join("drop-ins")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

#[test]
fn systemd_finds_nothing_wrong() {
    for drop_ins in [Vec::new(), drop_ins()] {
        let (_dir, paths) = installed(&drop_ins);
        for path in &paths {
            let arguments = [OsStr::new("verify"), OsStr::new("--man=no"), path.as_os_str()];
            let Some(said) = analyzed(&arguments) else { return };
            // Units of the machine itself are none of ours.
            let ours: Vec<&str> = said.lines().filter(|line| line.contains("rhumb")).collect();
            assert!(ours.is_empty(), "{ours:#?}");
        }
    }
}

#[test]
fn a_setting_that_systemd_does_not_know_would_be_found() {
    let (dir, [path, _]) = installed(&[]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("ProtectClock=yes", "ProtectClocks=yes")).unwrap();
    let Some(said) = analyzed(&[OsStr::new("verify"), OsStr::new("--man=no"), path.as_os_str()]) else {
        return;
    };
    assert!(said.contains("ProtectClocks"), "{said}");
    drop(dir);
}

#[test]
fn little_is_exposed() {
    for (file, drop_ins) in
        [("rhumb.service", Vec::new()), ("rhumb@prod.service", Vec::new()), ("rhumb.service", drop_ins())]
    {
        let (dir, _) = installed(&drop_ins);
        // 15 is an exposure of 1.5.
        let path = dir.path().join(file);
        let arguments =
            ["security", "--no-pager", "--offline=true", "--threshold=15", path.to_str().unwrap()];
        let Some(said) = analyzed(&arguments) else { return };
        assert!(said.contains("Overall exposure level"), "{said}");
    }
}

#[test]
fn the_template_differs_from_the_unit_in_names_only() {
    let settings = |file: &str| {
        let text = fs::read_to_string(units().join(file)).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let named = settings("rhumb@.service").into_iter().map(|line| {
        line.replace("/etc/rhumb/%i/", "/etc/rhumb/")
            .replace("rhumb/%i", "rhumb")
            .replace("rhumb: cluster %i follows", "rhumb: a cluster follows")
    });
    assert_eq!(named.collect::<Vec<_>>(), settings("rhumb.service"));
}

#[test]
fn what_a_git_server_makes_it_take_is_bounded_and_ends_no_service() {
    let text = fs::read_to_string(units().join("rhumb.service")).unwrap();
    for setting in ["MemoryMax=", "TasksMax=", "OOMPolicy=continue"] {
        assert!(text.lines().any(|line| line.starts_with(setting)), "{setting}");
    }
}

#[test]
fn the_service_may_put_programs_into_a_sandbox() {
    let text = fs::read_to_string(units().join("rhumb.service")).unwrap();
    let calls = "SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp";
    assert!(text.lines().any(|line| line == calls), "older versions of systemd have no group of them");
}

#[test]
fn the_packaged_configuration_is_read_and_writes_nothing() {
    let text = fs::read_to_string(units().join("rhumb.yaml")).unwrap();
    let config = config::read("rhumb.yaml", &text, &Environment::default()).unwrap();
    assert_eq!(config.sources.len(), 1);
    assert_eq!(config.sources[0].mode, config::SourceMode::Observe);
}
