use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize as _;
use serde::de::value::{Error, I64Deserializer};
use serde_json::json;

use super::world::{FIRST, id, workload};
use crate::engine::{
    BudgetBound, BudgetHolding, BudgetScope, BudgetShortage, BudgetSlot, PodAmount, SlotPriority,
    SlotRequest, SourceId, WorkloadLoad, grant_slots,
};
use crate::object::ObjectId;

fn ask(priority: SlotPriority, wave: i32, name: &str, cost: u32) -> SlotRequest {
    SlotRequest {
        priority,
        wave,
        id: workload(name),
        source: FIRST,
        additional_unavailable: cost,
        reserved: cost,
    }
}

fn load(name: &str, slot: BudgetSlot, unavailable: u32) -> WorkloadLoad {
    WorkloadLoad { id: workload(name), source: Some(FIRST), slot, unavailable }
}

fn cluster(workloads: u32, unavailable: u32) -> BudgetBound {
    BudgetBound {
        scope: BudgetScope::Cluster,
        workloads,
        unavailable,
        unnamed: 0,
        unreadable_claims: 0,
        starts: (100, 100),
    }
}

/// Checks the workloads that may start, by the reasons of those that may not.
fn granted(
    asks: &[SlotRequest],
    loads: &[WorkloadLoad],
    bounds: &[BudgetBound],
    window: u32,
) -> BTreeMap<String, String> {
    let asks: BTreeSet<SlotRequest> = asks.iter().cloned().collect();
    let words = |shortage: Option<BudgetShortage>| {
        shortage.map_or("start".to_owned(), |shortage| shortage.to_string())
    };
    let answers = grant_slots(&asks, loads, bounds, window).into_iter();
    answers.map(|(id, shortage)| (id.name().to_owned(), words(shortage))).collect()
}

fn check(
    asks: &[SlotRequest],
    loads: &[WorkloadLoad],
    bounds: &[BudgetBound],
    window: u32,
    expected: &[(&str, &str)],
) {
    let expected = expected.iter().map(|(name, words)| ((*name).to_owned(), (*words).to_owned())).collect();
    assert_eq!(granted(asks, loads, bounds, window), expected);
}

#[test]
fn rollbacks_go_first_then_repairs_then_waves_then_names_and_restarts_last() {
    use SlotPriority::{NewContent, Repair, RepeatedRepair, Restart, Rollback};
    let all = [
        ask(Restart, -2, "A", 0),
        ask(RepeatedRepair, -2, "m", 0),
        ask(NewContent, 0, "a", 0),
        ask(NewContent, -1, "b", 0),
        ask(Repair, 9, "y", 0),
        ask(Rollback, 9, "z", 0),
    ];
    for (most, first) in [
        (1, &["z"][..]),
        (2, &["y", "z"]),
        (3, &["b", "y", "z"]),
        (4, &["a", "b", "y", "z"]),
        (5, &["a", "b", "m", "y", "z"]),
        (9, &["A", "a", "b", "m", "y", "z"]),
    ] {
        let may: Vec<String> = granted(&all, &[], &[cluster(most, 9)], 9)
            .into_iter()
            .filter(|(_, w)| w == "start")
            .map(|(n, _)| n)
            .collect();
        assert_eq!(may, first, "{most}");
    }
}

#[test]
fn a_no_says_what_is_short() {
    use SlotPriority::NewContent;
    let [a, b] = ["a", "b"].map(|name| ask(NewContent, 0, name, 2));
    let rolling = |name| load(name, BudgetSlot::Taken, 1);
    let x = "Deployment shop/x";
    check(
        std::slice::from_ref(&a),
        &[rolling("x")],
        &[cluster(1, 9)],
        9,
        &[("a", &format!("1 of 1 workloads are rolling out: {x}"))],
    );
    check(
        std::slice::from_ref(&a),
        &[rolling("x")],
        &[cluster(3, 9)],
        1,
        &[("a", &format!("slow start: at most 1 at a time until rollouts succeed: {x}"))],
    );
    check(
        &[a.clone(), b.clone()],
        &[load("x", BudgetSlot::None, 3)],
        &[cluster(3, 4)],
        9,
        &[
            ("a", "3 of at most 4 pods are unavailable, and this one takes down 2 more"),
            ("b", "3 of at most 4 pods are unavailable, and this one takes down 2 more"),
        ],
    );
    check(
        std::slice::from_ref(&a),
        &[],
        &[cluster(3, 1)],
        9,
        &[("a", "it takes down 2 pods at once, and at most 1 may be unavailable (maxUnavailable)")],
    );
    let begun = BudgetBound { starts: (0, 7), ..cluster(3, 9) };
    check(std::slice::from_ref(&a), &[], &[begun], 9, &[("a", "7 rollouts have started in the last minute")]);
    // A smaller one does not overtake.
    let small = ask(NewContent, 1, "small", 1);
    check(
        &[a.clone(), small],
        &[load("x", BudgetSlot::None, 3)],
        &[cluster(3, 4)],
        9,
        &[
            ("a", "3 of at most 4 pods are unavailable, and this one takes down 2 more"),
            ("small", "Deployment shop/a goes first"),
        ],
    );
}

