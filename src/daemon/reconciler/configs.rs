//! The key for hashes of data, and the data of ConfigMaps and Secrets that pods use and that are
//! not from git.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tokio::sync::mpsc;

use super::super::inventory::CallState;
use super::super::loop_event::LoopEvent;
use super::loop_state::{MIN_RETRY_DELAY, PERSON_RETRY_DELAY};
use super::{Reconciler, RunMode};
use crate::cluster::{
    ClusterError, ClusterFault, ConfigKey, DataChange, DataEvent, DataWatchHandle, EventSink, ServiceAccount,
    missing_key_remedy,
};
use crate::engine::{
    ApplyPurpose, ApplyRequest, CONFIG_KEY_SECRET_NAME, ConfigData, Input, ReadState, SourceWrites,
};
use crate::object::{ErrorClass, GroupKind, ObjectId};

/// The kind, namespace and account that a watch reads.
type DataInformerKey = (GroupKind, Option<String>, Option<ServiceAccount>);

/// The state of the key, and the open watches.
pub(super) struct ConfigDataWatches {
    key: Option<ConfigKey>,
    call: CallState,
    /// The time before which the key is not read again.
    pub(super) due: Option<Instant>,
    /// Indicates whether the key is to be read.
    stale: bool,
    /// The reason for a missing key, as last logged.
    logged_failure: Option<String>,
    open: BTreeMap<DataInformerKey, (BTreeSet<ObjectId>, Option<DataWatchHandle>)>,
    sink: EventSink<DataEvent>,
    /// The objects that cannot be read, each with the account.
    unreadable: BTreeSet<(ObjectId, Option<ServiceAccount>)>,
    /// The watch whose reports count for an object that several follow: the others' may be
    /// older.
    event_subjects: BTreeMap<ObjectId, Option<ServiceAccount>>,
}

impl ConfigDataWatches {
    /// Creates a state in which nothing is known or followed.
    pub(super) fn new(events: mpsc::Sender<LoopEvent>) -> Self {
        let sink = EventSink::new(events, LoopEvent::Data);
        Self {
            key: None,
            call: CallState::None,
            due: None,
            stale: true,
            logged_failure: None,
            open: BTreeMap::new(),
            sink,
            unreadable: BTreeSet::new(),
            event_subjects: BTreeMap::new(),
        }
    }

    /// Returns whether nothing about the key is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.call == CallState::None
    }

    /// Returns whether one of the informers that follow an object may yet report it.
    fn is_readable(&self, id: &ObjectId) -> bool {
        let mut following =
            self.open.iter().filter(|(_, (ids, _))| ids.contains(id)).map(|(group, _)| &group.2);
        following.any(|account| !self.unreadable.contains(&(id.clone(), account.clone())))
    }

    /// Lists again the data of which no event has come, though an informer follows them.
    fn relist_unreported(&self) {
        for (ids, watch) in self.open.values() {
            if ids.iter().any(|id| !self.event_subjects.contains_key(id)) {
                watch.iter().for_each(DataWatchHandle::relist);
            }
        }
    }

    /// Returns whether the reason for a missing key was reported.
    pub(super) fn has_reported_missing_key(&self) -> bool {
        self.key.is_none() && self.logged_failure.is_some()
    }
}

impl Reconciler {
    /// Reads the key, without which nothing is sealed and nothing is pruned, and follows the data
    /// that are used.
    pub(super) fn sync_configs(&mut self, used: Option<BTreeSet<ObjectId>>) {
        let now = Instant::now();
        let due = self.watches.data.due.is_none_or(|due| due <= now);
        if self.watches.data.stale && self.watches.data.call == CallState::None && due {
            self.watches.data.call = CallState::Busy;
            (self.watches.data.stale, self.watches.data.due) = (false, None);
            let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
            self.spawn(async move { LoopEvent::ConfigKey(cluster.read_config_key(&namespace).await) });
        }
        if let Some(used) = used {
            self.watch_data(used);
        }
    }

