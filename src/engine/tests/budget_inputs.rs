//! The engine feeds the rollout budget until it says no: with claims, reservations, narrower
//! bounds, starts, the slow start and the soak.

use std::time::Duration;

use super::harness::Harness;
use super::shared_budget::{at_rest, budget, files, one};
use super::world::{FIRST, SECOND, SET, World, WorldObject, all_ready, reading, workload};
use crate::engine::rollout::ledger::UnreadableClaim;
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{GroupKind, ObjectId};

const ONE_SECOND: Duration = Duration::from_secs(1);

/// Sets the window of the slow start.
fn open_window(harness: &mut Harness) {
    harness.engine.rollouts.slot_requests.set_slow_start_limit(9);
    harness.engine.rollouts.slot_requests.mark_stale();
}

/// Begins all that may begin, and ends nothing; returns the workloads that were written.
pub(super) fn begin(harness: &mut Harness, names: &[&str]) -> Vec<String> {
    for _ in 0..4 {
        for name in names {
            harness.deliver(usize::MAX);
            harness.step(&workload(name));
        }
    }
    begun(harness)
}

fn begun(harness: &Harness) -> Vec<String> {
    let name = |entry: &super::world::AuditEntry| match entry {
        super::world::AuditEntry::Changed(id) => id.name().to_owned(),
        other => panic!("{other:?}"),
    };
    harness.world.log.iter().map(name).collect()
}

/// Three workloads of three pods each, whose newer content may not all begin at once.
const NAMES: [&str; 3] = ["a", "b", "c"];

pub(super) fn waiting(of_all: Budget, of_source: BudgetNarrowing) -> Harness {
    let mut harness = at_rest(&NAMES, &of_all);
    harness.engine.sources[FIRST].declared.budget = of_source;
    harness.read(reading("r2", &files(&NAMES, 2)));
    open_window(&mut harness);
    harness
}

#[test]
fn the_bounds_of_a_source_and_of_a_namespace_hold_beside_those_of_the_cluster() {
    let wide = || budget("100%", 100);
    let check = |narrow: BudgetNarrowing, expected: usize| {
        let mut of_source = waiting(wide(), narrow.clone());
        assert_eq!(begin(&mut of_source, &NAMES).len(), expected, "of a source: {narrow:?}");
        let namespaces = [("shop".into(), narrow.clone()), ("other".into(), none_at_all())].into();
        let mut of_namespace = waiting(Budget { namespaces, ..wide() }, BudgetNarrowing::default());
        assert_eq!(begin(&mut of_namespace, &NAMES).len(), expected, "of a namespace: {narrow:?}");
    };
    let narrow = BudgetNarrowing::default;
    check(narrow(), 3);
    check(BudgetNarrowing { max_workloads: Some(1), ..narrow() }, 1);
    check(BudgetNarrowing { max_workloads: Some(2), ..narrow() }, 2);
    check(BudgetNarrowing { max_unavailable: Some(PodAmount::Pods(1)), ..narrow() }, 1);
    // A share of its nine pods.
    check(BudgetNarrowing { max_unavailable: Some(PodAmount::Percent(23)), ..narrow() }, 2);
    check(BudgetNarrowing { starts_per_minute: Some(1), ..narrow() }, 1);
    check(BudgetNarrowing { starts_per_minute: Some(2), ..narrow() }, 2);
}

fn none_at_all() -> BudgetNarrowing {
    BudgetNarrowing { max_workloads: Some(0), ..BudgetNarrowing::default() }
}

#[test]
fn the_bounds_of_the_cluster_hold() {
    let check = |of_all: Budget, expected: usize| {
        let mut harness = waiting(of_all.clone(), BudgetNarrowing::default());
        assert_eq!(begin(&mut harness, &NAMES).len(), expected, "{of_all:?}");
    };
    check(budget("100%", 100), 3);
    check(Budget { max_workloads: 2, ..budget("100%", 100) }, 2);
    // A write counts before anything of it is shown.
    check(budget("1", 100), 1);
    check(budget("2", 100), 2);
    check(budget("23%", 100), 2);
    check(budget("100%", 1), 1);
}

