//! Promotions by people: the step that each is for, and how long its order counts.

use super::harness::{Harness, release_key};
use super::world::{FIRST, desired, reading, workload};
use crate::engine::*;
use crate::object::ContentHash;

fn hash(content: u32) -> ContentHash {
    desired(&workload("web"), content, "web").hash
}

/// Returns a workload that is held at its second step, with content 1.
fn held() -> Harness {
    let web = workload("web");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
    harness.settle();
    let overlay = RolloutOverlay::Surge { pods: 1, step: 2 };
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&web).unwrap();
    (thing.shown, thing.rv) = (RolloutOverlayState::Overlaid(overlay), rv);
    // A process that begins now has written no other overlay.
    harness.engine = harness.fresh(3);
    harness.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
    harness.deliver(usize::MAX);
    harness
}

fn order(token: &str, name: &str, verb: OrderVerb) -> Order {
    Order { token: token.into(), verb, object: workload(name), by: "ann".into() }
}

#[test]
fn the_order_for_the_step_that_is_shown_counts_and_that_to_the_end_above_all() {
    let check = |orders: &[(&str, OrderVerb)], expected: PromotionRequest| {
        let mut harness = held();
        let orders = orders.iter().enumerate();
        let orders = orders.map(|(number, (name, verb))| order(&number.to_string(), name, verb.clone()));
        let orders: Vec<Order> = orders.collect();
        harness.engine.take_orders(FIRST, orders.clone());
        let live = harness.engine.live_object(&workload("web")).unwrap();
        let found =
            harness.engine.promotion_request(&workload("web"), &desired(&workload("web"), 1, "web"), live);
        assert_eq!(found, expected, "{orders:?}");
    };
    let one_step = |content, from| OrderVerb::Promote(hash(content), from);
    let to_the_end = |content| OrderVerb::PromoteFull(hash(content));
    let from = |from| PromotionRequest::OneStep { from };
    check(&[], PromotionRequest::None);
    check(&[("web", one_step(1, 2))], from(2));
    check(&[("web", one_step(2, 2))], PromotionRequest::None);
    check(&[("api", one_step(1, 2))], PromotionRequest::None);
    check(&[("web", OrderVerb::Abort)], PromotionRequest::None);
    // The first one, or that of the step that is shown.
    check(&[("web", one_step(1, 1)), ("web", one_step(1, 2))], from(2));
    check(&[("web", one_step(1, 2)), ("web", one_step(1, 1))], from(2));
    check(&[("web", one_step(1, 1)), ("web", one_step(1, 3))], from(1));
    check(&[("web", to_the_end(1)), ("web", one_step(1, 2))], PromotionRequest::Full);
    check(&[("web", one_step(1, 2)), ("web", to_the_end(1))], PromotionRequest::Full);
    check(&[("web", to_the_end(2))], PromotionRequest::None);
}

#[test]
fn a_promotion_stays_until_its_rollout_has_come_past_its_step_and_other_orders_until_they_are_answered() {
    let check = |verb: OrderVerb, is_answered: bool, expected: bool| {
        let mut harness = held();
        harness.engine.take_orders(FIRST, vec![order("1-a", "web", verb.clone())]);
        let known = harness.engine.source(FIRST).inventory.clone().unwrap();
        let token = if is_answered { "1-a" } else { "2-b" };
        let acknowledged = vec![Acknowledgement::new(&token.into(), "promoted")];
        harness.engine.set_inventory(FIRST, Inventory { acknowledged, ..known });
        assert_eq!(!harness.engine.finished_orders(FIRST).is_empty(), expected, "{verb:?} {is_answered}");
    };
    check(OrderVerb::Abort, true, true);
    check(OrderVerb::Abort, false, false);
    check(OrderVerb::Promote(hash(1), 1), true, true);
    check(OrderVerb::Promote(hash(1), 1), false, false);
    check(OrderVerb::Promote(hash(1), 2), true, false);
    check(OrderVerb::Promote(hash(1), 3), true, false);
    check(OrderVerb::PromoteFull(hash(1)), true, false);
    // Another content is wanted and shown by now.
    check(OrderVerb::Promote(hash(2), 2), true, true);
    check(OrderVerb::PromoteFull(hash(2)), true, true);
}

