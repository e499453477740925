//! Units in the rollout ledger: the objects that they name, what of them is shown, and where each
//! goes back to.

use super::harness::Harness;
use super::last_good::{files, hash};
use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, reading, workload};
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{ContentHash, ObjectId, Revision};

// Without its annotation only this process knows what it has written there.
#[test]
fn an_object_without_its_annotation_may_show_what_was_written_last_and_nothing_else() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    let check = |harness: &Harness, content: u32, expected: bool| {
        let content = Some(desired(&a, content, "a").hash);
        let member = UnitMember { content, rollback_target: RollbackTarget::Unknown, restarted: None };
        assert_eq!(harness.engine.can_show_unit_content(&a, &member), expected, "{content:?}");
    };
    check(&harness, 1, true);
    check(&harness, 2, false);
    let shown = harness.engine.live_object(&a).cloned().unwrap();
    let rv = ResourceVersion(shown.rv.0 + 1);
    harness.engine.observe_object(&a, LiveObject { release: None, rv, ..shown });
    check(&harness, 1, true);
    check(&harness, 2, false);
}

#[test]
fn an_object_goes_back_to_content_that_a_source_has_put_there_or_to_nothing() {
    let (a, b) = (config("a"), config("b"));
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    let good = ContentRef { hash: desired(&a, 1, "a").hash, revision: Revision::new("r1") };
    let target = |harness: &Harness, id| harness.engine.member(FIRST, id).rollback_target;
    assert_eq!(target(&harness, &a), RollbackTarget::Content(good.clone()));
    assert_eq!(target(&harness, &b), RollbackTarget::Absent);
    let shown = harness.engine.live_object(&a).cloned().unwrap();
    let (owner, rv) = (ObjectOwner::Ours("applyset-other-v1".into()), ResourceVersion(shown.rv.0 + 1));
    let other = LiveObject { rv, owner, ..shown };
    harness.engine.observe_object(&a, other.clone());
    let inventory_id = "applyset-other-v1".into();
    assert_eq!(target(&harness, &a), RollbackTarget::FormerContent { content: good, inventory_id });
    // Without the proof of a seal it is content of unknown origin.
    for owner in [other.owner.clone(), ObjectOwner::Nobody, ObjectOwner::Foreign("Flux".into())] {
        let rv = ResourceVersion(harness.engine.live_object(&a).unwrap().rv.0 + 1);
        harness.engine.observe_object(&a, LiveObject { rv, owner, release: None, ..other.clone() });
        assert_eq!(target(&harness, &a), RollbackTarget::Unknown);
    }
    // Nobody knows whether it is there.
    harness.engine.set_informer_state(&b.group_kind(), KindState::Syncing);
    assert_eq!(target(&harness, &b), RollbackTarget::Unknown);
}

// The failure may be recorded, or is still to be.
#[test]
fn content_that_failed_in_another_source_of_the_process_is_not_gone_back_to() {
    let (web, other) = (workload("web"), "applyset-other-v1");
    let release = |content: u32, revision: &str| ContentRef {
        hash: hash(&web, content),
        revision: Revision::new(revision),
    };
    let failed = |content: u32| {
        let rollback_target = RollbackTarget::Content(release(1, "r1"));
        let member = UnitMember { content: Some(hash(&web, content)), rollback_target, restarted: None };
        let members = [(web.clone(), member)].into();
        let unit = ReleaseUnit { inventory_id: SET.into(), revision: Revision::new("r2"), members };
        Rejection { unit, action: RejectionAction::Quarantine, cause: "it crashes".into() }
    };
    let check = |recorded: Option<u32>, pending: Option<u32>, content: ContentRef| {
        let mut engine = super::safety::engine(&[SET, other], &[web.group_kind()]);
        engine.set_ledger(RolloutLedger::default());
        let live = World::live(&web, &WorldObject::settled(hash(&web, 2), "r2", 1));
        engine.observe_object(&web, live.clone());
        let kept = desired(&workload("kept"), 1, "kept");
        engine.set_reading(FIRST, reading("r3", &[("kept", Some(kept))]));
        engine.set_reading(SECOND, reading("r3", &[("web", Some(desired(&web, 3, "web")))]));
        let known = engine.source(FIRST).inventory.clone().unwrap();
        let rejections = recorded.map(failed).into_iter().collect();
        engine.set_inventory(FIRST, Inventory { rejections, ..known });
        engine.sources[FIRST].pending_rejections = pending.map(failed).into_iter().collect();
        let target = engine.former_rollback_target(SECOND, &web, &live);
        let expected = RollbackTarget::FormerContent { content, inventory_id: SET.into() };
        assert_eq!(target, expected, "{recorded:?} {pending:?}");
    };
    check(None, None, release(2, "r2"));
    check(Some(2), None, release(1, "r1"));
    check(None, Some(2), release(1, "r1"));
    // Something else has failed.
    check(Some(9), Some(9), release(2, "r2"));
}

