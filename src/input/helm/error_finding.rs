//! The words of helm on a chart that it does not render, as a finding with its template and line.
//!
//! **Invariant:** shows no value. helm quotes values in its words, and charts do in theirs. So only
//! words that are known to quote none are shown, and text that is literally in a template. A chart
//! can say the words of helm too, and a value after them. Of such a text each word is one of the
//! chart's or a known one, or is left out.

use std::collections::{BTreeSet, HashSet};

use crate::input::kustomize::sanitize_text;
use crate::input::sandbox::RunOutput;
use crate::object::{Diagnostic, ManifestOrigin};

use super::closure::ChartClosure;
use super::output::chart_origin;

/// Lines of a complaint that are read.
const MAX_ERROR_LINES: usize = 60;
/// Parts of a complaint that are looked at. Each end of a line is looked for in all templates.
const MAX_ERROR_PARTS: usize = 200;
/// Parts of a complaint that are shown.
const MAX_SHOWN_PARTS: usize = 8;
/// Places that are looked for in one line.
const MAX_ERROR_POSITIONS: usize = 1_000;
/// A line of more bytes is looked at from both ends. Templates that call each other without an end
/// make it so long, and the reason comes last.
const MAX_ERROR_LINE_BYTES: usize = 16 << 10;
/// The bytes of each end of such a line.
const ERROR_LINE_END_BYTES: usize = 768;
/// Bytes of templates and schemas whose text may be shown. Large public charts have 5 MB in all.
const MAX_COMPARED_TEXT_BYTES: usize = 8 << 20;

/// Words of helm, Go and YAML that quote no value, as a part of a complaint begins.
const PLAIN_WORDS: [&str; 66] = [
    "Chart.yaml file is missing",
    "YAML parse error",
    "additional properties ",
    "bad character ",
    "bad number syntax",
    "block sequence entries are not allowed in this context",
    "can't evaluate field ",
    "can't give argument to ",
    "cannot index slice/array with type ",
    "cannot load ",
    "cannot unmarshal yaml document",
    "chart contains illegally named files",
    "chart illegally ",
    "chart metadata is missing",
    "chart requires kubeVersion",
    "chart.metadata.",
    "control characters are not allowed",
    "could not find expected ",
    "decompressed chart ",
    "dependencies must not contain empty or null nodes",
    "dependency \"",
    "did not find expected ",
    "document contains excessive aliasing",
    "empty command",
    "error calling ",
    "error converting YAML to JSON",
    "error unmarshaling JSON",
    "error unpacking subchart ",
    "exceeded maximum template depth",
    "execution error",
    "found a tab character",
    "found character that cannot start any token",
    "found in Chart.yaml, but missing in charts/ directory",
    "found unexpected end of stream",
    "found unknown escape character",
    "function \"",
    "got ",
    "illegal number syntax",
    "incompatible types for comparison",
    "incomplete UTF-8 octet sequence",
    "index of untyped nil",
    "index out of range",
    "invalid Unicode character",
    "invalid leading UTF-8 octet",
    "invalid value",
    "library charts are not installable",
    "maintainers must not contain empty or null nodes",
    "map has no entry for key ",
    "map merge requires map or sequence of maps as the value",
    "mapping keys are not allowed in this context",
    "mapping values are not allowed in this context",
    "missing properties",
    "missing property",
    "missing value for ",
    "more than one dependency with name or alias ",
    "nil pointer evaluating ",
    "no template \"",
    "parse error",
    "rendering template has a nested reference name",
    "runtime error",
    "unclosed ",
    "undefined variable ",
    "unexpected ",
    "unknown anchor ",
    "unterminated ",
    "wrong number of args for ",
];

