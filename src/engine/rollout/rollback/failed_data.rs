//! The rejection of newer data that break a workload which has gone back before.
//!
//! A unit names nothing that is rejected, so the unit of these data does not name the workload. By
//! the rejection of the workload it alone would be quarantined, and the data would stay.

use std::sync::Arc;

use crate::engine::LiveObject;
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::records::rejection::{Rejection, RejectionAction};
use crate::engine::rollout::rollback::rejection::bound_cause;
use crate::engine::rollout::rollback::rejection_cause::{FailedChange, FailedRelease, RejectionCause};
use crate::engine::state::Engine;
use crate::object::ObjectId;

impl Engine {
    /// Returns the rejection of the unit that brought data for which a workload was restarted; none
    /// where nothing of it can go back.
    pub(in crate::engine) fn failed_data_rejection(
        &self,
        source: SourceId,
        workload: &ObjectId,
        why: &Arc<str>,
    ) -> Option<Rejection> {
        let (_, desired) = self.entry(workload)?.target_content()?;
        let started = self.live_object(workload).and_then(LiveObject::shown_config_stamp)?;
        let used = desired.restart_references()?;
        let mut changed = started.positions().filter_map(|position| used.get(position));
        let unit = changed.find_map(|data| {
            let unit = self.replaced_unit(source, data)?;
            let member = unit.members.get(data)?;
            let replaces = member.rollback_target.content_ref().is_some() && !member.has_unchanged_content();
            replaces.then_some(unit)
        })?;
        let action = self.action_for_unit(&unit, workload);
        if action == RejectionAction::Quarantine || unit.members.keys().any(|id| self.has_rejection(id)) {
            return None;
        }
        let failed = RejectionCause::RolloutFailed(FailedRelease {
            change: FailedChange::Revision(unit.revision.clone()),
            workload: workload.clone(),
            restarted_for: Some(self.changed_data(workload, started)),
            why: why.clone(),
        });
        let rejection = Rejection { unit, action, cause: bound_cause(failed.to_string()) };
        (!self.is_superseded(source, &rejection)).then_some(rejection)
    }
}
