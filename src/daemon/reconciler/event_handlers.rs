//! The handling of each event of the loop: what it changes in the engine and in the queue.
//!
//! Writes nothing: the turn that follows does. `record_reading` hands a reading over as
//! `Input::Read`. `Engine::set_reading` in `src/engine/state.rs` takes it, and marks the keys that
//! the next turn decides about.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::inventory::InventoryNeed;
use super::super::loop_event::{LookupFailure, LoopEvent};
use super::super::tasks::FatalError;
use super::Reconciler;
use super::discovery::PinState;
use crate::cluster::{Autoscaler, InformerChange, InformerEvent};
use crate::engine::{Input, LiveObject, Reason, RetryCause, SourceId, SourceReading, SourceWrites};
use crate::object::{Diagnostic, GroupKind, ObjectId, count_text};
use crate::report::EventReason;

/// The longest rest after a call of unknown fate, so that all is soon tried again when the API
/// server is back. The number of writes in flight, which falls to one, keeps that from being a
/// storm.
pub(super) const MAX_OUTAGE_BACKOFF: Duration = Duration::from_secs(15);

/// The number of errors of one reading that the log names. A repository of some kilobytes can have
/// a million.
const MAX_LOGGED_ERRORS: usize = 200;

/// Logs the errors of one reading: the first ones, and how many there are beside.
fn log_errors<'a>(source: &str, errors: impl Iterator<Item = &'a Diagnostic>) {
    let mut left_out = 0_usize;
    for (nth, found) in errors.enumerate() {
        if nth < MAX_LOGGED_ERRORS {
            tracing::warn!(code = found.code, "{}: {}", found.origin, found.message);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let count = count_text(left_out, "more error");
        tracing::warn!(source, "{count} in its files: `rhumb validate` of a checkout shows them all");
    }
}

impl Reconciler {
    pub(super) fn handle_event(&mut self, event: LoopEvent) {
        match event {
            LoopEvent::Informer(event) => self.handle_informer_event(event),
            LoopEvent::Autoscaler(event) => self.handle_scaler_event(event),
            LoopEvent::InventoryVersion(event) => self.handle_inventory_event(event),
            LoopEvent::OrdersVersion(event) => self.handle_orders_event(event),
            LoopEvent::Pods(event) => self.handle_pods_event(event),
            LoopEvent::Node(watch, event) => self.handle_node_event(watch, event),
            LoopEvent::Data(event) => self.handle_data_event(event),
            LoopEvent::LoopQuery(query) => self.telemetry.open_queries.push(query),
            LoopEvent::SourceRead(source, reading, unknown) => self.record_reading(source, reading, unknown),
            LoopEvent::Unreadable(source, why) => self.record_unreadable_source(source, why),
            LoopEvent::RevisionAccepted(source, revision) => self.note_accepted_revision(source, revision),
            LoopEvent::Location(source, location) => self.set_location(source, location),
            LoopEvent::Repository(source, repository) => {
                self.engine.handle(Input::Repository { source, repository }, Instant::now());
            }
            LoopEvent::VersionsUsed => self.watches.kinds.watch_versions(),
            LoopEvent::Peers(answer) => self.record_peers(answer),
            LoopEvent::SourceChecked(source, reading) => {
                self.engine.handle(Input::Checked { source, reading }, Instant::now());
            }
            LoopEvent::ContentsRead(all) => self.record_contents(all),
            LoopEvent::UndoTargetRead(undo, past) => self.undo_target_read(undo, past),
            LoopEvent::FoldersSearched(source, moved) => self.record_search(source, moved),
            LoopEvent::Kinds(Ok(kinds)) => self.handle_discovery(kinds),
            LoopEvent::Kinds(Err(error)) => {
                tracing::warn!("discovery failed: {error}");
                self.watches.kinds.note_discovery_failure(error);
            }
            LoopEvent::KindsAbsent(Ok(kinds)) => {
                self.watches.kinds.set_absent(kinds, &mut self.engine);
                self.schedule_tidying();
            }
            LoopEvent::KindsAbsent(Err(error)) => {
                self.watches.kinds.note_no_answer();
                tracing::debug!("it cannot be found out whether a kind is gone: {error}");
            }
            LoopEvent::Inventory(source, inventory) => self.record_inventory(source, inventory),
            LoopEvent::Orders(source, object) => self.record_orders(source, object),
            LoopEvent::Ledger(answer) => self.record_ledger_answer(answer),
            LoopEvent::ConfigKey(answer) => self.record_config_key(answer),
            LoopEvent::ForeignWorkload(id, view) => self.record_foreign_workload(&id, view),
            LoopEvent::Selector(id, selector) => self.record_selector(&id, selector.as_deref()),
            LoopEvent::StuckPodDeleted(id) => self.engine.handle(Input::Marked(id), Instant::now()),
            LoopEvent::Evicted(pod, outcome) => self.record_eviction(pod, outcome),
            LoopEvent::Rescaled(request, result) => self.record_scale(request, result),
            LoopEvent::FailureEvents(id, events) => {
                self.engine.handle(Input::FailureEvents { id, events }, Instant::now());
            }
            LoopEvent::LiveObjectsRead(all) => {
                self.record_answers(all, |id, view| Input::LookedUp { id, view });
            }
            LoopEvent::Compared(all) => {
                self.record_answers(all, |id, verified| Input::Compared { id, verified });
            }
            LoopEvent::ActionDone(id, action, result, outcome) => {
                self.finish_action(&id, action, result, outcome);
            }
        }
    }

    /// Records the reading of a source.
    fn record_reading(&mut self, source: SourceId, reading: SourceReading, unknown: BTreeSet<GroupKind>) {
        let facts = || reading.files.iter().filter_map(|(_, facts)| facts.as_ref());
        let gvks: BTreeSet<_> =
            facts().flat_map(|facts| &facts.objects).map(|desired| desired.gvk.clone()).collect();
        let unusable: BTreeSet<_> =
            facts().flat_map(|facts| &facts.unusable).map(|unusable| unusable.id.group_kind()).collect();
        let scalable =
            facts().flat_map(|facts| &facts.objects).any(|desired| desired.hash_without_replicas.is_some());
        let scopes: BTreeSet<(GroupKind, Option<String>)> = facts()
            .flat_map(|facts| facts.objects.iter().map(|d| &d.id).chain(facts.unusable.iter().map(|h| &h.id)))
            .map(|id| (id.group_kind(), id.namespace().map(str::to_owned)))
            .collect();
        if let Some(revision) = &reading.revision {
            let (name, files) = (&self.engine.view().source(source).declared.name, reading.files.len());
            let message_id = EventReason::RevisionRead.message_id();
            tracing::info!(source = %name, %revision, files, message_id, "read");
        }
        let known = &self.engine.view().source(source).refused;
        let refused = reading.refused.iter().filter(|found| !known.contains(found));
        let found = facts().flat_map(|facts| &facts.diagnostics).chain(refused);
        // A single pass hands them to its caller, which shows all of them.
        if self.run_mode.is_daemon() {
            log_errors(
                &self.engine.view().source(source).declared.name,
                found.filter(|found| found.is_error()),
            );
        }
        let before = self.engine.view().last_observation_number();
        let known = self.engine.view().source(source).head.clone();
        let waits = self.engine.view().prune_decisions(source).next().is_some();
        self.engine.handle(Input::Read { source, reading }, Instant::now());
        self.record_read_event(source, known.as_ref());
        self.sources.attempted.insert(source);
        let last = self.engine.view().last_observation_number();
        if last > before || (waits && known != self.engine.view().source(source).head) {
            // An object that it no longer wants may have moved to another source. That one is asked
            // before anything is pruned, and must have read as far.
            let others = self.engine.view().source_ids().filter(|other| *other != source);
            self.sources.due_observations.extend(others.map(|other| (other, last)));
        }
        let store = &mut self.records.inventories[source];
        let lacks_location = self
            .engine
            .view()
            .source(source)
            .inventory
            .as_ref()
            .is_some_and(|inventory| inventory.lacks_location);
        let is_complete = store.has_all_scopes(&scopes) && !lacks_location && store.has_accepted_revision();
        // Growth is written at once, and a cleanup when nothing else is left to do.
        store.need = if is_complete { InventoryNeed::Cleanup } else { InventoryNeed::Growth };
        self.sources.unscoped.extend(unknown.into_iter().map(|kind| (source, kind)));
        self.read_unscoped_again();
        // The informers of the account that the source acts as.
        let informer_group = self.engine.view().source(source).declared.informer_group;
        self.watches.kinds.request_kinds(informer_group, gvks, &mut self.engine);
        self.watches.kinds.add_recorded(informer_group, unusable, &mut self.engine);
        if scalable {
            self.watches.kinds.watch_scalers(&mut self.engine);
        }
        if self.engine.view().source(source).declared.writes == SourceWrites::Observed {
            self.update_engine_inventory(source);
        }
        self.executor.contents.clear();
        self.sources.pins = PinState::Stale;
    }

    pub(super) fn handle_informer_event(&mut self, event: InformerEvent<LiveObject>) {
        if let (InformerChange::Apply(id, live), false) = (&event.change, self.run_mode.is_daemon())
            && let Some(why) = self.find_rival(id, live)
        {
            self.fatal = Some(FatalError::Contested(why));
        }
        if matches!(&event.change, InformerChange::Delete(..) | InformerChange::InitDone)
            || matches!(&event.change, InformerChange::Apply(_, live) if live.finished)
        {
            self.schedule_tidying();
        }
        if let Some(bug) = self.watches.kinds.relay_event(event, &mut self.engine) {
            self.fatal = Some(bug.into());
        }
    }

    pub(super) fn handle_scaler_event(&mut self, event: InformerEvent<Autoscaler>) {
        if let Some(bug) = self.watches.kinds.relay_scaler_event(event, &mut self.engine) {
            self.fatal = Some(bug.into());
        }
    }

    /// Records why a source cannot be read.
    fn record_unreadable_source(&mut self, source: SourceId, why: Arc<str>) {
        let name = self.engine.view().source(source).declared.name.clone();
        let message_id = EventReason::SourceIncomplete.message_id();
        tracing::warn!(source = %name, message_id, "{why}");
        let head = self.engine.view().source(source).head.clone();
        self.engine.handle(Input::Unreadable { source, why }, Instant::now());
        self.record_read_event(source, head.as_ref());
        self.sources.attempted.insert(source);
    }

    /// Records the answers to questions about objects. One without an answer is asked again.
    fn record_answers<T>(
        &mut self,
        answers: impl IntoIterator<Item = (ObjectId, Result<T, LookupFailure>)>,
        input_of: fn(ObjectId, T) -> Input,
    ) {
        for (id, answer) in answers {
            match answer {
                Ok(answer) => self.engine.handle(input_of(id.clone(), answer), Instant::now()),
                Err(failure) => self.requeue_after_failure(&id, &failure.0),
            }
            self.queue.finish(&id);
        }
    }

    /// Requeues an object after a backoff, as a question about it had no answer.
    fn requeue_after_failure(&mut self, id: &ObjectId, why: &Arc<str>) {
        let wait = self.queue.next_backoff(id, super::super::random_fraction()).min(MAX_OUTAGE_BACKOFF);
        self.objects.reasons.insert(id.clone(), Reason::Retrying(RetryCause::Message(why.clone()), wait));
        self.queue.add_at(id.clone(), Instant::now() + wait);
    }
}
