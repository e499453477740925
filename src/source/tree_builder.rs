//! Git trees and snapshot commits out of a plain list of files: the same list always gets the same
//! ids.

use git2::{ObjectType, Oid};

use super::file_names::EntryKind;
use super::refusal::RefusedFile;
use super::rendering::RootKey;
use super::tree;
use crate::object::{Revision, hex_text};

/// Stands for author, committer and dates, so that equal contents are equal commits.
const COMMIT_AUTHOR: &str = "rhumb <rhumb@localhost> 0 +0000";
/// The address of it.
const COMMIT_AUTHOR_EMAIL: &str = "rhumb@localhost";

/// A sink for the bytes of objects, which gives the id of each and may also store it.
pub(super) trait ObjectSink {
    fn put(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, git2::Error>;
}

/// Only computes the ids.
pub(super) struct ObjectHasher;

impl ObjectSink for ObjectHasher {
    fn put(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, git2::Error> {
        Oid::hash_object(kind, bytes)
    }
}

/// Stores every object.
impl ObjectSink for git2::Odb<'_> {
    fn put(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, git2::Error> {
        self.write(kind, bytes)
    }
}

/// An entry of a tree that is made, by its whole path.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<'a> {
    pub(super) path: &'a str,
    pub(super) kind: EntryKind,
    pub(super) id: Oid,
}

impl<'a> NewEntry<'a> {
    /// Returns a regular file.
    pub(super) const fn file(path: &'a str, id: Oid) -> Self {
        Self { path, kind: EntryKind::File, id }
    }
}

/// Makes the commit of a folder: no parent, no date, no author, so that equal folders are equal
/// revisions. The entries are ordered by path; none is a folder of another.
pub(super) fn write_commit(
    sink: &mut impl ObjectSink,
    entries: &[NewEntry<'_>],
    refusals: &[RefusedFile],
) -> Result<Oid, git2::Error> {
    let tree = write_folder(sink, entries, 0)?;
    let mut text = format!("tree {tree}\nauthor {COMMIT_AUTHOR}\ncommitter {COMMIT_AUTHOR}\n\nSnapshot\n");
    for refusal in refusals {
        text.push_str(&refusal.line());
        text.push('\n');
    }
    sink.put(ObjectType::Commit, text.as_bytes())
}

/// Makes the folder of one root. The files are ordered by name, and none is in a folder of its own.
pub(super) fn write_root_folder(
    sink: &mut impl ObjectSink,
    files: &[NewEntry<'_>],
) -> Result<Oid, git2::Error> {
    write_folder(sink, files, 0)
}

/// Makes the commit of a rendered revision from the folders of its roots.
pub(super) fn write_rendered_commit(
    sink: &mut impl ObjectSink,
    folders: &[Oid],
    subject: RenderSubject<'_>,
) -> Result<RenderedCommit, git2::Error> {
    let mut bytes = Vec::new();
    for (folder, number) in folders.iter().zip(0_usize..) {
        // Names of one width are in git's order.
        entry(&mut bytes, EntryKind::Folder, &format!("{number:06}"), *folder);
    }
    let tree = sink.put(ObjectType::Tree, &bytes)?;
    Ok(RenderedCommit { id: write_render(sink, tree, &[], subject)?, tree })
}

/// The subject of a rendered commit, which its trailers name.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenderSubject<'a> {
    /// The revision that was rendered.
    pub(super) revision: &'a Revision,
    /// The key of all its roots.
    pub(super) key: &'a RootKey,
}

/// Makes the commit of one render. With parents it keeps several renders of one revision, the
/// newest first, and its tree is that of the newest.
pub(super) fn write_render(
    sink: &mut impl ObjectSink,
    tree: Oid,
    parents: &[Oid],
    subject: RenderSubject<'_>,
) -> Result<Oid, git2::Error> {
    let parents: Vec<String> = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
    let (parents, revision, key) = (parents.concat(), subject.revision, hex_text(subject.key));
    let text = format!(
        "tree {tree}\n{parents}author {COMMIT_AUTHOR}\ncommitter {COMMIT_AUTHOR}\n\n\
         Rendered\n\nSource-Commit: {revision}\nRender-Key: {key}\n"
    );
    sink.put(ObjectType::Commit, text.as_bytes())
}

/// Returns whether a commit is that of a rendered revision, which is no revision itself.
pub(super) fn is_rendered_commit(commit: &git2::Commit<'_>) -> bool {
    let author = commit.author();
    author.when().seconds() == 0
        && author.email_bytes() == COMMIT_AUTHOR_EMAIL.as_bytes()
        && commit.message_bytes().starts_with(b"Rendered\n")
}

/// The commit of a rendered revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenderedCommit {
    /// Its id.
    pub(super) id: Oid,
    /// The id of its tree.
    pub(super) tree: Oid,
}

/// Writes one tree of the entries that share the first `skip` bytes of their paths.
fn write_folder(
    sink: &mut impl ObjectSink,
    entries: &[NewEntry<'_>],
    skip: usize,
) -> Result<Oid, git2::Error> {
    let mut tree = Vec::new();
    let mut rest = entries;
    while let Some(NewEntry { path, kind, id }) = rest.first() {
        let inside = path.get(skip..).unwrap_or_default();
        let Some((name, _)) = inside.split_once('/') else {
            entry(&mut tree, *kind, inside, *id);
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        let prefix = path.get(..=skip + name.len()).unwrap_or_default();
        let count = rest.iter().take_while(|entry| entry.path.starts_with(prefix)).count();
        let (below, after) = rest.split_at(count);
        entry(&mut tree, EntryKind::Folder, name, write_folder(sink, below, prefix.len())?);
        rest = after;
    }
    sink.put(ObjectType::Tree, &tree)
}

fn entry(bytes: &mut Vec<u8>, kind: EntryKind, name: &str, id: Oid) {
    bytes.extend_from_slice(tree::mode_text(kind).as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(id.as_bytes());
}
