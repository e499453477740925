//! Manifests without a cluster, for `validate` and `render`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::one_shot_input::{STANDARD_INPUT, STDIN_FILE_NAME, read_standard_input};
use super::rendering::{SourceRendering, UnrenderedFiles, here_if_empty};
use super::{CommandError, ExitStatus};
use crate::engine::{AllowList, check_annotations, check_variables, find_dependency_cycles};
use crate::input::{ASSUMED_VERSION, Decrypter, VariableMode, read_manifest};
use crate::manifest::{self, AssembledSource, KindScopes, ManifestFile, ManifestItem, assemble};
use crate::object::{Diagnostic, ErrorClass, ManifestOrigin, ObjectId, RenderOrigin, Revision, count_text};
use crate::render::describe_violation;
use crate::source::{Snapshot, SnapshotFile, Source, SourceError};

/// Says how far a file with a faulty document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadScope {
    /// All that can be known, also behind a document that does not parse.
    All,
    /// Findings that kubectl would show.
    Shown,
}

/// All that is below a path.
#[derive(Debug)]
pub(super) struct ManifestSet {
    /// The items, in the order of files and lines.
    pub(super) items: Vec<ManifestItem>,
    /// The findings in each file by itself.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The files and roots that were read.
    pub(super) counts: ManifestCounts,
    /// Indicates whether every file was read and every document understood.
    pub(super) understood: bool,
    /// The versions that charts were given.
    pub(super) versions: ChartVersions,
    /// Indicates whether `${NAME}` in them is a variable.
    pub(super) variables: VariableMode,
    /// The revision; none of a pipe.
    pub(super) revision: Option<Revision>,
}

/// The counts of what manifests were read from.
#[derive(Debug, Default)]
pub(super) struct ManifestCounts {
    files: usize,
    roots: BTreeSet<Arc<str>>,
}

impl ManifestCounts {
    /// Counts a file. One that was rendered counts as its root, which has one for each object.
    fn count(&mut self, origin: Option<&RenderOrigin>) {
        match origin.filter(|origin| !origin.renderer.is_empty()) {
            Some(origin) => drop(self.roots.insert(Arc::clone(&origin.root))),
            None => self.files += 1,
        }
    }
}

impl fmt::Display for ManifestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, roots) = (count_text(self.files, "file"), count_text(self.roots.len(), "root"));
        match (self.files, self.roots.len()) {
            (_, 0) => f.write_str(&files),
            (0, _) => f.write_str(&roots),
            _ => write!(f, "{files} and {roots}"),
        }
    }
}

/// The objects of manifests, each with its namespace, and all that is wrong with them.
#[derive(Debug)]
pub(super) struct CheckedObjects {
    /// Usable objects, and the others.
    pub(super) assembled: AssembledSource,
    /// The findings, in the order of their places.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The findings about objects that the source may not have.
    pub(super) disallowed: BTreeMap<ObjectId, String>,
}

impl CheckedObjects {
    /// Returns all objects, usable or not.
    pub(super) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        let objects = self.assembled.objects.iter().map(|object| &object.id);
        objects.chain(self.assembled.invalid.iter().map(|invalid| &invalid.id))
    }
}

/// The versions that charts were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChartVersions {
    /// There are no charts, or the configuration names them.
    Named,
    /// They are assumed.
    Assumed,
}

impl ChartVersions {
    fn of_rendering(rendering: &SourceRendering) -> Self {
        if rendering.has_assumed_version() { Self::Assumed } else { Self::Named }
    }

    /// Returns the notes about them.
    pub(super) fn note(self) -> Option<String> {
        let note = format!(
            "charts are given Kubernetes {ASSUMED_VERSION}, as no cluster is asked; `spec.helm.kubeVersion` of a \
             source and its `apiVersions` say otherwise"
        );
        (self == Self::Assumed).then_some(note)
    }
}

