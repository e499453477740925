//! The kinds that discovery finds, the sources that begin with them, and the revisions that these
//! keep readable.

use std::collections::BTreeSet;
use std::time::Instant;

use tokio::sync::mpsc;

use super::super::loop_event::LoopEvent;
use super::super::setup::SourceFiles;
use super::super::source_task::{ClusterFactReader, SourceTask, SourceTaskRequest};
use super::loop_channel::CHANNEL_CAPACITY;
use super::loop_state::PendingSource;
use super::{Reconciler, RunMode};
use crate::engine::{Input, SourceId, SourceLifecycle};
use crate::object::GroupKind;

impl Reconciler {
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
        for pending in std::mem::take(&mut self.sources.pending) {
            let PendingSource { number: source, files, read_settings, early_parse } = pending;
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
                    let source_task = source_task.with_cluster_facts(facts);
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
                    self.spawn(super::super::source_task::read_once(
                        disk,
                        read_settings,
                        scopes,
                        early_parse,
                    ));
                }
            }
            self.read_inventory(source);
        }
        self.read_unscoped_again();
    }

    /// Requests another reading of sources with objects of a kind whose scope is known by now. It
    /// may be known already when their reading arrives: another source brought it, or discovery was
    /// faster.
    pub(super) fn read_unscoped_again(&mut self) {
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
