//! The reports of sources and discovery, and the watches that follow from them.
//!
//! `record_reading` hands a reading over as `Input::Read`. `Engine::set_reading` in
//! `src/engine/state.rs` takes it, and marks the keys that the next turn decides about.

use std::collections::BTreeSet;
use std::time::Instant;

use tokio::sync::mpsc;

use super::super::inventory::InventoryNeed;
use super::super::loop_event::LoopEvent;
use super::super::setup::SourceFiles;
use super::super::source_task::{ClusterFactReader, SourceTask, SourceTaskRequest};
use super::loop_channel::CHANNEL_CAPACITY;
use super::{Reconciler, RunMode};
use crate::engine::{Input, SourceId, SourceLifecycle, SourceReading, SourceWrites};
use crate::object::{Diagnostic, GroupKind, count_text};
use crate::report::EventReason;

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
    /// Records the reading of a source.
    pub(super) fn record_reading(
        &mut self,
        source: SourceId,
        reading: SourceReading,
        unknown: BTreeSet<GroupKind>,
    ) {
        let facts = || reading.files.iter().filter_map(|(_, facts)| facts.as_ref());
        let gvks: BTreeSet<_> =
            facts().flat_map(|facts| &facts.objects).map(|desired| desired.gvk.clone()).collect();
        let unusable: BTreeSet<_> =
            facts().flat_map(|facts| &facts.unusable).map(|unusable| unusable.id.group_kind()).collect();
        let scalable =
            facts().flat_map(|facts| &facts.objects).any(|desired| desired.hash_without_replicas.is_some());
        let touched: BTreeSet<(GroupKind, Option<String>)> = facts()
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
        let is_complete = store.has_all_scopes(&touched) && !lacks_location && store.has_accepted_revision();
        store.need = if is_complete { InventoryNeed::Cleanup } else { InventoryNeed::Growth };
        self.sources.unscoped.extend(unknown.into_iter().map(|kind| (source, kind)));
        self.read_unscoped_again();
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

    /// Pins the revisions that brought contents in force, so that each source keeps them readable.
    pub(super) fn pin(&mut self) {
        if !self.is_idle() {
            return;
        }
        self.executor.contents.clear();
        if std::mem::replace(&mut self.sources.pins, PinState::Current) == PinState::Current {
            return;
        }
        let revisions = self.engine.view().revisions();
        for source_task in self.sources.requests.iter().flatten() {
            let _ = source_task.try_send(SourceTaskRequest::Pin(revisions.clone()));
        }
    }

    /// Takes the kinds that discovery found.
    pub(super) fn handle_discovery(&mut self, kinds: crate::cluster::KindTable) {
        self.watches.kinds.set_kinds(kinds, &mut self.engine);
        self.engine.handle(Input::Scopes(self.watches.kinds.kind_scopes()), Instant::now());
        if self.run_mode.is_daemon() {
            self.watches.kinds.watch_inventories(&self.records.namespace);
            self.watches.kinds.watch_orders(&self.records.namespace);
        }
        self.ask_for_absences();
        for (source, files, read_settings) in std::mem::take(&mut self.sources.pending) {
            match files {
                SourceFiles::Source(followed) => {
                    let (requests, from_loop) = mpsc::channel(CHANNEL_CAPACITY);
                    let events = self.events.sender.clone();
                    let name = format!("the source {}", followed.name());
                    let heartbeat =
                        self.executor.cluster.heartbeats().expect_part(&name, super::MAX_TURN_DURATION);
                    let scopes = self.watches.kinds.served_scopes();
                    let source_task = SourceTask::new(followed, read_settings, scopes, events, heartbeat);
                    let facts = ClusterFactReader::new(self.cluster_for_source(Some(source)).clone(), None);
                    let source_task = source_task.with_facts(facts);
                    let source_task = source_task.with_last_check(self.telemetry.history.last_check(source));
                    let source_task = source_task.with_versions(self.watches.kinds.served_versions());
                    match self.engine.view().source(source).declared.lifecycle {
                        SourceLifecycle::Active => {
                            self.events.tasks.keep("the reader of a source", source_task.run(from_loop));
                        }
                        SourceLifecycle::Deleting => {
                            self.events.tasks.keep("what is left of a source", source_task.end(from_loop));
                        }
                    }
                    self.sources.requests[source] = Some(requests);
                }
                SourceFiles::Snapshot(disk) => {
                    let scopes = self.watches.kinds.kind_scopes();
                    self.spawn(super::super::source_task::read_once(disk, read_settings, scopes));
                }
            }
            self.read_inventory(source);
        }
        self.read_unscoped_again();
    }

    /// Requests another reading of sources with objects of a kind whose scope is known by now. It
    /// may be known already when their reading arrives: another source brought it, or discovery was
    /// faster.
    fn read_unscoped_again(&mut self) {
        if self.sources.unscoped.is_empty() {
            return;
        }
        let scopes = self.watches.kinds.kind_scopes();
        let known = self.sources.unscoped.iter().filter(|(_, kind)| scopes.get(kind).is_some());
        let sources: BTreeSet<SourceId> = known.map(|(source, _)| *source).collect();
        for source in sources {
            let can_send = |source_task: &mpsc::Sender<SourceTaskRequest>| {
                source_task.try_send(SourceTaskRequest::ReadAgain).is_ok()
            };
            if self.sources.requests[source].as_ref().is_none_or(can_send) {
                self.sources.unscoped.retain(|(of, kind)| *of != source || scopes.get(kind).is_none());
            }
        }
    }

    /// Asks whether kinds that are not listed are there at all: nothing is pruned as long as they
    /// may be.
    pub(super) fn ask_for_absences(&mut self) {
        let missing = match self.run_mode {
            RunMode::Daemon => self.watches.kinds.begin_absence_lookup(),
            RunMode::UntilSettled(_) | RunMode::UntilHealthy(_) => {
                self.watches.kinds.begin_urgent_question(&self.engine)
            }
        };
        if !missing.is_empty() {
            let cluster = self.executor.cluster.clone();
            self.spawn(async move { LoopEvent::KindsAbsent(cluster.find_absent_kinds(&missing).await) });
        }
    }

    /// Returns a kind in the version in which it is watched.
    pub(super) fn version(&self, kind: &GroupKind) -> Option<crate::object::Gvk> {
        self.watches.kinds.kind(kind).map(|kind| kind.gvk.clone())
    }
}

/// Indicates whether the sources keep the revisions readable that the cluster names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PinState {
    /// They were reported.
    #[default]
    Current,
    /// Something was read since.
    Stale,
}
