//! The workloads that count for the rollout budget: those that a source wants, and those that are
//! provably ours.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::harness::{Harness, release_key};
use super::shared_budget::{at_rest, budget, elsewhere, files, one, theirs};
use super::world::{FIRST, SET, World, reading, workload};
use crate::engine::facts::release_annotation::SealedFacts;
use crate::engine::*;
use crate::object::{ContentHash, GroupKind, ObjectId, Revision};

/// Returns two workloads of three pods each at rest, of which a third part may be unavailable.
fn harness() -> Harness {
    at_rest(&["a", "b"], &budget("34%", 100))
}

/// Returns the watch's view of a workload with our label, with this many of ten pods available.
fn labelled(harness: &Harness, phase: WorkloadPhase, available: u32) -> LiveObject {
    let replica_status = ReplicaStatus {
        replicas: 10,
        pods: 10,
        updated: 10,
        ready: available,
        available,
        ..ReplicaStatus::default()
    };
    let live = World::live(&workload("a"), &harness.world.things[&workload("a")]);
    let replica_status = Some(ReplicaStatus { phase, max_unavailable: 3, ..replica_status });
    LiveObject { uid: Uid("copy".into()), rv: ResourceVersion(10_000), replica_status, ..live }
}

/// Returns the same under another name, with the annotation of what it was copied from.
fn copied(harness: &Harness, phase: WorkloadPhase, available: u32) -> LiveObject {
    let live = labelled(harness, phase, available);
    let release = live.release.clone().unwrap();
    let seal = Some(ReleaseKey::of(&release_key()).seal(
        SET,
        &workload("a"),
        &release,
        SealedFacts::of(PruneTiming::AfterUnit, 0),
    ));
    LiveObject {
        release: None,
        unproven_release: Some(Box::new(ReleaseAnnotation { release, seal })),
        ..live
    }
}

/// Returns a workload that the key of the tests proves, and that nothing has proven yet.
fn sealed(harness: &Harness, id: &ObjectId, phase: WorkloadPhase, available: u32) -> LiveObject {
    let live = labelled(harness, phase, available);
    let release = ContentRef { hash: one(id.name(), 1).hash, revision: Revision::new("r1") };
    let seal = Some(ReleaseKey::of(&release_key()).seal(
        SET,
        id,
        &release,
        SealedFacts::of(PruneTiming::AfterUnit, 0),
    ));
    LiveObject {
        release: None,
        unproven_release: Some(Box::new(ReleaseAnnotation { release, seal })),
        ..live
    }
}

/// Returns the workloads in flight, the pods that are unavailable, and how many may be.
fn taken(harness: &Harness) -> (u32, u32, u32) {
    let usage = harness.engine.usage();
    (usage.workloads.0, usage.unavailable.0, usage.unavailable.1)
}

const NOTHING: (u32, u32, u32) = (0, 0, 2);

#[test]
fn a_copy_of_a_workload_takes_nothing_and_adds_nothing() {
    let copy = workload("copy");
    let phases = [
        WorkloadPhase::Settled,
        WorkloadPhase::FirstStart,
        WorkloadPhase::Replacing,
        WorkloadPhase::Recovering,
    ];
    for phase in phases {
        for overlay in [
            RolloutOverlayState::Plain,
            RolloutOverlayState::from(Some(RolloutOverlay::Surge { step: 1, pods: 1 })),
        ] {
            let mut harness = harness();
            let live = LiveObject { overlay, ..copied(&harness, phase, 4) };
            harness.engine.observe_object(&copy, live);
            assert_eq!(taken(&harness), NOTHING, "{phase:?}");
            assert!(harness.engine.rolling_workloads().is_empty(), "{phase:?}");
            harness.read(reading("r2", &files(&["a", "b"], 2)));
            harness.settle();
            assert_eq!(harness.world.log.len(), 2, "{phase:?}");
            let tallies = harness.engine.tallies(&harness.world.ledger);
            assert_eq!(tallies.iter().map(|tally| tally.pods).sum::<u32>(), 6, "{phase:?}");
            assert!(tallies.iter().all(|tally| tally.unavailable.is_empty()), "{phase:?}");
        }
    }
}

#[test]
fn what_nobody_wants_any_more_counts_while_it_is_proven() {
    let mut harness = harness();
    let old = workload("old");
    harness.engine.observe_object(&old, labelled(&harness, WorkloadPhase::Replacing, 4));
    assert_eq!(taken(&harness), (1, 6, 5));
    harness.engine.observe_absence(&old);
    assert_eq!(taken(&harness), NOTHING);
}

