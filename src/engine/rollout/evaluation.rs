//! The verdict about a rollout: it goes on, it is done, or it has failed.
//!
//! Owns the evaluation of one rollout by what the cluster shows of its workload, and the times for
//! which it waits. Knows nothing of what follows from a verdict.
//!
//! `Engine::advance` in `rollouts.rs` evaluates each rollout in each turn of the loop. It notes a
//! failure. `src/daemon/reconciler/pods.rs` reads the Events about it, and
//! `Engine::propose_rejection` proposes the rejection of its unit.
//!
//! **Invariant:** an evaluation changes nothing. It carries the facts that the rollout is to keep.

use std::time::{Duration, Instant};

use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::failure_cause::{RolloutFailureCause, StalledRollout, StalledState, UnreadyPod};
use crate::engine::rollout::foreign_claims::ABANDONED_CLAIM_AGE;
use crate::engine::rollout::pods::{WorkloadPods, find_failure, next_failure_check};
use crate::engine::rollout::progress::ProgressTracking;
use crate::engine::rollout::recreation::RolloutMethod;
use crate::engine::rollout::rollouts::{Rollout, ServiceSwitch};
use crate::engine::rollout::step_overlay::StepState;
use crate::engine::state::Engine;
use crate::engine::{LiveObject, ReplicaStatus, Uid, WorkloadPhase};
use crate::health::HealthStatus;
use crate::object::ObjectId;

/// The verdict about a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum RolloutVerdict {
    /// There is no new verdict, also where it failed before. Holds the time at which the answer may
    /// change.
    InProgress(Option<Instant>),
    /// It has been complete for the soak, or nothing has to be watched.
    Done,
    /// It failed: the cause, and the objects whose Events say more.
    Failed(RolloutFailureCause, Vec<Uid>),
    /// Its write got no answer, and has not been shown in time.
    Unanswered,
    /// Its workload was deleted and is not created again: the cause.
    NotRecreated(RolloutFailureCause),
}

/// The part of a rollout that changes with what the cluster shows, and with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct RolloutTracking {
    pub(in crate::engine) slot: BudgetSlot,
    pub(in crate::engine) reserved: u32,
    pub(in crate::engine) progress: ProgressTracking,
    pub(in crate::engine) healthy_since: Option<Instant>,
    pub(in crate::engine) switch: ServiceSwitch,
    pub(in crate::engine) step_held_since: Option<Instant>,
    pub(in crate::engine) unjudged: UnjudgedFailure,
}

/// A failure that nobody can judge yet, as the source or its records were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum UnjudgedFailure {
    /// None is seen.
    None,
    /// It is seen since this time, and keeps its slot.
    Seen(Instant),
    /// It has given its slot back. The pods that it has reserved still count.
    SlotReturned,
}

impl RolloutTracking {
    /// Forgets an unjudged failure, as the rollout goes on. It takes its slot again, also beyond the
    /// budget: its pods are being replaced.
    fn end_unjudged_failure(&mut self) {
        if std::mem::replace(&mut self.unjudged, UnjudgedFailure::None) == UnjudgedFailure::SlotReturned {
            self.slot = BudgetSlot::Taken;
        }
    }

    fn with_verdict(self, verdict: RolloutVerdict) -> RolloutEvaluation {
        RolloutEvaluation { verdict, tracking: self }
    }
}

/// A verdict, and the tracking of the rollout from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct RolloutEvaluation {
    pub(in crate::engine) verdict: RolloutVerdict,
    pub(in crate::engine) tracking: RolloutTracking,
}

/// The condition of a workload whose rollout is shown.
enum RolloutCondition {
    /// Nothing of it has to be waited for.
    NothingToWatch,
    /// All its pods are updated and available.
    Complete,
    /// It failed before this evaluation.
    FailedBefore,
    /// It fails now: the cause, and the objects whose Events say more.
    FailsNow(RolloutFailureCause, Vec<Uid>),
    /// Its step has come as far as it was to come.
    StepDone {
        /// The time at which the step ends by itself.
        until: Option<Instant>,
        /// Indicates whether it is still observed, and so has to make no progress.
        soaks: bool,
    },
    /// Its pods are being replaced.
    Replacing,
}

