//! Charts that a kustomization renders, compared with the real kustomize that has helm render them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rhumb::testing::object::text_at;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{helm, kustomize};

/// A chart that shows all that it is given.
const CHART: &[(&str, &str)] = &[
    ("Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.2.0\n"),
    (
        "values.yaml",
        "replicas: 1\nimage: {name: app, tag: a}\nlist: [1, 2]\nflag: yes\nnothing: null\nempty:\n",
    ),
    (
        "templates/told.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-told\ndata:\n  \
         namespace: {{ .Release.Namespace }}\n  kube: {{ .Capabilities.KubeVersion.Version }}\n  \
         own: {{ .Capabilities.APIVersions.Has \"example.com/v1\" | quote }}\n  values: {{ .Values | toJson | quote }}\n",
    ),
    (
        "templates/web.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n  \
         namespace: {{ .Release.Namespace }}\n  labels: {app: web}\nspec:\n  replicas: {{ .Values.replicas }}\n  \
         selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
         containers:\n      - name: web\n        image: {{ .Values.image.name }}:{{ .Values.image.tag }}\n        \
         envFrom: [{configMapRef: {name: {{ .Release.Name }}-told}}]\n",
    ),
    (
        "templates/raw.yaml",
        "apiVersion: example.com/v1\nkind: Raw\nmetadata:\n  name: {{ .Release.Name }}-raw\nspec:\n  old: yes\n  octal: 0644\n  \
         text: \"yes\"\n  big: 12345678\n  float: 1.50\n---\n# nothing\n---\napiVersion: v1\nkind: Service\n\
         metadata: {name: {{ .Release.Name }}-svc}\nspec: {ports: [{port: 80}]}\n",
    ),
    (
        "crds/a.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: raws.example.com}\n\
         spec: {group: example.com, names: {kind: Raw, plural: raws}, scope: Namespaced, versions: []}\n",
    ),
];

/// Returns a folder with a chart in `charts/app` and these files.
pub(crate) fn repository(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (path, text) in CHART {
        put(&format!("web/charts/app/{path}"), text);
    }
    for (path, text) in files {
        put(path, text);
    }
    git2::Repository::init(folder.path()).unwrap();
    folder
}

/// Returns the objects that the real kustomize builds of a folder, ordered.
fn bare(folder: &Path) -> Result<Vec<Value>, String> {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(kustomize())
        .args(["build", "--enable-helm", "--load-restrictor", "LoadRestrictionsNone", "--helm-command"])
        .arg(helm())
        // The version that is assumed without a cluster.
        .args(["--helm-kube-version", "v1.36.0"])
        .arg(".")
        .current_dir(folder)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text);
    Ok(ordered(documents.map(|document| Value::deserialize(document).unwrap()).collect()))
}

