//! A rollout ledger that was deleted or emptied: its claims are written again before any other
//! rollout begins.
//!
//! Each ledger says when it was begun. So a new one is not taken for the one that was known. A
//! process that knew the old one writes its claims into the new one. For [`NEW_LEDGER_DELAY`]
//! nobody claims anything new: others may hold claims that this process has never seen, and need
//! that time to notice.
//!
//! **Hazard:** the claims of a process that is cut off for longer, and that nobody else has read,
//! cannot be known here.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::engine::decide::budget_shortage::BudgetShortage;
use crate::engine::facts::records::release_unit::ReleaseUnit;
use crate::engine::rollout::budget_tally::BudgetTally;
use crate::engine::rollout::ledger::{RolloutClaim, RolloutLedger};
use crate::engine::rollout::start_rate::StartHistory;
use crate::engine::state::Engine;
use crate::object::ObjectId;

/// The time for which nothing new is claimed in a new ledger. Every holder of a claim reads it
/// several times within.
pub(crate) const NEW_LEDGER_DELAY: Duration = Duration::from_secs(8);

/// The state of a ledger that may be new.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct LedgerRecovery {
    /// The time since which it is known to be new, or missing; none where it is old.
    since: Option<Instant>,
    /// Indicates whether there is none, or it says nothing at all.
    absent: bool,
    /// Indicates whether it lacks something that was claimed in the one before.
    lacks: bool,
    /// The write of this process in flight: the time at which the ledger was begun, and the claims.
    sent: Option<(Option<Timestamp>, BTreeMap<ObjectId, RolloutClaim>)>,
    /// The time at which waiting objects are decided on again.
    due: Option<Instant>,
    /// Indicates whether this process has written a workload, so that there will be rollouts.
    is_needed: bool,
}

impl LedgerRecovery {
    /// Returns whether what was claimed before is in the object, as far as that is known here.
    pub(in crate::engine) fn is_complete(&self) -> bool {
        !self.lacks
    }

    /// Remembers that a workload is written.
    pub(in crate::engine) fn remember_workload(&mut self) {
        self.is_needed = true;
    }

    fn remaining_time(&self, now: Instant) -> Option<Duration> {
        let since = self.since?;
        let rest = (since + NEW_LEDGER_DELAY).saturating_duration_since(now);
        (self.lacks || !rest.is_zero()).then_some(rest)
    }
}

impl RolloutLedger {
    /// Returns whether it is that of an object that is not there, or that was emptied.
    fn is_blank(&self) -> bool {
        *self == Self::default()
    }

    /// Takes over the claims of another ledger that this one lacks.
    fn recover(&mut self, lost: &Self) {
        for (id, claim) in &lost.claims {
            self.claims.entry(id.clone()).or_insert_with(|| claim.clone());
        }
        let overlaps = |ledger: &Self, unit: &ReleaseUnit| {
            let same = |known: &ReleaseUnit| {
                known.inventory_id == unit.inventory_id
                    && known.members.keys().any(|id| unit.members.contains_key(id))
            };
            ledger.units.iter().any(same)
        };
        for unit in &lost.units {
            if !overlaps(self, unit) {
                self.units.push(unit.clone());
            }
        }
        if self.history.is_empty() {
            self.history.clone_from(&lost.history);
        }
        if self.commits.is_empty() {
            self.commits.clone_from(&lost.commits);
        }
        for tally in &lost.tallies {
            if self.tallies.iter().all(|known| known.inventory_id != tally.inventory_id) {
                self.tallies.push(tally.clone());
            }
        }
        for start in &lost.starts {
            if !self.starts.contains(start) {
                self.starts.push(start.clone());
            }
        }
        self.starts.sort_by_key(|start| start.at);
    }
}

impl LedgerRecovery {
    /// Returns the ledger as read, with the claims of the former ledger that it has lost.
    pub(in crate::engine) fn restore_lost(
        &mut self,
        before: Option<&RolloutLedger>,
        mut read: RolloutLedger,
        starts: &StartHistory,
    ) -> RolloutLedger {
        let Some((now, wall)) = starts.clock() else { return read };
        let is_answer = self.sent.take().is_some_and(|sent| sent == (read.begun, read.claims.clone()));
        self.absent = read.is_blank();
        let is_same = match read.begun {
            Some(begun) => before.and_then(|before| before.begun) == Some(begun),
            // An older version says of none when it was begun.
            None => !self.absent,
        };
        if is_answer || (is_same && !self.lacks) {
            self.lacks = false;
            return read;
        }
        let age = |begun: Timestamp| Duration::try_from(begun.duration_until(wall)).unwrap_or_default();
        if !is_same {
            let known = match (read.begun, before) {
                (None, _) => self.since.filter(|_| before.is_some_and(|one| one.begun.is_none())),
                (Some(_), Some(_)) => None,
                (Some(begun), None) => now.checked_sub(age(begun)),
            };
            let since = known.unwrap_or(now);
            (self.since, self.due) = (Some(since), Some(since + NEW_LEDGER_DELAY));
        }
        if let Some(before) = before {
            let recorded = read.clone();
            read.recover(before);
            self.lacks = read != recorded;
        }
        read
    }

