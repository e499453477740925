//! The claims of other processes, by what a lookup has shown of their workloads.

use std::time::Duration;

use jiff::Timestamp;

use super::shared_budget::{THEIRS, at_rest, budget, elsewhere, theirs};
use super::world::{all_ready, workload};
use crate::engine::*;

/// Returns a start of another process.
fn start(name: &str, second: i64) -> RolloutStart {
    let at = Timestamp::from_second(second).unwrap();
    RolloutStart { id: elsewhere(name), inventory_id: THEIRS.into(), at, clock: "there".into() }
}

// A spent claim that counted anew at each write of the ledger would hold its place for ever. One
// whose next step has begun must not count as spent.
#[test]
fn a_spent_claim_stays_spent_until_it_is_written_anew() {
    type LedgerChange = fn(&mut RolloutLedger);
    let check = |changes: &[LedgerChange], expected: bool| {
        let (id, claim) = (elsewhere("api"), theirs(1));
        let mut harness = at_rest(&["web"], &budget("100%", 100));
        let mut ledger = harness.world.ledger.clone();
        ledger.claims.insert(id.clone(), claim.clone());
        ledger.starts.push(start("api", 1));
        harness.engine.set_ledger(ledger.clone());
        for passed in [Duration::ZERO, ABANDONED_CLAIM_AGE] {
            harness.engine.observe_foreign_workload(&id, None, harness.now + passed);
        }
        assert!(!harness.engine.is_counted(&id, &claim));
        for change in changes {
            change(&mut ledger);
            harness.engine.set_ledger(ledger.clone());
        }
        assert_eq!(harness.engine.is_counted(&id, &claim), expected, "{ledger:?}");
    };
    let none: LedgerChange = |_| {};
    let other_start: LedgerChange = |ledger| ledger.starts.push(start("db", 2));
    let second_start: LedgerChange = |ledger| ledger.starts.push(start("api", 2));
    let only_second_start: LedgerChange = |ledger| ledger.starts = vec![start("api", 2)];
    let no_start: LedgerChange = |ledger| ledger.starts.clear();
    let no_claim: LedgerChange = |ledger| ledger.claims.clear();
    let claimed: LedgerChange = |ledger| drop(ledger.claims.insert(elsewhere("api"), theirs(1)));
    check(&[none], false);
    check(&[other_start], false);
    check(&[no_start], false);
    check(&[second_start], true);
    check(&[only_second_start], true);
    check(&[no_claim, claimed], true);
}

// The deadline of its own process may be longer than that of this one.
#[test]
fn a_claim_without_progress_counts_for_two_minutes_however_short_the_deadline_here_is() {
    let check = |deadline: u64, passed: u64, expected: bool| {
        let (id, claim) = (elsewhere("api"), theirs(1));
        let bounds = Budget { deadline: Duration::from_secs(deadline), ..budget("100%", 100) };
        let mut harness = at_rest(&["web"], &bounds);
        harness.world.ledger.claims.insert(id.clone(), claim.clone());
        harness.engine.set_ledger(harness.world.ledger.clone());
        let mut live = harness.engine.live_object(&workload("web")).cloned().unwrap();
        live.replica_status = Some(ReplicaStatus { phase: WorkloadPhase::Replacing, ..all_ready() });
        for seconds in [0, passed] {
            let now = harness.now + Duration::from_secs(seconds);
            harness.engine.observe_foreign_workload(&id, Some(&live), now);
        }
        assert_eq!(harness.engine.is_counted(&id, &claim), expected, "{deadline} {passed}");
    };
    check(30, 119, true);
    check(30, 120, false);
    check(300, 299, true);
    check(300, 300, false);
}
