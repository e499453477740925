//! The backoff of one informer.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

const FIRST_WATCH_BACKOFF: Duration = Duration::from_millis(800);
/// The longest pause while the server is down: it is in use again soon after it is back.
const MAX_WATCH_BACKOFF_WHILE_DOWN: Duration = Duration::from_secs(8);
/// The longest pause otherwise: a role that was granted, or a kind that is served again, is noticed
/// within it.
const MAX_WATCH_BACKOFF: Duration = Duration::from_secs(15);
/// The lifetime of a watch which proves that the trouble is over.
const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(30);
/// The minimum lifetime of a watch. One that ends sooner counts as a failure, so that a server
/// which cuts every watch is not asked in a loop.
const MIN_WATCH_LIFETIME: Duration = Duration::from_secs(2);

/// Indicates whether the server could be reached at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerReachability {
    /// It answered, with an error or not.
    Reachable,
    /// It did not.
    Unreachable,
}

/// The backoff of one informer: doubling, with jitter, forgotten after a stable time.
#[derive(Debug, Default)]
pub(super) struct InformerBackoff {
    /// Answers in a row that were failures.
    failures: u32,
    /// Silences since the last answer.
    silences: u32,
}

impl InformerBackoff {
    /// Returns the wait after a failure. A server that answers again is not made to wait for its
    /// silence. Its first answer after an outage says that the old version of a list is gone.
    pub(super) fn note_failure(&mut self, reach: ServerReachability) -> Duration {
        let (count, most) = match reach {
            ServerReachability::Unreachable => (&mut self.silences, MAX_WATCH_BACKOFF_WHILE_DOWN),
            ServerReachability::Reachable => (&mut self.failures, MAX_WATCH_BACKOFF),
        };
        let full = FIRST_WATCH_BACKOFF.saturating_mul(1 << (*count).min(16)).min(most);
        *count = count.saturating_add(1);
        if reach == ServerReachability::Reachable {
            self.silences = 0;
        }
        jitter(full)
    }

    /// Returns the wait after a watch that ended by itself.
    pub(super) fn delay_after_end(&mut self, lived: Duration) -> Duration {
        if lived >= BACKOFF_RESET_AFTER {
            *self = Self::default();
        }
        if lived < MIN_WATCH_LIFETIME {
            self.note_failure(ServerReachability::Reachable)
        } else {
            Duration::ZERO
        }
    }
}

/// Returns a random time between half of a duration and all of it.
pub(super) fn jitter(full: Duration) -> Duration {
    // The seed of a fresh hasher is random, which is all that jitter needs.
    let random = RandomState::new().build_hasher().finish();
    let share = (random % 1024) as f64 / 1024.0;
    full.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_again_is_not_made_to_wait_for_its_silence() {
        let mut backoff = InformerBackoff::default();
        for _ in 0..20 {
            assert!(backoff.note_failure(ServerReachability::Unreachable) <= MAX_WATCH_BACKOFF_WHILE_DOWN);
        }
        assert!(backoff.note_failure(ServerReachability::Unreachable) >= MAX_WATCH_BACKOFF_WHILE_DOWN / 2);
        assert!(backoff.note_failure(ServerReachability::Reachable) <= FIRST_WATCH_BACKOFF);
        assert!(backoff.note_failure(ServerReachability::Unreachable) <= FIRST_WATCH_BACKOFF);
        for _ in 0..20 {
            backoff.note_failure(ServerReachability::Reachable);
        }
        assert!(backoff.note_failure(ServerReachability::Reachable) >= MAX_WATCH_BACKOFF / 2);
        assert!(backoff.delay_after_end(BACKOFF_RESET_AFTER).is_zero());
        assert!(backoff.note_failure(ServerReachability::Reachable) <= FIRST_WATCH_BACKOFF);
    }
}
