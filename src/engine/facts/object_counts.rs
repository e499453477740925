//! The counts of objects by kind and namespace, kept as objects come and go. A question after each
//! commit must not visit ten thousand of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::{GroupKind, ObjectId};

/// The number of objects of each kind, and in each namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectCounts {
    kinds: BTreeMap<GroupKind, u32>,
    namespaces: BTreeMap<Arc<str>, u32>,
}

impl ObjectCounts {
    /// Adds one.
    pub(in crate::engine) fn add(&mut self, id: &ObjectId) {
        *self.kinds.entry(id.group_kind()).or_default() += 1;
        let Some(namespace) = id.namespace() else { return };
        match self.namespaces.get_mut(namespace) {
            Some(count) => *count += 1,
            None => drop(self.namespaces.insert(namespace.into(), 1)),
        }
    }

    /// Removes one that was added.
    pub(in crate::engine) fn remove(&mut self, id: &ObjectId) {
        decrement(&mut self.kinds, &id.group_kind());
        if let Some(namespace) = id.namespace() {
            decrement(&mut self.namespaces, namespace);
        }
    }

    /// Returns the count per kind.
    pub(crate) fn by_kind(&self) -> &BTreeMap<GroupKind, u32> {
        &self.kinds
    }

    /// Returns the kinds that there are.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    /// Returns the namespaces that something is in.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.keys().map(|namespace| &**namespace)
    }
}

fn decrement<K: Ord + std::borrow::Borrow<Q>, Q: Ord + ?Sized>(counts: &mut BTreeMap<K, u32>, key: &Q) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
