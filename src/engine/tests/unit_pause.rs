//! A pause in the middle of a unit: all of it is released, or nothing.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{FIRST, World, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId};

fn files(content: u32) -> Vec<(&'static str, Option<SharedDesiredObject>)> {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    let env = desired(&config("env"), content, "env");
    vec![("env", Some(env)), ("web", Some(Arc::new(web)))]
}

fn shown(harness: &Harness, id: &ObjectId) -> ContentHash {
    harness.world.things[id].release.as_ref().unwrap().hash
}

fn contents(harness: &Harness) -> [bool; 2] {
    [config("env"), workload("web")].map(|id| shown(harness, &id) == desired(&id, 2, "").hash)
}

fn pause(harness: &mut Harness, paused: Option<&ObjectId>, token: Option<&str>) {
    let Some(id) = paused else {
        let known = harness.engine.source(FIRST).inventory.clone().unwrap();
        let paused = token.and_then(PauseIntent::parse);
        harness.world.paused.clone_from(&paused);
        return harness.engine.set_inventory(FIRST, Inventory { paused, ..known });
    };
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(id).unwrap();
    (thing.rv, thing.objects_with_intents) = (rv, ObjectIntents::parse(None, token, None));
    let live = World::live(id, thing);
    harness.engine.observe_object(id, live);
}

#[test]
fn whenever_somebody_pauses_a_unit_is_released_completely_or_not_at_all() {
    let (env, web) = (config("env"), workload("web"));
    let mut seen = [false; 2];
    for paused in [Some(&env), Some(&web), None] {
        for point in 0..40 {
            let mut harness = Harness::new(1);
            harness.read(reading("r1", &files(1)));
            harness.settle();
            harness.read(reading("r2", &files(2)));
            for _ in 0..point {
                harness.turn();
            }
            pause(&mut harness, paused, Some("1-a"));
            harness.settle();
            let [first, second] = contents(&harness);
            assert_eq!(first, second, "{paused:?}, {point}: {:#?}", harness.world.log);
            assert!(harness.engine.workloads_in_flight().is_empty(), "{paused:?}, {point}");
            seen[usize::from(first)] = true;
            pause(&mut harness, paused, None);
            harness.settle();
            assert_eq!(contents(&harness), [true, true], "{paused:?}, {point}");
            assert!(harness.world.is_free(), "{paused:?}, {point}");
        }
    }
    assert_eq!(seen, [true, true], "both come up");
}

// Neither needs the other, and both are for one workload.
#[test]
fn a_pause_of_one_configuration_keeps_the_others_of_its_unit() {
    let files = |content| {
        let mut web = (*desired(&workload("web"), content, "web")).clone();
        web.needs = [config("one"), config("two")].into();
        let of = |name: &'static str| (name, Some(desired(&config(name), content, name)));
        [of("one"), of("two"), ("web", Some(Arc::new(web)))]
    };
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    while harness.world.ledger.units.is_empty() {
        harness.turn();
    }
    let objects = [config("one"), config("two"), workload("web")];
    let is_new =
        |harness: &Harness| objects.each_ref().map(|id| shown(harness, id) == desired(id, 2, "").hash);
    assert_eq!(is_new(&harness), [false; 3]);
    for paused in &objects {
        let mut harness = harness.clone();
        pause(&mut harness, Some(paused), Some("1-a"));
        harness.settle();
        assert_eq!(is_new(&harness), [false; 3], "{paused}");
        pause(&mut harness, Some(paused), None);
        harness.settle();
        assert_eq!(is_new(&harness), [true; 3], "{paused}");
    }
}