#[test]
fn starts_count_for_a_minute_and_no_longer() {
    let mut harness = waiting(budget("100%", 1), BudgetNarrowing::default());
    assert_eq!(begin(&mut harness, &NAMES), ["a"]);
    harness.settle();
    assert_eq!(begun(&harness), ["a"], "it has ended, and its start counts");
    harness.pass_time(Duration::from_secs(59));
    harness.settle();
    assert_eq!(begun(&harness), ["a"]);
    harness.pass_time(ONE_SECOND);
    harness.settle();
    assert_eq!(begun(&harness), ["a", "b"]);
}

#[test]
fn a_claim_that_cannot_be_read_takes_a_place() {
    let mut harness = waiting(Budget { max_workloads: 1, ..budget("100%", 100) }, BudgetNarrowing::default());
    harness.world.ledger.unreadable_claims =
        vec![UnreadableClaim { raw: serde_json::json!({"a": "later version"}), pods: 1 }];
    harness.engine.set_ledger(harness.world.ledger.clone());
    assert_eq!(begin(&mut harness, &NAMES), [""; 0]);
    harness.world.ledger.unreadable_claims.clear();
    harness.engine.set_ledger(harness.world.ledger.clone());
    assert_eq!(begin(&mut harness, &NAMES), ["a"]);
}

#[test]
fn while_the_ledger_cannot_be_read_nothing_begins() {
    let mut harness = waiting(budget("100%", 100), BudgetNarrowing::default());
    harness.engine.set_ledger_unreadable("it is garbled");
    assert_eq!(begin(&mut harness, &NAMES), [""; 0]);
    let expected = Some(Reason::RecordUnreadable("it is garbled".into()));
    assert_eq!(harness.decide(&workload("a")).reason, expected);
}

// Of two that ask at the same time the ledger gets the claim of the one that may start.
#[test]
fn no_claim_is_written_that_the_budget_denies_by_then() {
    let mut harness = waiting(Budget { max_workloads: 1, ..budget("100%", 100) }, BudgetNarrowing::default());
    let claims = |harness: &mut Harness, name: &str| {
        for _ in 0..3 {
            let decision = harness.engine.decide(&workload(name), harness.now);
            if decision.reason == Some(Reason::Claiming) {
                return;
            }
            harness.act(&workload(name), decision);
        }
        panic!("{name} asks for no claim");
    };
    claims(&mut harness, "b");
    claims(&mut harness, "a");
    let next = harness.engine.next_ledger().unwrap();
    assert_eq!(next.claims.into_keys().collect::<Vec<_>>(), [workload("a")]);
}

#[test]
fn each_success_lets_one_more_begin_so_that_each_round_doubles_them() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut harness = at_rest(&names, &budget("100%", 100));
    harness.read(reading("r2", &files(&names, 2)));
    assert_eq!(harness.engine.usage().window, 1);
    let mut rounds = Vec::new();
    for _ in 0..4 {
        let before = begun(&harness).len();
        rounds.push(begin(&mut harness, &names).len() - before);
        harness.finish_rollouts();
        harness.deliver(usize::MAX);
        harness.engine.advance(harness.now);
        harness.keep_ledger();
    }
    assert_eq!(rounds, [1, 2, 4, 1]);
    assert_eq!(harness.engine.usage().window, 9);
    // Another revision begins anew, where nothing rolls out any more.
    harness.read(reading("r3", &files(&names, 3)));
    assert_eq!(harness.engine.usage().window, 1);
}

/// Returns workloads with a newer content, of which the first one has begun and failed.
pub(super) fn after_a_failure(of_all: Budget) -> Harness {
    let mut harness = waiting(of_all, BudgetNarrowing::default());
    harness.world.bad.insert(one("a", 2).hash);
    assert_eq!(begin(&mut harness, &["a"]), ["a"]);
    harness.finish_rollouts();
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
    harness
}

