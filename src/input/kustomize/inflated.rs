//! Charts that a kustomization renders, as folders of plain objects in their place.
//!
//! kustomize gets a kustomization without its charts, and one folder more for each. The folder has
//! what helm printed, under the mark that kustomize itself gives to it. So kustomize never runs
//! helm, and its own treatment of such objects stays what it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::input::paths;
use crate::input::tree::FileTree;
use crate::manifest::{PlacedValue, read_first_document};
use crate::object::ManifestOrigin;
use crate::source::SourceError;

use super::chart_field::CHART_FIELDS;
use super::closure::Closure;
use super::file::folded;
use super::object_origins::named_object;
use super::patch::NamedObject;
use super::render_tree::{PlannedContent, PlannedFile};

/// The annotation by which kustomize knows objects that helm made. No output has it.
const GENERATED_MARK: &str = "internal.config.kubernetes.io/helm-generated";
/// The beginning of the names of the folders.
const FOLDER_PREFIX: &str = "rhumb-chart-";
/// The file in such a folder that holds the objects.
const OBJECTS_FILE: &str = "objects.yaml";

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
        let mut names = Vec::new();
        for (number, chart) in charts.iter().enumerate() {
            if chart.file != folder.file || chart.objects.is_empty() {
                continue;
            }
            let name = free_name(planned, &folder.path, number);
            let below = paths::inside(&folder.path, &name);
            let objects = paths::inside(&below, OBJECTS_FILE);
            planned.push(planned_text(&paths::inside(&below, "kustomization.yaml"), marking().as_bytes()));
            planned.push(planned_text(&objects, &chart.text));
            found.insert(objects, number);
            names.push(name);
        }
        let Some(file) = closure.files.get(&folder.file) else { continue };
        let text = without_charts(&files.read(file.file.blob)?, &names);
        planned.retain(|known| known.path != folder.file);
        planned.push(planned_text(&folder.file, text.as_bytes()));
    }
    planned.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns a name in a folder that nothing in it has.
fn free_name(planned: &[PlannedFile], folder: &str, number: usize) -> String {
    let mut name = format!("{FOLDER_PREFIX}{number}");
    while planned.iter().any(|file| paths::holds(&paths::inside(folder, &name), &file.path)) {
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

/// Returns the text of a kustomization without its charts, and with folders in their place.
fn without_charts(bytes: &[u8], folders: &[String]) -> String {
    let file = read_first_document(&Arc::from(""), bytes);
    let mut value = file.documents.first().map(PlacedValue::to_value).unwrap_or_default();
    if let Some(entries) = value.as_object_mut() {
        let is_chart = |key: &str| CHART_FIELDS.iter().any(|field| folded(field) == folded(key));
        entries.retain(|key, _| !is_chart(key));
        rename_old_fields(entries);
        // kustomize takes no kustomization without a field.
        if folders.is_empty() {
            entries.insert("helmGlobals".to_owned(), json!({"chartHome": "charts"}));
        }
        let key = entries.keys().find(|key| folded(key) == "resources").cloned();
        let resources = entries.entry(key.unwrap_or_else(|| "resources".to_owned())).or_insert(Value::Null);
        let known = resources.as_array().cloned().unwrap_or_default();
        *resources = known.into_iter().chain(folders.iter().cloned().map(Value::from)).collect();
    }
    value.to_string()
}

/// Renames the fields that kustomize renames itself. It looks for them in the text, with a colon
/// right behind, where JSON has a quote.
fn rename_old_fields(entries: &mut Map<String, Value>) {
    let patches = entries.get("patches").and_then(Value::as_array);
    let names_files = patches.is_some_and(|patches| patches.iter().any(Value::is_string));
    let old_fields = [("imageTags", "images"), ("patches", "patchesStrategicMerge")];
    for (old, new) in old_fields.into_iter().filter(|(old, _)| *old != "patches" || names_files) {
        if !entries.contains_key(new)
            && let Some(value) = entries.remove(old)
        {
            entries.insert(new.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_replace_charts() {
        let check = |text: &str, expected: Value| {
            let text = without_charts(text.as_bytes(), &["rhumb-chart-0".to_owned()]);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{text}");
        };
        check("helmCharts: [{name: a}]\n", json!({"resources": ["rhumb-chart-0"]}));
        check(
            "resources: [a.yaml]\nHelmCharts: []\nhelmGlobals: {}\nnamePrefix: \"on\"\n",
            json!({"resources": ["a.yaml", "rhumb-chart-0"], "namePrefix": "on"}),
        );
        let empty = without_charts(b"helmCharts: [{name: a}]", &[]);
        let empty: Value = serde_json::from_str(&empty).unwrap();
        assert_eq!(empty, json!({"helmGlobals": {"chartHome": "charts"}, "resources": []}));
        check("Resources:\nhelmCharts: []\n", json!({"Resources": ["rhumb-chart-0"]}));
        check(
            "helmCharts: []\npatches: [a.yaml]\nimageTags: [{name: a}]\n",
            json!({
                "resources": ["rhumb-chart-0"], "images": [{"name": "a"}],
                "patchesStrategicMerge": ["a.yaml"],
            }),
        );
        check(
            "helmCharts: []\npatches: [{path: a.yaml}]\n",
            json!({"resources": ["rhumb-chart-0"], "patches": [{"path": "a.yaml"}]}),
        );
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
