//! Rendering what stands on disk, for the commands that run once.

use std::path::{Path, PathBuf};

use super::source_renderer::SourceRenderer;
use crate::source::{
    DiskSnapshot, DiskTree, RenderedRoot, RenderedSnapshot, RootOutcome, Snapshot, SnapshotFile,
    SnapshotRenderer as _, SourceError, tree_around,
};

/// A folder that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadFolder {
    /// The beginning of the paths of its files in the snapshot; empty where they are seen from it.
    pub prefix: String,
    /// The folder.
    pub folder: PathBuf,
}

/// Renders the roots of a snapshot that was read from a folder. Blocks, and runs programs.
///
/// # Errors
/// Fails where the files cannot be read.
pub(crate) fn render_disk(
    disk: DiskSnapshot,
    folder: &Path,
    renderer: &SourceRenderer,
) -> Result<DiskSnapshot, SourceError> {
    render_folders(disk, &[ReadFolder { prefix: String::new(), folder: folder.to_owned() }], renderer)
}

/// As [`render_disk`], of a snapshot that was read from several.
///
/// # Errors
/// As [`render_disk`].
pub(crate) fn render_folders(
    disk: DiskSnapshot,
    folders: &[ReadFolder],
    renderer: &SourceRenderer,
) -> Result<DiskSnapshot, SourceError> {
    if !renderer.has_roots(&disk.snapshot) {
        return Ok(disk);
    }
    let mut all = RenderedSnapshot {
        plain: renderer.plain_part(disk.snapshot.clone()),
        roots: Vec::new(),
        contents: Vec::new(),
        is_interrupted: false,
    };
    let mut trees = Vec::new();
    for folder in folders {
        let (tree, part) = render_folder(&disk.snapshot, folder, renderer)?;
        all.roots.extend(part.roots);
        all.contents.extend(part.contents);
        trees.push(tree);
    }
    all.roots.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    all.roots.dedup_by(|a, b| a.path == b.path);
    let is_root = |path: &str| all.roots.binary_search_by(|root| (*root.path).cmp(path)).is_ok();
    all.plain.files.retain(|file| !is_root(&file.path));
    Ok(disk.with_rendered(all, &trees))
}

fn render_folder(
    whole: &Snapshot,
    folder: &ReadFolder,
    renderer: &SourceRenderer,
) -> Result<(DiskTree, RenderedSnapshot), SourceError> {
    let (tree, start) = tree_around(&folder.folder)?;
    let mut raw = Snapshot { files: Vec::new(), refused: Vec::new(), ..whole.clone() };
    let below = |path: &str| {
        let inside = path.strip_prefix(&*folder.prefix)?;
        (!inside.starts_with('/')).then(|| inside.to_owned())
    };
    for file in &whole.files {
        if let Some(inside) = below(&file.path) {
            raw.files.push(SnapshotFile { path: inside.into(), ..file.clone() });
        }
    }
    for found in &whole.refused {
        if let Some(inside) = below(&found.origin.file) {
            let mut found = found.clone();
            found.origin.file = inside.into();
            raw.refused.push(found);
        }
    }
    let mut all = renderer.render_files(raw, &start, &tree)?;
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
