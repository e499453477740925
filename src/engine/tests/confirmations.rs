//! Confirmed deletions: who gives them, for what, and for how long.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::safety::{engine, judged};
use super::world::{FIRST, SET, World, WorldObject, desired, id, reading};
use crate::engine::*;
use crate::object::ObjectId;

const WAITS: &str = "a PersistentVolumeClaim is deleted only after a confirmation";

fn claim(name: &str) -> ObjectId {
    id("", "PersistentVolumeClaim", "shop", name)
}

/// Returns a file with one claim.
fn file(name: &str) -> (&str, Option<SharedDesiredObject>) {
    (name, Some(desired(&claim(name), 1, name)))
}

fn show(engine: &mut Engine, name: &str, uid: u64) {
    let settled = WorldObject { uid, ..WorldObject::settled(desired(&claim(name), 1, name).hash, "r1", uid) };
    engine.observe_object(&claim(name), World::live(&claim(name), &settled));
}

/// Returns an engine whose source had the claims a, b and c with the uids 1, 2 and 3, and wants c
/// alone.
fn dropped() -> Engine {
    let mut engine = engine(&[SET], &[claim("").group_kind()]);
    engine.set_reading(FIRST, reading("r1", &["a", "b", "c"].map(file)));
    for (name, uid) in [("a", 1), ("b", 2), ("c", 3)] {
        show(&mut engine, name, uid);
    }
    engine.set_reading(FIRST, reading("r2", &[("a", None), ("b", None)]));
    engine
}

fn uids(all: &[&str]) -> BTreeSet<Uid> {
    all.iter().map(|uid| Uid((*uid).into())).collect()
}

/// Gives an order of ann's that confirms these, and returns what comes of it.
fn confirm(engine: &mut Engine, token: &str, confirmed: &[&str]) -> String {
    let verb = OrderVerb::Confirm(Arc::new(uids(confirmed)));
    engine
        .take_orders(FIRST, vec![Order { token: token.into(), verb, object: claim("a"), by: "ann".into() }]);
    engine.try_carry_out_orders();
    let answers = engine.next_acknowledged(FIRST).unwrap_or_default();
    answers
        .into_iter()
        .find(|one| *one.token == *token)
        .map_or_else(String::new, |one| one.outcome.to_string())
}

/// Writes the inventory as the loop does, and reads it.
fn record(engine: &mut Engine) {
    let mut inventory = engine.source(FIRST).inventory.clone().unwrap();
    inventory.confirmed = engine.next_confirmed(FIRST).unwrap_or(inventory.confirmed);
    inventory.acknowledged = engine.next_acknowledged(FIRST).unwrap_or(inventory.acknowledged);
    engine.set_inventory(FIRST, inventory);
}

#[test]
fn a_confirmation_counts_once_it_is_recorded_with_what_came_of_the_order() {
    let mut engine = dropped();
    assert_eq!(judged(&mut engine, FIRST, &claim("a")), WAITS);
    let expected = "confirmed: the deletion of PersistentVolumeClaim shop/a (ordered by ann)";
    assert_eq!(confirm(&mut engine, "1-a", &["1"]), expected);
    assert_eq!(engine.take_done_orders(), []);
    // A process that ends here has deleted nothing that the next one does not know of.
    assert_eq!(judged(&mut engine, FIRST, &claim("a")), WAITS);
    assert_eq!(engine.next_confirmed(FIRST), Some(uids(&["1"])));
    record(&mut engine);
    // Nobody is told before it counts.
    let done = engine.take_done_orders();
    let done: Vec<String> = done.into_iter().map(|(.., answer)| answer.to_string()).collect();
    assert_eq!(done, [expected]);
    assert_eq!(engine.take_done_orders(), []);
    assert_eq!(engine.next_confirmed(FIRST), None);
    assert_eq!(judged(&mut engine, FIRST, &claim("a")), "delete");
    assert_eq!(judged(&mut engine, FIRST, &claim("b")), WAITS);
    assert_eq!(engine.finished_orders(FIRST), [Arc::from("1-a")]);
    // Once it is gone nothing of it stays.
    engine.observe_absence(&claim("a"));
    assert_eq!(engine.open_confirmations(FIRST), uids(&[]));
}

