//! The origin of a rendered object, by the word of its renderer.
//!
//! kustomize names the origin of each object when the root's kustomization asks for it. It is asked
//! to in the tree that it gets, and its answer is taken out of its output again.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::{
    PlacedEntry, PlacedNode, PlacedValue, TextPosition, read_documents, read_first_document,
};
use crate::object::{ManifestOrigin, annotation_text};

/// The text between the renderer of an object and the chart that made it.
pub(super) const CHART_SEPARATOR: &str = ", ";

/// The annotation in which kustomize says where an object comes from.
const ORIGIN_ANNOTATION: &str = "config.kubernetes.io/origin";
/// The annotation in which kustomize says what changed an object.
const TRANSFORMATIONS_ANNOTATION: &str = "alpha.config.kubernetes.io/transformations";
/// The field of a kustomization that asks for it, and its word for that.
const BUILD_METADATA_FIELD: &str = "buildMetadata";
const ORIGIN_ANNOTATIONS_WORD: &str = "originAnnotations";

/// The place in the repository that an object was rendered from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectOrigin {
    /// The folder of the root; empty for the whole revision.
    pub root: Arc<str>,
    /// The program that rendered it, and the name and version of its chart.
    pub renderer: Arc<str>,
    /// The places that it was made of: first its own, then those that change it.
    pub places: Vec<ManifestOrigin>,
}

/// `overlays/prod (kustomize) ← base/web.yaml:3, overlays/prod/patch.yaml:1`.
impl fmt::Display for ObjectOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = if self.root.is_empty() { "." } else { &self.root };
        write!(f, "{root} ({})", self.renderer)?;
        for (origin, number) in self.places.iter().zip(0..) {
            write!(f, "{} {origin}", if number == 0 { " ←" } else { "," })?;
        }
        Ok(())
    }
}

/// The words of kustomize on an object's origin. Paths are as seen from the root's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginAnnotation {
    /// The file that the object is in.
    pub path: Option<String>,
    /// The repository that was cloned for it.
    pub repo: Option<String>,
    /// The file that configures what generated it.
    pub configured_in: Option<String>,
    /// The kind of what generated it.
    pub configured_by: Option<String>,
}

impl OriginAnnotation {
    /// Reads the text of the annotation; none where it is not kustomize's.
    pub fn parse(text: &str) -> Option<Self> {
        let documents = read_documents(&Arc::from(""), text.as_bytes()).documents;
        let [document] = documents.as_slice() else { return None };
        let field = |value: &PlacedValue, key: &str| {
            let entry = value.entries().iter().find(|entry| entry.key == key)?;
            entry.value.text().map(str::to_owned)
        };
        let by = document.entries().iter().find(|entry| entry.key == "configuredBy");
        let origin = Self {
            path: field(document, "path"),
            repo: field(document, "repo"),
            configured_in: field(document, "configuredIn"),
            configured_by: by.and_then(|by| field(&by.value, "kind")),
        };
        (origin.path.is_some() || origin.configured_in.is_some()).then_some(origin)
    }
}

/// Returns the origin that a rendered object names, and leaves it there.
pub(crate) fn read_origin(object: &Value) -> Option<OriginAnnotation> {
    OriginAnnotation::parse(annotation_text(object, ORIGIN_ANNOTATION))
}

/// Takes the origin out of a rendered object, which is then as it would be without.
///
/// Only for an output in which origins were asked for on top of what the root asks. kustomize
/// itself takes this annotation out of every other output, whoever wrote it.
pub fn strip_origin(object: &mut Value) -> Option<OriginAnnotation> {
    let origin = read_origin(object);
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut)?;
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut)?;
    if annotations.remove(ORIGIN_ANNOTATION).is_some() && annotations.is_empty() {
        metadata.remove("annotations");
    }
    origin
}

/// Writes the origin of an object of a chart as kustomize writes it: by what generated it. The root
/// and the kustomization are paths of the closure.
pub(super) fn name_generator(object: &mut Value, root: &str, kustomization: &str) {
    let origin_annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(origin_annotations) =
        origin_annotations.and_then(|annotations| annotations.get_mut(ORIGIN_ANNOTATION))
    {
        let file = super::paths::relative_to(root, kustomization);
        *origin_annotations = format!(
            "configuredIn: {file}\nconfiguredBy:\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n"
        )
        .into();
    }
}

