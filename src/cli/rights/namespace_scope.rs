//! The namespaces in which a source lists and watches its objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::RightScope;
use crate::config::SourceConfig;
use crate::manifest::KindScope;

/// The namespaces in which a source lists its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum WatchedNamespaces {
    /// In the whole cluster.
    Cluster,
    /// In these namespaces, whether it has something there or not.
    Namespaces(BTreeSet<Arc<str>>),
}

impl WatchedNamespaces {
    /// Returns those of a source.
    pub(in crate::cli) fn of(source: &SourceConfig) -> Self {
        source.allow.namespaces.clone().map_or(Self::Cluster, Self::Namespaces)
    }

    /// Returns the namespaces in which objects of a kind are listed, one by one; none for the whole
    /// cluster. Kinds that live in no namespace have no smaller list.
    pub(in crate::cli) fn list_namespaces(&self, scope: KindScope) -> Vec<Option<Arc<str>>> {
        match (self, scope) {
            (Self::Namespaces(names), KindScope::Namespaced) => names.iter().cloned().map(Some).collect(),
            (Self::Namespaces(_), KindScope::Cluster) | (Self::Cluster, _) => vec![None],
        }
    }

    /// Returns the same as scopes of rights.
    pub(super) fn right_scopes(&self, scope: KindScope) -> Vec<RightScope> {
        let right_scope = |namespace: Option<Arc<str>>| {
            namespace.map_or(RightScope::Cluster, |name| RightScope::Namespace(name.to_string()))
        };
        self.list_namespaces(scope).into_iter().map(right_scope).collect()
    }
}
