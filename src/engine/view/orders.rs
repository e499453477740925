//! The questions about orders, and about the data that pods use.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::View;
use crate::engine::{Acknowledgement, ChangedData, ConfigStamp, PauseIntent, SourceId, Uid};
use crate::object::ObjectId;

impl<'a> View<'a> {
    /// Returns the tokens of orders that are needed no longer: the inventory says what came of
    /// them, and it has come.
    pub(crate) fn finished_orders(self, source: SourceId) -> Vec<Arc<str>> {
        self.engine.finished_orders(source)
    }

    /// Returns the acknowledgements that a source's inventory should say, where those are not the ones
    /// that it says.
    pub(crate) fn next_acknowledged(self, source: SourceId) -> Option<Vec<Acknowledgement>> {
        self.engine.next_acknowledged(source)
    }

    /// Returns the confirmed deletions that a source's inventory should say, where those are not the
    /// ones that it says.
    pub(crate) fn next_confirmed(self, source: SourceId) -> Option<BTreeSet<Uid>> {
        self.engine.next_confirmed(source)
    }

    /// Returns the confirmed deletions that are still to come, once everything is known to be seen.
    pub(crate) fn open_confirmations(self, source: SourceId) -> BTreeSet<Uid> {
        self.engine.open_confirmations(source)
    }

    /// Returns the pause on the live object itself, where its source heeds it.
    pub(crate) fn annotated_pause(self, id: &ObjectId) -> Option<&'a PauseIntent> {
        self.engine.annotated_pause(id)
    }

    /// Returns how many pauses and holds of objects are not acknowledged, as the inventory says
    /// enough of them.
    pub(crate) fn unacknowledged_states(self, source: SourceId) -> usize {
        self.engine.unacknowledged_states(source)
    }

    /// Returns whether some workload asks for restarts, or the hash of a Secret is to be recorded,
    /// so that a key is needed.
    pub(crate) fn is_key_needed(self) -> bool {
        self.engine.is_key_needed()
    }

    /// Returns the objects whose data are to be followed: pods use them, and they are not from git.
    pub(crate) fn data_to_watch(self) -> BTreeSet<ObjectId> {
        self.engine.data_to_watch()
    }

    /// Returns the sources whose workloads use the data of an object, or would, were what failed
    /// tried again.
    pub(crate) fn sources_using(self, used: &ObjectId) -> BTreeSet<SourceId> {
        self.engine.sources_using(used)
    }

    /// Returns whether something has to be read before it is known what restarts.
    pub(crate) fn is_reading_data(self) -> bool {
        self.engine.is_reading_data()
    }

    /// Returns what has changed, of the objects that the pods of a workload use.
    pub(crate) fn changed_data(self, id: &ObjectId, started: ConfigStamp) -> ChangedData {
        self.engine.changed_data(id, started)
    }
}
