//! Defends accepted content: verifies that it is there, and repairs what drifted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::decide::decide::{
    content_blocker, create, exact_precondition, is_serving, replicas, revision, uid_precondition,
};
use crate::engine::decide::decision::{
    Action, ApplyPurpose, ApplyRequest, Decision, DecisionInput, Observation, RestartRisk,
};
use crate::engine::decide::ownership::{left_alone_reason, owner};
use crate::engine::facts::entry::{AcceptedContent, FieldOwnership, RepairImpact, SourceId};
use crate::engine::state::Engine;
use crate::engine::{
    ApplyVariant, CurrentOwner, FightCause, LiveObject, ObjectOwner, Reason, RefusalCause, ReplicaMode,
    RolloutOverlayState, SharedDesiredObject,
};
use crate::object::ObjectId;

/// The number of repairs of one object within a minute that make a fight (Config Sync's alarm rate,
/// KNV2005).
pub(crate) const MAX_REPAIRS_PER_FIGHT: usize = 5;

/// The time over which repairs are counted.
pub(crate) const FIGHT_WINDOW: Duration = Duration::from_mins(1);

/// The longest wait of a repair that restarts no pods in a fight. Otherwise the content of somebody
/// who writes without end would stand for most of each minute.
pub(crate) const FIGHT_PAUSE: Duration = Duration::from_secs(10);

impl Engine {
    /// Returns whether an object was repaired within the last minute. Somebody may change it again
    /// and again, and each repair of a workload takes a start of the budget.
    pub(in crate::engine) fn has_recent_repair(&self, id: &ObjectId) -> bool {
        let Some(now) = self.rollouts.starts.current_time() else { return false };
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < FIGHT_WINDOW;
        self.entry(id).is_some_and(|entry| entry.rare.repairs.iter().any(is_recent))
    }
}

/// Decides about an object with our newest content, by whether all of it is still ours.
pub(super) fn decide_drift(
    input: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesiredObject,
    live: &LiveObject,
    now: Instant,
) -> Decision {
    // The content under an autoscaler differs from the content that was verified without it.
    let as_released = live.shown_release().is_some_and(|release| release.hash == desired.hash);
    let replicas = match replicas(input, desired, live) {
        ReplicaMode::FromLive(_) if as_released => ReplicaMode::FromManifest,
        other => other,
    };
    let overlay = match live.overlay {
        RolloutOverlayState::Overlaid(overlay) => Some(overlay),
        // To write the content as it is would let all pods go.
        RolloutOverlayState::Unreadable if desired.steps.is_some() => return Decision::act(Action::Nothing),
        _ => None,
    };
    let variant = ApplyVariant { replicas, overlay, config_stamp: live.shown_config_stamp() };
    let repair = |lost| repair(input, &RepairTarget { source, desired, variant, lost }, live, now);
    let content = variant.hash(desired);
    let verified = input.entry.verified.as_ref().filter(|v| v.is_about(content, variant, live));
    match verified.map(|verified| verified.cover) {
        None => Decision::act(Action::CompareCached(desired.clone(), variant)),
        // Sent again and again, the annotation would be taken away again and again.
        Some(FieldOwnership::Complete) => match live.shown_release() {
            None => Decision::wait(Reason::Refused(RefusalCause::AnnotationStripped, None)),
            Some(_) if !matches!(&live.owner, ObjectOwner::Ours(set) if *set == input.inventories[source]) => {
                Decision::wait(Reason::Refused(RefusalCause::LabelStripped, None))
            }
            // Somebody wrote another annotation in our name: nothing proves it, or an earlier write
            // of ours does.
            Some(shown) if live.is_unproven() && !desired.has_hash(shown.hash) => {
                repair(RepairImpact::InPlace)
            }
            Some(_) if live.unproven_release.as_ref().is_some_and(|old| input.entry.is_outdated(old)) => {
                repair(RepairImpact::InPlace)
            }
            Some(_) => Decision::act(Action::Nothing),
        },
        Some(FieldOwnership::OnlyEmptyMissing | FieldOwnership::Unequal) => {
            Decision::act(Action::CompareLive(desired.clone(), variant))
        }
        Some(FieldOwnership::Lost(lost)) => repair(lost),
    }
}

/// The repair target: the content that a repair restores.
struct RepairTarget<'a> {
    source: SourceId,
    desired: &'a SharedDesiredObject,
    variant: ApplyVariant,
    /// The worst that was lost of it.
    lost: RepairImpact,
}

