//! A revision of which the files of one root are in memory, read at once.
//!
//! A render reads each file of its root several times. It looks for encrypted values, writes the
//! file for the program, and finds where objects come from. A read of its own takes a thread where
//! the repository is one that others may write into.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::kustomize::Closure;
use super::tree::FileTree;
use crate::source::{BlobId, SourceError, TreeEntry};

/// Bytes that are in memory for one render. Roots with more are rare: the rest of their files is
/// read one by one.
const MAX_BUFFERED_BYTES: u64 = 8 << 20;

/// A revision of which some files are in memory.
pub(super) struct BufferedTree<'a, T> {
    tree: &'a T,
    held: HashMap<BlobId, Arc<[u8]>>,
}

impl<'a, T: FileTree> BufferedTree<'a, T> {
    /// Reads the files of some closures at once, as many of them as may be in memory.
    ///
    /// # Errors
    /// Fails where the revision cannot be read.
    pub(super) fn of<'c>(
        tree: &'a T,
        closures: impl IntoIterator<Item = &'c Closure>,
    ) -> Result<Self, SourceError> {
        let files = closures.into_iter().flat_map(|closure| &closure.files);
        let (mut wanted, mut left) = (HashSet::new(), MAX_BUFFERED_BYTES);
        for file in files.map(|(_, file)| file.file) {
            if let Some(rest) = left.checked_sub(file.size)
                && wanted.insert(file.blob)
            {
                left = rest;
            }
        }
        let wanted: Vec<BlobId> = wanted.into_iter().collect();
        let read = tree.read_all(&wanted)?;
        Ok(Self { tree, held: wanted.into_iter().zip(read).collect() })
    }
}

impl<T: FileTree> FileTree for BufferedTree<'_, T> {
    fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        self.tree.entry(path)
    }

    fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError> {
        self.tree.names(folder)
    }

    fn read(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError> {
        match self.held.get(&blob) {
            Some(bytes) => Ok(Arc::clone(bytes)),
            None => self.tree.read(blob),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::kustomize::ClosureFile;
    use crate::source::TreeFile;

    fn closure(files: &[(&str, &[u8])]) -> Closure {
        let file = |(path, bytes): &(&str, &[u8])| {
            let (blob, size) = (BlobId::of(bytes), bytes.len() as u64);
            let file = TreeFile { blob, size, is_executable: false };
            (Arc::from(*path), ClosureFile { source: Arc::from(*path), file })
        };
        Closure { files: files.iter().map(file).collect(), ..Closure::default() }
    }

    #[test]
    fn files_are_in_memory_up_to_a_bound_and_each_can_be_read() {
        let large = vec![b'x'; usize::try_from(MAX_BUFFERED_BYTES).unwrap()];
        let files: [(&str, &[u8]); 4] = [("a", b"1"), ("b", &large), ("c", b"2"), ("d", b"2")];
        let tree = files.iter().fold(MemoryTree::new(), |tree, (path, bytes)| tree.file(path, bytes));
        let closure = closure(&files);
        let held = BufferedTree::of(&tree, [&closure]).unwrap();
        assert_eq!((held.held.len(), tree.reads()), (2, 1), "the large one is left out, a copy is held once");
        for (_, bytes) in files {
            assert_eq!(&*held.read(BlobId::of(bytes)).unwrap(), bytes);
        }
        assert_eq!(tree.reads(), 2);
        assert!(
            BufferedTree::of(&MemoryTree::new(), [&closure]).is_err(),
            "a file that is lost is no empty one"
        );
    }
}
