//! A DaemonSet on a few nodes, which looks like a real one to the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::harness::Harness;
use super::pods::{pod, ready, waiting};
use super::world::{desired, id, reading};
use crate::engine::*;
use crate::object::{ContentHash, GroupKind, ObjectId};

/// One node and its pod.
#[derive(Clone, Debug)]
pub(super) struct FakeNode {
    pub(super) ready: Readiness,
    pub(super) cordoned: bool,
    pub(super) canary: bool,
    content: ContentHash,
    number: u32,
    /// The time since which its pod is Ready.
    since: Option<Instant>,
}

/// The answers of the pods' disruption budgets to evictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisruptionBudgets {
    Allowed,
    /// One pod may go.
    Once,
    Forbidden,
    /// The user lacks the right.
    Denied,
}

/// A world with one DaemonSet.
#[derive(Clone)]
pub(super) struct DaemonSetWorld {
    pub(super) harness: Harness,
    pub(super) nodes: BTreeMap<Arc<str>, FakeNode>,
    pub(super) disruption: DisruptionBudgets,
    /// Indicates whether the engine may not read the nodes.
    pub(super) unreadable: bool,
    /// Indicates whether a node that is not Ready has a taint that its pod lives with, and a new
    /// one would not.
    pub(super) taints: bool,
    /// The time for which a pod must be Ready to be available.
    pub(super) young: Duration,
    /// A content whose pods never get Ready, and nobody says why.
    pub(super) mute: Option<ContentHash>,
    sent: Option<BTreeMap<Arc<str>, NodeFacts>>,
    /// The nodes whose pods were evicted, in order.
    pub(super) log: Vec<Arc<str>>,
    /// The overlays that were laid, in order.
    pub(super) overlays: Vec<String>,
    /// The most nodes without an available pod at a time.
    pub(super) away: usize,
}

pub(super) fn agent() -> ObjectId {
    id("apps", "DaemonSet", "shop", "agent")
}

/// Returns a content of the DaemonSet, with words of its own.
pub(super) fn content(number: u32, words: &Value) -> SharedDesiredObject {
    spread(number, words, &json!({}))
}

/// Returns the same with a strategy.
pub(super) fn spread(number: u32, words: &Value, strategy: &Value) -> SharedDesiredObject {
    let mut annotations = serde_json::Map::new();
    for (key, value) in words.as_object().unwrap() {
        annotations.insert(format!("rhumb.dev/{key}"), value.clone());
    }
    let spec = json!({"updateStrategy": strategy});
    let body = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"annotations": annotations}, "spec": spec});
    let mut shared = (*desired(&agent(), number, "agent")).clone();
    shared.steps = Steps::of(&body).map(Box::new);
    shared.strategy = UpdateStrategy::of(&GroupKind::new("apps", "DaemonSet"), &body);
    Arc::new(shared)
}

impl DaemonSetWorld {
    /// Returns a DaemonSet at rest with this content on so many nodes, under a budget.
    pub(super) fn new(nodes: usize, budget: Budget, first: &SharedDesiredObject) -> Self {
        let mut harness = Harness::new(3);
        harness.engine = harness.fresh_with(budget);
        harness.read(reading("r1", &[("agent", Some(first.clone()))]));
        harness.settle();
        let node = |number: usize| {
            let name: Arc<str> = format!("node-{number}").into();
            let since = Some(harness.now);
            let ready = Readiness::Ready;
            (name, FakeNode { ready, cordoned: false, canary: false, content: first.hash, number: 0, since })
        };
        let nodes = (1..=nodes).map(node).collect();
        let mut fleet = Self {
            harness,
            nodes,
            disruption: DisruptionBudgets::Allowed,
            unreadable: false,
            taints: false,
            young: Duration::ZERO,
            mute: None,
            sent: None,
            log: Vec::new(),
            overlays: Vec::new(),
            away: 0,
        };
        fleet.settle();
        fleet.harness.world.log.clear();
        fleet.away = 0;
        fleet
    }

    pub(super) fn node(&mut self, name: &str) -> &mut FakeNode {
        self.nodes.get_mut(name).unwrap()
    }

    pub(super) fn commit(&mut self, revision: &str, content: &SharedDesiredObject) {
        self.harness.read(reading(revision, &[("agent", Some(content.clone()))]));
    }

    /// Starts another process, which knows only what the cluster and the source show.
    pub(super) fn restart(&mut self, budget: Budget, revision: &str, content: &SharedDesiredObject) {
        self.harness.engine = self.harness.fresh_with(budget);
        self.sent = None;
        self.commit(revision, content);
        self.harness.engine.mark_all();
    }

