//! Rollbacks of which something cannot be read any more: all that is released together stays as it
//! is.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{AuditEntry, FIRST, SET, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ErrorClass, ObjectId, Revision};

/// Returns `web`, which uses env and other, and a second workload beside it.
fn files(content: u32) -> Vec<(&'static str, Option<SharedDesiredObject>)> {
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
    let mut harness = Harness::new(4);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.log.clear();
    harness.world.bad.insert(hash(&workload("web"), 2));
    harness
}

/// The files of a source, with this content.
pub(super) type FileSet = fn(u32) -> Vec<(&'static str, Option<SharedDesiredObject>)>;

#[track_caller]
pub(super) fn assert_all_show(harness: &Harness, ids: &[ObjectId], content: u32) {
    for id in ids {
        let shown = harness.world.things[id].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(hash(id, content)), "{id}: {:#?}", harness.world.log);
    }
}

/// Asserts that all of a unit that failed with its second content is held until there is a third
/// one. Its reason begins and ends as given.
#[track_caller]
pub(super) fn assert_held(harness: &mut Harness, ids: &[ObjectId], files: FileSet, ends: [&str; 2]) {
    assert_all_show(harness, ids, 2);
    assert_eq!(harness.world.rejections[0].action, RejectionAction::Quarantine);
    assert!(harness.engine.workloads_in_flight().is_empty(), "it holds a slot for ever");
    assert!(harness.world.is_free());
    for id in ids {
        let reason = reason(harness, id);
        assert!(reason.starts_with(ends[0]) && reason.ends_with(ends[1]), "{id}: {reason}");
    }
    // It does not loop, and neither does the next process.
    let count = harness.world.log.len();
    harness.engine = harness.fresh(4);
    harness.read(reading("r2", &files(2)));
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(harness.world.log.len(), count, "{:#?}", harness.world.log);
    // A new content ends it.
    harness.read(reading("r3", &files(3)));
    harness.settle();
    assert_all_show(harness, ids, 3);
    assert!(harness.world.rejections.is_empty());
}

