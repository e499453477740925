//! The overlay of a workload's content during its rollout, and the state of its steps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::decide::decide::is_serving;
use crate::engine::decide::step_wait::StepRequirement;
use crate::engine::facts::live_object::live_overlay;
use crate::engine::facts::overlay::RolloutOverlayState;
use crate::engine::facts::steps::Steps;
use crate::engine::rollout::pods::WorkloadPods;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::rollout::steps::{PromotionRequest, StepDecision, StepProgress, next};
use crate::engine::state::Engine;
use crate::engine::{
    DesiredObject, LiveObject, ReplicaOwner, RolloutOverlay, UpdateStrategy, WorkloadPhase, is_workload,
};
use crate::object::ObjectId;

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum StepState {
    /// Its pods are not Ready yet.
    InProgress,
    /// Its pods are Ready, and it waits: for a person, or until this time.
    Held(Option<Instant>),
    /// It is over, and the next one waits for the budget.
    Done,
}

/// A workload of ours that shows the overlay of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SteppedWorkload {
    /// The name of its source.
    pub source: Arc<str>,
    /// The workload.
    pub id: ObjectId,
    /// The state of its overlay, as the cluster shows it.
    pub shown: RolloutOverlayState,
}

impl Engine {
    /// Returns the workloads of all sources that show the overlay of a step, whatever it waits for.
    /// A step that was just written counts, although no informer has shown it yet.
    pub(in crate::engine) fn stepped_workloads(&self) -> Vec<SteppedWorkload> {
        let stepped = self.informer_objects().filter_map(|(id, shown)| {
            let live = self.live_object(id).unwrap_or(shown);
            let source = self.source_of(live).filter(|_| is_at_step(live))?;
            let source = self.source(source).declared.name.clone();
            Some(SteppedWorkload { source, id: id.clone(), shown: live.overlay })
        });
        stepped.collect()
    }

    /// Returns the overlay that this process has written or compared last for a workload. Nobody
    /// else writes for a source that this process serves.
    pub(in crate::engine) fn written_overlay(
        &self,
        id: &ObjectId,
        live: &LiveObject,
    ) -> Option<RolloutOverlayState> {
        let entry = self.entry(id)?;
        entry.accepted.content()?;
        let verified = entry.verified.as_ref().filter(|_| entry.incarnation.as_ref() == Some(&live.uid))?;
        Some(verified.overlay.into())
    }

    /// Returns whether a workload that no source here wants shows the overlay of a step. Only a part
    /// of its pods is new, and whoever wants it judges it.
    pub(in crate::engine) fn is_left_at_step(&self, id: &ObjectId, live: &LiveObject) -> bool {
        is_at_step(live) && self.entry(id).is_none_or(|entry| entry.target_content().is_none())
    }

    /// Returns the overlay for the desired content of an object now.
    pub(in crate::engine) fn overlay(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        now: Instant,
    ) -> Option<RolloutOverlay> {
        let live = self.live_object(id).filter(|live| is_workload(id) && is_serving(id, live))?;
        let steps = self.steps_of(id, desired);
        if let Some(steps) = steps.filter(|_| !self.has_no_pod_impact(id, desired, live)) {
            let progress = self.step_progress(id, desired, live, now);
            if let Some(overlay) = self.overlay_at_new_count(id, desired, steps, &progress) {
                return Some(overlay);
            }
            match next(steps, &progress) {
                StepDecision::Enter(overlay) if self.is_waiting_for_balance(id, live, overlay, now) => {
                    return live_overlay(live);
                }
                StepDecision::Enter(overlay) => return Some(overlay),
                StepDecision::Stay(_) => return live_overlay(live),
                StepDecision::Finish if self.is_waiting_for_nodes(id, steps, &progress, now) => {
                    return live_overlay(live);
                }
                StepDecision::Finish => {}
            }
        }
        self.narrowing_overlay(id, desired, live)
    }

    /// Returns the overlay for a content that scales, while a step holds the template that it has
    /// already.
    ///
    /// The controller acts on the count and on the overlay of one write. So the same write lets no
    /// more pods go than the step has at either count, and takes nothing of the budget. The next
    /// one goes on from there.
    fn overlay_at_new_count(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        steps: &Steps,
        progress: &StepProgress,
    ) -> Option<RolloutOverlay> {
        let RolloutOverlayState::Overlaid(shown) = progress.shown else { return None };
        let entry = self.entry(id).filter(|_| progress.promotion != PromotionRequest::Full)?;
        let count = desired.replicas.filter(|_| self.replica_owner(id, entry) == ReplicaOwner::Manifest)?;
        let release = self.live_object(id)?.shown_release();
        if count == progress.replicas || release.is_some_and(|release| desired.has_hash(release.hash)) {
            return None;
        }
        shown.tightest(steps.overlay_of(steps.step_of(shown), count)?)
    }

