//! Objects that a source may not have are no part of its desired state, and nothing is done about
//! those that it has.
//!
//! The present list counts: a way back to an older content is held against it too.

use std::sync::Arc;

use crate::engine::decide::action::{Action, Decision};
use crate::engine::facts::entry::SourceId;
use crate::engine::rollout::step_overlay::under;
use crate::engine::state::Engine;
use crate::engine::{AllowViolation, Overlay, Reason};
use crate::manifest::KindScopes;
use crate::object::{GroupKind, ObjectId};

impl Engine {
    /// Takes over where the objects of each kind live.
    pub fn scoped(&mut self, scopes: KindScopes) {
        self.scopes = scopes;
        self.judge_again();
    }

    /// Returns why a source may not have an object.
    pub(in crate::engine) fn refusal(&self, source: SourceId, id: &ObjectId) -> Option<AllowViolation> {
        self.sources[source].allow.refusal(id, self.scopes.get(&id.group_kind()))
    }

    /// Returns whether a source may have an object.
    pub fn allows(&self, source: SourceId, id: &ObjectId) -> bool {
        self.refusal(source, id).is_none()
    }

    /// Returns whether a source may have any object of a kind. Others are not listed for it, and
    /// keep it from nothing.
    pub fn admits(&self, source: SourceId, kind: &GroupKind) -> bool {
        self.sources[source].allow.admits(kind, self.scopes.get(kind))
    }

    /// Returns the kinds of a source's inventory that are listed for it.
    pub fn held_kinds(&self, source: SourceId) -> impl Iterator<Item = &GroupKind> {
        let inventory = self.sources[source].inventory.iter();
        let kinds = inventory.flat_map(|inventory| &inventory.kinds);
        kinds.filter(move |kind| self.admits(source, kind))
    }

    /// Returns why nothing is done about an object that a source has in the cluster.
    pub(in crate::engine) fn not_allowed(&self, source: SourceId, id: &ObjectId) -> Option<Arc<str>> {
        let why = self.refusal(source, id)?;
        let step = self.shown(id).and_then(under).and_then(Overlay::step);
        let stays = step.map(|step| format!("; it stays in step {step} of its rollout")).unwrap_or_default();
        Some(format!("no longer allowed, so it is neither repaired nor deleted: {why}{stays}").into())
    }

    /// Returns whether the source that has an object in the cluster may not have it.
    pub(in crate::engine) fn is_not_allowed(&self, id: &ObjectId) -> bool {
        let source = self.shown(id).and_then(|live| self.source_of(live));
        source.is_some_and(|source| self.refusal(source, id).is_some())
    }

    /// Lets no write pass for a source that may not have the object, whatever it was decided from.
    pub(in crate::engine) fn within_allowed(&self, id: &ObjectId, decision: Decision) -> Decision {
        let source = match &decision.action {
            Action::Apply(apply) => Some(apply.source),
            Action::Delete(..) => self.shown(id).and_then(|live| self.source_of(live)),
            _ => None,
        };
        match source.and_then(|source| self.not_allowed(source, id)) {
            Some(why) => Decision::wait(Reason::Kept(why)),
            None => decision,
        }
    }
}
