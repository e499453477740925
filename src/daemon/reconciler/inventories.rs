//! Reads and writes the inventories.
//!
//! `sync_inventories` writes what an inventory lacks, rejections included. The answer goes in as
//! `Input::Inventory`, which puts the rejections in force.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::accepted_revision;
use super::super::handover;
use super::super::host_marks::{host_name, process_mark};
use super::super::inventory::{
    self, CallState, InventoryNeed, InventoryOrigin, InventoryState, InventoryWriteMode,
};
use super::super::loop_event::LoopEvent;
use super::super::source_task::SourceTaskRequest;
use super::super::unreadable_records::{UnreadableRecords, explain_unwritable};
use super::loop_state::{MIN_RETRY_DELAY, PERSON_RETRY_DELAY};
use super::{Reconciler, RunMode};
use crate::cluster::{self, InventoryObject};
use crate::engine::{
    HashCipherStatus, Input, Inventory, ObjectCounts, Rejection, ResourceVersion, SourceId, SourceLifecycle,
    SourceWrites,
};
use crate::object::{ErrorClass, GroupKind, ObjectId, Revision, count_text};
use crate::report::{AuthorCommand, EventReason, StatusAuthor, StatusSummary};

/// The longest wait before an inventory is asked for again. When the API server is back, what
/// depends on it is soon tried again.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(4);

/// Returns whether an inventory cannot be read because its name is that of somebody's own data.
fn is_foreign(error: &cluster::ClusterError) -> bool {
    *error.fault() == cluster::ClusterFault::NoInventory
}

/// Returns whether an inventory names the location of its source, and the kinds and namespaces of
/// these objects.
fn is_naming_all(inventory: &Inventory, objects: &ObjectCounts) -> bool {
    !inventory.lacks_location
        && objects.kinds().all(|kind| inventory.kinds.contains(kind))
        && objects.namespaces().all(|namespace| inventory.namespaces.contains(namespace))
}

/// Returns what is said of failed contents whose record is gone; none where there were none.
fn lost_rejections_text(rejections: &[Rejection]) -> Option<String> {
    let objects = rejections.iter().flat_map(|rejection| rejection.unit.members.keys());
    let objects: BTreeSet<&ObjectId> = objects.collect();
    let first = objects.first()?;
    let others = objects.len() - 1;
    let beside =
        if others == 0 { String::new() } else { format!(" and of {}", count_text(others, "other object")) };
    Some(format!("the failed content of {first}{beside} is tried again, as its record is gone"))
}

impl Reconciler {
    pub(super) fn reread_inventories(&mut self) {
        for source in self.engine.view().source_ids() {
            if self.records.inventories[source].inventory != InventoryState::Unread {
                self.read_inventory(source);
            }
        }
    }

    pub(super) fn read_inventory(&mut self, source: SourceId) {
        if std::mem::replace(&mut self.records.inventories[source].call, CallState::Busy) == CallState::Busy {
            return;
        }
        // The answer is newer than all that the watch has shown so far.
        self.records.inventories[source].seen = ResourceVersion(0);
        let cluster = self.executor.cluster.clone();
        let (namespace, name) =
            (self.records.namespace.clone(), self.engine.view().source(source).declared.name.clone());
        self.spawn(
            async move { LoopEvent::Inventory(source, cluster.read_inventory(&namespace, &name).await) },
        );
    }

