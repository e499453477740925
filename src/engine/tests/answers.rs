//! Tests of the answers to orders and pauses, until the inventory records them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::harness::{Harness, source};
use super::orders::*;
use super::world::{FIRST, SECOND, config, reading, workload};
use crate::engine::*;

/// Carries out what is pending, as when the orders object was read again.
fn carry_out_again(harness: &mut Harness) {
    harness.engine.take_orders(FIRST, harness.world.orders.clone());
    harness.engine.carry_out_orders();
}

fn outcomes(harness: &Harness) -> BTreeSet<&str> {
    harness.world.acknowledged.iter().map(|one| &*one.outcome).collect()
}

#[test]
fn orders_of_one_turn_are_each_carried_out_once_before_the_inventory_says_so() {
    let mut harness = second();
    harness.give(&workload("web"), "1-a abort");
    harness.give(&config("env"), "2-b abort");
    harness.carry_out();
    carry_out_again(&mut harness);
    harness.sync_inventories();
    let tokens: Vec<&str> = harness.world.acknowledged.iter().map(|one| &*one.token).collect();
    assert_eq!(tokens, ["1-a", "2-b"]);
    assert_eq!(harness.engine.take_done_orders().len(), 2);
}

#[test]
fn an_answer_stays_until_the_inventory_says_it_and_no_longer() {
    let mut harness = second();
    harness.give(&workload("web"), "1-a abort");
    harness.carry_out();
    // Something else of the inventory changes meanwhile.
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    let namespaces = BTreeSet::from([Arc::from("shop")]);
    harness.engine.set_inventory(FIRST, Inventory { namespaces, ..known });
    assert_eq!(harness.engine.next_acknowledged(FIRST).map(|next| next.len()), Some(1));
    harness.sync_inventories();
    assert_eq!(harness.engine.next_acknowledged(FIRST), None);
    assert_eq!(harness.engine.orders.answers, []);
}

#[test]
fn pauses_that_begin_and_end_together_are_each_acknowledged_once() {
    let mut harness = second();
    let objects = [config("env"), workload("web")];
    for (id, token) in objects.iter().zip(["1-a", "2-b"]) {
        asks(&mut harness, id, Some(token), None);
    }
    harness.settle();
    let paused = ["paused: ConfigMap shop/env", "paused: Deployment shop/web"];
    assert_eq!(outcomes(&harness), BTreeSet::from(paused));
    carry_out_again(&mut harness);
    assert_eq!(harness.engine.orders.answers, [], "the inventory says it already");
    for id in &objects {
        asks(&mut harness, id, None, None);
    }
    harness.deliver(usize::MAX);
    carry_out_again(&mut harness);
    carry_out_again(&mut harness);
    assert_eq!(harness.engine.orders.answers.len(), 2);
    harness.sync_inventories();
    let resumed = ["resumed: ConfigMap shop/env", "resumed: Deployment shop/web"];
    assert_eq!(outcomes(&harness), BTreeSet::from(resumed));
}

#[test]
fn neither_orders_nor_pauses_that_have_ended_take_the_room_of_a_pause() {
    for outcome in ["undone: x", "resumed: x"] {
        let mut harness = second();
        let old = |number: usize| Acknowledgement::new(&format!("0-{number:03}").into(), outcome);
        harness.world.acknowledged = (0..MAX_STATES).map(old).collect();
        harness.engine = harness.fresh(3);
        harness.read(reading("r2", &both(2)));
        harness.settle();
        asks(&mut harness, &workload("web"), Some("1-a"), None);
        harness.settle();
        assert_eq!(last_outcome(&harness), "paused: Deployment shop/web", "{outcome}");
    }
}

#[test]
fn an_undo_that_is_no_longer_ordered_once_its_target_is_looked_up_is_not_carried_out() {
    let check = |later: &[&str], expected: &[&str]| {
        let mut harness = second();
        harness.give(&workload("web"), "1-a undo r1");
        harness.engine.carry_out_orders();
        let undos: Vec<UndoRequest> = harness.engine.undo_requests().cloned().collect();
        assert_eq!(undos.len(), 1);
        // Somebody changes the orders object meanwhile.
        harness.world.orders.clear();
        harness.engine.take_orders(FIRST, Vec::new());
        for order in later {
            harness.give(&workload("web"), order);
        }
        for undo in undos {
            harness.answer_undo(undo);
        }
        harness.settle();
        let undone: Vec<&str> = harness.world.acknowledged.iter().map(|one| &*one.token).collect();
        assert_eq!(undone, expected, "{later:?}");
        assert_eq!(harness.world.log.is_empty(), expected.is_empty(), "{later:?}");
    };
    check(&[], &[]);
    check(&["1-a undo r1"], &["1-a"]);
    check(&["2-b undo r1"], &["2-b"]);
}

// The keys of the orders object are chosen by whoever may write it.
#[test]
fn an_undo_is_not_answered_by_the_target_of_the_one_that_had_its_token() {
    let mut harness = second();
    harness.read(reading("r3", &both(3)));
    harness.settle();
    harness.give(&workload("web"), "1-a undo r1");
    harness.engine.carry_out_orders();
    let earlier: Vec<UndoRequest> = harness.engine.undo_requests().cloned().collect();
    // Another revision is asked for while the target is looked up.
    harness.world.orders.clear();
    harness.give(&workload("web"), "1-a undo r2");
    harness.engine.carry_out_orders();
    assert_eq!(earlier.len(), 1);
    for undo in earlier {
        harness.answer_undo(undo);
    }
    let asked: Vec<Option<Arc<str>>> = harness.engine.undo_requests().map(|undo| undo.to.clone()).collect();
    assert_eq!(asked, [Some("r2".into())]);
    harness.settle();
    shows(&harness, 2, "r2");
}

#[test]
fn an_order_does_not_wait_for_an_order_to_another_source_with_the_same_token() {
    let mut harness = second();
    harness.engine.add_source(source("other", "applyset-other-v1"));
    harness.engine.set_inventory(SECOND, Inventory::default());
    harness.engine.set_reading(SECOND, reading("o1", &[]));
    harness.give(&workload("web"), "1-a undo r1");
    let verb = OrderVerb::parse("abort", "");
    let theirs = Order { token: "1-a".into(), verb, object: workload("api"), by: "".into() };
    harness.engine.take_orders(SECOND, vec![theirs]);
    // The target of the undo is being looked up, and not found yet.
    harness.engine.carry_out_orders();
    let answered: Vec<SourceId> = harness.engine.orders.answers.iter().map(|(source, _)| *source).collect();
    assert_eq!((harness.engine.undo_requests().count(), answered), (1, vec![SECOND]));
    harness.settle();
    shows(&harness, 1, "r1");
}
