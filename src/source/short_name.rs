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
    pub(super) fn meaning(&self, store: &RevisionStore) -> Option<&str> {
        if self.meaning.get().is_none() {
            let was_followed = |kind: &&str| store.remembered_revision(&self.marker(kind)).is_some();
            let kind = REFERENCE_KINDS.into_iter().find(was_followed)?;
            self.learn(format!("refs/{kind}/{}", self.name));
        }
        self.meaning.get().map(String::as_str)
    }

    /// Takes over the full name by which it is followed, unless one is known.
    pub(super) fn learn(&self, full_name: String) {
        let _ = self.meaning.set(full_name);
    }

    /// Records the full name by which it is followed, for the next process.
    pub(super) fn record(
        &self,
        store: &RevisionStore,
        lock: &StateLock,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        let Some(kind) = self.meaning.get().and_then(|name| name.split('/').nth(1)) else { return Ok(()) };
        store.set_reference(lock, &self.marker(kind), revision)
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
