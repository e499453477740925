//! The metrics of a queue, under client-go's names (`util/workqueue/metrics.go`).

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Counters and histograms of one queue; a clone counts the same.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics {
    pub(super) adds: Counter,
    pub(super) retries: Counter,
    /// Seconds from the adding of a key until it is taken.
    pub(super) waited: Histogram,
    /// Seconds from the taking of a key until it is done.
    pub(super) worked: Histogram,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        // client-go's: from 10 ns to 1000 s.
        let seconds = || Histogram::new(exponential_buckets(1e-8, 10.0, 12));
        Self { adds: Counter::default(), retries: Counter::default(), waited: seconds(), worked: seconds() }
    }
}

impl QueueMetrics {
    /// Registers these metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("workqueue_adds", "Keys that were added", self.adds.clone());
        registry.register("workqueue_retries", "Keys that came back after a failure", self.retries.clone());
        let waited = "Seconds that a key waited until it was taken";
        registry.register("workqueue_queue_duration_seconds", waited, self.waited.clone());
        let worked = "Seconds that the processing of a key took";
        registry.register("workqueue_work_duration_seconds", worked, self.worked.clone());
    }
}
