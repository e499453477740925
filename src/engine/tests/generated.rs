//! Objects of a chart whose values are made up once.

use std::sync::Arc;

use super::harness::{Harness, release_key};
use super::world::{AuditEntry, FIRST, SET, World, config, desired, reading, workload};
use crate::engine::facts::release_annotation::{SealedFacts, SealedOverlay};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

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

// It would be missing, as it would not fit the others.
#[test]
fn what_is_there_beside_values_of_another_render_is_not_deleted_to_be_created_again() {
    let [login, web, ..] = names();
    let check = |render: &str, expected: Option<Reason>| {
        let mut harness = Harness::new(3);
        harness.read(installed("1"));
        harness.settle();
        let mut wanted = (*made_up(&login, "shop/web", render)).clone();
        (wanted.hash, wanted.traits.recreate) = (desired(&login, 2, "").hash, RecreatePolicy::Allowed);
        harness.read(reading("r2", &[("login", Some(wanted.into()))]));
        let action = harness.decide(&login).action;
        assert!(matches!(action, Action::Apply(_)), "{action:?}");
        let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
        harness.engine.record_result(&login, &action, ActionResult::Failed(why), harness.now);
        let decision = harness.decide(&login);
        assert_eq!(matches!(decision.action, Action::Delete(..)), expected.is_none(), "{decision:?}");
        assert_eq!(decision.reason, expected, "{render}");
    };
    check("1", None);
    check("2", Some(Reason::Generated(web)));
}

// Somebody who may write one object of a release would hold back all others of it.
#[test]
fn only_a_render_that_a_seal_proves_holds_others_back() {
    let check = |alter: &dyn Fn(&str) -> String, expected: &[ObjectId]| {
        let [login, web, ..] = names();
        let mut harness = Harness::new(3);
        for render in ["1", "2"] {
            harness.read(installed(render));
            harness.settle();
        }
        let mut live = World::live(&web, &harness.world.things[&web]);
        let release = live.release.take().unwrap();
        let render = live.sealed_render.take().map(|render| *render);
        let facts = SealedFacts { render, ..SealedFacts::of(PruneTiming::AfterUnit, 1) };
        let seal = Some(ReleaseKey::of(&release_key()).seal(SET, &web, &release, facts));
        let text = ReleaseAnnotation { release, seal }.to_string();
        live.unproven_release = ReleaseAnnotation::parse(&alter(&text)).map(Box::new);
        live.rv = ResourceVersion(harness.world.tick());
        harness.engine.observe_object(&web, live);
        assert_eq!(created(&mut harness, |harness| lose(harness, &login)), expected, "{text}");
    };
    let [first, second] = ["1", "2"].map(|render| GeneratedMark::new("", render).render_hash().to_string());
    let [login, ..] = names();
    check(&str::to_owned, &[]);
    check(&|text: &str| text.replace(&first, &second), std::slice::from_ref(&login));
    check(&|text: &str| text.replace(&format!(" render={first}"), ""), std::slice::from_ref(&login));
    check(&|text: &str| text.split(' ').next().unwrap_or_default().to_owned(), &[login]);
}

#[test]
fn a_seal_names_the_render_of_the_creation_until_the_object_is_created_anew() {
    let [login, ..] = names();
    let mut harness = Harness::new(3);
    harness.read(installed("1"));
    harness.settle();
    let sealed = |harness: &Harness, precondition: Precondition| {
        let apply = ApplyRequest {
            desired: made_up(&login, "shop/web", "2"),
            source: FIRST,
            revision: Revision::new("r2"),
            seal: None,
            precondition,
            decided_on: None,
            variant: ApplyVariant::PLAIN,
            purpose: ApplyPurpose::Change,
            restarts: RestartRisk::Absent,
        };
        let decision = harness.engine.seal_decision(&login, Decision::act(Action::Apply(apply)));
        let Action::Apply(apply) = decision.action else { panic!("{decision:?}") };
        let read = ReleaseAnnotation::parse(&apply.release_annotation().to_string()).unwrap();
        ReleaseKey::of(&release_key()).proven_facts(SET, &login, &read).unwrap().render
    };
    let render = |render: &str| Some(GeneratedMark::new("shop/web", render).render_hash());
    let uid = World::live(&login, &harness.world.things[&login]).uid;
    assert_eq!(sealed(&harness, Precondition::Uid(uid.clone())), render("1"));
    assert_eq!(sealed(&harness, Precondition::Absent), render("2"));
    // An older version created it, and nothing proves by which render.
    let rv = harness.world.tick();
    let created = harness.world.things.get_mut(&login).unwrap();
    (created.rv, created.generated) = (rv, None);
    harness.world.announce(&login);
    harness.deliver(usize::MAX);
    assert_eq!(sealed(&harness, Precondition::Uid(uid)), None);
}

#[test]
fn the_render_of_an_annotation_is_read_back_beside_an_overlay() {
    let (web, key) = (workload("web"), ReleaseKey::of(&release_key()));
    let release = ContentRef { hash: desired(&web, 1, "web").hash, revision: Revision::new("r1") };
    for overlay in [None, Some(RolloutOverlay::Surge { pods: 2, step: 1 })] {
        let facts = SealedFacts {
            overlay: SealedOverlay::Known(overlay),
            render: Some(GeneratedMark::new("shop/web", "1").render_hash()),
            ..SealedFacts::of(PruneTiming::AfterUnit, 7)
        };
        let seal = Some(key.seal(SET, &web, &release, facts));
        let annotation = ReleaseAnnotation { release: release.clone(), seal };
        let read = ReleaseAnnotation::parse(&annotation.to_string()).unwrap();
        assert_eq!(read, annotation);
        assert_eq!(key.proven_facts(SET, &web, &read), Some(facts), "{read}");
    }
    let garbled = format!("{release} {} 7 render=x", release.hash);
    assert_eq!(ReleaseAnnotation::parse(&garbled).map(|read| read.seal), Some(None));
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
