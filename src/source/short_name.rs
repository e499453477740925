//! Short names of references: a branch and a tag may have the same one.
//!
//! Somebody who may push a branch of any name often may not move a tag, and the other way round.
//! So a name keeps the meaning by which a revision came into force first.

use std::sync::OnceLock;

use git2::Oid;

use super::error::SourceError;
use super::state_lock::StateLock;
use super::store::RevisionStore;
use crate::object::Revision;

/// The kinds of references that a short name may mean.
const REFERENCE_KINDS: [&str; 3] = ["heads", "tags", "remotes"];

/// A short name of a reference, and what it means.
#[derive(Debug)]
pub(super) struct ShortName {
    name: String,
    /// The key of what is followed, in our own store.
    key: Oid,
    /// The full name; none before it is known.
    meaning: OnceLock<String>,
}

impl ShortName {
    /// Returns the short name that a configured reference is; none where it can mean one thing
    /// alone.
    pub(super) fn of(reference: Option<&str>, key: Oid) -> Option<Self> {
        let name = reference.filter(|name| *name != "HEAD" && !name.starts_with("refs/"))?;
        (!is_whole_id(name)).then(|| Self { name: name.to_owned(), key, meaning: OnceLock::new() })
    }

    /// Returns the full name by which it was followed before; none where nothing says that.
    ///
    /// # Errors
    /// Fails where the store cannot be read: without its meaning, the name could get another one.
    pub(super) fn meaning(&self, store: &RevisionStore) -> Result<Option<&str>, SourceError> {
        if self.meaning.get().is_none() && store.exists() {
            for kind in REFERENCE_KINDS {
                if store.reference_target(&self.marker(kind))?.is_some() {
                    self.learn(format!("refs/{kind}/{}", self.name));
                    break;
                }
            }
        }
        Ok(self.meaning.get().map(String::as_str))
    }

    /// Takes over the full name by which a revision is in force already, and records it unless an
    /// earlier process has done that.
    pub(super) fn settle(
        &self,
        full_name: Option<String>,
        store: &RevisionStore,
        lock: &StateLock,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        // A recorded one is known by now.
        if self.meaning.get().is_some() {
            return Ok(());
        }
        self.record(full_name, store, lock, revision)
    }

    /// Takes over the full name by which a revision comes into force, unless one is known. Records
    /// it for the next process.
    pub(super) fn record(
        &self,
        full_name: Option<String>,
        store: &RevisionStore,
        lock: &StateLock,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        if let Some(full_name) = full_name {
            self.learn(full_name);
        }
        let Some(kind) = self.meaning.get().and_then(|name| name.split('/').nth(1)) else { return Ok(()) };
        store.set_reference(lock, &self.marker(kind), revision)
    }

    fn learn(&self, full_name: String) {
        let _ = self.meaning.set(full_name);
    }

    /// Returns the reference in our own store that says by its name what was followed.
    fn marker(&self, kind: &str) -> String {
        format!("refs/rhumb/followed-{kind}/{}", self.key)
    }
}

/// Returns whether a name is the whole id of a commit, which no reference of that name replaces.
pub(super) fn is_whole_id(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use git2::ObjectType;

    use super::*;
    use crate::source::SourceSettings;

    #[test]
    fn a_store_that_cannot_be_read_is_no_word_of_an_unknown_meaning() {
        let folder = tempfile::tempdir().unwrap();
        let store = RevisionStore::new(folder.path(), SourceSettings::default());
        let key = Oid::hash_object(ObjectType::Blob, b"v1").unwrap();
        let name = ShortName::of(Some("v1"), key).unwrap();
        assert_eq!(name.meaning(&store).unwrap(), None, "there is no store yet");
        fs::create_dir(store.path()).unwrap();
        assert!(name.meaning(&store).is_err());
    }
}
