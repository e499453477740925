//! The deadline of a rollout: progress and another content begin it anew, and a repair does not.

use std::time::{Duration, Instant};

use super::harness::Harness;
use super::world::{all_ready, budget, desired, reading, workload};
use crate::engine::decide::decision::ApplyPurpose;
use crate::engine::rollout::progress::{ProgressTracking, RolloutInitiator};
use crate::engine::*;
use crate::object::ObjectId;

/// Returns a world in which the pods of a new content do not become available.
fn rolling() -> (Harness, ObjectId) {
    let mut harness = Harness::new(1);
    let id = workload("web");
    let content = |number| [("web", Some(desired(&id, number, "web")))];
    harness.read(reading("r1", &content(1)));
    harness.settle();
    harness.read(reading("r2", &content(2)));
    harness.engine.process_changes();
    await_write(&mut harness, &id, ApplyPurpose::Change);
    show(&mut harness, &id, 1);
    (harness, id)
}

/// Goes on until a workload is written for this purpose.
fn await_write(harness: &mut Harness, id: &ObjectId, purpose: ApplyPurpose) {
    for _ in 0..10 {
        harness.deliver(usize::MAX);
        match harness.step(id) {
            Some(Action::Apply(apply)) if apply.purpose == purpose => return,
            _ => harness.keep_claims(),
        }
    }
    panic!("it is not written: {:?}", harness.decide(id));
}

/// Shows this many updated pods.
fn show(harness: &mut Harness, id: &ObjectId, updated: u32) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.rv, thing.numbers) = (rv, Some(ReplicaStatus { updated, ..all_ready() }));
    harness.world.announce(id);
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
}

/// Returns after how many quarters of the deadline a rollout fails to which this happens in each.
fn failing_quarter(happens: impl Fn(&mut Harness, &ObjectId, u32)) -> Option<u32> {
    let (mut harness, id) = rolling();
    (1..=20).find(|quarter| {
        harness.pass_time(budget(1).deadline / 4);
        harness.engine.advance(harness.now);
        let has_failed = !harness.engine.take_failed().is_empty();
        if !has_failed {
            happens(&mut harness, &id, *quarter);
        }
        has_failed
    })
}

/// Changes the template of a workload, and lets it be repaired: its pods begin anew.
fn drift(harness: &mut Harness, id: &ObjectId) {
    harness.world.drift(id);
    show(harness, id, 0);
    await_write(harness, id, ApplyPurpose::Repair);
    show(harness, id, 0);
    show(harness, id, 1);
}

#[test]
fn a_repair_of_the_same_content_gives_its_pods_a_deadline_and_all_of_them_two() {
    let check = |repaired: &[u32], expected: u32| {
        let failing = failing_quarter(|harness, id, quarter| {
            if repaired.contains(&quarter) {
                drift(harness, id);
            }
        });
        assert_eq!(failing, Some(expected), "{repaired:?}");
    };
    check(&[], 4);
    check(&[1], 5);
    check(&[2], 6);
    check(&[3], 7);
    check(&[1, 2, 3], 7);
    check(&[1, 2, 3, 4, 5], 8);
    check(&(1..=20).collect::<Vec<_>>(), 8);
}

#[test]
fn a_workload_that_is_not_seen_for_a_while_goes_on_with_what_is_left_of_its_deadline() {
    let failing = failing_quarter(|harness, id, _| {
        harness.engine.observe_absence(id);
        harness.engine.advance(harness.now);
        show(harness, id, 1);
    });
    assert_eq!(failing, Some(8));
}

#[test]
fn newer_pods_and_another_content_begin_the_deadline_anew() {
    let more = |harness: &mut Harness, id: &ObjectId, quarter| {
        if quarter == 3 {
            drift(harness, id);
            show(harness, id, 2);
        }
    };
    assert_eq!(failing_quarter(more), Some(7));
    let commit = |harness: &mut Harness, id: &ObjectId, quarter| {
        if quarter == 3 {
            harness.read(reading("r3", &[("web", Some(desired(id, 3, "web")))]));
            harness.engine.process_changes();
            await_write(harness, id, ApplyPurpose::Change);
            show(harness, id, 1);
        }
    };
    assert_eq!(failing_quarter(commit), Some(7));
}

