use std::time::Duration;

use super::*;
use crate::input::MemoryTree;
use crate::input::helm::{ChartLimits, HelmOptions, find_closure};

fn found_with(output: &str, add: impl FnOnce(&mut TemplateTexts)) -> String {
    let tree = MemoryTree::new().file("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
    let options = HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
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
    let options = HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
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
    assert_eq!(found(output).1, "values do not meet the schema: secret: this is not what the schema takes");
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

#[test]
fn the_reason_of_templates_that_call_each_other_without_an_end_is_shown() {
    let call =
        "template: web/templates/a.yaml:1:19: executing \"b\" at <include \"b\" .>: error calling include: ";
    let reason = "rendering template has a nested reference name: b: unable to execute template";
    assert_eq!(
        found(&format!("Error: {}{reason}", call.repeat(700))),
        (
            "apps/web/templates/a.yaml:1".to_owned(),
            "at <include \"b\" .>: error calling include: rendering template has a nested reference name"
                .to_owned()
        )
    );
    let wide = "é".repeat(MAX_ERROR_LINE_BYTES);
    assert_eq!(
        found(&format!("Error: missing property {wide}: YAML parse error")).1,
        "missing property …: YAML parse error"
    );
}

#[test]
fn what_helm_does_not_take_of_the_files_of_a_chart_is_shown() {
    let check = |output: &str, expected: &str| assert_eq!(found(output).1, expected, "{output}");
    check(
        "Error: error unpacking subchart README.md in web: Chart.yaml file is missing",
        "error unpacking subchart … in …: Chart.yaml file is missing",
    );
    check(
        "Error: validation: chart.metadata.version \"canary\" is invalid",
        "chart.metadata.version … is invalid",
    );
    check(
        "Error: validation: maintainers must not contain empty or null nodes",
        "maintainers must not contain empty or null nodes",
    );
    check(
        "Error: validation: dependency \"canary\" has disallowed characters in the alias",
        "dependency \"… has disallowed characters in the alias",
    );
}

#[test]
fn the_words_of_yaml_and_go_on_a_text_are_shown_without_what_they_quote() {
    let check = |output: &str, expected: &str| assert_eq!(found(output).1, expected, "{output}");
    let yaml = "Error: YAML parse error on web/templates/a.yaml: error converting YAML to JSON: yaml: ";
    let made = "YAML parse error: error converting YAML to JSON: ";
    check(
        &format!("{yaml}control characters are not allowed"),
        &format!("{made}control characters are not allowed"),
    );
    check(
        &format!("{yaml}line 4: found a tab character that violates indentation"),
        &format!("{made}line 4 of what it makes: found a tab character that violates indentation"),
    );
    check(
        &format!("{yaml}unknown anchor 'canary' referenced"),
        &format!("{made}unknown anchor … referenced"),
    );
    let parse = "Error: parse error at (web/templates/a.yaml:2): ";
    check(&format!("{parse}unterminated quoted string"), "parse error: unterminated quoted string");
    check(&format!("{parse}bad character U+0024 canary"), "parse error: bad character … …");
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
