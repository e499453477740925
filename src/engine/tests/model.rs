//! Every order in which a small rollout can go. There are three workloads of three pods, one of
//! them with a configuration, and two commits. The process ends at any point, and views arrive
//! late.
//!
//! The budget is counted in the modelled cluster and never asked of the engine. The
//! space is small enough to go through all of it, because:
//! - The loop decides about all that changed until a write is on its way, and reads nothing in
//!   between. So decisions that write nothing are one step.
//! - Views arrive in order for each object, and in any order among objects. That is more than a
//!   watch does. It has fewer states than one queue, where the order of pending events counts too.
//! - Pods of one workload are alike, so only how many are how counts.
//! - Versions and instants only grow; states are distinguished by what they are compared with.
//! - A process that ends leaves nothing but the cluster, so from each state of that a new one
//!   begins once.

mod state_hash;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::json;

use super::harness::Harness;
use super::world::{FIRST, World, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, GroupKind, ObjectId};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// One pod: its template, and whether it is available.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ModelPod(ContentHash, bool);

/// The setting of one run of the model.
#[derive(Clone, Debug)]
struct ModelCase {
    most: u32,
    pods: u32,
    /// The contents of `env`, `a`, `b`, `c` in each commit.
    commits: Vec<[u32; 4]>,
    /// Contents of workloads whose pods never get available.
    bad: Vec<(&'static str, u32)>,
    /// Contents of the `ConfigMap` that no older revision can give any more.
    lost: Vec<u32>,
    crashes: u32,
    grain: ControllerGrain,
}

/// The amount of work that a workload's controller does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControllerGrain {
    /// It takes a pod away, or one becomes available.
    Fine,
    /// When a pod becomes available, the next one is taken away at once; both are reported. The
    /// states between have fewer pods away than the one after, and events alone do not show that
    /// they did not last.
    Coarse,
}

impl ModelCase {
    fn budget(&self) -> Budget {
        Budget { max_unavailable: PodAmount::Pods(self.pods), ..super::world::budget(self.most) }
    }

    fn wanted(&self, commit: usize) -> Vec<SharedDesiredObject> {
        let [env, contents @ ..] = self.commits[commit];
        let strategy = json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}});
        let workloads = NAMES.iter().zip(contents).map(|(name, content)| {
            let mut one = (*desired(&workload(name), content, name)).clone();
            one.strategy = UpdateStrategy::of(&GroupKind::new("apps", "Deployment"), &strategy);
            if *name == "a" {
                one.needs = [config("env")].into();
            }
            Arc::new(one)
        });
        std::iter::once(desired(&config("env"), env, "env")).chain(workloads).collect()
    }
}

/// Returns the objects that there are events about: the workloads, and the configuration.
fn event_object(place: usize) -> ObjectId {
    NAMES.get(place).map_or_else(|| config("env"), |name| workload(name))
}

/// A possible next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelStep {
    /// The loop decides about one object.
    Turn,
    /// The rollout ledger is written.
    Claims,
    /// The inventory is written.
    InventoriesKept,
    /// Older contents are read.
    ReadContents,
    /// The cluster's report about failures is read.
    FailuresReported,
    /// The oldest event about an object arrives.
    Deliver(usize),
    /// The controller of a workload does one thing.
    Controller(usize),
    /// The next commit is read.
    Commit,
    /// The process dies, and another one starts.
    Crash,
}

#[derive(Clone)]
struct ExhaustiveModel<'a> {
    case: &'a ModelCase,
    harness: Harness,
    pods: [[ModelPod; 3]; 3],
    commit: usize,
    crashes: u32,
}

impl<'a> ExhaustiveModel<'a> {
    /// Returns the first commit at rest.
    fn new(case: &'a ModelCase) -> Self {
        let mut harness = Harness::new(case.most);
        harness.engine = harness.fresh_with(case.budget());
        let wanted = case.wanted(0);
        let pods = std::array::from_fn(|number| [ModelPod(wanted[number + 1].hash, true); 3]);
        harness.world.bad =
            case.bad.iter().map(|(name, content)| desired(&workload(name), *content, "").hash).collect();
        let mut model = Self { case, harness, pods, commit: 0, crashes: 0 };
        model.read();
        model.harness.settle();
        for name in NAMES {
            if let Some(thing) = model.harness.world.things.get_mut(&workload(name)) {
                let full = ReplicaStatus {
                    replicas: 3,
                    pods: 3,
                    updated: 3,
                    ready: 3,
                    available: 3,
                    max_unavailable: 1,
                    ..ReplicaStatus::default()
                };
                thing.numbers = Some(full);
            }
        }
        model.harness.world.events.clear();
        model.restart();
        model.harness.settle();
        model.harness.world.log.clear();
        model
    }