fn reason(harness: &mut Harness, id: &ObjectId) -> String {
    harness.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

/// Loses the content of each of a unit in turn: the others do not go back without it.
#[test]
fn where_one_of_a_unit_cannot_be_read_any_more_all_of_it_stays() {
    for lost in ids() {
        let mut harness = at_rest();
        harness.history.remove(&hash(&lost, 1));
        harness.read(reading("r2", &files(2)));
        harness.settle();
        let why = format!("; it cannot go back, as revision r1 of {lost} cannot be read any more");
        assert_held(&mut harness, &ids(), files, ["revision r2 failed: Deployment shop/web: ", &why]);
    }
}

/// Ends the process at each point, after which the next one leaves no unit half back.
#[test]
fn at_no_point_a_unit_goes_back_in_part() {
    for lost in ids() {
        for point in 0..60 {
            let mut harness = at_rest();
            harness.history.remove(&hash(&lost, 1));
            harness.read(reading("r2", &files(2)));
            for _ in 0..point {
                harness.turn();
            }
            harness.engine = harness.fresh(4);
            harness.read(reading("r2", &files(2)));
            harness.engine.mark_all();
            harness.settle();
            assert_all_show(&harness, &ids(), 2);
            let changed = |id: ObjectId| {
                harness.world.log.iter().filter(|w| **w == AuditEntry::Changed(id.clone())).count()
            };
            for id in ids() {
                assert_eq!(changed(id.clone()), 1, "{id}, {lost}, {point}: {:#?}", harness.world.log);
            }
        }
    }
}

/// Rewrites the history in the middle of a rollback: what is back already need not be read.
#[test]
fn what_is_back_already_does_not_keep_the_rest_of_its_unit() {
    let mut harness = at_rest();
    harness.read(reading("r2", &files(2)));
    let first = |harness: &Harness| {
        let release = harness.world.things[&config("env")].release.clone();
        harness.world.rejections.first().is_some_and(|one| one.action == RejectionAction::RollBack)
            && release.is_some_and(|release| release.hash == hash(&config("env"), 1))
    };
    for _ in 0..200 {
        if !first(&harness) {
            harness.turn();
        }
    }
    assert!(first(&harness), "{:#?}", harness.world.log);
    harness.history.remove(&hash(&config("env"), 1));
    harness.engine = harness.fresh(4);
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert_all_show(&harness, &ids(), 1);
    let why = reason(&mut harness, &config("env"));
    assert!(why.ends_with("; it is back at revision r1, which cannot be read any more"), "{why}");
    assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
}

/// Reads the contents from several revisions, one by one.
#[test]
fn nothing_goes_back_before_all_of_it_has_been_read() {
    let mut harness = at_rest();
    harness.read(reading("r2", &files(2)));
    for _ in 0..200 {
        if harness.world.rejections.is_empty() {
            harness.turn();
        }
    }
    assert_eq!(harness.world.rejections.len(), 1, "{:#?}", harness.world.log);
    harness.world.log.clear();
    let release = |id: &ObjectId| ContentRef { hash: hash(id, 1), revision: Revision::new("r1") };
    for id in &ids()[..3] {
        harness.engine.record_older_content(id, &release(id), harness.history.get(&hash(id, 1)).cloned());
        harness.engine.process_changes();
        for id in harness.engine.take_dirty() {
            let decision = harness.engine.decide(&id, harness.now);
            assert!(!matches!(decision.action, Action::Apply(_)), "{id}: {decision:?}");
        }
    }
    harness.settle();
    assert_all_show(&harness, &ids(), 1);
}

// A process that has just started does not know yet which objects exist. It must not take one for
// added by the newest revision, as a rollback would delete it.
#[test]
fn where_a_unit_goes_back_to_is_written_down_when_all_of_it_is_listed() {
    let maps = config("env").group_kind();
    for state in [KindState::Syncing, KindState::Unobservable("no".into(), ErrorClass::Transient)] {
        let mut harness = at_rest();
        harness.engine.set_informer_state(&maps, state.clone());
        for id in &ids()[..2] {
            harness.engine.observe_absence(id);
        }
        harness.read(reading("r2", &files(2)));
        for _ in 0..3 {
            for id in ids() {
                harness.step(&id);
            }
            harness.keep_ledger();
        }
        let units = harness.world.ledger.units.iter();
        let absent: Vec<&UnitMember> = units
            .flat_map(|unit| unit.members.values())
            .filter(|member| member.rollback_target == RollbackTarget::Absent)
            .collect();
        assert!(absent.is_empty(), "{absent:?}");
        if state != KindState::Syncing {
            continue;
        }
        assert!(harness.world.log.is_empty(), "{:?}", harness.world.log);
        for id in &ids()[..2] {
            harness.world.announce(id);
        }
        harness.deliver(usize::MAX);
        harness.engine.set_informer_state(&maps, KindState::Synced);
        harness.settle();
        assert_all_show(&harness, &ids(), 1);
    }
}

// The failed workload would keep its slot until a person grants the right.
#[test]
fn a_unit_whose_earlier_state_was_never_known_stays_where_the_server_denies_the_list() {
    let (env, web) = (config("env"), workload("web"));
    let good = ContentRef { hash: hash(&web, 1), revision: Revision::new("r1") };
    let member = |id: &ObjectId, rollback_target: RollbackTarget| {
        let content = Some(hash(id, 2));
        (id.clone(), UnitMember { content, rollback_target, restarted: None })
    };
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r2"),
        members: [member(&env, RollbackTarget::Unknown), member(&web, RollbackTarget::Content(good))].into(),
    };
    let rejection = Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() };
    let check = |state: KindState, is_quarantined: bool, goes_back: bool| {
        let mut harness = at_rest();
        harness.read(reading("r2", &files(2)));
        harness.engine.set_informer_state(&env.group_kind(), state.clone());
        let known = harness.engine.source(FIRST).inventory.clone().unwrap();
        let rejections = vec![rejection.clone()];
        harness.engine.set_inventory(FIRST, Inventory { rejections, ..known });
        harness.read_contents();
        harness.engine.begin_rollbacks();
        let pending = harness.engine.source(FIRST).pending_rejections.iter();
        let pending: Vec<RejectionAction> = pending.map(|pending| pending.action).collect();
        let expected = is_quarantined.then_some(RejectionAction::Quarantine);
        assert_eq!(pending, expected.into_iter().collect::<Vec<_>>(), "{state:?}");
        assert_eq!(harness.engine.has_rollback_target(&web), goes_back, "{state:?}");
    };
    let unobservable = |class: ErrorClass| KindState::Unobservable("no".into(), class);
    check(KindState::Syncing, false, false);
    check(unobservable(ErrorClass::Transient), false, false);
    for fault in [WatchFault::Unlisted, WatchFault::GroupUnavailable] {
        check(KindState::Unobservable(fault, ErrorClass::Source), false, false);
    }
    check(unobservable(ErrorClass::Forbidden), true, false);
    // It shows its first content, so nothing of it goes back.
    check(KindState::Synced, false, true);
}

#[test]
fn what_a_failed_revision_added_is_judged_as_soon_as_its_rollback_begins() {
    let uses = |content: u32, names: &[&str]| {
        let mut web = (*desired(&workload("web"), content, "web")).clone();
        web.needs = names.iter().map(|name| config(name)).collect();
        SharedDesiredObject::from(web)
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(uses(1, &[])))]));
    harness.settle();
    harness.world.bad.insert(uses(2, &["new"]).hash);
    let new = desired(&config("new"), 1, "new");
    harness.read(reading("r2", &[("web", Some(uses(2, &["new"]))), ("new", Some(new))]));
    for _ in 0..100 {
        harness.turn();
        // Nothing else happens any more from here on.
        if !harness.world.rejections.is_empty() && !harness.engine.unread_contents().is_empty() {
            break;
        }
    }
    assert!(!harness.engine.unread_contents().is_empty());
    harness.deliver(usize::MAX);
    harness.engine.process_changes();
    harness.read_contents();
    let decision = harness.decide(&config("new"));
    let why = decision.reason.map(|reason| reason.to_string()).unwrap_or_default();
    assert!(!why.contains("is not decided yet"), "{why}");
}
