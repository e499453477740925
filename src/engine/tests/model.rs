//! Every order in which a small rollout can go: three workloads of three pods, one of them with a configuration, two
//! commits, the end of the process at any point, and views that arrive late.
//!
//! The budget is counted in the modelled cluster and never asked of the engine.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::json;

use super::rig::Rig;
use super::world::{config, desired, reading, workload};
use crate::engine::*;
use crate::object::{GroupKind, Hash, ObjectId};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// One pod: its template, and whether it is available.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pod(Hash, bool);

/// What one run of the model is about.
#[derive(Clone, Debug)]
struct Case {
    most: u32,
    pods: u32,
    /// The contents of `env`, `a`, `b`, `c` in each commit.
    commits: Vec<[u32; 4]>,
    /// Contents of workloads whose pods never get available.
    bad: Vec<(&'static str, u32)>,
    /// Contents of the `ConfigMap` that no older revision can give any more.
    lost: Vec<u32>,
    crashes: u32,
}

impl Case {
    fn budget(&self) -> Budget {
        Budget { max_unavailable: Amount::Pods(self.pods), ..super::world::budget(self.most) }
    }

    fn wanted(&self, commit: usize) -> Vec<Shared> {
        let [env, contents @ ..] = self.commits[commit];
        let strategy = json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}});
        let workloads = NAMES.iter().zip(contents).map(|(name, content)| {
            let mut one = (*desired(&workload(name), content, name)).clone();
            one.strategy = Strategy::of(&GroupKind::new("apps", "Deployment"), &strategy);
            if *name == "a" {
                one.needs = [config("env")].into();
            }
            Arc::new(one)
        });
        std::iter::once(desired(&config("env"), env, "env")).chain(workloads).collect()
    }
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The loop decides about one object.
    Turn,
    /// The budget object is written.
    Claims,
    /// The parent is written.
    Parents,
    /// Older contents are read.
    Resolve,
    /// What the cluster says about failures is read.
    Told,
    /// The oldest event arrives.
    Deliver,
    /// The controller of a workload does one thing.
    Controller(usize),
    /// The next commit is read.
    Commit,
    /// The process dies, and another one starts.
    Crash,
}

#[derive(Clone)]
struct Model<'a> {
    case: &'a Case,
    rig: Rig,
    pods: [[Pod; 3]; 3],
    commit: usize,
    crashes: u32,
    idle: bool,
}

impl<'a> Model<'a> {
    /// The first commit is at rest.
    fn new(case: &'a Case) -> Self {
        let mut rig = Rig::new(case.most);
        rig.engine = rig.fresh_with(case.budget());
        let wanted = case.wanted(0);
        let pods = std::array::from_fn(|number| [Pod(wanted[number + 1].hash, true); 3]);
        rig.world.bad =
            case.bad.iter().map(|(name, content)| desired(&workload(name), *content, "").hash).collect();
        let mut model = Self { case, rig, pods, commit: 0, crashes: 0, idle: false };
        model.read();
        model.rig.settle();
        for name in NAMES {
            if let Some(thing) = model.rig.world.things.get_mut(&workload(name)) {
                let full = Rolling {
                    replicas: 3,
                    updated: 3,
                    ready: 3,
                    available: 3,
                    may_lose: 1,
                    ..Rolling::default()
                };
                thing.numbers = Some(full);
            }
        }
        model.rig.world.events.clear();
        model.restart();
        model.rig.settle();
        model.rig.world.log.clear();
        model
    }

    fn read(&mut self) {
        let revision = format!("r{}", self.commit);
        let wanted = self.case.wanted(self.commit);
        let files: Vec<(&str, Option<Shared>)> =
            ["env", "a", "b", "c"].into_iter().zip(wanted).map(|(file, want)| (file, Some(want))).collect();
        self.rig.read(reading(&revision, &files));
        for lost in &self.case.lost {
            self.rig.history.remove(&desired(&config("env"), *lost, "env").hash);
        }
    }

    fn restart(&mut self) {
        self.rig.world.events.clear();
        self.rig.engine = self.rig.fresh_with(self.case.budget());
        self.read();
        self.rig.engine.mark_all();
    }

    fn wanted(&self, number: usize) -> Hash {
        self.content(&workload(NAMES[number]))
    }

    fn content(&self, id: &ObjectId) -> Hash {
        self.rig.world.things[id].release.as_ref().unwrap().hash
    }

