//! Takes back the pods that a scale gave to a held template.
//!
//! A commit, a person or an autoscaler may scale a Deployment in the middle of a rollout. Its
//! controller then shares the pods among its `ReplicaSets` by their sizes: the count of a step
//! becomes a part of all. So the old ReplicaSet gets the missing pods. The new one gives its
//! surplus back as far as pods of the old one are available instead. Never are fewer pods Ready
//! than are asked for, so that takes nothing of the budget.
//!
//! The controller leaves such counts alone. It adds to the new ReplicaSet only below the maximum
//! of all pods, and takes from the old ones only above the minimum. It shares again only
//! when the Deployment's count changes (`NewRSNewReplicas`, `reconcileOldReplicaSets` and
//! `isScalingEvent` of Kubernetes' Deployment controller). Each write is bound to the version of
//! the ReplicaSet that was judged, so of two concurrent writes one begins anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::decide::decision::{Action, Decision};
use crate::engine::facts::live_object::live_overlay;
use crate::engine::facts::overlay::RolloutOverlayState;
use crate::engine::rollout::pods::{ReplicaSetFacts, WorkloadPods};
use crate::engine::state::Engine;
use crate::engine::{HeldStep, LiveObject, Reason, ResourceVersion, RolloutOverlay, SurplusOutcome, Uid};
use crate::object::ObjectId;

/// The pause after the first write, carried out or not. It doubles with each further write.
const FIRST_SCALE_BACKOFF: Duration = Duration::from_millis(500);
/// The longest time between two writes.
const MAX_SCALE_BACKOFF: Duration = Duration::from_secs(15);
/// The time without a write after which a surplus counts as a new one.
const SCALE_RESET_AFTER: Duration = Duration::from_mins(1);
/// The writes in one surplus after which no step waits for the next write.
const MAX_SCALES_BEFORE_STEP: u32 = 5;

/// The share of a Deployment's pods that a held step gives each template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepShare {
    /// Pods that are asked for.
    pub replicas: u32,
    /// Pods of the new template that its controller makes by itself.
    pub allowed: u32,
    /// Pods of the new template that the step has.
    pub new: u32,
    /// Pods of the older templates beside these.
    pub old: u32,
    /// Failing pods of the new template. All others are Ready, or may be so at any moment.
    pub failing: u32,
}

/// The purpose of a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ScalePurpose {
    /// The old template gets the pods that the new one got of a scale.
    Restore,
    /// The new template has the pods of the step, and no more.
    RemoveSurplus,
}

/// The balance of a Deployment's `ReplicaSets` beside a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScaleBalance {
    /// The pods are shared as the step says, or only their controller can change that.
    Balanced,
    /// The number of surplus pods of the new template, while too few of the old one are available
    /// to go without them.
    Blocked(u32),
    /// This ReplicaSet is to have this number of pods.
    Scale(ReplicaSetFacts, u32, ScalePurpose),
}

/// A ReplicaSet that is to be scaled, in the incarnation and version that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScaleRequest {
    /// Its Deployment.
    pub of: ObjectId,
    /// Its name.
    pub name: Arc<str>,
    /// Its incarnation.
    pub uid: Uid,
    /// The version that was judged.
    pub rv: ResourceVersion,
    /// Pods that it asks for.
    pub from: u32,
    /// Pods that it is to ask for.
    pub to: u32,
    /// Pods of the new template that the step has.
    pub step: u32,
    /// The purpose.
    pub purpose: ScalePurpose,
}

/// The result of scaling a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ScaleResult {
    /// The ReplicaSet asks for the pods that it is to have.
    Done,
    /// It is in another version than was judged.
    Conflict,
    /// The write was refused, or its result is not known; the reason.
    Refused(Arc<str>),
}

/// The state of one Deployment whose held template got pods of a scale. It is kept in memory only.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct SurplusCorrection {
    /// Indicates whether a write is not answered.
    in_flight: bool,
    /// The time before which nothing is written.
    until: Option<Instant>,
    /// The pause after the last write.
    wait: Duration,
    /// The time at which the last write was answered.
    last: Option<Instant>,
    /// Writes since the surplus began.
    writes: u32,
    /// The reason for which the last write failed.
    why: Option<Arc<str>>,
    /// The fate of the surplus, as it was shown last.
    fate: Option<SurplusOutcome>,
}

