//! Rollbacks of something of which nobody knows what it was before: nothing is torn, and nothing is
//! taken away.

use std::sync::Arc;

use super::harness::Harness;
use super::lost::{assert_all_show, assert_held};
use super::world::{AuditEntry, World, WorldObject, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId};

/// Returns `web`, which uses env, and a second workload beside it.
fn files(content: u32) -> Vec<(&'static str, Option<SharedDesiredObject>)> {
    let uses = |name: &str| {
        let mut one = (*desired(&workload(name), content, name)).clone();
        one.needs = [config("env")].into();
        Arc::new(one)
    };
    let env = desired(&config("env"), content, "env");
    vec![("env", Some(env)), ("web", Some(uses("web"))), ("zone", Some(uses("zone")))]
}

fn ids() -> [ObjectId; 3] {
    [config("env"), workload("web"), workload("zone")]
}

fn hash(id: &ObjectId, content: u32) -> ContentHash {
    desired(id, content, "").hash
}

/// Returns revision r1 at rest; one workload fails with its second content.
fn at_rest(most: u32, bad: &str) -> Harness {
    let mut harness = Harness::new(most);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.log.clear();
    harness.world.bad.insert(hash(&workload(bad), 2));
    harness
}

/// Changes the fields of an object as somebody else, while rhumb is away.
fn meddle(harness: &mut Harness, most: u32, id: &ObjectId, change: impl FnOnce(&mut WorldObject)) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    change(thing);
    (thing.rv, thing.shape) = (rv, rv);
    harness.engine = harness.fresh(most);
}

fn disown(thing: &mut WorldObject) {
    (thing.release, thing.labelled) = (None, false);
}

fn strip(thing: &mut WorldObject) {
    thing.release = None;
}

fn shown(harness: &Harness, id: &ObjectId) -> Option<ContentHash> {
    Some(harness.world.things.get(id)?.release.as_ref()?.hash)
}

#[test]
fn where_nobody_knows_what_one_of_a_unit_was_before_all_of_it_stays() {
    for change in [disown, strip] {
        for unknown in ids() {
            let mut harness = at_rest(4, "zone");
            meddle(&mut harness, 4, &unknown, change);
            harness.read(reading("r2", &files(2)));
            harness.engine.rollouts.slot_requests.set_slow_start_limit(4);
            harness.settle();
            let why = format!("; it cannot go back, as the earlier content of {unknown} is not known");
            assert_held(&mut harness, &ids(), files, ["revision r2 failed: Deployment shop/zone: ", &why]);
        }
    }
}

#[test]
fn whenever_the_process_dies_nothing_of_it_goes_back_alone() {
    for unknown in ids() {
        for point in 0..60 {
            let mut harness = at_rest(4, "zone");
            meddle(&mut harness, 4, &unknown, disown);
            harness.read(reading("r2", &files(2)));
            for _ in 0..point {
                harness.turn();
            }
            harness.engine = harness.fresh(4);
            harness.read(reading("r2", &files(2)));
            harness.engine.mark_all();
            harness.settle();
            // Where its turn has not come as the other workload fails, it stays as it was.
            let is_changed = |id: &ObjectId| harness.world.log.contains(&AuditEntry::Changed(id.clone()));
            let expected = if is_changed(&unknown) { 2 } else { 1 };
            for id in ids().into_iter().filter(|id| is_changed(id)) {
                let context = format!("{id}, {unknown}, {point}: {:#?}", harness.world.log);
                assert_eq!(shown(&harness, &id), Some(hash(&id, expected)), "{context}");
            }
            let deleted = harness.world.log.iter().any(|wrote| matches!(wrote, AuditEntry::Deleted(..)));
            assert!(!deleted, "{unknown}, {point}: {:#?}", harness.world.log);
        }
    }
}

// An object that waits for its turn as the unit fails has nothing to go back from.
#[test]
fn what_was_never_written_keeps_nothing_from_going_back() {
    let mut harness = at_rest(1, "web");
    meddle(&mut harness, 1, &workload("zone"), disown);
    harness.read(reading("r2", &files(2)));
    harness.settle();
    for id in [config("env"), workload("web")] {
        assert_eq!(shown(&harness, &id), Some(hash(&id, 1)), "{:#?}", harness.world.log);
    }
    assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
    let zone = &harness.world.things[&workload("zone")];
    assert!(!zone.labelled && zone.release.is_none(), "it was written: {:#?}", harness.world.log);
    assert!(harness.world.is_free());
}