    /// Returns the overlay that the cluster shows.
    pub(super) fn shown(&self) -> String {
        match self.harness.world.things[&agent()].shown {
            RolloutOverlayState::Overlaid(overlay) => overlay.to_string(),
            RolloutOverlayState::Plain => String::new(),
            other => format!("{other:?}"),
        }
    }

    /// Returns the nodes with a Ready pod of this content.
    pub(super) fn done(&self, content: &SharedDesiredObject) -> Vec<&str> {
        let done = self.nodes.iter().filter(|(_, node)| node.content == content.hash && node.since.is_some());
        done.map(|(name, _)| &**name).collect()
    }

    /// Checks that nothing of the budget is taken any more.
    #[track_caller]
    pub(super) fn assert_free(&self) {
        let ledger = &self.harness.world.ledger;
        assert!(ledger.claims.is_empty() && ledger.units.is_empty(), "{ledger:?}");
    }

    /// Returns the text about the DaemonSet.
    pub(super) fn reason(&mut self) -> String {
        self.harness.decide(&agent()).reason.map(|reason| reason.to_string()).unwrap_or_default()
    }

    /// Sets the intents of people for the DaemonSet.
    pub(super) fn ask(&mut self, asked: ObjectIntents) {
        let rv = self.harness.world.tick();
        let thing = self.harness.world.things.get_mut(&agent()).unwrap();
        (thing.objects_with_intents, thing.rv) = (Some(Box::new(asked)), rv);
        self.harness.world.announce(&agent());
    }

    /// Gives an order about the DaemonSet.
    pub(super) fn give(&mut self, words: &str) {
        self.harness.give(&agent(), words);
    }

    /// Goes on until nothing happens any more at this time.
    pub(super) fn settle(&mut self) {
        for _ in 0..300 {
            if !self.tick() {
                return;
            }
        }
        panic!("it never comes to rest: {:#?}", self.harness.world.log);
    }

    /// Runs one turn of everything, and returns whether anything happened.
    pub(super) fn tick(&mut self) -> bool {
        let mut happened = !self.harness.world.events.is_empty();
        self.harness.deliver(usize::MAX);
        happened |= self.control();
        self.harness.deliver(usize::MAX);
        self.deliver_nodes();
        self.deliver_pods();
        self.harness.carry_out();
        self.harness.engine.advance(self.harness.now);
        happened |= self.evict();
        let ledger = self.harness.world.ledger.clone();
        self.harness.keep_ledger();
        self.harness.remove_orders();
        self.harness.engine.process_changes();
        let dirty: BTreeSet<ObjectId> = self.harness.engine.take_dirty().into_iter().collect();
        for id in &dirty {
            self.harness.step(id);
        }
        let away = self.nodes.len() - self.available();
        self.away = self.away.max(away);
        happened || !dirty.is_empty() || ledger != self.harness.world.ledger
    }

    /// Acts as the DaemonSet's controller and the kubelets.
    fn control(&mut self) -> bool {
        let thing = &self.harness.world.things[&agent()];
        let (content, shown) = (thing.release.as_ref().unwrap().hash, self.shown());
        let mut changed = false;
        if !shown.starts_with("on-delete") {
            let rolling = self.nodes.values().any(|node| node.content == content && node.since.is_none());
            let stale = self.nodes.values_mut().filter(|node| node.content != content);
            // It takes what is not Ready first, and at once.
            let next =
                stale.min_by_key(|node| node.since.is_some()).filter(|node| node.since.is_none() || !rolling);
            if let Some(node) = next {
                (node.content, node.number, node.since) = (content, node.number + 1, None);
                changed = true;
            }
        }
        changed |= self.count(content);
        // One turn later, so that a pod is seen without being Ready.
        let bad = &self.harness.world.bad;
        if !changed {
            let new = |node: &&mut FakeNode| node.since.is_none() && node.ready == Readiness::Ready;
            let good = |node: &&mut FakeNode| !bad.contains(&node.content) && self.mute != Some(node.content);
            for node in self.nodes.values_mut().filter(new).filter(good) {
                (node.since, changed) = (Some(self.harness.now), true);
            }
            changed |= self.count(content);
        }
        changed
    }

    fn available(&self) -> usize {
        self.nodes.values().filter(|node| node.since.is_some_and(|since| self.is_old(since))).count()
    }

    fn is_old(&self, since: Instant) -> bool {
        self.harness.now.duration_since(since) >= self.young
    }

