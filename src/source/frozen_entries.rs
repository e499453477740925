//! The entries of the snapshot of a folder.

use git2::Oid;

use super::error::SourceError;
use super::file_names::EntryKind;
use super::object_stores::ObjectStores;
use super::reader::RevisionReader;
use super::refusal::RefusedFile;
use super::settling::FolderEntry;
use super::tree;
use crate::object::Revision;

impl RevisionReader {
    /// Returns every entry of the snapshot of a folder, ordered by path, and what it had refused.
    pub(super) fn frozen_files(
        &self,
        revision: &Revision,
    ) -> Result<(Vec<FolderEntry>, Vec<RefusedFile>), SourceError> {
        self.pass(|objects| {
            let commit = self.find_whole(objects, revision)?;
            let (_, mut refusals) = self.source_root(objects, revision)?;
            refusals.sort_unstable();
            let mut files = Vec::new();
            self.add_frozen(objects, commit.tree_id(), "", &mut files)?;
            files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            Ok((files, refusals))
        })
    }

    fn add_frozen(
        &self,
        objects: &ObjectStores,
        folder: Oid,
        path: &str,
        files: &mut Vec<FolderEntry>,
    ) -> Result<(), SourceError> {
        let damaged = |error: git2::Error| self.damaged_error(&error);
        for entry in &objects.tree(folder).map_err(damaged)? {
            let Ok(name) = std::str::from_utf8(entry.name_bytes()) else { continue };
            let path = tree::join(path, name);
            let (kind, id) = (tree::kind(entry.filemode_raw()), entry.id());
            let size = match kind {
                EntryKind::Folder => {
                    self.add_frozen(objects, id, &path, files)?;
                    continue;
                }
                EntryKind::File | EntryKind::Symlink => objects.size(id).map_err(damaged)?,
                EntryKind::Submodule | EntryKind::Other => 0,
            };
            files.push(FolderEntry { path, kind, id, size });
        }
        Ok(())
    }
}
