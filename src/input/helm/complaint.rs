//! The words of helm on a chart that it does not render, as a finding with its template and line.
//!
//! **Invariant:** shows no value. helm quotes values in its words, and charts do in theirs. So only
//! words that are known to quote none are shown, and text that is literally in a template.

use std::collections::BTreeSet;

use crate::input::kustomize::printable;
use crate::input::sandbox::RunOutput;
use crate::object::{Diagnostic, ManifestOrigin};

use super::closure::ChartClosure;
use super::output::chart_origin;

/// Lines of a complaint that are read.
const MAX_LINES: usize = 60;
/// Parts of a complaint that are shown.
const MAX_SHOWN_PARTS: usize = 8;

/// Words of helm, Go and YAML that quote no value, as a part of a complaint begins.
const PLAIN_WORDS: [&str; 33] = [
    "YAML parse error",
    "additional properties ",
    "block sequence entries are not allowed in this context",
    "can't evaluate field ",
    "can't give argument to ",
    "cannot index slice/array with type ",
    "cannot load ",
    "cannot unmarshal yaml document",
    "chart requires kubeVersion",
    "could not find expected ",
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
    "missing propert",
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

/// Returns the finding for a run of helm that failed.
///
/// `is_template_text` returns whether a text is literally in a template of the chart.
pub(super) fn finding(
    chart: &ChartClosure,
    run: &RunOutput,
    is_template_text: impl Fn(&str) -> bool,
) -> Diagnostic {
    let lines: Vec<&str> = run.complaint.lines().collect();
    // Without such a line helm did not come to an error: what Go says of its own end is no use.
    let start = lines.iter().rposition(|line| line.starts_with("Error: ")).unwrap_or(lines.len());
    let lines = lines.into_iter().skip(start).map(str::trim).take(MAX_LINES);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("Use --debug flag"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("Error: ").unwrap_or(line)).collect();
    let places: Vec<ManifestOrigin> = lines.iter().flat_map(|line| places(chart, line)).collect();
    let mut parts: Vec<String> = Vec::new();
    for line in &lines {
        parts.extend(plain_parts(chart, line, &is_template_text));
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
    let origin = places.last().cloned().unwrap_or_else(|| chart_origin(chart));
    let hint = match places.iter().find(|first| first.file != origin.file || first.line != origin.line) {
        Some(first) => format!("it is reached from {first}; `helm template` on this folder says all"),
        None => "`helm template` on this folder says all".to_owned(),
    };
    Diagnostic::error(origin, "render-failed", message).hint(hint)
}

/// Returns the templates that a line names, with their lines.
fn places(chart: &ChartClosure, line: &str) -> Vec<ManifestOrigin> {
    let start = format!("{}/", chart.chart.name);
    let begins = line.match_indices(&start).filter_map(|(at, _)| line.get(at..));
    let place = |text: &str| {
        let end = text.find([':', '"', '\'', ')', '>', ' ']).unwrap_or(text.len());
        let (path, rest) = text.split_at_checked(end)?;
        let digits: String =
            rest.strip_prefix(':').unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
        chart.template_origin(path, digits.parse().unwrap_or(0))
    };
    let found = begins.filter_map(place);
    // A template is named once more without a line after its place.
    found.filter(|place| place.line > 0 || !line.contains("executing")).collect()
}

/// Returns the parts of a line that show no value.
fn plain_parts(chart: &ChartClosure, line: &str, is_template_text: impl Fn(&str) -> bool) -> Vec<String> {
    if is_template_text(line) {
        return vec![printable(line)];
    }
    if let Some(violation) = line.strip_prefix("- at '") {
        return vec![schema_violation(violation)];
    }
    // The same in the words of helm 3.18.
    if let Some((path, _)) = line.strip_prefix("- ").and_then(|line| line.split_once(": ")) {
        return vec![printable(&format!("{path}: this is not what the schema takes"))];
    }
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        // The chart's own words come last, and may have any form.
        if is_template_text(rest) {
            parts.push(printable(rest));
            break;
        }
        let (part, after) = next_part(rest);
        parts.extend(plain_part(chart, part));
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

fn plain_part(chart: &ChartClosure, part: &str) -> Option<String> {
    if part.starts_with("executing ") {
        // The expression is in the template.
        let at = part.find("at <")?;
        return part.get(at..).map(printable);
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
        return Some(printable(kind.strip_prefix("json: ").unwrap_or(kind)));
    }
    if part.starts_with("values don't meet the specifications") {
        return Some("values do not meet the schema".to_owned());
    }
    if part.starts_with(">=") || part.contains("incompatible with Kubernetes") {
        return Some(printable(part));
    }
    PLAIN_WORDS.iter().find(|words| part.starts_with(**words))?;
    // The text in brackets or after `on` is the place.
    let part = part.split(" at (").next()?;
    let part = part.split(&format!(" on {}/", chart.chart.name)).next()?;
    Some(printable(part))
}

/// Returns what a line says of a value that the schema does not take: its place, and what is
/// wanted, as far as that shows no value.
fn schema_violation(text: &str) -> String {
    let (path, what) = text.split_once("': ").unwrap_or((text.trim_end_matches('\''), ""));
    let place = if path.is_empty() { "the values" } else { path };
    let is_plain =
        ["missing propert", "got ", "additional properties "].iter().any(|words| what.starts_with(words));
    let what = if is_plain { what } else { "this is not what the schema takes" };
    printable(&format!("{place}: {what}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::input::MemoryTree;
    use crate::input::helm::{ChartLimits, HelmOptions, find_closure};

    fn found(said: &str) -> (String, String) {
        let tree = MemoryTree::new()
            .file("apps/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
            .file("apps/web/templates/a.yaml", "")
            .file("apps/web/templates/_b.tpl", "");
        let options =
            HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        let chart = find_closure(&tree, "apps/web", "", &options, ChartLimits::default()).unwrap();
        let complaint = format!("time=x level=WARN\n{said}\n\nUse --debug flag to render out invalid YAML\n");
        let run = RunOutput { code: 1, output: Vec::new(), complaint, processor: Duration::ZERO };
        let own = ["A valid host is required", "password: must be set"];
        let found = finding(&chart, &run, |text| own.contains(&text));
        assert!(!format!("{found:?}").contains("canary"), "{found:?}");
        let message = found.message.strip_prefix("helm does not render it: ").unwrap_or(&found.message);
        (found.origin.to_string(), message.to_owned())
    }

    #[test]
    fn an_error_names_its_template_and_line() {
        let check = |said: &str, place: &str, message: &str| {
            assert_eq!(found(said), (format!("apps/web/{place}"), message.to_owned()), "{said}");
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
        let said = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n\
                    - secret: secret must be one of the following: \"canary\"";
        assert_eq!(found(said).1, "values do not meet the schema: secret: this is not what the schema takes");
    }

    #[test]
    fn what_a_chart_says_is_shown_where_it_is_its_own_text() {
        let at = "Error: execution error at (web/templates/a.yaml:1:6)";
        let place = "apps/web/templates/a.yaml:1".to_owned();
        assert_eq!(
            found(&format!("{at}: A valid host is required")),
            (place.clone(), "execution error: A valid host is required".into())
        );
        assert_eq!(
            found(&format!("{at}: password: must be set")),
            (place.clone(), "execution error: password: must be set".into())
        );
        assert_eq!(found(&format!("{at}: no canary")), (place, "execution error".into()));
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

    #[test]
    fn the_words_are_in_order() {
        assert!(PLAIN_WORDS.is_sorted());
    }
}
