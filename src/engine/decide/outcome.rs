//! Transitions of an entry after each answered action, dry runs included.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::decide::competing_accounts::{COMPETITOR_RETRY_DELAY, RoleScope};
use crate::engine::decide::decision::{
    Action, ApplyPurpose, ApplyRequest, DeletionReason, Precondition, RestartRisk,
};
use crate::engine::decide::repair::FIGHT_WINDOW;
use crate::engine::facts::causes::lossy_kind::recreation_loss;
use crate::engine::facts::entry::{
    AcceptedContent, ApiRefusal, DirectView, ObjectEntry, RefusalRule, TemporaryFailure, VerifiedOwnership,
};
use crate::engine::state::Engine;
use crate::engine::{
    DryRunImpact, FieldOwnership, LiveObject, RefusalCause, ResourceVersion, RetryCause, SourceId,
    WorkloadPhase, is_workload,
};
use crate::object::{ErrorClass, ObjectId};

/// The server's answer to an apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WriteResult {
    /// The object after it.
    pub live: LiveObject,
}

/// The reason for a write that was not carried out. `render` has its sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum WriteFailure {
    /// Somebody wrote first, or the object to change is missing, or the one to create exists with
    /// other values. It is decided again on a newer view, after this time.
    Conflict(Duration),
    /// The server refuses the content; the time after which it may accept it, none if never.
    Refused(Arc<str>, RefusalRule, Option<Duration>),
    /// Nobody knows whether it was carried out; the time to wait.
    Unknown(Arc<str>, Duration),
}

impl WriteFailure {
    /// Returns the class of the error.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Conflict(_) => ErrorClass::Conflict,
            Self::Refused(_, RefusalRule::Rights, _) => ErrorClass::Forbidden,
            Self::Refused(_, RefusalRule::Webhook, _) | Self::Unknown(..) => ErrorClass::Transient,
            Self::Refused(_, RefusalRule::Immutable | RefusalRule::Other, _) => ErrorClass::Invalid,
        }
    }
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "few are alive at once, and the large one is the frequent one")]
pub(crate) enum ActionResult {
    /// An apply was carried out, or changed nothing.
    Applied(WriteResult),
    /// The impact of an apply, by a dry run.
    DryRun(DryRunImpact),
    /// A deletion was accepted.
    Deleted,
    /// It was not carried out.
    Failed(WriteFailure),
}

impl Engine {
    /// Takes over what came of a write.
    pub(in crate::engine) fn record_result(
        &mut self,
        id: &ObjectId,
        action: &Action,
        outcome: ActionResult,
        now: Instant,
    ) {
        let is_overtaken = !matches!(action, Action::DryRun(_)) && self.rollouts.writes_in_flight.end(id);
        match (action, outcome) {
            (Action::Apply(apply), ActionResult::Applied(written)) => {
                self.record_applied(id, apply, &written.live, now);
                if is_overtaken {
                    self.distrust_answer(id);
                }
            }
            (Action::Delete(_, rv, removal), ActionResult::Deleted) => {
                self.record_deleted(id, *rv, *removal, now);
            }
            (_, ActionResult::Failed(failure)) => self.record_failure(id, action, failure, now),
            (Action::DryRun(_), ActionResult::DryRun(dry_run)) => self.record_dry_run(id, dry_run),
            (_, ActionResult::Applied(_) | ActionResult::Deleted | ActionResult::DryRun(_)) => {}
        }
        self.note_object_change(id);
    }

    /// Drops the view of an answer to a write. The informer may have shown the write before, and then
    /// that the object is gone: no further event would end that view.
    fn distrust_answer(&mut self, id: &ObjectId) {
        if self.informer_object(id).is_none()
            && let Some(entry) = self.objects.entries.get_mut(id)
        {
            (entry.direct_view, entry.min_resource_version) = (None, None);
        }
    }

