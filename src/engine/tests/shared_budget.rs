//! One budget over several processes, and over those that have ended.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::harness::Harness;
use super::world::{SET, desired, id, reading, workload};
use crate::engine::rollout::ledger::UnreadableClaim;
use crate::engine::*;
use crate::object::{GroupKind, ObjectId};

pub(super) const THEIRS: &str = "applyset-theirs-v1";

/// Returns a workload that takes one pod down at a time.
pub(super) fn one(name: &str, content: u32) -> SharedDesiredObject {
    let strategy = json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}});
    let mut one = (*desired(&workload(name), content, name)).clone();
    one.strategy = UpdateStrategy::of(&GroupKind::new("apps", "Deployment"), &strategy);
    Arc::new(one)
}

pub(super) fn files<'a>(names: &[&'a str], content: u32) -> Vec<(&'a str, Option<SharedDesiredObject>)> {
    names.iter().map(|name| (*name, Some(one(name, content)))).collect()
}

pub(super) fn budget(unavailable: &str, starts_per_minute: u32) -> Budget {
    Budget { max_unavailable: unavailable.parse().unwrap(), starts_per_minute, ..super::world::budget(9) }
}

/// Returns a process that has just started, with workloads of three pods each at rest in revision
/// r1.
pub(super) fn at_rest(names: &[&str], budget: &Budget) -> Harness {
    let mut harness = Harness::new(9);
    harness.read(reading("r1", &files(names, 1)));
    harness.settle();
    harness.pass_time(Duration::from_hours(1));
    harness.engine = harness.fresh_with(budget.clone());
    harness.read(reading("r1", &files(names, 1)));
    harness.settle();
    harness.world.log.clear();
    harness
}

pub(super) fn elsewhere(name: &str) -> ObjectId {
    id("apps", "Deployment", "elsewhere", name)
}

/// Returns another process' claim for `api`.
pub(super) fn theirs(pods: u32) -> RolloutClaim {
    RolloutClaim {
        inventory_id: THEIRS.into(),
        holder: "12-a-b@host".into(),
        rollout_key: one("api", 1).hash,
        reserved: pods,
        holder_exited: false,
        recreates: false,
        recreation_deadline: None,
    }
}

pub(super) fn tally(pods: u32, away: &[(&str, u32)], rest: u32) -> BudgetTally {
    BudgetTally {
        inventory_id: THEIRS.into(),
        name: "theirs".into(),
        pods,
        unavailable: away.iter().map(|(name, pods)| (elsewhere(name), *pods)).collect(),
        rest,
        ..BudgetTally::default()
    }
}

/// Publishes what the source of another process takes.
pub(super) fn publish_tally(harness: &mut Harness, tally: BudgetTally) {
    harness.world.ledger.tallies.retain(|known| known.inventory_id != tally.inventory_id);
    harness.world.ledger.tallies.push(tally);
    harness.engine.set_ledger(harness.world.ledger.clone());
}

