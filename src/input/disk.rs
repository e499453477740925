//! Renders what is on disk, for the commands that run once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::source_renderer::SourceRenderer;
use crate::source::{
    ClusterFacts, DiskSnapshot, DiskTree, RenderedRoot, RenderedSnapshot, RootOutcome, Snapshot,
    SnapshotFile, SnapshotRenderer as _, SourceError, tree_around,
};

/// A folder that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadFolder {
    /// The beginning of the paths of its files in the snapshot; empty where they are seen from it.
    pub prefix: String,
    /// The folder.
    pub folder: PathBuf,
}

impl ReadFolder {
    /// Returns a folder from which the files are seen.
    pub(crate) fn at_start(folder: &Path) -> Self {
        Self { prefix: String::new(), folder: folder.to_owned() }
    }
}

/// Returns a snapshot that was read from folders with its roots rendered. Blocks, and runs
/// programs.
///
/// # Errors
/// Fails where the files cannot be read. Fails with [`SourceError::FactsWanted`], before any
/// program runs, where the roots depend on facts of the cluster that are missing.
pub(crate) fn render_folders(
    disk: &Arc<DiskSnapshot>,
    folders: &[ReadFolder],
    renderer: &SourceRenderer,
    facts: &ClusterFacts,
) -> Result<Arc<DiskSnapshot>, SourceError> {
    if !renderer.has_roots(&disk.snapshot) {
        return Ok(disk.clone());
    }
    let mut all = RenderedSnapshot::of_known_roots(renderer.plain_part(disk.snapshot.clone()), Vec::new());
    let mut trees = Vec::new();
    for folder in folders {
        let (tree, part) = render_folder(&disk.snapshot, folder, renderer, facts)?;
        all.roots.extend(part.roots);
        all.contents.extend(part.contents);
        all.used.versions |= part.used.versions;
        trees.push(tree);
    }
    all.roots.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    all.roots.dedup_by(|a, b| a.path == b.path);
    let is_root = |path: &str| all.roots.binary_search_by(|root| (*root.path).cmp(path)).is_ok();
    all.plain.files.retain(|file| !is_root(&file.path));
    let rendered_kinds = facts.kinds_listed_for(&all.used);
    let mut snapshot = DiskSnapshot::clone(disk).with_rendered(all, &trees);
    snapshot.rendered_kinds = rendered_kinds;
    Ok(snapshot.into())
}

fn render_folder(
    snapshot: &Snapshot,
    folder: &ReadFolder,
    renderer: &SourceRenderer,
    facts: &ClusterFacts,
) -> Result<(DiskTree, RenderedSnapshot), SourceError> {
    let (tree, start) = tree_around(&folder.folder)?;
    let mut raw = Snapshot { files: Vec::new(), refused: Vec::new(), ..snapshot.clone() };
    let below = |path: &str| {
        let inside = path.strip_prefix(&*folder.prefix)?;
        (!inside.starts_with('/')).then(|| inside.to_owned())
    };
    for file in &snapshot.files {
        if let Some(inside) = below(&file.path) {
            raw.files.push(SnapshotFile { path: inside.into(), ..file.clone() });
        }
    }
    for found in &snapshot.refused {
        if let Some(inside) = below(&found.origin.file) {
            let mut found = found.clone();
            found.origin.file = inside.into();
            raw.refused.push(found);
        }
    }
    let mut all = renderer.render_files(raw, &start, &tree, facts)?;
    for root in &mut all.roots {
        add_prefix(root, &folder.prefix);
    }
    Ok((tree, all))
}

/// Names a root, and its objects, as they are reached from here.
fn add_prefix(root: &mut RenderedRoot, prefix: &str) {
    if prefix.is_empty() {
        return;
    }
    let long = |path: &str| format!("{prefix}{path}").into();
    root.path = long(&root.path);
    if let RootOutcome::Rendered(files) = &mut root.outcome {
        *files = files.iter().map(|file| SnapshotFile { path: long(&file.path), ..file.clone() }).collect();
    }
}
