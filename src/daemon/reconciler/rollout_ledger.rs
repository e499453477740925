//! Reads and writes the cluster's rollout ledger.
//!
//! `sync_rollout_ledger` follows the decisions of each turn of the loop. It writes what
//! `Engine::poll_ledger` asks for, by compare-and-swap. The answer goes in as `Input::Ledger`. That
//! marks the workloads whose claim is there, and `Engine::decide` lets their writes pass.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::super::host_marks::{clock_mark, holder};
use super::super::inventory::CallState;
use super::super::loop_event::LoopEvent;
use super::super::pass_result::PassEnding;
use super::super::trace_writer::TraceWriter;
use super::loop_state::{MIN_RETRY_DELAY, PERSON_RETRY_DELAY};
use super::{Reconciler, RunMode};
use crate::cluster::{
    ClusterError, ClusterFault, LedgerObject, ListSelector, NamespaceSelector, explain_unread_claims,
    explain_unreadable_ledger,
};
use crate::engine::{
    Budget, Engine, HashCipherStatus, Input, LiveObject, MAX_RECORD_BYTES, NEW_LEDGER_DELAY,
    ParseLedgerError, ProcessIdentity, QueueMode, RolloutLedger,
};
use crate::object::{ErrorClass, ObjectId};
use crate::report::EventReason;

/// The interval of reads while others are in the way or hold anything of it: no event reports that
/// they end.
const CONTENDED_READ_INTERVAL: Duration = Duration::from_secs(3);
const _: () = assert!(
    CONTENDED_READ_INTERVAL.as_secs() * 2 < NEW_LEDGER_DELAY.as_secs(),
    "who holds a claim notices its loss in time"
);
/// The interval of reads where others share it, so that the status covers them.
const SHARED_READ_INTERVAL: Duration = Duration::from_secs(15);
/// The reads in a row that fail before those who wait for the ledger say so. One that fails now and
/// then is repeated sooner than anybody asks.
const MIN_SHOWN_FAILURES: u32 = 3;
/// The attempts of a process that ends to leave its claims in order.
const MAX_FINAL_TRIES: u32 = 5;

/// The state of the rollout ledger's ConfigMap.
#[derive(Debug)]
pub(super) struct RolloutLedgerStore {
    object: Option<LedgerObject>,
    call: CallState,
    /// The time before which it is neither read nor written again.
    pub(super) not_before: Option<Instant>,
    /// The time of the next read, as others share it. A write never waits for it.
    reread: Option<Instant>,
    /// Indicates whether it is to be read before anything is written.
    stale: bool,
    /// The state of the seals of Secret hashes in it.
    sealing: HashCipherStatus,
    /// The reason for the last failed read or write, as logged.
    logged_failure: Option<String>,
    /// The command by which a person fixes an unreadable ledger; none where it can be read.
    pub(super) unreadable: Option<String>,
    /// Reads in a row that have failed: each waits longer.
    failures: u32,
    /// Writes in a row that have failed, whatever was read in between.
    write_failures: u32,
    /// Indicates whether the call on its way is a write.
    is_writing: bool,
    /// Ends the process, where a stop of the loop may be for another one.
    end: CancellationToken,
}

impl Default for RolloutLedgerStore {
    fn default() -> Self {
        Self {
            object: None,
            call: CallState::None,
            not_before: None,
            reread: None,
            stale: true,
            sealing: HashCipherStatus::Valid,
            logged_failure: None,
            unreadable: None,
            failures: 0,
            write_failures: 0,
            is_writing: false,
            end: CancellationToken::new(),
        }
    }
}

