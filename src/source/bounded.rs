//! Blocking work under a deadline.

use std::time::Duration;

use super::error::SourceError;

/// Runs work that waits for the disk, which over a network may never answer. The thread cannot be
/// ended, but it does not hold up anybody else.
pub(super) async fn run_bounded<T: Send + 'static>(
    place: &str,
    deadline: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SourceError> {
    let place = place.to_owned();
    match tokio::time::timeout(deadline, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        // A panic message may hold file contents.
        Ok(Err(error)) => {
            let detail =
                if error.is_panic() { "it panicked, which is a bug in rhumb" } else { "it was stopped" };
            Err(SourceError::Worker { place, detail: detail.to_owned() })
        }
        Err(_) => Err(SourceError::Silent { place, after: deadline }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_panic_says_is_not_repeated() {
        let read = run_bounded::<()>("shop", Duration::from_mins(1), || panic!("{}", "hunter2"));
        let said = read.await.unwrap_err().to_string();
        assert!(said.contains("shop") && said.contains("panicked") && !said.contains("hunter2"), "{said}");
    }
}
