//! The dialect of YAML, case by case: `tests/yaml/*.yaml` is read as kubectl reads it.
//!
//! Beside each case is kubectl's result: `documents`, and `error` where it stopped or complained.
//! In `documents`, `{"#num": "420"}` is a number with the text that kubectl wrote.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its own functions")]

mod blocks;
mod deviations;
mod streams;
mod values;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rhumb::testing::manifest::{self, ManifestFile, ManifestItem};
use rhumb::testing::object::canonical_json;
use serde_json::{Map, Value};

/// The cases among the deviations, and the code of the diagnostic that says so: kubectl takes the
/// later of two equal keys in silence. The others are in [`deviations`].
const STRICTER: &[(&str, &str)] = &[("dup0", "duplicate-key"), ("dup2", "duplicate-key")];

/// Warnings that kubectl does not give, by the codes that may appear in any case.
const WARNINGS: &[&str] = &["old-boolean", "leading-zero", "unknown-tag", "unread"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/yaml")
}

fn read(path: &Path) -> ManifestFile {
    manifest::read(&Arc::from("case.yaml"), &fs::read(path).unwrap())
}

/// Returns kubectl's reading: the documents as text, and whether it reported an error.
fn expected(path: &Path) -> (Vec<String>, bool) {
    let text = fs::read_to_string(path).unwrap();
    // Too deep for the JSON reader of the test; written without blanks for that reason.
    if path.ends_with("depth1k.json") {
        let document = text.trim().strip_prefix(r#"{"documents":["#).unwrap().strip_suffix("]}").unwrap();
        return (vec![document.replace(r##"{"#num":"1"}"##, "1")], false);
    }
    let case: Value = serde_json::from_str(&text).unwrap();
    let documents = case["documents"].as_array().unwrap().iter().map(written).collect();
    (documents, case.get("error").is_some())
}

fn written(value: &Value) -> String {
    match value {
        Value::Object(map) => match map.get("#num").and_then(Value::as_str) {
            Some(number) if map.len() == 1 => number.to_owned(),
            _ => object(map),
        },
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

fn object(map: &Map<String, Value>) -> String {
    let pairs: Vec<_> =
        map.iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), written(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn difference(name: &str, path: &Path) -> Option<String> {
    let reading = read(path);
    let (documents, failed) = expected(&path.with_extension("json"));
    let got: Vec<_> = reading.readable_items().map(|item| canonical_json(&item.body)).collect();
    let errors: Vec<_> = reading.diagnostics.iter().filter(|found| found.is_error()).collect();
    if got != documents {
        return Some(format!("{name}: read as {got:?}, by kubectl as {documents:?}; {errors:?}"));
    }
    match STRICTER.iter().find(|(case, _)| *case == name) {
        Some((_, code)) => {
            let said = errors.iter().any(|found| found.code == *code);
            (failed || !said).then(|| format!("{name}: is among the deviations for nothing"))
        }
        None if failed == errors.is_empty() => {
            Some(format!("{name}: kubectl failed: {failed}; found {errors:?}"))
        }
        None => reading
            .diagnostics
            .iter()
            .find(|found| !found.is_error() && !WARNINGS.contains(&found.code))
            .map(|found| format!("{name}: unexpected {found:?}")),
    }
}

#[test]
fn every_case_is_read_as_kubectl_reads_it() {
    let mut differences = Vec::new();
    let mut cases = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            differences.extend(difference(&name, &path));
            cases += 1;
        }
    }
    assert!(cases > 100, "only {cases} cases found");
    assert!(differences.is_empty(), "{} of {cases} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn every_deviation_is_a_case() {
    for (case, _) in STRICTER {
        assert!(folder().join(case).with_extension("yaml").exists(), "{case}");
    }
}

/// Checks that the text after `a: ` in a document is read as kubectl reads it, or refused where
/// kubectl refuses it.
fn check(value: &str, expected: Option<&str>) -> Option<String> {
    let end = if value.ends_with('\n') { "" } else { "\n" };
    let text = format!("apiVersion: v1\nkind: T\nmetadata: {{name: t}}\na: {value}{end}");
    let reading = manifest::read(&Arc::from("case.yaml"), text.as_bytes());
    let refused = reading.diagnostics.iter().any(rhumb::testing::object::Diagnostic::is_error);
    let got = reading.readable_items().next().map(|item| canonical_json(&item.body["a"]));
    let differs = got.as_deref() != expected || refused != expected.is_none();
    differs.then(|| format!("{value:?}: {got:?} and not {expected:?}; {:?}", reading.diagnostics))
}

#[test]
fn every_value_is_read_as_kubectl_reads_it() {
    let rows = values::VALUES.iter().chain(blocks::BLOCKS);
    let differences: Vec<_> = rows.filter_map(|(value, expected)| check(value, *expected)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Returns a table's file as it is written, with an object in each place that asks for one.
fn spelled_out(brief: &str) -> String {
    ["a", "b", "c"].iter().fold(brief.to_owned(), |text, name| {
        let block = format!("apiVersion: v1\nkind: T\nmetadata: {{name: {name}}}\n");
        let flow = format!("{{apiVersion: v1, kind: T, metadata: {{name: {name}}}}}");
        let json = format!(r#"{{"apiVersion":"v1","kind":"T","metadata":{{"name":"{name}"}}"#);
        text.replace(&format!("@{name}\n"), &block)
            .replace(&format!("{{@{name}}}"), &flow)
            .replace(&format!(r#"{{"@{name}""#), &json)
    })
}

fn summed_up(item: &ManifestItem) -> String {
    let mut rest = item.body.clone();
    for known in ["apiVersion", "kind", "metadata"] {
        rest.as_object_mut().unwrap().remove(known);
    }
    let whose = format!("{} {} {}", item.gvk.version, item.gvk.kind, item.name);
    let rest = Some(canonical_json(&rest)).filter(|rest| rest != "{}").map(|rest| format!(" {rest}"));
    whose.trim_start_matches("v1 T ").to_owned() + rest.as_deref().unwrap_or_default()
}

#[test]
fn every_stream_is_read_as_kubectl_reads_it() {
    for (file, documents, failed) in streams::STREAMS {
        let text = spelled_out(file);
        let reading = manifest::read(&Arc::from("case.yaml"), text.as_bytes());
        let got: Vec<_> = reading.readable_items().map(summed_up).collect();
        assert_eq!(got, *documents, "{file:?}: {:?}", reading.diagnostics);
        let refused = reading.diagnostics.iter().any(rhumb::testing::object::Diagnostic::is_error);
        assert_eq!(refused, *failed, "{file:?}: {:?}", reading.diagnostics);
    }
}

/// Returns the printable form of a file, and the codes of the errors and of the warnings in it,
/// each once.
fn shown(file: &str) -> (Vec<String>, Vec<&'static str>, Vec<&'static str>) {
    let reading = manifest::read(&Arc::from("case.yaml"), spelled_out(file).as_bytes());
    let codes = |errors: bool| {
        let found = reading.diagnostics.iter().filter(|found| found.is_error() == errors);
        let mut codes: Vec<_> = found.map(|found| found.code).collect();
        codes.dedup();
        codes
    };
    (reading.readable_items().map(summed_up).collect(), codes(true), codes(false))
}

#[test]
fn every_deviation_is_stricter() {
    for (file, by_kubectl, here, code) in deviations::STRICTER {
        let (documents, errors, warnings) = shown(file);
        assert_eq!((documents.as_slice(), errors), (owned(here).as_slice(), vec![*code]), "{file:?}");
        assert!(warnings.is_empty(), "{file:?}: {warnings:?}");
        assert!(documents.len() <= by_kubectl.len(), "{file:?}");
    }
    for (file, by_kubectl, code) in deviations::WARNED_OF {
        assert_eq!(shown(file), (owned(by_kubectl), vec![], vec![*code]), "{file:?}");
    }
}

#[test]
fn what_kubectl_drops_is_read_as_far_as_it_goes() {
    for (file, here, code) in deviations::FURTHER {
        assert_eq!(shown(file), (owned(here), code.iter().copied().collect(), vec![]), "{file:?}");
    }
}

#[test]
fn every_limit_is_where_it_is_said_to_be() {
    for deviations::Limit { what, make, most, code } in deviations::LIMITS {
        let codes = |count| {
            let reading = manifest::read(&Arc::from("case.yaml"), make(count).as_bytes());
            reading.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>()
        };
        assert!(codes(*most).is_empty(), "{what}: {:?}", codes(*most));
        assert_eq!(codes(most + 1), [*code], "{what}");
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_key_has_at_most_1024_characters_unless_a_question_mark_announces_it() {
    let read = |text: String| {
        let text = format!("apiVersion: v1\nkind: T\nmetadata: {{name: t}}\n{text}");
        manifest::read(&Arc::from("case.yaml"), text.as_bytes()).understood
    };
    for (length, fits) in [(1024, true), (1025, false)] {
        let key = "é".repeat(length);
        assert_eq!(read(format!("{key}: 1\n")), fits, "{length}");
        assert_eq!(read(format!("\"{}\": 1\n", "k".repeat(length - 2))), fits, "{length}");
        assert!(read(format!("? {key}\n: 1\n")), "{length}");
    }
}
