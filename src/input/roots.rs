//! The folders of a source that are rendered, and the files that are taken as they are.

use std::sync::Arc;

use crate::config::RenderMode;
use crate::object::Diagnostic;
use crate::source::{Snapshot, SourceError};

use super::helm::{self, CHART_FILE};
use super::kustomize::{FILE_NAMES, KustomizationKind, ParsedFiles};
use super::paths;
use super::tree::{self, FileTree};

/// The program that a root is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RootForm {
    /// A folder with a kustomization.
    Kustomize,
    /// A chart.
    Helm,
}

impl RootForm {
    /// Returns the usual name of the file that makes a folder one.
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::Kustomize => "kustomization.yaml",
            Self::Helm => CHART_FILE,
        }
    }
}

/// A folder that is rendered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RenderRoot {
    /// Its path in the revision, not in the source's folder; empty for the revision's own.
    pub folder: Arc<str>,
    /// The kind.
    pub form: RootForm,
}

/// The parts of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootListing {
    /// The folders that are rendered, ordered by path.
    pub roots: Vec<RenderRoot>,
    /// The files that are taken as they are, and what is refused.
    pub plain: Snapshot,
}

/// Divides a source into roots and plain files. The snapshot is that of its folder at `start`, and
/// has refused every folder that would have to be rendered: these become roots.
///
/// A folder that only others include is no root, and none of its files are taken. Its
/// kustomization is a component, or its chart a library. Each folder with a kustomization is a root
/// also where another root reads it; `.rhumbignore` says what is none.
///
/// A folder that is a known root is not looked at.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(crate) fn find_roots(
    mode: RenderMode,
    start: &str,
    snapshot: Snapshot,
    files: &impl FileTree,
    parsed: &mut ParsedFiles,
    is_known_root: impl Fn(&str) -> bool,
) -> Result<RootListing, SourceError> {
    match mode {
        RenderMode::None => Ok(RootListing { roots: Vec::new(), plain: snapshot }),
        RenderMode::Kustomize => Ok(single_root(start, snapshot, RootForm::Kustomize)),
        RenderMode::Helm => Ok(single_root(start, snapshot, RootForm::Helm)),
        RenderMode::Auto => find_automatic_roots(start, snapshot, files, parsed, is_known_root),
    }
}

/// Returns whether something of a snapshot is rendered.
pub(super) fn has_roots(mode: RenderMode, snapshot: &Snapshot) -> bool {
    match mode {
        RenderMode::None => false,
        RenderMode::Kustomize | RenderMode::Helm => true,
        RenderMode::Auto => snapshot.refused.iter().any(|refused| form_of(refused).is_some()),
    }
}

/// Returns what is left of a snapshot without its roots.
pub(super) fn plain_part(mode: RenderMode, mut snapshot: Snapshot) -> Snapshot {
    match mode {
        RenderMode::None => {}
        RenderMode::Kustomize | RenderMode::Helm => {
            snapshot.files.clear();
            snapshot.refused.clear();
        }
        RenderMode::Auto => snapshot.refused.retain(|refused| form_of(refused).is_none()),
    }
    snapshot
}

/// Returns the form of the root that a refused folder is.
fn form_of(refused: &Diagnostic) -> Option<RootForm> {
    match refused.code {
        "kustomization" => Some(RootForm::Kustomize),
        "helm-chart" => Some(RootForm::Helm),
        _ => None,
    }
}

/// Takes a whole folder as one root. Its render finds out if it is none.
fn single_root(start: &str, mut snapshot: Snapshot, form: RootForm) -> RootListing {
    snapshot.files.clear();
    snapshot.refused.clear();
    RootListing { roots: vec![RenderRoot { folder: start.into(), form }], plain: snapshot }
}

