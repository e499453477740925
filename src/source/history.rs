//! The history of a source's revisions: their parents, and those that a part of an id names.

use git2::{ErrorCode, Oid};

use super::error::SourceError;
use super::lineage::{self, Ancestry};
use super::reader::{RevisionForm, RevisionReader};
use crate::object::Revision;

impl RevisionReader {
    /// Returns the first parent of a revision; none where it has none, as the snapshot of a folder.
    pub(crate) fn parent(&self, revision: &Revision) -> Result<Option<Revision>, SourceError> {
        self.pass(|objects| {
            let id = self.find(objects, revision)?.id();
            let found = objects.object_databases().and_then(|odbs| lineage::first_parent(&odbs, id));
            let parent = found.map_err(|error| self.damaged_error(&error))?;
            Ok(parent.map(|id| Revision::new(&id.to_string())))
        })
    }

    /// Returns how a revision relates to an older one: the same, after it, or apart. A folder has
    /// only snapshots that were made of it, here.
    pub(crate) fn ancestry(&self, older: &Revision, newer: &Revision) -> Result<Ancestry, SourceError> {
        if older == newer || self.form() == RevisionForm::Snapshots {
            return Ok(Ancestry::Descends);
        }
        self.pass(|objects| {
            let newer = self.find(objects, newer)?.id();
            // By its id alone: it need not be here.
            let older = Oid::from_str(older.as_str()).map_err(|error| self.damaged_error(&error))?;
            let ancestry = objects.object_databases().and_then(|odbs| lineage::ancestry(&odbs, older, newer));
            ancestry.map_err(|error| self.damaged_error(&error))
        })
    }

    /// Returns the revision with this id, or with an id that begins so. The beginning has at least
    /// four digits. None where there is no such commit, or more than one. A whole id of what is not
    /// here stands for itself.
    pub(crate) fn find_by_prefix(&self, prefix: &str) -> Result<Option<Revision>, SourceError> {
        if !(4..=40).contains(&prefix.len()) || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        self.pass(|objects| match objects.commit_by_prefix(prefix) {
            Ok(id) => Ok(Some(Revision::new(&id.to_string()))),
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::Ambiguous) => {
                let complete_id = Oid::from_str(prefix).ok().filter(|_| prefix.len() == 40);
                Ok(complete_id.filter(|id| !objects.exists(*id)).map(|id| Revision::new(&id.to_string())))
            }
            Err(error) => Err(self.damaged_error(&error)),
        })
    }
}