#[test]
fn newer_and_more_available_pods_are_progress_also_after_a_scale_down() {
    // The pods that are asked for, the updated and the available ones.
    let check = |origin: RolloutInitiator, views: &[(u32, u32, u32)], expected: bool| {
        let (mut progress, mut now) = (ProgressTracking::default(), Instant::now());
        for (replicas, updated, available) in views {
            now += Duration::from_secs(1);
            let numbers = ReplicaStatus {
                replicas: *replicas,
                updated: *updated,
                available: *available,
                ..ReplicaStatus::default()
            };
            progress.note_numbers(numbers, origin, now);
        }
        assert_eq!(progress.start_progress_clock(now) == now, expected, "{origin:?} {views:?}");
    };
    for origin in [RolloutInitiator::Claim, RolloutInitiator::Others] {
        check(origin, &[(3, 0, 3)], true);
        check(origin, &[(3, 0, 3), (3, 1, 3)], true);
        check(origin, &[(3, 1, 2), (3, 1, 3)], true);
        check(origin, &[(3, 1, 3), (3, 1, 3)], false);
        check(origin, &[(3, 1, 4), (3, 1, 3), (3, 1, 4)], false);
        check(origin, &[(9, 8, 8), (4, 4, 2), (4, 4, 3)], true);
    }
    // Fewer updated pods are another template: of our content that is somebody's change.
    check(RolloutInitiator::Claim, &[(3, 2, 3), (3, 0, 3)], false);
    check(RolloutInitiator::Claim, &[(3, 2, 3), (3, 0, 3), (3, 2, 3)], false);
    check(RolloutInitiator::Others, &[(3, 2, 3), (3, 0, 3)], true);
}

const DEADLINE: Duration = Duration::from_secs(100);

/// Returns the progress of a rollout that was shown and made progress last at a time, and was
/// judged again some seconds later.
fn stuck(begun: Instant, seconds: u64) -> ProgressTracking {
    let mut progress = ProgressTracking::default();
    progress.note_view(begun);
    progress.start_progress_clock(begun);
    progress.note_view(begun + Duration::from_secs(seconds));
    progress
}

#[test]
fn one_more_new_pod_at_a_time_begins_the_deadline_anew_and_no_other_number_does() {
    let begun = Instant::now();
    let mut progress = stuck(begun, 0);
    for (second, pods, expected) in
        [(1, 1, 101), (2, 1, 101), (3, 0, 101), (4, 3, 104), (5, 2, 104), (6, 3, 104), (7, 4, 107)]
    {
        progress.note_pods(pods);
        let due = progress.progress_deadline(DEADLINE, begun + Duration::from_secs(second));
        assert_eq!(due, begun + Duration::from_secs(expected), "{second}");
    }
}

#[test]
fn pods_that_a_repair_began_anew_have_the_whole_deadline_and_all_repairs_together_twice_of_it() {
    let begun = Instant::now();
    let check = |elapsed: u64, expected: u64| {
        let mut progress = stuck(begun, elapsed).continuation();
        let repaired = begun + Duration::from_secs(1000);
        progress.note_view(repaired);
        let due = progress.progress_deadline(DEADLINE, repaired);
        assert_eq!(due, repaired + Duration::from_secs(expected), "{elapsed}");
    };
    check(0, 100);
    check(40, 100);
    check(100, 100);
    check(140, 60);
    check(199, 1);
}

#[test]
fn a_write_that_is_not_shown_yet_has_what_is_left_of_the_deadline() {
    let begun = Instant::now();
    let mut progress = stuck(begun, 40).continuation();
    let due = progress.progress_deadline(DEADLINE, begun + Duration::from_secs(50));
    assert_eq!(due, begun + Duration::from_secs(110));
}

#[test]
fn repairs_that_follow_each_other_use_up_one_deadline() {
    let begun = Instant::now();
    let mut progress = stuck(begun, 30);
    // The second one comes before the first one was judged.
    progress = progress.continuation().continuation();
    assert_eq!(progress.start_progress_clock(begun + DEADLINE), begun + Duration::from_secs(70));
    // Progress between them ends what was used up before.
    let mut with_pods = stuck(begun, 30).continuation();
    with_pods.note_pods(1);
    assert_eq!(with_pods.continuation().start_progress_clock(begun + DEADLINE), begun + DEADLINE);
}

#[test]
fn a_rollout_that_had_to_make_no_progress_has_its_whole_deadline() {
    let begun = Instant::now();
    let later = begun + Duration::from_mins(1);
    let mut suspended = stuck(begun, 30).continuation();
    suspended.suspend();
    assert_eq!(suspended.start_progress_clock(later), later);
    let mut postponed = stuck(begun, 30);
    postponed.postpone();
    assert_eq!(postponed.start_progress_clock(later), later);
    // The time that was used up before a repair stays used up.
    let mut repaired = stuck(begun, 30).continuation();
    repaired.postpone();
    assert_eq!(repaired.start_progress_clock(later), begun + Duration::from_secs(30));
}
