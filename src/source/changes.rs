//! What differs between two trees, without looking at what is equal.
//!
//! libgit2's own comparison never skips equal subtrees (40 ms instead of 0.1 ms at 100,000 files).

use std::cmp::Ordering;

use git2::{Oid, Tree, TreeEntry};

use super::names::{self, Ignores, Kind};
use super::objects::Objects;
use super::tree::{self, Judged, Stop};

/// One file that differs, sizes not looked at yet.
pub(super) struct Pair {
    pub(super) path: String,
    pub(super) old: Option<Oid>,
    pub(super) new: Option<Oid>,
}

/// Compares two trees; none where more than the files' contents differ (an ignore file, anything that is
/// refused), so that only a comparison of both whole lists is right.
pub(super) fn compare(objects: &Objects, old: Oid, new: Oid, most: usize) -> Result<Option<Vec<Pair>>, Stop> {
    let mut walk = Walk { objects, ignores: Ignores::default(), left: most, pairs: Vec::new() };
    let plain = walk.folders(Some(old), Some(new), String::new(), 0)?;
    Ok((plain == Finding::Plain).then_some(walk.pairs))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Plain,
    Structural,
}

struct Walk<'a> {
    objects: &'a Objects,
    ignores: Ignores,
    left: usize,
    pairs: Vec<Pair>,
}

/// Git's order inside a tree: a folder's name counts as if it ended in a slash.
fn order(a: &TreeEntry<'_>, b: &TreeEntry<'_>) -> Ordering {
    let slash = |entry: &TreeEntry<'_>| tree::kind(entry.filemode_raw()) == Kind::Folder;
    let (left, right) = (a.name_bytes(), b.name_bytes());
    if left == right {
        return slash(a).cmp(&slash(b));
    }
    let end = |entry| slash(entry).then_some(&b'/');
    left.iter().chain(end(a)).cmp(right.iter().chain(end(b)))
}

impl Walk<'_> {
    fn folders(
        &mut self,
        old: Option<Oid>,
        new: Option<Oid>,
        path: String,
        depth: usize,
    ) -> Result<Finding, Stop> {
        let load = |id: Option<Oid>| id.map(|id| self.objects.tree(id)).transpose();
        let (old, new) = (load(old)?, load(new)?);
        let size = |tree: &Option<Tree<'_>>| tree.as_ref().map_or(0, Tree::len);
        self.left = self.left.checked_sub(size(&old) + size(&new)).ok_or(Stop::TooMany)?;
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
    ) -> Result<Finding, Stop> {
        // Where it differs from the old one the merge below comes upon it and gives up.
        if let Some(tree) = new.or(old)
            && tree::load_ignore_file(self.objects, &mut self.ignores, tree, path)?.is_some()
        {
            return Ok(Finding::Structural);
        }
        if [old, new].into_iter().flatten().any(|tree| has_marker(tree) || !is_sorted(tree)) {
            return Ok(Finding::Structural);
        }
        let mut olds = old.into_iter().flatten().peekable();
        let mut news = new.into_iter().flatten().peekable();
        loop {
            let side = match (olds.peek(), news.peek()) {
                (None, None) => return Ok(Finding::Plain),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => order(a, b),
            };
            let before = if side.is_le() { olds.next() } else { None };
            let after = if side.is_ge() { news.next() } else { None };
            if self.entry(before.as_ref(), after.as_ref(), path, depth)? == Finding::Structural {
                return Ok(Finding::Structural);
            }
        }
    }

    fn entry(
        &mut self,
        old: Option<&TreeEntry<'_>>,
        new: Option<&TreeEntry<'_>>,
        folder: &str,
        depth: usize,
    ) -> Result<Finding, Stop> {
        let mode = |entry: Option<&TreeEntry<'_>>| entry.map(TreeEntry::filemode_raw);
        let id = |entry: Option<&TreeEntry<'_>>| entry.map(TreeEntry::id);
        let kinds = (mode(old).map(tree::kind), mode(new).map(tree::kind));
        if id(old) == id(new) && kinds.0 == kinds.1 {
            return Ok(Finding::Plain);
        }
        let Some(any) = new.or(old) else { return Ok(Finding::Plain) };
        if any.name_bytes() == names::IGNORE_FILE.as_bytes() {
            return Ok(Finding::Structural);
        }
        let judge = |kind| tree::judge(&self.ignores, folder, any.name_bytes(), kind, depth);
        // Names are equal and folders pair only with folders, but a file may have become a link.
        let judged = (kinds.0.map(judge), kinds.1.map(judge));
        match judged {
            (Some(Judged::Skip) | None, Some(Judged::Skip) | None) => Ok(Finding::Plain),
            (Some(Judged::Take(path)), Some(Judged::Take(_)) | None) | (None, Some(Judged::Take(path))) => {
                self.pairs.push(Pair { path, old: id(old), new: id(new) });
                Ok(Finding::Plain)
            }
            (Some(Judged::Enter(path)), Some(Judged::Enter(_)) | None)
            | (None, Some(Judged::Enter(path))) => self.folders(id(old), id(new), path, depth + 1),
            _ => Ok(Finding::Structural),
        }
    }
}

/// Trees that git did not make may be in any order.
fn is_sorted(tree: &Tree<'_>) -> bool {
    tree.iter().zip(tree.iter().skip(1)).all(|(a, b)| order(&a, &b).is_lt())
}

fn has_marker(tree: &Tree<'_>) -> bool {
    names::MARKERS.iter().any(|(name, _)| tree.get_name_bytes(name.as_bytes()).is_some())
}
