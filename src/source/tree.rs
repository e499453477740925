//! The walk over the trees of one revision: which files it has, which it refuses.

use std::ops::ControlFlow;

use git2::{Oid, Tree};

use super::file_names::{self, EntryKind, EntryVerdict, IgnoreFiles};
use super::object_stores::ObjectStores;
use super::refusal::{RefusalReason, RefusedFile};

/// git's modes of a symbolic link, a submodule and a folder.
const LINK_MODE: i32 = 0o120_000;
const GITLINK_MODE: i32 = 0o160_000;
const TREE_MODE: i32 = 0o040_000;
const FORMAT_MASK: i32 = 0o170_000;
const REGULAR_MODE: i32 = 0o100_000;

/// Returns the kind of an entry by its raw mode, because the cooked one hides odd modes.
pub(super) fn kind(mode: i32) -> EntryKind {
    match mode & FORMAT_MASK {
        LINK_MODE => EntryKind::Symlink,
        GITLINK_MODE => EntryKind::Submodule,
        TREE_MODE => EntryKind::Folder,
        REGULAR_MODE => EntryKind::File,
        _ => EntryKind::Other,
    }
}

/// Returns the mode of an entry of this kind, as git writes it. git knows no mode of another kind,
/// and looks for nothing behind it.
pub(super) const fn mode_text(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "100644",
        EntryKind::Folder => "40000",
        EntryKind::Symlink => "120000",
        EntryKind::Submodule => "160000",
        EntryKind::Other => "10644",
    }
}

/// The reason for which a walk ended early.
pub(super) enum WalkStop {
    Git(git2::Error),
    TooMany,
}

impl From<git2::Error> for WalkStop {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

/// The bytes of names that count as one entry. An honest path has fewer.
const NAME_BYTES_PER_ENTRY: usize = 256;

/// The number of entries that a walk may still look at: trees can be nested into bombs of any size.
///
/// A long path counts as several entries, and so do long names in a tree. So it bounds the bytes
/// too, of which a walk holds all trees on the way to a file.
#[derive(Debug)]
pub(super) struct EntryBudget {
    most: usize,
    left: usize,
}

impl EntryBudget {
    /// Returns a budget of so many entries.
    pub(super) const fn new(most: usize) -> Self {
        Self { most, left: most }
    }

    /// Returns the entries that were taken.
    pub(super) const fn count(&self) -> usize {
        self.most - self.left
    }

    /// Takes the entries of a tree.
    pub(super) fn take_tree(&mut self, tree: &Tree<'_>, bytes: usize) -> Result<(), WalkStop> {
        self.take(tree.len().max(bytes / NAME_BYTES_PER_ENTRY))
    }

    /// Reads two trees that are to be compared, where they are there, and takes their entries.
    pub(super) fn load<'a>(
        &mut self,
        objects: &'a ObjectStores,
        trees: [Option<Oid>; 2],
    ) -> Result<[Option<Tree<'a>>; 2], WalkStop> {
        let [old, new] = trees;
        Ok([self.load_tree(objects, old)?, self.load_tree(objects, new)?])
    }

    /// Reads a tree, where it is there, and takes its entries.
    pub(super) fn load_tree<'a>(
        &mut self,
        objects: &'a ObjectStores,
        id: Option<Oid>,
    ) -> Result<Option<Tree<'a>>, WalkStop> {
        let Some(id) = id else { return Ok(None) };
        let (tree, bytes) = objects.sized_tree(id)?;
        self.take_tree(&tree, bytes)?;
        Ok(Some(tree))
    }

    /// Takes one entry whose path has so many bytes.
    pub(super) fn take_entry(&mut self, bytes: usize) -> Result<(), WalkStop> {
        self.take((bytes / NAME_BYTES_PER_ENTRY).max(1))
    }

    /// Takes what a path counts beyond its entry.
    pub(super) fn take_path(&mut self, path: &str) -> Result<(), WalkStop> {
        self.take(path.len() / NAME_BYTES_PER_ENTRY)
    }

    fn take(&mut self, count: usize) -> Result<(), WalkStop> {
        self.left = self.left.checked_sub(count).ok_or(WalkStop::TooMany)?;
        Ok(())
    }
}

/// The results of a walk.
pub(super) enum WalkSink {
    File(String, Oid),
    Refused(RefusedFile),
}

/// A walk over a tree in the order of paths.
pub(super) struct TreeWalk<'a, F> {
    objects: &'a ObjectStores,
    budget: EntryBudget,
    ignores: IgnoreFiles,
    found: F,
}

impl<'a, F: FnMut(WalkSink) -> ControlFlow<()>> TreeWalk<'a, F> {
    pub(super) fn new(objects: &'a ObjectStores, most: usize, found: F) -> Self {
        Self { objects, budget: EntryBudget::new(most), ignores: IgnoreFiles::default(), found }
    }

    /// Walks everything under a root, and returns how many entries it counted.
    pub(super) fn run(mut self, root: Oid) -> Result<usize, WalkStop> {
        let _ = self.walk_folder(root, String::new(), 0)?;
        Ok(self.budget.count())
    }