    fn record_applied(&mut self, id: &ObjectId, apply: &ApplyRequest, answer: &LiveObject, now: Instant) {
        let mut proven = answer.clone();
        self.prove(id, &mut proven);
        if is_workload(id) {
            // The answer shows our own write, whatever became of its seal.
            proven.overlay = apply.variant.overlay.into();
        }
        let nothing = apply.decided_on == Some(answer.rv);
        if apply.restarts == RestartRisk::Possible {
            // An answer that changed nothing starts no rollout, unless another process wrote the
            // same before.
            let rolls = answer
                .replica_status
                .is_some_and(|replica_status| replica_status.phase == WorkloadPhase::Replacing);
            self.record_rollout_write(id, (!nothing || rolls).then_some(answer.rv));
            if nothing && !rolls {
                self.end_claim(id);
            }
        }
        if is_workload(id) && apply.purpose != ApplyPurpose::Repair {
            self.record_release(id, apply);
        }
        self.clear_denial(apply.source, id);
        self.note_release(id, &proven);
        // A repair of what nobody wants any more ends no record of it.
        let wanting = self.entry(id).and_then(ObjectEntry::target_content).map(|(source, _)| source);
        if wanting == Some(apply.source) {
            self.forget_kept(id, Some(apply.source));
        }
        let Some(entry) = self.objects.entries.get_mut(id) else { return };
        if apply.purpose == ApplyPurpose::Create {
            entry.previous_content = Some(apply.desired.clone());
        }
        match std::mem::replace(&mut entry.accepted, AcceptedContent::Known(apply.desired.clone())) {
            AcceptedContent::Known(before) if before.hash != apply.desired.hash => {
                entry.previous_content = Some(before);
            }
            _ => {}
        }
        entry.revision = Some(apply.revision.clone());
        entry.incarnation = Some(answer.uid.clone());
        if apply.precondition == Precondition::Absent && id.is("batch", "Job") {
            entry.rare.change(|rare| rare.created_incarnation = Some(answer.uid.clone()));
        }
        (entry.api_refusal, entry.dry_run) = (None, None);
        entry.rare.change(|rare| (rare.repair_refusal, rare.last_failure) = (None, None));
        // The fields that the server tracks of our own apply are all that it will ever track of
        // this content.
        entry.verified = Some(VerifiedOwnership {
            content: apply.variant.hash(&apply.desired),
            overlay: apply.variant.overlay,
            config_stamp: apply.variant.config_stamp.map(Box::new),
            managed_fields: answer.our_fields.clone(),
            value_digest: answer.value_digest,
            cover: FieldOwnership::Complete,
        });
        if nothing {
            return;
        }
        if apply.purpose == ApplyPurpose::Repair {
            entry.rare.change(|rare| {
                rare.repairs.retain(|at| now.duration_since(*at) < FIGHT_WINDOW);
                rare.repairs.push(now);
            });
        }
        // Where the watch was faster than the answer, no event has to be waited for: none may come.
        if self.objects.informer_objects.get(id).is_none_or(|live| live.rv < answer.rv) {
            entry.min_resource_version = Some((answer.rv, now));
            entry.direct_view = Some(DirectView::Found(Box::new(proven)));
        }
    }

    /// Forgets that an account may not write, as it has written one object. Refused objects of the
    /// same kind and namespace are tried again.
    fn clear_denial(&mut self, source: SourceId, id: &ObjectId) {
        self.blockers.forget_denials(id);
        let scope = self.role_scope(source, id);
        for id in self.blockers.take_denied(&scope) {
            if let Some(entry) = self.objects.entries.get_mut(&id) {
                entry.forget_refusals(RefusalRule::Rights);
                self.objects.wakes.mark(id);
            }
        }
    }

    /// Returns the objects that the right to write this one covers.
    fn role_scope(&self, source: SourceId, id: &ObjectId) -> RoleScope {
        RoleScope {
            account: self.sources[source].declared.account.clone(),
            kind: id.group_kind(),
            namespace: id.namespace().map(Arc::from),
        }
    }

    /// Returns how many objects may not be written.
    pub(in crate::engine) fn count_denied(&self) -> usize {
        self.blockers.count_denied()
    }

    fn record_deleted(&mut self, id: &ObjectId, rv: ResourceVersion, removal: DeletionReason, now: Instant) {
        let is_shown = self.objects.informer_objects.contains_key(id);
        self.forget_kept(id, None);
        let Some(entry) = self.objects.entries.get_mut(id) else { return };
        entry.rare.change(|rare| rare.last_failure = None);
        // Where the watch has reported it before the answer, or never will, a lookup shows what is
        // there now.
        entry.min_resource_version = is_shown.then_some((rv.next(), now));
        entry.direct_view = entry.direct_view.take().filter(|_| is_shown);
        entry.accepted = AcceptedContent::Nothing;
        if removal == DeletionReason::Recreate {
            entry.api_refusal = None;
            // The next event gives the slot back, also where no event reports that the object is
            // gone.
            self.record_rollout_write(id, Some(rv.next()));
        }
    }

