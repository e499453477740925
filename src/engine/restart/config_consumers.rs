//! The consumers of configuration data: the workloads whose pods use a ConfigMap or Secret.
//!
//! Each object of a unit brings facts when it is read, and again when it is written. So a workload
//! is asked again once for a batch of facts. A write that brings the data which it is
//! about to be started with asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::DesiredObject;
use crate::engine::facts::entry::{SourceId, WaitTopic};
use crate::engine::restart::config_restart::{ConfigBasis, DataView};
use crate::engine::state::Engine;
use crate::object::ObjectId;

/// The data of one object as the sources see them whose workloads use it.
pub(super) type DataViews = BTreeMap<SourceId, DataView>;

impl Engine {
    /// Updates the users of data after a change of the desired content.
    pub(in crate::engine) fn track_uses(&mut self, id: &ObjectId, before: Option<&DesiredObject>) {
        let now = self.entry(id).and_then(|entry| entry.target_content()).map(|(_, desired)| desired.clone());
        let used = |desired: Option<&DesiredObject>| -> BTreeSet<ObjectId> {
            desired.and_then(DesiredObject::restart_references).unwrap_or_default().iter().cloned().collect()
        };
        let (was, is) = (used(before), used(now.as_deref()));
        for gone in was.difference(&is) {
            if let Some(users) = self.configs.users.get_mut(gone) {
                users.remove(id);
                if users.is_empty() {
                    self.configs.users.remove(gone);
                    self.configs.views.remove(gone);
                }
            }
        }
        for new in &is {
            self.configs.users.entry(new.clone()).or_default().insert(id.clone());
        }
        if was != is {
            self.configs.seen.remove(id);
        }
        was.symmetric_difference(&is).for_each(|used| self.track_used(used));
        // Another source may use what is followed already, with rights of its own.
        self.configs.rewatch |= was != is && self.has_several_informer_groups();
        self.wake_config_consumers(id);
    }

    /// Keeps which of the objects that pods use are not from git.
    fn track_used(&mut self, id: &ObjectId) {
        let foreign = self.configs.users.contains_key(id) && !self.is_from_git(id);
        let changed =
            if foreign { self.configs.foreign.insert(id.clone()) } else { self.configs.foreign.remove(id) };
        self.configs.rewatch |= changed;
    }

    /// Marks the workloads that use an object whose data differ from before: they may have to
    /// restart.
    pub(in crate::engine) fn wake_config_consumers(&mut self, used: &ObjectId) {
        let Some(users) = self.configs.users.get(used).cloned() else { return };
        self.track_used(used);
        let sources: BTreeSet<SourceId> = users.iter().filter_map(|user| self.wanting_source(user)).collect();
        let view = |source| (source, self.data_of(used, ConfigBasis::Released(source)));
        let views: DataViews = sources.into_iter().map(view).collect();
        if self.configs.views.get(used) != Some(&views) {
            self.configs.views.insert(used.clone(), views);
            self.configs.woken.extend(users);
        }
    }

    /// Has all users of all data asked again, whatever the data are.
    pub(in crate::engine) fn wake_all_users(&mut self) {
        let used: Vec<ObjectId> = self.configs.users.keys().cloned().collect();
        self.configs.views.clear();
        for used in &used {
            self.wake_config_consumers(used);
        }
    }

    /// Puts the workloads whose data have changed back into the queue.
    pub(in crate::engine) fn requeue_config_consumers(&mut self) {
        for user in std::mem::take(&mut self.configs.woken) {
            // A missing workload is not restarted.
            if self.live_object(&user).is_some() {
                self.rollouts.units.forget_all();
            }
            self.track_move(&user);
            self.wake_topic(&WaitTopic::Object(user.clone()));
            self.objects.wakes.mark(user);
        }
    }

    /// Returns whether data that the pods of a workload use are still to be written.
    pub(in crate::engine) fn has_pending_data(&self, workload: &ObjectId) -> bool {
        let target = self.entry(workload).and_then(|entry| entry.target_content());
        let used = target.and_then(|(_, desired)| desired.restart_references()).unwrap_or_default();
        used.iter().any(|used| self.entry(used).is_some_and(|entry| entry.unreleased_content().is_some()))
    }

    /// Returns the workloads whose pods use an object.
    pub(in crate::engine) fn config_consumers_of(&self, id: &ObjectId) -> Vec<ObjectId> {
        self.configs.users.get(id).into_iter().flatten().cloned().collect()
    }
}