/// Returns the objects that rhumb makes of a folder, ordered, and its findings.
pub(crate) fn rendered(folder: &Path) -> (Vec<Value>, Vec<Value>) {
    let programs = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(kustomize(), programs.path().join("kustomize")).unwrap();
    std::os::unix::fs::symlink(helm(), programs.path().join("helm")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rhumb"))
        .args(["render", "-o", "json", "--show-secrets", "."])
        .current_dir(folder)
        .env_clear()
        .env("PATH", programs.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = || String::from_utf8_lossy(&output.stderr).into_owned();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", error()));
    let list = |key: &str| said[key].as_array().unwrap().clone();
    (ordered(list("objects")), list("diagnostics"))
}

fn ordered(mut objects: Vec<Value>) -> Vec<Value> {
    objects.retain(|object| !object.is_null());
    objects.sort_by_key(|object| {
        format!("{}/{}/{}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
    });
    objects
}

#[track_caller]
fn check(kustomization: &str) -> Vec<Value> {
    check_with(kustomization, &[])
}

/// Compares what rhumb makes of the folder `web` with what the real kustomize does.
#[track_caller]
fn check_with(kustomization: &str, files: &[(&str, &str)]) -> Vec<Value> {
    let folder = repository(&[&[("web/kustomization.yaml", kustomization)], files].concat());
    let web = folder.path().join("web");
    let (objects, diagnostics) = rendered(&web);
    assert_eq!(diagnostics, Vec::<Value>::new(), "{kustomization}");
    assert_eq!(objects, bare(&web).unwrap(), "{kustomization}");
    objects
}

fn values_of(objects: &[Value]) -> Value {
    let config_map = objects.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    serde_json::from_str(config_map["data"]["values"].as_str().unwrap()).unwrap()
}

#[test]
fn a_local_chart_gives_what_the_real_kustomize_builds() {
    let objects = check("helmCharts: [{name: app, releaseName: a}]\n");
    assert_eq!(objects.len(), 4);
    for fields in [
        "namespace: prod",
        "namespace: prod, includeCRDs: true",
        "version: 1.2.0",
        "kubeVersion: 1.31.0, apiVersions: [example.com/v1]",
        "skipHooks: true, skipTests: true",
        "releaseName: '', nameTemplate: fixed",
        "releaseName: '', nameTemplate: '{{ printf \"%s-x\" \"a\" }}'",
    ] {
        check(
            &format!("helmCharts: [{{name: app, releaseName: a, {fields}}}]\n")
                .replace("releaseName: a, releaseName: '', ", ""),
        );
    }
    let unnamed = check("helmCharts: [{name: app}]\n");
    let deployment = unnamed.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(text_at(deployment, &["metadata", "name"]), "release-name");
    let raw = objects.iter().find(|object| object["kind"] == "Raw").unwrap();
    assert_eq!((&raw["spec"]["old"], &raw["spec"]["octal"]), (&"yes".into(), &420.into()));
}

#[test]
fn values_become_one_as_kustomize_makes_them_one() {
    let files = [
        ("web/prod.yaml", "replicas: 3\nimage: {tag: b}\nflag: on\nempty:\nnothing: ~\nlist:\n"),
        ("web/more.yaml", "image: {name: more}\nlist: [9]\n"),
    ];
    let mut seen = Vec::new();
    for fields in [
        "valuesFile: prod.yaml",
        "additionalValuesFiles: [prod.yaml, more.yaml]",
        "valuesFile: prod.yaml, additionalValuesFiles: [./more.yaml]",
        "valuesInline: {replicas: 5}",
        "valuesInline: {replicas: 5, image: {tag: c, extra: [1]}, list: null, flag: no}",
        "valuesInline: {replicas: 5, image: null, new: {a: null, b: {c: 1}}}",
        "valuesInline: {image: {$patch: replace, tag: z, name: y}}",
        "valuesInline: {image: {tag: c}}, valuesFile: prod.yaml",
        "valuesInline: {image: {tag: c}, empty: {a: 1}}, valuesFile: prod.yaml, valuesMerge: merge",
        "valuesInline: {replicas: 5, nothing: 1}, valuesMerge: merge",
        "valuesInline: {image: {tag: c, name: d}}, valuesFile: prod.yaml, valuesMerge: replace",
        "valuesInline: {image: {tag: c}}, valuesFile: prod.yaml, valuesMerge: override, additionalValuesFiles: [more.yaml]",
        "valuesInline: {}",
        "valuesInline: {when: 2001-01-01, octal: 0644, float: 1.0, exp: 1e3, \"on\": off}",
    ] {
        let objects = check_with(&format!("helmCharts: [{{name: app, releaseName: a, {fields}}}]\n"), &files);
        seen.push(values_of(&objects));
    }
    assert_eq!(seen[3]["replicas"], 5);
    assert_eq!(seen[8]["image"]["tag"], "b");
}

#[test]
fn dates_and_aliases_of_values_that_are_merged_are_those_of_kustomize() {
    let values = "day: 2024-01-02\ntimes:\n- 2024-01-02 10:00:00\n- 2024-01-02T10:00:00.50+02:00\n\
                  text: '2024-01-02'\n2024-01-03: a\n\
                  base: &base {cpu: 1}\nsame: *base\nlist: [*base]\nmore:\n  <<: *base\n  memory: 2\n\
                  inner: {same: *base, other: 1}\n\
                  old: &old yes\nolder: [*old]\nlisted: &listed\n  <<: [*base]\n  disk: 2\n\
                  nested:\n  <<: [*listed]\n  third: 3\nflow: {<<: *base, other: 1}\n\
                  late:\n  cpu: 2\n  <<: [*base]\n";
    for fields in [
        "valuesFile: prod.yaml",
        "valuesInline: {replicas: 5}, valuesFile: prod.yaml",
        "valuesInline: {replicas: 5, day: 2025-01-02}, valuesFile: prod.yaml, valuesMerge: merge",
        "valuesInline: {day: 2025-01-02, same: {memory: 3}, more: {disk: 4}, inner: {same: 2}}, valuesFile: prod.yaml",
        "valuesInline: {same: null, inner: {third: 2}}, valuesFile: prod.yaml, valuesMerge: merge",
        "valuesInline: {listed: {cpu: 7}, nested: {disk: 8}}, valuesFile: prod.yaml",
        "valuesInline: {listed: {cpu: 7}}, valuesFile: prod.yaml, valuesMerge: merge",
    ] {
        check_with(
            &format!("helmCharts: [{{name: app, releaseName: a, {fields}}}]\n"),
            &[("web/prod.yaml", values)],
        );
    }
}

#[test]
fn what_a_kustomization_does_to_objects_it_does_to_those_of_charts() {
    let objects = check_with(
        "namespace: spaced\nnamePrefix: pre-\nimages: [{name: app, newTag: v9}]\nlabels: [{pairs: {team: a}}]\n\
         commonAnnotations: {note: b}\nhelmCharts:\n- {name: app, releaseName: a}\nresources: [extra.yaml]\n\
         configMapGenerator: [{name: gen, literals: [a=b]}]\npatches:\n- path: patch.yaml\n\
         - target: {kind: Raw}\n  patch: |-\n    - op: add\n      path: /spec/new\n      value: 1\n",
        &[
            ("web/extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"),
            (
                "web/patch.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: spaced}\nspec: {replicas: 7}\n",
            ),
        ],
    );
    assert_eq!(objects.len(), 6);
}

/// The entry of the chart, and a ConfigMap beside it.
const BESIDE: &str = "resources: [extra.yaml]\nhelmCharts: [{name: app, releaseName: a}]\n";
const EXTRA: (&str, &str) = ("web/extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n");

#[test]
fn what_a_generator_or_transformer_sees_is_what_kustomize_shows_it() {
    for fields in [
        "configMapGenerator: [{name: extra, behavior: merge, literals: [b=c]}]\n",
        "configMapGenerator: [{name: extra, behavior: replace, literals: [b=c]}]\nnamePrefix: on-\n",
        // No annotation that rhumb adds is there for it.
        "transformers:\n- |-\n  apiVersion: builtin\n  kind: AnnotationsTransformer\n  metadata: {name: note}\n  \
         annotations: {note: b}\n  fieldSpecs: [{path: metadata/annotations, create: false}]\n",
    ] {
        check_with(&format!("{BESIDE}{fields}"), &[EXTRA]);
    }
}

#[test]
fn what_kustomize_does_not_build_is_not_rendered() {
    let patch =
        ("web/patch.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {b: c}\n");
    for fields in [
        // Charts come after the generators of a kustomization.
        "configMapGenerator: [{name: a-told, behavior: merge, literals: [b=c]}]\n",
        // Such a list was one of files before kustomize 2.1.
        "patches: [patch.yaml]\n",
        "patchesJson6902:\n- target: {version: v1, kind: ConfigMap, name: extra}\n  patch: |-\n    - op: add\n      \
         path: /metadata/annotations/note\n      value: b\n",
    ] {
        let kustomization = format!("{BESIDE}{fields}");
        let folder = repository(&[("web/kustomization.yaml", &kustomization), EXTRA, patch]);
        let web = folder.path().join("web");
        assert!(bare(&web).is_err(), "{kustomization}");
        let (objects, diagnostics) = rendered(&web);
        assert_eq!(objects, Vec::<Value>::new(), "{kustomization}");
        assert!(diagnostics.iter().any(|found| found["severity"] == "error"), "{diagnostics:?}");
    }
}

#[test]
fn charts_of_bases_and_components_take_the_namespace_from_above() {
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n\
                     helmCharts: [{name: app, releaseName: c, skipTests: true}]\nhelmGlobals: {chartHome: ../web/charts}\n";
    let base = "helmGlobals: {chartHome: ../web/charts}\nhelmCharts: [{name: app, releaseName: b}]\nnamePrefix: base-\n";
    check_with(
        "namespace: above\nresources: [../base]\ncomponents: [../part]\n",
        &[("base/kustomization.yaml", base), ("part/kustomization.yaml", component)],
    );
    check_with("resources: [../base]\n", &[("base/kustomization.yaml", base)]);
    check_with(
        "resources: [../base]\nhelmCharts: [{name: app, releaseName: a, namespace: x}, {name: app, releaseName: d, namespace: z}]\n\
         helmGlobals: {chartHome: ./charts}\n",
        &[
            (
                "base/kustomization.yaml",
                "namespace: own\nhelmGlobals: {chartHome: ../web/charts}\n\
           helmCharts: [{name: app, releaseName: b, valuesFile: ../web/v.yaml}]\n",
            ),
            ("web/v.yaml", "replicas: 4\n"),
        ],
    );
}

#[test]
fn a_chart_beside_its_version_and_the_form_of_old_are_found() {
    let moved: Vec<(String, &str)> =
        CHART.iter().map(|(path, text)| (format!("web/charts/srv-1.0.0/srv/{path}"), *text)).collect();
    let moved: Vec<(&str, &str)> = moved.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    check_with(
        "helmCharts: [{name: srv, releaseName: a, version: 1.0.0, repo: 'https://charts.example.com'}]\n",
        &moved,
    );
    check(
        "helmChartInflationGenerator: [{chartName: app, releaseName: a, releaseNamespace: ignored, \
         valuesLocal: {replicas: 2}}]\n",
    );
}

#[test]
fn a_chart_needs_no_name_where_its_objects_do_not_have_it() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name }}}\n";
    let objects = check_with(
        "helmCharts: [{name: plain, namespace: a}]\n",
        &[
            ("web/charts/plain/Chart.yaml", "apiVersion: v2\nname: plain\nversion: 1.0.0\n"),
            ("web/charts/plain/values.yaml", "name: b\n"),
            ("web/charts/plain/templates/a.yaml", template),
        ],
    );
    assert_eq!(objects.len(), 1);
}

