//! The meaning of manifests, as a specification: each test gives files, their diagnostics and their
//! objects.

mod blocks;
mod documents;
mod lists;
mod metadata;
mod names;
mod placed;
mod reading;
mod secrets;
mod twice;

use std::fmt::Write as _;
use std::sync::Arc;

use super::{KindScopes, ManifestFile, assemble, read};

/// Returns a text as it is in a test, without the indentation of the test.
fn unindented(text: &str) -> String {
    let Some(text) = text.strip_prefix('\n') else { return text.to_owned() };
    let text = text.trim_end_matches(' ');
    let blank = |line: &str| line.trim().is_empty();
    let indents = text.lines().filter(|line| !blank(line)).map(|line| line.len() - line.trim_start().len());
    let indent = indents.min().unwrap_or(0);
    text.lines().map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n").collect()
}

fn read_text(text: &str) -> ManifestFile {
    read(&Arc::from("a.yaml"), unindented(text).as_bytes())
}

/// Returns the words of `rhumb validate` about the files, the objects that would be applied, and
/// the unusable ones.
fn account(files: &[(&str, &str)]) -> String {
    let (mut found, mut items, mut understood) = (Vec::new(), Vec::new(), true);
    for (file, text) in files {
        let reading = read(&Arc::from(*file), unindented(text).as_bytes());
        found.extend(reading.diagnostics);
        items.extend(reading.items);
        understood &= reading.understood;
    }
    let assembled = assemble(items, &KindScopes::builtin(), "default");
    found.extend(assembled.diagnostics);
    found.sort();
    let mut out = String::new();
    for found in found {
        let _ = write!(out, "{}", found.origin.file);
        if found.origin.line > 0 {
            let _ = write!(out, ":{}:{}", found.origin.line, found.origin.column);
        }
        let _ = writeln!(out, ": {}: {}", found.severity, found.message);
        if let Some(hint) = found.hint {
            let _ = writeln!(out, "  hint: {hint}");
        }
    }
    for object in assembled.objects {
        let _ = writeln!(out, "{}", object.id);
    }
    for invalid in assembled.invalid {
        let _ = writeln!(out, "held: {}, {}", invalid.id, invalid.reason);
    }
    if !understood {
        out.push_str("not understood\n");
    }
    out
}

#[track_caller]
fn check(input: &str, expected: &str) {
    check_files(&[("a.yaml", input)], expected);
}

#[track_caller]
fn check_files(files: &[(&str, &str)], expected: &str) {
    let (got, expected) = (account(files), unindented(expected));
    assert!(got == expected, "of {files:?} came\n{got}\nand not\n{expected}");
}
