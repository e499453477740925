//! Blocking work under a deadline.

use std::time::Duration;

use super::error::Error;

/// Runs work that waits for the disk, which over a network may never answer. The thread cannot be ended, but
/// it does not hold up anybody else.
pub(super) async fn bounded<T: Send + 'static>(
    place: &str,
    deadline: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let place = place.to_owned();
    match tokio::time::timeout(deadline, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(Error::Worker { place, detail: error.to_string() }),
        Err(_) => Err(Error::Silent { place, after: deadline }),
    }
}
