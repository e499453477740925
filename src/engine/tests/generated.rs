//! Objects of a chart whose values are made up once.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{AuditEntry, config, desired, reading};
use crate::engine::*;
use crate::object::ObjectId;

/// Returns a wanted object of a release, with values of this render.
fn made_up(id: &ObjectId, release: &str, render: &str) -> SharedDesiredObject {
    let wanted = (*desired(id, 1, id.name())).clone();
    Arc::new(DesiredObject { generated: Some(Box::new(GeneratedMark::new(release, render))), ..wanted })
}

/// Returns a source with two objects of one release, a third of another, and one with nothing made
/// up.
fn installed(render: &str) -> SourceReading {
    let [login, web, other, plain] = names();
    reading(
        &format!("r{render}"),
        &[
            ("login", Some(made_up(&login, "shop/web", render))),
            ("web", Some(made_up(&web, "shop/web", render))),
            ("other", Some(made_up(&other, "shop/other", render))),
            ("plain", Some(desired(&plain, 1, "plain"))),
        ],
    )
}

fn names() -> [ObjectId; 4] {
    ["login", "web", "other", "plain"].map(config)
}

fn lose(harness: &mut Harness, id: &ObjectId) {
    harness.world.things.remove(id);
    harness.world.tick();
    harness.world.announce(id);
    harness.settle();
}

fn created(harness: &mut Harness, act: impl FnOnce(&mut Harness)) -> Vec<ObjectId> {
    harness.world.log.clear();
    act(harness);
    let made = harness.world.log.iter().filter_map(|entry| match entry {
        AuditEntry::Created(id) => Some(id.clone()),
        _ => None,
    });
    made.collect()
}

#[test]
fn what_one_render_made_up_is_created_together_and_repaired() {
    let [login, web, other, plain] = names();
    let mut harness = Harness::new(3);
    harness.read(installed("1"));
    let mut made = created(&mut harness, Harness::settle);
    made.sort();
    let mut expected = vec![login.clone(), web, other, plain];
    expected.sort();
    assert_eq!(made, expected);
    assert_eq!(created(&mut harness, |harness| lose(harness, &login)), [login]);
}

#[test]
fn what_is_missing_beside_values_of_another_render_is_held() {
    let [login, web, other, plain] = names();
    let mut harness = Harness::new(3);
    harness.read(installed("1"));
    harness.settle();
    // The same chart, rendered anew.
    harness.read(installed("2"));
    harness.settle();
    assert_eq!(created(&mut harness, |harness| lose(harness, &login)), []);
    assert_eq!(harness.decide(&login).reason, Some(Reason::Generated(web.clone())));
    assert_eq!(created(&mut harness, |harness| lose(harness, &plain)), [plain], "nothing is made up in it");
    assert_eq!(
        created(&mut harness, |harness| lose(harness, &other)),
        [other],
        "nobody else is of its release"
    );
    // Once nothing of the release is there, all of it is made anew.
    let mut made = created(&mut harness, |harness| lose(harness, &web));
    made.sort();
    assert_eq!(made, [login, web]);
}

#[test]
fn what_nobody_knows_the_render_of_fits_nothing() {
    let [login, web, ..] = names();
    let mut harness = Harness::new(3);
    harness.read(installed("1"));
    harness.settle();
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&web).unwrap();
    (thing.generated, thing.rv) = (None, rv);
    harness.world.announce(&web);
    harness.settle();
    assert_eq!(created(&mut harness, |harness| lose(harness, &login)), []);
    assert_eq!(harness.decide(&login).reason, Some(Reason::Generated(web)));
}

#[test]
fn a_mark_is_read_as_it_is_written() {
    let mark = GeneratedMark::new("shop/web", "0123");
    assert_eq!(mark.to_string(), "shop/web 0123");
    assert_eq!(GeneratedMark::parse("shop/web 0123"), Some(mark));
    for wrong in ["", "shop/web", &format!("shop/web {}", "0".repeat(200))] {
        assert_eq!(GeneratedMark::parse(wrong), None, "{wrong}");
    }
}