// Its deletion is drift, and does not choose what a rollback does.
#[test]
fn an_object_that_somebody_has_deleted_goes_back_to_the_content_in_force() {
    let (a, b) = (config("a"), config("b"));
    let content = |content: u32| desired(&a, content, "a").hash;
    let good = |hash| ContentRef { hash, revision: Revision::new("r1") };
    let check = |change: &dyn Fn(&mut Harness), expected: RollbackTarget| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
        harness.settle();
        harness.world.things.remove(&a);
        harness.world.announce(&a);
        harness.deliver(usize::MAX);
        harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a"))), ("b", Some(desired(&b, 1, "b")))]));
        change(&mut harness);
        assert_eq!(harness.engine.member(FIRST, &a).rollback_target, expected);
        assert_eq!(harness.engine.member(FIRST, &b).rollback_target, RollbackTarget::Absent);
    };
    let alter = |change: fn(&mut ObjectEntry)| {
        let a = a.clone();
        move |harness: &mut Harness| change(harness.engine.objects.entries.get_mut(&a).unwrap())
    };
    check(&|_| (), RollbackTarget::Content(good(content(1))));
    // It was never there, or rhumb has deleted it.
    check(&alter(|entry| entry.accepted = AcceptedContent::Nothing), RollbackTarget::Absent);
    // Nobody knows which revision had it.
    check(&alter(|entry| entry.revision = None), RollbackTarget::Unknown);
    let unread = |hash: ContentHash| {
        let a = a.clone();
        move |harness: &mut Harness| {
            let entry = harness.engine.objects.entries.get_mut(&a).unwrap();
            entry.accepted = AcceptedContent::Unread(good(hash));
        }
    };
    check(&unread(content(7)), RollbackTarget::Content(good(content(7))));
    let brought = |harness: &mut Harness| {
        let entry = harness.engine.objects.entries.get_mut(&a).unwrap();
        let mut theirs = (*desired(&a, 1, "a")).clone();
        theirs.body.source = SECOND;
        entry.accepted = AcceptedContent::Known(theirs.into());
    };
    check(&brought, RollbackTarget::Unknown);
    // A Job that has ended goes away by itself.
    let ended = |harness: &mut Harness| {
        let entry = harness.engine.objects.entries.get_mut(&a).unwrap();
        entry.rare.change(|rare| rare.ended = Some(content(1)));
    };
    check(&ended, RollbackTarget::Absent);
}

#[test]
fn an_object_that_somebody_has_deleted_does_not_go_back_to_content_that_failed() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    harness.world.things.remove(&a);
    harness.world.announce(&a);
    harness.deliver(usize::MAX);
    harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a")))]));
    let before = ContentRef { hash: desired(&a, 7, "a").hash, revision: Revision::new("r0") };
    let failed = UnitMember {
        content: Some(desired(&a, 1, "a").hash),
        rollback_target: RollbackTarget::Content(before.clone()),
        restarted: None,
    };
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r1"),
        members: [(a.clone(), failed)].into(),
    };
    let rejections = vec![Rejection { unit, action: RejectionAction::Quarantine, cause: "it failed".into() }];
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.handle(Input::Inventory { source: FIRST, inventory: Inventory { rejections, ..inventory } });
    assert_eq!(harness.engine.member(FIRST, &a).rollback_target, RollbackTarget::Content(before));
}

// Between the deletion and the repair, the record of the unit finds no object.
#[test]
fn a_workload_that_goes_back_gets_what_it_needs_back_though_somebody_deleted_that_before() {
    let (env, web) = (config("env"), workload("web"));
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(1, 1)));
    harness.settle();
    harness.world.bad.insert(hash(&web, 2));
    harness.world.things.remove(&env);
    harness.world.announce(&env);
    harness.deliver(usize::MAX);
    harness.read(reading("r2", &files(2, 2)));
    harness.step(&env);
    assert!(harness.engine.entry(&env).is_some_and(|entry| entry.direct_view == Some(DirectView::Absent)));
    harness.step(&web);
    let unit = harness.world.ledger.unit_of(SET, &env).expect("the unit is recorded");
    let good = ContentRef { hash: hash(&env, 1), revision: Revision::new("r1") };
    assert_eq!(unit.members[&env].rollback_target, RollbackTarget::Content(good));
    harness.settle();
    assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
    for id in [&env, &web] {
        let shown = harness.world.things.get(id).and_then(|thing| thing.release.as_ref());
        assert_eq!(shown.map(|release| release.hash), Some(hash(id, 1)), "{id}: {:#?}", harness.world.log);
    }
    assert!(harness.world.is_free());
}