/// Takes what the kustomizations in these folders did out of what kustomize says of an object. The
/// folders are as seen from the root's.
pub(super) fn strip_transformations(object: &mut Value, folders: &[String]) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let Some(text) = annotations.get(TRANSFORMATIONS_ANNOTATION).and_then(Value::as_str) else { return };
    // Each item begins at the margin, so that all else stays letter by letter.
    let mut left = String::new();
    for item in text.split_inclusive('\n').collect::<Vec<_>>().chunk_by(|_, next| !next.starts_with("- ")) {
        let file =
            item.iter().find_map(|line| line.trim_start_matches(['-', ' ']).strip_prefix("configuredIn: "));
        let folder = file.map(|file| super::paths::folder_of(file.trim_end()));
        if folder.is_none_or(|folder| !folders.iter().any(|own| own == folder)) {
            left.extend(item.iter().copied());
        }
    }
    if left.is_empty() {
        annotations.remove(TRANSFORMATIONS_ANNOTATION);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    } else {
        annotations.insert(TRANSFORMATIONS_ANNOTATION.to_owned(), left.into());
    }
}

/// Returns whether a text names the annotation, also as JSON patches write it.
pub(super) fn has_origin_annotation(bytes: &[u8]) -> bool {
    let patched = ORIGIN_ANNOTATION.replace('/', "~1");
    [ORIGIN_ANNOTATION, &patched]
        .iter()
        .any(|name| bytes.windows(name.len()).any(|part| part == name.as_bytes()))
}

/// Returns whether a kustomization asks for origins itself.
pub(super) fn has_origin_option(bytes: &[u8]) -> bool {
    let documents = read_first_document(&Arc::from(""), bytes).documents;
    let entries = documents.iter().flat_map(build_metadata_entries).flat_map(|entry| entry.value.items());
    entries.into_iter().any(|item| item.text() == Some(ORIGIN_ANNOTATIONS_WORD))
}

fn build_metadata_entries(root: &PlacedValue) -> impl Iterator<Item = &PlacedEntry> {
    root.entries().iter().filter(|entry| entry.key.eq_ignore_ascii_case(BUILD_METADATA_FIELD))
}

/// Returns the text of a kustomization that also asks for origins, all else left as it is. None
/// where it asks already, and where it is written so that nothing can be added for certain.
///
/// Every candidate is read again: it must mean the same but for the one word.
pub(super) fn with_origins(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let file = read_first_document(&Arc::from(""), bytes);
    let [root] = file.documents.as_slice() else { return None };
    let (expected, candidates) = match build_metadata_entries(root).collect::<Vec<_>>().as_slice() {
        [] => (expected_value(root, BUILD_METADATA_FIELD, &[]), insert_first_field(text, root)?),
        [entry] => {
            let items = entry.value.items();
            if items.iter().any(|item| item.text() == Some(ORIGIN_ANNOTATIONS_WORD)) {
                return None;
            }
            (expected_value(root, &entry.key, items), before_the_first_item(text, &entry.value)?)
        }
        _ => return None,
    };
    let means_the_same = |text: &String| {
        let documents = read_first_document(&Arc::from(""), text.as_bytes()).documents;
        documents.first().is_some_and(|document| document.to_value() == expected)
    };
    candidates.into_iter().find(means_the_same).map(String::into_bytes)
}

/// Returns the value of a kustomization that also asks for origins.
fn expected_value(root: &PlacedValue, key: &str, items: &[PlacedValue]) -> Value {
    let mut value = root.to_value();
    if let Some(entries) = value.as_object_mut() {
        let requested = items.iter().map(PlacedValue::to_value);
        entries
            .insert(key.to_owned(), [ORIGIN_ANNOTATIONS_WORD.into()].into_iter().chain(requested).collect());
    }
    value
}

