//! The handling of each event of the loop: what it changes in the engine and in the queue.
//!
//! Writes nothing: the turn that follows does. The failure of a unit is handed on here,
//! once the Events that say why are read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::loop_event::{LookupFailure, LoopEvent};
use super::super::tasks::FatalError;
use super::Reconciler;
use crate::cluster::{Autoscaler, InformerChange, InformerEvent};
use crate::engine::{Input, LiveObject, Reason, SourceId};
use crate::object::ObjectId;
use crate::report::EventReason;

/// The longest rest after a call of unknown fate, so that all is soon tried again when the API
/// server is back. The number of writes in flight, which falls to one, keeps that from being a
/// storm.
pub(super) const MAX_OUTAGE_BACKOFF: Duration = Duration::from_secs(15);

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
            LoopEvent::ContentsRead(all) => {
                for (id, release, content) in all {
                    self.sources.reading_contents.remove(&id);
                    self.engine.handle(Input::OlderContent { id, release, content }, Instant::now());
                }
            }
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
        let name = self.engine.view().source(source).name.clone();
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
        self.objects.reasons.insert(id.clone(), Reason::Retrying(why.clone(), wait));
        self.queue.add_at(id.clone(), Instant::now() + wait);
    }
}