#[test]
fn a_key_that_becomes_known_brings_into_the_count_what_it_proves() {
    let mut harness = harness();
    harness.engine = harness.fresh_without_key();
    harness.engine.set_release_key(ReadState::Unreadable("forbidden".into()));
    harness.read(reading("r1", &files(&["a", "b"], 1)));
    let old = workload("old");
    harness.engine.observe_object(&old, sealed(&harness, &old, WorkloadPhase::Replacing, 4));
    harness.engine.observe_object(&workload("copy"), copied(&harness, WorkloadPhase::Replacing, 4));
    assert_eq!((taken(&harness).0, taken(&harness).1), (0, 0));
    harness.engine.set_release_key(ReadState::Value(release_key()));
    assert_eq!((taken(&harness).0, taken(&harness).1), (1, 6));
}

#[test]
fn what_becomes_wanted_counts_from_then_on_and_no_longer_than_that_without_a_proof() {
    for phase in [WorkloadPhase::Replacing, WorkloadPhase::Recovering] {
        let mut harness = harness();
        let flights = u32::from(phase == WorkloadPhase::Replacing);
        harness.engine.observe_object(&workload("c"), copied(&harness, phase, 4));
        for _ in 0..2 {
            assert_eq!(taken(&harness), NOTHING, "{phase:?}");
            harness.read(reading("r2", &files(&["a", "b", "c"], 1)));
            assert_eq!(taken(&harness), (flights, 6, 5), "{phase:?}");
            harness.read(reading("r3", &[("c", None)]));
        }
        assert_eq!(taken(&harness), NOTHING, "{phase:?}");
    }
}

// The desired state is not known before the source is read, and proofs not before there is a key.
#[test]
fn what_was_reported_of_a_source_counts_until_it_is_known_what_is_of_it() {
    let mut harness = harness();
    let tally = BudgetTally {
        inventory_id: SET.into(),
        name: "test".into(),
        pods: 6,
        unavailable: [(workload("a"), 2)].into(),
        ..BudgetTally::default()
    };
    harness.world.ledger.tallies = vec![tally.clone()];
    harness.engine = harness.fresh_without_key();
    let check = |harness: &mut Harness, away: u32, expected: &[BudgetTally]| {
        assert_eq!(taken(harness).1, away);
        let tallies = harness.engine.tallies(&harness.world.ledger);
        let published = tallies.into_iter().map(|tally| BudgetTally { at: None, ..tally });
        assert_eq!(published.collect::<Vec<_>>(), expected);
    };
    check(&mut harness, 2, std::slice::from_ref(&tally));
    harness.read(reading("r1", &files(&["a", "b"], 1)));
    check(&mut harness, 2, std::slice::from_ref(&tally));
    harness.engine.set_release_key(ReadState::Value(release_key()));
    check(&mut harness, 0, &[BudgetTally { unavailable: [].into(), ..tally.clone() }]);
    let kinds = ["DaemonSet.apps", "Deployment.apps"].map(GroupKind::parse);
    harness.engine = harness.fresh_without_key();
    harness.engine.set_release_key(ReadState::Value(release_key()));
    assert!(kinds.iter().all(|kind| harness.engine.is_synced(FIRST, kind)));
    check(&mut harness, 2, &[tally]);
}

/// Returns a content that gives a count of pods, or leaves it to whoever scales it.
pub(super) fn counted(name: &str, content: u32, count: Option<u32>) -> SharedDesiredObject {
    let mut counted = (*one(name, content)).clone();
    counted.replicas = count;
    if let Some(count) = count {
        counted.hash_without_replicas = Some(counted.hash);
        counted.hash = ContentHash::hash_bytes(format!("{name} {content} {count}").as_bytes());
    }
    Arc::new(counted)
}

/// Returns two workloads of three pods each at rest, of which a third part may be unavailable. The
/// manifest gives `a` so many.
fn harness_of(count: Option<u32>) -> Harness {
    let mut harness = harness();
    harness.engine.set_autoscaled(HashSet::new());
    harness.read(reading("r1", &[("a", Some(counted("a", 1, count)))]));
    harness.settle();
    harness.world.log.clear();
    harness
}

/// Scales `a` to a number of pods, of which so many are there and so many serve.
fn scaled(harness: &mut Harness, replicas: u32, pods: u32, serving: u32) {
    let phase = if serving < replicas { WorkloadPhase::Recovering } else { WorkloadPhase::Settled };
    shown(
        harness,
        ReplicaStatus {
            replicas,
            pods,
            updated: pods,
            ready: serving,
            available: serving,
            phase,
            ..ReplicaStatus::default()
        },
    );
}

fn shown(harness: &mut Harness, numbers: ReplicaStatus) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&workload("a")).unwrap();
    (thing.rv, thing.phase, thing.numbers) = (rv, numbers.phase, Some(numbers));
    harness.world.announce(&workload("a"));
    harness.deliver(usize::MAX);
    harness.engine.process_changes();
}

