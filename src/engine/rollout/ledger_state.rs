//! The rollout ledger as this process knows it, and its own claims in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::rollout::ledger::RolloutLedger;
use crate::engine::rollout::ledger_recovery::LedgerRecovery;
use crate::engine::rollout::start_rate::StartHistory;
use crate::object::ObjectId;

/// The rollout ledger, as it was last read or written.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct LedgerState {
    /// This process, in its claims.
    holder: Arc<str>,
    /// The ledger as last read or written; none before that.
    ledger: Option<RolloutLedger>,
    /// The bytes of it that may not be left out.
    fixed_bytes: usize,
    /// The reason for which a person has to mend the ledger before it can be read.
    unreadable_reason: Option<Arc<str>>,
    /// Indicates whether another ledger is on its way to the API server.
    saving: bool,
    /// Workloads whose rollout has ended, and whose claim has not been taken back yet.
    ended_claims: BTreeSet<ObjectId>,
    /// Workloads whose claim was written together with a start, and that have not been written
    /// since. They hold a slot, whatever became of their former rollout.
    unused_claims: BTreeSet<ObjectId>,
    /// The recovery of a ledger that may be new.
    recovery: LedgerRecovery,
}

impl LedgerState {
    /// Names this process in its claims.
    pub(in crate::engine) fn set_holder(&mut self, holder: &str) {
        self.holder = holder.into();
    }

    /// Returns the name of this process in its claims.
    pub(in crate::engine) fn holder(&self) -> &Arc<str> {
        &self.holder
    }

    /// Takes over the ledger as it was read or written: no other one is on its way.
    pub(in crate::engine) fn set(&mut self, ledger: RolloutLedger) {
        self.saving = false;
        self.fixed_bytes = ledger.bytes();
        self.ledger = Some(ledger);
    }

    /// Returns the ledger as it was last read or written; none before that.
    pub(in crate::engine) fn latest(&self) -> Option<&RolloutLedger> {
        self.ledger.as_ref()
    }

    /// Returns the bytes of the ledger that may not be left out.
    pub(in crate::engine) fn fixed_bytes(&self) -> usize {
        self.fixed_bytes
    }

    /// Takes over the reason for which a person has to mend the ledger; none where it can be read.
    pub(in crate::engine) fn set_unreadable_reason(&mut self, why: Option<Arc<str>>) {
        self.unreadable_reason = why;
    }

    /// Returns the reason for which a person has to mend the ledger before it can be read.
    pub(in crate::engine) fn unreadable_reason(&self) -> Option<&Arc<str>> {
        self.unreadable_reason.as_ref()
    }

    /// Records that this ledger is on its way to the API server.
    pub(in crate::engine) fn begin_write(&mut self, next: &RolloutLedger) {
        self.saving = true;
        self.recovery.note_write(next);
    }

    /// Returns whether another ledger is on its way to the API server.
    pub(in crate::engine) fn is_saving(&self) -> bool {
        self.saving
    }

    /// Records that the rollout of a workload has ended: its claim is to be taken back.
    pub(in crate::engine) fn end_claim(&mut self, id: &ObjectId) {
        self.ended_claims.insert(id.clone());
    }

    /// Keeps the claim of a workload, as another rollout has it.
    pub(in crate::engine) fn reopen_claim(&mut self, id: &ObjectId) {
        self.ended_claims.remove(id);
    }

    /// Returns whether the claim of a workload is to be taken back.
    pub(in crate::engine) fn is_ended(&self, id: &ObjectId) -> bool {
        self.ended_claims.contains(id)
    }

    /// Records that the claim of a workload was written together with a start.
    pub(in crate::engine) fn add_unused_claim(&mut self, id: &ObjectId) {
        self.unused_claims.insert(id.clone());
    }

    /// Records that the claim of a workload gives it no slot by itself any more.
    pub(in crate::engine) fn drop_unused_claim(&mut self, id: &ObjectId) {
        self.unused_claims.remove(id);
    }

    /// Returns whether a workload holds a slot by a claim that it has not been written for.
    pub(in crate::engine) fn is_unused(&self, id: &ObjectId) -> bool {
        self.unused_claims.contains(id)
    }

    /// Returns the workloads that hold a slot by a claim that they have not been written for.
    pub(in crate::engine) fn unused_claims(&self) -> &BTreeSet<ObjectId> {
        &self.unused_claims
    }

    /// Forgets the ends and starts of claims that a ledger does not have.
    pub(in crate::engine) fn retain_claims_of(&mut self, ledger: &RolloutLedger) {
        self.ended_claims.retain(|id| ledger.claims.contains_key(id));
        self.unused_claims.retain(|id| ledger.claims.contains_key(id));
    }

    /// Returns the recovery of a ledger that may be new.
    pub(in crate::engine) fn recovery(&self) -> &LedgerRecovery {
        &self.recovery
    }

    /// Returns the ledger as read, with the claims of the former ledger that it has lost.
    pub(in crate::engine) fn restore_lost(
        &mut self,
        read: RolloutLedger,
        starts: &StartHistory,
    ) -> RolloutLedger {
        self.recovery.restore_lost(self.ledger.as_ref(), read, starts)
    }

    /// Lets time pass, and returns whether something may be claimed from now on.
    pub(in crate::engine) fn try_end_recovery(&mut self, now: Instant) -> bool {
        self.recovery.try_end(now)
    }

    /// Remembers that a workload is written.
    pub(in crate::engine) fn remember_workload(&mut self) {
        self.recovery.remember_workload();
    }
}

#[cfg(test)]
impl LedgerState {
    /// Forgets the ledger, as if it had never been read.
    pub(in crate::engine) fn forget(&mut self) {
        self.ledger = None;
    }
}
