//! The results of a source: frozen lists of files, changes between two, and authors of revisions.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use git2::{ObjectType, Oid};
use jiff::Timestamp;

use crate::object::{Diagnostic, ManifestOrigin, RenderOrigin, Revision, UnrenderedRoot};

/// The id of a file's content, as git computes it: equal content, equal id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(Oid);

impl BlobId {
    /// Returns the id of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        // Hashing SHA-1 in memory has no way to fail; the zero id is no content's.
        Self(Oid::hash_object(ObjectType::Blob, bytes).unwrap_or(Oid::ZERO_SHA1))
    }

    pub(super) const fn from_oid(oid: Oid) -> Self {
        Self(oid)
    }

    pub(super) const fn oid(self) -> Oid {
        self.0
    }
}

impl From<BlobId> for [u8; 20] {
    fn from(blob: BlobId) -> Self {
        let mut bytes = [0; 20];
        bytes.copy_from_slice(blob.0.as_bytes());
        bytes
    }
}

impl From<[u8; 20]> for BlobId {
    fn from(bytes: [u8; 20]) -> Self {
        // Twenty bytes are always an id; the zero id is no content's.
        Self(Oid::from_bytes(&bytes).unwrap_or(Oid::ZERO_SHA1))
    }
}

/// 40 hex digits.
impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({})", self.0)
    }
}

/// The id of what was rendered of a revision: equal roots, equal id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RenderId(pub(super) Oid);

#[cfg(test)]
impl RenderId {
    /// Returns the id of a test, which names nothing.
    pub(crate) const fn in_test() -> Self {
        Self(Oid::ZERO_SHA1)
    }
}

/// The text between the path of a root and the name of an object that was rendered from it.
pub(crate) const RENDERED_SEPARATOR: char = '#';

/// One manifest file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SnapshotFile {
    /// Path inside the source, with `/` between its parts.
    pub path: Arc<str>,
    /// Its content's id.
    pub blob: BlobId,
    /// Its content's size in bytes.
    pub size: u64,
    /// The render that it comes from; none where it is a file of the revision itself.
    pub origin: Option<Arc<RenderOrigin>>,
}

impl SnapshotFile {
    /// Returns a file of a test, whose content is named by no id.
    #[cfg(test)]
    pub(crate) fn in_test(path: &str) -> Self {
        Self { path: path.into(), blob: BlobId::from([0; 20]), size: 0, origin: None }
    }

    /// Returns the place of an object that is in it.
    pub(crate) fn origin_of(&self, inside: ManifestOrigin) -> ManifestOrigin {
        match &self.origin {
            Some(render) => {
                ManifestOrigin { render: Some(render.clone()), ..ManifestOrigin::of_file(self.path.clone()) }
            }
            None => inside,
        }
    }
}

/// The manifest files of one revision, frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The revision.
    pub revision: Revision,
    /// The id of what was rendered of it and is listed here; none where it has no roots.
    pub rendered: Option<RenderId>,
    /// The files, ordered by path, without what `.rhumbignore` and leading dots leave out.
    pub files: Vec<SnapshotFile>,
    /// The files that could have held manifests and were not read, each with its reason.
    pub refused: Vec<Diagnostic>,
    /// The warnings about what was rendered.
    pub warnings: Vec<Diagnostic>,
    /// The roots that could not be rendered.
    pub failed_roots: Vec<UnrenderedRoot>,
    /// Indicates whether some of the refused files are of no such root.
    pub refuses_plain_files: bool,
}

impl Snapshot {
    /// Returns a snapshot of files, of which nothing is rendered.
    pub(crate) fn of_files(revision: Revision, files: Vec<SnapshotFile>, refused: Vec<Diagnostic>) -> Self {
        let refuses_plain_files = !refused.is_empty();
        let (rendered, warnings, failed_roots) = (None, Vec::new(), Vec::new());
        Self { revision, rendered, files, refused, warnings, failed_roots, refuses_plain_files }
    }

    /// Returns whether everything that could be a manifest is in the list; only then may an absence
    /// mean deletion.
    pub(crate) fn is_complete(&self) -> bool {
        self.refused.is_empty()
    }

    /// Returns whether a file would come from a root that could not be rendered.
    pub(crate) fn is_of_failed_root(&self, path: &str) -> bool {
        self.failed_roots.iter().any(|root| {
            path.strip_prefix(&*root.path).is_some_and(|rest| rest.starts_with(RENDERED_SEPARATOR))
        })
    }

    /// Returns the roots that could not be rendered, where they are all that it lacks.
    pub(crate) fn lacking_roots(&self) -> Arc<[UnrenderedRoot]> {
        if self.refuses_plain_files { Arc::default() } else { self.failed_roots.as_slice().into() }
    }
}

/// One file that differs between two revisions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChangedFile {
    /// Path inside the source.
    pub path: Arc<str>,
    /// The content and its size in bytes before; none where the file is new.
    pub old: Option<(BlobId, u64)>,
    /// The content and its size in bytes after; none where the file is gone.
    pub new: Option<(BlobId, u64)>,
}

impl ChangedFile {
    /// Returns the file after the change, as it is in the revision; none where it is gone.
    pub(crate) fn after(&self) -> Option<SnapshotFile> {
        self.new.map(|(blob, size)| self.with_content(blob, size))
    }