/// Returns the correction by which a held template has the pods of its step and no others.
pub(crate) fn balance(share: StepShare, sets: &[ReplicaSetFacts], newest: &str) -> ScaleBalance {
    let is_new = |set: &&ReplicaSetFacts| set.revision.as_deref() == Some(newest);
    let old: Vec<&ReplicaSetFacts> = sets.iter().filter(|set| !is_new(set)).collect();
    let largest = old.iter().max_by_key(|set| (set.available, set.wanted));
    let (Some(new), Some(largest)) = (sets.iter().find(is_new), largest) else {
        return ScaleBalance::Balanced;
    };
    let sum =
        |count: fn(&ReplicaSetFacts) -> u32| old.iter().map(|set| count(set)).fold(0, u32::saturating_add);
    let surplus = new.wanted.saturating_sub(share.allowed);
    let missing = share.old.saturating_sub(sum(|set| set.wanted)).min(surplus);
    if missing > 0 {
        return ScaleBalance::Scale(
            (*largest).clone(),
            largest.wanted.saturating_add(missing),
            ScalePurpose::Restore,
        );
    }
    if new.wanted <= share.new {
        return ScaleBalance::Balanced;
    }
    // A ReplicaSet deletes the pods first that are not Ready. Failing pods may go at once: they may
    // hold the room that old pods wait for. A pod that only starts may be Ready before the
    // write, so it counts as if it were.
    let needed = share.replicas.saturating_sub(sum(|set| set.available.min(set.wanted)));
    let to = share.new.max(needed.min(new.wanted.saturating_sub(share.failing)));
    if to < new.wanted {
        ScaleBalance::Scale(new.clone(), to, ScalePurpose::RemoveSurplus)
    } else {
        ScaleBalance::Blocked(new.wanted - share.new)
    }
}

impl Engine {
    /// Returns the share of pods in the step that a Deployment is held at, and its pods. None where
    /// nothing holds it, or where its pods are known at another version than the one shown.
    fn share(&self, id: &ObjectId, now: Instant) -> Option<(StepShare, &WorkloadPods)> {
        let rollout = self.rollouts.in_flight.get(id).filter(|_| id.is("apps", "Deployment"))?;
        let live = self.live_object(id)?;
        let (_, desired) = self.entry(id)?.target_content()?;
        let (steps, pods) = (self.steps_of(id, desired)?, rollout.pods.as_deref()?);
        let progress = self.step_progress(id, desired, live, now);
        let RolloutOverlayState::Overlaid(overlay) = progress.shown else { return None };
        let (allowed, in_place) = match overlay {
            RolloutOverlay::Surge { pods, .. } => (pods, false),
            RolloutOverlay::InPlace { pods, .. } => (pods, true),
            _ => return None,
        };
        let new = allowed.max(steps.target(steps.step_of(overlay), progress.replicas));
        let old = if in_place { progress.replicas.saturating_sub(new) } else { progress.replicas };
        let failing = pods.count_failing_newest();
        let share = StepShare { replicas: progress.replicas, allowed, new, old, failing };
        let current = rollout.claim.is_some() && rollout.failed.is_none() && pods.rv == live.rv;
        current.then_some((share, pods))
    }

    fn balance(&self, id: &ObjectId, now: Instant) -> Option<(u32, ScaleBalance)> {
        let (share, pods) = self.share(id, now)?;
        Some((share.new, balance(share, &pods.sets, pods.newest.as_ref()?)))
    }

    /// Returns whether a wider overlay of the same step waits until the old template has the pods
    /// that a scale took from its share. Its controller would give them to the new one.
    pub(in crate::engine) fn is_waiting_for_balance(
        &self,
        id: &ObjectId,
        live: &LiveObject,
        next: RolloutOverlay,
        now: Instant,
    ) -> bool {
        let (Some(RolloutOverlay::Surge { step, .. }), RolloutOverlay::Surge { step: same, .. }) =
            (live_overlay(live), next)
        else {
            return false;
        };
        let known = self.rollouts.in_flight.get(id).and_then(|rollout| rollout.pods.as_deref());
        let Some(pods) = known.filter(|_| step == same && self.can_take_back(id)) else { return false };
        let correction = self.rollouts.steps.surplus_corrections.get(id);
        let has_given_up =
            correction.is_some_and(|known| known.why.is_some() || known.writes >= MAX_SCALES_BEFORE_STEP);
        // Its controller has not answered to the scale yet.
        let early = pods.rv < live.rv || pods.newest.is_none();
        let gives =
            || matches!(self.balance(id, now), Some((_, ScaleBalance::Scale(_, _, ScalePurpose::Restore))));
        !has_given_up && (early || gives())
    }

