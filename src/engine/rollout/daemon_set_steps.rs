//! The steps of a DaemonSet: which of its pods are taken away now, and what keeps them.
//!
//! Its controller holds (`OnDelete`), and makes a pod of the newest template on each node whose pod
//! is gone. Pods go by eviction only, so their `PodDisruptionBudget`s have the last word: what they
//! forbid is tried again later, and never forced. The pods that go next follow from what the
//! cluster shows, so it goes on from there after any crash.

mod slot;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::decide::budget_shortage::BudgetShortage;
use crate::engine::decide::decision::ApplyRequest;
use crate::engine::facts::live_object::live_overlay;
use crate::engine::facts::overlay::RolloutOverlayState;
use crate::engine::facts::steps::Steps;
use crate::engine::rollout::budget::BudgetSlot;
use crate::engine::rollout::nodes::NodeChange;
use crate::engine::rollout::pod_eviction::{
    NodeCounts, NodePod, NodeState, NodeStep, PodAvailability, TemplateVersion, count_nodes, select_evictions,
};
use crate::engine::rollout::pods::WorkloadPods;
use crate::engine::rollout::step_overlay::{StepState, max_loss_under};
use crate::engine::rollout::steps::{PromotionRequest, StepDecision, StepProgress};
use crate::engine::rollout::stuck_stateful_set::state;
use crate::engine::state::Engine;
use crate::engine::{
    DesiredObject, HeldStep, LiveObject, Reason, RolloutOverlay, StepObstacle, Uid, UpdateStrategy,
};
use crate::object::ObjectId;

/// The first pause after a refused eviction; each further one is longer.
const FIRST_EVICTION_BACKOFF: Duration = Duration::from_millis(500);
/// The longest time between two tries.
const MAX_EVICTION_BACKOFF: Duration = Duration::from_secs(15);
/// The time after which a refused DaemonSet gives its slot back: others go on meanwhile.
pub(crate) const SLOT_RETURN_DELAY: Duration = Duration::from_secs(10);
/// A pod whose eviction was accepted, and that is shown as if nothing had happened after this time,
/// is judged anew.
const EVICTION_ECHO_TIMEOUT: Duration = Duration::from_secs(10);

/// A pod that is to be evicted, in the incarnation that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PodToEvict {
    /// Its DaemonSet.
    pub of: ObjectId,
    /// Its name.
    pub name: Arc<str>,
    /// Its incarnation.
    pub uid: Uid,
    /// Its node.
    pub node: Arc<str>,
}

/// The outcome of an eviction request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EvictionOutcome {
    /// The pod is being deleted, or is gone.
    Evicted,
    /// The eviction was refused, or its result is not known; the reason.
    Refused(Arc<str>),
    /// The user may not evict there at all, and which right is missing.
    Denied(Arc<str>),
}

/// The state of one DaemonSet in steps. Nothing of it has to survive.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct DaemonSetRollout {
    /// Pods whose eviction was asked for, and until when that counts as if they were ending; none
    /// before the answer.
    pending_evictions: BTreeMap<Uid, Option<Instant>>,
    refused_eviction: Option<RefusedEviction>,
    lacks: MissingBudget,
    /// The reason shown last.
    held_step: Option<HeldStep>,
}

/// The part of the budget that a DaemonSet in steps lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MissingBudget {
    #[default]
    Nothing,
    /// Pods are to go, and it has no slot.
    Slot,
    /// Pods are to go, and too many are unavailable elsewhere.
    Room,
}

/// An eviction that did not come about.
#[derive(Clone, Debug)]
struct RefusedEviction {
    obstacle: StepObstacle,
    since: Instant,
    /// The next try; none while it is due.
    until: Option<Instant>,
    wait: Duration,
}

/// The next action on a DaemonSet in steps.
enum EvictionPlan {
    /// These pods are evicted.
    Pods(Vec<PodToEvict>),
    /// Pods would go, but it has no slot.
    Slot,
    /// Pods would go, but others are unavailable.
    Room(BudgetShortage),
    /// Nothing, for a reason that may be worth reporting.
    Nothing(Option<StepObstacle>),
}

fn is_daemon_set(id: &ObjectId) -> bool {
    id.is("apps", "DaemonSet")
}