/// Returns the texts with a field of its own. That is a line at the end, a line before all others,
/// or a part of a mapping in braces.
fn insert_first_field(text: &str, root: &PlacedValue) -> Option<Vec<String>> {
    let first = root.entries().iter().map(|entry| entry.position).min()?;
    let at = offset(text, first)?;
    let indent = " ".repeat(first.column as usize - 1);
    let line = format!("{BUILD_METADATA_FIELD}: [{ORIGIN_ANNOTATIONS_WORD}]\n");
    let mut candidates = Vec::new();
    // Another line would end a last line that has no end, and with it change its value.
    if text.ends_with('\n') {
        candidates.push(format!("{text}{indent}{line}"));
    }
    candidates.push(insert_text(text, at, &format!("{line}{indent}")));
    candidates.push(insert_text(
        text,
        at,
        &format!("\"{BUILD_METADATA_FIELD}\": [\"{ORIGIN_ANNOTATIONS_WORD}\"], "),
    ));
    Some(candidates)
}

/// Returns the texts with another item of a list. It is before the first in brackets, before the
/// first in lines of their own, or the only one.
fn before_the_first_item(text: &str, list: &PlacedValue) -> Option<Vec<String>> {
    if list.node == PlacedNode::List(Vec::new()) {
        let at = offset(text, list.position)? + 1;
        return Some(vec![insert_text(text, at, &format!("\"{ORIGIN_ANNOTATIONS_WORD}\""))]);
    }
    let at = offset(text, list.items().first()?.position)?;
    let before = text.get(..at)?;
    let line = before.rfind('\n').map_or(before, |end| before.get(end + 1..).unwrap_or_default());
    Some(vec![
        insert_text(text, at, &format!("\"{ORIGIN_ANNOTATIONS_WORD}\", ")),
        insert_text(text, at, &format!("{ORIGIN_ANNOTATIONS_WORD}\n{line}")),
    ])
}

fn insert_text(text: &str, at: usize, addition: &str) -> String {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    [before, addition, after].concat()
}