impl RolloutLedgerStore {
    /// Returns whether nothing about it is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.call == CallState::None
    }

    /// Returns when the loop is to come back to it, where its queue is published next at this time.
    pub(super) fn next_wake(&self, publication: Option<Instant>) -> Option<Instant> {
        let all = [publication, self.reread].into_iter().flatten();
        self.not_before.or_else(|| all.min().filter(|_| self.is_quiet()))
    }

    /// Counts a call that has failed, and returns how long the next one waits. A write that fails
    /// is followed by a read, which says nothing about the next write.
    fn note_failure(&mut self, was_write: bool) -> Duration {
        let failures = if was_write { &mut self.write_failures } else { &mut self.failures };
        *failures = failures.saturating_add(1).min(10);
        let doublings = self.failures.max(self.write_failures).saturating_sub(1);
        PERSON_RETRY_DELAY.min(MIN_RETRY_DELAY * 2_u32.saturating_pow(doublings))
    }

    /// Returns whether it was read once, and cannot be read any more. Before, nothing is decided.
    fn is_outage(&self) -> bool {
        self.object.is_some() && self.failures >= MIN_SHOWN_FAILURES
    }

    /// Reads the ledger again with a new key, and writes it with that.
    pub(super) fn note_new_key(&mut self) {
        (self.not_before, self.stale) = (None, true);
    }
}

/// Returns whether a call that failed so fails again until a person changes something.
fn is_lasting_failure(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Config | ErrorClass::Forbidden | ErrorClass::Invalid)
}

/// Returns an engine that claims under a name of its own, and knows the time. Its calls are
/// recorded where a trace is written.
pub(super) fn create_engine(budget: Budget, trace: Option<&TraceWriter>) -> Engine {
    let mut engine = match trace.and_then(TraceWriter::recorder) {
        Some(recorder) => Engine::new_traced(budget, recorder),
        None => Engine::new(budget),
    };
    let identity = ProcessIdentity { holder: holder().into(), clock_mark: clock_mark().into() };
    // The two clocks are read together: the marks of the host come from files.
    let now = Instant::now();
    engine.handle(Input::Process(identity), now);
    engine.handle(Input::Clock(jiff::Timestamp::now()), now);
    engine
}

impl Reconciler {
    /// Reads the rollout ledger where that has to be done, and writes it where it does not say what
    /// it should.
    pub(super) fn sync_rollout_ledger(&mut self) {
        let now = Instant::now();
        if self.records.ledger.call == CallState::Busy
            || self.records.ledger.not_before.is_some_and(|due| due > now)
        {
            return;
        }
        let waited = self.records.ledger.not_before.take().is_some()
            || self.records.ledger.reread.take_if(|reread| *reread <= now).is_some();
        let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
        if self.records.ledger.stale || waited || self.engine.view().is_ledger_read_needed() {
            self.records.ledger.call = CallState::Busy;
            self.engine.handle(Input::LedgerRequested, now);
            self.spawn(async move { LoopEvent::Ledger(cluster.read_rollout_ledger(&namespace).await) });
        } else if let Some(next) = self.ledger_to_write(now) {
            let Some(text) = next.bounded_text(self.engine.view().seals()) else {
                self.engine.handle(Input::SealKeyNeeded, now);
                self.engine.handle(Input::LedgerFailed, now);
                return self.wait_for_key();
            };
            if text.len() > MAX_RECORD_BYTES {
                self.records.ledger.not_before = Some(now + PERSON_RETRY_DELAY);
                return self.log_full_ledger(text.len());
            }
            (self.records.ledger.call, self.records.ledger.is_writing) = (CallState::Busy, true);
            self.engine.handle(Input::LedgerSent(next), now);
            let known = self.records.ledger.object.clone();
            self.spawn_write(async move {
                let saved = cluster.save_rollout_ledger(&namespace, known.as_ref(), &text).await;
                LoopEvent::Ledger(saved.map(Some))
            });
        } else {
            // A process that only observes asks for nothing, and takes nothing back.
            let others =
                if self.is_only_observing() { Vec::new() } else { self.engine.view().foreign_workloads() };
            self.reread_for_foreign(others, now);
        }
    }

