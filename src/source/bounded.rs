//! Blocking work under a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::error::SourceError;

/// The place of one blocking work at a time: work that was given up still holds it until it ends.
///
/// A thread cannot be ended. Without this, each look at a disk that never answers would leave
/// another thread behind.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkSlot(Arc<AtomicBool>);

/// A slot in use. It is given back at the end of the work, be it by a panic.
struct HeldSlot(WorkSlot);

impl Drop for HeldSlot {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

impl WorkSlot {
    fn take(&self) -> Option<HeldSlot> {
        let is_free = !self.0.swap(true, Ordering::Acquire);
        is_free.then(|| HeldSlot(self.clone()))
    }

    /// Runs work as [`run_bounded`] does.
    ///
    /// Fails at once where earlier work was given up and has not ended yet.
    pub(super) async fn run_bounded<T: Send + 'static>(
        &self,
        shown_location: &str,
        deadline: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SourceError> {
        let Some(held) = self.take() else {
            return Err(SourceError::Silent { shown_location: shown_location.to_owned(), after: deadline });
        };
        let work = move || {
            let _held = held;
            work()
        };
        run_bounded(shown_location, deadline, work).await
    }
}

/// Waits for work that may take this long.
pub(super) async fn await_bounded<T>(
    shown_location: &str,
    deadline: Duration,
    work: impl Future<Output = Result<T, SourceError>>,
) -> Result<T, SourceError> {
    let silent = |_| SourceError::Silent { shown_location: shown_location.to_owned(), after: deadline };
    tokio::time::timeout(deadline, work).await.map_err(silent)?
}

/// Runs work that waits for the disk, which over a network may never answer. The thread cannot be
/// ended, but it does not delay anybody else.
pub(super) async fn run_bounded<T: Send + 'static>(
    shown_location: &str,
    deadline: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SourceError> {
    let shown_location = shown_location.to_owned();
    match tokio::time::timeout(deadline, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        // A panic message may hold file contents.
        Ok(Err(error)) => {
            let detail =
                if error.is_panic() { "it panicked, which is a bug in rhumb" } else { "it was stopped" };
            Err(SourceError::Worker { shown_location, detail: detail.to_owned() })
        }
        Err(_) => Err(SourceError::Silent { shown_location, after: deadline }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn what_a_panic_says_is_not_repeated() {
        let read = run_bounded::<()>("shop", Duration::from_mins(1), || panic!("{}", "hunter2"));
        let said = read.await.unwrap_err().to_string();
        assert!(said.contains("shop") && said.contains("panicked") && !said.contains("hunter2"), "{said}");
    }

    #[tokio::test]
    async fn no_work_begins_beside_work_that_was_given_up() {
        let (slot, minute) = (WorkSlot::default(), Duration::from_mins(1));
        let (end, wait) = channel::<()>();
        let (alive, ended) = channel::<()>();
        let stuck = move || {
            let _ = (wait.recv(), alive);
        };
        let given_up = slot.run_bounded("shop", Duration::ZERO, stuck).await;
        assert!(matches!(given_up, Err(SourceError::Silent { .. })), "{given_up:?}");
        let refused = slot.run_bounded("shop", minute, || panic!("it began")).await;
        assert!(matches!(refused, Err(SourceError::Silent { .. })), "{refused:?}");
        drop(end);
        // The channel closes within the work, and the slot is free a moment later.
        assert!(ended.recv().is_err());
        while matches!(slot.run_bounded("shop", minute, || ()).await, Err(SourceError::Silent { .. })) {
            tokio::task::yield_now().await;
        }
        let panicked = slot.run_bounded::<()>("shop", minute, || panic!("on purpose")).await;
        assert!(matches!(panicked, Err(SourceError::Worker { .. })), "{panicked:?}");
        while matches!(slot.run_bounded("shop", minute, || ()).await, Err(SourceError::Silent { .. })) {
            tokio::task::yield_now().await;
        }
    }
}