#[test]
fn only_what_the_source_has_and_wants_no_more_is_confirmed() {
    let check = |confirmed: &[&str], expected: &str, recorded: &[&str]| {
        let mut engine = dropped();
        assert_eq!(confirm(&mut engine, "1-a", confirmed), format!("{expected} (ordered by ann)"));
        assert_eq!(engine.next_confirmed(FIRST).unwrap_or_default(), uids(recorded), "{expected}");
    };
    let nothing = format!("nothing was confirmed: of what is named, nothing waits for its deletion in {SET}");
    check(&["1", "2"], "confirmed: the deletions of PersistentVolumeClaim shop/a and 1 other", &["1", "2"]);
    // One that is wanted, and another incarnation.
    check(&["3"], &nothing, &[]);
    check(&["9"], &nothing, &[]);
    let some = "confirmed: the deletion of PersistentVolumeClaim shop/b; 2 of the given ones are not pending";
    check(&["2", "3", "9"], some, &["2"]);
}

// Once the word that keeps it is gone, it would go without a question.
#[test]
fn what_is_kept_is_not_confirmed() {
    let shown = |rv: u64| {
        let settled = WorldObject::settled(desired(&claim("a"), 1, "a").hash, "r1", 1);
        LiveObject { rv: ResourceVersion(rv), ..World::live(&claim("a"), &settled) }
    };
    let kept = |rv: u64| LiveObject { prune_timing: PruneTiming::Never, ..shown(rv) };
    let unproven = |rv: u64| LiveObject { release: None, ..shown(rv) };
    for held in [kept(100), unproven(100)] {
        let mut engine = dropped();
        engine.observe_object(&claim("a"), held);
        let nothing =
            format!("nothing was confirmed: of what is named, nothing waits for its deletion in {SET}");
        assert_eq!(confirm(&mut engine, "1-a", &["1"]), format!("{nothing} (ordered by ann)"));
        record(&mut engine);
        let other =
            "confirmed: the deletion of PersistentVolumeClaim shop/b; 1 of the given ones are not pending";
        assert_eq!(confirm(&mut engine, "2-b", &["1", "2"]), format!("{other} (ordered by ann)"));
        record(&mut engine);
        engine.observe_object(&claim("a"), shown(101));
        assert_eq!(judged(&mut engine, FIRST, &claim("a")), WAITS);
        assert_eq!(judged(&mut engine, FIRST, &claim("b")), "delete");
    }
}

#[test]
fn what_comes_back_needs_a_new_confirmation() {
    // Recorded, on its way into the inventory, or just ordered.
    for records in [2, 1, 0] {
        let mut engine = dropped();
        confirm(&mut engine, "1-a", &["1"]);
        let underway = engine.next_confirmed(FIRST).unwrap();
        if records == 2 {
            record(&mut engine);
        }
        engine.set_reading(FIRST, reading("r3", &[file("a")]));
        engine.set_reading(FIRST, reading("r4", &[("a", None)]));
        if records == 1 {
            let inventory =
                Inventory { confirmed: underway, ..engine.source(FIRST).inventory.clone().unwrap() };
            engine.set_inventory(FIRST, inventory);
        }
        assert_eq!(judged(&mut engine, FIRST, &claim("a")), WAITS, "{records}");
        record(&mut engine);
        assert_eq!(engine.source(FIRST).inventory.as_ref().unwrap().confirmed, uids(&[]), "{records}");
        assert_eq!(judged(&mut engine, FIRST, &claim("a")), WAITS, "{records}");
        // A confirmation counts for the same incarnation.
        confirm(&mut engine, "2-b", &["1"]);
        record(&mut engine);
        assert_eq!(judged(&mut engine, FIRST, &claim("a")), "delete", "{records}");
    }
}

#[test]
fn what_came_back_while_nobody_ran_needs_a_new_confirmation() {
    // The order in which facts arrive makes no difference.
    for order in [
        ["inventory", "files", "objects"],
        ["objects", "files", "inventory"],
        ["files", "inventory", "objects"],
    ] {
        let kinds: BTreeSet<_> = [claim("").group_kind()].into();
        let mut engine = engine(&[SET], &[]);
        engine.set_kind_availability(
            crate::object::Gvk::new("", "v1", "PersistentVolumeClaim"),
            KindAvailability::Served,
        );
        for known in order {
            match known {
                "inventory" => {
                    let kinds = kinds.clone();
                    engine.set_inventory(
                        FIRST,
                        Inventory { kinds, confirmed: uids(&["1"]), ..Inventory::default() },
                    );
                }
                "files" => engine.set_reading(FIRST, reading("r1", &["a", "c"].map(file))),
                _ => {
                    show(&mut engine, "a", 1);
                    show(&mut engine, "c", 3);
                    engine.list_complete(&claim("").group_kind());
                }
            }
        }
        engine.set_reading(FIRST, reading("r2", &[("a", None)]));
        assert_eq!(judged(&mut engine, FIRST, &claim("a")), WAITS, "{order:?}");
        assert_eq!(engine.next_confirmed(FIRST), Some(uids(&[])), "{order:?}");
    }
}