    fn read(&mut self) {
        let revision = format!("r{}", self.commit);
        let wanted = self.case.wanted(self.commit);
        let files: Vec<(&str, Option<SharedDesiredObject>)> = ["env", "a", "b", "c"]
            .into_iter()
            .zip(wanted)
            .map(|(file, desired)| (file, Some(desired)))
            .collect();
        self.harness.read(reading(&revision, &files));
        for lost in &self.case.lost {
            self.harness.history.remove(&desired(&config("env"), *lost, "env").hash);
        }
    }

    fn restart(&mut self) {
        self.harness.world.events.clear();
        self.harness.engine = self.harness.fresh_with(self.case.budget());
        // Its loop turns before the source has been read.
        self.harness.engine.advance(self.harness.now);
        self.harness.deliver_failures();
        self.read();
        self.harness.engine.handle(Input::Resynced, self.harness.now);
    }

    fn wanted(&self, number: usize) -> ContentHash {
        self.content(&workload(NAMES[number]))
    }

    fn content(&self, id: &ObjectId) -> ContentHash {
        self.harness.world.things[id].release.as_ref().unwrap().hash
    }

    /// Returns the next pod to be made available, or else to be replaced.
    fn next_pod(&self, number: usize) -> Option<usize> {
        let (wanted, pods) = (self.wanted(number), &self.pods[number]);
        let away = pods
            .iter()
            .position(|pod| !(pod.1 || pod.0 == wanted && self.harness.world.bad.contains(&pod.0)));
        let stuck = pods.iter().any(|pod| !pod.1);
        away.or_else(|| pods.iter().position(|pod| pod.0 != wanted).filter(|_| !stuck))
    }

    fn is_stuck(&self, number: usize) -> bool {
        let wanted = self.wanted(number);
        self.pods[number]
            .iter()
            .any(|pod| !pod.1 && pod.0 == wanted && self.harness.world.bad.contains(&pod.0))
    }

    fn numbers(&self, number: usize) -> ReplicaStatus {
        let (wanted, pods) = (self.wanted(number), &self.pods[number]);
        let count = |counts: &dyn Fn(&ModelPod) -> bool| pods.iter().filter(|pod| counts(pod)).count() as u32;
        let (updated, available) = (count(&|pod| pod.0 == wanted), count(&|pod| pod.1));
        let phase = match (updated, available) {
            (3, 3) => WorkloadPhase::Settled,
            (3, _) => WorkloadPhase::Recovering,
            _ => WorkloadPhase::Replacing,
        };
        ReplicaStatus {
            replicas: 3,
            pods: 3,
            updated,
            ready: available,
            available,
            max_unavailable: 1,
            phase,
            ..ReplicaStatus::default()
        }
    }

    /// Returns whether the controller has something to do, or to report.
    fn is_moving(&self, number: usize) -> bool {
        let thing = &self.harness.world.things[&workload(NAMES[number])];
        let is_reported = thing.numbers.map(|numbers| ReplicaStatus { phase: thing.phase, ..numbers })
            == Some(self.numbers(number));
        let blamed = !self.is_stuck(number) || thing.failed == Some(self.wanted(number));
        self.next_pod(number).is_some() || !is_reported || !blamed
    }

    fn control(&mut self, number: usize) {
        let away = |model: &Self| model.pods[number].iter().filter(|pod| !pod.1).count();
        let before = away(self);
        self.control_once(number);
        if self.case.grain == ControllerGrain::Coarse
            && away(self) < before
            && self.next_pod(number).is_some()
        {
            self.control_once(number);
        }
    }

    fn control_once(&mut self, number: usize) {
        let wanted = self.wanted(number);
        let next = self.next_pod(number);
        if let Some(next) = next {
            let pod = &mut self.pods[number][next];
            *pod = if pod.0 == wanted { ModelPod(wanted, true) } else { ModelPod(wanted, false) };
            self.pods[number].sort();
        }
        let (numbers, stuck) = (self.numbers(number), self.is_stuck(number));
        let id = workload(NAMES[number]);
        let rv = self.harness.world.tick();
        let thing = self.harness.world.things.get_mut(&id).unwrap();
        (thing.numbers, thing.phase, thing.rv) = (Some(numbers), numbers.phase, rv);
        thing.failed = match next {
            // It gets somewhere.
            Some(_) => None,
            None if stuck => Some(wanted),
            None => thing.failed,
        };
        self.harness.world.announce(&id);
    }

