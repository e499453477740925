//! Origins of objects over small revisions in memory.

use serde_json::json;

use super::*;
use crate::input::origin::OriginAnnotation;

#[test]
fn the_places_of_an_object_are_bounded_by_the_bytes_of_their_paths() {
    let (folder, object) = ("x".repeat(200), "kind: Service\nmetadata: {name: web}\n");
    let places = |levels: usize| {
        let below = format!("{folder}/").repeat(levels);
        let patches: Vec<String> = (0..15).map(|number| format!("{below}p{number}.yaml")).collect();
        let text = format!("resources: [web.yaml]\npatchesStrategicMerge: [{}]\n", patches.join(", "));
        let tree = MemoryTree::new().file("app/kustomization.yaml", text).file("app/web.yaml", object);
        let tree = patches.iter().fold(tree, |tree, path| tree.file(&format!("app/{path}"), object));
        let closure = traced(&tree, "app");
        let named = json!({"apiVersion": "", "kind": "Service", "metadata": {"name": "web"}});
        let output = OriginAnnotation::parse("path: web.yaml\n");
        OriginFinder::new(&closure, &tree).find(output.as_ref(), &named).unwrap().places.len()
    };
    assert_eq!((places(0), places(10)), (16, 4));
}

#[test]
fn an_object_comes_from_its_line_and_its_patches() {
    let tree = MemoryTree::new()
        .file("base/kustomization.yaml", "resources: [web.yaml]\nnamePrefix: a-\n")
        .file("base/web.yaml", "# web\nkind: Service\nmetadata: {name: web}\n---\nkind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n")
        .file("part/kustomization.yaml", "kind: Component\npatches:\n- patch: 'x'\n  target: {kind: Deployment}\n")
        .file(
            "overlays/prod/kustomization.yaml",
            "resources:\n- ../../base\ncomponents: [../../part]\npatches:\n- path: patch.yaml\n- path: other.yaml\n\
             - path: ops.yaml\n  target: {kind: Deploy.*, name: a-web}\n- path: ops.yaml\n  target: {kind: Service}\n\
             configMapGenerator:\n- name: settings\n  literals: [a=b]\n",
        )
        .file("overlays/prod/patch.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")
        .file("overlays/prod/other.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\n")
        .file("overlays/prod/ops.yaml", "- op: remove\n  path: /spec\n");
    let closure = traced(&tree, "overlays/prod");
    let check = |output: &str, kind: &str, version: &str, name: &str, expected: &str| {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        let output = OriginAnnotation::parse(output);
        let origin = OriginFinder::new(&closure, &tree).find(output.as_ref(), &object).unwrap();
        assert_eq!(origin.to_string(), expected);
    };
    check(
        "path: ../../base/web.yaml\n",
        "Deployment",
        "apps/v1",
        "a-web",
        "overlays/prod (kustomize) ← base/web.yaml:5, part/kustomization.yaml:3, \
         overlays/prod/patch.yaml:1, overlays/prod/ops.yaml:1",
    );
    check(
        "path: ../../base/web.yaml\n",
        "Service",
        "",
        "a-web",
        "overlays/prod (kustomize) ← base/web.yaml:2, overlays/prod/ops.yaml:1",
    );
    check(
        "configuredIn: kustomization.yaml\nconfiguredBy: {kind: ConfigMapGenerator, apiVersion: builtin}\n",
        "ConfigMap",
        "v1",
        "settings-5hb4m2k",
        "overlays/prod (kustomize) ← overlays/prod/kustomization.yaml:12",
    );
    check("path: ../../../etc/passwd\n", "X", "v1", "x", "overlays/prod (kustomize)");
    check("", "X", "v1", "x", "overlays/prod (kustomize)");
}

#[test]
fn an_object_of_a_chart_names_its_template_and_its_patches() {
    let base = "helmCharts: [{name: app, releaseName: a}]\npatches:\n- path: patch.yaml\n";
    let tree = MemoryTree::new()
        .file("base/kustomization.yaml", base)
        .file("base/patch.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")
        .file("top/kustomization.yaml", "resources: [../base]\nnamePrefix: x-\n");
    let closure = find_closure(&tree, "top", ClosureLimits::default(), &mut ParsedFiles::default()).unwrap();
    let made = |kind: &str, name: &str, template: &str| {
        let body = serde_json::json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        InflatedObject::of(&body, crate::object::ManifestOrigin::of_file(template.to_owned()))
    };
    let chart = InflatedChart {
        file: "base/kustomization.yaml".into(),
        renderer: "kustomize, app 1.2.0".into(),
        namespace: "default".into(),
        text: b"kind: Service".as_slice().into(),
        objects: vec![made("Service", "b", "c/b.yaml"), made("Service", "a", "c/a.yaml")],
    };
    let charts = [chart];
    let planned = RenderTree::with_charts(&closure, &tree, &charts).unwrap();
    let path = planned.charts.keys().next().unwrap().clone();
    assert_eq!(path, "base/rhumb-chart-0/objects.yaml");
    let mut finder = OriginFinder::new(&closure, &tree).with_charts([(path.clone(), &charts[0])]);
    let output = crate::input::origin::OriginAnnotation::parse("path: ../base/rhumb-chart-0/objects.yaml\n");
    let object = serde_json::json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x-a"}});
    assert_eq!(
        finder.find(output.as_ref(), &object).unwrap().to_string(),
        "top (kustomize, app 1.2.0) ← c/a.yaml, base/patch.yaml:1"
    );
    assert_eq!(finder.chart_path(output.as_ref(), &object), Some(path.as_str()));
    assert_eq!(finder.chart_path(None, &object), None);
    let object = serde_json::json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
    assert_eq!(finder.chart_path(None, &object), Some(path.as_str()));
}
