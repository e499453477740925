//! The folders of one sandboxed program: the tree that it reads, and the one that it may write.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::kustomize::{PlannedContent, RenderTree};
use super::memory_place::MemoryPlace;
use super::opened_inputs::OpenedInputs;
use super::render_host::RenderHost;
use super::root_render::RenderError;
use super::sandbox::SandboxPolicy;
use super::tree::FileTree;

/// The folders of one program, which are gone with this.
pub(super) struct RenderPlace {
    folder: PlaceFolder,
    /// The folder with the files.
    pub(super) tree: PathBuf,
    /// The sandbox of the program.
    pub(super) policy: SandboxPolicy,
}

impl RenderPlace {
    /// Writes the files of a tree for a program.
    ///
    /// # Errors
    /// Fails where they cannot be read or written.
    pub(super) fn write<T: FileTree>(
        host: &RenderHost,
        program: &'static str,
        tree: &RenderTree,
        files: &T,
        opened: &OpenedInputs,
    ) -> Result<Self, RenderError> {
        let unwritten = |error| RenderError::Tree { program, error };
        let folder = if opened.is_empty() {
            let folder = tempfile::Builder::new().prefix("rhumb-render-").tempdir_in(host.folder());
            PlaceFolder::Anywhere(folder.map_err(unwritten)?)
        } else {
            let place = MemoryPlace::create(&host.memory_folders()).map_err(unwritten)?;
            PlaceFolder::InMemory(place.ok_or(RenderError::NoMemoryFolder)?)
        };
        let (below, private) = (folder.path().join("tree"), folder.path().join("private"));
        fs::create_dir(&private).map_err(unwritten)?;
        write_tree(program, &below, tree, files, opened)?;
        let policy = host.policy(below.clone(), private);
        Ok(Self { folder, tree: below, policy })
    }

    /// Returns the folder around both.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The folder around the others.
enum PlaceFolder {
    /// On a disk, where the host has its temporary files there.
    Anywhere(TempDir),
    /// In memory: some of its files are in the open.
    InMemory(MemoryPlace),
}

impl PlaceFolder {
    fn path(&self) -> &Path {
        match self {
            Self::Anywhere(folder) => folder.path(),
            Self::InMemory(place) => place.path(),
        }
    }
}

/// Writes the files of a tree, each regular and readable by its owner alone.
fn write_tree<T: FileTree>(
    program: &'static str,
    folder: &Path,
    tree: &RenderTree,
    files: &T,
    opened: &OpenedInputs,
) -> Result<(), RenderError> {
    let unwritten = |error| RenderError::Tree { program, error };
    fs::create_dir(folder).map_err(unwritten)?;
    fs::create_dir_all(folder.join(&*tree.root)).map_err(unwritten)?;
    for planned in &tree.files {
        let path = folder.join(&*planned.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritten)?;
        }
        if let Some(plaintext) = opened.plaintext(&planned.path) {
            fs::write(&path, plaintext).map_err(unwritten)?;
            continue;
        }
        let bytes = match &planned.content {
            PlannedContent::Blob(blob) => files.read(*blob)?,
            PlannedContent::Text(text) => text.clone(),
        };
        fs::write(&path, &bytes).map_err(unwritten)?;
    }
    Ok(())
}