    fn can_take_back(&self, id: &ObjectId) -> bool {
        self.can_write(id) && !self.is_paused_by_person(id)
    }

    /// Returns the `ReplicaSets` to scale now, one of a Deployment at a time. The result is
    /// reported to [`Engine::record_scale`]. Called in each turn, after [`Engine::advance`].
    pub(in crate::engine) fn scale_requests(&mut self, now: Instant) -> Vec<ScaleRequest> {
        let rolls = &self.rollouts.in_flight;
        self.rollouts.steps.surplus_corrections.retain(|id| rolls.contains_key(id));
        let ids: Vec<ObjectId> = rolls.keys().filter(|id| id.is("apps", "Deployment")).cloned().collect();
        ids.into_iter().filter_map(|id| self.scale_request_of(id, now)).collect()
    }

    fn scale_request_of(&mut self, id: ObjectId, now: Instant) -> Option<ScaleRequest> {
        let found = self.balance(&id, now).filter(|_| self.can_take_back(&id));
        let (step, balance) = found.unwrap_or((0, ScaleBalance::Balanced));
        if balance == ScaleBalance::Balanced && self.rollouts.steps.surplus_corrections.get(&id).is_none() {
            return None;
        }
        let correction = self.rollouts.steps.surplus_corrections.track(&id);
        correction.until = correction.until.filter(|until| *until > now);
        if correction.last.is_some_and(|last| now.duration_since(last) >= SCALE_RESET_AFTER) {
            (correction.wait, correction.writes, correction.last) = (Duration::ZERO, 0, None);
        }
        let fate = match (&balance, &correction.why) {
            (ScaleBalance::Balanced, _) => None,
            (_, Some(why)) => Some(SurplusOutcome::Kept(why.clone())),
            (_, None) => Some(SurplusOutcome::Removed),
        };
        if correction.fate != fate {
            correction.fate = fate;
            self.objects.wakes.mark(id.clone());
        }
        let ScaleBalance::Scale(set, to, purpose) = balance else {
            if balance == ScaleBalance::Balanced {
                correction.why = None;
            }
            return None;
        };
        if correction.in_flight || correction.until.is_some() {
            return None;
        }
        correction.in_flight = true;
        Some(ScaleRequest {
            of: id,
            name: set.name,
            uid: set.uid,
            rv: set.rv,
            from: set.wanted,
            to,
            step,
            purpose,
        })
    }

    /// Records the result of scaling a ReplicaSet.
    pub(in crate::engine) fn record_scale(&mut self, due: &ScaleRequest, answer: &ScaleResult, now: Instant) {
        let Some(correction) = self.rollouts.steps.surplus_corrections.get_mut(&due.of) else { return };
        let wait = (correction.wait * 2).clamp(FIRST_SCALE_BACKOFF, MAX_SCALE_BACKOFF);
        (correction.in_flight, correction.wait, correction.until) = (false, wait, Some(now + wait));
        (correction.last, correction.writes) = (Some(now), correction.writes.saturating_add(1));
        correction.why = match answer {
            ScaleResult::Done | ScaleResult::Conflict => None,
            ScaleResult::Refused(why) => Some(why.clone()),
        };
    }

    /// Returns when the clock alone changes what [`Engine::scale_requests`] finds.
    pub(in crate::engine) fn next_scale_due(&self) -> Option<Instant> {
        self.rollouts.steps.surplus_corrections.all().filter_map(|correction| correction.until).min()
    }

    /// Returns what becomes of a Deployment's surplus.
    pub(in crate::engine) fn surplus_fate(&self, id: &ObjectId) -> Option<SurplusOutcome> {
        self.rollouts.steps.surplus_corrections.get(id)?.fate.clone()
    }

    /// Adds to the decision about an applied object that a scale gave its new template more pods
    /// than its step allows.
    pub(in crate::engine) fn explain_surplus_correction(
        &self,
        id: &ObjectId,
        decision: Decision,
    ) -> Decision {
        let fate = self.surplus_fate(id);
        match fate.filter(|_| decision.action == Action::Nothing && decision.reason.is_none()) {
            Some(fate) => decision.with_reason(Reason::Step(HeldStep::Surplus(fate))),
            None => decision,
        }
    }
}
