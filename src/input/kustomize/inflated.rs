//! Charts that a kustomization renders, as folders of plain objects in their place.
//!
//! kustomize gets a kustomization without its charts, and one folder more for each. The folder has
//! what helm printed, under the mark that kustomize itself gives to it. So kustomize never runs
//! helm, and its own treatment of such objects stays what it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::input::paths;
use crate::input::tree::FileTree;
use crate::manifest::{PlacedValue, read_first_document};
use crate::object::ManifestOrigin;
use crate::source::SourceError;

use super::chart_field::CHART_FIELDS;
use super::closure::Closure;
use super::file::{fields, fold_case, items};
use super::object_origins::named_object;
use super::patch::NamedObject;
use super::render_tree::{PlannedContent, PlannedFile};

/// The annotation by which kustomize knows objects that helm made. No output has it.
const GENERATED_MARK: &str = "internal.config.kubernetes.io/helm-generated";
/// The beginning of the names of the folders.
const FOLDER_PREFIX: &str = "rhumb-chart-";
/// The file in such a folder that holds the objects.
const OBJECTS_FILE: &str = "objects.yaml";
/// The folder of that file in the folder of a component.
const OBJECTS_FOLDER: &str = "objects";
/// The name of a kustomization.
const KUSTOMIZATION_FILE: &str = "kustomization.yaml";

/// A chart of a kustomization, and what helm made of it.
#[derive(Clone, Debug)]
pub struct InflatedChart {
    /// The path of the kustomization in the closure.
    pub file: Arc<str>,
    /// The program, and the name and version of the chart, as origins name them.
    pub renderer: Arc<str>,
    /// The namespace of its release.
    pub namespace: Arc<str>,
    /// The text that helm printed.
    pub text: Arc<[u8]>,
    /// The objects in it.
    pub objects: Vec<InflatedObject>,
}

/// An object that helm made.
#[derive(Clone, Debug)]
pub struct InflatedObject {
    pub(super) name: NamedObject,
    /// The template that it comes from.
    pub origin: ManifestOrigin,
}

impl InflatedObject {
    /// Returns the one with this tree.
    pub fn of(body: &Value, origin: ManifestOrigin) -> Self {
        Self { name: named_object(body), origin }
    }
}

impl InflatedChart {
    /// Returns the object that another one was made of: a name may have got a beginning and an end.
    pub(super) fn object(&self, wanted: &NamedObject) -> Option<&InflatedObject> {
        let same_kind = || {
            let objects = self.objects.iter();
            objects.filter(|one| one.name.kind == wanted.kind && one.name.group == wanted.group)
        };
        let inside = same_kind().filter(|one| wanted.name.contains(&one.name.name));
        let longest = inside.max_by_key(|one| one.name.name.len());
        let exact = same_kind().find(|one| one.name.name == wanted.name);
        exact.or(longest).or_else(|| same_kind().next())
    }
}

/// Takes the mark of kustomize off an object: old versions leave it there.
pub(in crate::input) fn strip_mark(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    if annotations.remove(GENERATED_MARK).is_some() && annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// The step of a kustomization at which the objects of its charts join the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoiningStep {
    /// With its resources.
    Resources,
    /// Before its components, as kustomize has it: no generator of its own changes the objects.
    Components,
}

impl JoiningStep {
    /// Returns the step for a kustomization. It matters where a generator changes what is there.
    /// Generators that are plugins see charts, so that these join early where there are any.
    fn of(root: &PlacedValue) -> Self {
        let changes = |generator: &PlacedValue| {
            let behavior = fields(generator, "behavior").last().and_then(PlacedValue::text);
            matches!(behavior, Some("merge" | "replace"))
        };
        let generators = ["configMapGenerator", "secretGenerator"];
        let is_needed = generators.into_iter().any(|field| items(root, field).any(changes));
        if is_needed && items(root, "generators").next().is_none() {
            Self::Components
        } else {
            Self::Resources
        }
    }

    const fn field(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Components => "components",
        }
    }
}

