//! Shared texts: thousands of objects have the same FieldsV1, managers, namespace and revision.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::FieldManager;
use crate::object::{GroupKind, NamespacedKind, Revision};

/// One copy of each text that live records share.
#[derive(Debug, Default)]
pub(super) struct Interner {
    texts: Mutex<HashSet<Arc<str>>>,
    managers: Mutex<HashSet<Arc<[FieldManager]>>>,
    revisions: Mutex<HashMap<Box<str>, Revision>>,
    namespaced_kinds: Mutex<HashMap<GroupKind, HashMap<Arc<str>, NamespacedKind>>>,
}

impl Interner {
    /// Returns the shared copy of a text.
    pub(super) fn text(&self, text: &str) -> Arc<str> {
        intern(&mut lock(&self.texts), text)
    }

    /// Returns the shared copy of a list of managers.
    pub(super) fn intern_managers(&self, list: &[FieldManager]) -> Arc<[FieldManager]> {
        intern(&mut lock(&self.managers), list)
    }

    /// Returns the shared copy of a revision's name.
    pub(super) fn revision(&self, text: &str) -> Revision {
        let mut revisions = lock(&self.revisions);
        if let Some(known) = revisions.get(text) {
            return known.clone();
        }
        let revision = Revision::new(text);
        revisions.insert(text.into(), revision.clone());
        revision
    }

    /// Returns the shared copy of a kind in a namespace.
    pub(super) fn namespaced_kind(&self, kind: &GroupKind, namespace: &str) -> NamespacedKind {
        let mut known = lock(&self.namespaced_kinds);
        if let Some(shared) = known.get(kind).and_then(|by_namespace| by_namespace.get(namespace)) {
            return shared.clone();
        }
        let namespace = self.text(namespace);
        let shared = NamespacedKind::new(kind, namespace.clone());
        known.entry(kind.clone()).or_default().insert(namespace, shared.clone());
        shared
    }

    /// Forgets what nobody holds any more. Called after each complete list of a kind.
    pub(super) fn sweep(&self) {
        // These first: they hold texts. Few copies are made later.
        lock(&self.namespaced_kinds).clear();
        // Lists next: they hold texts too.
        lock(&self.managers).retain(|list| Arc::strong_count(list) > 1);
        lock(&self.texts).retain(|text| Arc::strong_count(text) > 1);
        // Revisions still in use cannot be distinguished; few copies are made later.
        lock(&self.revisions).clear();
    }

    /// Returns how many texts and lists are held.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.texts).len() + lock(&self.managers).len()
    }
}

fn intern<T: ?Sized + Eq + Hash>(known: &mut HashSet<Arc<T>>, value: &T) -> Arc<T>
where
    Arc<T>: for<'a> From<&'a T>,
{
    if let Some(known) = known.get(value) {
        return known.clone();
    }
    let value = Arc::<T>::from(value);
    known.insert(value.clone());
    value
}

/// Locks a mutex, also a poisoned one: every change under these locks is complete in one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