// A write that is on its way may yet be carried out.
#[test]
fn what_is_being_written_is_waited_for() {
    let zone = workload("zone");
    let mut harness = at_rest(2, "web");
    meddle(&mut harness, 2, &zone, disown);
    harness.read(reading("r2", &files(2)));
    harness.engine.rollouts.slot_requests.set_slow_start_limit(2);
    let mut sent = None;
    for _ in 0..400 {
        harness.deliver(usize::MAX);
        if sent.is_some() {
            harness.finish_rollouts();
        } else {
            match harness.decide(&zone) {
                Decision { action: action @ Action::Apply(_), .. } => {
                    harness.engine.note_dispatch(&zone, &action);
                    sent = Some(action);
                }
                other => drop(harness.act(&zone, other)),
            }
        }
        harness.engine.advance(harness.now);
        harness.keep_ledger();
        harness.engine.process_changes();
        for id in harness.engine.take_dirty().into_iter().filter(|id| *id != zone) {
            harness.step(&id);
        }
    }
    assert_eq!(harness.world.rejections.len(), 1, "{:#?}", harness.world.log);
    assert_eq!(shown(&harness, &config("env")), Some(hash(&config("env"), 2)));
    let action = sent.unwrap();
    let outcome = harness.world.perform(&zone, &action);
    harness.engine.record_result(&zone, &action, outcome, harness.now);
    harness.settle();
    assert_all_show(&harness, &ids(), 2);
    assert_eq!(harness.world.rejections[0].action, RejectionAction::Quarantine);
}

// An object that the informers do not show, as it lacks the label, is not taken for absent before
// anybody has looked. A rollback would delete it.
#[test]
fn what_is_adopted_is_never_taken_for_added() {
    let env = config("env");
    let mut harness = at_rest(4, "zone");
    meddle(&mut harness, 4, &env, disown);
    harness.read(reading("r2", &files(2)));
    for _ in 0..3 {
        for id in [workload("web"), workload("zone")] {
            harness.step(&id);
        }
        harness.keep_ledger();
    }
    harness.settle();
    assert!(harness.world.things.contains_key(&env), "{:#?}", harness.world.log);
    assert_all_show(&harness, &ids(), 2);
    let live = World::live(&env, &harness.world.things[&env]);
    assert_eq!(live.owner, ObjectOwner::Ours(super::world::SET.into()));
}

/// Goes on until a revision has failed that brought a configuration of which nobody knows what it
/// was before.
fn failed_with_unknown(env: &ObjectId) -> Harness {
    let mut harness = at_rest(4, "zone");
    meddle(&mut harness, 4, env, disown);
    harness.read(reading("r2", &files(2)));
    harness.engine.rollouts.slot_requests.set_slow_start_limit(4);
    for _ in 0..400 {
        if harness.world.rejections.is_empty() {
            harness.turn();
        }
    }
    assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
    harness
}

// Another process cannot know which content it shows.
#[test]
fn where_the_annotation_of_one_of_a_failed_unit_is_gone_the_others_do_not_go_back_without_it() {
    let env = config("env");
    let mut harness = failed_with_unknown(&env);
    meddle(&mut harness, 4, &env, strip);
    harness.read(reading("r2", &files(2)));
    harness.settle();
    for id in [workload("web"), workload("zone")] {
        assert_eq!(shown(&harness, &id), Some(hash(&id, 2)), "{id}: {:#?}", harness.world.log);
    }
    assert_eq!(harness.world.rejections[0].action, RejectionAction::Quarantine);
}

// An object that a process does not see may show the failed content all the same.
#[test]
fn while_one_of_a_unit_cannot_be_seen_the_others_do_not_go_back_without_it() {
    let env = config("env");
    let mut harness = failed_with_unknown(&env);
    let all = harness.world.clone();
    harness.world.things.remove(&env);
    harness.engine = harness.fresh(4);
    harness.world = all;
    let away = KindState::Unobservable("it does not answer".into(), crate::object::ErrorClass::Transient);
    harness.engine.set_informer_state(&env.group_kind(), away);
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert_all_show(&harness, &ids(), 2);
    harness.engine.set_informer_state(&env.group_kind(), KindState::Synced);
    harness.engine.observe_object(&env, World::live(&env, &harness.world.things[&env]));
    harness.settle();
    let why = format!("; it cannot go back, as the earlier content of {env} is not known");
    assert_held(&mut harness, &ids(), files, ["revision r2 failed: Deployment shop/zone: ", &why]);
}
