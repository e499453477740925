//! Records of an inventory that cannot be read: what they could forbid waits, and nothing else.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{FIRST, config, desired, id, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

fn reason(harness: &mut Harness, id: &ObjectId) -> Option<String> {
    harness.decide(id).reason.map(|reason| reason.to_string())
}

#[test]
fn nothing_new_is_released_while_a_record_of_what_failed_cannot_be_read() {
    let (a, mut harness) = (config("a"), Harness::new(9));
    let file = |content: u32| [("a", Some(desired(&config("a"), content, "a")))];
    harness.read(reading("r1", &file(1)));
    harness.settle();
    harness.world.log.clear();
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    let unread = Inventory { unreadable_rejections: Some("it cannot be read".into()), ..known.clone() };
    harness.engine.set_inventory(FIRST, unread);
    harness.read(reading("r2", &file(2)));
    harness.settle();
    assert!(harness.world.log.is_empty(), "{:?}", harness.world.log);
    assert_eq!(reason(&mut harness, &a).as_deref(), Some("it cannot be read"));
    harness.engine.set_inventory(FIRST, known);
    harness.settle();
    assert_eq!(harness.world.log.len(), 1);
}

#[test]
fn a_record_of_ended_jobs_that_cannot_be_read_holds_back_what_goes_away_by_itself() {
    let check = |lifetime: ObjectLifetime, is_made: bool| {
        let (other, mut harness) = (id("", "ConfigMap", "shop", "once"), Harness::new(9));
        let mut once = (*desired(&other, 1, "once")).clone();
        once.traits.lifetime = lifetime;
        let known = harness.engine.source(FIRST).inventory.clone().unwrap();
        let unread = Inventory { unreadable_finished: Some("it cannot be read".into()), ..known };
        harness.engine.set_inventory(FIRST, unread);
        harness.read(reading("r1", &[("once", Some(Arc::new(once)))]));
        harness.settle();
        assert_eq!(!harness.world.log.is_empty(), is_made, "{lifetime:?}");
    };
    check(ObjectLifetime::Unlimited, true);
    check(ObjectLifetime::AfterFinish, false);
}

// A workload that is new asks nothing of the budget, which wakes those that ask it.
#[test]
fn data_that_wait_for_an_unreadable_ledger_are_released_once_it_can_be_read() {
    let (web, env, mut harness) = (workload("web"), config("env"), Harness::new(9));
    let data = |content: u32| ("env", Some(desired(&env, content, "env")));
    harness.read(reading("r1", &[data(1)]));
    harness.settle();
    harness.engine.set_ledger_unreadable("it is away");
    let mut wanted = (*desired(&web, 1, "web")).clone();
    wanted.needs = [env.clone()].into();
    harness.read(reading("r2", &[data(2), ("web", Some(Arc::new(wanted)))]));
    for id in [&env, &web] {
        harness.step(id);
    }
    let shown = |harness: &Harness| harness.world.things[&env].release.as_ref().map(|release| release.hash);
    let content = |content: u32| Some(desired(&env, content, "").hash);
    assert_eq!(reason(&mut harness, &env).as_deref(), Some("it is away"));
    assert_eq!(shown(&harness), content(1));
    harness.engine.take_dirty();
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.settle();
    assert_eq!(shown(&harness), content(2));
    assert!(harness.world.things.contains_key(&web));
}
