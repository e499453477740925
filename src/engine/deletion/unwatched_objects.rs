//! The objects that a source once had where no informer shows them any more: they stay, and they
//! stay recorded.

use std::sync::Arc;

use crate::engine::deletion::inventory_note::{InventoryNote, UnwatchedNamespaces};
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::kinds::KindState;
use crate::engine::state::Engine;
use crate::manifest::KindScope;
use crate::object::GroupKind;

impl Engine {
    /// Returns whether objects of a kind may be where no informer of the source watches. One that
    /// the server does not have has none anywhere.
    pub(in crate::engine) fn can_be_elsewhere(&self, source: SourceId, kind: &GroupKind) -> bool {
        self.kinds.scope_of(kind) != Some(KindScope::Cluster)
            && self.kind_state(source, kind) != Some(&KindState::Absent)
    }

    /// Returns whether a source's inventory names kinds or namespaces that are not watched for it.
    /// Its objects there are not known, so they must not be forgotten.
    pub(in crate::engine) fn has_unwatched(&self, source: SourceId) -> bool {
        let Some(inventory) = &self.sources[source].inventory else { return false };
        inventory.kinds.iter().any(|kind| !self.is_kind_allowed(source, kind))
            || inventory.namespaces.iter().any(|name| !self.is_watching(source, name))
    }

    /// Returns what a person should know of a source's inventory, beside its objects.
    pub(in crate::engine) fn inventory_notes(&self, source: SourceId) -> impl Iterator<Item = InventoryNote> {
        let unlisted = self.unlisted_reason(source).map(InventoryNote::Unlisted);
        unlisted.into_iter().chain(self.unwatched_namespaces(source).map(InventoryNote::Unwatched))
    }

    /// Returns the namespaces of a source's inventory that are not watched for it; none where all
    /// are.
    pub(in crate::engine) fn unwatched_namespaces(&self, source: SourceId) -> Option<UnwatchedNamespaces> {
        let state = &self.sources[source];
        let inventory = state.inventory.iter().flat_map(|inventory| &inventory.namespaces);
        let namespaces: Vec<Arc<str>> =
            inventory.filter(|name| !self.is_watching(source, name)).cloned().collect();
        let source = state.declared.name.clone();
        (!namespaces.is_empty()).then_some(UnwatchedNamespaces { source, namespaces })
    }
}