/// Starts a new process, which reads what the cluster and the source show.
fn restart(harness: &mut Harness, count: Option<u32>) {
    harness.engine = harness.fresh_with(budget("34%", 100));
    harness.read(reading("r1", &[("a", Some(counted("a", 1, count))), ("b", Some(one("b", 1)))]));
    harness.engine.set_autoscaled(HashSet::new());
    harness.deliver(usize::MAX);
    harness.engine.process_changes();
}

/// Checks how many pods are unavailable and may be, with a life of one process and after its end.
fn check_scale(count: Option<u32>, numbers: (u32, u32, u32), expected: (u32, u32)) {
    let mut harness = harness_of(count);
    let (replicas, pods, serving) = numbers;
    scaled(&mut harness, replicas, pods, serving);
    assert_eq!(harness.engine.usage().unavailable, expected, "{count:?} {numbers:?}");
    restart(&mut harness, count);
    assert_eq!(harness.engine.usage().unavailable, expected, "{count:?} {numbers:?} after a restart");
}

/// Checks that a scale of one workload moves no number of others.
#[test]
fn a_scale_by_somebody_else_neither_widens_the_budget_nor_uses_it() {
    // A quota lets no pod come.
    check_scale(None, (4000, 3, 3), (0, 2));
    check_scale(Some(3), (4000, 3, 3), (0, 2));
    // They come, beyond what the manifest gives: some serve, and others do not.
    check_scale(Some(3), (4000, 4000, 3), (0, 2));
    check_scale(Some(3), (4000, 4000, 2000), (0, 2));
    check_scale(Some(3), (4000, 4000, 4000), (0, 2));
    // The manifest leaves the count to others: what serves is there.
    check_scale(None, (9, 9, 9), (0, 4));
    // Fewer pods are fewer.
    check_scale(Some(3), (0, 0, 0), (0, 1));
}

#[test]
fn sick_pods_of_a_workload_count_whoever_has_scaled_it() {
    for count in [None, Some(3)] {
        check_scale(count, (3, 3, 1), (2, 2));
        check_scale(count, (4000, 3, 1), (2, 2));
    }
    // Some of those that the manifest gives cannot even be made again.
    check_scale(Some(3), (3, 1, 1), (2, 2));
    check_scale(Some(3), (4000, 1, 1), (2, 2));
    let mut harness = harness_of(None);
    scaled(&mut harness, 3, 1, 1);
    assert_eq!(harness.engine.usage().unavailable, (2, 2));
}

#[test]
fn pods_that_come_and_go_under_a_scale_that_never_ends_count_once() {
    let mut harness = harness_of(None);
    for _ in 0..5 {
        scaled(&mut harness, 4000, 3, 3);
        assert_eq!(harness.engine.usage().unavailable, (0, 2));
        scaled(&mut harness, 4000, 3, 2);
        assert_eq!(harness.engine.usage().unavailable, (1, 2));
    }
    // A smaller count takes away first what is unavailable.
    scaled(&mut harness, 2, 2, 2);
    assert_eq!(harness.engine.usage().unavailable.0, 0);
}

#[test]
fn pods_that_an_autoscaler_adds_count_as_long_as_there_is_one() {
    let mut harness = harness_of(Some(3));
    scaled(&mut harness, 9, 9, 9);
    assert_eq!(harness.engine.usage().unavailable, (0, 2));
    harness.engine.set_autoscaled(HashSet::from([workload("a")]));
    assert_eq!(harness.engine.usage().unavailable, (0, 4));
    // Nor does it widen anything by asking.
    scaled(&mut harness, 4000, 9, 9);
    assert_eq!(harness.engine.usage().unavailable, (0, 4));
    harness.engine.set_autoscaled(HashSet::new());
    assert_eq!(harness.engine.usage().unavailable, (0, 2));
}

#[test]
fn pods_that_a_commit_adds_count_once_they_serve() {
    let mut harness = harness_of(Some(3));
    harness.read(reading("r2", &[("a", Some(counted("a", 1, Some(9))))]));
    harness.settle();
    for (pods, expected) in [(3, 2), (6, 3), (9, 4)] {
        scaled(&mut harness, 9, pods, pods);
        assert_eq!(harness.engine.usage().unavailable, (0, expected), "{pods}");
    }
}

