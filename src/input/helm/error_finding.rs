//! The words of helm on a chart that it does not render, as a finding with its template and line.
//!
//! **Invariant:** shows no value. helm quotes values in its words, and charts do in theirs. So only
//! words that are known to quote none are shown, and text that is literally in a template. A chart
//! can say the words of helm too, and a value after them. Of such a text each word is one of the
//! chart's or a known one, or is left out.

use std::collections::{BTreeSet, HashSet};

use crate::input::kustomize::printable;
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
/// Bytes of templates and schemas whose text may be shown. Large public charts have 5 MB in all.
const MAX_COMPARED_TEXT_BYTES: usize = 8 << 20;

/// Words of helm, Go and YAML that quote no value, as a part of a complaint begins.
const PLAIN_WORDS: [&str; 37] = [
    "YAML parse error",
    "additional properties ",
    "block sequence entries are not allowed in this context",
    "can't evaluate field ",
    "can't give argument to ",
    "cannot index slice/array with type ",
    "cannot load ",
    "cannot unmarshal yaml document",
    "chart contains illegally named files",
    "chart illegally ",
    "chart requires kubeVersion",
    "could not find expected ",
    "decompressed chart ",
    "did not find expected ",
    "error calling ",
    "error converting YAML to JSON",
    "error unmarshaling JSON",
    "exceeded maximum template depth",
    "execution error",
    "found character that cannot start any token",
    "found unexpected end of stream",
    "function \"",
    "got ",
    "incompatible types for comparison",
    "index of untyped nil",
    "mapping values are not allowed in this context",
    "missing properties",
    "missing property",
    "nil pointer evaluating ",
    "no template \"",
    "parse error",
    "rendering template has a nested reference name",
    "runtime error",
    "unclosed ",
    "undefined variable ",
    "unexpected ",
    "wrong number of args for ",
];

/// Words that follow those of helm, Go and YAML, and are no value.
const PLAIN_FOLLOWING_WORDS: [&str; 128] = [
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
    "chart",
    "column",
    "command",
    "comparison",
    "contains",
    "content",
    "context",
    "define",
    "defined",
    "delim",
    "directive",
    "directory",
    "document",
    "else",
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
    "reference",
    "references",
    "required",
    "right",
    "scalar",
    "sequence",
    "simple",
    "size",
    "slice",
    "start",
    "string",
    "struct",
    "tag",
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
    "want",
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
            self.templates.push(one_blank(text));
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
        let text = one_blank(text);
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
fn one_blank(text: &str) -> String {
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
    let message = match (shown.as_slice(), run.denied_by()) {
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
        return vec![printable(line)];
    }
    if let Some(violation) = line.strip_prefix("- at '") {
        return vec![schema_violation(violation, texts)];
    }
    // The same in the words of helm 3.18.
    if let Some((path, _)) = line.strip_prefix("- ").and_then(|line| line.split_once(": ")) {
        let path = path_of_value(path, texts);
        return vec![printable(&format!("{path}: this is not what the schema takes"))];
    }
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() && *left > 0 {
        *left -= 1;
        // The chart's own words come last, and may have any form.
        if texts.has_text(rest) {
            parts.push(printable(rest));
            break;
        }
        let (part, after) = next_part(rest);
        parts.extend(plain_part(chart, part, texts));
        rest = after;
    }
    parts
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
        return part.get(at..).map(|expression| printable(&texts.known_words(expression)));
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
        return Some(printable(&format!("{known}{}", texts.known_words(rest))));
    }
    if part.starts_with("values don't meet the specifications") {
        return Some("values do not meet the schema".to_owned());
    }
    if part.starts_with(">=") || part.contains("incompatible with Kubernetes") {
        return Some(printable(&texts.known_words(part)));
    }
    let words = PLAIN_WORDS.iter().find(|words| part.starts_with(**words))?;
    // The text in brackets or after `on` is the place.
    let part = part.split(" at (").next()?;
    let part = part.split(&format!(" on {}/", chart.chart.name)).next()?;
    let rest = part.strip_prefix(words).unwrap_or_default();
    Some(printable(&format!("{words}{}", texts.known_words(rest))))
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
    printable(&format!("{subject}: {violation}"))
}