/// Nodes.
impl Engine {
    /// Returns whether the nodes are to be watched: as long as a DaemonSet of ours goes in steps.
    pub(in crate::engine) fn is_node_watch_needed(&self) -> bool {
        let running = self
            .rollouts
            .in_flight
            .iter()
            .filter(|(id, rollout)| is_daemon_set(id) && rollout.failed.is_none());
        running.into_iter().any(|(id, _)| {
            let steps = self
                .entry(id)
                .and_then(|entry| entry.target_content())
                .and_then(|(_, desired)| desired.steps.as_ref());
            steps.is_some() && self.live_object(id).is_some_and(|live| held_step(live).is_some())
        })
    }

    /// Takes over what is reported about the nodes.
    pub(in crate::engine) fn nodes(&mut self, change: NodeChange) {
        self.rollouts.steps.nodes.take(change);
    }
}

/// The progress of a DaemonSet.
impl Engine {
    /// Returns the pods of a DaemonSet with their nodes; none as long as these, or the newest
    /// revision, are not known.
    fn daemon_set_pods(&self, id: &ObjectId, steps: &Steps, now: Instant) -> Option<Vec<NodePod>> {
        let nodes = &self.rollouts.steps.nodes;
        let rollout = self.rollouts.in_flight.get(id).filter(|_| nodes.unknown_reason().is_none())?;
        let written = rollout.min_resource_version?;
        let pods = rollout.pods.as_deref().filter(|pods: &&WorkloadPods| pods.rv >= written)?;
        let newest = pods.newest.as_ref()?;
        let pending = self.rollouts.steps.daemon_sets.get(id).map(|rollout| &rollout.pending_evictions);
        let known = pods.pods.iter().filter_map(|pod| {
            let ending = pending.is_some_and(|pending| pending.contains_key(&pod.uid));
            let node = pod.node.clone()?;
            Some(NodePod {
                name: pod.name.clone(),
                host: nodes.host(&node, steps.nodes()),
                node,
                template: if pod.revision.as_ref() == Some(newest) {
                    TemplateVersion::Newest
                } else {
                    TemplateVersion::Older
                },
                state: if ending { PodAvailability::Terminating } else { state(pod, now) },
            })
        });
        Some(known.collect())
    }

    /// Returns how many nodes should have a pod, or have one all the same.
    ///
    /// **Hazard:** some seconds after a node is lost its taint takes it out of the first number,
    /// and its pod stays.
    fn nodes_of(&self, id: &ObjectId) -> u32 {
        let replica_status = self.live_object(id).and_then(|live| live.replica_status).unwrap_or_default();
        replica_status.replicas.saturating_add(replica_status.misscheduled)
    }

    /// Returns the counts by which its step is judged, in place of those of its pods.
    pub(in crate::engine) fn daemon_set_progress(
        &self,
        id: &ObjectId,
        desired: &DesiredObject,
        progress: StepProgress,
        now: Instant,
    ) -> StepProgress {
        if !is_daemon_set(id)
            || !matches!(progress.shown, RolloutOverlayState::Overlaid(RolloutOverlay::OnDelete { .. }))
        {
            return progress;
        }
        let pods = desired.steps.as_deref().and_then(|steps| self.daemon_set_pods(id, steps, now));
        let all = self.nodes_of(id);
        let counts = pods.map_or(NodeCounts { nodes: all, ready: 0 }, |pods| count_nodes(&pods, all));
        // As long as it should have pods somewhere, it is not done without any.
        StepProgress { replicas: counts.nodes.max(all.min(1)), ready: counts.ready, ..progress }
    }

    /// Returns whether only pods on nodes that are not Ready are left with older templates. The
    /// DaemonSet's own strategy would replace these without regard to their nodes. A person may
    /// let it go on all the same.
    pub(in crate::engine) fn is_waiting_for_nodes(
        &self,
        id: &ObjectId,
        steps: &Steps,
        progress: &StepProgress,
        now: Instant,
    ) -> bool {
        let RolloutOverlayState::Overlaid(overlay @ RolloutOverlay::OnDelete { .. }) = progress.shown else {
            return false;
        };
        let requested = match progress.promotion {
            PromotionRequest::None => false,
            PromotionRequest::OneStep { from } => from == steps.step_of(overlay),
            PromotionRequest::Full => true,
        };
        !requested && self.first_lost_node(id, steps, now).is_some()
    }

