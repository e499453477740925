//! The waits of objects, and the marks of those that are to be decided about again.

use std::collections::{BTreeSet, HashMap};

use crate::engine::facts::entry::WaitTopic;
use crate::object::ObjectId;

/// The objects that wait for a topic, and those that are marked.
///
/// **Invariant:** an object waits for one topic at most, and is marked when that is woken.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct Wakes {
    /// The objects that wait for a topic.
    waiters_by_topic: HashMap<WaitTopic, BTreeSet<ObjectId>>,
    /// The topic that each object waits for.
    topic_by_waiter: HashMap<ObjectId, WaitTopic>,
    /// Objects of which a fact changed, and that are to be decided about again.
    dirty: Vec<ObjectId>,
}

impl Wakes {
    /// Marks an object.
    pub(in crate::engine) fn mark(&mut self, id: ObjectId) {
        self.dirty.push(id);
    }

    /// Marks several objects.
    pub(in crate::engine) fn mark_each(&mut self, ids: impl IntoIterator<Item = ObjectId>) {
        self.dirty.extend(ids);
    }

    /// Returns whether an object is marked.
    pub(in crate::engine) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes all marked objects.
    pub(in crate::engine) fn take_dirty(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.dirty)
    }

    /// Marks the objects that wait for a topic. They wait no longer.
    pub(in crate::engine) fn wake(&mut self, topic: &WaitTopic) {
        for id in self.waiters_by_topic.remove(topic).unwrap_or_default() {
            self.topic_by_waiter.remove(&id);
            self.dirty.push(id);
        }
        if self.topic_by_waiter.is_empty() {
            // Memory that a first pass over a large source needed is given back.
            self.topic_by_waiter.shrink_to_fit();
        }
    }

    /// Returns the topic that an object waits for.
    pub(in crate::engine) fn topic_of(&self, id: &ObjectId) -> Option<&WaitTopic> {
        self.topic_by_waiter.get(id)
    }

    /// Returns the objects that wait for a topic; none where nobody has since it was last woken.
    pub(in crate::engine) fn waiters_of(&self, topic: &WaitTopic) -> Option<&BTreeSet<ObjectId>> {
        self.waiters_by_topic.get(topic)
    }

    /// Lets an object that waits for nothing wait for a topic.
    pub(in crate::engine) fn begin_wait(&mut self, id: &ObjectId, topic: WaitTopic) {
        self.waiters_by_topic.entry(topic.clone()).or_default().insert(id.clone());
        self.topic_by_waiter.insert(id.clone(), topic);
    }

    /// Ends the wait of an object without a mark. Returns the topic that it waited for.
    pub(in crate::engine) fn end_wait(&mut self, id: &ObjectId) -> Option<WaitTopic> {
        let topic = self.topic_by_waiter.remove(id)?;
        if let Some(waiting) = self.waiters_by_topic.get_mut(&topic) {
            waiting.remove(id);
        }
        Some(topic)
    }
}

#[cfg(test)]
impl Wakes {
    /// Returns all marked objects.
    pub(in crate::engine) fn dirty(&self) -> &[ObjectId] {
        &self.dirty
    }

    /// Returns the topic that each object waits for.
    pub(in crate::engine) fn topics(&self) -> &HashMap<ObjectId, WaitTopic> {
        &self.topic_by_waiter
    }
}
