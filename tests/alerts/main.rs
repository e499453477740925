//! The alerting rules: `promtool` takes them, and each fires when it is to, and only then.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs `promtool` on a file; nothing, loudly, where there is no such program.
#[track_caller]
fn promtool(what: [&str; 2], path: &str) {
    let Ok(output) = Command::new("promtool").args(what).arg(file(path)).output() else {
        // Not by `eprintln!`, which a test that passes keeps to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no promtool");
        return;
    };
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_rules_are_well_formed() {
    promtool(["check", "rules"], "examples/alerts.yaml");
}

#[test]
fn each_rule_fires_when_it_is_to_and_only_then() {
    promtool(["test", "rules"], "tests/alerts/rules.yaml");
}

#[test]
fn no_rule_goes_untested() {
    let read = |path: &str| fs::read_to_string(file(path)).unwrap();
    let (rules, tests) = (read("examples/alerts.yaml"), read("tests/alerts/rules.yaml"));
    let names: BTreeSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 8, "{names:?}");
    let untested: Vec<_> =
        names.into_iter().filter(|name| !tests.contains(&format!("alertname=\"{name}\""))).collect();
    assert!(untested.is_empty(), "{untested:?}");
}
