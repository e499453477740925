//! The verdict about a rollout: it goes on, it is done, or it has failed.
//!
//! Owns the judgement of one rollout by what the cluster shows of its workload, and the times for
//! which it waits. Knows nothing of what follows from a verdict.
//!
//! `Engine::advance` in `rollouts.rs` judges each rollout in each turn of the loop. It notes a
//! failure. `src/daemon/reconciler/pods.rs` reads the Events about it, and `Engine::reject`
//! proposes the rejection of its unit.
//!
//! **Invariant:** a judgement changes nothing. It carries the facts that the rollout is to keep.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::decide::blockers::health_words;
use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::pods::{PodFacts, WorkloadPods, find_failure, next_failure_check};
use crate::engine::rollout::rollouts::{Rollout, ServiceSwitch};
use crate::engine::rollout::step_overlay::StepState;
use crate::engine::state::Engine;
use crate::engine::{LiveObject, RolloutNumbers, RolloutPhase, Uid};
use crate::health::HealthStatus;
use crate::object::{ObjectId, duration_text};

/// The verdict about a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum RolloutVerdict {
    /// There is no new verdict, also where it failed before. Holds the time at which the answer may
    /// change.
    Going(Option<Instant>),
    /// It has been complete for the soak, or nothing has to be watched.
    Done,
    /// It failed: the reason, and the objects whose Events say more.
    Failed(Arc<str>, Vec<Uid>),
}

/// The part of a rollout that changes with what the cluster shows, and with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct RolloutMemory {
    pub(in crate::engine) slot: BudgetSlot,
    pub(in crate::engine) reserved: u32,
    pub(in crate::engine) furthest: Option<(u32, u32)>,
    pub(in crate::engine) last_progress: Option<Instant>,
    pub(in crate::engine) healthy_since: Option<Instant>,
    pub(in crate::engine) switch: ServiceSwitch,
    pub(in crate::engine) step_held_since: Option<Instant>,
}

impl RolloutMemory {
    /// Notes how far it has come.
    fn with_progress(mut self, rolling: RolloutNumbers, now: Instant) -> Self {
        let came = (rolling.updated, rolling.available);
        let best = self.furthest.unwrap_or_default();
        // Pods that come and go are no progress; another template begins anew.
        if self.furthest.is_none() || came > best || came.0 < best.0 {
            (self.furthest, self.last_progress) = (Some(came), Some(now));
        }
        self
    }

    fn judged(self, verdict: RolloutVerdict) -> RolloutJudgement {
        RolloutJudgement { verdict, memory: self }
    }
}

/// A verdict, and the memory of the rollout from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct RolloutJudgement {
    pub(in crate::engine) verdict: RolloutVerdict,
    pub(in crate::engine) memory: RolloutMemory,
}

/// The condition of a workload whose rollout is shown.
enum RolloutCondition {
    /// Nothing of it has to be waited for.
    NothingToWatch,
    /// All its pods are updated and available.
    Complete,
    /// It failed before this judgement.
    FailedBefore,
    /// It fails now: the reason, and the objects whose Events say more.
    FailsNow(Arc<str>, Vec<Uid>),
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
    /// Judges one rollout.
    pub(in crate::engine) fn judge_rollout(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        now: Instant,
    ) -> RolloutJudgement {
        let memory = rollout.memory();
        // Our write is not visible yet, or the workload is being made again.
        let live =
            self.live_object(id).filter(|live| rollout.last_write.is_some_and(|written| live.rv >= written));
        let Some(live) = live else { return memory.judged(RolloutVerdict::Going(None)) };
        let Some(rolling) = live.rolling else { return memory.judged(RolloutVerdict::Done) };
        let mut memory = memory.with_progress(rolling, now);
        let condition = self.rollout_condition(id, rollout, live, rolling, now);
        if !matches!(condition, RolloutCondition::NothingToWatch | RolloutCondition::Complete) {
            memory.healthy_since = None;
        }
        match condition {
            RolloutCondition::NothingToWatch => memory.judged(RolloutVerdict::Done),
            RolloutCondition::Complete => self.judge_complete(id, rollout, memory, now),
            RolloutCondition::FailedBefore => {
                if self.is_failure_permanent(id) {
                    (memory.slot, memory.reserved) = (BudgetSlot::None, 0);
                }
                memory.judged(RolloutVerdict::Going(None))
            }
            RolloutCondition::FailsNow(why, event_subjects) => {
                memory.judged(RolloutVerdict::Failed(why, event_subjects))
            }
            RolloutCondition::StepDone { until, soaks } => {
                // Pods that are Ready and unready in turns come no farther by that.
                memory.last_progress = memory.last_progress.filter(|_| soaks).or(Some(now));
                memory.reserved = 0;
                memory.step_held_since.get_or_insert(now);
                memory.judged(RolloutVerdict::Going(until))
            }
            RolloutCondition::Replacing => self.judge_progress(id, rollout, live, memory, now),
        }
    }