#[test]
fn origins_that_a_root_asks_for_are_those_of_kustomize() {
    let objects = check("buildMetadata: [originAnnotations]\nhelmCharts: [{name: app, releaseName: a}]\n");
    let said = objects[0]["metadata"]["annotations"]["config.kubernetes.io/origin"].as_str().unwrap();
    assert!(said.contains("HelmChartInflationGenerator"), "{said}");
}

#[test]
fn transformations_that_a_root_asks_for_are_those_of_kustomize() {
    let asks = "buildMetadata: [transformerAnnotations]\nhelmCharts: [{name: app, releaseName: a}]\n";
    let objects = check(asks);
    assert!(objects.iter().all(|object| object["metadata"].get("annotations").is_none()), "{objects:?}");
    let objects = check(&format!("namePrefix: on-\n{asks}"));
    let said = objects[0]["metadata"]["annotations"]["alpha.config.kubernetes.io/transformations"].as_str();
    assert!(said.unwrap().contains("PrefixTransformer"), "{said:?}");
    check_with(
        "buildMetadata: [transformerAnnotations, originAnnotations]\nresources: [base]\nnameSuffix: -x\n",
        &[
            ("web/base/kustomization.yaml", "namePrefix: on-\nhelmCharts: [{name: app, releaseName: a}]\n"),
            ("web/base/charts/app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
            ("web/base/charts/app/values.yaml", ""),
            (
                "web/base/charts/app/templates/a.yaml",
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
            ),
        ],
    );
}

#[test]
fn a_key_that_a_chart_prints_twice_is_refused_as_by_kustomize() {
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: c\n  b: d\n";
    let kustomization = "helmCharts: [{name: app, releaseName: a}]\n";
    let template = ("web/charts/app/templates/twice.yaml", twice);
    let folder = repository(&[("web/kustomization.yaml", kustomization), template]);
    let said = bare(&folder.path().join("web")).unwrap_err();
    assert!(said.contains("mapping key \"b\" already defined"), "{said}");
    check_refused(
        kustomization,
        &[template],
        &[
            "charts/app/templates/twice.yaml:null in what the template makes, key \\b\\ is given twice in this mapping: \
           first in line 5, again in line 6",
        ],
    );
}

#[test]
fn a_folder_with_a_kustomization_and_a_chart_is_a_kustomization() {
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let (own, other) = (map("kustomized"), map("charted"));
    let folder = repository(&[
        ("web/kustomization.yaml", "resources: [own.yaml]\n"),
        ("web/own.yaml", &own),
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/templates/a.yaml", &other),
    ]);
    let (objects, diagnostics) = rendered(folder.path());
    assert_eq!(diagnostics, Vec::<Value>::new());
    let names: Vec<_> = objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["kustomized"]);
}