    /// The next pod to be made available, or else to be replaced.
    fn next_pod(&self, number: usize) -> Option<usize> {
        let (wanted, pods) = (self.wanted(number), &self.pods[number]);
        let away =
            pods.iter().position(|pod| !(pod.1 || pod.0 == wanted && self.rig.world.bad.contains(&pod.0)));
        let stuck = pods.iter().any(|pod| !pod.1);
        away.or_else(|| pods.iter().position(|pod| pod.0 != wanted).filter(|_| !stuck))
    }

    fn is_stuck(&self, number: usize) -> bool {
        let wanted = self.wanted(number);
        self.pods[number].iter().any(|pod| !pod.1 && pod.0 == wanted && self.rig.world.bad.contains(&pod.0))
    }

    fn numbers(&self, number: usize) -> Rolling {
        let (wanted, pods) = (self.wanted(number), &self.pods[number]);
        let count = |counts: &dyn Fn(&Pod) -> bool| pods.iter().filter(|pod| counts(pod)).count() as u32;
        let (updated, available) = (count(&|pod| pod.0 == wanted), count(&|pod| pod.1));
        let phase = match (updated, available) {
            (3, 3) => RollPhase::Settled,
            (3, _) => RollPhase::Recovering,
            _ => RollPhase::Replacing,
        };
        Rolling {
            replicas: 3,
            updated,
            ready: available,
            available,
            may_lose: 1,
            phase,
            ..Rolling::default()
        }
    }

    /// Whether the controller has something to do, or to tell.
    fn is_moving(&self, number: usize) -> bool {
        let thing = &self.rig.world.things[&workload(NAMES[number])];
        let told = thing.numbers.map(|numbers| Rolling { phase: thing.phase, ..numbers })
            == Some(self.numbers(number));
        let blamed = !self.is_stuck(number) || thing.failed == Some(self.wanted(number));
        self.next_pod(number).is_some() || !told || !blamed
    }

    fn control(&mut self, number: usize) {
        let wanted = self.wanted(number);
        let next = self.next_pod(number);
        if let Some(next) = next {
            let pod = &mut self.pods[number][next];
            *pod = if pod.0 == wanted { Pod(wanted, true) } else { Pod(wanted, false) };
            self.pods[number].sort();
        }
        let (numbers, stuck) = (self.numbers(number), self.is_stuck(number));
        let id = workload(NAMES[number]);
        let rv = self.rig.world.tick();
        let thing = self.rig.world.things.get_mut(&id).unwrap();
        (thing.numbers, thing.phase, thing.rv) = (Some(numbers), numbers.phase, rv);
        thing.failed = match next {
            // It gets somewhere.
            Some(_) => None,
            None if stuck => Some(wanted),
            None => thing.failed,
        };
        self.rig.world.announce(&id);
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.rig.world.events.is_empty() {
            steps.push(Step::Deliver);
        }
        if !self.idle {
            steps.push(Step::Turn);
        }
        if self.rig.engine.next_book().is_some() {
            steps.push(Step::Claims);
        }
        if self.rig.engine.next_rejections(0).is_some() {
            steps.push(Step::Parents);
        }
        if !self.rig.engine.unresolved().is_empty() {
            steps.push(Step::Resolve);
        }
        if !self.rig.engine.rollouts.to_tell.is_empty() {
            steps.push(Step::Told);
        }
        steps.extend((0..3).filter(|number| self.is_moving(*number)).map(Step::Controller));
        if self.commit + 1 < self.case.commits.len() {
            steps.push(Step::Commit);
        }
        if self.crashes < self.case.crashes && !(self.commit == 0 || steps.is_empty()) {
            steps.push(Step::Crash);
        }
        steps
    }

    fn take(&mut self, step: Step) {
        self.idle = false;
        match step {
            Step::Deliver => self.rig.deliver(1),
            Step::Turn => self.turn(),
            Step::Claims => self.rig.keep_claims(),
            Step::Parents => self.rig.keep_parents(),
            Step::Resolve => self.rig.resolve(),
            Step::Told => self.rig.tell_failures(),
            Step::Controller(number) => self.control(number),
            Step::Commit => {
                self.commit += 1;
                self.read();
            }
            Step::Crash => {
                self.crashes += 1;
                self.restart();
            }
        }
        // The loop begins each turn with this.
        self.rig.engine.advance(self.rig.now);
        self.rig.engine.settle();
    }

    /// One decision of the loop.
    fn turn(&mut self) {
        let mut dirty = self.rig.engine.take_dirty();
        dirty.sort();
        dirty.dedup();
        let Some((first, rest)) = dirty.split_first() else {
            self.idle = true;
            return;
        };
        for id in rest {
            self.rig.engine.mark(id);
        }
        let decision = self.rig.engine.decide(first, self.rig.now);
        if let Action::Apply(apply) = &decision.action {
            self.judge(apply);
        }
        self.rig.act(first, decision);
    }