#[test]
fn narrower_bounds_hold_beside_those_of_the_cluster() {
    use SlotPriority::NewContent;
    let source = BudgetBound { scope: BudgetScope::Source(FIRST, "shop".into()), ..cluster(1, 9) };
    let namespace = BudgetBound { scope: BudgetScope::Namespace("shop".into()), ..cluster(9, 1) };
    let elsewhere = BudgetBound { scope: BudgetScope::Namespace("other".into()), ..cluster(0, 0) };
    let two = [ask(NewContent, 0, "a", 1), ask(NewContent, 0, "b", 1)];
    let b = "1 of 1 workloads of source shop are rolling out: Deployment shop/a";
    check(&two, &[], &[cluster(9, 9), source, elsewhere], 9, &[("a", "start"), ("b", b)]);
    let b = "1 of at most 1 pods in namespace shop are unavailable, and this one takes down 1 more";
    check(&two, &[], &[cluster(9, 9), namespace], 9, &[("a", "start"), ("b", b)]);
}

#[test]
fn a_fix_can_always_start() {
    use SlotPriority::NewContent;
    // All of it is unavailable already, so it takes nothing more down, however little there is
    // left.
    let fix = ask(NewContent, 0, "sick", 0);
    let loads = [load("sick", BudgetSlot::None, 5), load("other", BudgetSlot::None, 5)];
    check(&[fix], &loads, &[cluster(3, 1)], 1, &[("sick", "start")]);
    // Its own unavailable pods do not count against what it takes down beyond them.
    let half = ask(NewContent, 0, "sick", 1);
    check(&[half], &[load("sick", BudgetSlot::None, 5)], &[cluster(3, 1)], 1, &[("sick", "start")]);
}

#[test]
fn a_workload_in_flight_needs_no_second_slot() {
    use SlotPriority::NewContent;
    let bounds = [BudgetBound { starts: (0, 0), ..cluster(1, 2) }];
    check(&[ask(NewContent, 0, "a", 2)], &[load("a", BudgetSlot::Taken, 2)], &bounds, 1, &[("a", "start")]);
}

#[test]
fn amounts_are_rounded_down_and_are_at_least_one() {
    for (text, all, expected) in [
        ("10%", 0, 1),
        ("10%", 9, 1),
        ("10%", 19, 1),
        ("10%", 20, 2),
        ("100%", 7, 7),
        ("3", 100, 3),
        ("0", 100, 0),
    ] {
        assert_eq!(
            text.parse::<PodAmount>().map(|amount| (amount.of(all), amount.to_string())),
            Ok((expected, text.into()))
        );
    }
    for wrong in ["", "%", "101%", "-1", "1.5", "ten"] {
        assert!(wrong.parse::<PodAmount>().is_err(), "{wrong}");
    }
}

prop_compose! {
    fn some_ask()(name in 0..6_usize, wave in 0..2, cost in 0..4_u32, repair in any::<bool>()) -> SlotRequest {
        let priority = if repair { SlotPriority::Repair } else { SlotPriority::NewContent };
        ask(priority, wave, ["a", "b", "c", "d", "e", "f"][name], cost)
    }
}

prop_compose! {
    fn some_load()(name in 0..6_usize, held in any::<bool>(), away in 0..4_u32) -> WorkloadLoad {
        load(["a", "b", "c", "d", "e", "f"][name], if held { BudgetSlot::Taken } else { BudgetSlot::None }, away)
    }
}

