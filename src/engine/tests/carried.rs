//! The last good content stays known while failed contents are still there: a newer revision goes
//! back to it.

use std::sync::Arc;

use super::rig::Harness;
use super::world::{budget, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId};

fn web(content: u32) -> SharedDesired {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    Arc::new(web)
}

fn files(web_content: u32, env: u32) -> [(&'static str, Option<SharedDesired>); 2] {
    [("env", Some(desired(&config("env"), env, "env"))), ("web", Some(web(web_content)))]
}

fn hash(id: &ObjectId, content: u32) -> ContentHash {
    desired(id, content, "").hash
}

#[track_caller]
fn assert_shows(rig: &Harness, web: u32, env: u32) {
    for (id, content) in [(workload("web"), web), (config("env"), env)] {
        let shown = rig.world.things[&id].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(hash(&id, content)), "{id}: {:#?}", rig.world.log);
    }
}

/// Revision r1 is at rest; of web all contents from the second to the fourth fail.
fn at_rest(onward: OnFailure) -> Harness {
    let mut rig = Harness::new(3);
    rig.engine = rig.fresh_with(Budget { on_failure: onward, ..budget(3) });
    rig.read(reading("r1", &files(1, 1)));
    rig.settle();
    rig.world.log.clear();
    rig.world.bad.extend((2..5).map(|content| hash(&workload("web"), content)));
    rig
}

/// The second revision has failed, and is held as it is; then rollouts that fail go back.
fn held() -> Harness {
    let mut rig = at_rest(OnFailure::Hold);
    rig.read(reading("r2", &files(2, 2)));
    rig.settle();
    assert_shows(&rig, 2, 2);
    assert_eq!(rig.world.rejections[0].way, RejectionAction::Hold);
    rig.engine = rig.fresh(3);
    rig.read(reading("r2", &files(2, 2)));
    rig.settle();
    rig
}

#[test]
fn what_failed_and_is_still_there_is_not_gone_back_to() {
    // Whatever part the newer revision changes, all of it was good together.
    for newer in [files(3, 3), files(3, 2), files(3, 1)] {
        let mut rig = held();
        rig.read(reading("r3", &newer));
        rig.settle();
        assert_shows(&rig, 1, 1);
        assert_eq!(rig.world.rejections.len(), 1, "{:#?}", rig.world.rejections);
        assert_eq!(rig.world.rejections[0].way, RejectionAction::RollBack);
        assert!(rig.world.is_free());
    }
}

#[test]
fn whenever_the_process_dies_it_stays_known_what_was_good() {
    for point in 0..40 {
        let mut rig = held();
        rig.read(reading("r3", &files(3, 3)));
        for _ in 0..point {
            rig.turn();
        }
        rig.engine = rig.fresh(3);
        rig.read(reading("r3", &files(3, 3)));
        rig.engine.mark_all();
        rig.settle();
        assert_shows(&rig, 1, 1);
        assert!(rig.world.is_free(), "{point}");
    }
}

#[test]
fn it_stays_known_over_several_revisions_that_are_never_released() {
    let mut rig = held();
    rig.world.paused = Some(PauseIntent { token: "p".into(), reason: "".into() });
    rig.engine = rig.fresh(3);
    rig.read(reading("r3", &files(3, 3)));
    rig.settle();
    assert_shows(&rig, 2, 2);
    rig.world.paused = None;
    rig.engine = rig.fresh(3);
    rig.read(reading("r4", &files(4, 4)));
    rig.settle();
    assert_shows(&rig, 1, 1);
}

#[test]
fn what_succeeds_after_it_is_good() {
    let mut rig = held();
    rig.read(reading("r5", &files(5, 5)));
    rig.settle();
    assert_shows(&rig, 5, 5);
    assert!(rig.world.rejections.is_empty(), "{:#?}", rig.world.rejections);
    rig.world.bad.insert(hash(&workload("web"), 6));
    rig.read(reading("r6", &files(6, 6)));
    rig.settle();
    assert_shows(&rig, 5, 5);
}