    /// Judges a complete rollout: it has to stay complete for the soak.
    ///
    /// A Service that waits for it is switched then, and the workload is watched for another soak.
    fn judge_complete(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        mut memory: RolloutMemory,
        now: Instant,
    ) -> RolloutJudgement {
        memory.reserved = 0;
        let soak = if rollout.claim.is_some() { self.soak_time(id) } else { Duration::ZERO };
        let since = *memory.healthy_since.get_or_insert(now);
        if now.duration_since(since) < soak {
            return memory.judged(RolloutVerdict::Going(Some(since + soak)));
        }
        match (memory.switch, self.awaits_service_switch(id)) {
            (_, true) => {
                (memory.switch, memory.slot) = (ServiceSwitch::Waiting, BudgetSlot::None);
                memory.judged(RolloutVerdict::Going(None))
            }
            (ServiceSwitch::Waiting, false) => {
                (memory.switch, memory.healthy_since) = (ServiceSwitch::NotWaiting, Some(now));
                let until = (!soak.is_zero()).then(|| now + soak);
                memory.judged(until.map_or(RolloutVerdict::Done, |until| RolloutVerdict::Going(Some(until))))
            }
            (ServiceSwitch::NotWaiting, false) => memory.judged(RolloutVerdict::Done),
        }
    }

    /// Judges a rollout whose pods are being replaced: it has to make progress in time.
    fn judge_progress(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        live: &LiveObject,
        mut memory: RolloutMemory,
        now: Instant,
    ) -> RolloutJudgement {
        let soak = self.step_of(id, now).map_or(Duration::ZERO, |_| self.step_soak_time(id));
        let patience = soak + self.deadline(id);
        let deadline = *memory.last_progress.get_or_insert(now) + patience;
        if now < deadline {
            let ripe = own_pods(rollout).and_then(|pods| next_failure_check(pods, now));
            let due = ripe.map_or(deadline, |ripe| ripe.min(deadline));
            return memory.judged(RolloutVerdict::Going(Some(due)));
        }
        let length = duration_text(patience);
        let health = self.daemon_set_words(id).unwrap_or_else(|| health_words(live));
        let unready = own_pods(rollout).and_then(WorkloadPods::oldest_unready_newest);
        let why =
            format!("no progress for {length}: {health}{}", unready.map(unready_text).unwrap_or_default());
        let event_subjects = unready.map(|pod| pod.uid.clone()).into_iter().chain([live.uid.clone()]);
        memory.judged(RolloutVerdict::Failed(why.into(), event_subjects.collect()))
    }

    fn rollout_condition(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        live: &LiveObject,
        rolling: RolloutNumbers,
        now: Instant,
    ) -> RolloutCondition {
        let step = self.step_of(id, now);
        match rolling.phase {
            _ if step.is_some() => {}
            RolloutPhase::Settled => return RolloutCondition::Complete,
            // Nothing of it was ever up, so there is nothing to wait for.
            RolloutPhase::FirstStart if !self.is_in_unit(id) => return RolloutCondition::NothingToWatch,
            // Somebody else's rollout is over with its last new pod.
            RolloutPhase::Recovering if rollout.claim.is_none() => return RolloutCondition::NothingToWatch,
            _ => {}
        }
        if rollout.failed.is_some() {
            return RolloutCondition::FailedBefore;
        }
        if let Some(pods) = own_pods(rollout)
            && let Some(failing) = find_failure(pods, now)
        {
            let pod = pods.pods.iter().find(|pod| Some(&pod.name) == failing.pod.as_ref());
            let event_subjects = pod.map(|pod| pod.uid.clone()).into_iter().chain([live.uid.clone()]);
            return RolloutCondition::FailsNow(failing.to_string().into(), event_subjects.collect());
        }
        if live.health.status == HealthStatus::Failed && !self.was_reported_before(id, rollout, live) {
            return RolloutCondition::FailsNow(live.health.message.clone(), vec![live.uid.clone()]);
        }
        match step {
            Some(StepState::Held(until)) => {
                RolloutCondition::StepDone { until, soaks: until.is_some() && !self.is_resting(id, now) }
            }
            Some(StepState::Over) => RolloutCondition::StepDone { until: None, soaks: false },
            _ => RolloutCondition::Replacing,
        }
    }

    /// Returns whether a failure was reported before the write of this rollout. The controller of a
    /// Deployment leaves the condition as it is until the next rollout has made progress. During a
    /// rollback that is the failure that it goes back from.
    fn was_reported_before(&self, id: &ObjectId, rollout: &Rollout, live: &LiveObject) -> bool {
        let words = &*live.health.message;
        let rejected = self.entry(id).and_then(|entry| entry.rejection.as_ref());
        rollout.earlier_failure.as_deref() == Some(words)
            || live.rolling.is_some_and(|rolling| rolling.failed_before)
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

    fn deadline(&self, id: &ObjectId) -> Duration {
        let all = self.budget_overrides(id).filter_map(|budget_override| budget_override.deadline);
        all.fold(self.rollouts.budget.deadline, Duration::min)
    }
}

fn unready_text(pod: &PodFacts) -> String {
    format!("; pod {}: {}", pod.name, pod.unready.as_deref().unwrap_or("it is not ready"))
}

/// Returns the pods of a rollout, unless they were reported before its write.
fn own_pods(rollout: &Rollout) -> Option<&WorkloadPods> {
    rollout.pods.as_deref().filter(|pods| rollout.last_write.is_some_and(|written| pods.rv >= written))
}