#[track_caller]
fn check_refused(kustomization: &str, files: &[(&str, &str)], expected: &[&str]) {
    let folder = repository(&[&[("web/kustomization.yaml", kustomization)], files].concat());
    let (objects, diagnostics) = rendered(&folder.path().join("web"));
    let found: Vec<_> = diagnostics
        .iter()
        .map(|found| format!("{}:{} {}", found["file"], found["line"], found["message"]).replace('"', ""))
        .collect();
    assert_eq!(
        (objects.len(), found),
        (0, expected.iter().map(ToString::to_string).collect()),
        "{kustomization}"
    );
}

#[test]
fn what_cannot_be_rendered_is_reported_at_its_entry() {
    let chart = |fields: &str| format!("resources: []\nhelmCharts:\n- {{{fields}}}\n");
    let at = "kustomization.yaml:3";
    for template in ["{{ randAlpha 5 }}", "a-{{ now.Unix }}", "{{ now.Format \"20060102\" }}"] {
        check_refused(
            &chart(&format!("name: app, nameTemplate: '{template}'")),
            &[],
            &[&format!("{at} helmCharts: nameTemplate makes up another name at each render")],
        );
    }
    check_refused(
        &chart("name: none, releaseName: a"),
        &[],
        &[&format!("{at} helmCharts: there is no chart none in web/charts/none")],
    );
    check_refused(
        &chart("name: app, releaseName: a, valuesFile: 'https://example.com/v.yaml'"),
        &[],
        &[&format!("{at} valuesFile: this is an address, which is not fetched: https://example.com/v.yaml")],
    );
    check_refused(
        &chart("name: app, releaseName: a, valuesInline: {image: text}"),
        &[],
        &[&format!(
            "{at} helmCharts: valuesInline: /image is a mapping, a list or neither in one place, and another of them \
             in the other"
        )],
    );
    check_refused(
        &chart("name: app, releaseName: a, release: b"),
        &[],
        &[&format!("{at} helmCharts: release is no field of a chart")],
    );
}