    /// Returns the first lost node with a pod of an older template.
    fn first_lost_node(&self, id: &ObjectId, steps: &Steps, now: Instant) -> Option<Arc<str>> {
        let pods = self.daemon_set_pods(id, steps, now)?;
        let left = pods
            .into_iter()
            .filter(|pod| pod.host == NodeState::Lost && pod.template == TemplateVersion::Older);
        left.map(|pod| pod.node).min()
    }

    /// Returns the state of a step that is not reached and goes no further for a time: for so long
    /// it holds no slot. None if it does go on.
    pub(in crate::engine) fn resting_step(&self, id: &ObjectId, now: Instant) -> Option<StepState> {
        if !is_daemon_set(id) {
            return None;
        }
        // Nobody evicts its pods, so that they stay is no failure.
        if self.is_not_allowed(id) || !self.can_write(id) {
            return (!self.is_busy(id, now)).then_some(StepState::Held(None));
        }
        let rollout =
            self.rollouts.steps.daemon_sets.get(id).filter(|rollout| rollout.pending_evictions.is_empty())?;
        let refused_eviction = rollout
            .refused_eviction
            .as_ref()
            .filter(|refused_eviction| now >= refused_eviction.since + SLOT_RETURN_DELAY);
        let until = if self.is_paused_by_person(id) || rollout.lacks != MissingBudget::Nothing {
            None
        } else {
            Some(refused_eviction?.until?)
        };
        (!self.is_busy(id, now)).then_some(StepState::Held(until))
    }

    /// Returns whether a new pod has to prove itself, so that the deadline counts.
    fn is_busy(&self, id: &ObjectId, now: Instant) -> bool {
        let desired = self.entry(id).and_then(|entry| entry.target_content()).map(|(_, desired)| desired);
        let steps = desired.and_then(|desired| desired.steps.as_deref());
        let pods = steps.and_then(|steps| self.daemon_set_pods(id, steps, now)).unwrap_or_default();
        pods.iter().any(|pod| {
            pod.host != NodeState::Lost
                && pod.template == TemplateVersion::Newest
                && pod.state != PodAvailability::Ready
        })
    }

    /// Returns whether a step goes on by itself.
    pub(in crate::engine) fn is_stepping(&self, id: &ObjectId, now: Instant) -> bool {
        self.is_in_progress(id) && self.step_of(id, now) == Some(StepState::InProgress)
    }

    /// Returns the step that holds a DaemonSet.
    pub(in crate::engine) fn held_daemon_set_step(&self, id: &ObjectId) -> Option<&HeldStep> {
        self.rollouts.steps.daemon_sets.get(id)?.held_step.as_ref()
    }

    /// Returns whether a step only rests: that is no success.
    pub(in crate::engine) fn is_resting(&self, id: &ObjectId, now: Instant) -> bool {
        self.resting_step(id, now).is_some()
    }

    /// Returns when the clock alone changes what [`Engine::pods_to_evict`] finds.
    pub(in crate::engine) fn next_eviction_due(&self) -> Option<Instant> {
        let daemon_sets = self.rollouts.steps.daemon_sets.all();
        let times = daemon_sets.flat_map(|rollout| {
            let tries = rollout.refused_eviction.as_ref().and_then(|refused_eviction| refused_eviction.until);
            rollout.pending_evictions.values().flatten().copied().chain(tries)
        });
        times.min()
    }

    /// Returns the most pods that a write takes down at a time.
    pub(in crate::engine) fn loss_of_write(&self, id: &ObjectId, apply: &ApplyRequest, replicas: u32) -> u32 {
        match apply.variant.overlay {
            Some(RolloutOverlay::OnDelete { .. }) => {
                self.max_concurrent_evictions(id, apply.desired.strategy, replicas)
            }
            overlay => max_loss_under(apply.desired.strategy, overlay, replicas),
        }
    }

    /// Returns the maximum number of concurrent evictions: that of the DaemonSet's own strategy, as
    /// far as the budget can ever allow it. With a surge its strategy takes none, but an eviction
    /// takes one.
    fn max_concurrent_evictions(&self, id: &ObjectId, strategy: UpdateStrategy, nodes: u32) -> u32 {
        strategy.max_loss(nodes).min(self.max_unavailable(id)).max(1)
    }

