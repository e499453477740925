//! The walk over the trees of one revision: which files it has, which it refuses.

use std::ops::ControlFlow;

use git2::{Oid, Tree};

use super::names::{self, Ignores, Kind, Verdict};
use super::objects::Objects;
use super::refusal::{Reason, Refusal};

/// How git writes a symbolic link, a submodule and a folder.
const LINK: i32 = 0o120_000;
const GITLINK: i32 = 0o160_000;
const TREE: i32 = 0o040_000;
const FORMAT: i32 = 0o170_000;
const REGULAR: i32 = 0o100_000;

/// What an entry is; the raw mode, because the cooked one hides odd modes.
pub(super) fn kind(mode: i32) -> Kind {
    match mode & FORMAT {
        LINK => Kind::Symlink,
        GITLINK => Kind::Submodule,
        TREE => Kind::Folder,
        REGULAR => Kind::File,
        _ => Kind::Other,
    }
}

/// Why a walk ended early.
pub(super) enum Stop {
    Git(git2::Error),
    TooMany,
}

impl From<git2::Error> for Stop {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

/// What the walk finds.
pub(super) enum Found {
    File(String, Oid),
    Refused(Refusal),
}

/// Walks a tree in the order of paths.
pub(super) struct Walk<'a, F> {
    objects: &'a Objects,
    /// How many entries may still be looked at: trees can be nested into bombs of any size.
    left: usize,
    ignores: Ignores,
    found: F,
}

impl<'a, F: FnMut(Found) -> ControlFlow<()>> Walk<'a, F> {
    pub(super) fn new(objects: &'a Objects, most: usize, found: F) -> Self {
        Self { objects, left: most, ignores: Ignores::default(), found }
    }

    /// Walks everything under a root.
    pub(super) fn run(mut self, root: Oid) -> Result<(), Stop> {
        let _ = self.folder(root, String::new(), 0)?;
        Ok(())
    }

    fn folder(&mut self, id: Oid, path: String, depth: usize) -> Result<ControlFlow<()>, Stop> {
        let tree = self.objects.tree(id)?;
        self.left = self.left.checked_sub(tree.len()).ok_or(Stop::TooMany)?;
        let outside = self.ignores.depth();
        let flow = match self.enter(&tree, &path)? {
            Some(refusal) => (self.found)(Found::Refused(refusal)),
            None => self.entries(&tree, &path, depth)?,
        };
        self.ignores.leave_to(outside);
        Ok(flow)
    }

    /// Reads the folder's ignore file, then looks for what makes it a folder to be rendered.
    fn enter(&mut self, tree: &Tree<'_>, path: &str) -> Result<Option<Refusal>, Stop> {
        if let Some(refusal) = load_ignore_file(self.objects, &mut self.ignores, tree, path)? {
            return Ok(Some(refusal));
        }
        Ok(names::MARKERS.into_iter().find_map(|(name, reason)| {
            let entry = tree.get_name_bytes(name.as_bytes())?;
            let full = join(path, name);
            let ignored = self.ignores.ignored(full.as_bytes(), kind(entry.filemode_raw()));
            (!ignored).then(|| Refusal::new(full, reason))
        }))
    }

    fn entries(&mut self, tree: &Tree<'_>, path: &str, depth: usize) -> Result<ControlFlow<()>, Stop> {
        for entry in tree {
            let kind = kind(entry.filemode_raw());
            let flow = match judge(&self.ignores, path, entry.name_bytes(), kind, depth) {
                Judged::Skip => continue,
                Judged::Take(path) => (self.found)(Found::File(path, entry.id())),
                Judged::Refuse(refusal) => (self.found)(Found::Refused(refusal)),
                Judged::Enter(path) => self.folder(entry.id(), path, depth + 1)?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The verdict on an entry with its whole path.
pub(super) enum Judged {
    Skip,
    Take(String),
    Enter(String),
    Refuse(Refusal),
}

/// Judges an entry of a folder: ignore files first, then its name and kind.
pub(super) fn judge(ignores: &Ignores, folder: &str, name: &[u8], kind: Kind, depth: usize) -> Judged {
    let verdict = names::judge(name, kind);
    if verdict == Verdict::Skip {
        return Judged::Skip;
    }
    let full = [folder.as_bytes(), if folder.is_empty() { b"" } else { b"/" }, name].concat();
    if ignores.ignored(&full, kind) {
        return Judged::Skip;
    }
    // Another text only for names that are refused.
    let path = names::shown(&full);
    match verdict {
        Verdict::Enter if depth >= names::MAX_DEPTH => Judged::Refuse(Refusal::new(path, Reason::TooDeep)),
        Verdict::Enter => Judged::Enter(path),
        Verdict::Take => Judged::Take(path),
        Verdict::Refuse(reason) => Judged::Refuse(Refusal::new(path, reason)),
        Verdict::Skip => Judged::Skip,
    }
}

/// Puts a folder's ignore file on the stack; a refusal says why it cannot be understood.
pub(super) fn load_ignore_file(
    objects: &Objects,
    ignores: &mut Ignores,
    tree: &Tree<'_>,
    path: &str,
) -> Result<Option<Refusal>, Stop> {
    let Some(entry) = tree.get_name_bytes(names::IGNORE_FILE.as_bytes()) else { return Ok(None) };
    let refusal = Refusal::new(join(path, names::IGNORE_FILE), Reason::BadIgnore);
    if kind(entry.filemode_raw()) != Kind::File || objects.size(entry.id())? > names::MAX_IGNORE_FILE {
        return Ok(Some(refusal));
    }
    let text = objects.read(entry.id())?;
    Ok(ignores.push(path.as_bytes(), &text).err().map(|detail| refusal.detail(detail)))
}

/// The path of an entry of a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