#[test]
fn after_a_failure_one_begins_at_a_time_again() {
    let harness = after_a_failure(Budget { on_failure: OnFailure::Quarantine, ..budget("100%", 100) });
    assert_eq!(harness.engine.usage().window, 1);
}

#[test]
fn a_failed_rollout_keeps_its_place_until_it_is_gone_back_and_in_quarantine_gives_it_up() {
    for (on_failure, keeps) in [(OnFailure::Rollback, true), (OnFailure::Quarantine, false)] {
        let harness = after_a_failure(Budget { max_workloads: 1, on_failure, ..budget("100%", 100) });
        let held = harness.engine.workloads_in_flight();
        assert_eq!(held, if keeps { [workload("a")].into() } else { [].into() }, "{on_failure:?}");
    }
}

/// Shows a workload with this many of its three pods available.
pub(super) fn show(harness: &mut Harness, name: &str, available: u32) {
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&workload(name)).unwrap();
    thing.numbers = Some(ReplicaStatus { ready: available, available, ..all_ready() });
    thing.phase = if available == 3 { WorkloadPhase::Settled } else { WorkloadPhase::Recovering };
    thing.rv = rv;
    harness.world.announce(&workload(name));
    harness.deliver(usize::MAX);
    harness.engine.advance(harness.now);
}

/// Returns after how many seconds another one begins, where a pod is away in the 9th.
fn begins_after(of_all: Budget, of_source: BudgetNarrowing) -> u64 {
    let mut harness = waiting(of_all, of_source);
    assert_eq!(begin(&mut harness, &["a"]), ["a"]);
    assert_eq!(harness.engine.usage().unavailable.0, 1, "reserved from the write on");
    show(&mut harness, "a", 3);
    assert_eq!(harness.engine.usage().unavailable.0, 0, "all are there, and it soaks");
    for second in 0..100 {
        if second == 9 {
            show(&mut harness, "a", 2);
            show(&mut harness, "a", 3);
        }
        harness.engine.advance(harness.now);
        if begin(&mut harness, &["a", "b"]).len() > 1 {
            return second;
        }
        harness.pass_time(ONE_SECOND);
    }
    panic!("it never begins");
}

#[test]
fn a_rollout_is_done_once_it_has_been_healthy_for_the_soak_without_a_break() {
    let soaking =
        |soak: u64| Budget { max_workloads: 1, soak: Duration::from_secs(soak), ..budget("100%", 100) };
    let narrow = |soak: Option<u64>| BudgetNarrowing {
        soak: soak.map(Duration::from_secs),
        ..BudgetNarrowing::default()
    };
    assert_eq!(begins_after(soaking(0), narrow(None)), 0);
    assert_eq!(begins_after(soaking(5), narrow(None)), 5);
    assert_eq!(begins_after(soaking(10), narrow(None)), 19);
    // A narrower bound is a longer one.
    assert_eq!(begins_after(soaking(5), narrow(Some(20))), 29);
    assert_eq!(begins_after(soaking(10), narrow(Some(5))), 19);
    let namespaces = [("shop".into(), narrow(Some(20)))].into();
    assert_eq!(begins_after(Budget { namespaces, ..soaking(5) }, narrow(None)), 29);
}

#[test]
fn the_shortest_deadline_of_its_scopes_ends_a_rollout_that_makes_no_progress() {
    let fails_after = |of_all: u64, of_source: Option<u64>, of_namespace: Option<u64>| {
        let narrow = |seconds: Option<u64>| BudgetNarrowing {
            deadline: seconds.map(Duration::from_secs),
            ..BudgetNarrowing::default()
        };
        let namespaces = [("shop".into(), narrow(of_namespace))].into();
        let deadline = Duration::from_secs(of_all);
        let mut harness = waiting(Budget { deadline, namespaces, ..budget("100%", 100) }, narrow(of_source));
        begin(&mut harness, &["a"]);
        show(&mut harness, "a", 2);
        (0..200_u64).find(|_| {
            harness.pass_time(ONE_SECOND);
            harness.engine.advance(harness.now);
            !harness.engine.take_failed().is_empty()
        })
    };
    assert_eq!(fails_after(60, None, None), Some(59));
    assert_eq!(fails_after(60, Some(20), None), Some(19));
    assert_eq!(fails_after(60, Some(20), Some(10)), Some(9));
    assert_eq!(fails_after(60, Some(100), Some(100)), Some(59));
}

