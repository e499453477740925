//! YAML that every reader takes alike.
//!
//! kubectl reads YAML 1.1, most libraries write YAML 1.2: what is text to one (`on`, `1_000`,
//! `2024-01-01`) is a boolean, a number or a date to the other. So everything is quoted here that either
//! could take for something else.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::palette::steers;
use crate::object::canonical_json;

/// A longer key needs YAML's explicit form.
const LONGEST_PLAIN_KEY: usize = 512;

/// One document in block style, keys sorted, as `kubectl get -o yaml` lays it out.
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, 0),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0),
        scalar => {
            inline(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Writes the entries; the first one goes where the cursor is.
fn mapping(out: &mut String, map: &Map<String, Value>, depth: usize) {
    for (number, (key, value)) in map.iter().enumerate() {
        if number > 0 {
            indent(out, depth);
        }
        if key.len() > LONGEST_PLAIN_KEY {
            out.push_str("? ");
            quoted(out, key);
            out.push('\n');
            indent(out, depth);
        } else if is_plain(key) {
            out.push_str(key);
        } else {
            quoted(out, key);
        }
        out.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                indent(out, depth + 1);
                mapping(out, inner, depth + 1);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                indent(out, depth);
                list(out, items, depth);
            }
            scalar => {
                out.push(' ');
                inline(out, scalar, depth + 1);
                out.push('\n');
            }
        }
    }
}

/// Writes the items; the first one goes where the cursor is.
fn list(out: &mut String, items: &[Value], depth: usize) {
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            indent(out, depth);
        }
        out.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => mapping(out, inner, depth + 1),
            Value::Array(inner) if !inner.is_empty() => list(out, inner, depth + 1),
            scalar => {
                inline(out, scalar, depth + 1);
                out.push('\n');
            }
        }
    }
}

/// Writes what needs no lines of its own; the lines of a text stand at `depth`.
fn inline(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::String(text) if is_plain(text) => out.push_str(text),
        Value::String(text) if is_literal(text) => literal(out, text, depth),
        Value::String(text) => quoted(out, text),
        other => out.push_str(&canonical_json(other)),
    }
}

/// Whether no YAML reader takes the bare text for anything but this text.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./:@+,=%~ ()".contains(c);
    if !text.chars().all(allowed) || text.contains(": ") || text.ends_with([':', ' ']) {
        return false;
    }
    if first.is_ascii_digit() {
        return is_quantity(text);
    }
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let starts = match first {
        '/' | '_' => true,
        // `-1`, `-.inf` and `---` are something else.
        '-' => {
            !text.starts_with("---")
                && text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_alphabetic())
        }
        first => first.is_ascii_alphabetic(),
    };
    starts && !words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// `100m`, `2Gi`, `30s`: common, and no number to anybody.
fn is_quantity(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    matches!(unit, "m" | "k" | "M" | "G" | "Ki" | "Mi" | "Gi" | "Ti" | "s" | "h" | "%")
}

/// Whether a text can stand line by line, as it is.
fn is_literal(text: &str) -> bool {
    let first = text.chars().next().unwrap_or(' ');
    text.contains('\n')
        && !first.is_whitespace()
        && !text.chars().any(|c| steers(c) && c != '\n' && c != '\t')
}

fn literal(out: &mut String, text: &str, depth: usize) {
    let body = text.strip_suffix('\n');
    out.push_str(match body {
        None => "|-",
        Some(body) if body.ends_with('\n') => "|+",
        Some(_) => "|",
    });
    for line in body.unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(out, depth);
            out.push_str(line);
        }
    }
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if steers(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
