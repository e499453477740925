//! The revisions that a source keeps readable, and the time at which the next one is due.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::object::Revision;

/// The quiet time before revisions are kept. Keeping one costs more than reading a change, and the
/// next commit should not wait for it.
const PIN_DELAY: Duration = Duration::from_secs(1);

/// The longest time for which a revision is in force before it is kept all the same.
const MAX_PIN_DELAY: Duration = Duration::from_secs(30);

/// The revisions that a source was asked to keep, and those that it is to keep.
#[derive(Debug, Default)]
pub(super) struct RevisionPins {
    kept: BTreeSet<Revision>,
    wanted: BTreeSet<Revision>,
    due: Option<Instant>,
    /// The time since which there is something to do.
    since: Option<Instant>,
}

impl RevisionPins {
    /// Sets the revisions to keep.
    pub(super) fn set_wanted(&mut self, revisions: BTreeSet<Revision>) {
        self.wanted = revisions;
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        self.due = Some((now + PIN_DELAY).min(since + MAX_PIN_DELAY));
    }

    /// Returns when something is to be done.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the revisions to keep next: one more, so that a commit meanwhile does not wait for
    /// all. The first time all, as an earlier process may have kept some that this one does not
    /// know yet.
    pub(super) fn next(&self) -> BTreeSet<Revision> {
        let missing = self.wanted.difference(&self.kept).next();
        if self.kept.is_empty() || missing.is_none() {
            return self.wanted.clone();
        }
        self.kept.intersection(&self.wanted).chain(missing).cloned().collect()
    }

    /// Records the revisions that are kept.
    pub(super) fn mark_kept(&mut self, kept: BTreeSet<Revision>) {
        if kept == self.wanted {
            (self.due, self.since) = (None, None);
        }
        self.kept = kept;
    }

    /// Records that they could not be kept: the next request tries again.
    pub(super) fn note_failure(&mut self) {
        (self.due, self.since) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &str) -> BTreeSet<Revision> {
        names.split_whitespace().map(Revision::new).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn they_are_kept_when_it_is_quiet_or_it_was_long_enough() {
        let mut pins = RevisionPins::default();
        let start = Instant::now();
        for (passed, due) in [(0, 1_000), (900, 1_900), (1_800, 2_800), (29_500, 30_000), (31_000, 30_000)] {
            tokio::time::advance(start + Duration::from_millis(passed) - Instant::now()).await;
            pins.set_wanted(set("a"));
            assert_eq!(pins.next_due(), Some(start + Duration::from_millis(due)), "{passed} ms");
        }
        pins.mark_kept(set("a"));
        pins.set_wanted(set("a b"));
        assert_eq!(pins.next_due(), Some(Instant::now() + PIN_DELAY));
    }

    #[test]
    fn they_are_kept_one_by_one_after_the_first_time() {
        let mut pins = RevisionPins::default();
        assert_eq!(pins.next_due(), None);
        pins.set_wanted(set("a b"));
        assert_eq!(pins.next(), set("a b"));
        pins.mark_kept(pins.next());
        assert_eq!(pins.next_due(), None);
        pins.set_wanted(set("b c d"));
        assert_eq!(pins.next(), set("b c"));
        pins.mark_kept(pins.next());
        assert!(pins.next_due().is_some());
        assert_eq!(pins.next(), set("b c d"));
        pins.note_failure();
        assert_eq!(pins.next_due(), None);
        pins.set_wanted(set("d"));
        assert_eq!(pins.next(), set("b c d").intersection(&set("d")).cloned().chain(set("d")).collect());
    }
}