/// Decides again and again until a claim is wanted; returns the pods that it is for. None where it
/// is written without.
pub(super) fn claimed(harness: &mut Harness, id: &ObjectId) -> Option<u32> {
    for _ in 0..10 {
        let decision = harness.engine.decide(id, harness.now);
        if decision.reason == Some(Reason::Claiming) {
            let next = harness.engine.next_ledger().unwrap();
            return Some(next.claims[id].reserved);
        }
        if matches!(decision.action, Action::Apply(_) | Action::Delete(..)) {
            return None;
        }
        harness.act(id, decision);
    }
    panic!("nothing is to be done about {id}");
}

#[test]
fn each_write_that_restarts_pods_is_claimed_for_the_pods_that_it_takes_down() {
    let id = workload("a");
    let mut changed = waiting(budget("100%", 100), BudgetNarrowing::default());
    assert_eq!(claimed(&mut changed, &id), Some(1), "a new content");
    let mut drifted = at_rest(&NAMES, &budget("100%", 100));
    drifted.world.drift(&id);
    drifted.deliver(usize::MAX);
    assert_eq!(claimed(&mut drifted, &id), Some(1), "a repair of its template");
    let mut adopted = at_rest(&NAMES, &budget("100%", 100));
    let made = workload("made");
    let by_hand =
        WorldObject { labelled: false, release: None, ..WorldObject::settled(one("made", 9).hash, "", 9) };
    adopted.world.things.insert(made.clone(), by_hand);
    adopted.read(reading("r2", &files(&["made"], 1)));
    assert_eq!(claimed(&mut adopted, &made), Some(1), "an adoption");
}

#[test]
fn what_is_deleted_to_be_created_again_is_claimed_for_all_of_its_pods() {
    let id = workload("a");
    let mut harness = at_rest(&["a"], &budget("100%", 100));
    let mut wanted = (*one("a", 2)).clone();
    wanted.traits.recreate = RecreatePolicy::Allowed;
    harness.read(reading("r2", &[("a", Some(wanted.into()))]));
    let action = loop {
        let decision = harness.decide(&id);
        if let Action::Apply(_) = decision.action {
            break decision.action;
        }
        harness.act(&id, decision);
    };
    let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
    harness.engine.record_result(&id, &action, ActionResult::Failed(why), harness.now);
    harness.engine.withdraw(&id);
    harness.keep_ledger();
    assert!(harness.world.ledger.claims.is_empty(), "{:?}", harness.world.ledger.claims);
    assert_eq!(claimed(&mut harness, &id), Some(3));
}

#[test]
fn what_is_taken_over_from_another_source_of_the_process_is_claimed() {
    let claimed_pods = |is_read: bool| {
        let web = workload("web");
        let mut engine = super::safety::engine(&[SET, "applyset-other-v1"], &[web.group_kind()]);
        let harness = Harness::new(3);
        engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(1));
        engine.set_ledger(harness.world.ledger.clone());
        engine.set_reading(FIRST, reading("r1", &[("web", Some(one("web", 2)))]));
        engine.set_reading(SECOND, reading("r1", &[]));
        let thing = WorldObject::settled(one("web", 1).hash, "r1", 7);
        let owner = ObjectOwner::Ours("applyset-other-v1".into());
        let live = LiveObject { owner, ..World::live(&web, &thing) };
        // Of what is not ours yet only the metadata may have been read.
        let replica_status = live.replica_status.filter(|_| is_read);
        engine.observe_object(&web, LiveObject { replica_status, ..live });
        for (revision, wanted) in engine.unread_contents() {
            for (id, hash) in wanted {
                engine.record_older_content(&id, &ContentRef { hash, revision: revision.clone() }, None);
            }
        }
        let decision = engine.decide(&web, harness.now);
        let Action::DryRun(apply) = &decision.action else { panic!("{decision:?}") };
        assert_eq!(apply.purpose, ApplyPurpose::Transfer);
        let impact = crate::change::Impact { kind: crate::change::ImpactKind::Restart, pods: 3 };
        let uid = Uid("7".into());
        let answer = DryRunImpact { content: apply.desired.hash, uid, generation: 7, impact };
        engine.record_result(&web, &decision.action, ActionResult::DryRun(answer), harness.now);
        assert_eq!(engine.decide(&web, harness.now).reason, Some(Reason::Claiming));
        engine.next_ledger().unwrap().claims[&web].reserved
    };
    assert_eq!((claimed_pods(true), claimed_pods(false)), (1, 1));
}