    pub(super) fn record_config_key(&mut self, answer: Result<Option<ConfigKey>, ClusterError>) {
        self.watches.data.call = CallState::None;
        match answer {
            Ok(Some(key)) => {
                self.watches.data.logged_failure = None;
                let before = self.engine.view().seals().number();
                if let Some(made) = key.key() {
                    self.engine.handle(Input::Key(ReadState::Value(made)), Instant::now());
                }
                self.watches.data.key = Some(key);
                if self.engine.view().seals().number() != before {
                    self.apply_new_seals();
                }
            }
            Ok(None) => self.make_config_key(),
            Err(error) => {
                // A Secret without a key stays so until a person takes it away.
                let is_garbled = matches!(error.fault(), ClusterFault::Garbled { .. });
                let passes = error.class() == ErrorClass::Transient && !is_garbled;
                self.watches.data.stale = true;
                let wait = if passes { MIN_RETRY_DELAY } else { PERSON_RETRY_DELAY };
                self.watches.data.due =
                    Some(Instant::now() + wait.mul_f64(1.0 + super::super::random_fraction()));
                if !passes {
                    self.record_missing_config_key(&format!("{error}"), Some(error.fault()));
                }
            }
        }
    }

    /// Reacts to a change of the keys that open and seal hashes.
    fn apply_new_seals(&mut self) {
        self.records.ledger.note_new_key();
        for source in self.engine.view().source_ids() {
            self.update_engine_inventory(source);
        }
    }

    /// Returns whether no source writes anything.
    pub(super) fn is_only_observing(&self) -> bool {
        self.engine.view().sources().iter().all(|source| source.declared.writes == SourceWrites::Observed)
    }

    /// Makes the key where a source that writes needs it. The one that was known is made again:
    /// another one would say nothing about what pods were started with.
    fn make_config_key(&mut self) {
        if self.is_only_observing() {
            return self.record_missing_config_key("it has not been made yet", None);
        }
        let key = self.watches.data.key.clone().or_else(ConfigKey::new_random);
        let Some(key) = key else {
            return self.record_missing_config_key("the system gives no random bytes", None);
        };
        self.watches.data.call = CallState::Busy;
        let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
        self.spawn_write(async move {
            LoopEvent::ConfigKey(cluster.make_config_key(&namespace, &key).await.map(Some))
        });
    }

    /// Records a missing key. Until there is one nothing is pruned, and nothing is restarted for
    /// changed data. Objects released together with a Secret wait, and nothing else does.
    fn record_missing_config_key(&mut self, why: &str, fault: Option<&ClusterFault>) {
        if self.watches.data.key.is_none() {
            self.engine.handle(Input::Key(ReadState::Unreadable(why.into())), Instant::now());
        }
        if self.watches.data.logged_failure.as_deref() != Some(why) {
            let name = format!("Secret {}/{CONFIG_KEY_SECRET_NAME}", self.records.namespace);
            let then = "nothing is pruned, what is written carries no seal, no workload is restarted for data that \
                        change, and none is released with a Secret";
            let remedy = missing_key_remedy(&self.records.namespace, fault);
            if self.engine.view().is_key_needed() || !self.is_only_observing() {
                tracing::warn!("{name}: {why}; {then}; {remedy}");
            }
            self.watches.data.logged_failure = Some(why.to_owned());
            self.apply_new_seals();
        }
    }