    /// Reads the ledger again in a while where others share it, and looks up the workloads that
    /// they have claimed.
    fn reread_for_foreign(&mut self, others: Vec<ObjectId>, now: Instant) {
        let holds = !self.is_only_observing() && self.engine.view().is_ledger_needed();
        let waits = !others.is_empty() || self.engine.view().is_waiting_for_others() || holds;
        let shared = self.run_mode.is_daemon() && self.engine.view().has_shared_budget();
        let wait = match (waits, shared) {
            (true, _) => CONTENDED_READ_INTERVAL,
            (false, true) => SHARED_READ_INTERVAL,
            (false, false) => return self.records.ledger.reread = None,
        };
        if self.records.ledger.reread.is_none_or(|reread| reread > now + wait) {
            self.records.ledger.reread = Some(now + wait);
            self.look_up_foreign_workloads(others);
        }
    }

    /// Takes over what the rollout ledger says, where it can be opened. `unwritable` says why it
    /// cannot be written: then nothing begins, and nobody tries before a person has mended it.
    fn take_ledger(&mut self, text: &str, unwritable: Option<String>) -> Result<(), ParseLedgerError> {
        self.records.ledger.sealing = RolloutLedger::seal_status(text, self.engine.view().seals())?;
        // A process that writes nothing can go on with the part that can be read.
        if self.is_only_observing() {
            self.records.ledger.sealing = HashCipherStatus::Valid;
        }
        let now = Instant::now();
        match self.records.ledger.sealing {
            HashCipherStatus::Locked => {
                self.engine.handle(Input::LedgerLocked, now);
                self.wait_for_key();
                return Ok(());
            }
            HashCipherStatus::Stale => self.engine.handle(Input::SealKeyNeeded, now),
            HashCipherStatus::Valid => {}
        }
        let ledger = RolloutLedger::parse(text, self.engine.view().seals())?;
        let unread = Some(ledger.unreadable_claims.len()).filter(|count| *count > 0);
        let unread = unread.map(|count| explain_unread_claims(&self.records.namespace, count));
        self.engine.handle(Input::UnreadableClaims(unread.as_deref().map(Arc::from)), now);
        self.engine.handle(Input::Ledger(ledger), now);
        if let Some(why) = unwritable.as_deref() {
            self.engine.handle(Input::LedgerUnreadable(why.into()), now);
            self.records.ledger.not_before = Some(Instant::now() + PERSON_RETRY_DELAY);
        }
        self.log_unreadable(unwritable.or(unread));
        Ok(())
    }

    /// Says once what of the rollout ledger cannot be read, and what mends it; and that all can be
    /// read again.
    fn log_unreadable(&mut self, why: Option<String>) {
        let Some(why) = why else {
            if self.records.ledger.unreadable.take().is_some() {
                tracing::info!("the rollout ledger can be read again");
            }
            return;
        };
        if self.records.ledger.unreadable.as_ref() == Some(&why) {
            return;
        }
        tracing::warn!(message_id = EventReason::RecordUnreadable.message_id(), "{why}");
        for source in self.engine.view().source_ids() {
            self.record_unreadable_event(source, why.clone());
        }
        self.records.ledger.unreadable = Some(why);
    }

    /// Says once that what would have to be written is larger than the object may be.
    fn log_full_ledger(&mut self, bytes: usize) {
        let kilobytes = bytes.div_ceil(1000);
        let why = format!("it would hold {kilobytes} kB, and may hold {} kB", MAX_RECORD_BYTES / 1000);
        if self.records.ledger.logged_failure.as_ref() != Some(&why) {
            tracing::warn!(
                "the rollout ledger is full: {why}; no rollout starts until a running one has ended"
            );
        }
        self.records.ledger.logged_failure = Some(why);
    }

    /// Postpones the ledger until there is a key. Nothing begins, and nothing is overwritten,
    /// before.
    fn wait_for_key(&mut self) {
        self.records.ledger.not_before = Some(Instant::now() + PERSON_RETRY_DELAY);
        let why = self.engine.view().key_blocker().map(|reason| reason.to_string());
        if self.watches.data.has_reported_missing_key() && self.records.ledger.logged_failure != why {
            let why = why.as_deref().unwrap_or_default();
            tracing::warn!("the rollout ledger cannot be written: {why}; nothing that restarts pods starts");
        }
        self.records.ledger.logged_failure = why;
    }

