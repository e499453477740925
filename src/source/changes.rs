//! The difference of two trees, without a look at their equal parts.
//!
//! libgit2's own comparison never skips equal subtrees (40 ms instead of 0.1 ms at 100,000 files).

use std::cmp::Ordering;

use git2::{Oid, Tree, TreeEntry};

use super::file_names::{self, EntryKind, IgnoreFiles};
use super::object_stores::ObjectStores;
use super::tree::{self, ClassifiedEntry, EntryBudget, WalkStop};

/// One file that differs, sizes not looked at yet.
pub(super) struct ChangedPath {
    pub(super) path: String,
    pub(super) old: Option<Oid>,
    pub(super) new: Option<Oid>,
}

/// The difference of two trees.
pub(super) struct TreeDifference {
    /// The files that differ.
    pub(super) pairs: Vec<ChangedPath>,
    /// The entries that a walk counts in the folders that differ, before and after.
    pub(super) old_entries: usize,
    pub(super) new_entries: usize,
}

/// The treatment of folders that are to be rendered first, of which nothing is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RootTreatment {
    /// Where one differs, only whole lists can be compared.
    Structural,
    /// One that is refused for the same file in both trees is the same.
    Refused,
}

/// Compares two trees. None where more than the files' contents differ (an ignore file, a refused
/// file), so that only a comparison of both whole lists is right. Looks at a bounded number of
/// entries of each tree.
pub(super) fn compare(
    objects: &ObjectStores,
    old: Oid,
    new: Oid,
    most: usize,
    roots: RootTreatment,
) -> Result<Option<TreeDifference>, WalkStop> {
    let (ignores, pairs) = (IgnoreFiles::default(), Vec::new());
    let (old_budget, new_budget) = (EntryBudget::new(most), EntryBudget::new(most));
    let mut walk = TreeDiffWalk { objects, ignores, old_budget, new_budget, roots, pairs };
    let plain = walk.compare_folders(Some(old), Some(new), String::new(), 0)?;
    Ok((plain == ChangeScope::Plain).then(|| TreeDifference {
        old_entries: walk.old_budget.count(),
        new_entries: walk.new_budget.count(),
        pairs: walk.pairs,
    }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeScope {
    Plain,
    Structural,
}

struct TreeDiffWalk<'a> {
    objects: &'a ObjectStores,
    ignores: IgnoreFiles,
    old_budget: EntryBudget,
    new_budget: EntryBudget,
    roots: RootTreatment,
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
        let old = self.old_budget.load_tree(self.objects, old)?;
        let new = self.new_budget.load_tree(self.objects, new)?;
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
        if self.roots == RootTreatment::Refused
            && let (Some(old), Some(new)) = (old, new)
            && self.is_refused_alike(old, new, path)
        {
            return Ok(ChangeScope::Plain);
        }
        if [old, new].into_iter().flatten().any(|tree| has_marker(tree) || !is_sorted(tree)) {
            return Ok(ChangeScope::Structural);
        }
        let mut olds = old.into_iter().flatten().peekable();
        let mut new_entries = new.into_iter().flatten().peekable();
        loop {
            let side = match (olds.peek(), new_entries.peek()) {
                (None, None) => return Ok(ChangeScope::Plain),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => compare_names(a, b),
            };
            let before = if side.is_le() { olds.next() } else { None };
            let after = if side.is_ge() { new_entries.next() } else { None };
            if self.entry(before.as_ref(), after.as_ref(), path, depth)? == ChangeScope::Structural {
                return Ok(ChangeScope::Structural);
            }
        }
    }

    /// Returns whether a folder is to be rendered for the same file in both trees. Nothing else of it
    /// is listed then.
    fn is_refused_alike(&self, old: &Tree<'_>, new: &Tree<'_>, path: &str) -> bool {
        let ignore_file = |tree: &Tree<'_>| {
            let entry = tree.get_name_bytes(file_names::IGNORE_FILE.as_bytes());
            entry.map(|entry| (entry.filemode_raw(), entry.id()))
        };
        let refusal = |tree: &Tree<'_>| tree::renderer_refusal(tree, path, &self.ignores);
        ignore_file(old) == ignore_file(new)
            && refusal(old).is_some_and(|refused| Some(refused) == refusal(new))
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
        let classify = |kind| tree::classify_entry(&self.ignores, folder, any.name_bytes(), kind, depth);
        // Names are equal and folders pair only with folders, but a file may have become a link.
        let classified = (kinds.0.map(classify), kinds.1.map(classify));
        match classified {
            (Some(ClassifiedEntry::Skip) | None, Some(ClassifiedEntry::Skip) | None) => {
                Ok(ChangeScope::Plain)
            }
            (Some(ClassifiedEntry::Take(path)), Some(ClassifiedEntry::Take(_)) | None)
            | (None, Some(ClassifiedEntry::Take(path))) => {
                if old.is_some() {
                    self.old_budget.take_path(&path)?;
                }
                if new.is_some() {
                    self.new_budget.take_path(&path)?;
                }
                self.pairs.push(ChangedPath { path, old: id(old), new: id(new) });
                Ok(ChangeScope::Plain)
            }
            (Some(ClassifiedEntry::Enter(path)), Some(ClassifiedEntry::Enter(_)) | None)
            | (None, Some(ClassifiedEntry::Enter(path))) => {
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
    let may_mark = |entry: TreeEntry<'_>| file_names::can_mark(tree::kind(entry.filemode_raw()));
    let mut names = file_names::RENDERER_FILES.iter().map(|(name, _)| name.as_bytes());
    names.any(|name| tree.get_name_bytes(name).is_some_and(may_mark))
}