/// A newer revision comes as the configuration is back, and the workload is not.
#[test]
fn a_way_back_that_is_replaced_in_the_middle_does_not_make_the_rest_of_it_good() {
    let mut rig = at_rest(OnFailure::Rollback);
    rig.read(reading("r2", &files(2, 2)));
    let env = |rig: &Harness| rig.world.things[&config("env")].release.as_ref().map(|release| release.hash);
    let is_halfway =
        |rig: &Harness| !rig.world.rejections.is_empty() && env(rig) == Some(hash(&config("env"), 1));
    for _ in 0..200 {
        if !is_halfway(&rig) {
            rig.turn();
        }
    }
    assert!(is_halfway(&rig), "{:#?}", rig.world.log);
    assert_shows(&rig, 2, 1);
    rig.read(reading("r3", &files(3, 1)));
    rig.settle();
    assert_shows(&rig, 1, 1);
}

fn retry(rig: &mut Harness) {
    rig.give(&workload("web"), "1-a retry");
}

/// The pods of web come up after all.
fn mend(rig: &mut Harness) {
    let rv = rig.world.tick();
    let web = rig.world.things.get_mut(&workload("web")).unwrap();
    (web.failed, web.phase, web.rv) = (None, RolloutPhase::Settled, rv);
    rig.world.announce(&workload("web"));
}

/// A retried rollout has the deadline of any rollout.
#[track_caller]
fn assert_fails_again_and_goes_back(rig: &mut Harness) {
    rig.pass_time(budget(3).deadline);
    rig.settle();
    assert_shows(rig, 1, 1);
    assert!(rig.world.is_free());
}

fn is_tried_again(rig: &Harness) -> bool {
    rig.world.rejections.is_empty()
        && rig.world.acknowledged.iter().any(|one| one.outcome.starts_with("retried"))
}

#[test]
fn what_is_tried_again_and_fails_again_goes_back() {
    let mut rig = held();
    retry(&mut rig);
    rig.settle();
    assert!(is_tried_again(&rig), "{:#?}", rig.world.acknowledged);
    assert_shows(&rig, 2, 2);
    // Its controller goes on saying what it said before: it has the time of any rollout.
    rig.pass_time(budget(3).deadline);
    rig.settle();
    assert_shows(&rig, 1, 1);
    assert_eq!(rig.world.rejections[0].way, RejectionAction::RollBack);
    assert!(rig.world.is_free());
}

/// The process before left the record of the unit in the budget object, and this one is just about to take it away.
#[test]
fn a_record_that_is_being_taken_away_is_made_again() {
    let mut rig = held();
    rig.world.book.units.push(rig.world.rejections[0].unit.clone());
    rig.engine = rig.fresh(3);
    rig.read(reading("r2", &files(2, 2)));
    rig.engine.settle();
    rig.deliver(usize::MAX);
    rig.engine.advance(rig.now);
    let next = rig.engine.next_book().expect("the record is taken away");
    assert!(next.units.is_empty(), "{next:#?}");
    let book = rig.world.book.clone();
    rig.engine.saving_book(&book);
    rig.in_flight = Some(next.clone());
    retry(&mut rig);
    for _ in 0..30 {
        rig.turn();
    }
    assert!(!is_tried_again(&rig), "nobody knows yet whether it is recorded");
    rig.in_flight = None;
    rig.world.book = next.clone();
    rig.engine.book(next);
    rig.settle();
    assert!(is_tried_again(&rig), "{:#?}", rig.world.acknowledged);
    assert_fails_again_and_goes_back(&mut rig);
}

/// All pods have the template, and none is available: nothing but the retry says that it is under way.
#[test]
fn what_is_everywhere_and_is_tried_again_goes_back() {
    let mut rig = held();
    let web = rig.world.things.get_mut(&workload("web")).unwrap();
    (web.failed, web.phase) = (None, RolloutPhase::Recovering);
    rig.engine = rig.fresh(3);
    rig.read(reading("r2", &files(2, 2)));
    rig.settle();
    retry(&mut rig);
    rig.settle();
    assert!(is_tried_again(&rig), "{:#?}", rig.world.acknowledged);
    assert_shows(&rig, 2, 2);
    assert_fails_again_and_goes_back(&mut rig);
}