impl Default for ManifestSet {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            diagnostics: Vec::new(),
            counts: ManifestCounts::default(),
            understood: true,
            versions: ChartVersions::Named,
            variables: VariableMode::Literal,
            revision: None,
        }
    }
}

impl ManifestSet {
    /// Reads a directory, a file, or standard input. Findings name files as they are reached from
    /// here.
    pub(super) fn read(
        path: &Path,
        scope: ReadScope,
        rendering: &SourceRendering,
    ) -> Result<Self, CommandError> {
        let mut manifests = Self { variables: rendering.variable_mode(), ..Self::default() };
        if path == Path::new(STANDARD_INPUT) {
            let bytes = read_standard_input()?;
            manifests.take(manifest::read(&Arc::from(STDIN_FILE_NAME), &bytes), None, scope);
            return Ok(manifests);
        }
        let files = UnrenderedFiles::read(here_if_empty(path)).map_err(without_cluster_advice)?;
        let disk = rendering.render(&files).map_err(without_cluster_advice)?;
        manifests.versions = ChartVersions::of_rendering(rendering);
        manifests.revision = Some(disk.snapshot.revision.clone());
        let decrypter = rendering.decrypter();
        let single = path.is_file();
        let shown = |file: &str| -> Arc<str> {
            let is_itself = single && path.file_name().is_some_and(|name| name == file);
            let folder = if single { path.parent().unwrap_or(path) } else { path };
            let full_path = if is_itself { path.to_owned() } else { folder.join(file) };
            without_detours(&full_path).into()
        };
        for file in &disk.snapshot.files {
            if let Some(bytes) = disk.read(file.blob) {
                let reading = read_manifest(&shown_file(file, shown), bytes, &decrypter);
                manifests.take(reading, file.origin.as_deref(), scope);
            }
        }
        manifests.add_refused(&disk.snapshot, shown);
        Ok(manifests)
    }

    /// Reads the newest commit of a repository. Findings name files with the folder that the source
    /// is in.
    pub(super) async fn read_newest(
        mut source: Source,
        folder: &str,
        decrypter: &Decrypter,
        variables: VariableMode,
    ) -> Result<Self, CommandError> {
        let observed = source.observe().await?;
        let reader = source.reader();
        let snapshot = reader.snapshot(&observed.revision)?;
        let mut manifests = Self { variables, ..Self::default() };
        let shown = |file: &str| -> Arc<str> { without_detours(&Path::new(folder).join(file)).into() };
        for file in &snapshot.files {
            let bytes = reader.read(file.blob)?;
            let reading = read_manifest(&shown_file(file, shown), &bytes, decrypter);
            manifests.take(reading, file.origin.as_deref(), ReadScope::All);
        }
        manifests.add_refused(&snapshot, shown);
        manifests.revision = Some(observed.revision);
        if source.used_facts().versions {
            manifests.versions = ChartVersions::Assumed;
        }
        Ok(manifests)
    }

    /// Returns the scopes of all kinds that are built in, or defined here.
    pub(super) fn scopes(&self) -> KindScopes {
        let mut scopes = KindScopes::builtin();
        self.add_scopes_to(&mut scopes);
        scopes
    }

    /// Adds the scopes of the kinds that are defined here.
    pub(super) fn add_scopes_to(&self, scopes: &mut KindScopes) {
        self.items.iter().for_each(|item| scopes.add_definition(item));
    }