impl Engine {
    /// Evaluates one rollout.
    pub(in crate::engine) fn evaluate_rollout(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        now: Instant,
    ) -> RolloutEvaluation {
        let mut tracking = rollout.tracking();
        // Our write is not visible yet, or the workload is being made again.
        let is_shown = |live: &&LiveObject| {
            rollout.is_shown_at(live.rv)
                && !(live.deleting && rollout.method == RolloutMethod::Recreate)
                && !self.is_write_undecided(id, rollout)
        };
        let Some(live) = self.live_object(id).filter(is_shown) else {
            let recreation = self.evaluate_recreation(id, rollout, &mut tracking.progress, now);
            let verdict = recreation.unwrap_or_else(|| self.evaluate_unshown(id, rollout, now));
            return tracking.with_verdict(verdict);
        };
        let Some(replica_status) = live.replica_status else {
            return tracking.with_verdict(RolloutVerdict::Done);
        };
        tracking.progress.note_view(now);
        if !replica_status.is_outdated && !self.is_changed_by_others(id, rollout, live) {
            tracking.progress.note_numbers(replica_status, rollout.initiator(), now);
        }
        let condition = self.rollout_condition(id, rollout, live, replica_status, now);
        if !matches!(condition, RolloutCondition::NothingToWatch | RolloutCondition::Complete) {
            tracking.healthy_since = None;
        }
        match condition {
            RolloutCondition::NothingToWatch => tracking.with_verdict(RolloutVerdict::Done),
            RolloutCondition::Complete => self.evaluate_complete(id, rollout, tracking, now),
            RolloutCondition::FailedBefore => {
                if self.is_failure_permanent(id) {
                    (tracking.slot, tracking.reserved) = (BudgetSlot::None, 0);
                }
                tracking.with_verdict(RolloutVerdict::InProgress(None))
            }
            RolloutCondition::FailsNow(why, event_subjects) => {
                let failure = RolloutVerdict::Failed(why, event_subjects);
                self.evaluate_failure(id, live, failure, tracking, now)
            }
            RolloutCondition::StepDone { until, soaks } => {
                // Pods that are Ready and unready in turns come no farther by that.
                if soaks {
                    tracking.progress.start_progress_clock(now);
                } else {
                    tracking.progress.suspend();
                }
                tracking.reserved = 0;
                tracking.step_held_since.get_or_insert(now);
                tracking.with_verdict(RolloutVerdict::InProgress(until))
            }
            RolloutCondition::Replacing => self.evaluate_progress(id, rollout, live, tracking, now),
        }
    }

    /// Evaluates a complete rollout: it has to stay complete for the soak.
    ///
    /// A Service that waits for it is switched then, and the workload is watched for another soak.
    fn evaluate_complete(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        mut tracking: RolloutTracking,
        now: Instant,
    ) -> RolloutEvaluation {
        tracking.reserved = 0;
        let soak = if rollout.claim.is_some() { self.soak_time(id) } else { Duration::ZERO };
        let since = *tracking.healthy_since.get_or_insert(now);
        if now.duration_since(since) < soak {
            return tracking.with_verdict(RolloutVerdict::InProgress(Some(since + soak)));
        }
        match (tracking.switch, self.is_awaiting_service_switch(id)) {
            (_, true) => {
                (tracking.switch, tracking.slot) = (ServiceSwitch::Waiting, BudgetSlot::None);
                tracking.with_verdict(RolloutVerdict::InProgress(None))
            }
            (ServiceSwitch::Waiting, false) => {
                (tracking.switch, tracking.healthy_since) = (ServiceSwitch::NotWaiting, Some(now));
                let until = (!soak.is_zero()).then(|| now + soak);
                tracking.with_verdict(
                    until.map_or(RolloutVerdict::Done, |until| RolloutVerdict::InProgress(Some(until))),
                )
            }
            (ServiceSwitch::NotWaiting, false) => tracking.with_verdict(RolloutVerdict::Done),
        }
    }

