//! Counts the lookups of facts, so that a test can bound what a change costs without a clock.
//!
//! **Invariant:** counts in tests alone, and decides nothing.

/// Counts this number of lookups.
#[cfg(not(test))]
#[inline]
pub(in crate::engine) const fn count(_lookups: usize) {}

#[cfg(test)]
pub(in crate::engine) use counting::{count, run_uncounted, take_count};

#[cfg(test)]
mod counting {
    use std::cell::Cell;

    thread_local! {
        /// The count of this test alone: each has a thread of its own.
        static LOOKUPS: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts this number of lookups.
    pub(in crate::engine) fn count(lookups: usize) {
        LOOKUPS.with(|all| all.set(all.get() + lookups));
    }

    /// Returns how many lookups there were since it was asked last.
    pub(in crate::engine) fn take_count() -> usize {
        LOOKUPS.with(Cell::take)
    }

    /// Runs a check of a test, whose lookups do not count.
    pub(in crate::engine) fn run_uncounted(check: impl FnOnce()) {
        let before = LOOKUPS.with(Cell::get);
        check();
        LOOKUPS.with(|all| all.set(before));
    }
}