/// Puts the charts of a closure's kustomizations into the files of its tree, and returns where the
/// objects of each lie there, by their numbers.
pub(super) fn plan(
    planned: &mut Vec<PlannedFile>,
    closure: &Closure,
    files: &impl FileTree,
    charts: &[InflatedChart],
) -> Result<BTreeMap<String, usize>, SourceError> {
    let mut found = BTreeMap::new();
    for folder in closure.folders.iter().filter(|folder| !folder.kustomization.charts.charts.is_empty()) {
        let Some(file) = closure.files.get(&folder.file) else { continue };
        let text = read_first_document(&Arc::from(""), &files.read(file.file.blob)?);
        let root = text.documents.first();
        let step = root.map_or(JoiningStep::Resources, JoiningStep::of);
        let mut names = Vec::new();
        for (number, chart) in charts.iter().enumerate() {
            if chart.file != folder.file || chart.objects.is_empty() {
                continue;
            }
            let name = free_name(planned, &folder.path, number);
            let mut below = paths::append(&folder.path, &name);
            if step == JoiningStep::Components {
                let file = paths::append(&below, KUSTOMIZATION_FILE);
                planned.push(planned_text(&file, component().as_bytes()));
                below = paths::append(&below, OBJECTS_FOLDER);
            }
            let objects = paths::append(&below, OBJECTS_FILE);
            planned.push(planned_text(&paths::append(&below, KUSTOMIZATION_FILE), marking().as_bytes()));
            planned.push(planned_text(&objects, &chart.text));
            found.insert(objects, number);
            names.push(name);
        }
        let text = without_charts(root, &names, step);
        planned.retain(|known| known.path != folder.file);
        planned.push(planned_text(&folder.file, text.as_bytes()));
    }
    planned.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns a name in a folder that nothing in it has.
fn free_name(planned: &[PlannedFile], folder: &str, number: usize) -> String {
    let mut name = format!("{FOLDER_PREFIX}{number}");
    while planned.iter().any(|file| paths::holds(&paths::append(folder, &name), &file.path)) {
        name.push('-');
    }
    name
}

fn planned_text(path: &str, text: &[u8]) -> PlannedFile {
    PlannedFile { path: path.into(), content: PlannedContent::Text(text.into()), size: text.len() as u64 }
}

/// Returns the kustomization of the objects of a chart.
fn marking() -> String {
    let marker = json!({
        "apiVersion": "builtin",
        "kind": "AnnotationsTransformer",
        "metadata": {"name": "mark"},
        "annotations": {GENERATED_MARK: "true"},
        "fieldSpecs": [{"path": "metadata/annotations", "create": true}],
    });
    json!({"resources": [OBJECTS_FILE], "transformers": [marker.to_string()]}).to_string()
}

/// Returns the component that has the objects of a chart.
fn component() -> String {
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": [OBJECTS_FOLDER],
    })
    .to_string()
}

