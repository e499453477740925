//! Git trees and snapshot commits out of a plain list of files: the same list always gets the same
//! ids.

use git2::{ObjectType, Oid};

use super::refusal::RefusedFile;
use crate::object::Revision;

/// Stands for author, committer and dates, so that equal contents are equal commits.
const NOBODY: &str = "rhumb <rhumb@localhost> 0 +0000";
/// The address of it.
const NOBODY_EMAIL: &str = "rhumb@localhost";

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

/// Makes the commit of a folder: no parent, no date, no author, so that equal folders are equal
/// revisions. The files are ordered by path; none is a folder of another.
pub(super) fn write_commit(
    sink: &mut impl ObjectSink,
    files: &[(&str, Oid)],
    refusals: &[RefusedFile],
) -> Result<Oid, git2::Error> {
    let tree = write_folder(sink, files, 0)?;
    let mut text = format!("tree {tree}\nauthor {NOBODY}\ncommitter {NOBODY}\n\nSnapshot\n");
    for refusal in refusals {
        text.push_str(&refusal.line());
        text.push('\n');
    }
    sink.put(ObjectType::Commit, text.as_bytes())
}

/// Makes the folder of one root. The files are ordered by name, and none is in a folder of its own.
pub(super) fn write_root_folder(
    sink: &mut impl ObjectSink,
    files: &[(&str, Oid)],
) -> Result<Oid, git2::Error> {
    write_folder(sink, files, 0)
}

/// Makes the commit of a rendered revision, which it names, from the folders of its roots.
pub(super) fn write_rendered_commit(
    sink: &mut impl ObjectSink,
    folders: &[Oid],
    of: &Revision,
) -> Result<RenderedCommit, git2::Error> {
    let mut bytes = Vec::new();
    for (folder, number) in folders.iter().zip(0_usize..) {
        // Names of one width are in git's order.
        entry(&mut bytes, "40000", &format!("{number:06}"), *folder);
    }
    let tree = sink.put(ObjectType::Tree, &bytes)?;
    Ok(RenderedCommit { id: write_render(sink, tree, &[], of)?, tree })
}

/// Makes the commit of one render. With parents it keeps several renders of one revision, the
/// newest first, and its tree is that of the newest.
pub(super) fn write_render(
    sink: &mut impl ObjectSink,
    tree: Oid,
    parents: &[Oid],
    of: &Revision,
) -> Result<Oid, git2::Error> {
    let parents: Vec<String> = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
    let text = format!(
        "tree {tree}\n{}author {NOBODY}\ncommitter {NOBODY}\n\nRendered\n\nSource-Commit: {of}\n",
        parents.concat()
    );
    sink.put(ObjectType::Commit, text.as_bytes())
}

/// Returns whether a commit is that of a rendered revision, which is no revision itself.
pub(super) fn is_rendered_commit(commit: &git2::Commit<'_>) -> bool {
    let author = commit.author();
    author.when().seconds() == 0
        && author.email_bytes() == NOBODY_EMAIL.as_bytes()
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

/// Writes one tree of the files that share the first `skip` bytes of their paths.
fn write_folder(sink: &mut impl ObjectSink, files: &[(&str, Oid)], skip: usize) -> Result<Oid, git2::Error> {
    let mut tree = Vec::new();
    let mut rest = files;
    while let Some((path, id)) = rest.first() {
        let inside = path.get(skip..).unwrap_or_default();
        let Some((name, _)) = inside.split_once('/') else {
            entry(&mut tree, "100644", inside, *id);
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        let prefix = path.get(..=skip + name.len()).unwrap_or_default();
        let count = rest.iter().take_while(|(path, _)| path.starts_with(prefix)).count();
        let (below, after) = rest.split_at(count);
        entry(&mut tree, "40000", name, write_folder(sink, below, prefix.len())?);
        rest = after;
    }
    sink.put(ObjectType::Tree, &tree)
}

fn entry(tree: &mut Vec<u8>, mode: &str, name: &str, id: Oid) {
    tree.extend_from_slice(mode.as_bytes());
    tree.push(b' ');
    tree.extend_from_slice(name.as_bytes());
    tree.push(0);
    tree.extend_from_slice(id.as_bytes());
}