// Another process cannot know whether anything came of it.
#[test]
fn a_process_that_ends_leaves_the_claim_of_a_write_that_was_not_shown() {
    let mut harness = waiting(budget("100%", 100), BudgetNarrowing::default());
    let id = workload("a");
    while !matches!(harness.step(&id), Some(Action::Apply(_))) {}
    // The last view is that of the content before, at rest.
    let last = harness.engine.last_ledger().unwrap();
    assert!(last.claims[&id].holder_exited);
    harness.deliver(usize::MAX);
    assert!(harness.engine.last_ledger().unwrap().claims.contains_key(&id), "it rolls out");
    harness.finish_rollouts();
    harness.deliver(usize::MAX);
    assert!(harness.engine.last_ledger().unwrap().claims.is_empty());
}

// A claim may be for more pods than the strategy of what is shown, or for fewer.
#[test]
fn a_new_process_reserves_what_was_claimed_before_it_and_no_less_than_the_strategy_takes_down() {
    let id = workload("a");
    let reserved = |claimed: u32, max_unavailable: u32| {
        let mut harness = waiting(budget("100%", 100), BudgetNarrowing::default());
        while !matches!(harness.step(&id), Some(Action::Apply(_))) {}
        harness.keep_ledger();
        harness.world.ledger.claims.get_mut(&id).unwrap().reserved = claimed;
        let thing = harness.world.things.get_mut(&id).unwrap();
        thing.numbers = Some(ReplicaStatus { max_unavailable, ..all_ready() });
        harness.engine = harness.fresh_with(budget("100%", 100));
        harness.read(reading("r2", &files(&NAMES, 2)));
        harness.deliver(usize::MAX);
        harness.engine.usage().unavailable.0
    };
    assert_eq!([reserved(3, 1), reserved(1, 2)], [3, 2]);
}

// Nobody knows whether it still rolls out.
#[test]
fn a_claim_of_what_cannot_be_seen_is_not_taken_back() {
    let mut harness = waiting(budget("100%", 100), BudgetNarrowing::default());
    let id = workload("a");
    while !matches!(harness.step(&id), Some(Action::Apply(_))) {}
    harness.keep_ledger();
    let blind = Harness { world: World { things: [].into(), ..harness.world.clone() }, ..harness.clone() };
    harness.engine = blind.fresh_with(budget("100%", 100));
    let away = KindState::Unobservable("it does not answer".into(), crate::object::ErrorClass::Transient);
    harness.engine.set_informer_state(&id.group_kind(), away);
    harness.read(reading("r2", &[]));
    harness.keep_ledger();
    assert!(harness.world.ledger.claims.contains_key(&id));
    assert!(harness.engine.workloads_in_flight().contains(&id));
}

