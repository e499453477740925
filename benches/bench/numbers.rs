//! Orders of measured values.

use std::time::Duration;

/// Times in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// Takes times in any order.
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Returns the smallest time that so many percent are not above (nearest rank); zero where
    /// there is none.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    /// Returns the middle one.
    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// Returns `p50 7.1 ms, p99 12.0 ms`.
    pub(crate) fn spread(&self) -> String {
        format!("p50 {:.1} ms, p99 {:.1} ms", ms(self.median()), ms(self.percentile(99)))
    }
}

/// Converts a time to milliseconds.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Returns the ratio of two times.
pub(crate) fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}
