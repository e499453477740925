//! The key for hashes of data, and the data of ConfigMaps and Secrets that pods use and that are
//! not from git.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::super::inventory::CallState;
use super::super::loop_event::LoopEvent;
use super::{Reconciler, StopCondition};
use crate::cluster::{
    ClusterError, ClusterFault, ConfigKey, DataChange, DataEvent, DataFollower, ServiceAccount,
    missing_key_remedy,
};
use crate::engine::{ApplyPurpose, ApplyRequest, KEY_SECRET, ReadState, SourceWrites};
use crate::object::{ErrorClass, GroupKind, ObjectId};

/// The shortest wait before the key is asked for again.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The same where a person has to change something first.
const PERSON_RETRY_DELAY: Duration = Duration::from_secs(15);

/// The kind, namespace and account that a follower reads.
type FollowGroup = (GroupKind, Option<String>, Option<ServiceAccount>);

/// The state of the key, and the open followers.
pub(super) struct ConfigFollowers {
    key: Option<ConfigKey>,
    call: CallState,
    /// Before this the key is not asked for again.
    pub(super) due: Option<Instant>,
    /// Indicates whether the key is to be read.
    stale: bool,
    /// The reason for a missing key, as last logged.
    logged_failure: Option<String>,
    open: BTreeMap<FollowGroup, (BTreeSet<ObjectId>, Option<DataFollower>)>,
    sink: mpsc::Sender<DataEvent>,
    /// The objects that cannot be read, each with the account.
    unreadable: BTreeSet<(ObjectId, Option<ServiceAccount>)>,
    /// The follower whose reports count for an object that several follow: the others' may be
    /// older.
    event_subjects: BTreeMap<ObjectId, Option<ServiceAccount>>,
}

