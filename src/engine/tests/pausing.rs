//! A pause in the middle of a unit: all of it is released, or nothing.

use std::sync::Arc;

use super::rig::Harness;
use super::world::{World, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId};

fn files(content: u32) -> Vec<(&'static str, Option<SharedDesired>)> {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    let env = desired(&config("env"), content, "env");
    vec![("env", Some(env)), ("web", Some(Arc::new(web)))]
}

fn shown(rig: &Harness, id: &ObjectId) -> ContentHash {
    rig.world.things[id].release.as_ref().unwrap().hash
}

fn contents(rig: &Harness) -> [bool; 2] {
    [config("env"), workload("web")].map(|id| shown(rig, &id) == desired(&id, 2, "").hash)
}

fn pause(rig: &mut Harness, paused: Option<&ObjectId>, token: Option<&str>) {
    let Some(id) = paused else {
        let known = rig.engine.source(0).inventory.clone().unwrap();
        let paused = token.and_then(PauseIntent::parse);
        rig.world.paused.clone_from(&paused);
        return rig.engine.inventory(0, Inventory { paused, ..known });
    };
    let rv = rig.world.tick();
    let thing = rig.world.things.get_mut(id).unwrap();
    (thing.rv, thing.asked) = (rv, ObjectIntents::parse(None, token, None));
    let live = World::live(id, thing);
    rig.engine.seen(id, live);
}

#[test]
fn whenever_somebody_pauses_a_unit_is_released_whole_or_not_at_all() {
    let (env, web) = (config("env"), workload("web"));
    let mut seen = [false; 2];
    for paused in [Some(&env), Some(&web), None] {
        for point in 0..40 {
            let mut rig = Harness::new(1);
            rig.read(reading("r1", &files(1)));
            rig.settle();
            rig.read(reading("r2", &files(2)));
            for _ in 0..point {
                rig.turn();
            }
            pause(&mut rig, paused, Some("1-a"));
            rig.settle();
            let [first, second] = contents(&rig);
            assert_eq!(first, second, "{paused:?}, {point}: {:#?}", rig.world.log);
            assert!(rig.engine.in_flight().is_empty(), "{paused:?}, {point}");
            seen[usize::from(first)] = true;
            pause(&mut rig, paused, None);
            rig.settle();
            assert_eq!(contents(&rig), [true, true], "{paused:?}, {point}");
            assert!(rig.world.is_free(), "{paused:?}, {point}");
        }
    }
    assert_eq!(seen, [true, true], "both come up");
}