/// Returns the text of a kustomization without its charts, and with folders in their place.
fn without_charts(root: Option<&PlacedValue>, folders: &[String], step: JoiningStep) -> String {
    let mut value = root.map(PlacedValue::to_value).unwrap_or_default();
    let Some(entries) = value.as_object_mut() else { return value.to_string() };
    let is_chart = |key: &str| CHART_FIELDS.iter().any(|field| fold_case(field) == fold_case(key));
    entries.retain(|key, _| !is_chart(key));
    // kustomize takes no kustomization without a field.
    if folders.is_empty() {
        entries.insert("helmGlobals".to_owned(), json!({"chartHome": "charts"}));
    }
    let key = entries.keys().find(|key| fold_case(key) == step.field()).cloned();
    let listed = entries.entry(key.unwrap_or_else(|| step.field().to_owned())).or_insert(Value::Null);
    let known = listed.as_array().cloned().unwrap_or_default().into_iter();
    let folders = folders.iter().cloned().map(Value::from);
    *listed = match step {
        JoiningStep::Resources => known.chain(folders).collect(),
        JoiningStep::Components => folders.chain(known).collect(),
    };
    // Older versions of kustomize look for the old names of fields in the text, with a colon right
    // behind.
    let is_bare = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphabetic());
    let line = |(key, value): (&String, &Value)| {
        let key = if is_bare(key) { key.clone() } else { Value::from(key.as_str()).to_string() };
        format!("{key}: {value}\n")
    };
    entries.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the step of a kustomization, and its text with these folders.
    fn replaced(text: &str, folders: &[&str]) -> (JoiningStep, String) {
        let file = read_first_document(&Arc::from(""), text.as_bytes());
        let root = file.documents.first().unwrap();
        let folders: Vec<String> = folders.iter().map(|folder| (*folder).to_owned()).collect();
        let step = JoiningStep::of(root);
        (step, without_charts(Some(root), &folders, step))
    }

    fn value(text: &str) -> Value {
        read_first_document(&Arc::from(""), text.as_bytes()).documents[0].to_value()
    }

    #[test]
    fn folders_replace_charts() {
        let check = |text: &str, expected: Value| {
            let (_, text) = replaced(text, &["rhumb-chart-0"]);
            assert_eq!(value(&text), expected, "{text}");
        };
        check("helmCharts: [{name: a}]\n", json!({"resources": ["rhumb-chart-0"]}));
        check(
            "resources: [a.yaml]\nHelmCharts: []\nhelmGlobals: {}\nnamePrefix: \"on\"\n",
            json!({"resources": ["a.yaml", "rhumb-chart-0"], "namePrefix": "on"}),
        );
        let (_, empty) = replaced("helmCharts: [{name: a}]", &[]);
        assert_eq!(value(&empty), json!({"helmGlobals": {"chartHome": "charts"}, "resources": []}));
        check("Resources:\nhelmCharts: []\n", json!({"Resources": ["rhumb-chart-0"]}));
        check("helmCharts: []\na b: 1\n", json!({"resources": ["rhumb-chart-0"], "a b": 1}));
    }

    #[test]
    fn kustomize_sees_a_field_under_the_name_that_it_has() {
        let (_, text) = replaced("helmCharts: []\npatches: [a.yaml]\nimageTags: [{name: a}]\n", &["a"]);
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, [r#"imageTags: [{"name":"a"}]"#, r#"patches: ["a.yaml"]"#, r#"resources: ["a"]"#]);
    }

    #[test]
    fn charts_join_behind_generators_that_change_what_is_there() {
        let check = |text: &str, step: JoiningStep, field: &str, expected: &[&str]| {
            let (found, text) = replaced(text, &["rhumb-chart-0"]);
            assert_eq!((found, &value(&text)[field]), (step, &json!(expected)), "{text}");
        };
        let generator = |behavior: &str| format!("configMapGenerator: [{{name: a, behavior: {behavior}}}]\n");
        check(&generator("create"), JoiningStep::Resources, "resources", &["rhumb-chart-0"]);
        check(&generator("merge"), JoiningStep::Components, "components", &["rhumb-chart-0"]);
        check(
            "components: [a]\nsecretGenerator: [{name: a}, {name: b, behavior: replace}]\n",
            JoiningStep::Components,
            "components",
            &["rhumb-chart-0", "a"],
        );
        let with_plugin = generator("merge") + "generators: [a.yaml]\n";
        check(&with_plugin, JoiningStep::Resources, "resources", &["rhumb-chart-0"]);
    }

    #[test]
    fn the_mark_of_kustomize_is_taken_off() {
        let check = |mut object: Value, expected: Value| {
            strip_mark(&mut object);
            assert_eq!(object, expected);
        };
        check(json!({"metadata": {"annotations": {GENERATED_MARK: "true"}}}), json!({"metadata": {}}));
        check(
            json!({"metadata": {"annotations": {GENERATED_MARK: "true", "a": "b"}}}),
            json!({"metadata": {"annotations": {"a": "b"}}}),
        );
        check(json!({"metadata": {"annotations": {}}}), json!({"metadata": {"annotations": {}}}));
    }

    #[test]
    fn a_folder_gets_a_name_that_nothing_has() {
        let planned = [planned_text("a/rhumb-chart-0/x", b""), planned_text("a/rhumb-chart-1", b"")];
        let names: Vec<_> = (0..3).map(|number| free_name(&planned, "a", number)).collect();
        assert_eq!(names, ["rhumb-chart-0-", "rhumb-chart-1-", "rhumb-chart-2"]);
        assert_eq!(free_name(&planned, "", 0), "rhumb-chart-0");
    }
}
