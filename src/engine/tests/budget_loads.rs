//! The workloads that count for the rollout budget: those that a source wants, and those that are
//! provably ours.

use super::harness::{Harness, release_key};
use super::shared_budget::{at_rest, budget, files, one};
use super::world::{FIRST, SET, World, reading, workload};
use crate::engine::*;
use crate::object::{GroupKind, ObjectId, Revision};

/// Two workloads of three pods each at rest, of which a third part may be unavailable.
fn harness() -> Harness {
    at_rest(&["a", "b"], &budget("34%", 100))
}

/// Returns the watch's view of a workload with our label, with this many of ten pods available.
fn labelled(harness: &Harness, phase: RolloutPhase, available: u32) -> LiveObject {
    let rolling = RolloutNumbers {
        replicas: 10,
        updated: 10,
        ready: available,
        available,
        ..RolloutNumbers::default()
    };
    let live = World::live(&workload("a"), &harness.world.things[&workload("a")]);
    let rolling = Some(RolloutNumbers { phase, max_unavailable: 3, ..rolling });
    LiveObject { uid: Uid("copy".into()), rv: ResourceVersion(10_000), rolling, ..live }
}

/// Returns the same under another name, with the annotation of what it was copied from.
fn copied(harness: &Harness, phase: RolloutPhase, available: u32) -> LiveObject {
    let live = labelled(harness, phase, available);
    let release = live.release.clone().unwrap();
    let seal = Some(ReleaseKey::of(&release_key()).seal(SET, &workload("a"), &release));
    LiveObject {
        release: None,
        unproven_release: Some(Box::new(ReleaseAnnotation { release, seal })),
        ..live
    }
}

/// One that the key of the tests proves, and that nothing has proven yet.
fn sealed(harness: &Harness, id: &ObjectId, phase: RolloutPhase, available: u32) -> LiveObject {
    let live = labelled(harness, phase, available);
    let release = Release { hash: one(id.name(), 1).hash, revision: Revision::new("r1") };
    let seal = Some(ReleaseKey::of(&release_key()).seal(SET, id, &release));
    LiveObject {
        release: None,
        unproven_release: Some(Box::new(ReleaseAnnotation { release, seal })),
        ..live
    }
}

/// Workloads in flight, pods that are unavailable, and how many may be.
fn taken(harness: &Harness) -> (u32, u32, u32) {
    let usage = harness.engine.usage();
    (usage.workloads.0, usage.unavailable.0, usage.unavailable.1)
}

const NOTHING: (u32, u32, u32) = (0, 0, 2);

#[test]
fn a_copy_of_a_workload_takes_nothing_and_adds_nothing() {
    let copy = workload("copy");
    let phases =
        [RolloutPhase::Settled, RolloutPhase::FirstStart, RolloutPhase::Replacing, RolloutPhase::Recovering];
    for phase in phases {
        for overlay in [OverlayState::Plain, OverlayState::from(Some(Overlay::Surge { step: 1, pods: 1 }))] {
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
    harness.engine.observe_object(&old, labelled(&harness, RolloutPhase::Replacing, 4));
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
    harness.engine.observe_object(&old, sealed(&harness, &old, RolloutPhase::Replacing, 4));
    harness.engine.observe_object(&workload("copy"), copied(&harness, RolloutPhase::Replacing, 4));
    assert_eq!((taken(&harness).0, taken(&harness).1), (0, 0));
    harness.engine.set_release_key(ReadState::Value(release_key()));
    assert_eq!((taken(&harness).0, taken(&harness).1), (1, 6));
}

#[test]
fn what_becomes_wanted_counts_from_then_on_and_no_longer_than_that_without_a_proof() {
    for phase in [RolloutPhase::Replacing, RolloutPhase::Recovering] {
        let mut harness = harness();
        let flights = u32::from(phase == RolloutPhase::Replacing);
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

/// The desired state is not known before the source is read, and proofs not before there is a key.
#[test]
fn what_was_told_of_a_source_counts_until_it_is_known_what_is_of_it() {
    let mut harness = harness();
    let told = BudgetTally {
        applyset: SET.into(),
        name: "test".into(),
        pods: 6,
        unavailable: [(workload("a"), 2)].into(),
        ..BudgetTally::default()
    };
    harness.world.ledger.tallies = vec![told.clone()];
    harness.engine = harness.fresh_without_key();
    let check = |harness: &mut Harness, away: u32, tells: &[BudgetTally]| {
        assert_eq!(taken(harness).1, away);
        let tallies = harness.engine.tallies(&harness.world.ledger);
        let told = tallies.into_iter().map(|tally| BudgetTally { at: None, ..tally });
        assert_eq!(told.collect::<Vec<_>>(), tells);
    };
    check(&mut harness, 2, std::slice::from_ref(&told));
    harness.read(reading("r1", &files(&["a", "b"], 1)));
    check(&mut harness, 2, std::slice::from_ref(&told));
    harness.engine.set_release_key(ReadState::Value(release_key()));
    check(&mut harness, 0, &[BudgetTally { unavailable: [].into(), ..told.clone() }]);
    let kinds = ["DaemonSet.apps", "Deployment.apps"].map(GroupKind::parse);
    harness.engine = harness.fresh_without_key();
    harness.engine.set_release_key(ReadState::Value(release_key()));
    assert!(kinds.iter().all(|kind| harness.engine.is_synced(FIRST, kind)));
    check(&mut harness, 2, &[told]);
}
