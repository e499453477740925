//! Hostile charts, rendered by the real program.

use std::fs;
use std::time::Duration;

use rhumb::testing::input::sandbox::{RunOutput, SandboxError, SandboxPart};
use tar::EntryType;

use crate::archives::{archive, bomb, chart_with};
use crate::fixture::{CANARY, Fixture, Stop, assert_stopped, helm, text};

const TEMPLATE: [&str; 5] = ["template", "release", ".", "--namespace", "prod"];
const CHART: &str = "apiVersion: v2\nname: chart\nversion: 0.1.0\n";

const FILES: Stop = Stop::Denied(SandboxPart::Files, "permission denied");
const MEMORY: Stop = Stop::Denied(SandboxPart::Memory, "memory");
const PROCESSOR: Stop = Stop::Killed(SandboxPart::Processor);
const DEADLINE: Stop = Stop::Killed(SandboxPart::Deadline);

/// Returns a chart with one template.
fn chart(template: &str) -> Fixture {
    Fixture::new(&[("Chart.yaml", CHART), ("templates/a.yaml", template)]).limits(|limits| {
        limits.processor = Duration::from_secs(2);
        limits.deadline = Duration::from_secs(20);
    })
}

fn map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: {value}\n")
}

fn template(fixture: &Fixture) -> Result<RunOutput, SandboxError> {
    fixture.render(helm(), &TEMPLATE)
}

#[test]
fn what_it_renders_is_what_it_renders_without_a_sandbox() {
    let fixture =
        chart(&map("{{ .Release.Name }} {{ .Values.a | quote | upper }} {{ .Files.Get \"file\" }}"));
    fixture.add("values.yaml", "a: b\n");
    fixture.add("file", "text");
    fixture.add("charts/part/Chart.yaml", "apiVersion: v2\nname: part\nversion: 1.0.0\n");
    fixture.add("charts/part/templates/b.yaml", &map("{{ include \"name\" . }}"));
    fixture.add("charts/part/templates/_name.tpl", "{{- define \"name\" }}{{ .Chart.Name }}{{ end }}");
    let bare = fixture.bare(helm(), &TEMPLATE);
    assert!(bare.success && bare.output.contains("a: release \"B\" text") && bare.output.contains("a: part"));
    assert_eq!(text(template(&fixture)), bare.output);
}

#[test]
fn a_link_out_of_the_chart_is_not_followed() {
    for path in ["templates/link.yaml", "files/link", "values.yaml"] {
        let fixture = chart(&map("{{ .Files.Get \"files/link\" | quote }}"));
        fixture.link(path, fixture.canary());
        if path == "files/link" {
            let bare = fixture.bare(helm(), &TEMPLATE);
            assert!(bare.output.contains(CANARY), "{path}: {bare:?}");
        }
        assert_stopped(path, template(&fixture), &[FILES]);
    }
    for target in ["/etc/passwd", "/proc/self/environ", "/dev/zero"] {
        let fixture = chart(&map("{{ .Files.Get \"link\" | quote }}"));
        fixture.link("link", target);
        // Helm itself leaves out what is no regular file.
        assert_stopped(target, template(&fixture), &[FILES, Stop::Refused("irregular file")]);
    }
}

/// Renders, and returns the value.
#[track_caller]
fn value(template_text: &str) -> String {
    let rendered = text(template(&chart(&map(template_text))));
    let value = rendered.lines().find_map(|line| line.strip_prefix("  a: "));
    value.unwrap_or_else(|| panic!("{rendered}")).to_owned()
}

#[test]
fn functions_that_look_outside_find_nothing() {
    assert_eq!(value("{{ .Files.Get \"../canary\" | quote }}"), "\"\"");
    assert_eq!(value("{{ .Files.Get \"/etc/passwd\" | quote }}"), "\"\"");
    assert_eq!(value("{{ range $path, $ := .Files.Glob \"../**\" }}{{ $path }}{{ end }}end"), "end");
    assert_eq!(value("{{ getHostByName \"localhost\" | quote }}"), "\"\"");
    assert_eq!(value("{{ lookup \"v1\" \"Secret\" \"\" \"\" | toJson }}"), "{}");
    for function in ["env \"HOME\"", "expandenv \"$HOME\""] {
        let output = template(&chart(&map(&format!("{{{{ {function} }}}}"))));
        assert_stopped(function, output, &[Stop::Refused("not defined")]);
    }
}

#[test]
fn a_name_is_not_looked_up_even_where_that_is_switched_on() {
    let fixture = chart(&map("{{ getHostByName \"localhost\" | quote }}"));
    let words = [&TEMPLATE[..], &["--enable-dns"]].concat();
    assert_stopped(
        "a look-up",
        fixture.render(helm(), &words),
        &[Stop::Refused("error calling getHostByName")],
    );
}

#[test]
fn values_by_url_and_files_outside_are_not_read() {
    let fixture = chart(&map("{{ .Values | toJson | quote }}"));
    let outside = fixture.canary();
    let cases = [
        (
            vec!["--values", "http://127.0.0.1:1/values.yaml"],
            Stop::Denied(SandboxPart::SystemCalls, "not permitted"),
        ),
        (vec!["--values", outside.to_str().unwrap()], FILES),
        (vec!["--values", "/etc/passwd"], FILES),
        (vec!["--set-file", "a=../canary"], FILES),
    ];
    for (words, by) in cases {
        let outcome = fixture.render(helm(), &[&TEMPLATE[..], &words].concat());
        assert_stopped(&format!("{words:?}"), outcome, &[by]);
    }
}

