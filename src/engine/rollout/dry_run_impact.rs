//! The impact of a write on pods, by the server's dry run: asked before the budget is.
//!
//! A manifest alone does not show whether a change restarts pods. A field that is spelled out where
//! the server filled it in before restarts nothing. A change beside the template does restart pods,
//! if somebody else changed the template meanwhile. So each change of a workload that serves is
//! tried by a dry run first, but for one that certainly restarts them. The answer holds for one
//! content, one incarnation and one generation of the object. The write that relies on it is bound
//! to the version that shows them. An adoption that reclaims fields of kubectl first is bound to
//! the uid.

use crate::change::{Impact, ImpactKind};
use crate::engine::decide::decide::is_serving;
use crate::engine::decide::decision::{
    Action, ApplyPurpose, ApplyRequest, Decision, Precondition, RestartRisk,
};
use crate::engine::facts::dry_run_impact::DryRunImpact;
use crate::engine::facts::entry::DirectView;
use crate::engine::rollout::step_overlay::is_at_step;
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{DesiredObject, LiveObject, RolloutOverlayState};
use crate::object::ObjectId;

impl Engine {
    /// Turns a write of unknown impact into the question for it, and records for a known one
    /// whether it takes from the budget.
    pub(in crate::engine) fn require_dry_run(&self, id: &ObjectId, decision: Decision) -> Decision {
        let Decision { action: Action::Apply(apply), reason, requeue_after } = decision else {
            return decision;
        };
        let decided = |action| Decision { action, reason, requeue_after };
        let live = self.live_object(id).filter(|live| self.is_asked_about(id, live, &apply));
        let Some(live) = live else { return decided(Action::Apply(apply)) };
        match self.impact(id, &apply.desired, live) {
            None => decided(Action::DryRun(apply)),
            Some(impact) => {
                let precondition = Precondition::Exact(live.uid.clone(), live.rv);
                let restarts =
                    if is_restarting(impact) { RestartRisk::Possible } else { RestartRisk::Absent };
                decided(Action::Apply(ApplyRequest { precondition, restarts, ..apply }))
            }
        }
    }

    /// Returns whether the server is asked about a write's impact. It is not in the middle of a
    /// step, whose overlay alone holds the pods back. Nor is it about a repair, which somebody who
    /// writes again and again would delay for ever.
    fn is_asked_about(&self, id: &ObjectId, live: &LiveObject, apply: &ApplyRequest) -> bool {
        let asks =
            matches!(apply.purpose, ApplyPurpose::Change | ApplyPurpose::Adopt | ApplyPurpose::Transfer);
        // Other data in the template are another template.
        asks && !live.is_restarted_by(apply.variant.config_stamp)
            && self.blockers.mode == DecisionMode::Live
            && is_serving(id, live)
            && !is_stepped(live)
    }

    /// Returns the impact of a content on an object as it is now, by the server; none where it was
    /// not asked.
    pub(in crate::engine) fn impact(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        live: &LiveObject,
    ) -> Option<Impact> {
        let dry_run = self.entry(id)?.dry_run.as_deref().filter(|_| !is_stepped(live))?;
        let speaks = dry_run.content == desired.hash
            && dry_run.uid == live.uid
            && dry_run.generation == live.generation;
        speaks.then_some(dry_run.impact)
    }

    /// Returns whether a content restarts pods of a workload that serves: by the server's answer,
    /// and by the contents as long as there is none.
    pub(in crate::engine) fn can_restart(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        live: &LiveObject,
    ) -> bool {
        match self.impact(id, desired, live) {
            Some(impact) => is_restarting(impact),
            None => self.entry(id).is_none_or(|entry| !entry.accepted.has_template_of(desired)),
        }
    }

    /// Returns whether the server says that a content changes no pod, so that nothing holds its
    /// rollout.
    pub(in crate::engine) fn has_no_pod_impact(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        live: &LiveObject,
    ) -> bool {
        self.restart_stamp(id).is_none()
            && self.impact(id, desired, live).is_some_and(|impact| !is_restarting(impact))
    }

    /// Returns how many pods are restarted by the last content of which the server was asked.
    pub(in crate::engine) fn dry_run_restarts(&self, id: &ObjectId) -> u32 {
        let dry_run = self.entry(id).and_then(|entry| entry.dry_run.as_deref());
        dry_run.map_or(0, |dry_run| dry_run.impact.pods)
    }

    /// Records the server's answer to a dry run.
    pub(in crate::engine) fn record_dry_run(&mut self, id: &ObjectId, dry_run: DryRunImpact) {
        let guess = |engine: &Self| {
            let (live, entry) = (engine.live_object(id)?, engine.entry(id)?);
            entry.target_content().map(|(_, desired)| engine.can_restart(id, desired, live))
        };
        let before = guess(self);
        if let Some(entry) = self.objects.entries.get_mut(id) {
            entry.dry_run = Some(Box::new(dry_run));
            entry.rare.change(|rare| rare.last_failure = None);
        }
        self.drop_outdated_view(id);
        if before != guess(self) {
            // Other objects may be released together now.
            self.rollouts.units.forget_all();
        }
    }

    /// Drops the view by a lookup of an object that somebody has changed since, as the answer to a dry
    /// run shows. No informer reports the change, and the same question would be asked for ever.
    fn drop_outdated_view(&mut self, id: &ObjectId) {
        if self.informer_object(id).is_some() {
            return;
        }
        let Some(entry) = self.objects.entries.get_mut(id) else { return };
        let is_outdated = match (&entry.direct_view, &entry.dry_run) {
            (Some(DirectView::Found(live)), Some(answer)) => {
                live.uid != answer.uid || live.generation < answer.generation
            }
            _ => false,
        };
        if is_outdated && entry.min_resource_version.is_none() {
            entry.direct_view = None;
        }
    }
}

fn is_restarting(impact: Impact) -> bool {
    matches!(impact.kind, ImpactKind::Restart | ImpactKind::Recreate)
}

/// Returns whether a step may hold pods back, which the server does not count.
fn is_stepped(live: &LiveObject) -> bool {
    live.overlay == RolloutOverlayState::Unreadable || is_at_step(live)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RolloutOverlay;
    use crate::engine::tests::world::{World, WorldObject, desired, workload};

    #[test]
    fn only_pods_that_are_replaced_are_restarted() {
        for (kind, expected) in [
            (ImpactKind::None, false),
            (ImpactKind::InPlace, false),
            (ImpactKind::Scale, false),
            (ImpactKind::Restart, true),
            (ImpactKind::Recreate, true),
        ] {
            assert_eq!(is_restarting(Impact { kind, pods: 3 }), expected, "{kind:?}");
        }
    }

    #[test]
    fn an_overlay_that_is_not_understood_may_hold_pods_as_a_step_does() {
        let web = workload("web");
        let live = World::live(&web, &WorldObject::settled(desired(&web, 1, "web").hash, "r1", 1));
        for (overlay, expected) in [
            (RolloutOverlayState::Plain, false),
            (RolloutOverlayState::Unreadable, true),
            (RolloutOverlayState::Overlaid(RolloutOverlay::Narrow(1)), false),
            (RolloutOverlayState::Overlaid(RolloutOverlay::OnDelete { step: 1 }), true),
        ] {
            assert_eq!(is_stepped(&LiveObject { overlay, ..live.clone() }), expected, "{overlay:?}");
        }
    }
}
