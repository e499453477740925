//! The walk from a root over all that its kustomizations name, by their text alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::input::paths;
use crate::input::tree::{self, FileTree, PathFailure, ResolvedPath};
use crate::object::Diagnostic;
use crate::source::{BlobId, SourceError, TreeFile};

use super::closure::{Closure, ClosureFile, ClosureFolder, ClosureLimits};
use super::cycles::{self, FolderEdge};
use super::file::{FILE_NAMES, FileReference, Kustomization, KustomizationKind, ReferenceRole};
use super::parsed::ParsedFiles;
use super::{refusal, remote};

/// Diagnostics of one root that are kept: more would only repeat what is wrong.
const MAX_DIAGNOSTICS: usize = 100;

/// Finds the closure of a root from the text of its kustomizations.
///
/// # Errors
/// Fails where the revision cannot be read. A fault in it is a diagnostic of the closure.
pub fn find_closure<T: FileTree>(
    files: &T,
    root: &str,
    limits: ClosureLimits,
    parsed: &mut ParsedFiles,
) -> Result<Closure, SourceError> {
    let root = Arc::<str>::from(root);
    let closure = Closure { root: root.clone(), ..Closure::default() };
    let mut walk = ClosureWalk {
        tree: files,
        limits,
        parsed,
        closure,
        files: BTreeMap::new(),
        indexes: HashMap::new(),
        sources: Vec::new(),
        edges: Vec::new(),
        queue: vec![FolderVisit { index: 0, by: None, role: ReferenceRole::Resource }],
        references: 0,
        bytes: 0,
        is_full: false,
    };
    walk.indexes.insert(root.clone(), 0);
    walk.sources.push((root.clone(), root));
    walk.run()?;
    let ClosureWalk { mut closure, files, .. } = walk;
    closure.files = files.into_iter().collect();
    closure.folders.shrink_to_fit();
    Ok(closure)
}

/// A folder that is still to be read, and what named it.
struct FolderVisit {
    index: usize,
    by: Option<(Arc<str>, FileReference)>,
    role: ReferenceRole,
}

/// A reference with the folder and file that it is in.
struct ReferenceSite<'a> {
    /// The index of the folder.
    folder: usize,
    /// The path of the folder in the closure, and in the revision.
    path: &'a str,
    source: &'a str,
    /// The file in the revision.
    file: &'a Arc<str>,
}

struct ClosureWalk<'a, T> {
    tree: &'a T,
    limits: ClosureLimits,
    parsed: &'a mut ParsedFiles,
    closure: Closure,
    /// The files that were found so far, by their path in a tree without links.
    files: BTreeMap<Arc<str>, ClosureFile>,
    /// The number of each folder by its path in the closure.
    indexes: HashMap<Arc<str>, usize>,
    /// The path of each folder in the closure, and in the revision.
    sources: Vec<(Arc<str>, Arc<str>)>,
    edges: Vec<FolderEdge>,
    queue: Vec<FolderVisit>,
    references: usize,
    bytes: u64,
    is_full: bool,
}