#[test]
fn no_entry_leads_out_of_the_repository() {
    let chart = |home: &str, fields: &str| {
        format!(
            "resources: []\nhelmGlobals: {{chartHome: {home}}}\nhelmCharts:\n- {{releaseName: a, {fields}}}\n"
        )
    };
    let out = |field: &str, path: &str| {
        format!("kustomization.yaml:4 {field}: the path leaves the repository: {path}")
    };
    for (home, fields, expected) in [
        ("/etc", "name: app", out("helmCharts", "/etc/app")),
        ("../../../etc", "name: app", out("helmCharts", "../../../etc/app")),
        ("charts", "name: ../../../etc", out("helmCharts", "charts/../../../etc")),
        ("charts", "name: app, valuesFile: /etc/passwd", out("valuesFile", "/etc/passwd")),
        (
            "charts",
            "name: app, additionalValuesFiles: [../../../etc/passwd]",
            out("additionalValuesFiles", "../../../etc/passwd"),
        ),
    ] {
        check_refused(&chart(home, fields), &[], &[&expected]);
    }
}

#[test]
fn a_chart_of_a_server_is_refused_with_the_line_that_would_allow_it() {
    let entry = "name: none, releaseName: a, version: 1.0.0, repo: 'https://charts.example.com'";
    let folder = repository(&[("web/kustomization.yaml", &format!("helmCharts:\n- {{{entry}}}\n"))]);
    let (objects, diagnostics) = rendered(&folder.path().join("web"));
    let [found] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
    assert_eq!((objects.len(), &found["line"], &found["file"]), (0, &2.into(), &"kustomization.yaml".into()));
    let text = format!("{} {}", found["message"], found["hint"]);
    assert!(text.contains("https://charts.example.com") && text.contains("spec.fetch.allow"), "{text}");
}