// Health that somebody reports does not end what goes on.
#[test]
fn a_view_from_before_the_write_of_a_rollout_judges_nothing() {
    let mut harness = waiting(Budget { max_workloads: 1, ..budget("100%", 100) }, BudgetNarrowing::default());
    let id = workload("a");
    while !matches!(harness.step(&id), Some(Action::Apply(_))) {}
    let mut old = harness.engine.informer_object(&id).unwrap().clone();
    old.health = Health::new(HealthStatus::Failed, "an older failure");
    harness.engine.objects.entries.get_mut(&id).unwrap().direct_view = None;
    harness.engine.observe_object(&id, old);
    harness.engine.advance(harness.now);
    assert!(harness.engine.take_failed().is_empty());
    assert_eq!(harness.engine.workloads_in_flight(), [id].into(), "nor is it done");
}

#[test]
fn a_source_or_a_namespace_may_ask_for_quarantine_in_place_of_a_rollback() {
    let narrow = |on_failure: Option<OnFailure>| BudgetNarrowing { on_failure, ..BudgetNarrowing::default() };
    let after_failure = |of_source: Option<OnFailure>, of_namespace: Option<OnFailure>| {
        let namespaces = [("shop".into(), narrow(of_namespace))].into();
        let mut harness = waiting(Budget { namespaces, ..budget("100%", 100) }, narrow(of_source));
        harness.world.bad.insert(one("a", 2).hash);
        begin(&mut harness, &["a"]);
        harness.finish_rollouts();
        harness.deliver(usize::MAX);
        harness.engine.advance(harness.now);
        harness.keep_ledger();
        harness.world.rejections[0].action
    };
    let (back, stays) = (RejectionAction::RollBack, RejectionAction::Quarantine);
    assert_eq!(after_failure(None, None), back);
    assert_eq!(after_failure(Some(OnFailure::Quarantine), None), stays);
    assert_eq!(after_failure(None, Some(OnFailure::Quarantine)), stays);
    assert_eq!(after_failure(Some(OnFailure::Rollback), None), back);
}

// As one that somebody has begun by kubectl.
#[test]
fn a_rollout_that_nobody_has_claimed_takes_a_place() {
    let one_at_a_time = Budget { max_workloads: 1, ..budget("100%", 100) };
    let mut harness = waiting(one_at_a_time, BudgetNarrowing::default());
    for (phase, expected) in [(WorkloadPhase::Replacing, vec![]), (WorkloadPhase::Settled, vec!["a"])] {
        let rv = harness.world.tick();
        let thing = harness.world.things.get_mut(&workload("c")).unwrap();
        (thing.phase, thing.rv) = (phase, rv);
        harness.world.announce(&workload("c"));
        assert_eq!(begin(&mut harness, &["a", "b"]), expected, "{phase:?}");
    }
}

// It may fail until then, and goes back to what the record says.
#[test]
fn a_unit_stays_on_record_until_its_workload_has_soaked() {
    let soak = Duration::from_mins(1);
    let mut harness = at_rest(&["web"], &Budget { soak, ..budget("100%", 100) });
    harness.read(reading("r2", &files(&["web"], 2)));
    harness.settle();
    assert_eq!(begun(&harness), ["web"]);
    harness.pass_time(soak.saturating_sub(ONE_SECOND));
    harness.settle();
    assert_eq!(harness.world.ledger.units.len(), 1);
    harness.pass_time(ONE_SECOND);
    harness.settle();
    assert!(harness.world.is_free());
}

/// Asks for all of these before anything is claimed; returns the workloads that may be claimed.
fn claimed_first(harness: &mut Harness, names: &[&str]) -> Vec<ObjectId> {
    for name in names {
        harness.deliver(usize::MAX);
        for _ in 0..5 {
            let decision = harness.engine.decide(&workload(name), harness.now);
            if matches!(decision.reason, Some(Reason::Claiming | Reason::Budget(_))) {
                break;
            }
            harness.act(&workload(name), decision);
        }
    }
    // All have asked by now.
    for name in names {
        let reason = harness.engine.decide(&workload(name), harness.now).reason;
        assert!(matches!(reason, Some(Reason::Claiming | Reason::Budget(_))), "{name}: {reason:?}");
    }
    harness.engine.next_ledger().map(|next| next.claims.into_keys().collect()).unwrap_or_default()
}

