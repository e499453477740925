//! Kinds that cannot be listed: what is not seen may be there, so their source prunes nothing.

use std::sync::Arc;

use crate::engine::facts::entry::SourceId;
use crate::engine::state::{Engine, KindAvailability, KindState};
use crate::engine::{PrunePolicy, SourceState};
use crate::object::{ErrorClass, GroupKind};

/// The reason for a kind whose API group is another server's that is down.
pub(crate) const GROUP_DOWN: &str = "the server of its API group does not answer";

/// The annotation of an inventory with the kinds of its objects.
const KINDS_ANNOTATION: &str = "applyset.kubernetes.io/contains-group-kinds";

impl Engine {
    /// Names the namespace of the inventories, for commands that people type.
    pub(crate) fn set_inventory_namespace(&mut self, namespace: &str) {
        self.inventory_namespace = namespace.into();
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

    /// Returns why a source prunes nothing at all until a person does something, and what: a kind
    /// cannot be listed. None where that passes by itself, and where nothing is pruned anyway.
    pub(crate) fn unlisted_reason(&self, source: SourceId) -> Option<String> {
        let state = &self.sources[source];
        if state.prune != PrunePolicy::On || state.inventory.is_none() || state.head.is_none() {
            return None;
        }
        let kind = self.unlisted_kind(source)?;
        let (why, advice) = match (self.missing_kind_reason(&kind), self.kind_state(source, &kind)) {
            (_, Some(KindState::Unobservable(why, ErrorClass::Forbidden))) => {
                (why.clone(), "let the user list and watch it".to_owned())
            }
            (_, Some(KindState::Unobservable(why, _))) if **why == *GROUP_DOWN => {
                (why.clone(), "repair it, or delete its APIService if it is gone for good".to_owned())
            }
            (Some(why), _) => (why, self.missing_kind_remedy(state, &kind)?),
            (None, Some(KindState::Unobservable(why, class))) if *class != ErrorClass::Transient => {
                (why.clone(), self.missing_kind_remedy(state, &kind)?)
            }
            // It passes by itself.
            (None, _) => return None,
        };
        Some(format!("nothing is pruned while {kind} cannot be listed: {why}; {advice}"))
    }

    /// Returns whether a kind is wanted that the server has in no version.
    pub(crate) fn is_unserved(&self, kind: &GroupKind) -> bool {
        self.missing_kind_reason(kind).is_some()
    }

    /// Returns why the server has no such kind, as far as it is wanted.
    pub(in crate::engine) fn missing_kind_reason(&self, kind: &GroupKind) -> Option<Arc<str>> {
        self.served.iter().find_map(|(gvk, served)| match served {
            KindAvailability::No(others) if others.is_empty() && gvk.group_kind() == *kind => {
                Some("the server has no such kind".into())
            }
            _ => None,
        })
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
            format!(
                "`kubectl get crds,apiservices` shows what defines kinds: bring its definition back, or, if none of its \
                 objects is left, take it out of the inventory: `{}`",
                self.removal_command(state, kind)
            )
        })
    }

    /// Returns the command by which a person takes a kind out of the inventory of a source.
    fn removal_command(&self, state: &SourceState, kind: &GroupKind) -> String {
        let recorded = state.inventory.iter().flat_map(|inventory| &inventory.kinds);
        let others: Vec<String> = recorded.filter(|other| *other != kind).map(GroupKind::to_string).collect();
        format!(
            "kubectl -n {} annotate --overwrite configmap {} {KINDS_ANNOTATION}={}",
            self.inventory_namespace,
            state.name,
            others.join(",")
        )
    }
}
