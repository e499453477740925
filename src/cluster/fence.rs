//! Until when a replica may write for the sources that it holds.
//!
//! The end of each term is set by whoever renews the Lease, and asked right before a write is sent. It is told by a
//! clock that goes on while the host sleeps: what wakes up after its Lease has run out writes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The terms of all sources that a replica holds. Cheap to clone; all clones say the same.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    inner: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// When each term ends.
    ends: BTreeMap<Arc<str>, Duration>,
    /// Writes on their way.
    underway: usize,
    /// When the last one was given up without an answer.
    unanswered: Duration,
}

/// Whether writes for some sources may be sent.
#[derive(Clone, Debug)]
pub struct Fence {
    terms: Terms,
    sources: Arc<[Arc<str>]>,
}

/// A write on its way. Dropped without an answer, its fate is not known.
#[derive(Debug)]
pub(super) struct Underway {
    terms: Terms,
    sent: Duration,
    end: Duration,
    is_answered: bool,
}

/// Time since the host was started, its sleep included.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}

/// A moment from which a term counts: taken before the renewal is sent.
#[derive(Clone, Copy, Debug)]
pub struct Tick(Duration);

impl Terms {
    /// This moment.
    pub fn tick() -> Tick {
        Tick(now())
    }

    /// Lets writes for a source pass for so long after a moment.
    pub fn extend(&self, source: &Arc<str>, from: Tick, by: Duration) {
        let mut known = self.lock();
        let end = known.ends.entry(source.clone()).or_default();
        *end = (from.0 + by).max(*end);
    }

    /// Lets no more writes pass for a source.
    pub fn end(&self, source: &str) {
        self.lock().ends.remove(source);
    }

    /// A fence around the writes for all of these sources: closed as soon as the term of one has ended.
    pub fn fence(&self, sources: impl IntoIterator<Item = Arc<str>>) -> Fence {
        Fence { terms: self.clone(), sources: sources.into_iter().collect() }
    }

    /// Whether a write is on its way, or one of the last while was never answered: the server may still do it.
    pub fn is_write_unanswered(&self, within: Duration) -> bool {
        let known = self.lock();
        let recently = || now().saturating_sub(known.unanswered) < within;
        known.underway > 0 || (!known.unanswered.is_zero() && recently())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fence {
    /// Lets one write pass; none where the fence is closed.
    pub(super) fn pass(&self) -> Option<Underway> {
        let mut known = self.terms.lock();
        let sent = now();
        let mut ends = self.sources.iter().map(|source| known.ends.get(source));
        let end = ends.try_fold(Duration::MAX, |least, end| Some(least.min(*end?)))?;
        if sent >= end {
            return None;
        }
        known.underway += 1;
        drop(known);
        Some(Underway { terms: self.terms.clone(), sent, end, is_answered: false })
    }
}

impl Underway {
    /// What is left of the shortest term.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_sub(self.sent)
    }

    /// The server has answered.
    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut known = self.terms.lock();
        known.underway = known.underway.saturating_sub(1);
        if !self.is_answered {
            known.unanswered = now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_write_passes_only_within_the_terms_of_all_sources() {
        let (terms, a, b): (_, Arc<str>, Arc<str>) = (Terms::default(), "a".into(), "b".into());
        let fence = terms.fence([a.clone(), b.clone()]);
        let passes = || fence.pass().map(|underway| (underway.left(), underway.answered()).0);
        assert_eq!(passes(), None);
        terms.extend(&a, Terms::tick(), LONG);
        assert_eq!(passes(), None);
        terms.extend(&b, Terms::tick(), LONG / 2);
        assert!(passes().is_some_and(|left| left <= LONG / 2));
        // A renewal that is answered late shortens nothing.
        terms.extend(&b, Tick(Duration::ZERO), LONG);
        assert!(passes().is_some());
        terms.end("a");
        assert_eq!(passes(), None);
        terms.extend(&a, Tick(Duration::from_nanos(1)), Duration::from_nanos(1));
        assert_eq!(passes(), None);
        assert!(Terms::default().fence([]).pass().is_some());
    }

    #[test]
    fn what_was_sent_and_not_answered_is_remembered() {
        let terms = Terms::default();
        let fence = terms.fence([]);
        let underway = fence.pass().unwrap();
        assert!(terms.is_write_unanswered(Duration::ZERO));
        underway.answered();
        assert!(!terms.is_write_unanswered(LONG));
        drop(fence.pass());
        assert!(terms.is_write_unanswered(LONG));
        assert!(!terms.is_write_unanswered(Duration::ZERO));
    }
}