    /// Returns the ledger with the claims as they should be, or else the queue as it is. A process
    /// that does not stay leaves no queue behind.
    fn ledger_to_write(&mut self, now: Instant) -> Option<RolloutLedger> {
        let mode = if self.run_mode.is_daemon() { QueueMode::Published } else { QueueMode::Omitted };
        self.engine.poll_ledger(mode, self.records.ledger.sealing, now)
    }

    /// Reads the workloads of other daemons' claims. One that has come to rest shows that the claim
    /// of a dead daemon is spent.
    fn look_up_foreign_workloads(&mut self, others: Vec<ObjectId>) {
        for id in others {
            let Some(kind) = self.watches.kinds.served_kind(&id.group_kind()) else { continue };
            let Some(namespace) = id.namespace().map(Arc::from) else { continue };
            let cluster = self.executor.cluster.clone();
            // By a list: the right to get it is nobody's who has nothing in that namespace.
            let fields = Some(format!("metadata.name={}", id.name()).into());
            let selector =
                ListSelector::Namespace(Arc::new(NamespaceSelector { namespace, labels: None, fields }));
            self.spawn(async move {
                let found = cluster.list(&kind, &selector).await;
                let live = found.map(|found| found.into_iter().next().map(|(_, live)| Box::new(live)));
                LoopEvent::ForeignWorkload(id, live)
            });
        }
    }

    pub(super) fn record_foreign_workload(
        &mut self,
        id: &ObjectId,
        found: Result<Option<Box<LiveObject>>, ClusterError>,
    ) {
        let now = Instant::now();
        match found {
            Ok(live) => self.engine.handle(Input::ForeignWorkload { id: id.clone(), live }, now),
            // As long as nobody knows, the claim counts.
            Err(error) if error.class() == ErrorClass::Forbidden => {
                let why = error.to_string().into();
                self.engine.handle(Input::HiddenWorkload { id: id.clone(), why }, now);
                for id in self.engine.take_newly_hidden() {
                    tracing::warn!(object = %id, "the claim of another daemon counts, as its workload may not be read: {error}");
                }
            }
            Err(error) => tracing::debug!(object = %id, "another daemon's claim: {error}"),
        }
    }

    /// Says what ends the process: its last loop takes the queue out of the rollout ledger.
    #[must_use]
    pub(crate) fn with_end_token(mut self, end: CancellationToken) -> Self {
        self.records.ledger.end = end;
        self
    }

    /// Writes what is to be in the cluster once this process has ended: the status of each source
    /// last, then the claims.
    pub(super) async fn leave_records(&mut self, ending: PassEnding) {
        self.remove_unused_inventories().await;
        if self.is_last() || self.is_ending_with_record(ending) {
            self.write_last_summaries().await;
        }
        self.write_final_ledger().await;
    }

    /// Returns whether this is the last loop of a daemon with sources that nobody takes over. Under
    /// Leases another replica writes what it sees itself, and a write that is not answered keeps
    /// the Lease from being released.
    fn is_last(&self) -> bool {
        let ends = self.run_mode.is_daemon() && self.records.ledger.end.is_cancelled();
        ends && !self.executor.cluster.is_fenced()
    }

