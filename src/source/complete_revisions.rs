//! Decides whether every object of a revision is in a store, by what differs from a revision that
//! is known to be complete.
//!
//! **Invariant:** costs what differs, not the size of the revision. The known revisions are dropped
//! whenever the store is made anew. A damaged file shows when it is read, and the check that
//! follows begins without them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use git2::{ObjectType, Oid, Repository, Tree};

use super::file_names::EntryKind;
use super::object_stores::ObjectDatabase;
use super::tree;

/// The revisions that are known to be complete: the one in force, the newest and those pinned.
const MAX_KNOWN_REVISIONS: usize = 64;

/// The revisions of one store that this process has found complete, the last one at the end.
#[derive(Debug, Default)]
pub(super) struct CompleteRevisions(Mutex<Vec<Oid>>);

impl CompleteRevisions {
    /// Returns whether a revision is known to be complete.
    pub(super) fn contains(&self, commit: Oid) -> bool {
        self.known().contains(&commit)
    }

    /// Returns the last one that was found complete and still is in the store.
    pub(super) fn last(&self, odb: &ObjectDatabase<'_>) -> Option<Oid> {
        self.known().iter().rev().copied().find(|known| odb.exists(*known))
    }

    /// Notes that a revision is complete.
    pub(super) fn add(&self, commit: Oid) {
        let mut known = self.known();
        known.retain(|known| *known != commit);
        known.push(commit);
        let surplus = known.len().saturating_sub(MAX_KNOWN_REVISIONS);
        known.drain(..surplus);
    }

    /// Forgets all, as the store is another one.
    pub(super) fn clear(&self) {
        self.known().clear();
    }

    fn known(&self) -> MutexGuard<'_, Vec<Oid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether every object of a commit is here; contents of files are not read. `base` is a
/// commit of which that is known. `supply` is asked for each missing object, and returns whether it
/// is here now.
pub(super) fn is_complete(
    repository: &Repository,
    commit: Oid,
    base: Option<Oid>,
    supply: &mut dyn FnMut(Oid, ObjectType) -> bool,
) -> bool {
    let Ok(odb) = ObjectDatabase::of(repository) else { return false };
    let mut is_here = |id: Oid, kind: ObjectType| odb.exists(id) || supply(id, kind);
    if !is_here(commit, ObjectType::Commit) {
        return false;
    }
    let root_of = |id: Oid| odb.find_commit(id).map(|commit| commit.tree_id()).ok();
    let Some(root) = root_of(commit) else { return false };
    let mut seen = BTreeSet::from([root]);
    let mut left = vec![(root, base.and_then(root_of))];
    let tree_of = |id: Oid| odb.find_tree(id).ok();
    while let Some((id, base)) = left.pop() {
        if base == Some(id) {
            continue;
        }
        if !is_here(id, ObjectType::Tree) {
            return false;
        }
        let Some(tree) = tree_of(id) else { return false };
        let base: Option<Tree<'_>> = base.and_then(tree_of);
        for entry in &tree {
            let before = base.as_ref().and_then(|base| base.get_name_bytes(entry.name_bytes()));
            let before = before.filter(|before| before.kind() == entry.kind()).map(|before| before.id());
            // git too looks for nothing behind an entry that is no file, link or folder.
            let is_elsewhere =
                matches!(tree::kind(entry.filemode_raw()), EntryKind::Submodule | EntryKind::Other);
            let is_known = is_elsewhere || before == Some(entry.id());
            if is_known || !seen.insert(entry.id()) {
                continue;
            }
            if entry.kind() == Some(ObjectType::Tree) {
                left.push((entry.id(), before));
            } else if !is_here(entry.id(), ObjectType::Blob) {
                return false;
            }
        }
    }
    true
}