#[test]
fn pods_of_a_first_start_count_once_they_serve() {
    let mut harness = harness_of(None);
    let first = ReplicaStatus {
        replicas: 9,
        pods: 9,
        updated: 9,
        phase: WorkloadPhase::FirstStart,
        ..ReplicaStatus::default()
    };
    shown(&mut harness, first);
    restart(&mut harness, None);
    assert_eq!(harness.engine.usage().unavailable, (0, 1));
    // Pods that still come were never there to be lost, in whatever phase.
    scaled(&mut harness, 9, 9, 4);
    assert_eq!(harness.engine.usage().unavailable, (0, 2));
    scaled(&mut harness, 9, 9, 3);
    assert_eq!(harness.engine.usage().unavailable, (1, 2));
}

/// Checks that a rollout takes down no pod that is not there, whatever its strategy makes of the
/// count.
#[test]
fn a_rollout_of_a_scaled_workload_reserves_what_it_has() {
    for count in [None, Some(3)] {
        let mut harness = harness_of(count);
        let replica_status = ReplicaStatus {
            replicas: 4000,
            pods: 3,
            updated: 1,
            ready: 3,
            available: 3,
            max_unavailable: 1000,
            phase: WorkloadPhase::Replacing,
            ..ReplicaStatus::default()
        };
        shown(&mut harness, replica_status);
        assert_eq!(taken(&harness), (1, 3, 2), "{count:?}");
        restart(&mut harness, count);
        assert_eq!(taken(&harness), (1, 3, 2), "{count:?} after a restart");
    }
}

#[test]
fn a_write_to_a_scaled_workload_costs_what_it_has() {
    for count in [None, Some(3)] {
        let mut harness = harness_of(count);
        scaled(&mut harness, 4000, 3, 3);
        let mut next = (*counted("a", 2, count)).clone();
        let strategy = json!({"spec": {"strategy": {"type": "Recreate"}}});
        next.strategy = UpdateStrategy::of(&GroupKind::new("apps", "Deployment"), &strategy);
        harness.read(reading("r2", &[("a", Some(Arc::new(next)))]));
        let why = harness.decide(&workload("a")).reason.map(|reason| reason.to_string());
        let expected =
            "it takes down 3 pods at once, and at most 2 may be unavailable (maxUnavailable)".to_owned();
        assert_eq!(why, Some(expected), "{count:?}");
    }
}

/// Has another process claim a pod of a workload.
fn claim(harness: &mut Harness, id: &ObjectId) {
    harness.world.ledger.claims = [(id.clone(), theirs(1))].into();
    harness.engine.set_ledger(harness.world.ledger.clone());
}

#[test]
fn pods_that_are_unavailable_count_beside_the_claims_for_other_workloads() {
    let mut harness = harness();
    scaled(&mut harness, 3, 3, 2);
    assert_eq!(taken(&harness), (0, 1, 2));
    claim(&mut harness, &elsewhere("api"));
    assert_eq!(taken(&harness), (1, 2, 2));
    // That of the workload itself may stand for that very pod.
    claim(&mut harness, &workload("a"));
    assert_eq!(taken(&harness), (1, 1, 2));
}

#[test]
fn what_others_have_claimed_rolls_out() {
    let mut harness = harness();
    claim(&mut harness, &elsewhere("api"));
    let rolling: Vec<ObjectId> = harness.engine.rolling_workloads().into_iter().map(|load| load.id).collect();
    assert_eq!(rolling, [elsewhere("api")]);
}

#[test]
fn pods_are_of_the_source_that_has_the_workload_once_the_claim_of_another_one_counts_no_more() {
    let (mut harness, id) = (harness(), workload("a"));
    scaled(&mut harness, 3, 3, 2);
    claim(&mut harness, &id);
    let check = |harness: &Harness, source: Option<SourceId>| {
        let loads = harness.engine.loads().into_iter();
        let found: Vec<_> = loads.map(|load| (load.id, load.source, load.unavailable)).collect();
        assert_eq!(found, [(id.clone(), source, 1)]);
    };
    check(&harness, None);
    for time in [Duration::ZERO, ABANDONED_CLAIM_AGE] {
        harness.pass_time(time);
        harness.engine.advance(harness.now);
        harness.engine.observe_foreign_workload(&id, None, harness.now);
    }
    check(&harness, Some(FIRST));
}

#[test]
fn pods_that_a_dropped_workload_never_had_are_not_missed_when_it_is_wanted_again() {
    let mut harness = harness_of(Some(3));
    scaled(&mut harness, 3, 1, 1);
    harness.engine = harness.fresh_with(budget("34%", 100));
    harness.engine.set_autoscaled(HashSet::new());
    harness.read(reading("r2", &[("a", None), ("b", Some(one("b", 1)))]));
    scaled(&mut harness, 3, 1, 1);
    assert_eq!(harness.engine.usage().unavailable, (0, 1));
    harness.read(reading("r3", &[("a", Some(counted("a", 1, Some(3))))]));
    assert_eq!(harness.engine.usage().unavailable, (0, 1));
}
