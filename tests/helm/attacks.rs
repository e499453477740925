//! Hostile charts, as rhumb renders them. Attacks of a chart that runs are in `tests/sandbox`.

use std::fs;

use rhumb::testing::input::helm::{ChartError, HelmOptions, ValuesSource};
use rhumb::testing::input::sandbox::SandboxPart;

use crate::fixture::{Chart, findings, options};

const CANARY: &str = "canary-7f3a: do-not-tell";

fn map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {value}}}\n")
}

/// Returns the value that a template makes.
#[track_caller]
fn value(template: &str) -> String {
    let chart = Chart::of(&[("web/templates/a.yaml", &map(template)), ("secret.txt", CANARY)], &[]);
    chart.render(&options()).unwrap().objects[0].body["data"]["a"].as_str().unwrap().to_owned()
}

/// Returns the error that ended the render of a template.
#[track_caller]
fn end(template: &str) -> String {
    let chart = Chart::of(&[("web/templates/a.yaml", &map(template))], &[]);
    match chart.render(&options()) {
        Err(ChartError::Sandbox(error)) => error.part().unwrap_or_else(|| panic!("{error}")).to_string(),
        outcome => findings(outcome).join("\n"),
    }
}

/// Reads a file of a chart through a link that leads out of the repository, which helm follows.
#[test]
fn a_link_out_of_the_repository_is_refused_before_helm_starts() {
    let outside = tempfile::tempdir().unwrap();
    let canary = outside.path().join("canary");
    fs::write(&canary, CANARY).unwrap();
    let template = map("{{ .Files.Get \"link\" | quote }}");
    for target in [canary.to_str().unwrap(), "/etc/passwd", "/proc/self/environ", "../../../../etc/hostname"]
    {
        let chart = Chart::of(&[("web/templates/a.yaml", &template)], &[("web/link", target)]);
        let found = findings(chart.render(&options()));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("out-of-tree web/link: "), "{found:?}");
        assert!(!found[0].contains(CANARY));
    }
}

/// Asks for names, times and files of the host by functions of templates.
#[test]
fn functions_that_look_outside_find_nothing() {
    assert_eq!(value("{{ .Files.Get \"../secret.txt\" | quote }}"), "");
    assert_eq!(value("{{ .Files.Get \"../../../../etc/passwd\" | quote }}"), "");
    assert_eq!(value("{{ getHostByName \"localhost\" | quote }}"), "");
    assert_eq!(value("{{ lookup \"v1\" \"Secret\" \"\" \"\" | toJson | quote }}"), "{}");
}

/// Renders templates that never end, or make too much.
#[test]
fn a_template_without_an_end_is_ended_and_the_next_one_renders() {
    let memory = "asked for more memory than it may have";
    for template in ["{{ until 200000000 | len }}", "{{ repeat 2000000000 \"x\" | len }}"] {
        let end = end(template);
        assert!(end.contains(memory), "{template}: {end}");
    }
    // The list is made once, so that it takes time alone.
    let loops =
        "{{ $l := until 30000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}";
    // On a busy machine the deadline may come first.
    let limits = [SandboxPart::Processor, SandboxPart::Deadline].map(|part| part.to_string());
    let end = end(loops);
    assert!(limits.contains(&end), "{end}");
    assert_eq!(value("{{ .Release.Name }}"), "web");
}

/// Names values, schemas and charts that helm would fetch, or would read outside of the repository.
#[test]
fn what_would_be_fetched_is_refused_before_helm_starts() {
    let check = |files: &[(&str, &str)], values: Vec<ValuesSource>, code: &str| {
        let found = findings(Chart::of(files, &[]).render(&HelmOptions { values, ..options() }));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(code), "{found:?}");
    };
    let address = ValuesSource::File("http://127.0.0.1:1/values.yaml".into());
    check(&[], vec![address], "remote-values web: ");
    check(&[], vec![ValuesSource::File("/etc/passwd".into())], "out-of-tree web: ");
    let schema = r#"{"$ref": "http://127.0.0.1:1/a.json"}"#;
    check(&[("web/values.schema.json", schema)], vec![], "remote-schema web/values.schema.json: ");
    let schema = r#"{"$ref": "file:///etc/passwd"}"#;
    check(&[("web/values.schema.json", schema)], vec![], "remote-schema web/values.schema.json: ");
    let chart = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: a, version: '1', repository: 'http://127.0.0.1:1'}]\n";
    check(&[("web/Chart.yaml", chart)], vec![], "missing-dependency web/Chart.yaml:4: ");
}

/// Links the lock of a chart to a file outside of the repository.
#[test]
fn a_lock_that_is_a_link_is_neither_read_nor_written() {
    let chart = Chart::of(&[], &[("web/Chart.lock", "/etc/passwd")]);
    assert!(findings(chart.render(&options()))[0].starts_with("out-of-tree web/Chart.lock: "));
}
