//! The folders of one sandboxed program: the tree that it reads, and the one that it may write.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::kustomize::{PlannedContent, RenderTree};
use super::memory_folder::MemoryFolder;
use super::opened_inputs::OpenedInputs;
use super::paths;
use super::render_host::RenderHost;
use super::root_render::RenderError;
use super::sandbox::SandboxPolicy;
use super::tree::FileTree;

/// The bytes of a tree that is written to memory where there is some. On a disk it takes several
/// times as long to make files where others were deleted. A larger tree takes long to render.
const MAX_MEMORY_TREE_BYTES: u64 = 4 << 20;

/// The folders of one program, which are gone with this.
pub(super) struct RenderWorkspace {
    folder: RenderFolder,
    /// The folder with the files.
    pub(super) tree: PathBuf,
    /// The sandbox of the program.
    pub(super) policy: SandboxPolicy,
}

impl RenderWorkspace {
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
        let failed = |error| RenderError::Tree { program, error };
        let write = |folder: RenderFolder| {
            let (below, private) = (folder.path().join("tree"), folder.path().join("private"));
            fs::create_dir(&private).map_err(failed)?;
            write_tree(program, &below, tree, files, opened)?;
            let policy = host.policy(below.clone(), private);
            Ok(Self { folder, tree: below, policy })
        };
        if !opened.is_empty() {
            let folder = RenderFolder::in_memory(host).map_err(failed)?;
            return write(folder.ok_or(RenderError::NoMemoryFolder)?);
        }
        if tree.files.iter().map(|file| file.size).sum::<u64>() <= MAX_MEMORY_TREE_BYTES
            && let Ok(Some(folder)) = RenderFolder::in_memory(host)
        {
            match write(folder) {
                // The memory may be full; the disk need not be.
                Err(RenderError::Tree { .. }) => {}
                written => return written,
            }
        }
        write(RenderFolder::anywhere(host, "rhumb-render-").map_err(failed)?)
    }

    /// Returns the folder around both.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The folder around the others.
pub(super) enum RenderFolder {
    /// On a disk, where the host has its temporary files there.
    Anywhere(TempDir),
    /// In memory: where some of its files are in the open, or secret, or all are small.
    InMemory(MemoryFolder),
}

impl RenderFolder {
    /// Makes a folder among the temporary files of the host, whose name begins so.
    pub(super) fn anywhere(host: &RenderHost, prefix: &str) -> io::Result<Self> {
        tempfile::Builder::new().prefix(prefix).tempdir_in(host.folder()).map(Self::Anywhere)
    }

    /// Makes a folder in memory; none where the host has no such place.
    pub(super) fn in_memory(host: &RenderHost) -> io::Result<Option<Self>> {
        Ok(MemoryFolder::create(&host.memory_folders())?.map(Self::InMemory))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Anywhere(folder) => folder.path(),
            Self::InMemory(memory_folder) => memory_folder.path(),
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
    let mut made = HashSet::new();
    for planned in &tree.files {
        let path = folder.join(&*planned.path);
        let parent = paths::folder_of(&planned.path);
        if made.insert(parent) {
            fs::create_dir_all(folder.join(parent)).map_err(unwritten)?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::RendererConfig;
    use crate::input::kustomize::{OriginTracking, PlannedFile};
    use crate::input::memory_tree::MemoryTree;

    /// Writes two files of a size below a folder on a disk or in memory.
    fn place(folder: &Path, size: u64) -> RenderWorkspace {
        let host = RenderHost::new(&RendererConfig::default(), "".into(), folder.to_owned());
        let file = |path: &str| {
            let content = PlannedContent::Text(b"a: b".as_slice().into());
            PlannedFile { path: path.into(), content, size }
        };
        let files = vec![file("base/a.yaml"), file("root/b.yaml")];
        let (root, charts) = (Arc::from("root"), std::collections::BTreeMap::new());
        let origins = OriginTracking::Absent;
        let tree = RenderTree { root, files, origins, depends_on_origins: false, charts };
        RenderWorkspace::write(&host, "kustomize", &tree, &MemoryTree::new(), &OpenedInputs::default())
            .unwrap()
    }

    #[test]
    fn a_small_tree_is_in_memory_and_a_large_one_where_temporary_files_are() {
        let temporary = tempfile::tempdir().unwrap();
        let small = place(temporary.path(), MAX_MEMORY_TREE_BYTES / 2);
        assert_eq!(small.folder().parent(), Some(Path::new("/dev/shm")));
        assert_eq!(fs::read_to_string(small.tree.join("root/b.yaml")).unwrap(), "a: b");
        let large = place(temporary.path(), MAX_MEMORY_TREE_BYTES / 2 + 1);
        assert_eq!(large.folder().parent(), Some(temporary.path()));
        assert_eq!(fs::read_to_string(large.tree.join("base/a.yaml")).unwrap(), "a: b");
    }
}