#[test]
fn values_that_a_chart_makes_up_are_refused() {
    let template = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {a: {{ randAlphaNum 8 | quote }}}\n";
    check_refused(
        "helmCharts: [{name: app, releaseName: a}]\n",
        &[("web/charts/app/templates/secret.yaml", template)],
        &["charts/app/templates/secret.yaml:null Secret login: /stringData/a differs from render to render"],
    );
}

#[test]
fn hooks_of_a_chart_are_those_of_any_chart() {
    let hook = |name: &str, event: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: {event}}}\nspec: {{template: {{spec: {{}}}}}}\n"
        )
    };
    let (before, deleting) = (hook("before", "pre-install,pre-upgrade"), hook("deleting", "pre-delete"));
    let folder = repository(&[
        ("web/kustomization.yaml", "helmCharts: [{name: app, releaseName: a}]\nnamePrefix: x-\n"),
        ("web/charts/app/templates/before.yaml", &before),
        ("web/charts/app/templates/deleting.yaml", &deleting),
    ]);
    let (objects, diagnostics) = rendered(&folder.path().join("web"));
    let reported: Vec<_> = diagnostics.iter().map(|found| (&found["severity"], &found["message"])).collect();
    let message = json!("Job x-deleting: it is a hook for deletion or rollback, which is not run");
    assert_eq!(reported, [(&json!("warning"), &message)]);
    let jobs: Vec<_> = objects.iter().filter(|object| object["kind"] == "Job").collect();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["metadata"]["name"], "x-before");
    assert!(jobs[0]["metadata"]["annotations"].get("helm.sh/hook").is_none());
    let web = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let waits = web["metadata"]["annotations"]["rhumb.dev/depends-on"].as_str().unwrap();
    assert!(waits.contains("x-before"), "{waits}");
}

#[test]
fn what_waits_for_a_hook_names_it_where_it_ends_up() {
    let check = |kustomization: &str, namespace: &str, expected: &str| {
        let hook = format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: before\n{namespace}  annotations: {{helm.sh/hook: \
             pre-install}}\nspec: {{template: {{spec: {{}}}}}}\n"
        );
        let folder = repository(&[
            ("web/kustomization.yaml", kustomization),
            ("web/charts/app/templates/before.yaml", &hook),
        ]);
        let (objects, _) = rendered(&folder.path().join("web"));
        let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
        let at = format!("batch/namespaces/{expected}/Job/before");
        assert_eq!(text_at(of("Job"), &["metadata", "namespace"]), expected, "{kustomization}");
        assert_eq!(
            of("Deployment")["metadata"]["annotations"]["rhumb.dev/depends-on"],
            at,
            "{kustomization}"
        );
    };
    // Without a word of its own an object is in the namespace of the source, wherever the chart is.
    // It has none here, and its name in the annotation leaves it open too.
    check("helmCharts: [{name: app, releaseName: a}]\n", "", "");
    check("helmCharts: [{name: app, releaseName: a, namespace: other}]\n", "", "");
    let named = "  namespace: {{ .Release.Namespace }}\n";
    check("helmCharts: [{name: app, releaseName: a, namespace: other}]\n", named, "other");
    let all = "namespace: shop\nhelmCharts: [{name: app, releaseName: a}]\n";
    // The kustomization's namespace is that of the release, and is written on no object.
    check(all, "", "");
    check(all, named, "shop");
    let both = "namespace: shop\nhelmCharts: [{name: app, releaseName: a, namespace: other}]\n";
    check(both, "", "");
    check(both, named, "other");
}

#[test]
fn items_of_a_list_of_a_chart_are_objects_as_others_are() {
    let list = "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-install}}\nitems:\n\
                - apiVersion: batch/v1\n  kind: Job\n  metadata: {name: before}\n  spec: {template: {spec: {}}}\n";
    let folder = repository(&[
        ("web/kustomization.yaml", "helmCharts: [{name: app, releaseName: a}]\nnamePrefix: x-\n"),
        ("web/charts/app/templates/list.yaml", list),
    ]);
    let (objects, _) = rendered(&folder.path().join("web"));
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
    assert!(of("Job")["metadata"]["annotations"].get("helm.sh/hook").is_none());
    let waits = of("Deployment")["metadata"]["annotations"]["rhumb.dev/depends-on"].as_str().unwrap();
    assert!(waits.contains("Job/x-before"), "{waits}");
}