fn by_id<T>(all: Vec<T>, id: impl Fn(&T) -> ObjectId) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|one| seen.insert(id(one))).collect()
}

proptest! {
    /// Checks that starts stay within every bound, for any requests beside any in flight. The first
    /// in the queue starts where there is room for it.
    #[test]
    fn the_budget_is_never_exceeded_and_never_left_unused(
        asks in prop::collection::vec(some_ask(), 0..6),
        loads in prop::collection::vec(some_load(), 0..6),
        (workloads, away, window) in (0..4_u32, 0..6_u32, 1..4_u32),
    ) {
        let (asks, loads) = (by_id(asks, |a| a.id.clone()), by_id(loads, |l| l.id.clone()));
        let bound = cluster(workloads, away);
        let queue: BTreeSet<SlotRequest> = asks.into_iter().collect();
        let answers = grant_slots(&queue, &loads, std::slice::from_ref(&bound), window);
        let of: BTreeMap<&ObjectId, &WorkloadLoad> = loads.iter().map(|load| (&load.id, load)).collect();
        let held = |id: &ObjectId| of.get(id).is_some_and(|load| load.slot == BudgetSlot::Taken);
        let starts: Vec<&SlotRequest> = queue.iter().filter(|ask| answers[&ask.id].is_none()).collect();
        let before = loads.iter().filter(|load| load.slot == BudgetSlot::Taken).count();
        let new = starts.iter().filter(|ask| !held(&ask.id)).count();
        prop_assert!(new == 0 || before + new <= workloads.min(window) as usize);
        let total: u32 = loads.iter().map(|load| load.unavailable).sum();
        // The pods that may be unavailable once this one has started beside those before it. It may
        // take down those that are unavailable already.
        let mut taken = total;
        for ask in &starts {
            let own = of.get(&ask.id).map_or(0, |load| load.unavailable);
            let cost = ask.additional_unavailable;
            prop_assert!(cost == 0 || taken - own + cost <= away, "{ask:?} beside {taken}");
            // A workload in flight has reserved its own; another one has pods that stay unavailable.
            taken = if held(&ask.id) { taken.max(taken - own + cost) } else { taken + cost };
        }
        if let Some(first) = queue.iter().next() {
            let own = of.get(&first.id).map_or(0, |load| load.unavailable);
            let slot = held(&first.id) || before < workloads.min(window) as usize;
            let fits = first.additional_unavailable == 0 || total - own + first.additional_unavailable <= away;
            prop_assert_eq!(answers[&first.id].is_none(), slot && fits);
        }
    }
}

#[test]
fn scopes_are_named_in_the_reason() {
    let words =
        |scope: BudgetScope| BudgetShortage::Workloads(scope, 1, Arc::from([workload("x")])).to_string();
    assert_eq!(words(BudgetScope::Cluster), "1 of 1 workloads are rolling out: Deployment shop/x");
    let unread = BudgetShortage::Workloads(BudgetScope::Cluster, 2, Arc::from([])).to_string();
    assert_eq!(unread, "2 of 2 workloads are rolling out: their claims cannot be read");
    assert!(words(BudgetScope::Source(SourceId::new(3), "infra".into())).contains("of source infra"));
    assert!(words(BudgetScope::Namespace("a".into())).contains("in namespace a"));
}

#[test]
fn no_more_begin_at_once_than_are_left_in_the_minute() {
    use SlotPriority::NewContent;
    let asks = ["a", "b", "c"].map(|name| ask(NewContent, 0, name, 1));
    let minute = |left: u32, most: u32| [BudgetBound { starts: (left, most), ..cluster(9, 9) }];
    let no = "5 rollouts have started in the last minute";
    check(&asks, &[], &minute(2, 5), 9, &[("a", "start"), ("b", "start"), ("c", no)]);
    // One that is in flight begins no rollout.
    let rolling = [load("a", BudgetSlot::Taken, 1)];
    check(&asks, &rolling, &minute(1, 5), 9, &[("a", "start"), ("b", "start"), ("c", no)]);
    check(&asks[..1], &[], &minute(0, 1), 9, &[("a", "1 rollout has started in the last minute")]);
}