    /// Updates the DaemonSet's status.
    fn count(&mut self, content: ContentHash) -> bool {
        let number = |count: usize| u32::try_from(count).unwrap();
        let tainted = |node: &&FakeNode| self.taints && node.ready != Readiness::Ready;
        let counted = || self.nodes.values().filter(|node| !tainted(node));
        let updated = number(counted().filter(|node| node.content == content).count());
        let ready = number(counted().filter(|node| node.since.is_some()).count());
        let (replicas, misscheduled) =
            (number(counted().count()), number(self.nodes.values().filter(tainted).count()));
        let old = |node: &&FakeNode| node.since.is_some_and(|since| self.is_old(since));
        let available = number(counted().filter(old).count());
        let is_at_step = self.shown().starts_with("on-delete");
        let phase = if updated < replicas && !is_at_step {
            WorkloadPhase::Replacing
        } else if available < replicas {
            WorkloadPhase::Recovering
        } else {
            WorkloadPhase::Settled
        };
        let numbers = ReplicaStatus {
            replicas,
            updated,
            ready,
            available,
            misscheduled,
            phase,
            ..ReplicaStatus::default()
        };
        let shown = self.shown();
        if self.overlays.last() != Some(&shown) {
            self.overlays.push(shown);
        }
        let thing = self.harness.world.things.get_mut(&agent()).unwrap();
        if thing.numbers == Some(numbers) && thing.phase == phase {
            return false;
        }
        (thing.numbers, thing.phase) = (Some(numbers), phase);
        thing.rv = self.harness.world.clock + 1;
        self.harness.world.tick();
        self.harness.world.announce(&agent());
        true
    }

    fn deliver_nodes(&mut self) {
        let engine = &mut self.harness.engine;
        if !engine.is_node_watch_needed() {
            if self.sent.take().is_some() {
                engine.nodes(NodeChange::Closed);
            }
            return;
        }
        if self.unreadable {
            return engine.nodes(NodeChange::Failed("nodes is forbidden".into()));
        }
        let facts = |node: &FakeNode| NodeFacts {
            ready: node.ready,
            cordoned: node.cordoned,
            labels: if node.canary { Box::new([("canary".into(), "yes".into())]) } else { Box::default() },
        };
        let now: BTreeMap<Arc<str>, NodeFacts> =
            self.nodes.iter().map(|(name, node)| (name.clone(), facts(node))).collect();
        if self.sent.as_ref() != Some(&now) {
            engine.nodes(NodeChange::Init);
            for (name, facts) in &now {
                engine.nodes(NodeChange::Apply(name.clone(), facts.clone()));
            }
            engine.nodes(NodeChange::InitDone);
            self.sent = Some(now);
        }
    }

    /// Reports the pods to the engine, where it watches them.
    pub(super) fn deliver_pods(&mut self) {
        if !self.harness.engine.workloads_to_watch().iter().any(|(id, _)| *id == agent()) {
            return;
        }
        let thing = &self.harness.world.things[&agent()];
        let newest = thing.release.as_ref().unwrap().hash.to_string();
        let bad = &self.harness.world.bad;
        let facts = |(name, node): (&Arc<str>, &FakeNode)| {
            let (pod_name, revision) = (format!("agent-{name}-{}", node.number), node.content.to_string());
            let facts = match node.since {
                Some(since) => ready(&pod_name, &revision, since),
                None if bad.contains(&node.content) => {
                    waiting(pod(&pod_name, &revision), "InvalidImageName", self.harness.now)
                }
                None => pod(&pod_name, &revision),
            };
            PodFacts { node: Some(name.clone()), ..facts }
        };
        let pods = WorkloadPods {
            current: None,
            rv: ResourceVersion(thing.rv),
            newest: Some(newest.as_str().into()),
            pods: self.nodes.iter().map(facts).collect(),
            sets: Box::default(),
            last_failed: None,
            creation_failure: None,
        };
        self.harness.engine.record_pods(&agent(), pods);
    }

    fn evict(&mut self) -> bool {
        let due = self.harness.engine.pods_to_evict(self.harness.now);
        for pod in &due {
            let content = self.harness.world.things[&agent()].release.as_ref().unwrap().hash;
            let node = self.nodes.get_mut(&pod.node).unwrap();
            assert_eq!(*pod.name, *format!("agent-{}-{}", pod.node, node.number));
            let answer = if self.disruption == DisruptionBudgets::Denied {
                EvictionOutcome::Denied("the user may not create pods/eviction in namespace shop".into())
            } else if self.disruption == DisruptionBudgets::Forbidden {
                EvictionOutcome::Refused("it would violate the pod's disruption budget".into())
            } else {
                if self.disruption == DisruptionBudgets::Once {
                    self.disruption = DisruptionBudgets::Forbidden;
                }
                (node.content, node.number, node.since) = (content, node.number + 1, None);
                self.log.push(pod.node.clone());
                EvictionOutcome::Evicted
            };
            self.harness.engine.record_eviction(pod, &answer, self.harness.now);
        }
        !due.is_empty()
    }

    /// Lets time pass, and what comes of it happen.
    pub(super) fn pass(&mut self, time: Duration) {
        self.harness.pass_time(time);
        self.settle();
    }
}
