//! The files of a closure, by their paths.

use std::slice;
use std::sync::Arc;

use super::closure::ClosureFile;

/// A file of a closure with its path.
type PathAndFile = (Arc<str>, ClosureFile);

/// The files of a closure, ordered by their path in a tree without links.
///
/// A first commit has the closures of all roots in memory at once, and most of them have few files.
/// So they are in a list that is as long as they are many: the smallest map has room for eleven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosureFiles(Vec<PathAndFile>);

impl ClosureFiles {
    /// Returns the file at a path.
    pub fn get(&self, path: &str) -> Option<&ClosureFile> {
        let place = self.place(path).ok()?;
        self.0.get(place).map(|(_, file)| file)
    }

    /// Adds a file. One that is at its path already stays.
    ///
    /// For single ones: those behind it are moved. A walk collects all that it finds.
    pub fn add(&mut self, path: Arc<str>, file: ClosureFile) {
        if let Err(place) = self.place(&path) {
            self.0.insert(place, (path, file));
        }
    }

    /// Returns the files and their paths, in the order of these.
    pub fn iter(&self) -> ClosureFileIter<'_> {
        ClosureFileIter(self.0.iter())
    }

    /// Returns the paths, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|(path, _)| path)
    }

    /// Returns how many files there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the place of a path in the list; where it is not there, that at which it would be.
    fn place(&self, path: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(path))
    }
}

/// Collects files in any order. Of several at one path the first one counts.
impl FromIterator<PathAndFile> for ClosureFiles {
    fn from_iter<I: IntoIterator<Item = PathAndFile>>(files: I) -> Self {
        let mut files: Vec<PathAndFile> = files.into_iter().collect();
        files.sort_by(|(a, _), (b, _)| a.cmp(b));
        files.dedup_by(|(later, _), (first, _)| later == first);
        files.shrink_to_fit();
        Self(files)
    }
}

impl<'a> IntoIterator for &'a ClosureFiles {
    type Item = (&'a Arc<str>, &'a ClosureFile);
    type IntoIter = ClosureFileIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The files of a closure, one after the other.
#[derive(Clone, Debug)]
pub struct ClosureFileIter<'a>(slice::Iter<'a, PathAndFile>);

impl<'a> Iterator for ClosureFileIter<'a> {
    type Item = (&'a Arc<str>, &'a ClosureFile);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(path, file)| (path, file))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{BlobId, TreeFile};

    fn placed(path: &str, text: &str) -> PathAndFile {
        let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
        let file = TreeFile { blob, size, is_executable: false };
        (path.into(), ClosureFile { source: path.into(), file })
    }

    fn collected(files: &[(&str, &str)]) -> ClosureFiles {
        files.iter().map(|(path, text)| placed(path, text)).collect()
    }

    #[test]
    fn files_are_in_the_order_of_their_paths_and_found_by_them() {
        let check = |files: &[(&str, &str)], expected: &[(&str, &str)]| {
            let files = collected(files);
            let expected: Vec<PathAndFile> = expected.iter().map(|(path, text)| placed(path, text)).collect();
            assert!(files.iter().eq(expected.iter().map(|(path, file)| (path, file))), "{files:?}");
            assert!(files.paths().eq(expected.iter().map(|(path, _)| path)));
            assert_eq!((files.len(), files.is_empty()), (expected.len(), expected.is_empty()));
            for (path, file) in &expected {
                assert_eq!(files.get(path), Some(file), "{path}");
            }
            assert_eq!((files.get("a/"), files.get("zz")), (None, None));
        };
        check(&[], &[]);
        check(&[("a", "1")], &[("a", "1")]);
        check(&[("b/c", "1"), ("a", "2"), ("b", "3")], &[("a", "2"), ("b", "3"), ("b/c", "1")]);
        check(&[("b", "1"), ("a", "2"), ("b", "3")], &[("a", "2"), ("b", "1")]);
    }

    #[test]
    fn a_file_that_is_added_has_its_place_and_changes_no_other_one() {
        let check = |path: &str, expected: &[(&str, &str)]| {
            let mut files = collected(&[("b", "1"), ("d", "1")]);
            let (path, file) = placed(path, "2");
            files.add(path, file);
            assert_eq!(files, collected(expected));
        };
        check("a", &[("a", "2"), ("b", "1"), ("d", "1")]);
        check("c", &[("b", "1"), ("c", "2"), ("d", "1")]);
        check("e", &[("b", "1"), ("d", "1"), ("e", "2")]);
        check("b", &[("b", "1"), ("d", "1")]);
    }
}