    fn walk_folder(&mut self, id: Oid, path: String, depth: usize) -> Result<ControlFlow<()>, WalkStop> {
        let (tree, bytes) = self.objects.sized_tree(id)?;
        self.budget.take_tree(&tree, bytes)?;
        let outside = self.ignores.depth();
        let flow = match self.enter_folder(&tree, &path)? {
            Some(refusal) => (self.found)(WalkSink::Refused(refusal)),
            None => self.entries(&tree, &path, depth)?,
        };
        self.ignores.leave_to(outside);
        Ok(flow)
    }

    /// Reads the folder's ignore file, then looks for what makes it a folder to be rendered.
    fn enter_folder(&mut self, tree: &Tree<'_>, path: &str) -> Result<Option<RefusedFile>, WalkStop> {
        if let Some(refusal) = load_ignore_file(self.objects, &mut self.ignores, tree, path)? {
            return Ok(Some(refusal));
        }
        Ok(renderer_refusal(tree, path, &self.ignores))
    }

    fn entries(&mut self, tree: &Tree<'_>, path: &str, depth: usize) -> Result<ControlFlow<()>, WalkStop> {
        for entry in tree {
            let kind = kind(entry.filemode_raw());
            let flow = match classify_entry(&self.ignores, path, entry.name_bytes(), kind, depth) {
                ClassifiedEntry::Skip => continue,
                ClassifiedEntry::Take(path) => {
                    self.budget.take_path(&path)?;
                    (self.found)(WalkSink::File(path, entry.id()))
                }
                ClassifiedEntry::Refuse(refusal) => {
                    self.budget.take_path(&refusal.path)?;
                    (self.found)(WalkSink::Refused(refusal))
                }
                ClassifiedEntry::Enter(path) => self.walk_folder(entry.id(), path, depth + 1)?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The verdict on an entry with its whole path.
pub(super) enum ClassifiedEntry {
    Skip,
    Take(String),
    Enter(String),
    Refuse(RefusedFile),
}

/// Judges an entry of a folder: ignore files first, then its name and kind.
pub(super) fn classify_entry(
    ignores: &IgnoreFiles,
    folder: &str,
    name: &[u8],
    kind: EntryKind,
    depth: usize,
) -> ClassifiedEntry {
    let verdict = file_names::classify_name(name, kind);
    if verdict == EntryVerdict::Skip {
        return ClassifiedEntry::Skip;
    }
    let full = [folder.as_bytes(), if folder.is_empty() { b"" } else { b"/" }, name].concat();
    if ignores.is_ignored(&full, kind) {
        return ClassifiedEntry::Skip;
    }
    // Another text only for names that are refused.
    let path = match name.get(..file_names::MAX_FILE_NAME_BYTES) {
        Some(begin) if begin != name => {
            join(folder, &file_names::sanitize_text(&[begin, "…".as_bytes()].concat()))
        }
        _ => file_names::sanitize_text(&full),
    };
    match verdict {
        EntryVerdict::Enter if depth >= file_names::MAX_FOLDER_DEPTH => {
            ClassifiedEntry::Refuse(RefusedFile::new(path, RefusalReason::TooDeep))
        }
        EntryVerdict::Enter => ClassifiedEntry::Enter(path),
        EntryVerdict::Take => ClassifiedEntry::Take(path),
        EntryVerdict::Refuse(reason) => ClassifiedEntry::Refuse(RefusedFile::new(path, reason)),
        EntryVerdict::Skip => ClassifiedEntry::Skip,
    }
}

/// Returns the refusal of a folder that is to be rendered first; none for any other folder.
pub(super) fn renderer_refusal(tree: &Tree<'_>, path: &str, ignores: &IgnoreFiles) -> Option<RefusedFile> {
    file_names::RENDERER_FILES.into_iter().find_map(|(name, reason)| {
        let entry = tree.get_name_bytes(name.as_bytes())?;
        let (full, kind) = (join(path, name), kind(entry.filemode_raw()));
        let counts = file_names::can_mark(kind) && !ignores.is_ignored(full.as_bytes(), kind);
        counts.then(|| RefusedFile::new(full, reason))
    })
}

/// Puts a folder's ignore file on the stack; a refusal says why it cannot be understood.
pub(super) fn load_ignore_file(
    objects: &ObjectStores,
    ignores: &mut IgnoreFiles,
    tree: &Tree<'_>,
    path: &str,
) -> Result<Option<RefusedFile>, WalkStop> {
    let Some(entry) = tree.get_name_bytes(file_names::IGNORE_FILE.as_bytes()) else { return Ok(None) };
    let refusal = RefusedFile::new(join(path, file_names::IGNORE_FILE), RefusalReason::BadIgnore);
    if kind(entry.filemode_raw()) != EntryKind::File
        || objects.size(entry.id())? > file_names::MAX_IGNORE_FILE_BYTES
    {
        return Ok(Some(refusal));
    }
    let text = objects.read(entry.id())?;
    Ok(ignores.push(path.as_bytes(), &text).err().map(|detail| refusal.with_detail(detail)))
}

/// Returns the path of an entry of a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Sorts the files of trees that git would not have made, and takes out the names that come twice.
pub(super) fn sort_entries(files: &mut Vec<(String, Oid)>) -> Vec<RefusedFile> {
    files.sort();
    let mut twice = Vec::new();
    files.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            twice.push(RefusedFile::new(kept.0.clone(), RefusalReason::Name).with_detail("it comes twice"));
        }
        same
    });
    files.retain(|(path, _)| !twice.iter().any(|refusal| refusal.path == *path));
    twice.dedup();
    twice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_entry_is_that_of_its_raw_mode() {
        let check = |mode: i32, expected: EntryKind| {
            assert_eq!(kind(mode), expected, "{mode:o}");
            let written = i32::from_str_radix(mode_text(expected), 8).unwrap();
            assert_eq!(kind(written), expected, "{written:o}");
        };
        for mode in [0o100_644, 0o100_755, 0o100_600] {
            check(mode, EntryKind::File);
        }
        check(0o040_000, EntryKind::Folder);
        check(0o120_000, EntryKind::Symlink);
        check(0o160_000, EntryKind::Submodule);
        for mode in [0, 0o644, 0o010_644, 0o060_000] {
            check(mode, EntryKind::Other);
        }
    }

    #[test]
    fn a_long_path_counts_as_several_entries() {
        let mut budget = EntryBudget::new(6);
        let path = |bytes: usize| "a".repeat(bytes);
        assert!(budget.take_path(&path(NAME_BYTES_PER_ENTRY - 1)).is_ok());
        assert_eq!(budget.count(), 0);
        assert!(budget.take_path(&path(NAME_BYTES_PER_ENTRY)).is_ok());
        assert_eq!(budget.count(), 1);
        assert!(budget.take_entry(1).is_ok());
        assert_eq!(budget.count(), 2);
        assert!(budget.take_entry(NAME_BYTES_PER_ENTRY * 3).is_ok());
        assert_eq!(budget.count(), 5);
        // All of it may be taken, and no more.
        assert!(budget.take_entry(NAME_BYTES_PER_ENTRY * 2).is_err());
        assert!(budget.take_entry(1).is_ok());
        assert!(budget.take_entry(1).is_err());
    }

    /// Returns the verdict on an entry, and the path that is named by it.
    fn classified(folder: &str, name: &str, kind: EntryKind, depth: usize) -> (&'static str, String) {
        let mut ignores = IgnoreFiles::default();
        ignores.push(b"", b"/web/ignored.yaml\n").unwrap();
        match classify_entry(&ignores, folder, name.as_bytes(), kind, depth) {
            ClassifiedEntry::Skip => ("skip", String::new()),
            ClassifiedEntry::Take(path) => ("take", path),
            ClassifiedEntry::Enter(path) => ("enter", path),
            ClassifiedEntry::Refuse(refusal) => (refusal.reason.code(), refusal.path),
        }
    }

    #[test]
    fn an_entry_is_judged_with_its_whole_path_and_depth() {
        let check = |folder: &str, name: &str, kind: EntryKind, verdict: &str, path: &str| {
            let found = classified(folder, name, kind, 1);
            assert_eq!(found, (verdict, path.to_owned()), "{folder} {name}");
        };
        check("", "a.yaml", EntryKind::File, "take", "a.yaml");
        check("web", "a.yaml", EntryKind::File, "take", "web/a.yaml");
        check("web", "ignored.yaml", EntryKind::File, "skip", "");
        check("", "ignored.yaml", EntryKind::File, "take", "ignored.yaml");
        check("web", "link", EntryKind::Symlink, "symlink", "web/link");
        check("web", "a.txt", EntryKind::File, "skip", "");
        let long = "a".repeat(file_names::MAX_FILE_NAME_BYTES);
        check("web", &long, EntryKind::Folder, "enter", &format!("web/{long}"));
        check("web", &format!("{long}b"), EntryKind::Folder, "file-name", &format!("web/{long}\u{2026}"));
        let most = file_names::MAX_FOLDER_DEPTH;
        let enters = |depth: usize| classified("web", "folder", EntryKind::Folder, depth).0;
        assert_eq!((enters(most - 1), enters(most)), ("enter", "too-deep"));
        assert_eq!(classified("web", "a.yaml", EntryKind::File, most).0, "take");
    }

    #[test]
    fn a_name_that_comes_twice_is_refused_once_and_taken_never() {
        let id = |number: u8| Oid::from_bytes(&[number; 20]).unwrap();
        let file = |path: &str, number: u8| (path.to_owned(), id(number));
        let mut files = vec![file("b", 1), file("c", 1), file("b", 2), file("a", 3), file("b", 3)];
        let refused = sort_entries(&mut files);
        assert_eq!(files, [file("a", 3), file("c", 1)]);
        assert_eq!(refused, [RefusedFile::new("b", RefusalReason::Name).with_detail("it comes twice")]);
    }
}
