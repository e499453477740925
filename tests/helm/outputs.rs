//! Own charts: their objects, the templates that these name, and what helm says of bad ones.

use rhumb::testing::input::helm::{HelmOptions, ValuesSource};
use serde_json::Value;

use crate::fixture::{Chart, findings, options};

fn with_values(values: Vec<ValuesSource>) -> HelmOptions {
    HelmOptions { values, ..options() }
}

#[track_caller]
fn assert_as_bare(chart: &Chart, options: &HelmOptions) -> Vec<Value> {
    let rendered: Vec<Value> =
        chart.template(options).unwrap().into_iter().map(|object| object.body).collect();
    assert_eq!(rendered, chart.bare(options).unwrap());
    rendered
}

#[test]
fn the_closure_alone_gives_what_helm_prints_of_the_folder() {
    let chart = Chart::shop();
    let objects = assert_as_bare(&chart, &options());
    let web = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(web["metadata"]["annotations"]["kube"], "v1.34.2");
    assert_eq!(web["spec"]["replicas"], 2);
    let file = |path: &str| ValuesSource::File(path.to_owned());
    let inline = |text: &str| ValuesSource::Inline(text.to_owned());
    let values = vec![file("prod.yaml"), file("shop/ci/values.yaml"), inline("extra: {a: b}")];
    let objects = assert_as_bare(&chart, &with_values(values));
    let web = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(
        (&web["spec"]["replicas"], &web["spec"]["template"]["spec"]["containers"][0]["image"]),
        (&5.into(), &"ci".into())
    );
    assert_as_bare(&chart, &with_values(vec![inline("replicas: 7"), file("prod.yaml")]));
    assert_as_bare(&chart, &with_values(vec![inline("store: {enabled: false}")]));
}

#[test]
fn each_object_names_its_chart_and_template() {
    let objects = Chart::shop().template(&options()).unwrap();
    let mut origins: Vec<String> = objects
        .iter()
        .map(|object| format!("{}: {}", object.body["kind"].as_str().unwrap(), object.origin))
        .collect();
    origins.sort();
    assert_eq!(
        origins,
        [
            "ConfigMap: shop (helm, shop 1.2.0) ← shop/templates/motd.yaml",
            "CustomResourceDefinition: shop (helm, shop 1.2.0) ← shop/crds/order.yaml:2",
            "Deployment: shop (helm, shop 1.2.0) ← shop/templates/web.yaml",
            "PersistentVolumeClaim: shop (helm, shop 1.2.0) ← shop/charts/cache-folder/templates/claim.yaml",
        ]
    );
}

#[test]
fn links_inside_the_repository_give_what_helm_prints_of_them() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: {{ .Files.Get \"files/x.txt\" | quote }}}\n";
    let chart = Chart::of(
        &[
            ("shared/a.yaml", map),
            ("shared/x.txt", "text"),
            ("web/.helmignore", "*.tmp\n"),
            ("shared/y.tmp", "no"),
        ],
        &[("web/templates/a.yaml", "../../shared/a.yaml"), ("web/files", "../shared")],
    );
    let objects = assert_as_bare(&chart, &options());
    assert_eq!(objects[0]["data"]["x"], "text");
    assert_eq!(
        chart.template(&options()).unwrap()[0].origin.to_string(),
        "web (helm, web 1.0.0) ← shared/a.yaml"
    );
}

#[test]
fn a_chart_in_an_archive_is_rendered_and_named() {
    let part = tempfile::tempdir().unwrap();
    let package = std::process::Command::new(crate::fixture::helm())
        .args(["package", "shop/charts/cache-folder", "--destination"])
        .arg(part.path())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/helm/charts"))
        .output()
        .unwrap();
    assert!(package.status.success(), "{package:?}");
    let text = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: cache, version: 2.x, alias: store}]\n";
    let archive = part.path().join("cache-2.3.0.tgz");
    let chart = Chart::of(&[("web/Chart.yaml", text)], &[]);
    let folder = chart.path().join("charts");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(archive, folder.join("cache-2.3.0.tgz")).unwrap();
    let chart = chart.anew();
    assert_as_bare(&chart, &options());
    assert_eq!(
        chart.template(&options()).unwrap()[0].origin.to_string(),
        "web (helm, web 1.0.0) ← web/charts/cache-2.3.0.tgz"
    );
}

#[test]
fn what_helm_says_of_a_bad_chart_names_the_template_and_shows_no_value() {
    let values = ("web/values.yaml", "secret: canary-7f3a\n");
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let chart = Chart::of(&[&[values], files].concat(), &[]);
        assert!(chart.bare(&options()).is_err(), "{files:?}");
        let outcome = chart.template(&options());
        assert!(!format!("{outcome:?}").contains("canary"), "{outcome:?}");
        assert_eq!(findings(outcome), expected, "{files:?}");
    };
    let template = |text: &'static str| ("web/templates/a.yaml", text);
    check(
        &[template("a: 1\nb: {{ .Values.x.y }}")],
        &[
            "render-failed web/templates/a.yaml:2: helm does not render it: at <.Values.x.y>: nil pointer evaluating \
           interface {}.y",
        ],
    );
    check(
        &[
            template("{{ include \"b\" . }}"),
            (
                "web/templates/_b.tpl",
                "{{ define \"b\" }}\n{{ atoi .Values.secret | mustToDate .Values.secret }}{{ end }}",
            ),
        ],
        &[
            "render-failed web/templates/_b.tpl:2: helm does not render it: at <include \"b\" .>: error calling include: \
           at <.Values.secret>: wrong type for value; expected string; got int",
        ],
    );
    check(
        &[template("a: {{ required \"a host is needed\" .Values.host }}")],
        &["render-failed web/templates/a.yaml:1: helm does not render it: execution error: a host is needed"],
    );
    check(
        &[template("a: {{ fail (printf \"no %s\" .Values.secret) }}")],
        &["render-failed web/templates/a.yaml:1: helm does not render it: execution error"],
    );
    check(
        &[template("a: {{ nofn }}")],
        &[
            "render-failed web/templates/a.yaml:1: helm does not render it: parse error: function \"nofn\" not defined",
        ],
    );
    check(
        &[template("a: [ {{ .Values.secret }}")],
        &[
            "render-failed web/templates/a.yaml: helm does not render it: YAML parse error: error converting YAML to \
           JSON: line 1 of what it makes: did not find expected ',' or ']'",
        ],
    );
    check(
        &[(
            "web/values.schema.json",
            r#"{"properties": {"secret": {"pattern": "^z"}}, "required": ["host"]}"#,
        )],
        &[
            "render-failed web/Chart.yaml: helm does not render it: values do not meet the schema: the values: missing \
           property 'host': /secret: this is not what the schema takes",
        ],
    );
    check(
        &[("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=2.0.0'\n")],
        &[
            "render-failed web/Chart.yaml: helm does not render it: chart requires kubeVersion: >=2.0.0 which is \
           incompatible with Kubernetes v1.34.2",
        ],
    );
}