    fn record_failure(&mut self, id: &ObjectId, action: &Action, failure: WriteFailure, now: Instant) {
        let seen = self.objects.informer_objects.get(id).map(|live| live.rv);
        let written = match (&failure, seen) {
            // It may be rolling: the next view, or the next try, shows it.
            (WriteFailure::Unknown(..), Some(seen)) => Some(seen.next()),
            _ => None,
        };
        if !matches!(action, Action::DryRun(_)) {
            self.record_lost_rollout_write(id, written, now);
        }
        let is_refused = matches!((action, &failure), (Action::Apply(_), WriteFailure::Refused(..)));
        if is_refused && !self.rollouts.in_flight.contains_key(id) {
            // Nothing was written: a claim that stayed would pass for a rollout that succeeds.
            self.end_claim(id);
        }
        let Some(entry) = self.objects.entries.get_mut(id) else { return };
        let temporary =
            |after: Duration, cause: RetryCause| TemporaryFailure { retry_at: now + after, cause };
        match failure {
            WriteFailure::Conflict(rest) => {
                // The view that this was decided on is known to be old. Only a newer one decides
                // again, and none from before our own last write.
                entry.direct_view = None;
                let pending = entry.min_resource_version.map(|(written, _)| written);
                // The watch may have shown a newer one before this answer came.
                let newer = seen.map(|seen| action.decided_on().unwrap_or(seen).next());
                entry.min_resource_version = newer.max(pending).map(|version| (version, now));
                let failure = (!rest.is_zero()).then(|| temporary(rest, RetryCause::Conflict));
                entry.rare.change(|rare| rare.last_failure = failure);
            }
            WriteFailure::Refused(text, rule, after) => match action {
                Action::Apply(apply) | Action::DryRun(apply) => {
                    let retry = after.map(|after| now + after);
                    let cause = if rule == RefusalRule::Immutable {
                        immutability_cause(id, text)
                    } else {
                        RefusalCause::Message(text)
                    };
                    let content = apply.desired.hash;
                    let is_wanted = entry.target_content().is_none_or(|(_, wanted)| wanted.hash == content);
                    let source = apply.source;
                    let refusal = ApiRefusal { source, content, cause, retry, rule, times: 1 };
                    match apply.purpose {
                        ApplyPurpose::Repair if !is_wanted => {
                            entry.rare.change(|rare| refusal.replace(&mut rare.repair_refusal));
                        }
                        _ => refusal.replace(&mut entry.api_refusal),
                    }
                    if rule == RefusalRule::Rights {
                        self.blockers.record_missing_right(self.role_scope(source, id), id);
                    }
                    self.deny_write(source, id, retry);
                    self.quarantine_refused_rollback(id);
                    self.propose_refused_releases(id);
                    self.wake_unused_claims();
                }
                _ => {
                    let failure = after.map(|after| temporary(after, RetryCause::Message(text)));
                    entry.rare.change(|rare| rare.last_failure = failure);
                }
            },
            WriteFailure::Unknown(why, after) => {
                // The write may have been carried out: the object is looked up before anything is
                // repeated.
                if matches!(action, Action::Apply(apply) if apply.purpose == ApplyPurpose::Create) {
                    entry.direct_view = None;
                }
                let failure = temporary(after, RetryCause::Message(why));
                entry.rare.change(|rare| rare.last_failure = Some(failure));
                // It may be the content on which the server fails.
                if let Action::Apply(apply) | Action::DryRun(apply) = action {
                    let retry = now + after.max(COMPETITOR_RETRY_DELAY);
                    self.deny_write(apply.source, id, Some(retry));
                }
            }
        }
    }
}

/// Returns the cause for which the server refuses to change an immutable field, by its words. An
/// annotation helps where no data would be lost.
pub(crate) fn immutability_cause(id: &ObjectId, message: Arc<str>) -> RefusalCause {
    match recreation_loss(id) {
        Some(_) => RefusalCause::Message(message),
        None => RefusalCause::Recreatable(message),
    }
}
