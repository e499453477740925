//! The pods that a scale gives to a held template, and how they are taken back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::harness::Harness;
use super::pods::ready;
use super::world::{desired, reading, workload};
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;
use crate::object::ObjectId;

fn set(name: &str, wanted: u32, available: u32) -> ReplicaSetFacts {
    let (name, revision) = (Arc::<str>::from(name), name.split('-').next().map(Arc::from));
    ReplicaSetFacts { uid: Uid(name.clone()), name, rv: ResourceVersion(1), revision, wanted, available }
}

/// Returns a step of one pod beside all old ones.
fn beside(replicas: u32, failing: u32) -> StepShare {
    StepShare { replicas, allowed: 1, new: 1, old: replicas, failing }
}

/// Returns a step of one pod in the place of an old one.
fn in_place(replicas: u32, failing: u32) -> StepShare {
    StepShare { old: replicas - 1, ..beside(replicas, failing) }
}

#[test]
fn each_share_has_its_balance() {
    fn check(share: StepShare, sets: &[(&str, u32, u32)], expected: &str) {
        let sets: Vec<ReplicaSetFacts> =
            sets.iter().map(|(name, wanted, ready)| set(name, *wanted, *ready)).collect();
        let found = match balance(share, &sets, "new") {
            ScaleBalance::Balanced => "balanced".to_owned(),
            ScaleBalance::Blocked(surplus) => format!("{surplus} blocked"),
            ScaleBalance::Scale(set, to, purpose) => {
                format!("{purpose:?} {} {} to {to}", set.name, set.wanted)
            }
        };
        assert_eq!(found, expected, "{share:?} {sets:?}");
    }
    check(beside(10, 0), &[("old", 10, 10), ("new", 1, 0)], "balanced");
    check(beside(10, 0), &[("old", 10, 10)], "balanced");
    // Scaled from 10 to 100.
    check(beside(100, 0), &[("old", 92, 92), ("new", 9, 0)], "Restore old 92 to 100");
    check(beside(100, 0), &[("old", 100, 91), ("new", 9, 0)], "8 blocked");
    check(beside(100, 0), &[("old", 100, 92), ("new", 9, 0)], "RemoveSurplus new 9 to 8");
    check(beside(100, 0), &[("old", 100, 97), ("new", 8, 0)], "RemoveSurplus new 8 to 3");
    check(beside(100, 0), &[("old", 100, 100), ("new", 9, 0)], "RemoveSurplus new 9 to 1");
    check(in_place(100, 0), &[("old", 90, 90), ("new", 10, 0)], "Restore old 90 to 99");
    check(in_place(100, 0), &[("old", 99, 90), ("new", 10, 0)], "9 blocked");
    check(in_place(100, 0), &[("old", 99, 99), ("new", 10, 0)], "RemoveSurplus new 10 to 1");
    // Failing pods are no loss, and may hold the room that old pods wait for.
    check(beside(100, 9), &[("old", 100, 50), ("new", 9, 0)], "RemoveSurplus new 9 to 1");
    check(beside(100, 5), &[("old", 100, 90), ("new", 9, 0)], "RemoveSurplus new 9 to 4");
    check(beside(100, 12), &[("old", 100, 90), ("new", 9, 0)], "RemoveSurplus new 9 to 1");
    // Old pods that are missing otherwise are their controller's.
    check(beside(10, 0), &[("old", 7, 7), ("new", 1, 0)], "balanced");
    check(beside(10, 0), &[("old", 5, 5), ("new", 3, 0)], "Restore old 5 to 7");
    // A share of the step, that its controller does not know yet.
    let quarter = || StepShare { new: 25, allowed: 3, ..beside(100, 0) };
    check(quarter(), &[("old", 79, 79), ("new", 24, 0)], "Restore old 79 to 100");
    check(quarter(), &[("old", 100, 100), ("new", 24, 0)], "balanced");
    check(quarter(), &[("old", 100, 100), ("new", 26, 0)], "RemoveSurplus new 26 to 25");
    // Of several older ones the one with the most pods that are available.
    check(beside(20, 0), &[("bad", 9, 0), ("new", 2, 0), ("old", 8, 8)], "Restore old 8 to 9");
    check(beside(20, 0), &[("bad", 2, 0), ("new", 5, 0), ("old", 14, 14)], "Restore old 14 to 18");
    // Nothing is known of the newest, or it has all.
    check(beside(10, 0), &[("old", 10, 10)], "balanced");
    check(beside(10, 0), &[("new", 9, 9)], "balanced");
}

