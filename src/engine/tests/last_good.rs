//! The last good content stays known while failed contents are still there: a newer revision goes
//! back to it.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{FIRST, SECOND, SET, budget, config, desired, reading, workload};
use crate::engine::*;
use crate::health::Health;
use crate::object::{ContentHash, ObjectId, Revision};

fn web(content: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    Arc::new(web)
}

pub(super) fn files(web_content: u32, env: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    [("env", Some(desired(&config("env"), env, "env"))), ("web", Some(web(web_content)))]
}

pub(super) fn hash(id: &ObjectId, content: u32) -> ContentHash {
    desired(id, content, "").hash
}

#[track_caller]
fn assert_shows(harness: &Harness, web: u32, env: u32) {
    for (id, content) in [(workload("web"), web), (config("env"), env)] {
        let shown = harness.world.things[&id].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(hash(&id, content)), "{id}: {:#?}", harness.world.log);
    }
}

/// Returns revision r1 at rest; of web all contents from the second to the fourth fail.
fn at_rest(onward: OnFailure) -> Harness {
    let mut harness = Harness::new(3);
    harness.engine = harness.fresh_with(Budget { on_failure: onward, ..budget(3) });
    harness.read(reading("r1", &files(1, 1)));
    harness.settle();
    harness.world.log.clear();
    harness.world.bad.extend((2..5).map(|content| hash(&workload("web"), content)));
    harness
}

/// Returns the state after the second revision has failed and was quarantined; then rollouts that
/// fail go back.
fn held() -> Harness {
    let mut harness = at_rest(OnFailure::Quarantine);
    harness.read(reading("r2", &files(2, 2)));
    harness.settle();
    assert_shows(&harness, 2, 2);
    assert_eq!(harness.world.rejections[0].action, RejectionAction::Quarantine);
    harness.engine = harness.fresh(3);
    harness.read(reading("r2", &files(2, 2)));
    harness.settle();
    harness
}

#[test]
fn what_failed_and_is_still_there_is_not_gone_back_to() {
    // All of it was good together, so it does not matter which part the newer revision changes.
    for newer in [files(3, 3), files(3, 2), files(3, 1)] {
        let mut harness = held();
        harness.read(reading("r3", &newer));
        harness.settle();
        assert_shows(&harness, 1, 1);
        assert_eq!(harness.world.rejections.len(), 1, "{:#?}", harness.world.rejections);
        assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
        assert!(harness.world.is_free());
    }
}

#[test]
fn whenever_the_process_dies_it_stays_known_what_was_good() {
    for point in 0..40 {
        let mut harness = held();
        harness.read(reading("r3", &files(3, 3)));
        for _ in 0..point {
            harness.turn();
        }
        harness.engine = harness.fresh(3);
        harness.read(reading("r3", &files(3, 3)));
        harness.engine.mark_all();
        harness.settle();
        assert_shows(&harness, 1, 1);
        assert!(harness.world.is_free(), "{point}");
    }
}

#[test]
fn it_stays_known_over_several_revisions_that_are_never_released() {
    let mut harness = held();
    harness.world.paused = Some(PauseIntent { token: "p".into(), reason: "".into() });
    harness.engine = harness.fresh(3);
    harness.read(reading("r3", &files(3, 3)));
    harness.settle();
    assert_shows(&harness, 2, 2);
    harness.world.paused = None;
    harness.engine = harness.fresh(3);
    harness.read(reading("r4", &files(4, 4)));
    harness.settle();
    assert_shows(&harness, 1, 1);
}

#[test]
fn what_succeeds_after_it_is_good() {
    let mut harness = held();
    harness.read(reading("r5", &files(5, 5)));
    harness.settle();
    assert_shows(&harness, 5, 5);
    assert!(harness.world.rejections.is_empty(), "{:#?}", harness.world.rejections);
    harness.world.bad.insert(hash(&workload("web"), 6));
    harness.read(reading("r6", &files(6, 6)));
    harness.settle();
    assert_shows(&harness, 5, 5);
}

