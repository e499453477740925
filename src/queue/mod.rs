//! The workqueue: keyed, deduplicated, delayed, with backoff per key.
//!
//! The semantics are client-go's (`util/workqueue/doc.go`). It is fair: keys come in the order of
//! adding. It is stingy: a key added many times before it is taken is processed once. Two workers
//! never have one key: a key that is added while it is processed comes back when it is done.
//!
//! Its metrics ([`QueueMetrics`]) are client-go's too, but for `workqueue_depth`: it also counts
//! the keys that are being processed.
//!
//! **Invariant:** does not know what keys mean, and owns no clock: time is an argument.

mod measures;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

pub(crate) use measures::QueueMetrics;

/// First delay after a failure of a key, doubled by each further one.
pub(crate) const FIRST_BACKOFF: Duration = Duration::from_millis(200);

/// Longest delay between two tries of a key: a healed quota, role or webhook is noticed within it.
pub(crate) const MAX_KEY_BACKOFF: Duration = Duration::from_mins(5);

/// The number of keys for which room is kept while the queue is empty. So the memory that the first
/// pass over a large source needed is freed.
const IDLE_CAPACITY: usize = 1024;

/// The numbers of keys by state, which show whether the workers keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueDepth {
    /// Keys that wait to be taken.
    pub ready: usize,
    /// Keys that are being processed.
    pub processing: usize,
    /// Keys that come back later.
    pub delayed: usize,
}

/// A queue of keys.
#[derive(Debug)]
pub(crate) struct WorkQueue<K> {
    ready: VecDeque<K>,
    /// Keys that are to be taken, with when they were added.
    dirty: HashMap<K, Option<Instant>>,
    /// Keys that are being processed, with when they were taken.
    processing: HashMap<K, Instant>,
    delayed: BinaryHeap<Reverse<(Instant, u64)>>,
    due: HashMap<K, (Instant, u64)>,
    tickets: HashMap<u64, K>,
    next_ticket: u64,
    failures: HashMap<K, u32>,
    /// The time of the last tick; none before the first.
    now: Option<Instant>,
    measures: QueueMetrics,
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            delayed: BinaryHeap::new(),
            due: HashMap::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            failures: HashMap::new(),
            now: None,
            measures: QueueMetrics::default(),
        }
    }
}

impl<K> WorkQueue<K> {
    /// Returns a queue that counts on with the metrics of an earlier queue.
    #[must_use]
    pub(crate) fn with_metrics(self, measures: QueueMetrics) -> Self {
        Self { measures, ..self }
    }
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// Adds a key, once, to be taken as soon as its turn comes.
    pub(crate) fn add(&mut self, key: K) {
        if self.dirty.contains_key(&key) {
            return;
        }
        self.dirty.insert(key.clone(), self.now);
        self.measures.adds.inc();
        if !self.processing.contains_key(&key) {
            self.ready.push_back(key);
        }
    }

    /// Sets the time, which only the metrics use.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = Some(now);
    }

    /// Returns the metrics.
    pub(crate) fn metrics(&self) -> &QueueMetrics {
        &self.measures
    }

    /// Returns the processing times of the keys in process: their sum, and the longest.
    pub(crate) fn processing_times(&self, now: Instant) -> (Duration, Duration) {
        let since = self.processing.values().map(|taken| now.saturating_duration_since(*taken));
        since.fold((Duration::ZERO, Duration::ZERO), |(sum, longest), one| (sum + one, longest.max(one)))
    }

    /// Adds a key to be taken at a time; of several times the earliest counts.
    pub(crate) fn add_at(&mut self, key: K, at: Instant) {
        if let Some((earlier, ticket)) = self.due.get(&key) {
            if *earlier <= at {
                return;
            }
            self.tickets.remove(ticket);
        }
        self.next_ticket += 1;
        self.due.insert(key.clone(), (at, self.next_ticket));
        self.tickets.insert(self.next_ticket, key);
        self.delayed.push(Reverse((at, self.next_ticket)));
    }

    /// Counts a failure of a key and returns its backoff: 200 ms, doubled each time, 5 minutes at
    /// most. `jitter` (0 to 1) takes up to a fifth off.
    pub(crate) fn next_backoff(&mut self, key: &K, jitter: f64) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let doubled = FIRST_BACKOFF.saturating_mul(1_u32.checked_shl(*failures).unwrap_or(u32::MAX));
        *failures = failures.saturating_add(1).min(31);
        self.measures.retries.inc();
        doubled.min(MAX_KEY_BACKOFF).mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
    }

    /// Forgets the failures of a key.
    pub(crate) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Returns how often a key failed since it was last forgotten.
    pub(crate) fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// Takes the next key. It counts as being processed until [`WorkQueue::finish`].
    pub(crate) fn take(&mut self, now: Instant) -> Option<K> {
        self.tick(now);
        self.promote(now);
        let key = self.ready.pop_front()?;
        if let Some(added) = self.dirty.remove(&key).flatten() {
            self.measures.waited.observe(now.saturating_duration_since(added).as_secs_f64());
        }
        self.processing.insert(key.clone(), now);
        Some(key)
    }

    /// Ends the processing of a key; it comes back at once if it was added meanwhile.
    pub(crate) fn finish(&mut self, key: &K) {
        if let Some(taken) = self.processing.remove(key) {
            let took = self.now.unwrap_or(taken).saturating_duration_since(taken);
            self.measures.worked.observe(took.as_secs_f64());
            if self.dirty.contains_key(key) {
                self.ready.push_back(key.clone());
            }
        }
        if self.processing.is_empty() && self.ready.is_empty() && self.ready.capacity() > IDLE_CAPACITY {
            self.ready.shrink_to(IDLE_CAPACITY);
            self.dirty.shrink_to(IDLE_CAPACITY);
            self.processing.shrink_to(IDLE_CAPACITY);
        }
    }

    /// Returns when the next delayed key is due.
    pub(crate) fn next_due(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, ticket))) = self.delayed.peek() {
            if self.tickets.contains_key(ticket) {
                return Some(*at);
            }
            self.delayed.pop();
        }
        None
    }

    /// Returns the number of keys by state.
    pub(crate) fn depth(&self) -> QueueDepth {
        QueueDepth { ready: self.ready.len(), processing: self.processing.len(), delayed: self.due.len() }
    }

    fn promote(&mut self, now: Instant) {
        while let Some(Reverse((at, ticket))) = self.delayed.peek().copied() {
            if at > now {
                break;
            }
            self.delayed.pop();
            if let Some(key) = self.tickets.remove(&ticket) {
                self.due.remove(&key);
                self.add(key);
            }
        }
        if self.due.is_empty() && self.due.capacity() > IDLE_CAPACITY {
            self.due.shrink_to(IDLE_CAPACITY);
            self.tickets.shrink_to(IDLE_CAPACITY);
            self.delayed.shrink_to(IDLE_CAPACITY);
        }
    }
}

#[cfg(test)]
mod tests;