/// A ReplicaSet, as the Deployment controller of Kubernetes 1.36 sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CountedSet {
    wanted: u32,
    ready: u32,
    /// The numbers that the controller noted at the last scale: the Deployment's count, and the
    /// most pods.
    noted: (u32, u32),
}

impl CountedSet {
    fn to(&mut self, wanted: u32, noted: (u32, u32)) {
        (self.wanted, self.ready, self.noted) = (wanted, self.ready.min(wanted), noted);
    }
}

/// A Deployment that is held, with its older ReplicaSet and its newest one.
#[derive(Clone, Copy, Debug)]
struct HeldDeployment {
    replicas: u32,
    surge: u32,
    unavailable: u32,
    sets: [CountedSet; 2],
}

impl HeldDeployment {
    fn noted(&self) -> (u32, u32) {
        (self.replicas, self.replicas + self.surge)
    }

    /// Runs one sync of the controller. Returns whether it changed anything.
    fn sync(&mut self) -> bool {
        let (noted, most) = (self.noted(), self.replicas + self.surge);
        let [old, new] = self.sets;
        let all = old.wanted + new.wanted;
        if self.sets.iter().any(|set| set.wanted > 0 && set.noted.0 != self.replicas) {
            self.share(i64::from(most) - i64::from(all));
            return true;
        }
        if new.wanted < self.replicas && all < most {
            self.sets[1].to(new.wanted + (most - all).min(self.replicas - new.wanted), noted);
            return true;
        }
        // None of the new ones is ever available.
        let fewest = self.replicas - self.unavailable.min(self.replicas);
        let may_go = all.saturating_sub(fewest + new.wanted);
        let unhealthy = (old.wanted - old.ready).min(may_go);
        let rest = old.wanted - unhealthy;
        let more = if may_go > 0 { old.ready.saturating_sub(fewest).min(rest) } else { 0 };
        if unhealthy + more > 0 {
            self.sets[0].to(rest - more, noted);
        }
        unhealthy + more > 0
    }

    /// Shares by the sizes that the `ReplicaSets` have; what is left goes to the largest.
    fn share(&mut self, add: i64) {
        let (noted, most) = (self.noted(), f64::from(self.replicas + self.surge));
        let first = usize::from(add > 0);
        let mut order: Vec<usize> = (0..2).filter(|at| self.sets[*at].wanted > 0).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(self.sets[*at].wanted), *at != first));
        let mut sizes = self.sets.map(|set| i64::from(set.wanted));
        let mut left = add;
        for at in &order {
            let set = self.sets[*at];
            let size = (f64::from(set.wanted) * most / f64::from(set.noted.1)).round() as i64;
            let part = size - i64::from(set.wanted);
            let part = if add > 0 { part.min(left) } else { part.max(left) };
            sizes[*at] += part;
            left -= part;
        }
        sizes[order[0]] = (sizes[order[0]] + left).max(0);
        for at in order {
            self.sets[at].to(u32::try_from(sizes[at]).unwrap(), noted);
        }
    }

    fn ready(&self) -> u32 {
        self.sets.iter().map(|set| set.ready).sum()
    }

    fn facts(&self) -> Vec<ReplicaSetFacts> {
        let [old, new] = self.sets;
        vec![set("old", old.wanted, old.ready), set("new", new.wanted, 0)]
    }

    /// Goes on until nobody changes anything, and never with fewer Ready pods than this many.
    #[track_caller]
    fn settle(&mut self, step: u32, least: u32, hasty: bool) {
        let begun = *self;
        for turn in 0..10_000 {
            let mut still = true;
            while self.sync() {
                still = false;
                assert!(self.ready() >= least, "{} of {least}: {begun:?} {self:?}", self.ready());
                if !hasty {
                    break;
                }
            }
            if turn % 3 == 0 {
                for set in &mut self.sets {
                    still &= set.ready == set.wanted;
                    set.ready = (set.ready + 1).min(set.wanted);
                }
            } else {
                still &= self.sets.iter().all(|set| set.ready == set.wanted);
            }
            let old = self.replicas - self.unavailable.min(self.replicas);
            let share = StepShare { replicas: self.replicas, allowed: step, new: step, old, failing: 0 };
            if let ScaleBalance::Scale(set, to, _) = balance(share, &self.facts(), "new") {
                let counted = &mut self.sets[usize::from(&*set.name == "new")];
                counted.to(to, counted.noted);
                still = false;
            }
            assert!(self.ready() >= least, "{} of {least}: {begun:?} {self:?}", self.ready());
            if still {
                return;
            }
        }
        panic!("it never comes to rest: {begun:?} {self:?}");
    }
}