fn repair(input: &DecisionInput<'_>, target: &RepairTarget<'_>, live: &LiveObject, now: Instant) -> Decision {
    let RepairTarget { source, desired, variant, lost } = *target;
    if let Some(reason) = content_blocker(input, desired, now).or_else(|| repair_pause(input, lost, now)) {
        return Decision::wait(reason);
    }
    let restarts = if lost == RepairImpact::Template && is_serving(input.id, live) {
        RestartRisk::Possible
    } else {
        RestartRisk::Absent
    };
    Decision::act(Action::Apply(ApplyRequest {
        desired: desired.clone(),
        source,
        revision: revision(input, ApplyPurpose::Repair),
        seal: None,
        // Bound to the version, it would only ever meet conflicts where somebody writes faster, and
        // nothing would show that this is a fight. The repair restores accepted content.
        precondition: match variant.replicas {
            ReplicaMode::FromLive(_) => exact_precondition(live),
            ReplicaMode::FromManifest | ReplicaMode::Omitted => uid_precondition(live),
        },
        decided_on: Some(live.rv),
        variant,
        purpose: ApplyPurpose::Repair,
        restarts,
    }))
}

/// Decides how to enforce the accepted content while the desired one cannot be applied.
///
/// The source that brought the content enforces it. The label of another one counts only with its
/// seal: else whoever writes a label would have that source take the object over.
pub(super) fn enforce(input: &DecisionInput<'_>, reason: Reason, now: Instant) -> Decision {
    let accepted = match &input.entry.accepted {
        AcceptedContent::Known(accepted) => accepted,
        AcceptedContent::Nothing | AcceptedContent::Unreadable(_) => return Decision::wait(reason),
        AcceptedContent::Unread(_) => return Decision::act(Action::AwaitContent).with_reason(reason),
    };
    match input.observation {
        Observation::NotSeen | Observation::Pending(_) => Decision::act(Action::Lookup).with_reason(reason),
        Observation::Absent if input.entry.has_ended_with(accepted) => Decision::wait(reason),
        Observation::Absent => match content_blocker(input, accepted, now) {
            None => {
                let source = input.entry.targets.first().map_or(accepted.body.source, |(source, _)| *source);
                create(input, source, accepted, ApplyPurpose::Repair, now).with_reason(reason)
            }
            Some(_) => Decision::wait(reason),
        },
        Observation::Seen(live) if live.deleting => Decision::wait(Reason::Terminating),
        Observation::Seen(live) if left_alone_reason(accepted, Some(live), input.opt_out).is_some() => {
            Decision::wait(reason)
        }
        Observation::Seen(live) => match (owner(input, live), &live.owner) {
            (Some(labelled), _) => {
                let source = if live.is_unproven() { accepted.body.source } else { labelled };
                decide_drift(input, source, accepted, live, now).with_reason(reason)
            }
            (None, ObjectOwner::Controlled(owner) | ObjectOwner::Foreign(owner)) => {
                Decision::wait(Reason::Owned(CurrentOwner::Tool(owner.clone())))
            }
            _ => Decision::wait(reason),
        },
    }
}

/// Returns the pause after the repairs so far: short where a repair costs no pod, the whole window
/// where each restarts some.
pub(super) fn repair_pause(input: &DecisionInput<'_>, lost: RepairImpact, now: Instant) -> Option<Reason> {
    let recent: Vec<Instant> = input
        .entry
        .rare
        .repairs
        .iter()
        .copied()
        .filter(|at| now.duration_since(*at) < FIGHT_WINDOW)
        .collect();
    let oldest = recent.len().checked_sub(MAX_REPAIRS_PER_FIGHT).and_then(|first| recent.get(first))?;
    let remaining_window = FIGHT_WINDOW.saturating_sub(now.duration_since(*oldest));
    let left = match (lost, recent.last()) {
        (RepairImpact::InPlace, Some(newest)) => {
            remaining_window.min(FIGHT_PAUSE.saturating_sub(now.duration_since(*newest)))
        }
        _ => remaining_window,
    };
    let cause = || match input.observation {
        Observation::Absent => FightCause::Deletions,
        _ => FightCause::Changes(other_writers(input)),
    };
    (!left.is_zero()).then(|| Reason::Fight(cause(), left))
}

/// Returns the field managers that wrote the object beside us.
fn other_writers(input: &DecisionInput<'_>) -> Arc<[Arc<str>]> {
    let Observation::Seen(live) = input.observation else { return [].into() };
    let writers = live.other_managers.iter().filter(|manager| manager.subresource.is_empty());
    writers.map(|manager| manager.name.clone()).collect()
}
