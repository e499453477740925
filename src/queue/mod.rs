//! The workqueue: keyed, deduplicated, delayed, with backoff per key.
//!
//! The semantics are client-go's (`util/workqueue/doc.go`): fair (in the order of adding), stingy (a key
//! added many times before it is taken is processed once), and never two workers on one key (a key that
//! is added while it is processed comes back when it is done).
//!
//! **Invariant:** does not know what keys mean, and owns no clock: time is an argument.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// First delay after a failure of a key, doubled by each further one.
pub const FIRST_BACKOFF: Duration = Duration::from_millis(200);

/// Longest delay between two tries of a key: a healed quota, role or webhook is noticed within it.
pub const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// Room for so many keys is kept when none is there: what a first pass over a large source needed is given
/// back.
const ROOM: usize = 1024;

/// Numbers that tell whether the workers keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Keys that wait to be taken.
    pub ready: usize,
    /// Keys that are being processed.
    pub processing: usize,
    /// Keys that come back later.
    pub delayed: usize,
}

/// A queue of keys.
#[derive(Debug)]
pub struct Queue<K> {
    ready: VecDeque<K>,
    dirty: HashSet<K>,
    processing: HashSet<K>,
    delayed: BinaryHeap<Reverse<(Instant, u64)>>,
    due: HashMap<K, (Instant, u64)>,
    tickets: HashMap<u64, K>,
    next_ticket: u64,
    failures: HashMap<K, u32>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            dirty: HashSet::new(),
            processing: HashSet::new(),
            delayed: BinaryHeap::new(),
            due: HashMap::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            failures: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Adds a key, once, to be taken as soon as its turn comes.
    pub fn add(&mut self, key: K) {
        if self.dirty.insert(key.clone()) && !self.processing.contains(&key) {
            self.ready.push_back(key);
        }
    }

    /// Adds a key to be taken at a time; of several times the earliest counts.
    pub fn add_at(&mut self, key: K, at: Instant) {
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

    /// Counts a failure of a key and returns how long it should rest: 200 ms, doubled each time, 5 minutes
    /// at most, less up to a fifth by `jitter` (0 to 1).
    pub fn backoff(&mut self, key: &K, jitter: f64) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let doubled = FIRST_BACKOFF.saturating_mul(1_u32.checked_shl(*failures).unwrap_or(u32::MAX));
        *failures = failures.saturating_add(1).min(31);
        doubled.min(LONGEST_BACKOFF).mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
    }

    /// Forgets the failures of a key.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How often a key failed since it was last forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// Takes the next key. It counts as being processed until [`Queue::done`].
    pub fn take(&mut self, now: Instant) -> Option<K> {
        self.promote(now);
        let key = self.ready.pop_front()?;
        self.dirty.remove(&key);
        self.processing.insert(key.clone());
        Some(key)
    }

    /// Ends the processing of a key; it comes back at once if it was added meanwhile.
    pub fn done(&mut self, key: &K) {
        if self.processing.remove(key) && self.dirty.contains(key) {
            self.ready.push_back(key.clone());
        }
        if self.processing.is_empty() && self.ready.is_empty() && self.ready.capacity() > ROOM {
            self.ready.shrink_to(ROOM);
            self.dirty.shrink_to(ROOM);
            self.processing.shrink_to(ROOM);
        }
    }

    /// When the next delayed key is due.
    pub fn next_due(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, ticket))) = self.delayed.peek() {
            if self.tickets.contains_key(ticket) {
                return Some(*at);
            }
            self.delayed.pop();
        }
        None
    }

    /// How much is in it.
    pub fn depth(&self) -> Depth {
        Depth { ready: self.ready.len(), processing: self.processing.len(), delayed: self.due.len() }
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
        if self.due.is_empty() && self.due.capacity() > ROOM {
            self.due.shrink_to(ROOM);
            self.tickets.shrink_to(ROOM);
            self.delayed.shrink_to(ROOM);
        }
    }
}

#[cfg(test)]
mod tests;
