//! Where a source looks for its objects, and so in which places they are listed and watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Place;
use crate::config::SourceConfig;
use crate::manifest::Scope;

/// Where a source looks for its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Reach {
    /// In the whole cluster.
    Cluster,
    /// In these namespaces, whether it has something there or not.
    Namespaces(BTreeSet<Arc<str>>),
}

impl Reach {
    /// That of a source.
    pub(in crate::cli) fn of(source: &SourceConfig) -> Self {
        source.allow.namespaces.clone().map_or(Self::Cluster, Self::Namespaces)
    }

    /// The namespaces in which objects of a kind are listed, one by one; none for the whole cluster. Kinds that live in
    /// no namespace have no smaller list.
    pub(in crate::cli) fn lists(&self, scope: Scope) -> Vec<Option<Arc<str>>> {
        match (self, scope) {
            (Self::Namespaces(names), Scope::Namespaced) => names.iter().cloned().map(Some).collect(),
            (Self::Namespaces(_), Scope::Cluster) | (Self::Cluster, _) => vec![None],
        }
    }

    /// The same as places.
    pub(super) fn places(&self, scope: Scope) -> Vec<Place> {
        let place = |namespace: Option<Arc<str>>| {
            namespace.map_or(Place::Cluster, |name| Place::Namespace(name.to_string()))
        };
        self.lists(scope).into_iter().map(place).collect()
    }
}
