//! The facts without which no order of a person is carried out, and those that an undo goes by.

use super::harness::Harness;
use super::orders::{second, web};
use super::shared_budget::THEIRS;
use super::world::{FIRST, SET, config, desired, reading, workload};
use crate::engine::*;
use crate::object::Revision;

#[test]
fn no_order_is_carried_out_before_all_was_read_that_it_depends_on() {
    let check = |lose: &dyn Fn(&mut Engine)| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(&config("a"), 1, "a")))]));
        assert!(harness.engine.can_carry_out(FIRST));
        lose(&mut harness.engine);
        assert!(!harness.engine.can_carry_out(FIRST));
    };
    check(&|engine| engine.sources[FIRST].head = None);
    check(&|engine| engine.rollouts.ledger.forget());
    check(&|engine| engine.sources[FIRST].inventory = None);
    check(&|engine| engine.set_informer_state(&config("a").group_kind(), KindState::Syncing));
}

// Its objects may have the same names, and its revisions be of another repository.
#[test]
fn an_undo_does_not_go_by_the_records_of_another_source() {
    let mut harness = second();
    let known = harness.engine.revisions_in_force(FIRST);
    let mut ledger = harness.world.ledger.clone();
    let mut theirs = ledger.history.last().unwrap().clone();
    (theirs.inventory_id, theirs.revision) = (THEIRS.into(), Revision::new("t2"));
    for member in theirs.members.values_mut() {
        let release = ContentRef { hash: web(1).hash, revision: Revision::new("t1") };
        member.rollback_target = RollbackTarget::Content(release);
    }
    for units in [&mut ledger.units, &mut ledger.history] {
        units.push(theirs.clone());
    }
    harness.engine.set_ledger(ledger);
    assert_eq!(harness.engine.revisions_in_force(FIRST), known);
    let replaced = harness.engine.replaced_unit(FIRST, &workload("web"));
    assert_eq!(replaced.map(|unit| unit.inventory_id).as_deref(), Some(SET));
}

#[test]
fn an_undo_whose_target_is_known_late_counts_where_it_is_still_ordered_and_of_what_is_in_force() {
    let check = |happens: &dyn Fn(&mut Harness), expected: usize| {
        let mut harness = second();
        harness.give(&workload("web"), "1-a undo r1");
        harness.engine.carry_out_orders();
        let undo = harness.engine.undo_requests().next().cloned().unwrap();
        happens(&mut harness);
        harness.answer_undo(undo);
        assert_eq!(harness.engine.source(FIRST).pending_rejections.len(), expected);
        let answers = harness.engine.next_acknowledged(FIRST).unwrap_or_default();
        let answered = answers.iter().filter(|answer| &*answer.token == "1-a").count();
        assert_eq!(answered, expected);
    };
    check(&|_| (), 1);
    check(&|harness| harness.handle(Input::Ordered { source: FIRST, orders: Vec::new() }), 0);
    let release_third = |harness: &mut Harness| {
        let shown = harness.engine.live_object(&workload("web")).cloned().unwrap();
        let release = Some(ContentRef { hash: web(3).hash, revision: Revision::new("r3") });
        let rv = ResourceVersion(shown.rv.0 + 1);
        harness.engine.observe_object(&workload("web"), LiveObject { rv, release, ..shown });
    };
    check(&release_third, 0);
}
