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
    // Nobody else writes packs meanwhile.
    let mut is_here = |id: Oid, kind: ObjectType| odb.is_known(id) || supply(id, kind);
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

#[cfg(test)]
mod tests {
    use std::fs;

    use git2::{FileMode, Signature};
    use tempfile::TempDir;

    use super::*;

    fn repository(dir: &TempDir) -> Repository {
        Repository::open_bare(dir.path()).unwrap()
    }

    fn blob(text: &str) -> Oid {
        Oid::hash_object(ObjectType::Blob, text.as_bytes()).unwrap()
    }

    fn put_tree(repository: &Repository, entries: &[(&str, Oid, FileMode)]) -> Oid {
        let mut tree = repository.treebuilder(None).unwrap();
        for (name, id, mode) in entries {
            tree.insert(name, *id, (*mode).into()).unwrap();
        }
        tree.write().unwrap()
    }

    /// Two commits, of which the second one changes a file of a folder, and adds a file and a
    /// submodule.
    struct Commits {
        dir: TempDir,
        first: Oid,
        second: Oid,
        /// The folder and the root of the second one.
        folder: Oid,
        root: Oid,
    }

    impl Commits {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let repository = Repository::init_bare(dir.path()).unwrap();
            for text in ["same", "old", "new", "added"] {
                repository.blob(text.as_bytes()).unwrap();
            }
            let commit = |root: Oid| {
                let (author, tree) =
                    (Signature::now("a", "a@b").unwrap(), repository.find_tree(root).unwrap());
                repository.commit(None, &author, &author, "a commit", &tree, &[]).unwrap()
            };
            let file = |name, text| (name, blob(text), FileMode::Blob);
            let before = put_tree(&repository, &[file("changed", "old")]);
            let before = put_tree(&repository, &[file("a", "same"), ("folder", before, FileMode::Tree)]);
            let first = commit(before);
            let folder = put_tree(&repository, &[file("changed", "new")]);
            let (added, elsewhere) = (file("added", "added"), ("elsewhere", blob("?"), FileMode::Commit));
            let kept = [file("a", "same"), ("folder", folder, FileMode::Tree)];
            let root = put_tree(&repository, &[kept[0], kept[1], added, elsewhere]);
            let second = commit(root);
            Self { dir, first, second, folder, root }
        }

        fn remove(&self, id: Oid) {
            let name = id.to_string();
            let (folder, file) = name.split_at(2);
            fs::remove_file(self.dir.path().join("objects").join(folder).join(file)).unwrap();
        }
    }

    #[test]
    fn a_revision_is_complete_where_nothing_is_missing_but_what_a_complete_one_has() {
        let check = |missing: fn(&Commits) -> Option<Oid>, alone: bool, beside: bool| {
            let commits = Commits::new();
            let missing = missing(&commits);
            if let Some(id) = missing {
                commits.remove(id);
            }
            for (base, expected) in [(None, alone), (Some(commits.first), beside)] {
                let repository = repository(&commits.dir);
                let found = is_complete(&repository, commits.second, base, &mut |_, _| false);
                assert_eq!(found, expected, "without {missing:?}, beside {base:?}");
            }
        };
        check(|_| None, true, true);
        check(|commits| Some(commits.second), false, false);
        check(|commits| Some(commits.root), false, false);
        check(|commits| Some(commits.folder), false, false);
        check(|_| Some(blob("new")), false, false);
        check(|_| Some(blob("added")), false, false);
        check(|_| Some(blob("same")), false, true);
        // The second one does not have it.
        check(|_| Some(blob("old")), true, true);
    }

    #[test]
    fn each_missing_object_is_asked_for_by_its_kind() {
        let commits = Commits::new();
        for id in [blob("new"), blob("added")] {
            commits.remove(id);
        }
        let mut asked = BTreeSet::new();
        let repository = repository(&commits.dir);
        let supplied = is_complete(&repository, commits.second, None, &mut |id, kind| {
            assert_eq!(kind, ObjectType::Blob);
            asked.insert(id)
        });
        assert_eq!((supplied, asked), (true, BTreeSet::from([blob("new"), blob("added")])));
    }

    #[test]
    fn the_last_complete_revision_that_is_still_there_is_compared_with() {
        let commits = Commits::new();
        let known = CompleteRevisions::default();
        let last = || {
            let repository = repository(&commits.dir);
            known.last(&ObjectDatabase::of(&repository).unwrap())
        };
        assert_eq!(last(), None);
        known.add(commits.first);
        known.add(commits.second);
        assert_eq!(last(), Some(commits.second));
        known.add(commits.first);
        assert_eq!(last(), Some(commits.first));
        commits.remove(commits.first);
        assert_eq!(last(), Some(commits.second));
        assert!(known.contains(commits.first) && known.contains(commits.second));
        known.clear();
        assert!(!known.contains(commits.second));
        assert_eq!(last(), None);
    }

    #[test]
    fn so_many_complete_revisions_are_known_and_the_oldest_one_is_forgotten() {
        let known = CompleteRevisions::default();
        let ids: Vec<Oid> = (0..=MAX_KNOWN_REVISIONS).map(|number| blob(&number.to_string())).collect();
        for id in &ids {
            known.add(*id);
        }
        let forgotten: Vec<&Oid> = ids.iter().filter(|id| !known.contains(**id)).collect();
        assert_eq!(forgotten, [&ids[0]]);
    }
}
