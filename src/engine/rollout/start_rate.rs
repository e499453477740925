//! The rollouts that began in the last minute, over all processes that share the budget.
//!
//! A start is written into the rollout ledger together with its claim. So a process that ends,
//! reads its configuration anew or hands a source over forgets none.
//!
//! **Hazard:** hosts' clocks differ. A start from the future counts as one of now. One that has
//! appeared since the ledger was last read is no older than that reading. Any other start counts as
//! younger than its time says, by [`MAX_CLOCK_SKEW`]. Within that, a difference of the clocks can
//! only have it count for longer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::facts::records::clock_skew::MAX_CLOCK_SKEW;
use crate::engine::facts::records::object_word::{object_word, parse_object_word};
use crate::engine::rollout::ledger::RolloutLedger;
use crate::engine::rollout::ledger_text::read_name;
use crate::object::ObjectId;

/// The time for which a start counts.
const START_WINDOW: Duration = Duration::from_mins(1);

/// The time for which starts are kept in the rollout ledger: another host's clock may be behind by
/// the rest of it.
const START_RETENTION: Duration = Duration::from_mins(2);

/// The most starts that are kept: some 100 KB of the 1 MiB that the object holds.
const MAX_RECORDED_STARTS: usize = 600;

/// The beginning of one rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RolloutStart {
    /// The workload.
    pub id: ObjectId,
    /// The inventory that it is in.
    pub inventory_id: Arc<str>,
    /// The time, by the clock of its process.
    pub at: Timestamp,
    /// The mark of that clock; empty where an earlier version of rhumb wrote it.
    pub clock: Arc<str>,
}

/// The form of a [`RolloutStart`] in JSON.
#[derive(Serialize, Deserialize)]
pub(in crate::engine) struct RolloutStartText {
    object: String,
    source: String,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    clock: String,
}

impl RolloutStartText {
    /// Returns the JSON form of a start.
    pub(in crate::engine) fn of(start: &RolloutStart) -> Self {
        let (object, source) = (object_word(&start.id), start.inventory_id.to_string());
        Self { object, source, at: start.at, clock: start.clock.to_string() }
    }

    /// Returns the start; none where it names no object.
    pub(in crate::engine) fn read(self) -> Option<RolloutStart> {
        let id = parse_object_word(&self.object)?;
        let (inventory_id, clock) = (read_name(&self.source), read_name(&self.clock));
        Some(RolloutStart { id, inventory_id, at: self.at, clock })
    }
}

/// The starts that this process knows.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct StartHistory {
    /// This moment, by both clocks.
    clock: Option<(Instant, Timestamp)>,
    /// The mark of the clock of this host.
    mark: Arc<str>,
    /// Starts of the last minute, each with the moment from which it counts, the oldest first.
    counted: Vec<(Instant, RolloutStart)>,
    /// All that the rollout ledger said when it was last read, those that no longer count too.
    recorded: Vec<RolloutStart>,
    /// The newest start of each workload that was taken for a slot.
    taken: BTreeMap<ObjectId, Timestamp>,
    /// The time at which the ledger was last read.
    read: Option<Instant>,
}

impl StartHistory {
    /// Takes over the mark of this host's clock.
    pub(in crate::engine) fn set_clock_mark(&mut self, mark: &str) {
        self.mark = mark.into();
    }

    /// Takes over what time it is.
    pub(in crate::engine) fn set_clock(&mut self, now: Instant, wall: Timestamp) {
        self.clock = Some((now, wall));
    }

    /// Returns this moment; none where the time was not set.
    pub(in crate::engine) fn current_time(&self) -> Option<Instant> {
        self.clock.map(|(now, _)| now)
    }

    /// Returns this moment by both clocks; none where the time was not set.
    pub(in crate::engine) fn clock(&self) -> Option<(Instant, Timestamp)> {
        self.clock
    }

    /// Lets time pass, and returns whether any start has become older than a minute by it.
    pub(in crate::engine) fn advance(&mut self, now: Instant) -> bool {
        if let Some((before, wall)) = &mut self.clock {
            *wall += now.saturating_duration_since(*before);
            *before = now.max(*before);
        }
        let known = self.counted.len();
        self.counted.retain(|(since, _)| now.saturating_duration_since(*since) < START_WINDOW);
        self.counted.len() < known
    }

    /// Returns when the oldest one stops counting.
    pub(in crate::engine) fn next_expiry(&self) -> Option<Instant> {
        self.counted.first().map(|(since, _)| *since + START_WINDOW)
    }

