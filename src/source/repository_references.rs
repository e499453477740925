//! References of a followed repository: `HEAD`, branches and tags as files.
//!
//! Reads no object, runs no program and follows no link, so that a pass over what is unchanged
//! costs next to nothing.

use std::io;
use std::path::Path;

use git2::{Oid, Reference};
use walkdir::WalkDir;

use super::file_names;
use super::followed_repository::{
    self, FollowedRepositoryError, MAX_OWN_FILE_BYTES, PointerForm, RepositoryFolders, read_error,
};
use super::short_name::is_whole_id;

/// The longest chain of references that name each other: somewhat more than git follows.
const MAX_REFERENCE_CHAIN: usize = 10;

/// The longest file of one reference: a name, and the words before it.
const MAX_REFERENCE_BYTES: u64 = 8 << 10;

/// The maximum number of entries that are read to find a branch in place of a missing one.
const MAX_READ_REFERENCES: usize = 10_000;

/// The references that each work tree has for itself.
const OWN_PREFIXES: [&str; 3] = ["refs/bisect/", "refs/rewritten/", "refs/worktree/"];

/// The reference target: the meaning of a name in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedTarget {
    /// The object that a reference leads to: a commit, or a tag that leads to one.
    Object(Oid),
    /// The begin of a commit's id, or all of it.
    Prefix(String),
    /// `HEAD` names this branch, which is not there. There are others, or none.
    Unborn { branch: String, has_others: bool },
    /// Nothing.
    Nothing,
}

/// A target that a name was found to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundName {
    pub(super) target: NamedTarget,
    /// The full name of the branch or tag that was found; none where the name is none of one.
    pub(super) full_name: Option<String>,
}

impl From<NamedTarget> for FoundName {
    fn from(target: NamedTarget) -> Self {
        Self { target, full_name: None }
    }
}

/// The value of a reference.
enum ReferenceValue {
    Object(Oid),
    Symbolic(String),
}