    pub(super) fn record_inventory(
        &mut self,
        source: SourceId,
        inventory: Result<Option<InventoryObject>, cluster::ClusterError>,
    ) {
        self.note_inventory_error(source, &inventory);
        self.log_lost_rejections(source, &inventory);
        let store = &mut self.records.inventories[source];
        store.call = CallState::None;
        let version = inventory.as_ref().ok().and_then(Option::as_ref).and_then(InventoryObject::version);
        store.rewrites.end_call(version, Instant::now());
        match inventory {
            Ok(inventory) => {
                store.failures = 0;
                let (location, seals) = (&self.sources.locations[source], self.engine.view().seals());
                let recorded = inventory::read(inventory.as_ref(), location, seals);
                let is_first = store.inventory == InventoryState::Unread;
                store.inventory = inventory.map_or(InventoryState::Absent, InventoryState::Present);
                if is_first {
                    store.was_absent = store.inventory == InventoryState::Absent;
                    let data = store.inventory.inventory().map(|inventory| &inventory.data);
                    store.first_status = data.and_then(StatusSummary::from_data);
                    handover::restore_statement(
                        &mut self.engine,
                        source,
                        self.records.inventories[source].inventory.inventory(),
                    );
                }
                if is_first && self.engine.view().source(source).declared.writes == SourceWrites::Allowed {
                    self.telemetry
                        .history
                        .take_over_record(source, self.records.inventories[source].inventory.inventory());
                }
                // It may have been deleted or edited, or a write may have failed that named a new
                // kind, or an accepted revision.
                let store = &mut self.records.inventories[source];
                let declared = self.engine.view().source(source).manifests.object_counts();
                if !is_naming_all(&recorded, declared) || !store.has_accepted_revision() {
                    store.need = InventoryNeed::Growth;
                }
                let kinds =
                    recorded.kinds.iter().filter(|kind| self.engine.view().is_kind_allowed(source, kind));
                let kinds: Vec<GroupKind> = kinds.cloned().collect();
                let informer_group = self.engine.view().source(source).declared.informer_group;
                self.watches.kinds.add_recorded(informer_group, kinds, &mut self.engine);
                if !self.run_mode.is_daemon() {
                    self.ask_for_absences();
                }
                self.update_engine_inventory(source);
                self.log_unreadable_records(source);
                self.send_anchor(source);
                if self.records.inventories[source].inventory != InventoryState::Absent {
                    self.follow_inventory(source);
                }
            }
            // Only a person can help, and nobody waits for one here.
            Err(error) if error.class() == ErrorClass::Config && !self.run_mode.is_daemon() => {
                self.fatal = Some(error.into());
            }
            Err(error) => {
                tracing::warn!(source = %self.engine.view().source(source).declared.name, "the inventory cannot be read or written: {error}");
                store.call = CallState::Busy;
                let cluster = self.executor.cluster.clone();
                let (namespace, name) =
                    (self.records.namespace.clone(), self.engine.view().source(source).declared.name.clone());
                let wait = match error.class() {
                    ErrorClass::Config | ErrorClass::Invalid => PERSON_RETRY_DELAY,
                    _ => MAX_RETRY_DELAY.min(MIN_RETRY_DELAY * 2_u32.saturating_pow(store.failures)),
                };
                store.failures = store.failures.saturating_add(1).min(10);
                let wait = wait.mul_f64(1.0 + super::super::random_fraction());
                self.spawn(async move {
                    tokio::time::sleep(wait).await;
                    LoopEvent::Inventory(source, cluster.read_inventory(&namespace, &name).await)
                });
            }
        }
    }

    /// Logs that failed contents are tried again, where somebody has deleted their record.
    fn log_lost_rejections(
        &self,
        source: SourceId,
        answer: &Result<Option<InventoryObject>, cluster::ClusterError>,
    ) {
        let state = self.engine.view().source(source);
        let is_deleted = matches!(answer, Ok(None)) && state.declared.lifecycle == SourceLifecycle::Active;
        let known = state.inventory.as_ref().filter(|_| is_deleted);
        let rejections = known.map(|inventory| &inventory.rejections[..]).unwrap_or_default();
        if let Some(text) = lost_rejections_text(rejections) {
            let (name, namespace) = (&state.declared.name, &self.records.namespace);
            tracing::warn!(source = %name, "the ConfigMap {namespace}/{name} was deleted: {text}");
        }
    }

    /// Notes why an inventory cannot be read or written, with the command that mends it where the
    /// inventory itself shows why.
    fn note_inventory_error(
        &mut self,
        source: SourceId,
        answer: &Result<Option<InventoryObject>, cluster::ClusterError>,
    ) {
        let name = self.engine.view().source(source).declared.name.clone();
        let store = &mut self.records.inventories[source];
        let passes = |error: &&cluster::ClusterError| {
            matches!(error.class(), ErrorClass::Transient | ErrorClass::Conflict)
        };
        let error = answer.as_ref().err().filter(|error| !passes(error));
        let shown = match answer {
            Ok(inventory) => inventory.as_ref(),
            Err(_) => store.inventory.inventory().filter(|_| error.is_some()),
        };
        let unwritable = shown.and_then(|shown| explain_unwritable(shown, &self.records.namespace, &name));
        store.is_foreign = error.is_some_and(is_foreign);
        store.last_error = unwritable.or_else(|| error.map(ToString::to_string));
    }

    /// Logs each record that cannot be read, once.
    fn log_unreadable_records(&mut self, source: SourceId) {
        let name = self.engine.view().source(source).declared.name.clone();
        let store = &mut self.records.inventories[source];
        // Its own statement is written anew at once.
        let records = UnreadableRecords { statement: None, ..store.unreadable_records.clone() };
        let reported = records.into_texts();
        let known = std::mem::replace(&mut store.unreadable, reported.clone());
        for why in reported.into_iter().filter(|why| !known.contains(why)) {
            tracing::warn!(source = %name, message_id = EventReason::RecordUnreadable.message_id(), "{why}");
            self.record_unreadable_event(source, why);
        }
    }

