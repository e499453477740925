//! Which folders of a source are rendered, and which files are taken as they are.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::object::Diagnostic;
use crate::source::{Snapshot, SourceError};

use super::helm;
use super::kustomize::{FILE_NAMES, KustomizationKind, ParsedFiles};
use super::paths;
use super::tree::{self, FileTree};

/// The name of the file that makes a folder a chart.
const CHART: &str = "Chart.yaml";

/// `spec.render`: how a source becomes objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RenderMode {
    /// A folder with a kustomization is one root, one with a chart another; all other folders are
    /// read as they are, and their subfolders likewise.
    #[default]
    Auto,
    /// Nothing is rendered.
    None,
    /// The source's folder is one kustomize root.
    Kustomize,
    /// The source's folder is one chart.
    Helm,
}

impl RenderMode {
    /// All modes, as the documents list them.
    pub(crate) const ALL: [Self; 4] = [Self::Auto, Self::None, Self::Kustomize, Self::Helm];

    /// Returns the word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Kustomize => "kustomize",
            Self::Helm => "helm",
        }
    }
}

impl fmt::Display for RenderMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for RenderMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|mode| mode.word() == text);
        known.ok_or_else(|| format!("{text}: must be auto, none, kustomize or helm"))
    }
}

/// The program that a root is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RootForm {
    /// A folder with a kustomization.
    Kustomize,
    /// A chart.
    Helm,
}

/// A folder that is rendered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RenderRoot {
    /// Its path in the revision, not in the source's folder; empty for the whole.
    pub folder: Arc<str>,
    /// What it is.
    pub form: RootForm,
}

/// What a source consists of.
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
/// A folder that only others include, because its kustomization is a component or its chart a
/// library, is no root and none of its files are taken. Each folder with a kustomization is a root
/// also where another root reads it; `.rhumbignore` says what is none.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(crate) fn find_roots(
    mode: RenderMode,
    start: &str,
    snapshot: Snapshot,
    files: &impl FileTree,
    parsed: &mut ParsedFiles,
) -> Result<RootListing, SourceError> {
    match mode {
        RenderMode::None => Ok(RootListing { roots: Vec::new(), plain: snapshot }),
        RenderMode::Kustomize => single(start, snapshot, RootForm::Kustomize, files),
        RenderMode::Helm => single(start, snapshot, RootForm::Helm, files),
        RenderMode::Auto => automatic(start, snapshot, files, parsed),
    }
}

fn single(
    start: &str,
    snapshot: Snapshot,
    form: RootForm,
    files: &impl FileTree,
) -> Result<RootListing, SourceError> {
    let names: &[&str] = match form {
        RootForm::Kustomize => &FILE_NAMES,
        RootForm::Helm => &[CHART],
    };
    let mut is_there = false;
    for name in names {
        is_there |= files.entry(&paths::inside(start, name))?.is_some();
    }
    let mut listing = RootListing { roots: Vec::new(), plain: snapshot };
    listing.plain.files.clear();
    listing.plain.refused.clear();
    if is_there {
        listing.roots.push(RenderRoot { folder: start.into(), form });
        return Ok(listing);
    }
    let (word, name) = match form {
        RootForm::Kustomize => (RenderMode::Kustomize, "kustomization.yaml"),
        RootForm::Helm => (RenderMode::Helm, CHART),
    };
    let place = if start.is_empty() { "." } else { start };
    let message = format!("`render: {word}` is asked for, and this folder has no {name}");
    let hint = "name the folder that has one as `path`, or leave `render` out";
    listing.plain.refused.push(Diagnostic::file_error(place, "no-root", message).hint(hint));
    Ok(listing)
}

fn automatic(
    start: &str,
    snapshot: Snapshot,
    files: &impl FileTree,
    parsed: &mut ParsedFiles,
) -> Result<RootListing, SourceError> {
    let mut listing = RootListing { roots: Vec::new(), plain: snapshot };
    for refused in std::mem::take(&mut listing.plain.refused) {
        let folder = paths::inside(start, paths::folder_of(&refused.origin.file));
        let folder = folder.trim_end_matches('/');
        let form = match refused.code {
            "kustomization" if is_component(folder, files, parsed)? => continue,
            "kustomization" => RootForm::Kustomize,
            "helm-chart" if helm::is_library(files, folder)? => continue,
            "helm-chart" => RootForm::Helm,
            _ => {
                listing.plain.refused.push(refused);
                continue;
            }
        };
        listing.roots.push(RenderRoot { folder: folder.into(), form });
    }
    listing.roots.sort_unstable();
    listing.roots.dedup();
    Ok(listing)
}

/// Returns whether the kustomization of a folder says that only others include it. What cannot be
/// read is a root, which then says why it does not render.
fn is_component(folder: &str, files: &impl FileTree, parsed: &mut ParsedFiles) -> Result<bool, SourceError> {
    for name in FILE_NAMES {
        let Ok(found) = tree::resolve(files, folder, name, |_| ())? else { continue };
        let Some(file) = found.file else { continue };
        let read = match parsed.kustomization(file.blob) {
            Some(read) => read,
            None => parsed.add_kustomization(file.blob, &files.read(file.blob)?),
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

    fn refused(file: &str, code: &'static str) -> Diagnostic {
        Diagnostic::file_error(file, code, "refused")
    }

    fn snapshot(refused: Vec<Diagnostic>) -> Snapshot {
        Snapshot { revision: Revision::new("0"), files: Vec::new(), refused }
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
                refused("apps/web/kustomization.yaml", "kustomization"),
                refused("chart/Chart.yaml", "helm-chart"),
                refused("link.yaml", "symlink"),
                refused("parts/kustomization.yml", "kustomization"),
                refused("broken/Kustomization", "kustomization"),
            ]
        };
        let find = |mode| {
            let parsed = &mut ParsedFiles::default();
            find_roots(mode, "clusters", snapshot(refusals()), &tree, parsed).unwrap()
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
        assert_eq!(listing.plain.refused, [refused("link.yaml", "symlink")]);
        let listing = find(RenderMode::None);
        assert_eq!((folders(&listing), &listing.plain.refused), (Vec::new(), &refusals()));
    }

    #[test]
    fn a_source_that_is_one_root_has_nothing_else() {
        let tree = MemoryTree::new().file("kustomization.yml", "").file("chart/Chart.yaml", "");
        let find = |mode, start| {
            let refused = vec![refused("a/kustomization.yaml", "kustomization")];
            find_roots(mode, start, snapshot(refused), &tree, &mut ParsedFiles::default()).unwrap()
        };
        let listing = find(RenderMode::Kustomize, "");
        assert_eq!((folders(&listing), listing.plain.is_complete()), (vec![("", RootForm::Kustomize)], true));
        let listing = find(RenderMode::Helm, "chart");
        assert_eq!((folders(&listing), listing.plain.is_complete()), (vec![("chart", RootForm::Helm)], true));
        for (mode, start) in [(RenderMode::Kustomize, "chart"), (RenderMode::Helm, "")] {
            let listing = find(mode, start);
            assert_eq!(listing.plain.refused.iter().map(|found| found.code).collect::<Vec<_>>(), ["no-root"]);
            assert!(listing.roots.is_empty());
        }
    }

    #[test]
    fn a_mode_is_read_as_it_is_written() {
        for mode in RenderMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("Auto".parse::<RenderMode>().is_err());
    }
}