    /// What was rejected is not applied again while the newest commit asks for exactly that.
    fn judge(&self, apply: &Apply) {
        let wanted: BTreeMap<ObjectId, Hash> =
            self.case.wanted(self.commit).iter().map(|want| (want.id.clone(), want.hash)).collect();
        for rejection in &self.rig.world.rejections {
            let members = &rejection.unit.members;
            let asked = members.iter().all(|(id, member)| wanted.get(id) == member.content.as_ref());
            let content = members.get(&apply.want.id).and_then(|member| member.content);
            assert!(
                !asked || content != Some(apply.want.hash),
                "{} was rejected: {:?}",
                apply.want.id,
                self.case
            );
        }
    }

    /// What must hold in every state.
    fn check(&self) {
        let away: usize = self.pods.iter().flatten().filter(|pod| !pod.1).count();
        assert!(away <= self.case.pods as usize, "{away} pods are away: {:?}", self.case);
        let replacing =
            (0..3).filter(|number| self.pods[*number].iter().any(|pod| pod.0 != self.wanted(*number)));
        let held = |number: &usize| {
            let id = workload(NAMES[*number]);
            let mut rejections = self.rig.world.rejections.iter();
            rejections.any(|one| one.way == Way::Held && one.unit.members.contains_key(&id))
        };
        let replacing: Vec<&str> =
            replacing.filter(|number| !held(number)).map(|number| NAMES[number]).collect();
        assert!(replacing.len() <= self.case.most as usize, "{replacing:?} roll: {:?}", self.case);
        let at = |commit: usize, id: &ObjectId| {
            self.case.wanted(commit).iter().any(|want| want.id == *id && want.hash == self.content(id))
        };
        let whole = (0..self.case.commits.len())
            .any(|commit| at(commit, &config("env")) && at(commit, &workload("a")));
        let book = &self.rig.world.book;
        let recorded = book.units.iter().any(|unit| unit.members.contains_key(&config("env")));
        let claimed = book.claims.contains_key(&workload("a"));
        let going_back =
            self.rig.world.rejections.iter().any(|one| one.unit.members.contains_key(&config("env")));
        assert!(whole || recorded || claimed || going_back, "the unit is torn: {:?}", self.case);
    }

    /// At rest, each unit is at the newest commit, or back at one that is good, or held where none is.
    fn check_end(&self) {
        let last = self.case.commits.len() - 1;
        for (number, name) in NAMES.into_iter().enumerate() {
            let content = |commit: usize| self.case.wanted(commit)[number + 1].hash;
            let good = |commit: usize| !self.rig.world.bad.contains(&content(commit));
            let shown = self.wanted(number);
            if name == "a" && !self.case.lost.is_empty() {
                let held = self.rig.world.rejections.iter().any(|one| one.way == Way::Held);
                assert!(held && shown == content(last), "it went back in part: {:?}", self.case);
                continue;
            }
            if good(last) && (name != "a" || (0..=last).any(|commit| commit != last && good(commit))) {
                assert_eq!(shown, content(last), "{name} ends elsewhere: {:?}", self.case);
            }
            if (0..=last).any(good) {
                assert!((0..=last).any(|commit| good(commit) && content(commit) == shown), "{:?}", self.case);
                let whole = self.pods[number].iter().all(|pod| *pod == Pod(shown, true));
                assert!(whole, "{name} is not whole at the end: {:?}", self.case);
            } else {
                let held = self.rig.world.rejections.iter().any(|one| one.way == Way::Held);
                assert!(held, "{name} is not held: {:?}", self.case);
            }
        }
        let env = self.content(&config("env"));
        let together = (0..=last).any(|commit| {
            let wanted = self.case.wanted(commit);
            wanted[0].hash == env && wanted[1].hash == self.wanted(0)
        });
        assert!(together, "the unit is torn at the end: {:?}", self.case);
        assert!(self.rig.world.is_free(), "{:?}", self.case);
    }