/// Reads a newer revision as the configuration is back, and the workload is not.
#[test]
fn a_rollback_that_is_replaced_in_the_middle_does_not_make_the_rest_of_it_good() {
    let mut harness = at_rest(OnFailure::Rollback);
    harness.read(reading("r2", &files(2, 2)));
    let env =
        |harness: &Harness| harness.world.things[&config("env")].release.as_ref().map(|release| release.hash);
    let is_halfway = |harness: &Harness| {
        !harness.world.rejections.is_empty() && env(harness) == Some(hash(&config("env"), 1))
    };
    for _ in 0..200 {
        if !is_halfway(&harness) {
            harness.turn();
        }
    }
    assert!(is_halfway(&harness), "{:#?}", harness.world.log);
    assert_shows(&harness, 2, 1);
    harness.read(reading("r3", &files(3, 1)));
    harness.settle();
    assert_shows(&harness, 1, 1);
}

fn retry(harness: &mut Harness) {
    harness.give(&workload("web"), "1-a retry");
}

/// Lets the pods of web come up after all.
fn mend(harness: &mut Harness) {
    let rv = harness.world.tick();
    let web = harness.world.things.get_mut(&workload("web")).unwrap();
    (web.failed, web.phase, web.rv) = (None, WorkloadPhase::Settled, rv);
    harness.world.announce(&workload("web"));
}

/// Checks that a retried rollout has the deadline of any rollout.
#[track_caller]
fn assert_fails_again_and_goes_back(harness: &mut Harness) {
    harness.pass_time(budget(3).deadline);
    harness.settle();
    assert_shows(harness, 1, 1);
    assert!(harness.world.is_free());
}

fn is_tried_again(harness: &Harness) -> bool {
    harness.world.rejections.is_empty()
        && harness.world.acknowledged.iter().any(|one| one.outcome.starts_with("retried"))
}

#[test]
fn what_is_tried_again_and_fails_again_goes_back() {
    let mut harness = held();
    retry(&mut harness);
    harness.settle();
    assert!(is_tried_again(&harness), "{:#?}", harness.world.acknowledged);
    assert_shows(&harness, 2, 2);
    // Its controller goes on saying what it said before: it has the time of any rollout.
    harness.pass_time(budget(3).deadline);
    harness.settle();
    assert_shows(&harness, 1, 1);
    assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
    assert!(harness.world.is_free());
}

/// Replaces a process that left the record of the unit, and is just about to take it away.
#[test]
fn a_record_that_is_being_taken_away_is_made_again() {
    let mut harness = held();
    harness.world.ledger.units.push(harness.world.rejections[0].unit.clone());
    harness.engine = harness.fresh(3);
    harness.read(reading("r2", &files(2, 2)));
    harness.engine.process_changes();
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
    let next = harness.engine.next_ledger().expect("the record is taken away");
    assert!(next.units.is_empty(), "{next:#?}");
    let ledger = harness.world.ledger.clone();
    harness.engine.note_ledger_write(&ledger);
    harness.in_flight = Some(next.clone());
    retry(&mut harness);
    for _ in 0..30 {
        harness.turn();
    }
    assert!(!is_tried_again(&harness), "nobody knows yet whether it is recorded");
    harness.in_flight = None;
    harness.world.ledger = next.clone();
    harness.engine.set_ledger(next);
    harness.settle();
    assert!(is_tried_again(&harness), "{:#?}", harness.world.acknowledged);
    assert_fails_again_and_goes_back(&mut harness);
}

/// Gives all pods the template and makes none available: nothing but the retry says that it is
/// under way.
#[test]
fn what_is_everywhere_and_is_tried_again_goes_back() {
    let mut harness = held();
    let web = harness.world.things.get_mut(&workload("web")).unwrap();
    (web.failed, web.phase) = (None, WorkloadPhase::Recovering);
    harness.engine = harness.fresh(3);
    harness.read(reading("r2", &files(2, 2)));
    harness.settle();
    retry(&mut harness);
    harness.settle();
    assert!(is_tried_again(&harness), "{:#?}", harness.world.acknowledged);
    assert_shows(&harness, 2, 2);
    assert_fails_again_and_goes_back(&mut harness);
}

