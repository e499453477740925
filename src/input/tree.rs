//! The files of one revision as a renderer needs them, and the way a path takes over links.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::source::{
    BlobId, DiskTree, FileDefect, RevisionTree, SourceError, TreeBounds, TreeEntry, TreeFile, TreeLink,
};

use super::paths;

/// Links that one path may lead over, as on Linux.
const MAX_FOLLOWED_LINKS: usize = 40;

/// Every file of one revision.
pub trait FileTree {
    /// Returns the limits of the files.
    fn bounds(&self) -> TreeBounds {
        TreeBounds::Repository
    }

    /// Returns what is at a path, and follows no link.
    ///
    /// # Errors
    /// Fails where the revision cannot be read; what is not there is no error.
    fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError>;

    /// Returns the names in a folder, in order; none where no folder is there.
    ///
    /// # Errors
    /// As [`FileTree::entry`].
    fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError>;

    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// Fails where there is no such content, or where it cannot be read.
    fn read(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError>;

    /// Returns the bytes of many files, in this order, by one look where a look costs something.
    /// The caller bounds their size.
    ///
    /// # Errors
    /// As [`FileTree::read`].
    fn read_all(&self, blobs: &[BlobId]) -> Result<Vec<Arc<[u8]>>, SourceError> {
        blobs.iter().map(|blob| self.read(*blob)).collect()
    }
}

impl FileTree for RevisionTree {
    fn bounds(&self) -> TreeBounds {
        self.bounds()
    }

    fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        self.entry(path)
    }

    fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError> {
        self.names(folder)
    }

    fn read(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError> {
        self.read(blob).map(Into::into)
    }

    fn read_all(&self, blobs: &[BlobId]) -> Result<Vec<Arc<[u8]>>, SourceError> {
        self.read_all(blobs)
    }
}

impl FileTree for DiskTree {
    fn bounds(&self) -> TreeBounds {
        self.bounds()
    }

    fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        self.entry(path)
    }

    fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError> {
        self.names(folder)
    }

    fn read(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError> {
        self.read(blob)
    }
}

/// The end of a path, over all links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// The path without links.
    pub path: String,
    /// The regular file there; none for a folder.
    pub file: Option<TreeFile>,
}

/// The reason for which a path leads to nothing that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathFailure {
    /// Nothing is there: the first part that is missing.
    Missing(String),
    /// The text leads out of the revision, which has these limits.
    OutOfTree(TreeBounds),
    /// The link leads out of the revision.
    LinkOut {
        /// The link.
        link: String,
        /// Its text.
        target: String,
    },
    /// The link leads to nothing.
    Dangling {
        /// The link.
        link: String,
        /// Its text.
        target: String,
    },
    /// Links lead to each other.
    LinkLoop(String),
    /// The file is there, and is not read.
    Defect(String, FileDefect),
}

/// Follows a reference from a folder, as the system would: the text first, then each link. Every
/// path whose change could change the answer is given to `watch`.
///
/// # Errors
/// Fails where the revision cannot be read; that nothing is there is a [`PathFailure`].
pub(crate) fn resolve(
    tree: &impl FileTree,
    folder: &str,
    reference: &str,
    mut watch: impl FnMut(&str),
) -> Result<Result<ResolvedPath, PathFailure>, SourceError> {
    let Some(text) = paths::join(folder, reference) else {
        return Ok(Err(PathFailure::OutOfTree(tree.bounds())));
    };
    let mut walk = LinkWalk { left: parts(&text), at: String::new(), first: None, links: 0 };
    while let Some(part) = walk.left.pop_front() {
        let path = match walk.step(&part) {
            Ok(Some(path)) => path,
            Ok(None) => continue,
            Err(failure) => return Ok(Err(failure)),
        };
        let entry = tree.entry(&path)?;
        if entry != Some(TreeEntry::Folder) {
            watch(&path);
        }
        match entry {
            Some(TreeEntry::Folder) => walk.at = path,
            Some(TreeEntry::File(file)) => {
                let is_end = walk.left.iter().all(|part| matches!(part.as_str(), "" | "."));
                let found = ResolvedPath { path: path.clone(), file: Some(file) };
                return Ok(if is_end { Ok(found) } else { Err(walk.lost(path)) });
            }
            Some(TreeEntry::Link(TreeLink { target, .. })) => {
                if let Err(failure) = walk.follow(path, target) {
                    return Ok(Err(failure));
                }
            }
            Some(TreeEntry::Defect(defect)) => return Ok(Err(PathFailure::Defect(path, defect))),
            None => return Ok(Err(walk.lost(path))),
        }
    }
    Ok(Ok(ResolvedPath { path: walk.at, file: None }))
}

