//! The difference of two trees, without a look at their equal parts.
//!
//! libgit2's own comparison never skips equal subtrees (40 ms instead of 0.1 ms at 100,000 files).

use std::cmp::Ordering;

use git2::{Oid, Tree, TreeEntry};

use super::file_names::{self, EntryKind, IgnoreFiles};
use super::object_stores::ObjectStores;
use super::tree::{self, EntryBudget, JudgedEntry, WalkStop};

/// One file that differs, sizes not looked at yet.
pub(super) struct ChangedPath {
    pub(super) path: String,
    pub(super) old: Option<Oid>,
    pub(super) new: Option<Oid>,
}

/// Compares two trees. None where more than the files' contents differ (an ignore file, a refused
/// file), so that only a comparison of both whole lists is right.
pub(super) fn compare(
    objects: &ObjectStores,
    old: Oid,
    new: Oid,
    most: usize,
) -> Result<Option<Vec<ChangedPath>>, WalkStop> {
    let budget = EntryBudget::new(most);
    let mut walk = TreeDiffWalk { objects, ignores: IgnoreFiles::default(), budget, pairs: Vec::new() };
    let plain = walk.compare_folders(Some(old), Some(new), String::new(), 0)?;
    Ok((plain == ChangeScope::Plain).then_some(walk.pairs))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeScope {
    Plain,
    Structural,
}

struct TreeDiffWalk<'a> {
    objects: &'a ObjectStores,
    ignores: IgnoreFiles,
    budget: EntryBudget,
    pairs: Vec<ChangedPath>,
}

/// Compares names in git's order inside a tree: a folder's name counts as if it ended in a slash.
pub(super) fn compare_names(a: &TreeEntry<'_>, b: &TreeEntry<'_>) -> Ordering {
    let slash = |entry: &TreeEntry<'_>| tree::kind(entry.filemode_raw()) == EntryKind::Folder;
    let (left, right) = (a.name_bytes(), b.name_bytes());
    if left == right {
        return slash(a).cmp(&slash(b));
    }
    let end = |entry| slash(entry).then_some(&b'/');
    left.iter().chain(end(a)).cmp(right.iter().chain(end(b)))
}

impl TreeDiffWalk<'_> {
    fn compare_folders(
        &mut self,
        old: Option<Oid>,
        new: Option<Oid>,
        path: String,
        depth: usize,
    ) -> Result<ChangeScope, WalkStop> {
        let [old, new] = self.budget.load(self.objects, [old, new])?;
        let outside = self.ignores.depth();
        let finding = self.entries(old.as_ref(), new.as_ref(), &path, depth)?;
        self.ignores.leave_to(outside);
        Ok(finding)
    }

    fn entries(
        &mut self,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
        path: &str,
        depth: usize,
    ) -> Result<ChangeScope, WalkStop> {
        // Where it differs from the old one the merge below comes upon it and gives up.
        if let Some(tree) = new.or(old)
            && tree::load_ignore_file(self.objects, &mut self.ignores, tree, path)?.is_some()
        {
            return Ok(ChangeScope::Structural);
        }
        if [old, new].into_iter().flatten().any(|tree| has_marker(tree) || !is_sorted(tree)) {
            return Ok(ChangeScope::Structural);
        }
        let mut olds = old.into_iter().flatten().peekable();
        let mut news = new.into_iter().flatten().peekable();
        loop {
            let side = match (olds.peek(), news.peek()) {
                (None, None) => return Ok(ChangeScope::Plain),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => compare_names(a, b),
            };
            let before = if side.is_le() { olds.next() } else { None };
            let after = if side.is_ge() { news.next() } else { None };
            if self.entry(before.as_ref(), after.as_ref(), path, depth)? == ChangeScope::Structural {
                return Ok(ChangeScope::Structural);
            }
        }
    }

    fn entry(
        &mut self,
        old: Option<&TreeEntry<'_>>,
        new: Option<&TreeEntry<'_>>,
        folder: &str,
        depth: usize,
    ) -> Result<ChangeScope, WalkStop> {
        let mode = |entry: Option<&TreeEntry<'_>>| entry.map(TreeEntry::filemode_raw);
        let id = |entry: Option<&TreeEntry<'_>>| entry.map(TreeEntry::id);
        let kinds = (mode(old).map(tree::kind), mode(new).map(tree::kind));
        if id(old) == id(new) && kinds.0 == kinds.1 {
            return Ok(ChangeScope::Plain);
        }
        let Some(any) = new.or(old) else { return Ok(ChangeScope::Plain) };
        if any.name_bytes() == file_names::IGNORE_FILE.as_bytes() {
            return Ok(ChangeScope::Structural);
        }
        let judge = |kind| tree::judge(&self.ignores, folder, any.name_bytes(), kind, depth);
        // Names are equal and folders pair only with folders, but a file may have become a link.
        let judged = (kinds.0.map(judge), kinds.1.map(judge));
        match judged {
            (Some(JudgedEntry::Skip) | None, Some(JudgedEntry::Skip) | None) => Ok(ChangeScope::Plain),
            (Some(JudgedEntry::Take(path)), Some(JudgedEntry::Take(_)) | None)
            | (None, Some(JudgedEntry::Take(path))) => {
                self.budget.take_path(&path)?;
                self.pairs.push(ChangedPath { path, old: id(old), new: id(new) });
                Ok(ChangeScope::Plain)
            }
            (Some(JudgedEntry::Enter(path)), Some(JudgedEntry::Enter(_)) | None)
            | (None, Some(JudgedEntry::Enter(path))) => {
                self.compare_folders(id(old), id(new), path, depth + 1)
            }
            _ => Ok(ChangeScope::Structural),
        }
    }
}

/// Returns whether a tree is in order; trees that git did not make may be in any.
fn is_sorted(tree: &Tree<'_>) -> bool {
    tree.iter().zip(tree.iter().skip(1)).all(|(a, b)| compare_names(&a, &b).is_lt())
}

fn has_marker(tree: &Tree<'_>) -> bool {
    file_names::RENDERER_FILES.iter().any(|(name, _)| tree.get_name_bytes(name.as_bytes()).is_some())
}
