//! The time of a source's last successful check.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Set by the reader of a source, and read by whoever wants to know; a clone is the same. It wakes
/// nobody.
#[derive(Clone, Debug, Default)]
pub(in crate::daemon) struct LastCheck(Arc<AtomicI64>);

impl LastCheck {
    /// Sets the time of the last check to now.
    pub(super) fn set(&self, now: Timestamp) {
        self.0.store(now.as_millisecond(), Ordering::Relaxed);
    }

    /// Returns when it was; none before the first one.
    pub(in crate::daemon) fn get(&self) -> Option<Timestamp> {
        let at = self.0.load(Ordering::Relaxed);
        (at != 0).then(|| Timestamp::from_millisecond(at).ok()).flatten()
    }
}