#[test]
fn a_repair_begins_before_newer_contents() {
    let mut harness = at_rest(&NAMES, &Budget { max_workloads: 1, ..budget("100%", 100) });
    open_window(&mut harness);
    harness.read(reading("r2", &files(&["a", "b"], 2)));
    harness.world.drift(&workload("c"));
    assert_eq!(claimed_first(&mut harness, &NAMES), [workload("c")]);
}

#[test]
fn pods_that_are_unavailable_already_are_claimed_for_and_cost_nothing() {
    for (available, expected) in [(3, 1), (2, 0), (1, 0)] {
        let mut harness = at_rest(&NAMES, &budget("100%", 100));
        show(&mut harness, "a", available);
        harness.read(reading("r2", &files(&NAMES, 2)));
        assert_eq!(claimed(&mut harness, &workload("a")), Some(1), "{available}");
        let (request, _) = harness.engine.rollouts.slot_requests.get(&workload("a")).unwrap();
        assert_eq!(request.additional_unavailable, expected, "{available}");
    }
}

// The pod that was unavailable is replaced first, and gets well. Then the next one goes.
#[test]
fn a_fix_keeps_its_pods_from_others_until_all_of_it_is_done() {
    let mut harness = at_rest(&NAMES, &budget("1", 100));
    show(&mut harness, "a", 2);
    harness.read(reading("r2", &files(&NAMES, 2)));
    open_window(&mut harness);
    assert_eq!(begin(&mut harness, &NAMES), ["a"]);
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&workload("a")).unwrap();
    thing.numbers = Some(ReplicaStatus { updated: 1, ..all_ready() });
    (thing.phase, thing.rv) = (WorkloadPhase::Replacing, rv);
    harness.world.announce(&workload("a"));
    assert_eq!(begin(&mut harness, &NAMES), ["a"], "two of it have not been replaced");
    assert_eq!(harness.engine.usage().unavailable.0, 1);
    show(&mut harness, "a", 3);
    assert_ne!(begin(&mut harness, &NAMES), ["a"], "it is done");
}

/// Returns a workload that takes three pods down at a time.
fn wide(name: &str, content: u32) -> SharedDesiredObject {
    let strategy =
        serde_json::json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 3, "maxSurge": 0}}}});
    let mut wide = (*one(name, content)).clone();
    wide.strategy = UpdateStrategy::of(&GroupKind::new("apps", "Deployment"), &strategy);
    wide.into()
}

// It has one pod away, and all three are its own from then on.
#[test]
fn a_newer_content_that_takes_down_more_than_the_one_under_way_leaves_none_of_that_to_others() {
    let mut harness = at_rest(&["a", "b"], &budget("3", 100));
    harness.read(reading("r2", &files(&["a"], 2)));
    assert_eq!(begin(&mut harness, &["a"]), ["a"]);
    show(&mut harness, "a", 2);
    harness.read(reading("r3", &[("a", Some(wide("a", 3))), ("b", Some(one("b", 3)))]));
    open_window(&mut harness);
    assert_eq!(claimed_first(&mut harness, &["a", "b"]), [workload("a")]);
}

// Rollouts have taken down one pod of each. The newer content may have all three of its own away.
#[test]
fn a_newer_content_that_takes_down_more_than_the_one_under_way_waits_for_what_others_have_away() {
    let mut harness = at_rest(&["a", "b"], &budget("3", 100));
    harness.read(reading("r2", &files(&["a", "b"], 2)));
    open_window(&mut harness);
    assert_eq!(begin(&mut harness, &["a", "b"]), ["a", "b"]);
    show(&mut harness, "a", 2);
    harness.read(reading("r3", &[("a", Some(wide("a", 3)))]));
    open_window(&mut harness);
    claimed_first(&mut harness, &["a"]);
    let reason = harness.decide(&workload("a")).reason;
    assert!(matches!(reason, Some(Reason::Budget(_))), "{reason:?}");
}
