//! Manifests: the reader, other readers of the same dialect, and what is made of their objects.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{FuzzTarget, fuzz, shape};
use crate::change::{change_impact, diff_fields, immutable_fields, present, write_yaml};
use crate::engine::{BodyLocation, DesiredObject, SourceId, check_annotations, check_variables};
use crate::manifest::{self, KindScopes, ManifestFile};
use crate::object::{Diagnostic, Object, canonical_json};
use crate::{graph, health};

/// The inventory of the objects.
const INVENTORY_ID: &str = "applyset-x-v1";

/// The most bytes that aliases may add to what a file holds.
const MAX_EXPANSION_BYTES: usize = 8 << 20;

const WORDS: &[&str] = &[
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "? ",
    ": ",
    "- ",
    "|\n",
    "|2-\n",
    ">+\n",
    "!!binary ",
    "!!str ",
    "!!set ",
    "!<tag:yaml.org,2002:int> ",
    "\\u2028",
    "\\xff",
    "\"",
    "'",
    "{a: b}",
    "[a, b]",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "null",
    "~",
    "yes",
    "0o17",
    "0x1F",
    "1_000",
    "1:30",
    ".inf",
    "2001-12-14t21:59:43.10-05:00",
    "apiVersion: v1\n",
    "kind: List\n",
    "items:\n",
    "metadata:\n  name: a\n",
    "# comment\n",
];

/// Returns the YAML files of a folder of the repository.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    paths.sort();
    let texts = paths.iter().map(|path| std::fs::read(path).unwrap());
    texts.filter(|text| text.len() < 16 << 10).collect()
}

fn file() -> Arc<str> {
    "case.yaml".into()
}

/// Checks that findings name the file and a line of it, in few words.
fn check_findings(diagnostics: &[Diagnostic], bytes: &[u8]) {
    let is_break = |byte: &&u8| matches!(**byte, b'\n' | b'\r');
    let lines = bytes.iter().filter(is_break).count() + 1;
    for found in diagnostics {
        assert_eq!(&*found.origin.file, "case.yaml", "{found:?}");
        assert!(found.origin.line as usize <= lines, "{found:?} of {lines} lines");
        let texts = [Some(&found.message), found.hint.as_ref()];
        assert!(texts.into_iter().flatten().all(|text| text.len() <= 1100), "{found:?}");
        let shown = found.excerpt.as_ref().map_or(0, |excerpt| excerpt.chars().count());
        assert!(shown <= 4200, "{shown} characters of a line");
    }
}

fn codes(diagnostics: &[Diagnostic]) -> Vec<&'static str> {
    diagnostics.iter().map(|found| found.code).collect()
}

fn bodies(reading: &ManifestFile) -> Vec<&Value> {
    reading.items.iter().map(|item| &item.body).collect()
}

/// Checks what must hold for any file, and that what was read is read again from what is written.
fn check_manifest(bytes: &[u8]) -> u64 {
    let reading = manifest::read(&file(), bytes);
    check_findings(&reading.diagnostics, bytes);
    // Text that Kubernetes leaves unread is a warning, and makes the source incomplete all the same.
    let says_why = reading.diagnostics.iter().any(|found| found.is_error() || found.code == "unread");
    assert!(reading.understood || says_why, "nobody says why the file is incomplete");
    let written: Vec<String> = bodies(&reading).into_iter().map(canonical_json).collect();
    let size: usize = written.iter().map(String::len).sum();
    assert!(size <= 10 * bytes.len() + MAX_EXPANSION_BYTES, "{size} bytes of {}", bytes.len());
    for (item, json) in reading.items.iter().zip(&written).take(3) {
        let again = manifest::read(&file(), json.as_bytes());
        assert_eq!(bodies(&again), [&item.body], "{json}");
        let yaml = write_yaml(&item.body);
        assert_eq!(bodies(&manifest::read(&file(), yaml.as_bytes())), [&item.body], "{yaml}");
    }
    shape((codes(&reading.diagnostics), reading.items.len(), reading.understood, reading.before_error))
}

