//! Deletions under a hold or a pause: what is to go stays as long as a person asks for that.

use std::time::Duration;

use super::harness::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

const HOLD: (Option<&str>, Option<&str>) = (None, Some("1-a until=1970-01-01T00:01:00Z heap dump"));
const PAUSE: (Option<&str>, Option<&str>) = (Some("1-a looking at it"), None);

fn web(content: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.traits.recreate = RecreatePolicy::Allowed;
    web.into()
}

/// Returns a cluster in which all of r1 was released, and an object has these annotations.
fn at_rest(id: &ObjectId, (paused, hold): (Option<&str>, Option<&str>)) -> Harness {
    let mut harness = Harness::new(3);
    let maps = ["a", "b"].map(|name| (name, Some(desired(&config(name), 1, name))));
    harness.read(reading("r1", &[maps.to_vec(), vec![("web", Some(web(1)))]].concat()));
    harness.settle();
    annotate(&mut harness, id, paused, hold);
    harness.settle();
    harness.world.log.clear();
    harness
}

fn annotate(harness: &mut Harness, id: &ObjectId, paused: Option<&str>, hold: Option<&str>) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.rv, thing.objects_with_intents) = (rv, ObjectIntents::parse(None, paused, hold));
    harness.world.announce(id);
}

/// Ends the hold or the pause of an object.
fn release(harness: &mut Harness, id: &ObjectId, (_, hold): (Option<&str>, Option<&str>)) {
    if hold.is_some() {
        harness.pass_time(Duration::from_mins(1));
        harness.engine.mark_dirty(id);
    } else {
        annotate(harness, id, None, None);
    }
    harness.settle();
}

fn deleted(harness: &Harness) -> Vec<&ObjectId> {
    let log = harness.world.log.iter();
    log.filter_map(|entry| if let AuditEntry::Deleted(id, _) = entry { Some(id) } else { None }).collect()
}

fn reason(harness: &mut Harness, id: &ObjectId) -> String {
    harness.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

#[test]
fn what_is_no_longer_wanted_stays_as_long_as_it_is_held_or_paused() {
    let a = config("a");
    for (asked, expected) in [
        (HOLD, "on hold until 1970-01-01T00:01:00Z: heap dump; its deletion is pending"),
        (PAUSE, "it is paused: looking at it"),
    ] {
        let mut harness = at_rest(&a, asked);
        harness.read(reading("r2", &[("a", None)]));
        harness.settle();
        assert_eq!(harness.world.log, [], "{asked:?}");
        assert_eq!(reason(&mut harness, &a), expected);
        release(&mut harness, &a, asked);
        assert_eq!(deleted(&harness), [&a], "{asked:?}");
    }
}

#[test]
fn what_is_held_or_paused_is_not_deleted_to_be_created_again() {
    let id = workload("web");
    for asked in [HOLD, PAUSE] {
        let mut harness = at_rest(&id, (None, None));
        harness.read(reading("r2", &[("web", Some(web(2)))]));
        let action = harness.decide(&id).action;
        let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
        harness.engine.record_result(&id, &action, ActionResult::Failed(why), harness.now);
        annotate(&mut harness, &id, asked.0, asked.1);
        harness.settle();
        let why = reason(&mut harness, &id);
        assert_eq!(harness.world.log, [], "{asked:?}: {why}");
        release(&mut harness, &id, asked);
        assert_eq!(deleted(&harness), [&id], "{asked:?}");
        assert!(harness.world.things.contains_key(&id), "{asked:?}");
    }
}