    /// Returns the maximum number of unavailable pods in the scopes of a workload.
    pub(in crate::engine) fn max_unavailable(&self, id: &ObjectId) -> u32 {
        let source = self.wanting_source(id);
        let bounds = self.budget_bounds();
        let here = bounds.iter().filter(|bound| bound.scope.is_applicable_to(id, source));
        here.map(|bound| bound.unavailable).min().unwrap_or(u32::MAX)
    }
}

/// Taking pods away.
impl Engine {
    /// Returns the pods to be evicted now. The outcome is reported to [`Engine::record_eviction`].
    /// Called in each turn, after [`Engine::advance`].
    pub(in crate::engine) fn pods_to_evict(&mut self, now: Instant) -> Vec<PodToEvict> {
        let rolls = &self.rollouts.in_flight;
        let running = |id: &ObjectId| {
            rolls.get(id).is_some_and(|rollout| rollout.claim.is_some() && rollout.failed.is_none())
        };
        let ids = rolls.keys().filter(|id| is_daemon_set(id) && running(id) && self.is_on_delete(id));
        let ids: Vec<ObjectId> = ids.filter(|id| !self.is_not_allowed(id)).cloned().collect();
        self.rollouts.steps.daemon_sets.retain(|id| ids.contains(id));
        let mut all = Vec::new();
        for id in ids {
            self.forget_past_evictions(&id, now);
            let due = self.eviction_plan(&id, now);
            let refused_eviction = self
                .rollouts
                .steps
                .daemon_sets
                .get(&id)
                .and_then(|rollout| rollout.refused_eviction.as_ref());
            let held_step = match &due {
                // A pod that is tried again counts as refused until the answer.
                EvictionPlan::Pods(_) => {
                    let refused = refused_eviction.map(|refused| refused.obstacle.clone());
                    self.find_held_step(&id, refused, now)
                }
                EvictionPlan::Slot => None,
                EvictionPlan::Room(short) => {
                    let short = Box::new(Reason::Budget(short.clone()));
                    self.find_held_step(&id, Some(StepObstacle::Reason(short)), now)
                }
                EvictionPlan::Nothing(why) => self.find_held_step(&id, why.clone(), now),
            };
            let rollout = self.rollouts.steps.daemon_sets.track(&id);
            let lacks = match due {
                EvictionPlan::Slot => MissingBudget::Slot,
                EvictionPlan::Room(_) => MissingBudget::Room,
                EvictionPlan::Pods(_) | EvictionPlan::Nothing(_) => MissingBudget::Nothing,
            };
            if (&rollout.held_step, rollout.lacks) != (&held_step, lacks) {
                self.objects.wakes.mark(id);
            }
            (rollout.held_step, rollout.lacks) = (held_step, lacks);
            match due {
                EvictionPlan::Pods(pods) => {
                    rollout.pending_evictions.extend(pods.iter().map(|pod| (pod.uid.clone(), None)));
                    all.extend(pods);
                }
                EvictionPlan::Nothing(None) => rollout.refused_eviction = None,
                EvictionPlan::Slot | EvictionPlan::Room(_) | EvictionPlan::Nothing(Some(_)) => {}
            }
        }
        all
    }

    fn is_on_delete(&self, id: &ObjectId) -> bool {
        self.live_object(id).is_some_and(|live| held_step(live).is_some())
    }

    /// Forgets pods that are shown to be ending, and what has lasted for too long.
    fn forget_past_evictions(&mut self, id: &ObjectId, now: Instant) {
        let pods = self.rollouts.in_flight.get(id).and_then(|rollout| rollout.pods.clone());
        let Some(rollout) = self.rollouts.steps.daemon_sets.get_mut(id) else { return };
        let shown = |uid: &Uid| {
            let pods = pods.iter().flat_map(|pods| &pods.pods);
            pods.into_iter().any(|pod| pod.uid == *uid && !pod.terminating)
        };
        rollout.pending_evictions.retain(|uid, until| shown(uid) && until.is_none_or(|until| until > now));
        if let Some(refused_eviction) = &mut rollout.refused_eviction {
            refused_eviction.until = refused_eviction.until.filter(|until| *until > now);
        }
    }