    /// Returns why nothing new is claimed; none where that may be.
    pub(in crate::engine) fn shortage(&self, now: Instant) -> Option<BudgetShortage> {
        // Not what is left of it: what is there is reported once.
        self.remaining_time(now).map(|_| BudgetShortage::Recovering(NEW_LEDGER_DELAY.as_secs()))
    }

    /// Returns when that is over.
    pub(in crate::engine) fn end(&self, now: Instant) -> Option<Instant> {
        self.remaining_time(now).filter(|rest| !rest.is_zero()).map(|rest| now + rest)
    }

    /// Lets time pass, and returns whether something may be claimed from now on.
    pub(in crate::engine) fn try_end(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// Says in a ledger that is written where there was none, or an empty one, that it begins now.
    pub(in crate::engine) fn begin(&self, ledger: &mut RolloutLedger, starts: &StartHistory) {
        if let Some((_, wall)) = starts.clock().filter(|_| self.absent) {
            ledger.begun = Timestamp::from_millisecond(wall.as_millisecond()).ok();
        }
    }

    /// Remembers what is about to be written.
    pub(in crate::engine) fn note_write(&mut self, ledger: &RolloutLedger) {
        self.sent = Some((ledger.begun, ledger.claims.clone()));
    }
}

impl Engine {
    /// Returns the rollout ledger that is made before anything has to be claimed: one that is old
    /// by then can be relied on at once. None where there is one, or nobody here writes workloads.
    pub(in crate::engine) fn initial_ledger(&self) -> Option<RolloutLedger> {
        let ledger = self.rollouts.ledger.latest().filter(|ledger| ledger.begun.is_none())?;
        let recovery = self.rollouts.ledger.recovery();
        let mut first = ledger.clone();
        recovery.begin(&mut first, &self.rollouts.starts);
        (recovery.is_needed && recovery.absent && first.begun.is_some()).then_some(first)
    }