    /// Evaluates a rollout whose pods are being replaced: it has to make progress in time.
    fn evaluate_progress(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        live: &LiveObject,
        mut tracking: RolloutTracking,
        now: Instant,
    ) -> RolloutEvaluation {
        let soak = self.step_of(id, now).map_or(Duration::ZERO, |_| self.step_soak_time(id));
        let progress_timeout = soak + self.progress_timeout(id);
        let deadline = tracking.progress.progress_deadline(progress_timeout, now);
        if now < deadline {
            tracking.end_unjudged_failure();
            let next_check = rollout.own_pods().and_then(|pods| next_failure_check(pods, now));
            let due = next_check.map_or(deadline, |next_check| next_check.min(deadline));
            return tracking.with_verdict(RolloutVerdict::InProgress(Some(due)));
        }
        let unready = rollout.own_pods().and_then(WorkloadPods::oldest_unready_newest);
        let step = self.held_daemon_set_step(id).cloned();
        let stalled = StalledRollout {
            timeout: progress_timeout,
            state: step.map_or_else(|| StalledState::Health(live.health.clone()), StalledState::Step),
            unready: unready.map(|pod| UnreadyPod { name: pod.name.clone(), message: pod.unready.clone() }),
        };
        let why = RolloutFailureCause::Stalled(Box::new(stalled));
        let event_subjects = unready.map(|pod| pod.uid.clone()).into_iter().chain([live.uid.clone()]);
        let failure = RolloutVerdict::Failed(why, event_subjects.collect());
        self.evaluate_failure(id, live, failure, tracking, now)
    }

    /// Evaluates a rollout that fails. The verdict waits for what says whether the workload goes
    /// back, as a new process may see the pods first. Without that it would reject nothing.
    ///
    /// Nobody can say how long that takes. So the rollout gives its slot back in time, as the claim
    /// of a process that is gone does. The write that replaces its pods then asks for a slot anew.
    fn evaluate_failure(
        &self,
        id: &ObjectId,
        live: &LiveObject,
        failure: RolloutVerdict,
        mut tracking: RolloutTracking,
        now: Instant,
    ) -> RolloutEvaluation {
        if self.is_rollback_known(id, live) {
            tracking.unjudged = UnjudgedFailure::None;
            return tracking.with_verdict(failure);
        }
        let since = match tracking.unjudged {
            UnjudgedFailure::None => now,
            UnjudgedFailure::Seen(since) => since,
            UnjudgedFailure::SlotReturned => return tracking.with_verdict(RolloutVerdict::InProgress(None)),
        };
        tracking.unjudged = UnjudgedFailure::Seen(since);
        let end = since + ABANDONED_CLAIM_AGE;
        if now < end {
            return tracking.with_verdict(RolloutVerdict::InProgress(Some(end)));
        }
        if tracking.slot == BudgetSlot::Taken {
            (tracking.slot, tracking.unjudged) = (BudgetSlot::None, UnjudgedFailure::SlotReturned);
        }
        tracking.with_verdict(RolloutVerdict::InProgress(None))
    }

