//! A pause between the writes of a unit: either nothing of it is written, or all of it.
//!
//! Its claim is written before the first of its objects, so somebody may pause one of them in
//! between. A configuration without its workload would wait for the next pod that restarts for
//! another reason.

use crate::engine::rollout::ledger::{ReleaseUnit, RollbackTarget};
use crate::engine::state::Engine;
use crate::engine::{Reason, SourceState};
use crate::object::ObjectId;

impl Engine {
    /// Returns the unit that an object is recorded in with the content that is wanted of it.
    pub(in crate::engine) fn recorded_unit(&self, id: &ObjectId) -> Option<&ReleaseUnit> {
        let (source, desired) = self.entry(id)?.target_content()?;
        let unit = self.rollouts.ledger.as_ref()?.unit_of(&self.inventory_ids[source], id)?;
        (unit.members.get(id)?.content == Some(desired.hash)).then_some(unit)
    }

    /// Returns whether something of a unit is written, or is being written.
    pub(in crate::engine) fn is_partly_written(&self, unit: &ReleaseUnit) -> bool {
        unit.members.iter().any(|(id, member)| {
            let Some(content) = member.content else { return false };
            let stays =
                matches!(&member.rollback_target, RollbackTarget::Content(good) if good.hash == content);
            // A newer revision's content is not released by the older one's write.
            let wanted = self
                .entry(id)
                .and_then(|entry| entry.target_content())
                .is_some_and(|(_, desired)| desired.hash == content);
            let written = self.is_showing(id, content) || self.rollouts.writing.contains(id);
            wanted && !stays && written
        })
    }

    /// Returns whether a person may have paused anything of a unit. Each object of the unit asks, and
    /// a walk over all of them for each would cost the square of their number.
    pub(in crate::engine) fn may_be_paused(&self, unit: &ReleaseUnit) -> bool {
        let is_paused = |source: &SourceState| {
            source.inventory.as_ref().is_some_and(|inventory| inventory.paused.is_some())
        };
        self.sources.iter().any(is_paused) || self.orders.asked.iter().any(|id| unit.members.contains_key(id))
    }

    /// Returns the pause of one of a unit, which keeps all of it.
    pub(in crate::engine) fn pause_within(&self, unit: &ReleaseUnit) -> Option<Reason> {
        let mut paused = unit.members.keys().filter(|id| self.own_pause(id).is_some());
        paused.next().map(|id| Reason::Needs(id.clone(), "is paused".into()))
    }
}