    fn steps(&self) -> Vec<ModelStep> {
        let mut steps = Vec::new();
        let has_event =
            |place: &usize| self.harness.world.events.iter().any(|(id, _)| *id == event_object(*place));
        steps.extend((0..=NAMES.len()).filter(has_event).map(ModelStep::Deliver));
        if self.harness.engine.objects.wakes.has_dirty() {
            steps.push(ModelStep::Turn);
        }
        if self.harness.engine.next_ledger().is_some() {
            steps.push(ModelStep::Claims);
        }
        if self.harness.engine.next_rejections(FIRST).is_some() {
            steps.push(ModelStep::InventoriesKept);
        }
        if !self.harness.engine.unread_contents().is_empty() {
            steps.push(ModelStep::ReadContents);
        }
        if !self.harness.engine.rollouts.unreported.newly_failed().is_empty() {
            steps.push(ModelStep::FailuresReported);
        }
        steps.extend((0..3).filter(|number| self.is_moving(*number)).map(ModelStep::Controller));
        if self.commit + 1 < self.case.commits.len() {
            steps.push(ModelStep::Commit);
        }
        if self.crashes < self.case.crashes && !(self.commit == 0 || steps.is_empty()) {
            steps.push(ModelStep::Crash);
        }
        steps
    }

    fn take(&mut self, step: ModelStep) {
        match step {
            ModelStep::Deliver(place) => self.deliver(&event_object(place)),
            ModelStep::Turn => self.turn(),
            ModelStep::Claims => self.harness.keep_claims(),
            ModelStep::InventoriesKept => self.harness.sync_inventories(),
            ModelStep::ReadContents => self.harness.read_contents(),
            ModelStep::FailuresReported => self.harness.deliver_failures(),
            ModelStep::Controller(number) => self.control(number),
            ModelStep::Commit => {
                self.commit += 1;
                self.read();
            }
            ModelStep::Crash => {
                self.crashes += 1;
                self.restart();
            }
        }
        // The loop begins each turn with this.
        self.harness.engine.advance(self.harness.now);
        self.harness.engine.process_changes();
    }

    /// Delivers the oldest event about one object.
    fn deliver(&mut self, id: &ObjectId) {
        let events = &mut self.harness.world.events;
        let Some(oldest) = events.iter().position(|(about, _)| about == id) else { return };
        match events.remove(oldest).1 {
            Some(thing) => self.harness.engine.observe_object(id, World::live(id, &thing)),
            None => self.harness.engine.observe_absence(id),
        }
    }

    /// Carries out decisions of the loop until one of them writes.
    fn turn(&mut self) {
        let mut dirty: BTreeSet<ObjectId> = self.harness.engine.take_dirty().into_iter().collect();
        while let Some(first) = dirty.pop_first() {
            let decision = self.harness.engine.decide(&first, self.harness.now);
            if let Action::Apply(apply) = &decision.action {
                self.judge(apply);
            }
            let wrote = self.harness.act(&first, decision).is_some();
            // A decision may be what others wait for.
            dirty.extend(self.harness.engine.take_dirty());
            if wrote {
                break;
            }
        }
        self.harness.engine.objects.wakes.mark_each(dirty);
    }

    /// Checks that rejected content is not applied again while the newest commit asks for exactly
    /// that.
    fn judge(&self, apply: &ApplyRequest) {
        let wanted: BTreeMap<ObjectId, ContentHash> =
            self.case.wanted(self.commit).iter().map(|desired| (desired.id.clone(), desired.hash)).collect();
        for rejection in &self.harness.world.rejections {
            let members = &rejection.unit.members;
            let asked = members.iter().all(|(id, member)| wanted.get(id) == member.content.as_ref());
            let content = members.get(&apply.desired.id).and_then(|member| member.content);
            assert!(
                !asked || content != Some(apply.desired.hash),
                "{} was rejected: {:?}",
                apply.desired.id,
                self.case
            );
        }
    }