/// Checks over the controller's own arithmetic that a scaled Deployment ends with the pods of its
/// step, whoever is faster.
#[test]
fn a_held_step_comes_to_rest_at_its_count_whatever_it_is_scaled_to() {
    let mut scaled = 0;
    for (step, in_place) in [(1, false), (2, false), (5, false), (1, true), (2, true), (5, true)] {
        let (surge, unavailable) = if in_place { (0, step) } else { (step, 0) };
        for (from, to) in (step + 1..24).flat_map(|from| (step + 1..60).map(move |to| (from, to))) {
            for hasty in [true, false] {
                let counted = |wanted| CountedSet { wanted, ready: wanted, noted: (from, from + surge) };
                let sets = [counted(from - unavailable), counted(step)];
                let mut deployment = HeldDeployment { replicas: from, surge, unavailable, sets };
                assert!(!deployment.sync(), "{deployment:?}");
                deployment.replicas = to;
                deployment.settle(step, to.min(from) - unavailable, hasty);
                let found = deployment.sets.map(|set| set.wanted);
                assert_eq!(found, [to - unavailable, step], "{from} to {to}");
                scaled += 1;
            }
        }
    }
    assert!(scaled > 10_000, "{scaled}");
}

fn web(content: u32, list: &str, count: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    let annotations = json!({"rhumb.dev/steps": list, "rhumb.dev/step-promote": "manual"});
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": annotations}});
    web.steps = Steps::of(&deployment).map(Box::new);
    (web.replicas, web.template) = (Some(count), Some(desired(&workload("web"), content / 100, "web").hash));
    Arc::new(web)
}

fn shown(harness: &Harness) -> RolloutOverlayState {
    harness.world.things[&workload("web")].shown
}

/// Returns a workload of ten pods, held in its first step. Contents of one hundred have one
/// template.
fn held(list: &str) -> Harness {
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &[("web", Some(web(100, list, 10)))]));
    harness.settle();
    counts(
        &mut harness,
        ReplicaStatus { replicas: 10, updated: 10, ready: 10, available: 10, ..ReplicaStatus::default() },
    );
    harness.read(reading("r2", &[("web", Some(web(200, list, 10)))]));
    steps(&mut harness, |harness| shown(harness) != RolloutOverlayState::Plain);
    harness
}

fn steps(harness: &mut Harness, is_done: impl Fn(&Harness) -> bool) {
    for _ in 0..20 {
        harness.engine.advance(harness.now);
        harness.engine.process_changes();
        harness.step(&workload("web"));
        harness.keep_ledger();
        if is_done(harness) {
            break;
        }
    }
    harness.deliver(usize::MAX);
}

/// Shows the numbers of its status, in a new version.
fn counts(harness: &mut Harness, replica_status: ReplicaStatus) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&workload("web")).unwrap();
    (thing.numbers, thing.rv) = (Some(replica_status), rv);
    harness.world.announce(&workload("web"));
    harness.deliver(usize::MAX);
}