#[test]
fn what_is_tried_again_and_succeeds_can_be_undone() {
    let mut harness = held();
    harness.world.bad.clear();
    retry(&mut harness);
    harness.settle();
    mend(&mut harness);
    harness.settle();
    assert!(harness.world.is_free(), "{:#?}", harness.world.ledger);
    let past = harness.world.ledger.history.last().unwrap();
    let good = |id: &ObjectId| match &past.members[id].rollback_target {
        RollbackTarget::Content(release) => Some(release.hash),
        _ => None,
    };
    for id in [workload("web"), config("env")] {
        assert_eq!(good(&id), Some(hash(&id, 1)), "{id}");
    }
}

#[test]
fn whenever_the_process_dies_what_is_tried_again_can_go_back() {
    for point in 0..30 {
        let mut harness = held();
        retry(&mut harness);
        for _ in 0..point {
            harness.turn();
        }
        harness.engine = harness.fresh(3);
        harness.read(reading("r2", &files(2, 2)));
        harness.engine.mark_all();
        harness.settle();
        harness.pass_time(budget(3).deadline);
        harness.settle();
        assert_shows(&harness, 1, 1);
        assert!(harness.world.is_free(), "{point}");
    }
}

#[test]
fn whenever_a_newer_revision_comes_what_was_good_before_a_retry_stays_known() {
    for point in 0..30 {
        for newer in [files(3, 3), files(3, 2), files(2, 3)] {
            let mut harness = held();
            retry(&mut harness);
            for _ in 0..point {
                harness.turn();
            }
            harness.read(reading("r3", &newer));
            harness.settle();
            harness.pass_time(budget(3).deadline);
            harness.settle();
            assert_shows(&harness, 1, 1);
            assert!(harness.world.is_free(), "{point}");
            assert_eq!(harness.world.rejections.len(), 1, "{point}: {:#?}", harness.world.rejections);
        }
    }
}

/// Changes only the configuration in the newer revision, so that the workload itself is not written
/// again.
#[test]
fn what_failed_is_judged_as_a_part_of_the_newer_revision() {
    for fresh in [false, true] {
        for mended in [false, true] {
            let mut harness = held();
            if mended {
                harness.world.bad.clear();
            }
            harness.read(reading("r3", &files(2, 3)));
            if fresh {
                harness.engine = harness.fresh(3);
                harness.read(reading("r3", &files(2, 3)));
            }
            harness.settle();
            assert_shows(&harness, 2, 3);
            if mended {
                mend(&mut harness);
            }
            harness.settle();
            harness.pass_time(budget(3).deadline);
            harness.settle();
            if mended {
                assert_shows(&harness, 2, 3);
                assert!(harness.world.rejections.is_empty());
            } else {
                assert_shows(&harness, 1, 1);
            }
            assert!(harness.world.is_free(), "{fresh} {mended}: {:#?}", harness.world.ledger);
        }
    }
}

// The workload is not written again, and nothing is recorded anew.
#[test]
fn a_newer_configuration_does_not_keep_a_rollout_from_going_back() {
    let mut harness = at_rest(OnFailure::Rollback);
    harness.read(reading("r2", &files(2, 2)));
    let is_out = |harness: &Harness| {
        let shown = harness.world.things[&workload("web")].release.as_ref().map(|release| release.hash);
        shown == Some(hash(&workload("web"), 2))
    };
    for _ in 0..200 {
        if !is_out(&harness) {
            harness.turn();
        }
    }
    assert!(is_out(&harness) && harness.world.rejections.is_empty(), "{:#?}", harness.world.log);
    harness.read(reading("r3", &files(2, 3)));
    harness.settle();
    // The newer revision has the time of any rollout: its configuration may be what the pods wait
    // for.
    harness.pass_time(budget(3).deadline);
    harness.settle();
    assert_shows(&harness, 1, 1);
    assert_eq!(harness.world.rejections[0].unit.revision.as_str(), "r3");
    assert!(harness.world.is_free());
}

