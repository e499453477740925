//! The tree that a renderer gets: the files of one closure and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::input::tree::FileTree;
use crate::input::{origin, paths};
use crate::source::{BlobId, SourceError};

use super::closure::Closure;
use super::file::ReferenceRole;
use super::inflated::{self, InflatedChart};

/// The variables that a program has in the sandbox.
const PROGRAM_VARIABLES: [&str; 5] = ["GOGC", "GOMAXPROCS", "GOMEMLIMIT", "HOME", "TMPDIR"];
/// Paths to annotations: of a JSON patch or a list of fields, and of a replacement.
const ANNOTATION_PATHS: [&str; 2] = ["metadata/annotations", "metadata.annotations"];
/// The mark before the first line of some files.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The content of a file of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedContent {
    /// The content of a file in the revision.
    Blob(BlobId),
    /// A text that is in no revision.
    Text(Arc<[u8]>),
}

/// One regular file, not executable and never written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Its path in the tree.
    pub path: Arc<str>,
    /// The content.
    pub content: PlannedContent,
    /// Its size in bytes.
    pub size: u64,
}

/// The files that a render of a root needs: all regular, no link among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderTree {
    /// The folder to render.
    pub root: Arc<str>,
    /// The files, ordered by path.
    pub files: Vec<PlannedFile>,
    /// Indicates whether the output names origins, and whether they are to stay in it.
    pub origins: OriginTracking,
    /// Indicates whether the objects may be others where the output names their origins.
    pub depends_on_origins: bool,
    /// The numbers of the charts, by the paths of the files that hold their objects.
    pub charts: BTreeMap<String, usize>,
}

/// The words of an output on the origins of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginTracking {
    /// Nothing.
    Absent,
    /// The root itself asks for them: they are part of the objects.
    Requested,
    /// They were asked for here, and are to be taken out again.
    Added,
}

impl RenderTree {
    /// Plans the tree of a closure in which kustomize writes where each object comes from.
    ///
    /// It is not asked to where a patch or the like writes that annotation itself. kustomize reads
    /// it again, and fails where it is not its own.
    ///
    /// # Errors
    /// Fails where the root's kustomization cannot be read.
    pub fn of(closure: &Closure, files: &impl FileTree) -> Result<Self, SourceError> {
        Self::with_charts(closure, files, &[])
    }

    /// Does the same as [`RenderTree::of`], with these in the place of the charts of its
    /// kustomizations.
    ///
    /// # Errors
    /// Fails where a kustomization cannot be read.
    pub fn with_charts(
        closure: &Closure,
        files: &impl FileTree,
        charts: &[InflatedChart],
    ) -> Result<Self, SourceError> {
        let mut tree = Self::plain_with_charts(closure, files, charts)?;
        let Some(root) = closure.folders.first() else { return Ok(tree) };
        let Some(file) = tree.files.iter().find(|planned| planned.path == root.file) else {
            return Ok(tree);
        };
        let text = match &file.content {
            PlannedContent::Blob(blob) => files.read(*blob)?,
            PlannedContent::Text(text) => text.clone(),
        };
        let instructions = OriginInstructions::find(closure, files)?;
        if instructions.write_origins {
            return Ok(tree);
        }
        tree.depends_on_origins = instructions.see_annotations;
        if origin::has_origin_option(&text) {
            tree.origins = OriginTracking::Requested;
        } else if let Some(text) = origin::with_origins(&text) {
            tree.origins = OriginTracking::Added;
            if let Some(planned) = tree.files.iter_mut().find(|planned| planned.path == root.file) {
                planned.size = text.len() as u64;
                planned.content = PlannedContent::Text(text.into());
            }
        }
        Ok(tree)
    }

    /// Plans the tree of a closure as it is.
    pub fn plain(closure: &Closure) -> Self {
        let planned = closure.files.iter().map(|(path, file)| PlannedFile {
            path: path.clone(),
            content: PlannedContent::Blob(file.file.blob),
            size: file.file.size,
        });
        let (root, origins) = (closure.root.clone(), OriginTracking::Absent);
        let charts = BTreeMap::new();
        Self { root, files: planned.collect(), origins, depends_on_origins: false, charts }
    }