impl ConfigFollowers {
    /// Creates a state in which nothing is known or followed.
    pub(super) fn new(sink: mpsc::Sender<DataEvent>) -> Self {
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
        for (ids, follower) in self.open.values() {
            if ids.iter().any(|id| !self.event_subjects.contains_key(id)) {
                follower.iter().for_each(DataFollower::relist);
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
    pub(super) fn sync_configs(&mut self) {
        let now = Instant::now();
        let due = self.configs.due.is_none_or(|due| due <= now);
        if self.configs.stale && self.configs.call == CallState::None && due {
            self.configs.call = CallState::Busy;
            (self.configs.stale, self.configs.due) = (false, None);
            let (cluster, namespace) = (self.executor.cluster.clone(), self.namespace.clone());
            self.spawn(async move { LoopEvent::ConfigKey(cluster.read_config_key(&namespace).await) });
        }
        self.follow_data();
    }

    pub(super) fn record_config_key(&mut self, answer: Result<Option<ConfigKey>, ClusterError>) {
        self.configs.call = CallState::None;
        match answer {
            Ok(Some(key)) => {
                self.configs.logged_failure = None;
                let before = self.engine.seals().number();
                if let Some(made) = key.key() {
                    self.engine.set_release_key(ReadState::Value(made.clone()));
                    self.engine.set_config_key(ReadState::Value(made));
                }
                self.configs.key = Some(key);
                if self.engine.seals().number() != before {
                    self.apply_new_seals();
                }
            }
            Ok(None) => self.make_config_key(),
            Err(error) => {
                // A Secret without a key stays so until a person takes it away.
                let is_garbled = matches!(error.fault(), ClusterFault::Garbled { .. });
                let passes = error.class() == ErrorClass::Transient && !is_garbled;
                self.configs.stale = true;
                let wait = if passes { MIN_RETRY_DELAY } else { PERSON_RETRY_DELAY };
                self.configs.due = Some(Instant::now() + wait.mul_f64(1.0 + super::super::random_fraction()));
                if !passes {
                    self.record_missing_config_key(&format!("{error}"), Some(error.fault()));
                }
            }
        }
    }

    /// Reacts to a change of the keys that open and seal hashes.
    fn apply_new_seals(&mut self) {
        self.ledger_store.note_new_key();
        for source in self.engine.source_ids() {
            self.update_engine_inventory(source);
        }
    }

    /// Returns whether no source writes anything.
    pub(super) fn is_only_observing(&self) -> bool {
        self.engine.sources().iter().all(|source| source.writes == SourceWrites::Observed)
    }

    /// Makes the key where a source that writes needs it. The one that was known is made again:
    /// another one would say nothing about what pods were started with.
    fn make_config_key(&mut self) {
        if self.is_only_observing() {
            return self.record_missing_config_key("it has not been made yet", None);
        }
        let key = self.configs.key.clone().or_else(ConfigKey::new_random);
        let Some(key) = key else {
            return self.record_missing_config_key("the system gives no random bytes", None);
        };
        self.configs.call = CallState::Busy;
        let (cluster, namespace) = (self.executor.cluster.clone(), self.namespace.clone());
        self.spawn_write(async move {
            LoopEvent::ConfigKey(cluster.make_config_key(&namespace, &key).await.map(Some))
        });
    }

    /// Records a missing key. Until there is one nothing is pruned, and nothing is restarted for
    /// changed data. Objects released together with a Secret wait, and nothing else does.
    fn record_missing_config_key(&mut self, why: &str, fault: Option<&ClusterFault>) {
        if self.configs.key.is_none() {
            self.engine.set_release_key(ReadState::Unreadable(why.into()));
            self.engine.set_config_key(ReadState::Unreadable(why.into()));
        }
        if self.configs.logged_failure.as_deref() != Some(why) {
            let name = format!("Secret {}/{KEY_SECRET}", self.namespace);
            let then = "nothing is pruned, what is written carries no seal, no workload is restarted for data that \
                        change, and none is released with a Secret";
            let remedy = missing_key_remedy(&self.namespace, fault);
            if self.engine.needs_key() || !self.is_only_observing() {
                tracing::warn!("{name}: {why}; {then}; {remedy}");
            }
            self.configs.logged_failure = Some(why.to_owned());
            self.apply_new_seals();
        }
    }

    /// Opens the watches of what is used now, and closes the others.
    fn follow_data(&mut self) {
        let Some(used) = self.engine.take_data_to_follow() else { return };
        let mut wanted: BTreeMap<FollowGroup, BTreeSet<ObjectId>> = BTreeMap::new();
        for id in used {
            let users = self.engine.sources_using(&id).into_iter();
            let accounts: BTreeSet<_> =
                users.map(|source| self.cluster_for_source(Some(source)).account().cloned()).collect();
            for account in accounts {
                let group = (id.group_kind(), id.namespace().map(str::to_owned), account);
                wanted.entry(group).or_default().insert(id.clone());
            }
        }
        let all: BTreeSet<&ObjectId> = wanted.values().flatten().collect();
        for (group, (ids, _)) in &self.configs.open {
            let now = wanted.get(group);
            for gone in ids.iter().filter(|id| now.is_none_or(|now| !now.contains(id))) {
                self.configs.unreadable.remove(&(gone.clone(), group.2.clone()));
                if self.configs.event_subjects.get(gone) == Some(&group.2) {
                    self.configs.event_subjects.remove(gone);
                }
                if !all.contains(gone) {
                    self.engine.forget_config(gone);
                }
            }
        }
        self.configs.open.retain(|group, (ids, _)| wanted.get(group) == Some(ids));
        for (group, ids) in wanted {
            if !self.configs.open.contains_key(&group) {
                let cluster = self.executor.cluster.with_account(group.2.clone());
                let follower = cluster.follow_data(&ids, self.configs.sink.clone());
                self.configs.open.insert(group, (ids, follower));
            }
        }
        // A follower that nobody reports from any more is asked again.
        self.configs.relist_unreported();
    }

    pub(super) fn handle_data_event(&mut self, event: DataEvent) {
        let DataEvent { id, account, change: news } = event;
        let group = (id.group_kind(), id.namespace().map(str::to_owned), account.clone());
        // The watch that reported it has been closed since.
        if !self.configs.open.get(&group).is_some_and(|(ids, _)| ids.contains(&id)) {
            return;
        }
        let name_and_account = (id.clone(), account.clone());
        match news {
            DataChange::Value(data) => {
                self.configs.unreadable.remove(&name_and_account);
                if *self.configs.event_subjects.entry(id.clone()).or_insert_with(|| account.clone())
                    == account
                {
                    self.engine.set_config_data(&id, ReadState::Value(data));
                }
            }
            DataChange::Failed(why, ErrorClass::Internal) => {
                tracing::error!(object = %id, "its data is no longer followed: {why}");
                self.engine.set_config_data(&id, ReadState::Unreadable(why));
            }
            DataChange::Failed(why, ErrorClass::Transient) => {
                tracing::debug!(object = %id, "its data cannot be read now: {why}");
            }
            DataChange::Failed(why, _) => {
                if self.configs.unreadable.insert(name_and_account) {
                    tracing::warn!(object = %id, "its data cannot be read, so nothing is restarted for it: {why}");
                }
                if self.configs.event_subjects.get(&id) == Some(&account) && self.configs.is_readable(&id) {
                    self.configs.event_subjects.remove(&id);
                    self.configs.relist_unreported();
                }
                if !self.configs.is_readable(&id) {
                    self.engine.set_config_data(&id, ReadState::Unreadable(why));
                }
            }
        }
    }

    /// Lists all data again, as an audit.
    pub(super) fn reread_configs(&mut self) {
        self.configs.stale = true;
        for (_, follower) in self.configs.open.values() {
            follower.iter().for_each(DataFollower::relist);
        }
    }

    /// Logs why pods are restarted, where nothing in git shows it.
    pub(super) fn log_restart(&self, id: &ObjectId, apply: &ApplyRequest) {
        if let (ApplyPurpose::Restart, Some(started), StopCondition::Shutdown) =
            (apply.purpose, apply.variant.config_stamp, self.stop_condition)
        {
            let changed = self.engine.changed_words(id, started);
            tracing::info!(object = %id, "restarted, as the data of {changed} changed");
        }
    }
}
