//! The writes of an inventory, where another process writes it too.
//!
//! Two processes may serve one source, for example without Leases. Their records differ for some
//! seconds, as each makes its status at its own times. Without a rest each would write its own over
//! that of the other one, as fast as the API server answers.

use std::time::{Duration, Instant};

use crate::engine::ResourceVersion;

/// The number of writes in a row that may each replace one of another process at once. A person who
/// edits an inventory is answered without a delay.
const MAX_IMMEDIATE_REWRITES: u32 = 3;

/// The shortest time between two writes after that.
const REWRITE_INTERVAL: Duration = Duration::from_secs(5);

/// The time after which a write of another process is no answer to the one before it.
const ANSWER_PERIOD: Duration = Duration::from_secs(15);
const _: () = assert!(
    ANSWER_PERIOD.as_secs() > REWRITE_INTERVAL.as_secs() * 2,
    "two processes that wait for each other go on waiting"
);

/// The last write of an inventory by this process, and how often others have replaced it.
#[derive(Debug, Default)]
pub(in crate::daemon) struct InventoryRewrites {
    /// The time of the last write, and the version that it made.
    last: Option<(Instant, ResourceVersion)>,
    /// The version that the write in flight replaces.
    replacing: Option<ResourceVersion>,
    /// The number of writes in a row that have replaced one of another process.
    in_a_row: u32,
}

impl InventoryRewrites {
    /// Notes the version that a write replaces; none where it creates the inventory.
    pub(in crate::daemon) fn begin_write(&mut self, replaced: Option<ResourceVersion>) {
        self.replacing = replaced;
    }

    /// Notes the answer to a call: the version that is there now, or none after a failure. It counts
    /// where the call was a write.
    pub(in crate::daemon) fn end_call(&mut self, written: Option<ResourceVersion>, now: Instant) {
        let (Some(replaced), Some(written)) = (self.replacing.take(), written) else { return };
        match self.last {
            Some((at, version)) if now < at + ANSWER_PERIOD => {
                self.in_a_row = self.in_a_row.saturating_add(u32::from(version != replaced));
            }
            _ => self.in_a_row = 0,
        }
        self.last = Some((now, written));
    }

    /// Returns the time before which this version is not replaced.
    pub(super) fn next_write(&self, known: Option<ResourceVersion>) -> Option<Instant> {
        let (at, version) = self.last?;
        let is_contended = known.is_some_and(|known| known != version);
        (is_contended && self.in_a_row >= MAX_IMMEDIATE_REWRITES).then_some(at + REWRITE_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes over a version at a time, and returns when the version of another process may be
    /// replaced, in milliseconds from the start.
    fn write(rewrites: &mut InventoryRewrites, start: Instant, at: u64, versions: (u64, u64)) -> Option<u64> {
        let (replaced, written) = (ResourceVersion(versions.0), ResourceVersion(versions.1));
        rewrites.begin_write(Some(replaced));
        rewrites.end_call(Some(written), start + Duration::from_millis(at));
        assert_eq!(rewrites.next_write(Some(written)), None, "its own version is never waited for");
        let next = rewrites.next_write(Some(ResourceVersion(versions.1 + 1)))?;
        Some(u64::try_from((next - start).as_millis()).unwrap())
    }

    #[test]
    fn a_process_that_is_answered_again_and_again_waits_longer() {
        let (start, mut rewrites) = (Instant::now(), InventoryRewrites::default());
        assert_eq!(rewrites.next_write(Some(ResourceVersion(1))), None);
        assert_eq!(write(&mut rewrites, start, 0, (1, 2)), None);
        assert_eq!(write(&mut rewrites, start, 10, (3, 4)), None);
        assert_eq!(write(&mut rewrites, start, 20, (5, 6)), None);
        assert_eq!(write(&mut rewrites, start, 30, (7, 8)), Some(5030));
        // A write of its own in between ends nothing, as the other one may be as slow.
        assert_eq!(write(&mut rewrites, start, 5030, (8, 9)), Some(10_030));
        assert_eq!(write(&mut rewrites, start, 10_030, (10, 11)), Some(15_030));
        // A rest ends it.
        assert_eq!(write(&mut rewrites, start, 25_030, (12, 13)), None);
    }

    #[test]
    fn a_read_and_a_failed_write_count_for_nothing() {
        let (start, mut rewrites) = (Instant::now(), InventoryRewrites::default());
        write(&mut rewrites, start, 0, (1, 2));
        for version in [4, 6, 8, 10] {
            rewrites.end_call(Some(ResourceVersion(version)), start);
            rewrites.begin_write(Some(ResourceVersion(version)));
            rewrites.end_call(None, start);
        }
        assert_eq!(rewrites.next_write(Some(ResourceVersion(12))), None);
    }

    #[test]
    fn an_inventory_that_is_gone_is_created_at_once() {
        let (start, mut rewrites) = (Instant::now(), InventoryRewrites::default());
        for version in [1, 3, 5, 7, 9] {
            write(&mut rewrites, start, 0, (version, version + 1));
        }
        assert!(rewrites.next_write(Some(ResourceVersion(20))).is_some());
        assert_eq!(rewrites.next_write(None), None);
    }
}
