//! The lines that a rendered object comes from: its own, and those of the patches for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::input::origin::{ObjectOrigin, OriginAnnotation};
use crate::input::paths;
use crate::input::tree::FileTree;
use crate::manifest::TextPosition;
use crate::object::{Gvk, ManifestOrigin, text_at};
use crate::source::{BlobId, SourceError};

use super::closure::{Closure, ClosureFolder};
use super::file::{PatchUse, ReferenceRole};
use super::inflated::InflatedChart;
use super::object_names::ObjectNames;
use super::patch::NamedObject;

/// The maximum number of places named of one object: more help nobody.
const MAX_ORIGIN_LINES: usize = 20;

/// The bytes of their paths beyond which no more are named: a path may have thousands, and is kept
/// once for each object.
const MAX_ORIGIN_PATH_BYTES: usize = 4096;

/// Returns the name of the program, one text for all objects.
fn program_name() -> Arc<str> {
    static RENDERER_NAME: LazyLock<Arc<str>> = LazyLock::new(|| "kustomize".into());
    Arc::clone(&RENDERER_NAME)
}

/// The finder of where the objects of one root come from. Each file is read once.
pub struct OriginFinder<'a, T> {
    files: &'a T,
    closure: &'a Closure,
    named: HashMap<BlobId, Arc<[NamedObject]>>,
    /// The names that are known from other roots.
    names: Option<&'a ObjectNames>,
    /// The number of each folder by its path in the closure.
    folders: HashMap<&'a str, usize>,
    /// The folders that name a file or folder as a part, by its path in the closure.
    includers: HashMap<String, Vec<usize>>,
    /// The folders that may patch what a file holds, by the file's path in the closure.
    patching: HashMap<String, Arc<[usize]>>,
    /// The charts by the path of the file in the tree that holds their objects.
    charts: HashMap<String, &'a InflatedChart>,
}

impl<T> std::fmt::Debug for OriginFinder<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OriginFinder").field("root", &self.closure.root).finish_non_exhaustive()
    }
}

impl<'a, T: FileTree> OriginFinder<'a, T> {
    /// Returns a finder for the objects of a closure.
    pub fn new(closure: &'a Closure, files: &'a T) -> Self {
        let mut folders = HashMap::new();
        let mut includers: HashMap<String, Vec<usize>> = HashMap::new();
        for (folder, index) in closure.folders.iter().zip(0..) {
            folders.insert(&*folder.path, index);
            let parts = folder.kustomization.references.iter().filter(|reference| {
                matches!(reference.role, ReferenceRole::Resource | ReferenceRole::Component)
            });
            for path in parts.filter_map(|part| paths::join(&folder.path, &part.target)) {
                includers.entry(path).or_default().push(index);
            }
        }
        let (named, patching, charts) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { files, closure, named, names: None, folders, includers, patching, charts }
    }

    /// Returns one that parses no content whose names are known, and adds those of others.
    #[must_use]
    pub fn with_names(self, names: &'a ObjectNames) -> Self {
        Self { names: Some(names), ..self }
    }

