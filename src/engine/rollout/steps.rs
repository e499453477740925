//! Steps inside one workload: the number of its pods that get a new template before the others, and
//! the time to go on.
//!
//! [`Steps`] is the annotations' request, [`next`] the decision. It keeps no state. The progress of
//! a rollout is read from the overlay that the cluster shows, so it goes on from there after any
//! crash.

use std::time::Duration;

use crate::engine::RolloutOverlay;
use crate::engine::decide::step_wait::{StepRequirement, StepWait, SurplusOutcome, SurplusPods};
use crate::engine::facts::overlay::RolloutOverlayState;
use crate::engine::facts::steps::{PromotionMode, Steps};

/// The promotion that a person ordered for this template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PromotionRequest {
    /// No promotion.
    #[default]
    None,
    /// To go on from this step; spent as soon as the rollout is at another.
    OneStep {
        /// The step that was seen.
        from: u32,
    },
    /// To go on to the end at once.
    Full,
}

/// The progress of a workload's rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepProgress {
    /// Pods asked for; of a DaemonSet, the nodes that can be counted on.
    pub replicas: u32,
    /// The overlay that the cluster shows.
    pub shown: RolloutOverlayState,
    /// Pods of the new template that are not being deleted.
    pub made: u32,
    /// Made pods that are Ready.
    pub ready: u32,
    /// The time for which that many have been Ready without a restart: the age of the youngest of
    /// them.
    pub ready_for: Duration,
    /// The promotion that a person ordered.
    pub promotion: PromotionRequest,
}

/// The decision about a workload that has steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDecision {
    /// Apply the content under this overlay.
    Enter(RolloutOverlay),
    /// Leave it where it is.
    Stay(StepWait),
    /// Apply the content as it is, or leave it so.
    Finish,
}

/// A step that holds a workload now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CurrentStep {
    /// It is not left yet, and this may become of pods that a scale has added.
    Stays(StepWait, Option<SurplusOutcome>),
    /// The next step waits for the rollout budget.
    AwaitsBudget,
}

impl SurplusPods {
    fn of(overlay: RolloutOverlay, made: u32, target: u32) -> Self {
        let (more, surplus): (u32, fn(u32) -> Self) = match overlay {
            RolloutOverlay::Surge { pods, .. } | RolloutOverlay::InPlace { pods, .. } => {
                (made.saturating_sub(pods.max(target)), Self::Shared)
            }
            RolloutOverlay::Partition { .. } => (made.saturating_sub(target), Self::Made),
            RolloutOverlay::OnDelete { .. } | RolloutOverlay::Narrow(_) => return Self::None,
        };
        if more == 0 { Self::None } else { surplus(more) }
    }
}

/// Decides what to do with a workload whose new template goes in steps.
pub fn next(steps: &Steps, progress: &StepProgress) -> StepDecision {
    let StepProgress { replicas, ready, .. } = *progress;
    let enter = |step| steps.overlay_of(step, replicas).map_or(StepDecision::Finish, StepDecision::Enter);
    if progress.promotion == PromotionRequest::Full {
        return StepDecision::Finish;
    }
    let overlay = match progress.shown {
        RolloutOverlayState::Other | RolloutOverlayState::Unreadable => return enter(1),
        RolloutOverlayState::Plain | RolloutOverlayState::Overlaid(RolloutOverlay::Narrow(_)) => {
            return StepDecision::Finish;
        }
        RolloutOverlayState::Overlaid(overlay) => overlay,
    };
    let step = steps.step_of(overlay);
    let target = steps.target(step, replicas);
    let surplus = SurplusPods::of(overlay, progress.made, target);
    let stay = |lacks| StepDecision::Stay(StepWait { step, of: steps.count(), lacks, surplus });
    let wanted = steps.overlay_of(step, replicas);
    if wanted != Some(overlay) && !is_enough(overlay, wanted, progress.made >= target) {
        return enter(step);
    }
    if ready < target {
        return stay(StepRequirement::Pods { ready, target });
    }
    let is_asked = progress.promotion == PromotionRequest::OneStep { from: step };
    if step > steps.count() || is_asked {
        return decide_next_step(steps, step, replicas);
    }
    let left = steps.soak.saturating_sub(progress.ready_for);
    if !left.is_zero() {
        return stay(StepRequirement::Soak(left));
    }
    match steps.promote {
        PromotionMode::Auto => decide_next_step(steps, step, replicas),
        PromotionMode::Manual => stay(StepRequirement::Promotion),
    }
}

/// Returns whether an overlay for fewer pods does as well. A Deployment that is scaled up while it
/// is held gives a share of the pods to the new template by itself. A larger surge would add to
/// them. Surplus pods are removed.
fn is_enough(shown: RolloutOverlay, wanted: Option<RolloutOverlay>, has_pods: bool) -> bool {
    match (shown, wanted) {
        (RolloutOverlay::Surge { pods, step }, Some(RolloutOverlay::Surge { pods: more, step: same })) => {
            has_pods && step == same && pods < more
        }
        _ => false,
    }
}

/// Returns the step after this one; the plain content after the last.
fn decide_next_step(steps: &Steps, step: u32, replicas: u32) -> StepDecision {
    let is_done = step >= steps.count() && steps.target(step, replicas) == steps.target(u32::MAX, replicas);
    let next = steps.overlay_of(step.saturating_add(1), replicas).filter(|_| !is_done);
    next.map_or(StepDecision::Finish, StepDecision::Enter)
}