    /// Returns the number of starts of the last minute for which a predicate holds.
    pub(in crate::engine) fn count(&self, counts: impl Fn(&RolloutStart) -> bool) -> u32 {
        let counted = self.counted.iter().filter(|(_, start)| counts(start)).count();
        u32::try_from(counted).unwrap_or(u32::MAX)
    }

    /// Takes over what the rollout ledger says.
    pub(in crate::engine) fn record_ledger(&mut self, ledger: &RolloutLedger) {
        let Some((now, wall)) = self.clock else { return };
        let known = std::mem::take(&mut self.counted);
        let since_read = self.read.map(|read| now.saturating_duration_since(read));
        for start in &ledger.starts {
            let since = known.iter().find(|(_, other)| other == start).map(|(since, _)| *since);
            let is_over = since.is_none() && self.recorded.contains(start);
            let since =
                since.or_else(|| now.checked_sub(self.age(start, wall, since_read)?)).filter(|_| !is_over);
            if let Some(since) = since.filter(|since| now.saturating_duration_since(*since) < START_WINDOW) {
                self.counted.push((since, start.clone()));
            }
        }
        // A process whose clock is ahead takes it out of the ledger before its minute is over.
        let is_out = |start: &RolloutStart| !ledger.starts.contains(start);
        self.counted.extend(known.into_iter().filter(|(_, start)| is_out(start)));
        self.counted.sort_by_key(|(since, _)| *since);
        if self.read.is_none() {
            // A rollout that began before this process is not begun by it once more.
            for start in &ledger.starts {
                self.take(start);
            }
        }
        let there = |id: &ObjectId| ledger.starts.iter().any(|start| start.id == *id);
        self.taken.retain(|id, _| there(id));
        self.recorded.clone_from(&ledger.starts);
        self.read = Some(now);
    }

    /// Takes the newest start of a workload that was not taken before, and returns whether there
    /// was one.
    pub(in crate::engine) fn try_take_newest(&mut self, ledger: &RolloutLedger, id: &ObjectId) -> bool {
        let newest = ledger.starts.iter().filter(|start| start.id == *id).max_by_key(|start| start.at);
        newest.is_some_and(|start| self.take(start))
    }

    fn take(&mut self, start: &RolloutStart) -> bool {
        let is_new = self.taken.get(&start.id).is_none_or(|taken| *taken < start.at);
        if is_new {
            self.taken.insert(start.id.clone(), start.at);
        }
        is_new
    }

    /// Writes starts of now into a ledger, and takes out those that no longer count anywhere.
    pub(in crate::engine) fn write(&self, ledger: &mut RolloutLedger, begun: Vec<(ObjectId, Arc<str>)>) {
        let Some((_, wall)) = self.clock else { return };
        for (id, inventory_id) in begun {
            // Later than the one before, whatever the clocks say: it is known by its time.
            let before = ledger.starts.iter().filter(|start| start.id == id).map(|start| start.at).max();
            let tick = Duration::from_millis(1);
            let at = before.map_or(wall, |before| wall.max(before.saturating_add(tick).unwrap_or(before)));
            let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
            ledger.starts.push(RolloutStart { id, inventory_id, at, clock: self.mark.clone() });
        }
        // A start from a clock that is behind looks old. It stays as long as it counts here.
        let counts = |start: &RolloutStart| self.counted.iter().any(|(_, counted)| counted == start);
        let is_kept = |start: &RolloutStart| {
            let age = start.at.duration_until(wall);
            age < jiff::SignedDuration::try_from(START_RETENTION).unwrap_or_default() || counts(start)
        };
        ledger.starts.retain(is_kept);
        ledger.starts.sort_by_key(|start| start.at);
        let surplus = ledger.starts.len().saturating_sub(MAX_RECORDED_STARTS);
        ledger.starts.drain(..surplus);
    }

    /// Returns how old a start is, as far as that is proven; none where it no longer counts.
    fn age(&self, start: &RolloutStart, wall: Timestamp, since_read: Option<Duration>) -> Option<Duration> {
        let recorded_age = Duration::try_from(start.at.duration_until(wall)).unwrap_or_default();
        let skew = if start.clock == self.mark { Duration::ZERO } else { MAX_CLOCK_SKEW };
        let proven = recorded_age.saturating_sub(skew);
        let age = since_read.map_or(proven, |since| proven.min(since));
        (age < START_WINDOW).then_some(age)
    }
}
