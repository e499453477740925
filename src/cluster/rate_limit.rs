//! The rate limit and the bounds of concurrency, for all calls but watches.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::connect::Connection;

/// Indicates whether a call reads or may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// GET.
    Read,
    /// Anything else, dry runs included.
    Write,
}

/// The rate limit and the bounds of concurrency.
///
/// The rate limit ends for good once the server shows that it queues fairly by itself (API priority
/// and fairness), as kubectl's does. The bounds of concurrency stay.
#[derive(Debug)]
pub(super) struct CallLimiter {
    limiter: DefaultDirectRateLimiter,
    clock: DefaultClock,
    server_queues: AtomicBool,
    reads: Semaphore,
    writes: Semaphore,
}

impl CallLimiter {
    /// Returns a limiter with the connection's limits; zero or nonsense means the least that still
    /// moves.
    pub(super) fn new(connection: &Connection) -> Self {
        let qps = if connection.qps.is_finite() { connection.qps.clamp(0.1, 100_000.0) } else { 100_000.0 };
        let burst = NonZeroU32::new(connection.burst).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(Duration::from_secs_f32(1.0 / qps))
            .unwrap_or_else(|| Quota::per_second(NonZeroU32::MIN))
            .allow_burst(burst);
        let slots = connection.concurrency.clamp(1, 1024);
        Self {
            limiter: RateLimiter::direct(quota),
            clock: DefaultClock::default(),
            server_queues: AtomicBool::new(false),
            reads: Semaphore::new(slots),
            writes: Semaphore::new(slots),
        }
    }

    /// Waits until one more call may start. The call holds its place as long as it holds the
    /// answer; none means that the limiter is closed, which never happens.
    pub(super) async fn admit(&self, call_kind: CallKind) -> Option<SemaphorePermit<'_>> {
        let slots = match call_kind {
            CallKind::Read => &self.reads,
            CallKind::Write => &self.writes,
        };
        let permit = slots.acquire().await.ok();
        while !self.server_queues.load(Ordering::Relaxed) {
            match self.limiter.check() {
                Ok(()) => break,
                Err(wait) => tokio::time::sleep(wait.wait_time_from(self.clock.now())).await,
            }
        }
        permit
    }

    /// Notes that the server queues fairly by itself.
    pub(super) fn note_server_queues(&self) {
        self.server_queues.store(true, Ordering::Relaxed);
    }

    /// Returns whether the rate limit is in force.
    #[cfg(test)]
    pub(super) fn is_limiting(&self) -> bool {
        !self.server_queues.load(Ordering::Relaxed)
    }
}