    /// Returns one that also knows charts, by the paths of the files that hold their objects.
    #[must_use]
    pub fn with_charts(self, charts: impl IntoIterator<Item = (String, &'a InflatedChart)>) -> Self {
        Self { charts: charts.into_iter().collect(), ..self }
    }

    /// Returns the path of the file that holds the objects of a chart, where an object is one of
    /// them. The word of kustomize shows that, or without one its kind and name.
    pub fn chart_path(&self, annotation: Option<&OriginAnnotation>, object: &Value) -> Option<&str> {
        let Some(annotation) = annotation else {
            let object = named_object(object);
            let is_made_by = |chart: &InflatedChart| {
                chart.object(&object).is_some_and(|made| made.name.name == object.name)
            };
            let found = self.charts.iter().filter(|(_, chart)| is_made_by(chart)).map(|(path, _)| path);
            return found.min().map(String::as_str);
        };
        let path = paths::join(&self.closure.root, annotation.path.as_ref()?)?;
        self.charts.get_key_value(path.as_str()).map(|(path, _)| path.as_str())
    }

    /// Returns where an object comes from, by the word of kustomize where there is one. A word that
    /// names no file of the closure is not believed.
    ///
    /// # Errors
    /// Fails where a file of the closure cannot be read.
    pub fn find(
        &mut self,
        annotation: Option<&OriginAnnotation>,
        object: &Value,
    ) -> Result<ObjectOrigin, SourceError> {
        let mut origin =
            ObjectOrigin { root: self.closure.root.clone(), renderer: program_name(), places: Vec::new() };
        let named =
            annotation.and_then(|annotation| annotation.path.as_ref().or(annotation.configured_in.as_ref()));
        let Some(path) = named.and_then(|path| paths::join(&self.closure.root, path)) else {
            return Ok(origin);
        };
        if let Some(chart) = self.charts.get(path.as_str()).copied() {
            return self.chart_origin(chart, &named_object(object), origin);
        }
        let Some(file) = self.closure.files.get(path.as_str()) else { return Ok(origin) };
        let is_generated = annotation.is_some_and(|annotation| annotation.path.is_none());
        let object = named_object(object);
        let (position, first_name) = match self.folder_of_file(&path).filter(|_| is_generated) {
            Some(folder) => generated_position(folder, &object),
            None => self.own_position(file.file.blob, &object)?,
        };
        origin.places.push(at(&file.source, position));
        self.add_all_patches(&path, &object, &first_name, &mut origin.places)?;
        Ok(origin)
    }

    /// Returns where an object of a chart comes from.
    fn chart_origin(
        &mut self,
        chart: &InflatedChart,
        object: &NamedObject,
        mut origin: ObjectOrigin,
    ) -> Result<ObjectOrigin, SourceError> {
        origin.renderer = chart.renderer.clone();
        let made = chart.object(object);
        origin.places.extend(made.map(|made| made.origin.clone()));
        let first_name = made.map(|made| made.name.name.clone()).unwrap_or_default();
        self.add_all_patches(&chart.file, object, &first_name, &mut origin.places)?;
        Ok(origin)
    }

    fn add_all_patches(
        &mut self,
        path: &str,
        object: &NamedObject,
        first_name: &str,
        places: &mut Vec<ManifestOrigin>,
    ) -> Result<(), SourceError> {
        for index in self.patching_folders(path).iter() {
            let Some(folder) = self.closure.folders.get(*index) else { continue };
            self.add_patches(folder, object, first_name, places)?;
        }
        Ok(())
    }

    pub(super) fn closure(&self) -> &'a Closure {
        self.closure
    }