#[test]
fn a_promotion_of_a_content_that_is_not_shown_or_of_a_rollout_that_is_over_is_spent() {
    let spent = |change: &dyn Fn(&mut LiveObject)| {
        let mut harness = held();
        harness.engine.take_orders(FIRST, vec![order("1-a", "web", OrderVerb::Promote(hash(1), 2))]);
        let known = harness.engine.source(FIRST).inventory.clone().unwrap();
        let acknowledged = vec![Acknowledgement::new(&"1-a".into(), "promoted")];
        harness.engine.set_inventory(FIRST, Inventory { acknowledged, ..known });
        let mut live = harness.engine.live_object(&workload("web")).cloned().unwrap();
        live.rv = ResourceVersion(live.rv.0 + 1);
        change(&mut live);
        harness.engine.observe_object(&workload("web"), live);
        !harness.engine.finished_orders(FIRST).is_empty()
    };
    assert!(!spent(&|_| ()));
    assert!(spent(&|live| live.overlay = RolloutOverlayState::Plain));
    assert!(spent(&|live| live.release.as_mut().unwrap().hash = hash(7)));
}

#[test]
fn a_promotion_of_a_content_that_is_shown_and_not_wanted_any_more_is_spent() {
    let mut harness = held();
    harness.engine.take_orders(FIRST, vec![order("1-a", "web", OrderVerb::Promote(hash(1), 2))]);
    let known = harness.engine.source(FIRST).inventory.clone().unwrap();
    let acknowledged = vec![Acknowledgement::new(&"1-a".into(), "promoted")];
    harness.engine.set_inventory(FIRST, Inventory { acknowledged, ..known });
    assert!(harness.engine.finished_orders(FIRST).is_empty());
    harness.read(reading("r2", &[("web", Some(desired(&workload("web"), 2, "web")))]));
    assert!(!harness.engine.finished_orders(FIRST).is_empty());
}

// It may be past its step, or wait for the budget.
#[test]
fn a_promotion_is_not_spent_before_a_new_process_knows_what_is_wanted_and_what_is_there() {
    let web = workload("web");
    let is_spent = |mut engine: Engine| {
        engine.take_orders(FIRST, vec![order("1-a", "web", OrderVerb::Promote(hash(1), 2))]);
        let known = engine.source(FIRST).inventory.clone().unwrap();
        let acknowledged = vec![Acknowledgement::new(&"1-a".into(), "promoted")];
        engine.set_inventory(FIRST, Inventory { acknowledged, ..known });
        !engine.finished_orders(FIRST).is_empty()
    };
    assert!(!is_spent(held().fresh(3)), "its source was not read");
    let mut unlisted = held();
    unlisted.world.things.clear();
    unlisted.engine = unlisted.fresh(3);
    unlisted.engine.set_informer_state(&web.group_kind(), KindState::Syncing);
    unlisted.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
    assert!(!is_spent(unlisted.engine.clone()), "it was not listed");
    unlisted.engine.set_informer_state(&web.group_kind(), KindState::Synced);
    assert!(is_spent(unlisted.engine), "it is gone");
}

#[test]
fn a_promotion_is_not_answered_before_seals_can_be_checked() {
    let mut harness = held();
    harness.engine = harness.fresh_without_key();
    harness.read(reading("r1", &[("web", Some(desired(&workload("web"), 1, "web")))]));
    harness.engine.take_orders(FIRST, vec![order("1-a", "web", OrderVerb::Promote(hash(1), 2))]);
    harness.engine.carry_out_orders();
    assert_eq!(harness.engine.next_acknowledged(FIRST), None, "it is being read");
    harness.engine.set_release_key(ReadState::Unreadable("forbidden".into()));
    harness.engine.carry_out_orders();
    assert_eq!(harness.engine.next_acknowledged(FIRST), None, "it cannot be read");
    harness.engine.set_release_key(ReadState::Value(release_key()));
    harness.engine.carry_out_orders();
    let answers = harness.engine.next_acknowledged(FIRST).unwrap_or_default();
    assert!(answers[0].outcome.starts_with("promoted: "), "{answers:?}");
}

#[test]
fn the_outcome_of_a_promotion_names_the_step_that_is_left() {
    let check = |verb: OrderVerb, expected: &str| {
        let mut harness = held();
        harness.engine.take_orders(FIRST, vec![order("1-a", "web", verb.clone())]);
        harness.engine.carry_out_orders();
        let answers = harness.engine.next_acknowledged(FIRST).unwrap_or_default();
        let outcomes: Vec<&str> = answers.iter().map(|answer| &*answer.outcome).collect();
        assert_eq!(outcomes, [format!("{expected} (ordered by ann)")], "{verb:?}");
    };
    let promoted = "promoted: Deployment shop/web goes on from step 2";
    check(OrderVerb::Promote(hash(1), 2), promoted);
    check(OrderVerb::PromoteFull(hash(1)), promoted);
    let nothing = "nothing to promote: Deployment shop/web has no step in progress";
    check(OrderVerb::Promote(hash(2), 2), nothing);
    check(OrderVerb::PromoteFull(hash(2)), nothing);
}