    /// Puts the manifests together, and checks them alone and all together.
    pub(super) fn into_objects(
        self,
        scopes: &KindScopes,
        namespace: &str,
        allow: &AllowList,
    ) -> CheckedObjects {
        let Self { items, mut diagnostics, variables, .. } = self;
        let mut assembled = assemble(items, scopes, namespace);
        diagnostics.append(&mut assembled.diagnostics);
        diagnostics.extend(assembled.objects.iter().flat_map(check_annotations));
        if variables == VariableMode::Literal {
            diagnostics.extend(assembled.objects.iter().filter_map(check_variables));
        }
        diagnostics.extend(find_dependency_cycles(&assembled.objects));
        let objects = assembled.objects.iter().map(|object| (&object.id, &object.origin));
        let invalid = assembled.invalid.iter().map(|invalid| (&invalid.id, &invalid.origin));
        let mut disallowed = BTreeMap::new();
        for (id, origin) in objects.chain(invalid) {
            if let Some(violation) = allow.violation(id, scopes.get(&id.group_kind())) {
                let found = describe_violation(&violation, id, origin);
                disallowed.insert(id.clone(), found.message.clone());
                diagnostics.push(found);
            }
        }
        diagnostics.sort();
        CheckedObjects { assembled, diagnostics, disallowed }
    }

    fn add_refused(&mut self, snapshot: &Snapshot, shown: impl Fn(&str) -> Arc<str>) {
        self.understood &= snapshot.is_complete();
        let found = snapshot.refused.iter().chain(&snapshot.warnings);
        self.diagnostics.extend(found.cloned().map(|mut found| {
            found.origin.file = shown(&found.origin.file);
            found
        }));
    }

    fn take(&mut self, reading: ManifestFile, origin: Option<&RenderOrigin>, scope: ReadScope) {
        self.counts.count(origin);
        self.understood &= reading.understood;
        match scope {
            ReadScope::All => self.items.extend(reading.items),
            ReadScope::Shown => self.items.extend(reading.readable_items().cloned()),
        }
        self.diagnostics.extend(reading.diagnostics);
    }
}

/// Returns a file whose places are named as they are reached from here.
fn shown_file(file: &SnapshotFile, shown: impl Fn(&str) -> Arc<str>) -> SnapshotFile {
    let origin = file.origin.as_ref().map(|origin| {
        let places = origin.places.iter();
        Arc::new(RenderOrigin {
            root: shown(&origin.root),
            renderer: origin.renderer.clone(),
            places: places
                .map(|file_origin| ManifestOrigin { file: shown(&file_origin.file), ..file_origin.clone() })
                .collect(),
        })
    });
    SnapshotFile { path: shown(&file.path), origin, ..file.clone() }
}

/// Returns a path without `.`, and without `NAME/..`.
fn without_detours(path: &Path) -> String {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if straight.file_name().is_some() => drop(straight.pop()),
            part => straight.push(part),
        }
    }
    if straight.as_os_str().is_empty() { ".".to_owned() } else { straight.to_string_lossy().into_owned() }
}

/// Returns how a command ends that found this.
pub(super) fn exit_status_of(found: &[Diagnostic]) -> ExitStatus {
    if found.iter().any(Diagnostic::is_error) { ExitStatus::Differs } else { ExitStatus::Done }
}

/// Returns a source's error, without what only matters to those who follow one.
fn without_cluster_advice(error: SourceError) -> CommandError {
    match error {
        SourceError::Empty { shown_location, .. } => CommandError::new(
            ErrorClass::Source,
            format!("{shown_location}: no *.yaml, *.yml or *.json file in it"),
        ),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_root_count_as_one_place_and_files_for_themselves() {
        let check = |rendered: &[Option<(&str, &str)>], expected: &str| {
            let mut places = ManifestCounts::default();
            for origin in rendered {
                let origin = origin.map(|(root, renderer)| RenderOrigin {
                    root: root.into(),
                    renderer: renderer.into(),
                    places: [].into(),
                });
                places.count(origin.as_ref());
            }
            assert_eq!(places.to_string(), expected);
        };
        let prod = Some(("prod", "kustomize"));
        check(&[], "0 files");
        check(&[None], "1 file");
        check(&[prod, prod], "1 root");
        check(&[prod, prod, Some(("web", "web 1.2.0")), None, None], "2 files and 2 roots");
        // A plain file into which variables were put.
        check(&[Some(("", ""))], "1 file");
    }
}
