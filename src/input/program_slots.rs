//! The renders that run at once in this process, whatever the number of its sources.
//!
//! Each may take 512 MiB. Of the sources that wait, the one with the fewest renders goes first. So
//! one whose programs hang takes one place from the others, and never all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Two renders stay within the memory of the packaged units and of the example's pod.
pub(super) const MAX_CONCURRENT_RENDERS: usize = 2;

/// The slots of this process. A new configuration makes new renderers while older ones still run.
static PROCESS_SLOTS: ProgramSlots = ProgramSlots::new(MAX_CONCURRENT_RENDERS);

/// One that asks for slots: a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotClient(u64);

impl SlotClient {
    /// Returns one that is equal to no other.
    pub(super) fn new() -> Self {
        static NEXT_CLIENT_NUMBER: AtomicU64 = AtomicU64::new(0);
        Self(NEXT_CLIENT_NUMBER.fetch_add(1, Ordering::Relaxed))
    }
}

/// A number of slots, and who waits for one.
#[derive(Debug)]
pub(super) struct ProgramSlots {
    most: usize,
    state: Mutex<SlotState>,
    freed: Condvar,
}

#[derive(Debug)]
struct SlotState {
    running: BTreeMap<SlotClient, usize>,
    /// The clients that wait, in the order in which they came.
    waiting: Vec<(u64, SlotClient)>,
    next_ticket: u64,
}

/// A slot in use: dropped, the next one goes on.
#[derive(Debug)]
pub(super) struct ProgramSlot<'s> {
    slots: &'s ProgramSlots,
    client: SlotClient,
}

impl ProgramSlots {
    const fn new(most: usize) -> Self {
        let state = SlotState { running: BTreeMap::new(), waiting: Vec::new(), next_ticket: 0 };
        Self { most, state: Mutex::new(state), freed: Condvar::new() }
    }

    /// Returns the slots of this process.
    pub(super) fn of_process() -> &'static Self {
        &PROCESS_SLOTS
    }

    /// Waits for a slot. Blocks.
    pub(super) fn acquire(&self, client: SlotClient) -> ProgramSlot<'_> {
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push((ticket, client));
        while state.next(self.most) != Some(ticket) {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.retain(|(waiting, _)| *waiting != ticket);
        *state.running.entry(client).or_default() += 1;
        drop(state);
        // The next one may fit beside this one.
        self.freed.notify_all();
        ProgramSlot { slots: self, client }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotState {
    /// Returns who goes next: of the clients with the fewest slots, the one that came first.
    fn next(&self, most: usize) -> Option<u64> {
        if self.running.values().sum::<usize>() >= most {
            return None;
        }
        let held = |client: &SlotClient| self.running.get(client).copied().unwrap_or(0);
        let next = self.waiting.iter().min_by_key(|(ticket, client)| (held(client), *ticket))?;
        Some(next.0)
    }
}

impl Drop for ProgramSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        if let Some(held) = state.running.get_mut(&self.client) {
            *held -= 1;
            if *held == 0 {
                state.running.remove(&self.client);
            }
        }
        drop(state);
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    #[test]
    fn no_more_run_at_once_than_there_are_slots_and_all_of_them_do() {
        let (slots, running) = (ProgramSlots::new(2), AtomicUsize::new(0));
        let (most, both) = (AtomicUsize::new(0), Barrier::new(2));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _slot = slots.acquire(SlotClient::new());
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // Nobody goes on before another one is there too.
                    both.wait();
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn the_one_with_the_fewest_slots_goes_first_and_then_the_one_that_came_first() {
        let [greedy, early, late] = [0, 1, 2].map(SlotClient);
        let mut state = SlotState {
            running: [(greedy, 1)].into(),
            waiting: vec![(1, greedy), (2, early), (3, late), (4, early)],
            next_ticket: 5,
        };
        let mut order = Vec::new();
        while let Some(next) = state.next(8) {
            let position = state.waiting.iter().position(|(ticket, _)| *ticket == next).unwrap();
            let (_, client) = state.waiting.remove(position);
            *state.running.entry(client).or_default() += 1;
            order.push(next);
        }
        assert_eq!(order, [2, 3, 1, 4]);
        // With no free slot nobody goes.
        state.waiting.push((6, late));
        assert_eq!(state.next(5), None);
    }
}
