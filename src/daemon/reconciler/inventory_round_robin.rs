//! The order in which the inventories of many sources are compared with their sources.
//!
//! One comparison reads all that an inventory says. After a change each is compared, but no more in
//! one turn than leave room for what else happens.

use crate::engine::SourceId;

/// The maximum number of inventories that are compared in one turn: a few milliseconds.
pub(super) const MAX_COMPARISONS_PER_TURN: usize = 16;

/// The inventories that are to be compared: those of this turn, and how many are left.
#[derive(Debug)]
pub(super) struct InventoryRoundRobin {
    count: usize,
    /// The position of the first one of this turn, and the number of those of this turn.
    start: usize,
    due: usize,
    left: usize,
}

impl InventoryRoundRobin {
    /// Returns the round robin of the first `count` sources, of which all are to be compared.
    pub(super) fn of(count: usize) -> Self {
        Self { count, start: 0, due: 0, left: count }
    }

    /// Requires that all are compared once more. The order stays, so that frequent changes delay
    /// none for ever.
    pub(super) fn note_change(&mut self) {
        self.left = self.count;
    }

    /// Requires the same for a change that came late in a turn: the inventories of this turn are
    /// compared after it.
    pub(super) fn note_late_change(&mut self) {
        self.left = self.count - self.due;
    }

    /// Goes on to the inventories of the next turn.
    pub(super) fn begin_turn(&mut self) {
        self.start = (self.start + self.due).checked_rem(self.count).unwrap_or_default();
        self.due = self.left.min(MAX_COMPARISONS_PER_TURN);
        self.left -= self.due;
    }

    /// Returns whether the inventory of a source is compared in this turn.
    pub(super) fn is_due(&self, source: SourceId) -> bool {
        let distance = (source.position() + self.count - self.start).checked_rem(self.count);
        distance.is_some_and(|distance| distance < self.due)
    }

    /// Returns whether inventories are left for later turns.
    pub(super) fn is_pending(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the positions that are compared in the next turn.
    fn next_turn(round_robin: &mut InventoryRoundRobin) -> BTreeSet<usize> {
        round_robin.begin_turn();
        SourceId::first(round_robin.count)
            .filter(|source| round_robin.is_due(*source))
            .map(SourceId::position)
            .collect()
    }

    #[test]
    fn all_of_few_sources_are_compared_in_each_turn_after_a_change() {
        for count in [0, 1, MAX_COMPARISONS_PER_TURN] {
            let mut round_robin = InventoryRoundRobin::of(count);
            for _ in 0..3 {
                assert_eq!(next_turn(&mut round_robin).len(), count);
                assert!(!round_robin.is_pending());
                round_robin.note_change();
            }
        }
    }

    #[test]
    fn each_of_many_is_compared_once_after_the_last_change() {
        let mut round_robin = InventoryRoundRobin::of(40);
        let turns: Vec<_> =
            std::iter::from_fn(|| round_robin.is_pending().then(|| next_turn(&mut round_robin)))
                .take(10)
                .collect();
        assert_eq!(turns.iter().map(BTreeSet::len).collect::<Vec<_>>(), [16, 16, 8]);
        assert_eq!(turns.into_iter().flatten().collect::<BTreeSet<_>>().len(), 40);
        assert_eq!(next_turn(&mut round_robin).len(), 0, "nothing has changed since");
    }

    #[test]
    fn a_late_change_has_all_compared_that_were_compared_before_it() {
        let check = |count: usize, turns: usize, expected: usize| {
            let mut round_robin = InventoryRoundRobin::of(count);
            let last = (0..turns).map(|_| next_turn(&mut round_robin)).last().unwrap();
            round_robin.note_late_change();
            let mut others = BTreeSet::new();
            while round_robin.is_pending() {
                others.extend(next_turn(&mut round_robin));
            }
            assert_eq!(others.len(), expected, "{count} {turns}");
            assert!(others.is_disjoint(&last));
        };
        check(5, 1, 0);
        check(40, 1, 24);
        check(40, 2, 24);
        check(40, 3, 32);
        // In a turn that compares none, all are left.
        check(40, 4, 40);
    }

    #[test]
    fn a_change_in_each_turn_delays_none_for_longer_than_a_round() {
        let mut round_robin = InventoryRoundRobin::of(40);
        let turns = (0..9).map(|_| {
            round_robin.note_change();
            next_turn(&mut round_robin)
        });
        let turns: Vec<_> = turns.collect();
        for round in turns.windows(3) {
            assert_eq!(round.iter().flatten().collect::<BTreeSet<_>>().len(), 40);
        }
    }
}
