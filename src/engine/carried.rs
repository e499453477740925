//! What was good before contents that failed stays known until something newer has succeeded.
//!
//! A newer revision ends a rejection. Where its contents are still there at that time, as nothing went back, or not
//! all of it, they are not what the newer revision goes back to: that is what was good before them.

use super::book::Unit;
use super::entry::SourceId;
use super::rejection::Rejection;
use super::state::Engine;

impl Engine {
    /// Whether a rejection that the newest revision ends is the only one to know what was good.
    pub(super) fn is_needed(&self, source: SourceId, rejection: &Rejection) -> bool {
        let Some(book) = &self.rollouts.book else { return true };
        let members = &rejection.unit.members;
        let is_recorded = members.keys().any(|id| book.unit_of(&self.applysets[source], id).is_some());
        self.has_not_left(source, rejection) && !is_recorded && !self.is_over(&rejection.unit)
    }

    /// Has a unit go back to what was good before contents that are there and have failed. What failed with them
    /// belongs to it: it was good together.
    pub(super) fn carry_over(&self, source: SourceId, unit: &mut Unit) {
        let inventory = self.sources[source].inventory.iter();
        for rejection in inventory.flat_map(|inventory| &inventory.rejections) {
            let shares = rejection.unit.members.keys().any(|id| unit.members.contains_key(id));
            if !shares || !self.is_void(source, rejection) || !self.is_needed(source, rejection) {
                continue;
            }
            for id in rejection.unit.members.keys() {
                if !unit.members.contains_key(id) {
                    unit.members.insert(id.clone(), self.member(source, id));
                }
            }
            unit.absorb(&rejection.unit);
        }
    }
}