/// Returns the state in which the second revision has failed, and nobody has said why yet.
pub(super) fn failing() -> Harness {
    let mut harness = at_rest(OnFailure::Rollback);
    harness.read(reading("r2", &files(2, 2)));
    let shown = |harness: &Harness| harness.world.things[&workload("web")].release.clone();
    for _ in 0..200 {
        if shown(&harness).is_some_and(|release| release.hash == hash(&workload("web"), 2)) {
            break;
        }
        harness.turn();
    }
    harness.deliver_all();
    harness.engine.advance(harness.now);
    let failed = harness.engine.rollouts.unreported.newly_failed();
    assert!(failed.contains_key(&workload("web")), "{:#?}", harness.world.log);
    harness
}

// The inventory does not record yet what is tried again.
#[test]
fn a_failure_that_is_tried_again_before_its_rejection_is_recorded_is_judged_anew() {
    let mut harness = failing();
    harness.deliver_failures();
    assert_eq!(harness.engine.source(FIRST).pending_rejections.len(), 1);
    retry(&mut harness);
    harness.engine.carry_out_orders();
    harness.settle();
    assert!(is_tried_again(&harness), "{:#?}", harness.world.acknowledged);
    assert_shows(&harness, 2, 2);
    assert_fails_again_and_goes_back(&mut harness);
}

// Its controller may say nothing of it for a moment, and then the same again.
#[test]
fn a_failure_that_is_tried_again_is_remembered_also_where_it_is_not_shown_now() {
    let (mut harness, web) = (failing(), workload("web"));
    harness.deliver_failures();
    let mut live = harness.engine.live_object(&web).cloned().unwrap();
    let message = live.health.message.clone();
    (live.health, live.rv) = (Health::current(), ResourceVersion(harness.world.tick()));
    harness.engine.observe_object(&web, live);
    retry(&mut harness);
    harness.engine.carry_out_orders();
    let rollout = &harness.engine.rollouts.in_flight[&web];
    assert_eq!((&rollout.failed, &rollout.earlier_failure), (&None, &Some(message)));
}

// The failure is reported when the newer content is claimed, and git takes that back before it is
// written.
#[test]
fn a_failed_content_that_is_wanted_again_in_place_of_a_claimed_one_goes_back() {
    let web = workload("web");
    let mut harness = failing();
    harness.read(reading("r3", &files(3, 2)));
    for _ in 0..10 {
        let decision = harness.engine.decide(&web, harness.now);
        if decision.reason == Some(Reason::Claiming) {
            break;
        }
        harness.act(&web, decision);
    }
    harness.keep_claims();
    assert_eq!(harness.world.ledger.units[0].members[&web].content, Some(hash(&web, 3)));
    harness.deliver_failures();
    assert!(harness.engine.source(FIRST).pending_rejections.is_empty(), "something newer is claimed");
    harness.read(reading("r4", &files(2, 2)));
    harness.settle();
    assert_shows(&harness, 2, 2);
    assert_fails_again_and_goes_back(&mut harness);
}

// Another process releases the same object, for a source of its own.
#[test]
fn a_retry_is_recorded_and_kept_whatever_units_other_sources_have() {
    let mut harness = held();
    let mut theirs = harness.world.rejections[0].unit.clone();
    theirs.inventory_id = "applyset-theirs-v1".into();
    harness.world.ledger.units.push(theirs.clone());
    harness.engine.set_ledger(harness.world.ledger.clone());
    retry(&mut harness);
    harness.carry_out();
    let next = harness.engine.next_ledger().expect("the retry is recorded");
    let ours = harness.world.rejections[0].unit.clone();
    assert_eq!(next.units, [theirs, ours]);
    // The rejection is still in the inventory, so the record of what was good must not go.
    harness.engine.set_ledger(next.clone());
    assert!(harness.engine.next_ledger().is_none_or(|later| later.units == next.units));
}