    /// What tells one state from another, whatever the versions are.
    fn print(&self) -> u64 {
        let mut text = String::new();
        let world = &self.rig.world;
        for (id, thing) in &world.things {
            let live = self.rig.engine.live(id);
            let entry = self.rig.engine.entry(id);
            let _ = write!(
                text,
                "{id} {:?} {:?} {:?} {:?}|{:?} {}|",
                thing.release,
                thing.phase,
                thing.numbers,
                thing.failed,
                live.map(|live| (&live.release, live.rolling, &live.health.message)),
                live.is_some_and(|live| live.rv.0 == thing.rv),
            );
            let _ = write!(
                text,
                "{:?}",
                entry.map(|entry| (
                    entry.accepted.known().map(|accepted| accepted.hash),
                    std::mem::discriminant(&entry.accepted),
                    entry.candidate().map(|want| want.hash),
                    entry.instead.as_ref().map(|instead| std::mem::discriminant(&instead.content)),
                    entry.written.map(|(rv, _)| live.map(|live| live.rv >= rv)),
                    entry.looked.is_some(),
                    entry.verified.as_ref().map(|verified| verified.content),
                    entry.foreseen.as_ref().map(|foreseen| {
                        let holds = live.is_some_and(|live| live.generation == foreseen.generation);
                        (foreseen.content, foreseen.impact, holds)
                    }),
                ))
            );
            text.push_str(&self.rig.engine.roll_words(id));
        }
        for (id, thing) in &world.events {
            let _ = write!(
                text,
                "{id} {:?};",
                thing.as_ref().map(|thing| (&thing.release, thing.phase, thing.numbers, thing.failed))
            );
        }
        let dirty: BTreeSet<&ObjectId> = self.rig.engine.dirty.iter().collect();
        let waits: BTreeMap<&ObjectId, String> =
            self.rig.engine.waits.iter().map(|(id, topic)| (id, format!("{topic:?}"))).collect();
        // What is past decides nothing.
        let book = (&world.book.claims, &world.book.units);
        let _ = write!(text, "{dirty:?} {waits:?} {book:?} {:?}", world.rejections);
        let _ = write!(
            text,
            "{:?}{} {} {}",
            self.pods.map(|pods| pods.map(|pod| (pod.0, pod.1))),
            self.commit,
            self.crashes,
            self.idle
        );
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    }
}

/// Goes through all states that can be reached, and tells how many there are, and how many of them are ends.
fn explore(case: &Case) -> (usize, usize) {
    let mut seen = HashSet::new();
    let mut open = vec![(Model::new(case), Vec::new())];
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
            let path: Vec<Step> = path.iter().copied().chain([step]).collect();
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

/// Does the last step of a path; a failure tells the whole path.
fn follow<T>(path: &[Step], last: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(last))
        .unwrap_or_else(|_| panic!("that was after {path:?}"))
}

/// As [`explore`], of a case in which enough can happen.
fn explore_all(case: &Case) {
    let (states, ends) = explore(case);
    assert!(states > 500 && ends > 0, "{states} states, {ends} ends: {case:?}");
}

/// One workload at a time, and one pod; commits that change two or three of the workloads.
fn serial(commits: &[[u32; 4]]) -> Case {
    Case { most: 1, pods: 1, commits: commits.to_vec(), bad: Vec::new(), lost: Vec::new(), crashes: 0 }
}

const ONE: [u32; 4] = [1, 1, 1, 1];
const TWO: [u32; 4] = [2, 2, 2, 1];
const ALL: [u32; 4] = [2, 2, 2, 2];

#[test]
fn a_rollout_keeps_the_budget_in_every_order() {
    explore_all(&serial(&[ONE, ALL]));
    explore_all(&Case { most: 2, pods: 1, ..serial(&[ONE, TWO]) });
    explore_all(&Case { most: 2, pods: 2, ..serial(&[ONE, TWO]) });
}

#[test]
fn a_rollout_survives_the_end_of_the_process_at_every_point() {
    explore_all(&Case { crashes: 1, ..serial(&[ONE, TWO]) });
}

#[test]
fn what_failed_goes_back_in_every_order() {
    for bad in ["a", "b", "c"] {
        explore_all(&Case { pods: 2, bad: vec![(bad, 2)], ..serial(&[ONE, ALL]) });
    }
    explore_all(&Case { bad: vec![("a", 2)], crashes: 1, ..serial(&[ONE, TWO]) });
}

#[test]
fn a_newer_commit_replaces_a_rollout_and_a_way_back_at_every_point() {
    let one_unit = [ONE, [2, 2, 1, 1], [3, 3, 1, 1]];
    explore_all(&Case { bad: vec![("a", 2)], ..serial(&one_unit) });
    explore_all(&Case { bad: vec![("a", 2)], ..serial(&[ONE, [2, 2, 1, 1], ONE]) });
}

#[test]
fn a_way_back_that_fails_too_is_held_in_every_order() {
    explore_all(&Case { bad: vec![("a", 1), ("a", 2)], pods: 2, ..serial(&[ONE, TWO]) });
}

#[test]
fn a_unit_of_which_something_is_lost_stays_as_it_is_in_every_order() {
    explore_all(&Case { bad: vec![("a", 2)], lost: vec![1], crashes: 1, ..serial(&[ONE, [2, 2, 1, 1]]) });
}