/// Reports its pods, all of them Ready, as of the version that is shown.
fn observe_pods(harness: &mut Harness, old: u32, new: u32) {
    let id: ObjectId = workload("web");
    let numbered = |revision: &str, count| -> Vec<PodFacts> {
        (0..count).map(|number| ready(&format!("{revision}-{number}"), revision, harness.now)).collect()
    };
    let sets = [
        set("old-set", old, old),
        ReplicaSetFacts { rv: ResourceVersion(u64::from(new)), ..set("new-set", new, 0) },
    ];
    let pods = WorkloadPods {
        rv: harness.engine.informer_object(&id).unwrap().rv,
        newest: Some("new".into()),
        current: None,
        pods: [numbered("old", old), numbered("new", new)].concat().into(),
        sets: sets.into(),
        last_failed: None,
        creation_failure: None,
    };
    harness.engine.record_pods(&id, pods);
    harness.engine.advance(harness.now);
}

fn due(harness: &mut Harness) -> Vec<String> {
    let due = harness.engine.scale_requests(harness.now);
    due.iter().map(|one| format!("{} {} to {} at {}", one.name, one.from, one.to, one.rv)).collect()
}

fn answer(harness: &mut Harness, answer: &ScaleResult) {
    let id = workload("web");
    let (name, purpose) = ("old-set".into(), ScalePurpose::Restore);
    let (uid, rv) = (Uid("old-set".into()), ResourceVersion(1));
    let due = ScaleRequest { of: id, name, uid, rv, from: 0, to: 0, step: 1, purpose };
    harness.engine.record_scale(&due, answer, harness.now);
}

const HUNDRED: ReplicaStatus =
    ReplicaStatus { replicas: 100, updated: 9, ready: 101, available: 92, ..EMPTY };
const EMPTY: ReplicaStatus = ReplicaStatus {
    phase: WorkloadPhase::Replacing,
    replicas: 0,
    pods: 0,
    updated: 0,
    ready: 0,
    available: 0,
    max_unavailable: 0,
    partition: 0,
    ordinal_start: 0,
    misscheduled: 0,
    failed_before: false,
    is_outdated: false,
};