#[test]
fn a_claim_that_cannot_be_read_takes_a_place_and_none_of_the_slow_start() {
    use SlotPriority::NewContent;
    let asks = ["a", "b"].map(|name| ask(NewContent, 0, name, 0));
    let unread = |workloads: u32| [BudgetBound { unreadable_claims: 1, ..cluster(workloads, 9) }];
    let full = "2 of 2 workloads are rolling out: Deployment shop/a";
    check(&asks, &[], &unread(2), 9, &[("a", "start"), ("b", full)]);
    let slow = "slow start: at most 1 at a time until rollouts succeed: Deployment shop/a";
    check(&asks, &[], &unread(9), 1, &[("a", "start"), ("b", slow)]);
}

#[test]
fn pods_that_no_load_names_count_beside_the_others() {
    let asks = ["a", "b"].map(|name| ask(SlotPriority::NewContent, 0, name, 1));
    let bounds = [BudgetBound { unnamed: 2, ..cluster(9, 4) }];
    let no = "4 of at most 4 pods are unavailable, and this one takes down 1 more";
    check(&asks, &[load("x", BudgetSlot::None, 1)], &bounds, 9, &[("a", "start"), ("b", no)]);
}

/// Returns so many workloads.
fn workloads(count: usize) -> Arc<[ObjectId]> {
    (0..count).map(|number| workload(&format!("w{number}"))).collect()
}

#[test]
fn only_workloads_and_pods_can_be_short_because_of_claims() {
    let check = |short: BudgetShortage, expected: bool| {
        assert_eq!(short.is_of_claims(), expected, "{short:?}");
        let hidden = BudgetShortage::Hidden(Box::new(short), workload("x"), "denied".into());
        assert_eq!(hidden.is_of_claims(), expected, "{hidden:?}");
    };
    check(BudgetShortage::Workloads(BudgetScope::Cluster, 1, workloads(1)), true);
    check(BudgetShortage::SlowStart(1, workloads(1)), true);
    check(BudgetShortage::Pods(BudgetScope::Cluster, 1, 2, 3), true);
    check(BudgetShortage::TooMany(BudgetScope::Cluster, 2, 1), false);
    check(BudgetShortage::Starts(BudgetScope::Cluster, 1), false);
    check(BudgetShortage::Behind(workload("x")), false);
    check(BudgetShortage::Recovering(8), false);
}

#[test]
fn a_shortage_stays_the_same_while_only_its_numbers_and_names_change() {
    let pods = |away: u32| BudgetShortage::Pods(BudgetScope::Cluster, 1, away, 3);
    let starts = || BudgetShortage::Starts(BudgetScope::Cluster, 1);
    let whose = |words: &str| [BudgetHolding::UnreadableClaims(words.into())].into();
    let shared = |short: BudgetShortage, words: &str| BudgetShortage::Shared(Box::new(short), whose(words));
    let hidden =
        |short: BudgetShortage, of: &str| BudgetShortage::Hidden(Box::new(short), workload(of), "x".into());
    assert_eq!(pods(2).kinds(), pods(3).kinds());
    assert_ne!(pods(2).kinds(), starts().kinds());
    assert_eq!(shared(pods(2), "a").kinds(), shared(pods(3), "b").kinds());
    assert_ne!(shared(pods(2), "a").kinds(), shared(starts(), "a").kinds());
    assert_ne!(shared(pods(2), "a").kinds(), pods(2).kinds());
    assert_eq!(hidden(pods(2), "a").kinds(), hidden(pods(3), "b").kinds());
    assert_ne!(hidden(pods(2), "a").kinds(), hidden(starts(), "a").kinds());
}

