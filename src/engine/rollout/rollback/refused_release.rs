//! Failed workloads whose newer content the API server refuses for good. Nothing else would ever
//! replace their pods, so they go back, and the newer content is rejected with the failed one.

use std::sync::Arc;

use crate::engine::facts::entry::{ApiRefusal, SourceId};
use crate::engine::facts::records::rejection::{Rejection, RejectionAction};
use crate::engine::facts::records::release_unit::ReleaseUnit;
use crate::engine::rollout::rollback::rejection::bound_cause;
use crate::engine::rollout::rollback::rejection_cause::RejectionCause;
use crate::engine::state::Engine;
use crate::object::ObjectId;

impl Engine {
    /// Proposes the rejections of the units of failed workloads whose newer content waits for this
    /// object, which the server refuses for good.
    pub(in crate::engine) fn propose_refused_releases(&mut self, refused: &ObjectId) {
        let found = self.rollouts.in_flight.iter().filter_map(|(id, rollout)| {
            let why: Arc<str> = rollout.failed.as_ref()?.to_string().into();
            self.release_refusal(id).filter(|(of, _)| *of == refused)?;
            let source = self.wanting_source(id)?;
            Some((source, self.refused_release_rejection(source, id, &why)?))
        });
        for (source, rejection) in found.collect::<Vec<(SourceId, Rejection)>>() {
            self.add_pending_rejection(source, rejection);
        }
    }

    /// Returns the rejection of the unit of a failed workload whose newer content is refused for
    /// good; none where it would not go back.
    ///
    /// It is of the newest contents, as an order to abort is: a rejection of others does not apply.
    pub(in crate::engine) fn refused_release_rejection(
        &self,
        source: SourceId,
        id: &ObjectId,
        why: &Arc<str>,
    ) -> Option<Rejection> {
        let (refused, refusal) = self.release_refusal(id)?;
        let ledger = self.rollouts.ledger.latest()?;
        let revision = self.live_object(id)?.shown_release()?.revision.clone();
        let mut unit = self.build_unit(source, id);
        if let Some(recorded) = ledger.unit_of(&self.sources.inventory_ids()[source], id) {
            unit.merge_older(recorded);
        }
        let unit = self.with_desired_contents(source, unit);
        let member = unit.members.get(id)?;
        let goes_back = member.rollback_target.content_ref().is_some()
            && !member.has_unchanged_content()
            && !self.is_showing_rollback_target(id, member)
            && self.action_for_unit(&unit, id) == RejectionAction::RollBack;
        if !goes_back {
            return None;
        }
        let failed = self.failed_release(id, &ReleaseUnit { revision, ..unit.clone() }, why);
        let cause = RejectionCause::NewerRefused(failed, refused.clone(), refusal.cause.clone());
        Some(Rejection { unit, action: RejectionAction::RollBack, cause: bound_cause(cause.to_string()) })
    }

    /// Returns what the server refuses for good of the newer content of a workload, or of an object
    /// that this content waits for.
    fn release_refusal(&self, id: &ObjectId) -> Option<(&ObjectId, &ApiRefusal)> {
        let entry = self.entry(id).filter(|entry| entry.rejection.is_none())?;
        let desired = entry.unreleased_content()?;
        let mut awaited =
            [&desired.id].into_iter().chain(desired.needs.iter()).chain(desired.depends_on.iter());
        awaited.find_map(|other| Some((other, self.entry(other)?.final_refusal()?)))
    }
}