/// Returns the path of a value, without the keys that are in no text of the chart. Such a key may
/// be a value that a chart says in the words of helm.
fn path_of_value(path: &str, texts: &TemplateTexts) -> String {
    let parts: Vec<String> = path.split_inclusive(['/', '.']).map(|part| texts.known_words(part)).collect();
    parts.concat()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::input::MemoryTree;
    use crate::input::helm::{ChartLimits, HelmOptions, find_closure};

    fn found_with(output: &str, add: impl FnOnce(&mut TemplateTexts)) -> String {
        let tree = MemoryTree::new().file("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
        let options =
            HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        let chart = find_closure(&tree, "web", "", &options, ChartLimits::default()).unwrap();
        let stderr = output.to_owned();
        let run = RunOutput { code: 1, output: Vec::new(), stderr, processor: Duration::ZERO };
        let mut texts = TemplateTexts::default();
        add(&mut texts);
        let message = finding(&chart, &run, &texts).message;
        message.strip_prefix("helm does not render it: ").unwrap_or(&message).to_owned()
    }

    fn found(output: &str) -> (String, String) {
        let tree = MemoryTree::new()
            .file("apps/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
            .file("apps/web/templates/a.yaml", "")
            .file("apps/web/templates/_b.tpl", "");
        let options =
            HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        let chart = find_closure(&tree, "apps/web", "", &options, ChartLimits::default()).unwrap();
        let stderr = format!("time=x level=WARN\n{output}\n\nUse --debug flag to render out invalid YAML\n");
        let run = RunOutput { code: 1, output: Vec::new(), stderr, processor: Duration::ZERO };
        let mut texts = TemplateTexts::default();
        texts.add_template("A valid host is required");
        texts.add_template("password: must be set");
        texts.add_template("{{ .Values.a.b }} {{ include \"b\" . | atoi .Values.x }}");
        texts.try_add_words("{\"required\": [\"zz\"], \"properties\": {\"port\": {}, \"secret\": {}}}");
        texts.try_add_words("kubeVersion: \">=9.0.0\" v1.20.0");
        let found = finding(&chart, &run, &texts);
        assert!(!format!("{found:?}").contains("canary"), "{found:?}");
        let message = found.message.strip_prefix("helm does not render it: ").unwrap_or(&found.message);
        (found.origin.to_string(), message.to_owned())
    }

    #[test]
    fn an_error_names_its_template_and_line() {
        let check = |output: &str, position: &str, message: &str| {
            assert_eq!(found(output), (format!("apps/web/{position}"), message.to_owned()), "{output}");
        };
        check(
            "Error: template: web/templates/a.yaml:3:13: executing \"web/templates/a.yaml\" at <.Values.a.b>: nil \
             pointer evaluating interface {}.b",
            "templates/a.yaml:3",
            "at <.Values.a.b>: nil pointer evaluating interface {}.b",
        );
        check(
            "Error: web/templates/a.yaml:3:13\n  executing \"web/templates/a.yaml\" at <.Values.a.b>:\n    nil pointer \
             evaluating interface {}.b",
            "templates/a.yaml:3",
            "at <.Values.a.b>: nil pointer evaluating interface {}.b",
        );
        check(
            "Error: template: web/templates/a.yaml:1:6: executing \"web/templates/a.yaml\" at <include \"b\" .>: error \
             calling include: template: web/templates/_b.tpl:7:2: executing \"b\" at <atoi .Values.x>: error calling \
             atoi: strconv.Atoi: parsing \"canary\": invalid syntax",
            "templates/_b.tpl:7",
            "at <include \"b\" .>: error calling include: at <atoi .Values.x>: error calling atoi",
        );
        check(
            "Error: parse error at (web/templates/a.yaml:2): unclosed action",
            "templates/a.yaml:2",
            "parse error: unclosed action",
        );
        check(
            "Error: YAML parse error on web/templates/a.yaml: error converting YAML to JSON: yaml: line 4: did not find \
             expected ',' or ']'",
            "templates/a.yaml",
            "YAML parse error: error converting YAML to JSON: line 4 of what it makes: did not find expected ',' or ']'",
        );
        check(
            "Error: chart requires kubeVersion: >=9.0.0 which is incompatible with Kubernetes v1.20.0",
            "Chart.yaml",
            "chart requires kubeVersion: >=9.0.0 which is incompatible with Kubernetes v1.20.0",
        );
        check(
            "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n- at '': \
             missing property 'zz'\n- at '/port': got string, want integer\n- at '/secret': 'canary' does not match \
             pattern '^z'",
            "Chart.yaml",
            "values do not meet the schema: the values: missing property 'zz': /port: got string, want integer: \
             /secret: this is not what the schema takes",
        );
    }

    #[test]
    fn a_violation_of_the_schema_is_reported_in_old_words_too() {
        let output = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n\
                    - secret: secret must be one of the following: \"canary\"";
        assert_eq!(
            found(output).1,
            "values do not meet the schema: secret: this is not what the schema takes"
        );
    }

    #[test]
    fn what_a_chart_says_is_shown_where_it_is_its_own_text() {
        let at = "Error: execution error at (web/templates/a.yaml:1:6)";
        let position = "apps/web/templates/a.yaml:1".to_owned();
        assert_eq!(
            found(&format!("{at}: A valid host is required")),
            (position.clone(), "execution error: A valid host is required".into())
        );
        assert_eq!(
            found(&format!("{at}: password: must be set")),
            (position.clone(), "execution error: password: must be set".into())
        );
        assert_eq!(found(&format!("{at}: no canary")), (position, "execution error".into()));
        let nothing = "helm does not render it, and its words may hold values";
        assert_eq!(found("canary"), ("apps/web/Chart.yaml".into(), nothing.into()));
        assert_eq!(
            found("fatal error: runtime: out of memory\nunexpected fault address\n\ngoroutine 1").1,
            "helm was stopped: it asked for more memory than it may have"
        );
        assert_eq!(
            found("Error: template: web/templates/a.yaml:1:6: range can't iterate over canary").1,
            "range can't iterate over a value that is no list"
        );
    }

    // Each end of a line is looked for in all templates: so their number is bounded, and so is what
    // is kept of the templates.
    #[test]
    fn a_complaint_of_many_parts_over_many_templates_is_read_at_once() {
        let at = "Error: execution error at (web/templates/a.yaml:1:6)";
        let message = found_with(&format!("{at}: {}", "a: ".repeat(20_000)), |texts| {
            for number in 0..64 {
                texts.add_template(&format!("{number} {}", "b a: ".repeat(200_000)));
            }
        });
        assert!(message.starts_with("execution error"), "{message}");
    }

    // A chart can say the words of helm on versions and schemas too.
    #[test]
    fn no_value_is_shown_in_words_on_versions_and_schemas() {
        let check = |output: &str, expected: &str| assert_eq!(found(output).1, expected, "{output}");
        let at = "Error: execution error at (web/templates/a.yaml:1:6)";
        check(
            &format!("{at}: incompatible with Kubernetes canary"),
            "execution error: incompatible with Kubernetes …",
        );
        check(&format!("{at}: >=canary 1.2"), "execution error: … 1.2");
        check("Error: a\n- at '/canary/port/0': got canary, want integer", "/…port/0: got … want integer");
        check("Error: a\n- at '/port': missing property canary", "/port: missing property …");
        check("Error: a\n- canary.port: Invalid type", "…port: this is not what the schema takes");
    }

    #[test]
    fn a_value_after_words_of_helm_is_left_out() {
        let check = |output: &str, expected: &str| assert_eq!(found(output).1, expected, "{output}");
        let at = "Error: execution error at (web/templates/a.yaml:1:6)";
        for words in PLAIN_WORDS {
            let blank = if words.ends_with([' ', '"']) { "" } else { " " };
            let message = found(&format!("{at}: {words}{blank}canary")).1;
            assert!(message.ends_with('…') && message.starts_with("execution error"), "{message}");
        }
        check(&format!("{at}: missing property canary"), "execution error: missing property …");
        check("Error: template: web/templates/a.yaml:1:6: no template \"canary\"", "no template \"…");
        check(
            "Error: web/templates/a.yaml:1:6: wrong type for value; expected canary; got string",
            "wrong type for value; expected … got string",
        );
    }

    #[test]
    fn the_words_are_in_order() {
        assert!(PLAIN_FOLLOWING_WORDS.is_sorted());
        assert!(PLAIN_WORDS.is_sorted());
    }
}