#[test]
fn each_shortage_has_its_words() {
    let check = |short: &BudgetShortage, expected: &str| assert_eq!(short.to_string(), expected);
    let shop = || BudgetScope::Namespace("shop".into());
    let three = "Deployment shop/w0, Deployment shop/w1, Deployment shop/w2";
    check(
        &BudgetShortage::Workloads(shop(), 3, workloads(3)),
        &format!("3 of 3 workloads in namespace shop are rolling out: {three}"),
    );
    check(
        &BudgetShortage::Workloads(BudgetScope::Cluster, 3, workloads(5)),
        &format!("5 of 3 workloads are rolling out: {three} and 2 more"),
    );
    check(
        &BudgetShortage::SlowStart(2, workloads(4)),
        &format!("slow start: at most 2 at a time until rollouts succeed: {three} and 1 more"),
    );
    check(
        &BudgetShortage::Pods(shop(), 1, 1, 0),
        "1 pod in namespace shop is unavailable, at most 0 may be, and this one takes down 1 more",
    );
    check(
        &BudgetShortage::Pods(BudgetScope::Cluster, 2, 5, 4),
        "5 pods are unavailable, at most 4 may be, and this one takes down 2 more",
    );
    check(
        &BudgetShortage::Pods(BudgetScope::Cluster, 2, 4, 4),
        "4 of at most 4 pods are unavailable, and this one takes down 2 more",
    );
    check(
        &BudgetShortage::TooMany(shop(), 1, 0),
        "it takes down 1 pod at once, and at most 0 in namespace shop may be unavailable (maxUnavailable)",
    );
    let starts = || Box::new(BudgetShortage::Starts(shop(), 1));
    let begun = "1 rollout in namespace shop has started in the last minute";
    check(&starts(), begun);
    check(
        &BudgetShortage::Hidden(starts(), workload("x"), "denied".into()),
        &format!("{begun}; it is not known whether Deployment shop/x is still rolling out: denied"),
    );
    let others = [BudgetHolding::UnreadableClaims("others".into())].into();
    check(&BudgetShortage::Shared(starts(), others), &format!("{begun}; others"));
    check(
        &BudgetShortage::Recovering(8),
        "the rollout ledger was recreated; other daemons have 8 s to write their claims again",
    );
}

#[test]
fn an_amount_is_read_as_it_is_written() {
    for (amount, written) in [(PodAmount::Pods(3), json!(3)), (PodAmount::Percent(10), json!("10%"))] {
        assert_eq!(serde_json::to_value(amount).unwrap(), written);
        assert_eq!(serde_json::from_value::<PodAmount>(written).unwrap(), amount);
    }
    assert_eq!(serde_json::from_value::<PodAmount>(json!("3")).unwrap(), PodAmount::Pods(3));
    for wrong in [json!(-1), json!(5_000_000_000_u64), json!("101%"), json!(1.5), json!(true)] {
        assert!(serde_json::from_value::<PodAmount>(wrong.clone()).is_err(), "{wrong}");
    }
    // Some readers give each number as a signed one.
    for (number, expected) in [(3, Some(PodAmount::Pods(3))), (-1, None), (5_000_000_000, None)] {
        let read = PodAmount::deserialize(I64Deserializer::<Error>::new(number)).ok();
        assert_eq!(read, expected, "{number}");
    }
}

#[test]
fn whoever_waits_for_pods_holds_back_only_those_that_take_some_under_the_same_bound() {
    use SlotPriority::NewContent;
    let shop = BudgetBound { scope: BudgetScope::Namespace("shop".into()), ..cluster(9, 2) };
    let elsewhere = SlotRequest { id: id("apps", "Deployment", "other", "b"), ..ask(NewContent, 1, "b", 1) };
    let asks =
        [ask(NewContent, 0, "a", 2), elsewhere, ask(NewContent, 2, "c", 1), ask(NewContent, 3, "d", 0)];
    let waits = "1 of at most 2 pods in namespace shop are unavailable, and this one takes down 2 more";
    let expected = [("a", waits), ("b", "start"), ("c", "Deployment shop/a goes first"), ("d", "start")];
    check(&asks, &[load("x", BudgetSlot::None, 1)], &[cluster(9, 9), shop], 9, &expected);
}

#[test]
fn a_bound_applies_to_its_own_scope() {
    let source = |number: usize| BudgetScope::Source(SourceId::new(number), "shop".into());
    let check = |scope: &BudgetScope, of: Option<usize>, namespace: &str, expected: bool| {
        let id = id("apps", "Deployment", namespace, "a");
        assert_eq!(scope.is_applicable_to(&id, of.map(SourceId::new)), expected, "{scope:?} {of:?} {id}");
    };
    check(&BudgetScope::Cluster, None, "", true);
    check(&source(1), Some(1), "shop", true);
    check(&source(1), Some(2), "shop", false);
    check(&source(1), None, "shop", false);
    let shop = BudgetScope::Namespace("shop".into());
    check(&shop, None, "shop", true);
    check(&shop, Some(1), "other", false);
    check(&shop, Some(1), "", false);
}