    /// Opens the watches of what is used now, and closes the others.
    fn watch_data(&mut self, used: BTreeSet<ObjectId>) {
        let mut wanted: BTreeMap<DataInformerKey, BTreeSet<ObjectId>> = BTreeMap::new();
        for id in used {
            let users = self.engine.view().sources_using(&id).into_iter();
            let accounts: BTreeSet<_> =
                users.map(|source| self.cluster_for_source(Some(source)).account().cloned()).collect();
            for account in accounts {
                let group = (id.group_kind(), id.namespace().map(str::to_owned), account);
                wanted.entry(group).or_default().insert(id.clone());
            }
        }
        let all: BTreeSet<&ObjectId> = wanted.values().flatten().collect();
        for (group, (ids, _)) in &self.watches.data.open {
            let now = wanted.get(group);
            for gone in ids.iter().filter(|id| now.is_none_or(|now| !now.contains(id))) {
                self.watches.data.unreadable.remove(&(gone.clone(), group.2.clone()));
                if self.watches.data.event_subjects.get(gone) == Some(&group.2) {
                    self.watches.data.event_subjects.remove(gone);
                }
                if !all.contains(gone) {
                    self.engine.handle(Input::ConfigUnfollowed(gone.clone()), Instant::now());
                }
            }
        }
        self.watches.data.open.retain(|group, (ids, _)| wanted.get(group) == Some(ids));
        for (group, ids) in wanted {
            if !self.watches.data.open.contains_key(&group) {
                let cluster = self.executor.cluster.with_account(group.2.clone());
                let watch = cluster.watch_data(&ids, self.watches.data.sink.clone());
                self.watches.data.open.insert(group, (ids, watch));
            }
        }
        // A watch that nobody reports from any more is asked again.
        self.watches.data.relist_unreported();
    }

    pub(super) fn handle_data_event(&mut self, event: DataEvent) {
        let DataEvent { id, account, change: data_change } = event;
        let group = (id.group_kind(), id.namespace().map(str::to_owned), account.clone());
        // The watch that reported it has been closed since.
        if !self.watches.data.open.get(&group).is_some_and(|(ids, _)| ids.contains(&id)) {
            return;
        }
        let name_and_account = (id.clone(), account.clone());
        match data_change {
            DataChange::Value(data) => {
                self.watches.data.unreadable.remove(&name_and_account);
                if *self.watches.data.event_subjects.entry(id.clone()).or_insert_with(|| account.clone())
                    == account
                {
                    self.record_config_data(id, ReadState::Value(data));
                }
            }
            DataChange::Failed(why, ErrorClass::Internal) => {
                tracing::error!(object = %id, "its data is no longer followed: {why}");
                self.record_config_data(id, ReadState::Unreadable(why));
            }
            DataChange::Failed(why, ErrorClass::Transient) => {
                tracing::debug!(object = %id, "its data cannot be read now: {why}");
            }
            DataChange::Failed(why, _) => {
                if self.watches.data.unreadable.insert(name_and_account) {
                    tracing::warn!(object = %id, "its data cannot be read, so nothing is restarted for it: {why}");
                }
                if self.watches.data.event_subjects.get(&id) == Some(&account)
                    && self.watches.data.is_readable(&id)
                {
                    self.watches.data.event_subjects.remove(&id);
                    self.watches.data.relist_unreported();
                }
                if !self.watches.data.is_readable(&id) {
                    self.record_config_data(id, ReadState::Unreadable(why));
                }
            }
        }
    }

    fn record_config_data(&mut self, id: ObjectId, data: ReadState<Option<ConfigData>>) {
        self.engine.handle(Input::ConfigData { id, data }, Instant::now());
    }

    /// Lists all data again, as an audit.
    pub(super) fn reread_configs(&mut self) {
        self.watches.data.stale = true;
        for (_, watch) in self.watches.data.open.values() {
            watch.iter().for_each(DataWatchHandle::relist);
        }
    }

    /// Logs why pods are restarted, where nothing in git shows it.
    pub(super) fn log_restart(&self, id: &ObjectId, apply: &ApplyRequest) {
        if let (ApplyPurpose::Restart, Some(started), RunMode::Daemon) =
            (apply.purpose, apply.variant.config_stamp, self.run_mode)
        {
            let changed = self.engine.view().changed_data(id, started);
            tracing::info!(object = %id, "restarted, as the data of {changed} changed");
        }
    }
}