/// Checks the readers of files that are no manifests: values of charts, kustomizations, encrypted
/// files.
fn check_documents(bytes: &[u8]) -> u64 {
    let all = manifest::read_documents(&file(), bytes);
    check_findings(&all.diagnostics, bytes);
    let first = manifest::read_first_document(&file(), bytes);
    check_findings(&first.diagnostics, bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return shape(codes(&all.diagnostics)) };
    let placed = manifest::yaml_documents(text).map(|documents| documents.len());
    let json = manifest::json_document(text).is_ok();
    let plain = manifest::plain_value(text);
    shape((
        codes(&all.diagnostics),
        all.documents.len(),
        first.documents.len(),
        placed.ok(),
        json,
        plain.is_some(),
    ))
}

/// Checks all that is made of an object before anything is decided about it.
fn check_objects(bytes: &[u8]) -> u64 {
    let reading = manifest::read(&file(), bytes);
    let mut scopes = KindScopes::builtin();
    for item in &reading.items {
        scopes.add_definition(item);
    }
    let assembled = manifest::assemble(reading.items, &scopes, "default");
    check_findings(&assembled.diagnostics, bytes);
    let mut found = codes(&assembled.diagnostics);
    let mut before: Option<&Object> = None;
    for object in &assembled.objects {
        let misuse = check_annotations(object);
        check_findings(&misuse, bytes);
        found.extend(codes(&misuse));
        found.extend(check_variables(object).map(|found| found.code));
        let place = BodyLocation { source: SourceId::new(0), blob: [0; 20], index: 0 };
        let desired = DesiredObject::of(object, place, INVENTORY_ID);
        assert_eq!(desired, DesiredObject::of(object, place, INVENTORY_ID));
        drop((health::of(&object.body), graph::configuration(&object.id, &object.body)));
        drop((present(&object.id, &object.body), diff_fields(&object.id, None, Some(&object.body))));
        if let Some(before) = before {
            let kind = object.id.group_kind();
            std::hint::black_box(immutable_fields(&kind, &before.body, &object.body));
            std::hint::black_box(change_impact(&kind, Some(&before.body), Some(&object.body)));
        }
        let same = diff_fields(&object.id, Some(&object.body), Some(&object.body));
        assert!(same.is_empty(), "{same:?}");
        before = Some(object);
    }
    shape((found, assembled.objects.len(), assembled.invalid.len()))
}

#[test]
fn manifest_files() {
    let target =
        FuzzTarget { name: "manifest_files", seeds: files("tests/yaml"), words: WORDS, inputs: 2000 };
    fuzz(&target, check_manifest);
}

#[test]
fn placed_documents() {
    let target =
        FuzzTarget { name: "placed_documents", seeds: files("tests/yaml"), words: WORDS, inputs: 2000 };
    fuzz(&target, check_documents);
}

#[test]
fn whole_objects() {
    let folders =
        ["examples/shop/web", "examples/shop/database", "examples/shop/telemetry", "examples/in-cluster"];
    let texts = folders.into_iter().flat_map(files).collect();
    let words = [
        "apiVersion: apps/v1\nkind: Deployment\n",
        "spec:\n  replicas: 3\n  selector:\n    matchLabels: {app: a}\n",
        "rhumb.dev/depends-on: apps/namespaces/a/Deployment/b",
        "rhumb.dev/wave: \"1\"",
        "rhumb.dev/steps: 1, 50%",
        "rhumb.dev/ignore-fields: .spec.replicas",
        "${NAME}",
        "maxSurge: 150%",
        "status: {}",
        "matchExpressions: [{key: a, operator: In, values: [b]}]",
        "- name: a\n",
        "null",
        "[]",
        "{}",
    ];
    fuzz(&FuzzTarget { name: "whole_objects", seeds: texts, words: &words, inputs: 200 }, check_objects);
}