    /// Checks the properties of every state.
    fn check(&self) {
        let away: usize = self.pods.iter().flatten().filter(|pod| !pod.1).count();
        assert!(away <= self.case.pods as usize, "{away} pods are away: {:?}", self.case);
        let replacing =
            (0..3).filter(|number| self.pods[*number].iter().any(|pod| pod.0 != self.wanted(*number)));
        let held = |number: &usize| {
            let id = workload(NAMES[*number]);
            let mut rejections = self.harness.world.rejections.iter();
            rejections
                .any(|one| one.action == RejectionAction::Quarantine && one.unit.members.contains_key(&id))
        };
        let replacing: Vec<&str> =
            replacing.filter(|number| !held(number)).map(|number| NAMES[number]).collect();
        assert!(replacing.len() <= self.case.most as usize, "{replacing:?} roll: {:?}", self.case);
        let at = |commit: usize, id: &ObjectId| {
            self.case
                .wanted(commit)
                .iter()
                .any(|desired| desired.id == *id && desired.hash == self.content(id))
        };
        let is_complete = (0..self.case.commits.len())
            .any(|commit| at(commit, &config("env")) && at(commit, &workload("a")));
        let ledger = &self.harness.world.ledger;
        let recorded = ledger.units.iter().any(|unit| unit.members.contains_key(&config("env")));
        let claimed = ledger.claims.contains_key(&workload("a"));
        let going_back =
            self.harness.world.rejections.iter().any(|one| one.unit.members.contains_key(&config("env")));
        assert!(is_complete || recorded || claimed || going_back, "the unit is torn: {:?}", self.case);
    }

    /// Checks the end: each unit is at the newest commit, or back at one that is good, or
    /// quarantined where none is.
    fn check_end(&self) {
        let last = self.case.commits.len() - 1;
        for (number, name) in NAMES.into_iter().enumerate() {
            let content = |commit: usize| self.case.wanted(commit)[number + 1].hash;
            let good = |commit: usize| !self.harness.world.bad.contains(&content(commit));
            let shown = self.wanted(number);
            if name == "a" && !self.case.lost.is_empty() {
                let is_held =
                    self.harness.world.rejections.iter().any(|one| one.action == RejectionAction::Quarantine);
                assert!(is_held && shown == content(last), "it went back in part: {:?}", self.case);
                continue;
            }
            if good(last) && (name != "a" || (0..=last).any(|commit| commit != last && good(commit))) {
                assert_eq!(shown, content(last), "{name} ends elsewhere: {:?}", self.case);
            }
            if (0..=last).any(good) {
                assert!((0..=last).any(|commit| good(commit) && content(commit) == shown), "{:?}", self.case);
                let is_rolled_out = self.pods[number].iter().all(|pod| *pod == ModelPod(shown, true));
                assert!(is_rolled_out, "{name} is not complete at the end: {:?}", self.case);
            } else {
                let is_held =
                    self.harness.world.rejections.iter().any(|one| one.action == RejectionAction::Quarantine);
                assert!(is_held, "{name} is not held: {:?}", self.case);
            }
        }
        let env = self.content(&config("env"));
        let together = (0..=last).any(|commit| {
            let wanted = self.case.wanted(commit);
            wanted[0].hash == env && wanted[1].hash == self.wanted(0)
        });
        assert!(together, "the unit is torn at the end: {:?}", self.case);
        assert!(self.harness.world.is_free(), "{:?}", self.case);
    }
}

/// Goes through all states that can be reached, and returns how many there are, and how many of
/// them are ends.
fn explore(case: &ModelCase) -> (usize, usize) {
    let (mut seen, mut crashed) = (HashSet::new(), HashSet::new());
    let mut open = vec![(ExhaustiveModel::new(case), Vec::new())];
    let mut ends = 0;
    while let Some((model, path)) = open.pop() {
        if !seen.insert(model.print()) {
            continue;
        }
        assert!(path.len() < 400, "it never comes to rest: {case:?}");
        let steps = model.steps();
        if steps.is_empty() {
            ends += 1;
            follow(&path, || model.check_end());
        }
        for step in steps {
            // The next process begins with the same facts, whatever this one knew when it ended.
            if step == ModelStep::Crash && !crashed.insert(model.world_hash()) {
                continue;
            }
            let path: Vec<ModelStep> = path.iter().copied().chain([step]).collect();
            let mut next = model.clone();
            let next = follow(&path, || {
                next.take(step);
                next.check();
                next
            });
            open.push((next, path));
        }
    }
    (seen.len(), ends)
}

/// Does the last step of a path; a failure shows the whole path.
fn follow<T>(path: &[ModelStep], last: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(last))
        .unwrap_or_else(|_| panic!("that was after {path:?}"))
}