/// Words that follow those of helm, Go and YAML, and are no value.
const PLAIN_FOLLOWING_WORDS: [&str; 142] = [
    "EOF",
    "JSON",
    "Kubernetes",
    "YAML",
    "absolute",
    "action",
    "additional",
    "alias",
    "allowed",
    "an",
    "anchor",
    "and",
    "any",
    "are",
    "args",
    "array",
    "at",
    "bad",
    "base",
    "block",
    "bool",
    "boolean",
    "bytes",
    "call",
    "calling",
    "cannot",
    "character",
    "characters",
    "chart",
    "column",
    "command",
    "comparison",
    "constant",
    "contains",
    "content",
    "context",
    "define",
    "defined",
    "delim",
    "directive",
    "directory",
    "disallowed",
    "document",
    "else",
    "empty",
    "end",
    "entries",
    "entry",
    "expected",
    "field",
    "file",
    "float",
    "float64",
    "flow",
    "for",
    "found",
    "from",
    "function",
    "got",
    "has",
    "if",
    "in",
    "incompatible",
    "indentation",
    "index",
    "int",
    "integer",
    "interface",
    "invalid",
    "is",
    "key",
    "larger",
    "left",
    "line",
    "list",
    "map",
    "mapping",
    "maximum",
    "method",
    "missing",
    "name",
    "nested",
    "nil",
    "no",
    "node",
    "nodes",
    "not",
    "null",
    "number",
    "object",
    "of",
    "on",
    "operand",
    "operator",
    "or",
    "outside",
    "paren",
    "parent",
    "paths",
    "pointer",
    "properties",
    "property",
    "quoted",
    "range",
    "raw",
    "reference",
    "referenced",
    "references",
    "required",
    "right",
    "scalar",
    "sequence",
    "simple",
    "size",
    "slice",
    "space",
    "start",
    "string",
    "struct",
    "subchart",
    "tag",
    "tar",
    "template",
    "than",
    "that",
    "the",
    "this",
    "to",
    "token",
    "type",
    "types",
    "unclosed",
    "undefined",
    "value",
    "variable",
    "version",
    "violates",
    "want",
    "where",
    "which",
    "with",
    "wrong",
];

/// The text of a chart's own that may be shown.
#[derive(Debug, Default)]
pub(super) struct TemplateTexts {
    /// Each template with one blank between its words.
    templates: Vec<String>,
    /// The words of templates, of schemas and of the charts' own files.
    words: HashSet<String>,
    /// The bytes of all texts that were added.
    bytes: usize,
}

impl TemplateTexts {
    /// Adds a template.
    pub(super) fn add_template(&mut self, text: &str) {
        if self.try_add_words(text) {
            self.templates.push(collapse_blanks(text));
        }
    }

    /// Adds a text whose single words may be shown. False where there is no more room: then nothing
    /// that is in it alone is shown.
    pub(super) fn try_add_words(&mut self, text: &str) -> bool {
        self.bytes += text.len();
        if self.bytes > MAX_COMPARED_TEXT_BYTES {
            return false;
        }
        self.words.extend(text.split(|letter: char| !is_word_letter(letter)).map(str::to_owned));
        true
    }

    /// Returns whether a text of several words is literally in a template.
    fn has_text(&self, text: &str) -> bool {
        let text = collapse_blanks(text);
        text.contains(' ') && self.templates.iter().any(|template| template.contains(&text))
    }