    /// Returns whether anything would be lost with the rollout ledger: it is read again and again
    /// meanwhile.
    pub(in crate::engine) fn is_ledger_needed(&self) -> bool {
        let holds = |ledger: &RolloutLedger| {
            ledger.claims.values().any(|claim| self.sources.inventory_ids().contains(&claim.inventory_id))
                || self.own_tallies(ledger).iter().any(BudgetTally::has_unavailable_pods)
        };
        !self.rollouts.slot_requests.is_empty() || self.rollouts.ledger.latest().is_some_and(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::facts::records::release_unit::{RollbackTarget, UnitMember};
    use crate::engine::rollout::ledger_authors::AuthoredRevision;
    use crate::engine::rollout::start_rate::RolloutStart;
    use crate::engine::tests::world::{config, workload};
    use crate::engine::{Authorship, HashCiphers};
    use crate::object::{ContentHash, Revision};

    fn claim(content: &str) -> RolloutClaim {
        RolloutClaim {
            inventory_id: "a-v1".into(),
            holder: "one".into(),
            rollout_key: ContentHash::hash_bytes(content.as_bytes()),
            reserved: 1,
            holder_exited: false,
            recreates: false,
            recreation_deadline: None,
        }
    }

    fn unit(inventory_id: &str, names: &[&str]) -> ReleaseUnit {
        let member =
            || UnitMember { content: None, rollback_target: RollbackTarget::Absent, restarted: None };
        ReleaseUnit {
            inventory_id: inventory_id.into(),
            revision: Revision::new("r1"),
            members: names.iter().map(|name| (config(name), member())).collect(),
        }
    }

    fn commit(revision: &str) -> AuthoredRevision {
        let authored = Authorship::of("Ann", "Bake a cake");
        AuthoredRevision { inventory_id: "a-v1".into(), revision: Revision::new(revision), authored }
    }

    fn tally(inventory_id: &str, pods: u32) -> BudgetTally {
        BudgetTally { inventory_id: inventory_id.into(), pods, ..BudgetTally::default() }
    }

    fn start(name: &str, second: i64) -> RolloutStart {
        let at = Timestamp::from_second(second).unwrap();
        RolloutStart { id: workload(name), inventory_id: "a-v1".into(), at, clock: "here".into() }
    }

    fn lost() -> RolloutLedger {
        RolloutLedger {
            claims: [(workload("a"), claim("1")), (workload("b"), claim("2"))].into(),
            units: vec![unit("a-v1", &["a"]), unit("a-v1", &["b", "c"]), unit("b-v1", &["a"])],
            history: vec![unit("a-v1", &["old"])],
            commits: vec![commit("r0")],
            tallies: vec![tally("a-v1", 1), tally("b-v1", 2)],
            starts: vec![start("a", 5), start("b", 1)],
            ..RolloutLedger::default()
        }
    }

    #[test]
    fn a_ledger_takes_over_what_it_lacks_of_the_one_before() {
        let mut found = RolloutLedger {
            claims: [(workload("a"), claim("3"))].into(),
            units: vec![unit("a-v1", &["c"])],
            tallies: vec![tally("b-v1", 9)],
            starts: vec![start("c", 3), start("a", 5)],
            ..RolloutLedger::default()
        };
        found.recover(&lost());
        let expected = RolloutLedger {
            claims: [(workload("a"), claim("3")), (workload("b"), claim("2"))].into(),
            units: vec![unit("a-v1", &["c"]), unit("a-v1", &["a"]), unit("b-v1", &["a"])],
            history: vec![unit("a-v1", &["old"])],
            commits: vec![commit("r0")],
            tallies: vec![tally("b-v1", 9), tally("a-v1", 1)],
            starts: vec![start("b", 1), start("c", 3), start("a", 5)],
            ..RolloutLedger::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_history_that_goes_on_takes_nothing_of_the_one_before() {
        let (history, commits) = (vec![unit("a-v1", &["new"])], vec![commit("r1")]);
        let mut found =
            RolloutLedger { history: history.clone(), commits: commits.clone(), ..RolloutLedger::default() };
        found.recover(&lost());
        assert_eq!((found.history, found.commits), (history, commits));
    }

    #[test]
    fn a_ledger_is_blank_where_it_says_nothing_at_all() {
        let read = |text: &str| RolloutLedger::parse(text, &HashCiphers::default()).unwrap();
        assert!(read("{}").is_blank());
        assert!(!read(r#"{"begun": "2030-01-01T00:00:00Z"}"#).is_blank());
        assert!(!read(r#"{"claims": ["unreadable"]}"#).is_blank());
        assert!(!lost().is_blank());
    }

    #[test]
    fn a_new_ledger_is_relied_on_after_its_delay_and_once_it_lacks_nothing() {
        let begun = crate::engine::tests::world::start_time();
        let check = |since: Option<Instant>, lacks: bool, passed: Duration, expected: Option<u64>| {
            let recovery = LedgerRecovery { since, lacks, ..LedgerRecovery::default() };
            let found = recovery.remaining_time(begun + passed);
            assert_eq!(found, expected.map(Duration::from_secs), "{recovery:?} {passed:?}");
            assert_eq!(recovery.is_complete(), !lacks);
        };
        let second = Duration::from_secs(1);
        for lacks in [false, true] {
            check(None, lacks, Duration::ZERO, None);
            check(Some(begun), lacks, Duration::ZERO, Some(8));
            check(Some(begun), lacks, NEW_LEDGER_DELAY.saturating_sub(second), Some(1));
            check(Some(begun), lacks, NEW_LEDGER_DELAY, lacks.then_some(0));
        }
    }

    /// Returns the starts of a process, at this moment of its clock.
    fn starts_at(now: Instant) -> StartHistory {
        let mut starts = StartHistory::default();
        starts.set_clock(now, Timestamp::from_second(0).unwrap());
        starts
    }

    fn begun_at(second: i64, ledger: RolloutLedger) -> RolloutLedger {
        RolloutLedger { begun: Timestamp::from_second(second).ok(), ..ledger }
    }

    #[test]
    fn the_answer_to_a_write_of_this_process_begins_no_delay_anew() {
        let begin = crate::engine::tests::world::start_time();
        let mut recovery = LedgerRecovery::default();
        let blank = recovery.restore_lost(None, RolloutLedger::default(), &starts_at(begin));
        assert!(recovery.shortage(begin).is_some());
        let later = begin + NEW_LEDGER_DELAY;
        let written = begun_at(1, lost());
        recovery.note_write(&written);
        let read = recovery.restore_lost(Some(&blank), written.clone(), &starts_at(later));
        assert_eq!(read, written);
        assert!(recovery.shortage(later).is_none());
    }

    #[test]
    fn a_ledger_that_is_not_the_one_written_last_is_no_answer_to_that() {
        let begin = crate::engine::tests::world::start_time();
        let mut recovery = LedgerRecovery::default();
        let before = begun_at(1, lost());
        recovery.note_write(&before);
        let emptied = begun_at(2, RolloutLedger::default());
        let read = recovery.restore_lost(Some(&before), emptied, &starts_at(begin));
        assert_eq!(read.claims, before.claims);
        assert!(!recovery.is_complete());
    }

    #[test]
    fn whoever_waits_is_asked_again_once_at_the_end_of_the_delay() {
        let begin = crate::engine::tests::world::start_time();
        let due = Some(begin + NEW_LEDGER_DELAY);
        let mut recovery = LedgerRecovery { due, ..LedgerRecovery::default() };
        let just_before = NEW_LEDGER_DELAY.saturating_sub(Duration::from_millis(1));
        for (passed, expected) in [(just_before, false), (NEW_LEDGER_DELAY, true), (NEW_LEDGER_DELAY, false)]
        {
            assert_eq!(recovery.try_end(begin + passed), expected, "{passed:?}");
        }
    }
}
