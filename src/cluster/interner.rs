//! Shared texts: thousands of objects have the same FieldsV1, managers, namespace and revision.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::FieldManager;
use crate::object::{GroupKind, NamespacedKind, Revision};

/// The bytes that are added before it is looked for what nobody holds any more.
///
/// Somebody who may write one object may write other texts there without end. Complete lists are
/// too far apart for that.
const MIN_GROWTH_BYTES: usize = 4 << 20;

/// The shared kinds, each with those of its namespaces.
type NamespacedKinds = HashMap<GroupKind, HashMap<Arc<str>, NamespacedKind>>;

/// One copy of each text that live records share.
#[derive(Debug, Default)]
pub(super) struct Interner {
    texts: Mutex<HashSet<Arc<str>>>,
    managers: Mutex<HashSet<Arc<[FieldManager]>>>,
    revisions: Mutex<HashMap<Box<str>, Revision>>,
    namespaced_kinds: Mutex<NamespacedKinds>,
    growth: Mutex<Growth>,
}

/// The bytes of texts and lists, without what their tables take.
#[derive(Debug, Default)]
struct Growth {
    /// The bytes that were held after the last sweep.
    kept: usize,
    /// The bytes that were added since.
    added: usize,
}

impl Growth {
    /// Adds bytes. Returns whether it is time for a sweep. One looks at all that is held, so as much
    /// as that has to be added first.
    fn add(&mut self, bytes: usize) -> bool {
        self.added += bytes;
        self.added >= MIN_GROWTH_BYTES.max(self.kept)
    }
}

impl Interner {
    /// Returns the shared copy of a text.
    pub(super) fn text(&self, text: &str) -> Arc<str> {
        self.intern(&self.texts, text)
    }

    /// Returns the shared copy of a list of managers.
    pub(super) fn intern_managers(&self, list: &[FieldManager]) -> Arc<[FieldManager]> {
        self.intern(&self.managers, list)
    }

    /// Returns the shared copy of a revision's name.
    pub(super) fn revision(&self, text: &str) -> Revision {
        let known = lock(&self.revisions).get(text).cloned();
        known.unwrap_or_else(|| {
            let revision = Revision::new(text);
            lock(&self.revisions).insert(text.into(), revision.clone());
            self.note_growth(2 * text.len());
            revision
        })
    }

    /// Returns the shared copy of a kind in a namespace.
    pub(super) fn namespaced_kind(&self, kind: &GroupKind, namespace: &str) -> NamespacedKind {
        let known = |all: &NamespacedKinds| all.get(kind).and_then(|all| all.get(namespace)).cloned();
        if let Some(shared) = known(&lock(&self.namespaced_kinds)) {
            return shared;
        }
        // A text may bring a sweep, which takes the same lock.
        let namespace = self.text(namespace);
        let shared = NamespacedKind::new(kind, namespace.clone());
        lock(&self.namespaced_kinds).entry(kind.clone()).or_default().insert(namespace, shared.clone());
        shared
    }

    /// Forgets what nobody holds any more. Called after each complete list of a kind, and when much
    /// was added.
    pub(super) fn sweep(&self) {
        // These first: they hold texts. Few copies are made later.
        lock(&self.namespaced_kinds).clear();
        // Lists next: they hold texts too.
        let lists = keep_shared(&mut lock(&self.managers));
        let texts = keep_shared(&mut lock(&self.texts));
        // Revisions still in use cannot be distinguished; few copies are made later.
        lock(&self.revisions).clear();
        *lock(&self.growth) = Growth { kept: lists + texts, added: 0 };
    }

    fn intern<T: ?Sized + Eq + Hash>(&self, known: &Mutex<HashSet<Arc<T>>>, value: &T) -> Arc<T>
    where
        Arc<T>: for<'a> From<&'a T>,
    {
        let mut all = lock(known);
        if let Some(known) = all.get(value) {
            return known.clone();
        }
        let value = Arc::<T>::from(value);
        all.insert(value.clone());
        // A sweep takes the same lock.
        drop(all);
        self.note_growth(size_of_val(&*value));
        value
    }

    fn note_growth(&self, bytes: usize) {
        let is_due = lock(&self.growth).add(bytes);
        if is_due {
            self.sweep();
        }
    }

    /// Returns how many texts and lists are held.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.texts).len() + lock(&self.managers).len()
    }
}

/// Drops what nobody else holds. Returns the bytes of the rest.
fn keep_shared<T: ?Sized + Eq + Hash>(all: &mut HashSet<Arc<T>>) -> usize {
    let mut kept = 0;
    all.retain(|value| {
        let is_shared = Arc::strong_count(value) > 1;
        kept += if is_shared { size_of_val(&**value) } else { 0 };
        is_shared
    });
    kept
}

/// Locks a mutex, also a poisoned one: every change under these locks is complete in one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
