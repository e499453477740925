//! The window of writes: how many may be in flight at once.
//!
//! **Invariant:** neither sends nor decides a write.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::object::ObjectId;

/// The writes and dry runs in flight, and the bound on them.
///
/// Objects that failed before have slots of their own, half of the bound: a webhook that never
/// answers delays nobody else.
pub(super) struct WriteWindow {
    /// The number of writes and dry runs in flight.
    in_flight: usize,
    /// One reference for each write in flight that is not counted.
    uncounted: Arc<()>,
    /// Writes in flight that failed before.
    retries: BTreeSet<ObjectId>,
    /// Objects whose turn comes when one of those is answered.
    waiting_retries: BTreeSet<ObjectId>,
    /// The number of writes that may be in flight now. Each one that is carried out doubles it, and
    /// each one without a known result halves it.
    size: usize,
    /// The maximum of the window.
    concurrency: usize,
}

impl WriteWindow {
    /// Returns a window for one write at first, and for `concurrency` writes at most.
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            in_flight: 0,
            uncounted: Arc::default(),
            retries: BTreeSet::new(),
            waiting_retries: BTreeSet::new(),
            size: 1,
            concurrency,
        }
    }

    /// Returns whether another first try may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight - self.retries.len() < self.size.min(self.concurrency)
    }

    /// Returns whether no counted write is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    /// Returns whether no write at all is in flight.
    pub(super) fn is_answered(&self) -> bool {
        self.is_empty() && Arc::strong_count(&self.uncounted) == 1
    }

    /// Takes a slot of those for retries. Where there is none, the object waits for one.
    pub(super) fn admit_retry(&mut self, id: &ObjectId) -> RetryAdmission {
        if self.retries.len() >= (self.concurrency / 2).max(1) {
            self.waiting_retries.insert(id.clone());
            return RetryAdmission::Waiting;
        }
        self.retries.insert(id.clone());
        RetryAdmission::Admitted
    }

    /// Counts a write that is sent.
    pub(super) fn note_sent(&mut self) {
        self.in_flight += 1;
    }

    /// Returns a reference that stands for a write without a count, until it is dropped.
    pub(super) fn uncounted_write(&self) -> Arc<()> {
        self.uncounted.clone()
    }

    /// Takes the answer of a write. Returns the object that may now be tried again.
    pub(super) fn note_answer(&mut self, id: &ObjectId) -> Option<ObjectId> {
        self.in_flight -= 1;
        if self.retries.remove(id) { self.waiting_retries.pop_first() } else { None }
    }

    /// Widens the window after a write that was carried out.
    pub(super) fn widen(&mut self) {
        self.size = (self.size * 2).min(self.concurrency);
    }

    /// Narrows the window after a write whose fate is unknown.
    pub(super) fn narrow(&mut self) {
        self.size = (self.size / 2).max(1);
    }
}

/// Indicates whether a retry may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAdmission {
    /// It may.
    Admitted,
    /// It waits for the answer of another retry.
    Waiting,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    fn id(name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name)
    }

    #[test]
    fn answers_double_the_window_up_to_its_maximum_and_outages_halve_it() {
        let mut window = WriteWindow::new(6);
        let mut check = |change: fn(&mut WriteWindow), expected: usize| {
            change(&mut window);
            assert_eq!(window.size, expected);
        };
        for size in [2, 4, 6, 6] {
            check(WriteWindow::widen, size);
        }
        for size in [3, 1, 1] {
            check(WriteWindow::narrow, size);
        }
    }

    #[test]
    fn retries_take_no_room_of_others_and_wait_for_each_other() {
        let mut window = WriteWindow::new(4);
        for (name, expected) in
            [("a", RetryAdmission::Admitted), ("b", RetryAdmission::Admitted), ("c", RetryAdmission::Waiting)]
        {
            assert_eq!(window.admit_retry(&id(name)), expected, "{name}");
        }
        window.note_sent();
        window.note_sent();
        assert!(window.has_room());
        window.note_sent();
        assert!(!window.has_room());
        assert_eq!(window.note_answer(&id("first")), None);
        assert_eq!(window.note_answer(&id("a")), Some(id("c")));
        assert!(!window.is_empty());
        assert_eq!(window.note_answer(&id("b")), None);
        assert!(window.is_empty());
    }

    #[test]
    fn a_write_that_is_not_counted_is_waited_for_all_the_same() {
        let window = WriteWindow::new(1);
        let write = window.uncounted_write();
        assert!(window.is_empty() && !window.is_answered());
        drop(write);
        assert!(window.is_answered());
    }
}
