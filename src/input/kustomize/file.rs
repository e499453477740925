//! One kustomization, by what it refers to.

use std::sync::Arc;

use crate::manifest::{
    PlacedEntry, PlacedFile, PlacedValue, TextPosition, read_documents, read_first_document,
};
use crate::object::{Diagnostic, ManifestOrigin};

use super::chart_field::{self, ChartField, ChartFields};
use super::patch::{self, NamedObject, PatchSelector};
use super::plugin;

/// The names under which kustomize looks for a kustomization.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The two kinds of kustomizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KustomizationKind {
    /// A root or a base.
    Kustomization,
    /// A part that only others include.
    Component,
}

/// The way in which kustomize reads what a field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceRole {
    /// A file of objects, or a folder with a kustomization.
    Resource,
    /// A folder with a component.
    Component,
    /// A file of plugin configurations, or a folder whose objects are some.
    Plugin,
    /// A file of patches.
    Patch,
    /// A file of variables for a generator, a line each.
    Variables,
    /// Any other file.
    File,
}

/// One file or folder that a kustomization names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileReference {
    /// The way in which it is read.
    pub role: ReferenceRole,
    /// The field that names it.
    pub field: &'static str,
    /// The path or address as it is written.
    pub target: String,
    /// The place of that text.
    pub position: TextPosition,
}

/// One patch, and which objects it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchUse {
    /// The file that it is in; none where it is in the kustomization.
    pub file: Option<String>,
    /// The place of its text, or of the name of its file.
    pub position: TextPosition,
    /// The object that it is for; where nothing says so, the objects that it names itself.
    pub selector: Option<PatchSelector>,
    /// The objects that its text in the kustomization names.
    pub(super) names: Vec<NamedObject>,
}

/// Something in a kustomization that is never rendered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnsupportedFeature {
    /// A chart that a plugin of kustomize would have helm render.
    HelmChart,
    /// A program or container: its kind and version.
    Plugin(String),
}

/// The texts that a kustomization puts around the names of objects; empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameAffixes {
    /// The beginning.
    pub prefix: String,
    /// The end.
    pub suffix: String,
}

/// A kustomization as far as it says what is read. Its places have no file, because many files may
/// have this content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kustomization {
    /// Its kind.
    pub kind: KustomizationKind,
    /// All that it names, in the order of the fields below.
    pub references: Vec<FileReference>,
    /// The namespace that it gives to objects; empty for none.
    pub namespace: String,
    /// The texts that it puts around the names of objects.
    pub affixes: NameAffixes,
    /// Indicates whether its own fields say which objects it prints, and under which names.
    pub has_predictable_names: bool,
    /// The charts that it renders.
    pub charts: ChartFields,
    /// All patches, in the order in which kustomize applies them.
    pub patches: Vec<PatchUse>,
    /// The ConfigMaps and Secrets that it generates: the name of each, and its place.
    pub generated: Vec<(String, TextPosition)>,
    /// Indicates whether it has fields that nothing is known of, or is more than one document.
    pub has_unknown_fields: bool,
    /// All that is never rendered, each with its place.
    pub unsupported: Vec<(UnsupportedFeature, TextPosition)>,
    /// The faults for which nothing can be said of it.
    faults: Vec<Diagnostic>,
}

impl Kustomization {
    /// Reads a kustomization.
    pub fn read(bytes: &[u8]) -> Self {
        let file = read_first_document(&Arc::from(""), bytes);
        let mut out = FileReferences::default();
        let root = file.documents.first();
        if let Some(root) = root {
            out.kustomization(root);
        }
        let kind = root.and_then(|root| fields(root, "kind").last()).and_then(PlacedValue::text);
        Self {
            kind: match kind {
                Some("Component") => KustomizationKind::Component,
                _ => KustomizationKind::Kustomization,
            },
            references: out.references,
            namespace: root.map(|root| last_text(root, "namespace")).unwrap_or_default(),
            affixes: NameAffixes {
                prefix: root.map(|root| last_text(root, "namePrefix")).unwrap_or_default(),
                suffix: root.map(|root| last_text(root, "nameSuffix")).unwrap_or_default(),
            },
            has_predictable_names: root.is_some_and(has_predictable_names) && !has_more_documents(bytes),
            charts: root.map(chart_field::read).unwrap_or_default(),
            patches: root.map(patch::patches).unwrap_or_default(),
            generated: root.map(generated).unwrap_or_default(),
            has_unknown_fields: root.is_none_or(has_unknown_fields) || has_more_documents(bytes),
            unsupported: out.unsupported,
            faults: read_faults(file),
        }
    }

    /// Returns the faults for which it cannot be read, as faults of this file.
    pub fn faults(&self, file: &Arc<str>) -> impl Iterator<Item = Diagnostic> {
        placed_in(&self.faults, file)
    }

