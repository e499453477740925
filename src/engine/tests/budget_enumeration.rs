//! Each state of three workloads and of a small budget: nothing is released beyond a bound.

use std::collections::BTreeSet;

use super::world::{FIRST, workload};
use crate::engine::{
    BudgetBound, BudgetScope, BudgetSlot, SlotPriority, SlotRequest, WorkloadLoad, grant_slots,
};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// The loads of one workload: none, sick, and in flight with one pod away.
const LOADS: [Option<(BudgetSlot, u32)>; 3] =
    [None, Some((BudgetSlot::None, 1)), Some((BudgetSlot::Taken, 1))];

/// The pods that a write to it takes down beyond those; none where it does not ask.
const COSTS: [Option<u32>; 4] = [None, Some(0), Some(1), Some(2)];

/// The load and the request of one workload.
type WorkloadCase = (Option<(BudgetSlot, u32)>, Option<u32>);

fn cases() -> Vec<WorkloadCase> {
    LOADS.into_iter().flat_map(|load| COSTS.into_iter().map(move |cost| (load, cost))).collect()
}

/// Returns every combination of the bounds, with the limit of the slow start.
fn all_bounds() -> Vec<(BudgetBound, u32)> {
    let mut all = Vec::new();
    for (workloads, unavailable, window) in
        [(1, 1, 1), (1, 2, 2), (2, 1, 1), (2, 1, 2), (2, 2, 2), (3, 3, 2), (3, 2, 3), (3, 3, 3)]
    {
        for (starts, unreadable_claims, unnamed) in [(9, 0, 0), (0, 0, 0), (1, 0, 0), (9, 1, 0), (9, 0, 1)] {
            let starts = (starts, 9);
            let scope = BudgetScope::Cluster;
            let bound = BudgetBound { scope, workloads, unavailable, unnamed, unreadable_claims, starts };
            all.push((bound, window));
        }
    }
    all
}

/// Checks one state: the starts are within each bound, and nobody overtakes.
fn check(state: [WorkloadCase; 3], bounds: &[BudgetBound], window: u32) {
    let named = || NAMES.into_iter().zip(state);
    let loads: Vec<WorkloadLoad> = named()
        .filter_map(|(name, (load, _))| {
            let (slot, unavailable) = load?;
            Some(WorkloadLoad { id: workload(name), source: Some(FIRST), slot, unavailable })
        })
        .collect();
    let asks: BTreeSet<SlotRequest> = named()
        .filter_map(|(name, (_, cost))| {
            let (priority, id, cost) = (SlotPriority::NewContent, workload(name), cost?);
            Some(SlotRequest {
                priority,
                wave: 0,
                id,
                source: FIRST,
                additional_unavailable: cost,
                reserved: cost,
            })
        })
        .collect();
    let answers = grant_slots(&asks, &loads, bounds, window);
    for bound in bounds {
        let context = format!("{state:?} {bound:?} {window}: {answers:?}");
        let mut slots = loads.iter().filter(|load| load.slot == BudgetSlot::Taken).count() as u32;
        let mut away = bound.unnamed + loads.iter().map(|load| load.unavailable).sum::<u32>();
        let (mut starts, mut is_any_waiting) = (0, false);
        for ask in &asks {
            let own = loads.iter().find(|load| load.id == ask.id);
            let holds = own.is_some_and(|load| load.slot == BudgetSlot::Taken);
            let own_away = own.map_or(0, |load| load.unavailable);
            let fits = ask.additional_unavailable == 0
                || away - own_away + ask.additional_unavailable <= bound.unavailable;
            let has_slot = holds
                || (slots + bound.unreadable_claims < bound.workloads
                    && slots < window
                    && starts < bound.starts.0);
            if answers[&ask.id].is_none() {
                assert!(has_slot && fits, "{} is beyond the bound: {context}", ask.id);
                assert!(
                    !is_any_waiting || ask.additional_unavailable == 0,
                    "{} overtakes: {context}",
                    ask.id
                );
                slots += u32::from(!holds);
                starts += u32::from(!holds);
                away += if holds {
                    ask.additional_unavailable.saturating_sub(own_away)
                } else {
                    ask.additional_unavailable
                };
            } else if bounds.len() == 1 {
                // One that can never fit lets the others pass.
                let can_fit = ask.additional_unavailable <= bound.unavailable;
                assert!(!has_slot || !fits || is_any_waiting, "{} waits for nothing: {context}", ask.id);
                is_any_waiting |= has_slot && can_fit && !fits;
            }
        }
    }
}

#[test]
fn nothing_is_released_beyond_a_bound_or_held_back_without_one_in_any_state_of_three_workloads() {
    let all = cases();
    for (bound, window) in all_bounds() {
        let bounds = [bound];
        for (a, b, c) in all
            .iter()
            .flat_map(|a| all.iter().flat_map(move |b| cases().into_iter().map(move |c| (*a, *b, c))))
        {
            check([a, b, c], &bounds, window);
        }
    }
}

#[test]
fn all_bounds_hold_at_once_in_any_state_of_three_workloads() {
    let all = cases();
    let cluster = |workloads, unavailable| BudgetBound {
        scope: BudgetScope::Cluster,
        workloads,
        unavailable,
        unnamed: 0,
        unreadable_claims: 0,
        starts: (9, 9),
    };
    let source = |bound| BudgetBound { scope: BudgetScope::Source(FIRST, "shop".into()), ..bound };
    let namespace = |bound| BudgetBound { scope: BudgetScope::Namespace("shop".into()), ..bound };
    let narrow_starts = BudgetBound { starts: (1, 1), ..cluster(9, 9) };
    for bounds in [
        [cluster(3, 3), source(cluster(1, 9)), namespace(cluster(9, 2))],
        [cluster(3, 3), source(cluster(9, 1)), namespace(cluster(2, 9))],
        [cluster(2, 2), source(narrow_starts.clone()), namespace(cluster(9, 9))],
        [cluster(3, 2), source(cluster(9, 9)), namespace(narrow_starts)],
    ] {
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            for c in &all {
                check([a, b, *c], &bounds, 9);
            }
        }
    }
}