#[test]
fn an_order_waits_until_it_is_known_what_it_is_about() {
    let mut engine = dropped();
    engine.set_unreadable(FIRST, "the server is away".into());
    assert_eq!(confirm(&mut engine, "1-a", &["1"]), "");
    engine.set_reading(FIRST, reading("r3", &[]));
    engine.try_carry_out_orders();
    assert_eq!(engine.next_confirmed(FIRST), Some(uids(&["1"])));
}

#[test]
fn so_many_confirmed_deletions_are_recorded_and_no_more() {
    let check = |recorded: usize, expected: &str, next: Option<usize>| {
        let mut engine = dropped();
        let many = (0..recorded).map(|number| Uid(format!("u{number}").into())).collect();
        let inventory = Inventory { confirmed: many, ..engine.source(FIRST).inventory.clone().unwrap() };
        engine.set_inventory(FIRST, inventory);
        let answer = confirm(&mut engine, "1-a", &["1"]);
        assert!(answer.starts_with(expected), "{answer}");
        assert_eq!(engine.next_confirmed(FIRST).map(|next| next.len()), next, "{recorded}");
    };
    check(3999, "confirmed: the deletion of PersistentVolumeClaim shop/a", Some(4000));
    check(4000, "nothing was confirmed: more than 4000 deletions", None);
}

#[test]
fn a_confirmation_is_to_be_recorded_until_it_was_whatever_else_of_the_inventory_changes() {
    let mut engine = dropped();
    let inventory = |engine: &Engine| engine.source(FIRST).inventory.clone().unwrap();
    confirm(&mut engine, "1-a", &["1"]);
    let namespaces = BTreeSet::from([Arc::from("shop")]);
    engine.set_inventory(FIRST, Inventory { namespaces, ..inventory(&engine) });
    assert_eq!(engine.next_confirmed(FIRST), Some(uids(&["1"])));
    record(&mut engine);
    // It was carried out, and is not written down again.
    engine.set_inventory(FIRST, Inventory { confirmed: uids(&[]), ..inventory(&engine) });
    assert_eq!(engine.next_confirmed(FIRST), None);
}

#[test]
fn a_confirmation_of_what_is_wanted_again_does_not_count_once_it_is_dropped_and_has_to_be_given_anew() {
    let mut engine = dropped();
    let known = engine.source(FIRST).inventory.clone().unwrap();
    engine.set_inventory(FIRST, Inventory { confirmed: uids(&["1", "3"]), ..known });
    assert_eq!(judged(&mut engine, FIRST, &claim("a")), "delete");
    engine.set_reading(FIRST, reading("r3", &[("c", None), file("d")]));
    assert_ne!(judged(&mut engine, FIRST, &claim("c")), "delete");
    assert_eq!(judged(&mut engine, FIRST, &claim("a")), "delete");
    let expected = "confirmed: the deletion of PersistentVolumeClaim shop/c (ordered by ann)";
    assert_eq!(confirm(&mut engine, "1-a", &["3"]), expected);
    record(&mut engine);
    assert_eq!(judged(&mut engine, FIRST, &claim("c")), "delete");
}

#[test]
fn a_confirmed_deletion_is_to_come_as_long_as_what_is_to_go_is_shown() {
    let mut engine = dropped();
    assert_eq!(engine.view().open_confirmations(FIRST), uids(&[]));
    confirm(&mut engine, "1-a", &["1", "2"]);
    assert_eq!(engine.view().open_confirmations(FIRST), uids(&["1", "2"]), "they are to be recorded");
    record(&mut engine);
    assert_eq!(engine.view().open_confirmations(FIRST), uids(&["1", "2"]));
    engine.observe_absence(&claim("a"));
    assert_eq!(engine.view().open_confirmations(FIRST), uids(&["2"]));
}