    /// Returns the folder at a path of the closure.
    pub(super) fn folder(&self, path: &str) -> Option<&'a ClosureFolder> {
        self.closure.folders.get(*self.folders.get(path)?)
    }

    /// Returns the folder that has this file as its kustomization.
    fn folder_of_file(&self, path: &str) -> Option<&'a ClosureFolder> {
        self.closure.folders.iter().find(|folder| *folder.file == *path)
    }

    /// Returns the place of an object in its file, and the name that it has there. A name may have
    /// got a beginning and an end since.
    fn own_position(
        &mut self,
        blob: BlobId,
        object: &NamedObject,
    ) -> Result<(Option<TextPosition>, String), SourceError> {
        let named = self.read_named(blob)?;
        let same_kind = || named.iter().filter(|one| one.kind == object.kind && one.group == object.group);
        let longest =
            same_kind().filter(|one| object.name.contains(&one.name)).max_by_key(|one| one.name.len());
        let found =
            same_kind().find(|one| one.name == object.name).or(longest).or_else(|| same_kind().next());
        let found = found.or_else(|| named.first());
        Ok((found.map(|one| one.position), found.map(|one| one.name.clone()).unwrap_or_default()))
    }

    pub(super) fn read_named(&mut self, blob: BlobId) -> Result<Arc<[NamedObject]>, SourceError> {
        if let Some(named) = self.named.get(&blob) {
            return Ok(named.clone());
        }
        let named = match self.names.and_then(|names| names.get(blob)) {
            Some(named) => named,
            None => self.parse_names(blob)?,
        };
        self.named.insert(blob, named.clone());
        Ok(named)
    }

    fn parse_names(&self, blob: BlobId) -> Result<Arc<[NamedObject]>, SourceError> {
        let named: Arc<[NamedObject]> = NamedObject::all(&self.files.read(blob)?).into();
        if let Some(names) = self.names {
            names.add(blob, named.clone());
        }
        Ok(named)
    }

    /// Returns the folders whose patches see what a file holds: those that list it, those that
    /// include them, and the components of these. The innermost come first.
    fn patching_folders(&mut self, path: &str) -> Arc<[usize]> {
        if let Some(known) = self.patching.get(path) {
            return known.clone();
        }
        let mut pending: VecDeque<usize> = self.includers.get(path).into_iter().flatten().copied().collect();
        pending.extend(self.closure.folders.iter().position(|folder| *folder.file == *path));
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        while let Some(index) = pending.pop_front() {
            if !seen.insert(index) {
                continue;
            }
            let Some(folder) = self.closure.folders.get(index) else { continue };
            // A component patches before the folder that includes it.
            let components: Vec<usize> =
                self.components(folder).filter(|index| seen.insert(*index)).collect();
            found.extend(components);
            found.push(index);
            pending.extend(self.includers.get(&*folder.path).into_iter().flatten());
        }
        let found: Arc<[usize]> = found.into();
        self.patching.insert(path.to_owned(), found.clone());
        found
    }

    fn components(&self, folder: &ClosureFolder) -> impl Iterator<Item = usize> {
        let components = folder.kustomization.references.iter();
        components.filter(|reference| reference.role == ReferenceRole::Component).filter_map(|reference| {
            let path = paths::join(&folder.path, &reference.target)?;
            self.folders.get(path.as_str()).copied()
        })
    }

    fn add_patches(
        &mut self,
        folder: &ClosureFolder,
        object: &NamedObject,
        first_name: &str,
        places: &mut Vec<ManifestOrigin>,
    ) -> Result<(), SourceError> {
        for patch in &folder.kustomization.patches {
            if places.len() >= MAX_ORIGIN_LINES {
                return Ok(());
            }
            if let Some(position) = self.patch_position(folder, patch, object, first_name)?
                && !places.contains(&position)
                && places.iter().map(|place| place.file.len()).sum::<usize>() <= MAX_ORIGIN_PATH_BYTES
            {
                places.push(position);
            }
        }
        Ok(())
    }

    /// Returns the place of a patch, where it is certain that it is for the object.
    fn patch_position(
        &mut self,
        folder: &ClosureFolder,
        patch: &PatchUse,
        object: &NamedObject,
        first_name: &str,
    ) -> Result<Option<ManifestOrigin>, SourceError> {
        let file = match &patch.file {
            Some(file) => paths::join(&folder.path, file),
            None => Some(folder.file.to_string()),
        };
        let Some(file) = file.and_then(|file| self.closure.files.get(file.as_str())) else { return Ok(None) };
        let named =
            if patch.file.is_some() { self.read_named(file.file.blob)? } else { patch.names.clone().into() };
        let is_for = |one: &&NamedObject| {
            one.kind == object.kind
                && one.group == object.group
                && (one.name == object.name || one.name == first_name)
        };
        let found = match &patch.selector {
            Some(selector) if selector.selects(object, first_name) => named.first(),
            Some(_) => return Ok(None),
            None => match named.iter().find(is_for) {
                Some(found) => Some(found),
                None => return Ok(None),
            },
        };
        let position =
            if patch.file.is_some() { found.map(|one| one.position) } else { Some(patch.position) };
        Ok(Some(at(&file.source, position)))
    }
}

/// Returns where a generated object is asked for, and by which name. The name of the output has a
/// hash at its end.
fn generated_position(folder: &ClosureFolder, object: &NamedObject) -> (Option<TextPosition>, String) {
    let generated = folder.kustomization.generated.iter();
    let found = generated.filter(|(name, _)| object.name.contains(name)).max_by_key(|(name, _)| name.len());
    (found.map(|(_, position)| *position), found.map(|(name, _)| name.clone()).unwrap_or_default())
}

fn at(file: &Arc<str>, position: Option<TextPosition>) -> ManifestOrigin {
    let TextPosition { line, column } = position.unwrap_or(TextPosition { line: 0, column: 0 });
    ManifestOrigin::new(file.clone(), line, column)
}

pub(super) fn named_object(object: &Value) -> NamedObject {
    let gvk = Gvk::from_api_version(text_at(object, &["apiVersion"]), text_at(object, &["kind"]));
    NamedObject {
        group: gvk.group.to_string(),
        version: gvk.version.to_string(),
        kind: gvk.kind.to_string(),
        name: text_at(object, &["metadata", "name"]).to_owned(),
        namespace: text_at(object, &["metadata", "namespace"]).to_owned(),
        position: TextPosition { line: 0, column: 0 },
    }
}