    fn eviction_plan(&self, id: &ObjectId, now: Instant) -> EvictionPlan {
        let nothing = EvictionPlan::Nothing(None);
        let (Some(live), Some((_, desired))) =
            (self.live_object(id), self.entry(id).and_then(|e| e.target_content()))
        else {
            return nothing;
        };
        let (Some(steps), Some(step)) = (self.steps_of(id, desired), held_step(live)) else { return nothing };
        let progress = self.step_progress(id, desired, live, now);
        if progress.shown == RolloutOverlayState::Other || !self.can_write(id) {
            return nothing;
        }
        if self.is_paused_by_person(id) {
            let paused = self.release_pause(id).map(Box::new);
            return EvictionPlan::Nothing(paused.map(StepObstacle::Reason));
        }
        if let Some(why) = self.rollouts.steps.nodes.unknown_reason() {
            return EvictionPlan::Nothing(Some(why));
        }
        let Some(pods) = self.daemon_set_pods(id, steps, now) else { return nothing };
        let all = self.nodes_of(id);
        let (capacity, short) = self.eviction_capacity(id);
        let away = self
            .max_concurrent_evictions(id, desired.strategy, all)
            .min(self.claimed_evictions(id))
            .saturating_sub(count_too_young(live, &pods));
        let wish = NodeStep { target: steps.target(step, progress.replicas), away, nodes: all };
        let wanted = select_evictions(&pods, wish);
        let chosen = select_evictions(&pods, NodeStep { away: away.min(capacity), ..wish });
        if wanted.is_empty() {
            return nothing;
        }
        let refused_eviction =
            self.rollouts.steps.daemon_sets.get(id).and_then(|rollout| rollout.refused_eviction.as_ref());
        if let Some(refused_eviction) =
            refused_eviction.filter(|refused_eviction| refused_eviction.until.is_some())
        {
            return EvictionPlan::Nothing(Some(refused_eviction.obstacle.clone()));
        }
        if self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.slot == BudgetSlot::None) {
            return EvictionPlan::Slot;
        }
        if let Some(short) = short.filter(|_| chosen.is_empty()) {
            return EvictionPlan::Room(short);
        }
        let uids = self.rollouts.in_flight.get(id).and_then(|rollout| rollout.pods.as_deref());
        let uid = |name: &str| uids?.pods.iter().find(|pod| *pod.name == *name).map(|pod| pod.uid.clone());
        let due = chosen.iter().filter_map(|pod| {
            let (name, node) = (pod.name.clone(), pod.node.clone());
            Some(PodToEvict { of: id.clone(), uid: uid(&name)?, name, node })
        });
        EvictionPlan::Pods(due.collect())
    }

    /// Returns the number of pods that may be unavailable by its claim. Nodes that come, or a newer
    /// strategy, let no more go before the next one.
    fn claimed_evictions(&self, id: &ObjectId) -> u32 {
        let rollout = self.rollouts.in_flight.get(id).filter(|rollout| rollout.slot == BudgetSlot::Taken);
        let claimed = rollout.map(|rollout| rollout.reserved);
        claimed.filter(|claimed| *claimed > 0).unwrap_or(u32::MAX)
    }

    /// Returns the number of pods of a workload that may be unavailable now, and the bound behind
    /// it.
    fn eviction_capacity(&self, id: &ObjectId) -> (u32, Option<BudgetShortage>) {
        let (source, loads) = (self.wanting_source(id), self.loads());
        let mut capacity = (u32::MAX, None);
        for bound in self.budget_bounds().into_iter().filter(|bound| bound.scope.is_applicable_to(id, source))
        {
            let others = loads
                .iter()
                .filter(|load| load.id != *id && bound.scope.is_applicable_to(&load.id, load.source));
            let elsewhere = others.map(|load| load.unavailable).fold(bound.unnamed, u32::saturating_add);
            let left = bound.unavailable.saturating_sub(elsewhere);
            if left < capacity.0 {
                capacity = (left, Some(BudgetShortage::Pods(bound.scope, 1, elsewhere, bound.unavailable)));
            }
        }
        capacity
    }

    /// Records the outcome of an eviction.
    pub(in crate::engine) fn record_eviction(
        &mut self,
        pod: &PodToEvict,
        answer: &EvictionOutcome,
        now: Instant,
    ) {
        let Some(rollout) = self.rollouts.steps.daemon_sets.get_mut(&pod.of) else { return };
        match answer {
            EvictionOutcome::Evicted => {
                if let Some(until) = rollout.pending_evictions.get_mut(&pod.uid) {
                    *until = Some(now + EVICTION_ECHO_TIMEOUT);
                }
                rollout.refused_eviction = None;
            }
            EvictionOutcome::Refused(_) | EvictionOutcome::Denied(_) => {
                rollout.pending_evictions.remove(&pod.uid);
                let before = rollout.refused_eviction.take();
                let since = before.as_ref().map_or(now, |before| before.since);
                let wait = before
                    .map_or(FIRST_EVICTION_BACKOFF, |before| (before.wait * 2).min(MAX_EVICTION_BACKOFF));
                let obstacle = match answer {
                    EvictionOutcome::Denied(lacks) => StepObstacle::EvictionDenied(lacks.clone()),
                    EvictionOutcome::Refused(why) => StepObstacle::EvictionRefused {
                        pod: pod.name.clone(),
                        node: pod.node.clone(),
                        message: why.clone(),
                    },
                    EvictionOutcome::Evicted => return,
                };
                rollout.refused_eviction =
                    Some(RefusedEviction { obstacle, since, until: Some(now + wait), wait });
            }
        }
    }

    /// Returns the step that goes on, or rests, and why no more pods of it are replaced.
    fn find_held_step(&self, id: &ObjectId, why: Option<StepObstacle>, now: Instant) -> Option<HeldStep> {
        let (live, (_, desired)) = (self.live_object(id)?, self.entry(id)?.target_content()?);
        let steps = self.steps_of(id, desired)?;
        let progress = self.step_progress(id, desired, live, now);
        match crate::engine::rollout::steps::next(steps, &progress) {
            StepDecision::Stay(wait) if matches!(wait.lacks, crate::engine::StepRequirement::Pods { .. }) => {
                Some(HeldStep::Pods(wait, why))
            }
            StepDecision::Finish if self.is_waiting_for_nodes(id, steps, &progress, now) => {
                self.first_lost_node(id, steps, now).map(HeldStep::LostNode)
            }
            _ => None,
        }
    }
}

