//! Ways back of something of which nobody knows what it was before: nothing is torn, and nothing is taken away.

use std::sync::Arc;

use super::lost::{assert_all_show, assert_held};
use super::rig::Harness;
use super::world::{AuditEntry, World, WorldObject, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId};

/// `web`, which uses env, and a second workload beside it.
fn files(content: u32) -> Vec<(&'static str, Option<SharedDesired>)> {
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

/// Revision r1 is at rest, and one workload fails with its second content.
fn at_rest(most: u32, bad: &str) -> Harness {
    let mut rig = Harness::new(most);
    rig.read(reading("r1", &files(1)));
    rig.settle();
    rig.world.log.clear();
    rig.world.bad.insert(hash(&workload(bad), 2));
    rig
}

/// Somebody changes what stands on an object, while rhumb is away.
fn meddle(rig: &mut Harness, most: u32, id: &ObjectId, change: impl FnOnce(&mut WorldObject)) {
    let rv = rig.world.tick();
    let thing = rig.world.things.get_mut(id).unwrap();
    change(thing);
    (thing.rv, thing.shape) = (rv, rv);
    rig.engine = rig.fresh(most);
}

fn disown(thing: &mut WorldObject) {
    (thing.release, thing.labelled) = (None, false);
}

fn strip(thing: &mut WorldObject) {
    thing.release = None;
}

fn shown(rig: &Harness, id: &ObjectId) -> Option<ContentHash> {
    Some(rig.world.things.get(id)?.release.as_ref()?.hash)
}

#[test]
fn where_nobody_knows_what_one_of_a_unit_was_before_all_of_it_stays() {
    for change in [disown, strip] {
        for unknown in ids() {
            let mut rig = at_rest(4, "zone");
            meddle(&mut rig, 4, &unknown, change);
            rig.read(reading("r2", &files(2)));
            rig.engine.rollouts.window = 4;
            rig.settle();
            let why = format!("; it cannot go back, as nobody knows what {unknown} was before");
            assert_held(&mut rig, &ids(), files, ["revision r2 failed: Deployment shop/zone: ", &why]);
        }
    }
}

#[test]
fn whenever_the_process_dies_nothing_of_it_goes_back_alone() {
    for unknown in ids() {
        for point in 0..60 {
            let mut rig = at_rest(4, "zone");
            meddle(&mut rig, 4, &unknown, disown);
            rig.read(reading("r2", &files(2)));
            for _ in 0..point {
                rig.turn();
            }
            rig.engine = rig.fresh(4);
            rig.read(reading("r2", &files(2)));
            rig.engine.mark_all();
            rig.settle();
            // Where its turn has not come as the other workload fails, it stays as it was.
            let touched = |id: &ObjectId| rig.world.log.contains(&AuditEntry::Changed(id.clone()));
            let expected = if touched(&unknown) { 2 } else { 1 };
            for id in ids().into_iter().filter(|id| touched(id)) {
                let told = format!("{id}, {unknown}, {point}: {:#?}", rig.world.log);
                assert_eq!(shown(&rig, &id), Some(hash(&id, expected)), "{told}");
            }
            let deleted = rig.world.log.iter().any(|wrote| matches!(wrote, AuditEntry::Deleted(..)));
            assert!(!deleted, "{unknown}, {point}: {:#?}", rig.world.log);
        }
    }
}

/// An object that waits for its turn as the unit fails has nothing to go back from.
#[test]
fn what_was_never_written_keeps_nothing_from_going_back() {
    let mut rig = at_rest(1, "web");
    meddle(&mut rig, 1, &workload("zone"), disown);
    rig.read(reading("r2", &files(2)));
    rig.settle();
    for id in [config("env"), workload("web")] {
        assert_eq!(shown(&rig, &id), Some(hash(&id, 1)), "{:#?}", rig.world.log);
    }
    assert_eq!(rig.world.rejections[0].way, RejectionAction::RollBack);
    let zone = &rig.world.things[&workload("zone")];
    assert!(!zone.labelled && zone.release.is_none(), "it was written: {:#?}", rig.world.log);
    assert!(rig.world.is_free());
}

/// A write that is on its way may yet be carried out.
#[test]
fn what_is_being_written_is_waited_for() {
    let zone = workload("zone");
    let mut rig = at_rest(2, "web");
    meddle(&mut rig, 2, &zone, disown);
    rig.read(reading("r2", &files(2)));
    rig.engine.rollouts.window = 2;
    let mut sent = None;
    for _ in 0..400 {
        rig.deliver(usize::MAX);
        if sent.is_some() {
            rig.finish_rollouts();
        } else {
            match rig.decide(&zone) {
                Decision { action: action @ Action::Apply(_), .. } => {
                    rig.engine.dispatched(&zone, &action);
                    sent = Some(action);
                }
                other => drop(rig.act(&zone, other)),
            }
        }
        rig.engine.advance(rig.now);
        rig.keep_book();
        rig.engine.settle();
        for id in rig.engine.take_dirty().into_iter().filter(|id| *id != zone) {
            rig.step(&id);
        }
    }
    assert_eq!(rig.world.rejections.len(), 1, "{:#?}", rig.world.log);
    assert_eq!(shown(&rig, &config("env")), Some(hash(&config("env"), 2)));
    let action = sent.unwrap();
    let outcome = rig.world.perform(&zone, &action);
    rig.engine.outcome(&zone, &action, outcome, rig.now);
    rig.settle();
    assert_all_show(&rig, &ids(), 2);
    assert_eq!(rig.world.rejections[0].way, RejectionAction::Hold);
}

/// An object that the informers do not show, as it lacks the label, is not taken for absent before
/// anybody has looked: a rollback would delete it.
#[test]
fn what_is_adopted_is_never_taken_for_added() {
    let env = config("env");
    let mut rig = at_rest(4, "zone");
    meddle(&mut rig, 4, &env, disown);
    rig.read(reading("r2", &files(2)));
    for _ in 0..3 {
        for id in [workload("web"), workload("zone")] {
            rig.step(&id);
        }
        rig.keep_book();
    }
    rig.settle();
    assert!(rig.world.things.contains_key(&env), "{:#?}", rig.world.log);
    assert_all_show(&rig, &ids(), 2);
    let live = World::live(&env, &rig.world.things[&env]);
    assert_eq!(live.owner, ObjectOwner::Ours(super::world::SET.into()));
}
