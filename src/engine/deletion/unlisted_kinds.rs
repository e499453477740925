//! Kinds that cannot be listed: what is not seen may be there, so their source prunes nothing. The
//! same holds for a kind that the server did not list when charts were rendered.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::facts::entry::SourceId;
use crate::engine::facts::kinds::KindState;
use crate::engine::state::Engine;
use crate::engine::{PrunePolicy, SourceState};
use crate::object::{ErrorClass, GroupKind, ObjectId};

/// The reason for a kind whose API group is another server's that is down.
pub(crate) const GROUP_UNAVAILABLE_REASON: &str = "the server of its API group does not answer";

/// The reason for a kind that no server of the cluster has.
const NO_SUCH_KIND_REASON: &str = "the server has no such kind";

/// The annotation of an inventory with the kinds of its objects.
const KINDS_ANNOTATION: &str = "applyset.kubernetes.io/contains-group-kinds";

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
    pub(in crate::engine) fn unlisted_reason(&self, source: SourceId) -> Option<String> {
        let state = &self.sources[source];
        if state.declared.prune != PrunePolicy::On || state.inventory.is_none() || state.head.is_none() {
            return None;
        }
        let kind = self.unlisted_kind(source)?;
        let (why, advice) = match (self.missing_kind_reason(&kind), self.kind_state(source, &kind)) {
            (_, Some(KindState::Unobservable(why, ErrorClass::Forbidden))) => {
                (why.clone(), "let the user list and watch it".to_owned())
            }
            (_, Some(KindState::Unobservable(why, _))) if **why == *GROUP_UNAVAILABLE_REASON => {
                (why.clone(), "repair it, or delete its APIService if it is gone for good".to_owned())
            }
            (Some(why), _) => (why, self.missing_kind_remedy(state, &kind)?),
            (None, Some(KindState::Unobservable(why, class))) if *class != ErrorClass::Transient => {
                (why.clone(), self.missing_kind_remedy(state, &kind)?)
            }
            // It passes by itself.
            (None, _) => return None,
        };
        Some(explain_unlisted_kind(&kind, &why, &advice))
    }

    /// Returns whether a kind is wanted that the server has in no version.
    pub(in crate::engine) fn is_unserved(&self, kind: &GroupKind) -> bool {
        self.missing_kind_reason(kind).is_some()
    }

    /// Returns why the server has no such kind, as far as it is wanted.
    pub(in crate::engine) fn missing_kind_reason(&self, kind: &GroupKind) -> Option<Arc<str>> {
        self.kinds.is_in_no_version(kind).then(|| NO_SUCH_KIND_REASON.into())
    }

    /// Returns the remedy for a kind that the server does not have; none where a source brings it.
    fn missing_kind_remedy(&self, state: &SourceState, kind: &GroupKind) -> Option<String> {
        if self.has_definition(kind) {
            return None;
        }
        Some(if state.desired_counts.by_kind().contains_key(kind) {
            "install its definition, or remove its manifests; `kubectl get crds,apiservices` shows what defines kinds"
                .to_owned()
        } else {
            let kinds = state.inventory.iter().flat_map(|inventory| &inventory.kinds);
            unserved_kind_remedy(self.sources.inventory_namespace(), &state.declared.name, kinds, kind)
        })
    }
}

/// Says that a source prunes nothing, as a kind of its inventory is not served, and what mends it.
pub(crate) fn explain_unserved_kind(
    namespace: &str,
    source: &str,
    kinds: &BTreeSet<GroupKind>,
    kind: &GroupKind,
) -> String {
    let remedy = unserved_kind_remedy(namespace, source, kinds, kind);
    format!("ConfigMap {namespace}/{source}: {}", explain_unlisted_kind(kind, NO_SUCH_KIND_REASON, &remedy))
}

fn explain_unlisted_kind(kind: &GroupKind, why: &str, advice: &str) -> String {
    format!("nothing is pruned while {kind} cannot be listed: {why}; {advice}")
}

/// Returns the remedy for a kind of an inventory that no manifest wants and no server has.
fn unserved_kind_remedy<'a>(
    namespace: &str,
    source: &str,
    kinds: impl IntoIterator<Item = &'a GroupKind>,
    kind: &GroupKind,
) -> String {
    let others: Vec<String> =
        kinds.into_iter().filter(|other| *other != kind).map(GroupKind::to_string).collect();
    format!(
        "`kubectl get crds,apiservices` shows what defines kinds: bring its definition back, or, if none of its \
         objects is left, take it out of the inventory: `kubectl -n {namespace} annotate --overwrite configmap \
         {source} {KINDS_ANNOTATION}={}`",
        others.join(",")
    )
}
