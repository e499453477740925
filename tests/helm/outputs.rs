//! Own charts: their objects, the templates that these name, and what helm says of bad ones.

use rhumb::testing::input::helm::{HelmOptions, SchemaUse, ValuesSource};
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
fn a_chart_without_a_form_and_values_with_a_colon_in_their_name_are_those_of_helm() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: {{ .Values.x | quote }}}\n";
    for form in ["", "apiVersion:\n", "apiVersion: ''\n"] {
        let chart = Chart::of(
            &[
                ("web/Chart.yaml", &format!("{form}name: web\nversion: 1.0.0\n")),
                ("web/templates/a.yaml", map),
                ("web/values:prod.yaml", "x: prod\n"),
            ],
            &[],
        );
        let values = vec![ValuesSource::File("values:prod.yaml".to_owned())];
        let objects = assert_as_bare(&chart, &with_values(values));
        assert_eq!(objects[0]["data"]["x"], "prod", "{form}");
    }
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
            "Pod: shop (helm, shop 1.2.0) ← shop/templates/tests/connects.yaml",
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

/// Renders a chart with definitions under two aliases: helm prints these twice, and installs each
/// once.
#[test]
fn a_definition_that_several_charts_bring_is_one_object() {
    let text = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n\
                - {name: zones, version: 1.0.0, alias: one}\n- {name: zones, version: 1.0.0, alias: two}\n";
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
                      metadata: {name: zones.example.com}\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\n";
    let chart = Chart::of(
        &[
            ("web/Chart.yaml", text),
            ("web/charts/zones/Chart.yaml", "apiVersion: v2\nname: zones\nversion: 1.0.0\n"),
            ("web/charts/zones/crds/zones.yaml", definition),
            ("web/charts/zones/templates/map.yaml", map),
        ],
        &[],
    );
    let printed = assert_as_bare(&chart, &options());
    assert_eq!(printed.iter().filter(|body| body["kind"] == "CustomResourceDefinition").count(), 2);
    let rendered = chart.render(&options()).unwrap();
    let shown: Vec<String> = rendered
        .objects
        .iter()
        .map(|object| {
            format!("{} {}", object.body["metadata"]["name"].as_str().unwrap(), object.origin.places[0])
        })
        .collect();
    assert_eq!(
        shown,
        [
            "zones.example.com web/charts/zones/crds/zones.yaml:1",
            "one web/charts/zones/templates/map.yaml",
            "two web/charts/zones/templates/map.yaml",
        ]
    );
}

#[test]
fn numbers_in_a_chart_are_the_texts_that_helm_makes_of_them() {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: {{ .Chart.Version | quote }}}\n";
    for text in ["0.1", "1", "1.10", "\"1.10\"", "1e3", "0x10", "010", ".5", "1.23456789012345678901"] {
        let own = format!("apiVersion: v2\nname: web\nversion: {text}\n");
        let chart = Chart::of(&[("web/Chart.yaml", &own), ("web/templates/a.yaml", template)], &[]);
        let objects = assert_as_bare(&chart, &options());
        assert_eq!(objects[0]["data"]["v"], chart.closure(&options()).chart.version, "{text}");
    }
    for text in ["true", "[1]", "", "-1", "1e100"] {
        let own = format!("apiVersion: v2\nname: web\nversion: {text}\n");
        let chart = Chart::of(&[("web/Chart.yaml", &own), ("web/templates/a.yaml", template)], &[]);
        assert!(chart.bare(&options()).is_err() && chart.template(&options()).is_err(), "{text}");
    }
}

#[test]
fn a_key_that_is_printed_twice_has_its_last_value_and_is_a_warning() {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    app: a\n    app: b\n";
    let chart = Chart::of(&[("web/templates/a.yaml", template)], &[]);
    let objects = assert_as_bare(&chart, &options());
    assert_eq!(objects[0]["metadata"]["labels"], serde_json::json!({"app": "b"}));
    let notices = chart.render(&options()).unwrap().notices;
    let found: Vec<_> =
        notices.iter().map(|found| format!("{} {}: {}", found.code, found.origin, found.message)).collect();
    assert_eq!(
        found,
        [
            "duplicate-key web/templates/a.yaml: in what the template makes, key \"app\" is given twice in this mapping: \
          first in line 6, again in line 7"
        ]
    );
}

#[test]
fn a_file_of_values_may_have_a_comma_in_its_name() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: {{ .Values.x }}}\n";
    let chart = Chart::of(&[("web/a,\"b.yaml", "x: yes-it-is\n"), ("web/templates/a.yaml", map)], &[]);
    let values = vec![ValuesSource::File("a,\"b.yaml".to_owned())];
    let objects = chart.template(&with_values(values)).unwrap();
    assert_eq!(objects[0].body["data"]["x"], "yes-it-is");
}

#[test]
fn a_schema_that_would_be_fetched_can_be_left_unread() {
    let files = [
        ("web/values.schema.json", r#"{"$ref": "https://schemas.example.org/values.json"}"#),
        ("web/values.yaml", "x: a\n"),
        ("web/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.x }}}\n"),
    ];
    let chart = Chart::of(&files, &[]);
    assert!(findings(chart.template(&options()))[0].starts_with("remote-schema web/values.schema.json: "));
    let skipped = HelmOptions { schemas: SchemaUse::Skip, ..options() };
    let objects = chart.template(&skipped).unwrap();
    assert_eq!(objects[0].body["metadata"]["name"], "a");
    // The configuration says so for a source.
    let folder = chart.path();
    let check = |settings: &str, status: i32, expected: &str| {
        let config = tempfile::tempdir().unwrap();
        let file = config.path().join("rhumb.yaml");
        let text = format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: shop}}\nspec:\n  directory: {}\n  helm: \
             {{{settings}}}\n",
            folder.display()
        );
        std::fs::write(&file, text).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_rhumb"))
            .args(["validate", "--config"])
            .arg(&file)
            .env_clear()
            .env("PATH", crate::fixture::helm().parent().unwrap())
            .env("HOME", config.path())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.code() == Some(status) && said.contains(expected), "{settings}: {said}");
    };
    check("", 1, "the schema refers to another one, which is not fetched");
    check("skipSchemaValidation: true", 0, "1 object in 1 root");
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
           incompatible with Kubernetes …",
        ],
    );
}

#[test]
fn words_of_helm_that_a_value_takes_the_place_of_are_not_shown() {
    let values = ("web/values.yaml", "secret: canary-7f3a\n");
    for said in [
        "incompatible with Kubernetes %s",
        ">=%s",
        "\\n- at '%s': got string",
        "\\n- %s: a",
        "\\n- at '/a': got %s",
        "missing property %s",
    ] {
        let text = format!("a: {{{{ fail (printf \"{said}\" .Values.secret) }}}}");
        let chart = Chart::of(&[values, ("web/templates/a.yaml", &text)], &[]);
        assert!(chart.bare(&options()).unwrap_err().contains("canary-7f3a"), "{said}");
        let outcome = chart.template(&options());
        assert!(outcome.is_err() && !format!("{outcome:?}").contains("canary"), "{said}: {outcome:?}");
    }
}