/// Returns the place as a number of bytes.
fn offset(text: &str, position: TextPosition) -> Option<usize> {
    let lines = text.split_inclusive('\n');
    let start: usize = lines.take((position.line as usize).checked_sub(1)?).map(str::len).sum();
    let line = text.get(start..)?;
    let column = (position.column as usize).checked_sub(1)?;
    line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(column).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn origins_are_asked_for_and_all_else_stays() {
        let check = |text: &str, expected: Option<&str>| {
            let amended = with_origins(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(amended.as_deref(), expected, "{text}");
        };
        check("resources:\n- a.yaml\n", Some("resources:\n- a.yaml\nbuildMetadata: [originAnnotations]\n"));
        check("# x\nresources:\n- a", Some("# x\nbuildMetadata: [originAnnotations]\nresources:\n- a"));
        check(
            "---\nnamePrefix: a-\n...\n",
            Some("---\nbuildMetadata: [originAnnotations]\nnamePrefix: a-\n...\n"),
        );
        check("a: 1\n---\nb: 2\n", Some("buildMetadata: [originAnnotations]\na: 1\n---\nb: 2\n"));
        check("  a: 1\n  b: 2\n", Some("  a: 1\n  b: 2\n  buildMetadata: [originAnnotations]\n"));
        check("{a: 1}\n", Some("{\"buildMetadata\": [\"originAnnotations\"], a: 1}\n"));
        check("{\n  \"a\": 1\n}", Some("{\n  \"buildMetadata\": [\"originAnnotations\"], \"a\": 1\n}"));
        check("a: |+\n  x\n\n\n", Some("a: |+\n  x\n\n\nbuildMetadata: [originAnnotations]\n"));
        check("a: |\n  x", Some("buildMetadata: [originAnnotations]\na: |\n  x"));
    }

    #[test]
    fn what_the_root_asks_for_itself_is_kept() {
        let check = |text: &str, expected: Option<&str>| {
            let amended = with_origins(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(amended.as_deref(), expected, "{text}");
        };
        check("buildMetadata: [originAnnotations]\na: 1\n", None);
        check("buildMetadata:\n- managedByLabel\n- originAnnotations\n", None);
        check(
            "buildMetadata: [managedByLabel]\n",
            Some("buildMetadata: [\"originAnnotations\", managedByLabel]\n"),
        );
        check(
            "buildMetadata:\n  - managedByLabel\na: 1\n",
            Some("buildMetadata:\n  - originAnnotations\n  - managedByLabel\na: 1\n"),
        );
        check("buildMetadata: []\n", Some("buildMetadata: [\"originAnnotations\"]\n"));
        check(
            "BuildMetadata: [managedByLabel]\n",
            Some("BuildMetadata: [\"originAnnotations\", managedByLabel]\n"),
        );
        check("buildMetadata:\na: 1\n", None);
        check("- a\n", None);
        check("a: [\n", None);
        check("", None);
    }

    #[test]
    fn an_origin_is_read_and_taken_out() {
        let check = |annotations: Value, expected: Option<OriginAnnotation>, left: Value| {
            let mut object = json!({"kind": "X", "metadata": {"name": "a", "annotations": annotations}});
            assert_eq!(strip_origin(&mut object), expected);
            assert_eq!(object, json!({"kind": "X", "metadata": left}));
        };
        let path = |path: &str| OriginAnnotation { path: Some(path.to_owned()), ..Default::default() };
        check(
            json!({ORIGIN_ANNOTATION: "path: ../base/web.yaml\n"}),
            Some(path("../base/web.yaml")),
            json!({"name": "a"}),
        );
        check(
            json!({ORIGIN_ANNOTATION: "path: a\n", "x": "y"}),
            Some(path("a")),
            json!({"name": "a", "annotations": {"x": "y"}}),
        );
        let generated = "configuredIn: kustomization.yaml\nconfiguredBy:\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n";
        let by = OriginAnnotation {
            configured_in: Some("kustomization.yaml".to_owned()),
            configured_by: Some("ConfigMapGenerator".to_owned()),
            ..Default::default()
        };
        check(json!({ORIGIN_ANNOTATION: generated}), Some(by), json!({"name": "a"}));
        check(json!({ORIGIN_ANNOTATION: "{{"}), None, json!({"name": "a"}));
        check(json!({"x": "y"}), None, json!({"name": "a", "annotations": {"x": "y"}}));
        check(json!({}), None, json!({"name": "a", "annotations": {}}));
    }

    #[test]
    fn what_the_folders_of_charts_did_is_taken_out() {
        let item = |file: &str, kind: &str| {
            format!("- configuredIn: {file}\n  configuredBy:\n    apiVersion: builtin\n    kind: {kind}\n")
        };
        let own = item("base/rhumb-chart-0/kustomization.yaml", "AnnotationsTransformer");
        let prefix = item("kustomization.yaml", "PrefixTransformer");
        let check = |output: String, expected: Value| {
            let mut object = json!({"metadata": {"annotations": {TRANSFORMATIONS_ANNOTATION: output}}});
            strip_transformations(&mut object, &["base/rhumb-chart-0".to_owned()]);
            assert_eq!(object["metadata"], expected);
        };
        check(own.clone(), json!({}));
        check(format!("{own}{prefix}"), json!({"annotations": {TRANSFORMATIONS_ANNOTATION: prefix.clone()}}));
        check(format!("{prefix}{own}"), json!({"annotations": {TRANSFORMATIONS_ANNOTATION: prefix.clone()}}));
        check(prefix.clone(), json!({"annotations": {TRANSFORMATIONS_ANNOTATION: prefix.clone()}}));
    }

    #[test]
    fn an_origin_is_shown_in_one_line() {
        let position = |file: &str, line| ManifestOrigin::new(file.into(), line, 1);
        let places = vec![position("base/web.yaml", 3), position("overlays/prod/patch.yaml", 1)];
        let origin = ObjectOrigin { root: "overlays/prod".into(), renderer: "kustomize".into(), places };
        assert_eq!(
            origin.to_string(),
            "overlays/prod (kustomize) ← base/web.yaml:3, overlays/prod/patch.yaml:1"
        );
        let origin = ObjectOrigin { root: "".into(), renderer: "kustomize".into(), places: Vec::new() };
        assert_eq!(origin.to_string(), ". (kustomize)");
    }
}
