//! Ways back of which something cannot be read any more: all that is released together stays as it is.

use std::sync::Arc;

use super::rig::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

/// `web`, which uses env and other, and a second workload beside it.
fn files(content: u32) -> Vec<(&'static str, Option<SharedDesired>)> {
    let uses = |name: &str, needs: &[&str]| {
        let mut one = (*desired(&workload(name), content, name)).clone();
        one.needs = needs.iter().map(|need| config(need)).collect();
        Arc::new(one)
    };
    vec![
        ("env", Some(desired(&config("env"), content, "env"))),
        ("other", Some(desired(&config("other"), content, "other"))),
        ("api", Some(uses("api", &["env"]))),
        ("web", Some(uses("web", &["env", "other"]))),
    ]
}

fn ids() -> [ObjectId; 4] {
    [config("env"), config("other"), workload("api"), workload("web")]
}

fn hash(id: &ObjectId, content: u32) -> crate::object::ContentHash {
    desired(id, content, "").hash
}

/// Returns a cluster in which revision r1 is at rest, and whose web fails with its second content.
fn at_rest() -> Harness {
    let mut rig = Harness::new(4);
    rig.read(reading("r1", &files(1)));
    rig.settle();
    rig.world.log.clear();
    rig.world.bad.insert(hash(&workload("web"), 2));
    rig
}

/// The files of a source, with this content.
pub(super) type FileSet = fn(u32) -> Vec<(&'static str, Option<SharedDesired>)>;

#[track_caller]
pub(super) fn assert_all_show(rig: &Harness, ids: &[ObjectId], content: u32) {
    for id in ids {
        let shown = rig.world.things[id].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(hash(id, content)), "{id}: {:#?}", rig.world.log);
    }
}

/// Asserts that all of a unit that failed with its second content is held, for a reason that begins
/// and ends so, until there is a third one.
#[track_caller]
pub(super) fn assert_held(rig: &mut Harness, ids: &[ObjectId], files: FileSet, told: [&str; 2]) {
    assert_all_show(rig, ids, 2);
    assert_eq!(rig.world.rejections[0].way, RejectionAction::Hold);
    assert!(rig.engine.in_flight().is_empty(), "it holds a token for ever");
    assert!(rig.world.is_free());
    for id in ids {
        let reason = reason(rig, id);
        assert!(reason.starts_with(told[0]) && reason.ends_with(told[1]), "{id}: {reason}");
    }
    // It does not loop, and neither does the next process.
    let count = rig.world.log.len();
    rig.engine = rig.fresh(4);
    rig.read(reading("r2", &files(2)));
    rig.engine.mark_all();
    rig.settle();
    assert_eq!(rig.world.log.len(), count, "{:#?}", rig.world.log);
    // A new content ends it.
    rig.read(reading("r3", &files(3)));
    rig.settle();
    assert_all_show(rig, ids, 3);
    assert!(rig.world.rejections.is_empty());
}

