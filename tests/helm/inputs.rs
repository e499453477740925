//! Charts of other people.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use rhumb::testing::input::helm::{GeneratedPolicy, HelmOptions};
use rhumb::testing::object::annotations;

use crate::fixture::{Chart, findings, options};

/// Returns the folders with a chart that is no part of another one.
fn charts(inputs: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for kind in ["charts", "repositories"] {
        let top = inputs.join(kind);
        let mut walk = walkdir::WalkDir::new(&top).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let entry = entry.unwrap();
            if entry.file_type().is_dir() && entry.path().join("Chart.yaml").exists() {
                let root = entry.path().strip_prefix(&top).unwrap();
                found.push((top.clone(), root.to_str().unwrap().to_owned()));
                walk.skip_current_dir();
            }
        }
    }
    found
}

/// Leaves out the parts of a text that differ from run to run.
fn stable(value: &serde_json::Value, other: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match (value, other) {
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .map(|(key, value)| (key.clone(), b.get(key).map_or(Value::Null, |other| stable(value, other))))
            .collect(),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).map(|(a, b)| stable(a, b)).collect()
        }
        (a, b) if a == b => a.clone(),
        _ => Value::Null,
    }
}

fn inputs() -> Option<PathBuf> {
    let inputs = std::env::var_os("RHUMB_INPUTS").map(PathBuf::from);
    if inputs.is_none() {
        // Past the harness, which shows nothing of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: no inputs: RHUMB_INPUTS names no folder with charts");
    }
    inputs
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let path = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(path).unwrap();
        } else {
            std::fs::copy(entry.path(), path).unwrap();
        }
    }
}

// The chart makes up a password, and finds it again with `lookup`, which nobody answers here.
#[test]
fn a_real_chart_that_makes_up_a_password_is_refused_or_made_once() {
    let Some(inputs) = inputs() else { return };
    let folder = tempfile::tempdir().unwrap();
    copy(&inputs.join("charts/redis"), &folder.path().join("redis"));
    copy(&inputs.join("charts/bitnami-common"), &folder.path().join("redis/charts/common"));
    let chart = Chart::at(folder.path(), "redis");
    assert_eq!(chart.template(&options()).unwrap().len(), chart.bare(&options()).unwrap().len());
    let found = findings(chart.render(&options()));
    let secret =
        "generated-value redis/templates/secret.yaml: Secret prod/web-redis: /data/redis-password differs";
    assert!(found.iter().any(|found| found.starts_with(secret)), "{found:#?}");
    let once = HelmOptions { generated: GeneratedPolicy::Once, ..options() };
    let render = chart.render(&once).unwrap();
    let ignored = render.objects.iter().filter(|object| !object.generated.is_empty());
    let ignored: Vec<_> = ignored
        .map(|object| object.body["metadata"]["annotations"][annotations::IGNORE_FIELDS].as_str().unwrap())
        .collect();
    let has_password = ignored.iter().any(|paths| paths.starts_with("/data/redis-password, "));
    assert!(has_password && ignored.len() > 1, "{ignored:?}");
}

#[test]
fn real_charts_give_what_helm_prints_or_are_refused_where_it_fails() {
    let Some(inputs) = inputs() else { return };
    let charts = charts(&inputs);
    assert!(!charts.is_empty(), "{} holds no chart", inputs.display());
    for (top, root) in charts {
        let chart = Chart::at(&top, &root);
        match (chart.bare(&options()), chart.template(&options())) {
            (Ok(bare), Ok(rendered)) => {
                let rendered: Vec<_> = rendered.into_iter().map(|object| object.body).collect();
                assert_eq!(rendered.len(), bare.len(), "{root}");
                // Some charts make passwords.
                let again = chart.bare(&options()).unwrap();
                for ((rendered, bare), again) in rendered.iter().zip(&bare).zip(&again) {
                    let (bare, rendered) = (stable(bare, again), stable(rendered, again));
                    let name = format!("{root}: {} {}", bare["kind"], bare["metadata"]["name"]);
                    assert_eq!(stable(&rendered, &bare), bare, "{name}");
                }
                eprintln!("{root}: {} objects, equal", bare.len());
            }
            (Err(_), Err(error)) => eprintln!("{root}: refused: {error}"),
            (bare, rendered) => panic!("{root}: helm alone: {bare:?}, with the closure: {rendered:?}"),
        }
    }
}

/// Renders the roots of real repositories that use charts of servers. Each is refused by name, with
/// what would allow it, and nothing is fetched.
#[test]
fn charts_of_servers_in_real_repositories_are_refused_by_name() {
    let Some(inputs) = inputs() else { return };
    let mut count = 0;
    for entry in walkdir::WalkDir::new(inputs.join("repositories")).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.file_name() != "kustomization.yaml" {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        if !text.contains("\nhelmCharts:") || text.contains("kind: Component") {
            continue;
        }
        let (objects, found) = crate::inflation::rendered(entry.path().parent().unwrap());
        let findings = found.iter().map(|found| format!("{} {}", found["message"], found["hint"]));
        let findings: Vec<String> = findings.collect();
        assert_eq!(objects.len(), 0, "{}", entry.path().display());
        assert!(
            findings.iter().any(|findings| findings.contains("may not be fetched from")
                && findings.contains("spec.fetch.allow")),
            "{}: {findings:#?}",
            entry.path().display()
        );
        count += 1;
    }
    assert!(count > 5, "{count}");
}