#[test]
fn what_is_tried_again_and_succeeds_can_be_undone() {
    let mut rig = held();
    rig.world.bad.clear();
    retry(&mut rig);
    rig.settle();
    mend(&mut rig);
    rig.settle();
    assert!(rig.world.is_free(), "{:#?}", rig.world.book);
    let past = rig.world.book.past.last().unwrap();
    let good = |id: &ObjectId| match &past.members[id].good {
        LastGood::Release(release) => Some(release.hash),
        _ => None,
    };
    for id in [workload("web"), config("env")] {
        assert_eq!(good(&id), Some(hash(&id, 1)), "{id}");
    }
}

#[test]
fn whenever_the_process_dies_what_is_tried_again_can_go_back() {
    for point in 0..30 {
        let mut rig = held();
        retry(&mut rig);
        for _ in 0..point {
            rig.turn();
        }
        rig.engine = rig.fresh(3);
        rig.read(reading("r2", &files(2, 2)));
        rig.engine.mark_all();
        rig.settle();
        rig.pass_time(budget(3).deadline);
        rig.settle();
        assert_shows(&rig, 1, 1);
        assert!(rig.world.is_free(), "{point}");
    }
}

#[test]
fn whenever_a_newer_revision_comes_what_was_good_before_a_retry_stays_known() {
    for point in 0..30 {
        for newer in [files(3, 3), files(3, 2), files(2, 3)] {
            let mut rig = held();
            retry(&mut rig);
            for _ in 0..point {
                rig.turn();
            }
            rig.read(reading("r3", &newer));
            rig.settle();
            rig.pass_time(budget(3).deadline);
            rig.settle();
            assert_shows(&rig, 1, 1);
            assert!(rig.world.is_free(), "{point}");
            assert_eq!(rig.world.rejections.len(), 1, "{point}: {:#?}", rig.world.rejections);
        }
    }
}

/// The newer revision changes only the configuration, so that the workload itself is not written again.
#[test]
fn what_failed_is_judged_as_a_part_of_the_newer_revision() {
    for fresh in [false, true] {
        for mended in [false, true] {
            let mut rig = held();
            if mended {
                rig.world.bad.clear();
            }
            rig.read(reading("r3", &files(2, 3)));
            if fresh {
                rig.engine = rig.fresh(3);
                rig.read(reading("r3", &files(2, 3)));
            }
            rig.settle();
            assert_shows(&rig, 2, 3);
            if mended {
                mend(&mut rig);
            }
            rig.settle();
            rig.pass_time(budget(3).deadline);
            rig.settle();
            if mended {
                assert_shows(&rig, 2, 3);
                assert!(rig.world.rejections.is_empty());
            } else {
                assert_shows(&rig, 1, 1);
            }
            assert!(rig.world.is_free(), "{fresh} {mended}: {:#?}", rig.world.book);
        }
    }
}

/// The workload is not written again, and nothing is recorded anew.
#[test]
fn a_newer_configuration_does_not_keep_a_rollout_from_going_back() {
    let mut rig = at_rest(OnFailure::Rollback);
    rig.read(reading("r2", &files(2, 2)));
    let is_out = |rig: &Harness| {
        let shown = rig.world.things[&workload("web")].release.as_ref().map(|release| release.hash);
        shown == Some(hash(&workload("web"), 2))
    };
    for _ in 0..200 {
        if !is_out(&rig) {
            rig.turn();
        }
    }
    assert!(is_out(&rig) && rig.world.rejections.is_empty(), "{:#?}", rig.world.log);
    rig.read(reading("r3", &files(2, 3)));
    rig.settle();
    // The newer revision has the time of any rollout: its configuration may be what the pods wait for.
    rig.pass_time(budget(3).deadline);
    rig.settle();
    assert_shows(&rig, 1, 1);
    assert_eq!(rig.world.rejections[0].unit.revision.as_str(), "r3");
    assert!(rig.world.is_free());
}