    /// Returns about how many bytes of memory it takes, where its text has so many.
    pub(super) fn memory_size(&self, text_bytes: usize) -> usize {
        let named: usize = self.patches.iter().map(|patch| patch.names.len()).sum();
        let items = self.references.len() * size_of::<FileReference>()
            + self.patches.len() * (size_of::<PatchUse>() + size_of::<PatchSelector>())
            + named * size_of::<NamedObject>()
            + self.generated.len() * size_of::<(String, TextPosition)>()
            + self.charts.charts.len() * size_of::<ChartField>()
            + self.unsupported.len() * size_of::<(UnsupportedFeature, TextPosition)>()
            + self.faults.len() * size_of::<Diagnostic>();
        // The name of a patch is kept twice. Values are a tree with much around each text.
        let has_values = self.charts.charts.iter().any(|chart| chart.values.is_some());
        size_of::<Self>() + items + text_bytes * if has_values { VALUES_FACTOR } else { 2 }
    }
}

/// The memory that values take, in bytes for each byte of their text.
const VALUES_FACTOR: usize = 20;

/// The fields of a kustomization, as `kustomize` 5 knows them.
const KNOWN_FIELDS: [&str; 34] = [
    "apiVersion",
    "bases",
    "buildMetadata",
    "commonAnnotations",
    "commonLabels",
    "components",
    "configMapGenerator",
    "configurations",
    "crds",
    "generatorOptions",
    "generators",
    "helmChartInflationGenerator",
    "helmCharts",
    "helmGlobals",
    "imageTags",
    "images",
    "kind",
    "labels",
    "metadata",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "openapi",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "replacements",
    "replicas",
    "resources",
    "secretGenerator",
    "sortOptions",
    "transformers",
    "validators",
    "vars",
];

/// The fields that change no name, or change it as other fields here say.
const PREDICTABLE_FIELDS: [&str; 20] = [
    "apiVersion",
    "bases",
    "commonAnnotations",
    "commonLabels",
    "configMapGenerator",
    "generatorOptions",
    "imageTags",
    "images",
    "kind",
    "labels",
    "metadata",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "replicas",
    "resources",
    "secretGenerator",
];

fn has_predictable_names(root: &PlacedValue) -> bool {
    // A key in another case, or given twice, is for kustomize itself to read.
    let is_predictable = |entry: &PlacedEntry| PREDICTABLE_FIELDS.contains(&&*entry.key);
    root.entries().iter().all(is_predictable)
        && generators(root).all(|generator| fields(generator, "behavior").next().is_none())
}

fn has_unknown_fields(root: &PlacedValue) -> bool {
    let is_known =
        |entry: &PlacedEntry| KNOWN_FIELDS.iter().any(|field| fold_case(field) == fold_case(&entry.key));
    !root.entries().iter().all(is_known)
}

fn has_more_documents(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut content_lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    // One may precede the only document.
    content_lines.next().is_some() && content_lines.any(|line| line.starts_with(b"---"))
}

fn last_text(root: &PlacedValue, field: &str) -> String {
    fields(root, field).last().and_then(PlacedValue::text).unwrap_or_default().to_owned()
}

fn generators(root: &PlacedValue) -> impl Iterator<Item = &PlacedValue> {
    ["configMapGenerator", "secretGenerator"].into_iter().flat_map(|field| items(root, field))
}

/// Returns the names of what a kustomization generates.
fn generated(root: &PlacedValue) -> Vec<(String, TextPosition)> {
    let names = generators(root).filter_map(|generator| {
        let name = fields(generator, "name").last()?.text()?;
        Some((name.to_owned(), generator.position))
    });
    names.collect()
}

/// Returns the faults that keep a file from being read. A fault that kubectl would refuse
/// but kustomize takes is none of them.
pub(super) fn read_faults(file: PlacedFile) -> Vec<Diagnostic> {
    if !file.documents.is_empty() {
        return Vec::new();
    }
    file.diagnostics.into_iter().filter(Diagnostic::is_error).collect()
}

/// Returns diagnostics that were made without a file, as those of one.
pub(super) fn placed_in(faults: &[Diagnostic], file: &Arc<str>) -> impl Iterator<Item = Diagnostic> {
    faults.iter().map(move |fault| Diagnostic {
        origin: ManifestOrigin { file: file.clone(), ..fault.origin.clone() },
        ..fault.clone()
    })
}

/// Returns the values under a key of a mapping. Go's decoder of JSON takes a key whatever its case,
/// and so does kustomize.
pub(super) fn fields<'a>(value: &'a PlacedValue, name: &str) -> impl Iterator<Item = &'a PlacedValue> {
    let matches = move |entry: &&PlacedEntry| entry.key == name || fold_case(&entry.key) == fold_case(name);
    value.entries().iter().filter(matches).map(|entry| &entry.value)
}

