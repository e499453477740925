//! The result of each action: what the engine hears of it, and when the next try is.
//!
//! It comes as `LoopEvent::ActionDone`, from a task that `turn_executor.rs` has spawned.
//! `finish_action` hands it over as `Input::Answered`, which `Engine::record_result` takes.

use std::time::{Duration, Instant};

use super::Reconciler;
use crate::engine::{
    Action, ActionResult, ApplyPurpose, ApplyRequest, DeletionReason, Input, RefusalRule, WriteFailure,
};
use crate::object::ObjectId;
use crate::queue::WorkQueue;
use crate::report::Outcome;

/// The delay after another client wrote first, for the first conflicts in a row: the next view is
/// on its way.
const SHORT_CONFLICT_DELAY: Duration = Duration::from_secs(1);

/// The maximum number of conflicts in a row after which an object is decided on as soon as the
/// newer view is here. While a workload rolls out, its status alone makes every view old within
/// moments.
const MAX_IMMEDIATE_CONFLICTS: u32 = 3;

/// The maximum number of conflicts in a row with the short delay. More of them are no race any
/// more.
const MAX_SHORT_CONFLICTS: u32 = 8;

/// The delay after more conflicts in a row than that.
const LONG_CONFLICT_DELAY: Duration = Duration::from_secs(15);

/// The least delay before a write is tried again that the user is not allowed. One of these objects
/// notices a role that is granted within it, and the others follow at once.
const DENIED_RETRY_DELAY: Duration = Duration::from_secs(15);

/// The delay for each denied object, where all of them together give a longer one.
const DENIED_DELAY_PER_OBJECT: Duration = Duration::from_millis(50);

/// Returns the metric label of an action.
fn action_label(action: &Action) -> &'static str {
    match action {
        Action::DryRun(_) => "dry-run",
        Action::Apply(apply) => match apply.purpose {
            ApplyPurpose::Create => "create",
            ApplyPurpose::Change => "change",
            ApplyPurpose::Repair => "repair",
            ApplyPurpose::Adopt => "adopt",
            ApplyPurpose::Transfer => "transfer",
            ApplyPurpose::Step => "step",
            ApplyPurpose::Restart => "restart",
        },
        Action::Delete(_, _, DeletionReason::Prune) => "prune",
        Action::Delete(_, _, DeletionReason::Recreate) => "recreate",
        _ => "other",
    }
}

impl Reconciler {
    /// Hands the result of an action to the engine, reports its outcome, and finishes the key.
    pub(super) fn finish_action(
        &mut self,
        id: &ObjectId,
        action: Action,
        result: ActionResult,
        outcome: Option<Outcome>,
    ) {
        if let Some(parked_retry) = self.writes.note_answer(id) {
            self.queue.add(parked_retry);
        }
        let now = Instant::now();
        self.queue.tick(now);
        self.record_metrics(id, &action, &result);
        let result = match result {
            ActionResult::Failed(failure) => ActionResult::Failed(self.with_backoff(id, failure)),
            carried_out => {
                self.writes.widen();
                // A question that is answered says nothing about the write.
                if !matches!(action, Action::DryRun(_)) {
                    self.queue.forget(id);
                    self.objects.logged_refusals.remove(id);
                }
                carried_out
            }
        };
        if let ActionResult::Failed(failure) = &result {
            tracing::debug!(object = %id, "not carried out: {failure}");
        }
        let unchanged = match (&result, &action) {
            (ActionResult::Applied(written), Action::Apply(apply)) => {
                apply.decided_on == Some(written.live.rv)
            }
            _ => false,
        };
        if let (ActionResult::Applied(_), Action::Apply(apply), false) = (&result, &action, unchanged) {
            self.log_restart(id, apply);
        }
        let repair = matches!(action, Action::Apply(ApplyRequest { purpose: ApplyPurpose::Repair, .. }));
        let repaired = repair && !unchanged && matches!(result, ActionResult::Applied(_));
        let action = Box::new(action);
        self.engine.handle(Input::Answered { id: id.clone(), action, result }, now);
        if let Some(outcome) = outcome {
            let outcome = if unchanged { Outcome::Unchanged } else { outcome };
            if repaired {
                self.record_repair(id, outcome);
            } else {
                self.record_outcome(id, outcome);
            }
        }
        self.queue.finish(id);
    }

    fn record_metrics(&self, id: &ObjectId, action: &Action, outcome: &ActionResult) {
        let failed = match outcome {
            ActionResult::Failed(failure) => Some(failure.class()),
            _ => None,
        };
        self.telemetry.metrics.record_write(action_label(action), failed);
        if let (Action::Apply(ApplyRequest { purpose: ApplyPurpose::Repair, .. }), None) = (action, failed)
            && let Some((source, _)) = self.engine.view().entry(id).and_then(|entry| entry.target_content())
        {
            self.telemetry.metrics.record_repair(&self.engine.view().source(source).declared.name);
        }
    }

    fn with_backoff(&mut self, id: &ObjectId, failure: WriteFailure) -> WriteFailure {
        let backoff =
            |queue: &mut WorkQueue<ObjectId>| queue.next_backoff(id, super::super::random_fraction());
        match failure {
            WriteFailure::Unknown(why, wait) => {
                self.writes.narrow();
                WriteFailure::Unknown(
                    why,
                    wait.max(backoff(&mut self.queue).min(super::event_handlers::MAX_OUTAGE_BACKOFF)),
                )
            }
            WriteFailure::Refused(why, RefusalRule::Rights, wait) => {
                let most = DENIED_RETRY_DELAY
                    .max(DENIED_DELAY_PER_OBJECT * self.engine.view().count_denied() as u32);
                let pause = backoff(&mut self.queue).min(most);
                WriteFailure::Refused(why, RefusalRule::Rights, wait.map(|wait| wait.max(pause)))
            }
            WriteFailure::Refused(why, rule, wait) => {
                WriteFailure::Refused(why, rule, wait.map(|wait| wait.max(backoff(&mut self.queue))))
            }
            WriteFailure::Conflict(_) => {
                let failures = self.queue.failures(id);
                let most =
                    if failures < MAX_SHORT_CONFLICTS { SHORT_CONFLICT_DELAY } else { LONG_CONFLICT_DELAY };
                let pause = backoff(&mut self.queue).min(most);
                WriteFailure::Conflict(if failures < MAX_IMMEDIATE_CONFLICTS {
                    Duration::ZERO
                } else {
                    pause
                })
            }
        }
    }
}