    /// Records the location of a source, by which its inventory is judged.
    pub(super) fn set_location(&mut self, source: SourceId, location: String) {
        self.sources.locations[source] = location;
        self.records.inventories[source].origin = InventoryOrigin::Unknown;
        self.update_engine_inventory(source);
    }

    /// Decides that an inventory without a location was made here, where every visible object of it
    /// is wanted.
    fn find_origins(&mut self) {
        for source in self.engine.view().source_ids() {
            let inventory = self.engine.view().source(source).inventory.as_ref();
            let lost = inventory.is_some_and(|inventory| {
                inventory.other_location.as_deref() == Some(inventory::UNKNOWN_LOCATION)
            });
            // Where nothing is wanted, the absence of other objects proves nothing.
            let lives = self.engine.view().source(source).declared.lifecycle == SourceLifecycle::Active;
            let sees_all = self.is_seen(source) && !self.engine.view().has_unwatched(source);
            if lost && lives && sees_all && !self.engine.view().has_unwanted(source) {
                // Written at once, not when all is done: a process that ends before that leaves
                // nothing in doubt.
                self.records.inventories[source].need = InventoryNeed::Growth;
                self.records.inventories[source].origin = InventoryOrigin::Local;
                self.update_engine_inventory(source);
            }
        }
    }

    /// Hands the inventory to the engine, as it was last read.
    pub(super) fn update_engine_inventory(&mut self, source: SourceId) {
        let (store, now) = (&mut self.records.inventories[source], Instant::now());
        if store.inventory != InventoryState::Unread {
            let seals = self.engine.view().seals();
            store.sealing = inventory::seal_status(store.inventory.inventory(), seals);
            let mut inventory =
                inventory::read(store.inventory.inventory(), &self.sources.locations[source], seals);
            let name = &self.engine.view().source(source).declared.name;
            let known = store.inventory.inventory();
            let find = |known| UnreadableRecords::find(known, &self.records.namespace, name);
            store.unreadable_records = known.map(find).unwrap_or_default();
            let unread = &store.unreadable_records;
            inventory.unreadable_rejections = unread.rejections.as_deref().map(Into::into);
            inventory.unreadable_finished = unread.finished_jobs.as_deref().map(Into::into);
            // A process that writes nothing can go on with the part that can be read.
            match store.sealing {
                _ if self.engine.view().source(source).declared.writes == SourceWrites::Observed => {}
                HashCipherStatus::Locked => {
                    return self.engine.handle(Input::InventoryLocked { source }, now);
                }
                HashCipherStatus::Stale => self.engine.handle(Input::SealKeyNeeded, now),
                HashCipherStatus::Valid => {}
            }
            match inventory.other_location.as_deref() {
                None => store.origin = InventoryOrigin::Local,
                // The lost inventory named a location that nobody declares any more.
                Some(inventory::UNKNOWN_LOCATION)
                    if self.engine.view().source(source).declared.lifecycle == SourceLifecycle::Deleting => {}
                Some(inventory::UNKNOWN_LOCATION) if store.origin == InventoryOrigin::Local => {
                    inventory.other_location = None;
                }
                Some(_) => {}
            }
            if inventory.lacks_location {
                store.need = InventoryNeed::Growth;
            }
            let inventory = self.visible_inventory(source, inventory);
            self.engine.handle(Input::Inventory { source, inventory }, now);
        }
    }

    /// Returns the inventory as shown: of an observed source, as if it had been written.
    fn visible_inventory(&self, source: SourceId, mut inventory: Inventory) -> Inventory {
        if self.engine.view().source(source).declared.writes == SourceWrites::Observed {
            let declared = self.engine.view().source(source).manifests.object_counts();
            inventory.kinds.extend(declared.kinds().cloned());
            let watched = declared.namespaces().filter(|name| self.engine.view().is_watching(source, name));
            inventory.namespaces.extend(watched.map(Arc::<str>::from));
            inventory.lacks_location = false;
            inventory.accepted.clone_from(&self.engine.view().source(source).head);
        }
        inventory
    }