/// Returns the letters of a key in one case, among them the two beyond ASCII that fold into it.
pub(in crate::input) fn fold_case(key: &str) -> String {
    let fold = |letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => char::to_ascii_lowercase(&letter),
    };
    key.chars().map(fold).collect()
}

/// The references of a kustomization or plugin so far.
#[derive(Default)]
pub(super) struct FileReferences {
    pub(super) references: Vec<FileReference>,
    pub(super) unsupported: Vec<(UnsupportedFeature, TextPosition)>,
}

impl FileReferences {
    fn kustomization(&mut self, root: &PlacedValue) {
        for (field, role) in [
            ("resources", ReferenceRole::Resource),
            ("bases", ReferenceRole::Resource),
            ("components", ReferenceRole::Component),
            ("configurations", ReferenceRole::File),
            ("crds", ReferenceRole::File),
        ] {
            self.texts(root, field, role);
        }
        for openapi in fields(root, "openapi") {
            self.text(openapi, "path", "openapi", ReferenceRole::File);
        }
        for field in ["configMapGenerator", "secretGenerator"] {
            items(root, field).for_each(|generator| self.generator(generator, field));
        }
        for field in ["patches", "patchesJson6902"] {
            for patch in items(root, field) {
                self.text(patch, "path", field, ReferenceRole::Patch);
                // The form of `patches` before kustomize 2.1: a list of files.
                self.patch_file(patch, field);
            }
        }
        items(root, "patchesStrategicMerge")
            .for_each(|patch| self.patch_file(patch, "patchesStrategicMerge"));
        for replacement in items(root, "replacements") {
            self.text(replacement, "path", "replacements", ReferenceRole::File);
        }
        for field in ["generators", "transformers", "validators"] {
            items(root, field).for_each(|plugin| self.plugin(plugin, field));
        }
    }

    /// Adds the texts of a list.
    pub(super) fn texts(&mut self, value: &PlacedValue, field: &'static str, role: ReferenceRole) {
        items(value, field).for_each(|item| self.add(item, field, role));
    }

    /// Adds the text under a key, as one of a field.
    pub(super) fn text(&mut self, value: &PlacedValue, key: &str, field: &'static str, role: ReferenceRole) {
        for text in fields(value, key) {
            // No path at all is no path of nothing.
            if text.text().is_some_and(|text| !text.is_empty()) {
                self.add(text, field, role);
            }
        }
    }

    fn add(&mut self, value: &PlacedValue, field: &'static str, role: ReferenceRole) {
        if let Some(target) = value.text() {
            let (target, position) = (target.to_owned(), value.position);
            self.references.push(FileReference { role, field, target, position });
        }
    }

    /// Adds the files of a generator of ConfigMaps or Secrets.
    pub(super) fn generator(&mut self, generator: &PlacedValue, field: &'static str) {
        for file in items(generator, "files") {
            let Some(text) = file.text() else { continue };
            let path = text.split_once('=').map_or(text, |(_, path)| path);
            let (target, position) = (path.to_owned(), file.position);
            self.references.push(FileReference { role: ReferenceRole::File, field, target, position });
        }
        for env in items(generator, "envs") {
            self.add(env, field, ReferenceRole::Variables);
        }
        self.text(generator, "env", field, ReferenceRole::Variables);
    }

    /// Adds a patch that is either its own text or the name of a file.
    pub(super) fn patch_file(&mut self, patch: &PlacedValue, field: &'static str) {
        if patch.text().is_some_and(|text| !is_inline(text)) {
            self.add(patch, field, ReferenceRole::Patch);
        }
    }

    /// Adds a plugin that is either its own text or the name of a file or folder.
    fn plugin(&mut self, value: &PlacedValue, field: &'static str) {
        let Some(text) = value.text() else { return };
        if !is_inline(text) {
            return self.add(value, field, ReferenceRole::Plugin);
        }
        for document in read_documents(&Arc::from(""), text.as_bytes()).documents {
            plugin::add(self, &document, Some(value.position));
        }
    }
}

/// Returns the items of the list under a key.
pub(super) fn items<'a>(value: &'a PlacedValue, field: &str) -> impl Iterator<Item = &'a PlacedValue> {
    fields(value, field).flat_map(PlacedValue::items)
}

/// Returns whether a text is an object itself, and no path to one. Only a text that might be one is
/// read as such. A path has neither a break nor a colon before a blank, nor a brace.
pub(super) fn is_inline(text: &str) -> bool {
    if text.trim().is_empty() {
        return true;
    }
    let may_be = text.contains(['\n', '{']) || text.contains(": ");
    let is_object = |value: &PlacedValue| value.entries().iter().any(|entry| entry.key == "kind");
    may_be && {
        let documents = read_documents(&Arc::from(""), text.as_bytes()).documents;
        !documents.is_empty() && documents.iter().all(is_object)
    }
}
