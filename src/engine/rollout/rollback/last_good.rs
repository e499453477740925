//! The last good content before failed contents stays known until something newer has succeeded.
//!
//! A newer revision ends a rejection. Failed contents may still be there then, as nothing went
//! back, or not all of it. The newer revision's rollback leads to the content before them.

use crate::engine::facts::entry::SourceId;
use crate::engine::rollout::ledger::ReleaseUnit;
use crate::engine::rollout::rollback::rejection::Rejection;
use crate::engine::state::Engine;

impl Engine {
    /// Returns whether only this rejection still records the last good content.
    pub(in crate::engine) fn is_only_record_of_targets(
        &self,
        source: SourceId,
        rejection: &Rejection,
    ) -> bool {
        let Some(ledger) = &self.rollouts.ledger else { return true };
        let members = &rejection.unit.members;
        let is_recorded = members.keys().any(|id| ledger.unit_of(&self.inventory_ids[source], id).is_some());
        self.shows_failed_content(source, rejection) && !is_recorded && !self.is_concluded(&rejection.unit)
    }

    /// Lets a unit go back to the content before failed contents that are still there. Objects that
    /// failed together with them belong to the unit: they were good together.
    pub(in crate::engine) fn inherit_rollback_targets(&self, source: SourceId, unit: &mut ReleaseUnit) {
        let inventory = self.sources[source].inventory.iter();
        for rejection in inventory.flat_map(|inventory| &inventory.rejections) {
            let shares = rejection.unit.members.keys().any(|id| unit.members.contains_key(id));
            if !shares
                || !self.is_superseded(source, rejection)
                || !self.is_only_record_of_targets(source, rejection)
            {
                continue;
            }
            for id in rejection.unit.members.keys() {
                if !unit.members.contains_key(id) {
                    unit.members.insert(id.clone(), self.member(source, id));
                }
            }
            unit.merge_older(&rejection.unit);
        }
    }
}