fn reason(rig: &mut Harness, id: &ObjectId) -> String {
    rig.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

/// Whichever of them it is, the others do not go back without it.
#[test]
fn where_one_of_a_unit_cannot_be_read_any_more_all_of_it_stays() {
    for lost in ids() {
        let mut rig = at_rest();
        rig.history.remove(&hash(&lost, 1));
        rig.read(reading("r2", &files(2)));
        rig.settle();
        let why = format!("; it cannot go back, as revision r1 of {lost} cannot be read any more");
        assert_held(&mut rig, &ids(), files, ["revision r2 failed: Deployment shop/web: ", &why]);
    }
}

/// Whenever the process dies, nothing is torn by the one that comes after it.
#[test]
fn at_no_point_a_unit_goes_back_in_part() {
    for lost in ids() {
        for point in 0..60 {
            let mut rig = at_rest();
            rig.history.remove(&hash(&lost, 1));
            rig.read(reading("r2", &files(2)));
            for _ in 0..point {
                rig.turn();
            }
            rig.engine = rig.fresh(4);
            rig.read(reading("r2", &files(2)));
            rig.engine.mark_all();
            rig.settle();
            assert_all_show(&rig, &ids(), 2);
            let changed = |id: ObjectId| {
                rig.world.log.iter().filter(|w| **w == AuditEntry::Changed(id.clone())).count()
            };
            for id in ids() {
                assert_eq!(changed(id.clone()), 1, "{id}, {lost}, {point}: {:#?}", rig.world.log);
            }
        }
    }
}

/// The history is rewritten in the middle of a way back: what is back already need not be read.
#[test]
fn what_is_back_already_does_not_keep_the_rest_of_its_unit() {
    let mut rig = at_rest();
    rig.read(reading("r2", &files(2)));
    let first = |rig: &Harness| {
        let release = rig.world.things[&config("env")].release.clone();
        rig.world.rejections.first().is_some_and(|one| one.way == RejectionAction::RollBack)
            && release.is_some_and(|release| release.hash == hash(&config("env"), 1))
    };
    for _ in 0..200 {
        if !first(&rig) {
            rig.turn();
        }
    }
    assert!(first(&rig), "{:#?}", rig.world.log);
    rig.history.remove(&hash(&config("env"), 1));
    rig.engine = rig.fresh(4);
    rig.read(reading("r2", &files(2)));
    rig.settle();
    assert_all_show(&rig, &ids(), 1);
    let told = reason(&mut rig, &config("env"));
    assert!(told.ends_with("; it is back at revision r1, which cannot be read any more"), "{told}");
    assert_eq!(rig.world.rejections[0].way, RejectionAction::RollBack);
}

/// Contents come from several revisions, and are read one by one.
#[test]
fn nothing_goes_back_before_all_of_it_has_been_read() {
    let mut rig = at_rest();
    rig.read(reading("r2", &files(2)));
    for _ in 0..200 {
        if rig.world.rejections.is_empty() {
            rig.turn();
        }
    }
    assert_eq!(rig.world.rejections.len(), 1, "{:#?}", rig.world.log);
    rig.world.log.clear();
    let release = |id: &ObjectId| Release { hash: hash(id, 1), revision: Revision::new("r1") };
    for id in &ids()[..3] {
        rig.engine.resolved(id, &release(id), rig.history.get(&hash(id, 1)).cloned());
        rig.engine.settle();
        for id in rig.engine.take_dirty() {
            let decision = rig.engine.decide(&id, rig.now);
            assert!(!matches!(decision.action, Action::Apply(_)), "{id}: {decision:?}");
        }
    }
    rig.settle();
    assert_all_show(&rig, &ids(), 1);
}

/// A process that has just started does not know yet which objects exist, and must not take one for
/// added by the newest revision: a rollback would delete it.
#[test]
fn where_a_unit_goes_back_to_is_written_down_when_all_of_it_is_listed() {
    let maps = config("env").group_kind();
    for state in [KindState::Syncing, KindState::Blind("no".into(), crate::object::ErrorClass::Transient)] {
        let mut rig = at_rest();
        rig.engine.informer(&maps, state.clone());
        for id in &ids()[..2] {
            rig.engine.gone(id);
        }
        rig.read(reading("r2", &files(2)));
        for _ in 0..3 {
            for id in ids() {
                rig.step(&id);
            }
            rig.keep_book();
        }
        let units = rig.world.book.units.iter();
        let absent: Vec<&UnitMember> = units
            .flat_map(|unit| unit.members.values())
            .filter(|member| member.good == LastGood::Absent)
            .collect();
        assert!(absent.is_empty(), "{absent:?}");
        if state != KindState::Syncing {
            continue;
        }
        assert!(rig.world.log.is_empty(), "{:?}", rig.world.log);
        for id in &ids()[..2] {
            rig.world.announce(id);
        }
        rig.deliver(usize::MAX);
        rig.engine.informer(&maps, KindState::Synced);
        rig.settle();
        assert_all_show(&rig, &ids(), 1);
    }
}

#[test]
fn what_a_failed_revision_added_is_judged_as_soon_as_its_way_back_begins() {
    let uses = |content: u32, names: &[&str]| {
        let mut web = (*desired(&workload("web"), content, "web")).clone();
        web.needs = names.iter().map(|name| config(name)).collect();
        SharedDesired::from(web)
    };
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &[("web", Some(uses(1, &[])))]));
    rig.settle();
    rig.world.bad.insert(uses(2, &["new"]).hash);
    let new = desired(&config("new"), 1, "new");
    rig.read(reading("r2", &[("web", Some(uses(2, &["new"]))), ("new", Some(new))]));
    for _ in 0..100 {
        rig.turn();
        // Nothing else happens any more from here on.
        if !rig.world.rejections.is_empty() && !rig.engine.unresolved().is_empty() {
            break;
        }
    }
    assert!(!rig.engine.unresolved().is_empty());
    rig.deliver(usize::MAX);
    rig.engine.settle();
    rig.resolve();
    let decision = rig.decide(&config("new"));
    let told = decision.reason.map(|reason| reason.to_string()).unwrap_or_default();
    assert!(!told.contains("is not decided yet"), "{told}");
}