fn reason(harness: &mut Harness) -> String {
    harness.engine.scale_requests(harness.now);
    harness.decide(&workload("web")).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

#[test]
fn what_a_scale_gave_is_taken_back_by_one_write_at_a_time_and_reported() {
    let mut harness = held("1");
    observe_pods(&mut harness, 10, 1);
    assert_eq!(due(&mut harness), [""; 0]);
    assert_eq!(reason(&mut harness), "");
    counts(&mut harness, HUNDRED);
    assert_eq!(due(&mut harness), [""; 0], "what is known of its pods is older than the scale");
    observe_pods(&mut harness, 92, 9);
    assert_eq!(due(&mut harness), ["old-set 92 to 100 at 1"]);
    assert_eq!(due(&mut harness), [""; 0], "not answered yet");
    answer(&mut harness, &ScaleResult::Done);
    observe_pods(&mut harness, 100, 9);
    assert_eq!(due(&mut harness), [""; 0], "one after another");
    harness.now = harness.engine.next_due(harness.now).unwrap();
    assert_eq!(due(&mut harness), ["new-set 9 to 1 at 9"]);
    let words = "scaling gave the new template more pods than its step allows: they are removed as old pods \
                 become available";
    assert_eq!(reason(&mut harness), words);
    answer(&mut harness, &ScaleResult::Done);
    observe_pods(&mut harness, 100, 1);
    harness.pass_time(Duration::from_secs(10));
    assert_eq!(due(&mut harness), [""; 0]);
    assert_eq!(reason(&mut harness), "");
    assert!(
        harness.engine.next_due(harness.now).is_none_or(|due| due > harness.now),
        "it does not turn in circles"
    );
}

#[test]
fn a_right_that_is_missing_is_reported_and_tried_again_at_ever_longer_intervals() {
    let mut harness = held("1");
    counts(&mut harness, HUNDRED);
    observe_pods(&mut harness, 92, 9);
    let (mut tries, begun) = (0, harness.now);
    while harness.now.duration_since(begun) < Duration::from_mins(2) {
        if !due(&mut harness).is_empty() {
            tries += 1;
            answer(&mut harness, &ScaleResult::Refused("the user may not".into()));
        }
        harness.pass_time(Duration::from_millis(500));
    }
    assert!((8..16).contains(&tries), "{tries}");
    let words = "scaling gave the new template more pods than its step allows: they cannot be removed: the user may not";
    assert_eq!(reason(&mut harness), words);
}

#[test]
fn whoever_has_paused_it_or_only_looks_takes_nothing_back() {
    let mut harness = held("1");
    counts(&mut harness, HUNDRED);
    observe_pods(&mut harness, 92, 9);
    let paused = harness.world.things[&workload("web")].clone();
    let intents = ObjectIntents::parse(None, Some("now"), None);
    harness.engine.observe_object(
        &workload("web"),
        LiveObject { intents, ..super::world::World::live(&workload("web"), &paused) },
    );
    assert_eq!(due(&mut harness), [""; 0]);
    let mut observed = held("1");
    counts(&mut observed, HUNDRED);
    observe_pods(&mut observed, 92, 9);
    let mut allowed = observed.clone();
    assert_ne!(due(&mut allowed), [""; 0]);
    observed.engine.sources[super::world::FIRST].declared.writes = SourceWrites::Observed;
    assert_eq!(due(&mut observed), [""; 0]);
}

// The rollout of somebody else is not ours to scale, and a failed one goes back.
#[test]
fn only_of_a_claimed_rollout_that_has_not_failed_a_surplus_is_taken_back() {
    let check = |change: &dyn Fn(&mut Rollout), expected: bool| {
        let mut harness = held("1");
        counts(&mut harness, HUNDRED);
        observe_pods(&mut harness, 92, 9);
        change(harness.engine.rollouts.in_flight.get_mut(&workload("web")).unwrap());
        assert_eq!(due(&mut harness).is_empty(), !expected);
    };
    check(&|_| (), true);
    check(&|rollout| rollout.claim = None, false);
    check(&|rollout| rollout.failed = Some(RolloutFailureCause::Status("it crashes".into())), false);
}

#[test]
fn a_commit_that_scales_lets_no_more_pods_go_than_the_step_has_at_either_count() {
    fn check(list: &str, counts: [u32; 2], expected: &str) {
        let mut harness = held(list);
        super::scale_balance::counts(
            &mut harness,
            ReplicaStatus { replicas: counts[0], updated: 1, ready: 1, available: 0, ..EMPTY },
        );
        steps(&mut harness, |harness| harness.world.events.is_empty());
        harness.read(reading("r3", &[("web", Some(web(201, list, counts[1])))]));
        let writes = harness.world.log.len();
        steps(&mut harness, |harness| harness.world.log.len() > writes);
        let shown = shown(&harness);
        assert_eq!(shown, RolloutOverlayState::Overlaid(expected.parse().unwrap()), "{list} {counts:?}");
    }
    check("1", [10, 100], "surge=1 step=1");
    check("20%", [10, 100], "surge=2 step=1");
    check("20%", [10, 5], "surge=1 step=1");
}

#[test]
fn a_wider_hold_waits_until_the_old_template_has_its_pods() {
    let mut harness = held("20%");
    assert_eq!(shown(&harness), RolloutOverlayState::Overlaid("surge=2 step=1".parse().unwrap()));
    observe_pods(&mut harness, 10, 2);
    let wide = ReplicaStatus { replicas: 100, updated: 17, ready: 102, available: 85, ..EMPTY };
    let mut ceded = (*web(200, "20%", 100)).clone();
    ceded.replicas = None;
    harness.read(reading("r2", &[("web", Some(Arc::new(ceded)))]));
    counts(&mut harness, wide);
    let is_held = |harness: &mut Harness| {
        let writes = harness.world.log.len();
        steps(harness, |harness| harness.world.log.len() > writes);
        shown(harness) == RolloutOverlayState::Overlaid("surge=2 step=1".parse().unwrap())
    };
    assert!(is_held(&mut harness), "its controller may not have shared them yet");
    observe_pods(&mut harness, 85, 17);
    assert!(is_held(&mut harness));
    observe_pods(&mut harness, 100, 17);
    assert!(!is_held(&mut harness));
    assert_eq!(shown(&harness), RolloutOverlayState::Overlaid("surge=20 step=1".parse().unwrap()));
}