/// Does the same as [`explore`], of a case with at least so many states: fewer would mean that
/// something can no longer happen.
#[track_caller]
fn explore_all(case: &ModelCase, least: usize) {
    let (states, ends) = explore(case);
    assert!(states >= least && ends > 0, "{states} states, {ends} ends, not {least}: {case:?}");
}

/// Returns a case with one workload at a time, and one pod.
fn serial(commits: &[[u32; 4]]) -> ModelCase {
    let (bad, lost) = (Vec::new(), Vec::new());
    ModelCase {
        most: 1,
        pods: 1,
        commits: commits.to_vec(),
        bad,
        lost,
        crashes: 0,
        grain: ControllerGrain::Fine,
    }
}

/// Returns a case in which all three workloads change, and the process may end once, at any point.
fn unit_case(bad: &[(&'static str, u32)]) -> ModelCase {
    ModelCase { bad: bad.to_vec(), crashes: 1, ..serial(&[ONE, ALL]) }
}

/// Returns the case with two workloads at a time.
fn double(case: ModelCase) -> ModelCase {
    ModelCase { most: 2, pods: 2, grain: ControllerGrain::Coarse, ..case }
}

const ONE: [u32; 4] = [1, 1, 1, 1];
const TWO: [u32; 4] = [2, 2, 2, 1];
const ALL: [u32; 4] = [2, 2, 2, 2];

#[test]
fn one_at_a_time_survives_the_end_of_the_process_at_every_point() {
    // By the bound on workloads alone, and by that on pods too.
    explore_all(&ModelCase { pods: 2, ..unit_case(&[]) }, 3_000);
    explore_all(&unit_case(&[]), 3_000);
}

#[test]
fn two_at_a_time_survive_the_end_of_the_process_at_every_point() {
    explore_all(&double(unit_case(&[])), 32_000);
}

#[test]
fn the_pods_of_two_workloads_share_one_bound_in_every_order() {
    explore_all(&ModelCase { most: 2, pods: 1, ..serial(&[ONE, TWO]) }, 440);
    explore_all(&double(ModelCase { crashes: 0, ..unit_case(&[]) }), 7_500);
}

#[test]
fn what_fails_while_another_rolls_goes_back_in_every_order() {
    explore_all(&double(ModelCase { crashes: 0, ..unit_case(&[("b", 2)]) }), 7_300);
}

#[test]
fn what_failed_is_not_held_against_what_replaces_it_whenever_the_process_ends() {
    for bad in ["a", "b"] {
        explore_all(&ModelCase { pods: 2, ..unit_case(&[(bad, 2)]) }, 2_700);
    }
    let newer = serial(&[ONE, [2, 2, 1, 1], [3, 3, 1, 1]]);
    explore_all(
        &ModelCase { bad: vec![("a", 2)], crashes: 1, grain: ControllerGrain::Coarse, ..newer },
        10_000,
    );
}

#[test]
fn a_fix_of_a_failed_content_shares_the_smallest_bound_with_another_workload_in_every_order() {
    let fix = serial(&[ONE, [2, 2, 1, 1], [3, 3, 2, 1]]);
    explore_all(&ModelCase { most: 2, bad: vec![("a", 2)], ..fix }, 11_000);
}

#[test]
fn what_failed_under_the_smallest_bound_goes_back_whenever_the_process_ends() {
    explore_all(&ModelCase { bad: vec![("a", 2)], crashes: 1, ..serial(&[ONE, TWO]) }, 2_200);
}

#[test]
fn a_newer_commit_replaces_a_rollout_and_a_rollback_at_every_point() {
    let one_unit = [ONE, [2, 2, 1, 1], [3, 3, 1, 1]];
    explore_all(&ModelCase { bad: vec![("a", 2)], ..serial(&one_unit) }, 9_000);
    explore_all(&ModelCase { bad: vec![("a", 2)], ..serial(&[ONE, [2, 2, 1, 1], ONE]) }, 2_100);
}

#[test]
fn a_rollback_that_fails_too_is_held_in_every_order() {
    explore_all(&ModelCase { bad: vec![("a", 1), ("a", 2)], pods: 2, ..serial(&[ONE, TWO]) }, 1_900);
}

#[test]
fn a_unit_of_which_something_is_lost_stays_as_it_is_in_every_order() {
    let bad = vec![("a", 2)];
    explore_all(&ModelCase { bad, lost: vec![1], crashes: 1, ..serial(&[ONE, [2, 2, 1, 1]]) }, 370);
}