#[test]
fn an_object_is_being_released_where_a_unit_of_an_inventory_of_this_process_names_it() {
    let (a, b) = (config("a"), config("b"));
    for (of, expected) in [(SET, true), ("applyset-theirs-v1", false)] {
        let mut harness = Harness::new(3);
        let member = UnitMember { content: None, rollback_target: RollbackTarget::Absent, restarted: None };
        let unit = ReleaseUnit {
            inventory_id: of.into(),
            revision: Revision::new("r1"),
            members: [(a.clone(), member)].into(),
        };
        harness.engine.set_ledger(RolloutLedger { units: vec![unit], ..RolloutLedger::default() });
        assert_eq!([&a, &b].map(|id| harness.engine.is_in_unit(id)), [expected, false], "{of}");
    }
}

/// Returns an object at rest, and the unit of it alone.
fn unit_at_rest() -> (ObjectId, Harness, ReleaseUnit) {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    let members = [(a.clone(), harness.engine.member(FIRST, &a))].into();
    let unit = ReleaseUnit { inventory_id: SET.into(), revision: Revision::new("r1"), members };
    (a, harness, unit)
}

// Nothing is known of its objects then, and it may have to go back.
#[test]
fn no_unit_is_over_before_its_source_and_its_inventory_were_read() {
    let (a, harness, unit) = unit_at_rest();
    let check = |lose: &dyn Fn(&mut Engine), expected: bool| {
        let mut harness = harness.clone();
        lose(&mut harness.engine);
        assert_eq!(harness.engine.is_concluded(&unit), expected);
    };
    check(&|_| (), true);
    check(&|engine| engine.sources[FIRST].head = None, false);
    check(&|engine| engine.sources[FIRST].inventory = None, false);
    check(&|engine| engine.set_informer_state(&a.group_kind(), KindState::Syncing), false);
}

#[test]
fn a_unit_is_over_once_all_of_it_that_is_still_wanted_is_written_rolled_out_and_healthy() {
    let (a, harness, unit) = unit_at_rest();
    let sicken = |engine: &mut Engine| {
        let mut live = engine.live_object(&a).cloned().unwrap();
        let health = Health::new(HealthStatus::InProgress, "it has just begun");
        (live.health, live.rv) = (health, ResourceVersion(live.rv.0 + 1));
        engine.observe_object(&a, live);
    };
    let ask = |engine: &mut Engine, content: Option<u32>| {
        let wanted = content.map(|content| desired(&a, content, "a"));
        engine.set_reading(FIRST, reading("r2", &[("a", wanted)]));
    };
    let roll = |engine: &mut Engine| {
        engine.rollouts.in_flight.insert(a.clone(), Rollout::new(BudgetSlot::None, 0, None, None));
    };
    let check = |change: &dyn Fn(&mut Engine), expected: bool| {
        let mut engine = harness.engine.clone();
        change(&mut engine);
        assert_eq!(engine.is_concluded(&unit), expected);
    };
    check(&|_| (), true);
    check(&sicken, false);
    check(&roll, false);
    check(&|engine| ask(engine, Some(2)), false);
    let drop_it = |engine: &mut Engine| {
        sicken(engine);
        ask(engine, None);
    };
    check(&drop_it, true);
}

// Its success decides about what it is released together with.
#[test]
fn a_new_workload_is_judged_where_it_is_in_a_unit_and_waited_for_nowhere_else() {
    let web = workload("web");
    for (is_in_unit, phase, expected) in [
        (true, WorkloadPhase::FirstStart, true),
        (false, WorkloadPhase::FirstStart, false),
        (true, WorkloadPhase::Settled, false),
    ] {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
        let member = harness.engine.member(FIRST, &web);
        let named = if is_in_unit { web.clone() } else { workload("other") };
        let unit = ReleaseUnit {
            inventory_id: SET.into(),
            revision: Revision::new("r1"),
            members: [(named, member)].into(),
        };
        harness.engine.set_ledger(RolloutLedger { units: vec![unit], ..RolloutLedger::default() });
        let thing = WorldObject { phase, ..WorldObject::settled(desired(&web, 1, "web").hash, "r1", 1) };
        harness.engine.observe_object(&web, World::live(&web, &thing));
        let is_judged = |harness: &Harness| harness.engine.rollouts.in_flight.contains_key(&web);
        assert_eq!(is_judged(&harness), expected, "{is_in_unit} {phase:?}");
        harness.engine.advance(harness.now);
        assert_eq!(is_judged(&harness), expected, "{is_in_unit} {phase:?}");
    }
}
