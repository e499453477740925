//! Kinds that cannot be listed: what is not seen may be there, so their source prunes nothing. The
//! same holds for a kind that the server did not list when charts were rendered.

use std::collections::BTreeSet;

use crate::engine::deletion::inventory_note::{ForgottenKind, UnlistedCause, UnlistedReason, UnlistedRemedy};
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::kinds::KindState;
use crate::engine::state::Engine;
use crate::engine::{PrunePolicy, SourceState, WatchFault};
use crate::object::{ErrorClass, GroupKind, ObjectId};

impl Engine {
    /// Names the namespace of the inventories, for commands that people type.
    pub(in crate::engine) fn set_inventory_namespace(&mut self, namespace: &str) {
        self.sources.set_inventory_namespace(namespace);
    }

    /// Returns the first kind of a source's inventory or manifests that is not listed.
    pub(in crate::engine) fn unlisted_kind(&self, source: SourceId) -> Option<GroupKind> {
        let state = &self.sources[source];
        let kinds = self
            .listed_kinds(source)
            .chain(state.desired_counts.kinds())
            .filter(|kind| !self.is_synced(source, kind));
        kinds.min().cloned()
    }

    /// Returns the first kind of what a source no longer wants that the server did not list for its
    /// renders. A chart may ask for that kind, and leave out its objects and others.
    pub(in crate::engine) fn unrendered_kind(&self, source: SourceId) -> Option<GroupKind> {
        let rendered = self.sources[source].rendered_kinds.as_ref()?;
        let kinds = self.unwanted_of(source).map(ObjectId::group_kind);
        kinds.filter(|kind| !rendered.contains(kind)).min()
    }

    /// Returns why a source prunes nothing at all until a person does something, and what: a kind
    /// cannot be listed. None where that passes by itself, and where nothing is pruned anyway.
    pub(in crate::engine) fn unlisted_reason(&self, source: SourceId) -> Option<UnlistedReason> {
        let state = &self.sources[source];
        if state.declared.prune != PrunePolicy::On || state.inventory.is_none() || state.head.is_none() {
            return None;
        }
        let kind = self.unlisted_kind(source)?;
        let unwatched = |fault: &WatchFault| UnlistedCause::Unwatched(fault.clone());
        let (cause, remedy) = match (self.is_unserved(&kind), self.kind_state(source, &kind)) {
            (_, Some(KindState::Unobservable(fault, ErrorClass::Forbidden))) => {
                (unwatched(fault), UnlistedRemedy::Allow)
            }
            (_, Some(KindState::Unobservable(fault @ WatchFault::GroupUnavailable, _))) => {
                (unwatched(fault), UnlistedRemedy::RepairGroup)
            }
            (true, _) => (UnlistedCause::NoSuchKind, self.missing_kind_remedy(state, &kind)?),
            (false, Some(KindState::Unobservable(fault, class))) if *class != ErrorClass::Transient => {
                (unwatched(fault), self.missing_kind_remedy(state, &kind)?)
            }
            // It passes by itself.
            (false, _) => return None,
        };
        Some(UnlistedReason { kind, cause, remedy })
    }

    /// Returns whether a kind is wanted that the server has in no version.
    pub(in crate::engine) fn is_unserved(&self, kind: &GroupKind) -> bool {
        self.kinds.is_in_no_version(kind)
    }

    /// Returns the remedy for a kind that the server does not have; none where a source brings it.
    fn missing_kind_remedy(&self, state: &SourceState, kind: &GroupKind) -> Option<UnlistedRemedy> {
        if self.has_definition(kind) {
            return None;
        }
        Some(if state.desired_counts.by_kind().contains_key(kind) {
            UnlistedRemedy::InstallDefinition
        } else {
            let kinds = state.inventory.iter().flat_map(|inventory| &inventory.kinds);
            unserved_kind_remedy(self.sources.inventory_namespace(), &state.declared.name, kinds, kind)
        })
    }
}

/// Returns why a source prunes nothing, as a kind of its inventory is not served.
pub(crate) fn unserved_kind_reason(
    namespace: &str,
    source: &str,
    kinds: &BTreeSet<GroupKind>,
    kind: &GroupKind,
) -> UnlistedReason {
    let remedy = unserved_kind_remedy(namespace, source, kinds, kind);
    UnlistedReason { kind: kind.clone(), cause: UnlistedCause::NoSuchKind, remedy }
}

/// Returns the remedy for a kind of an inventory that no manifest wants and no server has.
fn unserved_kind_remedy<'a>(
    namespace: &str,
    source: &str,
    kinds: impl IntoIterator<Item = &'a GroupKind>,
    kind: &GroupKind,
) -> UnlistedRemedy {
    let others = kinds.into_iter().filter(|other| *other != kind).cloned().collect();
    UnlistedRemedy::Forget(ForgottenKind { namespace: namespace.into(), source: source.into(), others })
}
