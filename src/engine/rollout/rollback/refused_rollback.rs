//! Rollbacks that the API server refuses end in quarantine.
//!
//! Content that was good before may be refused by now: by a quota, by a policy that came later, for
//! a field that never changes. A workload that waited for that to heal would keep its slot from
//! all others.

use crate::engine::facts::entry::RefusalRule;
use crate::engine::rollout::ledger::RollbackTarget;
use crate::engine::rollout::rollback::rejection::{RejectionAction, ReplacementContent};
use crate::engine::state::Engine;
use crate::engine::{RecreatePolicy, is_workload};
use crate::object::ObjectId;

/// The number of refusals in a row that end a rollback: the API server's parts learn of rights and
/// quotas one after another.
const MAX_ROLLBACK_REFUSALS: u32 = 5;

impl Engine {
    /// Ends the rollback of a workload that is there and whose good content is refused for good.
    pub(in crate::engine) fn quarantine_refused_rollback(&mut self, id: &ObjectId) {
        let Some(source) =
            self.rejecting_source(id).filter(|_| is_workload(id) && self.live_object(id).is_some())
        else {
            return;
        };
        let Some(why) = self.rollback_refusal(id) else { return };
        let inventory = self.sources[source].inventory.iter();
        let named = inventory.flat_map(|inventory| &inventory.rejections).find(|rejection| {
            let member = rejection.unit.members.get(id);
            let back =
                rejection.action == RejectionAction::RollBack && !self.is_superseded(source, rejection);
            back && member.is_some_and(|member| matches!(member.rollback_target, RollbackTarget::Content(_)))
        });
        let Some(rejection) = named.cloned() else { return };
        let cause = format!("{}; going back failed too: {id}: refused: {why}", rejection.cause);
        self.quarantine_failed_unit(source, rejection, cause);
    }

    fn rollback_refusal(&self, id: &ObjectId) -> Option<String> {
        let entry = self.entry(id)?;
        let ReplacementContent::Read(good, _) = &entry.rejection.as_ref()?.replacement else {
            return None;
        };
        let refusal = entry.refused.as_ref().filter(|refusal| refusal.is_of(good))?;
        let final_now = match refusal.rule {
            RefusalRule::Webhook => false,
            RefusalRule::Immutable if good.traits.recreate == RecreatePolicy::Allowed => false,
            _ => refusal.retry.is_none() || refusal.times >= MAX_ROLLBACK_REFUSALS,
        };
        final_now.then(|| refusal.text.to_string())
    }
}