#[test]
fn no_program_is_run_and_no_server_asked() {
    let fixture = chart(&map("b"));
    let outcome = fixture.render(helm(), &[&TEMPLATE[..], &["--post-renderer", "/bin/sh"]].concat());
    let denied = [
        Stop::Denied(SandboxPart::SystemCalls, "not permitted"),
        FILES,
        // Helm 4 takes the name of a plugin.
        Stop::Refused("plugin"),
    ];
    assert_stopped("--post-renderer", outcome, &denied);
    let words = ["template", "a", "oci://127.0.0.1:1/chart", "--version", "1.0.0"];
    let denied = Stop::Denied(SandboxPart::SystemCalls, "not permitted");
    assert_stopped("oci://", fixture.render(helm(), &words), &[denied]);
    let words = ["template", "a", "chart", "--repo", "http://127.0.0.1:1"];
    assert_stopped("--repo", fixture.render(helm(), &words), &[denied]);
    let schema =
        r#"{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "http://127.0.0.1:1/a.json"}"#;
    fixture.add("values.schema.json", schema);
    let denied = [denied, Stop::Refused("127.0.0.1")];
    assert_stopped("a schema elsewhere", template(&fixture), &denied);
    fixture.add("values.schema.json", &schema.replace("http://127.0.0.1:1/a.json", "file:///etc/passwd"));
    assert_stopped("a schema in a file", template(&fixture), &[FILES, Stop::Refused("file://")]);
}

#[test]
fn dependencies_are_not_fetched_through_a_lock_that_is_a_link() {
    let fixture = chart(&map("b"));
    fixture.add(
        "Chart.yaml",
        &format!("{CHART}dependencies: [{{name: a, version: 1.0.0, repository: 'http://127.0.0.1:1'}}]\n"),
    );
    fixture.link("Chart.lock", fixture.canary());
    let words = [&TEMPLATE[..], &["--dependency-update"]].concat();
    assert_stopped("update", fixture.render(helm(), &words), &[FILES]);
    assert_eq!(std::fs::read_to_string(fixture.canary()).unwrap(), CANARY);
}

/// Returns a chart with an archive of another one among its files.
fn chart_with_archive(archive: &[u8]) -> Fixture {
    let fixture = chart(&map("b"));
    fs::create_dir(fixture.tree().join("charts")).unwrap();
    fs::write(fixture.tree().join("charts/web-1.0.0.tgz"), archive).unwrap();
    fixture
}

#[test]
fn an_archive_in_the_repository_neither_grows_nor_leads_out_of_it() {
    let up = chart_with("web/../../../up", EntryType::Regular);
    for (case, archive, words) in [
        ("zeros", bomb(64 << 20), "larger than the maximum file size"),
        ("a folder above", up, "illegally references parent directory"),
    ] {
        let fixture = chart_with_archive(&archive);
        assert_stopped(case, template(&fixture), &[Stop::Refused(words)]);
        assert!(!fixture.tree().with_file_name("up").exists());
    }
    // helm takes a link in an archive for an empty file.
    for kind in [EntryType::Symlink, EntryType::Link] {
        let file = |path: &str, text: &str| (format!("web/{path}"), EntryType::Regular, text.to_owned());
        let entries = [
            file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            file("templates/a.yaml", &map("{{ .Files.Get \"link\" | printf \"<%s>\" | quote }}")),
            ("web/link".to_owned(), kind, String::new()),
        ];
        let output = text(template(&chart_with_archive(&archive(&entries))));
        assert!(output.contains("a: \"<>\"") && !output.contains("root:"), "{kind:?}: {output}");
    }
}

#[test]
fn templates_without_an_end_are_ended() {
    let cases = [
        (
            "include",
            "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
            &[MEMORY, PROCESSOR, Stop::Refused("nested reference")][..],
        ),
        (
            "template",
            "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}",
            &[MEMORY, PROCESSOR, Stop::Refused("exceeded maximum template depth")],
        ),
        (
            "tpl",
            "{{ $t := \"{{ tpl .t . }}\" }}{{ tpl $t (dict \"t\" $t \"Template\" .Template) }}",
            &[MEMORY, PROCESSOR],
        ),
        (
            "loops",
            "{{ range until 30000 }}{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}{{ end }}",
            &[PROCESSOR, DEADLINE, MEMORY],
        ),
    ];
    for (case, text, by) in cases {
        assert_stopped(case, template(&chart(&map(text))), by);
    }
    // The next one renders.
    assert_eq!(value("{{ .Release.Name }}"), "release");
}

#[test]
fn templates_that_grow_end_with_the_memory() {
    for text in ["{{ until 200000000 | len }}", "{{ repeat 2000000000 \"x\" | len }}"] {
        // Other limits are far away, however busy the host is.
        let fixture = chart(&map(text)).limits(|limits| {
            limits.processor = Duration::from_mins(2);
            limits.deadline = Duration::from_mins(2);
        });
        assert_stopped(text, template(&fixture), &[MEMORY]);
    }
    assert_eq!(value("{{ .Release.Name }}"), "release");
}

#[test]
fn more_output_than_may_be_ends_it() {
    let line = "x".repeat(1000);
    let text = format!("{{{{ range until 4000 }}}}\n# {line}\n{{{{ end }}}}\n{}", map("b"));
    let fixture = chart(&text).limits(|limits| limits.output = 1 << 20);
    assert_stopped("4 MB", template(&fixture), &[Stop::Killed(SandboxPart::Output)]);
    let text = text.replace("4000", "300000");
    let stops = [Stop::Killed(SandboxPart::Output), MEMORY, PROCESSOR];
    assert_stopped("300 MB", template(&chart(&text)), &stops);
}