    /// Returns a text in which each word that may be a value is left out.
    fn known_words(&self, text: &str) -> String {
        let is_known = |word: &str| {
            let mut letters =
                word.split(|letter: char| !is_word_letter(letter)).filter(|part| !part.is_empty());
            letters.all(|part| {
                PLAIN_FOLLOWING_WORDS.contains(&part) || self.words.contains(part) || part.len() == 1
            })
        };
        let words: Vec<&str> = text.split(' ').map(|word| if is_known(word) { word } else { "…" }).collect();
        words.join(" ")
    }
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns a text with one blank between its words.
fn collapse_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the finding for a run of helm that failed.
pub(super) fn finding(chart: &ChartClosure, run: &RunOutput, texts: &TemplateTexts) -> Diagnostic {
    let lines: Vec<&str> = run.stderr.lines().collect();
    // Without such a line helm did not come to an error: what Go says of its own end is no use.
    let start = lines.iter().rposition(|line| line.starts_with("Error: ")).unwrap_or(lines.len());
    let lines = lines.into_iter().skip(start).map(str::trim).take(MAX_ERROR_LINES);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("Use --debug flag"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("Error: ").unwrap_or(line)).collect();
    let origins: Vec<ManifestOrigin> = lines.iter().flat_map(|line| origins(chart, line)).collect();
    let (mut parts, mut left) = (Vec::<String>::new(), MAX_ERROR_PARTS);
    for line in &lines {
        parts.extend(plain_parts(chart, line, texts, &mut left));
    }
    let mut seen = BTreeSet::new();
    parts.retain(|part| seen.insert(part.clone()));
    let left_out = parts.len().saturating_sub(MAX_SHOWN_PARTS);
    let shown: Vec<String> = parts.into_iter().skip(left_out).collect();
    let message = match (shown.as_slice(), run.denied_part()) {
        ([], Some(part)) => format!("helm was stopped: {part}"),
        ([], None) => "helm does not render it, and its words may hold values".to_owned(),
        (shown, _) => format!("helm does not render it: {}", shown.join(": ")),
    };
    // The last place is the innermost: the others only led there.
    let origin = origins.last().cloned().unwrap_or_else(|| chart_origin(chart));
    let hint = match origins.iter().find(|first| first.file != origin.file || first.line != origin.line) {
        Some(first) => format!("it is reached from {first}; `helm template` on this folder says all"),
        None => "`helm template` on this folder says all".to_owned(),
    };
    Diagnostic::error(origin, "render-failed", message).hint(hint)
}

/// Returns the templates that a line names, with their lines.
fn origins(chart: &ChartClosure, line: &str) -> Vec<ManifestOrigin> {
    let start = format!("{}/", chart.chart.name);
    let begins = line.match_indices(&start).filter_map(|(at, _)| line.get(at..));
    let origin_of = |text: &str| {
        let end = text.find([':', '"', '\'', ')', '>', ' ']).unwrap_or(text.len());
        let (path, rest) = text.split_at_checked(end)?;
        let digits: String =
            rest.strip_prefix(':').unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
        chart.template_origin(path, digits.parse().unwrap_or(0))
    };
    let found = begins.take(MAX_ERROR_POSITIONS).filter_map(origin_of);
    // A template is named once more without a line after its place.
    found.filter(|origin_of| origin_of.line > 0 || !line.contains("executing")).collect()
}

/// Returns the parts of a line that show no value, as far as so many may be looked at.
fn plain_parts(chart: &ChartClosure, line: &str, texts: &TemplateTexts, left: &mut usize) -> Vec<String> {
    if texts.has_text(line) {
        return vec![sanitize_text(line)];
    }
    if let Some(violation) = line.strip_prefix("- at '") {
        return vec![schema_violation(violation, texts)];
    }
    // The same in the words of helm 3.18.
    if let Some((path, _)) = line.strip_prefix("- ").and_then(|line| line.split_once(": ")) {
        let path = path_of_value(path, texts);
        return vec![sanitize_text(&format!("{path}: this is not what the schema takes"))];
    }
    let mut parts = Vec::new();
    for mut rest in line_ends(line) {
        while !rest.is_empty() && *left > 0 {
            *left -= 1;
            // The chart's own words come last, and may have any form.
            if texts.has_text(rest) {
                parts.push(sanitize_text(rest));
                break;
            }
            let (part, after) = next_part(rest);
            parts.extend(plain_part(chart, part, texts));
            rest = after;
        }
    }
    parts
}

/// Returns the whole parts at the beginning and at the end of a long line; of any other one all of
/// it.
fn line_ends(line: &str) -> [&str; 2] {
    if line.len() <= MAX_ERROR_LINE_BYTES {
        return [line, ""];
    }
    let last = line.len().saturating_sub(ERROR_LINE_END_BYTES);
    let begin = (0..=ERROR_LINE_END_BYTES).rev().find_map(|at| line.get(..at)).unwrap_or_default();
    let end = (last..=line.len()).find_map(|at| line.get(at..)).unwrap_or_default();
    let begin = begin.rsplit_once(": ").map_or(begin, |(whole, _)| whole);
    [begin, end.split_once(": ").map_or(end, |(_, whole)| whole)]
}

/// Divides a text at its first colon outside of an expression.
fn next_part(text: &str) -> (&str, &str) {
    let colon_from = |from: usize| text.get(from..).and_then(|rest| rest.find(": ")).map(|at| from + at);
    let expression = text.find(" at <").filter(|at| colon_from(0).is_none_or(|colon| *at < colon));
    let end = expression.and_then(|at| Some(at + text.get(at..)?.find(">:")?));
    match colon_from(end.unwrap_or(0)).and_then(|at| Some((text.get(..at)?, text.get(at + 2..)?))) {
        Some((part, rest)) => (part.trim(), rest.trim()),
        None => (text.trim_end_matches(':').trim(), ""),
    }
}

fn plain_part(chart: &ChartClosure, part: &str, texts: &TemplateTexts) -> Option<String> {
    if part.starts_with("executing ") {
        // The expression is in the template.
        let at = part.find("at <")?;
        return part.get(at..).map(|expression| sanitize_text(&texts.known_words(expression)));
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if part.strip_prefix("line ").is_some_and(is_number) {
        return Some(format!("{part} of what it makes"));
    }
    if part.starts_with("range can't iterate over") {
        return Some("range can't iterate over a value that is no list".to_owned());
    }
    if part.starts_with("wrong type for value; expected ") || part.starts_with("json: cannot unmarshal ") {
        let kind = part.split(" into Go").next().unwrap_or(part);
        let (known, rest) =
            kind.split_at(kind.find("expected ").map_or(kind.len(), |at| at + "expected ".len()));
        let known = known.strip_prefix("json: ").unwrap_or(known);
        return Some(sanitize_text(&format!("{known}{}", texts.known_words(rest))));
    }
    if part.starts_with("values don't meet the specifications") {
        return Some("values do not meet the schema".to_owned());
    }
    if part.starts_with(">=") || part.contains("incompatible with Kubernetes") {
        return Some(sanitize_text(&texts.known_words(part)));
    }
    let words = PLAIN_WORDS.iter().find(|words| part.starts_with(**words))?;
    // The text in brackets or after `on` is the place.
    let part = part.split(" at (").next()?;
    let part = part.split(&format!(" on {}/", chart.chart.name)).next()?;
    let rest = part.strip_prefix(words).unwrap_or_default();
    Some(sanitize_text(&format!("{words}{}", texts.known_words(rest))))
}

/// Returns what a line says of a value that the schema does not take. That is its place and what is
/// wanted, as far as that shows no value.
fn schema_violation(text: &str, texts: &TemplateTexts) -> String {
    let (path, violation) = text.split_once("': ").unwrap_or((text.trim_end_matches('\''), ""));
    let subject = if path.is_empty() { "the values".to_owned() } else { path_of_value(path, texts) };
    let plain = ["missing properties", "missing property", "got ", "additional properties "];
    let violation = match plain.iter().find_map(|words| Some((words, violation.strip_prefix(words)?))) {
        Some((words, rest)) => format!("{words}{}", texts.known_words(rest)),
        None => "this is not what the schema takes".to_owned(),
    };
    sanitize_text(&format!("{subject}: {violation}"))
}

/// Returns the path of a value, without the keys that are in no text of the chart. Such a key may
/// be a value that a chart says in the words of helm.
fn path_of_value(path: &str, texts: &TemplateTexts) -> String {
    let parts: Vec<String> = path.split_inclusive(['/', '.']).map(|part| texts.known_words(part)).collect();
    parts.concat()
}

#[cfg(test)]
mod tests;