pub(super) fn reason(harness: &mut Harness, name: &str) -> String {
    harness.decide(&workload(name)).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

#[test]
fn pods_that_are_unavailable_count_whoever_serves_them() {
    // The others' tallies, the budget, and the reason for which a workload that takes one pod down
    // waits.
    let check = |foreign_tally: BudgetTally, most: &str, expected: &str| {
        let mut harness = at_rest(&["web"], &budget(most, 100));
        publish_tally(&mut harness, foreign_tally);
        harness.read(reading("r2", &files(&["web"], 2)));
        harness.settle();
        assert_eq!(harness.world.log.is_empty(), !expected.is_empty(), "{expected}");
        if !expected.is_empty() {
            assert_eq!(reason(&mut harness, "web"), expected);
        }
        // The others' tallies change, and with them the workloads that may start.
        publish_tally(&mut harness, tally(0, &[], 0));
        harness.settle();
        assert!(!harness.world.log.is_empty(), "it waits for nobody");
    };
    let short = |away: u32, most: u32| {
        format!("{away} of at most {most} pods are unavailable, and this one takes down 1 more")
    };
    let sick =
        |pods: u32| format!("{pods} pods of Deployment elsewhere/api of source theirs are unavailable");
    check(tally(3, &[("api", 2)], 0), "2", &format!("{}; {}", short(2, 2), sick(2)));
    check(tally(3, &[("api", 1)], 0), "2", "");
    check(tally(3, &[], 2), "2", &short(2, 2));
    // A tenth of all pods of the cluster: three here, and so many there.
    check(tally(97, &[("api", 9)], 0), "10%", "");
    check(tally(97, &[("api", 10)], 0), "10%", &format!("{}; {}", short(10, 10), sick(10)));
    check(tally(17, &[("api", 2)], 0), "10%", &format!("{}; {}", short(2, 2), sick(2)));
}

#[test]
fn what_a_claim_stands_for_is_not_counted_twice() {
    let mut harness = at_rest(&["web"], &budget("2", 100));
    harness.world.ledger.claims.insert(elsewhere("api"), theirs(1));
    publish_tally(&mut harness, tally(3, &[("api", 1)], 0));
    assert_eq!(harness.engine.usage().unavailable, (1, 2));
    assert_eq!(harness.world.ledger.total_unavailable_pods(), 1);
    let words = harness.world.ledger.holder_of(&harness.world.ledger.claims[&elsewhere("api")]).to_string();
    assert_eq!(words, "source theirs, process 12 on host");
}

#[test]
fn what_a_process_sees_is_reported_with_each_claim_and_when_it_changes() {
    let mut harness = at_rest(&["web", "api"], &budget("100%", 100));
    harness.world.ledger = RolloutLedger { begun: harness.world.ledger.begun, ..RolloutLedger::default() };
    harness.engine.set_ledger(harness.world.ledger.clone());
    let mut publication = QueuePublication::default();
    let published = |ledger: &RolloutLedger| {
        let ours =
            ledger.tallies.iter().find(|tally| &*tally.inventory_id == SET).cloned().unwrap_or_default();
        (
            ours.pods,
            ours.unavailable.into_iter().map(|(id, pods)| (id.name().to_owned(), pods)).collect::<Vec<_>>(),
        )
    };
    assert_eq!(publication.next_ledger(&mut harness.engine, harness.now), None);
    harness.pass_time(PUBLICATION_INTERVAL);
    assert_eq!(
        publication.next_ledger(&mut harness.engine, harness.now),
        None,
        "how many there are is no reason for a first write"
    );
    let sick = |harness: &mut Harness, available: u32| {
        let rv = harness.world.tick();
        let thing = harness.world.things.get_mut(&workload("api")).unwrap();
        (thing.rv, thing.phase) = (rv, WorkloadPhase::Recovering);
        thing.numbers = Some(ReplicaStatus {
            replicas: 3,
            pods: 3,
            updated: 3,
            ready: available,
            available,
            ..ReplicaStatus::default()
        });
        harness.world.announce(&workload("api"));
        harness.deliver(usize::MAX);
        harness.engine.process_changes();
    };
    sick(&mut harness, 1);
    harness.pass_time(PUBLICATION_INTERVAL);
    let ledger =
        publication.next_ledger(&mut harness.engine, harness.now).expect("what is unavailable is reported");
    assert_eq!(published(&ledger), (6, vec![("api".to_owned(), 2)]));
    harness.world.ledger = ledger.clone();
    harness.engine.set_ledger(ledger);
    harness.engine.process_changes();
    harness.pass_time(PUBLICATION_INTERVAL);
    assert_eq!(publication.next_ledger(&mut harness.engine, harness.now), None, "it is reported already");
    // The claim and these numbers are one write.
    sick(&mut harness, 2);
    harness.read(reading("r2", &files(&["web", "api"], 2)));
    harness.deliver(usize::MAX);
    harness.decide(&workload("web"));
    assert!(harness.world.ledger.claims.contains_key(&workload("web")));
    assert_eq!(published(&harness.world.ledger), (6, vec![("api".to_owned(), 1)]));
}

#[test]
fn what_was_reported_of_a_source_counts_until_its_workloads_are_seen() {
    let mut harness = at_rest(&["web"], &budget("2", 100));
    let foreign_tally = BudgetTally {
        inventory_id: SET.into(),
        name: "test".into(),
        pods: 9,
        unavailable: [(workload("gone"), 2)].into(),
        ..BudgetTally::default()
    };
    harness.world.ledger.tallies = vec![foreign_tally];
    for kind in ["DaemonSet.apps", "Deployment.apps"].map(GroupKind::parse) {
        harness.engine.set_informer_state(&kind, KindState::Syncing);
    }
    harness.engine.set_ledger(harness.world.ledger.clone());
    assert_eq!(harness.engine.usage().unavailable, (2, 2));
    for kind in ["DaemonSet.apps", "Deployment.apps"].map(GroupKind::parse) {
        harness.engine.set_informer_state(&kind, KindState::Synced);
    }
    assert_eq!(harness.engine.usage().unavailable, (0, 2), "they are seen now, and this one is gone");
}

// The publisher may have ended, and its pods be healthy by now.
#[test]
fn a_lookup_can_only_lower_what_others_have_published_and_soon_counts_no_more() {
    let mut harness = at_rest(&["web"], &budget("2", 100));
    publish_tally(&mut harness, tally(3, &[("api", 2)], 0));
    assert!(harness.engine.foreign_workloads().is_empty(), "nothing waits for it");
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    assert_eq!(harness.engine.foreign_workloads(), [elsewhere("api")]);
    assert!(harness.engine.is_waiting_for_others());
    let mut live = harness.engine.live_object(&workload("web")).cloned().unwrap();
    let mut seen = |harness: &mut Harness, available: u32, expected: u32| {
        live.replica_status = Some(ReplicaStatus {
            replicas: 9,
            available,
            phase: WorkloadPhase::Recovering,
            ..ReplicaStatus::default()
        });
        harness.engine.observe_foreign_workload(&elsewhere("api"), Some(&live), harness.now);
        assert_eq!(harness.engine.usage().unavailable.0, expected, "{available}");
    };
    seen(&mut harness, 0, 2);
    seen(&mut harness, 8, 1);
    harness.pass_time(Duration::from_secs(10));
    harness.engine.advance(harness.now);
    assert_eq!(harness.engine.usage().unavailable.0, 2, "it was seen too long ago");
    harness.engine.observe_foreign_workload(&elsewhere("api"), None, harness.now);
    harness.settle();
    assert_eq!(harness.world.log.len(), 1);
}

/// Shows by a lookup that so many of the nine pods of another daemon's workload are unavailable.
pub(super) fn look_up_elsewhere(harness: &mut Harness, unavailable: u32) {
    let phase = WorkloadPhase::Recovering;
    let available = 9 - unavailable;
    let replica_status = ReplicaStatus { replicas: 9, available, phase, ..ReplicaStatus::default() };
    let live = harness.engine.live_object(&workload("web")).cloned().unwrap();
    let live = LiveObject { replica_status: Some(replica_status), ..live };
    harness.engine.observe_foreign_workload(&elsewhere("api"), Some(&live), harness.now);
}

// Others publish before they see what a lookup has shown, or lose more pods after that.
#[test]
fn a_lookup_lowers_nothing_that_others_have_published_since() {
    // The number that is published, the one that a lookup shows, the one that is published then, and
    // the one that counts.
    for (published, seen, then, expected) in [(1, 1, 3, 3), (2, 1, 3, 3), (3, 1, 3, 1), (3, 1, 2, 1)] {
        let mut harness = at_rest(&["web"], &budget("9", 100));
        publish_tally(&mut harness, tally(9, &[("api", published)], 0));
        look_up_elsewhere(&mut harness, seen);
        assert_eq!(harness.engine.usage().unavailable.0, seen);
        publish_tally(&mut harness, tally(9, &[("api", then)], 0));
        assert_eq!(harness.engine.usage().unavailable.0, expected, "{published} {seen} {then}");
    }
}

// The next step of a canary is claimed as the one before was.
#[test]
fn a_claim_that_was_written_anew_counts_whatever_was_seen_of_the_one_before() {
    for is_gap_read in [true, false] {
        let mut harness = at_rest(&["web"], &Budget { max_workloads: 1, ..budget("100%", 100) });
        let claim = |harness: &mut Harness| {
            let start = RolloutStart {
                id: elsewhere("api"),
                inventory_id: THEIRS.into(),
                at: jiff::Timestamp::UNIX_EPOCH + harness.now.duration_since(harness.epoch),
                clock: "".into(),
            };
            harness.world.ledger.starts.push(start);
            harness.world.ledger.claims.insert(elsewhere("api"), theirs(1));
            harness.engine.set_ledger(harness.world.ledger.clone());
        };
        let look_up = |harness: &mut Harness| {
            harness.engine.observe_foreign_workload(&elsewhere("api"), None, harness.now);
        };
        claim(&mut harness);
        look_up(&mut harness);
        if is_gap_read {
            harness.world.ledger.claims.clear();
            harness.engine.set_ledger(harness.world.ledger.clone());
        }
        harness.pass_time(ABANDONED_CLAIM_AGE);
        harness.engine.advance(harness.now);
        claim(&mut harness);
        harness.read(reading("r2", &files(&["web"], 2)));
        // Its write is not shown yet.
        look_up(&mut harness);
        harness.settle();
        assert_eq!(harness.world.log, [], "{is_gap_read}");
        harness.pass_time(ABANDONED_CLAIM_AGE);
        harness.engine.advance(harness.now);
        look_up(&mut harness);
        harness.settle();
        assert_eq!(harness.world.log.len(), 1, "{is_gap_read}");
    }
}

#[test]
fn pods_that_nobody_names_count_no_longer_once_all_that_are_named_are_seen_complete() {
    let mut harness = at_rest(&["web"], &budget("2", 100));
    let names: Vec<String> = (0..20).map(|number| format!("api-{number}")).collect();
    let away: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    publish_tally(&mut harness, tally(100, &away, 30));
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < names.len() {
        assert!(harness.world.log.is_empty(), "after {} looks", seen.len());
        let workloads = harness.engine.foreign_workloads();
        assert!(workloads.iter().any(|id| !seen.contains(id)), "each comes in its turn");
        for id in workloads {
            harness.engine.observe_foreign_workload(&id, None, harness.now);
            seen.insert(id);
        }
        harness.pass_time(Duration::from_secs(3));
    }
    harness.settle();
    assert!(!harness.world.log.is_empty(), "{}", reason(&mut harness, "web"));
}

// Of others' workloads nothing but their status is known.
#[test]
fn a_scale_of_what_nobody_serves_counts_no_pod_that_does_not_exist() {
    // Pods that it is to have, that there are and that serve, and those that count as unavailable.
    // The claim may have taken one down.
    for (numbers, expected) in
        [((4000, 3, 3), 1), ((4000, 3, 1), 2), ((4000, 0, 0), 1), ((3, 0, 0), 1), ((3, 3, 0), 3)]
    {
        let mut harness = at_rest(&["web"], &budget("2", 100));
        harness.world.ledger.claims.insert(elsewhere("api"), theirs(1));
        harness.engine.set_ledger(harness.world.ledger.clone());
        harness.read(reading("r2", &files(&["web"], 2)));
        let (replicas, pods, serving) = numbers;
        let phase = WorkloadPhase::Recovering;
        let stuck = ReplicaStatus {
            replicas,
            pods,
            ready: serving,
            available: serving,
            phase,
            ..ReplicaStatus::default()
        };
        let mut live = harness.engine.informer_object(&workload("web")).unwrap().clone();
        live.replica_status = Some(stuck);
        for time in [Duration::ZERO, Duration::from_hours(1)] {
            harness.pass_time(time);
            harness.engine.advance(harness.now);
            harness.engine.observe_foreign_workload(&elsewhere("api"), Some(&live), harness.now);
        }
        assert_eq!(harness.engine.usage().unavailable.0, expected, "{numbers:?}");
    }
}

#[test]
fn starts_of_a_minute_outlive_processes() {
    let names = ["a", "b", "c", "d", "e"];
    let budget = budget("100%", 2);
    let mut harness = at_rest(&names, &budget);
    harness.read(reading("r2", &files(&names, 2)));
    // The number of writes when a new process has gone on at each of these seconds.
    for (second, expected) in [(0, 2), (1, 2), (30, 2), (59, 2), (60, 4), (61, 4), (119, 4), (120, 5)] {
        harness.now = harness.epoch + Duration::from_hours(1) + Duration::from_secs(second);
        harness.engine = harness.fresh_with(budget.clone());
        harness.read(reading("r2", &files(&names, 2)));
        harness.engine.mark_all();
        harness.settle();
        assert_eq!(harness.world.log.len(), expected, "after {second} s");
    }
    // Nothing but time has to pass in one that lives, either.
    assert_eq!(harness.engine.usage().starts, (1, 2));
    harness.pass_time(Duration::from_mins(1));
    harness.engine.advance(harness.now);
    assert_eq!(harness.engine.usage().starts, (0, 2));
}

#[test]
fn starts_of_other_processes_count_and_are_kept() {
    let mut harness = at_rest(&["web"], &budget("100%", 2));
    let start = |name: &str| RolloutStart {
        id: elsewhere(name),
        inventory_id: THEIRS.into(),
        at: jiff::Timestamp::UNIX_EPOCH + harness.now.duration_since(harness.epoch),
        clock: "".into(),
    };
    harness.world.ledger.starts = vec![start("a"), start("b")];
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    assert_eq!(reason(&mut harness, "web"), "2 rollouts have started in the last minute");
    harness.pass_time(Duration::from_mins(1));
    harness.settle();
    assert_eq!(harness.world.log.len(), 1);
    assert_eq!(harness.world.ledger.starts.len(), 3);
}

#[test]
fn a_process_that_ends_takes_back_what_is_at_rest_and_leaves_the_rest() {
    let mut harness = at_rest(&["a", "b"], &Budget { soak: Duration::from_mins(1), ..budget("100%", 100) });
    harness.engine.set_holder("one");
    harness.read(reading("r2", &files(&["a", "b"], 2)));
    for name in ["a", "b"] {
        harness.step(&workload(name));
        harness.step(&workload(name));
        harness.deliver(usize::MAX);
        harness.engine.advance(harness.now);
    }
    let of = |ledger: &RolloutLedger| {
        let claims = ledger.claims.iter();
        claims.map(|(id, claim)| (id.name().to_owned(), claim.holder_exited)).collect::<Vec<_>>()
    };
    let begun = of(&harness.world.ledger);
    assert!(!begun.is_empty());
    let left = harness.engine.last_ledger().unwrap();
    assert_eq!(of(&left), begun.iter().map(|(name, _)| (name.clone(), true)).collect::<Vec<_>>());
    // It soaks, and nobody will be there to see it.
    harness.finish_rollouts();
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
    assert_eq!(of(&harness.world.ledger), begun, "it is not over yet");
    assert_eq!(of(&harness.engine.last_ledger().unwrap()), []);
}

#[test]
fn what_a_process_has_left_counts_for_the_soak_and_no_longer() {
    // The time for which its workload must rest: left in good order, or not.
    for (holder_exited, rest) in [(true, Duration::from_secs(10)), (false, ABANDONED_CLAIM_AGE)] {
        let mut harness = at_rest(
            &["web"],
            &Budget { soak: Duration::from_secs(10), max_workloads: 1, ..budget("100%", 100) },
        );
        let claim = RolloutClaim { holder_exited, ..theirs(1) };
        harness.world.ledger.claims.insert(elsewhere("api"), claim);
        harness.engine.set_ledger(harness.world.ledger.clone());
        harness.read(reading("r2", &files(&["web"], 2)));
        harness.settle();
        for (passed, expected) in
            [(Duration::ZERO, 0), (rest.saturating_sub(Duration::from_secs(1)), 0), (rest, 1)]
        {
            harness.engine.observe_foreign_workload(&elsewhere("api"), None, harness.now + passed);
            harness.settle();
            assert_eq!(harness.world.log.len(), expected, "{holder_exited} after {passed:?}");
        }
    }
}

// Its process is gone, and the claim counts no more: what it has left broken is unavailable all
// the same.
#[test]
fn pods_of_a_rollout_that_nobody_ends_count_after_its_claim() {
    let mut harness = at_rest(&["web"], &budget("2", 100));
    harness.world.ledger.claims.insert(elsewhere("api"), theirs(1));
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.read(reading("r2", &files(&["web"], 2)));
    let stuck = ReplicaStatus {
        phase: WorkloadPhase::Replacing,
        replicas: 3,
        pods: 3,
        updated: 1,
        ready: 1,
        available: 1,
        ..ReplicaStatus::default()
    };
    let mut live = harness.engine.informer_object(&workload("web")).unwrap().clone();
    live.replica_status = Some(stuck);
    harness.engine.observe_foreign_workload(&elsewhere("api"), Some(&live), harness.now);
    harness.pass_time(Duration::from_hours(1));
    harness.engine.advance(harness.now);
    harness.engine.observe_foreign_workload(&elsewhere("api"), Some(&live), harness.now);
    assert_eq!((harness.engine.usage().workloads.0, harness.engine.usage().unavailable), (0, (2, 2)));
    harness.settle();
    assert_eq!(harness.world.log, []);
    // Somebody mends it: it goes on, and comes to rest.
    let phase = WorkloadPhase::Settled;
    live.replica_status = Some(ReplicaStatus { phase, updated: 3, ready: 3, available: 3, ..stuck });
    for rest in [Duration::ZERO, ABANDONED_CLAIM_AGE] {
        harness.pass_time(rest);
        harness.engine.advance(harness.now);
        harness.engine.observe_foreign_workload(&elsewhere("api"), Some(&live), harness.now);
    }
    harness.settle();
    assert_ne!(harness.world.log, []);
}

#[test]
fn of_many_unavailable_workloads_those_are_counted_that_are_not_named() {
    let names: Vec<String> = (0..23).map(|number| format!("w{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut harness = at_rest(&names, &budget("100%", 100));
    for (number, name) in names.iter().enumerate() {
        let rv = harness.world.tick();
        let thing = harness.world.things.get_mut(&workload(name)).unwrap();
        // The first ones have lost the most.
        let available = if number < 20 { 0 } else { 2 };
        let all = ReplicaStatus { replicas: 3, pods: 3, updated: 3, ready: 3, ..ReplicaStatus::default() };
        thing.numbers = Some(ReplicaStatus { available, ..all });
        (thing.phase, thing.rv) = (WorkloadPhase::Recovering, rv);
        harness.world.announce(&workload(name));
    }
    harness.deliver(usize::MAX);
    let tallies = harness.engine.tallies(&harness.world.ledger);
    let [own] = &tallies[..] else { panic!("{tallies:?}") };
    assert_eq!((own.unavailable.len(), own.rest, own.pods), (20, 3, 69));
    assert!(own.unavailable.values().all(|pods| *pods == 3));
    let ledger = RolloutLedger { tallies, ..RolloutLedger::default() };
    assert_eq!(ledger.total_unavailable_pods(), 63);
}

// Their pods leave the total, and are unavailable until a lookup shows otherwise.
#[test]
fn what_is_unavailable_of_a_source_that_nobody_serves_any_more_stays_counted() {
    let mut harness = at_rest(&["web"], &budget("100%", 100));
    let old =
        |away: &[(&str, u32)]| BudgetTally { at: Some(jiff::Timestamp::UNIX_EPOCH), ..tally(3, away, 0) };
    harness.pass_time(Duration::from_hours(48));
    harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(49));
    for (away, kept) in [(&[("api", 2)][..], true), (&[], false)] {
        publish_tally(&mut harness, old(away));
        let own = harness.engine.tallies(&harness.world.ledger);
        let next = harness.engine.with_tallies(harness.world.ledger.clone(), own);
        let theirs = next.tallies.iter().any(|tally| &*tally.inventory_id == THEIRS);
        assert_eq!(theirs, kept, "{away:?}");
    }
}

#[test]
fn pods_behind_a_claim_that_are_published_too_count_once() {
    let check = |claimed: u32, published: u32, expected: u32| {
        let ledger = RolloutLedger {
            claims: [(elsewhere("api"), theirs(claimed))].into(),
            tallies: vec![tally(9, &[("api", published), ("web", 1)], 2), tally(9, &[("api", 1)], 4)],
            unreadable_claims: vec![UnreadableClaim { raw: json!({}), pods: 8 }],
            ..RolloutLedger::default()
        };
        assert_eq!(ledger.total_unavailable_pods(), expected, "{claimed} {published}");
    };
    check(16, 3, 31);
    check(3, 16, 31);
    check(0, 0, 16);
}

#[test]
fn who_has_claimed_is_named_as_far_as_it_is_known() {
    let named = tally(3, &[], 0);
    let nameless = BudgetTally { inventory_id: "nameless-v1".into(), name: "".into(), ..named.clone() };
    let ledger = RolloutLedger { tallies: vec![nameless, named], ..RolloutLedger::default() };
    let check = |inventory_id: &str, holder: &str, holder_exited: bool, expected: &str| {
        let (inventory_id, holder) = (inventory_id.into(), holder.into());
        let claim = RolloutClaim { inventory_id, holder, holder_exited, ..theirs(1) };
        assert_eq!(ledger.holder_of(&claim).to_string(), expected);
    };
    check(THEIRS, "12-a-b-c@host", false, "source theirs, process 12 on host");
    check(THEIRS, "12-a-b-c@host", true, "source theirs, process 12 on host, which has ended");
    check(THEIRS, "12-a-b-c", false, "source theirs");
    check("nameless-v1", "12-a-b-c@host", false, "another source, process 12 on host");
    check("unknown-v1", "", true, "another source, which has ended");
}

#[test]
fn the_process_of_a_claim_is_known_by_its_number_and_the_mark_of_its_numbers() {
    let check = |holder: &str, expected: Option<(u32, &str)>| {
        let claim = RolloutClaim { holder: holder.into(), ..theirs(1) };
        assert_eq!(RolloutLedger::holder_process(&claim), expected, "{holder}");
    };
    check("12-a-b-mark@host", Some((12, "mark")));
    check("12-a-b-mark@host-1.example", Some((12, "mark")));
    check("12-a-b-mark", None);
    check("12-a-b@host", None);
    check("x-a-b-mark@host", None);
    check("", None);
}
