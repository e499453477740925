use std::collections::BTreeSet;

use super::world::workload;
use crate::engine::{Ask, Priority, release};
use crate::object::ObjectId;

fn asks(all: &[(Priority, i32, &str)]) -> BTreeSet<Ask> {
    all.iter()
        .map(|(priority, wave, name)| Ask { priority: *priority, wave: *wave, id: workload(name) })
        .collect()
}

#[test]
fn repairs_go_first_then_waves_then_names() {
    fn check(all: &[(Priority, i32, &str)], in_flight: &[&str], most: u32, expected: &[&str]) {
        let in_flight: BTreeSet<ObjectId> = in_flight.iter().map(|name| workload(name)).collect();
        let asks = asks(all);
        let released: Vec<&str> = release(&asks, &in_flight, most).into_iter().map(ObjectId::name).collect();
        assert_eq!(released, expected);
    }
    use Priority::{Candidate, Repair};
    let three = [(Candidate, 0, "a"), (Candidate, 1, "b"), (Repair, 0, "z")];
    check(&three, &[], 1, &["z"]);
    check(&three, &[], 2, &["a", "z"]);
    check(&three, &[], 9, &["a", "b", "z"]);
    check(&three, &["x"], 2, &["z"]);
    check(&three, &["x", "y"], 2, &[]);
    // A workload that rolls already needs no second token.
    check(&three, &["b", "y"], 2, &["b"]);
    check(&[(Candidate, -1, "late"), (Candidate, 0, "a")], &[], 1, &["late"]);
    check(&[], &["x"], 3, &[]);
    check(&three, &[], 0, &[]);
}

/// Every set of asks and of workloads in flight over four workloads, and every budget from 0 to 4.
#[test]
fn the_budget_is_never_exceeded_and_never_left_unused() {
    let names = ["a", "b", "c", "d"];
    let chosen = |bits: u32| {
        names.iter().enumerate().filter(move |(i, _)| bits & (1 << i) != 0).map(|(_, name)| *name)
    };
    for (asking, flying, most) in
        (0..16).flat_map(|a| (0..16).flat_map(move |f| (0..5).map(move |m| (a, f, m))))
    {
        let asks: BTreeSet<Ask> = chosen(asking)
            .map(|name| Ask { priority: Priority::Candidate, wave: 0, id: workload(name) })
            .collect();
        let in_flight: BTreeSet<ObjectId> = chosen(flying).map(workload).collect();
        let released = release(&asks, &in_flight, most);
        let first: BTreeSet<&ObjectId> =
            released.iter().filter(|id| !in_flight.contains(**id)).copied().collect();
        let all = in_flight.len() + first.len();
        assert!(first.is_empty() || all <= most as usize, "{asks:?} {in_flight:?} {most}");
        let waiting = asks.iter().any(|ask| !in_flight.contains(&ask.id) && !first.contains(&ask.id));
        assert!(!waiting || all >= most as usize, "{asks:?} {in_flight:?} {most}");
        assert!(asks.iter().filter(|ask| in_flight.contains(&ask.id)).all(|ask| released.contains(&ask.id)));
    }
}