    fn rollout_condition(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        live: &LiveObject,
        replica_status: ReplicaStatus,
        now: Instant,
    ) -> RolloutCondition {
        let step = self.step_of(id, now);
        if self.is_left_at_step(id, live) {
            return RolloutCondition::StepDone { until: None, soaks: false };
        }
        match replica_status.phase {
            _ if step.is_some() => {}
            // Somebody may forge the status of the workload. Its pods have statuses of their own, and
            // are shown as late as they are watched: they end no wait, and begin no rollback.
            WorkloadPhase::Settled if rollout.has_failing_pods() => {
                let has_failed = rollout.failed.is_some();
                return if has_failed { RolloutCondition::FailedBefore } else { RolloutCondition::Replacing };
            }
            WorkloadPhase::Settled => return RolloutCondition::Complete,
            // Nothing of it was ever up, so there is nothing to wait for.
            WorkloadPhase::FirstStart
                if !self.is_in_unit(id) && rollout.method != RolloutMethod::Recreate =>
            {
                return RolloutCondition::NothingToWatch;
            }
            // Somebody else's rollout is over with its last new pod.
            WorkloadPhase::Recovering if rollout.claim.is_none() => return RolloutCondition::NothingToWatch,
            _ => {}
        }
        if rollout.failed.is_some() {
            return RolloutCondition::FailedBefore;
        }
        if let Some(pods) = rollout.own_pods()
            && let Some(failing) = find_failure(pods, now)
        {
            let pod = pods.pods.iter().find(|pod| Some(&pod.name) == failing.pod.as_ref());
            let event_subjects = pod.map(|pod| pod.uid.clone()).into_iter().chain([live.uid.clone()]);
            return RolloutCondition::FailsNow(RolloutFailureCause::Pods(failing), event_subjects.collect());
        }
        if live.health.status == HealthStatus::Failed && !self.is_earlier_failure(id, rollout, live) {
            let why = RolloutFailureCause::Status(live.health.message.clone());
            return RolloutCondition::FailsNow(why, vec![live.uid.clone()]);
        }
        match step {
            Some(StepState::Held(until)) => {
                RolloutCondition::StepDone { until, soaks: until.is_some() && !self.is_resting(id, now) }
            }
            Some(StepState::Done) => RolloutCondition::StepDone { until: None, soaks: false },
            _ => RolloutCondition::Replacing,
        }
    }

    /// Returns whether a failure was reported before the write of this rollout. The controller of a
    /// Deployment leaves the condition as it is until the next rollout has made progress. During a
    /// rollback that is the failure that it goes back from.
    fn is_earlier_failure(&self, id: &ObjectId, rollout: &Rollout, live: &LiveObject) -> bool {
        let words = &*live.health.message;
        let rejected = self.entry(id).and_then(|entry| entry.rejection.as_ref());
        rollout.earlier_failure.as_deref() == Some(words)
            || live.replica_status.is_some_and(|replica_status| replica_status.failed_before)
            || rejected
                .is_some_and(|rejection| self.has_rollback_target(id) && rejection.cause.contains(words))
    }

    fn soak_time(&self, id: &ObjectId) -> Duration {
        let all = self.budget_overrides(id).filter_map(|budget_override| budget_override.soak);
        all.fold(self.rollouts.budget.soak, Duration::max)
    }

    fn step_soak_time(&self, id: &ObjectId) -> Duration {
        let steps = self.entry(id).and_then(|entry| entry.target_content()?.1.steps.as_ref());
        steps.map_or(Duration::ZERO, |steps| steps.soak)
    }

    pub(in crate::engine) fn progress_timeout(&self, id: &ObjectId) -> Duration {
        let all = self.budget_overrides(id).filter_map(|budget_override| budget_override.deadline);
        all.fold(self.rollouts.budget.deadline, Duration::min)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::ResourceVersion;

    #[test]
    fn pods_count_from_the_version_of_the_write_on() {
        let pods = |rv: u64| WorkloadPods {
            rv: ResourceVersion(rv),
            newest: None,
            current: None,
            pods: Box::default(),
            sets: Box::default(),
            last_failed: None,
            creation_failure: None,
        };
        let check = |written: Option<u64>, reported: Option<u64>, expected: bool| {
            let mut rollout = Rollout::new(BudgetSlot::Taken, 0, None, written.map(ResourceVersion));
            rollout.pods = reported.map(|rv| Arc::new(pods(rv)));
            assert_eq!(rollout.own_pods().is_some(), expected, "{written:?} {reported:?}");
        };
        check(Some(5), Some(4), false);
        check(Some(5), Some(5), true);
        check(Some(5), Some(6), true);
        check(None, Some(6), false);
        check(Some(5), None, false);
    }
}
