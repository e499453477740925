//! Records of an inventory that cannot be read: what they could forbid waits, and nothing else.

use super::harness::Harness;
use super::world::{FIRST, config, desired, id, reading};
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
        harness.read(reading("r1", &[("once", Some(std::sync::Arc::new(once)))]));
        harness.settle();
        assert_eq!(!harness.world.log.is_empty(), is_made, "{lifetime:?}");
    };
    check(ObjectLifetime::Unlimited, true);
    check(ObjectLifetime::AfterFinish, false);
}