    /// Returns the file before the change, as it was in the revision; none where it is new.
    pub(super) fn file_before(&self) -> Option<SnapshotFile> {
        self.old.map(|(blob, size)| self.with_content(blob, size))
    }

    /// Returns the file as it was last: after the change, or before it where it is gone.
    pub(super) fn latest(&self) -> Option<SnapshotFile> {
        self.new.or(self.old).map(|(blob, size)| self.with_content(blob, size))
    }

    fn with_content(&self, blob: BlobId, size: u64) -> SnapshotFile {
        SnapshotFile { path: self.path.clone(), blob, size, origin: None }
    }

    /// Makes changes in a list of files, which is in the order of their paths before and then.
    pub(crate) fn apply_all(changes: &[Self], files: &mut Vec<SnapshotFile>) {
        let mut moving = Vec::new();
        for change in changes {
            let found = files.binary_search_by(|file| file.path.cmp(&change.path));
            match (found.ok().and_then(|place| files.get_mut(place)), change.after()) {
                (Some(file), Some(after)) => *file = after,
                _ => moving.push(change),
            }
        }
        // Most commits change contents alone, and no file has another place in the list then.
        if moving.is_empty() {
            return;
        }
        let touched: BTreeSet<&str> = moving.iter().map(|change| &*change.path).collect();
        files.retain(|file| !touched.contains(&*file.path));
        files.extend(moving.iter().filter_map(|change| change.after()));
        // Two runs in order: that takes one pass.
        files.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

/// The author of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitInfo {
    /// The author's name.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
    /// The commit time.
    pub time: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::PossibleNames;

    /// Returns a snapshot without files, that lacks these.
    fn lacking(refused: &[&str], roots: &[&str]) -> Snapshot {
        let refused = refused.iter().map(|path| Diagnostic::file_error(*path, "symlink", "it is a link"));
        let root = |path: &&str| UnrenderedRoot { path: (*path).into(), names: PossibleNames::Any };
        let failed_roots = roots.iter().map(root).collect();
        Snapshot { failed_roots, ..Snapshot::of_files(Revision::new("r1"), Vec::new(), refused.collect()) }
    }

    #[test]
    fn files_that_are_new_changed_or_gone_are_so_in_the_list() {
        let content = |text: &str| (BlobId::of(text.as_bytes()), text.len() as u64);
        let check = |before: &[(&str, &str)], changes: &[(&str, Option<&str>)], after: &[(&str, &str)]| {
            let file = |(path, text): &(&str, &str)| {
                let (blob, size) = content(text);
                SnapshotFile { blob, size, ..SnapshotFile::in_test(path) }
            };
            let change = |(path, new): &(&str, Option<&str>)| {
                let old = before.iter().find(|(known, _)| known == path).map(|(_, text)| content(text));
                ChangedFile { path: (*path).into(), old, new: new.map(content) }
            };
            let mut files: Vec<SnapshotFile> = before.iter().map(file).collect();
            let changes: Vec<ChangedFile> = changes.iter().map(change).collect();
            ChangedFile::apply_all(&changes, &mut files);
            assert_eq!(files, after.iter().map(file).collect::<Vec<_>>(), "{changes:?}");
        };
        let before = [("a", "1"), ("b/c", "1"), ("d", "1")];
        check(&before, &[], &before);
        check(&before, &[("b/c", Some("22"))], &[("a", "1"), ("b/c", "22"), ("d", "1")]);
        check(&before, &[("b/c", None)], &[("a", "1"), ("d", "1")]);
        check(&before, &[("b/a", Some("3"))], &[("a", "1"), ("b/a", "3"), ("b/c", "1"), ("d", "1")]);
        let all = [("a", None), ("b/c", Some("22")), ("c", Some("3"))];
        check(&before, &all, &[("b/c", "22"), ("c", "3"), ("d", "1")]);
        check(&[], &[("a", Some("1"))], &[("a", "1")]);
    }

    #[test]
    fn only_what_is_named_behind_the_path_of_a_failed_root_is_of_it() {
        let snapshot = lacking(&[], &["web/kustomization.yaml", "api/Chart.yaml"]);
        let check = |path: &str, expected: bool| {
            assert_eq!(snapshot.is_of_failed_root(path), expected, "{path}");
        };
        check("web/kustomization.yaml#ConfigMap", true);
        check("api/Chart.yaml#ConfigMap", true);
        check("web/kustomization.yaml", false);
        check("web/kustomization.yaml.orig#ConfigMap", false);
        check("db/kustomization.yaml#ConfigMap", false);
    }

    #[test]
    fn a_snapshot_that_refuses_files_is_not_complete_and_lacks_more_than_its_roots() {
        let check = |refused: &[&str], roots: &[&str], lacks: &[&str]| {
            let snapshot = lacking(refused, roots);
            let found: Vec<Arc<str>> =
                snapshot.lacking_roots().iter().map(|root| root.path.clone()).collect();
            assert_eq!(found, lacks.iter().copied().map(Arc::from).collect::<Vec<Arc<str>>>());
            assert_eq!(snapshot.is_complete(), refused.is_empty());
            assert_eq!(snapshot.refuses_plain_files, !refused.is_empty());
        };
        check(&[], &[], &[]);
        check(&[], &["web/kustomization.yaml"], &["web/kustomization.yaml"]);
        check(&["a.yaml"], &[], &[]);
        check(&["a.yaml"], &["web/kustomization.yaml"], &[]);
    }
}