    /// Writes the rollout ledger as it should be once this process has ended. A one-shot apply
    /// takes its settled claims back, and leaves the others to the next process. A daemon leaves
    /// its claims to the next one, which goes on with them. It takes its queue back: nothing waits
    /// for a process that is gone.
    async fn write_final_ledger(&mut self) {
        let continues = self.run_mode.is_daemon() && !self.is_last();
        if continues || self.is_only_observing() {
            return;
        }
        let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
        for _ in 0..MAX_FINAL_TRIES {
            let next = match self.run_mode {
                RunMode::Daemon => self.engine.view().unqueued_ledger(),
                RunMode::UntilSettled(_) | RunMode::UntilHealthy(_) => self.engine.view().last_ledger(),
            };
            let Some(text) = next.and_then(|next| next.text(self.engine.view().seals())) else { return };
            let saved =
                cluster.save_rollout_ledger(&namespace, self.records.ledger.object.as_ref(), &text).await;
            let answer = match saved {
                Ok(_) => return,
                Err(error) if *error.fault() == ClusterFault::VersionConflict => {
                    cluster.read_rollout_ledger(&namespace).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = &answer {
                tracing::warn!(
                    "the rollout ledger cannot be read or written: {error}; {}",
                    self.remaining_text()
                );
                return;
            }
            self.record_ledger_answer(answer);
        }
    }

    /// Returns what a rollout ledger that cannot be written goes on saying.
    fn remaining_text(&self) -> &'static str {
        match self.run_mode {
            RunMode::Daemon => "it shows an old queue until the next daemon writes its own",
            RunMode::UntilSettled(_) | RunMode::UntilHealthy(_) => {
                "its claims count until their workloads have been at rest"
            }
        }
    }

    pub(super) fn record_ledger_answer(&mut self, answer: Result<Option<LedgerObject>, ClusterError>) {
        self.records.ledger.call = CallState::None;
        let was_write = std::mem::take(&mut self.records.ledger.is_writing);
        match answer {
            Ok(object) => {
                self.records.ledger.failures = 0;
                if was_write {
                    self.records.ledger.write_failures = 0;
                }
                let text = object.as_ref().map_or("{}", |object| &object.text);
                let unwritable = object.as_ref().and_then(|object| object.unwritable.as_deref());
                let unwritable =
                    unwritable.map(|why| explain_unreadable_ledger(&self.records.namespace, why));
                if let Err(error) = self.take_ledger(text, unwritable) {
                    let why = explain_unreadable_ledger(&self.records.namespace, &error.to_string());
                    self.engine.handle(Input::LedgerUnreadable(why.as_str().into()), Instant::now());
                    self.log_unreadable(Some(why));
                    self.records.ledger.not_before = Some(Instant::now() + PERSON_RETRY_DELAY);
                }
                (self.records.ledger.object, self.records.ledger.stale) = (object, false);
            }
            // Somebody else wrote first: decided again on what it says now.
            Err(error) if *error.fault() == ClusterFault::VersionConflict => {
                self.records.ledger.stale = true;
                self.engine.handle(Input::LedgerFailed, Instant::now());
            }
            Err(error) => {
                tracing::warn!("the rollout ledger cannot be read or written: {error}");
                self.engine.handle(Input::LedgerFailed, Instant::now());
                self.records.ledger.stale = true;
                let needs_person = is_lasting_failure(error.class());
                if was_write && error.class() == ErrorClass::Invalid {
                    let why = format!("{error}; no rollout begins").into();
                    self.engine.handle(Input::LedgerUnreadable(why), Instant::now());
                }
                let wait = self.records.ledger.note_failure(was_write);
                if self.records.ledger.is_outage() {
                    let why = format!("the rollout ledger cannot be read: {error}; no rollout begins");
                    self.engine.handle(Input::LedgerUnreadable(why.into()), Instant::now());
                }
                let wait = if needs_person { PERSON_RETRY_DELAY } else { wait };
                self.records.ledger.not_before =
                    Some(Instant::now() + wait.mul_f64(1.0 + super::super::random_fraction()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each write that fails is followed by a read that does not.
    #[test]
    fn writes_that_fail_in_a_row_wait_longer_whatever_is_read_in_between() {
        let mut store = RolloutLedgerStore::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            waits.push(store.note_failure(true).as_millis());
            store.failures = 0;
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
        store.write_failures = 0;
        let waits = [store.note_failure(false), store.note_failure(false)].map(|wait| wait.as_millis());
        assert_eq!(waits, [500, 1000]);
    }

    #[test]
    fn what_a_person_has_to_change_is_tried_seldom() {
        let seldom = [ErrorClass::Config, ErrorClass::Forbidden, ErrorClass::Invalid].map(is_lasting_failure);
        assert_eq!(seldom, [true; 3]);
        assert_eq!([ErrorClass::Transient, ErrorClass::Conflict].map(is_lasting_failure), [false; 2]);
    }
}
