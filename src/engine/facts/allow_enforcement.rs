//! Objects that a source may not have are no part of its desired state, and nothing is done about
//! those that it has.
//!
//! The present list counts: a rollback to an older content is held against it too.

use crate::engine::facts::entry::SourceId;
use crate::engine::facts::live_object::live_overlay;
use crate::engine::state::Engine;
use crate::engine::{AllowViolation, DisallowedObject, RolloutOverlay};
use crate::manifest::KindScopes;
use crate::object::{GroupKind, ObjectId};

impl Engine {
    /// Takes over where the objects of each kind live.
    pub(in crate::engine) fn set_scopes(&mut self, scopes: KindScopes) {
        self.kinds.set_scopes(scopes);
        self.mark_prunes_stale();
    }

    /// Returns why a source may not have an object.
    pub(in crate::engine) fn allow_violation(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<AllowViolation> {
        self.sources[source].declared.allow.violation(id, self.kinds.scope_of(&id.group_kind()))
    }

    /// Returns whether a source may have an object.
    pub(in crate::engine) fn is_allowed(&self, source: SourceId, id: &ObjectId) -> bool {
        self.allow_violation(source, id).is_none()
    }

    /// Returns whether a source may have any object of a kind. Others are not listed for it, and
    /// keep it from nothing.
    pub(in crate::engine) fn is_kind_allowed(&self, source: SourceId, kind: &GroupKind) -> bool {
        self.sources[source].declared.allow.can_allow_kind(kind, self.kinds.scope_of(kind))
    }

    /// Returns the kinds of a source's inventory that are listed for it.
    pub(in crate::engine) fn listed_kinds(&self, source: SourceId) -> impl Iterator<Item = &GroupKind> {
        let inventory = self.sources[source].inventory.iter();
        let kinds = inventory.flat_map(|inventory| &inventory.kinds);
        kinds.filter(move |kind| self.is_kind_allowed(source, kind))
    }

    /// Returns why nothing is done about an object that a source has in the cluster.
    pub(in crate::engine) fn disallowed_reason(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<DisallowedObject> {
        let violation = self.allow_violation(source, id)?;
        let step = self.live_object(id).and_then(live_overlay).and_then(RolloutOverlay::step);
        Some(DisallowedObject { violation, step })
    }

    /// Returns whether the source that has an object in the cluster may not have it.
    pub(in crate::engine) fn is_not_allowed(&self, id: &ObjectId) -> bool {
        let source = self.live_object(id).and_then(|live| self.source_of(live));
        source.is_some_and(|source| self.allow_violation(source, id).is_some())
    }
}
