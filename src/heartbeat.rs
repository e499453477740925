//! Heartbeats: which part must make progress, and when its next heartbeat is due.
//!
//! Each part that may hang (the loop, a source reader, each watch) holds a [`Heartbeat`]. Before
//! each wait it says how long that wait may last. The watchdog, the probes and the metrics read
//! [`Heartbeats`].
//!
//! **Invariant:** reports who is late and decides nothing about it. A beat takes no lock, so it may
//! be recorded for every event.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The prefix of the name of a watch; its kind follows.
pub(crate) const WATCH_PREFIX: &str = "the watch over ";

/// All parts that must make progress. Cheap to clone; all clones see the same parts.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    inner: Arc<HeartbeatRegistry>,
}

#[derive(Debug)]
struct HeartbeatRegistry {
    /// Times are kept in milliseconds after this one.
    began: Instant,
    parts: Mutex<Vec<Weak<HeartbeatPart>>>,
}

#[derive(Debug)]
struct HeartbeatPart {
    name: Arc<str>,
    last: AtomicU64,
    due: AtomicU64,
}

/// The handle of one part. Once it is dropped, nothing is expected of the part.
#[derive(Debug)]
pub struct Heartbeat {
    began: Instant,
    part: Arc<HeartbeatPart>,
}

/// The last heartbeat of one part, and when the next is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatStatus {
    /// The part: `the loop`, `source shop`, `the watch over Deployment.apps`.
    pub name: Arc<str>,
    /// The time of its last heartbeat.
    pub last: Instant,
    /// The latest time of its next heartbeat.
    pub due: Instant,
}

impl HeartbeatStatus {
    /// Returns whether its next heartbeat is overdue.
    pub fn is_late(&self, now: Instant) -> bool {
        self.due < now
    }
}

impl Default for Heartbeats {
    fn default() -> Self {
        Self { inner: Arc::new(HeartbeatRegistry { began: Instant::now(), parts: Mutex::default() }) }
    }
}

impl Heartbeats {
    /// Expects heartbeats of one more part, the first within this time.
    pub fn expect_part(&self, name: &str, within: Duration) -> Heartbeat {
        let part =
            Arc::new(HeartbeatPart { name: name.into(), last: AtomicU64::new(0), due: AtomicU64::new(0) });
        let heartbeat = Heartbeat { began: self.inner.began, part };
        heartbeat.record(within);
        let mut parts = self.inner.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|part| part.strong_count() > 0);
        parts.push(Arc::downgrade(&heartbeat.part));
        heartbeat
    }

    /// Returns the status of each part, by name.
    pub fn statuses(&self) -> Vec<HeartbeatStatus> {
        let parts = self.inner.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |time: &AtomicU64| self.inner.began + Duration::from_millis(time.load(Ordering::Relaxed));
        let status = |part: Arc<HeartbeatPart>| HeartbeatStatus {
            name: part.name.clone(),
            last: at(&part.last),
            due: at(&part.due),
        };
        let mut statuses: Vec<HeartbeatStatus> = parts.iter().filter_map(Weak::upgrade).map(status).collect();
        statuses.sort_by(|a, b| a.name.cmp(&b.name));
        statuses
    }

    /// Returns the parts whose heartbeat is overdue.
    pub fn overdue_parts(&self, now: Instant) -> Vec<HeartbeatStatus> {
        let mut late = self.statuses();
        late.retain(|status| status.is_late(now));
        late
    }
}

impl Heartbeat {
    /// Records a heartbeat; the next follows within this time.
    pub fn record(&self, within: Duration) {
        let now = self.began.elapsed();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2);
        self.part.last.store(millis(now), Ordering::Relaxed);
        // A wait without an end is one of a century.
        self.part.due.store(millis(now.saturating_add(within)).min(CENTURY_MILLIS), Ordering::Relaxed);
    }

    /// Makes the part as late as one that hangs.
    #[cfg(test)]
    pub(crate) fn stall(&self) {
        self.part.due.store(0, Ordering::Relaxed);
    }
}

/// A century: the bound of a wait without an end.
const CENTURY_MILLIS: u64 = 100 * 365 * 24 * 3600 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(statuses: &[HeartbeatStatus]) -> Vec<&str> {
        statuses.iter().map(|status| &*status.name).collect()
    }

    #[test]
    fn who_gives_no_sign_of_life_in_time_is_named() {
        let heartbeats = Heartbeats::default();
        let second = Duration::from_secs(1);
        let (lively, dull) =
            (heartbeats.expect_part("b", second * 60), heartbeats.expect_part("a", second * 10));
        let begun = Instant::now();
        assert_eq!(names(&heartbeats.statuses()), ["a", "b"]);
        assert_eq!(names(&heartbeats.overdue_parts(begun + second * 9)), [""; 0]);
        assert_eq!(names(&heartbeats.overdue_parts(begun + second * 11)), ["a"]);
        assert_eq!(names(&heartbeats.clone().overdue_parts(begun + second * 61)), ["a", "b"]);
        dull.record(second * 100);
        assert_eq!(names(&heartbeats.overdue_parts(begun + second * 61)), ["b"]);
        lively.record(Duration::MAX);
        drop(dull);
        assert_eq!(names(&heartbeats.overdue_parts(begun + second * 1_000_000)), [""; 0]);
        assert_eq!(names(&heartbeats.statuses()), ["b"]);
    }

    #[test]
    fn a_status_has_the_time_of_the_last_sign_and_of_the_next() {
        let heartbeats = Heartbeats::default();
        let heartbeat = heartbeats.expect_part("a", Duration::ZERO);
        let before = Instant::now();
        heartbeat.record(Duration::from_secs(5));
        let sign = heartbeats.statuses().remove(0);
        let millisecond = Duration::from_millis(1);
        assert!(sign.last + millisecond >= before && sign.last <= Instant::now(), "{sign:?}");
        assert_eq!(sign.due - sign.last, Duration::from_secs(5));
    }
}
