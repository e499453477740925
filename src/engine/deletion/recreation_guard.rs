//! The guard of an object that is to be deleted and created again for an immutable field.
//!
//! The manifest asks for it, so nobody is asked. Another annotation that keeps the object, and data
//! that go with it, forbid it: then the refusal of the API server stays.

use crate::engine::facts::causes::lossy_kind::recreation_loss;
use crate::engine::facts::causes::refusal_cause::RecreationBlocker;
use crate::engine::facts::desired::DesiredObject;
use crate::engine::facts::entry::{ObjectEntry, RefusalRule};
use crate::engine::state::Engine;
use crate::engine::{PruneTiming, VolumeClaimRetention};
use crate::object::ObjectId;

impl Engine {
    /// Returns why an object whose content is refused for an immutable field is not recreated.
    pub(in crate::engine) fn refused_recreation(
        &self,
        id: &ObjectId,
        entry: &ObjectEntry,
    ) -> Option<RecreationBlocker> {
        let refused = entry.api_refusal.as_ref().filter(|refusal| refusal.rule == RefusalRule::Immutable)?;
        let desired = entry.target_content().map(|(_, desired)| desired);
        self.recreation_blocker(id, desired.filter(|desired| refused.is_of(desired))?)
    }

    /// Returns why an object is not deleted and created again.
    pub(in crate::engine) fn recreation_blocker(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
    ) -> Option<RecreationBlocker> {
        let live = self.live_object(id)?;
        match self.prune_timing(id, live).strictest(desired.traits.prune_timing) {
            PruneTiming::Never => return Some(RecreationBlocker::Annotated),
            PruneTiming::OnConfirmation => return Some(RecreationBlocker::ConfirmationRequested),
            PruneTiming::AfterUnit | PruneTiming::BeforeUnit => {}
        }
        if [live.volume_claim_retention, desired.traits.volume_claim_retention]
            .contains(&VolumeClaimRetention::Delete)
        {
            return Some(RecreationBlocker::ClaimsDeleted);
        }
        recreation_loss(id).map(RecreationBlocker::DataLoss)
    }
}