#[test]
fn a_unit_can_be_undone_where_it_has_replaced_something_that_is_wanted_and_was_not_rejected() {
    let mut harness = held();
    harness.read(reading("r9", &[("other", Some(desired(&workload("other"), 2, "other")))]));
    let rejected = harness.world.rejections[0].unit.clone();
    let elsewhere = |target: &RollbackTarget| {
        let member = UnitMember {
            content: Some(hash(&workload("other"), 2)),
            rollback_target: target.clone(),
            restarted: None,
        };
        ReleaseUnit { members: [(workload("other"), member)].into(), ..rejected.clone() }
    };
    let replaced = rejected.members[&workload("web")].rollback_target.clone();
    assert!(replaced.content_ref().is_some());
    assert!(!harness.engine.can_be_undone(&rejected));
    assert!(harness.engine.can_be_undone(&elsewhere(&replaced)));
    assert!(!harness.engine.can_be_undone(&elsewhere(&RollbackTarget::Absent)));
    // Nobody has judged what was dropped meanwhile.
    harness.read(reading("r10", &[("other", None)]));
    assert!(!harness.engine.can_be_undone(&elsewhere(&replaced)));
}

#[test]
fn failed_content_is_shown_where_a_wanted_object_is_not_at_its_last_good_content() {
    let rejection = held().world.rejections[0].clone();
    let both_deleted = |harness: &mut Harness| {
        for id in [workload("web"), config("env")] {
            let shown = harness.engine.live_object(&id).cloned().unwrap();
            let rv = ResourceVersion(shown.rv.0 + 1);
            harness.engine.observe_object(&id, LiveObject { deleting: true, rv, ..shown });
        }
    };
    let unwanted = |harness: &mut Harness| harness.read(reading("r3", &[("env", None), ("web", None)]));
    let check = |mut harness: Harness, change: &dyn Fn(&mut Harness), expected: bool| {
        change(&mut harness);
        assert_eq!(harness.engine.is_showing_failed_content(FIRST, &rejection), expected);
        let is_only_record = harness.engine.is_only_record_of_targets(FIRST, &rejection);
        assert!(expected || !is_only_record);
    };
    check(held(), &|_| (), true);
    check(at_rest(OnFailure::Quarantine), &|_| (), false);
    check(held(), &both_deleted, false);
    check(held(), &unwanted, false);
}

#[test]
fn a_rejection_is_the_only_record_of_what_was_good_as_long_as_no_unit_of_its_source_says_so_too() {
    for (of, expected) in [(SET, false), ("applyset-theirs-v1", true)] {
        let mut harness = held();
        let rejection = harness.world.rejections[0].clone();
        harness.read(reading("r3", &files(3, 3)));
        assert!(harness.engine.is_only_record_of_targets(FIRST, &rejection));
        let unit = ReleaseUnit { inventory_id: of.into(), ..rejection.unit.clone() };
        harness.engine.set_ledger(RolloutLedger { units: vec![unit], ..harness.world.ledger.clone() });
        assert_eq!(harness.engine.is_only_record_of_targets(FIRST, &rejection), expected, "{of}");
    }
}

#[test]
fn a_newer_unit_goes_back_to_what_was_good_before_failed_contents_and_takes_them_all_along() {
    let inherited = |harness: &Harness, id: &ObjectId| {
        let mut unit = ReleaseUnit {
            inventory_id: SET.into(),
            revision: Revision::new("r3"),
            members: [(id.clone(), harness.engine.member(FIRST, id))].into(),
        };
        harness.engine.inherit_rollback_targets(FIRST, &mut unit);
        let good = |member: &UnitMember| member.rollback_target.content_ref().map(|good| good.hash);
        unit.members.iter().map(|(id, member)| (id.clone(), good(member))).collect::<Vec<_>>()
    };
    let (web, env, other) = (workload("web"), config("env"), config("other"));
    let mut harness = held();
    let as_shown = vec![(web.clone(), Some(hash(&web, 2)))];
    assert_eq!(inherited(&harness, &web), as_shown, "the rejection still counts");
    harness.read(reading("r3", &files(3, 3)));
    let both = vec![(web.clone(), Some(hash(&web, 1))), (env.clone(), Some(hash(&env, 1)))];
    let mut found = inherited(&harness, &web);
    found.sort_by_key(|(id, _)| id.kind() == "ConfigMap");
    assert_eq!(found, both);
    assert_eq!(inherited(&harness, &other), [(other, None)]);
}

