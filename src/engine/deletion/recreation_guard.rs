//! The guard of an object that is to be deleted and created again for an immutable field.
//!
//! The manifest asks for it, so nobody is asked. Another annotation that keeps the object, and data
//! that go with it, forbid it: then the refusal of the API server stays.

use crate::engine::deletion::prune_guard::data_loss_reason;
use crate::engine::facts::desired::DesiredObject;
use crate::engine::facts::entry::{ObjectEntry, RefusalRule};
use crate::engine::state::Engine;
use crate::engine::{PruneTiming, VolumeClaimRetention};
use crate::object::ObjectId;

/// The kind that `rhumb.dev/recreate` may delete though its pruning needs a confirmation. Its
/// claims stay then: where its `persistentVolumeClaimRetentionPolicy` deletes them, it may not.
const RECREATED_KIND: &str = "StatefulSet";

impl Engine {
    /// Returns why an object whose content is refused for an immutable field is not recreated.
    pub(in crate::engine) fn refused_recreation(&self, id: &ObjectId, entry: &ObjectEntry) -> Option<String> {
        let refused = entry.api_refusal.as_ref().filter(|refusal| refusal.rule == RefusalRule::Immutable)?;
        let desired = entry.target_content().map(|(_, desired)| desired);
        self.recreation_blocker(id, desired.filter(|desired| refused.is_of(desired))?)
    }

    /// Returns why an object is not deleted and created again, in words that follow "as".
    pub(in crate::engine) fn recreation_blocker(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
    ) -> Option<String> {
        let live = self.live_object(id)?;
        match self.prune_timing(id, live).strictest(desired.traits.prune_timing) {
            PruneTiming::Never => return Some("an annotation keeps it from being deleted".to_owned()),
            PruneTiming::OnConfirmation => {
                return Some("an annotation asks for a confirmation of its deletion".to_owned());
            }
            PruneTiming::AfterUnit | PruneTiming::BeforeUnit => {}
        }
        if [live.volume_claim_retention, desired.traits.volume_claim_retention]
            .contains(&VolumeClaimRetention::Delete)
        {
            return Some("its persistentVolumeClaimRetentionPolicy deletes its claims with it".to_owned());
        }
        Some(format!("data are lost with {}", recreation_loss(id)?))
    }
}

/// Returns the kind of an object with which data are lost, in words. None where it may be
/// recreated; its namespace does not count.
pub(crate) fn recreation_loss(id: &ObjectId) -> Option<&'static str> {
    let kind = ObjectId::new(&id.group_kind(), None, id.name());
    data_loss_reason(&kind).filter(|_| id.kind() != RECREATED_KIND)
}