    /// Returns the steps of a workload; none for a rollback, which goes at once.
    pub(in crate::engine) fn steps_of<'a>(
        &self,
        id: &ObjectId,
        desired: &'a DesiredObject,
    ) -> Option<&'a Steps> {
        let stepped = !self.has_rollback_target(id) && !self.is_revert(id, desired);
        desired.steps.as_deref().filter(|_| stepped)
    }

    /// Returns whether a content is the one that was good before the rollout that goes on: most
    /// pods have it still.
    fn is_revert(&self, id: &ObjectId, desired: &DesiredObject) -> bool {
        let unit = self.rollouts.ledger.latest().and_then(|ledger| {
            let source = self.entry(id)?.target_content()?.0;
            ledger.unit_of(&self.sources.inventory_ids()[source], id)?.members.get(id)
        });
        unit.is_some_and(|member| {
            member.rollback_target.content_ref().is_some_and(|good| desired.has_hash(good.hash))
                && member.restarted.is_none_or(|restarted| restarted.before == Some(restarted.data))
        })
    }

    /// Returns the overlay that narrows a strategy as long as it rolls, where it takes down more
    /// pods than may be unavailable.
    fn narrowing_overlay(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        live: &LiveObject,
    ) -> Option<RolloutOverlay> {
        let replica_status = live.replica_status?;
        let there = live.shown_release().is_some_and(|release| desired.has_hash(release.hash));
        let stepped = live_overlay(live).is_some_and(|overlay| overlay.step().is_some());
        let restarts = self.restart_stamp(id).is_some();
        let able = matches!(id.kind(), "Deployment" | "DaemonSet") && !desired.strategy.is_recreate();
        let is_rolling = replica_status.phase == WorkloadPhase::Replacing;
        let is_unreadable = is_rolling && live.overlay == RolloutOverlayState::Unreadable;
        if there && !stepped && !restarts && !is_unreadable {
            let narrow = live_overlay(live).filter(|overlay| matches!(overlay, RolloutOverlay::Narrow(_)));
            return narrow.filter(|_| is_rolling);
        }
        // A rollout beyond its last step goes on by its own strategy.
        if !able || !(stepped || restarts || is_unreadable || self.can_restart(id, desired, live)) {
            return None;
        }
        let most = self.max_unavailable(id);
        (desired.strategy.max_loss(replica_status.replicas) > most).then_some(RolloutOverlay::Narrow(most))
    }

    pub(in crate::engine) fn step_progress(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        live: &LiveObject,
        now: Instant,
    ) -> StepProgress {
        let release = live.shown_release();
        let there = release.is_some_and(|release| desired.has_hash(release.hash));
        let same = || self.entry(id).is_some_and(|entry| entry.accepted.has_template_of(desired));
        let rollout = self.rollouts.in_flight.get(id);
        let pods = rollout.and_then(Rollout::own_pods);
        let age = |pods: &WorkloadPods| pods.steady_time().map(|since| now.saturating_duration_since(since));
        let progress = StepProgress {
            replicas: live.replica_status.map_or(0, |replica_status| replica_status.replicas),
            // A change that leaves the template alone goes on in the step that is shown.
            shown: match self.restart_stamp(id) {
                None if there || same() => live.overlay,
                _ => RolloutOverlayState::Other,
            },
            made: pods.map_or(0, WorkloadPods::count_updated),
            ready: pods.map_or(0, WorkloadPods::count_ready_newest),
            ready_for: pods.and_then(age).unwrap_or(Duration::ZERO),
            promotion: self.promotion_request(id, desired, live),
        };
        self.daemon_set_progress(id, desired, progress, now)
    }

    /// Returns the state of the step that a workload shows; none where it shows none.
    pub(in crate::engine) fn step_of(&self, id: &ObjectId, now: Instant) -> Option<StepState> {
        let live = self.live_object(id)?;
        is_at_step(live).then_some(())?;
        let (_, desired) = self.entry(id)?.target_content()?;
        let steps = self.steps_of(id, desired)?;
        let progress = self.step_progress(id, desired, live, now);
        Some(match next(steps, &progress) {
            StepDecision::Stay(wait) => match wait.lacks {
                StepRequirement::Pods { .. } => self.resting_step(id, now).unwrap_or(StepState::InProgress),
                StepRequirement::Soak(left) => StepState::Held(Some(now + left)),
                StepRequirement::Promotion => StepState::Held(None),
            },
            StepDecision::Finish if self.is_waiting_for_nodes(id, steps, &progress, now) => {
                StepState::Held(None)
            }
            StepDecision::Enter(_) | StepDecision::Finish => StepState::Done,
        })
    }
}

/// Returns whether a workload shows the overlay of a step.
pub(in crate::engine) fn is_at_step(live: &LiveObject) -> bool {
    live_overlay(live).is_some_and(|overlay| overlay.step().is_some())
}

/// Returns the most pods that a content takes down at a time under an overlay, of so many.
pub(in crate::engine) fn max_loss_under(
    strategy: UpdateStrategy,
    overlay: Option<RolloutOverlay>,
    replicas: u32,
) -> u32 {
    match overlay {
        None | Some(RolloutOverlay::Partition { .. }) => strategy.max_loss(replicas),
        Some(RolloutOverlay::Surge { .. }) => 0,
        Some(RolloutOverlay::OnDelete { .. }) => strategy.max_loss(replicas).max(1),
        Some(RolloutOverlay::InPlace { pods, .. }) => pods.min(replicas),
        Some(RolloutOverlay::Narrow(most)) => most.min(strategy.max_loss(replicas)),
    }
}
