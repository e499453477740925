//! The JSON tree: reaching into it, and writing it as Kubernetes' own programs write it.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Returns the value under a chain of object keys.
pub fn value_at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Returns the text under a chain of object keys; empty where there is none.
pub fn text_at<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value_at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the text of an annotation of an object; empty where there is none.
pub(crate) fn annotation_text<'a>(object: &'a Value, key: &str) -> &'a str {
    text_at(object, &["metadata", "annotations", key])
}

/// Returns one line of JSON, keys sorted, numbers as Go's `encoding/json` writes them. Two trees
/// that mean the same give the same text.
pub fn canonical_json(value: &Value) -> String {
    serialize_with(value, GoNumberWriter(CompactFormatter))
}

/// Returns indented JSON, the keys of trees sorted, numbers as Go's `encoding/json` writes them.
pub(crate) fn pretty_json<T: Serialize + ?Sized>(value: &T) -> String {
    serialize_with(value, GoNumberWriter(PrettyFormatter::new()))
}

fn serialize_with<T: Serialize + ?Sized, F: Formatter>(value: &T, formatter: F) -> String {
    let mut out = Vec::new();
    // Neither writing to a Vec nor serialising trees and plain structs can fail.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    String::from_utf8(out).unwrap_or_default()
}

/// A writer of floats in Go's (and ECMAScript's) form: plain digits for 1e-6 ≤ |x| < 1e21, no
/// trailing `.0`.
struct GoNumberWriter<F>(F);

impl<F: Formatter> Formatter for GoNumberWriter<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(go_float(value).as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

fn go_float(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}