fn find_automatic_roots(
    start: &str,
    snapshot: Snapshot,
    files: &impl FileTree,
    parsed: &mut ParsedFiles,
    is_known_root: impl Fn(&str) -> bool,
) -> Result<RootListing, SourceError> {
    let mut listing = RootListing { roots: Vec::new(), plain: snapshot };
    for refused in std::mem::take(&mut listing.plain.refused) {
        let folder = paths::append(start, paths::folder_of(&refused.origin.file));
        let folder = folder.trim_end_matches('/');
        let Some(form) = form_of(&refused) else {
            listing.plain.refused.push(refused);
            continue;
        };
        let is_part = match form {
            _ if is_known_root(folder) => false,
            RootForm::Kustomize => is_component(folder, files, parsed)?,
            RootForm::Helm => helm::is_library(files, folder)?,
        };
        if is_part {
            continue;
        }
        listing.roots.push(RenderRoot { folder: folder.into(), form });
    }
    listing.roots.sort_unstable();
    listing.roots.dedup();
    Ok(listing)
}

/// Returns whether the kustomization of a folder says that only others include it. A folder
/// that cannot be read is a root, which then says why it does not render.
fn is_component(folder: &str, files: &impl FileTree, parsed: &mut ParsedFiles) -> Result<bool, SourceError> {
    for name in FILE_NAMES {
        let Ok(found) = tree::resolve(files, folder, name, |_| ())? else { continue };
        let Some(file) = found.file else { continue };
        let read = match parsed.kustomization(file.blob) {
            Some(read) => read,
            None => parsed.add_kustomization(&found.path, file.blob, &files.read(file.blob)?),
        };
        return Ok(read.kind == KustomizationKind::Component);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::object::Revision;

    fn refused_root(file: &str, code: &'static str) -> Diagnostic {
        Diagnostic::file_error(file, code, "refused")
    }

    fn snapshot(refused: Vec<Diagnostic>) -> Snapshot {
        Snapshot::of_files(Revision::new("0"), Vec::new(), refused)
    }

    fn folders(listing: &RootListing) -> Vec<(&str, RootForm)> {
        listing.roots.iter().map(|root| (&*root.folder, root.form)).collect()
    }

    #[test]
    fn folders_that_were_refused_become_roots() {
        let tree = MemoryTree::new()
            .file("clusters/apps/web/kustomization.yaml", "resources: []")
            .file("clusters/parts/kustomization.yml", "kind: Component")
            .file("clusters/broken/Kustomization", "a: [");
        let refusals = || {
            vec![
                refused_root("apps/web/kustomization.yaml", "kustomization"),
                refused_root("chart/Chart.yaml", "helm-chart"),
                refused_root("link.yaml", "symlink"),
                refused_root("parts/kustomization.yml", "kustomization"),
                refused_root("broken/Kustomization", "kustomization"),
            ]
        };
        let find = |mode| {
            let parsed = &mut ParsedFiles::default();
            find_roots(mode, "clusters", snapshot(refusals()), &tree, parsed, |_| false).unwrap()
        };
        let listing = find(RenderMode::Auto);
        assert_eq!(
            folders(&listing),
            [
                ("clusters/apps/web", RootForm::Kustomize),
                ("clusters/broken", RootForm::Kustomize),
                ("clusters/chart", RootForm::Helm),
            ]
        );
        assert_eq!(listing.plain.refused, [refused_root("link.yaml", "symlink")]);
        let listing = find(RenderMode::None);
        assert_eq!((folders(&listing), &listing.plain.refused), (Vec::new(), &refusals()));
    }

    #[test]
    fn a_source_that_is_one_root_has_nothing_else() {
        let tree = MemoryTree::new().file("kustomization.yml", "").file("chart/Chart.yaml", "");
        let find = |mode, start| {
            let refused = vec![refused_root("a/kustomization.yaml", "kustomization")];
            find_roots(mode, start, snapshot(refused), &tree, &mut ParsedFiles::default(), |_| false).unwrap()
        };
        let listing = find(RenderMode::Kustomize, "");
        assert_eq!((folders(&listing), listing.plain.is_complete()), (vec![("", RootForm::Kustomize)], true));
        let listing = find(RenderMode::Helm, "chart");
        assert_eq!((folders(&listing), listing.plain.is_complete()), (vec![("chart", RootForm::Helm)], true));
    }
}
