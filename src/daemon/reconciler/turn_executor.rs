//! Carries the decisions of a turn out on the cluster, by the tasks of the loop.
//!
//! Each task runs a function of `src/daemon/executor.rs`. That of a write ends with
//! `LoopEvent::ActionDone`, which `finish_action` in `reconciler/dispatch.rs` takes.

use std::time::Instant;

use super::super::drift::ComparisonRequest;
use super::Reconciler;
use super::dispatch::LookupBatch;
use super::write_window::RetryAdmission;
use crate::engine::{
    Action, Admission, Decision, EffectExecutor, Engine, ObjectQuestion, ObjectWrite, Reason, WriteMode,
};
use crate::object::ObjectId;

/// The loop in one of its turns, with the questions that it asks together at the end.
pub(super) struct TurnExecutor<'a> {
    pub(super) reconciler: &'a mut Reconciler,
    pub(super) batch: &'a mut LookupBatch,
}

impl EffectExecutor for TurnExecutor<'_> {
    const WRITES: WriteMode = WriteMode::Sent;

    fn engine_mut(&mut self) -> &mut Engine {
        &mut self.reconciler.engine
    }

    /// Reports the reason. A write waits where its kind is not served, and where too many others
    /// are tried again.
    fn admit(&mut self, id: &ObjectId, decision: &Decision, now: Instant) -> Admission {
        let reconciler = &mut *self.reconciler;
        if let Some(again) = decision.requeue_after {
            reconciler.queue.add_at(id.clone(), now + again);
        }
        reconciler.record_reason(id, decision.reason.clone(), &decision.action);
        if !matches!(decision.action, Action::DryRun(_) | Action::Apply(_) | Action::Delete(..)) {
            return Admission::Admitted;
        }
        let is_admitted = reconciler.kind_of(id).is_some()
            && (reconciler.queue.failures(id) == 0
                || reconciler.writes.admit_retry(id) == RetryAdmission::Admitted);
        if is_admitted {
            return Admission::Admitted;
        }
        reconciler.queue.finish(id);
        Admission::Deferred
    }

    fn ask(&mut self, id: ObjectId, question: ObjectQuestion) {
        let reconciler = &mut *self.reconciler;
        let shown = reconciler.engine.view().live_object(&id);
        match question {
            ObjectQuestion::Existence => self.batch.lookups.push(id),
            ObjectQuestion::CachedComparison(desired, variant) => {
                self.batch.comparisons.push(ComparisonRequest::new(id.clone(), desired, variant, shown));
            }
            ObjectQuestion::LiveComparison(desired, variant) => {
                let request = ComparisonRequest::new(id.clone(), desired, variant, shown);
                match reconciler.kind_of(&id) {
                    Some(kind) => reconciler.spawn(reconciler.executor_for(&id).compare_live(kind, request)),
                    None => reconciler.queue.finish(&id),
                }
            }
            // All contents are asked for together, at the beginning of a turn.
            ObjectQuestion::OlderContent => reconciler.queue.finish(&id),
        }
    }

    fn write(&mut self, id: ObjectId, write: ObjectWrite, _: Option<Reason>) {
        let reconciler = &mut *self.reconciler;
        let Some(kind) = reconciler.kind_of(&id) else { return reconciler.queue.finish(&id) };
        reconciler.writes.note_sent();
        match write {
            ObjectWrite::DryRun(apply) => {
                let kind =
                    reconciler.watches.kinds.served_kind_of_version(&apply.desired.gvk).unwrap_or(kind);
                let executor = reconciler.executor_of(Some(apply.source));
                reconciler.spawn(executor.query_dry_run(kind, id, apply));
            }
            ObjectWrite::Apply(apply) => {
                let kind =
                    reconciler.watches.kinds.served_kind_of_version(&apply.desired.gvk).unwrap_or(kind);
                let owner = reconciler.engine.view().previous_owner(&apply);
                let executor = reconciler.executor_of(Some(apply.source));
                reconciler.spawn(executor.apply(kind, id, apply, owner));
            }
            ObjectWrite::Delete(uid, version, reason) => {
                let executor = reconciler.executor_for(&id);
                reconciler.spawn(executor.delete(kind, id, uid, version, reason));
            }
        }
    }

    fn rest(&mut self, id: ObjectId, _: Option<Reason>) {
        self.reconciler.queue.finish(&id);
    }
}