fn parts(text: &str) -> VecDeque<String> {
    text.split('/').map(str::to_owned).collect()
}

/// The way of one path so far.
struct LinkWalk {
    left: VecDeque<String>,
    at: String,
    /// The first link on the way, which the reference names, and its text.
    first: Option<(String, String)>,
    links: usize,
}

impl LinkWalk {
    /// Returns the path to look at next; none where the part only leads back.
    fn step(&mut self, part: &str) -> Result<Option<String>, PathFailure> {
        match part {
            "" | "." => Ok(None),
            ".." if self.at.is_empty() => {
                let (link, target) = self.first.take().unwrap_or_default();
                Err(PathFailure::LinkOut { link, target })
            }
            ".." => {
                self.at.truncate(paths::folder_of(&self.at).len());
                Ok(None)
            }
            name => Ok(Some(paths::append(&self.at, name))),
        }
    }

    fn follow(&mut self, link: String, target: String) -> Result<(), PathFailure> {
        if target.starts_with('/') {
            return Err(PathFailure::LinkOut { link, target });
        }
        self.links += 1;
        if self.links > MAX_FOLLOWED_LINKS {
            return Err(PathFailure::LinkLoop(link));
        }
        parts(&target).into_iter().rev().for_each(|part| self.left.push_front(part));
        self.first.get_or_insert((link, target));
        Ok(())
    }

    fn lost(&mut self, missing: String) -> PathFailure {
        match self.first.take() {
            Some((link, target)) => PathFailure::Dangling { link, target },
            None => PathFailure::Missing(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;

    fn ended(tree: &MemoryTree, folder: &str, reference: &str) -> (String, Vec<String>) {
        let mut watched = Vec::new();
        let end = resolve(tree, folder, reference, |path| watched.push(path.to_owned())).unwrap();
        (end.map_or_else(|failure| format!("{failure:?}"), |found| found.path), watched)
    }

    #[test]
    fn links_are_followed_inside_the_revision_and_nowhere_else() {
        let tree = MemoryTree::new()
            .file("base/web.yaml", "a")
            .link("apps/base", "../base")
            .link("apps/out.yaml", "base/../../base/web.yaml")
            .link("out", "../etc/passwd")
            .link("absolute", "/etc/passwd")
            .link("gone", "base/no.yaml")
            .link("loop", "loop")
            .defect("pipe", FileDefect::NotAFile);
        let check = |folder, reference, expected: &str, watched: &[&str]| {
            let (end, looked_at) = ended(&tree, folder, reference);
            assert_eq!(end, expected, "{folder} + {reference}");
            assert_eq!(looked_at, watched, "{folder} + {reference}");
        };
        check("apps", "base/web.yaml", "base/web.yaml", &["apps/base", "base/web.yaml"]);
        check("apps", "base", "base", &["apps/base"]);
        // The text of a link goes over links as the system goes, not by its letters.
        let out = "LinkOut { link: \"apps/out.yaml\", target: \"base/../../base/web.yaml\" }";
        check("apps", "out.yaml", out, &["apps/out.yaml", "apps/base"]);
        check("", "out", "LinkOut { link: \"out\", target: \"../etc/passwd\" }", &["out"]);
        check("", "absolute", "LinkOut { link: \"absolute\", target: \"/etc/passwd\" }", &["absolute"]);
        check("", "gone", "Dangling { link: \"gone\", target: \"base/no.yaml\" }", &["gone", "base/no.yaml"]);
        check("", "no/such", "Missing(\"no\")", &["no"]);
        check("", "base/web.yaml/x", "Missing(\"base/web.yaml\")", &["base/web.yaml"]);
        check("", "../x", "OutOfTree(Repository)", &[]);
        check("", "pipe", "Defect(\"pipe\", NotAFile)", &["pipe"]);
        assert_eq!(ended(&tree, "", "loop").0, "LinkLoop(\"loop\")");
    }
}