#[test]
fn what_a_newer_unit_takes_along_comes_with_the_content_that_is_wanted_now() {
    let (web, env) = (workload("web"), config("env"));
    let mut harness = held();
    harness.read(reading("r3", &files(3, 4)));
    let mut unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r3"),
        members: [(web.clone(), harness.engine.member(FIRST, &web))].into(),
    };
    harness.engine.inherit_rollback_targets(FIRST, &mut unit);
    assert_eq!(unit.members[&web].content, Some(hash(&web, 3)));
    assert_eq!(unit.members[&env].content, Some(hash(&env, 4)));
}

#[test]
fn a_unit_is_renewed_with_what_the_newest_revision_asks_for_once_nothing_of_it_is_to_come() {
    let (web, env) = (workload("web"), config("env"));
    let unit = |revision: &str, content: Option<u32>| {
        let member = |id: &ObjectId| UnitMember {
            content: content.map(|content| hash(id, content)),
            rollback_target: RollbackTarget::Unknown,
            restarted: None,
        };
        ReleaseUnit {
            inventory_id: SET.into(),
            revision: Revision::new(revision),
            members: [&web, &env].map(|id| (id.clone(), member(id))).into(),
        }
    };
    let mut harness = at_rest(OnFailure::Quarantine);
    let at_head = |harness: &Harness, unit: &ReleaseUnit| harness.engine.unit_at_head(FIRST, unit);
    assert_eq!(at_head(&harness, &unit("r0", Some(1))), Some(unit("r0", Some(1))));
    assert_eq!(at_head(&harness, &unit("r0", None)), Some(unit("r1", Some(1))));
    harness.read(reading("r2", &files(2, 2)));
    assert_eq!(at_head(&harness, &unit("r0", Some(1))), None, "a newer content is to come");
    assert_eq!(at_head(&held(), &unit("r0", Some(1))), None, "it is rejected");
}

#[test]
fn a_rejection_is_retried_for_its_own_source_alone() {
    let mut harness = held();
    let rejection = harness.world.rejections[0].clone();
    let other = Rejection { cause: "another one".into(), ..rejection.clone() };
    let retried = vec![(SECOND, rejection.clone()), (FIRST, other.clone())];
    harness.engine.rollouts.rollbacks.set_retried(retried);
    assert!(!harness.engine.is_retried(FIRST, &rejection));
    assert!(harness.engine.is_retried(FIRST, &other));
    // The inventory of one source says nothing of the retries of another one.
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_inventory(FIRST, Inventory { rejections: Vec::new(), ..known });
    assert!(!harness.engine.is_retried(FIRST, &other));
    assert!(harness.engine.is_retried(SECOND, &rejection));
}

#[test]
fn a_failure_that_a_new_process_sees_before_it_has_read_the_source_keeps_its_slot_and_is_rejected() {
    let mut harness = at_rest(OnFailure::Rollback);
    harness.read(reading("r2", &files(2, 2)));
    for id in [config("env"), workload("web")] {
        harness.step(&id);
        harness.step(&id);
    }
    harness.deliver(usize::MAX);
    harness.finish_rollouts();
    harness.engine = harness.fresh(3);
    harness.engine.advance(harness.now);
    harness.deliver_failures();
    assert_eq!(harness.engine.usage().workloads.0, 1, "{}", harness.engine.rollout_words(&workload("web")));
    assert_eq!(harness.world.rejections, []);
    harness.read(reading("r2", &files(2, 2)));
    harness.settle();
    assert_shows(&harness, 1, 1);
    assert_eq!(harness.world.rejections.len(), 1);
}