    /// Does the same as [`RenderTree::plain`], with these in the place of the charts of its
    /// kustomizations.
    ///
    /// # Errors
    /// Fails where a kustomization cannot be read.
    pub fn plain_with_charts(
        closure: &Closure,
        files: &impl FileTree,
        charts: &[InflatedChart],
    ) -> Result<Self, SourceError> {
        let mut tree = Self::plain(closure);
        if !charts.is_empty() {
            tree.charts = inflated::plan(&mut tree.files, closure, files, charts)?;
        }
        for planned in tree.files.iter_mut().filter(|planned| closure.variables.contains(&planned.path)) {
            if let PlannedContent::Blob(blob) = &planned.content
                && let Some(text) = with_empty_values(&files.read(*blob)?)
            {
                planned.size = text.len() as u64;
                planned.content = PlannedContent::Text(text.into());
            }
        }
        Ok(tree)
    }
}

/// Gives an empty value to the variables of the program itself that a file names without one. None
/// where it names none. Older versions of kustomize take the value from their environment, where
/// these are other ones at each render.
fn with_empty_values(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut is_changed) = (Vec::with_capacity(text.len()), false);
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        let key =
            if number == 0 { content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content) } else { content };
        // kustomize takes off white space of all scripts.
        let key = std::str::from_utf8(key).map_or(key, |text| text.trim_start().as_bytes());
        out.extend_from_slice(content);
        if PROGRAM_VARIABLES.iter().any(|name| name.as_bytes() == key) {
            out.push(b'=');
            is_changed = true;
        }
        out.extend_from_slice(line.get(content.len()..).unwrap_or_default());
    }
    is_changed.then_some(out)
}

/// Returns whether a text has a path to annotations of an object, not of a template of pods.
fn has_annotation_path(text: &[u8]) -> bool {
    let is_of_object = |path: &[u8], at: usize| {
        let before = text.get(..at).unwrap_or_default();
        text.get(at..).is_some_and(|rest| rest.starts_with(path))
            && !["template/", "template."].iter().any(|field| before.ends_with(field.as_bytes()))
    };
    ANNOTATION_PATHS.iter().any(|path| (0..text.len()).any(|at| is_of_object(path.as_bytes(), at)))
}

/// The instructions of a root that are about origins.
#[derive(Clone, Copy, Debug, Default)]
struct OriginInstructions {
    /// Indicates whether a file may write the annotation.
    write_origins: bool,
    /// Indicates whether a file may depend on the annotations of an object. A patch by a path may, a
    /// transformer that creates no field, or a replacement.
    see_annotations: bool,
}

impl OriginInstructions {
    /// Finds them in the files that say what happens to objects. Files of objects and of data say
    /// nothing: kustomize replaces what objects say, and data stays data.
    fn find(closure: &Closure, files: &impl FileTree) -> Result<Self, SourceError> {
        let harmless = harmless_files(closure);
        let mut found = Self::default();
        for (path, file) in &closure.files {
            if !harmless.contains(&**path) {
                let text = files.read(file.file.blob)?;
                found.write_origins |= origin::has_origin_annotation(&text);
                found.see_annotations |= has_annotation_path(&text);
            }
        }
        Ok(found)
    }
}

/// Returns the files of objects and of data.
fn harmless_files(closure: &Closure) -> BTreeSet<String> {
    let mut harmless = BTreeSet::new();
    for folder in &closure.folders {
        let references = folder.kustomization.references.iter().filter(|reference| {
            reference.role == ReferenceRole::Resource
                || matches!(reference.field, "configMapGenerator" | "secretGenerator")
        });
        harmless.extend(references.filter_map(|one| paths::join(&folder.path, &one.target)));
    }
    harmless
}

#[cfg(test)]
mod tests {
    use super::has_annotation_path;

    #[test]
    fn a_path_to_the_annotations_of_an_object_is_known() {
        let check = |text: &str, expected: bool| {
            assert_eq!(has_annotation_path(text.as_bytes()), expected, "{text}");
        };
        check("path: /metadata/annotations/a.b~1c\n", true);
        check("fieldSpecs: [{path: metadata/annotations, create: false}]\n", true);
        check("fieldPaths: [metadata.annotations.note]\n", true);
        check("path: /spec/template/metadata/annotations/a\npath: /metadata/annotations\n", true);
        check("path: /spec/template/metadata/annotations/a\n", false);
        check("fieldPaths: [spec.template.metadata.annotations.a]\n", false);
        check("metadata:\n  annotations: {a: b}\n", false);
        check("", false);
    }
}