impl RepositoryFolders {
    /// Finds what a name means: a branch, else a tag, else a remote branch, else a commit by a part
    /// of its id. A whole id means the commit, whatever branch is called like it.
    ///
    /// The target and the full name are of one look: somebody may push between two.
    pub(super) fn find_target(&self, name: Option<&str>) -> Result<FoundName, FollowedRepositoryError> {
        let Some(name) = name.filter(|name| *name != "HEAD") else {
            return self.head_target().map(FoundName::from);
        };
        // A branch that somebody pushes with that name does not replace the commit.
        if is_whole_id(name) {
            return Ok(NamedTarget::Prefix(name.to_ascii_lowercase()).into());
        }
        if let Some((full_name, id)) = self.find_reference(name)? {
            return Ok(FoundName { target: NamedTarget::Object(id), full_name: Some(full_name) });
        }
        let is_id = (4..40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let target =
            if is_id { NamedTarget::Prefix(name.to_ascii_lowercase()) } else { NamedTarget::Nothing };
        Ok(target.into())
    }

    /// Finds a branch, else a tag, else a remote branch of a name. Returns its full name, and the
    /// object that it leads to.
    ///
    /// A remote branch is named with its remote. A name without one does not mean what a refspec
    /// has fetched from anywhere. A Source in the cluster names a branch or tag of the repository
    /// itself.
    fn find_reference(&self, name: &str) -> Result<Option<(String, Oid)>, FollowedRepositoryError> {
        let prefixes: &[&str] = match name {
            _ if name.starts_with("refs/") => &[""],
            _ if name.contains('/') => &["refs/heads/", "refs/tags/", "refs/remotes/"],
            _ => &["refs/heads/", "refs/tags/"],
        };
        for prefix in prefixes {
            let full = format!("{prefix}{name}");
            if Reference::is_valid_name(&full)
                && let (_, Some(id)) = self.follow_references(full.clone())?
            {
                return Ok(Some((full, id)));
            }
        }
        Ok(None)
    }

    fn head_target(&self) -> Result<NamedTarget, FollowedRepositoryError> {
        match self.follow_references("HEAD".to_owned())? {
            (_, Some(id)) => Ok(NamedTarget::Object(id)),
            (last, None) => {
                let branch =
                    file_names::sanitize_text(last.strip_prefix("refs/heads/").unwrap_or(&last).as_bytes());
                Ok(NamedTarget::Unborn { branch, has_others: self.has_branches()? })
            }
        }
    }

    /// Follows references that name another one; returns the last name, and the object that it
    /// leads to, where it is there.
    fn follow_references(&self, mut name: String) -> Result<(String, Option<Oid>), FollowedRepositoryError> {
        for _ in 0..MAX_REFERENCE_CHAIN {
            let next = match self.read_reference(&name)? {
                None => return Ok((name, None)),
                Some(ReferenceValue::Object(id)) => return Ok((name, Some(id))),
                Some(ReferenceValue::Symbolic(next)) => next,
            };
            if !Reference::is_valid_name(&next) || !next.starts_with("refs/") {
                return Err(FollowedRepositoryError::ForeignPointer {
                    file: self.folder_of(&name).join(&name),
                    form: PointerForm::Reference,
                    target: followed_repository::printable_target(next.as_bytes()),
                });
            }
            name = next;
        }
        let why = format!("it names a reference after {MAX_REFERENCE_CHAIN} others");
        Err(read_error(&self.folder_of(&name).join(&name), io::Error::other(why)))
    }

    /// Returns the folder that holds a reference.
    fn folder_of(&self, name: &str) -> &Path {
        let is_own = name == "HEAD" || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if is_own { &self.own } else { &self.common }
    }

    fn read_reference(&self, name: &str) -> Result<Option<ReferenceValue>, FollowedRepositoryError> {
        let folder = self.folder_of(name);
        let ends: Vec<&str> = name.match_indices('/').map(|(at, _)| &name[..at]).chain([name]).collect();
        followed_repository::judge_own_files(folder, &ends)?;
        let file = folder.join(name);
        // A folder of references that begin so.
        let text = if file.is_dir() {
            None
        } else {
            followed_repository::read_file(folder, name, MAX_REFERENCE_BYTES)?
        };
        let Some(text) = text else { return self.read_packed(name) };
        let text = String::from_utf8_lossy(text.trim_ascii_end());
        if let Some(next) = text.strip_prefix("ref:") {
            return Ok(Some(ReferenceValue::Symbolic(next.trim().to_owned())));
        }
        let Some(id) = whole_id(&text) else {
            let why = "it holds neither an id nor the name of a reference";
            return Err(read_error(&file, io::Error::other(why)));
        };
        Ok(Some(ReferenceValue::Object(id)))
    }

    fn read_packed(&self, name: &str) -> Result<Option<ReferenceValue>, FollowedRepositoryError> {
        let Some(text) = followed_repository::read_file(&self.common, PACKED_FILE, MAX_OWN_FILE_BYTES)?
        else {
            return Ok(None);
        };
        let mut lines = text.split(|byte| *byte == b'\n');
        let line = lines.find(|line| line.get(41..) == Some(name.as_bytes()) && line.get(40) == Some(&b' '));
        let Some(line) = line else { return Ok(None) };
        let id = line.get(..40).and_then(|id| std::str::from_utf8(id).ok()).and_then(whole_id);
        let Some(id) = id else {
            let why = format!("its line of {} has no id", file_names::sanitize_text(name.as_bytes()));
            return Err(read_error(&self.common.join(PACKED_FILE), io::Error::other(why)));
        };
        Ok(Some(ReferenceValue::Object(id)))
    }

    fn has_branches(&self) -> Result<bool, FollowedRepositoryError> {
        let mut entries =
            WalkDir::new(self.common.join("refs/heads")).into_iter().take(MAX_READ_REFERENCES).flatten();
        if entries.any(|entry| entry.file_type().is_file()) {
            return Ok(true);
        }
        let packed = followed_repository::read_file(&self.common, PACKED_FILE, MAX_OWN_FILE_BYTES)?;
        let packed = packed.unwrap_or_default();
        let mut lines = packed.split(|byte| *byte == b'\n');
        Ok(lines.any(|line| line.get(40..).is_some_and(|name| name.starts_with(b" refs/heads/"))))
    }
}

/// The list of the references that have no file.
const PACKED_FILE: &str = "packed-refs";

fn whole_id(text: &str) -> Option<Oid> {
    let is_id = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| Oid::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use git2::{Repository, Signature};

    use super::*;
    use crate::source::local::repository_folders;

    #[test]
    fn a_name_means_a_branch_else_a_tag_and_comes_with_the_full_name_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init(folder.path()).unwrap();
        let tree = repository.find_tree(repository.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let author = Signature::now("a", "a@b").unwrap();
        let commit = |text: &str| repository.commit(None, &author, &author, text, &tree, &[]).unwrap();
        let (branch, tag) = (commit("branch"), commit("tag"));
        let references = [
            ("refs/heads/both", branch),
            ("refs/tags/both", tag),
            ("refs/tags/v1", tag),
            ("refs/remotes/fork/main", branch),
            ("refs/remotes/proposal", branch),
        ];
        for (name, id) in references {
            repository.reference(name, id, false, "").unwrap();
        }
        let folders = repository_folders(folder.path()).unwrap();
        let check = |name: &str, target: NamedTarget, full_name: Option<&str>| {
            let expected = FoundName { target, full_name: full_name.map(str::to_owned) };
            assert_eq!(folders.find_target(Some(name)).unwrap(), expected, "{name}");
        };
        check("both", NamedTarget::Object(branch), Some("refs/heads/both"));
        check("v1", NamedTarget::Object(tag), Some("refs/tags/v1"));
        check("refs/tags/both", NamedTarget::Object(tag), Some("refs/tags/both"));
        check("other", NamedTarget::Nothing, None);
        check("fork/main", NamedTarget::Object(branch), Some("refs/remotes/fork/main"));
        // A refspec that somebody wrote has fetched it from anywhere.
        check("proposal", NamedTarget::Nothing, None);
        check("refs/remotes/proposal", NamedTarget::Object(branch), Some("refs/remotes/proposal"));
        check("abcd", NamedTarget::Prefix("abcd".to_owned()), None);
        check(&tag.to_string(), NamedTarget::Prefix(tag.to_string()), None);
    }
}
