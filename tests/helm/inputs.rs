//! Charts of other people.

use std::path::{Path, PathBuf};

use crate::fixture::{Chart, options};

/// The folders with a chart that is no part of another one.
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

#[test]
fn real_charts_give_what_helm_prints_or_are_refused_where_it_fails() {
    let Some(inputs) = std::env::var_os("RHUMB_INPUTS").map(PathBuf::from) else {
        return eprintln!("not tried: RHUMB_INPUTS names no folder with charts");
    };
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
