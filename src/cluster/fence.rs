//! The term within which a replica may write for the sources that it holds.
//!
//! The renewal of a Lease sets the end of its term, and each write asks for it right before it is
//! sent. The clock goes on while the host sleeps: a process that wakes up after its Lease has run
//! out writes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

/// The terms of all sources that a replica holds. Cheap to clone; all clones say the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseTerms {
    inner: Arc<LeaseTermMap>,
}

#[derive(Debug, Default)]
struct LeaseTermMap {
    known: Mutex<TermState>,
    /// A write has ended, answered or not.
    ended: Notify,
}

#[derive(Debug, Default)]
struct TermState {
    /// The end of each term.
    expires: BTreeMap<Arc<str>, Duration>,
    /// Writes on their way, for each source.
    in_flight: BTreeMap<Arc<str>, usize>,
    /// The time of the last write of each source that was given up without an answer.
    unanswered: BTreeMap<Arc<str>, Duration>,
}

/// A fence around the writes for some sources.
#[derive(Clone, Debug)]
pub struct WriteFence {
    terms: LeaseTerms,
    sources: Arc<[Arc<str>]>,
}

/// A write on its way. Dropped without an answer, its fate is not known.
#[derive(Debug)]
pub(super) struct InFlightWrite {
    terms: LeaseTerms,
    sources: Arc<[Arc<str>]>,
    sent: Duration,
    end: Duration,
    is_answered: bool,
}

/// Returns the time since the host was started, its sleep included.
fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}

/// A moment from which a term counts: taken before the renewal is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TermStart(Duration);

impl LeaseTerms {
    /// Returns this moment.
    pub(crate) fn tick() -> TermStart {
        TermStart(boot_time())
    }

    /// Lets writes for a source pass for this duration after a moment.
    pub(crate) fn extend(&self, source: &Arc<str>, from: TermStart, by: Duration) {
        let mut known = self.lock();
        let end = known.expires.entry(source.clone()).or_default();
        *end = (from.0 + by).max(*end);
    }

    /// Lets no more writes pass for a source.
    pub(crate) fn end(&self, source: &str) {
        self.lock().expires.remove(source);
    }

    /// Returns a fence around the writes for all of these sources: closed as soon as the term of
    /// one has ended.
    pub(crate) fn new_fence(&self, sources: impl IntoIterator<Item = Arc<str>>) -> WriteFence {
        WriteFence { terms: self.clone(), sources: sources.into_iter().collect() }
    }

    /// Returns whether a write for a source is in flight, or went unanswered of late: the server
    /// may still carry it out.
    pub(crate) fn is_write_unanswered(&self, source: &str, within: Duration) -> bool {
        let known = self.lock();
        let recently = |at: &Duration| boot_time().saturating_sub(*at) < within;
        known.in_flight.contains_key(source) || known.unanswered.get(source).is_some_and(recently)
    }

    /// Waits until no write for any of these sources is on its way, or until the timeout.
    pub(crate) async fn wait_until_idle(&self, sources: &[Arc<str>], timeout: Duration) {
        let rest = async {
            loop {
                let ended = self.inner.ended.notified();
                if !sources.iter().any(|source| self.lock().in_flight.contains_key(source)) {
                    return;
                }
                ended.await;
            }
        };
        // A write that is still in flight then counts as unanswered.
        let _ = tokio::time::timeout(timeout, rest).await;
    }

    fn lock(&self) -> MutexGuard<'_, TermState> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteFence {
    /// Lets one write pass; none where the fence is closed.
    pub(super) fn admit(&self) -> Option<InFlightWrite> {
        let mut known = self.terms.lock();
        let sent = boot_time();
        let mut ends = self.sources.iter().map(|source| known.expires.get(source));
        let end = ends.try_fold(Duration::MAX, |least, end| Some(least.min(*end?)))?;
        if sent >= end {
            return None;
        }
        for source in self.sources.iter() {
            *known.in_flight.entry(source.clone()).or_default() += 1;
        }
        drop(known);
        let (terms, sources) = (self.terms.clone(), self.sources.clone());
        Some(InFlightWrite { terms, sources, sent, end, is_answered: false })
    }
}

