//! The fetches of git that run at once in this process, whatever the number of its sources.
//!
//! One takes up to three processes, of which each may have 512 MiB. A source has one of them at
//! most, so one whose server hangs takes one place from the others, and never all. Questions for
//! references are small, and do not count.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::SourceError;
use super::reader::MAX_READ_TIME;

/// The fetches that stay within the memory of the example's pod.
const MAX_FETCHES: usize = 2;

/// The longest wait for a slot: as long as one fetch may take.
const MAX_WAIT: Duration = MAX_READ_TIME;

/// The slots of this process. A new configuration makes new sources while older ones still fetch.
static PROCESS_SLOTS: FetchSlots = FetchSlots::new(MAX_FETCHES, MAX_WAIT);

/// A number of slots. Of those that wait, the one that came first goes first.
#[derive(Debug)]
pub(crate) struct FetchSlots {
    free: Semaphore,
    longest_wait: Duration,
}

/// A slot in use: dropped, the next one goes on.
#[derive(Debug)]
pub(super) struct FetchSlot<'s> {
    _permit: SemaphorePermit<'s>,
}

impl FetchSlots {
    pub(super) const fn new(most: usize, longest_wait: Duration) -> Self {
        Self { free: Semaphore::const_new(most), longest_wait }
    }

    /// Returns the slots of this process.
    pub(super) fn of_process() -> &'static Self {
        &PROCESS_SLOTS
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// Fails where the fetches of others take too long.
    pub(super) async fn acquire(&self, place: &str) -> Result<FetchSlot<'_>, SourceError> {
        match tokio::time::timeout(self.longest_wait, self.free.acquire()).await {
            Ok(Ok(permit)) => Ok(FetchSlot { _permit: permit }),
            Ok(Err(_)) | Err(_) => {
                Err(SourceError::FetchesBusy { place: place.to_owned(), after: self.longest_wait })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ErrorClass;

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_finds_no_slot_is_tried_again_later() {
        let slots = FetchSlots::new(MAX_FETCHES, MAX_WAIT);
        let [first, _second] = [slots.acquire("a").await.unwrap(), slots.acquire("b").await.unwrap()];
        let error = slots.acquire("shop").await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Transient);
        let said =
            "shop: not fetched: for 600 s the fetches of other sources took all places; it is tried again";
        assert_eq!(error.to_string(), said);
        drop(first);
        assert!(slots.acquire("shop").await.is_ok());
    }
}