/// Returns the number of pods that are Ready but not available yet (`minReadySeconds`), or not
/// counted yet.
fn count_too_young(live: &LiveObject, pods: &[NodePod]) -> u32 {
    let replica_status = live.replica_status.unwrap_or_default();
    let ready: BTreeSet<&str> =
        pods.iter().filter(|pod| pod.state == PodAvailability::Ready).map(|pod| &*pod.node).collect();
    let ready = u32::try_from(ready.len()).unwrap_or(u32::MAX);
    replica_status.replicas.min(ready).saturating_sub(replica_status.available)
}

/// Returns the step at which a DaemonSet is held.
fn held_step(live: &LiveObject) -> Option<u32> {
    match live_overlay(live) {
        Some(RolloutOverlay::OnDelete { step }) => Some(step),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ReplicaStatus;
    use crate::engine::tests::world::{World, WorldObject, desired, id};

    #[test]
    fn pods_that_are_ready_and_not_available_yet_are_too_young() {
        let agent = id("apps", "DaemonSet", "shop", "agent");
        let live = World::live(&agent, &WorldObject::settled(desired(&agent, 1, "a").hash, "r1", 1));
        let check = |replicas: u32, available: u32, ready: &[&str], expected: u32| {
            let (host, template) = (NodeState::Ready, TemplateVersion::Newest);
            let pod = |node: &&str, state| NodePod {
                name: (*node).into(),
                node: (*node).into(),
                host,
                template,
                state,
            };
            let mut pods: Vec<NodePod> = ready.iter().map(|node| pod(node, PodAvailability::Ready)).collect();
            pods.push(pod(&"z", PodAvailability::InTrouble));
            let status = ReplicaStatus { replicas, available, ..ReplicaStatus::default() };
            let live = LiveObject { replica_status: Some(status), ..live.clone() };
            assert_eq!(count_too_young(&live, &pods), expected, "{replicas} {available} {ready:?}");
        };
        check(4, 1, &["a", "b", "c"], 2);
        check(4, 3, &["a", "b", "c"], 0);
        check(2, 1, &["a", "b", "c"], 1);
        check(4, 0, &["a", "a"], 1);
    }
}