impl InFlightWrite {
    /// Returns the rest of the shortest term.
    pub(super) fn time_left(&self) -> Duration {
        self.end.saturating_sub(self.sent)
    }

    /// Records that the server has answered.
    pub(super) fn mark_answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for InFlightWrite {
    fn drop(&mut self) {
        let mut known = self.terms.lock();
        for source in self.sources.iter() {
            if let Some(count) = known.in_flight.get_mut(source) {
                *count -= 1;
                if *count == 0 {
                    known.in_flight.remove(source);
                }
            }
            if !self.is_answered {
                known.unanswered.insert(source.clone(), boot_time());
            }
        }
        drop(known);
        self.terms.inner.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_TIMEOUT: Duration = Duration::from_mins(1);

    #[test]
    fn a_write_passes_only_within_the_terms_of_all_sources() {
        let (terms, a, b): (_, Arc<str>, Arc<str>) = (LeaseTerms::default(), "a".into(), "b".into());
        let fence = terms.new_fence([a.clone(), b.clone()]);
        let passes = || fence.admit().map(|underway| (underway.time_left(), underway.mark_answered()).0);
        assert_eq!(passes(), None);
        terms.extend(&a, LeaseTerms::tick(), LONG_TIMEOUT);
        assert_eq!(passes(), None);
        terms.extend(&b, LeaseTerms::tick(), LONG_TIMEOUT / 2);
        assert!(passes().is_some_and(|left| left <= LONG_TIMEOUT / 2));
        // A renewal that is answered late shortens nothing.
        terms.extend(&b, TermStart(Duration::ZERO), LONG_TIMEOUT);
        assert!(passes().is_some());
        terms.end("a");
        assert_eq!(passes(), None);
        terms.extend(&a, TermStart(Duration::from_nanos(1)), Duration::from_nanos(1));
        assert_eq!(passes(), None);
        assert!(LeaseTerms::default().new_fence([]).admit().is_some());
    }

    #[test]
    fn what_was_sent_and_not_answered_is_remembered_of_its_source() {
        let (terms, a, b): (_, Arc<str>, Arc<str>) = (LeaseTerms::default(), "a".into(), "b".into());
        terms.extend(&a, LeaseTerms::tick(), LONG_TIMEOUT);
        let fence = terms.new_fence([a]);
        let underway = fence.admit().unwrap();
        assert!(
            terms.is_write_unanswered("a", Duration::ZERO) && !terms.is_write_unanswered(&b, LONG_TIMEOUT)
        );
        underway.mark_answered();
        assert!(!terms.is_write_unanswered("a", LONG_TIMEOUT));
        drop((fence.admit(), fence.admit()));
        assert!(terms.is_write_unanswered("a", LONG_TIMEOUT) && !terms.is_write_unanswered(&b, LONG_TIMEOUT));
        assert!(!terms.is_write_unanswered("a", Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_releases_a_lease_waits_for_what_is_on_its_way_and_not_for_ever() {
        let (terms, a, b): (_, Arc<str>, Arc<str>) = (LeaseTerms::default(), "a".into(), "b".into());
        terms.extend(&a, LeaseTerms::tick(), LONG_TIMEOUT);
        terms.extend(&b, LeaseTerms::tick(), LONG_TIMEOUT);
        let (of_a, _of_b) =
            (terms.new_fence([a.clone()]).admit().unwrap(), terms.new_fence([b.clone()]).admit().unwrap());
        let answered = async {
            tokio::time::sleep(LONG_TIMEOUT / 2).await;
            of_a.mark_answered();
        };
        let begun = tokio::time::Instant::now();
        futures::join!(answered, terms.wait_until_idle(std::slice::from_ref(&a), LONG_TIMEOUT));
        assert_eq!((begun.elapsed(), terms.is_write_unanswered(&a, LONG_TIMEOUT)), (LONG_TIMEOUT / 2, false));
        terms.wait_until_idle(&[a, b.clone()], LONG_TIMEOUT).await;
        assert!(begun.elapsed() >= LONG_TIMEOUT * 3 / 2 && terms.is_write_unanswered(&b, LONG_TIMEOUT));
    }
}