    /// Writes the inventories that do not record what they should.
    pub(super) fn sync_inventories(&mut self) {
        self.find_origins();
        let is_idle = OnceCell::new();
        for source in self.engine.view().source_ids() {
            let is_compared = self.records.round_robin.is_due(source);
            if !is_compared && self.records.inventories[source].need != InventoryNeed::Growth {
                continue;
            }
            let state = self.engine.view().source(source);
            if self.records.inventories[source].call == CallState::Busy
                || self.records.inventories[source].inventory == InventoryState::Unread
                || self.records.inventories[source].sealing == HashCipherStatus::Locked
                || (state.head.is_none() && !self.is_to_be_registered(source))
                || state.declared.writes == SourceWrites::Observed
                // A new one would look as if it recorded all.
                || (state.declared.lifecycle == SourceLifecycle::Deleting && self.records.inventories[source].inventory == InventoryState::Absent)
                || self.is_inventory_unneeded(source)
            {
                continue;
            }
            let Some(mode) = self.due_write(source, &is_idle) else { continue };
            if self.run_mode.is_daemon()
                && self.records.inventories[source].rest_until(Instant::now()).is_some()
            {
                continue;
            }
            self.records.inventories[source].need = if mode == InventoryWriteMode::Grow {
                InventoryNeed::Cleanup
            } else {
                InventoryNeed::Nothing
            };
            let known = self.records.inventories[source].inventory.inventory().cloned();
            let location = &self.sources.locations[source];
            let Some(mut wanted) =
                inventory::wanted_inventory(self.engine.view(), source, location, known.as_ref(), mode)
            else {
                // Once there is a key.
                self.engine.handle(Input::SealKeyNeeded, Instant::now());
                self.records.inventories[source].need = InventoryNeed::Growth;
                continue;
            };
            handover::record(&mut self.engine, source, mode, known.as_ref(), &mut wanted);
            if let Some(summary) = self.status_summary(source) {
                summary.write_to(&mut wanted.data);
            }
            self.record_opt_outs(source, &mut wanted.data);
            accepted_revision::record(
                &mut wanted,
                self.records.inventories[source].accepted_revision.as_ref(),
            );
            // A source makes its repository known to the others before it wants anything of theirs.
            let says_nothing = wanted.data.is_empty() || !self.run_mode.is_daemon();
            let nothing_to_say = known.is_none() && wanted.kinds.is_empty() && says_nothing;
            if known.as_ref() == Some(&wanted) || nothing_to_say {
                continue;
            }
            let reported = known.as_ref().and_then(|known| StatusSummary::from_data(&known.data));
            if reported != StatusSummary::from_data(&wanted.data) {
                self.status_author().write_to(&mut wanted.data);
            }
            let store = &mut self.records.inventories[source];
            store.call = CallState::Busy;
            store.rewrites.begin_write(known.as_ref().and_then(InventoryObject::version));
            let cluster = self.executor.cluster.clone();
            let (namespace, name) =
                (self.records.namespace.clone(), self.engine.view().source(source).declared.name.clone());
            self.spawn_write(async move {
                let saved = cluster.save_inventory(&namespace, &name, known.as_ref(), &wanted).await;
                LoopEvent::Inventory(source, saved.map(Some))
            });
        }
    }

    /// Returns how an inventory is to be written now; none where it need not be. All sources share
    /// the answer whether the loop is idle, which is asked for once, and only where it counts.
    fn due_write(&mut self, source: SourceId, is_idle: &OnceCell<bool>) -> Option<InventoryWriteMode> {
        let store = &mut self.records.inventories[source];
        if store.need == InventoryNeed::Nothing
            && self.sources.attempted.contains(&source)
            && handover::has_outdated_requests(self.engine.view(), source, store.inventory.inventory())
        {
            store.need = InventoryNeed::Cleanup;
        }
        match self.records.inventories[source].need {
            InventoryNeed::Growth => Some(InventoryWriteMode::Grow),
            InventoryNeed::Cleanup if *is_idle.get_or_init(|| self.is_idle()) && self.is_synced(source) => {
                Some(InventoryWriteMode::Exact)
            }
            InventoryNeed::Nothing | InventoryNeed::Cleanup => {
                let lacks_something =
                    self.sources.attempted.contains(&source) && !self.is_inventory_current(source);
                lacks_something.then_some(InventoryWriteMode::Grow)
            }
        }
    }

    /// Returns what this process is known by in a status that outlives it.
    pub(super) fn status_author(&self) -> StatusAuthor {
        let command = match self.run_mode {
            RunMode::Daemon => AuthorCommand::Run,
            _ => AuthorCommand::Apply,
        };
        StatusAuthor {
            command,
            process: std::process::id(),
            mark: process_mark(),
            at: jiff::Timestamp::now(),
            host: host_name(),
        }
    }

