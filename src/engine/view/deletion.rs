//! The questions about deletions, and about what other sources say.

use std::sync::Arc;

use super::View;
use crate::engine::{
    ApplyRequest, CurrentOwner, DesiredObject, DroppedObject, InventoryNote, KeptObjects, PruneDecision,
    RecreationBlocker, SourceId, SourceStatement, UnlistedReason, UnwatchedNamespaces,
};
use crate::object::{GroupKind, ObjectId};

impl<'a> View<'a> {
    /// Returns a source of another process that may still come to want an object, though it does
    /// not request it now.
    pub(crate) fn possible_competitor(self, source: SourceId, id: &ObjectId) -> Option<&'a Arc<str>> {
        self.engine.possible_competitor(source, id)
    }

    /// Returns whether what the other sources say is to be read now.
    pub(crate) fn is_peer_read_needed(self) -> bool {
        self.engine.is_peer_read_needed()
    }

    /// Returns from whom a write takes its object over; none where that is nobody's, or its own
    /// source's.
    pub(crate) fn previous_owner(self, apply: &ApplyRequest) -> Option<CurrentOwner> {
        self.engine.previous_owner(apply)
    }

    /// Returns the objects of a source that its inventory is to record as kept.
    pub(crate) fn kept_objects(self, source: SourceId) -> KeptObjects {
        self.engine.kept_objects(source)
    }

    /// Returns the objects that are to be searched for in other folders before a source deletes them.
    /// None where nothing is to be searched for, or not all is known yet.
    pub(crate) fn objects_to_search(self, source: SourceId) -> Option<Vec<DroppedObject>> {
        self.engine.objects_to_search(source)
    }

    /// Returns the statement of a source for the others, where it can be made. `recorded` is its
    /// present one, and stays where it holds. Only a tidy statement takes back requests that are
    /// met.
    pub(crate) fn statement(
        self,
        source: SourceId,
        recorded: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        self.engine.statement(source, recorded)
    }

    /// Returns whether a statement requests anything that it needs no more: a tidy one takes
    /// that back.
    pub(crate) fn has_excess_requests(self, source: SourceId, recorded: &SourceStatement) -> bool {
        self.engine.has_excess_requests(source, recorded)
    }

    /// Returns whether all is known that a statement depends on: what the cluster shows of each
    /// kind that it has.
    pub(crate) fn can_state(self, source: SourceId) -> bool {
        self.engine.can_state(source)
    }

    /// Returns whether a change of the newest revision of a source is not done.
    pub(crate) fn has_unfinished_changes(self, source: SourceId) -> bool {
        self.engine.has_unfinished_changes(source)
    }

    /// Returns the last prune decisions about the unwanted objects of one source.
    pub(crate) fn prune_decisions(
        self,
        source: SourceId,
    ) -> impl Iterator<Item = (&'a ObjectId, &'a PruneDecision)> {
        self.engine.prune_decisions(source)
    }

    /// Returns the last prune decision about one unwanted object of a source.
    pub(crate) fn prune_decision_of(self, source: SourceId, id: &ObjectId) -> Option<&'a PruneDecision> {
        self.engine.prune_decision_of(source, id)
    }

    /// Returns whether a source has objects that it no longer wants.
    pub(crate) fn has_unwanted(self, source: SourceId) -> bool {
        self.engine.has_unwanted(source)
    }

    /// Returns the objects that define a custom kind, as sources bring them. Each source may name
    /// one of its own, and only one of them can be established.
    pub(crate) fn definitions_of(self, kind: &GroupKind) -> impl Iterator<Item = &'a ObjectId> {
        self.engine.definitions_of(kind)
    }

    /// Returns whether a source brings the definition of a custom kind.
    pub(crate) fn has_definition(self, kind: &GroupKind) -> bool {
        self.engine.has_definition(kind)
    }

    /// Returns why an object is not deleted and created again.
    pub(crate) fn recreation_blocker(
        self,
        id: &ObjectId,
        desired: &DesiredObject,
    ) -> Option<RecreationBlocker> {
        self.engine.recreation_blocker(id, desired)
    }

    /// Returns why a source prunes nothing at all until a person does something, and what: a kind
    /// cannot be listed. None where that passes by itself, and where nothing is pruned anyway.
    pub(crate) fn unlisted_reason(self, source: SourceId) -> Option<UnlistedReason> {
        self.engine.unlisted_reason(source)
    }

    /// Returns whether a kind is wanted that the server has in no version.
    pub(crate) fn is_unserved(self, kind: &GroupKind) -> bool {
        self.engine.is_unserved(kind)
    }

    /// Returns whether objects of a kind may be where no informer of the source watches. One that
    /// the server does not have has none anywhere.
    pub(crate) fn can_be_elsewhere(self, source: SourceId, kind: &GroupKind) -> bool {
        self.engine.can_be_elsewhere(source, kind)
    }

    /// Returns whether a source's inventory names kinds or namespaces that are not watched for it.
    /// Its objects there are not known, so they must not be forgotten.
    pub(crate) fn has_unwatched(self, source: SourceId) -> bool {
        self.engine.has_unwatched(source)
    }

    /// Returns what a person should know of a source's inventory, beside its objects.
    pub(crate) fn inventory_notes(self, source: SourceId) -> impl Iterator<Item = InventoryNote> {
        self.engine.inventory_notes(source)
    }

    /// Returns the namespaces of a source's inventory that are not watched for it; none where all
    /// are.
    pub(crate) fn unwatched_namespaces(self, source: SourceId) -> Option<UnwatchedNamespaces> {
        self.engine.unwatched_namespaces(source)
    }
}
