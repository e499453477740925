//! Several sources of this process that want one object: the one that has it goes on.
//!
//! A source that comes to name what another one has must not stop it. Where none of them has the
//! object, none makes it, as nobody can say whose it is to be.

use std::sync::Arc;

use crate::engine::decide::ownership::first_source_reason;
use crate::engine::state::Engine;
use crate::engine::{DesiredState, SourceId, WaitTopic};
use crate::object::ObjectId;

/// The reason for which an object is decided on for another source of this process, and not for one
/// that wants or has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PriorSource {
    /// In words.
    pub why: Arc<str>,
    /// Indicates whether the one that does not get it wants it.
    pub is_wanted: bool,
}

impl Engine {
    /// Returns the other source of this process that an object is decided on for, as seen from one
    /// that wants or has it. None where it is decided on for that one.
    pub(crate) fn prior_source(&self, source: SourceId, id: &ObjectId) -> Option<PriorSource> {
        let entry = self.entry(id)?;
        let is_wanted = entry.targets.iter().any(|(one, _)| *one == source);
        if is_wanted {
            let has_it = entry.owner.is_some_and(|owner| owner != source);
            return has_it.then(|| PriorSource { why: first_source_reason(&entry.targets), is_wanted });
        }
        let (other, _) = entry.targets.first()?;
        let why = format!("source {} wants it", self.sources[*other].name);
        Some(PriorSource { why: why.into(), is_wanted })
    }

    /// Puts the source first that has an object, of those that want it, and returns whether that is
    /// another one now.
    ///
    /// The label of the live object decides; until a write of ours is seen, the accepted content
    /// does.
    pub(in crate::engine) fn order_wants(&mut self, id: &ObjectId) -> bool {
        let owner = self.known_owner(id);
        self.prefer_source(id, owner)
    }

    /// Returns the source that has an object, of several that want it.
    pub(super) fn known_owner(&self, id: &ObjectId) -> Option<SourceId> {
        let entry = self.entries.get(id).filter(|entry| entry.targets.len() > 1)?;
        let shown = self.informer_objects.get(id).and_then(|live| self.source_of(live));
        let wants = |source: &SourceId| entry.targets.iter().any(|(wanting, _)| wanting == source);
        shown.filter(wants).or_else(|| entry.accepted_source().filter(wants))
    }

    /// Puts a source first of those that want an object, and returns whether another one was
    /// before.
    pub(super) fn prefer_source(&mut self, id: &ObjectId, owner: Option<SourceId>) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        entry.targets.sort_by_key(|(source, _)| (Some(*source) != owner, *source));
        std::mem::replace(&mut entry.owner, owner) != owner
    }

    /// Gives an object to another source: no wave of the others waits for it.
    pub(in crate::engine) fn change_owner(&mut self, id: &ObjectId) {
        let wants = self.entries.get(id).map(|entry| entry.targets.clone()).unwrap_or_default();
        for (source, state) in wants {
            if let DesiredState::Object(desired) = state
                && self.sources[source].waves.entry(desired.wave).or_default().remove(id)
            {
                self.wake_topic(&WaitTopic::Waves(source));
            }
        }
        self.index_target(id);
        self.track_wave(id);
    }
}