impl<T: FileTree> ClosureWalk<'_, T> {
    fn run(&mut self) -> Result<(), SourceError> {
        let mut next = 0;
        while let Some(visit) = self.queue.get_mut(next) {
            let visit = FolderVisit { by: visit.by.take(), ..*visit };
            self.folder(&visit)?;
            if self.is_full {
                return Ok(());
            }
            next += 1;
        }
        let edges = std::mem::take(&mut self.edges);
        for refused in cycles::refusals(self.sources.len(), &edges, self.limits.builds) {
            match refused {
                cycles::CycleRefusal::Cycle(edge) => {
                    self.refuse(refusal::cycle(&edge.file, &edge.reference));
                }
                cycles::CycleRefusal::TooManyBuilds => {
                    self.refuse_size(&format!("{} builds of its bases", self.limits.builds));
                }
            }
        }
        Ok(())
    }

    fn refuse(&mut self, diagnostic: Diagnostic) {
        if self.closure.diagnostics.len() < MAX_DIAGNOSTICS {
            self.closure.diagnostics.push(diagnostic);
        }
    }

    fn refuse_size(&mut self, subject: &str) {
        self.is_full = true;
        let root = self.closure.root.clone();
        // It is said even where the list is full.
        self.closure.diagnostics.push(refusal::too_much(&root, subject));
    }

    /// Follows a reference and notes all that was looked at.
    fn resolve(
        &mut self,
        folder: &str,
        reference: &str,
    ) -> Result<Result<ResolvedPath, PathFailure>, SourceError> {
        let watched = &mut self.closure.watched;
        tree::resolve(self.tree, folder, reference, |path| {
            if !watched.contains(path) {
                watched.insert(path.into());
            }
        })
    }

    fn folder(&mut self, visit: &FolderVisit) -> Result<(), SourceError> {
        let Some((path, source)) = self.sources.get(visit.index).cloned() else { return Ok(()) };
        let by = visit.by.as_ref().map(|(file, reference)| (file, reference));
        let Some((file, found)) = self.kustomization_file(by, &source)? else { return Ok(()) };
        let Some(kustomization) = self.read_kustomization(&file, found.blob)? else { return Ok(()) };
        let name = file_name(&file, &path);
        if !self.add(&name, &file.found, found) {
            // Another file has its place, which was reached over a link.
            if let Some((naming_file, reference)) = by
                && !self.is_full
            {
                self.refuse(refusal::place_taken(naming_file, reference, &name));
            }
            return Ok(());
        }
        let wanted = match visit.role {
            ReferenceRole::Component => KustomizationKind::Component,
            _ => KustomizationKind::Kustomization,
        };
        if kustomization.kind != wanted {
            self.refuse(refusal::wrong_kind(by, &file.found, kustomization.kind));
        }
        self.closure.folders.push(ClosureFolder {
            path: path.clone(),
            file: shared_path(&name, &file.found),
            kustomization: kustomization.clone(),
        });
        for (feature, position) in &kustomization.unsupported {
            self.refuse(refusal::unsupported(&file.found, feature, *position));
        }
        for (message, position) in &kustomization.charts.faults {
            self.refuse(refusal::chart_field(&file.found, message, *position));
        }
        let site = ReferenceSite { folder: visit.index, path: &path, source: &source, file: &file.found };
        for reference in &kustomization.references {
            self.follow(&site, reference)?;
            if self.is_full {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks under each name at which a kustomization may be; exactly one must be there.
    fn kustomization_file(
        &mut self,
        by: Option<(&Arc<str>, &FileReference)>,
        folder: &str,
    ) -> Result<Option<(KustomizationFile, TreeFile)>, SourceError> {
        let mut found = Vec::new();
        for name in FILE_NAMES {
            match self.resolve(folder, name)? {
                Ok(ResolvedPath { path, file: Some(file) }) => {
                    let found_at = Arc::from(path);
                    found.push((KustomizationFile { name, found: found_at }, file));
                }
                // It may become a file, which would be a kustomization.
                Ok(ResolvedPath { path, file: None }) => {
                    self.closure.watched.insert(path.into());
                }
                Err(PathFailure::Missing(_)) => {}
                Err(failure) => {
                    let inner_path = paths::append(folder, name);
                    self.refuse(refusal::lost_kustomization(&inner_path, &failure));
                    return Ok(None);
                }
            }
        }
        if let [_] = found.as_slice() {
            return Ok(found.pop());
        }
        let names: Vec<String> = found.iter().map(|(file, _)| file.found.to_string()).collect();
        self.refuse(refusal::kustomization_count(by, folder, &names));
        Ok(None)
    }

    fn read_kustomization(
        &mut self,
        file: &KustomizationFile,
        blob: BlobId,
    ) -> Result<Option<Arc<Kustomization>>, SourceError> {
        let read = self.parsed_kustomization(&file.found, blob)?;
        let faults: Vec<_> = read.faults(&file.found).collect();
        let is_read = faults.is_empty();
        for fault in faults {
            self.refuse(fault);
        }
        Ok(is_read.then_some(read))
    }

    /// Returns a kustomization, which is parsed once.
    fn parsed_kustomization(&mut self, path: &str, blob: BlobId) -> Result<Arc<Kustomization>, SourceError> {
        Ok(match self.parsed.kustomization(blob) {
            Some(read) => read,
            None => self.parsed.add_kustomization(path, blob, &self.tree.read(blob)?),
        })
    }

    /// Counts one more reference, and returns whether so many may be followed.
    fn count_reference(&mut self) -> bool {
        self.references += 1;
        let fits = self.references <= self.limits.references;
        if !fits {
            self.refuse_size(&format!("{} references", self.limits.references));
        }
        fits
    }

    fn follow(&mut self, site: &ReferenceSite<'_>, reference: &FileReference) -> Result<(), SourceError> {
        if !self.count_reference() {
            return Ok(());
        }
        let target = reference.target.as_str();
        let is_component = reference.role == ReferenceRole::Component;
        if (!is_component && remote::is_http(target)) || (is_component && remote::is_repository(target)) {
            self.refuse(refusal::remote(site.file, reference));
            return Ok(());
        }
        let found = match self.resolve(site.source, target)? {
            // An address is tried once nothing is there, and a folder of that name never counts.
            Err(PathFailure::Missing(_) | PathFailure::OutOfTree(_))
            | Ok(ResolvedPath { file: None, .. })
                if can_be_folder(reference.role) && remote::is_repository(target) =>
            {
                self.refuse(refusal::remote(site.file, reference));
                return Ok(());
            }
            Err(failure) => {
                self.refuse(refusal::lost(site.file, reference, &failure));
                return Ok(());
            }
            Ok(found) => found,
        };
        let Some(path) = paths::join(site.path, target) else {
            self.refuse(refusal::link_conflict(site.file, reference, None));
            return Ok(());
        };
        match (found.file, reference.role) {
            (Some(_), ReferenceRole::Component)
            | (None, ReferenceRole::Patch | ReferenceRole::Variables | ReferenceRole::File) => {
                self.refuse(refusal::wrong_form(site.file, reference));
                Ok(())
            }
            (Some(file), role) => {
                let source = Arc::from(found.path);
                self.note_use(&path, role);
                if !self.add(&path, &source, file) {
                    if !self.is_full {
                        self.refuse(refusal::link_conflict(site.file, reference, Some(&path)));
                    }
                    return Ok(());
                }
                if role == ReferenceRole::Plugin { self.plugin(site, &source, file.blob) } else { Ok(()) }
            }
            (None, role) => {
                self.enter(site, reference, &path, &found.path, role);
                if role != ReferenceRole::Plugin {
                    return Ok(());
                }
                self.plugin_folders(site, found.path)
            }
        }
    }

    /// Reads the plugin configurations that are the resources of a folder, and of those that it
    /// includes. Their paths are relative to the folder whose kustomization names this one as a
    /// plugin, and not to their own. The folders are on a stack of its own, however many there are.
    ///
    /// The walk over folders adds the files themselves, and says what is wrong with them.
    fn plugin_folders(&mut self, site: &ReferenceSite<'_>, folder: String) -> Result<(), SourceError> {
        let mut seen = BTreeSet::from([folder.clone()]);
        let mut left = vec![folder];
        while let Some(folder) = left.pop() {
            let mut found = None;
            for name in FILE_NAMES {
                if let Ok(ResolvedPath { path, file: Some(file) }) = self.resolve(&folder, name)? {
                    found = Some((path, file.blob));
                }
            }
            let Some((path, blob)) = found else { continue };
            for reference in &self.parsed_kustomization(&path, blob)?.references {
                if self.is_full || !self.count_reference() {
                    return Ok(());
                }
                if !matches!(reference.role, ReferenceRole::Resource | ReferenceRole::Component) {
                    continue;
                }
                match self.resolve(&folder, &reference.target)? {
                    Ok(ResolvedPath { path, file: Some(file) }) => {
                        self.plugin(site, &Arc::from(path), file.blob)?;
                    }
                    Ok(ResolvedPath { path, file: None }) => {
                        if seen.insert(path.clone()) {
                            left.push(path);
                        }
                    }
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Reads a file of plugin configurations. Their paths are relative to the folder whose
    /// kustomization names the file.
    fn plugin(&mut self, site: &ReferenceSite<'_>, file: &Arc<str>, blob: BlobId) -> Result<(), SourceError> {
        let config = match self.parsed.plugin(blob) {
            Some(config) => config,
            None => self.parsed.add_plugin(file, blob, &self.tree.read(blob)?),
        };
        config.faults(file).for_each(|fault| self.refuse(fault));
        for (feature, position) in &config.unsupported {
            self.refuse(refusal::unsupported(file, feature, *position));
        }
        for reference in &config.references {
            self.follow(&ReferenceSite { file, ..*site }, reference)?;
        }
        Ok(())
    }

    /// Notes whether a file that is about to be added has variables, and is nothing else.
    fn note_use(&mut self, path: &str, role: ReferenceRole) {
        if role != ReferenceRole::Variables {
            self.closure.variables.remove(path);
        } else if !self.files.contains_key(path) {
            self.closure.variables.insert(path.into());
        }
    }

    /// Puts a folder in the queue, once.
    fn enter(
        &mut self,
        site: &ReferenceSite<'_>,
        reference: &FileReference,
        path: &str,
        source: &str,
        role: ReferenceRole,
    ) {
        if paths::holds(source, site.source) {
            return self.refuse(refusal::cycle(site.file, reference));
        }
        let known = self.indexes.get(path).copied();
        let index = known.unwrap_or_else(|| {
            let (index, path) = (self.sources.len(), Arc::<str>::from(path));
            self.indexes.insert(path.clone(), index);
            self.sources.push((path, source.into()));
            let by = Some((site.file.clone(), reference.clone()));
            self.queue.push(FolderVisit { index, by, role });
            index
        });
        if self.sources.get(index).is_some_and(|(_, known)| **known != *source) {
            return self.refuse(refusal::link_conflict(site.file, reference, Some(path)));
        }
        let (file, reference) = (site.file.clone(), reference.clone());
        self.edges.push(FolderEdge { from: site.folder, to: index, file, reference });
    }

    /// Adds a file. False where the path has another content already, or where the root is too
    /// large.
    fn add(&mut self, path: &str, source: &Arc<str>, file: TreeFile) -> bool {
        if let Some(known) = self.files.get(path) {
            return known.file.blob == file.blob;
        }
        self.bytes += file.size;
        if self.files.len() >= self.limits.files {
            self.refuse_size(&format!("{} files", self.limits.files));
            return false;
        }
        if self.bytes > self.limits.bytes {
            self.refuse_size(&format!("{} bytes", self.limits.bytes));
            return false;
        }
        let path = shared_path(path, source);
        self.files.insert(path, ClosureFile { source: source.clone(), file });
        true
    }
}

/// The kustomization of a folder.
struct KustomizationFile {
    /// The name under which it was found.
    name: &'static str,
    /// Its path in the revision, over links.
    found: Arc<str>,
}

/// Returns a path in the copy of its text that is there already, where it is the same. Only links
/// make it another one.
fn shared_path(path: &str, source: &Arc<str>) -> Arc<str> {
    if **source == *path { source.clone() } else { path.into() }
}

/// Returns the path of a folder's kustomization in the closure.
fn file_name(file: &KustomizationFile, folder: &str) -> String {
    paths::append(folder, file.name)
}

const fn can_be_folder(role: ReferenceRole) -> bool {
    matches!(role, ReferenceRole::Resource | ReferenceRole::Component | ReferenceRole::Plugin)
}
