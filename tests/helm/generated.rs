//! Values that charts make up, found by a second render.

use rhumb::testing::input::helm::{
    ChartError, ChartObject, ChartRender, GeneratedPolicy, HelmOptions, ValuesSource,
};
use rhumb::testing::object::annotations;

use crate::fixture::{Chart, findings, options};

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData:\n  user: web\n  \
                      password: {{ .Values.password | default (randAlphaNum 20) }}\n";
const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    metadata:\n      \
                   annotations: {checksum/login: {{ include (print .Template.BasePath \"/login.yaml\") . | sha256sum }}}\n";

fn chart() -> Chart {
    Chart::of(&[("web/templates/login.yaml", SECRET), ("web/templates/web.yaml", WEB)], &[])
}

fn once() -> HelmOptions {
    HelmOptions { generated: GeneratedPolicy::Once, ..options() }
}

#[test]
fn a_value_that_is_made_up_is_refused_with_its_path_and_template() {
    let outcome = chart().render(&options());
    let Err(ChartError::Refused { findings: found }) = &outcome else { panic!("{outcome:?}") };
    assert!(found.iter().all(|found| found.hint.as_ref().unwrap().contains("`existingSecret`")));
    assert_eq!(
        findings(outcome),
        [
            "generated-value web/templates/login.yaml: Secret login: /stringData/password differs from render to render",
            "generated-value web/templates/web.yaml: Deployment web: \
             /spec/template/metadata/annotations/checksum~1login differs from render to render",
        ]
    );
}

#[test]
fn a_value_that_is_given_is_no_longer_made_up() {
    let given = ValuesSource::Inline("password: given".to_owned());
    let render = chart().render(&HelmOptions { values: vec![given], ..options() }).unwrap();
    assert_eq!(render.objects[0].body["stringData"]["password"], "given");
    assert!(render.objects.iter().all(|object| object.generated.is_empty()));
}

#[test]
fn what_is_made_once_is_left_alone_from_then_on() {
    let render = chart().render(&once()).unwrap();
    let ignored: Vec<_> = render
        .objects
        .iter()
        .map(|object| object.body["metadata"]["annotations"][annotations::IGNORE_FIELDS].as_str().unwrap())
        .collect();
    let mark = "/metadata/annotations/rhumb.dev~1generated";
    let checksum = "/spec/template/metadata/annotations/checksum~1login";
    assert_eq!(ignored, [format!("/stringData/password, {mark}"), format!("{checksum}, {mark}")]);
    assert_eq!(render.objects[0].generated, ["/stringData/password", mark]);
    let marks = |render: ChartRender| {
        let text =
            |object: &ChartObject| object.body["metadata"]["annotations"][annotations::GENERATED].clone();
        render.objects.iter().map(text).collect::<Vec<_>>()
    };
    let (first, second) = (marks(render), marks(chart().render(&once()).unwrap()));
    assert!(first[0].as_str().unwrap().starts_with("prod/web "), "{first:?}");
    assert_eq!(first[0], first[1], "one render has one mark");
    assert_ne!(first[0], second[0], "each render has another");
}

#[test]
fn a_name_that_is_made_up_is_refused_always() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-{{ randAlpha 9 | lower }}}\n";
    let chart = Chart::of(&[("web/templates/a.yaml", map)], &[]);
    let found = findings(chart.render(&once()));
    assert!(found[0].starts_with("generated-value web/templates/a.yaml: ConfigMap a-"), "{found:?}");
    assert!(found[0].ends_with("another object is made at each render"), "{found:?}");
}

#[test]
fn a_secret_that_only_an_installation_makes_may_be_made_up() {
    let text = SECRET.replace("{name: login}", "{name: login, annotations: {helm.sh/hook: pre-install}}");
    let chart = Chart::of(&[("web/templates/login.yaml", &text)], &[]);
    let render = chart.render(&options()).unwrap();
    assert_eq!(
        render.objects[0].body["metadata"]["annotations"],
        serde_json::json!({"client.lifecycle.config.k8s.io/mutation": "ignore"})
    );
}

/// Renders a chart that shows a time, in a form that hardly ever changes. Where it shows values,
/// the time is in these alone.
#[test]
fn a_time_in_a_chart_is_found_whenever_it_is_rendered() {
    let check = |shown: &str, expected: &[&str]| {
        let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: {shown}\n");
        let values = "year: \"{{ now | date \\\"2006\\\" }}\"\n";
        let values = if shown.contains(".Values") { values } else { "year: 1\n" };
        let files = [("web/templates/a.yaml", map.as_str()), ("web/values.yaml", values)];
        let outcome = Chart::of(&files, &[]).render(&options());
        let found = if outcome.is_ok() { Vec::new() } else { findings(outcome) };
        assert_eq!(found, expected, "{shown}");
    };
    let made_up =
        ["generated-value web/templates/a.yaml: ConfigMap a: /data/a differs from render to render"];
    for shown in [
        "{{ now | date \"2006\" | quote }}",
        "{{ now | date \"01\" | quote }}",
        "{{ now | date \"02\" | quote }}",
        "{{ now | date \"Mon\" | quote }}",
        "{{ now | date \"15\" | quote }}",
        "{{ now | date \"04\" | quote }}",
        "{{ now | date \"05\" | quote }}",
        "{{ now | unixEpoch | quote }}",
        "{{ now.Year | quote }}",
        "{{ now.Unix | quote }}",
        "{{ now.Format \"2006-01\" | quote }}",
        "{{ (now.UTC).Year | quote }}",
        "{{ dateInZone \"2006-01-02\" (now) \"UTC\" | quote }}",
        "{{ htmlDate now }}",
        "{{ toDate \"2006-01-02\" \"2001-02-03\" | ago }}",
        "{{ tpl .Values.year . | quote }}",
        "{{ (now | unixEpoch | int64 | lt 1700000000) | ternary \"late\" \"early\" }}",
    ] {
        check(shown, &made_up);
    }
    for shown in [
        "{{ toDate \"2006-01-02\" \"2001-02-03\" | date \"2006\" | quote }}{{/* now */}}",
        "{{ .Values.year | quote }}",
        "{{ \"now\" }}{{ $now := 1 }}",
        "{{ `{{ now }}` | quote }}",
    ] {
        check(shown, &[]);
    }
}

#[test]
fn a_test_with_a_made_up_name_refuses_nothing() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a-{{ randAlpha 5 | lower }}\n  annotations: {helm.sh/hook: test}\n\
               spec: {containers: [{name: a, image: a}]}\n";
    let folder = crate::inflation::repository(&[
        ("web/charts/app/templates/test.yaml", pod),
        ("web/kustomization.yaml", "helmCharts: [{name: app, releaseName: a}]\n"),
    ]);
    let (objects, diagnostics) = crate::inflation::rendered(&folder.path().join("web"));
    assert!(!objects.is_empty() && objects.iter().all(|object| object["kind"] != "Pod"), "{diagnostics:?}");
    let messages: Vec<_> = diagnostics.iter().map(|found| found["message"].as_str().unwrap()).collect();
    assert!(matches!(&*messages, [one] if one.ends_with("it is a test, which is not run")), "{messages:?}");
}

#[test]
fn a_render_is_one_process_and_a_second_one_where_values_may_be_made_up() {
    let map =
        |text: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{x: {text}}}\n");
    for (text, expected) in
        [("a", 1), ("{{ .Release.Name }}", 1), ("a{{ $x := randAlpha 3 }}", 2), ("{{ if now }}a{{ end }}", 2)]
    {
        let chart = Chart::of(&[("web/templates/a.yaml", &map(text))], &[]);
        assert_eq!(chart.count_processes(&options()), expected, "{text}");
    }
}