    /// Returns whether an inventory records all that it should.
    fn is_inventory_current(&mut self, source: SourceId) -> bool {
        inventory::is_current(
            self.engine.view(),
            source,
            self.records.inventories[source].inventory.inventory(),
        ) && self.has_status_record(source)
            && self.has_opt_out_record(source)
            && self.records.inventories[source].has_accepted_revision()
    }

    /// Returns whether a source that could not be read yet is to be made known to the others: it
    /// may want what they drop.
    fn is_to_be_registered(&self, source: SourceId) -> bool {
        self.run_mode.is_daemon()
            && self.sources.attempted.contains(&source)
            && self.records.inventories[source].inventory == InventoryState::Absent
            && self.engine.view().can_state(source)
    }

    /// Sends a source what its inventory says of the revisions that were accepted and read last.
    /// Signed commits are not checked before that.
    fn send_anchor(&mut self, source: SourceId) {
        let store = &mut self.records.inventories[source];
        let mut verification_record =
            accepted_revision::verification_anchor(&self.records.namespace, store.inventory.inventory());
        // A later one says what this process has read itself.
        if let Some(sent) = &store.verification_record {
            verification_record.last_read.clone_from(&sent.last_read);
        }
        let Some(source_task) = self.sources.requests[source]
            .as_ref()
            .filter(|_| store.verification_record.as_ref() != Some(&verification_record))
        else {
            return;
        };
        // Where there is no room, the next answer sends it.
        if source_task.try_send(SourceTaskRequest::VerificationRecord(verification_record.clone())).is_ok() {
            store.verification_record = Some(verification_record);
        }
    }

    /// Notes a revision that the inventory is to record as accepted.
    pub(super) fn note_accepted_revision(&mut self, source: SourceId, revision: Revision) {
        self.records.inventories[source].accepted_revision = Some(revision);
    }

    /// Returns whether an inventory that is there has the status of its source.
    fn has_status_record(&self, source: SourceId) -> bool {
        let inventory = self.records.inventories[source].inventory.inventory();
        let (Some(inventory), Some(summary)) = (inventory, self.status_summary(source)) else { return true };
        StatusSummary::from_data(&inventory.data).as_ref() == Some(summary)
    }

    /// Logs once which kind keeps a source from pruning, and that none does any more. Logs too what
    /// it had where no informer watches now.
    pub(super) fn log_unlisted(&mut self) {
        for (source, store) in self.engine.view().source_ids().zip(&mut self.records.inventories) {
            let unwatched = self.engine.view().unwatched_namespaces(source);
            if store.unwatched != unwatched {
                let source = &self.engine.view().source(source).declared.name;
                if let Some(text) = &unwatched {
                    tracing::warn!(%source, "{text}");
                }
                store.unwatched = unwatched;
            }
            let why = self.engine.view().unlisted_reason(source);
            if store.unlisted_reason == why {
                continue;
            }
            let source = &self.engine.view().source(source).declared.name;
            if let Some(why) = &why {
                tracing::warn!(%source, "{why}");
            } else {
                tracing::info!(%source, "its pruning goes on");
            }
            store.unlisted_reason = why;
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        let depth = self.queue.depth();
        depth.ready == 0 && depth.processing == 0 && self.writes.is_empty() && !self.has_transient_reasons()
    }

    /// Schedules a change of inventories that can wait until nothing else is left to do.
    pub(super) fn schedule_tidying(&mut self) {
        for store in self.records.inventories.iter_mut().filter(|store| store.need == InventoryNeed::Nothing)
        {
            store.need = InventoryNeed::Cleanup;
        }
    }

    /// Returns whether every kind that a source names is listed, or will not be before somebody
    /// does something.
    pub(super) fn is_seen(&self, source: SourceId) -> bool {
        let state = self.engine.view().source(source);
        let mut kinds =
            state.manifests.object_counts().kinds().chain(self.engine.view().listed_kinds(source)).peekable();
        let waits = |kind: &GroupKind| {
            self.engine.view().is_syncing(source, kind) && !self.engine.view().is_unserved(kind)
        };
        state.incomplete_reason.is_none() && kinds.peek().is_some() && !kinds.any(waits)
    }

    pub(super) fn is_synced(&self, source: SourceId) -> bool {
        let state = self.engine.view().source(source);
        let mut kinds =
            self.engine.view().listed_kinds(source).chain(state.manifests.object_counts().kinds());
        state.is_complete() && kinds.all(|kind| self.engine.view().is_synced(source, kind))
    }
}

#[cfg(test)]
mod tests;
